/* rows_modern.c - consumer groups (KIP-848), and classic members in them. */
#include "check/classic.h"
#include "check/modern.h"
#include "check/rows.h"

#include "gen/consumer_group_heartbeat_request.h"

/* How often a slow machine may try to join two members within an assignment interval. */
#define INTERVAL_TRIES 10

#define ALL ((1u << MODERN_PARTITIONS) - 1)

static void joined(struct check_run *run, struct modern *m)
{
    modern_init(m, run, NULL);
    modern_join(m);
}

static void first(struct check_run *run, struct modern *m)
{
    modern_init(m, run, NULL);
    modern_join_alone(m);
}

/* ---- epochs -----------------------------------------------------------------------------------
 */

static void joins(struct check_run *run)
{
    struct modern m;
    first(run, &m);
    run_expect_number(run, "epoch", 2, m.epoch);
    run_expect_text(run, "assignment", "0,1,2,3,4,5", view_of_string(modern_set(run, m.assigned)));
    m.owned = m.assigned;
    run_expect(run, "short beat", KAFKA_NONE, modern_short(&m, 2));
    run_expect_number(run, "epoch", 2, m.epoch);
    run_expect_number(run, "an assignment comes", 0, m.assignment_came);
    run_expect(run, "full beat", KAFKA_NONE, modern_full(&m, 2));
    run_expect_number(run, "an assignment comes", 1, m.assignment_came);
    run_expect_text(run, "assignment", "0,1,2,3,4,5", view_of_string(modern_set(run, m.assigned)));
}

static void no_group(struct check_run *run)
{
    struct modern m;
    modern_init(&m, run, NULL);
    run_expect(run, "epoch 1", KAFKA_GROUP_ID_NOT_FOUND, modern_short(&m, 1));
    run_expect(run, "leave", KAFKA_GROUP_ID_NOT_FOUND, modern_short(&m, -1));
}

static void wrong_epochs(struct check_run *run)
{
    struct modern m, x;
    first(run, &m);
    modern_init(&x, run, NULL);
    run_expect(run, "unknown member", KAFKA_UNKNOWN_MEMBER_ID, modern_short(&x, 1));
    run_expect(run, "a newer epoch", KAFKA_FENCED_MEMBER_EPOCH, modern_short(&m, m.epoch + 1));
    run_expect(run, "an older epoch", KAFKA_FENCED_MEMBER_EPOCH, modern_short(&m, m.epoch - 1));
    run_expect(run, "epoch -3", KAFKA_INVALID_REQUEST, modern_short(&m, -3));
    run_expect(run, "its epoch", KAFKA_NONE, modern_short(&m, m.epoch));
}

static void joins_again(struct check_run *run)
{
    struct modern m;
    first(run, &m);
    m.owned = 0;
    run_expect(run, "epoch 0 again", KAFKA_NONE, modern_full(&m, 0));
    run_expect_number(run, "epoch", 2, m.epoch);
    run_expect_text(run, "assignment", "0,1,2,3,4,5", view_of_string(modern_set(run, m.assigned)));
}

/* ---- requests that make no sense --------------------------------------------------------------
 */

static void expect_invalid(struct modern *m, const char *what)
{
    run_expect(m->run, what, KAFKA_INVALID_REQUEST, modern_full(m, 0));
}

static void invalid(struct check_run *run)
{
    struct modern m;
    modern_init(&m, run, NULL);
    struct view id = m.id;
    m.rebalance_ms = -1;
    expect_invalid(&m, "no rebalance timeout");
    m.rebalance_ms = 60000;
    m.owned = 1;
    expect_invalid(&m, "it joins and owns something");
    m.owned = 0;
    m.instance = VIEW_EMPTY;
    expect_invalid(&m, "an empty instance id");
    m.instance = VIEW_NULL;
    m.id = VIEW_EMPTY;
    expect_invalid(&m, "an empty member id");
    m.id = id;
    run_expect(run, "it joins and says nothing", KAFKA_INVALID_REQUEST, modern_short(&m, 0));
    run_expect(run, "epoch -2 without instance", KAFKA_INVALID_REQUEST, modern_short(&m, -2));
}

static void unknown_assignor(struct check_run *run)
{
    struct modern m;
    modern_init(&m, run, NULL);
    m.assignor = VIEW("foo");
    run_expect(run, "join", KAFKA_UNSUPPORTED_ASSIGNOR, modern_full(&m, 0));
}

static void bad_regex(struct check_run *run)
{
    struct modern m;
    modern_init(&m, run, NULL);
    m.regex = VIEW("[");
    run_expect(run, "join", KAFKA_INVALID_REGULAR_EXPRESSION, modern_full(&m, 0));
}

static void regex(struct check_run *run)
{
    struct modern m;
    modern_init(&m, run, NULL);
    m.regex = view_of_string(run_text(run, "%s.*", run->world->name));
    run_expect(run, "join", KAFKA_NONE, modern_full(&m, 0));
    m.owned = m.assigned;
    struct modern *const alone[] = {&m};
    modern_settle(alone, 1);
    run_expect_text(run, "assignment", "0,1,2,3,4,5", view_of_string(modern_set(run, m.owned)));
}

/* ---- several members --------------------------------------------------------------------------
 */

static uint32_t count_of(uint32_t partitions)
{
    return (uint32_t)__builtin_popcount(partitions);
}

static void two_share(struct check_run *run)
{
    struct modern a, b;
    struct modern *const both[] = {&a, &b};
    first(run, &a);
    joined(run, &b);
    modern_settle(both, 2);
    run_expect_number(run, "partitions of the first", 3, count_of(a.owned));
    run_expect_number(run, "partitions of the second", 3, count_of(b.owned));
}

static void leaves(struct check_run *run)
{
    struct modern a, b;
    struct modern *const both[] = {&a, &b};
    struct modern *const alone[] = {&a};
    first(run, &a);
    joined(run, &b);
    modern_settle(both, 2);
    run_expect(run, "leave", KAFKA_NONE, modern_short(&b, -1));
    run_expect_number(run, "epoch of the answer", -1, b.epoch);
    run_expect(run, "beat of who left", KAFKA_UNKNOWN_MEMBER_ID, modern_short(&b, 3));
    modern_settle(alone, 1);
    run_expect_number(run, "partitions of who stays", MODERN_PARTITIONS, count_of(a.owned));
}

static void holds_on(struct check_run *run)
{
    struct modern a, b;
    modern_init(&a, run, NULL);
    a.rebalance_ms = 6000;
    modern_join_alone(&a);
    joined(run, &b);
    int64_t asked_ms = 0, told_ms = 0, limit_ms = peer_now_ms() + 30000;
    int16_t error = KAFKA_NONE;
    while (!run->over && error == KAFKA_NONE && peer_now_ms() < limit_ms) {
        (void)modern_full(&b, b.epoch);
        int64_t sent_ms = peer_now_ms();
        error = modern_full(&a, a.epoch); /* It says that it owns them all, whatever it is told. */
        if (error == KAFKA_NONE && a.assigned != ALL && told_ms == 0) {
            asked_ms = sent_ms;
            told_ms = peer_now_ms();
        }
        run_wait(run, 200);
    }
    run_expect(run, "beat of who keeps all", KAFKA_UNKNOWN_MEMBER_ID, error);
    run_need_true(run, "it was asked to give some up", run->over || told_ms > 0);
    /* It counts from between the two: not early since the one, not late since the other. */
    run_expect_within(run, "its rebalance timeout",
                      (struct run_span){5950 - (told_ms - asked_ms), 10000},
                      peer_now_ms() - told_ms);
}

static void silence(struct check_run *run)
{
    struct modern a, b;
    first(run, &a);
    joined(run, &b);
    int64_t start_ms = peer_now_ms();
    run_expect(run, "beat", KAFKA_NONE, modern_short(&a, a.epoch));
    run_need(run, "beat of the other", KAFKA_NONE, modern_full(&b, b.epoch));
    run_until(run, start_ms + MODERN_SESSION_MS - 2000);
    run_expect(run, "the other, in its session", KAFKA_NONE, modern_full(&b, b.epoch));
    run_until(run, start_ms + MODERN_SESSION_MS + 5000);
    run_expect(run, "after the session", KAFKA_UNKNOWN_MEMBER_ID, modern_short(&a, a.epoch));
    run_expect(run, "the other lives", KAFKA_NONE, modern_full(&b, b.epoch));
}

/* What a member says after its answer was lost: the epoch before, with what it owns. */
static void lost_answers(struct check_run *run)
{
    struct modern a, b;
    struct modern *const both[] = {&a, &b};
    first(run, &a);
    int32_t before = a.epoch;
    joined(run, &b);
    modern_settle(both, 2);
    run_need_true(run, "the epoch is the next", run->over || a.epoch == before + 1);
    uint32_t owned = a.owned;
    a.owned = owned & (owned - 1); /* One less than it has. */
    run_expect(run, "some of what it has", KAFKA_NONE, modern_full(&a, before));
    run_expect_number(run, "epoch", before + 1, a.epoch);
    a.owned = b.owned;
    run_expect(run, "what it has not", KAFKA_FENCED_MEMBER_EPOCH, modern_full(&a, before));
    run_expect(run, "nothing told", KAFKA_FENCED_MEMBER_EPOCH, modern_short(&a, before));
    a.owned = 0;
    run_expect(run, "an older epoch", KAFKA_FENCED_MEMBER_EPOCH, modern_full(&a, before - 1));
}

/* A member that comes while the interval between two assignments runs. */
static void assignment_interval(struct check_run *run)
{
    struct modern a, b;
    int64_t interval_ms = run_setting(run, "group.consumer.assignment.interval.ms");
    for (uint32_t tries = 0; tries < INTERVAL_TRIES && !run->over; tries++) {
        modern_init(&a, run, NULL);
        modern_init(&b, run, NULL);
        int64_t start_ms = peer_now_ms();
        modern_join_alone(&a);
        int64_t joined_ms = peer_now_ms();
        int32_t epoch = a.epoch;
        modern_join(&b);
        run_need(run, "short beat of the first", KAFKA_NONE, modern_short(&a, epoch));
        bool in_time = peer_now_ms() - start_ms < interval_ms;
        if (in_time) {
            run_expect_number(run, "epoch of the first", epoch, a.epoch);
            run_expect_number(run, "an assignment comes", 0, a.assignment_came);
            run_expect_number(run, "epoch of the second", epoch, b.epoch);
            run_expect_text(run, "its assignment", "", view_of_string(modern_set(run, b.assigned)));
            run_until(run, joined_ms + interval_ms + 500);
            run_expect(run, "beat behind the interval", KAFKA_NONE, modern_short(&b, epoch));
            run_expect_number(run, "epoch", epoch + 1, b.epoch);
            run_expect_number(run, "an assignment comes", 0, b.assignment_came);
            return;
        }
        run_need(run, "leave", KAFKA_NONE, modern_short(&a, -1));
        run_need(run, "leave", KAFKA_NONE, modern_short(&b, -1));
    }
    run_skip(run, "two joins took longer than the interval of %lld ms", (long long)interval_ms);
}

/* ---- static members ---------------------------------------------------------------------------
 */

static void static_unreleased(struct check_run *run)
{
    struct modern m, y;
    modern_init(&m, run, "i1");
    modern_join_alone(&m);
    modern_init(&y, run, "i1");
    run_expect(run, "another process joins", KAFKA_UNRELEASED_INSTANCE_ID, modern_full(&y, 0));
    m.owned = 0;
    run_expect(run, "its own process joins", KAFKA_UNRELEASED_INSTANCE_ID, modern_full(&m, 0));
}

static void static_returns(struct check_run *run)
{
    struct modern m, y;
    modern_init(&m, run, "i1");
    modern_join_alone(&m);
    int32_t epoch = m.epoch;
    run_expect(run, "leave for a while", KAFKA_NONE, modern_short(&m, -2));
    run_expect_number(run, "epoch of the answer", -2, m.epoch);
    modern_init(&y, run, "i1");
    run_expect(run, "another process joins", KAFKA_NONE, modern_full(&y, 0));
    run_expect_number(run, "epoch", epoch, y.epoch);
    run_expect_text(run, "assignment", "0,1,2,3,4,5", view_of_string(modern_set(run, y.assigned)));
}

static void static_stays_away(struct check_run *run)
{
    struct modern m, n, y;
    struct modern *const both[] = {&m, &n};
    struct modern *const alone[] = {&n};
    modern_init(&m, run, "i1");
    modern_join_alone(&m);
    joined(run, &n);
    modern_settle(both, 2);
    int64_t start_ms = peer_now_ms();
    run_expect(run, "leave for a while", KAFKA_NONE, modern_short(&m, -2));
    while (!run->over && peer_now_ms() < start_ms + MODERN_SESSION_MS - 3000) {
        run_need(run, "beat of the other", KAFKA_NONE, modern_full(&n, n.epoch));
        n.owned = n.assigned;
        run_wait(run, 2000);
    }
    run_expect_number(run, "partitions of the other", 3, count_of(n.owned));
    int32_t epoch = n.epoch;
    modern_settle(alone, 1);
    run_expect_number(run, "behind the session", MODERN_PARTITIONS, count_of(n.owned));
    run_need_true(run, "not before the session's end",
                  run->over || peer_now_ms() - start_ms >= MODERN_SESSION_MS - 50);
    run_expect_number(run, "epoch", epoch + 1, n.epoch);
    modern_init(&y, run, "i1");
    run_expect(run, "another process joins, too late", KAFKA_NONE, modern_full(&y, 0));
    run_expect_text(run, "assignment", "", view_of_string(modern_set(run, y.assigned)));
}

static void static_fenced(struct check_run *run)
{
    struct modern m, y;
    modern_init(&m, run, "i1");
    modern_join_alone(&m);
    int32_t epoch = m.epoch;
    run_need(run, "leave for a while", KAFKA_NONE, modern_short(&m, -2));
    modern_init(&y, run, "i1");
    run_need(run, "another process joins", KAFKA_NONE, modern_full(&y, 0));
    m.tells_instance = true;
    run_expect(run, "full beat of the former id", KAFKA_FENCED_INSTANCE_ID, modern_full(&m, epoch));
}

/* ---- Heartbeat in a consumer group ------------------------------------------------------------
 */

static void beats_of_consumer_member(struct check_run *run)
{
    struct modern m;
    struct classic through;
    first(run, &m);
    classic_init(&through, run, NULL);
    struct classic_beat beat = {m.id, VIEW_NULL, m.epoch};
    run_expect(run, "its id", KAFKA_UNKNOWN_MEMBER_ID,
               classic_beat_as(&through, run->version, &beat));
    beat.member = VIEW("nobody");
    run_expect(run, "unknown id", KAFKA_UNKNOWN_MEMBER_ID,
               classic_beat_as(&through, run->version, &beat));
}

/* A, the leader, and S, static as "i1", are classic; M joins by the new protocol. */
struct mixed {
    struct classic a, s;
    struct modern m;
};

static void mix(struct check_run *run, struct mixed *mixed)
{
    struct classic *const both[] = {&mixed->a, &mixed->s};
    modern_init(&mixed->m, run, NULL);
    classic_init(&mixed->a, run, NULL);
    classic_init(&mixed->s, run, "i1");
    mixed->a.metadata = mixed->s.metadata = modern_subscription(run);
    mixed->a.assignment = modern_assignment(run, 7);
    mixed->s.assignment = modern_assignment(run, 56);
    classic_stable(both, 2);
    int16_t error = modern_full(&mixed->m, 0);
    if (error == KAFKA_GROUP_ID_NOT_FOUND)
        run_skip(run, "the server lets no member of the new protocol into a classic group");
    run_need(run, "join of a member of the new protocol", KAFKA_NONE, error);
}

static void beats_in_a_mixed_group(struct check_run *run)
{
    struct mixed mixed;
    mix(run, &mixed);
    run_expect(run, "D6: a newer assignment", KAFKA_REBALANCE_IN_PROGRESS,
               classic_beat(&mixed.a, run->version));
    struct classic_beat beat = {mixed.a.id, VIEW_NULL, mixed.a.generation + 1};
    run_expect(run, "D5: another epoch", KAFKA_ILLEGAL_GENERATION,
               classic_beat_as(&mixed.a, run->version, &beat));
    beat = (struct classic_beat){VIEW("nobody"), VIEW_NULL, 1};
    run_expect(run, "D1: unknown member", KAFKA_UNKNOWN_MEMBER_ID,
               classic_beat_as(&mixed.a, run->version, &beat));
    beat = (struct classic_beat){mixed.m.id, VIEW_NULL, mixed.m.epoch};
    run_expect(run, "D4: a member of the new protocol", KAFKA_UNKNOWN_MEMBER_ID,
               classic_beat_as(&mixed.a, run->version, &beat));
    if (run->version < 3) return;
    beat = (struct classic_beat){mixed.s.id, VIEW("nobody"), 1};
    run_expect(run, "D2: an instance that is not registered", KAFKA_UNKNOWN_MEMBER_ID,
               classic_beat_as(&mixed.a, run->version, &beat));
    beat = (struct classic_beat){mixed.a.id, VIEW("i1"), 1};
    run_expect(run, "D3: another member's instance", KAFKA_FENCED_INSTANCE_ID,
               classic_beat_as(&mixed.a, run->version, &beat));
}

static void classic_member_goes_on(struct check_run *run)
{
    struct mixed mixed;
    mix(run, &mixed);
    run_expect(run, "join again", KAFKA_NONE, classic_join(&mixed.a));
    run_need_true(run, "the generation is its epoch", run->over || mixed.a.generation > 1);
    run_expect(run, "sync", KAFKA_NONE, classic_sync(&mixed.a));
    run_expect(run, "D10: beat", KAFKA_NONE, classic_beat(&mixed.a, run->version));
    struct classic_beat beat = {mixed.a.id, VIEW_NULL, mixed.a.generation - 1};
    run_expect(run, "D5: the former epoch", KAFKA_ILLEGAL_GENERATION,
               classic_beat_as(&mixed.a, run->version, &beat));
}

static const struct check_row rows[] = {
    CHECK_ROW("T84", "joins alone: the epoch, all partitions; short and full beats", joins),
    CHECK_ROW("T87", "a beat and a leave of no group", no_group),
    CHECK_ROW("T88", "unknown member, other epochs", wrong_epochs),
    CHECK_ROW("T89", "a member whose answer was lost", lost_answers),
    CHECK_ROW("T90", "requests that make no sense", invalid),
    CHECK_ROW("T91", "an assignor that the server does not have", unknown_assignor),
    CHECK_ROW("T92", "two share, and no partition has two owners", two_share),
    CHECK_ROW("T93", "one leaves, the other gets all", leaves),
    CHECK_ROW("T94", "silence ends a member on time", silence),
    CHECK_ROW("T95", "who does not give up partitions is removed", holds_on),
    CHECK_ROW("T96", "an instance that is in use", static_unreleased),
    CHECK_ROW("T98", "a static member comes back and finds what it had", static_returns),
    CHECK_ROW("T99", "the former id of a static member", static_fenced),
    CHECK_ROW("T100", "a static member that stays away", static_stays_away),
    CHECK_ROW("T164", "the interval between two assignments", assignment_interval),
    CHECK_ROW("T160", "a member that lost its answer joins again", joins_again),
    CHECK_ROW("T171", "topics by regular expression", regex),
    CHECK_ROW("T173", "an expression that is none", bad_regex),
    CHECK_ROW_EACH("D4", "Heartbeat of a member of the new protocol", beats_of_consumer_member, 0),
    CHECK_ROW_EACH("D1-D6", "Heartbeat in a group of both protocols", beats_in_a_mixed_group, 0),
    CHECK_ROW_EACH("D10", "a classic member goes on in such a group", classic_member_goes_on, 0),
};

const struct check_table rows_modern = {
    "Consumer groups (ConsumerGroupHeartbeat), and Heartbeat in them",
    rows,
    ARRAY_SIZE(rows),
};
