/* json_test.c - every message round through JSON; bad JSON told with its path. */
#include "text/json.h"
#include "text/text_test.h"

/* The message's bytes, written as JSON, read back and encoded: the same bytes. */
static void check_round(const struct wire_message *message, int16_t version, struct view bytes)
{
    const struct wire_form *form = wire_form(message, version);
    struct json_fault fault;
    struct out json;

    out_init(&json, &mem);
    struct json_written written = json_write(&json, form, bytes);
    assert_false(written.damaged);
    assert_int_equal(written.size_bytes, bytes.size);
    void *value = json_read(out_so_far(&json), message, version, &arena, &fault);
    if (value == NULL)
        print_error("%s v%d: %s %s\n%.*s\n", message->name, version, fault.path, fault.text,
                    (int)json.size_bytes, json.text);
    assert_non_null(value);
    size_t size = wire_size(form, value);
    uint8_t *back = arena_get(&arena, size + 1);
    assert_int_equal(wire_encode(form, value, back, NULL, 0, NULL), size);
    assert_true(view_equal(view_of(back, (uint32_t)size), bytes));
    out_free(&json);
}

static void test_every_sample(void **state)
{
    uint32_t count;
    const struct wire_message *const *messages = wire_messages(&count);
    for (uint32_t i = 0; i < count; i++)
        for (int16_t v = messages[i]->version_min; v <= messages[i]->version_max; v++) {
            const struct wire_form *form = wire_form(messages[i], v);
            void *value = arena_get(&arena, messages[i]->size_bytes + 1);
            assert_true(wire_sample(form, &arena, value));
            size_t size = wire_size(form, value);
            uint8_t *bytes = arena_get(&arena, size + 1);
            (void)wire_encode(form, value, bytes, NULL, 0, NULL);
            check_round(messages[i], v, view_of(bytes, (uint32_t)size));
            arena_reset(&arena);
        }
}

static const struct wire_message *named(const char *name)
{
    const struct wire_message *message = wire_message_by_name(view_of_string(name));
    assert_non_null(message);
    return message;
}

static void expect_json(const char *name, int16_t version, struct view bytes, const char *wanted)
{
    struct out json;
    out_init(&json, &mem);
    (void)json_write(&json, wire_form(named(name), version), bytes);
    if (!view_is(out_so_far(&json), wanted))
        print_error("got %.*s\n", (int)json.size_bytes, json.text);
    assert_true(view_is(out_so_far(&json), wanted));
    out_free(&json);
}

static void test_unknown_tags_survive(void **state)
{
    static const uint8_t bytes[] = {2, 'g', 0, 0, 0, 7, 1, 0, 2, 5, 3, 1, 2, 3, 99, 0};
    struct view view = view_of(bytes, sizeof(bytes));
    expect_json(
        "HeartbeatRequest", 4, view,
        "{\"groupId\":\"g\",\"generationId\":7,\"memberId\":\"\",\"groupInstanceId\":null,"
        "\"_unknownTaggedFields\":[{\"tag\":5,\"data\":\"AQID\"},{\"tag\":99,\"data\":\"\"}]}");
    check_round(named("HeartbeatRequest"), 4, view);
}

static void test_damage_stays_well_formed(void **state)
{
    static const uint8_t bytes[] = {2, 'g', 0, 0};
    expect_json("HeartbeatRequest", 4, view_of(bytes, 4), "{\"groupId\":\"g\"}");
    /* Metadata v1, topics: two of them, the second cut. */
    static const uint8_t topics[] = {0, 0, 0, 2, 0, 1, 'a', 0, 9, 'b'};
    expect_json("MetadataRequest", 1, view_of(topics, 10), "{\"topics\":[{\"name\":\"a\"},{}]}");
}

static void expect_fault(const char *name, int16_t version, const char *json, const char *wanted)
{
    struct json_fault fault;
    char said[300];

    void *value = json_read(view_of_string(json), named(name), version, &arena, &fault);
    assert_null(value);
    snprintf(said, sizeof(said), "%s|%s|%s", fault.path, fault.text,
             fault.hint == NULL ? "" : fault.hint);
    if (strcmp(said, wanted) != 0) print_error("%s: said %s\n", json, said);
    assert_string_equal(said, wanted);
}

static void test_bad_json(void **state)
{
    const char *name = "HeartbeatRequest";
    expect_fault(name, 4, "{\"groupId\":", "|is no JSON: line 1: unexpected end of data|");
    expect_fault(name, 4, "{} x", "|has more behind its JSON value|");
    expect_fault(name, 4, "", "|is no JSON: line 1: unexpected end of data|");
    expect_fault(name, 4, "null", "|is no object|");
    expect_fault(name, 4, "{\"gruopId\":\"\"}", "gruopId|is no field of HeartbeatRequest|groupId");
    expect_fault(name, 4, "{\"groupId\":null}", "groupId|may not be null in version 4|");
    expect_fault(name, 4, "{\"groupId\":7}", "groupId|is no string|");
    expect_fault(name, 4, "{\"generationId\":2147483648}",
                 "generationId|is no number from -2147483648 to 2147483647|");
    expect_fault(name, 4, "{\"generationId\":1.5}",
                 "generationId|is no number from -2147483648 to 2147483647|");
    expect_fault(name, 2, "{\"groupInstanceId\":\"i\"}", "GroupInstanceId|is not in version 2|");
    expect_fault(name, 3, "{\"_unknownTaggedFields\":[]}",
                 "_unknownTaggedFields|version 3 has no tagged fields|");
    expect_fault("MetadataRequest", 9, "{\"topics\":[{\"name\":\"a\"},{\"name\":[]}]}",
                 "topics[1].name|is no string|");
    expect_fault("MetadataRequest", 9, "{\"topics\":[null]}", "topics[0]|may not be null|");
    expect_fault("DescribeTopicPartitionsResponse", 0, "{\"topics\":[{\"topicId\":\"AAAA\"}]}",
                 "topics[0].topicId|is no UUID of 22 characters of base64|");
    expect_fault("FetchRequest", 18, "{\"_unknownTaggedFields\":[{\"tag\":0,\"data\":\"\"}]}",
                 "_unknownTaggedFields[0]|is a tag that the schema knows|");
    expect_fault("SaslAuthenticateRequest", 2, "{\"authBytes\":\"a%b\"}",
                 "authBytes|is no base64|");
    arena_reset(&arena);
}

static void test_left_out_is_default(void **state)
{
    struct json_fault fault;
    const struct wire_message *message = named("FetchRequest");
    void *value = json_read(VIEW("{}"), message, 18, &arena, &fault);
    uint8_t wanted[512], got[512];
    void *defaults = arena_get(&arena, message->size_bytes);

    assert_non_null(value);
    wire_defaults(message, defaults);
    const struct wire_form *form = wire_form(message, 18);
    size_t size = wire_encode(form, defaults, wanted, NULL, 0, NULL);
    assert_int_equal(wire_encode(form, value, got, NULL, 0, NULL), size);
    assert_memory_equal(got, wanted, size);
    arena_reset(&arena);
}

static void test_pretty(void **state)
{
    struct out out;
    out_init(&out, &mem);
    json_pretty(&out, VIEW("{\"a\":[1,2],\"b\":{\"c\":\"}\\\"\"},\"d\":[]}"));
    assert_true(view_is(out_so_far(&out),
                        "{\n  \"a\": [1, 2],\n  \"b\": {\"c\": \"}\\\"\"},\n  \"d\": []\n}\n"));
    out_reset(&out);
    json_pretty(&out, VIEW("{}"));
    assert_true(view_is(out_so_far(&out), "{}\n"));
    out_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_sample),
        cmocka_unit_test(test_unknown_tags_survive),
        cmocka_unit_test(test_damage_stays_well_formed),
        cmocka_unit_test(test_bad_json),
        cmocka_unit_test(test_left_out_is_default),
        cmocka_unit_test(test_pretty),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
