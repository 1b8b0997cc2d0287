/* range.h - bytes of a reply that are not copied: a part of a file, or memory that is held.
 *
 * A `records` field of a response is made external by net_range_view(first): its value is the bytes
 * of the ranges from `first` on, linked by `next`. Ranges lie in the request's arena, which lives
 * until the reply is sent. `release` is called exactly once for each range of a reply given to
 * request_reply, when its bytes are sent or never will be: that is where a file reference or a
 * buffer is dropped. */
#pragma once

#include "base/view.h"
#include "io/io.h"

struct net_range {
    struct net_range *next; /* Following bytes of the same value, or NULL. */
    struct io_file *file;   /* The bytes lie here at `offset`, proved resident; NULL: in memory. */
    uint64_t offset;
    const uint8_t *bytes; /* If `file` is NULL. */
    uint32_t size_bytes;
    void (*release)(struct net_range *range); /* NULL: nothing to release. */
    void *context;                            /* For `release`. */
};

/* The value of a bytes or records field whose bytes are these ranges'. NULL: the empty value. */
static inline struct view net_range_view(const struct net_range *first)
{
    uint64_t size = 0;
    for (const struct net_range *range = first; range != NULL; range = range->next)
        size += range->size_bytes;
    assert(size <= INT32_MAX);
    return (struct view){(const uint8_t *)first, (uint32_t)size, false, first != NULL};
}
