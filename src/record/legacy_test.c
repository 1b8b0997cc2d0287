/* legacy_test.c - message sets of magic 0 and 1: byte vectors and test cases of the log format
 * (docs/records.md). */
#include "record/legacy.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "record/batch_build.h"
#include "record/crc.h"
#include "record/record_test.h"

/* Key "k", value "v", time 1700000000000, offset 0. */
#define MESSAGE_1                                                                                  \
    "0000000000000000 00000018 39268c33 01 00 0000018bcfe56800 00000001 6b 00000001 76"
#define MESSAGE_1_APPEND                                                                           \
    "0000000000000000 00000018 9f728f17 01 08 0000018bcfe58f0f 00000001 6b 00000001 76"
#define MESSAGE_0 "0000000000000000 00000010 1fecd70a 00 00 00000001 6b 00000001 76"
/* Null key, value "w", five milliseconds later. */
#define SECOND_1 "0000000000000001 00000017 5049d117 01 00 0000018bcfe56805 ffffffff 00000001 77"
#define SECOND_0 "0000000000000000 0000000f a50b8f63 00 00 ffffffff 00000001 77"

#define WALL_MS 1700000009999

static const struct batch_rules plain_rules = {
    .produce_version = 1,
    .message_bytes_max = 1048588,
    .codec = BATCH_CODEC_PRODUCER,
    .level = COMPRESS_LEVEL_DEFAULT,
    .before_max_ms = INT64_MAX,
    .after_max_ms = 3600000,
    .wall_ms = WALL_MS,
};

static void one_message(void **state)
{
    struct test_world world;
    test_begin(&world);
    static const struct {
        const char *hex;
        int8_t magic;
        int64_t timestamp_ms;
    } cases[] = {
        {MESSAGE_1,        1, 1700000000000},
        {MESSAGE_1_APPEND, 1, WALL_MS      },
        {MESSAGE_0,        0, -1           }
    };
    for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint8_t bytes[64];
        struct view message = test_hex(cases[i].hex, bytes, sizeof(bytes));
        struct batch_header header;
        assert_int_equal(batch_check(message, BATCH_CHECK_CRC, &header), RECORD_OK);
        assert_int_equal(header.magic, cases[i].magic);
        assert_int_equal(header.max_timestamp, cases[i].timestamp_ms);
        assert_int_equal(header.record_count, 1);
        struct legacy_iter iter;
        struct record record;
        legacy_iter_begin(&iter, &world.work, message);
        assert_true(legacy_next(&iter, &record));
        assert_true(view_is(record.key, "k") && view_is(record.value, "v"));
        assert_int_equal(record.timestamp_ms, cases[i].timestamp_ms);
        assert_false(legacy_next(&iter, &record));
        assert_int_equal(legacy_iter_end(&iter), RECORD_OK);
        bytes[message.size - 1] ^= 1;
        assert_int_equal(batch_check(message, BATCH_CHECK_CRC, &header), RECORD_CRC);
    }
    test_end(&world);
}

/* Upgrade and stamp as a leader at offset 10, epoch 0. */
static enum record_fault upgrade(struct test_world *world,
                                 const struct batch_rules *rules,
                                 struct view set,
                                 struct sink *out,
                                 struct batch_verdict *verdict)
{
    sink_init(out, &world->mem, rules->message_bytes_max);
    enum record_fault fault = legacy_upgrade(&world->work, rules, set, out, verdict);
    if (fault == RECORD_OK) batch_stamp(out->data, 10, 0);
    return fault;
}

static void expect_upgrade(struct test_world *world, const char *set_hex, const char *batch_hex)
{
    uint8_t set_bytes[256], batch_bytes[256];
    struct view set = test_hex(set_hex, set_bytes, sizeof(set_bytes));
    struct view batch = test_hex(batch_hex, batch_bytes, sizeof(batch_bytes));
    struct sink out;
    struct batch_verdict verdict;
    assert_int_equal(upgrade(world, &plain_rules, set, &out, &verdict), RECORD_OK);
    assert_int_equal(out.size_bytes, batch.size);
    assert_memory_equal(out.data, batch.data, batch.size);
    assert_int_equal(verdict.size_bytes, batch.size);
    sink_free(&out);
}

static void up_conversion(void **state)
{
    struct test_world world;
    test_begin(&world);
    expect_upgrade(&world, MESSAGE_1 SECOND_1,
                   "000000000000000a 00000042 00000000 02 01949b28 0000 00000001"
                   "0000018bcfe56800 0000018bcfe56805 ffffffffffffffff ffff ffffffff 00000002"
                   "10 00 00 00 02 6b 02 76 00 0e 00 0a 02 01 02 77 00");
    expect_upgrade(&world, MESSAGE_0 SECOND_0,
                   "000000000000000a 00000042 00000000 02 dc8cb9bb 0000 00000001"
                   "ffffffffffffffff ffffffffffffffff ffffffffffffffff ffff ffffffff 00000002"
                   "10 00 00 00 02 6b 02 76 00 0e 00 00 02 01 02 77 00");
    /* A cut last message: the complete ones are taken. */
    expect_upgrade(&world, MESSAGE_1 SECOND_1 "0000000000000001 00000017 5049d117 01",
                   "000000000000000a 00000042 00000000 02 01949b28 0000 00000001"
                   "0000018bcfe56800 0000018bcfe56805 ffffffffffffffff ffff ffffffff 00000002"
                   "10 00 00 00 02 6b 02 76 00 0e 00 0a 02 01 02 77 00");
    test_end(&world);
}

/* A wrapper of `magic` with this offset around the messages. */
static struct view wrap(struct test_world *world,
                        struct view inner,
                        enum codec codec,
                        int64_t offset,
                        struct sink *out)
{
    int8_t magic = (int8_t)inner.data[BATCH_AT_MAGIC];
    struct sink value;
    struct compress stream;
    struct compress_options how = {codec, COMPRESS_LEVEL_DEFAULT, magic};
    sink_init(&value, &world->mem, 1 << 20);
    compress_begin(&stream, &world->work, &value, how);
    compress_write(&stream, inner.data, inner.size);
    assert_true(compress_end(&stream));

    sink_init(out, &world->mem, 1 << 20);
    sink_put_be64(out, (uint64_t)offset);
    sink_put_be32(out, (magic == 1 ? 22 : 14) + value.size_bytes);
    sink_put_be32(out, 0);
    sink_put_u8(out, (uint8_t)magic);
    sink_put_u8(out, (uint8_t)codec);
    if (magic == 1) sink_put_be64(out, 1700000000005);
    sink_put_be32(out, UINT32_MAX);
    sink_put_be32(out, value.size_bytes);
    sink_put(out, value.data, value.size_bytes);
    store_be32(out->data + 12, crc_32(out->data + 16, out->size_bytes - 16));
    sink_free(&value);
    return sink_view(out);
}

static void wrappers(void **state)
{
    static const struct {
        const char *inner;
        enum codec codec;
        int64_t offset;
        enum record_fault fault;
    } cases[] = {
        {MESSAGE_1 SECOND_1,                                                                  CODEC_GZIP,   1, RECORD_OK         },
        {MESSAGE_1 SECOND_1,                                                                  CODEC_SNAPPY, 0, RECORD_OK         }, /* As librdkafka once sent it. */
        {MESSAGE_0 SECOND_0,                                                                  CODEC_LZ4,    0, RECORD_OK         },
        {MESSAGE_1 SECOND_1 SECOND_1,                                                         CODEC_GZIP,   1, RECORD_OK         },
        {MESSAGE_1 "0000000000000002 00000017 00000000 01 00",                                CODEC_GZIP,   1, RECORD_OK         },
        {MESSAGE_1 MESSAGE_0,                                                                 CODEC_GZIP,   1, RECORD_MAGIC_MIXED},
        {"0000000000000005 00000018 39268c33 01 00 0000018bcfe56800 00000001 6b 00000001 76",
         CODEC_GZIP,                                                                                        1, RECORD_WRAPPER    },
        {"0000000000000000 00000018 39268c34 01 00 0000018bcfe56800 00000001 6b 00000001 76",
         CODEC_GZIP,                                                                                        1, RECORD_CRC        },
        {"0000000000000000 00000018 00000000 01 01 0000018bcfe56800 00000001 6b 00000001 76",
         CODEC_GZIP,                                                                                        1, RECORD_NESTED     },
        {"0000000000000000 00000008 39268c33 01 00 00000000",                                 CODEC_GZIP,   1, RECORD_LENGTH     },
        {MESSAGE_1,                                                                           CODEC_ZSTD,   1, RECORD_WRAPPER    },
        {"0000000000000000 01000018 39268c33 01 00 0000018bcfe56800",                         CODEC_GZIP,   1,
         RECORD_WRAPPER                                                                                                          },
    };
    struct test_world world;
    test_begin(&world);
    for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint8_t bytes[256];
        struct view inner = test_hex(cases[i].inner, bytes, sizeof(bytes));
        struct sink wrapper, out;
        struct batch_verdict verdict;
        struct view set = wrap(&world, inner, cases[i].codec, cases[i].offset, &wrapper);
        enum record_fault fault = upgrade(&world, &plain_rules, set, &out, &verdict);
        if (fault != cases[i].fault) fail_msg("case %u: %s", i, record_fault_text(fault));
        if (fault == RECORD_OK) assert_int_equal(batch_codec(&verdict.header), cases[i].codec);
        sink_free(&wrapper);
        sink_free(&out);
    }
    test_end(&world);
}

static void offsets_of_wrappers(void **state)
{
    struct test_world world;
    test_begin(&world);
    static const int64_t wrapper_offsets[] = {1, 100, 0};
    static const int64_t first_offsets[] = {0, 99, 0};
    for (uint32_t i = 0; i < 3; i++) {
        uint8_t bytes[256];
        struct view inner = test_hex(MESSAGE_1 SECOND_1, bytes, sizeof(bytes));
        struct sink wrapper;
        struct view set = wrap(&world, inner, CODEC_GZIP, wrapper_offsets[i], &wrapper);
        struct legacy_iter iter;
        struct record record;
        legacy_iter_begin(&iter, &world.work, set);
        assert_true(legacy_next(&iter, &record));
        assert_int_equal(record.offset, first_offsets[i]);
        assert_true(legacy_next(&iter, &record));
        assert_int_equal(record.offset, first_offsets[i] + 1);
        assert_false(legacy_next(&iter, &record));
        assert_int_equal(legacy_iter_end(&iter), RECORD_OK);
        struct record_spot spot;
        assert_int_equal(record_find_time(&world.work, set, 1700000000001, 0, &spot), RECORD_OK);
        assert_int_equal(spot.offset, first_offsets[i] + 1);
        sink_free(&wrapper);
    }
    test_end(&world);
}

/* What the set as a whole, or the topic's rules, refuse. */
static void refused_sets(void **state)
{
    struct batch_rules compacted = plain_rules;
    compacted.compacted = true;
    struct batch_rules small = plain_rules;
    small.message_bytes_max = 70;
    struct batch_rules late = plain_rules;
    late.before_max_ms = 1000;
    struct batch_rules append = plain_rules;
    append.append_time = true;
    const struct {
        const char *set;
        const struct batch_rules *rules;
        enum record_fault fault;
    } cases[] = {
        {"",                                                                                  &plain_rules, RECORD_NO_BATCH   },
        {MESSAGE_1 MESSAGE_0,                                                                 &plain_rules, RECORD_MAGIC_MIXED},
        {TEST_ONE_RECORD,                                                                     &plain_rules, RECORD_MAGIC_OLD  },
        {MESSAGE_1 SECOND_1,                                                                  &compacted,   RECORD_NULL_KEY   },
        {MESSAGE_1,                                                                           &small,       RECORD_OK         },
        {MESSAGE_1 SECOND_1,                                                                  &small,       RECORD_TOO_LARGE  }, /* One batch of 78 bytes. */
        {MESSAGE_1,                                                                           &late,        RECORD_TIME_RANGE },
        {MESSAGE_0,                                                                           &late,        RECORD_OK         },
        {MESSAGE_1_APPEND,                                                                    &append,      RECORD_TIME_TYPE  },
        {MESSAGE_0,                                                                           &append,      RECORD_OK         },
        {"0000000000000000 00000005 39268c33 01 00",                                          &plain_rules, RECORD_LENGTH     },
        {"0000000000000000 00000018 39268c34 01 00 0000018bcfe56800 00000001 6b 00000001 76",
         &plain_rules,                                                                                      RECORD_CRC        },
    };
    struct test_world world;
    test_begin(&world);
    for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint8_t bytes[256];
        struct view set = test_hex(cases[i].set, bytes, sizeof(bytes));
        struct sink out;
        struct batch_verdict verdict;
        enum record_fault fault = upgrade(&world, cases[i].rules, set, &out, &verdict);
        if (fault != cases[i].fault) fail_msg("case %u: %s", i, record_fault_text(fault));
        if (fault == RECORD_OK && cases[i].rules == &append) {
            assert_int_equal(verdict.header.base_timestamp, -1);
            assert_int_equal(verdict.header.max_timestamp, WALL_MS);
            assert_int_equal(verdict.header.attributes, BATCH_APPEND_TIME);
        }
        sink_free(&out);
    }
    test_end(&world);
}

static void topic_codec_is_used(void **state)
{
    struct test_world world;
    test_begin(&world);
    struct batch_rules rules = plain_rules;
    rules.codec = CODEC_LZ4;
    uint8_t bytes[256];
    struct view set = test_hex(MESSAGE_1 SECOND_1 SECOND_1, bytes, sizeof(bytes));
    struct sink out;
    struct batch_verdict verdict;
    assert_int_equal(upgrade(&world, &rules, set, &out, &verdict), RECORD_OK);
    assert_int_equal(batch_codec(&verdict.header), CODEC_LZ4);
    assert_int_equal(verdict.header.record_count, 3);
    sink_free(&out);
    test_end(&world);
}

static void expect_downgrade(struct test_world *world,
                             struct view batches,
                             int8_t magic,
                             int64_t fetch_offset,
                             const char *hex)
{
    uint8_t bytes[512];
    struct view want = test_hex(hex, bytes, sizeof(bytes));
    struct sink out;
    sink_init(&out, &world->mem, 10000);
    assert_int_equal(legacy_downgrade(&world->work, batches, magic, fetch_offset, &out), RECORD_OK);
    assert_int_equal(out.size_bytes, want.size);
    if (want.size > 0) assert_memory_equal(out.data, want.data, want.size);
    sink_free(&out);
}

static void down_conversion(void **state)
{
    struct test_world world;
    test_begin(&world);
    uint8_t bytes[512];
    struct view batch = test_hex(TEST_THREE_RECORDS, bytes, sizeof(bytes));
    const char *third =
        "0000000000000066 00000016 b90429c5 01 00 000000000000044c 00000000 00000000";
    expect_downgrade(
        &world, batch, 1, 100,
        "0000000000000064 00000017 8a65e96d 01 00 00000000000003e8 ffffffff 00000001 61"
        "0000000000000065 00000019 1ff7562f 01 00 00000000000004b0 00000003 6b6579 "
        "ffffffff 0000000000000066 00000016 b90429c5 01 00 000000000000044c 00000000 "
        "00000000");
    expect_downgrade(&world, batch, 0, 100,
                     "0000000000000064 0000000f 51df3a32 00 00 ffffffff 00000001 61"
                     "0000000000000065 00000011 7a0a65ca 00 00 00000003 6b6579 ffffffff"
                     "0000000000000066 0000000e e38a6876 00 00 00000000 00000000");
    expect_downgrade(&world, batch, 1, 102, third);
    expect_downgrade(&world, batch, 1, 103, "");
    expect_downgrade(&world, test_hex(TEST_ONE_RECORD, bytes, sizeof(bytes)), 1, 0, MESSAGE_1);
    /* Control batches and what is below already: left out, left alone. */
    expect_downgrade(&world, test_hex(TEST_ABORT_MARKER, bytes, sizeof(bytes)), 1, 0, "");
    expect_downgrade(&world,
                     test_hex(TEST_ONE_RECORD TEST_ABORT_MARKER MESSAGE_0, bytes, sizeof(bytes)), 1,
                     0, MESSAGE_1 MESSAGE_0);
    expect_downgrade(&world, test_hex(MESSAGE_1, bytes, sizeof(bytes)), 0, 0, MESSAGE_0);
    test_end(&world);
}

static void down_conversion_of_lz4(void **state)
{
    struct test_world world;
    test_begin(&world);
    uint8_t bytes[256];
    for (int8_t magic = 0; magic < 2; magic++) {
        struct view batch = test_hex(TEST_LZ4_RECORD, bytes, sizeof(bytes));
        struct sink out;
        sink_init(&out, &world.mem, 1000);
        assert_int_equal(legacy_downgrade(&world.work, batch, magic, 0, &out), RECORD_OK);
        uint32_t value_at = magic == 0 ? 26 : 34;
        assert_int_equal(load_be32(out.data + value_at), 0x04224d18);
        assert_int_equal(out.data[value_at + 6], magic == 0 ? 0x1a : 0x82);
        struct batch_header header;
        assert_int_equal(batch_check(sink_view(&out), BATCH_CHECK_CRC, &header), RECORD_OK);
        struct legacy_iter iter;
        struct record record;
        legacy_iter_begin(&iter, &world.work, sink_view(&out));
        assert_true(legacy_next(&iter, &record));
        assert_true(view_is(record.key, "k") && view_is(record.value, "v"));
        assert_int_equal(record.bytes.size, magic == 0 ? 28 : 36);
        assert_false(legacy_next(&iter, &record));
        assert_int_equal(legacy_iter_end(&iter), RECORD_OK);
        sink_free(&out);
    }
    test_end(&world);
}

static void down_conversion_stops_at_zstd(void **state)
{
    struct test_world world;
    test_begin(&world);
    struct batch_build_options options = batch_build_plain;
    struct batch_build build;
    struct record_input record = {.timestamp_ms = 5, .key = VIEW("k"), .value = VIEW("v")};
    struct sink in, out;
    struct view batch;
    sink_init(&in, &world.mem, 1000);
    sink_init(&out, &world.mem, 1000);
    for (uint32_t i = 0; i < 2; i++) {
        options.codec = i == 0 ? CODEC_NONE : CODEC_ZSTD;
        batch_build_begin(&build, &world.work, &in, &options);
        batch_build_add(&build, &record);
        assert_int_equal(batch_build_finish(&build, -1, &batch), RECORD_OK);
    }
    assert_int_equal(legacy_downgrade(&world.work, sink_view(&in), 1, 0, &out), RECORD_OK);
    assert_int_equal(out.size_bytes, 36);
    sink_reset(&out);
    assert_int_equal(legacy_downgrade(&world.work, batch, 1, 0, &out), RECORD_ZSTD_OLD);
    assert_int_equal(out.size_bytes, 0);
    sink_free(&in);
    sink_free(&out);
    test_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_message),
        cmocka_unit_test(up_conversion),
        cmocka_unit_test(wrappers),
        cmocka_unit_test(offsets_of_wrappers),
        cmocka_unit_test(refused_sets),
        cmocka_unit_test(topic_codec_is_used),
        cmocka_unit_test(down_conversion),
        cmocka_unit_test(down_conversion_of_lz4),
        cmocka_unit_test(down_conversion_stops_at_zstd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
