/* partition_set.h - sets of partitions as consumer groups hand them out: sorted by topic id and
 * index, each with the epoch at which it was handed out.
 *
 * What an operation makes lies in an arena; a set that stays has a block of its own
 * (partition_set_keep). Each operation is one walk over its operands. */
#pragma once

#include "base/arena.h"

struct partition_item {
    struct uuid topic;
    int32_t partition;
    int32_t epoch; /* Not part of what is compared. */
};

/* Sorted by topic, then partition; none twice. */
struct partition_set {
    struct partition_item *items; /* NULL: empty. */
    uint32_t count;
};

/* The order of topic ids: by bytes. */
static inline int partition_topic_compare(struct uuid a, struct uuid b)
{
    return memcmp(a.bytes, b.bytes, sizeof(a.bytes));
}

static inline int partition_compare(const struct partition_item *a, const struct partition_item *b)
{
    int order = partition_topic_compare(a->topic, b->topic);
    return order != 0 ? order : (a->partition > b->partition) - (a->partition < b->partition);
}

/* An empty set with room for `capacity` items. False: no memory. */
MUST_USE bool partition_set_room(struct partition_set *set, struct arena *arena, size_t capacity);

/* Put items that were added in any order into a set's: sorted, each once (the first stands).
 * O(n log n). */
void partition_set_sort(struct partition_set *set);

/* Same partitions / the same and with the same epochs. */
bool partition_set_equal(const struct partition_set *a, const struct partition_set *b);
bool partition_set_same(const struct partition_set *a, const struct partition_set *b);

bool partition_set_intersect(const struct partition_set *a, const struct partition_set *b);

/* Is each item of `part` in `whole`? */
bool partition_set_covers(const struct partition_set *whole, const struct partition_set *part);

/* The item, or NULL. O(log n). */
const struct partition_item *partition_set_find(const struct partition_set *set,
                                                struct uuid topic,
                                                int32_t partition);

/* Items of `a` that are in `b` / are not in `b`, with the epochs of `a`. False: no memory. */
MUST_USE bool partition_set_both(struct arena *arena,
                                 const struct partition_set *a,
                                 const struct partition_set *b,
                                 struct partition_set *out);
MUST_USE bool partition_set_minus(struct arena *arena,
                                  const struct partition_set *a,
                                  const struct partition_set *b,
                                  struct partition_set *out);

/* All of both; where an item is in both, that of `a` stands. */
MUST_USE bool partition_set_join(struct arena *arena,
                                 const struct partition_set *a,
                                 const struct partition_set *b,
                                 struct partition_set *out);

/* `to` becomes a copy of `from` in a block of its own; what it was is freed. False: no memory,
 * nothing has changed. */
MUST_USE bool partition_set_keep(struct mem *mem,
                                 struct partition_set *to,
                                 const struct partition_set *from);
void partition_set_free(struct mem *mem, struct partition_set *set);

/* How many topics it has. */
uint32_t partition_set_topics(const struct partition_set *set);

/* The items from `at` on that are of one topic: how many. */
uint32_t partition_set_run(const struct partition_set *set, uint32_t at);
