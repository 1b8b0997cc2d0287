/* clean_job.c - a compaction's slices: map, copy group by group, put in place.
 *
 * MAP reads the dirty segments' keys until the map is full or all are read. COPY reads the segments
 * of a group and writes what stays to %020d.log.cleaned, with its indexes. SWAP makes that durable,
 * then renames it to .swap, which is the point from which it counts: a crash before loses the
 * output, one after loses the sources. Then the sources become .deleted and .swap loses its suffix.
 * After a failure SWAP goes on where it was. */
#include "log/clean_job.h"

#include <errno.h>
#include <stdio.h>

static struct disk_path clean_path(const struct clean *clean, int64_t base, const char *suffix)
{
    return log_path(clean->log, segment_file_name(base, suffix).text);
}

static int64_t clean_group_base(const struct clean *clean)
{
    return clean->sources[clean->group_from].base;
}

/* ---- reading ----------------------------------------------------------------------------------
 */

static void clean_close_source(struct clean *clean, struct io *io)
{
    io_disk_close(io, clean->file);
    clean->file = NULL;
    clean->scan.file = NULL;
    clean->scan.window_bytes = 0;
}

static int clean_open_source(struct clean *clean, struct io *io)
{
    const struct clean_source *source = &clean->sources[clean->source];
    struct disk_path path = clean_path(clean, source->base, ".log");
    int error = io_disk_open(io, path.text, IO_OPEN_READ, &clean->file);
    if (error < 0) return error;
    scan_seek(&clean->scan, clean->file, 0, source->bytes);
    return 0;
}

/* The next batch of the sources [.., to). SCAN_END: all are read. */
static enum scan_result clean_next(struct clean *clean, struct io *io, uint32_t to)
{
    for (;;) {
        if (clean->file == NULL) {
            if (clean->source == to) return SCAN_END;
            clean->scan.error = clean_open_source(clean, io);
            if (clean->scan.error < 0) return SCAN_FAILED;
        }
        enum scan_result result = scan_next(&clean->scan);
        if (result != SCAN_END) return result;
        clean_close_source(clean, io);
        clean->source++;
    }
}

/* ---- the map -----------------------------------------------------------------------------------
 */

static int clean_map_first(struct clean *clean)
{
    struct mem *mem = &clean->memory.mem;
    uint64_t dirty_bytes = 0;
    clean->source = clean->source_count;
    for (uint32_t i = clean->source_count; i > 0 && clean->sources[i - 1].base >= clean->dirty_from;
         i--) {
        dirty_bytes += clean->sources[i - 1].bytes;
        clean->source = i - 1;
    }
    /* The first dirty offset may lie inside a segment. */
    if (clean->source > 0 && (clean->source == clean->source_count ||
                              clean->sources[clean->source].base > clean->dirty_from)) {
        clean->source--;
        dirty_bytes += clean->sources[clean->source].bytes;
    }
    /* A record with a key has at least ten bytes; compressed ones may be more to the byte, and what
     * does not fit waits for the next pass. */
    if (!clean_map_begin(&clean->map, mem, dirty_bytes / 10, clean->map_bytes)) return -ENOMEM;
    clean->map.offset_end = clean->dirty_from;
    clean_txns_begin(&clean->txns, mem, clean->aborted, clean->aborted_count);
    scan_begin(&clean->scan, clean->io, mem, SCAN_WINDOW_LARGE);
    return 0;
}

/* Sources that COPY has to look at: those that begin below the end of the map. */
static void clean_map_last(struct clean *clean, struct io *io)
{
    if (clean->file != NULL) clean_close_source(clean, io);
    uint32_t count = 0;
    while (count < clean->source_count && clean->sources[count].base < clean->map.offset_end)
        count++;
    clean->mapped_to = count;
    clean_txns_end(&clean->txns);
    clean_txns_begin(&clean->txns, &clean->memory.mem, clean->aborted, clean->aborted_count);
    clean->group_from = clean->group_to = 0;
    clean->source = 0;
    clean->phase = CLEAN_COPY;
    clean->begun = false;
}

static int clean_slice_map(struct clean *clean, struct io *io)
{
    if (!clean->begun) {
        clean->io = io;
        int error = clean_map_first(clean);
        if (error < 0) return error;
        clean->begun = true;
    }
    uint64_t bytes = 0;
    while (bytes < CLEAN_SLICE_BYTES) {
        enum scan_result result = clean_next(clean, io, clean->source_count);
        if (result == SCAN_END) {
            /* All is in: what follows the last batch in a source is no gap in the map. */
            clean->map.offset_end = clean->dirty_end;
            clean_map_last(clean, io);
            return 0;
        }
        if (result == SCAN_FAILED) return (int)clean->scan.error;
        if (result != SCAN_BATCH) return -EBADMSG;
        bytes += batch_size(&clean->scan.header);
        int mapped = clean_filter_map(clean);
        if (mapped < 0) return mapped;
        if (mapped != LOG_E_FULL) continue;
        clean_map_last(clean, io);
        return 0;
    }
    return 0;
}

/* ---- copying -----------------------------------------------------------------------------------
 */

/* The longest run of sources whose sizes and offsets fit one segment. */
static void clean_group(struct clean *clean)
{
    const struct log_config *config = &clean->config;
    uint64_t bytes = 0;
    uint64_t index_bytes = 0;
    uint32_t to = clean->group_from;
    while (to < clean->mapped_to) {
        const struct clean_source *source = &clean->sources[to];
        int64_t end = to + 1 < clean->source_count ? clean->sources[to + 1].base : clean->dirty_end;
        bytes += source->bytes;
        index_bytes += source->index_bytes;
        bool fits = bytes <= config->segment_bytes && index_bytes <= config->segment_index_bytes &&
                    end - 1 - clean_group_base(clean) <= INT32_MAX;
        if (to > clean->group_from && !fits) break;
        to++;
    }
    clean->group_to = to;
}

static int clean_copy_first(struct clean *clean, struct io *io)
{
    struct clean_output *out = &clean->out;
    clean_group(clean);
    clean->source = clean->group_from;
    *out = (struct clean_output){
        .last_offset = clean_group_base(clean) - 1,
        .offsets = index_new(INDEX_OFFSET_BYTES),
        .times = index_new(INDEX_TIME_BYTES),
        .txns = index_new(INDEX_TXN_BYTES),
        .most = {-1, -1},
        .first_timestamp_ms = -1,
    };
    sink_init(&out->buffer, &clean->memory.mem, UINT32_MAX);
    struct disk_path path = clean_path(clean, clean_group_base(clean), ".log.cleaned");
    return io_disk_open(io, path.text, IO_OPEN_WRITE | IO_OPEN_CREATE | IO_OPEN_TRUNCATE,
                        &out->file);
}

static int clean_flush(struct clean *clean, struct io *io)
{
    struct clean_output *out = &clean->out;
    if (out->buffer.size_bytes == 0) return 0;
    int64_t put = io_disk_write(io, out->file, out->buffer.data, out->buffer.size_bytes,
                                out->bytes - out->buffer.size_bytes);
    sink_reset(&out->buffer);
    if (put < 0) return (int)put;
    /* Written back as it goes, so that the end does not stall a commit. */
    return io_disk_sync(io, out->file);
}

/* One output batch into the indexes. */
static int clean_note(struct clean *clean, const struct batch_header *header)
{
    struct clean_output *out = &clean->out;
    struct mem *mem = &clean->memory.mem;
    if (!index_reserve(mem, &out->offsets, 1) || !index_reserve(mem, &out->times, 2))
        return -ENOMEM;
    int64_t base = clean_group_base(clean);
    struct segment_indexes indexes = {base, &out->offsets, &out->times, &out->most};
    if (batch_last_offset(header) <= out->last_offset) return -EBADMSG;
    bool due = out->since_index_bytes > clean->config.index_interval_bytes;
    if (out->bytes == 0) out->first_timestamp_ms = header->max_timestamp;
    segment_index_batch(&indexes, header, (uint32_t)out->bytes, due);
    out->since_index_bytes = due ? batch_size(header) : out->since_index_bytes + batch_size(header);
    out->bytes += batch_size(header);
    out->last_offset = batch_last_offset(header);
    return out->bytes > INT32_MAX ? -EFBIG : 0;
}

static int clean_slice_copy(struct clean *clean, struct io *io)
{
    if (!clean->begun) {
        int error = clean_copy_first(clean, io);
        if (error < 0) return error;
        clean->begun = true;
    }
    uint64_t bytes = 0;
    while (bytes < CLEAN_SLICE_BYTES) {
        enum scan_result result = clean_next(clean, io, clean->group_to);
        if (result == SCAN_FAILED) return (int)clean->scan.error;
        if (result == SCAN_END) {
            int error = clean_flush(clean, io);
            if (error < 0) return error;
            clean->phase = CLEAN_SWAP;
            clean->begun = false;
            return 0;
        }
        if (result != SCAN_BATCH) return -EBADMSG;
        bytes += batch_size(&clean->scan.header);
        struct batch_header header;
        bool kept;
        int error = clean_filter_batch(clean, &header, &kept);
        if (error == 0 && kept) error = clean_note(clean, &header);
        if (error == 0 && clean->out.buffer.size_bytes >= CLEAN_BUFFER_BYTES)
            error = clean_flush(clean, io);
        if (error < 0) return error;
    }
    return 0;
}

/* ---- putting in place --------------------------------------------------------------------------
 */

static const char *const clean_suffixes[] = {".log", ".index", ".timeindex", ".txnindex"};

/* A walk over the renames of a swap: a second try begins where the first one failed, so that it
 * never takes the output's files, which have the sources' names by then, for the sources'. */
struct clean_walk {
    struct clean *clean;
    struct io *io;
    uint32_t at;
};

static int clean_rename(struct clean_walk *walk, struct disk_path from, struct disk_path to)
{
    if (walk->at++ < walk->clean->renamed) return 0;
    int error = io_disk_rename(walk->io, from.text, to.text);
    if (error < 0 && error != -ENOENT) return error; /* -ENOENT: there is no such file. */
    walk->clean->renamed = walk->at;
    return 0;
}

static struct disk_path clean_with(const struct clean *clean,
                                   int64_t base,
                                   size_t kind,
                                   const char *end)
{
    char suffix[32];
    int length = snprintf(suffix, sizeof(suffix), "%s%s", clean_suffixes[kind], end);
    assert(length > 0);
    return clean_path(clean, base, suffix);
}

/* Indexes to their .cleaned files, everything durable. */
static int clean_finish_output(struct clean *clean, struct io *io)
{
    struct clean_output *out = &clean->out;
    int64_t base = clean_group_base(clean);
    segment_index_last_time(
        &(struct segment_indexes){base, &out->offsets, &out->times, &out->most});
    int error = io_disk_sync(io, out->file);
    if (error == 0)
        error = index_store(io, clean_with(clean, base, 1, ".cleaned").text, &out->offsets);
    if (error == 0)
        error = index_store(io, clean_with(clean, base, 2, ".cleaned").text, &out->times);
    if (error == 0 && out->txns.count > 0)
        error = index_store(io, clean_with(clean, base, 3, ".cleaned").text, &out->txns);
    if (error == 0) error = io_disk_sync_dir(io, log_folder(clean->log).text);
    return error;
}

/* .cleaned to .swap, the .log first: with it the others may be missing, without it they count for
 * nothing. */
static int clean_count(struct clean_walk *walk)
{
    const struct clean *clean = walk->clean;
    int64_t base = clean_group_base(clean);
    struct disk_path folder = log_folder(clean->log);
    for (size_t k = 0; k < ARRAY_SIZE(clean_suffixes); k++) {
        int error = clean_rename(walk, clean_with(clean, base, k, ".cleaned"),
                                 clean_with(clean, base, k, ".swap"));
        if (error == 0 && k == 0) error = io_disk_sync_dir(walk->io, folder.text);
        if (error < 0) return error;
    }
    return io_disk_sync_dir(walk->io, folder.text);
}

static int clean_replace(struct clean_walk *walk)
{
    const struct clean *clean = walk->clean;
    int64_t base = clean_group_base(clean);
    for (uint32_t i = clean->group_from; i < clean->group_to; i++) {
        int64_t source = clean->sources[i].base;
        for (size_t k = 0; k < ARRAY_SIZE(clean_suffixes); k++) {
            int error = clean_rename(walk, clean_with(clean, source, k, ""),
                                     clean_with(clean, source, k, ".deleted"));
            if (error < 0) return error;
        }
        if (i == clean->group_from) continue;
        int error = disk_unlink_if_there(walk->io, clean_path(clean, source, ".snapshot").text);
        if (error < 0) return error;
    }
    for (size_t k = 0; k < ARRAY_SIZE(clean_suffixes); k++) {
        int error =
            clean_rename(walk, clean_with(clean, base, k, ".swap"), clean_with(clean, base, k, ""));
        if (error < 0) return error;
    }
    return io_disk_sync_dir(walk->io, log_folder(clean->log).text);
}

static int clean_slice_swap(struct clean *clean, struct io *io)
{
    if (!clean->begun) {
        int error = clean_finish_output(clean, io);
        if (error < 0) return error;
        clean->begun = true;
    }
    struct clean_walk walk = {clean, io, 0};
    int error = clean_count(&walk);
    if (error < 0) return error;
    clean->counts = true;
    error = clean_replace(&walk);
    if (error < 0) return error;
    clean->replaced = true;
    return 0;
}

/* ---- the slice ---------------------------------------------------------------------------------
 */

int64_t clean_run(struct io *io, void *argument)
{
    struct clean *clean = argument;
    clean->scan.io = io;
    switch (clean->phase) {
    case CLEAN_MAP: return clean_slice_map(clean, io);
    case CLEAN_COPY: return clean_slice_copy(clean, io);
    case CLEAN_SWAP: return clean_slice_swap(clean, io);
    case CLEAN_DONE: break;
    }
    return 0;
}

void clean_output_free(struct clean *clean, struct io *io)
{
    struct mem *mem = &clean->memory.mem;
    struct clean_output *out = &clean->out;
    if (out->file != NULL) io_disk_close(io, out->file);
    index_unload(mem, &out->offsets);
    index_unload(mem, &out->times);
    index_unload(mem, &out->txns);
    sink_free(&out->buffer);
    *out = (struct clean_output){0};
}

int64_t clean_undo_run(struct io *io, void *argument)
{
    struct clean *clean = argument;
    if (clean->file != NULL) clean_close_source(clean, io);
    for (size_t k = 0; k < ARRAY_SIZE(clean_suffixes); k++) {
        struct disk_path path = clean_with(clean, clean_group_base(clean), k, ".cleaned");
        int error = disk_unlink_if_there(io, path.text);
        if (error < 0) return error;
    }
    return 0;
}
