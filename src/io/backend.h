/* backend.h - what an implementation of the seam provides; io.c forwards to it.
 *
 * posix.c and sim.c fill one table each. A backend's own struct begins with `struct io`. */
#pragma once

#include "io/io.h"

struct io_backend {
    int64_t (*now_ms)(struct io *io);
    int64_t (*now_us)(struct io *io);
    int64_t (*cpu_ns)(struct io *io);
    int64_t (*wall_ms)(struct io *io);
    uint64_t (*random)(struct io *io, enum io_random stream);
    uint32_t (*turn)(struct io *io, int64_t until_ms);
    /* Optional: else all writes complete in a later turn. */
    uint32_t (*writes_now)(struct io *io);
    void (*wake)(struct io *io);
    void (*submit)(struct io *io, struct io_op *op);
    void (*free)(struct io *io);

    int (*open)(struct io *io, const char *path, int flags, struct io_file **out);
    void (*close)(struct io *io, struct io_file *file);
    int (*stat)(struct io *io, const char *path, struct io_stat *out);
    int64_t (*size)(struct io *io, struct io_file *file);
    int64_t (*read)(struct io *io, struct io_file *file, void *out, size_t size, uint64_t offset);
    int64_t (
        *read_cached)(struct io *io, struct io_file *file, void *out, size_t size, uint64_t offset);
    size_t (*cached)(struct io *io, struct io_file *file, uint64_t offset, size_t size);
    int64_t (*write)(struct io *io,
                     struct io_file *file,
                     const void *bytes,
                     size_t size,
                     uint64_t offset);
    int (*truncate)(struct io *io, struct io_file *file, uint64_t size);
    int (*reserve)(struct io *io, struct io_file *file, uint64_t offset, uint64_t size);
    int (*sync)(struct io *io, struct io_file *file);
    int (*sync_dir)(struct io *io, const char *path);
    /* Optional: else one after the other. */
    int (*sync_all)(struct io *io, const struct io_sync *parts, uint32_t count);
    int (*rename)(struct io *io, const char *from, const char *to);
    int (*unlink)(struct io *io, const char *path);
    int (*mkdir)(struct io *io, const char *path);
    int (*rmdir)(struct io *io, const char *path);
    int (*space)(struct io *io, const char *path, struct io_space *out);
    int (*list)(struct io *io, const char *path, bool (*each)(void *, const char *), void *context);
    int (*lock)(struct io *io, const char *path, struct io_file **out);

    int (*listen)(struct io *io,
                  const struct io_address *address,
                  const struct io_accept_events *events,
                  void *context,
                  struct io_listener **out,
                  struct io_address *bound);
    void (*unlisten)(struct io *io, struct io_listener *listener);
    int (*connect)(struct io *io, const struct io_address *address, struct io_stream **out);
    void (*watch)(struct io *io,
                  struct io_stream *stream,
                  int want,
                  const struct io_stream_events *events,
                  void *context);
    void (*want)(struct io *io, struct io_stream *stream, int want);
    int64_t (*recv)(struct io *io, struct io_stream *stream, void *out, size_t size);
    int64_t (*send)(struct io *io,
                    struct io_stream *stream,
                    const struct iovec *iov,
                    uint32_t count,
                    bool more);
    int64_t (*send_file)(struct io *io,
                         struct io_stream *stream,
                         struct io_file *file,
                         uint64_t offset,
                         size_t size);
    void (*local)(struct io *io, struct io_stream *stream, struct io_address *out);
    void (*peer)(struct io *io, struct io_stream *stream, struct io_address *out);
    void (*close_stream)(struct io *io, struct io_stream *stream);
    void (*give_stream)(struct io *io, struct io_stream *stream);
    void (*take_stream)(struct io *io, struct io_stream *stream);
};

struct io {
    const struct io_backend *backend;
    struct mem *mem;
    struct io_tap *tap;      /* NULL: nobody looks on. */
    struct io_counts counts; /* `failures` is added to from any lane. */
};

/* A backend has set the result of an operation and is about to call `done`. */
void io_count_done(struct io *io, const struct io_op *op);
