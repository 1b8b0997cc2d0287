/* commits.h - the offsets that a group's members commit, and what is read of them.
 *
 * Each commit of a partition has a value of its own, so that what is read names who wrote it. A
 * commit takes effect, if it does, at one instant between its sending and its end: its answer, or
 * the moment from which its member cannot have been obeyed any more. What is read must be a
 * commit that no other one, sent after its end, had replaced with an answer before the reading
 * began (I14); one that was refused is never read (I24). */
#pragma once

#include "sim/history.h"

#define COMMITS_MAX 96u /* Of one partition; no more are made then. */

enum commits_state { COMMITS_OPEN, COMMITS_KEPT, COMMITS_REFUSED };

struct commits_one {
    int64_t sent_us, end_us; /* `end_us` INT64_MAX: not known. */
    uint32_t seat;
    int32_t epoch; /* That it was sent with. */
    uint8_t state; /* enum commits_state; OPEN: not known. */
};

struct commits_log {
    struct commits_one items[COMMITS_MAX]; /* The value of the i-th is i + 1. */
    uint32_t count;
};

struct commits {
    struct history *history;
    const char *group;
    struct commits_log logs[HISTORY_LOGS_MAX];
    uint64_t kept, read;
};

/* A new commit: the offset to send, or -1 if there were enough. */
int64_t commits_make(struct commits *commits,
                     uint32_t log,
                     uint32_t seat,
                     int32_t epoch,
                     int64_t now_us);

/* Its answer. An error that says "later" leaves open whether it was kept. */
void commits_answered(struct commits *commits,
                      uint32_t log,
                      int64_t offset,
                      int16_t error,
                      int64_t now_us);

/* From now on nothing that the seat sent with an epoch below this one takes effect. */
void commits_fence(struct commits *commits, uint32_t seat, int32_t epoch, int64_t now_us);

/* A reading that began then has found this; -1: no offset. */
void commits_read(struct commits *commits, uint32_t log, int64_t offset, int64_t sent_us);
