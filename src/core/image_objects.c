/* image_objects.c - objects made from records: one block each, what they point to lies behind them.
 *
 * Layout of a block: the struct, arrays (8-aligned), then the bytes of strings. Sizes are summed
 * first, so that a block is allocated once and whole. */
#include "core/image_internal.h"

#include "gen/broker_registration_change_record.h"
#include "gen/partition_change_record.h"
#include "gen/partition_record.h"
#include "gen/register_broker_record.h"
#include "gen/register_controller_record.h"

static size_t image_align(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

/* Takes space behind an object's struct. */
struct image_cursor {
    uint8_t *at;
    uint8_t *end;
};

static struct image_cursor image_behind(void *object, size_t size)
{
    struct image_object *head = object;
    return (struct image_cursor){(uint8_t *)object + size, (uint8_t *)object + head->size_bytes};
}

static void *image_take(struct image_cursor *cursor, size_t size)
{
    uint8_t *at = cursor->at;
    assert(size <= (size_t)(cursor->end - at));
    cursor->at += size;
    return at;
}

static void *image_take_copy(struct image_cursor *cursor, const void *items, size_t size)
{
    uint8_t *at = image_take(cursor, image_align(size));
    if (size > 0) memcpy(at, items, size);
    return at;
}

static struct view image_take_view(struct image_cursor *cursor, struct view bytes)
{
    if (bytes.null) return VIEW_NULL;
    uint8_t *at = image_take(cursor, bytes.size);
    if (bytes.size > 0) memcpy(at, bytes.data, bytes.size);
    return view_of(at, bytes.size);
}

struct image_feature *image_feature_new(struct image *image, struct view name, int16_t level)
{
    struct image_feature *feature =
        image_object_new(image, IMAGE_FEATURE, sizeof(*feature), name.size);
    if (feature == NULL) return NULL;
    struct image_cursor cursor = image_behind(feature, sizeof(*feature));
    feature->name = image_take_view(&cursor, name);
    feature->level = level;
    feature->slot.node.key = feature->name;
    return feature;
}

/* ---- brokers and controllers ----------------------------------------------------------------- */

/* A copy of `from`, with all that it points to. */
static struct image_node *image_node_new(struct image *image,
                                         enum image_kind kind,
                                         const struct image_node *from)
{
    size_t extra = image_align(from->endpoint_count * sizeof(from->endpoints[0])) +
                   image_align(from->feature_count * sizeof(from->features[0])) +
                   image_align(from->directory_count * sizeof(from->directories[0])) +
                   image_align(from->cordoned_count * sizeof(from->cordoned[0]));
    for (uint32_t i = 0; i < from->endpoint_count; i++)
        extra += from->endpoints[i].name.size + from->endpoints[i].host.size;
    for (uint32_t i = 0; i < from->feature_count; i++)
        extra += from->features[i].name.size;
    extra += from->rack.null ? 0 : from->rack.size;

    struct image_node *node = image_object_new(image, kind, sizeof(*node), extra);
    if (node == NULL) return NULL;
    struct image_object head = node->object;
    struct image_slot slot = node->slot;
    *node = *from;
    node->object = head;
    node->slot = slot;
    node->slot.node.key = view_of(&node->id, sizeof(node->id));

    struct image_cursor cursor = image_behind(node, sizeof(*node));
    struct image_endpoint *endpoints = image_take_copy(
        &cursor, from->endpoints, from->endpoint_count * sizeof(from->endpoints[0]));
    struct image_range *features =
        image_take_copy(&cursor, from->features, from->feature_count * sizeof(from->features[0]));
    node->directories = image_take_copy(&cursor, from->directories,
                                        from->directory_count * sizeof(from->directories[0]));
    node->cordoned =
        image_take_copy(&cursor, from->cordoned, from->cordoned_count * sizeof(from->cordoned[0]));
    for (uint32_t i = 0; i < from->endpoint_count; i++) {
        endpoints[i].name = image_take_view(&cursor, endpoints[i].name);
        endpoints[i].host = image_take_view(&cursor, endpoints[i].host);
    }
    for (uint32_t i = 0; i < from->feature_count; i++)
        features[i].name = image_take_view(&cursor, features[i].name);
    node->rack = image_take_view(&cursor, from->rack);
    node->endpoints = endpoints;
    node->features = features;
    return node;
}

/* Views of the endpoints and features that `record` registers, of either of the two types, into the
 * arrays of these lengths; sets the counts of `node`. */
#define NODE_VIEWS(node, record, endpoints, features)                                              \
    do {                                                                                           \
        (node).endpoint_count = (uint32_t)(record)->end_points.count;                              \
        (node).feature_count = (uint32_t)(record)->features.count;                                 \
        assert((node).endpoint_count <= ARRAY_SIZE(endpoints));                                    \
        assert((node).feature_count <= ARRAY_SIZE(features));                                      \
        for (uint32_t i = 0; i < (node).endpoint_count; i++)                                       \
            (endpoints)[i] = (struct image_endpoint){                                              \
                (record)->end_points.items[i].name, (record)->end_points.items[i].host,            \
                (record)->end_points.items[i].port,                                                \
                (record)->end_points.items[i].security_protocol};                                  \
        for (uint32_t i = 0; i < (node).feature_count; i++)                                        \
            (features)[i] =                                                                        \
                (struct image_range){(record)->features.items[i].name,                             \
                                     (record)->features.items[i].min_supported_version,            \
                                     (record)->features.items[i].max_supported_version};           \
    } while (0)

struct image_node *image_broker_new(struct image *image,
                                    const struct register_broker_record *record,
                                    int64_t offset)
{
    struct image_endpoint endpoints[IMAGE_ENDPOINTS_MAX];
    struct image_range features[IMAGE_FEATURES_MAX];
    struct image_node from = {
        .id = record->broker_id,
        .fenced = record->fenced,
        .in_controlled_shutdown = record->in_controlled_shutdown,
        .cordoned_known = record->cordoned_log_dirs.count >= 0,
        .incarnation = record->incarnation_id,
        .epoch = record->broker_epoch,
        .register_offset = offset,
        .rack = record->rack,
        .endpoints = endpoints,
        .features = features,
        .directories = record->log_dirs.items,
        .cordoned = record->cordoned_log_dirs.items,
        .directory_count = (uint32_t)MAX(record->log_dirs.count, 0),
        .cordoned_count = (uint32_t)MAX(record->cordoned_log_dirs.count, 0),
    };
    NODE_VIEWS(from, record, endpoints, features);
    return image_node_new(image, IMAGE_BROKER, &from);
}

struct image_node *image_controller_new(struct image *image,
                                        const struct register_controller_record *record,
                                        int64_t offset)
{
    struct image_endpoint endpoints[IMAGE_ENDPOINTS_MAX];
    struct image_range features[IMAGE_FEATURES_MAX];
    struct image_node from = {
        .id = record->controller_id,
        .incarnation = record->incarnation_id,
        .epoch = -1,
        .register_offset = offset,
        .rack = VIEW_NULL,
        .endpoints = endpoints,
        .features = features,
    };
    NODE_VIEWS(from, record, endpoints, features);
    return image_node_new(image, IMAGE_CONTROLLER, &from);
}

struct image_node *image_broker_changed(struct image *image,
                                        const struct image_node *before,
                                        const struct broker_registration_change_record *record)
{
    struct image_node from = *before;
    if (record->fenced != 0) from.fenced = record->fenced > 0;
    if (record->in_controlled_shutdown > 0) from.in_controlled_shutdown = true;
    if (record->log_dirs.count > 0) { /* Empty means unchanged. */
        from.directories = record->log_dirs.items;
        from.directory_count = (uint32_t)record->log_dirs.count;
    }
    if (record->cordoned_log_dirs.count >= 0) { /* Here only null does. */
        from.cordoned_known = true;
        from.cordoned = record->cordoned_log_dirs.items;
        from.cordoned_count = (uint32_t)record->cordoned_log_dirs.count;
    }
    return image_node_new(image, IMAGE_BROKER, &from);
}

/* ---- topics and partitions ------------------------------------------------------------------- */

struct image_topic *image_topic_new(struct image *image, struct view name, struct uuid id)
{
    struct image_topic *topic = image_object_new(image, IMAGE_TOPIC, sizeof(*topic), name.size);
    if (topic == NULL) return NULL;
    struct image_cursor cursor = image_behind(topic, sizeof(*topic));
    topic->name = image_take_view(&cursor, name);
    topic->id = id;
    topic->slot.node.key = topic->name;
    topic->by_id.key = view_of(topic->id.bytes, sizeof(topic->id.bytes));
    return topic;
}

/* What a partition is made of. */
struct image_partition_parts {
    struct image_ids lists[IMAGE_LISTS];
    const struct uuid *directories; /* One for each replica, or NULL. */
    int32_t leader;
    int32_t leader_epoch;
    int32_t partition_epoch;
    int8_t recovery;
};

static struct image_partition *image_partition_make(struct image *image,
                                                    const struct image_partition_parts *parts)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < IMAGE_LISTS; i++)
        count += parts->lists[i].count;
    uint32_t replicas = parts->lists[IMAGE_REPLICAS].count;
    size_t extra =
        count * sizeof(int32_t) + (parts->directories != NULL ? replicas * sizeof(struct uuid) : 0);

    struct image_partition *partition =
        image_object_new(image, IMAGE_PARTITION, sizeof(*partition), extra);
    if (partition == NULL) return NULL;
    partition->leader = parts->leader;
    partition->leader_epoch = parts->leader_epoch;
    partition->partition_epoch = parts->partition_epoch;
    partition->recovery = parts->recovery;
    uint32_t at = 0;
    for (uint32_t i = 0; i < IMAGE_LISTS; i++) {
        struct image_ids list = parts->lists[i];
        assert(list.count <= UINT16_MAX);
        partition->counts[i] = (uint16_t)list.count;
        if (list.count > 0)
            memcpy(partition->ids + at, list.items, list.count * sizeof(list.items[0]));
        at += list.count;
    }
    if (parts->directories != NULL) {
        partition->has_directories = true;
        if (replicas > 0)
            memcpy(partition->ids + at, parts->directories, replicas * sizeof(struct uuid));
    }
    return partition;
}

static struct image_ids image_ids_of(const void *array)
{
    const struct wire_array *ids = array;
    return (struct image_ids){ids->items, (uint32_t)MAX(ids->count, 0)};
}

struct image_partition *image_partition_new(struct image *image,
                                            const struct partition_record *record)
{
    struct image_partition_parts parts = {
        .lists =
            {
                    [IMAGE_REPLICAS] = image_ids_of(&record->replicas),
                    [IMAGE_ISR] = image_ids_of(&record->isr),
                    [IMAGE_ADDING] = image_ids_of(&record->adding_replicas),
                    [IMAGE_REMOVING] = image_ids_of(&record->removing_replicas),
                    [IMAGE_ELR] = image_ids_of(&record->eligible_leader_replicas),
                    [IMAGE_LAST_KNOWN_ELR] = image_ids_of(&record->last_known_elr),
                    },
        .directories =
            record->directories.count == record->replicas.count && record->directories.count > 0
                ? record->directories.items
                : NULL,
        .leader = record->leader,
        .leader_epoch = record->leader_epoch,
        .partition_epoch = record->partition_epoch,
        .recovery = record->leader_recovery_state,
    };
    return image_partition_make(image, &parts);
}

/* The parts of a partition; its directories are not aligned for struct uuid, which has no need. */
static struct image_partition_parts image_partition_parts(const struct image_partition *partition)
{
    struct image_partition_parts parts = {
        .leader = partition->leader,
        .leader_epoch = partition->leader_epoch,
        .partition_epoch = partition->partition_epoch,
        .recovery = partition->recovery,
    };
    for (uint32_t i = 0; i < IMAGE_LISTS; i++)
        parts.lists[i] = image_list(partition, (enum image_list)i);
    if (partition->has_directories) parts.directories = image_directories(partition);
    return parts;
}

struct image_partition *image_partition_changed(struct image *image,
                                                const struct image_partition *before,
                                                const struct partition_change_record *record)
{
    struct image_partition_parts parts = image_partition_parts(before);
    if (record->isr.count >= 0) parts.lists[IMAGE_ISR] = image_ids_of(&record->isr);
    if (record->replicas.count >= 0) {
        parts.lists[IMAGE_REPLICAS] = image_ids_of(&record->replicas);
        parts.directories = NULL; /* They belong to the old list. */
    }
    if (record->directories.count == (int32_t)parts.lists[IMAGE_REPLICAS].count &&
        record->directories.count > 0)
        parts.directories = record->directories.items;
    if (record->removing_replicas.count >= 0)
        parts.lists[IMAGE_REMOVING] = image_ids_of(&record->removing_replicas);
    if (record->adding_replicas.count >= 0)
        parts.lists[IMAGE_ADDING] = image_ids_of(&record->adding_replicas);
    if (record->eligible_leader_replicas.count >= 0)
        parts.lists[IMAGE_ELR] = image_ids_of(&record->eligible_leader_replicas);
    if (record->last_known_elr.count >= 0)
        parts.lists[IMAGE_LAST_KNOWN_ELR] = image_ids_of(&record->last_known_elr);
    if (record->leader_recovery_state >= 0) parts.recovery = record->leader_recovery_state;
    if (record->leader != IMAGE_LEADER_UNCHANGED) {
        parts.leader = record->leader;
        parts.leader_epoch++; /* Also when the same leader is named again. */
    }
    parts.partition_epoch++;
    return image_partition_make(image, &parts);
}

struct image_partition *image_partition_without_elr(struct image *image,
                                                    const struct image_partition *before)
{
    struct image_partition_parts parts = image_partition_parts(before);
    parts.lists[IMAGE_ELR] = (struct image_ids){NULL, 0};
    parts.lists[IMAGE_LAST_KNOWN_ELR] = (struct image_ids){NULL, 0};
    parts.partition_epoch++;
    return image_partition_make(image, &parts);
}

/* ---- configs and raw records ----------------------------------------------------------------- */

struct view image_configs_key(uint8_t *key, int8_t type, struct view resource)
{
    key[0] = (uint8_t)type;
    if (resource.size > 0) memcpy(key + 1, resource.data, resource.size);
    return view_of(key, 1 + resource.size);
}

/* Merge `change` into the sorted items of `before`. Only counts if `out` is NULL. */
static uint32_t image_configs_merge(const struct image_configs *before,
                                    const struct image_config *change,
                                    struct image_config *out)
{
    uint32_t count = 0;
    bool placed = change->value.null;
    for (uint32_t i = 0; before != NULL && i < before->count; i++) {
        int order = view_compare(before->items[i].name, change->name);
        if (order == 0) continue;
        if (order > 0 && !placed) {
            if (out != NULL) out[count] = *change;
            count++;
            placed = true;
        }
        if (out != NULL) out[count] = before->items[i];
        count++;
    }
    if (!placed) {
        if (out != NULL) out[count] = *change;
        count++;
    }
    return count;
}

struct image_configs *image_configs_changed(struct image *image,
                                            const struct image_configs *before,
                                            int8_t type,
                                            struct view resource,
                                            const struct image_config *change)
{
    uint32_t count = image_configs_merge(before, change, NULL);
    assert(count > 0);
    size_t extra = count * sizeof(struct image_config) + 1 + resource.size + change->name.size +
                   (change->value.null ? 0 : change->value.size);
    for (uint32_t i = 0; before != NULL && i < before->count; i++)
        extra += before->items[i].name.size + before->items[i].value.size;

    struct image_configs *configs = image_object_new(image, IMAGE_CONFIGS, sizeof(*configs), extra);
    if (configs == NULL) return NULL;
    struct image_cursor cursor = image_behind(configs, sizeof(*configs));
    struct image_config *items = image_take(&cursor, count * sizeof(*items));
    image_configs_merge(before, change, items);
    for (uint32_t i = 0; i < count; i++) {
        items[i].name = image_take_view(&cursor, items[i].name);
        items[i].value = image_take_view(&cursor, items[i].value);
    }
    configs->slot.node.key =
        image_configs_key(image_take(&cursor, 1 + resource.size), type, resource);
    configs->type = type;
    configs->resource = view_of(configs->slot.node.key.data + 1, resource.size);
    configs->count = count;
    configs->items = items;
    return configs;
}

struct image_raw *image_raw_new(struct image *image,
                                enum image_kind kind,
                                struct view key,
                                const struct step_record *record)
{
    size_t size = step_encoded_size(&record->value);
    struct image_raw *raw = image_object_new(image, kind, sizeof(*raw), size + key.size);
    if (raw == NULL) return NULL;
    struct image_cursor cursor = image_behind(raw, sizeof(*raw));
    raw->slot.node.key = image_take_view(&cursor, key);
    uint8_t *bytes = image_take(&cursor, size);
    step_encode_into(&record->value, bytes);
    raw->record = view_of(bytes, (uint32_t)size);
    return raw;
}
