/* spread.h - a request whose partitions or groups belong to other shards is brought to them.
 *
 * With several shards, every API has a rule that says whose it is. What is all of one shard goes
 * there as it came; what is several shards' is split into a message for each, and their answers are
 * joined in the order of the request. A part for the own shard is done at once. Handlers see either
 * the client's request or an errand's (net/errand.h), with nothing but their own shard's in it.
 *
 * To add an API: a row in spread.c's table, or none if every shard can answer it by itself. */
#pragma once

#include "net/shard.h"

/* The rows of `handlers` with those that need it led through here; `count` of them into `out`. */
void spread_handlers(const struct net_handler *handlers, uint32_t count, struct net_handler *out);
