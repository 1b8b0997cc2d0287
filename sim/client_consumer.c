/* client_consumer.c - a member that speaks ConsumerGroupHeartbeat (KIP-848).
 *
 * It tells all when it joins and after a lost connection, else what changed. What it is to give up
 * it gives up after a while (now and then too late), tells so, and takes what it is given at once.
 */
#include <stdio.h>

#include "gen/consumer_group_heartbeat_request.h"
#include "gen/consumer_group_heartbeat_response.h"
#include "gen/errors.h"
#include "sim/client_member.h"

#define API_BEAT       68
#define LEAVES         (-1)
#define LEAVES_A_WHILE (-2)

static int32_t leave_epoch(const struct membership_seat *seat)
{
    return seat->instance[0] == '\0' ? LEAVES : LEAVES_A_WHILE;
}

/* What the seat owns, by topic. `topics` has room for all. Returns how many. */
static int32_t consumer_owned(const struct client_member *member,
                              struct consumer_group_heartbeat_request_topic_partitions *topics,
                              int32_t partitions[HISTORY_LOGS_MAX])
{
    const struct membership_seat *seat = &member->group->seats[member->seat];
    int32_t count = 0;
    for (uint32_t t = 0; t < HISTORY_TOPICS_MAX; t++) {
        struct consumer_group_heartbeat_request_topic_partitions *topic = &topics[count];
        wire_struct_defaults(&wire_consumer_group_heartbeat_request_topic_partitions_shape, topic);
        topic->topic_id = member->client.history->topics[t].id;
        topic->partitions.items = &partitions[t * HISTORY_PARTITIONS_MAX];
        topic->partitions.count = 0;
        for (uint32_t p = 0; p < HISTORY_PARTITIONS_MAX; p++)
            if (seat->owns[t * HISTORY_PARTITIONS_MAX + p])
                topic->partitions.items[topic->partitions.count++] = (int32_t)p;
        count += topic->partitions.count > 0;
    }
    return count;
}

static void consumer_say(struct client_member *member, int32_t epoch, bool full, bool owned)
{
    struct consumer_group_heartbeat_request request;
    struct consumer_group_heartbeat_request_topic_partitions topics[HISTORY_TOPICS_MAX];
    int32_t partitions[HISTORY_LOGS_MAX];
    struct view names[HISTORY_TOPICS_MAX];
    const struct membership_seat *seat = client_member_seat(member);
    wire_defaults(&wire_consumer_group_heartbeat_request, &request);
    request.group_id = view_of_string(member->group->name);
    request.member_id = view_of_string(seat->member_id);
    request.member_epoch = epoch;
    request.instance_id = seat->instance[0] == '\0' ? VIEW_NULL : view_of_string(seat->instance);
    request.rack_id = VIEW_NULL;
    request.rebalance_timeout_ms = full ? (int32_t)member->rebalance_ms : -1;
    request.subscribed_topic_names.count = -1;
    request.subscribed_topic_regex = VIEW_NULL;
    request.server_assignor = VIEW_NULL;
    request.topic_partitions.count = -1;
    if (full || member->changed) {
        request.subscribed_topic_names.items = names;
        request.subscribed_topic_names.count = 0;
        for (uint32_t t = 0; !member->regex && t < member->client.history->topic_count; t++)
            if (seat->wants[t])
                names[request.subscribed_topic_names.count++] =
                    view_of_string(member->client.history->topics[t].name);
        if (member->regex) request.subscribed_topic_regex = VIEW("topic[0-9]+");
        if (member->regex && member->versions[API_BEAT] < 1)
            request.subscribed_topic_names.count = -1;
    }
    if (full || owned) {
        request.topic_partitions.items = topics;
        request.topic_partitions.count =
            epoch == 0 ? 0 : consumer_owned(member, topics, partitions);
    }
    member->changed = false;
    client_member_send(member, &(struct client_call){.api = API_BEAT, .epoch = epoch}, &request);
    member->beat_ms = client_now_ms(&member->client) + member->beat_every_ms;
}

static void consumer_join(struct client_member *member)
{
    struct membership_seat *seat = client_member_seat(member);
    bool own_name = member->versions[API_BEAT] >= 1;
    if (seat->member_id[0] == '\0' && own_name) client_member_name(member, seat->member_id);
    membership_joins(member->group, member->seat, client_member_now_us(member));
    consumer_say(member, 0, true, true);
}

static void consumer_ghost(struct client_member *member, const struct client_ghost *as)
{
    struct consumer_group_heartbeat_request request;
    wire_defaults(&wire_consumer_group_heartbeat_request, &request);
    request.group_id = view_of_string(member->group->name);
    request.member_id = view_of_string(as->member_id);
    request.member_epoch = as->epoch;
    request.instance_id = as->instance[0] == '\0' ? VIEW_NULL : view_of_string(as->instance);
    request.rack_id = VIEW_NULL;
    request.rebalance_timeout_ms = -1;
    request.subscribed_topic_names.count = -1;
    request.subscribed_topic_regex = VIEW_NULL;
    request.server_assignor = VIEW_NULL;
    request.topic_partitions.count = -1;
    client_member_send(member,
                       &(struct client_call){.api = API_BEAT, .ghost = true, .epoch = as->epoch},
                       &request);
}

static void consumer_beat(struct client_member *member, const struct client_ghost *as)
{
    const struct membership_seat *seat = client_member_seat(member);
    int64_t now_ms = client_now_ms(&member->client);
    bool revoked = member->revoked_ms != 0 && now_ms >= member->revoked_ms;
    if (as != NULL) {
        if (as->epoch > 0) consumer_ghost(member, as);
        return;
    }
    if (member->call_count > 0) return;
    if (revoked) {
        member->revoked_ms = 0;
        membership_owns(member->group, member->seat, member->target, client_member_now_us(member));
    }
    if (now_ms < member->beat_ms && !revoked && !member->changed && !member->full) return;
    bool full = member->full;
    member->full = false;
    consumer_say(member, seat->epoch, full, revoked || member->owned_news);
    member->owned_news = false;
}

static void consumer_leave(struct client_member *member)
{
    consumer_say(member, leave_epoch(client_member_seat(member)), false, false);
}

static void consumer_subscribe(struct client_member *member)
{
    if (!member->regex) member->changed = true;
}

/* A new assignment: what is not in it is given up in a while, what is new is taken after that. */
static void consumer_assigned(struct client_member *member,
                              const struct consumer_group_heartbeat_response_assignment *in)
{
    struct client *client = &member->client;
    bool target[HISTORY_LOGS_MAX] = {false}, loses = false;
    const struct membership_seat *seat = client_member_seat(member);
    for (int32_t i = 0; i < in->topic_partitions.count; i++) {
        int32_t t = client_topic_with(client, in->topic_partitions.items[i].topic_id);
        if (t < 0) member->full = true; /* Not known yet: it asks again. */
        for (int32_t p = 0; t >= 0 && p < in->topic_partitions.items[i].partitions.count; p++)
            target[t * (int32_t)HISTORY_PARTITIONS_MAX +
                   in->topic_partitions.items[i].partitions.items[p]] = true;
    }
    for (uint32_t log = 0; log < HISTORY_LOGS_MAX; log++)
        loses = loses || (seat->owns[log] && !target[log]);
    memcpy(member->target, target, sizeof(target));
    member->revoked_ms = 0;
    if (!loses) {
        membership_owns(member->group, member->seat, target, client_member_now_us(member));
        member->owned_news = true;
        client_rests(client, 0);
        return;
    }
    uint32_t most_ms = chance_percent(&client->chance, 10) ? 2 * member->rebalance_ms : 500;
    member->revoked_ms = client_now_ms(client) + 1 + chance_below(&client->chance, most_ms);
    bool kept[HISTORY_LOGS_MAX]; /* What is new may be used right away. */
    for (uint32_t log = 0; log < HISTORY_LOGS_MAX; log++)
        kept[log] = seat->owns[log] || target[log];
    membership_owns(member->group, member->seat, kept, client_member_now_us(member));
}

static void consumer_alive(struct client_member *member,
                           const struct client_call *call,
                           const struct consumer_group_heartbeat_response *in)
{
    struct membership_seat *seat = client_member_seat(member);
    if (seat->member_id[0] == '\0')
        (void)snprintf(seat->member_id, sizeof(seat->member_id), "%.*s", (int)in->member_id.size,
                       (const char *)in->member_id.data);
    if (!view_is(in->member_id, seat->member_id))
        history_violation(member->client.history, "%s: member %s is answered as another one",
                          member->group->name, seat->member_id);
    if (in->member_epoch < seat->epoch || in->member_epoch <= 0)
        history_violation(member->client.history, "%s: the epoch of %s fell from %d to %d",
                          member->group->name, seat->member_id, seat->epoch, in->member_epoch);
    if (call->epoch == 0)
        membership_joined(member->group, member->seat, call->restarts, call->sent_us,
                          client_member_now_us(member));
    if (seat->epoch != in->member_epoch) member->group->changes++;
    membership_in(member->group, member->seat, call->restarts);
    seat->epoch = in->member_epoch;
    commits_fence(member->commits, member->seat, seat->epoch, client_member_now_us(member));
    member->state = MEMBER_IN;
    /* The time to give things up runs from when it was told first, maybe in an answer lost. */
    bool loses_since = member->revoked_ms != 0;
    if (in->assignment != NULL) consumer_assigned(member, in->assignment);
    if (member->revoked_ms == 0 || (!loses_since && member->unanswered == 0))
        client_member_renew(member, call);
}

static void consumer_refused(struct client_member *member,
                             const struct client_call *call,
                             int16_t error)
{
    switch (error) {
    case KAFKA_UNKNOWN_MEMBER_ID:
    case KAFKA_FENCED_INSTANCE_ID: client_member_removed(member, call, error); break;
    case KAFKA_FENCED_MEMBER_EPOCH:
        if (member->unanswered == 0)
            client_member_removed(member, call, error); /* Not in time? The group judges. */
        else
            client_member_ends(member, NULL); /* An answer with an epoch was lost. */
        client_member_seat(member)->member_id[0] = '\0';
        break;
    case KAFKA_GROUP_ID_NOT_FOUND: /* It is a classic group now, or one before a generation. */
        if (call->epoch != 0) client_member_removed(member, call, error);
        client_rests(&member->client, 100);
        break;
    case KAFKA_UNRELEASED_INSTANCE_ID: /* The one before has not left. */
        client_rests(&member->client, 300);
        break;
    default: client_error(&member->client, "ConsumerGroupHeartbeat", error);
    }
}

static void consumer_answered(struct client_member *member,
                              const struct client_call *call,
                              void *response)
{
    const struct consumer_group_heartbeat_response *in = response;
    client_member_told(member, call, in->error_code);
    member->group->held_ms += (uint64_t)in->throttle_time_ms;
    if (call->ghost) {
        if (in->error_code == 0 && !member->group->mixed)
            history_violation(member->client.history,
                              "I15: %s: member %s was told that it is none, now it may beat",
                              member->group->name, member->ghost.member_id);
        return;
    }
    if (call->epoch < 0) {
        if (in->error_code == 0 || in->error_code == KAFKA_UNKNOWN_MEMBER_ID ||
            in->error_code == KAFKA_FENCED_MEMBER_EPOCH ||
            in->error_code == KAFKA_GROUP_ID_NOT_FOUND ||
            in->error_code == KAFKA_FENCED_INSTANCE_ID)
            client_member_ends(member, call);
        else
            client_error(&member->client, "ConsumerGroupHeartbeat", in->error_code);
        return;
    }
    if (member->state != MEMBER_IN && member->state != MEMBER_JOINING) return;
    if (in->error_code != 0) {
        consumer_refused(member, call, in->error_code);
        return;
    }
    consumer_alive(member, call, in);
    member->unanswered = 0;
}

static const struct client_protocol consumer_protocol = {
    .join = consumer_join,
    .beat = consumer_beat,
    .leave = consumer_leave,
    .subscribe = consumer_subscribe,
    .answered = consumer_answered,
};

struct client_member *client_consumer_new(const struct client_seat *at,
                                          struct membership *group,
                                          struct commits *commits)
{
    struct client_member *member = client_member_new(at, &consumer_protocol, group, commits);
    struct chance *chance = &member->client.chance;
    struct membership_seat *seat = client_member_seat(member);
    member->versions[API_BEAT] = (int16_t)chance_below(chance, 2);
    member->versions[8] = (int16_t)(9 + chance_below(chance, 2)); /* OffsetCommit. */
    member->session_ms = MEMBERSHIP_CONSUMER_SESSION_MS;
    seat->patience_ms = MIN(member->session_ms, member->rebalance_ms);
    member->regex = member->versions[API_BEAT] >= 1 && chance_percent(chance, 30);
    for (uint32_t t = 0; member->regex && t < at->history->topic_count; t++)
        seat->wants[t] = true;
    return member;
}
