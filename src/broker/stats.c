/* stats.c - see stats.h. */
#include "broker/stats.h"

#include <stdio.h>

#include "broker/broker.h"
#include "broker/client_metrics.h"

struct shard *stats_shard(const struct node *node)
{
    return node->shard;
}

void stats_fill(struct shard *shard, struct stats *out)
{
    const struct node *node = node_of(shard);
    const char *missing = node_not_ready(node);
    *out = (struct stats){.node_id = node->options.node_id};
    if (missing != NULL) (void)snprintf(out->missing, sizeof(out->missing), "%s", missing);
    (void)snprintf(out->cluster_id, sizeof(out->cluster_id), "%s", node->cluster_id);
}

void stats_client_metrics(struct shard *shard, struct out *out)
{
    client_metrics_print(shard, out, shard->index == 0);
}
