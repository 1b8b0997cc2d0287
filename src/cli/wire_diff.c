/* wire_diff.c - `dohle wire diff`: what changed between two versions of an API or a message. */
#include "cli/wire.h"
#include "text/diff.h"
#include "text/frame.h"
#include "text/schema.h"

#include <stdlib.h>

static enum cli_exit read_version(struct cli *cli,
                                  const char *text,
                                  const struct wire_message *message,
                                  int16_t *out)
{
    char *end;
    const char *digits = text[0] == 'v' ? text + 1 : text;
    long version = strtol(digits, &end, 10);

    if (digits[0] == '\0' || *end != '\0')
        return (enum cli_exit)cli_fail(cli, CLI_USAGE, "\"%s\" is no version", text);
    if (version < message->version_min || version > message->version_max)
        return (enum cli_exit)cli_fail(cli, CLI_USAGE, "%s has versions %d to %d, not %ld",
                                       message->name, message->version_min, message->version_max,
                                       version);
    *out = (int16_t)version;
    return CLI_OK;
}

static void put_header_change(struct out *out,
                              const struct wire_message *message,
                              struct wire_versions versions)
{
    struct frame_kind before = frame_kind_of(message, versions.min);
    struct frame_kind after = frame_kind_of(message, versions.max);
    if (before.header_version != after.header_version)
        out_format(out, "  ~ the header is v%d, was v%d\n", after.header_version,
                   before.header_version);
}

/* The notes of the versions that lie between. */
static void put_notes(struct out *out,
                      const struct wire_message *message,
                      struct wire_versions versions)
{
    int16_t low = MIN(versions.min, versions.max), high = MAX(versions.min, versions.max);
    struct out note;

    out_init(&note, out->mem);
    for (int16_t v = (int16_t)(low + 1); v <= high; v++) {
        out_reset(&note);
        schema_note(&note, message, v);
        if (note.size_bytes == 0) continue;
        out_char(&note, '\0');
        if (note.failed) break;
        out_format(out, "  version %d ", v);
        out_wrapped(out, note.text, 4, 100);
        out_char(out, '\n');
    }
    out_free(&note);
}

static bool put_message(struct cli *cli,
                        const struct wire_message *message,
                        struct wire_versions versions)
{
    struct arena arena;
    struct diff diff;

    arena_init(&arena, cli->mem, 0);
    diff_message(&diff, message, versions, &arena);
    out_format(&cli->out, "%s v%d -> v%d\n", message->name, versions.min, versions.max);
    put_header_change(&cli->out, message, versions);
    for (uint32_t i = 0; i < diff.count; i++) {
        out_text(&cli->out, "  ");
        diff_print(&cli->out, &diff.changes[i]);
    }
    if (diff.count == 0) out_text(&cli->out, "  the same layout\n");
    put_notes(&cli->out, message, versions);
    arena_free(&arena);
    return !diff.failed;
}

static int run(struct cli *cli)
{
    struct wire_choice choice;
    enum cli_exit code = wire_choose(cli, cli->words[0], &choice);

    for (int i = 0; code == CLI_OK && i < choice.count; i++) {
        struct wire_versions versions;
        code = read_version(cli, cli->words[1], choice.messages[i], &versions.min);
        if (code == CLI_OK)
            code = read_version(cli, cli->words[2], choice.messages[i], &versions.max);
        if (code != CLI_OK) break;
        if (i > 0) out_char(&cli->out, '\n');
        if (!put_message(cli, choice.messages[i], versions))
            return cli_fail(cli, CLI_FAILED, "out of memory");
    }
    return (int)code;
}

const struct cli_command command_wire_diff = {
    .name = "wire diff",
    .group = CLI_LOOK,
    .summary = "what changed between two versions of an API or message",
    .arguments = "API V1 V2",
    .about = "Prints the fields that are new (+), gone (-) or different (~) in V2, and what the "
             "schema says about the versions between. API may also be one message or a record.",
    .words_min = 3,
    .words_max = 3,
    .run = run,
};
