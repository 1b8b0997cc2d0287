/* producers.h - what a log knows of idempotent and transactional producers.
 *
 * Per producer id: its epoch, its last five batches, its open transaction. Decide, then apply:
 * producers_check() says whether a batch may be appended, producers_apply() takes it in once it has
 * its offsets, and cannot fail because producers_reserve() came before. Loading replays the log's
 * batches through the same apply. A producer of epoch -1 is unknown: a mere reservation.
 *
 * The *first unstable offset* is the smallest first offset of an open transaction, or of one whose
 * marker is still at or above the high watermark.
 *
 * Snapshot file, %020d.snapshot (the number is the offset after the last batch taken in):
 *   i16 version 1 | u32 CRC-32C of all from byte 6 | i32 count | count times 46 bytes:
 *   i64 producer id, i16 epoch, i32 last sequence, i64 last offset, i32 offset delta, i64
 * timestamp, i32 coordinator epoch, i64 first offset of the open transaction (-1: none) Only the
 * newest batch of a producer is in it (sequence and offset -1, delta 0 if it has none). Valid:
 * version 1, CRC, and the size is that of the count. */
#pragma once

#include "base/limits.h"
#include "base/list.h"
#include "base/map.h"
#include "base/reader.h"
#include "log/log.h"
#include "record/batch.h"
#include "record/sink.h"

struct producer_batch {
    int64_t offset_last;
    int64_t timestamp_ms; /* The batch's maximum. */
    int32_t sequence_last;
    int32_t offset_delta; /* Last offset - first offset. */
};

struct producer {
    struct map_node node;
    int64_t id;
    int64_t timestamp_ms;     /* Of the last batch or marker; expiry counts from it. */
    int64_t txn_offset_first; /* -1: no open transaction. */
    int32_t coordinator_epoch;
    int16_t epoch;       /* -1: unknown. */
    uint8_t batch_count; /* Of `batches`, the oldest first. */
    struct producer_batch batches[LOG_PRODUCER_BATCHES];
};

/* A transaction from its first batch until the high watermark has passed its marker. */
struct producer_txn {
    struct list link; /* On `open` or `ended`, by offset_first. */
    int64_t producer_id;
    int64_t offset_first;
    int64_t offset_last; /* The marker's; -1 while open. */
};

struct producers {
    struct mem *mem;
    struct map map;
    struct list open;
    struct list ended;
    struct list spare;    /* Reserved transactions. */
    int64_t offset_end;   /* All batches below have been taken in. */
    int64_t snapshot_end; /* Of the newest snapshot file; -1: none. */
};

/* What a control batch says, if it ends a transaction. */
struct producer_marker {
    bool is_marker;
    bool commit;
    int32_t coordinator_epoch;
    int16_t txn_version; /* Of WriteTxnMarkers; 0 in a replay. */
};

void producers_init(struct producers *producers, struct mem *mem, uint64_t seed);

/* Forget all; `offset_end` becomes `offset`. */
void producers_clear(struct producers *producers, int64_t offset);
void producers_free(struct producers *producers);

/* The known producer of that id, or NULL. O(1). */
const struct producer *producers_find(const struct producers *producers, int64_t id);

/* Read the marker in a control batch (whole, magic 2). A control batch without records, or of
 * another type, is no marker. False: a marker that cannot be read. */
MUST_USE bool producers_marker(const struct batch_header *header,
                               struct view batch,
                               struct producer_marker *out);

/* May this batch be appended? (`log.md` 9.1-9.5.) Offsets in the header are not looked at.
 * LOG_OK; LOG_DUPLICATE and `*first_time` (client only); LOG_E_SEQUENCE, LOG_E_FENCED,
 * LOG_E_TXN_STATE, LOG_E_COORDINATOR_FENCED. O(1), changes nothing. */
MUST_USE int producers_check(const struct producers *producers,
                             const struct batch_header *header,
                             const struct producer_marker *marker,
                             enum log_origin origin,
                             struct producer_batch *first_time);

/* Make sure that one apply of a batch of this producer needs no memory; once for each batch. */
MUST_USE bool producers_reserve(struct producers *producers, int64_t producer_id);

/* Give back what was reserved and not used. */
void producers_trim(struct producers *producers);

/* A transaction that a marker ended. */
struct producer_ended {
    bool ended;
    bool aborted;
    int64_t offset_first;
    int64_t offset_last;
    int64_t last_stable; /* As the txn index wants it. */
};

/* Take in a batch that has its place in the log. Reserved before. O(1). */
void producers_apply(struct producers *producers,
                     const struct batch_header *header,
                     const struct producer_marker *marker,
                     struct producer_ended *out);

/* -1: none. O(ended transactions). */
int64_t producers_first_unstable(const struct producers *producers);

/* The high watermark has risen: forget ended transactions below it. */
void producers_watermark(struct producers *producers, int64_t offset);

/* The log start has risen: forget ended transactions below it. */
void producers_log_start(struct producers *producers, int64_t offset);

/* Forget producers without an open transaction that were silent for `expiration_ms`. O(n). */
void producers_expire(struct producers *producers, int64_t wall_ms, int64_t expiration_ms);

/* Append the snapshot file's bytes to `out`. O(n). */
void producers_write(const struct producers *producers, struct sink *out);

/* Take in a snapshot's producers (into an empty state); those expired and without an open
 * transaction are left out. LOG_OK; LOG_E_DAMAGED: the bytes are not valid; LOG_E_MEMORY: then some
 * are in. */
MUST_USE int producers_read(struct producers *producers,
                            struct view bytes,
                            int64_t wall_ms,
                            int64_t expiration_ms);
