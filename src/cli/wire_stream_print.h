/* wire_stream_print.h - how the frames of connections are printed, by `wire decode --pcap` and
 * `wire tap` alike: time, endpoints, how long an answer took, then as wire_print.h does. */
#pragma once

#include "cli/wire_print.h"
#include "cli/wire_stream.h"

struct wire_stream_printer {
    struct wire_printer *printer;
    enum cli_exit code; /* CLI_OK until printing fails. */
};

/* The visitor of a struct streams; `context` is the printer. */
bool wire_stream_print(void *context, const struct stream_event *event);
