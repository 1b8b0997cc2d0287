/* group_rebalance.c - the rebalance of a classic group, and the answers that end its phases.
 *
 * prepare: members are asked to join; complete: those who did get a generation, and the leader the
 * list of all. Timers: `join` ends the first phase, `sync` removes who did not ask for its
 * assignment, a session removes who is silent. */
#include "core/group_internal.h"

#include "gen/join_group_response.h"
#include "gen/sync_group_response.h"

/* ---- answers --------------------------------------------------------------------------------- */

static void join_fill_error(struct group_wait *wait, enum kafka_error error, struct view id)
{
    struct join_group_response *out = wait->join;
    wire_defaults(&wire_join_group_response, out);
    out->error_code = (int16_t)error;
    out->generation_id = -1;
    out->protocol_type = VIEW_NULL;
    out->protocol_name = wait->version >= 7 ? VIEW_NULL : VIEW_EMPTY;
    out->leader = VIEW_EMPTY;
    out->member_id = arena_copy(wait->arena, id);
    if (out->member_id.null) out->member_id = VIEW_EMPTY;
}

void group_answered(struct groups *groups, struct group_wait *wait)
{
    /* Already there: its answer was put together anew. */
    if (list_empty(&wait->link)) list_append(&groups->answers, &wait->link);
}

void group_join_error(struct groups *groups,
                      struct group_wait *wait,
                      enum kafka_error error,
                      struct view id)
{
    join_fill_error(wait, error, id);
    group_answered(groups, wait);
}

static bool join_members(const struct group *group, struct group_wait *wait)
{
    struct join_group_response *out = wait->join;
    out->members.items = arena_get(wait->arena, group->members.count * sizeof(*out->members.items));
    if (out->members.items == NULL) return false;
    list_foreach (link, &group->member_list) {
        const struct member *member = container_of(link, struct member, link);
        struct join_group_response_join_group_response_member *item =
            &out->members.items[out->members.count++];
        struct view metadata = group_protocols_metadata(member->protocols, group->protocol);
        wire_struct_defaults(&wire_join_group_response_join_group_response_member_shape, item);
        item->member_id = arena_copy(wait->arena, member->id);
        item->group_instance_id = arena_copy(wait->arena, member->instance);
        item->metadata = metadata.null ? VIEW_EMPTY : arena_copy(wait->arena, metadata);
    }
    return !wait->arena->failed;
}

void group_join_current(struct member *member, struct group_wait *wait, bool with_members)
{
    struct group *group = member->group;
    struct join_group_response *out = wait->join;
    wire_defaults(&wire_join_group_response, out);
    out->generation_id = group->generation;
    out->protocol_type = arena_copy(wait->arena, group->protocol_type);
    out->protocol_name = arena_copy(wait->arena, group->protocol);
    if (out->protocol_name.null && wait->version < 7) out->protocol_name = VIEW_EMPTY;
    out->leader = group->leader == NULL ? VIEW_EMPTY : arena_copy(wait->arena, group->leader->id);
    out->member_id = arena_copy(wait->arena, member->id);
    bool made = !with_members || join_members(group, wait);
    if (!made || wait->arena->failed)
        group_join_error(group->groups, wait, KAFKA_COORDINATOR_NOT_AVAILABLE, member->id);
    else
        group_answered(group->groups, wait);
}

void group_sync_error(struct groups *groups, struct group_wait *wait, enum kafka_error error)
{
    wire_defaults(&wire_sync_group_response, wait->sync);
    wait->sync->error_code = (int16_t)error;
    wait->sync->protocol_type = wait->sync->protocol_name = VIEW_NULL;
    wait->sync->assignment = VIEW_EMPTY;
    group_answered(groups, wait);
}

void group_sync_assigned(struct member *member, struct group_wait *wait)
{
    struct group *group = member->group;
    struct sync_group_response *out = wait->sync;
    wire_defaults(&wire_sync_group_response, out);
    out->protocol_type = arena_copy(wait->arena, group->protocol_type);
    out->protocol_name = arena_copy(wait->arena, group->protocol);
    out->assignment = arena_copy(wait->arena, member->assignment);
    if (out->assignment.null) out->assignment = VIEW_EMPTY;
    if (wait->arena->failed)
        group_sync_error(group->groups, wait, KAFKA_COORDINATOR_NOT_AVAILABLE);
    else
        group_answered(group->groups, wait);
}

/* ---- prepare --------------------------------------------------------------------------------- */

/* The generation that was about to begin does not: who waits for its assignment is to join anew. */
static void syncs_give_up(struct group *group)
{
    list_foreach (link, &group->member_list) {
        struct member *member = container_of(link, struct member, link);
        group_text_free(group->groups->mem, &member->assignment);
        if (member->sync == NULL) continue;
        group_sync_error(group->groups, member->sync, KAFKA_REBALANCE_IN_PROGRESS);
        member->sync = NULL;
        group_touch(member);
    }
}

static void join_timer_begin(struct group *group)
{
    group->initial_delay_ms = -1;
    group_timer_set(group, &group->join_timer, group->groups->now_ms + group_rebalance_ms(group));
}

void group_prepare(struct group *group, struct step *step)
{
    bool initial = group->state == GROUP_EMPTY;
    if (group->state == GROUP_COMPLETING) syncs_give_up(group);
    list_foreach (link, &group->member_list)
        container_of(link, struct member, link)->sync_pending = false;
    group->syncs_pending = 0;
    group_timer_cancel(group, &group->sync_timer);
    if (initial) {
        int64_t delay_ms = group->groups->options.initial_delay_ms;
        group->initial_delay_ms = delay_ms;
        group->initial_left_ms = MAX(group_rebalance_ms(group) - delay_ms, 0);
        group->new_member_added = false;
        group_timer_set(group, &group->join_timer, group->groups->now_ms + delay_ms);
    }
    group_move(group, GROUP_PREPARING);
    if (initial) return;
    if (group_all_joined(group))
        group_complete_join(group, step);
    else
        join_timer_begin(group);
}

void group_maybe_complete(struct group *group, struct step *step)
{
    if (group->state != GROUP_PREPARING || group->previous == GROUP_EMPTY) return;
    if (group_all_joined(group)) group_complete_join(group, step);
}

/* The initial delay is there so that members that start together are one rebalance: each newcomer
 * extends it, up to the rebalance timeout. */
void group_join_timer(struct group *group, struct step *step)
{
    int64_t delay_ms = group->initial_delay_ms;
    if (group->state != GROUP_PREPARING) return;
    if (delay_ms < 0 || !group->new_member_added || group->initial_left_ms == 0) {
        group_complete_join(group, step);
        return;
    }
    group->new_member_added = false;
    int64_t next_ms = MIN(group->groups->options.initial_delay_ms, group->initial_left_ms);
    group->initial_left_ms = MAX(group->initial_left_ms - delay_ms, 0);
    group->initial_delay_ms = next_ms;
    group_timer_set(group, &group->join_timer, group->groups->now_ms + next_ms);
}

/* ---- complete -------------------------------------------------------------------------------- */

static bool leader_elect(struct group *group)
{
    if (group->leader != NULL && group->leader->join != NULL) return true;
    list_foreach (link, &group->member_list) {
        struct member *member = container_of(link, struct member, link);
        if (member->join == NULL) continue;
        group->leader = member;
        return true;
    }
    return group->members.count == 0;
}

static void generation_next(struct group *group)
{
    group->generation = group->generation == INT32_MAX ? 1 : group->generation + 1;
}

static void group_become_empty(struct group *group, struct step *step)
{
    generation_next(group);
    group_text_free(group->groups->mem, &group->protocol);
    group->leader = NULL;
    group_move(group, GROUP_EMPTY);
    /* That it is empty can be seen from its members' silence too: no memory for the record is no
     * reason to stay. */
    bool put = step_room(step) > 0 && group_record_put(group, step, NULL);
    (void)put;
}

/* Their joins are answered: the generation runs. */
static void generation_begin(struct group *group)
{
    generation_next(group);
    group_move(group, GROUP_COMPLETING);
    list_foreach (link, &group->member_list) {
        struct member *member = container_of(link, struct member, link);
        struct group_wait *wait = member->join;
        member->is_new = false;
        if (!member->sync_pending) group->syncs_pending++;
        member->sync_pending = true;
        if (wait != NULL) {
            member_park_join(member, NULL);
            group_join_current(member, wait, member == group->leader);
        }
        group_timer_set(group, &member->session, group->groups->now_ms + member->session_ms);
    }
    group->sync_generation = group->generation;
    group_timer_set(group, &group->sync_timer, group->groups->now_ms + group_rebalance_ms(group));
}

void group_complete_join(struct group *group, struct step *step)
{
    assert(group->state == GROUP_PREPARING);
    group_timer_cancel(group, &group->join_timer);
    list_foreach (link, &group->member_list) {
        struct member *member = container_of(link, struct member, link);
        if (member->join == NULL && member->instance.null)
            group_remove(group, member, GROUP_EVENT_NOT_JOINED);
    }
    if (!leader_elect(group)) {
        join_timer_begin(group); /* Only static members, and none of them is here. */
        return;
    }
    if (group->members.count == 0) {
        group_become_empty(group, step);
        return;
    }
    if (!group_text_set(group->groups->mem, &group->protocol, group_choose(group))) {
        join_timer_begin(group); /* No memory: members wait for one more round. */
        return;
    }
    generation_begin(group);
}

/* ---- members that stay away ------------------------------------------------------------------ */

void group_sync_timer(struct group *group, struct step *step)
{
    bool awaited = group->state == GROUP_COMPLETING || group->state == GROUP_STABLE;
    if (!awaited || group->sync_generation != group->generation) return;
    if (group->syncs_pending == 0) return;
    list_foreach (link, &group->member_list) {
        struct member *member = container_of(link, struct member, link);
        if (member->sync_pending) group_remove(group, member, GROUP_EVENT_NOT_SYNCED);
    }
    group_prepare(group, step);
}

void group_pending_timer(struct pending_member *pending, struct step *step)
{
    struct group *group = pending->group;
    group_pending_drop(group, pending);
    if (group->state == GROUP_PREPARING && group_all_joined(group))
        group_complete_join(group, step);
}

void group_session_timer(struct member *member, struct step *step)
{
    struct group *group = member->group;
    if (!member->is_new && (member->join != NULL || member->sync != NULL))
        return; /* It waits for us: the timer runs again with the answer. */
    group_remove(group, member, GROUP_EVENT_SILENT);
    if (group->state == GROUP_STABLE || group->state == GROUP_COMPLETING)
        group_prepare(group, step);
    else if (group->state == GROUP_PREPARING && group_all_joined(group))
        group_complete_join(group, step);
}
