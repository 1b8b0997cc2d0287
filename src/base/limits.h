/* limits.h - every cap of the program that is not a Kafka setting, with its reason.
 *
 * Sizes in bytes, counts in pieces. A cap that rests on another is tied to it below. */
#pragma once

#include "base/base.h"

/* Arenas: one chunk serves a small request; what is kept over a reset serves the usual large one.
 */
#define ARENA_CHUNK_BYTES 4096u
#define ARENA_KEEP_BYTES  (64u * 1024u)

/* A decoded request may cost at most this many times its bytes (array elements are wider in
 * memory than on the wire), and at least the floor so that tiny requests never fail. */
#define WIRE_MEMORY_FACTOR 16u
#define WIRE_MEMORY_FLOOR  4096u

/* A topic's name: Kafka's own limit, so that "topic-partition.uuid-delete" fits a file name. */
#define TOPIC_NAME_MAX 249u

/* Records of one step of a core machine: Kafka's limit for one atomic batch of the controller. */
#define STEP_RECORDS_MAX 10000u

/* Unsynced bytes per log directory before background writers sync as they write, and before
 * sockets are not read any more (architecture, section 4). */
#define LOG_UNSYNCED_MAX (64u * 1024u * 1024u)

_Static_assert(ARENA_KEEP_BYTES >= ARENA_CHUNK_BYTES, "a reset must be able to keep a chunk");
