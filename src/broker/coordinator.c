/* coordinator.c - see coordinator.h. Loading is in coordinator_load.c. */
#include "broker/coordinator.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "broker/broker.h"
#include "broker/coordinator_inside.h"
#include "broker/explain.h"
#include "broker/metadata_log.h"
#include "core/config.h"
#include "core/consumer_group.h"
#include "core/offsets.h"

#define COORDINATOR_BATCH_BYTES_MAX (8u * 1024u * 1024u)

/* ---- which partition ------------------------------------------------------------------------- */

uint32_t coordinator_partition(struct view key, uint32_t partitions)
{
    uint32_t hash = 0;
    assert(partitions > 0);
    for (uint32_t at = 0; at < key.size;) {
        if (key.data[at] < 0x80) {
            hash = 31 * hash + key.data[at++];
            continue;
        }
        uint32_t c = utf8_next(key, &at);
        if (c >= 0x10000) { /* Java hashes UTF-16 units: two for these. */
            hash = 31 * hash + (0xd800 + ((c - 0x10000) >> 10));
            c = 0xdc00 + ((c - 0x10000) & 0x3ff);
        }
        hash = 31 * hash + c;
    }
    if (hash == 0x80000000u) return 0;
    if (hash > 0x80000000u) hash = 0 - hash;
    return hash % partitions;
}

static enum kafka_error part_error(const struct coordinator *c, const struct coordinator_part *part)
{
    if (c->stopped) return KAFKA_COORDINATOR_NOT_AVAILABLE;
    switch (part->state) {
    case PART_ACTIVE: return KAFKA_NONE;
    case PART_LOADING: return KAFKA_COORDINATOR_LOAD_IN_PROGRESS;
    default: return KAFKA_NOT_COORDINATOR;
    }
}

enum kafka_error coordinator_find(struct node *node,
                                  struct view group,
                                  struct coordinator_part **out)
{
    struct coordinator *c = node->coordinator;
    *out = NULL;
    if (c == NULL || c->stopped) return KAFKA_COORDINATOR_NOT_AVAILABLE;
    if (c->part_count == 0) return KAFKA_NOT_COORDINATOR;
    *out = c->parts[coordinator_partition(group, c->part_count)];
    return *out == NULL ? KAFKA_NOT_COORDINATOR : part_error(c, *out);
}

struct coordinator_part *coordinator_at(struct node *node, uint32_t n, enum kafka_error *error)
{
    struct coordinator *c = node->coordinator;
    if (c == NULL || n >= c->part_count) return NULL;
    *error = part_error(c, c->parts[n]);
    return c->parts[n];
}

struct groups *coordinator_groups(struct coordinator_part *part)
{
    assert(part->state == PART_ACTIVE);
    return part->groups;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void holds_arm(struct coordinator_part *part)
{
    if (list_empty(&part->holds)) {
        shard_timer_cancel(&part->hold_timer);
        return;
    }
    const struct coordinator_hold *first =
        container_of(part->holds.next, struct coordinator_hold, link);
    shard_timer_set(part->node->shard, &part->hold_timer, first->until_ms);
}

void coordinator_hold(struct coordinator_part *part, struct coordinator_hold *hold)
{
    struct node *node = part->node;
    list_init(&hold->link);
    if (part->state != PART_ACTIVE) {
        hold->done(hold, KAFKA_NOT_COORDINATOR);
        return;
    }
    hold->offset = log_end_assigned(part->replica->log);
    if (log_high_watermark(part->replica->log) >= hold->offset) {
        hold->done(hold, KAFKA_NONE);
        return;
    }
    bool first = list_empty(&part->holds);
    hold->until_ms =
        io_now_ms(node->io) + broker_setting_kept(node, &node->coordinator->commit_timeout_ms);
    list_append(&part->holds, &hold->link);
    if (first) holds_arm(part);
}

/* All that is committed, or (with an error) all there is. */
static void holds_release(struct coordinator_part *part, int64_t offset, enum kafka_error error)
{
    if (list_empty(&part->holds)) return;
    while (!list_empty(&part->holds)) {
        struct coordinator_hold *hold =
            container_of(part->holds.next, struct coordinator_hold, link);
        if (error == KAFKA_NONE && hold->offset > offset) break;
        list_remove(&hold->link);
        hold->done(hold, error);
    }
    holds_arm(part);
}

static void holds_expired(struct shard *shard, struct shard_timer *timer)
{
    struct coordinator_part *part = container_of(timer, struct coordinator_part, hold_timer);
    int64_t now_ms = io_now_ms(shard->io);
    while (!list_empty(&part->holds)) {
        struct coordinator_hold *hold =
            container_of(part->holds.next, struct coordinator_hold, link);
        if (hold->until_ms > now_ms) break;
        list_remove(&hold->link);
        hold->done(hold, KAFKA_COORDINATOR_NOT_AVAILABLE);
    }
    holds_arm(part);
}

/* Joins and syncs that the last step has answered. */
static void answers_send(struct coordinator_part *part, struct groups *groups)
{
    struct group_wait *wait;
    while ((wait = groups_answer(groups)) != NULL)
        coordinator_hold(part, &container_of(wait, struct coordinator_wait, wait)->hold);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void step_start(struct coordinator_part *part, struct step *step, struct arena *arena)
{
    struct node *node = part->node;
    step_begin(step, arena, io_now_ms(node->io), io_wall_ms(node->io));
    step->horizon_ms = shard_horizon_all_ms(node->shard);
    step->random[0] = io_random(node->io, IO_RANDOM_IDS) | 1;
    step->random[1] = io_random(node->io, IO_RANDOM_IDS);
    step->offset_next = log_end_assigned(part->replica->log);
    step->atomic = true;
}

void coordinator_step_alone(struct coordinator_part *part, struct step *step)
{
    arena_reset(&part->arena);
    step_start(part, step, &part->arena);
}

void coordinator_step(struct coordinator_part *part, struct step *step, struct request *request)
{
    step_start(part, step, &request->arena);
    step->caller.version = request->version;
}

/* What a client is told of a failed append, in Kafka's mapping. */
static enum kafka_error append_error(int16_t error)
{
    switch (error) {
    case KAFKA_UNKNOWN_TOPIC_OR_PARTITION:
    case KAFKA_NOT_ENOUGH_REPLICAS:
    case KAFKA_REQUEST_TIMED_OUT: return KAFKA_COORDINATOR_NOT_AVAILABLE;
    case KAFKA_NOT_LEADER_OR_FOLLOWER:
    case KAFKA_KAFKA_STORAGE_ERROR: return KAFKA_NOT_COORDINATOR;
    case KAFKA_MESSAGE_TOO_LARGE:
    case KAFKA_RECORD_LIST_TOO_LARGE:
    case KAFKA_INVALID_FETCH_SIZE:
    case KAFKA_INVALID_RECORD: return KAFKA_UNKNOWN_SERVER_ERROR;
    default: return (enum kafka_error)error;
    }
}

static int part_append(struct coordinator_part *part, const struct step *step, int64_t *base)
{
    struct sink *sink = &part->node->coordinator->sink;
    struct log_appended appended;
    sink_reset(sink);
    if (!metadata_batch_put(sink, step->arena, step, false, 0, -1))
        return sink->fault == SINK_LIMIT ? LOG_E_SEGMENT : LOG_E_MEMORY;
    struct view bytes = sink_view(sink);
    struct buf *buf = buf_new(part->node->mem, bytes.size);
    if (buf == NULL) return LOG_E_MEMORY;
    memcpy(buf->data, bytes.data, bytes.size);
    struct log_append in = {
        .buf = buf,
        .size_bytes = bytes.size,
        .leader_epoch = partition_leader_epoch(part->replica->state),
        .wall_ms = step->wall_ms,
        .origin = LOG_COORDINATOR,
        .produce_version = INT16_MAX,
    };
    int result = log_append(part->replica->log, &in, &appended);
    if (result == LOG_OK) *base = appended.offset_first;
    buf_release(buf); /* The log has its own reference. */
    return result;
}

/* When sessions want to be looked at next. */
static void part_arm(struct coordinator_part *part)
{
    int64_t at_ms = groups_deadline(part->groups);
    const struct wheel_entry *entry = &part->session_timer.entry;
    if (wheel_armed(entry) && entry->deadline_ms <= at_ms) return; /* Then it looks again. */
    if (at_ms == INT64_MAX)
        shard_timer_cancel(&part->session_timer);
    else
        shard_session_set(part->node->shard, &part->session_timer, at_ms);
}

void coordinator_beaten(struct coordinator_part *part)
{
    part_arm(part);
}

enum kafka_error coordinator_commit(struct coordinator_part *part, const struct step *step)
{
    int64_t base = -1;
    enum kafka_error error = KAFKA_NONE;
    if (step->record_count > 0) {
        int result = part_append(part, step, &base);
        if (result != LOG_OK) {
            error = append_error(replica_error(result));
            groups_failed(part->groups, step, error);
        } else if (groups_apply(part->groups, step, base) != GROUPS_OK) {
            /* The log knows more than this memory: read it anew. */
            coordinator_resign(part, "no memory to apply a record");
            coordinator_load(part);
            return KAFKA_NOT_COORDINATOR;
        }
    }
    answers_send(part, part->groups);
    part_arm(part);
    return error;
}

static void sessions_due(struct shard *shard, struct shard_timer *timer)
{
    struct coordinator_part *part = container_of(timer, struct coordinator_part, session_timer);
    struct step step;
    for (uint32_t i = 0; i < COORDINATOR_EXPIRIES_PER_TURN; i++) {
        coordinator_step_alone(part, &step);
        if (!groups_tick(part->groups, &step)) break;
        /* Nobody asked: a failed append shows in the next one. */
        (void)!coordinator_commit(part, &step);
        if (part->state != PART_ACTIVE) return;
    }
    part_arm(part);
    (void)shard;
}

/* One bulk step after the other. */
static void part_bulk(struct coordinator_part *part,
                      enum step_result (*decide)(struct groups *groups,
                                                 struct step *step,
                                                 const void *context),
                      const void *context)
{
    enum step_result result = STEP_MORE;
    while (result == STEP_MORE && part->state == PART_ACTIVE) {
        struct step step;
        coordinator_step_alone(part, &step);
        result = decide(part->groups, &step, context);
        if (result == STEP_E_MEMORY || coordinator_commit(part, &step) != KAFKA_NONE) return;
    }
}

static enum step_result expire_step(struct groups *groups, struct step *step, const void *context)
{
    (void)context;
    return offsets_expire(groups, step);
}

static void expiry_set(struct coordinator_part *part)
{
    struct node *node = part->node;
    shard_timer_set(node->shard, &part->expiry_timer,
                    io_now_ms(node->io) +
                        broker_setting_number(node, "offsets.retention.check.interval.ms"));
}

static void expiry_due(struct shard *shard, struct shard_timer *timer)
{
    struct coordinator_part *part = container_of(timer, struct coordinator_part, expiry_timer);
    (void)shard;
    part_bulk(part, expire_step, NULL);
    if (part->state == PART_ACTIVE) expiry_set(part);
}

static enum step_result forget_step(struct groups *groups, struct step *step, const void *context)
{
    const struct image_topic *topic = context;
    return offsets_topic_deleted(groups, step, topic->name, topic->id);
}

/* ---- leading --------------------------------------------------------------------------------- */

static void part_wake(struct replica_wait *wait, struct replica *replica, int events)
{
    struct coordinator_part *part = container_of(wait, struct coordinator_part, wait);
    if (events & LOG_EVENT_FAILED) {
        coordinator_resign(part, "its log is gone or its directory has failed");
        part->state = PART_FAILED;
    } else if (part->state == PART_LOADING) {
        coordinator_load_go(part);
    } else if (part->state == PART_ACTIVE) {
        holds_release(part, log_high_watermark(replica->log), KAFKA_NONE);
    }
}

void coordinator_loaded(struct coordinator_part *part)
{
    struct step step;
    coordinator_step_alone(part, &step);
    groups_loaded(part->groups, &step);
    part->state = PART_ACTIVE;
    part_arm(part);
    expiry_set(part);
    struct offsets_open open = offsets_open(part->groups, VIEW_NULL);
    if (open.count == 0) return;
    say(part->node->say, SAY_WARN, SAY_IN_GROUP,
        "partition %u of " COORDINATOR_TOPIC " has %u offsets of open transactions, the oldest of "
        "producer %lld at offset %lld: only Apache Kafka can end them; until then who asks for "
        "stable offsets of these partitions is told to wait",
        part->index, open.count, (long long)open.producer_id, (long long)open.record_offset);
}

/* Whoever waits is told; the machine goes. The partition is INITIAL afterwards. */
void coordinator_resign(struct coordinator_part *part, const char *why)
{
    if (part->state == PART_ACTIVE && groups_count(part->groups) > 0 && why != NULL)
        say(part->node->say, SAY_WARN, SAY_IN_GROUP,
            "partition %u of " COORDINATOR_TOPIC " is not served any more: %s", part->index, why);
    part->state = PART_INITIAL;
    shard_timer_cancel(&part->session_timer);
    shard_timer_cancel(&part->expiry_timer);
    group_regex_forget(&part->node->coordinator->regexes, part);
    holds_release(part, 0, KAFKA_NOT_COORDINATOR);
    if (part->groups != NULL) {
        struct group_wait *wait;
        groups_unload(part->groups, KAFKA_NOT_COORDINATOR);
        while ((wait = groups_answer(part->groups)) != NULL) {
            struct coordinator_hold *hold =
                &container_of(wait, struct coordinator_wait, wait)->hold;
            hold->done(hold, KAFKA_NONE); /* The answer says it already. */
        }
    }
    part->groups = groups_free(part->groups);
}

static struct consumer_group_interval interval_setting(const struct node *node,
                                                       const char *names[3])
{
    return (struct consumer_group_interval){
        .value_ms = broker_setting_number(node, names[0]),
        .min_ms = broker_setting_number(node, names[1]),
        .max_ms = broker_setting_number(node, names[2]),
    };
}

static uint32_t migration_setting(struct view policy)
{
    static const struct {
        const char *name;
        uint32_t migration;
    } policies[] = {
        {"disabled",      0                                                },
        {"upgrade",       CONSUMER_GROUP_UPGRADE                           },
        {"downgrade",     CONSUMER_GROUP_DOWNGRADE                         },
        {"bidirectional", CONSUMER_GROUP_UPGRADE | CONSUMER_GROUP_DOWNGRADE},
    };
    for (uint32_t i = 0; i < ARRAY_SIZE(policies); i++)
        if (policy.size == strlen(policies[i].name) &&
            strncasecmp((const char *)policy.data, policies[i].name, policy.size) == 0)
            return policies[i].migration;
    return 0;
}

/* The machine's view of the cluster, and the settings of consumer groups as they are now. */
static void part_see(struct coordinator_part *part)
{
    const struct node *node = part->node;
    struct consumer_group_options options = {
        .session =
            interval_setting(node, (const char *[]){"group.consumer.session.timeout.ms",
                                                    "group.consumer.min.session.timeout.ms",
                                                    "group.consumer.max.session.timeout.ms"}),
        .heartbeat =
            interval_setting(node, (const char *[]){"group.consumer.heartbeat.interval.ms",
                                                    "group.consumer.min.heartbeat.interval.ms",
                                                    "group.consumer.max.heartbeat.interval.ms"}),
        .assignment =
            interval_setting(node, (const char *[]){"group.consumer.assignment.interval.ms",
                                                    "group.consumer.min.assignment.interval.ms",
                                                    "group.consumer.max.assignment.interval.ms"}),
        .regex_refresh_ms = broker_setting_number(node, "group.consumer.regex.refresh.interval.ms"),
        .size_max = (uint32_t)broker_setting_number(node, "group.consumer.max.size"),
        .migration =
            migration_setting(broker_setting(node, VIEW("group.consumer.migration.policy"))),
        .assignors = broker_setting(node, VIEW("group.consumer.assignors")),
    };
    groups_see(part->groups, node->image, &options);
}

static void part_told(void *context, struct view group, const struct group_event *event)
{
    const struct node *node = context;
    if (say_on(node->say, SAY_DEBUG, SAY_IN_GROUP)) explain_say_event(node->shard, group, event);
}

void coordinator_load(struct coordinator_part *part)
{
    struct node *node = part->node;
    struct group_options options = {
        .session_min_ms = broker_setting_number(node, "group.min.session.timeout.ms"),
        .session_max_ms = broker_setting_number(node, "group.max.session.timeout.ms"),
        .initial_delay_ms = broker_setting_number(node, "group.initial.rebalance.delay.ms"),
        .size_max = (uint32_t)broker_setting_number(node, "group.max.size"),
        .metadata_max_bytes = (uint32_t)broker_setting_number(node, "offset.metadata.max.bytes"),
        .retention_ms = broker_setting_number(node, "offsets.retention.minutes") * 60000,
        .told = part_told,
        .told_context = node,
    };
    assert(part->groups == NULL);
    part->groups =
        groups_new(node->mem, &options, io_random(node->io, IO_RANDOM_HASH), io_now_ms(node->io));
    part->state = part->groups == NULL ? PART_FAILED : PART_LOADING;
    if (part->groups != NULL) part_see(part);
    part->load.began = false;
    part->load.again = part->load.op.in_flight;
    if (part->state == PART_LOADING && !part->load.again) coordinator_load_go(part);
}

static struct coordinator_part *part_new(struct coordinator *c, uint32_t index)
{
    struct node *node = c->node;
    struct coordinator_part *part = mem_get(node->mem, sizeof(*part));
    if (part == NULL) return NULL;
    part->node = node;
    part->index = index;
    part->state = PART_INITIAL;
    list_init(&part->holds);
    list_init(&part->wait.link);
    part->wait.wake = part_wake;
    shard_timer_init(&part->hold_timer, holds_expired);
    shard_timer_init(&part->session_timer, sessions_due);
    shard_timer_init(&part->expiry_timer, expiry_due);
    arena_init(&part->arena, node->mem, 0);
    return part;
}

/* Places for so many partitions; the topic never shrinks. */
static bool parts_grow(struct coordinator *c, uint32_t count)
{
    if (count <= c->part_count) return true;
    struct coordinator_part **parts =
        mem_get(c->node->mem, count * sizeof(struct coordinator_part *));
    if (parts == NULL) return false;
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = i < c->part_count ? c->parts[i] : part_new(c, i);
        if (parts[i] != NULL) continue;
        while (i-- > c->part_count)
            mem_put(c->node->mem, parts[i], sizeof(*parts[i]));
        mem_put(c->node->mem, parts, count * sizeof(struct coordinator_part *));
        return false;
    }
    mem_put(c->node->mem, c->parts, c->part_count * sizeof(struct coordinator_part *));
    c->parts = parts;
    c->part_count = count;
    return true;
}

static void part_follow(struct coordinator_part *part,
                        const struct image_topic *topic,
                        const struct image_partition *now)
{
    struct node *node = part->node;
    bool led = now != NULL && now->leader == node->options.node_id;
    struct replica *replica = led ? replica_find(node, topic->id, (int32_t)part->index) : NULL;
    if (led && replica != NULL && replica == part->replica && part->state != PART_INITIAL &&
        part->state != PART_FAILED)
        return; /* A new epoch of the same leadership. */
    if (part->state == PART_ACTIVE || part->state == PART_LOADING)
        coordinator_resign(part, "another node leads it");
    replica_wait_end(&part->wait);
    part->replica = replica;
    part->state = PART_INITIAL;
    if (replica == NULL || replica->log == NULL) return;
    replica_wait_on(replica, &part->wait);
    if (node->coordinator->started) coordinator_load(part);
}

void coordinator_turn(struct node *node)
{
    struct coordinator *c = node->coordinator;
    if (c->started || c->stopped || node->broker_epoch < 0) return;
    c->started = true;
    for (uint32_t i = 0; i < c->part_count; i++)
        if (c->parts[i]->replica != NULL) coordinator_load(c->parts[i]);
}

static bool ids_equal(struct image_ids a, struct image_ids b)
{
    return a.count == b.count && memcmp(a.items, b.items, a.count * sizeof(*a.items)) == 0;
}

/* Does it concern what consumer groups assign: topics, their partitions, the racks of these? */
static bool changes_topics(const struct image_change *change)
{
    if (change->kind == IMAGE_TOPIC || change->kind == IMAGE_BROKER) return true;
    if (change->kind != IMAGE_PARTITION) return false;
    if (change->before == NULL || change->now == NULL) return true;
    return !ids_equal(image_list((const struct image_partition *)change->before, IMAGE_REPLICAS),
                      image_list((const struct image_partition *)change->now, IMAGE_REPLICAS));
}

static bool changes_settings(const struct image_change *change)
{
    const struct image_object *object = change->now != NULL ? change->now : change->before;
    return change->kind == IMAGE_CONFIGS &&
           ((const struct image_configs *)object)->type == IMAGE_RESOURCE_BROKER;
}

void coordinator_follow(struct node *node, const struct image_change *change)
{
    struct coordinator *c = node->coordinator;
    if (c->stopped) return;
    for (uint32_t i = 0; changes_topics(change) && i < c->part_count; i++)
        if (c->parts[i]->groups != NULL) groups_topics_changed(c->parts[i]->groups);
    for (uint32_t i = 0; changes_settings(change) && i < c->part_count; i++)
        if (c->parts[i]->groups != NULL) part_see(c->parts[i]);
    if (change->kind == IMAGE_TOPIC && change->now == NULL) {
        const struct image_topic *gone = (const struct image_topic *)change->before;
        for (uint32_t i = 0; i < c->part_count; i++)
            if (c->parts[i]->state == PART_ACTIVE) part_bulk(c->parts[i], forget_step, gone);
        return;
    }
    if (change->kind != IMAGE_PARTITION || !view_is(change->topic->name, COORDINATOR_TOPIC)) return;
    if (!parts_grow(
            c, MAX((uint32_t)change->topic->partition_count, (uint32_t)change->partition + 1))) {
        replica_unmade(node, "a partition of " COORDINATOR_TOPIC);
        return;
    }
    part_follow(c->parts[change->partition], change->topic,
                (const struct image_partition *)change->now);
}

/* ---- life ------------------------------------------------------------------------------------ */

int coordinator_open(struct node *node)
{
    struct coordinator *c = mem_get(node->mem, sizeof(*c));
    if (c == NULL) return -ENOMEM;
    c->node = node;
    c->commit_timeout_ms.name = "offsets.commit.timeout.ms";
    group_regexes_init(&c->regexes, node);
    sink_init(&c->sink, node->mem, COORDINATOR_BATCH_BYTES_MAX);
    node->coordinator = c;
    return 0;
}

void coordinator_stop(struct node *node)
{
    struct coordinator *c = node->coordinator;
    if (c == NULL || c->stopped) return;
    c->stopped = true;
    for (uint32_t i = 0; i < c->part_count; i++) {
        coordinator_resign(c->parts[i], NULL);
        replica_wait_end(&c->parts[i]->wait);
        while (c->parts[i]->load.op.in_flight)
            io_turn(node->io, io_now_ms(node->io) + 10);
    }
}

void coordinator_close(struct node *node)
{
    struct coordinator *c = node->coordinator;
    if (c == NULL) return;
    assert(c->stopped);
    for (uint32_t i = 0; i < c->part_count; i++) {
        arena_free(&c->parts[i]->arena);
        mem_put(node->mem, c->parts[i], sizeof(*c->parts[i]));
    }
    mem_put(node->mem, c->parts, c->part_count * sizeof(struct coordinator_part *));
    sink_free(&c->sink);
    node->coordinator = mem_put(node->mem, c, sizeof(*c));
}
