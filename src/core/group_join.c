/* group_join.c - JoinGroup: new members, known ones, static ones that come back.
 */
#include "core/consumer_group_internal.h"

#include "gen/join_group_request.h"
#include "gen/join_group_response.h"

struct joining {
    struct groups *groups;
    struct group *group;
    struct step *step;
    const struct group_join *in;
    const struct join_group_request *request;
    struct group_wait *wait;
};

static enum step_result join_refuse(const struct joining *j, enum kafka_error error, struct view id)
{
    group_join_error(j->groups, j->wait, error, id);
    return STEP_DONE;
}

static int32_t join_rebalance_ms(const struct joining *j)
{
    return j->step->caller.version == 0 ? j->request->session_timeout_ms
                                        : j->request->rebalance_timeout_ms;
}

/* ---- members that are new -------------------------------------------------------------------- */

static enum step_result join_add(const struct joining *j, struct view id)
{
    struct group *group = j->group;
    struct mem *mem = j->groups->mem;
    struct member_names names = {
        .id = id,
        .instance = j->request->group_instance_id,
        .client_id = j->in->client_id.null ? VIEW_EMPTY : j->in->client_id,
        .client_host = j->in->client_host,
    };
    bool first = group->members.count == 0;
    if (first && !group_text_set(mem, &group->protocol_type, j->request->protocol_type))
        return STEP_E_MEMORY;
    struct member_protocols *protocols = group_protocols_new(mem, j->request);
    struct member *member = protocols == NULL ? NULL : member_new(group, &names, protocols);
    if (member == NULL || !group_add(group, member)) {
        if (member != NULL)
            member_free(member);
        else
            group_protocols_free(mem, protocols);
        return STEP_E_MEMORY;
    }
    struct pending_member *pending = group_pending(group, id);
    if (pending != NULL) group_pending_drop(group, pending);
    member->is_new = true;
    member->session_ms = j->request->session_timeout_ms;
    member->rebalance_ms = join_rebalance_ms(j);
    member_park_join(member, j->wait);
    if (group->state == GROUP_PREPARING && group->previous == GROUP_EMPTY)
        group->new_member_added = true;
    group_timer_set(group, &member->session, j->groups->now_ms + GROUP_NEW_MEMBER_MS);
    group_tell_member(member, GROUP_EVENT_JOINED);
    if (group->state == GROUP_PREPARING)
        group_maybe_complete(group, j->step);
    else
        group_prepare(group, j->step);
    return STEP_DONE;
}

/* KIP-394: the id is handed out first, so that a client that does not get the answer leaves no
 * member behind. */
static enum step_result join_hand_out(const struct joining *j, struct view id)
{
    struct group *group = j->group;
    uint32_t size = (uint32_t)sizeof(struct pending_member) + id.size;
    struct pending_member *pending = mem_get(j->groups->mem, size);
    if (pending == NULL) return STEP_E_MEMORY;
    memcpy((uint8_t *)(pending + 1), id.data, id.size);
    pending->by_id.key = view_of((uint8_t *)(pending + 1), id.size);
    pending->group = group;
    pending->size_bytes = size;
    pending->timer.kind = TIMER_PENDING;
    wheel_entry_init(&pending->timer.entry);
    if (!map_insert(&group->pending, &pending->by_id)) {
        mem_put(j->groups->mem, pending, size);
        return STEP_E_MEMORY;
    }
    group_timer_set(group, &pending->timer, j->groups->now_ms + j->request->session_timeout_ms);
    return join_refuse(j, KAFKA_MEMBER_ID_REQUIRED, id);
}

/* ---- static members that come back ----------------------------------------------------------- */

static struct member *replace_make(const struct joining *j,
                                   const struct member *old,
                                   struct view id)
{
    struct mem *mem = j->groups->mem;
    struct member_names names = {
        .id = id,
        .instance = old->instance,
        .client_id = old->client_id,
        .client_host = old->client_host,
    };
    struct member_protocols *protocols = group_protocols_new(mem, j->request);
    struct member *fresh = protocols == NULL ? NULL : member_new(j->group, &names, protocols);
    if (fresh == NULL) {
        group_protocols_free(mem, protocols);
        return NULL;
    }
    if (!group_text_set(mem, &fresh->assignment, old->assignment)) {
        member_free(fresh);
        return NULL;
    }
    fresh->session_ms = j->request->session_timeout_ms;
    fresh->rebalance_ms = join_rebalance_ms(j);
    return fresh;
}

/* `fresh` takes the place of `old`, which is out of the group afterwards but lives. False: no
 * memory, nothing has changed. */
static bool replace_swap(const struct joining *j, struct member *old, struct member *fresh)
{
    struct group *group = j->group;
    struct group_wait *join = old->join, *sync = old->sync;
    bool led = group->leader == old;
    member_park_join(old, NULL);
    old->sync = NULL;
    group_take(group, old);
    if (!group_add(group, fresh)) {
        bool back = group_add(group, old); /* What it needs has just been given back. */
        assert(back);
        if (led) group->leader = old;
        member_park_join(old, join);
        old->sync = sync;
        return false;
    }
    if (led) group->leader = fresh;
    if (join != NULL) group_join_error(j->groups, join, KAFKA_FENCED_INSTANCE_ID, old->id);
    if (sync != NULL) group_sync_error(j->groups, sync, KAFKA_FENCED_INSTANCE_ID);
    return true;
}

/* The group goes on as it is under the new id. From version 9 on a leader is told to skip the
 * assignment; an older one is shown a leader that is not itself, and so asks for what is stored. */
static enum step_result replace_in_place(const struct joining *j, struct member *fresh, bool led)
{
    struct view leader = j->groups->decision.old->id;
    bool skips = j->wait->version >= 9;
    if (!group_record_put(j->group, j->step, NULL)) {
        groups_failed(j->groups, j->step, KAFKA_COORDINATOR_NOT_AVAILABLE);
        return STEP_E_MEMORY;
    }
    group_join_current(fresh, j->wait, skips && led);
    if (skips)
        j->wait->join->skip_assignment = led && j->wait->join->error_code == KAFKA_NONE;
    else if (led)
        j->wait->join->leader = arena_copy(j->wait->arena, leader);
    return STEP_DONE;
}

static enum step_result join_replace(const struct joining *j, struct member *old, struct view id)
{
    struct group *group = j->group;
    int32_t session_ms = old->session_ms;
    bool led = group->leader == old;
    struct member *fresh = replace_make(j, old, id);
    if (fresh == NULL) return STEP_E_MEMORY;
    if (!replace_swap(j, old, fresh)) {
        member_free(fresh);
        return STEP_E_MEMORY;
    }
    group_timer_set(group, &fresh->session, j->groups->now_ms + session_ms);
    group_tell_member(old, GROUP_EVENT_REPLACED);
    group_tell_member(fresh, GROUP_EVENT_TAKES_OVER);
    if (group->state == GROUP_STABLE && view_equal(group_choose(group), group->protocol)) {
        j->groups->decision = (struct group_decision){
            .kind = DECISION_REPLACED,
            .group = group,
            .wait = j->wait,
            .old = old,
            .fresh = fresh,
            .old_led = led,
        };
        return replace_in_place(j, fresh, led);
    }
    member_free(old);
    member_park_join(fresh, j->wait);
    if (group->state == GROUP_PREPARING)
        group_maybe_complete(group, j->step);
    else
        group_prepare(group, j->step);
    return STEP_DONE;
}

static enum step_result join_unknown(const struct joining *j)
{
    struct view instance = j->request->group_instance_id;
    if (!group_supports(j->group, j->request))
        return join_refuse(j, KAFKA_INCONSISTENT_GROUP_PROTOCOL, VIEW_EMPTY);
    struct view id = group_member_id_make(j->step, !instance.null          ? instance
                                                   : j->in->client_id.null ? VIEW_EMPTY
                                                                           : j->in->client_id);
    if (id.null) return STEP_E_MEMORY;
    if (instance.null) return j->step->caller.version >= 4 ? join_hand_out(j, id) : join_add(j, id);
    struct member *owner = group_static_member(j->group, instance);
    return owner == NULL ? join_add(j, id) : join_replace(j, owner, id);
}

/* ---- members that are known ------------------------------------------------------------------ */

static enum step_result join_again(const struct joining *j, struct member *member)
{
    struct member_protocols *protocols = group_protocols_new(j->groups->mem, j->request);
    if (protocols == NULL || !member_use_protocols(member, protocols)) {
        group_protocols_free(j->groups->mem, protocols);
        return STEP_E_MEMORY;
    }
    member->session_ms = j->request->session_timeout_ms;
    member->rebalance_ms = join_rebalance_ms(j);
    member_park_join(member, j->wait);
    if (j->group->state == GROUP_PREPARING)
        group_maybe_complete(j->group, j->step);
    else
        group_prepare(j->group, j->step);
    return STEP_DONE;
}

static enum step_result join_known(const struct joining *j)
{
    struct group *group = j->group;
    struct view id = j->request->member_id;
    if (!group_supports(group, j->request))
        return join_refuse(j, KAFKA_INCONSISTENT_GROUP_PROTOCOL, id);
    if (group_pending(group, id) != NULL) {
        if (!j->request->group_instance_id.null)
            return join_refuse(j, KAFKA_UNKNOWN_SERVER_ERROR, id);
        return join_add(j, id);
    }
    struct member *member;
    enum kafka_error error = group_validate(group, id, j->request->group_instance_id, &member);
    if (error != KAFKA_NONE) return join_refuse(j, error, id);
    bool same = group_protocols_equal(member->protocols, j->request);
    bool leads = group->leader == member;
    if (same && group->state == GROUP_COMPLETING)
        group_join_current(member, j->wait, leads);
    else if (same && group->state == GROUP_STABLE && !leads)
        group_join_current(member, j->wait, false);
    else
        return join_again(j, member);
    return STEP_DONE;
}

/* ---- the request ----------------------------------------------------------------------------- */

static bool join_accepts(const struct joining *j)
{
    const struct group *group = j->group;
    uint32_t max = j->groups->options.size_max;
    const struct member *member = group_member_by_id(group, j->request->member_id);
    if (group->state == GROUP_EMPTY) return true;
    if (group->state == GROUP_PREPARING)
        return (member != NULL && member->join != NULL) || group->joins < max;
    return member != NULL || group->members.count < max;
}

static enum step_result join_too_many(const struct joining *j)
{
    struct member *member = group_member_by_id(j->group, j->request->member_id);
    struct pending_member *pending = group_pending(j->group, j->request->member_id);
    if (member != NULL) group_remove(j->group, member, GROUP_EVENT_TOO_MANY);
    if (pending != NULL) group_pending_drop(j->group, pending);
    return join_refuse(j, KAFKA_GROUP_MAX_SIZE_REACHED, VIEW_EMPTY);
}

/* The first member of a group that does not exist: a record says that it does. */
static enum step_result join_create(struct joining *j)
{
    if (j->request->protocol_type.size == 0 || j->request->protocols.count <= 0 ||
        j->request->protocols.count > GROUP_PROTOCOLS_MAX)
        return join_refuse(j, KAFKA_INCONSISTENT_GROUP_PROTOCOL, VIEW_EMPTY);
    j->group = group_new(j->groups, j->request->group_id);
    if (j->group == NULL) return STEP_E_MEMORY;
    enum step_result result =
        group_record_put(j->group, j->step, NULL) ? join_unknown(j) : STEP_E_MEMORY;
    if (result != STEP_DONE) {
        group_free(j->group);
        return result;
    }
    j->groups->decision = (struct group_decision){
        .kind = DECISION_CREATED,
        .group = j->group,
        .wait = j->wait,
    };
    return STEP_DONE;
}

enum step_result group_join(struct groups *groups,
                            struct step *step,
                            const struct group_join *in,
                            struct group_wait *wait)
{
    struct joining j = {
        .groups = groups,
        .step = step,
        .in = in,
        .request = in->request,
        .wait = wait,
        .group = groups_find(groups, in->request->group_id),
    };
    struct view id = in->request->member_id;
    groups_begin(groups, step);
    list_init(&wait->link);
    if (in->request->group_id.null || in->request->group_id.size == 0)
        return join_refuse(&j, KAFKA_INVALID_GROUP_ID, id);
    if (in->request->session_timeout_ms < groups->options.session_min_ms ||
        in->request->session_timeout_ms > groups->options.session_max_ms)
        return join_refuse(&j, KAFKA_INVALID_SESSION_TIMEOUT, id);
    if (j.group == NULL)
        return id.size > 0 ? join_refuse(&j, KAFKA_UNKNOWN_MEMBER_ID, id) : join_create(&j);
    if (j.group->state == GROUP_DEAD) return join_refuse(&j, KAFKA_COORDINATOR_NOT_AVAILABLE, id);
    if (j.group->consumer != NULL) return consumer_group_classic_join(j.group, step, in, wait);
    if (!join_accepts(&j)) return join_too_many(&j);
    return id.size == 0 ? join_unknown(&j) : join_known(&j);
}
