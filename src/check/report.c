/* report.c - what came of a suite, as text and as JSON. */
#include "check/check.h"

#include <stdio.h>

/* Columns of the text: outcome, id, story. */
#define COLUMN_ID    6
#define COLUMN_WHAT  34
#define COLUMN_MORE  8
#define OUTCOME_LAST CHECK_SKIPPED

static const char *const words[OUTCOME_LAST + 1] = {
    [CHECK_PASSED] = "ok",
    [CHECK_FAILED] = "FAIL",
    [CHECK_SKIPPED] = "skip",
};

static const char *const json_words[OUTCOME_LAST + 1] = {
    [CHECK_PASSED] = "passed",
    [CHECK_FAILED] = "failed",
    [CHECK_SKIPPED] = "skipped",
};

static void put_id(struct out *out, const struct check_result *result)
{
    out_text(out, result->row->id);
    if (result->version >= 0) out_format(out, " v%d", result->version);
}

static void text_row(struct out *out, const struct check_result *result)
{
    out_text(out, words[result->outcome]);
    out_column(out, COLUMN_ID);
    put_id(out, result);
    out_column(out, COLUMN_WHAT);
    out_format(out, " %s", result->row->what);
    if (result->outcome == CHECK_SKIPPED) out_format(out, ": %s", result->expected);
    out_char(out, '\n');
    if (result->outcome != CHECK_FAILED) return;
    out_column(out, COLUMN_MORE);
    out_format(out, "expected %s\n", result->expected[0] != '\0' ? result->expected : "an answer");
    out_column(out, COLUMN_MORE);
    out_format(out, "got      %s\n", result->got);
}

void check_report_text(struct out *out, const struct check_report *report)
{
    const struct check_table *table = NULL;
    for (uint32_t i = 0; i < report->count; i++) {
        const struct check_result *result = &report->results[i];
        if (result->table != table)
            out_format(out, "%s%s\n", i > 0 ? "\n" : "", result->table->title);
        table = result->table;
        text_row(out, result);
    }
    out_format(out, "\n%s of %s:%s: %u of %u rows passed, %u failed, %u skipped, %lld.%lld s\n",
               report->suite->name, report->target.host, report->target.port, report->passed,
               report->passed + report->failed, report->failed, report->skipped,
               (long long)report->took_ms / 1000, (long long)report->took_ms % 1000 / 100);
}

static void json_text(struct out *out, const char *name, const char *value)
{
    out_format(out, ",\"%s\":", name);
    out_quoted(out, view_of_string(value));
}

static void json_row(struct out *out, const struct check_result *result)
{
    out_text(out, "{\"row\":");
    out_quoted(out, view_of_string(result->row->id));
    if (result->version >= 0) out_format(out, ",\"version\":%d", result->version);
    json_text(out, "what", result->row->what);
    json_text(out, "outcome", json_words[result->outcome]);
    if (result->outcome == CHECK_SKIPPED) {
        json_text(out, "reason", result->expected);
    } else {
        json_text(out, "expected", result->expected);
        json_text(out, "got", result->got);
    }
    out_format(out, ",\"ms\":%d}", result->took_ms);
}

void check_report_json(struct out *out, const struct check_report *report)
{
    out_format(out, "{\"suite\":\"%s\",\"target\":", report->suite->name);
    char target[300];
    (void)snprintf(target, sizeof(target), "%s:%s", report->target.host, report->target.port);
    out_quoted(out, view_of_string(target));
    out_text(out, ",\"rows\":[");
    for (uint32_t i = 0; i < report->count; i++) {
        if (i > 0) out_char(out, ',');
        json_row(out, &report->results[i]);
    }
    out_format(out, "],\"passed\":%u,\"failed\":%u,\"skipped\":%u,\"ms\":%lld}\n", report->passed,
               report->failed, report->skipped, (long long)report->took_ms);
}
