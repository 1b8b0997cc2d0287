/* buf.h - a counted buffer: bytes that several holders need for different times.
 *
 * A receive buffer holds a request's frame, the log holds it until the batches in it are written.
 * The last release gives it back. Thread: the shard that made it; the count is not atomic. */
#pragma once

#include "base/mem.h"
#include "base/view.h"

struct buf {
    struct mem *mem;
    uint32_t references;
    uint32_t size_bytes; /* Of `data`. */
    uint8_t data[] __attribute__((aligned(16)));
};

/* A zeroed buffer of `size_bytes` with one reference, the caller's. NULL: no memory. */
MUST_USE static inline struct buf *buf_new(struct mem *mem, uint32_t size_bytes)
{
    struct buf *buf = mem_get(mem, sizeof(*buf) + size_bytes);
    if (buf == NULL) return NULL;
    buf->mem = mem;
    buf->references = 1;
    buf->size_bytes = size_bytes;
    return buf;
}

/* One more holder. Returns `buf`. */
static inline struct buf *buf_hold(struct buf *buf)
{
    assert(buf->references > 0);
    assert(buf->references < UINT32_MAX);
    buf->references++;
    return buf;
}

/* One holder less; the last one frees it. NULL is fine. Returns NULL. */
static inline struct buf *buf_release(struct buf *buf)
{
    if (buf == NULL) return NULL;
    assert(buf->references > 0);
    if (--buf->references == 0) mem_put(buf->mem, buf, sizeof(*buf) + buf->size_bytes);
    return NULL;
}
