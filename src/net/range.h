/* range.h - bytes of an answer that are not copied: a part of a file, or memory that is held.
 *
 * A `records` field of a response is made external by request_ranges(request, first): its value is
 * the bytes of the ranges from `first` on, linked by `next`. Ranges lie in the request's arena (or
 * in something else that lives as long), which lives until the answer is sent. `release` is called
 * exactly once for each: when its bytes are sent, or never will be, whatever becomes of the request
 * or its connection. That is where a file reference or a buffer is dropped. */
#pragma once

#include "base/list.h"
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
    struct list link;                         /* net's: the request's ranges. */
};
