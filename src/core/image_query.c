/* image_query.c - what the image holds. */
#include "base/bytes.h"
#include "core/image_internal.h"

const struct uuid image_directory_migrating = {{0}};
const struct uuid image_directory_unassigned = {{[15] = 1}};
const struct uuid image_directory_lost = {{[15] = 2}};

bool image_uuid_reserved(struct uuid id)
{
    return load_be64(id.bytes) == 0 && load_be64(id.bytes + 8) < 100;
}

bool image_ids_have(struct image_ids ids, int32_t id)
{
    for (uint32_t i = 0; i < ids.count; i++)
        if (ids.items[i] == id) return true;
    return false;
}

struct uuid image_directory(const struct image_partition *partition, uint32_t replica)
{
    assert(replica < partition->counts[IMAGE_REPLICAS]);
    if (!partition->has_directories) return image_directory_migrating;
    return image_directories(partition)[replica];
}

static const void *image_find(const struct image *image, enum image_kind kind, struct view key)
{
    struct map_node *node = map_find(&image->maps[kind], key);
    return node == NULL ? NULL : image_of_node(node);
}

int16_t image_feature_level(const struct image *image, struct view name)
{
    const struct image_feature *feature = image_find(image, IMAGE_FEATURE, name);
    return feature == NULL ? 0 : feature->level;
}

int16_t image_metadata_version(const struct image *image)
{
    return image->metadata_version;
}

const struct image_node *image_broker(const struct image *image, int32_t id)
{
    return image_find(image, IMAGE_BROKER, view_of(&id, sizeof(id)));
}

const struct image_node *image_controller(const struct image *image, int32_t id)
{
    return image_find(image, IMAGE_CONTROLLER, view_of(&id, sizeof(id)));
}

const struct image_topic *image_topic(const struct image *image, struct view name)
{
    return image_find(image, IMAGE_TOPIC, name);
}

const struct image_topic *image_topic_by_id(const struct image *image, struct uuid id)
{
    struct map_node *node = map_find(&image->topics_by_id, view_of(id.bytes, sizeof(id.bytes)));
    return node == NULL ? NULL : container_of(node, struct image_topic, by_id);
}

const struct image_partition *image_partition(const struct image_topic *topic, int32_t index)
{
    if (index < 0 || index >= topic->partition_count) return NULL;
    return topic->partitions[index];
}

const struct image_endpoint *image_endpoint(const struct image_node *node, struct view listener)
{
    for (uint32_t i = 0; i < node->endpoint_count; i++)
        if (view_equal(node->endpoints[i].name, listener)) return &node->endpoints[i];
    return NULL;
}

const struct image_configs *image_configs(const struct image *image,
                                          enum image_resource type,
                                          struct view resource)
{
    /* Names of resources are short; a longer one than any topic's takes the slow way. */
    uint8_t key[1 + 2 * TOPIC_NAME_MAX];
    if (resource.size < sizeof(key))
        return image_find(image, IMAGE_CONFIGS, image_configs_key(key, (int8_t)type, resource));
    map_foreach (node, &image->maps[IMAGE_CONFIGS]) {
        struct image_object *object = image_of_node(node);
        const struct image_configs *configs = container_of(object, struct image_configs, object);
        if (configs->type == (int8_t)type && view_equal(configs->resource, resource))
            return configs;
    }
    return NULL;
}

struct view image_config(const struct image_configs *configs, struct view name)
{
    if (configs == NULL) return VIEW_NULL;
    uint32_t low = 0;
    uint32_t high = configs->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = view_compare(configs->items[middle].name, name);
        if (order == 0) return configs->items[middle].value;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return VIEW_NULL;
}

int64_t image_producer_id_next(const struct image *image)
{
    const struct image_raw *raw = image_find(image, IMAGE_PRODUCER_IDS, VIEW("next"));
    if (raw == NULL) return 0;
    /* The record's last field before its empty tags: see ProducerIdsRecord.json. */
    assert(raw->record.size >= 9);
    return (int64_t)load_be64(raw->record.data + raw->record.size - 9);
}

uint32_t image_count(const struct image *image, enum image_kind kind)
{
    return kind == IMAGE_PARTITION ? image->partition_count : image->maps[kind].count;
}

const struct image_object *image_next(const struct image *image,
                                      enum image_kind kind,
                                      const struct image_object *object)
{
    assert(kind != IMAGE_PARTITION);
    struct map_node *node =
        map_next(&image->maps[kind], object == NULL ? NULL : &image_keyed(object)->slot.node);
    return node == NULL ? NULL : image_of_node(node);
}

static bool image_object_before(const struct image_object *a, const struct image_object *b)
{
    if (a->kind != IMAGE_BROKER && a->kind != IMAGE_CONTROLLER)
        return view_compare(image_keyed(a)->slot.node.key, image_keyed(b)->slot.node.key) < 0;
    return ((const struct image_node *)a)->id < ((const struct image_node *)b)->id;
}

/* Heapsort: sifts `root` down in a heap of `count`. */
static void image_sift(const struct image_object **items, uint32_t root, uint32_t count)
{
    for (;;) {
        uint32_t child = 2 * root + 1;
        if (child >= count) return;
        if (child + 1 < count && image_object_before(items[child], items[child + 1])) child++;
        if (!image_object_before(items[root], items[child])) return;
        const struct image_object *swap = items[root];
        items[root] = items[child];
        items[child] = swap;
        root = child;
    }
}

const struct image_object *const *image_sorted(const struct image *image,
                                               enum image_kind kind,
                                               struct arena *arena,
                                               uint32_t *count)
{
    *count = image_count(image, kind);
    if (*count == 0) return NULL;
    const struct image_object **items = arena_get(arena, *count * sizeof(items[0]));
    if (items == NULL) return NULL;
    uint32_t i = 0;
    const struct image_object *object = NULL;
    while ((object = image_next(image, kind, object)) != NULL)
        items[i++] = object;
    assert(i == *count);
    for (uint32_t root = *count / 2; root > 0; root--)
        image_sift(items, root - 1, *count);
    for (uint32_t end = *count - 1; end > 0; end--) {
        const struct image_object *swap = items[0];
        items[0] = items[end];
        items[end] = swap;
        image_sift(items, 0, end);
    }
    return items;
}

struct image_load image_load(const struct image *image, int32_t broker)
{
    struct map_node *node = map_find(&image->loads, view_of(&broker, sizeof(broker)));
    if (node == NULL) return (struct image_load){0};
    return container_of(node, struct image_load_node, node)->load;
}

uint32_t image_leaderless(const struct image *image)
{
    return image->leaderless_count;
}

bool image_broker_active(const struct image *image, int32_t id)
{
    const struct image_node *broker = image_broker(image, id);
    return broker != NULL && !broker->fenced && !broker->in_controlled_shutdown;
}

bool image_directory_online(const struct image *image, int32_t id, struct uuid directory)
{
    const struct image_node *broker = image_broker(image, id);
    if (broker == NULL) return false;
    if (broker->directory_count == 0) return true; /* It has told none. */
    if (uuid_equal(directory, image_directory_unassigned)) return true;
    if (uuid_equal(directory, image_directory_migrating)) return true;
    for (uint32_t i = 0; i < broker->directory_count; i++)
        if (uuid_equal(broker->directories[i], directory)) return true;
    return false;
}

bool image_replica_online(const struct image *image,
                          const struct image_partition *partition,
                          int32_t broker)
{
    struct image_ids replicas = image_list(partition, IMAGE_REPLICAS);
    for (uint32_t i = 0; i < replicas.count; i++)
        if (replicas.items[i] == broker)
            return image_directory_online(image, broker, image_directory(partition, i));
    return false;
}
