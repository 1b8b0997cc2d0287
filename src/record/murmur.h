/* murmur.h - which partition Kafka's clients send a key to: murmur2 of the key's bytes. */
#pragma once

#include "base/view.h"

/* The 32 bits of Kafka's murmur2 (its seed included). "abc" -> 1c94221b. O(size). */
uint32_t murmur_2(struct view key);

/* The partition of 0 .. count-1 that a producer chooses for a key that is not null. `count` > 0. */
int32_t murmur_partition(struct view key, int32_t count);
