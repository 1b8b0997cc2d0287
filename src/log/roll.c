/* roll.c - a new active segment, the sealing of the old one, and a log's first files.
 *
 * Rolling makes no system call: the new file is created when its first bytes are written. *Sealing*
 * is the job that writes the old segment's indexes and the producers' snapshot at the new base, and
 * makes them durable. Until then the recovery point stays below the unsealed segment's end, so that
 * after a crash it is scanned and its indexes are made anew. */
#include <errno.h>
#include <stdio.h>

#include "log/state.h"
#include "record/sink.h"

/* ---- sealing --------------------------------------------------------------------------------- */

struct seal {
    struct log_work work;
    struct segment *segment; /* `sealing` keeps its indexes as they are. */
    struct sink snapshot;    /* Of the producers at the next base; empty: none is written. */
    struct disk_path offsets;
    struct disk_path times;
    struct disk_path txns;
    struct disk_path producers;
    int64_t next_base;
};

static int64_t seal_run(struct io *io, void *argument)
{
    struct seal *seal = argument;
    const struct segment *segment = seal->segment;
    int error = index_store(io, seal->offsets.text, &segment->offsets);
    if (error == 0) error = index_store(io, seal->times.text, &segment->times);
    if (error == 0 && segment->txns.count > 0)
        error = index_store(io, seal->txns.text, &segment->txns);
    if (error == 0 && segment->txns.count > 0) /* Nothing else tells that it was there. */
        error = io_disk_sync_dir(io, log_folder(seal->work.log).text);
    if (error == 0 && seal->snapshot.size_bytes > 0)
        error = disk_write_synced(io, seal->producers.text, sink_view(&seal->snapshot));
    return error;
}

static void seal_finish(struct log_work *work, int64_t result)
{
    struct seal *seal = container_of(work, struct seal, work);
    struct segment *segment = seal->segment;
    struct log *log = work->log;
    struct logs *logs = log->logs;
    segment->sealing = false;
    if (result == 0) {
        segment->sealed = true;
        segment->offsets.stored = segment->offsets.count;
        segment->times.stored = segment->times.count;
        segment->txns.stored = segment->txns.count;
        if (seal->snapshot.size_bytes > 0)
            log->producers.snapshot_end = MAX(log->producers.snapshot_end, seal->next_base);
        log_names_dirty(log);
        list_append(&logs->indexed, &segment->indexed);
        logs->indexed_bytes += look_bytes(segment);
        look_trim(logs);
    } else if (result == -ENOENT && !log->has_folder) {
        /* The folder could not be made yet; the next checkpoint tries again. */
    } else if (disk_is_full(result)) {
        log_directory_full(
            log->directory); /* It stays unsealed; the next checkpoint tries again. */
    } else {
        log_directory_fail(log->directory, result);
    }
    sink_free(&seal->snapshot);
    mem_put(logs->mem, seal, sizeof(*seal));
    log_tell(log, LOG_EVENT_READY);
}

static struct seal *seal_new(struct log *log, struct segment *segment, int64_t next_base)
{
    struct mem *mem = log->logs->mem;
    struct seal *seal = mem_get(mem, sizeof(*seal));
    if (seal == NULL) return NULL;
    seal->segment = segment;
    seal->next_base = next_base;
    seal->offsets = log_path(log, segment_file_name(segment->base, ".index").text);
    seal->times = log_path(log, segment_file_name(segment->base, ".timeindex").text);
    seal->txns = log_path(log, segment_file_name(segment->base, ".txnindex").text);
    seal->producers = log_path(log, segment_file_name(next_base, ".snapshot").text);
    sink_init(&seal->snapshot, mem, UINT32_MAX);
    seal->work.run = seal_run;
    seal->work.finish = seal_finish;
    return seal;
}

int log_seal_again(struct log *log, uint32_t at)
{
    struct segment *segment = log->segments[at];
    assert(at + 1 < log->segment_count);
    assert(!segment->sealed);
    if (segment->sealing || log->directory->error != 0) return LOG_OK;
    struct seal *seal = seal_new(log, segment, log->segments[at + 1]->base);
    if (seal == NULL) return LOG_E_MEMORY;
    segment->sealing = true;
    log_work_add(log, &seal->work);
    return LOG_OK;
}

/* ---- rolling --------------------------------------------------------------------------------- */

int log_roll_to(struct log *log, int64_t base)
{
    struct mem *mem = log->logs->mem;
    struct segment *old = log_active(log);
    if (base <= old->base) return LOG_OK; /* The active one is empty and begins there. */
    if (!index_reserve(mem, &old->times, 1)) return LOG_E_MEMORY;
    struct segment *segment = segment_new(mem, log, base);
    struct seal *seal = segment == NULL ? NULL : seal_new(log, old, base);
    if (seal != NULL) producers_write(&log->producers, &seal->snapshot);
    if (seal == NULL || seal->snapshot.fault != SINK_OK || !segment_push(mem, log, segment)) {
        if (seal != NULL) sink_free(&seal->snapshot);
        mem_put(mem, seal, sizeof(*seal));
        segment_free(mem, segment);
        return LOG_E_MEMORY;
    }
    segment->created_wall_ms = io_wall_ms(log->logs->io);
    segment->modified_wall_ms = segment->created_wall_ms;
    segment->jitter_ms = segment_jitter(log);
    segment_finish_times(old);
    old->modified_wall_ms = segment->created_wall_ms;
    old->sealing = true;
    log_work_add(log, &seal->work);
    log_debug(log, "a new segment from offset %lld on", (long long)base);
    return LOG_OK;
}

int log_roll(struct log *log)
{
    int usable = log_usable(log);
    if (usable != LOG_OK) return usable;
    if (log->frozen) return LOG_LATER;
    if (log->directory->full) return LOG_E_FULL;
    if (log_active(log)->size_bytes == 0) return LOG_OK;
    return log_roll_to(log, log->end);
}

/* ---- a log's first files --------------------------------------------------------------------- */

uint32_t log_metadata_print(struct uuid topic_id, char text[LOG_METADATA_BYTES])
{
    char id[23];
    log_uuid_print(topic_id, id);
    int length = snprintf(text, LOG_METADATA_BYTES, "version: 0\ntopic_id: %s", id);
    assert(length == 44 - 1);
    return (uint32_t)length;
}

struct make {
    struct log_work work;
    struct disk_path folder;
    struct disk_path metadata;
    char text[LOG_METADATA_BYTES];
    uint32_t text_size; /* 0: no topic id is known, no partition.metadata. */
    struct io_file *file;
};

static int64_t make_run(struct io *io, void *argument)
{
    struct make *make = argument;
    int error = io_disk_mkdir(io, make->folder.text);
    if (error < 0 && error != -EEXIST) return error;
    if (make->text_size == 0) return 0;
    int flags = IO_OPEN_WRITE | IO_OPEN_CREATE | IO_OPEN_TRUNCATE;
    if (make->file == NULL) {
        error = io_disk_open(io, make->metadata.text, flags, &make->file);
        if (error < 0) return error;
    }
    int64_t put = io_disk_write(io, make->file, make->text, make->text_size, 0);
    return put < 0 ? put : 0;
}

static void make_finish(struct log_work *work, int64_t result)
{
    struct make *make = container_of(work, struct make, work);
    struct log *log = work->log;
    struct logs *logs = log->logs;
    log->making = false;
    if (result == 0) {
        log->has_folder = true;
        log->metadata_checked = make->text_size > 0;
        log->metadata_file = make->file; /* The next commit makes it durable. */
        make->file = NULL;
        log_names_dirty(log);
        log_writes_submit(log);
    } else if (disk_is_full(result)) { /* The ballast's next move submits again. */
        log_directory_full(log->directory);
    } else if (result == -EMFILE || result == -ENFILE) {
        logs->retry = true;
        if (list_empty(&log->ready)) list_append(&logs->ready, &log->ready);
    } else {
        log_directory_fail(log->directory, result);
    }
    if (make->file != NULL) io_disk_close(logs->io, make->file);
    mem_put(logs->mem, make, sizeof(*make));
}

void log_make_start(struct log *log)
{
    struct logs *logs = log->logs;
    if (log->making || log->has_folder || log->directory->error != 0) return;
    if (log_name_taken(log)) { /* By a deletion that has not renamed its folder yet. */
        logs->retry = true;
        if (list_empty(&log->ready)) list_append(&logs->ready, &log->ready);
        return;
    }
    struct make *make = mem_get(logs->mem, sizeof(*make));
    if (make == NULL) { /* The write waits; the next turn tries again. */
        logs->retry = true;
        if (list_empty(&log->ready)) list_append(&logs->ready, &log->ready);
        return;
    }
    make->folder = log_folder(log);
    make->metadata = log_path(log, "partition.metadata");
    if (!uuid_is_zero(log->topic_id))
        make->text_size = log_metadata_print(log->topic_id, make->text);
    make->work.run = make_run;
    make->work.finish = make_finish;
    log->making = true;
    log_work_add(log, &make->work);
}
