/* clean.h - compaction's pass over one log: shared by clean*.c only.
 *
 * Everything here is the job's, from its start to its end, a slice at a time; the shard only hands
 * it on, and takes the result group by group. */
#pragma once

#include "log/clean_map.h"
#include "log/state.h"

/* A source segment, as it was when the pass began. */
struct clean_source {
    int64_t base;
    uint32_t bytes;
    uint64_t index_bytes;
    int64_t modified_wall_ms;
    bool has_txns;
};

/* The last thing that an active producer has in the log: its batch stays, if only empty. */
struct clean_active {
    int64_t producer_id;
    int64_t last_offset; /* Of its last data batch; -1: its last entry is a marker. */
    int16_t epoch;
};

enum clean_phase {
    CLEAN_MAP,  /* Reading the dirty segments into the map. */
    CLEAN_COPY, /* Copying a group to its .cleaned file. */
    CLEAN_SWAP, /* The group's files are whole: put them in place. */
    CLEAN_DONE,
};

/* The output of one group. */
struct clean_output {
    struct io_file *file;
    uint64_t bytes;
    uint32_t since_index_bytes;
    int64_t last_offset; /* Of the last batch written; base - 1 if none. */
    struct index offsets;
    struct index times;
    struct index txns;
    struct segment_times most;
    int64_t first_timestamp_ms;
    struct sink buffer; /* Not written yet. */
};

struct clean {
    struct io_op op;
    struct log *log;
    struct memory_share memory;
    enum clean_phase phase;
    bool abort; /* The log is to change or go: stop at the next slice. */

    struct clean_source *sources;
    uint32_t source_count;
    struct clean_aborted *aborted;
    uint32_t aborted_count;
    struct clean_active *active; /* By producer_id. */
    uint32_t active_count;
    uint32_t active_room;
    struct log_config config;
    int64_t wall_ms;
    int64_t watermark;
    int64_t dirty_from; /* First dirty offset. */
    int64_t dirty_end;  /* First uncleanable one: a segment's base. */
    uint64_t map_bytes;
    int64_t clean_modified_ms; /* Of the last clean segment: magic 0 and 1 tombstones. */

    struct clean_map map;
    struct clean_txns txns;
    struct scan scan;
    struct compress_work compress;
    struct io_file *file; /* Of the source that is being read. */
    uint32_t source;      /* Its index; during COPY: in the group. */
    uint32_t group_from;  /* Sources [from, to) become one segment. */
    uint32_t group_to;
    struct clean_output out;
    struct io *io;
    bool begun;           /* The phase's first slice is over. */
    bool counts;          /* SWAP: the output is named .swap, durably. */
    bool replaced;        /* SWAP: it is in place. */
    uint32_t renamed;     /* SWAP: renames that are done. */
    uint32_t mapped_to;   /* Sources wholly or partly in the map. */
    int64_t failure;      /* Why it is given up. */
    uint32_t again_round; /* Of the ballast, when the disk was full: not again before it moves. */
};

/* clean.c */
void clean_free(struct clean *clean);

/* Bytes of input in one slice: some milliseconds, so that other jobs get their turn. */
#define CLEAN_SLICE_BYTES (4u * 1024u * 1024u)

/* Output gathered before it is written. */
#define CLEAN_BUFFER_BYTES (4u * 1024u * 1024u)

/* clean_filter.c: what stays of the batch that the scan has just read, into out.buffer. 0 or
 * -errno;
 * `*kept`: something was written, with this header. */
MUST_USE int clean_filter_batch(struct clean *clean, struct batch_header *header, bool *kept);

/* Take a dirty batch's keys into the map. 0, -errno, or LOG_E_FULL: the map is full before it. */
MUST_USE int clean_filter_map(struct clean *clean);
