/* cluster.c - `dohle cluster describe`: the brokers, the controller, how the partitions are. */
#include "cli/client.h"

struct totals {
    int topics, partitions, not_in_sync, without_leader;
};

static struct totals count_all(const struct rd_kafka_metadata *metadata)
{
    struct totals totals = {.topics = metadata->topic_cnt};
    for (int i = 0; i < metadata->topic_cnt; i++) {
        const rd_kafka_metadata_topic_t *topic = &metadata->topics[i];
        totals.partitions += topic->partition_cnt;
        for (int j = 0; j < topic->partition_cnt; j++) {
            const rd_kafka_metadata_partition_t *partition = &topic->partitions[j];
            totals.not_in_sync += partition->isr_cnt < partition->replica_cnt;
            totals.without_leader += partition->leader < 0;
        }
    }
    return totals;
}

static int leads(const struct rd_kafka_metadata *metadata, int32_t broker)
{
    int count = 0;
    for (int i = 0; i < metadata->topic_cnt; i++)
        for (int j = 0; j < metadata->topics[i].partition_cnt; j++)
            count += metadata->topics[i].partitions[j].leader == broker;
    return count;
}

static void as_text(struct client *client, const struct rd_kafka_metadata *metadata, const char *id)
{
    struct out *out = &client->cli->out;
    struct totals totals = count_all(metadata);
    int32_t controller = client->rd.controllerid(client->handle, client->timeout_ms);

    out_format(out, "cluster %s\n", id == NULL ? "(no id)" : id);
    for (int i = 0; i < metadata->broker_cnt; i++) {
        const struct rd_kafka_metadata_broker *broker = &metadata->brokers[i];
        bool six = strchr(broker->host, ':') != NULL;
        out_format(out, six ? "  broker %-5d  [%s]:%d" : "  broker %-5d  %s:%d", broker->id,
                   broker->host, broker->port);
        out_format(out, "  leads %d%s%s\n", leads(metadata, broker->id),
                   broker->id == controller ? ", controller" : "",
                   broker->id == metadata->orig_broker_id ? ", answered" : "");
    }
    out_format(out, "%d topic%s, %d partition%s", totals.topics, totals.topics == 1 ? "" : "s",
               totals.partitions, totals.partitions == 1 ? "" : "s");
    if (totals.not_in_sync + totals.without_leader == 0) {
        out_text(out, ", all in sync\n");
    } else {
        out_format(out, ", %d not in sync, %d without a leader\n", totals.not_in_sync,
                   totals.without_leader);
    }
}

static void as_json(struct client *client, const struct rd_kafka_metadata *metadata, const char *id)
{
    struct out *out = &client->cli->out;
    struct totals totals = count_all(metadata);

    out_text(out, "{\"cluster\":");
    out_quoted(out, view_of_string(id == NULL ? "" : id));
    out_format(out, ",\"controller\":%d,\"brokers\":[",
               client->rd.controllerid(client->handle, client->timeout_ms));
    for (int i = 0; i < metadata->broker_cnt; i++) {
        out_format(out, "%s{\"id\":%d,\"host\":", i == 0 ? "" : ",", metadata->brokers[i].id);
        out_quoted(out, view_of_string(metadata->brokers[i].host));
        out_format(out, ",\"port\":%d,\"leads\":%d}", metadata->brokers[i].port,
                   leads(metadata, metadata->brokers[i].id));
    }
    out_format(out, "],\"topics\":%d,\"partitions\":%d,\"notInSync\":%d,\"withoutLeader\":%d}\n",
               totals.topics, totals.partitions, totals.not_in_sync, totals.without_leader);
}

static int show(struct client *client, const struct rd_kafka_metadata *metadata)
{
    char *id = client->rd.clusterid(client->handle, client->timeout_ms);
    if (cli_has(client->cli, "json")) {
        as_json(client, metadata, id);
    } else {
        as_text(client, metadata, id);
    }
    client->rd.mem_free(client->handle, id);
    return CLI_OK;
}

static int run(struct cli *cli)
{
    return client_run(cli, RD_KAFKA_PRODUCER, show);
}

static const struct cli_option options[] = {CLIENT_OPTIONS, CLI_OPTIONS_END};

extern const struct cli_command command_cluster_describe;
const struct cli_command command_cluster_describe = {
    .name = "cluster describe",
    .group = CLI_TALK,
    .summary = "brokers, controller, and whether all partitions are well",
    .arguments = "[-b HOST:PORT] [--json]",
    .options = options,
    .run = run,
};
