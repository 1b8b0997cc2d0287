/* consumer_group_reconcile.c - one member's next step from what it holds to its target.
 *
 * Revoke before assign: a member that is to give something up gets nothing new, and stays in its
 * epoch, until it does not report those partitions any more; only then are they free for others,
 * who find them with their own next heartbeat. */
#include "core/consumer_group_internal.h"

static bool wants(const struct consumer_reconcile *in, struct uuid topic)
{
    uint32_t low = 0, high = in->subscribed_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = partition_topic_compare(in->subscribed[middle], topic);
        if (order == 0) return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* Does the client, as far as is known, still work on any of these? */
static bool still_owned(const struct consumer_reconcile *in, const struct partition_set *set)
{
    return in->owned == NULL || partition_set_intersect(in->owned, set);
}

/* Items of topics that the member wants. */
static bool wanted_of(struct arena *arena,
                      const struct consumer_reconcile *in,
                      const struct partition_set *set,
                      struct partition_set *out)
{
    if (!partition_set_room(out, arena, set->count)) return false;
    for (uint32_t i = 0; i < set->count; i++)
        if (wants(in, set->items[i].topic)) out->items[out->count++] = set->items[i];
    return true;
}

/* The member's wishes have changed: what it does not want any more goes at once, though there is no
 * new target yet. */
static enum consumer_reconciled trim(struct arena *arena,
                                     const struct consumer_reconcile *in,
                                     struct consumer_current *out)
{
    struct partition_set keep, drop;
    if (!wanted_of(arena, in, &in->now.assigned, &keep)) return CONSUMER_RECONCILE_E_MEMORY;
    if (keep.count == in->now.assigned.count) return CONSUMER_RECONCILED_SAME;
    if (!partition_set_minus(arena, &in->now.assigned, &keep, &drop) ||
        !partition_set_join(arena, &in->now.pending, &drop, &drop))
        return CONSUMER_RECONCILE_E_MEMORY;
    out->assigned = keep;
    if (still_owned(in, &drop)) {
        out->state = CONSUMER_UNREVOKED;
        out->pending = drop;
    }
    return CONSUMER_RECONCILED;
}

/* Of what the member is to get, that which nobody else holds. */
static bool free_of(struct arena *arena,
                    const struct consumer_reconcile *in,
                    const struct partition_set *wanted,
                    struct partition_set *out)
{
    if (!partition_set_room(out, arena, wanted->count)) return false;
    for (uint32_t i = 0; i < wanted->count; i++) {
        struct partition_item item = wanted->items[i];
        bool own = partition_set_find(&in->now.pending, item.topic, item.partition) != NULL;
        if (!own && consumer_group_holder(in->group, item.topic, item.partition) != CONSUMER_FREE)
            continue;
        item.epoch = in->target_epoch;
        out->items[out->count++] = item;
    }
    return true;
}

static enum consumer_reconciled compute(struct arena *arena,
                                        const struct consumer_reconcile *in,
                                        int32_t epoch,
                                        struct consumer_current *out)
{
    struct partition_set target, keep, revoke, wanted, unheld, all;
    if (!wanted_of(arena, in, in->target, &target) ||
        !partition_set_both(arena, &in->now.assigned, &target, &keep) ||
        !partition_set_minus(arena, &in->now.assigned, &keep, &revoke) ||
        !partition_set_minus(arena, &target, &keep, &wanted) ||
        !free_of(arena, in, &wanted, &unheld) || !partition_set_join(arena, &keep, &unheld, &all))
        return CONSUMER_RECONCILE_E_MEMORY;
    out->previous = in->now.epoch;
    if (revoke.count > 0 && still_owned(in, &revoke)) {
        out->state = CONSUMER_UNREVOKED;
        out->epoch = epoch;
        out->assigned = keep;
        out->pending = revoke;
        return CONSUMER_RECONCILED;
    }
    out->state = unheld.count < wanted.count ? CONSUMER_UNRELEASED : CONSUMER_STABLE;
    out->epoch = in->target_epoch;
    out->assigned = all;
    out->pending = (struct partition_set){0};
    return CONSUMER_RECONCILED;
}

/* A record says something only if something is different; that the epoch before is, counts. */
static bool same(const struct consumer_current *a, const struct consumer_current *b)
{
    return a->epoch == b->epoch && a->previous == b->previous && a->state == b->state &&
           partition_set_same(&a->assigned, &b->assigned) &&
           partition_set_same(&a->pending, &b->pending);
}

static enum consumer_reconciled next(struct arena *arena,
                                     const struct consumer_reconcile *in,
                                     struct consumer_current *out)
{
    const struct consumer_current *now = &in->now;
    switch ((enum consumer_state)now->state) {
    case CONSUMER_STABLE:
        if (now->epoch != in->target_epoch) return compute(arena, in, now->epoch, out);
        return in->changed ? trim(arena, in, out) : CONSUMER_RECONCILED_SAME;
    case CONSUMER_UNREVOKED:
        if (!still_owned(in, &now->pending)) return compute(arena, in, now->epoch, out);
        return in->changed ? trim(arena, in, out) : CONSUMER_RECONCILED_SAME;
    case CONSUMER_UNRELEASED: return compute(arena, in, now->epoch, out);
    default:
        /* A state that a later release has written: begin anew, once the client holds nothing. */
        if (in->owned == NULL || in->owned->count > 0) return CONSUMER_RECONCILE_FENCED;
        return compute(arena, in, in->target_epoch, out);
    }
}

enum consumer_reconciled consumer_group_reconcile(struct arena *arena,
                                                  const struct consumer_reconcile *in,
                                                  struct consumer_current *out)
{
    *out = in->now;
    enum consumer_reconciled result = next(arena, in, out);
    if (result == CONSUMER_RECONCILED && same(&in->now, out)) return CONSUMER_RECONCILED_SAME;
    return result;
}
