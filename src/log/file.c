/* file.c - counted open files of segments, and closing the longest unused.
 *
 * A segment keeps its file open between uses; above the options' cap the ones longest unused are
 * closed, but never one with bytes that are not durable yet (a sync must see the handle that wrote
 * them), nor one that a range or a write still holds. */
#include "log/state.h"

int log_file_open(struct logs *logs, struct segment *segment, const char *path, bool create)
{
    assert(segment->file == NULL);
    struct log_file *file = mem_get(logs->mem, sizeof(*file));
    if (file == NULL) return LOG_E_MEMORY;
    int flags = IO_OPEN_WRITE | (create ? IO_OPEN_CREATE | IO_OPEN_TRUNCATE : 0);
    int error = io_disk_open(logs->io, path, flags, &file->file);
    if (error < 0) {
        mem_put(logs->mem, file, sizeof(*file));
        return error;
    }
    file->logs = logs;
    file->references = 1;
    file->segment = segment;
    list_init(&file->lru);
    list_append(&logs->files, &file->lru);
    logs->file_count++;
    segment->file = file;
    return LOG_OK;
}

void log_file_hold(struct log_file *file)
{
    assert(file->references > 0);
    file->references++;
}

void log_file_release(struct log_file *file)
{
    assert(file->references > 0);
    if (--file->references > 0) return;
    assert(file->segment == NULL);
    list_remove(&file->lru);
    file->logs->file_count--;
    io_disk_close(file->logs->io, file->file);
    mem_put(file->logs->mem, file, sizeof(*file));
}

void log_file_drop(struct segment *segment)
{
    struct log_file *file = segment->file;
    if (file == NULL) return;
    segment->file = NULL;
    file->segment = NULL;
    log_file_release(file);
}

void log_file_used(struct log_file *file)
{
    list_remove(&file->lru);
    list_append(&file->logs->files, &file->lru);
}

void log_files_trim(struct logs *logs)
{
    uint32_t max = logs->options.open_files_max;
    if (logs->file_count <= max) return;
    list_foreach (node, &logs->files) {
        struct log_file *file = container_of(node, struct log_file, lru);
        struct segment *segment = file->segment;
        if (segment == NULL || file->references > 1) continue;
        if (segment->durable_bytes < segment->size_bytes) continue;
        log_file_drop(segment);
        if (logs->file_count <= max) return;
    }
}
