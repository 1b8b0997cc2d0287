/* options.c - reading a command line by the command's own table. See cli.h. */
#include "cli/cli.h"
#include "text/nearest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

static int option_count(const struct cli_command *command)
{
    int count = 0;
    while (command->options != NULL && command->options[count].name != NULL)
        count++;
    assert(count <= CLI_OPTIONS_MAX);
    return count;
}

/* Index of the option with this name or letter, or -1. */
static int option_find(const struct cli_command *command, struct view name, char letter)
{
    int count = option_count(command);
    for (int i = 0; i < count; i++) {
        const struct cli_option *option = &command->options[i];
        if (letter != 0 && option->letter == letter) return i;
        if (letter == 0 && view_is(name, option->name)) return i;
    }
    return -1;
}

const char *cli_value(const struct cli *cli, const char *name)
{
    int index = option_find(cli->command, view_of_string(name), 0);
    assert(index >= 0);
    return cli->values[index];
}

const char *cli_next(const struct cli *cli, const char *name, int *at)
{
    int index = option_find(cli->command, view_of_string(name), 0);
    assert(index >= 0);
    while (*at < cli->given_count) {
        int i = (*at)++;
        if (cli->given[i].option == index) return cli->given[i].value;
    }
    return NULL;
}

bool cli_has(const struct cli *cli, const char *name)
{
    return cli_value(cli, name) != NULL;
}

int cli_fail(struct cli *cli, enum cli_exit code, const char *format, ...)
{
    va_list arguments;
    fprintf(cli->errors, "dohle %s: ", cli->command->name);
    va_start(arguments, format);
    vfprintf(cli->errors, format, arguments);
    va_end(arguments);
    fputc('\n', cli->errors);
    return code;
}

void cli_hint(struct cli *cli, const char *format, ...)
{
    va_list arguments;
    fputs("hint: ", cli->errors);
    va_start(arguments, format);
    vfprintf(cli->errors, format, arguments);
    va_end(arguments);
    fputc('\n', cli->errors);
}

enum cli_exit cli_integer(struct cli *cli, const char *name, struct cli_range range, long long *out)
{
    const char *text = cli_value(cli, name);
    char *end = NULL;

    if (text == NULL) return CLI_OK;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (*text == '\0' || *end != '\0' || errno != 0)
        return (enum cli_exit)cli_fail(cli, CLI_USAGE, "--%s takes a whole number, not \"%s\"",
                                       name, text);
    if (number < range.min || number > range.max)
        return (enum cli_exit)cli_fail(cli, CLI_USAGE,
                                       "--%s takes a number from %lld to %lld, not %lld", name,
                                       range.min, range.max, number);
    *out = number;
    return CLI_OK;
}

enum cli_exit cli_only_one(struct cli *cli, const char *const *names, const char **given)
{
    *given = NULL;
    for (; *names != NULL; names++) {
        if (!cli_has(cli, *names)) continue;
        if (*given != NULL)
            return (enum cli_exit)cli_fail(cli, CLI_USAGE, "--%s and --%s exclude each other",
                                           *given, *names);
        *given = *names;
    }
    return CLI_OK;
}

/* The words of a usage line that are neither in brackets nor options: "MESSAGE", "V1". The one at
 * `index`; the null view if there are not so many. */
static struct view usage_word(const char *text, int index)
{
    while (*text != '\0' && *text != '\n') {
        size_t size = strcspn(text, "[ \n");
        if (*text == '[') {
            size = strcspn(text, "]\n") + 1; /* Usage lines close what they open. */
        } else if (size > 0 && *text != '-' && index-- == 0) {
            return view_of(text, (uint32_t)size);
        }
        text += MAX(size, (size_t)1);
    }
    return VIEW_NULL;
}

int cli_missing(struct cli *cli)
{
    const char *line = cli->command->arguments;
    struct view word = usage_word(line, cli->word_count);

    assert(!word.null); /* A command that needs words names them. */
    cli_fail(cli, CLI_USAGE, "%.*s is missing", (int)word.size, (const char *)word.data);
    for (const char *before = "usage"; *line != '\0'; before = "or") {
        int size = (int)strcspn(line, "\n");
        cli_hint(cli, "%s: dohle %s %.*s", before, cli->command->name, size, line);
        line += size + (line[size] == '\n');
    }
    return CLI_USAGE;
}

static enum cli_exit unknown_option(struct cli *cli, const char *text, struct view name)
{
    struct nearest nearest = nearest_to(name);
    int count = option_count(cli->command);

    for (int i = 0; i < count; i++)
        nearest_offer(&nearest, cli->command->options[i].name);
    cli_fail(cli, CLI_USAGE, "there is no option %s", text);
    if (nearest.best != NULL) {
        cli_hint(cli, "did you mean --%s?", nearest.best);
    } else {
        cli_hint(cli, "`dohle help %s` lists its options", cli->command->name);
    }
    return CLI_USAGE;
}

static bool is_choice(const char *choices, const char *value)
{
    size_t size = strlen(value);
    for (const char *at = choices; at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        size_t choice = strcspn(at, "|");
        if (choice == size && memcmp(at, value, size) == 0) return true;
        if (at[choice] == '\0') return false;
    }
    return false;
}

/* The value of option `index`, `inline_value` or the next argument. */
static enum cli_exit take_value(struct cli *cli,
                                int index,
                                const char *inline_value,
                                char **next,
                                int *used)
{
    const struct cli_option *option = &cli->command->options[index];

    *used = 0;
    if (option->value == NULL) {
        if (inline_value != NULL)
            return (enum cli_exit)cli_fail(cli, CLI_USAGE, "--%s takes no value", option->name);
        cli->values[index] = "";
        return CLI_OK;
    }
    const char *value = inline_value;
    if (value == NULL && *next != NULL) {
        value = *next;
        *used = 1;
    }
    if (value == NULL)
        return (enum cli_exit)cli_fail(cli, CLI_USAGE, "--%s needs its value %s", option->name,
                                       option->value);
    if (option->choices != NULL && !is_choice(option->choices, value))
        return (enum cli_exit)cli_fail(cli, CLI_USAGE, "--%s is one of %s, not \"%s\"",
                                       option->name, option->choices, value);
    cli->values[index] = value;
    if (cli->given_count == CLI_GIVEN_MAX)
        return (enum cli_exit)cli_fail(cli, CLI_USAGE, "more than %d options", CLI_GIVEN_MAX);
    cli->given[cli->given_count].option = index;
    cli->given[cli->given_count++].value = value;
    return CLI_OK;
}

/* One argument that begins with a dash. */
static enum cli_exit take_option(struct cli *cli, char **argv, int *used)
{
    const char *text = argv[0];

    if (text[1] != '-') {
        int index = option_find(cli->command, VIEW_NULL, text[1]);
        if (index < 0) return unknown_option(cli, text, view_of_string(text + 1));
        return take_value(cli, index, text[2] != '\0' ? text + 2 : NULL, argv + 1, used);
    }
    const char *equals = strchr(text, '=');
    size_t size = equals == NULL ? strlen(text + 2) : (size_t)(equals - text - 2);
    struct view name = view_of(text + 2, (uint32_t)size);
    int index = option_find(cli->command, name, 0);
    if (index < 0) return unknown_option(cli, text, name);
    return take_value(cli, index, equals == NULL ? NULL : equals + 1, argv + 1, used);
}

enum cli_exit cli_parse(struct cli *cli, int argc, char **argv)
{
    const struct cli_command *command = cli->command;
    bool only_words = false;

    for (int i = 0; i < argc; i++) {
        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
        } else if (!only_words && argv[i][0] == '-' && argv[i][1] != '\0') {
            int used = 0;
            enum cli_exit code = take_option(cli, argv + i, &used);
            if (code != CLI_OK) return code;
            i += used;
        } else if (cli->word_count < MIN(command->words_max, CLI_WORDS_MAX)) {
            cli->words[cli->word_count++] = argv[i];
        } else {
            return (enum cli_exit)cli_fail(cli, CLI_USAGE, "does not know what to do with \"%s\"",
                                           argv[i]);
        }
    }
    return cli->word_count < command->words_min ? (enum cli_exit)cli_missing(cli) : CLI_OK;
}

enum cli_exit cli_flush(struct cli *cli)
{
    const char *at = cli->out.text;
    size_t left = cli->out.size_bytes;

    if (cli->out.failed)
        return (enum cli_exit)cli_fail(cli, CLI_FAILED, "the text does not fit in memory");
    while (left > 0) {
        ssize_t written = write(STDOUT_FILENO, at, left);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0)
            return (enum cli_exit)cli_fail(
                cli, CLI_FAILED, "could not write to standard output: %s", strerror(errno));
        at += written;
        left -= (size_t)written;
    }
    out_reset(&cli->out);
    return CLI_OK;
}

/* Read what is left of `fd` into `out`; 0, or the errno (EFBIG: more than the limit). */
static int read_all(int fd, struct out *out, size_t limit_bytes)
{
    char block[16384];
    for (;;) {
        ssize_t got = read(fd, block, sizeof(block));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno;
        if (got == 0) return out->failed ? ENOMEM : 0;
        if (out->size_bytes + (size_t)got > limit_bytes) return EFBIG;
        out_bytes(out, block, (size_t)got);
    }
}

struct view cli_read_file(struct cli *cli, const char *path, size_t limit_bytes, size_t *room_bytes)
{
    struct out bytes;
    bool standard = strcmp(path, "-") == 0;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        cli_fail(cli, CLI_FAILED, "could not open \"%s\": %s", path, strerror(errno));
        return VIEW_NULL;
    }
    out_init(&bytes, cli->mem);
    int error = read_all(fd, &bytes, limit_bytes);
    if (!standard) close(fd);
    if (error == EFBIG) {
        cli_fail(cli, CLI_FAILED, "\"%s\" has more than %zu bytes", path, limit_bytes);
    } else if (error != 0) {
        cli_fail(cli, CLI_FAILED, "could not read \"%s\": %s", path, strerror(error));
    }
    if (error != 0) {
        out_free(&bytes);
        return VIEW_NULL;
    }
    *room_bytes = bytes.room_bytes;
    return out_so_far(&bytes);
}
