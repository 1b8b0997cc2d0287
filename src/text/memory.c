/* memory.c - see memory.h. */
#include "text/memory.h"

#include <stdlib.h>

static void *heap_get(struct mem *mem, size_t size_bytes)
{
    return calloc(1, size_bytes);
}

static void heap_put(struct mem *mem, void *block, size_t size_bytes)
{
    free(block);
}

void memory_init(struct mem *mem, uint64_t limit_bytes)
{
    *mem = (struct mem){.get = heap_get, .put = heap_put, .limit_bytes = limit_bytes};
}
