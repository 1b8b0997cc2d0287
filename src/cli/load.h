/* load.h - libraries that only one command needs, loaded when it runs (docs/decisions/0006). */
#pragma once

#include "cli/cli.h"

struct load_symbol {
    const char *name;
    void *place; /* Address of the function pointer to set. */
};

/* Load the library by one of its names (NULL-terminated) and set all symbols. CLI_OK; CLI_FAILED:
 * said, with the package that has it. What is loaded stays loaded. */
MUST_USE enum cli_exit load_library(struct cli *cli,
                                    const char *const *names,
                                    const char *package,
                                    const struct load_symbol *symbols,
                                    size_t count);
