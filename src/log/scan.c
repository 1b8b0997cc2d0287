/* scan.c - a window that moves over a segment's file. */
#include "log/scan.h"

#include <errno.h>

#include "record/crc.h"

/* Make [at, at + size) part of the window. `size` <= capacity, and within `end`. */
static bool scan_fill(struct scan *scan, uint64_t at, uint32_t size)
{
    assert(size <= scan->capacity);
    assert(at + size <= scan->end);
    if (at >= scan->window_at && at + size <= scan->window_at + scan->window_bytes) return true;

    uint32_t keep = 0;
    if (at >= scan->window_at && at < scan->window_at + scan->window_bytes) {
        keep = (uint32_t)(scan->window_at + scan->window_bytes - at);
        memmove(scan->window, scan->window + scan->window_bytes - keep, keep);
    }
    scan->window_at = at;
    scan->window_bytes = keep;
    uint64_t from = at + keep;
    size_t want = (size_t)MIN((uint64_t)(scan->capacity - keep), scan->end - from);
    int64_t got = scan->cached
                      ? io_disk_read_cached(scan->io, scan->file, scan->window + keep, want, from)
                      : io_disk_read(scan->io, scan->file, scan->window + keep, want, from);
    if (got > 0) scan->window_bytes += (uint32_t)got;
    if (scan->window_bytes >= size) return true;
    scan->error = got < 0        ? got
                  : scan->cached ? -EAGAIN
                                 : -EIO; /* The file is shorter than told. */
    return false;
}

static const uint8_t *scan_bytes(const struct scan *scan, uint64_t at)
{
    return scan->window + (at - scan->window_at);
}

void scan_begin(struct scan *scan, struct io *io, struct mem *mem, uint32_t window_bytes)
{
    *scan = (struct scan){.io = io, .mem = mem, .window_max = window_bytes};
}

static void scan_drop(struct scan *scan)
{
    mem_put(scan->mem, scan->window, scan->capacity);
    scan->window = NULL;
    scan->capacity = scan->window_bytes = 0;
}

void scan_end(struct scan *scan)
{
    scan_drop(scan);
}

void scan_seek(struct scan *scan, struct io_file *file, uint64_t at, uint64_t end)
{
    if (file != scan->file) scan->window_bytes = 0;
    scan->file = file;
    scan->at = at;
    scan->end = MAX(at, end);
    uint64_t wanted = MIN((uint64_t)scan->window_max, scan->end - at);
    if (wanted > scan->capacity) scan_drop(scan); /* A larger one is made when it is needed. */
}

/* A window of at least `size` bytes; what it holds is forgotten if it grows. */
static bool scan_grow(struct scan *scan, uint32_t size)
{
    if (size <= scan->capacity) return true;
    uint64_t there = scan->end - MIN(scan->end, scan->at);
    size = MAX(size, (uint32_t)MIN((uint64_t)scan->window_max, there));
    uint8_t *window = mem_get(scan->mem, size);
    if (window == NULL) {
        scan->error = -ENOMEM;
        return false;
    }
    mem_put(scan->mem, scan->window, scan->capacity);
    scan->window = window;
    scan->capacity = size;
    scan->window_bytes = 0;
    return true;
}

/* The CRC over a batch's covered bytes, window by window. Sets `*match`. False: reading failed. */
static bool scan_crc(struct scan *scan, uint32_t size, bool *match)
{
    if (scan->header.magic < 2 || size <= scan->capacity) {
        if (!scan_grow(scan, size) || !scan_fill(scan, scan->at, size)) return false;
        *match = batch_crc_valid(&scan->header, view_of(scan_bytes(scan, scan->at), size));
        return true;
    }
    uint32_t crc = 0;
    uint64_t at = scan->at + BATCH_AT_ATTRIBUTES;
    uint64_t end = scan->at + size;
    while (at < end) {
        uint32_t piece = (uint32_t)MIN((uint64_t)scan->capacity, end - at);
        if (!scan_fill(scan, at, piece)) return false;
        crc = crc_32c_more(crc, scan_bytes(scan, at), piece);
        at += piece;
    }
    *match = crc == scan->header.crc;
    return true;
}

enum scan_result scan_next(struct scan *scan)
{
    assert(scan->at <= scan->end);
    uint64_t left = scan->end - scan->at;
    scan->error = 0;
    if (left == 0) return SCAN_END;
    if (left <= BATCH_MAGIC_BYTES) return SCAN_PART;

    uint32_t head = (uint32_t)MIN(left, (uint64_t)BATCH_HEADER_BYTES);
    if (!scan_grow(scan, head) || !scan_fill(scan, scan->at, head)) return SCAN_FAILED;
    struct view prefix = view_of(scan_bytes(scan, scan->at), head);
    uint64_t size = batch_frame_size(prefix);
    if (size == 0) return SCAN_BAD;
    if (size > left) return SCAN_PART;
    enum record_fault fault = batch_header_load(prefix, &scan->header);
    if (fault != RECORD_OK) return SCAN_BAD;
    if (scan->crc) {
        bool match = false;
        if (!scan_crc(scan, (uint32_t)size, &match)) return SCAN_FAILED;
        if (!match) return SCAN_BAD;
    }
    scan->at += size;
    return SCAN_BATCH;
}

struct view scan_batch(struct scan *scan)
{
    uint32_t size = batch_size(&scan->header);
    scan->error = 0;
    uint64_t at = scan->at - size;
    if (!scan_grow(scan, size) || !scan_fill(scan, at, size)) return VIEW_NULL;
    return view_of(scan_bytes(scan, at), size);
}

int scan_failure(const struct scan *scan)
{
    if (scan->error == -EAGAIN) return LOG_LATER;
    return scan->error == -ENOMEM ? LOG_E_MEMORY : (int)scan->error;
}
