/* vectors_test.c - what Apache Kafka's own classes encode and what they accept, made by
 * test/java/vectors. Every message, version and variant is decoded and encodes to the same bytes;
 * damaged bytes are refused, or read to the same place, as Kafka's readers do. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>
#include <zlib.h>

#include "sys/memory.h"
#include "wire/walk.h"

#define VECTORS   "test/golden/vectors/kafka.tsv.gz"
#define VERDICTS  "test/golden/vectors/verdicts.tsv.gz"
#define LINE_SIZE (8 << 20)

struct line {
    const char *message, *variant, *release, *hex;
    int16_t version;
};

/* The next part of a line that is divided by tabs. */
static char *part(char **rest)
{
    char *start = *rest;
    char *end = strpbrk(start, "\t\n");
    assert_non_null(end);
    *end = '\0';
    *rest = end + 1;
    return start;
}

static struct line parse(char *text)
{
    struct line line;
    line.message = part(&text);
    line.version = (int16_t)strtol(part(&text), NULL, 10);
    line.variant = part(&text);
    line.release = part(&text);
    line.hex = part(&text);
    return line;
}

static uint32_t unhex(const char *hex, uint8_t *out)
{
    uint32_t size = 0;
    for (; hex[0] != '\0'; hex += 2) {
        char pair[] = {hex[0], hex[1], '\0'};
        out[size++] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return size;
}

/* Empty: it agrees; else what is wrong. */
static const char *compare(const struct line *line, struct arena *arena, struct view bytes)
{
    const struct wire_message *message = wire_message_by_name(view_of_string(line->message));
    if (message == NULL) return "no such message";
    const struct wire_form *form = wire_form(message, line->version);
    if (form == NULL) return "no such version";

    void *value = arena_get(arena, message->size_bytes);
    assert_non_null(value);
    memset(value, 0xa5, message->size_bytes);
    struct reader in = reader_of(bytes);
    if (!wire_decode(&in, form, arena, value)) return "not decoded";
    if (reader_left(&in) != 0) return "bytes are left over";
    if (in.oddities != 0) return "has an oddity";
    if (wire_unsupported(form, value) != NULL) return "a field is said not to be supported";

    if (wire_size(form, value) != bytes.size) return "the size is another";
    uint8_t *again = arena_get(arena, bytes.size + 1);
    if (wire_encode(form, value, again, NULL, 0, NULL) != bytes.size) return "encodes longer";
    return memcmp(again, bytes.data, bytes.size) == 0 ? "" : "encodes to other bytes";
}

/* A value that was never on the wire: wire_defaults is Kafka's new instance. */
static const char *compare_defaults(const struct line *line, struct arena *arena, struct view bytes)
{
    const struct wire_message *message = wire_message_by_name(view_of_string(line->message));
    const struct wire_form *form = wire_form(message, line->version);
    void *value = arena_get(arena, message->size_bytes);
    wire_defaults(message, value);
    if (wire_unsupported(form, value) != NULL) return "the default of a field is not supported";
    if (wire_size(form, value) != bytes.size) return "the defaults have another size";
    uint8_t *own = arena_get(arena, bytes.size + 1);
    (void)wire_encode(form, value, own, NULL, 0, NULL);
    return memcmp(own, bytes.data, bytes.size) == 0 ? "" : "the defaults are other bytes";
}

static uint32_t versions_known(void)
{
    uint32_t count, versions = 0;
    const struct wire_message *const *messages = wire_messages(&count);
    for (uint32_t i = 0; i < count; i++)
        versions += (uint32_t)(messages[i]->version_max - messages[i]->version_min + 1);
    return versions;
}

static void test_vectors(void **state)
{
    gzFile file = gzopen(VECTORS, "rb");
    assert_non_null(file);
    char *text = malloc(LINE_SIZE);
    uint8_t *bytes = malloc(LINE_SIZE);
    assert_non_null(gzgets(file, text, LINE_SIZE)); /* The head. */
    uint32_t agree = 0, differ = 0, versions = 0;
    while (gzgets(file, text, LINE_SIZE) != NULL) {
        struct mem mem;
        memory_init(&mem, 0);
        struct arena arena;
        arena_init(&arena, &mem, 0);
        struct line line = parse(text);
        if (strcmp(line.variant, "defaults") == 0) versions++;
        uint32_t size = unhex(line.hex, bytes);
        const char *wrong = compare(&line, &arena, view_of(bytes, size));
        if (wrong[0] == '\0' && strcmp(line.variant, "defaults") == 0)
            wrong = compare_defaults(&line, &arena, view_of(bytes, size));
        if (wrong[0] != '\0') {
            print_error("%s %d %s (%s): %s\n", line.message, line.version, line.variant,
                        line.release, wrong);
            differ++;
        } else {
            agree++;
        }
        arena_free(&arena);
    }
    gzclose(file);
    free(text);
    free(bytes);
    print_message("%u vectors agree, %u differ\n", agree, differ);
    assert_int_equal(differ, 0);
    assert_int_equal(versions, versions_known()); /* None is left out. */
}

/* Oddities that a serving reader counts too; it does not look at booleans. */
static void count_oddities(void *context, const struct wire_event *event)
{
    uint32_t *count = context;
    if (event->kind == WIRE_EVENT_ODDITY && event->oddity != WIRE_ODD_BOOL) (*count)++;
}

/* '0' refused, '1' read, '2' read with bytes left over. The walk must say the same. */
static char verdict(const struct wire_form *form, struct arena *arena, struct view bytes)
{
    void *value = arena_get(arena, wire_form_shape(form)->size_bytes);
    struct reader in = reader_of(bytes), walked = in;
    char result = !wire_decode(&in, form, arena, value) ? '0' : reader_left(&in) == 0 ? '1' : '2';
    uint32_t oddities = 0;
    struct wire_visitor visitor = {count_oddities, &oddities};
    bool walks = wire_walk(&walked, form, &visitor);
    arena_reset(arena);
    if (in.fault == READER_MEMORY) return result;
    assert_int_equal(walks, result != '0');
    if (walks) assert_ptr_equal(walked.at, in.at);
    if (walks) assert_int_equal(oddities, in.oddities);
    return result;
}

/* How many of a line's verdicts are another than ours. */
static uint32_t compare_flips(const struct wire_form *form,
                              struct arena *arena,
                              struct view sound,
                              const char *verdicts)
{
    uint32_t differ = 0;
    uint8_t *bytes = malloc(sound.size + 1);
    memcpy(bytes, sound.data, sound.size);
    assert_int_equal(strlen(verdicts), sound.size * 8);
    for (uint32_t bit = 0; bit < sound.size * 8; bit++) {
        uint8_t mask = (uint8_t)(1u << (bit % 8));
        bytes[bit / 8] ^= mask;
        char own = verdict(form, arena, view_of(bytes, sound.size));
        if (own != verdicts[bit] && differ++ == 0)
            print_error("  bit %u: Kafka says %c, we say %c\n", bit, verdicts[bit], own);
        bytes[bit / 8] ^= mask;
    }
    free(bytes);
    return differ;
}

/* The bytes of a vector. The files have the same order, so one pass over both is enough. */
static struct view find_vector(gzFile file,
                               const char *message,
                               int16_t version,
                               const char *variant)
{
    static char text[LINE_SIZE];
    static uint8_t bytes[LINE_SIZE / 2];
    while (gzgets(file, text, LINE_SIZE) != NULL) {
        if (text[0] == '#') continue;
        struct line line = parse(text);
        if (strcmp(line.message, message) == 0 && line.version == version &&
            strcmp(line.variant, variant) == 0)
            return view_of(bytes, unhex(line.hex, bytes));
    }
    fail_msg("no vector %s %d %s", message, version, variant);
    return VIEW_NULL;
}

static void test_w9_to_w20_verdicts(void **state)
{
    gzFile file = gzopen(VERDICTS, "rb"), vectors = gzopen(VECTORS, "rb");
    assert_non_null(file);
    assert_non_null(vectors);
    char *text = malloc(LINE_SIZE);
    uint8_t *bytes = malloc(LINE_SIZE);
    struct mem mem;
    memory_init(&mem, 0);
    struct arena arena;
    arena_init(&arena, &mem, 0);
    uint32_t differ = 0, flips = 0, inputs = 0;
    assert_non_null(gzgets(file, text, LINE_SIZE)); /* The head. */
    while (gzgets(file, text, LINE_SIZE) != NULL) {
        char *rest = text;
        const char *message = part(&rest);
        int16_t version = (int16_t)strtol(part(&rest), NULL, 10);
        const char *input = part(&rest), *verdicts = part(&rest);
        const struct wire_form *form =
            wire_form(wire_message_by_name(view_of_string(message)), version);
        uint32_t before = differ;
        if (strcmp(input, "full") == 0 || strcmp(input, "tagged") == 0) {
            differ += compare_flips(form, &arena, find_vector(vectors, message, version, input),
                                    verdicts);
            flips += (uint32_t)strlen(verdicts);
        } else {
            char own = verdict(form, &arena, view_of(bytes, unhex(input, bytes)));
            if (own != verdicts[0]) {
                print_error("  %s: Kafka says %c, we say %c\n", part(&rest), verdicts[0], own);
                differ++;
            }
            inputs++;
        }
        if (differ != before) print_error("%s %d %.60s\n", message, version, input);
    }
    arena_free(&arena);
    gzclose(file);
    gzclose(vectors);
    free(text);
    free(bytes);
    print_message("%u flips and %u inputs, %u differ\n", flips, inputs, differ);
    assert_int_equal(differ, 0);
    assert_true(flips > 500000 && inputs > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_w9_to_w20_verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
