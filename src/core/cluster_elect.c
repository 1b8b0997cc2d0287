/* cluster_elect.c - elections that no broker's change of state brings: asked for, and periodic. */
#include "core/change.h"

#include "gen/elect_leaders_request.h"
#include "gen/elect_leaders_response.h"

enum elect_type { ELECT_PREFERRED = 0, ELECT_UNCLEAN = 1 };

/* Elect in one partition: NONE, or why not. -1000: no memory. */
#define ELECT_E_MEMORY (-1000)

static int16_t elect_partition(struct cluster *cluster,
                               struct step *step,
                               struct change_place place,
                               enum elect_type type)
{
    const struct image_partition *partition = image_partition(place.topic, place.index);
    if (partition == NULL) return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    struct image_ids replicas = image_list(partition, IMAGE_REPLICAS);
    bool preferred = replicas.count > 0 && partition->leader == replicas.items[0];
    if (type == ELECT_PREFERRED ? preferred : partition->leader >= 0)
        return KAFKA_ELECTION_NOT_NEEDED;
    if (step_room(step) == 0) return KAFKA_POLICY_VIOLATION;

    struct change change;
    change_begin(&change, cluster, step, place);
    change.election = type == ELECT_PREFERRED ? CHANGE_PREFERRED : CHANGE_UNCLEAN;
    switch (change_end(&change)) {
    case CHANGE_MADE: return KAFKA_NONE;
    case CHANGE_NONE:
        return type == ELECT_PREFERRED ? KAFKA_PREFERRED_LEADER_NOT_AVAILABLE
                                       : KAFKA_ELIGIBLE_LEADERS_NOT_AVAILABLE;
    default: return ELECT_E_MEMORY;
    }
}

/* ---- periodic -------------------------------------------------------------------------------- */

/* A pass over all partitions; `type` decides which of them. */
static enum step_result elect_pass(struct cluster *cluster, struct step *step, enum elect_type type)
{
    const struct image_object *object = NULL;
    while ((object = image_next(cluster->image, IMAGE_TOPIC, object)) != NULL) {
        const struct image_topic *topic = (const struct image_topic *)object;
        if (type == ELECT_UNCLEAN && !cluster_topic_unclean(cluster, topic->name)) continue;
        for (int32_t i = 0; i < topic->partition_count; i++) {
            if (topic->partitions[i] == NULL) continue;
            if (step->record_count >= CLUSTER_ELECTIONS_MAX) return STEP_MORE;
            if (elect_partition(cluster, step, (struct change_place){topic, i}, type) ==
                ELECT_E_MEMORY)
                return STEP_E_MEMORY;
        }
    }
    return STEP_DONE;
}

enum step_result cluster_balance(struct cluster *cluster, struct step *step)
{
    return elect_pass(cluster, step, ELECT_PREFERRED);
}

enum step_result cluster_elect_unclean(struct cluster *cluster, struct step *step)
{
    if (image_leaderless(cluster->image) == 0) return STEP_DONE;
    return elect_pass(cluster, step, ELECT_UNCLEAN);
}

/* ---- ElectLeaders ---------------------------------------------------------------------------- */

static struct view elect_message(int16_t error)
{
    switch (error) {
    case KAFKA_UNKNOWN_TOPIC_OR_PARTITION: return VIEW("no such topic or partition");
    case KAFKA_ELECTION_NOT_NEEDED: return VIEW("the partition has the leader it should have");
    case KAFKA_PREFERRED_LEADER_NOT_AVAILABLE: return VIEW("the preferred replica cannot lead now");
    case KAFKA_ELIGIBLE_LEADERS_NOT_AVAILABLE: return VIEW("no replica can lead now");
    case KAFKA_POLICY_VIOLATION: return VIEW("more than 10000 elections in one request");
    default: return VIEW_NULL;
    }
}

/* Elect in `count` partitions of one topic (which may be unknown); with `all`, those that need no
 * election are not told. */
static bool elect_topic(struct cluster *cluster,
                        struct step *step,
                        const struct elect_leaders_request_topic_partitions *in,
                        enum elect_type type,
                        struct elect_leaders_response_replica_election_result *out)
{
    const struct image_topic *topic = image_topic(cluster->image, in->topic);
    bool all = in->partitions.count < 0;
    int32_t count = !all ? in->partitions.count : topic != NULL ? topic->partition_count : 0;
    out->topic = in->topic;
    out->partition_result.items =
        step_get(step, (size_t)(count + 1) * sizeof(out->partition_result.items[0]));
    if (out->partition_result.items == NULL) return false;
    out->partition_result.count = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t index = all ? i : in->partitions.items[i];
        int16_t error = topic == NULL ? KAFKA_UNKNOWN_TOPIC_OR_PARTITION
                                      : elect_partition(cluster, step,
                                                        (struct change_place){topic, index}, type);
        if (error == ELECT_E_MEMORY) return false;
        if (all && error == KAFKA_ELECTION_NOT_NEEDED) continue;
        out->partition_result.items[out->partition_result.count++] =
            (struct elect_leaders_response_partition_result){
                .partition_id = index,
                .error_code = error,
                .error_message = elect_message(error),
            };
    }
    return true;
}

static enum step_result elect_all(struct cluster *cluster,
                                  struct step *step,
                                  enum elect_type type,
                                  struct elect_leaders_response *out)
{
    const struct image_object *object = NULL;
    while ((object = image_next(cluster->image, IMAGE_TOPIC, object)) != NULL) {
        struct elect_leaders_request_topic_partitions in = {
            .topic = arena_copy(step->arena, ((const struct image_topic *)object)->name),
            .partitions = {.count = -1},
        };
        struct elect_leaders_response_replica_election_result *item =
            &out->replica_election_results.items[out->replica_election_results.count];
        if (in.topic.null || !elect_topic(cluster, step, &in, type, item)) return STEP_E_MEMORY;
        out->replica_election_results.count++; /* Without partitions too, as Kafka. */
    }
    return STEP_DONE;
}

/* An error for all, which version 0 cannot carry, and for each partition that was asked for. */
static enum step_result elect_refuse(struct step *step,
                                     const struct elect_leaders_request *in,
                                     struct elect_leaders_response *out,
                                     int16_t error)
{
    bool unknown_type = error == KAFKA_INVALID_REQUEST;
    for (int32_t t = 0; t < in->topic_partitions.count; t++) {
        const struct elect_leaders_request_topic_partitions *topic = &in->topic_partitions.items[t];
        struct elect_leaders_response_replica_election_result *item =
            &out->replica_election_results.items[out->replica_election_results.count++];
        size_t count = (size_t)MAX(topic->partitions.count, 0);
        item->topic = topic->topic;
        item->partition_result.items =
            step_get(step, (count + 1) * sizeof(item->partition_result.items[0]));
        if (item->partition_result.items == NULL) return STEP_E_MEMORY;
        item->partition_result.count = (int32_t)count;
        for (size_t i = 0; i < count; i++)
            item->partition_result.items[i] = (struct elect_leaders_response_partition_result){
                .partition_id = topic->partitions.items[i],
                .error_code = error,
                .error_message =
                    unknown_type ? VIEW("an election type that is not known") : VIEW_NULL,
            };
    }
    if (in->topic_partitions.count != 0 || !unknown_type) out->error_code = error;
    return STEP_DONE;
}

enum step_result cluster_elect_leaders(struct cluster *cluster,
                                       struct step *step,
                                       const struct elect_leaders_request *in,
                                       struct elect_leaders_response *out)
{
    wire_defaults(&wire_elect_leaders_response, out);
    if (!cluster->active) {
        out->error_code = KAFKA_NOT_CONTROLLER;
        return STEP_DONE;
    }
    enum elect_type type = (enum elect_type)in->election_type;
    bool all = in->topic_partitions.count < 0;
    size_t count =
        all ? image_count(cluster->image, IMAGE_TOPIC) : (size_t)in->topic_partitions.count;
    out->replica_election_results.items =
        step_get(step, (count + 1) * sizeof(out->replica_election_results.items[0]));
    if (out->replica_election_results.items == NULL) return STEP_E_MEMORY;
    out->replica_election_results.count = 0;
    if (!cluster_allows(step, CLUSTER_OP_ALTER, CLUSTER_ON_CLUSTER, CLUSTER_ON_CLUSTER_NAME))
        return elect_refuse(step, in, out, KAFKA_CLUSTER_AUTHORIZATION_FAILED);
    if (in->election_type != ELECT_PREFERRED && in->election_type != ELECT_UNCLEAN)
        return elect_refuse(step, in, out, KAFKA_INVALID_REQUEST);
    if (all) return elect_all(cluster, step, type, out);
    for (size_t i = 0; i < count; i++) {
        struct elect_leaders_response_replica_election_result *item =
            &out->replica_election_results.items[out->replica_election_results.count++];
        if (!elect_topic(cluster, step, &in->topic_partitions.items[i], type, item))
            return STEP_E_MEMORY;
    }
    return STEP_DONE;
}
