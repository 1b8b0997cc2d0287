/* look_index.h - a closed segment's offset and time index, believed only as far as the batches bear
 * them out; made anew from the batches otherwise. For jobs: every call may block. */
#pragma once

#include "log/state.h"

struct look_index {
    /* In. */
    struct log_file *file; /* Of the batches. */
    int64_t base;
    uint32_t bytes; /* Of the batches. */
    uint32_t interval_bytes;
    bool rebuild; /* The files are known to be wrong. */
    struct disk_path offsets_path;
    struct disk_path times_path;
    /* Out. */
    struct index offsets;
    struct index times;
    struct segment_times most;
    bool rebuilt; /* They were made anew (and the files replaced). */
};

/* Fill in what is asked for `segment`. */
void look_index_of(struct look_index *look, struct segment *segment);

/* Load, check, or make anew. 0 or -errno. Memory is the scan's. */
MUST_USE int look_index_load(struct look_index *look, struct scan *scan);

/* Does the batch of the last time entry have that timestamp, and no batch behind it a larger one?
 * Sets `*hold` and `most`. 0, or -errno if reading failed. */
MUST_USE int look_times_hold(struct look_index *look,
                             struct io_file *file,
                             struct scan *scan,
                             bool *hold);

/* Give the indexes back. */
void look_index_free(struct look_index *look, struct mem *mem);
