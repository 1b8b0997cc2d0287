/* cluster.c - the controller's life: becoming active, soft state, periodic work, small steps.
 *
 * Soft state is two maps: by broker, what its heartbeats told; by (broker, epoch), when it was last
 * heard. Only the expiry check takes contacts out; registration and fencing leave them alone, which
 * decides who is refused as a duplicate. */
#include "core/cluster_internal.h"

#include "core/change.h"
#include "gen/abort_transaction_record.h"
#include "gen/allocate_producer_ids_request.h"
#include "gen/allocate_producer_ids_response.h"
#include "gen/begin_transaction_record.h"
#include "gen/config_record.h"
#include "gen/end_transaction_record.h"
#include "gen/feature_level_record.h"
#include "gen/no_op_record.h"
#include "gen/partition_change_record.h"
#include "gen/producer_ids_record.h"

#define CLUSTER_PRODUCER_ID_BLOCK 1000
#define CLUSTER_AGAIN_MS          10 /* A periodic task that has more to do. */

/* ---- what this build can do ------------------------------------------------------------------ */

#define CLUSTER_RANGE(text, low, high)                                                             \
    {                                                                                              \
        {(const uint8_t *)(text), sizeof(text) - 1, false, false}, low, high                       \
    }

static const struct image_range cluster_ranges[] = {
    CLUSTER_RANGE(FEATURE_ELR, 0, 1),
    CLUSTER_RANGE("group.version", 0, 1),
    CLUSTER_RANGE(FEATURE_KRAFT, 0, 1),
    CLUSTER_RANGE(FEATURE_METADATA, FEATURE_METADATA_MIN, FEATURE_METADATA_MAX),
    CLUSTER_RANGE("share.version", 0, 2),
    CLUSTER_RANGE("streams.version", 0, 1),
    CLUSTER_RANGE("transaction.version", 0, 2),
};

const struct image_range *cluster_features(uint32_t *count)
{
    *count = ARRAY_SIZE(cluster_ranges);
    return cluster_ranges;
}

static int16_t cluster_served_max(const struct image_range *served,
                                  uint32_t count,
                                  const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (view_is(served[i].name, name)) return served[i].max;
    return 0;
}

static bool cluster_add_feature(struct step *step, const char *name, int16_t level)
{
    struct feature_level_record *record = step_add(step, &wire_feature_level_record, 0);
    if (record == NULL) return false;
    record->name = view_of_string(name);
    record->feature_level = level;
    return true;
}

enum step_result cluster_format(struct step *step,
                                int16_t metadata_version,
                                const struct image_range *served,
                                uint32_t served_count)
{
    int16_t version = metadata_version == 0 ? FEATURE_METADATA_MAX : metadata_version;
    assert(version >= FEATURE_METADATA_MIN && version <= FEATURE_METADATA_MAX);
    if (!cluster_add_feature(step, FEATURE_METADATA, version)) return STEP_E_MEMORY;
    uint32_t count;
    const struct feature *all = feature_all(&count);
    for (uint32_t i = 0; i < count; i++) {
        int16_t level = MIN(feature_default_level(&all[i], version),
                            cluster_served_max(served, served_count, all[i].name));
        if (level > 0 && !cluster_add_feature(step, all[i].name, level)) return STEP_E_MEMORY;
    }
    return STEP_DONE;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct cluster *cluster_new(struct mem *mem, const struct cluster_options *options)
{
    assert(options->session_timeout_ms > 0);
    struct cluster *cluster = mem_get(mem, sizeof(*cluster));
    if (cluster == NULL) return NULL;
    cluster->mem = mem;
    cluster->options = *options;
    cluster->kraft_version = 1;
    map_init(&cluster->softs, mem, options->seed + 100);
    map_init(&cluster->contacts, mem, options->seed + 101);
    cluster->image = image_new(mem, options->seed);
    cluster->cluster_id = mem_get(mem, options->cluster_id.size + 1);
    cluster->voters = mem_get(mem, (options->static_voter_count + 1) * sizeof(int32_t));
    if (cluster->image == NULL || cluster->cluster_id == NULL || cluster->voters == NULL)
        return cluster_free(cluster);
    memcpy(cluster->cluster_id, options->cluster_id.data, options->cluster_id.size);
    cluster->options.cluster_id = view_of(cluster->cluster_id, options->cluster_id.size);
    if (options->static_voter_count > 0)
        memcpy(cluster->voters, options->static_voters,
               options->static_voter_count * sizeof(cluster->voters[0]));
    cluster->options.static_voters = cluster->voters;
    return cluster;
}

static void cluster_forget_soft(struct cluster *cluster)
{
    cluster->ending = NULL;
    struct map_node *node = map_next(&cluster->softs, NULL);
    while (node != NULL) {
        struct map_node *next = map_next(&cluster->softs, node);
        map_remove(&cluster->softs, node);
        mem_put(cluster->mem, container_of(node, struct cluster_soft, node),
                sizeof(struct cluster_soft));
        node = next;
    }
    node = map_next(&cluster->contacts, NULL);
    while (node != NULL) {
        struct map_node *next = map_next(&cluster->contacts, node);
        cluster_contact_remove(cluster, container_of(node, struct cluster_contact, node));
        node = next;
    }
}

struct cluster *cluster_free(struct cluster *cluster)
{
    if (cluster == NULL) return NULL;
    struct mem *mem = cluster->mem;
    cluster_forget_soft(cluster);
    map_free(&cluster->softs);
    map_free(&cluster->contacts);
    image_free(cluster->image);
    mem_put(mem, cluster->cluster_id, cluster->options.cluster_id.size + 1);
    mem_put(mem, cluster->voters, (cluster->options.static_voter_count + 1) * sizeof(int32_t));
    mem_put(mem, cluster, sizeof(*cluster));
    return NULL;
}

struct image *cluster_image(struct cluster *cluster)
{
    return cluster->image;
}

void cluster_set_kraft_version(struct cluster *cluster, int16_t level)
{
    assert(level >= 0);
    cluster->kraft_version = level;
}

bool cluster_active(const struct cluster *cluster)
{
    return cluster->active;
}

void cluster_applied(struct cluster *cluster)
{
    if (cluster->ending != NULL) cluster_contact_remove(cluster, cluster->ending);
    cluster->ending = NULL;
}

enum image_result cluster_apply(struct cluster *cluster, const struct step *step, int64_t base)
{
    for (uint32_t i = 0; i < step->record_count; i++) {
        enum image_result result = image_apply(cluster->image, &step->records[i], base + i, base);
        if (result == IMAGE_OK) continue;
        image_undo(cluster->image, base);
        return result;
    }
    cluster_applied(cluster);
    return IMAGE_OK;
}

void cluster_commit(struct cluster *cluster, int64_t offset)
{
    image_commit(cluster->image, offset);
}

void cluster_undo(struct cluster *cluster, int64_t offset)
{
    image_undo(cluster->image, offset);
    /* A controlled shutdown whose records are lost has not begun. */
    map_foreach (node, &cluster->softs) {
        struct cluster_soft *soft = container_of(node, struct cluster_soft, node);
        if (soft->shutdown_offset >= offset) soft->shutdown_offset = -1;
    }
}

void cluster_refused(struct cluster *cluster, const struct step *step)
{
    cluster->ending = NULL;
    cluster_undo(cluster, step->offset_next);
    cluster->elect_due = cluster->active;
    cluster->session_check_ms = MIN(cluster->session_check_ms, step->now_ms);
}

void cluster_resign(struct cluster *cluster, int64_t high_watermark)
{
    image_undo(cluster->image, high_watermark);
    cluster_forget_soft(cluster);
    cluster->active = false;
    cluster->elect_due = false;
}

/* ---- soft state ------------------------------------------------------------------------------ */

struct cluster_soft *cluster_soft_find(const struct cluster *cluster, int32_t id)
{
    struct map_node *node = map_find(&cluster->softs, view_of(&id, sizeof(id)));
    return node == NULL ? NULL : container_of(node, struct cluster_soft, node);
}

struct cluster_soft *cluster_soft_get(struct cluster *cluster, int32_t id)
{
    struct cluster_soft *soft = cluster_soft_find(cluster, id);
    if (soft != NULL) return soft;
    soft = mem_get(cluster->mem, sizeof(*soft));
    if (soft == NULL) return NULL;
    soft->id = id;
    soft->metadata_offset = -1;
    soft->shutdown_offset = -1;
    soft->node.key = view_of(&soft->id, sizeof(soft->id));
    if (map_insert(&cluster->softs, &soft->node)) return soft;
    mem_put(cluster->mem, soft, sizeof(*soft));
    return NULL;
}

void cluster_soft_remove(struct cluster *cluster, int32_t id)
{
    struct cluster_soft *soft = cluster_soft_find(cluster, id);
    if (soft == NULL) return;
    map_remove(&cluster->softs, &soft->node);
    mem_put(cluster->mem, soft, sizeof(*soft));
}

enum cluster_liveness cluster_liveness_of(const struct cluster *cluster,
                                          const struct image_node *broker)
{
    if (broker == NULL) return CLUSTER_UNREGISTERED;
    if (broker->fenced) return CLUSTER_FENCED;
    const struct cluster_soft *soft = cluster_soft_find(cluster, broker->id);
    return soft != NULL && soft->shutdown_offset >= 0 ? CLUSTER_SHUTTING_DOWN : CLUSTER_UNFENCED;
}

void cluster_note(struct cluster_soft *soft, enum cluster_reason reason, const struct step *step)
{
    soft->reason = reason;
    soft->since_ms = step->now_ms;
    soft->moved = 0;
    for (uint32_t i = 0; i < step->record_count; i++)
        soft->moved += step->records[i].value.message == &wire_partition_change_record;
}

struct cluster_contact *cluster_contact_find(const struct cluster *cluster,
                                             int32_t id,
                                             int64_t epoch)
{
    struct cluster_contact wanted = {
        .key = {.epoch = epoch, .id = id}
    };
    struct map_node *node = map_find(&cluster->contacts, view_of(&wanted.key, sizeof(wanted.key)));
    return node == NULL ? NULL : container_of(node, struct cluster_contact, node);
}

void cluster_contact_remove(struct cluster *cluster, struct cluster_contact *contact)
{
    map_remove(&cluster->contacts, &contact->node);
    wheel_cancel(&cluster->sessions, &contact->session);
    mem_put(cluster->mem, contact, sizeof(*contact));
}

/* Its end, one millisecond after the last at which it still holds. One store for a heartbeat. */
void cluster_session_set(struct cluster *cluster, struct cluster_contact *contact)
{
    int64_t end_ms = contact->contact_ms + cluster->options.session_timeout_ms + 1;
    wheel_defer(&cluster->sessions, &contact->session, end_ms);
    cluster->session_check_ms = MIN(cluster->session_check_ms, end_ms);
}

void cluster_contact(struct cluster *cluster, int32_t broker, int64_t epoch, int64_t arrived_ms)
{
    if (!cluster->active) return;
    struct cluster_contact *contact = cluster_contact_find(cluster, broker, epoch);
    if (contact != NULL) {
        contact->contact_ms = MAX(contact->contact_ms, arrived_ms);
        cluster_session_set(cluster, contact);
        return;
    }
    if (cluster->contacts.count >= CLUSTER_CONTACTS_MAX) return;
    contact = mem_get(cluster->mem, sizeof(*contact));
    if (contact == NULL) return; /* Without memory the next heartbeat tries again. */
    contact->key.id = broker;
    contact->key.epoch = epoch;
    contact->contact_ms = arrived_ms;
    contact->node.key = view_of(&contact->key, sizeof(contact->key));
    wheel_entry_init(&contact->session);
    if (map_insert(&cluster->contacts, &contact->node))
        cluster_session_set(cluster, contact);
    else
        mem_put(cluster->mem, contact, sizeof(*contact));
}

bool cluster_session_valid(const struct cluster *cluster,
                           const struct image_node *broker,
                           int64_t horizon_ms)
{
    if (broker->id == cluster->options.own_broker_id) return false;
    const struct cluster_contact *contact =
        cluster_contact_find(cluster, broker->id, broker->epoch);
    return contact != NULL &&
           contact->contact_ms + cluster->options.session_timeout_ms >= horizon_ms;
}

static void cluster_view_beats(const struct cluster_soft *soft, struct cluster_broker_view *out)
{
    out->moved = soft->moved;
    out->beat_count = (uint32_t)MIN(soft->beat_next, CLUSTER_BEATS_KEPT);
    for (uint32_t i = 0; i < out->beat_count; i++)
        out->beats[i] = soft->beats[(soft->beat_next - out->beat_count + i) % CLUSTER_BEATS_KEPT];
}

bool cluster_broker(const struct cluster *cluster, int32_t id, struct cluster_broker_view *out)
{
    const struct image_node *broker = image_broker(cluster->image, id);
    const struct cluster_soft *soft = cluster_soft_find(cluster, id);
    if (broker == NULL && soft == NULL) return false;
    const struct cluster_contact *contact =
        broker == NULL ? NULL : cluster_contact_find(cluster, id, broker->epoch);
    *out = (struct cluster_broker_view){
        .liveness = cluster_liveness_of(cluster, broker),
        .reason = soft == NULL ? CLUSTER_REASON_NONE : soft->reason,
        .since_ms = soft == NULL ? 0 : soft->since_ms,
        .metadata_offset = soft == NULL ? -1 : soft->metadata_offset,
        .shutdown_offset = soft == NULL ? -1 : soft->shutdown_offset,
        .contact_ms = contact == NULL ? -1 : contact->contact_ms,
        .session_end_ms = -1,
    };
    if (soft != NULL) cluster_view_beats(soft, out);
    if (contact != NULL && id != cluster->options.own_broker_id)
        out->session_end_ms = contact->contact_ms + cluster->options.session_timeout_ms;
    return true;
}

struct cluster_config_context cluster_configs(const struct cluster *cluster)
{
    return (struct cluster_config_context){
        .image = cluster->image,
        .node_id = cluster->options.node_id,
        .static_config = cluster->options.static_config,
        .static_context = cluster->options.static_context,
    };
}

bool cluster_elr_on(const struct cluster *cluster)
{
    return image_feature_level(cluster->image, VIEW(FEATURE_ELR)) > 0;
}

/* ---- activation ------------------------------------------------------------------------------ */

/* The level that the records give a feature; 0: none. */
static int16_t cluster_bootstrap_level(const struct cluster_bootstrap *bootstrap, const char *name)
{
    for (uint32_t i = 0; i < bootstrap->count; i++) {
        const struct step_part *part = &bootstrap->records[i].value;
        if (part->message != &wire_feature_level_record) continue;
        const struct feature_level_record *record = part->value;
        if (view_is(record->name, name)) return record->feature_level;
    }
    return 0;
}

bool cluster_bootstrap_ok(const struct cluster_bootstrap *bootstrap)
{
    int16_t level = cluster_bootstrap_level(bootstrap, FEATURE_METADATA);
    return level >= FEATURE_METADATA_MIN && level <= FEATURE_METADATA_MAX;
}

/* metadata.version goes first, the rest as it stands. */
static bool cluster_add_bootstrap(struct step *step, const struct cluster_bootstrap *bootstrap)
{
    int16_t level = cluster_bootstrap_level(bootstrap, FEATURE_METADATA);
    if (!cluster_add_feature(step, FEATURE_METADATA, level)) return false;
    for (uint32_t i = 0; i < bootstrap->count; i++) {
        const struct step_part *part = &bootstrap->records[i].value;
        if (part->message == &wire_feature_level_record) {
            const struct feature_level_record *record = part->value;
            if (view_is(record->name, FEATURE_METADATA)) continue;
        }
        if (!step_add_keyed(step, (struct step_part){.bytes = VIEW_NULL}, *part)) return false;
    }
    return true;
}

/* The reference relies on a cluster-wide min.insync.replicas where ELR is on. */
static bool cluster_add_safety(const struct cluster *cluster, struct step *step)
{
    struct cluster_override override = {
        VIEW("min.insync.replicas"),
        join_number(step->arena, cluster_static_number(cluster, VIEW("min.insync.replicas"))),
    };
    return cluster_add_config(step, IMAGE_RESOURCE_BROKER, VIEW_EMPTY, &override);
}

static bool cluster_add_abort(struct step *step)
{
    struct abort_transaction_record *record = step_add(step, &wire_abort_transaction_record, 0);
    if (record != NULL) record->reason = VIEW("Controller failover");
    return record != NULL;
}

static bool cluster_add_first(const struct cluster *cluster,
                              struct step *step,
                              const struct cluster_bootstrap *bootstrap)
{
    int16_t version = cluster_bootstrap_level(bootstrap, FEATURE_METADATA);
    bool transaction = version >= FEATURE_METADATA_TRANSACTIONS;
    if (transaction) {
        struct begin_transaction_record *begin = step_add(step, &wire_begin_transaction_record, 0);
        if (begin == NULL) return false;
        begin->name = VIEW("Bootstrap records");
    }
    if (!cluster_add_bootstrap(step, bootstrap)) return false;
    if (cluster_bootstrap_level(bootstrap, FEATURE_ELR) > 0 && !cluster_add_safety(cluster, step))
        return false;
    return !transaction || step_add(step, &wire_end_transaction_record, 0) != NULL;
}

/* A full session for every broker that the log shows as unfenced. */
static bool cluster_begin_sessions(struct cluster *cluster, int64_t now_ms)
{
    cluster->active = true; /* For cluster_contact(). */
    cluster->session_check_ms = INT64_MAX;
    wheel_init(&cluster->sessions, now_ms);
    const struct image_object *object = NULL;
    while ((object = image_next(cluster->image, IMAGE_BROKER, object)) != NULL) {
        const struct image_node *broker = (const struct image_node *)object;
        if (broker->fenced) continue;
        cluster_contact(cluster, broker->id, broker->epoch, now_ms);
        if (cluster_contact_find(cluster, broker->id, broker->epoch) == NULL) return false;
    }
    return true;
}

enum step_result cluster_activate(struct cluster *cluster,
                                  struct step *step,
                                  const struct cluster_bootstrap *bootstrap)
{
    assert(!cluster->active);
    step->atomic = true;
    bool ok = image_transaction(cluster->image) < 0 || cluster_add_abort(step);
    if (ok && image_metadata_version(cluster->image) == 0) {
        assert(cluster_bootstrap_ok(bootstrap));
        ok = cluster_add_first(cluster, step, bootstrap);
    }
    ok = ok && !step->arena->failed && cluster_begin_sessions(cluster, step->now_ms);
    if (!ok) {
        cluster_forget_soft(cluster);
        cluster->active = false;
        return STEP_E_MEMORY;
    }
    const struct cluster_options *options = &cluster->options;
    image_keep_undo(cluster->image);
    cluster->idle_ms =
        options->idle_interval_ms > 0 ? step->now_ms + options->idle_interval_ms : INT64_MAX;
    cluster->preferred_ms =
        options->imbalance_interval_ms > 0 &&
                cluster_static_flag(cluster, VIEW("auto.leader.rebalance.enable"))
            ? step->now_ms + options->imbalance_interval_ms
            : INT64_MAX;
    cluster->unclean_ms =
        options->unclean_interval_ms > 0 ? step->now_ms + options->unclean_interval_ms : INT64_MAX;
    return STEP_DONE;
}

/* ---- periodic work --------------------------------------------------------------------------- */

static enum step_result cluster_tick_sessions(struct cluster *cluster, struct step *step)
{
    bool found = false;
    enum step_result result = cluster_fence_expired(cluster, step, &found);
    if (result == STEP_E_MEMORY) return result;
    int64_t next_ms = wheel_next_ms(&cluster->sessions);
    if (found) /* One a batch: the next one sees the effects of this one. */
        cluster->session_check_ms = step->now_ms;
    else if (next_ms > step->now_ms)
        cluster->session_check_ms = next_ms;
    else /* Over by the clock, but not all that had arrived by then has been read. */
        cluster->session_check_ms = step->now_ms + CLUSTER_AGAIN_MS;
    return result;
}

/* Leaderless partitions that an unfencing had no room for. */
static enum step_result cluster_tick_elect(struct cluster *cluster, struct step *step)
{
    struct change_sweep sweep = {
        .dead = -1, .unclean = -1, .alive = -1, .losing = -1, .leaderless = true};
    enum step_result result = change_sweep(cluster, step, &sweep);
    if (result == STEP_DONE) cluster->elect_due = false;
    return result;
}

enum step_result cluster_tick(struct cluster *cluster, struct step *step)
{
    if (!cluster->active) return STEP_DONE;
    enum step_result result = STEP_DONE;
    if (cluster->elect_due) {
        result = cluster_tick_elect(cluster, step);
    } else if (cluster->session_check_ms <= step->now_ms) {
        result = cluster_tick_sessions(cluster, step);
    } else if (cluster->idle_ms <= step->now_ms) {
        if (step_add(step, &wire_no_op_record, 0) == NULL) return STEP_E_MEMORY;
        cluster->idle_ms = step->now_ms + cluster->options.idle_interval_ms;
    } else if (cluster->preferred_ms <= step->now_ms) {
        result = cluster_balance(cluster, step);
        if (result == STEP_DONE)
            cluster->preferred_ms = step->now_ms + cluster->options.imbalance_interval_ms;
        else if (result == STEP_MORE) /* A pass is full: the next one soon, as Kafka does. */
            cluster->preferred_ms = step->now_ms + CLUSTER_AGAIN_MS;
    } else if (cluster->unclean_ms <= step->now_ms) {
        result = cluster_elect_unclean(cluster, step);
        cluster->unclean_ms =
            step->now_ms +
            (result == STEP_MORE ? CLUSTER_AGAIN_MS : cluster->options.unclean_interval_ms);
    }
    if (result == STEP_E_MEMORY) return result;
    return cluster_deadline(cluster) <= step->now_ms ? STEP_MORE : STEP_DONE;
}

int64_t cluster_deadline(const struct cluster *cluster)
{
    if (!cluster->active) return INT64_MAX;
    if (cluster->elect_due) return 0;
    return MIN(MIN(cluster->session_check_ms, cluster->idle_ms),
               MIN(cluster->preferred_ms, cluster->unclean_ms));
}

/* ---- producer ids ---------------------------------------------------------------------------- */

enum step_result cluster_allocate_producer_ids(struct cluster *cluster,
                                               struct step *step,
                                               const struct allocate_producer_ids_request *in,
                                               struct allocate_producer_ids_response *out)
{
    wire_defaults(&wire_allocate_producer_ids_response, out);
    const struct image_node *broker = image_broker(cluster->image, in->broker_id);
    int64_t first = image_producer_id_next(cluster->image);
    if (!cluster->active) {
        out->error_code = KAFKA_NOT_CONTROLLER;
    } else if (broker == NULL || broker->epoch != in->broker_epoch) {
        out->error_code = KAFKA_STALE_BROKER_EPOCH;
    } else if (first > INT64_MAX - CLUSTER_PRODUCER_ID_BLOCK) {
        out->error_code = KAFKA_UNKNOWN_SERVER_ERROR;
    } else {
        struct producer_ids_record *record = step_add(step, &wire_producer_ids_record, 0);
        if (record == NULL) return STEP_E_MEMORY;
        record->broker_id = in->broker_id;
        record->broker_epoch = in->broker_epoch;
        record->next_producer_id = first + CLUSTER_PRODUCER_ID_BLOCK;
        out->producer_id_start = first;
        out->producer_id_len = CLUSTER_PRODUCER_ID_BLOCK;
    }
    return STEP_DONE;
}
