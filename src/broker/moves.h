/* moves.h - replicas that go from one log directory to another: AlterReplicaLogDirs.
 *
 * Thread: the shard's. Memory: the node's. */
#pragma once

#include "broker/broker.h"

MUST_USE bool moves_open(struct node *node); /* The logs are open. False: no memory. */
void moves_close(struct node *node);         /* NULL-safe. */

/* Where a partition that is made now was wanted, by a request that came before; the wish is spent.
 * LOG_DIRECTORY_ANY: nowhere. */
uint32_t moves_wish(struct node *node, struct view topic, int32_t partition);
