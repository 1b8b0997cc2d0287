/* places.h - what clients were told of offsets: by time, by place, by leader epoch; the checker.
 *
 * An answer must be one that the log allowed at some moment between the question's sending and the
 * answer's coming. What is known of that time bounds it: the log began between `start_low` and
 * `start_high`, its high watermark was not below `high_low`, its leader epoch not below
 * `epoch_low`. Records that somebody was told firmly are known, with their timestamps and, once
 * read, the leader epochs of their batches; the others are judged at the next audit, which reads
 * all. In the quiet of an audit nothing is written, and there is one right answer. Checked:
 *
 *   P1  by time: the first record not older, with its timestamp and epoch; none where there is none
 *   P2  the largest timestamp: the first record that has it; none only where a larger one may lie
 *       above the high watermark
 *   P3  latest is the high watermark, earliest (and earliest local) where the log begins, and there
 *       is nothing tiered
 *   P4  an epoch's end lies behind its records and those before, and not behind those of later ones
 *   P5  a leader epoch of the client's own that is too old or too new is refused, and only that; so
 *       is a time that the version does not know
 *
 * Where records were deleted, Kafka's rule by time looks at one segment: the first one that has a
 * record young enough, which may be a deleted one; then there may be none. */
#pragma once

#include "sim/history.h"

#define PLACES_KEPT_MAX 2048u

#define PLACES_LATEST         (-1)
#define PLACES_EARLIEST       (-2)
#define PLACES_MAX_TIMESTAMP  (-3)
#define PLACES_EARLIEST_LOCAL (-4)
#define PLACES_TIERED         (-5)
#define PLACES_PENDING        (-6)
#define PLACES_OF_EPOCH       (-100) /* OffsetForLeaderEpoch, not a time. */

struct places_one {
    uint32_t log;
    int16_t version;       /* Of ListOffsets. */
    int64_t timestamp;     /* Or one of the above. */
    int32_t of_epoch;      /* PLACES_OF_EPOCH: that is asked for. */
    int32_t current_epoch; /* That the client believes in, or -1. */

    /* As it was when the question was sent, and when the answer came. */
    int64_t start_low, start_high, high_low;
    int32_t epoch_low;
    uint32_t restarts;
    bool quiet;

    /* The answer. */
    int16_t error;
    int64_t offset, timestamp_ms;
    int32_t epoch;
};

struct places {
    struct history *history;
    struct places_one kept[PLACES_KEPT_MAX]; /* To be judged again. */
    uint32_t kept_count;
    uint64_t asked, exact; /* Answers; those of them for which there was one right answer. */
};

/* The question is about to be sent: `log` to `current_epoch` are set. */
void places_ask(struct places *places, struct places_one *one);

/* Its answer is there. False: it was refused for a reason that is right (P5), or for one that the
 * caller must judge: `one->error` is 0 then, or that error. */
bool places_answered(struct places *places, struct places_one *one);

/* An audit has read all logs. */
void places_audited(struct places *places);
