/* cluster.c - see cluster.h. */
#include "sim/cluster.h"

#include <stdio.h>

#define PORT 9092

static void cluster_says(void *context, const char *line, size_t size)
{
    struct cluster *cluster = context;
    char *out = cluster->said[cluster->said_count++ % CLUSTER_SAID_MAX];
    size_t length = MIN(size, sizeof(cluster->said[0]));
    (void)snprintf(out, sizeof(cluster->said[0]), "%.*s", (int)length, line);
    if (cluster->print) printf("%10lld us said %s", (long long)sim_now_us(cluster->world), out);
}

static int64_t cluster_wall_ms(void *context)
{
    const struct cluster *cluster = context;
    return cluster->io == NULL ? 0 : io_wall_ms(cluster->io);
}

static struct view cluster_setting(void *context, struct view name)
{
    const struct cluster *cluster = context;
    for (uint32_t i = 0; i < cluster->setting_count; i++)
        if (view_is(name, cluster->settings[i].name))
            return view_of_string(cluster->settings[i].value);
    return VIEW_NULL;
}

void cluster_set(struct cluster *cluster, const char *name, uint32_t value)
{
    uint32_t at = cluster->setting_count++;
    assert(at < CLUSTER_SETTINGS_MAX);
    cluster->settings[at].name = name;
    (void)snprintf(cluster->settings[at].value, sizeof(cluster->settings[at].value), "%u", value);
}

static NORETURN void cluster_dead(void *context, struct sim_node *machine)
{
    struct cluster *cluster = context;
    assert(machine == cluster->machine);
    longjmp(cluster->dead, 1);
}

void cluster_options(struct cluster *cluster, struct sim_options *options)
{
    options->dead = cluster_dead;
    options->dead_context = cluster;
}

void cluster_init(struct cluster *cluster, struct sim_world *world, struct history *history)
{
    cluster->world = world;
    cluster->history = history;
    cluster->machine = sim_node_new(world, "broker");
    say_levels_init(&cluster->levels, SAY_INFO);
    cluster->say = (struct say){.fd = -1,
                                .levels = &cluster->levels,
                                .wall_ms = cluster_wall_ms,
                                .sink = cluster_says,
                                .context = cluster};
}

static void cluster_listener(const struct cluster *cluster,
                             struct node_options *options,
                             bool controller)
{
    struct node_listener *listener = &options->listeners[options->listener_count++];
    (void)snprintf(listener->name, sizeof(listener->name), controller ? "CONTROLLER" : "PLAINTEXT");
    (void)snprintf(listener->host, sizeof(listener->host), "%s", sim_node_host(cluster->machine));
    listener->port = controller ? CLUSTER_CONTROLLER_PORT : PORT;
    listener->controller = controller;
    listener->inter_broker = !controller;
}

static int cluster_open(struct cluster *cluster)
{
    static const char *const dirs[] = {"/data"};
    struct node_options options = {
        .io = cluster->io,
        .ios = cluster->ios,
        .shard_count = cluster->shape.shards,
        .say = &cluster->say,
        .node_id = 1,
        .log_dirs = dirs,
        .log_dir_count = 1,
        .cluster_id = cluster->shape.controller ? CLUSTER_ID : NULL,
        .metadata_version = cluster->shape.metadata_version,
        .controller_only = cluster->shape.alone,
        .num_partitions = 1,
        .default_replication = 1,
        .ack_replicated = cluster->shape.lax,
        .rack = VIEW_NULL,
        .setting = cluster_setting,
        .setting_context = cluster,
    };
    if (!cluster->shape.alone) cluster_listener(cluster, &options, false);
    if (cluster->shape.controller) cluster_listener(cluster, &options, true);
    return node_open(&options, &cluster->node);
}

/* Crashed on the way, or there was no end of it. */
static bool cluster_ended(const struct cluster *cluster)
{
    return sim_node_crashed(cluster->machine) || history_violated(cluster->history);
}

static void cluster_wait(struct cluster *cluster, bool waits)
{
    sim_waits(cluster->world, waits);
    cluster->waiting = waits;
    cluster->waits_us = sim_now_us(cluster->world);
    cluster->waits_turns = 0;
}

void cluster_waits(struct cluster *cluster)
{
    if (!cluster->waiting) return;
    int64_t took_ms = (sim_now_us(cluster->world) - cluster->waits_us) / 1000;
    if (++cluster->waits_turns < CLUSTER_WAITS_TURNS && took_ms < CLUSTER_WAITS_MS) return;
    history_violation(cluster->history, "I23: the node %s for %lld ms and %u turns; %s",
                      cluster->node == NULL ? "opens" : "closes", (long long)took_ms,
                      cluster->waits_turns, cluster_last_words(cluster));
    longjmp(cluster->dead, 1);
}

bool cluster_start(struct cluster *cluster)
{
    assert(cluster->io == NULL);
    cluster->starts++;
    cluster->history->restarts++;
    cluster->history->restart_us = sim_now_us(cluster->world);
    for (uint32_t i = 0; i < cluster->shape.shards; i++) {
        cluster->ios[i] = sim_node_start(cluster->machine);
        sim_tag(cluster->ios[i], cluster);
    }
    cluster->io = cluster->ios[0];
    cluster->refused = false;
    cluster_wait(cluster, true);
    int result = setjmp(cluster->dead) == 0 ? cluster_open(cluster) : -1;
    cluster_wait(cluster, false);
    if (cluster_ended(cluster)) return false;
    cluster->refused = result != 0;
    if (cluster->refused) cluster->node = NULL;
    return !cluster->refused;
}

const char *cluster_last_words(const struct cluster *cluster)
{
    if (cluster->said_count == 0) return "it said nothing";
    return cluster->said[(cluster->said_count - 1) % CLUSTER_SAID_MAX];
}

void cluster_turn(struct cluster *cluster, const struct io *io)
{
    uint32_t index = 0;
    while (cluster->ios[index] != io)
        index++;
    (void)node_turn_shard(cluster->node, index, INT64_MAX);
}

void cluster_crash(struct cluster *cluster, enum sim_crash kind, uint64_t choice)
{
    sim_node_crash(cluster->machine, kind, choice);
    cluster->io = NULL;
    cluster->node = NULL;
    if (kind != SIM_CRASH_KILL) history_power_cut(cluster->history);
}

bool cluster_stop(struct cluster *cluster)
{
    cluster_wait(cluster, true);
    if (setjmp(cluster->dead) == 0) cluster->node = node_close(cluster->node);
    cluster_wait(cluster, false);
    if (cluster_ended(cluster)) return false;
    if (io_mem(cluster->io)->used_bytes != 0)
        history_violation(cluster->history, "I21: %llu bytes are left after a clean stop",
                          (unsigned long long)io_mem(cluster->io)->used_bytes);
    for (uint32_t i = 0; i < cluster->shape.shards; i++)
        io_free(cluster->ios[i]);
    cluster->io = NULL;
    return true;
}
