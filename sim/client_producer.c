/* client_producer.c - a producer: batches in flight, sent again in order, acknowledged in order. */
#include <stdio.h>

#include "gen/errors.h"
#include "gen/init_producer_id_request.h"
#include "gen/init_producer_id_response.h"
#include "gen/produce_request.h"
#include "gen/produce_response.h"
#include "record/batch_build.h"
#include "sim/client.h"

#define API_PRODUCE          0
#define API_INIT_PRODUCER_ID 22

static void producer_print(const struct client *client, const char *what, int64_t value)
{
    const struct client_batch *batch = &client->batches[0];
    if (!client->history->print) return;
    printf(
        "   client%u, id %lld acks %d: %s %lld: log %u records %u+%u sequence %d, %u in flight\n",
        client->number + 1, (long long)client->producer_id, client->acks, what, (long long)value,
        batch->log, batch->number, batch->count, batch->sequence, client->batch_count);
}

static void producer_ask_id(struct client *client)
{
    struct init_producer_id_request request;
    wire_defaults(&wire_init_producer_id_request, &request);
    request.transactional_id = VIEW_NULL;
    request.transaction_timeout_ms = 60000;
    request.producer_id = -1;
    request.producer_epoch = -1;
    wire_link_send(&client->link, API_INIT_PRODUCER_ID, 4, &request);
}

/* A new batch behind those in flight. False: no topic is known yet. */
static bool producer_make(struct client *client)
{
    struct history *history = client->history;
    uint32_t topic = chance_below(&client->chance, history->topic_count);
    if (!history->topics[topic].known) return false;
    uint32_t partition = chance_below(&client->chance, (uint32_t)history->topics[topic].partitions);
    uint32_t count = 1 + chance_below(&client->chance, 1 + chance_below(&client->chance, 12));
    struct client_batch *batch = &client->batches[client->batch_count++];
    *batch = (struct client_batch){.log = topic * HISTORY_PARTITIONS_MAX + partition,
                                   .number = client->next_record,
                                   .count = MIN(count, client->quota)};
    batch->restarts = history->restarts;
    batch->sequence = client->sequences[batch->log];
    client->sequences[batch->log] += (int32_t)batch->count;
    client->next_record += batch->count;
    client->quota -= batch->count;
    return true;
}

static struct view producer_records(struct client *client, const struct client_batch *batch)
{
    uint8_t bytes[HISTORY_VALUE_MAX];
    struct batch_build build;
    struct view records;
    struct batch_build_options options = batch_build_plain;
    if (client->idempotent) {
        options.producer_id = client->producer_id;
        options.producer_epoch = client->producer_epoch;
        options.base_sequence = batch->sequence;
    }
    sink_reset(&client->sink);
    batch_build_begin(&build, NULL, &client->sink, &options);
    for (uint32_t i = 0; i < batch->count; i++) {
        struct history_value value = {client->number, batch->number + i};
        uint32_t size = history_value_bytes(value, bytes);
        batch_build_add(&build, &(struct record_input){.timestamp_ms = io_wall_ms(client->io),
                                                       .key = VIEW_NULL,
                                                       .value = view_of(bytes, size)});
    }
    enum record_fault fault = batch_build_finish(&build, -1, &records);
    assert(fault == RECORD_OK);
    return records;
}

static void producer_send(struct client *client, struct client_batch *batch)
{
    struct produce_request request;
    struct produce_request_topic_produce_data topic;
    struct produce_request_partition_produce_data partition;
    const struct history_topic *known =
        &client->history->topics[batch->log / HISTORY_PARTITIONS_MAX];

    wire_defaults(&wire_produce_request, &request);
    wire_struct_defaults(&wire_produce_request_topic_produce_data_shape, &topic);
    wire_struct_defaults(&wire_produce_request_partition_produce_data_shape, &partition);
    partition.index = (int32_t)(batch->log % HISTORY_PARTITIONS_MAX);
    partition.records = producer_records(client, batch);
    topic.name = view_of_string(known->name);
    topic.topic_id = known->id;
    topic.partition_data.items = &partition;
    topic.partition_data.count = 1;
    request.transactional_id = VIEW_NULL;
    request.acks = client->acks;
    request.timeout_ms = 30000;
    request.topic_data.items = &topic;
    request.topic_data.count = 1;
    batch->power_cuts = client->history->power_cuts;
    batch->sent = true;
    wire_link_send(&client->link, API_PRODUCE, client->version, &request);
}

void client_producer_fill(struct client *client)
{
    if (client->idempotent && client->producer_id < 0) {
        if (client->link.wait_count == 0) producer_ask_id(client);
        return;
    }
    for (uint32_t i = 0; i < client->batch_count; i++)
        if (!client->batches[i].sent) producer_send(client, &client->batches[i]);
    if (client->batch_count == CLIENT_IN_FLIGHT_MAX || client->quota == 0) return;
    if (!client->storm) {
        client->quota = 0;
        return;
    }
    if (producer_make(client)) producer_send(client, &client->batches[client->batch_count - 1]);
    uint32_t pause_ms = chance_percent(&client->chance, 10) ? 500 : 10;
    client->next_ms = io_now_ms(client->io) + 1 + chance_below(&client->chance, pause_ms);
}

static void producer_acknowledged(struct client *client, int64_t base_offset)
{
    const struct client_batch *batch = &client->batches[0];
    struct history *history = client->history;
    /* What a single leader has acknowledged outlasts its process, not its power. */
    bool cut_since = batch->power_cuts != history->power_cuts;
    enum history_claim claim = client->acks == -1 ? HISTORY_FIRM
                               : cut_since        ? HISTORY_NONE
                                                  : HISTORY_WEAK;
    for (uint32_t i = 0; claim != HISTORY_NONE && i < batch->count; i++)
        history_claim(history, batch->log, base_offset + i,
                      (struct history_value){client->number, batch->number + i}, claim);
    history->acknowledged += batch->count;
    client->batch_count--;
    memmove(client->batches, client->batches + 1, client->batch_count * sizeof(*batch));
}

/* A producer's state on disk, in Kafka's form, holds the last batch of each producer only. After a
 * restart a leader can thus not know an older one that is sent again, and refuses it as out of
 * order. Whether it was written is then not known: the producer starts anew with another id. */
static bool producer_window_lost(struct client *client)
{
    const struct client_batch *first = &client->batches[0];
    bool another = false;
    for (uint32_t i = 1; i < client->batch_count; i++)
        another = another || client->batches[i].log == first->log;
    if (!client->idempotent || !another || first->restarts == client->history->restarts)
        return false;
    client->history->windows_lost++;
    client->batch_count = 0;
    client->producer_id = -1;
    memset(client->sequences, 0, sizeof(client->sequences));
    wire_link_drop(&client->link);
    return true;
}

static void producer_id_given(struct client *client, const struct init_producer_id_response *in)
{
    if (in->error_code != 0) {
        client_error(client, "InitProducerId", in->error_code);
        return;
    }
    history_producer_id(client->history, in->producer_id);
    client->producer_id = in->producer_id;
    client->producer_epoch = in->producer_epoch;
}

void client_producer_answered(struct client *client, const struct wire_link_wait *wait, void *in)
{
    if (wait->api == API_INIT_PRODUCER_ID) {
        producer_id_given(client, in);
        return;
    }
    const struct produce_response *response = in;
    if (response->responses.count != 1 ||
        response->responses.items[0].partition_responses.count != 1 || client->batch_count == 0) {
        history_violation(client->history, "a Produce reply without its partition");
        return;
    }
    const struct produce_response_partition_produce_response *partition =
        &response->responses.items[0].partition_responses.items[0];
    if (partition->index != (int32_t)(client->batches[0].log % HISTORY_PARTITIONS_MAX))
        history_violation(client->history, "a Produce reply of another partition");
    producer_print(client, partition->error_code == 0 ? "acknowledged" : "refused",
                   partition->error_code == 0 ? partition->base_offset : partition->error_code);
    if (partition->error_code == 0)
        producer_acknowledged(client, partition->base_offset);
    else if (partition->error_code != KAFKA_OUT_OF_ORDER_SEQUENCE_NUMBER ||
             !producer_window_lost(client))
        client_error(client, "Produce", partition->error_code);
}
