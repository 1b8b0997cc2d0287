/* consume_print.c - a record as a line: its value, all of it, JSON, hex, or by a template. */
#include <inttypes.h>
#include <time.h>

#include "cli/consume.h"

static struct view bytes_of(const void *data, size_t size)
{
    if (data == NULL) return VIEW_NULL;
    return view_of(data, (uint32_t)size);
}

static struct view value_of(const rd_kafka_message_t *message)
{
    return bytes_of(message->payload, message->len);
}

static struct view key_of(const rd_kafka_message_t *message)
{
    return bytes_of(message->key, message->key_len);
}

/* One header of the record; false: no more. */
static bool header_at(const struct consume_printer *printer,
                      const rd_kafka_message_t *message,
                      size_t index,
                      struct view *name,
                      struct view *value)
{
    rd_kafka_headers_t *headers;
    const char *text;
    const void *data;
    size_t size;
    const struct client_library *rd = &printer->client->rd;
    if (rd->message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return false;
    if (rd->header_get_all(headers, index, &text, &data, &size) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return false;
    *name = view_of_string(text);
    *value = bytes_of(data, size);
    return true;
}

static int64_t time_of(const struct consume_printer *printer, const rd_kafka_message_t *message)
{
    rd_kafka_timestamp_type_t type;
    return printer->client->rd.message_timestamp(message, &type);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void put_time(struct out *out, int64_t time_ms)
{
    struct tm tm;
    time_t seconds = (time_t)(time_ms / 1000);
    if (time_ms < 0 || gmtime_r(&seconds, &tm) == NULL) {
        out_text(out, "no time");
        return;
    }
    out_format(out, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
               tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(time_ms % 1000));
}

static void put_literal(struct out *out, struct view bytes)
{
    if (bytes.null) {
        out_text(out, "null");
    } else {
        out_literal(out, bytes);
    }
}

/* words-0@12  2026-11-30T10:00:00.000Z  "key" = "value"  trace="1" */
static void put_full(struct consume_printer *printer, const rd_kafka_message_t *message)
{
    struct out *out = &printer->client->cli->out;
    struct view name, value;

    out_format(out, "%s-%d@%" PRId64 "  ", printer->topic, message->partition, message->offset);
    put_time(out, time_of(printer, message));
    out_text(out, "  ");
    put_literal(out, key_of(message));
    out_text(out, " = ");
    put_literal(out, value_of(message));
    for (size_t i = 0; header_at(printer, message, i, &name, &value); i++) {
        out_text(out, "  ");
        out_view(out, name);
        out_char(out, '=');
        put_literal(out, value);
    }
    out_char(out, '\n');
}

/* "name":"text", or "nameBase64":"..." for what is no text. */
static void json_bytes(struct out *out, const char *name, struct view bytes)
{
    if (bytes.null) {
        out_format(out, "\"%s\":null", name);
    } else if (out_is_utf8(bytes)) {
        out_format(out, "\"%s\":", name);
        out_quoted(out, bytes);
    } else {
        out_format(out, "\"%sBase64\":\"", name);
        out_base64(out, bytes);
        out_char(out, '"');
    }
}

static void put_json(struct consume_printer *printer, const rd_kafka_message_t *message)
{
    struct out *out = &printer->client->cli->out;
    struct view name, value;

    out_text(out, "{\"topic\":");
    out_quoted(out, view_of_string(printer->topic));
    out_format(out, ",\"partition\":%d,\"offset\":%" PRId64 ",\"timestamp\":%" PRId64 ",",
               message->partition, message->offset, time_of(printer, message));
    json_bytes(out, "key", key_of(message));
    out_char(out, ',');
    json_bytes(out, "value", value_of(message));
    for (size_t i = 0; header_at(printer, message, i, &name, &value); i++) {
        out_text(out, i == 0 ? ",\"headers\":[{\"name\":" : ",{\"name\":");
        out_quoted(out, name);
        out_char(out, ',');
        json_bytes(out, "value", value);
        out_char(out, '}');
    }
    if (header_at(printer, message, 0, &name, &value)) out_char(out, ']');
    out_text(out, "}\n");
}

/* ---- by a template --------------------------------------------------------------------------- */

bool consume_template_check(struct cli *cli, const char *pattern)
{
    for (const char *at = pattern; *at != '\0'; at++) {
        if (*at != '%') continue;
        at++;
        if (*at != '\0' && strchr("tpoTkvKVh%", *at) != NULL) continue;
        cli_fail(cli, CLI_USAGE, "--print knows %%t %%p %%o %%T %%k %%v %%K %%V %%h %%%%, not %%%c",
                 *at == '\0' ? ' ' : *at);
        return false;
    }
    return true;
}

static void put_headers(struct consume_printer *printer, const rd_kafka_message_t *message)
{
    struct out *out = &printer->client->cli->out;
    struct view name, value;
    for (size_t i = 0; header_at(printer, message, i, &name, &value); i++) {
        if (i > 0) out_char(out, ',');
        out_view(out, name);
        out_char(out, '=');
        if (!value.null) out_view(out, value);
    }
}

static void put_part(struct consume_printer *printer, const rd_kafka_message_t *message, char part)
{
    struct out *out = &printer->client->cli->out;
    switch (part) {
    case 't': out_text(out, printer->topic); break;
    case 'p': out_format(out, "%d", message->partition); break;
    case 'o': out_format(out, "%" PRId64, message->offset); break;
    case 'T': out_format(out, "%" PRId64, time_of(printer, message)); break;
    case 'k': out_bytes(out, message->key, message->key == NULL ? 0 : message->key_len); break;
    case 'v': out_bytes(out, message->payload, message->payload == NULL ? 0 : message->len); break;
    case 'K': out_format(out, "%zd", message->key == NULL ? -1 : (ssize_t)message->key_len); break;
    case 'V': out_format(out, "%zd", message->payload == NULL ? -1 : (ssize_t)message->len); break;
    case 'h': put_headers(printer, message); break;
    default: out_char(out, part); break;
    }
}

static void put_template(struct consume_printer *printer, const rd_kafka_message_t *message)
{
    struct out *out = &printer->client->cli->out;
    for (const char *at = printer->pattern; *at != '\0'; at++) {
        if (*at == '%') {
            put_part(printer, message, *++at);
        } else if (*at == '\\' && at[1] != '\0') {
            at++;
            out_char(out, *at == 'n' ? '\n' : *at == 't' ? '\t' : *at == '0' ? '\0' : *at);
        } else {
            out_char(out, *at);
        }
    }
}

void consume_print(struct consume_printer *printer, const rd_kafka_message_t *message)
{
    struct out *out = &printer->client->cli->out;
    switch (printer->format) {
    case CONSUME_VALUE:
        if (message->payload != NULL) out_bytes(out, message->payload, message->len);
        out_char(out, '\n');
        break;
    case CONSUME_HEX:
        if (message->payload != NULL) out_hex(out, value_of(message));
        out_char(out, '\n');
        break;
    case CONSUME_FULL: put_full(printer, message); break;
    case CONSUME_JSON: put_json(printer, message); break;
    case CONSUME_TEMPLATE: put_template(printer, message); break;
    }
}
