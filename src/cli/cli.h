/* cli.h - what a command of the `dohle` program is, and how it reads its arguments.
 *
 * One file per command defines one `const struct cli_command command_x`; commands.c lists them.
 * Help, the screen of all commands and the shells' completions are made from these tables, so an
 * option exists only if it is documented.
 *
 * Exit codes: CLI_OK, CLI_FAILED (the input is bad or damaged, the work could not be done),
 * CLI_USAGE (the command line itself is wrong). */
#pragma once

#include "text/out.h"

#include <stdio.h>

enum cli_exit { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* The four parts of the screen that `dohle` alone prints. */
enum cli_group { CLI_RUN, CLI_TALK, CLI_LOOK, CLI_CHECK };

struct cli_option {
    const char *name;    /* "version" for --version */
    char letter;         /* 'v' for -v; 0: none. */
    const char *value;   /* What its value is called: "N", "FILE"; NULL: the option takes none. */
    const char *choices; /* "tree|rows|hex" if only these are allowed, else NULL. */
    const char *about;
};

/* The rows of a table of options: a flag, one with a value, one with a choice of values, the end.
 */
#define CLI_FLAG(name, letter, about)                                                              \
    {                                                                                              \
        name, letter, NULL, NULL, about                                                            \
    }
#define CLI_OPTION(name, letter, value, about)                                                     \
    {                                                                                              \
        name, letter, value, NULL, about                                                           \
    }
#define CLI_CHOICE(name, letter, value, choices, about)                                            \
    {                                                                                              \
        name, letter, value, choices, about                                                        \
    }
#define CLI_OPTIONS_END                                                                            \
    {                                                                                              \
        NULL, 0, NULL, NULL, NULL                                                                  \
    }

/* Options of one command, and words that are not options. */
#define CLI_OPTIONS_MAX 32
#define CLI_WORDS_MAX   64
#define CLI_GIVEN_MAX   256 /* Options on one command line, repeated ones included. */

struct cli;

struct cli_command {
    const char *name; /* "start", "wire show" */
    enum cli_group group;
    const char *summary;   /* One line of the screen, no full stop. */
    const char *arguments; /* "MESSAGE [--version N]"; a line for each way to call it. */
    const char *about;     /* Paragraphs of `dohle help`, parted by an empty line; may be NULL. */
    const struct cli_option *options; /* Ends with a NULL name; NULL: none. */
    int words_min, words_max;
    int (*run)(struct cli *cli); /* Returns an enum cli_exit. */
};

/* One run of a command. */
struct cli {
    const struct cli_command *command;
    const char *values[CLI_OPTIONS_MAX]; /* By option; "" for one without a value; NULL: absent. */
    struct {
        int option; /* Index in the command's table. */
        const char *value;
    } given[CLI_GIVEN_MAX]; /* All of them, in their order. */
    int given_count;
    const char *words[CLI_WORDS_MAX + 1];
    int word_count;
    struct mem *mem;
    struct out out; /* Written to standard output when the command returns. */
    FILE *errors;   /* Standard error. */
    bool color;     /* Standard output is a terminal that wants it. */
};

/* The value of an option that the command has; NULL if it was not given. */
const char *cli_value(const struct cli *cli, const char *name);
bool cli_has(const struct cli *cli, const char *name);

/* The values of an option that was given several times, in their order: the next one from `*at` on,
 * which begins as 0; NULL at the end. */
const char *cli_next(const struct cli *cli, const char *name, int *at);

/* A whole number given to an option.
 *   CLI_OK     *out is set; left alone if the option was not given.
 *   CLI_USAGE  it is no number or out of range; said on standard error. */
struct cli_range {
    long long min, max;
};
MUST_USE enum cli_exit cli_integer(struct cli *cli,
                                   const char *name,
                                   struct cli_range range,
                                   long long *out);

/* Read the command line after the command's name into `cli`, whose `command` and `errors` are set.
 * CLI_USAGE: wrong, and said on standard error with the nearest option that exists. */
MUST_USE enum cli_exit cli_parse(struct cli *cli, int argc, char **argv);

/* Say "dohle COMMAND: ..." on standard error; return `code`. */
int cli_fail(struct cli *cli, enum cli_exit code, const char *format, ...) PRINTF(3, 4);

/* Say "hint: ..." on standard error, after cli_fail. */
void cli_hint(struct cli *cli, const char *format, ...) PRINTF(2, 3);

/* Which one of these options was given: *given is its name, or NULL. `names` ends with NULL.
 * CLI_USAGE: more than one was, and that was said. */
MUST_USE enum cli_exit cli_only_one(struct cli *cli, const char *const *names, const char **given);

/* Say which word of the command line is missing, and how the command is called. Returns CLI_USAGE.
 */
int cli_missing(struct cli *cli);

/* Write what is in `cli->out` to standard output and empty it, for commands that print much.
 * CLI_FAILED: it could not be written, said on standard error. */
MUST_USE enum cli_exit cli_flush(struct cli *cli);

/* The whole of a file, "-" for standard input, at most `limit_bytes`; in memory of cli->mem of
 * `*room_bytes` to be given back by the caller. The null view: it failed and that was said. */
MUST_USE struct view cli_read_file(struct cli *cli,
                                   const char *path,
                                   size_t limit_bytes,
                                   size_t *room_bytes);

/* All commands, in the order of the screen. */
extern const struct cli_command *const cli_commands[];
extern const int cli_command_count;

/* Families of commands that share their first word: "wire". */
struct cli_family {
    const char *name;
    enum cli_group group;
    const char *summary;
};
extern const struct cli_family cli_families[];
extern const int cli_family_count;

/* The one screen; the commands of one family; the page of one command. */
void cli_screen(struct out *out);
void cli_family_help(struct out *out, const struct cli_family *family);
void cli_command_help(struct out *out, const struct cli_command *command);
