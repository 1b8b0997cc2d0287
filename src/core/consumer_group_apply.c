/* consumer_group_apply.c - records of consumer groups into the groups: the only place where their
 * logged state changes, for a live step and for loading alike.
 *
 * A record that cannot follow what is there (a tombstone of a member that still holds something) is
 * a fault: whoever wrote the log was not a group coordinator. */
#include "core/consumer_group_internal.h"

#include "base/bytes.h"
#include "core/image.h"
#include "gen/consumer_group_current_member_assignment_key.h"
#include "gen/consumer_group_current_member_assignment_value.h"
#include "gen/consumer_group_member_metadata_key.h"
#include "gen/consumer_group_member_metadata_value.h"
#include "gen/consumer_group_metadata_key.h"
#include "gen/consumer_group_metadata_value.h"
#include "gen/consumer_group_partition_metadata_key.h"
#include "gen/consumer_group_partition_metadata_value.h"
#include "gen/consumer_group_regular_expression_key.h"
#include "gen/consumer_group_regular_expression_value.h"
#include "gen/consumer_group_target_assignment_member_key.h"
#include "gen/consumer_group_target_assignment_member_value.h"
#include "gen/consumer_group_target_assignment_metadata_key.h"
#include "gen/consumer_group_target_assignment_metadata_value.h"

struct applying {
    struct groups *groups;
    struct arena *arena;
    struct group *group; /* NULL: a tombstone of a group that is not there. */
    const void *key;
    const void *value; /* NULL: a tombstone. */
};

static enum groups_result memory_or_ok(bool done)
{
    return done ? GROUPS_OK : GROUPS_E_MEMORY;
}

/* ---- sets of partitions ---------------------------------------------------------------------- */

static bool partition_fits(int32_t partition)
{
    return partition >= 0 && (uint32_t)partition < IMAGE_PARTITIONS_MAX;
}

typedef struct consumer_group_current_member_assignment_value_topic_partitions current_topic;

static enum groups_result read_current(struct arena *arena,
                                       const current_topic *items,
                                       int32_t count,
                                       int32_t epoch,
                                       struct partition_set *out)
{
    size_t room = 0;
    for (int32_t i = 0; i < count; i++)
        room += (size_t)MAX(items[i].partitions.count, 0);
    if (!partition_set_room(out, arena, room)) return GROUPS_E_MEMORY;
    for (int32_t i = 0; i < count; i++) {
        const current_topic *topic = &items[i];
        bool told = topic->assignment_epochs.count == topic->partitions.count;
        for (int32_t p = 0; p < topic->partitions.count; p++) {
            if (!partition_fits(topic->partitions.items[p])) return GROUPS_E_FAULT;
            out->items[out->count++] = (struct partition_item){
                .topic = topic->topic_id,
                .partition = topic->partitions.items[p],
                .epoch = told ? topic->assignment_epochs.items[p] : MAX(epoch, 0),
            };
        }
    }
    partition_set_sort(out);
    return GROUPS_OK;
}

/* ---- one record each ------------------------------------------------------------------------- */

static enum groups_result apply_group(const struct applying *a)
{
    const struct consumer_group_metadata_value *in = a->value;
    struct consumer_group *group = a->group->consumer;
    if (in == NULL) {
        if (group->members.count > 0 || group->targets.count > 0) return GROUPS_E_FAULT;
        if (group->assignment_epoch != -1) return GROUPS_E_FAULT;
        a->groups->ended = group_hash(a->group->id);
        group_forget(a->group);
        return GROUPS_OK;
    }
    bool grows = group->epoch != in->epoch;
    group->epoch = in->epoch;
    group->hash = in->metadata_hash;
    if (grows)
        group_tell(a->group, &(struct group_telling){.kind = GROUP_EVENT_EPOCH,
                                                     .contact_ms = -1,
                                                     .number = (int32_t)group->members.count});
    return GROUPS_OK;
}

static enum groups_result apply_legacy(const struct applying *a)
{
    a->group->consumer->legacy_metadata = a->value != NULL;
    return GROUPS_OK;
}

static bool said_read(struct arena *arena,
                      const struct consumer_group_member_metadata_value *in,
                      struct consumer_said *out)
{
    *out = (struct consumer_said){
        .instance = in->instance_id,
        .rack = in->rack_id,
        .client_id = in->client_id,
        .client_host = in->client_host,
        .regex = in->subscribed_topic_regex,
        .assignor = in->server_assignor,
        .topics = in->subscribed_topic_names.items,
        .topic_count = (uint32_t)MAX(in->subscribed_topic_names.count, 0),
        .rebalance_ms = in->rebalance_timeout_ms,
    };
    if (in->classic_member_metadata == NULL) return true;
    uint32_t count = (uint32_t)MAX(in->classic_member_metadata->supported_protocols.count, 0);
    struct member_protocol *protocols = arena_get(arena, (count + 1) * sizeof(*protocols));
    if (protocols == NULL) return false;
    for (uint32_t i = 0; i < count; i++) {
        protocols[i].name = in->classic_member_metadata->supported_protocols.items[i].name;
        protocols[i].metadata = in->classic_member_metadata->supported_protocols.items[i].metadata;
    }
    out->classic = true;
    out->session_ms = in->classic_member_metadata->session_timeout_ms;
    out->protocols = protocols;
    out->protocol_count = count;
    return true;
}

static enum groups_result apply_said(const struct applying *a)
{
    const struct consumer_group_member_metadata_key *key = a->key;
    struct consumer_group *group = a->group->consumer;
    struct consumer_member *member;
    struct consumer_said said;
    if (a->value == NULL) {
        member = consumer_group_member(group, key->member_id);
        if (member == NULL) return GROUPS_OK;
        if (member->now.epoch != -1) return GROUPS_E_FAULT;
        if (map_find(&group->targets, key->member_id) != NULL) return GROUPS_E_FAULT;
        group_tell_consumer_gone(member);
        consumer_member_drop(member);
        return GROUPS_OK;
    }
    bool is_new = consumer_group_member(group, key->member_id) == NULL;
    member = consumer_group_member_make(group, key->member_id);
    if (member == NULL || !said_read(a->arena, a->value, &said) ||
        !consumer_member_say(member, &said))
        return GROUPS_E_MEMORY;
    if (is_new) group_tell_consumer(member, GROUP_EVENT_JOINED);
    return GROUPS_OK;
}

static enum groups_result apply_assigned(const struct applying *a)
{
    const struct consumer_group_target_assignment_metadata_value *in = a->value;
    struct consumer_group *group = a->group->consumer;
    if (in == NULL && group->targets.count > 0) return GROUPS_E_FAULT;
    group->assignment_epoch = in == NULL ? -1 : in->assignment_epoch;
    group->assigned_wall_ms = in == NULL ? 0 : in->assignment_timestamp;
    group->assigned_ms = group->groups->now_ms;
    return GROUPS_OK;
}

static enum groups_result apply_target(const struct applying *a)
{
    const struct consumer_group_target_assignment_member_key *key = a->key;
    const struct consumer_group_target_assignment_member_value *in = a->value;
    struct partition_set set;
    size_t room = 0;
    if (in == NULL) {
        consumer_target_drop(a->group->consumer, key->member_id);
        return GROUPS_OK;
    }
    for (int32_t i = 0; i < in->topic_partitions.count; i++)
        room += (size_t)MAX(in->topic_partitions.items[i].partitions.count, 0);
    if (!partition_set_room(&set, a->arena, room)) return GROUPS_E_MEMORY;
    for (int32_t i = 0; i < in->topic_partitions.count; i++)
        for (int32_t p = 0; p < in->topic_partitions.items[i].partitions.count; p++) {
            int32_t partition = in->topic_partitions.items[i].partitions.items[p];
            if (!partition_fits(partition)) return GROUPS_E_FAULT;
            set.items[set.count++] = (struct partition_item){
                .topic = in->topic_partitions.items[i].topic_id, .partition = partition};
        }
    partition_set_sort(&set);
    return memory_or_ok(consumer_target_set(a->group->consumer, key->member_id, &set));
}

static enum groups_result apply_current(const struct applying *a)
{
    const struct consumer_group_current_member_assignment_key *key = a->key;
    const struct consumer_group_current_member_assignment_value *in = a->value;
    struct consumer_current now = {.epoch = -1, .previous = -1};
    struct consumer_member *member = consumer_group_member(a->group->consumer, key->member_id);
    if (in == NULL)
        return member == NULL ? GROUPS_OK : memory_or_ok(consumer_member_set(member, &now));
    if (member == NULL) member = consumer_group_member_make(a->group->consumer, key->member_id);
    if (member == NULL) return GROUPS_E_MEMORY;
    now.epoch = in->member_epoch;
    now.previous = in->previous_member_epoch;
    now.state = in->state >= CONSUMER_STABLE && in->state <= CONSUMER_UNRELEASED ? in->state
                                                                                 : CONSUMER_UNKNOWN;
    enum groups_result result =
        read_current(a->arena, in->assigned_partitions.items, in->assigned_partitions.count,
                     now.epoch, &now.assigned);
    if (result == GROUPS_OK)
        result = read_current(a->arena, in->partitions_pending_revocation.items,
                              in->partitions_pending_revocation.count, now.epoch, &now.pending);
    return result == GROUPS_OK ? memory_or_ok(consumer_member_set(member, &now)) : result;
}

static enum groups_result apply_regex(const struct applying *a)
{
    const struct consumer_group_regular_expression_key *key = a->key;
    const struct consumer_group_regular_expression_value *in = a->value;
    if (in == NULL) {
        consumer_regex_drop(a->group->consumer, key->regular_expression);
        return GROUPS_OK;
    }
    struct consumer_regex regex = {
        .text = key->regular_expression,
        .topics = in->topics.items,
        .topic_count = (uint32_t)MAX(in->topics.count, 0),
        .version = in->version,
        .wall_ms = in->timestamp,
    };
    return memory_or_ok(consumer_regex_set(a->group->consumer, &regex));
}

/* ---- which record ---------------------------------------------------------------------------- */

struct kind {
    int16_t type;
    const struct wire_message *key;
    const struct wire_message *value;
    enum groups_result (*apply)(const struct applying *a);
};

/* In every key struct the group's id comes first. */
_Static_assert(offsetof(struct consumer_group_metadata_key, group_id) == 0, "group first");
_Static_assert(offsetof(struct consumer_group_member_metadata_key, group_id) == 0, "group first");

static const struct kind kinds[] = {
    {CONSUMER_KEY_GROUP,    &wire_consumer_group_metadata_key,                   &wire_consumer_group_metadata_value,
     apply_group                                                                                                                    },
    {CONSUMER_KEY_METADATA, &wire_consumer_group_partition_metadata_key,
     &wire_consumer_group_partition_metadata_value,                                                                   apply_legacy  },
    {CONSUMER_KEY_SAID,     &wire_consumer_group_member_metadata_key,
     &wire_consumer_group_member_metadata_value,                                                                      apply_said    },
    {CONSUMER_KEY_ASSIGNED, &wire_consumer_group_target_assignment_metadata_key,
     &wire_consumer_group_target_assignment_metadata_value,                                                           apply_assigned},
    {CONSUMER_KEY_TARGET,   &wire_consumer_group_target_assignment_member_key,
     &wire_consumer_group_target_assignment_member_value,                                                             apply_target  },
    {CONSUMER_KEY_CURRENT,  &wire_consumer_group_current_member_assignment_key,
     &wire_consumer_group_current_member_assignment_value,                                                            apply_current },
    {CONSUMER_KEY_REGEX,    &wire_consumer_group_regular_expression_key,
     &wire_consumer_group_regular_expression_value,                                                                   apply_regex   },
};

/* A value makes the group if it is not there; a simple group, of which nobody has said more than
 * offsets, becomes one. Tombstones of a group that is not there, or not such a one, say nothing. */
static enum groups_result group_for(struct applying *a, struct view id)
{
    struct group *group = groups_find(a->groups, id);
    a->group = NULL;
    if (a->value == NULL && (group == NULL || group->consumer == NULL)) return GROUPS_OK;
    if (group == NULL) group = group_new(a->groups, id);
    if (group == NULL) return GROUPS_E_MEMORY;
    if (group->consumer == NULL) {
        if (!group->protocol_type.null || group->members.count > 0) return GROUPS_E_FAULT;
        if (!consumer_group_become(group)) return GROUPS_E_MEMORY;
    }
    a->group = group;
    return GROUPS_OK;
}

enum groups_result consumer_group_apply(struct groups *groups,
                                        struct arena *arena,
                                        struct view key,
                                        struct view value)
{
    int16_t type = (int16_t)load_be16(key.data);
    const struct kind *kind = NULL;
    struct applying a = {.groups = groups, .arena = arena};
    for (uint32_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (kinds[i].type == type) kind = &kinds[i];
    assert(kind != NULL);
    a.key = group_part_decode(arena, key, kind->key, kind->key->version_min);
    if (a.key != NULL && !value.null && value.size >= 2)
        a.value = group_part_decode(arena, value, kind->value, (int16_t)load_be16(value.data));
    if (a.key == NULL || (!value.null && a.value == NULL))
        return arena->failed ? GROUPS_E_MEMORY : GROUPS_E_FAULT;
    enum groups_result result = group_for(&a, *(const struct view *)a.key);
    return result != GROUPS_OK || a.group == NULL ? result : kind->apply(&a);
}
