/* cluster_features.c - finalized features, and the controllers that must be able to run them. The
 * checks stand in Kafka's order. */
#include "core/cluster_internal.h"

#include "gen/controller_registration_request.h"
#include "gen/controller_registration_response.h"
#include "gen/feature_level_record.h"
#include "gen/no_op_record.h"
#include "gen/register_controller_record.h"
#include "gen/unregister_controller_record.h"
#include "gen/unregister_controller_request.h"
#include "gen/unregister_controller_response.h"
#include "gen/update_features_request.h"
#include "gen/update_features_response.h"

enum update_type { UPDATE_UPGRADE = 1, UPDATE_SAFE_DOWNGRADE = 2, UPDATE_UNSAFE_DOWNGRADE = 3 };

/* The request as a whole, and the first reason to refuse it. */
struct update {
    struct cluster *cluster;
    struct step *step;
    const struct update_features_request *in;
};

static int8_t update_type(const struct update *update,
                          const struct update_features_request_feature_update_key *in)
{
    if (update->step->caller.version > 0) return in->upgrade_type;
    return in->allow_downgrade ? UPDATE_SAFE_DOWNGRADE : UPDATE_UPGRADE;
}

static int16_t update_current(const struct cluster *cluster, struct view name)
{
    return view_is(name, FEATURE_KRAFT) ? cluster->kraft_version
                                        : image_feature_level(cluster->image, name);
}

static bool update_node_can(const struct image_node *node, struct view name, int16_t level)
{
    for (uint32_t i = 0; i < node->feature_count; i++)
        if (view_equal(node->features[i].name, name))
            return level >= node->features[i].min && level <= node->features[i].max;
    return level == 0;
}

/* Can every registered node of this kind run the level? */
static struct view update_nodes_fault(const struct update *update,
                                      enum image_kind kind,
                                      struct view name,
                                      int16_t level)
{
    struct arena *arena = update->step->arena;
    const struct image_object *object = NULL;
    while ((object = image_next(update->cluster->image, kind, object)) != NULL) {
        const struct image_node *node = (const struct image_node *)object;
        if (update_node_can(node, name, level)) continue;
        return JOIN(arena, kind == IMAGE_BROKER ? VIEW("broker ") : VIEW("controller "),
                    join_number(arena, node->id), VIEW(" cannot run "), name, VIEW(" at level "),
                    join_number(arena, level));
    }
    return VIEW_NULL;
}

static struct view update_controllers_fault(const struct update *update)
{
    const struct cluster_options *options = &update->cluster->options;
    struct arena *arena = update->step->arena;
    for (uint32_t i = 0; i < options->static_voter_count; i++)
        if (image_controller(update->cluster->image, options->static_voters[i]) == NULL)
            return JOIN(arena, VIEW("controller "), join_number(arena, options->static_voters[i]),
                        VIEW(" has not registered"));
    return VIEW_NULL;
}

static struct view update_support_fault(const struct update *update,
                                        struct view name,
                                        int16_t level)
{
    const struct feature *feature = feature_find(name);
    if (feature == NULL || level < feature->min || level > feature->max)
        return JOIN(update->step->arena, VIEW("this controller cannot run that level of "), name);
    struct view fault = update_nodes_fault(update, IMAGE_BROKER, name, level);
    if (!fault.null ||
        image_metadata_version(update->cluster->image) < FEATURE_METADATA_CONTROLLERS)
        return fault;
    fault = update_controllers_fault(update);
    return fault.null ? update_nodes_fault(update, IMAGE_CONTROLLER, name, level) : fault;
}

/* The level that a feature has after the whole request. */
static int16_t update_result(const struct update *update, struct view name)
{
    int16_t level = update_current(update->cluster, name);
    for (int32_t i = 0; i < update->in->feature_updates.count; i++)
        if (view_equal(update->in->feature_updates.items[i].feature, name))
            level = update->in->feature_updates.items[i].max_version_level;
    return level;
}

static struct view update_depends_fault(const struct update *update,
                                        struct view name,
                                        int16_t level)
{
    const struct feature *feature = feature_find(name);
    if (feature == NULL) return VIEW("there is no such feature");
    int16_t needs = feature_needs(feature, level);
    if (update_result(update, VIEW(FEATURE_METADATA)) >= needs) return VIEW_NULL;
    return JOIN(update->step->arena, name, VIEW(" needs metadata.version "),
                join_number(update->step->arena, needs));
}

/* Why one update cannot be, or the null view. */
static struct view update_fault(const struct update *update,
                                const struct update_features_request_feature_update_key *in)
{
    int8_t type = update_type(update, in);
    int16_t level = in->max_version_level;
    int16_t current = update_current(update->cluster, in->feature);
    if (type < UPDATE_UPGRADE || type > UPDATE_UNSAFE_DOWNGRADE)
        return VIEW("an upgrade type that is not known");
    if (level < 0) return VIEW("a level must not be negative");
    struct view fault = update_support_fault(update, in->feature, level);
    if (!fault.null) return fault;
    if (level < current && type == UPDATE_UPGRADE)
        return VIEW(
            "the level is lower than the one that holds, and a downgrade was not asked for");
    if (level > current && type != UPDATE_UPGRADE)
        return VIEW("the level is higher than the one that holds, and a downgrade was asked for");
    if (view_is(in->feature, FEATURE_KRAFT))
        return level == current ? VIEW_NULL : VIEW("kraft.version cannot be changed here");
    if (view_is(in->feature, FEATURE_METADATA))
        return level < current && feature_metadata_changes(level, current)
                   ? VIEW(
                         "the metadata has changed its form since that level: there is no way back")
                   : VIEW_NULL;
    return update_depends_fault(update, in->feature, level);
}

/* Where ELR comes on, min.insync.replicas must hold for the cluster and nowhere else. */
static bool update_add_safety(const struct update *update)
{
    struct cluster *cluster = update->cluster;
    struct step *step = update->step;
    struct view name = VIEW("min.insync.replicas");
    if (cluster_elr_on(cluster) || update_result(update, VIEW(FEATURE_ELR)) <= 0) return true;
    if (image_config(image_configs(cluster->image, IMAGE_RESOURCE_BROKER, VIEW_EMPTY), name).null) {
        struct cluster_override set = {
            name, join_number(step->arena, cluster_static_number(cluster, name))};
        if (!cluster_add_config(step, IMAGE_RESOURCE_BROKER, VIEW_EMPTY, &set)) return false;
    }
    const struct image_object *object = NULL;
    while ((object = image_next(cluster->image, IMAGE_CONFIGS, object)) != NULL) {
        const struct image_configs *configs = (const struct image_configs *)object;
        if (configs->type != IMAGE_RESOURCE_BROKER || configs->resource.size == 0) continue;
        if (image_config(configs, name).null) continue;
        struct cluster_override gone = {name, VIEW_NULL};
        if (step_room(step) < 64) return false;
        if (!cluster_add_config(step, IMAGE_RESOURCE_BROKER, configs->resource, &gone))
            return false;
    }
    return true;
}

static bool update_add_records(const struct update *update)
{
    if (!update_add_safety(update)) return false;
    for (int32_t i = 0; i < update->in->feature_updates.count; i++) {
        const struct update_features_request_feature_update_key *in =
            &update->in->feature_updates.items[i];
        if (view_is(in->feature, FEATURE_KRAFT)) { /* Something to wait for. */
            if (step_add(update->step, &wire_no_op_record, 0) == NULL) return false;
            continue;
        }
        struct feature_level_record *record = step_add(update->step, &wire_feature_level_record, 0);
        if (record == NULL) return false;
        record->name = in->feature;
        record->feature_level = in->max_version_level;
    }
    return true;
}

static bool update_answer(const struct update *update, struct update_features_response *out)
{
    if (update->step->caller.version > 1) return true;
    int32_t count = MAX(update->in->feature_updates.count, 0);
    out->results.items =
        step_get(update->step, (size_t)(count + 1) * sizeof(out->results.items[0]));
    if (out->results.items == NULL) return false;
    out->results.count = count;
    for (int32_t i = 0; i < count; i++) {
        out->results.items[i].feature = update->in->feature_updates.items[i].feature;
        out->results.items[i].error_message = VIEW("NONE"); /* As Kafka says it. */
    }
    return true;
}

enum step_result cluster_update_features(struct cluster *cluster,
                                         struct step *step,
                                         const struct update_features_request *in,
                                         struct update_features_response *out)
{
    struct update update = {cluster, step, in};
    wire_defaults(&wire_update_features_response, out);
    out->error_message = VIEW_NULL;
    if (!cluster->active)
        out->error_code = KAFKA_NOT_CONTROLLER;
    else if (!cluster_allows(step, CLUSTER_OP_ALTER, CLUSTER_ON_CLUSTER, CLUSTER_ON_CLUSTER_NAME))
        out->error_code = KAFKA_CLUSTER_AUTHORIZATION_FAILED;
    else if (in->feature_updates.count > (int32_t)IMAGE_FEATURES_MAX)
        out->error_code = KAFKA_INVALID_REQUEST;
    if (out->error_code != KAFKA_NONE) return STEP_DONE;

    for (int32_t i = 0; i < in->feature_updates.count; i++) {
        const struct update_features_request_feature_update_key *item =
            &in->feature_updates.items[i];
        struct view fault = update_fault(&update, item);
        if (fault.null) continue;
        out->error_code = KAFKA_INVALID_UPDATE_VERSION;
        out->error_message = JOIN(step->arena, VIEW("nothing was updated, because "), item->feature,
                                  VIEW(" cannot be: "), fault);
        return cluster_done(step);
    }
    step->atomic = true;
    if (!in->validate_only && !update_add_records(&update)) return STEP_E_MEMORY;
    if (!update_answer(&update, out)) return STEP_E_MEMORY;
    return cluster_done(step);
}

/* ---- controllers ----------------------------------------------------------------------------- */

static bool controller_add_record(struct step *step,
                                  const struct controller_registration_request *in)
{
    struct register_controller_record *record = step_add(step, &wire_register_controller_record, 0);
    if (record == NULL) return false;
    size_t endpoints = (size_t)MAX(in->listeners.count, 0);
    size_t features = (size_t)MAX(in->features.count, 0);
    record->controller_id = in->controller_id;
    record->incarnation_id = in->incarnation_id;
    record->zk_migration_ready = in->zk_migration_ready;
    record->end_points.items =
        step_get(step, (endpoints + 1) * sizeof(record->end_points.items[0]));
    record->features.items = step_get(step, (features + 1) * sizeof(record->features.items[0]));
    if (record->end_points.items == NULL || record->features.items == NULL) return false;
    record->end_points.count = (int32_t)endpoints;
    record->features.count = (int32_t)features;
    for (size_t i = 0; i < endpoints; i++)
        record->end_points.items[i] = (struct register_controller_record_controller_endpoint){
            .name = in->listeners.items[i].name,
            .host = in->listeners.items[i].host,
            .port = in->listeners.items[i].port,
            .security_protocol = in->listeners.items[i].security_protocol,
        };
    for (size_t i = 0; i < features; i++)
        record->features.items[i] = (struct register_controller_record_controller_feature){
            .name = in->features.items[i].name,
            .min_supported_version = in->features.items[i].min_supported_version,
            .max_supported_version = in->features.items[i].max_supported_version,
        };
    return true;
}

enum step_result cluster_register_controller(struct cluster *cluster,
                                             struct step *step,
                                             const struct controller_registration_request *in,
                                             struct controller_registration_response *out)
{
    wire_defaults(&wire_controller_registration_response, out);
    out->error_message = VIEW_NULL;
    if (!cluster->active) {
        out->error_code = KAFKA_NOT_CONTROLLER;
    } else if (image_metadata_version(cluster->image) < FEATURE_METADATA_CONTROLLERS) {
        out->error_code = KAFKA_UNSUPPORTED_VERSION;
        out->error_message = VIEW("controllers register from metadata.version 3.7-IV0 on");
    } else if (in->listeners.count > (int32_t)IMAGE_ENDPOINTS_MAX ||
               in->features.count > (int32_t)IMAGE_FEATURES_MAX) {
        out->error_code = KAFKA_INVALID_REQUEST;
    } else if (!controller_add_record(step, in)) {
        return STEP_E_MEMORY;
    }
    return STEP_DONE;
}

enum step_result cluster_unregister_controller(struct cluster *cluster,
                                               struct step *step,
                                               const struct unregister_controller_request *in,
                                               struct unregister_controller_response *out)
{
    wire_defaults(&wire_unregister_controller_response, out);
    out->error_message = VIEW_NULL;
    if (!cluster->active) {
        out->error_code = KAFKA_NOT_CONTROLLER;
    } else if (in->controller_id == cluster->options.node_id) {
        out->error_code = KAFKA_INVALID_REQUEST;
        out->error_message = VIEW("this is the active controller");
    } else if (image_metadata_version(cluster->image) < FEATURE_METADATA_UNREGISTER_CONTROLLER) {
        out->error_code = KAFKA_UNSUPPORTED_VERSION;
        out->error_message = VIEW("this needs metadata.version 4.4-IV2");
    } else if (image_controller(cluster->image, in->controller_id) == NULL) {
        out->error_code = KAFKA_CONTROLLER_ID_NOT_REGISTERED;
        out->error_message =
            JOIN(step->arena, VIEW("controller "), join_number(step->arena, in->controller_id),
                 VIEW(" is not registered"));
    } else {
        struct unregister_controller_record *record =
            step_add(step, &wire_unregister_controller_record, 0);
        if (record == NULL) return STEP_E_MEMORY;
        record->controller_id = in->controller_id;
    }
    return cluster_done(step);
}
