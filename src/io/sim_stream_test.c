/* sim_stream_test.c - two nodes and the network between them; and that a seed is a run. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>
#include <errno.h>

#include "io/sim.h"

static struct io_file *must_open(struct io *io, const char *path)
{
    struct io_file *file = NULL;
    assert_int_equal(io_disk_open(io, path, IO_OPEN_WRITE | IO_OPEN_CREATE, &file), 0);
    return file;
}

/* ---- two nodes: a store that acknowledges what is durable, and its client -------------------- */

#define RECORDS 300u

struct store {
    struct sim_node *node;
    struct io *io;
    struct io_listener *listener;
    struct io_stream *stream;
    struct io_file *file;
    struct io_op write, durable;
    struct iovec iov;
    uint8_t bytes[64];
    uint32_t size, acknowledged; /* Bytes in `bytes`; sent back of them. */
    uint64_t end;
    bool busy;   /* `bytes` are on their way to the disk. */
    bool orphan; /* And who sent them has gone. */
};

struct client {
    struct sim_node *node;
    struct io *io;
    struct io_stream *stream;
    char server[24];
    uint32_t sent, acknowledged; /* Bytes. */
    uint32_t connects;
    int64_t again_ms;    /* When to connect. */
    int64_t patience_ms; /* How long it waits for an answer: a half-open stream never tells. */
    int64_t deadline_ms;
};

static void store_lose(struct store *store)
{
    if (store->stream == NULL) return;
    io_stream_close(store->io, store->stream);
    store->stream = NULL;
}

static void store_answer(struct store *store)
{
    while (store->stream != NULL && store->acknowledged < store->size) {
        struct iovec iov = {store->bytes + store->acknowledged, store->size - store->acknowledged};
        int64_t n = io_stream_send(store->io, store->stream, &iov, 1, false);
        if (n == -EAGAIN) return;
        if (n < 0) store_lose(store);
        if (n > 0) store->acknowledged += (uint32_t)n;
    }
    if (store->stream != NULL) io_stream_want(store->io, store->stream, IO_READABLE);
}

static void store_durable(struct io_op *op)
{
    struct store *store = container_of(op, struct store, durable);
    assert_int_equal(op->result, 0);
    store->busy = false;
    store->acknowledged = store->orphan ? store->size : 0;
    store->orphan = false;
    if (store->stream != NULL) io_stream_want(store->io, store->stream, IO_READABLE | IO_WRITABLE);
}

static void store_written(struct io_op *op)
{
    struct store *store = container_of(op, struct store, write);
    assert_int_equal(op->result, store->size);
    store->end += store->size;
    io_durable(store->io, &store->durable, &store->file, 1);
}

static void store_ready(void *context, struct io_stream *stream, int ready)
{
    struct store *store = context;
    if (ready & IO_HANGUP) {
        store_lose(store);
        return;
    }
    if (store->busy) {
        io_stream_want(store->io, stream, 0);
        return;
    }
    if (store->acknowledged < store->size) {
        store_answer(store);
        return;
    }
    int64_t n = io_stream_recv(store->io, stream, store->bytes, sizeof(store->bytes));
    if (n == -EAGAIN) return;
    if (n <= 0) {
        store_lose(store);
        return;
    }
    store->busy = true;
    store->size = store->acknowledged = (uint32_t)n;
    store->iov = (struct iovec){store->bytes, (size_t)n};
    io_write(store->io, &store->write, store->file, &store->iov, 1, store->end);
    io_stream_want(store->io, stream, 0);
}

static void store_accepted(void *context, struct io_stream *stream, const struct io_address *peer)
{
    (void)peer;
    static const struct io_stream_events events = {store_ready};
    struct store *store = context;
    store_lose(store);
    store->orphan = store->busy;
    store->acknowledged = store->size; /* What is under way is for the old one. */
    store->stream = stream;
    io_stream_watch(store->io, stream, store->busy ? 0 : IO_READABLE, &events, store);
}

static void store_start(struct store *store)
{
    static const struct io_accept_events events = {store_accepted};
    struct sim_node *node = store->node;
    *store =
        (struct store){.node = node, .write.done = store_written, .durable.done = store_durable};
    store->io = sim_node_start(node);
    sim_tag(store->io, store);
    struct io_address address = {.host = "0.0.0.0", .port = 9092};
    assert_int_equal(io_listen(store->io, &address, &events, store, &store->listener, NULL), 0);
    store->file = must_open(store->io, "/tmp/log");
    assert_int_equal(io_disk_sync_dir(store->io, "/tmp"), 0);
    store->end = (uint64_t)io_disk_size(store->io, store->file);
}

/* Byte i of the stream; the client goes on after what was acknowledged on the connection's loss. */
static uint8_t byte_at(uint32_t i)
{
    return (uint8_t)(1 + i % 251);
}

static void client_lose(struct client *client)
{
    io_stream_close(client->io, client->stream);
    client->stream = NULL;
    client->again_ms = io_now_ms(client->io) + 50;
}

static void client_ready(void *context, struct io_stream *stream, int ready)
{
    struct client *client = context;
    uint8_t bytes[32];
    if (ready & IO_READABLE) {
        int64_t n = io_stream_recv(client->io, stream, bytes, sizeof(bytes));
        for (int64_t i = 0; i < n; i++)
            assert_int_equal(bytes[i], byte_at(client->acknowledged++));
        client->deadline_ms = io_now_ms(client->io) + client->patience_ms;
        if (n <= 0 && n != -EAGAIN) {
            client_lose(client);
            return;
        }
    }
    if (ready & IO_WRITABLE && client->sent < RECORDS) {
        uint32_t size = MIN(7u, RECORDS - client->sent);
        for (uint32_t i = 0; i < size; i++)
            bytes[i] = byte_at(client->sent + i);
        int64_t n = io_stream_send(client->io, stream, &(struct iovec){bytes, size}, 1, false);
        if (n > 0) client->sent += (uint32_t)n;
    }
    io_stream_want(client->io, stream, IO_READABLE | (client->sent < RECORDS ? IO_WRITABLE : 0));
}

static void client_turn(struct client *client)
{
    static const struct io_stream_events events = {client_ready};
    io_turn(client->io, client->stream == NULL ? client->again_ms : client->deadline_ms);
    if (client->stream != NULL && io_now_ms(client->io) >= client->deadline_ms) client_lose(client);
    if (client->stream != NULL || io_now_ms(client->io) < client->again_ms) return;
    struct io_address address = {.port = 9092};
    memcpy(address.host, client->server, sizeof(client->server));
    assert_int_equal(io_connect(client->io, &address, &client->stream), 0);
    client->sent = client->acknowledged;
    client->connects++;
    client->deadline_ms = io_now_ms(client->io) + client->patience_ms;
    io_stream_watch(client->io, client->stream, IO_READABLE | IO_WRITABLE, &events, client);
}

struct pair {
    struct sim_world *world;
    struct store store;
    struct client client;
    uint32_t turns, crashes;
};

/* With DOHLE_SIM_TRACE set: what happens, line by line. */
static void print_trace(void *context, const struct sim_trace *trace)
{
    (void)context;
    print_message("%10lld us %-7s %-9s %-10s %8llu %6llu -> %lld\n", (long long)trace->at_us,
                  trace->node, trace->kind, trace->name, (unsigned long long)trace->offset,
                  (unsigned long long)trace->size, (long long)trace->result);
}

static struct pair *pair_new(uint64_t seed, uint32_t resets_per_million)
{
    struct pair *pair = calloc(1, sizeof(*pair));
    struct sim_options options = {.net_reset_per_million = resets_per_million,
                                  .net_stall_per_million = 5000,
                                  .disk_stall_per_million = 5000,
                                  .forbid_blocking = true,
                                  .break_after_ms = 3000};
    if (getenv("DOHLE_SIM_TRACE") != NULL) options.trace = print_trace;
    pair->world = sim_world_new(seed, &options);
    pair->store.node = sim_node_new(pair->world, "store");
    pair->client.node = sim_node_new(pair->world, "client");
    memcpy(pair->client.server, sim_node_host(pair->store.node), 9);
    store_start(&pair->store);
    pair->client.io = sim_node_start(pair->client.node);
    sim_tag(pair->client.io, &pair->client);
    pair->client.patience_ms = 20000;
    return pair;
}

static void pair_free(struct pair *pair)
{
    sim_world_free(pair->world);
    free(pair);
}

/* Run until all is acknowledged or `until_us` has come; restarts what crashes. */
static void pair_run(struct pair *pair, int64_t until_us)
{
    struct io *who;
    while (pair->client.acknowledged < RECORDS && sim_now_us(pair->world) < until_us) {
        enum sim_next next = sim_step(pair->world, until_us, &who);
        if (next == SIM_NOTHING || next == SIM_UNTIL) return;
        if (next == SIM_CRASHED) {
            pair->crashes++;
            sim_node_crash(pair->store.node, SIM_CRASH_RANDOM, pair->crashes);
            store_start(&pair->store);
            continue;
        }
        assert_true(pair->turns++ < 1000000);
        if (sim_tag_of(who) == &pair->client)
            client_turn(&pair->client);
        else
            io_turn(who, INT64_MAX);
    }
}

static void assert_kept(struct pair *pair)
{
    uint8_t bytes[16384];
    sim_node_heal(pair->store.node);
    if (sim_node_crashed(pair->store.node)) {
        sim_node_crash(pair->store.node, SIM_CRASH_WORST, 0);
        store_start(&pair->store);
    }
    struct io *io = pair->store.io;
    struct io_file *file = must_open(io, "/tmp/log");
    int64_t size = io_disk_read(io, file, bytes, sizeof(bytes), 0);
    uint32_t found = 0;
    for (int64_t i = 0; i < size && found < pair->client.acknowledged; i++)
        if (bytes[i] == byte_at(found)) found++;
    io_disk_close(io, file);
    assert_int_equal(found, pair->client.acknowledged); /* In order, others between them. */
}

static void test_streams_calm(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct pair *pair = pair_new(seed, 0);
        pair_run(pair, INT64_MAX);
        assert_int_equal(pair->client.acknowledged, RECORDS);
        assert_int_equal(pair->client.connects, 1);
        assert_kept(pair);
        assert_int_equal(io_disk_size(pair->store.io, pair->store.file), RECORDS);
        pair_free(pair);
    }
}

static void test_streams_in_a_storm(void **state)
{
    (void)state;
    uint32_t crashes = 0, connects = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct pair *pair = pair_new(seed, 20000);
        for (uint64_t n = 0; n < 4; n++)
            sim_node_fault(pair->store.node, &(struct sim_fault){.kind = SIM_FAULT_CRASH,
                                                                 .nth = 5 + n * (10 + seed % 17)});
        pair_run(pair, 600000000);
        assert_int_equal(pair->client.acknowledged, RECORDS);
        assert_kept(pair);
        crashes += pair->crashes;
        connects += pair->client.connects;
        pair_free(pair);
    }
    print_message("crashes %u, connects %u\n", crashes, connects);
    assert_true(crashes > 100 && connects > 120);
}

/* Run until the first bytes are under way, then cut their link. */
static struct pair *pair_cut(void)
{
    struct pair *pair = pair_new(1, 0);
    while (pair->client.sent == 0)
        pair_run(pair, sim_now_us(pair->world) + 10);
    assert_int_equal(pair->client.acknowledged, 0);
    sim_link(pair->client.node, pair->store.node, false);
    return pair;
}

/* What is sent into a cut link comes after the healing; a long cut breaks the connection. */
static void test_cut(void **state)
{
    (void)state;
    struct pair *pair = pair_cut();
    pair_run(pair, 1000000);
    assert_int_equal(pair->client.acknowledged, 0);
    sim_link(pair->client.node, pair->store.node, true);
    pair_run(pair, 60000000);
    assert_int_equal(pair->client.acknowledged, RECORDS);
    assert_int_equal(pair->client.connects, 1);
    pair_free(pair);

    pair = pair_cut();
    pair_run(pair, 20000000);
    assert_true(pair->client.connects > 1);
    sim_link(pair->client.node, pair->store.node, true);
    pair_run(pair, 60000000);
    assert_int_equal(pair->client.acknowledged, RECORDS);
    pair_free(pair);
}

/* After a power cut the peer's end is half open: told nothing until it sends. After a kill it is
 * told. */
static void test_half_open(void **state)
{
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        struct pair *pair = pair_new(8, 0);
        pair->client.patience_ms = 1000000000;
        pair->client.acknowledged = pair->client.sent = RECORDS; /* It says nothing more, */
        client_turn(&pair->client);
        pair->client.acknowledged = RECORDS - 1; /* but waits for ever. */
        pair->client.sent = RECORDS;
        pair_run(pair, 100000);
        assert_int_equal(pair->client.connects, 1);
        sim_node_crash(pair->store.node, cut ? SIM_CRASH_ALL : SIM_CRASH_KILL, 0);
        store_start(&pair->store);
        pair->client.again_ms = INT64_MAX;
        pair_run(pair, 10000000);
        if (cut)
            assert_non_null(pair->client.stream);
        else
            assert_true(pair->client.connects > 1);
        pair_free(pair);
    }
}

/* A connection that has fallen silent: the client's patience finds another one. */
static void test_severed(void **state)
{
    (void)state;
    struct pair *pair = pair_new(9, 0);
    for (int64_t us = 500; pair->client.acknowledged == 0; us += 500)
        pair_run(pair, us);
    assert_true(pair->client.connects == 1 && pair->client.acknowledged < RECORDS);
    assert_true(sim_node_sever_stream(pair->store.node));
    pair_run(pair, 60000000);
    assert_true(pair->client.connects > 1);
    assert_int_equal(pair->client.acknowledged, RECORDS);
    pair_free(pair);
}

/* A machine's monotonic clock begins anew with its power, not with its process. */
static void test_clock_restarts(void **state)
{
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        struct sim_world *world = sim_world_new(1, NULL);
        struct sim_node *node = sim_node_new(world, "n");
        sim_node_start(node);
        sim_pass(world, 50000000000);
        sim_node_crash(node, cut ? SIM_CRASH_ALL : SIM_CRASH_KILL, 0);
        int64_t now_ms = io_now_ms(sim_node_start(node));
        assert_true(now_ms > 0);
        assert_true(cut ? now_ms < 10000 : now_ms >= 50000000);
        sim_world_free(world);
    }
}

static void test_pause_and_clocks(void **state)
{
    (void)state;
    struct sim_world *world = sim_world_new(1, NULL);
    struct sim_node *node = sim_node_new(world, "n");
    struct io *io = sim_node_start(node), *who;
    assert_int_equal(sim_step(world, INT64_MAX, &who), SIM_TURN);
    int64_t start_ms = io_now_ms(io), start_wall_ms = io_wall_ms(io);
    io_turn(io, start_ms + 100);
    sim_node_pause(node, 500);
    sim_node_wall_jump(node, -3600000);
    assert_int_equal(sim_step(world, INT64_MAX, &who), SIM_TURN);
    io_turn(io, INT64_MAX);
    assert_int_equal(io_now_ms(io), start_ms + 500);
    assert_int_equal(io_wall_ms(io), start_wall_ms + 500 - 3600000);
    assert_int_equal(sim_step(world, INT64_MAX, &who), SIM_NOTHING);
    io_wake(io);
    assert_int_equal(sim_step(world, INT64_MAX, &who), SIM_TURN);
    sim_world_free(world);
}

/* ---- the same seed --------------------------------------------------------------------------- */

static uint64_t hash_of_run(uint64_t seed)
{
    struct pair *pair = pair_new(seed, 20000);
    sim_node_fault(pair->store.node, &(struct sim_fault){.kind = SIM_FAULT_CRASH, .nth = 30});
    pair_run(pair, 600000000);
    uint64_t hash = sim_trace_hash(pair->world);
    pair_free(pair);
    return hash;
}

/* Also held against a number written down, so that another compiler, another address space or
 * another machine cannot differ unseen. It changes when the simulator's choices do. */
static void test_same_seed_same_trace(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        uint64_t hash = hash_of_run(seed);
        void *shifted = malloc(seed * 100000 + 1); /* Other addresses. */
        assert_true(hash == hash_of_run(seed));
        assert_true(hash != hash_of_run(seed + 1));
        free(shifted);
    }
    uint64_t hash = hash_of_run(12345);
    if (hash != 0x0c660bb6ed6b153bull)
        print_error("trace hash of seed 12345: 0x%016llx\n", (unsigned long long)hash);
    assert_true(hash == 0x0c660bb6ed6b153bull);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams_calm),
        cmocka_unit_test(test_streams_in_a_storm),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_half_open),
        cmocka_unit_test(test_severed),
        cmocka_unit_test(test_clock_restarts),
        cmocka_unit_test(test_pause_and_clocks),
        cmocka_unit_test(test_same_seed_same_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
