/* image_become.c - comparing images, taking one over. */
#include "core/image_internal.h"

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
    struct map_node *node =
        map_find(&image->maps[object->kind], image_keyed(object)->slot.node.key);
    return node == NULL ? NULL : image_of_node(node);
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
            const struct image_object *left = image_of_node(node);
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
    struct image_slot *slot = &image_keyed(object)->slot;
    map_remove(&image->maps[object->kind], &slot->node);
    list_remove(&slot->link);
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
        struct image_object *object = image_of_node(node);
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
        struct image_partition *now = (void *)(uintptr_t)from->partitions[i];
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
        struct image_object *object = image_of_node(node);
        struct image_object *before = (void *)(uintptr_t)image_same_key(image, object);
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
    assert(image->freeze == NULL);
    assert(other->freezes == 0); /* Its objects are news to every freeze to come. */
    if (image->hold != NULL) {   /* A snapshot ends what was open. */
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
