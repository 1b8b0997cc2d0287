/* load.h - opening a log: shared by load*.c only.
 *
 * The whole runs as one job that owns the log's segments, epochs, producers and ends meanwhile. */
#pragma once

#include "log/state.h"

enum load_file_kind {
    LOAD_LOG = 1,
    LOAD_OFFSETS = 2,
    LOAD_TIMES = 4,
    LOAD_TXNS = 8,
    LOAD_SNAPSHOT = 16,
};

/* What the folder has for one base offset. */
struct load_base {
    int64_t base;
    int kinds; /* Set of load_file_kind. */
};

struct load {
    struct log_work work;
    struct log *log;
    struct io *io;   /* The job's view of the world. */
    struct mem *mem; /* The job's memory. */
    struct scan scan;
    struct load_base *bases; /* By base, rising. */
    uint32_t base_count;
    uint32_t base_capacity;
    int64_t wall_ms;
    int64_t recovery_point; /* From the checkpoint: all below was durable. */
    int64_t recover_from;   /* Segments from this base on are scanned; INT64_MAX: none. */
    int64_t end;            /* One past the last offset found so far. */
    uint32_t
        resume_bytes;    /* Where reading the first segment to be recovered begins; 0: its base. */
    bool folder;         /* It is there. */
    bool epochs_rebuild; /* The epochs' file is missing or does not hold. */
    bool synced;         /* The folder's names have been made durable. */
    bool damaged;
    bool stray;           /* The folder was another topic's and is out of the way. */
    struct uuid asked;    /* The topic's id that the folder is held against; zero: any. */
    struct uuid topic_id; /* As found; zero: none. */
};

/* load_files.c: names. 0 or -errno. */
MUST_USE int load_list(struct load *load);
MUST_USE int load_settle_swaps(struct load *load);
MUST_USE int load_metadata(struct load *load, bool *stray);
/* Do the ids differ in one character only? Then no other topic is meant: the file is damaged. */
MUST_USE bool load_ids_near(struct uuid a, struct uuid b);
MUST_USE int load_delete_segment(struct load *load, int64_t base);

/* load_scan.c: segments. 0 or -errno. */
MUST_USE int load_segment_open(struct load *load,
                               struct segment *segment,
                               const struct load_base *at);
/* LOG_NOT_FOUND: the file is missing or too large; what it holds is not checked. */
MUST_USE int load_index(struct load *load, struct segment *segment, struct index *index);
MUST_USE int load_first(struct load *load, struct segment *segment, struct io_file *file);

/* The largest timestamp up to `end`. LOG_NOT_FOUND: the batches do not bear the time index out; or
 * -errno. */
MUST_USE int load_times(struct load *load,
                        struct segment *segment,
                        struct io_file *file,
                        uint32_t end);
MUST_USE int load_open_file(struct load *load, int64_t base, int flags, struct io_file **file);
void load_close_file(struct load *load, struct io_file *file);
MUST_USE int load_segment_recover(struct load *load, struct segment *segment, bool *cut);
MUST_USE int load_epochs_rebuild(struct load *load);
MUST_USE int load_producers_replay(struct load *load, int64_t from, int64_t to);
MUST_USE int load_producers_snapshot(struct load *load, int64_t at_most);

/* load_resume.c: make ready to recover `segment`, the first one: `resume_bytes`, `end`, its
 * indexes below that place, and the producers as a snapshot has them. 0 or -errno. */
MUST_USE int load_resume(struct load *load, struct segment *segment);
