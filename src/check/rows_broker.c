/* rows_broker.c - the life of a broker under a controller: beats by the transition table, errors,
 * sessions, directories.
 *
 * Brokers of other rows are alive meanwhile: they say that they have read everything, so that they
 * hold up nobody's shutdown. */
#include "check/registrant.h"
#include "check/rows.h"

#include "gen/allocate_producer_ids_request.h"
#include "gen/allocate_producer_ids_response.h"
#include "gen/broker_heartbeat_request.h"

#define CAUGHT_UP   REGISTRANT_FAR
#define PAUSE_MS    200
#define LATE_MS     2500 /* An eighth of the session between two looks, and a busy machine. */
#define SESSION_MS  REGISTRANT_SESSION_MS
#define EARLY_MS    50
#define NOTHING     ((struct registrant_beat){.offset = CAUGHT_UP})
#define FENCE       ((struct registrant_beat){.offset = CAUGHT_UP, .fence = true})
#define SHUT_DOWN   ((struct registrant_beat){.offset = CAUGHT_UP, .shut_down = true})
#define BOTH        ((struct registrant_beat){.offset = CAUGHT_UP, .fence = true, .shut_down = true})
#define IS_FENCED   ((struct registrant_flags){true, true, false})
#define IS_UNFENCED ((struct registrant_flags){true, false, false})
#define IS_DOWN     ((struct registrant_flags){true, true, true})

static void fenced(struct check_run *run, struct registrant *r)
{
    registrant_init(r, run, 0);
    run_need(run, "registration", KAFKA_NONE, registrant_register(r));
}

static void live(struct check_run *run, struct registrant *r)
{
    registrant_init(r, run, 0);
    registrant_live(r);
}

/* ---- the transition table ---------------------------------------------------------------------
 */

static void fenced_wants_fence(struct check_run *run)
{
    struct registrant r;
    fenced(run, &r);
    struct registrant_beat beat = FENCE;
    beat.offset = -1;
    registrant_expect(&r, "nothing read", &beat, (struct registrant_flags){false, true, false});
    registrant_expect(&r, "all read", &FENCE, IS_FENCED);
}

static void fenced_behind(struct check_run *run)
{
    struct registrant r;
    fenced(run, &r);
    struct registrant_beat beat = {.offset = r.epoch - 1};
    registrant_expect(&r, "one record behind", &beat,
                      (struct registrant_flags){false, true, false});
    beat.offset = r.epoch;
    registrant_expect(&r, "its registration read", &beat, IS_UNFENCED);
}

static void fenced_shuts_down(struct check_run *run)
{
    struct registrant r;
    fenced(run, &r);
    registrant_expect(&r, "wants shutdown", &SHUT_DOWN, IS_DOWN);
    registrant_expect(&r, "wants both", &BOTH, IS_DOWN);
    struct registrant_beat beat = SHUT_DOWN;
    beat.offset = -1;
    registrant_expect(&r, "wants shutdown, nothing read", &beat,
                      (struct registrant_flags){false, true, true});
}

static void unfenced_stays(struct check_run *run)
{
    struct registrant r;
    live(run, &r);
    registrant_expect(&r, "all read", &NOTHING, IS_UNFENCED);
    struct registrant_beat beat = {.offset = r.epoch - 1};
    registrant_expect(&r, "offset gone back", &beat,
                      (struct registrant_flags){false, false, false});
    registrant_expect(&r, "all read", &NOTHING, IS_UNFENCED);
}

static void unfenced_wants_fence(struct check_run *run)
{
    struct registrant r;
    live(run, &r);
    registrant_expect(&r, "wants fence", &FENCE, IS_FENCED);
    registrant_expect(&r, "wants nothing", &NOTHING, IS_UNFENCED);
}

static void unfenced_wants_both(struct check_run *run)
{
    struct registrant r;
    live(run, &r);
    registrant_expect(&r, "wants both", &BOTH, IS_DOWN);
}

static void unfenced_shuts_down(struct check_run *run)
{
    struct registrant r;
    live(run, &r);
    registrant_expect(&r, "leads nothing", &SHUT_DOWN, IS_DOWN);
    registrant_expect(&r, "comes back", &NOTHING, IS_UNFENCED);
}

/* Two live brokers and a topic on both, led by the first. */
struct two {
    struct registrant a, b;
    struct uuid topic;
};

static void led(struct check_run *run, struct two *two)
{
    struct registrant *const both[] = {&two->a, &two->b};
    registrant_init(&two->a, run, 0);
    registrant_init(&two->b, run, 1);
    registrant_live(&two->a);
    registrant_live(&two->b);
    run_need(run, "creation of the topic", KAFKA_NONE, registrant_topic(both, 2, &two->topic));
}

/* Beat until it may go: other brokers of the cluster must have read on as well. */
static void drained(struct registrant *r, const struct registrant_beat *beat)
{
    int64_t limit_ms = peer_now_ms() + 2 * REGISTRANT_SESSION_MS;
    bool may_go = false;
    while (!r->run->over && !may_go && peer_now_ms() < limit_ms) {
        const struct broker_heartbeat_response *answer = registrant_beat(r, beat);
        run_need(r->run, "beat that waits for the others", KAFKA_NONE, answer->error_code);
        may_go = answer->should_shut_down;
        run_need_true(r->run, "it is fenced when it may go, not before",
                      r->run->over || answer->is_fenced == may_go);
        if (!may_go) run_wait(r->run, PAUSE_MS);
    }
    run_expect_text(r->run, "all others have read on", "may go",
                    may_go ? VIEW("may go") : VIEW("is held"));
}

static void leader_shuts_down(struct check_run *run)
{
    struct two two;
    led(run, &two);
    struct registrant_beat behind = {.offset = two.b.epoch};
    registrant_expect(&two.b, "the other stays behind", &behind, IS_UNFENCED);
    registrant_expect(&two.a, "leads one", &SHUT_DOWN, IS_UNFENCED);
    registrant_expect(&two.a, "leads none, the other is behind", &SHUT_DOWN, IS_UNFENCED);
    run_wait(run, 2500); /* Brokers that are not ours have beaten. */
    registrant_expect(&two.a, "leads none, the other is still behind", &SHUT_DOWN, IS_UNFENCED);
    registrant_expect(&two.b, "the other has read on", &NOTHING, IS_UNFENCED);
    drained(&two.a, &SHUT_DOWN);
}

static void shutdown_is_not_withdrawn(struct check_run *run)
{
    struct two two;
    led(run, &two);
    struct registrant_beat behind = {.offset = two.b.epoch};
    registrant_expect(&two.b, "the other stays behind", &behind, IS_UNFENCED);
    registrant_expect(&two.a, "leads one", &SHUT_DOWN, IS_UNFENCED);
    registrant_expect(&two.a, "wants nothing any more", &NOTHING, IS_UNFENCED);
    registrant_expect(&two.a, "wants fence", &FENCE, IS_UNFENCED);
    registrant_expect(&two.b, "the other has read on", &NOTHING, IS_UNFENCED);
    drained(&two.a, &NOTHING);
}

static void only_replica_shuts_down(struct check_run *run)
{
    struct registrant r;
    struct registrant *const alone[] = {&r};
    live(run, &r);
    run_need(run, "creation of the topic", KAFKA_NONE, registrant_topic(alone, 1, NULL));
    registrant_expect(&r, "leads one that nobody else has", &SHUT_DOWN, IS_UNFENCED);
    drained(&r, &SHUT_DOWN);
}

static void fence_moves_leaders(struct check_run *run)
{
    struct two two;
    led(run, &two);
    registrant_expect(&two.a, "the leader wants fence", &FENCE, IS_FENCED);
    registrant_expect(&two.a, "is back", &NOTHING, IS_UNFENCED);
    registrant_expect(&two.a, "leads none any more", &SHUT_DOWN, IS_DOWN);
}

/* ---- errors -----------------------------------------------------------------------------------
 */

static void expect_stale(struct registrant *r, const char *what)
{
    const struct broker_heartbeat_response *answer = registrant_beat(r, &NOTHING);
    run_expect(r->run, what, KAFKA_STALE_BROKER_EPOCH, answer->error_code);
    run_need_true(r->run, "its other fields have their defaults",
                  r->run->over ||
                      (!answer->is_caught_up && answer->is_fenced && !answer->should_shut_down));
}

static void unknown_broker(struct check_run *run)
{
    struct registrant r;
    registrant_init(&r, run, 0);
    r.epoch = 5;
    expect_stale(&r, "beat");
}

static void wrong_epoch(struct check_run *run)
{
    struct registrant r;
    live(run, &r);
    r.epoch--;
    expect_stale(&r, "an older epoch");
    r.epoch += 2;
    expect_stale(&r, "a newer epoch");
    r.epoch = -1;
    expect_stale(&r, "no epoch");
}

static void stale_elsewhere(struct check_run *run)
{
    struct two two;
    led(run, &two);
    struct allocate_producer_ids_request *ask = run_new(run, &wire_allocate_producer_ids_request);
    ask->broker_id = two.a.id;
    ask->broker_epoch = two.a.epoch - 1;
    int16_t version = run_version(run, &wire_allocate_producer_ids_request, 0);
    const struct allocate_producer_ids_response *answer =
        run_call(run, two.a.peer, &wire_allocate_producer_ids_request, version, ask);
    run_expect(run, "AllocateProducerIds", KAFKA_STALE_BROKER_EPOCH, answer->error_code);
    two.a.epoch--;
    run_expect(run, "AssignReplicasToDirs", KAFKA_STALE_BROKER_EPOCH,
               registrant_assign(&two.a, two.topic, two.a.dirs[0]));
}

static void unregistered(struct check_run *run)
{
    struct registrant r;
    live(run, &r);
    int64_t before = r.epoch;
    run_expect(run, "UnregisterBroker of a live one", KAFKA_NONE, registrant_unregister(&r));
    expect_stale(&r, "beat");
    run_expect(run, "UnregisterBroker again", KAFKA_BROKER_ID_NOT_REGISTERED,
               registrant_unregister(&r));
    registrant_restart(&r);
    run_expect(run, "another incarnation registers", KAFKA_NONE, registrant_register(&r));
    run_need_true(run, "its epoch is newer", run->over || r.epoch > before);
}

static void not_from_outside(struct check_run *run)
{
    run_skip(run, "no broker can bring a controller there");
}

/* ---- sessions ---------------------------------------------------------------------------------
 */

/* A beat with nothing read tells whether the broker was fenced, and does not unfence it. */
static void expect_was_fenced(struct registrant *r, const char *what, bool fenced)
{
    struct registrant_beat beat = {.offset = 0};
    registrant_expect(r, what, &beat, (struct registrant_flags){false, fenced, false});
}

static void silence_short(struct check_run *run)
{
    struct registrant r;
    live(run, &r);
    run_wait(run, SESSION_MS - 1000);
    expect_was_fenced(&r, "after 8 s of silence", false);
}

static void silence_long(struct check_run *run)
{
    struct registrant r;
    live(run, &r);
    run_wait(run, SESSION_MS + LATE_MS);
    expect_was_fenced(&r, "after 11.5 s of silence", true);
    registrant_expect(&r, "is back", &NOTHING, IS_UNFENCED);
}

static void beats_keep(struct check_run *run)
{
    struct registrant r;
    live(run, &r);
    for (int i = 0; i < 7; i++) {
        run_wait(run, 2000);
        registrant_expect(&r, "a beat every two seconds", &NOTHING, IS_UNFENCED);
    }
    expect_was_fenced(&r, "after 14 s", false);
}

static void stale_beats_keep_nobody(struct check_run *run)
{
    struct registrant r, stale;
    live(run, &r);
    stale = r;
    stale.epoch--;
    for (int64_t end_ms = peer_now_ms() + SESSION_MS + LATE_MS;
         !run->over && peer_now_ms() < end_ms; run_wait(run, 1000))
        run_need(run, "beat of another epoch", KAFKA_STALE_BROKER_EPOCH,
                 registrant_beat(&stale, &NOTHING)->error_code);
    expect_was_fenced(&r, "the session of the real epoch", true);
}

static void silence_moves_leaders(struct check_run *run)
{
    struct two two;
    led(run, &two);
    for (int64_t end_ms = peer_now_ms() + SESSION_MS + LATE_MS;
         !run->over && peer_now_ms() < end_ms; run_wait(run, 1000))
        registrant_expect(&two.b, "the other beats", &NOTHING, IS_UNFENCED);
    registrant_expect(&two.a, "the leader is back", &NOTHING, IS_UNFENCED);
    registrant_expect(&two.a, "leads none any more", &SHUT_DOWN, IS_DOWN);
    registrant_expect(&two.b, "the other leads", &SHUT_DOWN, IS_UNFENCED);
}

/* How long another incarnation is refused, from a beat on. */
static void refused_for_a_session(struct registrant *r, int64_t beat_ms)
{
    int16_t error;
    int64_t epoch = r->epoch;
    registrant_restart(r);
    run_expect(r->run, "another incarnation at once", KAFKA_DUPLICATE_BROKER_REGISTRATION,
               registrant_register(r));
    run_until(r->run, beat_ms + SESSION_MS - 1000);
    run_expect(r->run, "at 8 s", KAFKA_DUPLICATE_BROKER_REGISTRATION, registrant_register(r));
    do {
        run_wait(r->run, 100);
        error = registrant_register(r);
    } while (!r->run->over && error == KAFKA_DUPLICATE_BROKER_REGISTRATION &&
             peer_now_ms() < beat_ms + 2 * SESSION_MS);
    run_expect(r->run, "after the session", KAFKA_NONE, error);
    run_expect_within(r->run, "the session",
                      (struct run_span){SESSION_MS - EARLY_MS, SESSION_MS + LATE_MS},
                      peer_now_ms() - beat_ms);
    run_need_true(r->run, "its epoch is newer", r->run->over || r->epoch > epoch);
    registrant_expect(r, "it begins fenced", &FENCE, IS_FENCED);
}

static void duplicate_unfenced(struct check_run *run)
{
    struct registrant r;
    live(run, &r);
    int64_t beat_ms = peer_now_ms();
    registrant_expect(&r, "beat", &NOTHING, IS_UNFENCED);
    refused_for_a_session(&r, beat_ms);
}

/* Apache Kafka keeps the session of a broker that it told to stop; a controller may also end it, as
 * Dohle's does (docs/decisions/0014): then the next incarnation registers at once. */
static void duplicate_fenced(struct check_run *run)
{
    struct registrant r;
    live(run, &r);
    int64_t beat_ms = peer_now_ms(), epoch = r.epoch;
    registrant_expect(&r, "shut down cleanly", &SHUT_DOWN, IS_DOWN);
    struct registrant next = r;
    registrant_restart(&next);
    if (registrant_register(&next) != KAFKA_NONE) {
        refused_for_a_session(&r, beat_ms);
        return;
    }
    run_need_true(run, "its epoch is newer", run->over || next.epoch > epoch);
    registrant_expect(&next, "it begins fenced", &FENCE, IS_FENCED);
    run_expect(run, "a beat of the one that stopped", KAFKA_STALE_BROKER_EPOCH,
               registrant_beat(&r, &SHUT_DOWN)->error_code);
}

static void duplicate_expired(struct check_run *run)
{
    struct registrant r;
    live(run, &r);
    run_wait(run, SESSION_MS + LATE_MS);
    registrant_restart(&r);
    run_expect(run, "another incarnation after expiry", KAFKA_NONE, registrant_register(&r));
}

static void never_beat(struct check_run *run)
{
    struct registrant r;
    fenced(run, &r);
    int64_t epoch = r.epoch;
    registrant_restart(&r);
    run_expect(run, "another incarnation", KAFKA_NONE, registrant_register(&r));
    run_need_true(run, "its epoch is newer", run->over || r.epoch > epoch);
}

static void same_incarnation(struct check_run *run)
{
    struct registrant r;
    live(run, &r);
    int64_t epoch = r.epoch;
    run_expect(run, "the same incarnation again", KAFKA_NONE, registrant_register(&r));
    run_need_true(run, "the epoch is kept", run->over || r.epoch == epoch);
    struct registrant_beat beat = {.offset = epoch};
    registrant_expect(&r, "the newer registration is not read", &beat,
                      (struct registrant_flags){false, false, false});
    registrant_expect(&r, "it is read", &NOTHING, IS_UNFENCED);
}

/* ---- registration -----------------------------------------------------------------------------
 */

static void wrong_cluster(struct check_run *run)
{
    struct registrant r;
    registrant_init(&r, run, 0);
    r.cluster_id = VIEW("another-cluster");
    run_expect(run, "another cluster's id", KAFKA_INCONSISTENT_CLUSTER_ID, registrant_register(&r));
    r.epoch = 0;
    expect_stale(&r, "nothing was registered");
}

static void migrating(struct check_run *run)
{
    struct registrant r;
    registrant_init(&r, run, 0);
    r.migrating = true;
    run_expect(run, "a broker of ZooKeeper's time", KAFKA_BROKER_ID_NOT_REGISTERED,
               registrant_register(&r));
}

static struct registrant_feature *feature(struct registrant *r, const char *name)
{
    for (uint32_t i = 0; i < r->feature_count; i++)
        if (view_is(r->features[i].name, name)) return &r->features[i];
    run_fail(r->run, "the controller has no finalized %s", name);
    return &r->features[0];
}

static void forget_feature(struct registrant *r, const char *name)
{
    struct registrant_feature *gone = feature(r, name);
    if (!r->run->over) *gone = r->features[--r->feature_count];
}

static void features(struct check_run *run)
{
    struct registrant r;
    registrant_init(&r, run, 0);
    struct registrant_feature *version = feature(&r, "metadata.version");
    int16_t level = version->max;
    version->min = version->max = (int16_t)(level - 1);
    run_expect(run, "a lower metadata.version", KAFKA_UNSUPPORTED_VERSION, registrant_register(&r));
    version->min = version->max = (int16_t)(level + 1);
    run_expect(run, "a higher metadata.version", KAFKA_UNSUPPORTED_VERSION,
               registrant_register(&r));
    version->min = 7;
    run_expect(run, "a range that holds it", KAFKA_NONE, registrant_register(&r));
}

static void feature_left_out(struct check_run *run)
{
    struct registrant r;
    registrant_init(&r, run, 0);
    forget_feature(&r, "group.version");
    run_expect(run, "no group.version", KAFKA_UNSUPPORTED_VERSION, registrant_register(&r));
}

static void version_left_out(struct check_run *run)
{
    struct registrant r;
    registrant_init(&r, run, 0);
    forget_feature(&r, "metadata.version");
    run_expect(run, "no metadata.version", KAFKA_INVALID_REGISTRATION, registrant_register(&r));
}

static void feature_unknown(struct check_run *run)
{
    struct registrant r;
    registrant_init(&r, run, 0);
    struct registrant_feature *more = &r.features[r.feature_count++];
    *more = (struct registrant_feature){VIEW("dohle.check"), 1, 7};
    run_expect(run, "from 1 on", KAFKA_UNSUPPORTED_VERSION, registrant_register(&r));
    more->min = 0;
    run_expect(run, "from 0 on", KAFKA_NONE, registrant_register(&r));
}

static void directories(struct check_run *run)
{
    struct registrant r, other;
    registrant_init(&other, run, 1);
    run_need(run, "registration of another", KAFKA_NONE, registrant_register(&other));
    registrant_init(&r, run, 0);
    struct uuid own = r.dirs[0];
    r.dir_count = 0;
    run_expect(run, "none", KAFKA_INVALID_REGISTRATION, registrant_register(&r));
    r.dir_count = 1;
    r.dirs[0] = (struct uuid){{[15] = 1}};
    run_expect(run, "a reserved id", KAFKA_INVALID_REGISTRATION, registrant_register(&r));
    r.dirs[0] = other.dirs[0];
    run_expect(run, "another broker's", KAFKA_INVALID_REGISTRATION, registrant_register(&r));
    r.dir_count = 2;
    r.dirs[0] = r.dirs[1] = own;
    run_expect(run, "one twice", KAFKA_INVALID_REGISTRATION, registrant_register(&r));
    r.dir_count = 1;
    run_expect(run, "one", KAFKA_NONE, registrant_register(&r));
}

/* ---- directories of a live broker -------------------------------------------------------------
 */

static void offline(struct check_run *run, uint32_t dir, struct registrant_flags flags)
{
    struct two two;
    led(run, &two);
    run_need(run, "AssignReplicasToDirs", KAFKA_NONE,
             registrant_assign(&two.a, two.topic, two.a.dirs[0]));
    struct registrant_beat beat = {.offset = CAUGHT_UP, .offline = &two.a.dirs[dir]};
    registrant_expect(&two.a, "reports a dead directory", &beat, IS_UNFENCED);
    registrant_expect(&two.a, "reports it again", &beat, IS_UNFENCED);
    registrant_expect(&two.a, "wants shutdown", &SHUT_DOWN, flags);
}

static void offline_with_leader(struct check_run *run)
{
    offline(run, 0, IS_DOWN);
}

static void offline_without_leader(struct check_run *run)
{
    offline(run, 1, IS_UNFENCED);
}

static void offline_unknown(struct check_run *run)
{
    struct registrant r;
    struct uuid nobodys = {
        {7, 7, 7}
    };
    live(run, &r);
    struct registrant_beat beat = {.offset = CAUGHT_UP, .offline = &nobodys};
    registrant_expect(&r, "reports a directory that it has not", &beat, IS_UNFENCED);
}

static void cordoned(struct check_run *run)
{
    struct registrant r;
    struct registrant *const alone[] = {&r};
    live(run, &r);
    struct registrant_beat beat = {
        .offset = CAUGHT_UP, .cordoned = r.dirs, .cordoned_count = r.dir_count};
    registrant_expect(&r, "all are cordoned", &beat, IS_UNFENCED);
    run_expect(run, "a topic on it", KAFKA_INVALID_REPLICA_ASSIGNMENT,
               registrant_topic(alone, 1, NULL));
    beat.cordoned_count = 1;
    registrant_expect(&r, "one is cordoned", &beat, IS_UNFENCED);
    run_expect(run, "a topic on it", KAFKA_NONE, registrant_topic(alone, 1, NULL));
}

static void no_live_replica(struct check_run *run)
{
    struct registrant r;
    struct registrant *const alone[] = {&r};
    fenced(run, &r);
    run_expect(run, "a topic on a fenced broker", KAFKA_INVALID_REPLICA_ASSIGNMENT,
               registrant_topic(alone, 1, NULL));
    registrant_expect(&r, "unfenced", &NOTHING, IS_UNFENCED);
    run_expect(run, "a topic on it", KAFKA_NONE, registrant_topic(alone, 1, NULL));
}

/* ---- the tables -------------------------------------------------------------------------------
 */

static const struct check_row transitions[] = {
    CHECK_ROW_EACH("fenced, wants fence", "stays fenced, caught up or not", fenced_wants_fence, 0),
    CHECK_ROW_EACH("fenced, wants nothing",
                   "unfenced once its registration is read",
                   fenced_behind,
                   0),
    CHECK_ROW_EACH("fenced, wants shutdown", "may go at once", fenced_shuts_down, 0),
    CHECK_ROW_EACH("unfenced, wants nothing",
                   "stays, also when it falls behind",
                   unfenced_stays,
                   0),
    CHECK_ROW_EACH("unfenced, wants fence",
                   "fenced at once, unfenced at once",
                   unfenced_wants_fence,
                   0),
    CHECK_ROW_EACH("unfenced, wants both", "may go at once", unfenced_wants_both, 0),
    CHECK_ROW_EACH("unfenced, wants shutdown",
                   "may go at once if it leads nothing",
                   unfenced_shuts_down,
                   0),
    CHECK_ROW_EACH("shutdown of a leader",
                   "waits for its leaders and for the others",
                   leader_shuts_down,
                   0),
    CHECK_ROW("shutdown withdrawn", "goes on all the same", shutdown_is_not_withdrawn),
    CHECK_ROW("shutdown of the last", "a partition that nobody else has", only_replica_shuts_down),
    CHECK_ROW("fence of a leader", "the other replica leads", fence_moves_leaders),
};

const struct check_table rows_broker_transitions = {
    "BrokerHeartbeat: the transition table",
    transitions,
    ARRAY_SIZE(transitions),
};

static const struct check_row errors[] = {
    CHECK_ROW_EACH("unknown broker", "STALE_BROKER_EPOCH, fenced", unknown_broker, 0),
    CHECK_ROW_EACH("wrong epoch", "STALE_BROKER_EPOCH, fenced", wrong_epoch, 0),
    CHECK_ROW("stale elsewhere", "AllocateProducerIds, AssignReplicasToDirs", stale_elsewhere),
    CHECK_ROW("unregistered", "a live broker is taken out; it may come back", unregistered),
    CHECK_ROW("not the controller", "NOT_CONTROLLER", not_from_outside),
    CHECK_ROW("waited too long", "REQUEST_TIMED_OUT", not_from_outside),
    CHECK_ROW("no ClusterAction", "CLUSTER_AUTHORIZATION_FAILED", not_from_outside),
};

const struct check_table rows_broker_errors = {
    "BrokerHeartbeat: errors",
    errors,
    ARRAY_SIZE(errors),
};

static const struct check_row sessions[] = {
    CHECK_ROW_EACH("8 s of silence", "is no reason to fence", silence_short, 0),
    CHECK_ROW_EACH("11.5 s of silence", "fenced; a beat brings it back", silence_long, 0),
    CHECK_ROW("14 s of beats", "nobody is fenced who speaks", beats_keep),
    CHECK_ROW("beats of another epoch", "keep nobody", stale_beats_keep_nobody),
    CHECK_ROW("silence of a leader", "the other replica leads", silence_moves_leaders),
    CHECK_ROW("T11a", "another incarnation of a live broker waits a session", duplicate_unfenced),
    CHECK_ROW("T11d", "the same incarnation registers again", same_incarnation),
    CHECK_ROW("T11e",
              "after a clean stop: a session is waited for, or none is held",
              duplicate_fenced),
    CHECK_ROW("T11f", "another incarnation of an expired broker", duplicate_expired),
    CHECK_ROW("T11g", "another incarnation of one that never beat", never_beat),
};

const struct check_table rows_broker_sessions = {
    "Sessions and incarnations of brokers",
    sessions,
    ARRAY_SIZE(sessions),
};

static const struct check_row registrations[] = {
    CHECK_ROW("T8 cluster", "another cluster's broker", wrong_cluster),
    CHECK_ROW("T8 migration", "a broker of ZooKeeper's time", migrating),
    CHECK_ROW("T9 metadata.version", "the level must be in the broker's range", features),
    CHECK_ROW("T9 missing", "a feature in force that the broker does not have", feature_left_out),
    CHECK_ROW("T9 none", "a broker without metadata.version", version_left_out),
    CHECK_ROW("T9 unknown", "a feature that the controller does not know", feature_unknown),
    CHECK_ROW("T10", "which log directories may register", directories),
};

const struct check_table rows_broker_registration = {
    "BrokerRegistration",
    registrations,
    ARRAY_SIZE(registrations),
};

static const struct check_row dirs[] = {
    CHECK_ROW_EACH("T25 leader", "leaders leave a dead directory", offline_with_leader, 1),
    CHECK_ROW_EACH("T25 other", "leaders elsewhere stay", offline_without_leader, 1),
    CHECK_ROW_EACH("T25 unknown", "a directory that is not the broker's", offline_unknown, 1),
    CHECK_ROW_EACH("cordoned", "cordoned directories take no new replica", cordoned, 2),
    CHECK_ROW("no live replica", "no topic on fenced brokers alone", no_live_replica),
};

const struct check_table rows_broker_dirs = {
    "Directories and placement",
    dirs,
    ARRAY_SIZE(dirs),
};
