/* group_regex.h - subscriptions of consumer groups by regular expression: is it one, and which
 * topics does it match?
 *
 * Matching is done where the heartbeat is handled that finds it due, with the rights of who sent
 * it; the result is a step of its own, and members get it with their next heartbeat. Cost:
 * O(topics) for each expression of the group; not more often than every ten seconds for a group. */
#pragma once

#include "broker/coordinator.h"

/* Null, or why the request's expression is none; one that the group has already is not looked at.
 * `*fresh`: it is new to the group. */
struct view group_regex_fault(struct request *request, struct coordinator_part *part, bool *fresh);

/* The request has been handled and committed: match the group's expressions if it is time. */
void group_regex_resolve(struct request *request, struct coordinator_part *part, bool fresh);
