/* man.c - `dohle man`: the manual page, made from the tables that `dohle help` prints. */
#include "cli/cli.h"
#include "cli/version.h"

#include <string.h>

/* Text as roff takes it: nothing in it is a request or an escape. */
static void put(struct out *out, const char *text, size_t size)
{
    bool first = true;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (first && (c == '.' || c == '\'')) out_text(out, "\\&");
        first = c == '\n';
        if (c == '\\')
            out_text(out, "\\e");
        else if (c == '-')
            out_text(out, "\\-");
        else
            out_char(out, c);
    }
}

static void put_text(struct out *out, const char *text)
{
    put(out, text, strlen(text));
}

static void put_option(struct out *out, const struct cli_option *option)
{
    out_text(out, ".TP\n.B ");
    if (option->letter != 0) out_format(out, "\\-%c, ", option->letter);
    out_text(out, "\\-\\-");
    put_text(out, option->name);
    if (option->value != NULL) {
        out_char(out, ' ');
        put_text(out, option->value);
    }
    out_char(out, '\n');
    put_text(out, option->about);
    out_char(out, '\n');
    if (option->choices == NULL) return;
    out_text(out, "One of: ");
    for (const char *at = option->choices; *at != '\0'; at++)
        if (*at == '|')
            out_text(out, ", ");
        else
            put(out, at, 1);
    out_text(out, ".\n");
}

/* Paragraphs; those that begin with a blank are set by hand. */
static void put_about(struct out *out, const char *text)
{
    while (*text != '\0') {
        const char *end = strstr(text, "\n\n");
        size_t size = end == NULL ? strlen(text) : (size_t)(end - text);
        out_text(out, text[0] == ' ' ? ".PP\n.nf\n" : ".PP\n");
        put(out, text, size);
        out_text(out, text[0] == ' ' ? "\n.fi\n" : "\n");
        text += size + (end == NULL ? 0 : 2);
    }
}

static void put_command(struct out *out, const struct cli_command *command)
{
    out_text(out, ".SS \"dohle ");
    put_text(out, command->name);
    out_text(out, "\"\n");
    put_text(out, command->summary);
    out_text(out, ".\n.PP\n.nf\n");
    const char *text = command->arguments;
    do {
        size_t size = strcspn(text, "\n");
        out_text(out, "dohle ");
        put_text(out, command->name);
        out_char(out, ' ');
        put(out, text, size);
        out_char(out, '\n');
        text += size + (text[size] == '\n');
    } while (*text != '\0');
    out_text(out, ".fi\n");
    for (const struct cli_option *option = command->options; option != NULL && option->name != NULL;
         option++)
        put_option(out, option);
    if (command->about != NULL) put_about(out, command->about);
}

static int run(struct cli *cli)
{
    struct out *out = &cli->out;
    out_text(out,
             ".TH DOHLE 1 \"\" \"dohle " DOHLE_VERSION "\" \"User Commands\"\n"
             ".SH NAME\ndohle \\- a Kafka server that can account for every byte and every "
             "heartbeat\n.SH SYNOPSIS\n.B dohle\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n"
             "A Kafka server in one program, with the commands to start it, to talk to it or to "
             "any other Kafka, and to look at what is on the wire and on the disk. Without "
             "arguments it lists its commands; \\fBdohle help\\fR \\fICOMMAND\\fR tells all about "
             "one, as below.\n.SH COMMANDS\n");
    for (int i = 0; i < cli_command_count; i++)
        put_command(out, cli_commands[i]);
    out_text(out,
             ".SH EXIT STATUS\n.TP\n.B 0\nDone.\n.TP\n.B 1\nThe input is bad or damaged, or the "
             "work could not be done.\n.TP\n.B 2\nThe command line is wrong.\n"
             ".SH SEE ALSO\n.BR kcat (1)\n");
    return CLI_OK;
}

extern const struct cli_command command_man;
const struct cli_command command_man = {
    .name = "man",
    .group = CLI_CHECK,
    .summary = "the manual page, for man(1)",
    .arguments = "",
    .about = "  dohle man > /usr/local/share/man/man1/dohle.1\n"
             "  dohle man | man -l -",
    .words_min = 0,
    .words_max = 0,
    .run = run,
};
