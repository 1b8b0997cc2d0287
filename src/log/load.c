/* load.c - opening a log: from a folder's files to a log that may be read and appended to.
 *
 * In the order of Kafka's loader: settle what was interrupted, list, open each segment; after an
 * unclean stop read the segments from the recovery point on, batch by batch; then epochs, start,
 * producers. Everything that was read back and not known to be durable is synced before the log
 * counts it as durable. */
#include "log/load.h"

#include <errno.h>

#include "log/checkpoint.h"
#include "sys/say.h"

/* ---- in the job ------------------------------------------------------------------------------ */

static int load_epochs(struct load *load)
{
    struct log *log = load->log;
    struct disk_bytes bytes;
    struct disk_path path = log_path(log, CHECKPOINT_EPOCHS);
    int error = disk_read_whole(load->io, load->mem, path.text, CHECKPOINT_BYTES_MAX, &bytes);
    if (error < 0 && error != -ENOENT && error != -EFBIG) return error;
    int result = LOG_E_DAMAGED; /* A file that ends before its second line is torn. */
    if (error == 0 && bytes.size_bytes >= strlen("0\n0\n"))
        result = epochs_read(load->mem, &log->epochs, view_of(bytes.data, bytes.size_bytes));
    if (error == 0) disk_free(load->mem, &bytes);
    load->epochs_rebuild = result == LOG_E_DAMAGED;
    return result == LOG_E_MEMORY ? -ENOMEM : 0;
}

/* A segment that could not be opened as it is (its index is missing, say) is recovered, and for the
 * producers' sake all behind it. */
static int load_open_all(struct load *load)
{
    struct log *log = load->log;
    for (uint32_t i = 0; i < load->base_count; i++) {
        const struct load_base *at = &load->bases[i];
        if ((at->kinds & LOAD_LOG) == 0) continue;
        struct segment *segment = segment_new(load->mem, log, at->base);
        if (segment == NULL) return -ENOMEM;
        if (!segment_push(load->mem, log, segment)) {
            segment_free(load->mem, segment);
            return -ENOMEM;
        }
        int result = load_segment_open(load, segment, at);
        if (result < 0) return result;
        if (result == LOG_NOT_FOUND) {
            if (load->recover_from == INT64_MAX) log->recovery.index_errors++;
            load->recover_from = MIN(load->recover_from, at->base);
        }
    }
    return 0;
}

/* Drop the bases without a .log: indexes whose segment is gone. Snapshots stay. */
static int load_drop_orphans(struct load *load)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < load->base_count; i++) {
        struct load_base *at = &load->bases[i];
        static const struct {
            int kind;
            const char *suffix;
        } files[] = {
            {LOAD_OFFSETS, ".index"    },
            {LOAD_TIMES,   ".timeindex"},
            {LOAD_TXNS,    ".txnindex" }
        };
        for (size_t k = 0; k < ARRAY_SIZE(files) && (at->kinds & LOAD_LOG) == 0; k++) {
            if ((at->kinds & files[k].kind) == 0) continue;
            struct segment_name name = segment_file_name(at->base, files[k].suffix);
            int error = disk_unlink_if_there(load->io, log_path(load->log, name.text).text);
            if (error < 0) return error;
            at->kinds &= ~files[k].kind;
        }
        if (at->kinds != 0) load->bases[kept++] = *at;
    }
    load->base_count = kept;
    return 0;
}

/* Forget and delete the segments from index `from` on. */
static int load_drop_segments(struct load *load, uint32_t from)
{
    struct log *log = load->log;
    while (log->segment_count > from) {
        struct segment *segment = log->segments[--log->segment_count];
        log->recovery.cut_bytes += segment->size_bytes;
        int error = load_delete_segment(load, segment->base);
        segment_free(load->mem, segment);
        if (error < 0) return error;
    }
    return 0;
}

static int load_store_indexes(struct load *load, struct segment *segment)
{
    struct log *log = load->log;
    struct index *const indexes[] = {&segment->offsets, &segment->times, &segment->txns};
    static const char *const suffixes[] = {".index", ".timeindex", ".txnindex"};
    segment_finish_times(segment);
    for (size_t i = 0; i < ARRAY_SIZE(indexes); i++) {
        struct disk_path path = log_path(log, segment_file_name(segment->base, suffixes[i]).text);
        int error = 0;
        if (indexes[i]->width == INDEX_TXN_BYTES && indexes[i]->count == 0)
            error = disk_unlink_if_there(load->io, path.text);
        else
            error = index_store(load->io, path.text, indexes[i]);
        if (error < 0) return error;
        indexes[i]->stored = indexes[i]->count;
    }
    return 0;
}

/* Read every batch of the segments from `recover_from` on. */
static int load_recover_all(struct load *load)
{
    struct log *log = load->log;
    uint32_t at = log_segment_floor(log, load->recover_from);
    if (at == UINT32_MAX) at = 0;
    if (at >= log->segment_count) return 0;
    int error = load_resume(load, log->segments[at]);
    if (error == 0 && load->resume_bytes == 0)
        error = load_producers_replay(load, log->producers.offset_end, log->segments[at]->base);
    bool cut = false;
    for (; at < log->segment_count && error == 0; at++) {
        struct segment *segment = log->segments[at];
        error = load_segment_recover(load, segment, &cut);
        if (error < 0 || load->damaged) break;
        bool last = at + 1 == log->segment_count;
        if (cut && !last) {
            if (log->segments[at + 1]->base < load->recovery_point) {
                load->damaged = true; /* What follows was durable: not a torn tail. */
                break;
            }
            error = load_drop_segments(load, at + 1);
            last = true;
        }
        if (error == 0) error = load_store_indexes(load, segment);
        if (error == 0 && !last) {
            segment->sealed = true;
            index_unload(load->mem, &segment->offsets);
            index_unload(load->mem, &segment->times);
        }
    }
    return error;
}

/* Those at a segment's base stay, as Kafka has it, and of the others the newest (resume.c). */
static int load_drop_snapshots(struct load *load)
{
    const struct log *log = load->log;
    uint32_t most = load->recover_from == INT64_MAX ? 1 : LOG_RESUME_SNAPSHOTS, others = 0;
    for (uint32_t i = load->base_count; i > 0; i--) {
        const struct load_base *at = &load->bases[i - 1];
        if ((at->kinds & LOAD_SNAPSHOT) == 0) continue;
        uint32_t floor = log_segment_floor(log, at->base);
        bool of_segment = floor != UINT32_MAX && log->segments[floor]->base == at->base;
        bool keep = at->base <= load->end && (of_segment || others < most);
        if (keep && !of_segment) others++;
        if (keep && at->base > log_active(log)->base) log_active(log)->resume_count++;
        if (keep) continue;
        struct segment_name name = segment_file_name(at->base, ".snapshot");
        int error = disk_unlink_if_there(load->io, log_path(log, name.text).text);
        if (error < 0) return error;
    }
    log_active(log)->resume_lone = log_active(log)->resume_count == 1;
    return 0;
}

/* One empty segment that begins at `base`. */
static int load_begin_at(struct load *load, int64_t base)
{
    struct log *log = load->log;
    struct segment *segment = segment_new(load->mem, log, base);
    if (segment == NULL) return -ENOMEM;
    if (!segment_push(load->mem, log, segment)) {
        segment_free(load->mem, segment);
        return -ENOMEM;
    }
    segment->created_wall_ms = segment->modified_wall_ms = load->wall_ms;
    load->end = base;
    return 0;
}

static int load_ends(struct load *load)
{
    struct log *log = load->log;
    int64_t start = MAX(log->checkpoint_start, 0);
    int error = 0;
    if (log->segment_count > 0 && load->end < start) {
        error = load_drop_segments(load, 0);
        epochs_clear(&log->epochs);
        producers_clear(&log->producers, start);
    }
    if (error == 0 && log->segment_count == 0) error = load_begin_at(load, start);
    if (error < 0) return error;
    if (load->end < load->recovery_point)
        log->recovery.durable_lost = load->recovery_point - load->end;
    log->start = MAX(start, log->segments[0]->base);
    log->end = log->written = log->durable = load->end;
    log->size_bytes = 0;
    for (uint32_t i = 0; i < log->segment_count; i++) {
        struct segment *segment = log->segments[i];
        int64_t end = i + 1 < log->segment_count ? log->segments[i + 1]->base : log->end;
        segment->written_bytes = segment->durable_bytes = segment->commit_bytes =
            segment->size_bytes;
        segment->written_end = segment->durable_end = segment->commit_end = end;
        log->size_bytes += segment->size_bytes;
    }
    return 0;
}

static int load_state(struct load *load)
{
    struct log *log = load->log;
    int error = load_epochs(load);
    if (error == 0) error = load_open_all(load);
    if (error == 0 && load->recover_from != INT64_MAX) error = load_recover_all(load);
    if (error < 0 || load->damaged) return error;
    if (load->epochs_rebuild && log->segment_count > 0) error = load_epochs_rebuild(load);
    if (error == 0) error = load_ends(load);
    if (error < 0) return error;
    epochs_cut_end(&log->epochs, log->end);
    epochs_cut_start(&log->epochs, log->start);
    if (load->recover_from == INT64_MAX) {
        error = load_producers_snapshot(load, log->end);
        int64_t from = MAX(log->producers.offset_end, log->start);
        if (error == 0) error = load_producers_replay(load, from, log->end);
    }
    log->producers.offset_end = log->end;
    if (load->recover_from == INT64_MAX)
        log_active(log)->resume_bytes = log_active(log)->size_bytes;
    if (error == 0) error = load_drop_snapshots(load);
    if (error < 0 || load->recover_from == INT64_MAX) return error;
    struct disk_path folder = log_folder(log);
    const struct io_sync names[] = {{.folder = folder.text}, {.folder = log->directory->path}};
    return io_disk_sync_all(load->io, names, ARRAY_SIZE(names));
}

/* The copy of a move that was decided: its folder gets its name now. */
static int load_promote(struct load *load)
{
    const struct log *log = load->log;
    int error = io_disk_rename(load->io, log_aside(log, "future").text, log_folder(log).text);
    return error < 0 ? error : io_disk_sync_dir(load->io, log->directory->path);
}

static int load_folder(struct load *load)
{
    int error = load->log->promoted ? load_promote(load) : 0;
    if (error < 0) return error;
    load->log->promoted = false;
    error = load_metadata(load, &load->stray);
    if (error < 0) return error;
    if (load->stray) {
        load->folder = false;
        load->topic_id = (struct uuid){{0}};
        load->log->checkpoint_start = -1;
        load->recovery_point = 0;
        return load_ends(load);
    }
    error = load_settle_swaps(load);
    if (error == 0) error = load_list(load);
    if (error == 0) error = load_drop_orphans(load);
    if (error == 0) error = load_state(load);
    return error;
}

static int64_t load_run(struct io *io, void *argument)
{
    struct load *load = argument;
    struct log *log = load->log;
    load->io = io;
    load->mem = &load->work.memory.mem;
    log->producers.mem = log->producers.map.mem = load->mem;
    scan_begin(&load->scan, io, load->mem, SCAN_WINDOW_LARGE);
    int error = load->folder ? load_folder(load) : load_ends(load);
    scan_end(&load->scan);
    mem_put(load->mem, load->bases, load->base_capacity * sizeof(load->bases[0]));
    load->bases = NULL;
    load->base_capacity = 0;
    return error;
}

/* ---- in the shard ---------------------------------------------------------------------------- */

void log_unload(struct log *log)
{
    struct mem *mem = log->logs->mem;
    for (uint32_t i = 0; i < log->segment_count; i++)
        segment_free(mem, log->segments[i]);
    log->segments = mem_put(mem, log->segments, log->segment_capacity * sizeof(log->segments[0]));
    log->segment_count = log->segment_capacity = 0;
    epochs_free(mem, &log->epochs);
    producers_free(&log->producers);
    log_hints_drop(log, NULL);
}

static void load_ready(struct load *load)
{
    struct log *log = load->log;
    log->has_folder = load->folder;
    log->metadata_checked = !uuid_is_zero(load->topic_id);
    log->epochs_flushed_end = log->epochs.dirty ? log->start : log->end;
    log->watermark = MIN(MAX(log->checkpoint_watermark, log->start), log->end);
    producers_watermark(&log->producers, log->watermark);
    log_active(log)->jitter_ms = segment_jitter(log);
    log->touched |= log->recover || log->recovery.index_errors > 0;
    log->retain_failed = false;
    if (log->recover) log_recover_over(log);
    log->state = LOG_READY;
}

/* The folder is a stray's now. The log's next one gets another name if it must go. */
static void load_strayed(struct log *log)
{
    struct log_put_aside aside;
    log_put_aside_fill(&aside, log, true);
    if (!log_put_aside_doom(log, &aside)) log->logs->retry = true; /* The next start finds it. */
    log->aside_id = io_random_uuid(log->logs->io);
    log->has_folder = false;
    log->logs->recovery_moved = true; /* The checkpoint names what is gone. */
    logs_say(log->logs, "partition %.*s-%d: its folder was another topic's and is now *-stray",
             (int)log->topic.size, (const char *)log->topic.data, log->partition);
}

/* The topic's id was told while the folder was being read for any: does it hold for this one? What
 * was read is given up, and the next opening has the folder out of the way if it is another's. */
static bool load_again(struct log *log, const struct load *load, int64_t result)
{
    if (result < 0 || uuid_equal(log->topic_id, load->asked) ||
        uuid_equal(log->topic_id, load->topic_id))
        return false;
    log_unload(log);
    log->state = LOG_CLOSED;
    log->open_error = log_load_start(log);
    if (log->open_error == LOG_LATER) log->open_error = 0;
    return true;
}

static void load_finish(struct log_work *work, int64_t result)
{
    struct load *load = container_of(work, struct load, work);
    struct log *log = work->log;
    struct logs *logs = log->logs;
    log->producers.mem = log->producers.map.mem = logs->mem;
    logs->loading--;
    if (load->stray && result == 0) load_strayed(log);
    if (log->state == LOG_GONE) { /* Deleted while it was being opened. */
        log_unload(log);
        mem_put(logs->mem, load, sizeof(*load));
        log_change_done(log, LOG_E_DELETED);
        return;
    }
    if (load_again(log, load, result)) {
        mem_put(logs->mem, load, sizeof(*load));
        if (log->state == LOG_OPENING) return;
        log_tell(log, LOG_EVENT_READY);
        log_change_done(log, log->open_error);
        return;
    }
    if (uuid_is_zero(log->topic_id)) log->topic_id = load->topic_id;
    if (result == 0 && !load->damaged) {
        load_ready(load);
        log_load_report(log);
    } else {
        log_unload(log);
        log->state = LOG_CLOSED;
        if (load->damaged)
            log_fail(log, LOG_E_DAMAGED);
        else if (result == -ENOMEM || result == -EMFILE || result == -ENFILE)
            log->open_error = result == -ENOMEM ? LOG_E_MEMORY : (int)result;
        else if (disk_is_full(result)) {
            log->open_error = LOG_E_FULL; /* Giving up the ballast may help the next try. */
            log_directory_full(log->directory);
        } else
            log_fail(log, (int)result);
        if (log->state == LOG_BROKEN)
            logs_say(logs, "partition %.*s-%d cannot be served: %s", (int)log->topic.size,
                     (const char *)log->topic.data, log->partition,
                     load->damaged ? "bytes that were durable do not hold"
                                   : say_errno((int)result));
    }
    mem_put(logs->mem, load, sizeof(*load));
    log_tell(log, LOG_EVENT_READY);
    if (log->state == LOG_READY)
        log_change_done(log, LOG_OK);
    else
        log_change_done(log, log->state == LOG_BROKEN ? log->error : log->open_error);
}

/* What an operator must know of what was found. */
void log_load_report(struct log *log)
{
    const struct log_recovery *found = &log->recovery;
    if (found->cut_bytes == 0 && found->durable_lost == 0) return;
    logs_say(log->logs, "partition %.*s-%d: %llu bytes behind offset %lld cut off%s",
             (int)log->topic.size, (const char *)log->topic.data, log->partition,
             (unsigned long long)found->cut_bytes, (long long)log->end,
             found->durable_lost > 0 ? "; offsets that were durable are gone" : "");
}

/* Nothing on disk: an empty log is ready at once. */
static int load_empty(struct log *log)
{
    struct logs *logs = log->logs;
    struct load load = {.log = log, .mem = logs->mem, .wall_ms = io_wall_ms(logs->io)};
    int error = load_ends(&load);
    assert(error == 0 || error == -ENOMEM);
    if (error < 0) {
        log_unload(log);
        return LOG_E_MEMORY;
    }
    load_ready(&load);
    return LOG_OK;
}

int log_load_start(struct log *log)
{
    struct logs *logs = log->logs;
    assert(log->state == LOG_CLOSED);
    log->recovery = (struct log_recovery){0};
    producers_init(&log->producers, logs->mem, io_random(logs->io, IO_RANDOM_HASH));
    if (!log->has_folder) return load_empty(log);
    struct load *load = mem_get(logs->mem, sizeof(*load));
    if (load == NULL) return LOG_E_MEMORY;
    load->log = log;
    load->folder = true;
    load->wall_ms = io_wall_ms(logs->io);
    load->asked = log->topic_id;
    load->recovery_point = log->checkpoint_recovery;
    load->recover_from = log->recover ? log->checkpoint_recovery : INT64_MAX;
    load->work.run = load_run;
    load->work.finish = load_finish;
    log->state = LOG_OPENING;
    logs->loading++;
    log_work_add(log, &load->work);
    return LOG_LATER;
}
