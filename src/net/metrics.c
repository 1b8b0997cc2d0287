/* metrics.c - see metrics.h. */
#include "net/metrics.h"

#include "base/limits.h"
#include "gen/errors.h"
#include "wire/wire.h"

#define METRICS_OTHER INT16_MIN /* In place of an error code: what had no place of its own. */

static struct view key_of(const struct metrics_request *entry)
{
    return view_of(entry->key, sizeof(entry->key));
}

void metrics_init(struct metrics *metrics, struct mem *mem, uint64_t seed)
{
    *metrics = (struct metrics){0};
    map_init(&metrics->requests, mem, seed);
}

void metrics_free(struct metrics *metrics)
{
    struct mem *mem = metrics->requests.mem;
    struct map_node *node = map_next(&metrics->requests, NULL);
    while (node != NULL) {
        struct map_node *next = map_next(&metrics->requests, node);
        map_remove(&metrics->requests, node);
        mem_put(mem, container_of(node, struct metrics_request, node),
                sizeof(struct metrics_request));
        node = next;
    }
    map_free(&metrics->requests);
    metrics->last = NULL;
}

/* The entry of these numbers, made if there is a place for it. */
static struct metrics_request *entry_of(struct metrics *metrics, const int16_t key[3])
{
    struct map_node *node = map_find(&metrics->requests, view_of(key, 3 * sizeof(key[0])));
    if (node != NULL) return container_of(node, struct metrics_request, node);
    if (metrics->requests.count >= NET_REQUEST_COUNTS_MAX) return NULL;
    struct metrics_request *entry = mem_get(metrics->requests.mem, sizeof(*entry));
    if (entry == NULL) return NULL;
    memcpy(entry->key, key, sizeof(entry->key));
    entry->node.key = key_of(entry);
    if (map_insert(&metrics->requests, &entry->node)) return entry;
    mem_put(metrics->requests.mem, entry, sizeof(*entry));
    return NULL;
}

static void count(struct metrics *metrics, const int16_t key[3], uint64_t amount)
{
    struct metrics_request *entry = metrics->last;
    if (entry == NULL || memcmp(entry->key, key, sizeof(entry->key)) != 0)
        entry = entry_of(metrics, key);
    if (entry == NULL) {
        const int16_t rest[3] = {key[0], -1, METRICS_OTHER};
        entry = entry_of(metrics, rest);
    }
    if (entry == NULL) return;
    entry->count += amount;
    metrics->last = entry;
}

void metrics_request(struct metrics *metrics, int16_t api_key, int16_t version, int16_t error)
{
    const int16_t key[3] = {api_key, version, error};
    count(metrics, key, 1);
}

void metrics_gather(struct metrics *into, const struct metrics *from)
{
    for (int i = 0; i < METRIC_COUNT; i++) {
        if (i == METRIC_TURN_MAX_US || i == METRIC_HORIZON_LAG_MS)
            metric_max(into, (enum metric)i, from->values[i]);
        else
            into->values[i] += from->values[i];
    }
    map_foreach (node, &from->requests) {
        const struct metrics_request *entry = container_of(node, struct metrics_request, node);
        count(into, entry->key, entry->count);
    }
}

const char *metrics_api_name(const struct metrics_request *entry)
{
    const struct wire_api *api = wire_api(entry->key[0]);
    return api == NULL ? "unknown" : api->name;
}

const char *metrics_error_name(const struct metrics_request *entry)
{
    return entry->key[2] == METRICS_OTHER ? "other" : kafka_error_name(entry->key[2]);
}
