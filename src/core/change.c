/* change.c - one partition's next state.
 *
 * Order of the work, as the reference controller has it: complete a reassignment, find the ELR that
 * the new ISR leaves behind, elect, raise the leader epoch where replicas leave, write what
 * differs.
 *
 * An election that picks a replica outside ISR and ELR ("left behind") makes that replica the whole
 * ISR, empties the ELR, and marks the partition as recovering. */
#include "core/change.h"

#include "gen/partition_change_record.h"

/* ---- lists of ids ---------------------------------------------------------------------------- */

bool change_ids_equal(struct image_ids a, struct image_ids b)
{
    return a.count == b.count &&
           (a.count == 0 || memcmp(a.items, b.items, a.count * sizeof(a.items[0])) == 0);
}

bool change_ids_cover(struct image_ids ids, struct image_ids all)
{
    for (uint32_t i = 0; i < all.count; i++)
        if (!image_ids_have(ids, all.items[i])) return false;
    return true;
}

struct image_ids change_without(struct arena *arena, struct image_ids ids, struct image_ids out)
{
    int32_t *items = arena_get(arena, (ids.count + 1) * sizeof(*items));
    struct image_ids result = {items, 0};
    if (items == NULL) return result;
    for (uint32_t i = 0; i < ids.count; i++)
        if (!image_ids_have(out, ids.items[i])) items[result.count++] = ids.items[i];
    return result;
}

struct uuid change_default_directory(const struct image *image, int32_t id)
{
    const struct image_node *broker = image_broker(image, id);
    if (broker == NULL || broker->directory_count == 0) return image_directory_migrating;
    if (broker->directory_count == 1) return broker->directories[0];
    return image_directory_unassigned;
}

/* ---- who can lead ---------------------------------------------------------------------------- */

static bool change_directory_online(const struct change *change, int32_t broker)
{
    struct image_ids replicas = image_list(change->now, IMAGE_REPLICAS);
    for (uint32_t i = 0; i < replicas.count; i++) {
        if (replicas.items[i] != broker) continue;
        struct uuid directory = image_directory(change->now, i);
        for (uint32_t j = 0; broker == change->losing && j < change->lost_count; j++)
            if (uuid_equal(change->lost[j], directory)) return false;
        return image_directory_online(change->cluster->image, broker, directory);
    }
    return image_ids_have(change->replicas, broker); /* New here: wherever it will lie. */
}

bool change_acceptable(const struct change *change, int32_t broker)
{
    if (broker < 0 || broker == change->dead || broker == change->unclean) return false;
    if (broker != change->alive && !image_broker_active(change->cluster->image, broker))
        return false;
    return change_directory_online(change, broker);
}

static bool change_can_lead(const struct change *change, int32_t broker)
{
    bool in_sync = image_ids_have(change->isr, broker) ||
                   (change->isr.count == 0 && image_ids_have(change->elr, broker));
    return in_sync && change_acceptable(change, broker);
}

/* The last known leader, if nobody else is left and it lives. */
static int32_t change_last_known(const struct change *change)
{
    struct image_ids last = image_list(change->now, IMAGE_LAST_KNOWN_ELR);
    if (!cluster_elr_on(change->cluster)) return IMAGE_NO_LEADER;
    if (change->isr.count > 0 || change->elr.count > 0 || last.count != 1) return IMAGE_NO_LEADER;
    return change_acceptable(change, last.items[0]) ? last.items[0] : IMAGE_NO_LEADER;
}

static void change_elect(struct change *change)
{
    struct image_ids replicas = change->replicas;
    change->left_behind = false;
    change->leader = change->now->leader;
    if (change->election == CHANGE_PREFERRED && replicas.count > 0 &&
        change_can_lead(change, replicas.items[0])) {
        change->leader = replicas.items[0];
        return;
    }
    if (change_can_lead(change, change->now->leader)) return;
    for (uint32_t i = 0; i < replicas.count; i++)
        if (change_can_lead(change, replicas.items[i])) {
            change->leader = replicas.items[i];
            return;
        }
    change->left_behind = true;
    change->leader = change_last_known(change);
    if (change->leader >= 0) return;
    for (uint32_t i = 0; change->election == CHANGE_UNCLEAN && i < replicas.count; i++)
        if (change_acceptable(change, replicas.items[i])) {
            change->leader = replicas.items[i];
            return;
        }
    change->left_behind = false;
}

/* ---- the parts ------------------------------------------------------------------------------- */

void change_begin(struct change *change,
                  const struct cluster *cluster,
                  struct step *step,
                  struct change_place place)
{
    const struct image_partition *now = image_partition(place.topic, place.index);
    assert(now != NULL);
    *change = (struct change){
        .cluster = cluster,
        .step = step,
        .place = place,
        .now = now,
        .dead = -1,
        .unclean = -1,
        .alive = -1,
        .losing = -1,
        .election =
            cluster_topic_unclean(cluster, place.topic->name) ? CHANGE_UNCLEAN : CHANGE_ONLINE,
        .isr = image_list(now, IMAGE_ISR),
        .replicas = image_list(now, IMAGE_REPLICAS),
        .adding = image_list(now, IMAGE_ADDING),
        .removing = image_list(now, IMAGE_REMOVING),
        .elr = image_list(now, IMAGE_ELR),
        .recovery = now->recovery,
    };
}

/* A reassignment is complete when what stays in the ISR is enough. */
static void change_complete(struct change *change)
{
    if (change->adding.count == 0 && change->removing.count == 0) return;
    struct arena *arena = change->step->arena;
    struct image_ids isr = change_without(arena, change->isr, change->removing);
    struct image_ids replicas = change_without(arena, change->replicas, change->removing);
    if (change->removing.count > 0 && isr.count == 0) return;
    if (!change_ids_cover(isr, change->adding)) return;
    if (change->adding.count < change->removing.count && !change_ids_cover(isr, replicas)) return;

    if (change->removing.count > 0) {
        /* The directories of those that stay. */
        struct uuid *directories = arena_get(arena, (replicas.count + 1) * sizeof(*directories));
        if (directories == NULL) return;
        uint32_t kept = 0;
        for (uint32_t i = 0; i < change->replicas.count; i++)
            if (image_ids_have(replicas, change->replicas.items[i]))
                directories[kept++] = change->directories != NULL ? change->directories[i]
                                                                  : image_directory(change->now, i);
        change->directories = directories;
    }
    change->isr = isr;
    change->replicas = replicas;
    change->adding = (struct image_ids){NULL, 0};
    change->removing = (struct image_ids){NULL, 0};
}

static uint32_t change_min_insync(const struct change *change)
{
    int32_t min = cluster_topic_min_insync(change->cluster, change->place.topic->name);
    const struct image_partition *first = image_partition(change->place.topic, 0);
    uint32_t replicas = first != NULL ? first->counts[IMAGE_REPLICAS] : change->replicas.count;
    return MIN((uint32_t)MAX(min, 1), replicas);
}

/* Who leaves an ISR that becomes too small stays eligible, unless it may have lost data. */
static void change_find_elr(struct change *change)
{
    if (!cluster_elr_on(change->cluster)) return;
    if (change->isr.count >= change_min_insync(change)) {
        change->elr = (struct image_ids){NULL, 0};
        return;
    }
    struct image_ids old = image_list(change->now, IMAGE_ISR);
    int32_t *items =
        arena_get(change->step->arena, (change->elr.count + old.count + 1) * sizeof(*items));
    if (items == NULL) return;
    struct image_ids elr = {items, 0};
    for (uint32_t i = 0; i < change->elr.count + old.count; i++) {
        int32_t id =
            i < change->elr.count ? change->elr.items[i] : old.items[i - change->elr.count];
        if (image_ids_have(change->isr, id) || id == change->unclean || image_ids_have(elr, id))
            continue;
        items[elr.count++] = id;
    }
    change->elr = elr;
}

static void change_set_ids(void *array, struct image_ids ids)
{
    struct wire_array *out = array;
    out->items = (void *)(uintptr_t)ids.items;
    out->count = (int32_t)ids.count;
}

static void change_fill_leader(struct change *change, struct partition_change_record *record)
{
    bool elr_on = cluster_elr_on(change->cluster);
    struct image_ids old_isr = image_list(change->now, IMAGE_ISR);
    change_elect(change);
    if (change->leader != change->now->leader) {
        record->leader = change->leader;
        if (change->left_behind) {
            change->isr = change_one(&change->leader);
            change->recovery = IMAGE_RECOVERING;
            change_set_ids(&record->isr, change->isr);
        } else if (change->leader >= 0 && image_ids_have(change->elr, change->leader)) {
            change->isr = change_one(&change->leader);
            change->elr = change_without(change->step->arena, change->elr, change->isr);
        }
    }
    /* A replica that leaves must see a new epoch, also when the leader stays. */
    if (record->leader == IMAGE_LEADER_UNCHANGED &&
        !change_ids_cover(change->replicas, image_list(change->now, IMAGE_REPLICAS)))
        record->leader = change->now->leader;

    if (change->left_behind || !elr_on) change->elr = (struct image_ids){NULL, 0};
    if (!change_ids_equal(change->elr, image_list(change->now, IMAGE_ELR)))
        change_set_ids(&record->eligible_leader_replicas, change->elr);

    if (record->isr.count < 0 && (change->isr.count > 0 || elr_on) &&
        !change_ids_equal(change->isr, old_isr))
        change_set_ids(&record->isr, change->isr);
    if (record->isr.count < 0) change->isr = old_isr; /* The last in sync stays. */

    if (image_metadata_version(change->cluster->image) < FEATURE_METADATA_NO_SHRINK_BUMP &&
        record->isr.count >= 0 && record->leader == IMAGE_LEADER_UNCHANGED &&
        !change_ids_cover(change->isr, old_isr))
        record->leader = change->now->leader;
}

static void change_fill_last_known(const struct change *change,
                                   struct partition_change_record *record)
{
    static const int32_t nobody[1];
    if (!cluster_elr_on(change->cluster)) return;
    uint32_t known = change->now->counts[IMAGE_LAST_KNOWN_ELR];
    int32_t before = change->now->leader;
    if (record->leader == IMAGE_NO_LEADER && before >= 0 && known == 0)
        change_set_ids(&record->last_known_elr, change_one(&change->now->leader));
    else if (change->leader >= 0 && known > 0)
        change_set_ids(&record->last_known_elr, (struct image_ids){nobody, 0});
}

static bool change_directories_differ(const struct change *change)
{
    if (change->directories == NULL) return false;
    if (!change_ids_equal(change->replicas, image_list(change->now, IMAGE_REPLICAS))) return true;
    for (uint32_t i = 0; i < change->replicas.count; i++)
        if (!uuid_equal(change->directories[i], image_directory(change->now, i))) return true;
    return false;
}

static void change_fill_assignment(const struct change *change,
                                   struct partition_change_record *record)
{
    if (!change_ids_equal(change->replicas, image_list(change->now, IMAGE_REPLICAS)))
        change_set_ids(&record->replicas, change->replicas);
    if (!change_ids_equal(change->removing, image_list(change->now, IMAGE_REMOVING)))
        change_set_ids(&record->removing_replicas, change->removing);
    if (!change_ids_equal(change->adding, image_list(change->now, IMAGE_ADDING)))
        change_set_ids(&record->adding_replicas, change->adding);
    if (change_directories_differ(change) &&
        image_metadata_version(change->cluster->image) >= FEATURE_METADATA_DIRECTORIES) {
        record->directories.items = (struct uuid *)(uintptr_t)change->directories;
        record->directories.count = (int32_t)change->replicas.count;
    }
    if (change->recovery != change->now->recovery) record->leader_recovery_state = change->recovery;
}

static bool change_is_nothing(const struct partition_change_record *record)
{
    return record->isr.count < 0 && record->leader == IMAGE_LEADER_UNCHANGED &&
           record->replicas.count < 0 && record->removing_replicas.count < 0 &&
           record->adding_replicas.count < 0 && record->leader_recovery_state < 0 &&
           record->directories.count < 0 && record->eligible_leader_replicas.count < 0 &&
           record->last_known_elr.count < 0;
}

enum change_result change_end(struct change *change)
{
    struct partition_change_record *record =
        step_add(change->step, &wire_partition_change_record,
                 feature_partition_version(image_metadata_version(change->cluster->image)));
    if (record == NULL) return CHANGE_E_MEMORY;
    record->topic_id = change->place.topic->id;
    record->partition_id = change->place.index;

    change_complete(change);
    change_find_elr(change);
    change_fill_leader(change, record);
    change_fill_last_known(change, record);
    change_fill_assignment(change, record);
    /* `change` may live on the stack of a loop: what the record keeps must lie in the arena. */
    if (record->isr.count == 1 && record->isr.items == &change->leader) {
        int32_t *one = arena_get(change->step->arena, sizeof(*one));
        if (one == NULL) return CHANGE_E_MEMORY;
        *one = change->leader;
        record->isr.items = one;
        change->isr.items = one;
    }
    if (change->step->arena->failed) return CHANGE_E_MEMORY;
    if (!change_is_nothing(record)) return CHANGE_MADE;
    change->step->record_count--;
    return CHANGE_NONE;
}

struct change_outcome change_outcome(const struct change *change, enum change_result result)
{
    struct change_outcome outcome = {
        .leader = change->now->leader,
        .leader_epoch = change->now->leader_epoch,
        .partition_epoch = change->now->partition_epoch,
        .isr = image_list(change->now, IMAGE_ISR),
        .recovery = change->now->recovery,
    };
    if (result != CHANGE_MADE) return outcome;
    const struct partition_change_record *record =
        change->step->records[change->step->record_count - 1].value.value;
    outcome.partition_epoch++;
    if (record->leader != IMAGE_LEADER_UNCHANGED) {
        outcome.leader = record->leader;
        outcome.leader_epoch++;
    }
    if (record->isr.count >= 0)
        outcome.isr = (struct image_ids){record->isr.items, (uint32_t)record->isr.count};
    if (record->leader_recovery_state >= 0) outcome.recovery = record->leader_recovery_state;
    return outcome;
}

/* ---- many partitions ------------------------------------------------------------------------- */

static bool change_lies_in_lost(const struct change_sweep *sweep,
                                const struct image_partition *partition)
{
    struct image_ids replicas = image_list(partition, IMAGE_REPLICAS);
    for (uint32_t i = 0; i < replicas.count; i++) {
        if (replicas.items[i] != sweep->losing) continue;
        struct uuid directory = image_directory(partition, i);
        for (uint32_t j = 0; j < sweep->lost_count; j++)
            if (uuid_equal(sweep->lost[j], directory)) return true;
    }
    return false;
}

static bool change_concerns(const struct change_sweep *sweep,
                            const struct image_partition *partition)
{
    if (sweep->in_lost && !change_lies_in_lost(sweep, partition)) return false;
    return (sweep->in_isr && image_ids_have(image_list(partition, IMAGE_ISR), sweep->dead)) ||
           (sweep->in_elr && image_ids_have(image_list(partition, IMAGE_ELR), sweep->dead)) ||
           (sweep->leaderless && partition->leader == IMAGE_NO_LEADER);
}

/* How many partitions can be concerned at most. */
static uint32_t change_expected(const struct cluster *cluster, const struct change_sweep *sweep)
{
    struct image_load load = image_load(cluster->image, sweep->dead);
    return (sweep->in_isr ? load.isr : 0) + (sweep->in_elr ? load.elr : 0) +
           (sweep->leaderless ? image_leaderless(cluster->image) : 0);
}

static enum change_result change_swept(const struct cluster *cluster,
                                       struct step *step,
                                       const struct change_sweep *sweep,
                                       struct change_place place)
{
    struct change change;
    change_begin(&change, cluster, step, place);
    change.dead = sweep->dead;
    change.unclean = sweep->unclean;
    change.alive = sweep->alive;
    change.losing = sweep->losing;
    change.lost = sweep->lost;
    change.lost_count = sweep->lost_count;
    if (sweep->in_isr || sweep->in_elr)
        change.isr = change_without(step->arena, change.isr, change_one(&sweep->dead));
    if (step->arena->failed) return CHANGE_E_MEMORY;
    return change_end(&change);
}

enum step_result change_sweep(const struct cluster *cluster,
                              struct step *step,
                              const struct change_sweep *sweep)
{
    uint32_t left = change_expected(cluster, sweep);
    const struct image_object *object = NULL;
    while (left > 0 && (object = image_next(cluster->image, IMAGE_TOPIC, object)) != NULL) {
        const struct image_topic *topic = (const struct image_topic *)object;
        for (int32_t i = 0; left > 0 && i < topic->partition_count; i++) {
            const struct image_partition *partition = topic->partitions[i];
            if (partition == NULL || !change_concerns(sweep, partition)) continue;
            if (step_room(step) <= sweep->reserve) return STEP_MORE;
            left--;
            if (change_swept(cluster, step, sweep, (struct change_place){topic, i}) ==
                CHANGE_E_MEMORY)
                return STEP_E_MEMORY;
        }
    }
    return STEP_DONE;
}
