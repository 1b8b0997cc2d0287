/* lifecycle.h - the broker part's life under the controller: register, catch up, unfence.
 *
 * With the control part in the same process a node waits for events, not for timers: it registers
 * as soon as the control part leads, and beats when its image has reached the registration. Its
 * session is not timed (the lock on the directory proves an earlier run dead), so it beats no more,
 * but for what it has to tell: this build does not replicate, so beside other brokers it keeps what
 * it has and cordons its log directories, and takes no new replicas. */
#pragma once

#include "base/view.h"

struct node;

/* Register; the rest follows from the calls' answers. False: no memory. */
MUST_USE bool lifecycle_start(struct node *node);

/* Free it; no call may be in flight. */
void lifecycle_stop(struct node *node);

/* The image has moved: beat if that lets the broker be unfenced. */
void lifecycle_image_moved(struct node *node);

/* Other listeners are open than were registered: register anew, as the same incarnation. */
void lifecycle_listeners(struct node *node);

/* Other log directories are cordoned than before: tell it with a heartbeat. */
void lifecycle_cordoned(struct node *node);

/* Another broker has come or gone: directories are cordoned, or not any more. */
struct image_change;
void lifecycle_follow(struct node *node, const struct image_change *change);

/* What is missing to serve, in words; NULL: registered and unfenced. */
const char *lifecycle_not_ready(const struct node *node);

/* Why the broker part will never serve, or NULL. */
const char *lifecycle_failure(const struct node *node);
