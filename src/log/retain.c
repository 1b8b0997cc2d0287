/* retain.c - old segments go: below the log start, by size, by time.
 *
 * Kafka's order and conditions (`log.md` 23): each rule goes from the oldest segment on and stops
 * at the first that does not qualify; nothing above the high watermark goes; when all have expired
 * a new one is rolled first, so a wholly expired log is one empty segment at its end. The log start
 * rises before files are touched; files are renamed to .deleted, the oldest first, and unlinked
 * after file.delete.delay.ms. A reader that has the file open goes on reading it. */
#include <errno.h>
#include <stdio.h>

#include "log/state.h"

struct retain {
    struct log_work work;
    struct disk_path folder;
    int64_t *bases;
    uint32_t count;
    bool at_once; /* The files are not kept for readers by name. */
    bool skip;
    int64_t make_base; /* >= 0: what stays is a segment without a file, and gets one first. */
};

static const char *const retain_suffixes[] = {".log", ".index", ".timeindex", ".txnindex",
                                              ".snapshot"};

/* A folder without a segment would say that the log begins at 0. The file may have got its first
 * bytes by now. */
static int retain_make(struct io *io, const struct retain *retain)
{
    struct segment_name name = segment_file_name(retain->make_base, ".log");
    struct io_file *file;
    int flags = IO_OPEN_WRITE | IO_OPEN_CREATE;
    int error = io_disk_open(io, disk_join(retain->folder.text, name.text).text, flags, &file);
    if (error < 0) return error;
    error = io_disk_sync(io, file);
    io_disk_close(io, file);
    return error < 0 ? error : io_disk_sync_dir(io, retain->folder.text);
}

/* After one that failed none may go on: older files would stay and newer ones go. */
static void retain_begin(struct log_work *work)
{
    struct retain *retain = container_of(work, struct retain, work);
    retain->skip = work->log->retain_failed || work->log->directory->error != 0;
}

static int64_t retain_run(struct io *io, void *argument)
{
    struct retain *retain = argument;
    if (retain->skip) return 0;
    int made = retain->make_base < 0 ? 0 : retain_make(io, retain);
    if (made < 0) return made;
    for (uint32_t i = 0; i < retain->count; i++) {
        for (size_t k = 0; k < ARRAY_SIZE(retain_suffixes); k++) {
            struct segment_name name = segment_file_name(retain->bases[i], retain_suffixes[k]);
            struct disk_path from = disk_join(retain->folder.text, name.text);
            struct disk_path to = from;
            size_t size = strlen(to.text);
            (void)snprintf(to.text + size, sizeof(to.text) - size, ".deleted");
            int error = io_disk_rename(io, from.text, to.text);
            if (error < 0 && error != -ENOENT) return error;
        }
        /* Each for itself: a power cut must not keep an older one and take the next. */
        int error = io_disk_sync_dir(io, retain->folder.text);
        if (error < 0) return error;
    }
    return 0;
}

static void retain_finish(struct log_work *work, int64_t result)
{
    struct retain *retain = container_of(work, struct retain, work);
    struct log *log = work->log;
    struct logs *logs = log->logs;
    int64_t delay_ms = retain->at_once ? 0 : log->config.file_delete_delay_ms;
    int64_t at_ms = io_now_ms(logs->io) + delay_ms;
    if (result == -ENOENT && log->state == LOG_GONE) result = 0;
    if (disk_is_full(result)) { /* The next start finds them, below the log start. */
        log->retain_failed = true;
        log_directory_full(log->directory);
        log_checkpoint_soon(log->directory, CHECKPOINT_OF_STARTS);
    }
    if (result < 0 && !disk_is_full(result)) log_directory_fail(log->directory, result);
    for (uint32_t i = 0; i < retain->count && result == 0 && !retain->skip; i++)
        if (!log_doom_segment(log, retain->bases[i], at_ms)) break; /* The next start unlinks. */
    mem_put(logs->mem, retain->bases, retain->count * sizeof(retain->bases[0]));
    mem_put(logs->mem, retain, sizeof(*retain));
}

/* The first `count` segments go. False: no memory, the next round. */
static bool retain_delete(struct log *log, uint32_t count, bool at_once)
{
    struct mem *mem = log->logs->mem;
    assert(count < log->segment_count);
    struct retain *retain = mem_get(mem, sizeof(*retain));
    int64_t *bases = mem_get(mem, count * sizeof(bases[0]));
    if (retain == NULL || bases == NULL) {
        mem_put(mem, retain, sizeof(*retain));
        mem_put(mem, bases, count * sizeof(bases[0]));
        return false;
    }
    const struct segment *left = log->segments[count];
    bool bare = count + 1 == log->segment_count && !left->made;
    retain->make_base = bare ? left->base : -1;
    log_raise_start(log, left->base);
    for (uint32_t i = 0; i < count; i++) {
        struct segment *segment = log->segments[i];
        bases[i] = segment->base;
        log->size_bytes -= segment->size_bytes;
        log_hints_drop(log, segment);
        log_unsynced_drop(segment);
        segment_free(mem, segment);
    }
    log_debug(log, "%u segments deleted, it begins with offset %lld now", count,
              (long long)left->base);
    log->segment_count -= count;
    memmove(log->segments, log->segments + count, log->segment_count * sizeof(log->segments[0]));
    log->touched = true;
    retain->folder = log_folder(log);
    retain->bases = bases;
    retain->count = count;
    retain->at_once = at_once;
    retain->work.begin = retain_begin;
    retain->work.run = retain_run;
    retain->work.finish = retain_finish;
    log_work_add(log, &retain->work);
    return true;
}

/* ---- which ----------------------------------------------------------------------------------- */

/* May segment `i` go at all? Not before all of it is below the high watermark. */
static bool retain_may(const struct log *log, uint32_t i)
{
    const struct segment *segment = log->segments[i];
    bool last = i + 1 == log->segment_count;
    int64_t next = last ? log->end : log->segments[i + 1]->base;
    if (log->watermark < next) return false;
    return !last || segment->size_bytes > 0;
}

static uint32_t retain_by_start(const struct log *log)
{
    uint32_t count = 0;
    while (count + 1 < log->segment_count && retain_may(log, count) &&
           log->segments[count + 1]->base <= log->start)
        count++;
    return count;
}

static uint32_t retain_by_size(const struct log *log, uint32_t from)
{
    int64_t limit = log->config.retention_bytes;
    uint64_t size = 0;
    for (uint32_t i = from; i < log->segment_count; i++)
        size += log->segments[i]->size_bytes;
    if (limit < 0 || size < (uint64_t)limit) return from;
    uint64_t surplus = size - (uint64_t)limit;
    while (from < log->segment_count && retain_may(log, from) &&
           log->segments[from]->size_bytes <= surplus)
        surplus -= log->segments[from++]->size_bytes;
    return from;
}

static uint32_t retain_by_time(const struct log *log, uint32_t from, int64_t wall_ms)
{
    int64_t limit_ms = log->config.retention_ms;
    if (limit_ms < 0) return from;
    while (from < log->segment_count && retain_may(log, from)) {
        const struct segment *segment = log->segments[from];
        int64_t largest = segment->most.max_timestamp_ms >= 0 ? segment->most.max_timestamp_ms
                                                              : segment->modified_wall_ms;
        if (wall_ms - largest <= limit_ms) break;
        from++;
    }
    return from;
}

int log_retain(struct log *log)
{
    int usable = log_usable(log);
    if (usable != LOG_OK) return usable;
    if (log->retain_failed) return LOG_OK;
    if (log->cleaning != NULL || log->frozen) return LOG_OK; /* The next round. */
    bool ages = log->config.cleanup_delete && !log->future;  /* A copy follows what it copies. */
    if (ages) {
        int known = log_times_load(log);
        if (known != LOG_OK) return known;
    }
    uint32_t count = retain_by_start(log);
    if (ages) {
        count = retain_by_size(log, count);
        count = retain_by_time(log, count, io_wall_ms(log->logs->io));
    }
    if (count == 0) return LOG_OK;
    int result = LOG_OK;
    if (count == log->segment_count) {
        result = log_roll_to(log, log->end);
        if (result != LOG_OK) return result;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct segment *segment = log->segments[i];
        if (segment->sealed && !segment->sealing) continue;
        if (segment->sealing) result = LOG_LATER; /* The sealing's end tells. */
        count = i;
    }
    if (count > 0 && !retain_delete(log, count, false)) return LOG_OK; /* The next round. */
    return result;
}

/* ---- for want of space ----------------------------------------------------------------------- */

bool log_first_may_go(const struct log *log)
{
    if (log->state != LOG_READY || log->cleaning != NULL || log->unlisted) return false;
    if (log->retain_failed || log->future || log->frozen) return false;
    if (!log->config.cleanup_delete || log->segment_count < 2) return false;
    const struct segment *first = log->segments[0];
    return retain_may(log, 0) && first->sealed && !first->sealing;
}

bool log_first_goes(struct log *log)
{
    assert(log_first_may_go(log));
    return retain_delete(log, 1, true);
}
