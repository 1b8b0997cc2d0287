/* record_iter.c - walking over the records of a batch, plain or compressed, and finding in them.
 *
 * A compressed batch passes through a window: what is left of it moves to its start, and the stream
 * fills the rest. The window grows only as bytes really come, so a record's length is never
 * believed before they are there. A validating walk does not keep what is larger than the first
 * window: it steps over keys, values and headers as they pass. */
#include "base/limits.h"
#include "base/reader.h"
#include "record/batch.h"
#include "record/legacy.h"
#include "record/record_brief.h"

#define VARINT_BYTES  5u
#define VARLONG_BYTES 10u

void record_iter_begin(struct record_iter *iter,
                       struct compress_work *work,
                       const struct batch_header *header,
                       struct view batch)
{
    assert(header->magic == 2);
    assert(batch.size >= batch_size(header));

    *iter = (struct record_iter){.work = work, .header = header, .left = header->record_count};
    struct view records =
        view_of(batch.data + BATCH_HEADER_BYTES, batch_size(header) - BATCH_HEADER_BYTES);
    uint8_t codec = batch_codec(header);
    if (codec == CODEC_NONE) {
        iter->in = records;
    } else if (codec >= CODEC_COUNT) {
        iter->fault = RECORD_CODEC;
    } else if (header->record_count > 0) {
        struct decompress_options options = {codec, 2, RECORD_INFLATED_MAX};
        decompress_begin(&iter->stream, work, records, options);
        iter->compressed = true;
    }
    if (header->record_count < 0) iter->fault = RECORD_COUNT;
}

enum record_fault record_iter_end(struct record_iter *iter)
{
    if (iter->compressed) decompress_end(&iter->stream);
    iter->compressed = false;
    if (iter->work != NULL)
        iter->window = mem_put(iter->work->mem, iter->window, iter->window_bytes);
    return iter->fault;
}

static bool fail(struct record_iter *iter, enum record_fault fault)
{
    assert(fault != RECORD_OK);
    if (iter->fault == RECORD_OK) iter->fault = fault;
    return false;
}

/* Why no more bytes come, when more are needed. */
static enum record_fault short_fault(const struct record_iter *iter)
{
    if (!iter->compressed) return RECORD_SHORT;
    switch (iter->stream.fault) {
    case DECOMPRESS_DATA: return RECORD_DECOMPRESS;
    case DECOMPRESS_LIMIT: return RECORD_BOMB;
    case DECOMPRESS_MEMORY: return RECORD_MEMORY;
    default: return RECORD_SHORT;
    }
}

/* Twice the window, with what is left in it at its start. */
static bool grow_window(struct record_iter *iter)
{
    uint32_t bytes = MAX(iter->window_bytes * 2, RECORD_WINDOW_BYTES);
    if (bytes > RECORD_BYTES_MAX) return fail(iter, RECORD_BOMB);
    uint8_t *window = mem_get(iter->work->mem, bytes);
    if (window == NULL) return fail(iter, RECORD_MEMORY);
    if (iter->in.size > 0) memcpy(window, iter->in.data, iter->in.size);
    mem_put(iter->work->mem, iter->window, iter->window_bytes);
    iter->window = window;
    iter->window_bytes = bytes;
    iter->in.data = window;
    return true;
}

/* Bring at least one more byte into the window. False: none comes, or iter->fault. */
static bool refill(struct record_iter *iter)
{
    if (!iter->compressed) return false;
    bool full = iter->in.size == iter->window_bytes;
    if (full && !grow_window(iter)) return false;
    if (iter->in.data != iter->window && iter->in.size > 0)
        memmove(iter->window, iter->in.data, iter->in.size);
    iter->in.data = iter->window;
    uint32_t got = decompress_read(&iter->stream, iter->window + iter->in.size,
                                   iter->window_bytes - iter->in.size);
    iter->in.size += got;
    return got > 0;
}

/* Have `size` bytes in the window, as far as there are that many. */
static bool need(struct record_iter *iter, uint32_t size)
{
    while (iter->in.size < size) {
        if (!refill(iter)) return false;
    }
    return true;
}

/* Size of the record at the cursor with its length field; 0: iter->fault. */
static uint64_t record_size(struct record_iter *iter)
{
    if (!need(iter, VARINT_BYTES) && iter->fault != RECORD_OK) return 0;
    struct reader in = reader_of(iter->in);
    int32_t length = reader_varint(&in);
    if (in.fault != READER_OK) {
        (void)fail(iter, in.fault == READER_VARINT ? RECORD_VARINT : short_fault(iter));
        return 0;
    }
    if (length < 0) {
        (void)fail(iter, RECORD_BODY);
        return 0;
    }
    return (uint64_t)length + (uint64_t)(in.at - in.start);
}

/* What offset, timestamp and sequence are, from the batch's header. */
static void complete(const struct record_iter *iter, struct record *out)
{
    const struct batch_header *header = iter->header;
    out->offset = (int64_t)((uint64_t)header->base_offset + (uint64_t)(int64_t)out->offset_delta);
    out->timestamp_ms =
        (header->attributes & BATCH_APPEND_TIME) != 0
            ? header->max_timestamp
            : (int64_t)((uint64_t)header->base_timestamp + (uint64_t)out->timestamp_delta);
    out->sequence = header->base_sequence < 0
                        ? BATCH_NO_SEQUENCE
                        : batch_sequence_add(header->base_sequence, out->offset_delta);
    out->at = iter->at;
}

/* The end: with records counted, nothing may be left. */
static bool finish(struct record_iter *iter)
{
    if (iter->header->record_count == 0) return false;
    if (iter->in.size > 0) return fail(iter, RECORD_TRAILING);
    if (!iter->compressed) return false;
    if (iter->window == NULL && !grow_window(iter)) return false;
    if (refill(iter)) return fail(iter, RECORD_TRAILING);
    enum record_fault fault = short_fault(iter);
    bool clean = iter->stream.fault == DECOMPRESS_OK;
    /* A stream that is cut behind the last record does not decompress. */
    if (!clean) return fail(iter, fault == RECORD_SHORT ? RECORD_DECOMPRESS : fault);
    return false;
}

/* Take the last record away and see whether there is another: its size, or 0 at the end or with
 * iter->fault set. */
static uint64_t next_size(struct record_iter *iter)
{
    if (iter->fault != RECORD_OK) return 0;
    record_iter_consume(iter, iter->given);
    iter->given = 0;
    if (iter->left == 0) {
        (void)finish(iter);
        return 0;
    }
    return record_size(iter);
}

/* Parse the record of `size` bytes that is whole in the window. */
static bool parse_whole(struct record_iter *iter, uint32_t size, struct record *out)
{
    uint32_t used;
    enum record_fault fault = record_parse(view_of(iter->in.data, size), out, &used);
    if (fault != RECORD_OK) return fail(iter, fault);
    assert(used == size);
    complete(iter, out);
    iter->given = size;
    iter->left--;
    return true;
}

/* The next record, whole in the window: its size, or 0 as next_size. */
static uint32_t next_whole(struct record_iter *iter)
{
    uint64_t size = next_size(iter);
    if (size <= iter->in.size) return (uint32_t)size;
    enum record_fault fault = RECORD_OK;
    if (!iter->compressed)
        fault = RECORD_SHORT;
    else if (size > RECORD_BYTES_MAX)
        fault = RECORD_BOMB;
    else if (!need(iter, (uint32_t)size))
        fault = short_fault(iter);
    if (fault == RECORD_OK) return (uint32_t)size;
    (void)fail(iter, fault);
    return 0;
}

bool record_next(struct record_iter *iter, struct record *out)
{
    uint32_t size = next_whole(iter);
    return size > 0 && parse_whole(iter, size, out);
}

bool record_next_raw(struct record_iter *iter, struct view *bytes, uint64_t *at)
{
    uint32_t size = next_whole(iter);
    *at = iter->at;
    if (size == 0) return false;
    *bytes = view_of(iter->in.data, size);
    iter->given = size;
    iter->left--;
    return true;
}

/* ---- stepping over a large record ----------------------------------------------------------- */

/* What is left of the record that is being stepped over. */
struct skim {
    struct record_iter *iter;
    uint64_t left;
};

static int64_t skim_varint(struct skim *skim, uint32_t bytes_max)
{
    struct record_iter *iter = skim->iter;
    uint32_t most = (uint32_t)MIN(skim->left, (uint64_t)bytes_max);
    if (iter->fault != RECORD_OK) return 0;
    if (!need(iter, most) && iter->fault != RECORD_OK) return 0;

    struct reader in = reader_of(view_of(iter->in.data, MIN(most, iter->in.size)));
    int64_t value = bytes_max == VARINT_BYTES ? reader_varint(&in) : reader_varlong(&in);
    if (in.fault == READER_VARINT) {
        (void)fail(iter, RECORD_VARINT);
        return 0;
    }
    if (in.fault != READER_OK) {
        (void)fail(iter, most > iter->in.size ? short_fault(iter) : RECORD_SHORT);
        return 0;
    }
    record_iter_consume(iter, (uint32_t)(in.at - in.start));
    skim->left -= (uint64_t)(in.at - in.start);
    return value;
}

static void skim_bytes(struct skim *skim, uint64_t size)
{
    struct record_iter *iter = skim->iter;
    if (iter->fault != RECORD_OK) return;
    if (size > skim->left) {
        (void)fail(iter, RECORD_SHORT);
        return;
    }
    skim->left -= size;
    while (size > 0) {
        if (iter->in.size == 0 && !refill(iter)) {
            (void)fail(iter, short_fault(iter));
            return;
        }
        uint32_t piece = (uint32_t)MIN(size, (uint64_t)iter->in.size);
        record_iter_consume(iter, piece);
        size -= piece;
    }
}

/* A length and so many bytes: their size, without them. */
static struct view skim_value(struct skim *skim)
{
    int64_t size = skim_varint(skim, VARINT_BYTES);
    if (size < 0) return VIEW_NULL;
    skim_bytes(skim, (uint64_t)size);
    return view_of(NULL, (uint32_t)size);
}

static void skim_headers(struct skim *skim, int32_t count)
{
    struct record_iter *iter = skim->iter;
    if (iter->fault != RECORD_OK) return;
    if (count < 0 || (uint64_t)count > skim->left) {
        (void)fail(iter, RECORD_HEADER_COUNT);
        return;
    }
    for (int32_t i = 0; i < count && iter->fault == RECORD_OK; i++) {
        if (skim_value(skim).null) (void)fail(iter, RECORD_HEADER_KEY);
        (void)skim_value(skim);
    }
}

static bool skim_record(struct record_iter *iter, uint64_t size, struct record *out)
{
    uint64_t start = iter->at;
    struct skim skim = {iter, size};
    (void)skim_varint(&skim, VARINT_BYTES);
    out->attributes = 0;
    skim_bytes(&skim, 1);
    out->timestamp_delta = skim_varint(&skim, VARLONG_BYTES);
    out->offset_delta = (int32_t)skim_varint(&skim, VARINT_BYTES);
    out->key = skim_value(&skim);
    out->value = skim_value(&skim);
    out->header_count = (int32_t)skim_varint(&skim, VARINT_BYTES);
    out->header_bytes = view_of(NULL, (uint32_t)skim.left);
    skim_headers(&skim, out->header_count);
    if (iter->fault == RECORD_OK && skim.left > 0) (void)fail(iter, RECORD_BODY);
    if (iter->fault != RECORD_OK) return false;
    complete(iter, out);
    out->at = start;
    out->bytes = view_of(NULL, (uint32_t)size);
    iter->left--;
    return true;
}

bool record_next_skim(struct record_iter *iter, struct record *out)
{
    uint64_t size = next_size(iter);
    if (size == 0) return false;
    if (size > iter->in.size && !iter->compressed) return fail(iter, RECORD_SHORT);
    if (size > RECORD_WINDOW_BYTES && size > iter->in.size) return skim_record(iter, size, out);
    if (!need(iter, (uint32_t)size)) return fail(iter, short_fault(iter));
    return parse_whole(iter, (uint32_t)size, out);
}

/* ---- finding -------------------------------------------------------------------------------- */

enum record_fault record_find_time(struct compress_work *work,
                                   struct view batch,
                                   int64_t timestamp_ms,
                                   int64_t offset_min,
                                   struct record_spot *spot)
{
    *spot = (struct record_spot){-1, BATCH_NO_TIMESTAMP};
    struct batch_header header;
    enum record_fault fault = batch_check(batch, 0, &header);
    if (fault != RECORD_OK) return fault;
    if (header.magic < 2) return legacy_find_time(work, batch, timestamp_ms, offset_min, spot);

    struct record_iter iter;
    struct record record;
    record_iter_begin(&iter, work, &header, batch);
    while (record_next_skim(&iter, &record)) {
        if (record.timestamp_ms < timestamp_ms || record.offset < offset_min) continue;
        *spot = (struct record_spot){record.offset, record.timestamp_ms};
        break;
    }
    return record_iter_end(&iter);
}

enum record_fault record_find_latest(struct compress_work *work,
                                     struct view batch,
                                     struct record_spot *spot)
{
    struct batch_header header;
    *spot = (struct record_spot){-1, BATCH_NO_TIMESTAMP};
    enum record_fault fault = batch_check(batch, 0, &header);
    if (fault != RECORD_OK) return fault;
    return record_find_time(work, batch, header.max_timestamp, INT64_MIN, spot);
}
