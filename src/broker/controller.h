/* controller.h - the control part: the metadata log, and the steps of core/cluster over it.
 *
 * A call is decided at once, its records are appended as one batch, and it is answered when the
 * high watermark has passed them. What is committed is applied to the broker's image (node->image)
 * first, so that an answer is never ahead of what the node itself knows.
 *
 * Thread: the shard's (shard 0 of a node). */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "net/request.h"

struct node;
struct image;
struct controller;

/* One call of the controller. Embedded by the caller; `in` and `out` (the structs of the API's
 * request and response, `out` set to defaults) and `arena` live until `done`. */
struct controller_call {
    int16_t api_key;
    int16_t version;
    const void *in;
    void *out;
    struct arena *arena;
    int64_t arrived_ms;
    struct request *client; /* On whose behalf, for authorization and quotas; NULL: our own. */
    bool forwarded;         /* A broker has taken it from its client and passed it on. */
    /* Called once, never from inside controller_submit. `error`: 0 and `out` is complete, or what
     * the whole call ends with (NOT_CONTROLLER, UNKNOWN_SERVER_ERROR). */
    void (*done)(struct controller_call *call, int16_t error);

    struct list link; /* The controller's. */
    int64_t wait_offset;
};

/* Decide nothing more: all calls that wait end with NOT_CONTROLLER, so that the requests behind
 * them can end. Before shard_close(). */
void controller_stop(struct node *node);

/* Format the first log directory's metadata log if it is new, load it, lead it. Blocks. 0 or -errno
 * (told). `node->image` holds what is committed afterwards. */
MUST_USE int controller_open(struct node *node);
void controller_close(struct node *node);

/* Make `dir` (of the metadata log) as `kafka-storage format --standalone` does, with this node as
 * the one voter. 0 with the open checkpoint, which the caller makes durable, as its name and
 * `dir`'s, before it counts, and closes; or -errno. */
MUST_USE int controller_format(struct node *node,
                               const char *dir,
                               struct uuid directory,
                               struct io_file **checkpoint);

void controller_submit(struct node *node, struct controller_call *call);

/* Have the control part answer a client's request, or the part of it in `in` (a struct of the
 * request's API that lives as long as the request). `finish` gets the response struct and ends the
 * request; without a serving control part the request is closed. */
void controller_forward(struct request *request,
                        const void *in,
                        void (*finish)(struct request *request, void *response));

/* Periodic work and what the turn gathered. Returns when it wants to be called next. */
int64_t controller_turn(struct node *node);

/* Why the control part serves no more until the node starts anew, in words, or NULL. */
const char *controller_failure(const struct node *node);

/* Has the metadata log moved since controller_turn looked? */
bool controller_log_moved_since(const struct node *node);

/* Create a topic that a Metadata request asked for; nobody waits. Its partitions are taken from the
 * quota of the client that asked; NULL: of nobody. */
void controller_auto_create(struct node *node, struct view topic, const struct request *client);

/* The committed image has changed: say what became of a broker. */
struct image_change;
void controller_follow(struct node *node, const struct image_change *change);

/* What the controller knows of a broker: soft state (core/cluster.h). False: never heard of. */
struct cluster_broker_view;
bool controller_broker(const struct node *node, int32_t id, struct cluster_broker_view *out);

/* What the controller knows, with all that it has appended, up to `end`: for checkers. */
const struct image *controller_image(const struct node *node, int64_t *end);

/* Why it became what it is, in words. */
const char *controller_reason(const struct cluster_broker_view *view);

/* The node that leads the quorum, -1: nobody. / The finalized level of kraft.version. */
int32_t controller_leader(const struct node *node);
int16_t controller_kraft_version(const struct node *node);

/* Why the control part does not serve, in words; NULL: it does. */
const char *controller_not_ready(const struct node *node);
