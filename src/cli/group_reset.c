/* group_reset.c - `dohle group reset-offsets`: where a group without members goes on reading. */
#include "cli/talk.h"

#include <stdlib.h>

#include "gen/metadata_response.h"
#include "gen/offset_commit_request.h"
#include "gen/offset_commit_response.h"

#define TO_END   (-1)
#define TO_START (-2)

/* One of the ways to say where to; CLI_USAGE: none, or several, said. */
struct where {
    int64_t timestamp; /* For talk_offsets_find(). */
    int64_t offset;    /* -1: see `timestamp`. */
};

static enum cli_exit where_to(struct cli *cli, struct where *out)
{
    long long offset = -1, time_ms = -1;
    *out = (struct where){.timestamp = TO_END, .offset = -1};
    int ways = cli_has(cli, "to-earliest") + cli_has(cli, "to-latest") + cli_has(cli, "to-offset") +
               cli_has(cli, "to-time");
    enum cli_exit code = cli_integer(cli, "to-offset", (struct cli_range){0, INT64_MAX}, &offset);
    if (code == CLI_OK)
        code = cli_integer(cli, "to-time", (struct cli_range){0, INT64_MAX}, &time_ms);
    if (code == CLI_OK && ways != 1)
        return (enum cli_exit)cli_fail(
            cli, CLI_USAGE,
            "say where to: one of --to-earliest, --to-latest, --to-offset, --to-time");
    out->offset = offset;
    if (cli_has(cli, "to-earliest")) out->timestamp = TO_START;
    if (time_ms >= 0) out->timestamp = time_ms;
    return code;
}

/* Partitions of the topics that were named; of none, those that the group has committed. */
static bool choose(struct talk *talk,
                   struct dial *coordinator,
                   const char *group,
                   struct group_offsets *out)
{
    const struct metadata_response *metadata = talk->metadata;
    const char *name;
    int at = 0;
    uint32_t room = 0;
    if (!cli_has(talk->cli, "topic")) return talk_offsets_fetch(talk, coordinator, group, out);
    for (int32_t i = 0; i < metadata->topics.count; i++)
        room += (uint32_t)MAX(metadata->topics.items[i].partitions.count, 0);
    *out = (struct group_offsets){.items = talk_get(talk, room * sizeof(*out->items))};
    if (out->items == NULL) return false;
    while ((name = cli_next(talk->cli, "topic", &at)) != NULL) {
        uint32_t before = out->count;
        for (int32_t i = 0; i < metadata->topics.count; i++) {
            const struct metadata_response_metadata_response_topic *topic =
                &metadata->topics.items[i];
            if (!view_is(topic->name, name)) continue;
            for (int32_t j = 0; j < topic->partitions.count && out->count < room; j++)
                out->items[out->count++] = (struct group_offset){
                    .topic = topic->name,
                    .partition = topic->partitions.items[j].partition_index,
                    .committed = -1,
                    .found = -1,
                };
        }
        if (out->count > before) continue;
        (void)cli_fail(talk->cli, CLI_FAILED, "there is no topic \"%s\"", name);
        return false;
    }
    return true;
}

/* All partitions stand or fall together while the coordinator loads. */
static int16_t commit_error(const void *answer)
{
    const struct offset_commit_response *committed = answer;
    bool any = committed->topics.count > 0 && committed->topics.items[0].partitions.count > 0;
    return any ? committed->topics.items[0].partitions.items[0].error_code : (int16_t)KAFKA_NONE;
}

/* Each partition as a topic of its own: Kafka takes it, and so the answer is in the same order. */
static const struct offset_commit_response *commit(struct talk *talk,
                                                   struct dial *coordinator,
                                                   const char *group,
                                                   const struct group_offsets *offsets)
{
    struct offset_commit_request *ask = talk_new(talk, &wire_offset_commit_request);
    struct offset_commit_request_offset_commit_request_topic *topics =
        talk_get(talk, offsets->count * sizeof(*topics));
    struct offset_commit_request_offset_commit_request_partition *partitions =
        talk_get(talk, offsets->count * sizeof(*partitions));
    if (ask == NULL || topics == NULL || partitions == NULL) return NULL;
    for (uint32_t i = 0; i < offsets->count; i++) {
        wire_struct_defaults(&wire_offset_commit_request_offset_commit_request_topic_shape,
                             &topics[i]);
        wire_struct_defaults(&wire_offset_commit_request_offset_commit_request_partition_shape,
                             &partitions[i]);
        partitions[i].partition_index = offsets->items[i].partition;
        partitions[i].committed_offset = offsets->items[i].found;
        partitions[i].committed_metadata = VIEW_EMPTY;
        topics[i].name = offsets->items[i].topic;
        topics[i].partitions.items = &partitions[i];
        topics[i].partitions.count = 1;
    }
    ask->group_id = view_of_string(group);
    ask->generation_id_or_member_epoch = -1;
    ask->topics.items = topics;
    ask->topics.count = (int32_t)offsets->count;
    return talk_ask(talk, coordinator,
                    &(struct talk_question){&wire_offset_commit_request, ask, 9, commit_error});
}

static void tell(struct cli *cli, const struct group_offset *offset)
{
    struct out *out = &cli->out;
    if (cli_has(cli, "json")) {
        out_text(out, "{\"topic\":");
        out_quoted(out, offset->topic);
        out_format(out, ",\"partition\":%d,\"offset\":%lld,\"executed\":%s}\n", offset->partition,
                   (long long)offset->found, cli_has(cli, "dry-run") ? "false" : "true");
        return;
    }
    out_view(out, offset->topic);
    out_format(out, "-%d", offset->partition);
    out_column(out, 40);
    out_format(out, " %lld%s\n", (long long)offset->found,
               cli_has(cli, "dry-run") ? " (not done)" : "");
}

static int reset_to(struct talk *talk,
                    struct dial *coordinator,
                    const char *group,
                    struct group_offsets *offsets)
{
    int code = CLI_OK;
    bool dry = cli_has(talk->cli, "dry-run");
    const struct offset_commit_response *answer =
        dry ? NULL : commit(talk, coordinator, group, offsets);
    if (!dry && answer == NULL) return CLI_FAILED;
    for (uint32_t i = 0; i < offsets->count; i++) {
        const struct group_offset *offset = &offsets->items[i];
        char what[300];
        int16_t error = KAFKA_NONE;
        if (!dry && (int32_t)i < answer->topics.count &&
            answer->topics.items[i].partitions.count == 1)
            error = answer->topics.items[i].partitions.items[0].error_code;
        (void)snprintf(what, sizeof(what), "%.*s-%d", (int)offset->topic.size,
                       (const char *)offset->topic.data, offset->partition);
        if (error == KAFKA_NONE)
            tell(talk->cli, offset);
        else
            code = talk_fail(talk, what, error);
    }
    return code;
}

static int reset(struct talk *talk, const char *group, const struct where *where)
{
    struct group_offsets offsets;
    int32_t id;
    struct dial *coordinator = talk_coordinator(talk, group, &id);
    if (coordinator == NULL || !choose(talk, coordinator, group, &offsets)) return CLI_FAILED;
    if (offsets.count == 0)
        return cli_fail(talk->cli, CLI_FAILED,
                        "group \"%s\" has committed nothing; name its topics by --topic", group);
    if (!talk_offsets_find(talk, &offsets, where->timestamp)) return CLI_FAILED;
    for (uint32_t i = 0; i < offsets.count; i++) {
        if (offsets.items[i].error != KAFKA_NONE)
            return talk_fail(talk, "where the partitions stand", offsets.items[i].error);
        if (where->offset >= 0) offsets.items[i].found = where->offset;
    }
    /* A time after the last record has no offset: the end, as Kafka's tool takes it. */
    struct group_offsets ends = {.items = talk_get(talk, offsets.count * sizeof(*ends.items)),
                                 .count = offsets.count};
    if (ends.items == NULL) return CLI_FAILED;
    memcpy(ends.items, offsets.items, offsets.count * sizeof(*ends.items));
    if (where->timestamp >= 0 && !talk_offsets_find(talk, &ends, TO_END)) return CLI_FAILED;
    for (uint32_t i = 0; i < offsets.count; i++)
        if (offsets.items[i].found < 0) offsets.items[i].found = ends.items[i].found;
    return reset_to(talk, coordinator, group, &offsets);
}

static int run(struct cli *cli)
{
    struct talk talk;
    struct where where;
    enum cli_exit code = where_to(cli, &where);
    if (code != CLI_OK) return (int)code;
    int result = (int)talk_open(cli, &talk);
    if (result == CLI_OK) result = reset(&talk, cli->words[0], &where);
    talk_close(&talk);
    return result;
}

static const struct cli_option options[] = {
    TALK_OPTIONS,
    CLI_FLAG("to-earliest", 0, "To the beginning of each partition."),
    CLI_FLAG("to-latest", 0, "To its end."),
    CLI_OPTION("to-offset", 0, "N", "To this offset."),
    CLI_OPTION("to-time", 0, "MS", "To the first record of this time, in milliseconds since 1970."),
    CLI_OPTION("topic", 't', "TOPIC", "Only this topic; may be repeated. Without: all committed."),
    CLI_FLAG("dry-run", 'n', "Only tell what would be done."),
    CLI_OPTIONS_END,
};

extern const struct cli_command command_group_reset_offsets;
const struct cli_command command_group_reset_offsets = {
    .name = "group reset-offsets",
    .group = CLI_TALK,
    .summary = "set where a group without members goes on reading",
    .arguments = "GROUP --to-earliest|--to-latest|--to-offset N|--to-time MS [--topic TOPIC]... "
                 "[--dry-run]",
    .about = "The group must have no members; the broker refuses it else. Without --topic, the "
             "partitions for which the group has committed offsets are set.",
    .options = options,
    .words_min = 1,
    .words_max = 1,
    .run = run,
};
