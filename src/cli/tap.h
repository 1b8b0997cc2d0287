/* tap.h - `dohle wire tap`: what its files share.
 *
 *   tap.c          the command: listeners, connections, the loop, what is shown
 *   tap_pipe.c     one connection: bytes of both directions, cut into frames
 *   tap_rewrite.c  the addresses in answers
 *
 * Each client's connection has one of its own to the broker. Requests pass as they are. An answer
 * that names brokers' addresses is written anew with addresses of ours, where a listener for that
 * broker is opened, so that the client's next connections come here too. What is shown is what the
 * two sides said: answers before they are written anew.
 *
 * A connection that is not Kafka's (TLS) passes byte for byte. */
#pragma once

#include "base/list.h"
#include "cli/cli.h"
#include "cli/dial.h"
#include "cli/pcapng.h"
#include "cli/wire_stream_print.h"
#include "record/sink.h"
#include "text/frame.h"

#define TAP_LISTENERS_MAX   64
#define TAP_CONNECTIONS_MAX 1000

struct tap;

/* Where clients of one broker come in. */
struct tap_listener {
    int fd;
    uint16_t port;             /* Ours. */
    struct dial_host upstream; /* The broker, as it is advertised or was given. */
    struct dial_addresses addresses;
};

struct tap_expected {
    struct frame_kind response;
    int32_t correlation_id;
};

/* One direction: what came and is not handled, what is to go out on the other side. */
struct tap_pipe {
    struct sink in, out;
    uint32_t in_at, out_at;
    bool ended; /* Nothing more comes. */
};

struct tap_connection {
    struct list link;
    struct tap *tap;
    struct tap_listener *listener;
    int client, broker;            /* The sockets. */
    struct tap_pipe up, down;      /* To the broker, to the client. */
    struct tap_expected *expected; /* In the order of the requests. */
    uint32_t expected_count, expected_room;
    bool raw; /* Not Kafka's: bytes pass uncut. */
    bool dead;
    char local_host[64]; /* By which the client reached us. */
    struct pcapng_flow flow;
};

struct tap {
    struct cli *cli;
    char host[256]; /* Where we listen. */
    struct tap_listener listeners[TAP_LISTENERS_MAX];
    uint32_t listener_count;
    struct list connections;
    uint32_t connection_count;
    uint64_t connections_seen;
    struct arena arena; /* Of one frame. */
    struct wire_printer printer;
    struct wire_stream_printer shown;
    struct streams streams;
    int capture; /* The file of --pcapng; -1: frames are printed. */
    enum cli_exit code;
};

/* The listener for the broker at this address, opened if there is none. NULL: it could not be. */
struct tap_listener *tap_listener_for(struct tap *tap, struct view name, int32_t port);

/* Show a segment: print it, or write it into the capture. */
void tap_show(void *context, const struct stream_segment *segment);

/* ---- tap_pipe.c ------------------------------------------------------------------------------ */

/* Take over both sockets (non-blocking). NULL: no memory; they are closed. */
MUST_USE struct tap_connection *tap_connection_new(struct tap *tap,
                                                   struct tap_listener *listener,
                                                   int client,
                                                   int broker);
void tap_connection_free(struct tap_connection *connection);

/* Read, cut, rewrite, write, as far as it goes now. It may be `dead` then. */
void tap_connection_move(struct tap_connection *connection);

/* What to wait for on both sockets: poll events. */
short tap_wants_client(const struct tap_connection *connection);
short tap_wants_broker(const struct tap_connection *connection);
