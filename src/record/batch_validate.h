/* batch_validate.h - what a leader checks before it appends, as Apache Kafka 4.4 does.
 *
 * In Kafka's order: the frame of all that the partition got (one batch, magic, codec for the
 * request version, size, CRC), the batch's header, then every record, decompressed in a bounded
 * stream. Structure faults end the work at once; rules for single records are collected. Nothing is
 * changed here; on RECORD_OK the caller stamps the batch (batch_stamp, batch_set_timestamp) or
 * rebuilds it when `rebuild` says that the topic's compression.type asks for another codec.
 *
 * One difference on purpose: Kafka does not look at header counts and record lengths of compressed
 * batches that keep their codec; here all structure rules hold for all. And a batch may decompress
 * to at most RECORD_INFLATED_MAX. */
#pragma once

#include "base/arena.h"
#include "record/batch.h"

/* compression.type=producer: every batch keeps its codec. */
#define BATCH_CODEC_PRODUCER (-1)

enum batch_origin {
    BATCH_FROM_CLIENT,
    BATCH_FROM_COORDINATOR, /* Offsets, transactions, markers: header rules do not apply. */
};

struct batch_rules {
    enum batch_origin origin;
    int16_t produce_version;    /* Of the request; 3 to 13. INT16_MAX when there is none. */
    uint32_t message_bytes_max; /* max.message.bytes */
    bool compacted;             /* cleanup.policy has compact: keys are needed. */
    bool append_time;           /* message.timestamp.type=LogAppendTime */
    bool header_only;           /* dohle.produce.validation=header: records are not looked at. */
    int8_t codec;               /* compression.type: enum codec, or BATCH_CODEC_PRODUCER. */
    int32_t level;              /* compression.<codec>.level, or COMPRESS_LEVEL_DEFAULT. */
    int64_t before_max_ms;      /* message.timestamp.before.max.ms, .after.max.ms */
    int64_t after_max_ms;
    int64_t wall_ms; /* Now. */
};

/* A record that breaks a rule. */
struct batch_record_error {
    int32_t index; /* In the batch, from 0. */
    enum record_fault fault;
    int64_t timestamp_ms; /* Of the record. */
};

struct batch_verdict {
    enum record_fault fault;
    struct batch_header header; /* Set as far as it could be read. */
    uint32_t size_bytes;        /* Of the batch; what is behind it is to be dropped. */
    /* RECORD_OK: what to store. */
    bool append_time;
    int64_t max_timestamp_ms;
    bool rebuild; /* Call batch_recompress to `codec`. */
    enum codec codec;
    int32_t level; /* For the rebuild. */
    /* A rule for single records: the records, in order; RECORD_ERRORS_MAX of them at most. */
    struct batch_record_error *errors; /* In the arena. */
    int32_t error_count;               /* In `errors`. */
    int32_t error_total;               /* All. */
};

/* Check what one partition of a produce request (or a coordinator) brings.
 *
 * Returns verdict->fault: RECORD_OK, or which rule failed (record_fault_error gives the code; where
 * rules for single records failed, RECORD_TIME_RANGE or RECORD_TIME_TYPE wins over the others, as
 * in Kafka). Everything else is in the verdict.
 *
 * Cost: O(records' bytes), one CRC, one pass over decompressed bytes; memory at most
 * COMPRESS_WORK_MAX of the work's. Takes the work's reading side meanwhile. */
enum record_fault batch_validate(struct compress_work *work,
                                 struct arena *request,
                                 const struct batch_rules *rules,
                                 struct view bytes,
                                 struct batch_verdict *verdict);

/* Rebuild a validated batch with verdict->codec and level: same producer fields, transactional bit
 * and timestamps, offset deltas 0, 1, 2... `out` (empty; its limit should be max.message.bytes)
 * gets the batch with base offset 0 and leader epoch -1, to be stamped.
 *
 *   RECORD_OK, RECORD_TOO_LARGE (the sink's limit), RECORD_MEMORY, or a fault of the records
 *
 * Cost: decompression and compression of the batch: for a work lane, not for a shard's turn. */
MUST_USE enum record_fault batch_recompress(struct compress_work *work,
                                            const struct batch_verdict *verdict,
                                            struct view batch,
                                            struct sink *out);
