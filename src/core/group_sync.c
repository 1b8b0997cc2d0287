/* group_sync.c - SyncGroup and LeaveGroup: members get their assignment, members go. */
#include "core/consumer_group_internal.h"

#include "gen/leave_group_request.h"
#include "gen/leave_group_response.h"
#include "gen/sync_group_request.h"
#include "gen/sync_group_response.h"

/* ---- SyncGroup ------------------------------------------------------------------------------- */

/* NONE: `*member` is who asks. */
static enum kafka_error sync_check(const struct group *group,
                                   const struct sync_group_request *in,
                                   struct member **member)
{
    if (in->group_id.null || in->group_id.size == 0) return KAFKA_INVALID_GROUP_ID;
    if (group == NULL) return KAFKA_UNKNOWN_MEMBER_ID;
    if (group->state == GROUP_DEAD) return KAFKA_COORDINATOR_NOT_AVAILABLE;
    enum kafka_error error = group_validate(group, in->member_id, in->group_instance_id, member);
    if (error != KAFKA_NONE) return error;
    if (in->generation_id != group->generation) return KAFKA_ILLEGAL_GENERATION;
    if (!in->protocol_type.null && !view_equal(in->protocol_type, group->protocol_type))
        return KAFKA_INCONSISTENT_GROUP_PROTOCOL;
    if (!in->protocol_name.null && !view_equal(in->protocol_name, group->protocol))
        return KAFKA_INCONSISTENT_GROUP_PROTOCOL;
    return group->state == GROUP_PREPARING ? KAFKA_REBALANCE_IN_PROGRESS : KAFKA_NONE;
}

enum step_result group_sync(struct groups *groups,
                            struct step *step,
                            const struct sync_group_request *in,
                            struct group_wait *wait)
{
    struct group *group = groups_find(groups, in->group_id);
    groups_begin(groups, step);
    list_init(&wait->link);
    if (group != NULL && group->consumer != NULL && group->state != GROUP_DEAD) {
        consumer_group_classic_sync(group, in, wait);
        return STEP_DONE;
    }
    struct member *member;
    enum kafka_error error = sync_check(group, in, &member);
    if (error != KAFKA_NONE) {
        group_sync_error(groups, wait, error);
        return STEP_DONE;
    }
    assert(group->state == GROUP_COMPLETING || group->state == GROUP_STABLE);
    if (group->state == GROUP_STABLE) {
        member_sync_came(member);
        group_sync_assigned(member, wait);
        return STEP_DONE;
    }
    if (group->leader == member) {
        if (!group_record_put(group, step, in)) return STEP_E_MEMORY;
        groups->decision = (struct group_decision){.kind = DECISION_SYNC, .group = group};
    }
    member_sync_came(member);
    if (member->sync != NULL)
        group_sync_error(groups, member->sync,
                         KAFKA_REBALANCE_IN_PROGRESS); /* Its connection is gone. */
    member->sync = wait;
    return STEP_DONE;
}

/* ---- LeaveGroup ------------------------------------------------------------------------------ */

static enum kafka_error leave_one(struct group *group, struct view id, struct view instance)
{
    struct pending_member *pending = group_pending(group, id);
    if (id.size == 0) {
        struct member *owner = instance.null ? NULL : group_static_member(group, instance);
        if (owner == NULL) return KAFKA_UNKNOWN_MEMBER_ID;
        group_remove(group, owner, GROUP_EVENT_LEFT);
        return KAFKA_NONE;
    }
    if (pending != NULL) {
        group_pending_drop(group, pending);
        return KAFKA_NONE;
    }
    struct member *member;
    enum kafka_error error = group_validate(group, id, instance, &member);
    if (error == KAFKA_NONE) group_remove(group, member, GROUP_EVENT_LEFT);
    return error;
}

static void leave_end(struct group *group, struct step *step)
{
    if (group->state == GROUP_STABLE || group->state == GROUP_COMPLETING)
        group_prepare(group, step);
    else
        group_maybe_complete(group, step);
}

/* Versions below 3 name one member, the others a list. */
static bool leave_answers(struct step *step,
                          const struct leave_group_request *in,
                          struct leave_group_response *out)
{
    int32_t count = step->caller.version < 3 ? 1 : MAX(in->members.count, 0);
    if (count == 0) return true;
    out->members.items = step_get(step, (size_t)count * sizeof(*out->members.items));
    if (out->members.items == NULL) return false;
    out->members.count = count;
    for (int32_t i = 0; i < count; i++) {
        bool one = step->caller.version < 3;
        wire_struct_defaults(&wire_leave_group_response_member_response_shape,
                             &out->members.items[i]);
        out->members.items[i].member_id = one ? in->member_id : in->members.items[i].member_id;
        out->members.items[i].group_instance_id =
            one ? VIEW_NULL : in->members.items[i].group_instance_id;
        out->members.items[i].error_code = KAFKA_UNKNOWN_MEMBER_ID;
    }
    return true;
}

enum step_result group_leave(struct groups *groups,
                             struct step *step,
                             const struct leave_group_request *in,
                             struct leave_group_response *out)
{
    struct group *group = groups_find(groups, in->group_id);
    bool left = false;
    groups_begin(groups, step);
    if (in->group_id.null || in->group_id.size == 0)
        out->error_code = KAFKA_INVALID_GROUP_ID;
    else if (group != NULL && group->state == GROUP_DEAD)
        out->error_code = KAFKA_COORDINATOR_NOT_AVAILABLE;
    if (out->error_code != KAFKA_NONE) return STEP_DONE;
    if (!leave_answers(step, in, out)) return STEP_E_MEMORY;
    enum step_result result = STEP_DONE;
    if (group != NULL && group->consumer != NULL)
        result = consumer_group_classic_leave(group, step, out);
    for (int32_t i = 0; group != NULL && group->consumer == NULL && i < out->members.count; i++) {
        struct leave_group_response_member_response *item = &out->members.items[i];
        item->error_code = (int16_t)leave_one(group, item->member_id, item->group_instance_id);
        left = left || item->error_code == KAFKA_NONE;
    }
    if (left) leave_end(group, step);
    if (step->caller.version < 3) {
        out->error_code = out->members.items[0].error_code;
        out->members.count = 0;
    }
    return result;
}
