/* topic.h - what the `dohle topic` commands share. */
#pragma once

#include "cli/client.h"

/* What the library wants to begin an admin call, and where it puts the event that ends it. */
struct topic_call {
    rd_kafka_queue_t *queue;
    rd_kafka_AdminOptions_t *options; /* With the command's timeout. */
};
MUST_USE struct topic_call topic_call(struct client *client, rd_kafka_admin_op_t op);

/* Wait for the call's one event, and give back what topic_call made; the caller destroys the event.
 * NULL: it failed as a whole, which was said of `what`. */
MUST_USE rd_kafka_event_t *topic_called(struct client *client,
                                        struct topic_call call,
                                        const char *what);

/* Say of each result whether it failed (`done` NULL) or print "`done` topic \"x\"". An enum
 * cli_exit. */
int topic_results(struct client *client,
                  const rd_kafka_topic_result_t **results,
                  size_t count,
                  const char *done);

/* The topic's settings: an event to be destroyed, `*entries` of `*count`. NULL: it was said. */
MUST_USE rd_kafka_event_t *topic_configs(struct client *client,
                                         const char *name,
                                         const rd_kafka_ConfigEntry_t ***entries,
                                         size_t *count);
