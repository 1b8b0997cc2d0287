/* samples.c - see samples.h. */
#include "bench/lib/samples.h"

#include <stdio.h>

#include "bench/lib/client.h"
#include "gen/api_versions_response.h"
#include "gen/broker_heartbeat_request.h"
#include "gen/consumer_group_heartbeat_request.h"
#include "gen/fetch_request.h"
#include "gen/fetch_response.h"
#include "gen/heartbeat_request.h"
#include "gen/join_group_response.h"
#include "gen/metadata_response.h"
#include "gen/offset_commit_request.h"
#include "gen/produce_request.h"
#include "sys/memory.h"

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static void *items(struct arena *arena, size_t count, size_t size)
{
    void *block = arena_get(arena, count * size);
    if (block == NULL) client_die("no memory for a sample");
    return block;
}

/* `prefix` and letters up to a length that differs. */
static struct view text(struct arena *arena, const char *prefix, uint32_t more, uint64_t *seed)
{
    uint32_t start = (uint32_t)strlen(prefix), size = start + more + (uint32_t)(draw(seed) % 8);
    uint8_t *bytes = items(arena, size, 1);
    memcpy(bytes, prefix, start);
    for (uint32_t i = start; i < size; i++)
        bytes[i] = (uint8_t)('a' + draw(seed) % 26);
    return view_of(bytes, size);
}

static struct uuid uuid(uint64_t *seed)
{
    struct uuid out;
    for (size_t i = 0; i < sizeof(out.bytes); i++)
        out.bytes[i] = (uint8_t)draw(seed);
    return out;
}

static void heartbeat(struct arena *arena, void *into, uint32_t count, uint64_t seed)
{
    struct heartbeat_request *out = into;
    (void)count;
    out->group_id = text(arena, "group-", 10, &seed);
    out->generation_id = (int32_t)draw(&seed);
    out->member_id = text(arena, "consumer-", 40, &seed);
    out->group_instance_id = seed & 1 ? VIEW_NULL : text(arena, "instance-", 4, &seed);
}

static void consumer_heartbeat(struct arena *arena, void *into, uint32_t count, uint64_t seed)
{
    struct consumer_group_heartbeat_request *out = into;
    (void)count;
    out->group_id = text(arena, "group-", 10, &seed);
    out->member_id = text(arena, "", 22, &seed);
    out->member_epoch = (int32_t)draw(&seed);
    out->instance_id = out->rack_id = VIEW_NULL;
    out->subscribed_topic_regex = out->server_assignor = VIEW_NULL;
    out->rebalance_timeout_ms = -1;
    out->subscribed_topic_names.count = -1;
    out->topic_partitions.count = -1;
}

static void broker_heartbeat(struct arena *arena, void *into, uint32_t count, uint64_t seed)
{
    struct broker_heartbeat_request *out = into;
    (void)arena;
    (void)count;
    out->broker_id = (int32_t)draw(&seed);
    out->broker_epoch = (int64_t)draw(&seed);
    out->current_metadata_offset = (int64_t)draw(&seed);
    out->want_fence = seed & 1;
}

static void fetch(struct arena *arena, void *into, uint32_t count, uint64_t seed)
{
    struct fetch_request *out = into;
    struct fetch_request_fetch_topic *topic = items(arena, 1, sizeof(*topic));
    wire_struct_defaults(&wire_fetch_request_fetch_topic_shape, topic);
    out->max_wait_ms = 500;
    out->min_bytes = 1;
    out->max_bytes = 52428800;
    out->session_id = (int32_t)draw(&seed);
    out->session_epoch = (int32_t)draw(&seed);
    out->topics.items = topic;
    out->topics.count = 1;
    topic->topic_id = uuid(&seed);
    topic->partitions.items = items(arena, count, sizeof(*topic->partitions.items));
    topic->partitions.count = (int32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        struct fetch_request_fetch_partition *partition = &topic->partitions.items[i];
        wire_struct_defaults(&wire_fetch_request_fetch_partition_shape, partition);
        partition->partition = (int32_t)i;
        partition->current_leader_epoch = (int32_t)draw(&seed);
        partition->fetch_offset = (int64_t)draw(&seed);
        partition->partition_max_bytes = 1048576;
    }
}

/* One batch of 16 KiB, whose bytes no codec looks into. */
static void produce(struct arena *arena, void *into, uint32_t count, uint64_t seed)
{
    struct produce_request *out = into;
    struct produce_request_topic_produce_data *topic = items(arena, 1, sizeof(*topic));
    struct produce_request_partition_produce_data *partition = items(arena, 1, sizeof(*partition));
    wire_struct_defaults(&wire_produce_request_topic_produce_data_shape, topic);
    wire_struct_defaults(&wire_produce_request_partition_produce_data_shape, partition);
    out->transactional_id = VIEW_NULL;
    out->acks = -1;
    out->timeout_ms = 30000;
    out->topic_data.items = topic;
    out->topic_data.count = 1;
    topic->name = text(arena, "topic-", 10, &seed);
    topic->partition_data.items = partition;
    topic->partition_data.count = 1;
    partition->index = (int32_t)(draw(&seed) % 6);
    partition->records = text(arena, "", count, &seed);
}

static void produce_outside(void *message)
{
    struct produce_request *out = message;
    for (int32_t t = 0; t < out->topic_data.count; t++)
        for (int32_t p = 0; p < out->topic_data.items[t].partition_data.count; p++)
            out->topic_data.items[t].partition_data.items[p].records.external = true;
}

/* What a fetch of as many partitions gives: 1 KiB of records of each. */
static void fetched(struct arena *arena, void *into, uint32_t count, uint64_t seed)
{
    struct fetch_response *out = into;
    struct fetch_response_fetchable_topic_response *topic = items(arena, 1, sizeof(*topic));
    wire_struct_defaults(&wire_fetch_response_fetchable_topic_response_shape, topic);
    out->session_id = (int32_t)draw(&seed);
    out->responses.items = topic;
    out->responses.count = 1;
    topic->topic_id = uuid(&seed);
    topic->partitions.items = items(arena, count, sizeof(*topic->partitions.items));
    topic->partitions.count = (int32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        struct fetch_response_partition_data *partition = &topic->partitions.items[i];
        wire_struct_defaults(&wire_fetch_response_partition_data_shape, partition);
        partition->partition_index = (int32_t)i;
        partition->high_watermark = partition->last_stable_offset = (int64_t)draw(&seed);
        partition->log_start_offset = 0;
        partition->aborted_transactions.count = -1;
        partition->records = text(arena, "", 1024, &seed);
    }
}

static void fetched_outside(void *message)
{
    struct fetch_response *out = message;
    for (int32_t t = 0; t < out->responses.count; t++)
        for (int32_t p = 0; p < out->responses.items[t].partitions.count; p++)
            out->responses.items[t].partitions.items[p].records.external = true;
}

static void api_versions(struct arena *arena, void *into, uint32_t count, uint64_t seed)
{
    struct api_versions_response *out = into;
    out->api_keys.items = items(arena, count, sizeof(*out->api_keys.items));
    out->api_keys.count = (int32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        out->api_keys.items[i].api_key = (int16_t)i;
        out->api_keys.items[i].min_version = (int16_t)(draw(&seed) % 4);
        out->api_keys.items[i].max_version = (int16_t)(4 + draw(&seed) % 16);
    }
}

/* What the leader of a large group is told. */
static void joined(struct arena *arena, void *into, uint32_t count, uint64_t seed)
{
    struct join_group_response *out = into;
    out->generation_id = (int32_t)draw(&seed);
    out->protocol_type = view_of_string("consumer");
    out->protocol_name = view_of_string("range");
    out->members.items = items(arena, count, sizeof(*out->members.items));
    out->members.count = (int32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        out->members.items[i].member_id = text(arena, "consumer-", 40, &seed);
        out->members.items[i].group_instance_id = VIEW_NULL;
        out->members.items[i].metadata = text(arena, "", 40, &seed);
    }
    out->leader = out->member_id = out->members.items[0].member_id;
}

static void metadata(struct arena *arena, void *into, uint32_t count, uint64_t seed)
{
    struct metadata_response *out = into;
    int32_t *replicas = items(arena, 3, sizeof(*replicas));
    for (int32_t i = 0; i < 3; i++)
        replicas[i] = i + 1;
    out->brokers.items = items(arena, 3, sizeof(*out->brokers.items));
    out->brokers.count = 3;
    for (int32_t i = 0; i < 3; i++) {
        struct metadata_response_metadata_response_broker *broker = &out->brokers.items[i];
        broker->node_id = i + 1;
        broker->host = text(arena, "broker-", 20, &seed);
        broker->port = 9092;
        broker->rack = text(arena, "rack-", 2, &seed);
    }
    out->cluster_id = text(arena, "", 22, &seed);
    out->controller_id = 1;
    out->topics.items = items(arena, count, sizeof(*out->topics.items));
    out->topics.count = (int32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        struct metadata_response_metadata_response_topic *topic = &out->topics.items[i];
        wire_struct_defaults(&wire_metadata_response_metadata_response_topic_shape, topic);
        topic->name = text(arena, "topic-", 14, &seed);
        topic->topic_id = uuid(&seed);
        topic->partitions.items = items(arena, 3, sizeof(*topic->partitions.items));
        topic->partitions.count = 3;
        for (int32_t p = 0; p < 3; p++) {
            struct metadata_response_metadata_response_partition *partition =
                &topic->partitions.items[p];
            partition->partition_index = p;
            partition->leader_id = 1 + (int32_t)(draw(&seed) % 3);
            partition->leader_epoch = (int32_t)draw(&seed);
            partition->replica_nodes.items = partition->isr_nodes.items = replicas;
            partition->replica_nodes.count = partition->isr_nodes.count = 3;
        }
    }
}

static void offset_commit(struct arena *arena, void *into, uint32_t count, uint64_t seed)
{
    struct offset_commit_request *out = into;
    struct offset_commit_request_offset_commit_request_topic *topic =
        items(arena, 1, sizeof(*topic));
    out->group_id = text(arena, "group-", 10, &seed);
    out->generation_id_or_member_epoch = (int32_t)draw(&seed);
    out->member_id = text(arena, "consumer-", 40, &seed);
    out->group_instance_id = VIEW_NULL;
    out->topics.items = topic;
    out->topics.count = 1;
    topic->name = text(arena, "topic-", 10, &seed);
    topic->partitions.items = items(arena, count, sizeof(*topic->partitions.items));
    topic->partitions.count = (int32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        struct offset_commit_request_offset_commit_request_partition *partition =
            &topic->partitions.items[i];
        partition->partition_index = (int32_t)i;
        partition->committed_offset = (int64_t)draw(&seed);
        partition->committed_leader_epoch = 7;
        partition->committed_metadata = VIEW_EMPTY;
    }
}

const struct sample_case samples_cases[] = {
    {"HeartbeatRequest-4",              &wire_heartbeat_request,                4,  0,     heartbeat,        NULL           },
    {"ConsumerGroupHeartbeatRequest-1", &wire_consumer_group_heartbeat_request, 1,  0,
     consumer_heartbeat,                                                                                     NULL           },
    {"BrokerHeartbeatRequest-2",        &wire_broker_heartbeat_request,         2,  0,     broker_heartbeat, NULL           },
    {"ApiVersionsResponse-4",           &wire_api_versions_response,            4,  60,    api_versions,     NULL           },
    {"FetchRequest-16",                 &wire_fetch_request,                    16, 30,    fetch,            NULL           },
    {"FetchResponse-16",                &wire_fetch_response,                   16, 30,    fetched,          fetched_outside},
    {"ProduceRequest-9",                &wire_produce_request,                  9,  16384, produce,          produce_outside},
    {"OffsetCommitRequest-9",           &wire_offset_commit_request,            9,  100,   offset_commit,    NULL           },
    {"JoinGroupResponse-9",             &wire_join_group_response,              9,  1000,  joined,           NULL           },
    {"MetadataResponse-12",             &wire_metadata_response,                12, 100,   metadata,         NULL           },
};
const uint32_t samples_case_count = ARRAY_SIZE(samples_cases);

void samples_encode(const struct sample_case *sample, uint32_t variant, struct sink *out)
{
    struct arena arena;
    uint32_t gaps;
    const struct wire_form *form = wire_form(sample->message, sample->version);
    arena_init(&arena, out->mem, 0);
    void *message = items(&arena, 1, sample->message->size_bytes);
    wire_defaults(sample->message, message);
    sample->fill(&arena, message, sample->count, variant + 1);
    uint32_t size = (uint32_t)wire_size(form, message);
    uint8_t *at = sink_room(out, size);
    if (at == NULL) client_die("no memory for a sample");
    sink_used(out, (uint32_t)wire_encode(form, message, at, NULL, 0, &gaps));
    arena_free(&arena);
}
