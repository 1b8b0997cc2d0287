/* loggers.h - the levels of our own log lines, as Kafka's resource BROKER_LOGGER has them.
 *
 * Kafka's loggers are classes, ours the areas of sys/say.h, and `root`. Thread: any shard's. */
#pragma once

#include "broker/broker.h"
#include "sys/say.h"

/* "DEBUG". Static text. */
const char *loggers_level_name(enum say_level level);

/* Is the resource's name the id of this node? */
MUST_USE bool loggers_own_id(const struct request *request, struct view name);
