/* listeners.h - what the listener settings say together: `listeners`, `advertised.listeners`, the
 * map of protocols, which is for whom. From the file at the start, and again when they change while
 * the node runs. Pure: the world is asked through the source. */
#pragma once

#include "broker/node.h"

#define LISTENERS_FAULT_BYTES 512u

struct listeners_source {
    /* A setting as given, or the null view. */
    struct view (*given)(void *context, struct view name);
    /* Told each thing that is wrong with a setting, in words. */
    void (*fault)(void *context, const char *setting, const char *text);
    /* The address of the host of a listener, as digits. Returns NULL, or why there is none: "has no
     * address here". */
    const char *(
        *resolve)(void *context, const char *listener, const char *host, char *out, size_t size);
    void (*own_name)(void *context, char *out, size_t size); /* Of this machine; NUL-terminated. */
    void *context;
    bool controller_only;
};

struct listeners_set {
    struct node_listener listeners[NODE_LISTENERS_MAX]; /* The one between brokers first. */
    uint32_t count;
    bool loopback; /* `listeners` is not given. */
};

/* A literal address, written as the system writes it. False: it is none, `out` is as it was. */
bool listeners_literal(const char *host, char *out, size_t size);

/* False: something is wrong, it was told. O(listeners^2). */
MUST_USE bool listeners_read(const struct listeners_source *source, struct listeners_set *out);
