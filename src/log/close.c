/* close.c - the end: a clean stop, or none.
 *
 * A clean stop leaves each directory as Apache Kafka would: indexes complete and cut to size, a
 * producer snapshot at each log's end, epochs, checkpoints, and last the clean mark: only where
 * every log had been recovered, nothing failed and nothing was left unsynced. */
#include <errno.h>

#include "log/checkpoint.h"
#include "log/log_mark.h"
#include "log/state.h"
#include "record/sink.h"
#include "sys/say.h"

static int close_segment(struct log *log, struct segment *segment)
{
    struct io *io = log->logs->io;
    if (!segment->offsets.loaded || segment->sealed) return 0;
    if (!index_reserve(log->logs->mem, &segment->times, 1)) return -ENOMEM;
    segment_finish_times(segment);
    struct index *const indexes[] = {&segment->offsets, &segment->times, &segment->txns};
    static const char *const suffixes[] = {".index", ".timeindex", ".txnindex"};
    for (size_t i = 0; i < ARRAY_SIZE(indexes); i++) {
        if (i == 2 && indexes[i]->count == 0 && indexes[i]->stored == 0) continue;
        struct segment_name name = segment_file_name(segment->base, suffixes[i]);
        int error = index_store(io, log_path(log, name.text).text, indexes[i]);
        if (error < 0) return error;
    }
    if (segment->made) return 0;
    struct segment_name name = segment_file_name(segment->base, ".log");
    return disk_write_synced(io, log_path(log, name.text).text, VIEW_EMPTY);
}

static int close_snapshot(struct log *log)
{
    if (log->producers.snapshot_end == log->end) return 0;
    struct sink out;
    sink_init(&out, log->logs->mem, UINT32_MAX);
    producers_write(&log->producers, &out);
    int error = out.fault == SINK_OK ? 0 : -ENOMEM;
    struct segment_name name = segment_file_name(log->end, ".snapshot");
    if (error == 0)
        error = disk_write_synced(log->logs->io, log_path(log, name.text).text, sink_view(&out));
    sink_free(&out);
    return error;
}

static int close_epochs(struct log *log)
{
    if (!log->epochs.dirty) return 0;
    struct sink out;
    sink_init(&out, log->logs->mem, UINT32_MAX);
    epochs_write(&log->epochs, log->end, &out);
    int error = out.fault == SINK_OK ? 0 : -ENOMEM;
    if (error == 0)
        error =
            disk_replace(log->logs->io, log_folder(log).text, CHECKPOINT_EPOCHS, sink_view(&out));
    if (error == 0) log->epochs.dirty = false;
    sink_free(&out);
    return error;
}

int log_close_files(struct log *log)
{
    assert(log->state == LOG_READY);
    int error = 0;
    for (uint32_t i = 0; i < log->segment_count && error == 0; i++)
        error = close_segment(log, log->segments[i]);
    if (error == 0) error = close_snapshot(log);
    if (error == 0) error = log_resume_drop(log->logs->io, log, log->end, 0);
    if (error == 0) error = close_epochs(log);
    if (error == 0) error = io_disk_sync_dir(log->logs->io, log_folder(log).text);
    return error;
}

/* Everything of the directory is on disk and known to be. */
static bool close_earned(const struct log_directory *directory)
{
    return directory->error == 0 && directory->unrecovered == 0 && !directory->unasked &&
           list_empty(&directory->dirty) && list_empty(&directory->names);
}

struct closing {
    struct log_directory *directory;
    int error;
    bool broken; /* A log could not be opened: no mark. */
};

static bool close_log(void *context, struct log *log)
{
    struct closing *closing = context;
    if (log->directory != closing->directory) return true;
    if (log->state != LOG_READY && log->state != LOG_CLOSED) closing->broken = true;
    if (log->state != LOG_READY || !log->has_folder || !log->touched) return true;
    if (log->durable < log->end || !list_empty(&log->writes)) {
        closing->broken = true;
        return true;
    }
    closing->error = log_close_files(log);
    return closing->error == 0;
}

static void close_directory(struct log_directory *directory, int64_t broker_epoch)
{
    struct logs *logs = directory->logs;
    if (!close_earned(directory)) return;
    log_ballast_free(directory); /* Its blocks may be needed for what follows. */
    struct closing closing = {.directory = directory};
    logs_each(logs, close_log, &closing);
    int error = closing.error;
    if (!parts_first(logs)) {
        if (error == 0 && !closing.broken) directory->closed = true;
        return;
    }
    /* What a part has not told, or a part that could not be opened, stands in the files as before.
     */
    if (directory->others_told != parts_others(logs)) return;
    for (int kind = 0; kind < 4 && error == 0; kind++)
        error = tasks_checkpoint_write(directory, (enum checkpoint_kind)kind);
    if (error == 0) error = io_disk_sync_dir(logs->io, directory->path);
    if (error == 0 && !closing.broken && directory->error == 0 &&
        directory->others_clean == parts_others(logs))
        error = log_mark_write(logs->io, directory->path, broker_epoch);
    if (error < 0)
        logs_say(logs, "log directory \"%s\" is not marked clean: %s", directory->path,
                 say_errno(error));
}

void logs_stop(struct logs *logs)
{
    if (logs != NULL) logs->stopping = true;
}

void logs_close(struct logs *logs, int64_t broker_epoch)
{
    if (logs == NULL) return;
    if (logs_idle(logs))
        for (uint32_t i = 0; i < logs->directory_count; i++)
            close_directory(&logs->directories[i], broker_epoch);
    logs_abandon(logs);
}

void logs_close_part(struct logs *logs)
{
    if (logs == NULL) return;
    struct logs *first = logs->options.part->first;
    assert(!parts_first(logs));
    if (logs_idle(logs))
        for (uint32_t i = 0; i < logs->directory_count; i++)
            close_directory(&logs->directories[i], -1);
    bool given = parts_give(logs);
    for (uint32_t i = 0; i < logs->directory_count; i++) {
        const struct log_directory *directory = &logs->directories[i];
        first->directories[i].others_told += given;
        first->directories[i].others_clean += given && directory->closed && directory->error == 0;
    }
    logs_abandon(logs);
}

/* ---- freeing --------------------------------------------------------------------------------- */

static bool abandon_log(void *context, struct log *log)
{
    struct logs *logs = context;
    map_remove(&logs->map, &log->node);
    log_free(log);
    return true;
}

static void abandon_directory(struct log_directory *directory)
{
    struct logs *logs = directory->logs;
    struct list *node;
    while ((node = list_pop(&directory->doomed)) != NULL)
        mem_put(logs->mem, container_of(node, struct log_doomed, link), sizeof(struct log_doomed));
    struct log_commit *commit = &directory->commit;
    mem_put(logs->mem, commit->files, commit->file_capacity * sizeof(commit->files[0]));
    mem_put(logs->mem, commit->folders, commit->folders_size);
    if (directory->lock != NULL) io_disk_close(logs->io, directory->lock);
}

void logs_abandon(struct logs *logs)
{
    if (logs == NULL) return;
    assert(logs->in_flight == 0);
    struct mem *mem = logs->mem;
    struct list *node;
    logs_clean_abandon(logs);
    logs_moves_abandon(logs);
    parts_free(logs);
    while ((node = list_pop(&logs->gone)) != NULL)
        log_free(container_of(node, struct log, gone));
    logs_each(logs, abandon_log, logs);
    while ((node = list_pop(&logs->spare_writes)) != NULL)
        mem_put(mem, container_of(node, struct log_write, link), sizeof(struct log_write));
    struct map_node *lost;
    while ((lost = map_next(&logs->lost, NULL)) != NULL) {
        map_remove(&logs->lost, lost);
        mem_put(mem, container_of(lost, struct log_lost, node), sizeof(struct log_lost));
    }
    for (uint32_t i = 0; i < logs->directory_count; i++)
        abandon_directory(&logs->directories[i]);
    map_free(&logs->map);
    map_free(&logs->lost);
    compress_work_free(&logs->compress);
    mem_put(mem, logs->directories, logs->directory_count * sizeof(logs->directories[0]));
    mem_put(mem, logs, sizeof(*logs));
}
