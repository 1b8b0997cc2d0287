/* memory.h - the counted memory of a node or a job, over malloc.
 *
 * Thread: any; a job that runs elsewhere has one of its own all the same, so that it has a limit.
 */
#pragma once

#include "base/mem.h"

/* A memory with nothing out. `limit_bytes` 0: none. */
void memory_init(struct mem *mem, uint64_t limit_bytes);
