/* quorum_internal.h - what the files quorum*.c share: the machine's state. */
#pragma once

#include "core/quorum_voters.h"

#define QUORUM_EFFECTS_MAX 8u

/* A node that fetches the log and is no voter. */
struct quorum_observer {
    struct list link; /* In `observers`, the one that fetched last at the end. */
    int32_t id;
    struct uuid directory;
    int64_t end;        /* Its log end: where it fetched last. */
    int64_t leader_end; /* This log's end then. */
    int64_t fetched_ms; /* Monotonic: for forgetting it. */
    int64_t fetched_wall_ms;
    int64_t caught_up_wall_ms; /* When it had all that there was; -1: not yet. */
};

struct quorum {
    struct mem *mem;
    struct view cluster_id;
    enum quorum_role role;
    int32_t epoch;
    int32_t leader_id;
    int32_t voted_id;
    struct uuid voted_directory;
    int64_t epoch_start; /* -1: not leading. */
    int64_t high_watermark;
    struct voter_set *self; /* One voter: this node, as it is now. */
    struct list sets;       /* Of voter_set, oldest first. */
    struct list observers;  /* Of quorum_observer. */
    uint32_t observer_count;
    int16_t kraft_version;
    bool is_voter;
    bool voters_from_checkpoint;
    bool persisting; /* A QUORUM_PERSIST was taken and is not durable yet. */
    struct quorum_effect effects[QUORUM_EFFECTS_MAX];
    uint32_t effect_count;
};

/* The newest voter set. */
static inline const struct voter_set *quorum_set(const struct quorum *q)
{
    return (const struct voter_set *)(const void *)((const char *)q->sets.previous -
                                                    offsetof(struct voter_set, link));
}

/* quorum_describe.c: this node has fetched up to `end`. Without memory, or beyond the cap, it is
 * not remembered, which only DescribeQuorum shows. */
void quorum_observed(struct quorum *quorum,
                     const struct quorum_event *event,
                     int32_t id,
                     struct uuid directory,
                     int64_t end);
void quorum_observers_free(struct quorum *quorum);
