/* requests.h - the requests that the workloads are made of, in versions that Apache Kafka 4.4 and
 * Dohle both serve and that name topics, so that one frame fits every server.
 *
 * `_frame` functions append one frame to a sink, `_call` functions make the whole exchange and end
 * the program when the answer is an error. */
#pragma once

#include "bench/lib/client.h"
#include "record/compress.h"

#define REQUESTS_CORRELATION_AT 8u /* Where in a frame the correlation id lies, big-endian. */

/* What a topic's partition is to get: `records` of `record_bytes` each, in one batch. */
struct produce_shape {
    const char *topic;
    int32_t partition;
    uint32_t records;
    uint32_t record_bytes;
    int16_t acks;
    enum codec codec; /* The records are text of words then, or a codec would find nothing. */
};

/* Where to read from, and how much at most. */
struct fetch_shape {
    const char *topic;
    int32_t partition;
    int64_t offset;
    int32_t bytes_max;
    int32_t wait_ms;
};

/* A member of a classic group, as the coordinator knows it. */
struct group_member {
    char group[64];
    char id[128];
    int32_t generation;
};

/* Produce v9. */
void produce_frame(struct sink *out, const struct produce_shape *shape);

/* Is a Produce answer (without its length) to a topic's one partition good? `version`: that of the
 * request. */
bool produce_answer_fine(struct view head, const char *topic, int16_t version);

/* Bytes of the batch in it. */
uint32_t produce_batch_bytes(const struct produce_shape *shape, struct mem *mem);

/* Is the answer of a Produce v9 frame good? -1: yes; else the error code. */
int16_t produce_error(struct client *client);

/* Fetch v12 without a session. */
void fetch_frame(struct sink *out, const struct fetch_shape *shape);

/* Fetch, and the records of the answer; they live until the next call. */
struct view fetch_call(struct client *client, const struct fetch_shape *shape);

/* Where in a frame of fetch_frame the offset lies, big-endian. */
uint32_t fetch_offset_at(struct view frame);

/* Heartbeat v4. */
void heartbeat_frame(struct sink *out, const struct group_member *member);

/* CreateTopics v7 with one replica; `_try` does not care for the answer's error. */
void create_topic_call(struct client *client, const char *name, int32_t partitions);
void create_topic_try(struct client *client, const char *name, int32_t partitions);

/* JoinGroup v9 and SyncGroup v5: makes the only member of its group, or one of many that join
 * without waiting for a leader's assignment to matter. member->group is given. */
void join_group_call(struct client *client, struct group_member *member);

/* ConsumerGroupHeartbeat v1: makes a member that subscribes to a topic that is not there, then the
 * frame of one that changes nothing. member->group and member->id are given. */
void consumer_join_call(struct client *client, struct group_member *member);
void consumer_heartbeat_frame(struct sink *out, const struct group_member *member);

/* ListOffsets v7: where the partition ends. `_try` returns the answer's error, 0 for none. */
int16_t end_offset_try(struct client *client, const char *name, int32_t index, int64_t *offset);
int64_t end_offset_call(struct client *client, const char *name, int32_t index);
