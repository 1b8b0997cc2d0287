/* image_internal.h - what the files image*.c share: the slots, and a change as a prepared entry.
 *
 * A record's changes are prepared first (all that can fail: allocation), then made, which cannot
 * fail. Each change is one struct image_edit: it puts the object `now` where `before` stood. Made
 * edits are the undo entries; those of an image without undo are dropped at once. */
#pragma once

#include "core/image.h"

/* Not an object's kind, but an edit's: the open transaction. */
#define IMAGE_HOLD IMAGE_KINDS

/* Types of metadata records. */
enum image_record {
    IMAGE_RECORD_REGISTER_BROKER = 0,
    IMAGE_RECORD_UNREGISTER_BROKER = 1,
    IMAGE_RECORD_TOPIC = 2,
    IMAGE_RECORD_PARTITION = 3,
    IMAGE_RECORD_CONFIG = 4,
    IMAGE_RECORD_PARTITION_CHANGE = 5,
    IMAGE_RECORD_FENCE = 7,
    IMAGE_RECORD_UNFENCE = 8,
    IMAGE_RECORD_REMOVE_TOPIC = 9,
    IMAGE_RECORD_TOKEN = 10,
    IMAGE_RECORD_SCRAM = 11,
    IMAGE_RECORD_FEATURE = 12,
    IMAGE_RECORD_QUOTA = 14,
    IMAGE_RECORD_PRODUCER_IDS = 15,
    IMAGE_RECORD_BROKER_CHANGE = 17,
    IMAGE_RECORD_ACL = 18,
    IMAGE_RECORD_REMOVE_ACL = 19,
    IMAGE_RECORD_NO_OP = 20,
    IMAGE_RECORD_ZK_MIGRATION = 21,
    IMAGE_RECORD_REMOVE_SCRAM = 22,
    IMAGE_RECORD_BEGIN = 23,
    IMAGE_RECORD_END = 24,
    IMAGE_RECORD_ABORT = 25,
    IMAGE_RECORD_REMOVE_TOKEN = 26,
    IMAGE_RECORD_REGISTER_CONTROLLER = 27,
    IMAGE_RECORD_CLEAR_ELR = 28,
    IMAGE_RECORD_UNREGISTER_CONTROLLER = 29
};

/* A record that waits for the end of its transaction. */
struct image_held {
    struct list link;
    int64_t offset;
    int64_t batch_offset;
    uint32_t size_bytes;
    uint8_t record[];
};

/* An open transaction. */
struct image_hold {
    int64_t offset; /* Of its Begin. */
    struct list records;
};

struct image_edit {
    struct undo_entry entry;
    uint8_t kind; /* enum image_kind, or IMAGE_HOLD */
    int32_t partition;
    struct image_topic *topic; /* Of a partition. */
    void *before;
    void *now;
};

struct image_load_node {
    struct map_node node;
    int32_t id;
    struct image_load load;
};

/* What every object but a partition begins with. */
struct image_keyed {
    struct image_object object;
    struct image_slot slot;
};

static inline struct image_keyed *image_keyed(const struct image_object *object)
{
    assert(object->kind != IMAGE_PARTITION);
    return (struct image_keyed *)(uintptr_t)object;
}

static inline struct image_object *image_of_node(struct map_node *node)
{
    return &container_of(node, struct image_keyed, slot.node)->object;
}

struct image {
    struct mem *mem;
    struct map maps[IMAGE_KINDS];   /* That of partitions is unused, */
    struct list lists[IMAGE_KINDS]; /* and so is their list. */
    struct map topics_by_id;
    struct map loads;
    uint32_t partition_count;
    uint32_t leaderless_count;
    int16_t metadata_version;
    const char *fault;
    struct image_hold *hold; /* The open transaction, or NULL. */
    struct undo_log undo;
    struct undo_log *undo_now; /* Where edits go: `undo`, or that of a transaction's end. */
    struct list watches;
    struct image_freeze *freeze; /* Under way, or NULL. */
    uint32_t freezes;            /* The number of the last one; never 0 in one. */
    struct list prepared;        /* Edits of the record at hand. */
    int64_t batch_offset;        /* Of the record at hand. */
};

/* image.c */

/* A zeroed object with `extra` bytes behind the struct, or NULL. */
void *image_object_new(struct image *image, enum image_kind kind, size_t size, size_t extra);
void image_object_free(struct image *image, void *pointer);

/* Note that `now` shall stand where `before` does; takes `now`, also on failure. False: no memory.
 */
MUST_USE bool image_prepare(struct image *image, uint8_t kind, void *before, void *now);
MUST_USE bool image_prepare_partition(struct image *image,
                                      struct image_topic *topic,
                                      int32_t index,
                                      struct image_partition *now);

/* Load counters for the brokers of a topic that comes with its partitions. */
MUST_USE bool image_reserve_topic_loads(struct image *image, const struct image_topic *topic);

/* Make all prepared edits / forget them. */
void image_make(struct image *image);
void image_forget(struct image *image);

/* Say what is wrong with the record, and return IMAGE_E_FAULT. */
enum image_result image_faulty(struct image *image, const char *fault);

/* image_objects.c: objects from records. NULL: no memory. */
struct register_broker_record;
struct register_controller_record;
struct partition_record;
struct partition_change_record;
struct broker_registration_change_record;

struct image_feature *image_feature_new(struct image *image, struct view name, int16_t level);
struct image_node *image_broker_new(struct image *image,
                                    const struct register_broker_record *record,
                                    int64_t offset);
struct image_node *image_controller_new(struct image *image,
                                        const struct register_controller_record *record,
                                        int64_t offset);
struct image_node *image_broker_changed(struct image *image,
                                        const struct image_node *before,
                                        const struct broker_registration_change_record *record);
struct image_topic *image_topic_new(struct image *image, struct view name, struct uuid id);
struct image_partition *image_partition_new(struct image *image,
                                            const struct partition_record *record);
struct image_partition *image_partition_changed(struct image *image,
                                                const struct image_partition *before,
                                                const struct partition_change_record *record);
struct image_partition *image_partition_without_elr(struct image *image,
                                                    const struct image_partition *before);
struct image_configs *image_configs_changed(struct image *image,
                                            const struct image_configs *before,
                                            int8_t type,
                                            struct view resource,
                                            const struct image_config *change);
struct image_raw *image_raw_new(struct image *image,
                                enum image_kind kind,
                                struct view key,
                                const struct step_record *record);

/* Key of a resource's configs: a byte of type, then the name. `key` holds 1 + name.size bytes. */
struct view image_configs_key(uint8_t *key, int8_t type, struct view resource);

/* Where an object stands, if that is not in it. */
struct image_place {
    const struct image_topic *topic; /* Of a partition. */
    int32_t partition;
    uint32_t item; /* Of configs: which one. */
};

/* image_records.c: the record that makes this object (or one item of it), in the arena, in the
 * version that a metadata.version has it. False: no memory. */
MUST_USE bool image_record_of(int16_t metadata_version,
                              const struct image_object *object,
                              const struct image_place *place,
                              struct arena *arena,
                              struct step_record *out);

/* image_freeze.c: `before` is about to leave its slot (`topic` and `partition` as in an edit). */
void image_freeze_leaves(struct image_freeze *freeze,
                         struct image_object *before,
                         struct image_topic *topic,
                         int32_t partition);
