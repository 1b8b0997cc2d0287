/* cluster_topics_test.c - topics and settings: cases 94-96, 125 and 126 of the log's
 * and T54 and T60 of the controller's. Placement's evenness as a property. */
#include "core/cluster_rig.h"

#include "core/placement.h"
#include "gen/alter_configs_request.h"
#include "gen/alter_configs_response.h"
#include "gen/create_partitions_request.h"
#include "gen/create_partitions_response.h"
#include "gen/delete_topics_request.h"
#include "gen/delete_topics_response.h"
#include "gen/incremental_alter_configs_request.h"
#include "gen/incremental_alter_configs_response.h"

static int setup(void **state)
{
    (void)rig_setup_33(state);
    rig_up(*state, 1);
    return 0;
}

static int setup_three(void **state)
{
    (void)setup(state);
    rig_up(*state, 2);
    rig_up(*state, 3);
    return 0;
}

/* ---- CreateTopics ---------------------------------------------------------------------------- */

static void topic_of(struct create_topics_request_creatable_topic *topic,
                     const char *name,
                     int32_t partitions,
                     int16_t factor)
{
    wire_struct_defaults(&wire_create_topics_request_creatable_topic_shape, topic);
    topic->name = view_of_string(name);
    topic->num_partitions = partitions;
    topic->replication_factor = factor;
}

static struct create_topics_response create(struct cluster_rig *rig,
                                            struct create_topics_request_creatable_topic *topics,
                                            int32_t count,
                                            bool validate_only)
{
    struct create_topics_request in;
    struct create_topics_response out;
    wire_defaults(&wire_create_topics_request, &in);
    in.topics.items = topics;
    in.topics.count = count;
    in.validate_only = validate_only;
    assert_int_equal(cluster_create_topics(rig->cluster, rig_step(rig), &in, &out), STEP_DONE);
    rig_append(rig);
    return out;
}

static int16_t create_one(struct cluster_rig *rig,
                          const char *name,
                          int32_t partitions,
                          int16_t factor)
{
    struct create_topics_request_creatable_topic topic;
    topic_of(&topic, name, partitions, factor);
    return create(rig, &topic, 1, false).topics.items[0].error_code;
}

static int16_t create_with(struct cluster_rig *rig, const char *name, const char *value)
{
    struct create_topics_request_creatable_topic_config config = {.name = view_of_string(name),
                                                                  .value = view_of_string(value)};
    struct create_topics_request_creatable_topic topic;
    topic_of(&topic, "configured", 1, 1);
    topic.configs.items = &config;
    topic.configs.count = 1;
    return create(rig, &topic, 1, true).topics.items[0].error_code;
}

/* Case 94. */
static void test_create(void **state)
{
    struct cluster_rig *rig = *state;
    assert_int_equal(create_one(rig, "a.b", 2, 1), KAFKA_NONE);
    assert_string_equal(rig->text, "topic a.b; partition 0 replicas=[1] isr=[1] leader=1; "
                                   "partition 1 replicas=[1] isr=[1] leader=1");
    assert_string_equal(rig_state(rig, "a.b", 1), "L=1/0 isr=[1] pe=0");
    assert_int_equal(create_one(rig, "a_b", 1, 1), KAFKA_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(create_one(rig, "a.b", 1, 1), KAFKA_TOPIC_ALREADY_EXISTS);
    assert_int_equal(create_one(rig, "a b", 1, 1), KAFKA_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(create_one(rig, "", 1, 1), KAFKA_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(create_one(rig, "..", 1, 1), KAFKA_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(create_one(rig, "__cluster_metadata", 1, 1), KAFKA_INVALID_REQUEST);
    assert_int_equal(create_one(rig, "x", 1, 2), KAFKA_INVALID_REPLICATION_FACTOR);
    assert_int_equal(create_one(rig, "x", 1, 0), KAFKA_INVALID_REPLICATION_FACTOR);
    assert_int_equal(create_one(rig, "x", 1, -2), KAFKA_INVALID_REPLICATION_FACTOR);
    assert_int_equal(create_one(rig, "x", 0, 1), KAFKA_INVALID_PARTITIONS);
    assert_int_equal(create_one(rig, "x", -1, -1), KAFKA_NONE); /* num.partitions is 1. */
    assert_int_equal(create_with(rig, "retention.ms", "x"), KAFKA_INVALID_CONFIG);
    assert_int_equal(create_with(rig, "retention.ms", NULL), KAFKA_INVALID_CONFIG);
    assert_int_equal(create_with(rig, "no.such", "1"), KAFKA_INVALID_CONFIG);
    assert_int_equal(create_with(rig, "min.compaction.lag.ms", "1"), KAFKA_NONE);
    assert_int_equal(rig->step.record_count, 0); /* It was only to be validated. */

    struct create_topics_request_creatable_topic twice[3];
    topic_of(&twice[0], "same", 1, 1);
    topic_of(&twice[1], "other", 1, 1);
    topic_of(&twice[2], "same", 1, 1);
    struct create_topics_response out = create(rig, twice, 3, false);
    assert_int_equal(out.topics.count, 2);
    assert_int_equal(out.topics.items[0].error_code, KAFKA_INVALID_REQUEST);
    assert_int_equal(out.topics.items[1].error_code, KAFKA_NONE);
}

static void test_create_answer(void **state)
{
    struct cluster_rig *rig = *state;
    struct create_topics_request_creatable_topic_config configs[] = {
        {.name = VIEW("segment.ms"),          .value = VIEW("5000")},
        {.name = VIEW("min.insync.replicas"), .value = VIEW("1")   },
    };
    struct create_topics_request_creatable_topic topic;
    topic_of(&topic, "t", 3, 1);
    topic.configs.items = configs;
    topic.configs.count = 2;
    struct create_topics_response out = create(rig, &topic, 1, false);
    assert_non_null(strstr(rig->text, "topic t; config 2:t segment.ms=5000; config 2:t "
                                      "min.insync.replicas=1; clear elr 't'; partition 0"));
    const struct create_topics_response_creatable_topic_result *result = &out.topics.items[0];
    assert_int_equal(result->num_partitions, 3);
    assert_int_equal(result->replication_factor, 1);
    assert_false(uuid_is_zero(result->topic_id));
    assert_int_equal(result->configs.count, 37);
    for (int32_t i = 0; i < result->configs.count; i++) {
        struct view name = result->configs.items[i].name;
        if (i > 0) assert_true(view_compare(result->configs.items[i - 1].name, name) < 0);
        if (view_is(name, "segment.ms")) {
            assert_true(view_is(result->configs.items[i].value, "5000"));
            assert_int_equal(result->configs.items[i].config_source, CLUSTER_SOURCE_TOPIC);
        }
        if (view_is(name, "retention.ms")) {
            assert_true(view_is(result->configs.items[i].value, "604800000"));
            assert_int_equal(result->configs.items[i].config_source, CLUSTER_SOURCE_DEFAULT);
        }
    }
    rig->version = 4;
    topic_of(&topic, "old", 1, 1);
    out = create(rig, &topic, 1, false);
    assert_int_equal(out.topics.items[0].configs.count, 0);
}

/* Case 125. */
static void test_create_limits(void **state)
{
    struct cluster_rig *rig = *state;
    struct create_topics_request_creatable_topic topics[2];
    topic_of(&topics[0], "one", 6000, 1);
    topic_of(&topics[1], "two", 6000, 1);
    struct create_topics_response out = create(rig, topics, 2, false);
    assert_int_equal(out.topics.items[0].error_code, KAFKA_POLICY_VIOLATION);
    assert_int_equal(out.topics.items[1].error_code, KAFKA_POLICY_VIOLATION);
    topic_of(&topics[0], "one", 9998, 1);
    out = create(rig, topics, 1, true);
    assert_int_equal(out.topics.items[0].error_code, KAFKA_NONE);
}

static int16_t create_assigned(struct cluster_rig *rig,
                               const int32_t *indexes,
                               const int32_t *brokers,
                               int32_t count)
{
    struct create_topics_request_creatable_replica_assignment assignments[4] = {0};
    for (int32_t i = 0; i < count; i++) {
        assignments[i].partition_index = indexes[i];
        assignments[i].broker_ids.items = (int32_t *)(uintptr_t)&brokers[i];
        assignments[i].broker_ids.count = brokers[i] == 0 ? 0 : 1;
    }
    struct create_topics_request_creatable_topic topic;
    topic_of(&topic, "assigned", -1, -1);
    topic.assignments.items = assignments;
    topic.assignments.count = count;
    return create(rig, &topic, 1, true).topics.items[0].error_code;
}

static void test_create_assigned(void **state)
{
    struct cluster_rig *rig = *state;
    assert_int_equal(create_assigned(rig, (const int32_t[]){0, 1}, (const int32_t[]){1, 2}, 2),
                     KAFKA_NONE);
    assert_int_equal(create_assigned(rig, (const int32_t[]){0, 0}, (const int32_t[]){1, 2}, 2),
                     KAFKA_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(create_assigned(rig, (const int32_t[]){0, 2}, (const int32_t[]){1, 2}, 2),
                     KAFKA_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(create_assigned(rig, (const int32_t[]){0}, (const int32_t[]){9}, 1),
                     KAFKA_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(create_assigned(rig, (const int32_t[]){0}, (const int32_t[]){0}, 1),
                     KAFKA_INVALID_REPLICA_ASSIGNMENT);
    BEAT(rig, 3, INT64_MAX, .want_fence = true);
    assert_int_equal(create_assigned(rig, (const int32_t[]){0}, (const int32_t[]){3}, 1),
                     KAFKA_INVALID_REPLICA_ASSIGNMENT);

    /* Case 95. */
    int32_t broker = 1;
    struct create_topics_request_creatable_replica_assignment assignment = {
        .broker_ids = {&broker, 1}
    };
    struct create_topics_request_creatable_topic topic;
    topic_of(&topic, "both", 1, -1);
    topic.assignments.items = &assignment;
    topic.assignments.count = 1;
    assert_int_equal(create(rig, &topic, 1, false).topics.items[0].error_code,
                     KAFKA_INVALID_REQUEST);
}

/* T54 and case 126: a broker whose directories are all cordoned takes nothing new. */
static void test_create_cordoned(void **state)
{
    struct cluster_rig *rig = *state;
    struct uuid both[] = {rig_uuid(1), rig_uuid(11)};
    BEAT(rig, 1, INT64_MAX, .cordoned = both, .cordoned_count = 1);
    assert_int_equal(create_one(rig, "three", 1, 3), KAFKA_NONE);
    BEAT(rig, 1, INT64_MAX, .cordoned = both, .cordoned_count = 2);
    assert_int_equal(create_one(rig, "x", 1, 3), KAFKA_INVALID_REPLICATION_FACTOR);
    assert_int_equal(create_one(rig, "x", 8, 2), KAFKA_NONE);
    const struct image_topic *topic = image_topic(cluster_image(rig->cluster), VIEW("x"));
    for (int32_t i = 0; i < 8; i++)
        assert_false(image_ids_have(image_list(image_partition(topic, i), IMAGE_REPLICAS), 1));
    assert_int_equal(create_assigned(rig, (const int32_t[]){0}, (const int32_t[]){1}, 1),
                     KAFKA_INVALID_REPLICA_ASSIGNMENT);
}

static bool deny_all(void *context, int8_t operation, int8_t type, struct view name)
{
    return type == 2 && operation == 8 && view_is(name, context); /* May describe one topic. */
}

static void test_authorization(void **state)
{
    struct cluster_rig *rig = *state;
    assert_int_equal(create_one(rig, "seen", 1, 1), KAFKA_NONE);
    assert_int_equal(create_one(rig, "hidden", 1, 1), KAFKA_NONE);
    struct create_topics_request_creatable_topic topic;
    topic_of(&topic, "t", 1, 1);
    struct create_topics_request in;
    struct create_topics_response out;
    wire_defaults(&wire_create_topics_request, &in);
    in.topics.items = &topic;
    in.topics.count = 1;
    struct step *step = rig_step(rig);
    step->caller.allows = deny_all;
    step->caller.allows_context = (void *)(uintptr_t) "seen";
    assert_int_equal(cluster_create_topics(rig->cluster, step, &in, &out), STEP_DONE);
    assert_int_equal(out.topics.items[0].error_code, KAFKA_TOPIC_AUTHORIZATION_FAILED);

    struct delete_topics_request_delete_topic_state topics[2] = {
        {.name = VIEW_NULL, .topic_id = image_topic(cluster_image(rig->cluster), VIEW("seen"))->id  },
        {.name = VIEW_NULL,
         .topic_id = image_topic(cluster_image(rig->cluster),                    VIEW("hidden"))->id},
    };
    struct delete_topics_request deletes = {
        .timeout_ms = 10000, .topics = {topics, 2}
    };
    struct delete_topics_response deleted;
    step = rig_step(rig);
    step->caller.allows = deny_all;
    step->caller.allows_context = (void *)(uintptr_t) "seen";
    assert_int_equal(cluster_delete_topics(rig->cluster, step, &deletes, &deleted), STEP_DONE);
    assert_int_equal(deleted.responses.items[0].error_code, KAFKA_TOPIC_AUTHORIZATION_FAILED);
    assert_true(view_is(deleted.responses.items[0].name, "seen"));
    assert_int_equal(deleted.responses.items[1].error_code, KAFKA_TOPIC_AUTHORIZATION_FAILED);
    assert_true(deleted.responses.items[1].name.null);
    assert_int_equal(step->record_count, 0);
}

/* ---- DeleteTopics ---------------------------------------------------------------------------- */

static struct delete_topics_response delete (
    struct cluster_rig *rig,
    struct delete_topics_request_delete_topic_state *topics,
    int32_t count)
{
    struct delete_topics_request in = {
        .timeout_ms = 10000, .topics = {topics, count}
    };
    struct delete_topics_response out;
    assert_int_equal(cluster_delete_topics(rig->cluster, rig_step(rig), &in, &out), STEP_DONE);
    rig_append(rig);
    return out;
}

/* Case 96. */
static void test_delete(void **state)
{
    struct cluster_rig *rig = *state;
    assert_int_equal(create_one(rig, "one", 1, 1), KAFKA_NONE);
    assert_int_equal(create_one(rig, "two", 1, 1), KAFKA_NONE);
    struct uuid one = image_topic(cluster_image(rig->cluster), VIEW("one"))->id;
    struct delete_topics_request_delete_topic_state topics[6] = {0};
    topics[0].name = VIEW_NULL;
    topics[0].topic_id = rig_uuid(77);
    topics[1].name = VIEW("none");
    topics[2].name = VIEW_NULL;
    topics[2].topic_id = one;
    topics[3].name = VIEW("one"); /* The same topic twice: not deleted. */
    topics[4].name = VIEW_NULL;
    topics[5].name = VIEW("two");
    topics[5].topic_id = rig_uuid(78);
    struct delete_topics_response out = delete (rig, topics, ARRAY_SIZE(topics));
    static const int16_t errors[] = {
        KAFKA_UNKNOWN_TOPIC_ID, KAFKA_UNKNOWN_TOPIC_OR_PARTITION,
        KAFKA_INVALID_REQUEST,  KAFKA_INVALID_REQUEST,
        KAFKA_INVALID_REQUEST,
    };
    assert_int_equal(out.responses.count, 5);
    for (int32_t i = 0; i < out.responses.count; i++)
        assert_int_equal(out.responses.items[i].error_code, errors[i]);
    assert_int_equal(rig->step.record_count, 0);

    out = delete (rig, &topics[2], 1);
    assert_int_equal(out.responses.items[0].error_code, KAFKA_NONE);
    assert_true(view_is(out.responses.items[0].name, "one"));
    assert_string_equal(rig->text, "RemoveTopicRecord");
    assert_null(image_topic(cluster_image(rig->cluster), VIEW("one")));

    rig->version = 5;
    struct view name = VIEW("two");
    struct delete_topics_request in = {
        .timeout_ms = 10000, .topic_names = {&name, 1}
    };
    assert_int_equal(cluster_delete_topics(rig->cluster, rig_step(rig), &in, &out), STEP_DONE);
    assert_int_equal(out.responses.items[0].error_code, KAFKA_NONE);
    rig_append(rig);
}

/* ---- CreatePartitions ------------------------------------------------------------------------ */

static int16_t grow(struct cluster_rig *rig, const char *name, int32_t count, int32_t broker)
{
    struct create_partitions_request_create_partitions_assignment assignment = {
        .broker_ids = {&broker, 1}
    };
    struct create_partitions_request_create_partitions_topic topic = {
        .name = view_of_string(name), .count = count, .assignments = {NULL, -1}
    };
    if (broker > 0) {
        topic.assignments.items = &assignment;
        topic.assignments.count = 1;
    }
    struct create_partitions_request in = {
        .timeout_ms = 10000, .topics = {&topic, 1}
    };
    struct create_partitions_response out;
    assert_int_equal(cluster_create_partitions(rig->cluster, rig_step(rig), &in, &out), STEP_DONE);
    int16_t error = out.results.items[0].error_code;
    rig_append(rig);
    return error;
}

static void test_create_partitions(void **state)
{
    struct cluster_rig *rig = *state;
    assert_int_equal(grow(rig, "t", 3, 0), KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(create_one(rig, "t", 2, 1), KAFKA_NONE);
    assert_int_equal(grow(rig, "t", 2, 0), KAFKA_INVALID_PARTITIONS);
    assert_int_equal(grow(rig, "t", 1, 0), KAFKA_INVALID_PARTITIONS);
    assert_int_equal(grow(rig, "t", 4, 1), KAFKA_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(grow(rig, "t", 3, 9), KAFKA_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(grow(rig, "t", 3, 2), KAFKA_NONE);
    assert_string_equal(rig->text, "partition 2 replicas=[2] isr=[2] leader=2");
    assert_int_equal(grow(rig, "t", 5, 0), KAFKA_NONE);
    assert_int_equal(image_topic(cluster_image(rig->cluster), VIEW("t"))->partition_count, 5);
    for (int32_t id = 1; id <= 3; id++)
        BEAT(rig, id, INT64_MAX, .want_fence = true);
    assert_int_equal(grow(rig, "t", 6, 0), KAFKA_INVALID_REPLICATION_FACTOR);
}

/* ---- settings -------------------------------------------------------------------------------- */

enum op { SET, DELETE, APPEND, SUBTRACT };

static int16_t alter(struct cluster_rig *rig,
                     int8_t type,
                     const char *resource,
                     const char *name,
                     enum op op,
                     const char *value)
{
    struct incremental_alter_configs_request_alterable_config config = {
        .name = view_of_string(name),
        .config_operation = (int8_t)op,
        .value = view_of_string(value),
    };
    struct incremental_alter_configs_request_alter_configs_resource item = {
        .resource_type = type,
        .resource_name = view_of_string(resource),
        .configs = {&config, 1},
    };
    struct incremental_alter_configs_request in = {
        .resources = {&item, 1}
    };
    struct incremental_alter_configs_response out;
    assert_int_equal(cluster_incremental_alter_configs(rig->cluster, rig_step(rig), &in, &out),
                     STEP_DONE);
    int16_t error = out.responses.items[0].error_code;
    rig_append(rig);
    return error;
}

static void test_alter_topic(void **state)
{
    struct cluster_rig *rig = *state;
    assert_int_equal(alter(rig, 2, "t", "retention.ms", SET, "5"),
                     KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(alter(rig, 2, "", "retention.ms", SET, "5"), KAFKA_INVALID_REQUEST);
    assert_int_equal(create_one(rig, "t", 1, 1), KAFKA_NONE);
    assert_int_equal(alter(rig, 2, "t", "retention.ms", SET, "5"), KAFKA_NONE);
    assert_string_equal(rig->text, "config 2:t retention.ms=5");
    assert_int_equal(alter(rig, 2, "t", "retention.ms", SET, "5"), KAFKA_NONE);
    assert_string_equal(rig->text, ""); /* The same: nothing to write. */
    assert_int_equal(alter(rig, 2, "t", "retention.ms", SET, "x"), KAFKA_INVALID_CONFIG);
    assert_int_equal(alter(rig, 2, "t", "retention.ms", SET, NULL), KAFKA_INVALID_REQUEST);
    assert_int_equal(alter(rig, 2, "t", "no.such", SET, "5"), KAFKA_INVALID_CONFIG);
    assert_int_equal(alter(rig, 2, "t", "retention.ms", APPEND, "5"), KAFKA_INVALID_CONFIG);
    assert_int_equal(alter(rig, 2, "t", "retention.ms", (enum op)7, "5"), KAFKA_INVALID_REQUEST);
    assert_int_equal(alter(rig, 2, "t", "cleanup.policy", APPEND, "compact"), KAFKA_NONE);
    assert_string_equal(rig->text, "config 2:t cleanup.policy=delete,compact");
    assert_int_equal(alter(rig, 2, "t", "cleanup.policy", APPEND, "compact"), KAFKA_NONE);
    assert_string_equal(rig->text, "");
    assert_int_equal(alter(rig, 2, "t", "cleanup.policy", SUBTRACT, "delete"), KAFKA_NONE);
    assert_string_equal(rig->text, "config 2:t cleanup.policy=compact");
    assert_int_equal(alter(rig, 2, "t", "max.compaction.lag.ms", SET, "5"), KAFKA_NONE);
    assert_int_equal(alter(rig, 2, "t", "min.compaction.lag.ms", SET, "6"), KAFKA_INVALID_CONFIG);
    assert_int_equal(alter(rig, 2, "t", "max.compaction.lag.ms", DELETE, NULL), KAFKA_NONE);
    assert_string_equal(rig->text, "config 2:t max.compaction.lag.ms=null");
    assert_int_equal(alter(rig, 2, "t", "max.compaction.lag.ms", DELETE, NULL), KAFKA_NONE);
    assert_string_equal(rig->text, "");
}

/* T60, and what else is ruled about brokers. */
static void test_alter_broker(void **state)
{
    struct cluster_rig *rig = *state;
    assert_int_equal(create_one(rig, "t", 1, 1), KAFKA_NONE);
    assert_int_equal(alter(rig, 2, "t", "min.insync.replicas", SET, "1"), KAFKA_NONE);
    assert_string_equal(rig->text, "config 2:t min.insync.replicas=1; clear elr 't'");
    assert_int_equal(alter(rig, 4, "", "min.insync.replicas", SET, "1"), KAFKA_NONE);
    assert_string_equal(rig->text, "config 4: min.insync.replicas=1; clear elr ''");
    assert_int_equal(alter(rig, 4, "1", "min.insync.replicas", SET, "1"), KAFKA_INVALID_CONFIG);
    assert_int_equal(alter(rig, 4, "", "min.insync.replicas", DELETE, NULL), KAFKA_INVALID_CONFIG);

    assert_int_equal(alter(rig, 4, "9", "log.retention.ms", SET, "1"),
                     KAFKA_BROKER_ID_NOT_REGISTERED);
    assert_int_equal(alter(rig, 4, "x", "log.retention.ms", SET, "1"), KAFKA_INVALID_REQUEST);
    assert_int_equal(alter(rig, 4, "1", "log.retention.ms", SET, "7000"), KAFKA_NONE);
    assert_int_equal(alter(rig, 4, "1", "log.retention.ms", SET, "7000"), KAFKA_NONE);
    assert_string_equal(rig->text, "config 4:1 log.retention.ms=7000"); /* Always written. */
    assert_int_equal(alter(rig, 4, "1", "num.partitions", SET, "7"), KAFKA_INVALID_REQUEST);
    assert_int_equal(alter(rig, 4, "", "ssl.keystore.location", SET, "f"), KAFKA_INVALID_REQUEST);
    assert_int_equal(alter(rig, 4, "1", "listener.name.x.ssl.keystore.location", SET, "f"),
                     KAFKA_NONE);
    assert_int_equal(alter(rig, 4, "1", "log.retention.ms", SET, "x"), KAFKA_INVALID_REQUEST);
    assert_int_equal(alter(rig, 8, "1", "root", SET, "INFO"), KAFKA_INVALID_REQUEST);
    assert_int_equal(alter(rig, 32, "g", "consumer.session.timeout.ms", SET, "50000"), KAFKA_NONE);
    assert_int_equal(alter(rig, 32, "g", "no.such", SET, "1"), KAFKA_INVALID_CONFIG);
    assert_int_equal(alter(rig, 32, "", "consumer.session.timeout.ms", SET, "1"),
                     KAFKA_INVALID_REQUEST);
    assert_int_equal(alter(rig, 16, "m", "interval.ms", SET, "1000"), KAFKA_NONE);

    /* What holds for a topic: its own, then the node's, then the cluster's, then the default. */
    struct cluster_config_context context = {.image = cluster_image(rig->cluster), .node_id = 1};
    const struct config_def *def = config_find(CONFIG_TOPIC, VIEW("retention.ms"));
    struct cluster_config_value value = cluster_config_value(&context, VIEW("t"), def);
    assert_true(view_is(value.value, "7000"));
    assert_int_equal(value.source, CLUSTER_SOURCE_BROKER);
    assert_int_equal(alter(rig, 2, "t", "retention.ms", SET, "5"), KAFKA_NONE);
    value = cluster_config_value(&context, VIEW("t"), def);
    assert_int_equal(value.source, CLUSTER_SOURCE_TOPIC);
    context.node_id = 2;
    value = cluster_config_value(&context, VIEW("none"), def);
    assert_int_equal(value.source, CLUSTER_SOURCE_DEFAULT);
}

static void test_alter_cordons(void **state)
{
    struct cluster_rig *rig = *state;
    assert_int_equal(alter(rig, 4, "1", "cordoned.log.dirs", SET, "/a"), KAFKA_INVALID_CONFIG);
    rig->forwarded = true;
    assert_int_equal(alter(rig, 4, "1", "cordoned.log.dirs", SET, "/a,/b"), KAFKA_NONE);
    rig->forwarded = false;
    assert_int_equal(alter(rig, 4, "1", "cordoned.log.dirs", SET, "/a"), KAFKA_NONE);
    assert_int_equal(alter(rig, 4, "1", "cordoned.log.dirs", SET, "/a,/b"), KAFKA_INVALID_CONFIG);
    assert_int_equal(alter(rig, 4, "1", "cordoned.log.dirs", DELETE, NULL), KAFKA_NONE);
}

static struct view static_hours(void *context, struct view name)
{
    if (view_is(name, "log.retention.hours")) return view_of_string(context);
    return VIEW_NULL;
}

static void test_units(void **state)
{
    struct cluster_rig *rig = *state;
    struct cluster_config_context context = {.image = cluster_image(rig->cluster),
                                             .static_config = static_hours,
                                             .static_context = (void *)(uintptr_t) "24"};
    const struct config_def *def = config_find(CONFIG_TOPIC, VIEW("retention.ms"));
    struct cluster_config_value value = cluster_config_value(&context, VIEW("t"), def);
    assert_int_equal(cluster_config_number(&value), 86400000);
    assert_true(view_is(cluster_config_text(&value, &rig->arena), "86400000"));
    assert_int_equal(value.source, CLUSTER_SOURCE_STATIC);
    context.static_context = (void *)(uintptr_t) "-1";
    value = cluster_config_value(&context, VIEW("t"), def);
    assert_int_equal(cluster_config_number(&value), -1);
}

static void test_alter_whole_set(void **state)
{
    struct cluster_rig *rig = *state;
    assert_int_equal(create_one(rig, "t", 1, 1), KAFKA_NONE);
    assert_int_equal(alter(rig, 2, "t", "retention.ms", SET, "5"), KAFKA_NONE);
    assert_int_equal(alter(rig, 2, "t", "segment.ms", SET, "6"), KAFKA_NONE);
    struct alter_configs_request_alterable_config configs[] = {
        {.name = VIEW("segment.ms"),     .value = VIEW("6")      },
        {.name = VIEW("cleanup.policy"), .value = VIEW("compact")},
    };
    struct alter_configs_request_alter_configs_resource items[2] = {0};
    items[0].resource_type = items[1].resource_type = 2;
    items[0].resource_name = items[1].resource_name = VIEW("t");
    items[0].configs.items = items[1].configs.items = configs;
    items[0].configs.count = 2;
    items[1].configs.count = 1;
    struct alter_configs_request in = {
        .resources = {items, 2}
    };
    struct alter_configs_response out;
    assert_int_equal(cluster_alter_configs(rig->cluster, rig_step(rig), &in, &out), STEP_DONE);
    assert_int_equal(out.responses.items[0].error_code, KAFKA_INVALID_REQUEST);
    assert_int_equal(out.responses.items[1].error_code, KAFKA_INVALID_REQUEST);
    in.resources.count = 1;
    assert_int_equal(cluster_alter_configs(rig->cluster, rig_step(rig), &in, &out), STEP_DONE);
    assert_int_equal(out.responses.items[0].error_code, KAFKA_NONE);
    rig_append(rig);
    assert_string_equal(rig->text,
                        "config 2:t cleanup.policy=compact; config 2:t retention.ms=null");
}

/* Without memory at any place the step says so: never an answer of success with nothing done. */
static void test_alter_without_memory(void **state)
{
    struct cluster_rig *rig = *state;
    assert_int_equal(create_one(rig, "t", 1, 1), KAFKA_NONE);
    struct alter_configs_request_alterable_config config = {.name = VIEW("segment.ms"),
                                                            .value = VIEW("6")};
    struct alter_configs_request_alter_configs_resource item = {
        .resource_type = 2, .resource_name = VIEW("t"), .configs = {&config, 1}
    };
    struct alter_configs_request in = {
        .resources = {&item, 1}
    };
    struct alter_configs_response out;
    enum step_result result = STEP_E_MEMORY;
    uint32_t refused = 0;
    for (size_t room = 8; result == STEP_E_MEMORY; room += 8) {
        struct step *step = rig_step(rig);
        assert_true(room < 65536);
        step->arena->limit_bytes = step->arena->used_bytes + room;
        result = cluster_alter_configs(rig->cluster, step, &in, &out);
        step->arena->limit_bytes = 0;
        if (result == STEP_E_MEMORY) {
            refused++;
            continue;
        }
        assert_int_equal(out.responses.items[0].error_code, KAFKA_NONE);
        assert_int_equal(step->record_count, 1);
    }
    assert_true(refused > 10);
    assert_int_equal(result, STEP_DONE);
}

/* ---- placement ------------------------------------------------------------------------------- */

/* Over many partitions: no broker twice in one, all racks used, leaders and replicas even. */
static void test_placement(void **state)
{
    struct cluster_rig *rig = *state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct placement_broker brokers[9];
        for (int32_t i = 0; i < 9; i++)
            brokers[i] = (struct placement_broker){i, view_of("abc" + i / 3, 1), false};
        struct step *step = rig_step(rig);
        step->random[0] = seed;
        struct placement *placement;
        assert_int_equal(placement_new(step, brokers, 9, 3, &placement), PLACEMENT_OK);
        uint32_t leads[9] = {0};
        uint32_t holds[9] = {0};
        for (uint32_t i = 0; i < 90; i++) {
            int32_t replicas[3];
            placement_next(placement, replicas);
            leads[replicas[0]]++;
            uint32_t racks = 0;
            for (uint32_t j = 0; j < 3; j++) {
                holds[replicas[j]]++;
                racks |= 1u << (replicas[j] / 3);
            }
            assert_int_equal(racks, 7); /* Each replica in a rack of its own. */
        }
        for (uint32_t i = 0; i < 9; i++) {
            assert_int_equal(leads[i], 10);
            assert_int_equal(holds[i], 30);
        }
    }
}

static void test_placement_fenced(void **state)
{
    struct cluster_rig *rig = *state;
    struct placement_broker brokers[] = {
        {1, VIEW("a"), true },
        {2, VIEW("a"), false},
        {3, VIEW_NULL, true }
    };
    struct placement *placement;
    struct step *step = rig_step(rig);
    assert_int_equal(placement_new(step, brokers, 3, 4, &placement), PLACEMENT_E_FEW);
    assert_int_equal(placement_new(step, brokers, 3, 0, &placement), PLACEMENT_E_FACTOR);
    assert_int_equal(placement_new(step, brokers, 1, 1, &placement), PLACEMENT_E_FENCED);
    assert_int_equal(placement_new(step, brokers, 3, 3, &placement), PLACEMENT_OK);
    for (uint32_t i = 0; i < 10; i++) {
        int32_t replicas[3];
        placement_next(placement, replicas);
        assert_int_equal(replicas[0], 2);
        assert_int_equal(replicas[0] + replicas[1] + replicas[2], 6);
    }
}

int main(void)
{
#define TEST(name)   cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
#define TEST_3(name) cmocka_unit_test_setup_teardown(name, setup_three, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_create),
        TEST(test_create_answer),
        TEST(test_create_limits),
        TEST_3(test_create_assigned),
        TEST_3(test_create_cordoned),
        TEST(test_authorization),
        TEST(test_delete),
        TEST_3(test_create_partitions),
        TEST(test_alter_topic),
        TEST(test_alter_broker),
        TEST(test_alter_cordons),
        TEST(test_units),
        TEST(test_alter_whole_set),
        TEST(test_alter_without_memory),
        TEST(test_placement),
        TEST(test_placement_fenced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
