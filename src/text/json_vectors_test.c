/* json_vectors_test.c - our JSON against Apache Kafka's own converters, on every golden vector:
 * their bytes give their JSON, their JSON gives their bytes. Made by test/java/vectors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <json-c/json.h>
#include <zlib.h>

#include "sys/memory.h"
#include "text/json.h"

#define VECTORS   "test/golden/vectors/kafka.tsv.gz"
#define LINE_SIZE (8 << 20)

struct line {
    char *message, *version, *variant, *release, *hex, *json;
};

static struct line parse(char *text)
{
    char *parts[6];
    for (int i = 0; i < 6; i++) {
        parts[i] = text;
        text += strcspn(text, "\t\n");
        assert_true(i == 5 || *text == '\t');
        *text++ = '\0';
    }
    return (struct line){parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]};
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

/* The same value? Kafka drops unknown tagged fields; what it drops of records, the vectors have. */
static bool same(json_object *got, json_object *wanted)
{
    enum json_type type = json_object_get_type(wanted);
    if (json_object_get_type(got) != type) return false;
    if (type == json_type_array) {
        size_t count = json_object_array_length(wanted);
        if (json_object_array_length(got) != count) return false;
        for (size_t i = 0; i < count; i++)
            if (!same(json_object_array_get_idx(got, i), json_object_array_get_idx(wanted, i)))
                return false;
        return true;
    }
    if (type != json_type_object) return json_object_equal(got, wanted) != 0;
    json_object_object_foreach(got, name, value)
    {
        json_object *other;
        if (strcmp(name, "_unknownTaggedFields") == 0) continue;
        if (!json_object_object_get_ex(wanted, name, &other)) return false;
        if (!same(value, other)) return false;
    }
    json_object_object_foreach(wanted, wanted_name, unused)
    {
        (void)unused;
        if (!json_object_object_get_ex(got, wanted_name, NULL)) return false;
    }
    return true;
}

static const char *compare_json(struct out *json, const char *wanted_text)
{
    out_char(json, '\0');
    json_object *got = json_tokener_parse(json->text);
    json_object *wanted = json_tokener_parse(wanted_text);
    bool fine = same(got, wanted);
    json_object_put(got);
    json_object_put(wanted);
    return fine ? "" : "the JSON is another";
}

/* Does the JSON, ours or theirs, give the bytes? */
static const char *encodes(struct view json,
                           const struct wire_message *message,
                           int16_t version,
                           struct arena *arena,
                           struct view bytes)
{
    static char said[300];
    struct json_fault fault;
    const struct wire_form *form = wire_form(message, version);
    void *value = json_read(json, message, version, arena, &fault);
    if (value == NULL) {
        snprintf(said, sizeof(said), "not read: %s %s", fault.path, fault.text);
        return said;
    }
    if (wire_size(form, value) != bytes.size) return "encodes to another size";
    uint8_t *again = arena_get(arena, bytes.size + 1);
    (void)wire_encode(form, value, again, NULL, 0, NULL);
    return memcmp(again, bytes.data, bytes.size) == 0 ? "" : "encodes to other bytes";
}

static const char *check(const struct line *line, struct arena *arena, struct view bytes)
{
    const struct wire_message *message = wire_message_by_name(view_of_string(line->message));
    int16_t version = (int16_t)strtol(line->version, NULL, 10);
    struct out json;

    out_init(&json, arena->mem);
    struct json_written written = json_write(&json, wire_form(message, version), bytes);
    struct view text = arena_copy(arena, out_so_far(&json));
    const char *wrong = written.damaged || written.size_bytes != bytes.size ? "not walked" : "";
    if (wrong[0] == '\0') wrong = compare_json(&json, line->json);
    out_free(&json);
    if (wrong[0] == '\0') wrong = encodes(text, message, version, arena, bytes);
    bool whole = strcmp(line->variant, "tagged") != 0; /* Else theirs lacks what it drops. */
    if (wrong[0] == '\0' && whole)
        wrong = encodes(view_of_string(line->json), message, version, arena, bytes);
    return wrong;
}

static void test_vectors(void **state)
{
    gzFile file = gzopen(VECTORS, "rb");
    assert_non_null(file);
    char *text = malloc(LINE_SIZE);
    uint8_t *bytes = malloc(LINE_SIZE);
    uint32_t agree = 0, differ = 0;

    assert_non_null(gzgets(file, text, LINE_SIZE)); /* The head. */
    while (gzgets(file, text, LINE_SIZE) != NULL) {
        struct mem mem;
        struct arena arena;
        memory_init(&mem, 0);
        arena_init(&arena, &mem, 0);
        struct line line = parse(text);
        const char *wrong = check(&line, &arena, view_of(bytes, unhex(line.hex, bytes)));
        if (wrong[0] != '\0')
            print_error("%s %s %s: %s\n", line.message, line.version, line.variant, wrong);
        *(wrong[0] == '\0' ? &agree : &differ) += 1;
        arena_free(&arena);
        assert_int_equal(mem.used_bytes, 0);
    }
    gzclose(file);
    free(text);
    free(bytes);
    print_message("%u vectors agree, %u differ\n", agree, differ);
    assert_int_equal(differ, 0);
    assert_true(agree > 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
