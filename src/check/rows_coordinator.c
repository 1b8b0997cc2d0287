/* rows_coordinator.c - Heartbeat before it comes to a classic group: the coordinator, the look-up.
 */
#include "check/classic.h"
#include "check/rows.h"

#include "gen/create_acls_request.h"
#include "gen/create_acls_response.h"
#include "gen/delete_acls_request.h"
#include "gen/delete_acls_response.h"
#include "gen/heartbeat_request.h"
#include "gen/heartbeat_response.h"
#include "gen/metadata_request.h"
#include "gen/metadata_response.h"
#include "gen/share_group_heartbeat_request.h"
#include "gen/share_group_heartbeat_response.h"
#include "gen/streams_group_heartbeat_request.h"
#include "gen/streams_group_heartbeat_response.h"

/* Numbers of ACLs in requests. */
#define ACL_GROUP   3
#define ACL_LITERAL 3
#define ACL_ANY     1
#define ACL_READ    3
#define ACL_DENY    2

#define ACL_PAUSE_MS 50

static int16_t beat_through(struct check_run *run, struct check_peer *peer, struct view group)
{
    struct heartbeat_request *ask = run_new(run, &wire_heartbeat_request);
    ask->group_id = group;
    ask->generation_id = 1;
    ask->member_id = VIEW("nobody");
    const struct heartbeat_response *answer =
        run_call(run, peer, &wire_heartbeat_request, run->version, ask);
    return answer->error_code;
}

static int16_t beat(struct check_run *run, struct view group)
{
    return beat_through(run, run_peer(run), group);
}

static void no_group_id(struct check_run *run)
{
    run_expect(run, "beat", KAFKA_INVALID_GROUP_ID, beat(run, VIEW_EMPTY));
}

static void no_group(struct check_run *run)
{
    run_expect(run, "beat", KAFKA_UNKNOWN_MEMBER_ID, beat(run, view_of_string(run->name)));
}

static void share_group(struct check_run *run)
{
    struct view topic = view_of_string(run->world->name);
    struct share_group_heartbeat_request *ask = run_new(run, &wire_share_group_heartbeat_request);
    int16_t version = run_version(run, &wire_share_group_heartbeat_request, 1);
    ask->group_id = view_of_string(run->name);
    ask->member_id = VIEW("dohle-check-member");
    ask->subscribed_topic_names.items = &topic;
    ask->subscribed_topic_names.count = 1;
    const struct share_group_heartbeat_response *answer =
        run_call(run, run_peer(run), &wire_share_group_heartbeat_request, version, ask);
    run_need(run, "join of the share group", KAFKA_NONE, answer->error_code);
    run_expect(run, "beat", KAFKA_UNKNOWN_MEMBER_ID, beat(run, view_of_string(run->name)));
}

static void streams_group(struct check_run *run)
{
    struct streams_group_heartbeat_request_subtopology part;
    struct streams_group_heartbeat_request_topology topology;
    struct view topic = view_of_string(run->world->name);
    struct streams_group_heartbeat_request *ask =
        run_new(run, &wire_streams_group_heartbeat_request);
    int16_t version = run_version(run, &wire_streams_group_heartbeat_request, 0);

    wire_struct_defaults(&wire_streams_group_heartbeat_request_subtopology_shape, &part);
    wire_struct_defaults(&wire_streams_group_heartbeat_request_topology_shape, &topology);
    part.subtopology_id = VIEW("0");
    part.source_topics.items = &topic;
    part.source_topics.count = 1;
    topology.subtopologies.items = &part;
    topology.subtopologies.count = 1;
    ask->group_id = view_of_string(run->name);
    ask->member_id = VIEW("dohle-check-member");
    ask->rebalance_timeout_ms = CLASSIC_TIMEOUT_MS;
    ask->topology = &topology;
    ask->process_id = VIEW("dohle-check");
    ask->active_tasks.count = ask->standby_tasks.count = ask->warmup_tasks.count = 0;
    ask->client_tags.count = 0;
    const struct streams_group_heartbeat_response *answer =
        run_call(run, run_peer(run), &wire_streams_group_heartbeat_request, version, ask);
    run_need(run, "join of the streams group", KAFKA_NONE, answer->error_code);
    run_expect(run, "beat", KAFKA_UNKNOWN_MEMBER_ID, beat(run, view_of_string(run->name)));
}

/* ---- who may, and who leads -------------------------------------------------------------------
 */

/* Nobody may read the group of this run; the error of saying so. */
static int16_t deny_reading(struct check_run *run)
{
    struct create_acls_request_acl_creation acl;
    struct create_acls_request *ask = run_new(run, &wire_create_acls_request);
    wire_struct_defaults(&wire_create_acls_request_acl_creation_shape, &acl);
    acl.resource_type = ACL_GROUP;
    acl.resource_name = view_of_string(run->name);
    acl.resource_pattern_type = ACL_LITERAL;
    acl.principal = VIEW("User:*");
    acl.host = VIEW("*");
    acl.operation = ACL_READ;
    acl.permission_type = ACL_DENY;
    ask->creations.items = &acl;
    ask->creations.count = 1;
    int16_t version = run_version(run, &wire_create_acls_request, 3);
    const struct create_acls_response *answer =
        run_call(run, run_peer(run), &wire_create_acls_request, version, ask);
    return answer->results.count == 1 ? answer->results.items[0].error_code
                                      : KAFKA_UNKNOWN_SERVER_ERROR;
}

static void take_denial_away(struct check_run *run)
{
    struct delete_acls_request_delete_acls_filter filter;
    struct delete_acls_request *ask = run_new(run, &wire_delete_acls_request);
    wire_struct_defaults(&wire_delete_acls_request_delete_acls_filter_shape, &filter);
    filter.resource_type_filter = ACL_GROUP;
    filter.resource_name_filter = view_of_string(run->name);
    filter.pattern_type_filter = ACL_LITERAL;
    filter.principal_filter = filter.host_filter = VIEW_NULL;
    filter.operation = filter.permission_type = ACL_ANY;
    ask->filters.items = &filter;
    ask->filters.count = 1;
    int16_t version = run_version(run, &wire_delete_acls_request, 3);
    (void)run_call(run, run_peer(run), &wire_delete_acls_request, version, ask);
}

static void no_right(struct check_run *run)
{
    int64_t limit_ms = peer_now_ms() + RUN_CALL_MS;
    int16_t error = deny_reading(run);
    if (error == KAFKA_SECURITY_DISABLED) run_skip(run, "the server has no authorizer");
    if (error == KAFKA_CLUSTER_AUTHORIZATION_FAILED) run_skip(run, "we may not set ACLs there");
    run_need(run, "CreateAcls", KAFKA_NONE, error);
    struct view group = view_of_string(run->name);
    struct check_peer *peer = run_peer(run);
    error = beat_through(run, peer, group);
    while (error != KAFKA_GROUP_AUTHORIZATION_FAILED && !run->over && peer_now_ms() < limit_ms) {
        run_wait(run, ACL_PAUSE_MS); /* Until all brokers know of it. */
        error = beat_through(run, peer, group);
    }
    run_expect(run, "beat", KAFKA_GROUP_AUTHORIZATION_FAILED, error);
    take_denial_away(run);
}

/* To the server that was named, of a group that lives elsewhere. */
static void of_another_node(struct check_run *run)
{
    struct check_target coordinator = run->target;
    struct metadata_request *ask = run_new(run, &wire_metadata_request);
    int16_t version = run_version(run, &wire_metadata_request, 9);
    const struct metadata_response *answer =
        run_call(run, run_peer(run), &wire_metadata_request, version, ask);
    for (int32_t i = 0; i < answer->brokers.count; i++) {
        const struct metadata_response_metadata_response_broker *broker = &answer->brokers.items[i];
        if (broker->node_id == run->node_id) continue;
        run->target.host =
            run_text(run, "%.*s", (int)broker->host.size, (const char *)broker->host.data);
        run->target.port = run_text(run, "%d", broker->port);
        run_expect(run, "beat", KAFKA_NOT_COORDINATOR, beat(run, view_of_string(run->name)));
        run->target = coordinator;
        return;
    }
    run_skip(run, "there is no other broker");
}

static void not_from_outside(struct check_run *run)
{
    run_skip(run, "a server that starts or stops serves no clients");
}

static void not_without_followers(struct check_run *run)
{
    run_skip(run, "no client can hold up a server's writes");
}

static const struct check_row rows[] = {
    CHECK_ROW_EACH("A1", "no right to read the group", no_right, 0),
    CHECK_ROW("A2", "the coordinator starts or stops", not_from_outside),
    CHECK_ROW_EACH("A3", "an empty group id", no_group_id, 0),
    CHECK_ROW_EACH("A4", "a group of another node", of_another_node, 0),
    CHECK_ROW("A6", "writes before it do not commit in time", not_without_followers),
    CHECK_ROW("A7", "the group moves away while the beat waits", not_without_followers),
    CHECK_ROW_EACH("B1", "no such group", no_group, 0),
    CHECK_ROW_EACH("B2 share", "a share group", share_group, 0),
    CHECK_ROW_EACH("B2 streams", "a streams group", streams_group, 0),
};

const struct check_table rows_coordinator = {
    "Heartbeat before a classic group",
    rows,
    ARRAY_SIZE(rows),
};
