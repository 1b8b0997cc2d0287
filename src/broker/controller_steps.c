/* controller_steps.c - the table of the controller's calls, and the clients' way to it. */
#include "broker/controller_steps.h"

#include <stddef.h>

#include "broker/controller_inside.h"
#include "broker/coordinator.h"
#include "broker/quotas.h"
#include "broker/shards.h"
#include "core/quorum_answer.h"
#include "gen/add_raft_voter_response.h"
#include "gen/allocate_producer_ids_response.h"
#include "gen/alter_partition_reassignments_response.h"
#include "gen/alter_partition_response.h"
#include "gen/assign_replicas_to_dirs_response.h"
#include "gen/broker_heartbeat_request.h"
#include "gen/broker_heartbeat_response.h"
#include "gen/broker_registration_response.h"
#include "gen/controller_registration_response.h"
#include "gen/create_delegation_token_response.h"
#include "gen/create_topics_request.h"
#include "gen/create_topics_response.h"
#include "gen/describe_acls_response.h"
#include "gen/describe_quorum_response.h"
#include "gen/elect_leaders_response.h"
#include "gen/expire_delegation_token_response.h"
#include "gen/list_partition_reassignments_response.h"
#include "gen/remove_raft_voter_response.h"
#include "gen/renew_delegation_token_response.h"
#include "gen/unregister_broker_response.h"
#include "gen/unregister_controller_response.h"
#include "gen/update_features_response.h"
#include "gen/update_raft_voter_response.h"

/* Each step with its own types behind one signature. */
#define STEP(name, function, request, response)                                                    \
    static enum step_result name(struct controller *c, struct step *step, const void *in,          \
                                 void *out)                                                        \
    {                                                                                              \
        const struct request *typed_in = in;                                                       \
        struct response *typed_out = out;                                                          \
        return function(c->cluster, step, typed_in, typed_out);                                    \
    }

STEP(step_create_topics, cluster_create_topics, create_topics_request, create_topics_response)
STEP(step_delete_topics, cluster_delete_topics, delete_topics_request, delete_topics_response)
STEP(step_create_partitions,
     cluster_create_partitions,
     create_partitions_request,
     create_partitions_response)
STEP(step_alter_configs, cluster_alter_configs, alter_configs_request, alter_configs_response)
STEP(step_incremental,
     cluster_incremental_alter_configs,
     incremental_alter_configs_request,
     incremental_alter_configs_response)
STEP(step_elect, cluster_elect_leaders, elect_leaders_request, elect_leaders_response)
STEP(step_reassign,
     cluster_alter_reassignments,
     alter_partition_reassignments_request,
     alter_partition_reassignments_response)
STEP(step_alter_partition,
     cluster_alter_partition,
     alter_partition_request,
     alter_partition_response)
STEP(step_features, cluster_update_features, update_features_request, update_features_response)
STEP(step_client_quotas,
     cluster_alter_client_quotas,
     alter_client_quotas_request,
     alter_client_quotas_response)
STEP(step_scram,
     cluster_alter_scram,
     alter_user_scram_credentials_request,
     alter_user_scram_credentials_response)
STEP(step_register,
     cluster_register_broker,
     broker_registration_request,
     broker_registration_response)
STEP(step_create_acls, cluster_create_acls, create_acls_request, create_acls_response)
STEP(step_delete_acls, cluster_delete_acls, delete_acls_request, delete_acls_response)

/* Every heartbeat of a broker and what is decided on it, for who debugs. */
static enum step_result step_heartbeat(struct controller *c,
                                       struct step *step,
                                       const void *request,
                                       void *response)
{
    const struct broker_heartbeat_request *in = request;
    struct broker_heartbeat_response *out = response;
    const struct say *to = c->node->say;
    enum step_result result = cluster_heartbeat(c->cluster, step, in, out);
    if (result == STEP_DONE && say_on(to, SAY_DEBUG, SAY_IN_CONTROLLER))
        say(to, SAY_DEBUG, SAY_IN_CONTROLLER,
            "heartbeat of broker %d, epoch %lld, which has read offset %lld%s%s: %s, %s, %s%s",
            in->broker_id, (long long)in->broker_epoch, (long long)in->current_metadata_offset,
            in->want_fence ? ", wants to be fenced" : "",
            in->want_shut_down ? ", wants to shut down" : "", kafka_error_name(out->error_code),
            out->is_caught_up ? "caught up" : "behind", out->is_fenced ? "fenced" : "unfenced",
            out->should_shut_down ? ", may stop" : "");
    return result;
}

STEP(step_unregister,
     cluster_unregister_broker,
     unregister_broker_request,
     unregister_broker_response)
STEP(step_producer_ids,
     cluster_allocate_producer_ids,
     allocate_producer_ids_request,
     allocate_producer_ids_response)
STEP(step_register_controller,
     cluster_register_controller,
     controller_registration_request,
     controller_registration_response)
STEP(step_directories,
     cluster_assign_directories,
     assign_replicas_to_dirs_request,
     assign_replicas_to_dirs_response)
STEP(step_unregister_controller,
     cluster_unregister_controller,
     unregister_controller_request,
     unregister_controller_response)

/* What is committed, as every read. */
static enum step_result step_list_reassignments(struct controller *c,
                                                struct step *step,
                                                const void *in,
                                                void *out)
{
    return cluster_list_reassignments(c->node->image, step, in, out);
}

static enum step_result step_describe_acls(struct controller *c,
                                           struct step *step,
                                           const void *in,
                                           void *out)
{
    return cluster_describe_acls(c->cluster, c->node->image, step, in, out);
}

static enum step_result step_describe_quorum(struct controller *c,
                                             struct step *step,
                                             const void *in,
                                             void *out)
{
    struct controller_moment moment;
    (void)controller_event(c, &moment);
    moment.event.version = step->caller.version;
    moment.event.arena = step->arena;
    return quorum_describe(c->quorum, &moment.event, in, out) == QUORUM_ANSWERED ? STEP_DONE
                                                                                 : STEP_E_MEMORY;
}

static enum step_result step_add_voter(struct controller *c,
                                       struct step *step,
                                       const void *in,
                                       void *out)
{
    (void)step;
    quorum_add_voter(c->quorum, in, out);
    return STEP_DONE;
}

static enum step_result step_remove_voter(struct controller *c,
                                          struct step *step,
                                          const void *in,
                                          void *out)
{
    (void)step;
    quorum_remove_voter(c->quorum, in, out);
    return STEP_DONE;
}

static enum step_result step_update_voter(struct controller *c,
                                          struct step *step,
                                          const void *in,
                                          void *out)
{
    struct controller_moment moment;
    (void)step;
    quorum_update_voter(c->quorum, controller_event(c, &moment), in, out);
    return STEP_DONE;
}

/* Tokens that a broker of another kind lets through: no delegation.token.secret.key is honoured. */
#define STEP_NO_TOKENS(name, response)                                                             \
    static enum step_result name(struct controller *c, struct step *step, const void *in,          \
                                 void *out)                                                        \
    {                                                                                              \
        (void)c;                                                                                   \
        (void)step;                                                                                \
        (void)in;                                                                                  \
        ((struct response *)out)->error_code = KAFKA_DELEGATION_TOKEN_AUTH_DISABLED;               \
        return STEP_DONE;                                                                          \
    }

STEP_NO_TOKENS(step_create_token, create_delegation_token_response)
STEP_NO_TOKENS(step_renew_token, renew_delegation_token_response)
STEP_NO_TOKENS(step_expire_token, expire_delegation_token_response)

#define ERROR_OF(response) ((int32_t)offsetof(struct response, error_code))

static const struct controller_step_row rows[] = {
    {19, 0,                   -1,                                               false, step_create_topics        },
    {20, 0,                   -1,                                               true,  step_delete_topics        },
    {29, 0,                   ERROR_OF(describe_acls_response),                 false, step_describe_acls        },
    {30, 0,                   -1,                                               false, step_create_acls          },
    {31, 0,                   -1,                                               false, step_delete_acls          },
    {33, 0,                   -1,                                               true,  step_alter_configs        },
    {37, 0,                   -1,                                               false, step_create_partitions    },
    {38, 0,                   ERROR_OF(create_delegation_token_response),       false, step_create_token         },
    {39, 0,                   ERROR_OF(renew_delegation_token_response),        false, step_renew_token          },
    {40, 0,                   ERROR_OF(expire_delegation_token_response),       false, step_expire_token         },
    {43, 0,                   ERROR_OF(elect_leaders_response),                 false, step_elect                },
    {44, 0,                   -1,                                               true,  step_incremental          },
    {45, 0,                   ERROR_OF(alter_partition_reassignments_response), false, step_reassign             },
    {46, 0,                   ERROR_OF(list_partition_reassignments_response),  false, step_list_reassignments   },
    {49, 0,                   -1,                                               false, step_client_quotas        },
    {51, 0,                   -1,                                               false, step_scram                },
    {55, AUTH_DESCRIBE,       ERROR_OF(describe_quorum_response),               false, step_describe_quorum      },
    {56, AUTH_CLUSTER_ACTION, ERROR_OF(alter_partition_response),               false, step_alter_partition      },
    {57, AUTH_ALTER,          ERROR_OF(update_features_response),               false, step_features             },
    {62, AUTH_CLUSTER_ACTION, ERROR_OF(broker_registration_response),           true,  step_register             },
    {63, AUTH_CLUSTER_ACTION, ERROR_OF(broker_heartbeat_response),              true,  step_heartbeat            },
    {64, AUTH_ALTER,          ERROR_OF(unregister_broker_response),             false, step_unregister           },
    {67, AUTH_CLUSTER_ACTION, ERROR_OF(allocate_producer_ids_response),         false, step_producer_ids         },
    {70, AUTH_CLUSTER_ACTION, ERROR_OF(controller_registration_response),       false,
     step_register_controller                                                                                    },
    {73, AUTH_CLUSTER_ACTION, ERROR_OF(assign_replicas_to_dirs_response),       false, step_directories          },
    {80, AUTH_ALTER,          ERROR_OF(add_raft_voter_response),                false, step_add_voter            },
    {81, AUTH_ALTER,          ERROR_OF(remove_raft_voter_response),             false, step_remove_voter         },
    {82, AUTH_CLUSTER_ACTION, ERROR_OF(update_raft_voter_response),             false, step_update_voter         },
    {94, AUTH_ALTER,          ERROR_OF(unregister_controller_response),         false, step_unregister_controller},
};

const struct controller_step_row *controller_step_find(int16_t api_key)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].api_key == api_key) return &rows[i];
    return NULL;
}

bool controller_step_refuse(const struct controller_step_row *row, void *out, int16_t error)
{
    if (row->error_at < 0) return false;
    memcpy((uint8_t *)out + row->error_at, &error, sizeof(error));
    return true;
}

bool controller_step_allowed(const struct controller_call *call)
{
    const struct controller_step_row *row = controller_step_find(call->api_key);
    assert(row != NULL);
    return call->client == NULL || row->operation == 0 ||
           auth_allows(call->client, (enum auth_operation)row->operation, AUTH_CLUSTER,
                       VIEW("kafka-cluster"));
}

enum step_result controller_step(struct controller *c,
                                 struct step *step,
                                 const struct controller_call *call)
{
    const struct controller_step_row *row = controller_step_find(call->api_key);
    if (!controller_step_allowed(call)) {
        (void)controller_step_refuse(row, call->out, KAFKA_CLUSTER_AUTHORIZATION_FAILED);
        return STEP_DONE;
    }
    return row->step(c, step, call->in, call->out);
}

/* ---- a client's request that the controller answers ------------------------------------------ */

struct forwarded {
    struct controller_call call;
    struct request *request;
    void (*finish)(struct request *request, void *response);
};

static void forwarded_done(struct controller_call *call, int16_t error)
{
    struct forwarded *forwarded = container_of(call, struct forwarded, call);
    struct request *request = forwarded->request;
    if (error != KAFKA_NONE)
        if (!controller_step_refuse(controller_step_find(call->api_key), call->out, error)) {
            /* Clients ask for the metadata anew when a connection ends, and come back. */
            request_close(request, "the control part is not serving");
            return;
        }
    if (error != KAFKA_NONE) request_error(request, error);
    forwarded->finish(request, call->out);
}

void controller_forward(struct request *request,
                        const void *in,
                        void (*finish)(struct request *request, void *response))
{
    struct forwarded *forwarded = broker_array(request, 1, sizeof(*forwarded));
    void *out = request_response(request);
    if (forwarded == NULL || out == NULL) {
        request_close(request, "no memory for a request to the control part");
        return;
    }
    forwarded->request = request;
    forwarded->finish = finish;
    forwarded->call = (struct controller_call){
        .api_key = request->api->key,
        .version = request->version,
        .in = in,
        .out = out,
        .arena = &request->arena,
        .arrived_ms = request->arrived_ms,
        .client = request,
        .forwarded = request->listener->kind == WIRE_BROKER,
        .done = forwarded_done,
    };
    controller_submit(node_of(request->shard), &forwarded->call);
}

void handle_forwarded(struct shard *shard, struct request *request)
{
    (void)shard;
    controller_forward(request, request->message, request_reply);
}

/* ---- topics that a Metadata request brings into being ---------------------------------------- */

#define CREATING_MAX 1000u /* Under way at once; more are asked for again by their clients. */

struct creation {
    struct controller_call call;
    struct list link; /* In node->creating. */
    struct node *node;
    struct arena arena;
    struct create_topics_request in;
    struct create_topics_response out;
    struct create_topics_request_creatable_topic topic;
    struct view principal, client_id; /* Who asked; null: nobody. */
};

static void creation_done(struct controller_call *call, int16_t error)
{
    struct creation *creation = container_of(call, struct creation, call);
    struct node *node = creation->node;
    if (error == KAFKA_NONE && creation->out.topics.count == 1) {
        int16_t code = creation->out.topics.items[0].error_code;
        if (code == KAFKA_NONE && !creation->principal.null)
            quotas_mutated(node, creation->principal, creation->client_id,
                           (uint32_t)creation->out.topics.items[0].num_partitions);
        char name[2 * TOPIC_NAME_MAX];
        bool told = code == KAFKA_KAFKA_STORAGE_ERROR || code == KAFKA_REQUEST_TIMED_OUT;
        if (code != KAFKA_NONE && code != KAFKA_TOPIC_ALREADY_EXISTS && !told)
            say(node->say, SAY_WARN, SAY_IN_CONTROLLER,
                "topic %s could not be created on its first use: %s",
                say_bytes(creation->topic.name, name, sizeof(name)), kafka_error_name(code));
    }
    list_remove(&creation->link);
    arena_free(&creation->arena);
    mem_put(node->mem, creation, sizeof(*creation));
}

static bool creation_under_way(const struct node *node, struct view topic, uint32_t *count)
{
    *count = 0;
    list_foreach (link, &node->creating) {
        (*count)++;
        if (view_equal(container_of(link, struct creation, link)->topic.name, topic)) return true;
    }
    return false;
}

/* The topic of offsets has settings of its own. Without one in the file its replicas are as many as
 * there are brokers, at most three: a node that is alone needs no setting. */
static bool creation_of_offsets(struct creation *creation)
{
    struct node *node = creation->node;
    static const char *const names[] = {"cleanup.policy", "compression.type", "segment.bytes"};
    struct view values[] = {VIEW("compact"), VIEW("producer"),
                            broker_setting(node, VIEW("offsets.topic.segment.bytes"))};
    struct create_topics_request_creatable_topic *topic = &creation->topic;
    struct view factor = node->options.setting(node->options.setting_context,
                                               VIEW("offsets.topic.replication.factor"));
    int64_t replicas = broker_setting_number(node, "offsets.topic.replication.factor");
    if (factor.null) replicas = MIN(replicas, (int64_t)image_count(node->image, IMAGE_BROKER));
    topic->num_partitions = (int32_t)broker_setting_number(node, "offsets.topic.num.partitions");
    topic->replication_factor = (int16_t)MAX(replicas, 1);
    topic->configs.items =
        arena_get(&creation->arena, ARRAY_SIZE(names) * sizeof(*topic->configs.items));
    if (topic->configs.items == NULL) return false;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct create_topics_request_creatable_topic_config *item =
            &topic->configs.items[topic->configs.count++];
        wire_struct_defaults(&wire_create_topics_request_creatable_topic_config_shape, item);
        item->name = view_of_string(names[i]);
        item->value = arena_copy(&creation->arena, values[i]);
    }
    return !creation->arena.failed;
}

void controller_auto_create(struct node *node, struct view topic, const struct request *client)
{
    uint32_t count;
    if (node->index != 0) {
        shards_auto_create(node, topic);
        return;
    }
    if (creation_under_way(node, topic, &count) || count >= CREATING_MAX) return;
    struct creation *creation = mem_get(node->mem, sizeof(*creation));
    if (creation == NULL) return;
    creation->node = node;
    arena_init(&creation->arena, node->mem, 0);
    wire_defaults(&wire_create_topics_request, &creation->in);
    wire_defaults(&wire_create_topics_response, &creation->out);
    wire_struct_defaults(&wire_create_topics_request_creatable_topic_shape, &creation->topic);
    creation->topic.name = arena_copy(&creation->arena, topic);
    creation->principal = creation->client_id = VIEW_NULL;
    if (client != NULL) {
        creation->principal = arena_copy(&creation->arena, client->principal);
        creation->client_id = arena_copy(&creation->arena, client->client_id);
    }
    creation->topic.num_partitions = -1;
    creation->topic.replication_factor = -1;
    creation->in.topics.items = &creation->topic;
    creation->in.topics.count = 1;
    creation->in.timeout_ms = 30000;
    creation->call = (struct controller_call){
        .api_key = wire_create_topics_request.api_key,
        .version = wire_create_topics_request.version_max,
        .in = &creation->in,
        .out = &creation->out,
        .arena = &creation->arena,
        .arrived_ms = io_now_ms(node->io),
        .done = creation_done,
    };
    bool made = !creation->topic.name.null;
    if (made && view_is(topic, COORDINATOR_TOPIC)) made = creation_of_offsets(creation);
    if (!made) {
        arena_free(&creation->arena);
        mem_put(node->mem, creation, sizeof(*creation));
        return;
    }
    list_append(&node->creating, &creation->link);
    controller_submit(node, &creation->call);
}
