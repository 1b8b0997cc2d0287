/* look_txns.c - a .txnindex file held against the batches, at its first use.
 *
 * The file has no checksum, and a wrong entry would show aborted records to a reader of committed
 * ones. So the first read that needs it walks over the segment's headers in a job, from the
 * producers that the snapshot at the segment's base knows, and finds the aborted transactions anew.
 * Where the two differ the batches are right, if all their CRCs hold. Not proved: a segment without
 * such a snapshot, and a compacted log, whose cleaner has taken batches away that the entries tell
 * of. */
#include <errno.h>

#include "log/replay.h"
#include "log/state.h"

#define SNAPSHOT_MAX (512u * 1024u * 1024u)

struct look_txns {
    struct look_job job;
    struct log_file *file; /* Held. */
    struct disk_path snapshot_path;
    struct disk_path path;
    uint32_t bytes;    /* Batches behind them were appended by this process, */
    int64_t end;       /* from this offset on. */
    bool sealed;       /* The job writes the file; else the closing of the segment does. */
    bool different;    /* `found` is to be used. */
    struct index was;  /* The entries when the job began, a copy; of them */
    uint32_t unproved; /* so many are the file's. */
    struct index found;
};

/* ---- in the job ------------------------------------------------------------------------------ */

/* What was known at the segment's base. LOG_NOT_FOUND: nobody says. */
static int txns_begin(const struct look_txns *look, struct io *io, struct producers *producers)
{
    if (look->job.base == 0) return LOG_OK;
    struct disk_bytes bytes;
    int error = disk_read_whole(io, producers->mem, look->snapshot_path.text, SNAPSHOT_MAX, &bytes);
    if (error == -ENOENT || error == -EFBIG) return LOG_NOT_FOUND;
    if (error < 0) return error;
    int result = producers_read(producers, view_of(bytes.data, bytes.size_bytes), 0, INT64_MAX);
    disk_free(producers->mem, &bytes);
    if (result == LOG_E_MEMORY) return -ENOMEM;
    return result == LOG_OK ? LOG_OK : LOG_NOT_FOUND;
}

/* Find them anew. LOG_NOT_FOUND: the batches do not say. */
static int txns_find(struct look_txns *look, struct scan *scan, bool crc)
{
    struct producers producers;
    producers_init(&producers, scan->mem, 0); /* Ids of producers are the server's own. */
    index_unload(scan->mem, &look->found);
    look->found = index_new(INDEX_TXN_BYTES);
    int result = txns_begin(look, scan->io, &producers);
    scan_seek(scan, look->file->file, 0, look->bytes);
    scan->crc = crc;
    enum scan_result next = SCAN_END;
    int64_t end = look->job.base;
    while (result == LOG_OK && (next = scan_next(scan)) == SCAN_BATCH) {
        if (batch_last_offset(&scan->header) < end || scan->header.base_offset < end) break;
        end = batch_last_offset(&scan->header) + 1;
        result = replay_batch(scan, &producers, &look->found);
    }
    if (result == LOG_OK && next == SCAN_FAILED) result = (int)scan->error;
    if (result == LOG_OK && next != SCAN_END) result = LOG_NOT_FOUND;
    producers_free(&producers);
    return result;
}

/* Do both begin with the same `count` entries? */
static bool txns_begin_same(const struct index *a, const struct index *b, uint32_t count)
{
    if (count == 0) return true;
    return memcmp(a->entries, b->entries, (size_t)count * a->width) == 0;
}

static bool txns_same(const struct look_txns *look)
{
    return look->was.count == look->found.count &&
           txns_begin_same(&look->was, &look->found, look->was.count);
}

static int64_t txns_run(struct io *io, void *argument)
{
    struct look_txns *look = container_of(argument, struct look_txns, job);
    struct scan scan;
    scan_begin(&scan, io, &look->job.memory.mem, SCAN_WINDOW_LARGE);
    int result = txns_find(look, &scan, false);
    if (result == LOG_OK && !txns_same(look)) {
        result = txns_find(look, &scan, true);
        look->different = result == LOG_OK && !txns_same(look);
    }
    if (look->different && look->sealed) result = index_store(io, look->path.text, &look->found);
    scan_end(&scan);
    return result == LOG_NOT_FOUND || disk_is_full(result) ? 0 : result;
}

/* ---- in the shard ---------------------------------------------------------------------------- */

/* Use what was found, and behind it what this process has appended since. False: not now. */
static bool txns_adopt(struct look_txns *look, struct segment *segment)
{
    struct mem *mem = look->job.log->logs->mem;
    if (segment->sealing || !index_reserve(mem, &look->found, segment->txns.count)) return false;
    for (uint32_t i = look->unproved; i < segment->txns.count; i++) {
        struct index_txn entry = index_get_txn(&segment->txns, i);
        if (entry.offset_last >= look->end) index_add_txn(&look->found, &entry);
    }
    index_unload(mem, &segment->txns);
    segment->txns = look->found;
    segment->txns.stored = look->sealed ? segment->txns.count : 0;
    look->found = (struct index){0};
    look->job.log->recovery.index_errors++;
    return true;
}

/* Is the segment still the one that the job worked on, but for what was appended? */
static bool txns_unchanged(const struct look_txns *look, const struct segment *segment)
{
    return segment->sealed == look->sealed && segment->txns.count >= look->was.count &&
           txns_begin_same(&segment->txns, &look->was, look->was.count);
}

static void txns_done(struct io_op *op)
{
    struct look_txns *look = container_of(op, struct look_txns, job.op);
    struct log *log = look->job.log;
    struct mem *mem = log->logs->mem;
    struct segment *segment = look_ended(&look->job);
    if (op->result == 0 && segment != NULL && txns_unchanged(look, segment) &&
        (!look->different || txns_adopt(look, segment)))
        segment->txns_unproved = 0;
    index_unload(mem, &look->was);
    index_unload(mem, &look->found);
    log_file_release(look->file);
    mem_put(mem, look, sizeof(*look));
    log_tell(log, LOG_EVENT_READY);
}

static int txns_start(struct log *log, struct segment *segment, struct look_txns *look)
{
    int result = segment_file(segment, false);
    if (result != LOG_OK) return result;
    look->bytes = segment->written_bytes;
    look->end = segment->written_end;
    look->sealed = segment->sealed;
    look->was = look->found = index_new(INDEX_TXN_BYTES);
    if (!index_copy(log->logs->mem, &look->was, &segment->txns)) return LOG_E_MEMORY;
    look->unproved = MIN(segment->txns_unproved, segment->txns.count);
    while (look->was.count > look->unproved &&
           index_get_txn(&look->was, look->was.count - 1).offset_last >= look->end)
        look->was.count--; /* Assigned, and not in the file yet. */
    look->snapshot_path = log_path(log, segment_file_name(segment->base, ".snapshot").text);
    look->path = log_path(log, segment_file_name(segment->base, ".txnindex").text);
    look->file = segment->file;
    log_file_hold(look->file);
    return LOG_OK;
}

int look_txns_start(struct log *log, struct segment *segment)
{
    struct logs *logs = log->logs;
    if (log->config.cleanup_compact) segment->txns_unproved = 0;
    if (segment->txns_unproved == 0) return LOG_OK;
    if (segment->sealing) return LOG_LATER;
    int result = look_may(log, segment);
    if (result != LOG_OK) return result;
    struct look_txns *look = mem_get(logs->mem, sizeof(*look));
    if (look == NULL) return LOG_E_MEMORY;
    result = txns_start(log, segment, look);
    if (result != LOG_OK) {
        index_unload(logs->mem, &look->was);
        mem_put(logs->mem, look, sizeof(*look));
        return result;
    }
    look_begin(&look->job, log, segment, txns_run, txns_done);
    return LOG_LATER;
}
