/* rows_static.c - static members of classic groups: coming back, fencing, staying away. */
#include "check/classic.h"
#include "check/rows.h"

/* L leads as "i1", F follows as "i2"; both stable in generation 1. */
struct scene {
    struct classic l, f;
};

static void build(struct check_run *run, struct scene *scene)
{
    struct classic *const both[] = {&scene->l, &scene->f};
    classic_init(&scene->l, run, "i1");
    classic_init(&scene->f, run, "i2");
    scene->l.rebalance_ms = scene->f.rebalance_ms = 10000;
    classic_stable(both, 2);
    if (!view_equal(scene->l.leader, scene->l.id)) { /* The other's join was the first to arrive. */
        struct classic l = scene->f;
        scene->f = scene->l;
        scene->l = l;
    }
}

/* The member comes back as a process that knows nothing of its id; its old self stays in `old`. */
static void forget(struct classic *m, struct classic *old)
{
    *old = *m;
    m->id = VIEW_EMPTY;
    m->work = run_peer(m->run);
}

static void first_join(struct check_run *run)
{
    struct classic a;
    classic_init(&a, run, "i1");
    run_expect(run, "join", KAFKA_NONE, classic_join(&a));
    run_expect_number(run, "generation", 1, a.generation);
    run_need_true(run, "the id begins with the instance",
                  run->over || (a.id.size == 3 + 36 && memcmp(a.id.data, "i1-", 3) == 0));
}

static void leader_returns(struct check_run *run)
{
    struct scene scene;
    struct classic old;
    build(run, &scene);
    forget(&scene.l, &old);
    classic_join_send(&scene.l);
    const struct join_group_response *answer = classic_join_take(&scene.l);
    run_expect(run, "join", KAFKA_NONE, answer->error_code);
    run_expect_number(run, "generation", 1, answer->generation_id);
    run_need_true(run, "it leads under its new id",
                  run->over || view_equal(answer->leader, scene.l.id));
    run_expect_number(run, "members", 2, answer->members.count);
    run_expect_number(run, "skip the assignment", 1, answer->skip_assignment);
    run_expect(run, "beat of the follower: no rebalance", KAFKA_NONE, classic_beat(&scene.f, 3));
    run_expect(run, "beat of the old id", KAFKA_FENCED_INSTANCE_ID, classic_beat(&old, 3));
    run_expect(run, "beat of the new id", KAFKA_NONE, classic_beat(&scene.l, 3));
}

static void leader_returns_old(struct check_run *run)
{
    struct scene scene;
    struct classic old;
    struct view assignment = VIEW_EMPTY;
    build(run, &scene);
    forget(&scene.l, &old);
    scene.l.join_version = 8;
    classic_join_send(&scene.l);
    const struct join_group_response *answer = classic_join_take(&scene.l);
    run_expect(run, "join", KAFKA_NONE, answer->error_code);
    run_need_true(run, "the leader is its old id", run->over || view_equal(answer->leader, old.id));
    run_expect_number(run, "members", 0, answer->members.count);
    classic_sync_send(&scene.l, NULL, 0);
    run_expect(run, "sync", KAFKA_NONE, classic_sync_take(&scene.l, &assignment));
    run_expect_text(run, "its old assignment", "assigned", assignment);
}

static void follower_returns(struct check_run *run)
{
    struct scene scene;
    struct classic old;
    build(run, &scene);
    forget(&scene.f, &old);
    classic_join_send(&scene.f);
    const struct join_group_response *answer = classic_join_take(&scene.f);
    run_expect(run, "join", KAFKA_NONE, answer->error_code);
    run_expect_number(run, "generation", 1, answer->generation_id);
    run_expect_number(run, "members", 0, answer->members.count);
    run_expect_number(run, "skip the assignment", 0, answer->skip_assignment);
    run_expect(run, "beat of the leader: no rebalance", KAFKA_NONE, classic_beat(&scene.l, 3));
}

static void changed_selection(struct check_run *run)
{
    struct scene scene;
    struct classic old;
    classic_init(&scene.l, run, "i1");
    classic_init(&scene.f, run, "i2");
    struct classic *const both[] = {&scene.l, &scene.f};
    scene.l.protocols[1] = scene.f.protocols[1] = "roundrobin";
    classic_stable(both, 2);
    forget(&scene.f, &old);
    scene.f.protocols[0] = "roundrobin";
    scene.f.protocols[1] = NULL;
    classic_join_send(&scene.f);
    run_expect(run, "beat of the leader", KAFKA_REBALANCE_IN_PROGRESS,
               classic_beat_changed(&scene.l, 3));
}

static void returns_before_the_sync(struct check_run *run)
{
    struct scene scene;
    struct classic old;
    classic_init(&scene.l, run, "i1");
    classic_init(&scene.f, run, "i2");
    classic_enter(&scene.l);
    classic_enter(&scene.f);
    classic_joined(&scene.l, "join");
    classic_joined(&scene.f, "join");
    classic_sync_send(&scene.f, NULL, 0);
    run_wait(run, 100);
    forget(&scene.l, &old);
    classic_join_send(&scene.l);
    run_expect(run, "parked sync of the follower", KAFKA_REBALANCE_IN_PROGRESS,
               classic_sync_take(&scene.f, NULL));
}

static void returns_in_rebalance(struct check_run *run)
{
    struct scene scene;
    struct classic old;
    build(run, &scene);
    scene.f.metadata = VIEW("\0\1\0\0\0\0\0\0\0\0\0\0\0\0");
    scene.l.metadata = scene.f.metadata;
    classic_join_send(&scene.l);
    run_wait(run, 100);
    forget(&scene.l, &old);
    classic_join_send(&scene.l);
    const struct join_group_response *answer = classic_join_take(&old);
    run_expect(run, "parked join of the old id", KAFKA_FENCED_INSTANCE_ID, answer->error_code);
    classic_join_send(&scene.f);
    run_expect(run, "join of the follower", KAFKA_NONE, classic_join_take(&scene.f)->error_code);
    run_expect(run, "join of the new id", KAFKA_NONE, classic_join_take(&scene.l)->error_code);
    run_expect_number(run, "generation", 2, scene.l.generation);
}

static void kept_without_joining(struct check_run *run)
{
    struct scene scene;
    struct classic d;
    build(run, &scene);
    classic_init(&d, run, NULL);
    d.rebalance_ms = 10000;
    int64_t start_ms = peer_now_ms();
    classic_enter(&d);
    const struct join_group_response *answer = classic_join_take(&d);
    run_expect(run, "join of another", KAFKA_NONE, answer->error_code);
    run_expect_within(run, "end of the rebalance", (struct run_span){9950, 14000},
                      peer_now_ms() - start_ms);
    run_expect_number(run, "generation", 2, answer->generation_id);
    run_expect_number(run, "members: the static ones are kept", 3, answer->members.count);
    run_need_true(run, "it leads", run->over || view_equal(answer->leader, d.id));
}

static void fenced_everywhere(struct check_run *run)
{
    struct scene scene;
    struct classic old, without;
    build(run, &scene);
    forget(&scene.l, &old);
    run_need(run, "join of a static member that comes back", KAFKA_NONE, classic_join(&scene.l));
    run_expect(run, "sync", KAFKA_FENCED_INSTANCE_ID, classic_sync(&old));
    run_expect(run, "join", KAFKA_FENCED_INSTANCE_ID, classic_join(&old));
    run_expect(run, "leave", KAFKA_FENCED_INSTANCE_ID, classic_leave(&old));
    without = old;
    without.instance = VIEW_NULL;
    run_expect(run, "sync without instance", KAFKA_UNKNOWN_MEMBER_ID, classic_sync(&without));
    run_expect(run, "join without instance", KAFKA_UNKNOWN_MEMBER_ID, classic_join(&without));
}

static void leave_by_instance(struct check_run *run)
{
    struct scene scene;
    build(run, &scene);
    struct view id = scene.f.id;
    scene.f.id = VIEW_EMPTY;
    run_expect(run, "leave by instance alone", KAFKA_NONE, classic_leave(&scene.f));
    run_expect(run, "again", KAFKA_UNKNOWN_MEMBER_ID, classic_leave(&scene.f));
    scene.f.id = id;
    run_expect(run, "beat of who left", KAFKA_UNKNOWN_MEMBER_ID, classic_beat(&scene.f, 3));
    run_expect(run, "beat of who stays", KAFKA_REBALANCE_IN_PROGRESS, classic_beat(&scene.l, 3));
}

static void silent_in_rebalance(struct check_run *run)
{
    struct classic l, d;
    struct classic *const both[] = {&l, &d};
    classic_init(&l, run, "i1");
    classic_init(&d, run, NULL);
    l.session_ms = 12000;
    l.rebalance_ms = d.rebalance_ms = CLASSIC_SESSION_MIN_MS;
    classic_stable(both, 2);
    int64_t start_ms = peer_now_ms();
    run_expect(run, "beat", KAFKA_NONE, classic_beat(&l, 3));
    run_expect(run, "leave of the other", KAFKA_NONE, classic_leave(&d));
    run_until(run, start_ms + 9000);
    /* A refused sync tells the state without keeping the session. */
    run_expect(run, "state after the rebalance's limit", KAFKA_REBALANCE_IN_PROGRESS,
               classic_sync(&l));
    run_until(run, start_ms + 16000);
    run_expect(run, "after the session", KAFKA_UNKNOWN_MEMBER_ID, classic_beat(&l, 3));
}

static const struct check_row rows[] = {
    CHECK_ROW("T73", "a static member needs no second join", first_join),
    CHECK_ROW("T74", "the leader comes back: new id, no rebalance", leader_returns),
    CHECK_ROW("T75", "the leader comes back by an old join", leader_returns_old),
    CHECK_ROW("T76", "a follower comes back: new id, no rebalance", follower_returns),
    CHECK_ROW("T78", "who comes back changes the protocol: a rebalance", changed_selection),
    CHECK_ROW("T79", "the leader comes back before its sync", returns_before_the_sync),
    CHECK_ROW("T80", "who comes back fences its parked join", returns_in_rebalance),
    CHECK_ROW("T81", "a rebalance keeps static members that stay away", kept_without_joining),
    CHECK_ROW("T82", "a static member alone is kept until its session ends", silent_in_rebalance),
    CHECK_ROW("T83", "the old id is fenced everywhere", fenced_everywhere),
    CHECK_ROW("T64", "a leave by instance alone", leave_by_instance),
};

const struct check_table rows_static = {
    "Static members of a classic group",
    rows,
    ARRAY_SIZE(rows),
};
