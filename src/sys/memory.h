/* memory.h - the counted memory of a node or a job, over malloc.
 *
 * Thread: any; a job that runs elsewhere has one of its own all the same, so that it has a limit.
 */
#pragma once

#include "base/mem.h"

/* A memory with nothing out. `limit_bytes` 0: none. */
void memory_init(struct mem *mem, uint64_t limit_bytes);

/* The memory of a job: taken from its parent, and counted there while it is out, so that the
 * parent's limit covers what jobs take on other threads. */
struct memory_share {
    struct mem mem;
    struct mem *parent;
};

/* `limit_bytes`: of the share alone, 0: the parent's only. What is still out of it when it is
 * forgotten is the parent's. */
void memory_share(struct memory_share *share, struct mem *parent, uint64_t limit_bytes);
