/* log_manager.h - the logs of one shard: several directories, their commits, tasks and checkpoints.
 *
 * Several shards share the directories, each with a `struct logs` of its own for the partitions
 * that it owns (struct logs_part). The first one also has what a directory has once: lock,
 * identity, clean mark, and the checkpoint files, for which the others tell it their lines.
 *
 * Start: logs_open() (blocks: before serving) locks the directories, reads identity, clean marks
 * and checkpoints and lists the partitions; it opens none of them. Turn: the shard calls
 * logs_turn() before each io_turn(); there writes are made and told, commits start (one in flight
 * per directory; what is appended meanwhile joins the next), and due tasks run: retention,
 * compaction, checkpoints, producer expiry, closing of idle files, deletion, recovery of what was
 * not used yet. Stop: logs_close() syncs, writes the checkpoints, and the clean mark where it is
 * earned.
 *
 * Memory: from io_mem(). Thread: the shard's. */
#pragma once

#include "log/log.h"
#include "log/log_dir.h"
#include "sys/say.h"

struct logs;

enum log_ack {
    LOG_ACK_SYNC,       /* dohle.ack.durability=sync: every commit follows at once. */
    LOG_ACK_REPLICATED, /* =replicated: commits by bytes and age; acks rest on the written end. */
};

/* Lines of a checkpoint file, without its head: those of another shard's logs. */
struct logs_lines {
    uint32_t part; /* Whose. */
    uint32_t directory;
    uint32_t kind; /* Which file: log's own. */
    uint32_t count;
    struct view text; /* Of the teller, for the call. */
};

struct logs_part {
    uint32_t index; /* 0 .. count - 1; 0 is the first one. */
    uint32_t count;
    struct logs *first; /* Of the others: the first one. Touched while opening and closing only. */
    /* Is it this shard's partition? The answer must not change. */
    bool (*owns)(void *context, struct view topic, int32_t partition);
    /* Not the first one: bring these lines to logs_take_lines() of the first, in order. Told from
     * logs_turn(). What gets lost is told again with the next checkpoint. */
    void (*tell)(void *context, const struct logs_lines *lines);
    void *context;
};

struct logs_options {
    const char *const *paths; /* log.dirs, absolute. Borrowed for the call; paths are copied. */
    uint32_t path_count;      /* 1 .. LOG_DIRS_MAX. */
    int32_t node_id;
    enum log_ack ack;
    uint32_t open_files_max;     /* Idle files above this are closed. 0: the default. */
    uint32_t unsynced_max_bytes; /* Per directory. 0: LOG_UNSYNCED_MAX. */
    uint64_t disk_max_bytes;     /* dohle.disk.max.bytes: of all segments together. 0: no bound. */
    int64_t retention_interval_ms;  /* log.retention.check.interval.ms. 0: 300000. */
    int64_t checkpoint_interval_ms; /* log.flush.offset.checkpoint.interval.ms. 0: 60000. */
    uint32_t resume_bytes; /* Growth of a log's last segment that brings it what a recovery needs to
                              begin near its end. 0: LOG_RESUME_BYTES. */
    int64_t high_watermark_interval_ms; /* replica.high.watermark.checkpoint.interval.ms. 0: 5000 */
    int64_t cleaner_backoff_ms;         /* log.cleaner.backoff.ms. 0: 15000. */
    uint32_t cleaner_map_bytes; /* log.cleaner.dedupe.buffer.size. 0: LOG_CLEANER_MAP_BYTES. */
    bool cleaner_off;           /* log.cleaner.enable=false, for tests. */
    struct log_config config;   /* For partitions that nobody has configured yet. */

    /* Of one of several shards; NULL: there is only one. Borrowed, as its context, for the life. */
    const struct logs_part *part;

    /* Told in plain words, lower case, no full stop: what an operator must know. May be NULL. */
    void (*say)(void *context, const char *text);
    void *context;
    const struct say *tell; /* What only debugging wants to know. May be NULL. */
};

enum logs_result {
    LOGS_OK = 0,
    LOGS_E_LOCKED,      /* Another process holds the directory. */
    LOGS_E_FORMAT,      /* No directory has a meta.properties. */
    LOGS_E_META,        /* A meta.properties is not valid, or of another node, or they disagree. */
    LOGS_E_NAMES,       /* A folder that is no partition, or one partition in two directories. */
    LOGS_E_DIRECTORIES, /* No directory is usable. */
    LOGS_E_MEMORY,
};

/* Open all directories. A directory that cannot be read is offline and the others go on; one that
 * lacks meta.properties beside others that have it is formatted with a new directory id. `say`
 * tells what was wrong. Results: enum logs_result. Blocks: O(partitions). */
MUST_USE int logs_open(struct io *io, const struct logs_options *options, struct logs **out);

/* Hand over the turn's writes, start commits, run due tasks. Returns when to be called next at the
 * latest (monotonic ms), as an argument for io_turn(). O(logs touched this turn). */
int64_t logs_turn(struct logs *logs);

/* From now on the cleaner looks for work after so long a pause (log.cleaner.backoff.ms). */
void logs_clean_every(struct logs *logs, int64_t backoff_ms);

/* Nothing is in flight and nothing waits to be written or synced. */
bool logs_idle(const struct logs *logs);

/* Clean stop. Phase one, logs_stop(): no more appends (LOG_E_BUSY); writes and commits run out: go
 * on with logs_turn() and io_turn() until logs_idle(). Phase two, logs_close(): blocks; writes
 * indexes, producer snapshots, checkpoints and the clean marks, frees everything. `logs_close`
 * without waiting leaves no clean mark, as a crash would. `broker_epoch` goes into the mark; -1 if
 * unknown. Both NULL-safe. */
void logs_stop(struct logs *logs);
void logs_close(struct logs *logs, int64_t broker_epoch);

/* Of all but the first, and before the first one's logs_close(), with every shard at rest: the
 * same; lines go to the first, which marks a directory clean only if every shard has closed it so.
 */
void logs_close_part(struct logs *logs);

/* Of the first: what another shard's logs are now in the checkpoints. False: no memory, the old
 * lines stand. */
MUST_USE bool logs_take_lines(struct logs *logs, const struct logs_lines *lines);

/* Free the memory and close files without another write: what a crash leaves. For tests. */
void logs_abandon(struct logs *logs);

/* ---- directories ----------------------------------------------------------------------------- */

struct log_dir_info {
    const char *path;         /* Lives as long as the logs. */
    struct uuid directory_id; /* Zero if it could not be read. */
    int error;                /* 0: online; else -errno of the failure that took it offline. */
    bool full;                /* No space: appends answer LOG_E_FULL until there is some. */
    bool clean;               /* It had the clean mark at start. */
    bool cordoned;            /* Gets no new replicas. */
    uint32_t partitions;      /* Replicas in it. */
    uint32_t unrecovered;     /* Of these, not yet recovered after an unclean stop. */
    uint64_t unsynced_bytes;  /* Assigned and not yet durable. */
    uint64_t commits;         /* Done. */
    uint64_t commit_files;    /* Files in them. */
};

uint32_t logs_dir_count(const struct logs *logs);
void logs_dir_info(const struct logs *logs, uint32_t index, struct log_dir_info *out);
void logs_dir_cordon(struct logs *logs, uint32_t index, bool cordoned);

/* The broker epoch of the last clean stop: if every directory is online, has the mark, and they
 * agree; else -1. For BrokerRegistration. */
int64_t logs_previous_broker_epoch(const struct logs *logs);

/* Watches that are told of any directory that goes offline (once each, from io_turn()). */
struct logs_watch {
    struct list link;
    void (*offline)(struct logs_watch *watch, uint32_t directory);
};
void logs_watch_add(struct logs *logs, struct logs_watch *watch);

/* Another shard had this directory fail with `error` (negative): it is offline here, too. */
void logs_dir_fail(struct logs *logs, uint32_t index, int error);

/* Partitions whose unsynced bytes made log_append() answer LOG_E_BUSY may go on: below the cap. */
bool logs_dir_busy(const struct logs *logs, uint32_t index);

/* Has it no space? As log_dir_info.full. */
bool logs_dir_full(const struct logs *logs, uint32_t index);

/* ---- partitions ------------------------------------------------------------------------------ */

#define LOG_DIRECTORY_ANY UINT32_MAX

struct logs_replica {
    struct view topic;
    int32_t partition;
    struct uuid topic_id;            /* Zero: not checked (and not written to a new one). */
    const struct log_config *config; /* NULL: the default. Copied. */
    uint32_t directory; /* Index, or LOG_DIRECTORY_ANY: the online, not cordoned one with the fewest
                           partitions. Only for a new replica. */
    struct uuid assigned; /* The directory that the metadata has it in; zero: none of ours. */
    bool is_new;          /* The controller has just placed it here: not having files is right. */
    bool on_disk; /* Its folder is there though the scan passes over it: the metadata log's. */
};

/* The replica's log: the one on disk, or a new one whose files appear with its first append. A
 * folder with another topic id is renamed to -stray when the log opens, and the log begins empty.
 *
 *   LOG_OK          `*out` is set; it lives until logs_delete().
 *   LOG_E_DAMAGED   a checkpoint names the partition, its folder is gone: lost, not empty (unless
 *                   is_new, or the folder lies there as *-delete). Said once.
 *   LOG_E_MEMORY
 *   < 0             its directory (or every directory) is offline. */
MUST_USE int logs_replica(struct logs *logs, const struct logs_replica *in, struct log **out);

/* The log of a partition that is there, or NULL. O(1). */
struct log *logs_find(const struct logs *logs, struct view topic, int32_t partition);

/* Every log, in an order that repeats; until `each` returns false. `each` may delete the log. */
void logs_each(struct logs *logs, bool (*each)(void *context, struct log *log), void *context);

/* Delete a replica: its folder is renamed to -delete, out of the checkpoints, and unlinked after
 * file.delete.delay.ms. Its watches get LOG_EVENT_FAILED; the pointer is invalid when `task` is
 * done (NULL: nobody waits) and the name may be used again at once. */
void logs_delete(struct logs *logs, struct log *log, struct log_task *task);

/* The folder is not this node's: renamed to -stray and left for the operator. As logs_delete. */
void logs_stray(struct logs *logs, struct log *log, struct log_task *task);

/* ---- moves ----------------------------------------------------------------------------------- */

/* A replica goes to another directory while it is used (KIP-113, AlterReplicaLogDirs): a copy,
 * FOLDER.UUID-future there, is filled beside all appends, slice by slice. When it has all that is
 * durable the log stops for a moment: the rest is copied, the owner records the new directory, the
 * folders change their names. A restart goes on with the copy that is there. One move at a time. */

enum log_move_event {
    LOG_MOVE_BEGUN,  /* Or resumed. */
    LOG_MOVE_READY,  /* The copy is whole: record the directory, then logs_move_go(). */
    LOG_MOVE_DONE,   /* log_directory() is the new one. */
    LOG_MOVE_ENDED,  /* Cancelled: the log is where it was, the copy goes. */
    LOG_MOVE_FAILED, /* A directory failed, or the copy could not be read: the log is where it was.
                      */
};

struct logs_moves {
    /* `directory` is the target. From logs_turn() and from the calls below; it may call
     * logs_move_go(). */
    void (*told)(void *context, struct log *log, enum log_move_event event, uint32_t directory);
    /* replica.alter.log.dirs.io.max.bytes.per.second of this shard. */
    int64_t (*bytes_per_second)(void *context);
    void *context;
};

/* Who is told; without, moves go on by themselves, as fast as they can. Borrowed for the life. */
void logs_moves_follow(struct logs *logs, const struct logs_moves *moves);

/* Move the replica to this directory. Where it lies already: a move that runs is cancelled. While
 * another move runs that one is given up, or, when it is being decided, waited for.
 *
 *   LOG_OK  it has begun, or there is nothing to do.
 *   LOG_E_INVALID  the name of the copy's folder would exceed 255 bytes.
 *   LOG_E_MEMORY, or < 0: that directory is offline. */
MUST_USE int logs_move(struct logs *logs, struct log *log, uint32_t directory);

/* Does the name of a copy's folder fit into 255 bytes? */
bool logs_move_name_fits(struct view topic, int32_t partition);

/* After LOG_MOVE_READY: the new directory is recorded; or it could not be, and it is told again. A
 * move that is over meanwhile: nothing. */
void logs_move_go(struct log *log, bool recorded);

/* Where it is moved to; LOG_DIRECTORY_ANY: nowhere. */
uint32_t log_move_target(const struct log *log);

/* Of a copy: how many offsets the log is ahead of it; -1: there is no such log. */
int64_t log_future_lag(const struct log *future);
