/* group_regex.h - subscriptions of consumer groups by regular expression: is it one, and which
 * topics does it match?
 *
 * When a heartbeat finds it due, the topics that its sender may see are noted, and the group's
 * expressions are matched with them: at once if that is little work, else in slices, one a turn of
 * the shard, so that no number of topics and expressions holds up anybody's heartbeat. The result
 * is a step of its own, and members get it with their next heartbeat. A group is matched not more
 * often than every ten seconds, groups that are due wait for one another. */
#pragma once

#include "broker/coordinator.h"
#include "net/shard.h"

/* The work of a shard. */
struct group_regexes {
    struct node *node;
    struct list jobs; /* The first one is worked on. */
    uint32_t count;
    struct shard_timer timer;
};

void group_regexes_init(struct group_regexes *regexes, struct node *node);

/* Null, or why the request's expression is none; one that the group has already is not looked at.
 * `*fresh`: it is new to the group. */
struct view group_regex_fault(struct request *request, struct coordinator_part *part, bool *fresh);

/* The request has been handled and its step committed: match the group's expressions if it is time.
 * If there is no memory for it, what was known stands. Cost: O(topics), and a slice of the
 * matching; O(1) for a group without expressions. */
void group_regex_resolve(struct request *request,
                         struct coordinator_part *part,
                         struct step *step,
                         bool fresh);

/* The partition is not led any more: what is being matched for its groups is of no use. */
void group_regex_forget(struct group_regexes *regexes, const struct coordinator_part *part);
