/* load_test.c - what a start finds of one log on real files: after a stop, after a crash, damaged,
 * with what others left there. Numbers are those of the format's test list (docs/cases.md). */
#include "log/rig_test.h"
#include "log/state.h"

static void clean_stop_and_start(void **state)
{
    struct rig *rig = *state;
    rig_fill(rig, rig_log(rig), 500, 200);
    log_set_high_watermark(rig_log(rig), 400);
    rig_stop(rig);
    rig_start(rig);
    struct log_dir_info info;
    logs_dir_info(rig->logs, 0, &info);
    assert_true(info.clean);
    assert_int_equal(info.partitions, 1);
    assert_int_equal(info.unrecovered, 0);
    assert_int_equal(logs_previous_broker_epoch(rig->logs), 77);
    struct log *log = rig_log(rig);
    assert_int_equal(log_end_assigned(log), 500);
    assert_int_equal(log_end_durable(log), 500);
    assert_int_equal(log_high_watermark(log), 400);
    assert_int_equal(log_recovered(log)->segments, 0);
    assert_int_equal(log_epoch_latest(log), 0);
    assert_int_equal(rig_read_all(rig, log, 0), 500);
    assert_int_equal(rig_read_all(rig, log, 333), 167);
    assert_int_equal(rig_append(rig, log, &(struct rig_batch){.count = 3}), 500);
    rig_settle(rig);
    assert_int_equal(log_end_durable(log), 503);
}

static void crash_and_recovery(void **state)
{
    struct rig *rig = *state;
    rig_fill(rig, rig_log(rig), 300, 200);
    rig_crash(rig);
    rig_start(rig);
    struct log_dir_info info;
    logs_dir_info(rig->logs, 0, &info);
    assert_false(info.clean);
    assert_int_equal(info.unrecovered, 1);
    struct log *log = rig_log(rig);
    assert_int_equal(log_recovered(log)->segments, 1);
    assert_int_equal(log_recovered(log)->scanned_bytes, 60000);
    assert_int_equal(log_recovered(log)->cut_bytes, 0);
    assert_int_equal(log_end_assigned(log), 300);
    assert_int_equal(log_epoch_latest(log), 0);
    assert_int_equal(rig_read_all(rig, log, 0), 300);
    logs_dir_info(rig->logs, 0, &info);
    assert_int_equal(info.unrecovered, 0);
}

/* Case 74 and S3: a torn tail of every length is cut, and nothing else. */
static void torn_tail_is_cut(void **state)
{
    struct rig *rig = *state;
    rig_fill(rig, rig_log(rig), 3, 100);
    rig_crash(rig);
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/t-0/00000000000000000000.log", rig->dir);
    for (int size = 299; size >= 0; size -= 7) {
        assert_int_equal(truncate(path, size), 0);
        rig_start(rig);
        struct log *log = rig_log(rig);
        assert_int_equal(log_end_assigned(log), size / 100);
        assert_int_equal(log_size_bytes(log), size / 100 * 100);
        assert_int_equal(log_recovered(log)->cut_bytes, size % 100);
        assert_int_equal(rig_read_all(rig, log, 0), size / 100);
        rig_crash(rig);
        assert_int_equal(rig_file_size(rig, "00000000000000000000.log"), size / 100 * 100);
    }
}

/* Case 75: damage above the recovery point cuts the log there. */
static void flipped_byte(void **state)
{
    struct rig *rig = *state;
    rig->config.segment_bytes = 1000;
    rig_fill(rig, rig_log(rig), 30, 100);
    rig_crash(rig);
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/t-0/00000000000000000010.log", rig->dir);
    struct io_file *file;
    assert_int_equal(io_disk_open(rig->io, path, IO_OPEN_WRITE, &file), 0);
    uint8_t byte;
    assert_int_equal(io_disk_read(rig->io, file, &byte, 1, 570), 1);
    byte ^= 0x10;
    assert_int_equal(io_disk_write(rig->io, file, &byte, 1, 570), 1);
    io_disk_close(rig->io, file);
    rig_start(rig);
    struct log *log = rig_log(rig);
    assert_int_equal(log_end_assigned(log), 15);
    assert_int_equal(log_recovered(log)->cut_bytes, 500 + 1000);
    assert_int_equal(log_segments(log), 2);
    assert_int_equal(rig_file_size(rig, "00000000000000000020.log"), -1);
    assert_int_equal(rig_append(rig, log, &(struct rig_batch){.count = 1}), 15);
    rig_settle(rig);
    assert_int_equal(rig_read_all(rig, log, 0), 16);
}

/* Case 77 and S5: indexes that are missing, cut, or another segment's. */
static void bad_indexes_are_made_anew(void **state)
{
    struct rig *rig = *state;
    rig->config.segment_bytes = 20000;
    rig_fill(rig, rig_log(rig), 500, 100);
    rig_stop(rig);
    static const char *const names[] = {"00000000000000000000.index",
                                        "00000000000000000000.timeindex",
                                        "00000000000000000200.index", "00000000000000000400.index",
                                        "00000000000000000400.timeindex"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        for (int how = 0; how < 3; how++) {
            struct disk_bytes before = rig_file(rig, names[i]);
            char path[160];
            (void)snprintf(path, sizeof(path), "%s/t-0/%s", rig->dir, names[i]);
            if (how == 0) assert_int_equal(unlink(path), 0);
            if (how == 1) assert_int_equal(truncate(path, 3 * before.size_bytes), 0); /* Zeros. */
            if (how == 2) {
                uint8_t *bad = malloc(before.size_bytes);
                memset(bad, 0x7f, before.size_bytes);
                struct view bytes = view_of(bad, before.size_bytes);
                assert_int_equal(disk_write_synced(rig->io, path, bytes), 0);
                free(bad);
            }
            rig_start(rig);
            struct log *log = rig_log(rig);
            assert_int_equal(log_end_assigned(log), 500);
            assert_int_equal(rig_read_all(rig, log, 77), 423);
            struct log_query query;
            assert_int_equal(rig_ask(rig, log, 1300, &query), LOG_OK);
            assert_int_equal(query.offset, 300);
            rig_stop(rig);
            disk_free(&rig->mem, &before);
        }
    }
}

/* Write a file of the partition's folder. */
static void place(struct rig *rig, const char *name, struct view bytes)
{
    struct disk_path path = disk_join(disk_join(rig->dir, "t-0").text, name);
    assert_int_equal(disk_write_synced(rig->io, path.text, bytes), 0);
}

/* The epochs' file does not hold, and a part of the segments is recovered: those of all segments
 * are found again. */
static void epochs_of_before_the_recovery_point(void **state)
{
    struct rig *rig = *state;
    rig->config.segment_bytes = 1000;
    for (int32_t epoch = 1; epoch <= 3; epoch++) {
        if (epoch == 3) {
            rig_stop(rig);
            rig_start(rig);
        }
        struct log *log = rig_log(rig);
        assert_int_equal(log_epoch_begin(log, epoch), LOG_OK);
        rig_fill(rig, log, 10, 100);
    }
    rig_crash(rig);
    place(rig, "leader-epoch-checkpoint", VIEW_EMPTY);
    rig_start(rig);
    struct log *log = rig_log(rig);
    assert_in_range(log_recovered(log)->segments, 1, 2);
    for (int32_t epoch = 1; epoch <= 3; epoch++) {
        struct log_epoch_end end = log_epoch_end(log, epoch);
        assert_int_equal(end.epoch, epoch);
        assert_int_equal(end.end, 10 * epoch);
        assert_int_equal(log_epoch_at(log, 10 * epoch - 1), epoch);
    }
}

/* A memory that has none for one allocation. Jobs run on a thread of their own. */
static void *(*scarce_get)(struct mem *mem, size_t size_bytes);
static int64_t scarce_left; /* Allocations before that one; below 0: it was. */

static void *scarce(struct mem *mem, size_t size_bytes)
{
    return __atomic_fetch_sub(&scarce_left, 1, __ATOMIC_RELAXED) == 0 ? NULL
                                                                      : scarce_get(mem, size_bytes);
}

/* Any one allocation fails between a clean stop and the log's being open: what needed it fails, and
 * is done again. No file is taken for damaged, no directory for a failing one. */
static void no_memory_is_no_damage(void **state)
{
    struct rig *rig = *state;
    rig->config.segment_bytes = 1000;
    for (int32_t epoch = 1; epoch <= 3; epoch++) {
        struct log *log = rig_log(rig);
        assert_int_equal(log_epoch_begin(log, epoch), LOG_OK);
        rig_fill(rig, log, 10, 100);
    }
    rig_stop(rig);
    scarce_get = rig->mem.get;
    void *(*take)(struct mem *, size_t) = rig->mem.take;
    rig->mem.get = scarce;
    rig->mem.take = NULL;
    int64_t nth = -1, struck = 0;
    do {
        __atomic_store_n(&scarce_left, ++nth, __ATOMIC_RELAXED);
        const char *const paths[] = {rig->dir};
        rig->options.paths = paths;
        int started = logs_open(rig->io, &rig->options, &rig->logs);
        assert_true(started == LOGS_OK || started == LOGS_E_MEMORY);
        if (started != LOGS_OK) {
            struck++;
            rig_start(rig);
        }
        struct logs_replica in = {.topic = VIEW("t"), .directory = LOG_DIRECTORY_ANY};
        struct log *log = NULL;
        int result = LOG_LATER;
        for (int i = 0; i < 10000 && result != LOG_OK; i++) {
            result = log == NULL ? logs_replica(rig->logs, &in, &log) : LOG_OK;
            if (result == LOG_OK) result = log_open(log);
            assert_true(result == LOG_OK || result == LOG_LATER || result == LOG_E_MEMORY);
            struck += result == LOG_E_MEMORY;
            rig_turn(rig);
        }
        assert_int_equal(result, LOG_OK);
        assert_int_equal(log_recovered(log)->index_errors, 0);
        for (int32_t epoch = 1; epoch <= 3; epoch++)
            assert_int_equal(log_epoch_end(log, epoch).end, 10 * epoch);
        rig_settle(rig);
        bool over = __atomic_exchange_n(&scarce_left, -1, __ATOMIC_RELAXED) >= 0;
        rig_stop(rig);
        if (over) break;
    } while (nth < 1000);
    assert_in_range(struck, 10, nth);
    assert_null(strstr(rig->said, "offline"));
    rig->mem.get = scarce_get;
    rig->mem.take = take;
    rig_start(rig);
}

/* A recovery point above what the epochs' file knows would lose an epoch in a crash: also while the
 * file is being written. */
static void recovery_point_waits_for_the_epochs_file(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    rig_fill(rig, log, 10, 100);
    rig_stop(rig);
    rig_start(rig);
    log = rig_log(rig);
    assert_int_equal(log_epoch_begin(log, 2), LOG_OK);
    rig_fill(rig, log, 10, 100);
    assert_int_equal(log_recovery_point(log), 10);
    log_epochs_flush(log);
    for (int i = 0; i < 10000 && log->epochs_flushing; i++) {
        assert_int_equal(log_recovery_point(log), 10);
        rig_turn(rig);
    }
    assert_int_equal(log_recovery_point(log), 20);
}

/* S4: damage below the recovery point is no torn tail: the log is fenced, its files stay. */
static void damage_below_is_fenced(void **state)
{
    struct rig *rig = *state;
    rig_fill(rig, rig_log(rig), 30, 100);
    rig_stop(rig);
    rig_start(rig);
    rig_crash(rig); /* No mark, and a recovery point of 30. */
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/t-0/00000000000000000000.log", rig->dir);
    struct io_file *file;
    assert_int_equal(io_disk_open(rig->io, path, IO_OPEN_WRITE, &file), 0);
    assert_int_equal(io_disk_write(rig->io, file, "X", 1, 1570), 1);
    io_disk_close(rig->io, file);
    rig_start(rig);
    struct log *log = logs_find(rig->logs, VIEW("t"), 0);
    int result = LOG_LATER;
    for (int i = 0; i < 1000 && (result = log_open(log)) == LOG_LATER; i++)
        rig_turn(rig);
    assert_int_equal(result, LOG_E_DAMAGED);
    assert_int_equal(rig_file_size(rig, "00000000000000000000.log"), 3000);
    rig_stop(rig);
    rig_start(rig);
    struct log_dir_info info;
    logs_dir_info(rig->logs, 0, &info);
    assert_false(info.clean); /* A log that could not be opened earns no mark. */
}

/* What Kafka's compaction of the segments 0 and 10 leaves just before its renames: every second of
 * their batches in one file, with indexes, as NAME.swap. */
static void place_swaps(struct rig *rig)
{
    uint8_t bytes[1000];
    struct disk_bytes files[] = {rig_file(rig, "00000000000000000000.log"),
                                 rig_file(rig, "00000000000000000010.log")};
    for (uint32_t i = 0; i < 10; i++)
        memcpy(bytes + 100 * i, files[i / 5].data + 200 * (i % 5) + 100, 100);
    place(rig, "00000000000000000000.log.swap", view_of(bytes, sizeof(bytes)));
    place(rig, "00000000000000000000.index.swap", VIEW_EMPTY);
    place(rig, "00000000000000000000.timeindex.swap", VIEW_EMPTY);
    for (uint32_t i = 0; i < ARRAY_SIZE(files); i++)
        disk_free(&rig->mem, &files[i]);
}

/* Case 78: a compaction that Kafka did not end. Its swaps count, unless something is still being
 * cleaned: then nothing of it does. */
static void leftovers_of_kafkas_compaction(void **state)
{
    struct rig *rig = *state;
    for (int split = 0; split < 2; split++) {
        rig->config.segment_bytes = 1000;
        if (split == 0) rig_fill(rig, rig_log(rig), 25, 100);
        rig_stop(rig);
        if (split == 0) place(rig, "00000000000000000000.log.cleaned", VIEW("half"));
        place_swaps(rig);
        rig_start(rig);
        struct log *log = rig_log(rig);
        assert_int_equal(log_segments(log), split == 0 ? 3 : 2);
        assert_int_equal(rig_read_all(rig, log, 0), split == 0 ? 25 : 16);
        assert_int_equal(rig_file_size(rig, "00000000000000000000.log"), 1000);
        assert_int_equal(rig_file_size(rig, "00000000000000000010.log"), split == 0 ? 1000 : -1);
        assert_int_equal(rig_file_size(rig, "00000000000000000010.index"), split == 0 ? 0 : -1);
        static const char *const left[] = {".log.swap", ".index.swap", ".timeindex.swap",
                                           ".log.cleaned"};
        for (uint32_t i = 0; i < ARRAY_SIZE(left); i++) {
            char name[64];
            (void)snprintf(name, sizeof(name), "00000000000000000000%s", left[i]);
            assert_int_equal(rig_file_size(rig, name), -1);
        }
        assert_int_equal(rig_append(rig, log, &(struct rig_batch){.count = 1}), 25 + split);
    }
    rig_settle(rig);
    assert_int_equal(rig_read_all(rig, rig_log(rig), 4), 15); /* 4 is gone: from 5 on. */
}

/* Case 81: a checkpoint that does not hold, or has nothing in it, is none; a stop that was not
 * clean then has everything looked at. Of one with nothing in it there is nothing to say. */
static void checkpoints_that_do_not_hold(void **state)
{
    struct rig *rig = *state;
    static const char *const texts[] = {"0\n2\nt 0 25\n", "", "0\n1\nt 0 25\n"};
    rig->config.segment_bytes = 1000;
    rig_fill(rig, rig_log(rig), 25, 100);
    rig_stop(rig);
    rig_start(rig);
    for (uint32_t i = 0; i < ARRAY_SIZE(texts); i++) {
        rig_crash(rig);
        struct disk_path path = disk_join(rig->dir, "recovery-point-offset-checkpoint");
        assert_int_equal(disk_write_synced(rig->io, path.text, view_of_string(texts[i])), 0);
        rig->said[0] = '\0';
        rig_start(rig);
        struct log *log = rig_log(rig);
        assert_int_equal(strstr(rig->said, path.text) != NULL, i == 0);
        assert_int_equal(log_recovered(log)->segments, i < 2 ? 3 : 1);
        assert_int_equal(rig_read_all(rig, log, 0), 25);
    }
}

int main(void)
{
#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)
    const struct CMUnitTest tests[] = {
        LOG_TEST(clean_stop_and_start),
        LOG_TEST(crash_and_recovery),
        LOG_TEST(torn_tail_is_cut),
        LOG_TEST(flipped_byte),
        LOG_TEST(bad_indexes_are_made_anew),
        LOG_TEST(epochs_of_before_the_recovery_point),
        LOG_TEST(no_memory_is_no_damage),
        LOG_TEST(recovery_point_waits_for_the_epochs_file),
        LOG_TEST(damage_below_is_fenced),
        LOG_TEST(leftovers_of_kafkas_compaction),
        LOG_TEST(checkpoints_that_do_not_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
