/* consumer_group_classic.c - members of a consumer group that speak the classic protocol: their
 * JoinGroup, SyncGroup, Heartbeat, and LeaveGroup for members of either.
 *
 * To them the group's epochs are generations. They are never leader: what they get was assigned
 * here. Their session is their own; `join` and `sync` timers take the place of the rebalance timer.
 */
#include "core/consumer_group_internal.h"
#include "core/consumer_protocol.h"
#include "gen/join_group_request.h"
#include "gen/join_group_response.h"
#include "gen/leave_group_response.h"
#include "gen/sync_group_request.h"
#include "gen/sync_group_response.h"

/* ---- who is it? ------------------------------------------------------------------------------ */

static enum kafka_error classic_find(const struct group *group,
                                     struct view id,
                                     struct view instance,
                                     struct consumer_member **out)
{
    *out = instance.null ? consumer_group_member(group->consumer, id)
                         : consumer_group_static(group->consumer, instance);
    if (*out == NULL) return KAFKA_UNKNOWN_MEMBER_ID;
    if (!view_equal((*out)->id, id)) return KAFKA_FENCED_INSTANCE_ID;
    return (*out)->said.classic ? KAFKA_NONE : KAFKA_UNKNOWN_MEMBER_ID;
}

/* It is to join again, and in time. */
static void join_timer_set(struct consumer_member *member, int64_t now_ms)
{
    if (wheel_armed(&member->join.entry)) return;
    group_timer_set(member->group, &member->join, now_ms + member->said.rebalance_ms);
}

/* ---- Heartbeat ------------------------------------------------------------------------------- */

/* Is all free that the member is still to get? */
static bool awaited_is_free(const struct consumer_member *member)
{
    const struct consumer_group *group = member->group->consumer;
    const struct partition_set *target = consumer_group_target(group, member->id);
    for (uint32_t i = 0; i < target->count; i++) {
        const struct partition_item *item = &target->items[i];
        if (partition_set_find(&member->now.assigned, item->topic, item->partition) != NULL)
            continue;
        if (consumer_group_holder(group, item->topic, item->partition) != CONSUMER_FREE)
            return false;
    }
    return true;
}

/* An assignment was put off, and may be made now: only who joins has it made. */
static bool assignment_is_due(const struct consumer_group *group, int64_t now_ms)
{
    const struct groups *groups = group->groups;
    if (group->epoch <= group->assignment_epoch) return false;
    return now_ms >=
           group->assigned_ms + consumer_group_interval(groups, group->group->id,
                                                        VIEW("consumer.assignment.interval.ms"),
                                                        &groups->consumer_options.assignment);
}

static bool is_to_rejoin(const struct consumer_member *member, int64_t now_ms)
{
    if (assignment_is_due(member->group->consumer, now_ms)) return true;
    if (member->now.epoch < member->group->consumer->assignment_epoch) return true;
    if (member->now.state == CONSUMER_UNREVOKED) return true;
    return member->now.state == CONSUMER_UNRELEASED && awaited_is_free(member);
}

enum kafka_error consumer_group_classic_beat(struct group *group, const struct group_beat *beat)
{
    struct consumer_member *member;
    enum kafka_error error = classic_find(group, beat->member_id, beat->instance_id, &member);
    if (error != KAFKA_NONE) return error;
    if (beat->generation != member->now.epoch) return KAFKA_ILLEGAL_GENERATION;
    consumer_group_contact(member, beat->arrived_ms);
    if (!is_to_rejoin(member, beat->arrived_ms)) return KAFKA_NONE;
    join_timer_set(member, beat->arrived_ms); /* A beat is no step: the last one may be long ago. */
    return KAFKA_REBALANCE_IN_PROGRESS;
}

/* ---- SyncGroup ------------------------------------------------------------------------------- */

static enum kafka_error sync_check(struct group *group,
                                   const struct sync_group_request *in,
                                   struct consumer_member **out)
{
    enum kafka_error error = classic_find(group, in->member_id, in->group_instance_id, out);
    if (error != KAFKA_NONE) return error;
    struct consumer_member *member = *out;
    if (in->generation_id != member->now.epoch) return KAFKA_ILLEGAL_GENERATION;
    if (!in->protocol_type.null && !view_is(in->protocol_type, "consumer"))
        return KAFKA_INCONSISTENT_GROUP_PROTOCOL;
    bool named = member->said.protocol_count > 0;
    if (!in->protocol_name.null &&
        (!named || !view_equal(in->protocol_name, member->said.protocols[0].name)))
        return KAFKA_INCONSISTENT_GROUP_PROTOCOL;
    if (group->consumer->assignment_epoch > member->now.epoch &&
        member->now.state != CONSUMER_UNREVOKED) {
        join_timer_set(member, group->groups->now_ms);
        return KAFKA_REBALANCE_IN_PROGRESS;
    }
    return KAFKA_NONE;
}

void consumer_group_classic_sync(struct group *group,
                                 const struct sync_group_request *in,
                                 struct group_wait *wait)
{
    struct groups *groups = group->groups;
    struct sync_group_response *out = wait->sync;
    struct consumer_member *member;
    enum kafka_error error = sync_check(group, in, &member);
    if (error == KAFKA_NONE) {
        bool named = member->said.protocol_count > 0;
        wire_defaults(&wire_sync_group_response, out);
        out->protocol_type = VIEW("consumer");
        out->protocol_name =
            named ? arena_copy(wait->arena, member->said.protocols[0].name) : VIEW_EMPTY;
        out->assignment =
            consumer_protocol_assigned(wait->arena, groups->image, &member->now.assigned,
                                       named ? member->said.protocols[0].metadata : VIEW_EMPTY);
        if (wait->arena->failed) error = KAFKA_COORDINATOR_NOT_AVAILABLE;
    }
    if (error != KAFKA_NONE) {
        group_sync_error(groups, wait, error);
        return;
    }
    group_timer_cancel(group, &member->sync);
    consumer_group_contact(member, groups->now_ms);
    group_answered(groups, wait);
}

/* ---- LeaveGroup ------------------------------------------------------------------------------ */

enum step_result consumer_group_classic_leave(struct group *group,
                                              struct step *step,
                                              struct leave_group_response *out)
{
    struct consumer_leaving leaving = {0};
    leaving.members = step_get(step, ((size_t)out->members.count + 1) * sizeof(*leaving.members));
    if (leaving.members == NULL) return STEP_E_MEMORY;
    for (int32_t i = 0; i < out->members.count; i++) {
        struct leave_group_response_member_response *item = &out->members.items[i];
        const struct consumer_member *member =
            item->group_instance_id.null
                ? consumer_group_member(group->consumer, item->member_id)
                : consumer_group_static(group->consumer, item->group_instance_id);
        bool other =
            member != NULL && item->member_id.size > 0 && !view_equal(member->id, item->member_id);
        bool gone = member == NULL || consumer_group_leaves(&leaving, member);
        item->error_code = gone    ? KAFKA_UNKNOWN_MEMBER_ID
                           : other ? KAFKA_FENCED_INSTANCE_ID
                                   : KAFKA_NONE;
        if (item->error_code == KAFKA_NONE) leaving.members[leaving.count++] = member;
    }
    return leaving.count == 0 ? STEP_DONE : consumer_group_remove(group, step, &leaving);
}

/* ---- JoinGroup ------------------------------------------------------------------------------- */

struct classic_joining {
    struct consumer_update u;
    struct group *group;
    const struct group_join *in;
    const struct join_group_request *request;
    struct group_wait *wait;
};

static enum step_result join_refuse(struct classic_joining *j,
                                    enum kafka_error error,
                                    struct view id)
{
    j->u.step->record_count = 0;
    j->u.groups->settle.set = false;
    group_join_error(j->u.groups, j->wait, error, id);
    return STEP_DONE;
}

/* Each classic member must know one of the protocols. */
static bool protocols_fit(const struct classic_joining *j)
{
    const struct join_group_request *in = j->request;
    if (!view_is(in->protocol_type, "consumer")) return false;
    if (in->protocols.count <= 0 || in->protocols.count > GROUP_PROTOCOLS_MAX) return false;
    for (int32_t p = 0; p < in->protocols.count; p++) {
        bool all = true;
        list_foreach (link, &j->group->consumer->member_list) {
            const struct consumer_said *said =
                &container_of(link, struct consumer_member, link)->said;
            bool has = !said->classic;
            for (uint32_t i = 0; !has && i < said->protocol_count; i++)
                has = view_equal(said->protocols[i].name, in->protocols.items[p].name);
            all = all && has;
        }
        if (all) return true;
    }
    return false;
}

static enum kafka_error join_find(struct classic_joining *j)
{
    struct consumer_update *u = &j->u;
    struct view instance = j->request->group_instance_id;
    if (instance.null) {
        u->member = consumer_group_member(u->state, u->id);
        return KAFKA_NONE;
    }
    struct consumer_member *owner = consumer_group_static(u->state, instance);
    if (j->request->member_id.size == 0) {
        u->before = owner;
        return KAFKA_NONE;
    }
    u->member = owner;
    if (owner == NULL) return KAFKA_UNKNOWN_MEMBER_ID;
    return view_equal(owner->id, u->id) ? KAFKA_NONE : KAFKA_FENCED_INSTANCE_ID;
}

static enum consumer_protocol_result join_said(struct classic_joining *j)
{
    const struct join_group_request *in = j->request;
    struct arena *arena = j->u.step->arena;
    struct consumer_subscription subscription;
    uint32_t count = (uint32_t)in->protocols.count;
    enum consumer_protocol_result result = consumer_protocol_subscription(
        arena, j->u.groups->image, in->protocols.items[0].metadata, &subscription);
    if (result != CONSUMER_PROTOCOL_OK) return result;
    struct member_protocol *protocols = arena_get(arena, count * sizeof(*protocols));
    if (protocols == NULL) return CONSUMER_PROTOCOL_E_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        protocols[i] =
            (struct member_protocol){in->protocols.items[i].name, in->protocols.items[i].metadata};
    consumer_update_begin(&j->u);
    struct consumer_said *said = &j->u.said;
    if (!in->group_instance_id.null) said->instance = in->group_instance_id;
    if (!subscription.rack.null) said->rack = subscription.rack;
    said->client_id = j->in->client_id.null ? VIEW_EMPTY : j->in->client_id;
    said->client_host = j->in->client_host;
    said->regex = VIEW_EMPTY;
    said->topics = subscription.topics;
    said->topic_count = subscription.topic_count;
    said->rebalance_ms =
        j->u.step->caller.version == 0 ? in->session_timeout_ms : in->rebalance_timeout_ms;
    said->classic = true;
    said->session_ms = in->session_timeout_ms;
    said->protocols = protocols;
    said->protocol_count = count;
    j->u.owned = subscription.owned;
    j->u.owned_told = true;
    return CONSUMER_PROTOCOL_OK;
}

/* Does this Join take the place of the last member of the other protocol? */
static bool join_downgrades(const struct classic_joining *j)
{
    const struct consumer_member *old = j->u.before;
    struct consumer_leaving leaving = {.members = &old, .count = 1};
    return old != NULL && !old->said.classic &&
           consumer_group_may_downgrade(j->group, &leaving, true);
}

static enum step_result join_downgrade(struct classic_joining *j)
{
    const struct consumer_member *old = j->u.before;
    struct consumer_leaving leaving = {.members = &old, .count = 1};
    struct consumer_joining joining = {j->u.id, &j->u.said, j->wait};
    return consumer_group_downgrade(j->group, j->u.step, &leaving, &joining);
}

static enum step_result join_answer(struct classic_joining *j)
{
    struct consumer_update *u = &j->u;
    struct join_group_response *out = j->wait->join;
    if (u->reconciled == CONSUMER_RECONCILE_FENCED)
        return join_refuse(j, KAFKA_UNKNOWN_MEMBER_ID, u->id);
    wire_defaults(&wire_join_group_response, out);
    out->generation_id = u->next.epoch;
    out->protocol_type = VIEW("consumer");
    out->protocol_name = arena_copy(j->wait->arena, j->request->protocols.items[0].name);
    out->leader = VIEW_EMPTY;
    out->member_id = arena_copy(j->wait->arena, u->id);
    if (j->wait->arena->failed) return STEP_E_MEMORY;
    u->groups->decision = (struct group_decision){.kind = DECISION_CLASSIC, .wait = j->wait};
    group_answered(u->groups, j->wait);
    if (u->step->record_count == 0) consumer_group_settle(u->groups);
    return STEP_DONE;
}

static bool join_full(const struct classic_joining *j)
{
    const struct consumer_group *group = j->u.state;
    return group->members.count >= j->u.groups->consumer_options.size_max &&
           consumer_group_member(group, j->request->member_id) == NULL &&
           consumer_group_static(group, j->request->group_instance_id) == NULL;
}

static enum step_result join_process(struct classic_joining *j)
{
    bool unknown = j->request->member_id.size == 0;
    if (j->u.groups->consumer_options.migration == 0)
        return join_refuse(j, KAFKA_INCONSISTENT_GROUP_PROTOCOL, j->request->member_id);
    if (unknown) j->u.id = group_member_id_make(j->u.step, VIEW_NULL);
    if (j->u.id.null) return STEP_E_MEMORY;
    if (join_full(j)) return join_refuse(j, KAFKA_GROUP_MAX_SIZE_REACHED, VIEW_EMPTY);
    if (!protocols_fit(j))
        return join_refuse(j, KAFKA_INCONSISTENT_GROUP_PROTOCOL, j->request->member_id);
    if (unknown && j->request->group_instance_id.null && j->u.step->caller.version >= 4)
        return join_refuse(j, KAFKA_MEMBER_ID_REQUIRED, j->u.id);
    enum kafka_error error = join_find(j);
    if (error != KAFKA_NONE) return join_refuse(j, error, j->request->member_id);
    enum consumer_protocol_result read = join_said(j);
    if (read == CONSUMER_PROTOCOL_E_MEMORY) return STEP_E_MEMORY;
    if (read != CONSUMER_PROTOCOL_OK)
        return join_refuse(j, KAFKA_INCONSISTENT_GROUP_PROTOCOL, j->request->member_id);
    if (join_downgrades(j)) return join_downgrade(j);
    enum step_result result = consumer_group_update(&j->u);
    return result == STEP_DONE ? join_answer(j) : result;
}

enum step_result consumer_group_classic_join(struct group *group,
                                             struct step *step,
                                             const struct group_join *in,
                                             struct group_wait *wait)
{
    struct classic_joining j = {
        .u = {.groups = group->groups,
              .step = step,
              .group_id = in->request->group_id,
              .state = group->consumer,
              .id = in->request->member_id,
              .contact_ms = group->groups->now_ms},
        .group = group,
        .in = in,
        .request = in->request,
        .wait = wait,
    };
    if (group->consumer->members.count > 0) return join_process(&j);
    /* An empty one makes way for a classic group. */
    if (in->request->member_id.size > 0)
        return join_refuse(&j, KAFKA_UNKNOWN_MEMBER_ID, in->request->member_id);
    return consumer_group_gone(group, step) ? STEP_MORE : STEP_E_MEMORY;
}
