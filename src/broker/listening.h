/* listening.h - the listeners of a node: opened at its start, and followed when `listeners` and
 * `listener.security.protocol.map` change while it runs.
 *
 * What holds is what was set for this broker, else what the file says. The controller's listeners
 * stay as they are, and so does the name of the one between brokers; any other may come, go, and
 * move to another address. The registration is renewed, so that clients are told of it.
 *
 * Places in node->options.listeners and node->listeners stay while a listener is there; a place
 * whose name is empty is free. Thread: the shard's. */
#pragma once

#include "base/view.h"

struct cluster_override;
struct node;
struct request;

/* Listen as the settings say, which may have been set at run time before. 0, or -errno, which was
 * told: a listener that the file does not have is only told. */
MUST_USE int listening_open(struct node *first);

void listening_close(struct node *first);

/* Settings of the broker have changed: open, close and move listeners. At the end of a turn, when
 * all records of a change are applied. */
void listening_follow(struct node *node);

/* Why the listeners cannot become what they would be with these settings, in the request's arena;
 * or null. Tries the new addresses. */
struct view listening_judge(struct request *request,
                            const struct cluster_override *overrides,
                            uint32_t count);
