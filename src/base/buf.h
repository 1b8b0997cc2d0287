/* buf.h - a counted buffer: bytes that several holders need for different times.
 *
 * A receive buffer holds a request's frame, the log holds it until the batches in it are written.
 * The last release gives it back. Thread: a shard may hold and release another one's: the count is
 * atomic, and cheap for a sole holder. */
#pragma once

#include "base/mem.h"
#include "base/view.h"

struct buf {
    struct mem *mem;
    uint32_t references;
    uint32_t size_bytes; /* Of `data`. */
    uint8_t data[] __attribute__((aligned(16)));
};

/* A buffer of `size_bytes`, not zeroed, with one reference, the caller's. NULL: no memory. */
MUST_USE static inline struct buf *buf_new(struct mem *mem, uint32_t size_bytes)
{
    struct buf *buf = mem_take(mem, sizeof(*buf) + size_bytes);
    if (buf == NULL) return NULL;
    buf->mem = mem;
    buf->references = 1;
    buf->size_bytes = size_bytes;
    return buf;
}

/* One more holder. Returns `buf`. */
static inline struct buf *buf_hold(struct buf *buf)
{
    uint32_t before = __atomic_fetch_add(&buf->references, 1, __ATOMIC_RELAXED);
    assert(before > 0);
    assert(before < UINT32_MAX);
    return buf;
}

/* Has it other holders than the caller? Without any, its bytes may be written anew. */
static inline bool buf_shared(const struct buf *buf)
{
    return __atomic_load_n(&buf->references, __ATOMIC_ACQUIRE) > 1;
}

/* One holder less; the last one frees it. NULL is fine. Returns NULL. */
static inline struct buf *buf_release(struct buf *buf)
{
    if (buf == NULL) return NULL;
    uint32_t references = __atomic_load_n(&buf->references, __ATOMIC_ACQUIRE);
    assert(references > 0);
    if (references > 1) references = __atomic_fetch_sub(&buf->references, 1, __ATOMIC_ACQ_REL);
    if (references == 1) mem_put(buf->mem, buf, sizeof(*buf) + buf->size_bytes);
    return NULL;
}
