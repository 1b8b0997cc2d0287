/* move_swap.c - the end of a move: the copy is made whole, and takes the log's place.
 *
 * Two jobs, both with the log frozen. The first makes the copy whole: the file of a segment without
 * bytes, the producers at the end (as the log has them: also those whose records are gone), the
 * epochs, all names. Then the owner records the new directory. The second, in this order:
 *   the log's folder gets its name for deletion; its directory is synced;
 *   the copy's folder gets the log's name; its directory is synced.
 * A crash before leaves the log and a copy of it: the next start copies on, or finds nothing to
 * copy. A crash between the two leaves the copy alone, and the metadata names its directory: the
 * next start gives it its name. Two folders with the log's name are never there. */
#include <errno.h>

#include "log/checkpoint.h"
#include "log/state.h"

struct move_paths {
    struct io_op op;
    struct log_move *move;
    struct disk_path from, aside; /* The log's folder, and its name for deletion. */
    struct disk_path copy, to;    /* The copy's, and its name from now on. */
    struct disk_path from_directory, to_directory;
    struct disk_path segment;  /* One that has no file yet; empty: there is none. */
    struct disk_path snapshot; /* Of the producers. */
    bool bare;                 /* Nothing was ever written: the log has no folder. */
    int from_error;            /* Of the log's directory, */
    int to_error;              /* and of the other one. */
};

void move_paths_free(struct log_move *move)
{
    move->paths = mem_put(move->logs->mem, move->paths, sizeof(*move->paths));
}

static void paths_fill(struct move_paths *paths, struct log_move *move)
{
    const struct log *log = move->log, *future = move->future;
    *paths = (struct move_paths){.move = move};
    paths->from = log_folder(log);
    paths->bare = !log->has_folder;
    paths->aside = log_aside(log, "delete");
    paths->copy = log_folder(future);
    paths->from_directory = disk_path_of(log->directory->path);
    paths->to_directory = disk_path_of(future->directory->path);
    const char *name = strrchr(paths->from.text, '/') + 1;
    paths->to = disk_join(future->directory->path, name);
    paths->snapshot = log_path(future, segment_file_name(log->end, ".snapshot").text);
    const struct segment *active = log_active(future);
    if (!active->made)
        paths->segment = log_path(future, segment_file_name(active->base, ".log").text);
}

static void swap_again(struct log_move *move, enum log_move_state state)
{
    move->pause_until_ms = io_now_ms(move->log->logs->io) + 1000;
    move->state = state;
}

/* ---- the copy is made whole ------------------------------------------------------------------ */

static int64_t prepare_run(struct io *io, void *argument)
{
    const struct move_paths *paths = argument;
    const struct log_move *move = paths->move;
    int error = 0;
    if (paths->segment.text[0] != '\0')
        error = disk_write_synced(io, paths->segment.text, VIEW_EMPTY);
    if (error == 0) error = disk_write_synced(io, paths->snapshot.text, sink_view(&move->snapshot));
    if (error == 0) /* Syncs the folder. */
        error = disk_replace(io, paths->copy.text, CHECKPOINT_EPOCHS, sink_view(&move->epochs));
    return error == 0 ? io_disk_sync_dir(io, paths->to_directory.text) : error;
}

/* The job of a move that ended meanwhile. */
static bool job_dropped(struct log_move *move)
{
    move->logs->in_flight--;
    move->busy = false;
    if (!move->dropped) return false;
    log_move_free(move);
    return true;
}

static void prepare_done(struct io_op *op)
{
    struct move_paths *paths = container_of(op, struct move_paths, op);
    struct log_move *move = paths->move;
    int64_t result = op->result;
    if (job_dropped(move)) return;
    struct log *log = move->log, *future = move->future;
    if (disk_is_full(result)) {
        log_directory_full(future->directory);
        log_thaw(log);
        swap_again(move, MOVE_COPYING);
        return;
    }
    if (result < 0) {
        log_directory_fail(future->directory, result); /* The next turn ends the move. */
        return;
    }
    log_active(future)->made = true;
    move->state = MOVE_TELLING;
    const struct logs_moves *mover = log->logs->mover;
    if (mover == NULL)
        logs_move_go(log, true);
    else
        mover->told(mover->context, log, LOG_MOVE_READY, future->directory->index);
}

void move_prepare(struct log_move *move)
{
    struct log *log = move->log;
    struct mem *mem = log->logs->mem;
    if (move->paths == NULL) move->paths = mem_get(mem, sizeof(*move->paths));
    sink_reset(&move->snapshot);
    sink_reset(&move->epochs);
    producers_write(&log->producers, &move->snapshot);
    epochs_write(&log->epochs, log->end, &move->epochs);
    bool enough =
        move->paths != NULL && move->snapshot.fault == SINK_OK && move->epochs.fault == SINK_OK;
    if (!enough) {
        log_thaw(log);
        swap_again(move, MOVE_COPYING);
        return;
    }
    paths_fill(move->paths, move);
    move->busy = true;
    move->paths->op.done = prepare_done;
    log->logs->in_flight++;
    io_job(log->logs->io, &move->paths->op, prepare_run, move->paths);
}

/* ---- the folders change their names ---------------------------------------------------------- */

static int rename_synced(struct io *io,
                         const struct disk_path *from,
                         const struct disk_path *to,
                         const struct disk_path *directory)
{
    int error = io_disk_rename(io, from->text, to->text);
    return error < 0 ? error : io_disk_sync_dir(io, directory->text);
}

/* Where it has been done before there is nothing to do. */
static int rename_once(struct io *io,
                       const struct disk_path *from,
                       const struct disk_path *to,
                       const struct disk_path *directory)
{
    int error = rename_synced(io, from, to, directory);
    struct io_stat stat;
    if (error != -ENOENT) return error;
    error = io_disk_stat(io, to->text, &stat);
    return error < 0 ? error : io_disk_sync_dir(io, directory->text);
}

/* On a full disk all of it is done again. If the log's directory fails, the copy keeps its name:
 * the log's may come back with that disk. If the copy's fails, both get their names back. */
static int64_t swap_run(struct io *io, void *argument)
{
    struct move_paths *paths = argument;
    if (!paths->bare)
        paths->from_error = rename_once(io, &paths->from, &paths->aside, &paths->from_directory);
    if (paths->from_error < 0) return paths->from_error;
    int error = rename_once(io, &paths->copy, &paths->to, &paths->to_directory);
    if (error == 0 || disk_is_full(error)) return error;
    paths->to_error = error;
    int back = rename_synced(io, &paths->to, &paths->copy, &paths->to_directory);
    (void)back; /* That directory is offline in any case. */
    if (!paths->bare)
        paths->from_error = rename_synced(io, &paths->aside, &paths->from, &paths->from_directory);
    return error;
}

/* The log's segments are the copy's, and the copy has those that go. */
static void swap_segments(struct log *log, struct log *future)
{
    struct segment **segments = log->segments;
    uint32_t count = log->segment_count, capacity = log->segment_capacity;
    log_hints_drop(log, NULL);
    log_hints_drop(future, NULL);
    log->segments = future->segments;
    log->segment_count = future->segment_count;
    log->segment_capacity = future->segment_capacity;
    log->size_bytes = future->size_bytes;
    future->segments = segments;
    future->segment_count = count;
    future->segment_capacity = capacity;
    for (uint32_t i = 0; i < log->segment_count; i++)
        log->segments[i]->log = log;
    for (uint32_t i = 0; i < future->segment_count; i++)
        future->segments[i]->log = future;
}

static void swap_take(struct log_move *move)
{
    struct log *log = move->log, *future = move->future;
    struct logs *logs = log->logs;
    swap_segments(log, future);
    struct log_directory *old = log->directory;
    log->directory = future->directory;
    future->directory = old;
    if (log->state == LOG_GONE) /* It counts no more. */
        log->directory->partitions--;
    else
        old->partitions--;
    log->has_folder = log->touched = log->metadata_checked = true;
    log->retain_failed = future->retain_failed;
    log->epochs.dirty = false;
    log->epochs_flushed_end = log->end;
    log->producers.snapshot_end = log->end;
    log->aside_id = io_random_uuid(logs->io); /* It may come back while the old folder is there. */
    log->checkpoint_cleaner =
        move->cleaner_from < 0 ? -1 : MIN(move->cleaner_from, log->checkpoint_cleaner);
    logs->starts_moved = logs->watermarks_moved = logs->cleaner_moved = true;
    logs->recovery_moved = true;
    map_remove(&logs->map, &future->node);
    future->state = LOG_GONE;
    log_free(future);
}

static void swap_done(struct io_op *op)
{
    struct move_paths *paths = container_of(op, struct move_paths, op);
    struct log_move *move = paths->move;
    struct log *log = move->log;
    struct logs *logs = log->logs;
    struct log_directory *old = log->directory;
    int64_t result = op->result;
    struct log_directory *target = move->future->directory;
    logs->in_flight--;
    move->busy = false;
    if (disk_is_full(result)) {
        log_directory_full(paths->from_error < 0 ? old : target);
        swap_again(move, MOVE_GOING);
        return;
    }
    if (paths->from_error < 0) log_directory_fail(old, paths->from_error);
    if (paths->to_error < 0) log_directory_fail(target, paths->to_error);
    if (result < 0) {
        log_move_end(move, log->state == LOG_GONE ? LOG_MOVE_ENDED : LOG_MOVE_FAILED);
        return;
    }
    const char *name = strrchr(paths->aside.text, '/') + 1;
    int64_t at_ms = io_now_ms(logs->io) + log->config.file_delete_delay_ms;
    if (!paths->bare && !log_doom(old, name, at_ms))
        logs->retry = true; /* The next start finds it. */
    swap_take(move);
    log_move_done(move);
}

void move_swap(struct log_move *move)
{
    struct log *log = move->log;
    paths_fill(move->paths, move);
    move->busy = true;
    move->paths->op.done = swap_done;
    log->logs->in_flight++;
    io_job(log->logs->io, &move->paths->op, swap_run, move->paths);
}
