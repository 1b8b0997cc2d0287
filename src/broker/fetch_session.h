/* fetch_session.h - incremental fetch sessions (KIP-227): which partitions a client follows.
 *
 * A session keeps its partitions in the order in which they are looked at: what was sent goes to
 * the end. The cache is bounded; who may be evicted follows Kafka's rules. Pure data:
 * the time comes in, nothing is sent from here. Memory: the node's. */
#pragma once

#include "base/limits.h"
#include "base/list.h"
#include "base/map.h"
#include "base/view.h"

#define FETCH_SESSION_SHARDS    8u
#define FETCH_SESSION_SHARD_IDS 268435455
#define FETCH_SESSION_EVICT_MS  120000

struct fetch_partition {
    struct list link;     /* In the session's order. */
    struct map_node node; /* By topic id or name, and partition. */
    uint32_t size_bytes;  /* Of this block. */
    struct uuid topic_id; /* Zero below version 13. */
    struct view name;     /* Behind the struct; empty from version 13 on. */
    int32_t partition;
    bool known; /* Its topic was there once: gone, it is an unknown topic and no unknown id. */
    int32_t max_bytes;
    int64_t fetch_offset;
    int64_t log_start_offset; /* The fetcher's own, of followers. */
    int32_t leader_epoch;
    int32_t last_fetched_epoch;
    int64_t sent_high_watermark; /* What the client was told last; -1: tell it anew. */
    int64_t sent_log_start;
    uint8_t key[TOPIC_NAME_MAX + 4];
};

struct fetch_session {
    struct map_node node;
    int32_t id;
    int32_t epoch; /* Expected next. */
    bool by_topic_id;
    bool privileged; /* A follower's. */
    bool busy;       /* A request of it is parked: it may not be evicted. */
    int64_t created_ms;
    int64_t used_ms;
    struct map by_key;
    struct list partitions;
    struct list link; /* In its shard, least recently used first. */
    uint32_t shard;
};

struct fetch_sessions {
    struct mem *mem;
    uint64_t seed;
    struct map by_id;
    struct list shards[FETCH_SESSION_SHARDS];
    uint32_t counts[FETCH_SESSION_SHARDS];
    uint32_t shard_max; /* Sessions of one shard. */
    uint32_t next_shard;
    uint32_t owner;  /* Ids leave this remainder... */
    uint32_t owners; /* ...when they are divided by so many: they name the node's shard. */
    uint64_t evictions;
};

/* `slots` sessions at most. One owner of one: set `owner` and `owners` if it is otherwise. */
void fetch_sessions_init(struct fetch_sessions *sessions,
                         struct mem *mem,
                         uint32_t slots,
                         uint64_t seed);
void fetch_sessions_free(struct fetch_sessions *sessions);

/* The session with this id, or NULL. */
struct fetch_session *fetch_session_find(struct fetch_sessions *sessions, int32_t id);

/* A new session with no partitions, or NULL: the cache is full of better ones, or no memory. */
struct fetch_session *fetch_session_new(struct fetch_sessions *sessions,
                                        uint64_t random,
                                        int64_t now_ms,
                                        uint32_t partition_count,
                                        bool privileged);

void fetch_session_drop(struct fetch_sessions *sessions, struct fetch_session *session);

/* Note its use. */
void fetch_session_touch(struct fetch_sessions *sessions,
                         struct fetch_session *session,
                         int64_t now_ms);

struct fetch_wanted {
    struct uuid topic_id;
    struct view name;
    int32_t partition;
    int32_t max_bytes;
    int64_t fetch_offset;
    int64_t log_start_offset;
    int32_t leader_epoch;
    int32_t last_fetched_epoch;
};

/* Add a partition or change it. False: no memory. */
MUST_USE bool fetch_session_put(struct fetch_sessions *sessions,
                                struct fetch_session *session,
                                const struct fetch_wanted *wanted);
void fetch_session_forget(struct fetch_sessions *sessions,
                          struct fetch_session *session,
                          struct uuid topic_id,
                          struct view name,
                          int32_t partition);

/* e < 0 stays -1; the largest is followed by 1. */
int32_t fetch_session_epoch_next(int32_t epoch);
