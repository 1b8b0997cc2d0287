/* fetch.h - shared by fetch.c (reading, waiting, answering), fetch_request.c (sessions, items) and
 * fetch_spread.c (partitions of other shards). */
#pragma once

#include "broker/broker.h"

/* A file range on its way out, with the log's hold on the file. */
struct fetch_range {
    struct net_range net;
    struct log_range log;
};

struct fetch_old;
struct errand;
struct fetch_spread;
struct fetch_response_partition_data;

struct fetch_item {
    struct replica_wait wait;
    struct fetch *fetch;
    struct fetch_partition *cached; /* In the session; NULL without one. */
    struct fetch_wanted wanted;
    struct replica *replica;
    struct log_range range;
    struct view old_set; /* Below version 4: what goes out in place of the range. */
    int64_t high_watermark, last_stable, log_start; /* -1 with an error. */
    int64_t diverging_end;
    int32_t diverging_epoch;
    int16_t error;
    bool diverging;
    bool opening; /* The log is not in memory yet. */
    /* Of a fetch that is spread over shards: what the owner has answered, and its bearer. */
    const struct fetch_response_partition_data *told;
    struct errand *errand;
};

struct fetch {
    struct request *request;
    struct node *node;
    struct fetch_session *session; /* NULL: none. */
    struct fetch_item *items;
    uint32_t item_count;
    uint32_t max_bytes, min_bytes;
    int32_t replica_id;
    int64_t replica_epoch;
    bool by_topic_id;
    bool read_committed;
    bool full;                   /* Every item is in the answer. */
    struct fetch_spread *spread; /* NULL: all items are this shard's. */
    struct fetch_old *old;       /* Below version 4: who turned the items' bytes. */
    struct list due;
    struct shard_timer timeout;
};

/* From the request's own fields; no items yet. */
void fetch_init(struct fetch *fetch, struct request *request);
void fetch_item_init(struct fetch *fetch,
                     struct fetch_item *item,
                     const struct fetch_wanted *wanted);

/* The bytes of a range as the value of the answer's `records`: copied if they are few, else from
 * the file; the answer holds the file then and `range` is empty. */
struct view fetch_records(struct request *request, struct log_range *range);

/* The client is gone: end. */
void fetch_gone(struct request *request);

/* Read and answer, or wait. Ends the request. */
void fetch_start(struct fetch *fetch, int32_t max_wait_ms);

/* Answer with what the items have found. Ends the request. */
void fetch_answer(struct fetch *fetch);

/* fetch_spread.c. Has it items of other shards? */
bool fetch_is_spread(const struct fetch *fetch);

/* Have all shards read their items, and answer or wait as fetch_start. Ends the request. */
void fetch_spread_start(struct fetch *fetch, int32_t max_wait_ms);
