/* replica.h - the partitions that this node holds a replica of, and what waits on them.
 *
 * A replica joins a partition's log with its part in the partition (leader, ISR, high watermark).
 * It follows the metadata image: made when the image places it here, led when the image says so,
 * deleted with its topic. A request that must wait embeds one `struct replica_wait` for each
 * replica and is told when something moved there.
 *
 * Memory: the node's. Thread: the shard's. */
#pragma once

#include "broker/follow.h"
#include "core/partition.h"
#include "log/log_manager.h"

struct node;
struct replica;

struct replica_key {
    struct uuid topic_id;
    int32_t partition;
};
_Static_assert(sizeof(struct replica_key) == 20, "all of it is hashed and compared");

struct replica_wait {
    struct list link; /* On itself: waits on nothing. */
    /* Something moved; `events` is a set of log_event, or 0 for a change of leadership or high
     * watermark. It may take itself off, end its request, and wait anew. */
    void (*wake)(struct replica_wait *wait, struct replica *replica, int events);
};

struct replica {
    struct map_node by_id;
    union {
        struct replica_key key;
        struct {
            struct uuid topic_id;
            int32_t partition;
        };
    };
    int log_error; /* If `log` is NULL: a result of logs_replica(). */
    struct node *node;
    struct log *log; /* NULL: its directory is offline, or it is lost. */
    struct partition *state;
    struct log_watch watch;
    struct list waits;
    struct list opening;      /* Requests that wait for the log to open, in order (produce.c). */
    struct list link;         /* In the order of their making. */
    struct list recovered;    /* In node->recovered: the control part is to be told. */
    struct list placed;       /* In node->placed: the control part is to be told where it lies. */
    bool move_ready;          /* Its copy in another directory is whole (moves.c). */
    bool opened;              /* The log has been open. */
    bool began;               /* The log knows the leader epoch. */
    int32_t min_insync;       /* min.insync.replicas, looked up when the node's */
    uint32_t min_insync_seen; /* config_changes was this. */
};

struct replicas {
    struct map by_id;
    struct list all;
    bool following;             /* Since replicas_loaded(). */
    struct follow_again unmade; /* There was no memory for one of the image's. */
};

void replicas_init(struct node *node);
void replicas_free(struct node *node);

/* By topic id and index; NULL: not here. O(1). */
struct replica *replica_find(const struct node *node, struct uuid topic_id, int32_t partition);

/* The image has been loaded whole: from now on it is followed, first as it stands. What the log
 * says before its end is no reason to touch a folder: a topic that was deleted there may have been
 * made again under its name, and the folder is the later one's. */
void replicas_loaded(struct node *node);

/* In each turn: make what there was no memory for (also partitions of the coordinator:
 * replica_unmade). When to be called next. */
int64_t replicas_turn(struct node *node);
void replica_unmade(struct node *node, const char *what);

/* The image has changed: make, lead, or delete. */
void replicas_follow(struct node *node, const struct image_change *change);

/* The first shard's image is whole for the first time, and all turn on one thread still: folders of
 * partitions that it does not give to this node (a crash came between a deletion and the folder's
 * end) are renamed to -stray, as Kafka does, and left for the operator; a line each. */
void replicas_settle(struct node *node);

/* Kafka's error for a request that needs the leader of a partition:
 * `epoch` the client's current leader epoch or -1. On NONE `*out` is the replica. */
MUST_USE int16_t replica_leader(struct node *node,
                                const struct image_topic *topic,
                                int32_t partition,
                                int32_t epoch,
                                struct replica **out);

/* Make the log usable for its leader: LOG_OK, LOG_LATER (wait for LOG_EVENT_READY), or a failure.
 * The first time it also tells the log its leader epoch. */
MUST_USE int replica_open(struct replica *replica);

/* The error code of a log's failure (what is no outcome of its own in the caller). */
int16_t replica_error(int log_result);

/* The topic's min.insync.replicas. O(1) while no setting changes. The replica has a log. */
int32_t replica_min_insync(struct replica *replica);

/* Wait on the replica; be told by `wake`. The wait must not be on a list. */
void replica_wait_on(struct replica *replica, struct replica_wait *wait);
void replica_wait_end(struct replica_wait *wait);

/* What the high watermark rests on has moved: it is computed anew, and who waits is told in the
 * next logs_turn(), never from inside: the caller may be one of them, whose request then ends. */
void replica_moved(struct replica *replica);
