/* log_dump_index.c - a segment's three indexes, each held against the segment beside it. Their
 * layouts are at the head of log/index.h.
 *
 * An offset or time index that ends in zeros was reserved ahead and belongs to a segment that is
 * (or was, when the server stopped hard) still being appended to: the zeros are no entries. */
#include "base/bytes.h"
#include "cli/log_dump.h"
#include "log/index.h"

/* The index's file and the segment's beside it. */
struct index_pair {
    struct dump *dump;
    struct dump_file *file;
    struct dump_file segment;
    bool has_segment;
};

static struct index_pair open_pair(struct dump *dump, struct dump_file *file)
{
    struct index_pair pair = {.dump = dump, .file = file};
    pair.has_segment = dump_file_sibling(dump, file, "log", &pair.segment);
    if (!pair.has_segment)
        dump_problem(dump, file, -1, "the segment that it belongs to is not there");
    return pair;
}

static void close_pair(struct index_pair *pair)
{
    if (pair->has_segment) dump_file_close(&pair->segment);
}

/* Whole entries up to the zeros; what is no whole entry is a problem. */
static uint32_t count_entries(struct index_pair *pair, uint32_t width)
{
    struct view bytes = pair->file->bytes;
    uint32_t count = bytes.size / width;
    if (bytes.size % width != 0)
        dump_problem(pair->dump, pair->file, (int64_t)count * width,
                     "the size is no multiple of %u", width);
    static const uint8_t zeros[INDEX_TXN_BYTES];
    while (count > 0 && memcmp(bytes.data + (size_t)(count - 1) * width, zeros, width) == 0)
        count--;
    uint32_t reserved = bytes.size / width - count;
    /* A single zero entry is what an index of nothing may hold. */
    if (reserved > 0 && !pair->dump->quiet) {
        dump_line(pair->dump, "reserved", "");
        dump_number(pair->dump, "reservedBytes", (int64_t)reserved * width);
        dump_end(pair->dump);
    }
    return count;
}

/* ---- .index
 * -------------------------------------------------------------------------------------- */

static void check_offset(struct index_pair *pair, int64_t offset, uint32_t position, uint32_t at)
{
    struct batch_header header;
    if (!pair->has_segment) return;
    struct view log = pair->segment.bytes;
    if (position >= log.size) {
        dump_problem(pair->dump, pair->file, at, "position %u lies behind the segment's end at %u",
                     position, log.size);
        return;
    }
    struct view rest = view_of(log.data + position, log.size - position);
    if (batch_check(rest, 0, &header) != RECORD_OK)
        dump_problem(pair->dump, pair->file, at, "no batch begins at position %u", position);
    else if (batch_last_offset(&header) != offset)
        dump_problem(pair->dump, pair->file, at,
                     "the batch at position %u ends at offset %lld, not %lld", position,
                     (long long)batch_last_offset(&header), (long long)offset);
}

void dump_offset_index(struct dump *dump, struct dump_file *file)
{
    struct index_pair pair = open_pair(dump, file);
    uint32_t count = count_entries(&pair, INDEX_OFFSET_BYTES);
    int64_t last_offset = -1, last_position = -1;
    for (uint32_t i = 0; i < count && dump_flush(dump); i++) {
        uint32_t at = i * INDEX_OFFSET_BYTES;
        int64_t offset = file->number + (int32_t)load_be32(file->bytes.data + at);
        uint32_t position = load_be32(file->bytes.data + at + 4);
        dump_line(dump, "offsetIndexEntry", "");
        dump_number(dump, "offset", offset);
        dump_number(dump, "position", position);
        dump_end(dump);
        if (offset <= last_offset || (int64_t)position <= last_position)
            dump_problem(dump, file, at, "entry %u is not above the one before it", i);
        check_offset(&pair, offset, position, at);
        last_offset = offset;
        last_position = position;
    }
    close_pair(&pair);
}

/* ---- .timeindex
 * ----------------------------------------------------------------------------------- */

/* The segment's batches, read along with the entries: both rise. */
struct time_walk {
    struct batch_scan scan;
    struct batch_header header; /* Of the last one read. */
    bool there;
    int64_t max_timestamp; /* Of all read so far. */
};

/* Read on to the batch that holds `offset`. False: there is none. */
static bool walk_to(struct time_walk *walk, int64_t offset)
{
    struct view batch;
    while (!walk->there || batch_last_offset(&walk->header) < offset) {
        walk->there = batch_next(&walk->scan, &walk->header, &batch);
        if (!walk->there) return false;
        walk->max_timestamp = MAX(walk->max_timestamp, walk->header.max_timestamp);
    }
    return true;
}

static void check_time(struct index_pair *pair,
                       struct time_walk *walk,
                       struct index_time entry,
                       uint32_t at)
{
    struct dump *dump = pair->dump;
    int64_t offset = pair->file->number + entry.relative;
    if (!pair->has_segment) return;
    if (!walk_to(walk, offset)) {
        dump_problem(dump, pair->file, at, "the segment has no batch with offset %lld",
                     (long long)offset);
        return;
    }
    const struct batch_header *header = &walk->header;
    if (batch_last_offset(header) != offset)
        dump_problem(dump, pair->file, at, "the batch of offset %lld ends at %lld",
                     (long long)offset, (long long)batch_last_offset(header));
    else if (walk->max_timestamp > entry.timestamp_ms)
        dump_problem(dump, pair->file, at,
                     "a record up to offset %lld has timestamp %lld, above the entry's %lld",
                     (long long)offset, (long long)walk->max_timestamp,
                     (long long)entry.timestamp_ms);
    else if (header->max_timestamp != entry.timestamp_ms)
        dump_problem(
            dump, pair->file, at, "the batch that ends at %lld has timestamp %lld, the entry %lld",
            (long long)offset, (long long)header->max_timestamp, (long long)entry.timestamp_ms);
}

void dump_time_index(struct dump *dump, struct dump_file *file)
{
    struct index_pair pair = open_pair(dump, file);
    struct time_walk walk = {.max_timestamp = INT64_MIN};
    if (pair.has_segment) walk.scan = batch_scan_of(pair.segment.bytes);
    uint32_t count = count_entries(&pair, INDEX_TIME_BYTES);
    struct index_time last = {.timestamp_ms = INT64_MIN};
    for (uint32_t i = 0; i < count && dump_flush(dump); i++) {
        uint32_t at = i * INDEX_TIME_BYTES;
        struct index_time entry = {
            .timestamp_ms = (int64_t)load_be64(file->bytes.data + at),
            .relative = load_be32(file->bytes.data + at + 8),
        };
        dump_line(dump, "timeIndexEntry", "");
        dump_number(dump, "timestamp", entry.timestamp_ms);
        dump_number(dump, "offset", file->number + entry.relative);
        dump_end(dump);
        /* An index closed without a record that had a time holds one entry of -1. */
        bool rises =
            i == 0 || (entry.timestamp_ms > last.timestamp_ms && entry.relative >= last.relative);
        if (!rises)
            dump_problem(dump, file, at, "entry %u is not above the one before it", i);
        else if (entry.timestamp_ms >= 0)
            check_time(&pair, &walk, entry, at);
        last = entry;
    }
    close_pair(&pair);
}

/* ---- .txnindex
 * ------------------------------------------------------------------------------------ */

void dump_txn_index(struct dump *dump, struct dump_file *file)
{
    struct index_pair pair = open_pair(dump, file);
    uint32_t count = count_entries(&pair, INDEX_TXN_BYTES);
    int64_t before = -1;
    for (uint32_t i = 0; i < count && dump_flush(dump); i++) {
        uint32_t at = i * INDEX_TXN_BYTES;
        const uint8_t *p = file->bytes.data + at;
        int16_t version = (int16_t)load_be16(p);
        int64_t first = (int64_t)load_be64(p + 10), last = (int64_t)load_be64(p + 18);
        dump_line(dump, "txnIndexEntry", "");
        dump_number(dump, "version", version);
        dump_number(dump, "producerId", (int64_t)load_be64(p + 2));
        dump_number(dump, "firstOffset", first);
        dump_number(dump, "lastOffset", last);
        dump_number(dump, "lastStableOffset", (int64_t)load_be64(p + 26));
        dump_end(dump);
        if (version != 0) dump_problem(dump, file, at, "entry %u has version %d", i, version);
        if (last <= before)
            dump_problem(dump, file, at, "entry %u is not above the one before it", i);
        if (last < file->number || first > last)
            dump_problem(dump, file, at, "entry %u has offsets that cannot be", i);
        before = last;
    }
    close_pair(&pair);
}
