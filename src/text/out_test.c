/* out_test.c - bytes as text, columns, caps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sys/memory.h"
#include "text/nearest.h"
#include "text/out.h"

static struct mem mem;
static struct out out;

static int setup(void **state)
{
    memory_init(&mem, 0);
    out_init(&out, &mem);
    return 0;
}

static int teardown(void **state)
{
    out_free(&out);
    assert_int_equal(mem.used_bytes, 0);
    return 0;
}

static void expect(const char *text)
{
    struct view got = out_so_far(&out);
    if (!view_is(got, text)) print_error("got  %.*s\nwant %s\n", (int)got.size, got.data, text);
    assert_true(view_is(got, text));
    out_reset(&out);
}

static void test_base64(void **state)
{
    out_base64(&out, VIEW(""));
    expect("");
    out_base64(&out, VIEW("f"));
    expect("Zg==");
    out_base64(&out, VIEW("fo"));
    expect("Zm8=");
    out_base64(&out, VIEW("foo\xff\xfe\xfd"));
    expect("Zm9v//79");
}

static void test_uuid(void **state)
{
    out_uuid(&out, (struct uuid){{0}});
    expect("AAAAAAAAAAAAAAAAAAAAAA");
    out_uuid(&out, (struct uuid){{[15] = 1}}); /* Kafka's id of the metadata topic. */
    expect("AAAAAAAAAAAAAAAAAAAAAQ");
    struct uuid ones;
    memset(&ones, 0xff, sizeof(ones));
    out_uuid(&out, ones);
    expect("_____________________w");
}

static void test_quoted(void **state)
{
    out_quoted(&out, VIEW("a\"b\\\n\x01\x7f\xc3\xa9"));
    expect("\"a\\\"b\\\\\\n\\u0001\\u007f\xc3\xa9\"");
    out_quoted(&out, VIEW("\xc0\x80|\xed\xa0\x80|\xf5|\xe2\x82"));
    expect("\"\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd|"
           "\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void test_columns_count_characters(void **state)
{
    out_text(&out, "first\n\xc3\xa9");
    out_column(&out, 4);
    out_char(&out, '|');
    out_column(&out, 2);
    expect("first\n\xc3\xa9   |");
}

static void test_wrapped(void **state)
{
    out_text(&out, "  ");
    out_wrapped(&out, "aa bb cc dddddddddd", 3, 8);
    expect("  aa bb\n   cc\n   dddddddddd");
}

static void test_double(void **state)
{
    out_double(&out, 0);
    out_char(&out, ' ');
    out_double(&out, 0.1);
    out_char(&out, ' ');
    out_double(&out, 1e300);
    expect("0.0 0.1 1e+300");
}

static void test_inert_at_the_limit(void **state)
{
    mem.limit_bytes = 1000;
    out_repeat(&out, 'x', 200);
    out_repeat(&out, 'x', 2000);
    assert_true(out.failed);
    out_char(&out, 'y');
    assert_int_equal(out.size_bytes, 200);
    mem.limit_bytes = 0;
}

static void test_nearest(void **state)
{
    assert_int_equal(nearest_distance(VIEW("heartbeat"), VIEW("HaertBeat")), 1);
    assert_int_equal(nearest_distance(VIEW("abc"), VIEW("")), 3);
    struct nearest nearest = nearest_to(VIEW("Heartbeet"));
    nearest_offer(&nearest, "Fetch");
    assert_null(nearest.best);
    nearest_offer(&nearest, "Heartbeat");
    nearest_offer(&nearest, "BrokerHeartbeat");
    assert_string_equal(nearest.best, "Heartbeat");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base64),
        cmocka_unit_test(test_uuid),
        cmocka_unit_test(test_quoted),
        cmocka_unit_test(test_columns_count_characters),
        cmocka_unit_test(test_wrapped),
        cmocka_unit_test(test_double),
        cmocka_unit_test(test_inert_at_the_limit),
        cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
