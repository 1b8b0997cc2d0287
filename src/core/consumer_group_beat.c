/* consumer_group_beat.c - ConsumerGroupHeartbeat: who asks, what has changed, what follows.
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
    struct consumer_update u;
    const struct consumer_group_beat *in;
    const struct consumer_group_heartbeat_request *request;
    struct consumer_group_heartbeat_response *out;
    struct group *group; /* NULL: it does not exist. */
    struct group shell;  /* Holds the group as it will be if it becomes a consumer group. */
};

static enum step_result refuse(struct beating *b, enum kafka_error error, struct view text)
{
    wire_defaults(&wire_consumer_group_heartbeat_response, b->out);
    b->out->error_code = (int16_t)error;
    b->out->error_message = text;
    b->u.step->record_count = 0;
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
    bool named = b->u.step->caller.version >= 1 || in->member_epoch > 0 ||
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
    if (in->member_epoch < CONSUMER_EPOCH_LEAVE_STATIC) return VIEW("MemberEpoch is invalid.");
    return VIEW_NULL;
}

static bool owned_read(struct beating *b)
{
    const struct consumer_group_heartbeat_request *in = b->request;
    size_t room = 0;
    b->u.owned_told = in->topic_partitions.count >= 0;
    for (int32_t i = 0; i < in->topic_partitions.count; i++)
        room += (size_t)MAX(in->topic_partitions.items[i].partitions.count, 0);
    if (!partition_set_room(&b->u.owned, b->u.step->arena, room)) return false;
    for (int32_t i = 0; i < in->topic_partitions.count; i++)
        for (int32_t p = 0; p < in->topic_partitions.items[i].partitions.count; p++)
            b->u.owned.items[b->u.owned.count++] = (struct partition_item){
                .topic = in->topic_partitions.items[i].topic_id,
                .partition = in->topic_partitions.items[i].partitions.items[p],
            };
    partition_set_sort(&b->u.owned);
    return true;
}

/* ---- the group ------------------------------------------------------------------------------- */

static enum kafka_error group_look_up(struct beating *b)
{
    const struct consumer_group_heartbeat_request *in = b->request;
    struct group *group = groups_find(b->u.groups, in->group_id);
    bool classic = group != NULL && group->consumer == NULL;
    if (group != NULL && group->state == GROUP_DEAD) return KAFKA_COORDINATOR_NOT_AVAILABLE;
    if (in->member_epoch != 0 && (group == NULL || classic)) return KAFKA_GROUP_ID_NOT_FOUND;
    b->group = group;
    if (group != NULL && !classic) {
        b->u.state = group->consumer;
        return KAFKA_NONE;
    }
    if (classic && group->state != GROUP_EMPTY) {
        enum kafka_error error = consumer_group_upgrade(group, b->u.step, &b->shell);
        b->u.upgraded = error == KAFKA_NONE;
        b->u.state = b->shell.consumer;
        return error;
    }
    b->u.state = step_get(b->u.step, sizeof(*b->u.state));
    if (b->u.state == NULL) return KAFKA_COORDINATOR_NOT_AVAILABLE;
    consumer_group_blank(b->u.state, b->u.groups);
    /* An empty classic group makes way. */
    if (classic && !group_tombstone_put(b->u.step, group->id))
        return KAFKA_COORDINATOR_NOT_AVAILABLE;
    return KAFKA_NONE;
}

static bool is_full(const struct beating *b)
{
    const struct consumer_group *group = b->u.state;
    if (group->members.count < b->u.groups->consumer_options.size_max) return false;
    if (consumer_group_member(group, b->request->member_id) != NULL) return false;
    return consumer_group_static(group, b->request->instance_id) == NULL;
}

/* ---- the member ------------------------------------------------------------------------------ */

static enum kafka_error epoch_check(const struct beating *b, const struct consumer_member *member)
{
    int32_t epoch = b->request->member_epoch;
    if (epoch == member->now.epoch || epoch == 0) return KAFKA_NONE;
    /* The answer with the newer epoch was lost, if it holds no more than it had. */
    bool lost = epoch < member->now.epoch && epoch == member->now.previous && b->u.owned_told &&
                partition_set_covers(&member->now.assigned, &b->u.owned);
    return lost ? KAFKA_NONE : KAFKA_FENCED_MEMBER_EPOCH;
}

static struct view epoch_text(const struct beating *b)
{
    struct arena *arena = b->u.step->arena;
    int32_t asked = b->request->member_epoch, known = b->u.member->now.epoch;
    return JOIN(arena, VIEW("The consumer group member has a "),
                asked > known ? VIEW("greater") : VIEW("smaller"), VIEW(" member epoch ("),
                join_number(arena, asked), VIEW(") than the one known by the group coordinator ("),
                join_number(arena, known),
                VIEW("). The member must abandon all its partitions and rejoin."));
}

static enum kafka_error member_dynamic(struct beating *b)
{
    b->u.member = consumer_group_member(b->u.state, b->u.id);
    if (b->u.member == NULL)
        return b->request->member_epoch == 0 ? KAFKA_NONE : KAFKA_UNKNOWN_MEMBER_ID;
    return epoch_check(b, b->u.member);
}

static enum kafka_error member_static(struct beating *b)
{
    struct consumer_member *owner = consumer_group_static(b->u.state, b->request->instance_id);
    if (b->request->member_epoch == 0) {
        if (owner == NULL) { /* A dynamic member may take a name. */
            b->u.member = consumer_group_member(b->u.state, b->u.id);
            return KAFKA_NONE;
        }
        if (!owner->said.classic && owner->now.epoch != CONSUMER_EPOCH_LEAVE_STATIC)
            return KAFKA_UNRELEASED_INSTANCE_ID;
        b->u.before = owner;
        return KAFKA_NONE;
    }
    if (owner == NULL) return KAFKA_UNKNOWN_MEMBER_ID;
    b->u.member = owner;
    if (!view_equal(owner->id, b->u.id)) return KAFKA_FENCED_INSTANCE_ID;
    return epoch_check(b, owner);
}

static struct view member_text(const struct beating *b, enum kafka_error error)
{
    struct arena *arena = b->u.step->arena;
    struct view group = b->request->group_id, instance = b->request->instance_id;
    switch ((int)error) {
    case KAFKA_FENCED_MEMBER_EPOCH: return epoch_text(b);
    case KAFKA_UNRELEASED_INSTANCE_ID:
        return JOIN(arena, VIEW("Static member "), b->u.id, VIEW(" with instance id "), instance,
                    VIEW(" cannot join the group because the instance id is owned by "),
                    consumer_group_static(b->u.state, instance)->id, VIEW(" member."));
    case KAFKA_FENCED_INSTANCE_ID:
        return JOIN(arena, VIEW("Static member "), b->u.id, VIEW(" with instance id "), instance,
                    VIEW(" was fenced by member "), b->u.member->id, VIEW("."));
    case KAFKA_UNKNOWN_MEMBER_ID:
        if (!instance.null)
            return JOIN(arena, VIEW("Instance id "), instance, VIEW(" is unknown."));
        return JOIN(arena, VIEW("Member "), b->u.id, VIEW(" is not a member of group "), group,
                    VIEW("."));
    default: return VIEW_NULL;
    }
}

/* ---- leaving --------------------------------------------------------------------------------- */

static enum step_result leave_for_a_while(struct beating *b)
{
    struct consumer_current now = b->u.member->now;
    struct partition_set assigned;
    if (!partition_set_room(&assigned, b->u.step->arena, now.assigned.count)) return STEP_E_MEMORY;
    for (uint32_t i = 0; i < now.assigned.count; i++) {
        assigned.items[i] = now.assigned.items[i];
        assigned.items[i].epoch = 0;
    }
    assigned.count = now.assigned.count;
    now.assigned = assigned;
    now.pending = (struct partition_set){0};
    now.epoch = CONSUMER_EPOCH_LEAVE_STATIC;
    return consumer_record_current(b->u.step, b->group->id, b->u.member->id, &now) ? STEP_DONE
                                                                                   : STEP_E_MEMORY;
}

static enum step_result leave(struct beating *b)
{
    struct view instance = b->request->instance_id;
    b->u.member = instance.null ? consumer_group_member(b->u.state, b->u.id)
                                : consumer_group_static(b->u.state, instance);
    enum kafka_error error = b->u.member == NULL                     ? KAFKA_UNKNOWN_MEMBER_ID
                             : !view_equal(b->u.member->id, b->u.id) ? KAFKA_FENCED_INSTANCE_ID
                                                                     : KAFKA_NONE;
    if (error != KAFKA_NONE) return refuse(b, error, member_text(b, error));
    const struct consumer_member *gone = b->u.member;
    struct consumer_leaving leaving = {.members = &gone, .count = 1};
    enum step_result result = b->request->member_epoch == CONSUMER_EPOCH_LEAVE_STATIC
                                  ? leave_for_a_while(b)
                                  : consumer_group_remove(b->group, b->u.step, &leaving);
    b->out->member_id = b->u.id;
    b->out->member_epoch = b->request->member_epoch;
    return result;
}

/* ---- what the member says -------------------------------------------------------------------- */

static bool names_take(struct beating *b)
{
    const struct consumer_group_heartbeat_request *in = b->request;
    uint32_t count = (uint32_t)in->subscribed_topic_names.count, kept = 0;
    if (in->subscribed_topic_names.count < 0) return true;
    struct view *names = arena_take(b->u.step->arena, ((size_t)count + 1) * sizeof(*names));
    if (names == NULL) return false;
    for (uint32_t i = 0; i < count; i++)
        names[i] = in->subscribed_topic_names.items[i];
    view_sort(names, count);
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || !view_equal(names[kept - 1], names[i])) names[kept++] = names[i];
    b->u.said.topics = names;
    b->u.said.topic_count = kept;
    return true;
}

/* Null and -1 mean: as before. Who speaks this protocol does not speak the classic one any more. */
static bool said_take(struct beating *b)
{
    const struct consumer_group_heartbeat_request *in = b->request;
    consumer_update_begin(&b->u);
    if (!in->instance_id.null) b->u.said.instance = in->instance_id;
    if (!in->rack_id.null) b->u.said.rack = in->rack_id;
    if (in->rebalance_timeout_ms != -1) b->u.said.rebalance_ms = in->rebalance_timeout_ms;
    if (!in->server_assignor.null) b->u.said.assignor = in->server_assignor;
    if (!in->subscribed_topic_regex.null) b->u.said.regex = in->subscribed_topic_regex;
    b->u.said.client_id = b->in->client_id.null ? VIEW_EMPTY : b->in->client_id;
    b->u.said.client_host = b->in->client_host;
    b->u.said.classic = false;
    b->u.said.session_ms = 0;
    b->u.said.protocols = NULL;
    b->u.said.protocol_count = 0;
    return names_take(b);
}

static bool assignment_answer(struct beating *b, const struct partition_set *set)
{
    struct step *step = b->u.step;
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

static enum step_result answer(struct beating *b)
{
    const struct consumer_update *u = &b->u;
    if (u->reconciled == CONSUMER_RECONCILE_FENCED)
        return refuse(
            b, KAFKA_FENCED_MEMBER_EPOCH,
            VIEW("The consumer group member must abandon all its partitions and rejoin."));
    b->out->member_id = u->id;
    b->out->member_epoch = u->next.epoch;
    b->out->heartbeat_interval_ms = (int32_t)consumer_group_interval(
        u->groups, u->group_id, VIEW("consumer.heartbeat.interval.ms"),
        &u->groups->consumer_options.heartbeat);
    bool tell =
        is_full_request(b->request) || !partition_set_equal(&u->now.assigned, &u->next.assigned);
    return !tell || assignment_answer(b, &u->next.assigned) ? STEP_DONE : STEP_E_MEMORY;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static struct view group_text(const struct beating *b)
{
    struct arena *arena = b->u.step->arena;
    const struct group *group = groups_find(b->u.groups, b->request->group_id);
    if (group != NULL)
        return group_missing_text(arena, b->request->group_id, group, VIEW("consumer"));
    return JOIN(arena, b->request->member_epoch < 0 ? VIEW("Group ") : VIEW("Consumer group "),
                b->request->group_id, VIEW(" not found."));
}

static enum step_result join_or_beat(struct beating *b)
{
    struct arena *arena = b->u.step->arena;
    enum kafka_error error = group_look_up(b);
    if (error == KAFKA_COORDINATOR_NOT_AVAILABLE) return STEP_E_MEMORY;
    if (error != KAFKA_NONE) return refuse(b, error, group_text(b));
    if (is_full(b))
        return refuse(b, KAFKA_GROUP_MAX_SIZE_REACHED,
                      JOIN(arena, VIEW("The consumer group has reached its maximum capacity of "),
                           join_number(arena, b->u.groups->consumer_options.size_max),
                           VIEW(" members.")));
    if (b->request->member_epoch < 0) return leave(b);
    error = b->request->instance_id.null ? member_dynamic(b) : member_static(b);
    if (error != KAFKA_NONE) return refuse(b, error, member_text(b, error));
    if (!b->in->regex_fault.null)
        return refuse(b, KAFKA_INVALID_REGULAR_EXPRESSION, b->in->regex_fault);
    if (!said_take(b)) return STEP_E_MEMORY;
    enum step_result result = consumer_group_update(&b->u);
    return result == STEP_DONE ? answer(b) : result;
}

static struct view assignors_text(const struct beating *b)
{
    struct arena *arena = b->u.step->arena;
    struct view rest = config_list(b->u.groups->consumer_options.assignors), name;
    struct view all = VIEW_EMPTY;
    while (config_list_next(&rest, &name))
        all = JOIN(arena, all, all.size == 0 ? VIEW_EMPTY : VIEW(", "), name);
    return JOIN(arena, VIEW("ServerAssignor "), b->request->server_assignor,
                VIEW(" is not supported. Supported assignors: "), all, VIEW("."));
}

static bool assignor_served(const struct beating *b)
{
    struct view asked = b->request->server_assignor;
    return asked.null || (assignor_by_name(asked) != NULL &&
                          config_list_has(b->u.groups->consumer_options.assignors, asked));
}

enum step_result consumer_group_heartbeat(struct groups *groups,
                                          struct step *step,
                                          const struct consumer_group_beat *in,
                                          struct consumer_group_heartbeat_response *out)
{
    struct beating b = {
        .u = {.groups = groups,
              .step = step,
              .group_id = in->request->group_id,
              .id = in->request->member_id,
              .contact_ms = in->arrived_ms},
        .in = in,
        .request = in->request,
        .out = out,
    };
    groups_begin(groups, step);
    struct view fault = request_fault(&b);
    if (!fault.null) return refuse(&b, KAFKA_INVALID_REQUEST, fault);
    if (!assignor_served(&b)) return refuse(&b, KAFKA_UNSUPPORTED_ASSIGNOR, assignors_text(&b));
    if (b.u.id.size == 0) b.u.id = group_member_id_make(step, VIEW_NULL);
    if (b.u.id.null || !owned_read(&b)) return STEP_E_MEMORY;
    enum step_result result = join_or_beat(&b);
    if (b.u.upgraded) group_shell_free(&b.shell);
    if (result == STEP_E_MEMORY && step_room(step) == 0)
        return refuse(&b, KAFKA_UNKNOWN_SERVER_ERROR, VIEW("The group is too large."));
    if (result == STEP_DONE && step->record_count == 0) consumer_group_settle(groups);
    return result;
}
