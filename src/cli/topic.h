/* topic.h - what the `dohle topic` commands share. */
#pragma once

#include "cli/client.h"

/* Wait for the one event of an admin call that was put on `queue`; the caller destroys it. NULL: it
 * failed as a whole, which was said of `what`. */
MUST_USE rd_kafka_event_t *topic_wait(struct client *client,
                                      rd_kafka_queue_t *queue,
                                      const char *what);

/* The options of an admin call, with the command's timeout; the caller destroys them. */
MUST_USE rd_kafka_AdminOptions_t *topic_options(struct client *client, rd_kafka_admin_op_t op);

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
