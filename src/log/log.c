/* log.c - a log's state, its ends, watches, and what the other files share.
 *
 *   CLOSED --first use--> OPENING --job done--> READY <--> CHANGING (truncate, restart)
 *      \--no folder: nothing to load-------------^  |
 *                     damage, read error -> BROKEN   any -> GONE (deleted)
 *
 * CLOSED   only names and checkpoints are known.     OPENING  a load job owns segments, epochs,
 * READY    all invariants of state.h hold.                    producers and the ends.
 * CHANGING as READY, but nothing may be appended or read: segments are about to go. */
#include <stdio.h>
#include <string.h>

#include "log/state.h"

struct disk_path log_folder(const struct log *log)
{
    if (log->future) return log_aside(log, "future");
    char name[TOPIC_NAME_MAX + 16];
    int length = snprintf(name, sizeof(name), "%.*s-%d", (int)log->topic.size,
                          (const char *)log->topic.data, log->partition);
    assert(length > 0);
    assert((size_t)length < sizeof(name));
    return disk_join(log->directory->path, name);
}

struct disk_path log_path(const struct log *log, const char *name)
{
    return disk_join(log_folder(log).text, name);
}

/* ---- segments -------------------------------------------------------------------------------- */

struct segment *log_active(const struct log *log)
{
    assert(log->segment_count > 0);
    return log->segments[log->segment_count - 1];
}

uint32_t log_segment_floor(const struct log *log, int64_t offset)
{
    uint32_t low = 0;
    uint32_t high = log->segment_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (log->segments[middle]->base <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? UINT32_MAX : low - 1;
}

/* ---- hints ----------------------------------------------------------------------------------- */

void log_hint_add(struct log *log, const struct log_hint *hint)
{
    if (log->hints == NULL) log->hints = mem_get(log->logs->mem, LOG_HINTS * sizeof(log->hints[0]));
    if (log->hints == NULL) return; /* No memory: the index finds it. */
    log->hints[log->hint_next] = *hint;
    log->hint_next = (log->hint_next + 1) % LOG_HINTS;
}

void log_hints_drop(struct log *log, const struct segment *segment)
{
    if (segment == NULL)
        log->hints = mem_put(log->logs->mem, log->hints, LOG_HINTS * sizeof(log->hints[0]));
    for (uint32_t i = 0; i < log_hint_count(log); i++)
        if (log->hints[i].segment == segment) log->hints[i] = (struct log_hint){0};
}

/* ---- state ----------------------------------------------------------------------------------- */

int log_usable(struct log *log)
{
    log->background = false; /* Somebody wants it. */
    if (log->state == LOG_GONE) return LOG_E_DELETED;
    if (log->directory->error != 0) return log->directory->error;
    switch (log->state) {
    case LOG_CLOSED: {
        int error = log->open_error;
        log->open_error = 0;
        if (error != 0) return error;
        return log_load_start(log);
    }
    case LOG_OPENING:
    case LOG_CHANGING: return LOG_LATER;
    case LOG_READY: return LOG_OK;
    case LOG_BROKEN: return log->error;
    case LOG_GONE: break;
    }
    return LOG_E_DELETED;
}

int log_open(struct log *log)
{
    return log_usable(log);
}

void log_fail(struct log *log, int error)
{
    assert(error != LOG_OK);
    log->state = LOG_BROKEN;
    log->error = error;
    log_writes_drop(log);
    log_tell(log, LOG_EVENT_FAILED | LOG_EVENT_READY);
}

/* ---- ends ------------------------------------------------------------------------------------ */

int64_t log_start(const struct log *log)
{
    return log->start;
}

int64_t log_end_assigned(const struct log *log)
{
    return log->end;
}

int64_t log_end_written(const struct log *log)
{
    return log->written;
}

int64_t log_end_durable(const struct log *log)
{
    return log->durable;
}

int64_t log_high_watermark(const struct log *log)
{
    return log->watermark;
}

int64_t log_last_stable(const struct log *log)
{
    int64_t unstable = producers_first_unstable(&log->producers);
    if (unstable < 0) return log->watermark;
    return MIN(MAX(unstable, log->start), log->watermark);
}

void log_set_high_watermark(struct log *log, int64_t offset)
{
    assert(log->state == LOG_READY || log->state == LOG_CHANGING);
    int64_t watermark = MIN(MAX(offset, log->start), log->end);
    if (watermark == log->watermark) return;
    log->watermark = watermark;
    log->logs->watermarks_moved = true;
    producers_watermark(&log->producers, watermark);
}

const struct log_recovery *log_recovered(const struct log *log)
{
    return &log->recovery;
}

/* ---- watches --------------------------------------------------------------------------------- */

void log_watch_add(struct log *log, struct log_watch *watch)
{
    list_init(&watch->link);
    list_append(&log->watches, &watch->link);
}

void log_watch_remove(struct log_watch *watch)
{
    list_remove(&watch->link);
}

void log_tell(struct log *log, int events)
{
    log->events |= events;
    if (list_empty(&log->telling)) list_append(&log->logs->telling, &log->telling);
}

void log_nudge(struct log *log)
{
    log_tell(log, 0);
}

/* A callback may add and remove watches, also others than its own. */
void log_deliver(struct log *log)
{
    int events = log->events;
    log->events = 0;
    struct list todo;
    list_init(&todo);
    struct list *node;
    while ((node = list_pop(&log->watches)) != NULL)
        list_append(&todo, node);
    while ((node = list_pop(&todo)) != NULL) {
        list_append(&log->watches, node);
        struct log_watch *watch = container_of(node, struct log_watch, link);
        watch->moved(watch, log, events);
    }
    log_queries_turn(log);
}

/* ---- what it is ------------------------------------------------------------------------------ */

struct view log_topic(const struct log *log)
{
    return log->topic;
}

int32_t log_partition(const struct log *log)
{
    return log->partition;
}

uint32_t log_directory(const struct log *log)
{
    return log->directory->index;
}

bool log_is_future(const struct log *log)
{
    return log->future;
}

bool log_has_files(const struct log *log)
{
    return log->has_folder;
}

uint64_t log_size_bytes(const struct log *log)
{
    return log->size_bytes;
}

uint32_t log_segments(const struct log *log)
{
    return log->state == LOG_OPENING ? 0 : log->segment_count;
}

void log_configure(struct log *log, const struct log_config *config)
{
    log->config = *config;
}

/* ---- epochs and producers -------------------------------------------------------------------- */

struct log_epoch_end log_epoch_end(const struct log *log, int32_t epoch)
{
    struct epoch_entry out;
    epochs_end(&log->epochs, (struct epoch_entry){log->end, epoch}, &out);
    return (struct log_epoch_end){out.epoch, out.start};
}

int32_t log_epoch_at(const struct log *log, int64_t offset)
{
    return epochs_at(&log->epochs, offset);
}

int32_t log_epoch_latest(const struct log *log)
{
    return epochs_latest(&log->epochs);
}

int log_epoch_begin(struct log *log, int32_t epoch)
{
    assert(epoch >= 0);
    int usable = log_usable(log);
    if (usable != LOG_OK) return usable;
    if (log->frozen) return LOG_LATER;
    if (!epochs_reserve(log->logs->mem, &log->epochs, 1)) return LOG_E_MEMORY;
    epochs_assign(&log->epochs, epoch, log->end);
    return LOG_OK;
}

int log_producers(struct log *log,
                  bool (*each)(void *context, const struct log_producer *producer),
                  void *context)
{
    int usable = log_usable(log);
    if (usable != LOG_OK) return usable;
    map_foreach (node, &log->producers.map) {
        const struct producer *producer = container_of(node, struct producer, node);
        if (producer->epoch < 0) continue;
        struct log_producer out = {
            .producer_id = producer->id,
            .last_timestamp_ms = producer->timestamp_ms,
            .txn_offset_first = producer->txn_offset_first,
            .last_sequence = producer->batch_count == 0
                                 ? BATCH_NO_SEQUENCE
                                 : producer->batches[producer->batch_count - 1].sequence_last,
            .coordinator_epoch = producer->coordinator_epoch,
            .epoch = producer->epoch,
        };
        if (!each(context, &out)) break;
    }
    return LOG_OK;
}

int log_delete_records(struct log *log, int64_t offset)
{
    int usable = log_usable(log);
    if (usable != LOG_OK) return usable;
    if (offset > log->watermark) return LOG_E_OUT_OF_RANGE;
    if (log->frozen) return LOG_LATER;
    log_raise_start(log, offset);
    return LOG_OK;
}

void log_raise_start(struct log *log, int64_t offset)
{
    assert(offset <= log->end);
    if (offset <= log->start) return;
    log->start = offset;
    epochs_cut_start(&log->epochs, offset);
    producers_log_start(&log->producers, offset);
    if (log->watermark < offset) log_set_high_watermark(log, offset);
    log->logs->starts_moved = true;
    log_tell(log, LOG_EVENT_START);
}
