/* memory.h - a struct mem over the C library's heap, for programs that have no node: the tools and
 * users of libdohle-wire. */
#pragma once

#include "base/mem.h"

/* A memory that fails beyond `limit_bytes` (0: no limit). What is taken from it must be given back
 * to it; it holds nothing itself. */
void memory_init(struct mem *mem, uint64_t limit_bytes);
