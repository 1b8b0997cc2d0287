/* epochs.h - which leader epoch wrote which offsets of a log.
 *
 * An entry says that from its start on records have its epoch, up to the next entry's start.
 * Entries rise strictly in both. The last one may begin at the log's end: a leader that has not
 * appended yet. Kept in leader-epoch-checkpoint (checkpoint.h); what the file lacks is found again
 * in the batches' headers, from the recovery point on. Thread: whoever owns the log. */
#pragma once

#include "base/mem.h"
#include "base/view.h"
#include "log/log.h"
#include "record/sink.h"

struct epoch_entry {
    int64_t start;
    int32_t epoch;
};

struct epochs {
    struct epoch_entry *entries;
    uint32_t count;
    uint32_t capacity;
    bool dirty; /* The file lacks something. */
};

/* Room for `more` entries. False: no memory. */
MUST_USE bool epochs_reserve(struct mem *mem, struct epochs *epochs, uint32_t more);

/* Records from `start` on have this epoch; both >= 0. Nothing changes if it is the last one already
 * and begins earlier; else what contradicts it goes from the end. Room has been reserved. */
void epochs_assign(struct epochs *epochs, int32_t epoch, int64_t start);

/* The log now ends at `end`: entries that start at or above it go. */
void epochs_cut_end(struct epochs *epochs, int64_t end);

/* The log now starts at `start`: entries below it go, the last of them stays, from `start` on. */
void epochs_cut_start(struct epochs *epochs, int64_t start);

void epochs_clear(struct epochs *epochs);
void epochs_free(struct mem *mem, struct epochs *epochs);

/* Newest epoch, -1 if none; epoch at an offset, -1 if unknown. O(log n). */
int32_t epochs_latest(const struct epochs *epochs);
int32_t epochs_at(const struct epochs *epochs, int64_t offset);

/* Kafka's OffsetForLeaderEpoch: the largest known epoch <= `epoch` and where it ends; -1 and -1 if
 * unknown. `log_end` ends the newest. */
void epochs_end(const struct epochs *epochs,
                struct epoch_entry asked_and_log_end,
                struct epoch_entry *out);

/* The checkpoint's text of all entries that start below `end` (or all, with INT64_MAX). */
void epochs_write(const struct epochs *epochs, int64_t end, struct sink *out);

/* Read such a text. LOG_OK; LOG_E_DAMAGED: it is not valid; LOG_E_MEMORY. `epochs` is empty but
 * after LOG_OK. */
MUST_USE int epochs_read(struct mem *mem, struct epochs *epochs, struct view text);
