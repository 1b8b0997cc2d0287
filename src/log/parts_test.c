/* parts_test.c - three shards on one directory: who opens what, one set of checkpoints, one mark.
 */
#include "log/rig_test.h"

#include "log/checkpoint.h"
#include "log/log_mark.h"

enum { PARTS = 3 };

struct parts {
    struct rig rig; /* Its `logs` is unused. */
    struct logs *logs[PARTS];
    struct logs_part part[PARTS];
    uint32_t told;
};

struct owner {
    struct parts *parts;
    uint32_t index;
};
static struct owner owners[PARTS]; /* The contexts of the one rig at a time. */

static bool owns(void *context, struct view topic, int32_t partition)
{
    const struct owner *owner = context;
    (void)topic;
    return (uint32_t)partition % PARTS == owner->index;
}

static void tell(void *context, const struct logs_lines *lines)
{
    const struct owner *owner = context;
    owner->parts->told++;
    assert_int_equal(lines->part, owner->index);
    assert_true(logs_take_lines(owner->parts->logs[0], lines));
}

static void start(struct parts *parts)
{
    for (uint32_t i = 0; i < PARTS; i++) {
        owners[i] = (struct owner){parts, i};
        parts->part[i] = (struct logs_part){.index = i,
                                            .count = PARTS,
                                            .first = parts->logs[0],
                                            .owns = owns,
                                            .tell = tell,
                                            .context = &owners[i]};
        parts->rig.options.part = &parts->part[i];
        rig_start(&parts->rig);
        parts->logs[i] = parts->rig.logs;
    }
}

static void turn_all(struct parts *parts)
{
    for (uint32_t i = 0; i < PARTS; i++)
        (void)logs_turn(parts->logs[i]);
    io_turn(parts->rig.io, io_now_ms(parts->rig.io) + 1);
}

static bool all_idle(const struct parts *parts)
{
    for (uint32_t i = 0; i < PARTS; i++)
        if (!logs_idle(parts->logs[i])) return false;
    return true;
}

static void stop(struct parts *parts)
{
    for (uint32_t i = 0; i < PARTS; i++)
        logs_stop(parts->logs[i]);
    do
        turn_all(parts);
    while (!all_idle(parts));
    for (uint32_t i = PARTS - 1; i > 0; i--)
        logs_close_part(parts->logs[i]);
    logs_close(parts->logs[0], 77);
}

static void rig_begin(struct parts *parts)
{
    *parts = (struct parts){.rig = {.config = LOG_CONFIG_DEFAULT}};
    (void)snprintf(parts->rig.dir, sizeof(parts->rig.dir), "/tmp/dohle-parts-XXXXXX");
    assert_non_null(mkdtemp(parts->rig.dir));
    memory_init(&parts->rig.mem, 0);
    parts->rig.io = posix_new(&parts->rig.mem);
    parts->rig.config.timestamp_after_max_ms = INT64_MAX;
    parts->rig.config.segment_ms = INT64_MAX;
    parts->rig.config.retention_ms = LOG_RETENTION_UNLIMITED;
    struct log_meta meta = {.cluster_id = "c", .node_id = 1, .version = 1};
    meta.directory_id = io_random_uuid(parts->rig.io);
    assert_int_equal(log_meta_write(parts->rig.io, parts->rig.dir, &meta), 0);
}

static void rig_end(struct parts *parts)
{
    rig_remove(parts->rig.io, parts->rig.dir);
    io_free(parts->rig.io);
    assert_int_equal(parts->rig.mem.used_bytes, 0);
}

/* The log of a partition, open, on its shard; NULL if it is lost. */
static struct log *open_log(struct parts *parts, int32_t partition, bool is_new)
{
    struct logs_replica want = {.topic = VIEW("t"),
                                .partition = partition,
                                .config = &parts->rig.config,
                                .directory = LOG_DIRECTORY_ANY,
                                .is_new = is_new};
    struct log *log = NULL;
    int result = logs_replica(parts->logs[(uint32_t)partition % PARTS], &want, &log);
    if (result == LOG_E_DAMAGED) return NULL;
    assert_int_equal(result, LOG_OK);
    while ((result = log_open(log)) == LOG_LATER)
        turn_all(parts);
    assert_int_equal(result, LOG_OK);
    return log;
}

static void append(struct parts *parts, struct log *log, uint32_t records)
{
    struct rig_batch what = {.count = 1, .timestamp_ms = 1000, .value_bytes = 10};
    for (uint32_t i = 0; i < records; i++)
        rig_append(&parts->rig, log, &what);
    do
        turn_all(parts);
    while (log_end_durable(log) < log_end_assigned(log));
}

/* The number of a partition in a checkpoint file; -1: it is not there. */
static int64_t entry(struct parts *parts, const char *name, int32_t partition)
{
    struct disk_bytes bytes;
    int64_t found = -1;
    if (disk_read_whole(parts->rig.io, &parts->rig.mem, disk_join(parts->rig.dir, name).text,
                        CHECKPOINT_BYTES_MAX, &bytes) != 0)
        return -1;
    struct view text = view_of(bytes.data, bytes.size_bytes);
    assert_true(checkpoint_valid(text, true));
    struct checkpoint_reader reader = checkpoint_read(text, true);
    struct checkpoint_entry one;
    while (checkpoint_next(&reader, &one))
        if (one.number == partition) found = one.offset;
    disk_free(&parts->rig.mem, &bytes);
    return found;
}

static void one_mark_and_all_lines(void **state)
{
    (void)state;
    struct parts parts;
    rig_begin(&parts);
    start(&parts);
    for (int32_t p = 0; p < 6; p++)
        append(&parts, open_log(&parts, p, true), (uint32_t)p + 1);
    stop(&parts);
    for (int32_t p = 0; p < 6; p++)
        assert_int_equal(entry(&parts, CHECKPOINT_RECOVERY, p), p + 1);
    struct io_stat stat;
    assert_int_equal(
        io_disk_stat(parts.rig.io, disk_join(parts.rig.dir, LOG_MARK_NAME).text, &stat), 0);
    assert_true(io_disk_stat(parts.rig.io, disk_join(parts.rig.dir, ".dohle-ballast-1").text,
                             &stat) == -ENOENT);

    /* Each finds its own again, clean, and knows what the mark said. */
    start(&parts);
    assert_int_equal(logs_previous_broker_epoch(parts.logs[0]), 77);
    for (uint32_t i = 0; i < PARTS; i++) {
        struct log_dir_info info;
        logs_dir_info(parts.logs[i], 0, &info);
        assert_int_equal(info.partitions, 2);
        assert_true(info.clean);
        assert_int_equal(info.unrecovered, 0);
    }
    for (int32_t p = 0; p < 6; p++)
        assert_int_equal(log_end_assigned(open_log(&parts, p, false)), p + 1);
    stop(&parts);
    rig_end(&parts);
}

/* A checkpoint of the first keeps what the others know, from the start on; a start moves late. */
static void lines_of_others(void **state)
{
    (void)state;
    struct parts parts;
    rig_begin(&parts);
    parts.rig.options.checkpoint_interval_ms = 20;
    start(&parts);
    for (int32_t p = 0; p < 3; p++)
        append(&parts, open_log(&parts, p, true), 5);
    int64_t until_ms = io_now_ms(parts.rig.io) + 5000;
    while (entry(&parts, CHECKPOINT_RECOVERY, 2) != 5 && io_now_ms(parts.rig.io) < until_ms)
        turn_all(&parts);
    for (int32_t p = 0; p < 3; p++)
        assert_int_equal(entry(&parts, CHECKPOINT_RECOVERY, p), 5);
    assert_true(parts.told > 0);
    while (!all_idle(&parts))
        turn_all(&parts);
    for (uint32_t i = PARTS; i-- > 0;)
        logs_abandon(parts.logs[i]); /* A crash. */

    /* The first writes its checkpoint before the others have said a word of their own. */
    start(&parts);
    struct log_dir_info info;
    logs_dir_info(parts.logs[2], 0, &info);
    assert_false(info.clean);
    assert_int_equal(info.unrecovered, 1);
    until_ms = io_now_ms(parts.rig.io) + 60;
    while (io_now_ms(parts.rig.io) < until_ms) {
        (void)logs_turn(parts.logs[0]);
        io_turn(parts.rig.io, io_now_ms(parts.rig.io) + 1);
    }
    for (int32_t p = 0; p < 3; p++)
        assert_int_equal(entry(&parts, CHECKPOINT_RECOVERY, p), 5);
    stop(&parts);
    rig_end(&parts);
}

/* A lost partition is lost for its owner alone; one shard that is not clean leaves no mark. */
static void lost_and_unclean(void **state)
{
    (void)state;
    struct parts parts;
    rig_begin(&parts);
    start(&parts);
    for (int32_t p = 0; p < 3; p++)
        append(&parts, open_log(&parts, p, true), 3);
    stop(&parts);
    rig_remove(parts.rig.io, disk_join(parts.rig.dir, "t-1").text);
    start(&parts);
    assert_null(open_log(&parts, 1, false));
    assert_int_equal(log_end_assigned(open_log(&parts, 2, false)), 3);
    logs_dir_fail(parts.logs[2], 0, -EIO);
    stop(&parts);
    struct io_stat stat;
    assert_int_equal(
        io_disk_stat(parts.rig.io, disk_join(parts.rig.dir, LOG_MARK_NAME).text, &stat), -ENOENT);
    rig_end(&parts);
}

/* After a crash one shard's part is not opened: its log is not known, so no mark says that all is
 * well, and what the files say of it stays. */
static void one_part_not_opened(void **state)
{
    (void)state;
    struct parts parts;
    rig_begin(&parts);
    start(&parts);
    append(&parts, open_log(&parts, 2, true), 5);
    stop(&parts);
    start(&parts);
    for (uint32_t i = PARTS; i-- > 0;)
        logs_abandon(parts.logs[i]); /* A crash. */

    start(&parts);
    logs_abandon(parts.logs[2]);
    for (uint32_t i = 0; i < 2; i++)
        logs_stop(parts.logs[i]);
    while (!logs_idle(parts.logs[0]) || !logs_idle(parts.logs[1])) {
        (void)logs_turn(parts.logs[0]);
        (void)logs_turn(parts.logs[1]);
        io_turn(parts.rig.io, io_now_ms(parts.rig.io) + 1);
    }
    logs_close_part(parts.logs[1]);
    logs_close(parts.logs[0], 77);
    struct io_stat stat;
    assert_int_equal(
        io_disk_stat(parts.rig.io, disk_join(parts.rig.dir, LOG_MARK_NAME).text, &stat), -ENOENT);
    assert_int_equal(entry(&parts, CHECKPOINT_RECOVERY, 2), 5);
    rig_end(&parts);
}

/* After a crash nobody has asked for the metadata log: it is not recovered, and no mark says so. */
static void metadata_log_not_asked_for(void **state)
{
    (void)state;
    struct parts parts;
    rig_begin(&parts);
    start(&parts);
    for (uint32_t i = PARTS; i-- > 0;)
        logs_abandon(parts.logs[i]); /* A crash. */
    struct disk_path folder = disk_join(parts.rig.dir, "__cluster_metadata-0");
    assert_int_equal(io_disk_mkdir(parts.rig.io, folder.text), 0);
    start(&parts);
    stop(&parts);
    struct io_stat stat;
    assert_int_equal(
        io_disk_stat(parts.rig.io, disk_join(parts.rig.dir, LOG_MARK_NAME).text, &stat), -ENOENT);
    rig_end(&parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_mark_and_all_lines),     cmocka_unit_test(lines_of_others),
        cmocka_unit_test(lost_and_unclean),           cmocka_unit_test(one_part_not_opened),
        cmocka_unit_test(metadata_log_not_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
