/* cluster_rig.h - a controller in a test: its log is a number and a list of follower images, its
 * clock is set by hand, what it does is told as text.
 *
 * Each step is appended, applied and committed at once. A follower image gets the same records in
 * their encoded form; rig_check() compares the two, and the follower with its own snapshot. */
#pragma once

#include <stdio.h>

#include "core/image_rig.h"

#include "core/cluster.h"
#include "gen/broker_heartbeat_request.h"
#include "gen/broker_heartbeat_response.h"
#include "gen/broker_registration_change_record.h"
#include "gen/broker_registration_request.h"
#include "gen/broker_registration_response.h"
#include "gen/clear_elr_record.h"
#include "gen/config_record.h"
#include "gen/create_topics_request.h"
#include "gen/create_topics_response.h"
#include "gen/errors.h"
#include "gen/feature_level_record.h"
#include "gen/partition_change_record.h"
#include "gen/partition_record.h"
#include "gen/producer_ids_record.h"
#include "gen/register_broker_record.h"
#include "gen/topic_record.h"

struct cluster_rig {
    struct rig_mem heap;
    struct arena arena;
    struct cluster *cluster;
    struct image *follower;
    int64_t now_ms;
    int64_t offset;  /* Next of the log. */
    int16_t version; /* Of the requests to come. */
    bool forwarded;
    struct step step; /* The last one. */
    char text[8192];  /* Its records, and answers. */
    size_t size;
    uint64_t random;
};

static inline void PRINTF(2, 3) rig_print(struct cluster_rig *rig, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int size = vsnprintf(rig->text + rig->size, sizeof(rig->text) - rig->size, format, list);
    va_end(list);
    assert(size >= 0 && rig->size + (size_t)size < sizeof(rig->text));
    rig->size += (size_t)size;
}

static inline void rig_print_ids(struct cluster_rig *rig, const char *name, const void *array)
{
    const struct wire_array *ids = array;
    if (ids->count < 0) return;
    rig_print(rig, " %s=[", name);
    for (int32_t i = 0; i < ids->count; i++)
        rig_print(rig, "%s%d", i > 0 ? "," : "", ((const int32_t *)ids->items)[i]);
    rig_print(rig, "]");
}

/* Test directories are told by their first byte. */
static inline void rig_print_uuids(struct cluster_rig *rig, const char *name, const void *array)
{
    const struct wire_array *ids = array;
    if (ids->count < 0) return;
    rig_print(rig, " %s=[", name);
    for (int32_t i = 0; i < ids->count; i++) {
        const struct uuid *id = &((const struct uuid *)ids->items)[i];
        rig_print(rig, "%sD%d", i > 0 ? "," : "", id->bytes[0]);
    }
    rig_print(rig, "]");
}

static inline const char *rig_topic_name(struct cluster_rig *rig, struct uuid id)
{
    static char name[64];
    const struct image_topic *topic = image_topic_by_id(cluster_image(rig->cluster), id);
    snprintf(name, sizeof(name), "%.*s", topic == NULL ? 1 : (int)topic->name.size,
             topic == NULL ? "?" : (const char *)topic->name.data);
    return name;
}

static inline void rig_print_change(struct cluster_rig *rig,
                                    const struct partition_change_record *record)
{
    rig_print(rig, "PC %s-%d", rig_topic_name(rig, record->topic_id), record->partition_id);
    rig_print_ids(rig, "isr", &record->isr);
    if (record->leader != -2) rig_print(rig, " leader=%d", record->leader);
    rig_print_ids(rig, "replicas", &record->replicas);
    rig_print_ids(rig, "removing", &record->removing_replicas);
    rig_print_ids(rig, "adding", &record->adding_replicas);
    if (record->leader_recovery_state >= 0)
        rig_print(rig, " recovery=%d", record->leader_recovery_state);
    rig_print_ids(rig, "elr", &record->eligible_leader_replicas);
    rig_print_ids(rig, "last", &record->last_known_elr);
    rig_print_uuids(rig, "dirs", &record->directories);
}

static inline void rig_print_broker_change(struct cluster_rig *rig,
                                           int16_t version,
                                           const struct broker_registration_change_record *record)
{
    rig_print(rig, "BRC%d %d", version, record->broker_id);
    if (record->fenced != 0) rig_print(rig, record->fenced > 0 ? " fence" : " unfence");
    if (record->in_controlled_shutdown) rig_print(rig, " shutdown");
    if (record->log_dirs.count > 0) rig_print_uuids(rig, "dirs", &record->log_dirs);
    rig_print_uuids(rig, "cordoned", &record->cordoned_log_dirs);
}

static inline void rig_print_record(struct cluster_rig *rig, const struct step_part *part)
{
    const void *value = part->value;
    if (part->message == &wire_partition_change_record) {
        rig_print_change(rig, value);
    } else if (part->message == &wire_broker_registration_change_record) {
        rig_print_broker_change(rig, part->version, value);
    } else if (part->message == &wire_register_broker_record) {
        const struct register_broker_record *record = value;
        rig_print(rig, "register%d %d epoch=%lld%s", part->version, record->broker_id,
                  (long long)record->broker_epoch, record->fenced ? " fenced" : "");
        rig_print_uuids(rig, "cordoned", &record->cordoned_log_dirs);
    } else if (part->message == &wire_config_record) {
        const struct config_record *record = value;
        rig_print(rig, "config %d:%.*s %.*s=%.*s", record->resource_type,
                  (int)record->resource_name.size, record->resource_name.data,
                  (int)record->name.size, record->name.data,
                  record->value.null ? 4 : (int)record->value.size,
                  record->value.null ? "null" : (const char *)record->value.data);
    } else if (part->message == &wire_clear_elr_record) {
        const struct clear_elr_record *record = value;
        rig_print(rig, "clear elr '%.*s'", (int)record->topic_name.size, record->topic_name.data);
    } else if (part->message == &wire_feature_level_record) {
        const struct feature_level_record *record = value;
        rig_print(rig, "feature %.*s=%d", (int)record->name.size, record->name.data,
                  record->feature_level);
    } else if (part->message == &wire_topic_record) {
        const struct topic_record *record = value;
        rig_print(rig, "topic %.*s", (int)record->name.size, record->name.data);
    } else if (part->message == &wire_partition_record) {
        const struct partition_record *record = value;
        rig_print(rig, "partition %d", record->partition_id);
        rig_print_ids(rig, "replicas", &record->replicas);
        rig_print_ids(rig, "isr", &record->isr);
        rig_print(rig, " leader=%d", record->leader);
    } else if (part->message == &wire_producer_ids_record) {
        rig_print(rig, "producer ids until %lld",
                  (long long)((const struct producer_ids_record *)value)->next_producer_id);
    } else {
        rig_print(rig, "%s", part->message->name);
    }
}

/* Begin a step, with the rig's clock and offset. What was told before is forgotten. */
static inline struct step *rig_step(struct cluster_rig *rig)
{
    arena_reset(&rig->arena);
    rig->size = 0;
    rig->text[0] = '\0';
    step_begin(&rig->step, &rig->arena, rig->now_ms, 1700000000000 + rig->now_ms);
    rig->step.random[0] = ++rig->random;
    rig->step.random[1] = 77;
    rig->step.offset_next = rig->offset;
    rig->step.caller.version = rig->version;
    rig->step.caller.forwarded = rig->forwarded;
    return &rig->step;
}

/* Append, apply, commit; tell the records, one behind the other. */
static inline void rig_append(struct cluster_rig *rig)
{
    struct step *step = &rig->step;
    for (uint32_t i = 0; i < step->record_count; i++) {
        if (rig->size > 0) rig_print(rig, "; ");
        rig_print_record(rig, &step->records[i].value);
    }
    for (uint32_t i = 0; i < step->record_count; i++) {
        struct step_record record;
        struct view frame = step_encode(&rig->arena, &step->records[i].value);
        assert_true(step_decode(frame, &rig->arena, &record));
        assert_int_equal(image_apply(rig->follower, &record, rig->offset + i, rig->offset),
                         IMAGE_OK);
    }
    assert_int_equal(cluster_apply(rig->cluster, step, rig->offset), IMAGE_OK);
    rig->offset += step->record_count;
    cluster_commit(rig->cluster, rig->offset);
}

static inline bool rig_copy_record(void *context, const struct step_record *record)
{
    return image_apply(context, record, 0, 0) == IMAGE_OK;
}

/* The image equals what its records made elsewhere, and what its snapshot makes. */
static inline void rig_check(struct cluster_rig *rig)
{
    struct image *image = cluster_image(rig->cluster);
    assert_true(image_equal(image, rig->follower));
    struct image *copy = image_new(&rig->heap.mem, 3);
    assert_true(rig_snapshot(image, rig_copy_record, copy));
    assert_true(image_equal(image, copy));
    image_free(copy);
}

/* A controller that is active on a fresh log with this metadata.version. */
static inline void rig_start_with(struct cluster_rig *rig,
                                  int16_t metadata_version,
                                  bool elr,
                                  config_lookup *static_config)
{
    struct image_range served[] = {
        {VIEW("group.version"),                    0, 1          },
        {VIEW("eligible.leader.replicas.version"), 0, elr ? 1 : 0}
    };
    struct cluster_options options = {
        .node_id = 1,
        .cluster_id = VIEW("cluster"),
        .session_timeout_ms = 9000,
        .idle_interval_ms = 500,
        .imbalance_interval_ms = 300000,
        .unclean_interval_ms = 300000,
        .own_broker_id = -1,
        .seed = 5,
        .static_config = static_config,
    };
    rig_mem_init(&rig->heap);
    arena_init(&rig->arena, &rig->heap.mem, 0);
    rig->follower = image_new(&rig->heap.mem, 11);
    rig->cluster = cluster_new(&rig->heap.mem, &options);
    rig->version = INT16_MAX;
    rig->offset = 1;
    assert_non_null(rig->cluster);

    struct step format;
    struct arena arena;
    arena_init(&arena, &rig->heap.mem, 0);
    step_begin(&format, &arena, 0, 0);
    assert_int_equal(cluster_format(&format, metadata_version, served, ARRAY_SIZE(served)),
                     STEP_DONE);
    struct cluster_bootstrap bootstrap = {format.records, format.record_count};
    struct step *step = rig_step(rig);
    assert_int_equal(cluster_activate(rig->cluster, step, &bootstrap), STEP_DONE);
    rig_append(rig);
    arena_free(&arena);
}

static inline void rig_start(struct cluster_rig *rig, int16_t metadata_version, bool elr)
{
    rig_start_with(rig, metadata_version, elr, NULL);
}

static inline void rig_stop(struct cluster_rig *rig)
{
    rig->heap.fail_in = -1;
    cluster_free(rig->cluster);
    image_free(rig->follower);
    arena_free(&rig->arena);
    assert_int_equal(rig->heap.mem.used_bytes, 0);
}

/* Of a test whose state is a rig: `metadata_version` and `elr` are rig_start's. */
static inline int rig_setup(void **state, int16_t metadata_version, bool elr)
{
    struct cluster_rig *rig = calloc(1, sizeof(*rig));
    assert(rig != NULL);
    rig_start(rig, metadata_version, elr);
    *state = rig;
    return 0;
}

static inline int rig_setup_22(void **state)
{
    return rig_setup(state, 22, false);
}

static inline int rig_setup_33(void **state)
{
    return rig_setup(state, 33, true);
}

/* Checked once more, and its memory counted. */
static inline int rig_teardown(void **state)
{
    struct cluster_rig *rig = *state;
    rig_check(rig);
    rig_stop(rig);
    free(rig);
    return 0;
}

/* ---- what brokers do ------------------------------------------------------------------------- */

static inline struct uuid rig_uuid(uint32_t n)
{
    return (struct uuid){
        {(uint8_t)n, [14] = 1, [15] = 7}
    };
}

/* Broker `id` registers as `incarnation`, with directories Did and Did+10. Returns the error; the
 * epoch goes to `epoch`. */
static inline int16_t rig_register(struct cluster_rig *rig,
                                   int32_t id,
                                   uint32_t incarnation,
                                   int64_t *epoch)
{
    static struct broker_registration_request_feature features[] = {
        {.name = {(const uint8_t *)"metadata.version", 16, 0, 0},                 7, 33},
        {.name = {(const uint8_t *)"group.version", 13, 0, 0},                    0, 1 },
        {.name = {(const uint8_t *)"kraft.version", 13, 0, 0},                    0, 1 },
        {.name = {(const uint8_t *)"eligible.leader.replicas.version", 32, 0, 0}, 0, 1 },
    };
    struct uuid directories[] = {rig_uuid((uint32_t)id), rig_uuid((uint32_t)id + 10)};
    struct broker_registration_request_listener listener = {
        .name = VIEW("PLAINTEXT"), .host = VIEW("h"), .port = 9092};
    struct broker_registration_request in;
    struct broker_registration_response out;
    wire_defaults(&wire_broker_registration_request, &in);
    in.broker_id = id;
    in.cluster_id = VIEW("cluster");
    in.incarnation_id = rig_uuid(100 + incarnation);
    in.listeners.items = &listener;
    in.listeners.count = 1;
    in.features.items = features;
    in.features.count = ARRAY_SIZE(features);
    in.log_dirs.items = directories;
    in.log_dirs.count = 2;
    in.previous_broker_epoch = epoch == NULL ? -1 : *epoch;
    enum step_result result;
    do {
        struct step *step = rig_step(rig);
        result = cluster_register_broker(rig->cluster, step, &in, &out);
        assert_int_not_equal(result, STEP_E_MEMORY);
        rig_append(rig);
    } while (result == STEP_MORE);
    if (epoch != NULL) *epoch = out.broker_epoch;
    return out.error_code;
}

struct rig_beat {
    int32_t id;
    int64_t offset; /* INT64_MAX: the newest. */
    bool want_fence;
    bool want_shut_down;
    const struct uuid *offline;
    uint32_t offline_count;
    const struct uuid *cordoned; /* NULL: null. */
    uint32_t cordoned_count;
    int64_t epoch; /* 0: the registered one. */
};

/* A heartbeat; tells "(error,caught up,fenced,shut down)" and then the records. */
static inline const char *rig_beat(struct cluster_rig *rig, const struct rig_beat *beat)
{
    const struct image_node *broker = image_broker(cluster_image(rig->cluster), beat->id);
    struct broker_heartbeat_request in;
    struct broker_heartbeat_response out;
    wire_defaults(&wire_broker_heartbeat_request, &in);
    in.broker_id = beat->id;
    in.broker_epoch = beat->epoch != 0 ? beat->epoch : broker != NULL ? broker->epoch : 1;
    in.current_metadata_offset = beat->offset == INT64_MAX ? rig->offset - 1 : beat->offset;
    in.want_fence = beat->want_fence;
    in.want_shut_down = beat->want_shut_down;
    in.offline_log_dirs.items = (struct uuid *)(uintptr_t)beat->offline;
    in.offline_log_dirs.count = (int32_t)beat->offline_count;
    if (beat->cordoned != NULL) {
        in.cordoned_log_dirs.items = (struct uuid *)(uintptr_t)beat->cordoned;
        in.cordoned_log_dirs.count = (int32_t)beat->cordoned_count;
    }
    cluster_contact(rig->cluster, in.broker_id, in.broker_epoch, rig->now_ms);
    struct step *step = rig_step(rig);
    assert_int_equal(cluster_heartbeat(rig->cluster, step, &in, &out), STEP_DONE);
    char answer[32];
    snprintf(answer, sizeof(answer), "(%d,%c,%c,%c)", out.error_code, out.is_caught_up ? 'T' : 'F',
             out.is_fenced ? 'T' : 'F', out.should_shut_down ? 'T' : 'F');
    rig_print(rig, "%s", answer);
    if (step->record_count > 0) rig_print(rig, " ");
    for (uint32_t i = 0; i < step->record_count; i++) {
        rig_print_record(rig, &step->records[i].value);
        if (i + 1 < step->record_count) rig_print(rig, "; ");
    }
    size_t size = rig->size;
    rig_append(rig);
    rig->text[size] = '\0'; /* The records were told already. */
    return rig->text;
}

/* BEAT(rig, 1, INT64_MAX, .want_fence = true): what the broker says, and what is told. */
#define BEAT(rig, broker, at, ...)                                                                 \
    rig_beat((rig), &(struct rig_beat){.id = (broker), .offset = (at), ##__VA_ARGS__})

/* Register a broker, let it catch up and unfence it. */
static inline void rig_up(struct cluster_rig *rig, int32_t id)
{
    assert_int_equal(rig_register(rig, id, 1, NULL), KAFKA_NONE);
    const char *told = BEAT(rig, id, INT64_MAX);
    assert_non_null(strstr(told, "(0,T,F,F)"));
}

/* Make topic `name` with the replicas of each partition given, -1 between partitions. */
static inline void rig_topic(struct cluster_rig *rig,
                             const char *name,
                             const int32_t *replicas,
                             uint32_t count)
{
    struct create_topics_request_creatable_replica_assignment assignments[16] = {0};
    struct create_topics_request_creatable_topic topic;
    struct create_topics_request in;
    struct create_topics_response out;
    int32_t partitions = 0;
    wire_struct_defaults(&wire_create_topics_request_creatable_topic_shape, &topic);
    wire_defaults(&wire_create_topics_request, &in);
    for (uint32_t i = 0; i < count; i++) {
        struct create_topics_request_creatable_replica_assignment *at = &assignments[partitions];
        at->partition_index = partitions;
        at->broker_ids.items = (int32_t *)(uintptr_t)(replicas + i);
        for (; i < count && replicas[i] >= 0; i++)
            at->broker_ids.count++;
        partitions++;
    }
    topic.name = view_of_string(name);
    topic.num_partitions = -1;
    topic.replication_factor = -1;
    topic.assignments.items = assignments;
    topic.assignments.count = partitions;
    in.topics.items = &topic;
    in.topics.count = 1;
    struct step *step = rig_step(rig);
    assert_int_equal(cluster_create_topics(rig->cluster, step, &in, &out), STEP_DONE);
    assert_int_equal(out.topics.items[0].error_code, KAFKA_NONE);
    rig_append(rig);
}

#define TOPIC(rig, name, ...)                                                                      \
    rig_topic((rig), (name), (const int32_t[]){__VA_ARGS__},                                       \
              ARRAY_SIZE(((const int32_t[]){__VA_ARGS__})))

/* "L=1/0 isr=[1,2] pe=0" */
static inline const char *rig_state(struct cluster_rig *rig, const char *name, int32_t index)
{
    const struct image_topic *topic =
        image_topic(cluster_image(rig->cluster), view_of_string(name));
    const struct image_partition *partition = image_partition(topic, index);
    struct image_ids isr = image_list(partition, IMAGE_ISR);
    struct image_ids elr = image_list(partition, IMAGE_ELR);
    struct wire_array array = {(void *)(uintptr_t)isr.items, (int32_t)isr.count};
    rig->size = 0;
    rig_print(rig, "L=%d/%d", partition->leader, partition->leader_epoch);
    rig_print_ids(rig, "isr", &array);
    array = (struct wire_array){(void *)(uintptr_t)elr.items, (int32_t)elr.count};
    if (elr.count > 0) rig_print_ids(rig, "elr", &array);
    rig_print(rig, " pe=%d", partition->partition_epoch);
    return rig->text;
}

/* Put `more` behind what was told, `told` being of the size of the rig's text. */
static inline void rig_join(char *told, const char *more)
{
    size_t have = strlen(told);
    size_t size = strlen(more);
    assert(have + size + 4 < sizeof(((struct cluster_rig *)0)->text));
    if (have > 0) {
        memcpy(told + have, " | ", 3);
        have += 3;
    }
    memcpy(told + have, more, size + 1);
}

/* Periodic work until nothing is due at `now_ms`; tells all records but those of NoOps. */
static inline const char *rig_tick(struct cluster_rig *rig, int64_t now_ms)
{
    char told[sizeof(rig->text)] = "";
    rig->now_ms = now_ms;
    while (cluster_deadline(rig->cluster) <= now_ms) {
        struct step *step = rig_step(rig);
        assert_int_not_equal(cluster_tick(rig->cluster, step), STEP_E_MEMORY);
        rig_print(rig, "[%lld] ", (long long)now_ms);
        size_t begin = rig->size;
        for (uint32_t i = 0; i < step->record_count; i++) {
            if (i > 0) rig_print(rig, "; ");
            rig_print_record(rig, &step->records[i].value);
        }
        if (rig->size > begin && strcmp(rig->text + begin, "NoOpRecord") != 0)
            rig_join(told, rig->text);
        rig_append(rig);
    }
    rig->size = 0;
    rig_print(rig, "%s", told);
    return rig->text;
}

/* Let time pass, with work done when it is due. */
static inline const char *rig_pass(struct cluster_rig *rig, int64_t until_ms)
{
    char told[sizeof(rig->text)] = "";
    while (cluster_deadline(rig->cluster) <= until_ms) {
        const char *more = rig_tick(rig, MAX(cluster_deadline(rig->cluster), rig->now_ms));
        if (more[0] != '\0') rig_join(told, more);
    }
    rig->now_ms = until_ms;
    rig->size = 0;
    rig_print(rig, "%s", told);
    return rig->text;
}
