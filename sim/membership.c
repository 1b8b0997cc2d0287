/* membership.c - see membership.h. */
#include "sim/membership.h"

#include <stdio.h>

#include "gen/errors.h"

static bool seat_lives(const struct membership_seat *seat, int64_t now_us)
{
    return seat->in && !seat->doubtful &&
           now_us < seat->good_us + (int64_t)seat->patience_ms * 1000;
}

static bool seats_are_one(const struct membership_seat *a, const struct membership_seat *b)
{
    return a->instance[0] != '\0' && strcmp(a->instance, b->instance) == 0;
}

/* For a reader of the trace. */
static void seat_print(const struct membership *group,
                       const struct membership_seat *seat,
                       const bool owns[HISTORY_LOGS_MAX])
{
    if (!group->history->print) return;
    printf("   %s %s %s, epoch %d, patience %u ms, owns:", group->name, seat->member_id,
           seat->instance, seat->epoch, seat->patience_ms);
    for (uint32_t log = 0; log < HISTORY_LOGS_MAX; log++)
        if (owns[log]) printf(" %u", log);
    printf("\n");
}

static void check_owners(struct membership *group, uint32_t at, int64_t now_us)
{
    const struct membership_seat *seat = &group->seats[at];
    if (!seat_lives(seat, now_us)) return;
    for (uint32_t i = 0; i < group->seat_count; i++) {
        const struct membership_seat *other = &group->seats[i];
        if (i == at || !seat_lives(other, now_us) || seats_are_one(seat, other)) continue;
        for (uint32_t log = 0; log < HISTORY_LOGS_MAX; log++)
            if (seat->owns[log] && other->owns[log])
                history_violation(
                    group->history, "I13: %s: log %u has two owners: %s (epoch %d) and %s (%d)",
                    group->name, log, seat->member_id, seat->epoch, other->member_id, other->epoch);
    }
}

void membership_renew(struct membership *group, uint32_t at, int64_t sent_us, int64_t now_us)
{
    struct membership_seat *seat = &group->seats[at];
    bool final = seat->fenced_for_good || seat->fenced_restarts == group->history->restarts;
    if (seat->fenced_us > 0 && sent_us > seat->fenced_us && final)
        history_violation(group->history, "I15: %s: %s lives, another %s has taken its place",
                          group->name, seat->member_id, seat->instance);
    seat->good_us = MAX(seat->good_us, sent_us);
    check_owners(group, at, now_us);
}

/* Since when the node has been as it is now: nothing has made it load a group. */
static int64_t steady_since_us(const struct history *history)
{
    return MAX(history->restart_us, history->trouble_us);
}

void membership_loaded(struct membership *group, int64_t sent_us, int64_t now_us)
{
    int64_t since_us = steady_since_us(group->history);
    if (sent_us > since_us && group->loaded_us <= since_us) group->loaded_us = now_us;
}

bool membership_is_loaded(const struct membership *group, int64_t sent_us)
{
    return group->loaded_us > steady_since_us(group->history) && sent_us > group->loaded_us;
}

void membership_joins(struct membership *group, uint32_t at, int64_t now_us)
{
    group->seats[at].asked_us = now_us;
    for (uint32_t i = 0; i < group->seat_count; i++)
        if (i != at && seats_are_one(&group->seats[at], &group->seats[i]))
            group->seats[i].doubtful = true;
}

/* The seat `by` has its place now. What was so already stays. */
static void seat_fence(struct membership *group,
                       struct membership_seat *seat,
                       uint32_t by,
                       uint32_t restarts,
                       int64_t now_us)
{
    bool stands = seat->fenced_restarts == group->history->restarts;
    if (seat->fenced_us > 0 && (seat->fenced_for_good || stands)) return;
    seat->fenced_us = now_us;
    seat->fenced_by = by;
    seat->fenced_restarts = restarts;
    seat->fenced_for_good = false;
}

void membership_joined(struct membership *group,
                       uint32_t at,
                       uint32_t restarts,
                       int64_t sent_us,
                       int64_t now_us)
{
    struct membership_seat *seat = &group->seats[at];
    seat->fenced_us = 0;
    seat->fenced_for_good = seat->doubtful = false;
    seat->joined_us = now_us;
    for (uint32_t i = 0; i < group->seat_count; i++) {
        struct membership_seat *other = &group->seats[i];
        if (i == at || !seats_are_one(seat, other)) continue;
        seat->doubtful = seat->doubtful || other->asked_us > sent_us;
        if (other->joined_us == 0) continue;
        other->good_us = 0;
        if (other->joined_us >= sent_us)
            other->doubtful = seat->doubtful = true;
        else
            seat_fence(group, other, at, restarts, now_us);
    }
}

void membership_in(struct membership *group, uint32_t at, uint32_t restarts)
{
    struct membership_seat *seat = &group->seats[at];
    seat->in = seat->durable = true;
    for (uint32_t i = 0; i < group->seat_count; i++) {
        struct membership_seat *other = &group->seats[i];
        if (other->fenced_us > 0 && other->fenced_by == at && other->fenced_restarts == restarts)
            other->fenced_for_good = true;
    }
}

void membership_owns(struct membership *group,
                     uint32_t at,
                     const bool owns[HISTORY_LOGS_MAX],
                     int64_t now_us)
{
    struct membership_seat *seat = &group->seats[at];
    if (memcmp(seat->owns, owns, sizeof(seat->owns)) != 0) group->changes++;
    seat_print(group, seat, owns);
    memcpy(seat->owns, owns, sizeof(seat->owns));
    check_owners(group, at, now_us);
}

void membership_generation(struct membership *group,
                           int32_t generation,
                           int64_t sent_us,
                           int64_t now_us)
{
    if (group->mixed) return;
    if (generation < group->generation && sent_us > group->generation_us)
        history_violation(group->history, "I15: %s: generation %d was handed out after %d",
                          group->name, generation, group->generation);
    if (generation <= group->generation) return;
    group->generation = generation;
    group->generation_us = now_us;
    group->changes++;
}

void membership_out(struct membership *group, uint32_t at)
{
    struct membership_seat *seat = &group->seats[at];
    seat->in = seat->durable = false;
    seat->good_us = seat->fenced_us = seat->joined_us = 0;
    seat->fenced_for_good = seat->doubtful = false;
    seat->epoch = 0;
    memset(seat->owns, 0, sizeof(seat->owns));
    group->changes++;
}

/* May another one have taken its place, by the instance id that they share? */
static bool seat_replaced(const struct membership *group, uint32_t at)
{
    for (uint32_t i = 0; i < group->seat_count; i++)
        if (i != at && seats_are_one(&group->seats[at], &group->seats[i])) return true;
    return false;
}

bool membership_is_final(const struct membership *group,
                         bool classic,
                         int32_t epoch,
                         uint32_t restarts)
{
    if (!classic || restarts == group->history->restarts) return true;
    return !group->mixed && group->generation > epoch;
}

void membership_removed(struct membership *group, uint32_t at, int64_t sent_us, int16_t error)
{
    const struct membership_seat *seat = &group->seats[at];
    const struct history *history = group->history;
    bool known = seat->durable || (seat->restarts == history->restarts &&
                                   seat->good_us > history->trouble_us); /* It may load anew. */
    int64_t until_us = seat->good_us + (int64_t)seat->patience_ms * 1000;
    group->removals++;
    if (seat->good_us > 0 && known && sent_us + group->slack_us < until_us &&
        !seat_replaced(group, at))
        history_violation(group->history,
                          "kept: %s: member %s (epoch %d) spoke in time, %lld ms after a good "
                          "answer's request, and was removed: error %d",
                          group->name, seat->member_id, seat->epoch,
                          (long long)(sent_us - seat->good_us) / 1000, error);
    membership_out(group, at);
}

bool membership_anybody(const struct membership *group)
{
    for (uint32_t i = 0; i < group->seat_count; i++)
        if (group->seats[i].in) return true;
    return false;
}

bool membership_speaks(const struct membership *group, int64_t now_us)
{
    for (uint32_t i = 0; i < group->seat_count; i++)
        if (group->seats[i].in &&
            now_us >= group->seats[i].good_us + (int64_t)group->seats[i].patience_ms * 1000)
            return false;
    return true;
}

static bool seat_settled(const struct membership *group, const struct membership_seat *seat)
{
    if (seat->in != seat->wants_in) return false;
    if (!seat->in || !seat->classic || group->mixed) return true;
    for (uint32_t i = 0; i < group->seat_count; i++)
        if (group->seats[i].in && group->seats[i].classic && group->seats[i].epoch != seat->epoch)
            return false;
    return true;
}

bool membership_settled(const struct membership *group)
{
    bool wanted[HISTORY_TOPICS_MAX] = {false};
    for (uint32_t i = 0; i < group->seat_count; i++) {
        if (!seat_settled(group, &group->seats[i])) return false;
        for (uint32_t t = 0; t < HISTORY_TOPICS_MAX; t++)
            wanted[t] = wanted[t] || (group->seats[i].in && group->seats[i].wants[t]);
    }
    for (uint32_t log = 0; log < HISTORY_LOGS_MAX; log++) {
        const struct history_topic *topic = &group->history->topics[log / HISTORY_PARTITIONS_MAX];
        uint32_t owners = 0;
        for (uint32_t i = 0; i < group->seat_count; i++)
            owners += group->seats[i].in && group->seats[i].owns[log];
        bool exists = log / HISTORY_PARTITIONS_MAX < group->history->topic_count &&
                      (int32_t)(log % HISTORY_PARTITIONS_MAX) < topic->partitions;
        if (exists && wanted[log / HISTORY_PARTITIONS_MAX] && owners != 1) return false;
    }
    return true;
}
