/* consume.c - `dohle consume`: the records of a topic, from somewhere to the end or on and on.
 *
 * Every partition is read by itself, without a group: nothing is committed, nobody is disturbed.
 * With
 * --group it is a member (consume_group.c).
 * "The end" is what a partition held when the command began. */
#include "cli/consume.h"
#include "cli/clock.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CONSUME_BATCH   1000
#define CONSUME_WAIT_MS 20
#define CONSUME_OUT_MAX (64u * 1024u)

static volatile sig_atomic_t consume_stopped;

static void on_signal(int number)
{
    (void)number;
    consume_stopped = 1;
}

struct consume {
    struct client client;
    struct consume_printer printer;
    struct consume_part *parts;
    uint32_t part_count, done_count;
    size_t parts_room;
    rd_kafka_topic_t *topic;
    rd_kafka_queue_t *queue;
    bool follow;
    uint64_t limit; /* Records; 0: no limit. */
    uint64_t total; /* Offsets between start and end of all parts. */
    struct client_progress progress;
    enum cli_exit code;
};

/* ---- the partitions -------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    const struct consume_part *one = a, *two = b;
    return (one->id > two->id) - (one->id < two->id);
}

static bool is_wanted(struct cli *cli, int32_t id)
{
    const char *text;
    int at = 0;
    if (!cli_has(cli, "partition")) return true;
    while ((text = cli_next(cli, "partition", &at)) != NULL)
        if (strtol(text, NULL, 10) == id) return true;
    return false;
}

static enum cli_exit check_partitions(struct cli *cli)
{
    const char *text;
    int at = 0;
    while ((text = cli_next(cli, "partition", &at)) != NULL)
        if (*text == '\0' || strspn(text, "0123456789") != strlen(text))
            return (enum cli_exit)cli_fail(cli, CLI_USAGE, "--partition takes a number, not \"%s\"",
                                           text);
    return CLI_OK;
}

static enum cli_exit find_parts(struct consume *consume)
{
    struct cli *cli = consume->client.cli;
    const struct rd_kafka_metadata *metadata = client_metadata(&consume->client);
    if (metadata == NULL) return CLI_FAILED;
    const rd_kafka_metadata_topic_t *topic =
        client_topic(&consume->client, metadata, consume->printer.topic);
    enum cli_exit code = topic == NULL ? CLI_FAILED : CLI_OK;
    int count = topic == NULL ? 0 : topic->partition_cnt;
    consume->parts_room = ((size_t)count + 1) * sizeof(*consume->parts);
    consume->parts = mem_get(cli->mem, consume->parts_room);
    if (consume->parts == NULL) code = (enum cli_exit)cli_fail(cli, CLI_FAILED, "out of memory");
    for (int i = 0; i < count && code == CLI_OK; i++)
        if (is_wanted(cli, topic->partitions[i].id))
            consume->parts[consume->part_count++].id = topic->partitions[i].id;
    consume->client.rd.metadata_destroy(metadata);
    if (code == CLI_OK && consume->part_count == 0)
        code = (enum cli_exit)cli_fail(cli, CLI_FAILED, "\"%s\" has partitions 0 to %d",
                                       consume->printer.topic, count - 1);
    if (code == CLI_OK) qsort(consume->parts, consume->part_count, sizeof(*consume->parts), by_id);
    return code;
}

static struct consume_part *part_of(struct consume *consume, int32_t id)
{
    struct consume_part key = {.id = id};
    return bsearch(&key, consume->parts, consume->part_count, sizeof(key), by_id);
}

static void end_part(struct consume *consume, struct consume_part *part)
{
    if (part->done) return;
    part->done = true;
    consume->done_count++;
}

static enum cli_exit start_parts(struct consume *consume)
{
    struct client *client = &consume->client;
    consume->topic = client->rd.topic_new(client->handle, consume->printer.topic, NULL);
    consume->queue = client->rd.queue_new(client->handle);
    for (uint32_t i = 0; i < consume->part_count; i++) {
        struct consume_part *part = &consume->parts[i];
        if (part->next > part->at) consume->total += (uint64_t)(part->next - part->at);
        if (part->at >= part->next && !consume->follow) {
            end_part(consume, part);
            continue;
        }
        if (client->rd.consume_start_queue(consume->topic, part->id, part->at, consume->queue) != 0)
            return (enum cli_exit)client_fail(client, "the start", client->rd.last_error(), NULL);
        part->started = true;
    }
    return CLI_OK;
}

static void stop_parts(struct consume *consume)
{
    struct client *client = &consume->client;
    for (uint32_t i = 0; i < consume->part_count; i++)
        if (consume->parts[i].started)
            (void)client->rd.consume_stop(consume->topic, consume->parts[i].id);
    if (consume->queue != NULL) client->rd.queue_destroy(consume->queue);
    if (consume->topic != NULL) client->rd.topic_destroy(consume->topic);
    mem_put(client->cli->mem, consume->parts, consume->parts_room);
}

/* ---- records --------------------------------------------------------------------------------- */

static bool enough(const struct consume *consume)
{
    if (consume_stopped || consume->code != CLI_OK) return true;
    if (consume->limit > 0 && consume->progress.records >= consume->limit) return true;
    return !consume->follow && consume->done_count == consume->part_count;
}

static void take(struct consume *consume, const rd_kafka_message_t *message)
{
    struct consume_part *part = part_of(consume, message->partition);
    struct cli *cli = consume->client.cli;

    if (part == NULL || enough(consume)) return;
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        if (!consume->follow && message->offset >= part->next) end_part(consume, part);
        return;
    }
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        consume->code = (enum cli_exit)client_fail(&consume->client, "reading", message->err,
                                                   consume->client.rd.message_errstr(message));
        return;
    }
    if (message->offset >= part->next && !consume->follow) {
        end_part(consume, part);
        return;
    }
    consume_print(&consume->printer, message);
    part->at = message->offset + 1;
    consume->progress.records++;
    consume->progress.bytes += message->len + message->key_len;
    if (!consume->follow && part->at >= part->next) end_part(consume, part);
    if (cli->out.size_bytes >= CONSUME_OUT_MAX) consume->code = cli_flush(cli);
}

static void loop(struct consume *consume)
{
    struct client *client = &consume->client;
    rd_kafka_message_t *batch[CONSUME_BATCH];

    while (!enough(consume)) {
        ssize_t count =
            client->rd.consume_batch_queue(consume->queue, CONSUME_WAIT_MS, batch, CONSUME_BATCH);
        for (ssize_t i = 0; i < count; i++) {
            take(consume, batch[i]);
            client->rd.message_destroy(batch[i]);
        }
        (void)client->rd.poll(client->handle, 0);
        if (consume->follow && consume->code == CLI_OK) consume->code = cli_flush(client->cli);
        if (consume->total > 0 && !consume->follow)
            consume->progress.part = (double)consume->progress.records / (double)consume->total;
        client_progress_tell(&consume->progress);
    }
}

/* ---- the command ----------------------------------------------------------------------------- */

static enum cli_exit read_format(struct consume *consume, struct cli *cli)
{
    const char *format = cli_value(cli, "format"), *pattern = cli_value(cli, "print");
    consume->printer.client = &consume->client;
    consume->printer.pattern = pattern;
    consume->printer.format = cli_has(cli, "json") ? CONSUME_JSON
                              : format == NULL     ? CONSUME_VALUE
                              : format[0] == 'f'   ? CONSUME_FULL
                              : format[0] == 'j'   ? CONSUME_JSON
                              : format[0] == 'h'   ? CONSUME_HEX
                                                   : CONSUME_VALUE;
    if (pattern == NULL) return CLI_OK;
    consume->printer.format = CONSUME_TEMPLATE;
    return consume_template_check(cli, pattern) ? CLI_OK : CLI_USAGE;
}

static enum cli_exit read_options(struct consume *consume,
                                  struct cli *cli,
                                  struct consume_from *from)
{
    const char *where = cli_value(cli, "from");
    long long count = 0, tail = 0;
    int64_t wall_ms = clock_wall_ms();

    enum cli_exit code = cli_integer(cli, "count", (struct cli_range){1, INT64_MAX}, &count);
    if (code == CLI_OK) code = cli_integer(cli, "tail", (struct cli_range){0, INT32_MAX}, &tail);
    if (code == CLI_OK) code = check_partitions(cli);
    if (code == CLI_OK) code = read_format(consume, cli);
    if (code != CLI_OK) return code;
    consume->limit = (uint64_t)count;
    consume->follow = cli_has(cli, "follow");
    if (strlen(cli->words[0]) >= sizeof(consume->printer.topic))
        return (enum cli_exit)cli_fail(cli, CLI_USAGE, "no topic has a name of %zu bytes",
                                       strlen(cli->words[0]));
    (void)snprintf(consume->printer.topic, sizeof(consume->printer.topic), "%s", cli->words[0]);
    if (where != NULL && cli_has(cli, "tail"))
        return (enum cli_exit)cli_fail(cli, CLI_USAGE, "--from and --tail exclude each other");
    *from = (struct consume_from){cli_has(cli, "tail") ? CONSUME_LAST : CONSUME_BEGINNING, tail};
    if (where == NULL || consume_from_parse(where, wall_ms, from)) return CLI_OK;
    cli_fail(cli, CLI_USAGE, "--from does not know \"%s\"", where);
    cli_hint(cli, "beginning, end, 12, -10, @2026-11-30T10:00, @-10m, @1796032800000");
    return CLI_USAGE;
}

/* --group: what else may be given with it, and the run. */
static enum cli_exit run_in_group(struct consume *consume, struct cli *cli)
{
    const char *group = cli_value(cli, "group"), *from = cli_value(cli, "from");
    bool at_end = from != NULL && strcmp(from, "end") == 0;
    if (cli_has(cli, "partition") || cli_has(cli, "tail"))
        return (enum cli_exit)cli_fail(cli, CLI_USAGE,
                                       "a group gives out the partitions and knows where it is: "
                                       "--partition and --tail are not for --group");
    if (from != NULL && !at_end && strcmp(from, "beginning") != 0) {
        cli_fail(cli, CLI_USAGE, "with --group, --from is beginning or end");
        cli_hint(cli, "`dohle group reset-offsets %s` moves a group to an offset or a time", group);
        return CLI_USAGE;
    }
    const char *const settings[] = CONSUME_GROUP_SETTINGS(group, at_end ? "latest" : "earliest");
    enum cli_exit code = client_open(cli, RD_KAFKA_CONSUMER, settings, &consume->client);
    if (code != CLI_OK) return code;
    struct consume_grouped grouped = {
        .client = &consume->client,
        .printer = &consume->printer,
        .progress = &consume->progress,
        .follow = consume->follow,
        .limit = consume->limit,
        .stopped = &consume_stopped,
    };
    struct sigaction stop = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    client_progress_begin(&consume->progress);
    if (isatty(STDOUT_FILENO) == 1) consume->progress.on = false;
    code = consume_grouped(&grouped);
    client_progress_end(&consume->progress);
    client_close(&consume->client);
    return code;
}

static int run(struct cli *cli)
{
    static const char *const settings[] = {"enable.partition.eof",
                                           "true",
                                           "auto.offset.reset",
                                           "error",
                                           "fetch.message.max.bytes",
                                           "4194304",
                                           NULL};
    struct consume consume = {0};
    struct consume_from from;
    struct sigaction stop = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

    enum cli_exit code = read_options(&consume, cli, &from);
    if (code == CLI_OK && cli_has(cli, "group")) return (int)run_in_group(&consume, cli);
    if (code == CLI_OK) code = client_open(cli, RD_KAFKA_CONSUMER, settings, &consume.client);
    if (code != CLI_OK) return (int)code;
    code = find_parts(&consume);
    if (code == CLI_OK)
        code = consume_where(&consume.client, consume.printer.topic, &from, consume.parts,
                             consume.part_count);
    if (code == CLI_OK) code = start_parts(&consume);
    if (code == CLI_OK) {
        sigaction(SIGINT, &stop, NULL);
        client_progress_begin(&consume.progress);
        /* Where the records themselves are seen, the line would be in their way. */
        if (isatty(STDOUT_FILENO) == 1) consume.progress.on = false;
        loop(&consume);
        client_progress_end(&consume.progress);
        code = consume.code;
    }
    stop_parts(&consume);
    client_close(&consume.client);
    return (int)code;
}

static const struct cli_option options[] = {
    CLI_OPTION("from",
               'o',
               "WHERE",
               "beginning, end, an offset (12), the last of each partition (-10), or a time "
               "(@2026-11-30T10:00, @-10m, @MILLISECONDS). Without: beginning."),
    CLI_OPTION("tail", 0, "N", "The last N of each partition, as --from -N."),
    CLI_FLAG("follow", 'f', "Go on with what comes, until Ctrl-C or --count."),
    CLI_OPTION("count", 'n', "N", "End after N records."),
    CLI_OPTION(
        "group",
        'g',
        "GROUP",
        "As a member of this group: share the partitions with the others, go on where it was, "
        "commit what was printed. --from then says where a new group begins."),
    CLI_OPTION("partition", 'p', "N", "Only this partition; may be repeated."),
    CLI_CHOICE("format", 0, "FORMAT", "value|full|json|hex", "How a record is printed (value)."),
    CLI_OPTION(
        "print",
        0,
        "TEMPLATE",
        "Each record by a template: %k key, %v value, %h headers, %t topic, %p partition, %o "
        "offset, %T milliseconds, %K %V sizes; \\n, \\t, \\0."),
    CLIENT_OPTIONS,
    CLI_OPTIONS_END,
};

extern const struct cli_command command_consume;
const struct cli_command command_consume = {
    .name = "consume",
    .group = CLI_TALK,
    .summary = "read records: from an offset or a time, to the end or on and on",
    .arguments =
        "TOPIC [--from WHERE | --tail N] [--follow] [--count N] [--group GROUP] [--json] [-b HOST:PORT]",
    .about =
        "Reads all partitions without a group, so nothing is committed, or with --group its share. Ends at what the topic "
        "held when it began, or goes on with --follow. A line of JSON can be given to `dohle "
        "produce --format json`. On a terminal long transfers into a file or pipe tell how far "
        "they are.\n\n"
        "    dohle consume words --tail 10 --format full\n"
        "    dohle consume words --from @-1h --follow\n"
        "    dohle consume words --print '%p:%o %k=%v\\n'",
    .options = options,
    .words_min = 1,
    .words_max = 1,
    .run = run,
};
