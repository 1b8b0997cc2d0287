/* write.c - the bytes of appends on their way to the active segment's file.
 *
 * Appends gather in a write while one is in flight or the turn is not over; it goes out as one
 * vectored write. One at a time per log, so that a full disk can be answered by giving the ballast
 * up and writing the same bytes again, before anything behind them. */
#include <errno.h>

#include "log/state.h"

/* Writes kept for reuse: one turn's worth of busy logs. */
#define SPARE_WRITES_MAX 64u

static struct log_write *write_get(struct logs *logs)
{
    struct list *node = list_pop(&logs->spare_writes);
    if (node != NULL) {
        logs->spare_write_count--;
        return container_of(node, struct log_write, link);
    }
    struct log_write *write = mem_get(logs->mem, sizeof(*write));
    if (write != NULL) list_init(&write->link);
    return write;
}

static void write_put_back(struct logs *logs, struct log_write *write)
{
    for (uint32_t i = 0; i < write->piece_count; i++)
        buf_release(write->bufs[i]);
    if (write->file != NULL) log_file_release(write->file);
    write->file = NULL;
    write->piece_count = 0;
    write->in_flight = false;
    list_remove(&write->link);
    if (logs->spare_write_count < SPARE_WRITES_MAX) {
        list_append(&logs->spare_writes, &write->link);
        logs->spare_write_count++;
    } else {
        mem_put(logs->mem, write, sizeof(*write));
    }
}

struct log_write *log_write_room(struct log *log, struct segment *segment)
{
    if (!list_empty(&log->writes)) {
        struct log_write *last = container_of(log->writes.previous, struct log_write, link);
        if (!last->in_flight && last->segment == segment &&
            last->piece_count < LOG_WRITE_PIECES_MAX)
            return last;
    }
    struct log_write *write = write_get(log->logs);
    if (write == NULL) return NULL;
    write->log = log;
    write->segment = segment;
    write->at_bytes = segment->size_bytes;
    write->size_bytes = 0;
    write->offset_end = log->end;
    list_append(&log->writes, &write->link);
    return write;
}

void log_write_put(struct log_write *write, struct buf *buf, struct iovec piece, int64_t offset_end)
{
    struct log *log = write->log;
    assert(write->piece_count < LOG_WRITE_PIECES_MAX);
    assert(!write->in_flight);
    assert(write->at_bytes + write->size_bytes == write->segment->size_bytes);
    write->bufs[write->piece_count] = buf_hold(buf);
    write->iov[write->piece_count] = piece;
    write->piece_count++;
    write->size_bytes += (uint32_t)piece.iov_len;
    write->offset_end = offset_end;
    if (list_empty(&log->ready)) list_append(&log->logs->ready, &log->ready);
}

static void write_submit(struct log_write *write);

static void write_finished(struct log_write *write)
{
    struct log *log = write->log;
    struct segment *segment = write->segment;
    struct log_directory *directory = log->directory;
    if (log->state == LOG_GONE) {
        write_put_back(log->logs, write);
        return;
    }
    assert(write->at_bytes == segment->written_bytes);
    segment->written_bytes += write->size_bytes;
    segment->written_end = write->offset_end;
    assert(segment->written_bytes <= segment->size_bytes);
    log->written = write->offset_end;
    if (list_empty(&segment->dirty)) {
        if (list_empty(&directory->dirty)) directory->dirty_since_ms = io_now_ms(log->logs->io);
        list_append(&directory->dirty, &segment->dirty);
    }
    if (log->commit_eager) directory->commit_wanted = true;
    write_put_back(log->logs, write);
    log_tell(log, LOG_EVENT_WRITTEN);
}

static void write_done(struct io_op *op)
{
    struct log_write *write = container_of(op, struct log_write, op);
    struct log *log = write->log;
    struct log_directory *directory = log->directory;
    log->logs->in_flight--;
    if (op->result >= 0) {
        assert((uint64_t)op->result == write->size_bytes);
        write_finished(write);
    } else if (disk_is_full(op->result) && directory->error == 0) {
        write->in_flight = false;
        log_directory_full(directory); /* It submits the same write again once there is room. */
        return;
    } else {
        write->in_flight = false;
        log_directory_fail(directory, op->result);
    }
    log_writes_submit(log);
}

static void write_submit(struct log_write *write)
{
    struct log *log = write->log;
    struct segment *segment = write->segment;
    int error = segment_file(segment, !segment->made);
    if (error == LOG_E_MEMORY || error == -EMFILE || error == -ENFILE || error == -ENOMEM) {
        if (list_empty(&log->ready)) list_append(&log->logs->ready, &log->ready);
        log->logs->retry = true; /* In the next turn: something will have been closed. */
        return;
    }
    if (disk_is_full(error)) {
        log_directory_full(log->directory);
        return;
    }
    if (error < 0) {
        log_directory_fail(log->directory, error);
        return;
    }
    if (!segment->made) log_names_dirty(log); /* Its name is made durable with its first bytes. */
    segment->made = true;
    write->file = segment->file;
    log_file_hold(write->file);
    write->in_flight = true;
    write->op.done = write_done;
    log->logs->in_flight++;
    io_write(log->logs->io, &write->op, write->file->file, write->iov, write->piece_count,
             write->at_bytes);
}

/* A segment gets its first byte when all of the one before it is durable, so a power cut can leave
 * no hole between two segments. */
static bool write_must_wait(const struct log_write *write)
{
    const struct log *log = write->log;
    if (write->segment->made) return false;
    uint32_t at = log_segment_floor(log, write->segment->base);
    assert(log->segments[at] == write->segment);
    return at > 0 && log->segments[at - 1]->durable_bytes < log->segments[at - 1]->size_bytes;
}

void log_writes_submit(struct log *log)
{
    list_remove(&log->ready);
    if (list_empty(&log->writes) || log->directory->error != 0) return;
    if (log->making || log->directory->ballast_busy) return; /* Who ends that submits. */
    if (!log->has_folder) {
        log_make_start(log);
        return;
    }
    struct log_write *write = container_of(log->writes.next, struct log_write, link);
    if (write->in_flight) return;
    if (write_must_wait(write)) {
        log->directory->commit_wanted = true; /* The commit's end submits. */
        return;
    }
    if (write->file != NULL) { /* A second try. */
        log_file_release(write->file);
        write->file = NULL;
    }
    write_submit(write);
}

void log_writes_drop(struct log *log)
{
    list_foreach (node, &log->writes) {
        struct log_write *write = container_of(node, struct log_write, link);
        if (!write->in_flight) write_put_back(log->logs, write);
    }
}
