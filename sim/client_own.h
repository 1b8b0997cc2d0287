/* client_own.h - what the clients share that have a topic of their own, of one partition: nobody
 * else writes to it, so they know all that it may hold. */
#pragma once

#include "record/batch.h"
#include "record/sink.h"
#include "sim/client.h"

#define CLIENT_OWN_FETCH_BY_ID 13 /* From this version on a fetch names the topic by its id. */

enum client_own_api {
    CLIENT_OWN_PRODUCE = 0,
    CLIENT_OWN_FETCH = 1,
    CLIENT_OWN_LIST_OFFSETS = 2,
    CLIENT_OWN_METADATA = 3,
    CLIENT_OWN_CREATE = 19,
    CLIENT_OWN_DELETE = 20,
};

struct client_own {
    struct client client;
    char name[16];
    struct uuid id;
    struct sink sink; /* The batch that is being made. */
};

struct client_own_setting {
    const char *name, *value;
};

struct client_own_fetch {
    int64_t offset;
    struct uuid id; /* Named from CLIENT_OWN_FETCH_BY_ID on; the own name below it. */
    int16_t version;
};

/* One record that a fetch brought. False: enough. */
typedef bool client_own_each(struct client_own *own, const struct record *record);

/* Name the topic: `prefix` and the seat's number. */
void client_own_init(struct client_own *own, const char *prefix, const struct client_seat *seat);

void client_own_create(struct client_own *own,
                       const struct client_own_setting *settings,
                       uint32_t count);
void client_own_look(struct client_own *own); /* Metadata, by name. */
void client_own_delete(struct client_own *own, bool by_id);
void client_own_produce(struct client_own *own, struct view records, int16_t version);
void client_own_fetch(struct client_own *own, const struct client_own_fetch *how);
void client_own_earliest(struct client_own *own); /* ListOffsets. */

/* Call `each` for every record at or above `*offset`, which moves behind the last batch. A damaged
 * batch is a violation. */
void client_own_read(struct client_own *own,
                     struct view records,
                     int64_t *offset,
                     client_own_each *each);
