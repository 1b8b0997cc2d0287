/* client.c - see client.h. */
#include "cli/client.h"
#include "cli/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/load.h"
#include "gen/errors.h"
#include "text/nearest.h"

#define CLIENT_CONFIG_BYTES (1024u * 1024u)
#define CLIENT_TIMEOUT_S    10
#define PROGRESS_EVERY_MS   250
#define PROGRESS_FIRST_MS   500

/* ---- the library ----------------------------------------------------------------------------- */

static enum cli_exit load(struct client *client)
{
    static const char *const names[] = {"librdkafka.so.1", NULL};
    const struct load_symbol symbols[] = {
#define CLIENT_SYMBOL(name) {"rd_kafka_" #name, &client->rd.name},
        CLIENT_SYMBOLS(CLIENT_SYMBOL)
#undef CLIENT_SYMBOL
    };
    return load_library(client->cli, names, "librdkafka1", symbols, ARRAY_SIZE(symbols));
}

/* Called on the library's threads: the last reason is read when they have nothing to say any more,
 * so a torn text is all that can happen; it always ends. */
static void keep_reason(struct client *client, const char *text)
{
    /* "... failed: Connection refused (after 0ms in state CONNECT)": what is behind is the
     * library's. */
    const char *after = strstr(text, " (after ");
    int size = after == NULL ? (int)strlen(text) : (int)(after - text);
    (void)snprintf(client->reason, sizeof(client->reason), "%.*s", size, text);
}

static void on_error(rd_kafka_t *handle, int error, const char *reason, void *opaque)
{
    (void)handle;
    if (error != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) keep_reason(opaque, reason);
}

static void on_log(const rd_kafka_t *handle, int level, const char *facility, const char *text)
{
    (void)handle;
    (void)level;
    (void)facility;
    (void)text; /* Errors come by on_error too; the rest is for who debugs the library. */
}

/* ---- settings -------------------------------------------------------------------------------- */

static enum cli_exit set_one(struct client *client,
                             rd_kafka_conf_t *conf,
                             const char *name,
                             const char *value)
{
    char error[512];
    if (client->rd.conf_set(conf, name, value, error, sizeof(error)) == RD_KAFKA_CONF_OK)
        return CLI_OK;
    return (enum cli_exit)cli_fail(client->cli, CLI_USAGE, "setting %s: %s", name, error);
}

/* "NAME=VALUE" of `size` bytes; blanks around both are not theirs. */
static enum cli_exit set_pair(struct client *client,
                              rd_kafka_conf_t *conf,
                              const char *text,
                              size_t size)
{
    char line[2048];
    if (size >= sizeof(line))
        return (enum cli_exit)cli_fail(client->cli, CLI_USAGE, "a setting has more than %zu bytes",
                                       sizeof(line) - 1);
    memcpy(line, text, size);
    line[size] = '\0';
    char *equals = strchr(line, '=');
    if (equals == NULL)
        return (enum cli_exit)cli_fail(client->cli, CLI_USAGE,
                                       "a setting is NAME=VALUE, not \"%s\"", line);
    char *end = equals;
    while (end > line && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *end = '\0';
    return set_one(client, conf, line, equals + 1 + strspn(equals + 1, " \t"));
}

static enum cli_exit set_file(struct client *client, rd_kafka_conf_t *conf, const char *path)
{
    size_t room = 0;
    struct view text = cli_read_file(client->cli, path, CLIENT_CONFIG_BYTES, &room);
    enum cli_exit code = text.null ? CLI_FAILED : CLI_OK;
    const char *at = (const char *)text.data, *end = at + text.size;

    while (code == CLI_OK && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *next = stop == NULL ? end : stop + 1;
        const char *last = stop == NULL ? end : stop;
        while (at < last && (*at == ' ' || *at == '\t'))
            at++;
        while (last > at && (last[-1] == ' ' || last[-1] == '\t' || last[-1] == '\r'))
            last--;
        if (at < last && *at != '#' && *at != '!')
            code = set_pair(client, conf, at, (size_t)(last - at));
        at = next;
    }
    if (room > 0) {
        char *mine;
        memcpy(&mine, &text.data, sizeof(mine)); /* Ours to give back. */
        mem_put(client->cli->mem, mine, room);
    }
    return code;
}

static enum cli_exit configure(struct client *client,
                               rd_kafka_conf_t *conf,
                               const char *const *settings)
{
    struct cli *cli = client->cli;
    const char *file = cli_value(cli, "client-config"), *text;
    int at = 0;

    enum cli_exit code = set_one(client, conf, "bootstrap.servers", client->bootstrap);
    if (code == CLI_OK) code = set_one(client, conf, "client.id", "dohle");
    for (; code == CLI_OK && settings != NULL && *settings != NULL; settings += 2)
        code = set_one(client, conf, settings[0], settings[1]);
    if (code == CLI_OK && file != NULL) code = set_file(client, conf, file);
    while (code == CLI_OK && (text = cli_next(cli, "set", &at)) != NULL)
        code = set_pair(client, conf, text, strlen(text));
    return code;
}

enum cli_exit client_open(struct cli *cli,
                          rd_kafka_type_t type,
                          const char *const *settings,
                          struct client *out)
{
    long long timeout_s = CLIENT_TIMEOUT_S;
    char error[512];

    out->cli = cli;
    out->handle = NULL;
    out->reason[0] = '\0';
    enum cli_exit code = cli_integer(cli, "timeout", (struct cli_range){1, 3600}, &timeout_s);
    if (code != CLI_OK) return code;
    out->timeout_ms = (int)timeout_s * 1000;
    out->bootstrap = cli_value(cli, "bootstrap");
    if (out->bootstrap == NULL) out->bootstrap = getenv("DOHLE_BOOTSTRAP");
    if (out->bootstrap == NULL || *out->bootstrap == '\0') out->bootstrap = "localhost:9092";
    code = load(out);
    if (code != CLI_OK) return code;
    rd_kafka_conf_t *conf = out->rd.conf_new();
    code = configure(out, conf, settings);
    if (code != CLI_OK) {
        out->rd.conf_destroy(conf);
        return code;
    }
    out->rd.conf_set_opaque(conf, out);
    out->rd.conf_set_log_cb(conf, on_log);
    out->rd.conf_set_error_cb(conf, on_error);
    if (out->on_delivery != NULL) out->rd.conf_set_dr_msg_cb(conf, out->on_delivery);
    out->handle = out->rd.new(type, conf, error, sizeof(error));
    if (out->handle != NULL) return CLI_OK;
    out->rd.conf_destroy(conf);
    return (enum cli_exit)cli_fail(cli, CLI_FAILED, "no client: %s", error);
}

void client_close(struct client *client)
{
    if (client->handle != NULL) client->rd.destroy(client->handle);
    client->handle = NULL;
}

/* ---- what went wrong ------------------------------------------------------------------------- */

static bool is_unreachable(rd_kafka_resp_err_t error)
{
    return error == RD_KAFKA_RESP_ERR__TRANSPORT || error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN ||
           error == RD_KAFKA_RESP_ERR__TIMED_OUT || error == RD_KAFKA_RESP_ERR__RESOLVE ||
           error == RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE || error == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT;
}

int client_fail(struct client *client,
                const char *what,
                rd_kafka_resp_err_t error,
                const char *detail)
{
    /* Callbacks that wait, for the reason; a consumer's records are not served by this. */
    (void)client->rd.poll(client->handle, 0);
    if (is_unreachable(error)) {
        cli_fail(client->cli, CLI_FAILED, "%s: no answer from %s in %d s%s%s", what,
                 client->bootstrap, client->timeout_ms / 1000,
                 client->reason[0] == '\0' ? "" : ": ", client->reason);
        cli_hint(client->cli, "`dohle doctor %s` tells which step fails and what to change",
                 client->bootstrap);
        return CLI_FAILED;
    }
    int code = (int)error;
    if (code > 0 && (uint32_t)(code + 1) < kafka_error_count) {
        const struct kafka_error_row *row = &kafka_errors[code + 1];
        return cli_fail(client->cli, CLI_FAILED, "%s: %s (%s)", what,
                        detail != NULL && *detail != '\0' ? detail : row->message, row->name);
    }
    return cli_fail(client->cli, CLI_FAILED, "%s: %s", what,
                    detail != NULL && *detail != '\0' ? detail : client->rd.err2str(error));
}

const struct rd_kafka_metadata *client_metadata(struct client *client)
{
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_resp_err_t error =
        client->rd.metadata(client->handle, 1, NULL, &metadata, client->timeout_ms);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return metadata;
    (void)client_fail(client, "the metadata", error, NULL);
    return NULL;
}

int client_run(struct cli *cli,
               rd_kafka_type_t type,
               int (*use)(struct client *client, const struct rd_kafka_metadata *metadata))
{
    struct client client = {0};
    int code = (int)client_open(cli, type, NULL, &client);
    if (code == CLI_OK) {
        const struct rd_kafka_metadata *metadata = client_metadata(&client);
        code = metadata == NULL ? CLI_FAILED : use(&client, metadata);
        if (metadata != NULL) client.rd.metadata_destroy(metadata);
    }
    client_close(&client);
    return code;
}

const rd_kafka_metadata_topic_t *client_topic(struct client *client,
                                              const struct rd_kafka_metadata *metadata,
                                              const char *name)
{
    struct nearest nearest = nearest_to(view_of_string(name));
    for (int i = 0; i < metadata->topic_cnt; i++) {
        const rd_kafka_metadata_topic_t *topic = &metadata->topics[i];
        if (strcmp(topic->topic, name) == 0) return topic;
        nearest_offer(&nearest, topic->topic);
    }
    cli_fail(client->cli, CLI_FAILED, "there is no topic \"%s\"", name);
    if (nearest.best != NULL) {
        cli_hint(client->cli, "did you mean \"%s\"?", nearest.best);
    } else {
        cli_hint(client->cli, "`dohle topic list` names them, `dohle topic create %s` makes it",
                 name);
    }
    return NULL;
}

/* ---- progress -------------------------------------------------------------------------------- */

const char *client_count_text(uint64_t number, char out[CLIENT_NUMBER_BYTES])
{
    char digits[24];
    int size = snprintf(digits, sizeof(digits), "%" PRIu64, number), at = 0;
    for (int i = 0; i < size; i++) {
        if (i > 0 && (size - i) % 3 == 0) out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

const char *client_bytes_text(uint64_t bytes, char out[CLIENT_NUMBER_BYTES])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double number = (double)bytes;
    size_t unit = 0;
    while (number >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
        number /= 1024;
        unit++;
    }
    (void)snprintf(out, CLIENT_NUMBER_BYTES, unit == 0 ? "%.0f %s" : "%.1f %s", number,
                   units[unit]);
    return out;
}

void client_progress_begin(struct client_progress *progress)
{
    *progress = (struct client_progress){.part = -1};
    progress->on = isatty(STDERR_FILENO) == 1;
    progress->start_ms = clock_now_ms();
    progress->shown_ms = progress->start_ms + PROGRESS_FIRST_MS - PROGRESS_EVERY_MS;
}

void client_progress_tell(struct client_progress *progress)
{
    char records[CLIENT_NUMBER_BYTES], bytes[CLIENT_NUMBER_BYTES], rate[CLIENT_NUMBER_BYTES];
    char part[16] = "";
    if (!progress->on) return;
    int64_t now = clock_now_ms();
    if (now < progress->shown_ms + PROGRESS_EVERY_MS) return;
    progress->shown_ms = now;
    double seconds = (double)(now - progress->start_ms) / 1000;
    if (progress->part >= 0)
        (void)snprintf(part, sizeof(part), "%3.0f%%  ", 100 * MIN(progress->part, 1.0));
    fprintf(stderr, "\r\033[K%s%s records, %s, %s/s", part,
            client_count_text(progress->records, records),
            client_bytes_text(progress->bytes, bytes),
            client_bytes_text((uint64_t)((double)progress->bytes / seconds), rate));
    fflush(stderr);
}

void client_progress_end(struct client_progress *progress)
{
    if (progress->on && progress->shown_ms > progress->start_ms + PROGRESS_FIRST_MS - 1)
        fputs("\r\033[K", stderr);
}
