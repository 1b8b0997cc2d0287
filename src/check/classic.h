/* classic.h - a member of a classic group that does what the row tells it, and no more.
 *
 * It has two connections, so that it can beat while its join or sync is parked. A call changes the
 * member only if the server answered NONE. */
#pragma once

#include "check/run.h"

#include "gen/join_group_response.h"

struct classic {
    struct check_run *run;
    struct check_peer *work;  /* Join, Sync, Leave. */
    struct check_peer *beats; /* Heartbeat. */
    struct view id;           /* "" before the first join. */
    struct view instance;     /* Null: a dynamic member. */
    struct view leader;       /* Of the newest join answer. */
    int32_t generation;       /* -1 before it. */
    int32_t member_count;     /* Members that the newest join answer listed. */
    /* What it joins with; to be changed before. */
    int32_t session_ms, rebalance_ms;
    /* Wanted; the nearest that the server has. A dynamic member begins with 3, the last version
     * that needs no member id before its join (KIP-394), a static one with the newest. */
    int16_t join_version;
    const char *protocol_type;
    const char *protocols[3]; /* NULL-terminated. */
    struct view metadata;     /* Of each protocol. */
    struct view assignment;   /* What a leader assigns it: "assigned". */
};

/* The usual session and rebalance timeout of a row, long enough to play no part. */
#define CLASSIC_TIMEOUT_MS 60000

/* The shortest session that Kafka's defaults allow. */
#define CLASSIC_SESSION_MIN_MS 6000

#define CLASSIC_JOIN_NEWEST 9

/* A member that has not joined; `instance` NULL: dynamic. */
void classic_init(struct classic *m, struct check_run *run, const char *instance);

/* Send a join with what the member knows; take its answer. */
void classic_join_send(struct classic *m);
const struct join_group_response *classic_join_take(struct classic *m);

/* Both, with an answer that is expected at once: returns its error. */
int16_t classic_join(struct classic *m);

/* Send a join with other metadata than before: a rebalance, whoever the member is. */
void classic_change_send(struct classic *m);

/* Join up to the parked request: asks for a member id first where the version has KIP-394. */
void classic_enter(struct classic *m);

/* Take the answer of a join that must be NONE. */
void classic_joined(struct classic *m, const char *what);

/* Sync, by the leader with "assigned" for each of `others` and for itself. */
void classic_sync_send(struct classic *m, const struct classic *const *others, uint32_t count);
int16_t classic_sync_take(struct classic *m, struct view *assignment);
int16_t classic_sync(struct classic *m);

/* Heartbeats: the member's own; any. */
int16_t classic_beat(struct classic *m, int16_t version);
struct classic_beat {
    struct view member;
    struct view instance; /* Null before version 3. */
    int32_t generation;
};
int16_t classic_beat_as(struct classic *through, int16_t version, const struct classic_beat *beat);

/* Beats until the answer is not NONE, for a request on another connection to be seen: the answer.
 */
int16_t classic_beat_changed(struct classic *m, int16_t version);

/* Leave; returns the member's error where the version has one, else the request's. */
int16_t classic_leave(struct classic *m);

/* All of them join for the first time (the first one leads) and sync: a stable group, generation 1.
 * Takes the server's initial rebalance delay, or twice that. */
void classic_stable(struct classic *const *members, uint32_t count);

/* All of them, who are members and whose group is in a rebalance, join again, then sync. */
void classic_rejoin(struct classic *const *members, uint32_t count);
void classic_sync_all(struct classic *const *members, uint32_t count);

/* Beat every 50 ms until the answer is not NONE (or the limit): the moment of that answer. */
int64_t classic_beat_until(struct classic *m, int16_t version, int64_t limit_ms, int16_t *answer);
