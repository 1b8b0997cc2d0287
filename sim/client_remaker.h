/* client_remaker.h - a client that makes a topic, deletes it and makes it again, under one name. */
#pragma once

#include "sim/client.h"

struct client_remaker;

struct client_remaker *client_remaker_new(const struct client_seat *seat);
struct client *client_remaker_base(struct client_remaker *remaker);

/* Read the topic as it is once more, also after the storm. */
void client_remaker_audits(struct client_remaker *remaker);

uint64_t client_remaker_made(const struct client_remaker *remaker); /* Topics. */
