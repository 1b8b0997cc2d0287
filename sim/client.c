/* client.c - see client.h. */
#include "sim/client.h"

#include <stdio.h>
#include <stdlib.h>

#include "gen/errors.h"

#define PORT    9092
#define IDLE_MS 20

static void client_answered(struct wire_link *link, const struct wire_link_wait *wait, void *in)
{
    struct client *client = container_of(link, struct client, link);
    client->kind->answered(client, wait, in);
}

static void client_lost(struct wire_link *link)
{
    struct client *client = container_of(link, struct client, link);
    client->kind->lost(client);
}

struct client *client_new(const struct client_kind *kind, const struct client_seat *seat)
{
    char name[16];
    struct client *client = calloc(1, kind->size_bytes);
    if (client == NULL) abort();
    (void)snprintf(name, sizeof(name), "client%u", seat->index);
    client->kind = kind;
    client->history = seat->history;
    client->chance = chance_of(seat->seed, 100 + seat->index);
    client->node = sim_node_new(seat->world, name);
    client->io = sim_node_start(client->node);
    client->storm = true;
    sim_tag(client->io, client);
    client->beside_ms = client->kind->beside == NULL ? INT64_MAX : 0;
    wire_link_init(&client->link, client->io, seat->host, seat->port != 0 ? seat->port : PORT);
    client->link.history = client->history;
    client->link.answered = client_answered;
    client->link.lost = client_lost;
    return client;
}

void client_free(struct client *client)
{
    if (client->kind->ended != NULL) client->kind->ended(client);
    wire_link_free(&client->link);
    free(client);
}

void client_turn(struct client *client)
{
    int64_t next_ms = MIN(wire_link_next_ms(&client->link), client->beside_ms);
    if (client->link.stream != NULL && client->link.wait_count < WIRE_LINK_WAITS_MAX)
        next_ms = MIN(next_ms, client->next_ms);
    io_turn(client->io, next_ms);
    wire_link_turn(&client->link);
    if (client->kind->beside != NULL) client->beside_ms = client->kind->beside(client);
    if (client->link.stream == NULL || client_now_ms(client) < client->next_ms) return;
    client_rests(client, IDLE_MS); /* The fill may say sooner or later. */
    client->kind->fill(client);
}

bool client_finished(const struct client *client)
{
    return client->kind->finished(client);
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

int32_t client_topic_with(const struct client *client, struct uuid id)
{
    for (uint32_t i = 0; i < client->history->topic_count; i++)
        if (client->history->topics[i].known && uuid_equal(client->history->topics[i].id, id))
            return (int32_t)i;
    return -1;
}

bool client_error_is_later(int16_t error)
{
    switch (error) {
    case KAFKA_REQUEST_TIMED_OUT:
    case KAFKA_KAFKA_STORAGE_ERROR:
    case KAFKA_COORDINATOR_LOAD_IN_PROGRESS:
    case KAFKA_COORDINATOR_NOT_AVAILABLE:
    case KAFKA_NOT_COORDINATOR:
    case KAFKA_NOT_LEADER_OR_FOLLOWER:
    case KAFKA_NOT_ENOUGH_REPLICAS:
    case KAFKA_NOT_CONTROLLER:
    case KAFKA_BROKER_NOT_AVAILABLE: return true;
    default: return false;
    }
}

void client_error(struct client *client, const char *what, int16_t error)
{
    if (!client_error_is_later(error) && !client->link.troubled) { /* Without memory, say. */
        history_violation(client->history, "I24: %s: error %d to a request in order", what, error);
        return;
    }
    client->errors++;
    client_rests(client, CLIENT_RETRY_MS);
    wire_link_drop(&client->link);
}
