/* producers.c - producers by id; rules and the snapshot's format at the head of producers.h. */
#include "log/producers.h"

#include "record/control.h"
#include "record/crc.h"

#define SNAPSHOT_VERSION     1
#define SNAPSHOT_HEAD_BYTES  10u
#define SNAPSHOT_CRC_FROM    6u
#define SNAPSHOT_ENTRY_BYTES 46u

void producers_init(struct producers *producers, struct mem *mem, uint64_t seed)
{
    *producers = (struct producers){.mem = mem, .snapshot_end = -1};
    map_init(&producers->map, mem, seed);
    list_init(&producers->open);
    list_init(&producers->ended);
    list_init(&producers->spare);
}

static void txns_free(struct producers *producers, struct list *txns)
{
    struct list *node;
    while ((node = list_pop(txns)) != NULL)
        mem_put(producers->mem, container_of(node, struct producer_txn, link),
                sizeof(struct producer_txn));
}

static void producer_forget(struct producers *producers, struct producer *producer)
{
    map_remove(&producers->map, &producer->node);
    mem_put(producers->mem, producer, sizeof(*producer));
}

void producers_clear(struct producers *producers, int64_t offset)
{
    struct map_node *next;
    for (struct map_node *node = map_next(&producers->map, NULL); node != NULL; node = next) {
        next = map_next(&producers->map, node);
        producer_forget(producers, container_of(node, struct producer, node));
    }
    txns_free(producers, &producers->open);
    txns_free(producers, &producers->ended);
    txns_free(producers, &producers->spare);
    producers->offset_end = offset;
}

void producers_free(struct producers *producers)
{
    producers_clear(producers, 0);
    map_free(&producers->map);
}

static struct producer *producer_get(const struct producers *producers, int64_t id)
{
    struct map_node *node = map_find(&producers->map, view_of(&id, sizeof(id)));
    return node == NULL ? NULL : container_of(node, struct producer, node);
}

const struct producer *producers_find(const struct producers *producers, int64_t id)
{
    const struct producer *producer = producer_get(producers, id);
    return producer == NULL || producer->epoch < 0 ? NULL : producer;
}

bool producers_marker(const struct batch_header *header,
                      struct view batch,
                      struct producer_marker *out)
{
    *out = (struct producer_marker){0};
    if (!(header->attributes & BATCH_CONTROL) || header->producer_id < 0) return true;
    if (header->record_count == 0) return true;
    if (batch_codec(header) != CODEC_NONE || batch.size <= BATCH_HEADER_BYTES) return false;

    struct record record;
    uint32_t used;
    struct view records = view_of(batch.data + BATCH_HEADER_BYTES, batch.size - BATCH_HEADER_BYTES);
    if (record_parse(records, &record, &used) != RECORD_OK) return false;
    struct control_marker marker;
    if (!control_marker_parse(record.key, record.value, &marker)) return false;
    *out = (struct producer_marker){true, marker.commit, marker.coordinator_epoch, 0};
    return true;
}

/* ---- check ----------------------------------------------------------------------------------- */

static int marker_check(const struct producer *producer,
                        const struct batch_header *header,
                        const struct producer_marker *marker)
{
    if (producer == NULL) return LOG_OK;
    if (marker->txn_version >= 2) {
        bool repeated = producer->txn_offset_first < 0 || header->producer_epoch == INT16_MAX;
        if (header->producer_epoch < producer->epoch) return LOG_E_FENCED;
        if (header->producer_epoch == producer->epoch && !repeated) return LOG_E_FENCED;
    } else if (header->producer_epoch < producer->epoch) {
        return LOG_E_FENCED;
    }
    if (marker->coordinator_epoch < producer->coordinator_epoch) return LOG_E_COORDINATOR_FENCED;
    return LOG_OK;
}

static bool producer_remembers(const struct producer *producer,
                               const struct batch_header *header,
                               struct producer_batch *out)
{
    if (producer->epoch != header->producer_epoch) return false;
    int32_t last = batch_last_sequence(header);
    for (uint8_t i = 0; i < producer->batch_count; i++) {
        const struct producer_batch *batch = &producer->batches[i];
        int32_t first = (int32_t)(((uint32_t)batch->sequence_last - (uint32_t)batch->offset_delta) &
                                  0x7fffffffu);
        if (batch->sequence_last != last || first != header->base_sequence) continue;
        *out = *batch;
        return true;
    }
    return false;
}

static bool sequence_follows(const struct producer *producer, const struct batch_header *header)
{
    if (header->producer_epoch != producer->epoch) return header->base_sequence == 0;
    int32_t last = producer->batch_count == 0
                       ? BATCH_NO_SEQUENCE
                       : producer->batches[producer->batch_count - 1].sequence_last;
    return header->base_sequence == (last == INT32_MAX ? 0 : last + 1);
}

int producers_check(const struct producers *producers,
                    const struct batch_header *header,
                    const struct producer_marker *marker,
                    enum log_origin origin,
                    struct producer_batch *first_time)
{
    if (header->producer_id < 0 || origin == LOG_FOLLOWER) return LOG_OK;
    const struct producer *producer = producers_find(producers, header->producer_id);
    if (marker->is_marker) return marker_check(producer, header, marker);
    if (producer == NULL) return LOG_OK; /* Without state any sequence may come. */

    if (origin == LOG_CLIENT && producer_remembers(producer, header, first_time))
        return LOG_DUPLICATE;
    if (header->producer_epoch < producer->epoch) return LOG_E_FENCED;
    if (origin == LOG_CLIENT && !sequence_follows(producer, header)) return LOG_E_SEQUENCE;
    bool transactional = (header->attributes & BATCH_TRANSACTIONAL) != 0;
    if (producer->txn_offset_first >= 0 && !transactional) return LOG_E_TXN_STATE;
    return LOG_OK;
}

/* ---- apply ----------------------------------------------------------------------------------- */

bool producers_reserve(struct producers *producers, int64_t producer_id)
{
    if (producer_id < 0) return true;
    struct producer_txn *txn = mem_get(producers->mem, sizeof(*txn));
    if (txn == NULL) return false;
    list_append(&producers->spare, &txn->link);
    if (producer_get(producers, producer_id) != NULL) return true;
    struct producer *producer = mem_get(producers->mem, sizeof(*producer));
    if (producer == NULL) return false;
    producer->id = producer_id;
    producer->epoch = -1;
    producer->coordinator_epoch = -1;
    producer->txn_offset_first = -1;
    producer->node.key = view_of(&producer->id, sizeof(producer->id));
    if (map_insert(&producers->map, &producer->node)) return true;
    mem_put(producers->mem, producer, sizeof(*producer));
    return false;
}

void producers_trim(struct producers *producers)
{
    txns_free(producers, &producers->spare);
}

static void producer_set_epoch(struct producer *producer, int16_t epoch)
{
    if (producer->epoch == epoch) return;
    producer->epoch = epoch;
    producer->batch_count = 0;
}

static void producer_remember(struct producer *producer, const struct batch_header *header)
{
    if (producer->batch_count == LOG_PRODUCER_BATCHES) {
        memmove(producer->batches, producer->batches + 1,
                (LOG_PRODUCER_BATCHES - 1) * sizeof(producer->batches[0]));
        producer->batch_count--;
    }
    producer->batches[producer->batch_count++] = (struct producer_batch){
        .offset_last = batch_last_offset(header),
        .timestamp_ms = header->max_timestamp,
        .sequence_last = batch_last_sequence(header),
        .offset_delta = header->last_offset_delta,
    };
}

static void txn_begin(struct producers *producers, struct producer *producer, int64_t offset)
{
    assert(!list_empty(&producers->spare));
    struct producer_txn *txn = container_of(list_pop(&producers->spare), struct producer_txn, link);
    *txn = (struct producer_txn){
        .producer_id = producer->id, .offset_first = offset, .offset_last = -1};
    list_init(&txn->link);
    list_append(&producers->open, &txn->link);
    producer->txn_offset_first = offset;
}

/* The open transaction ends at `offset`; it stays unstable until the watermark is above. */
static void txn_end(struct producers *producers, struct producer *producer, int64_t offset)
{
    list_foreach (node, &producers->open) {
        struct producer_txn *txn = container_of(node, struct producer_txn, link);
        if (txn->producer_id != producer->id) continue;
        list_remove(node);
        txn->offset_last = offset;
        list_append(&producers->ended, &txn->link);
        break;
    }
    producer->txn_offset_first = -1;
}

static void marker_apply(struct producers *producers,
                         struct producer *producer,
                         const struct batch_header *header,
                         const struct producer_marker *marker,
                         struct producer_ended *out)
{
    producer_set_epoch(producer, header->producer_epoch);
    producer->coordinator_epoch = marker->coordinator_epoch;
    producer->timestamp_ms = header->max_timestamp;
    if (producer->txn_offset_first < 0) return;

    int64_t first = producer->txn_offset_first;
    txn_end(producers, producer, header->base_offset);
    int64_t stable = header->base_offset + 1;
    if (!list_empty(&producers->open))
        stable = container_of(producers->open.next, struct producer_txn, link)->offset_first;
    *out = (struct producer_ended){true, !marker->commit, first, header->base_offset, stable};
}

void producers_apply(struct producers *producers,
                     const struct batch_header *header,
                     const struct producer_marker *marker,
                     struct producer_ended *out)
{
    *out = (struct producer_ended){0};
    producers->offset_end = batch_last_offset(header) + 1;
    if (header->producer_id < 0) return;
    bool control = (header->attributes & BATCH_CONTROL) != 0;
    if (control && !marker->is_marker) return;

    struct producer *producer = producer_get(producers, header->producer_id);
    assert(producer != NULL);
    if (control) {
        marker_apply(producers, producer, header, marker, out);
        return;
    }
    producer_set_epoch(producer, header->producer_epoch);
    producer_remember(producer, header);
    producer->timestamp_ms = header->max_timestamp;
    if ((header->attributes & BATCH_TRANSACTIONAL) && producer->txn_offset_first < 0)
        txn_begin(producers, producer, header->base_offset);
}

/* ---- stability and expiry -------------------------------------------------------------------- */

int64_t producers_first_unstable(const struct producers *producers)
{
    int64_t first = -1;
    if (!list_empty(&producers->open))
        first = container_of(producers->open.next, struct producer_txn, link)->offset_first;
    list_foreach (node, &producers->ended) {
        int64_t ended = container_of(node, struct producer_txn, link)->offset_first;
        if (first < 0 || ended < first) first = ended;
    }
    return first;
}

void producers_watermark(struct producers *producers, int64_t offset)
{
    list_foreach (node, &producers->ended) {
        struct producer_txn *txn = container_of(node, struct producer_txn, link);
        if (txn->offset_last >= offset) continue;
        list_remove(node);
        mem_put(producers->mem, txn, sizeof(*txn));
    }
}

void producers_log_start(struct producers *producers, int64_t offset)
{
    producers_watermark(producers, offset);
}

void producers_expire(struct producers *producers, int64_t wall_ms, int64_t expiration_ms)
{
    struct map_node *next;
    for (struct map_node *node = map_next(&producers->map, NULL); node != NULL; node = next) {
        next = map_next(&producers->map, node);
        struct producer *producer = container_of(node, struct producer, node);
        bool silent = wall_ms - producer->timestamp_ms >= expiration_ms || producer->epoch < 0;
        if (silent && producer->txn_offset_first < 0) producer_forget(producers, producer);
    }
}

/* ---- the snapshot file ----------------------------------------------------------------------- */

static void snapshot_entry(const struct producer *producer, struct sink *out)
{
    const struct producer_batch none = {-1, producer->timestamp_ms, BATCH_NO_SEQUENCE, 0};
    const struct producer_batch *last =
        producer->batch_count == 0 ? &none : &producer->batches[producer->batch_count - 1];
    sink_put_be64(out, (uint64_t)producer->id);
    sink_put_be16(out, (uint16_t)producer->epoch);
    sink_put_be32(out, (uint32_t)last->sequence_last);
    sink_put_be64(out, (uint64_t)last->offset_last);
    sink_put_be32(out, (uint32_t)last->offset_delta);
    sink_put_be64(out, (uint64_t)producer->timestamp_ms);
    sink_put_be32(out, (uint32_t)producer->coordinator_epoch);
    sink_put_be64(out, (uint64_t)producer->txn_offset_first);
}

void producers_write(const struct producers *producers, struct sink *out)
{
    uint32_t start = out->size_bytes;
    uint32_t count = 0;
    sink_put_be16(out, SNAPSHOT_VERSION);
    sink_put_be32(out, 0);
    sink_put_be32(out, 0);
    map_foreach (node, &producers->map) {
        const struct producer *producer = container_of(node, struct producer, node);
        if (producer->epoch < 0) continue;
        snapshot_entry(producer, out);
        count++;
    }
    if (out->fault != SINK_OK) return;
    store_be32(out->data + start + 6, count);
    store_be32(out->data + start + 2, crc_32c(out->data + start + SNAPSHOT_CRC_FROM,
                                              out->size_bytes - start - SNAPSHOT_CRC_FROM));
}

/* One entry into the map. False: no memory. */
static bool snapshot_take(struct producers *producers, struct reader *in)
{
    int64_t id = (int64_t)reader_be64(in);
    int16_t epoch = (int16_t)reader_be16(in);
    struct producer_batch batch;
    batch.sequence_last = (int32_t)reader_be32(in);
    batch.offset_last = (int64_t)reader_be64(in);
    batch.offset_delta = (int32_t)reader_be32(in);
    batch.timestamp_ms = (int64_t)reader_be64(in);
    int32_t coordinator_epoch = (int32_t)reader_be32(in);
    int64_t txn_first = (int64_t)reader_be64(in);
    if (id < 0 || epoch < 0) return true; /* No producer has such; Kafka writes none. */
    if (!producers_reserve(producers, id)) return false;

    struct producer *producer = producer_get(producers, id);
    producer->epoch = epoch;
    producer->timestamp_ms = batch.timestamp_ms;
    producer->coordinator_epoch = coordinator_epoch;
    producer->batch_count = 0;
    if (batch.offset_last >= 0) producer->batches[producer->batch_count++] = batch;
    producer->txn_offset_first = -1;
    if (txn_first >= 0) txn_begin(producers, producer, txn_first);
    return true;
}

/* Keep the list of open transactions by first offset: a snapshot has them by producer. */
static void snapshot_sort(struct producers *producers)
{
    struct list sorted;
    list_init(&sorted);
    struct list *node;
    while ((node = list_pop(&producers->open)) != NULL) {
        int64_t first = container_of(node, struct producer_txn, link)->offset_first;
        struct list *place = sorted.previous;
        while (place != &sorted &&
               container_of(place, struct producer_txn, link)->offset_first > first)
            place = place->previous;
        list_add_before(place->next, node);
    }
    while ((node = list_pop(&sorted)) != NULL)
        list_append(&producers->open, node);
}

int producers_read(struct producers *producers,
                   struct view bytes,
                   int64_t wall_ms,
                   int64_t expiration_ms)
{
    if (bytes.size < SNAPSHOT_HEAD_BYTES) return LOG_E_DAMAGED;
    struct reader in = reader_of(bytes);
    uint16_t version = reader_be16(&in);
    uint32_t crc = reader_be32(&in);
    uint32_t count = reader_be32(&in);
    if (version != SNAPSHOT_VERSION) return LOG_E_DAMAGED;
    if (crc != crc_32c(bytes.data + SNAPSHOT_CRC_FROM, bytes.size - SNAPSHOT_CRC_FROM))
        return LOG_E_DAMAGED;
    if ((uint64_t)count * SNAPSHOT_ENTRY_BYTES != reader_left(&in)) return LOG_E_DAMAGED;

    for (uint32_t i = 0; i < count; i++)
        if (!snapshot_take(producers, &in)) return LOG_E_MEMORY;
    assert(in.fault == READER_OK);
    snapshot_sort(producers);
    producers_trim(producers);
    producers_expire(producers, wall_ms, expiration_ms);
    return LOG_OK;
}
