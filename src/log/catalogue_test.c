/* catalogue_test.c - faults of the catalogue in docs/log.md that no other test shows by itself;
 * each test is named by its row. In the simulated world unless a real file is the point. */
#include "log/script_rig_test.h"

#define FIRST "00000000000000000000"

/* ---- a log in a world of its own ------------------------------------------------------------- */

struct bed {
    struct sim_world *world;
    struct crash_run run;
    struct model model;
};

static struct bed *bed_new(uint64_t seed)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    bed->world = rig_world(seed);
    bed->run.node = sim_node_new(bed->world, "n");
    bed->run.model = &bed->model;
    bed->run.rig = rig_on(bed->run.node);
    format(bed->run.rig);
    assert_true(start(&bed->run) && open_log(&bed->run, true));
    return bed;
}

static void bed_free(struct bed *bed)
{
    sim_world_free(bed->world);
    free(bed->run.rig);
    free(bed);
}

static void bed_fill(struct bed *bed, int batches)
{
    for (int i = 0; i < batches; i++)
        assert_true(append_next(&bed->run, 2, 120));
}

/* The same machine after a crash. */
static void bed_crash(struct bed *bed, enum sim_crash kind)
{
    sim_node_crash(bed->run.node, kind, 1);
    struct rig *old = bed->run.rig;
    bed->run.rig = rig_on(bed->run.node);
    free(old);
}

static void bed_fault(struct bed *bed, uint32_t calls, int error)
{
    sim_node_fault(bed->run.node, &(struct sim_fault){.calls = calls, .error = error});
    bed->run.trouble = true;
}

static struct log_dir_info bed_info(const struct bed *bed)
{
    struct log_dir_info info;
    logs_dir_info(bed->run.rig->logs, 0, &info);
    return info;
}

static void bed_good(struct bed *bed)
{
    struct verdict verdict = {0};
    if (!judge_records(&bed->run, &verdict)) fail_msg("%s", verdict.text);
    assert_true(log_end_assigned(bed->run.log) >= bed->model.durable);
}

static struct disk_path bed_path(const struct bed *bed, const char *name)
{
    return disk_join(disk_join(bed->run.rig->dir, "t-0").text, name);
}

static void bed_write(struct bed *bed, const char *path, struct view bytes)
{
    assert_int_equal(disk_write_synced(bed->run.rig->io, path, bytes), 0);
}

/* ---- C: batches ------------------------------------------------------------------------------ */

/* C4: a client may not write control batches, whatever its request says. */
static void c4_control_batch_of_a_client(void **state)
{
    (void)state;
    struct bed *bed = bed_new(1);
    bed_fill(bed, 2);
    struct log_appended out;
    struct buf *buf = rig_marker_buf(bed->run.rig, 7, 0, true);
    assert_int_equal(rig_append_buf(bed->run.log, buf, &out), LOG_E_INVALID);
    assert_int_equal(out.fault, RECORD_CONTROL);
    assert_int_equal(log_end_assigned(bed->run.log), 4);
    bed_free(bed);
}

/* ---- S: files -------------------------------------------------------------------------------- */

/* S3: cut at every byte. Above what was known to be durable the longest good prefix stays; below,
 * the log says so and is not served. */
static void s3_cut_at_every_byte(void **state)
{
    (void)state;
    struct bed *bed = bed_new(2);
    for (int i = 0; i < 5; i++) {
        assert_true(append_next(&bed->run, 2, 40));
        if (i != 3) continue;
        stop(&bed->run); /* The recovery point is 8 now. */
        assert_true(start(&bed->run) && open_log(&bed->run, false));
    }
    struct io_file *file;
    struct io *io = bed->run.rig->io;
    assert_int_equal(io_disk_open(io, bed_path(bed, FIRST ".log").text, IO_OPEN_READ, &file), 0);
    int64_t size = io_disk_size(io, file);
    io_disk_close(io, file);
    int64_t batch = size / 5;
    for (int64_t at = size; at >= 0; at -= 7) {
        struct sim_world *world = rig_world(9);
        struct sim_node *node = sim_node_fork(world, bed->run.node, SIM_CRASH_KILL, 0);
        struct rig *rig = rig_on(node);
        struct crash_run run = {.rig = rig, .node = node, .model = &bed->model, .trouble = true};
        assert_int_equal(
            io_disk_open(rig->io, bed_path(bed, FIRST ".log").text, IO_OPEN_WRITE, &file), 0);
        assert_int_equal(io_disk_truncate(rig->io, file, (uint64_t)at), 0);
        io_disk_close(rig->io, file);
        assert_true(start(&run));
        bool opened = open_log(&run, false);
        if (at >= 4 * batch) assert_true(opened);
        if (opened) assert_int_equal(log_end_assigned(run.log), at / batch * 2);
        if (opened && at < 4 * batch) assert_true(log_recovered(run.log)->durable_lost > 0);
        sim_world_free(world);
        free(rig);
    }
    bed_free(bed);
}

/* S5: an index that is missing, empty or of a wrong size is made anew. S6: so is another segment's.
 */
static void s5_s6_indexes(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "x", "0123456789abcdef01234567",
                                      "\0\0\0\3\0\0\1\0\0\0\0\3\0\0\1\0"};
    for (size_t i = 0; i <= ARRAY_SIZE(bad); i++) {
        struct bed *bed = bed_new(3);
        bed_fill(bed, 14);
        assert_true(log_segments(bed->run.log) >= 2);
        stop(&bed->run);
        static const char *const names[] = {FIRST ".index", FIRST ".timeindex"};
        for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
            const char *path = bed_path(bed, names[k]).text;
            static char copy[DISK_PATH_MAX];
            (void)snprintf(copy, sizeof(copy), "%s", path);
            if (i == ARRAY_SIZE(bad))
                assert_int_equal(io_disk_unlink(bed->run.rig->io, copy), 0);
            else
                bed_write(bed, copy, view_of(bad[i], i == 3 ? 16 : (uint32_t)strlen(bad[i])));
        }
        assert_true(start(&bed->run) && open_log(&bed->run, false));
        bed_good(bed);
        bed_free(bed);
    }
}

/* S7: without its newest snapshot, or with a torn one, a log still knows what is a duplicate. */
static void s7_snapshots(void **state)
{
    (void)state;
    for (int torn = 0; torn < 2; torn++) {
        struct bed *bed = bed_new(4);
        bed_fill(bed, 4);
        stop(&bed->run);
        struct disk_path path = bed_path(bed, "00000000000000000008.snapshot");
        if (torn)
            bed_write(bed, path.text, VIEW("\0\1torn"));
        else
            assert_int_equal(io_disk_unlink(bed->run.rig->io, path.text), 0);
        assert_true(start(&bed->run) && open_log(&bed->run, false));
        struct log_appended out;
        struct rig_batch what = bed->model.last;
        assert_int_equal(rig_append_buf(bed->run.log, rig_batch(bed->run.rig, &what), &out),
                         LOG_DUPLICATE);
        assert_int_equal(out.offset_first, bed->model.last_offset);
        bed_free(bed);
    }
}

/* S8: an empty or torn leader-epoch-checkpoint is made anew from the batches (KAFKA-16541). */
static void s8_epochs(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "0\n2\n1 0\n", "0\n", "\0\0\0\0\0\0"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct bed *bed = bed_new(5);
        assert_int_equal(log_epoch_begin(bed->run.log, 4), LOG_OK);
        bed_fill(bed, 2);
        assert_int_equal(log_epoch_begin(bed->run.log, 6), LOG_OK);
        bed_fill(bed, 2);
        stop(&bed->run);
        struct disk_path path = bed_path(bed, "leader-epoch-checkpoint");
        bed_write(bed, path.text, view_of(bad[i], i == 3 ? 6 : (uint32_t)strlen(bad[i])));
        assert_true(start(&bed->run) && open_log(&bed->run, false));
        assert_int_equal(log_epoch_at(bed->run.log, 3), 4);
        assert_int_equal(log_epoch_at(bed->run.log, 4), 6);
        assert_int_equal(log_epoch_end(bed->run.log, 4).end, 4);
        bed_free(bed);
    }
}

/* S9: identity. Another node's, or damaged: refused, with a word. */
static void s9_identity(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\nnode.id=2\n"
        "directory.id=h3sC4Yk-Q9-fd0ntTzocCA\n",
        "version=1\nnode.id=1\n", "version=7\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\nnode.id=1\n", ""};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct bed *bed = bed_new(6);
        stop(&bed->run);
        struct disk_path path = disk_join(bed->run.rig->dir, "meta.properties");
        bed_write(bed, path.text, view_of_string(bad[i]));
        bed->run.rig->said[0] = '\0';
        assert_false(start(&bed->run));
        assert_true(strlen(bed->run.rig->said) > 10);
        bed_free(bed);
    }
}

/* S10: a directory that another process has is refused. */
static void s10_two_processes(void **state)
{
    struct rig *rig = *state;
    struct mem mem;
    memory_init(&mem, 0);
    struct io *io = posix_new(&mem);
    const char *const paths[] = {rig->dir};
    struct logs_options options = {.paths = paths, .path_count = 1, .node_id = 1};
    struct logs *logs;
    assert_int_equal(logs_open(io, &options, &logs), LOGS_E_LOCKED);
    io_free(io);
}

static int append_at(struct bed *bed, int64_t offset)
{
    struct rig_batch what = {.count = 1, .value_bytes = 10};
    struct buf *buf = rig_batch(bed->run.rig, &what);
    batch_stamp(buf->data, offset, 0);
    struct log_append in = {.buf = buf,
                            .size_bytes = buf->size_bytes,
                            .origin = LOG_FOLLOWER,
                            .produce_version = INT16_MAX};
    struct log_appended out;
    int result = log_append(bed->run.log, &in, &out);
    buf_release(buf);
    return result;
}

/* S12: offsets more than 2^31-1 apart do not fit a segment: it is rolled first (KAFKA-6264). */
static void s12_offsets_far_apart(void **state)
{
    (void)state;
    struct bed *bed = bed_new(7);
    const int64_t offsets[] = {0, INT32_MAX, (int64_t)INT32_MAX + 1, INT64_C(1) << 40};
    for (size_t i = 0; i < ARRAY_SIZE(offsets); i++)
        assert_int_equal(append_at(bed, offsets[i]), LOG_OK);
    settle(&bed->run);
    assert_int_equal(log_segments(bed->run.log), 3);
    stop(&bed->run);
    assert_true(start(&bed->run) && open_log(&bed->run, false));
    assert_int_equal(log_end_assigned(bed->run.log), (INT64_C(1) << 40) + 1);
    for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
        struct log_read in = {offsets[i], INT64_MAX, 1000, true};
        struct log_range range;
        assert_int_equal(rig_read(bed->run.rig, bed->run.log, &in, &range), LOG_OK);
        assert_int_equal(range.offset_first, offsets[i]);
        log_range_release(&range);
    }
    bed_free(bed);
}

/* S13: nothing behind position 2^31-1 is a batch; a file that long (sparse here) is cut. */
static void s13_file_above_2_gib(void **state)
{
    struct rig *rig = *state;
    rig_fill(rig, rig_log(rig), 10, 100);
    rig_crash(rig);
    struct disk_path folder = disk_join(rig->dir, "t-0");
    struct io_file *file;
    assert_int_equal(
        io_disk_open(rig->io, disk_join(folder.text, FIRST ".log").text, IO_OPEN_WRITE, &file), 0);
    assert_int_equal(io_disk_truncate(rig->io, file, (UINT64_C(1) << 31) + 100), 0);
    io_disk_close(rig->io, file);
    rig_start(rig);
    struct log *log = rig_log(rig);
    assert_int_equal(log_end_assigned(log), 10);
    assert_int_equal(rig_read_all(rig, log, 0), 10);
    assert_int_equal(rig_file_size(rig, FIRST ".log"), 1000);
}

/* ---- K: crashes ------------------------------------------------------------------------------ */

/* K7, K11: crash in the recovery, in the recovery of that, ... fifty times on end. */
static void k7_k11_crash_in_recovery(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct bed *bed = bed_new(seed);
        bed_fill(bed, 14);
        for (uint64_t round = 0; round < 50; round++) {
            bed_crash(bed, (enum sim_crash)(SIM_CRASH_WORST + (seed + round) % 7));
            sim_node_fault(bed->run.node,
                           &(struct sim_fault){.kind = SIM_FAULT_CRASH, .nth = 1 + round * 3});
            if (start(&bed->run)) (void)open_log(&bed->run, false);
            bool crashed = dead(&bed->run);
            sim_node_heal(bed->run.node);
            if (!crashed) logs_abandon(bed->run.rig->logs);
        }
        bed_crash(bed, SIM_CRASH_WORST);
        assert_true(start(&bed->run) && open_log(&bed->run, false));
        assert_int_equal(log_end_assigned(bed->run.log), 28);
        bed_good(bed);
        bed_free(bed);
    }
}

/* K8: the clean mark goes before the first write, and none is written by a start that failed. */
static void k8_clean_mark(void **state)
{
    (void)state;
    struct bed *bed = bed_new(8);
    bed_fill(bed, 2);
    stop(&bed->run);
    struct disk_path mark = disk_join(bed->run.rig->dir, ".kafka_cleanshutdown");
    struct io_stat stat;
    assert_int_equal(io_disk_stat(bed->run.rig->io, mark.text, &stat), 0);
    assert_true(start(&bed->run));
    assert_int_equal(io_disk_stat(bed->run.rig->io, mark.text, &stat), -ENOENT);
    bed_crash(bed, SIM_CRASH_WORST);
    assert_int_equal(io_disk_stat(bed->run.rig->io, mark.text, &stat), -ENOENT);
    assert_true(start(&bed->run)); /* Stopped before all is recovered: no mark. */
    logs_stop(bed->run.rig->logs);
    logs_close(bed->run.rig->logs, 1);
    assert_int_equal(io_disk_stat(bed->run.rig->io, mark.text, &stat), -ENOENT);
    bed_free(bed);
}

/* X1: of a producer's last five batches a kill forgets none; a clean stop keeps the newest, which
 * is all that Kafka's snapshot has room for, and a retry of an older one is out of order. */
static void x1_producers_after_a_restart(void **state)
{
    (void)state;
    for (int clean = 0; clean < 2; clean++) {
        struct bed *bed = bed_new(14);
        bed->run.rig->config.segment_bytes = 1 << 20;
        log_configure(bed->run.log, &bed->run.rig->config);
        struct rig_batch batches[5];
        int64_t offsets[5];
        for (int i = 0; i < 5; i++) {
            bed_fill(bed, 1);
            batches[i] = bed->model.last;
            offsets[i] = bed->model.last_offset;
        }
        if (clean)
            stop(&bed->run);
        else
            bed_crash(bed, SIM_CRASH_WORST);
        bed->run.rig->config.segment_bytes = 1 << 20;
        assert_true(start(&bed->run) && open_log(&bed->run, false));
        for (int i = 0; i < 5; i++) {
            struct log_appended out;
            int result = rig_append_buf(bed->run.log, rig_batch(bed->run.rig, &batches[i]), &out);
            assert_int_equal(result, clean && i < 4 ? LOG_E_SEQUENCE : LOG_DUPLICATE);
            if (result == LOG_DUPLICATE) assert_int_equal(out.offset_first, offsets[i]);
        }
        bed_free(bed);
    }
}

/* ---- D: disks -------------------------------------------------------------------------------- */

/* D1, D2: one failed sync ends the directory, though the next sync would say yes. */
static void d1_d2_sync_fails_once(void **state)
{
    (void)state;
    struct bed *bed = bed_new(9);
    bed_fill(bed, 2);
    bed_fault(bed, SIM_CALL_SYNC, -EIO);
    assert_true(append(&bed->run, &(struct rig_batch){.count = 1, .value_bytes = 10}));
    settle(&bed->run);
    assert_int_equal(bed_info(bed).error, -EIO);
    assert_int_equal(log_end_durable(bed->run.log), 4);
    struct log_appended out;
    struct rig_batch what = {.count = 1};
    for (int i = 0; i < 5; i++) {
        assert_true(rig_append_buf(bed->run.log, rig_batch(bed->run.rig, &what), &out) < 0);
        settle(&bed->run);
    }
    assert_int_equal(log_end_durable(bed->run.log), 4);
    bed_free(bed);
}

/* D3, D7, D12: a write that fails for other reasons than space ends the directory; nothing of it
 * is acknowledged. A quota is a full disk. */
static void d3_d7_d12_writes_fail(void **state)
{
    (void)state;
    static const int errors[] = {-EIO, -EROFS, -EFBIG, -EACCES, -ENOENT};
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        struct bed *bed = bed_new(10);
        bed_fill(bed, 2);
        sim_node_fault(bed->run.node, &(struct sim_fault){.kind = SIM_FAULT_TORN,
                                                          .calls = SIM_CALL_WRITE,
                                                          .error = errors[i]});
        bed->run.trouble = true;
        assert_true(append(&bed->run, &(struct rig_batch){.count = 1, .value_bytes = 100}));
        settle(&bed->run);
        assert_int_equal(bed_info(bed).error, errors[i]);
        assert_int_equal(log_end_durable(bed->run.log), 4);
        bed_free(bed);
    }
    struct bed *bed = bed_new(10);
    bed_fill(bed, 2);
    bed_fault(bed, SIM_CALL_WRITE, -EDQUOT);
    assert_true(append(&bed->run, &(struct rig_batch){.count = 1, .value_bytes = 100}));
    settle(&bed->run);
    assert_int_equal(bed_info(bed).error, 0);
    assert_int_equal(log_end_durable(bed->run.log), 5); /* The ballast was given for it. */
    bed_free(bed);
}

static void bed_full(struct bed *bed, uint32_t calls)
{
    sim_node_fault(bed->run.node,
                   &(struct sim_fault){.calls = calls, .error = -ENOSPC, .for_good = true});
    bed->run.trouble = true;
}

/* A stop that something keeps: it ends by giving the directory up, in time and in few turns. */
static void bed_stop_given_up(struct bed *bed, int error)
{
    for (int i = 0; i < 50; i++)
        rig_turn(bed->run.rig);
    assert_false(logs_idle(bed->run.rig->logs));
    int64_t began_ms = io_now_ms(bed->run.rig->io);
    logs_stop(bed->run.rig->logs);
    for (int i = 0; i < 10000 && !logs_idle(bed->run.rig->logs); i++)
        rig_turn(bed->run.rig);
    assert_true(logs_idle(bed->run.rig->logs));
    assert_true(io_now_ms(bed->run.rig->io) - began_ms < 15000);
    assert_int_equal(bed_info(bed).error, error);
    sim_node_heal(bed->run.node);
}

/* D4: a stop on a disk that stays full ends after a few tries, without the clean mark; what was
 * durable is there afterwards. */
static void d4_stop_on_a_full_disk(void **state)
{
    (void)state;
    struct bed *bed = bed_new(13);
    bed_fill(bed, 2);
    bed_full(bed, SIM_CALL_WRITE | SIM_CALL_RESERVE);
    assert_true(append(&bed->run, &(struct rig_batch){.count = 1, .value_bytes = 100}));
    bed_stop_given_up(bed, -ENOSPC);
    stop(&bed->run);
    assert_true(start(&bed->run) && open_log(&bed->run, false));
    assert_true(log_end_assigned(bed->run.log) >= 4);
    bed_good(bed);
    bed_free(bed);
}

/* D4, when not even the log's folder finds room (seed 1495 of the simulator). */
static void d4_stop_without_room_for_a_folder(void **state)
{
    (void)state;
    struct bed *bed = bed_new(14);
    bed_full(bed, SIM_CALL_WRITE | SIM_CALL_RESERVE);
    assert_true(append(&bed->run, &(struct rig_batch){.count = 1, .value_bytes = 100}));
    bed_stop_given_up(bed, -ENOSPC);
    stop(&bed->run);
    assert_true(start(&bed->run) && open_log(&bed->run, false));
    bed_good(bed);
    bed_fill(bed, 1);
    bed_free(bed);
}

/* D4, when a deleted log's folder finds no room for its new name. */
static void d4_stop_without_room_for_a_name(void **state)
{
    (void)state;
    struct bed *bed = bed_new(15);
    bed_fill(bed, 2);
    bed_full(bed, SIM_CALL_RENAME | SIM_CALL_RESERVE);
    struct log_task task = {.done = task_over, .result = LOG_LATER};
    logs_delete(bed->run.rig->logs, bed->run.log, &task);
    bed->run.log = NULL;
    bed_stop_given_up(bed, -ENOSPC);
    assert_true(task.result < 0);
    bed_free(bed);
}

/* A disk that has room again is seen by the next try, however often others fail meanwhile. */
static void d4_room_for_a_folder_again(void **state)
{
    (void)state;
    struct bed *bed = bed_new(16);
    bed_full(bed, SIM_CALL_WRITE | SIM_CALL_RESERVE);
    assert_true(append(&bed->run, &(struct rig_batch){.count = 1, .value_bytes = 100}));
    int64_t began_ms = io_now_ms(bed->run.rig->io);
    int turns = 0;
    for (; io_now_ms(bed->run.rig->io) < began_ms + 5000; turns++)
        rig_turn(bed->run.rig);
    assert_true(turns < 3000); /* It waits; it does not spin. */
    assert_true(bed_info(bed).full);
    sim_node_heal(bed->run.node);
    for (int i = 0; i < 500 && bed_info(bed).full; i++)
        rig_turn(bed->run.rig);
    assert_false(bed_info(bed).full);
    settle(&bed->run);
    assert_int_equal(log_end_durable(bed->run.log), 1);
    bed_free(bed);
}

/* M: a stop without memory ends after a while. */
static void stop_without_memory(void **state)
{
    (void)state;
    struct bed *bed = bed_new(17);
    assert_true(append(&bed->run, &(struct rig_batch){.count = 1, .value_bytes = 100}));
    sim_node_fail_memory(bed->run.node, 1, true);
    bed->run.trouble = true;
    bed_stop_given_up(bed, -EAGAIN);
    bed_free(bed);
}

/* D8: a sector that cannot be read costs this read only. */
static void d8_read_fails(void **state)
{
    (void)state;
    struct bed *bed = bed_new(11);
    bed_fill(bed, 14);
    stop(&bed->run);
    assert_true(start(&bed->run) && open_log(&bed->run, false));
    bed_fault(bed, SIM_CALL_READ, -EIO);
    struct log_read in = {0, INT64_MAX, 1000, true};
    struct log_range range;
    assert_int_equal(rig_read(bed->run.rig, bed->run.log, &in, &range), -EIO);
    assert_int_equal(bed_info(bed).error, 0);
    bed_good(bed);
    bed_fill(bed, 1);
    bed_free(bed);
}

/* D9, D10: while a sync takes half a minute nothing blocks, reads go on, and what is not durable is
 * bounded: then appends are told to wait. */
static void d9_d10_slow_sync(void **state)
{
    (void)state;
    struct bed *bed = bed_new(12);
    bed_fill(bed, 2);
    sim_node_fault(
        bed->run.node,
        &(struct sim_fault){.kind = SIM_FAULT_STALL, .calls = SIM_CALL_SYNC, .stall_ms = 30000});
    struct rig_batch what = {.count = 1, .value_bytes = 900};
    struct log_appended out;
    int result = LOG_OK;
    int64_t began_ms = io_now_ms(bed->run.rig->io);
    for (int i = 0; i < 20000 && result == LOG_OK; i++) {
        result = rig_append_buf(bed->run.log, rig_batch(bed->run.rig, &what), &out);
        if (i % 16 == 0) rig_turn(bed->run.rig);
    }
    assert_int_equal(result, LOG_E_BUSY);
    assert_true(bed_info(bed).unsynced_bytes <= 5u << 20);
    assert_int_equal(log_end_durable(bed->run.log), 4);
    assert_true(io_now_ms(bed->run.rig->io) - began_ms < 30000);
    struct log_read in = {0, INT64_MAX, 1000, true};
    struct log_range range;
    assert_int_equal(rig_read(bed->run.rig, bed->run.log, &in, &range), LOG_OK);
    log_range_release(&range);
    for (int i = 0; i < 100000 && !logs_idle(bed->run.rig->logs); i++)
        rig_turn(bed->run.rig);
    assert_int_equal(log_end_durable(bed->run.log), log_end_assigned(bed->run.log));
    assert_int_equal(rig_append_buf(bed->run.log, rig_batch(bed->run.rig, &what), &out), LOG_OK);
    bed_free(bed);
}

/* D13: a filesystem without fallocate() is no failure. */
static void d13_no_reservation(void **state)
{
    (void)state;
    struct bed *bed = bed_new(13);
    sim_node_fault(
        bed->run.node,
        &(struct sim_fault){.calls = SIM_CALL_RESERVE, .error = -EOPNOTSUPP, .for_good = true});
    bed->run.rig->config.preallocate = true;
    log_configure(bed->run.log, &bed->run.rig->config);
    bed_fill(bed, 14);
    stop(&bed->run);
    assert_true(start(&bed->run) && open_log(&bed->run, false));
    assert_int_equal(bed_info(bed).error, 0);
    bed_good(bed);
    bed_free(bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c4_control_batch_of_a_client),
        cmocka_unit_test(s3_cut_at_every_byte),
        cmocka_unit_test(s5_s6_indexes),
        cmocka_unit_test(s7_snapshots),
        cmocka_unit_test(s8_epochs),
        cmocka_unit_test(s9_identity),
        cmocka_unit_test_setup_teardown(s10_two_processes, rig_open, rig_close),
        cmocka_unit_test(s12_offsets_far_apart),
        cmocka_unit_test_setup_teardown(s13_file_above_2_gib, rig_open, rig_close),
        cmocka_unit_test(k7_k11_crash_in_recovery),
        cmocka_unit_test(k8_clean_mark),
        cmocka_unit_test(x1_producers_after_a_restart),
        cmocka_unit_test(d1_d2_sync_fails_once),
        cmocka_unit_test(d3_d7_d12_writes_fail),
        cmocka_unit_test(d4_stop_on_a_full_disk),
        cmocka_unit_test(d4_stop_without_room_for_a_folder),
        cmocka_unit_test(d4_stop_without_room_for_a_name),
        cmocka_unit_test(d4_room_for_a_folder_again),
        cmocka_unit_test(stop_without_memory),
        cmocka_unit_test(d8_read_fails),
        cmocka_unit_test(d9_d10_slow_sync),
        cmocka_unit_test(d13_no_reservation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
