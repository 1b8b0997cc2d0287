/* quorum_check.h - what a metadata log may tell its followers, and the checkers over it.
 *
 * All followers of one controller report what they have read below the high watermark; one of them
 * reports its image after every batch. Times are the world's. Checked:
 *
 *   Q1  what was committed is so for ever: an offset has one record and one epoch for everybody,
 *       across power cuts, and a high watermark never comes to lie below it
 *   Q2  a partition has one leader in a leader epoch and one state in a partition epoch, and
 *       neither goes back
 *   Q3  no leader is fenced, in controlled shutdown, outside its ISR
 *   Q4  no fenced broker is in an ISR, but the last one where there are no eligible replicas kept,
 *       or an unclean way back from a reassignment;
 *       where there is no leader, nobody in the ISR could lead (who could by a directory that was
 *       assigned meanwhile waits for the next election, as under Kafka)
 *   Q5  a broker's epochs only grow, and a new incarnation has a new one
 *   Q6  images that have read equally far are equal, whether from a log, from a snapshot or in the
 *       controller itself
 *   Q7  who spoke is not fenced for silence: a heartbeat that had arrived within the session before
 *       that was decided, and was answered, speaks against it. What arrives while the controller's
 *       machine stands still counts from when it goes on: however long that was, nobody is fenced
 *       by it who had spoken */
#pragma once

#include "core/image.h"
#include "sim/history.h"

#define QUORUM_CHECK_BROKERS_MAX 8u
#define QUORUM_CHECK_TOPICS_MAX  256u
#define QUORUM_CHECK_PARTS_MAX   16u /* Of one topic. */
#define QUORUM_CHECK_BEATS_MAX   8u
#define QUORUM_CHECK_SLACK_US                                                                      \
    2200000 /* Until what was sent has arrived, or its stream is broken. */

struct quorum_check_partition {
    int32_t partition_epoch, leader_epoch, leader;
    uint64_t state; /* A hash of all that a partition epoch stands for. */
    bool seen;
    bool moved; /* It may have changed since it lost its leader: its replicas have another
                   directory. */
};

struct quorum_check_topic {
    struct uuid id;
    bool unclean; /* Unclean elections were allowed at some time, or may have been. */
    struct quorum_check_partition partitions[QUORUM_CHECK_PARTS_MAX];
};

struct quorum_check_broker {
    struct uuid incarnation;
    int64_t epoch; /* The highest one seen; 0: none. */
    bool unfenced; /* In the newest image. */
    struct {
        int64_t epoch, sent_us;
    } beats[QUORUM_CHECK_BEATS_MAX]; /* The last ones with an answer, a ring. */
    uint32_t beat_count;
    int64_t asked[QUORUM_CHECK_BEATS_MAX]; /* Epochs in which it asked to be fenced or to stop. */
    uint32_t asked_count;
    int64_t fenced_epoch, fenced_us; /* When it was fenced last for silence. */
    uint32_t unregistered;      /* How often somebody asked for that, or what was lost may do it, */
    uint32_t unregistered_told; /* and was answered. */
};

struct quorum_check {
    struct history *history;
    int64_t session_us;
    struct {
        uint64_t hash;
        int32_t epoch; /* 0: not seen. */
    } * records;       /* By offset. */
    int64_t capacity, end;
    struct quorum_check_topic topics[QUORUM_CHECK_TOPICS_MAX];
    uint32_t topic_count;
    struct quorum_check_broker brokers[QUORUM_CHECK_BROKERS_MAX]; /* By id. */
    int64_t stood_us, went_on_us; /* When the controller's machine stood still last. */
    /* The world's time of this one of the controller's wall clock; -1: not known. */
    int64_t (*world_us)(void *context, int64_t wall_ms);
    void *context;
    bool from_snapshot; /* The image that is looked at: what came before it is not known. */
    uint64_t batches, elections, fencings, silences; /* Seen. */
};

void quorum_check_init(struct quorum_check *check, struct history *history, int64_t session_us);
void quorum_check_free(struct quorum_check *check);

/* A follower knows this record to be committed (Q1). */
void quorum_check_record(struct quorum_check *check,
                         int64_t offset,
                         int32_t epoch,
                         struct view record);

/* A follower was told that so much is committed (Q1), of a log that ends there or behind. */
void quorum_check_high_watermark(struct quorum_check *check, int64_t offset);

/* An image after a whole batch, decided at that time of the controller's wall clock (-1: it is from
 * a snapshot, and what came between is not known); always of the same follower (Q2 to Q5, Q7). */
void quorum_check_image(struct quorum_check *check, const struct image *image, int64_t wall_ms);

/* A broker asks to be fenced, or to stop: from then on it may be fenced for that. */
void quorum_check_asked(struct quorum_check *check, int32_t broker, int64_t epoch);

/* Two that have read equally far (Q6). */
void quorum_check_equal(struct quorum_check *check,
                        const struct image *a,
                        const struct image *b,
                        const char *what);

/* The controller's machine stands still from now until then (Q7). */
void quorum_check_stands(struct quorum_check *check, int64_t now_us, int64_t until_us);

/* The controller's process ends, and with it what had arrived. */
void quorum_check_ends(struct quorum_check *check, int64_t now_us);

/* A heartbeat of that epoch was answered; it was sent then (Q7). */
void quorum_check_spoke(struct quorum_check *check, int32_t broker, int64_t epoch, int64_t sent_us);
