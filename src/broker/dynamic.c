/* dynamic.c - see dynamic.h. */
#include "broker/dynamic.h"

#include <stdio.h>
#include <string.h>

#include "broker/admission.h"
#include "broker/broker.h"
#include "broker/client_metrics.h"
#include "broker/controller.h"
#include "broker/lifecycle.h"
#include "broker/listening.h"
#include "core/config.h"

#define HOST_LIMITS_MAX 1000u /* Entries of max.connections.per.ip.overrides that are followed. */

/* ---- judging --------------------------------------------------------------------------------- */

/* Was it this node's broker part that the client asked? Else another broker has judged already. */
static bool asks_us(const struct controller_call *call)
{
    return call->client->listener->kind == WIRE_BROKER;
}

static bool begins(struct view name, const char *with)
{
    size_t size = strlen(with);
    return name.size >= size && memcmp(name.data, with, size) == 0;
}

/* "host:count", the last colon counts. False: not such an item. */
static bool host_limit(struct view item, struct shard_host_limit *out)
{
    int64_t count;
    uint32_t at = item.size;
    while (at > 0 && item.data[at - 1] != ':')
        at--;
    if (at < 2) return false;
    if (!config_parse_int64(view_of(item.data + at, item.size - at), &count)) return false;
    if (count < 0 || count > INT32_MAX) return false;
    out->host = view_of(item.data, at - 1);
    if (out->host.size > 2 && out->host.data[0] == '[')
        out->host = view_of(out->host.data + 1, out->host.size - 2);
    out->connections_max = (uint32_t)count;
    return true;
}

static const char *judge_overrides(struct view value)
{
    struct shard_host_limit limit;
    struct view rest = config_list(value), item;
    while (config_list_next(&rest, &item))
        if (!host_limit(item, &limit)) return "items are host:count";
    return NULL;
}

/* Kafka's pools grow and shrink by half at most in one step. */
static const char *judge_threads(const struct node *node, struct view name, int64_t count)
{
    static const char *const pools[] = {
        "background.threads",  "log.cleaner.threads",  "num.io.threads",
        "num.network.threads", "num.replica.fetchers", "num.recovery.threads.per.data.dir"};
    for (size_t i = 0; i < ARRAY_SIZE(pools); i++) {
        if (!view_is(name, pools[i])) continue;
        int64_t before = broker_setting_number(node, pools[i]);
        if (count < 1) return "there is at least one thread";
        if (count > before * 2) return "not more than double of what there is now, in one step";
        if (count < before / 2) return "not less than half of what there is now, in one step";
    }
    return NULL;
}

static const char *judge_cordons(const struct node *node, struct view value)
{
    struct view rest = config_list(value), item;
    while (config_list_next(&rest, &item)) {
        bool known = view_is(item, "*");
        for (uint32_t i = 0; i < node->options.log_dir_count; i++)
            known = known || view_is(item, node->options.log_dirs[i]);
        if (!known) return "it names a directory that is not in log.dirs";
    }
    return NULL;
}

static const char *judge_value(const struct node *node, struct view name, struct view value)
{
    struct view plain = cluster_config_plain(name);
    int64_t number = 0;
    bool is_number = config_parse_int64(value, &number);
    if (view_is(plain, "max.connections.per.ip.overrides")) return judge_overrides(value);
    if (view_is(plain, "cordoned.log.dirs")) return judge_cordons(node, value);
    if (plain.size == name.size &&
        (begins(name, "ssl.keystore.") || begins(name, "ssl.truststore.") ||
         view_is(name, "ssl.key.password")))
        return "it can be changed at run time for one listener only: listener.name.NAME. before it";
    if (!is_number) return NULL;
    if (view_is(plain, "max.connections") && number < 1) return "there is at least one connection";
    if (view_is(plain, "max.connections.per.ip") && number == 0 &&
        broker_setting(node, VIEW("max.connections.per.ip.overrides")).size == 0)
        return "0 is for who sets max.connections.per.ip.overrides";
    return judge_threads(node, plain, number);
}

struct view dynamic_judge(void *context, struct view resource, struct view name, struct view value)
{
    struct controller_call *call = context;
    const struct node *node = node_of(call->client->shard);
    char id[12];
    if (view_is(name, "match")) return client_metrics_pattern_fault(call->arena, value);
    if (!asks_us(call)) return VIEW_NULL;
    if (name.null) {
        (void)snprintf(id, sizeof(id), "%d", node->options.node_id);
        if (view_is(resource, id)) return VIEW_NULL;
        return broker_text(call->client, "this is broker %s: it changes no settings of another",
                           id);
    }
    const char *why = judge_value(node, name, value);
    if (why == NULL) return VIEW_NULL;
    return broker_text(call->client, "%.*s: %s", (int)name.size, (const char *)name.data, why);
}

struct view dynamic_judge_all(void *context,
                              struct view resource,
                              const struct cluster_override *overrides,
                              uint32_t count)
{
    struct controller_call *call = context;
    (void)resource; /* dynamic_judge has looked at it. */
    return asks_us(call) ? listening_judge(call->client, overrides, count) : VIEW_NULL;
}

/* ---- applying -------------------------------------------------------------------------------- */

bool dynamic_listener_number(const struct node *node,
                             const char *listener,
                             const char *name,
                             int64_t *out)
{
    char full[256];
    int size = snprintf(full, sizeof(full), "listener.name.%s.%s", listener, name);
    if (size < 0 || (size_t)size >= sizeof(full)) return false;
    for (char *c = full; *c != '\0'; c++)
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
    const struct config_def def = {.name = full, .scope = CONFIG_BROKER};
    struct cluster_config_context context = {
        .image = node->image,
        .node_id = node->options.node_id,
        .static_config = node->options.setting,
        .static_context = node->options.setting_context,
    };
    struct cluster_config_value value = cluster_config_value(&context, VIEW_NULL, &def);
    return !value.value.null && config_parse_int64(value.value, out);
}

/* The limits of single addresses, in memory of their own; the text is the node's too. */
static void apply_hosts(struct node *node, struct shard_limits *limits)
{
    struct view value = broker_setting(node, VIEW("max.connections.per.ip.overrides"));
    struct view rest = config_list(value), item;
    if (rest.null) return;
    struct arena *arena = &node->host_limits;
    struct view text = arena_copy(arena, value);
    struct shard_host_limit *hosts = arena_get(arena, HOST_LIMITS_MAX * sizeof(*hosts));
    if (text.null || hosts == NULL) {
        say(node->say, SAY_ERROR, SAY_IN_NODE,
            "max.connections.per.ip.overrides: no memory for it");
        return;
    }
    rest = config_list(text);
    while (limits->host_count < HOST_LIMITS_MAX && config_list_next(&rest, &item))
        if (host_limit(item, &hosts[limits->host_count])) limits->host_count++;
    limits->hosts = hosts;
}

/* Directories that get no new replicas (KIP-1066); the controller hears it by heartbeat. */
static void apply_cordons(struct node *node)
{
    struct view names = broker_setting(node, VIEW("cordoned.log.dirs"));
    bool changed = false;
    for (uint32_t i = 0; i < logs_dir_count(node->logs); i++) {
        struct log_dir_info info;
        logs_dir_info(node->logs, i, &info);
        bool cordoned =
            config_list_has(names, VIEW("*")) || config_list_has(names, view_of_string(info.path));
        changed = changed || cordoned != info.cordoned;
        logs_dir_cordon(node->logs, i, cordoned);
    }
    if (changed) lifecycle_cordoned(node);
}

void dynamic_apply_listeners(struct node *node)
{
    for (uint32_t i = 0; i < node->options.listener_count; i++) {
        struct listener *listener = node->listeners[i];
        int64_t most = INT32_MAX;
        if (listener == NULL) continue;
        (void)!dynamic_listener_number(node, listener->name, "max.connections", &most);
        listener->connections_max = (uint32_t)MIN(MAX(most, 0), (int64_t)INT32_MAX);
    }
    if (node->admission != NULL) admission_configure(node);
}

void dynamic_apply(struct node *node)
{
    if (node->shard == NULL || node->logs == NULL) return; /* It opens, and comes back then. */
    say(node->say, SAY_DEBUG, SAY_IN_CONFIG,
        "shard %u follows the settings of the broker, change %u", node->index,
        node->config_changes);
    struct shard_limits limits = {
        .connections_max = (uint32_t)broker_setting_number(node, "max.connections"),
        .connections_per_ip = (uint32_t)broker_setting_number(node, "max.connections.per.ip"),
    };
    arena_reset(&node->host_limits);
    apply_hosts(node, &limits);
    shard_limit(node->shard, &limits);
    dynamic_apply_listeners(node);
    node->listeners_due = true;
    logs_clean_every(node->logs, broker_setting_number(node, "log.cleaner.backoff.ms"));
    apply_cordons(node);
}

void dynamic_close(struct node *node)
{
    arena_free(&node->host_limits);
}
