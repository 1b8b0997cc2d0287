/* listener.h - a named listener: where connections come from and what is true for all of them. */
#pragma once

#include "base/view.h"
#include "io/io.h"
#include "wire/wire.h"

struct shard;

/* Ids as on the wire (BrokerRegistration). */
enum listener_protocol {
    LISTENER_PLAINTEXT = 0,
    LISTENER_SSL = 1,
    LISTENER_SASL_PLAINTEXT = 2,
    LISTENER_SASL_SSL = 3
};

#define LISTENER_NAME_BYTES  64u
#define LISTENER_SOCKETS_MAX 2u /* 127.0.0.1 and ::1 with no `listeners`; else one. */

struct listener {
    char name[LISTENER_NAME_BYTES]; /* Upper case: "PLAINTEXT". */
    enum listener_protocol protocol;
    enum wire_listener kind;  /* Which APIs answer here: broker's or controller's. */
    bool inter_broker;        /* Keeps a place when max.connections is reached. */
    uint32_t connections_max; /* Of this listener alone. */
    uint32_t connections;     /* Open now. */
    struct io_address bound[LISTENER_SOCKETS_MAX]; /* Where it listens, with the real port. */
    uint32_t socket_count;

    struct io_listener *sockets[LISTENER_SOCKETS_MAX];
    struct shard *shard;
};
