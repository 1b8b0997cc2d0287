/* consumer_protocol.c - see consumer_protocol.h. */
#include "core/consumer_protocol.h"

#include "base/bytes.h"
#include "base/reader.h"
#include "base/view_sort.h"
#include "core/image.h"
#include "gen/consumer_protocol_assignment.h"
#include "gen/consumer_protocol_subscription.h"

/* The message behind the version. NULL: it is none, or no memory (arena->failed). */
static const void *message_read(struct arena *arena,
                                struct view bytes,
                                const struct wire_message *message)
{
    struct reader in = reader_of(bytes.null ? VIEW_EMPTY : bytes);
    int16_t version = (int16_t)reader_be16(&in);
    if (in.fault != READER_OK || version < message->version_min) return NULL;
    void *out = arena_get(arena, message->size_bytes);
    const struct wire_form *form = wire_form(message, MIN(version, message->version_max));
    return out != NULL && wire_decode(&in, form, arena, out) ? out : NULL;
}

static void items_add(struct partition_set *out,
                      const struct image *image,
                      struct view name,
                      const int32_t *partitions,
                      int32_t count,
                      int32_t epoch)
{
    const struct image_topic *topic = image == NULL ? NULL : image_topic(image, name);
    for (int32_t i = 0; topic != NULL && i < count; i++)
        if (partitions[i] >= 0 && (uint32_t)partitions[i] < IMAGE_PARTITIONS_MAX)
            out->items[out->count++] = (struct partition_item){
                .topic = topic->id, .partition = partitions[i], .epoch = epoch};
}

enum consumer_protocol_result consumer_protocol_subscription(struct arena *arena,
                                                             const struct image *image,
                                                             struct view bytes,
                                                             struct consumer_subscription *out)
{
    const struct consumer_protocol_subscription *in =
        message_read(arena, bytes, &wire_consumer_protocol_subscription);
    size_t room = 0;
    *out = (struct consumer_subscription){.rack = VIEW_NULL};
    if (in == NULL) return arena->failed ? CONSUMER_PROTOCOL_E_MEMORY : CONSUMER_PROTOCOL_E_FAULT;
    uint32_t count = (uint32_t)MAX(in->topics.count, 0);
    out->topics = in->topics.items;
    out->rack = in->rack_id;
    view_sort(out->topics, count);
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || !view_equal(out->topics[out->topic_count - 1], out->topics[i]))
            out->topics[out->topic_count++] = out->topics[i];
    for (int32_t i = 0; i < in->owned_partitions.count; i++)
        room += (size_t)MAX(in->owned_partitions.items[i].partitions.count, 0);
    if (!partition_set_room(&out->owned, arena, room)) return CONSUMER_PROTOCOL_E_MEMORY;
    for (int32_t i = 0; i < in->owned_partitions.count; i++)
        items_add(&out->owned, image, in->owned_partitions.items[i].topic,
                  in->owned_partitions.items[i].partitions.items,
                  in->owned_partitions.items[i].partitions.count, 0);
    partition_set_sort(&out->owned);
    return CONSUMER_PROTOCOL_OK;
}

enum consumer_protocol_result consumer_protocol_assignment(struct arena *arena,
                                                           const struct image *image,
                                                           struct view bytes,
                                                           int32_t epoch,
                                                           struct partition_set *out)
{
    size_t room = 0;
    *out = (struct partition_set){0};
    if (bytes.null || bytes.size == 0) return CONSUMER_PROTOCOL_OK;
    const struct consumer_protocol_assignment *in =
        message_read(arena, bytes, &wire_consumer_protocol_assignment);
    if (in == NULL) return arena->failed ? CONSUMER_PROTOCOL_E_MEMORY : CONSUMER_PROTOCOL_E_FAULT;
    if (!in->user_data.null && in->user_data.size > 0) return CONSUMER_PROTOCOL_E_USER;
    for (int32_t i = 0; i < in->assigned_partitions.count; i++)
        room += (size_t)MAX(in->assigned_partitions.items[i].partitions.count, 0);
    if (!partition_set_room(out, arena, room)) return CONSUMER_PROTOCOL_E_MEMORY;
    for (int32_t i = 0; i < in->assigned_partitions.count; i++)
        items_add(out, image, in->assigned_partitions.items[i].topic,
                  in->assigned_partitions.items[i].partitions.items,
                  in->assigned_partitions.items[i].partitions.count, epoch);
    partition_set_sort(out);
    return CONSUMER_PROTOCOL_OK;
}

static bool assigned_fill(struct arena *arena,
                          const struct image *image,
                          const struct partition_set *set,
                          struct consumer_protocol_assignment *out)
{
    out->assigned_partitions.items =
        arena_get(arena, (partition_set_topics(set) + 1) * sizeof(*out->assigned_partitions.items));
    if (out->assigned_partitions.items == NULL) return false;
    out->assigned_partitions.count = 0;
    for (uint32_t at = 0, run; at < set->count; at += run) {
        const struct image_topic *topic =
            image == NULL ? NULL : image_topic_by_id(image, set->items[at].topic);
        run = partition_set_run(set, at);
        if (topic == NULL) continue;
        struct consumer_protocol_assignment_topic_partition *item =
            &out->assigned_partitions.items[out->assigned_partitions.count++];
        item->topic = topic->name;
        item->partitions.items = arena_take(arena, run * sizeof(int32_t));
        if (item->partitions.items == NULL) return false;
        item->partitions.count = (int32_t)run;
        for (uint32_t i = 0; i < run; i++)
            item->partitions.items[i] = set->items[at + i].partition;
    }
    return true;
}

struct view consumer_protocol_assigned(struct arena *arena,
                                       const struct image *image,
                                       const struct partition_set *set,
                                       struct view like)
{
    const struct wire_message *message = &wire_consumer_protocol_assignment;
    struct consumer_protocol_assignment value;
    int16_t version = like.size < 2 ? 0 : (int16_t)load_be16(like.data);
    version = MAX(message->version_min, MIN(version, message->version_max));
    wire_defaults(message, &value);
    value.user_data = VIEW_NULL;
    if (!assigned_fill(arena, image, set, &value)) return VIEW_NULL;
    const struct wire_form *form = wire_form(message, version);
    size_t size = wire_size(form, &value);
    uint8_t *bytes = arena_take(arena, size + 2);
    if (bytes == NULL) return VIEW_NULL;
    store_be16(bytes, (uint16_t)version);
    (void)wire_encode(form, &value, bytes + 2, NULL, 0, NULL);
    return view_of(bytes, (uint32_t)size + 2);
}
