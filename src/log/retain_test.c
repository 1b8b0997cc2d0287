/* retain_test.c - what leaves one log at its beginning, on real files: by size, by time, by a
 * client's will. Numbers are those of the format's test list (docs/cases.md). */
#include "log/rig_test.h"

/* Let the retention task run now. */
static void retain(struct rig *rig, int64_t high_watermark)
{
    rig_stop(rig);
    rig->options.retention_interval_ms = 1;
    rig_start(rig);
    struct log *log = rig_log(rig);
    log_set_high_watermark(log, high_watermark);
    for (int i = 0; i < 50; i++) {
        usleep(1000);
        rig_turn(rig);
    }
    rig_settle(rig);
    rig->options.retention_interval_ms = 0;
}

/* Case 84. */
static void retention_by_size(void **state)
{
    struct rig *rig = *state;
    rig->config.segment_bytes = 1000;
    rig->config.retention_ms = -1;
    rig_fill(rig, rig_log(rig), 35, 100);
    rig->config.retention_bytes = 1600;
    retain(rig, log_end_assigned(rig_log(rig)));
    struct log *log = rig_log(rig);
    assert_int_equal(log_start(log), 10);
    assert_int_equal(log_segments(log), 3);
    assert_int_equal(rig_file_size(rig, "00000000000000000000.log"), -1);
    assert_int_equal(rig_file_size(rig, "00000000000000000000.log.deleted"), 1000);
    assert_int_equal(rig_read_all(rig, log, 10), 25);
    struct log_range range;
    struct log_read in = {9, INT64_MAX, 100, true};
    assert_int_equal(rig_read(rig, log, &in, &range), LOG_E_OUT_OF_RANGE);
}

/* Case 85: all expired, so one empty segment at the end is left. */
static void retention_by_time(void **state)
{
    struct rig *rig = *state;
    rig->config.segment_bytes = 1000;
    rig->config.file_delete_delay_ms = 0;
    rig_fill(rig, rig_log(rig), 40, 100);
    rig->config.retention_ms = 1000;
    retain(rig, 15);
    assert_int_equal(log_start(rig_log(rig)), 10); /* Case 87: not what ends above it. */
    retain(rig, log_end_assigned(rig_log(rig)));
    struct log *log = rig_log(rig);
    assert_int_equal(log_start(log), 40);
    assert_int_equal(log_end_assigned(log), 40);
    assert_int_equal(log_segments(log), 1);
    assert_int_equal(rig_file_size(rig, "00000000000000000030.log"), -1);
    for (int i = 0; i < 200 && rig_file_size(rig, "00000000000000000030.log.deleted") >= 0; i++)
        rig_turn(rig); /* Unlinking is nobody's to wait for: a stop does not. */
    assert_int_equal(rig_file_size(rig, "00000000000000000030.log.deleted"), -1);
    rig_fill(rig, log, 5, 100);
    rig_stop(rig);
    rig_start(rig);
    log = rig_log(rig);
    assert_int_equal(log_start(log), 40);
    assert_int_equal(rig_read_all(rig, log, 40), 5);
}

/* Case 86: a record of the far future keeps its segment and all behind it. */
static void retention_of_the_future(void **state)
{
    struct rig *rig = *state;
    rig->config.segment_bytes = 1000;
    struct log *log = rig_log(rig);
    rig_append(rig, log, &(struct rig_batch){.count = 1, .timestamp_ms = 4102444800000});
    rig_fill(rig, log, 40, 100);
    rig->config.retention_ms = 1000;
    retain(rig, log_end_assigned(rig_log(rig)));
    log = rig_log(rig);
    assert_int_equal(log_start(log), 0);
    assert_int_equal(rig_read_all(rig, log, 0), 41);
}

/* Case 62, 80: records deleted by a client stay deleted. */
static void delete_records(void **state)
{
    struct rig *rig = *state;
    struct log *log = rig_log(rig);
    rig_fill(rig, log, 20, 100);
    log_set_high_watermark(log, 18);
    assert_int_equal(log_delete_records(log, 19), LOG_E_OUT_OF_RANGE);
    assert_int_equal(log_delete_records(log, 15), LOG_OK);
    rig_settle(rig);
    rig_crash(rig);
    rig_start(rig);
    log = rig_log(rig);
    assert_int_equal(log_start(log), 15);
    struct log_range range;
    struct log_read in = {12, INT64_MAX, 100, true};
    assert_int_equal(rig_read(rig, log, &in, &range), LOG_E_OUT_OF_RANGE);
    assert_int_equal(rig_read_all(rig, log, 15), 5);
    struct log_query query;
    assert_int_equal(rig_ask(rig, log, 1003, &query), LOG_OK);
    assert_int_equal(query.offset, 15);
}

int main(void)
{
#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)
    const struct CMUnitTest tests[] = {
        LOG_TEST(retention_by_size),
        LOG_TEST(retention_by_time),
        LOG_TEST(retention_of_the_future),
        LOG_TEST(delete_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
