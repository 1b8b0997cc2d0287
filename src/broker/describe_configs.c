/* describe_configs.c - DescribeConfigs: every setting with its value, where it comes from, and why.
 * The table of settings is schema/configs.json; values are core/cluster's. */
#include "broker/loggers.h"
#include "core/config.h"
#include "core/group_config.h"
#include "core/join.h"
#include "gen/describe_configs_request.h"
#include "gen/describe_configs_response.h"

/* The topic's own, two dynamic ones, the file's under up to eight names, the default. */
#define SYNONYMS_MAX 12

struct describing {
    struct request *request;
    const struct describe_configs_request_describe_configs_resource *in;
    struct cluster_config_context context;
    enum config_scope scope;
    struct view topic; /* Null for the broker's own. */
    struct describe_configs_response_describe_configs_result *out;
};

/* A setting as the node was started with it: what it chose or was told besides the file, else what
 * the file gives. */
static struct view describe_static(void *context, struct view name)
{
    struct request *request = context;
    const struct node_options *options = &node_of(request->shard)->options;
    if (view_is(name, "node.id") || view_is(name, "broker.id"))
        return broker_text(request, "%d", options->node_id);
    if (view_is(name, "log.dirs")) {
        struct view all = view_of_string(options->log_dirs[0]);
        for (uint32_t i = 1; i < options->log_dir_count; i++)
            all = JOIN(&request->arena, all, VIEW(","), view_of_string(options->log_dirs[i]));
        return all;
    }
    struct view given = options->setting(options->setting_context, name);
    if (given.null && view_is(name, "process.roles"))
        return options->controller_only ? VIEW("controller") : VIEW("broker,controller");
    return given;
}

static bool wanted(const struct describing *d, struct view name)
{
    if (d->in->configuration_keys.count <= 0) return true;
    for (int32_t i = 0; i < d->in->configuration_keys.count; i++)
        if (view_equal(d->in->configuration_keys.items[i], name)) return true;
    return false;
}

static void add_synonym(struct describe_configs_response_describe_configs_resource_result *out,
                        struct view name,
                        struct view value,
                        int8_t source)
{
    struct describe_configs_response_describe_configs_synonym *synonym =
        &out->synonyms.items[out->synonyms.count++];
    wire_struct_defaults(&wire_describe_configs_response_describe_configs_synonym_shape, synonym);
    synonym->name = name;
    synonym->value = value;
    synonym->source = source;
}

/* What was changed at run time: for this broker, then for all. */
static void add_dynamic_synonyms(
    struct describing *d,
    struct view name,
    bool sensitive,
    struct describe_configs_response_describe_configs_resource_result *out)
{
    struct view id = broker_text(d->request, "%d", d->context.node_id);
    const struct {
        struct view resource;
        int8_t source;
    } levels[] = {
        {id,         CLUSTER_SOURCE_BROKER        },
        {VIEW_EMPTY, CLUSTER_SOURCE_BROKER_DEFAULT}
    };
    for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
        struct view value = image_config(
            image_configs(d->context.image, IMAGE_RESOURCE_BROKER, levels[i].resource), name);
        if (!value.null) add_synonym(out, name, sensitive ? VIEW_NULL : value, levels[i].source);
    }
}

/* The names under which brokers know a setting, the nearest first. NULL: a topic's setting that no
 * broker has. `out` has room for a single name. */
static const char *const *synonyms_of(const struct describing *d,
                                      const struct config_def *def,
                                      const char *out[2])
{
    if (d->scope == CONFIG_TOPIC) return def->synonyms;
    uint32_t count;
    const struct config_def *topics = config_all(CONFIG_TOPIC, &count);
    for (uint32_t i = 0; i < count; i++)
        if (topics[i].synonyms != NULL &&
            view_equal(view_of_string(topics[i].synonyms[0]), view_of_string(def->name)))
            return topics[i].synonyms;
    out[0] = def->name;
    out[1] = NULL;
    return out;
}

/* Only from the setting's nearest name on: what older names give is said when that one is set. */
static void drop_before(struct describe_configs_response_describe_configs_resource_result *out,
                        int32_t from,
                        struct view name)
{
    int32_t first = from;
    while (first < out->synonyms.count && !view_equal(out->synonyms.items[first].name, name))
        first++;
    for (int32_t i = first; i < out->synonyms.count; i++)
        out->synonyms.items[from + i - first] = out->synonyms.items[i];
    out->synonyms.count -= first - from;
}

/* A setting's sources from the nearest to the default, each under its own name. */
static void add_synonyms(struct describing *d,
                         const struct config_def *def,
                         bool sensitive,
                         struct describe_configs_response_describe_configs_resource_result *out)
{
    const struct describe_configs_request *in = d->request->message;
    if (!in->include_synonyms) return;
    out->synonyms.items = broker_array(d->request, SYNONYMS_MAX, sizeof(*out->synonyms.items));
    if (out->synonyms.items == NULL) return;
    struct view name = view_of_string(def->name);
    const struct image *image = d->context.image;
    if (!d->topic.null) {
        struct view own = image_config(image_configs(image, IMAGE_RESOURCE_TOPIC, d->topic), name);
        if (!own.null) add_synonym(out, name, config_shown(def, own), CLUSTER_SOURCE_TOPIC);
    }
    const char *single[2];
    const char *const *synonyms = synonyms_of(d, def, single);
    if (synonyms == NULL) return;
    int32_t from = out->synonyms.count;
    struct view nearest = view_of_string(synonyms[0]);
    add_dynamic_synonyms(d, nearest, sensitive, out);
    for (const char *const *synonym = synonyms; *synonym != NULL; synonym++) {
        struct view broker_name = view_of_string(*synonym);
        struct view given = d->context.static_config(d->context.static_context, broker_name);
        if (!given.null && out->synonyms.count < SYNONYMS_MAX)
            add_synonym(out, broker_name, sensitive ? VIEW_NULL : given, CLUSTER_SOURCE_STATIC);
    }
    for (const char *const *synonym = synonyms; *synonym != NULL; synonym++) {
        const struct config_def *broker = config_find(CONFIG_BROKER, view_of_string(*synonym));
        if (broker != NULL && broker->default_text != NULL && out->synonyms.count < SYNONYMS_MAX)
            add_synonym(out, view_of_string(broker->name), view_of_string(broker->default_text),
                        CLUSTER_SOURCE_DEFAULT);
    }
    drop_before(out, from, nearest);
}

static void describe_one(struct describing *d,
                         const struct config_def *def,
                         struct describe_configs_response_describe_configs_resource_result *out)
{
    const struct describe_configs_request *in = d->request->message;
    struct cluster_config_value value = cluster_config_value(&d->context, d->topic, def);
    wire_struct_defaults(&wire_describe_configs_response_describe_configs_resource_result_shape,
                         out);
    out->is_sensitive = def->type == CONFIG_PASSWORD;
    out->name = view_of_string(def->name);
    out->value = out->is_sensitive
                     ? VIEW_NULL
                     : config_shown(def, cluster_config_text(&value, &d->request->arena));
    out->config_source = (int8_t)value.source;
    out->read_only = d->scope == CONFIG_BROKER && def->dynamic == CONFIG_READ_ONLY;
    out->config_type = (int8_t)def->type;
    if (in->include_documentation) out->documentation = view_of_string(def->meaning);
    add_synonyms(d, def, out->is_sensitive, out);
}

/* What the group has of its own, and what holds for it else. */
static void describe_group_one(
    struct describing *d,
    const struct config_def *def,
    struct describe_configs_response_describe_configs_resource_result *out)
{
    const struct describe_configs_request *in = d->request->message;
    struct arena *arena = &d->request->arena;
    struct view name = view_of_string(def->name);
    struct view standard = group_config_standard(&d->context, arena, def);
    struct view own = image_config(
        image_configs(d->context.image, IMAGE_RESOURCE_GROUP, d->in->resource_name), name);
    wire_struct_defaults(&wire_describe_configs_response_describe_configs_resource_result_shape,
                         out);
    out->name = name;
    out->value = config_shown(def, own.null ? standard : own);
    out->config_source = own.null ? CLUSTER_SOURCE_DEFAULT : CLUSTER_SOURCE_GROUP;
    out->config_type = (int8_t)def->type;
    if (in->include_documentation) out->documentation = view_of_string(def->meaning);
    if (!in->include_synonyms) return;
    out->synonyms.items = broker_array(d->request, 2, sizeof(*out->synonyms.items));
    if (out->synonyms.items == NULL) return;
    if (!own.null) add_synonym(out, name, own, CLUSTER_SOURCE_GROUP);
    add_synonym(out, group_config_broker_name(arena, def), standard, CLUSTER_SOURCE_DEFAULT);
}

static bool describe_all(struct describing *d)
{
    uint32_t count;
    const struct config_def *defs = config_all(d->scope, &count);
    d->out->configs.items = broker_array(d->request, count, sizeof(*d->out->configs.items));
    if (d->out->configs.items == NULL) return false;
    for (uint32_t i = 0; i < count; i++)
        if (!defs[i].internal && wanted(d, view_of_string(defs[i].name)))
            (d->scope == CONFIG_GROUP ? describe_group_one : describe_one)(
                d, &defs[i], &d->out->configs.items[d->out->configs.count++]);
    return true;
}

/* A value that was set at run time under a name that is not in the table as it is: one with a
 * listener's prefix, one of a plugin, one that only the metadata know. */
static void describe_set(struct describing *d, struct view name, int8_t source)
{
    const struct describe_configs_request *in = d->request->message;
    const struct config_def *def = config_find(CONFIG_BROKER, cluster_config_plain(name));
    struct describe_configs_response_describe_configs_resource_result *out =
        &d->out->configs.items[d->out->configs.count++];
    wire_struct_defaults(&wire_describe_configs_response_describe_configs_resource_result_shape,
                         out);
    struct view resource = source == CLUSTER_SOURCE_BROKER_DEFAULT
                               ? VIEW_EMPTY
                               : broker_text(d->request, "%d", d->context.node_id);
    out->name = name;
    out->is_sensitive = def == NULL || def->type == CONFIG_PASSWORD;
    struct view value =
        image_config(image_configs(d->context.image, IMAGE_RESOURCE_BROKER, resource), name);
    out->value = out->is_sensitive ? VIEW_NULL : value;
    out->config_source = source;
    out->read_only = config_find(CONFIG_BROKER, name) == NULL;
    if (def != NULL) out->config_type = (int8_t)def->type;
    if (def != NULL && in->include_documentation) out->documentation = view_of_string(def->meaning);
    if (!in->include_synonyms) return;
    out->synonyms.items = broker_array(d->request, SYNONYMS_MAX, sizeof(*out->synonyms.items));
    if (out->synonyms.items == NULL) return;
    if (d->in->resource_name.size == 0) {
        add_synonym(out, name, out->value, source);
        return;
    }
    add_dynamic_synonyms(d, name, out->is_sensitive, out);
    if (def == NULL || view_is(name, def->name)) return;
    add_dynamic_synonyms(d, view_of_string(def->name), out->is_sensitive, out);
    if (def->default_text != NULL)
        add_synonym(out, view_of_string(def->name), view_of_string(def->default_text),
                    CLUSTER_SOURCE_DEFAULT);
}

static uint32_t set_count(const struct image_configs *configs)
{
    return configs == NULL ? 0 : configs->count;
}

/* The cluster-wide dynamic values alone. */
static bool describe_defaults(struct describing *d)
{
    const struct image_configs *configs =
        image_configs(d->context.image, IMAGE_RESOURCE_BROKER, VIEW_EMPTY);
    if (configs == NULL) return true;
    d->out->configs.items =
        broker_array(d->request, configs->count, sizeof(*d->out->configs.items));
    if (d->out->configs.items == NULL) return false;
    for (uint32_t i = 0; i < configs->count; i++)
        if (wanted(d, configs->items[i].name))
            describe_set(d, configs->items[i].name, CLUSTER_SOURCE_BROKER_DEFAULT);
    return true;
}

/* Is it told with the table? */
static bool tabled(struct view name)
{
    const struct config_def *def = config_find(CONFIG_BROKER, name);
    return def != NULL && !def->internal;
}

/* All of the table, and what else was set at run time for this broker and for all. */
static bool describe_broker(struct describing *d)
{
    uint32_t count;
    const struct image *image = d->context.image;
    const struct image_configs *own = image_configs(
        image, IMAGE_RESOURCE_BROKER, broker_text(d->request, "%d", d->context.node_id));
    const struct image_configs *all = image_configs(image, IMAGE_RESOURCE_BROKER, VIEW_EMPTY);
    const struct config_def *defs = config_all(CONFIG_BROKER, &count);
    d->out->configs.items = broker_array(d->request, count + set_count(own) + set_count(all),
                                         sizeof(*d->out->configs.items));
    if (d->out->configs.items == NULL) return false;
    for (uint32_t i = 0; i < count; i++)
        if (!defs[i].internal && wanted(d, view_of_string(defs[i].name)))
            describe_one(d, &defs[i], &d->out->configs.items[d->out->configs.count++]);
    for (uint32_t i = 0; i < set_count(own); i++)
        if (!tabled(own->items[i].name) && wanted(d, own->items[i].name))
            describe_set(d, own->items[i].name, CLUSTER_SOURCE_BROKER);
    for (uint32_t i = 0; i < set_count(all); i++)
        if (!tabled(all->items[i].name) && wanted(d, all->items[i].name) &&
            image_config(own, all->items[i].name).null)
            describe_set(d, all->items[i].name, CLUSTER_SOURCE_BROKER_DEFAULT);
    return true;
}

static int16_t check_group(struct describing *d)
{
    if (!auth_allows(d->request, AUTH_DESCRIBE_CONFIGS, AUTH_GROUP, d->in->resource_name))
        return KAFKA_GROUP_AUTHORIZATION_FAILED;
    d->scope = CONFIG_GROUP;
    return d->in->resource_name.size == 0 ? KAFKA_INVALID_REQUEST : KAFKA_NONE;
}

/* Of a subscription to clients' metrics: any name has all settings, with their defaults. */
#define SOURCE_CLIENT_METRICS 7

static bool describe_subscription(struct describing *d)
{
    const struct image_configs *own =
        image_configs(d->context.image, IMAGE_RESOURCE_CLIENT_METRICS, d->in->resource_name);
    if (!describe_all(d)) return false;
    for (int32_t i = 0; i < d->out->configs.count; i++) {
        struct describe_configs_response_describe_configs_resource_result *out =
            &d->out->configs.items[i];
        struct view value = image_config(own, out->name);
        if (value.null) continue;
        out->value = value;
        out->config_source = SOURCE_CLIENT_METRICS;
        if (out->synonyms.items != NULL) add_synonym(out, out->name, value, SOURCE_CLIENT_METRICS);
    }
    return true;
}

static int16_t check_subscription(struct describing *d)
{
    if (!auth_allows(d->request, AUTH_DESCRIBE_CONFIGS, AUTH_CLUSTER, VIEW("kafka-cluster")))
        return KAFKA_CLUSTER_AUTHORIZATION_FAILED;
    d->scope = CONFIG_CLIENT_METRICS;
    return d->in->resource_name.size == 0 ? KAFKA_INVALID_REQUEST : KAFKA_NONE;
}

static int16_t check_topic(struct describing *d)
{
    struct node *node = node_of(d->request->shard);
    if (!auth_allows(d->request, AUTH_DESCRIBE_CONFIGS, AUTH_TOPIC, d->in->resource_name))
        return KAFKA_TOPIC_AUTHORIZATION_FAILED;
    if (!topic_name_valid(d->in->resource_name)) return KAFKA_INVALID_TOPIC_EXCEPTION;
    if (image_topic(node->image, d->in->resource_name) == NULL)
        return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    d->scope = CONFIG_TOPIC;
    d->topic = d->in->resource_name;
    return KAFKA_NONE;
}

static int16_t check_broker(struct describing *d)
{
    if (!auth_allows(d->request, AUTH_DESCRIBE_CONFIGS, AUTH_CLUSTER, VIEW("kafka-cluster")))
        return KAFKA_CLUSTER_AUTHORIZATION_FAILED;
    d->scope = CONFIG_BROKER;
    if (d->in->resource_name.size == 0) return KAFKA_NONE;
    return loggers_own_id(d->request, d->in->resource_name) ? KAFKA_NONE : KAFKA_INVALID_REQUEST;
}

static int16_t check_loggers(struct describing *d)
{
    if (!auth_allows(d->request, AUTH_DESCRIBE_CONFIGS, AUTH_CLUSTER, VIEW("kafka-cluster")))
        return KAFKA_CLUSTER_AUTHORIZATION_FAILED;
    return loggers_own_id(d->request, d->in->resource_name) ? KAFKA_NONE : KAFKA_INVALID_REQUEST;
}

#define SOURCE_LOGGER 6

/* The areas of our log lines with the levels that hold. */
static bool describe_loggers(struct describing *d)
{
    const struct say *say = node_of(d->request->shard)->say;
    d->out->configs.items = broker_array(d->request, SAY_AREAS, sizeof(*d->out->configs.items));
    if (d->out->configs.items == NULL) return false;
    for (uint32_t i = 0; i < SAY_AREAS; i++) {
        struct view name = view_of_string(say_area_name((enum say_area)i));
        if (!wanted(d, name)) continue;
        struct describe_configs_response_describe_configs_resource_result *out =
            &d->out->configs.items[d->out->configs.count++];
        wire_struct_defaults(&wire_describe_configs_response_describe_configs_resource_result_shape,
                             out);
        out->name = name;
        out->value = view_of_string(loggers_level_name(say_level_of(say, (enum say_area)i)));
        out->config_source = SOURCE_LOGGER;
        out->documentation = VIEW_EMPTY;
    }
    return true;
}

static bool describe_resource(struct describing *d)
{
    bool made = true;
    wire_struct_defaults(&wire_describe_configs_response_describe_configs_result_shape, d->out);
    d->topic = VIEW_NULL;
    d->out->resource_type = d->in->resource_type;
    d->out->resource_name = d->in->resource_name;
    if (d->in->resource_type == IMAGE_RESOURCE_TOPIC)
        d->out->error_code = check_topic(d);
    else if (d->in->resource_type == IMAGE_RESOURCE_BROKER)
        d->out->error_code = check_broker(d);
    else if (d->in->resource_type == IMAGE_RESOURCE_GROUP)
        d->out->error_code = check_group(d);
    else if (d->in->resource_type == IMAGE_RESOURCE_CLIENT_METRICS)
        d->out->error_code = check_subscription(d);
    else if (d->in->resource_type == IMAGE_RESOURCE_BROKER_LOGGER)
        d->out->error_code = check_loggers(d);
    else
        d->out->error_code = KAFKA_INVALID_REQUEST;
    if (d->out->error_code == KAFKA_NONE) {
        bool broker = d->in->resource_type == IMAGE_RESOURCE_BROKER;
        bool defaults = broker && d->in->resource_name.size == 0;
        bool subscription = d->in->resource_type == IMAGE_RESOURCE_CLIENT_METRICS;
        bool loggers = d->in->resource_type == IMAGE_RESOURCE_BROKER_LOGGER;
        made = defaults       ? describe_defaults(d)
               : loggers      ? describe_loggers(d)
               : subscription ? describe_subscription(d)
               : broker       ? describe_broker(d)
                              : describe_all(d);
    } else {
        request_error(d->request, d->out->error_code);
        if (d->out->error_code != KAFKA_UNKNOWN_TOPIC_OR_PARTITION)
            d->out->error_message = VIEW("the settings of this resource cannot be described");
    }
    return made;
}

void handle_describe_configs(struct shard *shard, struct request *request)
{
    const struct describe_configs_request *in = request->message;
    struct node *node = node_of(shard);
    struct describe_configs_response *out = request_response(request);
    if (out != NULL)
        out->results.items =
            broker_array(request, (size_t)MAX(in->resources.count, 1), sizeof(*out->results.items));
    bool made = out != NULL && out->results.items != NULL;
    for (int32_t i = 0; made && i < in->resources.count; i++) {
        struct describing d = {
            .request = request,
            .in = &in->resources.items[i],
            .context = {node->image, node->options.node_id, describe_static, request},
            .out = &out->results.items[out->results.count++],
        };
        made = describe_resource(&d);
    }
    broker_answer(request, out, made);
}
