/* quorum_change.c - adding, removing and changing voters, as a quorum of one answers: the checks in
 * Kafka's order, and what follows where there is nobody to add (docs/decisions/0010). */
#include "core/quorum_answer.h"
#include "core/quorum_internal.h"

#include "gen/add_raft_voter_request.h"
#include "gen/add_raft_voter_response.h"
#include "gen/errors.h"
#include "gen/remove_raft_voter_request.h"
#include "gen/remove_raft_voter_response.h"
#include "gen/update_raft_voter_request.h"
#include "gen/update_raft_voter_response.h"

static bool change_cluster_fits(const struct quorum *q, struct view cluster_id)
{
    return cluster_id.null || view_equal(cluster_id, q->cluster_id);
}

/* The listener on which voters speak to each other: the first that this node has. */
static bool change_is_default(const struct quorum *q, struct view listener)
{
    const struct quorum_voter *self = &q->self->voters[0];
    return self->endpoint_count > 0 && view_equal(self->endpoints[0].name, listener);
}

/* What must hold before any change of the set. */
static int16_t change_check(const struct quorum *q)
{
    if (q->high_watermark < q->epoch_start) return KAFKA_REQUEST_TIMED_OUT;
    if (q->kraft_version == 0) return KAFKA_UNSUPPORTED_VERSION;
    return q->high_watermark <= quorum_set(q)->offset ? KAFKA_REQUEST_TIMED_OUT : KAFKA_NONE;
}

static struct view change_says(int16_t error)
{
    switch (error) {
    case KAFKA_INCONSISTENT_CLUSTER_ID: return VIEW("another cluster's id");
    case KAFKA_UNSUPPORTED_VERSION: return VIEW("kraft.version 0 keeps its set of voters");
    case KAFKA_REQUEST_TIMED_OUT: return VIEW("the set of voters cannot be changed yet");
    default: return VIEW_NULL;
    }
}

static const struct quorum_voter *change_voter(const struct quorum *q, int32_t id)
{
    const struct voter_set *set = quorum_set(q);
    for (uint32_t i = 0; i < set->count; i++)
        if (set->voters[i].id == id) return &set->voters[i];
    return NULL;
}

void quorum_add_voter(struct quorum *quorum,
                      const struct add_raft_voter_request *in,
                      struct add_raft_voter_response *out)
{
    bool reachable = false;
    for (int32_t i = 0; i < in->listeners.count; i++)
        reachable = reachable || change_is_default(quorum, in->listeners.items[i].name);
    out->error_message = VIEW_NULL;
    if (!change_cluster_fits(quorum, in->cluster_id)) {
        out->error_code = KAFKA_INCONSISTENT_CLUSTER_ID;
    } else if (!quorum_leads(quorum)) {
        out->error_code = KAFKA_NOT_LEADER_OR_FOLLOWER;
    } else if (in->voter_id < 0 || uuid_is_zero(in->voter_directory_id) || !reachable) {
        out->error_code = KAFKA_INVALID_REQUEST;
        out->error_message =
            VIEW("a voter needs an id, a directory and an endpoint on the controllers' listener");
        return;
    } else {
        out->error_code = change_check(quorum);
    }
    out->error_message = change_says(out->error_code);
    if (out->error_code != KAFKA_NONE) return;
    bool known = change_voter(quorum, in->voter_id) != NULL;
    out->error_code = known ? KAFKA_DUPLICATE_VOTER : KAFKA_REQUEST_TIMED_OUT;
    out->error_message = known ? VIEW("there is a voter with this id")
                               : VIEW("this controller takes no second voter yet");
}

void quorum_remove_voter(struct quorum *quorum,
                         const struct remove_raft_voter_request *in,
                         struct remove_raft_voter_response *out)
{
    if (!change_cluster_fits(quorum, in->cluster_id)) {
        out->error_code = KAFKA_INCONSISTENT_CLUSTER_ID;
    } else if (!quorum_leads(quorum)) {
        out->error_code = KAFKA_NOT_LEADER_OR_FOLLOWER;
    } else if (in->voter_id < 0 || uuid_is_zero(in->voter_directory_id)) {
        out->error_code = KAFKA_INVALID_REQUEST;
        out->error_message = VIEW("a voter has an id and a directory");
        return;
    } else {
        out->error_code = change_check(quorum);
    }
    out->error_message = change_says(out->error_code);
    if (out->error_code != KAFKA_NONE) return;
    const struct quorum_voter *voter = change_voter(quorum, in->voter_id);
    bool found = voter != NULL && uuid_equal(voter->directory, in->voter_directory_id);
    out->error_code = KAFKA_VOTER_NOT_FOUND;
    out->error_message = found ? VIEW("the last voter stays") : VIEW("there is no such voter");
}

static int16_t update_check(const struct quorum *q, const struct update_raft_voter_request *in)
{
    const struct update_raft_voter_request_k_raft_version_feature *range =
        &in->k_raft_version_feature;
    bool reachable = false;
    for (int32_t i = 0; i < in->listeners.count; i++)
        reachable = reachable || change_is_default(q, in->listeners.items[i].name);
    if (!change_cluster_fits(q, in->cluster_id)) return KAFKA_INCONSISTENT_CLUSTER_ID;
    if (in->current_leader_epoch < q->epoch) return KAFKA_FENCED_LEADER_EPOCH;
    if (in->current_leader_epoch > q->epoch) return KAFKA_UNKNOWN_LEADER_EPOCH;
    if (!quorum_leads(q)) return KAFKA_NOT_LEADER_OR_FOLLOWER;
    if (in->voter_id < 0 || uuid_is_zero(in->voter_directory_id) || !reachable)
        return KAFKA_INVALID_REQUEST;
    if (range->min_supported_version < 0 ||
        range->max_supported_version < range->min_supported_version)
        return KAFKA_INVALID_REQUEST;
    if (q->high_watermark < q->epoch_start || q->high_watermark <= quorum_set(q)->offset)
        return KAFKA_REQUEST_TIMED_OUT;
    if (q->kraft_version < range->min_supported_version ||
        q->kraft_version > range->max_supported_version)
        return KAFKA_INVALID_REQUEST;
    const struct quorum_voter *voter = change_voter(q, in->voter_id);
    if (voter == NULL || !uuid_equal(voter->directory, in->voter_directory_id))
        return KAFKA_VOTER_NOT_FOUND;
    return KAFKA_INVALID_REQUEST; /* This node's own entry follows its settings. */
}

void quorum_update_voter(struct quorum *quorum,
                         const struct quorum_event *event,
                         const struct update_raft_voter_request *in,
                         struct update_raft_voter_response *out)
{
    const struct quorum_voter *self = &quorum->self->voters[0];
    out->error_code = update_check(quorum, in);
    if (out->error_code == KAFKA_INCONSISTENT_CLUSTER_ID) return;
    out->current_leader.leader_id = quorum->leader_id;
    out->current_leader.leader_epoch = quorum->epoch;
    for (uint32_t i = 0; i < self->endpoint_count; i++) {
        if (quorum->leader_id != self->id || !view_equal(self->endpoints[i].name, event->listener))
            continue;
        out->current_leader.host = self->endpoints[i].host;
        out->current_leader.port = self->endpoints[i].port;
    }
}
