/* client_keeper.h - a client whose topic is compacted, or loses records by size or by time. */
#pragma once

#include "sim/client.h"

enum client_keeper_rule { CLIENT_KEEPER_COMPACT, CLIENT_KEEPER_SIZE, CLIENT_KEEPER_TIME };

struct client_keeper;

struct client_keeper *client_keeper_new(const struct client_seat *seat,
                                        enum client_keeper_rule rule);

struct client *client_keeper_base(struct client_keeper *keeper);

/* Read everything once more, also after the storm. */
void client_keeper_audits(struct client_keeper *keeper);

/* Records that it has written, and those that it has seen gone: by the rule. */
uint64_t client_keeper_written(const struct client_keeper *keeper);
uint64_t client_keeper_gone(const struct client_keeper *keeper);
