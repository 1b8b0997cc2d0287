/* errand.h - the part of a request that another shard does.
 *
 * A handler whose partitions or groups belong to another shard sends an errand there. What the
 * handlers there see is the errand's own request: the same API and version, a message that the
 * sender has made, no connection. They end it as any other; the response is not encoded but brought
 * home as it is, and `done` is called on the home shard.
 *
 *   home   errand_new, set `request.message`, errand_send
 *   there  handle(there, &errand->request) ... request_reply, request_finish or request_close
 *   home   done(errand): read `response`, answer the own request
 *   home   errand_end: file ranges that were taken over are released there when they are sent
 *
 * The message and what it points to must live until `done`: that is what a parked request does. The
 * home request must not be ended while an errand of it is out; if its client goes, errand_recall()
 * tells those who wait there.
 *
 * Memory: the node's. Thread: home, but what the other shard's handlers do with `request`. */
#pragma once

#include "net/request.h"
#include "sys/mailbox.h"

enum errand_state {
    ERRAND_NEW,
    ERRAND_OUT,   /* Sent; `done` was not called yet. */
    ERRAND_HOME,  /* `response` may be read. */
    ERRAND_ENDED, /* Lives until its ranges are sent. */
};

struct errand {
    struct request request;    /* For the handlers there. `message` is for the sender to set. */
    struct request *requester; /* On whose behalf, at home. */
    void (*handle)(struct shard *there, struct request *request);
    void (*done)(struct errand *errand);
    void *context;      /* The sender's own. */
    void *response;     /* Of request.api->response; NULL: it ended without one. */
    const char *closed; /* Why the connection is to be closed, or NULL. */

    /* The rest is net's. */
    enum errand_state state;
    struct shard *home, *there;
    struct letter letter; /* There and back, and to be buried. */
    struct letter nudge;
    bool nudged, orphaned;
    char host[sizeof(((struct io_address *)0)->host)]; /* Whom the requester's peer is. */
    uint32_t ranges_out; /* Taken over by the requester and not sent yet. */
};

/* An errand of this request to the shard `there`; handle, done and request.message are to be set.
 * NULL: no memory. */
MUST_USE struct errand *errand_new(struct request *requester, struct shard *there);

/* Have it done. `done` is called later, never inside. */
void errand_send(struct errand *errand);

/* It is out and shall end now with what there is: calls request.hurry there, if it is set and the
 * request waits. */
void errand_hurry(struct errand *errand);

/* It is out and nobody wants its answer any more: calls request.gone there, if it waits. `done` is
 * called all the same. */
void errand_recall(struct errand *errand);

/* A bytes or records value of the response, for the requester's own response: ranges behind it are
 * the requester's from here on, bytes in the errand's memory are copied if the requester is an
 * errand itself: its answer outlives this one. Once per value. No memory: the empty view. */
struct view errand_value(struct errand *errand, struct view value);

/* The response is not needed any more. NULL is fine. */
void errand_end(struct errand *errand);

/* request.c: the request of an errand was ended. */
void errand_answered(struct errand *errand, void *response, const char *closed);
