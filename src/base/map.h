/* map.h - intrusive hash maps: chained, the node lives in the element, the map owns its buckets.
 *
 * The key is a view of bytes that live in the element (or an integer seen as bytes); `map_foreach`
 * goes in bucket order, which depends on the seed only, never on addresses: runs repeat. */
#pragma once

#include "base/mem.h"
#include "base/view.h"

struct map_node {
    struct map_node *next;
    struct view key; /* View of bytes in the element; must not change while it is in the map. */
    uint64_t hash;
};

struct map {
    struct mem *mem;
    struct map_node **buckets; /* A power of two of them; NULL while the map is empty. */
    uint32_t bucket_count;
    uint32_t count;
    uint64_t seed; /* Random per map: no client can choose colliding keys. */
};

void map_init(struct map *map, struct mem *mem, uint64_t seed);

/* Free the buckets. The elements are the caller's to free, before. */
void map_free(struct map *map);

/* The node with these key bytes, or NULL. O(1). */
struct map_node *map_find(const struct map *map, struct view key);

/* Put a node whose `key` is set and not in the map yet. False: no memory to grow, nothing changed.
 */
MUST_USE bool map_insert(struct map *map, struct map_node *node);

/* Take out a node that is in the map. */
void map_remove(struct map *map, struct map_node *node);

/* Next node after `node` in bucket order, the first for NULL; NULL at the end. To remove while
 * walking, ask for the next node first. */
struct map_node *map_next(const struct map *map, const struct map_node *node);

#define map_foreach(node, map)                                                                     \
    for (struct map_node *node = map_next((map), NULL); node != NULL; node = map_next((map), node))

/* A seeded 64-bit hash of bytes; equal on every machine. */
uint64_t map_hash(uint64_t seed, struct view key);
