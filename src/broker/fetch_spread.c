/* fetch_spread.c - a Fetch whose partitions belong to several shards.
 *
 * Each shard gets a Fetch of its own partitions, without a session, and waits as for any client.
 * The first that answers hurries the others. They are given so few `min_bytes` that one of them
 * answers whenever there is enough in all: what they have told so far, and their share of what is
 * still missing (if each lacked a byte of its share, all would lack one of the whole). So nobody
 * wakes for nothing more than a few times, and the answer comes with the append that completes it.
 *
 * The limits of the whole are kept here: items are taken in their order as long as they fit, the
 * first with data always; what does not fit is asked for again by the client. */
#include "broker/fetch.h"
#include "broker/shards.h"
#include "gen/fetch_request.h"
#include "gen/fetch_response.h"
#include "net/errand.h"

#define FETCH_SESSIONS_SINCE 7

struct fetch_spread {
    struct fetch *fetch;
    uint8_t *owners;         /* By item. */
    struct errand **errands; /* By shard; NULL: none of its partitions. */
    int64_t *found;          /* By shard: bytes that it had, of its last answer. */
    uint32_t used;           /* Shards with items. */
    uint32_t out;
    int64_t until_ms;
    bool gone;
};

static uint32_t item_owner(const struct fetch *fetch, const struct fetch_item *item)
{
    const struct node *node = fetch->node;
    struct view name = item->wanted.name;
    if (fetch->by_topic_id) {
        const struct image_topic *topic = image_topic_by_id(node->image, item->wanted.topic_id);
        if (topic == NULL) return node->index;
        name = topic->name;
    }
    return shards_owner(node, name, item->wanted.partition);
}

bool fetch_is_spread(const struct fetch *fetch)
{
    if (fetch->node->count == 1) return false;
    for (uint32_t i = 0; i < fetch->item_count; i++)
        if (item_owner(fetch, &fetch->items[i]) != fetch->node->index) return true;
    return false;
}

/* ---- out ------------------------------------------------------------------------------------- */

static void partition_of(const struct fetch_wanted *wanted,
                         struct fetch_request_fetch_topic *topic,
                         struct fetch_request_fetch_partition *part)
{
    wire_struct_defaults(&wire_fetch_request_fetch_topic_shape, topic);
    wire_struct_defaults(&wire_fetch_request_fetch_partition_shape, part);
    topic->topic = wanted->name;
    topic->topic_id = wanted->topic_id;
    topic->partitions.items = part;
    topic->partitions.count = 1;
    part->partition = wanted->partition;
    part->partition_max_bytes = wanted->max_bytes;
    part->fetch_offset = wanted->fetch_offset;
    part->log_start_offset = wanted->log_start_offset;
    part->current_leader_epoch = wanted->leader_epoch;
    part->last_fetched_epoch = wanted->last_fetched_epoch;
}

/* The Fetch of one shard's items. NULL: no memory. */
static struct fetch_request *message_of(struct fetch_spread *spread, uint32_t shard)
{
    struct fetch *fetch = spread->fetch;
    struct request *request = fetch->request;
    struct fetch_request *message = broker_array(request, 1, sizeof(*message));
    struct fetch_request_fetch_topic *topics =
        broker_array(request, fetch->item_count, sizeof(*topics));
    struct fetch_request_fetch_partition *parts =
        broker_array(request, fetch->item_count, sizeof(*parts));
    if (message == NULL || topics == NULL || parts == NULL) return NULL;
    *message = *(const struct fetch_request *)request->message;
    message->session_id = 0;
    message->session_epoch = -1;
    message->max_bytes = (int32_t)fetch->max_bytes;
    message->forgotten_topics_data.count = 0;
    message->topics.items = topics;
    message->topics.count = 0;
    for (uint32_t i = 0; i < fetch->item_count; i++)
        if (spread->owners[i] == shard) {
            int32_t at = message->topics.count++;
            partition_of(&fetch->items[i].wanted, &topics[at], &parts[at]);
        }
    return message;
}

static void errands_end(struct fetch_spread *spread, struct errand **errands)
{
    for (uint32_t i = 0; i < spread->fetch->node->count; i++) {
        errand_end(errands[i]);
        errands[i] = NULL;
    }
}

static void spread_home(struct errand *errand);

/* Bytes of this shard that make an answer. */
static int64_t share_of(const struct fetch_spread *spread, uint32_t shard)
{
    int64_t missing = spread->fetch->min_bytes;
    for (uint32_t i = 0; i < spread->fetch->node->count; i++)
        missing -= spread->found[i];
    if (missing <= 0) return 0;
    return spread->found[shard] + (missing + spread->used - 1) / spread->used;
}

/* One round. False: no memory. */
static bool spread_round(struct fetch_spread *spread)
{
    struct fetch *fetch = spread->fetch;
    struct node *node = fetch->node;
    int64_t wait_ms = MAX(0, spread->until_ms - io_now_ms(node->io));
    struct errand **errands = spread->errands;
    for (uint32_t i = 0; i < node->count; i++) {
        struct fetch_request *message;
        bool used = false;
        for (uint32_t at = 0; at < fetch->item_count && !used; at++)
            used = spread->owners[at] == i;
        if (!used) continue;
        message = message_of(spread, i);
        errands[i] = message == NULL ? NULL : errand_new(fetch->request, node->peers[i]->shard);
        if (errands[i] == NULL) return false;
        message->min_bytes = (int32_t)share_of(spread, i);
        message->max_wait_ms = (int32_t)wait_ms;
        errands[i]->request.message = message;
        errands[i]->handle = handle_fetch;
        errands[i]->done = spread_home;
        errands[i]->context = spread;
    }
    for (uint32_t i = 0; i < node->count; i++)
        if (errands[i] != NULL) spread->out++;
    for (uint32_t i = 0; i < node->count; i++)
        if (errands[i] != NULL) errand_send(errands[i]);
    return true;
}

/* ---- home ------------------------------------------------------------------------------------ */

struct told_at {
    int32_t topic, part;
};

static const struct fetch_response_partition_data *told_next(const struct fetch_response *from,
                                                             struct told_at *at)
{
    while (at->topic < from->responses.count) {
        const struct fetch_response_fetchable_topic_response *topic =
            &from->responses.items[at->topic];
        if (at->part < topic->partitions.count) return &topic->partitions.items[at->part++];
        at->topic++;
        at->part = 0;
    }
    return NULL;
}

/* Give each item what its shard has told of it. False: the answers do not fit. */
static bool items_told(struct fetch_spread *spread)
{
    struct fetch *fetch = spread->fetch;
    struct told_at at[NET_SHARDS_MAX];
    memset(at, 0, sizeof(at));
    for (uint32_t i = 0; i < fetch->item_count; i++) {
        struct fetch_item *item = &fetch->items[i];
        item->errand = spread->errands[spread->owners[i]];
        item->told = told_next(item->errand->response, &at[spread->owners[i]]);
        if (item->told == NULL || item->told->partition_index != item->wanted.partition)
            return false;
        item->error = item->told->error_code;
        item->high_watermark = item->told->high_watermark;
        item->last_stable = item->told->last_stable_offset;
        item->log_start = item->told->log_start_offset;
        item->diverging = item->told->diverging_epoch.epoch >= 0;
        item->range.size_bytes = item->told->records.size;
    }
    return true;
}

/* Is there a reason to answer now? Also: how many bytes each shard has. */
static bool spread_enough(struct fetch_spread *spread)
{
    struct fetch *fetch = spread->fetch;
    int64_t total = 0;
    bool answer = fetch->item_count == 0;
    memset(spread->found, 0, fetch->node->count * sizeof(spread->found[0]));
    for (uint32_t i = 0; i < fetch->item_count; i++) {
        const struct fetch_item *item = &fetch->items[i];
        if (item->error != KAFKA_NONE || item->diverging) answer = true;
        spread->found[spread->owners[i]] += item->range.size_bytes;
        total += item->range.size_bytes;
    }
    return answer || total >= (int64_t)fetch->min_bytes ||
           spread->until_ms <= io_now_ms(fetch->node->io);
}

/* What the limits of the whole let through. */
static void items_limit(struct fetch *fetch)
{
    uint64_t left = fetch->max_bytes;
    bool first = true;
    for (uint32_t i = 0; i < fetch->item_count; i++) {
        struct fetch_item *item = &fetch->items[i];
        if (item->range.size_bytes == 0) continue;
        if (!first && item->range.size_bytes > left) {
            item->range.size_bytes = 0;
            continue;
        }
        first = false;
        left -= MIN(left, (uint64_t)item->range.size_bytes);
    }
}

static void spread_fail(struct fetch_spread *spread, const char *why)
{
    struct fetch *fetch = spread->fetch;
    struct request *request = fetch->request;
    struct errand *errands[NET_SHARDS_MAX];
    uint32_t count = fetch->node->count;
    memcpy(errands, spread->errands, count * sizeof(errands[0]));
    if (fetch->session != NULL) fetch->session->busy = false;
    if (spread->gone)
        request_finish(request);
    else
        request_close(request, why);
    for (uint32_t i = 0; i < count; i++)
        errand_end(errands[i]);
}

static void spread_answer(struct fetch_spread *spread)
{
    struct errand *errands[NET_SHARDS_MAX];
    uint32_t count = spread->fetch->node->count;
    memcpy(errands, spread->errands, count * sizeof(errands[0]));
    items_limit(spread->fetch);
    fetch_answer(spread->fetch); /* The spread is gone with it. */
    for (uint32_t i = 0; i < count; i++)
        errand_end(errands[i]);
}

static void spread_done(struct fetch_spread *spread)
{
    const char *why = NULL;
    for (uint32_t i = 0; i < spread->fetch->node->count; i++)
        if (spread->errands[i] != NULL && spread->errands[i]->response == NULL)
            why = "another shard could not answer a fetch";
    if (spread->gone || why != NULL) {
        spread_fail(spread, why);
        return;
    }
    if (!items_told(spread)) {
        spread_fail(spread, "another shard's answer to a fetch does not fit");
        return;
    }
    if (spread_enough(spread)) {
        spread_answer(spread);
        return;
    }
    errands_end(spread, spread->errands);
    if (!spread_round(spread)) spread_fail(spread, "no memory for a fetch");
}

static void spread_home(struct errand *errand)
{
    struct fetch_spread *spread = errand->context;
    assert(spread->out > 0);
    if (--spread->out == 0) {
        spread_done(spread);
        return;
    }
    for (uint32_t i = 0; i < spread->fetch->node->count; i++)
        if (spread->errands[i] != NULL) errand_hurry(spread->errands[i]);
}

static void spread_gone(struct request *request)
{
    struct fetch *fetch = request->parked;
    struct fetch_spread *spread = fetch->spread;
    spread->gone = true;
    for (uint32_t i = 0; i < fetch->node->count; i++)
        if (spread->errands[i] != NULL) errand_recall(spread->errands[i]);
}

void fetch_spread_start(struct fetch *fetch, int32_t max_wait_ms)
{
    struct request *request = fetch->request;
    uint32_t count = fetch->node->count;
    struct fetch_spread *spread = broker_array(request, 1, sizeof(*spread));
    if (spread != NULL) {
        spread->owners = broker_array(request, fetch->item_count, 1);
        spread->errands = broker_array(request, count, sizeof(spread->errands[0]));
        spread->found = broker_array(request, count, sizeof(spread->found[0]));
    }
    if (spread == NULL || spread->owners == NULL || spread->errands == NULL ||
        spread->found == NULL) {
        if (fetch->session != NULL) fetch->session->busy = false;
        request_close(request, "no memory for a fetch");
        return;
    }
    uint64_t seen = 0;
    for (uint32_t i = 0; i < fetch->item_count; i++) {
        spread->owners[i] = (uint8_t)item_owner(fetch, &fetch->items[i]);
        seen |= (uint64_t)1 << spread->owners[i];
    }
    spread->used = (uint32_t)__builtin_popcountll(seen);
    spread->fetch = fetch;
    spread->until_ms = io_now_ms(fetch->node->io) + MAX(max_wait_ms, 0);
    fetch->spread = spread;
    request->parked = fetch;
    request->gone = spread_gone;
    request->patience_ms = MAX(max_wait_ms, 0);
    if (!spread_round(spread)) spread_fail(spread, "no memory for a fetch");
}
