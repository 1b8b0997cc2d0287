/* record_brief.h - what the two walks over a batch's records share: record_iter.c, record_brief.c.
 */
#pragma once

#include "record/batch.h"

/* Step over `size` bytes that are in the window. */
static inline void record_iter_consume(struct record_iter *iter, uint32_t size)
{
    assert(size <= iter->in.size);
    if (size == 0) return; /* There may be no window yet. */
    iter->in.data += size;
    iter->in.size -= size;
    iter->at += size;
}
