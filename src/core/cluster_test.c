/* cluster_test.c - the controller's brokers: narrated traces, by the number of the case.
 *
 * "(error,caught up,fenced,shut down)" is a heartbeat's answer; what follows are the records. */
#include "core/cluster_internal.h"
#include "core/cluster_rig.h"

#include "gen/allocate_producer_ids_request.h"
#include "gen/allocate_producer_ids_response.h"
#include "gen/unregister_broker_request.h"
#include "gen/unregister_broker_response.h"

/* T1, T51: what a fresh log begins with. */
static void test_bootstrap(void **state)
{
    struct cluster_rig rig = {0};
    rig_start(&rig, 22, false);
    assert_string_equal(rig.text, "BeginTransactionRecord; feature metadata.version=22; "
                                  "feature group.version=1; EndTransactionRecord");
    rig_check(&rig);
    rig_stop(&rig);
    memset(&rig, 0, sizeof(rig));
    rig_start(&rig, 12, false);
    assert_string_equal(rig.text, "feature metadata.version=12");
    rig_stop(&rig);
    memset(&rig, 0, sizeof(rig));
    rig_start(&rig, 0, true);
    assert_string_equal(rig.text,
                        "BeginTransactionRecord; feature metadata.version=33; "
                        "feature eligible.leader.replicas.version=1; feature group.version=1; "
                        "config 4: min.insync.replicas=1; EndTransactionRecord");
    rig_stop(&rig);
}

/* T5: a controller that finds the bootstrap half written aborts it and writes it whole. */
static void test_half_bootstrap(void **state)
{
    struct cluster_rig *rig = *state;
    struct cluster_options options = {.node_id = 1,
                                      .cluster_id = VIEW("cluster"),
                                      .session_timeout_ms = 9000,
                                      .own_broker_id = -1};
    struct cluster *cluster = cluster_new(&rig->heap.mem, &options);
    struct arena arena;
    arena_init(&arena, &rig->heap.mem, 0);
    struct step format;
    step_begin(&format, &arena, 0, 0);
    struct image_range group = {VIEW("group.version"), 0, 1};
    assert_int_equal(cluster_format(&format, 22, &group, 1), STEP_DONE);
    struct cluster_bootstrap bootstrap = {format.records, format.record_count};

    struct step_record record;
    assert_true(step_decode(rig_hex(&arena, "01170001001212426f6f747374726170207265636f726473"),
                            &arena, &record));
    assert_int_equal(image_apply(cluster_image(cluster), &record, 1, 1), IMAGE_OK);
    assert_int_equal(image_apply(cluster_image(cluster), &format.records[0], 2, 2), IMAGE_OK);

    struct step *step = rig_step(rig);
    assert_int_equal(cluster_activate(cluster, step, &bootstrap), STEP_DONE);
    for (uint32_t i = 0; i < step->record_count; i++) {
        if (i > 0) rig_print(rig, "; ");
        rig_print_record(rig, &step->records[i].value);
    }
    assert_string_equal(rig->text,
                        "AbortTransactionRecord; BeginTransactionRecord; feature "
                        "metadata.version=22; feature group.version=1; EndTransactionRecord");
    assert_int_equal(cluster_apply(cluster, step, 4), IMAGE_OK);
    assert_int_equal(image_metadata_version(cluster_image(cluster)), 22);
    cluster_free(cluster);
    arena_free(&arena);
}

/* T7, T8. */
static void test_registration(void **state)
{
    struct cluster_rig *rig = *state;
    rig->offset = 6;
    int64_t epoch = -1;
    assert_int_equal(rig_register(rig, 1, 1, &epoch), KAFKA_NONE);
    assert_int_equal(epoch, 6);
    assert_string_equal(rig->text, "register3 1 epoch=6 fenced");

    struct broker_registration_request in;
    struct broker_registration_response out;
    wire_defaults(&wire_broker_registration_request, &in);
    in.cluster_id = VIEW("other");
    assert_int_equal(cluster_register_broker(rig->cluster, rig_step(rig), &in, &out), STEP_DONE);
    assert_int_equal(out.error_code, KAFKA_INCONSISTENT_CLUSTER_ID);
    assert_int_equal(out.broker_epoch, -1);
    in.cluster_id = VIEW("cluster");
    in.is_migrating_zk_broker = true;
    assert_int_equal(cluster_register_broker(rig->cluster, rig_step(rig), &in, &out), STEP_DONE);
    assert_int_equal(out.error_code, KAFKA_BROKER_ID_NOT_REGISTERED);
    assert_int_equal(rig->step.record_count, 0);
}

static void test_registration_versions(void **state)
{
    static const struct {
        int16_t metadata_version;
        const char *told;
    } rows[] = {
        {7,  "register1 1 epoch=2 fenced"},
        {8,  "register2 1 epoch=2 fenced"},
        {17, "register3 1 epoch=4 fenced"},
        {30, "register4 1 epoch=5 fenced"},
    };
    for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct cluster_rig rig = {0};
        rig_start(&rig, rows[i].metadata_version, false);
        assert_int_equal(rig_register(&rig, 1, 1, NULL), KAFKA_NONE);
        assert_string_equal(rig.text, rows[i].told);
        rig_check(&rig);
        rig_stop(&rig);
    }
}

static int16_t register_features(struct cluster_rig *rig,
                                 struct broker_registration_request_feature *features,
                                 int32_t count)
{
    struct uuid directory = rig_uuid(1);
    struct broker_registration_request in;
    struct broker_registration_response out;
    wire_defaults(&wire_broker_registration_request, &in);
    in.broker_id = 1;
    in.cluster_id = VIEW("cluster");
    in.log_dirs.items = &directory;
    in.log_dirs.count = 1;
    in.features.items = features;
    in.features.count = count;
    assert_int_equal(cluster_register_broker(rig->cluster, rig_step(rig), &in, &out), STEP_DONE);
    return out.error_code;
}

/* T9. */
static void test_registration_features(void **state)
{
    struct cluster_rig *rig = *state;
    cluster_set_kraft_version(rig->cluster, 0);
    struct broker_registration_request_feature mv = {.name = VIEW("metadata.version")};
    struct broker_registration_request_feature group = {.name = VIEW("group.version"),
                                                        .max_supported_version = 1};
    struct broker_registration_request_feature foo = {.name = VIEW("foo"),
                                                      .max_supported_version = 7};
    struct broker_registration_request_feature kraft = {
        .name = VIEW("kraft.version"), .min_supported_version = 1, .max_supported_version = 1};
#define RANGE(low, high) (mv.min_supported_version = (low), mv.max_supported_version = (high), mv)
#define FEATURES(...)                                                                              \
    register_features(rig, (struct broker_registration_request_feature[]){__VA_ARGS__},            \
                      ARRAY_SIZE(((struct broker_registration_request_feature[]){__VA_ARGS__})))
    assert_int_equal(FEATURES(RANGE(7, 21), group), KAFKA_UNSUPPORTED_VERSION);
    assert_int_equal(FEATURES(RANGE(23, 25), group), KAFKA_UNSUPPORTED_VERSION);
    assert_int_equal(FEATURES(RANGE(7, 25)), KAFKA_UNSUPPORTED_VERSION);
    assert_int_equal(FEATURES(group), KAFKA_INVALID_REGISTRATION);
    assert_int_equal(FEATURES(RANGE(7, 25), group, foo), KAFKA_NONE);
    foo.min_supported_version = 1;
    assert_int_equal(FEATURES(RANGE(7, 25), group, foo), KAFKA_UNSUPPORTED_VERSION);
    assert_int_equal(FEATURES(RANGE(7, 25), group, kraft), KAFKA_UNSUPPORTED_VERSION);
    cluster_set_kraft_version(rig->cluster, 1);
    assert_int_equal(FEATURES(RANGE(7, 25), group, kraft), KAFKA_NONE);
}

static int16_t register_directories(struct cluster_rig *rig,
                                    struct uuid *directories,
                                    int32_t count)
{
    static struct broker_registration_request_feature features[] = {
        {.name = {(const uint8_t *)"metadata.version", 16, 0, 0}, 7, 33},
        {.name = {(const uint8_t *)"group.version", 13, 0, 0},    0, 1 },
    };
    struct broker_registration_request in;
    struct broker_registration_response out;
    wire_defaults(&wire_broker_registration_request, &in);
    in.broker_id = 1;
    in.cluster_id = VIEW("cluster");
    in.features.items = features;
    in.features.count = 2;
    in.log_dirs.items = directories;
    in.log_dirs.count = count;
    assert_int_equal(cluster_register_broker(rig->cluster, rig_step(rig), &in, &out), STEP_DONE);
    return out.error_code;
}

/* T10. */
static void test_registration_directories(void **state)
{
    struct cluster_rig *rig = *state;
    assert_int_equal(rig_register(rig, 2, 1, NULL), KAFKA_NONE);
    struct uuid reserved = {{[15] = 1}};
    struct uuid twice[] = {rig_uuid(1), rig_uuid(1)};
    struct uuid theirs = rig_uuid(2);
    assert_int_equal(register_directories(rig, NULL, 0), KAFKA_INVALID_REGISTRATION);
    assert_int_equal(register_directories(rig, &reserved, 1), KAFKA_INVALID_REGISTRATION);
    assert_int_equal(register_directories(rig, twice, 2), KAFKA_INVALID_REGISTRATION);
    assert_int_equal(register_directories(rig, &theirs, 1), KAFKA_INVALID_REGISTRATION);
    assert_int_equal(register_directories(rig, twice, 1), KAFKA_NONE);

    struct cluster_rig old = {0};
    rig_start(&old, 16, false); /* Directories are not asked for yet. */
    assert_int_equal(register_directories(&old, NULL, 0), KAFKA_NONE);
    rig_stop(&old);
}

/* T11: who may take over a registration. */
static void test_incarnations(void **state)
{
    struct cluster_rig *rig = *state;
    rig_up(rig, 1);
    rig_up(rig, 2);
    TOPIC(rig, "t", 1, 2);
    BEAT(rig, 1, INT64_MAX);
    rig->now_ms = 8999;
    assert_int_equal(rig_register(rig, 1, 2, NULL), KAFKA_DUPLICATE_BROKER_REGISTRATION);
    rig->now_ms = 9000;
    assert_int_equal(rig_register(rig, 1, 2, NULL), KAFKA_DUPLICATE_BROKER_REGISTRATION);
    BEAT(rig, 2, INT64_MAX);
    rig->now_ms = 9001;
    rig->offset = 100;
    assert_int_equal(rig_register(rig, 1, 2, NULL), KAFKA_NONE);
    assert_string_equal(rig->text, "PC t-0 isr=[2] leader=2; register3 1 epoch=100 fenced");

    /* T12: its epoch is not the offset of its record. */
    assert_string_equal(BEAT(rig, 1, 100), "(0,F,T,F)");
    assert_string_equal(BEAT(rig, 1, 101), "(0,T,F,F) BRC0 1 unfence");

    /* (d) The same incarnation registers again: nothing changes but the record's place. */
    rig->offset = 150;
    int64_t epoch = -1;
    assert_int_equal(rig_register(rig, 1, 2, &epoch), KAFKA_NONE);
    assert_int_equal(epoch, 100);
    assert_string_equal(rig->text, "register3 1 epoch=100");
    assert_string_equal(BEAT(rig, 1, 149), "(0,F,F,F)");
    assert_string_equal(BEAT(rig, 1, 150), "(0,T,F,F)");

    /* (e) Fenced by itself: its session still stands. */
    assert_string_equal(BEAT(rig, 1, 150, .want_fence = true), "(0,T,T,F) BRC0 1 fence");
    assert_int_equal(rig_register(rig, 1, 3, NULL), KAFKA_DUPLICATE_BROKER_REGISTRATION);
    rig->now_ms += 9001;
    assert_int_equal(rig_register(rig, 1, 3, NULL), KAFKA_NONE);
    /* Told to stop: it holds none, unless it is heard of again. */
    assert_string_equal(BEAT(rig, 1, INT64_MAX), "(0,T,F,F) BRC0 1 unfence");
    assert_string_equal(BEAT(rig, 1, INT64_MAX, .want_shut_down = true), "(0,T,T,T) BRC0 1 fence");
    struct cluster_broker_view view;
    assert_true(cluster_broker(rig->cluster, 1, &view));
    assert_int_equal(view.session_end_ms, -1);
    assert_string_equal(BEAT(rig, 1, INT64_MAX, .want_shut_down = true), "(0,T,T,T) BRC0 1 fence");
    assert_string_equal(BEAT(rig, 1, INT64_MAX, .want_fence = true), "(0,T,T,F)");
    assert_int_equal(rig_register(rig, 1, 4, NULL), KAFKA_DUPLICATE_BROKER_REGISTRATION);
    assert_string_equal(BEAT(rig, 1, INT64_MAX, .want_shut_down = true), "(0,T,T,T) BRC0 1 fence");
    assert_int_equal(rig_register(rig, 1, 4, NULL), KAFKA_NONE);
    /* (g), T57: registered, but never heard. */
    assert_int_equal(rig_register(rig, 1, 5, NULL), KAFKA_NONE);
}

/* T13, T14. */
static void test_unfencing(void **state)
{
    struct cluster_rig *rig = *state;
    rig->offset = 6;
    assert_int_equal(rig_register(rig, 1, 1, NULL), KAFKA_NONE);
    assert_string_equal(BEAT(rig, 1, -1, .want_fence = true), "(0,F,T,F)");
    assert_string_equal(BEAT(rig, 1, 5), "(0,F,T,F)");
    assert_string_equal(BEAT(rig, 1, 6, .want_fence = true), "(0,T,T,F)");
    assert_string_equal(BEAT(rig, 1, 6), "(0,T,F,F) BRC0 1 unfence");
    assert_string_equal(BEAT(rig, 1, 7), "(0,T,F,F)");
    assert_string_equal(BEAT(rig, 1, 3), "(0,F,F,F)");

    assert_string_equal(BEAT(rig, 9, 7), "(77,F,T,F)");
    assert_string_equal(BEAT(rig, 1, 7, .epoch = 5), "(77,F,T,F)");
    struct cluster_broker_view view;
    assert_true(cluster_broker(rig->cluster, 1, &view));
    assert_int_equal(view.liveness, CLUSTER_UNFENCED);
    assert_int_equal(view.reason, CLUSTER_REASON_CAUGHT_UP);
    assert_int_equal(view.session_end_ms, 9000);
    assert_false(cluster_broker(rig->cluster, 9, &view));
    cluster_resign(rig->cluster, rig->offset);
    assert_string_equal(BEAT(rig, 1, 7), "(41,F,T,F)");
}

/* T15: fenced after its session, and what comes of it. */
static void test_session(void **state)
{
    struct cluster_rig *rig = *state;
    rig_up(rig, 1);
    rig_up(rig, 2);
    TOPIC(rig, "t", 1, 2);
    assert_string_equal(rig_state(rig, "t", 0), "L=1/0 isr=[1,2] pe=0");
    for (int64_t at = 2000; at <= 8000; at += 2000) {
        assert_string_equal(rig_pass(rig, at), "");
        BEAT(rig, 2, INT64_MAX);
    }
    assert_string_equal(rig_pass(rig, 9000), "");
    assert_string_equal(rig_pass(rig, 10130), "[9001] PC t-0 isr=[2] leader=2; BRC0 1 fence");
    assert_string_equal(rig_state(rig, "t", 0), "L=2/1 isr=[2] pe=1");
    assert_string_equal(BEAT(rig, 1, INT64_MAX), "(0,T,F,F) BRC0 1 unfence");
    assert_string_equal(rig_state(rig, "t", 0), "L=2/1 isr=[2] pe=1");
}

/* A controller that stalls fences nobody who spoke meanwhile: the horizon stands still. */
static void test_stalled_controller(void **state)
{
    struct cluster_rig *rig = *state;
    rig_up(rig, 1);
    rig->now_ms = 60000;
    struct step *step = rig_step(rig);
    step->horizon_ms = 5000; /* Input of the last 55 seconds has not been read. */
    assert_int_not_equal(cluster_tick(rig->cluster, step), STEP_E_MEMORY);
    assert_int_equal(step->record_count, 0);
    rig_append(rig);
    cluster_contact(rig->cluster, 1, image_broker(cluster_image(rig->cluster), 1)->epoch, 59000);
    assert_string_equal(rig_tick(rig, 61200), "");
}

/* What the log had no room for has not happened, and is done when there is some. */
static void test_refused(void **state)
{
    struct cluster_rig *rig = *state;
    rig_up(rig, 1);
    rig_up(rig, 2);
    TOPIC(rig, "t", 1, 2);
    assert_string_equal(rig_pass(rig, 2000), "");
    BEAT(rig, 2, INT64_MAX);
    rig->now_ms = 9500;
    for (int i = 0; i < 3; i++) {
        struct step *step = rig_step(rig);
        step->horizon_ms = rig->now_ms;
        assert_int_not_equal(cluster_tick(rig->cluster, step), STEP_E_MEMORY);
        if (step->record_count > 0) cluster_refused(rig->cluster, step);
        assert_int_equal(cluster_deadline(rig->cluster) <= rig->now_ms, true);
    }
    assert_string_equal(rig_state(rig, "t", 0), "L=1/0 isr=[1,2] pe=0");
    assert_string_equal(rig_pass(rig, 10500), "[9500] PC t-0 isr=[2] leader=2; BRC0 1 fence");
    /* A shutdown that was begun and refused has not begun: its broker asks again. */
    struct broker_heartbeat_request in;
    struct broker_heartbeat_response out;
    wire_defaults(&wire_broker_heartbeat_request, &in);
    in.broker_id = 2;
    in.broker_epoch = image_broker(cluster_image(rig->cluster), 2)->epoch;
    in.current_metadata_offset = INT64_MAX;
    in.want_shut_down = true;
    struct cluster_broker_view view;
    struct step *step = rig_step(rig);
    assert_int_equal(cluster_heartbeat(rig->cluster, step, &in, &out), STEP_DONE);
    assert_true(step->record_count > 0);
    cluster_refused(rig->cluster, step);
    assert_true(cluster_broker(rig->cluster, 2, &view));
    assert_int_equal(view.liveness, CLUSTER_UNFENCED);
    assert_true(view.session_end_ms > 0);
}

/* What `explain` tells: why, since when, what it moved, and the last beats. */
static void test_explained(void **state)
{
    struct cluster_rig *rig = *state;
    rig_up(rig, 1);
    rig_up(rig, 2);
    TOPIC(rig, "t", 1, 2, -1, 1, 2, -1, 2, 1);
    for (int64_t at = 0; at < 10; at++) {
        rig->now_ms = at;
        BEAT(rig, 1, 20 + at);
    }
    struct cluster_broker_view view;
    assert_true(cluster_broker(rig->cluster, 1, &view));
    assert_int_equal(view.beat_count, CLUSTER_BEATS_KEPT);
    assert_int_equal(view.beats[0].at_ms, 2);
    assert_int_equal(view.beats[7].metadata_offset, 29);
    assert_true(view.beats[7].caught_up);
    assert_int_equal(view.moved, 0);
    rig_pass(rig, 8000);
    BEAT(rig, 2, INT64_MAX);
    rig_pass(rig, 12000);
    assert_true(cluster_broker(rig->cluster, 1, &view));
    assert_int_equal(view.liveness, CLUSTER_FENCED);
    assert_int_equal(view.reason, CLUSTER_REASON_SESSION);
    assert_int_equal(view.since_ms, 9010);
    assert_int_equal(view.moved, 3);
}

/* T16: one broker at a time, each sees what became of the one before. */
static void test_two_expired(void **state)
{
    struct cluster_rig *rig = *state;
    rig_up(rig, 1);
    rig_up(rig, 2);
    rig_up(rig, 3);
    TOPIC(rig, "t", 1, 2, 3);
    rig_pass(rig, 5000);
    BEAT(rig, 3, INT64_MAX);
    const char *told = rig_pass(rig, 10200);
    bool first = strcmp(told, "[9001] PC t-0 isr=[2,3] leader=2; BRC0 1 fence | "
                              "[9001] PC t-0 isr=[3] leader=3; BRC0 2 fence") == 0;
    bool second = strcmp(told, "[9001] PC t-0 isr=[1,3]; BRC0 2 fence | "
                               "[9001] PC t-0 isr=[3] leader=3; BRC0 1 fence") == 0;
    if (!first && !second) fail_msg("%s", told);
    assert_string_equal(rig_state(rig, "t", 0),
                        first ? "L=3/2 isr=[3] pe=2" : "L=3/1 isr=[3] pe=2");
}

/* T17, T18, T21. */
static void test_last_broker(void **state)
{
    struct cluster_rig *rig = *state;
    rig_up(rig, 1);
    TOPIC(rig, "t", 1);
    assert_string_equal(BEAT(rig, 1, INT64_MAX, .want_shut_down = true),
                        "(0,T,F,F) BRC1 1 shutdown; PC t-0 leader=-1");
    assert_string_equal(BEAT(rig, 1, INT64_MAX, .want_shut_down = true), "(0,T,T,T) BRC0 1 fence");
    assert_string_equal(rig_state(rig, "t", 0), "L=-1/1 isr=[1] pe=1");
    assert_string_equal(BEAT(rig, 1, INT64_MAX, .want_shut_down = true), "(0,T,T,T) BRC0 1 fence");
    rig->now_ms = 20000;
    assert_int_equal(rig_register(rig, 1, 2, NULL), KAFKA_NONE);
    assert_string_equal(rig->text + (rig->size - 7), " fenced");
    assert_string_equal(BEAT(rig, 1, INT64_MAX), "(0,T,F,F) BRC0 1 unfence; PC t-0 leader=1");
    assert_string_equal(rig_state(rig, "t", 0), "L=1/2 isr=[1] pe=2");
}

static void test_want_fence(void **state)
{
    struct cluster_rig *rig = *state;
    rig_up(rig, 1);
    rig_up(rig, 2);
    TOPIC(rig, "t", 1, 2);
    assert_string_equal(BEAT(rig, 1, INT64_MAX, .want_fence = true),
                        "(0,T,T,F) PC t-0 isr=[2] leader=2; BRC0 1 fence");
    assert_string_equal(BEAT(rig, 1, INT64_MAX, .want_fence = true, .want_shut_down = true),
                        "(0,T,T,T) BRC0 1 fence");
    assert_string_equal(BEAT(rig, 1, 0, .want_shut_down = true), "(0,F,T,T) BRC0 1 fence");
    assert_string_equal(BEAT(rig, 2, INT64_MAX, .want_fence = true, .want_shut_down = true),
                        "(0,T,T,T) PC t-0 leader=-1; BRC0 2 fence");
}

/* T19: drained, and told to stop when the others have seen it. */
static void test_controlled_shutdown(void **state)
{
    struct cluster_rig *rig = *state;
    for (int32_t id = 1; id <= 3; id++)
        rig_up(rig, id);
    TOPIC(rig, "t", 1, 2, 3);
    BEAT(rig, 2, 90);
    BEAT(rig, 3, 95);
    rig->offset = 100;
    assert_string_equal(BEAT(rig, 1, 99, .want_shut_down = true),
                        "(0,T,F,F) BRC1 1 shutdown; PC t-0 isr=[2,3] leader=2");
    struct cluster_broker_view view;
    assert_true(cluster_broker(rig->cluster, 1, &view));
    assert_int_equal(view.shutdown_offset, 101);
    assert_int_equal(view.liveness, CLUSTER_SHUTTING_DOWN);
    assert_string_equal(BEAT(rig, 1, 101), "(0,T,F,F)"); /* No way back. */
    assert_string_equal(BEAT(rig, 1, 101, .want_shut_down = true), "(0,T,F,F)");
    assert_string_equal(BEAT(rig, 2, 101), "(0,T,F,F)");
    assert_string_equal(BEAT(rig, 3, 100), "(0,T,F,F)");
    assert_string_equal(BEAT(rig, 1, 101, .want_shut_down = true), "(0,T,F,F)");
    assert_string_equal(BEAT(rig, 3, 101), "(0,T,F,F)");
    assert_string_equal(BEAT(rig, 1, 101, .want_shut_down = true), "(0,T,T,T) BRC0 1 fence");

    /* T20: without leadership it may go at once. */
    assert_string_equal(BEAT(rig, 3, 102, .want_shut_down = true),
                        "(0,T,T,T) PC t-0 isr=[2]; BRC0 3 fence");
    /* T56, better than Kafka by decision 14: who was told to stop may come back at once. */
    assert_int_equal(rig_register(rig, 3, 2, NULL), KAFKA_NONE);
}

/* The broker part of the controller's own process does not beat by a timer: what it said last must
 * not hold up another's shutdown. */
static void test_own_broker_holds_up_nobody(void **state)
{
    struct cluster_rig *rig = *state;
    rig_up(rig, 1);
    rig_up(rig, 2);
    TOPIC(rig, "t", 1, 2);
    BEAT(rig, 2, 90);
    rig->offset = 100;
    assert_string_equal(BEAT(rig, 1, 99, .want_shut_down = true),
                        "(0,T,F,F) BRC1 1 shutdown; PC t-0 isr=[2] leader=2");
    assert_string_equal(BEAT(rig, 1, 101, .want_shut_down = true), "(0,T,F,F)");
    rig->cluster->options.own_broker_id = 2;
    assert_string_equal(BEAT(rig, 1, 101, .want_shut_down = true), "(0,T,T,T) BRC0 1 fence");
}

/* T20 below metadata.version 12: leaving the ISR raises the leader epoch. */
static void test_shrink_bump(void **state)
{
    struct cluster_rig rig = {0};
    rig_start(&rig, 11, false);
    rig_up(&rig, 1);
    rig_up(&rig, 2);
    TOPIC(&rig, "t", 1, 2);
    assert_string_equal(BEAT(&rig, 2, INT64_MAX, .want_shut_down = true),
                        "(0,T,T,T) PC t-0 isr=[1] leader=1; BRC0 2 fence");
    rig_stop(&rig);
}

/* T22, T23: another controller takes over. */
static void test_failover(void **state)
{
    struct cluster_rig *rig = *state;
    for (int32_t id = 1; id <= 3; id++)
        rig_up(rig, id);
    TOPIC(rig, "t", 1, 2, 3);
    BEAT(rig, 1, INT64_MAX, .want_shut_down = true);
    rig_pass(rig, 8000);
    cluster_resign(rig->cluster, rig->offset);
    struct cluster_bootstrap none = {0};
    assert_int_equal(cluster_activate(rig->cluster, rig_step(rig), &none), STEP_DONE);
    assert_int_equal(rig->step.record_count, 0);
    /* In controlled shutdown in the log; the offset to wait for is gone. */
    assert_string_equal(BEAT(rig, 1, INT64_MAX, .want_shut_down = true), "(0,T,T,T) BRC0 1 fence");
    for (int64_t at = 8500; at <= 17000; at += 500) {
        BEAT(rig, 2, INT64_MAX);
        assert_string_equal(rig_pass(rig, at), "");
    }
    BEAT(rig, 2, INT64_MAX);
    /* Broker 1's session ends at 17000, too: it is fenced once more, which changes nothing. */
    const char *told = rig_pass(rig, 18140);
    if (strstr(told, "PC t-0 isr=[2]; BRC0 3 fence") == NULL) fail_msg("%s", told);
}

/* T24. */
static void test_unregister(void **state)
{
    struct cluster_rig *rig = *state;
    rig_up(rig, 1);
    rig_up(rig, 2);
    TOPIC(rig, "t", 1, 2);
    struct unregister_broker_request in = {.broker_id = 1};
    struct unregister_broker_response out;
    assert_int_equal(cluster_unregister_broker(rig->cluster, rig_step(rig), &in, &out), STEP_DONE);
    rig_append(rig);
    assert_int_equal(out.error_code, KAFKA_NONE);
    assert_string_equal(rig->text, "PC t-0 isr=[2] leader=2; UnregisterBrokerRecord");
    assert_string_equal(BEAT(rig, 1, 5), "(77,F,T,F)");
    assert_int_equal(cluster_unregister_broker(rig->cluster, rig_step(rig), &in, &out), STEP_DONE);
    assert_int_equal(out.error_code, KAFKA_BROKER_ID_NOT_REGISTERED);
    assert_int_equal(rig_register(rig, 1, 2, NULL), KAFKA_NONE);
}

/* T25. The partitions' directories are set by records, as a broker with two would have them. */
static void test_offline_directory(void **state)
{
    struct cluster_rig *rig = *state;
    rig_up(rig, 1);
    rig_up(rig, 2);
    TOPIC(rig, "t", 1, 2, -1, 1, 2);
    struct uuid lies[2][2] = {
        {rig_uuid(1),  rig_uuid(2)},
        {rig_uuid(11), rig_uuid(2)}
    };
    struct step *step = rig_step(rig);
    for (int32_t i = 0; i < 2; i++) {
        struct partition_change_record *record = step_add(step, &wire_partition_change_record, 1);
        record->topic_id = image_topic(cluster_image(rig->cluster), VIEW("t"))->id;
        record->partition_id = i;
        record->directories.items = lies[i];
        record->directories.count = 2;
    }
    rig_append(rig);
    struct uuid lost[] = {rig_uuid(1)};
    struct uuid unknown[] = {rig_uuid(9)};
    assert_string_equal(BEAT(rig, 1, INT64_MAX, .offline = lost, .offline_count = 1),
                        "(0,T,F,F) PC t-0 isr=[2] leader=2; BRC2 1 dirs=[D11]");
    assert_string_equal(BEAT(rig, 1, INT64_MAX, .offline = lost, .offline_count = 1), "(0,T,F,F)");
    assert_string_equal(BEAT(rig, 1, INT64_MAX, .offline = unknown, .offline_count = 1),
                        "(0,T,F,F)");
    assert_string_equal(rig_state(rig, "t", 1), "L=1/0 isr=[1,2] pe=1");
    /* While its directory is gone it cannot lead there. */
    assert_string_equal(BEAT(rig, 2, INT64_MAX, .want_fence = true),
                        "(0,T,T,F) PC t-0 leader=-1; PC t-1 isr=[1]; BRC0 2 fence");
}

/* T53. */
static void test_cordons(void **state)
{
    struct cluster_rig *rig = *state;
    struct uuid one[] = {rig_uuid(1)};
    rig->offset = 6;
    assert_int_equal(rig_register(rig, 1, 1, NULL), KAFKA_NONE);
    assert_string_equal(BEAT(rig, 1, 6, .want_fence = true), "(0,T,T,F)");
    assert_string_equal(BEAT(rig, 1, 6, .cordoned = one),
                        "(0,T,F,F) BRC0 1 unfence; BRC3 1 cordoned=[]");
    assert_string_equal(BEAT(rig, 1, 7, .cordoned = one), "(0,T,F,F)");
    assert_string_equal(BEAT(rig, 1, 7, .cordoned = one, .cordoned_count = 1),
                        "(0,T,F,F) BRC3 1 cordoned=[D1]");
    assert_string_equal(BEAT(rig, 1, 8, .cordoned = one, .cordoned_count = 1), "(0,T,F,F)");
    assert_string_equal(BEAT(rig, 1, 8), "(0,T,F,F)");
    assert_int_equal(rig_register(rig, 1, 1, NULL), KAFKA_NONE);
    assert_string_equal(rig->text, "register4 1 epoch=6");
    assert_string_equal(BEAT(rig, 1, INT64_MAX, .cordoned = one, .cordoned_count = 1),
                        "(0,T,F,F) BRC3 1 cordoned=[D1]");
}

/* T58: a fenced broker that falls silent is fenced once more, and then never again. */
static void test_fenced_session(void **state)
{
    struct cluster_rig *rig = *state;
    assert_int_equal(rig_register(rig, 1, 1, NULL), KAFKA_NONE);
    BEAT(rig, 1, 0, .want_fence = true);
    assert_string_equal(rig_pass(rig, 10130), "[9001] BRC0 1 fence");
    assert_string_equal(rig_pass(rig, 60000), "");
}

/* T59: one broker, eligible leader replicas on. */
static void test_elr_one_broker(void **state)
{
    struct cluster_rig *rig = *state;
    int64_t epoch = -1;
    assert_int_equal(rig_register(rig, 1, 1, &epoch), KAFKA_NONE);
    BEAT(rig, 1, INT64_MAX);
    TOPIC(rig, "t", 1);
    assert_string_equal(BEAT(rig, 1, INT64_MAX, .want_shut_down = true),
                        "(0,T,F,F) BRC1 1 shutdown; PC t-0 isr=[] leader=-1 elr=[1] last=[1]");
    BEAT(rig, 1, INT64_MAX, .want_shut_down = true);
    rig->now_ms = 20000;
    assert_int_equal(rig_register(rig, 1, 2, &epoch), KAFKA_NONE); /* A clean restart. */
    assert_int_equal(rig->step.record_count, 1);
    assert_string_equal(BEAT(rig, 1, INT64_MAX),
                        "(0,T,F,F) BRC0 1 unfence; PC t-0 isr=[1] leader=1 elr=[] last=[]");

    const char *told = rig_pass(rig, 31000); /* Killed: */
    assert_non_null(strstr(told, "PC t-0 isr=[] leader=-1 elr=[1] last=[1]; BRC0 1 fence"));
    epoch = -1;
    assert_int_equal(rig_register(rig, 1, 3, &epoch), KAFKA_NONE); /* and back, nothing proved. */
    assert_non_null(strstr(rig->text, "PC t-0 elr=[]; register4 1"));
    assert_string_equal(BEAT(rig, 1, INT64_MAX),
                        "(0,T,F,F) BRC0 1 unfence; PC t-0 isr=[1] leader=1 recovery=1 last=[]");
}

/* Three brokers, and this many replicas that must be in sync by the cluster's default. */
static void three_of_min_insync(struct cluster_rig *rig, const char *count)
{
    for (int32_t id = 1; id <= 3; id++)
        rig_up(rig, id);
    struct step *step = rig_step(rig);
    struct config_record *config = step_add(step, &wire_config_record, 0);
    config->resource_type = 4;
    config->name = VIEW("min.insync.replicas");
    config->value = view_of_string(count);
    rig_append(rig);
}

/* T41: min.insync.replicas 2, three brokers, fenced one by one. */
static void test_elr_three_brokers(void **state)
{
    struct cluster_rig *rig = *state;
    three_of_min_insync(rig, "2");
    TOPIC(rig, "t", 1, 2, 3);
    assert_string_equal(BEAT(rig, 3, INT64_MAX, .want_fence = true),
                        "(0,T,T,F) PC t-0 isr=[1,2]; BRC0 3 fence");
    assert_string_equal(BEAT(rig, 2, INT64_MAX, .want_fence = true),
                        "(0,T,T,F) PC t-0 isr=[1] elr=[2]; BRC0 2 fence");
    assert_string_equal(BEAT(rig, 1, INT64_MAX, .want_fence = true),
                        "(0,T,T,F) PC t-0 isr=[] leader=-1 elr=[2,1] last=[1]; BRC0 1 fence");
    assert_string_equal(BEAT(rig, 2, INT64_MAX),
                        "(0,T,F,F) BRC0 2 unfence; PC t-0 isr=[2] leader=2 elr=[1] last=[]");
    assert_string_equal(rig_state(rig, "t", 0), "L=2/2 isr=[2] elr=[1] pe=4");
}

static void test_min_insync_above_replicas(void **state)
{
    struct cluster_rig *rig = *state;
    three_of_min_insync(rig, "5");
    TOPIC(rig, "t", 1, 2, 3);
    assert_string_equal(BEAT(rig, 3, INT64_MAX, .want_fence = true),
                        "(0,T,T,F) PC t-0 isr=[1,2] elr=[3]; BRC0 3 fence");
}

/* T47. */
static void test_producer_ids(void **state)
{
    struct cluster_rig *rig = *state;
    rig_up(rig, 1);
    struct allocate_producer_ids_request in = {
        .broker_id = 1, .broker_epoch = image_broker(cluster_image(rig->cluster), 1)->epoch};
    struct allocate_producer_ids_response out;
    for (int64_t first = 0; first < 3000; first += 1000) {
        assert_int_equal(cluster_allocate_producer_ids(rig->cluster, rig_step(rig), &in, &out),
                         STEP_DONE);
        assert_int_equal(out.producer_id_start, first);
        assert_int_equal(out.producer_id_len, 1000);
        rig_append(rig);
    }
    assert_string_equal(rig->text, "producer ids until 3000");
    in.broker_epoch++;
    assert_int_equal(cluster_allocate_producer_ids(rig->cluster, rig_step(rig), &in, &out),
                     STEP_DONE);
    assert_int_equal(out.error_code, KAFKA_STALE_BROKER_EPOCH);
}

int main(void)
{
#define TEST_22(name) cmocka_unit_test_setup_teardown(name, rig_setup_22, rig_teardown)
#define TEST_33(name) cmocka_unit_test_setup_teardown(name, rig_setup_33, rig_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bootstrap),
        TEST_22(test_half_bootstrap),
        TEST_22(test_registration),
        cmocka_unit_test(test_registration_versions),
        TEST_22(test_registration_features),
        TEST_22(test_registration_directories),
        TEST_22(test_incarnations),
        TEST_22(test_unfencing),
        TEST_22(test_session),
        TEST_22(test_refused),
        TEST_22(test_stalled_controller),
        TEST_22(test_explained),
        TEST_22(test_two_expired),
        TEST_22(test_last_broker),
        TEST_22(test_want_fence),
        TEST_22(test_controlled_shutdown),
        TEST_22(test_own_broker_holds_up_nobody),
        cmocka_unit_test(test_shrink_bump),
        TEST_22(test_failover),
        TEST_22(test_unregister),
        TEST_22(test_offline_directory),
        TEST_33(test_cordons),
        TEST_22(test_fenced_session),
        TEST_33(test_elr_one_broker),
        TEST_33(test_elr_three_brokers),
        TEST_33(test_min_insync_above_replicas),
        TEST_22(test_producer_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
