/* log_test.c - one log on real files: append, ends, read, look up, truncate. Numbers are those of
 * the format's description: section 31 (vectors) and 32 (cases) of its test list. */
#include "log/rig_test.h"

static const uint8_t vector_one[70] = {
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0x3a, 0,    0,
    0,    0,    2,    0xe9, 0x9b, 0x8d, 0xd8, 0,    0,    0,    0,    0,    0,    0,
    0,    1,    0x8b, 0xcf, 0xe5, 0x68, 0,    0,    0,    1,    0x8b, 0xcf, 0xe5, 0x68,
    0,    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0,    0,    0,    1,    0x10, 0,    0,    0,    2,    0x6b, 2,    0x76, 0,
};

static struct buf *vector_buf(struct rig *rig)
{
    struct buf *buf = buf_new(&rig->mem, sizeof(vector_one));
    memcpy(buf->data, vector_one, sizeof(vector_one));
    memset(buf->data + 12, 0xff, 4);
    return buf;
}

/* Case 1: the file is exactly the batch; the ends move one after the other. */
static void append_writes_the_vector(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    struct log_appended out;
    assert_int_equal(rig_append_buf(log, vector_buf(rig), &out), LOG_OK);
    assert_int_equal(out.offset_first, 0);
    assert_int_equal(out.offset_end, 1);
    assert_int_equal(out.append_time_ms, -1);
    assert_int_equal(log_end_assigned(log), 1);
    assert_int_equal(log_end_written(log), 0);
    assert_int_equal(log_end_durable(log), 0);
    rig_settle(rig);
    assert_int_equal(log_end_written(log), 1);
    assert_int_equal(log_end_durable(log), 1);

    struct disk_bytes file = rig_file(rig, "00000000000000000000.log");
    assert_int_equal(file.size_bytes, 70);
    assert_memory_equal(file.data, vector_one, 70);
    disk_free(&rig->mem, &file);
    struct disk_bytes metadata = rig_file(rig, "partition.metadata");
    const char *text = "version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w";
    assert_int_equal(metadata.size_bytes, strlen(text));
    assert_memory_equal(metadata.data, text, metadata.size_bytes);
    disk_free(&rig->mem, &metadata);
}

/* Case 17: LogAppendTime. */
static void append_time_is_stamped(void **state)
{
    struct rig *rig = *state;
    rig->config.log_append_time = true;
    struct log *log = rig_log(rig);
    struct log_appended out;
    assert_int_equal(rig_append_buf(log, vector_buf(rig), &out), LOG_OK);
    assert_int_equal(out.append_time_ms, 1700000009999);
    rig_settle(rig);
    struct disk_bytes file = rig_file(rig, "00000000000000000000.log");
    assert_int_equal(load_be32(file.data + BATCH_AT_CRC), 0x499e0aa2);
    assert_int_equal(load_be16(file.data + BATCH_AT_ATTRIBUTES), 8);
    disk_free(&rig->mem, &file);
}

/* Cases 70, 71: index entries, and what a clean stop leaves. */
static void indexes_are_kafkas(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    rig_fill(rig, log, 50, 100);
    assert_int_equal(log_size_bytes(log), 5000);
    rig_stop(rig);
    struct disk_bytes offsets = rig_file(rig, "00000000000000000000.index");
    assert_int_equal(offsets.size_bytes, 8);
    assert_int_equal(load_be32(offsets.data), 41);
    assert_int_equal(load_be32(offsets.data + 4), 4100);
    disk_free(&rig->mem, &offsets);
    struct disk_bytes times = rig_file(rig, "00000000000000000000.timeindex");
    assert_int_equal(times.size_bytes, 24);
    assert_int_equal(load_be64(times.data), 1041);
    assert_int_equal(load_be32(times.data + 8), 41);
    assert_int_equal(load_be64(times.data + 12), 1049);
    assert_int_equal(load_be32(times.data + 20), 49);
    disk_free(&rig->mem, &times);
    assert_int_equal(rig_file_size(rig, "00000000000000000050.snapshot"), 10);
    struct disk_bytes epochs = rig_file(rig, "leader-epoch-checkpoint");
    assert_memory_equal(epochs.data, "0\n1\n0 0\n", epochs.size_bytes);
    disk_free(&rig->mem, &epochs);
}

static void rolls_by_size(void **state)
{
    struct rig *rig = *state;
    rig->config.segment_bytes = 10000;
    struct log *log = rig_log(rig);
    rig_fill(rig, log, 250, 100);
    assert_int_equal(log_segments(log), 3);
    assert_int_equal(rig_file_size(rig, "00000000000000000100.log"), 10000);
    assert_int_equal(rig_file_size(rig, "00000000000000000200.log"), 5000);
    assert_int_equal(rig_file_size(rig, "00000000000000000100.index"), 16);
    assert_int_equal(rig_file_size(rig, "00000000000000000100.snapshot"), 10);
    assert_int_equal(rig_read_all(rig, log, 0), 250);
    rig_stop(rig);
    rig_start(rig);
    log = rig_log(rig);
    assert_int_equal(log_segments(log), 3);
    assert_int_equal(log_size_bytes(log), 25000);
    assert_int_equal(rig_read_all(rig, log, 42), 208);
    rig_crash(rig);
    rig_start(rig);
    log = rig_log(rig);
    assert_int_equal(log_recovered(log)->segments, 1); /* From the recovery point on. */
    assert_int_equal(rig_read_all(rig, log, 0), 250);
}

/* Case 73: by the times of the records, not of the clock. */
static void rolls_by_time(void **state)
{
    struct rig *rig = *state;
    rig->config.segment_ms = 60000;
    struct log *log = rig_log(rig);
    rig_append(rig, log, &(struct rig_batch){.count = 1, .timestamp_ms = 1000});
    rig_append(rig, log, &(struct rig_batch){.count = 1, .timestamp_ms = 61000});
    rig_settle(rig);
    assert_int_equal(log_segments(log), 1);
    rig_append(rig, log, &(struct rig_batch){.count = 1, .timestamp_ms = 61001});
    rig_settle(rig);
    assert_int_equal(log_segments(log), 2);
    assert_true(rig_file_size(rig, "00000000000000000002.log") > 0);
}

static void read_limits(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    rig_fill(rig, log, 10, 1000);
    struct log_range range;
    struct log_read in = {3, 7, 1000000, false};
    assert_int_equal(rig_read(rig, log, &in, &range), LOG_OK);
    assert_int_equal(range.at_bytes, 3000);
    assert_int_equal(range.size_bytes, 4000); /* Case 51: ends before the high watermark. */
    assert_int_equal(range.offset_next, 7);
    log_range_release(&range);
    in = (struct log_read){0, INT64_MAX, 2500, false};
    assert_int_equal(rig_read(rig, log, &in, &range), LOG_OK);
    assert_int_equal(range.size_bytes, 2000);
    assert_int_equal(range.offset_next, 2);
    log_range_release(&range);
    in.max_bytes = 100;
    assert_int_equal(rig_read(rig, log, &in, &range), LOG_OK);
    assert_int_equal(range.size_bytes, 0);
    assert_int_equal(range.batch_too_big, 1000);
    in.min_one = true; /* Case 48. */
    assert_int_equal(rig_read(rig, log, &in, &range), LOG_OK);
    assert_int_equal(range.size_bytes, 1000);
    log_range_release(&range);
    in.offset = 10; /* Case 50. */
    assert_int_equal(rig_read(rig, log, &in, &range), LOG_OK);
    assert_int_equal(range.size_bytes, 0);
    in.offset = 11;
    assert_int_equal(rig_read(rig, log, &in, &range), LOG_E_OUT_OF_RANGE);
    in.offset = -1;
    assert_int_equal(rig_read(rig, log, &in, &range), LOG_E_OUT_OF_RANGE);
    in = (struct log_read){5, 5, 1000, true};
    assert_int_equal(rig_read(rig, log, &in, &range), LOG_OK);
    assert_int_equal(range.size_bytes, 0);
}

static void bad_batches_change_nothing(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    struct log_appended out;
    struct buf *buf = vector_buf(rig);
    buf->data[69] ^= 1; /* Case 3. */
    assert_int_equal(rig_append_buf(log, buf, &out), LOG_E_INVALID);
    assert_int_equal(record_fault_error(out.fault), 2);
    buf = vector_buf(rig);
    buf->data[7] = 7; /* Case 5. */
    assert_int_equal(rig_append_buf(log, buf, &out), LOG_E_INVALID);
    assert_int_equal(record_fault_error(out.fault), 87);
    rig->config.max_message_bytes = 69; /* Case 11. */
    log_configure(log, &rig->config);
    assert_int_equal(rig_append_buf(log, vector_buf(rig), &out), LOG_E_INVALID);
    assert_int_equal(record_fault_error(out.fault), 10);
    rig->config.max_message_bytes = 70;
    rig->config.segment_bytes = 69; /* Case 12. */
    log_configure(log, &rig->config);
    assert_int_equal(rig_append_buf(log, vector_buf(rig), &out), LOG_E_SEGMENT);
    rig->config.segment_bytes = 70;
    log_configure(log, &rig->config);
    assert_int_equal(log_end_assigned(log), 0);
    rig_settle(rig);
    assert_int_equal(rig_file_size(rig, "00000000000000000000.log"), -1); /* Not even a folder. */
    assert_int_equal(rig_append_buf(log, vector_buf(rig), &out), LOG_OK);
}

/* Cases 37 to 41: idempotent producers. */
static void producers_are_remembered(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    struct log_appended out;
    struct rig_batch what = {.count = 3, .producer_id = 9, .timestamp_ms = 500};
    assert_int_equal(rig_append(rig, log, &what), 0);
    assert_int_equal(rig_append_buf(log, rig_batch(rig, &what), &out), LOG_DUPLICATE);
    assert_int_equal(out.offset_first, 0);
    assert_int_equal(out.offset_end, 3);
    assert_int_equal(out.append_time_ms, 502);
    assert_int_equal(log_end_assigned(log), 3);
    what.sequence = 5;
    assert_int_equal(rig_append_buf(log, rig_batch(rig, &what), &out), LOG_E_SEQUENCE);
    what.sequence = 3;
    assert_int_equal(rig_append(rig, log, &what), 3);
    what.epoch = 2;
    what.sequence = 1;
    assert_int_equal(rig_append_buf(log, rig_batch(rig, &what), &out), LOG_E_SEQUENCE);
    what.sequence = 0;
    assert_int_equal(rig_append(rig, log, &what), 6);
    what.epoch = 1;
    assert_int_equal(rig_append_buf(log, rig_batch(rig, &what), &out), LOG_E_FENCED);
    rig_settle(rig);
    rig_crash(rig); /* The state is found again in the log. */
    rig_start(rig);
    log = rig_log(rig);
    what.epoch = 2;
    assert_int_equal(rig_append_buf(log, rig_batch(rig, &what), &out), LOG_DUPLICATE);
    assert_int_equal(out.offset_first, 6);
    rig_stop(rig); /* Case 83: and in the snapshot. */
    rig_start(rig);
    log = rig_log(rig);
    assert_int_equal(rig_append_buf(log, rig_batch(rig, &what), &out), LOG_DUPLICATE);
    assert_int_equal(out.offset_first, 6);
    what.sequence = 3;
    assert_int_equal(rig_append(rig, log, &what), 9);
}

/* Cases 43 to 45: transactions, the last stable offset, the index of aborted ones. */
static void transactions_hold_the_stable_end(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    rig_fill(rig, log, 30, 100);
    struct rig_batch what = {.count = 2, .producer_id = 4000, .epoch = 3, .transactional = true};
    assert_int_equal(rig_append(rig, log, &what), 30);
    rig_fill(rig, log, 10, 100);
    log_set_high_watermark(log, 42);
    assert_int_equal(log_last_stable(log), 30);
    rig_stop(rig);
    rig_start(rig);
    log = rig_log(rig);
    log_set_high_watermark(log, 42);
    assert_int_equal(log_last_stable(log), 30); /* Case 45. */
    rig_marker(rig, log, 4000, 3, false);
    assert_int_equal(log_end_assigned(log), 43);
    assert_int_equal(log_last_stable(log), 30); /* Until the watermark has passed the marker. */
    log_set_high_watermark(log, 43);
    assert_int_equal(log_last_stable(log), 43);
    struct log_aborted aborted[16];
    uint32_t count;
    struct log_read in = {.offset = 0, .offset_end = 43};
    assert_int_equal(rig_aborted(rig, log, &in, aborted, &count), LOG_OK);
    assert_int_equal(count, 1);
    assert_int_equal(aborted[0].producer_id, 4000);
    assert_int_equal(aborted[0].offset_first, 30);
    in.offset = 43;
    assert_int_equal(rig_aborted(rig, log, &in, aborted, &count), LOG_OK);
    assert_int_equal(count, 0);
    rig_stop(rig);
    struct disk_bytes file = rig_file(rig, "00000000000000000000.txnindex");
    static const uint8_t entry[34] = {0,  0, 0, 0, 0, 0, 0, 0, 0x0f, 0xa0, 0, 0, 0, 0, 0, 0, 0,
                                      30, 0, 0, 0, 0, 0, 0, 0, 42,   0,    0, 0, 0, 0, 0, 0, 43};
    assert_int_equal(file.size_bytes, 34);
    assert_memory_equal(file.data, entry, 34);
    disk_free(&rig->mem, &file);
    rig_start(rig);
    log = rig_log(rig);
    in.offset = 0;
    assert_int_equal(rig_aborted(rig, log, &in, aborted, &count), LOG_OK);
    assert_int_equal(count, 1);
}

/* Cases 60, 61. */
static void offsets_by_time(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    struct log_query query;
    assert_int_equal(rig_ask(rig, log, 100, &query), LOG_NOT_FOUND);
    const int64_t times[] = {100, 200, 300, 250};
    for (int i = 0; i < 4; i++)
        rig_append(rig, log, &(struct rig_batch){.count = 1, .timestamp_ms = times[i]});
    rig_settle(rig);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(rig_ask(rig, log, 201, &query), LOG_OK);
        assert_int_equal(query.offset, 2);
        assert_int_equal(query.found_timestamp_ms, 300);
        assert_int_equal(query.leader_epoch, 0);
        assert_int_equal(rig_ask(rig, log, 250, &query), LOG_OK);
        assert_int_equal(query.offset, 2);
        assert_int_equal(rig_ask(rig, log, 301, &query), LOG_NOT_FOUND);
        assert_int_equal(query.offset, -1);
        assert_int_equal(rig_ask(rig, log, LOG_MAX_TIMESTAMP, &query), LOG_OK);
        assert_int_equal(query.offset, 2);
        assert_int_equal(query.found_timestamp_ms, 300);
        rig_stop(rig);
        rig_start(rig);
        log = rig_log(rig);
    }
}

static void recompression(void **state)
{
    struct rig *rig = *state;
    rig->config.compression = CODEC_LZ4;
    struct log *log = rig_log(rig);
    rig_append(rig, log, &(struct rig_batch){.count = 20, .value_bytes = 100});
    rig_append(rig, log, &(struct rig_batch){.count = 20, .value_bytes = 100, .codec = CODEC_ZSTD});
    rig_settle(rig);
    struct disk_bytes file = rig_file(rig, "00000000000000000000.log");
    struct batch_scan scan = batch_scan_of(view_of(file.data, file.size_bytes));
    struct batch_header header;
    struct view batch;
    for (int i = 0; i < 2; i++) {
        assert_true(batch_next(&scan, &header, &batch));
        assert_int_equal(batch_codec(&header), CODEC_LZ4);
        assert_int_equal(header.base_offset, i * 20);
        assert_true(batch_crc_valid(&header, batch));
    }
    disk_free(&rig->mem, &file);
}

/* The follower's batches come as they are; epochs in them are learned. */
static void follower_appends(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    struct buf *buf = buf_new(&rig->mem, 3 * 70);
    const int32_t epochs[] = {5, 5, 6};
    for (int i = 0; i < 3; i++) {
        memcpy(buf->data + i * 70, vector_one, 70);
        batch_stamp(buf->data + i * 70, 100 + 10 * i, epochs[i]);
    }
    struct log_append in = {
        .buf = buf, .size_bytes = buf->size_bytes, .leader_epoch = 5, .origin = LOG_FOLLOWER};
    struct log_appended out;
    assert_int_equal(log_append(log, &in, &out), LOG_OK);
    assert_int_equal(out.offset_first, 100);
    assert_int_equal(log_end_assigned(log), 111); /* Case 121: the third is of a later epoch. */
    assert_int_equal(log_append(log, &in, &out), LOG_E_ORDER);
    in.at_bytes = 140;
    in.size_bytes = 70;
    in.leader_epoch = 6;
    assert_int_equal(log_append(log, &in, &out), LOG_OK);
    buf_release(buf);
    rig_settle(rig);
    assert_int_equal(log_epoch_at(log, 105), 5);
    assert_int_equal(log_epoch_end(log, 5).end, 120);
    assert_int_equal(rig_read_all(rig, log, 100), 3);
}

/* Case 120: one entry for each batch of a set that is due. */
static void follower_indexes_each_batch(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    struct rig_batch what = {.count = 1, .value_bytes = 4928};
    struct buf *one = rig_batch(rig, &what);
    assert_int_equal(one->size_bytes, 5000);
    struct buf *buf = buf_new(&rig->mem, 15000);
    for (int i = 0; i < 3; i++) {
        memcpy(buf->data + i * 5000, one->data, 5000);
        batch_stamp(buf->data + i * 5000, i, 0);
    }
    buf_release(one);
    struct log_append in = {.buf = buf, .size_bytes = 15000, .origin = LOG_FOLLOWER};
    struct log_appended out;
    assert_int_equal(log_append(log, &in, &out), LOG_OK);
    buf_release(buf);
    rig_stop(rig);
    struct disk_bytes file = rig_file(rig, "00000000000000000000.index");
    static const uint8_t entries[16] = {0, 0, 0, 1, 0, 0, 0x13, 0x88, 0, 0, 0, 2, 0, 0, 0x27, 0x10};
    assert_int_equal(file.size_bytes, 16);
    assert_memory_equal(file.data, entries, 16);
    disk_free(&rig->mem, &file);
}

static void deleting_a_partition(void **state)
{
    struct rig *rig = *state;
    rig->config.file_delete_delay_ms = 0;
    struct log *log = rig_log(rig);
    rig_fill(rig, log, 10, 100);
    logs_delete(rig->logs, log, NULL);
    log = rig_log(rig); /* The name is free at once. */
    assert_int_equal(log_end_assigned(log), 0);
    rig_fill(rig, log, 3, 100);
    assert_int_equal(rig_file_size(rig, "00000000000000000000.log"), 300);
    for (int i = 0; i < 50; i++)
        rig_turn(rig);
    rig_settle(rig);
    rig_stop(rig);
    rig_start(rig);
    log = rig_log(rig);
    assert_int_equal(log_end_assigned(log), 3);
}

static void task_done(struct log_task *task)
{
    (void)task;
}

static int wait_task(struct rig *rig, struct log_task *task)
{
    for (int i = 0; i < 1000 && task->result == LOG_LATER; i++)
        rig_turn(rig);
    return task->result;
}

static int truncate_to(struct rig *rig, struct log *log, int64_t offset)
{
    struct log_task task = {.done = task_done};
    log_truncate(log, offset, &task);
    return wait_task(rig, &task);
}

static void truncates(void **state)
{
    struct rig *rig = *state;
    rig->config.segment_bytes = 2000;
    struct log *log = rig_log(rig);
    rig_fill(rig, log, 30, 100);
    assert_int_equal(log_epoch_begin(log, 4), LOG_OK);
    rig_append(rig, log, &(struct rig_batch){.count = 10, .producer_id = 9, .timestamp_ms = 3000});
    rig_fill(rig, log, 20, 100);
    assert_int_equal(truncate_to(rig, log, 1000), LOG_OK);
    assert_int_equal(log_end_assigned(log), 60);
    assert_int_equal(truncate_to(rig, log, 35), LOG_OK); /* Inside the batch of ten. */
    assert_int_equal(log_end_assigned(log), 30);
    assert_int_equal(log_end_durable(log), 30);
    assert_int_equal(log_epoch_at(log, 29), 0);
    assert_int_equal(rig_read_all(rig, log, 0), 30);
    struct rig_batch what = {.count = 1, .producer_id = 9, .sequence = 7, .timestamp_ms = 3000};
    assert_int_equal(rig_append(rig, log, &what), 30); /* The producer is forgotten. */
    rig_settle(rig);
    assert_int_equal(rig_read_all(rig, log, 5), 26);
    assert_int_equal(truncate_to(rig, log, 7), LOG_OK);
    assert_int_equal(log_segments(log), 1);
    rig_crash(rig);
    rig_start(rig);
    log = rig_log(rig);
    assert_int_equal(log_end_assigned(log), 7);
    assert_int_equal(log_recovered(log)->durable_lost, 0);
    rig_fill(rig, log, 50, 100);
    rig_stop(rig);
    rig_start(rig);
    log = rig_log(rig);
    assert_int_equal(rig_read_all(rig, log, 0), 57);
}

static void restarts_elsewhere(void **state)
{
    struct rig *rig = *state;
    rig->config.segment_bytes = 2000;
    struct log *log = rig_log(rig);
    rig_fill(rig, log, 50, 100);
    const int64_t places[] = {1000, 10};
    for (int i = 0; i < 2; i++) {
        struct log_task task = {.done = task_done};
        log_restart(log, places[i], &task);
        assert_int_equal(wait_task(rig, &task), LOG_OK);
        assert_int_equal(log_start(log), places[i]);
        assert_int_equal(log_end_assigned(log), places[i]);
        assert_int_equal(log_segments(log), 1);
        assert_int_equal(log_epoch_latest(log), -1);
        rig_fill(rig, log, 25, 100);
        assert_int_equal(rig_read_all(rig, log, places[i]), 25);
        if (i == 0) rig_crash(rig);
        if (i == 1) rig_stop(rig);
        rig_start(rig);
        log = rig_log(rig);
        assert_int_equal(log_start(log), places[i]);
        assert_int_equal(rig_read_all(rig, log, places[i]), 25);
    }
}

int main(void)
{
#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)
    const struct CMUnitTest tests[] = {
        LOG_TEST(append_writes_the_vector),
        LOG_TEST(append_time_is_stamped),
        LOG_TEST(indexes_are_kafkas),
        LOG_TEST(rolls_by_size),
        LOG_TEST(rolls_by_time),
        LOG_TEST(read_limits),
        LOG_TEST(bad_batches_change_nothing),
        LOG_TEST(producers_are_remembered),
        LOG_TEST(transactions_hold_the_stable_end),
        LOG_TEST(offsets_by_time),
        LOG_TEST(recompression),
        LOG_TEST(follower_appends),
        LOG_TEST(follower_indexes_each_batch),
        LOG_TEST(deleting_a_partition),
        LOG_TEST(truncates),
        LOG_TEST(restarts_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
