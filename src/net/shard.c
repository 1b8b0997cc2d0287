/* shard.c - the turn, the timers, the input horizon. See shard.h.
 *
 * Horizon. Before the wait the clock is read: what had arrived by then is delivered by this turn,
 * if the turn delivers all (the seam delivers up to SHARD_EVENTS_FULL at once). Of turns that do
 * not, as many as all connections need make one. Bytes that were received and wait, or that are not
 * read, hold the horizon where they can have arrived at the earliest (connection.c): who reads them
 * late, because it was stopped, does not know when they came. A connection that is new in this turn
 * is read in the next one: what waits on it came after the turn before had accepted all, and holds
 * the horizon there; on one given to another shard until that has read it. */
#include "net/inside.h"

#include <errno.h>
#include <stdatomic.h>

#define SHARD_EVENTS_FULL 256u
#define SHARD_LONG_US     5000

/* ---- timers ---------------------------------------------------------------------------------- */

void shard_timer_init(struct shard_timer *timer,
                      void (*fire)(struct shard *shard, struct shard_timer *timer))
{
    wheel_entry_init(&timer->entry);
    timer->wheel = NULL;
    timer->fire = fire;
}

static void timer_set(struct wheel *wheel, struct shard_timer *timer, int64_t at_ms)
{
    if (timer->wheel != NULL && timer->wheel != wheel) wheel_cancel(timer->wheel, &timer->entry);
    timer->wheel = wheel;
    wheel_set(wheel, &timer->entry, at_ms);
}

void shard_timer_set(struct shard *shard, struct shard_timer *timer, int64_t at_ms)
{
    timer_set(&shard->clock, timer, at_ms);
}

void shard_session_set(struct shard *shard, struct shard_timer *timer, int64_t at_ms)
{
    timer_set(&shard->sessions, timer, at_ms);
}

void shard_timer_cancel(struct shard_timer *timer)
{
    if (timer->wheel != NULL) wheel_cancel(timer->wheel, &timer->entry);
}

/* What one turn does not take comes up in the next one, which does not wait. */
static uint32_t fire(struct shard *shard, struct wheel *wheel, int64_t until_ms)
{
    uint32_t count = 0;
    struct wheel_entry *entry;
    while (count < NET_TIMERS_PER_TURN && (entry = wheel_expired(wheel, until_ms)) != NULL) {
        struct shard_timer *timer = container_of(entry, struct shard_timer, entry);
        count++;
        timer->fire(shard, timer);
    }
    return count;
}

/* ---- the horizon ----------------------------------------------------------------------------- */

int64_t shard_horizon_ms(const struct shard *shard)
{
    return atomic_load_explicit(&shard->state->horizon_ms, memory_order_acquire);
}

int64_t shard_horizon_all_ms(const struct shard *shard)
{
    int64_t smallest = shard_horizon_ms(shard);
    if (shard->count == 1) return smallest;
    for (uint32_t i = 0; i < shard->count; i++)
        if (shard->peers[i] != NULL && shard->peers[i] != shard)
            smallest = sooner_ms(smallest, shard_horizon_ms(shard->peers[i]));
    return smallest;
}

void shard_accepted(struct shard *shard, struct shard *owner)
{
    struct shard_state *state = shard->state;
    if (++state->accepted >= IO_ACCEPTS_PER_TURN) state->turn_unfinished = true; /* More wait. */
    if (owner == shard) return;
    struct shard_given *given = &state->given[owner->index];
    uint32_t batch = given->batches[0].count != 0;
    if (given->batches[batch].count == 0) given->batches[batch].since_ms = state->before_ms;
    given->batches[batch].count = ++given->count;
}

void shard_taken(struct shard *shard, const struct shard *giver)
{
    shard->state->taken[giver->index]++;
}

/* All that was ready has been read: so have the connections that came before this turn. */
static void tell_taken(struct shard_state *state, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        atomic_store_explicit(&state->taken_read[i], state->taken_before[i], memory_order_release);
        state->taken_before[i] = state->taken[i];
    }
}

/* Since when a connection given to another shard may have bytes that it has not read, or `or_ms`.
 */
static int64_t given_since_ms(struct shard *shard, int64_t or_ms)
{
    for (uint32_t i = 0; i < shard->count; i++) {
        struct shard_given *given = &shard->state->given[i];
        if (given->batches[0].count == 0) continue;
        uint64_t read = atomic_load_explicit(&shard->peers[i]->state->taken_read[shard->index],
                                             memory_order_acquire);
        while (given->batches[0].count != 0 && read >= given->batches[0].count) {
            given->batches[0] = given->batches[1];
            given->batches[1].count = 0;
        }
        if (given->batches[0].count != 0) or_ms = MIN(or_ms, given->batches[0].since_ms);
    }
    return or_ms;
}

/* Up to when everything was read, as this turn knows; the turn's wait began at `before_ms`. */
static int64_t delivered_ms(struct shard *shard, int64_t before_ms, uint32_t delivered)
{
    struct shard_state *state = shard->state;
    bool unfinished = state->turn_unfinished || delivered >= SHARD_EVENTS_FULL;
    state->turn_unfinished = false;
    if (!unfinished) {
        tell_taken(state, shard->count);
        state->full_turns = 0;
        return state->all_read_ms = before_ms;
    }
    if (state->full_turns++ == 0) state->full_since_ms = before_ms;
    if (state->full_turns <= 1 + state->connection_count / SHARD_EVENTS_FULL)
        return shard_horizon_ms(shard);
    tell_taken(state, shard->count);
    state->full_turns = 0;
    return state->all_read_ms = state->full_since_ms;
}

static void move_horizon(struct shard *shard, int64_t before_ms, uint32_t delivered)
{
    struct shard_state *state = shard->state;
    int64_t now_ms = io_now_ms(shard->io);
    int64_t horizon_ms = delivered_ms(shard, before_ms, delivered);
    if (!list_empty(&state->held)) {
        struct connection *first = container_of(state->held.next, struct connection, held);
        horizon_ms = MIN(horizon_ms, first->held_ms);
    }
    if (state->held_all) horizon_ms = MIN(horizon_ms, state->held_all_since_ms);
    if (state->accepted > 0) horizon_ms = MIN(horizon_ms, state->before_ms);
    horizon_ms = given_since_ms(shard, horizon_ms);
    state->accepted = 0;
    state->before_ms = before_ms;
    horizon_ms = MAX(horizon_ms, now_ms - NET_HORIZON_HOLD_MAX_MS);
    if (horizon_ms > shard_horizon_ms(shard))
        atomic_store_explicit(&state->horizon_ms, horizon_ms, memory_order_release);
    metric_set(&shard->metrics, METRIC_HORIZON_LAG_MS,
               (uint64_t)MAX(0, now_ms - shard_horizon_ms(shard)));
}

/* A session is due by the clock, but a shard that sleeps has not said that it read everything:
 * have it turn. Once a millisecond: a horizon that is held does not move by asking, and two shards
 * that wait for each other's would turn without a pause. */
void shard_horizon_ask(struct shard *shard, int64_t due_ms)
{
    if (shard->state->asked_ms == io_now_ms(shard->io)) return;
    shard->state->asked_ms = io_now_ms(shard->io);
    for (uint32_t i = 0; i < shard->count; i++)
        if (shard->peers[i] != NULL && shard->peers[i] != shard &&
            shard_horizon_ms(shard->peers[i]) < due_ms)
            io_wake(shard->peers[i]->io);
}

/* ---- the turn -------------------------------------------------------------------------------- */

/* When to stop waiting for the world. */
static int64_t wait_until_ms(struct shard *shard, int64_t until_ms)
{
    struct shard_state *state = shard->state;
    if (!list_empty(&state->resume) || !list_empty(&state->flush) ||
        !mailbox_empty(&state->mailbox) ||
        atomic_load_explicit(&state->stopped, memory_order_relaxed))
        return 0;
    until_ms = sooner_ms(until_ms, wheel_next_ms(&shard->clock));
    int64_t session_ms = wheel_next_ms(&shard->sessions);
    int64_t horizon_ms = shard_horizon_all_ms(shard);
    if (session_ms <= io_now_ms(shard->io) && horizon_ms < session_ms) {
        shard_horizon_ask(shard, session_ms);
        /* Another shard's horizon, or what another has not read yet: look again soon. */
        if (shard_horizon_ms(shard) >= session_ms || given_since_ms(shard, INT64_MAX) != INT64_MAX)
            return MIN(until_ms, io_now_ms(shard->io) + 1);
        /* Held input moves the horizon by an event; at the latest when it may hold no longer. */
        if (!list_empty(&state->held) || state->held_all)
            return MIN(until_ms, session_ms + NET_HORIZON_HOLD_MAX_MS);
    }
    return MIN(until_ms, session_ms);
}

/* Those that come again in handling wait for the next turn. */
static void resume_all(struct shard *shard)
{
    struct list batch;
    list_init(&batch);
    struct list *node;
    while ((node = list_pop(&shard->state->resume)) != NULL)
        list_append(&batch, node);
    while ((node = list_pop(&batch)) != NULL)
        connection_resumed(container_of(node, struct connection, resume));
}

static void flush_all(struct shard *shard)
{
    struct shard_state *state = shard->state;
    struct list batch;
    list_init(&batch);
    struct list *node;
    while ((node = list_pop(&state->flush)) != NULL)
        list_append(&batch, node);
    while ((node = list_pop(&batch)) != NULL)
        output_flush(container_of(node, struct connection, flush));
}

static void bury_all(struct shard *shard)
{
    struct list *closing = &shard->state->closing;
    while (!list_empty(closing))
        connection_bury(container_of(closing->next, struct connection, link));
}

static void gauges(struct shard *shard)
{
    struct shard_state *state = shard->state;
    metric_set(&shard->metrics, METRIC_CONNECTIONS, state->connection_count);
    metric_set(&shard->metrics, METRIC_REQUESTS_IN_PROCESS, state->request_count);
    metric_set(&shard->metrics, METRIC_RECEIVE_BUDGET_BYTES, state->budget_used_bytes);
    /* The node's: told once. */
    if (shard->index == 0) metric_set(&shard->metrics, METRIC_MEMORY_BYTES, mem_used(shard->mem));
}

uint32_t shard_turn(struct shard *shard, int64_t until_ms)
{
    struct shard_state *state = shard->state;
    until_ms = MAX(0, wait_until_ms(shard, until_ms));
    int64_t before_ms = io_now_us(shard->io) / 1000;
    uint32_t happened = io_turn(shard->io, until_ms);
    uint32_t delivered = happened;
    int64_t start_us = io_now_us(shard->io);

    /* Horizons are read before the mailbox: what their shards posted before is opened then. */
    int64_t sessions_ms = shard->count > 1 ? shard_horizon_all_ms(shard) : INT64_MAX;
    uint32_t letters = state->letters + mailbox_open(&state->mailbox, shard);
    state->letters = 0;
    metric_add(&shard->metrics, METRIC_LETTERS, letters);
    move_horizon(shard, before_ms, delivered);
    sessions_ms = sooner_ms(sessions_ms, shard_horizon_ms(shard));
    happened += letters + fire(shard, &shard->clock, io_now_ms(shard->io));
    happened += fire(shard, &shard->sessions, sessions_ms);
    resume_all(shard);
    if (state->hooks.turn_end != NULL) state->hooks.turn_end(shard);
    flush_all(shard);
    bury_all(shard);

    int64_t took_us = io_now_us(shard->io) - start_us;
    metric_add(&shard->metrics, METRIC_TURNS, 1);
    metric_max(&shard->metrics, METRIC_TURN_MAX_US, (uint64_t)took_us);
    if (took_us > SHARD_LONG_US) metric_add(&shard->metrics, METRIC_TURNS_LONG, 1);
    gauges(shard);
    return happened;
}

void shard_run(struct shard *shard)
{
    while (!atomic_load_explicit(&shard->state->stopped, memory_order_relaxed))
        shard_turn(shard, INT64_MAX);
}

void shard_stop(struct shard *shard)
{
    atomic_store_explicit(&shard->state->stopped, true, memory_order_relaxed);
    io_wake(shard->io);
}

void shard_open_letters(struct shard *shard)
{
    struct shard_state *state = shard->state;
    if (!mailbox_empty(&state->mailbox)) state->letters += mailbox_open(&state->mailbox, shard);
}

void shard_post(struct shard *shard, struct letter *letter)
{
    mailbox_post(&shard->state->mailbox, letter);
}

/* ---- budget and holding ---------------------------------------------------------------------- */

void shard_budget_charge(struct shard *shard, uint64_t bytes)
{
    shard->state->budget_used_bytes += bytes;
}

/* Those that wait because of `hold` may go on. */
static void resume_held(struct shard *shard, uint8_t hold)
{
    list_foreach (node, &shard->state->held) {
        struct connection *connection = container_of(node, struct connection, held);
        if (!(connection->holds & hold)) continue;
        connection->holds &= (uint8_t)~hold;
        connection_resume(connection);
    }
}

void shard_budget_release(struct shard *shard, uint64_t bytes)
{
    struct shard_state *state = shard->state;
    assert(state->budget_used_bytes >= bytes);
    uint64_t limit = state->settings.receive_budget_bytes;
    bool was_full = limit > 0 && state->budget_used_bytes >= limit;
    state->budget_used_bytes -= bytes;
    if (was_full && (state->budget_used_bytes < limit || state->favoured == NULL))
        resume_held(shard, CONNECTION_NO_BUDGET);
}

void shard_hold(struct shard *shard, bool held)
{
    struct shard_state *state = shard->state;
    if (state->held_all == held) return;
    state->held_all = held;
    state->held_all_since_ms = io_now_ms(shard->io);
    if (!held) resume_held(shard, CONNECTION_SHARD_HELD);
}

void shard_charge(struct shard *shard, enum shard_charging charging)
{
    assert(charging == SHARD_CHARGE_NOTHING || shard->state->hooks.charge != NULL);
    shard->state->charging = charging;
}

uint32_t shard_connection_count(const struct shard *shard)
{
    return shard->state->connection_count;
}

uint32_t shard_request_count(const struct shard *shard)
{
    return shard->state->request_count;
}

/* ---- listeners ------------------------------------------------------------------------------- */

int shard_listen(struct shard *shard, const struct listener_options *options, struct listener **out)
{
    return listener_open(shard, options, out);
}

void shard_listener_end(struct shard *shard, struct listener *listener)
{
    assert(listener->shard == shard);
    listener_end(listener);
}

void shard_limit(struct shard *shard, const struct shard_limits *limits)
{
    shard->state->settings.limits = *limits;
}

void shard_unlisten(struct shard *shard)
{
    list_foreach (node, &shard->state->listeners)
        listener_unlisten(&container_of(node, struct shard_listener, link)->listener);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void wake(void *context)
{
    io_wake(((struct shard *)context)->io);
}

static void init_state(struct shard *shard, const struct shard_options *options)
{
    struct shard_state *state = shard->state;
    state->settings = options->settings;
    state->hooks = options->hooks;
    list_init(&state->listeners);
    list_init(&state->drains);
    list_init(&state->connections);
    list_init(&state->closing);
    list_init(&state->flush);
    list_init(&state->resume);
    list_init(&state->held);
    list_init(&state->spares);
    list_init(&state->spare_chunks);
    mailbox_init(&state->mailbox, wake, shard);
    map_init(&state->peers, shard->mem, io_random(shard->io, IO_RANDOM_HASH));
    atomic_init(&state->horizon_ms, io_now_ms(shard->io));
    state->before_ms = state->all_read_ms = io_now_ms(shard->io);
    atomic_init(&state->stopped, false);
    for (uint32_t i = 0; i < options->handler_count; i++) {
        const struct net_handler *handler = &options->handlers[i];
        assert(handler->api_key >= 0);
        assert(handler->api_key < SHARD_HANDLERS_MAX);
        assert(wire_api(handler->api_key) != NULL);
        state->handlers[handler->api_key] = handler;
    }
}

int shard_open(const struct shard_options *options, struct shard **out)
{
    assert(options->index < options->count);
    assert(options->count <= NET_SHARDS_MAX);
    struct mem *mem = io_mem(options->io);
    struct shard *shard = mem_get(mem, sizeof(*shard));
    struct shard_state *state = mem_get(mem, sizeof(*state));
    if (shard == NULL || state == NULL) {
        mem_put(mem, shard, sizeof(*shard));
        mem_put(mem, state, sizeof(*state));
        return -ENOMEM;
    }
    shard->io = options->io;
    shard->mem = mem;
    shard->say = options->say;
    shard->node = options->hooks.node;
    shard->index = options->index;
    shard->count = options->count;
    shard->peers = options->peers;
    shard->state = state;
    wheel_init(&shard->clock, io_now_ms(shard->io));
    wheel_init(&shard->sessions, io_now_ms(shard->io));
    metrics_init(&shard->metrics, mem, io_random(shard->io, IO_RANDOM_HASH));
    init_state(shard, options);
    *out = shard;
    return 0;
}

void shard_disconnect(struct shard *shard)
{
    struct shard_state *state = shard->state;
    state->disconnected = true;
    shard_unlisten(shard);
    while (!list_empty(&state->connections))
        connection_close(container_of(state->connections.next, struct connection, link), NULL);
    bury_all(shard);
}

bool shard_quiet(const struct shard *shard)
{
    struct shard_state *state = shard->state;
    return state->request_count == 0 && state->warm_count == 0 && state->admitted == 0 &&
           mailbox_empty(&state->mailbox);
}

struct shard *shard_close(struct shard *shard)
{
    if (shard == NULL) return NULL;
    struct shard_state *state = shard->state;
    struct mem *mem = shard->mem;
    shard_disconnect(shard);
    while (state->warm_count > 0)
        (void)io_turn(shard->io, io_now_ms(shard->io) + 10);
    (void)mailbox_open(&state->mailbox, shard);
    bury_all(shard);
    assert(state->request_count == 0);
    assert(state->warm_count == 0);
    assert(state->admitted == 0);
    struct list *node;
    while ((node = list_pop(&state->listeners)) != NULL)
        mem_put(mem, container_of(node, struct shard_listener, link),
                sizeof(struct shard_listener));
    listener_drains_free(shard);
    request_free_spares(shard);
    output_free_spares(shard);
    buf_release(state->receive);
    map_free(&state->peers);
    metrics_free(&shard->metrics);
    mem_put(mem, state, sizeof(*state));
    mem_put(mem, shard, sizeof(*shard));
    return NULL;
}
