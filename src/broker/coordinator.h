/* coordinator.h - the partitions of __consumer_offsets that this node leads, each with its machine
 * of core/group.h: loading, appending what a step decided, holding answers until it is committed.
 *
 * A partition is LOADING from the moment it is led until its log has been read, then ACTIVE; it is
 * FAILED when the log cannot be read or holds what nobody can (until it is led anew).
 *
 * Answers. Every answer waits until the high watermark has passed all that was appended before it,
 * reads too: so no client sees a state that a crash could take back. After
 * offsets.commit.timeout.ms it is COORDINATOR_NOT_AVAILABLE instead.
 *
 * Thread: the shard's. */
#pragma once

#include "core/group.h"
#include "net/request.h"

struct node;
struct image_change;
struct coordinator;
struct coordinator_part;

#define COORDINATOR_TOPIC "__consumer_offsets"

/* Partitions that the image names are led and loaded from now on. 0 or -ENOMEM. */
MUST_USE int coordinator_open(struct node *node);

/* Everything that waits is answered with NOT_COORDINATOR; later requests are told that there is no
 * coordinator. The node still turns. */
void coordinator_stop(struct node *node);

/* Free it. Nothing of it is in flight afterwards. */
void coordinator_close(struct node *node);

/* The image has changed: lead, resign, or forget the offsets of a topic. */
void coordinator_follow(struct node *node, const struct image_change *change);

/* At each turn's end: loading begins when the node is registered. */
void coordinator_turn(struct node *node);

/* The partition of a group, or of any key of such a topic: Java's hash of the text, its absolute
 * value, modulo the number of partitions. */
uint32_t coordinator_partition(struct view key, uint32_t partitions);

/* The active partition of a group. NONE, or COORDINATOR_NOT_AVAILABLE (stopping), NOT_COORDINATOR,
 * COORDINATOR_LOAD_IN_PROGRESS. */
MUST_USE enum kafka_error coordinator_find(struct node *node,
                                           struct view group,
                                           struct coordinator_part **out);

/* The n-th partition with its error as above; NULL: there are no more. For reads of all groups. */
struct coordinator_part *coordinator_at(struct node *node, uint32_t n, enum kafka_error *error);

struct groups *coordinator_groups(struct coordinator_part *part);

/* Begin a step for a request: its arena, the time of its arrival, its version. */
void coordinator_step(struct coordinator_part *part, struct step *step, struct request *request);

/* Append and apply the step's records, send or hold the answers that it made. NONE, or what the
 * client is to be told instead of the step's own answer. */
MUST_USE enum kafka_error coordinator_commit(struct coordinator_part *part,
                                             const struct step *step);

/* A deadline has been set outside of a step. */
void coordinator_beaten(struct coordinator_part *part);

/* An answer that waits. The caller's; `done` is called once, perhaps from inside coordinator_hold:
 * NONE, or COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR. */
struct coordinator_hold {
    struct list link;
    int64_t offset;
    int64_t until_ms;
    void (*done)(struct coordinator_hold *hold, enum kafka_error error);
};
void coordinator_hold(struct coordinator_part *part, struct coordinator_hold *hold);

/* A Join or Sync on its way. Its answer is held like any other. */
struct coordinator_wait {
    struct group_wait wait;
    struct coordinator_hold hold;
    struct request *request;
};
