/* fetch_old.h - Fetch below version 4: its clients know no batches, so what was read is turned into
 * message sets of magic 0 or 1. */
#pragma once

#include "broker/fetch.h"

/* Does this version want message sets? */
static inline bool fetch_is_old(const struct request *request)
{
    return request->version < 4;
}

/* What 3.9 refuses before it looks at the partition: NONE, or its error. */
int16_t fetch_old_check(struct fetch *fetch, const struct image_topic *topic);

/* Read and turn what the items have found, elsewhere; then fetch_answer(), with the sets in the
 * items' `old_set`. False: nothing is to be turned, or there is no memory (the items are empty
 * then): answer at once. */
MUST_USE bool fetch_old_begin(struct fetch *fetch);

/* The request is ended, its answer encoded. NULL is fine. */
void fetch_old_end(struct fetch_old *old);
