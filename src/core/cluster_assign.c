/* cluster_assign.c - new partitions on brokers: by hand or placed, and their first records.
 *
 * A new partition's ISR is its active replicas, its leader the first of them, epochs 0. */
#include "core/cluster_assign.h"
#include "core/change.h"
#include "core/placement.h"

#include "gen/partition_record.h"

/* It takes no new replicas: all of its directories are cordoned; or it is the own broker part,
 * which does not replicate, beside others (also where metadata.version knows no cordons yet). */
static bool assign_cordoned(const struct cluster *cluster, const struct image_node *broker)
{
    if (broker->id == cluster->options.own_broker_id &&
        image_count(cluster->image, IMAGE_BROKER) > 1)
        return true;
    if (!broker->cordoned_known || broker->directory_count == 0) return false;
    for (uint32_t i = 0; i < broker->directory_count; i++) {
        bool cordoned = false;
        for (uint32_t j = 0; j < broker->cordoned_count && !cordoned; j++)
            cordoned = uuid_equal(broker->directories[i], broker->cordoned[j]);
        if (!cordoned) return false;
    }
    return true;
}

struct view cluster_assign_replicas_fault(const struct cluster *cluster,
                                          struct step *step,
                                          struct image_ids replicas)
{
    struct arena *arena = step->arena;
    if (replicas.count == 0) return VIEW("a partition has no replicas");
    for (uint32_t i = 0; i < replicas.count; i++) {
        int32_t id = replicas.items[i];
        const struct image_node *broker = image_broker(cluster->image, id);
        struct view name = join_number(arena, id);
        if (image_ids_have((struct image_ids){replicas.items, i}, id))
            return JOIN(arena, VIEW("broker "), name, VIEW(" is named twice for one partition"));
        if (broker == NULL) return JOIN(arena, VIEW("no broker "), name, VIEW(" is registered"));
        if (assign_cordoned(cluster, broker))
            return JOIN(arena, VIEW("all log directories of broker "), name, VIEW(" are cordoned"));
    }
    return VIEW_NULL;
}

static uint32_t assign_active(const struct cluster *cluster, struct image_ids ids)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ids.count; i++)
        count += image_broker_active(cluster->image, ids.items[i]);
    return count;
}

struct view cluster_assign_fault(const struct cluster *cluster,
                                 struct step *step,
                                 const struct cluster_assigned *partitions,
                                 uint32_t factor)
{
    for (uint32_t i = 0; i < partitions->count; i++) {
        struct image_ids replicas = partitions->items[i];
        struct view fault = cluster_assign_replicas_fault(cluster, step, replicas);
        if (!fault.null) return fault;
        if (replicas.count != factor)
            return JOIN(step->arena, VIEW("all partitions must have "),
                        join_number(step->arena, factor), VIEW(" replicas"));
        if (assign_active(cluster, replicas) == 0)
            return VIEW("all replicas of a partition are fenced or shutting down");
    }
    return VIEW_NULL;
}

/* Brokers that can take new replicas, sorted by id so that equal seeds place equally. */
static struct placement_broker *assign_usable(const struct cluster *cluster,
                                              struct step *step,
                                              uint32_t *usable)
{
    uint32_t count;
    const struct image_object *const *sorted =
        image_sorted(cluster->image, IMAGE_BROKER, step->arena, &count);
    struct placement_broker *brokers = step_get(step, (count + 1) * sizeof(*brokers));
    *usable = 0;
    if (brokers == NULL || (count > 0 && sorted == NULL)) return NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct image_node *broker = (const struct image_node *)sorted[i];
        if (cluster_liveness_of(cluster, broker) == CLUSTER_SHUTTING_DOWN) continue;
        if (assign_cordoned(cluster, broker)) continue;
        brokers[(*usable)++] = (struct placement_broker){broker->id, broker->rack, broker->fenced};
    }
    return brokers;
}

static struct view assign_fault(struct step *step,
                                enum placement_fault fault,
                                int32_t factor,
                                uint32_t usable)
{
    struct arena *arena = step->arena;
    switch (fault) {
    case PLACEMENT_OK: return VIEW_NULL;
    case PLACEMENT_E_FACTOR: return VIEW("the replication factor must be above 0");
    case PLACEMENT_E_FENCED: return VIEW("all brokers are fenced");
    case PLACEMENT_E_FEW:
        return JOIN(arena, join_number(arena, factor), VIEW(" replicas need as many brokers, and "),
                    join_number(arena, usable), VIEW(" can take new ones"));
    default: return VIEW_NULL; /* No memory: the arena says so. */
    }
}

struct view cluster_assign_place(const struct cluster *cluster,
                                 struct step *step,
                                 uint32_t count,
                                 int32_t factor,
                                 struct cluster_assigned *out)
{
    uint32_t usable;
    struct placement *placement = NULL;
    struct placement_broker *brokers = assign_usable(cluster, step, &usable);
    if (brokers == NULL) return VIEW_NULL;
    enum placement_fault fault = placement_new(step, brokers, usable, factor, &placement);
    if (fault != PLACEMENT_OK) return assign_fault(step, fault, factor, usable);

    out->items = step_get(step, (count + 1) * sizeof(out->items[0]));
    int32_t *ids = step_get(step, (size_t)count * (size_t)factor * sizeof(*ids));
    if (out->items == NULL || ids == NULL) return VIEW_NULL;
    for (uint32_t i = 0; i < count; i++) {
        int32_t *replicas = ids + (size_t)i * (size_t)factor;
        placement_next(placement, replicas);
        out->items[i] = (struct image_ids){replicas, (uint32_t)factor};
        if (assign_active(cluster, out->items[i]) == 0)
            return VIEW("all brokers are fenced or shutting down");
    }
    out->count = count;
    return VIEW_NULL;
}

static bool assign_add_partition(const struct cluster *cluster,
                                 struct step *step,
                                 struct partition_record *record,
                                 struct image_ids replicas)
{
    int32_t *isr = step_get(step, replicas.count * sizeof(*isr));
    struct uuid *directories = step_get(step, replicas.count * sizeof(*directories));
    if (isr == NULL || directories == NULL) return false;
    int32_t in_sync = 0;
    for (uint32_t i = 0; i < replicas.count; i++) {
        if (image_broker_active(cluster->image, replicas.items[i]))
            isr[in_sync++] = replicas.items[i];
        directories[i] = change_default_directory(cluster->image, replicas.items[i]);
    }
    assert(in_sync > 0);
    record->replicas.items = (int32_t *)(uintptr_t)replicas.items;
    record->replicas.count = (int32_t)replicas.count;
    record->isr.items = isr;
    record->isr.count = in_sync;
    record->leader = isr[0];
    record->leader_epoch = 0;
    record->partition_epoch = 0;
    if (image_metadata_version(cluster->image) >= FEATURE_METADATA_DIRECTORIES) {
        record->directories.items = directories;
        record->directories.count = (int32_t)replicas.count;
    }
    return true;
}

bool cluster_assign_add(const struct cluster *cluster,
                        struct step *step,
                        struct uuid topic_id,
                        int32_t first,
                        const struct cluster_assigned *partitions)
{
    int16_t version = feature_partition_version(image_metadata_version(cluster->image));
    for (uint32_t i = 0; i < partitions->count; i++) {
        struct partition_record *record = step_add(step, &wire_partition_record, version);
        if (record == NULL) return false;
        record->topic_id = topic_id;
        record->partition_id = first + (int32_t)i;
        if (!assign_add_partition(cluster, step, record, partitions->items[i])) return false;
    }
    return true;
}
