/* consumer_group_beat.c - ConsumerGroupHeartbeat: who asks, what has changed, what follows
 * (groups.md 12.3 to 12.7, 12.11).
 *
 * A step looks at the group as it is and at the member as it would be; the records it makes are
 * what lies between. Their order is Kafka's: what the member says (5), the group's epoch (3),
 * targets (7, 6), what the member holds (8). */
#include "core/consumer_group_internal.h"

#include "base/view_sort.h"
#include "core/assignor.h"
#include "core/config.h"
#include "core/image.h"
#include "core/join.h"
#include "gen/consumer_group_heartbeat_request.h"
#include "gen/consumer_group_heartbeat_response.h"

struct beating {
    struct groups *groups;
    struct step *step;
    const struct consumer_group_beat *in;
    const struct consumer_group_heartbeat_request *request;
    struct consumer_group_heartbeat_response *out;
    struct group *group;            /* NULL: it does not exist. */
    struct consumer_group *state;   /* Of the group, or a blank. */
    struct consumer_member *member; /* NULL: new. */
    struct consumer_member *before; /* The static member whose place it takes. */
    struct consumer_said was;       /* What it had said, */
    struct consumer_said said;      /* and says now. */
    struct consumer_current now;
    struct view id;
    struct partition_set owned;
    bool owned_told;
    /* What follows. */
    struct consumer_edit edit;
    int32_t epoch; /* Of the group. */
    int32_t assignment_epoch;
    int64_t hash;
    bool refreshed;
    bool changed; /* What the member wants. */
};

static enum step_result refuse(struct beating *b, enum kafka_error error, struct view text)
{
    wire_defaults(&wire_consumer_group_heartbeat_response, b->out);
    b->out->error_code = (int16_t)error;
    b->out->error_message = text;
    b->step->record_count = 0;
    return STEP_DONE;
}

/* ---- the request ----------------------------------------------------------------------------- */

static bool blank(struct view text)
{
    for (uint32_t i = 0; i < text.size; i++)
        if (text.data[i] > ' ') return false;
    return true;
}

static struct view request_fault_join(const struct consumer_group_heartbeat_request *in)
{
    if (in->rebalance_timeout_ms == -1)
        return VIEW("RebalanceTimeoutMs must be provided in first request.");
    if (in->topic_partitions.count != 0)
        return VIEW("TopicPartitions must be empty when (re-)joining.");
    if (in->subscribed_topic_names.count < 0 && in->subscribed_topic_regex.null)
        return VIEW("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                    "(re-)joining.");
    return VIEW_NULL;
}

/* Null, or which rule the request breaks. */
static struct view request_fault(const struct beating *b)
{
    const struct consumer_group_heartbeat_request *in = b->request;
    bool named = b->step->caller.version >= 1 || in->member_epoch > 0 ||
                 in->member_epoch == CONSUMER_EPOCH_LEAVE;
    struct view fault = VIEW_NULL;
    if (blank(in->group_id)) return VIEW("GroupId can't be empty.");
    if (!in->instance_id.null && blank(in->instance_id)) return VIEW("InstanceId can't be empty.");
    if (!in->rack_id.null && blank(in->rack_id)) return VIEW("RackId can't be empty.");
    if (named && blank(in->member_id)) return VIEW("MemberId can't be empty.");
    if (in->member_epoch == 0) fault = request_fault_join(in);
    if (!fault.null) return fault;
    if (in->member_epoch == CONSUMER_EPOCH_LEAVE_STATIC && in->instance_id.null)
        return VIEW("InstanceId can't be null.");
    if (in->member_epoch < CONSUMER_EPOCH_LEAVE_STATIC)
        return JOIN(b->step->arena, VIEW("MemberEpoch is invalid: "),
                    join_number(b->step->arena, in->member_epoch));
    return VIEW_NULL;
}

static bool owned_read(struct beating *b)
{
    const struct consumer_group_heartbeat_request *in = b->request;
    size_t room = 0;
    b->owned_told = in->topic_partitions.count >= 0;
    for (int32_t i = 0; i < in->topic_partitions.count; i++)
        room += (size_t)MAX(in->topic_partitions.items[i].partitions.count, 0);
    if (!partition_set_room(&b->owned, b->step->arena, room)) return false;
    for (int32_t i = 0; i < in->topic_partitions.count; i++)
        for (int32_t p = 0; p < in->topic_partitions.items[i].partitions.count; p++)
            b->owned.items[b->owned.count++] = (struct partition_item){
                .topic = in->topic_partitions.items[i].topic_id,
                .partition = in->topic_partitions.items[i].partitions.items[p],
            };
    partition_set_sort(&b->owned);
    return true;
}

/* ---- the group ------------------------------------------------------------------------------- */

static enum kafka_error group_look_up(struct beating *b)
{
    const struct consumer_group_heartbeat_request *in = b->request;
    struct group *group = groups_find(b->groups, in->group_id);
    bool classic = group != NULL && group->consumer == NULL;
    if (group != NULL && group->state == GROUP_DEAD) return KAFKA_COORDINATOR_NOT_AVAILABLE;
    if (in->member_epoch != 0 && (group == NULL || classic)) return KAFKA_GROUP_ID_NOT_FOUND;
    if (classic && group->state != GROUP_EMPTY) return KAFKA_GROUP_ID_NOT_FOUND;
    b->group = group;
    if (group != NULL && !classic) {
        b->state = group->consumer;
        return KAFKA_NONE;
    }
    b->state = step_get(b->step, sizeof(*b->state));
    if (b->state == NULL) return KAFKA_COORDINATOR_NOT_AVAILABLE;
    consumer_group_blank(b->state, b->groups);
    /* An empty classic group makes way. */
    if (classic && !group_tombstone_put(b->step, group->id)) return KAFKA_COORDINATOR_NOT_AVAILABLE;
    return KAFKA_NONE;
}

static bool is_full(const struct beating *b)
{
    const struct consumer_group *group = b->state;
    if (group->members.count < b->groups->consumer_options.size_max) return false;
    if (consumer_group_member(group, b->request->member_id) != NULL) return false;
    return consumer_group_static(group, b->request->instance_id) == NULL;
}

/* ---- the member ------------------------------------------------------------------------------ */

static enum kafka_error epoch_check(const struct beating *b, const struct consumer_member *member)
{
    int32_t epoch = b->request->member_epoch;
    if (epoch == member->now.epoch || epoch == 0) return KAFKA_NONE;
    /* The answer with the newer epoch was lost, if it holds no more than it had. */
    bool lost = epoch < member->now.epoch && epoch == member->now.previous && b->owned_told &&
                partition_set_covers(&member->now.assigned, &b->owned);
    return lost ? KAFKA_NONE : KAFKA_FENCED_MEMBER_EPOCH;
}

static struct view epoch_text(const struct beating *b)
{
    if (b->request->member_epoch > b->member->now.epoch)
        return VIEW(
            "The consumer group member has a greater member epoch than the one known by "
            "the group coordinator. The member must abandon all its partitions and rejoin.");
    return VIEW("The consumer group member has a smaller member epoch than the one known by the "
                "group coordinator. The member must abandon all its partitions and rejoin.");
}

static enum kafka_error member_dynamic(struct beating *b)
{
    b->member = consumer_group_member(b->state, b->id);
    if (b->member == NULL)
        return b->request->member_epoch == 0 ? KAFKA_NONE : KAFKA_UNKNOWN_MEMBER_ID;
    return epoch_check(b, b->member);
}

static enum kafka_error member_static(struct beating *b)
{
    struct consumer_member *owner = consumer_group_static(b->state, b->request->instance_id);
    if (b->request->member_epoch == 0) {
        if (owner == NULL) { /* A dynamic member may take a name. */
            b->member = consumer_group_member(b->state, b->id);
            return KAFKA_NONE;
        }
        if (!owner->said.classic && owner->now.epoch != CONSUMER_EPOCH_LEAVE_STATIC)
            return KAFKA_UNRELEASED_INSTANCE_ID;
        b->before = owner;
        return KAFKA_NONE;
    }
    if (owner == NULL) return KAFKA_UNKNOWN_MEMBER_ID;
    b->member = owner;
    if (!view_equal(owner->id, b->id)) return KAFKA_FENCED_INSTANCE_ID;
    return epoch_check(b, owner);
}

static struct view member_text(const struct beating *b, enum kafka_error error)
{
    struct arena *arena = b->step->arena;
    struct view group = b->request->group_id, instance = b->request->instance_id;
    switch ((int)error) {
    case KAFKA_FENCED_MEMBER_EPOCH: return epoch_text(b);
    case KAFKA_UNRELEASED_INSTANCE_ID:
        return JOIN(arena, VIEW("Static member "), b->id, VIEW(" with instance id "), instance,
                    VIEW(" cannot join the group because the instance id is owned by "),
                    consumer_group_static(b->state, instance)->id, VIEW(" member."));
    case KAFKA_FENCED_INSTANCE_ID:
        return JOIN(arena, VIEW("Static member "), b->id, VIEW(" with instance id "), instance,
                    VIEW(" was fenced by member "), b->member->id, VIEW("."));
    case KAFKA_UNKNOWN_MEMBER_ID:
        if (!instance.null)
            return JOIN(arena, VIEW("Instance id "), instance, VIEW(" is unknown."));
        return JOIN(arena, VIEW("Member "), b->id, VIEW(" is not a member of group "), group,
                    VIEW("."));
    default: return VIEW_NULL;
    }
}

/* ---- leaving --------------------------------------------------------------------------------- */

static enum step_result leave_for_a_while(struct beating *b)
{
    struct consumer_current now = b->member->now;
    struct partition_set assigned;
    if (!partition_set_room(&assigned, b->step->arena, now.assigned.count)) return STEP_E_MEMORY;
    for (uint32_t i = 0; i < now.assigned.count; i++) {
        assigned.items[i] = now.assigned.items[i];
        assigned.items[i].epoch = 0;
    }
    assigned.count = now.assigned.count;
    now.assigned = assigned;
    now.pending = (struct partition_set){0};
    now.epoch = CONSUMER_EPOCH_LEAVE_STATIC;
    return consumer_record_current(b->step, b->group->id, b->member->id, &now) ? STEP_DONE
                                                                               : STEP_E_MEMORY;
}

static enum step_result leave(struct beating *b)
{
    struct view instance = b->request->instance_id;
    b->member = instance.null ? consumer_group_member(b->state, b->id)
                              : consumer_group_static(b->state, instance);
    enum kafka_error error = b->member == NULL                   ? KAFKA_UNKNOWN_MEMBER_ID
                             : !view_equal(b->member->id, b->id) ? KAFKA_FENCED_INSTANCE_ID
                                                                 : KAFKA_NONE;
    if (error != KAFKA_NONE) return refuse(b, error, member_text(b, error));
    const struct consumer_member *gone = b->member;
    struct consumer_leaving leaving = {.members = &gone, .count = 1};
    enum step_result result = b->request->member_epoch == CONSUMER_EPOCH_LEAVE_STATIC
                                  ? leave_for_a_while(b)
                                  : consumer_group_fence(b->group, b->step, &leaving);
    b->out->member_id = b->id;
    b->out->member_epoch = b->request->member_epoch;
    return result;
}

/* ---- what the member says -------------------------------------------------------------------- */

static bool names_take(struct beating *b)
{
    const struct consumer_group_heartbeat_request *in = b->request;
    uint32_t count = (uint32_t)in->subscribed_topic_names.count, kept = 0;
    if (in->subscribed_topic_names.count < 0) return true;
    struct view *names = arena_take(b->step->arena, ((size_t)count + 1) * sizeof(*names));
    if (names == NULL) return false;
    for (uint32_t i = 0; i < count; i++)
        names[i] = in->subscribed_topic_names.items[i];
    view_sort(names, count);
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || !view_equal(names[kept - 1], names[i])) names[kept++] = names[i];
    b->said.topics = names;
    b->said.topic_count = kept;
    return true;
}

/* Null and -1 mean: as before. Who speaks this protocol does not speak the classic one any more. */
static bool said_take(struct beating *b)
{
    const struct consumer_group_heartbeat_request *in = b->request;
    const struct consumer_member *of = b->member != NULL ? b->member : b->before;
    b->was = (struct consumer_said){
        .instance = VIEW_NULL,
        .rack = VIEW_NULL,
        .client_id = VIEW_EMPTY,
        .client_host = VIEW_EMPTY,
        .regex = VIEW_NULL,
        .assignor = VIEW_NULL,
        .rebalance_ms = -1,
    };
    if (of != NULL) b->was = of->said;
    b->said = b->was;
    if (!in->instance_id.null) b->said.instance = in->instance_id;
    if (!in->rack_id.null) b->said.rack = in->rack_id;
    if (in->rebalance_timeout_ms != -1) b->said.rebalance_ms = in->rebalance_timeout_ms;
    if (!in->server_assignor.null) b->said.assignor = in->server_assignor;
    if (!in->subscribed_topic_regex.null) b->said.regex = in->subscribed_topic_regex;
    b->said.client_id = b->in->client_id.null ? VIEW_EMPTY : b->in->client_id;
    b->said.client_host = b->in->client_host;
    b->said.classic = false;
    b->said.session_ms = 0;
    b->said.protocols = NULL;
    b->said.protocol_count = 0;
    return names_take(b);
}

static bool names_equal(const struct consumer_said *a, const struct consumer_said *b)
{
    if (a->topic_count != b->topic_count) return false;
    for (uint32_t i = 0; i < a->topic_count; i++)
        if (!view_equal(a->topics[i], b->topics[i])) return false;
    return true;
}

static bool regex_is(struct view regex)
{
    return !regex.null && regex.size > 0;
}

/* A static member comes back: everything of the old id is the new one's. */
static bool replace(struct beating *b)
{
    const struct consumer_member *old = b->before;
    struct view group = b->request->group_id;
    b->now = old->now;
    b->now.epoch = 0;
    b->now.previous = 0;
    return consumer_member_gone(b->step, group, old->id) &&
           consumer_record_said(b->step, group, b->id, &old->said) &&
           consumer_record_target(b->step, group, b->id,
                                  consumer_group_target(b->state, old->id)) &&
           consumer_record_current(b->step, group, b->id, &b->now);
}

/* ---- what follows for the group -------------------------------------------------------------- */

/* Does the group want another assignor through this member? */
static bool assignor_changes(struct beating *b, const struct consumer_roster *roster, bool *out)
{
    struct consumer_edit none = {.id = VIEW_NULL, .replaces = VIEW_NULL};
    struct consumer_roster before;
    *out = false;
    if (view_equal(b->was.assignor, b->said.assignor)) return true;
    if (!consumer_group_roster(b->state, b->step->arena, &none, &before)) return false;
    *out = !view_equal(consumer_group_assignor(b->groups, &before),
                       consumer_group_assignor(b->groups, roster));
    return true;
}

/* An expression that the member gives up is forgotten with its last user; a new one moves the group
 * only if its topics are known already. */
static bool regex_changes(struct beating *b, bool *bump)
{
    const struct consumer_member *of = b->member != NULL ? b->member : b->before;
    if (view_equal(b->was.regex, b->said.regex)) return true;
    *bump = *bump || (regex_is(b->was.regex) && !regex_is(b->said.regex)) ||
            (regex_is(b->said.regex) && consumer_group_regex(b->state, b->said.regex) != NULL);
    bool known = regex_is(b->was.regex) && consumer_group_regex(b->state, b->was.regex) != NULL;
    if (!known || consumer_group_regex_users(b->state, b->was.regex, of) > 0) return true;
    return consumer_gone(b->step, CONSUMER_KEY_REGEX, b->request->group_id, b->was.regex);
}

static bool hash_refresh(struct beating *b, const struct consumer_roster *roster)
{
    struct consumer_topics topics;
    b->refreshed = true;
    return consumer_group_topics(b->state, b->step->arena, &b->edit, roster, &topics) &&
           consumer_group_hash(b->groups, b->step->arena, &topics, &b->hash);
}

/* Records 5 and 3, if there is a reason. False: no memory. */
static bool group_update(struct beating *b, const struct consumer_roster *roster)
{
    struct view group = b->request->group_id;
    bool bump = !names_equal(&b->was, &b->said), other;
    b->changed = bump || !view_equal(b->was.regex, b->said.regex);
    bool fresh = b->member == NULL && b->before == NULL;
    if ((fresh || !consumer_said_equal(&b->was, &b->said)) &&
        !consumer_record_said(b->step, group, b->id, &b->said))
        return false;
    if (!regex_changes(b, &bump) || !assignor_changes(b, roster, &other)) return false;
    bump = bump || other;
    if (bump || b->state->topics_seen != b->groups->topics_version) {
        if (!hash_refresh(b, roster)) return false;
        bump = bump || b->hash != b->state->hash;
    }
    if (!bump) return true;
    b->epoch++;
    if (!consumer_record_group(b->step, group, b->epoch, b->hash)) return false;
    return !b->state->legacy_metadata ||
           consumer_gone(b->step, CONSUMER_KEY_METADATA, group, VIEW_NULL);
}

static bool may_assign(const struct beating *b)
{
    int64_t interval_ms = consumer_group_interval(b->groups, b->request->group_id,
                                                  VIEW("consumer.assignment.interval.ms"),
                                                  &b->groups->consumer_options.assignment);
    int64_t last_ms = b->state->assigned_wall_ms;
    if (b->epoch <= b->assignment_epoch) return false;
    return last_ms == 0 || interval_ms == 0 || b->step->wall_ms >= last_ms + interval_ms ||
           b->step->wall_ms < last_ms; /* The clock was set back: it says nothing. */
}

/* ---- what follows for the member ------------------------------------------------------------- */

static bool subscribed_ids(struct beating *b, struct consumer_reconcile *out)
{
    struct consumer_topics topics;
    struct partition_set ids;
    if (!consumer_group_topics_of(b->state, b->step->arena, &b->edit, &b->said, &topics))
        return false;
    if (!partition_set_room(&ids, b->step->arena, topics.count)) return false;
    for (; ids.count < topics.count; ids.count++)
        ids.items[ids.count] = (struct partition_item){.topic = topics.items[ids.count]->id};
    partition_set_sort(&ids);
    struct uuid *sorted = arena_take(b->step->arena, ((size_t)ids.count + 1) * sizeof(*sorted));
    if (sorted == NULL) return false;
    for (uint32_t i = 0; i < ids.count; i++)
        sorted[i] = ids.items[i].topic;
    out->subscribed = sorted;
    out->subscribed_count = ids.count;
    return true;
}

static bool assignment_answer(struct beating *b, const struct partition_set *set)
{
    struct step *step = b->step;
    struct consumer_group_heartbeat_response_assignment *out = step_get(step, sizeof(*out));
    if (out == NULL) return false;
    wire_struct_defaults(&wire_consumer_group_heartbeat_response_assignment_shape, out);
    out->topic_partitions.items =
        step_get(step, (partition_set_topics(set) + 1) * sizeof(*out->topic_partitions.items));
    if (out->topic_partitions.items == NULL) return false;
    for (uint32_t at = 0, run; at < set->count; at += run) {
        struct consumer_group_heartbeat_response_topic_partitions *item =
            &out->topic_partitions.items[out->topic_partitions.count++];
        run = partition_set_run(set, at);
        wire_struct_defaults(&wire_consumer_group_heartbeat_response_topic_partitions_shape, item);
        item->topic_id = set->items[at].topic;
        item->partitions.items = step_get(step, run * sizeof(int32_t));
        if (item->partitions.items == NULL) return false;
        item->partitions.count = (int32_t)run;
        for (uint32_t i = 0; i < run; i++)
            item->partitions.items[i] = set->items[at + i].partition;
    }
    b->out->assignment = out;
    return true;
}

/* Does the request tell all that a member can tell? */
static bool is_full_request(const struct consumer_group_heartbeat_request *in)
{
    if (in->member_epoch == 0) return true;
    return in->rebalance_timeout_ms != -1 &&
           (in->subscribed_topic_names.count >= 0 || !in->subscribed_topic_regex.null) &&
           in->topic_partitions.count >= 0;
}

static void settle_later(struct beating *b,
                         enum consumer_reconciled reconciled,
                         const struct consumer_current *next)
{
    struct consumer_settle *settle = &b->groups->settle;
    *settle = (struct consumer_settle){
        .set = true,
        .group = b->request->group_id,
        .member = b->id,
        .contact_ms = b->in->arrived_ms,
        .refreshed = b->refreshed,
        .topics_version = b->groups->topics_version,
    };
    if (reconciled != CONSUMER_RECONCILED) return;
    settle->rebalance =
        next->state == CONSUMER_UNREVOKED ? CONSUMER_TIMER_SET : CONSUMER_TIMER_CANCEL;
    settle->rebalance_ms = b->groups->now_ms + b->said.rebalance_ms;
}

static enum step_result member_update(struct beating *b, const struct partition_set *target)
{
    struct view group = b->request->group_id;
    struct consumer_current next;
    struct consumer_reconcile in = {
        .group = b->state,
        .now = b->now,
        .target = target,
        .target_epoch = b->assignment_epoch,
        .owned = b->owned_told ? &b->owned : NULL,
        .changed = b->changed,
    };
    if (!subscribed_ids(b, &in)) return STEP_E_MEMORY;
    enum consumer_reconciled result = consumer_group_reconcile(b->step->arena, &in, &next);
    if (result == CONSUMER_RECONCILE_E_MEMORY) return STEP_E_MEMORY;
    if (result == CONSUMER_RECONCILE_FENCED)
        return refuse(
            b, KAFKA_FENCED_MEMBER_EPOCH,
            VIEW("The consumer group member must abandon all its partitions and rejoin."));
    if (result == CONSUMER_RECONCILED && !consumer_record_current(b->step, group, b->id, &next))
        return STEP_E_MEMORY;
    settle_later(b, result, &next);
    b->out->member_id = b->id;
    b->out->member_epoch = next.epoch;
    b->out->heartbeat_interval_ms =
        (int32_t)consumer_group_interval(b->groups, group, VIEW("consumer.heartbeat.interval.ms"),
                                         &b->groups->consumer_options.heartbeat);
    bool tell =
        is_full_request(b->request) || !partition_set_equal(&b->now.assigned, &next.assigned);
    return !tell || assignment_answer(b, &next.assigned) ? STEP_DONE : STEP_E_MEMORY;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static enum step_result process(struct beating *b)
{
    struct consumer_roster roster;
    const struct consumer_member *of = b->member != NULL ? b->member : b->before;
    struct partition_set target = {0};
    if (!said_take(b)) return STEP_E_MEMORY;
    b->now = of != NULL ? of->now : (struct consumer_current){.previous = -1};
    if (b->before != NULL && !replace(b)) return STEP_E_MEMORY;
    b->edit = (struct consumer_edit){
        .id = b->id,
        .said = &b->said,
        .replaces = b->before == NULL ? VIEW_NULL : b->before->id,
    };
    b->epoch = b->state->epoch;
    b->assignment_epoch = b->state->assignment_epoch;
    b->hash = b->state->hash;
    if (!consumer_group_roster(b->state, b->step->arena, &b->edit, &roster)) return STEP_E_MEMORY;
    if (!group_update(b, &roster)) return STEP_E_MEMORY;
    if (of != NULL) target = *consumer_group_target(b->state, of->id);
    if (may_assign(b)) {
        struct consumer_targeting targeting = {
            .group = b->state,
            .id = b->request->group_id,
            .edit = &b->edit,
            .roster = &roster,
            .epoch = b->epoch,
        };
        enum step_result result = consumer_group_retarget(b->step, &targeting, &target);
        if (result != STEP_DONE) return result;
        b->assignment_epoch = b->epoch;
    }
    return member_update(b, &target);
}

static enum step_result join_or_beat(struct beating *b)
{
    struct arena *arena = b->step->arena;
    enum kafka_error error = group_look_up(b);
    if (error == KAFKA_COORDINATOR_NOT_AVAILABLE) return STEP_E_MEMORY;
    if (error != KAFKA_NONE)
        return refuse(b, error,
                      group_missing_text(arena, b->request->group_id,
                                         groups_find(b->groups, b->request->group_id),
                                         VIEW("consumer")));
    if (is_full(b))
        return refuse(b, KAFKA_GROUP_MAX_SIZE_REACHED,
                      JOIN(arena, VIEW("The consumer group has reached its maximum capacity of "),
                           join_number(arena, b->groups->consumer_options.size_max),
                           VIEW(" members.")));
    if (b->request->member_epoch < 0) return leave(b);
    error = b->request->instance_id.null ? member_dynamic(b) : member_static(b);
    if (error != KAFKA_NONE) return refuse(b, error, member_text(b, error));
    if (!b->in->regex_fault.null)
        return refuse(b, KAFKA_INVALID_REGULAR_EXPRESSION, b->in->regex_fault);
    return process(b);
}

static bool assignor_served(const struct beating *b)
{
    struct view asked = b->request->server_assignor;
    return asked.null || (assignor_by_name(asked) != NULL &&
                          config_list_has(b->groups->consumer_options.assignors, asked));
}

enum step_result consumer_group_heartbeat(struct groups *groups,
                                          struct step *step,
                                          const struct consumer_group_beat *in,
                                          struct consumer_group_heartbeat_response *out)
{
    struct beating b = {
        .groups = groups,
        .step = step,
        .in = in,
        .request = in->request,
        .out = out,
        .id = in->request->member_id,
    };
    groups_begin(groups, step);
    struct view fault = request_fault(&b);
    if (!fault.null) return refuse(&b, KAFKA_INVALID_REQUEST, fault);
    if (!assignor_served(&b))
        return refuse(&b, KAFKA_UNSUPPORTED_ASSIGNOR,
                      JOIN(step->arena, VIEW("ServerAssignor "), in->request->server_assignor,
                           VIEW(" is not supported. Supported assignors: "),
                           groups->consumer_options.assignors, VIEW(".")));
    if (b.id.size == 0) b.id = group_member_id_make(step, VIEW_NULL);
    if (b.id.null || !owned_read(&b)) return STEP_E_MEMORY;
    enum step_result result = join_or_beat(&b);
    if (result == STEP_E_MEMORY && step_room(step) == 0)
        return refuse(&b, KAFKA_UNKNOWN_SERVER_ERROR, VIEW("The group is too large."));
    if (result == STEP_DONE && step->record_count == 0) consumer_group_settle(groups);
    return result;
}

void consumer_group_settle(struct groups *groups)
{
    struct consumer_settle settle = groups->settle;
    groups->settle.set = false;
    if (!settle.set) return;
    struct group *group = groups_find(groups, settle.group);
    if (group == NULL || group->consumer == NULL) return;
    struct consumer_member *member = consumer_group_member(group->consumer, settle.member);
    if (settle.refreshed) group->consumer->topics_seen = settle.topics_version;
    if (settle.resolved) group->consumer->regex_seen = settle.topics_version;
    if (settle.resolved) group->consumer->regex_open = false;
    if (member == NULL) return;
    consumer_group_contact(member, settle.contact_ms);
    if (settle.rebalance == CONSUMER_TIMER_CANCEL) group_timer_cancel(group, &member->rebalance);
    if (settle.rebalance == CONSUMER_TIMER_SET) {
        member->rebalance_epoch = member->now.epoch;
        group_timer_set(group, &member->rebalance, settle.rebalance_ms);
    }
}
