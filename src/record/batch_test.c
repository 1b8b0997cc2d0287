/* batch_test.c - headers, changes in place, building and reading, against byte vectors of the log
 * format (docs/records.md). */
#include "record/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "record/batch_build.h"
#include "record/control.h"
#include "record/crc.h"
#include "record/record_test.h"

static void crc_vectors(void **state)
{
    assert_int_equal(crc_32c("123456789", 9), 0xe3069283);
    assert_int_equal(crc_32("123456789", 9), 0xcbf43926);
    assert_int_equal(crc_32c(NULL, 0), 0);
    uint32_t first = crc_32c("1234", 4);
    assert_int_equal(crc_32c_more(first, "56789", 5), 0xe3069283);
}

static void header_of_one_record(void **state)
{
    uint8_t bytes[256];
    struct view batch = test_hex(TEST_ONE_RECORD, bytes, sizeof(bytes));
    assert_int_equal(batch.size, 70);

    struct batch_header header;
    assert_int_equal(batch_check(batch, BATCH_CHECK_CRC | BATCH_CHECK_COUNTS, &header), RECORD_OK);
    assert_int_equal(header.length, 58);
    assert_int_equal(header.crc, 0xe99b8dd8);
    assert_int_equal(header.magic, 2);
    assert_int_equal(header.base_timestamp, 1700000000000);
    assert_int_equal(header.producer_id, -1);
    assert_int_equal(header.producer_epoch, -1);
    assert_int_equal(header.base_sequence, -1);
    assert_int_equal(header.record_count, 1);
    assert_int_equal(batch_size(&header), 70);
    assert_int_equal(batch_last_offset(&header), 0);
    assert_int_equal(batch_last_sequence(&header), -1);
    assert_int_equal(batch_frame_size(batch), 70);
}

static void stamp_keeps_the_crc(void **state)
{
    uint8_t bytes[256];
    struct view batch = test_hex(TEST_ONE_RECORD, bytes, sizeof(bytes));
    batch_stamp(bytes, INT64_MAX, 77);
    struct batch_header header;
    assert_int_equal(batch_check(batch, BATCH_CHECK_CRC, &header), RECORD_OK);
    assert_int_equal(header.base_offset, INT64_MAX);
    assert_int_equal(header.leader_epoch, 77);
}

static void append_time_changes_header_and_crc(void **state)
{
    uint8_t bytes[256];
    struct view batch = test_hex(TEST_ONE_RECORD, bytes, sizeof(bytes));
    assert_false(batch_set_timestamp(bytes, batch.size, false, 1700000000000));
    assert_true(batch_set_timestamp(bytes, batch.size, true, 1700000009999));
    struct batch_header header;
    assert_int_equal(batch_check(batch, BATCH_CHECK_CRC, &header), RECORD_OK);
    assert_int_equal(header.crc, 0x499e0aa2);
    assert_int_equal(header.attributes, BATCH_APPEND_TIME);
    assert_int_equal(header.base_timestamp, 1700000000000);
    assert_int_equal(header.max_timestamp, 1700000009999);
    assert_false(batch_set_timestamp(bytes, batch.size, true, 1700000009999));
}

static void unknown_attribute_bits_go_with_a_rewrite(void **state)
{
    uint8_t bytes[256];
    struct view batch = test_hex(TEST_ONE_RECORD, bytes, sizeof(bytes));
    bytes[BATCH_AT_ATTRIBUTES] = 0xff;
    bytes[BATCH_AT_ATTRIBUTES + 1] = 0x90;
    assert_true(batch_set_timestamp(bytes, batch.size, false, 5));
    assert_int_equal(load_be16(bytes + BATCH_AT_ATTRIBUTES), BATCH_TRANSACTIONAL);
}

/* Build the batch again from what is read and compare all bytes. */
static void rebuild_gives_the_same_bytes(struct compress_work *work, struct view batch)
{
    struct batch_header header;
    assert_int_equal(batch_check(batch, BATCH_CHECK_CRC, &header), RECORD_OK);
    struct batch_build_options options = batch_build_plain;
    options.base_offset = header.base_offset;
    options.leader_epoch = header.leader_epoch;
    options.codec = batch_codec(&header);
    options.producer_id = header.producer_id;
    options.producer_epoch = header.producer_epoch;
    options.base_sequence = header.base_sequence;
    options.transactional = (header.attributes & BATCH_TRANSACTIONAL) != 0;
    options.control = (header.attributes & BATCH_CONTROL) != 0;

    struct sink out;
    sink_init(&out, work->mem, 1 << 20);
    struct batch_build build;
    struct record_iter iter;
    struct record record;
    batch_build_begin(&build, work, &out, &options);
    record_iter_begin(&iter, work, &header, batch);
    while (record_next(&iter, &record)) {
        struct record_header headers[8];
        int32_t count = 0;
        uint32_t at = 0;
        while (record_header_next(&record, &at, &headers[count]))
            count++;
        assert_int_equal(count, record.header_count);
        struct record_input input = {.timestamp_ms = record.timestamp_ms,
                                     .key = record.key,
                                     .value = record.value,
                                     .headers = headers,
                                     .header_count = count};
        assert_int_equal(record.bytes.size, batch_build_record_size(&input, record.offset_delta,
                                                                    record.timestamp_delta));
        batch_build_add(&build, &input);
    }
    assert_int_equal(record_iter_end(&iter), RECORD_OK);
    struct view made;
    assert_int_equal(batch_build_finish(&build, header.last_offset_delta, &made), RECORD_OK);
    assert_int_equal(made.size, batch.size);
    assert_memory_equal(made.data, batch.data, batch.size);
    sink_free(&out);
}

static void vectors_rebuild(void **state)
{
    static const char *const vectors[] = {TEST_ONE_RECORD, TEST_THREE_RECORDS, TEST_ABORT_MARKER,
                                          TEST_LZ4_RECORD, TEST_SNAPPY_RECORD};
    struct test_world world;
    test_begin(&world);
    for (uint32_t i = 0; i < ARRAY_SIZE(vectors); i++) {
        uint8_t bytes[256];
        rebuild_gives_the_same_bytes(&world.work, test_hex(vectors[i], bytes, sizeof(bytes)));
    }
    test_end(&world);
}

static void three_records_are_read(void **state)
{
    struct test_world world;
    test_begin(&world);
    uint8_t bytes[256];
    struct view batch = test_hex(TEST_THREE_RECORDS, bytes, sizeof(bytes));
    struct batch_header header;
    assert_int_equal(batch_check(batch, BATCH_CHECK_CRC | BATCH_CHECK_COUNTS, &header), RECORD_OK);
    assert_int_equal(batch_last_sequence(&header), 9);

    struct record_iter iter;
    struct record record;
    record_iter_begin(&iter, &world.work, &header, batch);
    assert_true(record_next(&iter, &record));
    assert_int_equal(record.offset, 100);
    assert_int_equal(record.timestamp_ms, 1000);
    assert_int_equal(record.sequence, 7);
    assert_true(record.key.null);
    assert_true(view_is(record.value, "a"));
    assert_true(record_next(&iter, &record));
    assert_int_equal(record.timestamp_ms, 1200);
    assert_true(view_is(record.key, "key"));
    assert_true(record.value.null);
    assert_true(record_next(&iter, &record));
    assert_int_equal(record.offset, 102);
    assert_int_equal(record.sequence, 9);
    assert_false(record.key.null);
    assert_int_equal(record.key.size, 0);
    assert_false(record.value.null);
    assert_int_equal(record.header_count, 2);
    uint32_t at = 0;
    struct record_header found;
    assert_true(record_header_next(&record, &at, &found));
    assert_true(view_is(found.key, "h1") && view_is(found.value, "x"));
    assert_true(record_header_next(&record, &at, &found));
    assert_true(view_is(found.key, "h2") && found.value.null);
    assert_false(record_header_next(&record, &at, &found));
    assert_false(record_next(&iter, &record));
    assert_int_equal(record_iter_end(&iter), RECORD_OK);

    struct record_spot spot;
    assert_int_equal(record_find_time(&world.work, batch, 1050, 0, &spot), RECORD_OK);
    assert_int_equal(spot.offset, 101);
    assert_int_equal(spot.timestamp_ms, 1200);
    assert_int_equal(record_find_time(&world.work, batch, 1050, 102, &spot), RECORD_OK);
    assert_int_equal(spot.offset, 102);
    assert_int_equal(record_find_time(&world.work, batch, 1201, 0, &spot), RECORD_OK);
    assert_int_equal(spot.offset, -1);
    assert_int_equal(record_find_latest(&world.work, batch, &spot), RECORD_OK);
    assert_int_equal(spot.offset, 101);
    test_end(&world);
}

static void abort_marker(void **state)
{
    uint8_t bytes[256];
    struct view batch = test_hex(TEST_ABORT_MARKER, bytes, sizeof(bytes));
    struct control_marker_batch marker = {
        .base_offset = 42,
        .leader_epoch = 5,
        .producer_id = 4000,
        .producer_epoch = 3,
        .timestamp_ms = 1700000000000,
        .marker = {.commit = false, .coordinator_epoch = 7}
    };
    uint8_t made[CONTROL_MARKER_BYTES];
    control_marker_store(&marker, made);
    assert_int_equal(batch.size, sizeof(made));
    assert_memory_equal(made, bytes, sizeof(made));

    struct batch_header header;
    struct record_iter iter;
    struct record record;
    struct control_marker parsed;
    assert_int_equal(batch_check(batch, BATCH_CHECK_CRC, &header), RECORD_OK);
    record_iter_begin(&iter, NULL, &header, batch);
    assert_true(record_next(&iter, &record));
    assert_true(control_marker_parse(record.key, record.value, &parsed));
    assert_false(parsed.commit);
    assert_int_equal(parsed.coordinator_epoch, 7);
    record.value.size = 5;
    assert_false(control_marker_parse(record.key, record.value, &parsed));
    (void)record_iter_end(&iter);
}

static void retained_empty_batch(void **state)
{
    struct test_world world;
    test_begin(&world);
    uint8_t bytes[256];
    struct view batch = test_hex(TEST_EMPTY_BATCH, bytes, sizeof(bytes));
    struct batch_build_options options = batch_build_plain;
    options.base_offset = 10;
    options.leader_epoch = 5;
    options.codec = CODEC_ZSTD;
    options.producer_id = 9000;
    options.producer_epoch = 2;
    options.base_sequence = 7;
    struct sink out;
    sink_init(&out, &world.mem, 1000);
    struct batch_build build;
    batch_build_begin(&build, &world.work, &out, &options);
    build.max_timestamp_ms = 1700000000500;
    struct view made;
    assert_int_equal(batch_build_finish(&build, 4, &made), RECORD_OK);
    assert_int_equal(made.size, batch.size);
    assert_memory_equal(made.data, bytes, made.size);
    sink_free(&out);

    struct batch_header header;
    struct record_iter iter;
    struct record record;
    assert_int_equal(batch_check(batch, BATCH_CHECK_CRC | BATCH_CHECK_COUNTS, &header), RECORD_OK);
    assert_int_equal(batch_last_offset(&header), 14);
    assert_int_equal(batch_last_sequence(&header), 11);
    record_iter_begin(&iter, &world.work, &header, batch);
    assert_false(record_next(&iter, &record));
    assert_int_equal(record_iter_end(&iter), RECORD_OK);
    test_end(&world);
}

/* The limit is exact, and a batch that does not fit leaves the sink as it was. */
static void building_keeps_the_limit(void **state)
{
    struct test_world world;
    test_begin(&world);
    uint8_t value[100] = {1};
    struct record_input record = {.timestamp_ms = 5, .value = view_of(value, sizeof(value))};
    for (uint32_t codec = CODEC_NONE; codec < CODEC_COUNT; codec++) {
        struct batch_build_options options = batch_build_plain;
        options.codec = (enum codec)codec;
        uint32_t size = 0;
        for (int32_t less = 0; less < 2; less++) {
            struct sink out;
            struct batch_build build;
            struct view batch;
            sink_init(&out, &world.mem, size == 0 ? 100000 : size + 3 - (uint32_t)less);
            sink_put(&out, "abc", 3);
            batch_build_begin(&build, &world.work, &out, &options);
            for (uint32_t i = 0; i < 50; i++)
                batch_build_add(&build, &record);
            enum record_fault fault = batch_build_finish(&build, -1, &batch);
            assert_int_equal(fault, less == 0 ? RECORD_OK : RECORD_TOO_LARGE);
            assert_int_equal(out.size_bytes, 3 + (less == 0 ? batch.size : 0));
            assert_memory_equal(out.data, "abc", 3);
            if (less == 0) size = batch.size;
            sink_free(&out);
        }
    }
    test_end(&world);
}

static void kraft_control_batch(void **state)
{
    struct test_world world;
    test_begin(&world);
    struct batch_build_options options = batch_build_plain;
    options.control = true;
    options.leader_epoch = 1;
    struct sink out;
    struct batch_build build;
    struct view batch;
    sink_init(&out, &world.mem, 1000);
    batch_build_begin(&build, NULL, &out, &options);
    control_add(&build, CONTROL_SNAPSHOT_HEADER, VIEW("\0\0\0\0\0\0\0\0\0\5\0"), 9);
    control_add(&build, CONTROL_KRAFT_VERSION, VIEW("\0\0\0\1\0"), 9);
    assert_int_equal(batch_build_finish(&build, -1, &batch), RECORD_OK);

    struct batch_header header;
    struct record_iter iter;
    struct record record;
    enum control_type type;
    assert_int_equal(batch_check(batch, BATCH_CHECK_CRC | BATCH_CHECK_COUNTS, &header), RECORD_OK);
    assert_int_equal(header.attributes, BATCH_CONTROL);
    record_iter_begin(&iter, NULL, &header, batch);
    assert_true(record_next(&iter, &record) && control_key_parse(record.key, &type));
    assert_int_equal(type, CONTROL_SNAPSHOT_HEADER);
    assert_true(record_next(&iter, &record) && control_key_parse(record.key, &type));
    assert_int_equal(type, CONTROL_KRAFT_VERSION);
    assert_false(record_next(&iter, &record));
    assert_int_equal(record_iter_end(&iter), RECORD_OK);
    assert_false(control_key_parse(VIEW("\0\0\0"), &type));
    assert_false(control_key_parse(VIEW("\377\377\0\1"), &type));
    assert_false(control_key_parse(VIEW_NULL, &type));
    assert_true(control_key_parse(VIEW("\0\7\0\11"), &type) && type == CONTROL_UNKNOWN);
    sink_free(&out);
    test_end(&world);
}

static void sequences_wrap(void **state)
{
    assert_int_equal(batch_sequence_add(INT32_MAX, 1), 0);
    assert_int_equal(batch_sequence_add(2147483646, 2), 0);
    struct batch_header header = {.base_sequence = 2147483646, .last_offset_delta = 2};
    assert_int_equal(batch_last_sequence(&header), 0);
}

/* Section 7 of the log format: what ends a scan quietly and what is corrupt. */
static void scanning_a_buffer(void **state)
{
    uint8_t bytes[256] = {0};
    struct view one = test_hex(TEST_ONE_RECORD, bytes, sizeof(bytes));
    struct batch_header header;
    struct view batch;
    memcpy(bytes + 70, bytes, 70);

    for (uint32_t size = 0; size <= 140; size++) {
        struct batch_scan scan = batch_scan_of(view_of(bytes, size));
        uint32_t count = 0;
        while (batch_next(&scan, &header, &batch))
            count++;
        assert_int_equal(count, size / one.size);
        assert_int_equal(scan.at, count * one.size);
        assert_int_equal(scan.fault, RECORD_OK);
    }
    store_be32(bytes + 70 + BATCH_AT_LENGTH, 5);
    struct batch_scan scan = batch_scan_of(view_of(bytes, 82));
    assert_true(batch_next(&scan, &header, &batch));
    assert_false(batch_next(&scan, &header, &batch));
    assert_int_equal(scan.fault, RECORD_LENGTH);
    assert_int_equal(scan.at, 70);

    store_be32(bytes + 70 + BATCH_AT_LENGTH, 1000);
    bytes[70 + BATCH_AT_MAGIC] = 3;
    scan = batch_scan_of(view_of(bytes, 86));
    assert_true(batch_next(&scan, &header, &batch));
    assert_false(batch_next(&scan, &header, &batch));
    assert_int_equal(scan.fault, RECORD_OK);
    scan = batch_scan_of(view_of(bytes, 87));
    assert_true(batch_next(&scan, &header, &batch));
    assert_false(batch_next(&scan, &header, &batch));
    assert_int_equal(scan.fault, RECORD_MAGIC);
}

static void counts_are_checked(void **state)
{
    static const struct {
        int32_t delta, count;
        enum record_fault fault;
    } cases[] = {
        {0,         1,         RECORD_OK            },
        {4,         1,         RECORD_OK            }, /* Compacted. */
        {0,         2,         RECORD_COUNT_MISMATCH},
        {-1,        0,         RECORD_LAST_DELTA    },
        {0,         -1,        RECORD_COUNT         },
        {INT32_MAX, INT32_MAX, RECORD_OK            },
    };
    for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint8_t bytes[256];
        struct view batch = test_hex(TEST_ONE_RECORD, bytes, sizeof(bytes));
        store_be32(bytes + BATCH_AT_LAST_OFFSET_DELTA, (uint32_t)cases[i].delta);
        store_be32(bytes + BATCH_AT_RECORD_COUNT, (uint32_t)cases[i].count);
        struct batch_header header;
        assert_int_equal(batch_check(batch, BATCH_CHECK_COUNTS, &header), cases[i].fault);
        assert_int_equal(batch_check(batch, BATCH_CHECK_CRC, &header),
                         i == 0 ? RECORD_OK : RECORD_CRC);
    }
}

/* A record's structure: each rule, on bytes made for it. */
static void faulty_records(void **state)
{
    static const struct {
        const char *hex;
        enum record_fault fault;
    } cases[] = {
        {"10 00 00 00 02 6b 02 76 00",       RECORD_OK          },
        {"10 07 00 00 02 6b 02 76 00",       RECORD_OK          }, /* attributes are not looked at */
        {"0c 00 00 00 01 01 00",             RECORD_OK          }, /* nulls */
        {"0c 00 00 00 05 03 00",             RECORD_OK          }, /* lengths below -1 are null too */
        {"10 00 8000 00 02 6b 01 00",        RECORD_OK          }, /* overlong varint */
        {"",                                 RECORD_SHORT       },
        {"10 00 00 00 02 6b 02 76",          RECORD_SHORT       }, /* one byte missing */
        {"01",                               RECORD_BODY        }, /* length -1 */
        {"0e 00 00 00 02 6b 02 76 00",       RECORD_SHORT       }, /* fields run over the length */
        {"12 00 00 00 02 6b 02 76 00 00",    RECORD_BODY        }, /* length is more than the fields */
        {"10 00 00 00 02 6b fe 76 00",       RECORD_SHORT       },
        {"10 00 00 00 02 6b 02 76 01",       RECORD_HEADER_COUNT},
        {"10 00 00 00 02 6b 02 76 02",       RECORD_HEADER_COUNT},
        {"14 00 00 00 02 6b 02 76 02 01 01", RECORD_HEADER_KEY  },
        {"14 00 00 00 02 6b 02 76 02 00 01", RECORD_OK          },
        {"14 00 00 00 02 6b 02 76 02 04 01", RECORD_SHORT       },
        {"14 00 808080808001 02 6b 00",      RECORD_SHORT       },
        {"14 00 00 808080808001 02 00",      RECORD_VARINT      },
        {"fffffffffff0",                     RECORD_VARINT      },
    };
    for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint8_t bytes[64];
        struct view view = test_hex(cases[i].hex, bytes, sizeof(bytes));
        /* In memory of exactly that size, so that a read too far is seen. */
        uint8_t *exact = malloc(view.size + 1);
        memcpy(exact, bytes, view.size);
        struct record record;
        uint32_t used;
        enum record_fault fault = record_parse(view_of(exact, view.size), &record, &used);
        free(exact);
        if (fault != cases[i].fault)
            fail_msg("case %u (%s): %s", i, cases[i].hex, record_fault_text(fault));
    }
}

static void every_fault_has_a_text(void **state)
{
    for (uint32_t i = 0; i < RECORD_FAULT_COUNT; i++) {
        assert_non_null(record_fault_text((enum record_fault)i));
        assert_int_equal(record_fault_error((enum record_fault)i) == 0, i == RECORD_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_vectors),
        cmocka_unit_test(header_of_one_record),
        cmocka_unit_test(stamp_keeps_the_crc),
        cmocka_unit_test(append_time_changes_header_and_crc),
        cmocka_unit_test(unknown_attribute_bits_go_with_a_rewrite),
        cmocka_unit_test(vectors_rebuild),
        cmocka_unit_test(three_records_are_read),
        cmocka_unit_test(abort_marker),
        cmocka_unit_test(retained_empty_batch),
        cmocka_unit_test(building_keeps_the_limit),
        cmocka_unit_test(kraft_control_batch),
        cmocka_unit_test(sequences_wrap),
        cmocka_unit_test(scanning_a_buffer),
        cmocka_unit_test(counts_are_checked),
        cmocka_unit_test(faulty_records),
        cmocka_unit_test(every_fault_has_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
