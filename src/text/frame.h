/* frame.h - a frame of the protocol: its size, its header, its body; which ones they are.
 *
 *   offset size field
 *        0    4 size of what follows
 *        4    . request header: key, version, correlation id, ... or response header
 *        .    . body
 *
 * A request says itself what it is. A response does not: who reads one must know its request.
 * Records are no frames; what stands before them where Kafka keeps them is shown in its place:
 * metadata records: frame version, type and version as uvarints; keys of coordinator records: their
 * type; their values and most other records: their version. */
#pragma once

#include "text/node.h"

/* What a frame or a record is. */
struct frame_kind {
    const struct wire_api *api;         /* NULL: a record, or a header alone. */
    const struct wire_message *message; /* The body. */
    int16_t version;
    int16_t header_version; /* -1: no header, no frame. */
};

/* What message in this version is, with its header. The version must be one of the message's. */
struct frame_kind frame_kind_of(const struct wire_message *message, int16_t version);

/* The sample instance (see wire_sample) with all that stands before it, in the arena. The null
 * view: the arena is exhausted. */
MUST_USE struct view frame_sample(const struct frame_kind *kind, struct arena *arena);

/* The frame of a message whose header values are given: the request's key and version are set from
 * `kind`. Records get what stands before them. `body` is a value of the message's struct. The null
 * view: the arena is exhausted. */
struct frame_header {
    int32_t correlation_id;
    struct view client_id; /* Requests only; may be null. */
};
MUST_USE struct view frame_encode(const struct frame_kind *kind,
                                  const struct frame_header *header,
                                  const void *body,
                                  struct arena *arena);

/* What a record is whose message is known: its version is in its first bytes, or `version` where
 * Kafka writes none. False: a version that the message does not have, *version is set to it; or too
 * short to say one, *version is -1. */
MUST_USE bool frame_record_kind(const struct wire_message *message,
                                struct view bytes,
                                int16_t *version,
                                struct frame_kind *out);

/* The beginning of a request frame. */
struct frame_head {
    uint32_t size; /* As the frame says it, without its own four bytes. */
    int16_t api_key;
    int16_t version;
    int32_t correlation_id;
};

/* Read it. False: fewer than twelve bytes. */
MUST_USE bool frame_head(struct view frame, struct frame_head *out);

enum frame_state {
    FRAME_KNOWN,
    FRAME_SHORT,           /* Not even a header. */
    FRAME_UNKNOWN_KEY,     /* No API has this key, */
    FRAME_UNKNOWN_VERSION, /* or it has no such version. */
};

/* What a request frame is, by its own words. */
MUST_USE enum frame_state frame_request_kind(struct view frame, struct frame_kind *out);

/* Can all of the frame be read as this, with nothing left over? Cost: O(bytes), no memory. */
MUST_USE bool frame_is_whole(const struct frame_kind *kind, struct view frame);

/* The nodes of the whole: root, Frame, header, body; all that can be read of it. What is damaged,
 * odd or left over is among the list's problems. */
void frame_nodes(struct node_list *list, const struct frame_kind *kind, struct view frame);

/* Where the body begins among the nodes of frame_nodes. False: it was not reached. O(nodes). */
MUST_USE bool frame_body_at(const struct node_list *list,
                            const struct frame_kind *kind,
                            uint32_t *at);

/* The nodes of a request that cannot be known: root, Frame, the first fields of the header. */
void frame_unknown_nodes(struct node_list *list, struct view frame);
