/* load.c - see load.h. */
#include "cli/load.h"

#include <dlfcn.h>
#include <string.h>

enum cli_exit load_library(struct cli *cli,
                           const char *const *names,
                           const char *package,
                           const struct load_symbol *symbols,
                           size_t count)
{
#ifdef DOHLE_STATIC
    /* A shared library would bring a second libc into a program that has its own. */
    cli_fail(cli, CLI_FAILED, "this is the static program, which cannot load %s", names[0]);
    cli_hint(cli, "the command is in the package dohle, with %s", package);
    return CLI_FAILED;
#endif
    void *library = NULL;
    for (size_t i = 0; names[i] != NULL && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        cli_fail(cli, CLI_FAILED, "could not load %s: %s", names[0], dlerror());
        cli_hint(cli, "install the package %s", package);
        return CLI_FAILED;
    }
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(library, symbols[i].name);
        if (found == NULL)
            return (enum cli_exit)cli_fail(cli, CLI_FAILED, "%s has no %s: its version is too old",
                                           names[0], symbols[i].name);
        memcpy(symbols[i].place, &found,
               sizeof(found)); /* C has no cast from object to function. */
    }
    return CLI_OK;
}
