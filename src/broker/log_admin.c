/* log_admin.c - DeleteRecords, DescribeProducers, DescribeLogDirs. */
#include "broker/broker.h"
#include "gen/delete_records_request.h"
#include "gen/delete_records_response.h"
#include "gen/describe_log_dirs_request.h"
#include "gen/describe_log_dirs_response.h"
#include "gen/describe_producers_request.h"
#include "gen/describe_producers_response.h"

/* ---- DeleteRecords --------------------------------------------------------------------------- */

struct deletion;

struct deleted {
    struct replica_wait wait;
    struct deletion *deletion;
    struct replica *replica;
    int64_t offset;
    struct delete_records_response_delete_records_partition_result *out;
};

struct deletion {
    struct request *request;
    struct delete_records_response *response;
    struct deleted *items;
    uint32_t item_count;
    uint32_t pending;
    struct shard_timer timeout;
};

static void deleted_fail(struct deleted *item, int16_t error)
{
    item->out->error_code = error;
    item->out->low_watermark = -1;
    request_error(item->deletion->request, error);
}

/* True: done. */
static bool deleted_try(struct deleted *item)
{
    int result = replica_open(item->replica);
    if (result == LOG_LATER) return false;
    if (result == LOG_OK && partition_role(item->replica->state) != PARTITION_LEADER) {
        deleted_fail(item, KAFKA_NOT_LEADER_OR_FOLLOWER);
        return true;
    }
    struct log *log = item->replica->log;
    int64_t offset = item->offset;
    if (result == LOG_OK) {
        if (offset == -1) offset = log_high_watermark(log);
        result = offset < 0 || offset > log_high_watermark(log) ? (int)LOG_E_OUT_OF_RANGE
                 : offset > log_start(log)                      ? log_delete_records(log, offset)
                                                                : (int)LOG_OK;
    }
    if (result == LOG_LATER) return false;
    if (result == LOG_OK)
        item->out->low_watermark = log_start(log);
    else
        deleted_fail(item, replica_error(result));
    return true;
}

static void deletion_end(struct deletion *deletion)
{
    for (uint32_t i = 0; i < deletion->item_count; i++)
        replica_wait_end(&deletion->items[i].wait);
    shard_timer_cancel(&deletion->timeout);
}

static void deleted_wake(struct replica_wait *wait, struct replica *replica, int events)
{
    struct deleted *item = container_of(wait, struct deleted, wait);
    (void)replica;
    if (!(events & (LOG_EVENT_READY | LOG_EVENT_FAILED)) || !deleted_try(item)) return;
    replica_wait_end(wait);
    if (--item->deletion->pending > 0) return;
    deletion_end(item->deletion);
    request_reply(item->deletion->request, item->deletion->response);
}

static void deletion_expired(struct shard *shard, struct shard_timer *timer)
{
    struct deletion *deletion = container_of(timer, struct deletion, timeout);
    (void)shard;
    for (uint32_t i = 0; i < deletion->item_count; i++)
        if (!list_empty(&deletion->items[i].wait.link))
            deleted_fail(&deletion->items[i], KAFKA_REQUEST_TIMED_OUT);
    deletion_end(deletion);
    request_reply(deletion->request, deletion->response);
}

static void deletion_gone(struct request *request)
{
    deletion_end(request->parked);
    request_finish(request);
}

static int16_t deleted_check(struct request *request,
                             struct view name,
                             int32_t partition,
                             struct replica **out)
{
    struct node *node = node_of(request->shard);
    const struct image_topic *topic = image_topic(node->image, name);
    if (!auth_allows(request, AUTH_DELETE, AUTH_TOPIC, name))
        return KAFKA_TOPIC_AUTHORIZATION_FAILED;
    if (topic == NULL) return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    if (topic_is_internal(name)) return KAFKA_INVALID_TOPIC_EXCEPTION;
    int16_t error = replica_leader(node, topic, partition, -1, out);
    if (error != KAFKA_NONE) return error;
    struct view policy = topic_setting(node, name, VIEW("cleanup.policy"));
    bool only_compact =
        config_list_has(policy, VIEW("compact")) && !config_list_has(policy, VIEW("delete"));
    return only_compact ? KAFKA_POLICY_VIOLATION : KAFKA_NONE;
}

static void deleted_begin(struct deleted *item,
                          struct view name,
                          const struct delete_records_request_delete_records_partition *in)
{
    wire_struct_defaults(&wire_delete_records_response_delete_records_partition_result_shape,
                         item->out);
    list_init(&item->wait.link);
    item->wait.wake = deleted_wake;
    item->offset = in->offset;
    item->out->partition_index = in->partition_index;
    item->out->low_watermark = -1;
    int16_t error =
        deleted_check(item->deletion->request, name, in->partition_index, &item->replica);
    if (error != KAFKA_NONE) {
        deleted_fail(item, error);
        return;
    }
    if (deleted_try(item)) return;
    item->deletion->pending++;
    replica_wait_on(item->replica, &item->wait);
}

static bool deletion_begin(struct deletion *deletion, const struct delete_records_request *in)
{
    struct request *request = deletion->request;
    size_t count = 0;
    for (int32_t t = 0; t < in->topics.count; t++)
        count += (size_t)MAX(in->topics.items[t].partitions.count, 0);
    deletion->response = request_response(request);
    deletion->items = broker_array(request, count, sizeof(*deletion->items));
    struct delete_records_response_delete_records_partition_result *parts =
        broker_array(request, count, sizeof(*parts));
    if (deletion->response == NULL || (count > 0 && (deletion->items == NULL || parts == NULL)))
        return false;
    deletion->response->topics.items = broker_array(request, (size_t)MAX(in->topics.count, 1),
                                                    sizeof(*deletion->response->topics.items));
    if (deletion->response->topics.items == NULL) return false;
    deletion->response->topics.count = MAX(in->topics.count, 0);
    for (int32_t t = 0; t < in->topics.count; t++) {
        struct delete_records_response_delete_records_topic_result *out =
            &deletion->response->topics.items[t];
        wire_struct_defaults(&wire_delete_records_response_delete_records_topic_result_shape, out);
        out->name = in->topics.items[t].name;
        out->partitions.items = parts;
        out->partitions.count = MAX(in->topics.items[t].partitions.count, 0);
        parts += out->partitions.count;
        for (int32_t p = 0; p < out->partitions.count; p++) {
            struct deleted *item = &deletion->items[deletion->item_count++];
            item->deletion = deletion;
            item->out = &out->partitions.items[p];
            deleted_begin(item, out->name, &in->topics.items[t].partitions.items[p]);
        }
    }
    return true;
}

void handle_delete_records(struct shard *shard, struct request *request)
{
    const struct delete_records_request *in = request->message;
    struct deletion *deletion = broker_array(request, 1, sizeof(*deletion));
    if (deletion != NULL) {
        deletion->request = request;
        shard_timer_init(&deletion->timeout, deletion_expired);
    }
    if (deletion == NULL || !deletion_begin(deletion, in)) {
        request_close(request, "no memory for an answer");
        return;
    }
    if (deletion->pending == 0) {
        request_reply(request, deletion->response);
        return;
    }
    request->parked = deletion;
    request->gone = deletion_gone;
    shard_timer_set(shard, &deletion->timeout, io_now_ms(shard->io) + MAX(in->timeout_ms, 0));
}

/* ---- DescribeProducers ----------------------------------------------------------------------- */

struct producer_list {
    struct request *request;
    struct describe_producers_response_partition_response *out;
    uint32_t capacity;
    bool no_memory;
};

static bool producer_add(void *context, const struct log_producer *producer)
{
    struct producer_list *list = context;
    uint32_t count = (uint32_t)list->out->active_producers.count;
    if (count == list->capacity) {
        uint32_t capacity = MAX(2 * count, 16);
        struct describe_producers_response_producer_state *items =
            broker_array(list->request, capacity, sizeof(*items));
        list->no_memory = items == NULL;
        if (items == NULL) return false;
        if (count > 0) memcpy(items, list->out->active_producers.items, count * sizeof(*items));
        list->out->active_producers.items = items;
        list->capacity = capacity;
    }
    struct describe_producers_response_producer_state *out =
        &list->out->active_producers.items[count];
    wire_struct_defaults(&wire_describe_producers_response_producer_state_shape, out);
    out->producer_id = producer->producer_id;
    out->producer_epoch = producer->epoch;
    out->last_sequence = producer->last_sequence;
    out->last_timestamp = producer->last_timestamp_ms;
    out->coordinator_epoch = producer->coordinator_epoch;
    out->current_txn_start_offset = producer->txn_offset_first;
    list->out->active_producers.count++;
    return true;
}

static void producers_of(struct request *request,
                         struct view name,
                         int32_t partition,
                         struct describe_producers_response_partition_response *out)
{
    struct node *node = node_of(request->shard);
    const struct image_topic *topic = image_topic(node->image, name);
    struct replica *replica = NULL;
    wire_struct_defaults(&wire_describe_producers_response_partition_response_shape, out);
    out->partition_index = partition;
    if (!auth_allows(request, AUTH_READ, AUTH_TOPIC, name)) {
        out->error_code = KAFKA_TOPIC_AUTHORIZATION_FAILED;
    } else if (!topic_name_valid(name)) {
        out->error_code = KAFKA_INVALID_TOPIC_EXCEPTION;
        out->error_message = VIEW("no topic can have this name");
    } else if (topic == NULL) {
        out->error_code = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        out->error_message = VIEW("there is no such topic");
    } else {
        out->error_code = replica_leader(node, topic, partition, -1, &replica);
    }
    if (out->error_code == KAFKA_NONE) {
        struct producer_list list = {.request = request, .out = out};
        int result = replica_open(replica);
        if (result == LOG_OK) result = log_producers(replica->log, producer_add, &list);
        /* A log that is being opened: retriable, the client asks again. */
        out->error_code = result == LOG_LATER || list.no_memory ? KAFKA_NOT_LEADER_OR_FOLLOWER
                                                                : replica_error(result);
    }
    if (out->error_code != KAFKA_NONE) request_error(request, out->error_code);
}

void handle_describe_producers(struct shard *shard, struct request *request)
{
    const struct describe_producers_request *in = request->message;
    struct describe_producers_response *out = request_response(request);
    (void)shard;
    if (out != NULL)
        out->topics.items =
            broker_array(request, (size_t)MAX(in->topics.count, 1), sizeof(*out->topics.items));
    if (out == NULL || out->topics.items == NULL) {
        request_close(request, "no memory for an answer");
        return;
    }
    for (int32_t t = 0; t < in->topics.count; t++) {
        const struct describe_producers_request_topic_request *topic = &in->topics.items[t];
        struct describe_producers_response_topic_response *to =
            &out->topics.items[out->topics.count++];
        wire_struct_defaults(&wire_describe_producers_response_topic_response_shape, to);
        to->name = topic->name;
        int32_t count = MAX(topic->partition_indexes.count, 0);
        to->partitions.items = broker_array(request, (size_t)count, sizeof(*to->partitions.items));
        for (int32_t p = 0; to->partitions.items != NULL && p < count; p++)
            producers_of(request, topic->name, topic->partition_indexes.items[p],
                         &to->partitions.items[to->partitions.count++]);
    }
    request_reply(request, out);
}

/* ---- DescribeLogDirs ------------------------------------------------------------------------- */

struct dir_list {
    struct request *request;
    struct describe_log_dirs_response *out;
    bool no_memory;
};

static bool dir_wants(const struct describe_log_dirs_request *in, const struct log *log)
{
    if (in->topics.count < 0) return true;
    for (int32_t t = 0; t < in->topics.count; t++) {
        if (!view_equal(in->topics.items[t].topic, log_topic(log))) continue;
        for (int32_t p = 0; p < in->topics.items[t].partitions.count; p++)
            if (in->topics.items[t].partitions.items[p] == log_partition(log)) return true;
    }
    return false;
}

/* Logs of one topic come one after the other or not; an entry each is as good for every client. */
static bool dir_add(void *context, struct log *log)
{
    struct dir_list *list = context;
    if (view_is(log_topic(log), "__cluster_metadata") || !dir_wants(list->request->message, log))
        return true;
    struct describe_log_dirs_response_describe_log_dirs_result *dir =
        &list->out->results.items[log_directory(log)];
    struct describe_log_dirs_response_describe_log_dirs_topic *topic =
        &dir->topics.items[dir->topics.count];
    struct describe_log_dirs_response_describe_log_dirs_partition *part =
        broker_array(list->request, 1, sizeof(*part));
    list->no_memory = part == NULL;
    if (part == NULL) return false;
    wire_struct_defaults(&wire_describe_log_dirs_response_describe_log_dirs_topic_shape, topic);
    wire_struct_defaults(&wire_describe_log_dirs_response_describe_log_dirs_partition_shape, part);
    topic->name = log_topic(log);
    topic->partitions.items = part;
    topic->partitions.count = 1;
    part->partition_index = log_partition(log);
    part->partition_size = (int64_t)log_size_bytes(log);
    part->is_future_key = log_is_future(log);
    if (part->is_future_key) part->offset_lag = log_future_lag(log);
    dir->topics.count++;
    return true;
}

static void dir_describe(struct node *node,
                         uint32_t index,
                         struct describe_log_dirs_response_describe_log_dirs_result *out)
{
    struct log_dir_info info;
    logs_dir_info(node->logs, index, &info);
    out->error_code = info.error == 0 ? KAFKA_NONE : KAFKA_KAFKA_STORAGE_ERROR;
    out->log_dir = view_of_string(info.path);
    out->is_cordoned = info.cordoned;
    struct io_space space;
    if (io_disk_space(node->io, info.path, &space) != 0) return; /* Unknown: -1, as Kafka says. */
    out->total_bytes = (int64_t)space.total_bytes;
    out->usable_bytes = (int64_t)space.free_bytes;
}

void handle_describe_log_dirs(struct shard *shard, struct request *request)
{
    struct node *node = node_of(shard);
    struct describe_log_dirs_response *out = request_response(request);
    uint32_t count = logs_dir_count(node->logs);
    if (out != NULL) out->results.items = broker_array(request, count, sizeof(*out->results.items));
    if (out == NULL || out->results.items == NULL) {
        request_close(request, "no memory for an answer");
        return;
    }
    if (!auth_allows(request, AUTH_DESCRIBE, AUTH_CLUSTER, VIEW("kafka-cluster"))) {
        out->error_code = KAFKA_CLUSTER_AUTHORIZATION_FAILED;
        request_error(request, out->error_code);
        request_reply(request, out);
        return;
    }
    out->results.count = (int32_t)count;
    uint32_t logs = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct log_dir_info info;
        logs_dir_info(node->logs, i, &info);
        logs += info.partitions;
    }
    struct dir_list list = {.request = request, .out = out};
    for (uint32_t i = 0; i < count; i++) {
        wire_struct_defaults(&wire_describe_log_dirs_response_describe_log_dirs_result_shape,
                             &out->results.items[i]);
        dir_describe(node, i, &out->results.items[i]);
        out->results.items[i].topics.items =
            broker_array(request, logs + 1, sizeof(*out->results.items[i].topics.items));
        list.no_memory = list.no_memory || out->results.items[i].topics.items == NULL;
    }
    if (!list.no_memory) logs_each(node->logs, dir_add, &list);
    broker_answer(request, out, !list.no_memory);
}
