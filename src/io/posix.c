/* posix.c - one shard's turn over epoll, and its lanes.
 *
 * Writes are made by the shard itself, when it asks for them or at the start of a turn, in the
 * order of submission: into the page cache they do not block. Reads are tried without waiting and
 * go to the work lane when the page cache has not got them. *Make durable* goes to the sync lane of
 * its log directory, jobs to the work lane. Lanes hand back through a locked list and an eventfd.
 * This file and its sisters are the only ones that make system calls (console and cli excepted). */
#include "io/posix_inside.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define POSIX_EVENTS_PER_TURN 256

/* A job may run a decompressor or sort a directory; sanitizers widen every frame. */
#define POSIX_LANE_STACK_BYTES (1024 * 1024)

static struct posix *posix_of(struct io *io)
{
    return container_of(io, struct posix, io);
}

/* ---- clocks and randomness ------------------------------------------------------------------- */

static int64_t clock_us(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* The two clocks' milliseconds do not begin together: read apart, their distance would flicker by
 * one and with it every wall time that is reckoned from a monotonic one. So the distance is kept
 * until it is wrong by more, or would lead; nor is it taken from readings between which this thread
 * did not run. */
static void posix_clocks(struct posix *p)
{
    p->now_ms = clock_us(CLOCK_MONOTONIC) / 1000;
    int64_t behind_ms = clock_us(CLOCK_REALTIME) / 1000 - p->now_ms - p->wall_ahead_ms;
    if (behind_ms == 0 || behind_ms == 1) return;
    bool together = clock_us(CLOCK_MONOTONIC) / 1000 == p->now_ms;
    if (together || p->wall_ahead_ms == 0) p->wall_ahead_ms += behind_ms;
}

static int64_t posix_now_ms(struct io *io)
{
    return posix_of(io)->now_ms;
}

static int64_t posix_now_us(struct io *io)
{
    (void)io;
    return clock_us(CLOCK_MONOTONIC);
}

static int64_t posix_cpu_ns(struct io *io)
{
    struct timespec t;
    (void)io;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t posix_wall_ms(struct io *io)
{
    return posix_of(io)->now_ms + posix_of(io)->wall_ahead_ms;
}

static uint64_t rotate(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

/* xoshiro256**, seeded from the kernel. Ids and hash seeds only; keys and salts come from OpenSSL.
 */
static uint64_t posix_random(struct io *io, enum io_random stream)
{
    uint64_t *s = posix_of(io)->random[stream];
    uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

void posix_lane_init(struct lane *lane, struct posix *posix, bool background)
{
    *lane = (struct lane){.posix = posix, .background = background};
    list_init(&lane->queue);
    pthread_mutex_init(&lane->lock, NULL);
    pthread_cond_init(&lane->more, NULL);
}

static void posix_wake(struct io *io)
{
    uint64_t one = 1;
    ssize_t written = write(posix_of(io)->wake_fd, &one, sizeof(one));
    (void)written; /* It can only fail when the counter is full: then a wake-up is pending. */
}

static void lane_finish(struct posix *p, struct io_op *op)
{
    pthread_mutex_lock(&p->lock);
    list_append(&p->finished, &op->link);
    pthread_mutex_unlock(&p->lock);
    posix_wake(&p->io);
}

static void lane_run(struct posix *p, struct io_op *op)
{
    switch ((enum io_kind)op->kind) {
    case IO_READ:
        op->result = posix_readv(op->rw.file->fd, op->rw.iov, op->rw.iov_count, op->rw.offset);
        break;
    case IO_DURABLE: op->result = posix_durable(op->durable.files, op->durable.file_count); break;
    case IO_JOB: op->result = op->job.run(&p->io, op->job.argument); break;
    case IO_WRITE: assert(false);
    }
    lane_finish(p, op);
}

static void *lane_main(void *argument)
{
    struct lane *lane = argument;
    if (lane->background) setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 10);
    for (;;) {
        pthread_mutex_lock(&lane->lock);
        while (list_empty(&lane->queue) && !lane->stop)
            pthread_cond_wait(&lane->more, &lane->lock);
        struct list *node = list_pop(&lane->queue);
        pthread_mutex_unlock(&lane->lock);
        if (node == NULL) return NULL;
        lane_run(lane->posix, container_of(node, struct io_op, link));
    }
}

bool posix_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, POSIX_LANE_STACK_BYTES);
    sigset_t all, before; /* Signals are for the threads that the program itself started. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(thread, &attributes, run, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

void posix_lane_push(struct lane *lane, struct io_op *op)
{
    pthread_mutex_lock(&lane->lock);
    list_append(&lane->queue, &op->link);
    pthread_cond_signal(&lane->more);
    pthread_mutex_unlock(&lane->lock);
    if (lane->started) return;

    lane->started = posix_thread(&lane->thread, lane_main, lane);
    if (!lane->started) { /* No thread to be had: the shard does it itself, slowly. */
        list_remove(&op->link);
        lane_run(lane->posix, op);
    }
}

void posix_lane_stop(struct lane *lane)
{
    if (lane->started) {
        pthread_mutex_lock(&lane->lock);
        lane->stop = true;
        pthread_cond_signal(&lane->more);
        pthread_mutex_unlock(&lane->lock);
        pthread_join(lane->thread, NULL);
    }
    pthread_cond_destroy(&lane->more);
    pthread_mutex_destroy(&lane->lock);
}

/* ---- submissions and completions ------------------------------------------------------------- */

static void op_hold(struct io_op *op, int by)
{
    if (op->kind == IO_WRITE || op->kind == IO_READ) {
        op->rw.file->in_flight += (uint32_t)by;
        if (op->rw.file->in_flight == 0 && op->rw.file->closing) posix_file_put(op->rw.file);
    } else if (op->kind == IO_DURABLE) {
        for (uint32_t i = 0; i < op->durable.file_count; i++) {
            struct io_file *file = op->durable.files[i];
            file->in_flight += (uint32_t)by;
            if (file->in_flight == 0 && file->closing) posix_file_put(file);
        }
    }
}

static void posix_submit(struct io *io, struct io_op *op)
{
    op_hold(op, 1);
    list_append(&posix_of(io)->submitted, &op->link);
}

static uint64_t write_size(const struct io_op *op)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < op->rw.iov_count; i++)
        size += op->rw.iov[i].iov_len;
    return size;
}

/* The op that follows `last` in the queue, if it is a write that continues it in the file. */
static struct io_op *write_neighbour(struct posix *p, const struct io_op *last, uint64_t end)
{
    if (list_empty(&p->submitted)) return NULL;
    struct io_op *next = container_of(p->submitted.next, struct io_op, link);
    bool joins = next->kind == IO_WRITE && next->rw.file == last->rw.file && next->rw.offset == end;
    return joins ? next : NULL;
}

/* Make a write, and with it those behind it that continue where it ends. When the call fails
 * midway, those written in full are done, all others failed: no hole is left between them. */
static void hand_over_writes(struct posix *p, struct io_op *first)
{
    struct io_op *ops[POSIX_WRITES_PER_CALL] = {first};
    struct iovec iov[POSIX_WRITES_PER_CALL];
    uint32_t op_count = 0, iov_count = 0;
    uint64_t end = first->rw.offset;
    struct io_op *next = first;
    if (first->rw.iov_count <= ARRAY_SIZE(iov)) {
        do {
            if (next != first) list_remove(&next->link);
            memcpy(&iov[iov_count], next->rw.iov, next->rw.iov_count * sizeof(*iov));
            iov_count += next->rw.iov_count;
            ops[op_count++] = next;
            end += write_size(next);
            next = write_neighbour(p, next, end);
        } while (next != NULL && op_count < ARRAY_SIZE(ops) &&
                 iov_count + next->rw.iov_count <= ARRAY_SIZE(iov));
    }
    int64_t done;
    int result = op_count == 0 ? posix_writev_all(first->rw.file->fd, first->rw.iov,
                                                  first->rw.iov_count, first->rw.offset, &done)
                               : posix_writev_all(first->rw.file->fd, iov, iov_count,
                                                  first->rw.offset, &done);
    for (uint32_t i = 0; i < MAX(op_count, 1u); i++) {
        int64_t size = (int64_t)write_size(ops[i]);
        ops[i]->result = size <= done ? size : result;
        done = MAX(done - size, 0);
        list_append(&p->done, &ops[i]->link);
    }
}

static void hand_over(struct posix *p, struct io_op *op)
{
    switch ((enum io_kind)op->kind) {
    case IO_WRITE: hand_over_writes(p, op); break;
    case IO_READ:
        op->result =
            posix_readv_cached(op->rw.file->fd, op->rw.iov, op->rw.iov_count, op->rw.offset);
        if (op->result == -EAGAIN)
            posix_lane_push(&p->work, op);
        else
            list_append(&p->done, &op->link);
        break;
    case IO_DURABLE:
        op->result = 0;
        if (p->no_sync)
            list_append(&p->done, &op->link);
        else
            posix_lane_push(&p->sync[op->durable.files[0]->lane], op);
        break;
    case IO_JOB: posix_lane_push(&p->work, op); break;
    }
}

static void hand_over_all(struct posix *p)
{
    struct list *node;
    while ((node = list_pop(&p->submitted)) != NULL)
        hand_over(p, container_of(node, struct io_op, link));
}

static void collect_finished(struct posix *p)
{
    uint64_t count;
    ssize_t got = read(p->wake_fd, &count, sizeof(count));
    (void)got;
    pthread_mutex_lock(&p->lock);
    struct list *node;
    while ((node = list_pop(&p->finished)) != NULL)
        list_append(&p->done, node);
    pthread_mutex_unlock(&p->lock);
}

/* Only what is there now: what a callback submits waits for the next turn. */
static uint32_t deliver(struct posix *p)
{
    struct list batch;
    list_init(&batch);
    struct list *node;
    while ((node = list_pop(&p->done)) != NULL)
        list_append(&batch, node);
    uint32_t count = 0;
    while ((node = list_pop(&batch)) != NULL) {
        struct io_op *op = container_of(node, struct io_op, link);
        op->in_flight = false;
        io_count_done(&p->io, op);
        op_hold(op, -1);
        count++;
        op->done(op);
    }
    return count;
}

static uint32_t posix_writes_now(struct io *io)
{
    struct posix *p = posix_of(io);
    assert(list_empty(&p->done)); /* A turn delivers all that it has. */
    struct list others;
    list_init(&others);
    struct list *node;
    while ((node = list_pop(&p->submitted)) != NULL) {
        struct io_op *op = container_of(node, struct io_op, link);
        if (op->kind == IO_WRITE)
            hand_over_writes(p, op);
        else
            list_append(&others, node);
    }
    while ((node = list_pop(&others)) != NULL)
        list_append(&p->submitted, node);
    return deliver(p);
}

/* ---- the turn -------------------------------------------------------------------------------- */

static int ready_of(uint32_t events)
{
    int ready = 0;
    if (events & EPOLLIN) ready |= IO_READABLE;
    if (events & EPOLLOUT) ready |= IO_WRITABLE;
    if (events & (EPOLLHUP | EPOLLERR)) ready |= IO_HANGUP;
    return ready;
}

static uint32_t dispatch(struct posix *p, const struct epoll_event *event)
{
    const enum posix_watched *watched = event->data.ptr;
    if (*watched == POSIX_WAKE) {
        collect_finished(p);
        return 0;
    }
    if (*watched == POSIX_LISTENER) {
        struct io_listener *listener = event->data.ptr;
        if (!listener->closed) posix_accept_ready(p, listener);
        return 1;
    }
    struct io_stream *stream = event->data.ptr;
    if (stream->closed || stream->events == NULL) return 0;
    stream->events->ready(stream->context, stream, ready_of(event->events));
    return 1;
}

static int wait_ms(struct posix *p, int64_t until_ms)
{
    if (!list_empty(&p->done) || !list_empty(&p->unwatched)) return 0;
    if (!list_empty(&p->muted)) until_ms = MIN(until_ms, p->unmute_ms);
    if (until_ms == INT64_MAX) return -1;
    int64_t left = until_ms - clock_us(CLOCK_MONOTONIC) / 1000;
    return left <= 0 ? 0 : (int)MIN(left, INT_MAX);
}

static uint32_t posix_turn(struct io *io, int64_t until_ms)
{
    struct posix *p = posix_of(io);
    hand_over_all(p);
    struct epoll_event events[POSIX_EVENTS_PER_TURN];
    int count = epoll_wait(p->epoll_fd, events, POSIX_EVENTS_PER_TURN, wait_ms(p, until_ms));
    posix_clocks(p);
    uint32_t called = 0;
    for (int i = 0; i < count; i++)
        called += dispatch(p, &events[i]);
    if (!list_empty(&p->muted)) posix_unmute(p);
    if (!list_empty(&p->unwatched)) called += posix_hang_up_unwatched(p);
    called += deliver(p);
    posix_bury(p);
    return called;
}

/* ---- the handle ------------------------------------------------------------------------------ */

static void posix_free(struct io *io)
{
    struct posix *p = posix_of(io);
    posix_lane_stop(&p->work);
    for (uint32_t i = 0; i < POSIX_SYNC_LANES; i++)
        posix_lane_stop(&p->sync[i]);
    posix_bury(p);
    close(p->wake_fd);
    close(p->epoll_fd);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

const struct io_backend posix_backend = {
    .now_ms = posix_now_ms,
    .now_us = posix_now_us,
    .cpu_ns = posix_cpu_ns,
    .wall_ms = posix_wall_ms,
    .random = posix_random,
    .turn = posix_turn,
    .writes_now = posix_writes_now,
    .wake = posix_wake,
    .submit = posix_submit,
    .free = posix_free,
    .open = posix_open,
    .close = posix_close,
    .stat = posix_stat,
    .size = posix_size,
    .read = posix_read,
    .read_cached = posix_read_cached,
    .cached = posix_cached,
    .write = posix_write,
    .truncate = posix_truncate,
    .reserve = posix_reserve,
    .sync = posix_sync,
    .sync_dir = posix_sync_dir,
    .sync_all = posix_sync_all,
    .rename = posix_rename,
    .unlink = posix_unlink,
    .mkdir = posix_mkdir,
    .rmdir = posix_rmdir,
    .space = posix_space,
    .list = posix_list,
    .lock = posix_lock,
    .listen = posix_listen,
    .unlisten = posix_unlisten,
    .connect = posix_connect,
    .watch = posix_watch,
    .want = posix_want,
    .recv = posix_recv,
    .send = posix_send,
    .send_file = posix_send_file,
    .local = posix_local,
    .peer = posix_peer,
    .close_stream = posix_close_stream,
    .give_stream = posix_give_stream,
    .take_stream = posix_take_stream,
};

void posix_forgo_sync(struct io *io)
{
    posix_of(io)->no_sync = true;
}

/* sendfile to a connection that is gone raises SIGPIPE (it knows no MSG_NOSIGNAL), a write beyond
 * RLIMIT_FSIZE SIGXFSZ; both end the process unless somebody wants them. As answers they do. */
static void ignore_unless_wanted(int number)
{
    struct sigaction now;
    if (sigaction(number, NULL, &now) != 0 || now.sa_handler != SIG_DFL) return;
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(number, &ignore, NULL);
}

struct io *posix_new(struct mem *mem)
{
    static const enum posix_watched wake_mark = POSIX_WAKE;
    struct posix *p = calloc(1, sizeof(*p));
    if (p == NULL) return NULL;
    p->io = (struct io){.backend = &posix_backend, .mem = mem};
    p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN};
    memcpy(&event.data.ptr, &(const void *){&wake_mark},
           sizeof(event.data.ptr)); /* epoll has no const. */
    bool seeded = getrandom(p->random, sizeof(p->random), 0) == (ssize_t)sizeof(p->random);
    if (p->epoll_fd < 0 || p->wake_fd < 0 || !seeded ||
        epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->wake_fd, &event) != 0) {
        int reason = errno;
        if (p->epoll_fd >= 0) close(p->epoll_fd);
        if (p->wake_fd >= 0) close(p->wake_fd);
        free(p);
        errno = reason;
        return NULL;
    }
    ignore_unless_wanted(SIGPIPE);
    ignore_unless_wanted(SIGXFSZ);
    list_init(&p->submitted);
    list_init(&p->done);
    list_init(&p->graves);
    list_init(&p->unwatched);
    list_init(&p->muted);
    list_init(&p->finished);
    pthread_mutex_init(&p->lock, NULL);
    posix_lane_init(&p->work, p, true);
    for (uint32_t i = 0; i < POSIX_SYNC_LANES; i++)
        posix_lane_init(&p->sync[i], p, false);
    posix_clocks(p);
    return &p->io;
}
