/* query.c - offsets by time, in the background.
 *
 *   wait for the log -> learn each closed segment's largest timestamp -> pick the segment ->
 *   load its indexes -> walk over its batches in a job -> done
 *
 * Kafka's rule: the first segment whose largest timestamp is not below the asked one decides; if it
 * has no such record, there is none. */
#include <errno.h>

#include "log/look_index.h"

struct query_work {
    struct log_query *query;
    struct log_file *file; /* Held. */
    struct memory_share memory;
    struct log_watch watch; /* While an index is being loaded. */
    uint32_t from_bytes;
    uint32_t end_bytes;
    int64_t expect_offset;    /* The batch that holds it (-1: none is to be checked) has this */
    int64_t expect_ms;        /* largest timestamp, as the time index says. */
    int64_t start;            /* The log's. */
    int64_t max_timestamp_ms; /* Of the segment, for LOG_MAX_TIMESTAMP. */
    bool watching;
};

static void query_done(struct log_query *query, int result)
{
    struct logs *logs = query->log->logs;
    struct query_work *work = query->work;
    if (work != NULL) {
        if (work->watching) log_watch_remove(&work->watch);
        if (work->file != NULL) log_file_release(work->file);
        mem_put(logs->mem, work, sizeof(*work));
        query->log->holds--;
    }
    query->work = NULL;
    query->result = result;
    if (result != LOG_OK) {
        query->offset = query->found_timestamp_ms = -1;
        query->leader_epoch = -1;
    }
    query->done(query);
}

/* ---- the walk, in a job -----------------------------------------------------------------------
 */

static int query_look_in(struct log_query *query, struct scan *scan, struct compress_work *compress)
{
    const struct query_work *work = query->work;
    bool latest = query->timestamp_ms == LOG_MAX_TIMESTAMP;
    int64_t wanted = latest ? work->max_timestamp_ms : query->timestamp_ms;
    if (scan->header.max_timestamp < wanted) return LOG_NOT_FOUND;
    if (batch_last_offset(&scan->header) < work->start) return LOG_NOT_FOUND;
    struct batch_header header = scan->header;
    struct view batch = scan_batch(scan);
    if (batch.null) return scan->error == -ENOMEM ? LOG_E_MEMORY : (int)scan->error;

    struct record_spot spot = {-1, -1};
    enum record_fault fault = latest
                                  ? record_find_latest(compress, batch, &spot)
                                  : record_find_time(compress, batch, wanted, work->start, &spot);
    if (fault == RECORD_MEMORY) return LOG_E_MEMORY;
    if (fault != RECORD_OK) return LOG_E_DAMAGED;
    if (spot.offset < 0) return LOG_NOT_FOUND;
    query->offset = spot.offset;
    query->found_timestamp_ms = spot.timestamp_ms;
    query->leader_epoch = header.magic < 2 ? -1 : header.leader_epoch;
    return LOG_OK;
}

/* Is the batch the one of the time entry that the walk began with, and not as the entry says? */
static bool query_misled(struct query_work *work, const struct batch_header *header)
{
    if (work->expect_offset < 0 || batch_last_offset(header) < work->expect_offset) return false;
    work->expect_offset = -1;
    return header->max_timestamp != work->expect_ms;
}

static int64_t query_run(struct io *io, void *argument)
{
    struct log_query *query = argument;
    struct query_work *work = query->work;
    struct scan scan;
    scan_begin(&scan, io, &work->memory.mem, SCAN_WINDOW_LARGE);
    struct compress_work compress;
    compress_work_init(&compress, &work->memory.mem);
    scan_seek(&scan, work->file->file, work->from_bytes, work->end_bytes);
    int result = LOG_NOT_FOUND;
    while (result == LOG_NOT_FOUND) {
        enum scan_result next = scan_next(&scan);
        if (next == SCAN_END) break;
        if (next == SCAN_BATCH && query_misled(work, &scan.header))
            scan_seek(&scan, work->file->file, 0, work->end_bytes); /* Without the index. */
        else if (next == SCAN_BATCH)
            result = query_look_in(query, &scan, &compress);
        else
            result = next == SCAN_FAILED ? scan_failure(&scan) : LOG_E_DAMAGED;
    }
    compress_work_free(&compress);
    scan_end(&scan);
    return result;
}

static void query_ran(struct io_op *op)
{
    struct log_query *query = container_of(op, struct log_query, op);
    query->log->logs->in_flight--;
    query_done(query, (int)op->result);
}

/* ---- which segment, and where in it -----------------------------------------------------------
 */

static int64_t segment_largest(const struct segment *segment)
{
    if (segment->most.max_timestamp_ms >= 0) return segment->most.max_timestamp_ms;
    return segment->modified_wall_ms;
}

static struct segment *query_segment(const struct log_query *query)
{
    const struct log *log = query->log;
    struct segment *best = NULL;
    for (uint32_t i = 0; i < log->segment_count; i++) {
        struct segment *segment = log->segments[i];
        if (segment->written_bytes == 0) continue;
        if (query->timestamp_ms == LOG_MAX_TIMESTAMP) {
            if (best == NULL || segment->most.max_timestamp_ms > best->most.max_timestamp_ms)
                best = segment;
        } else if (segment_largest(segment) >= query->timestamp_ms) {
            return segment;
        }
    }
    return best;
}

/* Where no record before can match, by the segment's indexes. */
static uint32_t query_from(const struct log_query *query, const struct segment *segment)
{
    struct query_work *work = query->work;
    int64_t offset = query->log->start;
    struct index_time time;
    work->expect_offset = -1;
    if (query->timestamp_ms == LOG_MAX_TIMESTAMP) {
        offset = segment->most.max_offset;
    } else if (index_floor_time(&segment->times, query->timestamp_ms, &time) &&
               segment->base + time.relative >= offset) {
        offset = work->expect_offset = segment->base + time.relative;
        work->expect_ms = time.timestamp_ms;
    }
    struct index_offset entry;
    int64_t relative = MIN(offset - segment->base, (int64_t)INT32_MAX);
    if (relative < 0 || !index_floor_offset(&segment->offsets, (uint32_t)relative, &entry))
        return 0;
    return entry.at_bytes;
}

static void query_step(struct log_query *query);

static void query_moved(struct log_watch *watch, struct log *log, int events)
{
    struct query_work *work = container_of(watch, struct query_work, watch);
    if ((events & LOG_EVENT_READY) == 0) return;
    log_watch_remove(watch);
    work->watching = false;
    query_step(work->query);
}

static void query_wait(struct query_work *work)
{
    work->watching = true;
    work->watch.moved = query_moved;
    log_watch_add(work->query->log, &work->watch);
}

static void query_step(struct log_query *query)
{
    struct log *log = query->log;
    struct query_work *work = query->work;
    int result = log_usable(log);
    if (result == LOG_OK) result = log_times_load(log);
    struct segment *segment = NULL;
    if (result == LOG_OK) {
        segment = query_segment(query);
        if (segment == NULL) result = LOG_NOT_FOUND;
    }
    if (result == LOG_OK && !segment->offsets.loaded) {
        struct read_find find = {.offset = log->start};
        result = look_start(log, segment, &find);
    }
    if (result == LOG_OK) result = segment_file(segment, false);
    if (result == LOG_LATER) {
        query_wait(work);
        return;
    }
    if (result != LOG_OK) {
        query_done(query, result);
        return;
    }
    work->file = segment->file;
    log_file_hold(work->file);
    work->from_bytes = query_from(query, segment);
    work->end_bytes = segment->written_bytes;
    work->start = log->start;
    work->max_timestamp_ms = segment->most.max_timestamp_ms;
    memory_share(&work->memory, log->logs->mem, 0);
    query->op.done = query_ran;
    log->logs->in_flight++;
    io_job(log->logs->io, &query->op, query_run, query);
}

void log_query_start(struct log_query *query)
{
    struct log *log = query->log;
    struct query_work *work = mem_get(log->logs->mem, sizeof(*work));
    query->work = work;
    query->offset = query->found_timestamp_ms = -1;
    query->leader_epoch = -1;
    query->result = work == NULL ? LOG_E_MEMORY : LOG_LATER;
    list_init(&query->link);
    if (work != NULL) {
        work->query = query;
        log->holds++;
    }
    list_append(&log->queries, &query->link); /* Never from inside this call. */
    log_tell(log, LOG_EVENT_READY);
}

void log_queries_turn(struct log *log)
{
    struct list todo;
    list_init(&todo);
    struct list *node;
    while ((node = list_pop(&log->queries)) != NULL)
        list_append(&todo, node);
    while ((node = list_pop(&todo)) != NULL) {
        struct log_query *query = container_of(node, struct log_query, link);
        if (query->work == NULL)
            query_done(query, LOG_E_MEMORY);
        else
            query_step(query);
    }
}

/* ---- largest timestamps of closed segments ----------------------------------------------------
 */

struct times_load {
    struct log_work work;
    struct look_index *items;
    uint32_t count;
    uint32_t capacity;
};

/* Segments looked at in one job: each holds an open file meanwhile. */
#define TIMES_PER_JOB 64u

/* Job: what each segment's time index ends with, if its batches bear it out. */
static int64_t times_run(struct io *io, void *argument)
{
    struct times_load *load = argument;
    struct scan scan;
    scan_begin(&scan, io, &load->work.memory.mem, SCAN_WINDOW_LARGE);
    int error = 0;
    for (uint32_t i = 0; i < load->count && error == 0; i++) {
        error = look_index_load(&load->items[i], &scan);
        look_index_free(&load->items[i], &load->work.memory.mem);
    }
    scan_end(&scan);
    return error;
}

static void times_free(struct log *log, struct times_load *load)
{
    struct mem *mem = log->logs->mem;
    for (uint32_t i = 0; i < load->count; i++)
        log_file_release(load->items[i].file);
    mem_put(mem, load->items, load->capacity * sizeof(load->items[0]));
    mem_put(mem, load, sizeof(*load));
}

static int times_take(struct times_load *load, struct segment *segment)
{
    if (load->count == load->capacity || segment->swapping) return LOG_OK;
    int result = segment_file(segment, false);
    if (result != LOG_OK) return result;
    look_index_of(&load->items[load->count++], segment);
    log_file_hold(segment->file);
    return LOG_OK;
}

static void times_finish(struct log_work *work, int64_t result)
{
    struct times_load *load = container_of(work, struct times_load, work);
    struct log *log = work->log;
    log->times_loading = false;
    log->times_error = (int)result;
    for (uint32_t i = 0; i < load->count && result == 0 && log->state == LOG_READY; i++) {
        uint32_t at = log_segment_floor(log, load->items[i].base);
        if (at == UINT32_MAX || log->segments[at]->base != load->items[i].base) continue;
        struct segment *segment = log->segments[at];
        if (!segment->times_known) segment->most = load->items[i].most;
        segment->times_known = true;
        log->recovery.index_errors += load->items[i].rebuilt;
    }
    times_free(log, load);
    log_tell(log, LOG_EVENT_READY);
}

int log_times_load(struct log *log)
{
    struct mem *mem = log->logs->mem;
    uint32_t unknown = 0;
    for (uint32_t i = 0; i < log->segment_count; i++)
        unknown += !log->segments[i]->times_known;
    if (unknown == 0) return LOG_OK;
    if (log->times_loading) return LOG_LATER;
    if (log->times_error != 0) {
        int error = log->times_error;
        log->times_error = 0;
        return error;
    }
    struct times_load *load = mem_get(mem, sizeof(*load));
    if (load == NULL) return LOG_E_MEMORY;
    unknown = MIN(unknown, TIMES_PER_JOB);
    load->capacity = unknown;
    load->items = mem_get(mem, unknown * sizeof(load->items[0]));
    if (load->items == NULL) {
        mem_put(mem, load, sizeof(*load));
        return LOG_E_MEMORY;
    }
    int result = LOG_OK;
    for (uint32_t i = 0; i < log->segment_count && result == LOG_OK; i++)
        if (!log->segments[i]->times_known) result = times_take(load, log->segments[i]);
    if (result != LOG_OK) {
        times_free(log, load);
        return result;
    }
    load->work.run = times_run;
    load->work.finish = times_finish;
    log->times_loading = true;
    log_work_add(log, &load->work);
    return LOG_LATER;
}

bool log_segment_age(const struct log *log, uint32_t index, int64_t *base, int64_t *modified_ms)
{
    if (index >= log->segment_count) return false;
    *base = log->segments[index]->base;
    *modified_ms = log->segments[index]->modified_wall_ms;
    return true;
}

/* ---- aborted transactions ---------------------------------------------------------------------
 */

int log_aborted_in(struct log *log,
                   const struct log_read *in,
                   struct log_aborted *out,
                   uint32_t capacity,
                   uint32_t *count)
{
    *count = 0;
    int usable = log_usable(log);
    if (usable != LOG_OK) return usable;
    uint32_t at = log_segment_floor(log, in->offset);
    for (at = at == UINT32_MAX ? 0 : at; at < log->segment_count; at++) {
        const struct index *txns = &log->segments[at]->txns;
        if (log->segments[at]->txns_unproved > 0) {
            int result = look_txns_start(log, log->segments[at]);
            if (result != LOG_OK) return result;
        }
        for (uint32_t i = 0; i < txns->count; i++) {
            struct index_txn txn = index_get_txn(txns, i);
            if (txn.offset_last >= in->offset && txn.offset_first < in->offset_end) {
                if (*count < capacity)
                    out[*count] = (struct log_aborted){txn.producer_id, txn.offset_first};
                (*count)++;
            }
            if (txn.last_stable >= in->offset_end) return LOG_OK;
        }
    }
    return LOG_OK;
}
