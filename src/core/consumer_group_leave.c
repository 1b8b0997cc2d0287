/* consumer_group_leave.c - members that leave a consumer group, or are removed because they were
 * not heard or did not give partitions up in time. */
#include "core/consumer_group_internal.h"

/* Has anybody the expression who stays, or who is before `at` among those that leave? */
static bool regex_has_other(const struct group *group,
                            const struct consumer_leaving *leaving,
                            uint32_t at)
{
    struct view regex = leaving->members[at]->said.regex;
    for (uint32_t i = 0; i < at; i++)
        if (view_equal(leaving->members[i]->said.regex, regex)) return true;
    list_foreach (link, &group->consumer->member_list) {
        const struct consumer_member *member = container_of(link, struct consumer_member, link);
        if (!view_equal(member->said.regex, regex)) continue;
        if (!consumer_group_leaves(leaving, member)) return true;
    }
    return false;
}

/* Expressions that nobody has any more when they are gone, matched yet or not. */
static bool regexes_gone(const struct group *group,
                         struct step *step,
                         const struct consumer_leaving *leaving)
{
    for (uint32_t i = 0; i < leaving->count; i++) {
        struct view regex = leaving->members[i]->said.regex;
        if (regex.null || regex.size == 0 || regex_has_other(group, leaving, i)) continue;
        if (!consumer_gone(step, CONSUMER_KEY_REGEX, group->id, regex)) return false;
    }
    return true;
}

/* The hash of what those want who stay, and whether there are any. */
static bool hash_without(const struct consumer_group *consumer,
                         struct arena *arena,
                         const struct consumer_edit *edit,
                         int64_t *hash,
                         bool *empty)
{
    struct consumer_roster roster;
    struct consumer_topics topics;
    *hash = consumer->hash;
    *empty = false;
    if (consumer_group_topics_stay(consumer, edit)) return true; /* Somebody stays. */
    if (!consumer_group_roster(consumer, arena, edit, &roster) ||
        !consumer_group_topics(consumer, arena, edit, &roster, &topics) ||
        !consumer_group_hash(consumer->groups, arena, &topics, hash))
        return false;
    *empty = roster.count == 0;
    return true;
}

static bool group_record(const struct group *group,
                         struct step *step,
                         const struct consumer_leaving *leaving)
{
    const struct consumer_group *consumer = group->consumer;
    struct consumer_edit edit = {.id = VIEW_NULL, .replaces = VIEW_NULL};
    int64_t hash;
    bool empty;
    struct view *ids = step_get(step, ((size_t)leaving->count + 1) * sizeof(*ids));
    if (ids == NULL) return false;
    for (uint32_t i = 0; i < leaving->count; i++)
        ids[i] = leaving->members[i]->id;
    edit.left = ids;
    edit.left_count = leaving->count;
    if (!hash_without(consumer, step->arena, &edit, &hash, &empty)) return false;
    if (!consumer_record_group(step, group->id, consumer->epoch + 1, hash)) return false;
    return !empty || consumer_record_assigned(step, group->id, consumer->epoch + 1, 0);
}

enum step_result consumer_group_remove(struct group *group,
                                       struct step *step,
                                       const struct consumer_leaving *leaving)
{
    bool put = true;
    assert(leaving->count > 0);
    if (consumer_group_may_downgrade(group, leaving, false))
        return consumer_group_downgrade(group, step, leaving, NULL);
    for (uint32_t i = 0; put && i < leaving->count; i++)
        put = consumer_member_gone(step, group->id, leaving->members[i]->id);
    put = put && regexes_gone(group, step, leaving) && group_record(group, step, leaving);
    return put ? STEP_DONE : STEP_E_MEMORY;
}

/* The timer is armed again first: if the records cannot be appended, it comes up once more. */
void consumer_group_timer(struct consumer_member *member,
                          enum group_timer_kind kind,
                          struct step *step)
{
    struct group *group = member->group;
    const struct consumer_member *gone = member;
    struct consumer_leaving leaving = {.members = &gone, .count = 1};
    struct group_timer *timer = kind == TIMER_CONSUMER_SESSION     ? &member->session
                                : kind == TIMER_CONSUMER_REBALANCE ? &member->rebalance
                                : kind == TIMER_CONSUMER_JOIN      ? &member->join
                                                                   : &member->sync;
    bool moved = member->now.epoch != member->rebalance_epoch;
    if (kind == TIMER_CONSUMER_REBALANCE && moved) return; /* It has given up what it was to. */
    group_timer_set(group, timer, group->groups->now_ms + CONSUMER_RETRY_MS);
    if (consumer_group_remove(group, step, &leaving) != STEP_DONE)
        step->record_count = 0; /* Nothing by halves: later. */
    else
        group_tell_consumer(member, kind == TIMER_CONSUMER_SESSION     ? GROUP_EVENT_SILENT
                                    : kind == TIMER_CONSUMER_REBALANCE ? GROUP_EVENT_HELD_ON
                                    : kind == TIMER_CONSUMER_JOIN      ? GROUP_EVENT_NOT_JOINED
                                                                       : GROUP_EVENT_NOT_SYNCED);
}
