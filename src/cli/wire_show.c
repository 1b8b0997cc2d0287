/* wire_show.c - `dohle wire show`: one message's sample instance in the view that is asked for. */
#include "cli/wire.h"
#include "text/frame.h"
#include "text/json.h"
#include "text/schema.h"
#include "text/tree.h"

#include <string.h>

enum format { TREE, ROWS, HEX, TSV, JSON, SCHEMA };

static enum format format_of(const char *text)
{
    static const char *const names[] = {"tree", "rows", "hex", "tsv", "json", "schema"};
    for (size_t i = 0; text != NULL && i < ARRAY_SIZE(names); i++)
        if (strcmp(text, names[i]) == 0) return (enum format)i;
    return TREE;
}

/* The body's JSON, which `wire encode` reads. */
static void print_json(struct cli *cli,
                       const struct frame_kind *kind,
                       const struct node_list *list,
                       struct view frame)
{
    struct out json;
    uint32_t at = 0;

    bool reached = frame_body_at(list, kind, &at);
    assert(reached); /* A sample is whole. */
    out_init(&json, cli->mem);
    (void)json_write(&json, wire_form(kind->message, kind->version),
                     view_of(frame.data + at, frame.size - at));
    json_pretty(&cli->out, out_so_far(&json));
    out_free(&json);
}

static void print_sample(struct cli *cli,
                         const struct frame_kind *kind,
                         struct arena *arena,
                         enum format format)
{
    struct view frame = frame_sample(kind, arena);
    struct node_list list;
    struct tree_style style = {.color = cli->color, .about_max = TREE_ABOUT_MAX};

    node_list_init(&list, arena);
    if (frame.null) return;
    if (format == SCHEMA) {
        schema_print(&cli->out, kind->message, kind->version);
        return;
    }
    frame_nodes(&list, kind, frame);
    if (format == JSON) {
        print_json(cli, kind, &list, frame);
        return;
    }
    switch (format) {
    case HEX:
        out_hex(&cli->out, frame);
        out_char(&cli->out, '\n');
        break;
    case TSV: tree_tsv(&cli->out, &list); break;
    case ROWS:
        tree_rows(&cli->out, &list, frame, &style);
        tree_legend(&cli->out, &style);
        break;
    default: tree_print(&cli->out, &list, &style);
    }
}

static int run(struct cli *cli)
{
    struct wire_choice choice;
    enum format format = format_of(cli_value(cli, "format"));
    enum cli_exit code = wire_choose(cli, cli->words[0], &choice);

    for (int i = 0; code == CLI_OK && i < choice.count; i++) {
        const struct wire_message *message = choice.messages[i];
        int16_t version;
        code = wire_choose_version(cli, message, &version);
        if (code != CLI_OK) break;
        struct frame_kind kind = frame_kind_of(message, version);
        struct arena arena;
        arena_init(&arena, cli->mem, 0);
        if (i > 0 && format != HEX) out_char(&cli->out, '\n');
        print_sample(cli, &kind, &arena, format);
        bool failed = arena.failed;
        arena_free(&arena);
        if (failed) return cli_fail(cli, CLI_FAILED, "out of memory");
    }
    return (int)code;
}

static const struct cli_option options[] = {
    CLI_OPTION("version", 'V', "N", "Version of the message; the newest if not given."),
    CLI_CHOICE("format",
               'f',
               "FORMAT",
               "tree|rows|hex|tsv|json|schema",
               "How to print it; the default is tree."),
    CLI_OPTIONS_END,
};

const struct cli_command command_wire_show = {
    .name = "wire show",
    .group = CLI_LOOK,
    .summary = "one message: object tree, bytes, table, JSON or schema",
    .arguments = "MESSAGE [--version N] [--format tree|rows|hex|tsv|json|schema]",
    .about =
        "MESSAGE is an API (Heartbeat, or its key 12: request and response), one message "
        "(HeartbeatRequest), or a record that Kafka keeps in its logs (TopicRecord).\n\n"
        "What is shown is the smallest legal instance with one element in each array: numbers are "
        "zero, strings and bytes empty, no tagged fields, and a records field holds one empty "
        "record batch of 61 bytes. Requests and responses stand in their frame with their header, "
        "records behind the bytes that say their type and version.",
    .options = options,
    .words_min = 1,
    .words_max = 1,
    .run = run,
};
