/* node.c - see node.h: open in order, one turn, close in the reverse order.
 *
 * While the node opens and closes all shards are turned by the caller's thread, one after the
 * other; in between each has its own. */
#include "broker/node.h"

#include <errno.h>
#include <stdio.h>

#include "broker/admission.h"
#include "broker/broker.h"
#include "broker/client_metrics.h"
#include "broker/controller.h"
#include "broker/coordinator.h"
#include "broker/directories.h"
#include "broker/dynamic.h"
#include "broker/lifecycle.h"
#include "broker/listening.h"
#include "broker/moves.h"
#include "broker/placed.h"
#include "broker/quotas.h"
#include "broker/shards.h"
#include "broker/spread.h"
#include "gen/api_versions_request.h"
#include "gen/api_versions_response.h"

#define NODE_DRAIN_MS 5000 /* For requests in process at a stop. */

/* What a part that would take `usual` bytes in all gets of dohle.memory.max; 0: the usual. */
static uint32_t node_memory_share(const struct node *node, uint32_t usual)
{
    uint64_t most = (uint64_t)broker_setting_number(node, "dohle.memory.max") / 8;
    return most == 0 || most >= usual ? 0 : (uint32_t)(most / node->count);
}

/* ---- logs ------------------------------------------------------------------------------------ */

static void node_log_says(void *context, const char *text)
{
    struct node *node = context;
    say(node->say, SAY_WARN, SAY_IN_LOG, "%s", text);
}

static int node_logs(struct node *node)
{
    shards_logs_part(node, &node->logs_part);
    static const char *const reasons[] = {
        [LOGS_E_LOCKED] = "another process serves from one; stop it, or name another: --data DIR",
        [LOGS_E_FORMAT] = "none is formatted",
        [LOGS_E_META] = "a meta.properties is not valid or not this node's",
        [LOGS_E_NAMES] = "a folder is no partition's, or a partition is in two of them",
        [LOGS_E_DIRECTORIES] = "none is usable; the lines above say why",
        [LOGS_E_MEMORY] = "no memory",
    };
    struct logs_options options = {
        .paths = node->options.log_dirs,
        .path_count = node->options.log_dir_count,
        .node_id = node->options.node_id,
        .ack = node->options.ack_replicated ? LOG_ACK_REPLICATED : LOG_ACK_SYNC,
        .config = LOG_CONFIG_DEFAULT,
        .unsynced_max_bytes = node_memory_share(node, LOG_UNSYNCED_MAX),
        .cleaner_map_bytes = node_memory_share(node, LOG_CLEANER_MAP_BYTES),
        .disk_max_bytes = (uint64_t)broker_setting_number(node, "dohle.disk.max.bytes"),
        .retention_interval_ms = broker_setting_number(node, "log.retention.check.interval.ms"),
        .checkpoint_interval_ms =
            broker_setting_number(node, "log.flush.offset.checkpoint.interval.ms"),
        .high_watermark_interval_ms =
            broker_setting_number(node, "replica.high.watermark.checkpoint.interval.ms"),
        .cleaner_off = view_is(broker_setting(node, VIEW("log.cleaner.enable")), "false"),
        .cleaner_backoff_ms = broker_setting_number(node, "log.cleaner.backoff.ms"),
        .part = node->count > 1 ? &node->logs_part : NULL,
        .say = node_log_says,
        .context = node,
        .tell = node->say,
    };
    int result = logs_open(node->io, &options, &node->logs);
    if (result == LOGS_OK) {
        shards_logs_watch(node);
        return moves_open(node) ? 0 : -ENOMEM;
    }
    const char *reason =
        result > 0 && result < (int)ARRAY_SIZE(reasons) ? reasons[result] : say_errno(result);
    say(node->say, SAY_ERROR, SAY_IN_NODE, "could not open the data directories: %s", reason);
    return result < 0 ? result : -EINVAL;
}

/* ---- the image ------------------------------------------------------------------------------- */

static void node_topic_configured(struct node *node, struct view topic)
{
    const struct image_topic *known = image_topic(node->image, topic);
    struct log_config config;
    if (known == NULL) return;
    topic_log_config(node, topic, &config);
    for (int32_t i = 0; i < known->partition_count; i++) {
        struct replica *replica = replica_find(node, known->id, i);
        if (replica != NULL && replica->log != NULL) log_configure(replica->log, &config);
    }
}

static void node_broker_configured(struct node *node)
{
    dynamic_apply(node);
    for (const struct image_object *object = NULL;
         (object = image_next(node->image, IMAGE_TOPIC, object)) != NULL;)
        node_topic_configured(node, ((const struct image_topic *)object)->name);
}

static void node_image_changed(struct image_watch *watch, const struct image_change *change)
{
    struct node *node = container_of(watch, struct node, image_watch);
    replicas_follow(node, change);
    if (change->kind == IMAGE_QUOTA) quotas_follow(node, change);
    controller_follow(node, change);
    lifecycle_follow(node, change);
    if (node->coordinator != NULL) coordinator_follow(node, change);
    if (change->kind != IMAGE_CONFIGS) return;
    node->config_changes++;
    client_metrics_follow(node, change);
    const struct image_configs *configs =
        (const struct image_configs *)(change->now != NULL ? change->now : change->before);
    if (configs->type == IMAGE_RESOURCE_TOPIC)
        node_topic_configured(node, configs->resource);
    else if (configs->type == IMAGE_RESOURCE_BROKER)
        node_broker_configured(node);
}

/* ---- ApiVersions ----------------------------------------------------------------------------- */

static void versions_finalized(struct api_versions_response *out, struct view name, int16_t level)
{
    struct api_versions_response_finalized_feature_key *item =
        &out->finalized_features.items[out->finalized_features.count++];
    wire_struct_defaults(&wire_api_versions_response_finalized_feature_key_shape, item);
    item->name = name;
    item->max_version_level = item->min_version_level = level;
}

static void versions_features(struct node *node,
                              struct request *request,
                              struct api_versions_response *out)
{
    uint32_t count;
    const struct image_range *ranges = cluster_features(&count);
    uint32_t finalized = image_count(node->image, IMAGE_FEATURE);
    out->supported_features.items =
        broker_array(request, count, sizeof(*out->supported_features.items));
    out->finalized_features.items =
        broker_array(request, finalized + 2, sizeof(*out->finalized_features.items));
    if (out->supported_features.items == NULL || out->finalized_features.items == NULL) return;
    for (uint32_t i = 0; i < count; i++) {
        if (request->version < 4 && ranges[i].min == 0)
            continue; /* Older readers stumble over a zero. */
        struct api_versions_response_supported_feature_key *item =
            &out->supported_features.items[out->supported_features.count++];
        wire_struct_defaults(&wire_api_versions_response_supported_feature_key_shape, item);
        item->name = ranges[i].name;
        item->min_version = ranges[i].min;
        item->max_version = ranges[i].max;
    }
    for (const struct image_object *object = NULL;
         (object = image_next(node->image, IMAGE_FEATURE, object)) != NULL;) {
        const struct image_feature *feature = (const struct image_feature *)object;
        versions_finalized(out, feature->name, feature->level);
    }
    int16_t kraft_version = node->kraft_version;
    if (kraft_version > 0) versions_finalized(out, VIEW("kraft.version"), kraft_version);
    out->finalized_features_epoch = node->image_offset - 1;
}

static int16_t node_api_versions(struct shard *shard, struct request *request, void *response)
{
    const struct api_versions_request *in = request->message;
    struct node *node = node_of(shard);
    bool asks_broker = request->listener->kind == WIRE_BROKER; /* A controller does not look. */
    if (asks_broker && request->version >= 5 && (!in->cluster_id.null || in->node_id != -1)) {
        if (in->cluster_id.null || in->node_id == -1) return KAFKA_INVALID_REQUEST;
        if (!view_equal(in->cluster_id, node_cluster_id(node)) ||
            in->node_id != node->options.node_id)
            return KAFKA_REBOOTSTRAP_REQUIRED;
    }
    if (request->version >= 3) versions_features(node, request, response);
    return KAFKA_NONE;
}

/* ---- the shard ------------------------------------------------------------------------------- */

/* Has a log directory so much unsynced that sockets are not to be read? */
static bool node_logs_busy(const struct node *node)
{
    for (uint32_t i = 0; i < logs_dir_count(node->logs); i++)
        if (logs_dir_busy(node->logs, i)) return true;
    return false;
}

/* Assigned and not durable yet, in all directories. */
static uint64_t node_unsynced_bytes(const struct node *node)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < logs_dir_count(node->logs); i++) {
        struct log_dir_info info;
        logs_dir_info(node->logs, i, &info);
        bytes += info.unsynced_bytes;
    }
    return bytes;
}

/* The logs' turn. Did it make room that produces wait for, of which no event tells? The end of a
 * commit is one: until it, to try again would be to spin. */
static bool node_logs_turn(struct node *node, int64_t *next_ms)
{
    if (list_empty(&node->produces_busy)) {
        *next_ms = logs_turn(node->logs);
        return false;
    }
    bool busy = node_logs_busy(node);
    uint64_t unsynced_bytes = node_unsynced_bytes(node);
    *next_ms = logs_turn(node->logs);
    if (node_logs_busy(node)) return false;
    return busy || node_unsynced_bytes(node) < unsynced_bytes;
}

static uint32_t node_logs_full(const struct node *node)
{
    uint32_t full = 0;
    for (uint32_t i = 0; i < logs_dir_count(node->logs); i++)
        full += logs_dir_full(node->logs, i);
    return full;
}

/* What this turn gathered: steps of the controller, fetches that were woken, then the logs' writes.
 */
static void node_turn_end(struct shard *shard)
{
    struct node *node = node_of(shard);
    metric_set(&shard->metrics, METRIC_LOG_DIRECTORIES_FULL, node_logs_full(node));
    int64_t next = INT64_MAX;
    if (node->controller != NULL) next = controller_turn(node);
    if (node->listeners_due) listening_follow(node);
    if (node->lifecycle != NULL) lifecycle_image_moved(node);
    if (node->coordinator != NULL) coordinator_turn(node);
    recovered_turn(node);
    fetch_turn_end(node);
    if (!node_logs_busy(node) && !list_empty(&node->produces_busy)) produce_turn_end(node);
    shard_hold(shard, node_logs_busy(node));
    int64_t logs_next;
    bool moved = node_logs_turn(node, &logs_next);
    next = sooner_ms(next, sooner_ms(shards_turn(node), replicas_turn(node)));
    node->next_ms = sooner_ms(next, sooner_ms(logs_next, placed_turn(node)));
    /* The logs tell of ends that moved only now: who waits for them acts in a turn of its own, at
     * once. */
    if (node->controller != NULL && controller_log_moved_since(node)) moved = true;
    if (!list_empty(&node->recovered) && node->broker_epoch >= 0 && !node->peers[0]->closing)
        moved = true;
    if (moved || !list_empty(&node->fetches_due)) node->next_ms = 0;
}

/* Without a setting, bounded all the same: Kafka's default is no bound. */
static uint64_t node_receive_budget(const struct node *node)
{
    int64_t bytes = broker_setting_number(node, "queued.max.request.bytes");
    uint64_t budget = bytes > 0 ? (uint64_t)bytes : NET_RECEIVE_BUDGET_BYTES;
    uint64_t most = (uint64_t)broker_setting_number(node, "dohle.memory.max") / 4;
    if (most > 0) budget = MIN(budget, most);
    return budget / node->count;
}

/* No request may be more than half of the receive budget of a bounded memory. */
static uint32_t node_request_max(const struct node *node)
{
    int64_t bytes = broker_setting_number(node, "socket.request.max.bytes");
    int64_t most = broker_setting_number(node, "dohle.memory.max") / 8;
    return (uint32_t)(most > 0 ? MIN(bytes, most) : bytes);
}

static int node_shard(struct node *node)
{
    struct shard_options options = {
        .io = node->io,
        .say = node->say,
        .index = node->index,
        .count = node->count,
        .peers = node->shards,
        .handlers = node->count > 1 ? node->peers[0]->handlers : broker_handlers,
        .handler_count = broker_handler_count,
        .settings =
            {
                       .request_max_bytes = node_request_max(node),
                       .limits = {UINT32_MAX, UINT32_MAX, NULL, 0}, /* Until dynamic_apply(). */
                .idle_ms = broker_setting_number(node, "connections.max.idle.ms"),
                       .receive_budget_bytes = node_receive_budget(node),
                       .slow_request_ms = broker_setting_number(node, "dohle.request.slow.ms"),
                       .legacy_versions =
                    view_is(broker_setting(node, VIEW("dohle.legacy.protocols")), "true"),
                       .unstable_versions =
                    view_is(broker_setting(node, VIEW("unstable.api.versions.enable")), "true"),
                       .log_requests = view_is(broker_setting(node, VIEW("dohle.request.log")), "all"),
                       },
        .hooks = {.node = node,
                       .turn_end = node_turn_end,
                       .api_versions = node_api_versions,
                       .charge = quotas_charge,
                       .admit = admission_admit                         },
    };
    int result = shard_open(&options, &node->shard);
    node->shards[node->index] = node->shard;
    return result;
}

/* ---- life ------------------------------------------------------------------------------------ */

uint32_t node_turn_shard(struct node *node, uint32_t index, int64_t until_ms)
{
    struct node *mine = node->peers[index];
    return shard_turn(mine->shard, MIN(until_ms, mine->next_ms));
}

/* Several shards of one thread wait for each other a millisecond at a time. */
uint32_t node_turn(struct node *node, int64_t until_ms)
{
    uint32_t happened = 0;
    if (node->count == 1) return node_turn_shard(node, 0, until_ms);
    for (uint32_t i = 0; i < node->count; i++) {
        int64_t soon_ms = io_now_us(node->peers[i]->io) / 1000 + 1;
        happened += node_turn_shard(node, i, MIN(until_ms, soon_ms));
    }
    return happened;
}

static int node_become_ready(struct node *node)
{
    int64_t most_ms = broker_setting_number(node, "initial.broker.registration.timeout.ms");
    int64_t limit_ms = io_now_ms(node->io) + most_ms;
    if (!node->options.controller_only && !lifecycle_start(node)) return -ENOMEM;
    while (node_not_ready(node) != NULL) {
        const char *failure = controller_failure(node);
        if (failure == NULL) failure = lifecycle_failure(node);
        if (failure != NULL) {
            say(node->say, SAY_ERROR, SAY_IN_NODE, "could not start: %s", failure);
            return -EIO;
        }
        if (io_now_ms(node->io) >= limit_ms) {
            say(node->say, SAY_ERROR, SAY_IN_NODE, "not ready after %lld ms: %s",
                (long long)most_ms, node_not_ready(node));
            return -ETIMEDOUT;
        }
        node_turn(node, limit_ms);
    }
    for (uint32_t i = 0; i < node->count && !node->options.controller_only; i++)
        replicas_settle(node->peers[i]);
    return 0;
}

static int node_open_parts(struct node *first)
{
    int result = directories_open(first);
    for (uint32_t i = 0; result == 0 && i < first->count; i++) {
        struct node *node = first->peers[i];
        memcpy(node->cluster_id, first->cluster_id, sizeof(node->cluster_id));
        result = node_logs(node);
        if (result == 0) result = node_shard(node);
        if (result == 0) result = coordinator_open(node);
    }
    if (result == 0) result = controller_open(first);
    for (uint32_t i = 0; result == 0 && i < first->count; i++)
        first->peers[i]->kraft_version = controller_kraft_version(first);
    if (result == 0) result = listening_open(first);
    for (uint32_t i = 0; result == 0 && i < first->count; i++)
        dynamic_apply(first->peers[i]);
    return result == 0 ? node_become_ready(first) : result;
}

static void node_free(struct node *node)
{
    if (!list_empty(&node->image_watch.link)) image_watch_remove(node->image, &node->image_watch);
    shards_unpublish(node, &node->published);
    fetch_sessions_free(&node->sessions);
    quotas_close(node);
    admission_close(node);
    moves_close(node);
    client_metrics_close(node);
    dynamic_close(node);
    listening_close(node);
    image_free(node->image);
    mem_put(node->mem, node, sizeof(*node));
}

/* One shard's part; `first` NULL: it is the first itself. NULL: no memory. */
static struct node *node_new(const struct node_options *options, struct node *first, uint32_t index)
{
    struct io *io = options->ios != NULL ? options->ios[index] : options->io;
    struct node *node = mem_get(io_mem(io), sizeof(*node));
    if (node == NULL) return NULL;
    node->options = *options;
    node->io = io;
    node->mem = io_mem(io);
    node->say = options->say;
    node->index = index;
    node->count = MAX(options->shard_count, 1u);
    node->peers = first != NULL ? first->peers : NULL;
    node->shards = first != NULL ? first->shards : NULL;
    node->broker_epoch = -1;
    node->next_ms = INT64_MAX;
    node->config_changes = 1;
    node->fetch_max_bytes.name = "fetch.max.bytes";
    list_init(&node->producer_id_waits);
    list_init(&node->fetches_due);
    list_init(&node->produces_busy);
    list_init(&node->creating);
    list_init(&node->recovered);
    list_init(&node->image_watch.link);
    list_init(&node->published);
    replicas_init(node);
    node->image = image_new(node->mem, io_random(io, IO_RANDOM_HASH));
    arena_init(&node->host_limits, node->mem, 0);
    if (node->image == NULL || quotas_open(node) != 0 || client_metrics_open(node) != 0 ||
        (index == 0 && admission_open(node) != 0)) {
        admission_close(node);
        client_metrics_close(node);
        quotas_close(node);
        image_free(node->image);
        return mem_put(node->mem, node, sizeof(*node));
    }
    int64_t slots = broker_setting_number(node, "max.incremental.fetch.session.cache.slots");
    fetch_sessions_init(&node->sessions, node->mem, (uint32_t)slots / node->count,
                        io_random(io, IO_RANDOM_HASH));
    node->sessions.owner = index;
    node->sessions.owners = node->count;
    node->image_watch.changed = node_image_changed;
    image_watch_add(node->image, &node->image_watch);
    return node;
}

/* All shards' parts. */
static int node_new_all(const struct node_options *options, struct node *first)
{
    first->peers = mem_get(first->mem, first->count * sizeof(struct node *));
    first->shards = mem_get(first->mem, first->count * sizeof(struct shard *));
    first->handlers = mem_get(first->mem, broker_handler_count * sizeof(first->handlers[0]));
    if (first->peers == NULL || first->shards == NULL || first->handlers == NULL) return -ENOMEM;
    spread_handlers(broker_handlers, broker_handler_count, first->handlers);
    first->peers[0] = first;
    for (uint32_t i = 1; i < first->count; i++) {
        first->peers[i] = node_new(options, first, i);
        if (first->peers[i] == NULL) return -ENOMEM;
    }
    return 0;
}

int node_open(const struct node_options *options, struct node **out)
{
    assert(options->shard_count <= 1 || options->ios != NULL);
    struct node *first = node_new(options, NULL, 0);
    int result = first == NULL ? -ENOMEM : node_new_all(options, first);
    if (result == 0) result = node_open_parts(first);
    if (result == -ENOMEM)
        say(options->say, SAY_ERROR, SAY_IN_NODE,
            "not enough memory to start; see dohle.memory.max");
    if (result != 0) {
        node_close(first);
        return result;
    }
    *out = first;
    return 0;
}

void node_stop(struct node *node)
{
    node->stopping = true;
    for (uint32_t i = 0; i < node->count; i++)
        io_wake(node->peers[i]->io);
}

void node_run_shard(struct node *node, uint32_t index)
{
    while (!node->stopping)
        node_turn_shard(node, index, INT64_MAX);
}

void node_run(struct node *node)
{
    node_run_shard(node, 0);
}

/* ---- the end
 * --------------------------------------------------------------------------------- */

static uint32_t node_requests(const struct node *first)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < first->count; i++)
        count += shard_request_count(first->peers[i]->shard);
    return count;
}

/* Requests in process get their answers, for a while; then the logs run out. */
static void node_drain(struct node *first)
{
    int64_t limit_ms = io_now_ms(first->io) + NODE_DRAIN_MS;
    shard_unlisten(first->shard);
    node_turn(first,
              io_now_ms(first->io)); /* Answers that the parts gave as they stopped go out. */
    while (node_requests(first) > 0 && io_now_ms(first->io) < limit_ms) {
        node_turn(first, io_now_ms(first->io) + 10);
        if (node_requests(first) == 0) break;
        limit_ms = MIN(limit_ms, io_now_ms(first->io) + 200); /* Long polls are not waited for. */
    }
}

static bool node_quiet(const struct node *first)
{
    for (uint32_t i = 0; i < first->count; i++)
        if (!shard_quiet(first->peers[i]->shard)) return false;
    return true;
}

/* Everything that goes between shards comes home: errands, connections, letters. So does what a
 * request has asked of the disk and cannot call back. */
static void node_disconnect(struct node *first)
{
    for (uint32_t i = 0; i < first->count; i++)
        shard_disconnect(first->peers[i]->shard);
    while (!node_quiet(first))
        (void)node_turn(first, INT64_MAX);
}

static bool node_logs_idle(const struct node *first, uint32_t open)
{
    for (uint32_t i = 0; i < open; i++)
        if (!logs_idle(first->peers[i]->logs)) return false;
    return true;
}

static void node_close_logs(struct node *first)
{
    uint32_t open = 0;
    while (open < first->count && first->peers[open]->logs != NULL)
        open++;
    for (uint32_t i = 0; i < open; i++)
        logs_stop(first->peers[i]->logs);
    /* A turn of the logs may have been the last thing to do. */
    for (bool idle = open == 0; !idle;) {
        for (uint32_t i = 0; i < open; i++) {
            struct node *node = first->peers[i];
            int64_t until_ms = logs_turn(node->logs);
            if (first->count > 1) until_ms = MIN(until_ms, io_now_us(node->io) / 1000 + 1);
            if (!logs_idle(node->logs)) io_turn(node->io, until_ms);
        }
        idle = node_logs_idle(first, open);
    }
    while (open-- > 1)
        logs_close_part(first->peers[open]->logs);
    if (first->logs != NULL) logs_close(first->logs, first->broker_epoch);
}

static bool node_is_open(const struct node *first)
{
    for (uint32_t i = 0; i < first->count; i++)
        if (first->peers[i] == NULL || first->peers[i]->shard == NULL ||
            first->peers[i]->logs == NULL || first->peers[i]->coordinator == NULL)
            return false;
    return first->controller != NULL;
}

static void node_close_parts(struct node *first)
{
    bool open = node_is_open(first);
    first->closing = true;
    for (uint32_t i = 0; i < first->count; i++)
        if (first->peers[i] != NULL) coordinator_stop(first->peers[i]);
    if (open) node_drain(first);
    controller_stop(first);
    if (open) node_disconnect(first);
    first->resting = true;
    for (uint32_t i = first->count; i-- > 0;) {
        struct node *node = first->peers[i];
        if (node == NULL) continue;
        coordinator_close(node);
        if (node->shard != NULL) node->shard = shard_close(node->shard);
    }
    if (first->controller != NULL) controller_close(first);
    lifecycle_stop(first);
    for (uint32_t i = 0; i < first->count; i++)
        if (first->peers[i] != NULL) replicas_free(first->peers[i]);
    node_close_logs(first);
}

struct node *node_close(struct node *node)
{
    if (node == NULL) return NULL;
    struct mem *mem = node->mem;
    uint32_t count = node->count;
    struct node **peers = node->peers;
    if (peers != NULL && peers[0] != NULL) node_close_parts(node);
    mem_put(mem, node->shards, count * sizeof(struct shard *));
    mem_put(mem, node->handlers, broker_handler_count * sizeof(node->handlers[0]));
    for (uint32_t i = 1; peers != NULL && i < count; i++)
        if (peers[i] != NULL) node_free(peers[i]);
    mem_put(mem, peers, count * sizeof(struct node *));
    node_free(node);
    return NULL;
}

void node_address(const struct node *node, struct io_address *out)
{
    *out = (struct io_address){0};
    for (uint32_t i = 0; i < node->options.listener_count; i++) {
        if (node->listeners[i] == NULL) continue;
        if (node->options.listeners[i].controller && !node->options.controller_only) continue;
        *out = node->listeners[i]->bound[0];
        return;
    }
}

const char *node_not_ready(const struct node *node)
{
    const char *missing = controller_not_ready(node);
    if (missing == NULL) missing = shards_not_following(node);
    if (missing != NULL || node->options.controller_only) return missing;
    return lifecycle_not_ready(node);
}

struct view node_cluster_id(const struct node *node)
{
    return view_of_string(node->cluster_id);
}
