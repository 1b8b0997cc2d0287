/* memory.c - calloc, malloc and free; counting is in base/mem.h. malloc's blocks are 16-aligned
 * here. */
#include "sys/memory.h"

#include <stdlib.h>

static void *memory_get(struct mem *mem, size_t size_bytes)
{
    (void)mem;
    return calloc(1, size_bytes);
}

static void *memory_take(struct mem *mem, size_t size_bytes)
{
    (void)mem;
    return malloc(size_bytes);
}

static void memory_put(struct mem *mem, void *block, size_t size_bytes)
{
    (void)mem;
    (void)size_bytes;
    free(block);
}

void memory_init(struct mem *mem, uint64_t limit_bytes)
{
    *mem = (struct mem){
        .get = memory_get, .take = memory_take, .put = memory_put, .limit_bytes = limit_bytes};
}

static void *share_get(struct mem *mem, size_t size_bytes)
{
    return mem_get(container_of(mem, struct memory_share, mem)->parent, size_bytes);
}

static void *share_take(struct mem *mem, size_t size_bytes)
{
    return mem_take(container_of(mem, struct memory_share, mem)->parent, size_bytes);
}

static void share_put(struct mem *mem, void *block, size_t size_bytes)
{
    (void)mem_put(container_of(mem, struct memory_share, mem)->parent, block, size_bytes);
}

void memory_share(struct memory_share *share, struct mem *parent, uint64_t limit_bytes)
{
    *share = (struct memory_share){
        {.get = share_get, .take = share_take, .put = share_put, .limit_bytes = limit_bytes},
        parent
    };
}
