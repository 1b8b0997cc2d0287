/* remade_test.c - a partition's folder that a deletion left behind when the node was killed, and
 * the topic of the same name that was made after it: whenever the metadata tells the new one's id -
 * before the recovery has begun to read the folder, while it reads it, when it has read it - the
 * new topic begins empty, and the old folder is kept as *-stray. */
#include "log/script_rig_test.h"

enum when { BEFORE, WHILE, AFTER };

static struct log *remade_ask(struct rig *rig, struct uuid topic_id)
{
    struct logs_replica replica = {
        .topic = VIEW("t"),
        .topic_id = topic_id,
        .config = &rig->config,
        .directory = LOG_DIRECTORY_ANY,
    };
    struct log *log = NULL;
    assert_int_equal(logs_replica(rig->logs, &replica, &log), LOG_OK);
    return log;
}

static void remade_opened(struct rig *rig, struct log *log)
{
    int result = LOG_LATER;
    for (int i = 0; i < 10000 && (result = log_open(log)) == LOG_LATER; i++)
        rig_turn(rig);
    assert_int_equal(result, LOG_OK);
}

/* Five records of the old topic, the kill, the start; so far the recovery has come. */
static void remade_killed(struct rig *rig, enum when when)
{
    rig_fill(rig, rig_log(rig), 5, 100);
    rig_crash(rig);
    rig_start(rig);
    if (when == WHILE)
        (void)logs_turn(rig->logs); /* The job is made; no turn of the world ends it. */
    if (when == AFTER) rig_settle(rig);
}

static bool remade_stray(void *context, const char *name)
{
    uint32_t *strays = context;
    size_t size = strlen(name);
    *strays += size > 6 && strcmp(name + size - 6, "-stray") == 0;
    return true;
}

static uint32_t remade_strays(struct rig *rig)
{
    uint32_t strays = 0;
    assert_int_equal(io_disk_list(rig->io, rig->dir, remade_stray, &strays), 0);
    return strays;
}

static void remade_begins_empty(struct rig *rig, enum when when)
{
    struct uuid anew = {
        {9, 8, 7, 6, 5, 4, 3, 2, 1}
    };
    remade_killed(rig, when);
    struct log *log = remade_ask(rig, anew);
    remade_opened(rig, log);
    assert_int_equal(log_end_assigned(log), 0);
    assert_non_null(strstr(rig->said, "its folder was another topic's and is now *-stray"));
    rig_fill(rig, log, 2, 100);
    assert_int_equal(remade_strays(rig), 1);
    struct disk_bytes metadata = rig_file(rig, "partition.metadata");
    const char *text = "version: 0\ntopic_id: CQgHBgUEAwIBAAAAAAAAAA";
    assert_int_equal(metadata.size_bytes, strlen(text));
    assert_memory_equal(metadata.data, text, metadata.size_bytes);
    disk_free(&rig->mem, &metadata);
    rig_crash(rig);
    rig_start(rig);
    log = remade_ask(rig, anew);
    remade_opened(rig, log);
    assert_int_equal(rig_read_all(rig, log, 0), 2);
    assert_int_equal(remade_strays(rig), 1);
}

static void told_before_the_recovery(void **state)
{
    remade_begins_empty(*state, BEFORE);
}

static void told_while_the_recovery_reads(void **state)
{
    remade_begins_empty(*state, WHILE);
}

static void told_after_the_recovery(void **state)
{
    remade_begins_empty(*state, AFTER);
}

/* One character differs: it is the same topic, and its file is damaged. */
static void a_damaged_id_is_no_other_topic(void **state)
{
    struct rig *rig = *state;
    struct uuid near = {
        {0, 17, 34, 51, 68, 85, 102, 119, 136, 153, 170, 187, 204, 221, 238, 254}
    };
    for (int when = BEFORE; when <= AFTER; when++) {
        remade_killed(rig, (enum when)when);
        struct log *log = remade_ask(rig, near);
        remade_opened(rig, log);
        assert_int_equal(log_end_assigned(log), 5 * (when + 1));
        assert_int_equal(remade_strays(rig), 0);
    }
}

/* The kill came when the deletion had renamed the folder and the checkpoint still named it. */
static void a_deleted_name_is_not_lost(void **state)
{
    struct rig *rig = *state;
    struct uuid anew = {
        {9, 8, 7, 6, 5, 4, 3, 2, 1}
    };
    rig_fill(rig, rig_log(rig), 5, 100);
    rig_stop(rig);
    struct disk_path from = disk_join(rig->dir, "t-0");
    struct disk_path to = disk_join(rig->dir, "t-0.0123456789abcdef0123456789abcdef-delete");
    assert_int_equal(io_disk_rename(rig->io, from.text, to.text), 0);
    for (int start = 0; start < 2; start++) { /* The second has no *-delete any more. */
        rig_start(rig);
        struct log *log = remade_ask(rig, anew);
        remade_opened(rig, log);
        assert_int_equal(log_end_assigned(log), 0);
        struct io_stat stat = {0};
        for (int i = 0; i < 10000 && io_disk_stat(rig->io, to.text, &stat) == 0; i++)
            rig_turn(rig);
        rig_crash(rig);
    }
    rig_start(rig);
}

/* The same of one that was put aside as a stray. */
static void a_stray_name_is_not_lost(void **state)
{
    struct rig *rig = *state;
    struct uuid anew = {
        {9, 8, 7, 6, 5, 4, 3, 2, 1}
    };
    rig_fill(rig, rig_log(rig), 5, 100);
    rig_stop(rig);
    for (int start = 0; start < 2; start++) {
        rig_start(rig);
        struct log *log = remade_ask(rig, anew);
        remade_opened(rig, log);
        assert_int_equal(log_end_assigned(log), 0);
        rig_crash(rig);
    }
    rig_start(rig);
}

/* What the power leaves: the topic made anew begins empty there. */
static void remade_judge(const struct sim_node *of, enum sim_crash kind, uint64_t nth)
{
    struct uuid anew = {
        {9, 8, 7, 6, 5, 4, 3, 2, 1}
    };
    struct sim_world *world = rig_world(nth);
    struct rig *rig = rig_on(sim_node_fork(world, of, kind, nth));
    for (int i = 0; i < 2; i++) { /* The second finds what the first has made of it. */
        rig_start(rig);
        struct log *log = remade_ask(rig, anew);
        remade_opened(rig, log);
        assert_int_equal(log_end_assigned(log), 0);
        rig_crash(rig);
    }
    assert_int_equal(remade_strays(rig), 1);
    sim_world_free(world);
    free(rig);
}

/* The power goes in the nth disk call from when the new topic's id is told. False: it did not. */
static bool remade_cut_at(enum when when, uint64_t nth)
{
    struct uuid anew = {
        {9, 8, 7, 6, 5, 4, 3, 2, 1}
    };
    struct sim_world *world = rig_world(nth);
    struct sim_node *node = sim_node_new(world, "n");
    struct rig *rig = rig_on(node);
    format(rig);
    rig_start(rig);
    rig_fill(rig, rig_log(rig), 5, 100);
    rig_stop(rig);
    rig_start(rig);
    if (when == AFTER) {
        struct log *old = remade_ask(rig, (struct uuid){{0}});
        remade_opened(rig, old);
    }
    sim_node_fault(node, &(struct sim_fault){.kind = SIM_FAULT_CRASH, .nth = nth});
    struct log *log = remade_ask(rig, anew);
    int result = LOG_LATER;
    for (int i = 0; i < 200 && !sim_node_crashed(node); i++) {
        if (result == LOG_LATER) result = log_open(log);
        rig_turn(rig);
    }
    bool crashed = sim_node_crashed(node);
    for (int kind = 0; kind < SIM_CRASH_KINDS; kind++)
        remade_judge(node, (enum sim_crash)kind, nth);
    sim_world_free(world);
    free(rig);
    return crashed;
}

/* Whatever the checkpoint still names, a stray that was put aside is not lost. */
static void a_stray_outlives_a_power_cut(void **state)
{
    (void)state;
    for (int when = BEFORE; when <= AFTER; when += AFTER - BEFORE) {
        uint64_t nth = 1;
        while (remade_cut_at((enum when)when, nth))
            nth++;
        assert_in_range(nth, 8, 100);
    }
}

/* Without a deleted folder beside it, it is. */
static void what_is_gone_is_lost(void **state)
{
    struct rig *rig = *state;
    rig_fill(rig, rig_log(rig), 5, 100);
    rig_stop(rig);
    rig_remove(rig->io, disk_join(rig->dir, "t-0").text);
    rig_start(rig);
    struct logs_replica replica = {.topic = VIEW("t"), .directory = LOG_DIRECTORY_ANY};
    struct log *log = NULL;
    assert_int_equal(logs_replica(rig->logs, &replica, &log), LOG_E_DAMAGED);
}

int main(void)
{
#define REMADE_TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)
    const struct CMUnitTest tests[] = {
        REMADE_TEST(told_before_the_recovery),   REMADE_TEST(told_while_the_recovery_reads),
        REMADE_TEST(told_after_the_recovery),    REMADE_TEST(a_damaged_id_is_no_other_topic),
        REMADE_TEST(a_deleted_name_is_not_lost), REMADE_TEST(a_stray_name_is_not_lost),
        REMADE_TEST(what_is_gone_is_lost),       cmocka_unit_test(a_stray_outlives_a_power_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
