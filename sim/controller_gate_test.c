/* controller_gate_test.c - what a controller's listener answers to who may not ask.
 *
 * A controller alone in a simulated world, a broker that is registered and unfenced, and a client
 * that speaks bytes. One right is refused at a time, which proves that it is the one that is asked
 * for; the metadata log ends where it did. Requests and answers are Kafka's JSON, with ' for ". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "broker/controller_inside.h"
#include "gen/broker_heartbeat_response.h"
#include "gen/broker_registration_response.h"
#include "sim/client_caller.h"
#include "sim/cluster.h"
#include "sim/refused.h"
#include "sim/stage.h"

#define ANSWER_US  10000000
#define SESSION_MS 9000

bool auth_is_broker(const struct request *request)
{
    return auth_allows(request, AUTH_CLUSTER_ACTION, AUTH_CLUSTER, VIEW("kafka-cluster"));
}

struct scene {
    struct stage stage;
    long long epoch; /* The broker's; # in requests. */
    char text[2048];
};

/* Ask and wait for the answer, which stays until the next one. */
static const void *ask(struct scene *scene, const char *what, const char *json)
{
    size_t head = strcspn(json, "#");
    if (json[head] == '\0')
        (void)snprintf(scene->text, sizeof(scene->text), "%s", json);
    else
        (void)snprintf(scene->text, sizeof(scene->text), "%.*s%lld%s", (int)head, json,
                       scene->epoch, json + head + 1);
    client_caller_ask(scene->stage.caller, what, scene->text);
    if (!stage_answered(&scene->stage, ANSWER_US)) fail_msg("no answer to %s", what);
    return scene->stage.caller->response;
}

/* The authorizer says no, the answer has this in it, and nothing was written. */
static void refuses(struct scene *scene, const char *what, const char *json, const char *has)
{
    int64_t end = log_end_assigned(scene->stage.cluster.node->controller->log);
    refused.times = 0;
    (void)ask(scene, what, json);
    const char *answer = client_caller_answer(scene->stage.caller);
    if (refused.times == 0) fail_msg("nobody asked about %s", what);
    if (strstr(answer, has) == NULL) fail_msg("%s: %s", what, answer);
    assert_true(log_end_assigned(scene->stage.cluster.node->controller->log) == end);
}

#define REGISTER(id, incarnation)                                                                  \
    "{'brokerId': " id ", 'clusterId': '" CLUSTER_ID "', 'incarnationId': '" incarnation "', "     \
    "'listeners': [{'name': 'PLAINTEXT', 'host': 'there', 'port': 9092, "                          \
    "'securityProtocol': 0}], 'features': ["                                                       \
    "{'name': 'metadata.version', 'minSupportedVersion': 7, 'maxSupportedVersion': 100}, "         \
    "{'name': 'kraft.version', 'minSupportedVersion': 0, 'maxSupportedVersion': 1}, "              \
    "{'name': 'group.version', 'minSupportedVersion': 0, 'maxSupportedVersion': 1}, "              \
    "{'name': 'transaction.version', 'minSupportedVersion': 0, 'maxSupportedVersion': 2}, "        \
    "{'name': 'share.version', 'minSupportedVersion': 0, 'maxSupportedVersion': 2}, "              \
    "{'name': 'streams.version', 'minSupportedVersion': 0, 'maxSupportedVersion': 2}, "            \
    "{'name': 'eligible.leader.replicas.version', 'minSupportedVersion': 0, "                      \
    "'maxSupportedVersion': 1}], 'rack': null, 'logDirs': ['AAAAAAAAAAAAAAAAAAAA" id "A']}"

#define BEAT "{'brokerId': 2, 'brokerEpoch': #, 'currentMetadataOffset': 1000000, 'wantFence': "

static bool beats_unfenced(struct scene *scene)
{
    const struct broker_heartbeat_response *beat =
        ask(scene, "BrokerHeartbeat 1", BEAT "false, 'wantShutDown': false}");
    assert_int_equal(beat->error_code, KAFKA_NONE);
    return !beat->is_fenced;
}

static int scene_new(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    struct sim_options options = {.forbid_blocking = true};
    refuse_nothing();
    cluster_options(&scene->stage.cluster, &options);
    scene->stage.cluster.shape =
        (struct cluster_shape){.shards = 1, .controller = true, .alone = true};
    scene->stage.world = sim_world_new(8, &options);
    cluster_init(&scene->stage.cluster, scene->stage.world, &scene->stage.history);
    struct client_seat seat = {.world = scene->stage.world,
                               .history = &scene->stage.history,
                               .seed = 8,
                               .host = sim_node_host(scene->stage.cluster.machine),
                               .port = CLUSTER_CONTROLLER_PORT};
    scene->stage.caller = client_caller_new(&seat);
    assert_true(cluster_start(&scene->stage.cluster));
    stage_pass(&scene->stage, 1000);
    const struct broker_registration_response *made =
        ask(scene, "BrokerRegistration 4", REGISTER("2", "AAAAAAAAAAAAAAAAAAAABA"));
    if (made->error_code != KAFKA_NONE) fail_msg("%s", client_caller_answer(scene->stage.caller));
    scene->epoch = made->broker_epoch;
    assert_true(beats_unfenced(scene));
    (void)ask(scene, "CreateTopics 7",
              "{'topics': [{'name': 'foo', 'numPartitions': 1, 'replicationFactor': 1}], "
              "'timeoutMs': 5000}");
    assert_non_null(strstr(client_caller_answer(scene->stage.caller), "'errorCode':0"));
    *state = scene;
    return 0;
}

static int scene_end(void **state)
{
    struct scene *scene = *state;
    refuse_nothing();
    client_free(&scene->stage.caller->client);
    sim_world_free(scene->stage.world);
    history_free(&scene->stage.history);
    free(scene);
    return 0;
}

#define TOP "'throttleTimeMs':0,'errorCode':31"

/* CLUSTER_ACTION on the cluster: what brokers and controllers ask. */
static void peers_without_cluster_action(void **state)
{
    struct scene *scene = *state;
    refuse(AUTH_CLUSTER_ACTION, AUTH_CLUSTER, "kafka-cluster");
    refuses(scene, "BrokerRegistration 4", REGISTER("3", "AAAAAAAAAAAAAAAAAAAACA"), TOP);
    refuses(scene, "BrokerHeartbeat 1", BEAT "true, 'wantShutDown': false}",
            "{" TOP ",'isCaughtUp':false,'isFenced':true,'shouldShutDown':false}");
    refuses(scene, "AlterPartition 3", "{'brokerId': 2, 'brokerEpoch': #}", TOP);
    refuses(scene, "AssignReplicasToDirs 0", "{'brokerId': 2, 'brokerEpoch': #}", TOP);
    refuses(scene, "AllocateProducerIds 0", "{'brokerId': 2, 'brokerEpoch': #}", TOP);
    refuses(scene, "ControllerRegistration 0", "{'controllerId': 1}", TOP);
    refuses(scene, "Fetch 17", "{'topics': []}", "'errorCode':31");
    refuses(scene, "FetchSnapshot 1", "{'topics': []}", "'errorCode':31");
    refuses(scene, "Vote 2", "{'topics': []}", "{'errorCode':31");
    refuses(scene, "BeginQuorumEpoch 1", "{'topics': []}", "{'errorCode':31");
    refuses(scene, "EndQuorumEpoch 1", "{'topics': []}", "{'errorCode':31");
    refuses(scene, "Envelope 0",
            "{'requestData': '', 'requestPrincipal': '', 'clientHostAddress': ''}",
            "'errorCode':31");
}

/* ALTER or DESCRIBE on the cluster. */
static void admins_of_the_cluster(void **state)
{
    struct scene *scene = *state;
    refuse(AUTH_ALTER, AUTH_CLUSTER, "kafka-cluster");
    refuses(scene, "UnregisterBroker 0", "{'brokerId': 2}", TOP);
    refuses(scene, "UpdateFeatures 1", "{'featureUpdates': []}", TOP);
    refuses(scene, "ElectLeaders 2", "{'topicPartitions': null}", TOP);
    refuses(scene, "ElectLeaders 0",
            "{'topicPartitions': [{'topic': 'foo', 'partitions': [0]}], 'timeoutMs': 5000}",
            "'errorCode':31");
    refuses(scene, "AlterPartitionReassignments 0", "{'topics': []}", "'errorCode':31");
    refuses(scene, "AlterPartitionReassignments 0",
            "{'topics': [{'name': 'foo', 'partitions': [{'partitionIndex': 3, 'replicas': [1]}]}]}",
            "'partitionIndex':3,'errorCode':31");
    refuse_nothing();
    refuse(AUTH_DESCRIBE, AUTH_CLUSTER, "kafka-cluster");
    refuses(scene, "ListPartitionReassignments 0",
            "{'topics': [{'name': 'foo', 'partitionIndexes': [3]}]}", "'errorCode':31");
    refuses(scene, "ListPartitionReassignments 0",
            "{'topics': [{'name': 'foo', 'partitionIndexes': [3]}]}",
            "'partitions':[{'partitionIndex':3,'replicas':[]");
    refuses(scene, "DescribeQuorum 2", "{'topics': []}", "{'errorCode':31");
}

/* Rights on topics: each item has its error. */
static void admins_of_topics(void **state)
{
    struct scene *scene = *state;
    refuse(AUTH_CREATE, AUTH_CLUSTER, "kafka-cluster");
    refuse(AUTH_CREATE, AUTH_TOPIC, "bar");
    refuses(scene, "CreateTopics 7",
            "{'topics': [{'name': 'bar', 'numPartitions': 1, 'replicationFactor': 1}], "
            "'timeoutMs': 5000}",
            "'errorCode':29");
    refuse_nothing();
    refuse(AUTH_ALTER, AUTH_TOPIC, "foo");
    refuse(AUTH_ALTER_CONFIGS, AUTH_TOPIC, "foo");
    refuse(AUTH_DELETE, AUTH_TOPIC, "foo");
    refuse(AUTH_DELETE, AUTH_CLUSTER, "kafka-cluster");
    refuses(scene, "CreatePartitions 3",
            "{'topics': [{'name': 'foo', 'count': 2, 'assignments': null}], 'timeoutMs': 5000}",
            "'errorCode':29");
    refuses(scene, "IncrementalAlterConfigs 1",
            "{'resources': [{'resourceType': 2, 'resourceName': 'foo', 'configs': ["
            "{'name': 'retention.ms', 'configOperation': 0, 'value': '1'}]}]}",
            "'errorCode':29");
    refuses(scene, "DeleteTopics 6", "{'topics': [{'name': 'foo'}], 'timeoutMs': 5000}",
            "'errorCode':29");
    refuse_nothing();
    refuse(AUTH_DELETE, AUTH_TOPIC, "foo");
    (void)ask(scene, "DeleteTopics 6", "{'topics': [{'name': 'foo'}], 'timeoutMs': 5000}");
    assert_non_null(strstr(client_caller_answer(scene->stage.caller), "'errorCode':0"));
}

/* Heartbeats keep a broker alive, refused ones do not: it is fenced at its session's end. */
static void refused_heartbeats_keep_nobody(void **state)
{
    struct scene *scene = *state;
    for (int i = 0; i < 8; i++) {
        stage_pass(&scene->stage, SESSION_MS / 4);
        assert_true(beats_unfenced(scene));
    }
    refuse(AUTH_CLUSTER_ACTION, AUTH_CLUSTER, "kafka-cluster");
    int64_t end = log_end_assigned(scene->stage.cluster.node->controller->log);
    for (int i = 0; i < 8; i++) {
        stage_pass(&scene->stage, SESSION_MS / 4);
        (void)ask(scene, "BrokerHeartbeat 1", BEAT "false, 'wantShutDown': false}");
    }
    assert_true(image_broker(scene->stage.cluster.node->image, 2)->fenced);
    assert_true(log_end_assigned(scene->stage.cluster.node->controller->log) > end);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_new, scene_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(peers_without_cluster_action),
        TEST(admins_of_the_cluster),
        TEST(admins_of_topics),
        TEST(refused_heartbeats_keep_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
