/* modern.c - beats of a scripted member of a consumer group. */
#include "check/modern.h"

#include <stdio.h>

#include <sys/random.h>

#include "base/bytes.h"

#include "gen/consumer_group_heartbeat_request.h"
#include "gen/consumer_protocol_assignment.h"
#include "gen/consumer_protocol_subscription.h"
#include "gen/create_topics_request.h"
#include "gen/create_topics_response.h"

#define TOPIC_LIMIT_MS  10000
#define SETTLE_LIMIT_MS 30000
#define SETTLE_PAUSE_MS 200
#define ALONE_TRIES     6
#define REBALANCE_MS    60000

/* A bit for each partition. */
#define ALL ((1u << MODERN_PARTITIONS) - 1)

struct world {
    struct uuid topic;
};

static bool served(const struct check_run *run)
{
    return run_serves(run, &wire_consumer_group_heartbeat_request, 0);
}

static struct view new_id(struct check_run *run)
{
    uint8_t random[16];
    const char *text;
    ssize_t got = getrandom(random, sizeof(random), 0);
    assert(got == sizeof(random));
    text = run_text(run, "%08x-%04x-%04x-%04x-%08x%04x", load_be32(random), load_be16(random + 4),
                    load_be16(random + 6), load_be16(random + 8), load_be32(random + 10),
                    load_be16(random + 14));
    return view_of_string(text);
}

void modern_init(struct modern *m, struct check_run *run, const char *instance)
{
    *m = (struct modern){
        .run = run,
        .peer = run_peer(run),
        .id = new_id(run),
        .instance = view_of_string(instance),
        .rebalance_ms = REBALANCE_MS,
        .regex = VIEW_NULL,
        .assignor = VIEW_NULL,
    };
    (void)run_version(run, &wire_consumer_group_heartbeat_request, 1);
}

static void take_assignment(struct modern *m,
                            const struct consumer_group_heartbeat_response *answer)
{
    m->assignment_came = answer->assignment != NULL;
    if (!m->assignment_came) return;
    m->assigned = 0;
    for (int32_t i = 0; i < answer->assignment->topic_partitions.count; i++)
        for (int32_t j = 0; j < answer->assignment->topic_partitions.items[i].partitions.count; j++)
            m->assigned |= 1u << answer->assignment->topic_partitions.items[i].partitions.items[j];
}

static int16_t ask(struct modern *m, struct consumer_group_heartbeat_request *beat, int32_t epoch)
{
    beat->group_id = view_of_string(m->run->name);
    beat->member_id = m->id;
    beat->member_epoch = epoch;
    if (epoch <= 0 || m->tells_instance) beat->instance_id = m->instance;
    int16_t version = run_version(m->run, &wire_consumer_group_heartbeat_request, 1);
    const struct consumer_group_heartbeat_response *answer =
        run_call(m->run, m->peer, &wire_consumer_group_heartbeat_request, version, beat);
    m->assignment_came = false;
    if (answer->error_code != KAFKA_NONE || m->run->over) return answer->error_code;
    m->epoch = answer->member_epoch;
    take_assignment(m, answer);
    return KAFKA_NONE;
}

int16_t modern_full(struct modern *m, int32_t epoch)
{
    int32_t partitions[MODERN_PARTITIONS];
    const struct world *shared = m->run->world->shared;
    struct view name = view_of_string(m->run->world->name);
    struct consumer_group_heartbeat_request_topic_partitions owned;
    struct consumer_group_heartbeat_request *beat =
        run_new(m->run, &wire_consumer_group_heartbeat_request);

    wire_struct_defaults(&wire_consumer_group_heartbeat_request_topic_partitions_shape, &owned);
    owned.topic_id = shared->topic;
    owned.partitions.items = partitions;
    for (int32_t i = 0; i < MODERN_PARTITIONS; i++)
        if (m->owned & 1u << i) partitions[owned.partitions.count++] = i;
    beat->rebalance_timeout_ms = m->rebalance_ms;
    beat->subscribed_topic_names.items = &name;
    beat->subscribed_topic_names.count = m->regex.null ? 1 : 0;
    beat->subscribed_topic_regex = m->regex;
    beat->server_assignor = m->assignor;
    beat->topic_partitions.items = &owned;
    beat->topic_partitions.count = owned.partitions.count > 0 ? 1 : 0;
    return ask(m, beat, epoch);
}

int16_t modern_short(struct modern *m, int32_t epoch)
{
    struct consumer_group_heartbeat_request *beat =
        run_new(m->run, &wire_consumer_group_heartbeat_request);
    return ask(m, beat, epoch);
}

void modern_join(struct modern *m)
{
    run_need(m->run, "join", KAFKA_NONE, modern_full(m, 0));
    m->owned = m->assigned;
}

void modern_join_alone(struct modern *m)
{
    struct check_run *run = m->run;
    modern_join(m);
    for (uint32_t tries = 1; m->assigned != ALL && tries < ALONE_TRIES && !run->over; tries++) {
        run_need(run, "leave", KAFKA_NONE, modern_short(m, -1));
        run_wait(run, SETTLE_PAUSE_MS);
        (void)snprintf(run->name + strlen(run->name), 2, "x");
        run_find_group(run);
        m->peer = run_peer(run);
        modern_join(m);
    }
}

void modern_settle(struct modern *const *members, uint32_t count)
{
    struct check_run *run = members[0]->run;
    int64_t limit_ms = peer_now_ms() + SETTLE_LIMIT_MS;
    bool settled = false;
    while (!run->over && !settled && peer_now_ms() < limit_ms) {
        uint32_t sum = 0, twice = 0, idle = 0;
        for (uint32_t i = 0; i < count; i++) {
            struct modern *m = members[i];
            run_need(run, "beat on the way", KAFKA_NONE, modern_full(m, m->epoch));
            m->owned = m->assigned;
            twice |= sum & m->owned;
            sum |= m->owned;
            idle += m->owned == 0;
        }
        run_need_true(run, "no partition has two owners", twice == 0);
        settled = sum == ALL && idle == 0;
        if (!settled) run_wait(run, SETTLE_PAUSE_MS);
    }
    run_need_true(run, "all partitions are assigned within 30 s", run->over || settled);
}

const char *modern_set(struct check_run *run, uint32_t partitions)
{
    const char *text = "";
    for (int i = 0; i < MODERN_PARTITIONS; i++)
        if (partitions & 1u << i) text = run_text(run, "%s%s%d", text, *text != '\0' ? "," : "", i);
    return text;
}

/* ---- the suite's topic -------------------------------------------------------------------------
 */

/* A coordinator may learn of a topic after CreateTopics was answered: rows are not to see that. */
static void wait_until_known(struct check_run *world)
{
    struct modern m;
    int64_t limit_ms = peer_now_ms() + TOPIC_LIMIT_MS;
    world->world = world; /* For the time of this question it is a row like others. */
    modern_init(&m, world, NULL);
    int16_t error = modern_full(&m, 0);
    while (error == KAFKA_NONE && m.assigned != ALL && !world->over && peer_now_ms() < limit_ms) {
        run_wait(world, SETTLE_PAUSE_MS);
        error = modern_full(&m, m.epoch);
    }
    if (error == KAFKA_NONE) (void)modern_short(&m, -1);
    world->world = NULL;
}

void modern_prepare(struct check_run *world)
{
    struct create_topics_request_creatable_topic topic;
    struct create_topics_request *ask = run_new(world, &wire_create_topics_request);
    struct world *shared = arena_get(&world->arena, sizeof(*shared));
    assert(shared != NULL); /* No limit is set. */
    world->shared = shared;
    if (!served(world) || world->over) return;
    wire_struct_defaults(&wire_create_topics_request_creatable_topic_shape, &topic);
    topic.name = view_of_string(world->name);
    topic.num_partitions = MODERN_PARTITIONS;
    topic.replication_factor = -1;
    ask->topics.items = &topic;
    ask->topics.count = 1;
    ask->timeout_ms = TOPIC_LIMIT_MS;
    int16_t version = run_version(world, &wire_create_topics_request, 7);
    const struct create_topics_response *answer =
        run_call(world, run_peer(world), &wire_create_topics_request, version, ask);
    run_need_true(world, "CreateTopics tells of one topic",
                  world->over || answer->topics.count == 1);
    if (world->over) return;
    run_need(world, "CreateTopics", KAFKA_NONE, answer->topics.items[0].error_code);
    shared->topic = answer->topics.items[0].topic_id;
    wait_until_known(world);
}

void modern_finish(struct check_run *world)
{
    if (served(world)) run_delete_topic(world, run_peer(world));
}

/* ---- what classic members carry ---------------------------------------------------------------
 */

static struct view versioned(struct check_run *run,
                             const struct wire_message *message,
                             int16_t version,
                             const void *value)
{
    const struct wire_form *form = wire_form(message, version);
    uint32_t size = (uint32_t)wire_size(form, value);
    uint8_t *bytes = arena_get(&run->arena, size + 2);
    assert(bytes != NULL); /* No limit is set. */
    store_be16(bytes, (uint16_t)version);
    (void)wire_encode(form, value, bytes + 2, NULL, 0, NULL);
    return view_of(bytes, size + 2);
}

struct view modern_subscription(struct check_run *run)
{
    struct consumer_protocol_subscription value;
    struct view topic = view_of_string(run->world->name);
    wire_defaults(&wire_consumer_protocol_subscription, &value);
    value.topics.items = &topic;
    value.topics.count = 1;
    return versioned(run, &wire_consumer_protocol_subscription, 0, &value);
}

struct view modern_assignment(struct check_run *run, uint32_t partitions)
{
    int32_t list[MODERN_PARTITIONS];
    struct consumer_protocol_assignment value;
    struct consumer_protocol_assignment_topic_partition topic;
    wire_defaults(&wire_consumer_protocol_assignment, &value);
    wire_struct_defaults(&wire_consumer_protocol_assignment_topic_partition_shape, &topic);
    topic.topic = view_of_string(run->world->name);
    topic.partitions.items = list;
    for (int32_t i = 0; i < MODERN_PARTITIONS; i++)
        if (partitions & 1u << i) list[topic.partitions.count++] = i;
    value.assigned_partitions.items = &topic;
    value.assigned_partitions.count = 1;
    return versioned(run, &wire_consumer_protocol_assignment, 0, &value);
}
