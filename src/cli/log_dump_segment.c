/* log_dump_segment.c - a segment, or a snapshot of the metadata log: batches, records, and what is
 * wrong with them. */
#include "cli/log_dump.h"
#include "record/control.h"
#include "record/legacy.h"

#include <stdlib.h>

/* What must hold from one batch to the next. */
struct segment_walk {
    struct dump *dump;
    struct dump_file *file;
    struct batch_header header;
    struct view batch;
    uint32_t position;
    int64_t last_offset; /* Of the batch before; -1: none. */
    int64_t last_record; /* Of the record before, in the same batch. */
    bool stopped;
};

static const char *codec_name(uint8_t codec)
{
    return codec < CODEC_COUNT ? compress_name((enum codec)codec) : "unknown";
}

static const char *time_name(const struct batch_header *header)
{
    if (header->magic == 0) return "NoTimestampType";
    return (header->attributes & BATCH_APPEND_TIME) != 0 ? "LogAppendTime" : "CreateTime";
}

static void print_timestamp(struct dump *dump, const struct batch_header *header, int64_t timestamp)
{
    if (!dump->json) {
        dump_number(dump, time_name(header), timestamp);
        return;
    }
    dump_text(dump, "timestampType", time_name(header));
    dump_number(dump, "timestamp", timestamp);
}

static void print_batch(struct segment_walk *walk, bool valid)
{
    struct dump *dump = walk->dump;
    const struct batch_header *header = &walk->header;
    dump_line(dump, "batch", "");
    if (header->magic == 2) {
        dump_number(dump, "baseOffset", header->base_offset);
        dump_number(dump, "lastOffset", batch_last_offset(header));
        dump_number(dump, "count", header->record_count);
        dump_number(dump, "baseSequence", header->base_sequence);
        dump_number(dump, "lastSequence", batch_last_sequence(header));
        dump_number(dump, "producerId", header->producer_id);
        dump_number(dump, "producerEpoch", header->producer_epoch);
        dump_number(dump, "partitionLeaderEpoch", header->leader_epoch);
        dump_bool(dump, "isTransactional", (header->attributes & BATCH_TRANSACTIONAL) != 0);
        dump_bool(dump, "isControl", (header->attributes & BATCH_CONTROL) != 0);
        if ((header->attributes & BATCH_DELETE_HORIZON) != 0)
            dump_number(dump, "deleteHorizonMs", header->base_timestamp);
    } else {
        dump_number(dump, "offset", header->base_offset);
    }
    dump_number(dump, "position", walk->position);
    print_timestamp(dump, header, header->max_timestamp);
    dump_number(dump, "size", walk->batch.size);
    dump_number(dump, "magic", header->magic);
    dump_text(dump, "compresscodec", codec_name(batch_codec(header)));
    dump_number(dump, "crc", header->crc);
    dump_bool(dump, "isvalid", valid);
    dump_end(dump);
}

static void print_headers(struct dump *dump, const struct record *record)
{
    struct record_header header;
    uint32_t at = 0;
    bool first = true;
    dump_name(dump, "headers");
    if (dump->quiet) return;
    out_char(dump->out, '[');
    while (record_header_next(record, &at, &header)) {
        if (!first) out_char(dump->out, ',');
        first = false;
        if (dump->json) {
            out_text(dump->out, "{\"key\":");
            out_quoted(dump->out, header.key);
            dump_bytes(dump, "value", header.value);
            out_char(dump->out, '}');
        } else {
            out_view(dump->out, header.key);
            out_char(dump->out, '=');
            if (header.value.null)
                out_text(dump->out, "null");
            else
                out_literal(dump->out, header.value);
        }
    }
    out_char(dump->out, ']');
}

static void print_record(struct segment_walk *walk, const struct record *record)
{
    struct dump *dump = walk->dump;
    dump_line(dump, "record", "|");
    dump_number(dump, "offset", record->offset);
    print_timestamp(dump, &walk->header, record->timestamp_ms);
    dump_number(dump, "keySize", record->key.null ? -1 : (int64_t)record->key.size);
    dump_number(dump, "valueSize", record->value.null ? -1 : (int64_t)record->value.size);
    if (walk->header.magic == 2) {
        dump_number(dump, "sequence", record->sequence);
        print_headers(dump, record);
    }
    if (!dump->quiet) dump_record_data(dump, walk->file, &walk->header, record);
    dump_end(dump);
    walk->stopped |= !dump_flush(dump);
}

static void check_record(struct segment_walk *walk, const struct record *record)
{
    const struct batch_header *header = &walk->header;
    if (walk->last_record >= 0 && record->offset <= walk->last_record)
        dump_problem(walk->dump, walk->file, walk->position, "offset %lld follows offset %lld",
                     (long long)record->offset, (long long)walk->last_record);
    if (header->magic == 2 && record->offset > batch_last_offset(header))
        dump_problem(walk->dump, walk->file, walk->position,
                     "offset %lld lies behind its batch's last offset %lld",
                     (long long)record->offset, (long long)batch_last_offset(header));
    walk->last_record = record->offset;
    bool control = (header->attributes & BATCH_CONTROL) != 0;
    enum control_type type;
    if (control && header->magic == 2 && !control_key_parse(record->key, &type))
        dump_problem(walk->dump, walk->file, walk->position,
                     "offset %lld is a control record without a sound key",
                     (long long)record->offset);
}

static void take_record(struct segment_walk *walk, const struct record *record)
{
    struct dump *dump = walk->dump;
    check_record(walk, record);
    bool wanted = record->offset >= dump->offset_min && record->offset <= dump->offset_max;
    if (wanted && !dump->batches_only && !dump->quiet) print_record(walk, record);
}

static void walk_records(struct segment_walk *walk)
{
    struct dump *dump = walk->dump;
    struct record record;
    enum record_fault fault;
    if (walk->header.magic == 2) {
        struct record_iter iter;
        record_iter_begin(&iter, &dump->work, &walk->header, walk->batch);
        while (!walk->stopped && record_next(&iter, &record))
            take_record(walk, &record);
        fault = record_iter_end(&iter);
    } else {
        struct legacy_iter iter;
        legacy_iter_begin(&iter, &dump->work, walk->batch);
        while (!walk->stopped && legacy_next(&iter, &record))
            take_record(walk, &record);
        fault = legacy_iter_end(&iter);
    }
    if (fault != RECORD_OK)
        dump_problem(dump, walk->file, walk->position, "batch at offset %lld: %s",
                     (long long)walk->header.base_offset, record_fault_text(fault));
}

/* The batch beside the one before it. */
static void check_batch(struct segment_walk *walk, enum record_fault fault)
{
    struct dump *dump = walk->dump;
    const struct batch_header *header = &walk->header;
    if (fault != RECORD_OK)
        dump_problem(dump, walk->file, walk->position, "batch at offset %lld: %s",
                     (long long)header->base_offset, record_fault_text(fault));
    int64_t first = header->magic == 2 ? header->base_offset : batch_last_offset(header);
    if (first <= walk->last_offset)
        dump_problem(dump, walk->file, walk->position, "offset %lld follows offset %lld",
                     (long long)first, (long long)walk->last_offset);
    bool segment = strstr(walk->file->name, ".log") != NULL;
    if (segment && first < walk->file->number)
        dump_problem(dump, walk->file, walk->position,
                     "offset %lld lies below the segment's base %lld", (long long)first,
                     (long long)walk->file->number);
    walk->last_offset = MAX(walk->last_offset, batch_last_offset(header));
}

static void take_batch(struct segment_walk *walk)
{
    struct dump *dump = walk->dump;
    const struct batch_header *header = &walk->header;
    enum record_fault fault =
        batch_check(walk->batch, BATCH_CHECK_CRC | BATCH_CHECK_COUNTS, &walk->header);
    bool wanted = batch_last_offset(header) >= dump->offset_min &&
                  (header->magic < 2 || header->base_offset <= dump->offset_max);
    if (wanted && !dump->quiet) print_batch(walk, fault != RECORD_CRC);
    check_batch(walk, fault);
    if (fault != RECORD_OK || (!wanted && !dump->quiet)) return;
    walk->last_record = -1;
    walk_records(walk);
}

/* Zeros up to the end are what a file has that was reserved ahead and not closed cleanly. */
static bool all_zero(struct view bytes, uint32_t from)
{
    for (uint32_t i = from; i < bytes.size; i++)
        if (bytes.data[i] != 0) return false;
    return true;
}

static void check_tail(struct segment_walk *walk, const struct batch_scan *scan)
{
    struct dump_file *file = walk->file;
    uint32_t left = file->bytes.size - scan->at;
    if (left == 0 || walk->stopped) return;
    if (all_zero(file->bytes, scan->at))
        dump_problem(walk->dump, file, scan->at, "%u zero bytes behind the last batch", left);
    else if (scan->fault == RECORD_OK)
        dump_problem(walk->dump, file, scan->at, "%u bytes of a batch that is cut", left);
    else
        dump_problem(walk->dump, file, scan->at, "%u bytes that are no batch: %s", left,
                     record_fault_text(scan->fault));
}

void dump_segment(struct dump *dump, struct dump_file *file)
{
    struct segment_walk walk = {.dump = dump, .file = file, .last_offset = -1, .last_record = -1};
    struct batch_scan scan = batch_scan_of(file->bytes);
    while (!walk.stopped && batch_next(&scan, &walk.header, &walk.batch)) {
        walk.position = scan.at - walk.batch.size;
        take_batch(&walk);
        walk.stopped |= !dump_flush(dump);
    }
    check_tail(&walk, &scan);
}
