/* murmur_test.c - values that Apache Kafka's own client gives. */
#include "record/murmur.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void kafkas_values(void **state)
{
    static const struct {
        const char *key;
        int32_t hash;
    } cases[] = {
        {"",                           275646681  },
        {"2",                          648968168  },
        {"21",                         -973932308 },
        {"abc",                        479470107  },
        {"foobar",                     -790332482 },
        {"a-little-bit-long-string",   -985981536 },
        {"a-little-bit-longer-string", -1486304829},
    };
    for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct view key = view_of_string(cases[i].key);
        assert_int_equal((int32_t)murmur_2(key), cases[i].hash);
        assert_int_equal(murmur_partition(key, 7), (cases[i].hash & 0x7fffffff) % 7);
        assert_int_equal(murmur_partition(key, 1), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kafkas_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
