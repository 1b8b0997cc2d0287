/* cluster_partition.c - what brokers ask about their partitions: AlterPartition, the directories of
 * replicas. The checks stand in Kafka's order. */
#include "core/change.h"

#include "gen/alter_partition_request.h"
#include "gen/alter_partition_response.h"
#include "gen/assign_replicas_to_dirs_request.h"
#include "gen/assign_replicas_to_dirs_response.h"

/* ---- AlterPartition -------------------------------------------------------------------------- */

/* One partition of the request: its ISR from either of the two forms. */
struct altering {
    struct cluster *cluster;
    struct step *step;
    const struct alter_partition_request *request;
    const struct alter_partition_request_partition_data *in;
    struct image_ids isr;
    const int64_t *epochs; /* Of the ISR's brokers; NULL: not told. */
};

static bool altering_read_isr(struct altering *altering)
{
    const struct alter_partition_request_partition_data *in = altering->in;
    if (altering->step->caller.version < 3) {
        altering->isr = (struct image_ids){in->new_isr.items, (uint32_t)MAX(in->new_isr.count, 0)};
        return true;
    }
    uint32_t count = (uint32_t)MAX(in->new_isr_with_epochs.count, 0);
    int32_t *ids = step_get(altering->step, (count + 1) * sizeof(*ids));
    int64_t *epochs = step_get(altering->step, (count + 1) * sizeof(*epochs));
    if (ids == NULL || epochs == NULL) return false;
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = in->new_isr_with_epochs.items[i].broker_id;
        epochs[i] = in->new_isr_with_epochs.items[i].broker_epoch;
    }
    altering->isr = (struct image_ids){ids, count};
    altering->epochs = epochs;
    return true;
}

/* Is the ISR one that this partition can have? */
static int16_t altering_check_isr(const struct altering *altering,
                                  const struct image_partition *partition)
{
    struct image_ids isr = altering->isr;
    struct image_ids replicas = image_list(partition, IMAGE_REPLICAS);
    if (isr.count == 0) return KAFKA_INVALID_REQUEST;
    for (uint32_t i = 0; i < isr.count; i++)
        if (image_ids_have((struct image_ids){isr.items, i}, isr.items[i]) ||
            !image_ids_have(replicas, isr.items[i]))
            return KAFKA_INVALID_REQUEST;
    if (!image_ids_have(isr, partition->leader)) return KAFKA_INVALID_REQUEST;
    int8_t recovery = altering->in->leader_recovery_state;
    if (recovery != IMAGE_RECOVERED && recovery != IMAGE_RECOVERING) return KAFKA_INVALID_REQUEST;
    if (recovery == IMAGE_RECOVERING && (isr.count > 1 || partition->recovery == IMAGE_RECOVERED))
        return KAFKA_INVALID_REQUEST;
    for (uint32_t i = 0; i < isr.count; i++) {
        const struct image_node *broker = image_broker(altering->cluster->image, isr.items[i]);
        if (!image_broker_active(altering->cluster->image, isr.items[i]))
            return KAFKA_INELIGIBLE_REPLICA;
        if (altering->epochs != NULL && altering->epochs[i] != -1 &&
            altering->epochs[i] != broker->epoch)
            return KAFKA_INELIGIBLE_REPLICA;
    }
    return KAFKA_NONE;
}

static int16_t altering_check(const struct altering *altering,
                              const struct image_partition *partition)
{
    const struct alter_partition_request_partition_data *in = altering->in;
    if (in->leader_epoch > partition->leader_epoch ||
        in->partition_epoch > partition->partition_epoch)
        return KAFKA_NOT_CONTROLLER; /* It knows more than we do. */
    if (in->leader_epoch < partition->leader_epoch) return KAFKA_FENCED_LEADER_EPOCH;
    if (altering->request->broker_id != partition->leader) return KAFKA_INVALID_REQUEST;
    if (in->partition_epoch < partition->partition_epoch) return KAFKA_INVALID_UPDATE_VERSION;
    return altering_check_isr(altering, partition);
}

static bool altering_answer(struct step *step,
                            struct alter_partition_response_partition_data *out,
                            const struct change_outcome *outcome)
{
    out->leader_id = outcome->leader;
    out->leader_epoch = outcome->leader_epoch;
    /* A copy: the answer outlives what the image holds now. */
    out->isr.items = step_get(step, (outcome->isr.count + 1) * sizeof(out->isr.items[0]));
    if (out->isr.items == NULL) return false;
    if (outcome->isr.count > 0)
        memcpy(out->isr.items, outcome->isr.items, outcome->isr.count * sizeof(out->isr.items[0]));
    out->isr.count = (int32_t)outcome->isr.count;
    out->leader_recovery_state = outcome->recovery;
    out->partition_epoch = outcome->partition_epoch;
    return true;
}

/* False: no memory. */
static bool altering_run(struct altering *altering,
                         const struct image_topic *topic,
                         struct alter_partition_response_partition_data *out)
{
    const struct image_partition *partition =
        topic == NULL ? NULL : image_partition(topic, altering->in->partition_index);
    out->partition_index = altering->in->partition_index;
    if (topic == NULL) {
        out->error_code = KAFKA_UNKNOWN_TOPIC_ID;
        return true;
    }
    if (partition == NULL) {
        out->error_code = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        return true;
    }
    if (!altering_read_isr(altering)) return false;
    out->error_code = altering_check(altering, partition);
    if (out->error_code == KAFKA_NONE && step_room(altering->step) == 0)
        out->error_code = KAFKA_REQUEST_TIMED_OUT; /* The leader asks again. */
    if (out->error_code != KAFKA_NONE) return true;

    struct change change;
    change_begin(&change, altering->cluster, altering->step,
                 (struct change_place){topic, altering->in->partition_index});
    change.isr = altering->isr;
    change.recovery = altering->in->leader_recovery_state;
    enum change_result result = change_end(&change);
    if (result == CHANGE_E_MEMORY) return false;
    struct change_outcome outcome = change_outcome(&change, result);
    if (outcome.leader != altering->request->broker_id) {
        out->error_code = KAFKA_NEW_LEADER_ELECTED; /* The change is written all the same. */
        return true;
    }
    return altering_answer(altering->step, out, &outcome);
}

static bool altering_topic(struct cluster *cluster,
                           struct step *step,
                           const struct alter_partition_request *request,
                           const struct alter_partition_request_topic_data *in,
                           struct alter_partition_response_topic_data *out)
{
    const struct image_topic *topic = image_topic_by_id(cluster->image, in->topic_id);
    size_t count = (size_t)MAX(in->partitions.count, 0);
    out->topic_id = in->topic_id;
    out->partitions.items = step_get(step, (count + 1) * sizeof(out->partitions.items[0]));
    if (out->partitions.items == NULL) return false;
    out->partitions.count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        wire_struct_defaults(&wire_alter_partition_response_partition_data_shape,
                             &out->partitions.items[i]);
        struct altering altering = {
            .cluster = cluster,
            .step = step,
            .request = request,
            .in = &in->partitions.items[i],
        };
        if (!altering_run(&altering, topic, &out->partitions.items[i])) return false;
    }
    return true;
}

enum step_result cluster_alter_partition(struct cluster *cluster,
                                         struct step *step,
                                         const struct alter_partition_request *in,
                                         struct alter_partition_response *out)
{
    wire_defaults(&wire_alter_partition_response, out);
    const struct image_node *broker = image_broker(cluster->image, in->broker_id);
    if (!cluster->active)
        out->error_code = KAFKA_NOT_CONTROLLER;
    else if (broker == NULL || broker->epoch != in->broker_epoch)
        out->error_code = KAFKA_STALE_BROKER_EPOCH;
    if (out->error_code != KAFKA_NONE) return STEP_DONE;

    size_t count = (size_t)MAX(in->topics.count, 0);
    out->topics.items = step_get(step, (count + 1) * sizeof(out->topics.items[0]));
    if (out->topics.items == NULL) return STEP_E_MEMORY;
    out->topics.count = (int32_t)count;
    for (size_t i = 0; i < count; i++)
        if (!altering_topic(cluster, step, in, &in->topics.items[i], &out->topics.items[i]))
            return STEP_E_MEMORY;
    return cluster_done(step);
}

/* ---- AssignReplicasToDirs -------------------------------------------------------------------- */

struct assigning {
    struct cluster *cluster;
    struct step *step;
    int32_t broker;
    struct uuid directory;
};

static uint32_t assigning_replica(const struct assigning *assigning,
                                  const struct image_partition *partition)
{
    struct image_ids replicas = image_list(partition, IMAGE_REPLICAS);
    for (uint32_t i = 0; i < replicas.count; i++)
        if (replicas.items[i] == assigning->broker) return i;
    return UINT32_MAX;
}

static int16_t assigning_check(const struct assigning *assigning,
                               const struct image_topic *topic,
                               int32_t index)
{
    if (topic == NULL) return KAFKA_UNKNOWN_TOPIC_ID;
    const struct image_partition *partition = image_partition(topic, index);
    if (partition == NULL) return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    if (assigning_replica(assigning, partition) == UINT32_MAX) return KAFKA_NOT_LEADER_OR_FOLLOWER;
    return step_room(assigning->step) < 2 ? KAFKA_REQUEST_TIMED_OUT : KAFKA_NONE;
}

/* The replica lies in this directory. False: no memory. */
static bool assigning_set(const struct assigning *assigning, struct change_place place)
{
    struct change change;
    change_begin(&change, assigning->cluster, assigning->step, place);
    struct uuid *directories =
        step_get(assigning->step, (change.replicas.count + 1) * sizeof(*directories));
    if (directories == NULL) return false;
    for (uint32_t i = 0; i < change.replicas.count; i++)
        directories[i] = image_directory(change.now, i);
    directories[assigning_replica(assigning, change.now)] = assigning->directory;
    change.directories = directories;
    return change_end(&change) != CHANGE_E_MEMORY;
}

/* And that directory is not online: the broker leaves ISR and leadership there. */
static bool assigning_drop(const struct assigning *assigning, struct change_place place)
{
    if (image_directory_online(assigning->cluster->image, assigning->broker, assigning->directory))
        return true;
    struct change change;
    change_begin(&change, assigning->cluster, assigning->step, place);
    change.dead = assigning->broker;
    change.isr = change_without(assigning->step->arena, change.isr, change_one(&assigning->broker));
    return change_end(&change) != CHANGE_E_MEMORY;
}

static bool assigning_topic(const struct assigning *assigning,
                            const struct assign_replicas_to_dirs_request_topic_data *in,
                            struct assign_replicas_to_dirs_response_topic_data *out)
{
    const struct image_topic *topic = image_topic_by_id(assigning->cluster->image, in->topic_id);
    size_t count = (size_t)MAX(in->partitions.count, 0);
    out->topic_id = in->topic_id;
    out->partitions.items =
        step_get(assigning->step, (count + 1) * sizeof(out->partitions.items[0]));
    if (out->partitions.items == NULL) return false;
    out->partitions.count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        int32_t index = in->partitions.items[i].partition_index;
        struct change_place place = {topic, index};
        out->partitions.items[i].partition_index = index;
        out->partitions.items[i].error_code = assigning_check(assigning, topic, index);
        if (out->partitions.items[i].error_code != KAFKA_NONE) continue;
        if (!assigning_set(assigning, place) || !assigning_drop(assigning, place)) return false;
    }
    return true;
}

static bool assigning_directory(const struct assigning *assigning,
                                const struct assign_replicas_to_dirs_request_directory_data *in,
                                struct assign_replicas_to_dirs_response_directory_data *out)
{
    size_t count = (size_t)MAX(in->topics.count, 0);
    out->id = in->id;
    out->topics.items = step_get(assigning->step, (count + 1) * sizeof(out->topics.items[0]));
    if (out->topics.items == NULL) return false;
    out->topics.count = (int32_t)count;
    for (size_t i = 0; i < count; i++)
        if (!assigning_topic(assigning, &in->topics.items[i], &out->topics.items[i])) return false;
    return true;
}

enum step_result cluster_assign_directories(struct cluster *cluster,
                                            struct step *step,
                                            const struct assign_replicas_to_dirs_request *in,
                                            struct assign_replicas_to_dirs_response *out)
{
    wire_defaults(&wire_assign_replicas_to_dirs_response, out);
    const struct image_node *broker = image_broker(cluster->image, in->broker_id);
    if (!cluster->active)
        out->error_code = KAFKA_NOT_CONTROLLER;
    else if (image_metadata_version(cluster->image) < FEATURE_METADATA_DIRECTORIES)
        out->error_code = KAFKA_UNSUPPORTED_VERSION;
    else if (broker == NULL || broker->epoch != in->broker_epoch)
        out->error_code = KAFKA_STALE_BROKER_EPOCH;
    if (out->error_code != KAFKA_NONE) return STEP_DONE;

    size_t count = (size_t)MAX(in->directories.count, 0);
    out->directories.items = step_get(step, (count + 1) * sizeof(out->directories.items[0]));
    if (out->directories.items == NULL) return STEP_E_MEMORY;
    out->directories.count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct assigning assigning = {cluster, step, in->broker_id, in->directories.items[i].id};
        if (!assigning_directory(&assigning, &in->directories.items[i], &out->directories.items[i]))
            return STEP_E_MEMORY;
    }
    return cluster_done(step);
}
