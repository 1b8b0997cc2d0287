/* consumer_group_test.c - consumer groups as narrated traces: the cases
 * by number, each with the records that Apache Kafka 4.4 writes. */
#include "core/consumer_group_rig.h"

#include "gen/config_record.h"

#include "gen/offset_commit_request.h"
#include "gen/register_broker_record.h"

#define assert_trace(got, wanted) assert_string_equal((got), (wanted))

/* T84 to T86, T93, T176 */
static void alone(void **state)
{
    struct crig *rig = *state;
    crig_topic(rig, "foo", 6);
    assert_trace(
        crig_join(rig, "m1", "foo"),
        "2 {foo 0 1 2 3 4 5} | 5 m1 foo; 3 e2; 7 m1 foo 0 1 2 3 4 5; 6 e2; 8 m1 2<0 STABLE "
        "foo 0@2 1@2 2@2 3@2 4@2 5@2");
    assert_int_equal(rig->out.heartbeat_interval_ms, 5000);
    assert_string_equal(crig_state(rig), "Stable");
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 2}), "2 |");
    assert_trace(
        crig_beat(rig, "m1",
                  (struct crig_beat){
                      .epoch = 2, .names = "foo", .owned = "foo 0 1 2 3 4 5", .rebalance = 12000}),
        "2 {foo 0 1 2 3 4 5} |");
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = -1}),
                 "-1 | 8 m1 gone; 7 m1 gone; 5 m1 gone; 3 e3 nothing; 6 e3 t0");
    assert_string_equal(crig_state(rig), "Empty");
    assert_trace(
        crig_join(rig, "m2", "foo"),
        "4 {foo 0 1 2 3 4 5} | 5 m2 foo; 3 e4; 7 m2 foo 0 1 2 3 4 5; 6 e4; 8 m2 4<0 STABLE "
        "foo 0@4 1@4 2@4 3@4 4@4 5@4");
}

/* T87, T88, T90, T91, T173: no refusal leaves a trace. */
static void refusals(void **state)
{
    struct crig *rig = *state;
    crig_topic(rig, "foo", 6);
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 1}), "error 69 |");
    assert_true(view_is(rig->out.error_message, "Consumer group g not found."));
    crig_join(rig, "m1", "foo");
    assert_trace(crig_beat(rig, "x", (struct crig_beat){.epoch = 1}), "error 25 |");
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 3}), "error 110 |");
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = -3}), "error 42 |");
    assert_true(view_is(rig->out.error_message, "MemberEpoch is invalid."));
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = -2}), "error 42 |");
    struct crig_beat join = {.names = "foo", .owned = "", .rebalance = 12000}, bad;
    bad = join;
    bad.rebalance = 0;
    assert_trace(crig_beat(rig, "m2", bad), "error 42 |");
    bad = join;
    bad.owned = NULL;
    assert_trace(crig_beat(rig, "m2", bad), "error 42 |");
    bad.owned = "foo 1";
    assert_trace(crig_beat(rig, "m2", bad), "error 42 |");
    bad = join;
    bad.names = NULL;
    assert_trace(crig_beat(rig, "m2", bad), "error 42 |");
    bad = join;
    bad.instance = "";
    assert_trace(crig_beat(rig, "m2", bad), "error 42 |");
    bad = join;
    bad.rack = " ";
    assert_trace(crig_beat(rig, "m2", bad), "error 42 |");
    bad = join;
    bad.group = " ";
    assert_trace(crig_beat(rig, "m2", bad), "error 42 |");
    assert_trace(crig_beat(rig, "", join), "error 42 |");
    bad = join;
    bad.assignor = "foo";
    assert_trace(crig_beat(rig, "m2", bad), "error 112 |");
    bad = join;
    bad.regex = "[";
    bad.fault = "no";
    assert_trace(crig_beat(rig, "m2", bad), "error 128 |");
    assert_int_equal(crig_group(rig)->consumer->members.count, 1);
    join.names = "";
    assert_trace(crig_beat(rig, "m2", join), "2 {} | 5 m2; 8 m2 2<0 STABLE");
    join.old = true; /* Version 0 may leave the id to the server. */
    crig_beat(rig, "", join);
    assert_int_equal(rig->out.member_id.size, 22);
}

/* The first epochs of a group that has lived: raised by members that come and go. */
static void raise_to(struct crig *rig, int32_t epoch)
{
    while (crig_group(rig) == NULL || crig_group(rig)->consumer->epoch < epoch) {
        crig_join(rig, "tmp", "");
        crig_beat(rig, "tmp", (struct crig_beat){.epoch = -1});
    }
    assert_int_equal(crig_group(rig)->consumer->epoch, epoch);
}

/* T92: the ten steps from one member to two. The assignor here gives other numbers than the one of
 * the original, so the group is brought to its targets by range and sizes that give the same shape.
 */
static void reconciliation(void **state)
{
    struct crig *rig = *state;
    crig_topic(rig, "foo", 6);
    crig_topic(rig, "bar", 3);
    raise_to(rig, 4);
    crig_join(rig, "m1", "foo bar");
    crig_join(rig, "m2", "foo bar");
    crig_beat(rig, "m1", (struct crig_beat){.epoch = 5, .owned = "foo 0 1 2 3 4 5, bar 0 1 2"});
    assert_trace(rig->trace, "5 {foo 0 1 2 3 4} | 8 m1 5<5 UNREVOKED foo 0@5 1@5 2@5 3@5 4@5 "
                             "pending foo 5@5 bar 0@5 1@5 2@5");
    crig_beat(rig, "m1", (struct crig_beat){.epoch = 5, .owned = "foo 0 1 2 3 4"});
    assert_trace(rig->trace, "6 | 8 m1 6<5 STABLE foo 0@5 1@5 2@5 3@5 4@5");
    crig_beat(rig, "m2", (struct crig_beat){.epoch = 6, .owned = ""});
    assert_trace(rig->trace, "6 {foo 5, bar 0 1 2} | 8 m2 6<6 STABLE foo 5@6 bar 0@6 1@6 2@6");
    assert_string_equal(crig_state(rig), "Stable");

    /* 1: m3 gets nothing yet. */
    assert_trace(crig_join(rig, "m3", "foo bar"),
                 "7 {} | 5 m3 bar foo; 3 e7; 7 m1 foo 0 1 2; 7 m2 foo 5 bar 0 1; 7 m3 foo 3 4 bar "
                 "2; 6 e7; 8 m3 7<0 UNRELEASED");
    assert_string_equal(crig_state(rig), "Reconciling");
    /* 2, 3: the others are told what to give up, and stay in their epoch. */
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 6}),
                 "6 {foo 0 1 2} | 8 m1 6<6 UNREVOKED foo 0@5 1@5 2@5 pending foo 3@5 4@5");
    assert_trace(crig_beat(rig, "m2", (struct crig_beat){.epoch = 6}),
                 "6 {foo 5, bar 0 1} | 8 m2 6<6 UNREVOKED foo 5@6 bar 0@6 1@6 pending bar 2@6");
    /* 4: nothing is free; that the epoch before is its own now is worth a record, once. */
    assert_trace(crig_beat(rig, "m3", (struct crig_beat){.epoch = 7}), "7 | 8 m3 7<7 UNRELEASED");
    assert_trace(crig_beat(rig, "m3", (struct crig_beat){.epoch = 7}), "7 |");
    /* 5: m1 has given up. */
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 6, .owned = "foo 0 1 2"}),
                 "7 | 8 m1 7<6 STABLE foo 0@5 1@5 2@5");
    /* 6: m2 does not say. */
    assert_trace(crig_beat(rig, "m2", (struct crig_beat){.epoch = 6}), "6 |");
    /* 7, 8: m3 gets what is free. */
    assert_trace(crig_beat(rig, "m3", (struct crig_beat){.epoch = 7}),
                 "7 {foo 3 4} | 8 m3 7<7 UNRELEASED foo 3@7 4@7");
    assert_trace(crig_beat(rig, "m3", (struct crig_beat){.epoch = 7}), "7 |");
    /* 9: m2 still owns it; then not. */
    assert_trace(crig_beat(rig, "m2", (struct crig_beat){.epoch = 6, .owned = "foo 5, bar 0 1 2"}),
                 "6 |");
    assert_trace(crig_beat(rig, "m2", (struct crig_beat){.epoch = 6, .owned = "foo 5, bar 0 1"}),
                 "7 | 8 m2 7<6 STABLE foo 5@6 bar 0@6 1@6");
    /* 10 */
    assert_trace(crig_beat(rig, "m3", (struct crig_beat){.epoch = 7, .owned = "foo 3 4"}),
                 "7 {foo 3 4, bar 2} | 8 m3 7<7 STABLE foo 3@7 4@7 bar 2@7");
    assert_string_equal(crig_state(rig), "Stable");
}

/* T89: the answer with the new epoch was lost. */
static void lost_answer(void **state)
{
    struct crig *rig = *state;
    crig_topic(rig, "foo", 4);
    crig_join(rig, "m1", "foo");
    crig_join(rig, "m2", "foo");
    crig_beat(rig, "m1", (struct crig_beat){.epoch = 2});
    crig_beat(rig, "m1", (struct crig_beat){.epoch = 2, .owned = "foo 0 1"});
    assert_trace(rig->trace, "3 | 8 m1 3<2 STABLE foo 0@2 1@2");
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 2, .owned = "foo 0"}), "3 |");
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 2, .owned = "foo 3"}),
                 "error 110 |");
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 2}), "error 110 |");
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 1, .owned = "foo 0"}),
                 "error 110 |");
}

/* T94, T16 of the other protocol: silence, and a clock that is read late. */
static void session(void **state)
{
    struct crig *rig = *state;
    crig_topic(rig, "foo", 2);
    crig_join(rig, "m1", "foo");
    assert_trace(crig_until(rig, 44999), "");
    crig_beat(rig, "m1", (struct crig_beat){.epoch = 2});
    assert_trace(crig_until(rig, 89998), "");
    rig->append = KAFKA_NOT_ENOUGH_REPLICAS; /* It comes up again when the append fails. */
    assert_trace(crig_until(rig, 89999),
                 " | 8 m1 gone; 7 m1 gone; 5 m1 gone; 3 e3 nothing; 6 e3 t0");
    rig->append = KAFKA_NONE;
    assert_int_equal(crig_group(rig)->consumer->members.count, 1);
    assert_trace(crig_until(rig, 90499),
                 " | 8 m1 gone; 7 m1 gone; 5 m1 gone; 3 e3 nothing; 6 e3 t0");
    assert_trace(crig_until(rig, 200000), "");
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 2}), "error 25 |");
}

/* T190: a group's own setting is held within the broker's bounds as they are now. */
static void bounded_setting(void **state)
{
    struct crig *rig = *state;
    struct step step;
    step_begin(&step, &rig->arena, rig->now, RIG_WALL);
    struct config_record *config = step_add(&step, &wire_config_record, 0);
    config->resource_type = IMAGE_RESOURCE_GROUP;
    config->resource_name = VIEW("g");
    config->name = VIEW("consumer.session.timeout.ms");
    config->value = VIEW("50000");
    crig_image_apply(rig, &step);
    crig_topic(rig, "foo", 2);
    crig_join(rig, "m1", "foo");
    assert_trace(crig_until(rig, 49999), "");
    rig->options.session.max_ms = 48000;
    crig_options_set(rig);
    crig_beat(rig, "m1", (struct crig_beat){.epoch = 2});
    assert_trace(crig_until(rig, 49999 + 47999), "");
    assert_trace(crig_until(rig, 49999 + 48000),
                 " | 8 m1 gone; 7 m1 gone; 5 m1 gone; 3 e3 nothing; 6 e3 t0");
}

/* T95: who does not give up in time is removed, heartbeats or not. */
static void rebalance_timeout(void **state)
{
    struct crig *rig = *state;
    crig_topic(rig, "foo", 2);
    crig_join(rig, "m1", "foo");
    crig_join(rig, "m2", "foo");
    crig_beat(rig, "m1", (struct crig_beat){.epoch = 2, .owned = "foo 0 1"});
    assert_trace(rig->trace, "2 {foo 0} | 8 m1 2<2 UNREVOKED foo 0@2 pending foo 1@2");
    crig_until(rig, 11999);
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 2, .owned = "foo 0 1"}), "2 |");
    crig_beat(rig, "m2", (struct crig_beat){.epoch = 3});
    assert_trace(crig_until(rig, 12000), " | 8 m1 gone; 7 m1 gone; 5 m1 gone; 3 e4");
    assert_string_equal(crig_state(rig), "Assigning");
    assert_trace(crig_beat(rig, "m2", (struct crig_beat){.epoch = 3}),
                 "4 {foo 0 1} | 7 m2 foo 0 1; 6 e4; 8 m2 4<3 STABLE foo 0@4 1@4");

    /* One that does is not. */
    crig_join(rig, "m1", "foo");
    crig_beat(rig, "m2", (struct crig_beat){.epoch = 4, .owned = "foo 0 1"});
    crig_until(rig, 20000);
    crig_beat(rig, "m2", (struct crig_beat){.epoch = 4, .owned = "foo 0"});
    crig_beat(rig, "m1", (struct crig_beat){.epoch = 5});
    assert_trace(crig_until(rig, 40000), "");
}

/* T96 to T100, T163 */
static void static_members(void **state)
{
    struct crig *rig = *state;
    struct crig_beat join = {.names = "foo", .owned = "", .rebalance = 12000, .instance = "i1"};
    crig_topic(rig, "foo", 2);
    crig_beat(rig, "M", join);
    assert_trace(crig_beat(rig, "Y", join), "error 111 |");
    assert_trace(crig_beat(rig, "M", join), "error 111 |");
    assert_trace(crig_beat(rig, "M", (struct crig_beat){.epoch = 2, .instance = "i2"}),
                 "error 25 |");
    assert_trace(crig_beat(rig, "Y", (struct crig_beat){.epoch = -2, .instance = "i1"}),
                 "error 82 |");
    assert_trace(crig_beat(rig, "M", (struct crig_beat){.epoch = -2, .instance = "i1"}),
                 "-2 | 8 M -2<0 STABLE foo 0@0 1@0");
    assert_trace(crig_beat(rig, "Y", join),
                 "2 {foo 0 1} | 8 M gone; 7 M gone; 5 M gone; 5 Y foo; 7 Y foo 0 1; 8 Y 0<0 STABLE "
                 "foo 0@0 1@0; 8 Y 2<0 STABLE foo 0@0 1@0");
    assert_trace(crig_beat(rig, "M", (struct crig_beat){.epoch = 2, .instance = "i1"}),
                 "error 82 |");
    assert_trace(crig_beat(rig, "M", (struct crig_beat){.epoch = 2}), "error 25 |");
    assert_trace(crig_beat(rig, "Y", (struct crig_beat){.epoch = 2, .instance = "i1"}), "2 |");
    /* The same id may come back; and away, the session runs. */
    crig_beat(rig, "Y", (struct crig_beat){.epoch = -2, .instance = "i1"});
    crig_beat(rig, "Y", join);
    assert_trace(rig->trace,
                 "2 {foo 0 1} | 8 Y gone; 7 Y gone; 5 Y gone; 5 Y foo; 7 Y foo 0 1; 8 Y 0<0 STABLE "
                 "foo 0@0 1@0; 8 Y 2<0 STABLE foo 0@0 1@0");
    crig_until(rig, 1000);
    crig_beat(rig, "Y", (struct crig_beat){.epoch = -2, .instance = "i1"});
    assert_trace(crig_until(rig, 44999), "");
    assert_trace(crig_until(rig, 45000), " | 8 Y gone; 7 Y gone; 5 Y gone; 3 e3 nothing; 6 e3 t0");
}

/* T101 */
static void full(void **state)
{
    struct crig *rig = *state;
    rig->options.size_max = 2;
    crig_options_set(rig);
    crig_topic(rig, "foo", 2);
    crig_join(rig, "m1", "foo");
    crig_join(rig, "m2", "foo");
    assert_trace(crig_join(rig, "m3", "foo"), "error 81 |");
    assert_trace(crig_beat(rig, "m2", (struct crig_beat){.epoch = 3}), "3 | 8 m2 3<3 UNRELEASED");
}

/* T160 to T162: a member that comes again keeps what it has. */
static void rejoin(void **state)
{
    struct crig *rig = *state;
    crig_topic(rig, "foo", 3);
    crig_join(rig, "m1", "foo");
    assert_trace(crig_join(rig, "m1", "foo"), "2 {foo 0 1 2} |");
    crig_join(rig, "m2", "foo");
    crig_beat(rig, "m1", (struct crig_beat){.epoch = 2});
    assert_trace(rig->trace, "2 {foo 0 1} | 8 m1 2<2 UNREVOKED foo 0@2 1@2 pending foo 2@2");
    assert_trace(crig_join(rig, "m1", "foo"), "3 {foo 0 1} | 8 m1 3<2 STABLE foo 0@2 1@2");
    assert_trace(crig_join(rig, "m2", "foo"), "3 {foo 2} | 8 m2 3<3 STABLE foo 2@3");
}

/* T164 to T166 */
static void assignment_interval(void **state)
{
    struct crig *rig = *state;
    rig->options.assignment.value_ms = 5000;
    crig_options_set(rig);
    crig_topic(rig, "foo", 6);
    crig_join(rig, "m1", "foo");
    crig_until(rig, 4995);
    assert_trace(crig_join(rig, "m2", "foo"), "2 {} | 5 m2 foo; 3 e3; 8 m2 2<0 STABLE");
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 2}), "2 |");
    crig_until(rig, 5005);
    assert_trace(crig_beat(rig, "m2", (struct crig_beat){.epoch = 2}),
                 "3 | 7 m1 foo 0 1 2; 7 m2 foo 3 4 5; 6 e3; 8 m2 3<2 UNRELEASED");
}

/* T170 */
static void assignor_wish(void **state)
{
    struct crig *rig = *state;
    crig_topic(rig, "foo", 2);
    crig_join(rig, "m1", "foo");
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 2, .assignor = "uniform"}),
                 "2 | 5 m1 foo");
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 2, .assignor = "range"}),
                 "3 | 5 m1 foo; 3 e3; 6 e3; 8 m1 3<2 STABLE foo 0@2 1@2");
}

/* T171, T172, T174 */
static void regexes(void **state)
{
    struct crig *rig = *state;
    struct crig_beat join = {.owned = "", .rebalance = 12000, .regex = "foo*"};
    struct view foo = VIEW("foo");
    struct consumer_group_matched matched = {
        .regex = VIEW("foo*"), .topics = &foo, .topic_count = 1, .version = 9};
    struct step step;
    uint32_t count;
    crig_topic(rig, "foo", 2);
    crig_topic(rig, "bar", 2);
    crig_join(rig, "m1", "foo");
    assert_false(consumer_group_regex_known(rig->groups, VIEW("g"), VIEW("foo*")));
    assert_trace(crig_beat(rig, "m2", join), "2 {} | 5 m2 ~foo*; 8 m2 2<0 STABLE");
    assert_true(consumer_group_regex_known(rig->groups, VIEW("g"), VIEW("foo*")));
    crig_begin(rig, &step, 1);
    const struct view *due = consumer_group_regex_due(rig->groups, &step, VIEW("g"), true, &count);
    assert_int_equal(count, 1);
    assert_true(view_is(due[0], "foo*"));
    assert_null(consumer_group_regex_due(rig->groups, &step, VIEW("g"), true, &count));
    assert_int_equal(consumer_group_resolved(rig->groups, &step, VIEW("g"), &matched, 1),
                     STEP_DONE);
    rig->trace[0] = '\0';
    crig_commit(rig, &step);
    assert_trace(rig->trace, " | 16 foo* = foo; 3 e3");
    assert_trace(crig_beat(rig, "m2", (struct crig_beat){.epoch = 2}),
                 "3 | 7 m1 foo 0; 7 m2 foo 1; 6 e3; 8 m2 3<2 UNRELEASED");
    assert_trace(crig_beat(rig, "m3", join),
                 "4 {} | 5 m3 ~foo*; 3 e4; 7 m3; 6 e4; 8 m3 4<0 STABLE");
    /* The same result says nothing new. */
    crig_until(rig, 20000);
    crig_topic(rig, "baz", 1);
    crig_begin(rig, &step, 1);
    assert_non_null(consumer_group_regex_due(rig->groups, &step, VIEW("g"), false, &count));
    assert_int_equal(consumer_group_resolved(rig->groups, &step, VIEW("g"), &matched, 1),
                     STEP_DONE);
    rig->trace[0] = '\0';
    crig_commit(rig, &step);
    assert_trace(rig->trace, " | 16 foo* = foo");
    /* The last user's new expression ends the old one, and what it gave. */
    crig_beat(rig, "m3", (struct crig_beat){.epoch = -1});
    assert_true(consumer_group_wants(crig_group(rig)->consumer, VIEW("foo")));
    struct crig_beat other = {.epoch = 3, .owned = "", .rebalance = 12000, .regex = "foo*|bar*"};
    assert_trace(crig_beat(rig, "m2", other),
                 "5 {} | 5 m2 ~foo*|bar*; 16 foo* gone; 7 m1 foo 0 1; 7 m2; 6 e5; 8 m2 5<3 STABLE");
}

/* A topic and an expression come while the group's expressions are being matched: neither is
 * forgotten when the result is there. */
static void expressions_come_late(void **state)
{
    struct crig *rig = *state;
    struct crig_beat join = {.owned = "", .rebalance = 12000, .regex = "foo*"};
    struct view foo = VIEW("foo");
    struct consumer_group_matched matched = {
        .regex = VIEW("foo*"), .topics = &foo, .topic_count = 1, .version = 9};
    struct step step;
    uint32_t count;
    crig_topic(rig, "foo", 2);
    crig_beat(rig, "m1", join);
    crig_begin(rig, &step, 1);
    assert_non_null(consumer_group_regex_due(rig->groups, &step, VIEW("g"), true, &count));
    crig_topic(rig, "fooo", 1);
    join.regex = "bar*";
    crig_beat(rig, "m2", join);
    crig_begin(rig, &step, 1);
    assert_null(consumer_group_regex_due(rig->groups, &step, VIEW("g"), true, &count));
    assert_int_equal(consumer_group_resolved(rig->groups, &step, VIEW("g"), &matched, 1),
                     STEP_DONE);
    rig->trace[0] = '\0';
    crig_commit(rig, &step);
    assert_trace(rig->trace, " | 16 foo* = foo; 3 e2");
    crig_until(rig, 10001);
    crig_begin(rig, &step, 1);
    assert_non_null(consumer_group_regex_due(rig->groups, &step, VIEW("g"), false, &count));
    assert_int_equal(count, 2);
    /* The same without a topic that came: the new expression alone makes it due. */
    struct consumer_group_matched both[] = {
        {.regex = VIEW("bar*"), .topics = &foo, .topic_count = 0, .version = 9},
        matched,
    };
    assert_int_equal(consumer_group_resolved(rig->groups, &step, VIEW("g"), both, 2), STEP_DONE);
    crig_commit(rig, &step);
    crig_until(rig, 20002);
    crig_begin(rig, &step, 1);
    assert_null(consumer_group_regex_due(rig->groups, &step, VIEW("g"), false, &count));
}

/* T175 */
static void trims(void **state)
{
    struct crig *rig = *state;
    rig->options.assignment.value_ms = 5000;
    crig_options_set(rig);
    crig_topic(rig, "foo", 1);
    crig_topic(rig, "bar", 1);
    crig_join(rig, "m1", "foo bar");
    struct crig_beat less = {.epoch = 2, .names = "foo", .owned = "foo 0, bar 0"};
    assert_trace(crig_beat(rig, "m1", less),
                 "2 {foo 0} | 5 m1 foo; 3 e3; 8 m1 2<0 UNREVOKED foo 0@2 pending bar 0@2");
    crig_until(rig, 5000);
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 2, .owned = "foo 0"}),
                 "3 | 7 m1 foo 0; 6 e3; 8 m1 3<2 STABLE foo 0@2");
}

/* Topics that come, grow and go: the next heartbeat of any member sees it. */
static void topics_change(void **state)
{
    struct crig *rig = *state;
    assert_trace(crig_join(rig, "m1", "foo"),
                 "2 {} | 5 m1 foo; 3 e2 nothing; 7 m1; 6 e2; 8 m1 2<0 STABLE");
    crig_topic(rig, "foo", 1);
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 2}),
                 "3 {foo 0} | 3 e3; 7 m1 foo 0; 6 e3; 8 m1 3<2 STABLE foo 0@3");
    crig_topic_from(rig, "foo", 1, 2);
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 3}),
                 "4 {foo 0 1} | 3 e4; 7 m1 foo 0 1; 6 e4; 8 m1 4<3 STABLE foo 0@3 1@4");
    crig_topic(rig, "bar", 1); /* Nobody's. */
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 4}), "4 |");
    crig_topic_gone(rig, "foo");
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 4}),
                 "4 {} | 3 e5 nothing; 7 m1; 6 e5; 8 m1 4<4 UNREVOKED pending foo 0@3 1@4");
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 4, .owned = ""}),
                 "5 | 8 m1 5<4 STABLE");
}

/* A failed append leaves everything as it was: the same request does the same again. */
static void failed_append(void **state)
{
    struct crig *rig = *state;
    static const char joined[] =
        "2 {foo 0} | 5 m1 foo; 3 e2; 7 m1 foo 0; 6 e2; 8 m1 2<0 STABLE foo "
        "0@2";
    crig_topic(rig, "foo", 1);
    rig->append = KAFKA_NOT_ENOUGH_REPLICAS;
    assert_trace(crig_join(rig, "m1", "foo"), joined);
    assert_null(crig_group(rig));
    rig->append = KAFKA_NONE;
    assert_trace(crig_join(rig, "m1", "foo"), joined);
}

/* What was loaded is what was. */
static void reload(void **state)
{
    struct crig *rig = *state;
    crig_topic(rig, "foo", 4);
    crig_join(rig, "m1", "foo");
    crig_beat(rig, "s",
              (struct crig_beat){.names = "foo", .owned = "", .rebalance = 12000, .instance = "i"});
    crig_beat(rig, "m1", (struct crig_beat){.epoch = 2});
    crig_reload(rig);
    assert_string_equal(crig_state(rig), "Reconciling");
    const struct consumer_group *group = crig_group(rig)->consumer;
    assert_int_equal(group->epoch, 3);
    assert_int_equal(group->assignment_epoch, 3);
    assert_int_equal(consumer_group_holder(group, crig_topic_id("foo"), 3), 2);
    assert_non_null(consumer_group_static(group, VIEW("i")));
    /* The rebalance timer runs anew, and so do sessions. */
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 2}), "2 |");
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 2, .owned = "foo 0 1"}),
                 "3 | 8 m1 3<2 STABLE foo 0@2 1@2");
    assert_trace(crig_beat(rig, "s", (struct crig_beat){.epoch = 3, .instance = "i"}),
                 "3 {foo 2 3} | 8 s 3<3 STABLE foo 2@3 3@3");
    crig_reload(rig);
    assert_string_equal(crig_state(rig), "Stable");
    crig_until(rig, rig->now + 44999);
    assert_int_equal(crig_group(rig)->consumer->members.count, 2);
    crig_until(rig, rig->now + 2);
    assert_int_equal(crig_group(rig)->consumer->members.count, 0);
    crig_reload(rig);
    assert_string_equal(crig_state(rig), "Empty");
    /* DeleteGroups: tombstones in the order that readers insist on. */
    struct step step;
    enum kafka_error error;
    crig_begin(rig, &step, 3);
    assert_int_equal(group_delete(rig->groups, &step, VIEW("g"), &error), STEP_DONE);
    assert_int_equal(error, KAFKA_NONE);
    rig->trace[0] = '\0';
    crig_commit(rig, &step);
    assert_trace(rig->trace, " | 6 gone; 3 gone");
    assert_null(crig_group(rig));
    crig_reload(rig);
    assert_null(crig_group(rig));
}

static enum kafka_error commit(struct crig *rig,
                               const char *member,
                               int32_t epoch,
                               int16_t version,
                               const char *topic,
                               int32_t partition)
{
    struct offset_commit_request_offset_commit_request_partition in = {
        .partition_index = partition,
        .committed_offset = 5,
        .committed_leader_epoch = -1,
        .committed_metadata = VIEW_NULL,
    };
    struct offsets_commit by = {
        .group_id = VIEW("g"),
        .member_id = view_of_string(member),
        .instance_id = VIEW_NULL,
        .generation = epoch,
        .retention_ms = -1,
        .arrived_ms = rig->now,
    };
    struct offsets_put put = {
        .topic = view_of_string(topic), .topic_id = crig_topic_id(topic), .in = &in};
    struct step step;
    crig_begin(rig, &step, version);
    enum kafka_error error = offsets_commit_check(rig->groups, &step, &by);
    return error != KAFKA_NONE ? error : offsets_commit_put(rig->groups, &step, &by, &put);
}

/* T123, T124: who is behind may commit what it has held since. */
static void commits(void **state)
{
    struct crig *rig = *state;
    struct view g = VIEW("g");
    crig_topic(rig, "foo", 2);
    crig_topic(rig, "bar", 1);
    crig_join(rig, "m1", "foo");
    crig_join(rig, "m2", "foo");
    crig_beat(rig, "m1", (struct crig_beat){.epoch = 2});
    crig_beat(rig, "m1", (struct crig_beat){.epoch = 2, .owned = "foo 0"});
    crig_beat(rig, "m2", (struct crig_beat){.epoch = -1});
    assert_trace(crig_beat(rig, "m1", (struct crig_beat){.epoch = 3}),
                 "4 {foo 0 1} | 7 m1 foo 0 1; 6 e4; 8 m1 4<3 STABLE foo 0@2 1@4");
    assert_int_equal(commit(rig, "m1", 4, 9, "foo", 1), KAFKA_NONE);
    assert_int_equal(commit(rig, "m1", 3, 9, "foo", 0), KAFKA_NONE);
    assert_int_equal(commit(rig, "m1", 3, 9, "foo", 1), KAFKA_STALE_MEMBER_EPOCH);
    assert_int_equal(commit(rig, "m1", 3, 9, "bar", 0), KAFKA_STALE_MEMBER_EPOCH);
    assert_int_equal(commit(rig, "m1", 1, 9, "foo", 0), KAFKA_STALE_MEMBER_EPOCH);
    assert_int_equal(commit(rig, "m1", 5, 9, "foo", 0), KAFKA_STALE_MEMBER_EPOCH);
    assert_int_equal(commit(rig, "m1", 4, 8, "foo", 0), KAFKA_UNSUPPORTED_VERSION);
    assert_int_equal(commit(rig, "", -1, 9, "foo", 0), KAFKA_UNKNOWN_MEMBER_ID);
    assert_int_equal(commit(rig, "x", 4, 9, "foo", 0), KAFKA_UNKNOWN_MEMBER_ID);
    assert_int_equal(offsets_fetch_check(rig->groups, g, VIEW_NULL, -1), KAFKA_NONE);
    assert_int_equal(offsets_fetch_check(rig->groups, g, VIEW("x"), 4), KAFKA_UNKNOWN_MEMBER_ID);
    assert_int_equal(offsets_fetch_check(rig->groups, g, VIEW("m1"), 4), KAFKA_NONE);
    assert_int_equal(offsets_fetch_check(rig->groups, g, VIEW("m1"), 3), KAFKA_STALE_MEMBER_EPOCH);
    /* T125 of this protocol. */
    struct step step;
    enum kafka_error error;
    crig_begin(rig, &step, 3);
    assert_int_equal(group_delete(rig->groups, &step, g, &error), STEP_DONE);
    assert_int_equal(error, KAFKA_NON_EMPTY_GROUP);
    assert_int_equal(offsets_delete_check(rig->groups, g), KAFKA_NONE);
    assert_int_equal(offsets_delete_put(rig->groups, &step, g, VIEW("foo"), 0),
                     KAFKA_GROUP_SUBSCRIBED_TO_TOPIC);
    assert_int_equal(offsets_delete_put(rig->groups, &step, g, VIEW("bar"), 0), KAFKA_NONE);
    /* Nobody left: anybody may commit. */
    crig_beat(rig, "m1", (struct crig_beat){.epoch = -1});
    assert_int_equal(commit(rig, "", -1, 9, "foo", 0), KAFKA_NONE);
}

static void hash_topic(struct crig *rig, const char *name, uint8_t high, const int32_t *brokers)
{
    struct step step;
    struct uuid id = {{0}};
    step_begin(&step, &rig->arena, rig->now, RIG_WALL);
    struct topic_record *topic = step_add(&step, &wire_topic_record, 0);
    id.bytes[7] = high;
    id.bytes[15] = high + 1;
    topic->name = view_of_string(name);
    topic->topic_id = id;
    for (int32_t i = 0; i < 2; i++) {
        struct partition_record *partition = step_add(&step, &wire_partition_record, 0);
        partition->partition_id = i;
        partition->topic_id = id;
        partition->replicas.items = partition->isr.items = (int32_t *)(uintptr_t)brokers;
        partition->replicas.count = partition->isr.count = i + 1;
        partition->leader = brokers[0];
    }
    crig_image_apply(rig, &step);
}

static void hash_broker(struct crig *rig, int32_t id, struct view rack)
{
    struct step step;
    step_begin(&step, &rig->arena, rig->now, RIG_WALL);
    struct register_broker_record *broker = step_add(&step, &wire_register_broker_record, 1);
    broker->broker_id = id;
    broker->incarnation_id.bytes[15] = (uint8_t)id;
    broker->broker_epoch = rig->image_offset;
    broker->rack = rack;
    broker->fenced = false;
    crig_image_apply(rig, &step);
}

/* T192: vectors of the topic hash. */
static void hashes(void **state)
{
    static const int32_t nowhere[] = {7, 8}, racked[] = {1, 2};
    struct crig *rig = *state;
    hash_broker(rig, 1, VIEW("r1"));
    hash_broker(rig, 2, VIEW("r2"));
    hash_topic(rig, "foo", 1, nowhere);
    hash_topic(rig, "bar", 3, racked);
    const struct image_topic *items[] = {image_topic(rig->image, VIEW("bar")),
                                         image_topic(rig->image, VIEW("foo"))};
    struct consumer_topics both = {.items = items, .count = 2}, foo = {&items[1], 1};
    int64_t hash;
    assert_true(consumer_group_hash(rig->groups, &rig->arena, &foo, &hash));
    assert_int_equal((uint64_t)hash, 0x6b59627d11161fcbu);
    assert_true(consumer_group_hash(rig->groups, &rig->arena, &both, &hash));
    assert_int_equal((uint64_t)hash, 0xa8c63e3bd495ff8bu);
    foo.count = 0;
    assert_true(consumer_group_hash(rig->groups, &rig->arena, &foo, &hash));
    assert_int_equal(hash, 0);
}

static void hash_is_of_all(struct crig *rig)
{
    const struct group *group = crig_group(rig);
    struct consumer_edit none = {.id = VIEW_NULL, .replaces = VIEW_NULL};
    struct consumer_roster roster;
    struct consumer_topics topics;
    int64_t hash;
    if (group == NULL || group->consumer == NULL) return;
    assert_true(consumer_group_roster(group->consumer, &rig->arena, &none, &roster));
    assert_true(consumer_group_topics(group->consumer, &rig->arena, &none, &roster, &topics));
    assert_true(consumer_group_hash(rig->groups, &rig->arena, &topics, &hash));
    assert_int_equal(hash, group->consumer->hash);
}

/* Whoever comes, changes and goes, the hash is that of what all want, as if computed anew. */
static void hash_through_changes(void **state)
{
    static const char *const wishes[] = {"foo", "foo bar", "bar", "", "foo"};
    struct crig *rig = *state;
    uint32_t random = 1;
    crig_topic(rig, "foo", 2);
    for (uint32_t i = 0; i < 1500; i++) {
        random = random * 1664525 + 1013904223;
        char id[] = {'m', (char)('a' + (random >> 20) % 6), '\0'};
        const char *names = wishes[(random >> 16) % ARRAY_SIZE(wishes)];
        const struct group *group = crig_group(rig);
        const struct consumer_member *member =
            group == NULL ? NULL : consumer_group_member(group->consumer, view_of_string(id));
        if (i == 200) crig_topic(rig, "bar", 1);
        if (i == 400) crig_topic_from(rig, "foo", 2, 3);
        if (i == 1200) crig_topic_gone(rig, "bar");
        if (member == NULL)
            (void)crig_join(rig, id, names);
        else if ((random >> 24) % 3 == 0)
            (void)crig_beat(rig, id, (struct crig_beat){.epoch = -1});
        else
            (void)crig_beat(rig, id,
                            (struct crig_beat){.epoch = member->now.epoch, .names = names});
        hash_is_of_all(rig);
        arena_reset(&rig->arena);
    }
}

/* Each allocation of each step fails once: nothing has changed, or the group is loaded anew. */
static void torture(void **state)
{
    struct crig *rig = *state;
    crig_topic(rig, "foo", 4);
    crig_join(rig, "m1", "foo");
    bool done = false;
    for (int64_t fail = 0; !done; fail++) {
        struct step step;
        struct crig_beat join = {.names = "foo", .owned = "", .rebalance = 12000};
        arena_free(&rig->arena);
        rig->heap.fail_in = fail;
        rig->out = (struct consumer_group_heartbeat_response){0};
        /* The rig's own few blocks come first, and may be what fails. */
        join.names = "";
        enum step_result result = crig_step_beat(rig, &step, "m2", join);
        rig->heap.fail_in = -1;
        done = result == STEP_DONE;
        assert_int_equal(crig_group(rig)->consumer->members.count, 1);
        if (done) crig_commit(rig, &step);
    }
    assert_int_equal(crig_group(rig)->consumer->members.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, crig_setup, crig_teardown)
        CASE(alone),           CASE(refusals),
        CASE(reconciliation),  CASE(lost_answer),
        CASE(session),         CASE(rebalance_timeout),
        CASE(static_members),  CASE(full),
        CASE(rejoin),          CASE(assignment_interval),
        CASE(bounded_setting), CASE(assignor_wish),
        CASE(regexes),         CASE(expressions_come_late),
        CASE(trims),           CASE(topics_change),
        CASE(failed_append),   CASE(commits),
        CASE(reload),          CASE(hashes),
        CASE(torture),         CASE(hash_through_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
