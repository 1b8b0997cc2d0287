/* cluster_partition_test.c - partitions, reassignments, elections, features. */
#include "core/cluster_rig.h"

#include "gen/alter_partition_reassignments_request.h"
#include "gen/alter_partition_reassignments_response.h"
#include "gen/alter_partition_request.h"
#include "gen/alter_partition_response.h"
#include "gen/assign_replicas_to_dirs_request.h"
#include "gen/assign_replicas_to_dirs_response.h"
#include "gen/controller_registration_request.h"
#include "gen/controller_registration_response.h"
#include "gen/elect_leaders_request.h"
#include "gen/elect_leaders_response.h"
#include "gen/list_partition_reassignments_request.h"
#include "gen/list_partition_reassignments_response.h"
#include "gen/unregister_controller_request.h"
#include "gen/unregister_controller_response.h"
#include "gen/update_features_request.h"
#include "gen/update_features_response.h"

static int start(void **state, int16_t metadata_version, bool elr)
{
    (void)rig_setup(state, metadata_version, elr);
    for (int32_t id = 1; id <= 4; id++)
        rig_up(*state, id);
    return 0;
}

static int setup_22(void **state)
{
    return start(state, 22, false);
}

static int setup_33(void **state)
{
    return start(state, 33, true);
}

/* ---- AlterPartition -------------------------------------------------------------------------- */

static struct uuid topic_id(struct cluster_rig *rig, const char *name)
{
    const struct image_topic *topic =
        image_topic(cluster_image(rig->cluster), view_of_string(name));
    return topic == NULL ? rig_uuid(250) : topic->id;
}

struct ask {
    int32_t broker;
    int64_t epoch; /* 0: the registered one. */
    const char *topic;
    int32_t partition;
    int32_t leader_epoch;
    int32_t partition_epoch;
    int32_t isr[4];
    int64_t epochs[4];
    int32_t count;
    int8_t recovery;
};

/* The answer: its error, and what was written. */
static int16_t alter(struct cluster_rig *rig, const struct ask *ask)
{
    struct alter_partition_request_broker_state states[4] = {0};
    for (int32_t i = 0; i < ask->count; i++) {
        states[i].broker_id = ask->isr[i];
        states[i].broker_epoch = ask->epochs[i] == 0 ? -1 : ask->epochs[i];
    }
    struct alter_partition_request_partition_data partition = {
        .partition_index = ask->partition,
        .leader_epoch = ask->leader_epoch,
        .partition_epoch = ask->partition_epoch,
        .leader_recovery_state = ask->recovery,
        .new_isr_with_epochs = {states, ask->count},
    };
    struct alter_partition_request_topic_data topic = {
        .topic_id = topic_id(rig, ask->topic),
        .partitions = {&partition, 1},
    };
    const struct image_node *broker = image_broker(cluster_image(rig->cluster), ask->broker);
    struct alter_partition_request in = {
        .broker_id = ask->broker,
        .broker_epoch = ask->epoch != 0 ? ask->epoch : broker->epoch,
        .topics = {&topic, 1},
    };
    struct alter_partition_response out;
    assert_int_equal(cluster_alter_partition(rig->cluster, rig_step(rig), &in, &out), STEP_DONE);
    int16_t error =
        out.error_code != 0 ? out.error_code : out.topics.items[0].partitions.items[0].error_code;
    rig_append(rig);
    return error;
}

#define ALTER(rig, leader_epoch_, partition_epoch_, recovery_, count_, ...)                        \
    alter((rig), &(struct ask){.broker = 1,                                                        \
                               .topic = "t",                                                       \
                               .leader_epoch = (leader_epoch_),                                    \
                               .partition_epoch = (partition_epoch_),                              \
                               .recovery = (recovery_),                                            \
                               .count = (count_),                                                  \
                               .isr = {__VA_ARGS__}})

/* Write a PartitionChangeRecord by hand. */
static struct partition_change_record *by_hand(struct cluster_rig *rig, int32_t partition)
{
    struct partition_change_record *record =
        step_add(rig_step(rig), &wire_partition_change_record, 1);
    record->topic_id = topic_id(rig, "t");
    record->partition_id = partition;
    return record;
}

static void set_isr(struct cluster_rig *rig, int32_t leader, int32_t a, int32_t b)
{
    int32_t isr[] = {a, b};
    struct partition_change_record *record = by_hand(rig, 0);
    record->leader = leader;
    record->isr.items = isr;
    record->isr.count = b < 0 ? 1 : 2;
    rig_append(rig);
}

/* T38. */
static void test_alter_partition(void **state)
{
    struct cluster_rig *rig = *state;
    TOPIC(rig, "t", 1, 2, 3);
    set_isr(rig, IMAGE_LEADER_UNCHANGED, 1, 2);
    assert_string_equal(rig_state(rig, "t", 0), "L=1/0 isr=[1,2] pe=1");
    int64_t epoch = image_broker(cluster_image(rig->cluster), 3)->epoch;

    assert_int_equal(ALTER(rig, 1, 1, 0, 2, 1, 2), KAFKA_NOT_CONTROLLER);
    assert_int_equal(ALTER(rig, 0, 2, 0, 2, 1, 2), KAFKA_NOT_CONTROLLER);
    assert_int_equal(ALTER(rig, 0, 0, 0, 2, 1, 2), KAFKA_INVALID_UPDATE_VERSION);
    assert_int_equal(ALTER(rig, 0, 1, 0, 2, 2, 3), KAFKA_INVALID_REQUEST);
    assert_int_equal(ALTER(rig, 0, 1, 0, 2, 1, 4), KAFKA_INVALID_REQUEST);
    assert_int_equal(ALTER(rig, 0, 1, 0, 2, 1, 1), KAFKA_INVALID_REQUEST);
    assert_int_equal(ALTER(rig, 0, 1, 0, 0, 0), KAFKA_INVALID_REQUEST);
    assert_int_equal(ALTER(rig, 0, 1, 1, 2, 1, 2), KAFKA_INVALID_REQUEST);
    assert_int_equal(ALTER(rig, 0, 1, 1, 1, 1), KAFKA_INVALID_REQUEST);
    struct ask ask = {
        .broker = 1,
        .topic = "t",
        .partition_epoch = 1,
        .count = 3,
        .isr = {1, 2, 3        },
        .epochs = {0, 0, epoch - 1}
    };
    assert_int_equal(alter(rig, &ask), KAFKA_INELIGIBLE_REPLICA);
    ask.epochs[2] = epoch;
    ask.broker = 2;
    assert_int_equal(alter(rig, &ask), KAFKA_INVALID_REQUEST);
    ask.broker = 1;
    ask.epoch = 99999;
    assert_int_equal(alter(rig, &ask), KAFKA_STALE_BROKER_EPOCH);
    ask.epoch = 0;
    ask.topic = "none";
    assert_int_equal(alter(rig, &ask), KAFKA_UNKNOWN_TOPIC_ID);
    ask.topic = "t";
    ask.partition = 8;
    assert_int_equal(alter(rig, &ask), KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    ask.partition = 0;
    BEAT(rig, 3, INT64_MAX, .want_fence = true);
    assert_int_equal(alter(rig, &ask), KAFKA_INELIGIBLE_REPLICA);
    BEAT(rig, 3, INT64_MAX);
    assert_int_equal(rig->step.record_count, 1);

    assert_int_equal(alter(rig, &ask), KAFKA_NONE);
    assert_string_equal(rig->text, "PC t-0 isr=[1,2,3]");
    assert_string_equal(rig_state(rig, "t", 0), "L=1/0 isr=[1,2,3] pe=2");
    assert_int_equal(ALTER(rig, 0, 2, 0, 3, 1, 2, 3), KAFKA_NONE);
    assert_string_equal(rig->text, ""); /* Nothing new: no record. */

    set_isr(rig, 1, 1, 2); /* Leader epoch 1. */
    assert_int_equal(ALTER(rig, 0, 3, 0, 2, 1, 2), KAFKA_FENCED_LEADER_EPOCH);
}

/* T39: the change that completes a reassignment moves the leader. */
static void test_completion_moves_leader(void **state)
{
    struct cluster_rig *rig = *state;
    TOPIC(rig, "t", 1, 2);
    int32_t replicas[] = {2, 3, 1};
    int32_t adding[] = {3};
    int32_t removing[] = {1};
    struct partition_change_record *record = by_hand(rig, 0);
    record->replicas.items = replicas;
    record->replicas.count = 3;
    record->adding_replicas.items = adding;
    record->adding_replicas.count = 1;
    record->removing_replicas.items = removing;
    record->removing_replicas.count = 1;
    rig_append(rig);
    assert_int_equal(ALTER(rig, 0, 1, 0, 3, 1, 2, 3), KAFKA_NEW_LEADER_ELECTED);
    assert_string_equal(rig->text, "PC t-0 isr=[2,3] leader=2 replicas=[2,3] removing=[] adding=[]"
                                   " dirs=[D0,D0]");
    assert_string_equal(rig_state(rig, "t", 0), "L=2/1 isr=[2,3] pe=2");
}

/* ---- reassignments --------------------------------------------------------------------------- */

/* Ask for a reassignment of t-0 (a count of -1 takes one back). */
static int16_t reassign(struct cluster_rig *rig, bool any_factor, int32_t count, const int32_t *to)
{
    struct alter_partition_reassignments_request_reassignable_partition partition = {
        .replicas = {(int32_t *)(uintptr_t)to, count}
    };
    struct alter_partition_reassignments_request_reassignable_topic topic = {
        .name = VIEW("t"), .partitions = {&partition, 1}
    };
    struct alter_partition_reassignments_request in = {
        .allow_replication_factor_change = any_factor, .topics = {&topic, 1}
    };
    struct alter_partition_reassignments_response out;
    assert_int_equal(cluster_alter_reassignments(rig->cluster, rig_step(rig), &in, &out),
                     STEP_DONE);
    assert_int_equal(out.error_code, KAFKA_NONE);
    int16_t error = out.responses.items[0].partitions.items[0].error_code;
    rig_append(rig);
    return error;
}

#define REASSIGN(rig, ...)                                                                         \
    reassign((rig), true, ARRAY_SIZE(((const int32_t[]){__VA_ARGS__})),                            \
             (const int32_t[]){__VA_ARGS__})

/* T62, first half: completed without the old replica that is down. */
static void test_reassignment(void **state)
{
    struct cluster_rig *rig = *state;
    TOPIC(rig, "t", 1, 2, 3);
    BEAT(rig, 3, INT64_MAX, .want_fence = true);
    assert_int_equal(reassign(rig, true, -1, NULL), KAFKA_NO_REASSIGNMENT_IN_PROGRESS);
    assert_int_equal(REASSIGN(rig, 4, 4), KAFKA_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(REASSIGN(rig, 4, 9), KAFKA_INVALID_REPLICA_ASSIGNMENT);
    const int32_t two[] = {4, 2};
    assert_int_equal(reassign(rig, false, 2, two), KAFKA_INVALID_REPLICATION_FACTOR);

    assert_int_equal(REASSIGN(rig, 4, 2, 3), KAFKA_NONE);
    assert_string_equal(rig->text, "PC t-0 replicas=[4,2,3,1] removing=[1] adding=[4]"
                                   " dirs=[D0,D0,D0,D0]");

    struct list_partition_reassignments_request list = {
        .topics = {NULL, -1}
    };
    struct list_partition_reassignments_response listed;
    assert_int_equal(
        cluster_list_reassignments(cluster_image(rig->cluster), rig_step(rig), &list, &listed),
        STEP_DONE);
    assert_int_equal(listed.topics.count, 1);
    assert_int_equal(listed.topics.items[0].partitions.items[0].adding_replicas.items[0], 4);

    assert_int_equal(ALTER(rig, 0, 2, 0, 3, 1, 2, 4), KAFKA_NEW_LEADER_ELECTED);
    assert_string_equal(rig->text, "PC t-0 isr=[2,4] leader=4 replicas=[4,2,3] removing=[]"
                                   " adding=[] dirs=[D0,D0,D0]");
}

/* T62, second half: fewer replicas than before need all that stay. */
static void test_reassignment_shrinks(void **state)
{
    struct cluster_rig *rig = *state;
    TOPIC(rig, "t", 1, 2, 3);
    BEAT(rig, 3, INT64_MAX, .want_fence = true);
    BEAT(rig, 2, INT64_MAX, .want_fence = true);
    assert_int_equal(REASSIGN(rig, 4, 2), KAFKA_NONE);
    assert_string_equal(rig->text, "PC t-0 replicas=[4,2,1,3] removing=[1,3] adding=[4]"
                                   " dirs=[D0,D0,D0,D0]");
    assert_int_equal(ALTER(rig, 0, 3, 0, 2, 1, 4), KAFKA_NONE);
    assert_string_equal(rig->text, "PC t-0 isr=[1,4]");
    /* Taken back: broker 4 leaves again. */
    assert_int_equal(reassign(rig, true, -1, NULL), KAFKA_NONE);
    assert_string_equal(rig->text, "PC t-0 isr=[1] leader=1 replicas=[2,1,3] removing=[] adding=[]"
                                   " dirs=[D0,D0,D0]");
}

/* A new order of the same brokers is done at once; so is dropping one. */
static void test_reassignment_at_once(void **state)
{
    struct cluster_rig *rig = *state;
    TOPIC(rig, "t", 1, 2, 3);
    assert_int_equal(REASSIGN(rig, 2, 1, 3), KAFKA_NONE);
    assert_string_equal(rig->text, "PC t-0 replicas=[2,1,3] dirs=[D0,D0,D0]");
    assert_int_equal(REASSIGN(rig, 2, 3), KAFKA_NONE);
    assert_string_equal(rig->text, "PC t-0 isr=[2,3] leader=2 replicas=[2,3] dirs=[D0,D0]");
}

/* ---- elections ------------------------------------------------------------------------------- */

static int16_t elect(struct cluster_rig *rig, int8_t type)
{
    int32_t index = 0;
    struct elect_leaders_request_topic_partitions topic = {
        .topic = VIEW("t"), .partitions = {&index, 1}
    };
    struct elect_leaders_request in = {
        .election_type = type, .topic_partitions = {&topic, 1}
    };
    struct elect_leaders_response out;
    assert_int_equal(cluster_elect_leaders(rig->cluster, rig_step(rig), &in, &out), STEP_DONE);
    int16_t error = out.replica_election_results.items[0].partition_result.items[0].error_code;
    rig_append(rig);
    return error;
}

/* T40. */
static void test_elections(void **state)
{
    struct cluster_rig *rig = *state;
    TOPIC(rig, "t", 1, 2, 3);
    set_isr(rig, 2, 2, 1);
    assert_int_equal(elect(rig, 0), KAFKA_NONE); /* a */
    assert_string_equal(rig->text, "PC t-0 leader=1");
    assert_int_equal(elect(rig, 0), KAFKA_ELECTION_NOT_NEEDED); /* b */
    set_isr(rig, 2, 2, 1);
    BEAT(rig, 1, INT64_MAX, .want_fence = true);
    assert_int_equal(elect(rig, 0), KAFKA_PREFERRED_LEADER_NOT_AVAILABLE); /* c */
    assert_int_equal(elect(rig, 1), KAFKA_ELECTION_NOT_NEEDED);            /* e */
    BEAT(rig, 2, INT64_MAX, .want_fence = true);
    BEAT(rig, 3, INT64_MAX, .want_fence = true);
    assert_string_equal(rig_state(rig, "t", 0), "L=-1/4 isr=[2] pe=5");
    assert_int_equal(elect(rig, 1), KAFKA_ELIGIBLE_LEADERS_NOT_AVAILABLE); /* f */
    assert_string_equal(BEAT(rig, 3, INT64_MAX), "(0,T,F,F) BRC0 3 unfence");
    assert_int_equal(elect(rig, 1), KAFKA_NONE); /* d */
    assert_string_equal(rig->text, "PC t-0 isr=[3] leader=3 recovery=1");
    /* h: recovering, it stays alone until it says that it has recovered. */
    struct ask ask = {.broker = 3, .topic = "t", .leader_epoch = 5, .partition_epoch = 6};
    ask.count = 1;
    ask.isr[0] = 3;
    assert_int_equal(alter(rig, &ask), KAFKA_NONE);
    assert_string_equal(rig->text, "PC t-0 recovery=0");
}

/* T40 g: where the topic allows it, an election that may lose data comes by itself. */
static void test_unclean_periodic(void **state)
{
    struct cluster_rig *rig = *state;
    TOPIC(rig, "t", 1, 2);
    set_isr(rig, 1, 1, -1);
    /* Leaderless before the setting comes; and the fenced broker goes on to beat, as the end of its
     * session would bring the election. */
    BEAT(rig, 1, INT64_MAX, .want_fence = true);
    struct config_record *config = step_add(rig_step(rig), &wire_config_record, 0);
    config->resource_type = 2;
    config->resource_name = VIEW("t");
    config->name = VIEW("unclean.leader.election.enable");
    config->value = VIEW("true");
    rig_append(rig);
    assert_string_equal(rig_state(rig, "t", 0), "L=-1/2 isr=[1] pe=2");
    for (int64_t at = 2000; at < 300000; at += 2000) {
        for (int32_t id = 1; id <= 4; id++)
            BEAT(rig, id, INT64_MAX, .want_fence = id == 1);
        assert_string_equal(rig_pass(rig, at), "");
    }
    for (int32_t id = 1; id <= 4; id++)
        BEAT(rig, id, INT64_MAX, .want_fence = id == 1);
    assert_string_equal(rig_pass(rig, 300000), "[300000] PC t-0 isr=[2] leader=2 recovery=1");
}

/* Preferred replicas lead again after a while. */
static void test_balance(void **state)
{
    struct cluster_rig *rig = *state;
    TOPIC(rig, "t", 1, 2);
    set_isr(rig, 2, 2, 1);
    for (int64_t at = 2000; at < 300000; at += 2000) {
        for (int32_t id = 1; id <= 4; id++)
            BEAT(rig, id, INT64_MAX);
        assert_string_equal(rig_pass(rig, at), "");
    }
    for (int32_t id = 1; id <= 4; id++)
        BEAT(rig, id, INT64_MAX);
    assert_string_equal(rig_pass(rig, 300000), "[300000] PC t-0 leader=1");
}

/* ---- directories ----------------------------------------------------------------------------- */

static int16_t assign(struct cluster_rig *rig, struct uuid directory, int32_t index, int64_t epoch)
{
    struct assign_replicas_to_dirs_request_partition_data partition = {.partition_index = index};
    struct assign_replicas_to_dirs_request_topic_data topic = {
        .topic_id = topic_id(rig, "t"), .partitions = {&partition, 1}
    };
    struct assign_replicas_to_dirs_request_directory_data item = {
        .id = directory, .topics = {&topic, 1}
    };
    struct assign_replicas_to_dirs_request in = {
        .broker_id = 1,
        .broker_epoch = epoch != 0 ? epoch : image_broker(cluster_image(rig->cluster), 1)->epoch,
        .directories = {&item, 1},
    };
    struct assign_replicas_to_dirs_response out;
    assert_int_equal(cluster_assign_directories(rig->cluster, rig_step(rig), &in, &out), STEP_DONE);
    int16_t error = out.error_code != 0
                        ? out.error_code
                        : out.directories.items[0].topics.items[0].partitions.items[0].error_code;
    rig_append(rig);
    return error;
}

/* T26. */
static void test_assign_directories(void **state)
{
    struct cluster_rig *rig = *state;
    assert_int_equal(assign(rig, rig_uuid(1), 0, 0), KAFKA_UNKNOWN_TOPIC_ID);
    TOPIC(rig, "t", 1, 2, -1, 2, 3);
    assert_int_equal(assign(rig, rig_uuid(1), 0, 0), KAFKA_NONE);
    assert_string_equal(rig->text, "PC t-0 dirs=[D1,D0]");
    assert_int_equal(assign(rig, rig_uuid(1), 0, 0), KAFKA_NONE);
    assert_string_equal(rig->text, "");
    assert_int_equal(assign(rig, rig_uuid(1), 7, 0), KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(assign(rig, rig_uuid(1), 1, 0), KAFKA_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(assign(rig, rig_uuid(1), 0, 99999), KAFKA_STALE_BROKER_EPOCH);
    assert_int_equal(assign(rig, rig_uuid(99), 0, 0), KAFKA_NONE);
    assert_string_equal(rig->text, "PC t-0 dirs=[D99,D0]; PC t-0 isr=[2] leader=2");
}

/* ---- features -------------------------------------------------------------------------------- */

static int16_t update_all(struct cluster_rig *rig,
                          struct update_features_request_feature_update_key *updates,
                          int32_t count,
                          bool validate_only)
{
    struct update_features_request in = {
        .feature_updates = {updates, count},
          .validate_only = validate_only
    };
    struct update_features_response out;
    assert_int_equal(cluster_update_features(rig->cluster, rig_step(rig), &in, &out), STEP_DONE);
    int16_t error = out.error_code;
    if (error != KAFKA_NONE) assert_true(out.error_message.size > 0);
    rig_append(rig);
    return error;
}

static int16_t update(struct cluster_rig *rig, const char *name, int16_t level, int8_t type)
{
    struct update_features_request_feature_update_key key = {
        .feature = view_of_string(name), .max_version_level = level, .upgrade_type = type};
    return update_all(rig, &key, 1, false);
}

/* T49, T68. */
static void test_update_features(void **state)
{
    struct cluster_rig *rig = *state;
    assert_int_equal(update(rig, "metadata.version", 25, 1), KAFKA_NONE);
    assert_string_equal(rig->text, "feature metadata.version=25");
    assert_int_equal(update(rig, "metadata.version", 24, 1), KAFKA_INVALID_UPDATE_VERSION);
    assert_int_equal(update(rig, "metadata.version", 24, 2), KAFKA_NONE);
    assert_int_equal(update(rig, "metadata.version", 22, 2), KAFKA_INVALID_UPDATE_VERSION);
    assert_int_equal(update(rig, "metadata.version", 22, 3), KAFKA_INVALID_UPDATE_VERSION);
    assert_int_equal(update(rig, "metadata.version", 24, 1), KAFKA_NONE); /* The same again. */
    assert_int_equal(update(rig, "metadata.version", 26, 2), KAFKA_INVALID_UPDATE_VERSION);
    assert_int_equal(update(rig, "metadata.version", 34, 1), KAFKA_INVALID_UPDATE_VERSION);
    assert_int_equal(update(rig, "metadata.version", 6, 2), KAFKA_INVALID_UPDATE_VERSION);
    assert_int_equal(update(rig, "metadata.version", -1, 2), KAFKA_INVALID_UPDATE_VERSION);
    assert_int_equal(update(rig, "metadata.version", 25, 0), KAFKA_INVALID_UPDATE_VERSION);
    assert_int_equal(update(rig, "no.such", 1, 1), KAFKA_INVALID_UPDATE_VERSION);
    assert_int_equal(update(rig, "streams.version", 1, 1), KAFKA_INVALID_UPDATE_VERSION);

    struct update_features_request_feature_update_key two[] = {
        {.feature = VIEW("metadata.version"), .max_version_level = 25, .upgrade_type = 1},
        {.feature = VIEW("group.version"),    .max_version_level = 2,  .upgrade_type = 1},
    };
    assert_int_equal(update_all(rig, two, 2, false), KAFKA_INVALID_UPDATE_VERSION);
    assert_int_equal(rig->step.record_count, 0);
    assert_int_equal(update_all(rig, two, 1, true), KAFKA_NONE);
    assert_int_equal(rig->step.record_count, 0);

    struct step *step = rig_step(rig);
    struct config_record *config = step_add(step, &wire_config_record, 0);
    config->resource_type = 4;
    config->resource_name = VIEW("1");
    config->name = VIEW("min.insync.replicas");
    config->value = VIEW("2");
    rig_append(rig);
    assert_int_equal(update(rig, "eligible.leader.replicas.version", 1, 1), KAFKA_NONE);
    assert_string_equal(rig->text, "config 4: min.insync.replicas=1; "
                                   "config 4:1 min.insync.replicas=null; "
                                   "feature eligible.leader.replicas.version=1");
    assert_int_equal(update(rig, "group.version", 0, 2), KAFKA_NONE);
    assert_int_equal(image_feature_level(cluster_image(rig->cluster), VIEW("group.version")), 0);
    assert_int_equal(update(rig, "kraft.version", 1, 1), KAFKA_NONE);
    assert_string_equal(rig->text, "NoOpRecord");
    assert_int_equal(update(rig, "kraft.version", 0, 2), KAFKA_INVALID_UPDATE_VERSION);
}

static void test_elr_needs_metadata(void **state)
{
    struct cluster_rig *rig = *state; /* At metadata.version 22. */
    assert_int_equal(update(rig, "eligible.leader.replicas.version", 1, 1),
                     KAFKA_INVALID_UPDATE_VERSION);
}

static int16_t unregister_controller(struct cluster_rig *rig, int32_t id)
{
    struct unregister_controller_request in = {.controller_id = id};
    struct unregister_controller_response out;
    assert_int_equal(cluster_unregister_controller(rig->cluster, rig_step(rig), &in, &out),
                     STEP_DONE);
    int16_t error = out.error_code;
    rig_append(rig);
    return error;
}

/* T61. */
static void test_controllers(void **state)
{
    struct cluster_rig *rig = *state;
    struct controller_registration_request in;
    struct controller_registration_response out;
    wire_defaults(&wire_controller_registration_request, &in);
    in.controller_id = 3;
    assert_int_equal(cluster_register_controller(rig->cluster, rig_step(rig), &in, &out),
                     STEP_DONE);
    rig_append(rig);
    assert_string_equal(rig->text, "RegisterControllerRecord");
    assert_non_null(image_controller(cluster_image(rig->cluster), 3));
    assert_int_equal(unregister_controller(rig, 1), KAFKA_INVALID_REQUEST);
    assert_int_equal(unregister_controller(rig, 9), KAFKA_CONTROLLER_ID_NOT_REGISTERED);
    assert_int_equal(unregister_controller(rig, 3), KAFKA_NONE);
    assert_int_equal(unregister_controller(rig, 3), KAFKA_CONTROLLER_ID_NOT_REGISTERED);
}

static void test_controllers_before_33(void **state)
{
    struct cluster_rig *rig = *state;
    assert_int_equal(unregister_controller(rig, 3), KAFKA_UNSUPPORTED_VERSION);
    assert_int_equal(unregister_controller(rig, 1), KAFKA_INVALID_REQUEST);
}

int main(void)
{
#define TEST_22(name) cmocka_unit_test_setup_teardown(name, setup_22, rig_teardown)
#define TEST_33(name) cmocka_unit_test_setup_teardown(name, setup_33, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST_22(test_alter_partition),       TEST_22(test_completion_moves_leader),
        TEST_22(test_reassignment),          TEST_22(test_reassignment_shrinks),
        TEST_22(test_reassignment_at_once),  TEST_22(test_elections),
        TEST_22(test_unclean_periodic),      TEST_22(test_balance),
        TEST_22(test_assign_directories),    TEST_22(test_update_features),
        TEST_22(test_elr_needs_metadata),    TEST_33(test_controllers),
        TEST_22(test_controllers_before_33),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
