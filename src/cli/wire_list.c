/* wire_list.c - `dohle wire list`: every API of the protocol, one a line. */
#include "cli/wire.h"

#include <string.h>

/* The facts of one API as the texts of its row. */
enum { COLUMNS = 8, COLUMN_BYTES = 32 };

static const char *const headings[COLUMNS] = {
    "key",      "name",           "known",           "kafka 4.4",
    "flexible", "request header", "response header", "listeners",
};

struct row {
    char cells[COLUMNS][COLUMN_BYTES * 2];
};

static void cell(struct row *row, int column, const struct out *text)
{
    size_t size = MIN(text->size_bytes, sizeof(row->cells[0]) - 1);
    memcpy(row->cells[column], text->text, size);
    row->cells[column][size] = '\0';
}

static void header_versions(struct out *out, const struct wire_api *api, bool response)
{
    const struct wire_message *message = response ? api->response : api->request;
    int16_t (*version)(const struct wire_api *, int16_t) =
        response ? wire_response_header_version : wire_request_header_version;
    wire_range(out, version(api, message->version_min), version(api, message->version_max));
}

static void listeners(struct out *out, const struct wire_api *api)
{
    const struct wire_facts *facts = wire_facts(api->request);
    if (api->listeners & WIRE_BROKER) out_text(out, "broker");
    if (api->listeners & WIRE_CONTROLLER)
        out_text(out, api->listeners & WIRE_BROKER ? ",controller" : "controller");
    if (facts->listens_zk) out_text(out, out->size_bytes > 0 ? ",zkBroker" : "zkBroker");
}

static void fill(struct row *row, const struct wire_api *api, struct out *text)
{
    for (int column = 0; column < COLUMNS; column++) {
        out_reset(text);
        switch (column) {
        case 0: out_format(text, "%d", api->key); break;
        case 1: out_text(text, api->name); break;
        case 2: wire_range(text, api->request->version_min, api->request->version_max); break;
        case 3: wire_range(text, api->served_min, api->served_max); break;
        case 4:
            if (api->request->flexible_min > api->request->version_max) {
                out_text(text, "none");
            } else {
                out_format(text, "%d+", api->request->flexible_min);
            }
            break;
        case 5: header_versions(text, api, false); break;
        case 6: header_versions(text, api, true); break;
        case 7: listeners(text, api); break;
        }
        cell(row, column, text);
    }
}

static void json_row(struct out *out, const struct row *row, const struct wire_api *api)
{
    static const char *const keys[COLUMNS] = {
        "key",
        "name",
        "knownVersions",
        "servedVersions",
        "flexibleVersions",
        "requestHeaderVersions",
        "responseHeaderVersions",
        "listeners",
    };
    for (int column = 0; column < COLUMNS; column++) {
        out_text(out, column == 0 ? "  { " : ", ");
        out_quoted(out, view_of_string(keys[column]));
        out_text(out, ": ");
        if (column == 0) {
            out_text(out, row->cells[0]);
        } else if (column < 7) {
            out_quoted(out, view_of_string(row->cells[column]));
        } else {
            out_char(out, '[');
            for (const char *at = row->cells[7]; *at != '\0';) {
                size_t size = strcspn(at, ",");
                out_quoted(out, view_of(at, (uint32_t)size));
                at += size;
                if (*at != '\0') out_text(out, ", "), at++;
            }
            out_char(out, ']');
        }
    }
    out_format(out, ", \"latestVersionUnstable\": %s }",
               api->stable_max < api->served_max ? "true" : "false");
}

static void table(struct out *out, const struct row *rows, uint32_t count)
{
    size_t widths[COLUMNS];
    for (int column = 0; column < COLUMNS; column++) {
        widths[column] = strlen(headings[column]);
        for (uint32_t i = 0; i < count; i++)
            widths[column] = MAX(widths[column], strlen(rows[i].cells[column]));
    }
    for (uint32_t i = 0; i <= count; i++) {
        size_t at = 0;
        for (int column = 0; column < COLUMNS; column++) {
            const char *text = i == 0 ? headings[column] : rows[i - 1].cells[column];
            if (column == 0) out_repeat(out, ' ', widths[0] - strlen(text));
            out_column(out, at);
            out_text(out, text);
            at += widths[column] + 2;
        }
        out_trim(out);
        out_char(out, '\n');
    }
}

static void tsv(struct out *out, const struct row *rows, uint32_t count)
{
    for (uint32_t i = 0; i <= count; i++)
        for (int column = 0; column < COLUMNS; column++) {
            if (i == 0 && column == 0) out_text(out, "# ");
            out_text(out, i == 0 ? headings[column] : rows[i - 1].cells[column]);
            out_char(out, column + 1 == COLUMNS ? '\n' : '\t');
        }
}

static int run(struct cli *cli)
{
    uint32_t count;
    const struct wire_api *apis = wire_apis(&count);
    const char *format = cli_value(cli, "format");
    struct row *rows = mem_get(cli->mem, count * sizeof(*rows));
    struct out text;

    if (rows == NULL) return cli_fail(cli, CLI_FAILED, "out of memory");
    out_init(&text, cli->mem);
    for (uint32_t i = 0; i < count; i++)
        fill(&rows[i], &apis[i], &text);
    if (format == NULL || strcmp(format, "table") == 0) {
        table(&cli->out, rows, count);
    } else if (strcmp(format, "tsv") == 0) {
        tsv(&cli->out, rows, count);
    } else {
        for (uint32_t i = 0; i < count; i++) {
            out_text(&cli->out, i == 0 ? "[\n" : ",\n");
            json_row(&cli->out, &rows[i], &apis[i]);
        }
        out_text(&cli->out, "\n]\n");
    }
    out_free(&text);
    mem_put(cli->mem, rows, count * sizeof(*rows));
    return CLI_OK;
}

static const struct cli_option options[] = {
    CLI_CHOICE("format", 'f', "FORMAT", "table|tsv|json", "How to print it; the default is table."),
    CLI_OPTIONS_END,
};

const struct cli_command command_wire_list = {
    .name = "wire list",
    .group = CLI_LOOK,
    .summary = "every API: key, name, versions, header versions, listeners",
    .arguments = "[--format table|tsv|json]",
    .about = "Known versions are those that this program reads and writes: all of Apache Kafka 4.4 "
             "and of 3.9. The column \"kafka 4.4\" has those that a 4.4 server takes; keys 4 to 7 "
             "are only reserved there.",
    .options = options,
    .run = run,
};
