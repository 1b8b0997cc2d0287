/* compress_mem.h - memory for zlib and zstd from a struct mem. Private to compress.c and
 * decompress.c.
 *
 * The libraries do not tell a block's size when they give it back, so it stands in front of it. */
#pragma once

#include "base/mem.h"

#define COMPRESS_MEM_HEAD_BYTES 16u /* Keeps the alignment of struct mem. */

static inline void *compress_mem_get(void *mem, size_t size_bytes)
{
    size_t whole = size_bytes + COMPRESS_MEM_HEAD_BYTES;
    if (whole < size_bytes) return NULL;
    uint8_t *block = mem_get(mem, whole);
    if (block == NULL) return NULL;
    memcpy(block, &whole, sizeof(whole));
    return block + COMPRESS_MEM_HEAD_BYTES;
}

static inline void compress_mem_put(void *mem, void *block)
{
    if (block == NULL) return;
    uint8_t *start = (uint8_t *)block - COMPRESS_MEM_HEAD_BYTES;
    size_t whole;
    memcpy(&whole, start, sizeof(whole));
    mem_put(mem, start, whole);
}

/* The same with zlib's signature. */
static inline void *compress_mem_zlib_get(void *mem, unsigned count, unsigned size_bytes)
{
    return compress_mem_get(mem, (size_t)count * size_bytes);
}

/* A block of at least `size_bytes` in `*block`; what it held is lost. False: no memory, it is
 * NULL then. */
MUST_USE static inline bool compress_mem_need(struct mem *mem,
                                              uint8_t **block,
                                              uint32_t *block_bytes,
                                              uint32_t size_bytes)
{
    if (*block_bytes >= size_bytes) return true;
    *block = mem_put(mem, *block, *block_bytes);
    *block_bytes = 0;
    *block = mem_get(mem, size_bytes);
    if (*block == NULL) return false;
    *block_bytes = size_bytes;
    return true;
}

struct compress_work;

/* Give the reading states of zlib back (decompress.c knows their shape). */
void decompress_work_free(struct compress_work *work);
