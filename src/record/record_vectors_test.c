/* record_vectors_test.c - batches written by Apache Kafka's own classes are read as Kafka reads
 * them (test/golden/records, made by test/records/WriteVectors.java), and no cut or flipped
 * bit of them does harm. */
#include <dirent.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "record/batch_build.h"
#include "record/control.h"
#include "record/crc.h"
#include "record/legacy.h"
#include "record/record_test.h"
#include "record/record_walk.h"

#define FOLDER     "test/golden/records/" /* DOHLE_VECTORS names another. */
#define LINE_BYTES 1024u
#define FIELDS_MAX 32u
#define FILE_MAX   (64u * 1024u)

struct file {
    char name[128];
    uint8_t *bytes;
    struct view view;
};

static const char *folder(void)
{
    const char *other = getenv("DOHLE_VECTORS");
    return other != NULL ? other : FOLDER;
}

static void load(struct file *file, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s%s.bin", folder(), name);
    (void)snprintf(file->name, sizeof(file->name), "%s", name);
    FILE *in = fopen(path, "rb");
    if (in == NULL) fail_msg("could not open \"%s\"", path);
    file->bytes = malloc(FILE_MAX);
    size_t size = fread(file->bytes, 1, FILE_MAX, in);
    (void)fclose(in);
    assert_in_range(size, 1, FILE_MAX - 1);
    file->view = view_of(file->bytes, (uint32_t)size);
}

static void drop(struct file *file)
{
    free(file->bytes);
    file->bytes = NULL;
}

/* The words of a line between tabs. */
static uint32_t split(char *line, char **fields)
{
    uint32_t count = 0;
    line[strcspn(line, "\n")] = '\0';
    while (line != NULL && count < FIELDS_MAX)
        fields[count++] = strsep(&line, "\t");
    return count;
}

static void expect_number(const struct file *file, const char *what, int64_t got, const char *want)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%" PRId64, got);
    if (strcmp(text, want) != 0) fail_msg("%s: %s is %s, not %s", file->name, what, text, want);
}

static void expect_text(const struct file *file,
                        const char *what,
                        const char *got,
                        const char *want)
{
    if (strcmp(got, want) != 0) fail_msg("%s: %s is %s, not %s", file->name, what, got, want);
}

static void expect_bytes(const struct file *file, struct view got, const char *want)
{
    char text[32] = "-";
    if (!got.null)
        (void)snprintf(text, sizeof(text), "%" PRIu32 ":%08" PRIx32, got.size,
                       crc_32c(got.data, got.size));
    expect_text(file, "bytes", text, want);
}

/* A batch or message being compared with its lines. */
struct reading {
    struct file file;
    struct batch_scan scan;
    struct batch_header header;
    struct view batch;
    struct record_iter records;
    struct legacy_iter messages;
    bool open;
};

static void close_batch(struct reading *reading)
{
    struct record record;
    if (!reading->open) return;
    if (reading->header.magic == 2) {
        assert_false(record_next(&reading->records, &record));
        assert_int_equal(record_iter_end(&reading->records), RECORD_OK);
    } else {
        assert_false(legacy_next(&reading->messages, &record));
        assert_int_equal(legacy_iter_end(&reading->messages), RECORD_OK);
    }
    reading->open = false;
}

/* Fields: batch name magic base last size codec type transactional control max pid epoch first last
 * leader-epoch horizon. Of a compressed message the base is not in its header. */
static void compare_batch(struct reading *reading, struct compress_work *work, char **want)
{
    close_batch(reading);
    if (strcmp(reading->file.name, want[1]) != 0) {
        drop(&reading->file);
        load(&reading->file, want[1]);
        reading->scan = batch_scan_of(reading->file.view);
    }
    struct batch_header *header = &reading->header;
    const struct file *file = &reading->file;
    assert_true(batch_next(&reading->scan, header, &reading->batch));
    assert_int_equal(batch_check(reading->batch, BATCH_CHECK_CRC | BATCH_CHECK_COUNTS, header),
                     RECORD_OK);
    expect_number(file, "magic", header->magic, want[2]);
    if (header->magic == 2) expect_number(file, "base offset", header->base_offset, want[3]);
    expect_number(file, "last offset", batch_last_offset(header), want[4]);
    expect_number(file, "size", reading->batch.size, want[5]);
    expect_text(file, "codec", compress_name((enum codec)batch_codec(header)), want[6]);
    bool append_time = (header->attributes & BATCH_APPEND_TIME) != 0;
    const char *type = append_time ? "LogAppendTime" : "CreateTime";
    expect_text(file, "type", header->magic == 0 ? "NoTimestampType" : type, want[7]);
    bool transactional = (header->attributes & BATCH_TRANSACTIONAL) != 0;
    expect_text(file, "transactional", transactional ? "true" : "false", want[8]);
    bool control = (header->attributes & BATCH_CONTROL) != 0;
    expect_text(file, "control", control ? "true" : "false", want[9]);
    expect_number(file, "max timestamp", header->max_timestamp, want[10]);
    expect_number(file, "producer id", header->producer_id, want[11]);
    expect_number(file, "producer epoch", header->producer_epoch, want[12]);
    expect_number(file, "base sequence", header->base_sequence, want[13]);
    expect_number(file, "last sequence", batch_last_sequence(header), want[14]);
    expect_number(file, "leader epoch", header->leader_epoch, want[15]);
    bool horizon = (header->attributes & BATCH_DELETE_HORIZON) != 0;
    expect_number(file, "horizon", horizon ? header->base_timestamp : -1, want[16]);
    if (header->magic == 2)
        record_iter_begin(&reading->records, work, header, reading->batch);
    else
        legacy_iter_begin(&reading->messages, work, reading->batch);
    reading->open = true;
}

/* Fields: record name offset timestamp sequence key value, then headers or the control type. */
static void compare_record(struct reading *reading, char **want, uint32_t count)
{
    const struct file *file = &reading->file;
    struct record record;
    bool there = reading->header.magic == 2 ? record_next(&reading->records, &record)
                                            : legacy_next(&reading->messages, &record);
    if (!there) fail_msg("%s: offset %s is missing", file->name, want[2]);
    expect_number(file, "offset", record.offset, want[2]);
    expect_number(file, "timestamp", record.timestamp_ms, want[3]);
    expect_number(file, "sequence", record.sequence, want[4]);
    expect_bytes(file, record.key, want[5]);
    expect_bytes(file, record.value, want[6]);
    if ((reading->header.attributes & BATCH_CONTROL) != 0) {
        enum control_type type;
        assert_true(control_key_parse(record.key, &type));
        expect_text(file, "control type", control_name(type), want[7]);
        return;
    }
    uint32_t at = 0;
    struct record_header header;
    uint32_t field = 7;
    for (; record_header_next(&record, &at, &header); field += 2) {
        assert_true(field + 1 < count);
        expect_bytes(file, header.key, want[field]);
        expect_bytes(file, header.value, want[field + 1]);
    }
    assert_int_equal(field, count);
}

static void kafka_reads_the_same(void **state)
{
    struct test_world world;
    test_begin(&world);
    struct reading reading = {0};
    char path[512];
    (void)snprintf(path, sizeof(path), "%sindex.tsv", folder());
    FILE *index = fopen(path, "r");
    if (index == NULL) fail_msg("could not open \"%s\"", path);
    char line[LINE_BYTES];
    uint32_t records = 0;
    while (fgets(line, sizeof(line), index) != NULL) {
        char *fields[FIELDS_MAX] = {0};
        uint32_t count = split(line, fields);
        if (strcmp(fields[0], "batch") == 0) {
            assert_int_equal(count, 17);
            compare_batch(&reading, &world.work, fields);
        } else if (strcmp(fields[0], "record") == 0) {
            compare_record(&reading, fields, count);
            records++;
        }
    }
    close_batch(&reading);
    drop(&reading.file);
    (void)fclose(index);
    assert_in_range(records, 200, 10000);
    test_end(&world);
}

/* ---- every file of the folder --------------------------------------------------------------- */

typedef void each(struct test_world *world, struct file *file);

static void for_each_file(each *call, uint32_t size_max)
{
    struct test_world world;
    test_begin(&world);
    DIR *directory = opendir(folder());
    assert_non_null(directory);
    uint32_t count = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char *dot = strstr(entry->d_name, ".bin");
        if (dot == NULL) continue;
        *dot = '\0';
        struct file file;
        load(&file, entry->d_name);
        if (file.view.size <= size_max) {
            call(&world, &file);
            count++;
        }
        drop(&file);
    }
    (void)closedir(directory);
    assert_in_range(count, 20, 1000);
    test_end(&world);
}

/* Batch of `batch`'s records with another codec, made by us. */
static struct view recompress(struct test_world *world,
                              struct view batch,
                              enum codec codec,
                              int32_t level,
                              struct sink *out)
{
    struct batch_verdict verdict = {.codec = codec, .level = level};
    assert_int_equal(batch_check(batch, BATCH_CHECK_CRC, &verdict.header), RECORD_OK);
    verdict.append_time = (verdict.header.attributes & BATCH_APPEND_TIME) != 0;
    verdict.max_timestamp_ms = verdict.header.max_timestamp;
    sink_reset(out);
    assert_int_equal(batch_recompress(&world->work, &verdict, batch, out), RECORD_OK);
    struct batch_header header;
    assert_int_equal(batch_check(sink_view(out), BATCH_CHECK_CRC | BATCH_CHECK_COUNTS, &header),
                     RECORD_OK);
    assert_int_equal(batch_codec(&header), codec);
    return sink_view(out);
}

/* To each codec at each kind of level and back to none: the plain batches must be equal. */
static void recompress_all_ways(struct test_world *world, struct file *file)
{
    static const struct {
        enum codec codec;
        int32_t level;
    } ways[] = {
        {CODEC_NONE,   COMPRESS_LEVEL_DEFAULT},
        {CODEC_GZIP,   COMPRESS_LEVEL_DEFAULT},
        {CODEC_GZIP,   1                     },
        {CODEC_GZIP,   9                     },
        {CODEC_SNAPPY, COMPRESS_LEVEL_DEFAULT},
        {CODEC_LZ4,    COMPRESS_LEVEL_DEFAULT},
        {CODEC_LZ4,    1                     },
        {CODEC_LZ4,    17                    },
        {CODEC_ZSTD,   COMPRESS_LEVEL_DEFAULT},
        {CODEC_ZSTD,   -131072               },
        {CODEC_ZSTD,   22                    },
    };
    struct batch_header header;
    assert_int_equal(batch_header_load(file->view, &header), RECORD_OK);
    if (header.magic < 2) return;
    struct sink plain, other, back;
    sink_init(&plain, &world->mem, 1 << 20);
    sink_init(&other, &world->mem, 1 << 20);
    sink_init(&back, &world->mem, 1 << 20);
    struct view first = recompress(world, file->view, CODEC_NONE, COMPRESS_LEVEL_DEFAULT, &plain);
    for (uint32_t i = 0; i < ARRAY_SIZE(ways); i++) {
        struct view made = recompress(world, first, ways[i].codec, ways[i].level, &other);
        struct view again = recompress(world, made, CODEC_NONE, COMPRESS_LEVEL_DEFAULT, &back);
        assert_true(view_equal(first, again));
    }
    sink_free(&plain);
    sink_free(&other);
    sink_free(&back);
}

static void recompression(void **state)
{
    for_each_file(recompress_all_ways, FILE_MAX);
}

/* ---- the walk ------------------------------------------------------------------------------- */

/* Checks that the fields follow one another without a gap, in each of the two spaces of offsets. */
struct gapless {
    struct record_visitor visitor;
    uint64_t outer_end;
    uint64_t inner_end;
    uint32_t depth;
    uint32_t fields;
    uint32_t faults;
    uint32_t oddities;
    uint64_t size;
};

static bool visit(struct record_visitor *visitor, const struct record_walk_event *event)
{
    struct gapless *seen = container_of(visitor, struct gapless, visitor);
    uint64_t *end = event->inflated ? &seen->inner_end : &seen->outer_end;
    switch (event->kind) {
    case RECORD_WALK_BEGIN: seen->depth++; break;
    case RECORD_WALK_END:
        assert_true(seen->depth > 0);
        seen->depth--;
        break;
    case RECORD_WALK_FAULT: seen->faults++; return true;
    case RECORD_WALK_ODDITY: seen->oddities++; return true;
    default: break;
    }
    if (event->kind == RECORD_WALK_BEGIN && strcmp(event->name, "records") == 0) {
        seen->inner_end = 0;
        seen->outer_end = event->offset;
        return true;
    }
    if (event->kind != RECORD_WALK_NUMBER && event->kind != RECORD_WALK_BYTES) return true;
    seen->fields++;
    assert_non_null(event->name);
    assert_non_null(event->type);
    if (strcmp(event->type, "bits") == 0 || strcmp(event->name, "controlType") == 0) return true;
    if (seen->faults == 0 && seen->size == 0) assert_int_equal(event->offset, *end);
    *end = event->offset + event->size;
    return true;
}

static void walk_without_gap(struct test_world *world, struct file *file)
{
    struct batch_header header;
    assert_int_equal(batch_header_load(file->view, &header), RECORD_OK);
    struct gapless seen = {.visitor = {visit}, .size = header.magic < 2};
    assert_int_equal(record_walk(&world->work, file->view, &seen.visitor), RECORD_OK);
    assert_int_equal(seen.depth, 0);
    assert_int_equal(seen.faults, 0);
    assert_int_equal(seen.oddities, 0);
    if (header.magic == 2 && batch_codec(&header) == CODEC_NONE)
        assert_int_equal(seen.outer_end, file->view.size);
    assert_true(seen.fields >= (header.magic == 2 ? 25u : 7u));
}

static void walking(void **state)
{
    for_each_file(walk_without_gap, FILE_MAX);
}

/* ---- harm ----------------------------------------------------------------------------------- */

/* Everything that reads, on bytes that may be broken. `fix`: the CRC is made right first. */
static void read_all(struct test_world *world, struct view bytes, bool fix)
{
    uint8_t *exact = malloc(bytes.size + 1);
    memcpy(exact, bytes.data, bytes.size);
    struct batch_header header;
    struct view whole = view_of(exact, bytes.size);
    if (batch_check(whole, 0, &header) == RECORD_OK && fix && header.magic == 2) {
        uint32_t size = batch_size(&header) - BATCH_AT_ATTRIBUTES;
        store_be32(exact + BATCH_AT_CRC, crc_32c(exact + BATCH_AT_ATTRIBUTES, size));
    }
    struct batch_rules rules = {.produce_version = 13,
                                .message_bytes_max = UINT32_MAX,
                                .codec = BATCH_CODEC_PRODUCER,
                                .before_max_ms = INT64_MAX,
                                .after_max_ms = INT64_MAX};
    struct batch_verdict verdict;
    struct record_spot spot;
    (void)batch_validate(&world->work, &world->request, &rules, whole, &verdict);
    enum record_fault fault = record_find_time(&world->work, whole, INT64_MAX, 0, &spot);
    assert_true(fault < RECORD_FAULT_COUNT);
    struct gapless seen = {.visitor = {visit}, .size = 1};
    (void)record_walk(&world->work, whole, &seen.visitor);
    struct sink out;
    sink_init(&out, &world->mem, 1 << 20);
    (void)legacy_upgrade(&world->work, &rules, whole, &out, &verdict);
    sink_reset(&out);
    fault = legacy_downgrade(&world->work, whole, 0, 0, &out);
    assert_true(fault < RECORD_FAULT_COUNT);
    sink_free(&out);
    arena_reset(&world->request);
    free(exact);
    assert_true(world->mem.used_bytes <= COMPRESS_WORK_MAX);
}

static void cut_everywhere(struct test_world *world, struct file *file)
{
    for (uint32_t size = 0; size < file->view.size; size++) {
        read_all(world, view_of(file->bytes, size), false);
        if (size < BATCH_HEADER_BYTES) continue;
        /* The same with a length that says so, as if it had been produced like that. */
        uint8_t length[4];
        memcpy(length, file->bytes + BATCH_AT_LENGTH, sizeof(length));
        store_be32(file->bytes + BATCH_AT_LENGTH, size - BATCH_FRAME_BYTES);
        read_all(world, view_of(file->bytes, size), true);
        memcpy(file->bytes + BATCH_AT_LENGTH, length, sizeof(length));
    }
}

static void flip_everywhere(struct test_world *world, struct file *file)
{
    for (uint32_t bit = 0; bit < file->view.size * 8; bit++) {
        file->bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        read_all(world, file->view, true);
        file->bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
}

static void cuts(void **state)
{
    for_each_file(cut_everywhere, 500);
}

static void flips(void **state)
{
    for_each_file(flip_everywhere, 360);
}

/* A flip anywhere under the CRC is seen by it. */
static void flip_under_the_crc(struct test_world *world, struct file *file)
{
    struct batch_header header;
    uint32_t size = (uint32_t)batch_frame_size(file->view);
    for (uint32_t bit = 0; bit < size * 8; bit++) {
        uint32_t byte = bit / 8;
        file->bytes[byte] ^= (uint8_t)(1u << (bit % 8));
        bool covered = file->bytes[BATCH_AT_MAGIC] == 2 ? byte >= BATCH_AT_CRC : byte >= 12;
        enum record_fault fault = batch_check(file->view, BATCH_CHECK_CRC, &header);
        if (covered && byte != BATCH_AT_MAGIC) assert_int_equal(fault, RECORD_CRC);
        file->bytes[byte] ^= (uint8_t)(1u << (bit % 8));
    }
}

static void crc_sees_flips(void **state)
{
    for_each_file(flip_under_the_crc, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kafka_reads_the_same),
        cmocka_unit_test(recompression),
        cmocka_unit_test(walking),
        cmocka_unit_test(cuts),
        cmocka_unit_test(flips),
        cmocka_unit_test(crc_sees_flips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
