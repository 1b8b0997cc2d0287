/* classic.c - joins, syncs, beats and leaves of a scripted member. */
#include "check/classic.h"

#include "gen/heartbeat_request.h"
#include "gen/heartbeat_response.h"
#include "gen/join_group_request.h"
#include "gen/leave_group_request.h"
#include "gen/leave_group_response.h"
#include "gen/sync_group_request.h"
#include "gen/sync_group_response.h"

#define PROTOCOLS_MAX    3
#define BEAT_PAUSE_MS    50
#define CHANGED_LIMIT_MS 10000
#define SETTLE_MS        300 /* For requests on several connections to arrive in order. */
#define JOIN_LIMIT_MS    40000
#define JOIN_WITHOUT_IDS 3
#define SYNC_VERSION     5
#define LEAVE_VERSION    5
#define HAS_INSTANCE     5 /* JoinGroup; Heartbeat and SyncGroup from 3 on. */
#define HAS_MEMBER_IDS   4

void classic_init(struct classic *m, struct check_run *run, const char *instance)
{
    *m = (struct classic){
        .run = run,
        .work = run_peer(run),
        .beats = run_peer(run),
        .id = VIEW_EMPTY,
        .instance = view_of_string(instance),
        .generation = -1,
        .session_ms = CLASSIC_TIMEOUT_MS,
        .rebalance_ms = CLASSIC_TIMEOUT_MS,
        .join_version = instance == NULL ? JOIN_WITHOUT_IDS : CLASSIC_JOIN_NEWEST,
        .protocol_type = "consumer",
        .protocols = {"range"},
        .assignment = VIEW("assigned"),
        .metadata = VIEW("\0\0\0\0\0\0\0\0\0\0"),
    };
}

/* ---- join -------------------------------------------------------------------------------------
 */

static int16_t join_version(struct classic *m)
{
    return run_version(m->run, &wire_join_group_request, m->join_version);
}

void classic_join_send(struct classic *m)
{
    struct join_group_request_join_group_request_protocol protocols[PROTOCOLS_MAX];
    struct join_group_request *ask = run_new(m->run, &wire_join_group_request);
    int16_t version = join_version(m);

    ask->group_id = view_of_string(m->run->name);
    ask->session_timeout_ms = m->session_ms;
    ask->rebalance_timeout_ms = m->rebalance_ms;
    ask->member_id = m->id;
    ask->group_instance_id = version >= HAS_INSTANCE ? m->instance : VIEW_NULL;
    ask->protocol_type = view_of_string(m->protocol_type);
    ask->protocols.items = protocols;
    for (uint32_t i = 0; i < PROTOCOLS_MAX && m->protocols[i] != NULL; i++) {
        wire_struct_defaults(&wire_join_group_request_join_group_request_protocol_shape,
                             &protocols[i]);
        protocols[i].name = view_of_string(m->protocols[i]);
        protocols[i].metadata = m->metadata;
        ask->protocols.count = (int32_t)i + 1;
    }
    run_send(m->run, m->work, &wire_join_group_request, version, ask);
}

void classic_change_send(struct classic *m)
{
    m->metadata = VIEW("\0\1\0\0\0\0\0\0\0\0\0\0\0\0");
    classic_join_send(m);
}

const struct join_group_response *classic_join_take(struct classic *m)
{
    const struct join_group_response *answer =
        run_receive(m->run, m->work, &wire_join_group_request, join_version(m), JOIN_LIMIT_MS);
    if (answer->error_code == KAFKA_MEMBER_ID_REQUIRED) m->id = answer->member_id;
    if (answer->error_code != KAFKA_NONE) return answer;
    m->id = answer->member_id;
    m->leader = answer->leader;
    m->generation = answer->generation_id;
    m->member_count = answer->members.count;
    return answer;
}

int16_t classic_join(struct classic *m)
{
    classic_join_send(m);
    return classic_join_take(m)->error_code;
}

void classic_enter(struct classic *m)
{
    bool asks = join_version(m) >= HAS_MEMBER_IDS && m->id.size == 0 &&
                (m->instance.null || join_version(m) < HAS_INSTANCE);
    if (asks) run_need(m->run, "first join", KAFKA_MEMBER_ID_REQUIRED, classic_join(m));
    classic_join_send(m);
    run_wait(m->run, SETTLE_MS);
}

void classic_joined(struct classic *m, const char *what)
{
    run_need(m->run, what, KAFKA_NONE, classic_join_take(m)->error_code);
}

/* ---- sync -------------------------------------------------------------------------------------
 */

static int16_t sync_version(struct classic *m)
{
    return run_version(m->run, &wire_sync_group_request, SYNC_VERSION);
}

void classic_sync_send(struct classic *m, const struct classic *const *others, uint32_t count)
{
    struct sync_group_request_sync_group_request_assignment assignments[RUN_PEERS_MAX];
    struct sync_group_request *ask = run_new(m->run, &wire_sync_group_request);
    int16_t version = sync_version(m);

    ask->group_id = view_of_string(m->run->name);
    ask->generation_id = m->generation;
    ask->member_id = m->id;
    ask->group_instance_id = version >= 3 ? m->instance : VIEW_NULL;
    ask->protocol_type = view_of_string(m->protocol_type);
    ask->protocol_name = view_of_string(m->protocols[0]);
    ask->assignments.items = assignments;
    ask->assignments.count = (int32_t)count;
    assert(count <= RUN_PEERS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        wire_struct_defaults(&wire_sync_group_request_sync_group_request_assignment_shape,
                             &assignments[i]);
        assignments[i].member_id = others[i]->id;
        assignments[i].assignment = others[i]->assignment;
    }
    run_send(m->run, m->work, &wire_sync_group_request, version, ask);
}

int16_t classic_sync_take(struct classic *m, struct view *assignment)
{
    const struct sync_group_response *answer =
        run_receive(m->run, m->work, &wire_sync_group_request, sync_version(m), RUN_CALL_MS);
    if (assignment != NULL) *assignment = answer->assignment;
    return answer->error_code;
}

int16_t classic_sync(struct classic *m)
{
    classic_sync_send(m, (const struct classic *const *)&m, view_equal(m->leader, m->id) ? 1 : 0);
    return classic_sync_take(m, NULL);
}

/* ---- beats and leaving ------------------------------------------------------------------------
 */

int16_t classic_beat_as(struct classic *through, int16_t version, const struct classic_beat *beat)
{
    struct heartbeat_request *ask = run_new(through->run, &wire_heartbeat_request);
    ask->group_id = view_of_string(through->run->name);
    ask->member_id = beat->member;
    ask->group_instance_id = version >= 3 ? beat->instance : VIEW_NULL;
    ask->generation_id = beat->generation;
    const struct heartbeat_response *answer =
        run_call(through->run, through->beats, &wire_heartbeat_request, version, ask);
    return answer->error_code;
}

int16_t classic_beat(struct classic *m, int16_t version)
{
    struct classic_beat beat = {m->id, m->instance, m->generation};
    return classic_beat_as(m, version, &beat);
}

int64_t classic_beat_until(struct classic *m, int16_t version, int64_t limit_ms, int16_t *answer)
{
    int64_t end_ms = peer_now_ms() + limit_ms;
    do {
        *answer = classic_beat(m, version);
        if (*answer != KAFKA_NONE || m->run->over) break;
        run_wait(m->run, BEAT_PAUSE_MS);
    } while (peer_now_ms() < end_ms);
    return peer_now_ms();
}

int16_t classic_beat_changed(struct classic *m, int16_t version)
{
    int16_t answer;
    (void)classic_beat_until(m, version, CHANGED_LIMIT_MS, &answer);
    return answer;
}

int16_t classic_leave(struct classic *m)
{
    struct leave_group_request_member_identity member;
    struct leave_group_request *ask = run_new(m->run, &wire_leave_group_request);
    int16_t version = run_version(m->run, &wire_leave_group_request, LEAVE_VERSION);

    wire_struct_defaults(&wire_leave_group_request_member_identity_shape, &member);
    ask->group_id = view_of_string(m->run->name);
    ask->member_id = version < 3 ? m->id : VIEW_EMPTY;
    member.member_id = m->id;
    member.group_instance_id = m->instance;
    if (version >= 3) {
        ask->members.items = &member;
        ask->members.count = 1;
    }
    const struct leave_group_response *answer =
        run_call(m->run, m->work, &wire_leave_group_request, version, ask);
    if (answer->error_code != KAFKA_NONE || answer->members.count < 1) return answer->error_code;
    return answer->members.items[0].error_code;
}

/* ---- several members --------------------------------------------------------------------------
 */

void classic_sync_all(struct classic *const *members, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bool leads = view_equal(members[i]->leader, members[i]->id);
        classic_sync_send(members[i], (const struct classic *const *)members, leads ? count : 0);
    }
    for (uint32_t i = 0; i < count; i++)
        run_need(members[i]->run, "sync of all", KAFKA_NONE, classic_sync_take(members[i], NULL));
}

void classic_stable(struct classic *const *members, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        classic_enter(members[i]);
    for (uint32_t i = 0; i < count; i++)
        classic_joined(members[i], "join of all");
    classic_sync_all(members, count);
}

void classic_rejoin(struct classic *const *members, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        classic_join_send(members[i]);
    for (uint32_t i = 0; i < count; i++)
        classic_joined(members[i], "join of all again");
}
