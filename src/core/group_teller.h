/* group_teller.h - classic groups told line by line: who asks what and when, who is answered what,
 * what is logged.
 *
 *      0 A joins
 *   3000 A: generation 1, leads A
 *   3000 A syncs A=x
 *        log: generation 1, A=x
 *   3000 A: has x
 *
 * Members are letters; their ids are the server's. A refusal is the error's number. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "core/core_test.h"

#include "base/bytes.h"
#include "core/group_internal.h"
#include "core/offsets.h"
#include "gen/group_metadata_value.h"
#include "gen/join_group_request.h"
#include "gen/join_group_response.h"
#include "gen/leave_group_request.h"
#include "gen/leave_group_response.h"
#include "gen/offset_commit_key.h"
#include "gen/offset_commit_request.h"
#include "gen/offset_commit_value.h"
#include "gen/sync_group_request.h"
#include "gen/sync_group_response.h"

#define TELLER_WALL    1000000 /* The wall clock when the other one stands at zero. */
#define TELLER_CALLS   64
#define TELLER_LOG     256
#define TELLER_ID_SIZE 80

struct teller_call {
    struct group_wait wait;
    struct join_group_response join;
    struct sync_group_response sync;
    char who;
};

struct teller {
    struct rig_mem heap;
    struct arena arena;
    struct groups *groups;
    struct group_options options;
    int64_t now;
    int64_t offset;          /* Of the next record. */
    enum kafka_error append; /* What the next appends come to. */
    char ids['Z' + 1][TELLER_ID_SIZE];
    struct teller_call calls[TELLER_CALLS];
    int call_count;
    char story[8192];
    /* All that was appended, to be loaded anew. */
    struct step_record log[TELLER_LOG];
    uint32_t log_count;
};

static inline void tell(struct teller *t, const char *format, ...)
{
    size_t at = strlen(t->story);
    va_list list;
    va_start(list, format);
    vsnprintf(t->story + at, sizeof(t->story) - at, format, list);
    va_end(list);
}

static inline void tell_time(struct teller *t)
{
    tell(t, "%6lld ", (long long)t->now);
}

/* The letter of a member id; '?' of one that nobody has. */
static inline char teller_letter(const struct teller *t, struct view id)
{
    for (char c = 'A'; c <= 'Z'; c++)
        if (t->ids[(int)c][0] != '\0' && view_is(id, t->ids[(int)c])) return c;
    return '?';
}

static inline struct view teller_id(const struct teller *t, char who)
{
    return view_of_string(t->ids[(int)who]);
}

/* ---- answers ---------------------------------------------------------------------------------
 */

static inline void tell_joined(struct teller *t, const struct teller_call *call)
{
    const struct join_group_response *got = &call->join;
    tell_time(t);
    if (got->error_code != KAFKA_NONE) {
        tell(t, "%c: %d\n", call->who, got->error_code);
        return;
    }
    bool leads = view_equal(got->leader, got->member_id);
    tell(t, "%c: generation %d, %s, %s", call->who, got->generation_id,
         got->protocol_name.null ? "no protocol" : (const char *)got->protocol_name.data,
         leads ? "leads" : "follows ");
    if (!leads) tell(t, "%c", teller_letter(t, got->leader));
    for (int32_t i = 0; i < got->members.count; i++)
        tell(t, " %c", teller_letter(t, got->members.items[i].member_id));
    tell(t, "%s\n", got->skip_assignment ? ", skips the assignment" : "");
}

static inline void tell_synced(struct teller *t, const struct teller_call *call)
{
    tell_time(t);
    if (call->sync.error_code != KAFKA_NONE)
        tell(t, "%c: %d\n", call->who, call->sync.error_code);
    else
        tell(t, "%c: has %.*s\n", call->who, (int)call->sync.assignment.size,
             (const char *)call->sync.assignment.data);
}

/* Ids first, so that members are told by their letters whoever is answered first. */
static inline void teller_answers(struct teller *t)
{
    struct teller_call *answered[TELLER_CALLS];
    int count = 0;
    struct group_wait *wait;
    while ((wait = groups_answer(t->groups)) != NULL) {
        struct teller_call *call = container_of(wait, struct teller_call, wait);
        answered[count++] = call;
        if (call->wait.join == NULL || call->join.member_id.size == 0) continue;
        if (call->join.error_code != KAFKA_NONE &&
            call->join.error_code != KAFKA_MEMBER_ID_REQUIRED)
            continue;
        assert_true(call->join.member_id.size < TELLER_ID_SIZE);
        memcpy(t->ids[(int)call->who], call->join.member_id.data, call->join.member_id.size);
        t->ids[(int)call->who][call->join.member_id.size] = '\0';
    }
    for (int i = 0; i < count; i++)
        if (answered[i]->wait.join != NULL)
            tell_joined(t, answered[i]);
        else
            tell_synced(t, answered[i]);
}

/* ---- records ---------------------------------------------------------------------------------
 */

static inline const void *teller_decode(struct teller *t,
                                        struct view bytes,
                                        const struct wire_message *message,
                                        int16_t version)
{
    const void *out = group_part_decode(&t->arena, bytes, message, version);
    assert_non_null(out);
    return out;
}

static inline void tell_record(struct teller *t, const struct step_record *record)
{
    struct view key = record->key.bytes, value = record->value.bytes;
    tell(t, "       log: ");
    if (load_be16(key.data) == 1) {
        const struct offset_commit_key *at =
            teller_decode(t, key, &wire_offset_commit_key, wire_offset_commit_key.version_min);
        tell(t, "%.*s-%d ", (int)at->topic.size, (const char *)at->topic.data, at->partition);
        if (value.null) {
            tell(t, "gone\n");
            return;
        }
        int16_t version = (int16_t)load_be16(value.data);
        const struct offset_commit_value *in =
            teller_decode(t, value, &wire_offset_commit_value, version);
        tell(t, "%lld", (long long)in->offset);
        if (in->expire_timestamp >= 0)
            tell(t, " until %lld", (long long)in->expire_timestamp - TELLER_WALL);
        tell(t, "\n");
        return;
    }
    if (value.null) {
        tell(t, "the group is gone\n");
        return;
    }
    const struct group_metadata_value *in =
        teller_decode(t, value, &wire_group_metadata_value, (int16_t)load_be16(value.data));
    tell(t, "generation %d,%s", in->generation, in->members.count == 0 ? " empty" : "");
    for (int32_t i = 0; i < in->members.count; i++)
        tell(t, " %c=%.*s", teller_letter(t, in->members.items[i].member_id),
             (int)in->members.items[i].assignment.size,
             (const char *)in->members.items[i].assignment.data);
    tell(t, "\n");
}

/* ---- steps -----------------------------------------------------------------------------------
 */

static inline void teller_begin(struct teller *t, struct step *step, int16_t version)
{
    step_begin(step, &t->arena, t->now, TELLER_WALL + t->now);
    step->random[0] = (uint64_t)t->now * 77 + (uint64_t)t->call_count + 1;
    step->caller.version = version;
}

static inline void teller_commit(struct teller *t, const struct step *step)
{
    if (step->record_count > 0 && t->append != KAFKA_NONE) {
        tell(t, "       log: refuses\n");
        groups_failed(t->groups, step, t->append);
    } else if (step->record_count > 0) {
        for (uint32_t i = 0; i < step->record_count; i++) {
            assert_true(t->log_count < TELLER_LOG);
            t->log[t->log_count].key.bytes = rig_heap(step->records[i].key.bytes);
            t->log[t->log_count++].value.bytes = rig_heap(step->records[i].value.bytes);
        }
        for (uint32_t i = 0; i < step->record_count; i++)
            tell_record(t, &step->records[i]);
        assert_int_equal(groups_apply(t->groups, step, t->offset), GROUPS_OK);
        t->offset += step->record_count;
    }
    teller_answers(t);
}

static inline void teller_tick(struct teller *t)
{
    struct step step;
    for (;;) {
        teller_begin(t, &step, 0);
        if (!groups_tick(t->groups, &step)) return;
        teller_commit(t, &step);
    }
}

/* Let time pass; deadlines on the way are acted on when they are due. */
static inline void teller_until(struct teller *t, int64_t at)
{
    for (; t->now < at; t->now++)
        teller_tick(t);
    teller_tick(t);
}

/* ---- what members do -------------------------------------------------------------------------
 */

struct teller_wish {
    const char *instance;  /* NULL: dynamic. */
    const char *protocols; /* "range" */
    const char *metadata;  /* "m" */
    const char *type;      /* "consumer" */
    int16_t version;       /* 3: an id is not needed to join. */
    int32_t session, rebalance;
    bool forgets; /* It joins without the id that it has. */
    bool wants;   /* Its metadata is a subscription to the topic foo. */
};

static inline struct teller_call *teller_call(struct teller *t,
                                              char who,
                                              bool join,
                                              int16_t version)
{
    assert_true(t->call_count < TELLER_CALLS);
    struct teller_call *call = &t->calls[t->call_count++];
    call->who = who;
    call->wait = (struct group_wait){
        .arena = &t->arena,
        .version = version,
        .join = join ? &call->join : NULL,
        .sync = join ? NULL : &call->sync,
    };
    return call;
}

static inline void joins(struct teller *t, char who, struct teller_wish wish)
{
    int16_t version = wish.version != 0 ? wish.version : 3;
    struct teller_call *call = teller_call(t, who, true, version);
    struct join_group_request_join_group_request_protocol items[4];
    const char *names = wish.protocols != NULL ? wish.protocols : "range";
    struct view metadata = view_of_string(wish.metadata != NULL ? wish.metadata : "m");
    struct join_group_request in;
    struct step step;
    if (wish.wants) metadata = VIEW("\0\0\0\0\0\1\0\3foo\xff\xff\xff\xff");
    wire_defaults(&wire_join_group_request, &in);
    in.group_id = VIEW("g");
    in.member_id = wish.forgets ? VIEW_EMPTY : teller_id(t, who);
    in.group_instance_id = view_of_string(wish.instance);
    in.session_timeout_ms = wish.session != 0 ? wish.session : 10000;
    in.rebalance_timeout_ms = wish.rebalance != 0 ? wish.rebalance : 10000;
    in.protocol_type = view_of_string(wish.type != NULL ? wish.type : "consumer");
    in.protocols.items = items;
    in.protocols.count = 0;
    while (*names != '\0') {
        uint32_t size = (uint32_t)strcspn(names, ",");
        items[in.protocols.count++] = (struct join_group_request_join_group_request_protocol){
            .name = view_of(names, size), .metadata = metadata};
        names += size + (names[size] == ',');
    }
    struct group_join ask = {
        .request = &in, .client_id = VIEW("app"), .client_host = VIEW("/here")};
    tell_time(t);
    tell(t, "%c joins\n", who);
    teller_begin(t, &step, version);
    assert_int_equal(group_join(t->groups, &step, &ask, &call->wait), STEP_DONE);
    teller_commit(t, &step);
}

/* `gives`: "A=x B=y", the assignments of a leader; "": none. */
static inline void syncs(struct teller *t, char who, int32_t generation, const char *gives)
{
    struct teller_call *call = teller_call(t, who, false, 3);
    struct sync_group_request_sync_group_request_assignment items[8];
    struct sync_group_request in;
    struct step step;
    wire_defaults(&wire_sync_group_request, &in);
    in.group_id = VIEW("g");
    in.generation_id = generation;
    in.member_id = teller_id(t, who);
    in.assignments.items = items;
    in.assignments.count = 0;
    for (const char *at = gives; *at != '\0'; at += at[3] == ' ' ? 4 : 3)
        items[in.assignments.count++] = (struct sync_group_request_sync_group_request_assignment){
            .member_id = teller_id(t, at[0]), .assignment = view_of(at + 2, 1)};
    tell_time(t);
    tell(t, "%c syncs%s%s\n", who, *gives != '\0' ? " " : "", gives);
    teller_begin(t, &step, 3);
    assert_int_equal(group_sync(t->groups, &step, &in, &call->wait), STEP_DONE);
    teller_commit(t, &step);
}

static inline void beats(struct teller *t, char who, int32_t generation, const char *instance)
{
    struct group_beat in = {
        .group_id = VIEW("g"),
        .member_id = teller_id(t, who),
        .instance_id = view_of_string(instance),
        .generation = generation,
        .arrived_ms = t->now,
    };
    enum kafka_error error = group_heartbeat(t->groups, &in);
    tell_time(t);
    tell(t, "%c beats: %d\n", who, error);
}

/* Who leaves: a letter by its id, or by its instance alone. */
struct teller_leaver {
    char who; /* '\0': by instance. */
    const char *instance;
};

static inline void leave(struct teller *t, const struct teller_leaver *who, int32_t count)
{
    struct leave_group_request_member_identity items[8];
    struct leave_group_request in;
    struct leave_group_response out;
    struct step step;
    wire_defaults(&wire_leave_group_request, &in);
    wire_defaults(&wire_leave_group_response, &out);
    in.group_id = VIEW("g");
    in.members.items = items;
    in.members.count = count;
    for (int32_t i = 0; i < count; i++)
        items[i] = (struct leave_group_request_member_identity){
            .member_id = who[i].who != '\0' ? teller_id(t, who[i].who) : VIEW_EMPTY,
            .group_instance_id = view_of_string(who[i].instance)};
    tell_time(t);
    teller_begin(t, &step, 5);
    assert_int_equal(group_leave(t->groups, &step, &in, &out), STEP_DONE);
    tell(t, "leave: %d;", out.error_code);
    for (int32_t i = 0; i < out.members.count; i++)
        tell(t, " %d", out.members.items[i].error_code);
    tell(t, "\n");
    teller_commit(t, &step);
}

static inline void leaves(struct teller *t, char who)
{
    struct teller_leaver one = {who, NULL};
    leave(t, &one, 1);
}

/* The state of the group, as DescribeGroups names it. */
static inline void tell_state(struct teller *t)
{
    static const char *const names[] = {
        [GROUP_EMPTY] = "Empty",
        [GROUP_PREPARING] = "PreparingRebalance",
        [GROUP_COMPLETING] = "Completing",
        [GROUP_STABLE] = "Stable",
        [GROUP_DEAD] = "Dead",
    };
    const struct group *group = groups_find(t->groups, VIEW("g"));
    tell_time(t);
    if (group == NULL)
        tell(t, "no group\n");
    else
        tell(t, "%s, generation %d, members %u\n", names[group->state], group->generation,
             group->members.count);
}

/* ---- over a load ----------------------------------------------------------------------------- */

/* The shard is given up; what waits is told. */
static inline void resigns(struct teller *t)
{
    tell_time(t);
    tell(t, "resigns\n");
    groups_unload(t->groups, KAFKA_NOT_COORDINATOR);
    teller_answers(t);
    t->groups = groups_free(t->groups);
}

/* And loaded again, at this moment, from all that was logged. */
static inline void loads(struct teller *t)
{
    struct step step;
    tell_time(t);
    tell(t, "loads\n");
    t->groups = groups_new(&t->heap.mem, &t->options, 9, t->now);
    assert_non_null(t->groups);
    for (uint32_t i = 0; i < t->log_count; i++)
        assert_int_equal(groups_load(t->groups, &t->arena, t->log[i].key.bytes,
                                     t->log[i].value.bytes, (struct groups_place){i, -1}),
                         GROUPS_OK);
    teller_begin(t, &step, 0);
    groups_loaded(t->groups, &step);
    teller_answers(t);
}

static inline int teller_setup(void **state)
{
    struct teller *t = calloc(1, sizeof(*t));
    rig_mem_init(&t->heap);
    arena_init(&t->arena, &t->heap.mem, 0);
    t->options = (struct group_options){
        .session_min_ms = 1000,
        .session_max_ms = 1800000,
        .initial_delay_ms = 3000,
        .size_max = 10,
        .metadata_max_bytes = 4096,
        .retention_ms = 604800000,
    };
    t->groups = groups_new(&t->heap.mem, &t->options, 7, 0);
    assert_non_null(t->groups);
    *state = t;
    return 0;
}

static inline int teller_teardown(void **state)
{
    struct teller *t = *state;
    if (t->groups != NULL) resigns(t);
    arena_free(&t->arena);
    assert_int_equal(t->heap.mem.used_bytes, 0);
    for (uint32_t i = 0; i < t->log_count; i++) {
        free((void *)(uintptr_t)t->log[i].key.bytes.data);
        free((void *)(uintptr_t)t->log[i].value.bytes.data);
    }
    free(t);
    return 0;
}

/* The story since the last call is this; it begins anew. */
#define assert_story(t, expected)                                                                  \
    do {                                                                                           \
        assert_string_equal((t)->story, (expected));                                               \
        (t)->story[0] = '\0';                                                                      \
    } while (0)
