/* legacy_convert.c - message sets into batches and back, as Apache Kafka 3.9 did for old requests.
 */
#include "base/limits.h"
#include "record/batch_build.h"
#include "record/crc.h"
#include "record/legacy.h"

/* ---- up: a produced message set becomes one batch ------------------------------------------- */

/* What the scan over the top-level messages found. */
struct legacy_set {
    int8_t magic; /* Of the first. */
    bool mixed;
    uint8_t codec; /* Of the last compressed one. */
    uint32_t count;
};

static enum record_fault scan_set(const struct batch_rules *rules,
                                  struct view set,
                                  struct legacy_set *out)
{
    *out = (struct legacy_set){0};
    struct batch_scan scan = batch_scan_of(set);
    struct batch_header header;
    struct view message;
    for (; batch_next(&scan, &header, &message); out->count++) {
        if (out->count == 0) out->magic = header.magic;
        if (header.magic != out->magic) out->mixed = true;
        if (message.size > rules->message_bytes_max) return RECORD_TOO_LARGE;
        if (!batch_crc_valid(&header, message)) return RECORD_CRC;
        if (batch_codec(&header) >= CODEC_COUNT) return RECORD_CODEC;
        if (batch_codec(&header) != CODEC_NONE) out->codec = batch_codec(&header);
    }
    if (scan.fault != RECORD_OK) return scan.fault;
    if (out->count == 0) return RECORD_NO_BATCH;
    if (out->magic == 2) return RECORD_MAGIC_OLD;
    if (out->codec != CODEC_NONE && out->count > 1) return RECORD_SECOND_BATCH;
    return out->mixed ? RECORD_MAGIC_MIXED : RECORD_OK;
}

static bool inner_crc_valid(struct view message)
{
    uint32_t crc = load_be32(message.data + 12);
    return crc_32(message.data + BATCH_AT_MAGIC, message.size - BATCH_AT_MAGIC) == crc;
}

static enum record_fault check_time(const struct batch_rules *rules,
                                    const struct legacy_message *outer,
                                    int64_t timestamp_ms)
{
    bool marked = outer->magic == 1 && (outer->attributes & BATCH_APPEND_TIME) != 0;
    if (rules->append_time || timestamp_ms == BATCH_NO_TIMESTAMP)
        return marked ? RECORD_TIME_TYPE : RECORD_OK;
    int64_t age = (int64_t)((uint64_t)rules->wall_ms - (uint64_t)timestamp_ms);
    int64_t ahead = (int64_t)((uint64_t)timestamp_ms - (uint64_t)rules->wall_ms);
    if (age > rules->before_max_ms || ahead > rules->after_max_ms) return RECORD_TIME_RANGE;
    return RECORD_OK;
}

/* One record of the set. RECORD_CRC and RECORD_TIME_VALUE end the work at once. */
static enum record_fault check_message(const struct batch_rules *rules,
                                       const struct legacy_iter *iter,
                                       const struct record *record)
{
    const struct legacy_message *outer = &iter->outer;
    if (iter->wrapper) {
        if ((int8_t)record->bytes.data[BATCH_AT_MAGIC] != outer->magic) return RECORD_MAGIC_MIXED;
        if (!inner_crc_valid(record->bytes)) return RECORD_CRC;
    }
    if (rules->compacted && record->key.null) return RECORD_NULL_KEY;
    enum record_fault fault = check_time(rules, outer, record->timestamp_ms);
    if (fault != RECORD_OK) return fault;
    bool negative = record->timestamp_ms < 0 && record->timestamp_ms != BATCH_NO_TIMESTAMP;
    return negative ? RECORD_TIME_VALUE : RECORD_OK;
}

static bool is_time_fault(enum record_fault fault)
{
    return fault == RECORD_TIME_RANGE || fault == RECORD_TIME_TYPE;
}

/* Check the records of one top-level message and append them. */
static enum record_fault convert_message(struct compress_work *work,
                                         const struct batch_rules *rules,
                                         struct view message,
                                         struct batch_build *build)
{
    struct legacy_iter iter;
    struct record record;
    enum record_fault worst = RECORD_OK;
    legacy_iter_begin(&iter, work, message);
    while (legacy_next(&iter, &record)) {
        enum record_fault fault = check_message(rules, &iter, &record);
        if (fault == RECORD_CRC || fault == RECORD_TIME_VALUE) {
            worst = fault;
            break;
        }
        if (worst == RECORD_OK || (is_time_fault(fault) && !is_time_fault(worst))) worst = fault;
        struct record_input input = {
            .timestamp_ms = record.timestamp_ms,
            .key = record.key,
            .value = record.value,
        };
        batch_build_add(build, &input);
    }
    enum record_fault fault = legacy_iter_end(&iter);
    return fault != RECORD_OK ? fault : worst;
}

enum record_fault legacy_upgrade(struct compress_work *work,
                                 const struct batch_rules *rules,
                                 struct view set,
                                 struct sink *out,
                                 struct batch_verdict *verdict)
{
    assert(out->size_bytes == 0);
    *verdict = (struct batch_verdict){0};
    struct legacy_set found;
    verdict->fault = scan_set(rules, set, &found);
    if (verdict->fault != RECORD_OK) return verdict->fault;

    bool keep = rules->codec == BATCH_CODEC_PRODUCER;
    struct batch_build_options options = batch_build_plain;
    options.codec = keep ? (enum codec)found.codec : (enum codec)rules->codec;
    options.level = keep ? COMPRESS_LEVEL_DEFAULT : rules->level;
    options.append_time = rules->append_time;
    options.append_time_ms = rules->wall_ms;

    struct batch_build build;
    batch_build_begin(&build, work, out, &options);
    struct batch_scan scan = batch_scan_of(set);
    struct batch_header header;
    struct view message;
    while (verdict->fault == RECORD_OK && batch_next(&scan, &header, &message))
        verdict->fault = convert_message(work, rules, message, &build);
    if (verdict->fault != RECORD_OK) {
        batch_build_abort(&build);
        return verdict->fault;
    }
    struct view batch;
    verdict->fault = batch_build_finish(&build, -1, &batch);
    if (verdict->fault != RECORD_OK) return verdict->fault;

    enum record_fault loaded = batch_header_load(batch, &verdict->header);
    assert(loaded == RECORD_OK);
    verdict->size_bytes = batch.size;
    verdict->codec = options.codec;
    verdict->level = options.level;
    verdict->append_time = options.append_time;
    verdict->max_timestamp_ms = verdict->header.max_timestamp;
    return RECORD_OK;
}

/* ---- down: batches become a message set ----------------------------------------------------- */

static void put_bytes(struct sink *out, struct view bytes)
{
    sink_put_be32(out, bytes.null ? UINT32_MAX : bytes.size);
    if (!bytes.null) sink_put(out, bytes.data, bytes.size);
}

/* Append one message with its CRC. */
static void put_message(struct sink *out, const struct legacy_message *message)
{
    uint32_t start = out->size_bytes;
    sink_put_be64(out, (uint64_t)message->offset);
    sink_put_be64(out, 0); /* Size and CRC, set below. */
    sink_put_u8(out, (uint8_t)message->magic);
    sink_put_u8(out, message->attributes);
    if (message->magic == 1) sink_put_be64(out, (uint64_t)message->timestamp_ms);
    put_bytes(out, message->key);
    put_bytes(out, message->value);
    if (out->fault != SINK_OK) return;

    uint8_t *at = out->data + start;
    uint32_t size = out->size_bytes - start;
    store_be32(at + 8, size - BATCH_FRAME_BYTES);
    store_be32(at + 12, crc_32(at + BATCH_AT_MAGIC, size - BATCH_AT_MAGIC));
}

/* One batch on its way down. */
struct legacy_down {
    struct compress_work *work;
    const struct batch_header *header;
    int8_t magic;
    int64_t fetch_offset;
    struct sink *out; /* Messages; of a compressed batch the inner ones. */
    int64_t first;    /* Offsets of the first and last record taken; -1: none. */
    int64_t last;
    int64_t max_timestamp_ms;
};

static void put_record(struct legacy_down *down, const struct record *record, bool compressed)
{
    if (!compressed && record->offset < down->fetch_offset) return;
    if (down->first < 0) down->first = record->offset;
    down->last = record->offset;
    down->max_timestamp_ms = MAX(down->max_timestamp_ms, record->timestamp_ms);
    bool relative = compressed && down->magic == 1;
    struct legacy_message message = {
        .offset = (int64_t)((uint64_t)record->offset - (relative ? (uint64_t)down->first : 0)),
        .magic = down->magic,
        .attributes = down->magic == 1 ? down->header->attributes & BATCH_APPEND_TIME : 0,
        .timestamp_ms = record->timestamp_ms,
        .key = record->key,
        .value = record->value,
    };
    put_message(down->out, &message);
}

/* The records of the batch (magic 2, or a message of magic 1) as messages in down->out. */
static enum record_fault put_records(struct legacy_down *down, struct view batch)
{
    bool compressed = batch_codec(down->header) != CODEC_NONE;
    struct record record;
    if (down->header->magic == 2) {
        struct record_iter iter;
        record_iter_begin(&iter, down->work, down->header, batch);
        while (record_next(&iter, &record))
            put_record(down, &record, compressed);
        return record_iter_end(&iter);
    }
    struct legacy_iter iter;
    legacy_iter_begin(&iter, down->work, batch);
    while (legacy_next(&iter, &record))
        put_record(down, &record, compressed);
    return legacy_iter_end(&iter);
}

/* The inner messages in one wrapper. */
static enum record_fault put_wrapper(const struct legacy_down *down,
                                     struct view inner,
                                     struct sink *out)
{
    struct sink value;
    struct compress stream;
    struct compress_options options = {
        .codec = batch_codec(down->header),
        .level = COMPRESS_LEVEL_DEFAULT,
        .magic = down->magic,
    };
    sink_init(&value, down->work->mem, RECORD_BYTES_MAX);
    compress_begin(&stream, down->work, &value, options);
    compress_write(&stream, inner.data, inner.size);
    if (!compress_end(&stream)) {
        enum sink_fault fault = value.fault;
        sink_free(&value);
        return fault == SINK_LIMIT ? RECORD_TOO_LARGE : RECORD_MEMORY;
    }
    uint8_t type = down->magic == 1 ? down->header->attributes & BATCH_APPEND_TIME : 0;
    struct legacy_message wrapper = {
        .offset = down->last,
        .magic = down->magic,
        .attributes = (uint8_t)(batch_codec(down->header) | type),
        .timestamp_ms = down->max_timestamp_ms,
        .key = VIEW_NULL,
        .value = sink_view(&value),
    };
    put_message(out, &wrapper);
    sink_free(&value);
    return RECORD_OK;
}

static enum record_fault convert_batch(struct legacy_down *down,
                                       struct view batch,
                                       struct sink *out)
{
    down->first = down->last = -1;
    down->max_timestamp_ms = BATCH_NO_TIMESTAMP;
    if (batch_codec(down->header) == CODEC_NONE) {
        down->out = out;
        return put_records(down, batch);
    }
    struct sink inner;
    sink_init(&inner, down->work->mem, RECORD_INFLATED_MAX);
    down->out = &inner;
    enum record_fault fault = put_records(down, batch);
    if (fault == RECORD_OK && inner.fault != SINK_OK)
        fault = inner.fault == SINK_LIMIT ? RECORD_BOMB : RECORD_MEMORY;
    if (fault == RECORD_OK && down->first >= 0) fault = put_wrapper(down, sink_view(&inner), out);
    sink_free(&inner);
    return fault;
}

enum record_fault legacy_downgrade(struct compress_work *work,
                                   struct view batches,
                                   int8_t magic,
                                   int64_t fetch_offset,
                                   struct sink *out)
{
    assert(magic == 0 || magic == 1);
    uint32_t start = out->size_bytes;
    struct batch_scan scan = batch_scan_of(batches);
    struct batch_header header;
    struct view batch;
    while (batch_next(&scan, &header, &batch)) {
        if (header.magic <= magic) {
            sink_put(out, batch.data, batch.size);
            continue;
        }
        if ((header.attributes & BATCH_CONTROL) != 0) continue;
        if (batch_codec(&header) == CODEC_ZSTD) {
            if (out->size_bytes == start) return RECORD_ZSTD_OLD;
            break;
        }
        struct legacy_down down = {
            .work = work, .header = &header, .magic = magic, .fetch_offset = fetch_offset};
        enum record_fault fault = convert_batch(&down, batch, out);
        if (fault != RECORD_OK) return fault;
    }
    if (scan.fault != RECORD_OK) return scan.fault;
    if (out->fault == SINK_OK) return RECORD_OK;
    return out->fault == SINK_LIMIT ? RECORD_TOO_LARGE : RECORD_MEMORY;
}
