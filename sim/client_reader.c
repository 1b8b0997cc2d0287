/* client_reader.c - a reader: all partitions of all known topics, from their start, by assignment;
 * now and then it asks for the offsets' ends. */
#include "sim/client_reader.h"
#include "gen/errors.h"
#include "gen/fetch_request.h"
#include "gen/fetch_response.h"
#include "gen/list_offsets_request.h"
#include "gen/list_offsets_response.h"
#include "record/batch.h"

#define API_FETCH        1
#define API_LIST_OFFSETS 2
#define LATEST           (-1)
#define SESSIONS_VERSION 7

/* The session has ended, or what it has got is not known: the next fetch begins one anew. */
static void reader_session_new(struct client_reader *reader)
{
    reader->session_epoch = 0;
    for (uint32_t i = 0; i < HISTORY_LOGS_MAX; i++)
        reader->told[i] = -1;
}

/* The partitions of one topic that the fetch is to name: all, or those that the session has not
 * got as they are. */
static void reader_fetch_topic(struct client_reader *reader,
                               uint32_t number,
                               struct fetch_request_fetch_topic *topic)
{
    const struct history_topic *known = &reader->client.history->topics[number];
    struct fetch_request_fetch_partition *partitions = topic->partitions.items;
    wire_struct_defaults(&wire_fetch_request_fetch_topic_shape, topic);
    topic->topic = view_of_string(known->name);
    topic->topic_id = known->id;
    topic->partitions.items = partitions;
    topic->partitions.count = 0;
    for (int32_t p = 0; p < known->partitions; p++) {
        uint32_t log = number * HISTORY_PARTITIONS_MAX + (uint32_t)p;
        if (reader->sessions && reader->told[log] == reader->offsets[log]) continue;
        struct fetch_request_fetch_partition *partition =
            &topic->partitions.items[topic->partitions.count++];
        wire_struct_defaults(&wire_fetch_request_fetch_partition_shape, partition);
        partition->partition = p;
        partition->fetch_offset = reader->told[log] = reader->offsets[log];
        partition->partition_max_bytes =
            1000 + (int32_t)chance_below(&reader->client.chance, 20000);
    }
}

static void reader_fetch(struct client_reader *reader)
{
    struct fetch_request request;
    struct fetch_request_fetch_topic topics[HISTORY_TOPICS_MAX];
    struct fetch_request_fetch_partition partitions[HISTORY_LOGS_MAX];
    struct chance *chance = &reader->client.chance;
    wire_defaults(&wire_fetch_request, &request);
    request.replica_id = -1;
    request.max_wait_ms = reader->audit ? 10 : (int32_t)chance_below(chance, 500);
    request.min_bytes = 1 + (int32_t)chance_below(chance, 2) * 400;
    request.max_bytes = 2000 + (int32_t)chance_below(chance, 60000);
    request.isolation_level = (int8_t)chance_below(chance, 2);
    request.session_id = reader->sessions ? reader->session_id : 0;
    request.session_epoch = reader->sessions ? reader->session_epoch : -1;
    request.topics.items = topics;
    request.topics.count = 0;
    for (uint32_t i = 0; i < reader->client.history->topic_count; i++) {
        struct fetch_request_fetch_topic *topic = &topics[request.topics.count];
        topic->partitions.items = &partitions[i * HISTORY_PARTITIONS_MAX];
        if (!reader->client.history->topics[i].known) continue;
        reader_fetch_topic(reader, i, topic);
        request.topics.count += topic->partitions.count > 0;
    }
    if (request.topics.count > 0 || reader->session_epoch > 0)
        wire_link_send(&reader->client.link, API_FETCH, reader->version, &request);
}

static void reader_ask_ends(struct client_reader *reader)
{
    struct list_offsets_request request;
    struct list_offsets_request_list_offsets_topic topic;
    struct list_offsets_request_list_offsets_partition partition;
    uint32_t number = chance_below(&reader->client.chance, reader->client.history->topic_count);
    const struct history_topic *known = &reader->client.history->topics[number];
    if (!known->known) return;
    wire_defaults(&wire_list_offsets_request, &request);
    wire_struct_defaults(&wire_list_offsets_request_list_offsets_topic_shape, &topic);
    wire_struct_defaults(&wire_list_offsets_request_list_offsets_partition_shape, &partition);
    partition.partition_index =
        (int32_t)chance_below(&reader->client.chance, (uint32_t)known->partitions);
    partition.timestamp = LATEST;
    topic.name = view_of_string(known->name);
    topic.partitions.items = &partition;
    topic.partitions.count = 1;
    request.replica_id = -1;
    request.topics.items = &topic;
    request.topics.count = 1;
    wire_link_send(&reader->client.link, API_LIST_OFFSETS,
                   (int16_t)(1 + chance_below(&reader->client.chance, 7)), &request);
}

static void reader_fill(struct client *client)
{
    struct client_reader *reader = container_of(client, struct client_reader, client);
    if (reader->client.link.wait_count > 0) return;
    for (uint32_t i = 0; i < HISTORY_LOGS_MAX; i++)
        reader->high_low[i] = client->history->logs[i].high_watermark;
    if (!reader->audit && chance_percent(&reader->client.chance, 10)) reader_ask_ends(reader);
    if (reader->client.link.wait_count == 0) reader_fetch(reader);
    client_rests(&reader->client, 1 + chance_below(&reader->client.chance, 20));
}

static void reader_high_watermark(struct client_reader *reader, uint32_t log, int64_t offset)
{
    if (offset < reader->high_watermarks[log])
        history_violation(reader->client.history,
                          "I3: log %u: the high watermark fell from %lld to %lld", log,
                          (long long)reader->high_watermarks[log], (long long)offset);
    if (offset < reader->high_low[log])
        history_violation(reader->client.history,
                          "I3: log %u: the high watermark is %lld, others were told %lld before",
                          log, (long long)offset, (long long)reader->high_low[log]);
    reader->high_watermarks[log] = offset;
    history_high_watermark(reader->client.history, log, offset);
}

static void reader_record(struct client_reader *reader,
                          uint32_t log,
                          const struct record *record,
                          int32_t epoch)
{
    struct history *history = reader->client.history;
    struct history_value value;
    if (record->offset < reader->offsets[log]) return; /* Its batch begins before what was asked. */
    if (record->offset != reader->offsets[log])
        history_violation(history, "log %u: offset %lld was read after %lld", log,
                          (long long)record->offset, (long long)reader->offsets[log] - 1);
    if (record->offset >= reader->high_watermarks[log])
        history_violation(history, "log %u: offset %lld was read, the high watermark is %lld", log,
                          (long long)record->offset, (long long)reader->high_watermarks[log]);
    if (!history_value_read(record->value, &value)) {
        history_violation(history, "log %u: offset %lld is a record that nobody wrote", log,
                          (long long)record->offset);
        return;
    }
    if (record->timestamp_ms != history_timestamp_ms(value))
        history_violation(history,
                          "log %u: offset %lld has another timestamp than it was sent with", log,
                          (long long)record->offset);
    history_claim(history, log, record->offset, value, HISTORY_FIRM);
    history_epoch(history, log, record->offset, epoch);
    if (reader->audit) history_audit_record(history, log, record->offset, value);
    reader->offsets[log] = record->offset + 1;
    history->read++;
}

static void reader_records(struct client_reader *reader, uint32_t log, struct view records)
{
    struct batch_scan scan = batch_scan_of(records);
    struct batch_header header;
    struct record_iter iter;
    struct record record;
    struct view batch;
    while (batch_next(&scan, &header, &batch)) {
        if (header.magic != 2 || !batch_crc_valid(&header, batch)) {
            history_violation(reader->client.history, "log %u: a damaged batch at %lld", log,
                              (long long)header.base_offset);
            return;
        }
        record_iter_begin(&iter, NULL, &header, batch);
        while (record_next(&iter, &record))
            reader_record(reader, log, &record, header.leader_epoch);
        if (record_iter_end(&iter) != RECORD_OK)
            history_violation(reader->client.history, "log %u: damaged records at %lld", log,
                              (long long)header.base_offset);
    }
    if (scan.fault != RECORD_OK)
        history_violation(reader->client.history, "log %u: bytes that are no batch", log);
}

/* What it is to read next was deleted: on from where the log can begin at the latest. */
static bool reader_skips(struct client_reader *reader, uint32_t log)
{
    int64_t deletable = reader->client.history->logs[log].deletable;
    if (reader->offsets[log] >= deletable) return false;
    reader->offsets[log] = deletable;
    return true;
}

static void reader_fetched(struct client_reader *reader,
                           const struct wire_link_wait *wait,
                           const struct fetch_response *in)
{
    bool anew = in->error_code == KAFKA_FETCH_SESSION_ID_NOT_FOUND ||
                in->error_code == KAFKA_INVALID_FETCH_SESSION_EPOCH;
    if (in->error_code != 0) {
        reader_session_new(reader);
        if (!anew) client_error(&reader->client, "Fetch", in->error_code);
        return;
    }
    if (reader->sessions) {
        reader->session_id = in->session_id;
        reader->session_epoch = in->session_id == 0 ? 0 : reader->session_epoch + 1;
        if (in->session_id == 0) reader_session_new(reader);
    }
    for (int32_t i = 0; i < in->responses.count; i++) {
        const struct fetch_response_fetchable_topic_response *topic = &in->responses.items[i];
        int32_t number = client_topic_of(&reader->client, topic->topic, topic->topic_id);
        for (int32_t p = 0; number >= 0 && p < topic->partitions.count; p++) {
            const struct fetch_response_partition_data *partition = &topic->partitions.items[p];
            uint32_t log =
                (uint32_t)number * HISTORY_PARTITIONS_MAX + (uint32_t)partition->partition_index;
            if (partition->error_code == KAFKA_OFFSET_OUT_OF_RANGE && reader_skips(reader, log))
                continue;
            if (partition->error_code != 0) {
                client_error(&reader->client, "Fetch of a partition", partition->error_code);
                return;
            }
            if (partition->log_start_offset >= 0)
                history_log_start(reader->client.history, log, partition->log_start_offset,
                                  wait->restarts);
            reader_high_watermark(reader, log, partition->high_watermark);
            reader_records(reader, log, partition->records);
            reader->caught_up[log] = reader->offsets[log] == partition->high_watermark;
        }
    }
}

static void reader_answered(struct client *client, const struct wire_link_wait *wait, void *in)
{
    struct client_reader *reader = container_of(client, struct client_reader, client);
    if (wait->api == API_FETCH) {
        reader_fetched(reader, wait, in);
        return;
    }
    const struct list_offsets_response *response = in;
    for (int32_t i = 0; i < response->topics.count; i++) {
        int32_t number =
            client_topic_of(&reader->client, response->topics.items[i].name, (struct uuid){{0}});
        for (int32_t p = 0; number >= 0 && p < response->topics.items[i].partitions.count; p++) {
            const struct list_offsets_response_list_offsets_partition_response *partition =
                &response->topics.items[i].partitions.items[p];
            uint32_t log =
                (uint32_t)number * HISTORY_PARTITIONS_MAX + (uint32_t)partition->partition_index;
            if (partition->error_code != 0) {
                client_error(&reader->client, "ListOffsets", partition->error_code);
                return;
            }
            reader_high_watermark(reader, log, partition->offset);
        }
    }
}

static void reader_lost(struct client *client)
{
    reader_session_new(container_of(client, struct client_reader, client));
}

static bool reader_finished(const struct client *client)
{
    const struct client_reader *reader = (const void *)client;
    if (!reader->audit) return true;
    for (uint32_t i = 0; i < client->history->topic_count; i++)
        for (int32_t p = 0; p < client->history->topics[i].partitions; p++)
            if (!reader->caught_up[i * HISTORY_PARTITIONS_MAX + (uint32_t)p]) return false;
    return true;
}

static const struct client_kind reader_kind = {
    .name = "reader",
    .size_bytes = sizeof(struct client_reader),
    .fill = reader_fill,
    .answered = reader_answered,
    .lost = reader_lost,
    .finished = reader_finished,
};

struct client_reader *client_reader_new(const struct client_seat *seat)
{
    static const int16_t versions[] = {4, 6, 11, 12, 13, 16, 18};
    struct client *client = client_new(&reader_kind, seat);
    struct client_reader *reader = container_of(client, struct client_reader, client);
    reader->version = versions[chance_below(&client->chance, ARRAY_SIZE(versions))];
    reader->sessions = reader->version >= SESSIONS_VERSION && chance_percent(&client->chance, 60);
    reader_session_new(reader);
    return reader;
}

void client_reader_audits(struct client_reader *reader)
{
    memset(reader->offsets, 0, sizeof(reader->offsets));
    memset(reader->caught_up, 0, sizeof(reader->caught_up));
    reader->audit = true;
    wire_link_drop(&reader->client.link); /* A reply under way was asked for other offsets. */
}
