/* legacy.h - message sets of magic 0 and 1: reading them, making batches of them, and back.
 *
 *   offset size field
 *        0    8 offset            16    1 magic 0 or 1
 *        8    4 size behind it    17    1 attributes: bits 0-2 codec, bit 3 LogAppendTime (magic 1)
 *       12    4 CRC-32 of         18    8 timestamp (magic 1 only)
 *               bytes 16..end  18/26    4 key length (-1: null), key; 4 value length, value
 *
 * A message with a codec is a wrapper: its key is null and its value holds messages of the same
 * magic. Inner offsets: absolute in magic 0; in magic 1 counted from the first, the wrapper's
 * offset being the last one's. A wrapper offset of 0 in magic 1 means that they are absolute. */
#pragma once

#include "record/batch.h"
#include "record/batch_validate.h"

struct legacy_message {
    int64_t offset; /* As stored. */
    int8_t magic;
    uint8_t attributes;
    int64_t timestamp_ms; /* -1 in magic 0. */
    struct view key;
    struct view value;
};

/* The fields of the message at the start of `bytes`, which holds it whole (as batch_next gives it).
 * RECORD_SHORT: key or value run over its end. No CRC. */
MUST_USE enum record_fault legacy_message_load(struct view bytes, struct legacy_message *out);

/* The records of one message, wrapper or not, as records of a batch. */
struct legacy_iter {
    struct compress_work *work;
    struct legacy_message outer;
    struct view whole; /* The message's bytes. */
    struct sink inner; /* A wrapper's messages, decompressed. */
    uint32_t at;       /* Of the next one. */
    bool wrapper;
    int64_t offset_base; /* Added to inner offsets. */
    int32_t index;
    enum record_fault fault;
};

/* Start at a message. A wrapper is decompressed whole (at most to RECORD_INFLATED_MAX), since its
 * base offset is known only then. */
void legacy_iter_begin(struct legacy_iter *iter, struct compress_work *work, struct view message);

/* The next record: offset, timestamp, key and value are set. False: the end, or iter->fault. */
MUST_USE bool legacy_next(struct legacy_iter *iter, struct record *out);

enum record_fault legacy_iter_end(struct legacy_iter *iter);

/* record_find_time for a message of magic 0 or 1. */
MUST_USE enum record_fault legacy_find_time(struct compress_work *work,
                                            struct view message,
                                            int64_t timestamp_ms,
                                            int64_t offset_min,
                                            struct record_spot *spot);

/* Validate a message set of a produce request below version 3 and make one batch of magic 2 of it
 * in `out`, as Apache Kafka 3.9 did. verdict->codec, header and times are set as by batch_validate.
 * Magic 2 batches are none of its business: look at the first message's magic before. */
enum record_fault legacy_upgrade(struct compress_work *work,
                                 const struct batch_rules *rules,
                                 struct view set,
                                 struct sink *out,
                                 struct batch_verdict *verdict);

/* Make a message set of magic 0 or 1 of whole batches, as Apache Kafka 3.9 did for fetch requests
 * below version 4: control batches are left out, records below fetch_offset too where they are not
 * compressed; it ends before a zstd batch.
 *
 *   RECORD_OK         `out` has the set, perhaps empty
 *   RECORD_ZSTD_OLD   the first batch to convert is zstd, nothing was written
 *   other             a fault of the records, RECORD_TOO_LARGE (the sink), RECORD_MEMORY */
MUST_USE enum record_fault legacy_downgrade(struct compress_work *work,
                                            struct view batches,
                                            int8_t magic,
                                            int64_t fetch_offset,
                                            struct sink *out);
