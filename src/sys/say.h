/* say.h - log lines: what the server says to people, on one descriptor, one line each.
 *
 * Readable:  2026-11-30 06:03:11.042 warn net: connection from 10.0.0.7:51234 closed: frame too
 * long JSON:      {"time":"2026-11-30T06:03:11.042Z","level":"warn","part":"net","message":"..."}
 *
 * What a client sent is shown by say_bytes, which escapes it. A message is lower case, without full
 * stop; a hint follows after "; ". A kind of line that a client can cause is limited by a
 * struct say_limit: a flood costs SAY_LIMIT_LINES lines per SAY_LIMIT_MS and a count.
 *
 * Thread: any; a line is one write(2). No state but the structs'. */
#pragma once

#include <stdatomic.h>

#include "base/base.h"
#include "base/view.h"

/* No line is a TRACE or a FATAL: they only bound what is said, everything or nothing. */
enum say_level { SAY_TRACE, SAY_DEBUG, SAY_INFO, SAY_WARN, SAY_ERROR, SAY_FATAL };

/* What a line is about; each is one of Kafka's loggers too, by the word that the line shows. No
 * line is of the root: it is what holds for the areas that have no level of their own. */
enum say_area {
    SAY_IN_ROOT,
    SAY_IN_BROKER,
    SAY_IN_CONFIG,
    SAY_IN_CONSOLE,
    SAY_IN_CONTROLLER,
    SAY_IN_GROUP,
    SAY_IN_LOG,
    SAY_IN_NET,
    SAY_IN_NODE,
    SAY_IN_QUOTA,
    SAY_IN_REQUEST,
    SAY_IN_START,
    SAY_AREAS
};

/* The least that is said, by area; may change while lines are said. Zero is not a start. */
struct say_levels {
    _Atomic uint8_t root;
    _Atomic uint8_t own[SAY_AREAS]; /* A level and one, or 0: as the root. */
};

struct say {
    int fd;                    /* -1: nowhere. */
    struct say_levels *levels; /* NULL: SAY_INFO everywhere. */
    bool json;
    /* The wall clock for the time stamp; NULL: the real one. The simulator gives its own. */
    int64_t (*wall_ms)(void *context);
    /* Where the finished line (with its newline) goes; NULL: to `fd`. */
    void (*sink)(void *context, const char *line, size_t size);
    void *context;
};

/* At most this many bytes a line; what is longer is cut and ends in "...". */
#define SAY_LINE_BYTES 2048u

/* Say one line, or drop it before it is formatted. */
void say(const struct say *say, enum say_level level, enum say_area area, const char *format, ...)
    PRINTF(4, 5);

/* All areas at this level. */
void say_levels_init(struct say_levels *levels, enum say_level root);

/* Set an area's level, or take it away: then the root's holds. The root's cannot be taken away. */
void say_set(struct say_levels *levels, enum say_area area, enum say_level level);
void say_unset(struct say_levels *levels, enum say_area area);

/* The level that holds. Two loads at most. */
static inline enum say_level say_level_of(const struct say *say, enum say_area area)
{
    if (say->levels == NULL) return SAY_INFO;
    uint8_t own = atomic_load_explicit(&say->levels->own[area], memory_order_relaxed);
    if (own > 0) return (enum say_level)(own - 1);
    return (enum say_level)atomic_load_explicit(&say->levels->root, memory_order_relaxed);
}

/* Would a line be said? Asked before a line whose words cost something. */
static inline bool say_on(const struct say *say, enum say_level level, enum say_area area)
{
    return level >= say_level_of(say, area);
}

/* "net"; "root". */
const char *say_area_name(enum say_area area);

/* What a negative errno means: "No space left on device". Static text. */
const char *say_errno(int error);

/* One kind of line that clients can cause. Zero is its start. */
struct say_limit {
    int64_t window_start_ms;
    uint32_t said;    /* In this window. */
    uint32_t dropped; /* Since the last line that was said. */
};

#define SAY_LIMIT_LINES 10u
#define SAY_LIMIT_MS    10000

/* Whether a line of this kind may be said at `now_ms`. `*dropped` tells how many were not said
 * since the last one: put it into the line if it is not 0. */
MUST_USE bool say_allowed(struct say_limit *limit, int64_t now_ms, uint32_t *dropped);

/* The bytes of a view as printable text: controls, quotes and what is not UTF-8 as \xNN, cut to
 * what fits. Returns `out`, always terminated. `size` >= 8. "null" for the null view. */
const char *say_bytes(struct view bytes, char *out, size_t size);
