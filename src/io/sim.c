/* sim.c - the simulated world: time, the event queue, turns, choices, the trace.
 *
 * One heap of events ordered by (time, a tie-break drawn from the seed, number). Time moves only in
 * sim_step(), sim_pass() and, with the option `waits`, in io_turn(); events run only there, never
 * inside a callback. A shard is due when something is there for it or the time has come that it
 * named; after a turn in which something happened it is due again a few microseconds later, so that
 * its loop can name a new time. */
#include "io/sim_inside.h"

#include <stdlib.h>

#define TURN_COST_US    20u
#define HASH_MULTIPLIER 0x100000001b3u

void *sim_heap(size_t size_bytes)
{
    void *block = calloc(1, MAX(size_bytes, 1u));
    assert(block != NULL);
    return block;
}

void *sim_heap_grow(void *block, size_t size_bytes)
{
    block = realloc(block, size_bytes);
    assert(block != NULL);
    return block;
}

char *sim_heap_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = sim_heap(size);
    memcpy(copy, text, size);
    return copy;
}

struct sim_shard *sim_shard_of(struct io *io)
{
    return container_of(io, struct sim_shard, io);
}

/* ---- choices and the trace ------------------------------------------------------------------- */

static uint64_t mixed(uint64_t seed, uint64_t with)
{
    struct sim_rng rng = {seed ^ (with + 1) * 0x9fb21c651e98df25u};
    return sim_rng_next(&rng);
}

uint64_t sim_draw(struct sim_node *node, enum sim_site site)
{
    uint64_t place = mixed(mixed(node->world->seed, node->id), site);
    return mixed(place, node->drawn[site]++);
}

uint64_t sim_draw_below(struct sim_node *node, enum sim_site site, uint64_t bound)
{
    assert(bound > 0);
    return sim_draw(node, site) % bound;
}

/* Mostly short, sometimes up to the range's end. */
int64_t sim_draw_delay(struct sim_node *node, enum sim_site site, const struct sim_range *range)
{
    uint64_t width = range->max_us - range->min_us + 1u, draw = sim_draw(node, site);
    if (draw % 4 != 0) width = width / 8 + 1;
    return (int64_t)(range->min_us + (draw >> 8) % width);
}

static uint64_t fold_number(uint64_t hash, uint64_t number)
{
    return mixed(hash, number);
}

static uint64_t fold_text(uint64_t hash, const char *text)
{
    uint64_t folded = 0xcbf29ce484222325u;
    for (; *text != '\0'; text++)
        folded = (folded ^ (uint8_t)*text) * HASH_MULTIPLIER;
    return mixed(hash, folded);
}

void sim_note(struct sim_node *node, const struct sim_trace *trace)
{
    struct sim_world *world = node->world;
    if (world->options.unhashed && world->options.trace == NULL) return;
    struct sim_trace full = *trace;
    full.at_us = world->now_us;
    full.node = node->name;
    uint64_t hash = fold_number(world->hash, (uint64_t)full.at_us);
    hash = fold_text(hash, full.kind);
    hash = fold_number(hash, node->id);
    hash = fold_text(hash, full.name);
    hash = fold_number(hash, full.offset);
    hash = fold_number(hash, full.size);
    world->hash = fold_number(hash, (uint64_t)full.result);
    if (world->options.trace != NULL) world->options.trace(world->options.trace_context, &full);
}

void sim_waits(struct sim_world *world, bool waits)
{
    world->options.waits = waits;
}

uint64_t sim_trace_hash(const struct sim_world *world)
{
    assert(!world->options.unhashed);
    return world->hash;
}

int64_t sim_now_us(const struct sim_world *world)
{
    return world->now_us;
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool sooner(const struct sim_event *a, const struct sim_event *b)
{
    if (a->at_us != b->at_us) return a->at_us < b->at_us;
    if (a->tie != b->tie) return a->tie < b->tie;
    return a->number < b->number;
}

static void swap(struct sim_event *a, struct sim_event *b)
{
    struct sim_event held = *a;
    *a = *b;
    *b = held;
}

static void sift_up(struct sim_world *world, uint32_t i)
{
    struct sim_event *heap = world->heap;
    while (i > 0 && sooner(&heap[i], &heap[(i - 1) / 2])) {
        swap(&heap[i], &heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
}

static void sift_down(struct sim_world *world, uint32_t i)
{
    struct sim_event *heap = world->heap;
    for (;;) {
        uint32_t first = i, left = 2 * i + 1, right = 2 * i + 2;
        if (left < world->event_count && sooner(&heap[left], &heap[first])) first = left;
        if (right < world->event_count && sooner(&heap[right], &heap[first])) first = right;
        if (first == i) return;
        swap(&heap[i], &heap[first]);
        i = first;
    }
}

void sim_schedule(struct sim_world *world, int64_t at_us, struct sim_event event)
{
    assert(at_us >= world->now_us);
    if (world->event_count == world->event_capacity) {
        world->event_capacity = MAX(64u, world->event_capacity * 2);
        world->heap = sim_heap_grow(world->heap, world->event_capacity * sizeof(*world->heap));
    }
    event.at_us = at_us;
    event.number = world->event_number++;
    event.tie = mixed(world->seed, event.number);
    world->heap[world->event_count++] = event;
    sift_up(world, world->event_count - 1);
}

void sim_forget_shard(struct sim_world *world, const struct sim_shard *shard)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < world->event_count; i++)
        if (world->heap[i].shard != shard) world->heap[kept++] = world->heap[i];
    world->event_count = kept;
    for (uint32_t i = kept / 2; i-- > 0;)
        sift_down(world, i);
}

static struct sim_event pop(struct sim_world *world)
{
    struct sim_event event = world->heap[0];
    world->heap[0] = world->heap[--world->event_count];
    sift_down(world, 0);
    return event;
}

static void advance(struct sim_world *world, int64_t to_us)
{
    world->now_us = MAX(world->now_us, to_us);
    while (world->event_count > 0 && world->heap[0].at_us <= world->now_us) {
        struct sim_event event = pop(world);
        switch (event.kind) {
        case SIM_EVENT_OP: sim_op_run(event.shard, event.op); break;
        case SIM_EVENT_OP_DONE: sim_op_done(event.shard, event.op); break;
        case SIM_EVENT_NET: sim_packet_arrives(world, event.packet); break;
        }
    }
    sim_connections_reap(world);
}

static int64_t next_event_us(const struct sim_world *world)
{
    return world->event_count > 0 ? world->heap[0].at_us : INT64_MAX;
}

/* ---- turns ----------------------------------------------------------------------------------- */

static int64_t due_us(const struct sim_shard *shard)
{
    const struct sim_node *node = shard->node;
    if (node->crashed) return INT64_MAX;
    int64_t due = shard->ready ? node->world->now_us : shard->wake_us;
    return MAX(due, MAX(node->paused_until_us, shard->paused_until_us));
}

/* Time passes until something is there for the shard. */
static void wait_for(struct sim_shard *shard, int64_t until_us)
{
    struct sim_world *world = shard->node->world;
    if (!shard->ready && sim_streams_pending(shard)) {
        shard->ready = true; /* Told before, and still so. */
        advance(world, world->now_us + 1);
    }
    while (!shard->ready && !shard->node->crashed && world->now_us < until_us) {
        int64_t next = MIN(next_event_us(world), until_us);
        if (next == INT64_MAX) return; /* Nothing will ever come. */
        advance(world, next);
    }
}

static int64_t world_us(const struct sim_node *node, int64_t monotonic_ms)
{
    if (monotonic_ms == INT64_MAX) return INT64_MAX;
    return monotonic_ms <= node->clock_ms ? 0 : (monotonic_ms - node->clock_ms) * 1000;
}

static uint32_t sim_dead(struct sim_node *node)
{
    const struct sim_options *options = &node->world->options;
    if (options->waits && options->dead != NULL) options->dead(options->dead_context, node);
    return 0;
}

static uint32_t sim_turn(struct io *io, int64_t until_ms)
{
    struct sim_shard *shard = sim_shard_of(io);
    struct sim_node *node = shard->node;
    struct sim_world *world = node->world;
    assert(!shard->in_turn);
    assert(!shard->in_job);
    if (node->crashed) return sim_dead(node);

    int64_t until_us = world_us(node, until_ms);
    if (world->options.waits) wait_for(shard, until_us);
    if (node->crashed) return sim_dead(node);
    shard->turn_us = world->now_us;
    shard->turn_wall_ms = sim_node_wall_ms(node);
    shard->in_turn = true;
    bool ops_first = sim_draw_below(node, SIM_SITE_TURN, 2) == 0;
    uint32_t called = ops_first ? sim_ops_deliver(shard) : 0;
    called += sim_streams_deliver(shard);
    if (!ops_first) called += sim_ops_deliver(shard);
    shard->in_turn = false;

    shard->ready = !list_empty(&shard->done) && !node->crashed;
    shard->wake_us = until_us;
    if (called > 0 || until_us <= world->now_us)
        shard->wake_us =
            world->now_us + 1 + (int64_t)sim_draw_below(node, SIM_SITE_TURN, TURN_COST_US);
    sim_note(node, &(struct sim_trace){
                       .kind = "turn", .name = "", .size = called, .offset = shard->number});
    return called;
}

/* One of the shards that are due, or NULL. */
static struct sim_shard *due_shard(struct sim_world *world)
{
    struct sim_shard *chosen = NULL;
    uint32_t count = 0;
    list_foreach (at, &world->nodes) {
        struct sim_node *node = container_of(at, struct sim_node, link);
        list_foreach (s, &node->shards) {
            struct sim_shard *shard = container_of(s, struct sim_shard, link);
            if (due_us(shard) > world->now_us) continue;
            count++;
            if (sim_rng_below(&world->turn_order, count) == 0) chosen = shard;
        }
    }
    return chosen;
}

static struct sim_shard *crashed_shard(const struct sim_world *world)
{
    list_foreach (at, &world->nodes) {
        struct sim_node *node = container_of(at, struct sim_node, link);
        if (node->crashed && !list_empty(&node->shards))
            return container_of(node->shards.next, struct sim_shard, link);
    }
    return NULL;
}

static int64_t next_us(const struct sim_world *world)
{
    int64_t next = next_event_us(world);
    list_foreach (at, &world->nodes) {
        struct sim_node *node = container_of(at, struct sim_node, link);
        list_foreach (s, &node->shards) {
            int64_t due = due_us(container_of(s, struct sim_shard, link));
            next = MIN(next, due);
        }
    }
    return next;
}

enum sim_next sim_step(struct sim_world *world, int64_t until_us, struct io **turn_of)
{
    for (;;) {
        struct sim_shard *shard = crashed_shard(world);
        if (shard != NULL) {
            *turn_of = &shard->io;
            return SIM_CRASHED;
        }
        shard = due_shard(world);
        if (shard != NULL) {
            *turn_of = &shard->io;
            return SIM_TURN;
        }
        int64_t next = next_us(world);
        if (next == INT64_MAX) return SIM_NOTHING;
        if (next > until_us) {
            advance(world, until_us);
            return SIM_UNTIL;
        }
        advance(world, next);
    }
}

void sim_pass(struct sim_world *world, int64_t until_us)
{
    while (next_event_us(world) <= until_us)
        advance(world, next_event_us(world));
    advance(world, until_us);
}

/* ---- clocks and randomness ------------------------------------------------------------------- */

int64_t sim_node_wall_ms(const struct sim_node *node)
{
    return node->wall_clock_ms + node->world->now_us / 1000;
}

static int64_t sim_now_ms(struct io *io)
{
    struct sim_shard *shard = sim_shard_of(io);
    return shard->node->clock_ms + shard->turn_us / 1000;
}

static int64_t sim_monotonic_us(struct io *io)
{
    struct sim_node *node = sim_shard_of(io)->node;
    return node->clock_ms * 1000 + node->world->now_us;
}

static int64_t sim_cpu_ns(struct io *io)
{
    return sim_shard_of(io)->cpu_ns += SIM_CPU_LOOK_NS;
}

static int64_t sim_wall_ms(struct io *io)
{
    return sim_shard_of(io)->turn_wall_ms;
}

static uint64_t sim_random(struct io *io, enum io_random stream)
{
    struct sim_shard *shard = sim_shard_of(io);
    uint64_t place = mixed(mixed(shard->node->world->seed, 1000 + shard->node->id), stream);
    place = mixed(mixed(place, shard->incarnation), shard->number);
    return mixed(place, shard->drawn[stream]++);
}

static void sim_wake(struct io *io)
{
    sim_shard_of(io)->ready = true;
}

const struct io_backend sim_backend = {
    .now_ms = sim_now_ms,
    .now_us = sim_monotonic_us,
    .cpu_ns = sim_cpu_ns,
    .wall_ms = sim_wall_ms,
    .random = sim_random,
    .turn = sim_turn,
    .wake = sim_wake,
    .submit = sim_submit,
    .free = sim_shard_end,
    .open = sim_open,
    .close = sim_close,
    .stat = sim_stat,
    .size = sim_size,
    .read = sim_read,
    .read_cached = sim_read_cached,
    .cached = sim_cached,
    .write = sim_write,
    .truncate = sim_truncate,
    .reserve = sim_reserve,
    .sync = sim_sync,
    .sync_dir = sim_sync_dir,
    .rename = sim_rename,
    .unlink = sim_unlink,
    .mkdir = sim_mkdir,
    .rmdir = sim_rmdir,
    .space = sim_space,
    .list = sim_list,
    .lock = sim_lock,
    .listen = sim_listen,
    .unlisten = sim_unlisten,
    .connect = sim_connect,
    .watch = sim_watch,
    .want = sim_want,
    .recv = sim_recv,
    .send = sim_send,
    .send_file = sim_send_file,
    .local = sim_local,
    .peer = sim_peer,
    .close_stream = sim_close_stream,
    .give_stream = sim_give_stream,
    .take_stream = sim_take_stream,
};

/* ---- the world ------------------------------------------------------------------------------- */

static void usual_range(struct sim_range *range, uint32_t min_us, uint32_t max_us)
{
    if (range->max_us == 0) *range = (struct sim_range){min_us, max_us};
    assert(range->min_us <= range->max_us);
}

struct sim_world *sim_world_new(uint64_t seed, const struct sim_options *options)
{
    struct sim_world *world = sim_heap(sizeof(*world));
    world->seed = world->hash = world->turn_order.state = seed;
    if (options != NULL) world->options = *options;
    struct sim_options *own = &world->options;
    usual_range(&own->disk_delay, 20, 2000);
    usual_range(&own->net_delay, 50, 5000);
    if (own->cache_miss_percent == 0) own->cache_miss_percent = 25;
    if (own->cache_miss_percent > 100) own->cache_miss_percent = 0;
    if (own->break_after_ms == 0) own->break_after_ms = 15000;
    if (own->disk_bytes == 0) own->disk_bytes = 1u << 30;
    list_init(&world->nodes);
    list_init(&world->connections);
    return world;
}

void sim_world_free(struct sim_world *world)
{
    if (world == NULL) return;
    struct list *at;
    while ((at = list_pop(&world->nodes)) != NULL)
        sim_node_free(container_of(at, struct sim_node, link));
    while (world->event_count > 0)
        if (world->heap[--world->event_count].kind == SIM_EVENT_NET)
            free(world->heap[world->event_count].packet);
    sim_connections_free(world);
    free(world->heap);
    free(world);
}

void sim_tag(struct io *io, void *tag)
{
    sim_shard_of(io)->tag = tag;
}

void *sim_tag_of(struct io *io)
{
    return sim_shard_of(io)->tag;
}
