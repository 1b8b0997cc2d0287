/* produce.c - `dohle produce`: lines, JSON or one whole file become records. */
#include "cli/produce.h"
#include "cli/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

/* What librdkafka copies of a record; the broker's limit is nearer. */
#define PRODUCE_RECORD_MAX (1000u * 1000u * 1000u)
#define PRODUCE_SETTINGS   8

static volatile sig_atomic_t produce_stopped;

static void on_signal(int number)
{
    (void)number;
    produce_stopped = 1;
}

/* ---- delivery -------------------------------------------------------------------------------- */

static void on_delivery(rd_kafka_t *handle, const rd_kafka_message_t *message, void *opaque)
{
    (void)handle;
    struct client *client = opaque;
    struct produce *produce = container_of(client, struct produce, client);
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        produce->delivered++;
        return;
    }
    if (produce->failed++ == 0) produce->first_error = message->err;
}

bool produce_send(struct produce *produce, const struct produce_record *record)
{
    struct client *client = &produce->client;
    rd_kafka_headers_t *headers =
        record->headers == NULL ? NULL : client->rd.headers_copy(record->headers);
    rd_kafka_vu_t parts[] = {
        {.vtype = RD_KAFKA_VTYPE_TOPIC,     .u.cstr = produce->topic                        },
        {.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = record->partition                      },
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS,  .u.i = RD_KAFKA_MSG_F_COPY                      },
        {.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = record->timestamp_ms                   },
        {.vtype = RD_KAFKA_VTYPE_KEY,       .u.mem = {record->key.ptr, record->key.size}    },
        {.vtype = RD_KAFKA_VTYPE_VALUE,     .u.mem = {record->value.ptr, record->value.size}},
        {.vtype = RD_KAFKA_VTYPE_HEADERS,   .u.headers = headers                            },
    };
    size_t count = ARRAY_SIZE(parts) - (headers == NULL ? 1 : 0);

    for (;;) {
        rd_kafka_error_t *error = client->rd.produceva(client->handle, parts, count);
        if (error == NULL) break;
        rd_kafka_resp_err_t code = client->rd.error_code(error);
        client->rd.error_destroy(error);
        if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL && !produce_stopped) {
            (void)client->rd.poll(client->handle, 50);
            client_progress_tell(&produce->progress);
            continue;
        }
        if (headers != NULL) client->rd.headers_destroy(headers);
        if (produce->failed++ == 0) produce->first_error = code;
        return false;
    }
    produce->progress.records++;
    produce->progress.bytes += record->key.size + record->value.size;
    return true;
}

/* ---- records from lines ---------------------------------------------------------------------- */

/* The line's key and value by the separator; without one the whole line is the value. */
static void split_line(struct produce *produce,
                       struct produce_bytes line,
                       struct produce_record *out)
{
    const char *at = NULL;
    size_t size = produce->separator == NULL ? 0 : strlen(produce->separator);
    if (size > 0 && line.size >= size) at = memmem(line.ptr, line.size, produce->separator, size);
    if (at == NULL) {
        out->value = line;
    } else {
        out->key = (struct produce_bytes){line.ptr, (size_t)(at - line.ptr)};
        out->value = (struct produce_bytes){line.ptr + out->key.size + size,
                                            line.size - out->key.size - size};
    }
    if (produce->null_empty && out->value.size == 0) out->value.ptr = NULL;
}

static bool take_line(struct produce *produce, struct produce_bytes line)
{
    struct produce_record record = {
        .key = produce->key, .partition = produce->partition, .headers = produce->headers};
    produce->line_number++;
    if (produce->format == PRODUCE_JSON) return produce_json(produce, line);
    split_line(produce, line, &record);
    return produce_send(produce, &record);
}

static void tell_part(struct produce *produce, uint64_t read_bytes)
{
    if (produce->input_bytes > 0)
        produce->progress.part = (double)read_bytes / (double)produce->input_bytes;
    client_progress_tell(&produce->progress);
}

static enum cli_exit read_lines(struct produce *produce, FILE *in)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    uint64_t total = 0;
    bool fine = true;

    while (fine && !produce_stopped && (size = getline(&line, &room, in)) >= 0) {
        total += (uint64_t)size;
        if (size > 0 && line[size - 1] == '\n') size--;
        fine = take_line(produce, (struct produce_bytes){line, (size_t)size});
        if (produce->line_number % 64 == 0) {
            (void)produce->client.rd.poll(produce->client.handle, 0);
            tell_part(produce, total);
            fine = fine && produce->failed == 0;
        }
    }
    free(line);
    if (ferror(in))
        return (enum cli_exit)cli_fail(produce->client.cli, CLI_FAILED, "could not read: %s",
                                       strerror(errno));
    return fine || produce->failed > 0 ? CLI_OK : CLI_FAILED;
}

static enum cli_exit read_whole(struct produce *produce, const char *path)
{
    struct cli *cli = produce->client.cli;
    size_t room = 0;
    struct view bytes = cli_read_file(cli, path, PRODUCE_RECORD_MAX, &room);
    if (bytes.null) return CLI_FAILED;
    char *mine;
    memcpy(&mine, &bytes.data, sizeof(mine)); /* Ours to give back. */
    struct produce_record record = {
        .key = produce->key,
        .value = {mine == NULL ? "" : mine, bytes.size},
        .partition = produce->partition,
        .headers = produce->headers
    };
    bool fine = produce_send(produce, &record);
    if (room > 0) mem_put(cli->mem, mine, room);
    return fine || produce->failed > 0 ? CLI_OK : CLI_FAILED; /* What failed is told at the end. */
}

/* ---- the command ----------------------------------------------------------------------------- */

static enum cli_exit read_headers(struct produce *produce)
{
    struct cli *cli = produce->client.cli;
    const char *text;
    int at = 0;

    while ((text = cli_next(cli, "header", &at)) != NULL) {
        const char *equals = strchr(text, '=');
        if (equals == NULL || equals == text)
            return (enum cli_exit)cli_fail(cli, CLI_USAGE, "--header takes NAME=VALUE, not \"%s\"",
                                           text);
        if (produce->headers == NULL) produce->headers = produce->client.rd.headers_new(8);
        (void)produce->client.rd.header_add(produce->headers, text, equals - text, equals + 1,
                                            (ssize_t)strlen(equals + 1));
    }
    return CLI_OK;
}

static enum cli_exit read_options(struct produce *produce, struct cli *cli)
{
    const char *format = cli_value(cli, "format"), *key = cli_value(cli, "key");
    long long partition = RD_KAFKA_PARTITION_UA;

    enum cli_exit code =
        cli_integer(cli, "partition", (struct cli_range){0, INT32_MAX}, &partition);
    if (code != CLI_OK) return code;
    produce->partition = (int32_t)partition;
    produce->topic = cli->words[0];
    produce->separator = cli_value(cli, "key-separator");
    produce->null_empty = cli_has(cli, "null-empty");
    if (key != NULL) {
        memcpy(&produce->key.ptr, &key, sizeof(key)); /* Only read. */
        produce->key.size = strlen(key);
    }
    produce->format = format == NULL || format[0] == 'l' ? PRODUCE_LINES
                      : format[0] == 'j'                 ? PRODUCE_JSON
                                                         : PRODUCE_WHOLE;
    if (produce->separator != NULL && produce->format != PRODUCE_LINES)
        return (enum cli_exit)cli_fail(cli, CLI_USAGE, "--key-separator goes with --format lines");
    return CLI_OK;
}

static enum cli_exit open_producer(struct produce *produce, struct cli *cli)
{
    /* Keys go where Kafka's own producer puts them. */
    const char *settings[PRODUCE_SETTINGS + 1] = {"linger.ms", "5", "partitioner", "murmur2_random",
                                                  NULL};
    const char *acks = cli_value(cli, "acks"), *compression = cli_value(cli, "compression");
    size_t count = 4;
    if (acks != NULL) settings[count++] = "acks", settings[count++] = acks;
    if (compression != NULL)
        settings[count++] = "compression.codec", settings[count++] = compression;
    settings[count] = NULL;
    produce->client.on_delivery = on_delivery;
    return client_open(cli, RD_KAFKA_PRODUCER, settings, &produce->client);
}

/* A slip in the name shall not make a topic. */
static enum cli_exit check_topic(struct produce *produce)
{
    const struct rd_kafka_metadata *metadata = client_metadata(&produce->client);
    if (metadata == NULL) return CLI_FAILED;
    bool fine = cli_has(produce->client.cli, "create") ||
                client_topic(&produce->client, metadata, produce->topic) != NULL;
    produce->client.rd.metadata_destroy(metadata);
    return fine ? CLI_OK : CLI_FAILED;
}

static enum cli_exit read_input(struct produce *produce)
{
    struct cli *cli = produce->client.cli;
    const char *path = cli->word_count > 1 ? cli->words[1] : "-";
    struct stat s;

    if (produce->format == PRODUCE_WHOLE) return read_whole(produce, path);
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (in == NULL)
        return (enum cli_exit)cli_fail(cli, CLI_FAILED, "could not open \"%s\": %s", path,
                                       strerror(errno));
    if (fstat(fileno(in), &s) == 0 && S_ISREG(s.st_mode))
        produce->input_bytes = (uint64_t)s.st_size;
    enum cli_exit code = read_lines(produce, in);
    if (in != stdin) fclose(in);
    return code;
}

/* All that is queued is delivered or has failed. */
static void drain(struct produce *produce)
{
    struct client *client = &produce->client;
    while (client->rd.outq_len(client->handle) > 0) {
        (void)client->rd.flush(client->handle, 100);
        client_progress_tell(&produce->progress);
    }
}

static int finish(struct produce *produce)
{
    struct cli *cli = produce->client.cli;
    char count[CLIENT_NUMBER_BYTES], bytes[CLIENT_NUMBER_BYTES], what[320];
    int64_t ms = clock_now_ms() - produce->progress.start_ms;

    client_progress_end(&produce->progress);
    if (cli_has(cli, "json")) {
        out_text(&cli->out, "{\"topic\":");
        out_quoted(&cli->out, view_of_string(produce->topic));
        out_format(&cli->out,
                   ",\"records\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"bytes\":%" PRIu64
                   ",\"ms\":%" PRId64 "}\n",
                   produce->delivered, produce->failed, produce->progress.bytes, ms);
    } else {
        out_format(&cli->out, "%s record%s, %s, in %.1f s\n",
                   client_count_text(produce->delivered, count), produce->delivered == 1 ? "" : "s",
                   client_bytes_text(produce->progress.bytes, bytes), (double)ms / 1000);
    }
    if (produce->failed == 0) return CLI_OK;
    (void)snprintf(what, sizeof(what), "%" PRIu64 " record%s not written to \"%s\"",
                   produce->failed, produce->failed == 1 ? " was" : "s were", produce->topic);
    return client_fail(&produce->client, what, produce->first_error, NULL);
}

static int run(struct cli *cli)
{
    struct produce produce = {0};
    struct sigaction stop = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

    enum cli_exit code = read_options(&produce, cli);
    if (code == CLI_OK) code = open_producer(&produce, cli);
    if (code == CLI_OK) code = read_headers(&produce);
    if (code == CLI_OK) code = check_topic(&produce);
    int result = (int)code;
    if (code == CLI_OK) {
        sigaction(SIGINT, &stop, NULL);
        client_progress_begin(&produce.progress);
        code = read_input(&produce);
        drain(&produce);
        result = finish(&produce);
        if (result == CLI_OK) result = (int)code;
    }
    if (produce.headers != NULL) produce.client.rd.headers_destroy(produce.headers);
    client_close(&produce.client);
    return result;
}

static const struct cli_option options[] = {
    CLI_CHOICE("format",
               'f',
               "FORMAT",
               "lines|json|whole",
               "A record for each line, for each line of JSON, or of the whole input (lines)."),
    CLI_OPTION("key-separator", 'K', "TEXT", "A line is KEY TEXT VALUE."),
    CLI_OPTION("key", 'k', "KEY", "The key of all records that bring none."),
    CLI_OPTION("header", 'H', "NAME=VALUE", "A header of all records; may be repeated."),
    CLI_OPTION("partition", 'p', "N", "Into this partition (by key, or in turn)."),
    CLI_FLAG("null-empty", 'Z', "An empty value is null: a tombstone."),
    CLI_CHOICE("compression",
               'z',
               "CODEC",
               "none|gzip|snappy|lz4|zstd",
               "Compress batches (none)."),
    CLI_CHOICE("acks", 0, "ACKS", "all|1|0", "Who must have a record before it counts (all)."),
    CLI_FLAG("create", 0, "Let the broker create a topic that is not there."),
    CLIENT_OPTIONS,
    CLI_OPTIONS_END,
};

extern const struct cli_command command_produce;
const struct cli_command command_produce = {
    .name = "produce",
    .group = CLI_TALK,
    .summary = "write records: lines, JSON or a whole file",
    .arguments = "TOPIC [FILE] [--format lines|json|whole] [--key-separator TEXT] [-b HOST:PORT]",
    .about =
        "Reads FILE or standard input. Prints how many records the broker has acknowledged; the "
        "exit code is 1 if one was not. On a terminal long transfers tell how far they are.\n\n"
        "A line of JSON is what `dohle consume --json` prints: {\"key\", \"value\", \"headers\": "
        "[{\"name\", \"value\"}], \"partition\", \"timestamp\"}, each of them optional. A value "
        "that is no string is taken as its JSON text; \"keyBase64\" and \"valueBase64\" are for "
        "bytes that are no text.\n\n"
        "    dohle produce words /usr/share/dict/words\n"
        "    printf 'de:Dohle\\ncs:kavka\\n' | dohle produce words -K :\n"
        "    dohle consume words --json | dohle produce copy --format json",
    .options = options,
    .words_min = 1,
    .words_max = 2,
    .run = run,
};
