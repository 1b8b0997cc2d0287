/* start_tap.h - `dohle start --tap FILE`: all bytes of all connections into a capture. */
#pragma once

#include "base/limits.h"
#include "base/map.h"
#include "cli/cli.h"
#include "io/io.h"

struct start_tap;

/* What one handle shows; its connections by their stream. */
struct start_tap_handle {
    struct io_tap tap;
    struct start_tap *all;
    struct io *io;
    struct map flows;
};

struct start_tap {
    int _Atomic fd; /* -1: off. */
    struct start_tap_handle handles[NET_SHARDS_MAX];
    uint32_t handle_count;
};

/* Make the file that --tap names, if it was given. CLI_OK, or it was said. */
MUST_USE enum cli_exit start_tap_begin(struct cli *cli, struct start_tap *tap);

/* Show all streams of this handle, before it has any. Nothing, if --tap was not given. */
void start_tap_add(struct start_tap *tap, struct io *io);

/* Before the handles are freed, when nothing turns any more. */
void start_tap_end(struct start_tap *tap);
