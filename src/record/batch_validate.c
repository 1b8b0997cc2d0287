/* batch_validate.c - Kafka's checks in Kafka's order: frame, header, records. */
#include "record/batch_validate.h"

#include "base/limits.h"
#include "record/batch_build.h"

static enum record_fault fail(struct batch_verdict *verdict, enum record_fault fault)
{
    verdict->fault = fault;
    return fault;
}

/* The partition's bytes hold one batch that this request version may carry. */
static enum record_fault check_frame(const struct batch_rules *rules,
                                     struct view bytes,
                                     struct batch_verdict *verdict,
                                     struct view *batch)
{
    struct batch_scan scan = batch_scan_of(bytes);
    scan.frames = true;
    if (!batch_next(&scan, &verdict->header, batch))
        return scan.fault == RECORD_OK ? RECORD_NO_BATCH : scan.fault;

    const struct batch_header *header = &verdict->header;
    verdict->size_bytes = batch->size;
    if (header->magic != 2) return RECORD_MAGIC_OLD;
    bool old = rules->produce_version >= 3 && rules->produce_version < 7;
    if (old && batch_codec(header) == CODEC_ZSTD) return RECORD_ZSTD_OLD;
    if (old && batch_codec(header) >= CODEC_COUNT) return RECORD_CODEC;

    struct batch_header second;
    struct view rest;
    if (batch_next(&scan, &second, &rest)) return RECORD_SECOND_BATCH;
    return scan.fault;
}

static enum record_fault check_header(const struct batch_rules *rules,
                                      const struct batch_header *header,
                                      struct view batch)
{
    bool client = rules->origin == BATCH_FROM_CLIENT;
    if (client && header->base_offset != 0) return RECORD_BASE_OFFSET;
    if (batch.size > rules->message_bytes_max) return RECORD_TOO_LARGE;
    if (batch.size < BATCH_HEADER_BYTES) return RECORD_LENGTH;
    if (!batch_crc_valid(header, batch)) return RECORD_CRC;
    if (batch_codec(header) >= CODEC_COUNT) return RECORD_CODEC;
    if (!client) return RECORD_OK;

    if (header->last_offset_delta < 0 || header->last_offset_delta == INT32_MAX)
        return RECORD_LAST_DELTA;
    if (header->record_count <= 0) return RECORD_COUNT;
    if (header->last_offset_delta + 1 != header->record_count) return RECORD_COUNT_MISMATCH;
    if ((header->attributes & BATCH_CONTROL) != 0) return RECORD_CONTROL;
    bool incomplete = header->base_sequence < 0 || header->producer_epoch < 0;
    if (header->producer_id >= 0 && incomplete) return RECORD_SEQUENCE;
    return RECORD_OK;
}

/* The timestamp rule. Differences wrap, as in Java. */
static enum record_fault check_time(const struct batch_rules *rules,
                                    const struct batch_header *header,
                                    int64_t timestamp_ms)
{
    if (rules->append_time || timestamp_ms == BATCH_NO_TIMESTAMP) {
        bool marked = (header->attributes & BATCH_APPEND_TIME) != 0;
        return marked ? RECORD_TIME_TYPE : RECORD_OK;
    }
    int64_t age = (int64_t)((uint64_t)rules->wall_ms - (uint64_t)timestamp_ms);
    int64_t ahead = (int64_t)((uint64_t)timestamp_ms - (uint64_t)rules->wall_ms);
    bool outside = age > rules->before_max_ms || ahead > rules->after_max_ms;
    return outside ? RECORD_TIME_RANGE : RECORD_OK;
}

static enum record_fault check_record(const struct batch_rules *rules,
                                      const struct batch_header *header,
                                      const struct record_brief *record)
{
    if (rules->compacted && record->key_null) return RECORD_NULL_KEY;
    return check_time(rules, header, record->timestamp_ms);
}

/* Is a whole run as the rules want it? If not, its records are looked at one by one. */
static bool run_sound(const struct batch_rules *rules,
                      const struct batch_header *header,
                      const struct record_run *run)
{
    if (run->count == 0 || run->min_timestamp_ms < 0) return false;
    if (rules->compacted && run->key_null) return false;
    return check_time(rules, header, run->min_timestamp_ms) == RECORD_OK &&
           check_time(rules, header, run->max_timestamp_ms) == RECORD_OK;
}

static bool is_time_fault(enum record_fault fault)
{
    return fault == RECORD_TIME_RANGE || fault == RECORD_TIME_TYPE;
}

/* A record breaks a rule: note which. A timestamp's fault wins over the others. */
static void note_error(struct batch_verdict *verdict,
                       struct arena *request,
                       const struct batch_record_error *error)
{
    if (verdict->error_total == 0) {
        int32_t at_most = verdict->header.record_count - error->index;
        uint32_t slots = MIN((uint32_t)MAX(at_most, 1), RECORD_ERRORS_MAX);
        verdict->errors = arena_get(request, slots * sizeof(*verdict->errors));
    }
    verdict->error_total++;
    bool better = is_time_fault(error->fault) && !is_time_fault(verdict->fault);
    if (verdict->fault == RECORD_OK || better) verdict->fault = error->fault;
    if (verdict->errors == NULL || verdict->error_count == RECORD_ERRORS_MAX) return;
    verdict->errors[verdict->error_count++] = *error;
}

/* Can a batch with these producer fields be written anew? */
static bool producer_sound(const struct batch_header *header)
{
    bool transactional = (header->attributes & BATCH_TRANSACTIONAL) != 0;
    if (header->producer_id == BATCH_NO_PRODUCER) return !transactional;
    return header->producer_epoch != -1;
}

/* What validation finds out about all records together. */
struct records_seen {
    int32_t count;
    int64_t max_timestamp_ms;
    bool in_order;
    bool negative; /* A timestamp below -1. */
};

/* The next record. False: there is none, or the structure does not hold. */
static bool check_next(struct record_iter *iter,
                       struct arena *request,
                       const struct batch_rules *rules,
                       struct batch_verdict *verdict,
                       struct records_seen *seen)
{
    struct record_brief record;
    if (!record_next_brief(iter, &record)) return false;
    int32_t index = seen->count++;
    enum record_fault fault = check_record(rules, &verdict->header, &record);
    if (UNLIKELY(fault != RECORD_OK)) {
        struct batch_record_error error = {index, fault, record.timestamp_ms};
        note_error(verdict, request, &error);
        return true;
    }
    seen->max_timestamp_ms = MAX(seen->max_timestamp_ms, record.timestamp_ms);
    seen->in_order &= record.offset_delta == index;
    seen->negative |= record.timestamp_ms < BATCH_NO_TIMESTAMP;
    return true;
}

/* Every record. Collects what single records break; the result is about the structure. */
static enum record_fault check_records(struct compress_work *work,
                                       struct arena *request,
                                       const struct batch_rules *rules,
                                       struct view batch,
                                       struct batch_verdict *verdict)
{
    const struct batch_header *header = &verdict->header;
    struct records_seen seen = {0, BATCH_NO_TIMESTAMP, true, false};
    struct record_iter iter;

    record_iter_begin(&iter, work, header, batch);
    for (bool more = true; more;) {
        struct record_run run;
        record_run_look(&iter, seen.count, &run);
        int32_t singly = 1; /* Behind a run comes one that is not as usual, or the end. */
        if (LIKELY(run_sound(rules, header, &run))) {
            record_run_take(&iter, &run);
            seen.count += run.count;
            seen.max_timestamp_ms = MAX(seen.max_timestamp_ms, run.max_timestamp_ms);
            seen.in_order &= run.in_order;
        } else {
            singly = MAX(run.count, 1);
        }
        for (; singly > 0 && more; singly--)
            more = check_next(&iter, request, rules, verdict, &seen);
    }
    enum record_fault structure = record_iter_end(&iter);
    if (structure != RECORD_OK) return structure;

    verdict->max_timestamp_ms = seen.max_timestamp_ms;
    if (verdict->fault != RECORD_OK) return RECORD_OK;
    bool kept = batch_codec(header) != CODEC_NONE && !verdict->rebuild;
    if (kept && !seen.in_order) verdict->fault = RECORD_OFFSETS;
    if (verdict->rebuild && !producer_sound(header)) verdict->fault = RECORD_PRODUCER;
    if (verdict->rebuild && seen.negative) verdict->fault = RECORD_TIME_VALUE;
    return RECORD_OK;
}

/* The codec to store with. */
static void choose_codec(const struct batch_rules *rules, struct batch_verdict *verdict)
{
    uint8_t own = batch_codec(&verdict->header);
    bool control = (verdict->header.attributes & BATCH_CONTROL) != 0;
    bool keep = rules->codec == BATCH_CODEC_PRODUCER || (control && own == CODEC_NONE);
    verdict->codec = keep ? (enum codec)own : (enum codec)rules->codec;
    verdict->level = rules->codec == BATCH_CODEC_PRODUCER ? COMPRESS_LEVEL_DEFAULT : rules->level;
    verdict->rebuild = verdict->codec != (enum codec)own;
}

enum record_fault batch_validate(struct compress_work *work,
                                 struct arena *request,
                                 const struct batch_rules *rules,
                                 struct view bytes,
                                 struct batch_verdict *verdict)
{
    assert(rules->codec >= BATCH_CODEC_PRODUCER);
    assert(rules->codec < CODEC_COUNT);

    *verdict = (struct batch_verdict){0};
    struct view batch;
    enum record_fault fault = check_frame(rules, bytes, verdict, &batch);
    if (fault != RECORD_OK) return fail(verdict, fault);
    fault = check_header(rules, &verdict->header, batch);
    if (fault != RECORD_OK) return fail(verdict, fault);

    choose_codec(rules, verdict);
    verdict->append_time = rules->append_time;
    if (rules->header_only) {
        verdict->max_timestamp_ms = verdict->header.max_timestamp;
        fault = check_time(rules, &verdict->header, verdict->header.max_timestamp);
    } else {
        fault = check_records(work, request, rules, batch, verdict);
    }
    if (fault != RECORD_OK) return fail(verdict, fault);
    if (rules->append_time) verdict->max_timestamp_ms = rules->wall_ms;
    return verdict->fault;
}

static struct batch_build_options rebuild_options(const struct batch_verdict *verdict)
{
    const struct batch_header *header = &verdict->header;
    struct batch_build_options options = batch_build_plain;
    options.codec = verdict->codec;
    options.level = verdict->level;
    options.append_time = verdict->append_time;
    options.append_time_ms = verdict->max_timestamp_ms;
    options.transactional = (header->attributes & BATCH_TRANSACTIONAL) != 0;
    options.control = (header->attributes & BATCH_CONTROL) != 0;
    options.producer_id = header->producer_id;
    options.producer_epoch = header->producer_epoch;
    options.base_sequence = header->base_sequence;
    return options;
}

enum record_fault batch_recompress(struct compress_work *work,
                                   const struct batch_verdict *verdict,
                                   struct view batch,
                                   struct sink *out)
{
    assert(verdict->fault == RECORD_OK);
    assert(out->size_bytes == 0);

    struct batch_build_options options = rebuild_options(verdict);
    struct batch_build build;
    struct record_iter iter;
    struct record record;
    batch_build_begin(&build, work, out, &options);
    record_iter_begin(&iter, work, &verdict->header, batch);
    while (build.fault == RECORD_OK && record_next(&iter, &record)) {
        struct record_input input = {
            .timestamp_ms = record.timestamp_ms,
            .key = record.key,
            .value = record.value,
            .header_count = record.header_count,
            .header_bytes = record.header_bytes,
        };
        batch_build_add(&build, &input);
    }
    enum record_fault fault = record_iter_end(&iter);
    if (fault != RECORD_OK) {
        batch_build_abort(&build);
        return fault;
    }
    return batch_build_finish(&build, -1, &batch);
}
