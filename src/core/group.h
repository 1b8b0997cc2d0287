/* group.h - the groups and the offsets of one partition of __consumer_offsets: all of it but what
 * only consumer groups have (consumer_group.h). What is said of a group's states below is of
 * classic ones.
 *
 * A machine in the shape of step.h. A step decides: it leaves records in the step, changes soft
 * state (who waits, deadlines, the states of a rebalance), and puts requests that are answered on
 * the list of answers. The caller
 *
 *   1. appends the step's records as one batch: then groups_apply(); if that fails groups_failed(),
 *      which takes the decision back and turns its answers into errors;
 *   2. takes the answers (groups_answer) and holds each until the high watermark has passed all
 *      that is appended by then. So no answer shows what a crash can take, and a failure that
 *      comes later ends the whole machine (groups_free, load anew): nothing has to be undone.
 *
 * What is soft and what is logged: README.md. Deadlines are judged by the step's horizon.
 *
 * States of a group, and what leads from one to the other (group_move() holds it to that):
 *
 *   EMPTY       no members                            -> PREPARING  the first member joins
 *   PREPARING   members are asked to join (anew)      -> COMPLETING all have, or time is up
 *                                                     -> EMPTY      nobody is left
 *   COMPLETING  joins are answered, the leader's      -> STABLE     its assignment is logged
 *               assignment is awaited                 -> PREPARING  members change, no assignment
 *   STABLE      each member has its assignment        -> PREPARING  members or their wishes change
 *   DEAD        from all: the partition goes away
 *
 * Pure. Memory: the struct mem of groups_new(). Thread: one owner. */
#pragma once

#include "base/list.h"
#include "core/step.h"
#include "gen/errors.h"

struct groups;
struct group_event;

struct join_group_request;
struct join_group_response;
struct sync_group_request;
struct sync_group_response;
struct leave_group_request;
struct leave_group_response;
struct describe_groups_response_described_group;

/* Settings, with Kafka's names in the comments. */
struct group_options {
    int64_t session_min_ms;      /* group.min.session.timeout.ms */
    int64_t session_max_ms;      /* group.max.session.timeout.ms */
    int64_t initial_delay_ms;    /* group.initial.rebalance.delay.ms */
    uint32_t size_max;           /* group.max.size */
    uint32_t metadata_max_bytes; /* offset.metadata.max.bytes, in UTF-16 units as Kafka counts */
    int64_t retention_ms;        /* offsets.retention.minutes */
    /* Told each event of a group when it is remembered (group_story.h), or NULL. */
    void (*told)(void *context, struct view group, const struct group_event *event);
    void *told_context;
};

/* A Join or Sync from its step to its answer. The caller's; it stays until it comes back from
 * groups_answer(). The response is filled in by then, in `arena`. */
struct group_wait {
    struct list link; /* Among the answers. */
    struct arena *arena;
    int16_t version;
    struct join_group_response *join; /* One of the two, set to defaults by the caller. */
    struct sync_group_response *sync;
};

/* ---- life ------------------------------------------------------------------------------------ */

/* No groups yet; NULL: no memory. `seed` seeds the hash maps. */
MUST_USE struct groups *groups_new(struct mem *mem,
                                   const struct group_options *options,
                                   uint64_t seed,
                                   int64_t now_ms);

/* Every parked Join and Sync is answered with `error` (take the answers), and all groups are dead:
 * only groups_answer() and groups_free() may follow. */
void groups_unload(struct groups *groups, enum kafka_error error);

/* Nothing may be parked any more. Returns NULL; of NULL, nothing happens. */
struct groups *groups_free(struct groups *groups);

/* The next request that has its answer, or NULL. */
struct group_wait *groups_answer(struct groups *groups);

/* ---- records --------------------------------------------------------------------------------- */

enum groups_result {
    GROUPS_OK = 0,
    GROUPS_SKIPPED,  /* A key that this build does not know: left alone, as Kafka does. */
    GROUPS_E_FAULT,  /* A known key whose key or value does not decode: the load has failed. */
    GROUPS_E_MEMORY, /* The record is not applied: load anew. */
};

/* Where a record stands. */
struct groups_place {
    int64_t offset;
    int64_t producer_id; /* Of a transactional batch, else -1. */
};

/* Load one record of the log, in the log's order. `arena` is for decoding. */
MUST_USE enum groups_result groups_load(struct groups *groups,
                                        struct arena *arena,
                                        struct view key,
                                        struct view value,
                                        struct groups_place place);

/* Load a transaction's end: its offsets count, or are forgotten. */
MUST_USE enum groups_result groups_load_marker(struct groups *groups,
                                               int64_t producer_id,
                                               bool committed);

/* All is loaded: sessions begin, groups above their size rebalance. `now_ms` as in a step. */
void groups_loaded(struct groups *groups, const struct step *step);

/* The step's records are in the log from `offset` on. GROUPS_E_MEMORY: unload, and load anew. */
MUST_USE enum groups_result groups_apply(struct groups *groups,
                                         const struct step *step,
                                         int64_t offset);

/* The step's records could not be appended, for Kafka's error `error` as clients are to see it. */
void groups_failed(struct groups *groups, const struct step *step, enum kafka_error error);

/* ---- members --------------------------------------------------------------------------------- */

struct group_join {
    const struct join_group_request *request;
    struct view client_id;   /* Of the request's header. */
    struct view client_host; /* "/127.0.0.1" */
};

/* JoinGroup 0-9. The answer comes through groups_answer(), perhaps much later.
 * STEP_MORE: an empty consumer group makes way; append, apply, and call it again.
 * STEP_E_MEMORY: nothing has changed, and `wait` is not kept. */
MUST_USE enum step_result group_join(struct groups *groups,
                                     struct step *step,
                                     const struct group_join *in,
                                     struct group_wait *wait);

/* SyncGroup 0-5; as above. The check that a request of version 5 names protocol type
 * and name is the caller's: it comes before everything else. */
MUST_USE enum step_result group_sync(struct groups *groups,
                                     struct step *step,
                                     const struct sync_group_request *in,
                                     struct group_wait *wait);

struct group_beat {
    struct view group_id;
    struct view member_id;
    struct view instance_id; /* Null below version 3. */
    int32_t generation;
    int64_t arrived_ms; /* When the frame was there: what counts as the contact. */
};

/* Heartbeat 0-4: a member says that it is alive. Fencing first, then member, then generation, then
 * state. Logs nothing: the contact is soft state.
 *
 *   NONE                   the session runs to arrived_ms + its timeout
 *   REBALANCE_IN_PROGRESS  the same, and the member is to join again
 *   FENCED_INSTANCE_ID, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION   nothing has changed
 *
 * O(1), no allocation. */
MUST_USE enum kafka_error group_heartbeat(struct groups *groups, const struct group_beat *beat);

/* Is it a consumer group? */
bool group_is_consumer(const struct groups *groups, struct view id);

/* LeaveGroup 0-5. Of a consumer group the members leave with the records, so that a
 * failed append is the answer to all of them. `out` is complete at return; members are in the
 * step's arena. */
MUST_USE enum step_result group_leave(struct groups *groups,
                                      struct step *step,
                                      const struct leave_group_request *in,
                                      struct leave_group_response *out);

/* ---- time ------------------------------------------------------------------------------------ */

/* When groups_tick() wants to be called; it may be before the earliest deadline. INT64_MAX: never.
 */
int64_t groups_deadline(struct groups *groups);

/* Act on one deadline at or before the step's horizon. False: there was none (step_begin is not
 * needed anew). Otherwise append and take the answers as after any step, and call it again. */
MUST_USE bool groups_tick(struct groups *groups, struct step *step);

/* ---- looking --------------------------------------------------------------------------------- */

/* DescribeGroups 0-6 for one group: fills `out` but for the authorized operations; bytes are copied
 * to `arena`. False: no memory. */
MUST_USE bool group_describe(const struct groups *groups,
                             struct arena *arena,
                             int16_t version,
                             struct describe_groups_response_described_group *out);

/* One line of ListGroups; views last until the next step. */
struct group_listed {
    struct view id;
    struct view protocol_type; /* Empty if there is none. */
    struct view state;         /* "Stable" */
    struct view type;          /* "classic", "consumer" */
};

/* Each group, until `each` returns false. */
void groups_list(const struct groups *groups,
                 bool (*each)(void *context, const struct group_listed *listed),
                 void *context);

/* DeleteGroups for one group: tombstones for its offsets and itself. `*out`: NONE, or
 * GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP. STEP_MORE: append, apply, call again. */
MUST_USE enum step_result group_delete(struct groups *groups,
                                       struct step *step,
                                       struct view id,
                                       enum kafka_error *out);

uint32_t groups_count(const struct groups *groups);
