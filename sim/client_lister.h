/* client_lister.h - a client that asks for offsets: by time, by place, by leader epoch. */
#pragma once

#include "sim/client.h"
#include "sim/places.h"

struct client_lister {
    struct client client;
    struct places *places;
    struct places_one asked[HISTORY_PARTITIONS_MAX]; /* Of one topic: what is under way. */
    uint32_t asked_count;
    bool audit;        /* Asks everything once, */
    uint32_t audit_at; /* and has got so far. */
};

/* `places` is borrowed: it judges the answers. */
struct client_lister *client_lister_new(const struct client_seat *seat, struct places *places);

/* Ask each topic for everything, once more. */
void client_lister_audits(struct client_lister *lister);
