/* group_config.c - see group_config.h. */
#include "core/group_config.h"

#include "core/cluster_internal.h"
#include "core/join.h"

/* "consumer.x" to the broker's "group.consumer.x", or with a middle to "group.consumer.min.x".
 * NULL: there is no such setting, or no memory. */
static const struct config_def *broker_def(struct arena *arena,
                                           struct view name,
                                           struct view middle)
{
    uint32_t dot = 0;
    while (dot < name.size && name.data[dot] != '.')
        dot++;
    if (dot == name.size) return NULL;
    struct view kind = view_of(name.data, dot + 1);
    struct view rest = view_of(name.data + dot + 1, name.size - dot - 1);
    /* Two whose names differ: bounds leave "num." out, and the broker's list of assignors gives the
     * assignor. */
    if (middle.size > 0 && rest.size > 4 && memcmp(rest.data, "num.", 4) == 0)
        rest = view_of(rest.data + 4, rest.size - 4);
    if (middle.size == 0 && view_is(name, "streams.assignor.name")) rest = VIEW("assignors");
    struct view full = JOIN(arena, VIEW("group."), kind, middle, rest);
    return full.null ? NULL : config_find(CONFIG_BROKER, full);
}

struct view group_config_standard(const struct cluster_config_context *context,
                                  struct arena *arena,
                                  const struct config_def *def)
{
    const struct config_def *broker = broker_def(arena, view_of_string(def->name), VIEW_EMPTY);
    if (broker == NULL) return view_of_string(def->default_text == NULL ? "" : def->default_text);
    struct cluster_config_value value = cluster_config_value(context, VIEW_NULL, broker);
    return cluster_config_text(&value, arena);
}

struct view group_config_broker_name(struct arena *arena, const struct config_def *def)
{
    const struct config_def *broker = broker_def(arena, view_of_string(def->name), VIEW_EMPTY);
    return view_of_string(broker == NULL ? def->name : broker->name);
}

/* A bound of the setting; `fallback` if it has none. */
static int64_t bound(const struct cluster_config_context *context,
                     const struct config_def *broker,
                     int64_t fallback)
{
    if (broker == NULL) return fallback;
    struct cluster_config_value value = cluster_config_value(context, VIEW_NULL, broker);
    return cluster_config_number(&value);
}

static struct view override_fault(const struct cluster_config_context *context,
                                  struct arena *arena,
                                  const struct cluster_override *override)
{
    int64_t number;
    if (override->value.null || !config_parse_int64(override->value, &number)) return VIEW_NULL;
    const struct config_def *low = broker_def(arena, override->name, VIEW("min."));
    const struct config_def *high = broker_def(arena, override->name, VIEW("max."));
    if (number < bound(context, low, INT64_MIN))
        return JOIN(arena, override->name, VIEW(" must be greater than or equal to "),
                    view_of_string(low->name));
    if (number > bound(context, high, INT64_MAX))
        return JOIN(arena, override->name, VIEW(" must be less than or equal to "),
                    view_of_string(high->name));
    return VIEW_NULL;
}

struct group_settings {
    const struct cluster_config_context *context;
    struct arena *arena;
    struct view group;
    const struct cluster_override *overrides;
    uint32_t count;
};

/* As it will be. */
static int64_t effective(const struct group_settings *s, struct view name)
{
    const struct config_def *def = config_find(CONFIG_GROUP, name);
    struct view text =
        image_config(image_configs(s->context->image, IMAGE_RESOURCE_GROUP, s->group), name);
    int64_t number = 0;
    assert(def != NULL);
    for (uint32_t i = 0; i < s->count; i++)
        if (view_equal(s->overrides[i].name, name)) text = s->overrides[i].value;
    if (text.null) text = group_config_standard(s->context, s->arena, def);
    return config_parse_int64(text, &number) ? number : 0;
}

struct view group_config_fault(const struct cluster_config_context *context,
                               struct arena *arena,
                               struct view group,
                               const struct cluster_override *overrides,
                               uint32_t count)
{
    static const struct {
        struct view session, heartbeat;
    } pairs[] = {
        {VIEW("consumer.session.timeout.ms"), VIEW("consumer.heartbeat.interval.ms")},
        {VIEW("share.session.timeout.ms"),    VIEW("share.heartbeat.interval.ms")   },
        {VIEW("streams.session.timeout.ms"),  VIEW("streams.heartbeat.interval.ms") },
    };
    struct group_settings settings = {context, arena, group, overrides, count};
    for (uint32_t i = 0; i < count; i++) {
        struct view fault = override_fault(context, arena, &overrides[i]);
        if (!fault.null) return fault;
    }
    for (uint32_t i = 0; i < ARRAY_SIZE(pairs); i++)
        if (effective(&settings, pairs[i].session) <= effective(&settings, pairs[i].heartbeat))
            return JOIN(arena, pairs[i].session, VIEW(" must be greater than "),
                        pairs[i].heartbeat);
    return VIEW_NULL;
}
