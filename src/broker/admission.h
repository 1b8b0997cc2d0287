/* admission.h - how fast connections may come in: max.connection.creation.rate of the node and of
 * its listeners, and the rate of one address (a client quota).
 *
 * Who comes faster than the node's or its listener's rate waits in line: nothing is read from the
 * connection until its turn, as if it had not been accepted. Who comes faster than its address may
 * is held for a moment and closed, and takes no place in the line.
 *
 * Rates are sampled as quotas are (core/quota_rate). Thread: of the first shard, which listens. */
#pragma once

#include "net/shard.h"

struct node;

/* Nothing is limited until admission_configure(). 0 or -ENOMEM. */
MUST_USE int admission_open(struct node *node);
void admission_close(struct node *node);

/* Read the limits anew. */
void admission_configure(struct node *node);

/* shard_hooks.admit */
struct shard_admission admission_admit(struct shard *shard,
                                       const struct listener *listener,
                                       const struct io_address *peer);
