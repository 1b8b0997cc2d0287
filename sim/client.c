/* client.c - what all clients share, and the admin. */
#include "sim/client.h"

#include <stdio.h>
#include <stdlib.h>

#include "gen/create_topics_request.h"
#include "gen/create_topics_response.h"
#include "gen/errors.h"
#include "gen/metadata_request.h"
#include "gen/metadata_response.h"

#define PORT    9092
#define IDLE_MS 20

static void client_answered(struct wire_link *link, const struct wire_link_wait *wait, void *in)
{
    struct client *client = container_of(link, struct client, link);
    switch (client->role) {
    case CLIENT_ADMIN: client_admin_answered(client, wait, in); break;
    case CLIENT_PRODUCER: client_producer_answered(client, wait, in); break;
    case CLIENT_READER: client_reader_answered(client, wait, in); break;
    }
}

static void client_lost(struct wire_link *link)
{
    struct client *client = container_of(link, struct client, link);
    for (uint32_t i = 0; i < client->batch_count; i++)
        client->batches[i].sent = false;
}

struct client *client_new(struct sim_world *world,
                          struct history *history,
                          enum client_role role,
                          uint64_t seed,
                          uint32_t index)
{
    static const int16_t fetches[] = {4, 6, 11, 12, 13, 16, 18};
    char name[16];
    struct client *client = calloc(1, sizeof(*client));
    if (client == NULL) abort();
    (void)snprintf(name, sizeof(name), "client%u", index);
    client->role = role;
    client->history = history;
    client->chance = chance_of(seed, 100 + index);
    client->node = sim_node_new(world, name);
    client->io = sim_node_start(client->node);
    client->storm = true;
    client->producer_id = -1;
    client->version = role == CLIENT_READER
                          ? fetches[chance_below(&client->chance, ARRAY_SIZE(fetches))]
                          : (int16_t)(3 + chance_below(&client->chance, 11));
    sink_init(&client->sink, io_mem(client->io), WIRE_LINK_BYTES_MAX);
    sim_tag(client->io, client);
    return client;
}

void client_connects_to(struct client *client, const char *host)
{
    wire_link_init(&client->link, client->io, host, PORT);
    client->link.history = client->history;
    client->link.answered = client_answered;
    client->link.lost = client_lost;
}

void client_free(struct client *client)
{
    wire_link_free(&client->link);
    free(client);
}

void client_turn(struct client *client)
{
    int64_t next_ms = wire_link_next_ms(&client->link);
    if (client->link.stream != NULL && client->link.wait_count < WIRE_LINK_WAITS_MAX)
        next_ms = MIN(next_ms, client->next_ms);
    io_turn(client->io, next_ms);
    wire_link_turn(&client->link);
    int64_t now_ms = io_now_ms(client->io);
    if (client->link.stream == NULL || now_ms < client->next_ms) return;
    client->next_ms = now_ms + IDLE_MS; /* The fill may say sooner or later. */
    switch (client->role) {
    case CLIENT_ADMIN: client_admin_fill(client); break;
    case CLIENT_PRODUCER: client_producer_fill(client); break;
    case CLIENT_READER: client_reader_fill(client); break;
    }
}

static bool admin_finished(const struct client *client)
{
    for (uint32_t i = 0; i < client->history->topic_count; i++)
        if (!client->history->topics[i].known) return false;
    return true;
}

static bool reader_finished(const struct client *client)
{
    if (!client->audit) return true;
    for (uint32_t i = 0; i < client->history->topic_count; i++)
        for (int32_t p = 0; p < client->history->topics[i].partitions; p++)
            if (!client->caught_up[i * HISTORY_PARTITIONS_MAX + (uint32_t)p]) return false;
    return true;
}

bool client_finished(const struct client *client)
{
    switch (client->role) {
    case CLIENT_ADMIN: return admin_finished(client);
    case CLIENT_PRODUCER: return client->quota == 0 && client->batch_count == 0;
    case CLIENT_READER: return reader_finished(client);
    }
    return true;
}

int32_t client_topic_of(const struct client *client, struct view name, struct uuid id)
{
    for (uint32_t i = 0; i < client->history->topic_count; i++) {
        const struct history_topic *topic = &client->history->topics[i];
        if (view_is(name, topic->name) || (topic->known && uuid_equal(topic->id, id)))
            return (int32_t)i;
    }
    history_violation(client->history, "a reply names a topic that nobody asked for");
    return -1;
}

void client_error(struct client *client, const char *what, int16_t error)
{
    switch (error) {
    case KAFKA_REQUEST_TIMED_OUT:
    case KAFKA_KAFKA_STORAGE_ERROR:
    case KAFKA_COORDINATOR_LOAD_IN_PROGRESS:
    case KAFKA_COORDINATOR_NOT_AVAILABLE:
    case KAFKA_NOT_LEADER_OR_FOLLOWER:
    case KAFKA_NOT_CONTROLLER:
    case KAFKA_BROKER_NOT_AVAILABLE:
        client->errors++;
        client->next_ms = io_now_ms(client->io) + 50;
        wire_link_drop(&client->link);
        break;
    default:
        history_violation(client->history, "I24: %s: error %d to a request in order", what, error);
    }
}

/* ---- admin ----------------------------------------------------------------------------------- */

static void admin_create(struct client *client, const struct history_topic *topic)
{
    struct create_topics_request request;
    struct create_topics_request_creatable_topic item;
    wire_defaults(&wire_create_topics_request, &request);
    wire_struct_defaults(&wire_create_topics_request_creatable_topic_shape, &item);
    item.name = view_of_string(topic->name);
    item.num_partitions = topic->partitions;
    item.replication_factor = 1;
    request.topics.items = &item;
    request.topics.count = 1;
    request.timeout_ms = 5000;
    wire_link_send(&client->link, 19, 7, &request);
}

static void admin_look(struct client *client)
{
    struct metadata_request request;
    wire_defaults(&wire_metadata_request, &request);
    request.topics.items = NULL;
    request.topics.count = -1;
    request.allow_auto_topic_creation = false;
    wire_link_send(&client->link, 3, 12, &request);
}

void client_admin_fill(struct client *client)
{
    struct history *history = client->history;
    if (client->link.wait_count > 0) return;
    for (uint32_t i = 0; i < history->topic_count; i++) {
        if (history->topics[i].known) continue;
        admin_create(client, &history->topics[i]);
        return;
    }
    admin_look(client);
}

static void admin_listed(struct client *client, const struct metadata_response *in)
{
    struct history *history = client->history;
    bool seen[HISTORY_TOPICS_MAX] = {false};
    for (int32_t i = 0; i < in->topics.count; i++) {
        const struct metadata_response_metadata_response_topic *topic = &in->topics.items[i];
        if (topic->error_code != 0) {
            client_error(client, "Metadata", topic->error_code);
            return;
        }
        int32_t at = client_topic_of(client, topic->name, topic->topic_id);
        if (at < 0) return;
        seen[at] = true;
        history_topic(history, (uint32_t)at, topic->topic_id, topic->partitions.count);
    }
    for (uint32_t i = 0; i < history->topic_count; i++)
        if (history->topics[i].known && !seen[i])
            history_violation(history, "I17: topic %s, once created, is not listed",
                              history->topics[i].name);
}

void client_admin_answered(struct client *client, const struct wire_link_wait *wait, void *in)
{
    client->next_ms = io_now_ms(client->io) + 20 + chance_below(&client->chance, 400);
    if (wait->api == 3) {
        admin_listed(client, in);
        return;
    }
    const struct create_topics_response *created = in;
    for (int32_t i = 0; i < created->topics.count; i++) {
        const struct create_topics_response_creatable_topic_result *topic =
            &created->topics.items[i];
        int32_t at = client_topic_of(client, topic->name, topic->topic_id);
        if (at < 0) return;
        if (topic->error_code == 0)
            history_topic(client->history, (uint32_t)at, topic->topic_id, topic->num_partitions);
        else if (topic->error_code == KAFKA_TOPIC_ALREADY_EXISTS) /* An earlier try was taken. */
            admin_look(client);
        else
            client_error(client, "CreateTopics", topic->error_code);
    }
}
