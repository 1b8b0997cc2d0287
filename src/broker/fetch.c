/* fetch.c - Fetch: find the bytes of each partition, send them from the file, or wait for more.
 *
 * A fetch is a list of items, taken from the request or from its session. Reading all items says
 * whether there is enough to answer; if not, the fetch lets go of what it found,
 * waits on its replicas until something moved that it may read, and reads anew at the end of that
 * turn, so that many appends in one turn cost one look. The first partition with data may exceed
 * the limits by one batch, no other one does (10.4). */
#include "broker/fetch.h"

#include "broker/fetch_old.h"
#include "broker/quotas.h"
#include "gen/fetch_request.h"
#include "gen/fetch_response.h"
#include "net/errand.h"

/* Ranges up to this size are copied from the page cache: cheaper than a sendfile of their own. */
#define FETCH_COPY_BYTES 16384u

#define FETCH_ABORTED_FIRST 16u

static void fetch_range_done(struct net_range *range)
{
    struct fetch_range *mine = container_of(range, struct fetch_range, net);
    log_range_release(&mine->log);
}

static void fetch_release(struct fetch *fetch)
{
    for (uint32_t i = 0; i < fetch->item_count; i++)
        log_range_release(&fetch->items[i].range);
}

/* ---- reading one partition ------------------------------------------------------------------- */

static const struct image_topic *fetch_topic(struct fetch *fetch, const struct fetch_item *item)
{
    return fetch->by_topic_id ? image_topic_by_id(fetch->node->image, item->wanted.topic_id)
                              : image_topic(fetch->node->image, item->wanted.name);
}

static int16_t fetch_locate(struct fetch *fetch, struct fetch_item *item)
{
    const struct image_topic *topic = fetch_topic(fetch, item);
    if (topic == NULL && fetch->by_topic_id)
        return item->cached != NULL && item->cached->known ? KAFKA_UNKNOWN_TOPIC_OR_PARTITION
                                                           : KAFKA_UNKNOWN_TOPIC_ID;
    if (item->cached != NULL) item->cached->known = topic != NULL;
    struct view name = topic != NULL ? topic->name : item->wanted.name;
    bool allowed = fetch->replica_id >= 0
                       ? auth_is_broker(fetch->request)
                       : auth_allows(fetch->request, AUTH_READ, AUTH_TOPIC, name);
    if (!allowed) return KAFKA_TOPIC_AUTHORIZATION_FAILED;
    if (topic == NULL) return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    int16_t error = fetch_is_old(fetch->request) ? fetch_old_check(fetch, topic) : KAFKA_NONE;
    if (error != KAFKA_NONE) return error;
    return replica_leader(fetch->node, topic, item->wanted.partition, item->wanted.leader_epoch,
                          &item->replica);
}

/* The upper end for this reader. */
static int64_t fetch_bound(const struct fetch *fetch, const struct replica *replica)
{
    if (fetch->replica_id != -1) return log_end_written(replica->log);
    return fetch->read_committed ? log_last_stable(replica->log) : log_high_watermark(replica->log);
}

/* Has the log a different past than the fetcher? Then the answer says from where. */
static int16_t fetch_diverging(struct fetch_item *item)
{
    if (item->wanted.last_fetched_epoch < 0) return KAFKA_NONE;
    struct log_epoch_end end = log_epoch_end(item->replica->log, item->wanted.last_fetched_epoch);
    if (end.end < 0 || item->wanted.fetch_offset < log_start(item->replica->log))
        return KAFKA_OFFSET_OUT_OF_RANGE;
    item->diverging =
        end.epoch < item->wanted.last_fetched_epoch || end.end < item->wanted.fetch_offset;
    item->diverging_epoch = end.epoch;
    item->diverging_end = end.end;
    return KAFKA_NONE;
}

static int16_t fetch_follower(struct fetch *fetch, struct fetch_item *item)
{
    struct log *log = item->replica->log;
    struct partition_ends ends = {log_start(log), log_end_assigned(log), log_end_written(log),
                                  log_end_durable(log)};
    struct partition_fetch told = {
        .replica = fetch->replica_id,
        .epoch = fetch->replica_epoch,
        .fetch_offset = item->wanted.fetch_offset,
        .log_start = item->wanted.log_start_offset,
        .now_ms = io_now_ms(fetch->node->io),
    };
    enum partition_fetched result =
        partition_fetched(item->replica->state, &told, &ends, replica_min_insync(item->replica));
    if (result == PARTITION_E_REPLICA)
        return item->wanted.leader_epoch >= 0 ? KAFKA_UNKNOWN_LEADER_EPOCH
                                              : KAFKA_NOT_LEADER_OR_FOLLOWER;
    if (result == PARTITION_E_STALE) return KAFKA_NOT_LEADER_OR_FOLLOWER;
    if (result == PARTITION_HW_ROSE) replica_moved(item->replica);
    return KAFKA_NONE;
}

/* NONE, also when the log is still being opened (`item->opening`), or the partition's error. */
static int16_t fetch_read(struct fetch *fetch,
                          struct fetch_item *item,
                          uint32_t max_bytes,
                          bool min_one)
{
    int16_t error = fetch_locate(fetch, item);
    if (error != KAFKA_NONE) return error;
    int result = replica_open(item->replica);
    item->opening = result == LOG_LATER;
    if (item->opening) return KAFKA_NONE;
    if (result != LOG_OK) return replica_error(result);
    if (partition_role(item->replica->state) != PARTITION_LEADER)
        return KAFKA_NOT_LEADER_OR_FOLLOWER;
    struct log *log = item->replica->log;
    item->high_watermark = log_high_watermark(log);
    item->last_stable = log_last_stable(log);
    item->log_start = log_start(log);
    error = fetch_diverging(item);
    if (error != KAFKA_NONE || item->diverging) return error;
    if (item->wanted.fetch_offset < item->log_start ||
        item->wanted.fetch_offset > log_end_assigned(log))
        return KAFKA_OFFSET_OUT_OF_RANGE;
    if (fetch->replica_id >= 0) error = fetch_follower(fetch, item);
    if (error != KAFKA_NONE) return error;
    struct log_read read = {
        .offset = item->wanted.fetch_offset,
        .offset_end = fetch_bound(fetch, item->replica),
        .max_bytes = max_bytes,
        .min_one = min_one,
    };
    if (read.offset >= read.offset_end) return KAFKA_NONE;
    result = log_read(log, &read, &item->range);
    if (result == LOG_OK && fetch->read_committed && item->range.size_bytes > 0) {
        uint32_t count; /* They may have to be read first. */
        read.offset_end = item->range.offset_next;
        if (log_aborted_in(log, &read, NULL, 0, &count) == LOG_LATER) {
            log_range_release(&item->range);
            result = LOG_LATER;
        }
    }
    item->opening = result == LOG_LATER;
    return item->opening ? KAFKA_NONE : replica_error(result);
}

static bool is_replica_error(int16_t error)
{
    return error == KAFKA_NOT_LEADER_OR_FOLLOWER || error == KAFKA_FENCED_LEADER_EPOCH;
}

/* Read every item; true: there is a reason to answer now. */
static bool fetch_read_all(struct fetch *fetch)
{
    uint64_t left = fetch->max_bytes, found = 0;
    bool min_one = fetch->request->version >= 3, answer = fetch->item_count == 0;
    for (uint32_t i = 0; i < fetch->item_count; i++) {
        struct fetch_item *item = &fetch->items[i];
        uint32_t max = (uint32_t)MIN((uint64_t)MAX(item->wanted.max_bytes, 0), left);
        item->high_watermark = item->last_stable = item->log_start = -1;
        item->diverging = false;
        item->error = fetch_read(fetch, item, max, min_one);
        if (item->error != KAFKA_NONE || item->diverging) answer = true;
        if (item->error != KAFKA_NONE)
            item->high_watermark = item->last_stable = item->log_start = -1;
        if (item->range.size_bytes == 0) continue;
        min_one = false;
        found += item->range.size_bytes;
        left -= MIN(left, (uint64_t)item->range.size_bytes);
    }
    return answer || found >= fetch->min_bytes;
}

/* ---- the answer ------------------------------------------------------------------------------ */

struct view fetch_records(struct request *request, struct log_range *range)
{
    struct io *io = request->shard->io;
    if (range->size_bytes == 0) return VIEW_EMPTY;
    if (range->size_bytes <= FETCH_COPY_BYTES) {
        bool failed = request->arena.failed;
        uint8_t *copy = broker_array(request, range->size_bytes, 1);
        request->arena.failed = failed; /* Without a copy it goes from the file. */
        int64_t got = copy == NULL ? -1
                                   : io_disk_read_cached(io, range->file, copy, range->size_bytes,
                                                         range->at_bytes);
        if (got == (int64_t)range->size_bytes) return view_of(copy, range->size_bytes);
    }
    struct fetch_range *out = broker_array(request, 1, sizeof(*out));
    if (out == NULL) return VIEW_EMPTY;
    out->log = *range;
    out->net = (struct net_range){
        .file = range->file,
        .offset = range->at_bytes,
        .size_bytes = range->size_bytes,
        .release = fetch_range_done,
    };
    *range = (struct log_range){0}; /* The answer holds the file now. */
    return request_ranges(request, &out->net);
}

static void fetch_aborted(struct fetch *fetch,
                          struct fetch_item *item,
                          struct fetch_response_partition_data *out)
{
    bool unread = item->error == KAFKA_UNKNOWN_TOPIC_OR_PARTITION ||
                  item->error == KAFKA_UNKNOWN_TOPIC_ID ||
                  item->error == KAFKA_TOPIC_AUTHORIZATION_FAILED;
    /* Null for who did not ask, but empty, as by Kafka, where no log was asked at all. */
    out->aborted_transactions.count = fetch->read_committed || unread ? 0 : -1;
    if (!fetch->read_committed || item->range.size_bytes == 0) return;
    struct log_read read = {.offset = item->wanted.fetch_offset,
                            .offset_end = item->range.offset_next};
    uint32_t capacity = FETCH_ABORTED_FIRST, count = 0;
    struct log_aborted *found = NULL;
    for (;;) {
        found = broker_array(fetch->request, capacity, sizeof(*found));
        if (found == NULL ||
            log_aborted_in(item->replica->log, &read, found, capacity, &count) != LOG_OK) {
            /* Without the list the client would take aborted records for good ones: send none. */
            log_range_release(&item->range);
            return;
        }
        if (count <= capacity) break;
        capacity = count;
    }
    out->aborted_transactions.items =
        broker_array(fetch->request, count, sizeof(*out->aborted_transactions.items));
    if (count > 0 && out->aborted_transactions.items == NULL) {
        log_range_release(&item->range);
        return;
    }
    out->aborted_transactions.count = (int32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        out->aborted_transactions.items[i].producer_id = found[i].producer_id;
        out->aborted_transactions.items[i].first_offset = found[i].offset_first;
    }
}

/* The list goes with the errand that brought it; an answer that is an errand's own outlives that.
 */
static void fetch_keep_aborted(struct request *request, struct fetch_response_partition_data *out)
{
    struct fetch_response_aborted_transaction *items;
    if (request->errand == NULL || out->aborted_transactions.count <= 0) return;
    items = broker_array(request, (uint32_t)out->aborted_transactions.count, sizeof(*items));
    if (items == NULL) { /* Without the list a client would take aborted records for good ones. */
        out->records = VIEW_EMPTY;
        out->aborted_transactions.count = 0;
        return;
    }
    memcpy(items, out->aborted_transactions.items,
           (size_t)out->aborted_transactions.count * sizeof(*items));
    out->aborted_transactions.items = items;
}

/* What another shard has answered; its bytes become this request's. */
static void fetch_fill_told(const struct fetch *fetch,
                            struct fetch_item *item,
                            struct fetch_response_partition_data *out)
{
    *out = *item->told;
    out->records =
        item->range.size_bytes > 0 ? errand_value(item->errand, item->told->records) : VIEW_EMPTY;
    if (out->records.size == 0 && out->aborted_transactions.count > 0)
        out->aborted_transactions.count = 0;
    fetch_keep_aborted(fetch->request, out);
}

static void fetch_fill(struct fetch *fetch,
                       struct fetch_item *item,
                       struct fetch_response_partition_data *out)
{
    if (item->told != NULL) {
        fetch_fill_told(fetch, item, out);
        return;
    }
    wire_struct_defaults(&wire_fetch_response_partition_data_shape, out);
    /* Still being opened at the end of its wait: no high watermark is known. Without an error a
     * client would take -1 for one, and its position for the end. */
    if (item->high_watermark < 0 && item->error == KAFKA_NONE)
        item->error = KAFKA_NOT_LEADER_OR_FOLLOWER;
    out->partition_index = item->wanted.partition;
    out->error_code = item->error;
    if (fetch->request->version <= 5 && item->error == KAFKA_KAFKA_STORAGE_ERROR)
        out->error_code = KAFKA_NOT_LEADER_OR_FOLLOWER;
    out->high_watermark = item->high_watermark;
    out->last_stable_offset = item->last_stable;
    out->log_start_offset = item->log_start;
    if (item->diverging) {
        out->diverging_epoch.epoch = item->diverging_epoch;
        out->diverging_epoch.end_offset = item->diverging_end;
    }
    fetch_aborted(fetch, item, out);
    out->records = fetch->old != NULL ? item->old_set : fetch_records(fetch->request, &item->range);
    if (item->error != KAFKA_NONE) request_error(fetch->request, item->error);
    if (fetch->request->version >= 16 && is_replica_error(item->error) && item->replica != NULL) {
        out->current_leader.leader_id = partition_leader(item->replica->state);
        out->current_leader.leader_epoch = partition_leader_epoch(item->replica->state);
    }
}

/* Is the item part of an incremental answer? Notes what the client knows then. */
static bool fetch_news(const struct fetch *fetch, struct fetch_item *item)
{
    struct fetch_partition *cached = item->cached;
    if (cached == NULL) return true;
    bool news = item->range.size_bytes > 0 || item->error != KAFKA_NONE || item->diverging ||
                cached->sent_high_watermark != item->high_watermark ||
                cached->sent_log_start != item->log_start;
    if (!news && !fetch->full) return false;
    cached->sent_high_watermark = item->error == KAFKA_NONE ? item->high_watermark : -1;
    cached->sent_log_start = item->log_start;
    if (item->range.size_bytes > 0) { /* Served: to the end of the order. */
        list_remove(&cached->link);
        list_append(&fetch->session->partitions, &cached->link);
    }
    return true;
}

static bool same_topic(const struct fetch *fetch,
                       const struct fetch_item *a,
                       const struct fetch_item *b)
{
    return fetch->by_topic_id ? uuid_equal(a->wanted.topic_id, b->wanted.topic_id)
                              : view_equal(a->wanted.name, b->wanted.name);
}

static bool fetch_answer_topics(struct fetch *fetch, struct fetch_response *response)
{
    struct request *request = fetch->request;
    struct fetch_response_fetchable_topic_response *topics =
        broker_array(request, fetch->item_count, sizeof(*topics));
    struct fetch_response_partition_data *parts =
        broker_array(request, fetch->item_count, sizeof(*parts));
    if (fetch->item_count > 0 && (topics == NULL || parts == NULL)) return false;
    uint32_t topic_count = 0, part_count = 0;
    const struct fetch_item *last = NULL;
    for (uint32_t i = 0; i < fetch->item_count; i++) {
        struct fetch_item *item = &fetch->items[i];
        if (!fetch_news(fetch, item)) continue;
        if (last == NULL || !same_topic(fetch, last, item)) {
            wire_struct_defaults(&wire_fetch_response_fetchable_topic_response_shape,
                                 &topics[topic_count]);
            topics[topic_count].topic = item->wanted.name;
            topics[topic_count].topic_id = item->wanted.topic_id;
            topics[topic_count].partitions.items = &parts[part_count];
            topic_count++;
        }
        last = item;
        fetch_fill(fetch, item, &parts[part_count++]);
        topics[topic_count - 1].partitions.count++;
    }
    response->responses.items = topics;
    response->responses.count = (int32_t)topic_count;
    return true;
}

static void fetch_detach(struct fetch *fetch)
{
    for (uint32_t i = 0; i < fetch->item_count; i++)
        replica_wait_end(&fetch->items[i].wait);
    shard_timer_cancel(&fetch->timeout);
    list_remove(&fetch->due);
    if (fetch->session != NULL) fetch->session->busy = false;
}

/* The client is above a quota: no records, no news. A session goes on, and the next answer brings
 * what this one did not; one that would begin here does not. */
static void fetch_withhold(struct fetch *fetch, struct fetch_response *response)
{
    response->responses.count = 0;
    for (uint32_t i = 0; i < fetch->item_count; i++)
        if (fetch->items[i].cached != NULL) fetch->items[i].cached->sent_high_watermark = -2;
    if (fetch->session == NULL || !fetch->full) return;
    fetch_session_drop(&fetch->node->sessions, fetch->session);
    response->session_id = 0;
}

void fetch_answer(struct fetch *fetch)
{
    struct request *request = fetch->request;
    fetch_detach(fetch);
    if (fetch_is_old(request) && fetch_old_begin(fetch)) return;
    struct fetch_old *old = fetch->old;
    struct fetch_response *response = request_response(request);
    if (response == NULL || !fetch_answer_topics(fetch, response)) {
        fetch_release(fetch);
        request_close(request, "no memory for a fetch answer");
        fetch_old_end(old);
        return;
    }
    response->session_id = fetch->session != NULL ? fetch->session->id : 0;
    fetch_release(fetch);
    if (fetch->replica_id >= 0)
        request->charged = true; /* Brokers are exempt. */
    else if (request->errand != NULL && fetch->session == NULL)
        ; /* A part of another shard's answer, which is charged as a whole. */
    else if (quotas_fetch(fetch->node, request,
                          wire_size(wire_form(&wire_fetch_response, request->version), response)))
        fetch_withhold(fetch, response);
    request_reply(request, response);
    fetch_old_end(old);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void fetch_wake(struct replica_wait *wait, struct replica *replica, int events)
{
    struct fetch_item *item = container_of(wait, struct fetch_item, wait);
    struct fetch *fetch = item->fetch;
    bool matters = (events & (LOG_EVENT_FAILED | LOG_EVENT_READY)) != 0 || replica->log == NULL ||
                   !replica->began || partition_role(replica->state) != PARTITION_LEADER ||
                   fetch_bound(fetch, replica) > item->wanted.fetch_offset ||
                   item->wanted.fetch_offset < log_start(replica->log);
    if (!matters || !list_empty(&fetch->due)) return;
    list_append(&fetch->node->fetches_due, &fetch->due);
}

static void fetch_wait(struct fetch *fetch)
{
    fetch_release(fetch);
    for (uint32_t i = 0; i < fetch->item_count; i++) {
        struct fetch_item *item = &fetch->items[i];
        replica_wait_end(&item->wait);
        if (item->replica != NULL) replica_wait_on(item->replica, &item->wait);
    }
}

void fetch_turn_end(struct node *node)
{
    struct list *link;
    while ((link = list_pop(&node->fetches_due)) != NULL) {
        struct fetch *fetch = container_of(link, struct fetch, due);
        request_work(fetch->request);
        if (fetch_read_all(fetch)) {
            fetch_answer(fetch);
        } else {
            fetch_wait(fetch);
            request_rest(fetch->request);
        }
    }
}

static void fetch_expired(struct shard *shard, struct shard_timer *timer)
{
    struct fetch *fetch = container_of(timer, struct fetch, timeout);
    (void)shard;
    request_work(fetch->request);
    (void)fetch_read_all(fetch);
    fetch_answer(fetch);
}

/* Another shard has enough for the answer that this is a part of. */
static void fetch_hurry(struct request *request)
{
    struct fetch *fetch = request->parked;
    (void)fetch_read_all(fetch);
    fetch_answer(fetch);
}

void fetch_gone(struct request *request)
{
    struct fetch *fetch = request->parked;
    struct fetch_old *old = fetch->old;
    fetch_detach(fetch);
    fetch_release(fetch);
    request_finish(request);
    fetch_old_end(old);
}

void fetch_start(struct fetch *fetch, int32_t max_wait_ms)
{
    struct request *request = fetch->request;
    if (fetch->session != NULL) fetch->session->busy = true;
    if (fetch_is_spread(fetch)) {
        fetch_spread_start(fetch, max_wait_ms);
        return;
    }
    if (fetch_read_all(fetch) || max_wait_ms <= 0) {
        fetch_answer(fetch);
        return;
    }
    request->parked = fetch;
    request->gone = fetch_gone;
    request->hurry = fetch_hurry;
    request->patience_ms = max_wait_ms;
    fetch_wait(fetch);
    shard_timer_set(request->shard, &fetch->timeout, io_now_ms(fetch->node->io) + max_wait_ms);
}

void fetch_init(struct fetch *fetch, struct request *request)
{
    const struct fetch_request *in = request->message;
    *fetch = (struct fetch){.request = request, .node = node_of(request->shard)};
    fetch->by_topic_id = request->version >= 13;
    fetch->read_committed = in->isolation_level == 1;
    int32_t replica_id = request->version >= 15 ? in->replica_state.replica_id : in->replica_id;
    fetch->replica_id = MAX(replica_id, -1); /* Kafka reads to the log's end for -3, its own. */
    fetch->replica_epoch = request->version >= 15 ? in->replica_state.replica_epoch : -1;
    int64_t broker_max = broker_setting_kept(fetch->node, &fetch->node->fetch_max_bytes);
    int64_t max = request->version >= 3 ? MAX(in->max_bytes, 0) : INT32_MAX;
    fetch->max_bytes = (uint32_t)MIN(max, broker_max);
    if (fetch->replica_id == -1)
        fetch->max_bytes = quotas_fetch_max(fetch->node, request, fetch->max_bytes);
    fetch->min_bytes = (uint32_t)MIN((int64_t)MAX(in->min_bytes, 0), (int64_t)fetch->max_bytes);
    list_init(&fetch->due);
    shard_timer_init(&fetch->timeout, fetch_expired);
}

void fetch_item_init(struct fetch *fetch,
                     struct fetch_item *item,
                     const struct fetch_wanted *wanted)
{
    item->fetch = fetch;
    item->wanted = *wanted;
    list_init(&item->wait.link);
    item->wait.wake = fetch_wake;
}
