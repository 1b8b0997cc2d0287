/* index.h - a segment's sorted arrays of fixed-width entries, in memory as they are in the file.
 *
 * Three kinds, one beside each %020d.log, all big-endian, without header, sorted strictly upwards:
 *
 *   .index      8 bytes   i32 last offset of the batch - segment base; i32 position of its first
 *                         byte. The batches in between have no entry, nor has the first of a
 *                         segment.
 *   .timeindex  12 bytes  i64 timestamp; i32 last offset of the batch that has it - base. All
 *                         batches up to that one have no larger timestamp.
 *   .txnindex   34 bytes  i16 version 0; i64 producer id; i64 first offset; i64 last offset (the
 *                         abort marker's, the key); i64 last stable offset after it.
 *
 * The file is valid when its size is a multiple of the width (Kafka rounds down), the keys rise,
 * and no position lies behind the segment's end. A file that ends in zeros was not closed cleanly.
 * While a segment is active its index lives here only; index_store() appends what is new. */
#pragma once

#include "base/bytes.h"
#include "base/mem.h"
#include "io/io.h"

#define INDEX_OFFSET_BYTES 8u
#define INDEX_TIME_BYTES   12u
#define INDEX_TXN_BYTES    34u

struct index {
    uint8_t *entries; /* count * width bytes of capacity * width. */
    uint32_t count;
    uint32_t capacity;
    uint32_t stored; /* Entries at the front that the file has too. */
    uint8_t width;
    bool loaded; /* The entries are here; else `count` is what the file has. */
};

struct index_offset {
    uint32_t relative; /* Last offset of the batch, from the segment's base. */
    uint32_t at_bytes;
};

struct index_time {
    int64_t timestamp_ms;
    uint32_t relative;
};

struct index_txn {
    int64_t producer_id;
    int64_t offset_first;
    int64_t offset_last;
    int64_t last_stable;
};

/* An empty, loaded index. */
static inline struct index index_new(uint8_t width)
{
    return (struct index){.width = width, .loaded = true};
}

/* Room for `more` entries. False: no memory, nothing changed. */
MUST_USE bool index_reserve(struct mem *mem, struct index *index, uint32_t more);

/* Make the empty `to` hold what `from` holds. False: no memory. */
MUST_USE bool index_copy(struct mem *mem, struct index *to, const struct index *from);

/* Give the memory back; what the file has stays known by `count`, unless entries are not stored
 * (then they are lost). */
void index_unload(struct mem *mem, struct index *index);

/* Add an entry; room has been reserved, the key is above the last one (for times: the timestamp;
 * the offset does not fall). */
void index_add_offset(struct index *index, struct index_offset entry);
void index_add_time(struct index *index, struct index_time entry);
void index_add_txn(struct index *index, const struct index_txn *entry);

struct index_offset index_get_offset(const struct index *index, uint32_t i);
struct index_time index_get_time(const struct index *index, uint32_t i);
struct index_txn index_get_txn(const struct index *index, uint32_t i);

/* Greatest entry with a key <= the asked one; false: none. O(log n). */
MUST_USE bool index_floor_offset(const struct index *index,
                                 uint32_t relative,
                                 struct index_offset *out);
MUST_USE bool index_floor_time(const struct index *index,
                               int64_t timestamp_ms,
                               struct index_time *out);

/* Greatest entry with a position <= `at_bytes`; false: none. */
MUST_USE bool index_floor_position(const struct index *index,
                                   uint32_t at_bytes,
                                   struct index_offset *out);

/* Drop the entries whose last offset is at or above: `relative` to the base, `offset` absolute. */
void index_cut_offsets(struct index *index, uint32_t relative);
void index_cut_times(struct index *index, uint32_t relative);
void index_cut_txns(struct index *index, int64_t offset);

/* Are the entries such as can be? `segment_bytes` bounds positions, `base` the txn offsets. O(n).
 */
MUST_USE bool index_valid(const struct index *index, int64_t base, uint32_t segment_bytes);

/* Read a file. A size that is no multiple of the width is rounded down. 0, -ENOENT, -EFBIG above
 * `max_bytes`, -ENOMEM, -errno. Blocks. */
MUST_USE int index_load(struct io *io,
                        struct mem *mem,
                        const char *path,
                        uint32_t max_bytes,
                        struct index *index);

/* Make the file hold the `at` entries that it has and `more` behind them, and sync it. Creates it.
 * 0; -ENODATA: it has fewer, nothing has changed; -errno. Blocks. */
MUST_USE int index_extend(struct io *io, const char *path, uint32_t at, const struct index *more);

/* Make the file hold exactly the entries and sync it. Creates it. 0 or -errno. Blocks. Does not
 * change `index`: the caller sets `stored` when it knows. */
MUST_USE int index_store(struct io *io, const char *path, const struct index *index);
