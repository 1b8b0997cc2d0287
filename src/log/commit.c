/* commit.c - group commit: one in flight per directory, what is written meanwhile joins the next.
 *
 * A commit makes durable the written bytes of the segments on the directory's dirty list, and the
 * names (folders, new files) of the logs on its names list. A segment comes on the list with its
 * first written byte and stays there or in the commit until all its bytes are durable. A segment is
 * made only when the one before it is durable (write.c), so the durable end never jumps a gap. All
 * names go with every commit: a file's name is on the list from its making on, before its first
 * byte is written.
 *
 * A failed commit takes the directory offline for good: after a failed fsync the kernel may have
 * dropped the pages and say yes the next time. */
#include <errno.h>
#include <stdio.h>

#include "log/state.h"
#include "sys/say.h"

/* With acks that rest on the written end, commits come this often at the latest. */
#define COMMIT_LAZY_MS 1000

/* Folders that are synced side by side. */
#define COMMIT_NAMES_AT_ONCE 64u

void log_names_dirty(struct log *log)
{
    log->names_dirty = true;
    if (list_empty(&log->names)) list_append(&log->directory->names, &log->names);
}

void log_unsynced_drop(struct segment *segment)
{
    struct log_directory *directory = segment->log->directory;
    uint32_t unsynced = segment->size_bytes - segment->durable_bytes;
    assert(directory->unsynced_bytes >= unsynced);
    directory->unsynced_bytes -= unsynced;
    list_remove(&segment->dirty);
}

static bool fail_log(void *context, struct log *log)
{
    struct log_directory *directory = context;
    if (log->directory != directory) return true;
    log_writes_drop(log);
    log_tell(log, LOG_EVENT_FAILED | LOG_EVENT_READY);
    return true;
}

void log_directory_fail(struct log_directory *directory, int64_t error)
{
    assert(error < 0);
    if (directory->error != 0) return;
    directory->error = (int)error;
    logs_say(directory->logs, "log directory \"%s\" is offline: %s", directory->path,
             say_errno((int)error));
    logs_each(directory->logs, fail_log, directory);
}

/* ---- completion ------------------------------------------------------------------------------ */

static void commit_segment(struct log_directory *directory, struct segment *segment)
{
    struct log *log = segment->log;
    list_remove(&segment->dirty);
    assert(segment->commit_bytes >= segment->durable_bytes);
    directory->unsynced_bytes -= segment->commit_bytes - segment->durable_bytes;
    directory->unmarked_bytes += segment->commit_bytes - segment->durable_bytes;
    segment->durable_bytes = segment->commit_bytes;
    segment->durable_end = segment->commit_end;
    if (segment->written_bytes > segment->durable_bytes)
        list_prepend(&directory->dirty, &segment->dirty);
    if (segment->durable_end > log->durable) {
        log->durable = segment->durable_end;
        assert(log->durable <= log->written);
        log_tell(log, LOG_EVENT_DURABLE);
    }
    if (!list_empty(&log->writes)) log_writes_submit(log); /* It may wait at a roll for this. */
}

static void commit_names(struct log_directory *directory, struct log *log)
{
    list_remove(&log->names);
    if (log->names_dirty) { /* Again since the commit began. */
        list_prepend(&directory->names, &log->names);
        return;
    }
    if (log->metadata_file != NULL) io_disk_close(directory->logs->io, log->metadata_file);
    log->metadata_file = NULL;
}

static void commit_done(struct log_commit *commit, int64_t result)
{
    struct log_directory *directory = commit->directory;
    struct logs *logs = directory->logs;
    logs->in_flight--;
    if (result < 0 && commit->result == 0) commit->result = result;
    if (--commit->waiting > 0) return;

    commit->running = false;
    commit->folders = mem_put(logs->mem, commit->folders, commit->folders_size);
    if (commit->result < 0) {
        log_directory_fail(directory, commit->result);
        return;
    }
    directory->commits++;
    directory->commit_files += commit->file_count;
    directory->dirty_since_ms = io_now_ms(logs->io);
    list_foreach (node, &commit->segments)
        commit_segment(directory, container_of(node, struct segment, dirty));
    list_foreach (node, &commit->logs)
        commit_names(directory, container_of(node, struct log, names));
    if (directory->unmarked_bytes > LOG_UNMARKED_MAX && !logs->recovery_moved)
        logs->recovery_moved = logs->resumes_wanted = true;
}

static void commit_files_done(struct io_op *op)
{
    commit_done(container_of(op, struct log_commit, durable), op->result);
}

static void commit_names_done(struct io_op *op)
{
    commit_done(container_of(op, struct log_commit, names), op->result);
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Job: sync the folders and the directory that holds them. */
static int64_t commit_names_run(struct io *io, void *argument)
{
    const struct log_commit *commit = argument;
    const char *folder = commit->folders;
    const char *end = folder + commit->folders_size;
    struct io_sync parts[COMMIT_NAMES_AT_ONCE] = {{.folder = commit->directory->path}};
    uint32_t count = 1;
    for (;;) {
        bool more = folder < end && *folder != '\0';
        if (count == COMMIT_NAMES_AT_ONCE || !more) {
            int error = io_disk_sync_all(io, parts, count);
            if (error < 0 || !more) return error;
            count = 0;
        }
        parts[count++] = (struct io_sync){.folder = folder, .gone_ok = true}; /* Deleted since. */
        folder += strlen(folder) + 1;
    }
}

static bool commit_room(struct log_commit *commit, uint32_t files, uint32_t folder_bytes)
{
    struct mem *mem = commit->directory->logs->mem;
    if (files > commit->file_capacity) {
        uint32_t capacity = MAX(files, 16u);
        struct io_file **room = mem_get(mem, capacity * sizeof(room[0]));
        if (room == NULL) return false;
        mem_put(mem, commit->files, commit->file_capacity * sizeof(room[0]));
        commit->files = room;
        commit->file_capacity = capacity;
    }
    if (folder_bytes == 0) return true;
    commit->folders = mem_get(mem, folder_bytes);
    commit->folders_size = folder_bytes;
    return commit->folders != NULL;
}

static void commit_take_names(struct log_directory *directory)
{
    struct log_commit *commit = &directory->commit;
    char *at = commit->folders;
    list_foreach (node, &directory->names) {
        struct log *log = container_of(node, struct log, names);
        struct disk_path folder = log_folder(log);
        size_t size = strlen(folder.text) + 1;
        memcpy(at, folder.text, size);
        at += size;
        if (log->metadata_file != NULL) commit->files[commit->file_count++] = log->metadata_file;
        log->names_dirty = false;
        list_remove(node);
        list_append(&commit->logs, node);
    }
}

static void commit_take_segments(struct log_directory *directory)
{
    struct log_commit *commit = &directory->commit;
    uint32_t taken = 0;
    list_foreach (node, &directory->dirty) {
        if (taken++ == LOG_COMMIT_FILES_MAX) break;
        struct segment *segment = container_of(node, struct segment, dirty);
        assert(segment->file != NULL); /* Files with unsynced bytes are not closed. */
        segment->commit_bytes = segment->written_bytes;
        segment->commit_end = segment->written_end;
        commit->files[commit->file_count++] = segment->file->file;
        list_remove(node);
        list_append(&commit->segments, node);
    }
}

static uint32_t list_count(const struct list *head)
{
    uint32_t count = 0;
    list_foreach (node, head)
        count++;
    return count;
}

static void commit_start(struct log_directory *directory)
{
    struct logs *logs = directory->logs;
    struct log_commit *commit = &directory->commit;
    uint32_t names = list_count(&directory->names);
    uint32_t segments = list_count(&directory->dirty);
    uint32_t folder_bytes = 0;
    list_foreach (node, &directory->names)
        folder_bytes +=
            (uint32_t)strlen(log_folder(container_of(node, struct log, names)).text) + 1;
    if (!commit_room(commit, names + segments, folder_bytes == 0 ? 0 : folder_bytes + 1)) {
        logs->retry = true;
        return;
    }
    commit->running = true;
    directory->commit_wanted = false;
    commit->result = 0;
    commit->waiting = 0;
    commit->file_count = 0;
    commit_take_names(directory);
    commit_take_segments(directory);

    if (commit->file_count > 0) {
        commit->waiting++;
        logs->in_flight++;
        commit->durable.done = commit_files_done;
        io_durable(logs->io, &commit->durable, commit->files, commit->file_count);
    }
    if (names > 0) {
        commit->waiting++;
        logs->in_flight++;
        commit->names.done = commit_names_done;
        io_job(logs->io, &commit->names, commit_names_run, commit);
    }
    assert(commit->waiting > 0);
}

void log_commit_eagerly(struct log *log)
{
    log->commit_eager = true;
    log->directory->commit_wanted = true;
}

/* Names alone would make a commit of their own: what is being written to a new file goes with its
 * name. */
static bool commit_too_early(const struct log_directory *directory)
{
    if (!list_empty(&directory->dirty)) return false;
    list_foreach (node, &directory->names) {
        const struct list *writes = &container_of(node, struct log, names)->writes;
        if (!list_empty(writes) && container_of(writes->next, struct log_write, link)->in_flight)
            return true;
    }
    return false;
}

int64_t log_directory_turn(struct log_directory *directory, int64_t now_ms)
{
    struct logs *logs = directory->logs;
    if (directory->error != 0 || directory->commit.running) return INT64_MAX;
    if (list_empty(&directory->dirty) && list_empty(&directory->names)) return INT64_MAX;
    bool lazy = logs->options.ack == LOG_ACK_REPLICATED && !logs->stopping &&
                !directory->commit_wanted && list_empty(&logs->changing) &&
                directory->unsynced_bytes < directory->unsynced_max / 2;
    if (lazy && now_ms - directory->dirty_since_ms < COMMIT_LAZY_MS)
        return directory->dirty_since_ms + COMMIT_LAZY_MS;
    if (commit_too_early(directory)) return INT64_MAX; /* The write's end calls again. */
    commit_start(directory);
    return INT64_MAX;
}
