/* shard.h - a single-threaded server: its connections, its timers, its turn.
 *
 * A turn: wait for the world or the next deadline, open the mailbox, read and handle what came,
 * fire what is due, let the node act (turn_end), flush every connection that has output once.
 * Nothing in a turn blocks but the wait, so a simulator calls shard_turn by itself.
 *
 * Time. `io_now_ms` is read once a turn. The *input horizon* is the time up to which all input that
 *   had arrived on this shard has been handled; it stands still while a connection with bytes is
 *   held, for NET_HORIZON_HOLD_MAX_MS at most. Timers on `clock` fire by the clock (fetch waits,
 *   throttles); timers on `sessions` fire when the smallest horizon of all shards has passed them:
 *   a stalled server removes nobody who spoke.
 *
 * Thread: everything here belongs to the shard's own thread, but shard_post, shard_stop. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "base/wheel.h"
#include "io/io.h"
#include "net/listener.h"
#include "net/metrics.h"
#include "net/request.h"
#include "sys/mailbox.h"
#include "sys/say.h"

/* One API that this program serves. What has no entry is not advertised and closes the connection.
 */
struct net_handler {
    int16_t api_key;
    int16_t version_min; /* With the legacy window; without, not below what Kafka 4.4 serves. */
    int16_t version_max;
    int16_t advertised_min; /* Without the window: Produce says 0 and serves 3. */
    uint8_t listeners;      /* Set of enum wire_listener. */
    void (*handle)(struct shard *shard, struct request *request);
};

/* An address with a maximum of its own. */
struct shard_host_limit {
    struct view host; /* As the connections' addresses are written. */
    uint32_t connections_max;
};

/* How many connections may be open; can change at any time (shard_limit). */
struct shard_limits {
    uint32_t connections_max;             /* max.connections */
    uint32_t connections_per_ip;          /* max.connections.per.ip */
    const struct shard_host_limit *hosts; /* max.connections.per.ip.overrides; borrowed. */
    uint32_t host_count;
};

/* What is to become of a connection that has come. */
struct shard_admission {
    int64_t wait_ms; /* Nothing is read from it for so long; */
    bool close;      /* then it is closed. */
};

/* What the node tells the shard, once. Times in ms, 0 or negative: off, where it says so. */
struct shard_settings {
    uint32_t request_max_bytes;    /* socket.request.max.bytes */
    struct shard_limits limits;    /* As they are at the start. */
    int64_t idle_ms;               /* connections.max.idle.ms; < 0: off */
    uint64_t receive_budget_bytes; /* queued.max.request.bytes, or our default; 0: no limit */
    int64_t slow_request_ms;       /* dohle.request.slow.ms; 0: off */
    bool log_requests;             /* dohle.request.log */
    bool unstable_versions;        /* unstable.api.versions.enable */
    bool legacy_versions;          /* dohle.legacy.protocols: what Kafka 4.0 dropped. */
};

struct shard_hooks {
    void *node; /* For the handlers: shard->node. */
    /* At the end of each turn, before output is flushed: submit what this turn gathered. Or NULL.
     */
    void (*turn_end)(struct shard *shard);
    /* Fill features (tagged fields) and check cluster id of an ApiVersions answer; returns the
     * error code of the answer: 0, or 129. Or NULL. */
    int16_t (*api_versions)(struct shard *shard, struct request *request, void *response);
    /* A request ends, and quotas are on (shard_charge): how long its connection is to wait, in ms.
     * `answered`: the client gets a response; else it asked for none. Or NULL. */
    int64_t (*charge)(struct shard *shard, struct request *request, bool answered);
    /* A connection from this address has come. Or NULL: each is taken at once. */
    struct shard_admission (*admit)(struct shard *shard,
                                    const struct listener *listener,
                                    const struct io_address *peer);
};

/* What quotas want to know of requests. */
enum shard_charging {
    SHARD_CHARGE_NOTHING,
    SHARD_CHARGE_REQUESTS, /* hooks.charge is called for each that ends, */
    SHARD_CHARGE_TIME,     /* and the processor time that it took is in request->cpu_ns. */
};

struct shard {
    struct io *io;
    struct mem *mem;
    const struct say *say;
    void *node;
    uint32_t index; /* 0 .. count - 1 */
    uint32_t count;
    struct shard **peers; /* All shards of the node, this one included. */
    struct wheel clock;
    struct wheel sessions;
    struct metrics metrics;    /* Counted by this shard; a snapshot adds up all. */
    struct shard_state *state; /* net's own */
};

struct shard_options {
    struct io *io;
    const struct say *say;
    uint32_t index;
    uint32_t count;
    struct shard **peers; /* `count` places, filled by the caller when all are open. */
    const struct net_handler *handlers;
    uint32_t handler_count;
    struct shard_settings settings;
    struct shard_hooks hooks;
};

/* A shard with no listeners yet. 0, -ENOMEM. The handlers' table is borrowed for its life. */
int shard_open(const struct shard_options *options, struct shard **out);

/* Stop listening and close all connections: parked requests are told (request.gone). Those with
 * errands out end in later turns, when these have come home. */
void shard_disconnect(struct shard *shard);

/* No request, no letter, no connection on any shard that came through its listeners: a node with
 * several shards turns all of them until each is quiet before it closes the first. */
bool shard_quiet(const struct shard *shard);

/* Closes connections and listeners and frees all. Every parked request must have been ended, or is
 * ended by its `gone`. Returns NULL. */
struct shard *shard_close(struct shard *shard);

/* A timer that calls. Embedded in what waits; initialise once, set again at will. */
struct shard_timer {
    struct wheel_entry entry;
    struct wheel *wheel; /* The one it is in. */
    void (*fire)(struct shard *shard, struct shard_timer *timer);
};

void shard_timer_init(struct shard_timer *timer,
                      void (*fire)(struct shard *shard, struct shard_timer *timer));

/* Fire when the clock has reached `at_ms`: waits of fetches, throttles, periodic work. */
void shard_timer_set(struct shard *shard, struct shard_timer *timer, int64_t at_ms);

/* Fire when the horizon of all shards has passed `at_ms`: sessions of members and brokers. */
void shard_session_set(struct shard *shard, struct shard_timer *timer, int64_t at_ms);

/* Later than before, for either kind: one store. Earlier, or not set: as the two above. */
static inline void shard_timer_defer(struct shard_timer *timer, int64_t at_ms)
{
    assert(timer->wheel != NULL);
    wheel_defer(timer->wheel, &timer->entry, at_ms);
}

void shard_timer_cancel(struct shard_timer *timer);

/* What a listener is to be. `addresses` are tried in order; those after the first may fail with
 * -EADDRNOTAVAIL or -EAFNOSUPPORT (no IPv6), which is then only said. Port 0 is chosen once and
 * used for the others too. */
struct listener_options {
    struct view name;
    enum listener_protocol protocol;
    enum wire_listener kind;
    bool inter_broker;
    uint32_t connections_max;
    const struct io_address *addresses;
    uint32_t address_count; /* 1 .. LISTENER_SOCKETS_MAX */
};

/* Listen. 0 and the listener (the shard's; lives until shard_close), or -errno as it came. */
int shard_listen(struct shard *shard,
                 const struct listener_options *options,
                 struct listener **out);

/* Listen there no more and close the listener's connections on all shards: each when what it asked
 * is answered, NET_LISTENER_DRAIN_MS later at most. The struct stays until shard_close(). */
void shard_listener_end(struct shard *shard, struct listener *listener);

/* From now on these are the maxima; connections that are open stay. */
void shard_limit(struct shard *shard, const struct shard_limits *limits);

/* Take no new connections any more; those that are open go on. */
void shard_unlisten(struct shard *shard);

/* One turn; waits at most until `until_ms` (INT64_MAX: for the next deadline). Returns the number
 * of things that happened. */
uint32_t shard_turn(struct shard *shard, int64_t until_ms);

/* Turns until shard_stop. */
void shard_run(struct shard *shard);

/* Make shard_run return after its turn. Any thread, async-signal-safe. */
void shard_stop(struct shard *shard);

/* Have a letter opened on this shard in its next turn; `owner` is the shard. Any thread. */
void shard_post(struct shard *shard, struct letter *letter);

/* See above: of this shard, and the smallest of all. */
int64_t shard_horizon_ms(const struct shard *shard);
int64_t shard_horizon_all_ms(const struct shard *shard);

/* Have every shard whose horizon is below `due_ms` turn: one that sleeps has not said that it read
 * everything. At most once a millisecond. For who judges deadlines by the horizon without the wheel
 * of sessions. */
void shard_horizon_ask(struct shard *shard, int64_t due_ms);

/* Begin or end to call hooks.charge. */
void shard_charge(struct shard *shard, enum shard_charging charging);

/* Hold all reading (unsynced bytes at their cap), or let it go on. */
void shard_hold(struct shard *shard, bool held);

/* Numbers for draining and tests. */
uint32_t shard_connection_count(const struct shard *shard);
uint32_t shard_request_count(const struct shard *shard); /* In process, parked or being sent. */
