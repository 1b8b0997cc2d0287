/* metadata.c - what the cluster looks like: Metadata, DescribeCluster, DescribeTopicPartitions.
 *
 * All of it is read from the committed image. Endpoints are those of the listener that
 * the client came through; a node that advertises no address of its own tells each client the one
 * by which it was reached. */
#include "base/view_sort.h"
#include "broker/broker.h"
#include "broker/controller.h"
#include "core/names.h"
#include "gen/describe_cluster_request.h"
#include "gen/describe_cluster_response.h"
#include "gen/describe_topic_partitions_request.h"
#include "gen/describe_topic_partitions_response.h"
#include "gen/metadata_request.h"
#include "gen/metadata_response.h"
#include "net/connection.h"
#include "net/listener.h"

static const struct node_listener *own_listener(const struct node *node, const char *name)
{
    for (uint32_t i = 0; i < node->options.listener_count; i++)
        if (strcmp(node->options.listeners[i].name, name) == 0) return &node->options.listeners[i];
    return NULL;
}

bool metadata_place(struct request *request,
                    const struct image_node *broker,
                    struct metadata_place *out)
{
    struct node *node = node_of(request->shard);
    const struct image_endpoint *endpoint =
        image_endpoint(broker, view_of_string(request->listener->name));
    if (endpoint == NULL) return false;
    *out = (struct metadata_place){endpoint->host, endpoint->port};
    const struct node_listener *own = own_listener(node, request->listener->name);
    if (broker->id != node->options.node_id || own == NULL || own->advertised_host[0] != '\0')
        return true;
    if (request->connection == NULL) return true;
    struct io_address local;
    connection_local(request->connection, &local);
    if (local.port == 0)
        return true; /* A Unix socket: what is registered is better than nothing. */
    struct view host = arena_copy(&request->arena, view_of_string(local.host));
    if (host.null) return true;
    *out = (struct metadata_place){host, local.port};
    return true;
}

/* ---- brokers --------------------------------------------------------------------------------- */

static int32_t metadata_brokers(struct request *request, struct metadata_response *out)
{
    struct node *node = node_of(request->shard);
    uint32_t count = 0;
    const struct image_object *const *objects =
        image_sorted(node->image, IMAGE_BROKER, &request->arena, &count);
    out->brokers.items = broker_array(request, count, sizeof(*out->brokers.items));
    if (out->brokers.items == NULL) return -1;
    int32_t any = -1;
    for (uint32_t i = 0; i < count; i++) {
        const struct image_node *broker = (const struct image_node *)objects[i];
        struct metadata_place place;
        if (broker->fenced || !metadata_place(request, broker, &place)) continue;
        struct metadata_response_metadata_response_broker *item =
            &out->brokers.items[out->brokers.count++];
        wire_struct_defaults(&wire_metadata_response_metadata_response_broker_shape, item);
        item->node_id = broker->id;
        item->host = place.host;
        item->port = place.port;
        item->rack = broker->rack;
        any = broker->id;
    }
    return any;
}

static bool broker_alive(const struct node *node, int32_t id)
{
    const struct image_node *broker = image_broker(node->image, id);
    return broker != NULL && !broker->fenced;
}

/* The leader's state as a client sees it: an error where it cannot be reached. */
static int16_t leader_error(struct request *request, int32_t leader)
{
    const struct node *node = node_of(request->shard);
    struct metadata_place place;
    if (leader == IMAGE_NO_LEADER || !broker_alive(node, leader)) return KAFKA_LEADER_NOT_AVAILABLE;
    if (metadata_place(request, image_broker(node->image, leader), &place)) return KAFKA_NONE;
    return request->version >= 6 ? KAFKA_LISTENER_NOT_FOUND : KAFKA_LEADER_NOT_AVAILABLE;
}

/* Ids of a partition's list in the arena; `alive` filters: 1 alive ones, 0 dead ones, -1 all. */
static int32_t *ids_of(struct request *request, struct image_ids ids, int alive, int32_t *count)
{
    int32_t *out = broker_array(request, ids.count, sizeof(*out));
    *count = 0;
    for (uint32_t i = 0; out != NULL && i < ids.count; i++)
        if (alive < 0 || broker_alive(node_of(request->shard), ids.items[i]) == (alive == 1))
            out[(*count)++] = ids.items[i];
    return out;
}

/* ---- Metadata -------------------------------------------------------------------------------- */

static void metadata_partition(struct request *request,
                               const struct image_partition *in,
                               int32_t index,
                               struct metadata_response_metadata_response_partition *out)
{
    wire_struct_defaults(&wire_metadata_response_metadata_response_partition_shape, out);
    struct image_ids replicas = image_list(in, IMAGE_REPLICAS), isr = image_list(in, IMAGE_ISR);
    int alive = request->version == 0 ? 1 : -1;
    out->partition_index = index;
    out->error_code = leader_error(request, in->leader);
    out->leader_id = out->error_code == KAFKA_LEADER_NOT_AVAILABLE ? IMAGE_NO_LEADER : in->leader;
    out->leader_epoch = in->leader_epoch;
    out->replica_nodes.items = ids_of(request, replicas, alive, &out->replica_nodes.count);
    out->isr_nodes.items = ids_of(request, isr, alive, &out->isr_nodes.count);
    out->offline_replicas.items = ids_of(request, replicas, 0, &out->offline_replicas.count);
    if (request->version == 0 && out->error_code == KAFKA_NONE &&
        out->replica_nodes.count < (int32_t)replicas.count)
        out->error_code = KAFKA_REPLICA_NOT_AVAILABLE;
}

static void metadata_topic_found(struct request *request,
                                 const struct image_topic *topic,
                                 struct metadata_response_metadata_response_topic *out)
{
    const struct metadata_request *in = request->message;
    out->name = topic->name;
    out->topic_id = topic->id;
    out->is_internal = topic_is_internal(topic->name);
    out->partitions.items =
        broker_array(request, (size_t)topic->partition_count, sizeof(*out->partitions.items));
    for (int32_t i = 0; out->partitions.items != NULL && i < topic->partition_count; i++)
        if (topic->partitions[i] != NULL)
            metadata_partition(request, topic->partitions[i], i,
                               &out->partitions.items[out->partitions.count++]);
    out->topic_authorized_operations =
        in->include_topic_authorized_operations ? AUTH_TOPIC_OPERATIONS : AUTH_NOT_ASKED;
}

static int16_t metadata_topic_missing(struct request *request, struct view name)
{
    const struct metadata_request *in = request->message;
    struct node *node = node_of(request->shard);
    if (!topic_name_valid(name)) return KAFKA_INVALID_TOPIC_EXCEPTION;
    bool wanted = request->version < 4 || in->allow_auto_topic_creation;
    if (!wanted || !node->options.auto_create_topics || in->topics.count < 0)
        return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    if (!auth_allows(request, AUTH_CREATE, AUTH_CLUSTER, VIEW("kafka-cluster")) &&
        !auth_allows(request, AUTH_CREATE, AUTH_TOPIC, name))
        return KAFKA_TOPIC_AUTHORIZATION_FAILED;
    controller_auto_create(node, name, request);
    return KAFKA_UNKNOWN_TOPIC_OR_PARTITION; /* The client asks again. */
}

static void metadata_topic_asked(struct request *request,
                                 const struct metadata_request_metadata_request_topic *in,
                                 bool by_id,
                                 struct metadata_response_metadata_response_topic *out)
{
    struct node *node = node_of(request->shard);
    const struct image_topic *topic =
        by_id ? image_topic_by_id(node->image, in->topic_id) : image_topic(node->image, in->name);
    wire_struct_defaults(&wire_metadata_response_metadata_response_topic_shape, out);
    if (by_id) {
        out->topic_id = in->topic_id;
        out->name = VIEW_NULL;
    } else {
        out->name = in->name;
    }
    struct view name = topic != NULL ? topic->name : in->name;
    if (topic == NULL && by_id)
        out->error_code = KAFKA_UNKNOWN_TOPIC_ID;
    else if (!auth_allows(request, AUTH_DESCRIBE, AUTH_TOPIC, name))
        out->error_code = KAFKA_TOPIC_AUTHORIZATION_FAILED;
    else if (topic == NULL)
        out->error_code = metadata_topic_missing(request, in->name);
    else
        metadata_topic_found(request, topic, out);
    if (out->error_code != KAFKA_NONE) request_error(request, out->error_code);
}

static bool metadata_all(struct request *request, struct metadata_response *out)
{
    struct node *node = node_of(request->shard);
    uint32_t count = 0;
    const struct image_object *const *topics =
        image_sorted(node->image, IMAGE_TOPIC, &request->arena, &count);
    out->topics.items = broker_array(request, count, sizeof(*out->topics.items));
    if (count > 0 && (topics == NULL || out->topics.items == NULL)) return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct image_topic *topic = (const struct image_topic *)topics[i];
        if (!auth_allows(request, AUTH_DESCRIBE, AUTH_TOPIC, topic->name)) continue;
        struct metadata_response_metadata_response_topic *item =
            &out->topics.items[out->topics.count++];
        wire_struct_defaults(&wire_metadata_response_metadata_response_topic_shape, item);
        metadata_topic_found(request, topic, item);
    }
    return true;
}

/* 42 for requests that name and identify at once where their version may not. */
static int16_t metadata_check(const struct request *request, bool *by_id)
{
    const struct metadata_request *in = request->message;
    *by_id = false;
    for (int32_t i = 0; i < in->topics.count; i++) {
        bool has_id = !uuid_is_zero(in->topics.items[i].topic_id);
        if (request->version < 12 && (has_id || in->topics.items[i].name.null))
            return KAFKA_INVALID_REQUEST;
        *by_id = *by_id || has_id;
    }
    return KAFKA_NONE;
}

static bool metadata_topics(struct request *request, struct metadata_response *out)
{
    const struct metadata_request *in = request->message;
    if (in->topics.count < 0 || (request->version == 0 && in->topics.count == 0))
        return metadata_all(request, out);
    bool by_id;
    int16_t error = metadata_check(request, &by_id);
    out->error_code = error;
    out->topics.items = broker_array(request, (size_t)in->topics.count, sizeof(*out->topics.items));
    struct names seen;
    if ((in->topics.count > 0 && out->topics.items == NULL) ||
        !names_init(&seen, &request->arena, (uint32_t)in->topics.count,
                    io_random(request->shard->io, IO_RANDOM_HASH)))
        return false;
    for (int32_t i = 0; i < in->topics.count; i++) {
        struct view key =
            by_id ? view_of(in->topics.items[i].topic_id.bytes, 16) : in->topics.items[i].name;
        if (error == KAFKA_NONE && !key.null && names_see(&seen, key) > 1) continue;
        struct metadata_response_metadata_response_topic *item =
            &out->topics.items[out->topics.count];
        if (error != KAFKA_NONE) {
            wire_struct_defaults(&wire_metadata_response_metadata_response_topic_shape, item);
            item->error_code = error;
            item->name = in->topics.items[i].name.null ? VIEW_EMPTY : in->topics.items[i].name;
            item->topic_id = in->topics.items[i].topic_id;
        } else if (by_id && uuid_is_zero(in->topics.items[i].topic_id)) {
            continue;
        } else {
            metadata_topic_asked(request, &in->topics.items[i], by_id, item);
        }
        out->topics.count++;
    }
    if (error != KAFKA_NONE) request_error(request, error);
    return true;
}

void handle_metadata(struct shard *shard, struct request *request)
{
    const struct metadata_request *in = request->message;
    struct metadata_response *out = request_response(request);
    if (out == NULL || !metadata_topics(request, out)) {
        request_close(request, "no memory for a metadata answer");
        return;
    }
    if (out->error_code != KAFKA_NONE) { /* As Kafka: the topics with the error, and no more. */
        request_reply(request, out);
        return;
    }
    out->controller_id = metadata_brokers(request, out);
    out->cluster_id = node_cluster_id(node_of(shard));
    out->cluster_authorized_operations =
        in->include_cluster_authorized_operations ? AUTH_CLUSTER_OPERATIONS : AUTH_NOT_ASKED;
    request_reply(request, out);
}

/* ---- DescribeCluster ------------------------------------------------------------------------- */

#define ENDPOINT_BROKERS     1
#define ENDPOINT_CONTROLLERS 2

#define LEVEL_CONTROLLERS 15 /* metadata.version from which controllers are registered. */

/* The nodes of a kind that can be reached on the listener that was asked. */
static void cluster_nodes(struct request *request,
                          struct describe_cluster_response *out,
                          enum image_kind kind,
                          bool fenced_too)
{
    struct node *node = node_of(request->shard);
    uint32_t count = 0;
    const struct image_object *const *objects =
        image_sorted(node->image, kind, &request->arena, &count);
    out->brokers.items = broker_array(request, count, sizeof(*out->brokers.items));
    for (uint32_t i = 0; out->brokers.items != NULL && i < count; i++) {
        const struct image_node *broker = (const struct image_node *)objects[i];
        struct metadata_place place;
        if ((broker->fenced && !fenced_too) || !metadata_place(request, broker, &place)) continue;
        struct describe_cluster_response_describe_cluster_broker *item =
            &out->brokers.items[out->brokers.count++];
        wire_struct_defaults(&wire_describe_cluster_response_describe_cluster_broker_shape, item);
        item->broker_id = broker->id;
        item->host = place.host;
        item->port = place.port;
        item->rack = broker->rack;
        item->is_fenced = broker->fenced;
        if (!broker->fenced && kind == IMAGE_BROKER) out->controller_id = broker->id;
    }
}

/* NONE, or what is wrong with the kind of nodes that were asked for on this listener. */
static int16_t cluster_check(struct request *request, int8_t wanted, struct view *message)
{
    bool controller = request->listener->kind == WIRE_CONTROLLER;
    if (controller && !auth_allows(request, AUTH_ALTER, AUTH_CLUSTER, VIEW("kafka-cluster")))
        return KAFKA_CLUSTER_AUTHORIZATION_FAILED;
    if (wanted != ENDPOINT_BROKERS && wanted != ENDPOINT_CONTROLLERS) {
        *message = broker_text(request, "endpoint type %d is not known", wanted);
        return KAFKA_UNSUPPORTED_ENDPOINT_TYPE;
    }
    if (wanted != (controller ? ENDPOINT_CONTROLLERS : ENDPOINT_BROKERS)) {
        *message = controller ? VIEW("this is a controller listener; brokers are described on a "
                                     "broker listener")
                              : VIEW("this is a broker listener; controllers are described on a "
                                     "controller listener");
        return request->version == 0 ? KAFKA_INVALID_REQUEST : KAFKA_MISMATCHED_ENDPOINT_TYPE;
    }
    if (controller && image_metadata_version(node_of(request->shard)->image) < LEVEL_CONTROLLERS) {
        *message = VIEW("controllers are registered from metadata.version 3.7-IV0 on");
        return KAFKA_UNSUPPORTED_VERSION;
    }
    return KAFKA_NONE;
}

void handle_describe_cluster(struct shard *shard, struct request *request)
{
    const struct describe_cluster_request *in = request->message;
    struct describe_cluster_response *out = broker_response(request);
    if (out == NULL) return;
    out->controller_id = -1;
    out->error_code = cluster_check(request, in->endpoint_type, &out->error_message);
    if (out->error_code != KAFKA_NONE) {
        request_error(request, out->error_code);
        request_reply(request, out);
        return;
    }
    out->cluster_id = node_cluster_id(node_of(shard));
    out->endpoint_type = in->endpoint_type;
    if (in->endpoint_type == ENDPOINT_BROKERS) {
        cluster_nodes(request, out, IMAGE_BROKER,
                      request->version >= 2 && in->include_fenced_brokers);
    } else {
        cluster_nodes(request, out, IMAGE_CONTROLLER, true);
        out->controller_id = controller_leader(node_of(shard));
    }
    out->cluster_authorized_operations =
        in->include_cluster_authorized_operations ? AUTH_CLUSTER_OPERATIONS : AUTH_NOT_ASKED;
    request_reply(request, out);
}

/* ---- DescribeTopicPartitions (KIP-966) ------------------------------------------------------- */

static void described_partition(
    struct request *request,
    const struct image_partition *in,
    int32_t index,
    struct describe_topic_partitions_response_describe_topic_partitions_response_partition *out)
{
    wire_struct_defaults(
        &wire_describe_topic_partitions_response_describe_topic_partitions_response_partition_shape,
        out);
    struct image_ids replicas = image_list(in, IMAGE_REPLICAS);
    out->partition_index = index;
    out->error_code = leader_error(request, in->leader);
    out->leader_id = out->error_code == KAFKA_NONE ? in->leader : IMAGE_NO_LEADER;
    out->leader_epoch = in->leader_epoch;
    out->replica_nodes.items = ids_of(request, replicas, -1, &out->replica_nodes.count);
    out->isr_nodes.items = ids_of(request, image_list(in, IMAGE_ISR), -1, &out->isr_nodes.count);
    out->offline_replicas.items = ids_of(request, replicas, 0, &out->offline_replicas.count);
    out->eligible_leader_replicas.items =
        ids_of(request, image_list(in, IMAGE_ELR), -1, &out->eligible_leader_replicas.count);
    out->last_known_elr.items =
        ids_of(request, image_list(in, IMAGE_LAST_KNOWN_ELR), -1, &out->last_known_elr.count);
}

struct described {
    struct describe_topic_partitions_response *out;
    int32_t limit; /* Partitions that may still be described. */
};

/* The next request goes on here. */
static void described_cursor(struct request *request,
                             struct described *d,
                             struct view name,
                             int32_t partition)
{
    d->out->next_cursor = broker_array(request, 1, sizeof(*d->out->next_cursor));
    if (d->out->next_cursor == NULL) return;
    wire_struct_defaults(&wire_describe_topic_partitions_response_cursor_shape,
                         d->out->next_cursor);
    d->out->next_cursor->topic_name = name;
    d->out->next_cursor->partition_index = partition;
}

/* A cursor names one of the topics asked for, and no negative partition. */
static bool described_cursor_fits(const struct describe_topic_partitions_request *in,
                                  const struct view *names,
                                  int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (view_equal(names[i], in->cursor->topic_name)) return in->cursor->partition_index >= 0;
    return false;
}

/* The answer has no error of its own: each topic carries it. */
static void described_refused(struct request *request, struct described *d, struct view name)
{
    struct describe_topic_partitions_response_describe_topic_partitions_response_topic *out =
        &d->out->topics.items[d->out->topics.count++];
    wire_struct_defaults(
        &wire_describe_topic_partitions_response_describe_topic_partitions_response_topic_shape,
        out);
    out->name = name;
    out->error_code = KAFKA_INVALID_REQUEST;
    request_error(request, out->error_code);
}

/* One topic from partition `first` on. False: the limit is reached, the cursor is set. */
static bool described_topic(struct request *request,
                            struct described *d,
                            struct view name,
                            int32_t first)
{
    if (d->limit == 0) {
        described_cursor(request, d, name, first);
        return false;
    }
    const struct image_topic *topic = image_topic(node_of(request->shard)->image, name);
    struct describe_topic_partitions_response_describe_topic_partitions_response_topic *out =
        &d->out->topics.items[d->out->topics.count++];
    wire_struct_defaults(
        &wire_describe_topic_partitions_response_describe_topic_partitions_response_topic_shape,
        out);
    out->name = name;
    out->topic_authorized_operations = AUTH_TOPIC_OPERATIONS;
    if (!auth_allows(request, AUTH_DESCRIBE, AUTH_TOPIC, name))
        out->error_code = KAFKA_TOPIC_AUTHORIZATION_FAILED;
    if (topic == NULL && out->error_code == KAFKA_NONE)
        out->error_code = topic_name_valid(name) ? KAFKA_UNKNOWN_TOPIC_OR_PARTITION
                                                 : KAFKA_INVALID_TOPIC_EXCEPTION;
    if (out->error_code != KAFKA_NONE) {
        request_error(request, out->error_code);
        return true;
    }
    out->topic_id = topic->id;
    out->is_internal = topic_is_internal(name);
    int32_t end = MIN(topic->partition_count, first + d->limit);
    out->partitions.items =
        broker_array(request, (size_t)MAX(end - first, 0), sizeof(*out->partitions.items));
    for (int32_t i = first; out->partitions.items != NULL && i < end; i++)
        if (topic->partitions[i] != NULL)
            described_partition(request, topic->partitions[i], i,
                                &out->partitions.items[out->partitions.count++]);
    d->limit -= MAX(end - first, 0);
    if (end >= topic->partition_count) return true;
    described_cursor(request, d, name, end);
    return false;
}

/* The names asked for, sorted; all topics if none are named. NULL and -1: no memory. */
static struct view *described_names(struct request *request, int32_t *count)
{
    const struct describe_topic_partitions_request *in = request->message;
    *count = in->topics.count;
    if (in->topics.count <= 0) {
        uint32_t all = 0;
        const struct image_object *const *topics =
            image_sorted(node_of(request->shard)->image, IMAGE_TOPIC, &request->arena, &all);
        struct view *names = broker_array(request, all, sizeof(*names));
        for (uint32_t i = 0; names != NULL && i < all; i++)
            names[i] = ((const struct image_topic *)topics[i])->name;
        *count = all > 0 && names == NULL ? -1 : (int32_t)all;
        return names;
    }
    struct view *names = broker_array(request, (size_t)*count, sizeof(*names));
    if (names == NULL) {
        *count = -1;
        return NULL;
    }
    for (int32_t i = 0; i < *count; i++)
        names[i] = in->topics.items[i].name;
    view_sort(names, (uint32_t)*count);
    return names;
}

void handle_describe_topic_partitions(struct shard *shard, struct request *request)
{
    const struct describe_topic_partitions_request *in = request->message;
    struct describe_topic_partitions_response *out = request_response(request);
    int32_t count = 0;
    struct view *names = described_names(request, &count);
    if (out != NULL)
        out->topics.items =
            broker_array(request, (size_t)MAX(count, 1), sizeof(*out->topics.items));
    if (out == NULL || count < 0 || out->topics.items == NULL) {
        request_close(request, "no memory for an answer");
        return;
    }
    int32_t most =
        (int32_t)broker_setting_number(node_of(shard), "max.request.partition.size.limit");
    struct described d = {out, MAX(1, MIN(in->response_partition_limit, most))};
    bool refused = in->cursor != NULL && !described_cursor_fits(in, names, count);
    for (int32_t i = 0; i < count; i++) {
        if (i > 0 && view_equal(names[i], names[i - 1])) continue;
        int32_t first = 0;
        if (in->cursor != NULL && !refused) {
            int order = view_compare(names[i], in->cursor->topic_name);
            if (order < 0) continue;
            if (order == 0) first = in->cursor->partition_index;
        }
        if (refused)
            described_refused(request, &d, names[i]);
        else if (!described_topic(request, &d, names[i], first))
            break;
    }
    request_reply(request, out);
}
