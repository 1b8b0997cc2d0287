/* image.h - the metadata image: what the records of __cluster_metadata add up to.
 *
 * image_apply() is the only function that changes it, one record at a time, in the order of the
 * log. Two kinds of owners have one each: the controller part (core/cluster.h), whose image runs
 * ahead of the high watermark and can be played back, and every broker part (one per shard), whose
 * image follows the committed log and is what clients are told. A read that Kafka answers from
 * committed state asks a follower's image.
 *
 * Everything in it is an immutable object in a slot: a change puts another object there. So a
 * pointer that a query returned shows what held when it was asked, and is good until the next
 * apply, undo, commit or free of the image. Between two of these, queries repeat exactly.
 *
 * Inside a metadata transaction (Begin ... End) records are held back and applied at its end, or
 * dropped by an Abort: nobody sees half of one.
 *
 * Pure. Memory: the struct mem of image_new(). Thread: one owner; others build their own image from
 * the same records. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "core/step.h"
#include "core/undo.h"

struct image;

enum image_kind {
    IMAGE_FEATURE,
    IMAGE_BROKER,
    IMAGE_CONTROLLER,
    IMAGE_TOPIC,
    IMAGE_PARTITION,
    IMAGE_CONFIGS,      /* All overrides of one resource. */
    IMAGE_QUOTA,        /* These five are kept as their records (struct image_raw). */
    IMAGE_PRODUCER_IDS, /* At most one. */
    IMAGE_ACL,
    IMAGE_SCRAM,
    IMAGE_TOKEN,
    IMAGE_KINDS
};

/* The head of every object. */
struct image_object {
    uint32_t size_bytes;
    uint32_t frozen; /* The last freeze that it need not be written for. */
    uint8_t kind;    /* enum image_kind */
};

/* The second member of every object but a partition: its place among those of its kind. */
struct image_slot {
    struct map_node node; /* By the kind's key. */
    struct list link;     /* In the order in which they came. */
};

struct image_feature {
    struct image_object object;
    struct image_slot slot;
    struct view name;
    int16_t level; /* Never 0: that removes it. */
};

struct image_endpoint {
    struct view name; /* Of the listener. */
    struct view host;
    uint16_t port;
    int16_t security_protocol; /* 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL */
};

struct image_range {
    struct view name; /* Of a feature. */
    int16_t min;
    int16_t max;
};

/* A registered broker or controller. */
struct image_node {
    struct image_object object;
    struct image_slot slot;
    int32_t id;
    bool fenced;                 /* Brokers only, to the end of the struct. */
    bool in_controlled_shutdown; /* Cleared by a new incarnation only. */
    bool cordoned_known;         /* False: no heartbeat has told yet. */
    struct uuid incarnation;
    int64_t epoch;           /* -1 of a controller. */
    int64_t register_offset; /* Of its newest RegisterBrokerRecord; the broker has caught up when it
                                has applied this offset. */
    struct view rack;        /* Null: none. */
    const struct image_endpoint *endpoints;
    const struct image_range *features;
    const struct uuid *directories; /* Online ones; empty below metadata.version 17. */
    const struct uuid *cordoned;
    uint32_t endpoint_count;
    uint32_t feature_count;
    uint32_t directory_count;
    uint32_t cordoned_count;
};

/* Broker ids of a partition. */
struct image_ids {
    const int32_t *items;
    uint32_t count;
};

enum image_recovery { IMAGE_RECOVERED = 0, IMAGE_RECOVERING = 1 };

#define IMAGE_NO_LEADER        (-1)
#define IMAGE_LEADER_UNCHANGED (-2) /* In a PartitionChangeRecord. */

/* The lists of a partition, in the order in which they lie in `ids`. */
enum image_list {
    IMAGE_REPLICAS,
    IMAGE_ISR,
    IMAGE_ADDING,
    IMAGE_REMOVING,
    IMAGE_ELR,
    IMAGE_LAST_KNOWN_ELR,
    IMAGE_LISTS
};

struct image_partition {
    struct image_object object;
    int32_t leader; /* IMAGE_NO_LEADER */
    int32_t leader_epoch;
    int32_t partition_epoch;
    uint16_t counts[IMAGE_LISTS];
    int8_t recovery;      /* enum image_recovery */
    bool has_directories; /* One for each replica, behind the ids. */
    int32_t ids[];
};

/* One of a partition's lists; empty if it has none. */
static inline struct image_ids image_list(const struct image_partition *partition,
                                          enum image_list list)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < (uint32_t)list; i++)
        at += partition->counts[i];
    return (struct image_ids){partition->ids + at,
                              list == IMAGE_LISTS ? 0 : partition->counts[list]};
}

/* The directories of the replicas, in the order of IMAGE_REPLICAS; only if has_directories. */
static inline const struct uuid *image_directories(const struct image_partition *partition)
{
    assert(partition->has_directories);
    struct image_ids last = image_list(partition, IMAGE_LISTS);
    return (const struct uuid *)(const void *)last.items;
}

/* The directory of the replica with this index; MIGRATING if the log does not tell. */
struct uuid image_directory(const struct image_partition *partition, uint32_t replica);

bool image_ids_have(struct image_ids ids, int32_t id);

struct image_topic {
    struct image_object object;
    struct image_slot slot; /* By name. */
    struct map_node by_id;
    struct view name;
    struct uuid id;
    const struct image_partition **partitions; /* By index; NULL where the log has none yet. */
    int32_t partition_count;
    uint32_t partition_capacity;
};

struct image_config {
    struct view name;
    struct view value;
};

/* ConfigResource types. */
enum image_resource {
    IMAGE_RESOURCE_TOPIC = 2,
    IMAGE_RESOURCE_BROKER = 4,
    IMAGE_RESOURCE_BROKER_LOGGER = 8,
    IMAGE_RESOURCE_CLIENT_METRICS = 16,
    IMAGE_RESOURCE_GROUP = 32
};

struct image_configs {
    struct image_object object;
    struct image_slot slot;
    int8_t type; /* enum image_resource */
    struct view resource;
    uint32_t count;                   /* At least 1. */
    const struct image_config *items; /* Sorted by name. */
};

/* A quota value, an ACL, a SCRAM credential, a token, the producer ids: the record that set it, to
 * be read with step_decode(). */
struct image_raw {
    struct image_object object;
    struct image_slot slot;
    struct view record;
};

/* ---- life ------------------------------------------------------------------------------------ */

/* An empty image, or NULL: no memory. `seed` seeds its hash maps and so the order of iteration. */
MUST_USE struct image *image_new(struct mem *mem, uint64_t seed);

/* Returns NULL; of NULL, nothing happens. */
struct image *image_free(struct image *image);

enum image_result {
    IMAGE_OK = 0,
    IMAGE_E_FAULT,  /* The record cannot follow what is there (an unknown partition, a wrong broker
                       epoch, a feature level that this build does not know, ...): the log is not
                       one that a controller wrote. Stop; image_fault() says what. */
    IMAGE_E_MEMORY, /* The node's memory is exhausted; the image is as before. Try again. */
};

/* Apply one metadata record; control records are not given to it. Anything it keeps is copied.
 *
 * `offset` is the record's own, `batch_offset` the base offset of its batch. With undo on, the
 * change is noted under `batch_offset`. Cost: O(size of the changed object). */
MUST_USE enum image_result image_apply(struct image *image,
                                       const struct step_record *record,
                                       int64_t offset,
                                       int64_t batch_offset);

/* What the last IMAGE_E_FAULT was about: constant text. */
const char *image_fault(const struct image *image);

/* Keep undo entries from now on: the controller's image until they are committed, a follower's
 * within the batch that is being applied. A new image keeps none. */
void image_keep_undo(struct image *image);

/* Batches with a base offset below `offset` are committed / those at or above it are lost. */
void image_commit(struct image *image, int64_t offset);
void image_undo(struct image *image, int64_t offset);

/* Is a metadata transaction open? Its first offset, or -1. A follower publishes the offset before
 * it, whatever it has read beyond. */
int64_t image_transaction(const struct image *image);

/* ---- being told ------------------------------------------------------------------------------ */

/* One slot's change: `before` or `now` is NULL where there was or is nothing. For a partition,
 * `topic` is its topic and `partition` its index. A removed topic tells its partitions and its
 * configs first. Both objects live until the callback returns. */
struct image_change {
    enum image_kind kind;
    const struct image_object *before;
    const struct image_object *now;
    const struct image_topic *topic;
    int32_t partition;
};

struct image_watch {
    struct list link;
    void (*changed)(struct image_watch *watch, const struct image_change *change);
};

/* Be told of every change, in order, from inside image_apply(), image_undo() and
 * image_become(), after it was made. The watch must not change the image. */
void image_watch_add(struct image *image, struct image_watch *watch);
void image_watch_remove(struct image *image, struct image_watch *watch);

/* ---- snapshots ------------------------------------------------------------------------------- */

/* A freeze: the records that make the image as it was when the freeze began, a slice at a time,
 * while the image goes on changing. What changes before its slice has come is written as it was
 * first, out of its turn, so that no copy of the image is kept and no slice is long. */
struct image_freeze;

/* What a freeze writes. The record lives until `each` returns. False: the freeze has failed. */
struct image_writer {
    bool (*each)(void *context, const struct step_record *record);
    void *context;
};

enum image_freeze_result {
    IMAGE_FREEZE_DONE, /* Everything is written. */
    IMAGE_FREEZE_MORE,
    IMAGE_FREEZE_FAILED, /* No memory, or `each` said no: end it. */
};

/* Freeze the image, which has no open transaction and no other freeze; its features are written at
 * once (metadata.version first, the others by name). From then on `each` is called from slices and
 * from inside image_apply(). NULL: no memory, or `each` said no. Record versions are those of the
 * metadata.version that holds now. Cost: O(features). */
MUST_USE struct image_freeze *image_freeze_begin(struct image *image, struct image_writer writer);

/* Look at the next `objects` objects at most and write those that have not been: brokers,
 * controllers, topics each followed by its partitions, configs, quotas, producer ids, ACLs, SCRAM,
 * tokens; each kind in the order in which its objects came. The settings of one resource are one
 * object. */
MUST_USE enum image_freeze_result image_freeze_slice(struct image_freeze *freeze, uint32_t objects);

/* End a freeze, finished or not. Returns NULL; of NULL, nothing happens. */
struct image_freeze *image_freeze_end(struct image_freeze *freeze);

/* Take over the content of `other` (a freshly loaded snapshot): watches are told of what differs.
 * Only between images without undo and with the same struct mem; `other` is only good to be freed
 * afterwards. False: no memory; part of it was taken over, load anew. Cost: O(both). */
MUST_USE bool image_become(struct image *image, struct image *other);

/* Same content? For tests and checkers. O(both). */
bool image_equal(const struct image *a, const struct image *b);

/* ---- queries --------------------------------------------------------------------------------- */

/* A finalized feature's level; 0: absent. kraft.version is not in the image. */
int16_t image_feature_level(const struct image *image, struct view name);

/* The level of metadata.version; 0: unknown, the log has none yet. O(1). */
int16_t image_metadata_version(const struct image *image);

/* NULL: none. O(1). */
const struct image_node *image_broker(const struct image *image, int32_t id);
const struct image_node *image_controller(const struct image *image, int32_t id);
const struct image_topic *image_topic(const struct image *image, struct view name);
const struct image_topic *image_topic_by_id(const struct image *image, struct uuid id);
const struct image_partition *image_partition(const struct image_topic *topic, int32_t index);

/* The endpoint of a node for a listener, or NULL. O(listeners). */
const struct image_endpoint *image_endpoint(const struct image_node *node, struct view listener);

/* The overrides of a resource, or NULL; one of them, the null view if it is not set. */
const struct image_configs *image_configs(const struct image *image,
                                          enum image_resource type,
                                          struct view resource);
struct view image_config(const struct image_configs *configs, struct view name);

/* Parts of the entity of one quota record. */
#define IMAGE_QUOTA_PARTS_MAX 4

struct client_quota_record;

/* The quota with the entity and key of this record; *out is NULL if there is none. The order of the
 * parts does not matter; there are 1 .. IMAGE_QUOTA_PARTS_MAX. False: no memory. */
MUST_USE bool image_quota(const struct image *image,
                          const struct client_quota_record *like,
                          const struct image_raw **out);

/* Has the user a SCRAM credential of this mechanism? False: no memory. */
MUST_USE bool image_scram(const struct image *image,
                          int8_t mechanism,
                          struct view user,
                          bool *there);

/* The first producer id that no block holds yet. */
int64_t image_producer_id_next(const struct image *image);

/* Number of objects of a kind (partitions too). O(1). */
uint32_t image_count(const struct image *image, enum image_kind kind);

/* Walk the objects of a kind (not partitions: they are in their topics): the next one, the first
 * for NULL, NULL at the end. Cast to the kind's struct. The order depends on the seed. */
const struct image_object *image_next(const struct image *image,
                                      enum image_kind kind,
                                      const struct image_object *object);

/* All objects of a kind, sorted: nodes by id, others by their key's bytes (topics by name). In the
 * arena; NULL if there is no memory (or, with *count 0, if there are none). O(n log n). */
const struct image_object *const *image_sorted(const struct image *image,
                                               enum image_kind kind,
                                               struct arena *arena,
                                               uint32_t *count);

/* What a broker, registered or not, has to do with partitions. O(1). */
struct image_load {
    uint32_t leader; /* Partitions that it leads, */
    uint32_t isr;    /* in whose ISR it is, */
    uint32_t elr;    /* in whose ELR it is. */
};
struct image_load image_load(const struct image *image, int32_t broker);

/* Partitions without a leader. O(1). */
uint32_t image_leaderless(const struct image *image);

/* Is the broker registered, not fenced and not in controlled shutdown? */
bool image_broker_active(const struct image *image, int32_t id);

/* Is this directory one of the broker's that are online? LOST never is; UNASSIGNED
 * and MIGRATING always are. False if the broker is not registered. */
bool image_directory_online(const struct image *image, int32_t broker, struct uuid directory);

/* Is the directory online in which the broker has its replica? False if it has none. */
bool image_replica_online(const struct image *image,
                          const struct image_partition *partition,
                          int32_t broker);

/* Reserved directory ids. */
extern const struct uuid image_directory_migrating;  /* (0,0) */
extern const struct uuid image_directory_unassigned; /* (0,1) */
extern const struct uuid image_directory_lost;       /* (0,2) */

/* One of the hundred ids (0,0) to (0,99) that no directory or topic may have. */
bool image_uuid_reserved(struct uuid id);
