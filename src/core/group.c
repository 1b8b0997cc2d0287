/* group.c - see group.h: groups by id, states, timers, the heartbeat. */
#include "core/consumer_group_internal.h"
#include "core/join.h"

#include "gen/describe_groups_response.h"

/* To which states a group may go, by the state it is in. */
static const uint8_t group_moves[] = {
    [GROUP_EMPTY] = 1u << GROUP_PREPARING | 1u << GROUP_DEAD,
    [GROUP_PREPARING] = 1u << GROUP_COMPLETING | 1u << GROUP_EMPTY | 1u << GROUP_DEAD,
    [GROUP_COMPLETING] = 1u << GROUP_PREPARING | 1u << GROUP_STABLE | 1u << GROUP_DEAD,
    [GROUP_STABLE] = 1u << GROUP_PREPARING | 1u << GROUP_DEAD,
    [GROUP_DEAD] = 1u << GROUP_DEAD,
};

static void group_check(const struct group *group)
{
    assert(group->joins <= group->members.count);
    assert(group->syncs_pending <= group->members.count);
    assert(group->instances.count <= group->members.count);
    assert(group->state != GROUP_EMPTY || group->members.count == 0);
    assert(group->leader == NULL || group->leader->group == group);
}

void group_move(struct group *group, enum group_state state)
{
    assert(group_moves[group->state] & (1u << state));
    group->previous = group->state;
    group->state = state;
    group->state_wall_ms = group->groups->wall_ms;
    group_tell_state(group);
    if (state != GROUP_DEAD) group_check(group);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct groups *groups_new(struct mem *mem,
                          const struct group_options *options,
                          uint64_t seed,
                          int64_t now_ms)
{
    struct groups *groups = mem_get(mem, sizeof(*groups));
    if (groups == NULL) return NULL;
    groups->mem = mem;
    groups->options = *options;
    groups->seed = seed;
    groups->topics_version = 1; /* Nobody has looked yet. */
    groups->now_ms = now_ms;
    groups->loaded_wall_ms = -1;
    map_init(&groups->by_id, mem, seed);
    list_init(&groups->all);
    list_init(&groups->answers);
    list_init(&groups->pending_offsets);
    map_init(&groups->pending_by_partition, mem, seed);
    map_init(&groups->pending_by_producer, mem, seed);
    wheel_init(&groups->wheel, now_ms);
    return groups;
}

void group_waits_end(struct group *group, enum kafka_error error)
{
    struct groups *groups = group->groups;
    list_foreach (at, &group->member_list) {
        struct member *member = container_of(at, struct member, link);
        if (member->join != NULL) group_join_error(groups, member->join, error, member->id);
        if (member->sync != NULL) group_sync_error(groups, member->sync, error);
        group->joins -= member->join != NULL;
        member->join = NULL;
        member->sync = NULL;
    }
}

void groups_unload(struct groups *groups, enum kafka_error error)
{
    list_foreach (link, &groups->all) {
        struct group *group = container_of(link, struct group, link);
        group_waits_end(group, error);
        if (group->consumer != NULL) consumer_group_unload(group);
        group_move(group, GROUP_DEAD);
    }
}

struct groups *groups_free(struct groups *groups)
{
    if (groups == NULL) return NULL;
    assert(list_empty(&groups->answers));
    list_foreach (link, &groups->all)
        group_free(container_of(link, struct group, link));
    offsets_pending_free(groups);
    map_free(&groups->by_id);
    return mem_put(groups->mem, groups, sizeof(*groups));
}

struct group_wait *groups_answer(struct groups *groups)
{
    struct list *link = list_pop(&groups->answers);
    return link == NULL ? NULL : container_of(link, struct group_wait, link);
}

void groups_begin(struct groups *groups, const struct step *step)
{
    groups->now_ms = step->now_ms;
    groups->wall_ms = step->wall_ms;
    groups->decision = (struct group_decision){.kind = DECISION_NONE};
    groups->settle.set = false;
}

uint32_t groups_count(const struct groups *groups)
{
    return groups->by_id.count;
}

/* ---- groups ---------------------------------------------------------------------------------- */

struct group *groups_find(const struct groups *groups, struct view id)
{
    struct map_node *node = map_find(&groups->by_id, id);
    return node == NULL ? NULL : container_of(node, struct group, by_id);
}

static void timer_init(struct group_timer *timer, enum group_timer_kind kind)
{
    wheel_entry_init(&timer->entry);
    timer->kind = (uint8_t)kind;
}

void group_shell(struct group *group, struct groups *groups, struct view id)
{
    *group = (struct group){.groups = groups, .id = id};
    group->state = GROUP_EMPTY;
    group->previous = GROUP_DEAD;
    group->state_wall_ms = groups->wall_ms;
    group->protocol_type = group->protocol = VIEW_NULL;
    map_init(&group->members, groups->mem, groups->seed);
    map_init(&group->instances, groups->mem, groups->seed);
    map_init(&group->pending, groups->mem, groups->seed);
    map_init(&group->offsets, groups->mem, groups->seed);
    map_init(&group->topics, groups->mem, groups->seed);
    list_init(&group->member_list);
    list_init(&group->votes);
    list_init(&group->topic_list);
    timer_init(&group->join_timer, TIMER_JOIN);
    timer_init(&group->sync_timer, TIMER_SYNC);
}

struct group *group_new(struct groups *groups, struct view id)
{
    uint32_t size = (uint32_t)sizeof(struct group) + id.size;
    struct group *group = mem_get(groups->mem, size);
    if (group == NULL) return NULL;
    if (id.size > 0) memcpy((uint8_t *)group + sizeof(*group), id.data, id.size);
    group_shell(group, groups, view_of((uint8_t *)group + sizeof(*group), id.size));
    group->size_bytes = size;
    group->by_id.key = group->id;
    if (!map_insert(&groups->by_id, &group->by_id)) return mem_put(groups->mem, group, size);
    list_append(&groups->all, &group->link);
    return group;
}

/* All but the offsets. */
static void group_clear(struct group *group)
{
    struct groups *groups = group->groups;
    consumer_group_free(group);
    list_foreach (link, &group->member_list) {
        struct member *member = container_of(link, struct member, link);
        assert(member->join == NULL);
        assert(member->sync == NULL);
        group_take(group, member);
        member_free(member);
    }
    for (struct map_node *node; (node = map_next(&group->pending, NULL)) != NULL;)
        group_pending_drop(group, container_of(node, struct pending_member, by_id));
    group_timer_cancel(group, &group->join_timer);
    group_timer_cancel(group, &group->sync_timer);
    group_text_free(groups->mem, &group->protocol_type);
    group_text_free(groups->mem, &group->protocol);
}

void group_shell_free(struct group *group)
{
    group_clear(group);
    offsets_free(group);
    group_story_free(group);
    map_free(&group->members);
    map_free(&group->instances);
    map_free(&group->pending);
    map_free(&group->offsets);
    map_free(&group->topics);
}

void group_free(struct group *group)
{
    struct groups *groups = group->groups;
    group_shell_free(group);
    map_remove(&groups->by_id, &group->by_id);
    list_remove(&group->link);
    mem_put(groups->mem, group, group->size_bytes);
}

void group_forget(struct group *group)
{
    const struct consumer_settle *settle = &group->groups->settle;
    /* The step's next records make it one of the other kind: it goes on, with what it remembers. */
    bool changes = settle->set && (settle->upgraded || settle->downgraded) &&
                   view_equal(settle->group, group->id);
    if (group->offsets.count == 0 && !changes) {
        group_free(group);
        return;
    }
    group_clear(group);
    assert(group->members.count == 0);
    group->state = GROUP_EMPTY;
    group->previous = GROUP_DEAD;
    group->generation = 0;
    group->leader = NULL;
}

struct view group_missing_text(struct arena *arena,
                               struct view id,
                               const struct group *group,
                               struct view kind)
{
    if (group == NULL) return JOIN(arena, VIEW("Group "), id, VIEW(" not found."));
    return JOIN(arena, VIEW("Group "), id, VIEW(" is not a "), kind, VIEW(" group."));
}

struct member *group_member_by_id(const struct group *group, struct view id)
{
    struct map_node *node = map_find(&group->members, id);
    return node == NULL ? NULL : container_of(node, struct member, by_id);
}

struct member *group_static_member(const struct group *group, struct view instance)
{
    struct map_node *node = map_find(&group->instances, instance);
    return node == NULL ? NULL : container_of(node, struct member, by_instance);
}

struct pending_member *group_pending(const struct group *group, struct view id)
{
    struct map_node *node = map_find(&group->pending, id);
    return node == NULL ? NULL : container_of(node, struct pending_member, by_id);
}

/* Fencing first (KIP-345), then the member. */
enum kafka_error group_validate(const struct group *group,
                                struct view member,
                                struct view instance,
                                struct member **out)
{
    struct member *found =
        instance.null ? group_member_by_id(group, member) : group_static_member(group, instance);
    if (found == NULL) return KAFKA_UNKNOWN_MEMBER_ID;
    if (!instance.null && !view_equal(found->id, member)) return KAFKA_FENCED_INSTANCE_ID;
    *out = found;
    return KAFKA_NONE;
}

bool group_text_set(struct mem *mem, struct view *text, struct view to)
{
    struct view made = to;
    if (!to.null && to.size > 0) {
        uint8_t *bytes = mem_get(mem, to.size);
        if (bytes == NULL) return false;
        memcpy(bytes, to.data, to.size);
        made = view_of(bytes, to.size);
    } else if (!to.null) {
        made = VIEW_EMPTY;
    }
    group_text_free(mem, text);
    *text = made;
    return true;
}

void group_text_free(struct mem *mem, struct view *text)
{
    if (!text->null && text->size > 0) mem_put(mem, (void *)(uintptr_t)text->data, text->size);
    *text = VIEW_NULL;
}

bool group_is_consumer(const struct groups *groups, struct view id)
{
    const struct group *group = groups_find(groups, id);
    return group != NULL && group->consumer != NULL;
}

/* ---- heartbeat ------------------------------------------------------------------------------- */

/* The session runs from this contact on. Lazy: usually only the deadline moves. */
static void member_contact(struct member *member, int64_t at_ms)
{
    wheel_defer(&member->group->groups->wheel, &member->session.entry, at_ms + member->session_ms);
}

void group_touch(struct member *member)
{
    member_contact(member, member->group->groups->now_ms);
}

enum kafka_error group_heartbeat(struct groups *groups, const struct group_beat *beat)
{
    struct group *group = groups_find(groups, beat->group_id);
    if (group == NULL) return KAFKA_UNKNOWN_MEMBER_ID;
    if (group->state == GROUP_DEAD) return KAFKA_COORDINATOR_NOT_AVAILABLE;
    if (group->consumer != NULL) return consumer_group_classic_beat(group, beat);
    group_check(group);
    struct member *member;
    enum kafka_error error = group_validate(group, beat->member_id, beat->instance_id, &member);
    if (error != KAFKA_NONE) return error;
    if (beat->generation != group->generation) return KAFKA_ILLEGAL_GENERATION;
    member_contact(member, beat->arrived_ms);
    return group->state == GROUP_PREPARING ? KAFKA_REBALANCE_IN_PROGRESS : KAFKA_NONE;
}

/* ---- time ------------------------------------------------------------------------------------ */

void group_timer_set(struct group *group, struct group_timer *timer, int64_t at_ms)
{
    wheel_set(&group->groups->wheel, &timer->entry, at_ms);
}

void group_timer_cancel(struct group *group, struct group_timer *timer)
{
    wheel_cancel(&group->groups->wheel, &timer->entry);
}

int64_t groups_deadline(struct groups *groups)
{
    return wheel_next_ms(&groups->wheel);
}

bool groups_tick(struct groups *groups, struct step *step)
{
    struct wheel_entry *entry = wheel_expired(&groups->wheel, step->horizon_ms);
    if (entry == NULL) return false;
    groups_begin(groups, step);
    struct group_timer *timer = container_of(entry, struct group_timer, entry);
    switch ((enum group_timer_kind)timer->kind) {
    case TIMER_SESSION:
        group_session_timer(container_of(timer, struct member, session), step);
        break;
    case TIMER_PENDING:
        group_pending_timer(container_of(timer, struct pending_member, timer), step);
        break;
    case TIMER_JOIN: group_join_timer(container_of(timer, struct group, join_timer), step); break;
    case TIMER_SYNC: group_sync_timer(container_of(timer, struct group, sync_timer), step); break;
    case TIMER_CONSUMER_SESSION:
        consumer_group_timer(container_of(timer, struct consumer_member, session),
                             TIMER_CONSUMER_SESSION, step);
        break;
    case TIMER_CONSUMER_REBALANCE:
        consumer_group_timer(container_of(timer, struct consumer_member, rebalance),
                             TIMER_CONSUMER_REBALANCE, step);
        break;
    case TIMER_CONSUMER_JOIN:
        consumer_group_timer(container_of(timer, struct consumer_member, join), TIMER_CONSUMER_JOIN,
                             step);
        break;
    case TIMER_CONSUMER_SYNC:
        consumer_group_timer(container_of(timer, struct consumer_member, sync), TIMER_CONSUMER_SYNC,
                             step);
        break;
    }
    return true;
}

/* ---- looking --------------------------------------------------------------------------------- */

struct view group_state_view(const struct group *group)
{
    if (group->consumer != NULL) return consumer_group_state(group->consumer);
    switch (group->state) {
    case GROUP_EMPTY: return VIEW("Empty");
    case GROUP_PREPARING: return VIEW("PreparingRebalance");
    case GROUP_COMPLETING: return VIEW("CompletingRebalance");
    case GROUP_STABLE: return VIEW("Stable");
    default: return VIEW("Dead");
    }
}

static struct view or_empty(struct view text)
{
    return text.null ? VIEW_EMPTY : text;
}

static void describe_member(const struct member *member,
                            struct arena *arena,
                            struct describe_groups_response_described_group_member *out)
{
    const struct group *group = member->group;
    wire_struct_defaults(&wire_describe_groups_response_described_group_member_shape, out);
    out->member_id = arena_copy(arena, member->id);
    out->group_instance_id = arena_copy(arena, member->instance);
    out->client_id = arena_copy(arena, member->client_id);
    out->client_host = arena_copy(arena, member->client_host);
    out->member_assignment = arena_copy(arena, or_empty(member->assignment));
    if (group->state == GROUP_STABLE && !group->protocol.null)
        out->member_metadata = arena_copy(
            arena, or_empty(group_protocols_metadata(member->protocols, group->protocol)));
}

bool group_describe(const struct groups *groups,
                    struct arena *arena,
                    int16_t version,
                    struct describe_groups_response_described_group *out)
{
    const struct group *group = groups_find(groups, out->group_id);
    if (group == NULL || group->consumer != NULL) {
        out->group_state = VIEW("Dead");
        if (version < 6) return true;
        out->error_code = KAFKA_GROUP_ID_NOT_FOUND;
        out->error_message = group_missing_text(arena, out->group_id, group, VIEW("classic"));
        return !arena->failed;
    }
    out->group_state = group_state_view(group);
    out->protocol_type = arena_copy(arena, or_empty(group->protocol_type));
    if (group->state == GROUP_STABLE)
        out->protocol_data = arena_copy(arena, or_empty(group->protocol));
    if (group->members.count > 0) {
        out->members.items = arena_get(arena, group->members.count * sizeof(*out->members.items));
        if (out->members.items == NULL) return false;
    }
    list_foreach (link, &group->member_list)
        describe_member(container_of(link, struct member, link), arena,
                        &out->members.items[out->members.count++]);
    return !arena->failed;
}

void groups_list(const struct groups *groups,
                 bool (*each)(void *context, const struct group_listed *listed),
                 void *context)
{
    list_foreach (link, &groups->all) {
        const struct group *group = container_of(link, struct group, link);
        struct group_listed listed = {
            .id = group->id,
            .protocol_type = or_empty(group->protocol_type),
            .state = group_state_view(group),
            .type = VIEW("classic"),
        };
        if (group->consumer != NULL) listed.type = listed.protocol_type = VIEW("consumer");
        if (!each(context, &listed)) return;
    }
}

enum step_result group_delete(struct groups *groups,
                              struct step *step,
                              struct view id,
                              enum kafka_error *out)
{
    struct group *group = groups_find(groups, id);
    groups_begin(groups, step);
    *out = group == NULL                 ? KAFKA_GROUP_ID_NOT_FOUND
           : group->state == GROUP_DEAD  ? KAFKA_GROUP_ID_NOT_FOUND
           : group->state != GROUP_EMPTY ? KAFKA_NON_EMPTY_GROUP
                                         : KAFKA_NONE;
    bool members = group != NULL && group->consumer != NULL && group->consumer->members.count > 0;
    if (*out == KAFKA_NONE && members) *out = KAFKA_NON_EMPTY_GROUP;
    if (*out != KAFKA_NONE) return STEP_DONE;
    enum step_result result = offsets_tombstones(group, step);
    if (result != STEP_DONE) return result;
    return group_end_put(group, step);
}

enum step_result group_end_put(const struct group *group, struct step *step)
{
    if (group->consumer != NULL) {
        /* Its records stand or fall together, and no member has any: they are few. */
        uint32_t needed = group->consumer->targets.count + group->consumer->regexes.count + 3;
        if (step_room(step) < needed && step->record_count > 0) return STEP_MORE;
        return consumer_group_gone(group, step) ? STEP_DONE : STEP_E_MEMORY;
    }
    if (step_room(step) == 0) return STEP_MORE;
    return group_tombstone_put(step, group->id) ? STEP_DONE : STEP_E_MEMORY;
}
