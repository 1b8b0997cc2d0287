/* cost.c - what single requests cost Dohle, in figures that repeat: instructions, system calls,
 * allocations. No time is measured.
 *
 *   cost DIRECTORY sync|replicated CASE COUNT [whole]
 *
 * A node and its client live in this one thread: the client sends one frame, the node takes turns
 * until the answer is there, COUNT times after a warm-up, in BLOCKS blocks. Run it three ways:
 *
 *   alone             prints the allocations of the COUNT requests
 *   under callgrind   with --toggle-collect=node_turn: a dump for each block, of which the smallest
 *                     is the one that no timer fell into; `whole` makes one dump of all, as
 *                     callgrind_annotate needs it to name the functions
 *   under strace -c   counts system calls: the difference of two COUNTs; writev and recvmsg are the
 *                     client's, the server makes neither
 *
 * The directory is made by the node and left to the caller. */
#include <stdio.h>
#include <stdlib.h>
#include <valgrind/callgrind.h>

#include "bench/lib/requests.h"
#include "broker/node.h"
#include "io/posix.h"
#include "sys/memory.h"

#define BLOCKS 7

struct counted {
    struct mem mem; /* First: the interface hands back its address. */
    struct mem below;
    uint64_t gets;
};

static void *counted_get(struct mem *mem, size_t size_bytes)
{
    struct counted *counted = (struct counted *)mem;
    counted->gets++;
    return counted->below.get(&counted->below, size_bytes);
}

static void *counted_take(struct mem *mem, size_t size_bytes)
{
    struct counted *counted = (struct counted *)mem;
    counted->gets++;
    return counted->below.take(&counted->below, size_bytes);
}

static void counted_put(struct mem *mem, void *block, size_t size_bytes)
{
    struct counted *counted = (struct counted *)mem;
    counted->below.put(&counted->below, block, size_bytes);
}

struct cost {
    struct counted server;
    struct mem mem; /* The client's. */
    struct say_levels levels;
    struct say say;
    struct node *node;
    struct client client;
};

static void turn(void *context)
{
    struct cost *cost = context;
    (void)node_turn(cost->node, INT64_MAX);
}

/* ---- the cases ------------------------------------------------------------------------------- */

#define TOPIC "cost"

static void produce_case(struct cost *cost, uint32_t records)
{
    const struct produce_shape shape = {
        .topic = TOPIC, .records = records, .record_bytes = 100, .acks = -1};
    create_topic_call(&cost->client, TOPIC, 1);
    sink_reset(&cost->client.frame);
    produce_frame(&cost->client.frame, &shape);
    client_exchange_frame(&cost->client);
    int16_t error = produce_error(&cost->client);
    if (error != -1) client_die("Produce: error %d", error);
}

static void produce_1(struct cost *cost)
{
    produce_case(cost, 1);
}

static void produce_150(struct cost *cost)
{
    produce_case(cost, 150);
}

/* One batch of 150 records of 100 bytes, again and again. */
static void fetch_16k(struct cost *cost)
{
    const struct fetch_shape shape = {.topic = TOPIC, .bytes_max = 1 << 20, .wait_ms = 500};
    produce_150(cost);
    sink_reset(&cost->client.frame);
    fetch_frame(&cost->client.frame, &shape);
}

static void heartbeat(struct cost *cost)
{
    struct group_member member = {.group = "cost"};
    join_group_call(&cost->client, &member);
    sink_reset(&cost->client.frame);
    heartbeat_frame(&cost->client.frame, &member);
}

static void consumer_heartbeat_case(struct cost *cost)
{
    struct group_member member = {.group = "cost", .id = "a-member-that-made-up-its-name"};
    consumer_join_call(&cost->client, &member);
    sink_reset(&cost->client.frame);
    consumer_heartbeat_frame(&cost->client.frame, &member);
}

static const struct {
    const char *name;
    void (*prepare)(struct cost *cost); /* Leaves the frame to repeat in client.frame. */
} cases[] = {
    {"heartbeat",          heartbeat              },
    {"consumer_heartbeat", consumer_heartbeat_case},
    {"produce_1",          produce_1              },
    {"produce_150",        produce_150            },
    {"fetch_150",          fetch_16k              }
};

/* ---- the node -------------------------------------------------------------------------------- */

static struct view setting(void *context, struct view name)
{
    (void)context;
    if (view_is(name, "group.initial.rebalance.delay.ms")) return VIEW("0");
    if (view_is(name, "offsets.topic.num.partitions")) return VIEW("1");
    return VIEW_NULL;
}

static void open_node(struct cost *cost, const char *directory, bool replicated)
{
    struct io *io = posix_new(&cost->server.mem);
    if (io == NULL) client_die("no event loop");
    say_levels_init(&cost->levels, SAY_WARN);
    cost->say = (struct say){.fd = 2, .levels = &cost->levels};
    struct node_options options = {.io = io,
                                   .say = &cost->say,
                                   .node_id = 1,
                                   .log_dirs = &directory,
                                   .log_dir_count = 1,
                                   .listener_count = 1,
                                   .ack_replicated = replicated,
                                   .num_partitions = 1,
                                   .default_replication = 1,
                                   .rack = VIEW_NULL,
                                   .setting = setting};
    (void)snprintf(options.listeners[0].name, NODE_NAME_BYTES, "PLAINTEXT");
    (void)snprintf(options.listeners[0].host, sizeof(options.listeners[0].host), "127.0.0.1");
    options.listeners[0].inter_broker = true;
    if (node_open(&options, &cost->node) != 0) client_die("the node could not be opened");
    struct io_address address;
    node_address(cost->node, &address);
    client_open(&cost->client, &cost->mem, address.host, address.port);
    cost->client.turn = turn;
    cost->client.context = cost;
}

int main(int argc, char **argv)
{
    static struct cost cost;
    uint32_t chosen = ARRAY_SIZE(cases);
    if (argc < 5) client_die("usage: cost DIRECTORY sync|replicated CASE COUNT [whole]");
    for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (strcmp(argv[3], cases[i].name) == 0) chosen = i;
    if (chosen == ARRAY_SIZE(cases)) client_die("no such case: %s", argv[3]);
    uint64_t count = strtoull(argv[4], NULL, 10);

    memory_init(&cost.server.below, 0);
    memory_init(&cost.mem, 0);
    cost.server.mem = (struct mem){.get = counted_get, .take = counted_take, .put = counted_put};
    open_node(&cost, argv[1], strcmp(argv[2], "replicated") == 0);
    cases[chosen].prepare(&cost);
    for (uint64_t i = 0; i < 64; i++) /* Buffers find their size. */
        client_exchange_frame(&cost.client);
    uint64_t before = cost.server.gets;
    for (uint32_t block = 0; block < BLOCKS; block++) {
        if (argc == 5) CALLGRIND_ZERO_STATS;
        for (uint64_t i = 0; i < count; i++)
            client_exchange_frame(&cost.client);
        if (argc == 5) CALLGRIND_DUMP_STATS_AT(cases[chosen].name);
    }
    printf("%s %s %llu requests %llu allocations\n", cases[chosen].name, argv[2],
           (unsigned long long)(count * BLOCKS), (unsigned long long)(cost.server.gets - before));
    return 0; /* What the node would do at a stop is no request's cost. */
}
