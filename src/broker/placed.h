/* placed.h - what the metadata says of where our replicas lie, and what it is to say.
 *
 * Thread: the shard's. Memory: the node's. */
#pragma once

#include "broker/broker.h"

MUST_USE bool placed_open(struct node *node); /* False: no memory. */
void placed_close(struct node *node);         /* NULL-safe; no replica is left. */

/* The directory that the metadata has for our replica of the partition; zero: it does not say. */
struct uuid placed_recorded(const struct node *node,
                            const struct image_topic *topic,
                            int32_t partition);

/* The replica's directory may have changed, or its copy is whole (move_ready): the control part is
 * told if it does not know. Then, with move_ready, logs_move_go(). */
void placed_note(struct replica *replica);

/* Tell what is to be told. Returns when to be called next (monotonic ms). */
int64_t placed_turn(struct node *node);
