/* help.c - the one screen of commands, and the page of each. See cli.h. */
#include "cli/cli.h"

#include <string.h>

enum { NAME_COLUMN = 2, SUMMARY_COLUMN = 20, SCREEN_COLUMNS = 80 };

static const char *const group_names[] = {"run", "talk", "look", "check"};

/* Is `command` of the family with this name? */
static bool in_family(const struct cli_command *command, const struct cli_family *family)
{
    size_t size = strlen(family->name);
    return strncmp(command->name, family->name, size) == 0 && command->name[size] == ' ';
}

static bool in_any_family(const struct cli_command *command)
{
    for (int i = 0; i < cli_family_count; i++)
        if (in_family(command, &cli_families[i])) return true;
    return false;
}

static void entry(struct out *out, const char *name, const char *summary)
{
    out_repeat(out, ' ', NAME_COLUMN);
    out_text(out, name);
    out_char(out, ' ');
    out_column(out, SUMMARY_COLUMN);
    out_wrapped(out, summary, SUMMARY_COLUMN, SCREEN_COLUMNS);
    out_char(out, '\n');
}

static void screen_group(struct out *out, enum cli_group group)
{
    size_t before = out->size_bytes;

    out_format(out, "\n%s\n", group_names[group]);
    size_t heading = out->size_bytes;
    for (int i = 0; i < cli_command_count; i++)
        if (cli_commands[i]->group == group && !in_any_family(cli_commands[i]))
            entry(out, cli_commands[i]->name, cli_commands[i]->summary);
    for (int i = 0; i < cli_family_count; i++) {
        if (cli_families[i].group != group) continue;
        size_t start = out->size_bytes;
        out_format(out, "  %s ...", cli_families[i].name);
        out_column(out, SUMMARY_COLUMN);
        out_wrapped(out, cli_families[i].summary, SUMMARY_COLUMN, SCREEN_COLUMNS);
        out_char(out, '\n');
        assert(out->failed || out->size_bytes > start);
    }
    if (out->size_bytes == heading) out->size_bytes = before;
}

void cli_screen(struct out *out)
{
    out_text(out, "dohle: a Kafka server that can account for every byte and every heartbeat\n\n"
                  "usage: dohle COMMAND [OPTIONS]\n");
    for (int group = CLI_RUN; group <= CLI_CHECK; group++)
        screen_group(out, (enum cli_group)group);
    out_text(out,
             "\n`dohle help COMMAND` tells all about one; `dohle --version` names this one.\n");
}

void cli_family_help(struct out *out, const struct cli_family *family)
{
    out_format(out, "dohle %s: ", family->name);
    out_wrapped(out, family->summary, 4, SCREEN_COLUMNS);
    out_text(out, "\n\n");
    for (int i = 0; i < cli_command_count; i++)
        if (in_family(cli_commands[i], family))
            entry(out, cli_commands[i]->name, cli_commands[i]->summary);
    out_format(out, "\n`dohle help %s COMMAND` tells all about one.\n", family->name);
}

static void option_help(struct out *out, const struct cli_option *option)
{
    if (option->letter != 0) {
        out_format(out, "  -%c, --%s", option->letter, option->name);
    } else {
        out_format(out, "      --%s", option->name);
    }
    if (option->value != NULL) out_format(out, " %s", option->value);
    out_char(out, ' ');
    out_column(out, 26);
    out_wrapped(out, option->about, 26, SCREEN_COLUMNS);
    out_char(out, '\n');
    if (option->choices == NULL) return;
    out_column(out, 26);
    for (const char *at = option->choices; *at != '\0'; at++)
        if (*at == '|') {
            out_text(out, ", ");
        } else {
            out_char(out, *at);
        }
    out_char(out, '\n');
}

static void paragraphs(struct out *out, const char *text)
{
    while (*text != '\0') {
        const char *end = strstr(text, "\n\n");
        size_t size = end == NULL ? strlen(text) : (size_t)(end - text);
        char paragraph[2048];
        assert(size < sizeof(paragraph));
        memcpy(paragraph, text, size);
        paragraph[size] = '\0';
        out_char(out, '\n');
        if (text[0] == ' ') {
            out_text(out, paragraph); /* Set by hand: an example or a table. */
        } else {
            out_wrapped(out, paragraph, 0, SCREEN_COLUMNS);
        }
        out_char(out, '\n');
        text += size + (end == NULL ? 0 : 2);
    }
}

/* One line for each way to call it; they are parted by line ends in `arguments`. */
static void usage(struct out *out, const struct cli_command *command)
{
    char line[512];
    const char *text = command->arguments;

    do {
        size_t size = strcspn(text, "\n");
        assert(size < sizeof(line));
        memcpy(line, text, size);
        line[size] = '\0';
        out_format(out, "%s dohle %s ",
                   text == command->arguments ? "usage:" : "   or:", command->name);
        out_wrapped(out, line, 11, SCREEN_COLUMNS);
        out_trim(out);
        out_char(out, '\n');
        text += size + (text[size] == '\n');
    } while (*text != '\0');
}

void cli_command_help(struct out *out, const struct cli_command *command)
{
    out_format(out, "dohle %s: ", command->name);
    out_wrapped(out, command->summary, 4, SCREEN_COLUMNS);
    out_text(out, "\n\n");
    usage(out, command);
    if (command->options != NULL) {
        out_char(out, '\n');
        for (const struct cli_option *option = command->options; option->name != NULL; option++)
            option_help(out, option);
    }
    if (command->about != NULL) paragraphs(out, command->about);
}
