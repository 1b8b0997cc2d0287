/* quorum_answer.c - see quorum_answer.h. The checks stand in Kafka's order. */
#include "core/quorum_answer.h"

#include "core/quorum_internal.h"
#include "gen/begin_quorum_epoch_request.h"
#include "gen/begin_quorum_epoch_response.h"
#include "gen/end_quorum_epoch_request.h"
#include "gen/end_quorum_epoch_response.h"
#include "gen/errors.h"
#include "gen/fetch_request.h"
#include "gen/fetch_response.h"
#include "gen/fetch_snapshot_request.h"
#include "gen/fetch_snapshot_response.h"
#include "gen/vote_request.h"
#include "gen/vote_response.h"

/* A null id is accepted, an empty one is not. */
static bool cluster_fits(const struct quorum *q, struct view cluster_id)
{
    return cluster_id.null || view_equal(cluster_id, q->cluster_id);
}

#define ASKS_ONE_PARTITION(in)                                                                     \
    ((in)->topics.count == 1 && (in)->topics.items[0].partitions.count == 1)
#define ASKS_METADATA(in)                                                                          \
    (ASKS_ONE_PARTITION(in) && view_is((in)->topics.items[0].topic_name, QUORUM_TOPIC) &&          \
     (in)->topics.items[0].partitions.items[0].partition_index == 0)

/* What is wrong with a request as a whole. */
static int16_t check_whole(const struct quorum *q, bool asks_right, struct view cluster_id)
{
    if (!cluster_fits(q, cluster_id)) return KAFKA_INCONSISTENT_CLUSTER_ID;
    return asks_right ? KAFKA_NONE : KAFKA_INVALID_REQUEST;
}

/* The endpoint of the leader on the listener that was asked, or NULL. */
static const struct quorum_endpoint *leader_endpoint(const struct quorum *q,
                                                     const struct quorum_event *event)
{
    const struct voter_set *set = quorum_set(q);
    for (uint32_t i = 0; i < set->count; i++) {
        const struct quorum_voter *voter = &set->voters[i];
        for (uint32_t k = 0; voter->id == q->leader_id && k < voter->endpoint_count; k++)
            if (view_equal(voter->endpoints[k].name, event->listener)) return &voter->endpoints[k];
    }
    return NULL;
}

/* May this node answer as the leader of the epoch that the asker believes in? */
static int16_t check_leader(const struct quorum *q, int32_t epoch)
{
    if (epoch < q->epoch) return KAFKA_FENCED_LEADER_EPOCH;
    if (epoch > q->epoch) return KAFKA_UNKNOWN_LEADER_EPOCH;
    return quorum_leads(q) ? KAFKA_NONE : KAFKA_NOT_LEADER_OR_FOLLOWER;
}

/* One item of an answer's list of endpoints, in the arena: `list` is the response's, `type` its
 * item's. Without an endpoint the list stays empty. */
#define ANSWER_ENDPOINT(q, event, list, shape)                                                     \
    do {                                                                                           \
        const struct quorum_endpoint *at_ = leader_endpoint(q, event);                             \
        if (at_ == NULL) break;                                                                    \
        (list)->items = arena_get((event)->arena, sizeof(*(list)->items));                         \
        if ((list)->items == NULL) break;                                                          \
        wire_struct_defaults(shape, (list)->items);                                                \
        (list)->items[0].node_id = (q)->leader_id;                                                 \
        (list)->items[0].host = at_->host;                                                         \
        (list)->items[0].port = at_->port;                                                         \
        (list)->count = 1;                                                                         \
    } while (0)

/* The one topic of an answer with its one partition, in the arena; false: no memory. */
#define ANSWER_PARTITION(event, list, topic_shape, partition_shape)                                \
    ((list)->items = arena_get((event)->arena, sizeof(*(list)->items)),                            \
     (list)->items != NULL &&                                                                      \
         (wire_struct_defaults(topic_shape, (list)->items), (list)->count = 1,                     \
          (list)->items[0].partitions.items =                                                      \
              arena_get((event)->arena, sizeof(*(list)->items[0].partitions.items)),               \
          (list)->items[0].partitions.items != NULL) &&                                            \
         (wire_struct_defaults(partition_shape, (list)->items[0].partitions.items),                \
          (list)->items[0].partitions.count = 1, true))

/* The answer of Vote, BeginQuorumEpoch and EndQuorumEpoch, whose types are `response`'s: the
 * metadata partition with its error, who leads, and where. */
#define ANSWER_LEADER(q, event, out, response, error)                                              \
    ({                                                                                             \
        bool made_ = ANSWER_PARTITION(event, &(out)->topics, &wire_##response##_topic_data_shape,  \
                                      &wire_##response##_partition_data_shape);                    \
        if (made_) {                                                                               \
            struct response##_partition_data *answer_ = (out)->topics.items[0].partitions.items;   \
            (out)->topics.items[0].topic_name = VIEW(QUORUM_TOPIC);                                \
            answer_->error_code = (error);                                                         \
            answer_->leader_id = (q)->leader_id;                                                   \
            answer_->leader_epoch = (q)->epoch;                                                    \
            if ((event)->version >= 1)                                                             \
                ANSWER_ENDPOINT(q, event, &(out)->node_endpoints,                                  \
                                &wire_##response##_node_endpoint_shape);                           \
        }                                                                                          \
        made_ && !(event)->arena->failed ? QUORUM_ANSWERED : QUORUM_E_MEMORY;                      \
    })

/* ---- Fetch ----------------------------------------------------------------------------------- */

/* The metadata partition and nothing else, by id or (below version 13) by name. */
static const struct fetch_request_fetch_partition *fetch_wanted(const struct fetch_request *in,
                                                                int16_t version)
{
    if (in->topics.count != 1 || in->topics.items[0].partitions.count != 1) return NULL;
    const struct fetch_request_fetch_topic *topic = &in->topics.items[0];
    bool ours = version >= 13 ? uuid_equal(topic->topic_id, quorum_topic_id)
                              : view_is(topic->topic, QUORUM_TOPIC);
    return ours && topic->partitions.items[0].partition == 0 ? &topic->partitions.items[0] : NULL;
}

static int16_t fetch_check(const struct quorum *q,
                           const struct fetch_request *in,
                           const struct fetch_request_fetch_partition *wanted)
{
    if (in->max_wait_ms < 0 || wanted->fetch_offset < 0 || wanted->last_fetched_epoch < 0 ||
        wanted->last_fetched_epoch > wanted->current_leader_epoch)
        return KAFKA_INVALID_REQUEST;
    return check_leader(q, wanted->current_leader_epoch);
}

/* Is the asker below what the log still has, so that it must begin at a snapshot? */
static bool fetch_needs_snapshot(const struct quorum_log *log,
                                 const struct fetch_request_fetch_partition *wanted)
{
    if (log->snapshot_end < 0) return false;
    return wanted->fetch_offset == 0 || wanted->fetch_offset < log->start ||
           (wanted->fetch_offset == log->start &&
            wanted->last_fetched_epoch != log->first_snapshot_epoch) ||
           wanted->last_fetched_epoch < log->first_snapshot_epoch;
}

/* A snapshot to begin at, or where the two logs part. False: neither, the offset can be served. */
static bool fetch_redirect(const struct quorum_event *event,
                           const struct fetch_request_fetch_partition *wanted,
                           struct fetch_response_partition_data *out)
{
    const struct quorum_log *log = event->log;
    if (fetch_needs_snapshot(log, wanted)) {
        out->snapshot_id.end_offset = log->snapshot_end;
        out->snapshot_id.epoch = log->snapshot_epoch;
        return true;
    }
    if (log->start == 0 && wanted->fetch_offset == 0) return false;
    int32_t epoch;
    int64_t end;
    log->epoch_end(log->context, wanted->last_fetched_epoch, &epoch, &end);
    if (epoch == wanted->last_fetched_epoch && end >= wanted->fetch_offset) return false;
    out->diverging_epoch.epoch = MAX(epoch, 0);
    out->diverging_epoch.end_offset = MAX(end, 0);
    return true;
}

static void fetch_plan(const struct quorum *q,
                       const struct fetch_request *in,
                       const struct fetch_request_fetch_partition *wanted,
                       struct quorum_read *read)
{
    *read = (struct quorum_read){
        .offset = wanted->fetch_offset,
        .offset_end = MAX(q->high_watermark, wanted->fetch_offset),
        .max_bytes = (uint32_t)MAX(in->max_bytes, 0),
    };
    /* Who knows an older high watermark is told of the newer one at once (version 18). */
    read->wait = read->offset == read->offset_end && in->max_wait_ms > 0 &&
                 wanted->high_watermark >= q->high_watermark;
}

enum quorum_answer quorum_fetch(struct quorum *quorum,
                                const struct quorum_event *event,
                                const struct fetch_request *in,
                                struct fetch_response *out,
                                struct quorum_read *read)
{
    const struct fetch_request_fetch_partition *wanted = fetch_wanted(in, event->version);
    int32_t replica = event->version >= 15 ? in->replica_state.replica_id : in->replica_id;
    out->error_code = check_whole(quorum, wanted != NULL, in->cluster_id);
    if (out->error_code == KAFKA_NONE && replica == quorum->self->voters[0].id)
        out->error_code = KAFKA_UNKNOWN_SERVER_ERROR;
    if (out->error_code != KAFKA_NONE) return QUORUM_ANSWERED;
    if (!ANSWER_PARTITION(event, &out->responses,
                          &wire_fetch_response_fetchable_topic_response_shape,
                          &wire_fetch_response_partition_data_shape))
        return QUORUM_E_MEMORY;
    out->responses.items[0].topic = VIEW(QUORUM_TOPIC);
    out->responses.items[0].topic_id = quorum_topic_id;
    struct fetch_response_partition_data *answer = &out->responses.items[0].partitions.items[0];
    answer->error_code = fetch_check(quorum, in, wanted);
    answer->current_leader.leader_id = quorum->leader_id;
    answer->current_leader.leader_epoch = quorum->epoch;
    answer->records = VIEW_EMPTY;
    answer->high_watermark = -1;
    answer->log_start_offset = -1;
    if (event->version >= 17)
        ANSWER_ENDPOINT(quorum, event, &out->node_endpoints,
                        &wire_fetch_response_node_endpoint_shape);
    if (event->arena->failed) return QUORUM_E_MEMORY;
    if (answer->error_code != KAFKA_NONE) return QUORUM_ANSWERED;
    answer->high_watermark = quorum->high_watermark;
    answer->log_start_offset = event->log->start;
    if (fetch_redirect(event, wanted, answer)) return QUORUM_ANSWERED;
    if (replica >= 0)
        quorum_observed(quorum, event, replica, wanted->replica_directory_id, wanted->fetch_offset);
    fetch_plan(quorum, in, wanted, read);
    return QUORUM_READ;
}

/* ---- FetchSnapshot --------------------------------------------------------------------------- */

static int16_t snapshot_check(const struct quorum *q,
                              const struct fetch_snapshot_request_topic_snapshot *topic)
{
    const struct fetch_snapshot_request_partition_snapshot *wanted = &topic->partitions.items[0];
    if (!view_is(topic->name, QUORUM_TOPIC) || wanted->partition != 0)
        return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    int16_t error = check_leader(q, wanted->current_leader_epoch);
    if (error != KAFKA_NONE) return error;
    /* What format wrote is bootstrap data and nobody's image. */
    if (wanted->snapshot_id.end_offset <= 0) return KAFKA_SNAPSHOT_NOT_FOUND;
    return wanted->position < 0 ? KAFKA_POSITION_OUT_OF_RANGE : KAFKA_NONE;
}

enum quorum_answer quorum_fetch_snapshot(struct quorum *quorum,
                                         const struct quorum_event *event,
                                         const struct fetch_snapshot_request *in,
                                         struct fetch_snapshot_response *out,
                                         struct quorum_read *read)
{
    out->error_code = check_whole(quorum, ASKS_ONE_PARTITION(in), in->cluster_id);
    if (out->error_code != KAFKA_NONE) return QUORUM_ANSWERED;
    const struct fetch_snapshot_request_topic_snapshot *topic = &in->topics.items[0];
    const struct fetch_snapshot_request_partition_snapshot *wanted = &topic->partitions.items[0];
    if (!ANSWER_PARTITION(event, &out->topics, &wire_fetch_snapshot_response_topic_snapshot_shape,
                          &wire_fetch_snapshot_response_partition_snapshot_shape))
        return QUORUM_E_MEMORY;
    out->topics.items[0].name = topic->name;
    struct fetch_snapshot_response_partition_snapshot *answer =
        &out->topics.items[0].partitions.items[0];
    answer->index = wanted->partition;
    answer->error_code = snapshot_check(quorum, topic);
    answer->snapshot_id.end_offset = wanted->snapshot_id.end_offset;
    answer->snapshot_id.epoch = wanted->snapshot_id.epoch;
    answer->current_leader.leader_id = quorum->leader_id;
    answer->current_leader.leader_epoch = quorum->epoch;
    answer->unaligned_records = VIEW_EMPTY;
    if (event->version >= 1)
        ANSWER_ENDPOINT(quorum, event, &out->node_endpoints,
                        &wire_fetch_snapshot_response_node_endpoint_shape);
    if (event->arena->failed) return QUORUM_E_MEMORY;
    if (answer->error_code != KAFKA_NONE) return QUORUM_ANSWERED;
    answer->position = wanted->position;
    *read = (struct quorum_read){
        .position = wanted->position,
        .snapshot = {wanted->snapshot_id.end_offset, wanted->snapshot_id.epoch},
        .max_bytes = (uint32_t)MAX(in->max_bytes, 0),
    };
    return QUORUM_READ;
}

/* ---- Vote ------------------------------------------------------------------------------------ */

/* NONE: the answer may say whether the vote is granted. */
static int16_t vote_check(const struct quorum *q,
                          const struct vote_request *in,
                          const struct vote_request_partition_data *wanted)
{
    const struct quorum_voter *self = &q->self->voters[0];
    bool later = wanted->pre_vote ? wanted->last_offset_epoch > wanted->replica_epoch
                                  : wanted->last_offset_epoch >= wanted->replica_epoch;
    if (wanted->last_offset < 0 || wanted->last_offset_epoch < 0 || later)
        return KAFKA_INVALID_REQUEST;
    if (wanted->replica_epoch < q->epoch) return KAFKA_FENCED_LEADER_EPOCH;
    if (wanted->replica_id < 0) return KAFKA_INVALID_REQUEST;
    bool other = in->voter_id >= 0 && in->voter_id != self->id;
    bool directory = !uuid_is_zero(wanted->voter_directory_id) &&
                     !uuid_equal(wanted->voter_directory_id, self->directory);
    return other || (in->voter_id >= 0 && directory) ? KAFKA_INVALID_VOTER_KEY : KAFKA_NONE;
}

enum quorum_answer quorum_vote(struct quorum *quorum,
                               const struct quorum_event *event,
                               const struct vote_request *in,
                               struct vote_response *out)
{
    out->error_code = check_whole(quorum, ASKS_METADATA(in), in->cluster_id);
    if (out->error_code != KAFKA_NONE) return QUORUM_ANSWERED;
    /* Granted is false, as by default: the one voter votes for itself. */
    return ANSWER_LEADER(quorum, event, out, vote_response,
                         vote_check(quorum, in, &in->topics.items[0].partitions.items[0]));
}

/* ---- BeginQuorumEpoch, EndQuorumEpoch -------------------------------------------------------- */

/* Who says that it leads, or leads no more. Nobody but this node can have been elected. */
static int16_t claim_check(const struct quorum *q, int32_t leader_id, int32_t epoch)
{
    if (epoch < q->epoch) return KAFKA_FENCED_LEADER_EPOCH;
    if (leader_id < 0) return KAFKA_INVALID_REQUEST;
    bool own = epoch == q->epoch && leader_id == q->self->voters[0].id;
    return own ? KAFKA_NONE : KAFKA_INCONSISTENT_VOTER_SET;
}

enum quorum_answer quorum_begin_epoch(struct quorum *quorum,
                                      const struct quorum_event *event,
                                      const struct begin_quorum_epoch_request *in,
                                      struct begin_quorum_epoch_response *out)
{
    out->error_code = check_whole(quorum, ASKS_METADATA(in), in->cluster_id);
    if (out->error_code != KAFKA_NONE) return QUORUM_ANSWERED;
    const struct begin_quorum_epoch_request_partition_data *claim =
        &in->topics.items[0].partitions.items[0];
    return ANSWER_LEADER(quorum, event, out, begin_quorum_epoch_response,
                         claim_check(quorum, claim->leader_id, claim->leader_epoch));
}

enum quorum_answer quorum_end_epoch(struct quorum *quorum,
                                    const struct quorum_event *event,
                                    const struct end_quorum_epoch_request *in,
                                    struct end_quorum_epoch_response *out)
{
    out->error_code = check_whole(quorum, ASKS_METADATA(in), in->cluster_id);
    if (out->error_code != KAFKA_NONE) return QUORUM_ANSWERED;
    const struct end_quorum_epoch_request_partition_data *claim =
        &in->topics.items[0].partitions.items[0];
    return ANSWER_LEADER(quorum, event, out, end_quorum_epoch_response,
                         claim_check(quorum, claim->leader_id, claim->leader_epoch));
}
