/* control.h - control records: what marks the end of transactions, and KRaft's.
 *
 * Key: i16 version (0), i16 type. Value of ABORT and COMMIT: i16 version (0), i32 coordinator
 * epoch; longer ones of later versions are read as that. The KRaft records' values are messages of
 * the schema (LeaderChangeMessage, SnapshotHeaderRecord, ...), which wire/ decodes. */
#pragma once

#include "record/batch_build.h"

enum control_type {
    CONTROL_UNKNOWN = -1, /* A type of a later version: to be skipped. */
    CONTROL_ABORT = 0,
    CONTROL_COMMIT = 1,
    CONTROL_LEADER_CHANGE = 2,
    CONTROL_SNAPSHOT_HEADER = 3,
    CONTROL_SNAPSHOT_FOOTER = 4,
    CONTROL_KRAFT_VERSION = 5,
    CONTROL_KRAFT_VOTERS = 6,
};

#define CONTROL_KEY_BYTES    4u
#define CONTROL_MARKER_BYTES 78u /* A whole batch with one end-of-transaction marker. */

/* The type in a control record's key. False: the key is null, shorter than 4 bytes, or its version
 * is negative. */
MUST_USE bool control_key_parse(struct view key, enum control_type *type);

/* "ABORT", "KRAFT_VOTERS", ...; "UNKNOWN". Static. */
const char *control_name(enum control_type type);

struct control_marker {
    bool commit; /* Else abort. */
    int32_t coordinator_epoch;
};

/* An end-of-transaction marker. False: neither ABORT nor COMMIT, or the value is null or shorter
 * than 6 bytes. */
MUST_USE bool control_marker_parse(struct view key, struct view value, struct control_marker *out);

struct control_marker_batch {
    int64_t base_offset;
    int32_t leader_epoch;
    int64_t producer_id;
    int16_t producer_epoch;
    int64_t timestamp_ms;
    struct control_marker marker;
};

/* Write the marker's whole batch. */
void control_marker_store(const struct control_marker_batch *marker,
                          uint8_t out[CONTROL_MARKER_BYTES]);

/* Append a control record of a KRaft type to a batch begun with options.control; `value` is the
 * encoded message. */
void control_add(struct batch_build *build,
                 enum control_type type,
                 struct view value,
                 int64_t timestamp_ms);
