/* consumer_group.h - consumer groups: the protocol in which the server assigns (KIP-848).
 *
 * Part of the machine of group.h: these groups live beside the classic ones in a struct groups, and
 * each can become one of the other kind. All that is logged is changed by groups_apply() alone, by
 * the same functions that load it; a step only makes records and the answer. Soft are the timers
 * and when the topics were last looked at.
 *
 * State of a group (never stored; it follows from what is):
 *
 *   Empty        no members
 *   Assigning    the group's epoch is ahead of its target assignment's
 *   Reconciling  a member has not reached the target assignment
 *   Stable       all have
 *
 * State of a member, and what leads from one to the other (consumer_group_reconcile.c):
 *
 *   STABLE       holds what the target gives it      -> UNREVOKED   the target takes something away
 *                                                    -> UNRELEASED  others hold what it is to get
 *   UNREVOKED    is to give partitions up first      -> STABLE, UNRELEASED  it does not report them
 *   UNRELEASED   waits for what others hold          -> STABLE      all are free
 *                                                    -> UNREVOKED   a new target
 *
 * A partition has one holder at a time: it is free for another only when no member has it, assigned
 * or still to be given up.
 *
 * Pure. Topics come from the metadata image that groups_see() was given. */
#pragma once

#include "core/group.h"

struct image;
struct consumer_group_heartbeat_request;
struct consumer_group_heartbeat_response;
struct consumer_group_describe_response_described_group;

/* Settings of consumer groups; of those that a group may have of its own, the server's value and
 * its bounds. */
struct consumer_group_interval {
    int64_t value_ms;
    int64_t min_ms;
    int64_t max_ms;
};
enum consumer_group_migration { /* A set. */
                                CONSUMER_GROUP_UPGRADE = 1,
                                CONSUMER_GROUP_DOWNGRADE = 2
};
struct consumer_group_options {
    struct consumer_group_interval session;    /* group.consumer.session.timeout.ms, .min., .max. */
    struct consumer_group_interval heartbeat;  /* group.consumer.heartbeat.interval.ms ... */
    struct consumer_group_interval assignment; /* group.consumer.assignment.interval.ms ... */
    int64_t regex_refresh_ms;                  /* group.consumer.regex.refresh.interval.ms */
    uint32_t size_max;                         /* group.consumer.max.size */
    uint32_t migration;                        /* group.consumer.migration.policy */
    struct view assignors; /* group.consumer.assignors; a list. Outlives the groups. */
};

/* What the groups see of the cluster from now on; `options` are copied. NULL: no topics. The image
 * must live as long. */
void groups_see(struct groups *groups,
                const struct image *image,
                const struct consumer_group_options *options);

/* Topics, partitions or racks have changed: each group looks at its own with its next heartbeat. */
void groups_topics_changed(struct groups *groups);

/* ---- heartbeat ------------------------------------------------------------------------------- */

struct consumer_group_beat {
    const struct consumer_group_heartbeat_request *request;
    struct view client_id;   /* Of the request's header. */
    struct view client_host; /* "/127.0.0.1" */
    struct view regex_fault; /* Null: the request's expression is one, or was not looked at. */
    int64_t arrived_ms;
};

/* ConsumerGroupHeartbeat 0-1. `out` is complete at return, its parts are in the
 * step's arena; errors are in it. STEP_E_MEMORY: nothing has changed. */
MUST_USE enum step_result consumer_group_heartbeat(struct groups *groups,
                                                   struct step *step,
                                                   const struct consumer_group_beat *in,
                                                   struct consumer_group_heartbeat_response *out);

/* ---- regular expressions ---------------------------------------------------------------------
 * They are evaluated by the caller, who has a library for it. */

/* Is this expression in use by a member of the group, and so known to be one? */
bool consumer_group_regex_known(const struct groups *groups, struct view id, struct view regex);

/* Is it time to match the group's expressions with the topics? If so, that this
 * is done now is noted, and `regexes` are those to match, `*count` of them, in the step's arena.
 * NULL: no, or no memory. `fresh`: the request that asks has brought a new expression. */
const struct view *consumer_group_regex_due(struct groups *groups,
                                            struct step *step,
                                            struct view id,
                                            bool fresh,
                                            uint32_t *count);

/* What an expression matches. */
struct consumer_group_matched {
    struct view regex;
    const struct view *topics; /* Sorted. */
    uint32_t topic_count;
    int64_t version; /* Of the image: an offset in the metadata log. */
};

/* The result: records, and a new epoch if it is another than before. */
MUST_USE enum step_result consumer_group_resolved(struct groups *groups,
                                                  struct step *step,
                                                  struct view id,
                                                  const struct consumer_group_matched *matched,
                                                  uint32_t count);

/* ---- looking --------------------------------------------------------------------------------- */

/* ConsumerGroupDescribe 0-1 for one group: fills `out` but for the authorized operations; what it
 * points to is in `arena`. False: no memory. */
MUST_USE bool consumer_group_describe(const struct groups *groups,
                                      struct arena *arena,
                                      struct consumer_group_describe_response_described_group *out);
