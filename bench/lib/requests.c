/* requests.c - see requests.h. */
#include "bench/lib/requests.h"

#include <stdio.h>
#include <stdlib.h>

#include "gen/consumer_group_heartbeat_request.h"
#include "gen/consumer_group_heartbeat_response.h"
#include "gen/create_topics_request.h"
#include "gen/create_topics_response.h"
#include "gen/errors.h"
#include "gen/fetch_request.h"
#include "gen/fetch_response.h"
#include "gen/find_coordinator_request.h"
#include "gen/find_coordinator_response.h"
#include "gen/heartbeat_request.h"
#include "gen/join_group_request.h"
#include "gen/join_group_response.h"
#include "gen/list_offsets_request.h"
#include "gen/list_offsets_response.h"
#include "gen/produce_request.h"
#include "gen/produce_response.h"
#include "gen/response_header.h"
#include "gen/sync_group_request.h"
#include "gen/sync_group_response.h"
#include "record/batch_build.h"

#define API_PRODUCE       0
#define API_FETCH         1
#define API_LIST_OFFSETS  2
#define API_COORDINATOR   10
#define API_JOIN_GROUP    11
#define API_HEARTBEAT     12
#define API_SYNC_GROUP    14
#define API_CREATE_TOPICS 19
#define API_CONSUMER_BEAT 68

#define PRODUCE_VERSION 9
#define FETCH_VERSION   12
#define LATEST          (-1)

/* The time of all records: fixed, so that a frame is the same bytes each time it is made. */
#define RECORD_TIME_MS 1700000000000

/* ---- produce and fetch ----------------------------------------------------------------------- */

/* Text-like bytes: a codec finds something in them, but not everything. */
static void fill(uint8_t *out, uint32_t size, uint64_t *state)
{
    for (uint32_t i = 0; i < size; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        out[i] = (uint8_t)("etaoin shrdlu{}\":,0123456789abcdef"[(*state >> 40) % 34]);
    }
}

/* Words of a small language, as an event has its names again and again. */
static void fill_words(uint8_t *out, uint32_t size, uint64_t *state)
{
    static const char *const words[] = {
        "{\"user\":", "\"session\":", "\"checkout\"",    "\"page\":",
        "\"/cart\"",  "\"/search\"",  "\"status\":",     "200,",
        "404,",       "\"agent\":",   "\"Mozilla/5.0\"", "\"country\":",
        "\"CZ\",",    "\"DE\",",      "\"referrer\":",   "\"https://example.org/\",",
        "}\n"};
    uint8_t digits[8];
    for (uint32_t at = 0, turn = 0; at < size; turn++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        const char *word = words[(*state >> 40) % ARRAY_SIZE(words)];
        uint32_t length = MIN((uint32_t)strlen(word), size - at);
        memcpy(out + at, word, length);
        at += length;
        if (turn % 3 != 0) continue; /* And what is new each time. */
        fill(digits, sizeof(digits), state);
        length = MIN((uint32_t)sizeof(digits), size - at);
        memcpy(out + at, digits, length);
        at += length;
    }
}

static struct view produce_batch(struct sink *sink, const struct produce_shape *shape)
{
    struct batch_build build;
    struct batch_build_options options = batch_build_plain;
    struct compress_work work;
    struct view batch;
    uint64_t state = 1;
    uint8_t *value = malloc(shape->record_bytes);
    if (value == NULL) client_die("no memory for a record");
    options.codec = shape->codec;
    compress_work_init(&work, sink->mem);
    batch_build_begin(&build, &work, sink, &options);
    for (uint32_t i = 0; i < shape->records; i++) {
        if (shape->codec == CODEC_NONE)
            fill(value, shape->record_bytes, &state);
        else
            fill_words(value, shape->record_bytes, &state);
        batch_build_add(&build,
                        &(struct record_input){.timestamp_ms = RECORD_TIME_MS,
                                               .key = VIEW_NULL,
                                               .value = view_of(value, shape->record_bytes)});
    }
    free(value);
    if (batch_build_finish(&build, -1, &batch) != RECORD_OK) client_die("a batch that is none");
    compress_work_free(&work);
    return batch;
}

void produce_frame(struct sink *out, const struct produce_shape *shape)
{
    struct sink records;
    struct produce_request request;
    struct produce_request_topic_produce_data topic;
    struct produce_request_partition_produce_data partition;
    sink_init(&records, out->mem, out->limit_bytes);
    wire_defaults(&wire_produce_request, &request);
    wire_struct_defaults(&wire_produce_request_topic_produce_data_shape, &topic);
    wire_struct_defaults(&wire_produce_request_partition_produce_data_shape, &partition);
    partition.index = shape->partition;
    partition.records = produce_batch(&records, shape);
    topic.name = view_of_string(shape->topic);
    topic.partition_data.items = &partition;
    topic.partition_data.count = 1;
    request.transactional_id = VIEW_NULL;
    request.acks = shape->acks;
    request.timeout_ms = 30000;
    request.topic_data.items = &topic;
    request.topic_data.count = 1;
    (void)client_encode(out, API_PRODUCE, PRODUCE_VERSION, 0, &request);
    sink_free(&records);
}

bool produce_answer_fine(struct view head, const char *topic, int16_t version)
{
    /* Correlation, (tags,) one topic with its name, one partition, index: then the error. */
    uint32_t name = (uint32_t)strlen(topic);
    uint32_t at = version >= 9 ? 4 + 1 + 1 + 1 + name + 1 + 4 : 4 + 4 + 2 + name + 4 + 4;
    return head.size >= at + 2 && load_be16(head.data + at) == 0;
}

uint32_t produce_batch_bytes(const struct produce_shape *shape, struct mem *mem)
{
    struct sink sink;
    sink_init(&sink, mem, UINT32_MAX);
    uint32_t size = produce_batch(&sink, shape).size;
    sink_free(&sink);
    return size;
}

int16_t produce_error(struct client *client)
{
    const struct wire_form *head =
        wire_form(&wire_response_header,
                  wire_response_header_version(wire_api(API_PRODUCE), PRODUCE_VERSION));
    struct response_header header;
    struct produce_response response;
    struct reader in = reader_of(sink_view(&client->answer));
    arena_reset(&client->decode);
    if (!wire_decode(&in, head, &client->decode, &header) ||
        !wire_decode(&in, wire_form(&wire_produce_response, PRODUCE_VERSION), &client->decode,
                     &response) ||
        response.responses.count != 1 || response.responses.items[0].partition_responses.count != 1)
        client_die("the answer to Produce cannot be read");
    int16_t error = response.responses.items[0].partition_responses.items[0].error_code;
    return error == KAFKA_NONE ? -1 : error;
}

/* A request with the parts that it points to. */
struct fetch_parts {
    struct fetch_request request;
    struct fetch_request_fetch_topic topic;
    struct fetch_request_fetch_partition partition;
};

static void fetch_fill(struct fetch_parts *parts, const struct fetch_shape *shape)
{
    wire_defaults(&wire_fetch_request, &parts->request);
    wire_struct_defaults(&wire_fetch_request_fetch_topic_shape, &parts->topic);
    wire_struct_defaults(&wire_fetch_request_fetch_partition_shape, &parts->partition);
    parts->partition.partition = shape->partition;
    parts->partition.fetch_offset = shape->offset;
    parts->partition.partition_max_bytes = shape->bytes_max;
    parts->topic.topic = view_of_string(shape->topic);
    parts->topic.partitions.items = &parts->partition;
    parts->topic.partitions.count = 1;
    parts->request.replica_id = -1;
    parts->request.max_wait_ms = shape->wait_ms;
    parts->request.min_bytes = 1;
    parts->request.max_bytes = shape->bytes_max;
    parts->request.session_epoch = -1;
    parts->request.topics.items = &parts->topic;
    parts->request.topics.count = 1;
}

void fetch_frame(struct sink *out, const struct fetch_shape *shape)
{
    struct fetch_parts parts;
    fetch_fill(&parts, shape);
    (void)client_encode(out, API_FETCH, FETCH_VERSION, 0, &parts.request);
}

struct view fetch_call(struct client *client, const struct fetch_shape *shape)
{
    struct fetch_parts parts;
    fetch_fill(&parts, shape);
    const struct fetch_response *found =
        client_call(client, API_FETCH, FETCH_VERSION, &parts.request);
    if (found->error_code != KAFKA_NONE || found->responses.count != 1)
        client_die("Fetch: error %d", found->error_code);
    const struct fetch_response_partition_data *partition =
        &found->responses.items[0].partitions.items[0];
    if (partition->error_code != KAFKA_NONE) client_die("Fetch: error %d", partition->error_code);
    return partition->records;
}

/* Behind the offset: int32, int64, int32; tags of partition and topic, no forgotten topics, an
 * empty rack, tags. */
uint32_t fetch_offset_at(struct view frame)
{
    assert(frame.size > 29);
    return frame.size - (4 + 8 + 4 + 5) - 8;
}

/* ---- groups ---------------------------------------------------------------------------------- */

void heartbeat_frame(struct sink *out, const struct group_member *member)
{
    struct heartbeat_request request;
    wire_defaults(&wire_heartbeat_request, &request);
    request.group_id = view_of_string(member->group);
    request.generation_id = member->generation;
    request.member_id = view_of_string(member->id);
    request.group_instance_id = VIEW_NULL;
    (void)client_encode(out, API_HEARTBEAT, 4, 0, &request);
}

static const struct join_group_response *join(struct client *client, struct group_member *member)
{
    struct join_group_request request;
    struct join_group_request_join_group_request_protocol protocol;
    wire_defaults(&wire_join_group_request, &request);
    wire_struct_defaults(&wire_join_group_request_join_group_request_protocol_shape, &protocol);
    protocol.name = VIEW("range");
    protocol.metadata = VIEW("\0\1\0\0\0\0\377\377\377\377");
    request.group_id = view_of_string(member->group);
    request.session_timeout_ms = 300000;
    request.rebalance_timeout_ms = 300000;
    request.member_id = view_of_string(member->id);
    request.group_instance_id = VIEW_NULL;
    request.protocol_type = VIEW("consumer");
    request.protocols.items = &protocol;
    request.protocols.count = 1;
    return client_call(client, API_JOIN_GROUP, 9, &request);
}

/* The first question of a cluster's life makes the offsets topic. */
static void find_coordinator(struct client *client, const struct group_member *member)
{
    struct find_coordinator_request request;
    struct view key = view_of_string(member->group);
    const struct find_coordinator_response *found;
    wire_defaults(&wire_find_coordinator_request, &request);
    request.coordinator_keys.items = &key;
    request.coordinator_keys.count = 1;
    do {
        client_pause();
        found = client_call(client, API_COORDINATOR, 4, &request);
    } while (found->coordinators.items[0].error_code == KAFKA_COORDINATOR_NOT_AVAILABLE);
    if (found->coordinators.items[0].error_code != KAFKA_NONE)
        client_die("FindCoordinator: error %d", found->coordinators.items[0].error_code);
}

/* Coordinators of a new offsets topic are still loading. */
static bool join_again(int16_t error)
{
    return error == KAFKA_COORDINATOR_NOT_AVAILABLE || error == KAFKA_NOT_COORDINATOR ||
           error == KAFKA_COORDINATOR_LOAD_IN_PROGRESS;
}

void join_group_call(struct client *client, struct group_member *member)
{
    struct sync_group_request request;
    struct sync_group_request_sync_group_request_assignment assignment;
    const struct join_group_response *joined;
    member->id[0] = '\0';
    find_coordinator(client, member);
    do {
        if (member->id[0] == '\0') client_pause();
        joined = join(client, member);
        (void)snprintf(member->id, sizeof(member->id), "%.*s", (int)joined->member_id.size,
                       (const char *)joined->member_id.data);
    } while (join_again(joined->error_code) || joined->error_code == KAFKA_MEMBER_ID_REQUIRED);
    if (joined->error_code != KAFKA_NONE) client_die("JoinGroup: error %d", joined->error_code);
    member->generation = joined->generation_id;

    wire_defaults(&wire_sync_group_request, &request);
    wire_struct_defaults(&wire_sync_group_request_sync_group_request_assignment_shape, &assignment);
    assignment.member_id = view_of_string(member->id);
    assignment.assignment = VIEW("\0\1\0\0\0\0\377\377\377\377");
    request.group_id = view_of_string(member->group);
    request.generation_id = member->generation;
    request.member_id = view_of_string(member->id);
    request.group_instance_id = VIEW_NULL;
    request.protocol_type = VIEW("consumer");
    request.protocol_name = VIEW("range");
    request.assignments.items = &assignment;
    request.assignments.count = 1;
    const struct sync_group_response *synced = client_call(client, API_SYNC_GROUP, 5, &request);
    if (synced->error_code != KAFKA_NONE) client_die("SyncGroup: error %d", synced->error_code);
}

static void consumer_heartbeat(const struct group_member *member,
                               struct consumer_group_heartbeat_request *request)
{
    wire_defaults(&wire_consumer_group_heartbeat_request, request);
    request->group_id = view_of_string(member->group);
    request->member_id = view_of_string(member->id);
    request->member_epoch = member->generation;
    request->topic_partitions.count = -1;
    request->subscribed_topic_names.count = -1;
}

void consumer_join_call(struct client *client, struct group_member *member)
{
    struct consumer_group_heartbeat_request request;
    const struct consumer_group_heartbeat_response *joined;
    struct view topic = VIEW("nobody-has-made-it");
    find_coordinator(client, member);
    member->generation = 0;
    consumer_heartbeat(member, &request);
    request.rebalance_timeout_ms = 300000;
    request.topic_partitions.count = 0;
    request.subscribed_topic_names.items = &topic;
    request.subscribed_topic_names.count = 1;
    do {
        joined = client_call(client, API_CONSUMER_BEAT, 1, &request);
    } while (join_again(joined->error_code));
    if (joined->error_code != KAFKA_NONE)
        client_die("ConsumerGroupHeartbeat: error %d", joined->error_code);
    member->generation = joined->member_epoch;
}

void consumer_heartbeat_frame(struct sink *out, const struct group_member *member)
{
    struct consumer_group_heartbeat_request request;
    consumer_heartbeat(member, &request);
    (void)client_encode(out, API_CONSUMER_BEAT, 1, 0, &request);
}

/* ---- topics ---------------------------------------------------------------------------------- */

static int16_t create_topic(struct client *client, const char *name, int32_t partitions)
{
    struct create_topics_request request;
    struct create_topics_request_creatable_topic topic;
    wire_defaults(&wire_create_topics_request, &request);
    wire_struct_defaults(&wire_create_topics_request_creatable_topic_shape, &topic);
    topic.name = view_of_string(name);
    topic.num_partitions = partitions;
    topic.replication_factor = 1;
    request.topics.items = &topic;
    request.topics.count = 1;
    request.timeout_ms = 120000;
    const struct create_topics_response *made = client_call(client, API_CREATE_TOPICS, 7, &request);
    if (made->topics.count != 1) client_die("CreateTopics: an answer without the topic");
    return made->topics.items[0].error_code;
}

void create_topic_call(struct client *client, const char *name, int32_t partitions)
{
    int16_t error = create_topic(client, name, partitions);
    if (error != KAFKA_NONE) client_die("CreateTopics: error %d", error);
}

void create_topic_try(struct client *client, const char *name, int32_t partitions)
{
    (void)create_topic(client, name, partitions);
}

int16_t end_offset_try(struct client *client, const char *name, int32_t index, int64_t *offset)
{
    struct list_offsets_request request;
    struct list_offsets_request_list_offsets_topic topic;
    struct list_offsets_request_list_offsets_partition partition;
    wire_defaults(&wire_list_offsets_request, &request);
    wire_struct_defaults(&wire_list_offsets_request_list_offsets_topic_shape, &topic);
    wire_struct_defaults(&wire_list_offsets_request_list_offsets_partition_shape, &partition);
    partition.partition_index = index;
    partition.timestamp = LATEST;
    topic.name = view_of_string(name);
    topic.partitions.items = &partition;
    topic.partitions.count = 1;
    request.replica_id = -1;
    request.topics.items = &topic;
    request.topics.count = 1;
    const struct list_offsets_response *found = client_call(client, API_LIST_OFFSETS, 7, &request);
    const struct list_offsets_response_list_offsets_partition_response *end =
        &found->topics.items[0].partitions.items[0];
    *offset = end->offset;
    return end->error_code;
}

int64_t end_offset_call(struct client *client, const char *name, int32_t index)
{
    int64_t offset;
    int16_t error = end_offset_try(client, name, index, &offset);
    if (error != KAFKA_NONE) client_die("ListOffsets: error %d", error);
    return offset;
}
