/* client_producer.c - a producer: batches in flight, sent again in order, acknowledged in order. */
#include <stdio.h>

#include "gen/errors.h"
#include "gen/init_producer_id_request.h"
#include "gen/init_producer_id_response.h"
#include "gen/produce_request.h"
#include "gen/produce_response.h"
#include "record/batch_build.h"
#include "sim/client_producer.h"

#define API_PRODUCE          0
#define API_INIT_PRODUCER_ID 22

static void producer_print(const struct client_producer *producer, const char *what, int64_t value)
{
    const struct client_batch *batch = &producer->batches[0];
    if (!producer->client.history->print) return;
    printf(
        "   client%u, id %lld acks %d: %s %lld: log %u records %u+%u sequence %d, %u in flight\n",
        producer->number + 1, (long long)producer->producer_id, producer->acks, what,
        (long long)value, batch->log, batch->number, batch->count, batch->sequence,
        producer->batch_count);
}

static void producer_ask_id(struct client_producer *producer)
{
    struct init_producer_id_request request;
    wire_defaults(&wire_init_producer_id_request, &request);
    request.transactional_id = VIEW_NULL;
    request.transaction_timeout_ms = 60000;
    request.producer_id = -1;
    request.producer_epoch = -1;
    wire_link_send(&producer->client.link, API_INIT_PRODUCER_ID, 4, &request);
}

/* A new batch behind those in flight. False: no topic is known yet. */
static bool producer_make(struct client_producer *producer)
{
    struct history *history = producer->client.history;
    uint32_t topic = chance_below(&producer->client.chance, history->topic_count);
    if (!history->topics[topic].known) return false;
    uint32_t partition =
        chance_below(&producer->client.chance, (uint32_t)history->topics[topic].partitions);
    uint32_t count =
        1 + chance_below(&producer->client.chance, 1 + chance_below(&producer->client.chance, 12));
    struct client_batch *batch = &producer->batches[producer->batch_count++];
    *batch = (struct client_batch){.log = topic * HISTORY_PARTITIONS_MAX + partition,
                                   .number = producer->next_record,
                                   .count = MIN(count, producer->quota)};
    batch->restarts = history->restarts;
    batch->sequence = producer->sequences[batch->log];
    producer->sequences[batch->log] += (int32_t)batch->count;
    producer->next_record += batch->count;
    producer->quota -= batch->count;
    return true;
}

static struct view producer_records(struct client_producer *producer,
                                    const struct client_batch *batch)
{
    uint8_t bytes[HISTORY_VALUE_MAX];
    struct batch_build build;
    struct view records;
    struct batch_build_options options = batch_build_plain;
    if (producer->idempotent) {
        options.producer_id = producer->producer_id;
        options.producer_epoch = producer->producer_epoch;
        options.base_sequence = batch->sequence;
    }
    sink_reset(&producer->sink);
    batch_build_begin(&build, NULL, &producer->sink, &options);
    for (uint32_t i = 0; i < batch->count; i++) {
        struct history_value value = {producer->number, batch->number + i};
        uint32_t size = history_value_bytes(value, bytes);
        batch_build_add(&build, &(struct record_input){.timestamp_ms = history_timestamp_ms(value),
                                                       .key = VIEW_NULL,
                                                       .value = view_of(bytes, size)});
    }
    enum record_fault fault = batch_build_finish(&build, -1, &records);
    assert(fault == RECORD_OK);
    return records;
}

static void producer_send(struct client_producer *producer, struct client_batch *batch)
{
    struct produce_request request;
    struct produce_request_topic_produce_data topic;
    struct produce_request_partition_produce_data partition;
    const struct history_topic *known =
        &producer->client.history->topics[batch->log / HISTORY_PARTITIONS_MAX];

    wire_defaults(&wire_produce_request, &request);
    wire_struct_defaults(&wire_produce_request_topic_produce_data_shape, &topic);
    wire_struct_defaults(&wire_produce_request_partition_produce_data_shape, &partition);
    partition.index = (int32_t)(batch->log % HISTORY_PARTITIONS_MAX);
    partition.records = producer_records(producer, batch);
    topic.name = view_of_string(known->name);
    topic.topic_id = known->id;
    topic.partition_data.items = &partition;
    topic.partition_data.count = 1;
    request.transactional_id = VIEW_NULL;
    request.acks = producer->acks;
    request.timeout_ms = 30000;
    request.topic_data.items = &topic;
    request.topic_data.count = 1;
    batch->power_cuts = producer->client.history->power_cuts;
    batch->sent = true;
    wire_link_send(&producer->client.link, API_PRODUCE, producer->version, &request);
}

static void producer_fill(struct client *client)
{
    struct client_producer *producer = container_of(client, struct client_producer, client);
    if (producer->idempotent && producer->producer_id < 0) {
        if (producer->client.link.wait_count == 0) producer_ask_id(producer);
        return;
    }
    for (uint32_t i = 0; i < producer->batch_count; i++)
        if (!producer->batches[i].sent) producer_send(producer, &producer->batches[i]);
    if (producer->batch_count == CLIENT_IN_FLIGHT_MAX || producer->quota == 0) return;
    if (!producer->client.storm) {
        producer->quota = 0;
        return;
    }
    if (producer_make(producer))
        producer_send(producer, &producer->batches[producer->batch_count - 1]);
    uint32_t pause_ms = chance_percent(&producer->client.chance, 10) ? 500 : 10;
    client_rests(&producer->client, 1 + chance_below(&producer->client.chance, pause_ms));
}

static void producer_acknowledged(struct client_producer *producer, int64_t base_offset)
{
    const struct client_batch *batch = &producer->batches[0];
    struct history *history = producer->client.history;
    /* What a single leader has acknowledged outlasts its process, not its power. */
    bool cut_since = batch->power_cuts != history->power_cuts;
    enum history_claim claim = producer->acks == -1 ? HISTORY_FIRM
                               : cut_since          ? HISTORY_NONE
                                                    : HISTORY_WEAK;
    for (uint32_t i = 0; claim != HISTORY_NONE && i < batch->count; i++)
        history_claim(history, batch->log, base_offset + i,
                      (struct history_value){producer->number, batch->number + i}, claim);
    history->acknowledged += batch->count;
    producer->batch_count--;
    memmove(producer->batches, producer->batches + 1, producer->batch_count * sizeof(*batch));
}

/* A producer's state on disk, in Kafka's form, holds the last batch of each producer only. After a
 * restart a leader can thus not know an older one that is sent again, and refuses it as out of
 * order. Whether it was written is then not known: the producer starts anew with another id. So it
 * does when a full disk refused the first batches of its id and took one behind them: of an id that
 * it does not know a leader takes any sequence, as Kafka's, and then none before it. */
static bool producer_window_lost(struct client_producer *producer)
{
    const struct client_batch *first = &producer->batches[0];
    bool another = false;
    for (uint32_t i = 1; i < producer->batch_count; i++)
        another = another || producer->batches[i].log == first->log;
    const struct history *history = producer->client.history;
    bool known = first->sequence > 0 || history->trouble_us == 0;
    if (!producer->idempotent || !another || (known && first->restarts == history->restarts))
        return false;
    producer->client.history->windows_lost++;
    history_gives_up(producer->client.history,
                     (struct history_value){producer->number, first->number},
                     producer->next_record);
    producer->batch_count = 0;
    producer->producer_id = -1;
    memset(producer->sequences, 0, sizeof(producer->sequences));
    wire_link_drop(&producer->client.link);
    return true;
}

static void producer_id_given(struct client_producer *producer,
                              const struct init_producer_id_response *in)
{
    if (in->error_code != 0) {
        client_error(&producer->client, "InitProducerId", in->error_code);
        return;
    }
    history_producer_id(producer->client.history, in->producer_id);
    producer->producer_id = in->producer_id;
    producer->producer_epoch = in->producer_epoch;
}

static void producer_answered(struct client *client, const struct wire_link_wait *wait, void *in)
{
    struct client_producer *producer = container_of(client, struct client_producer, client);
    if (wait->api == API_INIT_PRODUCER_ID) {
        producer_id_given(producer, in);
        return;
    }
    const struct produce_response *response = in;
    if (response->responses.count != 1 ||
        response->responses.items[0].partition_responses.count != 1 || producer->batch_count == 0) {
        history_violation(producer->client.history, "a Produce reply without its partition");
        return;
    }
    const struct produce_response_partition_produce_response *partition =
        &response->responses.items[0].partition_responses.items[0];
    if (partition->index != (int32_t)(producer->batches[0].log % HISTORY_PARTITIONS_MAX))
        history_violation(producer->client.history, "a Produce reply of another partition");
    producer_print(producer, partition->error_code == 0 ? "acknowledged" : "refused",
                   partition->error_code == 0 ? partition->base_offset : partition->error_code);
    if (partition->error_code == 0)
        producer_acknowledged(producer, partition->base_offset);
    else if (partition->error_code != KAFKA_OUT_OF_ORDER_SEQUENCE_NUMBER ||
             !producer_window_lost(producer))
        client_error(&producer->client, "Produce", partition->error_code);
}

static void producer_lost(struct client *client)
{
    struct client_producer *producer = container_of(client, struct client_producer, client);
    for (uint32_t i = 0; i < producer->batch_count; i++)
        producer->batches[i].sent = false;
}

static bool producer_finished(const struct client *client)
{
    const struct client_producer *producer = (const void *)client;
    return producer->quota == 0 && producer->batch_count == 0;
}

static const struct client_kind producer_kind = {
    .name = "producer",
    .size_bytes = sizeof(struct client_producer),
    .fill = producer_fill,
    .answered = producer_answered,
    .lost = producer_lost,
    .finished = producer_finished,
};

struct client_producer *client_producer_new(const struct client_seat *seat, uint32_t number)
{
    struct client *client = client_new(&producer_kind, seat);
    struct client_producer *producer = container_of(client, struct client_producer, client);
    producer->number = number;
    producer->producer_id = -1;
    producer->version = (int16_t)(3 + chance_below(&client->chance, 11));
    sink_init(&producer->sink, io_mem(client->io), WIRE_LINK_BYTES_MAX);
    return producer;
}
