/* clean_filter.c - which records of a batch stay, and the batch that is made of them.
 *
 * A record stays if its offset is behind what the map knows, or if it is the newest of its key and
 * not a tombstone whose time is over. A batch all of whose records stay is copied as it is; of
 * others a new one is made with the same offsets, sequences and epoch. An empty one stays where
 * something rests on its header: the last batch of an active producer, and the one that ends at the
 * high watermark. The first time a tombstone, or a marker without data, is met, the batch gets the
 * time from which it may go (bit 6, in the base timestamp). */
#include <errno.h>

#include "log/clean.h"
#include "record/control.h"
#include "record/legacy.h"

/* A batch, and what was decided about it as a whole. */
struct filter {
    struct clean *clean;
    struct batch_header header;
    struct view batch;
    bool control;
    bool discard;      /* No record of it stays. */
    bool empty_marker; /* A marker whose transaction has no data any more. */
    bool keep_empty;
    uint32_t kept; /* Counted over its records: */
    uint32_t dropped;
    bool tombstones;
    int64_t first_kept; /* Offsets; magic 0 and 1 need them. */
    int64_t last_kept;
    int64_t horizon_ms; /* -1: none. */
};

static int filter_error(enum record_fault fault)
{
    if (fault == RECORD_OK) return 0;
    return fault == RECORD_MEMORY ? -ENOMEM : -EBADMSG;
}

/* ---- the batch as a whole ----------------------------------------------------------------------
 */

static int filter_transaction(struct filter *filter)
{
    struct clean *clean = filter->clean;
    const struct batch_header *header = &filter->header;
    struct clean_seen seen = {0};
    if (header->magic < 2 || header->producer_id < 0) return 0;
    if (filter->control) {
        struct producer_marker marker;
        if (!producers_marker(header, filter->batch, &marker) || !marker.is_marker) return 0;
        if (!clean_txns_marker(&clean->txns, header->producer_id, header->base_offset,
                               marker.commit, &seen))
            return -ENOMEM;
        if (seen.keep_abort && clean->phase == CLEAN_COPY) {
            if (!index_reserve(&clean->memory.mem, &clean->out.txns, 1)) return -ENOMEM;
            struct index_txn entry = {seen.transaction.producer_id, seen.transaction.offset_first,
                                      seen.transaction.offset_last, seen.transaction.last_stable};
            index_add_txn(&clean->out.txns, &entry);
        }
        bool over =
            (header->attributes & BATCH_DELETE_HORIZON) && header->base_timestamp <= clean->wall_ms;
        filter->empty_marker = seen.discardable;
        filter->discard = seen.discardable && over;
        return 0;
    }
    if ((header->attributes & BATCH_TRANSACTIONAL) == 0) return 0;
    if (!clean_txns_data(&clean->txns, header->producer_id, batch_last_offset(header), &seen))
        return -ENOMEM;
    filter->discard = seen.discardable;
    return 0;
}

static bool filter_is_last_of_producer(const struct filter *filter)
{
    const struct clean *clean = filter->clean;
    const struct batch_header *header = &filter->header;
    uint32_t low = 0;
    uint32_t high = clean->active_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (clean->active[middle].producer_id < header->producer_id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == clean->active_count) return false;
    const struct clean_active *active = &clean->active[low];
    if (active->producer_id != header->producer_id) return false;
    if (active->last_offset >= 0) return active->last_offset == batch_last_offset(header);
    return filter->control && active->epoch == header->producer_epoch;
}

/* ---- its records -------------------------------------------------------------------------------
 */

static bool filter_tombstone_stays(const struct filter *filter)
{
    const struct clean *clean = filter->clean;
    if (filter->header.magic < 2) {
        const struct clean_source *source = &clean->sources[clean->source];
        return source->modified_wall_ms >
               clean->clean_modified_ms - clean->config.delete_retention_ms;
    }
    if ((filter->header.attributes & BATCH_DELETE_HORIZON) == 0) return true;
    return clean->wall_ms < filter->header.base_timestamp;
}

static bool filter_record_stays(const struct filter *filter, const struct record *record)
{
    const struct clean *clean = filter->clean;
    if (filter->discard) return false;
    if (filter->control) return true;
    if (record->offset >= clean->map.offset_end) return true;
    if (record->key.null) return false;
    if (record->offset < clean_map_get(&clean->map, record->key)) return false;
    return !record->value.null || filter_tombstone_stays(filter);
}

/* Call `each` for every record of the batch, of any magic. */
static enum record_fault filter_records(struct filter *filter,
                                        void (*each)(struct filter *filter,
                                                     const struct record *record,
                                                     void *context),
                                        void *context)
{
    struct record record;
    struct compress_work *work = &filter->clean->compress;
    if (filter->header.magic == 2) {
        struct record_iter iter;
        record_iter_begin(&iter, work, &filter->header, filter->batch);
        while (record_next(&iter, &record))
            each(filter, &record, context);
        return record_iter_end(&iter);
    }
    struct legacy_iter iter;
    legacy_iter_begin(&iter, work, filter->batch);
    while (legacy_next(&iter, &record))
        each(filter, &record, context);
    return legacy_iter_end(&iter);
}

static void filter_count(struct filter *filter, const struct record *record, void *context)
{
    (void)context;
    if (!filter_record_stays(filter, record)) {
        filter->dropped++;
        return;
    }
    if (filter->kept++ == 0) filter->first_kept = record->offset;
    filter->last_kept = record->offset;
    filter->tombstones |= record->value.null && !filter->control;
}

static void filter_copy(struct filter *filter, const struct record *record, void *context)
{
    struct batch_build *build = context;
    if (!filter_record_stays(filter, record)) return;
    int64_t base = filter->header.magic == 2 ? filter->header.base_offset : filter->first_kept;
    struct record_input input = {
        .timestamp_ms = record->timestamp_ms,
        .key = record->key,
        .value = record->value,
        .header_bytes = record->header_bytes,
        .header_count = record->header_count,
        .offset_delta = (int32_t)(record->offset - base),
    };
    batch_build_add_at(build, &input);
}

/* ---- what is written ---------------------------------------------------------------------------
 */

static int filter_write_as_it_is(struct filter *filter)
{
    struct sink *out = &filter->clean->out.buffer;
    sink_put(out, filter->batch.data, filter->batch.size);
    return out->fault == SINK_OK ? 0 : -ENOMEM;
}

static int filter_rebuild(struct filter *filter)
{
    struct clean *clean = filter->clean;
    const struct batch_header *header = &filter->header;
    bool v2 = header->magic == 2;
    struct batch_build_options options = batch_build_plain;
    options.base_offset = v2 ? header->base_offset : filter->first_kept;
    options.codec = (enum codec)batch_codec(header);
    options.append_time = (header->attributes & BATCH_APPEND_TIME) != 0;
    options.append_time_ms = header->max_timestamp;
    options.has_delete_horizon = filter->horizon_ms >= 0;
    options.delete_horizon_ms = filter->horizon_ms;
    if (v2) {
        options.leader_epoch = header->leader_epoch;
        options.transactional = (header->attributes & BATCH_TRANSACTIONAL) != 0;
        options.control = filter->control;
        options.producer_id = header->producer_id;
        options.producer_epoch = header->producer_epoch;
        options.base_sequence = header->base_sequence;
    }
    struct batch_build build;
    struct view written;
    batch_build_begin(&build, &clean->compress, &clean->out.buffer, &options);
    enum record_fault fault = filter_records(filter, filter_copy, &build);
    if (fault != RECORD_OK) {
        batch_build_abort(&build);
        return filter_error(fault);
    }
    fault = batch_build_finish(&build, v2 ? header->last_offset_delta : -1, &written);
    return filter_error(fault);
}

/* Only the header: offsets, sequences, epochs and the greatest timestamp stay. */
static int filter_write_empty(struct filter *filter)
{
    struct sink *out = &filter->clean->out.buffer;
    struct batch_header header = filter->header;
    header.length = BATCH_HEADER_BYTES - BATCH_FRAME_BYTES;
    header.attributes &= BATCH_APPEND_TIME | BATCH_TRANSACTIONAL | BATCH_CONTROL;
    header.base_timestamp = BATCH_NO_TIMESTAMP;
    header.record_count = 0;
    uint8_t bytes[BATCH_HEADER_BYTES];
    batch_header_store(&header, bytes);
    sink_put(out, bytes, sizeof(bytes));
    return out->fault == SINK_OK ? 0 : -ENOMEM;
}

static int filter_write(struct filter *filter, bool *kept)
{
    struct clean *clean = filter->clean;
    bool v2 = filter->header.magic == 2;
    *kept = true;
    if (filter->kept == 0) {
        if (filter->keep_empty && v2) return filter_write_empty(filter);
        *kept = false;
        return 0;
    }
    bool has_horizon = v2 && (filter->header.attributes & BATCH_DELETE_HORIZON) != 0;
    filter->horizon_ms = has_horizon ? filter->header.base_timestamp : -1;
    bool new_horizon = !has_horizon && (filter->tombstones || filter->empty_marker);
    if (new_horizon) filter->horizon_ms = clean->wall_ms + clean->config.delete_retention_ms;
    if (v2 && filter->dropped == 0 && !new_horizon) return filter_write_as_it_is(filter);
    return filter_rebuild(filter);
}

int clean_filter_batch(struct clean *clean, struct batch_header *header, bool *kept)
{
    struct filter filter = {.clean = clean, .header = clean->scan.header, .horizon_ms = -1};
    *kept = false;
    filter.batch = scan_batch(&clean->scan);
    if (filter.batch.null) return (int)clean->scan.error;
    if (!batch_crc_valid(&filter.header, filter.batch)) return -EBADMSG; /* Damage is not spread. */
    filter.control = filter.header.magic == 2 && (filter.header.attributes & BATCH_CONTROL) != 0;
    int error = filter_transaction(&filter);
    if (error < 0) return error;
    bool producer = filter.header.magic == 2 && filter.header.producer_id >= 0;
    filter.keep_empty = (producer && filter_is_last_of_producer(&filter)) ||
                        batch_last_offset(&filter.header) + 1 == clean->watermark;
    if (filter.header.magic < 2 || filter.header.record_count > 0) {
        if (!filter.discard) error = filter_error(filter_records(&filter, filter_count, NULL));
    }
    uint32_t at = clean->out.buffer.size_bytes;
    if (error == 0) error = filter_write(&filter, kept);
    if (error < 0 || !*kept) return error;
    struct view written = view_of(clean->out.buffer.data + at, clean->out.buffer.size_bytes - at);
    return filter_error(batch_header_load(written, header));
}

/* ---- the map -----------------------------------------------------------------------------------
 */

struct filter_mapping {
    bool full;
};

static void filter_map(struct filter *filter, const struct record *record, void *context)
{
    struct filter_mapping *mapping = context;
    struct clean *clean = filter->clean;
    if (mapping->full || record->key.null || record->offset < clean->dirty_from) return;
    mapping->full = !clean_map_put(&clean->map, record->key, record->offset);
}

int clean_filter_map(struct clean *clean)
{
    struct filter filter = {.clean = clean, .header = clean->scan.header};
    struct filter_mapping mapping = {false};
    filter.batch = scan_batch(&clean->scan);
    if (filter.batch.null) return (int)clean->scan.error;
    if (!batch_crc_valid(&filter.header, filter.batch)) return -EBADMSG;
    const struct batch_header *header = &filter.header;
    filter.control = header->magic == 2 && (header->attributes & BATCH_CONTROL) != 0;
    int error = filter_transaction(&filter);
    if (error < 0) return error;
    if (!filter.control && !filter.discard && (header->magic < 2 || header->record_count > 0))
        error = filter_error(filter_records(&filter, filter_map, &mapping));
    if (error < 0) return error;
    if (mapping.full) return LOG_E_FULL;
    clean->map.offset_end = batch_last_offset(header) + 1;
    return 0;
}
