/* cluster_fault_test.c - the controller when something fails: lost batches, bulk steps, no memory;
 * and the broker part of its own process, which holds no session. */
#include "core/cluster_rig.h"

/* The broker part of the controller's own process holds no session. */
static void test_own_broker(void **state)
{
    struct cluster_rig *rig = *state;
    struct cluster_options options = {.node_id = 1,
                                      .cluster_id = VIEW("cluster"),
                                      .session_timeout_ms = 9000,
                                      .own_broker_id = 1,
                                      .seed = 5};
    cluster_free(rig->cluster);
    rig->cluster = cluster_new(&rig->heap.mem, &options);
    struct cluster_bootstrap none = {0};
    assert_true(rig_snapshot(rig->follower, rig_copy_record, cluster_image(rig->cluster)));
    assert_int_equal(cluster_activate(rig->cluster, rig_step(rig), &none), STEP_DONE);
    rig_up(rig, 1);
    assert_string_equal(rig_pass(rig, 60000), ""); /* Never fenced for its silence. */
    BEAT(rig, 1, INT64_MAX);
    assert_int_equal(rig_register(rig, 1, 2, NULL), KAFKA_NONE); /* Nor refused as a duplicate. */
}

/* A heartbeat of broker 1. */
static struct broker_heartbeat_request beat_of_one(struct cluster_rig *rig)
{
    struct broker_heartbeat_request in;
    wire_defaults(&wire_broker_heartbeat_request, &in);
    in.broker_id = 1;
    in.broker_epoch = image_broker(cluster_image(rig->cluster), 1)->epoch;
    return in;
}

/* A batch that is lost takes its changes back, and a shutdown that it began. */
static void test_undo(void **state)
{
    struct cluster_rig *rig = *state;
    rig_up(rig, 1);
    rig_up(rig, 2);
    TOPIC(rig, "t", 1, 2);
    struct broker_heartbeat_request in = beat_of_one(rig);
    struct broker_heartbeat_response out;
    in.want_shut_down = true;
    struct step *step = rig_step(rig);
    assert_int_equal(cluster_heartbeat(rig->cluster, step, &in, &out), STEP_DONE);
    assert_int_equal(cluster_apply(rig->cluster, step, rig->offset), IMAGE_OK);
    struct cluster_broker_view view;
    assert_true(cluster_broker(rig->cluster, 1, &view));
    assert_int_equal(view.liveness, CLUSTER_SHUTTING_DOWN);
    cluster_undo(rig->cluster, rig->offset);
    assert_true(cluster_broker(rig->cluster, 1, &view));
    assert_int_equal(view.liveness, CLUSTER_UNFENCED);
    assert_true(image_equal(cluster_image(rig->cluster), rig->follower));
}

/* More partitions than one batch can change: several batches, then the fence. */
static void test_bulk(void **state)
{
    struct cluster_rig *rig = *state;
    rig_up(rig, 1);
    rig_up(rig, 2);
    struct uuid id = rig_uuid(200);
    for (int32_t part = 0; part < 3; part++) {
        struct step *step = rig_step(rig);
        if (part == 0) {
            struct topic_record *topic = step_add(step, &wire_topic_record, 0);
            topic->name = VIEW("big");
            topic->topic_id = id;
        }
        for (int32_t i = 0; i < 8000; i++) {
            struct partition_record *record = step_add(step, &wire_partition_record, 1);
            int32_t *ids = step_get(step, 2 * sizeof(*ids));
            ids[0] = 1;
            ids[1] = 2;
            record->topic_id = id;
            record->partition_id = part * 8000 + i;
            record->replicas.items = record->isr.items = ids;
            record->replicas.count = record->isr.count = 2;
            record->leader = 1;
        }
        assert_int_equal(cluster_apply(rig->cluster, step, rig->offset), IMAGE_OK);
        for (uint32_t i = 0; i < step->record_count; i++)
            assert_int_equal(image_apply(rig->follower, &step->records[i], 0, 0), IMAGE_OK);
        rig->offset += step->record_count;
    }
    struct broker_heartbeat_request in = beat_of_one(rig);
    struct broker_heartbeat_response out;
    in.want_fence = true;
    uint32_t steps = 0;
    enum step_result result;
    do {
        struct step *step = rig_step(rig);
        result = cluster_heartbeat(rig->cluster, step, &in, &out);
        assert_true(step->record_count <= STEP_RECORDS_MAX);
        assert_int_equal(cluster_apply(rig->cluster, step, rig->offset), IMAGE_OK);
        for (uint32_t i = 0; i < step->record_count; i++)
            assert_int_equal(image_apply(rig->follower, &step->records[i], 0, 0), IMAGE_OK);
        rig->offset += step->record_count;
        steps++;
    } while (result == STEP_MORE);
    assert_int_equal(steps, 3);
    assert_true(out.is_fenced);
    assert_int_equal(image_load(cluster_image(rig->cluster), 1).isr, 0);
    assert_int_equal(image_load(cluster_image(rig->cluster), 2).leader, 24000);
    assert_true(image_broker(cluster_image(rig->cluster), 1)->fenced);
}

/* No memory at any place: nothing has changed, and the same beat works afterwards. */
static void test_torture(void **state)
{
    struct cluster_rig *rig = *state;
    rig_up(rig, 1);
    rig_up(rig, 2);
    TOPIC(rig, "t", 1, 2);
    struct broker_heartbeat_request in = beat_of_one(rig);
    struct broker_heartbeat_response out;
    in.want_shut_down = true;
    for (int64_t fail = 0;; fail++) {
        arena_free(&rig->arena);
        struct step *step = rig_step(rig);
        rig->heap.fail_in = fail;
        enum step_result result = cluster_heartbeat(rig->cluster, step, &in, &out);
        rig->heap.fail_in = -1;
        if (result == STEP_DONE) break;
        assert_int_equal(result, STEP_E_MEMORY);
        struct cluster_broker_view view;
        assert_true(cluster_broker(rig->cluster, 1, &view));
        assert_int_equal(view.liveness, CLUSTER_UNFENCED);
    }
    rig_append(rig);
    assert_string_equal(rig->text, "BRC1 1 shutdown; PC t-0 isr=[2] leader=2");
}

int main(void)
{
#define TEST_22(name) cmocka_unit_test_setup_teardown(name, rig_setup_22, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST_22(test_own_broker),
        TEST_22(test_undo),
        TEST_22(test_bulk),
        TEST_22(test_torture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
