/* consume_where_test.c - what --from takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <time.h>

#include "cli/consume.h"

#define NOW_MS 1796034494084

static void test_places(void **state)
{
    static const struct {
        const char *text;
        struct consume_from from;
    } good[] = {
        {"beginning",             {CONSUME_BEGINNING, 0}            },
        {"end",                   {CONSUME_END, 0}                  },
        {"0",                     {CONSUME_OFFSET, 0}               },
        {"12",                    {CONSUME_OFFSET, 12}              },
        {"-10",                   {CONSUME_LAST, 10}                },
        {"-0",                    {CONSUME_LAST, 0}                 },
        {"@1700000000000",        {CONSUME_TIME, 1700000000000}     },
        {"@-10m",                 {CONSUME_TIME, NOW_MS - 600000}   },
        {"@-2d",                  {CONSUME_TIME, NOW_MS - 172800000}},
        {"@2023-11-14T22:13:20Z", {CONSUME_TIME, 1700000000000}     },
        {"@2023-11-14T22:13Z",    {CONSUME_TIME, 1699999980000}     },
        {"@2023-11-14Z",          {CONSUME_TIME, 1699920000000}     },
        {"@2023-11-14 22:13:20",  {CONSUME_TIME, 1700000000000}     }, /* Local time: UTC here. */
    };
    static const char *const bad[] = {"",    "soon", "@",   "@-10",        "@-10x",
                                      "1.5", "+1",   "@-m", "@2023-13-01", "12 "};
    struct consume_from from;
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_true(consume_from_parse(good[i].text, NOW_MS, &from));
        assert_int_equal(from.where, good[i].from.where);
        assert_int_equal(from.number, good[i].from.number);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(consume_from_parse(bad[i], NOW_MS, &from));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
