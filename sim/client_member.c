/* client_member.c - see client_member.h. */
#include "sim/client_member.h"

#include <stdio.h>

#include "gen/errors.h"
#include "gen/find_coordinator_request.h"
#include "gen/find_coordinator_response.h"
#include "gen/offset_commit_request.h"
#include "gen/offset_commit_response.h"
#include "gen/offset_fetch_request.h"
#include "gen/offset_fetch_response.h"
#include "sim/client_admin.h"

#define API_OFFSET_COMMIT 8
#define API_OFFSET_FETCH  9
#define API_FIND          10
#define API_HEARTBEAT     12
#define KEYS_VERSION      4 /* From here on FindCoordinator asks for many. */
#define ERROR_VERSION     2 /* From here on OffsetFetch tells an error of the group. */
#define GROUPS_VERSION    8 /* From here on OffsetFetch asks for groups. */

static struct client_member *member_of(struct client *client)
{
    return container_of(client, struct client_member, client);
}

/* For a reader of the trace. */
static void member_print(struct client_member *member,
                         const char *what,
                         const struct client_call *call)
{
    const struct membership_seat *seat = client_member_seat(member);
    if (member->client.history->print)
        printf("%10lld us %s %s %s %s: %s, epoch %d%s\n", (long long)client_member_now_us(member),
               sim_node_name(member->client.node), member->group->name, seat->member_id, what,
               wire_api(call->api)->name, call->epoch, call->ghost ? ", as a ghost" : "");
}

void client_member_send(struct client_member *member,
                        const struct client_call *call,
                        const void *message)
{
    assert(member->call_count < WIRE_LINK_WAITS_MAX);
    struct client_call *own = &member->calls[member->call_count++];
    *own = *call;
    own->sent_us = client_member_now_us(member);
    own->restarts = member->client.history->restarts;
    member_print(member, "asks", call);
    wire_link_send(&member->client.link, call->api, member->versions[call->api], message);
}

/* Does a coordinator that has yet to load the group, or is none, never answer so? */
static bool answer_is_of_a_loaded_group(const struct client_call *call, int16_t error)
{
    switch (error) {
    case 0: return call->api != API_FIND && call->api != API_HEARTBEAT;
    case KAFKA_ILLEGAL_GENERATION:
    case KAFKA_UNKNOWN_MEMBER_ID:
    case KAFKA_REBALANCE_IN_PROGRESS:
    case KAFKA_MEMBER_ID_REQUIRED:
    case KAFKA_FENCED_INSTANCE_ID: return true;
    default: return false;
    }
}

void client_member_told(struct client_member *member, const struct client_call *call, int16_t error)
{
    if (answer_is_of_a_loaded_group(call, error))
        membership_loaded(member->group, call->sent_us, client_member_now_us(member));
    if (member->client.history->print)
        printf("%10s    %s is told %d\n", "", client_member_seat(member)->member_id, error);
}

void client_member_renew(struct client_member *member, const struct client_call *call)
{
    client_member_seat(member)->restarts = call->restarts;
    membership_renew(member->group, member->seat, call->sent_us, client_member_now_us(member));
}

void client_member_name(struct client_member *member, char out[64])
{
    (void)snprintf(out, 64, "%s-%u-%08x", sim_node_name(member->client.node), member->seat,
                   (unsigned)chance_next(&member->client.chance));
}

void client_member_ends(struct client_member *member, const struct client_call *told)
{
    struct membership_seat *seat = client_member_seat(member);
    if (told != NULL && seat->member_id[0] != '\0' && chance_percent(&member->client.chance, 50)) {
        (void)snprintf(member->ghost.member_id, 64, "%s", seat->member_id);
        (void)snprintf(member->ghost.instance, 16, "%s", seat->instance);
        member->ghost.epoch = seat->epoch;
        member->ghost.restarts = told->restarts;
        member->ghost_words = 1 + chance_below(&member->client.chance, 3);
    }
    if (told != NULL)
        commits_fence(member->commits, member->seat, INT32_MAX, client_member_now_us(member));
    membership_out(member->group, member->seat);
    seat->member_id[0] = '\0';
    member->state = MEMBER_OUT;
    member->unanswered = 0;
    member->revoked_ms = 0;
}

void client_member_removed(struct client_member *member,
                           const struct client_call *call,
                           int16_t error)
{
    membership_removed(member->group, member->seat, call->sent_us, error);
    client_member_ends(member, call);
    client_rests(&member->client, chance_below(&member->client.chance, 300));
}

/* ---- committed offsets ----------------------------------------------------------------------- */

static void member_commit(struct client_member *member)
{
    struct offset_commit_request request;
    struct offset_commit_request_offset_commit_request_topic topics[HISTORY_TOPICS_MAX];
    struct offset_commit_request_offset_commit_request_partition partitions[HISTORY_LOGS_MAX];
    const struct membership_seat *seat = client_member_seat(member);
    struct client_call call = {.api = API_OFFSET_COMMIT, .epoch = seat->epoch};
    wire_defaults(&wire_offset_commit_request, &request);
    request.group_id = view_of_string(member->group->name);
    request.generation_id_or_member_epoch = seat->epoch;
    request.member_id = view_of_string(seat->member_id);
    request.group_instance_id =
        seat->instance[0] == '\0' ? VIEW_NULL : view_of_string(seat->instance);
    request.topics.items = topics;
    request.topics.count = 0;
    for (uint32_t t = 0; t < member->client.history->topic_count; t++) {
        const struct history_topic *known = &member->client.history->topics[t];
        struct offset_commit_request_offset_commit_request_topic *topic =
            &topics[request.topics.count];
        wire_struct_defaults(&wire_offset_commit_request_offset_commit_request_topic_shape, topic);
        topic->name = view_of_string(known->name);
        topic->topic_id = known->id;
        topic->partitions.items = &partitions[t * HISTORY_PARTITIONS_MAX];
        for (uint32_t p = 0; known->known && p < (uint32_t)known->partitions; p++) {
            uint32_t log = t * HISTORY_PARTITIONS_MAX + p;
            if (!seat->owns[log]) continue;
            int64_t offset = commits_make(member->commits, log, member->seat, seat->epoch,
                                          client_member_now_us(member));
            if (offset < 0) continue;
            call.commits[log] = offset;
            struct offset_commit_request_offset_commit_request_partition *partition =
                &topic->partitions.items[topic->partitions.count++];
            wire_struct_defaults(&wire_offset_commit_request_offset_commit_request_partition_shape,
                                 partition);
            partition->partition_index = (int32_t)p;
            partition->committed_offset = offset;
            partition->committed_metadata = VIEW("");
        }
        request.topics.count += topic->partitions.count > 0;
    }
    if (request.topics.count > 0) client_member_send(member, &call, &request);
}

/* The first error of a commit that says something of the member; or 0. */
static int16_t member_committed(struct client_member *member,
                                const struct client_call *call,
                                const struct offset_commit_response *in)
{
    int16_t first = 0;
    uint32_t answered = 0, asked = 0;
    for (uint32_t log = 0; log < HISTORY_LOGS_MAX; log++)
        asked += call->commits[log] != 0;
    for (int32_t i = 0; i < in->topics.count; i++) {
        int32_t number = client_topic_of(&member->client, in->topics.items[i].name,
                                         in->topics.items[i].topic_id);
        for (int32_t p = 0; number >= 0 && p < in->topics.items[i].partitions.count; p++) {
            const struct offset_commit_response_offset_commit_response_partition *partition =
                &in->topics.items[i].partitions.items[p];
            uint32_t log =
                (uint32_t)number * HISTORY_PARTITIONS_MAX + (uint32_t)partition->partition_index;
            answered++;
            commits_answered(member->commits, log, call->commits[log], partition->error_code,
                             client_member_now_us(member));
            if (first == 0) first = partition->error_code;
        }
    }
    if (answered != asked)
        history_violation(member->client.history, "%u partitions were committed, %u answered",
                          asked, answered);
    return first;
}

static void member_fetch_offsets(struct client_member *member)
{
    struct offset_fetch_request request;
    struct offset_fetch_request_offset_fetch_request_group group;
    int16_t version = member->versions[API_OFFSET_FETCH];
    wire_defaults(&wire_offset_fetch_request, &request);
    wire_struct_defaults(&wire_offset_fetch_request_offset_fetch_request_group_shape, &group);
    if (version < GROUPS_VERSION) {
        request.group_id = view_of_string(member->group->name);
        request.topics.count = -1;
    } else {
        group.group_id = view_of_string(member->group->name);
        group.member_id = VIEW_NULL;
        group.member_epoch = -1;
        group.topics.count = -1;
        request.groups.items = &group;
        request.groups.count = 1;
    }
    client_member_send(member, &(struct client_call){.api = API_OFFSET_FETCH}, &request);
}

/* All partitions that were told; those that were not have no offset. */
static void member_offsets_read(struct client_member *member,
                                const struct client_call *call,
                                const int64_t offsets[HISTORY_LOGS_MAX])
{
    for (uint32_t log = 0; log < HISTORY_LOGS_MAX; log++)
        commits_read(member->commits, log, offsets[log], call->sent_us);
}

static void member_offset_found(struct client_member *member,
                                int64_t offsets[HISTORY_LOGS_MAX],
                                int32_t topic,
                                int32_t partition,
                                int64_t offset)
{
    if (topic < 0 || partition < 0 || partition >= (int32_t)HISTORY_PARTITIONS_MAX) {
        history_violation(member->client.history, "an offset of no partition is told");
        return;
    }
    offsets[topic * (int32_t)HISTORY_PARTITIONS_MAX + partition] = offset;
}

static void member_offsets_fetched(struct client_member *member,
                                   const struct client_call *call,
                                   const struct offset_fetch_response *in)
{
    int64_t offsets[HISTORY_LOGS_MAX];
    bool grouped = member->versions[API_OFFSET_FETCH] >= GROUPS_VERSION;
    for (uint32_t log = 0; log < HISTORY_LOGS_MAX; log++)
        offsets[log] = -1;
    int16_t error =
        grouped && in->groups.count > 0 ? in->groups.items[0].error_code : in->error_code;
    if (error != 0) {
        client_error(&member->client, "OffsetFetch", error);
        return;
    }
    if (member->versions[API_OFFSET_FETCH] >= ERROR_VERSION)
        client_member_told(member, call, error);
    for (int32_t i = 0; !grouped && i < in->topics.count; i++) {
        int32_t topic =
            client_topic_of(&member->client, in->topics.items[i].name, (struct uuid){{0}});
        for (int32_t p = 0; p < in->topics.items[i].partitions.count; p++)
            member_offset_found(member, offsets, topic,
                                in->topics.items[i].partitions.items[p].partition_index,
                                in->topics.items[i].partitions.items[p].committed_offset);
    }
    for (int32_t i = 0; grouped && i < in->groups.items[0].topics.count; i++) {
        const struct offset_fetch_response_offset_fetch_response_topics *at =
            &in->groups.items[0].topics.items[i];
        int32_t topic = client_topic_of(&member->client, at->name, at->topic_id);
        for (int32_t p = 0; p < at->partitions.count; p++)
            member_offset_found(member, offsets, topic, at->partitions.items[p].partition_index,
                                at->partitions.items[p].committed_offset);
    }
    member_offsets_read(member, call, offsets);
}

/* ---- the coordinator ------------------------------------------------------------------------- */

static void member_find(struct client_member *member)
{
    struct find_coordinator_request request;
    struct view key = view_of_string(member->group->name);
    if (member->call_count > 0) return;
    wire_defaults(&wire_find_coordinator_request, &request);
    if (member->versions[API_FIND] < KEYS_VERSION) {
        request.key = key;
    } else {
        request.coordinator_keys.items = &key;
        request.coordinator_keys.count = 1;
    }
    client_member_send(member, &(struct client_call){.api = API_FIND}, &request);
}

static void member_found(struct client_member *member,
                         const struct client_call *call,
                         const struct find_coordinator_response *in)
{
    int16_t error =
        in->coordinators.count == 1 ? in->coordinators.items[0].error_code : in->error_code;
    client_member_told(member, call, error);
    if (error != 0)
        client_error(&member->client, "FindCoordinator", error);
    else
        member->found = true;
}

/* ---- its life -------------------------------------------------------------------------------- */

static void member_subscribes(struct client_member *member)
{
    if (member->regex) return;
    struct membership_seat *seat = client_member_seat(member);
    uint32_t count = member->client.history->topic_count;
    for (uint32_t t = 0; t < count; t++)
        seat->wants[t] = chance_percent(&member->client.chance, 60);
    seat->wants[chance_below(&member->client.chance, count)] = true;
}

/* Dies, or falls silent and may then not know that it was removed. */
static void member_silent(struct client_member *member, bool dies)
{
    member->silent_until_ms = client_now_ms(&member->client) +
                              chance_below(&member->client.chance, 2 * member->session_ms);
    if (!dies) return;
    client_member_ends(member, NULL);
    wire_link_drop(&member->client.link);
}

/* What it owns it gives up before it says so. */
static void member_leaves(struct client_member *member)
{
    static const bool nothing[HISTORY_LOGS_MAX];
    membership_owns(member->group, member->seat, nothing, client_member_now_us(member));
    member->state = MEMBER_LEAVING;
    member->protocol->leave(member);
}

static void member_deed(struct client_member *member)
{
    struct chance *chance = &member->client.chance;
    uint32_t what = chance_below(chance, 100);
    member->deed_ms = client_now_ms(&member->client) + 50 + chance_below(chance, 1500);
    member->deeds--;
    if (member->state != MEMBER_IN) {
        if (what < 10) member_silent(member, true);
    } else if (what < 55) {
        member_commit(member);
    } else if (what < 70) {
        member_fetch_offsets(member);
    } else if (what < 77) {
        member_leaves(member);
    } else if (what < 87) {
        member_silent(member, true);
    } else if (what < 95) {
        member_silent(member, false);
    } else {
        member_subscribes(member);
        member->protocol->subscribe(member);
    }
}

static bool member_waits_for(const struct client_member *member, int16_t api)
{
    for (uint32_t i = 0; i < member->call_count; i++)
        if (member->calls[i].api == api && !member->calls[i].ghost) return true;
    return false;
}

/* Two of one instance id, one of each protocol, throw each other's joins out for ever, as they do
 * in Kafka: in the end the one that is not wanted stops asking. */
static bool member_gives_up(struct client_member *member)
{
    const struct membership_seat *seat = client_member_seat(member);
    return !member->client.storm && !seat->wants_in && !seat->in && seat->member_id[0] == '\0';
}

static void member_goes_on(struct client_member *member)
{
    switch (member->state) {
    case MEMBER_OUT:
        if (!client_member_seat(member)->wants_in && !member->client.storm) return;
        member->state = MEMBER_JOINING;
        if (member->call_count == 0) member->protocol->join(member);
        return;
    case MEMBER_JOINING:
        if (member->call_count > 0) return;
        if (member_gives_up(member))
            member->state = MEMBER_OUT;
        else
            member->protocol->join(member);
        return;
    case MEMBER_SYNCING:
    case MEMBER_LEAVING: return; /* They end with their answer, or with the connection. */
    case MEMBER_IN:
        if (!member->client.storm && !client_member_seat(member)->wants_in) {
            if (member->call_count > 0) return;
            member_leaves(member);
        } else {
            member->protocol->beat(member, NULL);
        }
        return;
    }
}

static void member_ghost(struct client_member *member)
{
    if (member->ghost_words == 0 || !chance_percent(&member->client.chance, 20)) return;
    member->ghost_words--;
    member->protocol->beat(member, &member->ghost);
}

static void member_fill(struct client *client)
{
    struct client_member *member = member_of(client);
    int64_t now_ms = client_now_ms(client);
    if (now_ms < member->silent_until_ms) {
        client->next_ms = member->silent_until_ms;
        return;
    }
    client_rests(client, 20 + chance_below(&client->chance, 100));
    if (!member->found) {
        member_find(member);
        return;
    }
    /* Four at once at most, as long as each may wait a second (NET_MUTE_HOLD_MAX_MS). */
    if (member->call_count > (member->group->limited ? 0 : WIRE_LINK_WAITS_MAX - 3)) return;
    member_ghost(member);
    if (client->storm && member->deeds > 0 && now_ms >= member->deed_ms) member_deed(member);
    if (client->link.stream != NULL && now_ms >= member->silent_until_ms) member_goes_on(member);
    if (!member_waits_for(member, API_OFFSET_FETCH) && member->state == MEMBER_IN &&
        !client->storm && chance_percent(&client->chance, 3) && client->link.stream != NULL)
        member_fetch_offsets(member);
}

static void member_commit_told(struct client_member *member,
                               const struct client_call *call,
                               int16_t error)
{
    bool same = client_member_seat(member)->epoch == call->epoch && member->state == MEMBER_IN;
    client_member_told(member, call, error);
    switch (error) {
    case 0:
    case KAFKA_REBALANCE_IN_PROGRESS: return;
    case KAFKA_ILLEGAL_GENERATION:
    case KAFKA_STALE_MEMBER_EPOCH: return; /* Its next beat tells it more. */
    case KAFKA_UNKNOWN_MEMBER_ID:
    case KAFKA_FENCED_INSTANCE_ID:
        if (same) client_member_removed(member, call, error);
        return;
    default: client_error(&member->client, "OffsetCommit", error);
    }
}

static void member_answered(struct client *client, const struct wire_link_wait *wait, void *in)
{
    struct client_member *member = member_of(client);
    struct client_call call = member->calls[0];
    assert(member->call_count > 0 && call.api == wait->api);
    member_print(member, "is answered", &call);
    member->call_count--;
    memmove(member->calls, member->calls + 1, member->call_count * sizeof(call));
    if (call.api == API_FIND)
        member_found(member, &call, in);
    else if (call.api == API_OFFSET_COMMIT)
        member_commit_told(member, &call, member_committed(member, &call, in));
    else if (call.api == API_OFFSET_FETCH)
        member_offsets_fetched(member, &call, in);
    else
        member->protocol->answered(member, &call, in);
}

static void member_lost(struct client *client)
{
    struct client_member *member = member_of(client);
    member->unanswered += member->call_count;
    member->call_count = 0;
    member->full = true;
    if (member->state == MEMBER_SYNCING) member->state = MEMBER_JOINING;
    if (member->state == MEMBER_LEAVING) client_member_ends(member, NULL);
}

static bool member_finished(const struct client *client)
{
    const struct client_member *member = (const void *)client;
    if (client->storm) return member->deeds == 0;
    return membership_settled(member->group);
}

static const struct client_kind member_kind = {
    .name = "member",
    .size_bytes = sizeof(struct client_member),
    .fill = member_fill,
    .answered = member_answered,
    .lost = member_lost,
    .finished = member_finished,
};

struct client_member *client_member_new(const struct client_seat *at,
                                        const struct client_protocol *protocol,
                                        struct membership *group,
                                        struct commits *commits)
{
    static const int16_t fetch_versions[] = {1, 5, 7, 8, 9, 10};
    struct client *client = client_new(&member_kind, at);
    struct client_member *member = member_of(client);
    struct chance *chance = &client->chance;
    assert(group->seat_count < MEMBERSHIP_SEATS_MAX);
    client->link.client_id = CLIENT_MEMBER_ID;
    member->protocol = protocol;
    member->world = at->world;
    member->group = group;
    member->commits = commits;
    member->seat = group->seat_count++;
    member->deeds = 3 + chance_below(chance, 15);
    member->session_ms = 3000 + chance_below(chance, 3000);
    member->rebalance_ms = 3000 + chance_below(chance, 3000);
    member->beat_every_ms = 300 + chance_below(chance, 500);
    member->versions[API_FIND] = (int16_t)chance_below(chance, 7);
    member->versions[API_OFFSET_COMMIT] = (int16_t)(2 + chance_below(chance, 9));
    member->versions[API_OFFSET_FETCH] =
        fetch_versions[chance_below(chance, ARRAY_SIZE(fetch_versions))];
    struct membership_seat *seat = client_member_seat(member);
    seat->wants_in = chance_percent(chance, 75);
    if (chance_percent(chance, 35))
        (void)snprintf(seat->instance, sizeof(seat->instance), "instance%u", member->seat);
    if (member->seat > 0 && group->seats[0].instance[0] != '\0' && chance_percent(chance, 15)) {
        /* Somebody with its name: each fences the other. In the end the first one may stay. */
        (void)snprintf(seat->instance, sizeof(seat->instance), "%s", group->seats[0].instance);
        seat->wants_in = false;
    }
    seat->patience_ms = MIN(member->session_ms, member->rebalance_ms);
    member_subscribes(member);
    return member;
}
