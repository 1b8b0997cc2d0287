/* cluster_assign.h - new partitions: where they go, whether that is possible, their records.
 *
 * Internal to the controller. */
#pragma once

#include "core/cluster_internal.h"

/* The replicas of partitions that are to be. */
struct cluster_assigned {
    struct image_ids *items;
    uint32_t count;
};

/* What is wrong with an assignment by hand in which each partition must have `factor` replicas; the
 * null view if nothing is. */
struct view cluster_assign_fault(const struct cluster *cluster,
                                 struct step *step,
                                 const struct cluster_assigned *partitions,
                                 uint32_t factor);

/* What is wrong with one replica list of a reassignment: any number of replicas. */
struct view cluster_assign_replicas_fault(const struct cluster *cluster,
                                          struct step *step,
                                          struct image_ids replicas);

/* Place `count` partitions of `factor` replicas. Null, or why it cannot be done. Without memory
 * null, the step's arena has failed and there are none. */
struct view cluster_assign_place(const struct cluster *cluster,
                                 struct step *step,
                                 uint32_t count,
                                 int32_t factor,
                                 struct cluster_assigned *out);

/* Add their records, numbered from `first`. False: no memory. */
MUST_USE bool cluster_assign_add(const struct cluster *cluster,
                                 struct step *step,
                                 struct uuid topic_id,
                                 int32_t first,
                                 const struct cluster_assigned *partitions);
