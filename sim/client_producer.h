/* client_producer.h - a client that produces: idempotent or not, acks=all or 1.
 *
 * It keeps several batches in flight and, when a connection is lost, sends all unanswered ones
 * again in their order, as Kafka's own clients do. */
#pragma once

#include "record/sink.h"
#include "sim/client.h"

#define CLIENT_IN_FLIGHT_MAX 5u /* Kafka's bound for idempotence. */

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

struct client_producer {
    struct client client;
    uint32_t number; /* Which producer it is. */
    bool idempotent;
    int16_t acks;
    int16_t version;     /* Of Produce. */
    int64_t producer_id; /* -1: none yet. */
    int16_t producer_epoch;
    int32_t sequences[HISTORY_LOGS_MAX];
    uint32_t next_record;
    uint32_t quota; /* Records that it is still to send. */
    struct client_batch batches[CLIENT_IN_FLIGHT_MAX];
    uint32_t batch_count;
    struct sink sink;
};

/* The producer with this number; the caller sets `idempotent`, `acks`, `quota`. */
struct client_producer *client_producer_new(const struct client_seat *seat, uint32_t number);
