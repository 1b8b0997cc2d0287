/* quota_rate.c - see quota_rate.h. */
#include "core/quota_rate.h"

static struct quota_sample sample_begin(int64_t now_ms)
{
    return (struct quota_sample){.start_ms = now_ms, .last_ms = now_ms};
}

void quota_rate_record(struct quota_rate *rate,
                       const struct quota_window *window,
                       double amount,
                       int64_t now_ms)
{
    assert(window->count >= 1);
    assert(window->sample_ms >= 1);
    if (rate->count == 0) {
        rate->samples[0] = sample_begin(now_ms);
        rate->count = 1;
        rate->current = 0;
    } else if (now_ms - rate->samples[rate->current].start_ms >= window->sample_ms) {
        rate->current = (rate->current + 1) % (window->count + 1);
        rate->samples[rate->current] = sample_begin(now_ms);
        rate->count = MAX(rate->count, rate->current + 1);
    }
    struct quota_sample *sample = &rate->samples[rate->current];
    sample->sum += amount;
    sample->last_ms = now_ms;
}

double quota_rate_measure(struct quota_rate *rate,
                          const struct quota_window *window,
                          int64_t now_ms,
                          int64_t *elapsed_ms)
{
    assert(rate->count >= 1);
    int64_t oldest_ms = now_ms;
    double sum = 0;
    for (uint32_t i = 0; i < rate->count; i++) {
        struct quota_sample *sample = &rate->samples[i];
        if (now_ms - sample->last_ms >= (int64_t)window->count * window->sample_ms)
            *sample = sample_begin(now_ms);
        oldest_ms = MIN(oldest_ms, sample->start_ms);
        sum += sample->sum;
    }
    int64_t elapsed = now_ms - oldest_ms;
    int64_t full = elapsed / window->sample_ms;
    int64_t least = (int64_t)window->count - 1;
    if (full < least) elapsed += (least - full) * window->sample_ms;
    *elapsed_ms = MAX(elapsed, 1);
    return sum / ((double)*elapsed_ms / 1000);
}

int64_t quota_rate_throttle_ms(double rate, double limit, int64_t elapsed_ms)
{
    if (!(rate > limit)) return 0;
    double wait_ms = (rate - limit) / limit * (double)elapsed_ms + 0.5;
    return wait_ms >= INT32_MAX ? INT32_MAX : (int64_t)wait_ms;
}
