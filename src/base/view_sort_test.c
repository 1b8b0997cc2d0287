/* view_sort_test.c - sorted, and the same views. */
#include <stdarg.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/view_sort.h"

static void test_sorts(void **state)
{
    for (uint32_t count = 0; count < 200; count++) {
        uint8_t bytes[200];
        struct view views[201];
        uint32_t random = count + 1, sum = 0, after = 0;
        for (uint32_t i = 0; i < count; i++) {
            random = random * 1664525u + 1013904223u;
            bytes[i] = (uint8_t)(random >> 27); /* Few values: many are equal. */
            views[i] = view_of(&bytes[i], random >> 30 == 0 ? 0 : 1);
            sum += views[i].size == 0 ? 1000u : bytes[i];
        }
        view_sort(views, count);
        for (uint32_t i = 0; i < count; i++) {
            if (i > 0) assert_true(view_compare(views[i - 1], views[i]) <= 0);
            after += views[i].size == 0 ? 1000u : views[i].data[0];
        }
        assert_int_equal(sum, after);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sorts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
