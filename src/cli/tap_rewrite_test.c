/* tap_rewrite_test.c - every version of every answer that names brokers: addresses change, nothing
 * else does, and what cannot be read passes as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cli/tap_rewrite.h"
#include "gen/metadata_response.h"
#include "sys/memory.h"

static bool to_tap(void *context, struct view *host, int32_t *port)
{
    (void)port;
    (*(int *)context)++;
    *host = VIEW("tap.example");
    *port = 4242;
    return true;
}

static bool stays(void *context, struct view *host, int32_t *port)
{
    (void)host;
    (void)port;
    (*(int *)context)++;
    return false;
}

static void test_every_answer_in_every_version(void **state)
{
    struct mem mem;
    struct arena arena;
    uint32_t api_count, kinds = 0;
    const struct wire_api *apis = wire_apis(&api_count);
    (void)state;
    memory_init(&mem, 0);
    arena_init(&arena, &mem, 0);
    for (uint32_t i = 0; i < api_count; i++) {
        const struct wire_message *message = apis[i].response;
        for (int16_t version = message->version_min; version <= message->version_max; version++) {
            struct frame_kind kind = frame_kind_of(message, version);
            struct view frame = frame_sample(&kind, &arena);
            int seen = 0;
            assert_false(frame.null);
            /* The sample has no addresses (port 0): it must come out as it went in. */
            struct view same = tap_rewrite(&kind, frame, &arena, stays, &seen);
            assert_ptr_equal(same.data, frame.data);
            kinds += version == message->version_max && tap_rewrites(&kind);
            arena_reset(&arena);
        }
    }
    assert_int_equal(kinds, 7);
    arena_free(&arena);
}

static struct view metadata_frame(struct frame_kind *kind, int16_t version, struct arena *arena)
{
    struct metadata_response body;
    struct metadata_response_metadata_response_broker brokers[2];
    struct frame_header header = {77, VIEW_NULL};
    wire_defaults(&wire_metadata_response, &body);
    for (int i = 0; i < 2; i++) {
        wire_struct_defaults(&wire_metadata_response_metadata_response_broker_shape, &brokers[i]);
        brokers[i].node_id = i;
        brokers[i].host = VIEW("a");
        brokers[i].port = 9092 + i;
    }
    body.brokers.items = brokers;
    body.brokers.count = 2;
    *kind = frame_kind_of(&wire_metadata_response, version);
    return frame_encode(kind, &header, &body, arena);
}

static void test_metadata(void **state)
{
    struct mem mem;
    struct arena arena;
    (void)state;
    memory_init(&mem, 0);
    arena_init(&arena, &mem, 0);
    for (int16_t version = 0; version <= wire_metadata_response.version_max; version++) {
        struct frame_kind kind;
        struct view frame = metadata_frame(&kind, version, &arena);
        int seen = 0;
        struct view new = tap_rewrite(&kind, frame, &arena, to_tap, &seen);
        assert_int_equal(seen, 2);
        assert_true(frame_is_whole(&kind, new));
        assert_int_equal(new.size, frame.size + 2 * 10); /* "tap.example" for "a", twice. */
        assert_int_equal(load_be32(new.data), new.size - 4);
        assert_int_equal(load_be32(new.data + 4), 77);
        /* Cut anywhere, it passes as it is. */
        for (uint32_t size = 0; size < frame.size; size++) {
            struct view cut = view_of(frame.data, size);
            assert_ptr_equal(tap_rewrite(&kind, cut, &arena, to_tap, &seen).data, cut.data);
        }
        arena_reset(&arena);
    }
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_answer_in_every_version),
        cmocka_unit_test(test_metadata),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
