/* follow.h - committed batches of the metadata log, applied to an image: all of them, or nothing.
 *
 * Thread: the image's. */
#pragma once

#include "core/image.h"

enum follow_result {
    FOLLOW_DONE,
    FOLLOW_MEMORY, /* The node's memory is at its limit: the same again later. */
    FOLLOW_FAULT   /* They cannot follow what is there. */
};

/* `batches` begins with a whole batch, and the image keeps undo entries. Control records are passed
 * over. Unless FOLLOW_DONE is returned, the image is as before (its watches were told of what was
 * done and undone). Cost: O(size of the objects changed). */
MUST_USE enum follow_result follow_batches(struct mem *mem,
                                           struct image *image,
                                           struct view batches);

/* When to try again after FOLLOW_MEMORY: a back-off that doubles, in [10, 1000] ms. */
struct follow_again {
    int64_t at_ms;    /* Of the next try; 0: nothing waits. */
    int64_t since_ms; /* Of the first failure. */
    int64_t backoff_ms;
};

/* A try has failed at `now_ms`. True: it was the first. */
bool follow_again_set(struct follow_again *again, int64_t now_ms);
