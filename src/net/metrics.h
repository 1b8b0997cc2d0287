/* metrics.h - what the server counts. The list, with meanings, is schema/metrics.json.
 *
 * Each shard counts for itself, without locks; a snapshot adds up all shards. Requests are counted
 * by API, version and error in a small table of their own, bounded by NET_REQUEST_COUNTS_MAX: what
 * does not fit is counted as "other" of its API. */
#pragma once

#include "base/map.h"
#include "gen/metrics.h"

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE };

struct metric_def {
    const char *name; /* "received_bytes"; on /metrics: dohle_received_bytes_total. */
    enum metric_kind kind;
    const char *unit;
    const char *about;
};

extern const struct metric_def metric_defs[METRIC_COUNT];

/* Requests of one API and version that ended with one error. */
struct metrics_request {
    struct map_node node; /* Keyed by the three numbers below. */
    int16_t key[3];       /* API key, version, error code. */
    uint64_t count;
};

struct metrics {
    uint64_t values[METRIC_COUNT];
    struct map requests;          /* of struct metrics_request */
    struct metrics_request *last; /* Counted last: most requests are like the one before. */
};

void metrics_init(struct metrics *metrics, struct mem *mem, uint64_t seed);
void metrics_free(struct metrics *metrics);

/* Count an ended request. When the table is full, or there is no memory, it is counted as version
 * -1, error "other" of its API as long as that has a place, else not at all. */
void metrics_request(struct metrics *metrics, int16_t api_key, int16_t version, int16_t error);

static inline void metric_add(struct metrics *metrics, enum metric metric, uint64_t amount)
{
    metrics->values[metric] += amount;
}

static inline void metric_set(struct metrics *metrics, enum metric metric, uint64_t value)
{
    metrics->values[metric] = value;
}

static inline void metric_max(struct metrics *metrics, enum metric metric, uint64_t value)
{
    if (value > metrics->values[metric]) metrics->values[metric] = value;
}

/* Add `from` into `into`: gauges and counters alike, but maxima (turn_max_us, horizon_lag_ms) are
 * the larger one. For snapshots. */
void metrics_gather(struct metrics *into, const struct metrics *from);

/* Names for labels: "Produce" (or the key in digits), "NONE". Static. */
const char *metrics_api_name(const struct metrics_request *entry);
const char *metrics_error_name(const struct metrics_request *entry);
