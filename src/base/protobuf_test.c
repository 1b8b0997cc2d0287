/* protobuf_test.c - fields of each form, and every way in which they can be cut short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/protobuf.h"

/* 1: varint 300; 2: "abc"; 3: fixed64 1.5; 4: fixed32 7. */
static const uint8_t message[] = {0x08, 0xac, 0x02, 0x12, 3,    'a',  'b',  'c', 0x19, 0, 0,
                                  0,    0,    0,    0,    0xf8, 0x3f, 0x25, 7,   0,    0, 0};

static void all_forms(void **state)
{
    (void)state;
    struct reader in = reader_of(view_of(message, sizeof(message)));
    struct protobuf_field field;
    assert_true(protobuf_next(&in, &field));
    assert_int_equal(field.number, 1);
    assert_int_equal(field.value, 300);
    assert_true(protobuf_next(&in, &field));
    assert_true(view_is(field.bytes, "abc"));
    assert_true(protobuf_next(&in, &field));
    assert_true(protobuf_double(field.value) == 1.5);
    assert_true(protobuf_next(&in, &field));
    assert_int_equal(field.form, PROTOBUF_FIXED32);
    assert_int_equal(field.value, 7);
    assert_false(protobuf_next(&in, &field));
    assert_int_equal(in.fault, READER_OK);
}

static void cut_short(void **state)
{
    (void)state;
    static const uint8_t whole_at[] = {0, 3, 8, 17, 22};
    for (uint32_t size = 0; size <= sizeof(message); size++) {
        uint8_t *copy = malloc(size + 1);
        struct protobuf_field field;
        bool whole = false;
        assert_non_null(copy);
        memcpy(copy, message, size);
        struct reader in = reader_of(view_of(copy, size));
        while (protobuf_next(&in, &field))
            ;
        for (size_t i = 0; i < sizeof(whole_at); i++)
            whole = whole || whole_at[i] == size;
        assert_int_equal(in.fault == READER_OK, whole);
        free(copy);
    }
}

static void refused(void **state)
{
    (void)state;
    static const uint8_t group[] = {0x0b}, nothing[] = {0x00, 0x01},
                         long_text[] = {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    struct view all[] = {view_of(group, 1), view_of(nothing, 2), view_of(long_text, 7)};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        struct reader in = reader_of(all[i]);
        struct protobuf_field field;
        assert_false(protobuf_next(&in, &field));
        assert_int_not_equal(in.fault, READER_OK);
        assert_false(protobuf_next(&in, &field));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_forms),
        cmocka_unit_test(cut_short),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
