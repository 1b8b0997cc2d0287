/* batch_validate_test.c - our verdict on produced batches against that of Apache Kafka's own log.
 *
 * test/golden/records/judged.tsv is made by test/records/JudgeBatches.java, which tells what a
 * line is; DOHLE_JUDGED names another file of that kind. Where this test lets the two differ, and
 * why, stands at `excused`. */
#include "record/batch_validate.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "record/crc.h"
#include "record/record_test.h"

#define JUDGED_FILE "test/golden/records/judged.tsv"
#define LINE_BYTES  (1u << 20)
#define BYTES_MAX   (1u << 18)
#define WALL_MS     1700000005000

struct judged {
    uint32_t line;
    int16_t code;
    char *indexes;
    bool readable;
    char *stored;
    struct batch_rules rules;
    uint8_t *bytes; /* The produced bytes, in a block of their size. */
    struct view view;
};

static int64_t number(char **text)
{
    int64_t value = strtoll(*text, text, 10);
    if (**text == ',') (*text)++;
    return value;
}

static struct batch_rules parse_rules(char *text)
{
    struct batch_rules rules = {.origin = BATCH_FROM_CLIENT, .wall_ms = WALL_MS};
    rules.produce_version = (int16_t)number(&text);
    rules.compacted = number(&text) != 0;
    rules.append_time = number(&text) != 0;
    rules.codec = (int8_t)number(&text);
    rules.level = (int32_t)number(&text);
    rules.before_max_ms = number(&text);
    rules.after_max_ms = number(&text);
    rules.message_bytes_max = (uint32_t)number(&text);
    return rules;
}

static bool parse_line(char *line, struct judged *out)
{
    char *fields[6] = {0};
    line[strcspn(line, "\n")] = '\0';
    if (line[0] == '#') return false;
    for (uint32_t i = 0; i < ARRAY_SIZE(fields); i++) {
        fields[i] = strsep(&line, "\t");
        assert_non_null(fields[i]);
    }
    out->code = (int16_t)strtol(fields[0], NULL, 10);
    out->indexes = fields[1];
    out->readable = fields[2][0] == '1';
    out->stored = fields[3];
    out->rules = parse_rules(fields[4]);
    uint32_t size = (uint32_t)strlen(fields[5]) / 2;
    out->bytes = malloc(size + 1);
    out->view = test_hex(fields[5], out->bytes, size);
    return true;
}

/* Does xerial snappy's magic, or the head of it, stand in the payload a second time? */
static bool second_header(const struct judged *want, const struct batch_verdict *got)
{
    static const uint8_t head[4] = {0x82, 'S', 'N', 'A'};
    uint32_t from = BATCH_HEADER_BYTES + sizeof(head);
    return got->size_bytes > from &&
           memmem(want->bytes + from, got->size_bytes - from, head, sizeof(head)) != NULL;
}

/* Where the frame or header is so broken that Kafka fails in another way. */
static bool excused_frame(const struct judged *want, const struct batch_verdict *got)
{
    /* Of a batch that is too short for its header Kafka reads what is there, or fails to. */
    bool cut = got->fault == RECORD_LENGTH && got->size_bytes < BATCH_HEADER_BYTES;
    if (cut && (want->code == -1 || want->code == 76)) return true;
    /* Its sum of a batch's size overflows, the first one's or that of what follows. */
    if (want->code != -1) return false;
    if (got->header.length > INT32_MAX - 12) return true;
    if (want->view.size < got->size_bytes + BATCH_MAGIC_BYTES) return false;
    const uint8_t *second = want->bytes + got->size_bytes;
    return (int32_t)load_be32(second + BATCH_AT_LENGTH) > INT32_MAX - 12;
}

/* Where the payload is so broken that the readers disagree on what comes first. */
static bool excused_payload(const struct judged *want, const struct batch_verdict *got)
{
    enum record_fault fault = got->fault;
    uint8_t codec = batch_codec(&got->header);
    bool structure = fault >= RECORD_SHORT && fault <= RECORD_TRAILING;
    if (codec == CODEC_NONE || got->size_bytes < BATCH_HEADER_BYTES) return false;
    /* Kafka steps over keys, values and headers of compressed batches that keep their codec, and
     * takes or misreads records that its own full reader refuses. We refuse them. */
    if (structure && !want->readable) return true;
    /* Where a record's bytes end in garbage, Kafka parses what came before it, and may fail there.
     */
    if (fault == RECORD_DECOMPRESS && want->code == 87) return true;
    switch (codec) {
    case CODEC_ZSTD: /* Newer versions of libzstd see corruption that ours does not: we go on to
                      * the records. */
        return (fault == RECORD_OK || fault >= RECORD_NULL_KEY) && want->code == -1 &&
               !want->readable;
    case CODEC_SNAPPY: /* Behind a broken later header Kafka may go on; for us it is the end. */
        return fault == RECORD_SHORT && second_header(want, got);
    case CODEC_GZIP: /* zlib refuses reserved flags, Java does not look at them. */
        return fault == RECORD_DECOMPRESS && (want->bytes[BATCH_HEADER_BYTES + 3] & 0xe0) != 0;
    default: return false;
    }
}

/* Where we are meant to differ from Kafka's answer. */
static bool excused(const struct judged *want, const struct batch_verdict *got)
{
    /* A producer id without an epoch: we refuse it, Kafka takes it. */
    if (got->fault == RECORD_SEQUENCE && got->header.producer_epoch < 0) return true;
    /* Whether a rebuilt batch just fits depends on the compressing library's version. */
    bool edge = want->rules.message_bytes_max <= want->view.size;
    if (got->rebuild && got->codec != CODEC_NONE && edge) return true;
    return excused_frame(want, got) || excused_payload(want, got);
}

static void hex_of(const uint8_t *bytes, uint32_t size, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (uint32_t i = 0; i < size; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = '\0';
}

/* What we would store, written as the judge writes it. Returns the error of a failed rebuild. */
static int16_t store(struct test_world *world,
                     const struct judged *want,
                     const struct batch_verdict *verdict,
                     char *text)
{
    struct sink out;
    sink_init(&out, &world->mem, want->rules.message_bytes_max);
    struct view batch = view_of(want->bytes, verdict->size_bytes);
    if (verdict->rebuild) {
        enum record_fault fault = batch_recompress(&world->work, verdict, batch, &out);
        if (fault != RECORD_OK) {
            sink_free(&out);
            return record_fault_error(fault);
        }
    } else {
        sink_put(&out, batch.data, batch.size);
    }
    batch_set_timestamp(out.data, out.size_bytes, verdict->append_time, verdict->max_timestamp_ms);
    struct batch_header header;
    assert_int_equal(batch_check(sink_view(&out), BATCH_CHECK_CRC, &header), RECORD_OK);
    hex_of(out.data + BATCH_AT_ATTRIBUTES, BATCH_HEADER_BYTES - BATCH_AT_ATTRIBUTES, text);
    text += strlen(text);
    *text++ = '|';

    uint8_t *plain = malloc(BYTES_MAX);
    struct decompress stream;
    struct decompress_options options = {(enum codec)batch_codec(&header), 2, BYTES_MAX};
    struct view payload =
        view_of(out.data + BATCH_HEADER_BYTES, out.size_bytes - BATCH_HEADER_BYTES);
    uint32_t size = 0, got = 1;
    decompress_begin(&stream, &world->work, payload, options);
    for (; got > 0 && size < BYTES_MAX; size += got)
        got = decompress_read(&stream, plain + size, BYTES_MAX - size);
    decompress_end(&stream);
    hex_of(plain, size, text);
    free(plain);
    sink_free(&out);
    return 0;
}

static void indexes_of(const struct batch_verdict *verdict, char *text, size_t size)
{
    (void)snprintf(text, size, verdict->error_count == 0 ? "-" : "");
    for (int32_t i = 0; i < verdict->error_count; i++) {
        size_t used = strlen(text);
        (void)snprintf(text + used, size - used, i == 0 ? "%" PRId32 : ",%" PRId32,
                       verdict->errors[i].index);
    }
}

enum outcome { SAME, EXCUSED, DIFFERENT };

static enum outcome compare(struct test_world *world, const struct judged *want, char *text)
{
    struct batch_verdict verdict;
    enum record_fault fault =
        batch_validate(&world->work, &world->request, &want->rules, want->view, &verdict);
    assert_int_equal(fault, verdict.fault);
    int16_t code = record_fault_error(fault);
    if (code == 0 && verdict.rebuild) code = store(world, want, &verdict, text);
    if (code != want->code) {
        if (excused(want, &verdict)) return EXCUSED;
        print_error("line %" PRIu32 ": %d (%s), Kafka says %d\n", want->line, code,
                    record_fault_text(fault), want->code);
        return DIFFERENT;
    }
    char indexes[256];
    indexes_of(&verdict, indexes, sizeof(indexes));
    if (fault >= RECORD_NULL_KEY && strcmp(indexes, want->indexes) != 0) {
        print_error("line %" PRIu32 ": records %s, Kafka says %s\n", want->line, indexes,
                    want->indexes);
        return DIFFERENT;
    }
    if (code != 0 || want->stored[0] == '-') return SAME;
    if (!verdict.rebuild) (void)store(world, want, &verdict, text);
    if (strcmp(text, want->stored) == 0) return SAME;
    /* Rebuilding, Kafka makes valid UTF-8 of the keys of headers; we keep their bytes. */
    if (verdict.rebuild && strstr(want->stored, "efbfbd") != NULL) return EXCUSED;
    print_error("line %" PRIu32 ": stored\n%s, Kafka stores\n%s\n", want->line, text, want->stored);
    return DIFFERENT;
}

static void kafka_judges_the_same(void **state)
{
    struct test_world world;
    test_begin(&world);
    const char *path = getenv("DOHLE_JUDGED");
    if (path == NULL) path = JUDGED_FILE;
    FILE *in = fopen(path, "r");
    if (in == NULL) fail_msg("could not open \"%s\"", path);
    char *line = malloc(LINE_BYTES);
    char *text = malloc(LINE_BYTES);
    struct judged want = {0};
    uint32_t counts[3] = {0};
    while (fgets(line, (int)LINE_BYTES, in) != NULL) {
        want.line++;
        if (!parse_line(line, &want)) continue;
        counts[compare(&world, &want, text)]++;
        free(want.bytes);
        arena_reset(&world.request);
    }
    uint32_t cases = counts[SAME] + counts[EXCUSED] + counts[DIFFERENT];
    print_message("%" PRIu32 " cases, %" PRIu32 " of them excused\n", cases, counts[EXCUSED]);
    (void)fclose(in);
    free(line);
    free(text);
    assert_in_range(cases, 400, UINT32_MAX);
    assert_in_range(counts[EXCUSED], 0, cases / 20);
    assert_int_equal(counts[DIFFERENT], 0);
    test_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kafka_judges_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
