/* batch.h - record batches (magic 2): their header, checks, in-place changes, and walking over a
 * buffer of them.
 *
 *   offset size field                     offset size field
 *        0    8 base offset                   27    8 base timestamp (delete horizon: bit 6)
 *        8    4 length: bytes behind it       35    8 max timestamp
 *       12    4 partition leader epoch        43    8 producer id (-1: none)
 *       16    1 magic (2)                     51    2 producer epoch (-1)
 *       17    4 CRC-32C of bytes 21..end      53    4 base sequence (-1)
 *       21    2 attributes                    57    4 record count
 *       23    4 last offset delta             61   .. records, as one compressed blob if at all
 *
 * Big-endian. The first 17 bytes lie alike in magic 0 and 1 (there one message, bytes 12-15 its
 * CRC), so the magic can be read before the format is known; legacy.h has those. Base offset and
 * leader epoch are not under the CRC: a leader sets them in the receive buffer.
 *
 * A batch is valid when its length is at least 49 and the CRC holds; what a producer may send is
 * batch_validate.h's business. Input is never asserted. */
#pragma once

#include "base/bytes.h"
#include "base/view.h"
#include "record/record.h"

#define BATCH_AT_BASE_OFFSET       0u
#define BATCH_AT_LENGTH            8u
#define BATCH_AT_LEADER_EPOCH      12u
#define BATCH_AT_MAGIC             16u
#define BATCH_AT_CRC               17u
#define BATCH_AT_ATTRIBUTES        21u
#define BATCH_AT_LAST_OFFSET_DELTA 23u
#define BATCH_AT_BASE_TIMESTAMP    27u
#define BATCH_AT_MAX_TIMESTAMP     35u
#define BATCH_AT_PRODUCER_ID       43u
#define BATCH_AT_PRODUCER_EPOCH    51u
#define BATCH_AT_BASE_SEQUENCE     53u
#define BATCH_AT_RECORD_COUNT      57u
#define BATCH_HEADER_BYTES         61u /* Also the size of a batch without records. */
#define BATCH_FRAME_BYTES          12u /* Base offset and length: what `length` does not count. */
#define BATCH_MAGIC_BYTES          17u /* Enough to know length and magic. */
#define BATCH_LENGTH_MIN           14  /* The smallest `length` of any magic. */

#define BATCH_CODEC_MASK     0x07u
#define BATCH_APPEND_TIME    0x08u /* Timestamp type LogAppendTime. */
#define BATCH_TRANSACTIONAL  0x10u
#define BATCH_CONTROL        0x20u
#define BATCH_DELETE_HORIZON 0x40u /* Base timestamp is the delete horizon. */

#define BATCH_NO_PRODUCER  (-1)
#define BATCH_NO_SEQUENCE  (-1)
#define BATCH_NO_TIMESTAMP (-1)

/* A batch's header in host order. For a message of magic 0 or 1: base_offset is the message's
 * offset (of a compressed one the last of its inner offsets), max_timestamp its timestamp (-1 for
 * magic 0), record_count -1 if compressed, else 1; what the format does not have is -1 or 0. */
struct batch_header {
    int64_t base_offset;
    int32_t length;
    int32_t leader_epoch;
    int8_t magic;
    uint16_t attributes;
    uint32_t crc;
    int32_t last_offset_delta;
    int64_t base_timestamp;
    int64_t max_timestamp;
    int64_t producer_id;
    int32_t base_sequence;
    int32_t record_count;
    int16_t producer_epoch;
};

static inline uint32_t batch_size(const struct batch_header *header)
{
    return BATCH_FRAME_BYTES + (uint32_t)header->length;
}

static inline uint8_t batch_codec(const struct batch_header *header)
{
    return header->attributes & BATCH_CODEC_MASK; /* May be 5 to 7. */
}

static inline int64_t batch_last_offset(const struct batch_header *header)
{
    return (int64_t)((uint64_t)header->base_offset + (uint64_t)(int64_t)header->last_offset_delta);
}

/* Sequence numbers go from 2147483647 to 0. `delta` >= 0. */
static inline int32_t batch_sequence_add(int32_t sequence, int32_t delta)
{
    return (int32_t)(((uint32_t)sequence + (uint32_t)delta) & 0x7fffffffu);
}

static inline int32_t batch_last_sequence(const struct batch_header *header)
{
    if (header->base_sequence == BATCH_NO_SEQUENCE) return BATCH_NO_SEQUENCE;
    return batch_sequence_add(header->base_sequence, header->last_offset_delta);
}

/* Size of the batch or message at the start of `prefix`, of which at least BATCH_MAGIC_BYTES must
 * be there; 0: its length is below the smallest, so this is no batch. Not limited by the prefix.
 * O(1). */
MUST_USE uint64_t batch_frame_size(struct view prefix);

/* Read the header at the start of `bytes`. The records need not be there: BATCH_HEADER_BYTES are
 * enough for magic 2, the message's fixed part for 0 and 1.
 *
 *   RECORD_OK
 *   RECORD_NO_BATCH   fewer bytes than a header needs
 *   RECORD_LENGTH     the length is below the magic's smallest (`out` is set as far as it goes)
 *   RECORD_MAGIC      neither 0, 1 nor 2
 *
 * Looks at nothing else. O(1). */
MUST_USE enum record_fault batch_header_load(struct view bytes, struct batch_header *out);

/* Does the CRC of a whole batch or message (header read by batch_header_load) hold? O(size). */
MUST_USE bool batch_crc_valid(const struct batch_header *header, struct view batch);

enum batch_checks {
    BATCH_CHECK_CRC = 1, /* The CRC holds. */
    BATCH_CHECK_COUNTS =
        2, /* Magic 2: no negative count or last offset delta, count <= delta + 1. */
};

/* Read and check the batch at the start of `bytes`, which must hold it whole (more may follow).
 * `checks`: a set of enum batch_checks.
 *
 *   RECORD_OK, or the first of
 *   RECORD_NO_BATCH, RECORD_LENGTH, RECORD_MAGIC   as batch_header_load; not all bytes are there
 *   RECORD_CRC        RECORD_CODEC   codec id above 4
 *   RECORD_LAST_DELTA, RECORD_COUNT, RECORD_COUNT_MISMATCH
 *
 * Cost: O(size) with BATCH_CHECK_CRC, else O(1). */
MUST_USE enum record_fault batch_check(struct view bytes,
                                       uint32_t checks,
                                       struct batch_header *out);

/* ---- a buffer of batches -------------------------------------------------------------------- */

/* Batches one behind the other, as in a produce request, a fetch response or a segment. */
struct batch_scan {
    struct view bytes;
    uint32_t at;             /* Of the next batch: all before it are complete ("valid bytes"). */
    bool frames;             /* Yield also what is complete but too short for its magic; only base
                                offset, length and magic are set of its header. */
    enum record_fault fault; /* Why it stopped, RECORD_OK at the end (also before a cut batch). */
};

static inline struct batch_scan batch_scan_of(struct view bytes)
{
    return (struct batch_scan){.bytes = bytes};
}

/* The next complete batch or message. False: the end, a partial one (scan->at < bytes.size), or a
 * fault: RECORD_LENGTH, RECORD_MAGIC. No CRC is checked. */
MUST_USE bool batch_next(struct batch_scan *scan, struct batch_header *out, struct view *batch);

/* ---- changes in place ----------------------------------------------------------------------- */

/* Base offset and leader epoch, as a leader stamps them. O(1), the CRC stays. */
void batch_stamp(uint8_t *batch, int64_t base_offset, int32_t leader_epoch);

/* Timestamp type and largest timestamp, as a leader sets them after validation. Nothing is written
 * when both are as wanted; otherwise attributes are composed from the known bits, and the CRC is
 * computed anew. `size` is the whole batch. Returns whether it wrote. O(1) or O(size). */
bool batch_set_timestamp(uint8_t *batch, uint32_t size, bool append_time, int64_t max_timestamp_ms);

/* Write the header (magic 2) in front of records that are in place, with the CRC computed from
 * them: header->crc is not looked at. `batch` has header->length + 12 bytes. O(size). */
void batch_header_store(const struct batch_header *header, uint8_t *batch);
