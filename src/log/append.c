/* append.c - batches get their offsets and go on their way to the file.
 *
 * Three steps. *Check*: what came is validated (record/), its producer may write (producers.h).
 * *Reserve*: everything that could fail for want of memory is taken; a roll happens here if need
 * be. *Apply*: nothing fails any more: offsets and epoch are stamped into the buffer, the write is
 * queued, indexes, epochs and producers take the batches in, the assigned end rises. */
#include <errno.h>

#include "log/state.h"
#include "record/legacy.h"

/* What an append has come to: whole checked batches in a buffer. */
struct append {
    struct log *log;
    const struct log_append *in;
    struct buf *buf; /* One reference, ours. */
    uint32_t at_bytes;
    uint32_t size_bytes;
    uint32_t batch_count;
    int64_t offset_first;
    int64_t offset_last;      /* Of the last batch. */
    int64_t max_timestamp_ms; /* Over all of them. */
    bool append_time;
};

static uint8_t *append_bytes(const struct append *append)
{
    return append->buf->data + append->at_bytes;
}

/* ---- check: client and coordinator ----------------------------------------------------------- */

static int32_t append_level(const struct log_config *config)
{
    switch (config->compression) {
    case CODEC_GZIP: return config->compression_gzip_level;
    case CODEC_LZ4: return config->compression_lz4_level;
    case CODEC_ZSTD: return config->compression_zstd_level;
    default: return COMPRESS_LEVEL_DEFAULT;
    }
}

/* The append's bytes are these from now on, in a buffer of its own, if they were made without a
 * fault. */
static int append_written_anew(struct append *append, enum record_fault fault, struct view bytes)
{
    if (fault != RECORD_OK) return fault == RECORD_MEMORY ? LOG_E_MEMORY : LOG_E_INVALID;
    struct buf *buf = buf_new(append->log->logs->mem, bytes.size);
    if (buf == NULL) return LOG_E_MEMORY;
    memcpy(buf->data, bytes.data, bytes.size);
    buf_release(append->buf);
    append->buf = buf;
    append->at_bytes = 0;
    append->size_bytes = bytes.size;
    return LOG_OK;
}

/* The batch with another codec, in a buffer of its own. */
static int append_recompress(struct append *append, struct batch_verdict *verdict)
{
    struct log *log = append->log;
    struct mem *mem = log->logs->mem;
    struct sink out;
    sink_init(&out, mem, log->config.max_message_bytes);
    verdict->fault = batch_recompress(&log->logs->compress, verdict,
                                      view_of(append_bytes(append), append->size_bytes), &out);
    int result = append_written_anew(append, verdict->fault, sink_view(&out));
    sink_free(&out);
    return result;
}

static void append_rules(const struct append *append, struct batch_rules *out)
{
    const struct log_append *in = append->in;
    const struct log_config *config = &append->log->config;
    *out = (struct batch_rules){
        .origin = in->origin == LOG_CLIENT ? BATCH_FROM_CLIENT : BATCH_FROM_COORDINATOR,
        .produce_version = in->produce_version,
        .message_bytes_max = config->max_message_bytes,
        .compacted = config->cleanup_compact,
        .append_time = config->log_append_time,
        .header_only = config->header_only,
        .codec = config->compression,
        .level = append_level(config),
        .before_max_ms = config->timestamp_before_max_ms,
        .after_max_ms = config->timestamp_after_max_ms,
        .wall_ms = in->wall_ms,
    };
}

/* Is it a message set, as Produce requests below version 3 may bring? Nothing whole is one too. */
static bool append_is_old(const struct append *append)
{
    if (append->in->origin != LOG_CLIENT || append->in->produce_version >= 3) return false;
    return append->size_bytes <= BATCH_AT_MAGIC || append_bytes(append)[BATCH_AT_MAGIC] < 2;
}

/* A message set as one batch in a buffer of its own. */
static int append_upgrade(struct append *append, struct batch_verdict *verdict)
{
    struct log *log = append->log;
    struct batch_rules rules;
    struct sink out;
    append_rules(append, &rules);
    sink_init(&out, log->logs->mem, log->config.max_message_bytes);
    (void)legacy_upgrade(&log->logs->compress, &rules,
                         view_of(append_bytes(append), append->size_bytes), &out, verdict);
    int result = append_written_anew(append, verdict->fault, sink_view(&out));
    sink_free(&out);
    return result;
}

static int append_validate(struct append *append, struct batch_verdict *verdict)
{
    const struct log *log = append->log;
    const struct log_append *in = append->in;
    struct batch_rules rules;
    append_rules(append, &rules);
    struct arena own;
    arena_init(&own, log->logs->mem, 0);
    struct view bytes = view_of(append_bytes(append), append->size_bytes);
    enum record_fault fault = batch_validate(
        &log->logs->compress, in->request == NULL ? &own : in->request, &rules, bytes, verdict);
    if (in->request == NULL) verdict->errors = NULL;
    arena_free(&own);
    if (fault == RECORD_OK) return LOG_OK;
    return fault == RECORD_MEMORY ? LOG_E_MEMORY : LOG_E_INVALID;
}

/* May the batch's producer write it? Fills `out` for a duplicate. */
static int append_producer(const struct append *append,
                           const struct batch_header *header,
                           struct log_appended *out)
{
    const struct log *log = append->log;
    struct producer_marker marker;
    struct view batch = view_of(append_bytes(append), append->size_bytes);
    if (!producers_marker(header, batch, &marker)) {
        out->fault = RECORD_CONTROL;
        return LOG_E_INVALID;
    }
    marker.txn_version = append->in->marker_txn_version;
    struct producer_batch first_time;
    int result = producers_check(&log->producers, header, &marker, append->in->origin, &first_time);
    if (result == LOG_DUPLICATE) {
        out->offset_first = first_time.offset_last - first_time.offset_delta;
        out->offset_end = first_time.offset_last + 1;
        out->append_time_ms = first_time.timestamp_ms;
    }
    return result;
}

static int append_check_leader(struct append *append, struct log_appended *out)
{
    struct log *log = append->log;
    struct batch_verdict verdict = {0};
    bool old = append_is_old(append);
    int result = old ? append_upgrade(append, &verdict) : append_validate(append, &verdict);
    if (old && verdict.fault == RECORD_NO_BATCH) return LOG_OK; /* Nothing to append, as in 3.9. */
    if (result == LOG_OK && !old) {
        append->size_bytes = verdict.size_bytes;
        if (verdict.rebuild) result = append_recompress(append, &verdict);
    }
    out->fault = verdict.fault;
    out->errors = verdict.errors;
    out->error_count = verdict.errors == NULL ? 0 : verdict.error_count;
    out->error_total = verdict.error_total;
    if (result != LOG_OK) return result;
    if (append->size_bytes > log->config.segment_bytes) return LOG_E_SEGMENT;

    result = append_producer(append, &verdict.header, out);
    if (result != LOG_OK) return result;
    append->batch_count = 1;
    append->offset_first = log->end;
    append->offset_last = log->end + verdict.header.last_offset_delta;
    append->append_time = verdict.append_time;
    append->max_timestamp_ms = verdict.max_timestamp_ms;
    return LOG_OK;
}

/* ---- check: follower ------------------------------------------------------------------------- */

static int append_check_follower(struct append *append, struct log_appended *out)
{
    const struct log *log = append->log;
    struct batch_scan scan = batch_scan_of(view_of(append_bytes(append), append->size_bytes));
    struct batch_header header;
    struct view batch;
    int64_t next = log->end;
    uint32_t size = 0;
    append->max_timestamp_ms = -1;
    while (batch_next(&scan, &header, &batch)) {
        if (header.magic == 2 && header.leader_epoch > append->in->leader_epoch) break;
        if (!batch_crc_valid(&header, batch)) {
            scan.fault = RECORD_CRC;
            break;
        }
        if (header.base_offset < next) return LOG_E_ORDER;
        if (append->batch_count == 0) append->offset_first = header.base_offset;
        append->offset_last = batch_last_offset(&header);
        if (append->offset_last < header.base_offset) {
            scan.fault = RECORD_LAST_DELTA;
            break;
        }
        next = append->offset_last + 1;
        append->max_timestamp_ms = MAX(append->max_timestamp_ms, header.max_timestamp);
        append->batch_count++;
        size = scan.at;
    }
    out->fault = scan.fault;
    if (scan.fault != RECORD_OK) return LOG_E_INVALID;
    append->size_bytes = size;
    if (size > log->config.segment_bytes) return LOG_E_SEGMENT;
    return LOG_OK;
}

/* ---- reserve --------------------------------------------------------------------------------- */

static bool append_must_roll(const struct append *append, const struct segment *active)
{
    const struct log_config *config = &append->log->config;
    uint32_t offsets_max = config->segment_index_bytes / INDEX_OFFSET_BYTES;
    uint32_t times_max = config->segment_index_bytes / INDEX_TIME_BYTES;
    if (append->offset_last - active->base > INT32_MAX) return true;
    if (active->size_bytes == 0) return false;
    uint32_t bytes_max = MIN(config->segment_bytes, append->log->logs->segment_max);
    if ((uint64_t)active->size_bytes + append->size_bytes > bytes_max) return true;
    if (active->offsets.count >= offsets_max || active->times.count + 1 >= times_max) return true;

    int64_t segment_ms = config->segment_ms;
    if (config->cleanup_compact) segment_ms = MIN(segment_ms, config->max_compaction_lag_ms);
    int64_t waited_ms = append->in->wall_ms - active->created_wall_ms;
    if (active->first_known && active->first_timestamp_ms >= 0)
        waited_ms = append->max_timestamp_ms - active->first_timestamp_ms;
    return waited_ms > segment_ms - active->jitter_ms;
}

/* Room in everything that takes in one of the batches. */
static bool append_reserve_batch(struct append *append,
                                 struct segment *active,
                                 const struct batch_header *header)
{
    struct log *log = append->log;
    struct mem *mem = log->logs->mem;
    if (!producers_reserve(&log->producers, header->producer_id)) return false;
    bool control = (header->attributes & BATCH_CONTROL) != 0;
    return !control || index_reserve(mem, &active->txns, append->batch_count);
}

static int append_reserve(struct append *append, struct log_write **write)
{
    struct log *log = append->log;
    struct mem *mem = log->logs->mem;
    if (append_must_roll(append, log_active(log))) {
        int result = log_roll_to(log, MAX(log->end, append->offset_first));
        if (result != LOG_OK) return result;
    }
    struct segment *active = log_active(log);
    if (append->offset_last - active->base > INT32_MAX) return LOG_E_ORDER;
    if (!segment_note_reserve(mem, active, append->batch_count)) return LOG_E_MEMORY;
    if (!epochs_reserve(mem, &log->epochs, append->batch_count)) return LOG_E_MEMORY;

    struct batch_scan scan = batch_scan_of(view_of(append_bytes(append), append->size_bytes));
    struct batch_header header;
    struct view batch;
    while (batch_next(&scan, &header, &batch))
        if (!append_reserve_batch(append, active, &header)) return LOG_E_MEMORY;
    *write = log_write_room(log, active); /* Last: an empty write may not stay behind. */
    return *write == NULL ? LOG_E_MEMORY : LOG_OK;
}

/* ---- apply ----------------------------------------------------------------------------------- */

static void append_stamp(struct append *append)
{
    if (append->in->origin == LOG_FOLLOWER) return;
    uint8_t *batch = append_bytes(append);
    batch_stamp(batch, append->offset_first, append->in->leader_epoch);
    batch_set_timestamp(batch, append->size_bytes, append->append_time, append->max_timestamp_ms);
}

void log_take_batch(struct log *log, const struct batch_header *header, struct view batch)
{
    struct segment *active = log_active(log);
    if (header->magic < 2)
        epochs_clear(&log->epochs); /* As Kafka: old messages have no epochs. */
    else if (header->leader_epoch >= 0)
        epochs_assign(&log->epochs, header->leader_epoch, header->base_offset);

    struct producer_marker marker;
    struct producer_ended ended;
    if (!producers_marker(header, batch, &marker)) marker = (struct producer_marker){0};
    producers_apply(&log->producers, header, &marker, &ended);
    if (!ended.ended || !ended.aborted) return;
    struct index_txn entry = {header->producer_id, ended.offset_first, ended.offset_last,
                              ended.last_stable};
    index_add_txn(&active->txns, &entry);
}

static void append_apply(struct append *append, struct log_write *write)
{
    struct log *log = append->log;
    struct segment *active = log_active(log);
    append_stamp(append);

    struct view bytes = view_of(append_bytes(append), append->size_bytes);
    struct iovec piece = {append_bytes(append), append->size_bytes};
    log_write_put(write, append->buf, piece, append->offset_last + 1);
    struct batch_scan scan = batch_scan_of(bytes);
    struct batch_header header;
    struct view batch;
    while (batch_next(&scan, &header, &batch)) {
        uint32_t at_bytes = active->size_bytes + (uint32_t)(batch.data - bytes.data);
        segment_note(active, &header, at_bytes);
        log_take_batch(log, &header, batch);
        struct log_hint hint = {active,     header.base_offset, at_bytes,
                                batch.size, header.base_offset, batch_last_offset(&header)};
        log_hint_add(log, &hint);
    }
    active->size_bytes += append->size_bytes;
    log->size_bytes += append->size_bytes;
    log->logs->space_used += append->size_bytes;
    log->directory->unsynced_bytes += append->size_bytes;
    log->end = append->offset_last + 1;
    log->touched = true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* While the disk is full: what gives room back may use the last room, which covers all that is not
 * durable yet. */
static int append_admit_last(const struct log_directory *directory, const struct log_append *in)
{
    if (!directory->full) return LOG_OK;
    if (!in->last_room) return LOG_E_FULL;
    if (directory->ballast_busy) return LOG_E_BUSY;
    bool fits = directory->unsynced_bytes + in->size_bytes <= directory->ballast_bytes;
    return fits ? LOG_OK : LOG_E_FULL;
}

static int append_admit(struct log *log, const struct log_append *in)
{
    int usable = log_usable(log);
    if (usable == LOG_OK && log->frozen) usable = LOG_LATER;
    /* A coordinator does not wait: its client asks again. */
    if (usable == LOG_LATER && log->frozen && in->origin == LOG_COORDINATOR) usable = LOG_E_BUSY;
    if (usable != LOG_OK) return usable;
    struct log_directory *directory = log->directory;
    if (log->logs->stopping) return LOG_E_BUSY;
    int last = append_admit_last(directory, in);
    if (last != LOG_OK) return last;
    int room = logs_space_admit(log->logs, in);
    if (room != LOG_OK) return room;
    if (directory->unsynced_bytes > 0 &&
        directory->unsynced_bytes + in->size_bytes > directory->unsynced_max) {
        directory->commit_wanted = true; /* Its end is what the append waits for. */
        return LOG_E_BUSY;
    }
    return LOG_OK;
}

int log_append(struct log *log, const struct log_append *in, struct log_appended *out)
{
    *out = (struct log_appended){.offset_first = -1, .offset_end = -1, .append_time_ms = -1};
    assert((uint64_t)in->at_bytes + in->size_bytes <= in->buf->size_bytes);
    int result = append_admit(log, in);
    if (result != LOG_OK) return result;

    struct append append = {
        .log = log,
        .in = in,
        .buf = buf_hold(in->buf),
        .at_bytes = in->at_bytes,
        .size_bytes = in->size_bytes,
        .offset_first = log->end,
        .offset_last = log->end - 1,
    };
    struct log_write *write = NULL;
    result = in->origin == LOG_FOLLOWER ? append_check_follower(&append, out)
                                        : append_check_leader(&append, out);
    if (result == LOG_OK && append.batch_count > 0) {
        result = append_reserve(&append, &write);
        if (result == LOG_OK) append_apply(&append, write);
        producers_trim(&log->producers);
    }
    if (result == LOG_OK) {
        out->offset_first = append.offset_first;
        out->offset_end = append.offset_last + 1;
        if (append.append_time) out->append_time_ms = in->wall_ms;
        if (append.batch_count > 0 && !log->has_folder) log_make_start(log);
    }
    buf_release(append.buf);
    return result;
}
