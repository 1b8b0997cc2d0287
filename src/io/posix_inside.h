/* posix_inside.h - shared by posix*.c only. */
#pragma once

#include <pthread.h>

#include "io/backend.h"
#include "io/posix.h"

/* Sync lanes: one per log directory, told apart by the folder above a file's own. */
#define POSIX_SYNC_LANES 8u

/* From so many files on, one syncfs costs less than one fdatasync each (measured: 1,000 dirty files
 * 92 ms one by one, 2.7 ms by syncfs). */
#define POSIX_SYNCFS_FILES 8u

/* Threads of one io_disk_sync_all, the caller's among them: what waits at the same time shares a
 * commit of the filesystem, so more of them gain nothing. */
#define POSIX_SYNC_THREADS 4u

/* How long a listener rests that found no descriptor or memory for a connection. */
#define POSIX_MUTE_MS 100

/* Pieces of a vector that one system call takes; the rest goes with the next. */
#define POSIX_IOV_PART 64u

/* Neighbouring writes to one file that are made by one call. */
#define POSIX_WRITES_PER_CALL 64u

struct posix;

/* A thread that runs operations in the order they came. */
struct lane {
    struct posix *posix;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct list queue;
    bool started, stop;
    bool background; /* Runs at low priority. */
};

struct posix {
    struct io io;
    int epoll_fd, wake_fd;
    bool no_sync; /* Files need not outlast the process. */
    int64_t now_ms;
    int64_t wall_ahead_ms; /* Wall clock less now_ms; kept while true within a millisecond. */
    struct list submitted; /* Handed over at the next turn. */
    struct list done;      /* Completed here, to be delivered. */
    struct list graves;    /* Streams and listeners closed in this turn: freed at its end. */
    struct list unwatched; /* Streams that epoll could not take: told that they hang up. */
    struct list muted;     /* Listeners that could not accept for want of descriptors or memory, */
    int64_t unmute_ms;     /* until then. */
    pthread_mutex_t lock;  /* Guards `finished`. */
    struct list finished;  /* Completed by lanes. */
    struct lane work;
    struct lane sync[POSIX_SYNC_LANES];
    uint64_t random[IO_RANDOM_STREAMS][4];
};

struct io_file {
    int fd;
    uint32_t lane;      /* Which sync lane serves it. */
    uint32_t in_flight; /* Operations that hold it. Only the shard's thread counts. */
    bool closing;
};

/* What epoll's data points at: the kind tells which of the two follows. */
enum posix_watched { POSIX_WAKE, POSIX_STREAM, POSIX_LISTENER };

struct io_stream {
    enum posix_watched watched;
    int fd;
    struct list grave; /* On `unwatched` while it is open. */
    bool closed, registered;
    int want;
    const struct io_stream_events *events;
    void *context;
};

struct io_listener {
    enum posix_watched watched;
    int fd;
    struct list grave; /* On `muted` while it is open. */
    bool closed;
    const struct io_accept_events *events;
    void *context;
    char path[108]; /* Of a Unix socket, to unlink; else empty. */
};

void posix_lane_init(struct lane *lane, struct posix *posix, bool background);
void posix_lane_push(struct lane *lane, struct io_op *op); /* Starts the thread if need be. */
void posix_lane_stop(struct lane *lane);

extern const struct io_backend posix_backend;

/* posix_disk.c */
int posix_open(struct io *io, const char *path, int flags, struct io_file **out);
void posix_close(struct io *io, struct io_file *file);
void posix_file_put(struct io_file *file); /* Really close. */
int posix_stat(struct io *io, const char *path, struct io_stat *out);
int64_t posix_size(struct io *io, struct io_file *file);
int64_t posix_read(struct io *io, struct io_file *file, void *out, size_t size, uint64_t offset);
int64_t posix_read_cached(struct io *io,
                          struct io_file *file,
                          void *out,
                          size_t size,
                          uint64_t offset);
size_t posix_cached(struct io *io, struct io_file *file, uint64_t offset, size_t size);
int64_t posix_write(struct io *io,
                    struct io_file *file,
                    const void *bytes,
                    size_t size,
                    uint64_t offset);
int posix_truncate(struct io *io, struct io_file *file, uint64_t size);
int posix_reserve(struct io *io, struct io_file *file, uint64_t offset, uint64_t size);
int posix_sync(struct io *io, struct io_file *file);
int posix_sync_dir(struct io *io, const char *path);
int posix_sync_all(struct io *io, const struct io_sync *parts, uint32_t count);
/* A thread with a lane's stack that takes no signals. False: there is none to be had. */
bool posix_thread(pthread_t *thread, void *(*run)(void *), void *argument);
int posix_rename(struct io *io, const char *from, const char *to);
int posix_unlink(struct io *io, const char *path);
int posix_mkdir(struct io *io, const char *path);
int posix_rmdir(struct io *io, const char *path);
int posix_space(struct io *io, const char *path, struct io_space *out);
int posix_list(struct io *io, const char *path, bool (*each)(void *, const char *), void *context);
int posix_lock(struct io *io, const char *path, struct io_file **out);
/* 0 or -errno; `*done` bytes of it are written either way. */
int posix_writev_all(int fd,
                     const struct iovec *iov,
                     uint32_t count,
                     uint64_t offset,
                     int64_t *done);
/* Bytes read, fewer only at the end of the file; the second -EAGAIN when the page cache has not got
 * all of it. */
int64_t posix_readv(int fd, const struct iovec *iov, uint32_t count, uint64_t offset);
int64_t posix_readv_cached(int fd, const struct iovec *iov, uint32_t count, uint64_t offset);
int64_t posix_durable(struct io_file **files, uint32_t count);

/* posix_stream.c */
int posix_listen(struct io *io,
                 const struct io_address *address,
                 const struct io_accept_events *events,
                 void *context,
                 struct io_listener **out,
                 struct io_address *bound);
void posix_unlisten(struct io *io, struct io_listener *listener);
int posix_connect(struct io *io, const struct io_address *address, struct io_stream **out);
void posix_watch(struct io *io,
                 struct io_stream *stream,
                 int want,
                 const struct io_stream_events *events,
                 void *context);
void posix_want(struct io *io, struct io_stream *stream, int want);
int64_t posix_recv(struct io *io, struct io_stream *stream, void *out, size_t size);
int64_t posix_send(struct io *io,
                   struct io_stream *stream,
                   const struct iovec *iov,
                   uint32_t count,
                   bool more);
int64_t posix_send_file(struct io *io,
                        struct io_stream *stream,
                        struct io_file *file,
                        uint64_t offset,
                        size_t size);
void posix_local(struct io *io, struct io_stream *stream, struct io_address *out);
void posix_peer(struct io *io, struct io_stream *stream, struct io_address *out);
void posix_close_stream(struct io *io, struct io_stream *stream);
void posix_give_stream(struct io *io, struct io_stream *stream);
void posix_take_stream(struct io *io, struct io_stream *stream);
void posix_accept_ready(struct posix *p, struct io_listener *listener);
void posix_unmute(struct posix *p); /* Listen again where it was given up for a while. */
uint32_t posix_hang_up_unwatched(struct posix *p);
void posix_bury(struct posix *p);
