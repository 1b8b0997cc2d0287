/* clean_test.c - compaction: what stays, what goes, and what is written in its place. */
#include "log/legacy_rig_test.h"
#include "log/rig_test.h"

/* Let passes run until there is nothing more to do. */
static void clean(struct rig *rig)
{
    for (int i = 0; i < 60; i++) {
        usleep(1000);
        rig_turn(rig);
    }
    rig_settle(rig);
}

static int compact_open(void **state)
{
    int result = rig_open(state);
    struct rig *rig = *state;
    rig_stop(rig);
    rig->options.cleaner_backoff_ms = 1;
    rig->options.cleaner_map_bytes = 1u << 20;
    rig->config.cleanup_compact = true;
    rig->config.cleanup_delete = false;
    rig->config.min_cleanable_dirty_permil = 1;
    rig->config.file_delete_delay_ms = 0;
    rig_start(rig);
    return result;
}

/* One record "key" with that value ("" for a tombstone), in a batch of its own. */
static void put(struct rig *rig, struct log *log, int32_t key, bool tombstone)
{
    rig_append(rig, log,
               &(struct rig_batch){.count = 1,
                                   .key_from = key,
                                   .value_bytes = 10,
                                   .tombstones = tombstone,
                                   .timestamp_ms = 1700000000000});
}

static void roll(struct rig *rig, struct log *log)
{
    rig_settle(rig);
    assert_int_equal(log_roll(log), LOG_OK);
    rig_settle(rig);
    log_set_high_watermark(log, log_end_assigned(log));
}

/* "offset:key" of every record, batches in brackets with their base and last offset. */
static const char *contents(struct rig *rig, struct log *log, const char *name)
{
    static char text[4096];
    size_t at = 0;
    (void)log;
    struct disk_bytes file = rig_file(rig, name);
    struct batch_scan scan = batch_scan_of(view_of(file.data, file.size_bytes));
    struct compress_work work;
    compress_work_init(&work, &rig->mem);
    struct batch_header header;
    struct view batch;
    text[0] = '\0';
    while (batch_next(&scan, &header, &batch)) {
        assert_int_equal(header.magic, 2);
        assert_true(batch_crc_valid(&header, batch));
        at += (size_t)snprintf(text + at, sizeof(text) - at, "[%lld-%lld%s%s",
                               (long long)header.base_offset, (long long)batch_last_offset(&header),
                               header.attributes & BATCH_CONTROL ? " c" : "",
                               header.attributes & BATCH_DELETE_HORIZON ? " h" : "");
        struct record_iter iter;
        struct record record;
        record_iter_begin(&iter, &work, &header, batch);
        while (record_next(&iter, &record))
            at += (size_t)snprintf(text + at, sizeof(text) - at, " %lld", (long long)record.offset);
        assert_int_equal(record_iter_end(&iter), RECORD_OK);
        at += (size_t)snprintf(text + at, sizeof(text) - at, "]");
    }
    compress_work_free(&work);
    disk_free(&rig->mem, &file);
    return text;
}

#define FIRST "00000000000000000000.log"

/* Case 88: the newest of each key stays, a tombstone gets its time. */
static void newest_of_each_key(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    put(rig, log, 1, false);
    put(rig, log, 2, false);
    put(rig, log, 1, false);
    put(rig, log, 2, true);
    put(rig, log, 3, false);
    roll(rig, log);
    clean(rig);
    assert_string_equal(contents(rig, log, FIRST), "[2-2 2][3-3 h 3][4-4 4]");
    assert_int_equal(log_end_assigned(log), 5);
    struct disk_bytes file = rig_file(rig, FIRST);
    struct batch_header header;
    struct batch_scan scan = batch_scan_of(view_of(file.data, file.size_bytes));
    struct view batch;
    assert_true(batch_next(&scan, &header, &batch));
    assert_true(batch_next(&scan, &header, &batch));
    int64_t horizon = header.base_timestamp;
    int64_t soon = io_wall_ms(rig->io) + 86400000;
    assert_true(horizon <= soon);
    assert_true(horizon > soon - 60000);
    struct record record;
    struct record_iter iter;
    record_iter_begin(&iter, NULL, &header, batch);
    assert_true(record_next(&iter, &record));
    assert_int_equal(record.timestamp_ms, 1700000000000); /* The sum is the true time. */
    (void)record_iter_end(&iter);
    disk_free(&rig->mem, &file);
    struct disk_path path = disk_join(rig->dir, "cleaner-offset-checkpoint");
    rig_settle(rig);
    assert_int_equal(disk_read_whole(rig->io, &rig->mem, path.text, 1000, &file), 0);
    assert_memory_equal(file.data, "0\n1\nt 0 5\n", file.size_bytes);
    disk_free(&rig->mem, &file);
    assert_int_equal(rig_read_all(rig, log, 0), 3);
    rig_stop(rig);
    rig_start(rig);
    log = rig_log(rig);
    assert_int_equal(log_recovered(log)->index_errors, 0);
    assert_int_equal(rig_read_all(rig, log, 0), 3);
    rig_crash(rig);
    rig_start(rig);
    log = rig_log(rig);
    assert_int_equal(rig_read_all(rig, log, 0), 3);
}

/* Case 89: once its time is over, and something new is there to clean, the tombstone goes. */
static void tombstones_go(void **state)
{
    struct rig *rig = *state;
    rig->config.delete_retention_ms = 0;
    struct log *log = rig_log(rig);
    put(rig, log, 1, true);
    put(rig, log, 2, false);
    roll(rig, log);
    clean(rig);
    assert_string_equal(contents(rig, log, FIRST), "[0-0 h 0][1-1 1]");
    put(rig, log, 3, false);
    roll(rig, log);
    usleep(5000);
    clean(rig);
    assert_string_equal(contents(rig, log, FIRST), "[1-1 1][2-2 2]");
    assert_int_equal(log_segments(log), 2); /* Both closed ones are one now. */
}

/* Case 90: the last batch of an active producer stays as a header. */
static void active_producers_keep_their_last(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    rig_append(rig, log,
               &(struct rig_batch){.count = 5, .producer_id = 9, .sequence = 7, .epoch = 2});
    rig_append(rig, log, &(struct rig_batch){.count = 5});
    roll(rig, log);
    clean(rig);
    assert_string_equal(contents(rig, log, FIRST), "[0-4][5-9 5 6 7 8 9]");
    struct disk_bytes file = rig_file(rig, FIRST);
    struct batch_header header;
    assert_int_equal(batch_header_load(view_of(file.data, file.size_bytes), &header), RECORD_OK);
    assert_int_equal(batch_size(&header), 61);
    assert_int_equal(header.base_sequence, 7);
    assert_int_equal(header.producer_epoch, 2);
    assert_int_equal(header.base_timestamp, -1);
    disk_free(&rig->mem, &file);
    struct log_appended out;
    struct rig_batch again = {.count = 5, .producer_id = 9, .sequence = 7, .epoch = 2};
    assert_int_equal(rig_append_buf(log, rig_batch(rig, &again), &out), LOG_DUPLICATE);
    rig_crash(rig); /* And what a recovery reads from it says the same. */
    rig_start(rig);
    log = rig_log(rig);
    assert_int_equal(rig_append_buf(log, rig_batch(rig, &again), &out), LOG_DUPLICATE);
    assert_int_equal(out.offset_first, 0);
}

/* Case 91: an aborted transaction goes in steps, its marker last. */
static void aborted_transactions_go(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    rig_append(rig, log, &(struct rig_batch){.count = 3, .producer_id = 4, .transactional = true});
    rig_marker(rig, log, 4, 0, false);
    rig_append(rig, log,
               &(struct rig_batch){.count = 1, .producer_id = 4, .sequence = 3, .key_from = 50});
    roll(rig, log);
    clean(rig);
    assert_string_equal(contents(rig, log, FIRST), "[3-3 c 3][4-4 4]");
    assert_int_equal(rig_file_size(rig, "00000000000000000000.txnindex"), 34);
    put(rig, log, 60, false);
    roll(rig, log);
    clean(rig);
    assert_string_equal(contents(rig, log, FIRST), "[3-3 c h 3][4-4 4][5-5 5]");
    assert_int_equal(rig_file_size(rig, "00000000000000000000.txnindex"), -1);
    rig->config.delete_retention_ms = 0;
    put(rig, log, 61, false);
    roll(rig, log);
    clean(rig);
    assert_string_equal(contents(rig, log, FIRST), "[3-3 c h 3][4-4 4][5-5 5][6-6 6]");
}

/* Case 91: behind its horizon the marker goes too. */
static void markers_go_behind_their_horizon(void **state)
{
    struct rig *rig = *state;
    rig->config.delete_retention_ms = 0;
    struct log *log = rig_log(rig);
    rig_append(rig, log, &(struct rig_batch){.count = 3, .producer_id = 4, .transactional = true});
    rig_marker(rig, log, 4, 0, false);
    rig_append(rig, log,
               &(struct rig_batch){.count = 1, .producer_id = 4, .sequence = 3, .key_from = 50});
    static const char *const left[] = {"[3-3 c 3][4-4 4]", "[3-3 c h 3][4-4 4][5-5 5]",
                                       "[4-4 4][5-5 5][6-6 6]"};
    for (int32_t i = 0; i < 3; i++) {
        roll(rig, log);
        usleep(5000);
        clean(rig);
        assert_string_equal(contents(rig, log, FIRST), left[i]);
        put(rig, log, 60 + i, false);
    }
}

/* Case 124: without a policy nothing goes: not by its keys, not by its age, not by its size. */
static void no_policy_keeps_all(void **state)
{
    struct rig *rig = *state;
    rig_stop(rig);
    rig->options.retention_interval_ms = 1;
    rig_start(rig);
    rig->config.cleanup_compact = false;
    rig->config.retention_ms = 1000;
    rig->config.retention_bytes = 1;
    struct log *log = rig_log(rig);
    for (int32_t i = 0; i < 4; i++) {
        put(rig, log, 1, i % 2);
        roll(rig, log);
    }
    clean(rig);
    assert_int_equal(log_start(log), 0);
    assert_int_equal(log_segments(log), 5);
    assert_int_equal(rig_read_all(rig, log, 0), 4);
}

/* A committed transaction's marker stays while its data does. */
static void committed_transactions_stay(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    rig_append(rig, log, &(struct rig_batch){.count = 3, .producer_id = 4, .transactional = true});
    rig_marker(rig, log, 4, 0, true);
    put(rig, log, 60, false);
    roll(rig, log);
    clean(rig);
    assert_string_equal(contents(rig, log, FIRST), "[0-2 0 1 2][3-3 c 3][4-4 4]");
}

/* Compressed batches lose single records and keep their codec. */
static void compressed_batches(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    for (int codec = CODEC_GZIP; codec < CODEC_COUNT; codec++)
        rig_append(
            rig, log,
            &(struct rig_batch){
                .count = 6, .value_bytes = 100, .key_from = 2 * codec, .codec = (enum codec)codec});
    roll(rig, log);
    clean(rig);
    assert_string_equal(contents(rig, log, FIRST),
                        "[0-5 0 1][6-11 6 7][12-17 12 13][18-23 18 19 20 21 22 23]");
    assert_int_equal(rig_read_all(rig, log, 0), 12);
}

/* Case 92. */
static void dirty_ratio(void **state)
{
    struct rig *rig = *state;
    rig->config.min_cleanable_dirty_permil = 500;
    struct log *log = rig_log(rig);
    put(rig, log, 1, false);
    put(rig, log, 2, false);
    roll(rig, log);
    clean(rig); /* All is dirty. */
    put(rig, log, 1, false);
    put(rig, log, 2, false);
    roll(rig, log);
    clean(rig); /* Exactly half: not cleaned. */
    assert_string_equal(contents(rig, log, FIRST), "[0-0 0][1-1 1]");
    put(rig, log, 3, false);
    roll(rig, log);
    clean(rig);
    assert_string_equal(contents(rig, log, FIRST), "[2-2 2][3-3 3][4-4 4]");
}

/* Case 92: half is enough once a batch is older than it may be. */
static void overdue(void **state)
{
    struct rig *rig = *state;
    rig->config.min_cleanable_dirty_permil = 500;
    rig->config.max_compaction_lag_ms = 3600000;
    struct log *log = rig_log(rig);
    for (int i = 0; i < 2; i++) {
        put(rig, log, 1, false);
        put(rig, log, 2, false);
        roll(rig, log);
        clean(rig);
    }
    assert_string_equal(contents(rig, log, FIRST), "[2-2 2][3-3 3]");
}

/* Case 93: a segment whose newest record is young stays, and takes nothing from those before. */
static void young_segments_stay(void **state)
{
    struct rig *rig = *state;
    rig->config.min_compaction_lag_ms = 3600000;
    struct log *log = rig_log(rig);
    put(rig, log, 1, false);
    put(rig, log, 1, false);
    roll(rig, log);
    int64_t young_ms = io_wall_ms(rig->io) - 600000;
    for (int i = 0; i < 2; i++)
        rig_append(rig, log,
                   &(struct rig_batch){.count = 1, .key_from = 1, .timestamp_ms = young_ms});
    roll(rig, log);
    clean(rig);
    assert_string_equal(contents(rig, log, FIRST), "[1-1 1]");
    assert_string_equal(contents(rig, log, "00000000000000000002.log"), "[2-2 2][3-3 3]");
}

/* Case 122: messages of magic 1 and 0 become batches. */
static void old_messages(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    static const struct legacy_rig_message messages[] = {
        {0, 1, "a", 1700000000000},
        {1, 1, "b", 1700000000001},
        {2, 1, "a", 1700000000002},
        {3, 0, "c", -1           },
        {4, 0, "c", -1           },
    };
    struct buf *buf = legacy_rig_set(rig, messages, ARRAY_SIZE(messages));
    struct log_append in = {.buf = buf, .size_bytes = buf->size_bytes, .origin = LOG_FOLLOWER};
    struct log_appended out;
    assert_int_equal(log_append(log, &in, &out), LOG_OK);
    buf_release(buf);
    assert_int_equal(log_end_assigned(log), 5);
    roll(rig, log);
    clean(rig);
    assert_string_equal(contents(rig, log, FIRST), "[1-1 1][2-2 2][4-4 4]");
    struct disk_bytes file = rig_file(rig, FIRST);
    struct batch_header header;
    assert_int_equal(batch_header_load(view_of(file.data, file.size_bytes), &header), RECORD_OK);
    assert_int_equal(header.max_timestamp, 1700000000001);
    assert_int_equal(header.leader_epoch, -1);
    disk_free(&rig->mem, &file);
}

/* Case 123: what ends at the high watermark stays, if only as a header. */
static void the_end_stays(void **state)
{
    struct rig *rig = *state;
    rig->config.delete_retention_ms = 0;
    struct log *log = rig_log(rig);
    put(rig, log, 1, true);
    roll(rig, log);
    clean(rig);
    assert_string_equal(contents(rig, log, FIRST), "[0-0 h 0]");
    put(rig, log, 1, true);
    roll(rig, log);
    usleep(5000);
    clean(rig);
    assert_string_equal(contents(rig, log, FIRST), "[1-1 h 1]");
    put(rig, log, 1, false);
    roll(rig, log);
    clean(rig);
    assert_string_equal(contents(rig, log, FIRST), "[2-2 2]");
}

/* More keys than the map holds: several passes, nothing lost. */
static void small_map(void **state)
{
    struct rig *rig = *state;
    rig_stop(rig);
    rig->options.cleaner_map_bytes = 1; /* The smallest: 1,024 slots. */
    rig->config.segment_bytes = 100000;
    rig_start(rig);
    struct log *log = rig_log(rig);
    for (int i = 0; i < 60; i++)
        rig_append(rig, log, &(struct rig_batch){.count = 100, .key_from = i % 30 * 100});
    roll(rig, log);
    for (int i = 0; i < 12; i++)
        clean(rig);
    assert_int_equal(rig_read_all(rig, log, 0), 3000);
    assert_int_equal(log_end_assigned(log), 6000);
}

/* A reader goes on with what it has. */
static void readers_keep_their_file(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    put(rig, log, 1, false);
    put(rig, log, 1, false);
    roll(rig, log);
    struct log_range range;
    struct log_read in = {0, INT64_MAX, 1000, true};
    assert_int_equal(rig_read(rig, log, &in, &range), LOG_OK);
    uint32_t size = range.size_bytes;
    clean(rig);
    assert_string_equal(contents(rig, log, FIRST), "[1-1 1]");
    uint8_t bytes[1000];
    assert_int_equal(io_disk_read(rig->io, range.file, bytes, size, range.at_bytes), size);
    struct batch_header header;
    assert_int_equal(batch_header_load(view_of(bytes, size), &header), RECORD_OK);
    assert_int_equal(header.base_offset, 0);
    assert_true(batch_crc_valid(&header, view_of(bytes, batch_size(&header))));
    log_range_release(&range);
}

static void put_bytes(struct rig *rig, struct log *log, struct view key, int64_t producer_id)
{
    struct sink out;
    struct compress_work work;
    compress_work_init(&work, &rig->mem);
    sink_init(&out, &rig->mem, UINT32_MAX);
    struct batch_build_options options = batch_build_plain;
    if (producer_id > 0) {
        options.producer_id = producer_id;
        options.producer_epoch = 0;
        options.base_sequence = 0;
        options.transactional = true;
    }
    struct batch_build build;
    batch_build_begin(&build, &work, &out, &options);
    struct record_input record = {
        .timestamp_ms = 1700000000000, .key = key, .value = VIEW("value")};
    batch_build_add(&build, &record);
    struct view batch;
    assert_int_equal(batch_build_finish(&build, -1, &batch), RECORD_OK);
    struct buf *buf = buf_new(&rig->mem, batch.size);
    memcpy(buf->data, batch.data, batch.size);
    struct log_appended appended;
    assert_int_equal(rig_append_buf(log, buf, &appended), LOG_OK);
    sink_free(&out);
    compress_work_free(&work);
}

/* S14, KAFKA-14055: a record whose key has the bytes of a marker's key replaces no marker, and no
 * marker replaces it. */
static void s14_key_like_a_marker(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    static const uint8_t commit_key[4] = {0, 0, 0, 1};
    struct view key = view_of(commit_key, sizeof(commit_key));
    put_bytes(rig, log, VIEW("a"), 4000);
    rig_marker(rig, log, 4000, 0, true);
    put_bytes(rig, log, key, 0);
    put_bytes(rig, log, VIEW("b"), 4001);
    rig_marker(rig, log, 4001, 0, true);
    roll(rig, log);
    clean(rig);
    struct log_read in = {0, INT64_MAX, 64 * 1024, true};
    struct log_range range;
    assert_int_equal(rig_read(rig, log, &in, &range), LOG_OK);
    uint8_t *bytes = malloc(range.size_bytes);
    assert_int_equal(io_disk_read(rig->io, range.file, bytes, range.size_bytes, range.at_bytes),
                     range.size_bytes);
    struct batch_scan scan = batch_scan_of(view_of(bytes, range.size_bytes));
    struct batch_header header;
    struct view batch;
    int markers = 0, data = 0;
    while (batch_next(&scan, &header, &batch)) {
        markers += (header.attributes & BATCH_CONTROL) != 0;
        data += (header.attributes & BATCH_CONTROL) == 0 && header.record_count == 1;
    }
    assert_int_equal(markers, 2);
    assert_int_equal(data, 3);
    free(bytes);
    log_range_release(&range);
}

int main(void)
{
#define CLEAN_TEST(name) cmocka_unit_test_setup_teardown(name, compact_open, rig_close)
    const struct CMUnitTest tests[] = {
        CLEAN_TEST(newest_of_each_key),
        CLEAN_TEST(tombstones_go),
        CLEAN_TEST(active_producers_keep_their_last),
        CLEAN_TEST(aborted_transactions_go),
        CLEAN_TEST(markers_go_behind_their_horizon),
        CLEAN_TEST(no_policy_keeps_all),
        CLEAN_TEST(committed_transactions_stay),
        CLEAN_TEST(compressed_batches),
        CLEAN_TEST(dirty_ratio),
        CLEAN_TEST(overdue),
        CLEAN_TEST(young_segments_stay),
        CLEAN_TEST(old_messages),
        CLEAN_TEST(the_end_stays),
        CLEAN_TEST(small_map),
        CLEAN_TEST(readers_keep_their_file),
        CLEAN_TEST(s14_key_like_a_marker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
