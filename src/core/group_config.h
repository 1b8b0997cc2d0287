/* group_config.h - settings of one group (ConfigResource GROUP): what stands for them at the
 * broker, within which bounds.
 *
 * A group's "consumer.session.timeout.ms" overrides the broker's
 * "group.consumer.session.timeout.ms" and lies between its ".min." and ".max." kin, for every
 * setting that has such. Pure. */
#pragma once

#include "core/cluster.h"

struct cluster_override;

/* The value that holds for all groups that do not set it: the broker's, else the default. The text
 * may be in `arena`; null only without memory. */
struct view group_config_standard(const struct cluster_config_context *context,
                                  struct arena *arena,
                                  const struct config_def *def);

/* The broker's setting that gives the group's its standard ("group.consumer.x" for "consumer.x"),
 * or the setting's own name if there is none. */
struct view group_config_broker_name(struct arena *arena, const struct config_def *def);

/* Null, or why these overrides (whose values have been checked one by one) cannot be the group's on
 * top of those it has. */
struct view group_config_fault(const struct cluster_config_context *context,
                               struct arena *arena,
                               struct view group,
                               const struct cluster_override *overrides,
                               uint32_t count);
