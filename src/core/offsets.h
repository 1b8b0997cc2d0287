/* offsets.h - the offsets that groups commit: part of the machine of group.h.
 *
 * A commit leaves one record for each partition; groups_apply() puts them in place, the same
 * function that loads them. Reads show the newest state and must be held like every answer.
 * Offsets of an open transaction (written by Apache Kafka, loaded here) count when its marker says
 * so; until then RequireStable asks clients to wait for them. */
#pragma once

#include "core/group.h"

struct offset_commit_request_offset_commit_request_partition;

/* OffsetCommit 2-10: who commits, and until when. */
struct offsets_commit {
    struct view group_id;
    struct view member_id;
    struct view instance_id; /* Null: none. */
    int32_t generation;
    int64_t retention_ms; /* Of versions 2-4; -1: the setting. */
    int64_t arrived_ms;
};

/* May this request commit? NONE (and the member's session runs anew), or the error of all its
 * partitions. */
MUST_USE enum kafka_error offsets_commit_check(struct groups *groups,
                                               const struct step *step,
                                               const struct offsets_commit *in);

/* One partition of a request that may commit: its record, into the step. */
struct offsets_put {
    struct view topic;
    struct uuid topic_id;
    const struct offset_commit_request_offset_commit_request_partition *in;
};

/* NONE; OFFSET_METADATA_TOO_LARGE: this partition alone fails; STALE_MEMBER_EPOCH or
 * ILLEGAL_GENERATION: the member does not hold it, the request fails; UNKNOWN_SERVER_ERROR: there
 * is no memory or no room in the step, the request fails as a whole. */
MUST_USE enum kafka_error offsets_commit_put(const struct groups *groups,
                                             struct step *step,
                                             const struct offsets_commit *commit,
                                             const struct offsets_put *put);

/* May this request of version 9 or above fetch? NONE, or the error of the group: UNKNOWN_MEMBER_ID,
 * STALE_MEMBER_EPOCH, ILLEGAL_GENERATION. Only consumer groups look at who asks. */
MUST_USE enum kafka_error offsets_fetch_check(const struct groups *groups,
                                              struct view group_id,
                                              struct view member_id,
                                              int32_t epoch);

/* A committed offset as a client sees it. */
struct offsets_found {
    int64_t offset; /* -1: none. */
    int32_t leader_epoch;
    struct view metadata; /* Lasts until the next step. */
    bool unstable;        /* An open transaction holds one for this partition. */
};

/* What the group has committed for a partition. A zero `topic_id`, here or in the record, fits all.
 */
struct offsets_found offsets_find(const struct groups *groups,
                                  struct view group_id,
                                  struct view topic,
                                  int32_t partition,
                                  struct uuid topic_id);

/* What open transactions hold: nothing here can end them, Apache Kafka can (it wrote them). */
struct offsets_open {
    uint32_t count;        /* Offsets; 0: the rest is not set. */
    int64_t producer_id;   /* Of the oldest, */
    int64_t record_offset; /* and where its record is in the partition of __consumer_offsets. */
};

/* Of a group's partitions; the null view: of all groups. O(what they hold). */
struct offsets_open offsets_open(const struct groups *groups, struct view group_id);

/* The topics that the group has offsets of: the next one after `topic`, the first for the null
 * view; null at the end. `count` says how many partitions. O(1). */
struct view offsets_topic_next(const struct groups *groups,
                               struct view group_id,
                               struct view topic,
                               uint32_t *count);

/* The partitions of it, `count` of them. */
void offsets_partitions(const struct groups *groups,
                        struct view group_id,
                        struct view topic,
                        int32_t *out);

/* OffsetDelete: NONE, GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP for the whole request. */
MUST_USE enum kafka_error offsets_delete_check(const struct groups *groups, struct view group_id);

/* One partition of it: a tombstone if there is an offset. NONE, GROUP_SUBSCRIBED_TO_TOPIC, or
 * UNKNOWN_SERVER_ERROR: no memory or no room. */
MUST_USE enum kafka_error offsets_delete_put(const struct groups *groups,
                                             struct step *step,
                                             struct view group_id,
                                             struct view topic,
                                             int32_t partition);

/* Tombstones for what has expired, and for groups that are left without anything.
 * STEP_MORE: append, apply, call again. */
MUST_USE enum step_result offsets_expire(struct groups *groups, struct step *step);

/* The topic is gone: tombstones for its offsets. STEP_MORE as above. */
MUST_USE enum step_result offsets_topic_deleted(struct groups *groups,
                                                struct step *step,
                                                struct view topic,
                                                struct uuid topic_id);
