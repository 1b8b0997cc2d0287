/* read.c - from an offset to a range of a segment's file.
 *
 * The place of an offset is found by the newest hint at or below it (appends and lookups leave
 * some, so reads at the tail and sequential reads need no I/O), else by the offset index, and from
 * there by walking over batch headers in the page cache. If an index or a page is not in memory a
 * job reads it (look.c), and the caller asks again. */
#include <errno.h>

#include "log/scan.h"
#include "log/state.h"

void log_range_release(struct log_range *range)
{
    if (range->hold != NULL) log_file_release(range->hold);
    *range = (struct log_range){0};
}

/* Where to start walking to find `offset`: the best hint or index entry (then last_offset is the
 * entry's, else -1). */
static struct log_hint read_floor(const struct log *log, struct segment *segment, int64_t offset)
{
    struct log_hint best = {.segment = segment, .offset = segment->base, .last_offset = -1};
    struct index_offset entry;
    int64_t relative = MIN(offset - segment->base, (int64_t)INT32_MAX);
    if (relative >= 0 && segment->offsets.loaded &&
        index_floor_offset(&segment->offsets, (uint32_t)relative, &entry))
        best = (struct log_hint){.segment = segment,
                                 .offset = segment->base + entry.relative,
                                 .at_bytes = entry.at_bytes,
                                 .last_offset = segment->base + entry.relative};
    for (uint32_t i = 0; i < log_hint_count(log); i++) {
        const struct log_hint *hint = &log->hints[i];
        if (hint->segment == segment && hint->offset <= offset && hint->at_bytes >= best.at_bytes) {
            best = *hint;
            best.last_offset = -1;
        }
    }
    return best;
}

/* The same by position: the last known batch start at or before `at_bytes`. */
static struct log_hint read_floor_position(const struct log *log,
                                           struct segment *segment,
                                           uint32_t at_bytes)
{
    struct log_hint best = {.segment = segment, .last_offset = -1};
    struct index_offset entry;
    if (segment->offsets.loaded && index_floor_position(&segment->offsets, at_bytes, &entry)) {
        best.at_bytes = entry.at_bytes;
        best.last_offset = segment->base + entry.relative;
    }
    for (uint32_t i = 0; i < log_hint_count(log); i++) {
        const struct log_hint *hint = &log->hints[i];
        if (hint->segment != segment || hint->at_bytes > at_bytes) continue;
        if (hint->at_bytes < best.at_bytes) continue;
        best.at_bytes = hint->at_bytes;
        best.last_offset = -1;
    }
    return best;
}

/* Does the next batch lie behind the one that was found? The base offset is under no checksum: one
 * that is wrong would give its records other offsets. */
static int read_next_behind(struct scan *scan, const struct read_find *find)
{
    enum scan_result result = scan_next(scan);
    if (result == SCAN_FAILED) return scan_failure(scan);
    bool behind = result != SCAN_BATCH || scan->header.magic < 2 ||
                  scan->header.base_offset > find->last_offset;
    return behind ? LOG_OK : LOG_E_DAMAGED;
}

int read_walk(struct scan *scan, struct read_find *find)
{
    for (;;) {
        enum scan_result result = scan_next(scan);
        if (result == SCAN_FAILED) return scan_failure(scan);
        if (result == SCAN_END) return LOG_NOT_FOUND;
        if (result != SCAN_BATCH) return LOG_E_DAMAGED;
        uint32_t size = batch_size(&scan->header);
        bool behind = scan->header.magic < 2 || scan->header.base_offset >= find->least;
        if (!behind) return LOG_E_DAMAGED;
        find->at_bytes = (uint32_t)(scan->at - size);
        find->batch_bytes = size;
        find->base_offset = scan->header.base_offset;
        find->last_offset = batch_last_offset(&scan->header);
        if (find->expect_last >= 0 && find->expect_last != find->last_offset) return READ_BAD_INDEX;
        find->expect_last = -1;
        find->least = find->last_offset + 1;
        if (find->by_position ? scan->at > find->position : find->last_offset >= find->offset)
            return read_next_behind(scan, find);
    }
}

/* Walk in the page cache; what is not there, or an index that does not bear out, goes to a job. */
static int read_walk_cached(struct segment *segment,
                            const struct log_hint *from,
                            struct read_find *find)
{
    struct log *log = segment->log;
    struct scan scan;
    scan_begin(&scan, log->logs->io, log->logs->mem, SCAN_WINDOW_SMALL);
    scan_seek(&scan, segment->file->file, from->at_bytes, segment->written_bytes);
    scan.cached = true;
    find->least = segment->base;
    find->expect_last = from->last_offset;
    int result = read_walk(&scan, find);
    scan_end(&scan);
    if (result == READ_BAD_INDEX && segment->sealed) {
        look_forget(segment);
        index_unload(log->logs->mem, &segment->offsets);
        index_unload(log->logs->mem, &segment->times);
        segment->index_bad = true;
        result = LOG_LATER;
    }
    if (result == READ_BAD_INDEX) return LOG_E_DAMAGED;
    if (result != LOG_LATER) return result;
    find->at_bytes = from->at_bytes;
    find->expect_last = -1;
    return look_start(log, segment, find);
}

/* A hint that says all about the batch of `offset`. */
static bool read_hinted(const struct log *log, struct segment *segment, struct read_find *find)
{
    for (uint32_t i = 0; i < log_hint_count(log); i++) {
        const struct log_hint *hint = &log->hints[i];
        if (hint->segment != segment || hint->batch_bytes == 0) continue;
        if (find->offset < hint->offset || find->offset > hint->last_offset) continue;
        if (hint->at_bytes >= segment->written_bytes) continue;
        find->at_bytes = hint->at_bytes;
        find->batch_bytes = hint->batch_bytes;
        find->base_offset = hint->base_offset;
        find->last_offset = hint->last_offset;
        return true;
    }
    return false;
}

static void read_remember(struct log *log, struct segment *segment, const struct read_find *find)
{
    int64_t offset = find->base_offset;
    if (!find->by_position) offset = MIN(offset, find->offset);
    struct log_hint hint = {segment,           offset,           find->at_bytes, find->batch_bytes,
                            find->base_offset, find->last_offset};
    log_hint_add(log, &hint);
}

/* First batch of the segment's written bytes with a last offset >= `offset`: LOG_OK, LOG_NOT_FOUND
 * (the segment ends below), LOG_LATER, ... The file is open. */
static int read_find_offset(struct log *log, struct segment *segment, struct read_find *find)
{
    if (read_hinted(log, segment, find)) return LOG_OK;
    struct log_hint from = read_floor(log, segment, find->offset);
    find->at_bytes = from.at_bytes; /* For a lookup that needs no index. */
    find->expect_last = -1;
    if (!segment->offsets.loaded && from.offset != find->offset)
        return look_start(log, segment, find);
    int result = read_walk_cached(segment, &from, find);
    if (result == LOG_OK) read_remember(log, segment, find);
    return result;
}

/* Where the bytes below `offset_end` end in this segment, and the offset that follows them. */
struct read_limit {
    uint32_t at_bytes;
    int64_t offset_next;
};

static int read_end(struct log *log,
                    struct segment *segment,
                    int64_t offset_end,
                    struct read_limit *limit)
{
    *limit = (struct read_limit){segment->written_bytes, segment->written_end};
    if (offset_end >= segment->written_end) return LOG_OK;
    limit->offset_next = offset_end;
    if (offset_end == segment->durable_end) {
        limit->at_bytes = segment->durable_bytes;
        return LOG_OK;
    }
    struct read_find find = {.offset = offset_end};
    int result = read_find_offset(log, segment, &find);
    if (result == LOG_OK) limit->at_bytes = find.at_bytes;
    return result == LOG_NOT_FOUND ? LOG_OK : result;
}

/* Lower the limit so that [from, limit) has at most max_bytes and ends between two batches. */
static int read_cut(struct log *log,
                    struct segment *segment,
                    uint32_t from_bytes,
                    uint32_t max_bytes,
                    struct read_limit *limit)
{
    uint64_t cut = (uint64_t)from_bytes + max_bytes;
    if (cut >= limit->at_bytes) return LOG_OK;
    struct read_find find = {.by_position = true, .position = (uint32_t)cut, .expect_last = -1};
    if (!segment->offsets.loaded) return look_start(log, segment, &find);
    struct log_hint from = read_floor_position(log, segment, (uint32_t)cut);
    if (from.at_bytes < from_bytes)
        from = (struct log_hint){.at_bytes = from_bytes, .last_offset = -1};
    int result = read_walk_cached(segment, &from, &find);
    if (result != LOG_OK) return result == LOG_NOT_FOUND ? LOG_E_DAMAGED : result;
    *limit = (struct read_limit){find.at_bytes, find.base_offset};
    read_remember(log, segment, &find);
    return LOG_OK;
}

/* What of one segment answers the read. LOG_NOT_FOUND: nothing in it, look in the next. */
static int read_segment(struct log *log,
                        struct segment *segment,
                        const struct log_read *in,
                        struct log_range *out)
{
    struct read_find first = {.offset = in->offset};
    struct read_limit limit;
    int result = segment_file(segment, false);
    if (result == LOG_OK) result = read_find_offset(log, segment, &first);
    if (result != LOG_OK) return result;
    if (first.base_offset >= in->offset_end) return LOG_OK; /* Empty: all lies above the end. */
    result = read_end(log, segment, in->offset_end, &limit);
    if (result != LOG_OK) return result;
    uint32_t max_bytes = in->min_one ? MAX(in->max_bytes, first.batch_bytes) : in->max_bytes;
    result = read_cut(log, segment, first.at_bytes, max_bytes, &limit);
    if (result != LOG_OK) return result;

    out->offset_first = first.base_offset;
    if (limit.at_bytes <= first.at_bytes) {
        out->batch_too_big = first.batch_bytes;
        return LOG_OK;
    }
    log_file_hold(segment->file);
    out->hold = segment->file;
    out->file = segment->file->file;
    out->at_bytes = first.at_bytes;
    out->size_bytes = limit.at_bytes - first.at_bytes;
    out->offset_next = limit.offset_next;
    return LOG_OK;
}

int log_read(struct log *log, const struct log_read *in, struct log_range *out)
{
    *out = (struct log_range){.offset_first = in->offset, .offset_next = in->offset};
    int usable = log_usable(log);
    if (usable != LOG_OK) return usable;
    if (in->offset < log->start || in->offset > log->end) return LOG_E_OUT_OF_RANGE;

    struct log_read read = *in;
    read.offset_end = MIN(in->offset_end, log->written);
    if (in->offset >= read.offset_end) return LOG_OK;
    uint32_t at = log_segment_floor(log, in->offset);
    if (at == UINT32_MAX) return LOG_E_OUT_OF_RANGE;
    for (; at < log->segment_count; at++) {
        struct segment *segment = log->segments[at];
        if (segment->base >= read.offset_end) return LOG_OK;
        if (segment->written_bytes == 0) continue;
        int result = read_segment(log, segment, &read, out);
        if (result != LOG_NOT_FOUND) return result;
    }
    return LOG_OK;
}
