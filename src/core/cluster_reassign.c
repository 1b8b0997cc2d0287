/* cluster_reassign.c - moving partitions to other brokers, step by step.
 *
 * A reassignment to R makes the replica list R followed by those that are to go; `adding` and
 * `removing` say which are on their way. It completes with the ISR change that makes it possible
 * (change.c). Taking it back restores the list without those that were being added. */
#include "core/change.h"
#include "core/cluster_assign.h"

#include "gen/alter_partition_reassignments_request.h"
#include "gen/alter_partition_reassignments_response.h"
#include "gen/list_partition_reassignments_request.h"
#include "gen/list_partition_reassignments_response.h"

/* One partition's verdict. */
struct reassign {
    struct cluster *cluster;
    struct step *step;
    struct alter_partition_reassignments_response_reassignable_partition_response *out;
    bool any_factor;
};

#define REASSIGN_REFUSED VIEW("not authorized for this on the cluster")

static bool reassign_fail(struct reassign *reassign, int16_t error, struct view message)
{
    reassign->out->error_code = error;
    reassign->out->error_message = message;
    return false;
}

static bool reassign_running(const struct image_partition *partition)
{
    return partition->counts[IMAGE_ADDING] > 0 || partition->counts[IMAGE_REMOVING] > 0;
}

/* Directories for a new replica list: as they were, or where a new replica lies by default. */
static const struct uuid *reassign_directories(const struct change *change)
{
    struct image_ids old = image_list(change->now, IMAGE_REPLICAS);
    struct uuid *directories =
        step_get(change->step, (change->replicas.count + 1) * sizeof(*directories));
    for (uint32_t i = 0; directories != NULL && i < change->replicas.count; i++) {
        directories[i] =
            change_default_directory(change->cluster->image, change->replicas.items[i]);
        for (uint32_t j = 0; j < old.count; j++)
            if (old.items[j] == change->replicas.items[i])
                directories[i] = image_directory(change->now, j);
    }
    return directories;
}

static bool reassign_end(struct reassign *reassign, struct change *change)
{
    change->directories = reassign_directories(change);
    if (step_room(reassign->step) == 0)
        return reassign_fail(reassign, KAFKA_POLICY_VIOLATION,
                             VIEW("more than 10000 reassignments in one request"));
    return change_end(change) != CHANGE_E_MEMORY;
}

static bool reassign_cancel(struct reassign *reassign, struct change_place place)
{
    struct change change;
    change_begin(&change, reassign->cluster, reassign->step, place);
    if (!reassign_running(change.now))
        return reassign_fail(reassign, KAFKA_NO_REASSIGNMENT_IN_PROGRESS, VIEW_NULL);
    struct arena *arena = reassign->step->arena;
    struct image_ids adding = image_list(change.now, IMAGE_ADDING);
    change.replicas = change_without(arena, change.replicas, adding);
    change.isr = change_without(arena, change.isr, adding);
    if (change.replicas.count == 0)
        return reassign_fail(reassign, KAFKA_INVALID_REPLICA_ASSIGNMENT,
                             VIEW("no replica would be left"));
    if (change.isr.count == 0) { /* Only those that would go are in sync. */
        if (change.election != CHANGE_UNCLEAN)
            return reassign_fail(reassign, KAFKA_INVALID_REPLICA_ASSIGNMENT,
                                 VIEW("none of the old replicas is in sync: taking the "
                                      "reassignment back could lose data"));
        change.isr = (struct image_ids){change.replicas.items, 1};
    }
    change.adding = (struct image_ids){NULL, 0};
    change.removing = (struct image_ids){NULL, 0};
    return reassign_end(reassign, &change);
}

/* R, then those that are not in R. */
static struct image_ids reassign_merge(struct step *step,
                                       struct image_ids target,
                                       struct image_ids removing)
{
    int32_t *items = step_get(step, (target.count + removing.count + 1) * sizeof(*items));
    if (items == NULL) return (struct image_ids){NULL, 0};
    memcpy(items, target.items, target.count * sizeof(*items));
    if (removing.count > 0)
        memcpy(items + target.count, removing.items, removing.count * sizeof(*items));
    return (struct image_ids){items, target.count + removing.count};
}

static bool reassign_start(struct reassign *reassign,
                           struct change_place place,
                           struct image_ids target)
{
    struct step *step = reassign->step;
    struct change change;
    change_begin(&change, reassign->cluster, step, place);
    struct image_ids old = image_list(change.now, IMAGE_REPLICAS);
    struct image_ids leaving = image_list(change.now, IMAGE_REMOVING);
    struct view fault = cluster_assign_replicas_fault(reassign->cluster, step, target);
    if (!fault.null) return reassign_fail(reassign, KAFKA_INVALID_REPLICA_ASSIGNMENT, fault);
    if (!reassign->any_factor && target.count != old.count - leaving.count)
        return reassign_fail(reassign, KAFKA_INVALID_REPLICATION_FACTOR,
                             VIEW("the number of replicas would change"));
    change.removing = change_without(step->arena, old, target);
    /* Also who was being added by a running reassignment, and is not there yet. */
    struct image_ids arrived =
        change_without(step->arena, old, image_list(change.now, IMAGE_ADDING));
    change.adding = change_without(step->arena, target, arrived);
    change.replicas = reassign_merge(step, target, change.removing);
    if (step->arena->failed) return false;
    return reassign_end(reassign, &change);
}

static bool reassign_partition(
    struct reassign *reassign,
    const struct image_topic *topic,
    const struct alter_partition_reassignments_request_reassignable_partition *in)
{
    if (topic == NULL || image_partition(topic, in->partition_index) == NULL)
        return reassign_fail(reassign, KAFKA_UNKNOWN_TOPIC_OR_PARTITION,
                             VIEW("there is no such partition"));
    struct change_place place = {topic, in->partition_index};
    if (in->replicas.count < 0) return reassign_cancel(reassign, place);
    return reassign_start(reassign, place,
                          (struct image_ids){in->replicas.items, (uint32_t)in->replicas.count});
}

/* `refused`: each partition's answer, if it is not NONE. */
static bool reassign_topic(
    struct reassign *reassign,
    int16_t refused,
    const struct alter_partition_reassignments_request_reassignable_topic *in,
    struct alter_partition_reassignments_response_reassignable_topic_response *out)
{
    struct step *step = reassign->step;
    const struct image_topic *topic = image_topic(reassign->cluster->image, in->name);
    size_t count = (size_t)MAX(in->partitions.count, 0);
    out->name = in->name;
    out->partitions.items = step_get(step, (count + 1) * sizeof(out->partitions.items[0]));
    if (out->partitions.items == NULL) return false;
    out->partitions.count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        reassign->out = &out->partitions.items[i];
        reassign->out->partition_index = in->partitions.items[i].partition_index;
        reassign->out->error_message = VIEW_NULL;
        if (refused != KAFKA_NONE)
            (void)reassign_fail(reassign, refused, REASSIGN_REFUSED);
        else
            (void)reassign_partition(reassign, topic, &in->partitions.items[i]);
        if (step->arena->failed) return false;
    }
    return true;
}

enum step_result cluster_alter_reassignments(struct cluster *cluster,
                                             struct step *step,
                                             const struct alter_partition_reassignments_request *in,
                                             struct alter_partition_reassignments_response *out)
{
    wire_defaults(&wire_alter_partition_reassignments_response, out);
    if (!cluster->active) {
        out->error_code = KAFKA_NOT_CONTROLLER;
        return STEP_DONE;
    }
    bool any_factor = step->caller.version < 1 || in->allow_replication_factor_change;
    struct reassign reassign = {.cluster = cluster, .step = step, .any_factor = any_factor};
    size_t count = (size_t)MAX(in->topics.count, 0);
    if (count > 0) out->error_message = VIEW_NULL;
    if (!cluster_allows(step, CLUSTER_OP_ALTER, CLUSTER_ON_CLUSTER, CLUSTER_ON_CLUSTER_NAME)) {
        out->error_code = KAFKA_CLUSTER_AUTHORIZATION_FAILED;
        out->error_message = REASSIGN_REFUSED;
    }
    out->allow_replication_factor_change = any_factor;
    out->responses.items = step_get(step, (count + 1) * sizeof(out->responses.items[0]));
    if (out->responses.items == NULL) return STEP_E_MEMORY;
    out->responses.count = (int32_t)count;
    for (size_t i = 0; i < count; i++)
        if (!reassign_topic(&reassign, out->error_code, &in->topics.items[i],
                            &out->responses.items[i]))
            return STEP_E_MEMORY;
    return cluster_done(step);
}

/* ---- the list -------------------------------------------------------------------------------- */

static void list_ids(const struct image_partition *partition, enum image_list list, void *out)
{
    struct image_ids ids = image_list(partition, list);
    struct wire_array *array = out;
    array->items = (void *)(uintptr_t)ids.items;
    array->count = (int32_t)ids.count;
}

/* Who may not ask is told what it asked for, with nothing in it. */
static bool list_refuse(struct step *step,
                        const struct list_partition_reassignments_request *in,
                        struct list_partition_reassignments_response *out)
{
    out->error_code = KAFKA_CLUSTER_AUTHORIZATION_FAILED;
    out->error_message = REASSIGN_REFUSED;
    size_t count = (size_t)MAX(in->topics.count, 0);
    out->topics.items = step_get(step, (count + 1) * sizeof(out->topics.items[0]));
    if (out->topics.items == NULL) return false;
    out->topics.count = (int32_t)count;
    for (size_t t = 0; t < count; t++) {
        const struct list_partition_reassignments_request_list_partition_reassignments_topics
            *topic = &in->topics.items[t];
        struct list_partition_reassignments_response_ongoing_topic_reassignment *item =
            &out->topics.items[t];
        size_t partitions = (size_t)MAX(topic->partition_indexes.count, 0);
        item->name = topic->name;
        item->partitions.items =
            step_get(step, (partitions + 1) * sizeof(item->partitions.items[0]));
        if (item->partitions.items == NULL) return false;
        item->partitions.count = (int32_t)partitions;
        for (size_t i = 0; i < partitions; i++)
            item->partitions.items[i] =
                (struct list_partition_reassignments_response_ongoing_partition_reassignment){
                    .partition_index = topic->partition_indexes.items[i]};
    }
    return true;
}

/* The running reassignments of one topic: of all its partitions, or of those named. */
static bool list_topic(
    struct step *step,
    const struct image_topic *topic,
    const struct list_partition_reassignments_request_list_partition_reassignments_topics *in,
    struct list_partition_reassignments_response_ongoing_topic_reassignment *out)
{
    int32_t count = in == NULL ? topic->partition_count : MAX(in->partition_indexes.count, 0);
    out->name = topic->name;
    out->partitions.items = step_get(step, (size_t)(count + 1) * sizeof(out->partitions.items[0]));
    if (out->partitions.items == NULL) return false;
    out->partitions.count = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t index = in == NULL ? i : in->partition_indexes.items[i];
        const struct image_partition *partition = image_partition(topic, index);
        if (partition == NULL || !reassign_running(partition)) continue;
        struct list_partition_reassignments_response_ongoing_partition_reassignment *item =
            &out->partitions.items[out->partitions.count++];
        item->partition_index = index;
        list_ids(partition, IMAGE_REPLICAS, &item->replicas);
        list_ids(partition, IMAGE_ADDING, &item->adding_replicas);
        list_ids(partition, IMAGE_REMOVING, &item->removing_replicas);
    }
    return true;
}

enum step_result cluster_list_reassignments(const struct image *image,
                                            struct step *step,
                                            const struct list_partition_reassignments_request *in,
                                            struct list_partition_reassignments_response *out)
{
    wire_defaults(&wire_list_partition_reassignments_response, out);
    out->error_message = VIEW_NULL;
    if (!cluster_allows(step, CLUSTER_OP_DESCRIBE, CLUSTER_ON_CLUSTER, CLUSTER_ON_CLUSTER_NAME))
        return list_refuse(step, in, out) ? STEP_DONE : STEP_E_MEMORY;
    bool all = in->topics.count < 0;
    size_t count = all ? image_count(image, IMAGE_TOPIC) : (size_t)in->topics.count;
    out->topics.items = step_get(step, (count + 1) * sizeof(out->topics.items[0]));
    if (out->topics.items == NULL) return STEP_E_MEMORY;
    out->topics.count = 0;
    const struct image_object *object = NULL;
    for (size_t i = 0; i < count; i++) {
        object = all ? image_next(image, IMAGE_TOPIC, object) : NULL;
        const struct image_topic *topic =
            all ? (const struct image_topic *)object : image_topic(image, in->topics.items[i].name);
        struct list_partition_reassignments_response_ongoing_topic_reassignment *item =
            &out->topics.items[out->topics.count];
        if (topic == NULL) continue;
        if (!list_topic(step, topic, all ? NULL : &in->topics.items[i], item)) return STEP_E_MEMORY;
        if (item->partitions.count > 0) out->topics.count++;
    }
    return STEP_DONE;
}
