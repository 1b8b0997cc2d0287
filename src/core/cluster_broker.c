/* cluster_broker.c - brokers: registration, heartbeats, fencing, leaving.
 *
 *                     registration          heartbeat, caught up
 *     UNREGISTERED ----------------> FENCED ----------------------> UNFENCED
 *          ^                          ^  ^                           |    |
 *          | unregister (from any)    |  +---------------------------+    | want to shut down,
 *                                     |    want fence, session over       | leads partitions
 *                                     |                                   v
 *                                     +--------------------------- SHUTTING_DOWN
 *                                       leads none and others are past its offset (told to stop,
 *                                       which ends its session), session over, new incarnation
 *
 * FENCED is in the log (and so is "in controlled shutdown", which only a new incarnation clears);
 * SHUTTING_DOWN is soft: the offset that the others must have passed. The checks
 * and the records stand in Kafka's order. */
#include "core/change.h"

#include "gen/broker_heartbeat_request.h"
#include "gen/broker_heartbeat_response.h"
#include "gen/broker_registration_change_record.h"
#include "gen/broker_registration_request.h"
#include "gen/broker_registration_response.h"
#include "gen/register_broker_record.h"
#include "gen/unregister_broker_record.h"
#include "gen/unregister_broker_request.h"
#include "gen/unregister_broker_response.h"

#define BROKER_RESERVE                                                                             \
    4u /* Records that follow a sweep: state, directories, cordons, registration. */

/* ---- records --------------------------------------------------------------------------------- */

static struct broker_registration_change_record *broker_add_change(struct step *step,
                                                                   const struct image_node *broker,
                                                                   int16_t version)
{
    struct broker_registration_change_record *record =
        step_add(step, &wire_broker_registration_change_record, version);
    if (record == NULL) return NULL;
    record->broker_id = broker->id;
    record->broker_epoch = broker->epoch; /* Another one would be fatal to every reader. */
    return record;
}

static enum step_result broker_add_fenced(struct step *step,
                                          const struct image_node *broker,
                                          int8_t fenced)
{
    struct broker_registration_change_record *record = broker_add_change(step, broker, 0);
    if (record == NULL) return STEP_E_MEMORY;
    record->fenced = fenced;
    return STEP_DONE;
}

static enum step_result broker_add_shutdown(struct step *step, const struct image_node *broker)
{
    if (broker->in_controlled_shutdown) return STEP_DONE;
    struct broker_registration_change_record *record = broker_add_change(step, broker, 1);
    if (record == NULL) return STEP_E_MEMORY;
    record->in_controlled_shutdown = 1;
    return STEP_DONE;
}

/* The broker leaves ISR and leadership everywhere. */
static enum step_result broker_leave(struct cluster *cluster, struct step *step, int32_t id)
{
    struct change_sweep sweep = {
        .dead = id,
        .unclean = -1,
        .alive = -1,
        .losing = -1,
        .in_isr = true,
        .reserve = BROKER_RESERVE,
    };
    return change_sweep(cluster, step, &sweep);
}

/* The same, and it leaves the ELR: it may have lost data, or will never come back. */
static enum step_result broker_leave_elr(struct cluster *cluster, struct step *step, int32_t id)
{
    struct change_sweep sweep = {
        .dead = id,
        .unclean = id,
        .alive = -1,
        .losing = -1,
        .in_isr = true,
        .in_elr = true,
        .reserve = BROKER_RESERVE,
    };
    return change_sweep(cluster, step, &sweep);
}

/* ---- registration ---------------------------------------------------------------------------- */

static int16_t register_check_directories(const struct cluster *cluster,
                                          const struct broker_registration_request *in)
{
    if (image_metadata_version(cluster->image) < FEATURE_METADATA_DIRECTORIES) return KAFKA_NONE;
    if (in->log_dirs.count <= 0) return KAFKA_INVALID_REGISTRATION;
    for (int32_t i = 0; i < in->log_dirs.count; i++) {
        if (image_uuid_reserved(in->log_dirs.items[i])) return KAFKA_INVALID_REGISTRATION;
        for (int32_t j = 0; j < i; j++)
            if (uuid_equal(in->log_dirs.items[i], in->log_dirs.items[j]))
                return KAFKA_INVALID_REGISTRATION;
    }
    const struct image_object *object = NULL;
    while ((object = image_next(cluster->image, IMAGE_BROKER, object)) != NULL) {
        const struct image_node *other = (const struct image_node *)object;
        if (other->id == in->broker_id) continue;
        for (uint32_t i = 0; i < other->directory_count; i++)
            for (int32_t j = 0; j < in->log_dirs.count; j++)
                if (uuid_equal(other->directories[i], in->log_dirs.items[j]))
                    return KAFKA_INVALID_REGISTRATION;
    }
    return KAFKA_NONE;
}

static const struct broker_registration_request_feature *register_feature(
    const struct broker_registration_request *in,
    struct view name)
{
    for (int32_t i = 0; i < in->features.count; i++)
        if (view_equal(in->features.items[i].name, name)) return &in->features.items[i];
    return NULL;
}

/* Every finalized level lies in what the broker can run, and a feature it does not name counts as
 * [0,0]. */
static int16_t register_check_features(const struct cluster *cluster,
                                       const struct broker_registration_request *in)
{
    for (int32_t i = 0; i < in->features.count; i++) {
        const struct broker_registration_request_feature *feature = &in->features.items[i];
        int16_t level = view_is(feature->name, FEATURE_KRAFT)
                            ? cluster->kraft_version
                            : image_feature_level(cluster->image, feature->name);
        if (level < feature->min_supported_version || level > feature->max_supported_version)
            return KAFKA_UNSUPPORTED_VERSION;
    }
    if (register_feature(in, VIEW(FEATURE_METADATA)) == NULL) return KAFKA_INVALID_REGISTRATION;
    const struct image_object *object = NULL;
    while ((object = image_next(cluster->image, IMAGE_FEATURE, object)) != NULL)
        if (register_feature(in, ((const struct image_feature *)object)->name) == NULL)
            return KAFKA_UNSUPPORTED_VERSION;
    return KAFKA_NONE;
}

static int16_t register_check_listeners(const struct broker_registration_request *in)
{
    if (in->listeners.count > (int32_t)IMAGE_ENDPOINTS_MAX ||
        in->features.count > (int32_t)IMAGE_FEATURES_MAX)
        return KAFKA_INVALID_REGISTRATION;
    for (int32_t i = 0; i < in->listeners.count; i++)
        if (in->listeners.items[i].security_protocol < 0 ||
            in->listeners.items[i].security_protocol > 3)
            return KAFKA_UNKNOWN_SERVER_ERROR; /* Kafka's controller also resigns; we do not. */
    return KAFKA_NONE;
}

static int16_t register_check(const struct cluster *cluster,
                              const struct step *step,
                              const struct broker_registration_request *in)
{
    const struct image_node *known = image_broker(cluster->image, in->broker_id);
    if (!cluster->active) return KAFKA_NOT_CONTROLLER;
    if (!view_equal(in->cluster_id, cluster->options.cluster_id))
        return KAFKA_INCONSISTENT_CLUSTER_ID;
    if (known != NULL && !uuid_equal(known->incarnation, in->incarnation_id) &&
        cluster_session_valid(cluster, known, step->horizon_ms))
        return KAFKA_DUPLICATE_BROKER_REGISTRATION;
    if (in->is_migrating_zk_broker) return KAFKA_BROKER_ID_NOT_REGISTERED;
    int16_t error = register_check_directories(cluster, in);
    if (error == KAFKA_NONE) error = register_check_listeners(in);
    if (error == KAFKA_NONE) error = register_check_features(cluster, in);
    return error;
}

static bool register_copy_endpoints(struct step *step,
                                    const struct broker_registration_request *in,
                                    struct register_broker_record *record)
{
    size_t count = (size_t)MAX(in->listeners.count, 0);
    record->end_points.items = step_get(step, (count + 1) * sizeof(record->end_points.items[0]));
    if (record->end_points.items == NULL) return false;
    record->end_points.count = (int32_t)count;
    for (size_t i = 0; i < count; i++)
        record->end_points.items[i] = (struct register_broker_record_broker_endpoint){
            .name = in->listeners.items[i].name,
            .host = in->listeners.items[i].host,
            .port = in->listeners.items[i].port,
            .security_protocol = in->listeners.items[i].security_protocol,
        };
    return true;
}

static bool register_copy_features(struct step *step,
                                   const struct broker_registration_request *in,
                                   struct register_broker_record *record)
{
    size_t count = (size_t)MAX(in->features.count, 0);
    record->features.items = step_get(step, (count + 1) * sizeof(record->features.items[0]));
    if (record->features.items == NULL) return false;
    record->features.count = (int32_t)count;
    for (size_t i = 0; i < count; i++)
        record->features.items[i] = (struct register_broker_record_broker_feature){
            .name = in->features.items[i].name,
            .min_supported_version = in->features.items[i].min_supported_version,
            .max_supported_version = in->features.items[i].max_supported_version,
        };
    return true;
}

/* `kept` is the registration of the same incarnation, or NULL. Returns the broker's epoch, -1: no
 * memory. */
static int64_t register_add_record(struct cluster *cluster,
                                   struct step *step,
                                   const struct broker_registration_request *in,
                                   const struct image_node *kept)
{
    int16_t metadata_version = image_metadata_version(cluster->image);
    struct register_broker_record *record = step_add(
        step, &wire_register_broker_record, feature_register_broker_version(metadata_version));
    if (record == NULL) return -1;
    record->broker_id = in->broker_id;
    record->incarnation_id = in->incarnation_id;
    record->rack = in->rack;
    record->broker_epoch = kept != NULL ? kept->epoch : step->offset_next;
    record->fenced = kept != NULL ? kept->fenced : true;
    record->in_controlled_shutdown = kept != NULL && kept->in_controlled_shutdown;
    if (metadata_version >= FEATURE_METADATA_DIRECTORIES) {
        record->log_dirs.items = in->log_dirs.items;
        record->log_dirs.count = in->log_dirs.count;
    }
    if (!register_copy_endpoints(step, in, record) || !register_copy_features(step, in, record))
        return -1;
    return record->broker_epoch;
}

/* A new incarnation has left ISR and leadership before it is registered. */
static enum step_result register_clean_up(struct cluster *cluster,
                                          struct step *step,
                                          const struct broker_registration_request *in,
                                          const struct image_node *old)
{
    if (old == NULL) return STEP_DONE;
    bool clean = step->caller.version >= 3 && in->previous_broker_epoch == old->epoch;
    return clean || !cluster_elr_on(cluster) ? broker_leave(cluster, step, in->broker_id)
                                             : broker_leave_elr(cluster, step, in->broker_id);
}

enum step_result cluster_register_broker(struct cluster *cluster,
                                         struct step *step,
                                         const struct broker_registration_request *in,
                                         struct broker_registration_response *out)
{
    wire_defaults(&wire_broker_registration_response, out);
    out->error_code = register_check(cluster, step, in);
    if (out->error_code != KAFKA_NONE) return STEP_DONE;

    const struct image_node *known = image_broker(cluster->image, in->broker_id);
    bool same = known != NULL && uuid_equal(known->incarnation, in->incarnation_id);
    enum step_result result = same ? STEP_DONE : register_clean_up(cluster, step, in, known);
    if (result != STEP_DONE) return result;
    int64_t epoch = register_add_record(cluster, step, in, same ? known : NULL);
    struct cluster_soft *soft = cluster_soft_get(cluster, in->broker_id);
    if (epoch < 0 || soft == NULL || step->arena->failed) return STEP_E_MEMORY;

    soft->metadata_offset = -1;
    soft->shutdown_offset = -1; /* Also of the same incarnation: its next heartbeat tells anew. */
    if (!same) cluster_note(soft, CLUSTER_REASON_REGISTERED, step);
    out->broker_epoch = epoch;
    return STEP_DONE;
}

/* ---- heartbeats ------------------------------------------------------------------------------ */

enum beat_next {
    BEAT_STAY,
    BEAT_UNFENCE,
    BEAT_FENCE,
    BEAT_SHUT_DOWN,    /* Controlled shutdown begins. */
    BEAT_SHUT_DOWN_NOW /* It may stop. */
};

/* The lowest metadata offset of the brokers that are up and stay. The broker part of this process
 * beats seldom, and follows the committed log in place: it is never behind. O(brokers). */
static int64_t beat_lowest_active(const struct cluster *cluster)
{
    int64_t lowest = INT64_MAX;
    const struct image_object *object = NULL;
    while ((object = image_next(cluster->image, IMAGE_BROKER, object)) != NULL) {
        const struct image_node *broker = (const struct image_node *)object;
        if (cluster_liveness_of(cluster, broker) != CLUSTER_UNFENCED) continue;
        if (broker->id == cluster->options.own_broker_id) continue;
        const struct cluster_soft *soft = cluster_soft_find(cluster, broker->id);
        lowest = MIN(lowest, soft == NULL ? -1 : soft->metadata_offset);
    }
    return lowest;
}

/* The transition table. */
static enum beat_next beat_decide(const struct cluster *cluster,
                                  const struct image_node *broker,
                                  const struct broker_heartbeat_request *in)
{
    bool leads = image_load(cluster->image, broker->id).leader > 0;
    switch (cluster_liveness_of(cluster, broker)) {
    case CLUSTER_FENCED:
        if (in->want_shut_down) return BEAT_SHUT_DOWN_NOW;
        if (in->want_fence || in->current_metadata_offset < broker->register_offset)
            return BEAT_STAY;
        return BEAT_UNFENCE;
    case CLUSTER_SHUTTING_DOWN:
        if (leads ||
            cluster_soft_find(cluster, broker->id)->shutdown_offset > beat_lowest_active(cluster))
            return BEAT_STAY;
        return BEAT_SHUT_DOWN_NOW;
    default:
        if (in->want_fence) return in->want_shut_down ? BEAT_SHUT_DOWN_NOW : BEAT_FENCE;
        if (!in->want_shut_down) return BEAT_STAY;
        return leads ? BEAT_SHUT_DOWN : BEAT_SHUT_DOWN_NOW;
    }
}

/* What a heartbeat says about directories, against the registration. */
struct beat_directories {
    struct uuid *lost; /* Reported offline, and still registered. */
    struct uuid *kept;
    uint32_t lost_count;
    uint32_t kept_count;
};

static bool beat_has(const struct uuid *ids, int32_t count, struct uuid id)
{
    for (int32_t i = 0; i < count; i++)
        if (uuid_equal(ids[i], id)) return true;
    return false;
}

static enum step_result beat_find_lost(struct cluster *cluster,
                                       struct step *step,
                                       const struct broker_heartbeat_request *in,
                                       struct beat_directories *out)
{
    const struct image_node *broker = image_broker(cluster->image, in->broker_id);
    *out = (struct beat_directories){0};
    if (image_metadata_version(cluster->image) < FEATURE_METADATA_DIRECTORIES) return STEP_DONE;
    if (in->offline_log_dirs.count <= 0) return STEP_DONE;
    size_t size = (broker->directory_count + 1) * sizeof(struct uuid);
    out->lost = step_get(step, size);
    out->kept = step_get(step, size);
    if (out->lost == NULL || out->kept == NULL) return STEP_E_MEMORY;
    for (uint32_t i = 0; i < broker->directory_count; i++) {
        struct uuid id = broker->directories[i];
        if (beat_has(in->offline_log_dirs.items, in->offline_log_dirs.count, id))
            out->lost[out->lost_count++] = id;
        else
            out->kept[out->kept_count++] = id;
    }
    return STEP_DONE;
}

static enum step_result beat_unfence(struct cluster *cluster,
                                     struct step *step,
                                     const struct image_node *broker,
                                     const struct beat_directories *directories)
{
    if (broker_add_fenced(step, broker, -1) != STEP_DONE) return STEP_E_MEMORY;
    struct change_sweep sweep = {
        .dead = -1,
        .unclean = -1,
        .alive = broker->in_controlled_shutdown ? -1 : broker->id,
        .losing = broker->id,
        .lost = directories->lost,
        .lost_count = directories->lost_count,
        .leaderless = true,
        .reserve = BROKER_RESERVE,
    };
    enum step_result result = change_sweep(cluster, step, &sweep);
    if (result != STEP_MORE) return result;
    cluster->elect_due = true; /* The tick goes on with the rest. */
    return STEP_DONE;
}

static enum step_result beat_change(struct cluster *cluster,
                                    struct step *step,
                                    const struct image_node *broker,
                                    const struct beat_directories *directories,
                                    enum beat_next next)
{
    enum step_result result;
    switch (next) {
    case BEAT_STAY: return STEP_DONE;
    case BEAT_UNFENCE: return beat_unfence(cluster, step, broker, directories);
    case BEAT_SHUT_DOWN:
        result = broker_add_shutdown(step, broker);
        return result != STEP_DONE ? result : broker_leave(cluster, step, broker->id);
    default:
        result = broker_leave(cluster, step, broker->id);
        return result != STEP_DONE ? result : broker_add_fenced(step, broker, 1);
    }
}

/* The broker leaves the partitions that lay in the lost directories, and then the directories leave
 * its registration. */
static enum step_result beat_offline(struct cluster *cluster,
                                     struct step *step,
                                     const struct image_node *broker,
                                     const struct beat_directories *directories,
                                     enum beat_next next)
{
    if (directories->lost_count == 0) return STEP_DONE;
    if (next == BEAT_STAY || next == BEAT_UNFENCE) { /* Else it leaves all partitions anyway. */
        struct change_sweep sweep = {
            .dead = broker->id,
            .unclean = -1,
            .alive = -1,
            .losing = broker->id,
            .lost = directories->lost,
            .lost_count = directories->lost_count,
            .in_lost = true,
            .in_isr = true,
            .reserve = BROKER_RESERVE,
        };
        enum step_result result = change_sweep(cluster, step, &sweep);
        if (result != STEP_DONE) return result;
    }
    struct broker_registration_change_record *record = broker_add_change(step, broker, 2);
    if (record == NULL) return STEP_E_MEMORY;
    record->log_dirs.items = directories->kept;
    record->log_dirs.count = (int32_t)directories->kept_count;
    return STEP_DONE;
}

static bool beat_same_cordons(const struct image_node *broker,
                              const struct broker_heartbeat_request *in)
{
    if (!broker->cordoned_known) return false;
    for (uint32_t i = 0; i < broker->cordoned_count; i++)
        if (!beat_has(in->cordoned_log_dirs.items, in->cordoned_log_dirs.count,
                      broker->cordoned[i]))
            return false;
    for (int32_t i = 0; i < in->cordoned_log_dirs.count; i++)
        if (!beat_has(broker->cordoned, (int32_t)broker->cordoned_count,
                      in->cordoned_log_dirs.items[i]))
            return false;
    return true;
}

static enum step_result beat_cordons(struct cluster *cluster,
                                     struct step *step,
                                     const struct image_node *broker,
                                     const struct broker_heartbeat_request *in)
{
    if (image_metadata_version(cluster->image) < FEATURE_METADATA_CORDON) return STEP_DONE;
    if (in->cordoned_log_dirs.count < 0 || beat_same_cordons(broker, in)) return STEP_DONE;
    struct broker_registration_change_record *record = broker_add_change(step, broker, 3);
    if (record == NULL) return STEP_E_MEMORY;
    record->cordoned_log_dirs.items = in->cordoned_log_dirs.items;
    record->cordoned_log_dirs.count = in->cordoned_log_dirs.count;
    return STEP_DONE;
}

/* A broker that may stop has said all that there is to say: its next incarnation need not wait for
 * a session to run out (docs/decisions/0014). One that beats on has a session again. */
static void beat_end_session(struct cluster *cluster, const struct image_node *broker)
{
    cluster->ending = cluster_contact_find(cluster, broker->id, broker->epoch);
}

/* Soft state after the decision; the records are about to be appended. */
static void beat_note(struct cluster_soft *soft,
                      const struct step *step,
                      const struct broker_heartbeat_request *in,
                      enum beat_next next)
{
    soft->metadata_offset = in->current_metadata_offset;
    switch (next) {
    case BEAT_STAY: break;
    case BEAT_UNFENCE: cluster_note(soft, CLUSTER_REASON_CAUGHT_UP, step); break;
    case BEAT_SHUT_DOWN:
        soft->shutdown_offset = step->offset_next + step->record_count - 1;
        cluster_note(soft, CLUSTER_REASON_SHUTDOWN, step);
        break;
    default:
        soft->shutdown_offset = -1;
        cluster_note(
            soft, next == BEAT_FENCE ? CLUSTER_REASON_WANTED_FENCE : CLUSTER_REASON_SHUTDOWN, step);
        break;
    }
}

static void beat_remember(struct cluster_soft *soft,
                          const struct step *step,
                          const struct broker_heartbeat_request *in,
                          const struct broker_heartbeat_response *out)
{
    soft->beats[soft->beat_next++ % CLUSTER_BEATS_KEPT] = (struct cluster_beat){
        .at_ms = step->now_ms,
        .metadata_offset = in->current_metadata_offset,
        .want_fence = in->want_fence,
        .want_shut_down = in->want_shut_down,
        .caught_up = out->is_caught_up,
        .fenced = out->is_fenced,
        .should_shut_down = out->should_shut_down,
    };
}

enum step_result cluster_heartbeat(struct cluster *cluster,
                                   struct step *step,
                                   const struct broker_heartbeat_request *in,
                                   struct broker_heartbeat_response *out)
{
    wire_defaults(&wire_broker_heartbeat_response, out);
    const struct image_node *broker = image_broker(cluster->image, in->broker_id);
    if (!cluster->active) {
        out->error_code = KAFKA_NOT_CONTROLLER;
        return STEP_DONE;
    }
    if (broker == NULL || broker->epoch != in->broker_epoch) {
        out->error_code = KAFKA_STALE_BROKER_EPOCH;
        return STEP_DONE;
    }
    struct cluster_soft *soft = cluster_soft_get(cluster, in->broker_id);
    if (soft == NULL) return STEP_E_MEMORY;

    enum beat_next next = beat_decide(cluster, broker, in);
    struct beat_directories directories;
    enum step_result result = beat_find_lost(cluster, step, in, &directories);
    if (result == STEP_DONE) result = beat_change(cluster, step, broker, &directories, next);
    if (result == STEP_DONE) result = beat_offline(cluster, step, broker, &directories, next);
    if (result == STEP_DONE) result = beat_cordons(cluster, step, broker, in);
    if (result != STEP_DONE) return result;
    if (step->arena->failed) return STEP_E_MEMORY;

    bool fenced =
        next == BEAT_FENCE || next == BEAT_SHUT_DOWN_NOW || (next == BEAT_STAY && broker->fenced);
    out->is_caught_up = in->current_metadata_offset >= broker->register_offset;
    out->is_fenced = fenced;
    out->should_shut_down = next == BEAT_SHUT_DOWN_NOW;
    if (out->should_shut_down) beat_end_session(cluster, broker);
    beat_note(soft, step, in, next);
    beat_remember(soft, step, in, out);
    return STEP_DONE;
}

/* ---- fencing and leaving --------------------------------------------------------------------- */

enum step_result cluster_fence_expired(struct cluster *cluster, struct step *step, bool *found)
{
    *found = false;
    struct wheel_entry *entry = wheel_expired(&cluster->sessions, step->horizon_ms);
    if (entry == NULL) return STEP_DONE;
    struct cluster_contact *expired = container_of(entry, struct cluster_contact, session);
    wheel_put_back(&cluster->sessions, entry); /* Until it is done with. */
    *found = true;
    int32_t id = (int32_t)expired->key.id;
    const struct image_node *broker = image_broker(cluster->image, id);
    if (broker != NULL && broker->epoch == expired->key.epoch &&
        id != cluster->options.own_broker_id) {
        enum step_result result = broker_leave(cluster, step, id);
        if (result != STEP_DONE) return result;
        struct cluster_soft *soft = cluster_soft_get(cluster, id);
        if (soft == NULL || broker_add_fenced(step, broker, 1) != STEP_DONE) return STEP_E_MEMORY;
        soft->shutdown_offset = -1;
        if (!broker->fenced) cluster_note(soft, CLUSTER_REASON_SESSION, step);
        cluster->ending = expired;
    } else {
        cluster_contact_remove(cluster, expired);
    }
    return STEP_DONE;
}

enum step_result cluster_unregister_broker(struct cluster *cluster,
                                           struct step *step,
                                           const struct unregister_broker_request *in,
                                           struct unregister_broker_response *out)
{
    wire_defaults(&wire_unregister_broker_response, out);
    const struct image_node *broker = image_broker(cluster->image, in->broker_id);
    if (!cluster->active) {
        out->error_code = KAFKA_NOT_CONTROLLER;
        return STEP_DONE;
    }
    if (broker == NULL) {
        out->error_code = KAFKA_BROKER_ID_NOT_REGISTERED;
        out->error_message =
            JOIN(step->arena, VIEW("broker "), join_number(step->arena, in->broker_id),
                 VIEW(" is not registered"));
        return cluster_done(step);
    }
    enum step_result result = broker_leave_elr(cluster, step, in->broker_id);
    if (result != STEP_DONE) return result;
    struct unregister_broker_record *record = step_add(step, &wire_unregister_broker_record, 0);
    if (record == NULL) return STEP_E_MEMORY;
    record->broker_id = in->broker_id;
    record->broker_epoch = broker->epoch;
    cluster_soft_remove(cluster, in->broker_id);
    return STEP_DONE;
}
