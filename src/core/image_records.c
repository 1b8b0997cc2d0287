/* image_records.c - records from objects. */
#include "core/feature.h"
#include "core/image_internal.h"

#include "gen/config_record.h"
#include "gen/feature_level_record.h"
#include "gen/partition_record.h"
#include "gen/register_broker_record.h"
#include "gen/register_controller_record.h"
#include "gen/topic_record.h"

/* ---- one object's record --------------------------------------------------------------------- */

/* A zeroed record with defaults, or NULL. */
static void *image_record(struct arena *arena,
                          const struct wire_message *message,
                          int16_t version,
                          struct step_record *out)
{
    void *value = arena_get(arena, message->size_bytes);
    if (value == NULL) return NULL;
    wire_defaults(message, value);
    *out = (struct step_record){
        .key = {.bytes = VIEW_NULL },
        .value = { .message = message, .value = value, .version = version, .bytes = VIEW_NULL},
    };
    return value;
}

/* The record's arrays point into the object; the encoder only reads. */
static void *image_mutable(const void *items)
{
    return (void *)(uintptr_t)items;
}

static bool image_record_of_feature(const struct image_feature *feature,
                                    struct arena *arena,
                                    struct step_record *out)
{
    struct feature_level_record *record = image_record(arena, &wire_feature_level_record, 0, out);
    if (record == NULL) return false;
    record->name = feature->name;
    record->feature_level = feature->level;
    return true;
}

static bool image_record_of_broker(int16_t metadata_version,
                                   const struct image_node *node,
                                   struct arena *arena,
                                   struct step_record *out)
{
    int16_t version = feature_register_broker_version(metadata_version);
    struct register_broker_record *record =
        image_record(arena, &wire_register_broker_record, version, out);
    struct register_broker_record_broker_endpoint *endpoints =
        arena_get(arena, (node->endpoint_count + 1) * sizeof(*endpoints));
    struct register_broker_record_broker_feature *features =
        arena_get(arena, (node->feature_count + 1) * sizeof(*features));
    if (record == NULL || endpoints == NULL || features == NULL) return false;

    for (uint32_t i = 0; i < node->endpoint_count; i++) {
        const struct image_endpoint *in = &node->endpoints[i];
        endpoints[i] = (struct register_broker_record_broker_endpoint){
            .name = in->name,
            .host = in->host,
            .port = in->port,
            .security_protocol = in->security_protocol,
        };
    }
    for (uint32_t i = 0; i < node->feature_count; i++)
        features[i] = (struct register_broker_record_broker_feature){
            .name = node->features[i].name,
            .min_supported_version = node->features[i].min,
            .max_supported_version = node->features[i].max,
        };
    record->broker_id = node->id;
    record->incarnation_id = node->incarnation;
    record->broker_epoch = node->epoch;
    record->end_points.items = endpoints;
    record->end_points.count = (int32_t)node->endpoint_count;
    record->features.items = features;
    record->features.count = (int32_t)node->feature_count;
    record->rack = node->rack;
    record->fenced = node->fenced;
    record->in_controlled_shutdown = node->in_controlled_shutdown;
    if (version >= 3) {
        record->log_dirs.items = image_mutable(node->directories);
        record->log_dirs.count = (int32_t)node->directory_count;
    }
    if (version >= 4 && node->cordoned_known) {
        record->cordoned_log_dirs.items = image_mutable(node->cordoned);
        record->cordoned_log_dirs.count = (int32_t)node->cordoned_count;
    }
    return true;
}

static bool image_record_of_controller(const struct image_node *node,
                                       struct arena *arena,
                                       struct step_record *out)
{
    struct register_controller_record *record =
        image_record(arena, &wire_register_controller_record, 0, out);
    struct register_controller_record_controller_endpoint *endpoints =
        arena_get(arena, (node->endpoint_count + 1) * sizeof(*endpoints));
    struct register_controller_record_controller_feature *features =
        arena_get(arena, (node->feature_count + 1) * sizeof(*features));
    if (record == NULL || endpoints == NULL || features == NULL) return false;

    for (uint32_t i = 0; i < node->endpoint_count; i++) {
        const struct image_endpoint *in = &node->endpoints[i];
        endpoints[i] = (struct register_controller_record_controller_endpoint){
            .name = in->name,
            .host = in->host,
            .port = in->port,
            .security_protocol = in->security_protocol,
        };
    }
    for (uint32_t i = 0; i < node->feature_count; i++)
        features[i] = (struct register_controller_record_controller_feature){
            .name = node->features[i].name,
            .min_supported_version = node->features[i].min,
            .max_supported_version = node->features[i].max,
        };
    record->controller_id = node->id;
    record->incarnation_id = node->incarnation;
    record->end_points.items = endpoints;
    record->end_points.count = (int32_t)node->endpoint_count;
    record->features.items = features;
    record->features.count = (int32_t)node->feature_count;
    return true;
}

static void image_list_out(const struct image_partition *partition, enum image_list list, void *out)
{
    struct image_ids ids = image_list(partition, list);
    struct wire_array *array = out;
    array->items = image_mutable(ids.items);
    array->count = (int32_t)ids.count;
}

static bool image_record_of_partition(int16_t metadata_version,
                                      const struct image_partition *partition,
                                      const struct image_topic *topic,
                                      int32_t index,
                                      struct arena *arena,
                                      struct step_record *out)
{
    int16_t version = feature_partition_version(metadata_version);
    struct partition_record *record = image_record(arena, &wire_partition_record, version, out);
    if (record == NULL) return false;
    record->partition_id = index;
    record->topic_id = topic->id;
    image_list_out(partition, IMAGE_REPLICAS, &record->replicas);
    image_list_out(partition, IMAGE_ISR, &record->isr);
    image_list_out(partition, IMAGE_REMOVING, &record->removing_replicas);
    image_list_out(partition, IMAGE_ADDING, &record->adding_replicas);
    record->leader = partition->leader;
    record->leader_recovery_state = partition->recovery;
    record->leader_epoch = partition->leader_epoch;
    record->partition_epoch = partition->partition_epoch;
    if (version >= 1) {
        uint32_t count = partition->counts[IMAGE_REPLICAS];
        struct uuid *directories = arena_get(arena, (count + 1) * sizeof(*directories));
        if (directories == NULL) return false;
        for (uint32_t i = 0; i < count; i++)
            directories[i] = image_directory(partition, i);
        record->directories.items = directories;
        record->directories.count = (int32_t)count;
    }
    /* Kafka leaves these out when they are empty. */
    if (version >= 2 && partition->counts[IMAGE_ELR] > 0)
        image_list_out(partition, IMAGE_ELR, &record->eligible_leader_replicas);
    if (version >= 2 && partition->counts[IMAGE_LAST_KNOWN_ELR] > 0)
        image_list_out(partition, IMAGE_LAST_KNOWN_ELR, &record->last_known_elr);
    return true;
}

static bool image_record_of_topic(const struct image_topic *topic,
                                  struct arena *arena,
                                  struct step_record *out)
{
    struct topic_record *record = image_record(arena, &wire_topic_record, 0, out);
    if (record == NULL) return false;
    record->name = topic->name;
    record->topic_id = topic->id;
    return true;
}

static bool image_record_of_config(const struct image_configs *configs,
                                   uint32_t item,
                                   struct arena *arena,
                                   struct step_record *out)
{
    assert(item < configs->count);
    struct config_record *record = image_record(arena, &wire_config_record, 0, out);
    if (record == NULL) return false;
    record->resource_type = configs->type;
    record->resource_name = configs->resource;
    record->name = configs->items[item].name;
    record->value = configs->items[item].value;
    return true;
}

bool image_record_of(int16_t metadata_version,
                     const struct image_object *object,
                     const struct image_place *place,
                     struct arena *arena,
                     struct step_record *out)
{
    switch ((enum image_kind)object->kind) {
    case IMAGE_FEATURE:
        return image_record_of_feature((const struct image_feature *)object, arena, out);
    case IMAGE_BROKER:
        return image_record_of_broker(metadata_version, (const struct image_node *)object, arena,
                                      out);
    case IMAGE_CONTROLLER:
        return image_record_of_controller((const struct image_node *)object, arena, out);
    case IMAGE_TOPIC: return image_record_of_topic((const struct image_topic *)object, arena, out);
    case IMAGE_PARTITION:
        return image_record_of_partition(metadata_version, (const struct image_partition *)object,
                                         place->topic, place->partition, arena, out);
    case IMAGE_CONFIGS:
        return image_record_of_config((const struct image_configs *)object, place->item, arena,
                                      out);
    default: {
        bool decoded = step_decode(((const struct image_raw *)object)->record, arena, out);
        assert(decoded || arena->failed);
        return decoded;
    }
    }
}
