/* client_operator.c - see client_operator.h. */
#include "sim/client_operator.h"

#include <stdio.h>

#include "gen/alter_partition_reassignments_request.h"
#include "gen/create_partitions_request.h"
#include "gen/create_topics_request.h"
#include "gen/create_topics_response.h"
#include "gen/delete_topics_request.h"
#include "gen/describe_cluster_request.h"
#include "gen/describe_cluster_response.h"
#include "gen/describe_quorum_request.h"
#include "gen/describe_quorum_response.h"
#include "gen/elect_leaders_request.h"
#include "gen/errors.h"
#include "gen/incremental_alter_configs_request.h"
#include "gen/unregister_broker_request.h"
#include "gen/unregister_broker_response.h"

#define API_CREATE_TOPICS       19
#define API_DELETE_TOPICS       20
#define API_CREATE_PARTITIONS   37
#define API_ELECT_LEADERS       43
#define API_ALTER_REASSIGNMENTS 45
#define API_INCREMENTAL_CONFIGS 44
#define API_DESCRIBE_QUORUM     55
#define API_DESCRIBE_CLUSTER    60
#define API_UNREGISTER_BROKER   64
#define OPERATOR_CONTROLLER     1 /* The node's id. */
#define OPERATOR_TOPICS_MAX     6u
#define OPERATOR_PARTITIONS_MAX 6
#define OPERATOR_TIMEOUT_MS     5000
#define RESOURCE_TOPIC          2

static struct client_operator *operator_of(struct client *client)
{
    return container_of(client, struct client_operator, client);
}

static uint32_t operator_draws(struct client_operator *operator, uint32_t below)
{
    return chance_below(&operator->client.chance, below);
}

/* Any topic of its image, or NULL. */
static const struct image_topic *operator_topic(struct client_operator *operator)
{
    const struct image_object *at = NULL, *chosen = NULL;
    uint32_t seen = 0;
    while ((at = image_next(operator->follower.image, IMAGE_TOPIC, at)) != NULL)
        if (operator_draws(operator, ++ seen) == 0) chosen = at;
    return (const void *)chosen;
}

static int32_t operator_broker(struct client_operator *operator)
{
    return operator->broker_first +(int32_t) operator_draws(operator, operator->broker_count);
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void operator_creates(struct client_operator *operator)
{
    struct create_topics_request request;
    struct create_topics_request_creatable_topic topic;
    char name[16];
    wire_defaults(&wire_create_topics_request, &request);
    wire_struct_defaults(&wire_create_topics_request_creatable_topic_shape, &topic);
    (void)snprintf(name, sizeof(name), "topic%u", operator->topics_named++);
    topic.name = view_of_string(name);
    topic.num_partitions = 1 + (int32_t)operator_draws(operator, OPERATOR_PARTITIONS_MAX - 2);
    topic.replication_factor = (int16_t)(1 + operator_draws(operator, 3));
    request.topics.items = &topic;
    request.topics.count = 1;
    request.timeout_ms = OPERATOR_TIMEOUT_MS;
    wire_link_send(&operator->client.link, API_CREATE_TOPICS, 7, &request);
}

static void operator_deletes(struct client_operator *operator, const struct image_topic * topic)
{
    struct delete_topics_request request;
    struct delete_topics_request_delete_topic_state state;
    wire_defaults(&wire_delete_topics_request, &request);
    wire_struct_defaults(&wire_delete_topics_request_delete_topic_state_shape, &state);
    state.name = VIEW_NULL;
    state.topic_id = topic->id;
    request.topics.items = &state;
    request.topics.count = 1;
    request.timeout_ms = OPERATOR_TIMEOUT_MS;
    wire_link_send(&operator->client.link, API_DELETE_TOPICS, 6, &request);
}

static void operator_grows(struct client_operator *operator, const struct image_topic * topic)
{
    struct create_partitions_request request;
    struct create_partitions_request_create_partitions_topic item;
    wire_defaults(&wire_create_partitions_request, &request);
    wire_struct_defaults(&wire_create_partitions_request_create_partitions_topic_shape, &item);
    item.name = topic->name;
    item.count = topic->partition_count + 1;
    item.assignments.items = NULL;
    item.assignments.count = -1;
    request.topics.items = &item;
    request.topics.count = 1;
    request.timeout_ms = OPERATOR_TIMEOUT_MS;
    wire_link_send(&operator->client.link, API_CREATE_PARTITIONS, 3, &request);
}

static void operator_reassigns(struct client_operator *operator, const struct image_topic * topic)
{
    struct alter_partition_reassignments_request request;
    struct alter_partition_reassignments_request_reassignable_topic item;
    struct alter_partition_reassignments_request_reassignable_partition part;
    int32_t targets[3];
    uint32_t first = operator_draws(operator, operator->broker_count);
    wire_defaults(&wire_alter_partition_reassignments_request, &request);
    wire_struct_defaults(&wire_alter_partition_reassignments_request_reassignable_topic_shape,
                         &item);
    wire_struct_defaults(&wire_alter_partition_reassignments_request_reassignable_partition_shape,
                         &part);
    for (uint32_t i = 0; i < 3; i++)
        targets[i] = operator->broker_first +(int32_t)((first + i) % operator->broker_count);
    part.partition_index = (int32_t)operator_draws(operator,(uint32_t) topic->partition_count);
    part.replicas.items = targets;
    part.replicas.count = 1 + (int32_t)operator_draws(operator, 3);
    if (operator_draws(operator, 4) == 0) part.replicas.count = -1; /* Take it back. */
    item.name = topic->name;
    item.partitions.items = &part;
    item.partitions.count = 1;
    request.topics.items = &item;
    request.topics.count = 1;
    request.timeout_ms = OPERATOR_TIMEOUT_MS;
    request.allow_replication_factor_change = true;
    wire_link_send(&operator->client.link, API_ALTER_REASSIGNMENTS, 1, &request);
}

static void operator_elects(struct client_operator *operator)
{
    struct elect_leaders_request request;
    wire_defaults(&wire_elect_leaders_request, &request);
    request.election_type = operator_draws(operator, 3) == 0; /* Unclean. */
    request.topic_partitions.items = NULL;
    request.topic_partitions.count = -1;
    request.timeout_ms = OPERATOR_TIMEOUT_MS;
    wire_link_send(&operator->client.link, API_ELECT_LEADERS, 2, &request);
}

static void operator_configures(struct client_operator *operator, const struct image_topic * topic)
{
    static const struct {
        const char *name, *value;
    } choices[] = {
        {"min.insync.replicas",            "1"    },
        {"min.insync.replicas",            "2"    },
        {"min.insync.replicas",            NULL   },
        {"unclean.leader.election.enable", "true" },
        {"unclean.leader.election.enable", "false"},
    };
    struct incremental_alter_configs_request request;
    struct incremental_alter_configs_request_alter_configs_resource item;
    struct incremental_alter_configs_request_alterable_config config;
    uint32_t choice = operator_draws(operator, ARRAY_SIZE(choices));
    wire_defaults(&wire_incremental_alter_configs_request, &request);
    wire_struct_defaults(&wire_incremental_alter_configs_request_alter_configs_resource_shape,
                         &item);
    wire_struct_defaults(&wire_incremental_alter_configs_request_alterable_config_shape, &config);
    config.name = view_of_string(choices[choice].name);
    config.config_operation = choices[choice].value == NULL; /* Delete. */
    config.value =
        choices[choice].value == NULL ? VIEW_NULL : view_of_string(choices[choice].value);
    item.resource_type = RESOURCE_TOPIC;
    item.resource_name = topic->name;
    item.configs.items = &config;
    item.configs.count = 1;
    request.resources.items = &item;
    request.resources.count = 1;
    wire_link_send(&operator->client.link, API_INCREMENTAL_CONFIGS, 1, &request);
}

static void operator_unregisters(struct client_operator *operator)
{
    struct unregister_broker_request request;
    int32_t id = operator_broker(operator);
    wire_defaults(&wire_unregister_broker_request, &request);
    request.broker_id = id;
    operator->unregistering = id;
    operator->follower.check->brokers[id].unregistered++;
    wire_link_send(&operator->client.link, API_UNREGISTER_BROKER, 0, &request);
}

static void operator_orders(struct client_operator *operator)
{
    const struct image_topic *topic = operator_topic(operator);
    uint32_t what = operator_draws(operator, 100);
    if (topic == NULL ||
        (what < 30 && image_count(operator->follower.image, IMAGE_TOPIC) < OPERATOR_TOPICS_MAX))
        operator_creates(operator);
    else if (what < 38)
        operator_deletes(operator, topic);
    else if (what < 45 && topic->partition_count < OPERATOR_PARTITIONS_MAX)
        operator_grows(operator, topic);
    else if (what < 65)
        operator_reassigns(operator, topic);
    else if (what < 80)
        operator_elects(operator);
    else if (what < 97)
        operator_configures(operator, topic);
    else
        operator_unregisters(operator);
}

/* ---- an audit -------------------------------------------------------------------------------- */

static void operator_asks(struct client_operator *operator)
{
    if (!operator->cluster_told) {
        struct describe_cluster_request request;
        wire_defaults(&wire_describe_cluster_request, &request);
        request.endpoint_type = 2; /* Controllers. */
        wire_link_send(&operator->client.link, API_DESCRIBE_CLUSTER, 2, &request);
    } else {
        struct describe_quorum_request request;
        struct describe_quorum_request_topic_data topic;
        struct describe_quorum_request_partition_data part;
        wire_defaults(&wire_describe_quorum_request, &request);
        wire_struct_defaults(&wire_describe_quorum_request_topic_data_shape, &topic);
        wire_struct_defaults(&wire_describe_quorum_request_partition_data_shape, &part);
        topic.topic_name = VIEW("__cluster_metadata");
        topic.partitions.items = &part;
        topic.partitions.count = 1;
        request.topics.items = &topic;
        request.topics.count = 1;
        operator->asked_offset = operator->follower.high_watermark;
        operator->asked_epoch = operator->follower.leader_epoch;
        wire_link_send(&operator->client.link, API_DESCRIBE_QUORUM, 2, &request);
    }
}

static void operator_told_cluster(struct client_operator *operator,
                                  const struct describe_cluster_response * in)
{
    if (in->error_code != KAFKA_NONE) {
        client_error(&operator->client, "DescribeCluster", in->error_code);
        return;
    }
    if (in->controller_id != OPERATOR_CONTROLLER || in->brokers.count != 1 ||
        in->brokers.items[0].broker_id != OPERATOR_CONTROLLER)
        history_violation(operator->client.history, "Q8: DescribeCluster tells of controller %d",
                          in->controller_id);
    operator->cluster_told = true;
}

static void operator_told_quorum(struct client_operator *operator,
                                 const struct describe_quorum_response * in)
{
    int16_t error = in->error_code;
    if (error == KAFKA_NONE && in->topics.count == 1 && in->topics.items[0].partitions.count == 1)
        error = in->topics.items[0].partitions.items[0].error_code;
    if (error != KAFKA_NONE) {
        client_error(&operator->client, "DescribeQuorum", error);
        return;
    }
    const struct describe_quorum_response_partition_data *part =
        &in->topics.items[0].partitions.items[0];
    if (part->high_watermark < operator->asked_offset || part->leader_epoch<
                               operator->asked_epoch || part->current_voters.count != 1)
        history_violation(operator->client.history,
                          "Q8: DescribeQuorum tells of %lld in epoch %d, read was %lld in epoch %d",
                          (long long)part->high_watermark, part->leader_epoch,
                          (long long)operator->asked_offset, operator->asked_epoch);
    operator->quorum_told = true;
}

/* ---- its life -------------------------------------------------------------------------------- */

static void operator_fill(struct client *client)
{
    struct client_operator *operator= operator_of(client);
    if (client->link.wait_count > 0) return;
    if (client->storm)
        operator_orders(operator);
    else if (operator->audit && !client->kind->finished(client))
        operator_asks(operator);
}

static void operator_answered(struct client *client, const struct wire_link_wait *wait, void *in)
{
    struct client_operator *operator= operator_of(client);
    client_rests(client, 20 + operator_draws(operator, 700));
    operator->orders++;
    switch (wait->api) {
    case API_DESCRIBE_CLUSTER: operator_told_cluster(operator, in); break;
    case API_DESCRIBE_QUORUM: operator_told_quorum(operator, in); break;
    case API_CREATE_TOPICS: {
        const struct create_topics_response *made = in;
        operator->granted += made->topics.count == 1 && made->topics.items[0].error_code == 0;
        break;
    }
    case API_UNREGISTER_BROKER:
        operator->follower.check->brokers[operator->unregistering].unregistered_told++;
        break;
    default: break; /* What became of it stands in the log. */
    }
}

static void operator_lost(struct client *client)
{
    (void)client;
}

static int64_t operator_beside(struct client *client)
{
    return follower_turn(&operator_of(client)->follower);
}

static bool operator_finished(const struct client *client)
{
    const struct client_operator *operator=(const void *) client;
    if (client->storm) return false;
    return !operator->audit ||(operator->cluster_told && operator->quorum_told);
}

static void operator_ended(struct client *client)
{
    follower_free(&operator_of(client)->follower);
}

static const struct client_kind operator_kind = {
    .name = "operator",
    .size_bytes = sizeof(struct client_operator),
    .fill = operator_fill,
    .answered = operator_answered,
    .lost = operator_lost,
    .finished = operator_finished,
    .beside = operator_beside,
    .ended = operator_ended,
};

struct client_operator *client_operator_new(const struct client_seat *seat,
                                            struct quorum_check *check,
                                            struct view cluster_id)
{
    struct client_operator *operator= operator_of(client_new(&operator_kind, seat));
    struct follower_seat place = {operator->client.io, seat->host, seat->port, check,
                                  cluster_id,          -1};
    follower_init(&operator->follower, &place);
    operator->follower.audits = true;
    return operator;
}

void client_operator_audits(struct client_operator *operator)
{
    operator->audit = true;
    operator->cluster_told = operator->quorum_told = false;
}
