/* tasks.c - what is due now and then: checkpoints, epochs, expiry of producers, recovery of logs
 * that nobody has used yet.
 *
 * The recovery point that is written is the durable end, but never above what only memory knows: a
 * segment whose indexes are not in files yet, an epoch that leader-epoch-checkpoint lacks. After a
 * crash the log is read from there, and they are found again. */
#include <errno.h>

#include "log/checkpoint.h"
#include "log/state.h"
#include "record/sink.h"

#define EXPIRY_INTERVAL_MS 600000

/* Logs that one turn of the checkpoint task asks to write their epochs or indexes. */
#define FLUSHES_PER_TURN 256u

int64_t log_recovery_point(const struct log *log)
{
    if (log->state != LOG_READY && log->state != LOG_CHANGING) return log->checkpoint_recovery;
    int64_t point = log->durable;
    for (uint32_t i = 0; i + 1 < log->segment_count; i++) {
        if (log->segments[i]->sealed) continue;
        point = MIN(point, log->segments[i]->base);
        break;
    }
    point = MIN(point, log->recovery_cap);
    bool behind = log->epochs.dirty || log->epochs_flushing;
    return behind ? MIN(point, log->epochs_flushed_end) : point;
}

/* ---- the text of a checkpoint -----------------------------------------------------------------
 */

static const char *const checkpoint_names[] = {CHECKPOINT_RECOVERY, CHECKPOINT_START,
                                               CHECKPOINT_WATERMARK, CHECKPOINT_CLEANER};

static bool is_open(const struct log *log)
{
    return log->state == LOG_READY || log->state == LOG_CHANGING;
}

/* The log's number in this checkpoint; -1: it has none there. */
static int64_t checkpoint_value(const struct log *log, enum checkpoint_kind kind)
{
    if (!log->has_folder || log->unlisted) return -1;
    switch (kind) {
    case CHECKPOINT_OF_RECOVERY: return log_recovery_point(log);
    case CHECKPOINT_OF_WATERMARKS: return is_open(log) ? log->watermark : log->checkpoint_watermark;
    case CHECKPOINT_OF_CLEANER: return log->checkpoint_cleaner;
    case CHECKPOINT_OF_STARTS: break;
    }
    if (!is_open(log)) return log->checkpoint_start;
    return log->start > log->segments[0]->base || log->retain_failed ? log->start : -1;
}

static void checkpoint_pass(struct log_directory *directory,
                            enum checkpoint_kind kind,
                            uint32_t *count,
                            struct sink *out)
{
    map_foreach (node, &directory->logs->map) {
        const struct log *log = container_of(node, struct log, node);
        if (log->directory != directory) continue;
        int64_t value = checkpoint_value(log, kind);
        if (value < 0) continue;
        struct checkpoint_entry entry = {log->topic, log->partition, value};
        ++*count;
        if (out != NULL) checkpoint_add(out, &entry);
    }
}

void tasks_checkpoint_lines(struct log_directory *directory,
                            enum checkpoint_kind kind,
                            uint32_t *count,
                            struct sink *out)
{
    *count = 0;
    checkpoint_pass(directory, kind, count, out);
}

void tasks_checkpoint_text(struct log_directory *directory,
                           enum checkpoint_kind kind,
                           struct sink *out)
{
    uint32_t count = parts_count(directory, kind), ignored = 0;
    checkpoint_pass(directory, kind, &count, NULL);
    checkpoint_begin(out, count);
    checkpoint_pass(directory, kind, &ignored, out);
    parts_add(directory, kind, out);
}

int tasks_checkpoint_write(struct log_directory *directory, enum checkpoint_kind kind)
{
    struct logs *logs = directory->logs;
    struct sink out;
    sink_init(&out, logs->mem, CHECKPOINT_BYTES_MAX);
    tasks_checkpoint_text(directory, kind, &out);
    int error = out.fault == SINK_OK ? 0 : -ENOMEM;
    if (error == 0)
        error = disk_replace(logs->io, directory->path, checkpoint_names[kind], sink_view(&out));
    sink_free(&out);
    return error;
}

/* ---- writing it in the background -------------------------------------------------------------
 */

struct checkpoint_job {
    struct io_op op;
    struct log_directory *directory;
    enum checkpoint_kind kind;
    struct sink text;
};

static int64_t checkpoint_run(struct io *io, void *argument)
{
    struct checkpoint_job *job = argument;
    return disk_replace(io, job->directory->path, checkpoint_names[job->kind],
                        sink_view(&job->text));
}

static void checkpoint_done(struct io_op *op)
{
    struct checkpoint_job *job = container_of(op, struct checkpoint_job, op);
    struct log_directory *directory = job->directory;
    struct logs *logs = directory->logs;
    logs->in_flight--;
    directory->checkpoint_busy[job->kind] = false;
    if (disk_is_full(op->result))
        log_directory_full(directory); /* The old file stands; the next time. */
    else if (op->result < 0)
        log_directory_fail(directory, op->result);
    sink_free(&job->text);
    mem_put(logs->mem, job, sizeof(*job));
}

/* False: it must be tried again. */
static bool checkpoint_start(struct log_directory *directory, enum checkpoint_kind kind)
{
    struct logs *logs = directory->logs;
    if (directory->error != 0) return true;
    if (!parts_first(logs)) return parts_tell(directory, kind);
    if (directory->checkpoint_busy[kind]) return false;
    struct checkpoint_job *job = mem_get(logs->mem, sizeof(*job));
    if (job == NULL) return false;
    sink_init(&job->text, logs->mem, CHECKPOINT_BYTES_MAX);
    tasks_checkpoint_text(directory, kind, &job->text);
    if (job->text.fault != SINK_OK) {
        sink_free(&job->text);
        mem_put(logs->mem, job, sizeof(*job));
        return true; /* The next time. */
    }
    job->directory = directory;
    job->kind = kind;
    if (kind == CHECKPOINT_OF_RECOVERY) directory->unmarked_bytes = 0;
    job->op.done = checkpoint_done;
    directory->checkpoint_busy[kind] = true;
    logs->in_flight++;
    io_job(logs->io, &job->op, checkpoint_run, job);
    return true;
}

/* Returns whether one must be tried again. */
static bool checkpoint_all(struct logs *logs, enum checkpoint_kind kind)
{
    bool again = false;
    for (uint32_t i = 0; i < logs->directory_count; i++)
        again = !checkpoint_start(&logs->directories[i], kind) || again;
    return again;
}

void log_checkpoint_soon(struct log_directory *directory, enum checkpoint_kind kind)
{
    (void)checkpoint_start(directory, kind); /* One that is busy is written when it is due. */
}

/* ---- epochs -----------------------------------------------------------------------------------
 */

struct epochs_flush {
    struct log_work work;
    struct sink text;
    struct disk_path folder;
    int64_t end; /* The log's, when the text was made. */
};

static void epochs_begin(struct log_work *work)
{
    struct epochs_flush *flush = container_of(work, struct epochs_flush, work);
    struct log *log = work->log;
    flush->end = log->end;
    if (log->state != LOG_READY) return;
    epochs_write(&log->epochs, log->end, &flush->text);
    if (flush->text.fault == SINK_OK) log->epochs.dirty = false;
}

static int64_t epochs_run(struct io *io, void *argument)
{
    struct epochs_flush *flush = argument;
    if (flush->text.fault != SINK_OK || flush->text.size_bytes == 0) return -ECANCELED;
    return disk_replace(io, flush->folder.text, CHECKPOINT_EPOCHS, sink_view(&flush->text));
}

static void epochs_finish(struct log_work *work, int64_t result)
{
    struct epochs_flush *flush = container_of(work, struct epochs_flush, work);
    struct log *log = work->log;
    if (result == 0) {
        log->epochs_flushed_end = MAX(log->epochs_flushed_end, flush->end);
    } else {
        log->epochs.dirty = true;
        if (disk_is_full(result))
            log_directory_full(log->directory);
        else if (result != -ECANCELED)
            log_directory_fail(log->directory, result);
    }
    log->epochs_flushing = false;
    sink_free(&flush->text);
    mem_put(log->logs->mem, flush, sizeof(*flush));
}

void log_epochs_flush(struct log *log)
{
    if (log->epochs_flushing || !log->has_folder || log->directory->error != 0) return;
    struct epochs_flush *flush = mem_get(log->logs->mem, sizeof(*flush));
    if (flush == NULL) return; /* The next time. */
    sink_init(&flush->text, log->logs->mem, UINT32_MAX);
    flush->folder = log_folder(log);
    flush->work.begin = epochs_begin;
    flush->work.run = epochs_run;
    flush->work.finish = epochs_finish;
    log->epochs_flushing = true;
    log_work_add(log, &flush->work);
}

/* Have written what keeps the recovery point back. Returns the number of works started. */
static uint32_t flush_log(struct log *log)
{
    if (log->state != LOG_READY || !log->has_folder || log->directory->error != 0) return 0;
    uint32_t started = 0;
    int32_t latest = epochs_latest(&log->epochs);
    bool used = latest >= 0 && log->epochs.entries[log->epochs.count - 1].start < log->end;
    if (log->epochs.dirty && used && !log->epochs_flushing) {
        log_epochs_flush(log);
        started++;
    }
    for (uint32_t i = 0; i + 1 < log->segment_count; i++) {
        const struct segment *segment = log->segments[i];
        if (segment->sealed || segment->sealing) continue;
        if (log_seal_again(log, i) == LOG_OK) started++;
    }
    return started;
}

static void flush_some(struct logs *logs, bool timed)
{
    uint32_t started = 0;
    map_foreach (node, &logs->map) {
        struct log *log = container_of(node, struct log, node);
        if (started >= FLUSHES_PER_TURN) break;
        if (timed) started += flush_log(log);
        bool may = log->state == LOG_READY && log->has_folder && log->directory->error == 0;
        if (may && log_resume_write(log, timed)) started++;
    }
}

/* ---- the rest ---------------------------------------------------------------------------------
 */

static bool expire_log(void *context, struct log *log)
{
    const int64_t *wall_ms = context;
    if (log->state == LOG_READY)
        producers_expire(&log->producers, *wall_ms, log->config.producer_id_expiration_ms);
    return true;
}

/* ---- retention ------------------------------------------------------------------------------- */

/* A log that only a task had opened, and that nobody has used since, is closed again. */
static void park(struct log *log)
{
    bool used = logs_counts_space(log->logs) || log->move != NULL || !log->background ||
                log->state != LOG_READY || log->touched || log->looking || log->holds > 0 ||
                log->change_task != NULL || !list_empty(&log->watches) ||
                !list_empty(&log->works) || !list_empty(&log->queries) ||
                !list_empty(&log->writes) || !log->has_folder;
    if (used) return;
    log->checkpoint_recovery = log->durable;
    log->checkpoint_start = checkpoint_value(log, CHECKPOINT_OF_STARTS);
    log->checkpoint_watermark = log->watermark;
    log_unload(log);
    log->state = LOG_CLOSED;
}

static bool retain_one(void *context, struct log *log)
{
    struct logs *logs = context;
    bool idle = (log->state == LOG_CLOSED && !log->has_folder) || log->future;
    if (!idle && list_empty(&log->retaining)) list_append(&logs->retaining, &log->retaining);
    return true;
}

/* The logs whose retention is due, one after the other. */
static void retain_turn(struct logs *logs)
{
    while (!list_empty(&logs->retaining)) {
        struct log *log = container_of(logs->retaining.next, struct log, retaining);
        bool background = log->state == LOG_CLOSED || log->background;
        int result = log_retain(log);
        log->background = background;
        if (result == LOG_LATER) return; /* READY comes, and with it a turn. */
        list_remove(&log->retaining);
        park(log);
    }
}

void log_recover_later(struct log *log)
{
    assert(!log->recover);
    log->recover = true;
    log->directory->unrecovered++;
    list_append(&log->logs->recovering, &log->recovering);
}

void log_recover_over(struct log *log)
{
    assert(log->recover);
    assert(log->directory->unrecovered > 0);
    log->recover = false;
    log->directory->unrecovered--;
    list_remove(&log->recovering);
}

/* One log at a time that was not recovered yet: one that is asked for waits for one other at most.
 */
static void recover_one(struct logs *logs)
{
    if (logs->stopping || logs->loading > 0) return;
    list_foreach (node, &logs->recovering) {
        struct log *log = container_of(node, struct log, recovering);
        if (log->state != LOG_CLOSED || log->directory->error != 0) continue;
        if (log_open(log) != LOG_LATER) continue;
        list_remove(node); /* Behind the others, should it fail. */
        list_append(&logs->recovering, node);
        return;
    }
}

static bool any_unrecovered(const struct logs *logs)
{
    for (uint32_t i = 0; i < logs->directory_count; i++)
        if (logs->directories[i].error == 0 && logs->directories[i].unrecovered > 0) return true;
    return false;
}

void logs_tasks_start(struct logs *logs, int64_t now_ms)
{
    const struct logs_options *options = &logs->options;
    logs->next_checkpoint_ms = now_ms + options->checkpoint_interval_ms;
    logs->next_watermark_ms = now_ms + options->high_watermark_interval_ms;
    logs->next_retention_ms = now_ms + options->retention_interval_ms;
    if (logs_counts_space(logs)) logs->next_retention_ms = now_ms; /* All are opened for it. */
    logs->next_clean_ms = now_ms + options->cleaner_backoff_ms;
    logs->next_expiry_ms = now_ms + EXPIRY_INTERVAL_MS;
}

void logs_clean_every(struct logs *logs, int64_t backoff_ms)
{
    backoff_ms = MAX(backoff_ms, 1);
    if (logs->options.cleaner_backoff_ms == backoff_ms) return;
    int64_t soon_ms = logs->next_clean_ms - logs->options.cleaner_backoff_ms + backoff_ms;
    logs->next_clean_ms = MIN(logs->next_clean_ms, soon_ms);
    logs->options.cleaner_backoff_ms = backoff_ms;
}

static void tasks_checkpoints(struct logs *logs, int64_t now_ms)
{
    bool due = now_ms >= logs->next_checkpoint_ms;
    if (due) {
        logs->next_checkpoint_ms = now_ms + logs->options.checkpoint_interval_ms;
        flush_some(logs, true);
    } else if (logs->resumes_wanted) {
        flush_some(logs, false);
    }
    logs->resumes_wanted = false;
    if (due || logs->recovery_moved)
        logs->recovery_moved = checkpoint_all(logs, CHECKPOINT_OF_RECOVERY);
    if (due || logs->starts_moved) logs->starts_moved = checkpoint_all(logs, CHECKPOINT_OF_STARTS);
    if (logs->cleaner_moved) logs->cleaner_moved = checkpoint_all(logs, CHECKPOINT_OF_CLEANER);
    if (now_ms < logs->next_watermark_ms) return;
    logs->next_watermark_ms = now_ms + logs->options.high_watermark_interval_ms;
    if (logs->watermarks_moved)
        logs->watermarks_moved = checkpoint_all(logs, CHECKPOINT_OF_WATERMARKS);
}

int64_t logs_tasks_turn(struct logs *logs, int64_t now_ms)
{
    int64_t clean_ms = logs_clean_turn(logs, now_ms);
    if (logs->stopping) return INT64_MAX;
    tasks_checkpoints(logs, now_ms);
    if (now_ms >= logs->next_retention_ms) {
        logs->next_retention_ms = now_ms + logs->options.retention_interval_ms;
        logs_each(logs, retain_one, logs);
    }
    retain_turn(logs);
    int64_t space_ms = logs_space_turn(logs, now_ms);
    if (now_ms >= logs->next_expiry_ms) {
        int64_t wall_ms = io_wall_ms(logs->io);
        logs->next_expiry_ms = now_ms + EXPIRY_INTERVAL_MS;
        logs_each(logs, expire_log, &wall_ms);
    }
    int64_t next_ms = MIN(logs->next_checkpoint_ms, logs->next_expiry_ms);
    next_ms = MIN(next_ms, logs->next_retention_ms);
    if (logs->watermarks_moved) next_ms = MIN(next_ms, logs->next_watermark_ms);
    next_ms = MIN(next_ms, MIN(clean_ms, space_ms));
    if (any_unrecovered(logs)) {
        recover_one(logs);
        next_ms = MIN(next_ms, now_ms + 100);
    }
    return next_ms;
}
