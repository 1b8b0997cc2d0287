/* node_test.c - frames as nodes: whole, cut at every byte, with flipped bits; problems by place. */
#include "text/frame.h"
#include "text/text_test.h"
#include "text/tree.h"

static void each_sample(void (*check)(const struct frame_kind *, struct view))
{
    uint32_t count;
    const struct wire_message *const *messages = wire_messages(&count);
    for (uint32_t i = 0; i < count; i++)
        for (int16_t v = messages[i]->version_min; v <= messages[i]->version_max; v++) {
            struct frame_kind kind = frame_kind_of(messages[i], v);
            struct view frame = frame_sample(&kind, &arena);
            assert_false(frame.null);
            check(&kind, frame);
            arena_reset(&arena);
        }
}

static struct node_list list_of(const struct frame_kind *kind, struct view frame)
{
    struct node_list list;
    node_list_init(&list, &arena);
    frame_nodes(&list, kind, frame);
    assert_false(list.failed);
    return list;
}

/* Every node lies in its parent, and the leaves follow one another without a gap but for the length
 * prefixes of the values that have children. */
static void check_whole(const struct frame_kind *kind, struct view frame)
{
    struct node_list list = list_of(kind, frame);
    uint32_t at = 0;

    assert_int_equal(list.problem_count, 0);
    assert_int_equal(list.nodes[0].length, frame.size);
    for (uint32_t i = 0; i < list.count; i++) {
        const struct node *node = &list.nodes[i];
        assert_true(node->offset + node->length <= frame.size);
        bool leaf = i + 1 == list.count || list.nodes[i + 1].depth <= node->depth;
        bool bits = strcmp(node->type, "bits") == 0;
        if (!leaf || bits || node->length == 0) continue;
        assert_true(node->offset >= at);
        at = node->offset + node->length;
    }
    uint8_t *parts = arena_get(&arena, frame.size + 1);
    node_paint(&list, parts, frame.size);
    for (uint32_t i = 0; i < frame.size; i++)
        assert_true(parts[i] < NODE_PARTS);
}

static void test_whole(void **state)
{
    each_sample(check_whole);
}

static void check_cuts(const struct frame_kind *kind, struct view frame)
{
    for (uint32_t size = 0; size < frame.size; size++) {
        /* A copy of its own, so that a byte read beyond is seen. */
        uint8_t *copy = malloc(MAX(size, 1u));
        memcpy(copy, frame.data, size);
        struct node_list list = list_of(kind, view_of(copy, size));
        assert_true(node_list_faulty(&list));
        free(copy);
    }
}

static void test_every_cut_is_told(void **state)
{
    each_sample(check_cuts);
}

static void check_flips(const struct frame_kind *kind, struct view frame)
{
    if (kind->version != kind->message->version_max) return;
    uint8_t *copy = malloc(frame.size);
    memcpy(copy, frame.data, frame.size);
    for (uint32_t bit = 0; bit < 8 * frame.size; bit += 3) {
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        struct node_list list = list_of(kind, view_of(copy, frame.size));
        struct out out;
        out_init(&out, &mem);
        tree_print(&out, &list, &(struct tree_style){.about_max = 10});
        tree_problems(&out, &list, "x");
        assert_false(out.failed);
        out_free(&out);
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(copy);
}

static void test_flipped_bits(void **state)
{
    each_sample(check_flips);
}

static void expect_problem(const char *name, int16_t version, struct view frame, const char *wanted)
{
    const struct wire_message *message = wire_message_by_name(view_of_string(name));
    struct frame_kind kind = frame_kind_of(message, version);
    struct node_list list = list_of(&kind, frame);
    struct out out;

    out_init(&out, &mem);
    tree_problems(&out, &list, "f");
    if (!view_is(out_so_far(&out), wanted))
        print_error("said %.*s\n", (int)out.size_bytes, out.text);
    assert_true(view_is(out_so_far(&out), wanted));
    out_free(&out);
    arena_reset(&arena);
}

#define FRAME(...) view_of((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void test_problems_have_their_place(void **state)
{
    expect_problem("HeartbeatResponse", 4,
                   FRAME(0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9),
                   "f: damaged at 0x0000 in size: the frame says 12 bytes, 13 are there\n"
                   "f: damaged at 0x0010: 1 byte is left over\n");
    expect_problem(
        "HeartbeatResponse", 4, FRAME(0, 0, 0, 3, 0, 0, 0),
        "f: damaged at 0x0004 in ResponseHeader.CorrelationId: the value ends behind the "
        "last byte\n");
    expect_problem("HeartbeatResponse", 4,
                   FRAME(0, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 7, 4, 1),
                   "f: damaged at 0x0012 in tag 7: the value ends behind the last byte\n");
    /* Metadata v1 request: the second topic's name is null. */
    expect_problem(
        "MetadataRequest", 1,
        FRAME(0, 0, 0, 19, 0, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 'a', 255, 255),
        "f: damaged at 0x0017 in Topics[1].Name: null, where the schema has none\n");
}

/* One batch with one record {key "k", value "v", header "h" = null}, CRC wrong. */
static void test_records(void **state)
{
    static const uint8_t batch[] = {0, 0, 0, 0, 0,  0, 0, 5, 0, 0,   0, 61,  0, 0, 0,   0, 2, 1, 2,
                                    3, 4, 0, 0, 0,  0, 0, 0, 0, 0,   0, 0,   0, 0, 0,   1, 0, 0, 0,
                                    0, 0, 0, 0, 2,  0, 0, 0, 0, 0,   0, 0,   0, 0, 0,   0, 0, 0, 0,
                                    0, 0, 0, 1, 22, 0, 0, 0, 2, 'k', 2, 'v', 2, 2, 'h', 1};
    struct node_list list;

    node_list_init(&list, &arena);
    struct node_records in = {view_of(batch, sizeof(batch)), 100, 3, "Records"};
    node_records_add(&list, &in);
    assert_string_equal(list.nodes[0].name, "RecordBatch");
    assert_int_equal(list.nodes[0].offset, 100);
    assert_int_equal(list.nodes[0].length, sizeof(batch));
    assert_int_equal(list.nodes[0].depth, 3);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < list.count; i++) {
        const struct node *node = &list.nodes[i];
        if (strcmp(node->name, "key") == 0 || strcmp(node->name, "headerKey") == 0) {
            assert_int_equal(node->part, NODE_RECORD);
            assert_string_equal(node->value, seen == 0 ? "1 byte \"k\"" : "1 byte \"h\"");
            seen++;
        }
        if (strcmp(node->name, "headerValue") == 0) assert_string_equal(node->value, "null");
        if (strcmp(node->type, "Record") == 0) assert_string_equal(node->value, "offset 5");
    }
    assert_int_equal(seen, 2);
    assert_int_equal(list.problem_count, 1);
    assert_string_equal(list.problems[0].path, "Records.RecordBatch[0]");
    assert_int_equal(list.problems[0].offset, 117);
    arena_reset(&arena);
}

/* A batch whose CRC does not hold ends nothing: bytes behind the message are told as well. */
static void test_batch_hides_nothing(void **state)
{
    struct frame_kind kind = frame_kind_of(wire_message_by_name(VIEW("FetchResponse")), 12);
    struct view sample = frame_sample(&kind, &arena);
    uint8_t *frame = arena_get(&arena, sample.size + 1);
    memcpy(frame, sample.data, sample.size);
    store_be32(frame, sample.size - 3);
    for (uint32_t i = 0; i + 61 <= sample.size; i++)
        if (memcmp(frame + i, wire_sample_records().data, 61) == 0) frame[i + 30] = 1;
    struct node_list list = list_of(&kind, view_of(frame, sample.size + 1));
    assert_int_equal(list.problem_count, 2);
    assert_true(list.problems[0].in_records);
    assert_string_equal(list.problems[0].path, "Responses[0].Partitions[0].Records.RecordBatch[0]");
    assert_string_equal(list.problems[1].text, "1 byte is left over");
    arena_reset(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),        cmocka_unit_test(test_every_cut_is_told),
        cmocka_unit_test(test_flipped_bits), cmocka_unit_test(test_problems_have_their_place),
        cmocka_unit_test(test_records),      cmocka_unit_test(test_batch_hides_nothing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
