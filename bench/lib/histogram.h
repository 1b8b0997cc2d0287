/* histogram.h - latencies from a nanosecond to seventy, in buckets 1/64 of their value wide. */
#pragma once

#include "base/base.h"

#define HISTOGRAM_STEPS   64u /* Buckets for each doubling. */
#define HISTOGRAM_BUCKETS (32u * HISTOGRAM_STEPS)

struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t total;
    int64_t max_ns;
};

void histogram_add(struct histogram *histogram, int64_t ns);

/* The value below which `permille` thousandths of all lie; 0 when there are none. */
int64_t histogram_at(const struct histogram *histogram, uint32_t permille);
