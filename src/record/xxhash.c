/* xxhash.c - XXH32 as its specification has it: four lanes of four bytes, then the tail. */
#include "record/xxhash.h"

#include "base/bytes.h"

#define PRIME_1 2654435761u
#define PRIME_2 2246822519u
#define PRIME_3 3266489917u
#define PRIME_4 668265263u
#define PRIME_5 374761393u

static uint32_t rotate(uint32_t value, uint32_t bits)
{
    return (value << bits) | (value >> (32 - bits));
}

static uint32_t lane_round(uint32_t lane, const uint8_t *p)
{
    return rotate(lane + load_le32(p) * PRIME_2, 13) * PRIME_1;
}

uint32_t xxhash_32(const uint8_t *bytes, size_t size_bytes)
{
    const uint8_t *at = bytes;
    size_t left = size_bytes;
    uint32_t hash = PRIME_5;

    if (left >= 16) {
        uint32_t lanes[4] = {PRIME_1 + PRIME_2, PRIME_2, 0, 0u - PRIME_1};
        for (; left >= 16; at += 16, left -= 16) {
            for (uint32_t i = 0; i < 4; i++)
                lanes[i] = lane_round(lanes[i], at + (size_t)i * 4);
        }
        hash =
            rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18);
    }
    hash += (uint32_t)size_bytes;
    for (; left >= 4; at += 4, left -= 4)
        hash = rotate(hash + load_le32(at) * PRIME_3, 17) * PRIME_4;
    for (; left > 0; at++, left--)
        hash = rotate(hash + *at * PRIME_5, 11) * PRIME_1;

    hash = (hash ^ (hash >> 15)) * PRIME_2;
    hash = (hash ^ (hash >> 13)) * PRIME_3;
    return hash ^ (hash >> 16);
}
