/* segment.c - one segment of a log: names, its indexes as batches come, its open file.
 *
 * Index rules (Kafka's): the entry of a batch is made when more than index.interval.bytes have come
 * since the last entry, before its own bytes are counted; so the first batch never has one. The
 * time index gets the largest timestamp so far at the same moments, and a last time when the
 * segment is closed. */
#include <stdio.h>

#include "log/state.h"

struct segment_name segment_file_name(int64_t base, const char *suffix)
{
    struct segment_name name;
    int length = snprintf(name.text, sizeof(name.text), "%020lld%s", (long long)base, suffix);
    assert(length > 20);
    assert((size_t)length < sizeof(name.text));
    return name;
}

const char *segment_name_read(const char *name, int64_t *base)
{
    *base = 0;
    for (uint32_t i = 0; i < 20; i++)
        if (name[i] < '0' || name[i] > '9' || __builtin_mul_overflow(*base, 10, base) ||
            __builtin_add_overflow(*base, name[i] - '0', base))
            return NULL;
    return name + 20;
}

struct segment *segment_new(struct mem *mem, struct log *log, int64_t base)
{
    assert(base >= 0);
    struct segment *segment = mem_get(mem, sizeof(*segment));
    if (segment == NULL) return NULL;
    segment->log = log;
    segment->base = base;
    segment->written_end = segment->commit_end = segment->durable_end = base;
    segment->offsets = index_new(INDEX_OFFSET_BYTES);
    segment->times = index_new(INDEX_TIME_BYTES);
    segment->txns = index_new(INDEX_TXN_BYTES);
    segment->most = (struct segment_times){-1, -1};
    segment->first_timestamp_ms = -1;
    segment->times_known = true;
    segment->first_known = true;
    list_init(&segment->dirty);
    list_init(&segment->indexed);
    return segment;
}

void segment_free(struct mem *mem, struct segment *segment)
{
    if (segment == NULL) return;
    list_remove(&segment->dirty);
    look_forget(segment);
    log_file_drop(segment);
    index_unload(mem, &segment->offsets);
    index_unload(mem, &segment->times);
    index_unload(mem, &segment->txns);
    mem_put(mem, segment, sizeof(*segment));
}

bool segment_push(struct mem *mem, struct log *log, struct segment *segment)
{
    if (log->segment_count == log->segment_capacity) {
        uint32_t capacity = log->segment_capacity == 0 ? 2 : log->segment_capacity * 2;
        struct segment **segments = mem_get(mem, capacity * sizeof(segments[0]));
        if (segments == NULL) return false;
        if (log->segment_count > 0)
            memcpy(segments, log->segments, log->segment_count * sizeof(segments[0]));
        mem_put(mem, log->segments, log->segment_capacity * sizeof(segments[0]));
        log->segments = segments;
        log->segment_capacity = capacity;
    }
    assert(log->segment_count == 0 || log->segments[log->segment_count - 1]->base < segment->base);
    log->segments[log->segment_count++] = segment;
    return true;
}

int segment_file(struct segment *segment, bool create)
{
    if (segment->file != NULL) {
        log_file_used(segment->file);
        return LOG_OK;
    }
    struct segment_name name = segment_file_name(segment->base, ".log");
    struct disk_path path = log_path(segment->log, name.text);
    return log_file_open(segment->log->logs, segment, path.text, create);
}

uint32_t segment_relative(const struct segment *segment, int64_t offset)
{
    int64_t relative = offset - segment->base;
    assert(relative >= 0);
    assert(relative <= INT32_MAX);
    return (uint32_t)relative;
}

bool segment_note_reserve(struct mem *mem, struct segment *segment, uint32_t batches)
{
    return index_reserve(mem, &segment->offsets, batches) &&
           index_reserve(mem, &segment->times, batches + 1);
}

void segment_index_last_time(const struct segment_indexes *indexes)
{
    const struct segment_times *most = indexes->most;
    struct index *times = indexes->times;
    if (most->max_timestamp_ms < 0) return;
    if (times->count > 0 &&
        index_get_time(times, times->count - 1).timestamp_ms >= most->max_timestamp_ms)
        return;
    uint32_t relative = (uint32_t)(most->max_offset - indexes->base);
    index_add_time(times, (struct index_time){most->max_timestamp_ms, relative});
}

void segment_index_batch(const struct segment_indexes *indexes,
                         const struct batch_header *header,
                         uint32_t at_bytes,
                         bool due)
{
    int64_t last = batch_last_offset(header);
    int64_t relative = last - indexes->base;
    assert(relative >= 0);
    assert(relative <= INT32_MAX);
    if (header->max_timestamp > indexes->most->max_timestamp_ms)
        *indexes->most = (struct segment_times){header->max_timestamp, last};
    if (!due) return;
    index_add_offset(indexes->offsets, (struct index_offset){(uint32_t)relative, at_bytes});
    segment_index_last_time(indexes);
}

void segment_note(struct segment *segment, const struct batch_header *header, uint32_t at_bytes)
{
    struct segment_indexes indexes = {segment->base, &segment->offsets, &segment->times,
                                      &segment->most};
    bool due = segment->since_index_bytes > segment->log->config.index_interval_bytes;
    if (at_bytes == 0) {
        segment->first_timestamp_ms = header->max_timestamp;
        segment->first_known = true;
    }
    segment_index_batch(&indexes, header, at_bytes, due);
    segment->since_index_bytes =
        due ? batch_size(header) : segment->since_index_bytes + batch_size(header);
}

void segment_finish_times(struct segment *segment)
{
    segment_index_last_time(&(struct segment_indexes){segment->base, &segment->offsets,
                                                      &segment->times, &segment->most});
}

int64_t segment_jitter(struct log *log)
{
    int64_t most = MIN(log->config.segment_jitter_ms, log->config.segment_ms);
    if (most <= 0) return 0;
    return (int64_t)(io_random(log->logs->io, IO_RANDOM_JITTER) % (uint64_t)most);
}
