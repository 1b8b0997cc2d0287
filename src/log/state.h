/* state.h - what log/'s own files know of each other: logs, directories, logs' segments.
 *
 * Private to this folder. Invariants, in every state but LOG_OPENING (then a job owns the log):
 *   start <= durable <= written <= end of the last segment = the assigned end;
 *   segments rise by base, only the last one is appended to, at least one is there;
 *   a segment's durable_bytes <= written_bytes <= size_bytes;
 *   a segment with written_bytes > durable_bytes is on its directory's dirty list;
 *   all of a log's unsent bytes are in its writes, in order, at most one of them in flight. */
#pragma once

#include "base/map.h"
#include "log/disk.h"
#include "log/epochs.h"
#include "log/index.h"
#include "log/log_manager.h"
#include "log/producers.h"
#include "log/scan.h"
#include "record/sink.h"
#include "sys/memory.h"

/* ---- open files ------------------------------------------------------------------------------ */

/* Counted: the segment has one reference while it keeps the file, each range and write one. */
struct log_file {
    struct logs *logs;
    struct io_file *file;
    uint32_t references;
    struct list lru;         /* On logs->files, the longest unused first. */
    struct segment *segment; /* The one that keeps it, or NULL: it lives for its readers only. */
};

/* ---- segments -------------------------------------------------------------------------------- */

/* The largest timestamp of some batches, and the last offset of the batch that has it. */
struct segment_times {
    int64_t max_timestamp_ms; /* -1: none. */
    int64_t max_offset;
};

struct segment {
    struct log *log;
    struct log_file *file; /* NULL: not open now. */
    int64_t base;
    uint32_t size_bytes; /* Assigned. */
    uint32_t written_bytes;
    uint32_t commit_bytes; /* What the commit in flight makes durable. */
    uint32_t durable_bytes;
    int64_t written_end; /* Offsets that belong to the three. */
    int64_t commit_end;
    int64_t durable_end;
    struct list dirty;
    struct list indexed; /* On logs->indexed: its indexes may be unloaded. */
    struct index offsets;
    struct index times;
    struct index txns;
    struct segment_times most;  /* Largest timestamp, last offset of the batch that has it. */
    int64_t first_timestamp_ms; /* MaxTimestamp of the first batch. */
    int64_t created_wall_ms;
    int64_t modified_wall_ms;
    int64_t jitter_ms;
    uint32_t since_index_bytes;
    uint32_t resume_bytes;  /* So far its files have what a recovery needs (resume.c), */
    uint32_t resume_count;  /* and so many snapshots above its base. */
    uint32_t txns_unproved; /* Of `txns`, so many are a file's word: proved at their first use. */
    bool times_known;       /* `most` is set. */
    bool resume_lone;       /* Of those snapshots there is one, a clean stop's. */
    bool first_known;       /* first_timestamp_ms is set (or there is no batch). */
    bool swapping;          /* A compaction replaces it: its files may not be opened by name. */
    bool index_bad;         /* Its index files do not bear out: to be made anew. */
    bool made;              /* Its file exists. */
    bool sealed;            /* Not the last any more, and its indexes are in files, durable. */
    bool sealing;           /* A job reads its indexes: they do not change and are not unloaded. */
};

/* ---- writes ---------------------------------------------------------------------------------- */

/* Bytes on their way to one segment's file, one behind the other. */
struct log_write {
    struct list link; /* On log->writes, or logs->spare_writes. */
    struct io_op op;
    struct log *log;
    struct segment *segment;
    struct log_file *file; /* Held while in flight. */
    uint32_t at_bytes;
    uint32_t size_bytes;
    int64_t offset_end; /* One past the last record in it. */
    uint32_t piece_count;
    bool in_flight;
    struct iovec iov[LOG_WRITE_PIECES_MAX];
    struct buf *bufs[LOG_WRITE_PIECES_MAX];
};

/* ---- background work on one log ----------------------------------------------------------------
 */

/* One after the other per log; `run` is a job (NULL: there is none), `finish` is back in the shard
 * and frees the work. */
struct log_work {
    struct list link;
    struct io_op op;
    struct log *log;
    struct memory_share memory;
    void (*begin)(struct log_work *work); /* In the shard, before `run`; may be NULL. */
    int64_t (*run)(struct io *io, void *work);
    void (*finish)(struct log_work *work, int64_t result);
};

/* ---- logs ------------------------------------------------------------------------------------ */

enum log_state {
    LOG_CLOSED,  /* Nothing is known but names and checkpoints. */
    LOG_OPENING, /* A job owns everything below `segments`. */
    LOG_READY,
    LOG_CHANGING, /* Being truncated or restarted. */
    LOG_BROKEN,   /* `error` says why; not served any more. */
    LOG_GONE,     /* Deleted. */
};

/* Where a batch begins, remembered from an append or a lookup. */
struct log_hint {
    struct segment *segment; /* NULL: no hint. */
    int64_t offset;          /* All batches before `at_bytes` end below it, */
    uint32_t at_bytes;       /* the one here holds it or begins above it. */
    uint32_t batch_bytes;    /* Its size, and its offsets; 0: not known. */
    int64_t base_offset;
    int64_t last_offset;
};
#define LOG_HINTS 8u

/* A node has one for each of its partitions, most of them idle: what only a read or an append needs
 * is not in it. */
struct log {
    struct map_node node; /* Key: topic, then the partition as four bytes; of a copy a byte more. */
    struct logs *logs;
    struct log_directory *directory;
    struct log_config config;
    struct view topic; /* Of `key`. */
    int32_t partition;
    struct uuid topic_id;
    enum log_state state;
    int error;      /* If broken: an enum log_result or -errno. */
    int open_error; /* Of the last opening that may be tried again; told once. */
    /* What is so, together: there are many logs, and each alone would take eight bytes. */
    bool has_folder;       /* On disk. */
    bool future;           /* The copy that a move makes: its folder is named *-future. */
    bool promoted;         /* Its folder is still named so: the opening renames it. */
    bool frozen;           /* Its move ends: nothing is appended, deleted or compacted. */
    bool unlisted;         /* Not in the checkpoint files: the metadata log. */
    bool recover;          /* Not yet recovered after an unclean stop. */
    bool touched;          /* Opened since the start: closing has something to write. */
    bool metadata_checked; /* partition.metadata holds topic_id. */
    bool commit_eager;     /* log_commit_eagerly */
    bool names_dirty;      /* Its folder has names that are not durable yet. */
    bool making;           /* A work makes the folder. */
    bool working;          /* The first of `works` runs, or is being finished. */
    bool epochs_flushing;  /* A work writes leader-epoch-checkpoint. */
    bool resuming;         /* A work writes what a recovery needs (resume.c). */
    bool retain_failed;    /* Files that retention took remain: no more is deleted, none is read. */
    bool times_loading;    /* A work reads the closed segments' last times. */
    bool looking;          /* A lookup job is in flight. */
    bool unclean;          /* Its batches do not hold: not compacted any more. */
    bool background;       /* Opened for a task only: may be closed again. */
    bool change_full;      /* It came on a full disk, half done. */
    bool gone_stray;       /* Its folder is kept, as -stray. */
    bool gone_running;     /* The deletion. */
    bool gone_finished;
    bool gone_waits; /* Its folder's new name found no room on the disk, until gone_round. */

    struct log_move *move;       /* To another directory (move.c); or NULL. */
    int64_t checkpoint_recovery; /* From the checkpoints, until opened. */
    int64_t checkpoint_start;    /* -1: none. */
    int64_t checkpoint_watermark;
    int64_t checkpoint_cleaner; /* First dirty offset; -1: none. */

    struct segment **segments;
    uint32_t segment_count;
    uint32_t segment_capacity;
    struct epochs epochs;
    struct producers producers;
    int64_t start;
    int64_t end;
    int64_t written;
    int64_t durable;
    int64_t watermark;
    int64_t epochs_flushed_end; /* Below this, the checkpoint file knows all epochs. */
    uint64_t size_bytes;
    struct log_recovery recovery;

    struct list writes; /* struct log_write, in order. */
    struct list ready;  /* On logs->ready: something to hand over in this turn. */
    struct list watches;
    struct list telling;    /* On logs->telling. */
    int events;             /* To be told. */
    uint32_t holds;         /* Jobs and tasks that point here: it is not freed before they end. */
    struct list works;      /* struct log_work; `working`: the first one is. */
    int times_error;        /* Of the last `times_loading`; told once. */
    int look_error;         /* Of the last `looking`; told once. */
    struct list queries;    /* struct log_query that wait for the opening. */
    struct list names;      /* On directory->names. */
    struct list changing;   /* On logs->changing, until its change can start. */
    struct list retaining;  /* On logs->retaining. */
    struct list recovering; /* On logs->recovering, as long as `recover`. */
    struct clean *cleaning; /* A compaction works on it; or NULL. */
    struct log_task *change_task;  /* Being truncated or restarted; or NULL. */
    int64_t recovery_cap;          /* The recovery point is told no higher. */
    struct list gone;              /* On logs->gone. */
    struct log_task *gone_task;    /* Who waits for the deletion; or NULL. */
    struct uuid aside_id;          /* For the name of its folder when it is put aside. */
    struct io_file *metadata_file; /* partition.metadata, until it is durable. */
    struct log_hint *hints;        /* LOG_HINTS of them from the first one on; or NULL. */
    uint32_t gone_round;           /* gone_waits ends when the ballast moves on from this round. */
    uint32_t hint_next;
    uint8_t key[]; /* Of node.key's size, and perhaps a byte more. */
};

static inline uint32_t log_hint_count(const struct log *log)
{
    return log->hints == NULL ? 0 : LOG_HINTS;
}

/* ---- moves ----------------------------------------------------------------------------------- */

enum log_move_state {
    MOVE_OPENING, /* It waits for its turn, or one of the two is being opened. */
    MOVE_COPYING, /* Slice by slice, beside everything else. */
    MOVE_FROZEN,  /* The log takes no appends: the rest is copied and becomes durable. */
    MOVE_TELLING, /* All is there. The owner records it, and says logs_move_go(). */
    MOVE_GOING,   /* Told. Nobody reads: the folders are renamed as soon as no job runs. */
};

struct log_move {
    struct list link; /* On logs->moves; the first one is worked on. */
    struct logs *logs;
    struct log *log;    /* From here, */
    struct log *future; /* to here. */
    enum log_move_state state;
    struct io_op op; /* A read, or a job. */
    bool busy;       /* That is in flight: the struct stays. */
    bool dropped;    /* And the move is over. */
    bool skips;      /* Behind the copied end there are offsets but no batches. */
    struct log_range range;
    struct buf *buf; /* A slice that was read, or is being read. */
    struct iovec iov;
    int64_t pause_until_ms;  /* For the rate, or after something that may get better. */
    int64_t cleaner_from;    /* What was compacted when the copy began; -1: not known. */
    uint32_t next_directory; /* What was asked for meanwhile; LOG_DIRECTORY_ANY: nothing. */
    struct sink snapshot;    /* Of the producers at the end, and the epochs: for the job. */
    struct sink epochs;
    struct move_paths *paths;
};

/* ---- directories ----------------------------------------------------------------------------- */

struct log_commit {
    struct io_op durable;
    struct io_op names;
    uint32_t waiting; /* Of the two, how many are in flight. */
    bool running;
    int64_t result; /* First failure. */
    struct io_file **files;
    uint32_t file_capacity;
    uint32_t file_count;
    struct list segments; /* struct segment, by `dirty`, that are in this commit. */
    struct list logs;     /* struct log, by `names`, whose names are in this commit. */
    char *folders;        /* Their paths, NUL-terminated, one behind the other, for the job. */
    uint32_t folders_size;
    struct log_directory *directory;
};

struct log_directory {
    struct logs *logs;
    uint32_t index;
    char path[DISK_PATH_MAX / 2];
    struct uuid id;
    int error;
    bool full;
    bool clean;
    bool cordoned;
    bool told_offline;
    int64_t previous_epoch; /* Of the clean mark; -1: none. */
    struct io_file *lock;
    uint32_t partitions;
    uint32_t unrecovered;
    uint64_t unsynced_bytes;
    uint64_t unmarked_bytes; /* Durable since the recovery points were last written. */
    uint64_t unsynced_max;   /* The options' cap, or less if the ballast had to be smaller. */
    uint64_t commits;
    uint64_t commit_files;
    bool commit_wanted;     /* A log that cannot wait has written: the next commit is due. */
    int64_t dirty_since_ms; /* Monotonic: since when something waits for a commit. */
    struct list dirty;      /* struct segment. */
    struct list names;      /* struct log with names_dirty. */
    struct log_commit commit;
    uint64_t ballast_bytes; /* Reserved blocks, given up when the disk is full. */
    bool ballast_busy;
    struct io_op ballast_op;
    int64_t ballast_next_ms;    /* When to try for it again: no failure moves it, only a try. */
    uint32_t ballast_round;     /* Grows when it was given up or tried for. */
    uint32_t ballast_tries;     /* While stopping. */
    bool checkpoint_busy[4];    /* By enum checkpoint_kind: a job writes that file. */
    struct parts_lines *others; /* Of the first of several parts: 4 kinds of each part. Or NULL. */
    bool unasked;          /* The metadata log, which is not listed, lies there since an unclean
                              stop, and nobody has asked for it. */
    uint32_t others_told;  /* Other parts that have told their last lines at their end, */
    uint32_t others_clean; /* and have closed it cleanly. */
    bool closed;           /* Not of the first part: by logs_close_part(), cleanly. */
    struct list doomed;    /* Folders to be unlinked: struct log_doomed. */
    bool doomed_busy;
};

struct logs {
    struct io *io;
    struct mem *mem;
    struct logs_options options; /* `paths` is not kept. */
    struct log_directory *directories;
    uint32_t directory_count;
    struct map map;                 /* struct log. */
    struct map lost;                /* struct log_lost: named by a checkpoint, without a folder. */
    struct list changing;           /* Logs that wait for their change to start. */
    struct list retaining;          /* Logs whose retention is due. */
    struct list recovering;         /* Logs not yet recovered. */
    struct list gone;               /* Deleted logs that something still points to. */
    struct list moves;              /* struct log_move. */
    const struct logs_moves *mover; /* Who is told of them; or NULL. */
    struct list ready;
    struct list telling;
    struct list watches;
    struct list files;   /* struct log_file, the longest unused first. */
    struct list indexed; /* struct segment with loaded indexes in files, longest unused first. */
    uint64_t indexed_bytes;
    uint32_t file_count;
    struct list spare_writes;
    uint32_t spare_write_count;
    struct compress_work compress;
    uint32_t in_flight;        /* Operations of any kind. */
    uint32_t loading;          /* Of them, logs that are being opened. */
    struct clean *cleaning;    /* The compaction that runs; or NULL. */
    struct clean *clean_again; /* It met a full disk half done. */
    uint64_t cleaned;          /* Passes that ended well. */
    uint64_t space_max;        /* Of this shard's segments (space.c); 0: no bound. */
    uint64_t space_used;       /* As last counted, and what was appended since. */
    uint32_t segment_max;      /* No segment grows beyond. */
    int64_t next_space_ms;
    int64_t space_stuck_ms;      /* Since when nothing could be deleted; 0: something could. */
    uint32_t space_wanted_bytes; /* Of the largest append that waits for room. */
    bool space_full;             /* Said, and not yet taken back. */
    bool stopping;
    bool watermarks_moved; /* Since replication-offset-checkpoint was written. */
    bool recovery_moved;   /* Write recovery-point-offset-checkpoint soon. */
    bool resumes_wanted;   /* For its bytes: let the logs that grew write where to resume. */
    bool starts_moved;     /* Since log-start-offset-checkpoint was. */
    bool cleaner_moved;    /* Since cleaner-offset-checkpoint was. */
    bool retry; /* Something could not be handed over for want of descriptors or memory. */
    int64_t stop_retry_ms; /* While stopping: until when it is tried again; 0: not since. */
    int64_t next_retention_ms;
    int64_t next_checkpoint_ms;
    int64_t next_watermark_ms;
    int64_t next_clean_ms;
    int64_t next_expiry_ms;
};

/* ---- shared helpers, by file ------------------------------------------------------------------
 */

/* log.c */
struct segment *log_active(const struct log *log);
uint32_t log_segment_floor(const struct log *log, int64_t offset); /* Index; UINT32_MAX: none. */
MUST_USE int log_usable(struct log *log); /* LOG_OK when READY; else what to answer. */
void log_tell(struct log *log, int events);
void log_fail(struct log *log, int error); /* The log is broken from now on. */
void log_hint_add(struct log *log, const struct log_hint *hint);
void log_hints_drop(struct log *log, const struct segment *segment); /* NULL: all. */
struct disk_path log_folder(const struct log *log);
struct disk_path log_path(const struct log *log, const char *name);
void log_raise_start(struct log *log, int64_t offset);
void log_deliver(struct log *log);

/* segment.c */
struct segment_name {
    char text[64];
};
struct segment_name segment_file_name(int64_t base, const char *suffix);
/* The other way: the suffix of a name that begins with an offset in 20 digits; else NULL. */
MUST_USE const char *segment_name_read(const char *name, int64_t *base);
MUST_USE struct segment *segment_new(struct mem *mem, struct log *log, int64_t base);
void segment_free(struct mem *mem, struct segment *segment); /* Also drops its file. */
MUST_USE bool segment_push(struct mem *mem, struct log *log, struct segment *segment);
MUST_USE int segment_file(struct segment *segment, bool create); /* Open: 0 or -errno. */

/* What the index rules work on: a segment's own, or a job's. */
struct segment_indexes {
    int64_t base;
    struct index *offsets;
    struct index *times;
    struct segment_times *most;
};
/* Take in a batch at `at_bytes`; `due`: it gets an entry. Room for one entry each is reserved. */
void segment_index_batch(const struct segment_indexes *indexes,
                         const struct batch_header *header,
                         uint32_t at_bytes,
                         bool due);
void segment_index_last_time(const struct segment_indexes *indexes); /* The closing entry. */
void segment_note(struct segment *segment, const struct batch_header *header, uint32_t at_bytes);
MUST_USE bool segment_note_reserve(struct mem *mem, struct segment *segment, uint32_t batches);
void segment_finish_times(struct segment *segment);
int64_t segment_jitter(struct log *log);
uint32_t segment_relative(const struct segment *segment, int64_t offset);

/* file.c */
void log_file_hold(struct log_file *file);
void log_file_release(struct log_file *file);
void log_file_drop(struct segment *segment); /* The segment keeps it no longer. */
MUST_USE int log_file_open(struct logs *logs,
                           struct segment *segment,
                           const char *path,
                           bool create);
void log_file_used(struct log_file *file);
void log_files_trim(struct logs *logs);

/* work.c */
void log_work_add(struct log *log, struct log_work *work);

/* load.c */
MUST_USE int log_load_start(struct log *log);

/* look.c, read.c */
struct read_find {
    bool by_position;  /* First batch that ends behind `position`; else */
    uint32_t position; /* the first whose last offset is at least `offset`. */
    int64_t offset;
    int64_t expect_last; /* If >= 0: last offset of the first batch, as the index has it. */
    int64_t least;       /* No base offset lies below. */
    uint32_t at_bytes;   /* Found: where it begins, its size, its offsets. */
    uint32_t batch_bytes;
    int64_t base_offset;
    int64_t last_offset;
};
#define READ_BAD_INDEX 1000 /* Of read_walk(): the first batch is not the index entry's. */
MUST_USE int read_walk(struct scan *scan, struct read_find *find);
MUST_USE int look_start(struct log *log, struct segment *segment, const struct read_find *find);

/* A log's lookup job, at most one at a time; lives in the struct of who runs it. */
struct look_job {
    struct io_op op;
    struct log *log;
    struct segment *segment; /* To be found again by look_ended, not used by the job. */
    int64_t base;            /* The segment's. */
    struct memory_share memory;
};

/* May a lookup of `segment` begin? LOG_OK, or LOG_LATER: the end of what is in the way tells
 * (READY). LOG_E_MEMORY or -errno: how the last one failed, told once. */
MUST_USE int look_may(struct log *log, const struct segment *segment);

/* Begin: `run` in a job with `job->op`, then `done`, which calls look_ended. */
void look_begin(struct look_job *job,
                struct log *log,
                struct segment *segment,
                int64_t (*run)(struct io *io, void *argument),
                void (*done)(struct io_op *op));

/* The job has ended: the segment it was of; NULL: it is not there any more. */
struct segment *look_ended(struct look_job *job);

uint64_t look_bytes(const struct segment *segment);
void look_forget(struct segment *segment); /* Off the list of what may be unloaded. */
void look_trim(struct logs *logs);

/* look_txns.c: hold the segment's aborted transactions against its batches. LOG_LATER: READY tells;
 * then ask again. LOG_E_MEMORY, or -errno. */
MUST_USE int look_txns_start(struct log *log, struct segment *segment);

/* load.c */
void log_unload(struct log *log);
void log_load_report(struct log *log);

/* query.c */
void log_queries_turn(struct log *log);       /* Go on with what waits. */
MUST_USE int log_times_load(struct log *log); /* Know the largest timestamp of each segment. */

/* roll.c */
MUST_USE int log_roll_to(struct log *log, int64_t base);
MUST_USE int log_seal_again(struct log *log, uint32_t at); /* A segment whose sealing failed. */
void log_make_start(struct log *log);                      /* The folder and partition.metadata. */
#define LOG_METADATA_BYTES 64u
uint32_t log_metadata_print(struct uuid topic_id, char text[LOG_METADATA_BYTES]); /* Its size. */

/* append.c */
void log_take_batch(struct log *log, const struct batch_header *header, struct view batch);

/* names.c */
struct names_folder {
    enum { NAMES_PARTITION, NAMES_DELETE, NAMES_STRAY, NAMES_FUTURE, NAMES_SKIP, NAMES_BAD } kind;
    struct view topic; /* Of the name. */
    int32_t partition;
    struct uuid aside_id; /* Of what is not NAMES_PARTITION. */
};
struct names_folder names_parse(const char *name);
struct disk_path log_aside(const struct log *log, const char *suffix); /* folder.UUID-suffix */

/* clean.c */
int64_t logs_clean_turn(struct logs *logs, int64_t now_ms);
void logs_clean_abandon(struct logs *logs);

/* change.c */
enum change_kind { CHANGE_TRUNCATE, CHANGE_RESTART };
void logs_changes_turn(struct logs *logs);
void log_change_done(struct log *log, int result); /* Ends the log's change task, if it has one. */

/* retain.c: LOG_OK: done for now; LOG_LATER: ask again after LOG_EVENT_READY. */
MUST_USE int log_retain(struct log *log);
/* May the log's first segment be deleted for want of space? / Delete it; false: no memory. */
bool log_first_may_go(const struct log *log);
MUST_USE bool log_first_goes(struct log *log);

/* space.c */
void logs_space_open(struct logs *logs);
int64_t logs_space_turn(struct logs *logs, int64_t now_ms);
MUST_USE int logs_space_admit(struct logs *logs, const struct log_append *in);

static inline bool logs_counts_space(const struct logs *logs)
{
    return logs->space_max > 0;
}

/* replica.c */
struct log_lost { /* A partition that a checkpoint names and that has no folder. */
    struct map_node node;
    uint8_t key[TOPIC_NAME_MAX + 4];
    const struct log_directory
        *deleted; /* Not lost: its folder here is *-delete, or one stands in. */
    bool said;
};
/* A partition's folder gets another name: for its deletion, or as a stray's. */
struct log_put_aside {
    struct disk_path from, to;
    struct disk_path stand_in; /* Of a stray; else empty. */
    struct disk_path directory;
};
/* What a job needs. */
void log_put_aside_fill(struct log_put_aside *aside, const struct log *log, bool stray);
/* In a job. A checkpoint may still name a stray when a crash comes: until it is without the name an
 * empty folder NAME.UUID-delete stands in, which says so to the next start. It is there, durably,
 * before the folder has its new name. 0 or -errno. */
MUST_USE int log_put_aside_run(struct io *io, const struct log_put_aside *aside);
/* In the shard, afterwards: let what is to be deleted be deleted. False: no memory. */
MUST_USE bool log_put_aside_doom(const struct log *log, const struct log_put_aside *aside);
struct log_doomed {
    struct list link;
    int64_t at_ms; /* Monotonic: when to unlink. */
    int64_t base;  /* If >= 0: only the .deleted files of this base in the folder. */
    struct disk_path path;
};
MUST_USE struct log *log_new(struct log_directory *directory, struct view topic, int32_t partition);
/* The same for the copy that a move makes. */
MUST_USE struct log *log_new_future(struct log_directory *directory,
                                    struct view topic,
                                    int32_t partition);
/* The copy of a partition, or NULL. */
struct log *logs_find_future(const struct logs *logs, struct view topic, int32_t partition);
void log_free(struct log *log);
bool log_name_taken(const struct log *log);
void logs_gone_turn(struct logs *logs);
int64_t log_doomed_turn(struct log_directory *directory, int64_t now_ms);
MUST_USE bool log_doom_segment(struct log *log, int64_t base, int64_t at_ms);
MUST_USE bool log_doom(struct log_directory *directory, const char *name, int64_t at_ms);

/* parts.c: several shards with the same directories. */
struct parts_lines {
    uint8_t *text; /* NULL: none. */
    uint32_t size_bytes;
    uint32_t count;
};
bool parts_first(const struct logs *logs);      /* Has it what a directory has once? */
uint32_t parts_others(const struct logs *logs); /* How many parts there are beside this one. */
bool parts_owns(const struct logs *logs, struct view topic, int32_t partition);
MUST_USE bool parts_init(struct logs *logs);
void parts_free(struct logs *logs);
/* Not the first one, at start: take over what the first has found of the directories. */
void parts_inherit(struct logs *logs);
/* Not the first one: tell the lines of this file. False: no memory. */
MUST_USE bool parts_tell(struct log_directory *directory, uint32_t kind);
/* Not the first one, while all shards rest: give the first the lines of all files. */
MUST_USE bool parts_give(struct logs *logs);
/* Of the first: how many lines the others have in this file, and these. */
uint32_t parts_count(const struct log_directory *directory, uint32_t kind);
void parts_add(const struct log_directory *directory, uint32_t kind, struct sink *out);

/* tasks.c */
enum checkpoint_kind {
    CHECKPOINT_OF_RECOVERY,
    CHECKPOINT_OF_STARTS,
    CHECKPOINT_OF_WATERMARKS,
    CHECKPOINT_OF_CLEANER,
};
void logs_tasks_start(struct logs *logs, int64_t now_ms);
void log_checkpoint_soon(struct log_directory *directory, enum checkpoint_kind kind);
int64_t logs_tasks_turn(struct logs *logs, int64_t now_ms);
void tasks_checkpoint_text(struct log_directory *directory,
                           enum checkpoint_kind kind,
                           struct sink *out);
/* The same without the head; `*count` is the number of lines. */
void tasks_checkpoint_lines(struct log_directory *directory,
                            enum checkpoint_kind kind,
                            uint32_t *count,
                            struct sink *out);
MUST_USE int tasks_checkpoint_write(struct log_directory *directory, enum checkpoint_kind kind);
int64_t log_recovery_point(const struct log *log);
/* It waits for its recovery, before its first use or in the background; it has it behind it, or is
 * gone. As long as one waits there is no clean mark. */
void log_recover_later(struct log *log);
void log_recover_over(struct log *log);
void log_epochs_flush(struct log *log);

/* resume.c: let the log write what a recovery needs to begin near its end, if that is due; `timed`:
 * less growth is enough. Returns whether a work was started. */
bool log_resume_write(struct log *log, bool timed);

/* Unlink the snapshots below an offset that are no segment's, but the newest `keep`. Blocks. */
MUST_USE int log_resume_drop(struct io *io, const struct log *log, int64_t below, uint32_t keep);

/* move.c */
int64_t logs_moves_turn(struct logs *logs, int64_t now_ms);
void log_move_resume(struct log *log, struct log *future); /* No memory: at the next start. */
/* The log is deleted, or cut: its move is over, the copy goes. True: not before the renaming that
 * runs is done. */
bool log_move_abort(struct log *log);
void logs_moves_abandon(struct logs *logs);
void log_move_end(struct log_move *move, enum log_move_event event); /* The struct goes. */
void log_move_done(struct log_move *move); /* Well; the copy is no more. */
void log_move_free(struct log_move *move);
void log_thaw(struct log *log);

/* move_swap.c: each starts a job, or lets the move pause. */
void move_paths_free(struct log_move *move);
void move_prepare(struct log_move *move);
void move_swap(struct log_move *move);

/* close.c */
MUST_USE int log_close_files(struct log *log);

/* write.c */
MUST_USE struct log_write *log_write_room(struct log *log, struct segment *segment);
void log_write_put(struct log_write *write,
                   struct buf *buf,
                   struct iovec piece,
                   int64_t offset_end);
void log_writes_submit(struct log *log);
void log_writes_drop(struct log *log);

/* commit.c */
int64_t log_directory_turn(struct log_directory *directory, int64_t now_ms);
void log_directory_fail(struct log_directory *directory, int64_t error);
void log_names_dirty(struct log *log);
void log_unsynced_drop(struct segment *segment);

/* ballast.c */
void log_directory_full(struct log_directory *directory);
void log_ballast_take(struct log_directory *directory);
/* A plain file of the directory, at start: a ballast that another shard has left is removed. False:
 * the directory has failed. */
MUST_USE bool log_ballast_left(struct log_directory *directory,
                               const char *name);       /* Blocks: at start. */
void log_ballast_free(struct log_directory *directory); /* Blocks: at the end. */
int64_t log_ballast_turn(struct log_directory *directory, int64_t now_ms);

/* manager.c */
void logs_say(struct logs *logs, const char *format, ...) PRINTF(2, 3);
/* Not hot: of segments, not of appends. */
void log_debug(const struct log *log, const char *format, ...) PRINTF(2, 3);
