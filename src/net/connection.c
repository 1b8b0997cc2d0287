/* connection.c - from bytes to frames, and when bytes have to wait. See connection.h.
 *
 * Reading goes on while a request is in process until one whole frame is staged, so that it is
 * known whether input waits: that is what the horizon rests on. A staged frame keeps its time of
 * arrival. */
#include "net/inside.h"

#include <errno.h>

#define PRODUCE_KEY          0
#define FETCH_KEY            1
#define JOIN_GROUP_KEY       11
#define HEARTBEAT_KEY        12
#define SYNC_GROUP_KEY       14
#define CONNECTION_READS_MAX 4u /* Of one connection in one turn. */
#define CONNECTION_BUF_MIN   1024u
#define CONNECTION_BUF_SLOW  (64u * 1024u) /* Below, a buffer is at most twice what has arrived. */

/* Bytes of a buffer that were received and not handled. */
struct window {
    struct buf *buf;
    uint32_t at;
    uint32_t end;
};

enum next_frame { FRAME_PARTIAL, FRAME_WHOLE, FRAME_BAD };

/* ---- frames ---------------------------------------------------------------------------------- */

static enum next_frame next_frame(const struct connection *connection,
                                  const struct window *in,
                                  struct view *frame)
{
    uint32_t left = in->end - in->at;
    if (left < 4) return FRAME_PARTIAL;
    uint32_t size = load_be32(in->buf->data + in->at);
    if (size > connection->shard->state->settings.request_max_bytes) return FRAME_BAD;
    if (size > left - 4) return FRAME_PARTIAL;
    *frame = view_of(in->buf->data + in->at + 4, size);
    return FRAME_WHOLE;
}

static struct window staged(const struct connection *connection)
{
    return (struct window){connection->in, connection->in_at, connection->in_end};
}

static bool whole_frame_staged(const struct connection *connection)
{
    if (connection->in == NULL) return false;
    struct window in = staged(connection);
    struct view frame;
    return next_frame(connection, &in, &frame) != FRAME_PARTIAL;
}

/* Produce requests that follow one another are handed on together, and Heartbeats are: theirs may
 * be another shard's, which then answers all of a turn in one. While quotas are on each Heartbeat
 * waits until the one before it is answered, and its connection muted. Nothing else is. */
static bool may_follow(const struct connection *connection, struct view frame)
{
    if (connection->request_count == 0) return true;
    if (connection->request_count >= NET_PIPELINE_MAX || frame.size < 2) return false;
    const struct request *first =
        container_of(connection->requests.next, const struct request, link);
    uint16_t key = load_be16(frame.data);
    bool together =
        key == PRODUCE_KEY ||
        (key == HEARTBEAT_KEY && connection->shard->state->charging == SHARD_CHARGE_NOTHING);
    return together && first->api->key == key; /* All in process have one. */
}

static uint8_t holds_of(const struct connection *connection, struct view frame)
{
    const struct shard *shard = connection->shard;
    uint8_t holds = 0;
    if (!may_follow(connection, frame)) holds |= CONNECTION_IN_PROCESS;
    if (connection->output_bytes >= NET_OUTPUT_HIGH_BYTES) holds |= CONNECTION_OUTPUT_FULL;
    if (connection->muted_until_ms > io_now_ms(shard->io)) holds |= CONNECTION_THROTTLED;
    if (shard->state->held_all) holds |= CONNECTION_SHARD_HELD;
    return holds;
}

/* A small frame gets a buffer of its own, so that a parked request keeps no more than it needs. */
static void begin(struct connection *connection, struct buf *buf, struct view frame)
{
    if (frame.size >= buf->size_bytes / 4 || frame.size == 0) {
        request_begin(connection, buf, frame);
        return;
    }
    struct buf *copy = buf_new(connection->shard->mem, frame.size);
    if (copy == NULL) {
        connection_close(connection, "no memory for a request");
        return;
    }
    memcpy(copy->data, frame.data, frame.size);
    request_begin(connection, copy, view_of(copy->data, frame.size));
    buf_release(copy);
}

static void handle_frames(struct connection *connection, struct window *in)
{
    enum next_frame next = FRAME_PARTIAL;
    struct view frame;
    uint32_t handled = 0;
    uint8_t before = connection->holds;
    connection->holds = 0;
    while (!connection->closed && connection->doomed == NULL &&
           (next = next_frame(connection, in, &frame)) == FRAME_WHOLE) {
        connection->holds = holds_of(connection, frame);
        if (connection->holds != 0) break;
        if (handled++ == NET_FRAMES_PER_TURN) {
            connection_resume(connection);
            break;
        }
        in->at += 4 + frame.size;
        connection->frame_start_ms = connection->read_ms; /* Of the frame behind it. */
        begin(connection, in->buf, frame);
    }
    if (connection->closed) return;
    if (next == FRAME_BAD && connection->doomed == NULL) {
        metric_add(&connection->shard->metrics, METRIC_MALFORMED_FRAME, 1);
        connection_doom(connection, "a frame's length is negative or too large");
        if (connection->closed) return;
    }
    if (connection->doomed != NULL) in->at = in->end; /* Nobody will look at it. */
    if ((connection->holds & ~before) & CONNECTION_OUTPUT_FULL)
        metric_add(&connection->shard->metrics, METRIC_HELD_OUTPUT, 1);
}

/* ---- the connection's own buffer ------------------------------------------------------------- */

static void release_in(struct connection *connection)
{
    if (connection->in == NULL) return;
    uint32_t size_bytes = connection->in->size_bytes;
    connection->in = buf_release(connection->in);
    connection->in_at = connection->in_end = 0;
    shard_budget_release(connection->shard, size_bytes);
}

static void drop_in(struct connection *connection)
{
    if (connection->shard->state->favoured == connection)
        connection->shard->state->favoured = NULL; /* The next one may end its frame. */
    release_in(connection);
}

/* How large a buffer for `left` bytes that are there shall be: whole frames as they are, a partial
 * one with room that follows what has arrived, and never beyond its end. */
static uint32_t room_for(const struct connection *connection, const struct window *in)
{
    uint32_t left = in->end - in->at;
    struct view frame;
    if (next_frame(connection, in, &frame) != FRAME_PARTIAL) return left;
    uint64_t room = left < CONNECTION_BUF_SLOW ? 2 * (uint64_t)left : 4 * (uint64_t)left;
    if (room < CONNECTION_BUF_MIN) room = CONNECTION_BUF_MIN;
    if (left >= 4) {
        uint64_t whole = 4 + (uint64_t)load_be32(in->buf->data + in->at);
        if (whole < room) room = whole;
    }
    return (uint32_t)room;
}

/* Make a buffer of the connection's own with the bytes of the window. */
static bool keep(struct connection *connection, const struct window *in)
{
    uint32_t left = in->end - in->at;
    assert(left > 0);
    struct buf *buf = buf_new(connection->shard->mem, room_for(connection, in));
    if (buf == NULL) {
        connection_close(connection, "no memory to receive");
        return false;
    }
    memcpy(buf->data, in->buf->data + in->at, left);
    release_in(connection);
    shard_budget_charge(connection->shard, buf->size_bytes);
    connection->in = buf;
    connection->in_at = 0;
    connection->in_end = left;
    return true;
}

/* ---- holding --------------------------------------------------------------------------------- */

/* Is the request in process one that waits for others, or for a time, because it is meant to? A
 * join may wait for the end of a rebalance, which the horizon judges: bytes behind it that held the
 * horizon would hold it up themselves. */
static bool waits_as_asked(const struct connection *connection)
{
    if (list_empty(&connection->requests)) return false;
    switch (container_of(connection->requests.next, struct request, link)->api->key) {
    case FETCH_KEY:
    case JOIN_GROUP_KEY:
    case SYNC_GROUP_KEY: return true;
    default: return false;
    }
}

/* How long it has been muted so far. */
static int64_t muted_so_far_ms(const struct connection *connection)
{
    int64_t left_ms = connection->muted_until_ms - io_now_ms(connection->shard->io);
    return connection->muted_ms - MAX(0, left_ms);
}

/* Do its bytes wait by the client's own doing: unread answers, a long poll, a quota? A mute for a
 * quota of requests is short: what mutes keep waiting for a little counts. What they waited for
 * besides, a slow disk say, is not the client's doing. */
static bool own_doing(const struct connection *connection)
{
    if (connection->holds & CONNECTION_OUTPUT_FULL || waits_as_asked(connection)) return true;
    return connection->holds & CONNECTION_THROTTLED &&
           connection->muted_ms - connection->since_muted_ms > NET_MUTE_HOLD_MAX_MS;
}

/* Put it among those whose bytes hold the horizon, or take it off. Bytes that are waiting since
 * `since_ms` may have come before: the process may have stood still until it read them. */
static void hold(struct connection *connection, bool waits, int64_t since_ms)
{
    list_remove(&connection->held);
    if (!waits || own_doing(connection)) return;
    connection->held_ms = MIN(since_ms, connection->after_ms);
    struct list *place = &connection->shard->state->held;
    while (place->previous != &connection->shard->state->held &&
           container_of(place->previous, struct connection, held)->held_ms > connection->held_ms)
        place = place->previous;
    list_add_before(place, &connection->held);
}

void connection_watch(struct connection *connection)
{
    if (connection->closed) return;
    int want = connection->write_blocked ? IO_WRITABLE : 0;
    if (connection->doomed == NULL && !connection->turned_away &&
        !(connection->holds & (CONNECTION_NO_BUDGET | CONNECTION_SHARD_HELD)) &&
        !whole_frame_staged(connection))
        want |= IO_READABLE;
    if (want == connection->want) return;
    int64_t now_ms = io_now_ms(connection->shard->io);
    if ((connection->want & ~want) & IO_READABLE && connection->unread_ms == 0) {
        connection->unread_ms = now_ms;
        connection->unread_muted_ms = muted_so_far_ms(connection);
    }
    if ((want & ~connection->want) & IO_READABLE) connection->watched_ms = now_ms;
    connection->want = want;
    io_stream_want(connection->shard->io, connection->stream, want);
}

void connection_resume(struct connection *connection)
{
    if (connection->closed || !list_empty(&connection->resume)) return;
    list_append(&connection->shard->state->resume, &connection->resume);
}

/* After frames were handled: keep what is left, say what waits. */
static void settle(struct connection *connection, const struct window *in)
{
    if (connection->closed) return;
    uint32_t left = in->end - in->at;
    if (in->buf == connection->in) {
        connection->in_at = in->at;
        if (left == 0) drop_in(connection);
    } else if (left > 0 && !keep(connection, in)) {
        return;
    }
    bool waits = whole_frame_staged(connection);
    if (connection->doomed == NULL && (!waits || connection->holds != 0))
        list_remove(&connection->resume);
    if (left == 0 || waits) connection->frame_start_ms = 0;
    if (left > 0 && !waits && connection->frame_start_ms == 0)
        connection->frame_start_ms = connection->read_ms;
    hold(connection, waits, connection->since_ms);
    connection_watch(connection);
}

void connection_resumed(struct connection *connection)
{
    list_remove(&connection->resume);
    if (connection->closed) return;
    if (connection->doomed != NULL) {
        connection_doom(connection, connection->doomed);
        return;
    }
    struct window in = staged(connection);
    if (in.buf == NULL) {
        connection->holds = 0;
        hold(connection, false, 0);
        connection_watch(connection);
        return;
    }
    handle_frames(connection, &in);
    settle(connection, &in);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* May it be read now? The budget stops new frames; of those begun, one goes on, so that there is
 * always one that ends. Beside that frame, a quarter more is for who has nothing here yet: large
 * frames of slow clients do not shut out the small ones of others. */
static bool may_read(struct connection *connection)
{
    struct shard_state *state = connection->shard->state;
    if (state->held_all) {
        connection->holds |= CONNECTION_SHARD_HELD;
        return false;
    }
    uint64_t limit = state->settings.receive_budget_bytes;
    if (connection->in == NULL && limit > 0) limit += limit / 4 + state->settings.request_max_bytes;
    if (limit == 0 || state->budget_used_bytes < limit) return true;
    if (state->favoured == NULL && connection->in != NULL) state->favoured = connection;
    if (state->favoured == connection) return true;
    connection->holds |= CONNECTION_NO_BUDGET;
    metric_add(&connection->shard->metrics, METRIC_HELD_BUDGET, 1);
    return false;
}

/* Where to receive to: the shard's buffer, or behind what is there. False: closed for no memory. */
static bool receive_room(struct connection *connection, struct window *in)
{
    struct shard *shard = connection->shard;
    struct shard_state *state = shard->state;
    if (connection->in != NULL) {
        *in = staged(connection);
        if (in->end == in->buf->size_bytes && !keep(connection, in)) return false;
        *in = staged(connection);
        assert(in->end < in->buf->size_bytes);
        return true;
    }
    if (state->receive != NULL && buf_shared(state->receive))
        state->receive = buf_release(state->receive); /* A request keeps it. */
    if (state->receive == NULL) state->receive = buf_new(shard->mem, NET_RECEIVE_BYTES);
    if (state->receive == NULL) {
        connection_close(connection, "no memory to receive");
        return false;
    }
    *in = (struct window){state->receive, 0, 0};
    return true;
}

/* After when had the bytes come that are received now? Those of a connection that was not read yet
 * hold the horizon themselves. Of bytes that were left in the socket it is known already; there are
 * none when a whole turn with an eye on the connection brought nothing. */
static void learn_after(struct connection *connection)
{
    int64_t all_read_ms = connection->shard->state->all_read_ms;
    if (connection->want & IO_READABLE && connection->watched_ms < all_read_ms)
        connection->unread_ms = 0;
    if (connection->unread_ms != 0) return;
    connection->after_ms =
        connection->since_ms == 0 ? shard_horizon_all_ms(connection->shard) : all_read_ms;
}

/* One recv and what it brought. False: no more now. */
static bool receive(struct connection *connection)
{
    struct shard *shard = connection->shard;
    struct window in;
    if (connection->doomed != NULL || whole_frame_staged(connection)) return false;
    learn_after(connection);
    if (!may_read(connection)) {
        hold(connection, true, io_now_ms(shard->io));
        connection_watch(connection);
        return false;
    }
    if (!receive_room(connection, &in)) return false;
    uint32_t room = in.buf->size_bytes - in.end;
    int64_t got = io_stream_recv(shard->io, connection->stream, in.buf->data + in.end, room);
    if (got == -EAGAIN) {
        connection->unread_ms = 0;
        return false;
    }
    if (got <= 0) {
        if (got < 0) metric_add(&shard->metrics, METRIC_CONNECTIONS_FAILED, 1);
        connection_close(connection, NULL);
        return false;
    }
    assert((uint64_t)got <= room);
    metric_add(&shard->metrics, METRIC_RECEIVED_BYTES, (uint64_t)got);
    connection->read_ms = connection->active_ms = io_now_ms(shard->io);
    bool left = connection->unread_ms != 0;
    connection->since_ms = left ? connection->unread_ms : connection->read_ms;
    connection->since_muted_ms = left ? connection->unread_muted_ms : muted_so_far_ms(connection);
    if ((uint64_t)got < room) connection->unread_ms = 0;
    in.end += (uint32_t)got;
    if (in.buf == connection->in) connection->in_end = in.end;
    handle_frames(connection, &in);
    settle(connection, &in);
    return !connection->closed && (uint64_t)got == room;
}

static void ready(void *context, struct io_stream *stream, int what)
{
    struct connection *connection = context;
    if (connection->closed) return;
    /* What other shards have told before the client wrote comes before what it wrote. */
    shard_open_letters(connection->shard);
    if (connection->closed) return;
    if (what & IO_WRITABLE) {
        connection->write_blocked = false;
        output_later(connection);
    }
    if (what & (IO_READABLE | IO_HANGUP)) {
        uint32_t reads = 0;
        while (reads < CONNECTION_READS_MAX && receive(connection))
            reads++;
        if (reads == CONNECTION_READS_MAX) connection->shard->state->turn_unfinished = true;
    }
    if ((what & IO_HANGUP) && !connection->closed) {
        metric_add(&connection->shard->metrics, METRIC_CONNECTIONS_FAILED, 1);
        connection_close(connection, NULL);
    }
}

static const struct io_stream_events stream_events = {.ready = ready};

/* ---- timers ---------------------------------------------------------------------------------- */

void connection_mute(struct connection *connection, int64_t until_ms)
{
    if (connection->closed || until_ms <= connection->muted_until_ms) return;
    connection->muted_ms +=
        until_ms - MAX(io_now_ms(connection->shard->io), connection->muted_until_ms);
    connection->muted_until_ms = until_ms;
    shard_timer_set(connection->shard, &connection->unmute, until_ms);
}

static void unmuted(struct shard *shard, struct shard_timer *timer)
{
    (void)shard;
    connection_resume(container_of(timer, struct connection, unmute));
}

/* When it is to be closed if nothing happens until then. A frame that is under way has its own
 * limit from its first byte on, so that a byte now and then does not keep it. */
static int64_t idle_deadline_ms(const struct connection *connection)
{
    int64_t idle_ms = connection->shard->state->settings.idle_ms;
    if (connection->turned_away) return connection->muted_until_ms;
    int64_t deadline_ms = connection->active_ms + idle_ms;
    if (connection->frame_start_ms != 0 && connection->in != NULL) {
        int64_t received = connection->in_end - connection->in_at;
        int64_t slowest_ms = received * 1000 / NET_SLOWEST_BYTES_PER_S;
        deadline_ms = MIN(deadline_ms, connection->frame_start_ms + idle_ms + slowest_ms);
    }
    return deadline_ms;
}

static void idle_fired(struct shard *shard, struct shard_timer *timer)
{
    struct connection *connection = container_of(timer, struct connection, idle);
    int64_t deadline_ms = idle_deadline_ms(connection);
    if (deadline_ms > io_now_ms(shard->io)) {
        shard_timer_set(shard, timer, deadline_ms);
        return;
    }
    if (!connection->turned_away) metric_add(&shard->metrics, METRIC_CONNECTIONS_IDLE_CLOSED, 1);
    connection_close(connection, NULL);
}

void connection_turn_away(struct connection *connection, int64_t until_ms)
{
    struct shard *shard = connection->shard;
    metric_add(&shard->metrics, METRIC_CONNECTIONS_THROTTLED, 1);
    if (shard->state->turned_away_count >= NET_TURNED_AWAY_MAX) {
        connection_close(connection, NULL);
        return;
    }
    connection->turned_away = true;
    connection->muted_until_ms = until_ms;
    shard->state->turned_away_count++;
    shard_timer_set(shard, &connection->idle, until_ms);
    connection_watch(connection);
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* On its shard: it is there from now on. */
static void connection_begin(struct connection *connection)
{
    struct shard *shard = connection->shard;
    if (say_on(shard->say, SAY_DEBUG, SAY_IN_NET))
        say(shard->say, SAY_DEBUG, SAY_IN_NET, "connection from %s:%u on %s opened",
            connection->peer->host, connection->port, connection->listener->name);
    list_append(&shard->state->connections, &connection->link);
    shard->state->connection_count++;
    connection->read_ms = connection->active_ms = io_now_ms(shard->io);
    if (shard->state->settings.idle_ms > 0)
        shard_timer_set(shard, &connection->idle, idle_deadline_ms(connection));
    if (connection->muted_until_ms > io_now_ms(shard->io))
        shard_timer_set(shard, &connection->unmute, connection->muted_until_ms);
    connection->want = IO_READABLE;
    io_stream_watch(shard->io, connection->stream, IO_READABLE, &stream_events, connection);
}

static void connection_arrived(void *owner, struct letter *letter)
{
    struct connection *connection = container_of(letter, struct connection, letter);
    struct shard *shard = owner;
    assert(connection->shard == shard);
    io_stream_take(shard->io, connection->stream);
    shard_taken(shard, connection->listener->shard);
    connection_begin(connection);
    if (shard->state->disconnected) connection_close(connection, NULL);
}

/* What the listener's shard counts, and the memory. */
static void connection_left(struct connection *connection)
{
    struct listener *listener = connection->listener;
    struct shard_state *state = listener->shard->state;
    listener->connections--;
    state->admitted--;
    state->dealt[connection->shard->index]--;
    listener_peer_drop(listener->shard, connection->peer);
    connection->peer = NULL;
}

static void connection_free(struct connection *connection)
{
    struct mem *mem = connection->shard->mem;
    mem_put(mem, connection->software, sizeof(*connection->software));
    mem_put(mem, connection, sizeof(*connection));
}

static void connection_returned(void *owner, struct letter *letter)
{
    struct connection *connection = container_of(letter, struct connection, letter);
    assert(owner == connection->listener->shard);
    connection_left(connection);
    connection_free(connection);
}

int connection_open(struct listener *listener,
                    struct shard *owner,
                    const struct connection_from *from,
                    struct connection **out)
{
    struct shard *shard = listener->shard;
    struct connection *connection = mem_get(shard->mem, sizeof(*connection));
    if (connection == NULL) return -ENOMEM;
    connection->peer = listener_peer(shard, from->peer->host);
    if (connection->peer == NULL) {
        mem_put(shard->mem, connection, sizeof(*connection));
        return -ENOMEM;
    }
    connection->shard = owner;
    connection->listener = listener;
    connection->stream = from->stream;
    connection->port = from->peer->port;
    connection->muted_until_ms = from->muted_until_ms;
    list_init(&connection->link);
    list_init(&connection->flush);
    list_init(&connection->resume);
    list_init(&connection->held);
    list_init(&connection->requests);
    list_init(&connection->output);
    shard_timer_init(&connection->unmute, unmuted);
    shard_timer_init(&connection->idle, idle_fired);
    listener->connections++;
    *out = connection;
    shard->state->admitted++;
    shard->state->dealt[owner->index]++;
    shard_accepted(shard, owner);
    if (owner == shard) {
        connection_begin(connection);
        return 0;
    }
    io_stream_give(shard->io, from->stream);
    connection->letter.open = connection_arrived;
    shard_post(owner, &connection->letter);
    return 0;
}

static void say_closed(const struct connection *connection, const char *why)
{
    struct shard *shard = connection->shard;
    uint32_t dropped;
    if (why == NULL) {
        say(shard->say, SAY_DEBUG, SAY_IN_NET, "connection from %s:%u on %s ended",
            connection->peer->host, connection->port, connection->listener->name);
        return;
    }
    if (!say_allowed(&shard->state->limits[NET_LIMITED_CLOSED], io_now_ms(shard->io), &dropped))
        return;
    say(shard->say, SAY_WARN, SAY_IN_NET,
        "connection from %s:%u on %s closed: %s (%u more not shown)", connection->peer->host,
        connection->port, connection->listener->name, why, dropped);
}

void connection_close(struct connection *connection, const char *why)
{
    if (connection->closed) return;
    struct shard *shard = connection->shard;
    struct shard_state *state = shard->state;
    connection->closed = true;
    metric_add(&shard->metrics, METRIC_CONNECTIONS_CLOSED, 1);
    say_closed(connection, why);
    io_stream_close(shard->io, connection->stream);
    connection->stream = NULL;
    shard_timer_cancel(&connection->unmute);
    shard_timer_cancel(&connection->idle);
    list_remove(&connection->flush);
    list_remove(&connection->resume);
    list_remove(&connection->held);
    list_remove(&connection->link);
    list_append(&state->closing, &connection->link);
    state->connection_count--;
    if (connection->turned_away) state->turned_away_count--;
    if (connection->listener->shard == shard) connection_left(connection);
    drop_in(connection);
    output_drop(connection);
    while (!list_empty(&connection->requests))
        request_orphan(container_of(connection->requests.next, struct request, link));
}

void connection_doom(struct connection *connection, const char *why)
{
    if (connection->closed) return;
    connection->doomed = why;
    if (connection->request_count > 0) {
        connection_watch(connection);
        return;
    }
    output_flush(connection); /* What the socket does not take now is lost. */
    connection_close(connection, why);
}

void connection_bury(struct connection *connection)
{
    assert(connection->closed);
    assert(list_empty(&connection->requests));
    list_remove(&connection->link);
    if (connection->listener->shard == connection->shard) {
        connection_free(connection);
        return;
    }
    connection->letter.open = connection_returned;
    shard_post(connection->listener->shard, &connection->letter);
}

/* ---- what others ask ------------------------------------------------------------------------- */

void connection_local(struct connection *connection, struct io_address *out)
{
    *out = (struct io_address){0};
    if (!connection->closed) io_stream_local(connection->shard->io, connection->stream, out);
}

struct view connection_software(const struct connection *connection)
{
    const struct connection_software *software = connection->software;
    return software == NULL ? VIEW_EMPTY : view_of(software->name, software->name_size);
}

struct view connection_software_version(const struct connection *connection)
{
    const struct connection_software *software = connection->software;
    return software == NULL ? VIEW_EMPTY : view_of(software->version, software->version_size);
}

static uint8_t copy_cut(char *out, struct view text)
{
    uint32_t size = MIN(text.size, NET_SOFTWARE_BYTES);
    if (size > 0) memcpy(out, text.data, size);
    return (uint8_t)size;
}

void connection_set_software(struct connection *connection, struct view name, struct view version)
{
    if (connection->software == NULL)
        connection->software = mem_get(connection->shard->mem, sizeof(*connection->software));
    if (connection->software == NULL) return; /* It is only for people. */
    connection->software->name_size = copy_cut(connection->software->name, name);
    connection->software->version_size = copy_cut(connection->software->version, version);
}
