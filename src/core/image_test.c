/* image_test.c - records in, image out: what a real node wrote, every kind of record, undo,
 * transactions, snapshots, and every allocation failed once. */
#include "core/image_random.h"

#include "gen/abort_transaction_record.h"
#include "gen/begin_transaction_record.h"
#include "gen/broker_registration_change_record.h"
#include "gen/client_quota_record.h"
#include "gen/delegation_token_record.h"
#include "gen/end_transaction_record.h"
#include "gen/feature_level_record.h"
#include "gen/partition_change_record.h"
#include "gen/partition_record.h"
#include "gen/producer_ids_record.h"
#include "gen/remove_topic_record.h"
#include "gen/topic_record.h"
#include "gen/unregister_broker_record.h"

struct rig {
    struct rig_mem heap;
    struct arena arena;
    struct image *image;
    int64_t offset;
};

static int rig_setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    rig_mem_init(&rig->heap);
    arena_init(&rig->arena, &rig->heap.mem, 0);
    rig->image = image_new(&rig->heap.mem, 7);
    assert_non_null(rig->image);
    *state = rig;
    return 0;
}

static int rig_teardown(void **state)
{
    struct rig *rig = *state;
    rig->heap.fail_in = -1;
    rig->image = image_free(rig->image);
    arena_free(&rig->arena);
    assert_int_equal(rig->heap.mem.used_bytes, 0);
    free(rig);
    return 0;
}

/* The data records of a node of Apache Kafka 4.4.0: formatted, started, one topic made, changed,
 * grown, written to with idempotence, deleted; stopped. Batches as it made them. */
static const struct {
    int64_t offset;
    int64_t batch;
    const char *hex;
} kafka_log[] = {
    {3,   3,   "01170001001212426f6f747374726170207265636f726473"                              },
    {4,   3,   "010c00116d657461646174612e76657273696f6e002100"                                },
    {5,   3,   "010c0021656c696769626c652e6c65616465722e7265706c696361732e76657273696f6e000100"},
    {6,   3,   "010c000e67726f75702e76657273696f6e000100"                                      },
    {7,   3,   "010c000e73686172652e76657273696f6e000200"                                      },
    {8,   3,   "010c001073747265616d732e76657273696f6e000100"                                  },
    {9,   3,   "010c00147472616e73616374696f6e2e76657273696f6e000200"                          },
    {10,  3,   "0104000401146d696e2e696e73796e632e7265706c69636173023100"                      },
    {11,  3,   "01180000"                                                                      },
    {12,  12,
     "011b000000000195a28b054c654b908c2d8ec49e5f451300020b434f4e54524f4c4c45520a6c6f63616c"
     "686f737452d1000000080e67726f75702e76657273696f6e00000001000e6b726166742e76657273696f6e"
     "0000000100116d657461646174612e76657273696f6e00070021000e73686172652e76657273696f6e0000"
     "0002001073747265616d732e76657273696f6e0000000100147472616e73616374696f6e2e76657273696f"
     "6e000000020021656c696769626c652e6c65616465722e7265706c696361732e76657273696f6e00000001"
     "0000"                                                                                    },
    {13,  13,
     "0100040000000100e27cbf2e4baa456d88b42aa7ce8d1b02000000000000000d020a504c41494e54455854"
     "0a6c6f63616c686f737452d0000000080e67726f75702e76657273696f6e00000001001073747265616d73"
     "2e76657273696f6e0000000100147472616e73616374696f6e2e76657273696f6e000000020021656c6967"
     "69626c652e6c65616465722e7265706c696361732e76657273696f6e0000000100116d657461646174612e"
     "76657273696f6e00070021000e73686172652e76657273696f6e00000002000e6b726166742e7665727369"
     "6f6e0000000100000100010011023ccccd6c37114919aada0312212ab18a"                            },
    {14,  14,  "01140000"                                                                      },
    {15,  15,  "01110300000001000000000000000d01030101"                                        },
    {16,  16,  "01110000000001000000000000000d010001ff"                                        },
    {43,  43,  "0102000274041c577bbfff47bcbc7d44690672c9dc00"                                  },
    {44,  43,  "0104000202740d726574656e74696f6e2e6d730731303030303000"                        },
    {45,  43,
     "01030200000000041c577bbfff47bcbc7d44690672c9dc0200000001020000000101010000000100000000"
     "00000000023ccccd6c37114919aada0312212ab18a00"                                            },
    {46,  43,
     "01030200000001041c577bbfff47bcbc7d44690672c9dc0200000001020000000101010000000100000000"
     "00000000023ccccd6c37114919aada0312212ab18a00"                                            },
    {49,  49,  "010400020274146d696e2e696e73796e632e7265706c69636173023100"                    },
    {50,  49,  "0104000202740b7365676d656e742e6d73053530303000"                                },
    {51,  49,  "011c00027400"                                                                  },
    {54,  54,
     "01030200000002041c577bbfff47bcbc7d44690672c9dc0200000001020000000101010000000100000000"
     "00000000023ccccd6c37114919aada0312212ab18a00"                                            },
    {57,  57,  "010f0000000001000000000000000d00000000000003e800"                              },
    {60,  60,  "010900041c577bbfff47bcbc7d44690672c9dc00"                                      },
    {222, 222, "01110000000001000000000000000d01000101"                                        },
};

static enum image_result kafka_apply(struct rig *rig, struct image *image, uint32_t i)
{
    struct step_record record;
    bool decoded = step_decode(rig_hex(&rig->arena, kafka_log[i].hex), &rig->arena, &record);
    assert_true(decoded);
    /* Written back, it is the same. */
    struct view again = step_encode(&rig->arena, &record.value);
    assert_true(view_equal(again, rig_hex(&rig->arena, kafka_log[i].hex)));
    enum image_result result = image_apply(image, &record, kafka_log[i].offset, kafka_log[i].batch);
    arena_reset(&rig->arena);
    return result;
}

static void kafka_apply_until(struct rig *rig, int64_t offset)
{
    for (uint32_t i = 0; i < ARRAY_SIZE(kafka_log) && kafka_log[i].offset <= offset; i++)
        assert_int_equal(kafka_apply(rig, rig->image, i), IMAGE_OK);
}

static void test_kafka_log(void **state)
{
    struct rig *rig = *state;
    struct image *image = rig->image;

    kafka_apply_until(rig, 10);
    assert_int_equal(image_metadata_version(image), 0); /* Inside the transaction. */
    assert_int_equal(image_transaction(image), 3);
    image_free(image);
    image = rig->image = image_new(&rig->heap.mem, 7);

    kafka_apply_until(rig, 57);
    assert_int_equal(image_transaction(image), -1);
    assert_int_equal(image_metadata_version(image), 33);
    assert_int_equal(image_feature_level(image, VIEW("share.version")), 2);
    assert_int_equal(image_feature_level(image, VIEW("kraft.version")), 0);
    assert_int_equal(image_producer_id_next(image), 1000);

    const struct image_node *broker = image_broker(image, 1);
    assert_non_null(broker);
    assert_int_equal(broker->epoch, 13);
    assert_int_equal(broker->register_offset, 13);
    assert_false(broker->fenced);
    assert_true(broker->cordoned_known);
    assert_int_equal(broker->directory_count, 1);
    assert_int_equal(broker->feature_count, 7);
    const struct image_endpoint *endpoint = image_endpoint(broker, VIEW("PLAINTEXT"));
    assert_true(view_is(endpoint->host, "localhost"));
    assert_int_equal(endpoint->port, 21200);
    assert_null(image_endpoint(broker, VIEW("CONTROLLER")));
    assert_non_null(image_controller(image, 1));
    assert_true(image_broker_active(image, 1));

    const struct image_topic *topic = image_topic(image, VIEW("t"));
    assert_ptr_equal(image_topic_by_id(image, topic->id), topic);
    assert_int_equal(topic->partition_count, 3);
    const struct image_partition *partition = image_partition(topic, 1);
    assert_int_equal(partition->leader, 1);
    assert_true(uuid_equal(image_directory(partition, 0), broker->directories[0]));
    assert_null(image_partition(topic, 3));
    const struct image_configs *configs = image_configs(image, IMAGE_RESOURCE_TOPIC, VIEW("t"));
    assert_int_equal(configs->count, 3);
    assert_true(view_is(image_config(configs, VIEW("retention.ms")), "100000"));
    assert_true(image_config(configs, VIEW("cleanup.policy")).null);
    assert_int_equal(image_load(image, 1).leader, 3);
    assert_int_equal(image_load(image, 1).isr, 3);
    assert_int_equal(image_count(image, IMAGE_PARTITION), 3);

    assert_int_equal(kafka_apply(rig, image, ARRAY_SIZE(kafka_log) - 2), IMAGE_OK);
    assert_null(image_topic(image, VIEW("t")));
    assert_null(image_configs(image, IMAGE_RESOURCE_TOPIC, VIEW("t")));
    assert_int_equal(image_load(image, 1).leader, 0);
    assert_int_equal(kafka_apply(rig, image, ARRAY_SIZE(kafka_log) - 1), IMAGE_OK);
    assert_true(image_broker(image, 1)->fenced);
}

/* ---- snapshots ------------------------------------------------------------------------------- */

struct loader {
    struct image *into;
    uint8_t types[64];
    uint32_t count;
};

static bool load_record(void *context, const struct step_record *record)
{
    struct loader *loader = context;
    if (loader->count < ARRAY_SIZE(loader->types))
        loader->types[loader->count] = (uint8_t)record->value.message->api_key;
    loader->count++;
    if (loader->into == NULL) return true;
    return image_apply(loader->into, record, 100, 100) == IMAGE_OK;
}

/* The image equals the one that its snapshot makes. */
static void check_snapshot(struct rig *rig)
{
    struct image *copy = image_new(&rig->heap.mem, 99);
    struct loader loader = {.into = copy};
    assert_true(rig_snapshot(rig->image, load_record, &loader));
    assert_true(image_equal(rig->image, copy));
    image_free(copy);
}

static void test_snapshot_of_kafka_log(void **state)
{
    struct rig *rig = *state;
    kafka_apply_until(rig, 57);
    check_snapshot(rig);

    struct loader loader = {0};
    assert_true(rig_snapshot(rig->image, load_record, &loader));
    /* metadata.version and five features, broker, controller, topic, three partitions, three topic
     * configs, one cluster config, producer ids. */
    static const uint8_t types[] = {12, 12, 12, 12, 12, 12, 0, 27, 2, 3, 3, 3, 4, 4, 4, 4, 15};
    assert_int_equal(loader.count, ARRAY_SIZE(types));
    assert_memory_equal(loader.types, types, sizeof(types));
}

/* ---- random records -------------------------------------------------------------------------- */

static void set_metadata_version(struct rig *rig, struct image *image)
{
    struct step step;
    step_begin(&step, &rig->arena, 0, 0);
    struct feature_level_record *record = step_add(&step, &wire_feature_level_record, 0);
    record->name = VIEW("metadata.version");
    record->feature_level = 33;
    assert_int_equal(image_apply(image, &step.records[0], 0, 0), IMAGE_OK);
    arena_reset(&rig->arena);
}

/* One random record into one or two images, which must agree on what it means. */
static enum image_result random_apply(struct rig *rig,
                                      struct step *dice,
                                      struct image *image,
                                      struct image *other,
                                      int64_t offset,
                                      int64_t batch)
{
    struct step step;
    step_begin(&step, &rig->arena, 0, 0);
    random_record(&step, dice);
    enum image_result result = image_apply(image, &step.records[0], offset, batch);
    if (other != NULL)
        assert_int_equal(image_apply(other, &step.records[0], offset, offset), result);
    arena_reset(&rig->arena);
    return result;
}

/* Two images from the same records: one by records alone, the other with batches that are applied
 * and taken back in between. They are equal, and equal their own snapshots. */
static void test_undo_at_random(void **state)
{
    struct rig *rig = *state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct arena unused;
        arena_init(&unused, &rig->heap.mem, 0);
        struct step dice;
        step_begin(&dice, &unused, 0, 0);
        dice.random[0] = seed;
        struct image *follower = image_new(&rig->heap.mem, seed);
        struct image *leader = image_new(&rig->heap.mem, seed + 1);
        set_metadata_version(rig, follower);
        set_metadata_version(rig, leader);
        image_keep_undo(leader);

        int64_t offset = 1;
        for (uint32_t round = 0; round < 40; round++) {
            for (uint32_t lost = roll(&dice, 5), i = 0; i < lost; i++)
                (void)random_apply(rig, &dice, leader, NULL, offset + i, offset + i / 2);
            image_undo(leader, offset);
            assert_true(image_equal(leader, follower));
            for (uint32_t kept = roll(&dice, 4); kept > 0; kept--, offset++)
                (void)random_apply(rig, &dice, leader, follower, offset, offset);
            assert_true(image_equal(leader, follower));
            if (roll(&dice, 2)) image_commit(leader, offset);
        }
        for (int32_t id = 0; id < 4; id++) {
            struct image_load a = image_load(leader, id);
            struct image_load b = image_load(follower, id);
            assert_memory_equal(&a, &b, sizeof(a));
        }
        assert_int_equal(image_leaderless(leader), image_leaderless(follower));
        struct image *kept = rig->image;
        rig->image = leader;
        check_snapshot(rig);
        rig->image = kept;
        image_free(follower);
        image_free(leader);
        arena_free(&unused);
    }
}

/* Every allocation of every record fails once: the image is as before, and the record goes in when
 * it is tried again. */
static void test_torture(void **state)
{
    struct rig *rig = *state;
    struct image *twin = image_new(&rig->heap.mem, 5);
    for (uint32_t i = 0; i < ARRAY_SIZE(kafka_log); i++) {
        struct step_record record;
        struct arena arena;
        arena_init(&arena, &rig->heap.mem, 0);
        assert_true(step_decode(rig_hex(&arena, kafka_log[i].hex), &arena, &record));
        for (int64_t fail = 0;; fail++) {
            rig->heap.fail_in = fail;
            enum image_result result =
                image_apply(rig->image, &record, kafka_log[i].offset, kafka_log[i].batch);
            rig->heap.fail_in = -1;
            if (result == IMAGE_OK) break;
            assert_int_equal(result, IMAGE_E_MEMORY);
            assert_true(image_equal(rig->image, twin));
        }
        arena_free(&arena);
        assert_int_equal(kafka_apply(rig, twin, i), IMAGE_OK);
        assert_true(image_equal(rig->image, twin));
    }
    image_free(twin);
}

static void test_new_fails(void **state)
{
    struct rig *rig = *state;
    for (int64_t fail = 0;; fail++) {
        rig->heap.fail_in = fail;
        struct image *image = image_new(&rig->heap.mem, 1);
        rig->heap.fail_in = -1;
        if (image != NULL) {
            image_free(image);
            break;
        }
    }
}

/* ---- transactions ---------------------------------------------------------------------------- */

static enum image_result apply_simple(struct rig *rig, const struct wire_message *message)
{
    struct step step;
    step_begin(&step, &rig->arena, 0, 0);
    void *value = step_add(&step, message, 0);
    assert_non_null(value);
    enum image_result result = image_apply(rig->image, &step.records[0], rig->offset, rig->offset);
    rig->offset++;
    arena_reset(&rig->arena);
    return result;
}

static enum image_result apply_topic(struct rig *rig, const char *name, uint32_t id)
{
    struct step step;
    step_begin(&step, &rig->arena, 0, 0);
    struct topic_record *record = step_add(&step, &wire_topic_record, 0);
    record->name = view_of_string(name);
    record->topic_id = topic_uuid(id);
    enum image_result result = image_apply(rig->image, &step.records[0], rig->offset, rig->offset);
    rig->offset++;
    arena_reset(&rig->arena);
    return result;
}

static void test_transactions(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(apply_simple(rig, &wire_end_transaction_record), IMAGE_E_FAULT);
    assert_int_equal(apply_simple(rig, &wire_abort_transaction_record), IMAGE_E_FAULT);

    rig->offset = 10;
    assert_int_equal(apply_simple(rig, &wire_begin_transaction_record), IMAGE_OK);
    assert_int_equal(image_transaction(rig->image), 10);
    assert_int_equal(apply_topic(rig, "one", 1), IMAGE_OK);
    assert_null(image_topic(rig->image, VIEW("one")));
    assert_int_equal(apply_simple(rig, &wire_begin_transaction_record), IMAGE_E_FAULT);
    assert_int_equal(apply_simple(rig, &wire_abort_transaction_record), IMAGE_OK);
    assert_null(image_topic(rig->image, VIEW("one")));
    assert_int_equal(image_transaction(rig->image), -1);

    assert_int_equal(apply_simple(rig, &wire_begin_transaction_record), IMAGE_OK);
    assert_int_equal(apply_topic(rig, "one", 1), IMAGE_OK);
    assert_int_equal(apply_topic(rig, "two", 2), IMAGE_OK);
    assert_int_equal(apply_simple(rig, &wire_end_transaction_record), IMAGE_OK);
    assert_non_null(image_topic(rig->image, VIEW("one")));
    assert_non_null(image_topic(rig->image, VIEW("two")));

    /* One that cannot be applied as a whole is not applied at all. */
    assert_int_equal(apply_simple(rig, &wire_begin_transaction_record), IMAGE_OK);
    assert_int_equal(apply_topic(rig, "three", 3), IMAGE_OK);
    assert_int_equal(apply_topic(rig, "two", 4), IMAGE_OK);
    assert_int_equal(apply_simple(rig, &wire_end_transaction_record), IMAGE_E_FAULT);
    assert_null(image_topic(rig->image, VIEW("three")));
}

static void test_transaction_undone(void **state)
{
    struct rig *rig = *state;
    image_keep_undo(rig->image);
    rig->offset = 20;
    assert_int_equal(apply_simple(rig, &wire_begin_transaction_record), IMAGE_OK);
    assert_int_equal(apply_topic(rig, "one", 1), IMAGE_OK);
    assert_int_equal(apply_topic(rig, "two", 2), IMAGE_OK); /* offset 22 */
    assert_int_equal(apply_simple(rig, &wire_end_transaction_record), IMAGE_OK);
    assert_non_null(image_topic(rig->image, VIEW("two")));
    image_undo(rig->image, 22);
    assert_null(image_topic(rig->image, VIEW("one")));
    assert_int_equal(image_transaction(rig->image), 20);
    rig->offset = 22;
    assert_int_equal(apply_simple(rig, &wire_end_transaction_record), IMAGE_OK);
    assert_non_null(image_topic(rig->image, VIEW("one")));
    assert_null(image_topic(rig->image, VIEW("two")));
    image_undo(rig->image, 0);
    assert_int_equal(image_transaction(rig->image), -1);
    assert_int_equal(image_count(rig->image, IMAGE_TOPIC), 0);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void test_faults(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(apply_topic(rig, "one", 1), IMAGE_OK);
    assert_int_equal(apply_topic(rig, "one", 2), IMAGE_E_FAULT);
    assert_int_equal(apply_topic(rig, "two", 1), IMAGE_E_FAULT);
    assert_int_equal(apply_simple(rig, &wire_remove_topic_record), IMAGE_E_FAULT);
    assert_int_equal(apply_simple(rig, &wire_partition_record), IMAGE_E_FAULT);
    assert_int_equal(apply_simple(rig, &wire_partition_change_record), IMAGE_E_FAULT);
    assert_int_equal(apply_simple(rig, &wire_unregister_broker_record), IMAGE_E_FAULT);
    assert_int_equal(apply_simple(rig, &wire_broker_registration_change_record), IMAGE_E_FAULT);
    assert_int_equal(apply_simple(rig, &wire_producer_ids_record), IMAGE_E_FAULT);
    assert_int_equal(apply_simple(rig, &wire_client_quota_record), IMAGE_E_FAULT);
    assert_non_null(image_fault(rig->image));
    assert_int_equal(image_count(rig->image, IMAGE_TOPIC), 1);

    struct step step;
    step_begin(&step, &rig->arena, 0, 0);
    struct feature_level_record *level = step_add(&step, &wire_feature_level_record, 0);
    level->name = VIEW("metadata.version");
    level->feature_level = 34;
    assert_int_equal(image_apply(rig->image, &step.records[0], 0, 0), IMAGE_E_FAULT);
    level->feature_level = 6;
    assert_int_equal(image_apply(rig->image, &step.records[0], 0, 0), IMAGE_E_FAULT);
    level->name = VIEW("kraft.version");
    assert_int_equal(image_apply(rig->image, &step.records[0], 0, 0), IMAGE_OK);
    level->name = VIEW("no.such.feature");
    assert_int_equal(image_apply(rig->image, &step.records[0], 0, 0), IMAGE_E_FAULT);
}

/* T3: what a reader of the log must refuse. */
static void test_strict_frames(void **state)
{
    struct rig *rig = *state;
    static const char *const bad[] = {
        "",           /* nothing */
        "02140000",   /* frame version 2 */
        "0114000000", /* a byte too many */
        "01060000",   /* type 6 is not in use */
        "011e0000",   /* nor is 30 */
        "01140100",   /* NoOpRecord has no version 1 */
        "011400",     /* too short */
    };
    struct step_record record;
    for (uint32_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(step_decode(rig_hex(&rig->arena, bad[i]), &rig->arena, &record));
    assert_true(step_decode(rig_hex(&rig->arena, "01140000"), &rig->arena, &record));
    /* An unknown tagged field (tag 9, one byte). */
    assert_true(step_decode(rig_hex(&rig->arena, "01140001090100"), &rig->arena, &record));
}

/* ---- watches and taking over ------------------------------------------------------------------
 */

struct counter {
    struct image_watch watch;
    uint32_t now[IMAGE_KINDS];
    uint32_t gone[IMAGE_KINDS];
};

static void count_change(struct image_watch *watch, const struct image_change *change)
{
    struct counter *counter = container_of(watch, struct counter, watch);
    assert_true(change->before != NULL || change->now != NULL);
    if (change->now != NULL) counter->now[change->kind]++;
    if (change->now == NULL) counter->gone[change->kind]++;
    if (change->kind == IMAGE_PARTITION) assert_non_null(change->topic);
}

static void test_watch(void **state)
{
    struct rig *rig = *state;
    struct counter counter = {.watch = {.changed = count_change}};
    image_watch_add(rig->image, &counter.watch);
    kafka_apply_until(rig, 222);
    assert_int_equal(counter.now[IMAGE_TOPIC], 1);
    assert_int_equal(counter.gone[IMAGE_TOPIC], 1);
    assert_int_equal(counter.now[IMAGE_PARTITION], 3);
    assert_int_equal(counter.gone[IMAGE_PARTITION], 3);
    assert_int_equal(counter.now[IMAGE_FEATURE], 6);
    assert_int_equal(counter.now[IMAGE_BROKER], 4);
    assert_int_equal(counter.gone[IMAGE_CONFIGS], 1);
    image_watch_remove(rig->image, &counter.watch);
}

static void test_become(void **state)
{
    struct rig *rig = *state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct step dice;
        step_begin(&dice, &rig->arena, 0, 0);
        dice.random[0] = seed;
        struct image *old = image_new(&rig->heap.mem, seed);
        struct image *new = image_new(&rig->heap.mem, seed + 1);
        struct image *same = image_new(&rig->heap.mem, seed + 2);
        set_metadata_version(rig, old);
        set_metadata_version(rig, new);
        set_metadata_version(rig, same);
        for (int64_t i = 1; i < 60; i++)
            (void)random_apply(rig, &dice, old, NULL, i, i);
        for (int64_t i = 1; i < 60; i++)
            (void)random_apply(rig, &dice, new, same, i, i);
        assert_true(image_become(old, new));
        image_free(new);
        assert_true(image_equal(old, same));
        for (int32_t id = 0; id < 4; id++)
            assert_int_equal(image_load(old, id).isr, image_load(same, id).isr);
        assert_int_equal(image_leaderless(old), image_leaderless(same));

        /* Again the same: nothing to tell. */
        struct counter counter = {.watch = {.changed = count_change}};
        image_watch_add(old, &counter.watch);
        assert_true(image_become(old, same));
        for (uint32_t i = 0; i < IMAGE_KINDS; i++)
            assert_int_equal(counter.now[i] + counter.gone[i], 0);
        image_watch_remove(old, &counter.watch);
        image_free(same);
        image_free(old);
    }
}

static void test_sorted(void **state)
{
    struct rig *rig = *state;
    static const char *const names[] = {"pear", "apple", "fig", "quince", "lime", "kiwi"};
    static const char *const order[] = {"apple", "fig", "kiwi", "lime", "pear", "quince"};
    for (uint32_t i = 0; i < ARRAY_SIZE(names); i++)
        assert_int_equal(apply_topic(rig, names[i], i), IMAGE_OK);
    uint32_t count;
    const struct image_object *const *sorted =
        image_sorted(rig->image, IMAGE_TOPIC, &rig->arena, &count);
    assert_int_equal(count, ARRAY_SIZE(names));
    for (uint32_t i = 0; i < count; i++)
        assert_true(view_is(((const struct image_topic *)sorted[i])->name, order[i]));
}

static void test_directories(void **state)
{
    struct rig *rig = *state;
    kafka_apply_until(rig, 16);
    assert_true(image_directory_online(rig->image, 1, image_directory_unassigned));
    assert_true(image_directory_online(rig->image, 1, image_directory_migrating));
    assert_false(image_directory_online(rig->image, 1, image_directory_lost));
    assert_true(image_directory_online(rig->image, 1, image_broker(rig->image, 1)->directories[0]));
    assert_false(image_directory_online(rig->image, 1, topic_uuid(3)));
    assert_false(image_directory_online(rig->image, 2, image_directory_unassigned));
    assert_true(image_uuid_reserved((struct uuid){{[15] = 99}}));
    assert_false(image_uuid_reserved((struct uuid){{[15] = 100}}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kafka_log, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_snapshot_of_kafka_log, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_undo_at_random, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_torture, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_new_fails, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_transactions, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_transaction_undone, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_faults, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_strict_frames, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_watch, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_become, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_sorted, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_directories, rig_setup, rig_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
