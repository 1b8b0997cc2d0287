/* dynamic.h - settings of the broker that change while it runs: what it refuses, what it does then.
 *
 * A change is a record of the metadata log, judged by core/cluster before; the values that hold are
 * the image's (broker_setting). Most are looked up where they are used; what is kept elsewhere, in
 * net/ and log/, is put there by dynamic_apply(). Thread: the shard's. */
#pragma once

#include "base/view.h"

struct controller_call;
struct node;

/* Was it this node's broker part that the client asked? It judges then, as in Kafka, before the
 * controller does. */
bool dynamic_judges(const struct controller_call *call);

/* step_caller.judge; the context is the call. */
struct view dynamic_judge(void *call, struct view resource, struct view name, struct view value);

/* Settings of the broker have changed, or the node has opened: do what they say now. */
void dynamic_apply(struct node *node);
void dynamic_close(struct node *node);

/* A setting that may be given for one listener alone, by its name: "listener.name.x.NAME" as set
 * at run time or in the file. False: it is not. `listener` as in struct listener. */
MUST_USE bool dynamic_listener_number(const struct node *node,
                                      const char *listener,
                                      const char *name,
                                      int64_t *out);
