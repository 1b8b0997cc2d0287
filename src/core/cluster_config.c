/* cluster_config.c - settings in the metadata: effective values, and the two ways to alter them.
 *
 * Both ways come down to a list of overrides for one resource (name, new value or null); what is
 * allowed is judged over the result, then each becomes a ConfigRecord. All changes of one resource
 * apply, or none. */
#include "core/cluster_internal.h"

#include "core/group_config.h"
#include "core/names.h"
#include "gen/alter_configs_request.h"
#include "gen/alter_configs_response.h"
#include "gen/clear_elr_record.h"
#include "gen/config_record.h"
#include "gen/incremental_alter_configs_request.h"
#include "gen/incremental_alter_configs_response.h"

#define CONFIG_MIN_INSYNC VIEW("min.insync.replicas")
#define CONFIG_CORDONED   VIEW("cordoned.log.dirs")

/* ---- effective values ------------------------------------------------------------------------ */

static struct view config_dynamic(const struct image *image, int32_t node_id, struct view name)
{
    uint8_t digits[12];
    uint32_t at = sizeof(digits);
    uint32_t left = (uint32_t)MAX(node_id, 0);
    do {
        digits[--at] = (uint8_t)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    struct view id = view_of(digits + at, (uint32_t)sizeof(digits) - at);
    return image_config(image_configs(image, IMAGE_RESOURCE_BROKER, id), name);
}

static struct view config_static(const struct cluster_config_context *context, struct view name)
{
    return context->static_config == NULL ? VIEW_NULL
                                          : context->static_config(context->static_context, name);
}

static bool config_ends(struct view name, const char *end)
{
    struct view tail = view_of_string(end);
    return name.size >= tail.size &&
           memcmp(name.data + name.size - tail.size, tail.data, tail.size) == 0;
}

/* What makes milliseconds of a broker setting that stands for a topic's setting in them. */
static int32_t config_factor(struct view topic_name, struct view broker_name)
{
    if (!config_ends(topic_name, ".ms")) return 1;
    if (config_ends(broker_name, ".minutes")) return 60 * 1000;
    return config_ends(broker_name, ".hours") ? 60 * 60 * 1000 : 1;
}

/* The first of the broker's names that `source` has. */
static bool config_by_synonym(const struct cluster_config_context *context,
                              const struct config_def *def,
                              enum cluster_source source,
                              struct cluster_config_value *out)
{
    const char *const own[] = {def->name, NULL};
    const char *const *names = def->scope == CONFIG_BROKER ? own : def->synonyms;
    const struct image_configs *defaults =
        image_configs(context->image, IMAGE_RESOURCE_BROKER, VIEW_EMPTY);
    for (; names != NULL && *names != NULL; names++) {
        struct view name = view_of_string(*names);
        struct view value =
            source == CLUSTER_SOURCE_BROKER ? config_dynamic(context->image, context->node_id, name)
            : source == CLUSTER_SOURCE_BROKER_DEFAULT ? image_config(defaults, name)
                                                      : config_static(context, name);
        if (value.null) continue;
        out->value = value;
        out->source = source;
        out->factor = config_factor(view_of_string(def->name), name);
        return true;
    }
    return false;
}

struct cluster_config_value cluster_config_value(const struct cluster_config_context *context,
                                                 struct view topic,
                                                 const struct config_def *def)
{
    struct view name = view_of_string(def->name);
    struct cluster_config_value out = {
        .value = view_of_string(def->default_text),
        .source = CLUSTER_SOURCE_DEFAULT,
        .factor = 1,
    };
    if (!topic.null) {
        struct view value =
            image_config(image_configs(context->image, IMAGE_RESOURCE_TOPIC, topic), name);
        if (!value.null) {
            out.value = value;
            out.source = CLUSTER_SOURCE_TOPIC;
            return out;
        }
    }
    if (config_by_synonym(context, def, CLUSTER_SOURCE_BROKER, &out)) return out;
    if (config_by_synonym(context, def, CLUSTER_SOURCE_BROKER_DEFAULT, &out)) return out;
    (void)config_by_synonym(context, def, CLUSTER_SOURCE_STATIC, &out);
    return out;
}

int64_t cluster_config_number(const struct cluster_config_value *value)
{
    int64_t number = 0;
    bool parsed = config_parse_int64(value->value, &number);
    assert(parsed); /* It was checked when it was set. */
    if (value->factor == 1) return number;
    return number < 0 ? -1 : number * value->factor; /* Of an int: cannot overflow. */
}

struct view cluster_config_text(const struct cluster_config_value *value, struct arena *arena)
{
    if (value->factor == 1) return value->value;
    return join_number(arena, cluster_config_number(value));
}

static struct cluster_config_value cluster_effective(const struct cluster *cluster,
                                                     struct view topic,
                                                     struct view name)
{
    struct cluster_config_context context = cluster_configs(cluster);
    const struct config_def *def = config_find(CONFIG_TOPIC, name);
    assert(def != NULL);
    return cluster_config_value(&context, topic, def);
}

bool cluster_topic_unclean(const struct cluster *cluster, struct view topic)
{
    bool flag = false;
    struct cluster_config_value value =
        cluster_effective(cluster, topic, VIEW("unclean.leader.election.enable"));
    return config_parse_bool(value.value, &flag) && flag;
}

int32_t cluster_topic_min_insync(const struct cluster *cluster, struct view topic)
{
    struct cluster_config_value value = cluster_effective(cluster, topic, CONFIG_MIN_INSYNC);
    int64_t number = 1;
    return config_parse_int64(value.value, &number) ? (int32_t)number : 1;
}

static struct view cluster_static(const struct cluster *cluster, struct view name)
{
    const struct config_def *def = config_find(CONFIG_BROKER, name);
    assert(def != NULL);
    struct cluster_config_context context = cluster_configs(cluster);
    struct view value = config_static(&context, name);
    return value.null ? view_of_string(def->default_text) : value;
}

int64_t cluster_static_number(const struct cluster *cluster, struct view name)
{
    /* Values of the file were checked when it was read; a default stands in all the same. */
    int64_t number = 0;
    if (config_parse_int64(cluster_static(cluster, name), &number)) return number;
    bool parsed =
        config_parse_int64(view_of_string(config_find(CONFIG_BROKER, name)->default_text), &number);
    assert(parsed);
    return number;
}

bool cluster_static_flag(const struct cluster *cluster, struct view name)
{
    bool flag = false;
    if (config_parse_bool(cluster_static(cluster, name), &flag)) return flag;
    bool parsed =
        config_parse_bool(view_of_string(config_find(CONFIG_BROKER, name)->default_text), &flag);
    assert(parsed);
    return flag;
}

/* ---- judging values -------------------------------------------------------------------------- */

static const char *const config_faults[] = {
    [CONFIG_E_PARSE] = "is not a value of its type",
    [CONFIG_E_RANGE] = "is outside of what is allowed",
    [CONFIG_E_VALUE] = "is not one of the allowed values",
    [CONFIG_E_EMPTY] = "is empty, or has an empty item",
    [CONFIG_E_LONG] = "is longer than 32767 characters",
    [CONFIG_E_NULL] = "must not be null",
};

/* "retention.ms: \"x\" is not a value of its type", or null. */
static struct view config_value_fault(struct step *step,
                                      const struct config_def *def,
                                      struct view value)
{
    enum config_fault fault = config_check(def, value);
    if (fault == CONFIG_OK) return VIEW_NULL;
    struct view what = view_of_string(config_faults[fault]);
    if (value.null || value.size > 100)
        return JOIN(step->arena, view_of_string(def->name), VIEW(": the value "), what);
    return JOIN(step->arena, view_of_string(def->name), VIEW(": \""), value, VIEW("\" "), what);
}

/* The topic's settings as they would be. */
struct config_result {
    struct cluster *cluster;
    struct step *step;
    const struct image_configs *before;
    const struct cluster_override *overrides;
    uint32_t count;
};

static struct view config_result_lookup(void *context, struct view name)
{
    const struct config_result *result = context;
    struct view value = image_config(result->before, name);
    for (uint32_t i = 0; i < result->count; i++)
        if (view_equal(result->overrides[i].name, name)) value = result->overrides[i].value;
    if (!value.null) return value;
    struct cluster_config_value effective = cluster_effective(result->cluster, VIEW_NULL, name);
    return cluster_config_text(&effective, result->step->arena);
}

struct view cluster_topic_configs_fault(struct cluster *cluster,
                                        struct step *step,
                                        const struct image_configs *before,
                                        const struct cluster_override *overrides,
                                        uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (overrides[i].value.null) continue;
        const struct config_def *def = config_find(CONFIG_TOPIC, overrides[i].name);
        if (def == NULL)
            return JOIN(step->arena, VIEW("unknown topic setting \""), overrides[i].name,
                        VIEW("\""));
        struct view fault = config_value_fault(step, def, overrides[i].value);
        if (!fault.null) return fault;
        bool flag;
        if (view_is(overrides[i].name, "remote.storage.enable") &&
            config_parse_bool(overrides[i].value, &flag) && flag)
            return VIEW("remote.storage.enable: this cluster has no tiered storage");
    }
    struct config_result result = {cluster, step, before, overrides, count};
    return view_of_string(config_check_topic(config_result_lookup, &result));
}

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

/* Is there such a resource? */
static bool alter_exists(struct alter *alter)
{
    struct arena *arena = alter->step->arena;
    int64_t id;
    switch (alter->type) {
    case IMAGE_RESOURCE_TOPIC:
        if (alter->name.size == 0)
            return alter_fail(alter, KAFKA_INVALID_REQUEST, VIEW("a topic without a name"));
        if (image_topic(alter->cluster->image, alter->name) == NULL)
            return cluster_topic_name_fault(alter->name).null
                       ? alter_fail(alter, KAFKA_UNKNOWN_TOPIC_OR_PARTITION,
                                    VIEW("there is no such topic"))
                       : alter_fail(alter, KAFKA_INVALID_TOPIC_EXCEPTION,
                                    VIEW("no topic can have this name"));
        return true;
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

struct view cluster_config_plain(struct view name)
{
    static const char prefix[] = "listener.name.";
    uint32_t at = sizeof(prefix) - 1;
    if (name.size <= at || memcmp(name.data, prefix, at) != 0) return name;
    while (at < name.size && name.data[at] != '.')
        at++;
    return at < name.size ? view_of(name.data + at + 1, name.size - at - 1) : name;
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
    struct view fault = config_value_fault(alter->step, def, override->value);
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
        image_configs(alter->cluster->image, IMAGE_RESOURCE_BROKER, alter->name), CONFIG_CORDONED);
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
        if (!alter_check_broker_value(alter, override)) return false;
        if (view_equal(override->name, CONFIG_MIN_INSYNC) && cluster_elr_on(alter->cluster)) {
            if (alter->name.size > 0)
                return alter_fail(alter, KAFKA_INVALID_CONFIG,
                                  VIEW("min.insync.replicas cannot differ between brokers while "
                                       "eligible leader replicas are on"));
            if (override->value.null)
                return alter_fail(alter, KAFKA_INVALID_CONFIG,
                                  VIEW("min.insync.replicas of the cluster cannot be removed while "
                                       "eligible leader replicas are on"));
        }
        if (view_equal(override->name, CONFIG_CORDONED) && !alter_check_cordons(alter, override))
            return false;
    }
    return true;
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
        struct view fault = config_value_fault(alter->step, def, override->value);
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

bool cluster_add_config(struct step *step,
                        int8_t type,
                        struct view resource,
                        const struct cluster_override *override)
{
    struct config_record *record = step_add(step, &wire_config_record, 0);
    if (record == NULL) return false;
    record->resource_type = type;
    record->resource_name = resource;
    record->name = override->name;
    record->value = override->value;
    return true;
}

bool cluster_add_clear_elr(struct step *step, struct view topic)
{
    struct clear_elr_record *record = step_add(step, &wire_clear_elr_record, 0);
    if (record == NULL) return false;
    record->topic_name = topic.null ? VIEW_EMPTY : topic;
    return true;
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
    if (!alter_allowed(alter) || !alter_exists(alter) || !alter_check(alter))
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
        clear = clear || view_equal(alter->overrides[i].name, CONFIG_MIN_INSYNC);
    }
    bool topic = alter->type == IMAGE_RESOURCE_TOPIC;
    if (clear && (topic || alter->type == IMAGE_RESOURCE_BROKER) &&
        cluster_elr_on(alter->cluster) &&
        !cluster_add_clear_elr(alter->step, topic ? alter->name : VIEW_EMPTY))
        return STEP_E_MEMORY;
    return cluster_done(alter->step);
}

/* A resource as one name, to find those that are named twice. */
static struct view alter_key(struct step *step, int8_t type, struct view name)
{
    return JOIN(step->arena, view_of(&type, sizeof(type)), name);
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
    if (def == NULL || def->type != CONFIG_LIST)
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

static bool alter_read_ops(
    struct alter *alter,
    const struct incremental_alter_configs_request_alter_configs_resource *in)
{
    alter->count = (uint32_t)MAX(in->configs.count, 0);
    struct names names;
    if (!names_init(&names, alter->step->arena, alter->count, step_random(alter->step)))
        return false;
    for (uint32_t i = 0; i < alter->count; i++) {
        if (names_see(&names, in->configs.items[i].name) > 1)
            return alter_fail(alter, KAFKA_INVALID_REQUEST, VIEW("a setting is named twice"));
        if (!alter_read_op(alter, &in->configs.items[i], &alter->overrides[i])) return false;
    }
    return true;
}

enum step_result cluster_incremental_alter_configs(
    struct cluster *cluster,
    struct step *step,
    const struct incremental_alter_configs_request *in,
    struct incremental_alter_configs_response *out)
{
    wire_defaults(&wire_incremental_alter_configs_response, out);
    size_t count = (size_t)MAX(in->resources.count, 0);
    out->responses.items = step_get(step, (count + 1) * sizeof(out->responses.items[0]));
    struct names names;
    struct view *keys = step_get(step, (count + 1) * sizeof(*keys));
    if (out->responses.items == NULL || keys == NULL ||
        !names_init(&names, step->arena, (uint32_t)count, step_random(step)))
        return STEP_E_MEMORY;
    out->responses.count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        keys[i] = alter_key(step, in->resources.items[i].resource_type,
                            in->resources.items[i].resource_name);
        if (keys[i].null) return STEP_E_MEMORY;
        names_see(&names, keys[i]);
    }
    for (size_t i = 0; i < count; i++) {
        const struct incremental_alter_configs_request_alter_configs_resource *resource =
            &in->resources.items[i];
        size_t configs = (size_t)MAX(resource->configs.count, 0);
        struct alter alter = {
            .cluster = cluster,
            .step = step,
            .type = resource->resource_type,
            .name = resource->resource_name,
            .overrides = step_get(step, (configs + 1) * sizeof(alter.overrides[0])),
            .validate_only = in->validate_only,
            .message = VIEW_NULL,
        };
        enum step_result result = STEP_DONE;
        if (alter.overrides == NULL) return STEP_E_MEMORY;
        if (!cluster->active)
            (void)alter_fail(&alter, KAFKA_NOT_CONTROLLER, VIEW_NULL);
        else if (names_seen(&names, keys[i]) > 1)
            (void)alter_fail(&alter, KAFKA_INVALID_REQUEST, VIEW("a resource is named twice"));
        else if (alter_read_ops(&alter, resource))
            result = alter_resource(&alter);
        else if (alter.error == KAFKA_NONE) /* Not refused: it could not be read. */
            result = STEP_E_MEMORY;
        if (result != STEP_DONE) return result;
        out->responses.items[i] =
            (struct incremental_alter_configs_response_alter_configs_resource_response){
                .error_code = alter.error,
                .error_message = alter.message,
                .resource_type = alter.type,
                .resource_name = alter.name,
            };
    }
    return cluster_done(step);
}

/* ---- AlterConfigs ---------------------------------------------------------------------------- */

/* The whole new set: what is there and not named goes. */
static bool alter_read_set(struct alter *alter,
                           const struct alter_configs_request_alter_configs_resource *in)
{
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

enum step_result cluster_alter_configs(struct cluster *cluster,
                                       struct step *step,
                                       const struct alter_configs_request *in,
                                       struct alter_configs_response *out)
{
    wire_defaults(&wire_alter_configs_response, out);
    size_t count = (size_t)MAX(in->resources.count, 0);
    out->responses.items = step_get(step, (count + 1) * sizeof(out->responses.items[0]));
    struct names names;
    struct view *keys = step_get(step, (count + 1) * sizeof(*keys));
    if (out->responses.items == NULL || keys == NULL ||
        !names_init(&names, step->arena, (uint32_t)count, step_random(step)))
        return STEP_E_MEMORY;
    out->responses.count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        keys[i] = alter_key(step, in->resources.items[i].resource_type,
                            in->resources.items[i].resource_name);
        if (keys[i].null) return STEP_E_MEMORY;
        names_see(&names, keys[i]);
    }
    for (size_t i = 0; i < count; i++) {
        struct alter alter = {
            .cluster = cluster,
            .step = step,
            .type = in->resources.items[i].resource_type,
            .name = in->resources.items[i].resource_name,
            .validate_only = in->validate_only,
            .message = VIEW_NULL,
        };
        enum step_result result = STEP_DONE;
        if (!cluster->active)
            (void)alter_fail(&alter, KAFKA_NOT_CONTROLLER, VIEW_NULL);
        else if (names_seen(&names, keys[i]) > 1)
            (void)alter_fail(&alter, KAFKA_INVALID_REQUEST, VIEW("a resource is named twice"));
        else if (alter_read_set(&alter, &in->resources.items[i]))
            result = alter_resource(&alter);
        else if (alter.error == KAFKA_NONE)
            result = STEP_E_MEMORY;
        if (result != STEP_DONE) return result;
        out->responses.items[i] = (struct alter_configs_response_alter_configs_resource_response){
            .error_code = alter.error,
            .error_message = alter.message,
            .resource_type = alter.type,
            .resource_name = alter.name,
        };
    }
    return cluster_done(step);
}
