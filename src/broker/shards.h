/* shards.h - the shards of a node among themselves: who owns what, and what they tell each other.
 *
 * Every shard has a `struct node` of its own: its partitions' logs, replicas and coordinators, its
 * fetch sessions, its image. The first one also has what a node has once: the control part, the
 * broker's lifecycle, producer ids, the directories' common files. Nothing is shared but what a
 * letter carries, and what does not change after the opening (options, cluster id, peers).
 *
 * A partition belongs to the shard that its topic's name and its index say, on this node for good;
 * a group to the shard of its partition of __consumer_offsets. spread.h brings requests there.
 *
 * Thread: the shard of the `node` that is given. */
#pragma once

#include "base/buf.h"
#include "broker/broker.h"

/* Index of the shard that owns a partition. */
uint32_t shards_owner(const struct node *node, struct view topic, int32_t partition);

/* Index of the shard that owns a group's coordinator, as this shard's image has it; its own if
 * there is no topic of offsets yet. */
uint32_t shards_group_owner(const struct node *node, struct view group);

/* Take the memory for telling the others of batches that are about to be appended. False: none, and
 * nothing was taken. / Give it back, of `first`; or what a shard still had to apply. */
MUST_USE bool shards_prepare(struct node *first, struct list *letters);
void shards_unpublish(struct node *node, struct list *letters);

/* The first shard has committed these batches of the metadata log, and set its kraft_version: the
 * others apply them, in order. One that has no memory for it tries again (struct follow_again).
 * `letters` are those of shards_prepare(), and empty afterwards. */
void shards_publish(struct node *first,
                    struct list *letters,
                    struct buf *batches,
                    int64_t offset_end);

/* Of any shard, in each turn: try again what it had no memory to follow. When to be called next. */
int64_t shards_turn(struct node *node);

/* Why one of the others does not follow the metadata, in words; NULL: all do. */
const char *shards_not_following(const struct node *first);

/* The first shard has registered the broker: node->broker_epoch is known. False: no memory. */
MUST_USE bool shards_registered(struct node *first);

/* Not the first shard: have the first create a topic on its first use; nobody waits. */
void shards_auto_create(struct node *node, struct view topic);

/* What the logs of a shard are to know of the others (struct logs_part), and hear of them. */
void shards_logs_part(struct node *node, struct logs_part *out);
void shards_logs_watch(struct node *node);
