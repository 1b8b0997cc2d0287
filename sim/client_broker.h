/* client_broker.h - a scripted broker: it speaks to a controller as Apache Kafka's brokers do and
 * keeps no records.
 *
 * It follows the metadata log (follower.h), registers, beats, asks for changes of the ISRs it
 * leads, tells where its replicas lie. In a storm it stalls, crashes and comes back as another
 * incarnation, sometimes on an empty disk, drains and stops, wants to be fenced, loses and cordons
 * directories. */
#pragma once

#include "sim/client.h"
#include "sim/follower.h"

#define CLIENT_BROKER_DIRS 3u

struct client_broker {
    struct client client; /* Its connection is the one of the lifecycle. */
    struct follower follower;
    struct sim_world *world;
    int32_t id;
    uint32_t session_ms;
    int16_t beat_version;
    bool up;       /* There is a process, */
    int64_t up_ms; /* or will be then. */
    int64_t life_ms;
    struct uuid incarnation;
    struct uuid dirs[CLIENT_BROKER_DIRS];
    bool offline[CLIENT_BROKER_DIRS];  /* Since it started. */
    bool cordoned[CLIENT_BROKER_DIRS]; /* The same. */
    int64_t epoch;                     /* Of the incarnation, -1: not registered. */
    int64_t previous_epoch;            /* Of one that stopped cleanly, else -1. */
    int64_t highest_epoch;             /* It was ever told, */
    struct uuid highest_incarnation;   /* and as which. */
    uint32_t unregistered;             /* Answers to that wish when it sent its registration, */
    uint32_t asks_unregistered;        /* or the one under way. */
    bool unfenced;                     /* It was told so by its last heartbeat. */
    bool drains, wants_fence, registers_again;
    bool registers;     /* Its registration is under way. */
    int64_t beat_ms;    /* When the next heartbeat is due. */
    int64_t sent_us;    /* When the request under way was on the wire; 0: it is not yet, */
    int64_t sent_epoch; /* and what it said. */
    uint64_t registrations, beats, stops, alterations, assignments;
};

/* What all brokers of a run have in common. */
struct client_broker_seat {
    struct client_seat seat;
    struct quorum_check *check;
    struct view cluster_id;
    int32_t id;
    uint32_t session_ms;
};

struct client_broker *client_broker_new(const struct client_broker_seat *seat);
