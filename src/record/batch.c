/* batch.c - headers, frames and checks; the byte table is at the head of batch.h. */
#include "record/batch.h"

#include "record/crc.h"

/* Smallest `length` of each magic: all fixed fields, empty key and value. */
#define LENGTH_MIN_0 14
#define LENGTH_MIN_1 22
#define LENGTH_MIN_2 49

uint64_t batch_frame_size(struct view prefix)
{
    assert(prefix.size >= BATCH_MAGIC_BYTES);
    int32_t length = (int32_t)load_be32(prefix.data + BATCH_AT_LENGTH);
    if (length < BATCH_LENGTH_MIN) return 0;
    return (uint64_t)length + BATCH_FRAME_BYTES;
}

/* The fields of one message of magic 0 or 1 that a batch's header has too. */
static enum record_fault load_message(struct view bytes, struct batch_header *out)
{
    const uint8_t *p = bytes.data;
    bool timed = out->magic == 1;
    if (out->length < (timed ? LENGTH_MIN_1 : LENGTH_MIN_0)) return RECORD_LENGTH;
    if (bytes.size < BATCH_FRAME_BYTES + (timed ? 14u : 6u)) return RECORD_NO_BATCH;

    out->crc = load_be32(p + 12);
    out->attributes = p[17] & (timed ? BATCH_CODEC_MASK | BATCH_APPEND_TIME : BATCH_CODEC_MASK);
    out->leader_epoch = -1;
    out->max_timestamp = timed ? (int64_t)load_be64(p + 18) : BATCH_NO_TIMESTAMP;
    out->base_timestamp = out->max_timestamp;
    out->producer_id = BATCH_NO_PRODUCER;
    out->producer_epoch = -1;
    out->base_sequence = BATCH_NO_SEQUENCE;
    out->record_count = batch_codec(out) == CODEC_NONE ? 1 : -1;
    return RECORD_OK;
}

enum record_fault batch_header_load(struct view bytes, struct batch_header *out)
{
    *out = (struct batch_header){0};
    if (bytes.size < BATCH_MAGIC_BYTES) return RECORD_NO_BATCH;

    const uint8_t *p = bytes.data;
    out->base_offset = (int64_t)load_be64(p + BATCH_AT_BASE_OFFSET);
    out->length = (int32_t)load_be32(p + BATCH_AT_LENGTH);
    out->magic = (int8_t)p[BATCH_AT_MAGIC];
    if (out->length < BATCH_LENGTH_MIN) return RECORD_LENGTH;
    if (out->magic < 0 || out->magic > 2) return RECORD_MAGIC;
    if (out->magic < 2) return load_message(bytes, out);

    if (out->length < LENGTH_MIN_2) return RECORD_LENGTH;
    if (bytes.size < BATCH_HEADER_BYTES) return RECORD_NO_BATCH;
    out->leader_epoch = (int32_t)load_be32(p + BATCH_AT_LEADER_EPOCH);
    out->crc = load_be32(p + BATCH_AT_CRC);
    out->attributes = load_be16(p + BATCH_AT_ATTRIBUTES);
    out->last_offset_delta = (int32_t)load_be32(p + BATCH_AT_LAST_OFFSET_DELTA);
    out->base_timestamp = (int64_t)load_be64(p + BATCH_AT_BASE_TIMESTAMP);
    out->max_timestamp = (int64_t)load_be64(p + BATCH_AT_MAX_TIMESTAMP);
    out->producer_id = (int64_t)load_be64(p + BATCH_AT_PRODUCER_ID);
    out->producer_epoch = (int16_t)load_be16(p + BATCH_AT_PRODUCER_EPOCH);
    out->base_sequence = (int32_t)load_be32(p + BATCH_AT_BASE_SEQUENCE);
    out->record_count = (int32_t)load_be32(p + BATCH_AT_RECORD_COUNT);
    return RECORD_OK;
}

bool batch_crc_valid(const struct batch_header *header, struct view batch)
{
    assert(batch.size >= batch_size(header));
    uint32_t size = batch_size(header);
    if (header->magic == 2)
        return crc_32c(batch.data + BATCH_AT_ATTRIBUTES, size - BATCH_AT_ATTRIBUTES) == header->crc;
    return crc_32(batch.data + BATCH_AT_MAGIC, size - BATCH_AT_MAGIC) == header->crc;
}

static enum record_fault check_counts(const struct batch_header *header)
{
    if (header->last_offset_delta < 0) return RECORD_LAST_DELTA;
    if (header->record_count < 0) return RECORD_COUNT;
    if ((int64_t)header->record_count > (int64_t)header->last_offset_delta + 1)
        return RECORD_COUNT_MISMATCH;
    return RECORD_OK;
}

enum record_fault batch_check(struct view bytes, uint32_t checks, struct batch_header *out)
{
    enum record_fault fault = batch_header_load(bytes, out);
    if (fault != RECORD_OK) return fault;
    if (bytes.size < batch_size(out)) return RECORD_NO_BATCH;
    if ((checks & BATCH_CHECK_CRC) != 0 && !batch_crc_valid(out, bytes)) return RECORD_CRC;
    if (batch_codec(out) >= CODEC_COUNT) return RECORD_CODEC;
    if ((checks & BATCH_CHECK_COUNTS) != 0 && out->magic == 2) return check_counts(out);
    return RECORD_OK;
}

bool batch_next(struct batch_scan *scan, struct batch_header *out, struct view *batch)
{
    assert(scan->at <= scan->bytes.size);

    if (scan->fault != RECORD_OK) return false;
    uint32_t left = scan->bytes.size - scan->at;
    if (left < BATCH_FRAME_BYTES) return false;
    struct view rest = view_of(scan->bytes.data + scan->at, left);
    if ((int32_t)load_be32(rest.data + BATCH_AT_LENGTH) < BATCH_LENGTH_MIN) {
        scan->fault = RECORD_LENGTH;
        return false;
    }
    enum record_fault fault = batch_header_load(rest, out);
    if (fault == RECORD_NO_BATCH) return false;
    if (fault == RECORD_MAGIC) {
        scan->fault = fault;
        return false;
    }
    if (rest.size < batch_size(out)) return false;
    if (fault != RECORD_OK && !scan->frames) {
        scan->fault = fault;
        return false;
    }
    *batch = view_of(rest.data, batch_size(out));
    scan->at += batch_size(out);
    return true;
}

void batch_stamp(uint8_t *batch, int64_t base_offset, int32_t leader_epoch)
{
    assert(batch[BATCH_AT_MAGIC] == 2);
    store_be64(batch + BATCH_AT_BASE_OFFSET, (uint64_t)base_offset);
    store_be32(batch + BATCH_AT_LEADER_EPOCH, (uint32_t)leader_epoch);
}

static void store_crc(uint8_t *batch, uint32_t size)
{
    uint32_t crc = crc_32c(batch + BATCH_AT_ATTRIBUTES, size - BATCH_AT_ATTRIBUTES);
    store_be32(batch + BATCH_AT_CRC, crc);
}

bool batch_set_timestamp(uint8_t *batch, uint32_t size, bool append_time, int64_t max_timestamp_ms)
{
    assert(size >= BATCH_HEADER_BYTES);
    assert(batch[BATCH_AT_MAGIC] == 2);

    uint16_t attributes = load_be16(batch + BATCH_AT_ATTRIBUTES);
    bool is_append_time = (attributes & BATCH_APPEND_TIME) != 0;
    int64_t is_max = (int64_t)load_be64(batch + BATCH_AT_MAX_TIMESTAMP);
    if (is_append_time == append_time && is_max == max_timestamp_ms) return false;

    attributes &= BATCH_CODEC_MASK | BATCH_TRANSACTIONAL | BATCH_CONTROL | BATCH_DELETE_HORIZON;
    if (append_time) attributes |= BATCH_APPEND_TIME;
    store_be16(batch + BATCH_AT_ATTRIBUTES, attributes);
    store_be64(batch + BATCH_AT_MAX_TIMESTAMP, (uint64_t)max_timestamp_ms);
    store_crc(batch, size);
    return true;
}

void batch_header_store(const struct batch_header *header, uint8_t *batch)
{
    assert(header->magic == 2);
    assert(header->length >= LENGTH_MIN_2);

    store_be64(batch + BATCH_AT_BASE_OFFSET, (uint64_t)header->base_offset);
    store_be32(batch + BATCH_AT_LENGTH, (uint32_t)header->length);
    store_be32(batch + BATCH_AT_LEADER_EPOCH, (uint32_t)header->leader_epoch);
    batch[BATCH_AT_MAGIC] = 2;
    store_be16(batch + BATCH_AT_ATTRIBUTES, header->attributes);
    store_be32(batch + BATCH_AT_LAST_OFFSET_DELTA, (uint32_t)header->last_offset_delta);
    store_be64(batch + BATCH_AT_BASE_TIMESTAMP, (uint64_t)header->base_timestamp);
    store_be64(batch + BATCH_AT_MAX_TIMESTAMP, (uint64_t)header->max_timestamp);
    store_be64(batch + BATCH_AT_PRODUCER_ID, (uint64_t)header->producer_id);
    store_be16(batch + BATCH_AT_PRODUCER_EPOCH, (uint16_t)header->producer_epoch);
    store_be32(batch + BATCH_AT_BASE_SEQUENCE, (uint32_t)header->base_sequence);
    store_be32(batch + BATCH_AT_RECORD_COUNT, (uint32_t)header->record_count);
    store_crc(batch, batch_size(header));
}
