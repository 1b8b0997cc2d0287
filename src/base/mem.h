/* mem.h - the memory of one node, counted: an interface that pure code may allocate through.
 *
 * base/ and core/ have no heap of their own; who creates them hands in a struct mem. sys/ and sim/
 * implement it. An allocation may fail: the caller leaves its state as it was and says so.
 *
 * Thread: all shards of a node share one, if its `get` and `put` may be called by any thread: a
 * block may be given back on another shard than the one that took it. The count is atomic; the
 * limit may be passed by what several shards take at the same moment. */
#pragma once

#include "base/base.h"

struct mem {
    void *(*get)(struct mem *mem, size_t size_bytes); /* Zeroed and 16-aligned, or NULL. */
    /* As get, but the bytes are whatever they were; NULL: get does for both. */
    void *(*take)(struct mem *mem, size_t size_bytes);
    void (*put)(struct mem *mem, void *block, size_t size_bytes);
    uint64_t used_bytes;  /* What is out now: read it by mem_used(). */
    uint64_t limit_bytes; /* An allocation that would pass this fails. 0: no limit. */
};

/* What is out now. */
static inline uint64_t mem_used(const struct mem *mem)
{
    return __atomic_load_n(&mem->used_bytes, __ATOMIC_RELAXED);
}

/* A zeroed block of `size_bytes`, or NULL when the node is at its limit. Taken by the caller. */
MUST_USE static inline void *mem_get(struct mem *mem, size_t size_bytes)
{
    assert(size_bytes > 0);
    if (mem->limit_bytes != 0 && mem_used(mem) + size_bytes > mem->limit_bytes) return NULL;
    void *block = mem->get(mem, size_bytes);
    if (block != NULL) (void)__atomic_fetch_add(&mem->used_bytes, size_bytes, __ATOMIC_RELAXED);
    return block;
}

/* As mem_get but not zeroed: for who writes every byte that is read later. */
MUST_USE static inline void *mem_take(struct mem *mem, size_t size_bytes)
{
    if (mem->take == NULL) return mem_get(mem, size_bytes);
    assert(size_bytes > 0);
    if (mem->limit_bytes != 0 && mem_used(mem) + size_bytes > mem->limit_bytes) return NULL;
    void *block = mem->take(mem, size_bytes);
    if (block != NULL) (void)__atomic_fetch_add(&mem->used_bytes, size_bytes, __ATOMIC_RELAXED);
    return block;
}

/* Give a block back, with the size it was taken with. NULL is fine. Returns NULL. */
static inline void *mem_put(struct mem *mem, void *block, size_t size_bytes)
{
    if (block == NULL) return NULL;
    uint64_t before = __atomic_fetch_sub(&mem->used_bytes, size_bytes, __ATOMIC_RELAXED);
    assert(before >= size_bytes);
    mem->put(mem, block, size_bytes);
    return NULL;
}
