/* say_test.c - lines as they are written, escapes, limits. */
#include "sys/say.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct caught {
    char line[SAY_LINE_BYTES + 1];
    size_t size;
    int count;
};

static int64_t fixed_wall(void *context)
{
    (void)context;
    return INT64_C(1796022191042);
}

static void catch_line(void *context, const char *line, size_t size)
{
    struct caught *caught = context;
    assert_true(size <= SAY_LINE_BYTES);
    memcpy(caught->line, line, size);
    caught->line[size] = '\0';
    caught->size = size;
    caught->count++;
}

static struct say sayer(struct caught *caught, bool json)
{
    *caught = (struct caught){0};
    return (struct say){.json = json, .wall_ms = fixed_wall, .sink = catch_line, .context = caught};
}

static void readable(void **state)
{
    (void)state;
    struct caught caught;
    struct say s = sayer(&caught, false);
    say(&s, SAY_WARN, SAY_IN_NET, "closed after %d ms", 7);
    assert_string_equal(caught.line, "2026-11-30 07:03:11.042 warn net: closed after 7 ms\n");
    say(&s, SAY_DEBUG, SAY_IN_NET, "not said");
    assert_int_equal(caught.count, 1);
    say(&s, SAY_ERROR, SAY_IN_NET, "two\nlines");
    assert_string_equal(caught.line, "2026-11-30 07:03:11.042 error net: two lines\n");
}

static void levels_of_areas(void **state)
{
    (void)state;
    struct caught caught;
    struct say_levels levels;
    struct say s = sayer(&caught, false);
    s.levels = &levels;
    say_levels_init(&levels, SAY_WARN);
    say(&s, SAY_INFO, SAY_IN_NET, "not said");
    say_set(&levels, SAY_IN_NET, SAY_TRACE);
    say(&s, SAY_DEBUG, SAY_IN_NET, "said");
    say(&s, SAY_INFO, SAY_IN_LOG, "not said");
    assert_int_equal(caught.count, 1);
    say_set(&levels, SAY_IN_ROOT, SAY_FATAL);
    say(&s, SAY_ERROR, SAY_IN_LOG, "not said");
    assert_true(say_on(&s, SAY_DEBUG, SAY_IN_NET));
    say_unset(&levels, SAY_IN_NET);
    assert_false(say_on(&s, SAY_ERROR, SAY_IN_NET));
    assert_int_equal(say_level_of(&s, SAY_IN_NET), SAY_FATAL);
    assert_int_equal(caught.count, 1);
}

static void json(void **state)
{
    (void)state;
    struct caught caught;
    struct say s = sayer(&caught, true);
    say(&s, SAY_INFO, SAY_IN_NET, "a \"b\" \\ \n");
    assert_string_equal(caught.line,
                        "{\"time\":\"2026-11-30T07:03:11.042Z\",\"level\":\"info\","
                        "\"part\":\"net\",\"message\":\"a \\\"b\\\" \\\\ \\u000a\"}\n");
}

static void long_lines(void **state)
{
    (void)state;
    static char text[3 * SAY_LINE_BYTES];
    for (int style = 0; style < 2; style++) {
        memset(text, style == 0 ? 'x' : '\x01', sizeof(text) - 1);
        struct caught caught;
        struct say s = sayer(&caught, style == 1);
        say(&s, SAY_INFO, SAY_IN_NET, "%s", text);
        assert_int_equal(caught.count, 1);
        assert_int_equal(caught.line[caught.size - 1], '\n');
        assert_null(memchr(caught.line, '\n', caught.size - 1));
    }
}

static void escapes(void **state)
{
    (void)state;
    static const struct {
        struct view bytes;
        const char *shown;
    } cases[] = {
        {VIEW("plain"),                           "plain"                       },
        {VIEW("a\nb\0c"),                         "a\\x0ab\\x00c"               },
        {VIEW("\"\\"),                            "\\x22\\x5c"                  },
        {VIEW("\xc3\xa9"),                        "\xc3\xa9"                    },
        {VIEW("\xc3"),                            "\\xc3"                       },
        {VIEW("\xc0\xaf"),                        "\\xc0\\xaf"                  },
        {VIEW("\xed\xa0\x80"),                    "\\xed\\xa0\\x80"             },
        {VIEW("\xc2\x9b"),                        "\\xc2\\x9b"                  },
        {VIEW("\x7f"),                            "\\x7f"                       },
        {VIEW("0123456789012345678901234567890"), "0123456789012345678901234..."},
        {VIEW_EMPTY,                              ""                            },
        {VIEW_NULL,                               "null"                        },
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char out[32];
        assert_string_equal(say_bytes(cases[i].bytes, out, sizeof(out)), cases[i].shown);
    }
}

static void floods(void **state)
{
    (void)state;
    struct say_limit limit = {0};
    uint32_t dropped, said = 0;
    for (int i = 0; i < 1000; i++)
        said += say_allowed(&limit, 20000 + i, &dropped);
    assert_int_equal(said, SAY_LIMIT_LINES);
    assert_true(say_allowed(&limit, 20000 + SAY_LIMIT_MS, &dropped));
    assert_int_equal(dropped, 1000 - SAY_LIMIT_LINES);
    assert_true(say_allowed(&limit, 20000 + SAY_LIMIT_MS, &dropped));
    assert_int_equal(dropped, 0);
}

static void reasons(void **state)
{
    (void)state;
    assert_string_equal(say_errno(-ENOSPC), "No space left on device");
    assert_string_equal(say_errno(-100000), "unknown error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readable),   cmocka_unit_test(levels_of_areas), cmocka_unit_test(json),
        cmocka_unit_test(long_lines), cmocka_unit_test(escapes),         cmocka_unit_test(floods),
        cmocka_unit_test(reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
