/* clean_map.c - an open-addressed table of hashes, and a small map of producers. */
#include "log/clean_map.h"

bool clean_map_begin(struct clean_map *map, struct mem *mem, uint64_t keys, uint64_t max_bytes)
{
    uint64_t slots = 1024;
    uint64_t wanted = keys + keys / 8 + 1;
    while (slots < wanted && slots * 2 * sizeof(struct clean_slot) <= max_bytes &&
           slots < (1u << 30))
        slots *= 2;
    map->slots = mem_get(mem, slots * sizeof(map->slots[0]));
    map->slot_count = map->slots == NULL ? 0 : (uint32_t)slots;
    map->used = 0;
    map->used_max = (uint32_t)(slots / 10 * 9);
    return map->slots != NULL;
}

void clean_map_end(struct clean_map *map, struct mem *mem)
{
    map->slots = mem_put(mem, map->slots, (size_t)map->slot_count * sizeof(map->slots[0]));
    map->slot_count = 0;
}

/* The slot of this key, or the empty one where it would go. */
static struct clean_slot *clean_slot(const struct clean_map *map, struct view key, uint64_t hash[2])
{
    hash[0] = map_hash(map->seeds[0], key);
    hash[1] = map_hash(map->seeds[1], key) | 1; /* Never the empty slot's zeros. */
    uint32_t at = (uint32_t)hash[0] & (map->slot_count - 1);
    for (;;) {
        struct clean_slot *slot = &map->slots[at];
        if (slot->hash_high == 0) return slot;
        if (slot->hash_low == hash[0] && slot->hash_high == hash[1]) return slot;
        at = (at + 1) & (map->slot_count - 1);
    }
}

bool clean_map_put(struct clean_map *map, struct view key, int64_t offset)
{
    uint64_t hash[2];
    struct clean_slot *slot = clean_slot(map, key, hash);
    if (slot->hash_high == 0) {
        if (map->used >= map->used_max) return false;
        map->used++;
    }
    *slot = (struct clean_slot){hash[0], hash[1], offset};
    return true;
}

int64_t clean_map_get(const struct clean_map *map, struct view key)
{
    uint64_t hash[2];
    const struct clean_slot *slot = clean_slot(map, key, hash);
    return slot->hash_high == 0 ? -1 : slot->offset;
}

/* ---- transactions -----------------------------------------------------------------------------
 */

void clean_txns_begin(struct clean_txns *txns,
                      struct mem *mem,
                      const struct clean_aborted *aborted,
                      uint32_t count)
{
    *txns = (struct clean_txns){.mem = mem, .aborted = aborted, .aborted_count = count};
    map_init(&txns->map, mem, 0); /* Ids of producers are the server's own. */
}

void clean_txns_end(struct clean_txns *txns)
{
    struct map_node *node;
    while ((node = map_next(&txns->map, NULL)) != NULL) {
        map_remove(&txns->map, node);
        mem_put(txns->mem, container_of(node, struct clean_producer, node),
                sizeof(struct clean_producer));
    }
    map_free(&txns->map);
}

static struct clean_producer *clean_producer(struct clean_txns *txns, int64_t id)
{
    struct map_node *node = map_find(&txns->map, view_of(&id, sizeof(id)));
    if (node != NULL) return container_of(node, struct clean_producer, node);
    struct clean_producer *producer = mem_get(txns->mem, sizeof(*producer));
    if (producer == NULL) return NULL;
    producer->id = id;
    producer->node.key = view_of(&producer->id, sizeof(producer->id));
    if (map_insert(&txns->map, &producer->node)) return producer;
    mem_put(txns->mem, producer, sizeof(*producer));
    return NULL;
}

/* Begin the aborted transactions up to `offset`. */
static bool clean_begin_up_to(struct clean_txns *txns, int64_t offset)
{
    while (txns->next < txns->aborted_count && txns->aborted[txns->next].offset_first <= offset) {
        const struct clean_aborted *aborted = &txns->aborted[txns->next];
        struct clean_producer *producer = clean_producer(txns, aborted->producer_id);
        if (producer == NULL) return false;
        producer->aborting = true;
        producer->observed = false;
        producer->transaction = *aborted;
        txns->next++;
    }
    return true;
}

bool clean_txns_data(struct clean_txns *txns,
                     int64_t producer_id,
                     int64_t last_offset,
                     struct clean_seen *out)
{
    *out = (struct clean_seen){0};
    if (!clean_begin_up_to(txns, last_offset)) return false;
    struct clean_producer *producer = clean_producer(txns, producer_id);
    if (producer == NULL) return false;
    if (producer->aborting) {
        producer->observed = true;
        out->discardable = true;
    } else {
        producer->committed = true;
    }
    return true;
}

bool clean_txns_marker(struct clean_txns *txns,
                       int64_t producer_id,
                       int64_t offset,
                       bool commit,
                       struct clean_seen *out)
{
    *out = (struct clean_seen){0};
    if (!clean_begin_up_to(txns, offset)) return false;
    struct clean_producer *producer = clean_producer(txns, producer_id);
    if (producer == NULL) return false;
    if (commit) {
        out->discardable = !producer->committed;
        producer->committed = false;
        return true;
    }
    out->keep_abort = producer->aborting && producer->observed;
    out->discardable = !out->keep_abort;
    out->transaction = producer->transaction;
    producer->aborting = false;
    return true;
}
