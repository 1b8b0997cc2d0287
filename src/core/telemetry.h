/* telemetry.h - metrics that clients push (KIP-714): whose turn it is, and the values they sent.
 *
 * An *instance* is one run of one client, with the id that it was given. It asks what is wanted of
 * it (telemetry_get) and pushes reports at the interval it was told (telemetry_push); what is too
 * early, meant for other subscriptions, or comes after its farewell is refused with Kafka's error.
 * Its last values are kept as *series*, a label text and a number each, until it has been silent
 * for three intervals. Changes since the last report are added up, so that counters count.
 *
 * An instance that comes by another connection begins anew, as in Kafka, which forgets instances
 * with their connections; its series stay.
 *
 * Pure. Memory: the struct mem of telemetry_new(), bounded by the three caps TELEMETRY_* of
 * base/limits.h: what is beyond them is dropped and counted. Thread: the owner's. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "core/otlp.h"

struct telemetry;
struct telemetry_instance;

/* `share`: of so many of these the caps are shared (a node's shards). NULL: no memory. */
MUST_USE struct telemetry *telemetry_new(struct mem *mem, uint64_t seed, uint32_t share);
struct telemetry *telemetry_free(struct telemetry *telemetry); /* Returns NULL. NULL is fine. */

/* Who asks. Views are copied where they are kept, cut at TELEMETRY_NAME_MAX bytes. */
struct telemetry_who {
    struct uuid id;
    uint64_t connection; /* Any number that tells connections apart. */
    struct view client_id;
    struct view software;
    struct view software_version;
    int64_t now_ms;
};

/* The instance, made if it is not known, and now the youngest. NULL: no memory. With `version`
 * other than it was at the last telemetry_want(), *stale is set: say what is wanted before anything
 * else.
 */
struct telemetry_instance *telemetry_instance(struct telemetry *telemetry,
                                              const struct telemetry_who *who,
                                              uint32_t version,
                                              bool *stale);

/* What the subscriptions that match an instance want together. */
struct telemetry_wanted {
    int32_t interval_ms;
    bool all;                   /* Every metric. */
    const struct view *metrics; /* Else those whose names begin with one of these; copied. */
    uint32_t metric_count;
};

/* False: no memory, the instance is asked for nothing. */
MUST_USE bool telemetry_want(struct telemetry *telemetry,
                             struct telemetry_instance *instance,
                             const struct telemetry_wanted *wanted,
                             uint32_t version);
const struct telemetry_wanted *telemetry_wanted(const struct telemetry_instance *instance);

/* A number that is the same for the same instance and the same wishes, on every node. */
int32_t telemetry_subscription(const struct telemetry_instance *instance);

/* It asks what is wanted. NONE, or THROTTLING_QUOTA_EXCEEDED: too early. */
MUST_USE int16_t telemetry_get(struct telemetry_instance *instance, int64_t now_ms);

struct telemetry_push {
    int32_t subscription_id;
    int8_t compression;
    bool terminating;
    uint32_t size_bytes;
    uint32_t max_bytes; /* telemetry.max.bytes */
    int64_t now_ms;
};

/* May it push this? NONE: then read the report, and say telemetry_refuse() if it cannot be read.
 * Else INVALID_REQUEST (it said farewell before), THROTTLING_QUOTA_EXCEEDED,
 * UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE, TELEMETRY_TOO_LARGE, in this order. */
MUST_USE int16_t telemetry_push(struct telemetry_instance *instance,
                                const struct telemetry_push *push);

/* Keep one value of a report, if it is wanted. False: it is not, or there is no room. */
MUST_USE bool telemetry_keep(struct telemetry *telemetry,
                             struct telemetry_instance *instance,
                             const struct otlp_point *point);

/* Forget instances that have been silent for three intervals, and a minute at least. */
void telemetry_expire(struct telemetry *telemetry, int64_t now_ms);

uint32_t telemetry_instance_count(const struct telemetry *telemetry);
uint32_t telemetry_series_count(const struct telemetry *telemetry);

/* One series, to be printed: labels are `metric="..."` and the point's own, escaped as in
 * Prometheus text, in UTF-8 if the client sent such. */
struct telemetry_series {
    struct uuid id;
    struct view client_id, software, software_version;
    struct view labels;
    double value;
};

/* Each series, instance by instance. */
void telemetry_each(const struct telemetry *telemetry,
                    void (*visit)(void *context, const struct telemetry_series *series),
                    void *context);
