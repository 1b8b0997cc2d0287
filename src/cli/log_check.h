/* log_check.h - what the parts of `dohle log check` share: one partition's folder. */
#pragma once

#include "cli/log_dump.h"

#define CHECK_PATH_BYTES 4096

/* What a log directory says of all its partitions. */
struct check_directory {
    bool known;                /* meta.properties is there: it is a log directory. */
    bool clean;                /* It has the clean-shutdown mark. */
    struct dump_file recovery; /* recovery-point-offset-checkpoint; empty bytes if there is none. */
    struct dump_file starts;   /* log-start-offset-checkpoint, the same. */
};

/* One partition. */
struct check_partition {
    struct dump *dump;
    char path[CHECK_PATH_BYTES];
    char topic[256];
    int32_t partition;
    int64_t *segments; /* Base offsets, rising. From cli->mem. */
    uint32_t segment_count, segment_room;
    int64_t *snapshots; /* Numbers of the producer snapshots, rising. */
    uint32_t snapshot_count, snapshot_room;
    uint32_t leftovers;    /* .cleaned, .swap and .deleted files. */
    uint64_t bytes;        /* Of the segments. */
    int64_t recovery;      /* From here on a start reads all again; INT64_MAX: a clean stop. */
    int64_t start;         /* Lowest offset that may be read. */
    int64_t end;           /* One past the last sound batch. */
    bool damaged;          /* A segment holds bytes that are no batch; the walk ended there. */
    int64_t damage_base;   /* Which segment, */
    uint32_t damage_at;    /* where in it, */
    uint32_t damage_bytes; /* and how many bytes there are up to its end. */
    bool damage_is_cut;    /* They are the beginning of a batch, not something else. */
    uint32_t problems;
};

/* Say a problem of the partition as a whole. */
void check_problem(struct check_partition *part, const char *format, ...) PRINTF(2, 3);

/* log_check_state.c: walk over all batches; hold leader epochs, producer snapshots and aborted
 * transactions against what they say. Sets end, bytes, damage. */
void check_state(struct check_partition *part);
