/* check.h - suites that a running server is given: each row is something that Apache Kafka 4.4
 * does, told as expected against got.
 *
 * A row is a story of its own (own group or broker id, own connections), so all rows run side by
 * side, one thread each, and one row's failure spoils no other. Nothing of the server is linked:
 * all goes over its socket.
 *
 * Memory: results belong to the caller's struct mem. Thread: one call at a time. */
#pragma once

#include "text/out.h"

struct check_run;

/* One row of a suite. */
struct check_row {
    const char *id;   /* "C10 Stable": its place in the table that it comes from. */
    const char *what; /* The story in a few words. */
    void (*run)(struct check_run *run);
    bool each_version;   /* Run once for each version that the suite is about. */
    int16_t version_min; /* Of that API; for rows that need a field of a later version. */
    enum check_when {
        CHECK_WITH_ALL,    /* Side by side with the others. */
        CHECK_IF_LONG,     /* The same, but only if minutes do not matter. */
        CHECK_OVER_RESTART /* Behind them: the server is restarted under these rows. */
    } when;
};

/* The rows of a table: one run; one run for each version from `first` on. */
#define CHECK_ROW(id, what, run)                                                                   \
    {                                                                                              \
        id, what, run, false, 0, CHECK_WITH_ALL                                                    \
    }
#define CHECK_ROW_EACH(id, what, run, first)                                                       \
    {                                                                                              \
        id, what, run, true, first, CHECK_WITH_ALL                                                 \
    }

/* A row that is run at another time. */
#define CHECK_ROW_WHEN(id, what, run, when)                                                        \
    {                                                                                              \
        id, what, run, false, 0, when                                                              \
    }

/* Rows of one kind, in the order in which they are told. */
struct check_table {
    const char *title;
    const struct check_row *rows;
    uint32_t count;
};

struct check_suite {
    const char *name; /* "liveness" */
    int16_t api_key;  /* The API that it is about. */
    int16_t version_max;
    void (*prepare)(struct check_run *world); /* What all rows need; NULL: nothing. */
    void (*begin)(struct check_run *run);     /* What each row begins with; NULL: nothing. */
    void (*end)(struct check_run *run);       /* What each row ends with, failed or not. */
    void (*finish)(struct check_run *world);  /* Behind all rows; NULL: nothing. */
    const struct check_table *const *tables;
    uint32_t table_count;
};

extern const struct check_suite check_liveness;        /* Groups, of a broker. */
extern const struct check_suite check_broker_liveness; /* Brokers, of a controller. */

struct check_target {
    const char *host;
    const char *port;
};

/* What of a suite is to be run. */
struct check_wish {
    const char *only;    /* Rows whose id contains this; NULL: all. */
    const char *restart; /* A shell's command that restarts the server; NULL: it stays as it is. */
    bool lengthy;        /* Rows that take minutes too. */
};

enum check_outcome { CHECK_PASSED, CHECK_FAILED, CHECK_SKIPPED };

#define CHECK_TEXT_BYTES 400u

struct check_result {
    const struct check_table *table;
    const struct check_row *row;
    int16_t version; /* -1: the row is not run version by version. */
    enum check_outcome outcome;
    int32_t took_ms;
    char expected[CHECK_TEXT_BYTES]; /* Of a skipped row: why. */
    char got[CHECK_TEXT_BYTES];
};

struct check_report {
    const struct check_suite *suite;
    struct check_target target;
    struct check_result *results; /* `count` of them, `room` places. */
    uint32_t count, room;
    uint32_t passed, failed, skipped;
    int64_t took_ms;
    char trouble[CHECK_TEXT_BYTES]; /* "" or why no row could be run. */
};

/* Run the rows that are wished for. True: they were run, what came of them is in
 * `report`. False: the server could not be reached or is no Kafka, or there is no memory; `report->
 * trouble` says so. check_report_free gives the memory back in both cases.
 * Cost: as long as the longest row takes. */
MUST_USE bool check_suite_run(const struct check_suite *suite,
                              const struct check_target *target,
                              const struct check_wish *wish,
                              struct mem *mem,
                              struct check_report *report);
void check_report_free(struct check_report *report, struct mem *mem);

/* The report for people: a line for each row, what was got where it failed, a summary. */
void check_report_text(struct out *out, const struct check_report *report);

/* The same as one line of JSON. */
void check_report_json(struct out *out, const struct check_report *report);
