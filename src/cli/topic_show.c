/* topic_show.c - `dohle topic list` and `dohle topic describe`. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/topic.h"

rd_kafka_event_t *topic_configs(struct client *client,
                                const char *name,
                                const rd_kafka_ConfigEntry_t ***entries,
                                size_t *count)
{
    size_t found = 0;
    char what[320];
    (void)snprintf(what, sizeof(what), "the settings of topic \"%s\"", name);
    rd_kafka_ConfigResource_t *resource =
        client->rd.ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, name);
    struct topic_call call = topic_call(client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
    client->rd.DescribeConfigs(client->handle, &resource, 1, call.options, call.queue);
    rd_kafka_event_t *event = topic_called(client, call, what);
    if (event != NULL) {
        const rd_kafka_ConfigResource_t **results = client->rd.DescribeConfigs_result_resources(
            client->rd.event_DescribeConfigs_result(event), &found);
        rd_kafka_resp_err_t error = client->rd.ConfigResource_error(results[0]);
        if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
            *entries = client->rd.ConfigResource_configs(results[0], count);
        } else {
            (void)client_fail(client, what, error,
                              client->rd.ConfigResource_error_string(results[0]));
            client->rd.event_destroy(event);
            event = NULL;
        }
    }
    client->rd.ConfigResource_destroy(resource);
    return event;
}

/* ---- list ------------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    const rd_kafka_metadata_topic_t *const *one = a, *const *two = b;
    return strcmp((*one)->topic, (*two)->topic);
}

static bool is_internal(const char *name)
{
    return name[0] == '_' && name[1] == '_';
}

/* Partitions whose in-sync set lacks a replica, or that have no leader. */
static int not_well(const rd_kafka_metadata_topic_t *topic)
{
    int count = 0;
    for (int i = 0; i < topic->partition_cnt; i++)
        count += topic->partitions[i].isr_cnt < topic->partitions[i].replica_cnt ||
                 topic->partitions[i].leader < 0;
    return count;
}

static void list_one(struct cli *cli, const rd_kafka_metadata_topic_t *topic, size_t width)
{
    struct out *out = &cli->out;
    int replicas = topic->partition_cnt > 0 ? topic->partitions[0].replica_cnt : 0;
    int bad = not_well(topic);
    if (cli_has(cli, "json")) {
        out_text(out, "{\"topic\":");
        out_quoted(out, view_of_string(topic->topic));
        out_format(out, ",\"partitions\":%d,\"replicas\":%d,\"underReplicated\":%d}\n",
                   topic->partition_cnt, replicas, bad);
        return;
    }
    out_text(out, topic->topic);
    out_column(out, width + 2);
    out_format(out, "%10d  %8d", topic->partition_cnt, replicas);
    if (bad > 0) out_format(out, "  %d not in sync", bad);
    out_char(out, '\n');
}

static int list_all(struct client *client, const struct rd_kafka_metadata *metadata)
{
    struct cli *cli = client->cli;
    size_t count = 0, width = 5, room = ((size_t)metadata->topic_cnt + 1) * sizeof(void *);
    const rd_kafka_metadata_topic_t **topics = mem_get(cli->mem, room);

    if (topics == NULL) return cli_fail(cli, CLI_FAILED, "out of memory");
    for (int i = 0; i < metadata->topic_cnt; i++) {
        const rd_kafka_metadata_topic_t *topic = &metadata->topics[i];
        if (is_internal(topic->topic) && !cli_has(cli, "internal")) continue;
        topics[count++] = topic;
        width = MAX(width, strlen(topic->topic));
    }
    qsort(topics, count, sizeof(*topics), by_name);
    if (!cli_has(cli, "json") && count > 0) {
        out_text(&cli->out, "topic");
        out_column(&cli->out, width + 2);
        out_text(&cli->out, "partitions  replicas\n");
    }
    for (size_t i = 0; i < count; i++)
        list_one(cli, topics[i], width);
    if (count == 0 && !cli_has(cli, "json"))
        fputs("no topics; `dohle topic create NAME` makes one\n", cli->errors);
    mem_put(cli->mem, topics, room);
    return CLI_OK;
}

static int run_list(struct cli *cli)
{
    return client_run(cli, RD_KAFKA_PRODUCER, list_all);
}

/* ---- describe -------------------------------------------------------------------------------- */

struct ends {
    int64_t first, next; /* -1: not known. */
};

static struct ends ends_of(struct client *client, const char *topic, int32_t partition)
{
    struct ends ends = {-1, -1};
    rd_kafka_resp_err_t error = client->rd.query_watermark_offsets(
        client->handle, topic, partition, &ends.first, &ends.next, client->timeout_ms);
    return error == RD_KAFKA_RESP_ERR_NO_ERROR ? ends : (struct ends){-1, -1};
}

static int by_id(const void *a, const void *b)
{
    const rd_kafka_metadata_partition_t *one = a, *two = b;
    return (one->id > two->id) - (one->id < two->id);
}

static void put_ids(struct out *out, const int32_t *ids, int count)
{
    for (int i = 0; i < count; i++)
        out_format(out, "%s%d", i == 0 ? "" : ",", ids[i]);
    if (count == 0) out_char(out, '-');
}

static void describe_partition(struct client *client,
                               const char *topic,
                               const rd_kafka_metadata_partition_t *partition,
                               uint64_t *records)
{
    struct out *out = &client->cli->out;
    struct ends ends = ends_of(client, topic, partition->id);
    if (ends.next >= 0) *records += (uint64_t)(ends.next - ends.first);
    if (cli_has(client->cli, "json")) {
        out_format(out, "{\"partition\":%d,\"leader\":%d,\"replicas\":[", partition->id,
                   partition->leader);
        for (int i = 0; i < partition->replica_cnt; i++)
            out_format(out, "%s%d", i == 0 ? "" : ",", partition->replicas[i]);
        out_text(out, "],\"isr\":[");
        for (int i = 0; i < partition->isr_cnt; i++)
            out_format(out, "%s%d", i == 0 ? "" : ",", partition->isrs[i]);
        out_format(out, "],\"firstOffset\":%" PRId64 ",\"nextOffset\":%" PRId64 "}", ends.first,
                   ends.next);
        return;
    }
    out_format(out, "%11d  ", partition->id);
    if (partition->leader < 0) {
        out_format(out, "%6s  ", "none");
    } else {
        out_format(out, "%6d  ", partition->leader);
    }
    put_ids(out, partition->replicas, partition->replica_cnt);
    out_char(out, ' ');
    out_column(out, 31);
    put_ids(out, partition->isrs, partition->isr_cnt);
    out_char(out, ' ');
    out_column(out, 41);
    out_format(out, "%12" PRId64 "  %12" PRId64, ends.first, ends.next);
    out_format(out, "%s\n", partition->isr_cnt < partition->replica_cnt ? "  not in sync" : "");
}

static void describe_settings(struct client *client, const char *topic)
{
    struct out *out = &client->cli->out;
    const rd_kafka_ConfigEntry_t **entries = NULL;
    size_t count = 0;
    bool json = cli_has(client->cli, "json"), first = true;
    rd_kafka_event_t *event = topic_configs(client, topic, &entries, &count);

    if (json) out_text(out, ",\"settings\":{");
    for (size_t i = 0; event != NULL && i < count; i++) {
        const char *name = client->rd.ConfigEntry_name(entries[i]);
        const char *value = client->rd.ConfigEntry_value(entries[i]);
        if (client->rd.ConfigEntry_source(entries[i]) !=
            RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG)
            continue;
        if (json) {
            if (!first) out_char(out, ',');
            out_quoted(out, view_of_string(name));
            out_char(out, ':');
            out_quoted(out, view_of_string(value == NULL ? "" : value));
        } else {
            out_format(out, "  %s=%s\n", name, value == NULL ? "" : value);
        }
        first = false;
    }
    if (json) out_char(out, '}');
    if (event != NULL) client->rd.event_destroy(event);
}

static void describe(struct client *client, const rd_kafka_metadata_topic_t *topic)
{
    struct out *out = &client->cli->out;
    bool json = cli_has(client->cli, "json");
    char number[CLIENT_NUMBER_BYTES];
    uint64_t records = 0;

    qsort(topic->partitions, (size_t)topic->partition_cnt, sizeof(*topic->partitions), by_id);
    if (json) {
        out_text(out, "{\"topic\":");
        out_quoted(out, view_of_string(topic->topic));
        out_text(out, ",\"partitions\":[");
    } else {
        out_format(out, "%s: %d partition%s, %d replica%s\n", topic->topic, topic->partition_cnt,
                   topic->partition_cnt == 1 ? "" : "s",
                   topic->partition_cnt > 0 ? topic->partitions[0].replica_cnt : 0,
                   topic->partition_cnt > 0 && topic->partitions[0].replica_cnt == 1 ? "" : "s");
        out_text(out, "  partition  leader  replicas  in sync    first offset   next offset\n");
    }
    for (int i = 0; i < topic->partition_cnt; i++) {
        if (json && i > 0) out_char(out, ',');
        describe_partition(client, topic->topic, &topic->partitions[i], &records);
    }
    if (json) {
        out_format(out, "],\"offsets\":%" PRIu64, records);
    } else {
        out_format(out, "  %s offsets in use; settings of its own:\n",
                   client_count_text(records, number));
    }
    describe_settings(client, topic->topic);
    if (json) out_text(out, "}\n");
}

static int describe_all(struct client *client, const struct rd_kafka_metadata *metadata)
{
    int result = CLI_OK;
    for (int i = 0; i < client->cli->word_count; i++) {
        const rd_kafka_metadata_topic_t *topic =
            client_topic(client, metadata, client->cli->words[i]);
        if (topic == NULL) {
            result = CLI_FAILED;
        } else {
            describe(client, topic);
        }
    }
    return result;
}

static int run_describe(struct cli *cli)
{
    return client_run(cli, RD_KAFKA_CONSUMER, describe_all);
}

/* ---- the tables ------------------------------------------------------------------------------ */

static const struct cli_option list_options[] = {
    CLI_FLAG("internal", 'i', "Also those of Kafka itself, which begin with __."),
    CLIENT_OPTIONS,
    CLI_OPTIONS_END,
};

extern const struct cli_command command_topic_list;
const struct cli_command command_topic_list = {
    .name = "topic list",
    .group = CLI_TALK,
    .summary = "all topics, with their partitions",
    .arguments = "[--internal] [-b HOST:PORT] [--json]",
    .about = "With --json each topic is a line.",
    .options = list_options,
    .run = run_list,
};

static const struct cli_option describe_options[] = {CLIENT_OPTIONS, CLI_OPTIONS_END};

extern const struct cli_command command_topic_describe;
const struct cli_command command_topic_describe = {
    .name = "topic describe",
    .group = CLI_TALK,
    .summary = "a topic's partitions, leaders, offsets and settings",
    .arguments = "NAME... [-b HOST:PORT] [--json]",
    .about = "With --json each topic is a line. Offsets in use: from the first to the next one of "
             "each partition; fewer records may be left of them where a topic is compacted.",
    .options = describe_options,
    .words_min = 1,
    .words_max = CLI_WORDS_MAX,
    .run = run_describe,
};
