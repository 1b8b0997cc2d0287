/* base.h - what every file of Dohle stands on: integers, assertions, marks.
 *
 * Pure: needs nothing but the compiler and memcpy, memmove, memset, memcmp.
 * Assertions stay on in release builds; a failed one stops the program at the faulty line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* The struct of `type` whose member `member` is at `pointer`. */
#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#define MUST_USE     __attribute__((warn_unused_result))
#define NORETURN     __attribute__((noreturn))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#define LIKELY(x)    __builtin_expect(!!(x), 1)
#define UNLIKELY(x)  __builtin_expect(!!(x), 0)

/* One condition per assert. A trap needs no library, so core may assert. */
#undef assert
#define assert(condition) (LIKELY(condition) ? (void)0 : __builtin_trap())

/* For conditions that cost O(n): on in debug builds and in the simulator. */
#ifdef DOHLE_SLOW_ASSERTS
#define assert_slow(condition) assert(condition)
#else
#define assert_slow(condition) ((void)0)
#endif

/* A branch that no input can reach, kept for defence: stops the program where it is taken. */
#define NEVER(condition) (UNLIKELY(condition) ? (__builtin_trap(), true) : false)

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* The earlier of two times. As MIN, but what tells one is asked once. */
static inline int64_t sooner_ms(int64_t a_ms, int64_t b_ms)
{
    return MIN(a_ms, b_ms);
}
