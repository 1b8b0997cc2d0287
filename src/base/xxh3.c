/* xxh3.c - see xxh3.h. */
#include "base/xxh3.h"

/* Only what is called is compiled in; states on the heap are not. */
#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t xxh3_64(const void *bytes, size_t size_bytes)
{
    return XXH3_64bits(bytes, size_bytes);
}
