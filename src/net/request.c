/* request.c - from a frame to a handler, and from its answer to the connection's output.
 *
 *   frame -> RUNNING -> (answered before its turn: ANSWERED) -> SENDING -> free
 *
 * Answers leave in the order of arrival: a request answered before its turn keeps its encoded
 * answer in its own arena. The usual answer, first in line and without file ranges, is encoded
 * straight into the connection's chunk and the request is free at once. */
#include <stdio.h>

#include "net/errand.h"
#include "net/inside.h"

#include "gen/errors.h"
#include "gen/request_header.h"
#include "gen/response_header.h"

#define API_VERSIONS_KEY 18
#define FRAME_MIN_BYTES  8 /* Key, version, correlation id: the shortest header. */

/* ---- life ------------------------------------------------------------------------------------ */

static struct request *request_new(struct connection *connection)
{
    struct shard *shard = connection->shard;
    struct list *node = list_pop(&shard->state->spares);
    struct request *request;
    if (node != NULL) {
        request = container_of(node, struct request, link);
        shard->state->spare_count--;
        struct arena arena = request->arena;
        *request = (struct request){.arena = arena};
    } else {
        request = mem_get(shard->mem, sizeof(*request));
        if (request == NULL) return NULL;
        arena_init(&request->arena, shard->mem, 0);
    }
    list_init(&request->link);
    list_init(&request->answer);
    list_init(&request->ranges);
    request->shard = shard;
    request->connection = connection;
    request->listener = connection->listener;
    request->peer.host = connection->peer->host;
    request->peer.port = connection->port;
    request->principal = VIEW("User:ANONYMOUS");
    return request;
}

void request_range_done(struct net_range *range)
{
    list_remove(&range->link);
    if (range->release != NULL) range->release(range);
}

struct view request_ranges(struct request *request, struct net_range *first)
{
    if (first == NULL) return VIEW_EMPTY;
    uint64_t size = 0;
    for (struct net_range *range = first; range != NULL; range = range->next) {
        list_append(&request->ranges, &range->link);
        size += range->size_bytes;
    }
    assert(size <= INT32_MAX);
    return (struct view){(const uint8_t *)first, (uint32_t)size, false, true};
}

void request_free(struct request *request)
{
    struct shard *shard = request->shard;
    struct shard_state *state = shard->state;
    assert(state->request_count > 0);
    state->request_count--;
    list_init(&request->answer); /* Pieces in the arena. */
    if (state->working == request) state->working = NULL;
    while (!list_empty(&request->ranges))
        request_range_done(container_of(request->ranges.next, struct net_range, link));
    shard_budget_release(shard, request->frame_bytes);
    list_remove(&request->link);
    request->buf = buf_release(request->buf);
    arena_reset(&request->arena);
    if (state->spare_count < NET_SPARE_REQUESTS) {
        list_append(&state->spares, &request->link);
        state->spare_count++;
        return;
    }
    arena_free(&request->arena);
    mem_put(shard->mem, request, sizeof(*request));
}

void request_free_spares(struct shard *shard)
{
    struct list *node;
    while ((node = list_pop(&shard->state->spares)) != NULL) {
        struct request *request = container_of(node, struct request, link);
        arena_free(&request->arena);
        mem_put(shard->mem, request, sizeof(*request));
    }
    shard->state->spare_count = 0;
}

/* Off the connection's queue. */
static void leave_queue(struct request *request)
{
    struct connection *connection = request->connection;
    list_remove(&request->link);
    assert(connection->request_count > 0);
    connection->request_count--;
    /* What is staged may go on; or it was the last before the end. */
    if (connection->in != NULL || connection->doomed != NULL) connection_resume(connection);
}

/* ---- counting -------------------------------------------------------------------------------- */

void request_error(struct request *request, int16_t error_code)
{
    request->errors_counted = true;
    metrics_request(&request->shard->metrics, request->api->key, request->version, error_code);
}

static void say_request(struct request *request,
                        enum say_level level,
                        const char *word,
                        int64_t took_ms)
{
    char client[80], from[sizeof(request->errand->host) + 8] = "a closed connection";
    if (request->peer.host != NULL)
        (void)snprintf(from, sizeof(from), "%s:%u", request->peer.host, request->peer.port);
    say(request->shard->say, level, SAY_IN_REQUEST,
        "%s%s v%d from %s on %s, client \"%s\", id %d: %u bytes, %lld ms", word, request->api->name,
        request->version, from, request->listener->name,
        say_bytes(request->client_id, client, sizeof(client)), request->correlation_id,
        request->frame_bytes, (long long)took_ms);
}

/* It is ended: numbers and lines. */
static void account(struct request *request)
{
    struct shard *shard = request->shard;
    const struct shard_settings *settings = &shard->state->settings;
    if (!request->errors_counted) request_error(request, KAFKA_NONE);
    int64_t now_ms = io_now_ms(shard->io);
    int64_t took_ms = now_ms - request->arrived_ms;
    if (settings->slow_request_ms > 0 &&
        took_ms > settings->slow_request_ms + request->patience_ms) {
        uint32_t dropped;
        metric_add(&shard->metrics, METRIC_REQUESTS_SLOW, 1);
        if (say_allowed(&shard->state->limits[NET_LIMITED_SLOW], now_ms, &dropped))
            say_request(request, SAY_WARN, "slow: ", took_ms);
    } else if (settings->log_requests) {
        say_request(request, SAY_INFO, "", took_ms);
    } else if (say_on(shard->say, SAY_DEBUG, SAY_IN_REQUEST)) {
        say_request(request, SAY_DEBUG, "", took_ms);
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

struct answer {
    const struct wire_form *header;
    const struct wire_form *body;
    const void *response;
    uint32_t header_bytes;
    uint32_t own_bytes; /* Length, header and body, without what is external. */
    struct wire_external external;
    struct response_header head;
};

static void answer_measure(struct request *request, const void *response, struct answer *answer)
{
    int16_t version = wire_response_header_version(request->api, request->version);
    answer->header = wire_form(&wire_response_header, version);
    answer->body = wire_form(request->api->response, request->version);
    assert(answer->header != NULL);
    assert(answer->body != NULL);
    answer->response = response;
    answer->head =
        (struct response_header){.correlation_id = request->correlation_id, .tags = VIEW_EMPTY};
    answer->header_bytes = (uint32_t)wire_size(answer->header, &answer->head);
    size_t body = wire_size_external(answer->body, response, &answer->external);
    assert(body <= INT32_MAX - 64);
    answer->own_bytes = (uint32_t)(4 + answer->header_bytes + body - answer->external.bytes);
}

/* Length, header and own bytes of the body to `out`. */
static void answer_encode(const struct answer *answer, uint8_t *out, struct wire_gap *gaps)
{
    uint32_t gap_count = 0;
    store_be32(out, (uint32_t)(answer->own_bytes - 4 + answer->external.bytes));
    size_t head = wire_encode(answer->header, &answer->head, out + 4, NULL, 0, NULL);
    assert(head == answer->header_bytes);
    size_t body = wire_encode(answer->body, answer->response, out + 4 + head, gaps,
                              answer->external.count, &gap_count);
    assert(4 + head + body == answer->own_bytes);
    assert(gap_count == answer->external.count);
}

/* A piece in the request's arena. */
static struct output_piece *answer_piece(struct request *request)
{
    struct output_piece *piece = arena_get(&request->arena, sizeof(*piece));
    if (piece == NULL) return NULL;
    list_append(&request->answer, &piece->link);
    return piece;
}

static bool answer_own_piece(struct request *request, const uint8_t *bytes, uint32_t size_bytes)
{
    struct output_piece *piece = answer_piece(request);
    if (piece == NULL) return false;
    piece->bytes = bytes;
    piece->size_bytes = size_bytes;
    return true;
}

static bool answer_ranges(struct request *request, const struct wire_gap *gap)
{
    struct net_range *range;
    memcpy(&range, &gap->token, sizeof(range)); /* The token is our own, not const. */
    uint64_t size = 0;
    for (; range != NULL; range = range->next) {
        struct output_piece *piece = answer_piece(request);
        if (piece == NULL) return false;
        piece->file = range->file;
        piece->offset = range->offset;
        piece->bytes = range->bytes;
        piece->size_bytes = range->size_bytes;
        piece->range = range;
        size += range->size_bytes;
    }
    assert(size == gap->size);
    return true;
}

/* The answer as pieces in the request's arena, list `answer`. False: no memory. */
static bool answer_build(struct request *request, const struct answer *answer)
{
    uint32_t count = answer->external.count;
    uint8_t *own = arena_get(&request->arena, answer->own_bytes);
    struct wire_gap *gaps = arena_get(&request->arena, (count + 1) * sizeof(*gaps));
    if (own == NULL || gaps == NULL) return false;
    answer_encode(answer, own, gaps);
    uint32_t at = 0, base = 4 + answer->header_bytes;
    bool fits = true;
    for (uint32_t i = 0; i < count && fits; i++) {
        uint32_t until = base + gaps[i].at;
        fits = answer_own_piece(request, own + at, until - at) && answer_ranges(request, &gaps[i]);
        at = until;
    }
    fits = fits && answer_own_piece(request, own + at, answer->own_bytes - at);
    if (!fits) return false;
    struct output_piece *last = container_of(request->answer.previous, struct output_piece, link);
    last->request = request;
    return true;
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void mute(struct request *request)
{
    if (request->throttle_ms <= 0) return;
    struct shard *shard = request->shard;
    metric_add(&shard->metrics, METRIC_REQUESTS_THROTTLED, 1);
    connection_mute(request->connection, io_now_ms(shard->io) + request->throttle_ms);
}

void request_work(struct request *request)
{
    if (request->shard->state->charging != SHARD_CHARGE_TIME || request->work_ns != 0) return;
    request->work_ns = io_cpu_ns(request->shard->io);
}

void request_rest(struct request *request)
{
    if (request->work_ns == 0) return;
    request->cpu_ns += io_cpu_ns(request->shard->io) - request->work_ns;
    request->work_ns = 0;
}

/* Its quotas: the wait goes into the answer, if there is one with a place for it. */
static void charge(struct request *request, void *response)
{
    struct shard *shard = request->shard;
    const struct shard_state *state = shard->state;
    if (state->charging != SHARD_CHARGE_NOTHING && request->connection != NULL) {
        request_rest(request);
        request_throttle(request, state->hooks.charge(shard, request, response != NULL));
    }
    if (request->throttle_ms <= 0 || response == NULL) return;
    uint16_t at = request->api->throttle_at;
    int32_t throttle_ms = (int32_t)MIN(request->throttle_ms, INT32_MAX);
    if (at != WIRE_NO_THROTTLE) memcpy((uint8_t *)response + at, &throttle_ms, sizeof(throttle_ms));
}

/* What stands answered at the head of the queue goes out. */
static void drain_queue(struct connection *connection)
{
    while (!list_empty(&connection->requests)) {
        struct request *request = container_of(connection->requests.next, struct request, link);
        if (request->state != REQUEST_ANSWERED) return;
        leave_queue(request);
        mute(request);
        request->state = REQUEST_SENDING;
        if (list_empty(&request->answer))
            request_free(request); /* Finished without an answer. */
        else
            output_append(connection, &request->answer);
    }
}

static bool is_first(const struct request *request)
{
    return request->connection->requests.next == &request->link;
}

static void answer_lost(struct request *request)
{
    connection_close(request->connection, "no memory for an answer"); /* Orphans the request. */
    request_free(request);
}

void request_reply(struct request *request, void *response)
{
    assert(request->state == REQUEST_RUNNING);
    /* What there was no memory for would be missing in the answer, and pass for what is not there.
     */
    bool whole = !request->arena.failed;
    if (request->errand != NULL) {
        errand_answered(request->errand, whole ? response : NULL,
                        whole ? NULL : "no memory for an answer");
        return;
    }
    struct connection *connection = request->connection;
    charge(request, response);
    account(request);
    request->gone = NULL; /* Its handler is done with it. */
    if (connection == NULL) {
        request_free(request);
        return;
    }
    if (!whole) {
        answer_lost(request);
        return;
    }
    struct answer answer;
    answer_measure(request, response, &answer);
    if (is_first(request) && answer.external.count == 0) {
        uint8_t *out = output_reserve(connection, answer.own_bytes);
        if (out == NULL) {
            answer_lost(request);
            return;
        }
        answer_encode(&answer, out, NULL);
        leave_queue(request);
        mute(request);
        request_free(request);
        drain_queue(connection);
        return;
    }
    if (!answer_build(request, &answer)) {
        answer_lost(request);
        return;
    }
    request->state = REQUEST_ANSWERED;
    drain_queue(connection);
}

void request_finish(struct request *request)
{
    assert(request->state == REQUEST_RUNNING);
    if (request->errand != NULL) {
        errand_answered(request->errand, NULL, NULL);
        return;
    }
    struct connection *connection = request->connection;
    charge(request, NULL);
    account(request);
    request->gone = NULL;
    if (connection == NULL) {
        request_free(request);
        return;
    }
    request->state = REQUEST_ANSWERED;
    drain_queue(connection);
}

void request_close(struct request *request, const char *why)
{
    assert(request->state == REQUEST_RUNNING);
    if (request->errand != NULL) {
        errand_answered(request->errand, NULL, why);
        return;
    }
    struct connection *connection = request->connection;
    account(request);
    request->gone = NULL; /* Its handler knows. */
    if (connection != NULL) {
        metric_add(&request->shard->metrics, METRIC_VIOLATIONS, 1);
        while (request->link.next != &connection->requests) /* Nothing behind it may pass for it. */
            request_orphan(container_of(request->link.next, struct request, link));
        leave_queue(request);
        request->connection = NULL;
        drain_queue(connection);
        connection_doom(connection, why); /* Those before it are answered. */
    }
    request_free(request);
}

/* The connection is being closed. */
void request_orphan(struct request *request)
{
    struct connection *connection = request->connection;
    list_remove(&request->link);
    connection->request_count--;
    request->connection = NULL;
    request->peer.host = NULL;
    if (request->state == REQUEST_ANSWERED)
        request_free(request);
    else if (request->gone != NULL)
        request->gone(request);
}

void request_throttle(struct request *request, int64_t throttle_ms)
{
    request->throttle_ms = MAX(request->throttle_ms, throttle_ms);
}

void *request_response(struct request *request)
{
    void *response = arena_get(&request->arena, request->api->response->size_bytes);
    if (response != NULL) wire_defaults(request->api->response, response);
    return response;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static const struct net_handler *handler_of(struct connection *connection, int16_t key)
{
    if (key == API_VERSIONS_KEY) return &net_api_versions;
    if (key < 0 || key >= SHARD_HANDLERS_MAX) return NULL;
    const struct net_handler *handler = connection->shard->state->handlers[key];
    if (handler == NULL || !(handler->listeners & connection->listener->kind)) return NULL;
    return handler;
}

static bool version_served(const struct request *request, const struct net_handler *handler)
{
    const struct shard *shard = request->shard;
    const struct wire_api *api = request->api;
    int16_t max = handler->version_max;
    if (!shard->state->settings.unstable_versions) max = MIN(max, api->stable_max);
    int16_t min = handler->version_min;
    bool legacy = shard->state->settings.legacy_versions && request->listener->kind == WIRE_BROKER;
    if (!legacy) min = MAX(min, api->served_min);
    return request->version >= min && request->version <= max;
}

static void refuse(struct connection *connection, enum metric metric, const char *why)
{
    metric_add(&connection->shard->metrics, metric, 1);
    connection_doom(connection, why);
}

/* Header, then body. False: refused, the connection is closed. */
static bool decode(struct request *request, struct reader *in, const struct net_handler *handler)
{
    struct connection *connection = request->connection;
    struct metrics *metrics = &request->shard->metrics;
    struct request_header header;
    int16_t header_version = wire_request_header_version(request->api, request->version);
    if (!wire_decode(in, wire_form(&wire_request_header, header_version), &request->arena,
                     &header)) {
        refuse(connection, METRIC_MALFORMED_HEADER, "a request header does not parse");
        return false;
    }
    request->correlation_id = header.correlation_id;
    request->client_id = header.client_id;
    request->body = view_of(in->at, (uint32_t)reader_left(in));
    if (!version_served(request, handler)) {
        metric_add(metrics, METRIC_UNSUPPORTED_VERSION, 1);
        if (request->api->key == API_VERSIONS_KEY) return true; /* Answered as version 0. */
        connection_doom(connection, "a version that is not served");
        return false;
    }
    void *message = arena_get(&request->arena, request->api->request->size_bytes);
    if (message == NULL || !wire_decode(in, wire_form(request->api->request, request->version),
                                        &request->arena, message)) {
        refuse(connection, METRIC_MALFORMED_BODY,
               message == NULL || in->fault == READER_MEMORY
                   ? "a request body takes more memory than there is for it"
                   : "a request body does not parse");
        return false;
    }
    request->message = message;
    metric_add(metrics, METRIC_ODDITIES, in->oddities);
    if (reader_left(in) > 0) metric_add(metrics, METRIC_TRAILING_BYTES, 1);
    return true;
}

static void enqueue(struct request *request)
{
    struct connection *connection = request->connection;
    list_append(&connection->requests, &request->link);
    connection->request_count++;
}

void request_begin(struct connection *connection, struct buf *buf, struct view frame)
{
    struct shard *shard = connection->shard;
    metric_add(&shard->metrics, METRIC_FRAMES, 1);
    if (frame.size < FRAME_MIN_BYTES) {
        refuse(connection, METRIC_MALFORMED_FRAME, "a frame too short for a header");
        return;
    }
    int16_t key = (int16_t)load_be16(frame.data);
    const struct net_handler *handler = handler_of(connection, key);
    const struct wire_api *api = handler != NULL ? wire_api(key) : NULL;
    if (api == NULL) {
        refuse(connection, METRIC_UNKNOWN_API, "an api that is not served here");
        return;
    }
    struct request *request = request_new(connection);
    if (request == NULL) {
        connection_close(connection, "no memory for a request");
        return;
    }
    shard->state->request_count++;
    shard_budget_charge(shard, frame.size);
    request->frame_bytes = frame.size;
    request->buf = buf_hold(buf);
    request->api = api;
    request->version = (int16_t)load_be16(frame.data + 2);
    request->arrived_ms = connection->read_ms;
    request->handled_ms = io_now_ms(shard->io);
    request_work(request);
    struct reader in = reader_of(frame);
    if (!decode(request, &in, handler)) {
        request_free(request);
        return;
    }
    enqueue(request);
    shard->state->working = request;
    if (request->message == NULL)
        net_api_versions_unsupported(request);
    else
        handler->handle(shard, request);
    if (shard->state->working != NULL) request_rest(shard->state->working); /* It is parked. */
    shard->state->working = NULL;
}
