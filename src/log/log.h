/* log.h - one partition's log: append, read, look up, truncate, and its three ends.
 *
 * A log has three ends, each an offset: *assigned* (the next record gets it), *written* (all below
 * is in the file, readers may be sent there), *durable* (all below survives a power cut). They only
 * rise, except by log_truncate(). A fourth, the *high watermark*, belongs to the caller, who tells
 * it with log_set_high_watermark(); the last stable offset follows from it.
 *
 * Nothing here blocks. What would (opening, recovering, a page that is not in memory) is started in
 * the background and answered with LOG_LATER; when it is there, the log's watches are called with
 * LOG_EVENT_READY and the caller asks again. A log opens itself at the first call that needs it.
 * Writes and commits are handed over once a turn by logs_turn() (log_manager.h).
 *
 * Memory: from the node's struct mem. Thread: the shard that owns the partition. Files, formats and
 * invariants: README.md in this folder. */
#pragma once

#include "base/buf.h"
#include "base/limits.h"
#include "base/list.h"
#include "io/io.h"
#include "log/log_config.h"
#include "record/batch_validate.h"

struct log;      /* One replica of a partition. */
struct log_file; /* A counted open file. */

/* Results of this folder's functions; each lists its own. Environment errors are -errno. */
enum log_result {
    LOG_OK = 0,
    LOG_LATER,       /* In the background now; LOG_EVENT_READY tells when to ask again. */
    LOG_DUPLICATE,   /* An idempotent producer's retry of what is in the log. */
    LOG_NOT_FOUND,   /* Nothing matches. */
    LOG_E_INVALID,   /* Against the rules for batches or records: log_appended.fault says which, and
                        record_fault_error() gives Kafka's code. */
    LOG_E_SEGMENT,   /* The batches exceed segment.bytes (RECORD_LIST_TOO_LARGE). */
    LOG_E_SEQUENCE,  /* Not the next sequence (OUT_OF_ORDER_SEQUENCE_NUMBER). */
    LOG_E_FENCED,    /* An older producer epoch (INVALID_PRODUCER_EPOCH). */
    LOG_E_TXN_STATE, /* Not transactional inside an open transaction (INVALID_TXN_STATE). */
    LOG_E_COORDINATOR_FENCED, /* A marker of an older coordinator (TRANSACTION_COORDINATOR_FENCED).
                               */
    LOG_E_OUT_OF_RANGE,       /* Offset below the start or above the end (OFFSET_OUT_OF_RANGE). */
    LOG_E_ORDER,              /* A follower's batches do not continue the log. */
    LOG_E_FULL,               /* No space on the log directory; retriable, nothing changed. */
    LOG_E_BUSY,    /* Unsynced bytes at their cap, or being truncated: try after a turn. */
    LOG_E_MEMORY,  /* The node's memory is at its limit; retriable, nothing changed. */
    LOG_E_DAMAGED, /* Bytes that were durable do not hold: the log is fenced, read docs. */
    LOG_E_DELETED, /* The replica has been deleted; let the pointer go. */
};

/* ---- append ---------------------------------------------------------------------------------- */

enum log_origin {
    LOG_CLIENT,      /* All rules of a Produce; offsets are given. */
    LOG_COORDINATOR, /* Own batches and markers: no record rules, no sequences; offsets are given.
                      */
    LOG_FOLLOWER,    /* The leader's batches as they are: offsets and epochs are in them. */
};

struct log_append {
    struct buf *buf;         /* Holds the batches; a reference is kept until they are written. */
    uint32_t at_bytes;       /* Where in `buf` the first batch begins. */
    uint32_t size_bytes;     /* What follows the last complete batch is dropped, as Kafka does. */
    int32_t leader_epoch;    /* Stamped into each batch; outside its CRC, as is the offset. */
    int64_t wall_ms;         /* Wall clock of this step, for the timestamp rules. */
    enum log_origin origin;  /* What is checked, and who gives the offsets. */
    int16_t produce_version; /* Of the request; INT16_MAX if there is none. Below 3 message sets of
                                magic 0 and 1 are taken, and become one batch. */
    bool last_room;          /* It may give room back: it may use the last of a full directory. */
    int16_t marker_txn_version; /* Of WriteTxnMarkers: 2 asks for the stricter epoch rule. */
    struct arena *request;      /* For the list of failed records; NULL: none is wanted. */
};

struct log_appended {
    int64_t offset_first; /* Given to the first record, or of the first append if LOG_DUPLICATE. */
    int64_t offset_end;   /* One past the last record. */
    int64_t append_time_ms; /* For the response: `wall_ms` under LogAppendTime, the stored batch's
                               MaxTimestamp if LOG_DUPLICATE, else -1. */
    /* If LOG_E_INVALID: the rule that failed, and the records that failed it (in the request's
     * arena; empty for rules that are not about single records). */
    enum record_fault fault;
    const struct batch_record_error *errors;
    int32_t error_count; /* In `errors`. */
    int32_t error_total; /* All. */
};

/* Check the batches, give them offsets, and queue their write to the active segment.
 *
 * All or nothing: unless LOG_OK is returned, the log is untouched (it may have rolled, or know the
 * leader epoch at its end); the batches may have been patched, so a retry is made from the same
 * bytes. LOG_OK is a place in the order (the *assigned* end), not a promise: what is written and
 * what is durable are told by log_end_written() and log_end_durable().
 *
 *   LOG_OK          `out` is set. Nothing to append (no complete batch): offset_first = offset_end.
 *   LOG_DUPLICATE   `out` holds the offsets and the time of the first time.
 *   LOG_LATER       the log is being opened.
 *   LOG_E_INVALID LOG_E_SEGMENT
 *   LOG_E_SEQUENCE LOG_E_FENCED LOG_E_TXN_STATE LOG_E_COORDINATOR_FENCED
 *   LOG_E_ORDER     origin follower: the first batch begins below the assigned end.
 *   LOG_E_FULL LOG_E_BUSY LOG_E_MEMORY   retriable.
 *   LOG_E_DAMAGED LOG_E_DELETED
 *   < 0             the log's directory failed earlier (-errno of the first failure); offline.
 *
 * Cost: O(size_bytes). Recompression (compression.type other than the batch's codec) makes a new
 * buffer; nothing else allocates more than a small block. A roll creates a file. */
MUST_USE int log_append(struct log *log, const struct log_append *in, struct log_appended *out);

/* ---- the ends -------------------------------------------------------------------------------- */

/* Where segment `index` (from the oldest) begins, and when it was written to last, for ListOffsets
 * 0. False: there is none with this index. */
bool log_segment_age(const struct log *log, uint32_t index, int64_t *base, int64_t *modified_ms);

/* Each needs an open log: LOG_OK of log_open(), or of any other call before. */
int64_t log_start(const struct log *log);        /* Lowest offset that may be read. */
int64_t log_end_assigned(const struct log *log); /* Kafka's log end offset (LEO). */
int64_t log_end_written(const struct log *log);
int64_t log_end_durable(const struct log *log); /* Also Kafka's recovery point. */
int64_t log_high_watermark(const struct log *log);
int64_t log_last_stable(const struct log *log); /* Upper end for read_committed. */

/* From now on what is appended here is committed at once, whatever the acks of others rest on: for
 * the metadata log, whose own answers wait for the durable end also with LOG_ACK_REPLICATED. */
void log_commit_eagerly(struct log *log);

/* Tell the high watermark: clamped to [start, assigned]. It may only fall by truncation or where
 * the caller's rules allow. Written to replication-offset-checkpoint by the manager. */
void log_set_high_watermark(struct log *log, int64_t offset);

/* Make the log ready: LOG_OK, LOG_LATER, LOG_E_DAMAGED, LOG_E_DELETED, or -errno; LOG_E_MEMORY,
 * LOG_E_FULL, -EMFILE: told once, the next call tries again. The
 * first call starts the opening (with recovery after an unclean stop). */
MUST_USE int log_open(struct log *log);

/* What recovery found; all zero after a clean stop. */
struct log_recovery {
    uint64_t scanned_bytes;
    uint64_t cut_bytes;    /* Behind the last good batch, taken off. */
    int64_t durable_lost;  /* Offsets that a checkpoint says were durable and are not there. */
    uint32_t segments;     /* Scanned. */
    uint32_t index_errors; /* Indexes that were missing or did not hold and were made anew. */
};
const struct log_recovery *log_recovered(const struct log *log);

enum log_event {
    LOG_EVENT_WRITTEN = 1, /* The written end rose. */
    LOG_EVENT_DURABLE = 2, /* The durable end rose. */
    LOG_EVENT_READY = 4,   /* What was answered with LOG_LATER may be asked again. */
    LOG_EVENT_START = 8,   /* The log start rose (retention, log_delete_records). */
    LOG_EVENT_FAILED = 16, /* The directory went offline, or the log is damaged or deleted. */
};

struct log_watch {
    struct list link;
    void (*moved)(struct log_watch *watch, struct log *log, int events); /* Set of log_event. */
};

/* Be told, from io_turn() or logs_turn(), never from inside another call on the log. The watch is
 * the caller's and stays on until it is removed; it may remove itself. */
void log_watch_add(struct log *log, struct log_watch *watch);
void log_watch_remove(struct log_watch *watch);

/* Have the watches told in the next logs_turn(), of no event: an owner's own state has moved inside
 * a call, where it may not tell others. */
void log_nudge(struct log *log);

/* ---- read ------------------------------------------------------------------------------------ */

struct log_read {
    int64_t offset;     /* The first wanted. */
    int64_t offset_end; /* Nothing at or above this: high watermark, last stable, or INT64_MAX for
                           all that is written. Must lie between batches, as those do. */
    uint32_t max_bytes;
    bool min_one; /* The first batch is given whole even if it is larger than max_bytes. */
};

/* A range of a segment's file: whole batches, the first of which holds or follows `offset`. It
 * stays readable until released, also when the segment is deleted or compacted meanwhile. */
struct log_range {
    struct log_file *hold;  /* One reference, the caller's: log_range_release(). NULL if empty. */
    struct io_file *file;   /* For io_stream_send_file, io_read. */
    uint64_t at_bytes;      /* Position in it. */
    uint32_t size_bytes;    /* 0: nothing below offset_end, or the first batch did not fit. */
    int64_t offset_first;   /* Base offset of the first batch; `offset` if empty. */
    int64_t offset_next;    /* Ask from here to continue. */
    uint32_t batch_too_big; /* If empty because of max_bytes: the size of the first batch. */
};

/* Find the bytes to send for a read.
 *
 *   LOG_OK              `out` is set (perhaps empty).
 *   LOG_E_OUT_OF_RANGE  offset < log start, or > assigned end.
 *   LOG_LATER           the place has to be looked up in a file that is not in memory.
 *   LOG_E_DAMAGED       no batch where one must be.   LOG_E_DELETED   LOG_E_MEMORY
 *   < 0                 reading failed (only this range), or the directory is offline.
 *
 * Cost: at the tail no I/O; else a binary search and a few kilobytes from the page cache. */
MUST_USE int log_read(struct log *log, const struct log_read *in, struct log_range *out);

/* Give the range's file back. An empty range is fine; `range` is empty afterwards. */
void log_range_release(struct log_range *range);

struct log_aborted {
    int64_t producer_id;
    int64_t offset_first; /* Of the transaction. */
};

/* The aborted transactions that a read_committed reader of [offset, offset_end) has to know, at
 * most `capacity` of them; `count` says how many there are (ask again with more room if above).
 * LOG_OK, LOG_LATER, LOG_E_MEMORY or -errno. */
MUST_USE int log_aborted_in(struct log *log,
                            const struct log_read *in,
                            struct log_aborted *out,
                            uint32_t capacity,
                            uint32_t *count);

/* ---- lookups --------------------------------------------------------------------------------- */

/* Look up an offset by time, in the background. Embedded by the caller, who keeps it until `done`.
 */
struct log_query {
    struct log *log;
    int64_t timestamp_ms; /* First record at or after this; or LOG_MAX_TIMESTAMP. */
    void (*done)(struct log_query *query); /* Called once, from io_turn() or logs_turn(). */
    int result;                            /* LOG_OK, LOG_NOT_FOUND, other results, or -errno. */
    int64_t offset;                        /* Of the record, and its timestamp and the leader */
    int64_t found_timestamp_ms;            /* epoch of its batch; -1 if not found. */
    int32_t leader_epoch;
    struct list link; /* The log's. */
    struct io_op op;
    void *work;
};
#define LOG_MAX_TIMESTAMP (-3) /* The first record that holds the largest timestamp. */

/* Start the query; only `log`, `timestamp_ms` and `done` are set by the caller. Considers what is
 * written at or above the log start; comparing with the high watermark is the caller's. */
void log_query_start(struct log_query *query);

struct log_epoch_end {
    int32_t epoch; /* Largest known epoch <= the asked one; -1: none. */
    int64_t end;   /* Where it ends; -1: unknown. */
};

/* Kafka's answer to OffsetForLeaderEpoch. Needs an open log. O(log n). */
struct log_epoch_end log_epoch_end(const struct log *log, int32_t epoch);

/* Epoch of the record at `offset`, -1 if unknown; the newest epoch, -1 if there is none. */
int32_t log_epoch_at(const struct log *log, int64_t offset);
int32_t log_epoch_latest(const struct log *log);

/* The replica becomes leader with this epoch: from the assigned end on. LOG_OK, LOG_LATER,
 * LOG_E_MEMORY, LOG_E_DAMAGED, LOG_E_DELETED or -errno. */
MUST_USE int log_epoch_begin(struct log *log, int32_t epoch);

struct log_producer {
    int64_t producer_id;
    int64_t last_timestamp_ms;
    int64_t txn_offset_first;  /* Of the open transaction; -1: none. */
    int32_t last_sequence;     /* -1: none. */
    int32_t coordinator_epoch; /* -1: none. */
    int16_t epoch;
};

/* Each producer that the log knows, until `each` returns false (DescribeProducers). LOG_OK,
 * LOG_LATER and the failures of log_open(). */
MUST_USE int log_producers(struct log *log,
                           bool (*each)(void *context, const struct log_producer *producer),
                           void *context);

/* ---- change ---------------------------------------------------------------------------------- */

/* Raise the log start (DeleteRecords; or a follower's, told by its leader). `offset` must be at
 * most the high watermark, else LOG_E_OUT_OF_RANGE. LOG_OK, LOG_LATER, or the failures of
 * log_open(). Segments wholly below are deleted by the next retention; the checkpoint is written in
 * the background at once. */
MUST_USE int log_delete_records(struct log *log, int64_t offset);

/* Something that runs in the background on a log and tells its end. Embedded by the caller. */
struct log_task {
    struct list link;                    /* The log's. */
    void (*done)(struct log_task *task); /* Called once, from io_turn() or logs_turn(). */
    int result;                          /* LOG_OK or a failure; set before `done`. */
    int64_t offset;
    uint8_t kind;
};

/* Cut the log so that it ends at `offset` or at the batch boundary below it (an offset at or above
 * the end changes nothing). Appends answer LOG_E_BUSY meanwhile. By epoch: the caller asks
 * log_epoch_end() for the offset. All ends, the epochs, the producers follow. */
void log_truncate(struct log *log, int64_t offset, struct log_task *task);

/* Forget everything and begin anew at `offset`, which becomes start and end. */
void log_restart(struct log *log, int64_t offset, struct log_task *task);

/* Begin a new segment if the active one has data. LOG_OK, LOG_LATER, LOG_E_FULL, failures. */
MUST_USE int log_roll(struct log *log);

/* Use another configuration from now on. It is copied. */
void log_configure(struct log *log, const struct log_config *config);

/* ---- what it is ------------------------------------------------------------------------------ */

struct view log_topic(const struct log *log); /* Lives as long as the log. */
int32_t log_partition(const struct log *log);
uint32_t log_directory(const struct log *log);  /* Index among the manager's directories. */
bool log_has_files(const struct log *log);      /* On disk, opened or not. */
uint64_t log_size_bytes(const struct log *log); /* Of the segments' batches; 0 until opened. */
uint32_t log_segments(const struct log *log);   /* Their number; 0 until opened. */
bool log_is_future(const struct log *log);      /* It is the copy that a move makes. */
