/* io.h - the seam: everything that a shard may ask of the world, and nothing else touches it.
 *
 * One `struct io` per shard; posix.c (real files, sockets, clocks) and sim.c (a simulated world,
 * from one seed) implement it and are chosen at start. Three kinds of calls:
 *
 *   plain      clocks, random numbers, directory work and io_disk_* calls: return at once with the
 *              result. The io_disk_* calls may block: only inside a job, before serving, or where
 *              the comment says that the shard may.
 *   submitted  reads, writes, *make durable*, jobs: the caller embeds a `struct io_op`, sets
 *              `done`, and submits; `done` is called in a later io_turn or in io_writes_now, never
 *              inside the submission. Completions may come late and in any order across files;
 *              writes to one file complete in order. A buffer given belongs to the seam until then.
 *   streams    byte streams: listeners, connections. Readiness is told by a callback; recv and send
 *              never block; send may take less than asked.
 *
 * Errors are -errno as they came from the world, here and nowhere else first seen; every failed
 * call is counted. In the simulator any call may fail, complete late, or be cut by a crash.
 *
 * Thread: a handle belongs to its shard's thread. A job runs elsewhere and may use io_disk_*, the
 * wall clock, and its own memory; nothing of the shard. */
#pragma once

#include <sys/uio.h>

#include "base/bytes.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/view.h"

struct io;        /* One shard's handle on the world. */
struct io_file;   /* An open file. */
struct io_stream; /* A connected byte stream. */
struct io_listener;

/* ---- time, randomness, memory ---------------------------------------------------------------- */

int64_t io_now_ms(struct io *io);  /* Monotonic, as read when this turn began. */
int64_t io_now_us(struct io *io);  /* Monotonic, read anew: for measuring. */
int64_t io_cpu_ns(struct io *io);  /* Processor time of this thread so far; in the simulator each
                                      look costs SIM_CPU_LOOK_NS. */
int64_t io_wall_ms(struct io *io); /* Wall clock, as read when this turn began, at most 1 ms behind;
                                      may jump, but keeps step with io_now_ms between jumps. */

/* Named streams, so that one more draw in one place does not change all others in a replay. */
enum io_random {
    IO_RANDOM_IDS,
    IO_RANDOM_HASH,
    IO_RANDOM_JITTER,
    IO_RANDOM_SESSION,
    IO_RANDOM_STREAMS
};
uint64_t io_random(struct io *io, enum io_random stream);
struct uuid io_random_uuid(
    struct io *io); /* Version 4, never with a leading '-' in base64, as Kafka. */

struct mem *io_mem(struct io *io); /* The node's counted memory. */

/* What a handle has done so far; jobs' calls included. Counted when they end. */
struct io_counts {
    uint64_t writes, write_bytes; /* Submitted writes. */
    uint64_t reads, read_bytes;   /* Submitted reads. */
    uint64_t commits;             /* *Make durable*, */
    uint64_t commit_files;        /* of so many files. */
    uint64_t jobs;
    uint64_t failures; /* Calls and operations that failed for the world's reasons: EIO, ENOSPC, ...
                          not ENOENT, EEXIST, EAGAIN and the like, which are answers. */
};
struct io_counts io_counts(struct io *io);

/* Stop the lanes, wait for what they are doing, and free the handle. Files and streams must be
 * closed. */
void io_free(struct io *io);

/* ---- the turn -------------------------------------------------------------------------------- */

/* Hand over what was submitted, then deliver what has completed and what is ready. Waits for the
 * first of these until `until_ms` (monotonic; INT64_MAX: for ever; a time passed: does not wait; in
 * the simulator: never waits, the time is when the node wants to be called again). Returns the
 * number of callbacks made. */
uint32_t io_turn(struct io *io, int64_t until_ms);

/* Make the writes that were submitted so far, where that does not block, and deliver them: what
 * waits for a write need not wait for a turn. Outside io_turn only. Returns the number of callbacks
 * made; what these submit waits for the next turn. In the simulator every write takes its time:
 * none is made. */
uint32_t io_writes_now(struct io *io);

/* Wake the handle's io_turn from another thread. Async-signal-safe. */
void io_wake(struct io *io);

/* ---- submitted operations -------------------------------------------------------------------- */

enum io_kind { IO_WRITE, IO_READ, IO_DURABLE, IO_JOB };

struct io_op {
    struct list link;               /* The seam's, while it is in flight. */
    void (*done)(struct io_op *op); /* Called once, as said above. May submit again. */
    int64_t result;                 /* Bytes, or 0, or -errno. Set before `done`. */
    uint8_t kind;                   /* enum io_kind; set by the submission. */
    bool in_flight;                 /* The op and its buffers belong to the seam. */
    union {
        struct io_rw {
            struct io_file *file;
            const struct iovec *iov; /* Borrowed until done, as are the bytes behind it. */
            uint32_t iov_count;
            uint64_t offset;
        } rw;
        struct {
            struct io_file **files; /* Borrowed until done. */
            uint32_t file_count;
        } durable;
        struct {
            int64_t (*run)(struct io *io, void *argument); /* Its value becomes `result`. */
            void *argument;
        } job;
    };
};

/* Write all bytes at `offset`. Done with the number of bytes (all of them) or -errno: then any
 * prefix may have been written. Writes to one file reach it in the order of submission. */
void io_write(struct io *io,
              struct io_op *op,
              struct io_file *file,
              const struct iovec *iov,
              uint32_t iov_count,
              uint64_t offset);

/* Read up to the iov's bytes at `offset`; fewer at the end of the file. */
void io_read(struct io *io,
             struct io_op *op,
             struct io_file *file,
             const struct iovec *iov,
             uint32_t iov_count,
             uint64_t offset);

/* Make durable all bytes whose write was *done* before this submission, and the files' sizes. A few
 * files are synced side by side, many by syncfs; all files must be in one log directory. Done with
 * 0, or with -errno of the first failure: then nothing may be believed about any of them, for good.
 */
void io_durable(struct io *io, struct io_op *op, struct io_file **files, uint32_t file_count);

/* Run `run(io, argument)` in the work lane. It may block, uses only io_disk_* and what `argument`
 * holds. */
void io_job(struct io *io,
            struct io_op *op,
            int64_t (*run)(struct io *io, void *argument),
            void *argument);

/* ---- files: plain calls ---------------------------------------------------------------------- */

enum io_open_flags {
    IO_OPEN_READ = 0,
    IO_OPEN_WRITE = 1,     /* Read and write. */
    IO_OPEN_CREATE = 2,    /* If it is not there. The name is durable after io_disk_sync_dir. */
    IO_OPEN_EXCLUSIVE = 4, /* With CREATE: it must not be there (-EEXIST). */
    IO_OPEN_TRUNCATE = 8,
};

struct io_stat {
    uint64_t size_bytes;
    int64_t modified_wall_ms;
    bool is_directory;
};

/* Paths are absolute, or relative to the node's working directory. The shard itself may call open,
 * close, stat, and create a file; all else below is for jobs and for the time before serving. */
int io_disk_open(struct io *io, const char *path, int flags, struct io_file **out);
void io_disk_close(struct io *io,
                   struct io_file *file); /* Deferred until its ops are done. NULL: nothing. */
int io_disk_stat(struct io *io, const char *path, struct io_stat *out);
int64_t io_disk_size(struct io *io, struct io_file *file);
int64_t io_disk_read(struct io *io, struct io_file *file, void *out, size_t size, uint64_t offset);
int64_t io_disk_write(struct io *io,
                      struct io_file *file,
                      const void *bytes,
                      size_t size,
                      uint64_t offset);
int io_disk_truncate(struct io *io, struct io_file *file, uint64_t size);
int io_disk_reserve(struct io *io,
                    struct io_file *file,
                    uint64_t offset,
                    uint64_t size); /* fallocate, KEEP_SIZE. */
int io_disk_sync(struct io *io, struct io_file *file);
int io_disk_sync_dir(struct io *io, const char *path);

/* What is to be durable: a file's bytes, or the names in a directory. */
struct io_sync {
    struct io_file *file; /* NULL: the names in `folder`. */
    const char *folder;
    bool gone_ok; /* A folder that is not there any more needs nothing. */
};
/* As io_disk_sync and io_disk_sync_dir one after the other, but side by side, for the price of the
 * longest: what is asked for together shares a commit of the filesystem and a flush of the device.
 * In no order: who needs one asks twice. 0, or -errno of one that failed: then nothing may be
 * believed about any. */
int io_disk_sync_all(struct io *io, const struct io_sync *parts, uint32_t count);
int io_disk_rename(struct io *io, const char *from, const char *to);
int io_disk_unlink(struct io *io, const char *path);
int io_disk_mkdir(struct io *io, const char *path); /* -EEXIST if there. */
int io_disk_rmdir(struct io *io, const char *path);
/* Of the filesystem that `path` lies on. 0 or -errno. */
struct io_space {
    uint64_t total_bytes;
    uint64_t free_bytes; /* For who is not root. */
};
int io_disk_space(struct io *io, const char *path, struct io_space *out);

/* Names in a directory, sorted, without "." and "..": calls `each` for every one until it returns
 * false. */
int io_disk_list(struct io *io,
                 const char *path,
                 bool (*each)(void *context, const char *name),
                 void *context);

/* Lock `path` (created if needed) against other processes until the file is closed; -EWOULDBLOCK if
 * another holds it. */
int io_disk_lock(struct io *io, const char *path, struct io_file **out);

/* Read without waiting for the device: bytes read (fewer than asked only at the end of the file),
 * or -EAGAIN when the page cache has not got all of them. The shard may. */
int64_t io_disk_read_cached(struct io *io,
                            struct io_file *file,
                            void *out,
                            size_t size,
                            uint64_t offset);

/* How many bytes from `offset` on, at most `size` and IO_PROBE_BYTES, are in the page cache: a send
 * of these does not wait for the device. 0 also if nobody can tell. Never waits. */
#define IO_PROBE_BYTES (1024u * 1024u)
size_t io_disk_cached(struct io *io, struct io_file *file, uint64_t offset, size_t size);

/* ---- byte streams ---------------------------------------------------------------------------- */

struct io_address {
    char host[64]; /* Numeric, as printed: "127.0.0.1", "::1"; or the path of a Unix socket. */
    uint16_t port; /* 0: a Unix socket, or, to listen, any free port. */
};

enum io_ready { IO_READABLE = 1, IO_WRITABLE = 2, IO_HANGUP = 4 };

struct io_stream_events {
    void (*ready)(void *context, struct io_stream *stream, int ready); /* Set of enum io_ready. */
};

/* Of one listener in one io_turn; when it is fewer, these were all that waited. */
#define IO_ACCEPTS_PER_TURN 64u

struct io_accept_events {
    /* A new connection, taken by the callee, who sets its events with io_stream_watch: what it has
     * sent by now is told in the next io_turn. */
    void (*accepted)(void *context, struct io_stream *stream, const struct io_address *peer);
};

/* Listen; `bound` tells the real port. -EADDRINUSE and the like as they come. */
int io_listen(struct io *io,
              const struct io_address *address,
              const struct io_accept_events *events,
              void *context,
              struct io_listener **out,
              struct io_address *bound);
void io_unlisten(struct io *io, struct io_listener *listener);

/* Begin to connect; the stream is writable when it is there, hangs up when it failed. */
int io_connect(struct io *io, const struct io_address *address, struct io_stream **out);

/* Ask to be told: `want` is a set of IO_READABLE and IO_WRITABLE; hang-up is always told.
 * Level-triggered: told again in the next turn while it holds. 0 mutes the stream. */
void io_stream_watch(struct io *io,
                     struct io_stream *stream,
                     int want,
                     const struct io_stream_events *events,
                     void *context);
void io_stream_want(struct io *io, struct io_stream *stream, int want);

/* Bytes received into `out`: all that have arrived, or `size` of them; 0: the peer has closed its
 * side; -EAGAIN: nothing now; other -errno: broken. */
int64_t io_stream_recv(struct io *io, struct io_stream *stream, void *out, size_t size);

/* Bytes taken (they are copied or sent: the caller's again at return); -EAGAIN: none now. `more`:
 * more follows at once (MSG_MORE). */
int64_t io_stream_send(struct io *io,
                       struct io_stream *stream,
                       const struct iovec *iov,
                       uint32_t iov_count,
                       bool more);

/* A range of a file, from the page cache to the stream. */
int64_t io_stream_send_file(struct io *io,
                            struct io_stream *stream,
                            struct io_file *file,
                            uint64_t offset,
                            size_t size);

/* Somebody who is shown every byte of every stream of a handle as it passes (`dohle start --tap`):
 * what was received, what was sent (bytes of files are read again for it), and the end. Called on
 * the handle's thread, within the call that moved the bytes; a view lives for the call. */
struct io_tap {
    void (*bytes)(struct io_tap *tap, struct io_stream *stream, bool received, struct view bytes);
    void (*closed)(struct io_tap *tap, struct io_stream *stream);
};

/* Borrowed until the handle is freed or NULL is set. */
void io_set_tap(struct io *io, struct io_tap *tap);

/* The address by which the peer reached us, and the peer's. */
void io_stream_local(struct io *io, struct io_stream *stream, struct io_address *out);
void io_stream_peer(struct io *io, struct io_stream *stream, struct io_address *out);

void io_stream_close(struct io *io, struct io_stream *stream); /* No callback follows. */

/* Let go of a stream that nobody has watched yet (a new connection), so that another handle of the
 * same process can take it: io_stream_give() on the one's thread, then io_stream_take() on the
 * other's, who sets its events. In between it may only be taken. */
void io_stream_give(struct io *io, struct io_stream *stream);
void io_stream_take(struct io *io, struct io_stream *stream);
