/* crc_plain_test.c - the checksums of the static program equal isa-l's, by instruction and by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Under other names, beside those of the library. */
#define crc_32c      plain_32c
#define crc_32c_more plain_32c_more
#define crc_32       plain_32
#include "record/crc_plain.c" // NOLINT(bugprone-suspicious-include)
#undef crc_32c
#undef crc_32c_more
#undef crc_32

uint32_t crc_32c(const void *bytes, size_t size_bytes);
uint32_t crc_32c_more(uint32_t crc, const void *bytes, size_t size_bytes);
uint32_t crc_32(const void *bytes, size_t size_bytes);

static void test_known_values(void **state)
{
    (void)state;
    assert_int_equal(plain_32c("123456789", 9), 0xe3069283);
    assert_int_equal(plain_32("123456789", 9), 0xcbf43926);
    assert_int_equal(plain_32c(NULL, 0), 0);
    assert_int_equal(~by_hand(~0u, (const uint8_t *)"123456789", 9), 0xe3069283);
}

static void test_equal_at_every_size_and_place(void **state)
{
    uint8_t bytes[400];
    (void)state;
    for (uint32_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 167 + (i >> 3));
    for (uint32_t at = 0; at < 9; at++) {
        for (uint32_t size = 0; size < 300; size++) {
            uint32_t wanted = crc_32c(bytes + at, size);
            assert_int_equal(plain_32c(bytes + at, size), wanted);
            assert_int_equal(~by_hand(~0u, bytes + at, size), wanted);
            assert_int_equal(plain_32(bytes + at, size), crc_32(bytes + at, size));
            assert_int_equal(plain_32c_more(wanted, bytes, 77), crc_32c_more(wanted, bytes, 77));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_equal_at_every_size_and_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
