/* stats.h - what the console may ask of a node: one small struct, filled on the node's thread. */
#pragma once

#include "net/shard.h"
#include "text/out.h"

struct node;

struct stats {
    char missing[160]; /* What is missing to be ready, in words; empty: it is ready. */
    char cluster_id[64];
    int32_t node_id;
};

/* The node's first shard: where stats_fill is to be run (shard_post). */
struct shard *stats_shard(const struct node *node);

/* ,name="value", escaped as in Prometheus text. */
void stats_put_label(struct out *out, const char *name, struct view value);

/* What clients use against their quotas, in the same form. On the shard's thread. */
void stats_client_quotas(struct shard *shard, struct out *out);

/* What clients pushed of themselves, as lines of Prometheus text. On the shard's thread. */
void stats_client_metrics(struct shard *shard, struct out *out);

/* On the shard's thread. */
void stats_fill(struct shard *shard, struct stats *out);
