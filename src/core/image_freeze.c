/* image_freeze.c - the records of an image as it was, written while it changes.
 *
 * Every object carries the number of the last freeze that need not write it: it has been written,
 * or it came later. A slice walks the lists of the kinds in Kafka's order and writes what does not
 * carry this freeze's number. An object that leaves its slot before (image_put) is written at that
 * moment, with its topic before it. So
 *   - each object that stood in a slot when the freeze began is written exactly once, as it was
 *   - a topic is written before its partitions
 *   - what came later is not written, and the walk, which goes over lists that only grow at their
 *     end, ends
 *
 * In the walk the freeze is at one object of a list and, in a topic, at one partition. The place
 * moves on when that object leaves. */
#include "core/feature.h"
#include "core/image_internal.h"

struct image_freeze {
    struct image *image;
    struct image_writer writer;
    struct arena arena; /* Of one record. */
    struct list *at;    /* The link of the next object; the list's head at its end. */
    uint32_t kind;      /* Index in freeze_order. */
    int32_t partition;  /* Of the topic at `at`: the next one; -1: the topic itself. */
    int16_t metadata_version;
    bool failed;
};

/* Features come first, at once. */
static const enum image_kind freeze_order[] = {
    IMAGE_BROKER,       IMAGE_CONTROLLER, IMAGE_TOPIC, IMAGE_CONFIGS, IMAGE_QUOTA,
    IMAGE_PRODUCER_IDS, IMAGE_ACL,        IMAGE_SCRAM, IMAGE_TOKEN,
};

/* Write an object that has not been, without its partitions. */
static void freeze_write(struct image_freeze *freeze,
                         struct image_object *object,
                         struct image_place place)
{
    if (freeze->failed || object->frozen == freeze->image->freezes) return;
    object->frozen = freeze->image->freezes;
    uint32_t items =
        object->kind == IMAGE_CONFIGS ? ((const struct image_configs *)object)->count : 1;
    for (uint32_t i = 0; i < items && !freeze->failed; i++) {
        struct step_record record;
        place.item = i;
        freeze->failed =
            !image_record_of(freeze->metadata_version, object, &place, &freeze->arena, &record) ||
            !freeze->writer.each(freeze->writer.context, &record);
        arena_reset(&freeze->arena);
    }
}

static void freeze_write_partition(struct image_freeze *freeze,
                                   struct image_topic *topic,
                                   int32_t index,
                                   const struct image_partition *partition)
{
    if (partition == NULL || partition->object.frozen == freeze->image->freezes) return;
    freeze_write(freeze, &topic->object, (struct image_place){0});
    freeze_write(freeze, (struct image_object *)(uintptr_t)&partition->object,
                 (struct image_place){.topic = topic, .partition = index});
}

static struct list *freeze_list(const struct image_freeze *freeze)
{
    return &freeze->image->lists[freeze_order[freeze->kind]];
}

static void freeze_next(struct image_freeze *freeze)
{
    freeze->at = freeze->at->next;
    freeze->partition = -1;
}

void image_freeze_leaves(struct image_freeze *freeze,
                         struct image_object *before,
                         struct image_topic *topic,
                         int32_t partition)
{
    if (before->kind == IMAGE_PARTITION) {
        freeze_write_partition(freeze, topic, partition, (struct image_partition *)(void *)before);
        return;
    }
    freeze_write(freeze, before, (struct image_place){0});
    if (before->kind == IMAGE_TOPIC) {
        struct image_topic *gone = (struct image_topic *)(void *)before;
        for (int32_t i = 0; i < gone->partition_count; i++)
            freeze_write_partition(freeze, gone, i, gone->partitions[i]);
    }
    if (freeze->at == &image_keyed(before)->slot.link) freeze_next(freeze);
}

/* One object of the walk. */
static void freeze_one(struct image_freeze *freeze)
{
    struct image_keyed *keyed = container_of(freeze->at, struct image_keyed, slot.link);
    struct image_topic *topic = (struct image_topic *)(void *)keyed;
    if (freeze->partition < 0)
        freeze_write(freeze, &keyed->object, (struct image_place){0});
    else if (freeze->partition < topic->partition_count) /* It may have lost some. */
        freeze_write_partition(freeze, topic, freeze->partition,
                               topic->partitions[freeze->partition]);
    freeze->partition++;
    if (keyed->object.kind != IMAGE_TOPIC || freeze->partition >= topic->partition_count)
        freeze_next(freeze);
}

enum image_freeze_result image_freeze_slice(struct image_freeze *freeze, uint32_t objects)
{
    assert(objects > 0);
    while (objects > 0 && !freeze->failed) {
        if (freeze->at != freeze_list(freeze)) {
            freeze_one(freeze);
            objects--;
        } else if (freeze->kind + 1 < ARRAY_SIZE(freeze_order)) {
            freeze->kind++;
            freeze->at = freeze_list(freeze)->next;
        } else {
            return IMAGE_FREEZE_DONE;
        }
    }
    return freeze->failed ? IMAGE_FREEZE_FAILED : IMAGE_FREEZE_MORE;
}

/* metadata.version goes before the other features: it says how to read what follows. */
static void freeze_features(struct image_freeze *freeze)
{
    struct arena arena;
    arena_init(&arena, freeze->image->mem, 0);
    uint32_t count;
    const struct image_object *const *features =
        image_sorted(freeze->image, IMAGE_FEATURE, &arena, &count);
    freeze->failed = count > 0 && features == NULL;
    for (int pass = 0; pass < 2 && !freeze->failed; pass++)
        for (uint32_t i = 0; i < count; i++) {
            struct image_object *feature = (struct image_object *)(uintptr_t)features[i];
            if (pass == 1 || view_is(image_keyed(feature)->slot.node.key, FEATURE_METADATA))
                freeze_write(freeze, feature, (struct image_place){0});
        }
    arena_free(&arena);
}

struct image_freeze *image_freeze_begin(struct image *image, struct image_writer writer)
{
    assert(image->hold == NULL);
    assert(image->freeze == NULL);
    struct image_freeze *freeze = mem_get(image->mem, sizeof(*freeze));
    if (freeze == NULL) return NULL;
    *freeze = (struct image_freeze){.image = image,
                                    .writer = writer,
                                    .metadata_version = image->metadata_version,
                                    .partition = -1};
    arena_init(&freeze->arena, image->mem, 0);
    freeze->at = freeze_list(freeze)->next;
    image->freeze = freeze;
    if (++image->freezes == 0) image->freezes = 1;
    freeze_features(freeze);
    return freeze->failed ? image_freeze_end(freeze) : freeze;
}

struct image_freeze *image_freeze_end(struct image_freeze *freeze)
{
    if (freeze == NULL) return NULL;
    struct image *image = freeze->image;
    assert(image->freeze == freeze);
    image->freeze = NULL;
    arena_free(&freeze->arena);
    return mem_put(image->mem, freeze, sizeof(*freeze));
}
