/* consume.h - what the files of `dohle consume` share. */
#pragma once

#include <signal.h>

#include "cli/client.h"

#define CONSUME_PARTITIONS_MAX 10000

/* ---- where to begin (consume_where.c) -------------------------------------------------------- */

enum consume_where { CONSUME_BEGINNING, CONSUME_END, CONSUME_OFFSET, CONSUME_LAST, CONSUME_TIME };

struct consume_from {
    enum consume_where where;
    int64_t number; /* The offset, how many of the last, or milliseconds since 1970. */
};

/* "beginning", "end", "12", "-10" (the last ten), "@TIME": milliseconds since 1970, a date with an
 * optional time (2026-11-30, 2026-11-30T10:00, ...:00Z; local time without Z), or an age (@-10m; s,
 * m, h, d). False: none of these. */
MUST_USE bool consume_from_parse(const char *text, int64_t wall_ms, struct consume_from *out);

/* One partition's way: from the first to before the end. */
struct consume_part {
    int32_t id;
    bool started, done;
    int64_t low, next; /* What the partition held at the start. */
    int64_t at;        /* The next offset to come. */
};

/* Set `at` of all parts. CLI_OK, or it was said. */
MUST_USE enum cli_exit consume_where(struct client *client,
                                     const char *topic,
                                     const struct consume_from *from,
                                     struct consume_part *parts,
                                     uint32_t count);

/* ---- how a record is printed (consume_print.c) ----------------------------------------------- */

enum consume_format { CONSUME_VALUE, CONSUME_FULL, CONSUME_JSON, CONSUME_HEX, CONSUME_TEMPLATE };

struct consume_printer {
    struct client *client;
    enum consume_format format;
    const char *pattern; /* Of CONSUME_TEMPLATE. */
    char topic[256];
};

/* Is the template sound? False: it was said. */
MUST_USE bool consume_template_check(struct cli *cli, const char *pattern);

/* ---- as a member of a group (consume_group.c) ------------------------------------------------ */

struct consume_grouped {
    struct client *client; /* Open, with a group's settings. */
    struct consume_printer *printer;
    struct client_progress *progress;
    bool follow;
    uint64_t limit;                       /* Records; 0: no limit. */
    const sig_atomic_t volatile *stopped; /* Not 0: end. */
};

/* The settings of a member of `group` that begins at the beginning, or at the end, where the group
 * has committed nothing; six pairs and NULL. */
#define CONSUME_GROUP_SETTINGS(group, begin)                                                       \
    {                                                                                              \
        "group.id", (group), "auto.offset.reset", (begin), "enable.auto.commit", "false",          \
            "enable.auto.offset.store", "true", "enable.partition.eof", "true",                    \
            "fetch.message.max.bytes", "4194304", NULL                                             \
    }

/* Join, print what comes, commit what was printed, leave. CLI_OK, or it was said. */
MUST_USE enum cli_exit consume_grouped(struct consume_grouped *grouped);

void consume_print(struct consume_printer *printer, const rd_kafka_message_t *message);
