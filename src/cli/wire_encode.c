/* wire_encode.c - `dohle wire encode`: a message's JSON as the bytes of its frame. */
#include "base/limits.h"
#include "cli/wire.h"
#include "text/json.h"

#include <string.h>
#include <unistd.h>

static void say_fault(struct cli *cli, const struct json_fault *fault)
{
    if (fault->path[0] == '\0') {
        cli_fail(cli, CLI_FAILED, "the input %s", fault->text);
    } else {
        cli_fail(cli, CLI_FAILED, "%s %s", fault->path, fault->text);
    }
    if (fault->hint != NULL) cli_hint(cli, "did you mean %s?", fault->hint);
}

static int encode(struct cli *cli, const struct frame_kind *kind, struct view json)
{
    struct arena arena;
    struct json_fault fault;
    long long correlation = 0;
    const char *client = cli_value(cli, "client");
    const char *format = cli_value(cli, "format");

    if (cli_integer(cli, "correlation", (struct cli_range){INT32_MIN, INT32_MAX}, &correlation) !=
        CLI_OK)
        return CLI_USAGE;
    arena_init(&arena, cli->mem, 0);
    void *body = json_read(json, kind->message, kind->version, &arena, &fault);
    if (body == NULL) {
        say_fault(cli, &fault);
        arena_free(&arena);
        return CLI_FAILED;
    }
    struct frame_header header = {(int32_t)correlation,
                                  client == NULL ? VIEW_EMPTY : view_of_string(client)};
    struct view frame = frame_encode(kind, &header, body, &arena);
    bool hex = format == NULL ? isatty(STDOUT_FILENO) == 1 : strcmp(format, "hex") == 0;
    if (hex) {
        out_hex(&cli->out, frame);
        out_char(&cli->out, '\n');
    } else {
        out_view(&cli->out, frame);
    }
    arena_free(&arena);
    return frame.null ? cli_fail(cli, CLI_FAILED, "out of memory") : CLI_OK;
}

static int run(struct cli *cli)
{
    struct wire_choice choice;
    int16_t version;
    size_t room_bytes = 0;

    enum cli_exit code = wire_choose(cli, cli->words[0], &choice);
    if (code != CLI_OK) return (int)code;
    if (choice.count != 1) {
        cli_fail(cli, CLI_USAGE, "%s is two messages", cli->words[0]);
        cli_hint(cli, "did you mean %s or %s?", choice.messages[0]->name, choice.messages[1]->name);
        return CLI_USAGE;
    }
    code = wire_choose_version(cli, choice.messages[0], &version);
    if (code != CLI_OK) return (int)code;
    struct frame_kind kind = frame_kind_of(choice.messages[0], version);
    struct view json =
        cli_read_file(cli, cli->word_count > 1 ? cli->words[1] : "-", WIRE_INPUT_MAX, &room_bytes);
    if (json.null) return CLI_FAILED;
    int result = encode(cli, &kind, json);
    mem_put(cli->mem, (void *)(uintptr_t)json.data, room_bytes);
    return result;
}

static const struct cli_option options[] = {
    CLI_OPTION("version", 'V', "N", "Version of the message; the newest if not given."),
    CLI_OPTION("correlation", 'c', "N", "Correlation id of the header; the default is 0."),
    CLI_OPTION("client", 0, "ID", "Client id of a request's header; the default is empty."),
    CLI_CHOICE("format",
               'f',
               "FORMAT",
               "raw|hex",
               "Raw bytes or hex digits; the default is hex on a terminal, else raw."),
    CLI_OPTIONS_END,
};

const struct cli_command command_wire_encode = {
    .name = "wire encode",
    .group = CLI_LOOK,
    .summary = "a message's JSON as the bytes of its frame",
    .arguments =
        "MESSAGE [--version N] [--correlation N] [--client ID] [--format raw|hex] [FILE|-]",
    .about =
        "Reads the JSON of the message's body from standard input or FILE and writes the whole "
        "frame, its size and header included; a record gets the bytes that say its type and "
        "version. The JSON has the shape of Apache Kafka's own converters: field names with a "
        "small first letter, bytes and records as base64, UUIDs in Kafka's base64. A field that is "
        "left out has its default.\n\n"
        "  dohle wire show HeartbeatRequest -f json | dohle wire encode HeartbeatRequest -f hex",
    .options = options,
    .words_min = 1,
    .words_max = 2,
    .run = run,
};
