/* client_own.c - see client_own.h. */
#include "sim/client_own.h"

#include <stdio.h>

#include "gen/create_topics_request.h"
#include "gen/delete_topics_request.h"
#include "gen/fetch_request.h"
#include "gen/list_offsets_request.h"
#include "gen/metadata_request.h"
#include "gen/produce_request.h"
#include "record/batch.h"

#define EARLIEST     (-2)
#define SETTINGS_MAX 8u

void client_own_init(struct client_own *own, const char *prefix, const struct client_seat *seat)
{
    (void)snprintf(own->name, sizeof(own->name), "%s%u", prefix, seat->index);
    sink_init(&own->sink, io_mem(own->client.io), WIRE_LINK_BYTES_MAX);
}

void client_own_create(struct client_own *own,
                       const struct client_own_setting *settings,
                       uint32_t count)
{
    struct create_topics_request request;
    struct create_topics_request_creatable_topic topic;
    struct create_topics_request_creatable_topic_config configs[SETTINGS_MAX];
    assert(count <= SETTINGS_MAX);
    wire_defaults(&wire_create_topics_request, &request);
    wire_struct_defaults(&wire_create_topics_request_creatable_topic_shape, &topic);
    for (uint32_t i = 0; i < count; i++) {
        wire_struct_defaults(&wire_create_topics_request_creatable_topic_config_shape, &configs[i]);
        configs[i].name = view_of_string(settings[i].name);
        configs[i].value = view_of_string(settings[i].value);
    }
    topic.name = view_of_string(own->name);
    topic.num_partitions = 1;
    topic.replication_factor = 1;
    topic.configs.items = configs;
    topic.configs.count = (int32_t)count;
    request.topics.items = &topic;
    request.topics.count = 1;
    request.timeout_ms = 5000;
    wire_link_send(&own->client.link, CLIENT_OWN_CREATE, 7, &request);
}

void client_own_look(struct client_own *own)
{
    struct metadata_request request;
    struct metadata_request_metadata_request_topic topic;
    wire_defaults(&wire_metadata_request, &request);
    wire_struct_defaults(&wire_metadata_request_metadata_request_topic_shape, &topic);
    topic.name = view_of_string(own->name);
    request.topics.items = &topic;
    request.topics.count = 1;
    request.allow_auto_topic_creation = false;
    wire_link_send(&own->client.link, CLIENT_OWN_METADATA, 12, &request);
}

void client_own_delete(struct client_own *own, bool by_id)
{
    struct delete_topics_request request;
    struct delete_topics_request_delete_topic_state topic;
    wire_defaults(&wire_delete_topics_request, &request);
    wire_struct_defaults(&wire_delete_topics_request_delete_topic_state_shape, &topic);
    topic.name = by_id ? VIEW_NULL : view_of_string(own->name);
    if (by_id) topic.topic_id = own->id;
    request.topics.items = &topic;
    request.topics.count = 1;
    request.timeout_ms = 5000;
    wire_link_send(&own->client.link, CLIENT_OWN_DELETE, 6, &request);
}

void client_own_produce(struct client_own *own, struct view records, int16_t version)
{
    struct produce_request request;
    struct produce_request_topic_produce_data topic;
    struct produce_request_partition_produce_data partition;
    wire_defaults(&wire_produce_request, &request);
    wire_struct_defaults(&wire_produce_request_topic_produce_data_shape, &topic);
    wire_struct_defaults(&wire_produce_request_partition_produce_data_shape, &partition);
    partition.records = records;
    topic.name = view_of_string(own->name);
    topic.topic_id = own->id;
    topic.partition_data.items = &partition;
    topic.partition_data.count = 1;
    request.transactional_id = VIEW_NULL;
    request.acks = -1;
    request.timeout_ms = 30000;
    request.topic_data.items = &topic;
    request.topic_data.count = 1;
    wire_link_send(&own->client.link, CLIENT_OWN_PRODUCE, version, &request);
}

void client_own_fetch(struct client_own *own, const struct client_own_fetch *how)
{
    struct fetch_request request;
    struct fetch_request_fetch_topic topic;
    struct fetch_request_fetch_partition partition;
    wire_defaults(&wire_fetch_request, &request);
    wire_struct_defaults(&wire_fetch_request_fetch_topic_shape, &topic);
    wire_struct_defaults(&wire_fetch_request_fetch_partition_shape, &partition);
    partition.fetch_offset = how->offset;
    partition.partition_max_bytes = 1000 + (int32_t)chance_below(&own->client.chance, 30000);
    topic.topic = view_of_string(own->name);
    topic.topic_id = how->id;
    topic.partitions.items = &partition;
    topic.partitions.count = 1;
    request.replica_id = -1;
    request.max_wait_ms = 20;
    request.min_bytes = 1;
    request.max_bytes = 100000;
    request.session_epoch = -1;
    request.topics.items = &topic;
    request.topics.count = 1;
    wire_link_send(&own->client.link, CLIENT_OWN_FETCH, how->version, &request);
}

void client_own_earliest(struct client_own *own)
{
    struct list_offsets_request request;
    struct list_offsets_request_list_offsets_topic topic;
    struct list_offsets_request_list_offsets_partition partition;
    wire_defaults(&wire_list_offsets_request, &request);
    wire_struct_defaults(&wire_list_offsets_request_list_offsets_topic_shape, &topic);
    wire_struct_defaults(&wire_list_offsets_request_list_offsets_partition_shape, &partition);
    partition.timestamp = EARLIEST;
    topic.name = view_of_string(own->name);
    topic.partitions.items = &partition;
    topic.partitions.count = 1;
    request.replica_id = -1;
    request.topics.items = &topic;
    request.topics.count = 1;
    wire_link_send(&own->client.link, CLIENT_OWN_LIST_OFFSETS, 7, &request);
}

void client_own_read(struct client_own *own,
                     struct view records,
                     int64_t *offset,
                     client_own_each *each)
{
    struct history *history = own->client.history;
    struct batch_scan scan = batch_scan_of(records);
    struct batch_header header;
    struct record_iter iter;
    struct record record;
    struct view batch;
    int64_t from = *offset;
    while (batch_next(&scan, &header, &batch)) {
        if (header.magic != 2 || !batch_crc_valid(&header, batch)) {
            history_violation(history, "%s: a damaged batch at %lld", own->name,
                              (long long)header.base_offset);
            return;
        }
        record_iter_begin(&iter, NULL, &header, batch);
        while (record_next(&iter, &record))
            if (record.offset >= from && !each(own, &record)) return;
        if (record_iter_end(&iter) != RECORD_OK)
            history_violation(history, "%s: damaged records at %lld", own->name,
                              (long long)header.base_offset);
        *offset = MAX(*offset, batch_last_offset(&header) + 1);
    }
    if (scan.fault != RECORD_OK) history_violation(history, "%s: no batch", own->name);
}
