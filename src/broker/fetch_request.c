/* fetch_request.c - which partitions a Fetch is about: its own list, or its session's (KIP-227). */
#include "gen/fetch_request.h"
#include "broker/fetch.h"
#include "broker/raft.h"
#include "gen/fetch_response.h"

#define FETCH_SESSIONS_SINCE 7

static void fetch_refuse(struct request *request, int16_t error)
{
    struct fetch_response *response = request_response(request);
    if (response == NULL) {
        request_close(request, "no memory for a fetch answer");
        return;
    }
    response->error_code = error;
    request_error(request, error);
    request_reply(request, response);
}

static uint32_t wanted_count(const struct fetch_request *in)
{
    uint32_t count = 0;
    for (int32_t t = 0; t < in->topics.count; t++)
        count += (uint32_t)MAX(in->topics.items[t].partitions.count, 0);
    return count;
}

static void wanted_from(const struct fetch_request_fetch_topic *topic,
                        const struct fetch_request_fetch_partition *in,
                        struct fetch_wanted *out)
{
    *out = (struct fetch_wanted){
        .topic_id = topic->topic_id,
        .name = topic->topic,
        .partition = in->partition,
        .max_bytes = in->partition_max_bytes,
        .fetch_offset = in->fetch_offset,
        .log_start_offset = in->log_start_offset,
        .leader_epoch = in->current_leader_epoch,
        .last_fetched_epoch = in->last_fetched_epoch,
    };
}

/* The request's own partitions as items. */
static bool items_of_request(struct fetch *fetch, const struct fetch_request *in)
{
    uint32_t count = wanted_count(in);
    fetch->items = broker_array(fetch->request, count, sizeof(*fetch->items));
    if (count > 0 && fetch->items == NULL) return false;
    for (int32_t t = 0; t < in->topics.count; t++) {
        for (int32_t p = 0; p < in->topics.items[t].partitions.count; p++) {
            struct fetch_wanted wanted;
            wanted_from(&in->topics.items[t], &in->topics.items[t].partitions.items[p], &wanted);
            fetch_item_init(fetch, &fetch->items[fetch->item_count++], &wanted);
        }
    }
    return true;
}

/* The session's partitions as items, in its order. */
static bool items_of_session(struct fetch *fetch)
{
    fetch->items =
        broker_array(fetch->request, fetch->session->by_key.count, sizeof(*fetch->items));
    if (fetch->session->by_key.count > 0 && fetch->items == NULL) return false;
    list_foreach (link, &fetch->session->partitions) {
        struct fetch_partition *p = container_of(link, struct fetch_partition, link);
        struct fetch_wanted wanted = {p->topic_id,     p->name,
                                      p->partition,    p->max_bytes,
                                      p->fetch_offset, p->log_start_offset,
                                      p->leader_epoch, p->last_fetched_epoch};
        struct fetch_item *item = &fetch->items[fetch->item_count++];
        fetch_item_init(fetch, item, &wanted);
        item->wanted.name = arena_copy(&fetch->request->arena, p->name);
        item->cached = p;
    }
    return true;
}

static bool session_take(struct node *node,
                         struct fetch_session *session,
                         const struct fetch_request *in)
{
    for (int32_t t = 0; t < in->topics.count; t++) {
        for (int32_t p = 0; p < in->topics.items[t].partitions.count; p++) {
            struct fetch_wanted wanted;
            wanted_from(&in->topics.items[t], &in->topics.items[t].partitions.items[p], &wanted);
            if (!fetch_session_put(&node->sessions, session, &wanted)) return false;
        }
    }
    for (int32_t t = 0; t < in->forgotten_topics_data.count; t++) {
        const struct fetch_request_forgotten_topic *topic = &in->forgotten_topics_data.items[t];
        for (int32_t p = 0; p < topic->partitions.count; p++)
            fetch_session_forget(&node->sessions, session, topic->topic_id, topic->topic,
                                 topic->partitions.items[p]);
    }
    return true;
}

/* A full fetch that asks for a session: it gets one if there is room. */
static void session_begin(struct fetch *fetch, const struct fetch_request *in)
{
    struct node *node = fetch->node;
    struct fetch_session *session =
        fetch_session_new(&node->sessions, io_random(node->io, IO_RANDOM_SESSION),
                          io_now_ms(node->io), wanted_count(in), fetch->replica_id >= 0);
    if (session == NULL) return;
    session->by_topic_id = fetch->by_topic_id;
    if (!session_take(node, session, in)) {
        fetch_session_drop(&node->sessions, session);
        return;
    }
    fetch->session = session;
}

/* NONE, or why the session of an incremental fetch cannot serve it. */
static int16_t session_check(const struct fetch *fetch,
                             const struct fetch_session *session,
                             const struct fetch_request *in)
{
    if (session == NULL) return KAFKA_FETCH_SESSION_ID_NOT_FOUND;
    if (session->epoch != in->session_epoch || session->busy)
        return KAFKA_INVALID_FETCH_SESSION_EPOCH;
    return session->by_topic_id != fetch->by_topic_id ? KAFKA_FETCH_SESSION_TOPIC_ID_ERROR
                                                      : KAFKA_NONE;
}

/* An incremental fetch. False: refused, the request is ended. */
static bool session_go_on(struct fetch *fetch, const struct fetch_request *in, bool *memory)
{
    struct node *node = fetch->node;
    struct fetch_session *session = fetch_session_find(&node->sessions, in->session_id);
    int16_t error = session_check(fetch, session, in);
    if (error != KAFKA_NONE) {
        fetch_refuse(fetch->request, error);
        return false;
    }
    *memory = session_take(node, session, in);
    session->epoch = fetch_session_epoch_next(session->epoch);
    fetch_session_touch(&node->sessions, session, io_now_ms(node->io));
    if (session->by_key.count == 0) {
        fetch_session_drop(&node->sessions, session);
        return true;
    }
    fetch->session = session;
    return true;
}

void handle_fetch(struct shard *shard, struct request *request)
{
    if (request->listener->kind == WIRE_CONTROLLER) {
        raft_handle_fetch(shard, request);
        return;
    }
    const struct fetch_request *in = request->message;
    struct fetch *fetch = broker_array(request, 1, sizeof(*fetch));
    if (fetch == NULL) {
        request_close(request, "no memory for a fetch");
        return;
    }
    fetch_init(fetch, request);
    (void)shard;
    bool memory = true;
    bool incremental = request->version >= FETCH_SESSIONS_SINCE && in->session_epoch > 0;
    if (incremental) {
        if (!session_go_on(fetch, in, &memory)) return;
    } else {
        struct fetch_session *old = fetch_session_find(&fetch->node->sessions, in->session_id);
        if (request->version >= FETCH_SESSIONS_SINCE && old != NULL && !old->busy)
            fetch_session_drop(&fetch->node->sessions, old);
        fetch->full = true;
        if (request->version >= FETCH_SESSIONS_SINCE && in->session_epoch == 0)
            session_begin(fetch, in);
    }
    if (memory)
        memory = fetch->session != NULL ? items_of_session(fetch) : items_of_request(fetch, in);
    if (!memory) {
        request_close(request, "no memory for a fetch");
        return;
    }
    fetch_start(fetch, in->max_wait_ms);
}
