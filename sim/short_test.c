/* short_test.c - a node that is short of space or of memory goes on by itself when there is some.
 *
 * A broker with its control part in a simulated world, with one shard or three, and a client that
 * speaks bytes. The disk shrinks to what is used, or the memory to what is out; what changes the
 * metadata is refused meanwhile, in the answer; afterwards the same process does it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "broker/controller_inside.h"
#include "sim/client_caller.h"
#include "sim/cluster.h"
#include "sim/stage.h"

#define ANSWER_US 20000000
#define DISK      (256ull * 1024 * 1024)

struct scene {
    struct stage stage;
    char text[1024];
};

static struct node *node_at(const struct scene *scene, uint32_t index)
{
    return scene->stage.cluster.node->peers[index];
}

static void say_it(struct scene *scene, const char *what, const char *name)
{
    const char *all[][2] = {
        {"CreateTopics 7",
         "{'topics': [{'name': '%s', 'numPartitions': 6, 'replicationFactor': 1}], "
         "'timeoutMs': 5000}"                                                             },
        {"DeleteTopics 5", "{'topicNames': ['%s'], 'timeoutMs': 5000}"                    },
        {"Metadata 8",     "{'topics': [{'name': '%s'}], 'allowAutoTopicCreation': false}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        if (strcmp(all[i][0], what) != 0) continue;
        size_t head = strcspn(all[i][1], "%");
        (void)snprintf(scene->text, sizeof(scene->text), "%.*s%s%s", (int)head, all[i][1], name,
                       all[i][1] + head + 2);
    }
    client_caller_ask(scene->stage.caller, what, scene->text);
}

/* The answer as JSON; NULL: there is none in time. */
static const char *answer_in(struct scene *scene, int64_t us)
{
    return stage_answered(&scene->stage, us) ? client_caller_answer(scene->stage.caller) : NULL;
}

static void expect(struct scene *scene, const char *what, const char *name, const char *has)
{
    say_it(scene, what, name);
    const char *answer = answer_in(scene, ANSWER_US);
    if (answer == NULL) fail_msg("no answer to %s %s", what, name);
    if (strstr(answer, has) == NULL) fail_msg("%s %s: %s", what, name, answer);
}

static struct scene *scene_new(uint32_t shards)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    struct sim_options options = {.forbid_blocking = true};
    cluster_options(&scene->stage.cluster, &options);
    scene->stage.cluster.shape = (struct cluster_shape){.shards = shards};
    scene->stage.world = sim_world_new(8, &options);
    cluster_init(&scene->stage.cluster, scene->stage.world, &scene->stage.history);
    sim_node_space(scene->stage.cluster.machine, DISK);
    struct client_seat seat = {.world = scene->stage.world,
                               .history = &scene->stage.history,
                               .seed = 8,
                               .host = sim_node_host(scene->stage.cluster.machine)};
    scene->stage.caller = client_caller_new(&seat);
    assert_true(cluster_start(&scene->stage.cluster));
    expect(scene, "CreateTopics 7", "before", "'errorCode':0");
    stage_pass(&scene->stage, 2000);
    return scene;
}

static void scene_end(struct scene *scene)
{
    client_free(&scene->stage.caller->client);
    sim_world_free(scene->stage.world);
    history_free(&scene->stage.history);
    free(scene);
}

/* Every shard shows what the log holds. */
static void all_follow(struct scene *scene)
{
    int64_t end;
    const struct image *first = controller_image(node_at(scene, 0), &end);
    if (node_not_ready(scene->stage.cluster.node) != NULL)
        fail_msg("%s", node_not_ready(scene->stage.cluster.node));
    for (uint32_t i = 0; i < node_at(scene, 0)->count; i++) {
        assert_int_equal(node_at(scene, i)->image_offset, end);
        assert_true(image_equal(node_at(scene, i)->image, first));
        assert_int_equal(node_at(scene, i)->replicas.unmade.at_ms, 0);
    }
}

/* ---- space ----------------------------------------------------------------------------------- */

/* No block is left, not even the last room. */
static void a_full_disk_refuses_changes(void **state)
{
    (void)state;
    struct scene *scene = scene_new(1);
    struct log_dir_info dir;
    sim_node_space(scene->stage.cluster.machine, 1);
    expect(scene, "CreateTopics 7", "meets", "'name':'meets'"); /* Takes the ballast, or waits. */
    stage_pass(&scene->stage, 3000);
    logs_dir_info(node_at(scene, 0)->logs, 0, &dir);
    assert_true(dir.full);
    expect(scene, "CreateTopics 7", "refused", "'errorCode':56"); /* KAFKA_STORAGE_ERROR */
    expect(scene, "DeleteTopics 5", "before", "'errorCode':56");
    expect(scene, "Metadata 8", "before", "'errorCode':0");
    stage_pass(&scene->stage, 60000); /* Heartbeats of its own broker part, periodic work. */
    assert_null(node_not_ready(scene->stage.cluster.node));
    assert_int_equal(node_at(scene, 0)->controller->refused, 2);
    sim_node_space(scene->stage.cluster.machine, DISK);
    stage_pass(&scene->stage, 3000);
    assert_int_equal(node_at(scene, 0)->controller->refused, 0);
    expect(scene, "CreateTopics 7", "after", "'errorCode':0");
    expect(scene, "DeleteTopics 5", "before", "'errorCode':0");
    expect(scene, "Metadata 8", "refused", "'errorCode':3");
    all_follow(scene);
    scene_end(scene);
}

/* The last room is enough to delete a topic, and not given to who makes one. */
static void a_full_disk_lets_a_topic_be_deleted(void **state)
{
    (void)state;
    struct scene *scene = scene_new(1);
    struct log_dir_info dir;
    sim_node_space(scene->stage.cluster.machine, 1);
    expect(scene, "CreateTopics 7", "meets", "'name':'meets'");
    stage_pass(&scene->stage, 3000);
    logs_dir_info(node_at(scene, 0)->logs, 0, &dir);
    assert_true(dir.full);
    /* The old ballast counts until its name is durably gone; a new one has no room. */
    sim_node_space(scene->stage.cluster.machine, 80ull * 1024 * 1024);
    stage_pass(&scene->stage, 2000);
    logs_dir_info(node_at(scene, 0)->logs, 0, &dir);
    assert_true(dir.full);
    expect(scene, "CreateTopics 7", "refused", "'errorCode':56");
    expect(scene, "DeleteTopics 5", "before", "'errorCode':0");
    all_follow(scene);
    scene_end(scene);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static struct mem *node_mem(const struct scene *scene)
{
    return node_at(scene, 0)->mem;
}

/* For two seconds there are only so many bytes from now on. */
static void short_of_memory(struct scene *scene, uint64_t more_bytes)
{
    node_mem(scene)->limit_bytes = mem_used(node_mem(scene)) + more_bytes;
    stage_pass(&scene->stage, 2000);
    node_mem(scene)->limit_bytes = 0;
}

/* Is there a shard that has not applied what is committed? */
static bool is_behind(const struct scene *scene)
{
    int64_t end = log_end_durable(node_at(scene, 0)->controller->log);
    for (uint32_t i = 0; i < node_at(scene, 0)->count; i++)
        if (node_at(scene, i)->image_offset < end) return true;
    return false;
}

/* At the moment when the first shard has appended a topic, or when it has applied it and the others
 * have not, the memory ends: at once, or so many bytes later. Nobody's answer needs any. */
static void without_memory(uint32_t shards, bool applied, uint64_t more_bytes, uint32_t *behind)
{
    struct scene *scene = scene_new(shards);
    struct node *first = node_at(scene, 0);
    int64_t before = first->image_offset, until_us = sim_now_us(scene->stage.world) + ANSWER_US;
    for (uint32_t i = 1; i < first->count; i++)
        sim_shard_pause(node_at(scene, i)->io, 1000);
    controller_auto_create(first, VIEW("meets"), NULL);
    while (applied ? first->image_offset == before : list_empty(&first->controller->pending))
        stage_act(&scene->stage, until_us);
    node_mem(scene)->limit_bytes = mem_used(node_mem(scene)) + more_bytes;
    stage_pass(&scene->stage, 3000);
    if (is_behind(scene)) {
        (*behind)++;
        if (node_not_ready(scene->stage.cluster.node) == NULL) fail_msg("it is behind, and ready");
    }
    node_mem(scene)->limit_bytes = 0;
    stage_pass(&scene->stage, 3000);
    all_follow(scene);
    assert_non_null(image_topic(first->image, VIEW("meets")));
    expect(scene, "CreateTopics 7", "after", "'errorCode':0");
    expect(scene, "DeleteTopics 5", "meets", "'errorCode':0");
    stage_pass(&scene->stage, 3000);
    all_follow(scene);
    scene_end(scene);
}

static void memory_to_follow_comes_back(void **state)
{
    (void)state;
    uint32_t behind[3] = {0};
    for (uint64_t more = 0; more < 6000; more = more * 5 / 4 + 40) {
        without_memory(1, false, more, &behind[0]);
        without_memory(3, false, more, &behind[1]);
        without_memory(3, true, more, &behind[2]);
    }
    for (uint32_t i = 0; i < ARRAY_SIZE(behind); i++)
        if (behind[i] == 0) fail_msg("nobody was behind in round %u", i);
}

/* Steps of the controller that have no memory are refused, and the control part goes on. */
static void memory_to_decide_comes_back(void **state)
{
    (void)state;
    struct scene *scene = scene_new(3);
    for (uint64_t more = 64; more < 80000; more = more * 5 / 4) {
        struct controller *c = node_at(scene, 0)->controller;
        char name[32];
        (void)snprintf(name, sizeof(name), "topic%llu", (unsigned long long)more);
        say_it(scene, "CreateTopics 7", name);
        int64_t until_us = sim_now_us(scene->stage.world) + ANSWER_US;
        while (list_empty(&c->queue) && scene->stage.caller->response == NULL)
            stage_act(&scene->stage, until_us);
        short_of_memory(scene, more);
        if (answer_in(scene, ANSWER_US) == NULL) fail_msg("no answer with %s", name);
        stage_pass(&scene->stage, 3000);
        all_follow(scene);
    }
    scene_end(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_refuses_changes),
        cmocka_unit_test(a_full_disk_lets_a_topic_be_deleted),
        cmocka_unit_test(memory_to_follow_comes_back),
        cmocka_unit_test(memory_to_decide_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
