/* produce.c - Produce: append what came, answer when its acks have it.
 *
 * The batches go from the receive buffer to the file as they are. Each partition of the request is
 * a small state machine: OPENING (its log is not in memory yet, or is at its cap), WAITING
 * (appended, its end not yet reached), DONE. What came first to a partition is appended first. The
 * request is answered when all are DONE or its timeout is over. Order of checks and codes: Kafka's
 * ReplicaManager and KafkaApis (docs/log.md). acks=1 waits for the written end, acks=all for the
 * high watermark, which counts this node by its durable end. */
#include "broker/broker.h"
#include "gen/produce_request.h"
#include "gen/produce_response.h"
#include "record/batch.h"

#define PRODUCE_FIRST_OF_BATCHES 3

struct produce;

enum produce_state { PRODUCE_NEW, PRODUCE_OPENING, PRODUCE_WAITING, PRODUCE_DONE };

struct produce_part {
    struct replica_wait wait;
    struct list opening; /* In replica->opening. */
    struct list busy;    /* In node->produces_busy: its directory has too much unsynced. */
    struct produce *produce;
    struct replica *replica;
    struct view records;
    int64_t offset_end; /* What has to be reached. */
    enum produce_state state;
    struct produce_response_partition_produce_response *out;
};

struct produce {
    struct request *request;
    struct produce_response *response;
    struct produce_part *parts;
    uint32_t part_count;
    uint32_t pending;
    int16_t acks;
    struct shard_timer timeout;
};

static void produce_become(struct produce_part *part, enum produce_state state)
{
    if (state != PRODUCE_OPENING)
        list_remove(&part->opening);
    else if (part->state != PRODUCE_OPENING)
        list_append(&part->replica->opening, &part->opening);
    part->state = state;
}

/* Does an earlier one wait for the log to open? It may be open, and they are about to be told. */
static bool produce_overtakes(const struct produce_part *part)
{
    const struct list *opening = &part->replica->opening;
    return !list_empty(opening) && opening->next != &part->opening;
}

static void produce_fail(struct produce_part *part, int16_t error)
{
    produce_become(part, PRODUCE_DONE);
    part->out->error_code = error;
    part->out->base_offset = -1;
    part->out->log_append_time_ms = -1;
    request_error(part->produce->request, error);
}

/* ---- before the log -------------------------------------------------------------------------- */

static bool produce_is_transactional(struct view records)
{
    struct batch_header header;
    return !records.null && batch_header_load(records, &header) == RECORD_OK && header.magic == 2 &&
           (header.attributes & BATCH_TRANSACTIONAL);
}

/* The first batch's frame, before anything is known of the replica. Old versions bring message
 * sets, which the log looks at. */
static int16_t produce_check_frame(struct produce_part *part)
{
    struct batch_header header;
    if (part->produce->request->version < PRODUCE_FIRST_OF_BATCHES) return KAFKA_NONE;
    if (part->records.null) return KAFKA_INVALID_RECORD;
    enum record_fault fault = batch_header_load(part->records, &header);
    if (fault == RECORD_OK) return header.magic == 2 ? KAFKA_NONE : KAFKA_INVALID_RECORD;
    int16_t error = record_fault_error(fault);
    if (fault == RECORD_MAGIC || (fault == RECORD_LENGTH && header.length < BATCH_LENGTH_MIN))
        part->out->error_message = view_of_string(record_fault_text(fault));
    return error;
}

/* NONE and `part->replica`, or the partition's error. */
static int16_t produce_check(struct node *node,
                             struct produce_part *part,
                             const struct image_topic *topic,
                             struct view name,
                             int32_t partition)
{
    const struct request *request = part->produce->request;
    if (!auth_allows(request, AUTH_WRITE, AUTH_TOPIC, name))
        return KAFKA_TOPIC_AUTHORIZATION_FAILED;
    if (topic == NULL || image_partition(topic, partition) == NULL)
        return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    int16_t error = produce_check_frame(part);
    if (error != KAFKA_NONE) return error;
    /* A transaction needs its coordinator to have added the partition; there is none here yet. */
    const struct produce_request *in = request->message;
    if (produce_is_transactional(part->records))
        return in->transactional_id.null ? KAFKA_TRANSACTIONAL_ID_AUTHORIZATION_FAILED
                                         : KAFKA_INVALID_TXN_STATE;
    if (topic_is_internal(name) && !view_is(request->client_id, "__admin_client"))
        return KAFKA_INVALID_TOPIC_EXCEPTION;
    error = replica_leader(node, topic, partition, -1, &part->replica);
    if (error != KAFKA_NONE) return error;
    if (part->replica->began && part->produce->acks == -1 &&
        !partition_enough_in_sync(part->replica->state, replica_min_insync(part->replica)))
        return KAFKA_NOT_ENOUGH_REPLICAS;
    return KAFKA_NONE;
}

/* ---- the log's word -------------------------------------------------------------------------- */

static void produce_record_errors(struct produce_part *part, const struct log_appended *appended)
{
    struct request *request = part->produce->request;
    if (request->version < 8 || appended->error_count == 0) return;
    part->out->record_errors.items = broker_array(request, (size_t)appended->error_count,
                                                  sizeof(*part->out->record_errors.items));
    if (part->out->record_errors.items == NULL) return;
    part->out->record_errors.count = appended->error_count;
    for (int32_t i = 0; i < appended->error_count; i++) {
        struct produce_response_batch_index_and_error_message *item =
            &part->out->record_errors.items[i];
        item->batch_index = appended->errors[i].index;
        item->batch_index_error_message =
            view_of_string(record_fault_text(appended->errors[i].fault));
    }
    part->out->error_message =
        broker_text(request, "%d of the batch's records do not satisfy the topic's rules: %s",
                    appended->error_total, record_fault_text(appended->fault));
}

static void produce_refused(struct produce_part *part,
                            int result,
                            const struct log_appended *appended)
{
    produce_fail(part, result == LOG_E_INVALID ? record_fault_error(appended->fault)
                                               : replica_error(result));
    switch (part->out->error_code) {
    case KAFKA_CORRUPT_MESSAGE:
    case KAFKA_MESSAGE_TOO_LARGE:
    case KAFKA_RECORD_LIST_TOO_LARGE:
    case KAFKA_UNSUPPORTED_COMPRESSION_TYPE: /* Of the request's version: the log is not asked. */
    case KAFKA_NOT_LEADER_OR_FOLLOWER:
    case KAFKA_KAFKA_STORAGE_ERROR: break;
    case KAFKA_INVALID_RECORD: /* That it is not one whole batch is seen before the log is asked. */
        if (appended->fault == RECORD_NO_BATCH || appended->fault == RECORD_SECOND_BATCH) break;
        __attribute__((fallthrough));
    default: part->out->log_start_offset = log_start(part->replica->log);
    }
    if (result == LOG_E_INVALID) produce_record_errors(part, appended);
}

static bool produce_reached(const struct produce_part *part)
{
    const struct log *log = part->replica->log;
    if (part->produce->acks == -1) return log_high_watermark(log) >= part->offset_end;
    return log_end_written(log) >= part->offset_end;
}

static void produce_appended(struct produce_part *part, const struct log_appended *appended)
{
    part->out->error_code = KAFKA_NONE;
    bool nothing = appended->offset_first == appended->offset_end; /* No whole message was there. */
    part->out->base_offset = nothing ? -1 : appended->offset_first;
    part->out->log_append_time_ms = appended->append_time_ms;
    part->out->log_start_offset = log_start(part->replica->log);
    part->offset_end = appended->offset_end;
    bool done = part->produce->acks == 0 || produce_reached(part);
    produce_become(part, done ? PRODUCE_DONE : PRODUCE_WAITING);
}

/* Try the append; the part is OPENING, WAITING or DONE afterwards. */
static void produce_append(struct produce_part *part)
{
    struct request *request = part->produce->request;
    struct node *node = part->replica->node;
    int result = replica_open(part->replica);
    if (result == LOG_OK && partition_role(part->replica->state) != PARTITION_LEADER) {
        produce_fail(part, KAFKA_NOT_LEADER_OR_FOLLOWER);
        return;
    }
    struct log_appended appended = {0};
    list_remove(&part->busy);
    /* Nobody overtakes who waits: a smaller append might fit where an earlier one did not. */
    if (result == LOG_OK && !list_empty(&node->produces_busy)) result = LOG_E_BUSY;
    if (result == LOG_OK && produce_overtakes(part)) result = LOG_LATER;
    if (result == LOG_OK) {
        struct log_append in = {
            .buf = request->buf,
            .at_bytes = (uint32_t)(part->records.data - request->buf->data),
            .size_bytes = part->records.size,
            .leader_epoch = partition_leader_epoch(part->replica->state),
            .wall_ms = io_wall_ms(node->io),
            .origin = LOG_CLIENT,
            .produce_version = request->version,
            .request = &request->arena,
        };
        result = log_append(part->replica->log, &in, &appended);
    }
    if (result == LOG_E_BUSY) list_append(&node->produces_busy, &part->busy);
    if (result == LOG_OK || result == LOG_DUPLICATE)
        produce_appended(part, &appended);
    else if (result == LOG_LATER || result == LOG_E_BUSY)
        produce_become(part, PRODUCE_OPENING);
    else
        produce_refused(part, result, &appended);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void produce_detach(struct produce *produce)
{
    for (uint32_t i = 0; i < produce->part_count; i++) {
        replica_wait_end(&produce->parts[i].wait);
        list_remove(&produce->parts[i].busy);
        produce_become(&produce->parts[i], PRODUCE_DONE);
    }
    shard_timer_cancel(&produce->timeout);
}

static void produce_finish(struct produce *produce)
{
    struct request *request = produce->request;
    produce_detach(produce);
    if (produce->acks != 0) {
        request_reply(request, produce->response);
        return;
    }
    for (uint32_t i = 0; i < produce->part_count; i++) {
        if (produce->parts[i].out->error_code == KAFKA_NONE) continue;
        /* A client that asked for no answer learns of an error by the end of its connection. */
        request_close(request, "an acks=0 produce failed");
        return;
    }
    request_finish(request);
}

/* A part that waits may be done: with the last one the request is. */
static void produce_settle(struct produce_part *part)
{
    if (part->state != PRODUCE_DONE) return;
    replica_wait_end(&part->wait);
    list_remove(&part->busy);
    if (--part->produce->pending == 0) produce_finish(part->produce);
}

static void produce_wake(struct replica_wait *wait, struct replica *replica, int events)
{
    struct produce_part *part = container_of(wait, struct produce_part, wait);
    if (events & LOG_EVENT_FAILED) {
        produce_fail(part, replica->log == NULL ? KAFKA_NOT_LEADER_OR_FOLLOWER
                                                : KAFKA_KAFKA_STORAGE_ERROR);
    } else if (part->state == PRODUCE_OPENING) {
        produce_append(part);
    } else if (partition_role(replica->state) != PARTITION_LEADER) {
        produce_fail(part, KAFKA_NOT_LEADER_OR_FOLLOWER);
    } else if (produce_reached(part)) {
        produce_become(part, PRODUCE_DONE);
    }
    produce_settle(part);
}

void produce_turn_end(struct node *node)
{
    struct list again;
    list_init(&again);
    struct list *link;
    while ((link = list_pop(&node->produces_busy)) != NULL)
        list_append(&again, link);
    while ((link = list_pop(&again)) != NULL) {
        struct produce_part *part = container_of(link, struct produce_part, busy);
        produce_append(part);
        produce_settle(part);
    }
}

static void produce_timed_out(struct produce *produce)
{
    for (uint32_t i = 0; i < produce->part_count; i++) {
        struct produce_part *part = &produce->parts[i];
        if (part->state == PRODUCE_DONE) continue;
        bool stays = part->state == PRODUCE_WAITING; /* The records: where they are is told. */
        int64_t base_offset = part->out->base_offset, ms = part->out->log_append_time_ms;
        produce_fail(part, KAFKA_REQUEST_TIMED_OUT);
        if (stays) {
            part->out->base_offset = base_offset;
            part->out->log_append_time_ms = ms;
        }
        replica_wait_end(&part->wait);
    }
    produce_finish(produce);
}

static void produce_expired(struct shard *shard, struct shard_timer *timer)
{
    (void)shard;
    produce_timed_out(container_of(timer, struct produce, timeout));
}

static void produce_gone(struct request *request)
{
    struct produce *produce = request->parked;
    produce_detach(produce);
    request_finish(request);
}

/* ---- the request ----------------------------------------------------------------------------- */

static void produce_part_begin(struct node *node,
                               struct produce_part *part,
                               const struct image_topic *topic,
                               struct view name,
                               const struct produce_request_partition_produce_data *in)
{
    list_init(&part->wait.link);
    list_init(&part->opening);
    list_init(&part->busy);
    part->wait.wake = produce_wake;
    part->records = in->records;
    if (in->records.null && part->produce->request->version < PRODUCE_FIRST_OF_BATCHES)
        part->records = view_of(part->produce->request->buf->data, 0); /* An empty set. */
    part->out->index = in->index;
    part->out->log_append_time_ms = -1;
    part->out->log_start_offset = -1;
    int16_t error = produce_check(node, part, topic, name, in->index);
    if (error == KAFKA_NONE && (part->produce->acks < -1 || part->produce->acks > 1))
        error = KAFKA_INVALID_REQUIRED_ACKS;
    if (error == KAFKA_NONE)
        produce_append(part);
    else
        produce_fail(part, error);
    if (part->state == PRODUCE_DONE) return;
    part->produce->pending++;
    replica_wait_on(part->replica, &part->wait);
}

static bool produce_topic_begin(struct node *node,
                                struct produce *produce,
                                const struct produce_request_topic_produce_data *in,
                                struct produce_response_topic_produce_response *out)
{
    struct request *request = produce->request;
    bool by_id = request->version >= 13;
    const struct image_topic *topic =
        by_id ? image_topic_by_id(node->image, in->topic_id) : image_topic(node->image, in->name);
    wire_struct_defaults(&wire_produce_response_topic_produce_response_shape, out);
    out->name = in->name;
    out->topic_id = in->topic_id;
    out->partition_responses.items = broker_array(request, (size_t)in->partition_data.count,
                                                  sizeof(*out->partition_responses.items));
    if (in->partition_data.count > 0 && out->partition_responses.items == NULL) return false;
    out->partition_responses.count = MAX(in->partition_data.count, 0);
    for (int32_t i = 0; i < in->partition_data.count; i++) {
        struct produce_part *part = &produce->parts[produce->part_count++];
        part->produce = produce;
        part->out = &out->partition_responses.items[i];
        wire_struct_defaults(&wire_produce_response_partition_produce_response_shape, part->out);
        if (by_id && topic == NULL) {
            list_init(&part->wait.link);
            list_init(&part->opening);
            list_init(&part->busy);
            part->out->index = in->partition_data.items[i].index;
            produce_fail(part, KAFKA_UNKNOWN_TOPIC_ID);
            continue;
        }
        produce_part_begin(node, part, topic, by_id ? topic->name : in->name,
                           &in->partition_data.items[i]);
    }
    return true;
}

static bool produce_begin(struct node *node,
                          struct produce *produce,
                          const struct produce_request *in)
{
    struct request *request = produce->request;
    size_t parts = 0;
    for (int32_t t = 0; t < in->topic_data.count; t++)
        parts += (size_t)MAX(in->topic_data.items[t].partition_data.count, 0);
    produce->response = request_response(request);
    if (produce->response == NULL) return false;
    produce->response->responses.items = broker_array(request, (size_t)in->topic_data.count,
                                                      sizeof(*produce->response->responses.items));
    produce->parts = broker_array(request, parts, sizeof(*produce->parts));
    if ((in->topic_data.count > 0 && produce->response->responses.items == NULL) ||
        (parts > 0 && produce->parts == NULL))
        return false;
    produce->response->responses.count = in->topic_data.count;
    for (int32_t t = 0; t < in->topic_data.count; t++)
        if (!produce_topic_begin(node, produce, &in->topic_data.items[t],
                                 &produce->response->responses.items[t]))
            return false;
    return true;
}

void handle_produce(struct shard *shard, struct request *request)
{
    const struct produce_request *in = request->message;
    struct node *node = node_of(shard);
    struct produce *produce = broker_array(request, 1, sizeof(*produce));
    if (produce == NULL) {
        request_close(request, "no memory for a produce request");
        return;
    }
    produce->request = request;
    produce->acks = in->acks;
    shard_timer_init(&produce->timeout, produce_expired);
    if (!produce_begin(node, produce, in)) {
        produce_detach(produce);
        request_close(request, "no memory for a produce request");
        return;
    }
    if (produce->pending == 0) {
        produce_finish(produce);
        return;
    }
    request->parked = produce;
    request->gone = produce_gone;
    /* The patience is for other replicas: what this node's own disk takes is waited for. */
    int32_t patience_ms = MAX(in->timeout_ms, PRODUCE_PATIENCE_MIN_MS);
    shard_timer_set(shard, &produce->timeout, io_now_ms(shard->io) + patience_ms);
}
