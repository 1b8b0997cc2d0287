/* client.h - what all clients of a simulated node share.
 *
 * Each is a machine of its own in the world and speaks real bytes. All that they are told goes to
 * the history. A kind of client embeds `struct client` first and has a file of its own
 * (client_admin.c, client_producer.c, ...) that ends with its `struct client_kind`. */
#pragma once

#include "io/sim.h"
#include "sim/chance.h"
#include "sim/history.h"
#include "sim/wire_link.h"

#define CLIENT_RETRY_MS 50 /* After an error that says "later". */

struct client;

struct client_kind {
    const char *name;
    size_t size_bytes; /* Of the struct that embeds `struct client`. */
    /* Its time has come and it is connected: send what there is, set `next_ms`. */
    void (*fill)(struct client *client);
    void (*answered)(struct client *client, const struct wire_link_wait *wait, void *in);
    void (*lost)(struct client *client); /* The connection is gone, with what was unanswered. */
    /* Nothing of it is under way or to be done. */
    bool (*finished)(const struct client *client);
    /* What it does beside its connection, in each turn; when it wants the next one at the latest.
     * NULL: nothing. */
    int64_t (*beside)(struct client *client);
    void (*ended)(struct client *client); /* Free what is behind `struct client`. NULL: nothing. */
};

struct client {
    const struct client_kind *kind;
    struct sim_node *node;
    struct io *io;
    struct history *history;
    struct chance chance;
    struct wire_link link;
    int64_t next_ms;   /* Before this it sends nothing. */
    int64_t beside_ms; /* When `beside` wants its turn. */
    bool storm;        /* New work is wanted. */
    uint64_t errors;   /* Replies that asked to try again. */
};

/* Where a client lives. */
struct client_seat {
    struct sim_world *world;
    struct history *history;
    uint64_t seed;
    uint32_t index;   /* Of the client: its name, and its stream of random numbers. */
    const char *host; /* The server's. */
    uint16_t port;    /* 0: 9092. */
};

/* A client of this kind: the struct that embeds it, zeroed behind `struct client`. */
struct client *client_new(const struct client_kind *kind, const struct client_seat *seat);
void client_free(struct client *client);

/* Its turn in the world. */
void client_turn(struct client *client);

bool client_finished(const struct client *client);

/* ---- for the kinds --------------------------------------------------------------------------- */

static inline int64_t client_now_ms(const struct client *client)
{
    return io_now_ms(client->io);
}

/* Send nothing for so long. */
static inline void client_rests(struct client *client, uint32_t rest_ms)
{
    client->next_ms = client_now_ms(client) + rest_ms;
}

/* The log of a topic by name or id, or -1. */
int32_t client_topic_of(const struct client *client, struct view name, struct uuid id);

/* The topic with this id, or -1: nobody has been told of it yet. */
int32_t client_topic_with(const struct client *client, struct uuid id);

/* Does the error say "later", of any request? */
bool client_error_is_later(int16_t error);

/* An error that says "later": counted; the client waits and connects anew. Another one breaks I24.
 */
void client_error(struct client *client, const char *what, int16_t error);
