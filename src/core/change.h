/* change.h - building one PartitionChangeRecord: targets in, elections and ELR worked out.
 *
 *     change_begin(&change, cluster, step, place);
 *     change.isr = ...;                    set what is to be different
 *     result = change_end(&change);        adds the record, if anything is
 *
 * Internal to the controller. */
#pragma once

#include "core/cluster_internal.h"

enum change_election {
    CHANGE_ONLINE,    /* Keep the leader if it can lead, else the first in sync. */
    CHANGE_PREFERRED, /* The first replica if it can lead. */
    CHANGE_UNCLEAN    /* As online; then any live replica, though data may be lost. */
};

struct change_place {
    const struct image_topic *topic;
    int32_t index;
};

struct change {
    const struct cluster *cluster;
    struct step *step;
    struct change_place place;
    const struct image_partition *now;

    /* Brokers whose liveness is other than the image has it, -1: none. */
    int32_t dead;    /* Must not lead. */
    int32_t unclean; /* The same, and may have lost data: not in the ELR either. */
    int32_t alive;   /* May lead. */
    int32_t losing;  /* This broker loses the directories below. */
    const struct uuid *lost;
    uint32_t lost_count;

    enum change_election election;
    struct image_ids isr; /* Targets: begin as what is. */
    struct image_ids replicas;
    struct image_ids adding;
    struct image_ids removing;
    struct image_ids elr;
    const struct uuid *directories; /* Of the target replicas; NULL: as they are. */
    int8_t recovery;

    /* Of the election. */
    int32_t leader;
    bool left_behind; /* The choice may lose data. */
};

enum change_result {
    CHANGE_NONE, /* Nothing is different: no record. */
    CHANGE_MADE, /* A record was added. */
    CHANGE_E_MEMORY
};

/* The partition must exist. The election follows from the topic's setting. */
void change_begin(struct change *change,
                  const struct cluster *cluster,
                  struct step *step,
                  struct change_place place);

MUST_USE enum change_result change_end(struct change *change);

/* Could this broker lead the partition as far as its own state goes? */
bool change_acceptable(const struct change *change, int32_t broker);

/* The partition as it will be after the record: for answers. */
struct change_outcome {
    int32_t leader;
    int32_t leader_epoch;
    int32_t partition_epoch;
    struct image_ids isr;
    int8_t recovery;
};
struct change_outcome change_outcome(const struct change *change, enum change_result result);

/* Lists of ids, in the arena. NULL items with a count above 0: no memory. */
struct image_ids change_without(struct arena *arena, struct image_ids ids, struct image_ids out);
bool change_ids_equal(struct image_ids a, struct image_ids b);
bool change_ids_cover(struct image_ids ids, struct image_ids all);

/* A list of one id that lives in the caller. */
static inline struct image_ids change_one(const int32_t *id)
{
    return (struct image_ids){id, *id >= 0 ? 1 : 0};
}

/* Where a new replica on this broker lies by default. */
struct uuid change_default_directory(const struct image *image, int32_t id);

/* What to do with many partitions: those that `concerns` says get the same overrides. */
struct change_sweep {
    int32_t dead;
    int32_t unclean;
    int32_t alive;
    int32_t losing;
    const struct uuid *lost;
    uint32_t lost_count;
    bool in_lost;     /* Which: only where `losing` has one of the lost directories; of these */
    bool in_isr;      /* with `dead` in the ISR, */
    bool in_elr;      /* or in the ELR, */
    bool leaderless;  /* or without a leader. */
    uint32_t reserve; /* Records that the caller adds afterwards. */
};

/* Add the changes of all partitions concerned: STEP_DONE; STEP_MORE when the step is full (apply
 * and sweep again: what is done is not found again); STEP_E_MEMORY. Cost: O(partitions), or less
 * when all that can be found are found. */
MUST_USE enum step_result change_sweep(const struct cluster *cluster,
                                       struct step *step,
                                       const struct change_sweep *sweep);
