/* dynamic.h - settings of the broker that change while it runs: what it refuses, what it does then.
 *
 * A change is a record of the metadata log, judged by core/cluster before; the values that hold are
 * the image's (broker_setting). Most are looked up where they are used; what is kept elsewhere, in
 * net/ and log/, is put there by dynamic_apply(). Thread: the shard's. */
#pragma once

#include "base/view.h"

struct controller_call;
struct node;

/* step_caller.judge of a call that has a client, which is the context. If it came to this broker,
 * it judges as Kafka's does, before the controller; patterns of subscriptions it judges for all. */
struct view dynamic_judge(void *context, struct view resource, struct view name, struct view value);

/* step_caller.judge_all: what only holds together. */
struct cluster_override;
struct view dynamic_judge_all(void *context,
                              struct view resource,
                              const struct cluster_override *overrides,
                              uint32_t count);

/* Settings of the broker have changed, or the node has opened: do what they say now. */
void dynamic_apply(struct node *node);
void dynamic_close(struct node *node);

/* The maxima and rates that listeners have of their own. */
void dynamic_apply_listeners(struct node *node);

/* A setting that may be given for one listener alone, by its name: "listener.name.x.NAME" as set
 * at run time or in the file. False: it is not. `listener` as in struct listener. */
MUST_USE bool dynamic_listener_number(const struct node *node,
                                      const char *listener,
                                      const char *name,
                                      int64_t *out);
