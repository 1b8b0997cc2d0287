/* request.h - one request of a client: what came, and the ways to end it.
 *
 * A handler gets a decoded request and ends it exactly once, at once or later:
 *
 *   request_reply   the response goes to the client, in the order of the connection
 *   request_finish  there is nothing to answer (Produce with acks=0)
 *   request_close   the client broke the protocol: the connection is closed
 *
 * A request that is not ended when its handler returns is parked: it stays as it is, with its arena
 * and buffer, until somebody ends it. When its connection goes meanwhile, `gone` (if set) is called
 * once, so that what waits may stop waiting; the request must be ended all the same, and ending it
 * is then harmless: nothing is sent.
 *
 * Memory: `message` and the views in it lie in `arena` and `buf`. A handler may take more from
 * `arena` (it is charged to the request), and may take a reference on `buf` to keep bytes longer
 * than the request. Thread: the shard that owns the connection. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/view.h"
#include "io/io.h"
#include "wire/wire.h"

struct connection;
struct errand;
struct net_range;
struct listener;
struct shard;

struct request {
    /* What came; the handler reads. */
    const struct wire_api *api;
    int16_t version;
    int32_t correlation_id;
    struct view client_id; /* Null stays null; quotas and metrics take it as empty. */
    const void *message;   /* The decoded request: the struct of api->request. */
    struct buf *buf;       /* Holds the frame; a produce request's batches are views into it. */
    struct view body;      /* The encoded body, in `buf`. */
    struct arena arena;    /* Lives until the request is ended and its answer is sent. */
    uint32_t frame_bytes;  /* Header and body, without the four length bytes. */
    int64_t arrived_ms;    /* When the last byte of the frame was received (io_now_ms). */
    int64_t handled_ms;    /* When the handler was called. */

    /* Who sent it. Views that live as long as the connection (or the request, if that is longer).
     */
    struct view principal; /* "User:ANONYMOUS" */
    const struct listener *listener;
    struct {
        const char *host; /* Numeric; NULL once the connection is gone. */
        uint16_t port;
    } peer;
    struct connection *connection; /* NULL once it is gone, and of an errand. */
    struct errand *errand; /* It is done for a request of another shard (errand.h); NULL: none. */

    /* The handler may set. */
    void (*gone)(struct request *request);  /* The connection went while this was parked. */
    void (*hurry)(struct request *request); /* End now with what there is; for errands. Or NULL. */
    void *parked;                           /* The handler's own: what it waits on. */
    int64_t patience_ms; /* How long the client asked to wait: not counted as slow. */

    /* The rest is net's. */
    struct shard *shard;
    struct list link;    /* In the connection's queue, in order of arrival. */
    uint8_t state;       /* enum request_state */
    bool errors_counted; /* request_error was called. */
    bool charged;        /* Its handler has charged the client's quotas itself. */
    int64_t throttle_ms; /* Mute the connection for so long after the answer. */
    int64_t cpu_ns;      /* Processor time of its handler so far, if the shard charges time. */
    int64_t work_ns;     /* When the work at hand began, by the same clock; 0: none is. */
    struct list ranges;  /* of struct net_range, not released yet */
    struct list answer;  /* Encoded output that waits for its turn. */
};

enum request_state {
    REQUEST_RUNNING,  /* With its handler, or parked. */
    REQUEST_ANSWERED, /* Its answer waits for the answers before it. */
    REQUEST_SENDING,  /* Its answer is in the connection's output. */
};

/* Answer with this response struct (of request->api->response). Encoded before this returns; ranges
 * are sent later. Ends the request: it must not be touched any more. If there is no memory for the
 * answer, or was none for a part of it (the request's arena has failed), or the connection is gone,
 * ranges are released and the connection is closed. */
void request_reply(struct request *request, void *response);

/* Work for a request that was parked begins, and pauses (or it is ended): its processor time counts
 * as the request's. Not needed inside the handler, nor while no time is charged. */
void request_work(struct request *request);
void request_rest(struct request *request);

/* End without an answer. */
void request_finish(struct request *request);

/* End, and close the connection. `why` is a literal for the log line: "unknown api key". */
void request_close(struct request *request, const char *why);

/* Count one error code of the answer, for metrics and the request log. Call it once for each item
 * that carries an error; none called: the request counts as NONE. */
void request_error(struct request *request, int16_t error_code);

/* After the answer, read nothing from the connection for `throttle_ms` (the largest call counts).
 * A response that has the field ThrottleTimeMs carries the number. */
void request_throttle(struct request *request, int64_t throttle_ms);

/* A zeroed struct of the response, with the schema's defaults, in the arena; NULL: no memory (then
 * request_close(request, "no memory") is right). */
MUST_USE void *request_response(struct request *request);

/* The value of a bytes or records field of this request's response: the bytes of these ranges, from
 * `first` on (NULL: the empty value). From here on the ranges are the request's: each is released
 * once, even if the value is not used. Once per range. */
struct view request_ranges(struct request *request, struct net_range *first);
