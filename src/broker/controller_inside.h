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
    const char *failed; /* Why it serves no more; NULL: it does. */
    char dir[METADATA_PATH_BYTES];
    bool log_moved;
    struct controller_snapshot *snapshot; /* Being written; NULL: none. */
    int64_t snapshot_end;                 /* Of the newest one. */
    int64_t snapshot_ms;                  /* When it was made, or this node began. */
    uint64_t snapshot_bytes;              /* Of records since. */
};

/* Begin a snapshot of the committed image if enough has come since the last one (kraft.md 13.10).
 * When to ask again; INT64_MAX: when something has been committed. */
int64_t controller_snapshot_turn(struct controller *c);
