/* group_describe.c - `dohle group describe`: state, members with what they hold, offsets and lag.
 */
#include "cli/talk.h"

#include "base/bytes.h"

#include "gen/consumer_group_describe_request.h"
#include "gen/consumer_group_describe_response.h"
#include "gen/consumer_protocol_assignment.h"
#include "gen/describe_groups_request.h"
#include "gen/describe_groups_response.h"

/* A member as both kinds of groups have it. */
struct member {
    struct view id, instance, client_id, host;
    struct view assignment; /* A ConsumerProtocolAssignment; null: see `held`. */
    const struct consumer_group_describe_response_member *held;
};

struct description {
    struct view type, state, protocol;
    int32_t epoch; /* -1: a classic group does not tell. */
    struct member *members;
    uint32_t count;
    int32_t coordinator;
    struct group_offsets offsets;
};

/* ---- asking -----------------------------------------------------------------------------------
 */

static int16_t classic_error(const void *answer)
{
    const struct describe_groups_response *described = answer;
    return described->groups.count == 1 ? described->groups.items[0].error_code
                                        : (int16_t)KAFKA_NONE;
}

static int16_t consumer_error(const void *answer)
{
    const struct consumer_group_describe_response *described = answer;
    return described->groups.count == 1 ? described->groups.items[0].error_code
                                        : (int16_t)KAFKA_NONE;
}

/* 1: described, 0: not of this kind, -1: said. */
static int describe_classic(struct talk *talk,
                            struct dial *dial,
                            const char *group,
                            struct description *out)
{
    struct view name = view_of_string(group);
    struct describe_groups_request *ask = talk_new(talk, &wire_describe_groups_request);
    if (ask == NULL) return -1;
    ask->groups.items = &name;
    ask->groups.count = 1;
    const struct describe_groups_response *answer = talk_ask(
        talk, dial, &(struct talk_question){&wire_describe_groups_request, ask, 6, classic_error});
    if (answer == NULL || answer->groups.count != 1) return -1;
    const struct describe_groups_response_described_group *found = &answer->groups.items[0];
    if (found->error_code == KAFKA_GROUP_ID_NOT_FOUND || view_is(found->group_state, "Dead"))
        return 0;
    if (found->error_code != KAFKA_NONE) {
        (void)talk_fail(talk, "the group", found->error_code);
        return -1;
    }
    *out = (struct description){
        .type = VIEW("classic"),
        .state = found->group_state,
        .protocol = found->protocol_data,
        .epoch = -1,
        .members = talk_get(talk, (size_t)MAX(found->members.count, 0) * sizeof(struct member)),
    };
    if (out->members == NULL) return -1;
    for (int32_t i = 0; i < found->members.count; i++)
        out->members[out->count++] = (struct member){
            .id = found->members.items[i].member_id,
            .instance = found->members.items[i].group_instance_id,
            .client_id = found->members.items[i].client_id,
            .host = found->members.items[i].client_host,
            .assignment = found->members.items[i].member_assignment,
        };
    return 1;
}

static int describe_consumer(struct talk *talk,
                             struct dial *dial,
                             const char *group,
                             struct description *out)
{
    struct view name = view_of_string(group);
    struct consumer_group_describe_request *ask =
        talk_new(talk, &wire_consumer_group_describe_request);
    int16_t key = wire_consumer_group_describe_request.api_key;
    if (ask == NULL) return -1;
    if (dial->apis[key].max < dial->apis[key].min) return 0; /* A server of before its time. */
    ask->group_ids.items = &name;
    ask->group_ids.count = 1;
    const struct consumer_group_describe_response *answer = talk_ask(
        talk, dial,
        &(struct talk_question){&wire_consumer_group_describe_request, ask, 1, consumer_error});
    if (answer == NULL || answer->groups.count != 1) return -1;
    const struct consumer_group_describe_response_described_group *found = &answer->groups.items[0];
    if (found->error_code == KAFKA_GROUP_ID_NOT_FOUND) return 0;
    if (found->error_code != KAFKA_NONE) {
        (void)talk_fail(talk, "the group", found->error_code);
        return -1;
    }
    *out = (struct description){
        .type = VIEW("consumer"),
        .state = found->group_state,
        .protocol = found->assignor_name,
        .epoch = found->group_epoch,
        .members = talk_get(talk, (size_t)MAX(found->members.count, 0) * sizeof(struct member)),
    };
    if (out->members == NULL) return -1;
    for (int32_t i = 0; i < found->members.count; i++)
        out->members[out->count++] = (struct member){
            .id = found->members.items[i].member_id,
            .instance = found->members.items[i].instance_id,
            .client_id = found->members.items[i].client_id,
            .host = found->members.items[i].client_host,
            .assignment = VIEW_NULL,
            .held = &found->members.items[i],
        };
    return 1;
}

/* ---- what members hold ------------------------------------------------------------------------
 */

typedef void (*each_held)(void *context, struct view topic, int32_t partition);

static void each_of_bytes(struct talk *talk, struct view bytes, each_held each, void *context)
{
    struct consumer_protocol_assignment in;
    struct reader reader;
    int16_t version;
    if (bytes.size < 2) return;
    version = (int16_t)load_be16(bytes.data);
    version = MAX(0, MIN(version, wire_consumer_protocol_assignment.version_max));
    reader = reader_of(view_of(bytes.data + 2, bytes.size - 2));
    if (!wire_decode(&reader, wire_form(&wire_consumer_protocol_assignment, version), &talk->arena,
                     &in))
        return; /* Another protocol's, or damaged: nothing can be told. */
    for (int32_t i = 0; i < in.assigned_partitions.count; i++)
        for (int32_t j = 0; j < in.assigned_partitions.items[i].partitions.count; j++)
            each(context, in.assigned_partitions.items[i].topic,
                 in.assigned_partitions.items[i].partitions.items[j]);
}

static void each_partition(struct talk *talk,
                           const struct member *member,
                           each_held each,
                           void *context)
{
    if (member->held == NULL) {
        each_of_bytes(talk, member->assignment, each, context);
        return;
    }
    const struct consumer_group_describe_response_assignment *held = &member->held->assignment;
    for (int32_t i = 0; i < held->topic_partitions.count; i++)
        for (int32_t j = 0; j < held->topic_partitions.items[i].partitions.count; j++)
            each(context, held->topic_partitions.items[i].topic_name,
                 held->topic_partitions.items[i].partitions.items[j]);
}

/* Who holds a partition. */
struct holder {
    const struct group_offset *of;
    bool found;
};

static void is_held(void *context, struct view topic, int32_t partition)
{
    struct holder *holder = context;
    holder->found = holder->found ||
                    (partition == holder->of->partition && view_equal(topic, holder->of->topic));
}

static const struct member *holder_of(struct talk *talk,
                                      const struct description *description,
                                      const struct group_offset *offset)
{
    for (uint32_t i = 0; i < description->count; i++) {
        struct holder holder = {.of = offset};
        each_partition(talk, &description->members[i], is_held, &holder);
        if (holder.found) return &description->members[i];
    }
    return NULL;
}

/* ---- telling ----------------------------------------------------------------------------------
 */

struct listing {
    struct out *out;
    bool json, any;
};

static void put_held(void *context, struct view topic, int32_t partition)
{
    struct listing *listing = context;
    if (listing->json) {
        out_text(listing->out, listing->any ? ",{\"topic\":" : "{\"topic\":");
        out_quoted(listing->out, topic);
        out_format(listing->out, ",\"partition\":%d}", partition);
    } else {
        out_text(listing->out, listing->any ? " " : "  holds ");
        out_view(listing->out, topic);
        out_format(listing->out, "-%d", partition);
    }
    listing->any = true;
}

static void text_offsets(struct talk *talk, const struct description *d)
{
    struct out *out = &talk->cli->out;
    if (d->offsets.count > 0)
        out_text(out, "offsets: topic-partition, committed, end, lag, member\n");
    for (uint32_t i = 0; i < d->offsets.count; i++) {
        const struct group_offset *offset = &d->offsets.items[i];
        const struct member *holder = holder_of(talk, d, offset);
        out_text(out, "  ");
        out_view(out, offset->topic);
        out_format(out, "-%d", offset->partition);
        out_column(out, 40);
        out_format(out, " %lld", (long long)offset->committed);
        if (offset->error == KAFKA_NONE)
            out_format(out, "  %lld  %lld", (long long)offset->found,
                       (long long)MAX(offset->found - offset->committed, 0));
        else
            out_text(out, "  -  -");
        if (holder != NULL) {
            out_text(out, "  ");
            out_view(out, holder->id);
        }
        out_char(out, '\n');
    }
}

static void text(struct talk *talk, const char *group, const struct description *d)
{
    struct out *out = &talk->cli->out;
    out_format(out, "group \"%s\": ", group);
    out_view(out, d->type);
    out_text(out, ", ");
    out_view(out, d->state);
    if (d->epoch >= 0) out_format(out, ", epoch %d", d->epoch);
    if (d->protocol.size > 0) {
        out_text(out, ", assignor ");
        out_view(out, d->protocol);
    }
    out_format(out, ", coordinator %d\n", d->coordinator);
    out_format(out, "members: %u\n", d->count);
    for (uint32_t i = 0; i < d->count; i++) {
        const struct member *member = &d->members[i];
        struct listing listing = {.out = out};
        out_text(out, "  ");
        out_view(out, member->id);
        if (!member->instance.null) {
            out_text(out, " (static ");
            out_view(out, member->instance);
            out_char(out, ')');
        }
        out_char(out, ' ');
        out_view(out, member->host);
        each_partition(talk, member, put_held, &listing);
        out_char(out, '\n');
    }
    text_offsets(talk, d);
}

static void json_view(struct out *out, const char *name, struct view value)
{
    out_format(out, "\"%s\":", name);
    if (value.null)
        out_text(out, "null");
    else
        out_quoted(out, value);
}

static void json_members(struct talk *talk, const struct description *d)
{
    struct out *out = &talk->cli->out;
    for (uint32_t i = 0; i < d->count; i++) {
        const struct member *member = &d->members[i];
        struct listing listing = {.out = out, .json = true};
        out_text(out, i > 0 ? ",{" : "{");
        json_view(out, "member", member->id);
        out_char(out, ',');
        json_view(out, "instance", member->instance);
        out_char(out, ',');
        json_view(out, "client", member->client_id);
        out_char(out, ',');
        json_view(out, "host", member->host);
        out_text(out, ",\"partitions\":[");
        each_partition(talk, member, put_held, &listing);
        out_text(out, "]}");
    }
}

static void json(struct talk *talk, const char *group, const struct description *d)
{
    struct out *out = &talk->cli->out;
    out_char(out, '{');
    json_view(out, "group", view_of_string(group));
    out_char(out, ',');
    json_view(out, "type", d->type);
    out_char(out, ',');
    json_view(out, "state", d->state);
    out_char(out, ',');
    json_view(out, "assignor", d->protocol);
    if (d->epoch >= 0) out_format(out, ",\"epoch\":%d", d->epoch);
    out_format(out, ",\"coordinator\":%d,\"members\":[", d->coordinator);
    json_members(talk, d);
    out_text(out, "],\"offsets\":[");
    for (uint32_t i = 0; i < d->offsets.count; i++) {
        const struct group_offset *offset = &d->offsets.items[i];
        out_text(out, i > 0 ? ",{" : "{");
        json_view(out, "topic", offset->topic);
        out_format(out, ",\"partition\":%d,\"committed\":%lld", offset->partition,
                   (long long)offset->committed);
        if (offset->error == KAFKA_NONE)
            out_format(out, ",\"end\":%lld,\"lag\":%lld", (long long)offset->found,
                       (long long)MAX(offset->found - offset->committed, 0));
        out_char(out, '}');
    }
    out_text(out, "]}\n");
}

static int describe(struct talk *talk, const char *group)
{
    struct description d = {.count = 0};
    int32_t coordinator;
    struct dial *dial = talk_coordinator(talk, group, &coordinator);
    if (dial == NULL) return CLI_FAILED;
    int found = describe_classic(talk, dial, group, &d);
    if (found == 0) found = describe_consumer(talk, dial, group, &d);
    if (found == 0)
        return cli_fail(talk->cli, CLI_FAILED, "there is no classic or consumer group \"%s\"",
                        group);
    d.coordinator = coordinator;
    if (found < 0 || !talk_offsets_fetch(talk, dial, group, &d.offsets) ||
        !talk_offsets_find(talk, &d.offsets, -1))
        return CLI_FAILED;
    if (cli_has(talk->cli, "json"))
        json(talk, group, &d);
    else
        text(talk, group, &d);
    return CLI_OK;
}

static int run(struct cli *cli)
{
    struct talk talk;
    int code = (int)talk_open(cli, &talk);
    for (int i = 0; i < cli->word_count && code == CLI_OK; i++)
        code = describe(&talk, cli->words[i]);
    talk_close(&talk);
    return code;
}

static const struct cli_option options[] = {TALK_OPTIONS, CLI_OPTIONS_END};

extern const struct cli_command command_group_describe;
const struct cli_command command_group_describe = {
    .name = "group describe",
    .group = CLI_TALK,
    .summary = "state, members and what they hold, offsets and lag",
    .arguments = "GROUP... [-b HOST:PORT] [--json]",
    .about = "Classic groups and groups of the consumer protocol (KIP-848). `dohle explain member` "
             "tells why one of the members is gone.",
    .options = options,
    .words_min = 1,
    .words_max = CLI_WORDS_MAX,
    .run = run,
};
