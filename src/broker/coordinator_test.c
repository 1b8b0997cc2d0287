/* coordinator_test.c - which partition of __consumer_offsets a group is in: the numbers of Java's
 * hash over UTF-16, computed by Apache Kafka. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
/* cmocka wants the lines above first. */
#include <cmocka.h>

#include "broker/coordinator.h"

/* T152 */
static void partitions(void **state)
{
    static const struct {
        const char *group;
        uint32_t of_50, of_3;
    } rows[] = {
        {"",                    0,  0},
        {"group",               47, 2},
        {"my-group",            12, 0},
        {"test",                48, 1},
        {"g1",                  42, 2},
        {"connect-cluster",     13, 1},
        {"my-transactional-id", 46, 2},
        {"gr\u00fcppe-\u2713",  12, 2},
        {"\U0001f600",          49, 1}, /* Two units of UTF-16. */
        {"polygenelubricants",  0,  0}, /* The hash that has no absolute value. */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct view group = view_of_string(rows[i].group);
        assert_int_equal(coordinator_partition(group, 50), rows[i].of_50);
        assert_int_equal(coordinator_partition(group, 3), rows[i].of_3);
        assert_int_equal(coordinator_partition(group, 1), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
