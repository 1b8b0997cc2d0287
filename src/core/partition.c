/* partition.c - see partition.h.
 *
 *   what holds   the high watermark never falls; it counts this node with its durable (or written)
 * end and every member of the ISR, and of the ISR that was asked for, with the end it has fetched
 *                to; a leader that has not been fetched from knows the ends of no other replica
 * (-1), so nothing moves until they come. */
#include "core/partition.h"

#include "gen/errors.h"

#define NO_ANSWER (-1000)

struct member {
    int32_t id;
    int64_t end; /* -1: has not fetched since this leadership began. */
    int64_t log_start;
    int64_t epoch;        /* Broker epoch that it told; -1: none. */
    int64_t caught_up_ms; /* Last time it had all. */
    int64_t last_end;     /* The leader's end at its last fetch, */
    int64_t last_ms;      /* and when that was. */
    bool in_isr;
    bool wished; /* In the ISR that was asked for. */
};

struct partition {
    struct mem *mem;
    struct partition_options options;
    enum partition_role role;
    int32_t leader;
    int32_t leader_epoch;
    int32_t partition_epoch;
    int8_t recovery;
    int64_t leader_epoch_start;
    int64_t high_watermark;
    struct member *members; /* Every replica, this node included. */
    uint32_t member_count;
    uint32_t isr_count;
    bool wishing;      /* An AlterPartition is on its way. */
    int32_t *wish_ids; /* Room for all members. */
    int64_t *wish_epochs;
};

struct partition *partition_new(struct mem *mem, const struct partition_options *options)
{
    struct partition *p = mem_get(mem, sizeof(*p));
    if (p == NULL) return NULL;
    *p = (struct partition){.mem = mem,
                            .options = *options,
                            .leader = IMAGE_NO_LEADER,
                            .leader_epoch = -1,
                            .partition_epoch = -1};
    return p;
}

static void members_free(struct partition *p)
{
    mem_put(p->mem, p->members, p->member_count * sizeof(p->members[0]));
    mem_put(p->mem, p->wish_ids, p->member_count * sizeof(p->wish_ids[0]));
    mem_put(p->mem, p->wish_epochs, p->member_count * sizeof(p->wish_epochs[0]));
    p->members = NULL;
    p->wish_ids = NULL;
    p->wish_epochs = NULL;
    p->member_count = 0;
}

struct partition *partition_free(struct partition *partition)
{
    if (partition == NULL) return NULL;
    members_free(partition);
    return mem_put(partition->mem, partition, sizeof(*partition));
}

static struct member *member_find(const struct partition *p, int32_t id)
{
    for (uint32_t i = 0; i < p->member_count; i++)
        if (p->members[i].id == id) return &p->members[i];
    return NULL;
}

static int64_t own_end(const struct partition *p, const struct partition_ends *ends)
{
    return p->options.count_written ? ends->written : ends->durable;
}

/* The replica list and the ISR as the log says, what is known of members kept over the same
 * leadership. False: no memory, nothing has changed. */
static bool members_take(struct partition *p,
                         const struct image_partition *state,
                         bool same_leadership,
                         int64_t now_ms)
{
    struct image_ids replicas = image_list(state, IMAGE_REPLICAS),
                     isr = image_list(state, IMAGE_ISR);
    uint32_t count = MAX(replicas.count, 1);
    struct partition next = *p;
    next.members = mem_get(p->mem, count * sizeof(next.members[0]));
    next.wish_ids = mem_get(p->mem, count * sizeof(next.wish_ids[0]));
    next.wish_epochs = mem_get(p->mem, count * sizeof(next.wish_epochs[0]));
    next.member_count = count;
    if (next.members == NULL || next.wish_ids == NULL || next.wish_epochs == NULL) {
        members_free(&next);
        return false;
    }
    for (uint32_t i = 0; i < replicas.count; i++) {
        const struct member *old = same_leadership ? member_find(p, replicas.items[i]) : NULL;
        struct member *member = &next.members[i];
        *member = old != NULL ? *old
                              : (struct member){.end = -1,
                                                .log_start = -1,
                                                .epoch = -1,
                                                .caught_up_ms = now_ms,
                                                .last_end = -1};
        member->id = replicas.items[i];
        member->in_isr = image_ids_have(isr, member->id);
        member->wished = false;
    }
    members_free(p);
    *p = next;
    p->isr_count = isr.count;
    p->wishing = false;
    return true;
}

enum partition_change partition_follow(struct partition *partition,
                                       const struct image_partition *state,
                                       const struct partition_ends *ends,
                                       int64_t high_watermark,
                                       int64_t now_ms)
{
    struct partition *p = partition;
    if (state->leader_epoch < p->leader_epoch || state->partition_epoch <= p->partition_epoch)
        return PARTITION_SAME;
    bool new_epoch = state->leader_epoch > p->leader_epoch;
    bool leads = state->leader == p->options.node_id;
    if (!members_take(p, state, !new_epoch && p->role == PARTITION_LEADER, now_ms))
        return PARTITION_E_MEMORY;
    if (p->leader_epoch < 0)
        p->high_watermark = MIN(MAX(high_watermark, ends->start), ends->assigned);
    p->leader = state->leader;
    p->partition_epoch = state->partition_epoch;
    p->recovery = state->recovery;
    p->role = leads ? PARTITION_LEADER : PARTITION_FOLLOWER;
    if (!new_epoch) return PARTITION_NEW_MEMBERS;
    p->leader_epoch = state->leader_epoch;
    p->leader_epoch_start = leads ? ends->assigned : -1;
    return PARTITION_NEW_EPOCH;
}

/* ---- queries --------------------------------------------------------------------------------- */

enum partition_role partition_role(const struct partition *partition)
{
    return partition->role;
}

int32_t partition_leader(const struct partition *partition)
{
    return partition->leader;
}

int32_t partition_leader_epoch(const struct partition *partition)
{
    return partition->leader_epoch;
}

int32_t partition_epoch(const struct partition *partition)
{
    return partition->partition_epoch;
}

int64_t partition_leader_epoch_start(const struct partition *partition)
{
    return partition->leader_epoch_start;
}

int64_t partition_high_watermark(const struct partition *partition)
{
    return partition->high_watermark;
}

uint32_t partition_isr_count(const struct partition *partition)
{
    return partition->isr_count;
}

int16_t partition_check_epoch(const struct partition *partition, int32_t epoch)
{
    if (epoch >= 0 && epoch < partition->leader_epoch) return KAFKA_FENCED_LEADER_EPOCH;
    return epoch > partition->leader_epoch ? KAFKA_UNKNOWN_LEADER_EPOCH : KAFKA_NONE;
}

int16_t partition_check_leader(const struct partition *partition, int32_t epoch)
{
    int16_t error = partition_check_epoch(partition, epoch);
    if (error != KAFKA_NONE) return error;
    return partition->role == PARTITION_LEADER ? KAFKA_NONE : KAFKA_NOT_LEADER_OR_FOLLOWER;
}

static uint32_t effective_min(const struct partition *p, int32_t min_insync)
{
    return MIN((uint32_t)MAX(min_insync, 1), p->member_count);
}

bool partition_enough_in_sync(const struct partition *partition, int32_t min_insync)
{
    return partition->isr_count >= effective_min(partition, min_insync);
}

bool partition_replica(const struct partition *partition,
                       int32_t replica,
                       struct partition_replica *out)
{
    const struct member *member = member_find(partition, replica);
    if (member == NULL) return false;
    *out = (struct partition_replica){member->end, member->caught_up_ms, member->in_isr};
    return true;
}

/* ---- the high watermark ---------------------------------------------------------------------- */

/* Lowest end among those that count; -1: one of them is unknown. */
static int64_t lowest_end(const struct partition *p, const struct partition_ends *ends)
{
    int64_t lowest = own_end(p, ends);
    for (uint32_t i = 0; i < p->member_count; i++) {
        const struct member *member = &p->members[i];
        if (member->id == p->options.node_id || !(member->in_isr || member->wished)) continue;
        lowest = MIN(lowest, member->end);
    }
    return lowest;
}

static bool high_watermark_move(struct partition *p,
                                const struct partition_ends *ends,
                                int32_t min_insync)
{
    if (p->role != PARTITION_LEADER || !partition_enough_in_sync(p, min_insync)) return false;
    int64_t to = lowest_end(p, ends);
    if (to <= p->high_watermark) return false;
    p->high_watermark = to;
    return true;
}

bool partition_local_end(struct partition *partition,
                         const struct partition_ends *ends,
                         int32_t min_insync)
{
    assert(ends->durable <= ends->written && ends->written <= ends->assigned);
    return high_watermark_move(partition, ends, min_insync);
}

enum partition_fetched partition_fetched(struct partition *partition,
                                         const struct partition_fetch *fetch,
                                         const struct partition_ends *ends,
                                         int32_t min_insync)
{
    struct member *member = member_find(partition, fetch->replica);
    if (member == NULL || member->id == partition->options.node_id) return PARTITION_E_REPLICA;
    if (fetch->epoch >= 0 && fetch->epoch < member->epoch) return PARTITION_E_STALE;
    member->epoch = MAX(member->epoch, fetch->epoch);
    /* It had all if it has reached what was the end at its fetch before, then or now. */
    if (fetch->fetch_offset >= ends->assigned)
        member->caught_up_ms = fetch->now_ms;
    else if (member->last_end >= 0 && fetch->fetch_offset >= member->last_end)
        member->caught_up_ms = MAX(member->caught_up_ms, member->last_ms);
    member->end = fetch->fetch_offset;
    member->log_start = fetch->log_start;
    member->last_end = ends->assigned;
    member->last_ms = fetch->now_ms;
    return high_watermark_move(partition, ends, min_insync) ? PARTITION_HW_ROSE : PARTITION_FETCHED;
}

bool partition_leader_told(struct partition *partition,
                           int64_t high_watermark,
                           const struct partition_ends *ends)
{
    int64_t to = MIN(high_watermark, ends->assigned);
    if (to <= partition->high_watermark) return false;
    partition->high_watermark = to;
    return true;
}

int64_t partition_low_watermark(const struct partition *partition,
                                const struct partition_ends *ends)
{
    int64_t lowest = ends->start;
    for (uint32_t i = 0; i < partition->member_count; i++) {
        const struct member *member = &partition->members[i];
        if (member->id != partition->options.node_id && member->log_start >= 0)
            lowest = MIN(lowest, member->log_start);
    }
    return lowest;
}

/* ---- changing the ISR ------------------------------------------------------------------------ */

static bool lags(const struct partition *p,
                 const struct member *member,
                 const struct partition_ends *ends,
                 int64_t now_ms)
{
    return member->end < ends->assigned &&
           now_ms - member->caught_up_ms > p->options.replica_lag_ms;
}

static bool may_join(const struct partition *p,
                     const struct member *member,
                     const struct image *image)
{
    return member->end >= p->high_watermark && member->end >= p->leader_epoch_start &&
           image_broker_active(image, member->id);
}

bool partition_wishes(struct partition *partition,
                      const struct image *image,
                      const struct partition_ends *ends,
                      int64_t now_ms,
                      struct partition_wish *out)
{
    struct partition *p = partition;
    if (p->role != PARTITION_LEADER || p->wishing) return false;
    bool differs = false;
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->member_count; i++) {
        struct member *member = &p->members[i];
        bool own = member->id == p->options.node_id;
        bool stays = member->in_isr ? own || !lags(p, member, ends, now_ms)
                                    : !own && may_join(p, member, image);
        differs = differs || stays != member->in_isr;
        if (!stays) continue;
        p->wish_ids[count] = member->id;
        p->wish_epochs[count++] = member->epoch;
    }
    if (!differs) return false;
    for (uint32_t i = 0; i < count; i++)
        member_find(p, p->wish_ids[i])->wished = true;
    p->wishing = true;
    *out = (struct partition_wish){p->wish_ids,     p->wish_epochs,     count,
                                   p->leader_epoch, p->partition_epoch, p->recovery};
    return true;
}

bool partition_altered(struct partition *partition,
                       int16_t error,
                       int32_t partition_epoch,
                       const struct partition_ends *ends,
                       int32_t min_insync)
{
    struct partition *p = partition;
    if (!p->wishing) return false;
    p->wishing = false;
    if (error == NO_ANSWER) return false; /* Both sets count on; the wish is made anew. */
    for (uint32_t i = 0; i < p->member_count; i++) {
        if (error == KAFKA_NONE) p->members[i].in_isr = p->members[i].wished;
        p->members[i].wished = false;
    }
    if (error == KAFKA_NONE) {
        p->partition_epoch = MAX(p->partition_epoch, partition_epoch);
        p->isr_count = 0;
        for (uint32_t i = 0; i < p->member_count; i++)
            p->isr_count += p->members[i].in_isr;
    }
    return high_watermark_move(p, ends, min_insync);
}

int64_t partition_deadline(const struct partition *partition)
{
    int64_t earliest = INT64_MAX;
    if (partition->role != PARTITION_LEADER || partition->wishing) return earliest;
    for (uint32_t i = 0; i < partition->member_count; i++) {
        const struct member *member = &partition->members[i];
        if (!member->in_isr || member->id == partition->options.node_id) continue;
        earliest = MIN(earliest, member->caught_up_ms + partition->options.replica_lag_ms + 1);
    }
    return earliest;
}
