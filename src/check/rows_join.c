/* rows_join.c - joins, syncs and leaves of classic groups with dynamic members. */
#include "check/classic.h"
#include "check/rows.h"

#include "gen/join_group_request.h"
#include "gen/leave_group_request.h"
#include "gen/leave_group_response.h"
#include "gen/sync_group_request.h"
#include "gen/sync_group_response.h"

static void stable(struct check_run *run, struct classic *members, uint32_t count)
{
    struct classic *all[4];
    assert(count <= ARRAY_SIZE(all));
    for (uint32_t i = 0; i < count; i++) {
        all[i] = &members[i];
        classic_init(&members[i], run, NULL);
    }
    classic_stable(all, count);
}

static void first_join(struct check_run *run)
{
    struct classic a;
    classic_init(&a, run, NULL);
    a.join_version = CLASSIC_JOIN_NEWEST;
    classic_join_send(&a);
    const struct join_group_response *answer = classic_join_take(&a);
    run_expect(run, "first join", KAFKA_MEMBER_ID_REQUIRED, answer->error_code);
    run_expect_number(run, "generation", -1, answer->generation_id);
    run_need_true(run, "the id begins with the client's id",
                  run->over || (a.id.size == 6 + 36 && memcmp(a.id.data, "check-", 6) == 0));
    run_expect(run, "join with the id", KAFKA_NONE, classic_join(&a));
    run_expect_number(run, "generation", 1, a.generation);
    run_expect_number(run, "members", 1, a.member_count);
    run_need_true(run, "it leads", run->over || view_equal(a.leader, a.id));
}

static void join_without_id(struct check_run *run)
{
    struct classic a;
    classic_init(&a, run, NULL);
    run_expect(run, "join", KAFKA_NONE, classic_join(&a));
    run_expect_number(run, "generation", 1, a.generation);
}

static void join_of_nobody(struct check_run *run)
{
    struct classic a, b;
    classic_init(&a, run, NULL);
    classic_init(&b, run, NULL);
    a.id = VIEW("nobody");
    classic_join_send(&a);
    const struct join_group_response *answer = classic_join_take(&a);
    run_expect(run, "join", KAFKA_UNKNOWN_MEMBER_ID, answer->error_code);
    run_expect_text(run, "member id of the answer", "nobody", answer->member_id);
    struct classic_beat beat = {VIEW("nobody"), VIEW_NULL, 0};
    run_expect(run, "beat", KAFKA_UNKNOWN_MEMBER_ID, classic_beat_as(&b, 1, &beat));
}

static void session_bounds(struct check_run *run)
{
    struct classic a;
    classic_init(&a, run, NULL);
    a.join_version = CLASSIC_JOIN_NEWEST;
    a.session_ms = CLASSIC_SESSION_MIN_MS - 1;
    run_expect(run, "5999 ms", KAFKA_INVALID_SESSION_TIMEOUT, classic_join(&a));
    a.session_ms = 1800001;
    run_expect(run, "1800001 ms", KAFKA_INVALID_SESSION_TIMEOUT, classic_join(&a));
    a.session_ms = CLASSIC_SESSION_MIN_MS;
    run_expect(run, "6000 ms", KAFKA_MEMBER_ID_REQUIRED, classic_join(&a));
    a.session_ms = 1800000;
    a.id = VIEW_EMPTY;
    run_expect(run, "1800000 ms", KAFKA_MEMBER_ID_REQUIRED, classic_join(&a));
    run_need(run, "leave", KAFKA_NONE, classic_leave(&a));
}

static void protocols_that_do_not_fit(struct check_run *run)
{
    struct classic a, b;
    stable(run, &a, 1);
    classic_init(&b, run, NULL);
    b.protocol_type = "connect";
    run_expect(run, "another type", KAFKA_INCONSISTENT_GROUP_PROTOCOL, classic_join(&b));
    b.protocol_type = "consumer";
    b.protocols[0] = "foo";
    run_expect(run, "no common protocol", KAFKA_INCONSISTENT_GROUP_PROTOCOL, classic_join(&b));
    a.protocols[0] = "foo";
    run_expect(run, "the only member's own", KAFKA_INCONSISTENT_GROUP_PROTOCOL, classic_join(&a));
}

/* The vote: three members with their preferences. */
static void vote(struct check_run *run)
{
    struct classic m[3];
    for (uint32_t i = 0; i < ARRAY_SIZE(m); i++) {
        classic_init(&m[i], run, NULL);
        m[i].protocols[0] = i == 0 ? "range" : "roundrobin";
        m[i].protocols[1] = i == 0 ? "roundrobin" : "range";
        classic_enter(&m[i]);
    }
    for (uint32_t i = 0; i < ARRAY_SIZE(m); i++) {
        const struct join_group_response *answer = classic_join_take(&m[i]);
        run_need(run, "join", KAFKA_NONE, answer->error_code);
        run_expect_text(run, "protocol", "roundrobin", answer->protocol_name);
    }
}

static void follower_joins_again(struct check_run *run)
{
    struct classic m[2];
    stable(run, m, 2);
    struct classic *follower = view_equal(m[0].leader, m[0].id) ? &m[1] : &m[0];
    run_expect(run, "the same metadata", KAFKA_NONE, classic_join(follower));
    run_expect_number(run, "generation", 1, follower->generation);
    run_expect_number(run, "members", 0, follower->member_count);
    classic_change_send(follower);
    struct classic *leader = follower == &m[0] ? &m[1] : &m[0];
    run_expect(run, "other metadata: beat of the leader", KAFKA_REBALANCE_IN_PROGRESS,
               classic_beat_changed(leader, 4));
}

static void leader_joins_again(struct check_run *run)
{
    struct classic m[2];
    stable(run, m, 2);
    uint32_t l = view_equal(m[0].leader, m[0].id) ? 0 : 1;
    classic_join_send(&m[l]);
    run_expect(run, "beat of the follower", KAFKA_REBALANCE_IN_PROGRESS,
               classic_beat_changed(&m[1 - l], 1));
    run_expect(run, "join of the follower", KAFKA_NONE, classic_join(&m[1 - l]));
    run_expect(run, "join of the leader", KAFKA_NONE, classic_join_take(&m[l])->error_code);
    run_expect_number(run, "generation", 2, m[l].generation);
    run_expect_number(run, "members", 2, m[l].member_count);
}

static void joins_before_the_sync(struct check_run *run)
{
    struct classic m[2];
    struct classic c;
    classic_init(&m[0], run, NULL);
    classic_init(&m[1], run, NULL);
    classic_init(&c, run, NULL);
    classic_enter(&m[0]);
    classic_enter(&m[1]);
    classic_joined(&m[0], "join");
    classic_joined(&m[1], "join");
    uint32_t l = view_equal(m[0].leader, m[0].id) ? 0 : 1;
    run_expect(run, "the leader again", KAFKA_NONE, classic_join(&m[l]));
    run_expect_number(run, "members", 2, m[l].member_count);
    run_expect(run, "the follower again", KAFKA_NONE, classic_join(&m[1 - l]));
    run_expect_number(run, "members", 0, m[1 - l].member_count);
    run_expect_number(run, "generation", 1, m[1 - l].generation);
    classic_sync_send(&m[1 - l], NULL, 0);
    run_wait(run, 100);
    classic_enter(&c);
    run_expect(run, "parked sync when a third joins", KAFKA_REBALANCE_IN_PROGRESS,
               classic_sync_take(&m[1 - l], NULL));
}

static void syncs(struct check_run *run)
{
    struct classic m[2];
    struct view assignment = VIEW_EMPTY;
    classic_init(&m[0], run, NULL);
    classic_init(&m[1], run, NULL);
    classic_enter(&m[0]);
    classic_enter(&m[1]);
    classic_joined(&m[0], "join");
    classic_joined(&m[1], "join");
    uint32_t l = view_equal(m[0].leader, m[0].id) ? 0 : 1;
    const struct classic *leader = &m[l], *follower = &m[1 - l];
    classic_sync_send(&m[1 - l], &follower, 1); /* What a follower assigns counts for nothing. */
    run_wait(run, 100);
    run_need_true(run, "the follower's sync waits", !run_answered(run, m[1 - l].work, 300));
    classic_sync_send(&m[l], &leader, 1);
    run_expect(run, "sync of the leader", KAFKA_NONE, classic_sync_take(&m[l], &assignment));
    run_expect_text(run, "its assignment", "assigned", assignment);
    run_expect(run, "sync of the follower", KAFKA_NONE, classic_sync_take(&m[1 - l], &assignment));
    run_expect_text(run, "its assignment", "", assignment);
    classic_sync_send(&m[l], NULL, 0);
    run_expect(run, "sync in Stable", KAFKA_NONE, classic_sync_take(&m[l], &assignment));
    run_expect_text(run, "the stored assignment", "assigned", assignment);
}

static void syncs_that_do_not_fit(struct check_run *run)
{
    struct classic a;
    struct view id;
    stable(run, &a, 1);
    id = a.id;
    a.generation = 2;
    run_expect(run, "another generation", KAFKA_ILLEGAL_GENERATION, classic_sync(&a));
    a.generation = 1;
    a.id = VIEW("nobody");
    run_expect(run, "another member", KAFKA_UNKNOWN_MEMBER_ID, classic_sync(&a));
    a.id = id;
    a.protocols[0] = "foo";
    run_expect(run, "another protocol", KAFKA_INCONSISTENT_GROUP_PROTOCOL, classic_sync(&a));
}

static void sync_in_rebalance(struct check_run *run)
{
    struct classic m[2];
    stable(run, m, 2);
    uint32_t l = view_equal(m[0].leader, m[0].id) ? 0 : 1;
    classic_join_send(&m[l]);
    run_need(run, "beat of the follower", KAFKA_REBALANCE_IN_PROGRESS,
             classic_beat_changed(&m[1 - l], 1));
    run_expect(run, "sync of the follower", KAFKA_REBALANCE_IN_PROGRESS, classic_sync(&m[1 - l]));
}

static void one_leaves(struct check_run *run)
{
    struct classic m[2];
    stable(run, m, 2);
    run_expect(run, "leave", KAFKA_NONE, classic_leave(&m[1]));
    run_expect(run, "beat of who stays", KAFKA_REBALANCE_IN_PROGRESS,
               classic_beat_changed(&m[0], 1));
    run_expect(run, "join of who stays", KAFKA_NONE, classic_join(&m[0]));
    run_expect_number(run, "generation", 2, m[0].generation);
    run_expect(run, "beat of who left", KAFKA_UNKNOWN_MEMBER_ID, classic_beat(&m[1], 1));
}

static void pending_leaves(struct check_run *run)
{
    struct classic p;
    classic_init(&p, run, NULL);
    p.join_version = CLASSIC_JOIN_NEWEST;
    run_need(run, "first join", KAFKA_MEMBER_ID_REQUIRED, classic_join(&p));
    run_expect(run, "leave", KAFKA_NONE, classic_leave(&p));
    run_expect(run, "join with the id", KAFKA_UNKNOWN_MEMBER_ID, classic_join(&p));
}

static void leave_of_no_group(struct check_run *run)
{
    struct leave_group_request *ask = run_new(run, &wire_leave_group_request);
    ask->group_id = view_of_string(run->name);
    ask->member_id = VIEW("nobody");
    int16_t version = run_version(run, &wire_leave_group_request, 2);
    const struct leave_group_response *answer =
        run_call(run, run_peer(run), &wire_leave_group_request, version, ask);
    run_expect(run, "version 2", KAFKA_UNKNOWN_MEMBER_ID, answer->error_code);
    struct classic a;
    classic_init(&a, run, NULL);
    a.id = VIEW("nobody");
    run_expect(run, "version 5, its member", KAFKA_UNKNOWN_MEMBER_ID, classic_leave(&a));
}

static const struct check_row rows[] = {
    CHECK_ROW("T35", "the first join is given an id, the second leads", first_join),
    CHECK_ROW("T37", "an old join needs no id", join_without_id),
    CHECK_ROW("T38", "a join with an id that nobody gave", join_of_nobody),
    CHECK_ROW("T41", "bounds of the session timeout", session_bounds),
    CHECK_ROW("T42", "protocols that do not fit", protocols_that_do_not_fit),
    CHECK_ROW("T43", "the protocol that most prefer", vote),
    CHECK_ROW("T45", "a follower joins again: as before, and changed", follower_joins_again),
    CHECK_ROW("T46", "the leader joins again: a rebalance", leader_joins_again),
    CHECK_ROW("T48",
              "joins before the sync; a parked sync when another joins",
              joins_before_the_sync),
    CHECK_ROW("T51", "assignments come from the leader alone, and are kept", syncs),
    CHECK_ROW("T54", "syncs of another generation, member, protocol", syncs_that_do_not_fit),
    CHECK_ROW("T55", "a sync in a rebalance", sync_in_rebalance),
    CHECK_ROW("T62", "one leaves, the other goes on", one_leaves),
    CHECK_ROW("T66", "a pending member leaves", pending_leaves),
    CHECK_ROW("T67", "a leave of no group", leave_of_no_group),
};

const struct check_table rows_join = {
    "Joins, syncs and leaves of a classic group",
    rows,
    ARRAY_SIZE(rows),
};
