/* change.c - truncating a log, and beginning it anew.
 *
 * Rare (a follower finds that it has diverged), so simple: no more appends; all that is on its way
 * becomes durable; one job changes the files; then the log is loaded again from them. The job's
 * order is such that a crash anywhere leaves a log that is one of its states on the way: first the
 * recovery point is lowered, then segments go from the highest down, then the new last one is cut,
 * with its indexes and epochs. */
#include <errno.h>

#include "log/checkpoint.h"
#include "log/look_index.h"

struct change {
    struct log_work work;
    int64_t offset;
    int64_t recovery_point; /* Told before anything is cut. */
    bool restart;
    bool begun;        /* Files have been changed, perhaps not all. */
    struct index txns; /* Of the same segment, a copy. */
    uint32_t cut_bytes;
    int64_t cut_end;
    struct look_index index; /* Of the segment that will be the last. */
    bool has_index;          /* It is in memory: copied before the job. */
    int64_t *bases;          /* Of all segments. */
    uint32_t base_count;
    uint32_t base_capacity;
    uint32_t keep; /* Segments that stay; the last of them is cut. */
    struct sink recovery;
    struct sink epochs;
};

/* ---- the job --------------------------------------------------------------------------------- */

static struct disk_path change_path(const struct change *change, int64_t base, const char *suffix)
{
    return log_path(change->work.log, segment_file_name(base, suffix).text);
}

static int change_unlink(struct io *io, const struct change *change, int64_t base)
{
    static const char *const suffixes[] = {".log", ".index", ".timeindex", ".txnindex"};
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        int error = disk_unlink_if_there(io, change_path(change, base, suffixes[i]).text);
        if (error < 0) return error;
    }
    return 0;
}

struct change_snapshots {
    struct io *io;
    const struct change *change;
    int error;
};

/* Producer snapshots above the new end, or of before a restart, are of a log that is no more. */
static bool change_snapshot(void *context, const char *name)
{
    struct change_snapshots *snapshots = context;
    int64_t base;
    const char *suffix = segment_name_read(name, &base);
    if (suffix == NULL) return true;
    if (strcmp(suffix, ".snapshot") != 0) return true;
    if (!snapshots->change->restart && base <= snapshots->change->offset) return true;
    struct disk_path path = log_path(snapshots->change->work.log, name);
    snapshots->error = disk_unlink_if_there(snapshots->io, path.text);
    return snapshots->error == 0;
}

/* Find the batch that holds the offset; nothing is changed yet, and all memory is taken here. */
static int change_find(struct change *change, struct scan *scan)
{
    struct look_index *look = &change->index;
    int error = change->has_index ? 0 : look_index_load(look, scan);
    if (error < 0) return error;
    struct index_offset from = {0, 0};
    int64_t relative = MIN(change->offset - look->base, (int64_t)INT32_MAX);
    bool found = index_floor_offset(&look->offsets, (uint32_t)relative, &from);
    struct read_find find = {.offset = change->offset, .expect_last = -1};
    scan_seek(scan, look->file->file, found ? from.at_bytes : 0, look->bytes);
    int result = read_walk(scan, &find);
    if (result < 0 || result == LOG_E_MEMORY) return result < 0 ? result : -ENOMEM;
    if (result != LOG_OK && result != LOG_NOT_FOUND) return -EIO;
    bool whole = result == LOG_NOT_FOUND; /* It ends below the offset already. */
    change->cut_bytes = whole ? look->bytes : find.at_bytes;
    change->cut_end = whole ? change->offset : MAX(find.base_offset, look->base);
    return 0;
}

/* Cut the last kept segment and its indexes. */
static int change_cut(struct change *change, struct io *io)
{
    struct look_index *look = &change->index;
    int error = io_disk_truncate(io, look->file->file, change->cut_bytes);
    if (error == 0) error = io_disk_sync(io, look->file->file);
    if (error < 0) return error;
    uint32_t relative = (uint32_t)MIN(change->cut_end - look->base, (int64_t)INT32_MAX);
    index_cut_offsets(&look->offsets, relative);
    index_cut_times(&look->times, relative);
    index_cut_txns(&change->txns, change->cut_end);
    look->offsets.stored = look->times.stored = change->txns.stored = 0;
    error = index_store(io, change_path(change, look->base, ".index").text, &look->offsets);
    if (error == 0)
        error = index_store(io, change_path(change, look->base, ".timeindex").text, &look->times);
    struct disk_path txns = change_path(change, look->base, ".txnindex");
    if (error < 0) return error;
    return change->txns.count == 0 ? disk_unlink_if_there(io, txns.text)
                                   : index_store(io, txns.text, &change->txns);
}

static int change_run_files(struct change *change, struct io *io)
{
    struct log *log = change->work.log;
    int error =
        disk_replace(io, log->directory->path, CHECKPOINT_RECOVERY, sink_view(&change->recovery));
    struct disk_path folder = log_folder(log);
    for (uint32_t i = change->base_count; i > change->keep && error == 0; i--) {
        error = change_unlink(io, change, change->bases[i - 1]);
        /* Each for itself: a power cut must not keep a higher one and take a lower one. */
        if (error == 0) error = io_disk_sync_dir(io, folder.text);
    }
    struct change_snapshots snapshots = {.io = io, .change = change};
    if (error == 0) error = io_disk_list(io, folder.text, change_snapshot, &snapshots);
    if (error == 0) error = snapshots.error;
    if (error < 0) return error;
    if (change->restart)
        error = disk_write_synced(io, change_path(change, change->offset, ".log").text, VIEW_EMPTY);
    else
        error = change_cut(change, io);
    if (error == 0)
        error = disk_replace(io, folder.text, CHECKPOINT_EPOCHS, sink_view(&change->epochs));
    return error;
}

static int64_t change_run(struct io *io, void *argument)
{
    struct change *change = argument;
    struct mem *mem = &change->work.memory.mem;
    struct scan scan;
    int error = 0;
    if (!change->restart) {
        scan_begin(&scan, io, mem, SCAN_WINDOW_LARGE);
        error = change_find(change, &scan);
        scan_end(&scan);
    }
    change->begun = error == 0;
    if (error == 0) error = change_run_files(change, io);
    if (!change->has_index) look_index_free(&change->index, mem);
    return error;
}

/* ---- in the shard ---------------------------------------------------------------------------- */

static void change_free(struct change *change)
{
    struct logs *logs = change->work.log->logs;
    if (change->has_index) look_index_free(&change->index, logs->mem);
    index_unload(logs->mem, &change->txns);
    if (change->index.file != NULL) log_file_release(change->index.file);
    sink_free(&change->recovery);
    sink_free(&change->epochs);
    mem_put(logs->mem, change->bases, change->base_capacity * sizeof(change->bases[0]));
    mem_put(logs->mem, change, sizeof(*change));
}

void log_change_done(struct log *log, int result)
{
    struct log_task *task = log->change_task;
    log->change_task = NULL;
    if (task == NULL) return;
    task->result = result == LOG_OK && log->change_full ? LOG_E_FULL : result;
    log->change_full = false;
    task->done(task);
}

static void change_finish(struct log_work *work, int64_t result)
{
    struct change *change = container_of(work, struct change, work);
    struct log *log = work->log;
    log->directory->checkpoint_busy[CHECKPOINT_OF_RECOVERY] = false;
    int64_t offset = change->offset;
    bool restart = change->restart;
    bool full = disk_is_full(result);
    if (result < 0 && !(full && change->begun)) { /* Nothing has changed, or the disk fails. */
        bool begun = change->begun;
        change_free(change);
        log->state = log->state == LOG_GONE ? LOG_GONE : LOG_READY;
        if (full)
            log_directory_full(log->directory);
        else if (begun || result != -ENOMEM)
            log_directory_fail(log->directory, result);
        log_change_done(log, full ? LOG_E_FULL : result == -ENOMEM ? LOG_E_MEMORY : (int)result);
        return;
    }
    log->checkpoint_start = restart ? -1 : MIN(log->start, offset);
    log->checkpoint_recovery = MIN(log->durable, change->recovery_point);
    log->checkpoint_watermark = MIN(log->watermark, offset);
    if (log->checkpoint_cleaner > offset) {
        log->checkpoint_cleaner = offset;
        log->logs->cleaner_moved = true;
    }
    change_free(change);
    if (log->state == LOG_GONE) {
        log_change_done(log, LOG_E_DELETED);
        return;
    }
    log_unload(log);
    log->state = LOG_CLOSED;
    log->touched = true;
    if (full) { /* Some files have changed: find out which. The caller asks again. */
        log_directory_full(log->directory);
        log_recover_later(log);
        log->change_full = true;
    }
    log->logs->watermarks_moved = log->logs->starts_moved = true;
    int loading = log_load_start(log); /* It ends the task. */
    if (loading != LOG_LATER) log_change_done(log, loading);
}

static int change_index(struct change *change, struct segment *segment)
{
    struct mem *mem = segment->log->logs->mem;
    struct look_index *look = &change->index;
    int result = segment_file(segment, !segment->made);
    if (result != LOG_OK) return result;
    segment->made = true;
    look_index_of(look, segment);
    log_file_hold(look->file);
    change->txns = index_new(INDEX_TXN_BYTES);
    if (!index_copy(mem, &change->txns, &segment->txns)) return LOG_E_MEMORY;
    if (!segment->offsets.loaded) return LOG_OK;
    change->has_index = true;
    if (!index_copy(mem, &look->offsets, &segment->offsets)) return LOG_E_MEMORY;
    if (!index_copy(mem, &look->times, &segment->times)) return LOG_E_MEMORY;
    return LOG_OK;
}

/* Gather what the job needs. LOG_OK, or why not. */
static int change_prepare(struct log *log, struct change *change)
{
    struct mem *mem = log->logs->mem;
    sink_init(&change->recovery, mem, CHECKPOINT_BYTES_MAX);
    sink_init(&change->epochs, mem, UINT32_MAX);
    change->base_capacity = log->segment_count;
    change->bases = mem_get(mem, change->base_capacity * sizeof(change->bases[0]));
    if (change->bases == NULL) {
        change->base_capacity = 0;
        return LOG_E_MEMORY;
    }
    for (uint32_t i = 0; i < log->segment_count; i++)
        change->bases[change->base_count++] = log->segments[i]->base;
    uint32_t floor = change->restart ? UINT32_MAX : log_segment_floor(log, change->offset);
    if (floor == UINT32_MAX) {
        change->restart = true;
    } else {
        change->keep = floor + 1;
        int result = change_index(change, log->segments[floor]);
        if (result != LOG_OK) return result;
        epochs_write(&log->epochs, change->offset, &change->epochs);
    }
    if (change->restart) checkpoint_begin(&change->epochs, 0);
    /* The batch boundary below the offset is known to the job only; the segment's base is below. */
    change->recovery_point = change->restart ? change->offset : change->bases[floor];
    log->recovery_cap = change->recovery_point;
    tasks_checkpoint_text(log->directory, CHECKPOINT_OF_RECOVERY, &change->recovery);
    log->recovery_cap = INT64_MAX;
    bool enough = change->recovery.fault == SINK_OK && change->epochs.fault == SINK_OK;
    return enough ? LOG_OK : LOG_E_MEMORY;
}

/* Everything on its way has arrived, nothing else works on the log. */
static bool change_may_start(const struct log *log)
{
    return log->cleaning == NULL && list_empty(&log->writes) && log->durable == log->end &&
           list_empty(&log->works) && !log->looking && list_empty(&log->names) &&
           !log->directory->checkpoint_busy[CHECKPOINT_OF_RECOVERY];
}

static void change_start(struct log *log)
{
    struct log_task *task = log->change_task;
    bool restart = task->kind == CHANGE_RESTART;
    list_remove(&log->changing);
    if (!restart && task->offset >= log->end) {
        epochs_cut_end(&log->epochs, log->end);
        log->state = LOG_READY;
        log_change_done(log, LOG_OK);
        return;
    }
    struct change *change = mem_get(log->logs->mem, sizeof(*change));
    int result = LOG_E_MEMORY;
    if (change != NULL) {
        change->work.log = log;
        change->offset = task->offset;
        change->restart = restart;
        result = change_prepare(log, change);
        if (result != LOG_OK) change_free(change);
    }
    if (result != LOG_OK) {
        log->state = LOG_READY;
        log_change_done(log, result);
        return;
    }
    /* Only followers truncate; another shard would have to wait for the first to write its line. */
    assert(parts_first(log->logs));
    log->directory->checkpoint_busy[CHECKPOINT_OF_RECOVERY] = true;
    change->work.run = change_run;
    change->work.finish = change_finish;
    log_work_add(log, &change->work);
}

void logs_changes_turn(struct logs *logs)
{
    list_foreach (node, &logs->changing) {
        struct log *log = container_of(node, struct log, changing);
        if (log->directory->error != 0 || log->state != LOG_CHANGING) {
            list_remove(node);
            int error = log->directory->error;
            if (log->state == LOG_CHANGING) log->state = LOG_READY;
            log_change_done(log, error != 0 ? error : LOG_E_DELETED);
        } else if (!log->has_folder && log->end == log->segments[0]->base) {
            /* Nothing was ever written: only the place where it begins changes. */
            list_remove(node);
            int64_t offset = log->change_task->offset;
            bool restart = log->change_task->kind == CHANGE_RESTART;
            log->state = LOG_READY;
            if (restart) {
                log_unload(log);
                log->state = LOG_CLOSED;
                log->checkpoint_start = offset;
            }
            int result = restart ? log_load_start(log) : LOG_OK;
            log_change_done(log, result);
        } else if (change_may_start(log)) {
            change_start(log);
        }
    }
}

static void change_ask(struct log *log, struct log_task *task)
{
    list_init(&task->link);
    task->result = LOG_LATER;
    int usable = log_usable(log);
    if (usable != LOG_OK) { /* It must be open: the caller has asked for its ends before. */
        task->result = usable;
        task->done(task);
        return;
    }
    assert(log->change_task == NULL);
    if (log->move != NULL) log->move->next_directory = log_move_target(log); /* Anew, afterwards. */
    (void)log_move_abort(log);
    log->change_task = task;
    log->state = LOG_CHANGING;
    list_append(&log->logs->changing, &log->changing);
}

void log_truncate(struct log *log, int64_t offset, struct log_task *task)
{
    assert(offset >= 0);
    task->offset = offset;
    task->kind = CHANGE_TRUNCATE;
    change_ask(log, task);
}

void log_restart(struct log *log, int64_t offset, struct log_task *task)
{
    assert(offset >= 0);
    task->offset = offset;
    task->kind = CHANGE_RESTART;
    change_ask(log, task);
}
