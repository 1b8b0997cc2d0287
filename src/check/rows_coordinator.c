/* rows_coordinator.c - Heartbeat before it comes to a classic group: the coordinator, the look-up.
 */
#include "check/classic.h"
#include "check/rows.h"

#include "gen/heartbeat_request.h"
#include "gen/heartbeat_response.h"
#include "gen/share_group_heartbeat_request.h"
#include "gen/share_group_heartbeat_response.h"
#include "gen/streams_group_heartbeat_request.h"
#include "gen/streams_group_heartbeat_response.h"

static int16_t beat(struct check_run *run, struct view group)
{
    struct heartbeat_request *ask = run_new(run, &wire_heartbeat_request);
    ask->group_id = group;
    ask->generation_id = 1;
    ask->member_id = VIEW("nobody");
    const struct heartbeat_response *answer =
        run_call(run, run_peer(run), &wire_heartbeat_request, run->version, ask);
    return answer->error_code;
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

static void not_from_outside(struct check_run *run)
{
    run_skip(run, "no client can bring a server there");
}

static const struct check_row rows[] = {
    CHECK_ROW("A1", "no right to read the group", not_from_outside),
    CHECK_ROW("A2", "the coordinator starts or stops", not_from_outside),
    CHECK_ROW_EACH("A3", "an empty group id", no_group_id, 0),
    CHECK_ROW("A4", "a group of another node", not_from_outside),
    CHECK_ROW("A5", "the group is being loaded", not_from_outside),
    CHECK_ROW("A6", "writes before it do not commit in time", not_from_outside),
    CHECK_ROW("A7", "the group moves away while the beat waits", not_from_outside),
    CHECK_ROW_EACH("B1", "no such group", no_group, 0),
    CHECK_ROW_EACH("B2 share", "a share group", share_group, 0),
    CHECK_ROW_EACH("B2 streams", "a streams group", streams_group, 0),
};

const struct check_table rows_coordinator = {
    "Heartbeat before a classic group",
    rows,
    ARRAY_SIZE(rows),
};
