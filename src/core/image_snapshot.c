/* image_snapshot.c - records from objects: snapshots, comparing images, taking one over. */
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

static bool image_record_of_broker(const struct image *image,
                                   const struct image_node *node,
                                   struct arena *arena,
                                   struct step_record *out)
{
    int16_t version = feature_register_broker_version(image->metadata_version);
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

static bool image_record_of_partition(const struct image *image,
                                      const struct image_partition *partition,
                                      const struct image_topic *topic,
                                      int32_t index,
                                      struct arena *arena,
                                      struct step_record *out)
{
    int16_t version = feature_partition_version(image->metadata_version);
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

bool image_record_of(const struct image *image,
                     const struct image_object *object,
                     const struct image_place *place,
                     struct arena *arena,
                     struct step_record *out)
{
    switch ((enum image_kind)object->kind) {
    case IMAGE_FEATURE:
        return image_record_of_feature((const struct image_feature *)object, arena, out);
    case IMAGE_BROKER:
        return image_record_of_broker(image, (const struct image_node *)object, arena, out);
    case IMAGE_CONTROLLER:
        return image_record_of_controller((const struct image_node *)object, arena, out);
    case IMAGE_TOPIC: return image_record_of_topic((const struct image_topic *)object, arena, out);
    case IMAGE_PARTITION:
        return image_record_of_partition(image, (const struct image_partition *)object,
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

/* ---- snapshots ------------------------------------------------------------------------------- */

struct image_writer {
    const struct image *image;
    struct arena *arena;
    bool (*each)(void *context, const struct step_record *record);
    void *context;
};

static bool image_write(const struct image_writer *writer,
                        const struct image_object *object,
                        const struct image_place *place)
{
    struct step_record record;
    bool ok = image_record_of(writer->image, object, place, writer->arena, &record) &&
              writer->each(writer->context, &record);
    arena_reset(writer->arena);
    return ok;
}

static bool image_write_topic(const struct image_writer *writer, const struct image_topic *topic)
{
    if (!image_write(writer, &topic->object, &(struct image_place){0})) return false;
    for (int32_t i = 0; i < topic->partition_count; i++) {
        if (topic->partitions[i] == NULL) continue;
        struct image_place place = {.topic = topic, .partition = i};
        if (!image_write(writer, &topic->partitions[i]->object, &place)) return false;
    }
    return true;
}

static bool image_write_object(const struct image_writer *writer, const struct image_object *object)
{
    if (object->kind == IMAGE_TOPIC)
        return image_write_topic(writer, (const struct image_topic *)object);
    uint32_t items =
        object->kind == IMAGE_CONFIGS ? ((const struct image_configs *)object)->count : 1;
    for (uint32_t i = 0; i < items; i++)
        if (!image_write(writer, object, &(struct image_place){.item = i})) return false;
    return true;
}

/* The kind's objects in the order of their keys. The list has memory of its own: the arena is reset
 * between records. */
static bool image_write_kind(const struct image_writer *writer, enum image_kind kind)
{
    struct arena list;
    arena_init(&list, writer->image->mem, 0);
    uint32_t count;
    const struct image_object *const *objects = image_sorted(writer->image, kind, &list, &count);
    bool ok = count == 0 || objects != NULL;
    bool features = kind == IMAGE_FEATURE;
    for (int pass = features ? 0 : 1; ok && pass < 2; pass++)
        for (uint32_t i = 0; ok && i < count; i++) {
            /* metadata.version goes before the other features. */
            bool first = features && view_is(objects[i]->node.key, FEATURE_METADATA);
            if (features && first != (pass == 0)) continue;
            ok = image_write_object(writer, objects[i]);
        }
    arena_free(&list);
    return ok;
}

bool image_snapshot(const struct image *image,
                    struct arena *arena,
                    bool (*each)(void *context, const struct step_record *record),
                    void *context)
{
    static const enum image_kind order[] = {
        IMAGE_FEATURE, IMAGE_BROKER,       IMAGE_CONTROLLER, IMAGE_TOPIC, IMAGE_CONFIGS,
        IMAGE_QUOTA,   IMAGE_PRODUCER_IDS, IMAGE_ACL,        IMAGE_SCRAM, IMAGE_TOKEN,
    };
    assert(image->hold == NULL);
    struct image_writer writer = {image, arena, each, context};
    for (uint32_t i = 0; i < ARRAY_SIZE(order); i++)
        if (!image_write_kind(&writer, order[i])) return false;
    return true;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Do two objects of a kind say the same? Compared by their fields, without memory. */
static bool image_ranges_equal(const struct image_node *a, const struct image_node *b)
{
    if (a->feature_count != b->feature_count) return false;
    for (uint32_t i = 0; i < a->feature_count; i++)
        if (!view_equal(a->features[i].name, b->features[i].name) ||
            a->features[i].min != b->features[i].min || a->features[i].max != b->features[i].max)
            return false;
    return true;
}

static bool image_endpoints_equal(const struct image_node *a, const struct image_node *b)
{
    if (a->endpoint_count != b->endpoint_count) return false;
    for (uint32_t i = 0; i < a->endpoint_count; i++) {
        const struct image_endpoint *left = &a->endpoints[i];
        const struct image_endpoint *right = &b->endpoints[i];
        if (!view_equal(left->name, right->name) || !view_equal(left->host, right->host) ||
            left->port != right->port || left->security_protocol != right->security_protocol)
            return false;
    }
    return true;
}

static bool image_uuids_equal(const struct uuid *a,
                              uint32_t a_count,
                              const struct uuid *b,
                              uint32_t b_count)
{
    return a_count == b_count && (a_count == 0 || memcmp(a, b, a_count * sizeof(*a)) == 0);
}

static bool image_nodes_equal(const struct image_node *a, const struct image_node *b)
{
    return a->fenced == b->fenced && a->in_controlled_shutdown == b->in_controlled_shutdown &&
           a->cordoned_known == b->cordoned_known && uuid_equal(a->incarnation, b->incarnation) &&
           a->epoch == b->epoch && view_equal(a->rack, b->rack) && image_endpoints_equal(a, b) &&
           image_ranges_equal(a, b) &&
           image_uuids_equal(a->directories, a->directory_count, b->directories,
                             b->directory_count) &&
           image_uuids_equal(a->cordoned, a->cordoned_count, b->cordoned, b->cordoned_count);
}

static bool image_partitions_equal(const struct image_partition *a, const struct image_partition *b)
{
    if (a == NULL || b == NULL) return a == b;
    if (a->leader != b->leader || a->leader_epoch != b->leader_epoch ||
        a->partition_epoch != b->partition_epoch || a->recovery != b->recovery)
        return false;
    for (uint32_t i = 0; i < IMAGE_LISTS; i++) {
        struct image_ids left = image_list(a, (enum image_list)i);
        struct image_ids right = image_list(b, (enum image_list)i);
        if (left.count != right.count) return false;
        if (left.count > 0 && memcmp(left.items, right.items, left.count * sizeof(int32_t)) != 0)
            return false;
    }
    for (uint32_t i = 0; i < a->counts[IMAGE_REPLICAS]; i++)
        if (!uuid_equal(image_directory(a, i), image_directory(b, i))) return false;
    return true;
}

static bool image_configs_equal(const struct image_configs *a, const struct image_configs *b)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!view_equal(a->items[i].name, b->items[i].name) ||
            !view_equal(a->items[i].value, b->items[i].value))
            return false;
    return true;
}

/* Of two objects with the same kind and key; topics without their partitions. */
static bool image_objects_equal(const struct image_object *a, const struct image_object *b)
{
    switch ((enum image_kind)a->kind) {
    case IMAGE_FEATURE:
        return ((const struct image_feature *)a)->level == ((const struct image_feature *)b)->level;
    case IMAGE_BROKER:
    case IMAGE_CONTROLLER:
        return image_nodes_equal((const struct image_node *)a, (const struct image_node *)b);
    case IMAGE_TOPIC:
        return uuid_equal(((const struct image_topic *)a)->id, ((const struct image_topic *)b)->id);
    case IMAGE_CONFIGS:
        return image_configs_equal((const struct image_configs *)a,
                                   (const struct image_configs *)b);
    default:
        return view_equal(((const struct image_raw *)a)->record,
                          ((const struct image_raw *)b)->record);
    }
}

static const struct image_object *image_same_key(const struct image *image,
                                                 const struct image_object *object)
{
    struct map_node *node = map_find(&image->maps[object->kind], object->node.key);
    return node == NULL ? NULL : container_of(node, struct image_object, node);
}

static bool image_topics_equal(const struct image_topic *a, const struct image_topic *b)
{
    if (a->partition_count != b->partition_count) return false;
    for (int32_t i = 0; i < a->partition_count; i++)
        if (!image_partitions_equal(a->partitions[i], b->partitions[i])) return false;
    return true;
}

bool image_equal(const struct image *a, const struct image *b)
{
    for (uint32_t kind = 0; kind < IMAGE_KINDS; kind++) {
        if (a->maps[kind].count != b->maps[kind].count) return false;
        map_foreach (node, &a->maps[kind]) {
            const struct image_object *left = container_of(node, struct image_object, node);
            const struct image_object *right = image_same_key(b, left);
            if (right == NULL || !image_objects_equal(left, right)) return false;
            if (kind == IMAGE_TOPIC && !image_topics_equal((const struct image_topic *)left,
                                                           (const struct image_topic *)right))
                return false;
        }
    }
    return image_transaction(a) == image_transaction(b);
}

/* ---- taking over ----------------------------------------------------------------------------- */

/* Take an object out of its image's slots without freeing it. */
static void image_take_out(struct image *image, struct image_object *object)
{
    map_remove(&image->maps[object->kind], &object->node);
    if (object->kind == IMAGE_TOPIC)
        map_remove(&image->topics_by_id, &((struct image_topic *)(void *)object)->by_id);
}

/* Is `now` what `before` can have become: the same topic, no partition lost? */
static bool image_topic_goes_on(const struct image_topic *before, const struct image_topic *now)
{
    if (!uuid_equal(before->id, now->id)) return false;
    for (int32_t i = 0; i < before->partition_count; i++)
        if (before->partitions[i] != NULL && image_partition(now, i) == NULL) return false;
    return true;
}

static bool image_become_remove(struct image *image, const struct image *other, uint8_t kind)
{
    struct map_node *node = map_next(&image->maps[kind], NULL);
    while (node != NULL) {
        struct map_node *next = map_next(&image->maps[kind], node);
        struct image_object *object = container_of(node, struct image_object, node);
        const struct image_object *same = image_same_key(other, object);
        bool gone = same == NULL || (kind == IMAGE_TOPIC &&
                                     !image_topic_goes_on((struct image_topic *)(void *)object,
                                                          (const struct image_topic *)same));
        if (gone && !image_prepare(image, kind, object, NULL)) return false;
        image_make(image);
        node = next;
    }
    return true;
}

static bool image_become_topic(struct image *image,
                               struct image_topic *topic,
                               struct image_topic *from)
{
    for (int32_t i = 0; i < from->partition_count; i++) {
        struct image_partition *now = image_mutable(from->partitions[i]);
        if (now == NULL || image_partitions_equal(image_partition(topic, i), now)) continue;
        from->partitions[i] = NULL;
        if (!image_prepare_partition(image, topic, i, now)) return false;
        image_make(image);
    }
    return true;
}

static bool image_become_set(struct image *image, struct image *other, uint8_t kind)
{
    struct map_node *node = map_next(&other->maps[kind], NULL);
    while (node != NULL) {
        struct map_node *next = map_next(&other->maps[kind], node);
        struct image_object *object = container_of(node, struct image_object, node);
        struct image_object *before = image_mutable(image_same_key(image, object));
        node = next;
        if (kind == IMAGE_TOPIC && before != NULL) {
            if (!image_become_topic(image, (struct image_topic *)(void *)before,
                                    (struct image_topic *)(void *)object))
                return false;
            continue;
        }
        if (before != NULL && image_objects_equal(before, object)) continue;
        if (kind == IMAGE_TOPIC &&
            !image_reserve_topic_loads(image, (const struct image_topic *)object))
            return false;
        image_take_out(other, object);
        if (!image_prepare(image, kind, before, object)) return false;
        image_make(image);
    }
    return true;
}

bool image_become(struct image *image, struct image *other)
{
    assert(image->undo.off);
    assert(other->undo.off);
    assert(image->mem == other->mem);
    assert(other->hold == NULL);
    if (image->hold != NULL) { /* A snapshot ends what was open. */
        if (!image_prepare(image, IMAGE_HOLD, image->hold, NULL)) return false;
        image_make(image);
    }
    for (int kind = 0; kind < IMAGE_KINDS; kind++)
        if (kind != IMAGE_PARTITION && !image_become_remove(image, other, (uint8_t)kind))
            return false;
    for (int kind = 0; kind < IMAGE_KINDS; kind++)
        if (kind != IMAGE_PARTITION && !image_become_set(image, other, (uint8_t)kind)) return false;
    return true;
}
