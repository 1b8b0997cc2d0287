/* image.c - slots, edits, undo, watches: everything but what the records mean.
 *
 * Invariants:
 *   - an object never changes once it stands in a slot; only a topic's array of partitions does,
 *     which is itself an array of slots, and the freeze that has written it
 *   - the objects of a kind are in its map and in its list, in the order in which they came
 *   - the counts (partitions, leaderless, load by broker) are those of the objects in the slots
 *   - each map has its buckets from the start, so putting an object into a slot cannot fail
 *   - an edit owns `before` once it is made (undo drops or puts back), and `now` until then */
#include "core/image_internal.h"

static struct image_edit *image_edit_of(struct undo_entry *entry)
{
    return container_of(entry, struct image_edit, entry);
}

/* ---- objects --------------------------------------------------------------------------------- */

void *image_object_new(struct image *image, enum image_kind kind, size_t size, size_t extra)
{
    assert(size >= sizeof(struct image_object));
    if (size + extra > UINT32_MAX) return NULL;
    struct image_object *object = mem_get(image->mem, size + extra);
    if (object == NULL) return NULL;
    object->size_bytes = (uint32_t)(size + extra);
    object->kind = (uint8_t)kind;
    object->frozen = image->freezes; /* Not part of a freeze that is under way. */
    if (kind != IMAGE_PARTITION) list_init(&image_keyed(object)->slot.link);
    return object;
}

void image_object_free(struct image *image, void *pointer)
{
    struct image_object *object = pointer;
    if (object == NULL) return;
    if (object->kind == IMAGE_TOPIC) {
        struct image_topic *topic = pointer;
        for (int32_t i = 0; i < topic->partition_count; i++)
            if (topic->partitions[i] != NULL)
                image_object_free(image, (void *)(uintptr_t)topic->partitions[i]);
        mem_put(image->mem, topic->partitions,
                topic->partition_capacity * sizeof(topic->partitions[0]));
    }
    mem_put(image->mem, object, object->size_bytes);
}

static void image_hold_free(struct image *image, struct image_hold *hold)
{
    if (hold == NULL) return;
    list_foreach (link, &hold->records) {
        struct image_held *held = container_of(link, struct image_held, link);
        mem_put(image->mem, held, sizeof(*held) + held->size_bytes);
    }
    mem_put(image->mem, hold, sizeof(*hold));
}

static void image_value_free(struct image *image, uint8_t kind, void *value)
{
    if (kind == IMAGE_HOLD)
        image_hold_free(image, value);
    else
        image_object_free(image, value);
}

/* ---- counts ---------------------------------------------------------------------------------- */

static struct image_load_node *image_load_node(const struct image *image, int32_t id)
{
    struct map_node *node = map_find(&image->loads, view_of(&id, sizeof(id)));
    return node == NULL ? NULL : container_of(node, struct image_load_node, node);
}

/* A load counter for each broker of the list. False: no memory. */
static bool image_reserve_loads(struct image *image, struct image_ids ids)
{
    for (uint32_t i = 0; i < ids.count; i++) {
        if (image_load_node(image, ids.items[i]) != NULL) continue;
        struct image_load_node *load = mem_get(image->mem, sizeof(*load));
        if (load == NULL) return false;
        load->id = ids.items[i];
        load->node.key = view_of(&load->id, sizeof(load->id));
        bool inserted = map_insert(&image->loads, &load->node);
        assert(inserted);
    }
    return true;
}

static bool image_reserve_partition_loads(struct image *image,
                                          const struct image_partition *partition)
{
    uint32_t leaders = partition->leader >= 0 ? 1 : 0;
    return image_reserve_loads(image, (struct image_ids){&partition->leader, leaders}) &&
           image_reserve_loads(image, image_list(partition, IMAGE_ISR)) &&
           image_reserve_loads(image, image_list(partition, IMAGE_ELR));
}

bool image_reserve_topic_loads(struct image *image, const struct image_topic *topic)
{
    for (int32_t i = 0; i < topic->partition_count; i++)
        if (topic->partitions[i] != NULL &&
            !image_reserve_partition_loads(image, topic->partitions[i]))
            return false;
    return true;
}

static void image_count_partition(struct image *image,
                                  const struct image_partition *partition,
                                  int32_t sign)
{
    uint32_t one = (uint32_t)sign; /* Wraps to minus one. */
    image->partition_count += one;
    if (partition->leader == IMAGE_NO_LEADER) {
        image->leaderless_count += one;
    } else {
        image_load_node(image, partition->leader)->load.leader += one;
    }
    struct image_ids isr = image_list(partition, IMAGE_ISR);
    for (uint32_t i = 0; i < isr.count; i++)
        image_load_node(image, isr.items[i])->load.isr += one;
    struct image_ids elr = image_list(partition, IMAGE_ELR);
    for (uint32_t i = 0; i < elr.count; i++)
        image_load_node(image, elr.items[i])->load.elr += one;
}

static void image_count_topic(struct image *image, const struct image_topic *topic, int32_t sign)
{
    for (int32_t i = 0; i < topic->partition_count; i++)
        if (topic->partitions[i] != NULL) image_count_partition(image, topic->partitions[i], sign);
}

/* ---- slots ----------------------------------------------------------------------------------- */

static void image_put_topic(struct image *image,
                            struct image_topic *before,
                            struct image_topic *now)
{
    if (before != NULL) {
        map_remove(&image->topics_by_id, &before->by_id);
        image_count_topic(image, before, -1);
    }
    if (now != NULL) {
        bool inserted = map_insert(&image->topics_by_id, &now->by_id);
        assert(inserted);
        image_count_topic(image, now, 1);
    }
}

static void image_put_partition(struct image *image,
                                struct image_topic *topic,
                                int32_t index,
                                const struct image_partition *now)
{
    assert((uint32_t)index < topic->partition_capacity);
    const struct image_partition *before = topic->partitions[index];
    if (before != NULL) image_count_partition(image, before, -1);
    if (now != NULL) image_count_partition(image, now, 1);
    topic->partitions[index] = now;
    topic->partition_count = MAX(topic->partition_count, index + 1);
    while (topic->partition_count > 0 && topic->partitions[topic->partition_count - 1] == NULL)
        topic->partition_count--;
}

static void image_put_keyed(struct image *image, uint8_t kind, void *before, void *now)
{
    if (before != NULL) {
        struct image_slot *out = &image_keyed(before)->slot;
        map_remove(&image->maps[kind], &out->node);
        list_remove(&out->link);
    }
    if (now != NULL) {
        struct image_slot *in = &image_keyed(now)->slot;
        bool inserted = map_insert(&image->maps[kind], &in->node);
        assert(inserted);
        list_append(&image->lists[kind], &in->link);
    }
}

/* Put `now` where `before` stands. Cannot fail. */
static void image_put(struct image *image, const struct image_edit *edit, void *before, void *now)
{
    if (edit->kind == IMAGE_HOLD) {
        image->hold = now;
        return;
    }
    if (image->freeze != NULL && before != NULL)
        image_freeze_leaves(image->freeze, before, edit->topic, edit->partition);
    if (edit->kind == IMAGE_PARTITION) {
        image_put_partition(image, edit->topic, edit->partition, now);
        return;
    }
    image_put_keyed(image, edit->kind, before, now);
    if (edit->kind == IMAGE_TOPIC) image_put_topic(image, before, now);
    if (edit->kind == IMAGE_FEATURE) {
        const struct image_feature *feature = now != NULL ? now : before;
        if (view_is(feature->name, "metadata.version"))
            image->metadata_version = now != NULL ? feature->level : 0;
    }
}

static void image_tell_one(struct image *image, const struct image_change *change)
{
    list_foreach (link, &image->watches) {
        struct image_watch *watch = container_of(link, struct image_watch, link);
        watch->changed(watch, change);
    }
}

static void image_tell(struct image *image, const struct image_edit *edit, void *before, void *now)
{
    if (edit->kind == IMAGE_HOLD || list_empty(&image->watches)) return;
    struct image_change change = {
        .kind = edit->kind,
        .before = before,
        .now = now,
        .topic = edit->topic,
        .partition = edit->partition,
    };
    if (edit->kind != IMAGE_TOPIC) {
        image_tell_one(image, &change);
        return;
    }
    /* A topic goes after its partitions and comes before them. */
    struct image_topic *topic = now != NULL ? now : before;
    change.topic = topic;
    if (now != NULL) image_tell_one(image, &change);
    for (int32_t i = 0; i < topic->partition_count; i++) {
        if (topic->partitions[i] == NULL) continue;
        const struct image_object *object = &topic->partitions[i]->object;
        image_tell_one(image, &(struct image_change){.kind = IMAGE_PARTITION,
                                                     .before = now == NULL ? object : NULL,
                                                     .now = now == NULL ? NULL : object,
                                                     .topic = topic,
                                                     .partition = i});
    }
    if (now == NULL) image_tell_one(image, &change);
}

/* ---- edits ----------------------------------------------------------------------------------- */

static bool image_prepare_edit(struct image *image, const struct image_edit *change)
{
    struct image_edit *edit = mem_get(image->mem, sizeof(*edit));
    if (edit == NULL) {
        image_value_free(image, change->kind, change->now);
        return false;
    }
    *edit = *change;
    list_append(&image->prepared, &edit->entry.link);
    return true;
}

bool image_prepare(struct image *image, uint8_t kind, void *before, void *now)
{
    assert(kind != IMAGE_PARTITION);
    assert(before != NULL || now != NULL);
    return image_prepare_edit(image,
                              &(struct image_edit){.kind = kind, .before = before, .now = now});
}

static bool image_reserve_partition(struct image *image, struct image_topic *topic, int32_t index)
{
    if ((uint32_t)index < topic->partition_capacity) return true;
    uint32_t capacity = MAX((uint32_t)index + 1, 2 * topic->partition_capacity);
    const struct image_partition **partitions =
        mem_get(image->mem, capacity * sizeof(partitions[0]));
    if (partitions == NULL) return false;
    if (topic->partition_capacity > 0)
        memcpy(partitions, topic->partitions, topic->partition_capacity * sizeof(partitions[0]));
    mem_put(image->mem, topic->partitions, topic->partition_capacity * sizeof(partitions[0]));
    topic->partitions = partitions;
    topic->partition_capacity = capacity;
    return true;
}

bool image_prepare_partition(struct image *image,
                             struct image_topic *topic,
                             int32_t index,
                             struct image_partition *now)
{
    assert(now != NULL);
    if (!image_reserve_partition(image, topic, index) ||
        !image_reserve_partition_loads(image, now)) {
        image_object_free(image, now);
        return false;
    }
    return image_prepare_edit(
        image, &(struct image_edit){.kind = IMAGE_PARTITION,
                                    .topic = topic,
                                    .partition = index,
                                    .before = (void *)(uintptr_t)topic->partitions[index],
                                    .now = now});
}

void image_make(struct image *image)
{
    struct list *link;
    while ((link = list_pop(&image->prepared)) != NULL) {
        struct image_edit *edit = container_of(link, struct image_edit, entry.link);
        image_put(image, edit, edit->before, edit->now);
        image_tell(image, edit, edit->before, edit->now);
        undo_add(image->undo_now, &edit->entry, image->batch_offset);
    }
}

void image_forget(struct image *image)
{
    struct list *link;
    while ((link = list_pop(&image->prepared)) != NULL) {
        struct image_edit *edit = container_of(link, struct image_edit, entry.link);
        image_value_free(image, edit->kind, edit->now);
        mem_put(image->mem, edit, sizeof(*edit));
    }
}

static void image_edit_drop(void *machine, struct undo_entry *entry)
{
    struct image *image = machine;
    struct image_edit *edit = image_edit_of(entry);
    image_value_free(image, edit->kind, edit->before);
    mem_put(image->mem, edit, sizeof(*edit));
}

static void image_edit_back(void *machine, struct undo_entry *entry)
{
    struct image *image = machine;
    struct image_edit *edit = image_edit_of(entry);
    assert(image->freeze == NULL || image->undo.off); /* What comes back was there before it. */
    image_put(image, edit, edit->now, edit->before);
    image_tell(image, edit, edit->now, edit->before);
    image_value_free(image, edit->kind, edit->now);
    mem_put(image->mem, edit, sizeof(*edit));
}

enum image_result image_faulty(struct image *image, const char *fault)
{
    image->fault = fault;
    return IMAGE_E_FAULT;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Give a map its buckets, by putting a node in and out. */
static bool image_map_init(struct map *map, struct mem *mem, uint64_t seed)
{
    map_init(map, mem, seed);
    struct map_node node = {.key = VIEW_EMPTY};
    if (!map_insert(map, &node)) return false;
    map_remove(map, &node);
    return true;
}

struct image *image_new(struct mem *mem, uint64_t seed)
{
    struct image *image = mem_get(mem, sizeof(*image));
    if (image == NULL) return NULL;
    image->mem = mem;
    list_init(&image->watches);
    list_init(&image->prepared);
    undo_init(&image->undo, image, image_edit_drop, image_edit_back);
    image->undo.off = true;
    image->undo_now = &image->undo;

    bool ok = true;
    for (uint32_t i = 0; i < IMAGE_KINDS; i++)
        ok = image_map_init(&image->maps[i], mem, seed + i) && ok;
    for (uint32_t i = 0; i < IMAGE_KINDS; i++)
        list_init(&image->lists[i]);
    ok = image_map_init(&image->topics_by_id, mem, seed + IMAGE_KINDS) && ok;
    ok = image_map_init(&image->loads, mem, seed + IMAGE_KINDS + 1) && ok;
    return ok ? image : image_free(image);
}

static void image_map_free(struct image *image, struct map *map)
{
    struct map_node *node = map_next(map, NULL);
    while (node != NULL) {
        struct map_node *next = map_next(map, node);
        image_object_free(image, image_of_node(node));
        node = next;
    }
    map_free(map);
}

struct image *image_free(struct image *image)
{
    if (image == NULL) return NULL;
    assert(list_empty(&image->watches));
    assert(list_empty(&image->prepared));
    assert(image->freeze == NULL);
    undo_commit(&image->undo, INT64_MAX);
    for (uint32_t i = 0; i < IMAGE_KINDS; i++)
        image_map_free(image, &image->maps[i]);
    map_free(&image->topics_by_id);
    struct map_node *node = map_next(&image->loads, NULL);
    while (node != NULL) {
        struct map_node *next = map_next(&image->loads, node);
        mem_put(image->mem, container_of(node, struct image_load_node, node),
                sizeof(struct image_load_node));
        node = next;
    }
    map_free(&image->loads);
    image_hold_free(image, image->hold);
    mem_put(image->mem, image, sizeof(*image));
    return NULL;
}

const char *image_fault(const struct image *image)
{
    return image->fault;
}

void image_keep_undo(struct image *image)
{
    image->undo.off = false;
}

void image_commit(struct image *image, int64_t offset)
{
    undo_commit(&image->undo, offset);
}

void image_undo(struct image *image, int64_t offset)
{
    undo_back(&image->undo, offset);
    /* Records of lost batches that only waited for the end of their transaction. */
    if (image->hold == NULL) return;
    list_foreach (link, &image->hold->records) {
        struct image_held *held = container_of(link, struct image_held, link);
        if (held->batch_offset < offset) continue;
        list_remove(link);
        mem_put(image->mem, held, sizeof(*held) + held->size_bytes);
    }
}

int64_t image_transaction(const struct image *image)
{
    return image->hold == NULL ? -1 : image->hold->offset;
}

void image_watch_add(struct image *image, struct image_watch *watch)
{
    assert(watch->changed != NULL);
    list_append(&image->watches, &watch->link);
}

void image_watch_remove(struct image *image, struct image_watch *watch)
{
    assert(!list_empty(&image->watches));
    list_remove(&watch->link);
}
