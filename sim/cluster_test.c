/* cluster_test.c - a simulated node in small: what seeds of the whole simulator once found, each as
 * a story of its own, and the guard that ends a node which does not end itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/client_admin.h"
#include "sim/client_lister.h"
#include "sim/client_producer.h"
#include "sim/client_remaker.h"
#include "sim/cluster.h"
#include "sim/stage.h"

struct scene {
    struct sim_world *world;
    struct cluster cluster;
    struct history history;
    struct client *admin;
    uint32_t fail_nth; /* Allocation from the next opening of a log of the topic on; 0: none. */
    bool opens;        /* A log of the topic has been seen opening. */
};

static void scene_trace(void *context, const struct sim_trace *trace)
{
    struct scene *scene = context;
    if (strcmp(trace->kind, "turn") == 0) cluster_waits(&scene->cluster);
    if (strstr(trace->name, "topic0") == NULL ||
        strstr(trace->name, "leader-epoch-checkpoint") == NULL)
        return;
    scene->opens = true;
    if (scene->fail_nth == 0) return;
    sim_node_fail_memory(scene->cluster.machine, scene->fail_nth, false);
    scene->fail_nth = 0;
}

/* A node that runs, an admin that will create one topic of two partitions. */
static struct scene *scene_new(uint64_t seed, uint32_t shards, uint32_t stall_per_million)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    struct sim_options options = {.forbid_blocking = true,
                                  .trace = scene_trace,
                                  .trace_context = scene,
                                  .disk_stall_per_million = stall_per_million};
    cluster_options(&scene->cluster, &options);
    scene->cluster.shape.shards = shards;
    scene->world = sim_world_new(seed, &options);
    cluster_init(&scene->cluster, scene->world, &scene->history);
    scene->history.topic_count = 1;
    scene->history.topics[0] = (struct history_topic){.name = "topic0", .partitions = 2};
    scene->admin =
        &client_admin_new(&(struct client_seat){.world = scene->world,
                                                .history = &scene->history,
                                                .seed = seed,
                                                .host = sim_node_host(scene->cluster.machine)})
             ->client;
    assert_true(cluster_start(&scene->cluster));
    return scene;
}

static void scene_free(struct scene *scene)
{
    client_free(scene->admin);
    sim_world_free(scene->world);
    history_free(&scene->history);
    free(scene);
}

static void scene_step(struct scene *scene, int64_t until_us)
{
    void *other = stage_step(scene->world, &scene->cluster, until_us);
    if (other != NULL) client_turn(other);
}

static void scene_pass(struct scene *scene, int64_t ms)
{
    int64_t until_us = sim_now_us(scene->world) + ms * 1000;
    while (sim_now_us(scene->world) < until_us && !history_violated(&scene->history))
        scene_step(scene, until_us);
}

/* An idempotent producer that waits for all and never ends, two seconds into its work. The
 * caller's. */
static struct client_producer *scene_producer(struct scene *scene)
{
    struct client_producer *producer =
        client_producer_new(&(struct client_seat){.world = scene->world,
                                                  .history = &scene->history,
                                                  .seed = 1,
                                                  .index = 1,
                                                  .host = sim_node_host(scene->cluster.machine)},
                            0);
    producer->idempotent = scene->history.idempotent[0] = true;
    producer->acks = -1;
    producer->quota = UINT32_MAX / 2;
    scene_pass(scene, 2000);
    return producer;
}

/* Any one allocation fails while a topic is created: clients see the topic with all its partitions,
 * or not at all (seed 1685: half of a batch of metadata was applied). */
static void a_topic_is_created_without_memory(void **state)
{
    (void)state;
    uint32_t made = 0, struck = 0;
    for (uint32_t nth = 1; nth <= 150; nth++) {
        struct scene *scene = scene_new(nth, 1, 0);
        sim_node_fail_memory(scene->cluster.machine, nth, nth % 3 == 0);
        scene_pass(scene, 500);
        sim_node_heal(scene->cluster.machine);
        scene_pass(scene, 1500);
        if (history_violated(&scene->history))
            fail_msg("allocation %u: %s", nth, scene->history.violation);
        made += scene->history.topics[0].known;
        struck += scene->admin->errors > 0 || scene->admin->link.connects > 1;
        scene_free(scene);
    }
    assert_true(made >= 20);
    assert_true(struck >= 5); /* Clients saw it. */
}

/* Any one allocation fails after a start while what a producer sends waits for its log to open:
 * it is answered once (seed 61875: who waited was told from inside its own append, and its
 * request ended under it). */
static void a_log_opens_without_memory(void **state)
{
    (void)state;
    struct scene *scene = scene_new(1, 1, 0);
    struct client_producer *producer = scene_producer(scene);
    for (uint32_t round = 0; round < 600; round++) {
        uint32_t nth = 16 + round % 10;
        for (int i = 0; i < 2; i++) /* Answers are lost, so that some of it is sent again. */
            (void)sim_node_reset_stream(scene->cluster.machine);
        assert_true(
            cluster_stop(&scene->cluster)); /* Else the logs are recovered, and so opened. */
        assert_true(cluster_start(&scene->cluster));
        scene->history.trouble_us = INT64_MAX;
        scene->history.troubles++;
        scene->fail_nth = nth;
        for (int i = 0; i < 100 && scene->fail_nth != 0; i++)
            scene_pass(scene, 100);
        assert_int_equal(scene->fail_nth, 0);
        scene_pass(scene, 100);
        sim_node_heal(scene->cluster.machine);
        if (history_violated(&scene->history))
            fail_msg("allocation %u: %s", nth, scene->history.violation);
    }
    assert_true(scene->history.acknowledged > 500);
    client_free(&producer->client);
    scene_free(scene);
}

/* A node forgets its thread while a log opens for what an idempotent producer has sent, and more of
 * it comes: what came first is appended first (seed 39612: the request that came in the turn in
 * which the log had opened overtook those that were about to be told, and was refused). */
static void a_log_opens_for_the_first_first(void **state)
{
    (void)state;
    struct scene *scene = scene_new(1, 1, 0);
    struct client_producer *producer = scene_producer(scene);
    for (uint32_t round = 0; round < 200; round++) {
        assert_true(cluster_stop(&scene->cluster));
        assert_true(cluster_start(&scene->cluster));
        scene->opens = false;
        for (int i = 0; i < 100000 && !scene->opens; i++)
            scene_step(scene, INT64_MAX);
        assert_true(scene->opens);
        sim_node_pause(scene->cluster.machine, 1 + round % 20);
        scene_pass(scene, 200);
        if (history_violated(&scene->history))
            fail_msg("round %u: %s", round, scene->history.violation);
    }
    assert_true(scene->history.acknowledged > 200);
    client_free(&producer->client);
    scene_free(scene);
}

/* A topic is made, deleted and made again under its name; a start reads the metadata from its
 * beginning, and the folder is the later topic's (seeds 3 and 9). */
static void a_topic_made_again_outlives_a_start(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 12; seed++) {
        struct scene *scene = scene_new(seed, seed % 2 == 0 ? 3 : 1, 0);
        struct client_remaker *remaker = client_remaker_new(
            &(struct client_seat){.world = scene->world,
                                  .history = &scene->history,
                                  .seed = seed,
                                  .index = 1,
                                  .host = sim_node_host(scene->cluster.machine)});
        struct client *client = client_remaker_base(remaker);
        scene_pass(scene, 5000);
        client->storm = false;
        for (int i = 0; i < 100 && !client_finished(client); i++)
            scene_pass(scene, 100);
        assert_true(client_finished(client));
        assert_true(client_remaker_made(remaker) > 3);
        cluster_crash(&scene->cluster, SIM_CRASH_KILL, 0);
        assert_true(cluster_start(&scene->cluster));
        client_remaker_audits(remaker);
        for (int i = 0; i < 100 && !client_finished(client); i++)
            scene_pass(scene, 100);
        if (history_violated(&scene->history)) fail_msg("%s", scene->history.violation);
        assert_true(client_finished(client));
        client_free(client);
        scene_free(scene);
    }
}

/* Some operations of the disk take up to two seconds while a client asks for offsets by time,
 * and the node is stopped meanwhile: it waits for the disk, and ends (seed 299: an assertion,
 * of one shard).
 */
static void a_stop_waits_for_offsets_by_time(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct scene *scene = scene_new(seed, 1, 100000);
        struct places *places = calloc(1, sizeof(*places));
        struct client_seat seat = {.world = scene->world,
                                   .history = &scene->history,
                                   .seed = seed,
                                   .index = 1,
                                   .host = sim_node_host(scene->cluster.machine)};
        struct client_producer *producer = client_producer_new(&seat, 0);
        producer->acks = -1;
        producer->quota = 100;
        seat.index++;
        places->history = &scene->history;
        struct client_lister *lister = client_lister_new(&seat, places);
        for (int i = 0; i < 6; i++) {
            scene_pass(scene, 1000);
            assert_true(cluster_stop(&scene->cluster));
            assert_true(cluster_start(&scene->cluster));
        }
        assert_string_equal(scene->history.violation, "");
        client_free(&producer->client);
        client_free(&lister->client);
        scene_free(scene);
        free(places);
    }
}

/* A node that does not stop is told of, not waited for. */
static void a_stop_without_an_end(void **state)
{
    (void)state;
    struct scene *scene = scene_new(7, 1, 0);
    sim_node_fault(scene->cluster.machine, &(struct sim_fault){.kind = SIM_FAULT_STALL,
                                                               .for_good = true,
                                                               .stall_ms = 2 * CLUSTER_WAITS_MS});
    scene_pass(scene, 20);
    assert_false(cluster_stop(&scene->cluster));
    assert_non_null(strstr(scene->history.violation, "I23: the node closes"));
    scene_free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_topic_is_created_without_memory),
        cmocka_unit_test(a_log_opens_without_memory),
        cmocka_unit_test(a_log_opens_for_the_first_first),
        cmocka_unit_test(a_topic_made_again_outlives_a_start),
        cmocka_unit_test(a_stop_waits_for_offsets_by_time),
        cmocka_unit_test(a_stop_without_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
