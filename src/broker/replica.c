/* replica.c - see replica.h. */
#include "broker/replica.h"

#include "broker/broker.h"
#include "broker/coordinator.h"
#include "broker/moves.h"
#include "broker/placed.h"
#include "broker/shards.h"

static struct view view_of_key(const struct replica_key *key)
{
    return view_of(key, sizeof(*key));
}

void replicas_init(struct node *node)
{
    map_init(&node->replicas.by_id, node->mem, io_random(node->io, IO_RANDOM_HASH));
    list_init(&node->replicas.all);
}

static void replica_ends(const struct replica *replica, struct partition_ends *ends)
{
    ends->start = log_start(replica->log);
    ends->assigned = log_end_assigned(replica->log);
    ends->written = log_end_written(replica->log);
    ends->durable = log_end_durable(replica->log);
}

static void replica_wake(struct replica *replica, int events)
{
    /* A wait that is woken may end its request, which may take other waits off: walk a copy of the
     * list, so that each is told once and new ones wait for the next time. */
    struct list told;
    list_init(&told);
    if (list_empty(&replica->waits)) return;
    list_add_before(&replica->waits, &told);
    list_remove(&replica->waits);
    struct list *node;
    while ((node = told.next) != &told) {
        list_remove(node);
        list_append(&replica->waits, node);
        struct replica_wait *wait = container_of(node, struct replica_wait, link);
        wait->wake(wait, replica, events);
    }
}

int32_t replica_min_insync(struct replica *replica)
{
    const struct node *node = replica->node;
    assert(replica->log != NULL);
    if (replica->min_insync_seen != node->config_changes) {
        replica->min_insync =
            (int32_t)topic_setting_number(node, log_topic(replica->log), "min.insync.replicas");
        replica->min_insync_seen = node->config_changes;
    }
    return replica->min_insync;
}

/* The log's ends may let the high watermark rise. */
static void replica_advance(struct replica *replica)
{
    struct partition_ends ends;
    if (!replica->began || partition_role(replica->state) != PARTITION_LEADER) return;
    replica_ends(replica, &ends);
    if (partition_local_end(replica->state, &ends, replica_min_insync(replica)))
        log_set_high_watermark(replica->log, partition_high_watermark(replica->state));
}

void replica_moved(struct replica *replica)
{
    replica_advance(replica);
    log_nudge(replica->log);
}

struct replica *replica_find(const struct node *node, struct uuid topic_id, int32_t partition)
{
    struct replica_key key = {topic_id, partition};
    struct map_node *found = map_find(&node->replicas.by_id, view_of_key(&key));
    return found == NULL ? NULL : container_of(found, struct replica, by_id);
}

static void replica_free(struct replica *replica)
{
    struct node *node = replica->node;
    assert(list_empty(&replica->waits));
    map_remove(&node->replicas.by_id, &replica->by_id);
    list_remove(&replica->link);
    list_remove(&replica->recovered);
    list_remove(&replica->placed);
    if (replica->log != NULL) log_watch_remove(&replica->watch);
    partition_free(replica->state);
    mem_put(node->mem, replica, sizeof(*replica));
}

void replicas_free(struct node *node)
{
    list_foreach (link, &node->replicas.all)
        replica_free(container_of(link, struct replica, link));
    map_free(&node->replicas.by_id);
}

static void replica_log_moved(struct log_watch *watch, struct log *log, int events);

static void replica_attach(struct replica *replica, const struct image_topic *topic, bool is_new)
{
    struct node *node = replica->node;
    struct log_config config;
    topic_log_config(node, topic->name, &config);
    struct logs_replica want = {
        .topic = topic->name,
        .partition = replica->partition,
        .topic_id = topic->id,
        .config = &config,
        .directory = moves_wish(node, topic->name, replica->partition),
        .assigned = placed_recorded(node, topic, replica->partition),
        .is_new = is_new,
    };
    replica->log_error = logs_replica(node->logs, &want, &replica->log);
    if (replica->log_error != LOG_OK) {
        replica->log = NULL;
        if (replica->log_error == LOG_E_MEMORY) return;
        char name[TOPIC_NAME_MAX + 8];
        say(node->say, SAY_ERROR, SAY_IN_LOG,
            "partition %s-%d is not usable here: its log directory is offline or its folder is gone",
            say_bytes(topic->name, name, sizeof(name)), replica->partition);
        return;
    }
    replica->watch.moved = replica_log_moved;
    log_watch_add(replica->log, &replica->watch);
    placed_note(replica);
}

static struct replica *replica_make(struct node *node,
                                    const struct image_topic *topic,
                                    int32_t partition,
                                    bool is_new)
{
    struct replica *replica = mem_get(node->mem, sizeof(*replica));
    struct partition_options options = {
        .node_id = node->options.node_id,
        .replica_lag_ms = broker_setting_number(node, "replica.lag.time.max.ms"),
        .count_written = node->options.ack_replicated,
    };
    if (replica == NULL) return NULL;
    *replica = (struct replica){
        .node = node, .key = {topic->id, partition}
    };
    replica->by_id.key = view_of_key(&replica->key);
    list_init(&replica->waits);
    list_init(&replica->opening);
    list_init(&replica->recovered);
    list_init(&replica->placed);
    list_init(&replica->watch.link);
    replica->state = partition_new(node->mem, &options);
    if (replica->state == NULL || !map_insert(&node->replicas.by_id, &replica->by_id)) {
        partition_free(replica->state);
        return mem_put(node->mem, replica, sizeof(*replica));
    }
    list_append(&node->replicas.all, &replica->link);
    replica_attach(replica, topic, is_new);
    if (replica->log_error == LOG_E_MEMORY) {
        replica_free(replica);
        return NULL;
    }
    return replica;
}

static void replica_delete(struct replica *replica)
{
    struct log *log = replica->log;
    replica_wake(replica, LOG_EVENT_FAILED);
    list_foreach (link, &replica->waits)
        list_remove(link);
    if (log != NULL) log_watch_remove(&replica->watch);
    replica->log = NULL;
    if (log != NULL) logs_delete(replica->node->logs, log, NULL);
    replica_free(replica);
}

/* The image's word on our part. Without an open log the ends are not known: it is taken when the
 * log is first used (replica_open). True: who waits is to be told. */
static bool replica_lead(struct replica *replica)
{
    bool moved = false;
    struct node *node = replica->node;
    const struct image_topic *topic = image_topic_by_id(node->image, replica->topic_id);
    const struct image_partition *state =
        topic == NULL ? NULL : image_partition(topic, replica->partition);
    if (state == NULL || replica->log == NULL) return false;
    struct partition_ends ends;
    replica_ends(replica, &ends);
    enum partition_change change = partition_follow(
        replica->state, state, &ends, log_high_watermark(replica->log), io_now_ms(node->io));
    if (change == PARTITION_NEW_EPOCH || !replica->began) {
        bool leads = partition_role(replica->state) == PARTITION_LEADER;
        if (leads)
            replica->began =
                log_epoch_begin(replica->log, partition_leader_epoch(replica->state)) == LOG_OK;
        /* Who waits would come back here for nothing: the log's next event tries again. */
        moved = replica->began || (!leads && change == PARTITION_NEW_EPOCH);
        if (moved) replica_advance(replica);
    }
    if (replica->began) recovered_note(replica);
    return moved;
}

static int replica_take(struct replica *replica, bool *moved)
{
    *moved = false;
    if (replica->log == NULL) return replica->log_error;
    int result = log_open(replica->log);
    replica->opened = replica->opened || result == LOG_OK;
    if (result == LOG_OK && !replica->began) *moved = replica_lead(replica);
    return result;
}

int replica_open(struct replica *replica)
{
    bool moved;
    int result = replica_take(replica, &moved);
    if (moved) replica_moved(replica);
    return result;
}

static void replica_log_moved(struct log_watch *watch, struct log *log, int events)
{
    struct replica *replica = container_of(watch, struct replica, watch);
    bool moved;
    (void)log;
    if (events & LOG_EVENT_READY) (void)!replica_take(replica, &moved);
    replica_advance(replica);
    replica_wake(replica, events);
}

void replicas_follow(struct node *node, const struct image_change *change)
{
    if (change->kind != IMAGE_PARTITION || !node->replicas.following) return;
    const struct image_partition *now = NULL;
    if (change->now != NULL) now = (const struct image_partition *)change->now;
    struct replica *replica = replica_find(node, change->topic->id, change->partition);
    if (shards_owner(node, change->topic->name, change->partition) != node->index) return;
    bool ours =
        now != NULL && image_ids_have(image_list(now, IMAGE_REPLICAS), node->options.node_id);
    if (!ours) {
        if (replica != NULL) replica_delete(replica);
        return;
    }
    if (replica == NULL) {
        /* A partition that the log has just created (leader epoch 0) may be without files. */
        bool is_new = now->leader_epoch == 0 && node->broker_epoch >= 0;
        replica = replica_make(node, change->topic, change->partition, is_new);
        if (replica == NULL) {
            replica_unmade(node, "a replica");
            return;
        }
    }
    if (replica->opened) { /* Maybe before we led: it is taken now. */
        if (replica_lead(replica)) replica_wake(replica, 0);
    } else if (replica->log != NULL && !log_has_files(replica->log))
        recovered_note(replica); /* There is nothing to recover. */
}

/* `each` for every partition of the image, as if it were new. */
static void replicas_each(struct node *node,
                          void (*each)(struct node *node, const struct image_change *change))
{
    for (const struct image_object *object = NULL;
         (object = image_next(node->image, IMAGE_TOPIC, object)) != NULL;) {
        const struct image_topic *topic = (const struct image_topic *)object;
        for (int32_t i = 0; i < topic->partition_count; i++) {
            const struct image_partition *now = image_partition(topic, i);
            if (now == NULL) continue;
            struct image_change change = {.kind = IMAGE_PARTITION,
                                          .topic = topic,
                                          .partition = i,
                                          .now = (const struct image_object *)now};
            each(node, &change);
        }
    }
}

void replicas_loaded(struct node *node)
{
    node->replicas.following = true;
    replicas_each(node, replicas_follow);
}

static void replica_try(struct node *node, const struct image_change *change)
{
    if (replica_find(node, change->topic->id, change->partition) == NULL)
        replicas_follow(node, change);
    if (node->coordinator != NULL && view_is(change->topic->name, COORDINATOR_TOPIC))
        coordinator_follow(node, change);
}

void replica_unmade(struct node *node, const char *what)
{
    if (follow_again_set(&node->replicas.unmade, io_now_ms(node->io)))
        say(node->say, SAY_WARN, SAY_IN_LOG,
            "no memory for %s; it is tried again until there is some (dohle.memory.max)", what);
}

int64_t replicas_turn(struct node *node)
{
    struct follow_again *unmade = &node->replicas.unmade;
    int64_t tried_ms = unmade->at_ms;
    if (tried_ms == 0 || tried_ms > io_now_ms(node->io))
        return tried_ms == 0 ? INT64_MAX : tried_ms;
    replicas_each(node, replica_try);
    if (unmade->at_ms != tried_ms) return unmade->at_ms;
    say(node->say, SAY_INFO, SAY_IN_LOG, "there was memory for all replicas, after %lld ms",
        (long long)(io_now_ms(node->io) - unmade->since_ms));
    unmade->at_ms = 0;
    return INT64_MAX;
}

static bool replica_given(const struct node *node, const struct log *log)
{
    if (view_is(log_topic(log), "__cluster_metadata")) return true; /* The quorum's. */
    const struct image_topic *topic = image_topic(node->image, log_topic(log));
    const struct image_partition *state =
        topic == NULL ? NULL : image_partition(topic, log_partition(log));
    return state != NULL &&
           image_ids_have(image_list(state, IMAGE_REPLICAS), node->options.node_id);
}

/* The first shard's image is whole; this one's may be behind, and replicas are made by it. */
static bool replica_settle(void *context, struct log *log)
{
    struct node *node = context;
    char name[TOPIC_NAME_MAX + 8];
    if (replica_given(node, log) || replica_given(node->peers[0], log)) return true;
    say(node->say, SAY_WARN, SAY_IN_LOG,
        "partition %s-%d is on the disk and not this node's by the metadata: its folder is renamed "
        "to *-stray and left there",
        say_bytes(log_topic(log), name, sizeof(name)), log_partition(log));
    logs_stray(node->logs, log, NULL);
    return true;
}

void replicas_settle(struct node *node)
{
    logs_each(node->logs, replica_settle, node);
}

int16_t replica_leader(struct node *node,
                       const struct image_topic *topic,
                       int32_t partition,
                       int32_t epoch,
                       struct replica **out)
{
    const struct image_partition *state = image_partition(topic, partition);
    if (state == NULL) return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    *out = replica_find(node, topic->id, partition);
    if (*out == NULL) return KAFKA_NOT_LEADER_OR_FOLLOWER;
    if ((*out)->log == NULL) return KAFKA_KAFKA_STORAGE_ERROR;
    if ((*out)->began) return partition_check_leader((*out)->state, epoch);
    if (state->leader != node->options.node_id) return KAFKA_NOT_LEADER_OR_FOLLOWER;
    if (epoch >= 0 && epoch < state->leader_epoch) return KAFKA_FENCED_LEADER_EPOCH;
    if (epoch > state->leader_epoch) return KAFKA_UNKNOWN_LEADER_EPOCH;
    return KAFKA_NONE;
}

int16_t replica_error(int log_result)
{
    switch (log_result) {
    case LOG_OK:
    case LOG_DUPLICATE: return KAFKA_NONE;
    case LOG_E_INVALID: return KAFKA_INVALID_RECORD;
    case LOG_E_SEGMENT: return KAFKA_RECORD_LIST_TOO_LARGE;
    case LOG_E_SEQUENCE: return KAFKA_OUT_OF_ORDER_SEQUENCE_NUMBER;
    case LOG_E_FENCED: return KAFKA_INVALID_PRODUCER_EPOCH;
    case LOG_E_TXN_STATE: return KAFKA_INVALID_TXN_STATE;
    case LOG_E_COORDINATOR_FENCED: return KAFKA_TRANSACTION_COORDINATOR_FENCED;
    case LOG_E_OUT_OF_RANGE: return KAFKA_OFFSET_OUT_OF_RANGE;
    case LOG_E_DELETED: return KAFKA_NOT_LEADER_OR_FOLLOWER;
    case LOG_E_FULL:
    case LOG_E_DAMAGED: return KAFKA_KAFKA_STORAGE_ERROR;
    case LOG_E_BUSY:
    case LOG_E_MEMORY: return KAFKA_NOT_ENOUGH_REPLICAS; /* Retriable for every client. */
    default: return log_result < 0 ? KAFKA_KAFKA_STORAGE_ERROR : KAFKA_UNKNOWN_SERVER_ERROR;
    }
}

void replica_wait_on(struct replica *replica, struct replica_wait *wait)
{
    list_append(&replica->waits, &wait->link);
}

void replica_wait_end(struct replica_wait *wait)
{
    list_remove(&wait->link);
}
