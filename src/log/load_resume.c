/* load_resume.c - where a recovery may begin inside the segment that holds the recovery point.
 *
 * resume.c has left index entries and a producer snapshot there. They are believed as far as the
 * batches bear them out: the last entry's batch has its CRC and ends where the entry says, the time
 * entries are in order and hold against the batches behind the last of them, the snapshot has a
 * CRC. Anything else, and what is missing, means to read the segment from its base. What lies below
 * the place is not read: it was durable, and readers check it as they check closed segments. */
#include "log/load.h"

#include <errno.h>

#include "log/look_index.h"

/* Which snapshot to take, at most; -1: none above the segment's base. The newest one of all is
 * passed over (resume.c says why), but not a clean stop's, which lies alone at the recovery point.
 */
static int64_t resume_at_most(const struct load *load, const struct segment *segment)
{
    int64_t newest = -1, best = -1;
    uint32_t above = 0;
    for (uint32_t i = 0; i < load->base_count; i++) {
        if ((load->bases[i].kinds & LOAD_SNAPSHOT) == 0) continue;
        if (newest >= 0 && newest <= load->recovery_point) best = newest;
        newest = load->bases[i].base;
        above += newest > segment->base;
    }
    if (above == 1 && newest == load->recovery_point) return newest;
    return best > segment->base ? best : -1;
}

static void resume_forget(struct load *load, struct segment *segment)
{
    struct index *const indexes[] = {&segment->offsets, &segment->times};
    for (size_t i = 0; i < ARRAY_SIZE(indexes); i++) {
        uint8_t width = indexes[i]->width;
        index_unload(load->mem, indexes[i]);
        *indexes[i] = index_new(width);
    }
}

/* The index files' entries below the snapshot, into the segment. LOG_NOT_FOUND: they do not do. */
static int resume_indexes(struct load *load, struct segment *segment, int64_t snapshot)
{
    int result = load_index(load, segment, &segment->offsets);
    if (result == LOG_OK) result = load_index(load, segment, &segment->times);
    if (result != LOG_OK) return result;
    if (snapshot - segment->base > INT32_MAX) return LOG_NOT_FOUND;
    index_cut_offsets(&segment->offsets, segment_relative(segment, snapshot));
    if (segment->offsets.count == 0) return LOG_NOT_FOUND;
    struct index_offset last = index_get_offset(&segment->offsets, segment->offsets.count - 1);
    if (last.relative >= INT32_MAX) return LOG_NOT_FOUND;
    index_cut_times(&segment->times, last.relative + 1);
    bool valid = index_valid(&segment->offsets, segment->base, segment->size_bytes) &&
                 index_valid(&segment->times, segment->base, segment->size_bytes);
    return valid ? LOG_OK : LOG_NOT_FOUND;
}

/* The last entry's batch: is it there, whole? `*end` is where it ends in the file. */
static int resume_batch(struct load *load,
                        struct segment *segment,
                        struct io_file *file,
                        uint32_t *end)
{
    struct scan *scan = &load->scan;
    struct index_offset last = index_get_offset(&segment->offsets, segment->offsets.count - 1);
    scan_seek(scan, file, last.at_bytes, segment->size_bytes);
    scan->crc = true;
    enum scan_result result = scan_next(scan);
    scan->crc = false;
    if (result == SCAN_FAILED) return (int)scan->error;
    if (result != SCAN_BATCH || scan->header.magic < 2) return LOG_NOT_FOUND;
    const struct batch_header *header = &scan->header;
    bool meant = header->base_offset >= segment->base && header->last_offset_delta >= 0 &&
                 batch_last_offset(header) == segment->base + last.relative;
    if (!meant) return LOG_NOT_FOUND;
    *end = (uint32_t)scan->at;
    segment->since_index_bytes = batch_size(header);
    return LOG_OK;
}

/* The largest timestamp up to `end`, if the batches bear it out; and the first batch's. */
static int resume_times(struct load *load,
                        struct segment *segment,
                        struct io_file *file,
                        uint32_t end)
{
    int error = load_times(load, segment, file, end);
    if (error != LOG_OK) return error;
    segment->times_known = segment->first_known = true;
    return load_first(load, segment, file);
}

static int resume_segment(struct load *load, struct segment *segment, int64_t snapshot)
{
    int result = resume_indexes(load, segment, snapshot);
    if (result != LOG_OK) return result;
    struct io_file *file;
    int error = load_open_file(load, segment->base, IO_OPEN_READ, &file);
    if (error < 0) return error;
    uint32_t end = 0;
    result = resume_batch(load, segment, file, &end);
    if (result == LOG_OK) result = resume_times(load, segment, file, end);
    load_close_file(load, file);
    if (result != LOG_OK) return result;

    index_cut_txns(&segment->txns, snapshot);
    segment->txns_unproved = MIN(segment->txns_unproved, segment->txns.count);
    struct index_offset last = index_get_offset(&segment->offsets, segment->offsets.count - 1);
    segment->sealed = false;
    load->resume_bytes = end;
    load->end = segment->base + last.relative + 1;
    return LOG_OK;
}

int load_resume(struct load *load, struct segment *segment)
{
    struct producers *producers = &load->log->producers;
    int64_t at_most = -1;
    if (load->recover_from == load->recovery_point) at_most = resume_at_most(load, segment);
    if (at_most >= 0) {
        int error = load_producers_snapshot(load, at_most);
        int result = LOG_NOT_FOUND;
        if (error == 0 && producers->offset_end > segment->base)
            result = resume_segment(load, segment, producers->offset_end);
        if (error < 0 || result < 0) return error < 0 ? error : result;
        if (result == LOG_OK) return 0;
        resume_forget(load, segment);
        producers_clear(producers, 0);
        producers->snapshot_end = -1;
    }
    load->end = segment->base;
    return load_producers_snapshot(load, segment->base);
}
