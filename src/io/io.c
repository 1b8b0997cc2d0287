/* io.c - the public face of the seam: forwards to the backend chosen at start. */
#include "io/backend.h"

#include <errno.h>

#include "base/bytes.h"

#define TAP_READ_BYTES 32768u

/* ---- counting -------------------------------------------------------------------------------- */

/* Whether the world failed; else it has only answered. */
static bool is_failure(int64_t result)
{
    if (result >= 0) return false;
    switch (-result) {
    case ENOENT:
    case EEXIST:
    case ENOTDIR:
    case EISDIR:
    case ENOTEMPTY:
    case ENAMETOOLONG:
    case EAGAIN:
    case EINVAL: return false;
    default: return true;
    }
}

static int64_t counted(struct io *io, int64_t result)
{
    if (UNLIKELY(is_failure(result))) __atomic_fetch_add(&io->counts.failures, 1, __ATOMIC_RELAXED);
    return result;
}

void io_count_done(struct io *io, const struct io_op *op)
{
    struct io_counts *counts = &io->counts;
    uint64_t bytes = op->result > 0 ? (uint64_t)op->result : 0;
    switch ((enum io_kind)op->kind) {
    case IO_WRITE: counts->writes++, counts->write_bytes += bytes; break;
    case IO_READ: counts->reads++, counts->read_bytes += bytes; break;
    case IO_DURABLE: counts->commits++, counts->commit_files += op->durable.file_count; break;
    case IO_JOB: counts->jobs++; return; /* Its result is its own; its calls were counted. */
    }
    (void)counted(io, op->result);
}

struct io_counts io_counts(struct io *io)
{
    struct io_counts counts = io->counts;
    counts.failures = __atomic_load_n(&io->counts.failures, __ATOMIC_RELAXED);
    return counts;
}

/* ---- forwarding ------------------------------------------------------------------------------ */

int64_t io_now_ms(struct io *io)
{
    return io->backend->now_ms(io);
}

int64_t io_now_us(struct io *io)
{
    return io->backend->now_us(io);
}

int64_t io_cpu_ns(struct io *io)
{
    return io->backend->cpu_ns(io);
}

int64_t io_wall_ms(struct io *io)
{
    return io->backend->wall_ms(io);
}

uint64_t io_random(struct io *io, enum io_random stream)
{
    assert(stream < IO_RANDOM_STREAMS);
    return io->backend->random(io, stream);
}

struct uuid io_random_uuid(struct io *io)
{
    struct uuid id;
    do {
        uint64_t high = io_random(io, IO_RANDOM_IDS), low = io_random(io, IO_RANDOM_IDS);
        store_be64(id.bytes, high);
        store_be64(id.bytes + 8, low);
        id.bytes[6] = (uint8_t)((id.bytes[6] & 0x0f) | 0x40); /* Version 4, */
        id.bytes[8] = (uint8_t)((id.bytes[8] & 0x3f) | 0x80); /* variant 1. */
    } while (id.bytes[0] >> 2 == 62); /* '-' in base64url: an option to a command line. */
    return id;
}

struct mem *io_mem(struct io *io)
{
    return io->mem;
}

uint32_t io_turn(struct io *io, int64_t until_ms)
{
    return io->backend->turn(io, until_ms);
}

uint32_t io_writes_now(struct io *io)
{
    return io->backend->writes_now == NULL ? 0 : io->backend->writes_now(io);
}

void io_wake(struct io *io)
{
    io->backend->wake(io);
}

void io_free(struct io *io)
{
    if (io != NULL) io->backend->free(io);
}

static void io_submit(struct io *io, struct io_op *op, enum io_kind kind)
{
    assert(op->done != NULL);
    assert(!op->in_flight);
    op->kind = (uint8_t)kind;
    op->in_flight = true;
    op->result = 0;
    io->backend->submit(io, op);
}

void io_write(struct io *io,
              struct io_op *op,
              struct io_file *file,
              const struct iovec *iov,
              uint32_t iov_count,
              uint64_t offset)
{
    op->rw = (struct io_rw){file, iov, iov_count, offset};
    io_submit(io, op, IO_WRITE);
}

void io_read(struct io *io,
             struct io_op *op,
             struct io_file *file,
             const struct iovec *iov,
             uint32_t iov_count,
             uint64_t offset)
{
    op->rw = (struct io_rw){file, iov, iov_count, offset};
    io_submit(io, op, IO_READ);
}

void io_durable(struct io *io, struct io_op *op, struct io_file **files, uint32_t file_count)
{
    assert(file_count > 0);
    op->durable.files = files;
    op->durable.file_count = file_count;
    io_submit(io, op, IO_DURABLE);
}

void io_job(struct io *io,
            struct io_op *op,
            int64_t (*run)(struct io *io, void *argument),
            void *argument)
{
    op->job.run = run;
    op->job.argument = argument;
    io_submit(io, op, IO_JOB);
}

int io_disk_open(struct io *io, const char *path, int flags, struct io_file **out)
{
    return (int)counted(io, io->backend->open(io, path, flags, out));
}

int io_disk_stat(struct io *io, const char *path, struct io_stat *out)
{
    return (int)counted(io, io->backend->stat(io, path, out));
}

int64_t io_disk_size(struct io *io, struct io_file *file)
{
    return counted(io, io->backend->size(io, file));
}

int64_t io_disk_read(struct io *io, struct io_file *file, void *out, size_t size, uint64_t offset)
{
    return counted(io, io->backend->read(io, file, out, size, offset));
}

int64_t io_disk_read_cached(struct io *io,
                            struct io_file *file,
                            void *out,
                            size_t size,
                            uint64_t offset)
{
    return counted(io, io->backend->read_cached(io, file, out, size, offset));
}

size_t io_disk_cached(struct io *io, struct io_file *file, uint64_t offset, size_t size)
{
    return io->backend->cached(io, file, offset, MIN(size, (size_t)IO_PROBE_BYTES));
}

int64_t io_disk_write(struct io *io,
                      struct io_file *file,
                      const void *bytes,
                      size_t size,
                      uint64_t offset)
{
    return counted(io, io->backend->write(io, file, bytes, size, offset));
}

int io_disk_truncate(struct io *io, struct io_file *file, uint64_t size)
{
    return (int)counted(io, io->backend->truncate(io, file, size));
}

int io_disk_reserve(struct io *io, struct io_file *file, uint64_t offset, uint64_t size)
{
    return (int)counted(io, io->backend->reserve(io, file, offset, size));
}

int io_disk_sync(struct io *io, struct io_file *file)
{
    return (int)counted(io, io->backend->sync(io, file));
}

int io_disk_sync_dir(struct io *io, const char *path)
{
    return (int)counted(io, io->backend->sync_dir(io, path));
}

/* In the order given; a failure does not keep the others from being synced. */
static int sync_in_turn(struct io *io, const struct io_sync *parts, uint32_t count)
{
    int result = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct io_sync *part = &parts[i];
        int error = part->file != NULL ? io->backend->sync(io, part->file)
                                       : io->backend->sync_dir(io, part->folder);
        if (error == -ENOENT && part->gone_ok) error = 0;
        if (result == 0) result = error;
    }
    return result;
}

int io_disk_sync_all(struct io *io, const struct io_sync *parts, uint32_t count)
{
    int (*all)(struct io *, const struct io_sync *, uint32_t) = io->backend->sync_all;
    return (int)counted(io, all != NULL && count > 1 ? all(io, parts, count)
                                                     : sync_in_turn(io, parts, count));
}

int io_disk_rename(struct io *io, const char *from, const char *to)
{
    return (int)counted(io, io->backend->rename(io, from, to));
}

int io_disk_unlink(struct io *io, const char *path)
{
    return (int)counted(io, io->backend->unlink(io, path));
}

int io_disk_mkdir(struct io *io, const char *path)
{
    return (int)counted(io, io->backend->mkdir(io, path));
}

int io_disk_rmdir(struct io *io, const char *path)
{
    return (int)counted(io, io->backend->rmdir(io, path));
}

int io_disk_space(struct io *io, const char *path, struct io_space *out)
{
    return (int)counted(io, io->backend->space(io, path, out));
}

int io_disk_list(struct io *io,
                 const char *path,
                 bool (*each)(void *context, const char *name),
                 void *context)
{
    return (int)counted(io, io->backend->list(io, path, each, context));
}

int io_disk_lock(struct io *io, const char *path, struct io_file **out)
{
    return (int)counted(io, io->backend->lock(io, path, out));
}

int io_listen(struct io *io,
              const struct io_address *address,
              const struct io_accept_events *events,
              void *context,
              struct io_listener **out,
              struct io_address *bound)
{
    return (int)counted(io, io->backend->listen(io, address, events, context, out, bound));
}

int io_connect(struct io *io, const struct io_address *address, struct io_stream **out)
{
    return (int)counted(io, io->backend->connect(io, address, out));
}

void io_set_tap(struct io *io, struct io_tap *tap)
{
    io->tap = tap;
}

/* Show the first `sent` bytes of these. */
static void tap_sent(struct io *io, struct io_stream *stream, const struct iovec *iov, int64_t sent)
{
    for (; sent > 0; iov++) {
        size_t part = MIN((size_t)sent, iov->iov_len);
        io->tap->bytes(io->tap, stream, false, view_of(iov->iov_base, (uint32_t)part));
        sent -= (int64_t)part;
    }
}

/* They are in the page cache, as they went from there. */
static void tap_sent_file(struct io *io,
                          struct io_stream *stream,
                          struct io_file *file,
                          uint64_t offset,
                          int64_t sent)
{
    uint8_t bytes[TAP_READ_BYTES];
    while (sent > 0) {
        size_t part = MIN((size_t)sent, sizeof(bytes));
        int64_t got = io_disk_read(io, file, bytes, part, offset);
        if (got <= 0) return; /* The gap shows in the sequence numbers. */
        io->tap->bytes(io->tap, stream, false, view_of(bytes, (uint32_t)got));
        offset += (uint64_t)got;
        sent -= got;
    }
}

int64_t io_stream_recv(struct io *io, struct io_stream *stream, void *out, size_t size)
{
    int64_t got = io->backend->recv(io, stream, out, size);
    if (UNLIKELY(io->tap != NULL) && got > 0)
        io->tap->bytes(io->tap, stream, true, view_of(out, (uint32_t)got));
    return got;
}

int64_t io_stream_send(struct io *io,
                       struct io_stream *stream,
                       const struct iovec *iov,
                       uint32_t iov_count,
                       bool more)
{
    int64_t sent = io->backend->send(io, stream, iov, iov_count, more);
    if (UNLIKELY(io->tap != NULL)) tap_sent(io, stream, iov, sent);
    return sent;
}

int64_t io_stream_send_file(struct io *io,
                            struct io_stream *stream,
                            struct io_file *file,
                            uint64_t offset,
                            size_t size)
{
    int64_t sent = io->backend->send_file(io, stream, file, offset, size);
    if (UNLIKELY(io->tap != NULL)) tap_sent_file(io, stream, file, offset, sent);
    return sent;
}

void io_disk_close(struct io *io, struct io_file *file)
{
    if (file == NULL) return;
    io->backend->close(io, file);
}

void io_unlisten(struct io *io, struct io_listener *listener)
{
    io->backend->unlisten(io, listener);
}

void io_stream_watch(struct io *io,
                     struct io_stream *stream,
                     int want,
                     const struct io_stream_events *events,
                     void *context)
{
    io->backend->watch(io, stream, want, events, context);
}

void io_stream_want(struct io *io, struct io_stream *stream, int want)
{
    io->backend->want(io, stream, want);
}

void io_stream_local(struct io *io, struct io_stream *stream, struct io_address *out)
{
    io->backend->local(io, stream, out);
}

void io_stream_peer(struct io *io, struct io_stream *stream, struct io_address *out)
{
    io->backend->peer(io, stream, out);
}

void io_stream_close(struct io *io, struct io_stream *stream)
{
    if (UNLIKELY(io->tap != NULL)) io->tap->closed(io->tap, stream);
    io->backend->close_stream(io, stream);
}

void io_stream_give(struct io *io, struct io_stream *stream)
{
    io->backend->give_stream(io, stream);
}

void io_stream_take(struct io *io, struct io_stream *stream)
{
    io->backend->take_stream(io, stream);
}
