/* client_deleter.c - see client_deleter.h. Only what a client was told firmly is deleted, so that
 * the offset is below the high watermark. */
#include "sim/client_deleter.h"
#include "gen/delete_records_request.h"
#include "gen/delete_records_response.h"

#define API_DELETE_RECORDS 21

static void deleter_fill(struct client *client)
{
    struct delete_records_request request;
    struct delete_records_request_delete_records_topic topic;
    struct delete_records_request_delete_records_partition partition;
    uint32_t log = chance_below(&client->chance, HISTORY_LOGS_MAX);
    const struct history_topic *known = &client->history->topics[log / HISTORY_PARTITIONS_MAX];
    client_rests(client, 200 + chance_below(&client->chance, 4000));
    int64_t end = history_firm_end(client->history, log);
    if (!client->storm || client->link.wait_count > 0 || !known->known || end == 0) return;
    wire_defaults(&wire_delete_records_request, &request);
    wire_struct_defaults(&wire_delete_records_request_delete_records_topic_shape, &topic);
    wire_struct_defaults(&wire_delete_records_request_delete_records_partition_shape, &partition);
    partition.partition_index = (int32_t)(log % HISTORY_PARTITIONS_MAX);
    partition.offset = chance_below(&client->chance, (uint32_t)end + 1);
    topic.name = view_of_string(known->name);
    topic.partitions.items = &partition;
    topic.partitions.count = 1;
    request.topics.items = &topic;
    request.topics.count = 1;
    request.timeout_ms = 5000;
    history_delete_asked(client->history, log, partition.offset);
    wire_link_send(&client->link, API_DELETE_RECORDS,
                   (int16_t)(1 + chance_below(&client->chance, 2)), &request);
}

static void deleter_answered(struct client *client, const struct wire_link_wait *wait, void *in)
{
    const struct delete_records_response *response = in;
    for (int32_t i = 0; i < response->topics.count; i++) {
        const struct delete_records_response_delete_records_topic_result *topic =
            &response->topics.items[i];
        int32_t number = client_topic_of(client, topic->name, (struct uuid){{0xff}});
        for (int32_t p = 0; number >= 0 && p < topic->partitions.count; p++) {
            const struct delete_records_response_delete_records_partition_result *partition =
                &topic->partitions.items[p];
            uint32_t log =
                (uint32_t)number * HISTORY_PARTITIONS_MAX + (uint32_t)partition->partition_index;
            if (partition->error_code != 0)
                client_error(client, "DeleteRecords", partition->error_code);
            else
                history_deleted(client->history, log, partition->low_watermark, wait->restarts);
        }
    }
}

static void deleter_lost(struct client *client)
{
    (void)client;
}

static bool deleter_finished(const struct client *client)
{
    (void)client;
    return true;
}

const struct client_kind client_deleter_kind = {
    .name = "deleter",
    .size_bytes = sizeof(struct client),
    .fill = deleter_fill,
    .answered = deleter_answered,
    .lost = deleter_lost,
    .finished = deleter_finished,
};
