/* producer_ids.c - InitProducerId for idempotent producers, from blocks of the controller.
 *
 * A block of 1,000 ids is asked of the controller; requests that come while it is on its way wait
 * for it. A transactional producer needs a transaction coordinator: until there is one, it is told
 * so. */
#include "broker/broker.h"
#include "broker/controller.h"
#include "gen/allocate_producer_ids_request.h"
#include "gen/allocate_producer_ids_response.h"
#include "gen/init_producer_id_request.h"
#include "gen/init_producer_id_response.h"

/* The block being asked for, one at a time per node. */
struct block_call {
    struct controller_call call;
    struct node *node;
    struct arena arena;
    struct allocate_producer_ids_request in;
    struct allocate_producer_ids_response out;
};

struct id_wait {
    struct list link;
    struct request *request;
    struct init_producer_id_response *response;
};

static void id_give(struct node *node, struct id_wait *wait)
{
    wait->response->producer_id = node->producer_id_next++;
    wait->response->producer_epoch = 0;
    request_reply(wait->request, wait->response);
}

static void ids_refuse(struct node *node, int16_t error)
{
    struct list *link;
    while ((link = list_pop(&node->producer_id_waits)) != NULL) {
        struct id_wait *wait = container_of(link, struct id_wait, link);
        wait->response->error_code = error;
        request_error(wait->request, error);
        request_reply(wait->request, wait->response);
    }
}

static void block_done(struct controller_call *call, int16_t error)
{
    struct block_call *block = container_of(call, struct block_call, call);
    struct node *node = block->node;
    if (error == KAFKA_NONE) error = block->out.error_code;
    node->producer_ids_asked = false;
    if (error == KAFKA_NONE) {
        node->producer_id_next = block->out.producer_id_start;
        node->producer_id_end = block->out.producer_id_start + block->out.producer_id_len;
    }
    arena_free(&block->arena);
    mem_put(node->mem, block, sizeof(*block));
    if (error != KAFKA_NONE) {
        ids_refuse(node,
                   KAFKA_COORDINATOR_LOAD_IN_PROGRESS); /* Retriable for every client, as Kafka. */
        return;
    }
    struct list *link;
    while (node->producer_id_next < node->producer_id_end &&
           (link = list_pop(&node->producer_id_waits)) != NULL)
        id_give(node, container_of(link, struct id_wait, link));
}

static bool block_ask(struct node *node)
{
    if (node->producer_ids_asked) return true;
    struct block_call *block = mem_get(node->mem, sizeof(*block));
    if (block == NULL) return false;
    block->node = node;
    arena_init(&block->arena, node->mem, 0);
    wire_defaults(&wire_allocate_producer_ids_request, &block->in);
    wire_defaults(&wire_allocate_producer_ids_response, &block->out);
    block->in.broker_id = node->options.node_id;
    block->in.broker_epoch = node->broker_epoch;
    block->call = (struct controller_call){
        .api_key = wire_allocate_producer_ids_request.api_key,
        .in = &block->in,
        .out = &block->out,
        .arena = &block->arena,
        .arrived_ms = io_now_ms(node->io),
        .done = block_done,
    };
    node->producer_ids_asked = true;
    controller_submit(node, &block->call);
    return true;
}

static void id_gone(struct request *request)
{
    struct id_wait *wait = request->parked;
    list_remove(&wait->link);
    request_finish(request);
}

void handle_init_producer_id(struct shard *shard, struct request *request)
{
    const struct init_producer_id_request *in = request->message;
    struct node *node = node_of(shard);
    struct init_producer_id_response *out = request_response(request);
    struct id_wait *wait = broker_array(request, 1, sizeof(*wait));
    if (out == NULL || wait == NULL) {
        request_close(request, "no memory for an answer");
        return;
    }
    *wait = (struct id_wait){.request = request, .response = out};
    list_init(&wait->link);
    out->producer_id = -1;
    out->producer_epoch = -1;
    if (!in->transactional_id.null)
        out->error_code = in->transactional_id.size == 0 ? KAFKA_INVALID_REQUEST
                                                         : KAFKA_COORDINATOR_NOT_AVAILABLE;
    else if (request->version >= 3 && (in->producer_id < 0) != (in->producer_epoch < 0))
        out->error_code = KAFKA_INVALID_REQUEST; /* Both are known, or neither. */
    else if (!auth_allows(request, AUTH_IDEMPOTENT_WRITE, AUTH_CLUSTER, VIEW("kafka-cluster")))
        out->error_code = KAFKA_CLUSTER_AUTHORIZATION_FAILED;
    if (out->error_code != KAFKA_NONE) {
        request_error(request, out->error_code);
        request_reply(request, out);
        return;
    }
    if (node->producer_id_next < node->producer_id_end) {
        id_give(node, wait);
        return;
    }
    request->parked = wait;
    request->gone = id_gone;
    list_append(&node->producer_id_waits, &wait->link);
    if (!block_ask(node)) ids_refuse(node, KAFKA_COORDINATOR_LOAD_IN_PROGRESS);
}
