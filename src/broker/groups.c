/* groups.c - the requests of group members: FindCoordinator, JoinGroup, SyncGroup, Heartbeat,
 * LeaveGroup. Each asks a step of core/group.h and holds the answer (coordinator.h).
 *
 * Order of checks before the group: authorization, is the coordinator serving, the group's id, the
 * partition's state. */
#include "broker/broker.h"
#include "broker/controller.h"
#include "broker/coordinator.h"
#include "broker/group_regex.h"
#include "core/config.h"
#include "core/consumer_group.h"
#include "core/join.h"
#include "gen/consumer_group_heartbeat_request.h"
#include "gen/consumer_group_heartbeat_response.h"
#include "gen/find_coordinator_request.h"
#include "gen/find_coordinator_response.h"
#include "gen/heartbeat_request.h"
#include "gen/heartbeat_response.h"
#include "gen/join_group_request.h"
#include "gen/join_group_response.h"
#include "gen/leave_group_request.h"
#include "gen/leave_group_response.h"
#include "gen/sync_group_request.h"
#include "gen/sync_group_response.h"
#include "net/connection.h"

/* ---- before the group ------------------------------------------------------------------------ */

/* NONE and the partition, or what every request of members answers. */
static enum kafka_error member_gate(struct request *request,
                                    struct view group,
                                    struct coordinator_part **part)
{
    enum kafka_error error = coordinator_find(node_of(request->shard), group, part);
    if (!auth_allows(request, AUTH_READ, AUTH_GROUP, group))
        return KAFKA_GROUP_AUTHORIZATION_FAILED;
    if (error == KAFKA_COORDINATOR_NOT_AVAILABLE) return error;
    return group.null || group.size == 0 ? KAFKA_INVALID_GROUP_ID : error;
}

/* ---- JoinGroup, SyncGroup -------------------------------------------------------------------- */

static void join_refused(struct coordinator_wait *call, enum kafka_error error, struct view id)
{
    struct join_group_response *out = call->wait.join;
    wire_defaults(&wire_join_group_response, out);
    out->error_code = (int16_t)error;
    out->generation_id = -1;
    out->protocol_name = call->request->version >= 7 ? VIEW_NULL : VIEW_EMPTY;
    out->leader = VIEW_EMPTY;
    out->member_id = id;
}

static void join_done(struct coordinator_hold *hold, enum kafka_error error)
{
    struct coordinator_wait *call = container_of(hold, struct coordinator_wait, hold);
    struct request *request = call->request;
    const struct join_group_request *in = request->message;
    if (error != KAFKA_NONE) join_refused(call, error, in->member_id);
    if (call->wait.join->error_code != KAFKA_NONE)
        request_error(request, call->wait.join->error_code);
    request_reply(request, call->wait.join);
}

static void sync_refused(struct coordinator_wait *call, enum kafka_error error)
{
    wire_defaults(&wire_sync_group_response, call->wait.sync);
    call->wait.sync->error_code = (int16_t)error;
    call->wait.sync->protocol_type = call->wait.sync->protocol_name = VIEW_NULL;
}

static void sync_done(struct coordinator_hold *hold, enum kafka_error error)
{
    struct coordinator_wait *call = container_of(hold, struct coordinator_wait, hold);
    struct request *request = call->request;
    if (error != KAFKA_NONE) sync_refused(call, error);
    if (call->wait.sync->error_code != KAFKA_NONE)
        request_error(request, call->wait.sync->error_code);
    request_reply(request, call->wait.sync);
}

static struct coordinator_wait *wait_new(struct request *request)
{
    struct coordinator_wait *call = broker_array(request, 1, sizeof(*call));
    void *response = request_response(request);
    if (call == NULL || response == NULL) {
        request_close(request, "no memory for an answer to a group's member");
        return NULL;
    }
    bool joins = request->api->key == wire_join_group_request.api_key;
    call->request = request;
    call->hold.done = joins ? join_done : sync_done;
    call->wait.arena = &request->arena;
    call->wait.version = request->version;
    call->wait.join = joins ? response : NULL;
    call->wait.sync = joins ? NULL : response;
    return call;
}

/* The answer is there; nothing is before it. */
static void wait_end(struct coordinator_wait *call)
{
    call->hold.done(&call->hold, KAFKA_NONE);
}

static struct view client_host(struct request *request)
{
    const char *host = request->peer.host != NULL ? request->peer.host : "";
    return JOIN(&request->arena, VIEW("/"), view_of_string(host));
}

void handle_join_group(struct shard *shard, struct request *request)
{
    const struct join_group_request *in = request->message;
    struct coordinator_part *part;
    struct coordinator_wait *call = wait_new(request);
    (void)shard;
    if (call == NULL) return;
    enum kafka_error error = member_gate(request, in->group_id, &part);
    if (error != KAFKA_NONE) {
        join_refused(call, error, in->member_id);
        wait_end(call);
        return;
    }
    struct step step;
    struct group_join join = {
        .request = in,
        .client_id = request->client_id,
        .client_host = client_host(request),
    };
    request->patience_ms = MAX(in->rebalance_timeout_ms, in->session_timeout_ms);
    enum step_result result = STEP_MORE;
    while (result == STEP_MORE && error == KAFKA_NONE) {
        coordinator_step(part, &step, request);
        result = group_join(coordinator_groups(part), &step, &join, &call->wait);
        if (result == STEP_E_MEMORY) break;
        error = coordinator_commit(part, &step);
        if (result == STEP_DONE) return; /* A failure is in the answer. */
    }
    join_refused(call, error == KAFKA_NONE ? KAFKA_COORDINATOR_NOT_AVAILABLE : error,
                 in->member_id);
    wait_end(call);
}

void handle_sync_group(struct shard *shard, struct request *request)
{
    const struct sync_group_request *in = request->message;
    struct coordinator_part *part;
    struct coordinator_wait *call = wait_new(request);
    (void)shard;
    if (call == NULL) return;
    bool named = !in->protocol_type.null && !in->protocol_name.null;
    enum kafka_error error = request->version >= 5 && !named
                                 ? KAFKA_INCONSISTENT_GROUP_PROTOCOL
                                 : member_gate(request, in->group_id, &part);
    if (error != KAFKA_NONE) {
        sync_refused(call, error);
        wait_end(call);
        return;
    }
    struct step step;
    coordinator_step(part, &step, request);
    if (group_sync(coordinator_groups(part), &step, in, &call->wait) == STEP_DONE) {
        (void)!coordinator_commit(part, &step);
        return;
    }
    sync_refused(call, KAFKA_COORDINATOR_NOT_AVAILABLE);
    wait_end(call);
}

/* ---- Heartbeat, LeaveGroup ------------------------------------------------------------------- */

struct simple_call {
    struct coordinator_hold hold;
    struct request *request;
    void *response;
    int16_t *error_code; /* In the response. */
};

static void simple_done(struct coordinator_hold *hold, enum kafka_error error)
{
    struct simple_call *call = container_of(hold, struct simple_call, hold);
    if (error != KAFKA_NONE) {
        wire_defaults(call->request->api->response, call->response);
        *call->error_code = (int16_t)error;
    }
    if (*call->error_code != KAFKA_NONE) request_error(call->request, *call->error_code);
    request_reply(call->request, call->response);
}

static struct simple_call *simple_new(struct request *request)
{
    struct simple_call *call = broker_array(request, 1, sizeof(*call));
    if (call != NULL) call->response = request_response(request);
    if (call == NULL || call->response == NULL) {
        request_close(request, "no memory for an answer to a group's member");
        return NULL;
    }
    call->request = request;
    call->hold.done = simple_done;
    return call;
}

void handle_heartbeat(struct shard *shard, struct request *request)
{
    const struct heartbeat_request *in = request->message;
    struct coordinator_part *part;
    struct simple_call *call = simple_new(request);
    (void)shard;
    if (call == NULL) return;
    struct heartbeat_response *out = call->response;
    call->error_code = &out->error_code;
    enum kafka_error error = member_gate(request, in->group_id, &part);
    if (error != KAFKA_NONE) {
        /* Nothing is known of the group while it is loaded: the member is let live. */
        bool loading = error == KAFKA_COORDINATOR_LOAD_IN_PROGRESS;
        out->error_code = (int16_t)(loading ? KAFKA_NONE : error);
        simple_done(&call->hold, KAFKA_NONE);
        return;
    }
    struct group_beat beat = {
        .group_id = in->group_id,
        .member_id = in->member_id,
        .instance_id = request->version >= 3 ? in->group_instance_id : VIEW_NULL,
        .generation = in->generation_id,
        .arrived_ms = request->arrived_ms,
    };
    out->error_code = (int16_t)group_heartbeat(coordinator_groups(part), &beat);
    coordinator_beaten(part);
    coordinator_hold(part, &call->hold);
}

void handle_leave_group(struct shard *shard, struct request *request)
{
    const struct leave_group_request *in = request->message;
    struct coordinator_part *part;
    struct simple_call *call = simple_new(request);
    (void)shard;
    if (call == NULL) return;
    struct leave_group_response *out = call->response;
    call->error_code = &out->error_code;
    enum kafka_error error = member_gate(request, in->group_id, &part);
    struct step step;
    bool consumer = false;
    if (error == KAFKA_NONE) {
        consumer = group_is_consumer(coordinator_groups(part), in->group_id);
        coordinator_step(part, &step, request);
        if (group_leave(coordinator_groups(part), &step, in, out) != STEP_DONE)
            error = KAFKA_COORDINATOR_NOT_AVAILABLE;
    }
    if (error != KAFKA_NONE) {
        simple_done(&call->hold, error);
        return;
    }
    /* That nobody is left in a classic group is logged as well as may be: its members are gone
     * either way. */
    error = coordinator_commit(part, &step);
    if (consumer && error != KAFKA_NONE)
        simple_done(&call->hold, error);
    else
        coordinator_hold(part, &call->hold);
}

/* ---- ConsumerGroupHeartbeat ------------------------------------------------------------------ */

bool broker_consumer_groups(struct node *node)
{
    if (node->consumer_groups_seen != node->config_changes) {
        struct view protocols = broker_setting(node, VIEW("group.coordinator.rebalance.protocols"));
        node->consumer_groups_allowed = config_list_has(protocols, VIEW("consumer"));
        node->consumer_groups_seen = node->config_changes;
    }
    return node->consumer_groups_allowed &&
           image_feature_level(node->image, VIEW("group.version")) >= 1;
}

static enum kafka_error consumer_gate(struct request *request, struct coordinator_part **part)
{
    const struct consumer_group_heartbeat_request *in = request->message;
    struct node *node = node_of(request->shard);
    if (!broker_consumer_groups(node)) return KAFKA_UNSUPPORTED_VERSION;
    if (!auth_allows(request, AUTH_READ, AUTH_GROUP, in->group_id))
        return KAFKA_GROUP_AUTHORIZATION_FAILED;
    for (int32_t i = 0; i < in->subscribed_topic_names.count; i++)
        if (!auth_allows(request, AUTH_DESCRIBE, AUTH_TOPIC, in->subscribed_topic_names.items[i]))
            return KAFKA_TOPIC_AUTHORIZATION_FAILED;
    return coordinator_find(node, in->group_id, part);
}

static enum kafka_error consumer_step(struct request *request,
                                      struct coordinator_part *part,
                                      struct consumer_group_heartbeat_response *out)
{
    struct step step;
    struct consumer_group_beat beat = {
        .request = request->message,
        .client_id = request->client_id,
        .client_host = client_host(request),
        .arrived_ms = request->arrived_ms,
    };
    bool fresh;
    beat.regex_fault = group_regex_fault(request, part, &fresh);
    coordinator_step(part, &step, request);
    if (consumer_group_heartbeat(coordinator_groups(part), &step, &beat, out) != STEP_DONE)
        return KAFKA_COORDINATOR_NOT_AVAILABLE;
    enum kafka_error error = coordinator_commit(part, &step);
    if (error == KAFKA_NONE && out->error_code == KAFKA_NONE)
        group_regex_resolve(request, part, &step, fresh);
    return error;
}

void handle_consumer_group_heartbeat(struct shard *shard, struct request *request)
{
    struct coordinator_part *part;
    struct simple_call *call = simple_new(request);
    (void)shard;
    if (call == NULL) return;
    struct consumer_group_heartbeat_response *out = call->response;
    call->error_code = &out->error_code;
    enum kafka_error error = consumer_gate(request, &part);
    if (error == KAFKA_NONE) error = consumer_step(request, part, out);
    if (error != KAFKA_NONE)
        simple_done(&call->hold, error);
    else
        coordinator_hold(part, &call->hold);
}

/* ---- FindCoordinator ------------------------------------------------------------------------- */

enum coordinator_key { KEY_GROUP = 0, KEY_TRANSACTION = 1, KEY_SHARE = 2 };

static enum kafka_error find_group(struct request *request,
                                   struct view key,
                                   struct find_coordinator_response_coordinator *out)
{
    struct node *node = node_of(request->shard);
    const struct image_topic *topic = image_topic(node->image, VIEW(COORDINATOR_TOPIC));
    if (topic == NULL) {
        controller_auto_create(node, VIEW(COORDINATOR_TOPIC), NULL);
        return KAFKA_COORDINATOR_NOT_AVAILABLE;
    }
    const struct image_partition *state = image_partition(
        topic, (int32_t)coordinator_partition(key, (uint32_t)topic->partition_count));
    struct metadata_place place;
    if (state == NULL || state->leader == IMAGE_NO_LEADER) return KAFKA_COORDINATOR_NOT_AVAILABLE;
    const struct image_node *broker = image_broker(node->image, state->leader);
    if (broker == NULL || broker->fenced || !metadata_place(request, broker, &place))
        return KAFKA_COORDINATOR_NOT_AVAILABLE;
    out->node_id = state->leader;
    out->host = place.host;
    out->port = place.port;
    return KAFKA_NONE;
}

static enum kafka_error find_one(struct request *request,
                                 struct view key,
                                 struct find_coordinator_response_coordinator *out)
{
    const struct find_coordinator_request *in = request->message;
    switch (in->key_type) {
    case KEY_GROUP:
        if (!auth_allows(request, AUTH_DESCRIBE, AUTH_GROUP, key))
            return KAFKA_GROUP_AUTHORIZATION_FAILED;
        return find_group(request, key, out);
    case KEY_TRANSACTION:
        if (!auth_allows(request, AUTH_DESCRIBE, AUTH_TRANSACTIONAL_ID, key))
            return KAFKA_TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
        return KAFKA_COORDINATOR_NOT_AVAILABLE; /* This build has none. */
    default: return KAFKA_INVALID_REQUEST;      /* Nor one of share groups. */
    }
}

static struct view error_text(int16_t code)
{
    assert(code >= -1);
    assert((uint32_t)(code + 1) < kafka_error_count);
    return code == KAFKA_NONE ? VIEW("NONE") : view_of_string(kafka_errors[code + 1].message);
}

static void find_fill(struct request *request,
                      struct view key,
                      struct find_coordinator_response_coordinator *out)
{
    wire_struct_defaults(&wire_find_coordinator_response_coordinator_shape, out);
    out->key = key;
    out->node_id = -1;
    out->host = VIEW_EMPTY;
    out->port = -1;
    out->error_code = (int16_t)find_one(request, key, out);
    if (out->error_code == KAFKA_NONE) return;
    out->error_message = error_text(out->error_code);
    request_error(request, out->error_code);
}

void handle_find_coordinator(struct shard *shard, struct request *request)
{
    const struct find_coordinator_request *in = request->message;
    struct find_coordinator_response *out = request_response(request);
    int32_t count = request->version >= 4 ? MAX(in->coordinator_keys.count, 0) : 1;
    struct find_coordinator_response_coordinator *items =
        broker_array(request, (size_t)count, sizeof(*items));
    (void)shard;
    if (out == NULL || (count > 0 && items == NULL)) {
        request_close(request, "no memory for a coordinator's place");
        return;
    }
    for (int32_t i = 0; i < count; i++)
        find_fill(request, request->version >= 4 ? in->coordinator_keys.items[i] : in->key,
                  &items[i]);
    if (request->version >= 4) {
        out->coordinators.items = items;
        out->coordinators.count = count;
    } else {
        out->error_code = items[0].error_code;
        out->error_message = error_text(items[0].error_code);
        out->node_id = items[0].node_id;
        out->host = items[0].host;
        out->port = items[0].port;
    }
    request_reply(request, out);
}
