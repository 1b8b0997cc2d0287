/* record.c - bytes of anybody as what a produce request or a file brings: every reader of
 * src/record.
 *
 * The first byte chooses: bit 0 makes the CRC right (else most inputs end at it), bit 1 puts the
 * rest behind a sound header as the payload of the codec in bits 2-4. Checked beside the
 * sanitizers: no more memory than the cap, all of it given back, and a batch that was taken can be
 * rebuilt and read. */
#include <stdlib.h>

#include "base/limits.h"
#include "record/batch_build.h"
#include "record/batch_validate.h"
#include "record/control.h"
#include "record/crc.h"
#include "record/legacy.h"
#include "record/record_walk.h"
#include "sys/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX 65536u

static bool visit(struct record_visitor *visitor, const struct record_walk_event *event)
{
    assert(event->kind != RECORD_WALK_FAULT || event->text != NULL);
    return true;
}

static void fix_crc(uint8_t *batch, uint32_t size)
{
    struct batch_header header;
    if (batch_check(view_of(batch, size), 0, &header) != RECORD_OK || header.magic < 2) return;
    uint32_t covered = batch_size(&header) - BATCH_AT_ATTRIBUTES;
    store_be32(batch + BATCH_AT_CRC, crc_32c(batch + BATCH_AT_ATTRIBUTES, covered));
}

/* The input as a batch, in a block of its exact size. */
static uint8_t *make_batch(const uint8_t *data, uint32_t *size)
{
    uint8_t choice = data[0];
    data++;
    *size -= 1;
    if ((choice & 2) == 0) {
        uint8_t *batch = malloc(*size + 1);
        memcpy(batch, data, *size);
        if ((choice & 1) != 0) fix_crc(batch, *size);
        return batch;
    }
    int32_t count = *size > 0 ? data[0] % 8 + 1 : 1;
    struct batch_header header = {.length =
                                      (int32_t)(*size + BATCH_HEADER_BYTES - BATCH_FRAME_BYTES),
                                  .leader_epoch = -1,
                                  .magic = 2,
                                  .attributes = (choice >> 2) & 7,
                                  .last_offset_delta = count - 1,
                                  .producer_id = -1,
                                  .producer_epoch = -1,
                                  .base_sequence = -1,
                                  .record_count = count};
    uint8_t *batch = malloc(*size + BATCH_HEADER_BYTES);
    if (*size > 0) memcpy(batch + BATCH_HEADER_BYTES, data + (*size > 1), *size - (*size > 1));
    if (*size > 1) batch[BATCH_HEADER_BYTES + *size - 1] = 0;
    batch_header_store(&header, batch);
    *size += BATCH_HEADER_BYTES;
    return batch;
}

/* What was taken can be rebuilt with another codec, and that can be read. */
static void rebuild(struct compress_work *work, struct batch_verdict *verdict, struct view batch)
{
    struct sink out;
    struct batch_header header;
    sink_init(&out, work->mem, 1u << 24);
    verdict->codec = (batch_codec(&verdict->header) + 1u) % CODEC_COUNT;
    verdict->level = COMPRESS_LEVEL_DEFAULT;
    enum record_fault fault = batch_recompress(work, verdict, batch, &out);
    if (fault == RECORD_OK) {
        fault = batch_check(sink_view(&out), BATCH_CHECK_CRC | BATCH_CHECK_COUNTS, &header);
        assert(fault == RECORD_OK);
        assert(header.record_count == verdict->header.record_count);
        struct record_spot spot;
        fault = record_find_time(work, sink_view(&out), INT64_MAX, INT64_MAX, &spot);
        assert(fault == RECORD_OK);
    } else {
        assert(fault == RECORD_TOO_LARGE || fault == RECORD_BOMB);
    }
    sink_free(&out);
}

static void read_all(struct compress_work *work, struct arena *request, struct view bytes)
{
    struct batch_rules rules = {.produce_version = 13,
                                .message_bytes_max = UINT32_MAX,
                                .codec = BATCH_CODEC_PRODUCER,
                                .level = COMPRESS_LEVEL_DEFAULT,
                                .before_max_ms = INT64_MAX,
                                .after_max_ms = INT64_MAX};
    struct batch_verdict verdict;
    struct sink out;
    if (batch_validate(work, request, &rules, bytes, &verdict) == RECORD_OK)
        rebuild(work, &verdict, view_of(bytes.data, verdict.size_bytes));
    struct record_visitor visitor = {visit};
    (void)record_walk(work, bytes, &visitor);
    sink_init(&out, work->mem, 1u << 24);
    (void)legacy_upgrade(work, &rules, bytes, &out, &verdict);
    sink_reset(&out);
    enum record_fault fault = legacy_downgrade(work, bytes, bytes.size % 2, 0, &out);
    assert(fault < RECORD_FAULT_COUNT);
    sink_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > INPUT_MAX) return 0;
    struct mem mem;
    struct compress_work work;
    struct arena request;
    memory_init(&mem, 2ull * RECORD_INFLATED_MAX + COMPRESS_WORK_MAX);
    compress_work_init(&work, &mem);
    arena_init(&request, &mem, 1u << 20);
    uint32_t batch_bytes = (uint32_t)size;
    uint8_t *batch = make_batch(data, &batch_bytes);
    read_all(&work, &request, view_of(batch, batch_bytes));
    free(batch);
    compress_work_free(&work);
    arena_free(&request);
    assert(mem.used_bytes == 0);
    return 0;
}
