/* undo.h - taking back changes that were applied but never committed.
 *
 * Each change of logged state leaves an entry that says how to take it back, tagged with the base
 * offset of the batch that made it. Entries form a list in the order of the changes:
 *
 *   undo_commit(offset)   batches below it are committed: their entries are dropped, and what they
 *                         kept alive (the old values) is freed
 *   undo_back(offset)     batches at or above it are lost: their entries are played back, newest
 *                         first, and the state is what it was before them
 *
 * A machine embeds `struct undo_entry` in a struct of its own that holds the old value. The two
 * callbacks say what to do with one; each must free the entry. Neither may fail, so whatever a
 * play-back needs is allocated when the entry is made.
 *
 * Pure; memory is the machine's. */
#pragma once

#include "base/list.h"

struct undo_entry {
    struct list link;
    int64_t batch_offset; /* Base offset of the batch that made the change. */
};

struct undo_log {
    struct list entries; /* Oldest first. */
    uint32_t count;
    bool off; /* Keep nothing: a follower of committed records has nothing to take back. */
    void (*drop)(void *machine, struct undo_entry *entry); /* Committed: free the old value. */
    void (*back)(void *machine, struct undo_entry *entry); /* Lost: put the old value back. */
    void *machine;
};

/* `drop` and `back` as above; both get `machine`. */
void undo_init(struct undo_log *log,
               void *machine,
               void (*drop)(void *machine, struct undo_entry *entry),
               void (*back)(void *machine, struct undo_entry *entry));

/* Note a change. `batch_offset` must not be below that of the entry before. If the log is off, the
 * entry is dropped at once. */
void undo_add(struct undo_log *log, struct undo_entry *entry, int64_t batch_offset);

/* Batches with a base offset below `offset` are committed. */
void undo_commit(struct undo_log *log, int64_t offset);

/* Batches with a base offset at or above `offset` are lost. */
void undo_back(struct undo_log *log, int64_t offset);
