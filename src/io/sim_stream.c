/* sim_stream.c - the network: listeners, connections, bytes under way.
 *
 * A connection has two ends and two pipes; pipe i carries what end i sends, in order, cut into
 * pieces that travel as packets with a drawn delay. A link that is cut, or a machine that is off,
 * makes packets come back later and, in the end, the sender give up. An end that a power cut has
 * wiped out answers the next packet with a reset, once its machine is on: until then the peer's end
 * is half open. Connections are freed outside turns only, when both ends are through. */
#include "io/sim_inside.h"

#include <errno.h>
#include <stdlib.h>

#define BACKLOG_MAX      128u
#define WINDOW_MIN_BYTES 4096u
#define PIECES_MAX       3u
#define RETRY_FIRST_US   200000
#define RETRY_LAST_US    5000000
#define STALL_MAX_US     2000000u

enum end_state { END_NONE, END_CONNECTING, END_OPEN, END_BROKEN, END_CLOSED, END_GONE };

struct connection;

struct io_stream {
    struct connection *connection;
    uint32_t side;
    enum end_state state;
    int error; /* When broken: negative errno. */
    bool error_told;
    struct sim_shard *shard; /* Whose it is; NULL when closed or gone. */
    struct list link;        /* On its shard's streams or its listener's backlog. */
    int want;
    const struct io_stream_events *events; /* NULL: not watched. */
    void *context;
};

struct pipe {
    uint8_t *ring;
    uint32_t window;                    /* Bytes of the ring. */
    uint64_t sent, delivered, consumed; /* Positions. */
    bool fin_delivered, blocked;
    int64_t last_us; /* When its last packet arrives: the next one comes after. */
};

struct connection {
    struct list link;
    struct sim_world *world;
    uint64_t number;
    struct sim_node *node[2];
    struct io_address address[2];
    struct io_stream end[2];
    struct pipe pipe[2];
    uint32_t packets; /* Under way. */
    bool severed;     /* Nothing arrives any more. */
};

enum packet_kind {
    PACKET_SYN,
    PACKET_ACCEPTED,
    PACKET_REFUSED,
    PACKET_DATA,
    PACKET_FIN,
    PACKET_RESET,
    PACKET_WINDOW
};

struct sim_packet {
    struct connection *connection;
    enum packet_kind kind;
    uint32_t to;    /* Which end. */
    uint64_t up_to; /* Position in the pipe. */
    int64_t first_us;
    uint32_t tries;
};

struct io_listener {
    struct list link; /* On its shard. */
    struct sim_shard *shard;
    struct io_address address;
    const struct io_accept_events *events;
    void *context;
    struct list backlog; /* struct io_stream. */
    uint32_t waiting;
    bool closed;
};

static const char *packet_name(enum packet_kind kind)
{
    static const char *const names[] = {"syn", "accepted", "refused", "data",
                                        "fin", "reset",    "window"};
    return names[kind];
}

/* ---- packets --------------------------------------------------------------------------------- */

static void send_packet(struct connection *connection,
                        enum packet_kind kind,
                        uint32_t to,
                        uint64_t up_to)
{
    struct sim_node *from = connection->node[!to];
    struct sim_world *world = connection->world;
    const struct sim_options *options = &world->options;
    struct sim_packet *packet = sim_heap(sizeof(*packet));
    *packet = (struct sim_packet){connection, kind, to, up_to, world->now_us, 0};
    int64_t at_us = world->now_us + sim_draw_delay(from, SIM_SITE_NET_DELAY, &options->net_delay);
    if (sim_draw_below(from, SIM_SITE_NET_STALL, 1000000) < options->net_stall_per_million)
        at_us += (int64_t)sim_draw_below(from, SIM_SITE_NET_STALL, STALL_MAX_US);
    struct pipe *pipe = &connection->pipe[!to];
    if (kind != PACKET_WINDOW) {
        at_us = MAX(at_us, pipe->last_us + 1);
        pipe->last_us = at_us;
    }
    connection->packets++;
    sim_schedule(world, at_us, (struct sim_event){.kind = SIM_EVENT_NET, .packet = packet});
}

static uint64_t room_of(const struct io_stream *end)
{
    const struct pipe *pipe = &end->connection->pipe[end->side];
    return pipe->window - (pipe->sent - pipe->consumed);
}

/* What it is ready for, of what is wanted. */
static int readiness(const struct io_stream *end)
{
    const struct pipe *in = &end->connection->pipe[!end->side];
    bool broken = end->state == END_BROKEN;
    int ready = 0;
    if (broken) ready |= IO_HANGUP;
    if (broken || in->delivered > in->consumed || in->fin_delivered) ready |= IO_READABLE;
    if (broken || (end->state == END_OPEN && room_of(end) > 0)) ready |= IO_WRITABLE;
    return ready & (end->want | IO_HANGUP);
}

/* A turn for its owner, if there is something to be told. */
static void wake_end(struct io_stream *end)
{
    if (end->shard != NULL && end->events != NULL && readiness(end) != 0) end->shard->ready = true;
}

static void break_end(struct io_stream *end, int error)
{
    if (end->state != END_OPEN && end->state != END_CONNECTING) return;
    end->state = END_BROKEN;
    end->error = error;
    wake_end(end);
}

/* Held back: it comes again later, or its sender gives up. Takes the packet. */
static void retry(struct sim_world *world, struct sim_packet *packet)
{
    struct connection *connection = packet->connection;
    struct io_stream *sender = &connection->end[!packet->to];
    int64_t patience_us = (int64_t)world->options.break_after_ms * 1000;
    bool given_up = world->now_us - packet->first_us > patience_us;
    if (given_up) break_end(sender, -ETIMEDOUT);
    if (given_up || packet->kind == PACKET_RESET || packet->kind == PACKET_WINDOW ||
        sender->state == END_GONE || sender->state == END_BROKEN) {
        free(packet);
        return;
    }
    int64_t wait_us = MIN((int64_t)RETRY_FIRST_US << MIN(packet->tries, 10u), RETRY_LAST_US);
    packet->tries++;
    connection->packets++;
    sim_schedule(world, world->now_us + wait_us,
                 (struct sim_event){.kind = SIM_EVENT_NET, .packet = packet});
}

static bool is_any(const char *host)
{
    return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

static struct io_listener *listener_at(const struct sim_node *node,
                                       const struct io_address *address)
{
    list_foreach (s, &node->shards) {
        struct sim_shard *shard = container_of(s, struct sim_shard, link);
        list_foreach (at, &shard->listeners) {
            struct io_listener *listener = container_of(at, struct io_listener, link);
            if (listener->closed || listener->address.port != address->port) continue;
            bool local = address->host[0] == '/' || listener->address.host[0] == '/';
            if (strcmp(listener->address.host, address->host) == 0 ||
                (!local && is_any(listener->address.host)))
                return listener;
        }
    }
    return NULL;
}

/* False: no place in the backlog, ask again. */
static bool syn_arrives(struct connection *connection)
{
    struct io_listener *listener = listener_at(connection->node[1], &connection->address[1]);
    struct io_stream *end = &connection->end[1];
    if (listener == NULL || connection->node[1]->crashed) {
        send_packet(connection, PACKET_REFUSED, 0, 0);
        end->state = END_CLOSED;
        return true;
    }
    if (listener->waiting == BACKLOG_MAX) return false;
    end->state = END_OPEN;
    end->shard = listener->shard;
    list_append(&listener->backlog, &end->link);
    listener->waiting++;
    listener->shard->ready = true;
    send_packet(connection, PACKET_ACCEPTED, 0, 0);
    return true;
}

static void data_arrives(const struct sim_packet *packet)
{
    struct connection *connection = packet->connection;
    struct io_stream *end = &connection->end[packet->to];
    struct pipe *pipe = &connection->pipe[!packet->to];
    if (end->state == END_OPEN || end->state == END_CONNECTING) {
        pipe->delivered = MAX(pipe->delivered, packet->up_to);
        if (packet->kind == PACKET_FIN) pipe->fin_delivered = true;
        wake_end(end);
    } else if (end->state == END_GONE ||
               (end->state == END_CLOSED && packet->kind == PACKET_DATA)) {
        send_packet(connection, PACKET_RESET, !packet->to, 0);
    }
}

/* A reset may overtake what the reader has not read yet. */
static void reset_arrives(const struct sim_packet *packet)
{
    struct connection *connection = packet->connection;
    struct io_stream *end = &connection->end[packet->to];
    struct pipe *pipe = &connection->pipe[!packet->to];
    bool lost = sim_draw_below(connection->node[packet->to], SIM_SITE_LAST_BYTES, 2) == 0;
    if (end->state == END_OPEN && lost) pipe->consumed = pipe->delivered;
    break_end(end, -ECONNRESET);
}

static bool arrive(const struct sim_packet *packet)
{
    struct io_stream *end = &packet->connection->end[packet->to];
    switch (packet->kind) {
    case PACKET_SYN: return syn_arrives(packet->connection);
    case PACKET_ACCEPTED:
        if (end->state == END_CONNECTING) end->state = END_OPEN;
        wake_end(end);
        break;
    case PACKET_REFUSED: break_end(end, -ECONNREFUSED); break;
    case PACKET_DATA:
    case PACKET_FIN: data_arrives(packet); break;
    case PACKET_RESET: reset_arrives(packet); break;
    case PACKET_WINDOW: wake_end(end); break;
    }
    return true;
}

void sim_packet_arrives(struct sim_world *world, struct sim_packet *packet)
{
    struct connection *connection = packet->connection;
    struct sim_node *from = connection->node[!packet->to], *to = connection->node[packet->to];
    assert(connection->packets > 0);
    connection->packets--;
    bool cut = connection->severed || (world->cut[from->id] & 1u << to->id) != 0;
    bool arrived = !cut && !to->off && arrive(packet);
    sim_note(to, &(struct sim_trace){.kind = packet_name(packet->kind),
                                     .name = from->name,
                                     .offset = connection->number,
                                     .size = packet->up_to,
                                     .result = arrived});
    if (arrived)
        free(packet);
    else
        retry(world, packet);
}

/* ---- listeners ------------------------------------------------------------------------------- */

int sim_listen(struct io *io,
               const struct io_address *address,
               const struct io_accept_events *events,
               void *context,
               struct io_listener **out,
               struct io_address *bound)
{
    struct sim_shard *shard = sim_shard_of(io);
    struct sim_node *node = shard->node;
    if (node->crashed) return -EIO;
    struct io_address own = *address;
    while (own.host[0] != '/' && own.port == 0) {
        own.port = (uint16_t)(32768 + node->ports++ % 20000);
        if (listener_at(node, &own) != NULL) own.port = 0;
    }
    if (listener_at(node, &own) != NULL) return -EADDRINUSE;
    struct io_listener *listener = sim_heap(sizeof(*listener));
    listener->shard = shard;
    listener->address = own;
    listener->events = events;
    listener->context = context;
    list_init(&listener->backlog);
    list_append(&shard->listeners, &listener->link);
    sim_note(node, &(struct sim_trace){.kind = "listen", .name = own.host, .offset = own.port});
    *out = listener;
    if (bound != NULL) *bound = own;
    return 0;
}

/* The end is through; its peer is told by this packet. */
static void close_end(struct io_stream *end, bool gone)
{
    struct connection *connection = end->connection;
    struct pipe *out = &connection->pipe[end->side], *in = &connection->pipe[!end->side];
    bool unread = in->delivered > in->consumed;
    if (!gone && end->state == END_OPEN)
        send_packet(connection, unread ? PACKET_RESET : PACKET_FIN, !end->side, out->sent);
    else if (!gone && end->state == END_CONNECTING)
        send_packet(connection, PACKET_RESET, !end->side, 0);
    end->state = gone ? END_GONE : END_CLOSED;
    end->shard = NULL;
    end->events = NULL;
    list_remove(&end->link);
}

static void listener_drop(struct io_listener *listener, bool gone)
{
    struct list *node;
    while (!list_empty(&listener->backlog)) {
        node = listener->backlog.next;
        close_end(container_of(node, struct io_stream, link), gone);
    }
    list_remove(&listener->link);
    free(listener);
}

/* Inside a turn it is freed at the turn's end. */
void sim_unlisten(struct io *io, struct io_listener *listener)
{
    assert(!listener->closed);
    listener->closed = true;
    if (!sim_shard_of(io)->in_turn) listener_drop(listener, false);
}

/* ---- streams --------------------------------------------------------------------------------- */

static struct sim_node *node_at(struct sim_node *from, const char *host)
{
    if (host[0] == '/' || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0) return from;
    struct sim_world *world = from->world;
    for (uint32_t i = 0; i < world->node_count; i++) {
        struct sim_node *node = world->node_by_id[i];
        if (strcmp(node->host, host) == 0 || strcmp(node->name, host) == 0) return node;
    }
    return NULL;
}

static void end_init(struct connection *connection, uint32_t side)
{
    struct io_stream *end = &connection->end[side];
    struct pipe *pipe = &connection->pipe[side];
    end->connection = connection;
    end->side = side;
    list_init(&end->link);
    pipe->window = WINDOW_MIN_BYTES << sim_draw_below(connection->node[side], SIM_SITE_WINDOW, 6);
    pipe->ring = sim_heap(pipe->window);
}

int sim_connect(struct io *io, const struct io_address *address, struct io_stream **out)
{
    struct sim_shard *shard = sim_shard_of(io);
    struct sim_node *node = shard->node, *to = node_at(node, address->host);
    if (node->crashed) return -EIO;
    if (to == NULL) return -EHOSTUNREACH;
    struct connection *connection = sim_heap(sizeof(*connection));
    connection->world = node->world;
    connection->number = node->world->connection_number++;
    connection->node[0] = node;
    connection->node[1] = to;
    connection->address[1] = *address;
    connection->address[0] = *address;
    if (address->host[0] != '/') {
        if (to != node) memcpy(connection->address[0].host, node->host, sizeof(node->host));
        connection->address[0].port = (uint16_t)(53000 + node->ports++ % 12000);
    }
    end_init(connection, 0);
    end_init(connection, 1);
    list_append(&node->world->connections, &connection->link);
    struct io_stream *end = &connection->end[0];
    end->state = END_CONNECTING;
    end->shard = shard;
    list_append(&shard->streams, &end->link);
    shard->stream_count++;
    send_packet(connection, PACKET_SYN, 1, 0);
    *out = end;
    return 0;
}

void sim_want(struct io *io, struct io_stream *stream, int want)
{
    assert(stream->state != END_CLOSED);
    stream->want = want;
    if (stream->events != NULL && readiness(stream) != 0) sim_shard_of(io)->ready = true;
    if (stream->state == END_OPEN && want & IO_WRITABLE && room_of(stream) == 0)
        stream->connection->pipe[stream->side].blocked = true;
}

void sim_watch(struct io *io,
               struct io_stream *stream,
               int want,
               const struct io_stream_events *events,
               void *context)
{
    stream->events = events;
    stream->context = context;
    sim_want(io, stream, want);
}

int64_t sim_recv(struct io *io, struct io_stream *stream, void *out, size_t size)
{
    struct sim_node *node = sim_shard_of(io)->node;
    struct pipe *pipe = &stream->connection->pipe[!stream->side];
    assert(stream->state != END_CLOSED);
    if (node->crashed) return -EIO;
    uint64_t there = pipe->delivered - pipe->consumed;
    if (there == 0 || size == 0) {
        if (stream->state == END_BROKEN) {
            stream->error_told = true;
            return stream->error;
        }
        return there == 0 && !pipe->fin_delivered ? -EAGAIN : 0;
    }
    size_t take = (size_t)MIN(there, size);
    bool was_full = pipe->sent - pipe->consumed == pipe->window;
    for (size_t done = 0; done < take;) {
        size_t at = (size_t)(pipe->consumed % pipe->window);
        size_t part = MIN(take - done, pipe->window - at);
        memcpy((uint8_t *)out + done, pipe->ring + at, part);
        pipe->consumed += part;
        done += part;
    }
    if (was_full || pipe->blocked) {
        pipe->blocked = false;
        send_packet(stream->connection, PACKET_WINDOW, !stream->side, 0);
    }
    return (int64_t)take;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* 0: bytes may be sent; else what the call returns. */
static int64_t cannot_send(const struct sim_node *node, struct io_stream *stream)
{
    assert(stream->state != END_CLOSED);
    if (node->crashed) return -EIO;
    if (stream->state == END_CONNECTING) return -EAGAIN;
    if (stream->state == END_BROKEN) {
        bool told = stream->error_told;
        stream->error_told = true;
        return told ? -EPIPE : stream->error;
    }
    if (room_of(stream) > 0) return 0;
    stream->connection->pipe[stream->side].blocked = true;
    return -EAGAIN;
}

/* How much of it is taken: what there is room for, now and then less. */
static size_t taken_of(struct sim_node *node, struct io_stream *stream, size_t size)
{
    size_t take = (size_t)MIN(size, room_of(stream));
    if (take > 0 && sim_draw_below(node, SIM_SITE_SHORT, 8) == 0)
        take = 1 + (size_t)sim_draw_below(node, SIM_SITE_SHORT, take);
    if (take < size) stream->connection->pipe[stream->side].blocked = true;
    return take;
}

static void put(struct pipe *pipe, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        size_t at = (size_t)(pipe->sent % pipe->window);
        size_t part = MIN(size, pipe->window - at);
        memcpy(pipe->ring + at, bytes, part);
        pipe->sent += part;
        bytes += part;
        size -= part;
    }
}

/* Send what was put since `from`, in a few pieces; or break the connection in their place. */
static void dispatch(struct sim_node *node, struct io_stream *stream, uint64_t from)
{
    struct connection *connection = stream->connection;
    uint64_t end = connection->pipe[stream->side].sent;
    uint64_t pieces = 1 + sim_draw_below(node, SIM_SITE_SPLIT, PIECES_MAX);
    const struct sim_options *options = &node->world->options;
    uint32_t chance = options->net_reset_per_million;
    if (sim_draw_below(node, SIM_SITE_NET_SEVER, 1000000) < options->net_sever_per_million)
        connection->severed = true;
    for (uint64_t at = from; at < end; pieces--) {
        if (sim_draw_below(node, SIM_SITE_NET_RESET, 1000000) < chance) {
            send_packet(connection, PACKET_RESET, !stream->side, 0);
            break_end(stream, -ECONNRESET);
            return;
        }
        at = pieces > 1 ? at + 1 + sim_draw_below(node, SIM_SITE_SPLIT, end - at) : end;
        send_packet(connection, PACKET_DATA, !stream->side, at);
    }
}

int64_t sim_send(struct io *io,
                 struct io_stream *stream,
                 const struct iovec *iov,
                 uint32_t count,
                 bool more)
{
    (void)more;
    struct sim_node *node = sim_shard_of(io)->node;
    int64_t refused = cannot_send(node, stream);
    if (refused != 0) return refused;
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++)
        size += iov[i].iov_len;
    size_t take = taken_of(node, stream, size), left = take;
    struct pipe *pipe = &stream->connection->pipe[stream->side];
    uint64_t from = pipe->sent;
    for (uint32_t i = 0; i < count && left > 0; i++) {
        size_t part = MIN(left, iov[i].iov_len);
        put(pipe, iov[i].iov_base, part);
        left -= part;
    }
    dispatch(node, stream, from);
    return (int64_t)take;
}

int64_t sim_send_file(struct io *io,
                      struct io_stream *stream,
                      struct io_file *file,
                      uint64_t offset,
                      size_t size)
{
    struct sim_shard *shard = sim_shard_of(io);
    int64_t refused = cannot_send(shard->node, stream);
    if (refused != 0) return refused;
    struct sim_visit visit = sim_visit(shard, SIM_CALL_READ, file->path);
    const struct sim_bytes *bytes = &file->inode->now;
    size_t there = offset < bytes->size ? (size_t)MIN(size, bytes->size - offset) : 0;
    visit.offset = offset;
    visit.size = size;
    int64_t result = sim_visit_end(&visit, visit.error);
    if (result != 0 || there == 0) return result;
    struct pipe *pipe = &stream->connection->pipe[stream->side];
    uint64_t from = pipe->sent;
    size_t take = taken_of(shard->node, stream, there);
    put(pipe, bytes->data + offset, take);
    dispatch(shard->node, stream, from);
    return (int64_t)take;
}

void sim_local(struct io *io, struct io_stream *stream, struct io_address *out)
{
    (void)io;
    *out = stream->connection->address[stream->side];
}

void sim_peer(struct io *io, struct io_stream *stream, struct io_address *out)
{
    (void)io;
    *out = stream->connection->address[!stream->side];
}

void sim_close_stream(struct io *io, struct io_stream *stream)
{
    struct sim_shard *shard = sim_shard_of(io);
    assert(stream->state != END_CLOSED);
    assert(stream->shard == shard);
    shard->stream_count--;
    close_end(stream, shard->node->crashed);
}

/* Until it is taken it is the giver's still: it goes with the process. */
void sim_give_stream(struct io *io, struct io_stream *stream)
{
    assert(stream->shard == sim_shard_of(io));
    assert(stream->events == NULL);
}

void sim_take_stream(struct io *io, struct io_stream *stream)
{
    struct sim_shard *shard = sim_shard_of(io), *giver = stream->shard;
    assert(stream->events == NULL);
    if (giver == shard) return;
    assert(giver != NULL);
    assert(giver->node == shard->node);
    list_remove(&stream->link);
    giver->stream_count--;
    list_append(&shard->streams, &stream->link);
    shard->stream_count++;
    stream->shard = shard;
}

/* One of the node's open streams, or NULL. */
static struct io_stream *drawn_stream(struct sim_node *node, enum sim_site site)
{
    struct io_stream *chosen = NULL;
    uint64_t count = 0;
    list_foreach (s, &node->shards) {
        struct sim_shard *shard = container_of(s, struct sim_shard, link);
        list_foreach (at, &shard->streams) {
            struct io_stream *stream = container_of(at, struct io_stream, link);
            if (stream->state != END_OPEN) continue;
            if (sim_draw_below(node, site, ++count) == 0) chosen = stream;
        }
    }
    return chosen;
}

bool sim_node_reset_stream(struct sim_node *node)
{
    struct io_stream *chosen = drawn_stream(node, SIM_SITE_NET_RESET);
    if (chosen == NULL) return false;
    send_packet(chosen->connection, PACKET_RESET, !chosen->side, 0);
    break_end(chosen, -ECONNRESET);
    return true;
}

bool sim_node_sever_stream(struct sim_node *node)
{
    struct io_stream *chosen = drawn_stream(node, SIM_SITE_NET_SEVER);
    if (chosen == NULL) return false;
    chosen->connection->severed = true;
    sim_note(node, &(struct sim_trace){
                       .kind = "sever", .name = "", .offset = chosen->connection->number});
    return true;
}

/* ---- turns ----------------------------------------------------------------------------------- */

bool sim_streams_pending(struct sim_shard *shard)
{
    list_foreach (at, &shard->listeners) {
        if (!list_empty(&container_of(at, struct io_listener, link)->backlog)) return true;
    }
    list_foreach (at, &shard->streams) {
        const struct io_stream *stream = container_of(at, struct io_stream, link);
        if (stream->events != NULL && readiness(stream) != 0) return true;
    }
    return false;
}

static uint32_t accept_all(struct sim_shard *shard)
{
    uint32_t called = 0;
    list_foreach (at, &shard->listeners) {
        struct io_listener *listener = container_of(at, struct io_listener, link);
        for (uint32_t i = 0; i < IO_ACCEPTS_PER_TURN && !listener->closed &&
                             !shard->node->crashed && !list_empty(&listener->backlog);
             i++) {
            struct io_stream *stream = container_of(listener->backlog.next, struct io_stream, link);
            list_remove(&stream->link);
            listener->waiting--;
            list_append(&shard->streams, &stream->link);
            shard->stream_count++;
            called++;
            listener->events->accepted(listener->context, stream, &stream->connection->address[0]);
        }
    }
    return called;
}

/* The ends are looked at in a drawn rotation; those closed by a callback are passed over. */
static uint32_t tell_all(struct sim_shard *shard)
{
    uint32_t count = shard->stream_count, called = 0, i = 0;
    if (count == 0) return 0;
    struct io_stream **streams = sim_heap(count * sizeof(struct io_stream *));
    list_foreach (at, &shard->streams)
        streams[i++] = container_of(at, struct io_stream, link);
    assert(i == count);
    uint64_t first = sim_draw_below(shard->node, SIM_SITE_TURN, count);
    for (i = 0; i < count && !shard->node->crashed; i++) {
        struct io_stream *stream = streams[(first + i) % count];
        if (stream->events == NULL) continue;
        int ready = readiness(stream);
        if (ready == 0) continue;
        called++;
        stream->events->ready(stream->context, stream, ready);
    }
    free(streams);
    return called;
}

uint32_t sim_streams_deliver(struct sim_shard *shard)
{
    uint32_t called = tell_all(shard);
    called += accept_all(shard); /* What is new is told in the next turn, as the kernel does. */
    list_foreach (at, &shard->listeners) {
        struct io_listener *listener = container_of(at, struct io_listener, link);
        if (listener->closed) listener_drop(listener, false);
    }
    return called;
}

void sim_streams_drop(struct sim_shard *shard, bool told)
{
    while (!list_empty(&shard->listeners))
        listener_drop(container_of(shard->listeners.next, struct io_listener, link), !told);
    while (!list_empty(&shard->streams))
        close_end(container_of(shard->streams.next, struct io_stream, link), !told);
    shard->stream_count = 0;
}

/* ---- the end of connections ------------------------------------------------------------------ */

static bool is_through(const struct io_stream *end)
{
    return end->state == END_CLOSED || end->state == END_GONE || end->state == END_NONE;
}

static void connection_free(struct connection *connection)
{
    list_remove(&connection->link);
    free(connection->pipe[0].ring);
    free(connection->pipe[1].ring);
    free(connection);
}

void sim_connections_reap(struct sim_world *world)
{
    list_foreach (at, &world->connections) {
        struct connection *connection = container_of(at, struct connection, link);
        if (connection->packets == 0 && is_through(&connection->end[0]) &&
            is_through(&connection->end[1]))
            connection_free(connection);
    }
}

void sim_connections_free(struct sim_world *world)
{
    while (!list_empty(&world->connections))
        connection_free(container_of(world->connections.next, struct connection, link));
}
