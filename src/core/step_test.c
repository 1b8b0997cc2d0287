/* step_test.c - records in their log form, byte for byte; features, undo,
 * names, joined text. */
#include <stdio.h>

#include "core/core_test.h"

#include "core/feature.h"
#include "core/image.h"
#include "core/join.h"
#include "core/names.h"
#include "core/undo.h"
#include "gen/begin_transaction_record.h"
#include "gen/broker_registration_change_record.h"
#include "gen/clear_elr_record.h"
#include "gen/config_record.h"
#include "gen/end_transaction_record.h"
#include "gen/feature_level_record.h"
#include "gen/group_metadata_key.h"
#include "gen/k_raft_version_record.h"
#include "gen/no_op_record.h"
#include "gen/partition_change_record.h"
#include "gen/producer_ids_record.h"
#include "gen/unregister_controller_record.h"

struct rig {
    struct rig_mem heap;
    struct arena arena;
    struct step step;
};

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    rig_mem_init(&rig->heap);
    arena_init(&rig->arena, &rig->heap.mem, 0);
    step_begin(&rig->step, &rig->arena, 0, 0);
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;
    arena_free(&rig->arena);
    assert_int_equal(rig->heap.mem.used_bytes, 0);
    free(rig);
    return 0;
}

/* The step's last record reads like this, and is read back. */
static void expect(struct rig *rig, const char *hex)
{
    const struct step_part *part = &rig->step.records[rig->step.record_count - 1].value;
    struct view want = rig_hex(&rig->arena, hex);
    assert_int_equal(step_encoded_size(part), want.size);
    assert_true(view_equal(step_encode(&rig->arena, part), want));
    struct step_record again;
    assert_true(step_decode(want, &rig->arena, &again));
    assert_ptr_equal(again.value.message, part->message);
    assert_int_equal(again.value.version, part->version);
}

static void feature(struct rig *rig, struct view name, int16_t level)
{
    struct feature_level_record *record = step_add(&rig->step, &wire_feature_level_record, 0);
    record->name = name;
    record->feature_level = level;
}

/* T2, the records. */
static void test_simple_frames(void **state)
{
    struct rig *rig = *state;
    assert_non_null(step_add(&rig->step, &wire_no_op_record, 0));
    expect(rig, "01140000");
    assert_non_null(step_add(&rig->step, &wire_end_transaction_record, 0));
    expect(rig, "01180000");
    struct begin_transaction_record *begin =
        step_add(&rig->step, &wire_begin_transaction_record, 0);
    begin->name = VIEW("Bootstrap records");
    expect(rig, "0117000100 1212 426f6f747374726170207265636f726473");
    feature(rig, VIEW("metadata.version"), 33);
    expect(rig, "010c0011 6d657461646174612e76657273696f6e 002100");
    feature(rig, VIEW("group.version"), 1);
    expect(rig, "010c000e 67726f75702e76657273696f6e 000100");
    struct config_record *config = step_add(&rig->step, &wire_config_record, 0);
    config->resource_type = 4;
    config->name = VIEW("min.insync.replicas");
    config->value = VIEW("1");
    expect(rig, "010400040114 6d696e2e696e73796e632e7265706c69636173 023100");
    struct clear_elr_record *clear = step_add(&rig->step, &wire_clear_elr_record, 0);
    expect(rig, "011c000100");
    clear->topic_name = VIEW("t");
    expect(rig, "011c00027400");
    struct unregister_controller_record *gone =
        step_add(&rig->step, &wire_unregister_controller_record, 0);
    gone->controller_id = 3;
    expect(rig, "011d00 00000003 00");
    struct producer_ids_record *ids = step_add(&rig->step, &wire_producer_ids_record, 0);
    ids->broker_id = 1;
    ids->broker_epoch = 6;
    ids->next_producer_id = 1000;
    expect(rig, "010f00 00000001 0000000000000006 00000000000003e8 00");
}

static struct broker_registration_change_record *broker_change(struct rig *rig, int16_t version)
{
    struct broker_registration_change_record *record =
        step_add(&rig->step, &wire_broker_registration_change_record, version);
    record->broker_id = 1;
    record->broker_epoch = 6;
    return record;
}

static void test_broker_frames(void **state)
{
    struct rig *rig = *state;
    broker_change(rig, 0)->fenced = -1;
    expect(rig, "011100 00000001 0000000000000006 010001ff");
    broker_change(rig, 0)->fenced = 1;
    expect(rig, "011100 00000001 0000000000000006 01000101");
    broker_change(rig, 1)->in_controlled_shutdown = 1;
    expect(rig, "011101 00000001 0000000000000006 01010101");
    struct uuid directory;
    for (uint8_t i = 0; i < 16; i++)
        directory.bytes[i] = (uint8_t)(0x10 + i);
    struct broker_registration_change_record *record = broker_change(rig, 3);
    record->cordoned_log_dirs.items = &directory;
    record->cordoned_log_dirs.count = 1;
    expect(rig, "011103 00000001 0000000000000006 01031102 101112131415161718191a1b1c1d1e1f");
    record->cordoned_log_dirs.count = 0;
    expect(rig, "011103 00000001 0000000000000006 01030101");
}

static void test_partition_frames(void **state)
{
    struct rig *rig = *state;
    int32_t ids[] = {1, 2};
    struct partition_change_record *record = step_add(&rig->step, &wire_partition_change_record, 2);
    record->partition_id = 0;
    for (uint8_t i = 0; i < 16; i++)
        record->topic_id.bytes[i] = i;
    record->isr.count = 0;
    record->leader = -1;
    record->eligible_leader_replicas.items = ids;
    record->eligible_leader_replicas.count = 2;
    record->last_known_elr.items = ids;
    record->last_known_elr.count = 1;
    expect(rig, "010502 00000000 000102030405060708090a0b0c0d0e0f 04 000101 0104ffffffff"
                "0609 03 00000001 00000002 0705 02 00000001");
}

/* The other kinds: a control record's bare body, a coordinator's key with its type. */
static void test_other_frames(void **state)
{
    struct rig *rig = *state;
    struct k_raft_version_record kraft = {.k_raft_version = 1};
    struct step_part part = {.message = &wire_k_raft_version_record, .value = &kraft};
    assert_true(view_equal(step_encode(&rig->arena, &part), rig_hex(&rig->arena, "0000000100")));
    struct group_metadata_key key = {.group = VIEW("g")};
    part = (struct step_part){.message = &wire_group_metadata_key, .value = &key};
    assert_true(view_equal(step_encode(&rig->arena, &part), rig_hex(&rig->arena, "0002000167")));
    part = (struct step_part){.bytes = VIEW("raw")};
    assert_true(view_is(step_encode(&rig->arena, &part), "raw"));
    part = (struct step_part){.bytes = VIEW_NULL};
    assert_true(step_encode(&rig->arena, &part).null);
    assert_int_equal(step_encoded_size(&part), 0);
}

static void test_room(void **state)
{
    struct rig *rig = *state;
    for (uint32_t i = 0; i < STEP_RECORDS_MAX; i++)
        assert_non_null(step_add(&rig->step, &wire_no_op_record, 0));
    assert_int_equal(step_room(&rig->step), 0);
    assert_ptr_equal(rig->step.records[9999].value.message, &wire_no_op_record);
}

/* Ids are made from the step's bits alone, none is reserved, none begins with '-'. */
static void test_random(void **state)
{
    struct rig *rig = *state;
    struct step other = rig->step;
    for (uint32_t i = 0; i < 10000; i++) {
        struct uuid id = step_uuid(&rig->step);
        assert_true(uuid_equal(id, step_uuid(&other)));
        assert_false(image_uuid_reserved(id));
        assert_int_not_equal(id.bytes[0] >> 2, 62);
        assert_int_equal(id.bytes[6] >> 4, 4);
        assert_int_equal(id.bytes[8] >> 6, 2);
    }
}

/* ---- features -------------------------------------------------------------------------------- */

static int16_t level_at(const char *name, int16_t metadata_version)
{
    return feature_default_level(feature_find(view_of_string(name)), metadata_version);
}

static void test_features(void **state)
{
    assert_int_equal(level_at("group.version", 21), 0);
    assert_int_equal(level_at("group.version", 22), 1);
    assert_int_equal(level_at("transaction.version", 24), 2);
    assert_int_equal(level_at("eligible.leader.replicas.version", 25), 0);
    assert_int_equal(level_at("eligible.leader.replicas.version", 26), 1);
    assert_int_equal(level_at("share.version", 28), 1);
    assert_int_equal(level_at("share.version", 31), 2);
    assert_int_equal(level_at("streams.version", 33), 1);
    assert_null(feature_find(VIEW("none")));
    assert_true(feature_metadata_changes(16, 17));
    assert_false(feature_metadata_changes(21, 22));
    assert_false(feature_metadata_changes(17, 17));
    assert_string_equal(feature_metadata_name(33), "4.4-IV2");
    assert_string_equal(feature_metadata_name(7), "3.3-IV3");
    assert_string_equal(feature_metadata_name(25), "4.0-IV3");
    assert_null(feature_metadata_name(34));
    assert_int_equal(feature_metadata_level(VIEW("4.2")), 29);
    assert_int_equal(feature_metadata_level(VIEW("4.2-IV0")), 28);
    assert_int_equal(feature_metadata_level(VIEW("3.3")), 7);
    assert_int_equal(feature_metadata_level(VIEW("4.9")), 0);
    assert_int_equal(feature_metadata_level(VIEW("4")), 0);
    assert_int_equal(feature_register_broker_version(29), 3);
    assert_int_equal(feature_register_broker_version(30), 4);
    assert_int_equal(feature_partition_version(16), 0);
    assert_int_equal(feature_partition_version(22), 1);
    assert_int_equal(feature_partition_version(23), 2);
}

/* ---- undo ------------------------------------------------------------------------------------ */

struct change {
    struct undo_entry entry;
    char letter;
};

struct undo_rig {
    char dropped[32];
    char backed[32];
};

static void drop(void *machine, struct undo_entry *entry)
{
    struct undo_rig *rig = machine;
    rig->dropped[strlen(rig->dropped)] = container_of(entry, struct change, entry)->letter;
}

static void back(void *machine, struct undo_entry *entry)
{
    struct undo_rig *rig = machine;
    rig->backed[strlen(rig->backed)] = container_of(entry, struct change, entry)->letter;
}

static void test_undo(void **state)
{
    struct undo_rig rig = {{0}, {0}};
    struct undo_log log;
    struct change changes[6] = {0};
    static const int64_t offsets[] = {10, 10, 12, 15, 15, 20};
    undo_init(&log, &rig, drop, back);
    for (uint32_t i = 0; i < ARRAY_SIZE(changes); i++) {
        changes[i].letter = (char)('a' + i);
        undo_add(&log, &changes[i].entry, offsets[i]);
    }
    undo_commit(&log, 10);
    assert_string_equal(rig.dropped, "");
    undo_commit(&log, 12);
    assert_string_equal(rig.dropped, "ab");
    undo_back(&log, 15);
    assert_string_equal(rig.backed, "fed");
    assert_int_equal(log.count, 1);
    undo_commit(&log, INT64_MAX);
    assert_string_equal(rig.dropped, "abc");
    log.off = true;
    undo_add(&log, &changes[5].entry, 30);
    assert_string_equal(rig.dropped, "abcf");
    assert_int_equal(log.count, 0);
}

/* ---- small things ---------------------------------------------------------------------------- */

static void test_names(void **state)
{
    struct rig *rig = *state;
    struct names names;
    char texts[1000][8];
    assert_true(names_init(&names, &rig->arena, 1000, 42));
    for (uint32_t i = 0; i < 1000; i++) {
        int size = snprintf(texts[i], sizeof(texts[i]), "%u", i % 700);
        assert_int_equal(names_see(&names, view_of(texts[i], (uint32_t)size)), 1 + i / 700);
    }
    assert_int_equal(names_seen(&names, VIEW("5")), 2);
    assert_int_equal(names_seen(&names, VIEW("650")), 1);
    assert_int_equal(names_seen(&names, VIEW("700")), 0);
    assert_int_equal(names_see(&names, VIEW_EMPTY), 1);
    assert_int_equal(names_place(&names, VIEW("0")), 0);
    assert_int_equal(names_place(&names, VIEW("699")), 699);
    assert_int_equal(names_place(&names, VIEW("700")), NAMES_NONE);
    assert_int_equal(names_place(&names, VIEW_EMPTY), 700);
}

static void test_join(void **state)
{
    struct rig *rig = *state;
    struct view text = JOIN(&rig->arena, VIEW("a"), VIEW_NULL, join_number(&rig->arena, INT64_MIN),
                            VIEW_EMPTY, join_number(&rig->arena, 0));
    assert_true(view_is(text, "a-92233720368547758080"));
    assert_false(JOIN(&rig->arena, VIEW_NULL).null);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_simple_frames),
        TEST(test_broker_frames),
        TEST(test_partition_frames),
        TEST(test_other_frames),
        TEST(test_room),
        TEST(test_random),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_undo),
        TEST(test_names),
        TEST(test_join),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
