/* stats.c - see stats.h. */
#include "broker/stats.h"

#include <stdio.h>

#include "broker/broker.h"
#include "broker/client_metrics.h"
#include "broker/quotas.h"

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

void stats_client_quotas(struct shard *shard, struct out *out)
{
    quotas_print(shard, out, shard->index == 0);
}

void stats_put_label(struct out *out, const char *name, struct view value)
{
    out_format(out, ",%s=\"", name);
    for (uint32_t i = 0; i < value.size; i++) {
        char c = (char)value.data[i];
        if (c == '"' || c == '\\') out_char(out, '\\');
        out_char(out, c >= 0 && c < 0x20 ? '?' : c);
    }
    out_char(out, '"');
}
