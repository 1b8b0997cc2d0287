/* report_test.c - what came of rows as text and JSON; expectations of a run without a server. */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>

#include <cmocka.h>

#include "check/run.h"
#include "sys/memory.h"

static void nothing(struct check_run *run)
{
}

static const struct check_row rows[] = {
    CHECK_ROW("C1", "a row", nothing),
    CHECK_ROW_EACH("C2", "a \"row\" of versions", nothing, 0),
};
static const struct check_table table = {"A table", rows, ARRAY_SIZE(rows)};
static const struct check_table *const tables[] = {&table};
static const struct check_suite suite = {
    .name = "test",
    .api_key = 12,
    .version_max = 4,
    .tables = tables,
    .table_count = 1,
};

static struct check_report report_of(struct check_result *results, uint32_t count)
{
    return (struct check_report){
        .suite = &suite,
        .target = {"host", "9"},
        .results = results,
        .count = count,
        .room = count
    };
}

static void assert_text(struct out *out, const char *expected)
{
    out_char(out, '\0');
    assert_string_equal(out->text, expected);
    out_free(out);
}

static void text_names_what_was_got(void **state)
{
    struct mem mem;
    struct out out;
    struct check_result results[] = {
        {&table, &rows[0], -1, CHECK_PASSED,  1, "NONE",       "NONE"                          },
        {&table, &rows[1], 3,  CHECK_FAILED,  1, "NONE, NONE", "NONE, UNKNOWN_MEMBER_ID (beat)"},
        {&table, &rows[1], 4,  CHECK_SKIPPED, 0, "not here",   ""                              },
    };
    struct check_report report = report_of(results, 3);
    report.passed = report.failed = report.skipped = 1;
    report.took_ms = 1234;

    memory_init(&mem, 0);
    out_init(&out, &mem);
    check_report_text(&out, &report);
    assert_text(&out, "A table\n"
                      "ok    C1                           a row\n"
                      "FAIL  C2 v3                        a \"row\" of versions\n"
                      "        expected NONE, NONE\n"
                      "        got      NONE, UNKNOWN_MEMBER_ID (beat)\n"
                      "skip  C2 v4                        a \"row\" of versions: not here\n"
                      "\ntest of host:9: 1 of 2 rows passed, 1 failed, 1 skipped, 1.2 s\n");
    check_report_json(&out, &report);
    assert_text(
        &out,
        "{\"suite\":\"test\",\"target\":\"host:9\",\"rows\":["
        "{\"row\":\"C1\",\"what\":\"a row\",\"outcome\":\"passed\",\"expected\":\"NONE\",\"got\":"
        "\"NONE\",\"ms\":1},"
        "{\"row\":\"C2\",\"version\":3,\"what\":\"a \\\"row\\\" of versions\",\"outcome\":"
        "\"failed\",\"expected\":\"NONE, NONE\",\"got\":\"NONE, UNKNOWN_MEMBER_ID (beat)\","
        "\"ms\":1},"
        "{\"row\":\"C2\",\"version\":4,\"what\":\"a \\\"row\\\" of versions\",\"outcome\":"
        "\"skipped\",\"reason\":\"not here\",\"ms\":0}],"
        "\"passed\":1,\"failed\":1,\"skipped\":1,\"ms\":1234}\n");
    assert_int_equal(mem.used_bytes, 0);
}

static void a_run_is_inert_after_its_first_failure(void **state)
{
    struct check_result result = {0};
    struct check_run run = {.result = &result, .row = &rows[0]};

    run_begin(&run, &(struct check_target){"127.0.0.1", "1"});
    run_expect(&run, "one", KAFKA_NONE, 0);
    run_need(&run, "two", KAFKA_NONE, 0);
    assert_false(run.over);
    run_expect_within(&run, "three", (struct run_span){5, 10}, 11);
    assert_true(run.over);
    run_expect(&run, "four", KAFKA_NONE, 25);
    run_fail(&run, "five");
    run_skip(&run, "six");
    int64_t start_ms = peer_now_ms();
    run_wait(&run, 60000);
    assert_true(peer_now_ms() - start_ms < 30000);
    assert_int_equal(run_peer(&run)->fd, -1);
    run_end(&run);
    assert_int_equal(result.outcome, CHECK_FAILED);
    assert_string_equal(result.expected, "NONE, 5 to 10 ms");
    assert_string_equal(result.got, "NONE, 11 ms (three)");
}

static void nobody_there_is_trouble(void **state)
{
    struct mem mem;
    struct check_report report;

    memory_init(&mem, 0);
    assert_false(check_suite_run(&suite, &(struct check_target){"127.0.0.1", "1"},
                                 &(struct check_wish){0}, &mem, &report));
    assert_string_equal(report.trouble, "127.0.0.1:1 cannot be reached");
    check_report_free(&report, &mem);
    assert_int_equal(mem.used_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_names_what_was_got),
        cmocka_unit_test(a_run_is_inert_after_its_first_failure),
        cmocka_unit_test(nobody_there_is_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
