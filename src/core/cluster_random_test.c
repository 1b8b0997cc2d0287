/* cluster_random_test.c - random lives of a cluster, and what must hold after each step.
 *
 * Four brokers register, beat, stall, come back as others, drain, lose directories; topics come and
 * go, leaders change ISRs, reassignments start and are taken back; batches are lost; the controller
 * fails over. Checked throughout: the rules about leaders, ISR and ELR, epochs that only
 * grow, one leader per leader epoch, and that the image is what its records make. */
#include "core/cluster_rig.h"

#include "gen/alter_partition_reassignments_request.h"
#include "gen/alter_partition_reassignments_response.h"
#include "gen/alter_partition_request.h"
#include "gen/alter_partition_response.h"
#include "gen/delete_topics_request.h"
#include "gen/delete_topics_response.h"
#include "gen/elect_leaders_request.h"
#include "gen/elect_leaders_response.h"
#include "gen/unregister_broker_request.h"
#include "gen/unregister_broker_response.h"

#define BROKERS     4
#define TOPICS      3
#define PARTITIONS  6
#define EPOCHS_SEEN 256
#define STEPS       400

struct life {
    struct cluster_rig rig;
    struct step dice;
    struct arena dice_arena;
    bool elr;
    uint32_t incarnations;
    int64_t broker_epochs[BROKERS + 1]; /* The highest seen. */
    struct {
        struct uuid topic;
        int32_t partition_epoch;
        int32_t leader_epoch;
        int32_t leaders[EPOCHS_SEEN]; /* By leader epoch; -2: none seen. */
    } seen[TOPICS][PARTITIONS];
    uint32_t done[12]; /* How often each kind of event did something. */
};

static uint32_t roll(struct life *life, uint32_t below)
{
    return (uint32_t)(step_random(&life->dice) % below);
}

static const char *topic_name(uint32_t i)
{
    static const char *const names[TOPICS] = {"a", "b", "c"};
    return names[i];
}

/* ---- what must hold -------------------------------------------------------------------------- */

static void check_lists(const struct image *image,
                        const struct image_partition *partition,
                        bool elr)
{
    struct image_ids replicas = image_list(partition, IMAGE_REPLICAS);
    struct image_ids isr = image_list(partition, IMAGE_ISR);
    struct image_ids eligible = image_list(partition, IMAGE_ELR);
    assert_true(replicas.count > 0);
    for (uint32_t i = 0; i < isr.count; i++) {
        assert_true(image_ids_have(replicas, isr.items[i]));
        assert_false(image_ids_have((struct image_ids){isr.items, i}, isr.items[i]));
        const struct image_node *broker = image_broker(image, isr.items[i]);
        bool last = isr.count == 1 && !elr; /* Without ELR the last one stays, whatever it is. */
        if (!last) assert_true(broker != NULL && !broker->fenced);
    }
    for (uint32_t i = 0; i < eligible.count; i++) {
        assert_true(elr);
        assert_true(image_ids_have(replicas, eligible.items[i]));
        assert_false(image_ids_have(isr, eligible.items[i]));
    }
    if (!elr) assert_true(isr.count > 0);
    if (partition->leader >= 0) {
        assert_true(image_ids_have(isr, partition->leader));
        assert_true(image_broker_active(image, partition->leader));
    } else if (elr) {
        /* Who could lead would: as in Kafka, a leader may take one into the ISR whose directory is
         * lost, until it says where the replica lies now. */
        for (uint32_t i = 0; i < isr.count; i++)
            assert_false(image_replica_online(image, partition, isr.items[i]));
    }
}

static void check_partition(struct life *life, uint32_t t, int32_t p)
{
    const struct image *image = cluster_image(life->rig.cluster);
    const struct image_topic *topic = image_topic(image, view_of_string(topic_name(t)));
    const struct image_partition *partition = image_partition(topic, p);
    if (!uuid_equal(life->seen[t][p].topic, topic->id)) {
        memset(&life->seen[t][p], 0, sizeof(life->seen[t][p]));
        life->seen[t][p].topic = topic->id;
        for (uint32_t i = 0; i < EPOCHS_SEEN; i++)
            life->seen[t][p].leaders[i] = -2;
    }
    check_lists(image, partition, life->elr);
    assert_true(partition->partition_epoch >= life->seen[t][p].partition_epoch);
    assert_true(partition->leader_epoch >= life->seen[t][p].leader_epoch);
    life->seen[t][p].partition_epoch = partition->partition_epoch;
    life->seen[t][p].leader_epoch = partition->leader_epoch;
    if (partition->leader_epoch >= EPOCHS_SEEN) return;
    int32_t *leader = &life->seen[t][p].leaders[partition->leader_epoch];
    if (*leader == -2) *leader = partition->leader;
    assert_int_equal(*leader, partition->leader); /* One leader per epoch. */
}

static void check_counts(struct life *life)
{
    const struct image *image = cluster_image(life->rig.cluster);
    struct image_load loads[BROKERS + 1] = {0};
    uint32_t leaderless = 0;
    for (uint32_t t = 0; t < TOPICS; t++) {
        const struct image_topic *topic = image_topic(image, view_of_string(topic_name(t)));
        for (int32_t p = 0; topic != NULL && p < topic->partition_count; p++) {
            const struct image_partition *partition = image_partition(topic, p);
            leaderless += partition->leader < 0;
            if (partition->leader >= 0) loads[partition->leader].leader++;
            for (int32_t id = 1; id <= BROKERS; id++) {
                loads[id].isr += image_ids_have(image_list(partition, IMAGE_ISR), id);
                loads[id].elr += image_ids_have(image_list(partition, IMAGE_ELR), id);
            }
        }
    }
    assert_int_equal(image_leaderless(image), leaderless);
    for (int32_t id = 1; id <= BROKERS; id++) {
        struct image_load load = image_load(image, id);
        assert_memory_equal(&load, &loads[id], sizeof(load));
    }
}

static void check(struct life *life)
{
    const struct image *image = cluster_image(life->rig.cluster);
    for (uint32_t t = 0; t < TOPICS; t++) {
        const struct image_topic *topic = image_topic(image, view_of_string(topic_name(t)));
        for (int32_t p = 0; topic != NULL && p < topic->partition_count; p++)
            check_partition(life, t, p);
    }
    for (int32_t id = 1; id <= BROKERS; id++) {
        const struct image_node *broker = image_broker(image, id);
        if (broker == NULL) continue;
        assert_true(broker->epoch >= life->broker_epochs[id]);
        life->broker_epochs[id] = broker->epoch;
    }
    check_counts(life);
    if (roll(life, 10) == 0) rig_check(&life->rig);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void event_register(struct life *life, int32_t id)
{
    int64_t epoch = -1;
    const struct image_node *broker = image_broker(cluster_image(life->rig.cluster), id);
    if (broker != NULL && roll(life, 2)) epoch = broker->epoch; /* A clean restart. */
    uint32_t incarnation = roll(life, 4) == 0 ? life->incarnations : ++life->incarnations;
    if (rig_register(&life->rig, id, incarnation % 100, &epoch) == KAFKA_NONE) life->done[0]++;
}

static void event_beat(struct life *life, int32_t id)
{
    struct uuid offline = rig_uuid((uint32_t)id + 10 * roll(life, 2));
    struct rig_beat beat = {
        .id = id,
        .offset = roll(life, 4) == 0 ? (int64_t)roll(life, (uint32_t)life->rig.offset) : INT64_MAX,
        .want_fence = roll(life, 12) == 0,
        .want_shut_down = roll(life, 12) == 0,
        .offline = &offline,
        .offline_count = roll(life, 40) == 0,
        .cordoned = roll(life, 3) == 0 ? &offline : NULL,
        .cordoned_count = roll(life, 2),
    };
    if (strncmp(rig_beat(&life->rig, &beat), "(0", 2) == 0) life->done[1]++;
}

static void event_time(struct life *life)
{
    if (rig_pass(&life->rig, life->rig.now_ms + roll(life, 4000))[0] != '\0') life->done[2]++;
}

static void event_create(struct life *life)
{
    struct create_topics_request_creatable_topic topic;
    struct create_topics_request in;
    struct create_topics_response out;
    wire_struct_defaults(&wire_create_topics_request_creatable_topic_shape, &topic);
    wire_defaults(&wire_create_topics_request, &in);
    topic.name = view_of_string(topic_name(roll(life, TOPICS)));
    topic.num_partitions = 1 + (int32_t)roll(life, PARTITIONS);
    topic.replication_factor = (int16_t)(1 + roll(life, 3));
    in.topics.items = &topic;
    in.topics.count = 1;
    assert_int_equal(cluster_create_topics(life->rig.cluster, rig_step(&life->rig), &in, &out),
                     STEP_DONE);
    if (out.topics.items[0].error_code == KAFKA_NONE) life->done[3]++;
    rig_append(&life->rig);
}

static void event_delete(struct life *life)
{
    struct delete_topics_request_delete_topic_state topic = {
        .name = view_of_string(topic_name(roll(life, TOPICS)))};
    struct delete_topics_request in = {
        .timeout_ms = 10000, .topics = {&topic, 1}
    };
    struct delete_topics_response out;
    assert_int_equal(cluster_delete_topics(life->rig.cluster, rig_step(&life->rig), &in, &out),
                     STEP_DONE);
    if (out.responses.items[0].error_code == KAFKA_NONE) life->done[4]++;
    rig_append(&life->rig);
}

/* Some partition that there is, or false. */
struct spot_of {
    const struct image_topic *topic;
    const struct image_partition *partition;
    int32_t index;
};

static bool pick(struct life *life, struct spot_of *spot)
{
    spot->topic = image_topic(cluster_image(life->rig.cluster),
                              view_of_string(topic_name(roll(life, TOPICS))));
    if (spot->topic == NULL) return false;
    spot->index = (int32_t)roll(life, (uint32_t)spot->topic->partition_count);
    spot->partition = image_partition(spot->topic, spot->index);
    return true;
}

/* A leader asks for an ISR of some of its replicas. */
static void event_alter(struct life *life)
{
    struct spot_of spot;
    if (!pick(life, &spot) || spot.partition->leader < 0) return;
    struct image_ids replicas = image_list(spot.partition, IMAGE_REPLICAS);
    struct alter_partition_request_broker_state states[8] = {0};
    struct alter_partition_request_partition_data partition = {
        .partition_index = spot.index,
        .leader_epoch = spot.partition->leader_epoch - (roll(life, 10) == 0),
        .partition_epoch = spot.partition->partition_epoch,
        .new_isr_with_epochs = {states, 0},
    };
    for (uint32_t i = 0; i < replicas.count && i < 8; i++) {
        if (replicas.items[i] != spot.partition->leader && roll(life, 2)) continue;
        states[partition.new_isr_with_epochs.count++] =
            (struct alter_partition_request_broker_state){.broker_id = replicas.items[i],
                                                          .broker_epoch = -1};
    }
    struct alter_partition_request_topic_data topic = {
        .topic_id = spot.topic->id, .partitions = {&partition, 1}
    };
    const struct image_node *leader =
        image_broker(cluster_image(life->rig.cluster), spot.partition->leader);
    struct alter_partition_request in = {
        .broker_id = leader->id, .broker_epoch = leader->epoch, .topics = {&topic, 1}
    };
    struct alter_partition_response out;
    assert_int_equal(cluster_alter_partition(life->rig.cluster, rig_step(&life->rig), &in, &out),
                     STEP_DONE);
    if (out.topics.items[0].partitions.items[0].error_code == KAFKA_NONE) life->done[5]++;
    rig_append(&life->rig);
}

static void event_reassign(struct life *life)
{
    struct spot_of spot;
    if (!pick(life, &spot)) return;
    int32_t first = (int32_t)roll(life, BROKERS);
    int32_t target[3];
    for (int32_t i = 0; i < 3; i++)
        target[i] = 1 + (first + i) % BROKERS;
    struct alter_partition_reassignments_request_reassignable_partition partition = {
        .partition_index = spot.index,
        .replicas = {target, roll(life, 4) == 0 ? -1 : 1 + (int32_t)roll(life, 3)},
    };
    struct alter_partition_reassignments_request_reassignable_topic topic = {
        .name = spot.topic->name, .partitions = {&partition, 1}
    };
    struct alter_partition_reassignments_request in = {
        .allow_replication_factor_change = true, .topics = {&topic, 1}
    };
    struct alter_partition_reassignments_response out;
    assert_int_equal(
        cluster_alter_reassignments(life->rig.cluster, rig_step(&life->rig), &in, &out), STEP_DONE);
    if (out.responses.items[0].partitions.items[0].error_code == KAFKA_NONE) life->done[6]++;
    rig_append(&life->rig);
}

static void event_elect(struct life *life)
{
    struct elect_leaders_request in = {
        .election_type = roll(life, 4) == 0, .topic_partitions = {NULL, -1}
    };
    struct elect_leaders_response out;
    assert_int_equal(cluster_elect_leaders(life->rig.cluster, rig_step(&life->rig), &in, &out),
                     STEP_DONE);
    if (life->rig.step.record_count > 0) life->done[7]++;
    rig_append(&life->rig);
}

static void event_unregister(struct life *life, int32_t id)
{
    struct unregister_broker_request in = {.broker_id = id};
    struct unregister_broker_response out;
    assert_int_equal(cluster_unregister_broker(life->rig.cluster, rig_step(&life->rig), &in, &out),
                     STEP_DONE);
    if (out.error_code == KAFKA_NONE) life->done[8]++;
    rig_append(&life->rig);
}

/* A batch is applied and then lost: everything is as before. */
static void event_lost(struct life *life, int32_t id)
{
    struct cluster_rig *rig = &life->rig;
    const struct image_node *broker = image_broker(cluster_image(rig->cluster), id);
    if (broker == NULL) return;
    struct broker_heartbeat_request in;
    struct broker_heartbeat_response out;
    wire_defaults(&wire_broker_heartbeat_request, &in);
    in.broker_id = id;
    in.broker_epoch = broker->epoch;
    in.current_metadata_offset = rig->offset;
    in.want_fence = roll(life, 2);
    in.want_shut_down = roll(life, 2);
    struct step *step = rig_step(rig);
    assert_int_equal(cluster_heartbeat(rig->cluster, step, &in, &out), STEP_DONE);
    if (step->record_count > 0) life->done[9]++;
    assert_int_equal(cluster_apply(rig->cluster, step, rig->offset), IMAGE_OK);
    cluster_undo(rig->cluster, rig->offset);
    assert_true(image_equal(cluster_image(rig->cluster), rig->follower));
}

static void event_failover(struct life *life)
{
    struct cluster_rig *rig = &life->rig;
    struct cluster_bootstrap none = {0};
    cluster_resign(rig->cluster, rig->offset);
    assert_int_equal(cluster_activate(rig->cluster, rig_step(rig), &none), STEP_DONE);
    assert_int_equal(rig->step.record_count, 0);
    life->done[10]++;
}

static void event(struct life *life)
{
    int32_t id = 1 + (int32_t)roll(life, BROKERS);
    switch (roll(life, 40)) {
    case 0:
    case 1: event_register(life, id); break;
    case 2:
    case 3: event_create(life); break;
    case 4: event_delete(life); break;
    case 5:
    case 6:
    case 7:
    case 8:
    case 9: event_alter(life); break;
    case 10:
    case 11: event_reassign(life); break;
    case 12: event_elect(life); break;
    case 13: event_unregister(life, id); break;
    case 14: event_lost(life, id); break;
    case 15:
        if (roll(life, 4) == 0) event_failover(life);
        break;
    case 16:
    case 17:
    case 18: event_time(life); break;
    default: event_beat(life, id); break;
    }
}

static void run(uint64_t seed, bool elr, uint32_t *done)
{
    struct life *life = calloc(1, sizeof(*life));
    life->elr = elr;
    life->rig.random = seed * 1000;
    rig_start(&life->rig, 33, elr);
    arena_init(&life->dice_arena, &life->rig.heap.mem, 0);
    step_begin(&life->dice, &life->dice_arena, 0, 0);
    life->dice.random[0] = seed;
    life->dice.random[1] = 99;
    for (int32_t id = 1; id <= BROKERS; id++)
        event_register(life, id);
    for (uint32_t i = 0; i < STEPS; i++) {
        event(life);
        check(life);
    }
    for (uint32_t i = 0; i < ARRAY_SIZE(life->done); i++)
        done[i] += life->done[i];
    arena_free(&life->dice_arena);
    rig_stop(&life->rig);
    free(life);
}

static void test_with_elr(void **state)
{
    uint32_t done[12] = {0};
    for (uint64_t seed = 1; seed <= 60; seed++)
        run(seed, true, done);
    for (uint32_t i = 0; i < 11; i++)
        assert_true(done[i] > 0); /* Each kind of event happened. */
}

static void test_without_elr(void **state)
{
    uint32_t done[12] = {0};
    for (uint64_t seed = 1001; seed <= 1060; seed++)
        run(seed, false, done);
    for (uint32_t i = 0; i < 11; i++)
        assert_true(done[i] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_with_elr),
        cmocka_unit_test(test_without_elr),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
