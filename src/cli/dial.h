/* dial.h - a plain client of one connection, for the tools that look at a server from outside.
 *
 * Resolve, connect, ask: each step has a deadline and tells what went wrong as a value, so that the
 * caller can say what to change. No TLS, no SASL: dial_smell() says whether the other side wants
 * TLS. Blocking; one thread. */
#pragma once

#include "base/arena.h"
#include "base/view.h"
#include "wire/wire.h"

#include <sys/socket.h>

#define DIAL_PORT          9092
#define DIAL_ADDRESSES_MAX 16 /* Of one name; more are not tried. */
#define DIAL_FRAME_MAX     (64u * 1024u * 1024u)
#define DIAL_APIS_MAX      128

/* ---- where to ------------------------------------------------------------------------------- */

struct dial_host {
    char name[256];
    uint16_t port;
};

/* "HOST", "HOST:PORT", "[V6]:PORT" or a bare IPv6 address; the port is DIAL_PORT if none is given.
 * False: it is none of these. */
MUST_USE bool dial_host_parse(const char *text, struct dial_host *out);

/* "HOST:PORT", with brackets around an IPv6 address, for people and for configurations. */
#define DIAL_TEXT_BYTES 280
void dial_host_text(const struct dial_host *host, char out[DIAL_TEXT_BYTES]);

struct dial_address {
    struct sockaddr_storage at;
    socklen_t size;
    char text[64]; /* "127.0.0.1:9092", "[::1]:9092" */
};

struct dial_addresses {
    struct dial_address items[DIAL_ADDRESSES_MAX];
    uint32_t count;
};

/* All addresses of a host, in the resolver's order. 0, or a getaddrinfo() code. Blocks as long as
 * the resolver does. */
MUST_USE int dial_resolve(const struct dial_host *host, struct dial_addresses *out);

/* The same address with another port or host? Hosts compare by their bytes. */
MUST_USE bool dial_same_host(const struct dial_address *a, const struct dial_address *b);
MUST_USE uint16_t dial_port(const struct dial_address *address);
MUST_USE bool dial_is_loopback(const struct dial_address *address);

/* A connected socket, or -errno (-ETIMEDOUT after `timeout_ms`). The caller closes it. */
MUST_USE int dial_connect(const struct dial_address *address, int timeout_ms);

/* ---- asking --------------------------------------------------------------------------------- */

struct dial_range {
    int16_t min, max; /* max < min: not offered. */
};

struct dial {
    int fd; /* -1: not connected. */
    int timeout_ms;
    int32_t correlation_id;
    struct mem *mem;
    struct dial_range apis[DIAL_APIS_MAX]; /* What dial_versions() learnt. */
    uint8_t first[16];                     /* The first bytes of what came last, */
    uint32_t first_size;                   /* for who must say what it was. */
    int error;                             /* With DIAL_FAILED: the errno. */
};

enum dial_result {
    DIAL_OK,
    DIAL_CLOSED,  /* The other side closed the connection instead of an answer. */
    DIAL_SILENT,  /* No whole answer in time. */
    DIAL_FOREIGN, /* What came is no answer of this protocol. */
    DIAL_DAMAGED, /* It is an answer whose body cannot be read. */
    DIAL_LACKING, /* The server offers no version of this API that is in the range asked for. */
    DIAL_FAILED,  /* The socket failed: `error`. */
};

/* What a result means, for a person, lower case, no full stop. Static or of strerror(). */
const char *dial_result_text(const struct dial *dial, enum dial_result result);

/* Connect `dial` (its fd is -1). 0 or -errno. */
MUST_USE int dial_open(struct dial *dial, const struct dial_address *address, int timeout_ms);
void dial_close(struct dial *dial);

/* Ask for the server's versions (ApiVersions v4, or v0 where that is too new) and keep them for
 * dial_ask. `out`, a struct api_versions_response, is in the arena. */
struct api_versions_response;
MUST_USE enum dial_result dial_versions(struct dial *dial,
                                        struct arena *arena,
                                        struct api_versions_response *out);

/* Send a request in the highest version that both sides know and that is at most `version_max`, and
 * wait for its answer, whose arrays and views are in the arena. `version` gets what was used. */
struct dial_question {
    const struct wire_api *api;
    const void *request; /* The message's struct. */
    int16_t version_max; /* INT16_MAX: whatever both know. */
};
MUST_USE enum dial_result dial_ask(struct dial *dial,
                                   const struct dial_question *question,
                                   struct arena *arena,
                                   void *response);

/* What else listens there, by what it says to a ClientHello of TLS or by `first`. */
enum dial_smell { DIAL_SMELLS_NOT, DIAL_SMELLS_TLS, DIAL_SMELLS_HTTP };
MUST_USE enum dial_smell dial_smell(const struct dial *dial,
                                    const struct dial_address *address,
                                    int timeout_ms);
