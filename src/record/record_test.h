/* record_test.h - what the tests of this folder share: memory that is counted, hex, byte vectors.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "record/compress.h"
#include "sys/memory.h"

/* One record ("k", "v"), CreateTime 1700000000000, offset 0, leader epoch 0. */
#define TEST_ONE_RECORD                                                                            \
    "0000000000000000 0000003a 00000000 02 e99b8dd8 0000 00000000 0000018bcfe56800"                \
    "0000018bcfe56800 ffffffffffffffff ffff ffffffff 00000001 10000000 026b 0276 00"

/* Base offset 100, epoch 5, producer 9000 epoch 2 sequence 7, times 1000, 1200, 1100: (null, "a"),
 * ("key", null), ("", "" with headers h1="x", h2=null). */
#define TEST_THREE_RECORDS                                                                         \
    "0000000000000064 00000055 00000005 02 ec53b925 0000 00000002 00000000000003e8"                \
    "00000000000004b0 0000000000002328 0002 00000007 00000003 0e 00 00 00 01 02 61 00"             \
    "14 00 9003 02 06 6b6579 01 00 20 00 c801 04 00 00 04 04 6831 02 78 04 6832 01"

/* Offset 42, epoch 5, producer 4000 epoch 3, coordinator epoch 7. */
#define TEST_ABORT_MARKER                                                                          \
    "000000000000002a 00000042 00000005 02 3a7224c6 0030 00000000 0000018bcfe56800"                \
    "0000018bcfe56800 0000000000000fa0 0003 ffffffff 00000001 20 00 00 00 08 00000000 0c"          \
    "000000000007 00"

/* What compaction keeps of a producer's last batch. */
#define TEST_EMPTY_BATCH                                                                           \
    "000000000000000a 00000031 00000005 02 6b98085c 0000 00000004 ffffffffffffffff"                \
    "0000018bcfe569f4 0000000000002328 0002 00000007 00000000"

/* TEST_ONE_RECORD with its record in an lz4 frame (stored), and in xerial snappy. */
#define TEST_LZ4_RECORD                                                                            \
    "0000000000000000 00000049 00000000 02 924fa790 0003 00000000 0000018bcfe56800"                \
    "0000018bcfe56800 ffffffffffffffff ffff ffffffff 00000001"                                     \
    "04224d18 60 40 82 09000080 100000 00026b027600 00000000"
#define TEST_SNAPPY_RECORD                                                                         \
    "0000000000000000 00000050 00000000 02 08ee4869 0002 00000000 0000018bcfe56800"                \
    "0000018bcfe56800 ffffffffffffffff ffff ffffffff 00000001"                                     \
    "82534e4150505900 00000001 00000001 0000000b 09 20 10000000026b027600"

struct test_world {
    struct mem mem;
    struct compress_work work;
    struct arena request;
};

static inline void test_begin(struct test_world *world)
{
    memory_init(&world->mem, 0);
    compress_work_init(&world->work, &world->mem);
    arena_init(&world->request, &world->mem, 0);
}

/* All memory must be back. */
static inline void test_end(struct test_world *world)
{
    compress_work_free(&world->work);
    arena_free(&world->request);
    if (world->mem.used_bytes != 0) {
        (void)fprintf(stderr, "%llu bytes were not given back\n",
                      (unsigned long long)world->mem.used_bytes);
        abort();
    }
}

/* Hex digits, blanks ignored, into `out`. */
static inline struct view test_hex(const char *text, uint8_t *out, uint32_t size)
{
    uint32_t digits = 0;
    for (; *text != '\0'; text++) {
        if (*text == ' ') continue;
        uint8_t digit = (uint8_t)(*text <= '9' ? *text - '0' : *text - 'a' + 10);
        if (digits / 2 >= size || digit > 15) abort();
        if (digits % 2 == 0)
            out[digits / 2] = (uint8_t)(digit << 4);
        else
            out[digits / 2] |= digit;
        digits++;
    }
    if (digits % 2 != 0) abort();
    return view_of(out, digits / 2);
}

/* A small generator that gives the same numbers everywhere. */
static inline uint32_t test_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}
