/* assignor.h - who gets which partition: the server-side assignors `range` and `uniform` of Kafka.
 *
 * Pure functions of their input: the same members in the same order give the same answer, so the
 * caller sorts them by id. Racks play no part, as in Kafka. */
#pragma once

#include "core/partition_set.h"

struct assignor_topic {
    struct uuid id;
    uint32_t partitions;
};

struct assignor_member {
    struct view id;
    struct view instance;   /* Null: a dynamic member. */
    const uint32_t *topics; /* What it subscribes to: indexes into the topics, ascending. */
    uint32_t topic_count;
    struct partition_set before; /* Its target so far. */
    struct partition_set target; /* Out: in the arena; epochs 0. */
};

struct assignor_input {
    const struct assignor_topic *topics; /* Sorted by id. */
    uint32_t topic_count;
    struct assignor_member *members;
    uint32_t member_count;
};

/* Compute all targets. False: no memory. Cost: O((partitions + members) log members) unless the
 * subscriptions differ, where balancing takes up to 16 rounds of O(moves x subscribers). */
typedef bool assignor(struct arena *arena, struct assignor_input *in);

assignor assignor_range;
assignor assignor_uniform;

/* The assignor with this name, or NULL. */
assignor *assignor_by_name(struct view name);
