/* shard_test.c - several shards on their own threads: letters, and sessions that wait for the shard
 * that has read least. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/posix.h"
#include "net/shard.h"
#include "sys/memory.h"

enum { SHARDS = 3 };

struct node {
    struct mem mem;
    struct io *ios[SHARDS];
    struct shard *shards[SHARDS];
    pthread_t threads[SHARDS];
    struct say say;
};

static void *run(void *argument)
{
    shard_run(argument);
    return NULL;
}

static void nodes_open(struct node *node)
{
    *node = (struct node){.say = {.fd = -1}};
    memory_init(&node->mem, 0);
    for (uint32_t i = 0; i < SHARDS; i++) {
        node->ios[i] = posix_new(&node->mem);
        assert_non_null(node->ios[i]);
        struct shard_options options = {.io = node->ios[i],
                                        .say = &node->say,
                                        .index = i,
                                        .count = SHARDS,
                                        .peers = node->shards,
                                        .hooks = {.node = node}};
        assert_int_equal(shard_open(&options, &node->shards[i]), 0);
    }
    for (uint32_t i = 0; i < SHARDS; i++)
        assert_int_equal(pthread_create(&node->threads[i], NULL, run, node->shards[i]), 0);
}

static void nodes_stop(struct node *node)
{
    for (uint32_t i = 0; i < SHARDS; i++)
        shard_stop(node->shards[i]);
    for (uint32_t i = 0; i < SHARDS; i++)
        pthread_join(node->threads[i], NULL);
}

static void nodes_free(struct node *node)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        shard_close(node->shards[i]);
        io_free(node->ios[i]);
    }
    assert_int_equal(node->mem.used_bytes, 0);
}

static void nodes_close(struct node *node)
{
    nodes_stop(node);
    nodes_free(node);
}

static int64_t clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool wait_for(_Atomic int64_t *value, int64_t at_least)
{
    for (int i = 0; i < 5000; i++) {
        if (atomic_load(value) >= at_least) return true;
        usleep(1000);
    }
    return false;
}

/* ---- letters --------------------------------------------------------------------------------- */

/* A letter that goes round all shards until it was opened `left` times. */
struct traveller {
    struct letter letter;
    struct node *node;
    int left;
    _Atomic int64_t done;
};

static void travel(void *owner, struct letter *letter)
{
    struct traveller *traveller = container_of(letter, struct traveller, letter);
    struct shard *shard = owner;
    if (--traveller->left == 0)
        atomic_store(&traveller->done, 1);
    else
        shard_post(traveller->node->shards[(shard->index + 1) % SHARDS], letter);
}

static void letters(void **state)
{
    (void)state;
    struct node node;
    nodes_open(&node);
    struct traveller travellers[20];
    for (size_t i = 0; i < ARRAY_SIZE(travellers); i++) {
        travellers[i] = (struct traveller){{.open = travel}, &node, 1000, 0};
        shard_post(node.shards[i % SHARDS], &travellers[i].letter);
    }
    for (size_t i = 0; i < ARRAY_SIZE(travellers); i++)
        assert_true(wait_for(&travellers[i].done, 1));
    nodes_close(&node);
}

/* ---- the smallest horizon -------------------------------------------------------------------- */

struct order {
    struct letter letter;
    struct shard_timer timer;
    int64_t in_ms;
    bool held;
    _Atomic int64_t done_ms;
    _Atomic int64_t fired_ms;
};

static void fired(struct shard *shard, struct shard_timer *timer)
{
    (void)shard;
    atomic_store(&container_of(timer, struct order, timer)->fired_ms, clock_ms());
}

static void set_session(void *owner, struct letter *letter)
{
    struct order *order = container_of(letter, struct order, letter);
    shard_timer_init(&order->timer, fired);
    shard_session_set(owner, &order->timer, clock_ms() + order->in_ms);
    atomic_store(&order->done_ms, clock_ms());
}

static void set_held(void *owner, struct letter *letter)
{
    struct order *order = container_of(letter, struct order, letter);
    shard_hold(owner, order->held);
    atomic_store(&order->done_ms, clock_ms());
}

static void do_order(struct shard *shard, struct order *order)
{
    atomic_store(&order->done_ms, 0);
    shard_post(shard, &order->letter);
    assert_true(wait_for(&order->done_ms, 1));
}

/* All are asleep: the one with the session wakes the others, and it comes in time. */
static void sleeping_peers(void **state)
{
    (void)state;
    struct node node;
    nodes_open(&node);
    struct order session = {.letter = {.open = set_session}, .in_ms = 50};
    int64_t start_ms = clock_ms();
    do_order(node.shards[0], &session);
    assert_true(wait_for(&session.fired_ms, 1));
    assert_true(session.fired_ms >= start_ms + 50);
    assert_true(session.fired_ms < start_ms + 1000);
    nodes_close(&node);
}

/* One shard holds its input: nobody's session runs out meanwhile, on any shard. */
static void held_peer(void **state)
{
    (void)state;
    struct node node;
    nodes_open(&node);
    struct order hold = {.letter = {.open = set_held}, .held = true};
    do_order(node.shards[2], &hold);
    struct order session = {.letter = {.open = set_session}, .in_ms = 20};
    do_order(node.shards[0], &session);
    usleep(150000);
    assert_int_equal(session.fired_ms, 0);
    hold.held = false;
    int64_t released_ms = clock_ms();
    do_order(node.shards[2], &hold);
    assert_true(wait_for(&session.fired_ms, 1));
    assert_true(session.fired_ms >= released_ms);
    nodes_close(&node);
}

/* Two shards that hold their input, each with a session that waits for the other: they do not turn
 * without a pause meanwhile. */
static void held_peers_rest(void **state)
{
    (void)state;
    struct node node;
    struct order holds[2], sessions[2];
    nodes_open(&node);
    int64_t start_ms = clock_ms();
    for (int i = 0; i < 2; i++) {
        holds[i] = (struct order){.letter = {.open = set_held}, .held = true};
        do_order(node.shards[i], &holds[i]);
        sessions[i] = (struct order){.letter = {.open = set_session}, .in_ms = 20};
        do_order(node.shards[i], &sessions[i]);
    }
    usleep(150000);
    nodes_stop(&node);
    uint64_t passed_ms = (uint64_t)(clock_ms() - start_ms);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sessions[i].fired_ms, 0);
        assert_in_range(node.shards[i]->metrics.values[METRIC_TURNS], 2, 100 + 5 * passed_ms);
    }
    nodes_free(&node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters),
        cmocka_unit_test(sleeping_peers),
        cmocka_unit_test(held_peer),
        cmocka_unit_test(held_peers_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
