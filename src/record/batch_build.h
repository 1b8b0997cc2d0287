/* batch_build.h - making a batch: records are appended, compressed as they come, and the header is
 * put in front at the end.
 *
 * Used for all that the server writes itself (coordinators, markers, metadata, compaction,
 * recompression), by the client commands and by tests. */
#pragma once

#include "record/batch.h"

struct batch_build_options {
    int64_t base_offset;
    int32_t leader_epoch; /* -1 as a producer sends it. */
    enum codec codec;
    int32_t level; /* COMPRESS_LEVEL_DEFAULT, or legal for the codec. */
    bool append_time;
    int64_t append_time_ms; /* With append_time: the batch's max timestamp. */
    bool transactional;
    bool control;
    bool has_delete_horizon;
    int64_t delete_horizon_ms; /* Base timestamp then. */
    int64_t producer_id;       /* BATCH_NO_PRODUCER, or with epoch and sequence. */
    int16_t producer_epoch;
    int32_t base_sequence;
};

/* Options of an ordinary batch: no producer, no codec, CreateTime, leader epoch -1, offset 0. */
extern const struct batch_build_options batch_build_plain;

/* A record to append. */
struct record_input {
    int64_t timestamp_ms; /* -1: none. */
    struct view key;
    struct view value;
    const struct record_header *headers; /* header_count of them, or NULL and */
    struct view header_bytes;            /* the same encoded, as in struct record. */
    int32_t header_count;
    int32_t offset_delta; /* Used with batch_build_add_at only. */
};

struct batch_build {
    struct batch_build_options options;
    struct sink *out;
    uint32_t start;      /* Of the batch in `out`. */
    struct sink scratch; /* One record's bytes, when they are compressed. */
    struct compress stream;
    int64_t base_timestamp_ms; /* The first record's, or the delete horizon. */
    int64_t max_timestamp_ms;
    int32_t last_delta; /* -1 before the first record. */
    int32_t count;
    enum record_fault fault;
};

/* Start a batch behind what `out` holds already. With a codec it takes the work's writing side
 * until the finish; without one `work` may be NULL. */
void batch_build_begin(struct batch_build *build,
                       struct compress_work *work,
                       struct sink *out,
                       const struct batch_build_options *options);

/* Append a record at the next offset delta. Goes inert after a failure. */
void batch_build_add(struct batch_build *build, const struct record_input *record);

/* Append at record->offset_delta, which must be above the last one (assert): compaction keeps gaps.
 */
void batch_build_add_at(struct batch_build *build, const struct record_input *record);

/* Bytes of the batch as it stands: exact without a codec, what has been flushed so far with one. */
uint32_t batch_build_size(const struct batch_build *build);

/* Finish: the header is written, `*batch` is a view of the sink's bytes. `last_delta`: at least the
 * last record's offset delta, or -1 for exactly that one (a batch without records needs it >= 0).
 *
 *   RECORD_OK
 *   RECORD_TOO_LARGE   the sink's limit; the sink is as long as before the begin
 *   RECORD_MEMORY      the same, no memory */
MUST_USE enum record_fault batch_build_finish(struct batch_build *build,
                                              int32_t last_delta,
                                              struct view *batch);

/* Give up; the sink is as long as before the begin. */
void batch_build_abort(struct batch_build *build);

/* Size of a record with that offset delta and timestamp delta, length field included. O(headers).
 */
uint32_t batch_build_record_size(const struct record_input *record,
                                 int32_t offset_delta,
                                 int64_t timestamp_delta);
