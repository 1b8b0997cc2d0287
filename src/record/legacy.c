/* legacy.c - reading messages of magic 0 and 1; layouts and offsets are at the head of legacy.h.
 *
 * A wrapper is decompressed whole, since the base of its inner offsets is known only with the last
 * inner one. The inner set ends silently before a message that is cut. */
#include "record/legacy.h"

#include "base/limits.h"
#include "record/crc.h"

#define FIXED_0       18u /* Offset of the key's length in magic 0 and 1. */
#define FIXED_1       26u
#define READ_STEP     (64u * 1024u)
#define SIZE_MIN      14
#define AT_SIZE       8u
#define AT_ATTRIBUTES 17u

/* An i32 length and so many bytes at `*at`. False: they run over the end. */
static bool take(struct view bytes, uint32_t *at, struct view *out)
{
    if (bytes.size - *at < 4) return false;
    int32_t size = (int32_t)load_be32(bytes.data + *at);
    *at += 4;
    *out = VIEW_NULL;
    if (size < 0) return true;
    if ((uint32_t)size > bytes.size - *at) return false;
    *out = view_of(bytes.data + *at, (uint32_t)size);
    *at += (uint32_t)size;
    return true;
}

enum record_fault legacy_message_load(struct view bytes, struct legacy_message *out)
{
    assert(bytes.size >= BATCH_MAGIC_BYTES);
    *out = (struct legacy_message){.timestamp_ms = BATCH_NO_TIMESTAMP};
    out->offset = (int64_t)load_be64(bytes.data);
    out->magic = (int8_t)bytes.data[BATCH_AT_MAGIC];
    if (out->magic != 0 && out->magic != 1) return RECORD_MAGIC;

    uint32_t at = out->magic == 0 ? FIXED_0 : FIXED_1;
    if (bytes.size < at + 8) return RECORD_SHORT;
    out->attributes = bytes.data[AT_ATTRIBUTES];
    if (out->magic == 1) out->timestamp_ms = (int64_t)load_be64(bytes.data + 18);
    if (!take(bytes, &at, &out->key) || !take(bytes, &at, &out->value)) return RECORD_SHORT;
    return RECORD_OK;
}

/* The next whole inner message at `at`. False: the end, a cut one, or iter->fault. */
static bool inner_next(struct legacy_iter *iter, uint32_t at, struct view *message)
{
    uint32_t left = iter->inner.size_bytes - at;
    if (left < BATCH_FRAME_BYTES) return false;
    struct view rest = view_of(iter->inner.data + at, left);
    int32_t size = (int32_t)load_be32(rest.data + AT_SIZE);
    if (size < SIZE_MIN) {
        iter->fault = RECORD_LENGTH;
        return false;
    }
    if (rest.size - BATCH_FRAME_BYTES < (uint32_t)size) return false;
    *message = view_of(rest.data, BATCH_FRAME_BYTES + (uint32_t)size);
    return true;
}

/* Decompress the wrapper's value. */
static enum record_fault inflate_wrapper(struct legacy_iter *iter)
{
    struct decompress stream;
    struct decompress_options options = {
        .codec = iter->outer.attributes & BATCH_CODEC_MASK,
        .magic = iter->outer.magic,
        .limit_bytes = RECORD_INFLATED_MAX,
    };
    decompress_begin(&stream, iter->work, iter->outer.value, options);
    uint32_t got;
    do {
        uint8_t *room = sink_room(&iter->inner, READ_STEP);
        if (room == NULL) break;
        got = decompress_read(&stream, room, READ_STEP);
        sink_used(&iter->inner, got);
    } while (got > 0);
    decompress_end(&stream);

    if (iter->inner.fault != SINK_OK)
        return iter->inner.fault == SINK_LIMIT ? RECORD_BOMB : RECORD_MEMORY;
    switch (stream.fault) {
    case DECOMPRESS_OK: return RECORD_OK;
    case DECOMPRESS_LIMIT: return RECORD_BOMB;
    case DECOMPRESS_MEMORY: return RECORD_MEMORY;
    default: return RECORD_DECOMPRESS;
    }
}

/* Walk over the inner messages once: is there one, and what is to be added to their offsets? */
static enum record_fault find_base(struct legacy_iter *iter)
{
    struct view message;
    int64_t last_offset = -1;
    uint32_t at = 0;
    for (; inner_next(iter, at, &message); at += message.size)
        last_offset = (int64_t)load_be64(message.data);
    if (iter->fault != RECORD_OK) return iter->fault;
    if (at == 0) return RECORD_WRAPPER;
    if (iter->outer.magic == 0 || iter->outer.offset == 0) return RECORD_OK;
    if (iter->outer.offset < last_offset) return RECORD_WRAPPER;
    iter->offset_base = (int64_t)((uint64_t)iter->outer.offset - (uint64_t)last_offset);
    return RECORD_OK;
}

void legacy_iter_begin(struct legacy_iter *iter, struct compress_work *work, struct view message)
{
    *iter = (struct legacy_iter){.work = work, .whole = message};
    sink_init(&iter->inner, work->mem, RECORD_INFLATED_MAX);
    iter->fault = legacy_message_load(message, &iter->outer);
    if (iter->fault != RECORD_OK) return;

    uint8_t codec = iter->outer.attributes & BATCH_CODEC_MASK;
    iter->wrapper = codec != CODEC_NONE;
    if (!iter->wrapper) return;
    if (codec >= CODEC_COUNT)
        iter->fault = RECORD_CODEC;
    else if (codec == CODEC_ZSTD || iter->outer.value.null)
        iter->fault = RECORD_WRAPPER;
    else
        iter->fault = inflate_wrapper(iter);
    if (iter->fault == RECORD_OK) iter->fault = find_base(iter);
}

/* What a message's fields are as a record. */
static void set_record(const struct legacy_message *message, struct view bytes, struct record *out)
{
    *out = (struct record){
        .offset = message->offset,
        .timestamp_ms = message->timestamp_ms,
        .sequence = BATCH_NO_SEQUENCE,
        .attributes = message->attributes,
        .key = message->key,
        .value = message->value,
        .bytes = bytes,
    };
}

bool legacy_next(struct legacy_iter *iter, struct record *out)
{
    if (iter->fault != RECORD_OK) return false;
    if (!iter->wrapper) {
        if (iter->at > 0) return false;
        set_record(&iter->outer, iter->whole, out);
        iter->at = iter->whole.size;
        return true;
    }
    struct view bytes;
    struct legacy_message inner;
    if (!inner_next(iter, iter->at, &bytes)) return false;
    iter->fault = legacy_message_load(bytes, &inner);
    if (iter->fault == RECORD_OK && (inner.attributes & BATCH_CODEC_MASK) != CODEC_NONE)
        iter->fault = RECORD_NESTED;
    if (iter->fault != RECORD_OK) return false;

    set_record(&inner, bytes, out);
    out->at = iter->at;
    out->offset = (int64_t)((uint64_t)inner.offset + (uint64_t)iter->offset_base);
    bool append_time = iter->outer.magic == 1 && (iter->outer.attributes & BATCH_APPEND_TIME) != 0;
    if (append_time) out->timestamp_ms = iter->outer.timestamp_ms;
    out->offset_delta = iter->index++;
    iter->at += bytes.size;
    return true;
}

enum record_fault legacy_iter_end(struct legacy_iter *iter)
{
    sink_free(&iter->inner);
    return iter->fault;
}

enum record_fault legacy_find_time(struct compress_work *work,
                                   struct view message,
                                   int64_t timestamp_ms,
                                   int64_t offset_min,
                                   struct record_spot *spot)
{
    struct legacy_iter iter;
    struct record record;
    *spot = (struct record_spot){-1, BATCH_NO_TIMESTAMP};
    legacy_iter_begin(&iter, work, message);
    while (legacy_next(&iter, &record)) {
        if (record.timestamp_ms < timestamp_ms || record.offset < offset_min) continue;
        *spot = (struct record_spot){record.offset, record.timestamp_ms};
        break;
    }
    return legacy_iter_end(&iter);
}
