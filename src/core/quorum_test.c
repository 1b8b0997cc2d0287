/* quorum_test.c - a quorum of one, told as traces; the text of quorum-state. */
#include <stdarg.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#include "core/quorum.h"
#include "sys/memory.h"

struct rig {
    struct mem mem;
    struct arena arena;
    struct quorum *quorum;
    struct quorum_log log;
    struct quorum_event event;
};

static void rig_open(struct rig *rig,
                     const struct quorum_stored *stored,
                     int64_t log_end,
                     int32_t last_epoch)
{
    static const struct quorum_endpoint endpoint = {VIEW("CONTROLLER"), VIEW("localhost"), 9093};
    struct quorum_voter self = {.id = 1,
                                .directory = {{7}},
                                .endpoints = &endpoint,
                                .endpoint_count = 1,
                                .kraft_min = 0,
                                .kraft_max = 1};
    memory_init(&rig->mem, 0);
    arena_init(&rig->arena, &rig->mem, 0);
    rig->log = (struct quorum_log){
        .end = log_end, .durable = log_end, .last_epoch = last_epoch, .snapshot_end = -1};
    rig->event = (struct quorum_event){.log = &rig->log, .arena = &rig->arena};
    struct quorum_options options = {.self = self,
                                     .is_voter = true,
                                     .voters = &self,
                                     .voter_count = 1,
                                     .kraft_version = 1,
                                     .voters_from_checkpoint = log_end == 0};
    rig->quorum = quorum_new(&rig->mem, &options, stored, &rig->log);
    assert_non_null(rig->quorum);
}

static void rig_close(struct rig *rig)
{
    quorum_free(rig->quorum);
    arena_free(&rig->arena);
    assert_int_equal(rig->mem.used_bytes, 0);
}

static struct quorum_effect take(struct rig *rig, enum quorum_effect_kind kind)
{
    struct quorum_effect effect;
    assert_true(quorum_effect(rig->quorum, &effect));
    assert_int_equal(effect.kind, kind);
    return effect;
}

/* Vote and lead, persist, first record durable: only then there is a high watermark. */
static void lead(struct rig *rig, int32_t epoch)
{
    struct quorum_effect effect;
    assert_int_equal(quorum_deadline(rig->quorum), 0);
    quorum_tick(rig->quorum, &rig->event);
    effect = take(rig, QUORUM_PERSIST);
    assert_int_equal(effect.stored.leader_id, 1);
    assert_int_equal(effect.stored.voted_id, -1);
    assert_int_equal(effect.stored.leader_epoch, epoch);
    assert_false(quorum_effect(rig->quorum, &effect)); /* Nothing before it is durable. */
    quorum_persisted(rig->quorum);
    assert_int_equal(take(rig, QUORUM_LEAD).epoch, epoch);
    assert_int_equal(quorum_epoch(rig->quorum), epoch);
    assert_int_equal(quorum_high_watermark(rig->quorum), -1);
    assert_int_equal(quorum_deadline(rig->quorum), INT64_MAX);
}

static void test_fresh(void **state)
{
    struct rig rig;
    rig_open(&rig, NULL, 0, 0);
    lead(&rig, 1);
    struct step step;
    step_begin(&step, &rig.arena, 0, 0);
    assert_int_equal(quorum_begin_records(rig.quorum, &step), STEP_DONE);
    assert_int_equal(step.record_count, 3); /* LEADER_CHANGE, KRAFT_VERSION, KRAFT_VOTERS */
    quorum_durable(rig.quorum, &rig.event); /* Nothing durable yet. */
    assert_int_equal(quorum_high_watermark(rig.quorum), -1);
    rig.log.end = rig.log.durable = 3;
    quorum_durable(rig.quorum, &rig.event);
    assert_int_equal(take(&rig, QUORUM_COMMIT).high_watermark, 3);
    rig_close(&rig);
}

/* An ordinary restart raises the epoch by exactly one and writes no voters again. */
static void test_restart(void **state)
{
    struct rig rig;
    rig_open(&rig, &(struct quorum_stored){.leader_id = 1, .leader_epoch = 1, .voted_id = -1}, 10,
             1);
    assert_int_equal(quorum_role(rig.quorum), QUORUM_RESIGNED);
    lead(&rig, 2);
    assert_int_equal(quorum_epoch_start(rig.quorum), 10);
    struct step step;
    step_begin(&step, &rig.arena, 0, 0);
    assert_int_equal(quorum_begin_records(rig.quorum, &step), STEP_DONE);
    assert_int_equal(step.record_count, 1);
    rig_close(&rig);
}

/* Stopped between vote and victory: leader of the same epoch. */
static void test_candidate(void **state)
{
    struct rig rig;
    rig_open(&rig,
             &(struct quorum_stored){
                 .leader_id = -1, .leader_epoch = 4, .voted_id = 1, .voted_directory = {{7}}},
             10, 3);
    assert_int_equal(quorum_role(rig.quorum), QUORUM_CANDIDATE);
    lead(&rig, 4);
    rig_close(&rig);
}

/* A quorum-state older than the log's last epoch is not believed. */
static void test_stale_state(void **state)
{
    struct rig rig;
    rig_open(&rig, &(struct quorum_stored){.leader_id = 1, .leader_epoch = 6, .voted_id = -1}, 10,
             7);
    assert_int_equal(quorum_role(rig.quorum), QUORUM_UNATTACHED);
    assert_int_equal(quorum_epoch(rig.quorum), 7);
    rig_close(&rig);
}

static void test_voters_record(void **state)
{
    struct rig rig;
    rig_open(&rig, NULL, 0, 0);
    struct step step;
    uint32_t count;
    step_begin(&step, &rig.arena, 0, 0);
    const struct quorum_voter *voters = quorum_voters(rig.quorum, &count);
    assert_int_equal(quorum_format_head(&step, 5, voters, count), STEP_DONE);
    assert_int_equal(step.record_count, 3);
    for (uint32_t i = 0; i < step.record_count; i++)
        assert_true(quorum_control(rig.quorum, step_encode(&rig.arena, &step.records[i].key),
                                   step_encode(&rig.arena, &step.records[i].value), 40));
    voters = quorum_voters(rig.quorum, &count);
    assert_int_equal(count, 1);
    assert_true(view_is(voters[0].endpoints[0].host, "localhost"));
    quorum_truncated(rig.quorum, 40);
    voters = quorum_voters(rig.quorum, &count);
    assert_int_equal(voters[0].endpoints[0].port, 9093);
    assert_false(quorum_control(rig.quorum, view_of("\0\0\0\6", 4), view_of("\0\0\7", 3), 50));
    rig_close(&rig);
}

static void test_stored_text(void **state)
{
    struct rig rig;
    struct quorum_stored in = {.leader_id = 1,
                               .leader_epoch = 2,
                               .voted_id = -1,
                               .voted_directory = {{0xff, 0xee, 1}}},
                         out;
    rig_open(&rig, NULL, 0, 0);
    struct view text = quorum_stored_write(rig.quorum, &in, &rig.arena);
    assert_true(view_is(
        text,
        "{\"leaderId\":1,\"leaderEpoch\":2,\"votedId\":-1,\"votedDirectoryId\":\"_-4BAAAAAAAAAAAAAAAAAA\","
        "\"data_version\":1}"));
    assert_true(quorum_stored_read(text, &out));
    assert_memory_equal(&in, &out, sizeof(in));
    assert_true(quorum_stored_read(
        VIEW(
            "{\"clusterId\":\"\",\"leaderId\":-1,\"leaderEpoch\":5,\"votedId\":2,\"appliedOffset\":0,"
            "\"currentVoters\":[{\"voterId\":1}],\"data_version\":0}"),
        &out));
    assert_int_equal(out.voted_id, 2);
    assert_false(quorum_stored_read(VIEW("{\"leaderId\":1}"), &out));
    assert_false(quorum_stored_read(
        VIEW("{\"leaderId\":1,\"leaderEpoch\":-2,\"votedId\":1,\"data_version\":0}"), &out));
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fresh),         cmocka_unit_test(test_restart),
        cmocka_unit_test(test_candidate),     cmocka_unit_test(test_stale_state),
        cmocka_unit_test(test_voters_record), cmocka_unit_test(test_stored_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
