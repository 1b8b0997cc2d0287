/* cluster_state.c - `dohle cluster brokers`: who is registered and who is fenced; `dohle cluster
 * quorum`: who leads the metadata log, who votes, who follows, and how far each is. */
#include "cli/clock.h"
#include "cli/talk.h"
#include "gen/describe_cluster_request.h"
#include "gen/describe_cluster_response.h"
#include "gen/describe_quorum_request.h"
#include "gen/describe_quorum_response.h"

/* Milliseconds since 1970 as "1.2 s ago"; -1 is "never told". */
static void put_age(struct out *out, int64_t wall_ms)
{
    int64_t ago_ms = clock_wall_ms() - wall_ms;
    if (wall_ms < 0) {
        out_text(out, "never");
    } else {
        out_format(out, "%.1f s ago", (double)MAX(ago_ms, 0) / 1000);
    }
}

/* ---- brokers --------------------------------------------------------------------------------- */

static void put_broker(struct talk *talk,
                       const struct describe_cluster_response_describe_cluster_broker *broker)
{
    struct out *out = &talk->cli->out;
    out_format(out, "broker %-5d  ", broker->broker_id);
    out_view(out, broker->host);
    out_format(out, ":%d  %s", broker->port, broker->is_fenced ? "fenced" : "alive");
    if (!broker->rack.null) {
        out_text(out, ", rack ");
        out_view(out, broker->rack);
    }
    out_char(out, '\n');
}

static void put_brokers_json(struct talk *talk, const struct describe_cluster_response *answer)
{
    struct out *out = &talk->cli->out;
    out_text(out, "{\"cluster\":");
    out_quoted(out, answer->cluster_id);
    out_text(out, ",\"brokers\":[");
    for (int32_t i = 0; i < answer->brokers.count; i++) {
        const struct describe_cluster_response_describe_cluster_broker *broker =
            &answer->brokers.items[i];
        out_format(out, "%s{\"id\":%d,\"host\":", i == 0 ? "" : ",", broker->broker_id);
        out_quoted(out, broker->host);
        out_format(out, ",\"port\":%d,\"fenced\":%s,\"rack\":", broker->port,
                   broker->is_fenced ? "true" : "false");
        if (broker->rack.null) {
            out_text(out, "null}");
        } else {
            out_quoted(out, broker->rack);
            out_char(out, '}');
        }
    }
    out_text(out, "]}\n");
}

static int brokers(struct talk *talk)
{
    struct describe_cluster_request *ask = talk_new(talk, &wire_describe_cluster_request);
    if (ask == NULL) return CLI_FAILED;
    ask->include_fenced_brokers = true; /* Version 2; an older server tells of the others only. */
    const struct describe_cluster_response *answer = talk_ask(
        talk, &talk->boot, &(struct talk_question){&wire_describe_cluster_request, ask, 2, NULL});
    if (answer == NULL) return CLI_FAILED;
    if (answer->error_code != KAFKA_NONE)
        return talk_fail(talk, "the cluster's brokers", answer->error_code);
    if (cli_has(talk->cli, "json")) {
        put_brokers_json(talk, answer);
        return CLI_OK;
    }
    for (int32_t i = 0; i < answer->brokers.count; i++)
        put_broker(talk, &answer->brokers.items[i]);
    return CLI_OK;
}

/* ---- quorum ---------------------------------------------------------------------------------- */

struct quorum_list {
    const char *role;
    const struct describe_quorum_response_replica_state *items;
    int32_t count;
};

static void put_replicas(struct talk *talk,
                         const struct describe_quorum_response_partition_data *quorum,
                         const struct quorum_list *list)
{
    struct out *out = &talk->cli->out;
    for (int32_t i = 0; i < list->count; i++) {
        const struct describe_quorum_response_replica_state *replica = &list->items[i];
        bool leader = replica->replica_id == quorum->leader_id;
        out_format(out, "  %-8s %-5d  log ends at %lld", list->role, replica->replica_id,
                   (long long)replica->log_end_offset);
        if (leader) {
            out_text(out, ", leads");
        } else {
            out_text(out, ", caught up ");
            put_age(out, replica->last_caught_up_timestamp);
            out_text(out, ", fetched ");
            put_age(out, replica->last_fetch_timestamp);
        }
        out_char(out, '\n');
    }
}

static void put_replicas_json(struct talk *talk, const struct quorum_list *list)
{
    struct out *out = &talk->cli->out;
    out_format(out, ",\"%ss\":[", list->role);
    for (int32_t i = 0; i < list->count; i++)
        out_format(
            out, "%s{\"id\":%d,\"logEndOffset\":%lld,\"lastFetchMs\":%lld,\"lastCaughtUpMs\":%lld}",
            i == 0 ? "" : ",", list->items[i].replica_id, (long long)list->items[i].log_end_offset,
            (long long)list->items[i].last_fetch_timestamp,
            (long long)list->items[i].last_caught_up_timestamp);
    out_char(out, ']');
}

static void put_quorum(struct talk *talk,
                       const struct describe_quorum_response_partition_data *quorum)
{
    struct out *out = &talk->cli->out;
    const struct quorum_list lists[] = {
        {"voter",    quorum->current_voters.items, quorum->current_voters.count},
        {"observer", quorum->observers.items,      quorum->observers.count     },
    };
    bool json = cli_has(talk->cli, "json");
    out_format(out,
               json ? "{\"leader\":%d,\"epoch\":%d,\"highWatermark\":%lld"
                    : "leader %d in epoch %d, committed up to %lld\n",
               quorum->leader_id, quorum->leader_epoch, (long long)quorum->high_watermark);
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        if (json) {
            put_replicas_json(talk, &lists[i]);
        } else {
            put_replicas(talk, quorum, &lists[i]);
        }
    }
    if (json) out_text(out, "}\n");
}

static int quorum(struct talk *talk)
{
    struct describe_quorum_request_partition_data partition = {.partition_index = 0};
    struct describe_quorum_request_topic_data topic = {
        .topic_name = VIEW("__cluster_metadata"), .partitions = {&partition, 1}
    };
    struct describe_quorum_request *ask = talk_new(talk, &wire_describe_quorum_request);
    if (ask == NULL) return CLI_FAILED;
    ask->topics.items = &topic;
    ask->topics.count = 1;
    const struct describe_quorum_response *answer = talk_ask(
        talk, &talk->boot, &(struct talk_question){&wire_describe_quorum_request, ask, 2, NULL});
    if (answer == NULL) return CLI_FAILED;
    int16_t error = answer->error_code;
    bool whole = answer->topics.count == 1 && answer->topics.items[0].partitions.count == 1;
    if (error == KAFKA_NONE && whole)
        error = answer->topics.items[0].partitions.items[0].error_code;
    if (error != KAFKA_NONE || !whole)
        return talk_fail(talk, "the quorum",
                         error == KAFKA_NONE ? KAFKA_UNKNOWN_SERVER_ERROR : error);
    put_quorum(talk, &answer->topics.items[0].partitions.items[0]);
    return CLI_OK;
}

/* ---- commands -------------------------------------------------------------------------------- */

static int talk_of(struct cli *cli, int (*what)(struct talk *talk))
{
    struct talk talk;
    int code = (int)talk_open(cli, &talk);
    if (code == CLI_OK) code = what(&talk);
    talk_close(&talk);
    return code;
}

static int run_brokers(struct cli *cli)
{
    return talk_of(cli, brokers);
}

static int run_quorum(struct cli *cli)
{
    return talk_of(cli, quorum);
}

static const struct cli_option options[] = {TALK_OPTIONS, CLI_OPTIONS_END};

extern const struct cli_command command_cluster_brokers;
const struct cli_command command_cluster_brokers = {
    .name = "cluster brokers",
    .group = CLI_TALK,
    .summary = "the registered brokers: which are alive, which are fenced",
    .arguments = "[-b HOST:PORT] [--json]",
    .about = "Why a broker is fenced, `dohle explain broker ID` tells.",
    .options = options,
    .run = run_brokers,
};

extern const struct cli_command command_cluster_quorum;
const struct cli_command command_cluster_quorum = {
    .name = "cluster quorum",
    .group = CLI_TALK,
    .summary = "who leads the metadata log, who votes and follows, how far each is",
    .arguments = "[-b HOST:PORT] [--json]",
    .options = options,
    .run = run_quorum,
};
