/* controller.c - see controller.h.
 *
 * Calls are decided one after the other as they come. The records of a step are appended to the
 * metadata log as one batch and applied to the controller's own image; when the batch is durable
 * the quorum's high watermark passes it, it is applied to the broker's image, and the call is
 * answered. What the log does not take for lack of space or memory is refused, what there is no
 * memory to apply is tried again (controller_append.c). A failed directory or a record that does
 * not hold ends the control part: what the log holds is then not known, and a restart reads it. */
#include "broker/controller.h"

#include <errno.h>
#include <stdio.h>

#include "broker/controller_inside.h"
#include "broker/controller_steps.h"
#include "broker/dynamic.h"
#include "broker/quotas.h"
#include "broker/shards.h"
#include "gen/broker_heartbeat_request.h"

#define BUSY_MS 5 /* Until a call is decided again that the log had no room for at the moment. */

/* ---- the quorum's view of the log ------------------------------------------------------------ */

static void log_epoch_lookup(void *context, int32_t epoch, int32_t *found, int64_t *end)
{
    struct controller *c = context;
    struct log_epoch_end answer = log_epoch_end(c->log, epoch);
    *found = answer.epoch;
    *end = answer.end;
}

static void quorum_log_of(struct controller *c, struct quorum_log *out)
{
    *out = (struct quorum_log){
        .start = log_start(c->log),
        .end = log_end_assigned(c->log),
        .durable = log_end_durable(c->log),
        .last_epoch = MAX(log_epoch_latest(c->log), 0),
        .snapshot_end = c->newest.end > 0 ? c->newest.end : -1,
        .snapshot_epoch = c->newest.epoch,
        .first_snapshot_end = c->oldest.end > 0 ? c->oldest.end : -1,
        .first_snapshot_epoch = c->oldest.epoch,
        .epoch_end = log_epoch_lookup,
        .context = c,
    };
}

const struct quorum_event *controller_event(struct controller *c, struct controller_moment *moment)
{
    quorum_log_of(c, &moment->log);
    moment->event = (struct quorum_event){
        .log = &moment->log,
        .now_ms = io_now_ms(c->node->io),
        .wall_ms = io_wall_ms(c->node->io),
        .listener = VIEW("CONTROLLER"),
        .arena = &c->arena,
    };
    return &moment->event;
}

void controller_fail(struct controller *c, const char *why)
{
    if (c->failed != NULL) return;
    c->failed = why;
    say(c->node->say, SAY_ERROR, SAY_IN_CONTROLLER,
        "the control part stops: %s; restart the node to read its log anew", why);
}

/* ---- loading ------------------------------------------------------------------------------ */

struct loading {
    struct controller *controller;
    struct arena *arena;
};

/* The other shards are not turning yet: their images are loaded along. */
static bool loading_record(void *context,
                           const struct batch_header *batch,
                           int64_t offset,
                           bool control,
                           struct view key,
                           struct view value)
{
    struct loading *loading = context;
    struct controller *c = loading->controller;
    if (control) return quorum_control(c->quorum, key, value, offset);
    struct step_record record;
    int64_t base = batch->base_offset;
    arena_reset(loading->arena);
    if (!step_decode(value, loading->arena, &record)) return false;
    for (uint32_t i = 0; i < c->node->count; i++)
        if (image_apply(c->node->peers[i]->image, &record, offset, base) != IMAGE_OK) return false;
    return image_apply(cluster_image(c->cluster), &record, offset, base) == IMAGE_OK;
}

static void controller_answer(struct controller *c, int64_t high_watermark)
{
    while (!list_empty(&c->waits)) {
        struct controller_call *call = container_of(c->waits.next, struct controller_call, link);
        if (call->wait_offset > high_watermark && c->failed == NULL) return;
        bool reached = call->wait_offset <= high_watermark;
        list_remove(&call->link);
        call->done(call, reached ? KAFKA_NONE : KAFKA_NOT_CONTROLLER);
    }
}

/* ---- the quorum's effects -------------------------------------------------------------------- */

static void effect_persist(struct controller *c, const struct quorum_stored *stored)
{
    struct view text = quorum_stored_write(c->quorum, stored, &c->arena);
    if (text.null || metadata_quorum_write(c->node->io, c->dir, text) != 0)
        controller_fail(c, "quorum-state cannot be written");
    else
        quorum_persisted(c->quorum);
}

static const char *controller_start_refused(int result)
{
    switch (result) {
    case LOG_E_FULL: return "its log directory has no room for the records of a start: free some";
    case LOG_E_MEMORY: return "no memory for the records of a start";
    default: return "the metadata log takes no records";
    }
}

static void effect_lead(struct controller *c, int32_t epoch)
{
    struct step step;
    if (log_epoch_begin(c->log, epoch) != LOG_OK) {
        controller_fail(c, "the metadata log cannot begin an epoch");
        return;
    }
    controller_step_start(c, &step, &c->arena);
    if (quorum_begin_records(c->quorum, &step) != STEP_DONE) {
        controller_fail(c, "no memory for the records of a new epoch");
        return;
    }
    int64_t base;
    int result = controller_append(c, &step, APPEND_CONTROL | APPEND_LAST_ROOM, &base);
    if (result != LOG_OK) controller_fail(c, controller_start_refused(result));
    for (uint32_t i = 0; result == LOG_OK && i < step.record_count; i++)
        if (!quorum_control(c->quorum, step_encode(&c->arena, &step.records[i].key),
                            step_encode(&c->arena, &step.records[i].value), base + i))
            controller_fail(c, "a control record of the new epoch does not hold");
}

static void controller_effects(struct controller *c)
{
    struct quorum_effect effect;
    while (c->failed == NULL && quorum_effect(c->quorum, &effect)) {
        switch (effect.kind) {
        case QUORUM_PERSIST: effect_persist(c, &effect.stored); break;
        case QUORUM_LEAD: effect_lead(c, effect.epoch); break;
        case QUORUM_DROP: cluster_resign(c->cluster, quorum_high_watermark(c->quorum)); break;
        case QUORUM_COMMIT:
            log_set_high_watermark(c->log, effect.high_watermark);
            controller_publish(c, effect.high_watermark);
            c->fetches_due = true;
            controller_answer(c, controller_answerable(c));
            break;
        case QUORUM_NOTHING: break;
        }
    }
}

static void controller_log_moved(struct log_watch *watch, struct log *log, int events)
{
    struct controller *c = container_of(watch, struct controller, watch);
    (void)log;
    if (events & LOG_EVENT_FAILED)
        controller_fail(c, "the directory of the metadata log has failed");
    if (events & LOG_EVENT_READY) c->fetches_due = true;
    c->log_moved = true;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void call_wait(struct controller *c, struct controller_call *call)
{
    call->wait_offset = log_end_assigned(c->log);
    list_append(&c->waits, &call->link);
}

static void call_end(struct controller *c, struct controller_call *call, int16_t error)
{
    (void)c;
    call->done(call, error);
}

static bool call_allows(void *context, int8_t operation, int8_t type, struct view name)
{
    const struct controller_call *call = context;
    return auth_allows(call->client, (enum auth_operation)operation, (enum auth_resource)type,
                       name);
}

/* The step's records were not taken. False: they may be in a moment, the call waits for it. */
static bool call_refused(struct controller *c, struct controller_call *call, int result)
{
    if (result == LOG_E_BUSY) return false;
    int16_t error = controller_refused_error(result);
    if (controller_refuse_items(call, error)) {
        if (call->client != NULL) request_error(call->client, error);
        error = KAFKA_NONE;
    }
    call_end(c, call, error);
    return true;
}

static enum step_result call_step(struct controller *c,
                                  struct step *step,
                                  struct controller_call *call)
{
    controller_step_start(c, step, call->arena);
    step->caller.version = call->version;
    step->caller.forwarded = call->forwarded;
    step->caller.allows = call->client != NULL ? call_allows : NULL;
    step->caller.allows_context = call;
    step->caller.charge = call->client != NULL ? quotas_mutate : NULL;
    step->caller.charge_context = call;
    step->caller.judge = call->client != NULL ? dynamic_judge : NULL;
    step->caller.judge_all = call->client != NULL ? dynamic_judge_all : NULL;
    step->caller.judge_context = call;
    return controller_step(c, step, call);
}

/* False: it cannot be decided now, and is the first of the next turn. */
static bool call_decide(struct controller *c, struct controller_call *call)
{
    struct step step;
    enum step_result result = STEP_MORE;
    int how = controller_step_find(call->api_key)->last_room ? APPEND_LAST_ROOM : 0;
    int taken = LOG_OK;
    if (call->client != NULL) request_work(call->client);
    while (result == STEP_MORE && taken == LOG_OK && c->unapplied == NULL) {
        result = call_step(c, &step, call);
        if (result != STEP_E_MEMORY) taken = controller_commit_step(c, &step, how);
    }
    if (call->client != NULL) request_rest(call->client);
    if (c->failed != NULL)
        call_end(c, call, KAFKA_NOT_CONTROLLER);
    else if (result == STEP_E_MEMORY)
        call_end(c, call, KAFKA_UNKNOWN_SERVER_ERROR);
    else if (taken != LOG_OK)
        return call_refused(c, call, taken);
    else if (result == STEP_MORE) /* Its first records are to be applied before the others. */
        return false;
    else
        call_wait(c, call);
    return true;
}

/* What this process asks could have come from another one: its version carries all that it says
 * (decisions/0003). What clients ask was decoded, and is not asserted. */
static void controller_check_own(const struct controller_call *call)
{
    const struct wire_form *form = wire_form(wire_api(call->api_key)->request, call->version);
    assert(form != NULL);
    assert(wire_unsupported(form, call->in) == NULL);
}

void controller_submit(struct node *node, struct controller_call *call)
{
    struct controller *c = node->controller;
    if (call->client == NULL && !call->forwarded) controller_check_own(call);
    if (call->api_key == wire_broker_heartbeat_request.api_key && controller_step_allowed(call)) {
        /* It counts from when it came, however long it waits here. */
        const struct broker_heartbeat_request *beat = call->in;
        cluster_contact(c->cluster, beat->broker_id, beat->broker_epoch, call->arrived_ms);
    }
    list_append(&c->queue, &call->link);
    io_wake(node->io);
}

const char *controller_failure(const struct node *node)
{
    return node->controller->failed;
}

bool controller_log_moved_since(const struct node *node)
{
    return node->controller->log_moved && node->controller->failed == NULL;
}

static void controller_tick(struct controller *c)
{
    int64_t now_ms = io_now_ms(c->node->io);
    struct controller_moment moment;
    if (quorum_deadline(c->quorum) <= now_ms) quorum_tick(c->quorum, controller_event(c, &moment));
    enum step_result result = STEP_MORE;
    if (c->unapplied != NULL || c->again_ms > now_ms) return;
    if (cluster_deadline(c->cluster) <= now_ms) /* Sessions are judged by all shards' horizon. */
        shard_horizon_ask(c->node->shard, now_ms);
    while (c->failed == NULL && result == STEP_MORE && cluster_active(c->cluster) &&
           cluster_deadline(c->cluster) <= now_ms) {
        struct step step;
        controller_step_start(c, &step, &c->arena);
        result = cluster_tick(c->cluster, &step);
        if (controller_commit_step(c, &step, APPEND_LAST_ROOM) != LOG_OK || c->unapplied != NULL)
            return;
    }
}

/* What was asked, in its order, as far as it can be decided now. */
static void controller_decide(struct controller *c)
{
    while (!list_empty(&c->queue) && (c->unapplied == NULL || c->failed != NULL)) {
        struct controller_call *call = container_of(c->queue.next, struct controller_call, link);
        list_remove(&call->link);
        if (c->failed != NULL || !cluster_active(c->cluster)) {
            call_end(c, call, KAFKA_NOT_CONTROLLER);
        } else if (!call_decide(c, call)) {
            list_prepend(&c->queue, &call->link);
            return;
        }
    }
}

/* When the next step of its own is due. */
static int64_t controller_step_ms(const struct controller *c)
{
    int64_t deadline_ms = cluster_deadline(c->cluster);
    return MAX(deadline_ms, c->again_ms);
}

/* When the next turn is to be, of a control part that serves. */
static int64_t controller_next_ms(struct controller *c)
{
    int64_t now_ms = io_now_ms(c->node->io);
    int64_t next_ms = c->behind.at_ms != 0 ? c->behind.at_ms : INT64_MAX;
    if (!list_empty(&c->queue) && c->unapplied == NULL) next_ms = MIN(next_ms, now_ms + BUSY_MS);
    if (c->unapplied == NULL) next_ms = sooner_ms(next_ms, controller_step_ms(c));
    return sooner_ms(next_ms, quorum_deadline(c->quorum));
}

int64_t controller_turn(struct node *node)
{
    struct controller *c = node->controller;
    struct controller_moment moment;
    arena_reset(&c->arena);
    if (c->failed == NULL) {
        controller_follow_again(c);
        controller_refused_turn(c);
    }
    if (c->failed == NULL) controller_tick(c);
    controller_decide(c);
    if (c->failed == NULL) {
        c->log_moved = false;
        quorum_durable(c->quorum, controller_event(c, &moment));
        controller_effects(c);
    }
    controller_answer(c, controller_answerable(c));
    if (c->fetches_due || c->failed != NULL) raft_turn(c, c->failed != NULL);
    if (c->failed != NULL) return list_empty(&c->queue) ? INT64_MAX : io_now_ms(node->io);
    int64_t next_ms = controller_next_ms(c);
    if (!list_empty(&c->queue)) return next_ms;
    return sooner_ms(next_ms, controller_snapshot_turn(c));
}

int32_t controller_leader(const struct node *node)
{
    return quorum_leader(node->controller->quorum);
}

int16_t controller_kraft_version(const struct node *node)
{
    return quorum_kraft_version(node->controller->quorum);
}

const char *controller_not_ready(const struct node *node)
{
    if (node->controller == NULL) return "the control part is not started";
    if (node->controller->failed != NULL) return node->controller->failed;
    if (node->controller->behind.at_ms != 0)
        return "the control part has no memory to apply the metadata; it tries again";
    if (!cluster_active(node->controller->cluster)) return "the control part does not lead yet";
    return controller_self_waits(node->controller) ? "the controller is not registered yet" : NULL;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* The features that this build serves; format finalizes no more than these. */
static const struct image_range served_features[] = {
    {VIEW("metadata.version"),                 CLUSTER_METADATA_VERSION_MIN, CLUSTER_METADATA_VERSION},
    {VIEW("eligible.leader.replicas.version"), 0,                            1                       },
    {VIEW("group.version"),                    0,                            1                       },
};

/* Without a broker part of ours the features are those of the brokers to come: as Apache Kafka's
 * own format picks them. */
static enum step_result controller_format_features(const struct node *node, struct step *step)
{
    uint32_t count = ARRAY_SIZE(served_features);
    const struct image_range *served = served_features;
    if (node->options.controller_only) served = cluster_features(&count);
    return cluster_format(step, node->options.metadata_version, served, count);
}

int controller_format(struct node *node,
                      const char *dir,
                      struct uuid directory,
                      struct io_file **checkpoint)
{
    struct sink sink;
    struct arena arena;
    struct step head, data, foot;
    struct quorum_endpoint endpoints[NODE_LISTENERS_MAX];
    struct quorum_voter self;
    arena_init(&arena, node->mem, 0);
    sink_init(&sink, node->mem, METADATA_BATCH_BYTES_MAX);
    controller_self_voter(node, directory, endpoints, &self);
    int64_t wall_ms = io_wall_ms(node->io);
    step_begin(&head, &arena, io_now_ms(node->io), wall_ms);
    step_begin(&data, &arena, io_now_ms(node->io), wall_ms);
    step_begin(&foot, &arena, io_now_ms(node->io), wall_ms);
    bool made = quorum_format_head(&head, wall_ms, &self, 1) == STEP_DONE &&
                controller_format_features(node, &data) == STEP_DONE &&
                quorum_snapshot_foot(&foot) == STEP_DONE;
    int64_t offset = 0;
    made = made && metadata_batch_put(&sink, &arena, &head, true, offset, 0);
    offset += head.record_count;
    made = made && metadata_batch_put(&sink, &arena, &data, false, offset, 0);
    offset += data.record_count;
    made = made && metadata_batch_put(&sink, &arena, &foot, true, offset, 0);
    int result = made ? 0 : -ENOMEM;
    if (result == 0) result = io_disk_mkdir(node->io, dir);
    if (result == -EEXIST)
        result = 0; /* An earlier format was cut short: its checkpoint is written anew. */
    if (result == 0)
        result = metadata_checkpoint_write(node->io, dir, (struct metadata_checkpoint){0, 0},
                                           sink_view(&sink), checkpoint);
    sink_free(&sink);
    arena_free(&arena);
    return result;
}

/* The bootstrap checkpoint: its control records act at once, its data records are kept for the
 * activation of an empty log. */
struct bootstrap {
    struct controller *c;
    struct arena *arena;
    struct step_record *records;
    uint32_t count;
    uint32_t capacity;
};

static bool bootstrap_record(void *context,
                             const struct batch_header *batch,
                             int64_t offset,
                             bool control,
                             struct view key,
                             struct view value)
{
    struct bootstrap *b = context;
    (void)batch;
    (void)offset;
    if (control)
        return quorum_control(b->c->quorum, arena_copy(b->arena, key), arena_copy(b->arena, value),
                              -1);
    if (b->count == b->capacity) return false;
    return step_decode(arena_copy(b->arena, value), b->arena, &b->records[b->count++]);
}

static int wait_for_log(struct node *node, struct log *log)
{
    int result;
    while ((result = log_open(log)) == LOG_LATER) {
        int64_t until = logs_turn(node->logs);
        io_turn(node->io, until);
    }
    return result;
}

/* Read the log into both images. */
static int controller_load(struct controller *c)
{
    struct node *node = c->node;
    struct arena arena;
    arena_init(&arena, node->mem, 0);
    struct loading loading = {c, &arena};
    struct metadata_reader reader = {loading_record, &loading};
    int result = metadata_checkpoint_range(node->io, c->dir, &c->oldest, &c->newest);
    if (result == 0)
        result = metadata_checkpoint_read(node->io, c->dir, c->newest, &reader);
    else if (result == -ENOENT)
        result = 0; /* The log is read from its beginning. */
    struct log_read read = {.offset = MAX(log_start(c->log), c->newest.end),
                            .offset_end = INT64_MAX,
                            .max_bytes = 1u << 20,
                            .min_one = true};
    while (result == 0 && read.offset < log_end_written(c->log)) {
        struct log_range range = {0};
        result = log_read(c->log, &read, &range);
        if (result == LOG_LATER) {
            io_turn(node->io, logs_turn(node->logs));
            result = 0;
            continue;
        }
        if (result != LOG_OK || range.size_bytes == 0) {
            result = result == LOG_OK ? -EBADMSG : result == LOG_E_MEMORY ? -ENOMEM : -EIO;
            break;
        }
        uint8_t *bytes = mem_get(node->mem, range.size_bytes);
        int64_t got = bytes == NULL ? -ENOMEM
                                    : io_disk_read(node->io, range.file, bytes, range.size_bytes,
                                                   range.at_bytes);
        result = got < 0 ? (int)got
                         : metadata_batches_read(node->mem, view_of(bytes, (uint32_t)got), &reader);
        mem_put(node->mem, bytes, range.size_bytes);
        read.offset = range.offset_next;
        log_range_release(&range);
    }
    arena_free(&arena);
    for (uint32_t i = 0; i < node->count; i++) {
        node->peers[i]->image_offset = log_end_assigned(c->log);
        image_keep_undo(node->peers[i]->image); /* Of the batch that is being applied. */
        if (result == 0) replicas_loaded(node->peers[i]);
    }
    return result;
}

static int controller_log_open(struct controller *c)
{
    struct log_config config = LOG_CONFIG_DEFAULT;
    config.retention_ms = LOG_RETENTION_UNLIMITED;
    config.cleanup_delete = false;
    config.max_message_bytes = METADATA_BATCH_BYTES_MAX;
    config.segment_bytes = (uint32_t)broker_setting_number(c->node, "metadata.log.segment.bytes");
    config.segment_ms = broker_setting_number(c->node, "metadata.log.segment.ms");
    struct logs_replica want = {
        .topic = VIEW(QUORUM_TOPIC),
        .topic_id = quorum_topic_id,
        .config = &config,
        .directory = 0,
        .on_disk = true,
    };
    int result = logs_replica(c->node->logs, &want, &c->log);
    return result == LOG_OK ? wait_for_log(c->node, c->log) : result;
}

static struct quorum *controller_quorum(struct controller *c)
{
    struct node *node = c->node;
    struct log_dir_info dir;
    struct quorum_endpoint endpoints[NODE_LISTENERS_MAX];
    struct quorum_options options = {
        .cluster_id = node_cluster_id(node),
        .is_voter = true,
        .kraft_version = 1,
        .voters_from_checkpoint = log_end_assigned(c->log) == 0,
        .election_timeout_ms = broker_setting_number(node, "controller.quorum.election.timeout.ms"),
        .fetch_timeout_ms = broker_setting_number(node, "controller.quorum.fetch.timeout.ms"),
        .random = {io_random(node->io, IO_RANDOM_IDS) | 1, io_random(node->io, IO_RANDOM_IDS)},
    };
    logs_dir_info(node->logs, 0, &dir);
    controller_self_voter(node, dir.directory_id, endpoints, &options.self);
    options.voters = &options.self;
    options.voter_count = 1;
    char text[QUORUM_STATE_BYTES];
    struct quorum_stored stored;
    struct quorum_log log;
    quorum_log_of(c, &log);
    int read = metadata_quorum_read(node->io, c->dir, text, sizeof(text));
    if (read != 0 && read != -ENOENT) return NULL;
    bool known = read == 0 && quorum_stored_read(view_of_string(text), &stored);
    return quorum_new(node->mem, &options, known ? &stored : NULL, &log);
}

static int controller_activate(struct controller *c, const struct bootstrap *bootstrap)
{
    struct cluster_bootstrap records = {bootstrap->records, bootstrap->count};
    struct controller_moment moment;
    struct step step;
    quorum_tick(c->quorum, controller_event(c, &moment));
    /* Vote, lead, and wait until the epoch's first record is durable. */
    for (;;) {
        controller_effects(c);
        quorum_durable(c->quorum, controller_event(c, &moment));
        controller_effects(c);
        if (c->failed != NULL) return -EIO;
        if (quorum_leads(c->quorum) && quorum_high_watermark(c->quorum) >= 0) break;
        io_turn(c->node->io, logs_turn(c->node->logs));
    }
    controller_step_start(c, &step, &c->arena);
    if (cluster_activate(c->cluster, &step, &records) != STEP_DONE) return -ENOMEM;
    int result = controller_commit_step(c, &step, APPEND_LAST_ROOM);
    if (result == LOG_OK && c->unapplied == NULL) return 0;
    controller_fail(c, controller_start_refused(result == LOG_OK ? LOG_E_MEMORY : result));
    return -EIO;
}

/* NoOp records tell other nodes that the leader is alive. Alone, a node writes them only if its
 * file asks for them: an idle disk stays idle (decision 4). */
static int64_t controller_idle_ms(const struct node *node)
{
    struct view name = VIEW("metadata.max.idle.interval.ms");
    struct view given = node->options.setting(node->options.setting_context, name);
    return given.null ? 0 : broker_setting_number(node, "metadata.max.idle.interval.ms");
}

static struct cluster *controller_cluster(struct node *node)
{
    struct cluster_options options = {
        .node_id = node->options.node_id,
        .cluster_id = node_cluster_id(node),
        .session_timeout_ms = broker_setting_number(node, "broker.session.timeout.ms"),
        .idle_interval_ms = controller_idle_ms(node),
        .imbalance_interval_ms =
            broker_setting_number(node, "leader.imbalance.check.interval.seconds") * 1000,
        .unclean_interval_ms = broker_setting_number(node, "unclean.leader.election.interval.ms"),
        .own_broker_id = node->options.controller_only ? -1 : node->options.node_id,
        .seed = io_random(node->io, IO_RANDOM_HASH),
        .static_config = node->options.setting,
        .static_context = node->options.setting_context,
        .scram_keys = scram_keys,
    };
    return cluster_new(node->mem, &options);
}

int controller_open(struct node *node)
{
    struct controller *c = mem_get(node->mem, sizeof(*c));
    if (c == NULL) return -ENOMEM;
    c->node = node;
    c->snapshot_ms = io_now_ms(node->io);
    c->snapshot_bytes_max.name = "metadata.log.max.record.bytes.between.snapshots";
    c->snapshot_interval_ms.name = "metadata.log.max.snapshot.interval.ms";
    node->controller = c;
    list_init(&c->queue);
    list_init(&c->waits);
    list_init(&c->pending);
    list_init(&c->fetches);
    list_init(&c->watch.link);
    arena_init(&c->arena, node->mem, 0);
    sink_init(&c->sink, node->mem, METADATA_BATCH_BYTES_MAX);
    (void)snprintf(c->dir, sizeof(c->dir), "%s/%s-0", node->options.log_dirs[0], QUORUM_TOPIC);
    c->cluster = controller_cluster(node);
    int result = c->cluster == NULL ? -ENOMEM : controller_log_open(c);
    if (result == LOG_OK) c->quorum = controller_quorum(c);
    if (result == LOG_OK && c->quorum == NULL) result = -EINVAL;

    struct step_record records[64];
    struct arena arena;
    arena_init(&arena, node->mem, 0);
    struct bootstrap bootstrap = {
        .c = c, .arena = &arena, .records = records, .capacity = ARRAY_SIZE(records)};
    struct metadata_reader reader = {bootstrap_record, &bootstrap};
    if (result == LOG_OK)
        result =
            metadata_checkpoint_read(node->io, c->dir, (struct metadata_checkpoint){0, 0}, &reader);
    if (result == -ENOENT) result = 0; /* A real snapshot has taken its place. */
    if (result == LOG_OK) result = controller_load(c);
    if (result == LOG_OK) {
        c->watch.moved = controller_log_moved;
        log_watch_add(c->log, &c->watch);
        log_commit_eagerly(c->log); /* Its own answers wait for the durable end. */
        result = controller_activate(c, &bootstrap);
    }
    if (result == 0) {
        c->serving = true;
        controller_trim(c);
        controller_self_register(c);
    }
    arena_free(&arena);
    if (result != 0) {
        const char *reason = c->failed != NULL ? "the lines above say why"
                             : result < 0      ? say_errno(result)
                                               : "it is damaged";
        c->failed = "the metadata log could not be opened";
        say(node->say, SAY_ERROR, SAY_IN_CONTROLLER,
            "could not open the metadata log in \"%s\": %s", c->dir, reason);
    }
    return result == 0 ? 0 : result < 0 ? result : -EIO;
}

void controller_stop(struct node *node)
{
    struct controller *c = node->controller;
    if (c == NULL) return;
    c->failed = "the node is stopping";
    controller_answer(c, -1);
    raft_turn(c, true);
    while (c->reads > 0) /* Their requests end with them. */
        io_turn(node->io, INT64_MAX);
    while (!list_empty(&c->queue)) {
        struct controller_call *call = container_of(c->queue.next, struct controller_call, link);
        list_remove(&call->link);
        call_end(c, call, KAFKA_NOT_CONTROLLER);
    }
}

void controller_close(struct node *node)
{
    struct controller *c = node->controller;
    if (c == NULL) return;
    if (c->log != NULL) log_watch_remove(&c->watch);
    c->failed = "the node is stopping";
    controller_snapshot_stop(c);
    controller_answer(c, -1);
    list_foreach (link, &c->pending) {
        controller_pending_free(c, container_of(link, struct pending, link));
    }
    quorum_free(c->quorum);
    cluster_free(c->cluster);
    controller_self_free(c);
    sink_free(&c->sink);
    arena_free(&c->arena);
    node->controller = mem_put(node->mem, c, sizeof(*c));
}
