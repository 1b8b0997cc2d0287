/* client_metrics.h - clients' own metrics (KIP-714): what they are asked for, what they pushed.
 *
 * Subscriptions are settings of resources of type CLIENT_METRICS. A client that matches is told the
 * names and the interval; what it pushes is unpacked within telemetry.max.bytes, read, and kept as
 * its last values, which the console's /metrics prints. Each shard has the clients of its own
 * connections. The rules are core/telemetry's. Thread: the shard's. */
#pragma once

#include "core/image.h"
#include "net/shard.h"
#include "text/out.h"

struct node;

/* 0 or -ENOMEM. */
MUST_USE int client_metrics_open(struct node *node);
void client_metrics_close(struct node *node);

/* Settings of a resource have changed. */
void client_metrics_follow(struct node *node, const struct image_change *change);

/* Is it an expression for `match`? Null: it is; else why not, in the arena. */
struct view client_metrics_pattern_fault(struct arena *arena, struct view pattern);

/* Lines of Prometheus text, one for each value; `first`: what the metric is, before them. */
void client_metrics_print(struct shard *shard, struct out *out, bool first);
