/* client_classic.c - a member that speaks JoinGroup, SyncGroup, Heartbeat and LeaveGroup.
 *
 * Eager, as Kafka's oldest consumers: what it owns it gives up before it joins again. The leader
 * deals the partitions that exist out in turn. */
#include <stdio.h>

#include "gen/consumer_protocol_assignment.h"
#include "gen/consumer_protocol_subscription.h"
#include "gen/errors.h"
#include "gen/heartbeat_request.h"
#include "gen/heartbeat_response.h"
#include "gen/join_group_request.h"
#include "gen/join_group_response.h"
#include "gen/leave_group_request.h"
#include "gen/leave_group_response.h"
#include "gen/sync_group_request.h"
#include "gen/sync_group_response.h"
#include "sim/client_member.h"

#define API_JOIN_GROUP  11
#define API_HEARTBEAT   12
#define API_LEAVE_GROUP 13
#define API_SYNC_GROUP  14
#define NUDGE_MS        20000
#define MEMBERS_VERSION 3 /* From here on LeaveGroup names members. */

static const bool nothing[HISTORY_LOGS_MAX];

static struct view instance_of(const char *instance)
{
    return instance[0] == '\0' ? VIEW_NULL : view_of_string(instance);
}

/* A message of the consumer protocol behind its version. Returns its size. */
static uint32_t protocol_bytes(const struct wire_message *message,
                               const void *value,
                               uint8_t *out,
                               size_t room)
{
    const struct wire_form *form = wire_form(message, 1);
    size_t size = wire_size(form, value);
    assert(size + 2 <= room);
    store_be16(out, 1);
    (void)wire_encode(form, value, out + 2, NULL, 0, NULL);
    return (uint32_t)size + 2;
}

static const void *protocol_read(struct client_member *member,
                                 const struct wire_message *message,
                                 struct view bytes)
{
    struct arena *arena = &member->client.link.reply;
    struct reader in = reader_of(bytes);
    int16_t version = (int16_t)reader_be16(&in);
    void *out = arena_get(arena, message->size_bytes);
    if (in.fault == READER_OK && version >= 0 && version <= message->version_max &&
        wire_decode(&in, wire_form(message, version), arena, out))
        return out;
    history_violation(member->client.history, "%s: %u bytes that are no %s", member->group->name,
                      bytes.size, message->name);
    return NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void classic_join(struct client_member *member)
{
    struct join_group_request request;
    struct join_group_request_join_group_request_protocol protocol;
    struct consumer_protocol_subscription subscription;
    struct view topics[HISTORY_TOPICS_MAX];
    uint8_t bytes[512], nudges[4];
    struct membership_seat *seat = client_member_seat(member);
    const struct history *history = member->client.history;

    membership_owns(member->group, member->seat, nothing, client_member_now_us(member));
    membership_joins(member->group, member->seat, client_member_now_us(member));
    wire_defaults(&wire_consumer_protocol_subscription, &subscription);
    subscription.topics.items = topics;
    for (uint32_t t = 0; t < history->topic_count; t++) {
        member->known_topics[t] = history->topics[t].known;
        if (seat->wants[t])
            topics[subscription.topics.count++] = view_of_string(history->topics[t].name);
    }
    store_be32(nudges, member->nudges);
    subscription.user_data = view_of(nudges, sizeof(nudges));
    wire_defaults(&wire_join_group_request, &request);
    wire_struct_defaults(&wire_join_group_request_join_group_request_protocol_shape, &protocol);
    protocol.name = VIEW("deal");
    protocol.metadata = view_of(bytes, protocol_bytes(&wire_consumer_protocol_subscription,
                                                      &subscription, bytes, sizeof(bytes)));
    request.group_id = view_of_string(member->group->name);
    request.session_timeout_ms = (int32_t)member->session_ms;
    request.rebalance_timeout_ms = (int32_t)member->rebalance_ms;
    request.member_id = view_of_string(seat->member_id);
    request.group_instance_id = instance_of(seat->instance);
    request.protocol_type = VIEW("consumer");
    request.protocols.items = &protocol;
    request.protocols.count = 1;
    client_member_send(member, &(struct client_call){.api = API_JOIN_GROUP}, &request);
}

/* What the members told, dealt out: the item `i` of `out` is for the member `i`. */
static void leader_deals(struct client_member *member,
                         const struct join_group_response *in,
                         struct sync_group_request_sync_group_request_assignment *out)
{
    const struct history *history = member->client.history;
    struct consumer_protocol_assignment_topic_partition topics[MEMBERSHIP_SEATS_MAX * 2]
                                                              [HISTORY_TOPICS_MAX];
    int32_t partitions[MEMBERSHIP_SEATS_MAX * 2][HISTORY_LOGS_MAX];
    struct consumer_protocol_assignment assignments[MEMBERSHIP_SEATS_MAX * 2];
    bool wants[MEMBERSHIP_SEATS_MAX * 2][HISTORY_TOPICS_MAX] = {{false}};
    uint32_t count = (uint32_t)in->members.count, used = 0, next = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct consumer_protocol_subscription *told = protocol_read(
            member, &wire_consumer_protocol_subscription, in->members.items[i].metadata);
        for (int32_t k = 0; told != NULL && k < told->topics.count; k++) {
            int32_t t =
                client_topic_of(&member->client, told->topics.items[k], (struct uuid){{0xff}});
            if (t >= 0) wants[i][t] = true;
        }
        wire_defaults(&wire_consumer_protocol_assignment, &assignments[i]);
        assignments[i].user_data = VIEW_NULL;
        assignments[i].assigned_partitions.items = topics[i];
    }
    for (uint32_t t = 0; t < history->topic_count; t++) {
        bool anybody = false;
        for (uint32_t i = 0; i < count; i++) {
            topics[i][t].partitions.count = 0;
            anybody = anybody || wants[i][t];
        }
        if (!history->topics[t].known || !anybody) continue;
        int32_t counts[MEMBERSHIP_SEATS_MAX * 2] = {0};
        for (int32_t p = 0; p < history->topics[t].partitions; p++) {
            while (!wants[next % count][t])
                next++;
            uint32_t to = next++ % count;
            partitions[to][t * HISTORY_PARTITIONS_MAX + (uint32_t)counts[to]++] = p;
        }
        for (uint32_t i = 0; i < count; i++) {
            if (counts[i] == 0) continue;
            struct consumer_protocol_assignment_topic_partition *item =
                &topics[i][assignments[i].assigned_partitions.count++];
            wire_struct_defaults(&wire_consumer_protocol_assignment_topic_partition_shape, item);
            item->topic = view_of_string(history->topics[t].name);
            item->partitions.items = &partitions[i][t * HISTORY_PARTITIONS_MAX];
            item->partitions.count = counts[i];
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        wire_struct_defaults(&wire_sync_group_request_sync_group_request_assignment_shape, &out[i]);
        uint8_t *bytes = member->assigned + used;
        uint32_t size = protocol_bytes(&wire_consumer_protocol_assignment, &assignments[i], bytes,
                                       sizeof(member->assigned) - used);
        used += size;
        out[i].member_id = in->members.items[i].member_id;
        out[i].assignment = view_of(bytes, size);
    }
}

static void classic_sync(struct client_member *member, const struct join_group_response *in)
{
    struct sync_group_request request;
    struct sync_group_request_sync_group_request_assignment items[MEMBERSHIP_SEATS_MAX * 2];
    const struct membership_seat *seat = client_member_seat(member);
    wire_defaults(&wire_sync_group_request, &request);
    request.group_id = view_of_string(member->group->name);
    request.generation_id = in->generation_id;
    request.member_id = view_of_string(seat->member_id);
    request.group_instance_id = instance_of(seat->instance);
    request.protocol_type = VIEW("consumer");
    request.protocol_name = VIEW("deal");
    if (in->members.count > 0 && !in->skip_assignment) {
        if (in->members.count > (int32_t)ARRAY_SIZE(items)) { /* Ghosts of members: rare. */
            wire_link_drop(&member->client.link);
            return;
        }
        leader_deals(member, in, items);
        request.assignments.items = items;
        request.assignments.count = in->members.count;
    }
    client_member_send(
        member, &(struct client_call){.api = API_SYNC_GROUP, .epoch = in->generation_id}, &request);
}

static void classic_beat(struct client_member *member, const struct client_ghost *as)
{
    struct heartbeat_request request;
    const struct membership_seat *seat = client_member_seat(member);
    int64_t now_ms = client_now_ms(&member->client);
    if (as == NULL && (now_ms < member->beat_ms || member->call_count > 1)) return;
    wire_defaults(&wire_heartbeat_request, &request);
    request.group_id = view_of_string(member->group->name);
    request.generation_id = as != NULL ? as->epoch : seat->epoch;
    request.member_id = view_of_string(as != NULL ? as->member_id : seat->member_id);
    request.group_instance_id = instance_of(as != NULL ? as->instance : seat->instance);
    client_member_send(member,
                       &(struct client_call){.api = API_HEARTBEAT,
                                             .ghost = as != NULL,
                                             .epoch = request.generation_id},
                       &request);
    if (as == NULL) member->beat_ms = now_ms + member->beat_every_ms;
}

static void classic_leave(struct client_member *member)
{
    struct leave_group_request request;
    struct leave_group_request_member_identity item;
    const struct membership_seat *seat = client_member_seat(member);
    wire_defaults(&wire_leave_group_request, &request);
    wire_struct_defaults(&wire_leave_group_request_member_identity_shape, &item);
    request.group_id = view_of_string(member->group->name);
    if (member->versions[API_LEAVE_GROUP] < MEMBERS_VERSION) {
        request.member_id = view_of_string(seat->member_id);
    } else {
        item.member_id = view_of_string(seat->member_id);
        item.group_instance_id = instance_of(seat->instance);
        request.members.items = &item;
        request.members.count = 1;
    }
    client_member_send(member, &(struct client_call){.api = API_LEAVE_GROUP}, &request);
}

static void classic_subscribe(struct client_member *member)
{
    member->state = MEMBER_JOINING;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* What most errors mean to a member. False: the error is none of these. */
static bool classic_told(struct client_member *member,
                         const struct client_call *call,
                         int16_t error)
{
    struct membership_seat *seat = client_member_seat(member);
    switch (error) {
    case KAFKA_REBALANCE_IN_PROGRESS: member->state = MEMBER_JOINING; return true;
    case KAFKA_ILLEGAL_GENERATION:
        membership_owns(member->group, member->seat, nothing, client_member_now_us(member));
        seat->in = false;
        member->state = MEMBER_JOINING;
        return true;
    case KAFKA_UNKNOWN_MEMBER_ID:
    case KAFKA_FENCED_INSTANCE_ID: client_member_removed(member, call, error); return true;
    default: return false;
    }
}

static void classic_joined(struct client_member *member,
                           const struct client_call *call,
                           const struct join_group_response *in)
{
    client_member_told(member, call, in->error_code);
    struct membership_seat *seat = client_member_seat(member);
    if (in->error_code == KAFKA_MEMBER_ID_REQUIRED || in->error_code == 0) {
        if (in->member_id.size >= sizeof(seat->member_id) || in->member_id.size == 0) {
            history_violation(member->client.history, "a member id of %u bytes",
                              in->member_id.size);
            return;
        }
        (void)snprintf(seat->member_id, sizeof(seat->member_id), "%.*s", (int)in->member_id.size,
                       (const char *)in->member_id.data);
        client_rests(&member->client, 0);
        if (in->error_code != 0) return;
        /* A first join begins a session. A member that joins a stable group again, and a sync,
         * prolong none, as in Kafka: heartbeats do. */
        if (!seat->in && member->unanswered == 0) client_member_renew(member, call);
        if (!seat->in)
            membership_joined(member->group, member->seat, call->restarts, call->sent_us,
                              client_member_now_us(member));
        member->state = MEMBER_SYNCING;
        classic_sync(member, in);
    } else if (!classic_told(member, call, in->error_code)) {
        client_error(&member->client, "JoinGroup", in->error_code);
    }
}

static void classic_synced(struct client_member *member,
                           const struct client_call *call,
                           const struct sync_group_response *in)
{
    client_member_told(member, call, in->error_code);
    struct membership_seat *seat = client_member_seat(member);
    bool owns[HISTORY_LOGS_MAX] = {false};
    if (in->error_code != 0) {
        member->state = MEMBER_JOINING;
        if (!classic_told(member, call, in->error_code))
            client_error(&member->client, "SyncGroup", in->error_code);
        return;
    }
    const struct consumer_protocol_assignment *told =
        protocol_read(member, &wire_consumer_protocol_assignment, in->assignment);
    for (int32_t i = 0; told != NULL && i < told->assigned_partitions.count; i++) {
        const struct consumer_protocol_assignment_topic_partition *item =
            &told->assigned_partitions.items[i];
        int32_t t = client_topic_of(&member->client, item->topic, (struct uuid){{0xff}});
        for (int32_t p = 0; t >= 0 && p < item->partitions.count; p++)
            owns[(uint32_t)t * HISTORY_PARTITIONS_MAX + (uint32_t)item->partitions.items[p]] = true;
    }
    int64_t now_us = client_member_now_us(member);
    membership_in(member->group, member->seat, call->restarts);
    seat->epoch = call->epoch;
    member->state = MEMBER_IN;
    membership_generation(member->group, call->epoch, call->sent_us, now_us);
    for (uint32_t i = 0; i < member->group->seat_count; i++)
        if (i == member->seat || !member->group->mixed)
            commits_fence(member->commits, i, call->epoch, now_us);
    membership_owns(member->group, member->seat, owns, now_us);
}

/* A static leader that came back got its old assignment, whatever topics there are by now (what
 * KIP-814 is about): with other metadata it has everybody join. */
static void classic_nudge(struct client_member *member)
{
    int64_t now_ms = client_now_ms(&member->client);
    uint32_t first =
        0; /* One member does it, and seldom: a rebalance prolongs the sessions of the */
    while (!member->group->seats[first].in) /* dead static members that it counts. */
        first++;
    if (member->client.storm || first != member->seat || membership_settled(member->group)) {
        member->nudge_ms = now_ms + NUDGE_MS;
    } else if (now_ms > member->nudge_ms) {
        member->nudge_ms = now_ms + NUDGE_MS;
        member->nudges++;
        member->state = MEMBER_JOINING;
    }
}

static void classic_beaten(struct client_member *member,
                           const struct client_call *call,
                           const struct heartbeat_response *in)
{
    client_member_told(member, call, in->error_code);
    member->group->held_ms += (uint64_t)in->throttle_time_ms;
    const struct history *history = member->client.history;
    if (call->ghost) {
        bool good = in->error_code == 0 || in->error_code == KAFKA_REBALANCE_IN_PROGRESS;
        if (!membership_is_loaded(member->group, call->sent_us)) return;
        /* Of another ghost than the one that is remembered now nothing is known any more. */
        if (good && call->epoch == member->ghost.epoch &&
            membership_is_final(member->group, true, member->ghost.epoch, member->ghost.restarts))
            history_violation(member->client.history,
                              "I15: %s: member %s was told that it is none, now it may beat: %d",
                              member->group->name, member->ghost.member_id, in->error_code);
        return;
    }
    if (member->state != MEMBER_IN || client_member_seat(member)->epoch != call->epoch) return;
    if (in->error_code == 0) {
        if (membership_is_loaded(member->group, call->sent_us)) client_member_renew(member, call);
        classic_nudge(member);
        for (uint32_t t = 0; t < history->topic_count; t++) /* A consumer looks at its topics. */
            if (history->topics[t].known != member->known_topics[t]) member->state = MEMBER_JOINING;
    } else if (!classic_told(member, call, in->error_code)) {
        client_error(&member->client, "Heartbeat", in->error_code);
    }
}

static void classic_left(struct client_member *member,
                         const struct client_call *call,
                         const struct leave_group_response *in)
{
    int16_t error = in->error_code;
    if (error == 0 && in->members.count > 0) error = in->members.items[0].error_code;
    client_member_told(member, call, error);
    switch (error) {
    case 0:
    case KAFKA_UNKNOWN_MEMBER_ID:
    case KAFKA_FENCED_INSTANCE_ID: client_member_ends(member, call); break;
    default: client_error(&member->client, "LeaveGroup", error);
    }
}

static void classic_answered(struct client_member *member, const struct client_call *call, void *in)
{
    switch (call->api) {
    case API_JOIN_GROUP:
        if (member->state == MEMBER_JOINING) classic_joined(member, call, in);
        break;
    case API_SYNC_GROUP:
        if (member->state == MEMBER_SYNCING) classic_synced(member, call, in);
        break;
    case API_HEARTBEAT: classic_beaten(member, call, in); break;
    default: classic_left(member, call, in);
    }
}

static const struct client_protocol classic_protocol = {
    .join = classic_join,
    .beat = classic_beat,
    .leave = classic_leave,
    .subscribe = classic_subscribe,
    .answered = classic_answered,
};

struct client_member *client_classic_new(const struct client_seat *at,
                                         struct membership *group,
                                         struct commits *commits)
{
    struct client_member *member = client_member_new(at, &classic_protocol, group, commits);
    struct chance *chance = &member->client.chance;
    struct membership_seat *seat = client_member_seat(member);
    bool fixed = seat->instance[0] != '\0';
    seat->classic = true;
    member->versions[API_JOIN_GROUP] =
        (int16_t)(fixed ? 5 + chance_below(chance, 5) : 1 + chance_below(chance, 9));
    member->versions[API_SYNC_GROUP] =
        (int16_t)(fixed ? 3 + chance_below(chance, 3) : chance_below(chance, 6));
    member->versions[API_HEARTBEAT] =
        (int16_t)(fixed ? 3 + chance_below(chance, 2) : chance_below(chance, 5));
    member->versions[API_LEAVE_GROUP] =
        (int16_t)(fixed ? 3 + chance_below(chance, 3) : chance_below(chance, 6));
    if (fixed) member->versions[8] = (int16_t)(7 + chance_below(chance, 4)); /* OffsetCommit. */
    return member;
}
