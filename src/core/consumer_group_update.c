/* consumer_group_update.c - what follows when a member of a consumer group has said something: does
 * the group's epoch rise, is there a new target, what does the member hold then.
 *
 * The same for a heartbeat of this protocol and for a classic Join; the records come in Kafka's
 * order. The group may be a blank, the member new, or come in the place of another. */
#include "core/consumer_group_internal.h"
#include "core/image.h"

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

static const struct consumer_member *former(const struct consumer_update *u)
{
    return u->member != NULL ? u->member : u->before;
}

void consumer_update_begin(struct consumer_update *u)
{
    const struct consumer_member *of = former(u);
    u->was = (struct consumer_said){
        .instance = VIEW_NULL,
        .rack = VIEW_NULL,
        .client_id = VIEW_EMPTY,
        .client_host = VIEW_EMPTY,
        .regex = VIEW_EMPTY, /* As Kafka writes one that has none. */
        .assignor = VIEW_NULL,
        .rebalance_ms = -1,
    };
    u->now = (struct consumer_current){.previous = -1};
    if (of != NULL) u->was = of->said;
    if (of != NULL) u->now = of->now;
    u->said = u->was;
}

/* A static member comes back: everything of the old id is the new one's. */
static bool replace(struct consumer_update *u)
{
    const struct consumer_member *old = u->before;
    u->now.epoch = 0;
    u->now.previous = 0;
    return consumer_member_gone(u->step, u->group_id, old->id) &&
           consumer_record_said(u->step, u->group_id, u->id, &old->said) &&
           consumer_record_target(u->step, u->group_id, u->id,
                                  consumer_group_target(u->state, old->id)) &&
           consumer_record_current(u->step, u->group_id, u->id, &u->now);
}

/* ---- the group ------------------------------------------------------------------------------- */

/* All members as they are with this one. NULL: no memory. */
static const struct consumer_roster *roster_of(struct consumer_update *u)
{
    if (u->roster.members == NULL &&
        !consumer_group_roster(u->state, u->step->arena, &u->edit, &u->roster))
        return NULL;
    return &u->roster;
}

/* Does the group want another assignor through this member? */
static bool assignor_changes(struct consumer_update *u, bool *out)
{
    const struct consumer_roster *roster;
    struct consumer_edit none = {.id = VIEW_NULL, .replaces = VIEW_NULL};
    struct consumer_roster before;
    *out = false;
    if (u->said.classic || view_equal(u->was.assignor, u->said.assignor)) return true;
    if (!consumer_group_roster(u->state, u->step->arena, &none, &before)) return false;
    roster = roster_of(u);
    if (roster == NULL) return false;
    *out = !view_equal(consumer_group_assignor(u->groups, &before),
                       consumer_group_assignor(u->groups, roster));
    return true;
}

/* An expression that the member gives up is forgotten with its last user; a new one moves the group
 * only if its topics are known already. */
static bool regex_changes(struct consumer_update *u, bool *bump)
{
    if (view_equal(u->was.regex, u->said.regex)) return true;
    *bump = *bump || (regex_is(u->was.regex) && !regex_is(u->said.regex)) ||
            (regex_is(u->said.regex) && consumer_group_regex(u->state, u->said.regex) != NULL);
    if (!regex_is(u->was.regex)) return true;
    if (consumer_group_regex_users(u->state, u->was.regex, former(u)) > 0) return true;
    return consumer_gone(u->step, CONSUMER_KEY_REGEX, u->group_id, u->was.regex);
}

static bool hash_refresh(struct consumer_update *u)
{
    if (consumer_group_topics_stay(u->state, &u->edit)) return true;
    const struct consumer_roster *roster = roster_of(u);
    struct consumer_topics topics;
    u->refreshed = true;
    return roster != NULL &&
           consumer_group_topics(u->state, u->step->arena, &u->edit, roster, &topics) &&
           consumer_group_hash(u->groups, u->step->arena, &topics, &u->hash);
}

/* Records 5 and 3, if there is a reason. False: no memory. */
static bool group_update(struct consumer_update *u)
{
    bool bump = !names_equal(&u->was, &u->said), other;
    u->changed = bump || !view_equal(u->was.regex, u->said.regex);
    if ((former(u) == NULL || !consumer_said_equal(&u->was, &u->said)) &&
        !consumer_record_said(u->step, u->group_id, u->id, &u->said))
        return false;
    if (!regex_changes(u, &bump) || !assignor_changes(u, &other)) return false;
    bump = bump || other;
    if (bump || u->state->topics_seen != u->groups->topics_version) {
        if (!hash_refresh(u)) return false;
        bump = bump || u->hash != u->state->hash;
    }
    if (!bump) return true;
    u->epoch++;
    if (!consumer_record_group(u->step, u->group_id, u->epoch, u->hash)) return false;
    return !u->state->legacy_metadata ||
           consumer_gone(u->step, CONSUMER_KEY_METADATA, u->group_id, VIEW_NULL);
}

static bool may_assign(const struct consumer_update *u)
{
    if (u->epoch <= u->assignment_epoch) return false;
    int64_t interval_ms =
        consumer_group_interval(u->groups, u->group_id, VIEW("consumer.assignment.interval.ms"),
                                &u->groups->consumer_options.assignment);
    int64_t last_ms = u->state->assigned_wall_ms;
    return last_ms == 0 || interval_ms == 0 || u->step->wall_ms >= last_ms + interval_ms ||
           u->step->wall_ms < last_ms; /* The clock was set back: it says nothing. */
}

/* ---- the member ------------------------------------------------------------------------------ */

static bool subscribed_ids(struct consumer_update *u, struct consumer_reconcile *out)
{
    struct consumer_topics topics;
    struct partition_set ids;
    struct arena *arena = u->step->arena;
    if (!consumer_group_topics_of(u->state, arena, &u->edit, &u->said, &topics)) return false;
    if (!partition_set_room(&ids, arena, topics.count)) return false;
    for (; ids.count < topics.count; ids.count++)
        ids.items[ids.count] = (struct partition_item){.topic = topics.items[ids.count]->id};
    partition_set_sort(&ids);
    struct uuid *sorted = arena_take(arena, ((size_t)ids.count + 1) * sizeof(*sorted));
    if (sorted == NULL) return false;
    for (uint32_t i = 0; i < ids.count; i++)
        sorted[i] = ids.items[i].topic;
    out->subscribed = sorted;
    out->subscribed_count = ids.count;
    return true;
}

static void settle_later(struct consumer_update *u)
{
    struct consumer_settle *settle = &u->groups->settle;
    *settle = (struct consumer_settle){
        .set = true,
        .group = u->group_id,
        .member = u->id,
        .contact_ms = u->contact_ms,
        .refreshed = u->refreshed,
        .upgraded = u->upgraded,
        .topics_version = u->groups->topics_version,
    };
    if (u->reconciled != CONSUMER_RECONCILED || u->said.classic) return;
    settle->rebalance =
        u->next.state == CONSUMER_UNREVOKED ? CONSUMER_TIMER_SET : CONSUMER_TIMER_CANCEL;
    settle->rebalance_ms = u->groups->now_ms + u->said.rebalance_ms;
}

static enum step_result member_update(struct consumer_update *u, const struct partition_set *target)
{
    struct consumer_reconcile in = {
        .group = u->state,
        .now = u->now,
        .target = target,
        .target_epoch = u->assignment_epoch,
        .owned = u->owned_told ? &u->owned : NULL,
        .changed = u->changed,
    };
    bool still = u->now.state == CONSUMER_STABLE && u->now.epoch == u->assignment_epoch;
    if ((u->changed || !still) && !subscribed_ids(u, &in)) return STEP_E_MEMORY;
    u->reconciled = consumer_group_reconcile(u->step->arena, &in, &u->next);
    if (u->reconciled == CONSUMER_RECONCILE_E_MEMORY) return STEP_E_MEMORY;
    if (u->reconciled == CONSUMER_RECONCILED &&
        !consumer_record_current(u->step, u->group_id, u->id, &u->next))
        return STEP_E_MEMORY;
    settle_later(u);
    return STEP_DONE;
}

/* ---- the whole ------------------------------------------------------------------------------- */

enum step_result consumer_group_update(struct consumer_update *u)
{
    struct partition_set target = {0};
    if (u->before != NULL && !replace(u)) return STEP_E_MEMORY;
    u->edit = (struct consumer_edit){
        .id = u->id,
        .said = &u->said,
        .replaces = u->before == NULL ? VIEW_NULL : u->before->id,
    };
    u->epoch = u->state->epoch;
    u->assignment_epoch = u->state->assignment_epoch;
    u->hash = u->state->hash;
    if (!group_update(u)) return STEP_E_MEMORY;
    if (former(u) != NULL) target = *consumer_group_target(u->state, former(u)->id);
    if (may_assign(u)) {
        struct consumer_targeting targeting = {
            .group = u->state,
            .id = u->group_id,
            .edit = &u->edit,
            .roster = roster_of(u),
            .epoch = u->epoch,
        };
        if (targeting.roster == NULL) return STEP_E_MEMORY;
        consumer_roster_sort(&u->roster);
        enum step_result result = consumer_group_retarget(u->step, &targeting, &target);
        if (result != STEP_DONE) return result;
        u->assignment_epoch = u->epoch;
    }
    return member_update(u, &target);
}

/* ---- afterwards ------------------------------------------------------------------------------ */

static void settle_member(struct consumer_member *member, const struct consumer_settle *settle)
{
    struct group *group = member->group;
    consumer_group_contact(member, settle->contact_ms);
    group_timer_cancel(group, &member->join);
    group_timer_cancel(group, &member->sync);
    if (member->said.classic)
        group_timer_set(group, &member->sync, group->groups->now_ms + member->said.rebalance_ms);
    if (settle->rebalance == CONSUMER_TIMER_CANCEL || member->said.classic)
        group_timer_cancel(group, &member->rebalance);
    if (settle->rebalance != CONSUMER_TIMER_SET) return;
    member->rebalance_epoch = member->now.epoch;
    group_timer_set(group, &member->rebalance, settle->rebalance_ms);
}

/* Has an expression come while the others were being matched? */
static bool unmatched(const struct consumer_group *group)
{
    list_foreach (link, &group->member_list) {
        const struct view regex = container_of(link, struct consumer_member, link)->said.regex;
        if (!regex.null && regex.size > 0 && consumer_group_regex(group, regex) == NULL)
            return true;
    }
    return false;
}

void consumer_group_settle(struct groups *groups)
{
    struct consumer_settle settle = groups->settle;
    groups->settle.set = false;
    if (!settle.set) return;
    struct group *group = groups_find(groups, settle.group);
    if (group == NULL) return;
    if (group->consumer == NULL) {
        if (settle.downgraded) consumer_group_downgraded(group, &settle);
        return;
    }
    struct consumer_group *consumer = group->consumer;
    struct consumer_member *member = consumer_group_member(consumer, settle.member);
    if (settle.refreshed) consumer->topics_seen = settle.topics_version;
    if (settle.resolved) consumer->regex_seen = settle.topics_version;
    if (settle.resolved) consumer->regex_open = unmatched(consumer);
    list_foreach (link, &consumer->member_list) {
        if (!settle.upgraded) break;
        consumer_group_contact(container_of(link, struct consumer_member, link), groups->now_ms);
    }
    if (member != NULL) settle_member(member, &settle);
}
