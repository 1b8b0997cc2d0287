/* partition_test.c - the high watermark and the ISR of a leader, told as traces. */
#include <stdarg.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#include "core/partition.h"
#include "gen/errors.h"
#include "sys/memory.h"

/* A partition's state of replicas 1..n, all in the ISR, led by 1. */
static struct image_partition *state_of(int32_t replicas,
                                        int32_t isr,
                                        int32_t leader_epoch,
                                        int32_t partition_epoch)
{
    struct image_partition *state = calloc(1, sizeof(*state) + 16 * sizeof(int32_t));
    state->leader = 1;
    state->leader_epoch = leader_epoch;
    state->partition_epoch = partition_epoch;
    state->counts[IMAGE_REPLICAS] = (uint16_t)replicas;
    state->counts[IMAGE_ISR] = (uint16_t)isr;
    for (int32_t i = 0; i < replicas; i++)
        state->ids[i] = i + 1;
    for (int32_t i = 0; i < isr; i++)
        state->ids[replicas + i] = i + 1;
    return state;
}

struct rig {
    struct mem mem;
    struct partition *partition;
    struct partition_ends ends;
};

static void rig_open(struct rig *rig, int32_t replicas, int32_t isr, bool written)
{
    *rig = (struct rig){0};
    memory_init(&rig->mem, 0);
    rig->partition = partition_new(
        &rig->mem, &(struct partition_options){
                       .node_id = 1, .replica_lag_ms = 30000, .count_written = written});
    struct image_partition *state = state_of(replicas, isr, 3, 7);
    assert_int_equal(partition_follow(rig->partition, state, &rig->ends, 0, 1000),
                     PARTITION_NEW_EPOCH);
    assert_int_equal(partition_follow(rig->partition, state, &rig->ends, 0, 1000), PARTITION_SAME);
    free(state);
}

static void rig_close(struct rig *rig)
{
    partition_free(rig->partition);
    assert_int_equal(rig->mem.used_bytes, 0);
}

/* One replica: the high watermark is what is durable, not what is written. */
static void test_alone_durable(void **unused)
{
    struct rig rig;
    rig_open(&rig, 1, 1, false);
    rig.ends = (struct partition_ends){0, 10, 8, 5};
    assert_true(partition_local_end(rig.partition, &rig.ends, 1));
    assert_int_equal(partition_high_watermark(rig.partition), 5);
    assert_false(partition_local_end(rig.partition, &rig.ends, 1));
    assert_true(
        partition_enough_in_sync(rig.partition, 3)); /* Never more than there are replicas. */
    rig_close(&rig);
}

static void test_alone_written(void **unused)
{
    struct rig rig;
    rig_open(&rig, 1, 1, true);
    rig.ends = (struct partition_ends){0, 10, 8, 5};
    assert_true(partition_local_end(rig.partition, &rig.ends, 1));
    assert_int_equal(partition_high_watermark(rig.partition), 8);
    rig_close(&rig);
}

static enum partition_fetched fetch(struct rig *rig,
                                    int32_t replica,
                                    int64_t offset,
                                    int64_t now_ms)
{
    struct partition_fetch told = {
        .replica = replica, .epoch = 50, .fetch_offset = offset, .now_ms = now_ms};
    return partition_fetched(rig->partition, &told, &rig->ends, 1);
}

static void test_followers_count(void **unused)
{
    struct rig rig;
    rig_open(&rig, 3, 3, false);
    rig.ends = (struct partition_ends){0, 10, 10, 10};
    assert_false(partition_local_end(rig.partition, &rig.ends, 1)); /* Nobody has fetched yet. */
    assert_int_equal(fetch(&rig, 2, 10, 1100), PARTITION_FETCHED);
    assert_int_equal(fetch(&rig, 3, 6, 1100), PARTITION_HW_ROSE);
    assert_int_equal(partition_high_watermark(rig.partition), 6);
    assert_int_equal(fetch(&rig, 4, 6, 1100), PARTITION_E_REPLICA);
    struct partition_fetch stale = {.replica = 3, .epoch = 49, .fetch_offset = 10, .now_ms = 1200};
    assert_int_equal(partition_fetched(rig.partition, &stale, &rig.ends, 1), PARTITION_E_STALE);
    assert_int_equal(partition_high_watermark(rig.partition), 6);
    rig_close(&rig);
}

/* A member that lags leaves; until the controller has agreed it still counts. */
static void test_lagging_member_leaves(void **unused)
{
    struct rig rig;
    struct partition_wish wish;
    rig_open(&rig, 2, 2, false);
    rig.ends = (struct partition_ends){0, 10, 10, 10};
    assert_int_equal(fetch(&rig, 2, 4, 2000), PARTITION_HW_ROSE);
    assert_int_equal(partition_deadline(rig.partition), 31001);
    assert_false(partition_wishes(rig.partition, NULL, &rig.ends, 31000, &wish));
    assert_true(partition_wishes(rig.partition, NULL, &rig.ends, 31001, &wish));
    assert_int_equal(wish.count, 1);
    assert_int_equal(wish.isr[0], 1);
    assert_int_equal(wish.partition_epoch, 7);
    assert_false(
        partition_wishes(rig.partition, NULL, &rig.ends, 31001, &wish)); /* One at a time. */
    assert_false(partition_local_end(rig.partition, &rig.ends, 1));
    assert_true(partition_altered(rig.partition, KAFKA_NONE, 8, &rig.ends, 1));
    assert_int_equal(partition_high_watermark(rig.partition), 10);
    assert_int_equal(partition_isr_count(rig.partition), 1);
    assert_false(partition_enough_in_sync(rig.partition, 2));
    rig_close(&rig);
}

static void test_epoch_checks(void **unused)
{
    struct rig rig;
    rig_open(&rig, 1, 1, false);
    assert_int_equal(partition_check_leader(rig.partition, -1), KAFKA_NONE);
    assert_int_equal(partition_check_leader(rig.partition, 3), KAFKA_NONE);
    assert_int_equal(partition_check_leader(rig.partition, 2), KAFKA_FENCED_LEADER_EPOCH);
    assert_int_equal(partition_check_leader(rig.partition, 4), KAFKA_UNKNOWN_LEADER_EPOCH);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone_durable),   cmocka_unit_test(test_alone_written),
        cmocka_unit_test(test_followers_count), cmocka_unit_test(test_lagging_member_leaves),
        cmocka_unit_test(test_epoch_checks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
