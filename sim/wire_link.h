/* wire_link.h - one connection of a simulated client: requests out, replies in, real bytes.
 *
 * Replies come in the order of the requests. A connection that breaks, falls silent or answers
 * nonsense is closed; the owner is told and connects anew. */
#pragma once

#include "base/arena.h"
#include "io/io.h"
#include "sim/history.h"
#include "wire/wire.h"

#define WIRE_LINK_WAITS_MAX  8u
#define WIRE_LINK_BYTES_MAX  (256u * 1024u) /* Of what lies in either direction. */
#define WIRE_LINK_SILENCE_MS 8000           /* Then the peer is given up. */

struct wire_link_wait {
    int32_t correlation;
    int16_t api, version;
    uint32_t troubles, restarts; /* Of the history, when it was sent. */
};

struct wire_link {
    struct io *io;
    struct history *history;
    struct io_address server;
    const char *client_id;    /* Borrowed; "sim" unless its owner says another. */
    struct io_stream *stream; /* NULL: not connected. */
    int64_t again_ms;         /* When to connect. */
    int64_t silent_ms;        /* When to give up. */
    int32_t correlation;
    struct wire_link_wait waits[WIRE_LINK_WAITS_MAX];
    uint32_t wait_count;
    uint32_t connects;
    struct arena reply; /* What a reply holds, until the next one. */
    uint8_t *in, *out;  /* WIRE_LINK_BYTES_MAX each. */
    uint32_t in_size, out_size;
    bool troubled; /* The server's machine was in trouble between the last reply's request and now.
                    */
    /* A reply: the decoded response struct. */
    void (*answered)(struct wire_link *link, const struct wire_link_wait *wait, void *response);
    void (*lost)(struct wire_link *link);
};

void wire_link_init(struct wire_link *link, struct io *io, const char *host, uint16_t port);
void wire_link_free(struct wire_link *link);

/* Send one request: `message` is the request's struct. */
void wire_link_send(struct wire_link *link, int16_t api, int16_t version, const void *message);

/* Connect if it is time, give up if the peer is silent. Called in each turn, before io_turn. */
void wire_link_turn(struct wire_link *link);

/* When it wants its turn at the latest. */
int64_t wire_link_next_ms(const struct wire_link *link);

/* Close; `lost` is called. */
void wire_link_drop(struct wire_link *link);
