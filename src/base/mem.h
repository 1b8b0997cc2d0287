/* mem.h - the memory of one node, counted: an interface that pure code may allocate through.
 *
 * base/ and core/ have no heap of their own; who creates them hands in a struct mem. sys/ and sim/
 * implement it. An allocation may fail: the caller leaves its state as it was and says so. */
#pragma once

#include "base/base.h"

struct mem {
    void *(*get)(struct mem *mem, size_t size_bytes); /* Zeroed and 16-aligned, or NULL. */
    void (*put)(struct mem *mem, void *block, size_t size_bytes);
    uint64_t used_bytes;  /* What is out now. */
    uint64_t limit_bytes; /* An allocation that would pass this fails. 0: no limit. */
};

/* A zeroed block of `size_bytes`, or NULL when the node is at its limit. Taken by the caller. */
MUST_USE static inline void *mem_get(struct mem *mem, size_t size_bytes)
{
    assert(size_bytes > 0);
    if (mem->limit_bytes != 0 && mem->used_bytes + size_bytes > mem->limit_bytes) return NULL;
    void *block = mem->get(mem, size_bytes);
    if (block != NULL) mem->used_bytes += size_bytes;
    return block;
}

/* Give a block back, with the size it was taken with. NULL is fine. Returns NULL. */
static inline void *mem_put(struct mem *mem, void *block, size_t size_bytes)
{
    if (block == NULL) return NULL;
    assert(mem->used_bytes >= size_bytes);
    mem->used_bytes -= size_bytes;
    mem->put(mem, block, size_bytes);
    return NULL;
}
