/* consumer_protocol.h - what classic consumers put into the bytes of JoinGroup and SyncGroup:
 * subscriptions and assignments.
 *
 * Two bytes of version, then the message. A version above those known is read as the highest known
 * one. Topics are names there and ids here; names that the image has not are left out. Pure. */
#pragma once

#include "core/partition_set.h"

struct image;

struct consumer_subscription {
    struct view *topics; /* Sorted, each once; views of the bytes. */
    uint32_t topic_count;
    struct view rack; /* Null: none. */
    struct partition_set owned;
};

enum consumer_protocol_result {
    CONSUMER_PROTOCOL_OK = 0,
    CONSUMER_PROTOCOL_E_FAULT, /* The bytes are no such message. */
    CONSUMER_PROTOCOL_E_USER,  /* An assignment with bytes of a strategy of its own. */
    CONSUMER_PROTOCOL_E_MEMORY
};

MUST_USE enum consumer_protocol_result consumer_protocol_subscription(
    struct arena *arena,
    const struct image *image,
    struct view bytes,
    struct consumer_subscription *out);

/* Empty bytes are an assignment of nothing. Every item gets `epoch`. */
MUST_USE enum consumer_protocol_result consumer_protocol_assignment(struct arena *arena,
                                                                    const struct image *image,
                                                                    struct view bytes,
                                                                    int32_t epoch,
                                                                    struct partition_set *out);

/* An assignment in the version of the bytes `like` (a subscription's). Null: no memory. */
MUST_USE struct view consumer_protocol_assigned(struct arena *arena,
                                                const struct image *image,
                                                const struct partition_set *set,
                                                struct view like);
