/* log_config.h - what a topic may set about its logs: Kafka's names, units and defaults.
 *
 * The caller has parsed and checked the values (ranges: Kafka's TopicConfig). A log copies the
 * struct; log_configure() changes it at run time, for the next append, roll or task. `flush.ms` and
 * `flush.messages` have no place here: what is acknowledged is durable without them (docs/log.md).
 */
#pragma once

#include "base/base.h"

/* compression.type: the codec of a batch attribute, or "as the producer sent it". */
#define LOG_COMPRESSION_PRODUCER (-1)

/* No limit, for retention_bytes and retention_ms. */
#define LOG_RETENTION_UNLIMITED (-1)

struct log_config {
    int64_t segment_ms;                  /* segment.ms */
    int64_t segment_jitter_ms;           /* segment.jitter.ms */
    int64_t retention_ms;                /* retention.ms; < 0: unlimited */
    int64_t retention_bytes;             /* retention.bytes; < 0: unlimited */
    int64_t delete_retention_ms;         /* delete.retention.ms: how long a tombstone is kept */
    int64_t file_delete_delay_ms;        /* file.delete.delay.ms */
    int64_t min_compaction_lag_ms;       /* min.compaction.lag.ms */
    int64_t max_compaction_lag_ms;       /* max.compaction.lag.ms */
    int64_t timestamp_before_max_ms;     /* message.timestamp.before.max.ms */
    int64_t timestamp_after_max_ms;      /* message.timestamp.after.max.ms */
    int64_t producer_id_expiration_ms;   /* producer.id.expiration.ms, of the broker */
    uint32_t segment_bytes;              /* segment.bytes */
    uint32_t segment_index_bytes;        /* segment.index.bytes */
    uint32_t index_interval_bytes;       /* index.interval.bytes */
    uint32_t max_message_bytes;          /* max.message.bytes: of a batch, with its 12 bytes */
    uint32_t min_cleanable_dirty_permil; /* min.cleanable.dirty.ratio, in thousandths */
    int8_t compression;                  /* compression.type: enum codec, or _PRODUCER */
    int16_t compression_gzip_level;      /* compression.gzip.level */
    int16_t compression_lz4_level;       /* compression.lz4.level */
    int32_t compression_zstd_level;      /* compression.zstd.level */
    bool log_append_time;                /* message.timestamp.type = LogAppendTime */
    bool cleanup_compact;                /* cleanup.policy has `compact` */
    bool cleanup_delete;                 /* cleanup.policy has `delete` */
    bool header_only;                    /* dohle.produce.validation=header */
    bool preallocate;                    /* preallocate: blocks are reserved, the size is not */
};

#define LOG_CONFIG_DEFAULT                                                                         \
    ((struct log_config){                                                                          \
        .segment_ms = INT64_C(604800000),                                                          \
        .segment_jitter_ms = 0,                                                                    \
        .retention_ms = INT64_C(604800000),                                                        \
        .retention_bytes = LOG_RETENTION_UNLIMITED,                                                \
        .delete_retention_ms = INT64_C(86400000),                                                  \
        .file_delete_delay_ms = INT64_C(60000),                                                    \
        .min_compaction_lag_ms = 0,                                                                \
        .max_compaction_lag_ms = INT64_MAX,                                                        \
        .timestamp_before_max_ms = INT64_MAX,                                                      \
        .timestamp_after_max_ms = INT64_C(3600000),                                                \
        .producer_id_expiration_ms = INT64_C(86400000),                                            \
        .segment_bytes = 1073741824u,                                                              \
        .segment_index_bytes = 10485760u,                                                          \
        .index_interval_bytes = 4096u,                                                             \
        .max_message_bytes = 1048588u,                                                             \
        .min_cleanable_dirty_permil = 500u,                                                        \
        .compression = LOG_COMPRESSION_PRODUCER,                                                   \
        .compression_gzip_level = -1,                                                              \
        .compression_lz4_level = 9,                                                                \
        .compression_zstd_level = 3,                                                               \
        .log_append_time = false,                                                                  \
        .cleanup_compact = false,                                                                  \
        .cleanup_delete = true,                                                                    \
        .header_only = false,                                                                      \
        .preallocate = false,                                                                      \
    })
