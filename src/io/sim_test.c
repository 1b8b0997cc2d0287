/* sim_test.c - what a crash may leave, and which faults strike how. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/sim.h"

/* ---- one node, no driver --------------------------------------------------------------------- */

struct rig {
    struct sim_world *world;
    struct sim_node *node;
    struct io *io;
};

static struct rig rig_new(uint64_t seed)
{
    struct rig rig = {.world = sim_world_new(seed, &(struct sim_options){.waits = true})};
    rig.node = sim_node_new(rig.world, "n");
    rig.io = sim_node_start(rig.node);
    return rig;
}

static struct io_file *must_open(struct io *io, const char *path)
{
    struct io_file *file = NULL;
    assert_int_equal(io_disk_open(io, path, IO_OPEN_WRITE | IO_OPEN_CREATE, &file), 0);
    return file;
}

static void must_put(struct io *io, struct io_file *file, const char *text, uint64_t offset)
{
    int64_t size = (int64_t)strlen(text);
    assert_int_equal(io_disk_write(io, file, text, (size_t)size, offset), size);
}

/* The bytes of a file as text, "" when empty, NULL when it is not there. */
static const char *text_of(struct io *io, const char *path, char out[64])
{
    struct io_file *file;
    memset(out, 0, 64);
    if (io_disk_open(io, path, IO_OPEN_READ, &file) != 0) return NULL;
    assert_true(io_disk_read(io, file, out, 63, 0) >= 0);
    io_disk_close(io, file);
    return out;
}

static void restart(struct rig *rig, enum sim_crash kind, uint64_t choice)
{
    sim_node_crash(rig->node, kind, choice);
    rig->io = sim_node_start(rig->node);
}

static void test_synced_stays(void **state)
{
    (void)state;
    for (int kind = 0; kind < SIM_CRASH_KINDS; kind++) {
        for (uint64_t choice = 0; choice < 20; choice++) {
            struct rig rig = rig_new(choice);
            struct io_file *file = must_open(rig.io, "/tmp/a");
            must_put(rig.io, file, "synced", 0);
            assert_int_equal(io_disk_sync(rig.io, file), 0);
            assert_int_equal(io_disk_sync_dir(rig.io, "/tmp"), 0);
            must_put(rig.io, file, "-and-more", 6);
            restart(&rig, (enum sim_crash)kind, choice);
            char text[64];
            assert_non_null(text_of(rig.io, "/tmp/a", text));
            assert_memory_equal(text, "synced", 6);
            sim_world_free(rig.world);
        }
    }
}

/* What the outcomes of one moment look like, over many choices. */
struct seen {
    uint32_t gone, old, whole, part, zeros;
};

static struct seen look(const struct sim_node *node, enum sim_crash kind)
{
    struct seen seen = {0};
    for (uint64_t choice = 0; choice < 200; choice++) {
        struct sim_world *world = sim_world_new(1, &(struct sim_options){.waits = true});
        struct sim_node *fork = sim_node_fork(world, node, kind, choice);
        struct io *io = sim_node_start(fork);
        struct io_file *file;
        static const char old[] = "oldoldold";
        if (io_disk_open(io, "/tmp/a", IO_OPEN_READ, &file) != 0) {
            seen.gone++;
        } else {
            char *bytes = calloc(1, 3000);
            int64_t size = io_disk_read(io, file, bytes, 3000, 0);
            if (size == 9 && memcmp(bytes, old, 9) == 0)
                seen.old++;
            else if (size == 2000 && bytes[0] == 'N' && bytes[1999] == 'N' && bytes[1000] == 'N')
                seen.whole++;
            else if (size == 2000 && bytes[1999] == 0)
                seen.zeros++;
            else
                seen.part++;
            free(bytes);
            io_disk_close(io, file);
        }
        sim_world_free(world);
    }
    return seen;
}

static struct rig with_unsynced_overwrite(void)
{
    struct rig rig = rig_new(3);
    struct io_file *file = must_open(rig.io, "/tmp/a");
    must_put(rig.io, file, "oldoldold", 0);
    assert_int_equal(io_disk_sync(rig.io, file), 0);
    assert_int_equal(io_disk_sync_dir(rig.io, "/tmp"), 0);
    char fresh[2000];
    memset(fresh, 'N', sizeof(fresh));
    assert_int_equal(io_disk_write(rig.io, file, fresh, sizeof(fresh), 0), sizeof(fresh));
    return rig;
}

static void test_unsynced_outcomes(void **state)
{
    (void)state;
    struct rig rig = with_unsynced_overwrite();
    assert_int_equal(look(rig.node, SIM_CRASH_WORST).old, 200);
    assert_int_equal(look(rig.node, SIM_CRASH_NAMES).old, 200);
    assert_int_equal(look(rig.node, SIM_CRASH_ALL).whole, 200);
    assert_int_equal(look(rig.node, SIM_CRASH_KILL).whole, 200);
    assert_int_equal(look(rig.node, SIM_CRASH_ZERO_TAIL).zeros, 200);
    struct seen prefix = look(rig.node, SIM_CRASH_PREFIX);
    assert_true(prefix.old > 0 && prefix.whole > 0 && prefix.part > 0);
    struct seen sectors = look(rig.node, SIM_CRASH_SECTORS);
    assert_true(sectors.old > 0 && sectors.whole > 0 && sectors.part > 0 && sectors.zeros > 0);
    struct seen any = look(rig.node, SIM_CRASH_RANDOM);
    assert_true(any.old > 0 && any.whole > 0 && any.part > 0 && any.zeros > 0);
    assert_int_equal(any.gone, 0);
    sim_world_free(rig.world);
}

/* ext4 after a power cut: the size of one append, the bytes of none. And no sector shows what never
 * stood in memory: where two appends share one, the second is never there without the first. */
static void test_appends(void **state)
{
    (void)state;
    struct rig rig = rig_new(4);
    struct io_file *file = must_open(rig.io, "/tmp/a");
    must_put(rig.io, file, "0123456789", 0);
    assert_int_equal(io_disk_sync(rig.io, file), 0);
    assert_int_equal(io_disk_sync_dir(rig.io, "/tmp"), 0);
    must_put(rig.io, file, "first", 10);
    must_put(rig.io, file, "second", 15);
    bool size_of_first = false, both = false;
    for (uint64_t choice = 0; choice < 3000; choice++) {
        struct sim_world *world = sim_world_new(1, NULL);
        enum sim_crash kind = choice % 2 ? SIM_CRASH_AHEAD : SIM_CRASH_SECTORS;
        struct io *io = sim_node_start(sim_node_fork(world, rig.node, kind, choice));
        char text[32] = {0};
        int64_t size = 0;
        struct io_file *left;
        assert_int_equal(io_disk_open(io, "/tmp/a", IO_OPEN_READ, &left), 0);
        size = io_disk_read(io, left, text, sizeof(text), 0);
        assert_true(size == 10 || size == 15 || size == 21);
        assert_memory_equal(text, "0123456789", 10);
        if (size == 15 && text[10] == 0 && text[14] == 0) size_of_first = true;
        if (size == 21 && text[15] == 's') {
            assert_memory_equal(text + 10, "firstsecond", 11);
            both = true;
        }
        sim_world_free(world);
    }
    assert_true(size_of_first && both);
    sim_world_free(rig.world);
}

/* A name is durable when its directory was synced, and not before. */
static void test_names(void **state)
{
    (void)state;
    char text[64];
    struct rig rig = rig_new(5);
    assert_int_equal(io_disk_mkdir(rig.io, "/tmp/d"), 0);
    struct io_file *file = must_open(rig.io, "/tmp/d/a");
    must_put(rig.io, file, "one", 0);
    assert_int_equal(io_disk_sync(rig.io, file), 0);
    assert_int_equal(io_disk_sync_dir(rig.io, "/tmp/d"), 0);
    restart(&rig, SIM_CRASH_WORST, 0); /* The directory's own name was not synced. */
    struct io_stat stat;
    assert_int_equal(io_disk_stat(rig.io, "/tmp/d", &stat), -ENOENT);

    assert_int_equal(io_disk_mkdir(rig.io, "/tmp/d"), 0);
    assert_int_equal(io_disk_sync_dir(rig.io, "/tmp"), 0);
    file = must_open(rig.io, "/tmp/d/a");
    must_put(rig.io, file, "one", 0);
    assert_int_equal(io_disk_sync(rig.io, file), 0);
    assert_int_equal(io_disk_sync_dir(rig.io, "/tmp/d"), 0);
    assert_int_equal(io_disk_rename(rig.io, "/tmp/d/a", "/tmp/d/b"), 0);
    assert_int_equal(io_disk_unlink(rig.io, "/tmp/d/b"), 0);
    restart(&rig, SIM_CRASH_WORST, 0); /* Both are undone. */
    assert_string_equal(text_of(rig.io, "/tmp/d/a", text), "one");
    assert_null(text_of(rig.io, "/tmp/d/b", text));

    assert_int_equal(io_disk_rename(rig.io, "/tmp/d/a", "/tmp/b"), 0);
    assert_int_equal(io_disk_sync_dir(rig.io, "/tmp"), 0); /* One side's sync moves it whole. */
    restart(&rig, SIM_CRASH_WORST, 0);
    assert_null(text_of(rig.io, "/tmp/d/a", text));
    assert_string_equal(text_of(rig.io, "/tmp/b", text), "one");
    sim_world_free(rig.world);
}

/* ---- every crash point, every outcome -------------------------------------------------------- */

static int replace(struct io *io, bool sync)
{
    struct io_file *file;
    int flags = IO_OPEN_WRITE | IO_OPEN_CREATE | IO_OPEN_TRUNCATE;
    int error = io_disk_open(io, "/tmp/a.tmp", flags, &file);
    if (error != 0) return error;
    int64_t put = io_disk_write(io, file, "new", 3, 0);
    if (put != 3) error = (int)put;
    if (error == 0 && sync) error = io_disk_sync(io, file);
    io_disk_close(io, file);
    if (error == 0) error = io_disk_rename(io, "/tmp/a.tmp", "/tmp/a");
    return error != 0 ? error : io_disk_sync_dir(io, "/tmp");
}

/* Replace a file, crash in its n-th call, look at all outcomes: how many show neither the old nor
 * the new file, or the old one after success was told. */
static uint32_t bad_outcomes(bool sync, uint32_t *points, uint32_t *tried)
{
    uint32_t bad = 0;
    for (uint64_t nth = 1;; nth++) {
        struct rig rig = rig_new(nth);
        struct io_file *file = must_open(rig.io, "/tmp/a");
        must_put(rig.io, file, "old", 0);
        assert_int_equal(io_disk_sync(rig.io, file), 0);
        assert_int_equal(io_disk_sync_dir(rig.io, "/tmp"), 0);
        sim_node_fault(rig.node, &(struct sim_fault){.kind = SIM_FAULT_CRASH, .nth = nth});
        int told = replace(rig.io, sync);
        bool crashed = sim_node_crashed(rig.node);
        assert_int_equal(told, crashed ? -EIO : 0);
        uint32_t changes = sim_node_unsynced(rig.node);
        assert_true(changes < 10);
        for (uint64_t choice = 0; choice < 1u << changes; choice++) {
            struct sim_world *world = sim_world_new(1, NULL);
            struct io *io =
                sim_node_start(sim_node_fork(world, rig.node, SIM_CRASH_CHOSEN, choice));
            char out[64];
            const char *text = text_of(io, "/tmp/a", out);
            bool fine = text != NULL &&
                        (strcmp(text, "new") == 0 || (strcmp(text, "old") == 0 && told != 0));
            bad += !fine;
            (*tried)++;
            sim_world_free(world);
        }
        sim_world_free(rig.world);
        (*points)++;
        if (!crashed) return bad;
    }
}

static void test_every_crash(void **state)
{
    (void)state;
    uint32_t points = 0, tried = 0;
    assert_int_equal(bad_outcomes(true, &points, &tried), 0);
    assert_int_equal(points, 6); /* open, write, sync, rename, sync-dir, and none. */
    assert_true(tried > 15);
    assert_true(bad_outcomes(false, &points, &tried) > 0); /* Rename without a sync is caught. */
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* A sync that fails says so once, and what it lost is lost though reads may show it. */
static void test_sync_fails_once(void **state)
{
    (void)state;
    uint32_t lost = 0, shown = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct rig rig = rig_new(seed);
        struct io_file *file = must_open(rig.io, "/tmp/a");
        assert_int_equal(io_disk_sync_dir(rig.io, "/tmp"), 0);
        must_put(rig.io, file, "data", 0);
        sim_node_fault(rig.node,
                       &(struct sim_fault){.kind = SIM_FAULT_ERROR, .calls = SIM_CALL_SYNC});
        assert_int_equal(io_disk_sync(rig.io, file), -EIO);
        assert_int_equal(io_disk_sync(rig.io, file), 0);
        char text[64];
        bool there = strcmp(text_of(rig.io, "/tmp/a", text), "data") == 0;
        restart(&rig, SIM_CRASH_WORST, 0);
        bool durable = strcmp(text_of(rig.io, "/tmp/a", text), "data") == 0;
        assert_true(there || !durable);
        lost += !durable;
        shown += there && !durable;
        sim_world_free(rig.world);
    }
    assert_true(lost > 10 && lost < 50 && shown > 0);
}

static void test_errors_and_space(void **state)
{
    (void)state;
    struct rig rig = rig_new(9);
    struct io_file *file = must_open(rig.io, "/tmp/a"), *other = must_open(rig.io, "/tmp/b");
    sim_node_fault(rig.node, &(struct sim_fault){.kind = SIM_FAULT_ERROR,
                                                 .calls = SIM_CALL_WRITE,
                                                 .under = "/tmp/a",
                                                 .nth = 2,
                                                 .for_good = true});
    must_put(rig.io, file, "1", 0);
    assert_int_equal(io_disk_write(rig.io, file, "2", 1, 1), -EIO);
    assert_int_equal(io_disk_write(rig.io, file, "3", 1, 1), -EIO);
    must_put(rig.io, other, "1", 0);
    sim_node_heal(rig.node);
    must_put(rig.io, file, "2", 1);

    char big[8192];
    memset(big, 'b', sizeof(big));
    sim_node_fault(
        rig.node,
        &(struct sim_fault){.kind = SIM_FAULT_TORN, .calls = SIM_CALL_WRITE, .error = -ENOSPC});
    assert_int_equal(io_disk_write(rig.io, other, big, sizeof(big), 0), -ENOSPC);
    assert_true(io_disk_size(rig.io, other) < (int64_t)sizeof(big));

    sim_node_space(rig.node, 4 * 4096);
    assert_int_equal(io_disk_truncate(rig.io, other, 0), 0);
    assert_int_equal(io_disk_reserve(rig.io, other, 0, 4 * 4096), -ENOSPC);
    assert_int_equal(io_disk_reserve(rig.io, other, 0, 3 * 4096), 0);
    struct io_space space;
    assert_int_equal(io_disk_space(rig.io, "/tmp", &space), 0);
    assert_int_equal(space.free_bytes, 0);
    assert_int_equal(io_disk_write(rig.io, file, big, sizeof(big), 0), -ENOSPC);
    assert_int_equal(io_disk_size(rig.io, file), 4096); /* What fitted was put. */
    assert_int_equal(io_disk_write(rig.io, other, big, sizeof(big), 0), sizeof(big));

    assert_true(sim_node_rot(rig.node, "/tmp/a", 8 * 7 + 1));
    char byte;
    assert_int_equal(io_disk_read(rig.io, file, &byte, 1, 7), 1);
    assert_int_equal(byte, 'b' ^ 2);
    assert_false(sim_node_rot(rig.node, "/tmp/a", 8 * 4096));
    assert_false(sim_node_rot(rig.node, "/tmp/none", 0));
    sim_world_free(rig.world);
}

static void test_memory(void **state)
{
    (void)state;
    struct rig rig = rig_new(2);
    struct mem *mem = io_mem(rig.io);
    void *first = mem_get(mem, 100);
    assert_non_null(first);
    sim_node_fail_memory(rig.node, 2, false);
    assert_non_null(mem_get(mem, 10));
    assert_null(mem_get(mem, 10));
    assert_non_null(mem_get(mem, 10));
    sim_node_fail_memory(rig.node, 1, true);
    assert_null(mem_get(mem, 10));
    assert_null(mem_get(mem, 10));
    sim_node_heal(rig.node);
    assert_int_equal(mem->used_bytes, 120);
    mem_put(mem, first, 100);
    assert_int_equal(sim_node_allocations(rig.node), 6);
    restart(&rig, SIM_CRASH_KILL, 0);
    assert_int_equal(io_mem(rig.io)->used_bytes, 0); /* Freed whole; the sanitizer would tell. */
    sim_world_free(rig.world);
}

/* ---- submitted operations -------------------------------------------------------------------- */

struct waited {
    struct io_op op;
    uint32_t *order;
    uint32_t at; /* 0: not done. */
};

static void mark_done(struct io_op *op)
{
    struct waited *w = container_of(op, struct waited, op);
    w->at = ++*w->order;
}

static void turns_until(struct rig *rig, const uint32_t *order, uint32_t count)
{
    for (int i = 0; i < 1000 && *order < count && !sim_node_crashed(rig->node); i++)
        io_turn(rig->io, io_now_us(rig->io) / 1000 + 1000);
}

/* Across files any order, within a file that of submission. */
static void test_order(void **state)
{
    (void)state;
    uint32_t swapped = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct rig rig = rig_new(seed);
        struct io_file *files[2] = {must_open(rig.io, "/tmp/a"), must_open(rig.io, "/tmp/b")};
        uint32_t order = 0;
        struct waited writes[8];
        char byte[8];
        struct iovec iov[8];
        for (uint32_t i = 0; i < 8; i++) {
            byte[i] = (char)('0' + i);
            writes[i] = (struct waited){.op.done = mark_done, .order = &order};
            iov[i] = (struct iovec){&byte[i], 1};
            io_write(rig.io, &writes[i].op, files[i / 4], &iov[i], 1, 0);
        }
        turns_until(&rig, &order, 8);
        assert_int_equal(order, 8);
        for (uint32_t i = 0; i < 8; i++)
            if (i % 4 != 0) assert_true(writes[i - 1].at < writes[i].at);
        swapped += writes[4].at < writes[3].at;
        char text[64];
        assert_string_equal(text_of(rig.io, "/tmp/a", text), "3");
        io_disk_close(rig.io, files[0]);
        io_disk_close(rig.io, files[1]);
        io_free(rig.io);
        sim_world_free(rig.world);
    }
    assert_true(swapped > 5);
}

/* A commit covers what was written when it was asked for, and need not cover more. */
static void test_durable_covers_what_was_done(void **state)
{
    (void)state;
    uint32_t covered_more = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct rig rig = rig_new(seed);
        struct io_file *file = must_open(rig.io, "/tmp/a");
        assert_int_equal(io_disk_sync_dir(rig.io, "/tmp"), 0);
        must_put(rig.io, file, "one", 0);
        uint32_t order = 0;
        struct waited sync = {.op.done = mark_done, .order = &order};
        io_durable(rig.io, &sync.op, &file, 1);
        must_put(rig.io, file, "two", 3);
        turns_until(&rig, &order, 1);
        assert_int_equal(sync.op.result, 0);
        restart(&rig, seed % 2 ? SIM_CRASH_WORST : SIM_CRASH_RANDOM, seed);
        char text[64];
        assert_memory_equal(text_of(rig.io, "/tmp/a", text), "one", 3);
        covered_more += strlen(text) > 3;
        sim_world_free(rig.world);
    }
    assert_true(covered_more < 20);
}

/* Does this stop the program? In a child of its own. */
static bool stops(void (*what)(struct rig *rig))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rig rig = rig_new(1);
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(2);
        for (int signal_number = 1; signal_number < 32; signal_number++)
            signal(signal_number, SIG_DFL);
        what(&rig);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) || WEXITSTATUS(status) != 0;
}

static void write_with(struct rig *rig, bool touch)
{
    struct io_file *file = must_open(rig->io, "/tmp/a");
    uint32_t order = 0;
    struct waited write = {.op.done = mark_done, .order = &order};
    char byte = 'x';
    struct iovec iov = {&byte, 1};
    io_write(rig->io, &write.op, file, &iov, 1, 0);
    if (touch) byte = 'y';
    turns_until(rig, &order, 1);
}

static void touch_nothing(struct rig *rig)
{
    write_with(rig, false);
}

static void touch_a_written_buffer(struct rig *rig)
{
    write_with(rig, true);
}

static void touch_a_read_buffer(struct rig *rig)
{
    struct io_file *file = must_open(rig->io, "/tmp/a");
    uint32_t order = 0;
    struct waited read = {.op.done = mark_done, .order = &order};
    char bytes[4];
    struct iovec iov = {bytes, sizeof(bytes)};
    io_read(rig->io, &read.op, file, &iov, 1, 0);
    bytes[2] = 0;
    turns_until(rig, &order, 1);
}

static void test_lent_buffers(void **state)
{
    (void)state;
    assert_false(stops(touch_nothing));
    assert_true(stops(touch_a_written_buffer));
    assert_true(stops(touch_a_read_buffer));
}

/* After the crash point nothing of that process counts: not in a job, not by submission. */
static int64_t crashing_job(struct io *io, void *argument)
{
    (void)argument;
    struct io_file *file;
    int error = io_disk_open(io, "/tmp/j", IO_OPEN_WRITE | IO_OPEN_CREATE, &file);
    if (error != 0) return error;
    int64_t put = io_disk_write(io, file, "job", 3, 0);
    io_disk_close(io, file);
    return put;
}

static void test_dead_process(void **state)
{
    (void)state;
    struct rig rig = rig_new(4);
    struct io_file *file = must_open(rig.io, "/tmp/a");
    must_put(rig.io, file, "one", 0);
    assert_int_equal(io_disk_sync_dir(rig.io, "/tmp"), 0);
    uint32_t order = 0;
    struct waited job = {.op.done = mark_done, .order = &order}, write = job;
    sim_node_fault(rig.node, &(struct sim_fault){.kind = SIM_FAULT_CRASH, .under = "/tmp/j"});
    io_job(rig.io, &job.op, crashing_job, NULL);
    turns_until(&rig, &order, 1);
    assert_true(sim_node_crashed(rig.node));
    assert_int_equal(order, 0);
    uint64_t hash = sim_trace_hash(rig.world), count = sim_node_io_count(rig.node);
    char byte = '!';
    io_write(rig.io, &write.op, file, &(struct iovec){&byte, 1}, 1, 0);
    assert_int_equal(io_disk_write(rig.io, file, "two", 3, 0), -EIO);
    assert_int_equal(io_disk_truncate(rig.io, file, 0), -EIO);
    assert_int_equal(io_disk_sync(rig.io, file), -EIO);
    assert_int_equal(io_disk_rename(rig.io, "/tmp/a", "/tmp/b"), -EIO);
    assert_int_equal(io_turn(rig.io, 0), 0);
    struct io *who;
    assert_int_equal(sim_step(rig.world, INT64_MAX, &who), SIM_CRASHED);
    assert_ptr_equal(who, rig.io);
    assert_int_equal(hash, sim_trace_hash(rig.world));
    assert_int_equal(count, sim_node_io_count(rig.node));
    restart(&rig, SIM_CRASH_KILL, 0);
    char text[64];
    assert_string_equal(text_of(rig.io, "/tmp/a", text), "one");
    sim_world_free(rig.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_synced_stays),
        cmocka_unit_test(test_unsynced_outcomes),
        cmocka_unit_test(test_appends),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_every_crash),
        cmocka_unit_test(test_sync_fails_once),
        cmocka_unit_test(test_errors_and_space),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_durable_covers_what_was_done),
        cmocka_unit_test(test_lent_buffers),
        cmocka_unit_test(test_dead_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
