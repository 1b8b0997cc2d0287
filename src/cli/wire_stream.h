/* wire_stream.h - TCP segments of a capture put together again to the frames of each connection.
 *
 * The side that sends SYN is the client; where the capture begins later, the side whose bytes look
 * like a request. Requests say what they are, responses are told by the request with their
 * correlation id. After bytes that the capture lacks, frames are found again at the start of a
 * segment. Connections whose first bytes cannot be Kafka's are left alone.
 *
 * Memory: what is not yet complete, within the caps of base/limits.h. */
#pragma once

#include "base/map.h"
#include "text/frame.h"

struct stream_endpoint {
    uint8_t address[16]; /* IPv4 in the first four. */
    uint16_t port;
    uint16_t family; /* AF_INET or AF_INET6. */
};

struct stream_segment {
    struct stream_endpoint from, to;
    struct view data;
    int64_t time_us;
    uint32_t sequence;
    uint32_t acknowledged;
    bool syn, ack, fin, rst;
};

enum stream_event_kind {
    STREAM_REQUEST,   /* A frame; `kind` NULL if its key or version is not known. */
    STREAM_RESPONSE,  /* A frame; `kind` NULL if its request is not in the capture. */
    STREAM_TOKEN,     /* A bare SASL token, as SaslHandshake v0 has them behind it. */
    STREAM_LOST,      /* `text`: bytes that the capture lacks or that make no frame. */
    STREAM_ENCRYPTED, /* The connection speaks TLS: nothing of it is shown. */
};

struct stream_event {
    enum stream_event_kind kind;
    const struct stream_endpoint *from, *to;
    int64_t time_us;
    int64_t request_us; /* Responses: when the request was sent; -1: not known. */
    const struct frame_kind *frame_kind;
    struct view frame;
    const char *text;
};

/* Returns false to stop. Views live for the call. */
typedef bool (*stream_visit)(void *context, const struct stream_event *event);

struct streams {
    struct mem *mem;
    struct map connections;
    stream_visit visit;
    void *context;
    uint64_t connection_count; /* Seen so far that speak the protocol, */
    uint64_t foreign_count;    /* that speak something else, */
    uint64_t encrypted_count;  /* and that speak TLS. */
    int64_t last_us;           /* Time of the last segment. */
    bool stopped;              /* The visitor said so, or there is no memory (`failed`). */
    bool failed;
};

void streams_init(struct streams *streams, struct mem *mem, stream_visit visit, void *context);

/* Take one segment, in the order of the capture. False: stopped. */
MUST_USE bool streams_take(struct streams *streams, const struct stream_segment *segment);

/* The capture has ended: tell what is incomplete, and give all memory back. */
void streams_end(struct streams *streams);
