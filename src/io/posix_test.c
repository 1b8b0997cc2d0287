/* posix_test.c - what only the real world does: lanes, the page cache, limits of the process. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io/io.h"
#include "io/posix.h"
#include "sys/memory.h"

#define FILES 40

struct rig {
    struct mem mem;
    struct io *io;
    char dir[32];
    char path[64];
};

static int rig_open(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    memory_init(&rig->mem, 0);
    rig->io = posix_new(&rig->mem);
    (void)snprintf(rig->dir, sizeof(rig->dir), "/tmp/dohle-posix-XXXXXX");
    assert_non_null(mkdtemp(rig->dir));
    *state = rig;
    return rig->io == NULL;
}

static int rig_close(void **state)
{
    struct rig *rig = *state;
    if (rig->io != NULL) io_free(rig->io);
    assert_int_equal(rmdir(rig->dir), 0);
    free(rig);
    return 0;
}

static const char *path_of(struct rig *rig, const char *name)
{
    (void)snprintf(rig->path, sizeof(rig->path), "%s/%s", rig->dir, name);
    return rig->path;
}

static struct io_file *create(struct rig *rig, const char *name)
{
    struct io_file *file = NULL;
    int flags = IO_OPEN_WRITE | IO_OPEN_CREATE | IO_OPEN_EXCLUSIVE;
    assert_int_equal(io_disk_open(rig->io, path_of(rig, name), flags, &file), 0);
    return file;
}

struct waited {
    struct io_op op;
    bool done;
};

static void mark_done(struct io_op *op)
{
    container_of(op, struct waited, op)->done = true;
}

static void wait_for(struct rig *rig, struct waited *w)
{
    for (int i = 0; i < 1000 && !w->done; i++)
        io_turn(rig->io, io_now_us(rig->io) / 1000 + 1000);
    assert_true(w->done);
}

static int thread_count(void)
{
    int count = 0;
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    while (fgets(line, sizeof(line), status) != NULL)
        (void)sscanf(line, "Threads: %d", &count);
    (void)fclose(status);
    return count;
}

/* A wall time reckoned from a monotonic one is the same whenever it is reckoned. */
static void test_clocks_in_step(void **state)
{
    struct rig *rig = *state;
    int steps = 0;
    for (int64_t i = 0, kept_ms = 0; i < 300; i++) {
        usleep(500 + (useconds_t)(i * 37 % 600));
        io_turn(rig->io, 0);
        int64_t ahead_ms = io_wall_ms(rig->io) - io_now_ms(rig->io);
        steps += i > 0 && ahead_ms != kept_ms;
        kept_ms = ahead_ms;
    }
    assert_in_range(steps, 0, 2); /* One to settle, one for a clock that is being set right. */
}

/* Bytes that left the page cache are not waited for by the shard; the lane brings them. */
static void test_cold_read(void **state)
{
    struct rig *rig = *state;
    enum { SIZE = 1 << 20 };
    struct io_file *file = create(rig, "cold");
    uint8_t *bytes = malloc(SIZE), *back = calloc(1, SIZE);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (uint8_t)(i * 31 >> 3);
    assert_int_equal(io_disk_write(rig->io, file, bytes, SIZE, 0), SIZE);
    assert_int_equal(io_disk_read_cached(rig->io, file, back, SIZE, 0), SIZE);
    assert_memory_equal(back, bytes, SIZE);
    assert_int_equal(io_disk_read_cached(rig->io, file, back, SIZE, SIZE - 10), 10);
    assert_int_equal(io_disk_read_cached(rig->io, file, back, SIZE, SIZE), 0);
    assert_int_equal(io_disk_cached(rig->io, file, 0, SIZE), SIZE);
    assert_int_equal(io_disk_cached(rig->io, file, 5000, 10000), 10000);
    assert_int_equal(io_disk_cached(rig->io, file, SIZE - 10, SIZE), 10);
    assert_int_equal(io_disk_cached(rig->io, file, SIZE + 4096, 10), 0);

    assert_int_equal(io_disk_sync(rig->io, file), 0);
    assert_int_equal(posix_fadvise(posix_fd(file), 0, 0, POSIX_FADV_DONTNEED), 0);
    int64_t cached = io_disk_read_cached(rig->io, file, back, SIZE, 0);
    bool cold = cached == -EAGAIN; /* A file system in memory is never cold. */
    if (!cold) assert_int_equal(cached, SIZE);
    if (cold) assert_int_equal(io_disk_cached(rig->io, file, 4096, SIZE), 0);
    assert_int_equal(posix_fadvise(posix_fd(file), 0, 0, POSIX_FADV_DONTNEED), 0);
    int before = thread_count();

    struct waited read = {.op.done = mark_done};
    memset(back, 0, SIZE);
    struct iovec halves[] = {
        {back,            SIZE / 2},
        {back + SIZE / 2, SIZE / 2}
    };
    io_read(rig->io, &read.op, file, halves, 2, 0);
    wait_for(rig, &read);
    assert_int_equal(read.op.result, SIZE);
    assert_memory_equal(back, bytes, SIZE);
    assert_true(thread_count() <= before + 1); /* The kernel may have read ahead: no lane then. */
    io_disk_close(rig->io, file);
    assert_int_equal(io_disk_unlink(rig->io, path_of(rig, "cold")), 0);
    free(bytes);
    free(back);
}

/* Neighbours are written by one call, whatever their vectors are, and each is told its own size. */
static void test_neighbours(void **state)
{
    struct rig *rig = *state;
    enum { OPS = 300 };
    struct io_file *file = create(rig, "joined"), *other = create(rig, "other");
    static char digits[] = "0123456789abcdef";
    struct waited ops[OPS];
    struct iovec iov[OPS][3];
    uint64_t at = 0;
    for (int i = 0; i < OPS; i++) {
        size_t size = (size_t)i % 5 + 1;
        for (int k = 0; k < 3; k++)
            iov[i][k] = (struct iovec){digits + (i + k) % 10, size};
        ops[i] = (struct waited){.op.done = mark_done};
        io_write(rig->io, &ops[i].op, i % 50 == 49 ? other : file, iov[i], 3, at);
        at += 3 * size;
    }
    wait_for(rig, &ops[OPS - 1]);
    at = 0;
    for (int i = 0; i < OPS; i++) {
        size_t size = (size_t)i % 5 + 1;
        char back[8];
        assert_true(ops[i].done);
        assert_int_equal(ops[i].op.result, 3 * size);
        for (int k = 0; k < 3; k++) {
            struct io_file *from = i % 50 == 49 ? other : file;
            assert_int_equal(io_disk_read(rig->io, from, back, size, at), size);
            assert_memory_equal(back, digits + (i + k) % 10, size);
            at += size;
        }
    }
    io_disk_close(rig->io, file);
    io_disk_close(rig->io, other);
    assert_int_equal(io_disk_unlink(rig->io, path_of(rig, "joined")), 0);
    assert_int_equal(io_disk_unlink(rig->io, path_of(rig, "other")), 0);
}

/* A call that fails midway: whole writes before the place are done, the others are not. */
static void test_failing_neighbours(void **state)
{
    struct rig *rig = *state;
    struct io_file *file = create(rig, "full");
    char bytes[1000];
    memset(bytes, 'x', sizeof(bytes));
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){2500, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct waited ops[4];
    struct iovec iov = {bytes, sizeof(bytes)};
    for (uint64_t i = 0; i < 4; i++) {
        ops[i] = (struct waited){.op.done = mark_done};
        io_write(rig->io, &ops[i].op, file, &iov, 1, i * sizeof(bytes));
    }
    wait_for(rig, &ops[3]);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    int64_t expected[] = {1000, 1000, -EFBIG, -EFBIG};
    for (int i = 0; i < 4; i++)
        assert_int_equal(ops[i].op.result, expected[i]);
    assert_int_equal(io_disk_size(rig->io, file), 2500);
    assert_int_equal(io_counts(rig->io).failures, 2);
    io_disk_close(rig->io, file);
    assert_int_equal(io_disk_unlink(rig->io, path_of(rig, "full")), 0);
}

/* One file, a few and many: each way of making durable says yes, and is in order with its writes.
 */
static void test_many_durable(void **state)
{
    struct rig *rig = *state;
    struct io_file *files[FILES];
    char name[16];
    for (int i = 0; i < FILES; i++) {
        (void)snprintf(name, sizeof(name), "f%d", i);
        files[i] = create(rig, name);
        assert_int_equal(io_disk_write(rig->io, files[i], name, 3, 0), 3);
    }
    uint32_t counts[] = {1, 3, FILES};
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        struct waited sync = {.op.done = mark_done};
        io_durable(rig->io, &sync.op, files, counts[i]);
        wait_for(rig, &sync);
        assert_int_equal(sync.op.result, 0);
    }
    for (int i = 0; i < FILES; i++) {
        (void)snprintf(name, sizeof(name), "f%d", i);
        io_disk_close(rig->io, files[i]);
        assert_int_equal(io_disk_unlink(rig->io, path_of(rig, name)), 0);
    }
}

/* Writes need not wait for a turn; all else does, whatever was submitted between them. */
static void test_writes_now(void **state)
{
    struct rig *rig = *state;
    struct io_file *file = create(rig, "now");
    struct waited first = {.op.done = mark_done}, second = first, sync = first;
    char back[4];
    assert_int_equal(io_writes_now(rig->io), 0);
    io_write(rig->io, &first.op, file, &(struct iovec){"ab", 2}, 1, 0);
    io_durable(rig->io, &sync.op, &file, 1);
    io_write(rig->io, &second.op, file, &(struct iovec){"cd", 2}, 1, 2);
    assert_false(first.done);
    assert_int_equal(io_writes_now(rig->io), 2);
    assert_true(first.done);
    assert_true(second.done);
    assert_int_equal(second.op.result, 2);
    assert_int_equal(io_disk_read_cached(rig->io, file, back, sizeof(back), 0), 4);
    assert_memory_equal(back, "abcd", 4);
    assert_false(sync.done);
    assert_int_equal(io_writes_now(rig->io), 0);
    wait_for(rig, &sync);
    assert_int_equal(sync.op.result, 0);
    io_disk_close(rig->io, file);
    assert_int_equal(io_disk_unlink(rig->io, path_of(rig, "now")), 0);
}

/* What cannot be synced says so. */
static void test_durable_fails(void **state)
{
    struct rig *rig = *state;
    struct io_file *file;
    if (io_disk_open(rig->io, "/dev/full", IO_OPEN_WRITE, &file) != 0) skip();
    struct waited sync = {.op.done = mark_done}, write = sync;
    char byte[] = "x";
    io_write(rig->io, &write.op, file, &(struct iovec){byte, 1}, 1, 0);
    io_durable(rig->io, &sync.op, &file, 1);
    io_disk_close(rig->io, file);
    wait_for(rig, &sync);
    assert_int_equal(write.op.result, -ENOSPC);
    assert_int_equal(sync.op.result, -EINVAL); /* A device of characters has nothing to sync. */
}

static void *wake_later(void *io)
{
    usleep(20000);
    io_wake(io);
    return NULL;
}

static void test_wake(void **state)
{
    struct rig *rig = *state;
    pthread_t thread;
    int64_t began_us = io_now_us(rig->io);
    assert_int_equal(pthread_create(&thread, NULL, wake_later, rig->io), 0);
    io_turn(rig->io, INT64_MAX);
    assert_true(io_now_us(rig->io) - began_us >= 15000);
    pthread_join(thread, NULL);
    began_us = io_now_us(rig->io);
    io_turn(rig->io, io_now_us(rig->io) / 1000 + 20); /* Awake once, not for ever. */
    assert_true(io_now_us(rig->io) - began_us >= 15000);
}

static int64_t slow_job(struct io *io, void *argument)
{
    usleep(2000);
    (*(int *)argument)++;
    return 7;
}

/* The handle's end waits for the jobs that were handed over. */
static void test_free_waits(void **state)
{
    struct rig *rig = *state;
    int ran = 0;
    struct waited jobs[5];
    for (int i = 0; i < 5; i++) {
        jobs[i] = (struct waited){.op.done = mark_done};
        io_job(rig->io, &jobs[i].op, slow_job, &ran);
    }
    io_turn(rig->io, 0);
    io_free(rig->io);
    rig->io = NULL;
    assert_int_equal(ran, 5);
    assert_false(jobs[4].done);
}

static void refuse(void *context, struct io_stream *stream, const struct io_address *peer)
{
    struct rig *rig = ((void **)context)[0];
    (*(int *)((void **)context)[1])++;
    io_stream_close(rig->io, stream);
}

/* Without descriptors a listener rests, and the shard does not spin; later it takes who waited. */
static void test_no_descriptors(void **state)
{
    struct rig *rig = *state;
    static const struct io_accept_events events = {refuse};
    int accepted = 0;
    void *context[] = {rig, &accepted};
    struct io_address address = {.host = "127.0.0.1"}, bound;
    struct io_listener *listener;
    struct io_stream *client;
    assert_int_equal(io_listen(rig->io, &address, &events, context, &listener, &bound), 0);
    assert_int_equal(io_connect(rig->io, &bound, &client), 0);

    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){3, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int turns = 0;
    int64_t until_us = io_now_us(rig->io) + 50000;
    for (; io_now_us(rig->io) < until_us; turns++)
        io_turn(rig->io, until_us / 1000 + 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(accepted, 0);
    assert_true(turns < 5);
    for (int i = 0; i < 100 && accepted == 0; i++)
        io_turn(rig->io, io_now_us(rig->io) / 1000 + 100);
    assert_int_equal(accepted, 1);
    io_stream_close(rig->io, client);
    io_unlisten(rig->io, listener);
    io_turn(rig->io, 0);
}

struct end {
    struct rig *rig;
    int ready;
    int64_t answer;
};

static void note_end(void *context, struct io_stream *stream, int ready)
{
    struct end *end = context;
    char byte;
    end->ready |= ready;
    if (ready & IO_HANGUP) {
        end->answer = io_stream_recv(end->rig->io, stream, &byte, 1);
        io_stream_close(end->rig->io, stream); /* In its own callback. */
    }
}

struct taken {
    struct rig *rig;
    struct io_stream *stream;
};

static void take(void *context, struct io_stream *stream, const struct io_address *peer)
{
    ((struct taken *)context)->stream = stream;
}

/* Bytes and file ranges for a peer that is gone: an answer, not a signal that ends the process. */
static void test_peer_gone(void **state)
{
    struct rig *rig = *state;
    static const struct io_accept_events events = {take};
    struct taken taken = {.rig = rig};
    struct io_address address = {.host = "127.0.0.1"}, bound;
    struct io_listener *listener;
    struct io_stream *client;
    struct io_file *file = create(rig, "range");
    assert_int_equal(io_disk_write(rig->io, file, "range", 5, 0), 5);
    for (int with_file = 0; with_file < 2; with_file++) {
        assert_int_equal(io_listen(rig->io, &address, &events, &taken, &listener, &bound), 0);
        assert_int_equal(io_connect(rig->io, &bound, &client), 0);
        taken.stream = NULL;
        for (int i = 0; i < 100 && taken.stream == NULL; i++)
            io_turn(rig->io, io_now_us(rig->io) / 1000 + 100);
        assert_non_null(taken.stream);
        io_stream_close(rig->io, client);
        io_turn(rig->io, 0);
        int64_t sent = 0;
        for (int i = 0; i < 100 && sent >= 0; i++)
            sent = with_file
                       ? io_stream_send_file(rig->io, taken.stream, file, 0, 5)
                       : io_stream_send(rig->io, taken.stream, &(struct iovec){"x", 1}, 1, false);
        assert_true(sent == -EPIPE || sent == -ECONNRESET);
        io_stream_close(rig->io, taken.stream);
        io_unlisten(rig->io, listener);
        io_turn(rig->io, 0);
    }
    io_disk_close(rig->io, file);
    assert_int_equal(io_disk_unlink(rig->io, path_of(rig, "range")), 0);
}

static void test_refused(void **state)
{
    struct rig *rig = *state;
    static const struct io_accept_events accept_events = {refuse};
    static const struct io_stream_events events = {note_end};
    struct io_address address = {.host = "127.0.0.1"}, bound;
    struct io_listener *listener;
    assert_int_equal(io_listen(rig->io, &address, &accept_events, NULL, &listener, &bound), 0);
    io_unlisten(rig->io, listener); /* Now nobody listens on that port. */
    struct end end = {.rig = rig};
    struct io_stream *stream;
    assert_int_equal(io_connect(rig->io, &bound, &stream), 0);
    io_stream_watch(rig->io, stream, IO_WRITABLE, &events, &end);
    for (int i = 0; i < 100 && !(end.ready & IO_HANGUP); i++)
        io_turn(rig->io, io_now_us(rig->io) / 1000 + 100);
    assert_int_equal(end.answer, -ECONNREFUSED);
    struct io_address wrong = {.host = "not an address", .port = 1};
    assert_int_equal(io_connect(rig->io, &wrong, &stream), -EINVAL);
    assert_int_equal(io_listen(rig->io, &wrong, &accept_events, NULL, &listener, &bound), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cold_read, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(test_neighbours, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(test_failing_neighbours, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(test_many_durable, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(test_writes_now, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(test_durable_fails, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(test_wake, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(test_free_waits, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(test_clocks_in_step, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(test_no_descriptors, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(test_peer_gone, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(test_refused, rig_open, rig_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
