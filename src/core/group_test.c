/* group_test.c - classic groups: every row of the Heartbeat tables, and
 * narrated procedures: joins, rebalances, static members, timers, failed appends, offsets. */
#include "core/core_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/group_internal.h"
#include "core/offsets.h"
#include "gen/join_group_request.h"
#include "gen/join_group_response.h"
#include "gen/leave_group_request.h"
#include "gen/leave_group_response.h"
#include "gen/offset_commit_request.h"
#include "gen/sync_group_request.h"
#include "gen/sync_group_response.h"

#define CALLS 32

struct call {
    struct group_wait wait;
    struct join_group_response join;
    struct sync_group_response sync;
    bool answered;
};

struct rig {
    struct rig_mem heap;
    struct arena arena;
    struct groups *groups;
    struct call calls[CALLS];
    int call_count;
    int64_t now;
    int64_t offset;
    enum kafka_error append; /* What the next appends come to. */
    uint32_t records;        /* Appended so far. */
};

static const struct group_options options = {
    .session_min_ms = 1000,
    .session_max_ms = 1800000,
    .initial_delay_ms = 3000,
    .size_max = 3,
    .metadata_max_bytes = 4096,
    .retention_ms = 604800000,
};

static int rig_setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    rig_mem_init(&rig->heap);
    arena_init(&rig->arena, &rig->heap.mem, 0);
    rig->groups = groups_new(&rig->heap.mem, &options, 7, 0);
    assert_non_null(rig->groups);
    *state = rig;
    return 0;
}

static void rig_answers(struct rig *rig)
{
    struct group_wait *wait;
    while ((wait = groups_answer(rig->groups)) != NULL) {
        struct call *call = container_of(wait, struct call, wait);
        assert_false(call->answered);
        call->answered = true;
    }
}

static int rig_teardown(void **state)
{
    struct rig *rig = *state;
    groups_unload(rig->groups, KAFKA_NOT_COORDINATOR);
    rig_answers(rig);
    groups_free(rig->groups);
    arena_free(&rig->arena);
    assert_int_equal(rig->heap.mem.used_bytes, 0);
    free(rig);
    return 0;
}

static void rig_step(struct rig *rig, struct step *step, int16_t version)
{
    step_begin(step, &rig->arena, rig->now, 1000000 + rig->now);
    step->random[0] = (uint64_t)rig->now * 77 + (uint64_t)rig->call_count + 1;
    step->caller.version = version;
}

static void rig_commit(struct rig *rig, const struct step *step)
{
    if (step->record_count > 0 && rig->append != KAFKA_NONE) {
        groups_failed(rig->groups, step, rig->append);
    } else if (step->record_count > 0) {
        assert_int_equal(groups_apply(rig->groups, step, rig->offset), GROUPS_OK);
        rig->offset += step->record_count;
        rig->records += step->record_count;
    }
    rig_answers(rig);
}

/* Let time pass; deadlines on the way are acted on when they are due. */
static void rig_until(struct rig *rig, int64_t at)
{
    for (; rig->now < at; rig->now++) {
        struct step step;
        for (;;) {
            rig_step(rig, &step, 0);
            if (!groups_tick(rig->groups, &step)) break;
            rig_commit(rig, &step);
        }
    }
    struct step step;
    for (;;) {
        rig_step(rig, &step, 0);
        if (!groups_tick(rig->groups, &step)) break;
        rig_commit(rig, &step);
    }
}

static struct call *rig_call(struct rig *rig, bool join, int16_t version)
{
    assert_true(rig->call_count < CALLS);
    struct call *call = &rig->calls[rig->call_count++];
    call->wait = (struct group_wait){
        .arena = &rig->arena,
        .version = version,
        .join = join ? &call->join : NULL,
        .sync = join ? NULL : &call->sync,
    };
    return call;
}

struct wish {
    const char *id;
    const char *instance; /* NULL: dynamic. */
    const char *protocols;
    int16_t version;
    int32_t session, rebalance;
    const char *metadata;
};

static struct call *join(struct rig *rig, struct wish wish)
{
    int16_t version = wish.version != 0 ? wish.version : 3;
    struct call *call = rig_call(rig, true, version);
    struct join_group_request_join_group_request_protocol items[4];
    const char *names = wish.protocols != NULL ? wish.protocols : "range";
    struct join_group_request in;
    wire_defaults(&wire_join_group_request, &in);
    in.group_id = VIEW("g");
    in.member_id = view_of_string(wish.id != NULL ? wish.id : "");
    in.group_instance_id = view_of_string(wish.instance);
    in.session_timeout_ms = wish.session != 0 ? wish.session : 5000;
    in.rebalance_timeout_ms = wish.rebalance != 0 ? wish.rebalance : 10000;
    in.protocol_type = VIEW("consumer");
    in.protocols.items = items;
    in.protocols.count = 0;
    while (*names != '\0') {
        uint32_t size = 0;
        while (names[size] != ',' && names[size] != '\0')
            size++;
        items[in.protocols.count++] = (struct join_group_request_join_group_request_protocol){
            .name = view_of(names, size),
            .metadata = view_of_string(wish.metadata != NULL ? wish.metadata : "m")};
        names += size + (names[size] == ',');
    }
    struct group_join ask = {
        .request = &in, .client_id = VIEW("app"), .client_host = VIEW("/here")};
    struct step step;
    rig_step(rig, &step, version);
    assert_int_equal(group_join(rig->groups, &step, &ask, &call->wait), STEP_DONE);
    rig_commit(rig, &step);
    return call;
}

static const char *id_of(struct rig *rig, const struct call *call)
{
    char *text = arena_get(&rig->arena, call->join.member_id.size + 1u);
    assert_non_null(text);
    memcpy(text, call->join.member_id.data, call->join.member_id.size);
    return text;
}

static struct call *sync_with(struct rig *rig, int32_t generation, const char *id, bool leader)
{
    struct call *call = rig_call(rig, false, 3);
    struct sync_group_request_sync_group_request_assignment item = {.member_id = view_of_string(id),
                                                                    .assignment = VIEW("mine")};
    struct sync_group_request in;
    struct step step;
    wire_defaults(&wire_sync_group_request, &in);
    in.group_id = VIEW("g");
    in.generation_id = generation;
    in.member_id = view_of_string(id);
    if (leader) in.assignments.items = &item;
    in.assignments.count = leader;
    rig_step(rig, &step, 3);
    assert_int_equal(group_sync(rig->groups, &step, &in, &call->wait), STEP_DONE);
    rig_commit(rig, &step);
    return call;
}

static int beat(struct rig *rig, int32_t generation, const char *id, const char *instance)
{
    struct group_beat in = {
        .group_id = VIEW("g"),
        .member_id = view_of_string(id),
        .instance_id = view_of_string(instance),
        .generation = generation,
        .arrived_ms = rig->now,
    };
    return group_heartbeat(rig->groups, &in);
}

static int leave(struct rig *rig, const char *id, const char *instance)
{
    struct leave_group_request_member_identity member = {
        .member_id = view_of_string(id), .group_instance_id = view_of_string(instance)};
    struct leave_group_request in;
    struct leave_group_response out;
    struct step step;
    wire_defaults(&wire_leave_group_request, &in);
    wire_defaults(&wire_leave_group_response, &out);
    in.group_id = VIEW("g");
    in.members.items = &member;
    in.members.count = 1;
    rig_step(rig, &step, 5);
    assert_int_equal(group_leave(rig->groups, &step, &in, &out), STEP_DONE);
    rig_commit(rig, &step);
    return out.members.items[0].error_code;
}

static struct group *group_of(struct rig *rig)
{
    return groups_find(rig->groups, VIEW("g"));
}

/* St1{A*}, rig->now at 3000. */
static const char *stable(struct rig *rig, const char *instance)
{
    struct call *call = join(rig, (struct wish){.instance = instance});
    assert_false(call->answered);
    rig_until(rig, 3000);
    assert_true(call->answered);
    assert_int_equal(call->join.generation_id, 1);
    const char *id = id_of(rig, call);
    struct call *synced = sync_with(rig, 1, id, true);
    assert_true(synced->answered);
    assert_true(view_is(synced->sync.assignment, "mine"));
    assert_int_equal(group_of(rig)->state, GROUP_STABLE);
    return id;
}

/* ---- the tables ------------------------------------------------------------------------------ */

static int64_t deadline(struct rig *rig, const char *id)
{
    const struct member *member = group_member_by_id(group_of(rig), view_of_string(id));
    return member->session.entry.deadline_ms;
}

/* One cell: the answer, and whether the session runs anew. */
static void cell(struct rig *rig,
                 const char *known,
                 int32_t generation,
                 const char *id,
                 const char *instance,
                 int wanted)
{
    int64_t before = deadline(rig, known);
    rig->now++;
    assert_int_equal(beat(rig, generation, id, instance), wanted);
    bool reset = wanted == KAFKA_NONE || wanted == KAFKA_REBALANCE_IN_PROGRESS;
    if (reset)
        assert_int_equal(deadline(rig, id), rig->now + 5000);
    else
        assert_int_equal(deadline(rig, known), before);
}

/* Rows C1 to C14 in the state that the group is in; `good` is what a right beat answers. */
static void rows(struct rig *rig,
                 const char *dynamic,
                 const char *owner,
                 const char *former,
                 int good)
{
    int32_t now = group_of(rig)->generation;
    cell(rig, dynamic, now, dynamic, "nobody", KAFKA_UNKNOWN_MEMBER_ID);  /* C1 */
    cell(rig, dynamic, now + 5, "x", "nobody", KAFKA_UNKNOWN_MEMBER_ID);  /* C1 */
    cell(rig, dynamic, now, dynamic, "i1", KAFKA_FENCED_INSTANCE_ID);     /* C2 */
    cell(rig, dynamic, now + 5, dynamic, "i1", KAFKA_FENCED_INSTANCE_ID); /* C2 */
    cell(rig, dynamic, now, "x", "i1", KAFKA_FENCED_INSTANCE_ID);         /* C4 */
    cell(rig, dynamic, now + 5, "", "i1", KAFKA_FENCED_INSTANCE_ID);      /* C4 */
    cell(rig, owner, now + 1, owner, "i1", KAFKA_ILLEGAL_GENERATION);     /* C5 */
    cell(rig, owner, now, owner, "i1", good);                             /* C6 */
    cell(rig, dynamic, now, "x", NULL, KAFKA_UNKNOWN_MEMBER_ID);          /* C7 */
    cell(rig, dynamic, now + 1, "", NULL, KAFKA_UNKNOWN_MEMBER_ID);       /* C7 */
    cell(rig, dynamic, now + 1, dynamic, NULL, KAFKA_ILLEGAL_GENERATION); /* C9 */
    cell(rig, dynamic, -1, dynamic, NULL, KAFKA_ILLEGAL_GENERATION);      /* C9 */
    cell(rig, dynamic, now, dynamic, NULL, good);                         /* C10 */
    cell(rig, owner, now - 1, owner, NULL, KAFKA_ILLEGAL_GENERATION);     /* C11 */
    cell(rig, owner, now, owner, NULL, good);                             /* C12 */
    cell(rig, dynamic, now, former, NULL, KAFKA_UNKNOWN_MEMBER_ID);       /* C13 */
    cell(rig, dynamic, now, former, "i1", KAFKA_FENCED_INSTANCE_ID);      /* C14 */
}

static void heartbeat_tables(void **state)
{
    struct rig *rig = *state;
    /* Layer B and the empty group: no group, then one without members (C1, C7). */
    assert_int_equal(beat(rig, 1, "a", NULL), KAFKA_UNKNOWN_MEMBER_ID);
    struct call *first = join(rig, (struct wish){.version = 5});
    assert_int_equal(first->join.error_code, KAFKA_MEMBER_ID_REQUIRED);
    const char *pending = id_of(rig, first);
    assert_int_equal(beat(rig, 0, pending, NULL), KAFKA_UNKNOWN_MEMBER_ID); /* C8, T19 */
    assert_int_equal(beat(rig, 0, "x", "i1"), KAFKA_UNKNOWN_MEMBER_ID);
    assert_int_equal(leave(rig, pending, NULL), KAFKA_NONE);

    /* A dynamic member and a static one, who has been replaced: COMPLETING, generation 1. */
    struct call *a = join(rig, (struct wish){0});
    struct call *s = join(rig, (struct wish){.instance = "i1"});
    rig_until(rig, 100);
    struct call *again = join(rig, (struct wish){.instance = "i1"});
    assert_int_equal(s->join.error_code, KAFKA_FENCED_INSTANCE_ID);
    const char *former = id_of(rig, s);
    rig_until(rig, 6200);
    assert_true(a->answered && again->answered);
    const char *dynamic = id_of(rig, a), *owner = id_of(rig, again);
    assert_int_equal(group_of(rig)->state, GROUP_COMPLETING);
    rows(rig, dynamic, owner, former, KAFKA_NONE);

    bool a_leads = view_is(a->join.leader, dynamic);
    sync_with(rig, 1, a_leads ? owner : dynamic, false);
    sync_with(rig, 1, a_leads ? dynamic : owner, true);
    assert_int_equal(group_of(rig)->state, GROUP_STABLE);
    rows(rig, dynamic, owner, former, KAFKA_NONE);

    struct call *third = join(rig, (struct wish){.version = 5});
    const char *waiting = id_of(rig, third);
    cell(rig, dynamic, 1, waiting, NULL, KAFKA_UNKNOWN_MEMBER_ID);  /* C8 */
    cell(rig, dynamic, 1, waiting, "i1", KAFKA_FENCED_INSTANCE_ID); /* C3 */
    join(rig, (struct wish){.id = waiting, .version = 5});
    assert_int_equal(group_of(rig)->state, GROUP_PREPARING);
    rows(rig, dynamic, owner, former, KAFKA_REBALANCE_IN_PROGRESS);

    groups_unload(rig->groups, KAFKA_NOT_COORDINATOR);
    rig_answers(rig);
    assert_int_equal(beat(rig, 1, dynamic, NULL), KAFKA_COORDINATOR_NOT_AVAILABLE); /* Dead */
    assert_int_equal(beat(rig, 9, "x", "i1"), KAFKA_COORDINATOR_NOT_AVAILABLE);
}

/* ---- procedures ------------------------------------------------------------------------------ */

/* T16: silent for exactly the session: removed at 10000, not before. */
static void session_expires_on_time(void **state)
{
    struct rig *rig = *state;
    const char *a = stable(rig, NULL);
    rig_until(rig, 5000);
    assert_int_equal(beat(rig, 1, a, NULL), KAFKA_NONE);
    rig_until(rig, 9999);
    assert_int_equal(group_of(rig)->state, GROUP_STABLE);
    rig_until(rig, 10000);
    assert_int_equal(group_of(rig)->state, GROUP_EMPTY);
    assert_int_equal(group_of(rig)->generation, 2);
    assert_int_equal(beat(rig, 1, a, NULL), KAFKA_UNKNOWN_MEMBER_ID);
}

/* T18 and bug row 9: beats keep a member through a rebalance that outlasts its session; who never
 * rejoins goes when the rebalance ends. */
static void long_rebalance(void **state)
{
    struct rig *rig = *state;
    const char *a = stable(rig, NULL);
    struct call *c = join(rig, (struct wish){0});
    assert_int_equal(group_of(rig)->state, GROUP_PREPARING);
    for (int64_t t = 4000; t < 13000; t += 1000) {
        rig_until(rig, t);
        assert_int_equal(beat(rig, 1, a, NULL), KAFKA_REBALANCE_IN_PROGRESS);
    }
    assert_false(c->answered);
    rig_until(rig, 13000);
    assert_true(c->answered);
    assert_int_equal(c->join.generation_id, 2);
    assert_int_equal(c->join.members.count, 1);
    assert_int_equal(beat(rig, 1, a, NULL), KAFKA_UNKNOWN_MEMBER_ID);
}

/* T46, T62: the leader rejoins, the follower is told; a member leaves. */
static void rejoin_and_leave(void **state)
{
    struct rig *rig = *state;
    const char *a = stable(rig, NULL);
    struct call *b = join(rig, (struct wish){0});
    struct call *again = join(rig, (struct wish){.id = a});
    assert_true(b->answered && again->answered);
    assert_int_equal(again->join.members.count, 2);
    assert_int_equal(b->join.members.count, 0);
    const char *second = id_of(rig, b);
    struct call *waits = sync_with(rig, 2, second, false);
    assert_false(waits->answered);
    sync_with(rig, 2, a, true);
    assert_true(waits->answered);
    assert_int_equal(waits->sync.assignment.size, 0);
    assert_int_equal(leave(rig, second, NULL), KAFKA_NONE);
    assert_int_equal(beat(rig, 2, a, NULL), KAFKA_REBALANCE_IN_PROGRESS);
    assert_int_equal(leave(rig, a, NULL), KAFKA_NONE);
    assert_int_equal(group_of(rig)->state, GROUP_EMPTY);
    assert_int_equal(group_of(rig)->generation, 3);
}

/* T39: newcomers extend the initial delay up to the rebalance timeout. */
static void initial_delay(void **state)
{
    struct rig *rig = *state;
    struct call *calls[3];
    const int64_t at[3] = {0, 2500, 5500};
    for (int i = 0; i < 3; i++) {
        rig_until(rig, at[i]);
        calls[i] = join(rig, (struct wish){0});
    }
    rig_until(rig, 8999);
    assert_false(calls[0]->answered);
    rig_until(rig, 9000);
    for (int i = 0; i < 3; i++)
        assert_int_equal(calls[i]->join.generation_id, 1);
}

/* T52: the append of the leader's assignment fails: told so, and the group rebalances. */
static void failed_append(void **state)
{
    struct rig *rig = *state;
    struct call *a = join(rig, (struct wish){0});
    rig_until(rig, 3000);
    rig->append = KAFKA_COORDINATOR_NOT_AVAILABLE;
    struct call *synced = sync_with(rig, 1, id_of(rig, a), true);
    assert_int_equal(synced->sync.error_code, KAFKA_COORDINATOR_NOT_AVAILABLE);
    assert_int_equal(group_of(rig)->state, GROUP_PREPARING);
}

/* A group whose first record is refused never was. */
static void failed_creation(void **state)
{
    struct rig *rig = *state;
    rig->append = KAFKA_COORDINATOR_NOT_AVAILABLE;
    struct call *a = join(rig, (struct wish){0});
    struct call *b = join(rig, (struct wish){.version = 5});
    assert_int_equal(a->join.error_code, KAFKA_COORDINATOR_NOT_AVAILABLE);
    assert_int_equal(b->join.error_code, KAFKA_COORDINATOR_NOT_AVAILABLE);
    assert_null(group_of(rig));
}

/* T74, T75, T77, T83: a static leader comes back, in version 9, in version 8, with a failed append.
 */
static void static_leader_returns(void **state)
{
    struct rig *rig = *state;
    const char *first = stable(rig, "i1");
    rig->append = KAFKA_COORDINATOR_NOT_AVAILABLE;
    struct call *failed = join(rig, (struct wish){.instance = "i1", .version = 9});
    assert_int_equal(failed->join.error_code, KAFKA_COORDINATOR_NOT_AVAILABLE);
    assert_int_equal(beat(rig, 1, first, "i1"), KAFKA_NONE);
    rig->append = KAFKA_NONE;
    struct call *second = join(rig, (struct wish){.instance = "i1", .version = 9, .session = 7000});
    const char *id = id_of(rig, second);
    assert_int_equal(second->join.error_code, KAFKA_NONE);
    assert_int_equal(second->join.generation_id, 1);
    assert_true(second->join.skip_assignment);
    assert_int_equal(second->join.members.count, 1);
    assert_true(view_is(second->join.leader, id));
    assert_int_equal(beat(rig, 1, first, "i1"), KAFKA_FENCED_INSTANCE_ID);
    assert_int_equal(beat(rig, 1, first, NULL), KAFKA_UNKNOWN_MEMBER_ID);
    assert_int_equal(leave(rig, first, "i1"), KAFKA_FENCED_INSTANCE_ID);
    struct call *third = join(rig, (struct wish){.instance = "i1", .version = 8});
    assert_true(view_is(third->join.leader, id));
    assert_int_equal(third->join.members.count, 0);
    struct call *synced = sync_with(rig, 1, id_of(rig, third), false);
    assert_true(view_is(synced->sync.assignment, "mine"));
}

/* T56, T60, T69: nobody syncs; a pending id never comes; too many. */
static void members_that_stay_away(void **state)
{
    struct rig *rig = *state;
    struct call *a = join(rig, (struct wish){.session = 60000});
    struct call *b = join(rig, (struct wish){.session = 60000});
    struct call *c = join(rig, (struct wish){.session = 60000});
    rig_until(rig, 6000);
    assert_true(a->answered && b->answered && c->answered);
    struct call *d = join(rig, (struct wish){.version = 5});
    assert_int_equal(d->join.error_code, KAFKA_GROUP_MAX_SIZE_REACHED);
    rig_until(rig, 15999);
    assert_int_equal(group_of(rig)->state, GROUP_COMPLETING);
    rig_until(rig, 16000);
    assert_int_equal(group_of(rig)->state, GROUP_EMPTY);
    assert_int_equal(group_of(rig)->generation, 2);
}

/* ---- offsets --------------------------------------------------------------------------------- */

static int commit(struct rig *rig, int32_t generation, const char *id, int64_t offset)
{
    struct offset_commit_request_offset_commit_request_partition in = {.committed_offset = offset};
    struct offsets_commit by = {
        .group_id = VIEW("g"),
        .member_id = view_of_string(id),
        .instance_id = VIEW_NULL,
        .generation = generation,
        .retention_ms = -1,
        .arrived_ms = rig->now,
    };
    struct offsets_put put = {.topic = VIEW("foo"), .in = &in};
    struct step step;
    rig_step(rig, &step, 8);
    enum kafka_error error = offsets_commit_check(rig->groups, &step, &by);
    if (error == KAFKA_NONE) error = offsets_commit_put(rig->groups, &step, &by, &put);
    if (error == KAFKA_NONE) rig_commit(rig, &step);
    return error;
}

static int64_t committed(struct rig *rig)
{
    return offsets_find(rig->groups, VIEW("g"), VIEW("foo"), 0, (struct uuid){{0}}).offset;
}

/* T109 to T113. */
static void commits(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(committed(rig), -1);
    assert_int_equal(commit(rig, 10, "x", 1), KAFKA_ILLEGAL_GENERATION);
    assert_int_equal(commit(rig, -1, "", 100), KAFKA_NONE);
    assert_int_equal(committed(rig), 100);
    const char *a = stable(rig, NULL);
    assert_int_equal(commit(rig, 1, a, 200), KAFKA_NONE);
    assert_int_equal(commit(rig, 2, a, 300), KAFKA_ILLEGAL_GENERATION);
    assert_int_equal(commit(rig, 1, "x", 300), KAFKA_UNKNOWN_MEMBER_ID);
    assert_int_equal(commit(rig, -1, "", 300), KAFKA_UNKNOWN_MEMBER_ID);
    assert_int_equal(committed(rig), 200);
    rig_until(rig, 7000);
    assert_int_equal(commit(rig, 1, a, 400), KAFKA_NONE); /* A sign of life. */
    rig_until(rig, 11999);
    assert_int_equal(group_of(rig)->state, GROUP_STABLE);
    rig_until(rig, 12000);
    assert_int_equal(group_of(rig)->state, GROUP_EMPTY);
    assert_int_equal(committed(rig), 400);
}

/* T116: a simple group's offset and the group itself go after the retention, not before. */
static void expiry(void **state)
{
    struct rig *rig = *state;
    struct step step;
    assert_int_equal(commit(rig, -1, "", 100), KAFKA_NONE);
    rig_step(rig, &step, 0);
    step.wall_ms += 604799999;
    assert_int_equal(offsets_expire(rig->groups, &step), STEP_DONE);
    assert_int_equal(step.record_count, 0);
    step.wall_ms += 1;
    assert_int_equal(offsets_expire(rig->groups, &step), STEP_DONE);
    assert_int_equal(step.record_count, 2);
    rig_commit(rig, &step);
    assert_null(group_of(rig));
}

/* Every allocation of a join fails once: refused, nothing kept, and the next one works. */
static void join_without_memory(void **state)
{
    struct rig *rig = *state;
    for (int64_t n = 0;; n++) {
        struct call call = {0};
        struct join_group_request_join_group_request_protocol protocol = {.name = VIEW("range"),
                                                                          .metadata = VIEW("m")};
        struct join_group_request in;
        struct step step;
        wire_defaults(&wire_join_group_request, &in);
        in.group_id = VIEW("g");
        in.session_timeout_ms = in.rebalance_timeout_ms = 10000;
        in.member_id = VIEW_EMPTY;
        in.group_instance_id = VIEW_NULL;
        in.protocol_type = VIEW("consumer");
        in.protocols.items = &protocol;
        in.protocols.count = 1;
        call.wait = (struct group_wait){.arena = &rig->arena, .version = 3, .join = &call.join};
        struct group_join ask = {
            .request = &in, .client_id = VIEW("app"), .client_host = VIEW("/here")};
        rig_step(rig, &step, 3);
        rig->heap.fail_in = n;
        enum step_result result = group_join(rig->groups, &step, &ask, &call.wait);
        rig->heap.fail_in = -1;
        if (result == STEP_DONE) {
            assert_true(n > 4);
            rig_commit(rig, &step);
            assert_int_equal(leave(rig, "", NULL), KAFKA_UNKNOWN_MEMBER_ID);
            assert_int_equal(group_of(rig)->members.count, 1);
            groups_unload(rig->groups, KAFKA_NOT_COORDINATOR);
            rig_answers(rig); /* `call` ends here. */
            assert_true(call.answered);
            return;
        }
        assert_int_equal(result, STEP_E_MEMORY);
        assert_null(group_of(rig));
        arena_free(&rig->arena);
    }
}

/* ---- the story ------------------------------------------------------------------------------- */

static struct group_explained explain(struct rig *rig, const char *member)
{
    struct group_explained out;
    group_explain(rig->groups, VIEW("g"), view_of_string(member),
                  (struct group_now){rig->now, 1000000 + rig->now}, &out);
    return out;
}

static void assert_event(struct rig *rig, uint32_t n, enum group_event_kind kind, int64_t at)
{
    const struct group_event *event = group_event_at(rig->groups, VIEW("g"), n);
    assert_int_equal(event->kind, kind);
    assert_int_equal(event->wall_ms, 1000000 + at);
}

static void load_nothing(struct rig *rig)
{
    struct step step;
    rig_step(rig, &step, 0);
    groups_loaded(rig->groups, &step);
    rig->now++; /* What comes later is no load. */
}

static void story_of_a_silent_member(void **state)
{
    struct rig *rig = *state;
    assert_false(explain(rig, "a").known);
    load_nothing(rig);
    struct call *call = join(rig, (struct wish){.instance = NULL});
    rig_until(rig, 3001);
    const char *a = id_of(rig, call);
    (void)sync_with(rig, 1, a, true);
    rig_until(rig, 5000);
    assert_int_equal(beat(rig, 1, a, NULL), KAFKA_NONE);

    struct group_explained of = explain(rig, a);
    assert_int_equal(of.standing, GROUP_MEMBER);
    assert_true(of.leads);
    assert_int_equal(of.contact_wall_ms, 1005000);
    assert_int_equal(of.deadline_wall_ms, 1010000);
    assert_int_equal(of.loaded_wall_ms, 1000000);
    assert_int_equal(of.event_count, 4);
    assert_event(rig, 0, GROUP_EVENT_JOINED, 1);
    assert_event(rig, 1, GROUP_EVENT_REBALANCE, 1);
    assert_event(rig, 2, GROUP_EVENT_GENERATION, 3001);
    assert_event(rig, 3, GROUP_EVENT_STABLE, 3001);

    rig_until(rig, 10000);
    of = explain(rig, a);
    assert_int_equal(of.standing, GROUP_NOT_MEMBER);
    assert_int_equal(of.event_count, 7);
    assert_event(rig, 4, GROUP_EVENT_SILENT, 10000);
    assert_event(rig, 5, GROUP_EVENT_REBALANCE, 10000);
    assert_event(rig, 6, GROUP_EVENT_EMPTY, 10000);
    const struct group_event *gone = group_event_at(rig->groups, VIEW("g"), 4);
    assert_true(group_event_of(gone, view_of_string(a)));
    assert_false(group_event_of(gone, VIEW("somebody")));
    assert_int_equal(gone->contact_wall_ms, 1005000);
    assert_int_equal(gone->number, 5000);
}

static void story_is_bounded(void **state)
{
    struct rig *rig = *state;
    load_nothing(rig);
    const char *a = NULL;
    for (int i = 0; i < 20; i++) {
        rig->call_count = 0;
        struct call *call = join(rig, (struct wish){.instance = NULL});
        rig_until(rig, rig->now + 3000);
        assert_true(call->answered);
        a = id_of(rig, call);
        call->answered = false;
        assert_int_equal(leave(rig, a, NULL), KAFKA_NONE);
    }
    struct group_explained of = explain(rig, a);
    assert_int_equal(of.event_count, GROUP_EVENTS_MAX);
    assert_int_equal(group_event_at(rig->groups, VIEW("g"), GROUP_EVENTS_MAX - 1)->kind,
                     GROUP_EVENT_EMPTY);
    assert_int_equal(group_event_at(rig->groups, VIEW("g"), GROUP_EVENTS_MAX - 3)->kind,
                     GROUP_EVENT_LEFT);
    for (uint32_t i = 1; i < of.event_count; i++)
        assert_true(group_event_at(rig->groups, VIEW("g"), i - 1)->wall_ms <=
                    group_event_at(rig->groups, VIEW("g"), i)->wall_ms);
}

static void story_of_a_replaced_member(void **state)
{
    struct rig *rig = *state;
    load_nothing(rig);
    struct call *call = join(rig, (struct wish){.instance = "i1"});
    rig_until(rig, 3001);
    const char *old = id_of(rig, call);
    (void)sync_with(rig, 1, old, true);
    const char *fresh = id_of(rig, join(rig, (struct wish){.instance = "i1", .version = 9}));
    struct group_explained of = explain(rig, old);
    assert_int_equal(of.standing, GROUP_NOT_MEMBER);
    const struct group_event *event = group_event_at(rig->groups, VIEW("g"), of.event_count - 2);
    assert_int_equal(event->kind, GROUP_EVENT_REPLACED);
    assert_true(group_event_of(event, view_of_string(old)));
    event = group_event_at(rig->groups, VIEW("g"), of.event_count - 1);
    assert_int_equal(event->kind, GROUP_EVENT_TAKES_OVER);
    assert_true(group_event_of(event, view_of_string(fresh)));
    assert_true(view_is(explain(rig, fresh).instance, "i1"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

/* The table at the head of group.h: each move of a state that is not in it stops the program. */
static void moves(void **state)
{
    struct rig *rig = *state;
    static const bool may[5][5] = {
        [GROUP_EMPTY] = {[GROUP_PREPARING] = true,  [GROUP_DEAD] = true},
        [GROUP_PREPARING] = {[GROUP_COMPLETING] = true,                         [GROUP_EMPTY] = true, [GROUP_DEAD] = true},
        [GROUP_COMPLETING] = {[GROUP_STABLE] = true,[GROUP_PREPARING] = true, [GROUP_DEAD] = true},
        [GROUP_STABLE] = {[GROUP_PREPARING] = true,                         [GROUP_DEAD] = true},
        [GROUP_DEAD] = {[GROUP_DEAD] = true                    },
    };
    for (int from = GROUP_EMPTY; from <= GROUP_DEAD; from++) {
        for (int to = GROUP_EMPTY; to <= GROUP_DEAD; to++) {
            pid_t child = fork();
            assert_true(child >= 0);
            if (child == 0) {
                signal(SIGILL, SIG_DFL);
                signal(SIGTRAP, SIG_DFL);
                struct group *group = group_new(rig->groups, VIEW("moves"));
                if (group == NULL) _exit(2);
                group->state = (enum group_state)from;
                group_move(group, (enum group_state)to);
                _exit(0);
            }
            int status;
            assert_int_equal(waitpid(child, &status, 0), child);
            assert_int_equal(WIFSIGNALED(status), !may[from][to]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(heartbeat_tables),
        TEST(moves),
        TEST(session_expires_on_time),
        TEST(long_rebalance),
        TEST(rejoin_and_leave),
        TEST(initial_delay),
        TEST(failed_append),
        TEST(failed_creation),
        TEST(static_leader_returns),
        TEST(members_that_stay_away),
        TEST(commits),
        TEST(expiry),
        TEST(join_without_memory),
        TEST(story_of_a_silent_member),
        TEST(story_is_bounded),
        TEST(story_of_a_replaced_member),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
