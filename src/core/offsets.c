/* offsets.c - see offsets.h.
 *
 * A group's offsets are in a map by partition and topic, and in a list for each topic. Those of
 * open transactions lie apart, in the order of their records, until their marker comes; each is
 * also in the set of its partition and in that of its producer, so that neither who asks for a
 * partition nor a marker looks at all of them. A set ends with its last offset. */
#include "core/offsets.h"

#include "base/bytes.h"
#include "core/consumer_group_internal.h"
#include "gen/offset_commit_key.h"
#include "gen/offset_commit_request.h"
#include "gen/offset_commit_value.h"

#define OFFSET_RECORD_VERSION        4
#define OFFSET_RECORD_VERSION_EXPIRY 1 /* The only one that carries an explicit expiry. */
#define OFFSET_KEY_BYTES             (4u + INT16_MAX)

struct offset_topic {
    struct map_node by_name;
    struct list link;    /* In the group. */
    struct list offsets; /* Of struct offset. */
    uint32_t count;
    struct view name; /* Behind the struct. */
};

struct offset_value {
    int64_t offset;
    int64_t commit_ms;
    int64_t expire_ms;     /* -1: by the setting. */
    int64_t record_offset; /* Of the record that says so. */
    int32_t leader_epoch;
    struct uuid topic_id; /* Zero: unknown. */
    struct view metadata; /* A block of its own. */
};

struct offset {
    struct map_node node; /* Key: partition and topic, behind the struct. */
    struct list link;     /* In its topic. */
    struct offset_topic *topic;
    int32_t partition;
    struct offset_value value;
};

/* The offsets of one producer, or of the partitions that have one hash (most often one). */
struct pending_set {
    struct map_node node; /* Key: the bytes of `key`. */
    uint64_t key;
    struct map *map;
    struct list offsets; /* In the order of their records. */
};

struct pending_place {
    struct list link;
    struct pending_set *set; /* NULL: in none. */
};

struct pending_offset {
    struct list link; /* In groups->pending_offsets. */
    struct pending_place of_partition, of_producer;
    int64_t producer_id;
    int32_t partition;
    struct offset_value value;
    struct view group, topic; /* Behind the struct. */
};

/* ---- where they are -------------------------------------------------------------------------- */

/* The map's key of a partition, in `bytes`; null: a name that no topic can have. */
static struct view offset_key(uint8_t bytes[OFFSET_KEY_BYTES], struct view topic, int32_t partition)
{
    if (topic.null || topic.size > INT16_MAX) return VIEW_NULL;
    store_be32(bytes, (uint32_t)partition);
    if (topic.size > 0) memcpy(bytes + 4, topic.data, topic.size);
    return view_of(bytes, 4 + topic.size);
}

static struct offset *offset_find(const struct group *group, struct view topic, int32_t partition)
{
    uint8_t bytes[OFFSET_KEY_BYTES];
    struct view key = offset_key(bytes, topic, partition);
    struct map_node *node = key.null ? NULL : map_find(&group->offsets, key);
    return node == NULL ? NULL : container_of(node, struct offset, node);
}

static struct offset_topic *topic_find(const struct group *group, struct view name)
{
    struct map_node *node = map_find(&group->topics, name);
    return node == NULL ? NULL : container_of(node, struct offset_topic, by_name);
}

static struct offset_topic *topic_make(struct group *group, struct view name)
{
    struct offset_topic *topic = topic_find(group, name);
    if (topic != NULL) return topic;
    topic = mem_get(group->groups->mem, sizeof(*topic) + name.size);
    if (topic == NULL) return NULL;
    if (name.size > 0) memcpy(topic + 1, name.data, name.size);
    topic->name = view_of(topic + 1, name.size);
    topic->by_name.key = topic->name;
    list_init(&topic->offsets);
    if (!map_insert(&group->topics, &topic->by_name))
        return mem_put(group->groups->mem, topic, sizeof(*topic) + name.size);
    list_append(&group->topic_list, &topic->link);
    return topic;
}

static void topic_drop_if_empty(struct group *group, struct offset_topic *topic)
{
    if (topic->count > 0) return;
    map_remove(&group->topics, &topic->by_name);
    list_remove(&topic->link);
    mem_put(group->groups->mem, topic, sizeof(*topic) + topic->name.size);
}

static struct offset *offset_make(struct group *group, struct view name, int32_t partition)
{
    struct offset *offset = offset_find(group, name, partition);
    if (offset != NULL) return offset;
    struct offset_topic *topic = topic_make(group, name);
    if (topic == NULL) return NULL;
    size_t size = sizeof(*offset) + 4 + name.size;
    offset = mem_get(group->groups->mem, size);
    if (offset != NULL) {
        offset->node.key = offset_key((uint8_t *)(offset + 1), name, partition);
        offset->partition = partition;
        offset->topic = topic;
        offset->value.metadata = VIEW_NULL;
        if (!map_insert(&group->offsets, &offset->node))
            offset = mem_put(group->groups->mem, offset, size);
    }
    if (offset == NULL) {
        topic_drop_if_empty(group, topic);
        return NULL;
    }
    list_append(&topic->offsets, &offset->link);
    topic->count++;
    return offset;
}

static void offset_drop(struct group *group, struct offset *offset)
{
    struct offset_topic *topic = offset->topic;
    map_remove(&group->offsets, &offset->node);
    list_remove(&offset->link);
    topic->count--;
    group_text_free(group->groups->mem, &offset->value.metadata);
    mem_put(group->groups->mem, offset, sizeof(*offset) + 4 + topic->name.size);
    topic_drop_if_empty(group, topic);
}

void offsets_free(struct group *group)
{
    for (struct map_node *node; (node = map_next(&group->offsets, NULL)) != NULL;)
        offset_drop(group, container_of(node, struct offset, node));
}

/* ---- open transactions ----------------------------------------------------------------------- */

static struct pending_set *pending_set(const struct map *map, uint64_t key)
{
    struct map_node *node = map_find(map, view_of(&key, sizeof(key)));
    return node == NULL ? NULL : container_of(node, struct pending_set, node);
}

static bool place_take(struct groups *groups,
                       struct map *map,
                       uint64_t key,
                       struct pending_place *place)
{
    struct pending_set *set = pending_set(map, key);
    assert(place->set == NULL);
    if (set == NULL) {
        set = mem_get(groups->mem, sizeof(*set));
        if (set == NULL) return false;
        set->key = key;
        set->map = map;
        set->node.key = view_of(&set->key, sizeof(set->key));
        list_init(&set->offsets);
        if (!map_insert(map, &set->node)) {
            mem_put(groups->mem, set, sizeof(*set));
            return false;
        }
    }
    list_append(&set->offsets, &place->link);
    place->set = set;
    return true;
}

static void place_leave(struct groups *groups, struct pending_place *place)
{
    struct pending_set *set = place->set;
    if (set == NULL) return;
    place->set = NULL;
    list_remove(&place->link);
    if (!list_empty(&set->offsets)) return;
    map_remove(set->map, &set->node);
    mem_put(groups->mem, set, sizeof(*set));
}

static void pending_drop(struct groups *groups, struct pending_offset *pending)
{
    place_leave(groups, &pending->of_partition);
    place_leave(groups, &pending->of_producer);
    list_remove(&pending->link);
    group_text_free(groups->mem, &pending->value.metadata);
    mem_put(groups->mem, pending, sizeof(*pending) + pending->group.size + pending->topic.size);
}

void offsets_pending_free(struct groups *groups)
{
    list_foreach (link, &groups->pending_offsets)
        pending_drop(groups, container_of(link, struct pending_offset, link));
    assert(groups->pending_by_partition.count == 0);
    assert(groups->pending_by_producer.count == 0);
    map_free(&groups->pending_by_partition);
    map_free(&groups->pending_by_producer);
}

static bool pending_is(const struct pending_offset *pending, const struct offset_commit_key *key)
{
    return pending->partition == key->partition && view_equal(pending->group, key->group) &&
           view_equal(pending->topic, key->topic);
}

static uint64_t pending_hash(const struct groups *groups, const struct offset_commit_key *key)
{
    uint64_t of_group = map_hash(groups->seed, key->group);
    return map_hash(of_group + (uint32_t)key->partition, key->topic);
}

/* The oldest that an open transaction holds for this partition, or NULL. O(1) whatever else is
 * held. */
static struct pending_offset *pending_find(const struct groups *groups,
                                           const struct offset_commit_key *key)
{
    if (list_empty(&groups->pending_offsets)) return NULL;
    struct pending_set *set = pending_set(&groups->pending_by_partition, pending_hash(groups, key));
    if (set == NULL) return NULL;
    list_foreach (link, &set->offsets) {
        struct pending_offset *pending =
            container_of(link, struct pending_offset, of_partition.link);
        if (pending_is(pending, key)) return pending;
    }
    return NULL;
}

static bool pending_any(const struct groups *groups, const struct offset_commit_key *key)
{
    return pending_find(groups, key) != NULL;
}

/* The oldest that this producer's open transaction holds, or NULL. */
static struct pending_offset *pending_of_producer(const struct groups *groups, int64_t producer_id)
{
    struct pending_set *set = pending_set(&groups->pending_by_producer, (uint64_t)producer_id);
    if (set == NULL) return NULL;
    assert(!list_empty(&set->offsets));
    return container_of(set->offsets.next, struct pending_offset, of_producer.link);
}

struct offsets_open offsets_open(const struct groups *groups, struct view group_id)
{
    struct offsets_open out = {.count = 0};
    list_foreach (link, &groups->pending_offsets) {
        const struct pending_offset *pending = container_of(link, struct pending_offset, link);
        if (!group_id.null && !view_equal(pending->group, group_id)) continue;
        if (out.count++ > 0) continue;
        out.producer_id = pending->producer_id;
        out.record_offset = pending->value.record_offset;
    }
    return out;
}

static void pending_forget(struct groups *groups, const struct offset_commit_key *key)
{
    struct pending_offset *pending;
    while ((pending = pending_find(groups, key)) != NULL)
        pending_drop(groups, pending);
}

/* ---- records in ------------------------------------------------------------------------------ */

static bool value_take(struct groups *groups,
                       struct offset_value *out,
                       const struct offset_commit_value *in,
                       int64_t record_offset)
{
    if (!group_text_set(groups->mem, &out->metadata, in->metadata)) return false;
    out->offset = in->offset;
    out->leader_epoch = in->leader_epoch;
    out->commit_ms = in->commit_timestamp;
    out->expire_ms = in->expire_timestamp;
    out->topic_id = in->topic_id;
    out->record_offset = record_offset;
    return true;
}

static enum groups_result pending_put(struct groups *groups,
                                      const struct offset_commit_key *key,
                                      const struct offset_commit_value *in,
                                      struct groups_place place)
{
    size_t names = (size_t)key->group.size + key->topic.size;
    struct pending_offset *pending = mem_get(groups->mem, sizeof(*pending) + names);
    if (pending == NULL) return GROUPS_E_MEMORY;
    uint8_t *at = (uint8_t *)(pending + 1);
    pending->producer_id = place.producer_id;
    pending->partition = key->partition;
    pending->value.metadata = VIEW_NULL;
    if (key->group.size > 0) memcpy(at, key->group.data, key->group.size);
    pending->group = view_of(at, key->group.size);
    if (key->topic.size > 0) memcpy(at + key->group.size, key->topic.data, key->topic.size);
    pending->topic = view_of(at + key->group.size, key->topic.size);
    list_init(&pending->link);
    if (!value_take(groups, &pending->value, in, place.offset) ||
        !place_take(groups, &groups->pending_by_partition, pending_hash(groups, key),
                    &pending->of_partition) ||
        !place_take(groups, &groups->pending_by_producer, (uint64_t)place.producer_id,
                    &pending->of_producer)) {
        pending_drop(groups, pending);
        return GROUPS_E_MEMORY;
    }
    list_append(&groups->pending_offsets, &pending->link);
    return GROUPS_OK;
}

enum groups_result offsets_apply(struct groups *groups,
                                 const void *key_struct,
                                 const void *value_struct,
                                 struct groups_place place)
{
    const struct offset_commit_key *key = key_struct;
    const struct offset_commit_value *in = value_struct;
    struct group *group = groups_find(groups, key->group);
    if (in == NULL) {
        struct offset *offset =
            group == NULL ? NULL : offset_find(group, key->topic, key->partition);
        if (offset != NULL) offset_drop(group, offset);
        pending_forget(groups, key);
        return GROUPS_OK;
    }
    bool fresh = group == NULL;
    if (fresh) group = group_new(groups, key->group); /* A simple group: nobody but its offsets. */
    if (group == NULL) return GROUPS_E_MEMORY;
    if (place.producer_id >= 0) return pending_put(groups, key, in, place);
    struct offset *offset = offset_make(group, key->topic, key->partition);
    if (offset != NULL && value_take(groups, &offset->value, in, place.offset)) return GROUPS_OK;
    return GROUPS_E_MEMORY; /* Whoever asks throws all of it away. */
}

/* A transaction has ended: of two offsets for a partition the one that was written later counts. */
enum groups_result offsets_marker(struct groups *groups, int64_t producer_id, bool committed)
{
    struct pending_offset *pending;
    while ((pending = pending_of_producer(groups, producer_id)) != NULL) {
        struct group *group = groups_find(groups, pending->group);
        struct offset *offset = NULL;
        bool had = group != NULL && offset_find(group, pending->topic, pending->partition) != NULL;
        if (committed && group != NULL) {
            offset = offset_make(group, pending->topic, pending->partition);
            if (offset == NULL) return GROUPS_E_MEMORY;
        }
        if (offset != NULL &&
            (!had || pending->value.record_offset > offset->value.record_offset)) {
            group_text_free(groups->mem, &offset->value.metadata);
            offset->value = pending->value;
            pending->value.metadata = VIEW_NULL; /* It has moved. */
        }
        pending_drop(groups, pending);
    }
    return GROUPS_OK;
}

/* ---- records out ----------------------------------------------------------------------------- */

static bool record_put(struct step *step,
                       const struct offset_commit_key *key,
                       const struct offset_commit_value *value)
{
    struct step_part k = {
        .message = &wire_offset_commit_key,
        .value = key,
        .version = wire_offset_commit_key.version_max,
    };
    struct step_part v = {.bytes = VIEW_NULL};
    if (value != NULL)
        v = (struct step_part){
            .message = &wire_offset_commit_value,
            .value = value,
            .version =
                value->expire_timestamp >= 0 ? OFFSET_RECORD_VERSION_EXPIRY : OFFSET_RECORD_VERSION,
        };
    /* Encoded at once: what they point to may go before the step is over. */
    k = (struct step_part){.bytes = step_encode(step->arena, &k)};
    if (value != NULL) v = (struct step_part){.bytes = step_encode(step->arena, &v)};
    if (k.bytes.null || (value != NULL && v.bytes.null)) return false;
    return step_add_keyed(step, k, v);
}

static bool tombstone_put(struct step *step,
                          struct view group,
                          struct view topic,
                          int32_t partition)
{
    struct offset_commit_key key = {.group = group, .topic = topic, .partition = partition};
    return record_put(step, &key, NULL);
}

enum step_result offsets_tombstones(struct group *group, struct step *step)
{
    list_foreach (at, &group->topic_list) {
        struct offset_topic *topic = container_of(at, struct offset_topic, link);
        list_foreach (link, &topic->offsets) {
            const struct offset *offset = container_of(link, struct offset, link);
            if (step_room(step) == 0) return STEP_MORE;
            if (!tombstone_put(step, group->id, topic->name, offset->partition))
                return STEP_E_MEMORY;
        }
    }
    list_foreach (link, &group->groups->pending_offsets) {
        const struct pending_offset *pending = container_of(link, struct pending_offset, link);
        if (!view_equal(pending->group, group->id)) continue;
        if (step_room(step) == 0) return STEP_MORE;
        if (!tombstone_put(step, group->id, pending->topic, pending->partition))
            return STEP_E_MEMORY;
    }
    return STEP_DONE;
}

/* ---- commit ---------------------------------------------------------------------------------- */

/* A member's epoch is not the one that it names. */
static enum kafka_error member_stale(const struct consumer_member *member)
{
    return member->said.classic ? KAFKA_ILLEGAL_GENERATION : KAFKA_STALE_MEMBER_EPOCH;
}

static enum kafka_error commit_member_check(struct group *group, const struct offsets_commit *in)
{
    if (group->state == GROUP_DEAD) return KAFKA_COORDINATOR_NOT_AVAILABLE;
    if (in->generation < 0 && group->state == GROUP_EMPTY) return KAFKA_NONE;
    if (in->generation < 0 && in->member_id.size == 0 && in->instance_id.null)
        return KAFKA_UNKNOWN_MEMBER_ID;
    struct member *member;
    enum kafka_error error = group_validate(group, in->member_id, in->instance_id, &member);
    if (error != KAFKA_NONE) return error;
    if (in->generation != group->generation) return KAFKA_ILLEGAL_GENERATION;
    if (group->state == GROUP_COMPLETING) return KAFKA_REBALANCE_IN_PROGRESS;
    /* A commit is a sign of life too. */
    wheel_defer(&group->groups->wheel, &member->session.entry, in->arrived_ms + member->session_ms);
    return KAFKA_NONE;
}

/* A member of a consumer group may be behind: then each partition tells (offsets_commit_put). */
static enum kafka_error commit_consumer_check(const struct group *group,
                                              const struct step *step,
                                              const struct offsets_commit *in)
{
    const struct consumer_member *member;
    if (group->state == GROUP_DEAD) return KAFKA_COORDINATOR_NOT_AVAILABLE;
    if (in->generation < 0 && group->consumer->members.count == 0) return KAFKA_NONE;
    member = consumer_group_member(group->consumer, in->member_id);
    if (member == NULL) return KAFKA_UNKNOWN_MEMBER_ID;
    if (!member->said.classic && step->caller.version < 9) return KAFKA_UNSUPPORTED_VERSION;
    return in->generation > member->now.epoch ? member_stale(member) : KAFKA_NONE;
}

/* Who commits under an epoch that has passed may do so for what it has held since then (KIP-1251).
 */
static enum kafka_error commit_epoch_check(const struct group *group,
                                           const struct offsets_commit *commit,
                                           const struct offsets_put *put)
{
    const struct consumer_member *member;
    const struct partition_item *held;
    if (group == NULL || group->consumer == NULL) return KAFKA_NONE;
    member = consumer_group_member(group->consumer, commit->member_id);
    if (member == NULL || commit->generation >= member->now.epoch) return KAFKA_NONE;
    int32_t partition = put->in->partition_index;
    held = partition_set_find(&member->now.assigned, put->topic_id, partition);
    if (held == NULL) held = partition_set_find(&member->now.pending, put->topic_id, partition);
    return held != NULL && commit->generation >= held->epoch ? KAFKA_NONE : member_stale(member);
}

enum kafka_error offsets_commit_check(struct groups *groups,
                                      const struct step *step,
                                      const struct offsets_commit *in)
{
    struct group *group = groups_find(groups, in->group_id);
    groups_begin(groups, step);
    if (in->group_id.null) return KAFKA_INVALID_GROUP_ID;
    if (group != NULL && group->consumer != NULL) return commit_consumer_check(group, step, in);
    if (group != NULL) return commit_member_check(group, in);
    if (in->generation < 0) return KAFKA_NONE; /* A simple group begins with its first offset. */
    return step->caller.version >= 9 ? KAFKA_GROUP_ID_NOT_FOUND : KAFKA_ILLEGAL_GENERATION;
}

/* As Kafka counts: characters beyond the first plane are two. */
static uint32_t utf16_units(struct view text)
{
    uint32_t units = 0;
    for (uint32_t i = 0; i < text.size; i++) {
        units += (text.data[i] & 0xc0) != 0x80;
        units += text.data[i] >= 0xf0;
    }
    return units;
}

enum kafka_error offsets_commit_put(const struct groups *groups,
                                    struct step *step,
                                    const struct offsets_commit *commit,
                                    const struct offsets_put *put)
{
    struct offset_commit_key key = {
        .group = commit->group_id, .topic = put->topic, .partition = put->in->partition_index};
    struct offset_commit_value value;
    struct view metadata = put->in->committed_metadata;
    if (!metadata.null && utf16_units(metadata) > groups->options.metadata_max_bytes)
        return KAFKA_OFFSET_METADATA_TOO_LARGE;
    enum kafka_error stale = commit_epoch_check(groups_find(groups, commit->group_id), commit, put);
    if (stale != KAFKA_NONE) return stale;
    wire_defaults(&wire_offset_commit_value, &value);
    value.offset = put->in->committed_offset;
    value.leader_epoch = put->in->committed_leader_epoch;
    value.metadata = metadata.null ? VIEW_EMPTY : metadata;
    value.commit_timestamp = step->wall_ms;
    value.expire_timestamp = commit->retention_ms < 0 ? -1 : step->wall_ms + commit->retention_ms;
    value.topic_id = put->topic_id;
    if (step_room(step) == 0) return KAFKA_UNKNOWN_SERVER_ERROR;
    return record_put(step, &key, &value) ? KAFKA_NONE : KAFKA_UNKNOWN_SERVER_ERROR;
}

/* ---- reads ----------------------------------------------------------------------------------- */

enum kafka_error offsets_fetch_check(const struct groups *groups,
                                     struct view group_id,
                                     struct view member_id,
                                     int32_t epoch)
{
    const struct group *group = groups_find(groups, group_id);
    if (group == NULL || group->consumer == NULL) return KAFKA_NONE;
    if (member_id.null && epoch < 0) return KAFKA_NONE;
    const struct consumer_member *member =
        member_id.null ? NULL : consumer_group_member(group->consumer, member_id);
    if (member == NULL) return KAFKA_UNKNOWN_MEMBER_ID;
    return epoch == member->now.epoch ? KAFKA_NONE : member_stale(member);
}

struct offsets_found offsets_find(const struct groups *groups,
                                  struct view group_id,
                                  struct view topic,
                                  int32_t partition,
                                  struct uuid topic_id)
{
    struct offsets_found out = {.offset = -1, .leader_epoch = -1, .metadata = VIEW_EMPTY};
    const struct group *group = groups_find(groups, group_id);
    struct offset_commit_key key = {.group = group_id, .topic = topic, .partition = partition};
    const struct offset *offset = group == NULL ? NULL : offset_find(group, topic, partition);
    out.unstable = pending_any(groups, &key);
    if (offset == NULL) return out;
    bool other = !uuid_is_zero(topic_id) && !uuid_is_zero(offset->value.topic_id) &&
                 !uuid_equal(topic_id, offset->value.topic_id);
    if (other) return out; /* The topic was made anew. */
    out.offset = offset->value.offset;
    out.leader_epoch = offset->value.leader_epoch;
    if (!offset->value.metadata.null) out.metadata = offset->value.metadata;
    return out;
}

struct view offsets_topic_next(const struct groups *groups,
                               struct view group_id,
                               struct view topic,
                               uint32_t *count)
{
    struct group *group = groups_find(groups, group_id);
    if (group == NULL) return VIEW_NULL;
    const struct offset_topic *at = topic.null ? NULL : topic_find(group, topic);
    struct list *next = at == NULL ? group->topic_list.next : at->link.next;
    if (next == &group->topic_list) return VIEW_NULL;
    at = container_of(next, struct offset_topic, link);
    *count = at->count;
    return at->name;
}

void offsets_partitions(const struct groups *groups,
                        struct view group_id,
                        struct view topic,
                        int32_t *out)
{
    const struct offset_topic *at = topic_find(groups_find(groups, group_id), topic);
    list_foreach (link, &at->offsets)
        *out++ = container_of(link, struct offset, link)->partition;
}

/* ---- deletion -------------------------------------------------------------------------------- */

enum kafka_error offsets_delete_check(const struct groups *groups, struct view group_id)
{
    const struct group *group = groups_find(groups, group_id);
    if (group == NULL || group->state == GROUP_DEAD) return KAFKA_GROUP_ID_NOT_FOUND;
    if (group->state != GROUP_EMPTY && !view_is(group->protocol_type, "consumer"))
        return KAFKA_NON_EMPTY_GROUP;
    return KAFKA_NONE;
}

enum kafka_error offsets_delete_put(const struct groups *groups,
                                    struct step *step,
                                    struct view group_id,
                                    struct view topic,
                                    int32_t partition)
{
    const struct group *group = groups_find(groups, group_id);
    struct offset_commit_key key = {.group = group_id, .topic = topic, .partition = partition};
    assert(group != NULL); /* offsets_delete_check() has found it. */
    if (group_subscribed(group, topic)) return KAFKA_GROUP_SUBSCRIBED_TO_TOPIC;
    if (offset_find(group, topic, partition) == NULL && !pending_any(groups, &key))
        return KAFKA_NONE;
    if (step_room(step) == 0) return KAFKA_UNKNOWN_SERVER_ERROR;
    return record_put(step, &key, NULL) ? KAFKA_NONE : KAFKA_UNKNOWN_SERVER_ERROR;
}

/* ---- expiry ---------------------------------------------------------------------------------- */

/* From when an offset's retention counts; INT64_MAX: nothing of it expires. */
static int64_t expiry_base_ms(const struct group *group, const struct offset *offset)
{
    if (group->protocol_type.null)
        return group->state == GROUP_EMPTY ? offset->value.commit_ms : INT64_MAX;
    if (group->state == GROUP_EMPTY)
        return group->state_wall_ms >= 0 ? group->state_wall_ms : offset->value.commit_ms;
    if (group->state == GROUP_STABLE && view_is(group->protocol_type, "consumer"))
        return offset->value.commit_ms;
    return INT64_MAX;
}

static bool offset_expired(const struct group *group, const struct offset *offset, int64_t wall_ms)
{
    int64_t base_ms = expiry_base_ms(group, offset);
    struct offset_commit_key key = {
        .group = group->id, .topic = offset->topic->name, .partition = offset->partition};
    if (base_ms == INT64_MAX || pending_any(group->groups, &key)) return false;
    if (offset->value.expire_ms >= 0) return wall_ms >= offset->value.expire_ms;
    return wall_ms - base_ms >= group->groups->options.retention_ms;
}

/* Tombstones of one group. `*left`: an offset stays. */
static enum step_result group_expire(struct group *group, struct step *step, bool *left)
{
    *left = false;
    list_foreach (at, &group->topic_list) {
        struct offset_topic *topic = container_of(at, struct offset_topic, link);
        bool subscribed = group_subscribed(group, topic->name);
        list_foreach (link, &topic->offsets) {
            const struct offset *offset = container_of(link, struct offset, link);
            if (subscribed || !offset_expired(group, offset, step->wall_ms)) {
                *left = true;
                continue;
            }
            if (step_room(step) == 0) return STEP_MORE;
            if (!tombstone_put(step, group->id, topic->name, offset->partition))
                return STEP_E_MEMORY;
        }
    }
    return STEP_DONE;
}

enum step_result offsets_expire(struct groups *groups, struct step *step)
{
    groups_begin(groups, step);
    list_foreach (at, &groups->all) {
        struct group *group = container_of(at, struct group, link);
        bool left;
        enum step_result result = group_expire(group, step, &left);
        if (result != STEP_DONE) return result;
        if (left || group->state != GROUP_EMPTY || group->pending.count > 0) continue;
        if (group->consumer != NULL && group->consumer->members.count > 0) continue;
        if (offsets_open(groups, group->id).count > 0) continue;
        result = group_end_put(group, step);
        if (result != STEP_DONE) return result;
    }
    return STEP_DONE;
}

/* Of this very topic, or of one whose id its record does not tell. */
static bool topic_is(const struct offset_value *value, struct uuid topic_id)
{
    return uuid_is_zero(value->topic_id) || uuid_equal(value->topic_id, topic_id);
}

/* What open transactions hold of it; a second tombstone for a partition does no harm. */
static enum step_result pending_topic_deleted(const struct groups *groups,
                                              struct step *step,
                                              struct view topic,
                                              struct uuid topic_id)
{
    list_foreach (link, &groups->pending_offsets) {
        const struct pending_offset *pending = container_of(link, struct pending_offset, link);
        if (!view_equal(pending->topic, topic) || !topic_is(&pending->value, topic_id)) continue;
        if (step_room(step) == 0) return STEP_MORE;
        if (!tombstone_put(step, pending->group, topic, pending->partition)) return STEP_E_MEMORY;
    }
    return STEP_DONE;
}

enum step_result offsets_topic_deleted(struct groups *groups,
                                       struct step *step,
                                       struct view topic,
                                       struct uuid topic_id)
{
    groups_begin(groups, step);
    list_foreach (at, &groups->all) {
        const struct group *group = container_of(at, struct group, link);
        struct offset_topic *found = topic_find(group, topic);
        if (found == NULL) continue;
        list_foreach (link, &found->offsets) {
            const struct offset *offset = container_of(link, struct offset, link);
            if (!topic_is(&offset->value, topic_id)) continue;
            if (step_room(step) == 0) return STEP_MORE;
            if (!tombstone_put(step, group->id, topic, offset->partition)) return STEP_E_MEMORY;
        }
    }
    return pending_topic_deleted(groups, step, topic, topic_id);
}
