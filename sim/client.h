/* client.h - the clients of a simulated node: an admin, producers, readers.
 *
 * Each is a machine of its own in the world and speaks real bytes. All that they are told goes to
 * the history. A producer keeps several batches in flight and, when a connection is lost, sends all
 * unanswered ones again in their order, as Kafka's own clients do. */
#pragma once

#include "io/sim.h"
#include "record/sink.h"
#include "sim/chance.h"
#include "sim/history.h"
#include "sim/wire_link.h"

#define CLIENT_IN_FLIGHT_MAX 5u /* Kafka's bound for idempotence. */

enum client_role { CLIENT_ADMIN, CLIENT_PRODUCER, CLIENT_READER };

/* A batch between its making and its acknowledgement. */
struct client_batch {
    uint32_t log;    /* topic * HISTORY_PARTITIONS_MAX + partition */
    uint32_t number; /* Of its first record. */
    uint32_t count;
    int32_t sequence;
    uint32_t power_cuts; /* Of the world, when it was sent last. */
    uint32_t restarts;   /* Of the world's node, when it was made. */
    bool sent;
};

struct client {
    enum client_role role;
    struct sim_node *node;
    struct io *io;
    struct history *history;
    struct chance chance;
    struct wire_link link;
    int64_t next_ms; /* Before this it sends nothing. */
    bool storm;      /* New work is wanted. */
    uint64_t errors; /* Replies that asked to try again. */

    /* Producer. */
    uint32_t number; /* Which producer it is. */
    bool idempotent;
    int16_t acks;
    int64_t producer_id; /* -1: none yet. */
    int16_t producer_epoch;
    int32_t sequences[HISTORY_LOGS_MAX];
    uint32_t next_record;
    uint32_t quota; /* Records that it is still to send. */
    struct client_batch batches[CLIENT_IN_FLIGHT_MAX];
    uint32_t batch_count;
    struct sink sink;

    /* Reader. */
    bool audit; /* Reads all from the start and reports to the audit. */
    int64_t offsets[HISTORY_LOGS_MAX];
    int64_t high_watermarks[HISTORY_LOGS_MAX];
    bool caught_up[HISTORY_LOGS_MAX];
    int16_t version; /* Of Fetch or Produce. */
};

/* A client of the seed with the name `index`; `host` is the server's. */
struct client *client_new(struct sim_world *world,
                          struct history *history,
                          enum client_role role,
                          uint64_t seed,
                          uint32_t index);
void client_connects_to(struct client *client, const char *host);
void client_free(struct client *client);

/* Its turn in the world. */
void client_turn(struct client *client);

/* Nothing of it is under way or to be done: a producer's quota is sent and acknowledged, an audit
 * has read all that there is, every topic is known. */
bool client_finished(const struct client *client);

/* ---- between its files ----------------------------------------------------------------------- */

void client_admin_fill(struct client *client);
void client_admin_answered(struct client *client, const struct wire_link_wait *wait, void *in);
void client_producer_fill(struct client *client);
void client_producer_answered(struct client *client, const struct wire_link_wait *wait, void *in);
void client_reader_fill(struct client *client);
void client_reader_answered(struct client *client, const struct wire_link_wait *wait, void *in);

/* The log of a topic by name or id, or -1. */
int32_t client_topic_of(const struct client *client, struct view name, struct uuid id);

/* An error that says "later": counted; the client waits and connects anew. Another one breaks I24.
 */
void client_error(struct client *client, const char *what, int16_t error);
