/* quota_rate.h - a rate that is sampled: sums over the last few windows, Kafka's arithmetic.
 *
 * Up to count + 1 samples in a ring; each knows when it began and when it was added to last. What
 * is older than count samples is forgotten when the rate is measured. A young rate is averaged over
 * at least count - 1 samples, so that a first burst is not taken for a rate. */
#pragma once

#include "core/quota.h"

struct quota_sample {
    int64_t start_ms;
    int64_t last_ms;
    double sum;
};

struct quota_rate {
    uint32_t count;                /* Samples in use. */
    uint32_t current;              /* The newest one. */
    struct quota_sample samples[]; /* window->count + 1 of them. */
};

/* Add to the newest sample, which begins anew when it is full. */
void quota_rate_record(struct quota_rate *rate,
                       const struct quota_window *window,
                       double amount,
                       int64_t now_ms);

/* A second's amount; *elapsed_ms is the time that it is averaged over. Something was recorded. */
double quota_rate_measure(struct quota_rate *rate,
                          const struct quota_window *window,
                          int64_t now_ms,
                          int64_t *elapsed_ms);

/* How long a pause brings the rate down to its limit; 0 if it is not above. Saturates. */
int64_t quota_rate_throttle_ms(double rate, double limit, int64_t elapsed_ms);
