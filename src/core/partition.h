/* partition.h - one replica's part in its partition: leader, ISR, high watermark.
 *
 * The leader keeps, for each other replica, how far it has fetched and when it last had all, and
 * decides when the ISR has to change; the change itself is the controller's (AlterPartition). The
 * high watermark is the lowest end among the replicas that count: the ISR and those whose joining
 * is on its way. The leader counts itself with its *durable* end, or with its *written* end where
 * the user chose Kafka's promise; a replica list of one is no special case.
 *
 *     OFFLINE --become_leader--> LEADER --become_follower--> FOLLOWER --...--> (either)
 *
 * All offsets are those of the log; nothing here does I/O. Pure. Memory: the struct mem of
 * partition_new(). Thread: the shard that owns the partition. */
#pragma once

#include "base/list.h"
#include "base/mem.h"
#include "core/image.h"

struct partition;

enum partition_role { PARTITION_OFFLINE, PARTITION_FOLLOWER, PARTITION_LEADER };

/* The ends of the local log. */
struct partition_ends {
    int64_t start;
    int64_t assigned;
    int64_t written;
    int64_t durable;
};

struct partition_options {
    int32_t node_id;
    int64_t replica_lag_ms; /* replica.lag.time.max.ms */
    bool count_written;     /* dohle.ack.durability=replicated: the leader counts written bytes. */
};

/* NULL: no memory. */
MUST_USE struct partition *partition_new(struct mem *mem, const struct partition_options *options);

/* Returns NULL. */
struct partition *partition_free(struct partition *partition);

enum partition_change {
    PARTITION_SAME = 0,    /* Nothing new: not a higher leader or partition epoch. */
    PARTITION_NEW_EPOCH,   /* A new leader epoch: of a leader, call log_epoch_begin() with it; of a
                              follower, truncate by the new leader's epochs and fetch from it. */
    PARTITION_NEW_MEMBERS, /* The same leadership with other replicas or another ISR. */
    PARTITION_E_MEMORY,    /* Nothing has changed. */
};

/* Take over what the metadata log says. `state` is read, not kept; brokers' activity is asked from
 * the image when the ISR is to grow. `high_watermark` is the checkpointed one, used when this is
 * the replica's first role. Leading begins with every other replica unknown. */
MUST_USE enum partition_change partition_follow(struct partition *partition,
                                                const struct image_partition *state,
                                                const struct partition_ends *ends,
                                                int64_t high_watermark,
                                                int64_t now_ms);

enum partition_role partition_role(const struct partition *partition);
int32_t partition_leader(const struct partition *partition); /* IMAGE_NO_LEADER */
int32_t partition_leader_epoch(const struct partition *partition);
int32_t partition_epoch(const struct partition *partition);
int64_t partition_leader_epoch_start(const struct partition *partition); /* The end at its start. */
int64_t partition_high_watermark(const struct partition *partition);
uint32_t partition_isr_count(const struct partition *partition);

/* The check that opens Produce, Fetch, ListOffsets and others: `epoch` is the client's current
 * leader epoch, -1 if it has none.
 *
 *   NONE   this replica leads    NOT_LEADER_OR_FOLLOWER   it does not
 *   FENCED_LEADER_EPOCH          the client's is older   UNKNOWN_LEADER_EPOCH   it is newer */
int16_t partition_check_leader(const struct partition *partition, int32_t epoch);

/* The same for readers that a follower may serve too (Fetch from followers). */
int16_t partition_check_epoch(const struct partition *partition, int32_t epoch);

/* May acks=all be taken: is the ISR as large as min.insync.replicas (never more than the replicas)
 * asks? */
bool partition_enough_in_sync(const struct partition *partition, int32_t min_insync);

/* The leader's own log has moved. True: the high watermark rose; tell the log, complete what waits
 * for it. With an ISR below `min_insync` it stands still, as in Kafka. */
bool partition_local_end(struct partition *partition,
                         const struct partition_ends *ends,
                         int32_t min_insync);

/* A follower asks for data from `fetch_offset`: it has everything below. `epoch` is its broker
 * epoch, -1 if it told none. */
struct partition_fetch {
    int32_t replica;
    int64_t epoch;
    int64_t fetch_offset;
    int64_t log_start; /* Its own, for DeleteRecords. */
    int64_t now_ms;
};

enum partition_fetched {
    PARTITION_FETCHED = 0,
    PARTITION_HW_ROSE,   /* And the high watermark rose. */
    PARTITION_E_REPLICA, /* Not one of the partition's replicas (UNKNOWN_LEADER_EPOCH, as Kafka). */
    PARTITION_E_STALE,   /* Its broker epoch is not the newest it told: an earlier incarnation. */
};

MUST_USE enum partition_fetched partition_fetched(struct partition *partition,
                                                  const struct partition_fetch *fetch,
                                                  const struct partition_ends *ends,
                                                  int32_t min_insync);

/* A follower takes over the leader's high watermark: clamped to its own end, never backwards. True:
 * it rose. */
bool partition_leader_told(struct partition *partition,
                           int64_t high_watermark,
                           const struct partition_ends *ends);

/* The smallest log start over the replicas that are alive: what DeleteRecords waits for. */
int64_t partition_low_watermark(const struct partition *partition,
                                const struct partition_ends *ends);

/* ---- changing the ISR ------------------------------------------------------------------------ */

/* What the leader wants the ISR to be. */
struct partition_wish {
    const int32_t *isr;    /* In the partition; until it changes. */
    const int64_t *epochs; /* Broker epoch of each, -1 unknown. */
    uint32_t count;
    int32_t leader_epoch;
    int32_t partition_epoch;
    int8_t recovery; /* enum image_recovery */
};

/* Does the ISR have to change? A replica outside joins when it has reached the high watermark and
 * this leadership's first offset and its broker is active in `image`; one inside leaves when it
 * has not had all for replica_lag_ms. True: `out` is the request to send, one at a time; until
 * partition_altered() the members of both sets count for the high watermark, and no other wish
 * comes. */
bool partition_wishes(struct partition *partition,
                      const struct image *image,
                      const struct partition_ends *ends,
                      int64_t now_ms,
                      struct partition_wish *out);

/* The controller's answer to the wish: its error, or -1000 if none came (send it again). Accepted:
 * the new state also comes by the log, whichever is first counts. Refused for good: the ISR is as
 * before. True: the high watermark rose. */
bool partition_altered(struct partition *partition,
                       int16_t error,
                       int32_t partition_epoch,
                       const struct partition_ends *ends,
                       int32_t min_insync);

/* When to ask partition_wishes() at the latest, for lagging members; INT64_MAX: never. */
int64_t partition_deadline(const struct partition *partition);

/* How far another replica is, for DescribeTopicPartitions, metrics and tests. False: not one. */
struct partition_replica {
    int64_t end;          /* -1: has not fetched since this leadership began. */
    int64_t caught_up_ms; /* Last time it had all. */
    bool in_isr;
};
bool partition_replica(const struct partition *partition,
                       int32_t replica,
                       struct partition_replica *out);
