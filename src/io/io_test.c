/* io_test.c - what the seam promises, against the real world and the simulated one. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/io.h"
#include "io/posix.h"
#include "io/sim.h"
#include "sys/memory.h"

struct rig {
    struct mem mem;
    struct sim_world *world; /* NULL: the real one. */
    struct io *io;
    char dir[32];
};

static int rig_open_posix(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    memory_init(&rig->mem, 0);
    rig->io = posix_new(&rig->mem);
    (void)snprintf(rig->dir, sizeof(rig->dir), "/tmp/dohle-io-XXXXXX");
    assert_non_null(mkdtemp(rig->dir));
    *state = rig;
    return rig->io == NULL;
}

static int rig_open_sim(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    rig->world = sim_world_new(7, &(struct sim_options){.waits = true});
    rig->io = sim_node_start(sim_node_new(rig->world, "n"));
    (void)snprintf(rig->dir, sizeof(rig->dir), "/tmp/io");
    assert_int_equal(io_disk_mkdir(rig->io, rig->dir), 0);
    *state = rig;
    return 0;
}

static bool remove_one(void *context, const char *name)
{
    char path[512];
    struct rig *rig = context;
    (void)snprintf(path, sizeof(path), "%s/%s", rig->dir, name);
    assert_int_equal(io_disk_unlink(rig->io, path), 0);
    return true;
}

static int rig_close(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(io_disk_list(rig->io, rig->dir, remove_one, rig), 0);
    assert_int_equal(io_disk_rmdir(rig->io, rig->dir), 0);
    assert_int_equal(io_mem(rig->io)->used_bytes, 0);
    io_free(rig->io);
    sim_world_free(rig->world);
    free(rig);
    return 0;
}

static const char *path_in(struct rig *rig, const char *name)
{
    static char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", rig->dir, name);
    return path;
}

struct waited {
    struct io_op op;
    bool done;
    uint32_t *order;
    uint32_t at;
};

static void mark_done(struct io_op *op)
{
    struct waited *w = container_of(op, struct waited, op);
    assert_false(op->in_flight);
    w->done = true;
    if (w->order != NULL) w->at = (*w->order)++;
}

static void wait_for(struct rig *rig, struct waited *w)
{
    for (int i = 0; i < 1000 && !w->done; i++)
        io_turn(rig->io, io_now_us(rig->io) / 1000 + 1000);
    assert_true(w->done);
}

static void test_write_read_durable(void **state)
{
    struct rig *rig = *state;
    struct io_file *file;
    assert_int_equal(io_disk_open(rig->io, path_in(rig, "a"),
                                  IO_OPEN_WRITE | IO_OPEN_CREATE | IO_OPEN_EXCLUSIVE, &file),
                     0);
    uint32_t order = 0;
    struct waited first = {.op.done = mark_done, .order = &order}, second = first, sync = first,
                  back = first;
    char hello[] = "hello ", world[] = "world", out[32] = {0};
    io_write(rig->io, &first.op, file, &(struct iovec){hello, 6}, 1, 0);
    assert_false(first.done);
    io_write(rig->io, &second.op, file, &(struct iovec){world, 5}, 1, 6);
    wait_for(rig, &second);
    assert_true(first.done && first.at < second.at);
    assert_int_equal(first.op.result, 6);
    io_durable(rig->io, &sync.op, &file, 1);
    wait_for(rig, &sync);
    assert_int_equal(sync.op.result, 0);
    io_read(rig->io, &back.op, file, &(struct iovec){out, sizeof(out)}, 1, 0);
    wait_for(rig, &back);
    assert_int_equal(back.op.result, 11);
    assert_memory_equal(out, "hello world", 11);
    assert_int_equal(io_disk_size(rig->io, file), 11);
    io_disk_close(rig->io, file);
    struct io_counts counts = io_counts(rig->io);
    assert_true(counts.writes == 2 && counts.write_bytes == 11 && counts.commits == 1);
    assert_true(counts.reads == 1 && counts.read_bytes == 11 && counts.failures == 0);
    assert_int_equal(io_disk_open(rig->io, path_in(rig, "a"),
                                  IO_OPEN_CREATE | IO_OPEN_EXCLUSIVE | IO_OPEN_WRITE, &file),
                     -EEXIST);
    assert_int_equal(io_disk_open(rig->io, path_in(rig, "none"), IO_OPEN_READ, &file), -ENOENT);
}

/* A close waits for what is in flight. */
static void test_close_waits(void **state)
{
    struct rig *rig = *state;
    struct io_file *file;
    assert_int_equal(
        io_disk_open(rig->io, path_in(rig, "c"), IO_OPEN_WRITE | IO_OPEN_CREATE, &file), 0);
    struct waited write = {.op.done = mark_done}, sync = write;
    char byte[] = "x";
    io_write(rig->io, &write.op, file, &(struct iovec){byte, 1}, 1, 0);
    io_durable(rig->io, &sync.op, &file, 1);
    io_disk_close(rig->io, file);
    wait_for(rig, &write);
    wait_for(rig, &sync);
    assert_int_equal(write.op.result, 1);
    assert_int_equal(sync.op.result, 0);
}

static int64_t job(struct io *io, void *argument)
{
    struct io_file *file;
    int result = io_disk_open(io, argument, IO_OPEN_WRITE | IO_OPEN_CREATE, &file);
    if (result != 0) return result;
    int64_t put = io_disk_write(io, file, "job", 3, 4096);
    io_disk_close(io, file);
    return put;
}

static void test_job(void **state)
{
    struct rig *rig = *state;
    struct waited w = {.op.done = mark_done};
    char path[512];
    (void)snprintf(path, sizeof(path), "%s", path_in(rig, "j"));
    io_job(rig->io, &w.op, job, path);
    wait_for(rig, &w);
    assert_int_equal(w.op.result, 3);
    struct io_stat stat;
    assert_int_equal(io_disk_stat(rig->io, path, &stat), 0);
    assert_int_equal(stat.size_bytes, 4099);
}

static void test_sync_side_by_side(void **state)
{
    struct rig *rig = *state;
    char gone[512];
    (void)snprintf(gone, sizeof(gone), "%s/gone", rig->dir);
    struct io_sync parts[7] = {
        {.folder = rig->dir},
        { .folder = gone,   .gone_ok = true},
    };
    for (uint32_t i = 2; i < ARRAY_SIZE(parts); i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "s%u", i);
        assert_int_equal(io_disk_open(rig->io, path_in(rig, name), IO_OPEN_WRITE | IO_OPEN_CREATE,
                                      &parts[i].file),
                         0);
        assert_int_equal(io_disk_write(rig->io, parts[i].file, "x", 1, 0), 1);
    }
    for (uint32_t count = 0; count <= ARRAY_SIZE(parts); count++)
        assert_int_equal(io_disk_sync_all(rig->io, parts, count), 0);
    parts[1].gone_ok = false;
    assert_int_equal(io_disk_sync_all(rig->io, parts, 2), -ENOENT);
    assert_int_equal(io_disk_sync_all(rig->io, parts, ARRAY_SIZE(parts)), -ENOENT);
    for (uint32_t i = 2; i < ARRAY_SIZE(parts); i++)
        io_disk_close(rig->io, parts[i].file);
}

static void test_directories(void **state)
{
    struct rig *rig = *state;
    char sub[512], other[512];
    (void)snprintf(sub, sizeof(sub), "%s/sub", rig->dir);
    (void)snprintf(other, sizeof(other), "%s/other", rig->dir);
    assert_int_equal(io_disk_mkdir(rig->io, sub), 0);
    assert_int_equal(io_disk_mkdir(rig->io, sub), -EEXIST);
    assert_int_equal(io_disk_rename(rig->io, sub, other), 0);
    assert_int_equal(io_disk_sync_dir(rig->io, rig->dir), 0);
    struct io_stat stat;
    assert_int_equal(io_disk_stat(rig->io, other, &stat), 0);
    assert_true(stat.is_directory);
    assert_int_equal(io_disk_rmdir(rig->io, other), 0);
    struct io_space space = {0};
    assert_int_equal(io_disk_space(rig->io, rig->dir, &space), 0);
    assert_true(space.free_bytes > 0);
    assert_true(space.total_bytes >= space.free_bytes);
}

static void test_lock(void **state)
{
    struct rig *rig = *state;
    struct io_file *mine, *other;
    assert_int_equal(io_disk_lock(rig->io, path_in(rig, ".lock"), &mine), 0);
    assert_int_equal(io_disk_lock(rig->io, path_in(rig, ".lock"), &other), -EWOULDBLOCK);
    io_disk_close(rig->io, mine);
    assert_int_equal(io_disk_lock(rig->io, path_in(rig, ".lock"), &other), 0);
    io_disk_close(rig->io, other);
}

/* ---- streams --------------------------------------------------------------------------------- */

struct talk {
    struct rig *rig;
    struct io_stream *server, *client;
    char got[64];
    size_t got_size;
    bool hung_up, connected;
};

static void server_ready(void *context, struct io_stream *stream, int ready)
{
    struct talk *talk = context;
    int64_t n = io_stream_recv(talk->rig->io, stream, talk->got + talk->got_size,
                               sizeof(talk->got) - talk->got_size);
    if (n > 0) talk->got_size += (size_t)n;
    if (n == 0) {
        talk->hung_up = true;
        io_stream_close(talk->rig->io, stream);
        talk->server = NULL;
    }
}

static void client_ready(void *context, struct io_stream *stream, int ready)
{
    struct talk *talk = context;
    if (ready & IO_WRITABLE) {
        talk->connected = true;
        io_stream_want(talk->rig->io, stream, IO_READABLE);
    }
}

static void accepted(void *context, struct io_stream *stream, const struct io_address *peer)
{
    static const struct io_stream_events events = {server_ready};
    struct talk *talk = context;
    talk->server = stream;
    io_stream_watch(talk->rig->io, stream, IO_READABLE, &events, talk);
}

static void talk_over(struct rig *rig, const struct io_address *address)
{
    static const struct io_accept_events accept_events = {accepted};
    static const struct io_stream_events client_events = {client_ready};
    struct talk talk = {.rig = rig};
    struct io_listener *listener;
    struct io_address bound;
    assert_int_equal(io_listen(rig->io, address, &accept_events, &talk, &listener, &bound), 0);
    assert_int_equal(io_connect(rig->io, &bound, &talk.client), 0);
    io_stream_watch(rig->io, talk.client, IO_WRITABLE, &client_events, &talk);
    for (int i = 0; i < 100 && !(talk.connected && talk.server != NULL); i++)
        io_turn(rig->io, io_now_us(rig->io) / 1000 + 100);
    assert_non_null(talk.server);

    struct io_file *file;
    assert_int_equal(
        io_disk_open(rig->io, path_in(rig, "s"), IO_OPEN_WRITE | IO_OPEN_CREATE, &file), 0);
    assert_int_equal(io_disk_write(rig->io, file, "..from a file", 13, 0), 13);
    char text[] = "from memory, ";
    for (int64_t sent = 0; sent < 13;) {
        struct iovec rest = {text + sent, (size_t)(13 - sent)};
        int64_t n = io_stream_send(rig->io, talk.client, &rest, 1, true);
        assert_true(n > 0);
        sent += n;
    }
    for (int64_t sent = 0; sent < 11;) {
        int64_t n = io_stream_send_file(rig->io, talk.client, file, 2 + (uint64_t)sent,
                                        (size_t)(11 - sent));
        assert_true(n > 0);
        sent += n;
    }
    io_disk_close(rig->io, file);
    io_stream_close(rig->io, talk.client);
    for (int i = 0; i < 100 && !talk.hung_up; i++)
        io_turn(rig->io, io_now_us(rig->io) / 1000 + 100);
    assert_true(talk.hung_up);
    assert_int_equal(talk.got_size, 24);
    assert_memory_equal(talk.got, "from memory, from a file", 24);
    io_unlisten(rig->io, listener);
    io_turn(rig->io, 0);
}

static void test_streams(void **state)
{
    struct rig *rig = *state;
    struct io_address tcp = {.host = "127.0.0.1"}, tcp6 = {.host = "::1"}, local = {0};
    talk_over(rig, &tcp);
    talk_over(rig, &tcp6);
    (void)snprintf(local.host, sizeof(local.host), "%s/socket", rig->dir);
    talk_over(rig, &local);
}

static void test_random(void **state)
{
    struct rig *rig = *state;
    for (int i = 0; i < 1000; i++) {
        struct uuid id = io_random_uuid(rig->io);
        assert_int_equal(id.bytes[6] >> 4, 4);
        assert_true(id.bytes[0] >> 2 != 62);
    }
    assert_true(io_random(rig->io, IO_RANDOM_HASH) != io_random(rig->io, IO_RANDOM_HASH));
}

#define IN_BOTH(test)                                                                              \
    {#test " (posix)", test, rig_open_posix, rig_close, NULL},                                     \
    {                                                                                              \
#test " (sim)", test, rig_open_sim, rig_close, NULL                                        \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_BOTH(test_write_read_durable),
        IN_BOTH(test_close_waits),
        IN_BOTH(test_job),
        IN_BOTH(test_sync_side_by_side),
        IN_BOTH(test_directories),
        IN_BOTH(test_lock),
        IN_BOTH(test_streams),
        IN_BOTH(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
