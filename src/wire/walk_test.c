/* walk_test.c - the walk covers every byte once, in order, and tells faults with their field. */
#include <stdarg.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#include "sys/memory.h"
#include "wire/walk.h"

struct seen {
    uint32_t at; /* Bytes accounted for: values and prefixes, in order. */
    uint32_t depth;
    uint32_t oddities;
    const struct wire_field *fault_field;
    uint32_t fault_offset;
};

static void see(void *context, const struct wire_event *event)
{
    struct seen *seen = context;
    assert_int_equal(event->depth, seen->depth - (event->kind == WIRE_EVENT_LEAVE ? 1 : 0));
    switch (event->kind) {
    case WIRE_EVENT_VALUE:
        assert_int_equal(event->offset, seen->at);
        seen->at += event->length;
        break;
    case WIRE_EVENT_ENTER:
    case WIRE_EVENT_TAGS:
    case WIRE_EVENT_TAG:
        assert_int_equal(event->offset, seen->at);
        seen->at += event->prefix + event->bytes.size;
        seen->depth++;
        break;
    case WIRE_EVENT_LEAVE:
        if (seen->fault_field == NULL) assert_int_equal(event->offset + event->length, seen->at);
        seen->depth--;
        break;
    case WIRE_EVENT_ODDITY: seen->oddities++; break;
    case WIRE_EVENT_FAULT:
        seen->fault_field = event->field;
        seen->fault_offset = event->offset;
        break;
    }
}

static void test_every_byte_once(void **state)
{
    uint32_t count;
    const struct wire_message *const *messages = wire_messages(&count);
    for (uint32_t i = 0; i < count; i++) {
        for (int16_t v = messages[i]->version_min; v <= messages[i]->version_max; v++) {
            struct mem mem;
            memory_init(&mem, 0);
            struct arena arena;
            arena_init(&arena, &mem, 0);
            const struct wire_form *form = wire_form(messages[i], v);
            void *value = arena_get(&arena, messages[i]->size_bytes);
            assert_true(wire_sample(form, &arena, value));
            size_t size = wire_size(form, value);
            uint8_t *bytes = arena_get(&arena, size + 1);
            (void)wire_encode(form, value, bytes, NULL, 0, NULL);
            struct reader in = reader_of(view_of(bytes, (uint32_t)size));
            struct seen seen = {0};
            assert_true(wire_walk(&in, form, &(struct wire_visitor){see, &seen}));
            assert_int_equal(seen.at, size);
            assert_int_equal(seen.depth, 0);
            assert_int_equal(seen.oddities, 0);
            arena_free(&arena);
        }
    }
}

static bool walk_bytes_of(const char *name, int16_t version, struct view bytes, struct seen *seen)
{
    const struct wire_message *message = wire_message_by_name(view_of_string(name));
    struct reader in = reader_of(bytes);
    *seen = (struct seen){0};
    return wire_walk(&in, wire_form(message, version), &(struct wire_visitor){see, seen});
}

static void test_fault_names_field(void **state)
{
    static const uint8_t null_group[] = {0, 0, 0, 0, 0};
    struct seen seen;
    assert_false(walk_bytes_of("HeartbeatRequest", 4, view_of(null_group, 5), &seen));
    assert_string_equal(wire_text(seen.fault_field->name), "GroupId");
    static const uint8_t cut[] = {2, 'g', 0, 0, 0};
    assert_false(walk_bytes_of("HeartbeatRequest", 4, view_of(cut, 5), &seen));
    assert_string_equal(wire_text(seen.fault_field->name), "GenerationId");
    assert_int_equal(seen.fault_offset, 2);
}

static void test_oddities_are_told(void **state)
{
    static const uint8_t overlong[] = {0x82, 0x00, 'g', 0, 0, 0, 5, 0x02, 'm', 0, 2, 5, 0, 5, 0};
    struct seen seen;
    assert_true(walk_bytes_of("HeartbeatRequest", 4, view_of(overlong, sizeof(overlong)), &seen));
    assert_int_equal(seen.oddities, 2); /* The varint; tag 5 after tag 5. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_once),
        cmocka_unit_test(test_fault_names_field),
        cmocka_unit_test(test_oddities_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
