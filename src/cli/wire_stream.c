/* wire_stream.c - see wire_stream.h. */
#include "cli/wire_stream.h"

#include "base/limits.h"

#include <stdio.h>

enum { REQUEST_BYTES_MIN = 12, SASL_HANDSHAKE_KEY = 17, API_VERSIONS_KEY = 18 };

/* A segment that came before one that is missing. */
struct held {
    struct held *next;
    uint32_t sequence;
    uint32_t size;
    uint8_t bytes[];
};

struct direction {
    struct stream_endpoint from;
    struct out pending; /* Bytes in order that are not yet a whole frame. */
    size_t at;          /* Where in them the next frame begins. */
    struct held *held;  /* By sequence. */
    uint64_t held_bytes;
    uint64_t skipped_bytes; /* Since the last frame, while not aligned. */
    uint32_t next;          /* Sequence number of the next byte in order. */
    bool started;           /* `next` is known. */
    bool aligned;           /* `at` is the start of a frame. */
};

struct outstanding {
    struct frame_kind response;
    int64_t time_us;
    int32_t correlation_id;
    bool known;
};

struct connection {
    struct map_node node;
    uint8_t key[2 * sizeof(struct stream_endpoint)];
    struct direction sides[2];
    struct outstanding *requests;
    uint32_t request_count, request_room;
    int client;   /* Which side; -1: not known yet. */
    bool tokens;  /* SaslHandshake v0: bare tokens may follow. */
    bool counted; /* As one of ours. */
    bool ignored; /* Not Kafka's, or encrypted. */
};

/* ---- telling --------------------------------------------------------------------------------- */

static void tell(struct streams *streams,
                 const struct connection *c,
                 int side,
                 struct stream_event *event)
{
    if (streams->stopped) return;
    event->from = &c->sides[side].from;
    event->to = &c->sides[!side].from;
    if (!streams->visit(streams->context, event)) streams->stopped = true;
}

static void tell_lost(struct streams *streams,
                      const struct connection *c,
                      int side,
                      const char *text,
                      int64_t time_us)
{
    struct stream_event event = {.kind = STREAM_LOST, .text = text, .time_us = time_us};
    tell(streams, c, side, &event);
}

static void fail(struct streams *streams)
{
    streams->failed = true;
    streams->stopped = true;
}

/* ---- requests and responses ------------------------------------------------------------------ */

static void remember(struct streams *streams,
                     struct connection *c,
                     const struct outstanding *request)
{
    if (c->request_count == WIRE_OUTSTANDING_MAX) {
        /* The oldest will hardly be answered any more (acks=0 never is). */
        memmove(c->requests, c->requests + 1, (c->request_count - 1) * sizeof(*c->requests));
        c->request_count--;
    }
    if (c->request_count == c->request_room) {
        uint32_t room = MAX(2 * c->request_room, 8u);
        struct outstanding *requests = mem_get(streams->mem, room * sizeof(*requests));
        if (requests == NULL) {
            fail(streams);
            return;
        }
        if (c->request_count > 0)
            memcpy(requests, c->requests, c->request_count * sizeof(*requests));
        mem_put(streams->mem, c->requests, c->request_room * sizeof(*requests));
        c->requests = requests;
        c->request_room = room;
    }
    c->requests[c->request_count++] = *request;
}

/* Take the request with this id out, and all before it: responses come in the order of requests. */
static bool recall(struct connection *c, int32_t correlation_id, struct outstanding *out)
{
    for (uint32_t i = 0; i < c->request_count; i++) {
        if (c->requests[i].correlation_id != correlation_id) continue;
        *out = c->requests[i];
        c->request_count -= i + 1;
        memmove(c->requests, c->requests + i + 1, c->request_count * sizeof(*c->requests));
        return true;
    }
    return false;
}

static bool is_outstanding(const struct connection *c, int32_t correlation_id)
{
    for (uint32_t i = 0; i < c->request_count; i++)
        if (c->requests[i].correlation_id == correlation_id) return true;
    return false;
}

static void take_request(struct streams *streams,
                         struct connection *c,
                         struct view frame,
                         int64_t time_us)
{
    struct frame_kind kind;
    struct frame_head head;
    bool known = frame_request_kind(frame, &kind) == FRAME_KNOWN;
    struct stream_event event = {
        .kind = STREAM_REQUEST, .time_us = time_us, .request_us = -1, .frame = frame};

    if (c->tokens && !(known && frame_is_whole(&kind, frame))) {
        event.kind = STREAM_TOKEN;
        tell(streams, c, c->client, &event);
        return;
    }
    c->tokens = known && kind.api->key == SASL_HANDSHAKE_KEY && kind.version == 0;
    if (known) event.frame_kind = &kind;
    tell(streams, c, c->client, &event);
    if (!frame_head(frame, &head)) return;

    struct outstanding request = {.time_us = time_us,
                                  .correlation_id = head.correlation_id,
                                  .known = known || head.api_key == API_VERSIONS_KEY};
    if (known) {
        request.response = frame_kind_of(kind.api->response, kind.version);
    } else if (request.known) {
        request.response = frame_kind_of(wire_api(API_VERSIONS_KEY)->response, 0);
    }
    remember(streams, c, &request);
}

static void take_response(struct streams *streams,
                          struct connection *c,
                          struct view frame,
                          int64_t time_us)
{
    struct outstanding request;
    struct stream_event event = {
        .kind = STREAM_RESPONSE, .time_us = time_us, .request_us = -1, .frame = frame};
    bool found = frame.size >= 8 && recall(c, (int32_t)load_be32(frame.data + 4), &request);

    if (!found && c->tokens) event.kind = STREAM_TOKEN;
    if (found) event.request_us = request.time_us;
    if (found && request.known) {
        /* A server that lacks the version answers ApiVersions in version 0 (KIP-511). */
        bool fallback = request.response.api->key == API_VERSIONS_KEY &&
                        !frame_is_whole(&request.response, frame);
        if (fallback) request.response = frame_kind_of(request.response.message, 0);
        event.frame_kind = &request.response;
    }
    tell(streams, c, !c->client, &event);
}

/* ---- frames in the bytes ----------------------------------------------------------------------
 */

static struct view pending_bytes(const struct direction *d)
{
    return view_of(d->pending.text + d->at, (uint32_t)(d->pending.size_bytes - d->at));
}

static bool is_frame_size(uint32_t size)
{
    return size >= 4 && size <= WIRE_FRAME_MAX;
}

/* Could these bytes be the beginning of a request? */
static bool looks_like_request(struct view bytes)
{
    struct frame_head head;
    struct frame_kind kind;

    if (!frame_head(bytes, &head) || !is_frame_size(head.size)) return false;
    if (frame_request_kind(bytes, &kind) != FRAME_KNOWN) return false;
    if (kind.header_version == 0 || bytes.size < REQUEST_BYTES_MIN + 2) return true;
    int16_t client_id = (int16_t)load_be16(bytes.data + REQUEST_BYTES_MIN);
    return client_id >= -1 && client_id <= (int32_t)head.size - 10;
}

/* At the start of a segment behind bytes that are missing: does a frame begin here? */
static bool aligns(struct connection *c, int side, struct view bytes)
{
    if (c->client < 0 && looks_like_request(bytes)) c->client = side;
    if (c->client == side) return looks_like_request(bytes);
    bool response = c->client == !side && bytes.size >= 8 && is_frame_size(load_be32(bytes.data));
    return response && is_outstanding(c, (int32_t)load_be32(bytes.data + 4));
}

/* The first bytes of a connection: are they Kafka's at all? */
static void judge(struct streams *streams, struct connection *c, int side, int64_t time_us)
{
    struct view bytes = pending_bytes(&c->sides[side]);

    /* Where the capture begins later, bytes from inside a frame say nothing. */
    if (c->counted || bytes.size < 4 || !c->sides[side].aligned) return;
    if (bytes.data[0] == 0x16 && bytes.data[1] == 0x03) {
        struct stream_event event = {.kind = STREAM_ENCRYPTED, .time_us = time_us};
        streams->encrypted_count++;
        c->ignored = true;
        tell(streams, c, side, &event);
    } else if (!is_frame_size(load_be32(bytes.data))) {
        streams->foreign_count++;
        c->ignored = true;
    } else {
        streams->connection_count++;
        c->counted = true;
    }
}

static void drop_pending(struct direction *d)
{
    d->at = 0;
    out_reset(&d->pending);
}

/* Take whole frames from the front of what is pending. */
static void take_frames(struct streams *streams, struct connection *c, int side, int64_t time_us)
{
    struct direction *d = &c->sides[side];

    while (!streams->stopped) {
        struct view bytes = pending_bytes(d);
        if (bytes.size < 4) break;
        uint32_t size = load_be32(bytes.data);
        if (!is_frame_size(size)) {
            tell_lost(streams, c, side, "a size that no frame has; looking for the next one",
                      time_us);
            d->aligned = false;
            drop_pending(d);
            return;
        }
        if (bytes.size - 4 < size) break;
        d->at += 4 + size;
        struct view frame = view_of(bytes.data, 4 + size);
        if (side == c->client) {
            take_request(streams, c, frame, time_us);
        } else {
            take_response(streams, c, frame, time_us);
        }
    }
    if (d->at == d->pending.size_bytes) {
        drop_pending(d);
    } else if (d->at > d->pending.size_bytes / 2) {
        d->pending.size_bytes -= d->at;
        memmove(d->pending.text, d->pending.text + d->at, d->pending.size_bytes);
        d->at = 0;
    }
}

/* The next bytes in order. */
static void append(struct streams *streams,
                   struct connection *c,
                   int side,
                   struct view data,
                   int64_t time_us)
{
    struct direction *d = &c->sides[side];

    d->next += data.size;
    if (c->ignored || data.size == 0) return;
    if (!d->aligned) drop_pending(d);
    out_view(&d->pending, data);
    if (d->pending.failed) {
        fail(streams);
        return;
    }
    judge(streams, c, side, time_us);
    if (c->ignored) {
        drop_pending(d);
        return;
    }
    if (!d->aligned) d->aligned = aligns(c, side, pending_bytes(d));
    if (!d->aligned) {
        d->skipped_bytes += data.size;
        return;
    }
    if (!c->counted) streams->connection_count++;
    c->counted = true;
    if (d->skipped_bytes > 0) {
        char text[80];
        snprintf(text, sizeof(text), "%llu bytes before the first whole frame",
                 (unsigned long long)d->skipped_bytes);
        d->skipped_bytes = 0;
        tell_lost(streams, c, side, text, time_us);
    }
    take_frames(streams, c, side, time_us);
}

/* ---- the order of segments ------------------------------------------------------------------- */

static void hold(struct streams *streams, struct direction *d, const struct stream_segment *s)
{
    struct held **place = &d->held;

    if (d->held_bytes + s->data.size > WIRE_HELD_MAX) return; /* It will count as missing. */
    while (*place != NULL && (int32_t)((*place)->sequence - s->sequence) <= 0)
        place = &(*place)->next;
    struct held *held = mem_get(streams->mem, sizeof(*held) + s->data.size);
    if (held == NULL) {
        fail(streams);
        return;
    }
    held->next = *place;
    held->sequence = s->sequence;
    held->size = s->data.size;
    memcpy(held->bytes, s->data.data, s->data.size);
    *place = held;
    d->held_bytes += held->size;
}

static struct held *unhold(struct streams *streams, struct direction *d)
{
    struct held *held = d->held;
    d->held = held->next;
    d->held_bytes -= held->size;
    return mem_put(streams->mem, held, sizeof(*held) + held->size);
}

/* What of `data`, which begins at `sequence`, is new: the view behind the bytes already taken. */
static struct view new_part(const struct direction *d, uint32_t sequence, struct view data)
{
    int32_t old = (int32_t)(d->next - sequence);
    if (old <= 0) return data;
    if ((uint32_t)old >= data.size) return VIEW_EMPTY;
    return view_of(data.data + old, data.size - (uint32_t)old);
}

/* Held segments whose turn has come. */
static void drain(struct streams *streams, struct connection *c, int side, int64_t time_us)
{
    struct direction *d = &c->sides[side];
    while (d->held != NULL && (int32_t)(d->held->sequence - d->next) <= 0 && !streams->stopped) {
        struct view data = view_of(d->held->bytes, d->held->size);
        append(streams, c, side, new_part(d, d->held->sequence, data), time_us);
        (void)unhold(streams, d);
    }
}

/* Bytes before the held segments will not come any more. */
static void give_up_gap(struct streams *streams, struct connection *c, int side, int64_t time_us)
{
    struct direction *d = &c->sides[side];
    char text[80];

    while (d->held != NULL && !streams->stopped) {
        snprintf(text, sizeof(text), "%u bytes are missing in the capture",
                 d->held->sequence - d->next);
        if (!c->ignored) tell_lost(streams, c, side, text, time_us);
        d->next = d->held->sequence;
        d->aligned = false;
        drop_pending(d);
        drain(streams, c, side, time_us);
    }
}

static void take_data(struct streams *streams,
                      struct connection *c,
                      int side,
                      const struct stream_segment *s)
{
    struct direction *d = &c->sides[side];

    if (!d->started) {
        d->started = true;
        d->next = s->sequence;
    }
    if ((int32_t)(s->sequence - d->next) > 0) {
        hold(streams, d, s);
        return;
    }
    append(streams, c, side, new_part(d, s->sequence, s->data), s->time_us);
    drain(streams, c, side, s->time_us);
}

/* ---- connections ----------------------------------------------------------------------------- */

/* The key is both ends, the smaller first; returns which side of the connection `from` is. */
static int key_of(const struct stream_segment *s, uint8_t *key)
{
    size_t size = sizeof(struct stream_endpoint);
    int side = memcmp(&s->from, &s->to, size) > 0;
    memcpy(key + (side ? size : 0), &s->from, size);
    memcpy(key + (side ? 0 : size), &s->to, size);
    return side;
}

static void connection_free(struct streams *streams, struct connection *c)
{
    for (int side = 0; side < 2; side++) {
        while (c->sides[side].held != NULL)
            (void)unhold(streams, &c->sides[side]);
        out_free(&c->sides[side].pending);
    }
    mem_put(streams->mem, c->requests, c->request_room * sizeof(*c->requests));
    map_remove(&streams->connections, &c->node);
    mem_put(streams->mem, c, sizeof(*c));
}

/* Say what is incomplete, and forget the connection. */
static void connection_end(struct streams *streams, struct connection *c, int64_t time_us)
{
    char text[80];
    for (int side = 0; side < 2; side++) {
        struct direction *d = &c->sides[side];
        give_up_gap(streams, c, side, time_us);
        size_t left = d->pending.size_bytes - d->at;
        if (left == 0 || c->ignored || !d->aligned || !c->counted) continue;
        snprintf(text, sizeof(text), "the last frame is cut: %zu bytes of it are there", left);
        tell_lost(streams, c, side, text, time_us);
    }
    connection_free(streams, c);
}

static struct connection *connection_new(struct streams *streams,
                                         const struct stream_segment *s,
                                         const uint8_t *key)
{
    struct connection *c = NULL;
    if (streams->connections.count < WIRE_CONNECTIONS_MAX) c = mem_get(streams->mem, sizeof(*c));
    if (c == NULL) return NULL;
    memcpy(c->key, key, sizeof(c->key));
    c->client = -1;
    for (int side = 0; side < 2; side++) {
        memcpy(&c->sides[side].from, key + (size_t)side * sizeof(s->from), sizeof(s->from));
        out_init(&c->sides[side].pending, streams->mem);
    }
    c->node.key = view_of(c->key, sizeof(c->key));
    if (map_insert(&streams->connections, &c->node)) return c;
    mem_put(streams->mem, c, sizeof(*c));
    return NULL;
}

void streams_init(struct streams *streams, struct mem *mem, stream_visit visit, void *context)
{
    *streams = (struct streams){.mem = mem, .visit = visit, .context = context};
    map_init(&streams->connections, mem, 0);
}

bool streams_take(struct streams *streams, const struct stream_segment *s)
{
    uint8_t key[2 * sizeof(struct stream_endpoint)];
    int side = key_of(s, key);
    streams->last_us = s->time_us;
    struct map_node *node = map_find(&streams->connections, view_of(key, sizeof(key)));
    struct connection *c = node == NULL ? NULL : container_of(node, struct connection, node);

    /* The same ends again, from the start: another connection. */
    bool again = c != NULL && s->syn && !s->ack && c->sides[side].started &&
                 c->sides[side].next != s->sequence + 1;
    if (again) {
        connection_end(streams, c, s->time_us);
        c = NULL;
    }
    if (c == NULL) c = connection_new(streams, s, key);
    if (c == NULL) {
        fail(streams);
        return false;
    }
    if (s->syn) {
        struct direction *d = &c->sides[side];
        d->next = s->sequence + 1;
        d->started = d->aligned = true;
        c->client = s->ack ? !side : side;
    }
    struct stream_segment data = *s;
    if (s->syn) data.sequence++;
    if (s->data.size > 0) take_data(streams, c, side, &data);
    struct direction *other = &c->sides[!side];
    bool beyond = s->ack && other->started && other->held != NULL &&
                  (int32_t)(s->acknowledged - other->held->sequence) > 0;
    if (beyond) give_up_gap(streams, c, !side, s->time_us);
    if (s->rst) connection_end(streams, c, s->time_us);
    return !streams->stopped;
}

void streams_end(struct streams *streams)
{
    struct map_node *node;
    while ((node = map_next(&streams->connections, NULL)) != NULL)
        connection_end(streams, container_of(node, struct connection, node), streams->last_us);
    map_free(&streams->connections);
}
