/* consumer_group_classic_test.c - classic members of consumer groups, and groups that change their
 * protocol: rows D1 to D10 of Heartbeat, and cases T27 to T32, T102 to T105, T167 to
 * T169. */
#include "core/consumer_group_rig.h"

#include "core/consumer_protocol.h"
#include "gen/join_group_request.h"
#include "gen/join_group_response.h"
#include "gen/leave_group_request.h"
#include "gen/leave_group_response.h"
#include "gen/sync_group_request.h"
#include "gen/sync_group_response.h"

#define assert_trace(got, wanted) assert_string_equal((got), (wanted))

struct call {
    struct group_wait wait;
    struct join_group_response join;
    struct sync_group_response sync;
    bool answered;
};

static void take_answers(struct crig *rig)
{
    struct group_wait *wait;
    while ((wait = groups_answer(rig->groups)) != NULL)
        container_of(wait, struct call, wait)->answered = true;
}

/* A subscription of version 1 to foo, owning partitions of it. */
static struct view subscription(struct crig *rig, const char *topic, const char *owned)
{
    uint8_t *bytes = arena_get(&rig->arena, 128), *at = bytes;
    uint16_t size = (uint16_t)strlen(topic);
    uint32_t count = (uint32_t)strlen(owned);
    store_be16(at, 1);
    store_be32(at + 2, 1);
    store_be16(at + 6, size);
    memcpy(at + 8, topic, size);
    at += 8 + size;
    store_be32(at, UINT32_MAX); /* No bytes of the strategy. */
    store_be32(at + 4, count > 0);
    at += 8;
    if (count > 0) {
        store_be16(at, size);
        memcpy(at + 2, topic, size);
        store_be32(at + 2 + size, count);
        at += 6 + size;
        for (uint32_t i = 0; i < count; i++, at += 4)
            store_be32(at, (uint32_t)(owned[i] - '0'));
    }
    return view_of(bytes, (uint32_t)(at - bytes));
}

struct wish {
    const char *id;
    const char *instance;
    const char *owned; /* Digits; "": nothing. */
    const char *protocol;
    const char *type;
    struct view metadata; /* In place of a subscription to foo. */
    int16_t version;
};

static enum step_result join_step(struct crig *rig, struct wish wish, struct call *call)
{
    struct join_group_request_join_group_request_protocol protocol = {
        .name = view_of_string(wish.protocol != NULL ? wish.protocol : "range"),
        .metadata = wish.metadata.size > 0
                        ? wish.metadata
                        : subscription(rig, "foo", wish.owned != NULL ? wish.owned : ""),
    };
    struct join_group_request in;
    wire_defaults(&wire_join_group_request, &in);
    in.group_id = VIEW("g");
    in.member_id = view_of_string(wish.id != NULL ? wish.id : "");
    in.group_instance_id = view_of_string(wish.instance);
    in.session_timeout_ms = 5000;
    in.rebalance_timeout_ms = 10000;
    in.protocol_type = view_of_string(wish.type != NULL ? wish.type : "consumer");
    in.protocols.items = &protocol;
    in.protocols.count = 1;
    struct group_join ask = {
        .request = &in, .client_id = VIEW("app"), .client_host = VIEW("/here")};
    struct step step;
    int16_t version = wish.version != 0 ? wish.version : 3;
    *call = (struct call){
        .wait = {.arena = &rig->arena, .version = version, .join = &call->join}
    };
    crig_begin(rig, &step, version);
    enum step_result result = group_join(rig->groups, &step, &ask, &call->wait);
    rig->trace[0] = '\0';
    crig_commit(rig, &step);
    take_answers(rig);
    return result;
}

static int join(struct crig *rig, struct wish wish, struct call *call)
{
    enum step_result result;
    while ((result = join_step(rig, wish, call)) == STEP_MORE)
        ;
    assert_int_equal(result, STEP_DONE);
    return call->answered ? call->join.error_code : -1000;
}

static int sync_at(struct crig *rig, const char *id, int32_t generation, struct call *call)
{
    struct sync_group_request in;
    struct step step;
    wire_defaults(&wire_sync_group_request, &in);
    in.group_id = VIEW("g");
    in.generation_id = generation;
    in.member_id = view_of_string(id);
    in.group_instance_id = in.protocol_name = in.protocol_type = VIEW_NULL;
    *call = (struct call){
        .wait = {.arena = &rig->arena, .version = 5, .sync = &call->sync}
    };
    crig_begin(rig, &step, 5);
    assert_int_equal(group_sync(rig->groups, &step, &in, &call->wait), STEP_DONE);
    crig_commit(rig, &step);
    take_answers(rig);
    assert_true(call->answered);
    return call->sync.error_code;
}

static int beat(struct crig *rig, const char *id, const char *instance, int32_t generation)
{
    struct group_beat in = {VIEW("g"), view_of_string(id), view_of_string(instance), generation,
                            rig->now};
    return group_heartbeat(rig->groups, &in);
}

static int leave(struct crig *rig, const char *id, const char *instance)
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
    crig_begin(rig, &step, 5);
    assert_int_equal(group_leave(rig->groups, &step, &in, &out), STEP_DONE);
    rig->trace[0] = '\0';
    crig_commit(rig, &step);
    take_answers(rig);
    return out.members.items[0].error_code;
}

static const char *text_of(struct crig *rig, struct view text)
{
    char *out = arena_get(&rig->arena, text.size + 1u);
    if (text.size > 0) memcpy(out, text.data, text.size);
    return out;
}

/* N of the new protocol and a classic member that shares with it: epoch 3, foo 0 1 and 2 3. */
static const char *mixed(struct crig *rig)
{
    struct call call;
    crig_topic(rig, "foo", 4);
    crig_join(rig, "N", "foo");
    assert_int_equal(join(rig, (struct wish){0}, &call), KAFKA_NONE);
    assert_int_equal(call.join.generation_id, 3);
    assert_true(view_is(call.join.protocol_type, "consumer"));
    assert_true(view_is(call.join.protocol_name, "range"));
    assert_true(view_is(call.join.leader, ""));
    assert_int_equal(call.join.members.count, 0);
    const char *id = text_of(rig, call.join.member_id);
    assert_int_equal(beat(rig, id, NULL, 3), KAFKA_NONE); /* D9, T30: N still holds them. */
    crig_beat(rig, "N", (struct crig_beat){.epoch = 2});
    crig_beat(rig, "N", (struct crig_beat){.epoch = 2, .owned = "foo 0 1"});
    assert_int_equal(beat(rig, id, NULL, 3), KAFKA_REBALANCE_IN_PROGRESS); /* D8, T29 */
    assert_int_equal(join(rig, (struct wish){.id = id}, &call), KAFKA_NONE);
    assert_int_equal(call.join.generation_id, 3);
    assert_int_equal(sync_at(rig, id, 3, &call), KAFKA_NONE);
    struct partition_set got;
    assert_int_equal(
        consumer_protocol_assignment(&rig->arena, rig->image, call.sync.assignment, 0, &got),
        CONSUMER_PROTOCOL_OK);
    assert_int_equal(got.count, 2);
    assert_int_equal(got.items[1].partition, 3);
    assert_string_equal(crig_state(rig), "Stable");
    return id;
}

static void beats(void **state) /* D1 to D10, T31, T32, T105 */
{
    struct crig *rig = *state;
    struct call call;
    const char *id = mixed(rig);
    assert_int_equal(beat(rig, "x", NULL, 3), KAFKA_UNKNOWN_MEMBER_ID); /* D1 */
    assert_int_equal(beat(rig, id, "i1", 3), KAFKA_UNKNOWN_MEMBER_ID);  /* D2 */
    assert_int_equal(beat(rig, "N", NULL, 3), KAFKA_UNKNOWN_MEMBER_ID); /* D4 */
    assert_int_equal(beat(rig, id, NULL, 2), KAFKA_ILLEGAL_GENERATION); /* D5 */
    assert_int_equal(beat(rig, id, NULL, 4), KAFKA_ILLEGAL_GENERATION); /* D5 */
    assert_int_equal(beat(rig, id, NULL, 3), KAFKA_NONE);               /* D10 */
    assert_int_equal(sync_at(rig, id, 2, &call), KAFKA_ILLEGAL_GENERATION);
    assert_int_equal(sync_at(rig, "N", 3, &call), KAFKA_UNKNOWN_MEMBER_ID);
    /* Newcomers: a new target, join again. */
    crig_join(rig, "M", "foo");
    crig_join(rig, "M2", "foo");
    assert_int_equal(beat(rig, id, NULL, 3), KAFKA_REBALANCE_IN_PROGRESS); /* D6, T27 */
    assert_int_equal(sync_at(rig, id, 3, &call), KAFKA_REBALANCE_IN_PROGRESS);
    assert_int_equal(join(rig, (struct wish){.id = id, .owned = "23"}, &call), KAFKA_NONE);
    assert_int_equal(call.join.generation_id, 3); /* It is to give one up. */
    assert_int_equal(beat(rig, id, NULL, 3), KAFKA_REBALANCE_IN_PROGRESS); /* D7, T28 */
    assert_int_equal(sync_at(rig, id, 3, &call), KAFKA_NONE);
    assert_int_equal(join(rig, (struct wish){.id = id, .owned = "2"}, &call), KAFKA_NONE);
    assert_int_equal(call.join.generation_id, 5);
    assert_int_equal(beat(rig, id, NULL, 5), KAFKA_NONE);
}

static void timers(void **state) /* T27: asked to join, beats on, does not */
{
    struct crig *rig = *state;
    const char *id = mixed(rig);
    crig_join(rig, "M", "foo");
    for (int64_t at = 0; at < 10000; at += 2000) {
        assert_string_equal(crig_until(rig, at), "");
        assert_int_equal(beat(rig, id, NULL, 3), KAFKA_REBALANCE_IN_PROGRESS);
    }
    crig_until(rig, 9999);
    assert_non_null(consumer_group_member(crig_group(rig)->consumer, view_of_string(id)));
    crig_until(rig, 10000);
    assert_null(consumer_group_member(crig_group(rig)->consumer, view_of_string(id)));
    assert_int_equal(crig_group(rig)->consumer->epoch, 5);
}

/* Nothing but a beat has happened for longer than the rebalance timeout. */
static void timer_after_silence(void **state)
{
    struct crig *rig = *state;
    const char *id = mixed(rig);
    crig_join(rig, "M", "foo");
    for (int i = 0; i < 4; i++) {
        rig->now += 4000; /* No step, no tick: the classic session is kept by beats alone. */
        struct consumer_member *member =
            consumer_group_member(crig_group(rig)->consumer, view_of_string(id));
        group_timer_cancel(crig_group(rig), &member->join);
        assert_int_equal(beat(rig, id, NULL, 3), KAFKA_REBALANCE_IN_PROGRESS);
        assert_int_equal(member->join.entry.deadline_ms, rig->now + 10000);
    }
}

static void session_is_its_own(void **state)
{
    struct crig *rig = *state;
    const char *id = mixed(rig);
    crig_until(rig, 4999);
    assert_int_equal(crig_group(rig)->consumer->members.count, 2);
    assert_int_equal(beat(rig, id, NULL, 3), KAFKA_NONE);
    crig_until(rig, 9998);
    assert_int_equal(crig_group(rig)->consumer->members.count, 2);
    crig_until(rig, 9999);
    assert_int_equal(crig_group(rig)->consumer->members.count, 1);
}

/* An assignment that was put off is made when it may be, though only classic members are left
 * (seeds 35315, 45485: nobody asked for it). */
static void what_was_put_off_is_made(void **state)
{
    struct crig *rig = *state;
    const char *id = mixed(rig);
    rig->options.migration = CONSUMER_GROUP_UPGRADE;
    rig->options.assignment.value_ms = 3000;
    crig_options_set(rig);
    assert_int_equal(leave(rig, "N", NULL), KAFKA_NONE);
    crig_until(rig, 2999);
    assert_int_equal(beat(rig, id, NULL, 3), KAFKA_NONE);
    crig_until(rig, 3000);
    assert_int_equal(beat(rig, id, NULL, 3), KAFKA_REBALANCE_IN_PROGRESS);
    struct call call;
    assert_int_equal(join(rig, (struct wish){.id = id}, &call), KAFKA_NONE);
    assert_int_equal(crig_group(rig)->consumer->assignment_epoch, 4);
}

/* After a load too (seeds 45673, 56693: another length let others have what a silent one held). */
static void session_is_its_own_after_a_load(void **state)
{
    struct crig *rig = *state;
    (void)mixed(rig);
    crig_reload(rig);
    int64_t at_ms = rig->now;
    crig_until(rig, at_ms + 4999);
    assert_int_equal(crig_group(rig)->consumer->members.count, 2);
    crig_until(rig, at_ms + 5000);
    assert_int_equal(crig_group(rig)->consumer->members.count, 1);
}

static void join_refusals(void **state) /* 13.2, T168 */
{
    struct crig *rig = *state;
    struct call call;
    mixed(rig);
    assert_int_equal(join(rig, (struct wish){.type = "connect"}, &call),
                     KAFKA_INCONSISTENT_GROUP_PROTOCOL);
    assert_int_equal(join(rig, (struct wish){.protocol = "other"}, &call),
                     KAFKA_INCONSISTENT_GROUP_PROTOCOL);
    assert_int_equal(join(rig, (struct wish){.metadata = VIEW("no")}, &call),
                     KAFKA_INCONSISTENT_GROUP_PROTOCOL);
    assert_int_equal(join(rig, (struct wish){.version = 5}, &call), KAFKA_MEMBER_ID_REQUIRED);
    assert_int_equal(crig_group(rig)->consumer->members.count, 2);
    assert_int_equal(join(rig, (struct wish){.id = "x", .instance = "i1"}, &call),
                     KAFKA_UNKNOWN_MEMBER_ID);
    rig->options.migration = 0;
    crig_options_set(rig);
    assert_int_equal(join(rig, (struct wish){0}, &call), KAFKA_INCONSISTENT_GROUP_PROTOCOL);
    /* A failed append is in the answer. */
    rig->options.migration = CONSUMER_GROUP_UPGRADE;
    crig_options_set(rig);
    rig->append = KAFKA_NOT_COORDINATOR;
    assert_int_equal(join(rig, (struct wish){0}, &call), KAFKA_NOT_COORDINATOR);
    assert_int_equal(crig_group(rig)->consumer->members.count, 2);
}

/* A classic group with one member that holds foo 0, in generation 1. */
static const char *classic(struct crig *rig, struct view assignment)
{
    static struct call call, synced;
    struct sync_group_request_sync_group_request_assignment item = {.assignment = assignment};
    struct sync_group_request in;
    struct step step;
    assert_int_equal(join(rig, (struct wish){0}, &call), -1000);
    crig_until(rig, 3000);
    take_answers(rig);
    assert_int_equal(call.join.generation_id, 1);
    item.member_id = call.join.member_id;
    wire_defaults(&wire_sync_group_request, &in);
    in.group_id = VIEW("g");
    in.generation_id = 1;
    in.member_id = call.join.member_id;
    in.group_instance_id = in.protocol_type = in.protocol_name = VIEW_NULL;
    in.assignments.items = &item;
    in.assignments.count = 1;
    synced = (struct call){
        .wait = {.arena = &rig->arena, .version = 3, .sync = &synced.sync}
    };
    crig_begin(rig, &step, 3);
    assert_int_equal(group_sync(rig->groups, &step, &in, &synced.wait), STEP_DONE);
    crig_commit(rig, &step);
    take_answers(rig);
    assert_true(synced.answered);
    assert_int_equal(crig_group(rig)->state, GROUP_STABLE);
    return text_of(rig, call.join.member_id);
}

static struct view foo_0(struct crig *rig)
{
    struct partition_item item = {.topic = crig_topic_id("foo")};
    struct partition_set set = {&item, 1};
    return consumer_protocol_assigned(&rig->arena, rig->image, &set, VIEW_EMPTY);
}

/* Ids that the server makes are long; in traces they are A. */
static const char *with_a(struct crig *rig, const char *id)
{
    char *at;
    size_t size = strlen(id);
    while ((at = strstr(rig->trace, id)) != NULL) {
        *at = 'A';
        memmove(at + 1, at + size, strlen(at + size) + 1);
    }
    return rig->trace;
}

static void upgrade(void **state) /* T102 */
{
    struct crig *rig = *state;
    crig_topic(rig, "foo", 2);
    const char *id = classic(rig, foo_0(rig));
    crig_join(rig, "M", "foo");
    assert_trace(with_a(rig, id),
                 "2 {foo 1} | 2 gone; 5 A foo classic; 3 e1 nothing; 7 A foo 0; 6 e1 t0; 8 A 1<1 "
                 "STABLE foo 0@1; 5 M foo; 3 e2; 7 M foo 1; 6 e2; 8 M 2<0 STABLE foo 1@2");
    assert_int_equal(beat(rig, id, NULL, 1), KAFKA_REBALANCE_IN_PROGRESS);
    crig_reload(rig);
    assert_int_equal(crig_group(rig)->consumer->members.count, 2);
    assert_int_equal(beat(rig, id, NULL, 1), KAFKA_REBALANCE_IN_PROGRESS);
}

static void upgrade_answers_who_waits(void **state)
{
    struct crig *rig = *state;
    static struct call parked;
    crig_topic(rig, "foo", 2);
    classic(rig, foo_0(rig));
    assert_int_equal(join(rig, (struct wish){0}, &parked), -1000);
    crig_join(rig, "M", "foo");
    take_answers(rig);
    assert_true(parked.answered);
    assert_int_equal(parked.join.error_code, KAFKA_REBALANCE_IN_PROGRESS);
}

static void no_upgrade(void **state) /* T103 */
{
    struct crig *rig = *state;
    static const uint8_t own[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 7}; /* A strategy's byte. */
    crig_topic(rig, "foo", 2);
    classic(rig, view_of(own, sizeof(own)));
    assert_trace(crig_join(rig, "M", "foo"), "error 69 |");
    rig->options.migration = CONSUMER_GROUP_DOWNGRADE;
    crig_options_set(rig);
    assert_trace(crig_join(rig, "M", "foo"), "error 69 |");
    assert_true(view_is(rig->out.error_message, "Group g is not a consumer group."));
    assert_int_equal(crig_group(rig)->state, GROUP_STABLE);
}

static void downgrade(void **state) /* T104 */
{
    struct crig *rig = *state;
    const char *id = mixed(rig);
    crig_beat(rig, "N", (struct crig_beat){.epoch = -1});
    with_a(rig, id);
    assert_non_null(strstr(rig->trace, "8 A gone"));
    assert_non_null(strstr(rig->trace, "; 3 gone; 2"));
    assert_null(crig_group(rig)->consumer);
    assert_int_equal(crig_group(rig)->generation, 3);
    assert_int_equal(crig_group(rig)->state, GROUP_PREPARING);
    assert_int_equal(beat(rig, id, NULL, 3), KAFKA_REBALANCE_IN_PROGRESS);
    crig_reload(rig); /* The rebalance was in nobody's record, and goes on. */
    assert_int_equal(crig_group(rig)->state, GROUP_PREPARING);
    const struct member *member = group_member_by_id(crig_group(rig), view_of_string(id));
    struct partition_set got;
    assert_int_equal(
        consumer_protocol_assignment(&rig->arena, rig->image, member->assignment, 0, &got),
        CONSUMER_PROTOCOL_OK);
    assert_int_equal(got.count, 2);
}

static void eviction(void **state) /* T169, 13.5 */
{
    struct crig *rig = *state;
    const char *id = mixed(rig);
    assert_int_equal(leave(rig, "x", NULL), KAFKA_UNKNOWN_MEMBER_ID);
    assert_int_equal(leave(rig, "x", "i1"), KAFKA_UNKNOWN_MEMBER_ID);
    assert_int_equal(leave(rig, "N", NULL), KAFKA_NONE);
    assert_null(crig_group(rig)->consumer);
    assert_int_equal(beat(rig, id, NULL, 3), KAFKA_REBALANCE_IN_PROGRESS);
}

static void eviction_stays(void **state)
{
    struct crig *rig = *state;
    const char *id = mixed(rig);
    rig->options.migration = CONSUMER_GROUP_UPGRADE;
    crig_options_set(rig);
    assert_int_equal(leave(rig, "N", NULL), KAFKA_NONE);
    assert_trace(rig->trace, " | 8 N gone; 7 N gone; 5 N gone; 3 e4");
    /* Kafka says NONE, and nobody has what N had before somebody joins. */
    assert_int_equal(beat(rig, id, NULL, 3), KAFKA_REBALANCE_IN_PROGRESS);
    assert_int_equal(leave(rig, id, NULL), KAFKA_NONE);
    assert_string_equal(crig_state(rig), "Empty");
}

/* The last member of the new protocol comes back by the old one. */
static void static_downgrade(void **state)
{
    struct crig *rig = *state;
    static struct call back;
    crig_topic(rig, "foo", 4);
    crig_beat(
        rig, "S",
        (struct crig_beat){.names = "foo", .owned = "", .rebalance = 12000, .instance = "i1"});
    struct call call;
    assert_int_equal(join(rig, (struct wish){0}, &call), KAFKA_NONE);
    const char *id = text_of(rig, call.join.member_id);
    assert_int_equal(join(rig, (struct wish){.instance = "i1"}, &back), -1000);
    assert_null(crig_group(rig)->consumer);
    assert_int_equal(crig_group(rig)->state, GROUP_PREPARING);
    assert_int_equal(beat(rig, id, NULL, 3), KAFKA_REBALANCE_IN_PROGRESS);
    assert_int_equal(join(rig, (struct wish){.id = id}, &call), KAFKA_NONE);
    assert_true(back.answered);
    assert_int_equal(back.join.generation_id, 4);
}

/* The same without memory while the step is applied, at each place: the log has it, and who asked
 * hears that the coordinator is another (seed 14264: it heard nothing). */
static void downgrade_without_memory(void **state)
{
    bool lost = true;
    for (int64_t nth = 0; lost; nth++) {
        static struct call back;
        struct crig *rig = *state;
        struct call call;
        crig_topic(rig, "foo", 4);
        crig_beat(
            rig, "S",
            (struct crig_beat){.names = "foo", .owned = "", .rebalance = 12000, .instance = "i1"});
        assert_int_equal(join(rig, (struct wish){0}, &call), KAFKA_NONE);
        rig->apply_fails = true;
        rig->apply_fail_in = nth;
        int error = join(rig, (struct wish){.instance = "i1"}, &back);
        lost = rig->unloaded;
        assert_int_equal(error, lost ? KAFKA_NOT_COORDINATOR : -1000);
        assert_true(lost || nth > 5);
        crig_teardown(state);
        crig_setup(state);
    }
}

/* An empty consumer group makes way for a classic one, its offsets stay. */
static void empty_makes_way(void **state)
{
    struct crig *rig = *state;
    static struct call call;
    crig_topic(rig, "foo", 1);
    crig_join(rig, "M", "foo");
    crig_beat(rig, "M", (struct crig_beat){.epoch = -1});
    assert_int_equal(join(rig, (struct wish){.id = "x"}, &call), KAFKA_UNKNOWN_MEMBER_ID);
    assert_int_equal(join_step(rig, (struct wish){0}, &call), STEP_MORE);
    assert_trace(rig->trace, " | 6 gone; 3 gone");
    assert_int_equal(join(rig, (struct wish){0}, &call), -1000);
    assert_null(crig_group(rig)->consumer);
    crig_until(rig, 3000);
    take_answers(rig);
    assert_int_equal(call.join.error_code, KAFKA_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, crig_setup, crig_teardown)
        CASE(beats),
        CASE(timers),
        CASE(session_is_its_own),
        CASE(session_is_its_own_after_a_load),
        CASE(what_was_put_off_is_made),
        CASE(timer_after_silence),
        CASE(join_refusals),
        CASE(upgrade),
        CASE(upgrade_answers_who_waits),
        CASE(no_upgrade),
        CASE(downgrade),
        CASE(eviction),
        CASE(eviction_stays),
        CASE(static_downgrade),
        CASE(downgrade_without_memory),
        CASE(empty_makes_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
