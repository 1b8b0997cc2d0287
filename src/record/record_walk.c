/* record_walk.c - a records value, field by field, for the tools. Nothing here is fast. */
#include "record/record_walk.h"

#include "base/limits.h"
#include "base/reader.h"
#include "record/control.h"
#include "record/legacy.h"

struct walk {
    struct record_visitor *visitor;
    struct compress_work *work;
    uint64_t base; /* Offset of the bytes being read, from the start of all. */
    bool inflated;
    bool stopped; /* By the visitor. */
    enum record_fault fault;
};

static void emit(struct walk *walk, const struct record_walk_event *event)
{
    if (walk->stopped) return;
    struct record_walk_event full = *event;
    full.inflated = walk->inflated;
    full.offset += walk->base;
    walk->stopped = !walk->visitor->visit(walk->visitor, &full);
}

static void begin(struct walk *walk, const char *name, int32_t index, struct view at, uint64_t from)
{
    struct record_walk_event event = {.kind = RECORD_WALK_BEGIN,
                                      .name = name,
                                      .index = index,
                                      .offset = from,
                                      .size = at.size,
                                      .bytes = at};
    emit(walk, &event);
}

static void end(struct walk *walk, const char *name)
{
    struct record_walk_event event = {.kind = RECORD_WALK_END, .name = name, .index = -1};
    emit(walk, &event);
}

static void fault(struct walk *walk, enum record_fault what, uint64_t offset)
{
    if (walk->fault == RECORD_OK) walk->fault = what;
    struct record_walk_event event = {.kind = RECORD_WALK_FAULT,
                                      .index = -1,
                                      .offset = offset,
                                      .text = record_fault_text(what),
                                      .fault = what};
    emit(walk, &event);
}

static void oddity(struct walk *walk, const char *text, uint64_t offset, uint64_t size)
{
    struct record_walk_event event = {
        .kind = RECORD_WALK_ODDITY, .index = -1, .offset = offset, .size = size, .text = text};
    emit(walk, &event);
}

/* A number of a fixed place. */
struct number {
    const char *name;
    const char *type;
    uint16_t offset;
    uint16_t size;
    int64_t value;
    const char *text;
};

static void number(struct walk *walk, const struct number *what)
{
    struct record_walk_event event = {.kind = RECORD_WALK_NUMBER,
                                      .name = what->name,
                                      .type = what->type,
                                      .index = -1,
                                      .offset = what->offset,
                                      .size = what->size,
                                      .number = what->value,
                                      .text = what->text};
    emit(walk, &event);
}

static const char *codec_text(uint8_t codec)
{
    return codec < CODEC_COUNT ? compress_name((enum codec)codec) : "no such codec";
}

static int64_t size_of(struct view bytes)
{
    return bytes.null ? -1 : (int64_t)bytes.size;
}

static const char *yes_no(bool value)
{
    return value ? "true" : "false";
}

/* ---- magic 2: the header -------------------------------------------------------------------- */

static void walk_attributes(struct walk *walk, uint16_t attributes)
{
    bool append_time = (attributes & BATCH_APPEND_TIME) != 0;
    bool transactional = (attributes & BATCH_TRANSACTIONAL) != 0;
    bool control = (attributes & BATCH_CONTROL) != 0;
    bool horizon = (attributes & BATCH_DELETE_HORIZON) != 0;
    uint8_t codec = attributes & BATCH_CODEC_MASK;
    const struct number parts[] = {
        {"attributes",         "int16", 21, 2, (int16_t)attributes, NULL                                        },
        {"compression",        "bits",  22, 1, codec,               codec_text(codec)                           },
        {"timestampType",      "bits",  22, 1, append_time,         append_time ? "LogAppendTime" : "CreateTime"},
        {"isTransactional",    "bits",  22, 1, transactional,       yes_no(transactional)                       },
        {"isControlBatch",     "bits",  22, 1, control,             yes_no(control)                             },
        {"hasDeleteHorizonMs", "bits",  22, 1, horizon,             yes_no(horizon)                             },
    };
    for (uint32_t i = 0; i < ARRAY_SIZE(parts); i++)
        number(walk, &parts[i]);
    if ((attributes & 0xff80u) != 0) oddity(walk, "unused attribute bits are set", 21, 2);
}

static void walk_header(struct walk *walk, const struct batch_header *header, struct view batch)
{
    bool sound = batch_crc_valid(header, batch);
    bool horizon = (header->attributes & BATCH_DELETE_HORIZON) != 0;
    const struct number head[] = {
        {"baseOffset",           "int64",  0,  8, header->base_offset,  NULL                                },
        {"batchLength",          "int32",  8,  4, header->length,       NULL                                },
        {"partitionLeaderEpoch", "int32",  12, 4, header->leader_epoch, NULL                                },
        {"magic",                "int8",   16, 1, header->magic,        NULL                                },
        {"crc",                  "uint32", 17, 4, header->crc,          sound ? "matches" : "does not match"},
    };
    const struct number tail[] = {
        {"lastOffsetDelta", "int32", 23, 4, header->last_offset_delta, NULL},
        {"baseTimestamp",   "int64", 27, 8, header->base_timestamp,
         horizon ? "delete horizon" : NULL                                 },
        {"maxTimestamp",    "int64", 35, 8, header->max_timestamp,     NULL},
        {"producerId",      "int64", 43, 8, header->producer_id,       NULL},
        {"producerEpoch",   "int16", 51, 2, header->producer_epoch,    NULL},
        {"baseSequence",    "int32", 53, 4, header->base_sequence,     NULL},
        {"recordsCount",    "int32", 57, 4, header->record_count,      NULL},
    };
    for (uint32_t i = 0; i < ARRAY_SIZE(head); i++)
        number(walk, &head[i]);
    if (!sound) fault(walk, RECORD_CRC, BATCH_AT_CRC);
    walk_attributes(walk, header->attributes);
    for (uint32_t i = 0; i < ARRAY_SIZE(tail); i++)
        number(walk, &tail[i]);
}

/* ---- magic 2: records ----------------------------------------------------------------------- */

/* A record's bytes as they are read field by field. */
struct cursor {
    struct walk *walk;
    struct reader in;
    uint64_t start; /* Of the record. */
};

static uint64_t place(const struct cursor *cursor, const uint8_t *at)
{
    return cursor->start + (uint64_t)(at - cursor->in.start);
}

/* A varint field. */
static int64_t walk_varint(struct cursor *cursor, const char *name, bool is_long)
{
    if (cursor->in.fault != READER_OK) return 0;
    const uint8_t *from = cursor->in.at;
    uint32_t oddities = cursor->in.oddities;
    int64_t value = is_long ? reader_varlong(&cursor->in) : reader_varint(&cursor->in);
    if (cursor->in.fault != READER_OK) return 0;
    struct record_walk_event event = {.kind = RECORD_WALK_NUMBER,
                                      .name = name,
                                      .type = is_long ? "varlong" : "varint",
                                      .index = -1,
                                      .offset = place(cursor, from),
                                      .size = (uint64_t)(cursor->in.at - from),
                                      .number = value};
    emit(cursor->walk, &event);
    if (cursor->in.oddities != oddities)
        oddity(cursor->walk, "a varint is longer than needed", event.offset, event.size);
    return value;
}

/* A length and so many bytes, as two fields. */
static struct view walk_bytes(struct cursor *cursor, const char *length_name, const char *name)
{
    int64_t size = walk_varint(cursor, length_name, false);
    if (cursor->in.fault != READER_OK) return VIEW_EMPTY;
    struct record_walk_event event = {.kind = RECORD_WALK_BYTES,
                                      .name = name,
                                      .type = "bytes",
                                      .index = -1,
                                      .offset = place(cursor, cursor->in.at),
                                      .bytes = VIEW_NULL};
    if (size >= 0) {
        const uint8_t *bytes = reader_take(&cursor->in, (size_t)size);
        if (bytes == NULL) return VIEW_EMPTY;
        event.bytes = view_of(bytes, (uint32_t)size);
        event.size = (uint64_t)size;
    }
    emit(cursor->walk, &event);
    return event.bytes;
}

/* Returns false and emits the fault when the headers are not sound. */
static enum record_fault walk_headers(struct cursor *cursor)
{
    struct walk *walk = cursor->walk;
    int64_t count = walk_varint(cursor, "headersCount", false);
    if (cursor->in.fault != READER_OK) return RECORD_OK;
    if (count < 0 || (uint64_t)count > reader_left(&cursor->in)) return RECORD_HEADER_COUNT;
    if (count == 0) return RECORD_OK;
    begin(walk, "headers", -1, view_of(cursor->in.at, (uint32_t)reader_left(&cursor->in)),
          place(cursor, cursor->in.at));
    enum record_fault what = RECORD_OK;
    for (int32_t i = 0; i < count && cursor->in.fault == READER_OK && what == RECORD_OK; i++) {
        begin(walk, "header", i, VIEW_EMPTY, place(cursor, cursor->in.at));
        if (walk_bytes(cursor, "headerKeyLength", "headerKey").null)
            what = RECORD_HEADER_KEY;
        else
            (void)walk_bytes(cursor, "headerValueLength", "headerValue");
        end(walk, "header");
    }
    end(walk, "headers");
    return what;
}

/* The key of a control record, taken apart. */
static void walk_control_key(struct cursor *cursor, struct view key)
{
    enum control_type type;
    if (!control_key_parse(key, &type)) {
        fault(cursor->walk, RECORD_CONTROL, place(cursor, key.null ? cursor->in.at : key.data));
        return;
    }
    struct record_walk_event event = {.kind = RECORD_WALK_NUMBER,
                                      .name = "controlType",
                                      .type = "int16",
                                      .index = -1,
                                      .offset = place(cursor, key.data) + 2,
                                      .size = 2,
                                      .number = (int16_t)load_be16(key.data + 2),
                                      .text = control_name(type)};
    emit(cursor->walk, &event);
}

/* One record, whose bytes these are, at `start`. */
static void walk_record(struct walk *walk,
                        struct view bytes,
                        uint64_t start,
                        const struct batch_header *header)
{
    struct cursor cursor = {.walk = walk, .in = reader_of(bytes), .start = start};
    (void)walk_varint(&cursor, "length", false);
    uint64_t attributes_at = place(&cursor, cursor.in.at);
    uint8_t attributes = reader_u8(&cursor.in);
    if (cursor.in.fault == READER_OK) {
        struct record_walk_event event = {.kind = RECORD_WALK_NUMBER,
                                          .name = "attributes",
                                          .type = "int8",
                                          .index = -1,
                                          .offset = attributes_at,
                                          .size = 1,
                                          .number = (int8_t)attributes};
        emit(walk, &event);
        if (attributes != 0) oddity(walk, "record attributes are not 0", attributes_at, 1);
    }
    (void)walk_varint(&cursor, "timestampDelta", true);
    (void)walk_varint(&cursor, "offsetDelta", false);
    struct view key = walk_bytes(&cursor, "keyLength", "key");
    if (cursor.in.fault == READER_OK && (header->attributes & BATCH_CONTROL) != 0)
        walk_control_key(&cursor, key);
    (void)walk_bytes(&cursor, "valueLength", "value");
    enum record_fault what = walk_headers(&cursor);
    if (cursor.in.fault != READER_OK)
        what = cursor.in.fault == READER_VARINT ? RECORD_VARINT : RECORD_SHORT;
    else if (what == RECORD_OK && reader_left(&cursor.in) > 0)
        what = RECORD_BODY;
    if (what != RECORD_OK) fault(walk, what, place(&cursor, cursor.in.at));
}

/* Offset of a record, if its fields before the offset delta can be read. */
static int64_t offset_of_record(const struct batch_header *header, struct view bytes)
{
    struct reader in = reader_of(bytes);
    (void)reader_varint(&in);
    (void)reader_u8(&in);
    (void)reader_varlong(&in);
    int32_t delta = reader_varint(&in);
    return (int64_t)((uint64_t)header->base_offset + (uint64_t)(int64_t)delta);
}

static void walk_records(struct walk *walk, const struct batch_header *header, struct view batch)
{
    struct record_iter iter;
    struct view bytes;
    uint64_t at;
    uint64_t outer = walk->base;
    bool compressed = batch_codec(header) != CODEC_NONE;

    begin(walk, "records", -1, view_of(NULL, batch.size - BATCH_HEADER_BYTES), BATCH_HEADER_BYTES);
    walk->inflated = compressed;
    walk->base = compressed ? 0 : outer + BATCH_HEADER_BYTES;
    record_iter_begin(&iter, walk->work, header, batch);
    for (int32_t i = 0; !walk->stopped && record_next_raw(&iter, &bytes, &at); i++) {
        struct record_walk_event event = {.kind = RECORD_WALK_BEGIN,
                                          .name = "record",
                                          .index = i,
                                          .offset = at,
                                          .size = bytes.size,
                                          .number = offset_of_record(header, bytes),
                                          .bytes = bytes};
        emit(walk, &event);
        walk_record(walk, bytes, at, header);
        end(walk, "record");
    }
    at = iter.at;
    enum record_fault what = record_iter_end(&iter);
    if (what != RECORD_OK) fault(walk, what, at);
    walk->inflated = false;
    walk->base = outer;
    end(walk, "records");
}

/* ---- magic 0 and 1 -------------------------------------------------------------------------- */

static void walk_bytes_at(struct walk *walk, const char *name, struct view bytes, uint64_t offset)
{
    struct record_walk_event event = {.kind = RECORD_WALK_BYTES,
                                      .name = name,
                                      .type = "bytes",
                                      .index = -1,
                                      .offset = offset,
                                      .size = bytes.null ? 0 : bytes.size,
                                      .bytes = bytes};
    emit(walk, &event);
}

/* The fields of one message, a wrapper's as they stand. */
static void walk_message_fields(struct walk *walk,
                                struct view bytes,
                                struct legacy_message *message)
{
    struct batch_header header;
    enum record_fault what = batch_header_load(bytes, &header);
    if (what == RECORD_OK) what = legacy_message_load(bytes, message);
    if (what != RECORD_OK) {
        fault(walk, what, 0);
        return;
    }
    bool sound = batch_crc_valid(&header, bytes);
    uint8_t codec = message->attributes & BATCH_CODEC_MASK;
    bool append_time = (message->attributes & BATCH_APPEND_TIME) != 0;
    const struct number parts[] = {
        {"offset",        "int64",  0,  8, message->offset,       NULL                                        },
        {"messageSize",   "int32",  8,  4, header.length,         NULL                                        },
        {"crc",           "uint32", 12, 4, header.crc,            sound ? "matches" : "does not match"        },
        {"magic",         "int8",   16, 1, message->magic,        NULL                                        },
        {"attributes",    "int8",   17, 1, message->attributes,   NULL                                        },
        {"compression",   "bits",   17, 1, codec,                 codec_text(codec)                           },
        {"timestampType", "bits",   17, 1, append_time,           append_time ? "LogAppendTime" : "CreateTime"},
        {"timestamp",     "int64",  18, 8, message->timestamp_ms, NULL                                        },
    };
    uint32_t count = message->magic == 0 ? ARRAY_SIZE(parts) - 2 : ARRAY_SIZE(parts);
    for (uint32_t i = 0; i < count; i++)
        number(walk, &parts[i]);
    if (!sound) fault(walk, RECORD_CRC, 12);

    uint16_t at = message->magic == 0 ? 18 : 26;
    struct number length = {"keyLength", "int32", at, 4, size_of(message->key), NULL};
    number(walk, &length);
    walk_bytes_at(walk, "key", message->key, at + 4u);
    uint64_t value_at = at + 4u + message->key.size;
    struct record_walk_event event = {.kind = RECORD_WALK_NUMBER,
                                      .name = "valueLength",
                                      .type = "int32",
                                      .index = -1,
                                      .offset = value_at,
                                      .size = 4,
                                      .number = size_of(message->value)};
    emit(walk, &event);
    walk_bytes_at(walk, "value", message->value, value_at + 4);
}

static void walk_message(struct walk *walk, struct view bytes)
{
    struct legacy_message message = {0};
    struct legacy_message inner;
    walk_message_fields(walk, bytes, &message);
    if ((message.attributes & BATCH_CODEC_MASK) == CODEC_NONE || message.value.null) return;

    uint64_t outer = walk->base;
    struct legacy_iter iter;
    struct record record;
    begin(walk, "messages", -1, VIEW_EMPTY, (uint64_t)(message.value.data - bytes.data));
    walk->inflated = true;
    legacy_iter_begin(&iter, walk->work, bytes);
    for (int32_t i = 0; !walk->stopped && legacy_next(&iter, &record); i++) {
        walk->base = record.at;
        struct record_walk_event event = {.kind = RECORD_WALK_BEGIN,
                                          .name = "message",
                                          .index = i,
                                          .size = record.bytes.size,
                                          .number = record.offset,
                                          .bytes = record.bytes};
        emit(walk, &event);
        walk_message_fields(walk, record.bytes, &inner);
        end(walk, "message");
    }
    enum record_fault what = legacy_iter_end(&iter);
    walk->base = 0;
    if (what != RECORD_OK) fault(walk, what, iter.at);
    walk->inflated = false;
    walk->base = outer;
    end(walk, "messages");
}

/* ---- the whole ------------------------------------------------------------------------------ */

enum record_fault record_walk(struct compress_work *work,
                              struct view bytes,
                              struct record_visitor *visitor)
{
    struct walk walk = {.visitor = visitor, .work = work};
    struct batch_scan scan = batch_scan_of(bytes);
    struct batch_header header;
    struct view batch;
    for (int32_t i = 0; !walk.stopped; i++) {
        walk.base = scan.at;
        if (!batch_next(&scan, &header, &batch)) break;
        const char *name = header.magic == 2 ? "batch" : "message";
        begin(&walk, name, i, batch, 0);
        if (header.magic == 2) {
            walk_header(&walk, &header, batch);
            walk_records(&walk, &header, batch);
        } else {
            walk_message(&walk, batch);
        }
        end(&walk, name);
    }
    walk.base = scan.at;
    if (scan.fault != RECORD_OK)
        fault(&walk, scan.fault, 0);
    else if (scan.at < bytes.size)
        oddity(&walk, "the last batch is cut", 0, bytes.size - scan.at);
    return walk.fault;
}
