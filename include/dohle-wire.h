/* dohle-wire.h - every message of the Kafka protocol as a C struct: decode, encode, walk, print.
 *
 * The installed header is one file: `make install` puts in the place of each include below what it
 * includes, and the structs of all messages behind (tools/flatten).
 *
 *   wire_decode, wire_encode   bytes <-> `struct heartbeat_request` and all others, without a heap
 *   wire_walk                  every field of a message's bytes with its place, for a visitor
 *   frame_nodes, tree_print    a frame as an object tree; json_frame, json_read: as JSON and back
 *
 * A program gives memory by a struct mem: memory_init() makes one over malloc. Functions keep no
 * state: any thread may call them, with its own arena. Link as `pkg-config --libs dohle-wire` says.
 * Names have no common prefix but that of their file: wire_, frame_, node_, tree_, json_, out_, ...
 */
#pragma once

/* Used by inline functions below, and given back as they were at the end. */
#pragma push_macro("assert")
#pragma push_macro("MIN")
#pragma push_macro("MAX")

#include "gen/errors.h"
#include "sys/memory.h"
#include "text/diff.h"
#include "text/json.h"
#include "text/page_html.h"
#include "text/schema.h"
#include "text/tree.h"
#include "wire/walk.h"

#pragma pop_macro("MAX")
#pragma pop_macro("MIN")
#pragma pop_macro("assert")
