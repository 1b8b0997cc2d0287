/* load_scan.c - opening and recovering segments, epochs from headers, producers from batches.
 *
 * *Opening* trusts the files of a closed segment (their indexes come at first use) and walks over
 * the active one's batches behind its last index entry to find the end. *Recovering* reads every
 * batch with its CRC, makes all indexes anew, feeds epochs and producers, and cuts what does not
 * hold off the end. A batch whose base offset does not lie behind the batch before is no batch:
 * neither is under the CRC. */
#include "log/load.h"

#include <errno.h>

#include "log/look_index.h"
#include "log/replay.h"

#define LOAD_INDEX_MAX (512u * 1024u * 1024u)

int load_open_file(struct load *load, int64_t base, int flags, struct io_file **file)
{
    struct segment_name name = segment_file_name(base, ".log");
    return io_disk_open(load->io, log_path(load->log, name.text).text, flags, file);
}

void load_close_file(struct load *load, struct io_file *file)
{
    load->scan.file = NULL;
    load->scan.window_bytes = 0;
    io_disk_close(load->io, file);
}

/* A hole lies before the batch at hand: compaction leaves some. But if the batch after it does not
 * lie behind it, its base offset, which is under no checksum, is wrong. SCAN_BATCH: it may be. */
static enum scan_result load_behind_hole(struct load *load)
{
    struct scan *scan = &load->scan;
    bool crc = scan->crc;
    uint64_t at_bytes = scan->at - batch_size(&scan->header);
    int64_t last = batch_last_offset(&scan->header);
    scan->crc = false;
    enum scan_result next = scan_next(scan);
    if (next == SCAN_FAILED) return next;
    bool wrong = next == SCAN_BATCH && scan->header.magic >= 2 && scan->header.base_offset <= last;
    scan->crc = crc;
    scan->at = at_bytes;
    return wrong ? SCAN_BAD : scan_next(scan);
}

/* The next batch, if it lies in order behind `load->end`. */
static enum scan_result load_next(struct load *load, const struct segment *segment)
{
    struct scan *scan = &load->scan;
    enum scan_result result = scan_next(scan);
    if (result != SCAN_BATCH) return result;
    const struct batch_header *header = &scan->header;
    if (header->magic >= 2 && header->base_offset > load->end) {
        result = load_behind_hole(load);
        if (result != SCAN_BATCH) return result;
    }
    int64_t last = batch_last_offset(header);
    bool ordered =
        last >= load->end && last - segment->base <= INT32_MAX && last >= segment->base &&
        (header->magic < 2 || (header->base_offset >= load->end && header->last_offset_delta >= 0));
    if (ordered) return SCAN_BATCH;
    scan->at -= batch_size(header);
    return SCAN_BAD;
}

/* ---- feeding --------------------------------------------------------------------------------- */

static int load_feed_epoch(struct load *load)
{
    struct epochs *epochs = &load->log->epochs;
    const struct batch_header *header = &load->scan.header;
    if (header->magic < 2 || header->leader_epoch <= epochs_latest(epochs)) return 0;
    if (!epochs_reserve(load->mem, epochs, 1)) return -ENOMEM;
    epochs_assign(epochs, header->leader_epoch, header->base_offset);
    return 0;
}

/* ---- recovery -------------------------------------------------------------------------------- */

/* Take in every batch that holds; `*why` says what ended it, `*durable` how many bytes at the front
 * were known to be durable. */
static int recover_scan(struct load *load,
                        struct segment *segment,
                        enum scan_result *why,
                        uint32_t *durable)
{
    *durable = segment->size_bytes;
    for (;;) {
        *why = load_next(load, segment);
        if (*why == SCAN_FAILED) return (int)load->scan.error;
        if (*why != SCAN_BATCH) return 0;
        const struct batch_header *header = &load->scan.header;
        uint32_t at_bytes = (uint32_t)(load->scan.at - batch_size(header));
        if (!segment_note_reserve(load->mem, segment, 1)) return -ENOMEM;
        if (batch_last_offset(header) < load->recovery_point) *durable = (uint32_t)load->scan.at;
        segment_note(segment, header, at_bytes);
        segment->size_bytes = (uint32_t)load->scan.at;
        load->end = batch_last_offset(header) + 1;
        int error = load_feed_epoch(load);
        if (error == 0 && load->end > load->log->producers.offset_end) /* Not in the snapshot. */
            error = replay_batch(&load->scan, &load->log->producers, &segment->txns);
        if (error < 0) return error;
    }
}

static void recover_reset(struct load *load, struct segment *segment)
{
    struct index *const indexes[] = {&segment->offsets, &segment->times, &segment->txns};
    for (size_t i = 0; i < ARRAY_SIZE(indexes); i++) {
        uint8_t width = indexes[i]->width;
        index_unload(load->mem, indexes[i]);
        *indexes[i] = index_new(width);
    }
    segment->most = (struct segment_times){-1, -1};
    segment->times_known = segment->first_known = true;
    segment->first_timestamp_ms = -1;
    segment->since_index_bytes = 0;
    segment->size_bytes = 0;
    segment->sealed = false;
    segment->txns_unproved = 0;
}

/* Write the bytes from `at` on once more, as they are. What was read may be in the page cache only:
 * after a sync that failed the kernel takes such pages for clean, and the next sync, by whatever
 * process, would say yes without writing them. */
static int recover_rewrite(struct load *load, struct io_file *file, uint64_t at, uint64_t end)
{
    struct scan *scan = &load->scan;
    scan->window_bytes = 0; /* Its memory is used here. */
    while (at < end) {
        size_t size = (size_t)MIN((uint64_t)scan->capacity, end - at);
        int64_t got = io_disk_read(load->io, file, scan->window, size, at);
        if (got < 0) return (int)got;
        if ((size_t)got != size) return -EIO;
        int64_t put = io_disk_write(load->io, file, scan->window, size, at);
        if (put < 0) return (int)put;
        at += size;
    }
    return 0;
}

int load_segment_recover(struct load *load, struct segment *segment, bool *cut)
{
    struct log_recovery *found = &load->log->recovery;
    struct io_file *file;
    int error = load_open_file(load, segment->base, IO_OPEN_WRITE, &file);
    if (error < 0) return error;
    uint32_t from = load->resume_bytes; /* Of the first segment; the next ones from their base. */
    load->resume_bytes = 0;
    if (from == 0) recover_reset(load, segment);
    segment->size_bytes = segment->resume_bytes = from;
    load->end = MAX(load->end, segment->base);
    int64_t size = io_disk_size(load->io, file);
    enum scan_result why = SCAN_END;
    uint32_t durable = 0;
    if (size > INT32_MAX) size = INT32_MAX; /* Positions are 31 bits; nothing valid lies behind. */
    if (size < 0) error = (int)size;
    if (error == 0) {
        scan_seek(&load->scan, file, from, (uint64_t)size);
        load->scan.crc = true;
        error = recover_scan(load, segment, &why, &durable);
        load->scan.crc = false;
        found->segments++;
        found->scanned_bytes += (uint64_t)size - from;
    }
    *cut = why != SCAN_END;
    if (error == 0 && *cut && load->end < load->recovery_point) load->damaged = true;
    if (error == 0 && *cut && !load->damaged) {
        found->cut_bytes += (uint64_t)size - segment->size_bytes;
        error = io_disk_truncate(load->io, file, segment->size_bytes);
    }
    if (error == 0 && !load->damaged)
        error = recover_rewrite(load, file, durable, segment->size_bytes);
    if (error == 0 && !load->damaged) error = io_disk_sync(load->io, file);
    load_close_file(load, file);
    if (error == 0 && !segment_note_reserve(load->mem, segment, 0)) error = -ENOMEM;
    return error;
}

/* ---- opening --------------------------------------------------------------------------------- */

int load_index(struct load *load, struct segment *segment, struct index *index)
{
    const char *suffix = index->width == INDEX_OFFSET_BYTES ? ".index"
                         : index->width == INDEX_TIME_BYTES ? ".timeindex"
                                                            : ".txnindex";
    struct segment_name name = segment_file_name(segment->base, suffix);
    int error =
        index_load(load->io, load->mem, log_path(load->log, name.text).text, LOAD_INDEX_MAX, index);
    if (error == -EFBIG || error == -ENOENT) return LOG_NOT_FOUND;
    return error < 0 ? error : LOG_OK;
}

static int open_index(struct load *load, struct segment *segment, struct index *index)
{
    int result = load_index(load, segment, index);
    if (result != LOG_OK) return result;
    return index_valid(index, segment->base, segment->size_bytes) ? LOG_OK : LOG_NOT_FOUND;
}

/* Walk from the active segment's last index entry to its end. LOG_NOT_FOUND: it does not hold. */
static int open_tail(struct load *load, struct segment *segment, struct io_file *file)
{
    uint32_t from = 0;
    load->end = MAX(load->end, segment->base);
    if (segment->offsets.count > 0) {
        struct index_offset last = index_get_offset(&segment->offsets, segment->offsets.count - 1);
        from = last.at_bytes;
    }
    scan_seek(&load->scan, file, from, segment->size_bytes);
    bool first = from > 0;
    for (;;) {
        enum scan_result result = load_next(load, segment);
        if (result == SCAN_FAILED) return (int)load->scan.error;
        if (result == SCAN_END) return LOG_OK;
        if (result != SCAN_BATCH) return LOG_NOT_FOUND;
        int64_t last = batch_last_offset(&load->scan.header);
        struct index_offset entry;
        if (first && (!index_floor_offset(&segment->offsets, INT32_MAX, &entry) ||
                      last - segment->base != entry.relative))
            return LOG_NOT_FOUND; /* The index is another segment's. */
        first = false;
        load->end = last + 1;
    }
}

/* MaxTimestamp of the first batch: it decides when the segment is rolled. */
int load_first(struct load *load, struct segment *segment, struct io_file *file)
{
    segment->first_timestamp_ms = -1;
    if (segment->size_bytes == 0) return LOG_OK;
    scan_seek(&load->scan, file, 0, segment->size_bytes);
    enum scan_result result = scan_next(&load->scan);
    if (result == SCAN_FAILED) return (int)load->scan.error;
    if (result == SCAN_BATCH) segment->first_timestamp_ms = load->scan.header.max_timestamp;
    return LOG_OK;
}

int load_times(struct load *load, struct segment *segment, struct io_file *file, uint32_t end)
{
    struct look_index look = {
        .base = segment->base,
        .bytes = end,
        .offsets = segment->offsets,
        .times = segment->times,
        .most = {-1, -1},
    };
    bool hold;
    int error = look_times_hold(&look, file, &load->scan, &hold);
    if (error < 0) return error;
    if (!hold) return LOG_NOT_FOUND;
    segment->most = look.most;
    return LOG_OK;
}

static int open_active(struct load *load, struct segment *segment)
{
    int result = open_index(load, segment, &segment->offsets);
    if (result == LOG_OK) result = open_index(load, segment, &segment->times);
    if (result != LOG_OK) return result;
    struct io_file *file;
    int error = load_open_file(load, segment->base, IO_OPEN_READ, &file);
    if (error < 0) return error;
    result = open_tail(load, segment, file);
    if (result == LOG_OK) result = load_first(load, segment, file);
    if (result == LOG_OK && segment->times.count > 0)
        result = load_times(load, segment, file, segment->size_bytes);
    load_close_file(load, file);
    return result;
}

int load_segment_open(struct load *load, struct segment *segment, const struct load_base *at)
{
    struct segment_name name = segment_file_name(segment->base, ".log");
    struct io_stat stat;
    int error = io_disk_stat(load->io, log_path(load->log, name.text).text, &stat);
    if (error < 0) return error;
    segment->modified_wall_ms = segment->created_wall_ms = stat.modified_wall_ms;
    segment->made = true;
    if (stat.size_bytes > INT32_MAX) return LOG_NOT_FOUND;
    segment->size_bytes = (uint32_t)stat.size_bytes;
    if ((at->kinds & LOAD_OFFSETS) == 0) return LOG_NOT_FOUND;
    if (at->kinds & LOAD_TXNS) {
        int result = open_index(load, segment, &segment->txns);
        if (result != LOG_OK) return result;
        segment->txns_unproved = segment->txns.count;
    }
    bool active = true;
    for (const struct load_base *next = at + 1; next < load->bases + load->base_count; next++)
        active = active && (next->kinds & LOAD_LOG) == 0;
    if (active) /* After an unclean stop it is recovered anyway. */
        return load->recover_from != INT64_MAX ? LOG_OK : open_active(load, segment);
    segment->offsets.loaded = segment->times.loaded = false;
    segment->times_known = segment->first_known = false;
    segment->sealed = true;
    return (at->kinds & LOAD_TIMES) != 0 ? LOG_OK : LOG_NOT_FOUND;
}

/* ---- epochs and producers from the batches ----------------------------------------------------
 */

/* Walk over the headers of all segments from offset `from` to below `to`. */
static int load_each(struct load *load, int64_t from, int64_t to, int (*feed)(struct load *load))
{
    struct log *log = load->log;
    int error = 0;
    int64_t end = load->end;
    for (uint32_t i = 0; i < log->segment_count && error == 0; i++) {
        struct segment *segment = log->segments[i];
        bool below = i + 1 < log->segment_count && log->segments[i + 1]->base <= from;
        if (below || segment->base >= to || segment->size_bytes == 0) continue;
        struct io_file *file;
        error = load_open_file(load, segment->base, IO_OPEN_READ, &file);
        if (error < 0) break;
        scan_seek(&load->scan, file, 0, segment->size_bytes);
        load->end = segment->base;
        enum scan_result result = SCAN_END;
        while (error == 0 && (result = load_next(load, segment)) == SCAN_BATCH) {
            int64_t last = batch_last_offset(&load->scan.header);
            load->end = last + 1;
            if (last >= to) break;
            if (last >= from) error = feed(load);
        }
        if (error == 0 && result == SCAN_FAILED) error = (int)load->scan.error;
        load_close_file(load, file);
    }
    load->end = end;
    return error;
}

int load_epochs_rebuild(struct load *load)
{
    load->log->recovery.index_errors++;
    epochs_clear(&load->log->epochs); /* A recovery found the late ones; the others come before. */
    return load_each(load, 0, INT64_MAX, load_feed_epoch);
}

static int replay_feed(struct load *load)
{
    return replay_batch(&load->scan, &load->log->producers, NULL);
}

int load_producers_replay(struct load *load, int64_t from, int64_t to)
{
    int error = from < to ? load_each(load, from, to, replay_feed) : 0;
    load->log->producers.offset_end = MAX(load->log->producers.offset_end, to);
    return error;
}

int load_producers_snapshot(struct load *load, int64_t at_most)
{
    struct log *log = load->log;
    for (uint32_t i = load->base_count; i > 0; i--) {
        struct load_base *at = &load->bases[i - 1];
        if (at->base > at_most || (at->kinds & LOAD_SNAPSHOT) == 0) continue;
        struct segment_name name = segment_file_name(at->base, ".snapshot");
        struct disk_path path = log_path(log, name.text);
        struct disk_bytes bytes;
        int error = disk_read_whole(load->io, load->mem, path.text, LOAD_INDEX_MAX, &bytes);
        if (error < 0 && error != -EFBIG) return error;
        int result = LOG_E_DAMAGED;
        if (error == 0)
            result = producers_read(&log->producers, view_of(bytes.data, bytes.size_bytes),
                                    load->wall_ms, log->config.producer_id_expiration_ms);
        disk_free(load->mem, &bytes);
        if (result == LOG_E_MEMORY) return -ENOMEM;
        if (result == LOG_OK) {
            log->producers.offset_end = at->base;
            log->producers.snapshot_end = at->base;
            return 0;
        }
        log->recovery.index_errors++;
        error = disk_unlink_if_there(load->io, path.text);
        if (error < 0) return error;
        at->kinds &= ~LOAD_SNAPSHOT;
    }
    return 0;
}
