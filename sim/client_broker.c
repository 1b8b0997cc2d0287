/* client_broker.c - see client_broker.h. */
#include "sim/client_broker.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/cluster.h"
#include "gen/alter_partition_request.h"
#include "gen/alter_partition_response.h"
#include "gen/assign_replicas_to_dirs_request.h"
#include "gen/assign_replicas_to_dirs_response.h"
#include "gen/broker_heartbeat_request.h"
#include "gen/broker_heartbeat_response.h"
#include "gen/broker_registration_request.h"
#include "gen/broker_registration_response.h"
#include "gen/errors.h"

#define API_ALTER_PARTITION         56
#define API_BROKER_REGISTRATION     62
#define API_BROKER_HEARTBEAT        63
#define API_ASSIGN_REPLICAS_TO_DIRS 73
#define BEAT_MS                     400
#define FEATURES_MAX                16u

static struct client_broker *broker_of(struct client *client)
{
    return container_of(client, struct client_broker, client);
}

static struct uuid broker_uuid(struct client_broker *broker)
{
    struct uuid id;
    for (uint32_t i = 0; i < sizeof(id.bytes); i++)
        id.bytes[i] = (uint8_t)chance_below(&broker->client.chance, 256);
    id.bytes[0] |= 1; /* None of the reserved ones. */
    return id;
}

static void broker_says(const struct client_broker *broker, const char *what)
{
    if (broker->client.history->print)
        printf("   broker %d of epoch %lld %s\n", broker->id, (long long)broker->epoch, what);
}

/* ---- its processes --------------------------------------------------------------------------- */

static void broker_starts(struct client_broker *broker)
{
    broker->up = true;
    broker->incarnation = broker_uuid(broker);
    broker->epoch = -1;
    broker->unfenced = broker->drains = broker->wants_fence = broker->registers_again = false;
    for (uint32_t i = 0; i < CLIENT_BROKER_DIRS; i++) {
        if (broker->offline[i]) broker->dirs[i] = broker_uuid(broker); /* A new disk. */
        broker->offline[i] = broker->cordoned[i] = false;
    }
    broker_says(broker, "starts");
}

static void broker_ends(struct client_broker *broker, bool wiped)
{
    struct client *client = &broker->client;
    uint32_t rest_ms = client->storm ? broker->session_ms * 2 : 500;
    wire_link_drop(&client->link);
    follower_crash(&broker->follower, &client->chance, wiped);
    broker->up = false;
    broker->unfenced = false;
    broker->up_ms = client_now_ms(client) + chance_below(&client->chance, rest_ms);
    client->link.again_ms = broker->follower.link.again_ms = broker->up_ms;
    for (uint32_t i = 0; wiped && i < CLIENT_BROKER_DIRS; i++)
        broker->dirs[i] = broker_uuid(broker);
}

static void broker_crashes(struct client_broker *broker)
{
    broker_says(broker, "crashes");
    broker->previous_epoch = -1;
    broker_ends(broker, chance_percent(&broker->client.chance, 15));
}

/* It was told that it may stop, and does. */
static void broker_stops(struct client_broker *broker)
{
    broker_says(broker, "stops");
    broker->previous_epoch = broker->epoch;
    broker->stops++;
    broker_ends(broker, false);
}

static void broker_stalls(struct client_broker *broker)
{
    broker_says(broker, "stalls");
    sim_node_pause(broker->client.node,
                   chance_below(&broker->client.chance, broker->session_ms * 2));
}

/* A directory fails; without any a broker ends. */
static void broker_loses(struct client_broker *broker, uint32_t dir)
{
    bool any = false;
    broker->offline[dir] = true;
    for (uint32_t i = 0; i < CLIENT_BROKER_DIRS; i++)
        any |= !broker->offline[i];
    if (!any) broker_crashes(broker);
}

static bool broker_lost_any(const struct client_broker *broker)
{
    for (uint32_t i = 0; i < CLIENT_BROKER_DIRS; i++)
        if (broker->offline[i]) return true;
    return false;
}

/* One thing in its life; the times between are drawn. */
static void broker_lives(struct client_broker *broker)
{
    struct chance *chance = &broker->client.chance;
    uint32_t what = chance_below(chance, 100), dir = chance_below(chance, CLIENT_BROKER_DIRS);
    broker->life_ms = client_now_ms(&broker->client) + 300 + chance_below(chance, 5000);
    if (!broker->client.storm) return;
    if (what < 20)
        broker_crashes(broker);
    else if (what < 35)
        broker_stalls(broker);
    else if (what < 55)
        broker->drains = broker->epoch >= 0;
    else if (what < 62)
        broker->wants_fence = true;
    else if (what < 70)
        broker_loses(broker, dir);
    else if (what < 78)
        broker->cordoned[dir] = !broker->cordoned[dir];
    else if (what < 82)
        broker->registers_again = !broker_lost_any(broker);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void broker_send(struct client_broker *broker, int16_t api, int16_t version, const void *in)
{
    broker->sent_us = 0;
    broker->sent_epoch = broker->epoch;
    wire_link_send(&broker->client.link, api, version, in);
}

static int32_t dirs_chosen(const struct client_broker *broker, const bool *chosen, struct uuid *out)
{
    int32_t count = 0;
    for (uint32_t i = 0; i < CLIENT_BROKER_DIRS; i++)
        if (chosen[i]) out[count++] = broker->dirs[i];
    return count;
}

static void broker_register(struct client_broker *broker)
{
    struct broker_registration_request request;
    struct broker_registration_request_listener listener;
    struct broker_registration_request_feature features[FEATURES_MAX];
    struct uuid dirs[CLIENT_BROKER_DIRS];
    bool online[CLIENT_BROKER_DIRS];
    uint32_t count;
    const struct image_range *ranges = cluster_features(&count);
    wire_defaults(&wire_broker_registration_request, &request);
    wire_struct_defaults(&wire_broker_registration_request_listener_shape, &listener);
    listener.name = VIEW("PLAINTEXT");
    listener.host = view_of_string(sim_node_host(broker->client.node));
    listener.port = 9092;
    assert(count <= FEATURES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        wire_struct_defaults(&wire_broker_registration_request_feature_shape, &features[i]);
        features[i].name = ranges[i].name;
        features[i].min_supported_version = ranges[i].min;
        features[i].max_supported_version = ranges[i].max;
    }
    request.broker_id = broker->id;
    request.cluster_id = broker->follower.cluster_id;
    request.incarnation_id = broker->incarnation;
    request.listeners.items = &listener;
    request.listeners.count = 1;
    request.features.items = features;
    request.features.count = (int32_t)count;
    for (uint32_t i = 0; i < CLIENT_BROKER_DIRS; i++)
        online[i] = !broker->offline[i];
    request.log_dirs.items = dirs;
    request.log_dirs.count = dirs_chosen(broker, online, dirs);
    request.previous_broker_epoch = broker->previous_epoch;
    broker->asks_unregistered = broker->follower.check->brokers[broker->id].unregistered_told;
    broker->registers = true;
    broker_send(broker, API_BROKER_REGISTRATION, 4, &request);
}

static void broker_beat(struct client_broker *broker)
{
    struct broker_heartbeat_request request;
    struct uuid offline[CLIENT_BROKER_DIRS], cordoned[CLIENT_BROKER_DIRS];
    wire_defaults(&wire_broker_heartbeat_request, &request);
    request.broker_id = broker->id;
    request.broker_epoch = broker->epoch;
    request.current_metadata_offset = broker->follower.applied - 1;
    request.want_fence = broker->wants_fence;
    request.want_shut_down = broker->drains;
    if (broker->beat_version >= 1) {
        request.offline_log_dirs.items = offline;
        request.offline_log_dirs.count = dirs_chosen(broker, broker->offline, offline);
    }
    if (broker->beat_version >= 2 && broker->unfenced) {
        request.cordoned_log_dirs.items = cordoned;
        request.cordoned_log_dirs.count = dirs_chosen(broker, broker->cordoned, cordoned);
    }
    broker->beat_ms = client_now_ms(&broker->client) + BEAT_MS;
    if (broker->wants_fence || broker->drains)
        quorum_check_asked(broker->follower.check, broker->id, broker->epoch);
    broker_send(broker, API_BROKER_HEARTBEAT, broker->beat_version, &request);
}

struct broker_spot {
    const struct image_topic *topic;
    const struct image_partition *partition;
    int32_t index;
};

/* A partition, one of which it has a replica or, if `leads`, that it leads. False: it has none. */
static bool broker_picks(struct client_broker *broker, bool leads, struct broker_spot *out)
{
    const struct image *image = broker->follower.image;
    const struct image_object *at = NULL;
    uint32_t seen = 0;
    while ((at = image_next(image, IMAGE_TOPIC, at)) != NULL) {
        const struct image_topic *topic = (const void *)at;
        for (int32_t i = 0; i < topic->partition_count; i++) {
            const struct image_partition *partition = topic->partitions[i];
            bool fits = leads ? partition->leader == broker->id
                              : image_ids_have(image_list(partition, IMAGE_REPLICAS), broker->id);
            if (fits && chance_below(&broker->client.chance, ++seen) == 0)
                *out = (struct broker_spot){topic, partition, i};
        }
    }
    return seen > 0;
}

/* The leader wants its unfenced replicas in the ISR, or some of them. */
static bool broker_alters(struct client_broker *broker)
{
    struct alter_partition_request request;
    struct alter_partition_request_topic_data topic;
    struct alter_partition_request_partition_data part;
    struct alter_partition_request_broker_state states[8];
    struct broker_spot spot;
    bool all = !broker->client.storm || chance_percent(&broker->client.chance, 60);
    if (!broker_picks(broker, true, &spot)) return false;
    struct image_ids replicas = image_list(spot.partition, IMAGE_REPLICAS);
    wire_defaults(&wire_alter_partition_request, &request);
    wire_struct_defaults(&wire_alter_partition_request_topic_data_shape, &topic);
    wire_struct_defaults(&wire_alter_partition_request_partition_data_shape, &part);
    part.partition_index = spot.index;
    part.leader_epoch = spot.partition->leader_epoch;
    part.partition_epoch = spot.partition->partition_epoch;
    part.new_isr_with_epochs.items = states;
    part.new_isr_with_epochs.count = 0;
    for (uint32_t i = 0; i < MIN(replicas.count, 8u); i++) {
        const struct image_node *other = image_broker(broker->follower.image, replicas.items[i]);
        bool in =
            replicas.items[i] == broker->id || all || chance_percent(&broker->client.chance, 50);
        if (!in || other == NULL || other->fenced) continue;
        struct alter_partition_request_broker_state *state =
            &states[part.new_isr_with_epochs.count++];
        wire_struct_defaults(&wire_alter_partition_request_broker_state_shape, state);
        state->broker_id = replicas.items[i];
        state->broker_epoch = chance_percent(&broker->client.chance, 80) ? other->epoch : -1;
    }
    if (part.new_isr_with_epochs.count == 0) return false;
    topic.topic_id = spot.topic->id;
    topic.partitions.items = &part;
    topic.partitions.count = 1;
    request.broker_id = broker->id;
    request.broker_epoch = broker->epoch;
    request.topics.items = &topic;
    request.topics.count = 1;
    broker_send(broker, API_ALTER_PARTITION, 3, &request);
    return true;
}

static bool broker_assigns(struct client_broker *broker)
{
    struct assign_replicas_to_dirs_request request;
    struct assign_replicas_to_dirs_request_directory_data dir;
    struct assign_replicas_to_dirs_request_topic_data topic;
    struct assign_replicas_to_dirs_request_partition_data part;
    struct broker_spot spot;
    uint32_t at = chance_below(&broker->client.chance, CLIENT_BROKER_DIRS);
    if (broker->offline[at] || !broker_picks(broker, false, &spot)) return false;
    wire_defaults(&wire_assign_replicas_to_dirs_request, &request);
    wire_struct_defaults(&wire_assign_replicas_to_dirs_request_directory_data_shape, &dir);
    wire_struct_defaults(&wire_assign_replicas_to_dirs_request_topic_data_shape, &topic);
    wire_struct_defaults(&wire_assign_replicas_to_dirs_request_partition_data_shape, &part);
    part.partition_index = spot.index;
    topic.topic_id = spot.topic->id;
    topic.partitions.items = &part;
    topic.partitions.count = 1;
    dir.id = broker->dirs[at];
    dir.topics.items = &topic;
    dir.topics.count = 1;
    request.broker_id = broker->id;
    request.broker_epoch = broker->epoch;
    request.directories.items = &dir;
    request.directories.count = 1;
    broker_send(broker, API_ASSIGN_REPLICAS_TO_DIRS, 0, &request);
    return true;
}

static void broker_fill(struct client *client)
{
    struct client_broker *broker = broker_of(client);
    int64_t now_ms = client_now_ms(client);
    if (!broker->up || client->link.wait_count > 0) return;
    if (broker->epoch < 0 || (broker->registers_again && !broker_lost_any(broker))) {
        broker_register(broker);
    } else if (now_ms >= broker->beat_ms) {
        broker_beat(broker);
    } else {
        uint32_t what = chance_below(&client->chance, 40);
        bool sent = broker->unfenced &&
                    ((what == 0 && broker_alters(broker)) || (what == 1 && broker_assigns(broker)));
        if (!sent) client->next_ms = MIN(broker->beat_ms, now_ms + 40);
    }
}

/* ---- being answered -------------------------------------------------------------------------- */

static void broker_registered(struct client_broker *broker,
                              const struct broker_registration_response *in)
{
    struct client *client = &broker->client;
    broker->registers_again = broker->registers = false;
    if (in->error_code == KAFKA_DUPLICATE_BROKER_REGISTRATION) { /* Of one that died. */
        client_rests(client, 300);
        return;
    }
    if (in->error_code != KAFKA_NONE) {
        client_error(client, "BrokerRegistration", in->error_code);
        return;
    }
    bool grows = in->broker_epoch > broker->highest_epoch;
    bool repeats = in->broker_epoch == broker->highest_epoch &&
                   uuid_equal(broker->incarnation, broker->highest_incarnation);
    if (!grows && !repeats)
        history_violation(client->history, "Q5: broker %d was given epoch %lld after %lld",
                          broker->id, (long long)in->broker_epoch,
                          (long long)broker->highest_epoch);
    broker->epoch = broker->highest_epoch = in->broker_epoch;
    broker->highest_incarnation = broker->incarnation;
    broker->unregistered = broker->asks_unregistered;
    broker->registrations++;
    broker->beat_ms = 0;
    broker_says(broker, "is registered");
}

static void broker_stale(struct client_broker *broker, const char *what)
{
    const struct quorum_check *check = broker->follower.check;
    if (check->brokers[broker->id].unregistered == broker->unregistered)
        history_violation(broker->client.history, "Q1: %s: broker %d of epoch %lld is forgotten",
                          what, broker->id, (long long)broker->epoch);
    broker_crashes(broker);
}

static void broker_told(struct client_broker *broker, const struct broker_heartbeat_response *in)
{
    struct client *client = &broker->client;
    if (in->error_code == KAFKA_STALE_BROKER_EPOCH) {
        broker_stale(broker, "BrokerHeartbeat");
        return;
    }
    if (in->error_code != KAFKA_NONE) {
        client_error(client, "BrokerHeartbeat", in->error_code);
        return;
    }
    broker->beats++;
    if (broker->sent_us > 0)
        quorum_check_spoke(broker->follower.check, broker->id, broker->sent_epoch, broker->sent_us);
    if (client->history->print && broker->unfenced == in->is_fenced)
        broker_says(broker, in->is_fenced ? "is fenced" : "is unfenced");
    broker->unfenced = !in->is_fenced;
    if (in->is_fenced && broker->wants_fence && chance_percent(&client->chance, 30))
        broker->wants_fence = false;
    if (!client->storm) broker->wants_fence = false;
    if (!in->should_shut_down) return;
    if (!broker->drains)
        history_violation(client->history, "broker %d is told to shut down, and never asked",
                          broker->id);
    broker_stops(broker);
}

/* Errors that a request of a broker may meet when it knows less than the controller. */
static void broker_refused(struct client_broker *broker, const char *what, int16_t error)
{
    switch (error) {
    case KAFKA_NONE:
    case KAFKA_FENCED_LEADER_EPOCH:
    case KAFKA_INVALID_UPDATE_VERSION:
    case KAFKA_INELIGIBLE_REPLICA:
    case KAFKA_UNKNOWN_TOPIC_ID:
    case KAFKA_UNKNOWN_TOPIC_OR_PARTITION:
    case KAFKA_NEW_LEADER_ELECTED:
    case KAFKA_NOT_LEADER_OR_FOLLOWER:
    case KAFKA_INVALID_REQUEST: break;
    case KAFKA_STALE_BROKER_EPOCH: broker_stale(broker, what); break;
    default: client_error(&broker->client, what, error); break;
    }
}

static void broker_altered(struct client_broker *broker, const struct alter_partition_response *in)
{
    int16_t error = in->error_code;
    if (error == KAFKA_NONE && in->topics.count == 1 && in->topics.items[0].partitions.count == 1)
        error = in->topics.items[0].partitions.items[0].error_code;
    broker->alterations += error == KAFKA_NONE;
    broker_refused(broker, "AlterPartition", error);
}

static void broker_assigned(struct client_broker *broker,
                            const struct assign_replicas_to_dirs_response *in)
{
    broker->assignments += in->error_code == KAFKA_NONE;
    broker_refused(broker, "AssignReplicasToDirs", in->error_code);
}

static void broker_answered(struct client *client, const struct wire_link_wait *wait, void *in)
{
    struct client_broker *broker = broker_of(client);
    client->next_ms = 0;
    switch (wait->api) {
    case API_BROKER_REGISTRATION: broker_registered(broker, in); break;
    case API_BROKER_HEARTBEAT: broker_told(broker, in); break;
    case API_ALTER_PARTITION: broker_altered(broker, in); break;
    default: broker_assigned(broker, in); break;
    }
}

/* A registration that was under way may still be read, later than one of the next process. */
static void broker_lost(struct client *client)
{
    struct client_broker *broker = broker_of(client);
    if (broker->registers) broker->follower.check->brokers[broker->id].unregistered++;
    broker->registers = false;
}

/* ---- its turns ------------------------------------------------------------------------------- */

static int64_t broker_beside(struct client *client)
{
    struct client_broker *broker = broker_of(client);
    int64_t now_ms = client_now_ms(client);
    if (!broker->up && now_ms >= broker->up_ms) broker_starts(broker);
    if (!broker->up) return broker->up_ms;
    if (broker->sent_us == 0 && client->link.wait_count > 0 && client->link.out_size == 0)
        broker->sent_us = sim_now_us(broker->world);
    if (now_ms >= broker->life_ms) broker_lives(broker);
    if (!broker->up) return broker->up_ms;
    return MIN(broker->life_ms, follower_turn(&broker->follower));
}

static bool broker_finished(const struct client *client)
{
    const struct client_broker *broker = (const void *)client;
    return !client->storm && broker->up && broker->unfenced && !broker->drains;
}

static void broker_ended(struct client *client)
{
    follower_free(&broker_of(client)->follower);
}

static const struct client_kind broker_kind = {
    .name = "broker",
    .size_bytes = sizeof(struct client_broker),
    .fill = broker_fill,
    .answered = broker_answered,
    .lost = broker_lost,
    .finished = broker_finished,
    .beside = broker_beside,
    .ended = broker_ended,
};

struct client_broker *client_broker_new(const struct client_broker_seat *seat)
{
    struct client_broker *broker = broker_of(client_new(&broker_kind, &seat->seat));
    struct chance *chance = &broker->client.chance;
    struct follower_seat place = {broker->client.io, seat->seat.host,  seat->seat.port,
                                  seat->check,       seat->cluster_id, seat->id};
    follower_init(&broker->follower, &place);
    broker->follower.directory = broker_uuid(broker);
    broker->follower.piece_bytes = 256u << chance_below(chance, 8);
    broker->world = seat->seat.world;
    broker->id = seat->id;
    broker->session_ms = seat->session_ms;
    broker->beat_version = (int16_t)chance_below(chance, 3);
    broker->previous_epoch = broker->highest_epoch = -1;
    for (uint32_t i = 0; i < CLIENT_BROKER_DIRS; i++)
        broker->dirs[i] = broker_uuid(broker);
    broker->up_ms = client_now_ms(&broker->client) + chance_below(chance, 1000);
    return broker;
}
