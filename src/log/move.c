/* move.c - a replica goes to another log directory while it is used.
 *
 *   OPENING -> COPYING -> FROZEN -> TELLING -> GOING -> done
 *
 * OPENING  the copy, a log of its own in the target (FOLDER.UUID-future), is made or recovered.
 * COPYING  what is durable in the log is read a slice at a time and appended to the copy as a
 *          follower would; the copy's start follows the log's. Appends, reads, retention and
 *          compaction of the log go on.
 * FROZEN   the copy has all that was durable: no more appends, retention, compaction. What is on
 *          its way becomes durable and is copied; then the copy is made whole (move_swap.c).
 * TELLING  the owner has the new directory recorded in the metadata.
 * GOING    no reads either: the folders are renamed, the log's segments are the copy's now.
 *
 * Only durable bytes are copied: whatever a power cut takes from the log, the copy has no other
 * bytes at the same offsets. So a copy that is found at a start is gone on with. The log is the
 * truth until the rename: the copy alone counts only where the metadata names its directory, and
 * that is written while the log is frozen and both are the same. A log that ended below its copy
 * (it was cut) has its copy made anew. */
#include <errno.h>

#include "log/state.h"
#include "sys/say.h"

#define MOVE_SLICE_BYTES (1024u * 1024u)
#define MOVE_SLICE_MIN   (16u * 1024u)
#define MOVE_AGAIN_MS    10   /* After what a turn or two will change. */
#define MOVE_PAUSE_MS    1000 /* After what may get better: a full disk, no memory. */

/* ---- the struct ------------------------------------------------------------------------------ */

static void move_tell(struct log *log, enum log_move_event event, uint32_t directory)
{
    const struct logs_moves *mover = log->logs->mover;
    if (mover != NULL) mover->told(mover->context, log, event, directory);
}

void log_move_free(struct log_move *move)
{
    struct mem *mem = move->logs->mem;
    assert(!move->busy);
    log_range_release(&move->range);
    if (move->buf != NULL) buf_release(move->buf);
    sink_free(&move->snapshot);
    sink_free(&move->epochs);
    move_paths_free(move);
    mem_put(mem, move, sizeof(*move));
}

void log_thaw(struct log *log)
{
    if (!log->frozen) return;
    log->frozen = false;
    if (log->state == LOG_CHANGING) log->state = LOG_READY;
    log_tell(log, LOG_EVENT_READY);
}

/* Off the list; the log goes on where it is, and perhaps to the directory asked for since. */
static void move_over(struct log_move *move, enum log_move_event event, uint32_t target)
{
    struct log *log = move->log;
    uint32_t next = move->next_directory;
    list_remove(&move->link);
    log->move = NULL;
    log_thaw(log);
    move->dropped = true;
    if (!move->busy) log_move_free(move);
    if (log->state == LOG_GONE) return;
    move_tell(log, event, target);
    if (next == LOG_DIRECTORY_ANY || next == log->directory->index) return;
    int result = logs_move(log->logs, log, next);
    if (result != LOG_OK)
        logs_say(log->logs, "partition %.*s-%d is not moved again: its directory cannot take it",
                 (int)log->topic.size, (const char *)log->topic.data, log->partition);
}

void log_move_done(struct log_move *move)
{
    move_over(move, LOG_MOVE_DONE, move->log->directory->index);
}

/* Cancelled: the copy goes. Failed: it stays on the disk for the next start. */
void log_move_end(struct log_move *move, enum log_move_event event)
{
    struct log *future = move->future;
    uint32_t target = future->directory->index;
    if (event == LOG_MOVE_ENDED && future->state != LOG_GONE)
        logs_delete(future->logs, future, NULL);
    move_over(move, event, target);
}

static void move_say(const struct log_move *move, const char *what, const char *why)
{
    const struct log *log = move->log;
    logs_say(log->logs, "the move of partition %.*s-%d to \"%s\" %s%s%s", (int)log->topic.size,
             (const char *)log->topic.data, log->partition, move->future->directory->path, what,
             why == NULL ? "" : ": ", why == NULL ? "" : why);
}

static void move_fail(struct log_move *move, const char *why)
{
    move_say(move, "has failed", why);
    log_move_end(move, LOG_MOVE_FAILED);
}

static struct log_move *move_new(struct log *log, struct log *future)
{
    struct logs *logs = log->logs;
    struct log_move *move = mem_get(logs->mem, sizeof(*move));
    if (move == NULL) return NULL;
    move->logs = logs;
    move->log = log;
    move->future = future;
    move->next_directory = LOG_DIRECTORY_ANY;
    move->cleaner_from = -1;
    sink_init(&move->snapshot, logs->mem, UINT32_MAX);
    sink_init(&move->epochs, logs->mem, UINT32_MAX);
    list_init(&move->link);
    list_append(&logs->moves, &move->link);
    log->move = move;
    future->topic_id = log->topic_id;
    future->config = log->config;
    return move;
}

/* A copy in the directory, whose folder says from now on what was asked for. */
static struct log *move_make(struct log *log, struct log_directory *directory)
{
    struct log *future = log_new_future(directory, log->topic, log->partition);
    if (future == NULL) return NULL;
    future->topic_id = log->topic_id;
    log_make_start(future);
    return future;
}

static struct log_move *move_begin(struct log *log, struct log_directory *directory)
{
    struct log *future = move_make(log, directory);
    struct log_move *move = future == NULL ? NULL : move_new(log, future);
    if (move == NULL) {
        if (future != NULL) logs_delete(log->logs, future, NULL);
        return NULL;
    }
    move->cleaner_from = log->checkpoint_cleaner;
    return move;
}

/* ---- asking ---------------------------------------------------------------------------------- */

void logs_moves_follow(struct logs *logs, const struct logs_moves *moves)
{
    logs->mover = moves;
}

static bool move_decided(const struct log_move *move)
{
    return move->state >= MOVE_TELLING;
}

int logs_move(struct logs *logs, struct log *log, uint32_t index)
{
    assert(index < logs->directory_count);
    struct log_directory *directory = &logs->directories[index];
    struct log_move *move = log->move;
    if (log->state == LOG_GONE) return LOG_E_DELETED;
    if (!logs_move_name_fits(log->topic, log->partition)) return LOG_E_INVALID;
    if (directory->error != 0) return directory->error;
    if (move != NULL && move_decided(move)) {
        move->next_directory = index; /* When this one is over. */
        return LOG_OK;
    }
    if (move != NULL && move->future->directory == directory) return LOG_OK;
    if (move != NULL) log_move_end(move, LOG_MOVE_ENDED);
    if (log->directory == directory) return LOG_OK;
    if (log->directory->error != 0) return log->directory->error;
    struct log *left = logs_find_future(logs, log->topic, log->partition);
    if (left != NULL) logs_delete(logs, left, NULL); /* Of a move that failed. */
    if (move_begin(log, directory) == NULL) return LOG_E_MEMORY;
    move_tell(log, LOG_MOVE_BEGUN, index);
    return LOG_OK;
}

void log_move_resume(struct log *log, struct log *future)
{
    if (future->directory == log->directory) { /* It was cancelled, or belongs to an older move. */
        logs_delete(log->logs, future, NULL);
        return;
    }
    if (future->state != LOG_CLOSED || move_new(log, future) == NULL) return;
    log_recover_later(future);
    move_tell(log, LOG_MOVE_BEGUN, future->directory->index);
}

void logs_move_go(struct log *log, bool recorded)
{
    struct log_move *move = log->move;
    if (move == NULL || move->state != MOVE_TELLING || move->busy) return;
    if (move->next_directory != LOG_DIRECTORY_ANY &&
        move->next_directory != move->future->directory->index) {
        log_move_end(move, LOG_MOVE_ENDED);
    } else if (recorded) {
        move->state = MOVE_GOING;
        if (log->state == LOG_READY) log->state = LOG_CHANGING;
    } else {
        move->state = MOVE_COPYING; /* What comes meanwhile is copied, and it is told again. */
        move->pause_until_ms = io_now_ms(log->logs->io) + MOVE_PAUSE_MS;
        log_thaw(log);
    }
}

bool log_move_abort(struct log *log)
{
    struct log_move *move = log->move;
    if (move == NULL) return false;
    if (move->state == MOVE_GOING && move->busy) return true;
    log_move_end(move, LOG_MOVE_ENDED);
    return false;
}

uint32_t log_move_target(const struct log *log)
{
    return log->move == NULL ? LOG_DIRECTORY_ANY : log->move->future->directory->index;
}

int64_t log_future_lag(const struct log *future)
{
    const struct log *log = logs_find(future->logs, future->topic, future->partition);
    assert(future->future);
    if (log == NULL) return -1;
    bool known = log->state == LOG_READY && future->state == LOG_READY;
    return known ? log->end - future->end : MAX(log->end, 0);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void move_pause(struct log_move *move, int64_t ms)
{
    move->pause_until_ms = io_now_ms(move->log->logs->io) + ms;
}

/* One that will not come right by waiting ends the move. */
static void move_refused(struct log_move *move, int result)
{
    if (result == LOG_E_BUSY)
        move_pause(move, MOVE_AGAIN_MS);
    else if (result == LOG_E_MEMORY || result == LOG_E_FULL || result == -EMFILE)
        move_pause(move, MOVE_PAUSE_MS);
    else if (result != LOG_LATER)
        move_fail(move, result < 0 ? say_errno(result) : "its bytes do not hold");
}

/* The copy begins anew. */
static void move_anew(struct log_move *move)
{
    struct log_directory *directory = move->future->directory;
    struct log *old = move->future;
    logs_delete(old->logs, old, NULL);
    struct log *future = move_make(move->log, directory);
    if (future == NULL) {
        move->future = old;
        move_fail(move, "no memory");
        return;
    }
    future->config = move->log->config;
    move->future = future;
    move->cleaner_from = move->log->checkpoint_cleaner;
    move->state = MOVE_OPENING;
}

static void move_open(struct log_move *move)
{
    struct log *log = move->log, *future = move->future;
    int result = log_open(log);
    if (result != LOG_OK) {
        move_refused(move, result);
        return;
    }
    if (!future->has_folder) {
        log_make_start(future); /* The second time, after a full disk. */
        if (future->making) return;
        move_pause(move, MOVE_AGAIN_MS);
        return;
    }
    if (future->state == LOG_CLOSED && future->checkpoint_start < 0 && !future->recover)
        future->checkpoint_start = log->segments[0]->base;
    result = log_open(future);
    if (result == LOG_E_DAMAGED || (result == LOG_OK && future->end > log->durable)) {
        move_anew(move);
        return;
    }
    if (result == LOG_OK)
        move->state = MOVE_COPYING;
    else
        move_refused(move, result);
}

/* ---- copying --------------------------------------------------------------------------------- */

/* The copy's start and high watermark follow the log's. */
static void move_follow(struct log_move *move)
{
    struct log *log = move->log, *future = move->future;
    log_set_high_watermark(future, MIN(log->watermark, future->end));
    int64_t start = MIN(log->start, future->end);
    if (start <= future->start) return;
    log_raise_start(future, start);
    int result = log_retain(future); /* Segments below it; what is LOG_LATER goes with the next. */
    (void)result;
}

static void move_append(struct log_move *move)
{
    struct log *future = move->future;
    struct log_append in = {
        .buf = move->buf,
        .size_bytes = move->buf->size_bytes,
        .leader_epoch = INT32_MAX,
        .wall_ms = io_wall_ms(future->logs->io),
        .origin = LOG_FOLLOWER,
        .produce_version = INT16_MAX,
    };
    struct log_appended out;
    future->config = move->log->config;
    /* A batch was taken when segment.bytes was larger. */
    future->config.segment_bytes = MAX(future->config.segment_bytes, in.size_bytes);
    int result = log_append(future, &in, &out);
    if (result != LOG_OK) {
        move_refused(move, result);
        return;
    }
    buf_release(move->buf);
    move->buf = NULL;
    move_follow(move);
}

static void move_read_done(struct io_op *op)
{
    struct log_move *move = container_of(op, struct log_move, op);
    move->logs->in_flight--;
    move->busy = false;
    log_range_release(&move->range);
    bool whole = op->result == (int64_t)move->buf->size_bytes;
    if (!whole || move->dropped) {
        buf_release(move->buf);
        move->buf = NULL;
    }
    if (move->dropped)
        log_move_free(move);
    else if (!whole)
        move_fail(move, op->result < 0 ? say_errno((int)op->result) : "a file is too short");
}

static uint32_t move_slice(const struct log_move *move, int64_t *rate)
{
    const struct logs_moves *mover = move->log->logs->mover;
    uint32_t bytes = MIN(MOVE_SLICE_BYTES, move->log->config.segment_bytes);
    *rate = mover == NULL || mover->bytes_per_second == NULL
                ? INT64_MAX
                : MAX(mover->bytes_per_second(mover->context), 1);
    return (uint32_t)MIN((int64_t)bytes, MAX(*rate / 10, (int64_t)MOVE_SLICE_MIN));
}

/* dohle.disk.max.bytes counts the copy, too: it waits until there is room. */
static bool move_has_room(const struct log_move *move, uint32_t bytes)
{
    const struct logs *logs = move->log->logs;
    return !logs_counts_space(logs) || logs->space_used + bytes <= logs->space_max;
}

/* Read the next slice of what is durable. LOG_NOT_FOUND: there is nothing, though offsets are. */
static int move_read(struct log_move *move)
{
    struct log *log = move->log;
    int64_t rate;
    uint32_t slice = move_slice(move, &rate);
    if (!move_has_room(move, slice)) return LOG_E_FULL;
    struct log_read read = {MAX(move->future->end, log->start), log->durable, slice, true};
    int result = log_read(log, &read, &move->range);
    if (result != LOG_OK) return result == LOG_E_OUT_OF_RANGE ? (int)LOG_E_BUSY : result;
    if (move->range.size_bytes == 0) {
        log_range_release(&move->range);
        return LOG_NOT_FOUND;
    }
    move->buf = buf_new(log->logs->mem, move->range.size_bytes);
    if (move->buf == NULL) {
        log_range_release(&move->range);
        return LOG_E_MEMORY;
    }
    move->iov = (struct iovec){move->buf->data, move->range.size_bytes};
    move->op.done = move_read_done;
    move->busy = true;
    log->logs->in_flight++;
    io_read(log->logs->io, &move->op, move->range.file, &move->iov, 1, move->range.at_bytes);
    if (rate < INT64_MAX / 1000) /* What it takes at this rate comes before the next. */
        move_pause(move, (int64_t)move->range.size_bytes * 1000 / rate);
    return LOG_OK;
}

/* Nothing works on the log, */
static bool move_rests(const struct log *log)
{
    return log->cleaning == NULL && list_empty(&log->works) && !log->working && !log->looking;
}

/* and nothing is on its way to its files. */
static bool move_quiet(const struct log *log)
{
    return move_rests(log) && list_empty(&log->writes) && log->durable == log->end &&
           list_empty(&log->names);
}

/* The log ends behind its last batch: compaction took what was there, or retention all. */
static bool move_skip(struct log_move *move)
{
    struct log *log = move->log, *future = move->future;
    struct segment *active = log_active(future);
    if (!move_quiet(future)) return false;
    if (active->size_bytes == 0 && !active->made)
        active->base = log->end;
    else if (log_roll_to(future, log->end) != LOG_OK)
        return false;
    active = log_active(future);
    active->written_end = active->commit_end = active->durable_end = log->end;
    future->end = future->written = future->durable = future->producers.offset_end = log->end;
    move->skips = false;
    move_follow(move);
    return true;
}

static void move_freeze(struct log_move *move)
{
    struct log *log = move->log;
    assert(log->state == LOG_READY);
    log->frozen = true;
    move->state = MOVE_FROZEN;
    log->directory->commit_wanted = true;
    move->future->directory->commit_wanted = true;
}

/* All that is durable has been copied. */
static void move_caught_up(struct log_move *move)
{
    struct log *log = move->log, *future = move->future;
    if (log->state != LOG_READY || log->change_task != NULL) return;
    if (move->state == MOVE_COPYING) move_freeze(move);
    if (!move_quiet(log)) return;
    if (move->skips || future->end < log->start) {
        if (!move_skip(move)) return;
    }
    if (future->end < log->end) return; /* A turn later: it has just become durable. */
    move_follow(move);
    future->directory->commit_wanted = true;
    if (!move_quiet(future)) return;
    /* What was deleted from the log must not come back: its start is in the target's checkpoint. */
    if (log->logs->starts_moved || future->directory->checkpoint_busy[CHECKPOINT_OF_STARTS]) return;
    move_prepare(move);
}

static void move_copy(struct log_move *move)
{
    struct log *log = move->log, *future = move->future;
    if (log->state == LOG_CHANGING) return; /* Being cut: log_move_abort() has been called. */
    if (move->buf != NULL) {
        move_append(move);
        return;
    }
    move_follow(move);
    int result = LOG_NOT_FOUND;
    if (future->end < log->durable) result = move_read(move);
    if (result == LOG_OK) return;
    if (result != LOG_NOT_FOUND) {
        move_refused(move, result);
        return;
    }
    move->skips = future->end < log->durable;
    move_caught_up(move);
}

/* ---- the turn -------------------------------------------------------------------------------- */

/* A directory has failed: what then? True: the move is over. */
static bool move_broken(struct log_move *move)
{
    const struct log *log = move->log, *future = move->future;
    int error = future->directory->error;
    if (error == 0) error = log->directory->error;
    if (error == 0 && (log->state == LOG_BROKEN || future->state == LOG_BROKEN)) error = -EIO;
    if (error == 0) return false;
    move_fail(move, say_errno(error));
    return true;
}

static void move_step(struct log_move *move)
{
    if (move->busy || move_broken(move)) return;
    switch (move->state) {
    case MOVE_OPENING: move_open(move); break;
    case MOVE_COPYING:
    case MOVE_FROZEN: move_copy(move); break;
    case MOVE_TELLING: break;
    case MOVE_GOING:
        if (move_rests(move->log)) move_swap(move);
        break;
    }
}

int64_t logs_moves_turn(struct logs *logs, int64_t now_ms)
{
    if (list_empty(&logs->moves)) return INT64_MAX;
    struct log_move *move = container_of(logs->moves.next, struct log_move, link);
    if (logs->stopping) { /* The next start goes on. */
        if (move->busy || !move->log->frozen || move->state == MOVE_GOING) return INT64_MAX;
        log_thaw(move->log);
        move->state = MOVE_COPYING;
        return INT64_MAX;
    }
    if (move->pause_until_ms > now_ms) return move->pause_until_ms;
    move_step(move);
    if (list_empty(&logs->moves)) return INT64_MAX;
    const struct log_move *next = container_of(logs->moves.next, struct log_move, link);
    if (next != move) return now_ms;
    /* Its own read, an opening or a commit calls back; a slice to append is there at once. */
    if (next->buf != NULL && !next->busy) return MAX(now_ms, next->pause_until_ms);
    return next->pause_until_ms > now_ms ? next->pause_until_ms : now_ms + MOVE_AGAIN_MS;
}

void logs_moves_abandon(struct logs *logs)
{
    struct list *node;
    while ((node = list_pop(&logs->moves)) != NULL) {
        struct log_move *move = container_of(node, struct log_move, link);
        move->log->move = NULL;
        log_move_free(move);
    }
}
