/* controller_inside.h - what controller.c and controller_snapshot.c share. */
#pragma once

#include "broker/broker.h"
#include "broker/controller.h"
#include "broker/metadata_log.h"
#include "core/cluster.h"
#include "core/quorum.h"

#define METADATA_BATCH_BYTES_MAX (8u * 1024u * 1024u)
#define QUORUM_STATE_BYTES       4096u

/* A batch that is appended and not yet committed. */
struct pending {
    struct list link;
    struct buf *buf;
    int64_t offset_end;
    struct list letters; /* To the other shards: shards_prepare(). */
};

struct controller {
    struct node *node;
    struct cluster *cluster;
    struct quorum *quorum;
    struct log *log;
    struct log_watch watch;
    struct list queue;   /* Calls to decide. */
    struct list waits;   /* Calls decided, in the order of their offsets. */
    struct list pending; /* Batches, in the order of their offsets. */
    struct arena arena;  /* Of the controller's own steps and events. */
    struct sink sink;
    struct pending *unapplied;  /* The last one, if there was no memory to apply it to the
                                   controller's own image: nothing is decided before it is. */
    struct follow_again behind; /* It, or what is committed, waits for memory. */
    int64_t again_ms;           /* Periodic work and calls that wait for room: not before. */
    int64_t refused_said_ms;
    uint32_t refused;   /* Steps whose records were not taken, since one was. */
    int refused_for;    /* LOG_E_FULL or LOG_E_MEMORY. */
    const char *failed; /* Why it serves no more; NULL: it does. */
    char dir[METADATA_PATH_BYTES];
    bool log_moved;
    bool serving;                         /* Loaded: what is applied from here on is news. */
    bool fetches_due;                     /* Something moved that a waiting Fetch may be told. */
    struct list fetches;                  /* Fetches of the metadata log that wait: raft.c. */
    uint32_t reads;                       /* Jobs that read a snapshot. */
    struct controller_self *self;         /* Registering itself; NULL: it does not. */
    struct controller_snapshot *snapshot; /* Being written; NULL: none. */
    struct metadata_checkpoint oldest; /* Snapshots that there are; the log begins at the oldest */
    struct metadata_checkpoint newest; /* one at the latest. `end` 0: none. */
    int64_t snapshot_ms;               /* When it was made, or this node began. */
    uint64_t snapshot_bytes;           /* Of records since. */
    struct setting_number snapshot_bytes_max;
    struct setting_number snapshot_interval_ms;
};

/* What the quorum is told in a call. */
struct controller_moment {
    struct quorum_log log;
    struct quorum_event event;
};

/* Filled in for this moment; the event's arena is the controller's. */
const struct quorum_event *controller_event(struct controller *c, struct controller_moment *moment);

/* The control part serves no more; said once. */
void controller_fail(struct controller *c, const char *why);

/* ---- controller_append.c ---- */

/* Begin a step at this moment, at the end of the log. */
void controller_step_start(struct controller *c, struct step *step, struct arena *arena);

enum controller_append {
    APPEND_CONTROL = 1,  /* Control records. */
    APPEND_LAST_ROOM = 2 /* It may give room back, or keeps the cluster alive: log_append.last_room
                          */
};

/* Append the step's records as one batch, `how` of enum controller_append. LOG_OK and the base
 * offset; LOG_E_FULL, LOG_E_BUSY, LOG_E_MEMORY; LOG_E_SEGMENT: more than a batch holds; or what
 * ends the control part. */
MUST_USE int controller_append(struct controller *c,
                               const struct step *step,
                               int how,
                               int64_t *base);

/* Append and apply what a step decided. As controller_append(); what ends the control part has
 * ended it, all else was told, counted and taken back. */
MUST_USE int controller_commit_step(struct controller *c, const struct step *step, int how);

/* The log may take changes again that it refused: it is said. In each turn. */
void controller_refused_turn(struct controller *c);

/* What such a result is for who asked. / Set it in all items of the call's complete answer that
 * have none. False: it has no such items. */
int16_t controller_refused_error(int result);
bool controller_refuse_items(const struct controller_call *call, int16_t error);

void controller_pending_free(struct controller *c, struct pending *pending); /* NULL-safe. */

/* ---- controller_follow.c ---- */

/* There was no memory to apply what was just appended. */
void controller_unapplied(struct controller *c);

/* Apply what is committed, as far as there is memory. / In each turn: try again. */
void controller_publish(struct controller *c, int64_t high_watermark);
void controller_follow_again(struct controller *c);

/* Up to where clients may be told: committed, and applied here. -1: the control part has failed. */
int64_t controller_answerable(const struct controller *c);

/* controller_self.c: the controller's own place in the quorum. Its endpoints are those of the
 * controller listeners; without one, the quorum lives in this process and the record still needs a
 * place: the loopback address. `endpoints` has NODE_LISTENERS_MAX places. */
void controller_self_voter(const struct node *node,
                           struct uuid directory,
                           struct quorum_endpoint *endpoints,
                           struct quorum_voter *out);

/* Register this controller, if it has a listener and the metadata.version has such records. */
void controller_self_register(struct controller *c);
bool controller_self_waits(const struct controller *c); /* Is that call not answered yet? */
void controller_self_free(struct controller *c);

/* scram_keys.c: both keys of a salted password. */
void scram_keys(int8_t mechanism, struct view salted, struct cluster_scram_keys *out);

/* raft.c: look at the waiting fetches again. `last`: answer them all. */
void raft_turn(struct controller *c, bool last);

/* The log may begin at the oldest snapshot, when there is a newer one. */
void controller_trim(struct controller *c);

/* Begin a snapshot of the committed image if enough has come since the last one, or go on with the
 * one under way. When to ask again; INT64_MAX: in the turn after something was committed or a job
 * has ended. */
int64_t controller_snapshot_turn(struct controller *c);

/* Give up one whose freeze is under way: it ends now, its file goes in a job. */
void controller_snapshot_give_up(struct controller *c);

/* Give up one that is not whole, wait for one that is being finished. Blocks. */
void controller_snapshot_stop(struct controller *c);
