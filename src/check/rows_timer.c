/* rows_timer.c - what keeps a member in a classic group, what ends it, and when.
 *
 * A member that plays no part in a row's timing has long timeouts and beats itself. Where the
 * server counts from an answer of its own, that moment lies between the request that brought the
 * answer about and its arrival here: "never early" is judged from the one, "on time" from the
 * other, so that a busy machine makes neither of them wrong. */
#include "check/classic.h"
#include "check/rows.h"

#define SESSION_MS   CLASSIC_SESSION_MIN_MS
#define REBALANCE_MS 12000
#define NEW_JOIN_MS  300000
#define EARLY_MS     50   /* Clocks of client and server round differently. */
#define LATE_MS      4000 /* Timers, and a busy machine. */
#define SURE_MS      3000 /* Before its end a limit has surely not passed. */

static struct run_span around(int64_t ms)
{
    return (struct run_span){ms - EARLY_MS, ms + LATE_MS};
}

/* When an answer was brought about: not before, not after. */
struct moment {
    int64_t sent_ms, arrived_ms;
};

/* Now is `ms` after that. */
static void expect_passed(struct check_run *run, const char *what, int64_t ms, struct moment since)
{
    int64_t unknown_ms = since.arrived_ms - since.sent_ms;
    run_expect_within(run, what, (struct run_span){ms - unknown_ms - EARLY_MS, ms + LATE_MS},
                      peer_now_ms() - since.arrived_ms);
}

/* A with a short session, B who sees what happens to it; both stable. */
struct pair {
    struct classic a, b;
};

static void pair_stable(struct check_run *run, struct pair *pair, const char *instance)
{
    struct classic *const both[] = {&pair->b, &pair->a};
    classic_init(&pair->a, run, instance);
    classic_init(&pair->b, run, NULL);
    pair->a.session_ms = SESSION_MS;
    pair->a.rebalance_ms = pair->b.rebalance_ms = REBALANCE_MS;
    classic_stable(both, 2);
}

/* When B is told to rejoin, counted from `from_ms`. */
static int64_t told_to_rejoin(struct pair *pair, int64_t from_ms)
{
    int16_t answer;
    int64_t at_ms = classic_beat_until(&pair->b, 1, 30000, &answer);
    run_expect(pair->b.run, "beat of the member that stays", KAFKA_REBALANCE_IN_PROGRESS, answer);
    return at_ms - from_ms;
}

static void silence(struct check_run *run)
{
    struct pair pair;
    pair_stable(run, &pair, NULL);
    run_wait(run, SESSION_MS * 5 / 12);
    run_expect(run, "first beat", KAFKA_NONE, classic_beat(&pair.a, run->version));
    run_wait(run, SESSION_MS * 11 / 12);
    int64_t last_ms = peer_now_ms();
    run_expect(run, "second beat", KAFKA_NONE, classic_beat(&pair.a, run->version));
    int64_t took_ms = told_to_rejoin(&pair, last_ms);
    run_expect_within(run, "expiry after the last beat", around(SESSION_MS), took_ms);
    run_expect(run, "beat after it", KAFKA_UNKNOWN_MEMBER_ID, classic_beat(&pair.a, run->version));
}

static void silence_static(struct check_run *run)
{
    struct pair pair;
    pair_stable(run, &pair, "i1");
    int64_t last_ms = peer_now_ms();
    run_expect(run, "beat", KAFKA_NONE, classic_beat(&pair.a, run->version));
    int64_t took_ms = told_to_rejoin(&pair, last_ms);
    run_expect_within(run, "expiry after the last beat", around(SESSION_MS), took_ms);
    run_expect(run, "beat after it", KAFKA_UNKNOWN_MEMBER_ID, classic_beat(&pair.a, run->version));
}

static void refused_beats(struct check_run *run, const struct classic_beat *beat, int16_t error)
{
    struct pair pair;
    pair_stable(run, &pair, NULL);
    struct classic_beat wrong = *beat;
    wrong.member = pair.a.id;
    int64_t last_ms = peer_now_ms();
    run_expect(run, "good beat", KAFKA_NONE, classic_beat(&pair.a, run->version));
    run_until(run, last_ms + SESSION_MS / 2);
    run_expect(run, "refused beat", error, classic_beat_as(&pair.a, run->version, &wrong));
    run_until(run, last_ms + SESSION_MS * 9 / 10);
    run_expect(run, "refused beat", error, classic_beat_as(&pair.a, run->version, &wrong));
    int64_t took_ms = told_to_rejoin(&pair, last_ms);
    run_expect_within(run, "expiry after the good beat", around(SESSION_MS), took_ms);
}

static void refused_generation(struct check_run *run)
{
    refused_beats(run, &(struct classic_beat){VIEW_EMPTY, VIEW_NULL, 9}, KAFKA_ILLEGAL_GENERATION);
}

static void refused_instance(struct check_run *run)
{
    refused_beats(run, &(struct classic_beat){VIEW_EMPTY, VIEW("nobody"), 1},
                  KAFKA_UNKNOWN_MEMBER_ID);
}

/* A beats every two seconds and expects `error` each time, until `end_ms`. */
static void beat_on(struct classic *m, enum kafka_error error, int64_t end_ms)
{
    while (!m->run->over && peer_now_ms() < end_ms) {
        run_need(m->run, "beat that keeps the session", error, classic_beat(m, m->run->version));
        run_until(m->run, MIN(end_ms, peer_now_ms() + 2000));
    }
}

static void beats_without_rejoining(struct check_run *run)
{
    struct pair pair;
    pair_stable(run, &pair, NULL);
    int64_t start_ms = peer_now_ms();
    classic_change_send(&pair.b);
    run_need(run, "beat while the own join is parked", KAFKA_REBALANCE_IN_PROGRESS,
             classic_beat_changed(&pair.b, 1));
    beat_on(&pair.a, KAFKA_REBALANCE_IN_PROGRESS, start_ms + REBALANCE_MS - SURE_MS);
    run_expect(run, "beat long after the session", KAFKA_REBALANCE_IN_PROGRESS,
               classic_beat(&pair.a, run->version));
    classic_joined(&pair.b, "join of the other");
    run_expect_within(run, "end of the rebalance", around(REBALANCE_MS), peer_now_ms() - start_ms);
    run_expect(run, "beat of who never joined again", KAFKA_UNKNOWN_MEMBER_ID,
               classic_beat(&pair.a, run->version));
    run_expect_number(run, "members", 1, pair.b.member_count);
}

/* A, who leads, and B with the short session, joined again but not synced. The last join of a
 * rebalance ends it, so the moment is known as well as one request takes. */
static struct moment pair_joined(struct check_run *run, struct pair *pair)
{
    struct classic *const both[] = {&pair->a, &pair->b};
    classic_init(&pair->a, run, NULL);
    classic_init(&pair->b, run, NULL);
    pair->a.session_ms = pair->b.session_ms = SESSION_MS;
    pair->a.rebalance_ms = pair->b.rebalance_ms = REBALANCE_MS;
    classic_stable(both, 2);
    if (!view_equal(pair->a.leader, pair->a.id)) { /* The other's join was the first to arrive. */
        struct classic a = pair->b;
        pair->b = pair->a;
        pair->a = a;
    }
    classic_change_send(&pair->a);
    run_need(run, "beat of B", KAFKA_REBALANCE_IN_PROGRESS, classic_beat_changed(&pair->b, 1));
    struct moment ended = {.sent_ms = peer_now_ms()};
    run_need(run, "join of B", KAFKA_NONE, classic_join(&pair->b));
    classic_joined(&pair->a, "join of A");
    ended.arrived_ms = peer_now_ms();
    return ended;
}

static void beats_without_syncing(struct check_run *run)
{
    struct pair pair;
    struct moment joined = pair_joined(run, &pair);
    int64_t start_ms = joined.sent_ms;
    while (!run->over && peer_now_ms() < start_ms + REBALANCE_MS - 5000) {
        run_need(run, "beat of A", KAFKA_NONE, classic_beat(&pair.a, run->version));
        run_need(run, "beat of B", KAFKA_NONE, classic_beat(&pair.b, run->version));
        run_wait(run, 2000);
    }
    int16_t answer;
    run_until(run, start_ms + REBALANCE_MS - SURE_MS);
    run_expect(run, "beat long after the session", KAFKA_NONE, classic_beat(&pair.a, run->version));
    (void)classic_beat_until(&pair.a, run->version, 10000, &answer);
    run_expect(run, "beat of A", KAFKA_UNKNOWN_MEMBER_ID, answer);
    expect_passed(run, "the sync's limit", REBALANCE_MS, joined);
    run_expect(run, "beat of B", KAFKA_UNKNOWN_MEMBER_ID, classic_beat(&pair.b, run->version));
}

static void leader_syncs_alone(struct check_run *run)
{
    struct pair pair;
    struct moment joined = pair_joined(run, &pair);
    int64_t start_ms = joined.sent_ms;
    int16_t answer = KAFKA_NONE;
    run_need(run, "sync of the leader", KAFKA_NONE, classic_sync(&pair.a));
    while (!run->over && answer == KAFKA_NONE &&
           peer_now_ms() < start_ms + REBALANCE_MS + LATE_MS) {
        run_need(run, "beat of who does not sync", KAFKA_NONE, classic_beat(&pair.b, 1));
        (void)classic_beat_until(&pair.a, 1, 1000, &answer);
        if (answer != KAFKA_NONE) break;
    }
    run_expect(run, "beat of the leader", KAFKA_REBALANCE_IN_PROGRESS, answer);
    expect_passed(run, "the sync's limit", REBALANCE_MS, joined);
    run_expect(run, "beat of who did not sync", KAFKA_UNKNOWN_MEMBER_ID, classic_beat(&pair.b, 1));
}

static void followers_sync_alone(struct check_run *run)
{
    struct pair pair;
    struct moment joined = pair_joined(run, &pair);
    int64_t start_ms = joined.sent_ms;
    classic_sync_send(&pair.b, NULL, 0);
    beat_on(&pair.a, KAFKA_NONE, start_ms + REBALANCE_MS - SURE_MS);
    run_expect(run, "parked sync", KAFKA_REBALANCE_IN_PROGRESS, classic_sync_take(&pair.b, NULL));
    expect_passed(run, "the sync's limit", REBALANCE_MS, joined);
    run_expect(run, "beat of the leader", KAFKA_UNKNOWN_MEMBER_ID,
               classic_beat(&pair.a, run->version));
    run_expect(run, "beat of the follower", KAFKA_REBALANCE_IN_PROGRESS,
               classic_beat(&pair.b, run->version));
}

static void silent_in_rebalance(struct check_run *run)
{
    struct pair pair;
    pair_stable(run, &pair, NULL);
    int64_t last_ms = peer_now_ms();
    run_need(run, "beat", KAFKA_NONE, classic_beat(&pair.a, 1));
    classic_change_send(&pair.b);
    classic_joined(&pair.b, "join of who is left");
    run_expect_within(run, "end of the rebalance", around(SESSION_MS), peer_now_ms() - last_ms);
    run_expect_number(run, "members", 1, pair.b.member_count);
    run_expect(run, "beat of the silent one", KAFKA_UNKNOWN_MEMBER_ID, classic_beat(&pair.a, 1));
}

static void parked_join_outlasts(struct check_run *run)
{
    struct pair pair;
    pair_stable(run, &pair, NULL);
    int64_t start_ms = peer_now_ms();
    classic_change_send(&pair.a); /* It waits for B. */
    run_need(run, "beat of B", KAFKA_REBALANCE_IN_PROGRESS, classic_beat_changed(&pair.b, 1));
    while (!run->over && peer_now_ms() < start_ms + SESSION_MS * 3 / 2) {
        run_need(run, "beat of B", KAFKA_REBALANCE_IN_PROGRESS, classic_beat(&pair.b, 1));
        run_wait(run, 1000);
    }
    run_need_true(run, "the join is parked still", !run_answered(run, pair.a.work, 0));
    classic_join_send(&pair.b);
    run_expect(run, "join after more than a session of waiting", KAFKA_NONE,
               classic_join_take(&pair.a)->error_code);
    classic_joined(&pair.b, "join of B");
    run_expect(run, "beat", KAFKA_NONE, classic_beat(&pair.a, 1));
    int16_t answer;
    int64_t joined_ms = peer_now_ms();
    int64_t at_ms = classic_beat_until(&pair.a, 1, 1000, &answer);
    run_expect(run, "beats after it", KAFKA_NONE, answer);
    run_need_true(run, "a second passed", at_ms - joined_ms >= 1000);
}

static void beat_while_parked(struct check_run *run)
{
    struct pair pair;
    pair_stable(run, &pair, NULL);
    classic_change_send(&pair.b);
    run_need(run, "beat of the other", KAFKA_REBALANCE_IN_PROGRESS,
             classic_beat_changed(&pair.a, 1));
    run_expect(run, "beat while the own join is parked", KAFKA_REBALANCE_IN_PROGRESS,
               classic_beat(&pair.b, run->version));
    classic_join_send(&pair.a);
    classic_joined(&pair.b, "join of B");
    classic_joined(&pair.a, "join of A");
    struct classic *follower = view_equal(pair.b.leader, pair.b.id) ? &pair.a : &pair.b;
    classic_sync_send(follower, NULL, 0);
    run_wait(run, 100);
    run_expect(run, "beat while the own sync is parked", KAFKA_NONE,
               classic_beat(follower, run->version));
    run_need_true(run, "the sync is parked", !run_answered(run, follower->work, 0));
}

static void pending_expires(struct check_run *run)
{
    struct classic a, p;
    struct classic *const alone[] = {&a};
    classic_init(&a, run, NULL);
    classic_init(&p, run, NULL);
    p.join_version = CLASSIC_JOIN_NEWEST;
    classic_stable(alone, 1);
    p.session_ms = SESSION_MS;
    int64_t start_ms = peer_now_ms();
    run_expect(run, "first join", KAFKA_MEMBER_ID_REQUIRED, classic_join(&p));
    run_expect(run, "join that waits for it", KAFKA_NONE, classic_join(&a));
    run_expect_within(run, "its session", around(SESSION_MS), peer_now_ms() - start_ms);
    run_expect(run, "join with the id", KAFKA_UNKNOWN_MEMBER_ID, classic_join(&p));
}

static void pending_joins(struct check_run *run)
{
    struct classic a, p;
    struct classic *const alone[] = {&a};
    classic_init(&a, run, NULL);
    classic_init(&p, run, NULL);
    p.join_version = CLASSIC_JOIN_NEWEST;
    classic_stable(alone, 1);
    run_expect(run, "first join", KAFKA_MEMBER_ID_REQUIRED, classic_join(&p));
    classic_join_send(&a);
    run_need_true(run, "the leader's join waits for the pending member",
                  run->over || !run_answered(run, a.work, 2000));
    run_expect(run, "join with the id", KAFKA_NONE, classic_join(&p));
    run_expect(run, "join of the leader", KAFKA_NONE, classic_join_take(&a)->error_code);
    run_expect_number(run, "generation", 2, a.generation);
    run_expect_number(run, "members", 2, a.member_count);
}

/* Who joins for the first time and waits has five minutes, whatever its session says. */
static void parked_for_long(struct check_run *run)
{
    struct classic a, b;
    struct classic *const alone[] = {&a};
    classic_init(&a, run, NULL);
    classic_init(&b, run, NULL);
    a.rebalance_ms = NEW_JOIN_MS + 100000;
    classic_stable(alone, 1);
    int64_t start_ms = peer_now_ms();
    classic_join_send(&b);
    run_need(run, "beat of the member", KAFKA_REBALANCE_IN_PROGRESS, classic_beat_changed(&a, 1));
    while (!run->over && !run_answered(run, b.work, 2000) &&
           peer_now_ms() < start_ms + NEW_JOIN_MS + LATE_MS)
        run_need(run, "beat of the member", KAFKA_REBALANCE_IN_PROGRESS, classic_beat(&a, 1));
    const struct join_group_response *answer = classic_join_take(&b);
    run_expect(run, "join that waited", KAFKA_UNKNOWN_MEMBER_ID, answer->error_code);
    run_expect_text(run, "member id of the answer", "", answer->member_id);
    run_expect_within(run, "five minutes", around(NEW_JOIN_MS), peer_now_ms() - start_ms);
    run_expect(run, "beat of the member", KAFKA_REBALANCE_IN_PROGRESS, classic_beat(&a, 1));
}

static void emptied(struct check_run *run)
{
    struct classic a;
    struct classic *const alone[] = {&a};
    classic_init(&a, run, NULL);
    classic_stable(alone, 1);
    run_expect(run, "leave", KAFKA_NONE, classic_leave(&a));
    a.generation++;
    run_expect(run, "beat in the empty group", KAFKA_UNKNOWN_MEMBER_ID,
               classic_beat(&a, run->version));
}

static const struct check_row rows[] = {
    CHECK_ROW_EACH("C10 session", "beats keep a member, silence ends it on time", silence, 0),
    CHECK_ROW_EACH("C6 session", "a silent static member ends on time too", silence_static, 3),
    CHECK_ROW_EACH("C9 session",
                   "a beat of another generation keeps nobody",
                   refused_generation,
                   0),
    CHECK_ROW_EACH("C1 session",
                   "a beat of an unregistered instance keeps nobody",
                   refused_instance,
                   3),
    CHECK_ROW_EACH("C10 rebalance",
                   "beats keep who does not rejoin, until the rebalance ends",
                   beats_without_rejoining,
                   0),
    CHECK_ROW_EACH("C10 sync",
                   "beats keep who does not sync, until the sync's limit",
                   beats_without_syncing,
                   0),
    CHECK_ROW("T57", "the sync's limit: the leader has synced", leader_syncs_alone),
    CHECK_ROW_EACH("T58", "the sync's limit: only followers have synced", followers_sync_alone, 0),
    CHECK_ROW("T25", "silence ends a member in a rebalance", silent_in_rebalance),
    CHECK_ROW("T26", "a parked join outlasts its member's session", parked_join_outlasts),
    CHECK_ROW_EACH("7.4 parked",
                   "a beat while the own join or sync is parked",
                   beat_while_parked,
                   0),
    CHECK_ROW("T60", "a pending member holds a rebalance for its session", pending_expires),
    CHECK_ROW("T59", "a rebalance waits for a pending member", pending_joins),
    CHECK_ROW_WHEN("T61", "a new member's join waits for long", parked_for_long, CHECK_IF_LONG),
    CHECK_ROW_EACH("T63 beat", "the last member has left", emptied, 0),
};

const struct check_table rows_timer = {
    "Sessions and limits of a classic group",
    rows,
    ARRAY_SIZE(rows),
};
