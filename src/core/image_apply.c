/* image_apply.c - what each metadata record means.
 *
 * One function for each kind of record: it checks the record against what is there (else a fault),
 * makes the new objects and prepares the edits. image_apply_one() then makes them, all or none.
 *
 * A metadata transaction is a list of records that wait. Its End applies them with an undo log of
 * its own, so that one that fails half-way leaves the image as it was, transaction open. */
#include "base/bytes.h"
#include "core/feature.h"
#include "core/image_internal.h"

#include "gen/access_control_entry_record.h"
#include "gen/broker_registration_change_record.h"
#include "gen/clear_elr_record.h"
#include "gen/client_quota_record.h"
#include "gen/config_record.h"
#include "gen/delegation_token_record.h"
#include "gen/feature_level_record.h"
#include "gen/fence_broker_record.h"
#include "gen/partition_change_record.h"
#include "gen/partition_record.h"
#include "gen/producer_ids_record.h"
#include "gen/register_broker_record.h"
#include "gen/register_controller_record.h"
#include "gen/remove_access_control_entry_record.h"
#include "gen/remove_delegation_token_record.h"
#include "gen/remove_topic_record.h"
#include "gen/remove_user_scram_credential_record.h"
#include "gen/topic_record.h"
#include "gen/unfence_broker_record.h"
#include "gen/unregister_broker_record.h"
#include "gen/unregister_controller_record.h"
#include "gen/user_scram_credential_record.h"

static void *image_find(const struct image *image, enum image_kind kind, struct view key)
{
    struct map_node *node = map_find(&image->maps[kind], key);
    return node == NULL ? NULL : image_of_node(node);
}

/* Prepare a replacement; `now` is NULL only where an allocation failed. */
static enum image_result image_set(struct image *image,
                                   enum image_kind kind,
                                   void *before,
                                   void *now)
{
    if (now == NULL) return IMAGE_E_MEMORY;
    return image_prepare(image, kind, before, now) ? IMAGE_OK : IMAGE_E_MEMORY;
}

/* Prepare a removal; nothing happens where nothing is. */
static enum image_result image_remove(struct image *image, enum image_kind kind, void *before)
{
    if (before == NULL) return IMAGE_OK;
    return image_prepare(image, kind, before, NULL) ? IMAGE_OK : IMAGE_E_MEMORY;
}

/* ---- features, configs, producer ids --------------------------------------------------------- */

static enum image_result image_apply_feature(struct image *image,
                                             const struct feature_level_record *record)
{
    if (view_is(record->name, FEATURE_KRAFT)) return IMAGE_OK; /* Lives in control records. */
    const struct feature *feature = feature_find(record->name);
    int16_t level = record->feature_level;
    if (feature == NULL && level != 0) return image_faulty(image, "a feature that is not known");
    if (feature != NULL && (level < feature->min || level > feature->max))
        return image_faulty(image, "a feature level that this build does not support");

    struct image_feature *before = image_find(image, IMAGE_FEATURE, record->name);
    if (level == 0) return image_remove(image, IMAGE_FEATURE, before);
    return image_set(image, IMAGE_FEATURE, before, image_feature_new(image, record->name, level));
}

static enum image_result image_apply_config(struct image *image, const struct config_record *record)
{
    if (record->resource_name.size > UINT16_MAX)
        return image_faulty(image, "a resource name that is too long");
    struct image_configs *before = (struct image_configs *)(uintptr_t)image_configs(
        image, (enum image_resource)record->resource_type, record->resource_name);
    struct image_config change = {record->name, record->value};
    if (change.value.null) {
        if (before == NULL || image_config(before, change.name).null) return IMAGE_OK;
        if (before->count == 1) return image_remove(image, IMAGE_CONFIGS, before);
    }
    return image_set(image, IMAGE_CONFIGS, before,
                     image_configs_changed(image, before, record->resource_type,
                                           record->resource_name, &change));
}

static enum image_result image_apply_producer_ids(struct image *image,
                                                  const struct step_record *record)
{
    const struct producer_ids_record *ids = record->value.value;
    if (ids->next_producer_id <= image_producer_id_next(image))
        return image_faulty(image, "producer ids that do not grow");
    struct view key = VIEW("next");
    return image_set(image, IMAGE_PRODUCER_IDS, image_find(image, IMAGE_PRODUCER_IDS, key),
                     image_raw_new(image, IMAGE_PRODUCER_IDS, key, record));
}

/* ---- brokers and controllers ----------------------------------------------------------------- */

static struct image_node *image_node(struct image *image, enum image_kind kind, int32_t id)
{
    return image_find(image, kind, view_of(&id, sizeof(id)));
}

static enum image_result image_apply_register_broker(struct image *image,
                                                     const struct register_broker_record *record,
                                                     int64_t offset)
{
    if (record->end_points.count > (int32_t)IMAGE_ENDPOINTS_MAX ||
        record->features.count > (int32_t)IMAGE_FEATURES_MAX)
        return image_faulty(image, "a broker with too many listeners or features");
    return image_set(image, IMAGE_BROKER, image_node(image, IMAGE_BROKER, record->broker_id),
                     image_broker_new(image, record, offset));
}

static enum image_result image_apply_register_controller(
    struct image *image,
    const struct register_controller_record *record,
    int64_t offset)
{
    if (record->end_points.count > (int32_t)IMAGE_ENDPOINTS_MAX ||
        record->features.count > (int32_t)IMAGE_FEATURES_MAX)
        return image_faulty(image, "a controller with too many listeners or features");
    return image_set(image, IMAGE_CONTROLLER,
                     image_node(image, IMAGE_CONTROLLER, record->controller_id),
                     image_controller_new(image, record, offset));
}

/* The broker that a record names by id and epoch, or a fault. */
static struct image_node *image_named_broker(struct image *image, int32_t id, int64_t epoch)
{
    struct image_node *broker = image_node(image, IMAGE_BROKER, id);
    if (broker == NULL)
        image->fault = "a broker that is not registered";
    else if (broker->epoch != epoch)
        image->fault = "a broker epoch that is not the registered one";
    else
        return broker;
    return NULL;
}

static enum image_result image_apply_unregister_broker(
    struct image *image,
    const struct unregister_broker_record *record)
{
    struct image_node *broker = image_named_broker(image, record->broker_id, record->broker_epoch);
    if (broker == NULL) return IMAGE_E_FAULT;
    return image_remove(image, IMAGE_BROKER, broker);
}

static enum image_result image_apply_broker_change(
    struct image *image,
    const struct broker_registration_change_record *record)
{
    struct image_node *broker = image_named_broker(image, record->broker_id, record->broker_epoch);
    if (broker == NULL) return IMAGE_E_FAULT;
    if (record->fenced < -1 || record->fenced > 1 || record->in_controlled_shutdown < 0 ||
        record->in_controlled_shutdown > 1)
        return image_faulty(image, "a broker change whose flags are not known");
    return image_set(image, IMAGE_BROKER, broker, image_broker_changed(image, broker, record));
}

static enum image_result image_apply_fence(struct image *image,
                                           int32_t id,
                                           int64_t epoch,
                                           bool fenced)
{
    struct broker_registration_change_record change;
    wire_defaults(&wire_broker_registration_change_record, &change);
    change.broker_id = id;
    change.broker_epoch = epoch;
    change.fenced = fenced ? 1 : -1;
    return image_apply_broker_change(image, &change);
}

/* ---- topics and partitions ------------------------------------------------------------------- */

static enum image_result image_apply_topic(struct image *image, const struct topic_record *record)
{
    if (image_topic(image, record->name) != NULL)
        return image_faulty(image, "a topic whose name is there already");
    if (image_topic_by_id(image, record->topic_id) != NULL)
        return image_faulty(image, "a topic whose id is there already");
    return image_set(image, IMAGE_TOPIC, NULL,
                     image_topic_new(image, record->name, record->topic_id));
}

static enum image_result image_apply_remove_topic(struct image *image,
                                                  const struct remove_topic_record *record)
{
    struct image_topic *topic =
        (struct image_topic *)(uintptr_t)image_topic_by_id(image, record->topic_id);
    if (topic == NULL) return image_faulty(image, "a topic that is not there");
    struct image_configs *configs =
        (struct image_configs *)(uintptr_t)image_configs(image, IMAGE_RESOURCE_TOPIC, topic->name);
    if (image_remove(image, IMAGE_CONFIGS, configs) != IMAGE_OK) return IMAGE_E_MEMORY;
    return image_remove(image, IMAGE_TOPIC, topic);
}

static bool image_partition_sound(const struct image_partition *partition)
{
    return partition->leader >= IMAGE_NO_LEADER &&
           (partition->recovery == IMAGE_RECOVERED || partition->recovery == IMAGE_RECOVERING);
}

static enum image_result image_set_partition(struct image *image,
                                             struct image_topic *topic,
                                             int32_t index,
                                             struct image_partition *now)
{
    if (now == NULL) return IMAGE_E_MEMORY;
    if (!image_partition_sound(now)) {
        image_object_free(image, now);
        return image_faulty(image, "a partition with an impossible leader or recovery state");
    }
    return image_prepare_partition(image, topic, index, now) ? IMAGE_OK : IMAGE_E_MEMORY;
}

static enum image_result image_apply_partition(struct image *image,
                                               const struct partition_record *record)
{
    struct image_topic *topic =
        (struct image_topic *)(uintptr_t)image_topic_by_id(image, record->topic_id);
    if (topic == NULL) return image_faulty(image, "a partition of a topic that is not there");
    if (record->partition_id < 0 || record->partition_id >= (int32_t)IMAGE_PARTITIONS_MAX)
        return image_faulty(image, "a partition index outside of what is possible");
    if (record->replicas.count > INT16_MAX)
        return image_faulty(image, "a partition with too many replicas");
    return image_set_partition(image, topic, record->partition_id,
                               image_partition_new(image, record));
}

static enum image_result image_apply_partition_change(struct image *image,
                                                      const struct partition_change_record *record)
{
    struct image_topic *topic =
        (struct image_topic *)(uintptr_t)image_topic_by_id(image, record->topic_id);
    const struct image_partition *before =
        topic == NULL ? NULL : image_partition(topic, record->partition_id);
    if (before == NULL) return image_faulty(image, "a change of a partition that is not there");
    if (record->replicas.count > INT16_MAX)
        return image_faulty(image, "a partition with too many replicas");
    return image_set_partition(image, topic, record->partition_id,
                               image_partition_changed(image, before, record));
}

static enum image_result image_clear_elr(struct image *image, struct image_topic *topic)
{
    for (int32_t i = 0; i < topic->partition_count; i++) {
        const struct image_partition *before = topic->partitions[i];
        if (before == NULL) continue;
        if (before->counts[IMAGE_ELR] == 0 && before->counts[IMAGE_LAST_KNOWN_ELR] == 0) continue;
        struct image_partition *now = image_partition_without_elr(image, before);
        if (now == NULL || !image_prepare_partition(image, topic, i, now)) return IMAGE_E_MEMORY;
    }
    return IMAGE_OK;
}

static enum image_result image_apply_clear_elr(struct image *image,
                                               const struct clear_elr_record *record)
{
    if (record->topic_name.size > 0) {
        struct image_topic *topic = image_find(image, IMAGE_TOPIC, record->topic_name);
        if (topic == NULL) return image_faulty(image, "a topic name that is not there");
        return image_clear_elr(image, topic);
    }
    map_foreach (node, &image->maps[IMAGE_TOPIC]) {
        struct image_object *object = image_of_node(node);
        enum image_result result =
            image_clear_elr(image, container_of(object, struct image_topic, object));
        if (result != IMAGE_OK) return result;
    }
    return IMAGE_OK;
}

/* ---- kept as they are ------------------------------------------------------------------------ */

/* A quota's key: its entity's parts in the order of their types, then the name of the limit. */
static uint8_t *image_quota_part(uint8_t *out, struct view text)
{
    *out++ = text.null ? 0 : 1;
    store_be32(out, text.null ? 0 : text.size);
    out += 4;
    if (!text.null && text.size > 0) memcpy(out, text.data, text.size);
    return out + (text.null ? 0 : text.size);
}

/* The key of the quota that a record is about, from image->mem; the null view: no memory. */
static struct view image_quota_key(const struct image *image,
                                   const struct client_quota_record *quota)
{
    const struct client_quota_record_entity_data *parts[IMAGE_QUOTA_PARTS_MAX];
    size_t size = 5 + quota->key.size;
    for (int32_t i = 0; i < quota->entity.count; i++) {
        const struct client_quota_record_entity_data *part = &quota->entity.items[i];
        size += 10 + part->entity_type.size + (part->entity_name.null ? 0 : part->entity_name.size);
        int32_t at = i;
        for (; at > 0 && view_compare(parts[at - 1]->entity_type, part->entity_type) > 0; at--)
            parts[at] = parts[at - 1];
        parts[at] = part;
    }
    uint8_t *key = mem_get(image->mem, size);
    if (key == NULL) return VIEW_NULL;
    uint8_t *at = key;
    for (int32_t i = 0; i < quota->entity.count; i++) {
        at = image_quota_part(at, parts[i]->entity_type);
        at = image_quota_part(at, parts[i]->entity_name);
    }
    at = image_quota_part(at, quota->key);
    assert((size_t)(at - key) == size);
    return view_of(key, (uint32_t)size);
}

static void image_quota_key_drop(const struct image *image, struct view key)
{
    uint8_t *bytes;
    memcpy(&bytes, &key.data, sizeof(bytes)); /* Our own, not const. */
    mem_put(image->mem, bytes, key.size);
}

bool image_quota(const struct image *image,
                 const struct client_quota_record *like,
                 const struct image_raw **out)
{
    assert(like->entity.count >= 1);
    assert(like->entity.count <= IMAGE_QUOTA_PARTS_MAX);
    struct view key = image_quota_key(image, like);
    if (key.null) return false;
    struct map_node *node = map_find(&image->maps[IMAGE_QUOTA], key);
    *out = node == NULL ? NULL : (const struct image_raw *)image_of_node(node);
    image_quota_key_drop(image, key);
    return true;
}

static enum image_result image_apply_quota(struct image *image, const struct step_record *record)
{
    const struct client_quota_record *quota = record->value.value;
    if (quota->entity.count < 1 || quota->entity.count > IMAGE_QUOTA_PARTS_MAX)
        return image_faulty(image, "a quota of an entity that is not known");
    struct view key = image_quota_key(image, quota);
    if (key.null) return IMAGE_E_MEMORY;
    struct image_raw *before = image_find(image, IMAGE_QUOTA, key);
    enum image_result result =
        quota->remove
            ? image_remove(image, IMAGE_QUOTA, before)
            : image_set(image, IMAGE_QUOTA, before, image_raw_new(image, IMAGE_QUOTA, key, record));
    image_quota_key_drop(image, key);
    return result;
}

/* Set or remove the raw object of this key. */
static enum image_result image_apply_raw(struct image *image,
                                         enum image_kind kind,
                                         struct view key,
                                         const struct step_record *record)
{
    struct image_raw *before = image_find(image, kind, key);
    if (record == NULL) return image_remove(image, kind, before);
    return image_set(image, kind, before, image_raw_new(image, kind, key, record));
}

static enum image_result image_apply_scram(struct image *image,
                                           int8_t mechanism,
                                           struct view name,
                                           const struct step_record *record)
{
    uint32_t size = 1 + name.size;
    uint8_t *key = mem_get(image->mem, size);
    if (key == NULL) return IMAGE_E_MEMORY;
    enum image_result result =
        image_apply_raw(image, IMAGE_SCRAM, image_configs_key(key, mechanism, name), record);
    mem_put(image->mem, key, size);
    return result;
}

bool image_scram(const struct image *image, int8_t mechanism, struct view user, bool *there)
{
    uint32_t size = 1 + user.size;
    uint8_t *key = mem_get(image->mem, size);
    if (key == NULL) return false;
    *there = map_find(&image->maps[IMAGE_SCRAM], image_configs_key(key, mechanism, user)) != NULL;
    mem_put(image->mem, key, size);
    return true;
}

static struct view image_uuid_key(const struct uuid *id)
{
    return view_of(id->bytes, sizeof(id->bytes));
}

/* Prepare the edits of the kinds that are kept as records. */
static enum image_result image_prepare_raw(struct image *image, const struct step_record *record)
{
    const void *value = record->value.value;
    switch (record->value.message->api_key) {
    case IMAGE_RECORD_TOKEN: {
        const struct delegation_token_record *token = value;
        return image_apply_raw(image, IMAGE_TOKEN, token->token_id, record);
    }
    case IMAGE_RECORD_REMOVE_TOKEN: {
        const struct remove_delegation_token_record *token = value;
        return image_apply_raw(image, IMAGE_TOKEN, token->token_id, NULL);
    }
    case IMAGE_RECORD_SCRAM: {
        const struct user_scram_credential_record *scram = value;
        return image_apply_scram(image, scram->mechanism, scram->name, record);
    }
    case IMAGE_RECORD_REMOVE_SCRAM: {
        const struct remove_user_scram_credential_record *scram = value;
        return image_apply_scram(image, scram->mechanism, scram->name, NULL);
    }
    case IMAGE_RECORD_ACL: {
        const struct access_control_entry_record *acl = value;
        return image_apply_raw(image, IMAGE_ACL, image_uuid_key(&acl->id), record);
    }
    case IMAGE_RECORD_REMOVE_ACL: {
        const struct remove_access_control_entry_record *acl = value;
        return image_apply_raw(image, IMAGE_ACL, image_uuid_key(&acl->id), NULL);
    }
    case IMAGE_RECORD_QUOTA: return image_apply_quota(image, record);
    case IMAGE_RECORD_PRODUCER_IDS: return image_apply_producer_ids(image, record);
    default: return image_faulty(image, "a record of a type that is not known");
    }
}

/* ---- one record ------------------------------------------------------------------------------ */

/* Prepare the edits of a record that changes something. */
static enum image_result image_prepare_record(struct image *image,
                                              const struct step_record *record,
                                              int64_t offset)
{
    const void *value = record->value.value;
    switch (record->value.message->api_key) {
    case IMAGE_RECORD_REGISTER_BROKER: return image_apply_register_broker(image, value, offset);
    case IMAGE_RECORD_UNREGISTER_BROKER: return image_apply_unregister_broker(image, value);
    case IMAGE_RECORD_BROKER_CHANGE: return image_apply_broker_change(image, value);
    case IMAGE_RECORD_FENCE: {
        const struct fence_broker_record *fence = value;
        return image_apply_fence(image, fence->id, fence->epoch, true);
    }
    case IMAGE_RECORD_UNFENCE: {
        const struct unfence_broker_record *fence = value;
        return image_apply_fence(image, fence->id, fence->epoch, false);
    }
    case IMAGE_RECORD_REGISTER_CONTROLLER:
        return image_apply_register_controller(image, value, offset);
    case IMAGE_RECORD_UNREGISTER_CONTROLLER: {
        const struct unregister_controller_record *gone = value;
        return image_remove(image, IMAGE_CONTROLLER,
                            image_node(image, IMAGE_CONTROLLER, gone->controller_id));
    }
    case IMAGE_RECORD_TOPIC: return image_apply_topic(image, value);
    case IMAGE_RECORD_REMOVE_TOPIC: return image_apply_remove_topic(image, value);
    case IMAGE_RECORD_PARTITION: return image_apply_partition(image, value);
    case IMAGE_RECORD_PARTITION_CHANGE: return image_apply_partition_change(image, value);
    case IMAGE_RECORD_CLEAR_ELR: return image_apply_clear_elr(image, value);
    case IMAGE_RECORD_FEATURE: return image_apply_feature(image, value);
    case IMAGE_RECORD_CONFIG: return image_apply_config(image, value);
    case IMAGE_RECORD_NO_OP:
    case IMAGE_RECORD_ZK_MIGRATION: return IMAGE_OK;
    default: return image_prepare_raw(image, record);
    }
}

static enum image_result image_apply_one(struct image *image,
                                         const struct step_record *record,
                                         int64_t offset)
{
    assert(list_empty(&image->prepared));
    enum image_result result = image_prepare_record(image, record, offset);
    if (result == IMAGE_OK)
        image_make(image);
    else
        image_forget(image);
    return result;
}

/* ---- transactions ---------------------------------------------------------------------------- */

static enum image_result image_begin(struct image *image, int64_t offset)
{
    if (image->hold != NULL) return image_faulty(image, "a transaction inside a transaction");
    struct image_hold *hold = mem_get(image->mem, sizeof(*hold));
    if (hold == NULL) return IMAGE_E_MEMORY;
    hold->offset = offset;
    list_init(&hold->records);
    if (!image_prepare(image, IMAGE_HOLD, NULL, hold)) return IMAGE_E_MEMORY;
    image_make(image);
    return IMAGE_OK;
}

static enum image_result image_hold(struct image *image,
                                    const struct step_record *record,
                                    int64_t offset)
{
    size_t size = step_encoded_size(&record->value);
    struct image_held *held = mem_get(image->mem, sizeof(*held) + size);
    if (held == NULL) return IMAGE_E_MEMORY;
    held->offset = offset;
    held->batch_offset = image->batch_offset;
    held->size_bytes = (uint32_t)size;
    step_encode_into(&record->value, held->record);
    list_append(&image->hold->records, &held->link);
    return IMAGE_OK;
}

/* Apply what waits. */
static enum image_result image_release(struct image *image)
{
    struct arena arena;
    arena_init(&arena, image->mem, 0);
    enum image_result result = IMAGE_OK;
    list_foreach (link, &image->hold->records) {
        struct image_held *held = container_of(link, struct image_held, link);
        struct step_record record;
        if (!step_decode(view_of(held->record, held->size_bytes), &arena, &record)) {
            assert(arena.failed); /* It was encoded from a record. */
            result = IMAGE_E_MEMORY;
            break;
        }
        result = image_apply_one(image, &record, held->offset);
        if (result != IMAGE_OK) break;
        arena_reset(&arena);
    }
    arena_free(&arena);
    return result;
}

static enum image_result image_end(struct image *image, bool abort)
{
    if (image->hold == NULL) return image_faulty(image, "the end of a transaction outside of one");

    struct undo_log local;
    undo_init(&local, image, image->undo.drop, image->undo.back);
    image->undo_now = &local;
    enum image_result result = abort ? IMAGE_OK : image_release(image);
    if (result == IMAGE_OK) {
        if (image_prepare(image, IMAGE_HOLD, image->hold, NULL))
            image_make(image);
        else
            result = IMAGE_E_MEMORY;
    }
    image->undo_now = &image->undo;

    if (result != IMAGE_OK) {
        undo_back(&local, INT64_MIN);
        return result;
    }
    struct list *link;
    while ((link = list_pop(&local.entries)) != NULL)
        undo_add(&image->undo, container_of(link, struct undo_entry, link), image->batch_offset);
    return IMAGE_OK;
}

enum image_result image_apply(struct image *image,
                              const struct step_record *record,
                              int64_t offset,
                              int64_t batch_offset)
{
    assert(record->value.message != NULL);
    assert(record->value.message->kind == WIRE_METADATA);
    assert(batch_offset <= offset);
    image->batch_offset = batch_offset;

    switch (record->value.message->api_key) {
    case IMAGE_RECORD_BEGIN: return image_begin(image, offset);
    case IMAGE_RECORD_END: return image_end(image, false);
    case IMAGE_RECORD_ABORT: return image_end(image, true);
    default: break;
    }
    if (image->hold != NULL) return image_hold(image, record, offset);
    return image_apply_one(image, record, offset);
}
