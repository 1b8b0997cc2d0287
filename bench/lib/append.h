/* append.h - what the floors of produce and commit share: batches that are checked and written. */
#pragma once

#include <sys/uio.h>

#include "bench/lib/serve.h"

#define APPEND_PIECES 256u

struct append {
    int fd;
    int64_t end; /* Of the file. */
    int64_t offset;
    struct iovec pieces[APPEND_PIECES]; /* Of this wake-up, not written yet. */
    uint32_t count;
};

/* A new file of this name. Ends the program on failure. */
void append_open(struct append *append, const char *path);

/* Check the CRC and walk over the records of a batch, give it its offset. Its bytes are borrowed
 * until append_write. */
void append_batch(struct append *append, struct view batch);

/* Write what has come, in one call. */
void append_write(struct append *append);
