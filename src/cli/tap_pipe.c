/* tap_pipe.c - one connection through the tap. See tap.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/clock.h"
#include "cli/tap.h"
#include "cli/tap_rewrite.h"

#define PIPE_READ_BYTES (64u * 1024u)
#define PIPE_OUT_HIGH   (4u * 1024u * 1024u) /* Above, the other side is not read. */
#define PIPE_BYTES_MAX  (WIRE_FRAME_MAX + PIPE_OUT_HIGH)
#define TLS_HANDSHAKE   0x16

/* ---- opening and closing --------------------------------------------------------------------- */

static struct stream_endpoint endpoint_of(const struct sockaddr_storage *at)
{
    struct stream_endpoint out = {.family = at->ss_family};
    if (at->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)at;
        out.port = ntohs(in6->sin6_port);
        memcpy(out.address, &in6->sin6_addr, 16);
        if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
            memset(out.address, 0, sizeof(out.address));
            memcpy(out.address, in6->sin6_addr.s6_addr + 12, 4);
            out.family = AF_INET;
        }
    } else {
        const struct sockaddr_in *in = (const struct sockaddr_in *)at;
        out.port = ntohs(in->sin_port);
        memcpy(out.address, &in->sin_addr, 4);
    }
    return out;
}

static void learn_addresses(struct tap_connection *c)
{
    struct sockaddr_storage client = {0}, broker = {0}, local = {0};
    socklen_t size = sizeof(client);
    (void)getpeername(c->client, (struct sockaddr *)&client, &size);
    size = sizeof(broker);
    (void)getpeername(c->broker, (struct sockaddr *)&broker, &size);
    size = sizeof(local);
    (void)getsockname(c->client, (struct sockaddr *)&local, &size);
    c->flow.client = endpoint_of(&client);
    c->flow.server = endpoint_of(&broker);
    if (c->flow.client.family != c->flow.server.family) {
        /* One packet has one family: the client is shown as its port of the broker's family. */
        uint16_t port = c->flow.client.port;
        c->flow.client = c->flow.server;
        c->flow.client.port = port;
    }
    struct stream_endpoint mine = endpoint_of(&local);
    (void)inet_ntop(mine.family, mine.address, c->local_host, sizeof(c->local_host));
}

struct tap_connection *tap_connection_new(struct tap *tap,
                                          struct tap_listener *listener,
                                          int client,
                                          int broker)
{
    struct tap_connection *c = mem_get(tap->cli->mem, sizeof(*c));
    if (c == NULL) {
        close(client);
        close(broker);
        return NULL;
    }
    c->tap = tap;
    c->listener = listener;
    c->client = client;
    c->broker = broker;
    struct sink *sinks[] = {&c->up.in, &c->up.out, &c->down.in, &c->down.out};
    for (size_t i = 0; i < ARRAY_SIZE(sinks); i++)
        sink_init(sinks[i], tap->cli->mem, PIPE_BYTES_MAX);
    learn_addresses(c);
    pcapng_open(&c->flow, clock_us(CLOCK_REALTIME), tap_show, tap);
    return c;
}

void tap_connection_free(struct tap_connection *c)
{
    struct tap *tap = c->tap;
    pcapng_close(&c->flow, clock_us(CLOCK_REALTIME), tap_show, tap);
    close(c->client);
    close(c->broker);
    struct sink *sinks[] = {&c->up.in, &c->up.out, &c->down.in, &c->down.out};
    for (size_t i = 0; i < ARRAY_SIZE(sinks); i++)
        sink_free(sinks[i]);
    mem_put(tap->cli->mem, c->expected, c->expected_room * sizeof(*c->expected));
    mem_put(tap->cli->mem, c, sizeof(*c));
}

/* ---- which answer is which ------------------------------------------------------------------- */

/* Remember what the answer of this request will be, if it is one that is written anew. */
static void expect(struct tap_connection *c, struct view frame)
{
    struct frame_kind request;
    struct frame_head head;
    struct mem *mem = c->tap->cli->mem;

    if (frame_request_kind(frame, &request) != FRAME_KNOWN || !frame_head(frame, &head)) return;
    struct frame_kind response = frame_kind_of(request.api->response, request.version);
    if (!tap_rewrites(&response)) return;
    if (c->expected_count == WIRE_OUTSTANDING_MAX) {
        /* The oldest will hardly be answered any more: acks=0 never is. */
        c->expected_count--;
        memmove(c->expected, c->expected + 1, c->expected_count * sizeof(*c->expected));
    }
    if (c->expected_count == c->expected_room) {
        uint32_t room = MAX(2 * c->expected_room, 8u);
        struct tap_expected *more = mem_get(mem, room * sizeof(*more));
        if (more == NULL) {
            c->dead = true;
            return;
        }
        if (c->expected_count > 0) memcpy(more, c->expected, c->expected_count * sizeof(*more));
        mem_put(mem, c->expected, c->expected_room * sizeof(*more));
        c->expected = more;
        c->expected_room = room;
    }
    c->expected[c->expected_count++] = (struct tap_expected){response, head.correlation_id};
}

/* Answers come in the order of requests: those before it have none. */
static bool recall(struct tap_connection *c, struct view frame, struct frame_kind *out)
{
    if (frame.size < 8) return false;
    int32_t id = (int32_t)load_be32(frame.data + 4);
    for (uint32_t i = 0; i < c->expected_count; i++) {
        if (c->expected[i].correlation_id != id) continue;
        *out = c->expected[i].response;
        c->expected_count -= i + 1;
        memmove(c->expected, c->expected + i + 1, c->expected_count * sizeof(*c->expected));
        return true;
    }
    return false;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static bool map_address(void *context, struct view *host, int32_t *port)
{
    struct tap_connection *c = context;
    const struct tap_listener *listener = tap_listener_for(c->tap, *host, *port);
    if (listener == NULL) return false;
    *host = view_of_string(c->local_host);
    *port = listener->port;
    return true;
}

static void show(struct tap_connection *c, bool from_client, struct view bytes)
{
    struct stream_segment segment =
        pcapng_data(&c->flow, from_client, bytes, clock_us(CLOCK_REALTIME));
    tap_show(c->tap, &segment);
}

static void pass(struct tap_pipe *pipe, struct view bytes)
{
    sink_put(&pipe->out, bytes.data, bytes.size);
}

static void take_request(struct tap_connection *c, struct view frame)
{
    expect(c, frame);
    show(c, true, frame);
    pass(&c->up, frame);
}

static void take_answer(struct tap_connection *c, struct view frame)
{
    struct frame_kind kind;
    show(c, false, frame);
    if (recall(c, frame, &kind)) {
        pass(&c->down, tap_rewrite(&kind, frame, &c->tap->arena, map_address, c));
        arena_reset(&c->tap->arena);
    } else {
        pass(&c->down, frame);
    }
}

/* The next whole frame of what came; the null view: none yet. Sets `raw` if it can be none. */
static struct view next_frame(struct tap_connection *c, const struct tap_pipe *pipe)
{
    const uint8_t *at = pipe->in.data + pipe->in_at;
    uint32_t left = pipe->in.size_bytes - pipe->in_at;

    if (left < 4) return VIEW_NULL;
    uint32_t size = load_be32(at);
    if (size > WIRE_FRAME_MAX || (at[0] == TLS_HANDSHAKE && at[1] == 3)) {
        c->raw = true;
        return VIEW_NULL;
    }
    return size > left - 4 ? VIEW_NULL : view_of(at, size + 4);
}

static void cut(struct tap_connection *c, struct tap_pipe *pipe)
{
    bool up = pipe == &c->up;
    struct view frame;
    while (!c->raw && !c->dead && !(frame = next_frame(c, pipe)).null) {
        if (up) {
            take_request(c, frame);
        } else {
            take_answer(c, frame);
        }
        pipe->in_at += frame.size;
    }
    uint32_t left = pipe->in.size_bytes - pipe->in_at;
    if (c->raw && left > 0) {
        struct view bytes = view_of(pipe->in.data + pipe->in_at, left);
        show(c, up, bytes);
        pass(pipe, bytes);
        left = 0;
    }
    if (pipe->in_at > 0 || left == 0) {
        memmove(pipe->in.data, pipe->in.data + pipe->in.size_bytes - left, left);
        pipe->in.size_bytes = left;
        pipe->in_at = 0;
    }
}

/* ---- sockets --------------------------------------------------------------------------------- */

static bool out_is_full(const struct tap_pipe *pipe)
{
    return pipe->out.size_bytes - pipe->out_at > PIPE_OUT_HIGH;
}

static void read_some(struct tap_connection *c, struct tap_pipe *pipe, int fd)
{
    if (pipe->ended || out_is_full(pipe)) return;
    uint8_t *room = sink_room(&pipe->in, PIPE_READ_BYTES);
    if (room == NULL) {
        c->dead = true;
        return;
    }
    ssize_t got = recv(fd, room, PIPE_READ_BYTES, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        pipe->ended = true;
        return;
    }
    sink_used(&pipe->in, (uint32_t)got);
    cut(c, pipe);
    if (pipe->out.fault != SINK_OK || pipe->in.fault != SINK_OK) c->dead = true;
}

static void write_some(struct tap_connection *c, struct tap_pipe *pipe, int fd)
{
    while (pipe->out_at < pipe->out.size_bytes) {
        ssize_t sent = send(fd, pipe->out.data + pipe->out_at, pipe->out.size_bytes - pipe->out_at,
                            MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (sent < 0) {
            c->dead = true;
            return;
        }
        pipe->out_at += (uint32_t)sent;
    }
    sink_reset(&pipe->out);
    pipe->out_at = 0;
}

void tap_connection_move(struct tap_connection *c)
{
    read_some(c, &c->up, c->client);
    read_some(c, &c->down, c->broker);
    if (!c->dead) write_some(c, &c->up, c->broker);
    if (!c->dead) write_some(c, &c->down, c->client);
    /* One side is gone: the other gets what is left of it, then goes too. */
    bool up_empty = c->up.out.size_bytes == 0, down_empty = c->down.out.size_bytes == 0;
    if ((c->up.ended && up_empty) || (c->down.ended && down_empty)) c->dead = true;
}

short tap_wants_client(const struct tap_connection *c)
{
    return (short)((c->up.ended || out_is_full(&c->up) ? 0 : POLLIN) |
                   (c->down.out.size_bytes > 0 ? POLLOUT : 0));
}

short tap_wants_broker(const struct tap_connection *c)
{
    return (short)((c->down.ended || out_is_full(&c->down) ? 0 : POLLIN) |
                   (c->up.out.size_bytes > 0 ? POLLOUT : 0));
}
