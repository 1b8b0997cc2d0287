/* batch_build.c - records behind a place kept for the header, which is written last. */
#include "record/batch_build.h"

const struct batch_build_options batch_build_plain = {
    .leader_epoch = -1,
    .level = COMPRESS_LEVEL_DEFAULT,
    .producer_id = BATCH_NO_PRODUCER,
    .producer_epoch = -1,
    .base_sequence = BATCH_NO_SEQUENCE,
};

static void fail(struct batch_build *build, enum record_fault fault)
{
    if (build->fault == RECORD_OK) build->fault = fault;
}

void batch_build_begin(struct batch_build *build,
                       struct compress_work *work,
                       struct sink *out,
                       const struct batch_build_options *options)
{
    assert(options->codec == CODEC_NONE || work != NULL);

    *build = (struct batch_build){
        .options = *options,
        .out = out,
        .start = out->size_bytes,
        .base_timestamp_ms =
            options->has_delete_horizon ? options->delete_horizon_ms : BATCH_NO_TIMESTAMP,
        .max_timestamp_ms = BATCH_NO_TIMESTAMP,
        .last_delta = -1,
    };
    static const uint8_t header[BATCH_HEADER_BYTES];
    sink_put(out, header, sizeof(header));
    if (options->codec != CODEC_NONE) {
        struct compress_options how = {options->codec, options->level, 2};
        sink_init(&build->scratch, work->mem, RECORD_BYTES_MAX);
        compress_begin(&build->stream, work, out, how);
    }
}

static uint32_t bytes_size(struct view bytes)
{
    if (bytes.null) return 1;
    return sink_varlong_size((int32_t)bytes.size) + bytes.size;
}

/* Over a record's headers, given either way. */
struct header_cursor {
    const struct record_input *record;
    int32_t index;
    uint32_t at;
};

static bool header_next(struct header_cursor *cursor, struct record_header *out)
{
    const struct record_input *record = cursor->record;
    if (cursor->index == record->header_count) return false;
    if (record->headers != NULL)
        *out = record->headers[cursor->index];
    else if (!record_header_decode(record->header_bytes, &cursor->at, out))
        return false;
    cursor->index++;
    return true;
}

/* Size of all that follows a record's length. */
static uint64_t body_size(const struct record_input *record,
                          int32_t offset_delta,
                          int64_t timestamp_delta)
{
    uint64_t size = 1 + sink_varlong_size(timestamp_delta) + sink_varlong_size(offset_delta);
    size += (uint64_t)bytes_size(record->key) + bytes_size(record->value);
    size += sink_varlong_size(record->header_count);
    struct header_cursor at = {.record = record};
    struct record_header header;
    while (header_next(&at, &header)) {
        assert(!header.key.null);
        size += (uint64_t)bytes_size(header.key) + bytes_size(header.value);
    }
    return size;
}

uint32_t batch_build_record_size(const struct record_input *record,
                                 int32_t offset_delta,
                                 int64_t timestamp_delta)
{
    uint64_t body = body_size(record, offset_delta, timestamp_delta);
    assert(body <= INT32_MAX);
    return (uint32_t)body + sink_varlong_size((int64_t)body);
}

static uint8_t *store_bytes(uint8_t *at, struct view bytes)
{
    if (bytes.null) return sink_varlong_store(at, -1);
    at = sink_varlong_store(at, (int32_t)bytes.size);
    if (bytes.size > 0) memcpy(at, bytes.data, bytes.size);
    return at + bytes.size;
}

/* Append the record's bytes to `out`. */
static void store_record(struct sink *out,
                         const struct record_input *record,
                         int32_t offset_delta,
                         int64_t timestamp_delta)
{
    uint64_t body = body_size(record, offset_delta, timestamp_delta);
    if (body > RECORD_BYTES_MAX) {
        out->fault = SINK_LIMIT;
        return;
    }
    uint32_t whole = (uint32_t)body + sink_varlong_size((int64_t)body);
    uint8_t *start = sink_room(out, whole);
    if (start == NULL) return;

    uint8_t *at = sink_varlong_store(start, (int64_t)body);
    *at++ = 0;
    at = sink_varlong_store(at, timestamp_delta);
    at = sink_varlong_store(at, offset_delta);
    at = store_bytes(at, record->key);
    at = store_bytes(at, record->value);
    at = sink_varlong_store(at, record->header_count);
    struct header_cursor cursor = {.record = record};
    struct record_header header;
    while (header_next(&cursor, &header)) {
        at = store_bytes(at, header.key);
        at = store_bytes(at, header.value);
    }
    assert(at == start + whole);
    sink_used(out, whole);
}

static enum record_fault sink_record_fault(const struct sink *sink)
{
    if (sink->fault == SINK_LIMIT) return RECORD_TOO_LARGE;
    return RECORD_MEMORY;
}

static void add(struct batch_build *build, const struct record_input *record, int32_t delta)
{
    assert(delta > build->last_delta);
    if (build->fault != RECORD_OK) return;

    bool first = build->count == 0;
    if (first && !build->options.has_delete_horizon)
        build->base_timestamp_ms = record->timestamp_ms;
    int64_t timestamp_delta =
        (int64_t)((uint64_t)record->timestamp_ms - (uint64_t)build->base_timestamp_ms);

    struct sink *to = build->options.codec == CODEC_NONE ? build->out : &build->scratch;
    store_record(to, record, delta, timestamp_delta);
    if (to->fault != SINK_OK) {
        fail(build, sink_record_fault(to));
        return;
    }
    if (to == &build->scratch) {
        compress_write(&build->stream, to->data, to->size_bytes);
        sink_reset(to);
    }
    build->max_timestamp_ms = MAX(build->max_timestamp_ms, record->timestamp_ms);
    build->last_delta = delta;
    build->count++;
}

void batch_build_add(struct batch_build *build, const struct record_input *record)
{
    assert(build->last_delta < INT32_MAX);
    add(build, record, build->last_delta + 1);
}

void batch_build_add_at(struct batch_build *build, const struct record_input *record)
{
    add(build, record, record->offset_delta);
}

uint32_t batch_build_size(const struct batch_build *build)
{
    return build->out->size_bytes - build->start;
}

static uint16_t attributes_of(const struct batch_build *build)
{
    const struct batch_build_options *options = &build->options;
    /* A batch without records has no delete horizon, and nothing that is compressed. */
    uint16_t attributes = build->count == 0 ? 0 : (uint16_t)options->codec;
    if (options->append_time) attributes |= BATCH_APPEND_TIME;
    if (options->transactional) attributes |= BATCH_TRANSACTIONAL;
    if (options->control) attributes |= BATCH_CONTROL;
    if (options->has_delete_horizon && build->count > 0) attributes |= BATCH_DELETE_HORIZON;
    return attributes;
}

/* Close the codec's stream; false: build->fault. */
static bool close_stream(struct batch_build *build)
{
    if (build->options.codec == CODEC_NONE) return build->fault == RECORD_OK;
    if (!compress_end(&build->stream)) fail(build, sink_record_fault(build->out));
    sink_free(&build->scratch);
    /* An empty batch holds nothing, not even a codec's empty frame. */
    if (build->count == 0) build->out->size_bytes = build->start + BATCH_HEADER_BYTES;
    return build->fault == RECORD_OK;
}

enum record_fault batch_build_finish(struct batch_build *build,
                                     int32_t last_delta,
                                     struct view *batch)
{
    assert(last_delta == -1 || last_delta >= build->last_delta);
    assert(last_delta >= 0 || build->count > 0 || build->fault != RECORD_OK);

    *batch = VIEW_NULL;
    if (build->out->fault != SINK_OK) fail(build, sink_record_fault(build->out));
    if (!close_stream(build)) {
        build->out->size_bytes = build->start;
        return build->fault;
    }
    const struct batch_build_options *options = &build->options;
    uint32_t size = batch_build_size(build);
    struct batch_header header = {
        .base_offset = options->base_offset,
        .length = (int32_t)(size - BATCH_FRAME_BYTES),
        .leader_epoch = options->leader_epoch,
        .magic = 2,
        .attributes = attributes_of(build),
        .last_offset_delta = last_delta == -1 ? build->last_delta : last_delta,
        .base_timestamp = build->count == 0 ? BATCH_NO_TIMESTAMP : build->base_timestamp_ms,
        .max_timestamp = options->append_time ? options->append_time_ms : build->max_timestamp_ms,
        .producer_id = options->producer_id,
        .producer_epoch = options->producer_epoch,
        .base_sequence = options->base_sequence,
        .record_count = build->count,
    };
    batch_header_store(&header, build->out->data + build->start);
    *batch = view_of(build->out->data + build->start, size);
    return RECORD_OK;
}

void batch_build_abort(struct batch_build *build)
{
    fail(build, RECORD_MEMORY);
    (void)close_stream(build);
    build->out->size_bytes = build->start;
}
