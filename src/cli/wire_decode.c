/* wire_decode.c - `dohle wire decode`: frames given as hex, as a file or on standard input.
 *
 * Bytes may be raw or hex digits (with blanks); frames may follow one another, as on a connection.
 */
#include "base/limits.h"
#include "cli/wire_pcap.h"
#include "cli/wire_print.h"

#include <string.h>
#include <unistd.h>

struct input {
    struct view bytes;
    size_t room_bytes; /* To give back; 0: not taken. */
};

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == ':' || c == '-';
}

/* Is all of it hex digits and what may stand between them? */
static bool is_hex(struct view text)
{
    bool any = false;
    for (uint32_t i = 0; i < text.size; i++) {
        bool digit = hex_digit(text.data[i]) >= 0;
        if (!digit && !is_blank(text.data[i])) return false;
        any = any || digit;
    }
    return any;
}

/* The bytes of hex digits; false if their number is odd or there is no memory. */
static bool hex_bytes(struct cli *cli, struct view text, struct input *out)
{
    uint8_t *bytes = mem_get(cli->mem, text.size + 1u);
    uint32_t digits = 0;

    if (bytes == NULL) return false;
    for (uint32_t i = 0; i < text.size; i++) {
        int digit = hex_digit(text.data[i]);
        if (digit < 0) continue;
        bytes[digits / 2] = (uint8_t)(bytes[digits / 2] << 4 | digit);
        digits++;
    }
    *out = (struct input){view_of(bytes, digits / 2), text.size + 1u};
    return digits % 2 == 0;
}

static enum cli_exit read_input(struct cli *cli, const char *word, struct input *out)
{
    bool file = strcmp(word, "-") == 0 || access(word, F_OK) == 0;
    struct input raw = {.bytes = view_of_string(word)};

    if (file) {
        raw.bytes = cli_read_file(cli, word, WIRE_INPUT_MAX, &raw.room_bytes);
        if (raw.bytes.null) return CLI_FAILED;
    } else if (!is_hex(raw.bytes)) {
        return (enum cli_exit)cli_fail(
            cli, CLI_USAGE, "\"%s\" is neither hex digits nor a file that is there", word);
    }
    if (!is_hex(raw.bytes)) {
        *out = raw;
        return CLI_OK;
    }
    bool fine = hex_bytes(cli, raw.bytes, out);
    if (raw.room_bytes > 0) mem_put(cli->mem, (void *)(uintptr_t)raw.bytes.data, raw.room_bytes);
    if (fine) return CLI_OK;
    if (out->room_bytes > 0) mem_put(cli->mem, (void *)(uintptr_t)out->bytes.data, out->room_bytes);
    return (enum cli_exit)cli_fail(cli, CLI_FAILED,
                                   "an odd number of hex digits: the last byte is cut");
}

/* What the frames must be, if the user says so. */
struct wanted {
    const struct wire_api *api; /* NULL: requests that say it themselves. */
    const struct wire_message *record;
    bool response;
    bool has_version;
    int16_t version;
};

static enum cli_exit read_wanted(struct cli *cli, struct wanted *out)
{
    static const char *const names[] = {"request", "response", "record", NULL};
    struct wire_choice choice;
    const char *given;
    enum cli_exit code = cli_only_one(cli, names, &given);

    if (code != CLI_OK) return code;
    out->has_version = cli_has(cli, "version");
    if (given == NULL) {
        if (!out->has_version) return CLI_OK;
        return (enum cli_exit)cli_fail(cli, CLI_USAGE,
                                       "--version needs --request, --response or --record");
    }
    const struct wire_message *message;
    if (strcmp(given, "record") == 0) {
        code = wire_choose(cli, cli_value(cli, given), &choice);
        if (code == CLI_OK && choice.api != NULL)
            return (enum cli_exit)cli_fail(cli, CLI_USAGE, "%s is no record",
                                           cli_value(cli, given));
        message = out->record = code == CLI_OK ? choice.messages[0] : NULL;
    } else {
        code = wire_choose_api(cli, cli_value(cli, given), &out->api);
        out->response = strcmp(given, "response") == 0;
        message = code != CLI_OK ? NULL : out->response ? out->api->response : out->api->request;
    }
    if (code != CLI_OK) return code;
    if (out->response && !out->has_version) {
        cli_fail(cli, CLI_USAGE, "a response does not say its version: give --version N");
        return CLI_USAGE;
    }
    return wire_choose_version(cli, message, &out->version);
}

/* What this frame is; false: it cannot be known. A request that is another one than was asked for
 * is damage. */
static bool kind_of(struct wire_printer *printer,
                    const struct wanted *wanted,
                    struct view frame,
                    const char *name,
                    struct frame_kind *out)
{
    if (wanted->response) {
        *out = frame_kind_of(wanted->api->response, wanted->version);
        return true;
    }
    if (frame_request_kind(frame, out) != FRAME_KNOWN) return false;
    if (wanted->api != NULL && out->api != wanted->api)
        wire_print_damage(printer, name, "is a request for %s, not %s", out->api->name,
                          wanted->api->name);
    if (wanted->has_version && out->version != wanted->version)
        wire_print_damage(printer, name, "is in version %d, not %d", out->version, wanted->version);
    return true;
}

static enum cli_exit decode_record(struct wire_printer *printer,
                                   const struct wanted *wanted,
                                   struct view bytes)
{
    int16_t version = wanted->version;
    struct frame_kind kind;

    if (!frame_record_kind(wanted->record, bytes, &version, &kind)) {
        if (version < 0) {
            wire_print_damage(printer, "record",
                              "damaged at 0x0000 in version: the record ends before it");
        } else {
            wire_print_damage(printer, "record",
                              "damaged at 0x0000 in version: %s has versions %d to %d, not %d",
                              wanted->record->name, wanted->record->version_min,
                              wanted->record->version_max, version);
        }
        return CLI_OK;
    }
    struct wire_printed printed = {&kind, bytes, "", "", "record"};
    printer->style = printer->style == WIRE_PRINT_LINE ? WIRE_PRINT_TREE : printer->style;
    return wire_print(printer, &printed);
}

static enum cli_exit decode_frames(struct wire_printer *printer,
                                   const struct wanted *wanted,
                                   struct view bytes)
{
    uint32_t at = 0;
    enum cli_exit code = CLI_OK;

    while (at < bytes.size && code == CLI_OK) {
        uint32_t left = bytes.size - at;
        uint32_t size = left < 4 ? left : load_be32(bytes.data + at);
        /* The last frame may be cut; it is shown up to there. */
        uint32_t whole = left < 4 || size > left - 4 ? left : size + 4;
        struct view frame = view_of(bytes.data + at, whole);
        struct frame_kind kind;
        char name[64];
        snprintf(name, sizeof(name), "frame %llu", (unsigned long long)printer->frame_count + 1);
        bool known = kind_of(printer, wanted, frame, name, &kind);
        struct wire_printed printed = {known ? &kind : NULL, frame, "", "", name};
        code = wire_print(printer, &printed);
        at += whole;
    }
    return code;
}

static int decode_pcap(struct wire_printer *printer, const struct wanted *wanted)
{
    struct cli *cli = printer->cli;
    long long port = 0;

    if (wanted->api != NULL || wanted->record != NULL || cli->word_count > 0)
        return cli_fail(cli, CLI_USAGE,
                        "--pcap FILE is the whole input, and says itself what it holds");
    if (cli_integer(cli, "port", (struct cli_range){1, UINT16_MAX}, &port) != CLI_OK)
        return CLI_USAGE;
    enum cli_exit code = wire_pcap(printer, cli_value(cli, "pcap"), (uint16_t)port);
    if (code != CLI_OK) return (int)code;
    return printer->damaged_count > 0 ? CLI_FAILED : CLI_OK;
}

static int run(struct cli *cli)
{
    struct wanted wanted = {0};
    struct input input = {0};
    struct wire_printer printer = {.cli = cli};

    enum cli_exit code = read_wanted(cli, &wanted);
    if (code != CLI_OK) return (int)code;
    code = wire_print_style(cli, &printer.style);
    if (code != CLI_OK) return (int)code;
    if (cli_has(cli, "pcap")) return decode_pcap(&printer, &wanted);
    if (cli_has(cli, "port")) return cli_fail(cli, CLI_USAGE, "--port needs --pcap");
    if (cli->word_count == 0) return cli_missing(cli);
    code = read_input(cli, cli->words[0], &input);
    if (code != CLI_OK) return (int)code;
    code = wanted.record != NULL ? decode_record(&printer, &wanted, input.bytes)
                                 : decode_frames(&printer, &wanted, input.bytes);
    if (printer.frame_count == 0 && printer.damaged_count == 0)
        wire_print_damage(&printer, "input", "is empty");
    if (input.room_bytes > 0)
        mem_put(cli->mem, (void *)(uintptr_t)input.bytes.data, input.room_bytes);
    if (code != CLI_OK) return (int)code;
    return printer.damaged_count > 0 ? CLI_FAILED : CLI_OK;
}

static const struct cli_option options[] = {
    CLI_OPTION("request", 0, "API", "The frames are requests of this API; others are an error."),
    CLI_OPTION("response",
               0,
               "API",
               "The frames are responses of this API, in the --version given."),
    CLI_OPTION("record",
               0,
               "RECORD",
               "The bytes are a record (TopicRecord), with its type and version."),
    CLI_OPTION("version", 'V', "N", "Version of the request, response or record."),
    CLI_OPTION("pcap",
               'p',
               "FILE",
               "Decode a packet capture (pcap or pcapng); - for standard input."),
    CLI_OPTION("port", 0, "N", "Only the connections of the capture that have this TCP port."),
    CLI_FLAG("verbose", 'v', "Print each frame as an object tree."),
    CLI_FLAG("json", 'j', "Print each frame as one line of JSON."),
    CLI_OPTIONS_END,
};

const struct cli_command command_wire_decode = {
    .name = "wire decode",
    .group = CLI_LOOK,
    .summary = "frames or captures of the protocol as lines, trees or JSON",
    .arguments = "[--request API | --response API --version N | --record RECORD] [-v | --json] "
                 "HEX|FILE|-\n--pcap FILE [--port N] [-v | --json]",
    .about =
        "The input is hex digits, a file, or - for standard input; a file may hold hex digits "
        "or raw bytes, and frames may follow one another as on a connection. A request says "
        "itself what it is; for responses the API and the version must be given.\n\n"
        "A capture's TCP connections are put together again; responses are told by the request "
        "with their correlation id, and say how long they took. Connections that speak TLS or "
        "something else are counted and left out.\n\n"
        "What is damaged is shown up to the damage; field and offset are told on standard "
        "error, and the exit code is 1.",
    .options = options,
    .words_max = 1,
    .run = run,
};
