/* wire_print.h - how decoded frames are printed, one after the other: a line, a tree or JSON each.
 */
#pragma once

#include "cli/wire.h"
#include "text/frame.h"

enum wire_print_style { WIRE_PRINT_LINE, WIRE_PRINT_TREE, WIRE_PRINT_JSON };

/* What --verbose and --json ask for. CLI_USAGE: both, and that was said. */
MUST_USE enum cli_exit wire_print_style(struct cli *cli, enum wire_print_style *out);

struct wire_printer {
    struct cli *cli;
    enum wire_print_style style;
    uint64_t frame_count;
    uint64_t damaged_count;
};

struct wire_printed {
    const struct frame_kind *kind; /* NULL: a request that is not known. */
    struct view frame;
    const char *prefix;      /* Before the line or tree; "" for none. */
    const char *json_prefix; /* Members that come first in the JSON object; "" for none. */
    const char *name;        /* What messages about it begin with: "frame 3". */
};

/* Print one frame; what is wrong with it goes to standard error and is counted. What is printed is
 * flushed from time to time. CLI_FAILED: standard output is gone or memory is. */
MUST_USE enum cli_exit wire_print(struct wire_printer *printer, const struct wire_printed *in);

/* Something else that is wrong, said like the problems of frames and counted. */
void wire_print_damage(struct wire_printer *printer, const char *name, const char *format, ...)
    PRINTF(3, 4);
