/* rows_restart.c - groups over a restart of their server: who waited, who is missed, what is
 * loaded.
 */
#include "check/classic.h"
#include "check/modern.h"
#include "check/restart.h"
#include "check/rows.h"

#define SESSION_MS 10000

/* A server that starts may take this long until it serves. */
#define START_MS 60000

/* A member's connections are gone with the server. */
static void connect_again(struct classic *m)
{
    m->work = run_peer_patiently(m->run, START_MS);
    m->beats = run_peer_patiently(m->run, START_MS);
}

static bool loads(int16_t error)
{
    return error == KAFKA_COORDINATOR_LOAD_IN_PROGRESS || error == KAFKA_NOT_COORDINATOR ||
           error == KAFKA_COORDINATOR_NOT_AVAILABLE;
}

/* A beat of nobody, again and again from the first moment on, until the group is known. */
static void while_it_loads(struct check_run *run)
{
    struct classic a;
    struct classic *const alone[] = {&a};
    struct classic_beat nobody = {VIEW("nobody"), VIEW_NULL, 1};
    uint32_t unknowing = 0;
    int16_t error = KAFKA_NONE;
    classic_init(&a, run, NULL);
    classic_stable(alone, 1);
    restart_wait(run);
    connect_again(&a);
    int64_t limit_ms = peer_now_ms() + START_MS;
    while (!run->over && peer_now_ms() < limit_ms && (error == KAFKA_NONE || loads(error))) {
        error = classic_beat_as(&a, 1, &nobody);
        run_need_true(run, "a beat is never told that the group is loaded",
                      error != KAFKA_COORDINATOR_LOAD_IN_PROGRESS);
        unknowing += error == KAFKA_NONE;
    }
    run_need(run, "beat of nobody behind the loading", KAFKA_UNKNOWN_MEMBER_ID, error);
    if (unknowing == 0) run_skip(run, "it had loaded the group before the first beat came");
    run_expect(run, "beat of nobody while it loads", KAFKA_NONE, KAFKA_NONE);
    run_expect(run, "and then", KAFKA_UNKNOWN_MEMBER_ID, error);
    run_expect(run, "beat of the member", KAFKA_NONE, classic_beat(&a, 1));
}

/* The answer to a sync that changes nothing, once there is a coordinator. */
static int16_t state_of(struct classic *m)
{
    int64_t limit_ms = peer_now_ms() + START_MS;
    int16_t error;
    do {
        error = classic_sync(m);
        if (loads(error)) run_wait(m->run, 50);
    } while (loads(error) && !m->run->over && peer_now_ms() < limit_ms);
    return error;
}

static void silent_behind_it(struct check_run *run)
{
    struct classic a, b;
    struct classic *const both[] = {&a, &b};
    classic_init(&a, run, NULL);
    classic_init(&b, run, NULL);
    b.session_ms = SESSION_MS;
    classic_stable(both, 2);
    int64_t start_ms = peer_now_ms();
    restart_wait(run);
    connect_again(&a);
    run_expect(run, "sync of the leader", KAFKA_NONE, state_of(&a));
    int64_t loaded_ms = peer_now_ms();
    int16_t error;
    int64_t at_ms = classic_beat_until(&a, 1, SESSION_MS * 3, &error);
    run_expect(run, "beat of who stays", KAFKA_REBALANCE_IN_PROGRESS, error);
    /* Its session begins when the group is loaded, and that was between the two. */
    run_need_true(run, "nobody is missed before a session has passed",
                  run->over || at_ms - start_ms >= SESSION_MS);
    run_expect_within(run, "session behind the loading", (struct run_span){0, SESSION_MS + 5000},
                      at_ms - loaded_ms);
    connect_again(&b);
    run_expect(run, "beat of who was silent", KAFKA_UNKNOWN_MEMBER_ID, classic_beat(&b, 1));
}

/* A server that stops tells who waits to look elsewhere, or closes the connection before it can. */
static void parked_join(struct check_run *run)
{
    struct classic a, b;
    struct classic *const both[] = {&a, &b};
    classic_init(&a, run, NULL);
    classic_init(&b, run, NULL);
    classic_stable(both, 2);
    classic_change_send(&a);
    run_need(run, "beat of the other", KAFKA_REBALANCE_IN_PROGRESS, classic_beat_changed(&b, 1));
    restart_wait(run);
    struct classic old = a;
    if (!run_hung_up(run, old.work, RUN_CALL_MS)) {
        const struct join_group_response *answer = classic_join_take(&old);
        run_expect(run, "parked join", KAFKA_NOT_COORDINATOR, answer->error_code);
        run_expect_number(run, "generation", -1, answer->generation_id);
    }
    connect_again(&a);
    connect_again(&b);
    run_expect(run, "sync behind it: the stable group is there", KAFKA_NONE, state_of(&b));
    run_expect(run, "beat", KAFKA_NONE, classic_beat(&a, 1));
}

static void modern_goes_on(struct check_run *run)
{
    struct modern m, y;
    modern_init(&m, run, NULL);
    modern_join_alone(&m);
    int32_t epoch = m.epoch;
    restart_wait(run);
    m.peer = run_peer_patiently(run, START_MS);
    int64_t limit_ms = peer_now_ms() + START_MS;
    int16_t error = KAFKA_COORDINATOR_LOAD_IN_PROGRESS;
    while (loads(error) && !run->over && peer_now_ms() < limit_ms)
        error = modern_full(&m, epoch);
    run_expect(run, "full beat", KAFKA_NONE, error);
    run_expect_number(run, "epoch", epoch, m.epoch);
    run_expect_text(run, "assignment", "0,1,2,3,4,5", view_of_string(modern_set(run, m.assigned)));
    modern_init(&y, run, NULL);
    run_expect(run, "unknown member", KAFKA_UNKNOWN_MEMBER_ID, modern_short(&y, epoch));
}

static const struct check_row rows[] = {
    CHECK_ROW_WHEN("A5 restart",
                   "a beat while the group is loaded",
                   while_it_loads,
                   CHECK_OVER_RESTART),
    CHECK_ROW_WHEN("T71 restart", "silence after a restart", silent_behind_it, CHECK_OVER_RESTART),
    CHECK_ROW_WHEN("T72 restart",
                   "a join that waits when the server stops",
                   parked_join,
                   CHECK_OVER_RESTART),
    CHECK_ROW_WHEN("T85 restart",
                   "a consumer group goes on over a restart",
                   modern_goes_on,
                   CHECK_OVER_RESTART),
};

const struct check_table rows_restart = {
    "Groups over a restart of the server",
    rows,
    ARRAY_SIZE(rows),
};
