/* histogram.c - see histogram.h. Values below 64 ns have a bucket each; above, the highest six bits
 * behind the leading one choose it. */
#include "bench/lib/histogram.h"

static uint32_t bucket_of(uint64_t ns)
{
    if (ns < HISTOGRAM_STEPS) return (uint32_t)ns;
    uint32_t shift = 63 - 6 - (uint32_t)__builtin_clzll(ns);
    uint32_t bucket = (shift + 1) * HISTOGRAM_STEPS + (uint32_t)(ns >> shift) - HISTOGRAM_STEPS;
    return MIN(bucket, HISTOGRAM_BUCKETS - 1);
}

static int64_t value_of(uint32_t bucket)
{
    if (bucket < HISTOGRAM_STEPS) return bucket;
    uint32_t shift = bucket / HISTOGRAM_STEPS - 1;
    return (int64_t)(bucket % HISTOGRAM_STEPS + HISTOGRAM_STEPS) << shift;
}

void histogram_add(struct histogram *histogram, int64_t ns)
{
    histogram->counts[bucket_of((uint64_t)MAX(ns, 0))]++;
    histogram->total++;
    histogram->max_ns = MAX(histogram->max_ns, ns);
}

int64_t histogram_at(const struct histogram *histogram, uint32_t permille)
{
    uint64_t below = (histogram->total * permille + 999) / 1000, seen = 0;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->counts[i];
        if (seen >= below && seen > 0) return value_of(i);
    }
    return 0;
}
