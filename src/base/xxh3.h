/* xxh3.h - the 64-bit XXH3 hash, which group coordinators keep of the topics they know.
 *
 * libxxhash's header, compiled into this one file: no library is linked. */
#pragma once

#include "base/base.h"

/* XXH3-64 of the bytes with seed 0. O(size). */
uint64_t xxh3_64(const void *bytes, size_t size_bytes);
