/* look_index.c - loading, checking and rebuilding a closed segment's indexes.
 *
 * Checked here: sizes, order, ranges; that the last time entry is borne out by its batch and that
 * no later batch has a larger timestamp (retention rests on it). Checked at use: that the batch at
 * an offset entry's position ends at that offset (read.c). */
#include "log/look_index.h"

#include <errno.h>

/* Indexes larger than this are not believed: the most that 2 GiB of smallest batches can have. */
#define LOOK_INDEX_MAX (512u * 1024u * 1024u)

void look_index_of(struct look_index *look, struct segment *segment)
{
    const struct log *log = segment->log;
    *look = (struct look_index){
        .file = segment->file,
        .base = segment->base,
        .bytes = segment->written_bytes,
        .interval_bytes = log->config.index_interval_bytes,
        .rebuild = segment->index_bad,
        .offsets_path = log_path(log, segment_file_name(segment->base, ".index").text),
        .times_path = log_path(log, segment_file_name(segment->base, ".timeindex").text),
        .offsets = index_new(INDEX_OFFSET_BYTES),
        .times = index_new(INDEX_TIME_BYTES),
        .most = {-1, -1},
    };
}

void look_index_free(struct look_index *look, struct mem *mem)
{
    index_unload(mem, &look->offsets);
    index_unload(mem, &look->times);
}

static int look_rebuild(struct look_index *look, struct scan *scan)
{
    look_index_free(look, scan->mem);
    look->offsets = index_new(INDEX_OFFSET_BYTES);
    look->times = index_new(INDEX_TIME_BYTES);
    look->most = (struct segment_times){-1, -1};
    look->rebuilt = true;
    struct segment_indexes out = {look->base, &look->offsets, &look->times, &look->most};
    scan_seek(scan, look->file->file, 0, look->bytes);
    uint32_t since = 0;
    int64_t previous = look->base - 1;
    for (;;) {
        if (!index_reserve(scan->mem, &look->offsets, 1)) return -ENOMEM;
        if (!index_reserve(scan->mem, &look->times, 2)) return -ENOMEM;
        enum scan_result result = scan_next(scan);
        if (result == SCAN_FAILED) return (int)scan->error;
        if (result != SCAN_BATCH) break;
        uint32_t size = batch_size(&scan->header);
        int64_t last = batch_last_offset(&scan->header);
        bool behind = scan->header.magic < 2 || scan->header.base_offset > previous;
        if (!behind || last <= previous || last - look->base > INT32_MAX) break;
        previous = last;
        bool due = since > look->interval_bytes;
        segment_index_batch(&out, &scan->header, (uint32_t)(scan->at - size), due);
        since = due ? size : since + size;
    }
    segment_index_last_time(&out);
    int error = index_store(scan->io, look->offsets_path.text, &look->offsets);
    if (error == 0) error = index_store(scan->io, look->times_path.text, &look->times);
    look->offsets.stored = look->offsets.count;
    look->times.stored = look->times.count;
    return disk_is_full(error) ? 0 : error;
}

int look_times_hold(struct look_index *look, struct io_file *file, struct scan *scan, bool *hold)
{
    struct index_time last = {-1, 0};
    struct index_offset from = {0, 0};
    bool entered = false;
    if (look->times.count > 0) {
        last = index_get_time(&look->times, look->times.count - 1);
        entered = index_floor_offset(&look->offsets, last.relative, &from);
    }
    bool found = look->times.count == 0;
    *hold = true;
    scan_seek(scan, file, entered ? from.at_bytes : 0, look->bytes);
    for (;;) {
        enum scan_result result = scan_next(scan);
        if (result == SCAN_FAILED) return (int)scan->error;
        if (result != SCAN_BATCH) break;
        int64_t relative = batch_last_offset(&scan->header) - look->base;
        if (entered && relative != from.relative) *hold = false;
        entered = false;
        if (relative == last.relative && scan->header.max_timestamp == last.timestamp_ms)
            found = true;
        if (scan->header.max_timestamp > last.timestamp_ms && relative >= last.relative)
            *hold = false;
    }
    *hold = *hold && found;
    if (look->times.count > 0)
        look->most = (struct segment_times){last.timestamp_ms, look->base + last.relative};
    return 0;
}

int look_index_load(struct look_index *look, struct scan *scan)
{
    if (look->rebuild) return look_rebuild(look, scan);
    int error =
        index_load(scan->io, scan->mem, look->offsets_path.text, LOOK_INDEX_MAX, &look->offsets);
    if (error == 0)
        error =
            index_load(scan->io, scan->mem, look->times_path.text, LOOK_INDEX_MAX, &look->times);
    if (error == -ENOENT || error == -EFBIG) return look_rebuild(look, scan);
    if (error < 0) return error;
    bool hold = index_valid(&look->offsets, look->base, look->bytes) &&
                index_valid(&look->times, look->base, look->bytes);
    if (hold) error = look_times_hold(look, look->file->file, scan, &hold);
    if (error < 0) return error;
    return hold ? 0 : look_rebuild(look, scan);
}
