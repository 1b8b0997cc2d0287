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
