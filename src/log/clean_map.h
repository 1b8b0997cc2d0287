/* clean_map.h - compaction's memory of the newest offset of each key, and of transactions.
 *
 * Keys are kept as 128 bits of two seeded hashes, so that a pass costs 24 bytes a key whatever keys
 * are; the seeds are random per pass, so no client can make keys collide. Nothing of it is stored.
 */
#pragma once

#include "base/map.h"
#include "base/mem.h"
#include "base/view.h"

struct clean_slot {
    uint64_t hash_low; /* Both zero: empty. */
    uint64_t hash_high;
    int64_t offset;
};

struct clean_map {
    struct clean_slot *slots;
    uint32_t slot_count; /* A power of two. */
    uint32_t used;
    uint32_t used_max; /* Kafka's load factor, 0.9. */
    uint64_t seeds[2];
    int64_t offset_end; /* All records below have been taken in. */
};

/* Room for about `keys` keys, at most `max_bytes`. False: no memory. */
MUST_USE bool clean_map_begin(struct clean_map *map,
                              struct mem *mem,
                              uint64_t keys,
                              uint64_t max_bytes);
void clean_map_end(struct clean_map *map, struct mem *mem);

/* This key's newest offset is `offset` (they rise). False: the map is full, nothing changed. */
MUST_USE bool clean_map_put(struct clean_map *map, struct view key, int64_t offset);

/* The key's newest offset, -1 if it has none here. */
int64_t clean_map_get(const struct clean_map *map, struct view key);

/* ---- transactions -----------------------------------------------------------------------------
 */

struct clean_aborted {
    int64_t producer_id;
    int64_t offset_first;
    int64_t offset_last;
    int64_t last_stable;
};

struct clean_producer {
    struct map_node node;
    int64_t id;
    bool aborting;  /* Inside an aborted transaction, */
    bool observed;  /* of which a data batch was seen in this pass. */
    bool committed; /* A data batch of one that was not aborted was seen. */
    struct clean_aborted transaction;
};

/* Follows the transactions through the batches of a pass, in order. */
struct clean_txns {
    struct mem *mem;
    struct map map;
    const struct clean_aborted *aborted; /* By offset_first. */
    uint32_t aborted_count;
    uint32_t next; /* The first that has not begun yet. */
};

void clean_txns_begin(struct clean_txns *txns,
                      struct mem *mem,
                      const struct clean_aborted *aborted,
                      uint32_t count);
void clean_txns_end(struct clean_txns *txns);

struct clean_seen {
    bool discardable; /* Data of an aborted transaction, or a marker whose data is all gone. */
    bool keep_abort;  /* An abort marker that stays: its txn index entry stays too. */
    struct clean_aborted transaction;
};

/* The next data batch of a transaction. False: no memory. */
MUST_USE bool clean_txns_data(struct clean_txns *txns,
                              int64_t producer_id,
                              int64_t last_offset,
                              struct clean_seen *out);

/* The next marker. False: no memory. */
MUST_USE bool clean_txns_marker(struct clean_txns *txns,
                                int64_t producer_id,
                                int64_t offset,
                                bool commit,
                                struct clean_seen *out);
