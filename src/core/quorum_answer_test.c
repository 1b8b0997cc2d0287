/* quorum_answer_test.c - what a quorum of one answers to observers and to voters of elsewhere. */
#include <stdarg.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#include "core/quorum_answer.h"
#include "gen/add_raft_voter_request.h"
#include "gen/add_raft_voter_response.h"
#include "gen/begin_quorum_epoch_request.h"
#include "gen/begin_quorum_epoch_response.h"
#include "gen/describe_quorum_request.h"
#include "gen/describe_quorum_response.h"
#include "gen/errors.h"
#include "gen/fetch_request.h"
#include "gen/fetch_response.h"
#include "gen/fetch_snapshot_request.h"
#include "gen/fetch_snapshot_response.h"
#include "gen/remove_raft_voter_request.h"
#include "gen/remove_raft_voter_response.h"
#include "gen/update_raft_voter_request.h"
#include "gen/update_raft_voter_response.h"
#include "gen/vote_request.h"
#include "gen/vote_response.h"
#include "sys/memory.h"

#define CLUSTER VIEW("aUyYfOIZTSSWdIn7pLQhWQ")

/* A leader of epoch 5 whose log ends at 20 with 18 committed; epoch 3 ended at 10. */
struct rig {
    struct mem mem;
    struct arena arena;
    struct quorum *quorum;
    struct quorum_log log;
    struct quorum_event event;
};

static void epoch_end(void *context, int32_t epoch, int32_t *found, int64_t *end)
{
    (void)context;
    *found = epoch >= 5 ? 5 : epoch >= 3 ? 3 : -1;
    *end = epoch >= 5 ? 20 : epoch >= 3 ? 10 : -1;
}

static void rig_open(struct rig *rig)
{
    static const struct quorum_endpoint endpoint = {VIEW("CONTROLLER"), VIEW("localhost"), 9093};
    struct quorum_voter self = {
        .id = 1, .directory = {{7}}, .endpoints = &endpoint, .endpoint_count = 1, .kraft_max = 1};
    struct quorum_stored stored = {.leader_id = 1, .leader_epoch = 4, .voted_id = -1};
    struct quorum_effect effect;
    memory_init(&rig->mem, 0);
    arena_init(&rig->arena, &rig->mem, 0);
    rig->log = (struct quorum_log){.end = 10,
                                   .durable = 10,
                                   .last_epoch = 3,
                                   .snapshot_end = -1,
                                   .first_snapshot_end = -1,
                                   .epoch_end = epoch_end};
    rig->event = (struct quorum_event){.log = &rig->log,
                                       .now_ms = 1000,
                                       .wall_ms = 7000,
                                       .version = 18,
                                       .listener = VIEW("CONTROLLER"),
                                       .arena = &rig->arena};
    struct quorum_options options = {.self = self,
                                     .cluster_id = CLUSTER,
                                     .is_voter = true,
                                     .voters = &self,
                                     .voter_count = 1,
                                     .kraft_version = 1};
    rig->quorum = quorum_new(&rig->mem, &options, &stored, &rig->log);
    assert_non_null(rig->quorum);
    quorum_tick(rig->quorum, &rig->event);
    while (quorum_effect(rig->quorum, &effect))
        if (effect.kind == QUORUM_PERSIST) quorum_persisted(rig->quorum);
    rig->log.end = 20;
    rig->log.durable = 18;
    rig->log.last_epoch = 5;
    quorum_durable(rig->quorum, &rig->event);
    assert_int_equal(quorum_high_watermark(rig->quorum), 18);
}

static void rig_close(struct rig *rig)
{
    quorum_free(rig->quorum);
    arena_free(&rig->arena);
    assert_int_equal(rig->mem.used_bytes, 0);
}

/* ---- Fetch ----------------------------------------------------------------------------------- */

struct fetching {
    struct fetch_request in;
    struct fetch_request_fetch_topic topic;
    struct fetch_request_fetch_partition partition;
    struct fetch_response out;
    struct quorum_read read;
};

/* A fetch of broker 3 as Apache Kafka sends it. */
static void fetching_init(struct fetching *f, int64_t offset, int32_t last_epoch)
{
    wire_defaults(&wire_fetch_request, &f->in);
    wire_struct_defaults(&wire_fetch_request_fetch_topic_shape, &f->topic);
    wire_struct_defaults(&wire_fetch_request_fetch_partition_shape, &f->partition);
    f->in.cluster_id = CLUSTER;
    f->in.replica_state.replica_id = 3;
    f->in.max_wait_ms = 500;
    f->in.max_bytes = 1 << 20;
    f->topic.topic_id = quorum_topic_id;
    f->partition.current_leader_epoch = 5;
    f->partition.fetch_offset = offset;
    f->partition.last_fetched_epoch = last_epoch;
    f->partition.high_watermark = 18;
    f->topic.partitions.items = &f->partition;
    f->topic.partitions.count = 1;
    f->in.topics.items = &f->topic;
    f->in.topics.count = 1;
}

static struct fetch_response_partition_data *fetch(struct rig *rig,
                                                   struct fetching *f,
                                                   enum quorum_answer wanted)
{
    wire_defaults(&wire_fetch_response, &f->out);
    enum quorum_answer answer = quorum_fetch(rig->quorum, &rig->event, &f->in, &f->out, &f->read);
    assert_int_equal(answer, wanted);
    return f->out.responses.count == 1 ? &f->out.responses.items[0].partitions.items[0] : NULL;
}

static void test_fetch(void **state)
{
    (void)state;
    struct rig rig;
    struct fetching f;
    rig_open(&rig);
    /* What is committed, and no more. */
    fetching_init(&f, 12, 5);
    struct fetch_response_partition_data *answer = fetch(&rig, &f, QUORUM_READ);
    assert_int_equal(answer->high_watermark, 18);
    assert_int_equal(answer->current_leader.leader_id, 1);
    assert_int_equal(answer->current_leader.leader_epoch, 5);
    assert_int_equal(f.out.node_endpoints.count, 1);
    assert_int_equal(f.out.node_endpoints.items[0].port, 9093);
    assert_int_equal(f.read.offset, 12);
    assert_int_equal(f.read.offset_end, 18);
    assert_false(f.read.wait);
    /* At the end it waits, unless it knows an older high watermark. */
    fetching_init(&f, 18, 5);
    (void)fetch(&rig, &f, QUORUM_READ);
    assert_true(f.read.wait);
    f.partition.high_watermark = 17;
    (void)fetch(&rig, &f, QUORUM_READ);
    assert_false(f.read.wait);
    f.partition.high_watermark = INT64_MAX; /* Version 17 has no such field. */
    f.in.max_wait_ms = 0;
    (void)fetch(&rig, &f, QUORUM_READ);
    assert_false(f.read.wait);
    /* By name up to version 12, without endpoints below 17. */
    rig.event.version = 12;
    f.topic.topic = VIEW(QUORUM_TOPIC);
    f.in.replica_id = 3;
    (void)fetch(&rig, &f, QUORUM_READ);
    assert_int_equal(f.out.node_endpoints.count, 0);
    rig_close(&rig);
}

static void test_fetch_refused(void **state)
{
    (void)state;
    struct rig rig;
    struct fetching f;
    rig_open(&rig);
    static const struct {
        int32_t epoch;
        int16_t error;
    } epochs[] = {
        {4, KAFKA_FENCED_LEADER_EPOCH },
        {6, KAFKA_UNKNOWN_LEADER_EPOCH}
    };
    for (size_t i = 0; i < ARRAY_SIZE(epochs); i++) {
        fetching_init(&f, 12, 3);
        f.partition.current_leader_epoch = epochs[i].epoch;
        struct fetch_response_partition_data *answer = fetch(&rig, &f, QUORUM_ANSWERED);
        assert_int_equal(answer->error_code, epochs[i].error);
        assert_int_equal(answer->current_leader.leader_id, 1); /* In error answers too. */
        assert_int_equal(f.out.node_endpoints.count, 1);
        assert_int_equal(answer->high_watermark, -1);
    }
    fetching_init(&f, -1, 3);
    assert_int_equal(fetch(&rig, &f, QUORUM_ANSWERED)->error_code, KAFKA_INVALID_REQUEST);
    fetching_init(&f, 12, 6);
    assert_int_equal(fetch(&rig, &f, QUORUM_ANSWERED)->error_code, KAFKA_INVALID_REQUEST);
    fetching_init(&f, 12, 5);
    f.in.cluster_id = VIEW("");
    assert_null(fetch(&rig, &f, QUORUM_ANSWERED));
    assert_int_equal(f.out.error_code, KAFKA_INCONSISTENT_CLUSTER_ID);
    f.in.cluster_id = VIEW_NULL;
    (void)fetch(&rig, &f, QUORUM_READ);
    f.topic.topic_id = (struct uuid){{9}};
    assert_null(fetch(&rig, &f, QUORUM_ANSWERED));
    assert_int_equal(f.out.error_code, KAFKA_INVALID_REQUEST);
    fetching_init(&f, 12, 5);
    f.in.replica_state.replica_id = 1; /* That is this node. */
    assert_null(fetch(&rig, &f, QUORUM_ANSWERED));
    assert_int_equal(f.out.error_code, KAFKA_UNKNOWN_SERVER_ERROR);
    rig_close(&rig);
}

static void test_fetch_diverging(void **state)
{
    (void)state;
    struct rig rig;
    struct fetching f;
    rig_open(&rig);
    fetching_init(&f, 12, 3); /* Epoch 3 ended at 10 here. */
    struct fetch_response_partition_data *answer = fetch(&rig, &f, QUORUM_ANSWERED);
    assert_int_equal(answer->diverging_epoch.epoch, 3);
    assert_int_equal(answer->diverging_epoch.end_offset, 10);
    fetching_init(&f, 12, 4);
    answer = fetch(&rig, &f, QUORUM_ANSWERED);
    assert_int_equal(answer->diverging_epoch.epoch, 3);
    fetching_init(&f, 9, 2); /* No epoch up to 2: all of it is foreign. */
    answer = fetch(&rig, &f, QUORUM_ANSWERED);
    assert_int_equal(answer->diverging_epoch.epoch, 0);
    assert_int_equal(answer->diverging_epoch.end_offset, 0);
    fetching_init(&f, 0, 0);
    (void)fetch(&rig, &f, QUORUM_READ);
    /* The log begins at a snapshot of epoch 3, and there is a newer one. */
    rig.log.start = rig.log.first_snapshot_end = 8;
    rig.log.first_snapshot_epoch = 3;
    rig.log.snapshot_end = 15;
    rig.log.snapshot_epoch = 5;
    static const struct {
        int64_t offset;
        int32_t epoch;
        bool snapshot;
    } cases[] = {
        {0,  0, true },
        {7,  3, true },
        {8,  2, true },
        {8,  3, false},
        {9,  2, true },
        {12, 5, false}
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        fetching_init(&f, cases[i].offset, cases[i].epoch);
        answer = fetch(&rig, &f, cases[i].snapshot ? QUORUM_ANSWERED : QUORUM_READ);
        assert_int_equal(answer->snapshot_id.end_offset, cases[i].snapshot ? 15 : -1);
        assert_int_equal(answer->snapshot_id.epoch, cases[i].snapshot ? 5 : -1);
        assert_int_equal(answer->log_start_offset, 8);
    }
    rig_close(&rig);
}

/* ---- FetchSnapshot --------------------------------------------------------------------------- */

static void test_snapshot(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    static const struct {
        struct view topic;
        int64_t end, position;
        int32_t leader_epoch;
        int16_t error;
    } cases[] = {
        {VIEW(QUORUM_TOPIC), 15, 4,  5, KAFKA_NONE                      },
        {VIEW("other"),      15, 4,  5, KAFKA_UNKNOWN_TOPIC_OR_PARTITION},
        {VIEW(QUORUM_TOPIC), 15, 4,  4, KAFKA_FENCED_LEADER_EPOCH       },
        {VIEW(QUORUM_TOPIC), 0,  0,  5, KAFKA_SNAPSHOT_NOT_FOUND        },
        {VIEW(QUORUM_TOPIC), 15, -1, 5, KAFKA_POSITION_OUT_OF_RANGE     },
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fetch_snapshot_request in;
        struct fetch_snapshot_request_topic_snapshot topic;
        struct fetch_snapshot_request_partition_snapshot partition;
        struct fetch_snapshot_response out;
        struct quorum_read read;
        wire_defaults(&wire_fetch_snapshot_request, &in);
        wire_defaults(&wire_fetch_snapshot_response, &out);
        wire_struct_defaults(&wire_fetch_snapshot_request_topic_snapshot_shape, &topic);
        wire_struct_defaults(&wire_fetch_snapshot_request_partition_snapshot_shape, &partition);
        topic.name = cases[i].topic;
        partition.snapshot_id.end_offset = cases[i].end;
        partition.position = cases[i].position;
        partition.current_leader_epoch = cases[i].leader_epoch;
        topic.partitions.items = &partition;
        topic.partitions.count = 1;
        in.topics.items = &topic;
        in.topics.count = 1;
        in.max_bytes = 100;
        rig.event.version = 1;
        enum quorum_answer answer = quorum_fetch_snapshot(rig.quorum, &rig.event, &in, &out, &read);
        assert_int_equal(out.topics.items[0].partitions.items[0].error_code, cases[i].error);
        assert_int_equal(out.topics.items[0].partitions.items[0].current_leader.leader_id, 1);
        assert_int_equal(out.node_endpoints.count, 1);
        assert_int_equal(answer, cases[i].error == KAFKA_NONE ? QUORUM_READ : QUORUM_ANSWERED);
        if (answer != QUORUM_READ) continue;
        assert_int_equal(read.position, 4);
        assert_int_equal(read.snapshot.end, 15);
        assert_int_equal(read.max_bytes, 100);
    }
    rig_close(&rig);
}

/* ---- Vote, BeginQuorumEpoch ------------------------------------------------------------------ */

struct voting {
    int32_t epoch, candidate, voter;
    int32_t last_epoch;
    bool pre_vote;
    int16_t error;
};

static void vote(struct rig *rig, const struct voting *voting)
{
    struct vote_request in;
    struct vote_request_topic_data topic;
    struct vote_request_partition_data partition;
    struct vote_response out;
    wire_defaults(&wire_vote_request, &in);
    wire_defaults(&wire_vote_response, &out);
    wire_struct_defaults(&wire_vote_request_topic_data_shape, &topic);
    wire_struct_defaults(&wire_vote_request_partition_data_shape, &partition);
    topic.topic_name = VIEW(QUORUM_TOPIC);
    partition.replica_epoch = voting->epoch;
    partition.replica_id = voting->candidate;
    partition.last_offset_epoch = voting->last_epoch;
    partition.last_offset = 100;
    partition.pre_vote = voting->pre_vote;
    in.voter_id = voting->voter;
    topic.partitions.items = &partition;
    topic.partitions.count = 1;
    in.topics.items = &topic;
    in.topics.count = 1;
    rig->event.version = 2;
    assert_int_equal(quorum_vote(rig->quorum, &rig->event, &in, &out), QUORUM_ANSWERED);
    const struct vote_response_partition_data *answer = &out.topics.items[0].partitions.items[0];
    assert_int_equal(answer->error_code, voting->error);
    assert_false(answer->vote_granted);
    assert_int_equal(answer->leader_id, 1);
    assert_int_equal(answer->leader_epoch, 5);
}

static void test_vote(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    static const struct voting cases[] = {
        {4, 2,  1, 3, false, KAFKA_FENCED_LEADER_EPOCH},
        {6, 2,  1, 6, false, KAFKA_INVALID_REQUEST    },
        {6, 2,  1, 6, true,  KAFKA_NONE               },
        {6, 2,  9, 5, false, KAFKA_INVALID_VOTER_KEY  },
        {6, -1, 1, 5, false, KAFKA_INVALID_REQUEST    },
        {6, 2,  1, 5, false, KAFKA_NONE               }, /* Refused, and the epoch stays. */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        vote(&rig, &cases[i]);
    assert_true(quorum_leads(rig.quorum));
    struct quorum_effect effect;
    while (quorum_effect(rig.quorum, &effect))
        assert_int_equal(effect.kind, QUORUM_COMMIT);
    rig_close(&rig);
}

static void test_begin(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    static const struct {
        int32_t leader, epoch;
        int16_t error;
    } cases[] = {
        {2,  4, KAFKA_FENCED_LEADER_EPOCH   },
        {-1, 5, KAFKA_INVALID_REQUEST       },
        {1,  5, KAFKA_NONE                  },
        {2,  5, KAFKA_INCONSISTENT_VOTER_SET},
        {2,  9, KAFKA_INCONSISTENT_VOTER_SET},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct begin_quorum_epoch_request in;
        struct begin_quorum_epoch_request_topic_data topic;
        struct begin_quorum_epoch_request_partition_data partition;
        struct begin_quorum_epoch_response out;
        wire_defaults(&wire_begin_quorum_epoch_request, &in);
        wire_defaults(&wire_begin_quorum_epoch_response, &out);
        wire_struct_defaults(&wire_begin_quorum_epoch_request_topic_data_shape, &topic);
        wire_struct_defaults(&wire_begin_quorum_epoch_request_partition_data_shape, &partition);
        topic.topic_name = VIEW(QUORUM_TOPIC);
        partition.leader_id = cases[i].leader;
        partition.leader_epoch = cases[i].epoch;
        topic.partitions.items = &partition;
        topic.partitions.count = 1;
        in.topics.items = &topic;
        in.topics.count = 1;
        rig.event.version = 1;
        assert_int_equal(quorum_begin_epoch(rig.quorum, &rig.event, &in, &out), QUORUM_ANSWERED);
        assert_int_equal(out.topics.items[0].partitions.items[0].error_code, cases[i].error);
        assert_int_equal(out.topics.items[0].partitions.items[0].leader_epoch, 5);
    }
    rig_close(&rig);
}

/* ---- DescribeQuorum -------------------------------------------------------------------------- */

static const struct describe_quorum_response_partition_data *describe(
    struct rig *rig,
    struct describe_quorum_response *out)
{
    struct describe_quorum_request in;
    struct describe_quorum_request_topic_data topic;
    struct describe_quorum_request_partition_data partition = {0};
    wire_defaults(&wire_describe_quorum_request, &in);
    wire_defaults(&wire_describe_quorum_response, out);
    wire_struct_defaults(&wire_describe_quorum_request_topic_data_shape, &topic);
    topic.topic_name = VIEW(QUORUM_TOPIC);
    topic.partitions.items = &partition;
    topic.partitions.count = 1;
    in.topics.items = &topic;
    in.topics.count = 1;
    rig->event.version = 2;
    assert_int_equal(quorum_describe(rig->quorum, &rig->event, &in, out), QUORUM_ANSWERED);
    return &out->topics.items[0].partitions.items[0];
}

static void test_describe(void **state)
{
    (void)state;
    struct rig rig;
    struct fetching f;
    struct describe_quorum_response out;
    rig_open(&rig);
    fetching_init(&f, 12, 5);
    (void)fetch(&rig, &f, QUORUM_READ);
    const struct describe_quorum_response_partition_data *got = describe(&rig, &out);
    assert_int_equal(got->current_voters.count, 1);
    assert_int_equal(got->current_voters.items[0].log_end_offset, 20);
    assert_int_equal(got->current_voters.items[0].last_fetch_timestamp, 7000);
    assert_int_equal(got->observers.count, 1);
    assert_int_equal(got->observers.items[0].replica_id, 3);
    assert_int_equal(got->observers.items[0].log_end_offset, 12);
    assert_int_equal(got->observers.items[0].last_caught_up_timestamp, -1);
    assert_int_equal(out.nodes.count, 1);
    /* It has now what the log held at its first fetch: caught up as of then. */
    rig.event.version = 18;
    rig.event.wall_ms = 7500;
    rig.event.now_ms = 1500;
    rig.log.end = 30;
    fetching_init(&f, 20, 5);
    (void)fetch(&rig, &f, QUORUM_READ);
    got = describe(&rig, &out);
    assert_int_equal(got->observers.count, 1);
    assert_int_equal(got->observers.items[0].last_caught_up_timestamp, 7000);
    assert_int_equal(got->observers.items[0].last_fetch_timestamp, 7500);
    rig.event.now_ms += 300000; /* Not heard for five minutes. */
    got = describe(&rig, &out);
    assert_int_equal(got->observers.count, 0);
    rig_close(&rig);
}

/* ---- changing voters ------------------------------------------------------------------------- */

static int16_t add_voter(struct rig *rig, int32_t id, const char *listener, const char *cluster)
{
    struct add_raft_voter_request_listener at = {.name = view_of_string(listener)};
    struct add_raft_voter_request in;
    struct add_raft_voter_response out;
    wire_defaults(&wire_add_raft_voter_request, &in);
    wire_defaults(&wire_add_raft_voter_response, &out);
    in.cluster_id = cluster == NULL ? CLUSTER : view_of_string(cluster);
    in.voter_id = id;
    in.voter_directory_id = (struct uuid){{9}};
    in.listeners.items = &at;
    in.listeners.count = 1;
    quorum_add_voter(rig->quorum, &in, &out);
    assert_int_equal(out.error_message.null, out.error_code == KAFKA_NONE);
    return out.error_code;
}

static int16_t remove_voter(struct rig *rig, int32_t id, uint8_t directory)
{
    struct remove_raft_voter_request in;
    struct remove_raft_voter_response out;
    wire_defaults(&wire_remove_raft_voter_request, &in);
    wire_defaults(&wire_remove_raft_voter_response, &out);
    in.cluster_id = VIEW_NULL;
    in.voter_id = id;
    in.voter_directory_id = (struct uuid){{directory}};
    quorum_remove_voter(rig->quorum, &in, &out);
    assert_false(out.error_message.null);
    return out.error_code;
}

static int16_t update_voter(struct rig *rig, int32_t id, int32_t epoch, int16_t max)
{
    struct update_raft_voter_request_listener at = {.name = VIEW("CONTROLLER")};
    struct update_raft_voter_request in;
    struct update_raft_voter_response out;
    wire_defaults(&wire_update_raft_voter_request, &in);
    wire_defaults(&wire_update_raft_voter_response, &out);
    in.cluster_id = CLUSTER;
    in.current_leader_epoch = epoch;
    in.voter_id = id;
    in.voter_directory_id = (struct uuid){{7}};
    in.listeners.items = &at;
    in.listeners.count = 1;
    in.k_raft_version_feature.max_supported_version = max;
    quorum_update_voter(rig->quorum, &rig->event, &in, &out);
    assert_int_equal(out.current_leader.leader_id, 1);
    assert_int_equal(out.current_leader.port, 9093);
    return out.error_code;
}

static void test_voters(void **unused)
{
    (void)unused;
    struct rig self, *rig = &self;
    rig_open(rig);
    assert_int_equal(add_voter(rig, 2, "CONTROLLER", "other"), KAFKA_INCONSISTENT_CLUSTER_ID);
    assert_int_equal(add_voter(rig, -1, "CONTROLLER", NULL), KAFKA_INVALID_REQUEST);
    assert_int_equal(add_voter(rig, 2, "OTHER", NULL), KAFKA_INVALID_REQUEST);
    assert_int_equal(add_voter(rig, 1, "CONTROLLER", NULL), KAFKA_DUPLICATE_VOTER);
    assert_int_equal(add_voter(rig, 2, "CONTROLLER", NULL), KAFKA_REQUEST_TIMED_OUT);
    assert_int_equal(remove_voter(rig, -1, 7), KAFKA_INVALID_REQUEST);
    assert_int_equal(remove_voter(rig, 1, 8), KAFKA_VOTER_NOT_FOUND);
    assert_int_equal(remove_voter(rig, 1, 7), KAFKA_VOTER_NOT_FOUND); /* The last one stays. */
    assert_int_equal(update_voter(rig, 1, 4, 1), KAFKA_FENCED_LEADER_EPOCH);
    assert_int_equal(update_voter(rig, 1, 6, 1), KAFKA_UNKNOWN_LEADER_EPOCH);
    assert_int_equal(update_voter(rig, 2, 5, 1), KAFKA_VOTER_NOT_FOUND);
    assert_int_equal(update_voter(rig, 1, 5, 0), KAFKA_INVALID_REQUEST);
    assert_int_equal(update_voter(rig, 1, 5, -1), KAFKA_INVALID_REQUEST);
    assert_int_equal(update_voter(rig, 1, 5, 1), KAFKA_INVALID_REQUEST); /* It is this node's. */
    rig_close(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fetch),    cmocka_unit_test(test_fetch_refused),
        cmocka_unit_test(test_vote),     cmocka_unit_test(test_fetch_diverging),
        cmocka_unit_test(test_begin),    cmocka_unit_test(test_snapshot),
        cmocka_unit_test(test_describe), cmocka_unit_test(test_voters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
