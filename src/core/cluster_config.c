/* cluster_config.c - settings in the metadata: effective values, what is wrong with one, and the
 * records that change them. Who may alter which, and how it is asked for: cluster_alter.c. */
#include "core/cluster_internal.h"

#include "gen/clear_elr_record.h"
#include "gen/config_record.h"

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
    struct cluster_config_value value = cluster_effective(cluster, topic, CLUSTER_MIN_INSYNC);
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

struct view cluster_config_fault(struct step *step, const struct config_def *def, struct view value)
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
        struct view fault = cluster_config_fault(step, def, overrides[i].value);
        if (!fault.null) return fault;
        bool flag;
        if (view_is(overrides[i].name, "remote.storage.enable") &&
            config_parse_bool(overrides[i].value, &flag) && flag)
            return VIEW("remote.storage.enable: this cluster has no tiered storage");
    }
    struct config_result result = {cluster, step, before, overrides, count};
    return view_of_string(config_check_topic(config_result_lookup, &result));
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

/* ---- records ----------------------------------------------------------------------------------
 */

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
