/* properties_test.c - the syntax of Java's property files, and what is refused. */
#include "sys/properties.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "sys/memory.h"

struct fixture {
    struct mem mem;
    struct arena arena;
    struct properties properties;
    uint32_t line;
};

static void fixture_open(struct fixture *f)
{
    *f = (struct fixture){0};
    memory_init(&f->mem, 0);
    arena_init(&f->arena, &f->mem, 0);
}

static void fixture_close(struct fixture *f)
{
    arena_free(&f->arena);
    assert_int_equal(f->mem.used_bytes, 0);
}

static const char *value(const struct fixture *f, const char *name)
{
    const struct property *property = properties_find(&f->properties, view_of_string(name));
    return property == NULL ? NULL : (const char *)property->value.data;
}

/* One line of text, the name and value it gives. */
static void lines(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name, *value;
    } cases[] = {
        {"a=b",                                            "a",         "b"               },
        {"a = b ",                                         "a",         "b "              },
        {"a:b",                                            "a",         "b"               },
        {"a b",                                            "a",         "b"               },
        {"  a\t:  b",                                      "a",         "b"               },
        {"a",                                              "a",         ""                },
        {"a=",                                             "a",         ""                },
        {"a==b",                                           "a",         "=b"              },
        {"a = : b",                                        "a",         ": b"             },
        {"a\\ b=c",                                        "a b",       "c"               },
        {"a\\=b=c",                                        "a=b",       "c"               },
        {"a=b\\\n   c",                                    "a",         "bc"              },
        {"a=b\\\r\n\tc",                                   "a",         "bc"              },
        {"a \\\n = b",                                     "a",         "b"               },
        {"a = \\\n b",                                     "a",         "b"               },
        {"a=b\\\n#c",                                      "a",         "b#c"             },
        {"a=b\\\\\n",                                      "a",         "b\\"             },
        {"a=\\t\\n\\q",                                    "a",         "\t\nq"           },
        {"a=\\u0041\\u00e9",                               "a",         "A\xc3\xa9"       },
        {"a=\\ud83d\\ude00",                               "a",         "\xf0\x9f\x98\x80"},
        {"a=\\ud83dx",                                     "a",         "\xef\xbf\xbdx"   },
        {"a=b\\",                                          "a",         "b"               },
        {"# c\n! d\n\n \n  # e\na=b",                      "a",         "b"               },
        {"a=b\rc=d",                                       "a",         "b"               },
        {"listeners=PLAINTEXT://:9092,CONTROLLER://:9093", "listeners",
         "PLAINTEXT://:9092,CONTROLLER://:9093"                                           },
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fixture f;
        fixture_open(&f);
        assert_int_equal(
            properties_parse(&f.properties, view_of_string(cases[i].text), &f.arena, &f.line),
            PROPERTIES_OK);
        assert_non_null(value(&f, cases[i].name));
        assert_string_equal(value(&f, cases[i].name), cases[i].value);
        fixture_close(&f);
    }
}

static void places(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f);
    struct view text = VIEW("# one\na=1\nb=\\\n  2\na=3\n");
    assert_int_equal(properties_parse(&f.properties, text, &f.arena, &f.line), PROPERTIES_OK);
    assert_int_equal(f.properties.count, 2);
    const struct property *a = properties_find(&f.properties, VIEW("a"));
    assert_string_equal((const char *)a->value.data, "3");
    assert_int_equal(a->line, 5);
    assert_int_equal(a->replaced_line, 2);
    assert_int_equal(properties_find(&f.properties, VIEW("b"))->line, 3);

    assert_int_equal(properties_set(&f.properties, VIEW("b"), VIEW("x"), &f.arena), PROPERTIES_OK);
    assert_int_equal(properties_find(&f.properties, VIEW("b"))->line, 0);
    assert_string_equal(value(&f, "b"), "x");
    fixture_close(&f);
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        struct view text;
        enum properties_result result;
        uint32_t line;
    } cases[] = {
        {VIEW("a=1\nb=\\u00g1"), PROPERTIES_E_ESCAPE, 2},
        {VIEW("a=\\u00"),        PROPERTIES_E_ESCAPE, 1},
        {VIEW("a=\\u0000"),      PROPERTIES_E_ESCAPE, 1},
        {VIEW("\n\na\0b=1"),     PROPERTIES_E_NUL,    3},
        {VIEW("a=1\0"),          PROPERTIES_E_NUL,    1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fixture f;
        fixture_open(&f);
        assert_int_equal(properties_parse(&f.properties, cases[i].text, &f.arena, &f.line),
                         cases[i].result);
        assert_int_equal(f.line, cases[i].line);
        fixture_close(&f);
    }
}

static void too_many(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f);
    enum { LINES = PROPERTIES_MAX + 1, WIDTH = 7 };
    static char text[LINES * WIDTH];
    for (int i = 0; i < LINES; i++) {
        char *at = text + i * WIDTH;
        for (int digit = 5; digit >= 0; digit--)
            at[5 - digit] = (char)('a' + (i >> (4 * digit)) % 16);
        at[6] = '\n';
    }
    assert_int_equal(
        properties_parse(&f.properties, view_of(text, sizeof(text)), &f.arena, &f.line),
        PROPERTIES_E_TOO_MANY);
    assert_int_equal(f.line, LINES);
    fixture_close(&f);
}

static void no_memory(void **state)
{
    (void)state;
    for (uint64_t limit = 100; limit < 20000; limit += 1000) {
        struct fixture f;
        fixture_open(&f);
        f.mem.limit_bytes = limit;
        enum properties_result result =
            properties_parse(&f.properties, VIEW("a=b\nc=d\n"), &f.arena, &f.line);
        assert_true(result == PROPERTIES_OK || result == PROPERTIES_E_NO_MEMORY);
        if (limit == 100) assert_int_equal(result, PROPERTIES_E_NO_MEMORY);
        fixture_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),    cmocka_unit_test(places),    cmocka_unit_test(refused),
        cmocka_unit_test(too_many), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
