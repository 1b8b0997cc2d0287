/* scan.h - walking over the batches of a segment's file, one header at a time.
 *
 * Reads through a window; a batch larger than it is passed over in pieces, so memory does not
 * depend on what a length field says (messages of magic 0 and 1, and batches that are asked for
 * whole, make it grow: to no more than what the file really has). Blocking (in jobs) or from the
 * page cache only (in the shard). Follows Kafka's rules for files: a batch that runs over the end
 * is no fault but the end.
 */
#pragma once

#include "base/mem.h"
#include "io/io.h"
#include "log/log.h"
#include "record/batch.h"

#define SCAN_WINDOW_SMALL (16u * 1024u)
#define SCAN_WINDOW_LARGE (256u * 1024u)

enum scan_result {
    SCAN_BATCH,  /* `header` is set, the batch lies at `at` - its size. */
    SCAN_END,    /* Nothing more: exactly at the end. */
    SCAN_PART,   /* Bytes at `at` that are too few for what they announce. */
    SCAN_BAD,    /* Bytes at `at` that are no batch: length, magic or CRC. */
    SCAN_FAILED, /* `error`: -EAGAIN (cached only), -ENOMEM, -EIO, ... */
};

struct scan {
    struct io *io;
    struct io_file *file;
    uint64_t end;    /* Where the bytes to look at end. */
    uint64_t at;     /* Next batch; after SCAN_BATCH behind it. */
    struct mem *mem; /* Of the window. */
    uint8_t *window; /* NULL until something is read. */
    uint32_t capacity;
    uint32_t window_max; /* A window is made no larger, nor larger than what there is to look at. */
    uint64_t window_at;
    uint32_t window_bytes;
    bool cached; /* Do not wait for the device. */
    bool crc;    /* Check each batch's CRC. */
    int64_t error;
    struct batch_header header;
};

/* Ready to look at files through a window of at most `window_bytes` (SCAN_WINDOW_...): a small file
 * costs a small one. Set `cached` and `crc` afterwards. scan_end() gives the window back. */
void scan_begin(struct scan *scan, struct io *io, struct mem *mem, uint32_t window_bytes);
void scan_end(struct scan *scan);

/* Another file, or another place in it. */
void scan_seek(struct scan *scan, struct io_file *file, uint64_t at, uint64_t end);

/* Read the next batch's header, and check its CRC if asked. */
MUST_USE enum scan_result scan_next(struct scan *scan);

/* The bytes of the batch that scan_next() gave last; the window grows to hold them. The null view:
 * `error` says why (-ENOMEM, or reading failed). They last until the next call. */
MUST_USE struct view scan_batch(struct scan *scan);

/* After SCAN_FAILED, what to answer: LOG_LATER (cached only), LOG_E_MEMORY, -errno. */
int scan_failure(const struct scan *scan);
