/* cluster_alter.c - IncrementalAlterConfigs and AlterConfigs.
 *
 * Both come down to a list of overrides for one resource (name, new value or null); what is allowed
 * is judged over the result, then each becomes a ConfigRecord. All changes of one resource apply,
 * or none. */
#include "core/cluster_internal.h"

#include "core/group_config.h"
#include "core/names.h"
#include "gen/alter_configs_request.h"
#include "gen/alter_configs_response.h"
#include "gen/incremental_alter_configs_request.h"
#include "gen/incremental_alter_configs_response.h"

#define ALTER_CORDONED VIEW("cordoned.log.dirs")

/* ---- altering one resource ------------------------------------------------------------------- */

/* One resource's alteration, and its verdict. */
struct alter {
    struct cluster *cluster;
    struct step *step;
    int8_t type;
    struct view name;
    struct cluster_override *overrides;
    uint32_t count;
    bool validate_only;
    int16_t error;
    struct view message;
};

static bool alter_fail(struct alter *alter, int16_t error, struct view message)
{
    alter->error = error;
    alter->message = message;
    return false;
}

static bool alter_allowed(struct alter *alter)
{
    bool topic = alter->type == IMAGE_RESOURCE_TOPIC;
    bool group = alter->type == IMAGE_RESOURCE_GROUP;
    int8_t on = topic ? CLUSTER_ON_TOPIC : group ? CLUSTER_ON_GROUP : CLUSTER_ON_CLUSTER;
    struct view name = topic || group ? alter->name : CLUSTER_ON_CLUSTER_NAME;
    if (cluster_allows(alter->step, CLUSTER_OP_ALTER_CONFIGS, on, name)) return true;
    return alter_fail(alter,
                      topic   ? KAFKA_TOPIC_AUTHORIZATION_FAILED
                      : group ? KAFKA_GROUP_AUTHORIZATION_FAILED
                              : KAFKA_CLUSTER_AUTHORIZATION_FAILED,
                      VIEW_NULL);
}

static bool alter_known_broker(const struct cluster *cluster, int64_t id)
{
    if (id != (int32_t)id) return false;
    if (image_broker(cluster->image, (int32_t)id) != NULL) return true;
    if (image_controller(cluster->image, (int32_t)id) != NULL) return true;
    for (uint32_t i = 0; i < cluster->options.static_voter_count; i++)
        if (cluster->options.static_voters[i] == (int32_t)id) return true;
    return false;
}

/* What the broker that was asked says to a setting. */
static bool alter_judge(struct alter *alter, struct view name, struct view value)
{
    const struct step_caller *caller = &alter->step->caller;
    if (caller->judge == NULL) return true;
    struct view why = caller->judge(caller->judge_context, alter->name, name, value);
    return why.null || alter_fail(alter, KAFKA_INVALID_REQUEST, why);
}

static bool alter_judge_all(struct alter *alter)
{
    const struct step_caller *caller = &alter->step->caller;
    if (caller->judge_all == NULL) return true;
    struct view why =
        caller->judge_all(caller->judge_context, alter->name, alter->overrides, alter->count);
    return why.null || alter_fail(alter, KAFKA_INVALID_REQUEST, why);
}

/* Can there be such a resource, and of a broker: is there one? */
static bool alter_names_one(struct alter *alter)
{
    struct arena *arena = alter->step->arena;
    int64_t id;
    switch (alter->type) {
    case IMAGE_RESOURCE_TOPIC:
        if (alter->name.size == 0)
            return alter_fail(alter, KAFKA_INVALID_REQUEST, VIEW("a topic without a name"));
        return cluster_topic_name_fault(alter->name).null ||
               alter_fail(alter, KAFKA_INVALID_TOPIC_EXCEPTION,
                          VIEW("no topic can have this name"));
    case IMAGE_RESOURCE_BROKER:
        if (alter->name.size == 0) return true; /* The default of all brokers. */
        if (config_spaced(alter->name) || !config_parse_int64(alter->name, &id) || id < 0)
            return alter_fail(alter, KAFKA_INVALID_REQUEST, VIEW("a broker's name is its number"));
        if (!alter_judge(alter, VIEW_NULL, VIEW_NULL)) return false;
        if (!alter_known_broker(alter->cluster, id))
            return alter_fail(alter, KAFKA_BROKER_ID_NOT_REGISTERED,
                              JOIN(arena, VIEW("no broker "), alter->name, VIEW(" is registered")));
        return true;
    case IMAGE_RESOURCE_CLIENT_METRICS:
    case IMAGE_RESOURCE_GROUP:
        if (alter->name.size > 0) return true;
        return alter_fail(alter, KAFKA_INVALID_REQUEST, VIEW("a resource without a name"));
    default:
        return alter_fail(alter, KAFKA_INVALID_REQUEST,
                          VIEW("settings of this type cannot be set"));
    }
}

/* Brokers check this before they forward; it is checked again for who comes directly. */
static bool alter_check_broker_value(struct alter *alter, const struct cluster_override *override)
{
    struct view plain = cluster_config_plain(override->name);
    const struct config_def *def = config_find(CONFIG_BROKER, plain);
    if (def == NULL) return true; /* Of a plugin: stored, and told as sensitive. */
    struct arena *arena = alter->step->arena;
    if (def->dynamic == CONFIG_READ_ONLY)
        return alter_fail(alter, KAFKA_INVALID_REQUEST,
                          JOIN(arena, override->name, VIEW(" cannot be changed at run time")));
    if (def->dynamic == CONFIG_PER_BROKER && alter->name.size == 0)
        return alter_fail(alter, KAFKA_INVALID_REQUEST,
                          JOIN(arena, override->name, VIEW(" can only be set on single brokers")));
    if (override->value.null) return true;
    struct view fault = cluster_config_fault(alter->step, def, override->value);
    if (!fault.null) return alter_fail(alter, KAFKA_INVALID_REQUEST, fault);
    return alter_judge(alter, override->name, override->value);
}

/* A change of cordoned directories that no broker has looked at may only let some go. */
static bool alter_check_cordons(struct alter *alter, const struct cluster_override *override)
{
    if (image_metadata_version(alter->cluster->image) < FEATURE_METADATA_CORDON)
        return alter_fail(alter, KAFKA_INVALID_CONFIG,
                          VIEW("cordoned.log.dirs needs metadata.version 4.3-IV0"));
    if (alter->step->caller.forwarded) return true;
    struct view before = image_config(
        image_configs(alter->cluster->image, IMAGE_RESOURCE_BROKER, alter->name), ALTER_CORDONED);
    struct view rest = config_list(override->value);
    struct view item;
    while (config_list_next(&rest, &item))
        if (!config_list_has(before, item))
            return alter_fail(alter, KAFKA_INVALID_CONFIG,
                              VIEW("sent to a controller, cordoned.log.dirs can only get shorter"));
    return true;
}

static bool alter_check_broker(struct alter *alter)
{
    for (uint32_t i = 0; i < alter->count; i++)
        if (!alter_check_broker_value(alter, &alter->overrides[i])) return false;
    for (uint32_t i = 0; i < alter->count; i++) {
        const struct cluster_override *override = &alter->overrides[i];
        if (view_equal(override->name, CLUSTER_MIN_INSYNC) && cluster_elr_on(alter->cluster)) {
            if (alter->name.size > 0)
                return alter_fail(alter, KAFKA_INVALID_CONFIG,
                                  VIEW("min.insync.replicas cannot differ between brokers while "
                                       "eligible leader replicas are on"));
            if (override->value.null)
                return alter_fail(alter, KAFKA_INVALID_CONFIG,
                                  VIEW("min.insync.replicas of the cluster cannot be removed while "
                                       "eligible leader replicas are on"));
        }
        if (view_equal(override->name, ALTER_CORDONED) && !alter_check_cordons(alter, override))
            return false;
    }
    return alter_judge_all(alter);
}

/* Items of `match`: one attribute of clients, "=", and a pattern. */
static bool alter_check_match(struct alter *alter, struct view value)
{
    static const char *const attributes[] = {"client_instance_id",    "client_id",
                                             "client_software_name",  "client_software_version",
                                             "client_source_address", "client_source_port"};
    struct view rest = config_list(value), item;
    while (config_list_next(&rest, &item)) {
        uint32_t at = 0, signs = 0;
        for (uint32_t i = 0; i < item.size; i++) {
            if (item.data[i] != '=') continue;
            if (signs++ == 0) at = i;
        }
        bool known = false;
        for (size_t i = 0; i < ARRAY_SIZE(attributes); i++)
            known = known || view_is(view_of(item.data, at), attributes[i]);
        if (signs == 1 && known) {
            struct view pattern = view_of(item.data + at + 1, item.size - at - 1);
            const struct step_caller *caller = &alter->step->caller;
            if (caller->judge == NULL) continue;
            struct view why =
                caller->judge(caller->judge_context, alter->name, VIEW("match"), pattern);
            if (why.null) continue;
            return alter_fail(alter, KAFKA_INVALID_CONFIG,
                              JOIN(alter->step->arena, item, VIEW(": "), why));
        }
        return alter_fail(alter, KAFKA_INVALID_CONFIG,
                          JOIN(alter->step->arena, VIEW("\""), item,
                               VIEW("\" is not an attribute of clients, = and a pattern")));
    }
    return true;
}

/* Subscriptions to metrics of clients: Kafka calls wrong names and numbers wrong requests. */
static bool alter_check_scope(struct alter *alter, enum config_scope scope)
{
    int16_t error = scope == CONFIG_CLIENT_METRICS ? KAFKA_INVALID_REQUEST : KAFKA_INVALID_CONFIG;
    for (uint32_t i = 0; i < alter->count; i++) {
        const struct cluster_override *override = &alter->overrides[i];
        if (override->value.null) continue;
        const struct config_def *def = config_find(scope, override->name);
        if (def == NULL)
            return alter_fail(
                alter, error,
                JOIN(alter->step->arena, VIEW("unknown setting \""), override->name, VIEW("\"")));
        struct view fault = cluster_config_fault(alter->step, def, override->value);
        if (!fault.null) return alter_fail(alter, error, fault);
        if (scope == CONFIG_CLIENT_METRICS && view_is(override->name, "match") &&
            !alter_check_match(alter, override->value))
            return false;
    }
    return true;
}

static bool alter_check_group(struct alter *alter)
{
    struct cluster_config_context context = cluster_configs(alter->cluster);
    if (!alter_check_scope(alter, CONFIG_GROUP)) return false;
    struct view fault = group_config_fault(&context, alter->step->arena, alter->name,
                                           alter->overrides, alter->count);
    return fault.null || alter_fail(alter, KAFKA_INVALID_CONFIG, fault);
}

static bool alter_check(struct alter *alter)
{
    struct view fault;
    switch (alter->type) {
    case IMAGE_RESOURCE_TOPIC:
        fault = cluster_topic_configs_fault(
            alter->cluster, alter->step,
            image_configs(alter->cluster->image, IMAGE_RESOURCE_TOPIC, alter->name),
            alter->overrides, alter->count);
        return fault.null || alter_fail(alter, KAFKA_INVALID_CONFIG, fault);
    case IMAGE_RESOURCE_BROKER: return alter_check_broker(alter);
    case IMAGE_RESOURCE_GROUP: return alter_check_group(alter);
    default: return alter_check_scope(alter, CONFIG_CLIENT_METRICS);
    }
}

/* Is there such a topic? Kafka looks at what is asked of it first. */
static bool alter_exists(struct alter *alter)
{
    return alter->type != IMAGE_RESOURCE_TOPIC ||
           image_topic(alter->cluster->image, alter->name) != NULL ||
           alter_fail(alter, KAFKA_UNKNOWN_TOPIC_OR_PARTITION, VIEW("there is no such topic"));
}

/* A broker's settings are written even if they stay the same: it reads its files again then. */
static bool alter_differs(const struct alter *alter, const struct cluster_override *override)
{
    if (alter->type == IMAGE_RESOURCE_BROKER) return true;
    struct view before = image_config(
        image_configs(alter->cluster->image, alter->type, alter->name), override->name);
    return !view_equal(before, override->value);
}

/* Judge the resource, and add its records. What the records did not use of `error` is NONE. */
static enum step_result alter_resource(struct alter *alter)
{
    if (!alter_allowed(alter) || !alter_names_one(alter) || !alter_check(alter) ||
        !alter_exists(alter))
        return cluster_done(alter->step);
    if (alter->validate_only) return cluster_done(alter->step);
    if (step_room(alter->step) < 2 * alter->count + 1) {
        (void)alter_fail(alter, KAFKA_POLICY_VIOLATION, VIEW("too many changes in one request"));
        return STEP_DONE;
    }
    bool clear = false;
    for (uint32_t i = 0; i < alter->count; i++) {
        if (!alter_differs(alter, &alter->overrides[i])) continue;
        if (!cluster_add_config(alter->step, alter->type, alter->name, &alter->overrides[i]))
            return STEP_E_MEMORY;
        clear = clear || view_equal(alter->overrides[i].name, CLUSTER_MIN_INSYNC);
    }
    bool topic = alter->type == IMAGE_RESOURCE_TOPIC;
    if (clear && (topic || alter->type == IMAGE_RESOURCE_BROKER) &&
        cluster_elr_on(alter->cluster) &&
        !cluster_add_clear_elr(alter->step, topic ? alter->name : VIEW_EMPTY))
        return STEP_E_MEMORY;
    return cluster_done(alter->step);
}

/* ---- the resources of a request -------------------------------------------------------------- */

/* The resources of a request by type and name, to find those that are named twice. */
struct alter_names {
    struct step *step;
    struct names names;
    struct view *keys;
};

static bool alter_names_init(struct alter_names *all, struct step *step, size_t count)
{
    all->step = step;
    all->keys = step_get(step, (count + 1) * sizeof(*all->keys));
    return all->keys != NULL &&
           names_init(&all->names, step->arena, (uint32_t)count, step_random(step));
}

static bool alter_names_add(struct alter_names *all, size_t at, int8_t type, struct view name)
{
    all->keys[at] = JOIN(all->step->arena, view_of(&type, sizeof(type)), name);
    if (all->keys[at].null) return false;
    names_see(&all->names, all->keys[at]);
    return true;
}

/* Read what one resource asks for (`resource` is of the type that `read` takes), and do it. */
static enum step_result alter_one(struct alter *alter,
                                  bool once,
                                  bool (*read)(struct alter *alter, const void *resource),
                                  const void *resource)
{
    if (!alter->cluster->active)
        (void)alter_fail(alter, KAFKA_NOT_CONTROLLER, VIEW_NULL);
    else if (!once)
        (void)alter_fail(alter, KAFKA_INVALID_REQUEST, VIEW("a resource is named twice"));
    else if (read(alter, resource))
        return alter_resource(alter);
    else if (alter->error == KAFKA_NONE) /* Not refused: it could not be read. */
        return STEP_E_MEMORY;
    return STEP_DONE;
}

/* The handler of either request, whose types differ in their names alone: each resource once, read
 * by `read`, with an answer in the same place. */
#define ALTER_HANDLER(function, api, read)                                                         \
    enum step_result function(struct cluster *cluster, struct step *step,                          \
                              const struct api##_request *in, struct api##_response *out)          \
    {                                                                                              \
        wire_defaults(&wire_##api##_response, out);                                                \
        size_t count = (size_t)MAX(in->resources.count, 0);                                        \
        out->responses.items = step_get(step, (count + 1) * sizeof(out->responses.items[0]));      \
        struct alter_names names;                                                                  \
        if (out->responses.items == NULL || !alter_names_init(&names, step, count))                \
            return STEP_E_MEMORY;                                                                  \
        out->responses.count = (int32_t)count;                                                     \
        for (size_t i = 0; i < count; i++)                                                         \
            if (!alter_names_add(&names, i, in->resources.items[i].resource_type,                  \
                                 in->resources.items[i].resource_name))                            \
                return STEP_E_MEMORY;                                                              \
        for (size_t i = 0; i < count; i++) {                                                       \
            struct alter alter = {                                                                 \
                .cluster = cluster,                                                                \
                .step = step,                                                                      \
                .type = in->resources.items[i].resource_type,                                      \
                .name = in->resources.items[i].resource_name,                                      \
                .validate_only = in->validate_only,                                                \
                .message = VIEW_NULL,                                                              \
            };                                                                                     \
            bool once = names_seen(&names.names, names.keys[i]) == 1;                              \
            enum step_result result = alter_one(&alter, once, read, &in->resources.items[i]);      \
            if (result != STEP_DONE) return result;                                                \
            out->responses.items[i] = (struct api##_response_alter_configs_resource_response){     \
                .error_code = alter.error,                                                         \
                .error_message = alter.message,                                                    \
                .resource_type = alter.type,                                                       \
                .resource_name = alter.name,                                                       \
            };                                                                                     \
        }                                                                                          \
        return cluster_done(step);                                                                 \
    }

/* ---- IncrementalAlterConfigs ----------------------------------------------------------------- */

enum alter_op { ALTER_SET, ALTER_DELETE, ALTER_APPEND, ALTER_SUBTRACT };

static enum config_scope alter_scope(int8_t type)
{
    switch (type) {
    case IMAGE_RESOURCE_TOPIC: return CONFIG_TOPIC;
    case IMAGE_RESOURCE_GROUP: return CONFIG_GROUP;
    case IMAGE_RESOURCE_CLIENT_METRICS: return CONFIG_CLIENT_METRICS;
    default: return CONFIG_BROKER;
    }
}

/* `list` with the items of `more` that it does not have, or without those it has. */
static struct view alter_list(struct arena *arena,
                              struct view list,
                              struct view more,
                              enum alter_op op)
{
    struct view result = VIEW_EMPTY;
    struct view rest = config_list(list);
    struct view item;
    while (config_list_next(&rest, &item)) {
        if (op == ALTER_SUBTRACT && config_list_has(more, item)) continue;
        result = JOIN(arena, result, result.size > 0 ? VIEW(",") : VIEW_EMPTY, item);
    }
    rest = op == ALTER_APPEND ? config_list(more) : VIEW_NULL;
    while (config_list_next(&rest, &item))
        if (!config_list_has(result, item))
            result = JOIN(arena, result, result.size > 0 ? VIEW(",") : VIEW_EMPTY, item);
    return result;
}

static bool alter_merge_list(struct alter *alter,
                             const struct incremental_alter_configs_request_alterable_config *in,
                             struct cluster_override *out)
{
    const struct config_def *def = config_find(alter_scope(alter->type), in->name);
    /* Kafka's controller knows the types of topics' and brokers' settings alone. */
    bool typed = alter->type == IMAGE_RESOURCE_TOPIC || alter->type == IMAGE_RESOURCE_BROKER;
    if (!typed || def == NULL || def->type != CONFIG_LIST)
        return alter_fail(alter, KAFKA_INVALID_CONFIG,
                          JOIN(alter->step->arena, VIEW("\""), in->name,
                               VIEW("\" is not a list: nothing can be added or taken away")));
    if (in->config_operation == ALTER_APPEND && in->value.size == 0)
        return alter_fail(alter, KAFKA_INVALID_CONFIG,
                          JOIN(alter->step->arena, in->name, VIEW(": an empty item")));
    struct view base =
        image_config(image_configs(alter->cluster->image, alter->type, alter->name), in->name);
    if (base.null) base = view_of_string(def->default_text);
    out->value =
        alter_list(alter->step->arena, base, in->value, (enum alter_op)in->config_operation);
    return true;
}

static bool alter_read_op(struct alter *alter,
                          const struct incremental_alter_configs_request_alterable_config *in,
                          struct cluster_override *out)
{
    out->name = in->name;
    out->value = in->value;
    if (in->config_operation < ALTER_SET || in->config_operation > ALTER_SUBTRACT)
        return alter_fail(alter, KAFKA_INVALID_REQUEST, VIEW("an operation that is not known"));
    if (in->config_operation == ALTER_DELETE) {
        out->value = VIEW_NULL;
        return true;
    }
    if (in->value.null)
        return alter_fail(alter, KAFKA_INVALID_REQUEST,
                          JOIN(alter->step->arena, VIEW("no value for "), in->name));
    return in->config_operation == ALTER_SET || alter_merge_list(alter, in, out);
}

static bool alter_read_ops(struct alter *alter, const void *resource)
{
    const struct incremental_alter_configs_request_alter_configs_resource *in = resource;
    alter->count = (uint32_t)MAX(in->configs.count, 0);
    alter->overrides = step_get(alter->step, (alter->count + 1) * sizeof(alter->overrides[0]));
    struct names names;
    if (alter->overrides == NULL ||
        !names_init(&names, alter->step->arena, alter->count, step_random(alter->step)))
        return false;
    for (uint32_t i = 0; i < alter->count; i++) {
        if (names_see(&names, in->configs.items[i].name) > 1)
            return alter_fail(alter, KAFKA_INVALID_REQUEST, VIEW("a setting is named twice"));
        if (!alter_read_op(alter, &in->configs.items[i], &alter->overrides[i])) return false;
    }
    return true;
}

ALTER_HANDLER(cluster_incremental_alter_configs, incremental_alter_configs, alter_read_ops)

/* ---- AlterConfigs ---------------------------------------------------------------------------- */

/* The whole new set: what is there and not named goes. */
static bool alter_read_set(struct alter *alter, const void *resource)
{
    const struct alter_configs_request_alter_configs_resource *in = resource;
    const struct image_configs *before =
        image_configs(alter->cluster->image, alter->type, alter->name);
    uint32_t named = (uint32_t)MAX(in->configs.count, 0);
    size_t room = named + (before == NULL ? 0 : before->count) + 1;
    alter->overrides = step_get(alter->step, room * sizeof(alter->overrides[0]));
    struct names names;
    if (alter->overrides == NULL ||
        !names_init(&names, alter->step->arena, named, step_random(alter->step)))
        return false;
    for (uint32_t i = 0; i < named; i++) {
        const struct alter_configs_request_alterable_config *config = &in->configs.items[i];
        if (names_see(&names, config->name) > 1)
            return alter_fail(alter, KAFKA_INVALID_REQUEST, VIEW("a setting is named twice"));
        if (config->value.null)
            return alter_fail(alter, KAFKA_INVALID_REQUEST,
                              JOIN(alter->step->arena, VIEW("no value for "), config->name));
        alter->overrides[alter->count++] = (struct cluster_override){config->name, config->value};
    }
    for (uint32_t i = 0; before != NULL && i < before->count; i++) {
        if (names_seen(&names, before->items[i].name) == 0)
            alter->overrides[alter->count++] =
                (struct cluster_override){before->items[i].name, VIEW_NULL};
    }
    return true;
}

ALTER_HANDLER(cluster_alter_configs, alter_configs, alter_read_set)
