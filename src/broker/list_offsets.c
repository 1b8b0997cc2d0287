/* list_offsets.c - ListOffsets and OffsetForLeaderEpoch: offsets by place, by time, by epoch.
 *
 * Special timestamps are answered from the log's ends; times are looked up in the background by a
 * query for each partition, and the request is answered when the last one is back.
 */
#include "broker/broker.h"
#include "core/names.h"
#include "gen/list_offsets_request.h"
#include "gen/list_offsets_response.h"
#include "gen/offset_for_leader_epoch_request.h"
#include "gen/offset_for_leader_epoch_response.h"

enum offset_place {
    OFFSET_LATEST = -1,
    OFFSET_EARLIEST = -2,
    OFFSET_MAX_TIMESTAMP = -3,
    OFFSET_EARLIEST_LOCAL = -4,
    OFFSET_LATEST_TIERED = -5,
    OFFSET_EARLIEST_PENDING = -6
};

struct listing;

struct listed {
    struct replica_wait wait;
    struct log_query query;
    struct listing *listing;
    struct replica *replica;
    int64_t timestamp;
    int32_t old_max; /* Version 0: how many offsets are wanted. */
    struct list_offsets_response_list_offsets_partition_response *out;
};

struct listing {
    struct request *request;
    struct list_offsets_response *response;
    struct listed *items;
    uint32_t item_count;
    uint32_t pending;
    const struct names *seen; /* Partitions of the topic that is being begun. */
    bool gone;                /* The connection went: the request ends with the last query. */
};

static void listed_fail(struct listed *item, int16_t error)
{
    item->out->error_code = error;
    item->out->offset = -1;
    item->out->timestamp = -1;
    item->out->leader_epoch = -1;
    request_error(item->listing->request, error);
}

static void listing_finish(struct listing *listing)
{
    struct request *request = listing->request;
    if (listing->gone)
        request_finish(request);
    else
        request_reply(request, listing->response);
}

static void listed_done(struct listed *item)
{
    if (--item->listing->pending == 0) listing_finish(item->listing);
}

/* A broker reads to the end. Kafka believes whatever id is not -1; here it must be a broker's, and
 * the client be one that may act as a broker. */
static bool listed_for_broker(const struct listed *item)
{
    const struct request *request = item->listing->request;
    const struct list_offsets_request *in = request->message;
    return in->replica_id >= 0 && auth_is_broker(request);
}

/* What this reader may see. */
static int64_t listed_end(const struct listed *item)
{
    const struct list_offsets_request *in = item->listing->request->message;
    const struct log *log = item->replica->log;
    if (listed_for_broker(item)) return log_end_assigned(log);
    return in->isolation_level == 1 ? log_last_stable(log) : log_high_watermark(log);
}

static int16_t listed_supported(int16_t version, int64_t timestamp)
{
    static const int16_t since[] = {0, 0, 0, 7, 8, 9, 11};
    if (timestamp >= 0) return KAFKA_NONE;
    if (timestamp < OFFSET_EARLIEST_PENDING) return KAFKA_UNSUPPORTED_VERSION;
    return version >= since[-timestamp] ? KAFKA_NONE : KAFKA_UNSUPPORTED_VERSION;
}

static void listed_query_done(struct log_query *query)
{
    struct listed *item = container_of(query, struct listed, query);
    item->out->offset = -1;
    item->out->timestamp = -1;
    item->out->leader_epoch = -1;
    if (query->result == LOG_OK && item->replica != NULL && query->offset < listed_end(item)) {
        item->out->offset = query->offset;
        item->out->timestamp = query->found_timestamp_ms;
        item->out->leader_epoch = query->leader_epoch;
    } else if (query->result != LOG_OK && query->result != LOG_NOT_FOUND) {
        listed_fail(item, replica_error(query->result));
    }
    listed_done(item);
}

/* Version 0 knows no times of records: it lists where segments begin, and the end, each with the
 * time of its file. */
struct old_place {
    int64_t offset;
    int64_t time_ms;
};

/* The place number `at`, from the oldest. False: there are no more. */
static bool old_place_at(const struct listed *item, uint32_t at, struct old_place *out)
{
    const struct log *log = item->replica->log;
    int64_t base, modified_ms;
    if (log_segment_age(log, at, &base, &modified_ms)) {
        *out = (struct old_place){MAX(base, log_start(log)), modified_ms};
        return true;
    }
    /* Behind the last segment, if it is not empty: the end. */
    if (at == 0 || !log_segment_age(log, at - 1, &base, &modified_ms)) return false;
    *out = (struct old_place){log_end_assigned(log), io_wall_ms(item->replica->node->io)};
    return out->offset > base;
}

/* How many places, from the oldest, are not younger than the time asked for. */
static uint32_t old_places(const struct listed *item)
{
    struct old_place place;
    uint32_t count = 0, upto = 0;
    while (old_place_at(item, count, &place)) {
        count++;
        if (item->timestamp >= 0 && place.time_ms <= item->timestamp) upto = count;
    }
    if (item->timestamp == OFFSET_EARLIEST) return MIN(count, 1u);
    return item->timestamp == OFFSET_LATEST ? count : upto;
}

static void listed_old(struct listed *item)
{
    int64_t high_watermark = log_high_watermark(item->replica->log);
    uint32_t left = old_places(item);
    uint32_t room = MIN(left, (uint32_t)MAX(item->old_max, 0));
    int64_t *offsets = broker_array(item->listing->request, room, sizeof(*offsets));
    item->out->old_style_offsets.items = offsets;
    int32_t count = 0;
    for (; offsets != NULL && (uint32_t)count < room && left > 0; left--) {
        struct old_place place;
        if (!old_place_at(item, left - 1, &place)) break;
        bool beyond = !listed_for_broker(item) && place.offset > high_watermark;
        if (beyond && count > 0) continue; /* It stands there already, as the high watermark. */
        offsets[count++] = beyond ? high_watermark : place.offset;
    }
    item->out->old_style_offsets.count = count;
}

/* Answer from the ends, or start a query. True: the item is done. */
static bool listed_look(struct listed *item)
{
    struct log *log = item->replica->log;
    int32_t epoch = partition_leader_epoch(item->replica->state);
    if (item->listing->request->version == 0) {
        listed_old(item);
        return true;
    }
    switch (item->timestamp) {
    case OFFSET_LATEST:
        item->out->offset = listed_end(item);
        item->out->leader_epoch = epoch;
        return true;
    case OFFSET_EARLIEST:
    case OFFSET_EARLIEST_LOCAL:
        item->out->offset = log_start(log);
        item->out->leader_epoch = log_epoch_at(log, log_start(log));
        return true;
    case OFFSET_LATEST_TIERED:
    case OFFSET_EARLIEST_PENDING: return true; /* Nothing is tiered here. */
    default:
        item->query.log = log;
        item->query.timestamp_ms =
            item->timestamp == OFFSET_MAX_TIMESTAMP ? LOG_MAX_TIMESTAMP : item->timestamp;
        item->query.done = listed_query_done;
        log_query_start(&item->query);
        return false;
    }
}

/* True: done. */
static bool listed_try(struct listed *item)
{
    int result = replica_open(item->replica);
    if (result == LOG_LATER) {
        replica_wait_on(item->replica, &item->wait);
        return false;
    }
    if (result != LOG_OK) {
        listed_fail(item, replica_error(result));
        return true;
    }
    if (partition_role(item->replica->state) != PARTITION_LEADER) {
        listed_fail(item, KAFKA_NOT_LEADER_OR_FOLLOWER);
        return true;
    }
    return listed_look(item);
}

static void listed_wake(struct replica_wait *wait, struct replica *replica, int events)
{
    struct listed *item = container_of(wait, struct listed, wait);
    (void)replica;
    if (!(events & (LOG_EVENT_READY | LOG_EVENT_FAILED))) return;
    replica_wait_end(wait);
    if (listed_try(item)) listed_done(item);
}

static struct view partition_key(const struct list_offsets_request_list_offsets_topic *topic,
                                 int32_t at)
{
    return view_of(&topic->partitions.items[at].partition_index, sizeof(int32_t));
}

static void listed_begin(struct listed *item,
                         const struct list_offsets_request_list_offsets_topic *topic,
                         int32_t at)
{
    struct request *request = item->listing->request;
    struct node *node = node_of(request->shard);
    const struct list_offsets_request_list_offsets_partition *in = &topic->partitions.items[at];
    const struct image_topic *known = image_topic(node->image, topic->name);
    wire_struct_defaults(&wire_list_offsets_response_list_offsets_partition_response_shape,
                         item->out);
    list_init(&item->wait.link);
    item->wait.wake = listed_wake;
    item->out->partition_index = in->partition_index;
    item->timestamp = in->timestamp;
    item->old_max = in->max_num_offsets;
    int16_t error = KAFKA_NONE;
    if (!auth_allows(request, AUTH_DESCRIBE, AUTH_TOPIC, topic->name))
        error = KAFKA_TOPIC_AUTHORIZATION_FAILED;
    else if (request->version > 0 && names_seen(item->listing->seen, partition_key(topic, at)) > 1)
        error = KAFKA_INVALID_REQUEST;
    else
        error = listed_supported(request->version, in->timestamp);
    if (error == KAFKA_NONE)
        error = known == NULL ? KAFKA_UNKNOWN_TOPIC_OR_PARTITION
                              : replica_leader(node, known, in->partition_index,
                                               in->current_leader_epoch, &item->replica);
    item->listing->pending++;
    if (error != KAFKA_NONE) listed_fail(item, error);
    if (error != KAFKA_NONE || listed_try(item)) item->listing->pending--;
}

static void listing_gone(struct request *request)
{
    /* Who waits for a log to open is not waited for: a stop would come before it. Queries cannot be
     * called back: the request stays until the last of them has come. */
    struct listing *listing = request->parked;
    listing->gone = true;
    for (uint32_t i = 0; i < listing->item_count; i++) {
        struct listed *item = &listing->items[i];
        if (list_empty(&item->wait.link)) continue;
        replica_wait_end(&item->wait);
        listing->pending--;
    }
    if (listing->pending == 0) listing_finish(listing);
}

/* For each topic, how often each partition is in the request; with `told`, sets of that size with
 * nothing in them. NULL: no memory (or no topic). */
static struct names *listing_seen(struct request *request,
                                  const struct list_offsets_request *in,
                                  bool told)
{
    struct names *seen = broker_array(request, (size_t)MAX(in->topics.count, 0), sizeof(*seen));
    for (int32_t t = 0; seen != NULL && t < in->topics.count; t++) {
        int32_t count = MAX(in->topics.items[t].partitions.count, 0);
        uint64_t seed = io_random(request->shard->io, IO_RANDOM_HASH);
        if (!names_init(&seen[t], &request->arena, (uint32_t)count, seed)) return NULL;
        for (int32_t p = 0; !told && p < count; p++)
            (void)names_see(&seen[t], partition_key(&in->topics.items[t], p));
    }
    return seen;
}

static bool listing_begin(struct listing *listing, const struct list_offsets_request *in)
{
    struct request *request = listing->request;
    size_t count = 0;
    for (int32_t t = 0; t < in->topics.count; t++)
        count += (size_t)MAX(in->topics.items[t].partitions.count, 0);
    struct list_offsets_response_list_offsets_partition_response *parts =
        broker_array(request, count, sizeof(*parts));
    listing->items = broker_array(request, count, sizeof(*listing->items));
    listing->response = request_response(request);
    if (listing->response == NULL || (count > 0 && (parts == NULL || listing->items == NULL)))
        return false;
    listing->response->topics.items =
        broker_array(request, (size_t)in->topics.count, sizeof(*listing->response->topics.items));
    if (in->topics.count > 0 && listing->response->topics.items == NULL) return false;
    /* The last memory: what has begun cannot be called back. */
    struct names *seen = listing_seen(request, in, false), *told = listing_seen(request, in, true);
    if (in->topics.count > 0 && (seen == NULL || told == NULL)) return false;
    listing->response->topics.count = in->topics.count;
    listing->pending = 1; /* Held until all are begun. */
    for (int32_t t = 0; t < in->topics.count; t++) {
        struct list_offsets_response_list_offsets_topic_response *out =
            &listing->response->topics.items[t];
        wire_struct_defaults(&wire_list_offsets_response_list_offsets_topic_response_shape, out);
        out->name = in->topics.items[t].name;
        out->partitions.items = parts;
        listing->seen = &seen[t];
        for (int32_t p = 0; p < in->topics.items[t].partitions.count; p++) {
            /* What is refused for being there twice is told once. */
            if (names_see(&told[t], partition_key(&in->topics.items[t], p)) > 1 &&
                request->version > 0)
                continue;
            struct listed *item = &listing->items[listing->item_count++];
            item->listing = listing;
            item->out = &out->partitions.items[out->partitions.count++];
            listed_begin(item, &in->topics.items[t], p);
        }
        parts += out->partitions.count;
    }
    return true;
}

void handle_list_offsets(struct shard *shard, struct request *request)
{
    struct listing *listing = broker_array(request, 1, sizeof(*listing));
    (void)shard;
    if (listing != NULL) listing->request = request;
    if (listing == NULL || !listing_begin(listing, request->message)) {
        request_close(request, "no memory for a list offsets answer");
        return;
    }
    request->parked = listing;
    request->gone = listing_gone;
    if (--listing->pending == 0) listing_finish(listing);
}

/* ---- OffsetForLeaderEpoch -------------------------------------------------------------------- */

static void epoch_end(struct request *request,
                      struct view topic,
                      const struct offset_for_leader_epoch_request_offset_for_leader_partition *in,
                      struct offset_for_leader_epoch_response_epoch_end_offset *out)
{
    struct node *node = node_of(request->shard);
    const struct image_topic *known = image_topic(node->image, topic);
    struct replica *replica = NULL;
    wire_struct_defaults(&wire_offset_for_leader_epoch_response_epoch_end_offset_shape, out);
    out->partition = in->partition;
    if (!auth_is_broker(request) && !auth_allows(request, AUTH_DESCRIBE, AUTH_TOPIC, topic))
        out->error_code = KAFKA_TOPIC_AUTHORIZATION_FAILED;
    else
        out->error_code = known == NULL ? KAFKA_UNKNOWN_TOPIC_OR_PARTITION
                                        : replica_leader(node, known, in->partition,
                                                         in->current_leader_epoch, &replica);
    if (out->error_code == KAFKA_NONE && in->current_leader_epoch < -1) /* Only -1 is none, here. */
        out->error_code = KAFKA_FENCED_LEADER_EPOCH;
    int result = out->error_code == KAFKA_NONE ? replica_open(replica) : LOG_OK;
    /* A log that is being opened: a retriable answer, the client asks again at once. */
    if (result == LOG_LATER)
        out->error_code = KAFKA_NOT_LEADER_OR_FOLLOWER;
    else if (result != LOG_OK)
        out->error_code = replica_error(result);
    if (out->error_code != KAFKA_NONE) {
        request_error(request, out->error_code);
        return;
    }
    struct log_epoch_end end = log_epoch_end(replica->log, in->leader_epoch);
    out->leader_epoch = end.epoch;
    out->end_offset = end.end;
}

void handle_offset_for_leader_epoch(struct shard *shard, struct request *request)
{
    const struct offset_for_leader_epoch_request *in = request->message;
    struct offset_for_leader_epoch_response *out = request_response(request);
    (void)shard;
    if (out != NULL)
        out->topics.items =
            broker_array(request, (size_t)MAX(in->topics.count, 1), sizeof(*out->topics.items));
    if (out == NULL || out->topics.items == NULL) {
        request_close(request, "no memory for an answer");
        return;
    }
    out->topics.count = in->topics.count;
    for (int32_t t = 0; t < in->topics.count; t++) {
        struct offset_for_leader_epoch_response_offset_for_leader_topic_result *topic =
            &out->topics.items[t];
        wire_struct_defaults(
            &wire_offset_for_leader_epoch_response_offset_for_leader_topic_result_shape, topic);
        topic->topic = in->topics.items[t].topic;
        int32_t count = MAX(in->topics.items[t].partitions.count, 0);
        topic->partitions.items =
            broker_array(request, (size_t)count, sizeof(*topic->partitions.items));
        topic->partitions.count = topic->partitions.items != NULL ? count : 0;
        for (int32_t p = 0; p < topic->partitions.count; p++)
            epoch_end(request, topic->topic, &in->topics.items[t].partitions.items[p],
                      &topic->partitions.items[p]);
    }
    request_reply(request, out);
}
