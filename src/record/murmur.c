/* murmur.c - MurmurHash2 for 32 bits, little-endian words, as Kafka's clients compute it. */
#include "record/murmur.h"

#include "base/bytes.h"

#define SEED     0x9747b28cu
#define MULTIPLY 0x5bd1e995u
#define SHIFT    24

uint32_t murmur_2(struct view key)
{
    const uint8_t *at = key.data;
    uint32_t left = key.size;
    uint32_t hash = SEED ^ key.size;

    for (; left >= 4; at += 4, left -= 4) {
        uint32_t word = load_le32(at) * MULTIPLY;
        word = (word ^ (word >> SHIFT)) * MULTIPLY;
        hash = (hash * MULTIPLY) ^ word;
    }
    if (left > 2) hash ^= (uint32_t)at[2] << 16;
    if (left > 1) hash ^= (uint32_t)at[1] << 8;
    if (left > 0) hash = (hash ^ at[0]) * MULTIPLY;

    hash = (hash ^ (hash >> 13)) * MULTIPLY;
    return hash ^ (hash >> 15);
}

int32_t murmur_partition(struct view key, int32_t count)
{
    assert(count > 0);
    assert(!key.null);
    return (int32_t)(murmur_2(key) & 0x7fffffffu) % count;
}
