/* options_test.c - command lines, good and bad. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cli/cli.h"

static const struct cli_option options[] = {
    CLI_OPTION("version", 0, "N", "a number"),
    CLI_CHOICE("format", 'f', "FORMAT", "tree|rows|hex", "a choice"),
    CLI_FLAG("verbose", 'v', "a flag"),
    CLI_OPTIONS_END,
};

static const struct cli_command command = {.name = "test",
                                           .arguments = "WORD",
                                           .options = options,
                                           .words_min = 1,
                                           .words_max = 2};

static char said[4096];

static enum cli_exit parse(struct cli *cli, const char *line)
{
    static char copy[200];
    char *words[20];
    int count = 0;
    char *save = NULL;
    snprintf(copy, sizeof(copy), "%s", line);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
        words[count++] = word;
    words[count] = NULL;
    FILE *errors = fmemopen(said, sizeof(said), "w");
    *cli = (struct cli){.command = &command, .errors = errors};
    enum cli_exit code = cli_parse(cli, count, words);
    long long number = -1;
    if (code == CLI_OK) code = cli_integer(cli, "version", (struct cli_range){0, 9}, &number);
    fclose(errors);
    return code;
}

static void test_good(void **state)
{
    struct cli cli;
    assert_int_equal(parse(&cli, "one --version 4 -v --format=hex two"), CLI_OK);
    assert_string_equal(cli_value(&cli, "version"), "4");
    assert_string_equal(cli_value(&cli, "format"), "hex");
    assert_true(cli_has(&cli, "verbose"));
    assert_int_equal(cli.word_count, 2);
    assert_string_equal(cli.words[1], "two");

    assert_int_equal(parse(&cli, "-ftree - -- --version"), CLI_OK);
    assert_string_equal(cli_value(&cli, "format"), "tree");
    assert_false(cli_has(&cli, "verbose"));
    assert_string_equal(cli.words[0], "-");
    assert_string_equal(cli.words[1], "--version");
}

static void test_repeated(void **state)
{
    struct cli cli;
    int at = 0;
    assert_int_equal(parse(&cli, "a --version 4 --format hex --version=5"), CLI_OK);
    assert_string_equal(cli_next(&cli, "version", &at), "4");
    assert_string_equal(cli_next(&cli, "version", &at), "5");
    assert_null(cli_next(&cli, "version", &at));
    assert_string_equal(cli_value(&cli, "version"), "5");
}

static void expect_usage(const char *line, const char *words)
{
    struct cli cli;
    assert_int_equal(parse(&cli, line), CLI_USAGE);
    if (strstr(said, words) == NULL) print_error("\"%s\" said: %s", line, said);
    assert_non_null(strstr(said, words));
}

static void test_bad(void **state)
{
    expect_usage("", "usage: dohle test WORD");
    expect_usage("a b c", "\"c\"");
    expect_usage("a --verison 3", "did you mean --version?");
    expect_usage("a -x", "no option -x");
    expect_usage("a --version", "needs its value N");
    expect_usage("a --version x", "not \"x\"");
    expect_usage("a --version 10", "from 0 to 9");
    expect_usage("a --format he", "one of tree|rows|hex");
    expect_usage("a --verbose=1", "takes no value");
}

static void test_missing(void **state)
{
    static const struct cli_command two = {.name = "two",
                                           .arguments =
                                               "[--version N | --format F] FIRST SECOND [THIRD]\n"
                                               "--all",
                                           .options = options,
                                           .words_min = 2,
                                           .words_max = 3};
    char *words[] = {"one", NULL};
    struct cli cli = {.command = &two};
    cli.errors = fmemopen(said, sizeof(said), "w");
    assert_int_equal(cli_parse(&cli, 1, words), CLI_USAGE);
    fclose(cli.errors);
    assert_string_equal(said,
                        "dohle two: SECOND is missing\n"
                        "hint: usage: dohle two [--version N | --format F] FIRST SECOND [THIRD]\n"
                        "hint: or: dohle two --all\n");
}

static void test_only_one(void **state)
{
    static const char *const names[] = {"verbose", "format", NULL};
    const char *given;
    struct cli cli;
    assert_int_equal(parse(&cli, "a"), CLI_OK);
    assert_int_equal(cli_only_one(&cli, names, &given), CLI_OK);
    assert_null(given);
    assert_int_equal(parse(&cli, "a --format hex"), CLI_OK);
    assert_int_equal(cli_only_one(&cli, names, &given), CLI_OK);
    assert_string_equal(given, "format");
    assert_int_equal(parse(&cli, "a --format hex -v"), CLI_OK);
    cli.errors = fmemopen(said, sizeof(said), "w");
    assert_int_equal(cli_only_one(&cli, names, &given), CLI_USAGE);
    fclose(cli.errors);
    assert_string_equal(said, "dohle test: --verbose and --format exclude each other\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),    cmocka_unit_test(test_repeated), cmocka_unit_test(test_bad),
        cmocka_unit_test(test_missing), cmocka_unit_test(test_only_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
