/* modern.h - a member of a consumer group (KIP-848) that beats as the row tells it.
 *
 * All of them want the suite's topic of MODERN_PARTITIONS partitions, which modern_prepare() makes
 * and modern_finish() deletes. */
#pragma once

#include "check/run.h"

#include "gen/consumer_group_heartbeat_response.h"

#define MODERN_PARTITIONS 6
#define MODERN_SESSION_MS 45000 /* group.consumer.session.timeout.ms, the least that it may be. */

struct modern {
    struct check_run *run;
    struct check_peer *peer;
    struct view id;
    struct view instance; /* Null: dynamic. Told when it joins and leaves. */
    bool tells_instance;  /* In other beats too. */
    int32_t epoch;        /* Of the newest answer. */
    int32_t rebalance_ms;
    uint32_t owned;       /* A bit for each partition that it says it owns. */
    uint32_t assigned;    /* Of the newest answer that had an assignment. */
    bool assignment_came; /* With the newest answer. */
    struct view regex;    /* Null: it wants the topic by name. */
    struct view assignor;
};

/* The suite's topic; nothing if the server does not have consumer groups. */
void modern_prepare(struct check_run *world);
void modern_finish(struct check_run *world);

/* A member that has not joined. The row is skipped if the server has no consumer groups. */
void modern_init(struct modern *m, struct check_run *run, const char *instance);

/* A full beat (all that a member says, with what it owns) and a short one (nothing new), with this
 * epoch: 0 joins, -1 leaves, -2 leaves for a while. The error; on NONE the epoch is taken. */
int16_t modern_full(struct modern *m, int32_t epoch);
int16_t modern_short(struct modern *m, int32_t epoch);

/* Join, and then own what was assigned. */
void modern_join(struct modern *m);

/* The same as the first one of the row's group, which has all partitions then. A coordinator that
 * has not heard of the topic yet is asked again, for a group of another name. */
void modern_join_alone(struct modern *m);

/* Beat, give up what is not assigned any more, take what is: until all members have been given what
 * adds up to all partitions, or 30 s have passed. */
void modern_settle(struct modern *const *members, uint32_t count);

/* "0,1,2" */
const char *modern_set(struct check_run *run, uint32_t partitions);

/* The embedded protocol of classic members: what a member wants (the suite's topic), and an
 * assignment of these partitions of it. */
struct view modern_subscription(struct check_run *run);
struct view modern_assignment(struct check_run *run, uint32_t partitions);
