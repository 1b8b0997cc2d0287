/* clock.h - the clocks that commands look at. What the simulator links asks io.h instead. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Microseconds of this clock. */
static inline int64_t clock_us(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Milliseconds since some moment in the past; never goes back. */
static inline int64_t clock_now_ms(void)
{
    return clock_us(CLOCK_MONOTONIC) / 1000;
}

/* Milliseconds since 1970. */
static inline int64_t clock_wall_ms(void)
{
    return clock_us(CLOCK_REALTIME) / 1000;
}
