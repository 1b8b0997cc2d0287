/* say.h - log lines: what the server says to people, on one descriptor, one line each.
 *
 * Readable:  2026-11-30 06:03:11.042 warn net: connection from 10.0.0.7:51234 closed: frame too
 * long JSON:      {"time":"2026-11-30T06:03:11.042Z","level":"warn","part":"net","message":"..."}
 *
 * What a client sent is shown by say_bytes, which escapes it. A message is lower case, without full
 * stop; a hint follows after "; ". A kind of line that a client can cause is limited by a
 * struct say_limit: a flood costs SAY_LIMIT_LINES lines per SAY_LIMIT_MS and a count.
 *
 * Thread: any; a line is one write(2). No state but the struct's. */
#pragma once

#include "base/base.h"
#include "base/view.h"

enum say_level { SAY_DEBUG, SAY_INFO, SAY_WARN, SAY_ERROR };

struct say {
    int fd;               /* -1: nowhere. */
    enum say_level level; /* Lines below it are dropped before they are formatted. */
    bool json;
    /* The wall clock for the time stamp; NULL: the real one. The simulator gives its own. */
    int64_t (*wall_ms)(void *context);
    /* Where the finished line (with its newline) goes; NULL: to `fd`. */
    void (*sink)(void *context, const char *line, size_t size);
    void *context;
};

/* At most this many bytes a line; what is longer is cut and ends in "...". */
#define SAY_LINE_BYTES 2048u

/* Say one line. `part` is the folder or the subject: "net", "config". */
void say(const struct say *say, enum say_level level, const char *part, const char *format, ...)
    PRINTF(4, 5);

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
