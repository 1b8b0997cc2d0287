/* group_gate_test.c - what group requests answer before a group is looked at: who may not ask
 * (cases T6 and T177, row A1), and a coordinator that does not serve (T3, A2).
 *
 * A whole node in a simulated world, and a client that speaks bytes to it. The program has an
 * authorizer of its own: the linker takes auth_allows() of refused.h and auth_is_broker() below
 * instead of those of src/broker/auth.c. It refuses the rights that a test lists, one by one, so
 * each refusal proves which right is asked for; behind each, the groups and their partitions' logs
 * are as before.
 *
 * Requests and answers are Kafka's JSON, with ' for ". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "broker/broker.h"
#include "broker/coordinator.h"
#include "gen/consumer_group_heartbeat_response.h"
#include "gen/find_coordinator_response.h"
#include "sim/client_caller.h"
#include "sim/cluster.h"
#include "sim/refused.h"
#include "sim/stage.h"
#include "sys/memory.h"
#include "text/out.h"

#define ANSWER_US 10000000

/* ---- the authorizer -------------------------------------------------------------------------- */

bool auth_is_broker(const struct request *request)
{
    (void)request;
    return false;
}

/* ---- a node, and a client that asks ---------------------------------------------------------- */

struct scene {
    struct stage stage;
    struct mem mem;
    struct out before; /* What was known of the groups in the beginning. */
    char text[4096];
    char member[64]; /* The member of the group "classic"; $ in requests and answers. */
    char bar[64];    /* The topic's id; # in them. */
};

/* `text` with the ids for $ and #. Stays until the next call. */
static const char *filled(struct scene *scene, const char *text)
{
    size_t used = 0;
    for (; *text != '\0'; text++) {
        char one[2] = {*text, '\0'};
        const char *what = *text == '$' ? scene->member : *text == '#' ? scene->bar : one;
        int n = snprintf(scene->text + used, sizeof(scene->text) - used, "%s", what);
        used += (size_t)n;
        assert_true(used < sizeof(scene->text));
    }
    return scene->text;
}

/* Ask and wait for the answer, which stays until the next one. */
static const void *ask(struct scene *scene, const char *what, const char *json)
{
    client_caller_ask(scene->stage.caller, what, filled(scene, json));
    if (!stage_answered(&scene->stage, ANSWER_US)) fail_msg("no answer to %s", json);
    return scene->stage.caller->response;
}

static void answers(struct scene *scene, const char *what, const char *json, const char *answer)
{
    (void)ask(scene, what, json);
    assert_string_equal(client_caller_answer(scene->stage.caller), filled(scene, answer));
}

/* The same, and the authorizer said no. */
static void refuses(struct scene *scene, const char *what, const char *json, const char *answer)
{
    refused.times = 0;
    answers(scene, what, json, answer);
    if (refused.times == 0) fail_msg("nobody asked about %s %s", what, json);
}

static void look(struct scene *scene, struct out *out, const char *what, const char *json)
{
    (void)ask(scene, what, json);
    out_text(out, client_caller_answer(scene->stage.caller));
    out_char(out, '\n');
}

/* All that is known of the groups, and where the log of their records ends. */
static void look_all(struct scene *scene, struct out *out)
{
    out_init(out, &scene->mem);
    look(scene, out, "DescribeGroups 6", "{'groups': ['classic', 'simple', 'fresh']}");
    look(scene, out, "ConsumerGroupDescribe 1", "{'groupIds': ['modern', 'fresh']}");
    look(scene, out, "ListGroups 5", "{}");
    look(scene, out, "OffsetFetch 8",
         "{'groups': [{'groupId': 'classic', 'topics': null}, "
         "{'groupId': 'simple', 'topics': null}]}");
    look(scene, out, "ListOffsets 7",
         "{'replicaId': -1, 'topics': [{'name': '__consumer_offsets', 'partitions': ["
         "{'partitionIndex': 0, 'timestamp': -1}, {'partitionIndex': 1, 'timestamp': -1}, "
         "{'partitionIndex': 2, 'timestamp': -1}]}]}");
    out_char(out, '\0');
    assert_false(out->failed);
}

/* Everything is allowed again, and as it was in the beginning. */
static void unchanged(struct scene *scene)
{
    struct out after;
    refuse_nothing();
    look_all(scene, &after);
    assert_string_equal(after.text, scene->before.text);
    out_free(&after);
}

/* ---- the groups ------------------------------------------------------------------------------ */

#define JOIN_CLASSIC                                                                               \
    "{'groupId': 'classic', 'sessionTimeoutMs': 60000, 'rebalanceTimeoutMs': 60000, "              \
    "'memberId': '', 'protocolType': 'consumer', "                                                 \
    "'protocols': [{'name': 'range', 'metadata': ''}]}"

#define COMMITTED(foo, bar)                                                                        \
    "{'throttleTimeMs':0,'topics':["                                                               \
    "{'name':'foo','partitions':[{'partitionIndex':0,'errorCode':" foo "}]},"                      \
    "{'name':'bar','partitions':[{'partitionIndex':0,'errorCode':" bar "}]}]}"

#define BEAT "{'groupId': 'classic', 'generationId': 1, 'memberId': '$'}"

#define MODERN_JOIN(group, member)                                                                 \
    "{'groupId': '" group "', 'memberId': '" member                                                \
    "', 'memberEpoch': 0, 'rebalanceTimeoutMs': 60000, "                                           \
    "'subscribedTopicNames': ['foo', 'bar'], 'topicPartitions': []}"

#define MODERN_REFUSED(error)                                                                      \
    "{'throttleTimeMs':0,'errorCode':" error                                                       \
    ",'errorMessage':null,'memberId':null,'memberEpoch':0,"                                        \
    "'heartbeatIntervalMs':0,'assignment':null}"

#define MODERN_NOTHING                                                                             \
    "'groupId':'modern','groupState':'','groupEpoch':0,'assignmentEpoch':0,'assignorName':'',"     \
    "'members':[],'authorizedOperations':-2147483648"

#define FETCHED(topic, offset, error)                                                              \
    "{'name':'" topic "','partitions':[{'partitionIndex':0,'committedOffset':" offset ","          \
    "'committedLeaderEpoch':-1,'metadata':'','errorCode':" error "}]}"
#define FOO       FETCHED("foo", "5", "0")
#define FOO_LATER FETCHED("foo", "6", "0")
#define BAR       FETCHED("bar", "7", "0")
#define NO_BAR    FETCHED("bar", "-1", "29")

#define NO_RIGHT "'errorCode':30,'errorMessage':'The principal may not do this with the group.'"

#define UNDESCRIBED(group)                                                                         \
    "{'errorCode':30,'errorMessage':null,'groupId':'" group "','groupState':'',"                   \
    "'protocolType':'','protocolData':'','members':[],'authorizedOperations':-2147483648}"

#define COMMIT                                                                                     \
    "'topics': [{'name': 'foo', 'partitions': [{'partitionIndex': 0, 'committedOffset': 5}]}, "    \
    "{'name': 'bar', 'partitions': [{'partitionIndex': 0, 'committedOffset': 7}]}]}"

/* The text behind the first `before` in the last answer, up to the next '. */
static void scene_learn(struct scene *scene, const char *before, char *out, size_t room)
{
    const char *at = strstr(client_caller_answer(scene->stage.caller), before);
    assert_non_null(at);
    at += strlen(before);
    (void)snprintf(out, room, "%.*s", (int)strcspn(at, "'"), at);
}

static void scene_topics(struct scene *scene)
{
    const struct find_coordinator_response *found;
    (void)ask(scene, "CreateTopics 7",
              "{'topics': [{'name': 'foo', 'numPartitions': 1, 'replicationFactor': 1}, "
              "{'name': 'bar', 'numPartitions': 1, 'replicationFactor': 1}], 'timeoutMs': 5000}");
    scene_learn(scene, "'name':'bar','topicId':'", scene->bar, sizeof(scene->bar));
    for (int tries = 0; tries < 100; tries++) {
        found = ask(scene, "FindCoordinator 3", "{'key': 'classic', 'keyType': 0}");
        if (found->error_code == KAFKA_NONE) break;
        stage_pass(&scene->stage, 100);
    }
    assert_int_equal(found->error_code, KAFKA_NONE);
    stage_pass(&scene->stage, 1000); /* Its partitions are loaded. */
}

/* The group "classic" has one member, which has committed offsets of foo and bar. */
static void scene_classic(struct scene *scene)
{
    (void)ask(scene, "JoinGroup 3", JOIN_CLASSIC);
    scene_learn(scene, "'memberId':'", scene->member, sizeof(scene->member));
    answers(scene, "SyncGroup 3",
            "{'groupId': 'classic', 'generationId': 1, 'memberId': '$', "
            "'assignments': [{'memberId': '$', 'assignment': ''}]}",
            "{'throttleTimeMs':0,'errorCode':0,'assignment':''}");
    answers(scene, "OffsetCommit 8",
            "{'groupId': 'classic', 'generationIdOrMemberEpoch': 1, 'memberId': '$', " COMMIT,
            COMMITTED("0", "0"));
}

/* The group "simple" has nothing but offsets; "modern" has a member that wants foo and bar. */
static void scene_others(struct scene *scene)
{
    answers(scene, "OffsetCommit 8", "{'groupId': 'simple', " COMMIT, COMMITTED("0", "0"));
    const struct consumer_group_heartbeat_response *beat = ask(
        scene, "ConsumerGroupHeartbeat 1",
        "{'groupId': 'modern', 'memberId': 'm1', 'memberEpoch': 0, 'rebalanceTimeoutMs': 60000, "
        "'subscribedTopicNames': ['foo', 'bar'], 'topicPartitions': []}");
    assert_int_equal(beat->error_code, KAFKA_NONE);
}

static struct scene *scene_new(uint32_t shards)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    struct sim_options options = {.forbid_blocking = true};
    refuse_nothing();
    memory_init(&scene->mem, 0);
    cluster_options(&scene->stage.cluster, &options);
    scene->stage.cluster.shape.shards = shards;
    cluster_set(&scene->stage.cluster, "offsets.topic.num.partitions", 3);
    cluster_set(&scene->stage.cluster, "offsets.topic.replication.factor", 1);
    cluster_set(&scene->stage.cluster, "group.initial.rebalance.delay.ms", 0);
    scene->stage.world = sim_world_new(7, &options);
    cluster_init(&scene->stage.cluster, scene->stage.world, &scene->stage.history);
    struct client_seat seat = {.world = scene->stage.world,
                               .history = &scene->stage.history,
                               .seed = 7,
                               .host = sim_node_host(scene->stage.cluster.machine)};
    scene->stage.caller = client_caller_new(&seat);
    assert_true(cluster_start(&scene->stage.cluster));
    scene_topics(scene);
    scene_classic(scene);
    scene_others(scene);
    look_all(scene, &scene->before);
    return scene;
}

static void scene_free(struct scene *scene)
{
    refuse_nothing();
    out_free(&scene->before);
    client_free(&scene->stage.caller->client);
    sim_world_free(scene->stage.world);
    history_free(&scene->stage.history);
    free(scene);
}

/* ---- the tests ------------------------------------------------------------------------------- */

/* Each test is told with one shard, and with groups that are on another shard than the client. */
static int one_shard(void **state)
{
    *state = scene_new(1);
    return 0;
}

static int three_shards(void **state)
{
    *state = scene_new(3);
    return 0;
}

static int scene_end(void **state)
{
    scene_free(*state);
    return 0;
}

/* READ on the group: T6. */
static void members_without_read(void **state)
{
    struct scene *scene = *state;
    refuse(AUTH_READ, AUTH_GROUP, "classic");
    refuses(scene, "JoinGroup 3", JOIN_CLASSIC,
            "{'throttleTimeMs':0,'errorCode':30,'generationId':-1,'protocolName':'','leader':'',"
            "'memberId':'','members':[]}");
    refuses(scene, "JoinGroup 9", JOIN_CLASSIC,
            "{'throttleTimeMs':0,'errorCode':30,'generationId':-1,'protocolType':null,"
            "'protocolName':null,'leader':'','skipAssignment':false,'memberId':'','members':[]}");
    refuses(scene, "SyncGroup 3", "{'groupId': 'classic', 'generationId': 1, 'memberId': '$'}",
            "{'throttleTimeMs':0,'errorCode':30,'assignment':''}");
    refuses(scene, "SyncGroup 5",
            "{'groupId': 'classic', 'generationId': 1, 'memberId': '$', "
            "'protocolType': 'consumer', 'protocolName': 'range'}",
            "{'throttleTimeMs':0,'errorCode':30,'protocolType':null,'protocolName':null,"
            "'assignment':''}");
    refuses(scene, "Heartbeat 0", BEAT, "{'errorCode':30}");
    refuses(scene, "Heartbeat 1", BEAT, "{'throttleTimeMs':0,'errorCode':30}");
    refuses(scene, "Heartbeat 2", BEAT, "{'throttleTimeMs':0,'errorCode':30}");
    refuses(scene, "Heartbeat 3", BEAT, "{'throttleTimeMs':0,'errorCode':30}");
    refuses(scene, "Heartbeat 4", BEAT, "{'throttleTimeMs':0,'errorCode':30}");
    refuses(scene, "LeaveGroup 0", "{'groupId': 'classic', 'memberId': '$'}", "{'errorCode':30}");
    refuses(scene, "LeaveGroup 5", "{'groupId': 'classic', 'members': [{'memberId': '$'}]}",
            "{'throttleTimeMs':0,'errorCode':30,'members':[]}");
    refuses(scene, "OffsetCommit 8",
            "{'groupId': 'classic', 'generationIdOrMemberEpoch': 1, 'memberId': '$', " COMMIT,
            COMMITTED("30", "30"));
    unchanged(scene);
    answers(scene, "Heartbeat 4", BEAT, "{'throttleTimeMs':0,'errorCode':0}");
}

/* What is no request at all is told so first; a group that there is not is not told of. */
static void order_of_checks(void **state)
{
    struct scene *scene = *state;
    refuse(AUTH_READ, AUTH_GROUP, "fresh");
    refuse(AUTH_READ, AUTH_GROUP, "");
    refuses(scene, "JoinGroup 3",
            "{'groupId': 'fresh', 'sessionTimeoutMs': 60000, 'rebalanceTimeoutMs': 60000, "
            "'memberId': '', 'protocolType': 'consumer', "
            "'protocols': [{'name': 'range', 'metadata': ''}]}",
            "{'throttleTimeMs':0,'errorCode':30,'generationId':-1,'protocolName':'','leader':'',"
            "'memberId':'','members':[]}");
    refuses(scene, "Heartbeat 4", "{'groupId': 'fresh', 'generationId': 1, 'memberId': 'nobody'}",
            "{'throttleTimeMs':0,'errorCode':30}");
    refuses(scene, "Heartbeat 4", "{'groupId': '', 'generationId': 1, 'memberId': 'nobody'}",
            "{'throttleTimeMs':0,'errorCode':30}");
    refuses(scene, "ConsumerGroupHeartbeat 1",
            "{'groupId': 'fresh', 'memberId': 'm2', 'memberEpoch': 0, 'rebalanceTimeoutMs': 60000, "
            "'subscribedTopicNames': ['foo'], 'topicPartitions': []}",
            MODERN_REFUSED("30"));
    unchanged(scene);
    refuse(AUTH_READ, AUTH_GROUP, "classic");
    answers(scene, "SyncGroup 5", "{'groupId': 'classic', 'generationId': 1, 'memberId': '$'}",
            "{'throttleTimeMs':0,'errorCode':23,'protocolType':null,"
            "'protocolName':null,'assignment':''}");
    assert_int_equal(refused.times, 0);
}

/* A beat that is refused is no sign of life (A1). */
static void refused_beats_keep_nobody(void **state)
{
    struct scene *scene = *state;
    for (int i = 0; i < 50; i++) {
        if (i == 20) refuse(AUTH_READ, AUTH_GROUP, "classic");
        answers(scene, "Heartbeat 4", BEAT,
                i < 20 ? "{'throttleTimeMs':0,'errorCode':0}"
                       : "{'throttleTimeMs':0,'errorCode':30}");
        stage_pass(&scene->stage, 2200); /* 30 of them are longer than the session. */
    }
    refuse_nothing();
    answers(scene, "Heartbeat 4", BEAT, "{'throttleTimeMs':0,'errorCode':25}");
}

/* DESCRIBE on a topic, READ on the group: T177. */
static void consumer_groups(void **state)
{
    struct scene *scene = *state;
    refuse(AUTH_DESCRIBE, AUTH_TOPIC, "bar");
    refuses(scene, "ConsumerGroupHeartbeat 1", MODERN_JOIN("modern", "m2"), MODERN_REFUSED("29"));
    refuses(scene, "ConsumerGroupHeartbeat 1", MODERN_JOIN("modern", "m1"), MODERN_REFUSED("29"));
    refuses(scene, "ConsumerGroupHeartbeat 1", MODERN_JOIN("fresh", "m1"), MODERN_REFUSED("29"));
    refuses(scene, "ConsumerGroupHeartbeat 0", MODERN_JOIN("fresh", ""), MODERN_REFUSED("29"));
    refuses(scene, "ConsumerGroupDescribe 1", "{'groupIds': ['modern']}",
            "{'throttleTimeMs':0,'groups':[{'errorCode':29,'errorMessage':'The group has described "
            "topic(s) that the client is not authorized to describe.'," MODERN_NOTHING "}]}");
    unchanged(scene);
    refuse(AUTH_READ, AUTH_GROUP, "modern");
    refuses(scene, "ConsumerGroupHeartbeat 1", MODERN_JOIN("modern", "m2"), MODERN_REFUSED("30"));
    refuses(scene, "ConsumerGroupHeartbeat 1",
            "{'groupId': 'modern', 'memberId': 'm1', 'memberEpoch': -1}", MODERN_REFUSED("30"));
    unchanged(scene);
    refuse(AUTH_DESCRIBE, AUTH_GROUP, "modern");
    refuses(scene, "ConsumerGroupDescribe 1", "{'groupIds': ['modern']}",
            "{'throttleTimeMs':0,'groups':[{'errorCode':30,'errorMessage':null," MODERN_NOTHING
            "}]}");
    unchanged(scene);
}

/* A group of one member that subscribes to the expression (foo|bar), once it has its partitions. */
static const char *expression(struct scene *scene, const char *group)
{
    const struct consumer_group_heartbeat_response *beat;
    char json[256];
    (void)snprintf(json, sizeof(json),
                   "{'groupId': '%s', 'memberId': 'm1', 'memberEpoch': 0, 'rebalanceTimeoutMs': "
                   "60000, 'subscribedTopicRegex': '(foo|bar)', 'topicPartitions': []}",
                   group);
    beat = ask(scene, "ConsumerGroupHeartbeat 1", json);
    for (int i = 0; i < 100 && beat->member_epoch < 2; i++) {
        assert_int_equal(beat->error_code, KAFKA_NONE);
        (void)snprintf(json, sizeof(json), "{'groupId': '%s', 'memberId': 'm1', 'memberEpoch': %d}",
                       group, beat->member_epoch);
        stage_pass(&scene->stage, 100);
        beat = ask(scene, "ConsumerGroupHeartbeat 1", json);
    }
    (void)snprintf(json, sizeof(json), "{'groupIds': ['%s']}", group);
    (void)ask(scene, "ConsumerGroupDescribe 1", json);
    return client_caller_answer(scene->stage.caller);
}

/* What an expression matches and its member may not describe is not subscribed to. */
static void expressions(void **state)
{
    struct scene *scene = *state;
    const char *told = expression(scene, "free");
    assert_non_null(strstr(told, "'topicName':'foo'"));
    assert_non_null(strstr(told, "'topicName':'bar'"));
    refuse(AUTH_DESCRIBE, AUTH_TOPIC, "bar");
    told = expression(scene, "bound");
    assert_non_null(strstr(told, "'topicName':'foo'"));
    assert_null(strstr(told, "'topicName':'bar'"));
}

/* READ on a topic: no offset is committed or deleted; whether the topic is there is not told. */
static void offsets_without_read(void **state)
{
    struct scene *scene = *state;
    refuse(AUTH_READ, AUTH_TOPIC, "bar");
    refuse(AUTH_READ, AUTH_TOPIC, "none");
    refuses(scene, "OffsetCommit 8",
            "{'groupId': 'simple', 'topics': [{'name': 'none', 'partitions': ["
            "{'partitionIndex': 0, 'committedOffset': 9}]}, {'name': 'bar', 'partitions': ["
            "{'partitionIndex': 0, 'committedOffset': 9}, "
            "{'partitionIndex': 1, 'committedOffset': 9}]}]}",
            "{'throttleTimeMs':0,'topics':[{'name':'none','partitions':["
            "{'partitionIndex':0,'errorCode':29}]},{'name':'bar','partitions':["
            "{'partitionIndex':0,'errorCode':29},{'partitionIndex':1,'errorCode':29}]}]}");
    refuses(scene, "OffsetCommit 10",
            "{'groupId': 'simple', 'topics': [{'topicId': '#', 'partitions': ["
            "{'partitionIndex': 0, 'committedOffset': 9}]}]}",
            "{'throttleTimeMs':0,'topics':[{'topicId':'#','partitions':["
            "{'partitionIndex':0,'errorCode':29}]}]}");
    refuses(scene, "OffsetDelete 0",
            "{'groupId': 'simple', 'topics': ["
            "{'name': 'bar', 'partitions': [{'partitionIndex': 0}]}, "
            "{'name': 'none', 'partitions': [{'partitionIndex': 0}]}]}",
            "{'errorCode':0,'throttleTimeMs':0,'topics':["
            "{'name':'bar','partitions':[{'partitionIndex':0,'errorCode':29}]},"
            "{'name':'none','partitions':[{'partitionIndex':0,'errorCode':29}]}]}");
    unchanged(scene);
}

/* What the request has of other topics is committed. */
static void commits_in_part(void **state)
{
    struct scene *scene = *state;
    refuse(AUTH_READ, AUTH_TOPIC, "bar");
    refuses(scene, "OffsetCommit 8",
            "{'groupId': 'simple', 'topics': [{'name': 'foo', 'partitions': ["
            "{'partitionIndex': 0, 'committedOffset': 6}]}, {'name': 'bar', 'partitions': ["
            "{'partitionIndex': 0, 'committedOffset': 8}]}]}",
            COMMITTED("0", "29"));
    answers(scene, "OffsetFetch 7", "{'groupId': 'simple', 'topics': null}",
            "{'throttleTimeMs':0,'topics':[" FOO_LATER "," BAR "],'errorCode':0}");
}

/* DESCRIBE on a topic: who asks for all topics is not told of it. */
static void offsets_without_describe(void **state)
{
    struct scene *scene = *state;
    refuse(AUTH_DESCRIBE, AUTH_TOPIC, "bar");
    refuses(scene, "OffsetFetch 5", "{'groupId': 'simple', 'topics': null}",
            "{'throttleTimeMs':0,'topics':[" FOO "],'errorCode':0}");
    refuses(scene, "OffsetFetch 7",
            "{'groupId': 'simple', 'topics': [{'name': 'bar', 'partitionIndexes': [0]}]}",
            "{'throttleTimeMs':0,'topics':[" NO_BAR "],'errorCode':0}");
    refuses(scene, "OffsetFetch 9",
            "{'groups': [{'groupId': 'simple', 'topics': null}, {'groupId': 'classic', "
            "'topics': [{'name': 'bar', 'partitionIndexes': [0]}, "
            "{'name': 'foo', 'partitionIndexes': [0]}]}]}",
            "{'throttleTimeMs':0,'groups':["
            "{'groupId':'simple','topics':[" FOO "],'errorCode':0},"
            "{'groupId':'classic','topics':[" NO_BAR "," FOO "],'errorCode':0}]}");
    refuses(scene, "OffsetFetch 10",
            "{'groups': [{'groupId': 'simple', 'topics': ["
            "{'topicId': '#', 'partitionIndexes': [0]}]}]}",
            "{'throttleTimeMs':0,'groups':[{'groupId':'simple','topics':[{'topicId':'#',"
            "'partitions':[{'partitionIndex':0,'committedOffset':-1,"
            "'committedLeaderEpoch':-1,'metadata':'','errorCode':29}]}],'errorCode':0}]}");
    unchanged(scene);
}

/* DESCRIBE on the group: its coordinator, its offsets. */
static void finds_without_describe(void **state)
{
    struct scene *scene = *state;
    refuse(AUTH_DESCRIBE, AUTH_GROUP, "simple");
    refuses(scene, "FindCoordinator 0", "{'key': 'simple'}",
            "{'errorCode':30,'nodeId':-1,'host':'','port':-1}");
    refuses(scene, "FindCoordinator 3", "{'key': 'simple', 'keyType': 0}",
            "{'throttleTimeMs':0," NO_RIGHT ",'nodeId':-1,'host':'','port':-1}");
    refuses(scene, "FindCoordinator 6", "{'keyType': 0, 'coordinatorKeys': ['simple', 'classic']}",
            "{'throttleTimeMs':0,'coordinators':["
            "{'key':'simple','nodeId':-1,'host':'','port':-1," NO_RIGHT "},"
            "{'key':'classic','nodeId':1,'host':'10.0.0.1','port':9092,'errorCode':0,"
            "'errorMessage':''}]}");
    refuses(scene, "OffsetFetch 1",
            "{'groupId': 'simple', 'topics': [{'name': 'foo', 'partitionIndexes': [0, 1]}]}",
            "{'topics':[{'name':'foo','partitions':["
            "{'partitionIndex':0,'committedOffset':-1,'metadata':'','errorCode':30},"
            "{'partitionIndex':1,'committedOffset':-1,'metadata':'','errorCode':30}]}]}");
    refuses(scene, "OffsetFetch 7", "{'groupId': 'simple', 'topics': null}",
            "{'throttleTimeMs':0,'topics':[],'errorCode':30}");
    refuses(scene, "OffsetFetch 9",
            "{'groups': [{'groupId': 'simple', 'topics': null}, {'groupId': 'classic', "
            "'topics': [{'name': 'foo', 'partitionIndexes': [0]}]}]}",
            "{'throttleTimeMs':0,'groups':[{'groupId':'simple','topics':[],'errorCode':30},"
            "{'groupId':'classic','topics':[" FOO "],'errorCode':0}]}");
    unchanged(scene);
}

/* DESCRIBE on the group: what is told of it. */
static void looks_without_describe(void **state)
{
    struct scene *scene = *state;
    refuse(AUTH_DESCRIBE, AUTH_GROUP, "simple");
    refuse(AUTH_DESCRIBE, AUTH_GROUP, "fresh");
    refuses(scene, "DescribeGroups 0", "{'groups': ['classic', 'simple']}",
            "{'groups':[{'errorCode':0,'groupId':'classic','groupState':'Stable',"
            "'protocolType':'consumer','protocolData':'range','members':[{'memberId':'$',"
            "'clientId':'sim','clientHost':'/10.0.0.2','memberMetadata':'',"
            "'memberAssignment':''}]},{'errorCode':30,'groupId':'simple','groupState':'',"
            "'protocolType':'','protocolData':'','members':[]}]}");
    refuses(scene, "DescribeGroups 6",
            "{'groups': ['simple', 'fresh'], 'includeAuthorizedOperations': true}",
            "{'throttleTimeMs':0,'groups':[" UNDESCRIBED("simple") "," UNDESCRIBED("fresh") "]}");
    unchanged(scene);
}

static bool lists(struct scene *scene, const char *group)
{
    (void)ask(scene, "ListGroups 5", "{}");
    return strstr(client_caller_answer(scene->stage.caller), filled(scene, group)) != NULL;
}

/* A list is shorter by the groups that may not be described, unless the cluster may be. */
static void lists_without_describe(void **state)
{
    struct scene *scene = *state;
    refuse(AUTH_DESCRIBE, AUTH_GROUP, "simple");
    assert_true(lists(scene, "'groupId':'simple'"));
    refuse(AUTH_DESCRIBE, AUTH_CLUSTER, "kafka-cluster");
    assert_false(lists(scene, "'groupId':'simple'"));
    assert_true(lists(scene, "'groupId':'classic'"));
    assert_true(lists(scene, "'groupId':'modern'"));
    assert_true(lists(scene, "'errorCode':0"));
    unchanged(scene);
}

/* DELETE on the group. */
static void deletions(void **state)
{
    struct scene *scene = *state;
    refuse(AUTH_DELETE, AUTH_GROUP, "simple");
    refuse(AUTH_DELETE, AUTH_GROUP, "fresh");
    refuses(scene, "DeleteGroups 2", "{'groupsNames': ['simple', 'fresh']}",
            "{'throttleTimeMs':0,'results':[{'groupId':'simple','errorCode':30},"
            "{'groupId':'fresh','errorCode':30}]}");
    refuses(scene, "OffsetDelete 0",
            "{'groupId': 'simple', 'topics': ["
            "{'name': 'foo', 'partitions': [{'partitionIndex': 0}]}]}",
            "{'errorCode':30,'throttleTimeMs':0,'topics':[]}");
    unchanged(scene);
}

/* A coordinator that has stopped, or has not begun: no request is asked about its group (T3). */
static void no_coordinator(void **state)
{
    struct scene *scene = *state;
    for (uint32_t i = 0; i < scene->stage.cluster.shape.shards; i++)
        coordinator_stop(scene->stage.cluster.node->peers[i]);
    answers(scene, "Heartbeat 4", BEAT, "{'throttleTimeMs':0,'errorCode':15}");
    answers(scene, "Heartbeat 4", "{'groupId': '', 'generationId': 1, 'memberId': 'nobody'}",
            "{'throttleTimeMs':0,'errorCode':15}");
    answers(scene, "SyncGroup 3", "{'groupId': 'classic', 'generationId': 1, 'memberId': '$'}",
            "{'throttleTimeMs':0,'errorCode':15,'assignment':''}");
    answers(scene, "LeaveGroup 0", "{'groupId': 'classic', 'memberId': '$'}", "{'errorCode':15}");
    answers(scene, "ConsumerGroupHeartbeat 1", MODERN_JOIN("modern", "m2"), MODERN_REFUSED("15"));
    refuse(AUTH_READ, AUTH_GROUP, "classic");
    refuses(scene, "Heartbeat 4", BEAT, "{'throttleTimeMs':0,'errorCode':30}");
}

#define TESTS(name)                                                                                \
    cmocka_unit_test_setup_teardown(name, one_shard, scene_end),                                   \
        cmocka_unit_test_setup_teardown(name, three_shards, scene_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TESTS(members_without_read),
        TESTS(order_of_checks),
        TESTS(refused_beats_keep_nobody),
        TESTS(consumer_groups),
        TESTS(expressions),
        TESTS(offsets_without_read),
        TESTS(commits_in_part),
        TESTS(offsets_without_describe),
        TESTS(finds_without_describe),
        TESTS(looks_without_describe),
        TESTS(lists_without_describe),
        TESTS(deletions),
        TESTS(no_coordinator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
