/* directories.h - the node's data directories before anything is opened in them.
 *
 * One that is new is formatted as `kafka-storage format --standalone` does it; one that holds
 * other things is refused before a byte is written. */
#pragma once

#include "base/base.h"

struct node;

/* Read whose directories they are, format what is new; node->cluster_id is known then. 0, or -errno
 * after saying what is wrong. Blocks. */
MUST_USE int directories_open(struct node *node);
