/* clean.c - compaction in the shard: which log, what of it, and taking the result.
 *
 * One log at a time, the dirtiest first. Its segments up to the first uncleanable one are given to
 * jobs (clean_job.c) as immutable facts; retention, truncation and sealing leave them alone
 * meanwhile. When a group has been put in place, its sources are replaced in memory. Readers that
 * hold a source's file go on with it. */
#include "log/clean_job.h"

#include <errno.h>
#include <stdlib.h>

/* ---- which log --------------------------------------------------------------------------------
 */

struct clean_range {
    int64_t dirty_from;
    int64_t dirty_end;
    uint64_t clean_bytes;
    uint64_t dirty_bytes;
    bool overdue; /* max.compaction.lag.ms. */
};

/* May this segment be cleaned: sealed, below the stable offset, old enough? */
static bool clean_may(const struct log *log, uint32_t i, int64_t wall_ms)
{
    const struct segment *segment = log->segments[i];
    if (i + 1 >= log->segment_count || !segment->sealed || segment->sealing) return false;
    if (log->segments[i + 1]->base > log_last_stable(log)) return false;
    int64_t lag_ms = log->config.min_compaction_lag_ms;
    if (lag_ms <= 0) return true;
    int64_t largest = segment->most.max_timestamp_ms >= 0 ? segment->most.max_timestamp_ms
                                                          : segment->modified_wall_ms;
    return wall_ms - largest >= lag_ms;
}

static bool clean_overdue(const struct log *log, uint32_t i, int64_t wall_ms)
{
    const struct segment *segment = log->segments[i];
    int64_t lag_ms = log->config.max_compaction_lag_ms;
    if (lag_ms == INT64_MAX || !segment->first_known) return false;
    return segment->first_timestamp_ms > 0 && wall_ms - segment->first_timestamp_ms > lag_ms;
}

static struct clean_range clean_look(const struct log *log, int64_t wall_ms)
{
    struct clean_range range = {.dirty_from = log->checkpoint_cleaner};
    if (range.dirty_from < log->start || range.dirty_from > log->end) range.dirty_from = log->start;
    range.dirty_end = range.dirty_from;
    for (uint32_t i = 0; i < log->segment_count; i++) {
        const struct segment *segment = log->segments[i];
        bool dirty = i + 1 == log->segment_count || log->segments[i + 1]->base > range.dirty_from;
        if (!dirty) {
            if (!segment->sealed || segment->sealing) break;
            range.clean_bytes += segment->size_bytes;
            continue;
        }
        if (!clean_may(log, i, wall_ms)) break;
        range.dirty_bytes += segment->size_bytes;
        range.dirty_end = log->segments[i + 1]->base;
        range.overdue |= clean_overdue(log, i, wall_ms);
    }
    return range;
}

static bool clean_worth(const struct log *log, const struct clean_range *range)
{
    uint64_t all = range->clean_bytes + range->dirty_bytes;
    if (range->dirty_bytes == 0 || range->dirty_end <= range->dirty_from) return false;
    return range->overdue ||
           range->dirty_bytes * 1000 > all * log->config.min_cleanable_dirty_permil;
}

static bool clean_eligible(const struct log *log)
{
    return log->config.cleanup_compact && log->state == LOG_READY && !log->unclean &&
           log->cleaning == NULL && log->directory->error == 0 && !log->directory->full &&
           log->has_folder && log->change_task == NULL && !log->times_loading && !log->future &&
           !log->frozen;
}

/* The dirtiest of the logs that are worth it; one whose timestamps are not known yet has them
 * loaded, and is looked at the next time. */
static struct log *clean_choose(struct logs *logs, struct clean_range *range)
{
    int64_t wall_ms = io_wall_ms(logs->io);
    struct log *best = NULL;
    uint64_t best_permil = 0;
    map_foreach (node, &logs->map) {
        struct log *log = container_of(node, struct log, node);
        if (!clean_eligible(log)) continue;
        if (log->config.min_compaction_lag_ms > 0 || log->config.max_compaction_lag_ms < INT64_MAX)
            if (log_times_load(log) != LOG_OK) continue;
        struct clean_range at = clean_look(log, wall_ms);
        if (!clean_worth(log, &at)) continue;
        uint64_t permil = at.dirty_bytes * 1000 / (at.clean_bytes + at.dirty_bytes);
        if (best != NULL && permil <= best_permil) continue;
        best = log;
        best_permil = permil;
        *range = at;
    }
    return best;
}

/* ---- what the job is told ----------------------------------------------------------------------
 */

static int clean_gather_sources(struct clean *clean)
{
    struct log *log = clean->log;
    uint32_t count = 0;
    while (count < log->segment_count && log->segments[count]->base < clean->dirty_end)
        count++;
    clean->sources = mem_get(&clean->memory.mem, count * sizeof(clean->sources[0]));
    if (clean->sources == NULL) return -ENOMEM;
    clean->source_count = count;
    for (uint32_t i = 0; i < count; i++) {
        const struct segment *segment = log->segments[i];
        clean->sources[i] = (struct clean_source){
            .base = segment->base,
            .bytes = segment->written_bytes,
            .index_bytes = (uint64_t)segment->written_bytes /
                           MAX(clean->config.index_interval_bytes, 64u) * INDEX_TIME_BYTES,
            .modified_wall_ms = segment->modified_wall_ms,
        };
        if (segment->base < clean->dirty_from) clean->clean_modified_ms = segment->modified_wall_ms;
    }
    return 0;
}

static int clean_compare_aborted(const void *a, const void *b)
{
    int64_t x = ((const struct clean_aborted *)a)->offset_first;
    int64_t y = ((const struct clean_aborted *)b)->offset_first;
    return (x > y) - (x < y);
}

static int clean_gather_aborted(struct clean *clean)
{
    const struct log *log = clean->log;
    uint32_t count = 0;
    for (uint32_t i = 0; i < clean->source_count; i++)
        count += log->segments[i]->txns.count;
    if (count == 0) return 0;
    clean->aborted = mem_get(&clean->memory.mem, count * sizeof(clean->aborted[0]));
    if (clean->aborted == NULL) return -ENOMEM;
    clean->aborted_count = count;
    uint32_t at = 0;
    for (uint32_t i = 0; i < clean->source_count; i++) {
        const struct index *txns = &log->segments[i]->txns;
        for (uint32_t k = 0; k < txns->count; k++) {
            struct index_txn txn = index_get_txn(txns, k);
            clean->aborted[at++] = (struct clean_aborted){txn.producer_id, txn.offset_first,
                                                          txn.offset_last, txn.last_stable};
        }
    }
    qsort(clean->aborted, count, sizeof(clean->aborted[0]), clean_compare_aborted);
    return 0;
}

static int clean_compare_active(const void *a, const void *b)
{
    int64_t x = ((const struct clean_active *)a)->producer_id;
    int64_t y = ((const struct clean_active *)b)->producer_id;
    return (x > y) - (x < y);
}

static int clean_gather_active(struct clean *clean)
{
    const struct producers *producers = &clean->log->producers;
    if (producers->map.count == 0) return 0;
    clean->active_room = producers->map.count;
    clean->active = mem_get(&clean->memory.mem, clean->active_room * sizeof(clean->active[0]));
    if (clean->active == NULL) return -ENOMEM;
    map_foreach (node, &producers->map) {
        const struct producer *producer = container_of(node, struct producer, node);
        if (producer->epoch < 0) continue;
        clean->active[clean->active_count++] = (struct clean_active){
            .producer_id = producer->id,
            .last_offset = producer->batch_count == 0
                               ? -1
                               : producer->batches[producer->batch_count - 1].offset_last,
            .epoch = producer->epoch,
        };
    }
    qsort(clean->active, clean->active_count, sizeof(clean->active[0]), clean_compare_active);
    return 0;
}

static struct clean *clean_new(struct log *log, const struct clean_range *range)
{
    struct logs *logs = log->logs;
    struct clean *clean = mem_get(logs->mem, sizeof(*clean));
    if (clean == NULL) return NULL;
    clean->log = log;
    memory_share(&clean->memory, logs->mem, 0);
    compress_work_init(&clean->compress, &clean->memory.mem);
    clean->config = log->config;
    clean->wall_ms = io_wall_ms(logs->io);
    clean->watermark = log->watermark;
    clean->dirty_from = range->dirty_from;
    clean->dirty_end = range->dirty_end;
    clean->map_bytes = logs->options.cleaner_map_bytes;
    clean->map.seeds[0] = io_random(logs->io, IO_RANDOM_HASH);
    clean->map.seeds[1] = io_random(logs->io, IO_RANDOM_HASH);
    int error = clean_gather_sources(clean);
    if (error == 0) error = clean_gather_aborted(clean);
    if (error == 0) error = clean_gather_active(clean);
    if (error == 0) return clean;
    clean_free(clean);
    return NULL;
}

void clean_free(struct clean *clean)
{
    struct logs *logs = clean->log->logs;
    struct mem *mem = &clean->memory.mem;
    clean_output_free(clean, logs->io);
    if (clean->file != NULL) io_disk_close(logs->io, clean->file);
    if (clean->scan.window != NULL) scan_end(&clean->scan);
    if (clean->txns.mem != NULL) clean_txns_end(&clean->txns);
    clean_map_end(&clean->map, mem);
    compress_work_free(&clean->compress);
    mem_put(mem, clean->sources, clean->source_count * sizeof(clean->sources[0]));
    mem_put(mem, clean->aborted, clean->aborted_count * sizeof(clean->aborted[0]));
    mem_put(mem, clean->active, clean->active_room * sizeof(clean->active[0]));
    mem_put(logs->mem, clean, sizeof(*clean));
}

/* ---- taking the result -------------------------------------------------------------------------
 */

static uint32_t clean_index_of(const struct log *log, int64_t base)
{
    uint32_t at = log_segment_floor(log, base);
    assert(at != UINT32_MAX);
    assert(log->segments[at]->base == base);
    return at;
}

/* The group's segments are held open by their names of before: nothing may open the new files for
 * them. LOG_OK, or why a file could not be opened. */
static int clean_hold_sources(struct clean *clean)
{
    struct log *log = clean->log;
    for (uint32_t i = clean->group_from; i < clean->group_to; i++) {
        struct segment *segment = log->segments[clean_index_of(log, clean->sources[i].base)];
        if (segment->swapping) continue;
        int result = segment_file(segment, false);
        if (result != LOG_OK) return result;
        log_file_hold(segment->file);
        segment->swapping = true;
    }
    return LOG_OK;
}

/* Put the output in the place of the group's segments. */
static void clean_take_group(struct clean *clean)
{
    struct log *log = clean->log;
    struct logs *logs = log->logs;
    struct clean_output *out = &clean->out;
    uint32_t from = clean_index_of(log, clean->sources[clean->group_from].base);
    uint32_t count = clean->group_to - clean->group_from;
    struct segment *kept = log->segments[from];
    int64_t end = log->segments[from + count - 1]->written_end;
    int64_t at_ms = io_now_ms(logs->io) + log->config.file_delete_delay_ms;
    log_hints_drop(log, NULL);
    for (uint32_t i = from; i < from + count; i++) {
        struct segment *segment = log->segments[i];
        log->size_bytes -= segment->size_bytes;
        if (!log_doom_segment(log, segment->base, at_ms)) logs->retry = true; /* The next start. */
        struct log_file *file = segment->file;
        segment->swapping = false;
        if (i > from)
            segment_free(logs->mem, segment);
        else
            log_file_drop(segment);
        log_file_release(file);
    }
    memmove(log->segments + from + 1, log->segments + from + count,
            (log->segment_count - from - count) * sizeof(log->segments[0]));
    log->segment_count -= count - 1;

    look_forget(kept);
    index_unload(logs->mem, &kept->offsets);
    index_unload(logs->mem, &kept->times);
    index_unload(logs->mem, &kept->txns);
    kept->offsets = (struct index){.width = INDEX_OFFSET_BYTES};
    kept->times = (struct index){.width = INDEX_TIME_BYTES};
    kept->txns = out->txns;
    kept->txns.stored = kept->txns.count;
    kept->txns_unproved = 0;
    uint64_t moved = (uint64_t)kept->txns.capacity * kept->txns.width; /* Whose memory it is now. */
    clean->memory.mem.used_bytes -= moved;
    out->txns = (struct index){0};
    kept->size_bytes = kept->written_bytes = kept->commit_bytes = kept->durable_bytes =
        (uint32_t)out->bytes;
    kept->written_end = kept->commit_end = kept->durable_end = end;
    kept->most = out->most;
    kept->first_timestamp_ms = out->first_timestamp_ms;
    kept->times_known = kept->first_known = true;
    kept->sealed = true;
    kept->index_bad = false;
    log->size_bytes += out->bytes;
}

static void clean_submit(struct clean *clean, int64_t (*run)(struct io *io, void *argument));

static void clean_end(struct clean *clean, int64_t result)
{
    struct log *log = clean->log;
    struct logs *logs = log->logs;
    for (uint32_t i = 0; i < log->segment_count; i++) {
        struct segment *segment = log->segments[i];
        if (!segment->swapping) continue;
        segment->swapping = false; /* Given up before the swap. */
        log_file_release(segment->file);
    }
    if (result == -EBADMSG || result == -EFBIG) {
        log->unclean = true; /* As Kafka: until the next start. */
        logs_say(logs, "partition %.*s-%d is not compacted any more: its batches do not hold",
                 (int)log->topic.size, (const char *)log->topic.data, log->partition);
    } else if (disk_is_full(result)) {
        log_directory_full(log->directory);
    } else if (result == 0 && clean->phase == CLEAN_DONE) {
        log->checkpoint_cleaner = clean->map.offset_end;
        logs->cleaner_moved = true;
        logs->cleaned++;
        log_debug(log, "compacted up to offset %lld", (long long)clean->map.offset_end);
    } else if (result < 0 && result != -ENOMEM && result != -ECANCELED) {
        log_directory_fail(log->directory, result);
    }
    log->cleaning = NULL;
    logs->cleaning = NULL;
    log->holds--;
    clean_free(clean);
    log_tell(log, LOG_EVENT_READY);
}

static void clean_undone(struct io_op *op)
{
    struct clean *clean = container_of(op, struct clean, op);
    clean->log->logs->in_flight--;
    clean_end(clean, op->result < 0 ? op->result : clean->failure);
}

static void clean_give_up(struct clean *clean, int64_t why)
{
    struct logs *logs = clean->log->logs;
    clean->failure = why;
    clean_output_free(clean, logs->io);
    clean->op.done = clean_undone;
    logs->in_flight++;
    io_job(logs->io, &clean->op, clean_undo_run, clean);
}

/* What comes after a slice that went well. */
static void clean_go_on(struct clean *clean)
{
    struct log *log = clean->log;
    if (clean->phase == CLEAN_SWAP && clean->replaced) {
        clean_take_group(clean);
        clean_output_free(clean, log->logs->io);
        clean->begun = clean->counts = clean->replaced = false;
        clean->renamed = 0;
        clean->group_from = clean->group_to;
        clean->phase = CLEAN_COPY;
    }
    if (clean->phase == CLEAN_COPY && !clean->begun && clean->group_from >= clean->mapped_to) {
        clean->phase = CLEAN_DONE;
        clean_end(clean, 0);
        return;
    }
    bool stop = clean->abort || log->state != LOG_READY || log->change_task != NULL ||
                log->logs->stopping || log->directory->error != 0;
    if (stop && !(clean->phase == CLEAN_SWAP && clean->counts)) {
        if (clean->group_from < clean->source_count && clean->phase != CLEAN_MAP)
            clean_give_up(clean, -ECANCELED);
        else
            clean_end(clean, -ECANCELED);
        return;
    }
    if (clean->phase == CLEAN_SWAP) {
        int result = clean_hold_sources(clean);
        if (result != LOG_OK) {
            clean_give_up(clean, result == LOG_E_MEMORY ? -ENOMEM : result);
            return;
        }
    }
    clean_submit(clean, clean_run);
}

static void clean_ran(struct io_op *op)
{
    struct clean *clean = container_of(op, struct clean, op);
    clean->log->logs->in_flight--;
    if (op->result >= 0) {
        clean_go_on(clean);
        return;
    }
    bool counts = clean->phase == CLEAN_SWAP && clean->begun;
    struct log_directory *directory = clean->log->directory;
    if (counts && disk_is_full(op->result) && directory->error == 0) {
        log_directory_full(directory); /* It counts already, or may: try until it is done. */
        clean->again_round = directory->ballast_round;
        clean->log->logs->clean_again = clean;
        return;
    }
    if (clean->phase == CLEAN_MAP || counts)
        clean_end(clean, op->result);
    else
        clean_give_up(clean, op->result);
}

static void clean_submit(struct clean *clean, int64_t (*run)(struct io *io, void *argument))
{
    struct logs *logs = clean->log->logs;
    clean->op.done = clean_ran;
    logs->in_flight++;
    io_job(logs->io, &clean->op, run, clean);
}

/* ---- now and then ------------------------------------------------------------------------------
 */

void logs_clean_abandon(struct logs *logs)
{
    struct clean *clean = logs->cleaning;
    if (clean == NULL) return;
    struct log *log = clean->log;
    for (uint32_t i = 0; i < log->segment_count; i++)
        if (log->segments[i]->swapping) log_file_release(log->segments[i]->file);
    log->holds--;
    clean_free(clean);
    logs->cleaning = NULL;
}

/* After a full disk: when the ballast has moved. */
static bool clean_may_again(const struct clean *clean)
{
    const struct log_directory *directory = clean->log->directory;
    return directory->error != 0 || clean->again_round != directory->ballast_round;
}

int64_t logs_clean_turn(struct logs *logs, int64_t now_ms)
{
    if (logs->clean_again != NULL && clean_may_again(logs->clean_again)) {
        struct clean *clean = logs->clean_again;
        logs->clean_again = NULL;
        clean_submit(clean, clean_run);
    }
    if (logs->options.cleaner_off || logs->cleaning != NULL || logs->stopping) return INT64_MAX;
    if (now_ms < logs->next_clean_ms) return logs->next_clean_ms;
    struct clean_range range;
    struct log *log = clean_choose(logs, &range);
    struct clean *clean = log == NULL ? NULL : clean_new(log, &range);
    if (clean == NULL) {
        logs->next_clean_ms = now_ms + logs->options.cleaner_backoff_ms;
        return logs->next_clean_ms;
    }
    log->cleaning = clean;
    logs->cleaning = clean;
    log->holds++;
    log->touched = true;
    clean_submit(clean, clean_run);
    return INT64_MAX;
}
