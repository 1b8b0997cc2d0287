/* ballast.c - space is reserved before offsets are given: one file of blocks per directory.
 *
 * What a log has given offsets to must find room on the disk. Instead of reserving for each of ten
 * thousand logs, each directory keeps one ballast file whose blocks are at least as many as its
 * logs may have unsynced. When a write meets a full disk the ballast is given up and the same write
 * is made again; from then on appends answer LOG_E_FULL, until the ballast could be taken again.
 * Meanwhile a small one is kept, the last room, for what may give room back (log_append.last_room):
 * who deletes a topic must be able to say so.
 *
 * `.dohle-ballast` is a plain file without bytes (its blocks lie behind its end); Apache Kafka
 * ignores plain files, and a clean stop removes it. Filesystems that cannot reserve have none. Of
 * several shards each has its own, `.dohle-ballast-N` but the first; the first one's start removes
 * what others have left. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log/state.h"

#define BALLAST_NAME       ".dohle-ballast"
#define BALLAST_MIN        (1024u * 1024u)
#define BALLAST_LAST_ROOM  (256u * 1024u)
#define BALLAST_AGAIN_MS   1000
#define BALLAST_LAST_TRIES 3 /* Of a log that is being stopped. */

static struct disk_path ballast_path(const struct log_directory *directory)
{
    const struct logs_part *part = directory->logs->options.part;
    char name[sizeof(BALLAST_NAME) + 12];
    if (part == NULL || part->index == 0) return disk_join(directory->path, BALLAST_NAME);
    (void)snprintf(name, sizeof(name), BALLAST_NAME "-%u", part->index);
    return disk_join(directory->path, name);
}

bool log_ballast_left(struct log_directory *directory, const char *name)
{
    if (strncmp(name, BALLAST_NAME "-", sizeof(BALLAST_NAME)) != 0) return true;
    int error = disk_unlink_if_there(directory->logs->io, disk_join(directory->path, name).text);
    if (error < 0) log_directory_fail(directory, error);
    return error == 0;
}

/* Bytes that could be reserved (at least `min`), 0 where reserving does not exist, or -errno. */
static int64_t ballast_reserve(struct io *io, const char *path, uint64_t wanted, uint64_t min)
{
    struct io_file *file;
    int error = io_disk_open(io, path, IO_OPEN_WRITE | IO_OPEN_CREATE | IO_OPEN_TRUNCATE, &file);
    if (error < 0) return error;
    uint64_t bytes = wanted;
    for (;;) {
        error = io_disk_reserve(io, file, 0, bytes);
        if (!disk_is_full(error) || bytes / 2 < min) break;
        bytes /= 2;
    }
    io_disk_close(io, file);
    if (error == 0) return (int64_t)bytes;
    int ignored = disk_unlink_if_there(io, path); /* The first failure counts. */
    (void)ignored;
    return error == -EOPNOTSUPP || error == -ENOSYS || error == -EINVAL ? 0 : error;
}

static uint64_t ballast_last_room(const struct log_directory *directory)
{
    return MIN((uint64_t)BALLAST_LAST_ROOM, directory->unsynced_max / 4);
}

void log_ballast_take(struct log_directory *directory)
{
    struct logs *logs = directory->logs;
    uint64_t wanted = logs->options.unsynced_max_bytes;
    directory->unsynced_max = wanted;
    int64_t got = ballast_reserve(logs->io, ballast_path(directory).text, wanted,
                                  MIN(wanted, (uint64_t)BALLAST_MIN));
    if (got > 0) {
        directory->ballast_bytes = (uint64_t)got;
        directory->unsynced_max = (uint64_t)got;
    } else if (disk_is_full(got)) {
        uint64_t last = ballast_last_room(directory);
        got = ballast_reserve(logs->io, ballast_path(directory).text, last, last);
        directory->ballast_bytes = got > 0 ? (uint64_t)got : 0;
        directory->full = true;
        logs_say(logs, "log directory \"%s\" is full: appends are refused until there is space",
                 directory->path);
    } else if (got < 0) {
        log_directory_fail(directory, got);
    }
}

void log_ballast_free(struct log_directory *directory)
{
    if (directory->ballast_bytes == 0) return;
    directory->ballast_bytes = 0;
    int error = disk_unlink_if_there(directory->logs->io, ballast_path(directory).text);
    if (error < 0) log_directory_fail(directory, error);
}

static bool resubmit(void *context, struct log *log)
{
    if (log->directory == context && !list_empty(&log->writes)) log_writes_submit(log);
    return true;
}

/* ---- giving up ------------------------------------------------------------------------------- */

static int64_t ballast_drop_run(struct io *io, void *argument)
{
    const struct log_directory *directory = argument;
    return disk_unlink_if_there(io, ballast_path(directory).text);
}

static void ballast_drop_done(struct io_op *op)
{
    struct log_directory *directory = container_of(op, struct log_directory, ballast_op);
    directory->logs->in_flight--;
    directory->ballast_busy = false;
    directory->ballast_bytes = 0;
    directory->ballast_round++;
    if (op->result < 0)
        log_directory_fail(directory, op->result);
    else
        logs_each(directory->logs, resubmit, directory);
}

void log_directory_full(struct log_directory *directory)
{
    struct logs *logs = directory->logs;
    if (!directory->full) {
        logs_say(logs, "log directory \"%s\" is full: appends are refused until there is space",
                 directory->path);
        directory->ballast_next_ms = io_now_ms(logs->io) + BALLAST_AGAIN_MS;
    }
    directory->full = true;
    if (directory->ballast_busy || directory->ballast_bytes == 0) return;
    directory->ballast_busy = true;
    directory->ballast_op.done = ballast_drop_done;
    logs->in_flight++;
    io_job(logs->io, &directory->ballast_op, ballast_drop_run, directory);
}

/* ---- taking again ---------------------------------------------------------------------------- */

/* All that is wanted, else the last room, else -ENOSPC. */
static int64_t ballast_again_run(struct io *io, void *argument)
{
    const struct log_directory *directory = argument;
    struct disk_path path = ballast_path(directory);
    uint64_t wanted = directory->unsynced_max, last = ballast_last_room(directory);
    int64_t got = ballast_reserve(io, path.text, wanted, wanted);
    return disk_is_full(got) ? ballast_reserve(io, path.text, last, last) : got;
}

static void ballast_again_done(struct io_op *op)
{
    struct log_directory *directory = container_of(op, struct log_directory, ballast_op);
    struct logs *logs = directory->logs;
    logs->in_flight--;
    directory->ballast_busy = false;
    directory->ballast_round++;
    directory->ballast_next_ms = io_now_ms(logs->io) + BALLAST_AGAIN_MS;
    directory->ballast_bytes = op->result > 0 ? (uint64_t)op->result : 0;
    if (op->result == 0 || directory->ballast_bytes == directory->unsynced_max) {
        directory->full = false;
        logs_say(logs, "log directory \"%s\" has space again", directory->path);
    } else if (op->result < 0 && !disk_is_full(op->result)) {
        log_directory_fail(directory, op->result);
        return;
    }
    logs_each(logs, resubmit, directory);
}

struct ballast_wait {
    const struct log_directory *directory;
    bool waits;
};

static bool find_waiting(void *context, struct log *log)
{
    struct ballast_wait *wait = context;
    wait->waits = log->directory == wait->directory &&
                  (!list_empty(&log->writes) || !list_empty(&log->works) || log->looking);
    return !wait->waits;
}

/* A stop does not wait for an operator: what still has no room was not acknowledged, and the next
 * start recovers. */
static bool stop_gives_up(struct log_directory *directory)
{
    struct logs *logs = directory->logs;
    if (!logs->stopping) return false;
    struct ballast_wait wait = {.directory = directory};
    logs_each(logs, find_waiting, &wait);
    list_foreach (node, &logs->gone)
        wait.waits |= container_of(node, struct log, gone)->directory == directory;
    return wait.waits && directory->ballast_tries++ >= BALLAST_LAST_TRIES;
}

int64_t log_ballast_turn(struct log_directory *directory, int64_t now_ms)
{
    struct logs *logs = directory->logs;
    if (!directory->full || directory->ballast_busy || directory->error != 0) return INT64_MAX;
    if (now_ms < directory->ballast_next_ms) return directory->ballast_next_ms;
    if (stop_gives_up(directory)) {
        log_directory_fail(directory, -ENOSPC);
        return INT64_MAX;
    }
    directory->ballast_busy = true;
    directory->ballast_op.done = ballast_again_done;
    logs->in_flight++;
    io_job(logs->io, &directory->ballast_op, ballast_again_run, directory);
    return INT64_MAX;
}
