/* xxhash.h - XXH32, the checksum inside lz4 frames (liblz4 has it but does not export it). */
#pragma once

#include "base/base.h"

/* XXH32 of the bytes with seed 0. "" -> 02cc5d05. O(size). */
uint32_t xxhash_32(const uint8_t *bytes, size_t size_bytes);
