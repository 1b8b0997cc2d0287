/* consumer_group_record.c - what a step decides about a consumer group, as records of
 * __consumer_offsets, as Apache Kafka 4.4 writes them.
 *
 * Each record is encoded at once: what it was made from may go before the step is over. */
#include "core/consumer_group_internal.h"

#include "gen/consumer_group_current_member_assignment_key.h"
#include "gen/consumer_group_current_member_assignment_value.h"
#include "gen/consumer_group_member_metadata_key.h"
#include "gen/consumer_group_member_metadata_value.h"
#include "gen/consumer_group_metadata_key.h"
#include "gen/consumer_group_metadata_value.h"
#include "gen/consumer_group_partition_metadata_key.h"
#include "gen/consumer_group_regular_expression_key.h"
#include "gen/consumer_group_regular_expression_value.h"
#include "gen/consumer_group_target_assignment_member_key.h"
#include "gen/consumer_group_target_assignment_member_value.h"
#include "gen/consumer_group_target_assignment_metadata_key.h"
#include "gen/consumer_group_target_assignment_metadata_value.h"

#define CONSUMER_VALUE_VERSION 0

/* ---- keys ------------------------------------------------------------------------------------ */

/* All keys are a group, or a group and a second text. */
union consumer_key_any {
    struct consumer_group_metadata_key group;
    struct consumer_group_partition_metadata_key metadata;
    struct consumer_group_target_assignment_metadata_key assigned;
    struct consumer_group_member_metadata_key said;
    struct consumer_group_target_assignment_member_key target;
    struct consumer_group_current_member_assignment_key current;
    struct consumer_group_regular_expression_key regex;
};

static const struct wire_message *key_message(int16_t type)
{
    switch (type) {
    case CONSUMER_KEY_GROUP: return &wire_consumer_group_metadata_key;
    case CONSUMER_KEY_METADATA: return &wire_consumer_group_partition_metadata_key;
    case CONSUMER_KEY_SAID: return &wire_consumer_group_member_metadata_key;
    case CONSUMER_KEY_ASSIGNED: return &wire_consumer_group_target_assignment_metadata_key;
    case CONSUMER_KEY_TARGET: return &wire_consumer_group_target_assignment_member_key;
    case CONSUMER_KEY_CURRENT: return &wire_consumer_group_current_member_assignment_key;
    default: return &wire_consumer_group_regular_expression_key;
    }
}

static void key_fill(union consumer_key_any *key,
                     int16_t type,
                     struct view group,
                     struct view second)
{
    wire_defaults(key_message(type), key);
    switch (type) {
    case CONSUMER_KEY_GROUP: key->group.group_id = group; break;
    case CONSUMER_KEY_METADATA: key->metadata.group_id = group; break;
    case CONSUMER_KEY_ASSIGNED: key->assigned.group_id = group; break;
    case CONSUMER_KEY_SAID:
        key->said.group_id = group;
        key->said.member_id = second;
        break;
    case CONSUMER_KEY_TARGET:
        key->target.group_id = group;
        key->target.member_id = second;
        break;
    case CONSUMER_KEY_CURRENT:
        key->current.group_id = group;
        key->current.member_id = second;
        break;
    default: key->regex.group_id = group; key->regex.regular_expression = second;
    }
}

/* One record; `message` NULL: a tombstone. False: no memory, or no room in the step. */
struct consumer_record {
    int16_t type;
    struct view group;
    struct view second; /* The member, the expression; unused by keys of a group. */
    const struct wire_message *message;
    const void *value;
};

static bool record_put(struct step *step, const struct consumer_record *record)
{
    union consumer_key_any key;
    if (step_room(step) == 0) return false;
    key_fill(&key, record->type, record->group, record->second);
    struct step_part k = {.message = key_message(record->type),
                          .value = &key,
                          .version = key_message(record->type)->version_min};
    struct step_part v = {.bytes = VIEW_NULL};
    k = (struct step_part){.bytes = step_encode(step->arena, &k)};
    if (record->message != NULL) {
        v = (struct step_part){
            .message = record->message, .value = record->value, .version = CONSUMER_VALUE_VERSION};
        v = (struct step_part){.bytes = step_encode(step->arena, &v)};
        if (v.bytes.null) return false;
    }
    return !k.bytes.null && step_add_keyed(step, k, v);
}

/* ---- values ---------------------------------------------------------------------------------- */

bool consumer_said_equal(const struct consumer_said *a, const struct consumer_said *b)
{
    if (!view_equal(a->instance, b->instance) || !view_equal(a->rack, b->rack)) return false;
    if (!view_equal(a->client_id, b->client_id) || !view_equal(a->client_host, b->client_host))
        return false;
    if (!view_equal(a->regex, b->regex) || !view_equal(a->assignor, b->assignor)) return false;
    if (a->rebalance_ms != b->rebalance_ms || a->classic != b->classic) return false;
    if (a->classic && a->session_ms != b->session_ms) return false;
    if (a->topic_count != b->topic_count || a->protocol_count != b->protocol_count) return false;
    for (uint32_t i = 0; i < a->topic_count; i++)
        if (!view_equal(a->topics[i], b->topics[i])) return false;
    for (uint32_t i = 0; i < a->protocol_count; i++)
        if (!view_equal(a->protocols[i].name, b->protocols[i].name) ||
            !view_equal(a->protocols[i].metadata, b->protocols[i].metadata))
            return false;
    return true;
}

bool consumer_record_said(struct step *step,
                          struct view group,
                          struct view member,
                          const struct consumer_said *said)
{
    struct consumer_group_member_metadata_value value;
    struct consumer_group_member_metadata_value_classic_member_metadata classic;
    wire_defaults(&wire_consumer_group_member_metadata_value, &value);
    value.instance_id = said->instance;
    value.rack_id = said->rack;
    value.client_id = said->client_id;
    value.client_host = said->client_host;
    value.subscribed_topic_regex = said->regex;
    value.rebalance_timeout_ms = said->rebalance_ms;
    value.server_assignor = said->assignor;
    value.subscribed_topic_names.count = (int32_t)said->topic_count;
    if (said->topic_count > 0) {
        value.subscribed_topic_names.items =
            step_get(step, said->topic_count * sizeof(struct view));
        if (value.subscribed_topic_names.items == NULL) return false;
        memcpy(value.subscribed_topic_names.items, said->topics,
               said->topic_count * sizeof(struct view));
    }
    value.classic_member_metadata = NULL; /* Not the schema's default: Kafka writes it out. */
    if (said->classic) {
        wire_struct_defaults(
            &wire_consumer_group_member_metadata_value_classic_member_metadata_shape, &classic);
        classic.session_timeout_ms = said->session_ms;
        classic.supported_protocols.items =
            step_get(step, (said->protocol_count + 1) * sizeof(*classic.supported_protocols.items));
        if (classic.supported_protocols.items == NULL) return false;
        classic.supported_protocols.count = (int32_t)said->protocol_count;
        for (uint32_t i = 0; i < said->protocol_count; i++) {
            struct consumer_group_member_metadata_value_classic_protocol *item =
                &classic.supported_protocols.items[i];
            wire_struct_defaults(&wire_consumer_group_member_metadata_value_classic_protocol_shape,
                                 item);
            item->name = said->protocols[i].name;
            item->metadata = said->protocols[i].metadata;
        }
        value.classic_member_metadata = &classic;
    }
    struct consumer_record record = {CONSUMER_KEY_SAID, group, member,
                                     &wire_consumer_group_member_metadata_value, &value};
    return record_put(step, &record);
}

typedef struct consumer_group_current_member_assignment_value_topic_partitions current_topic;

static bool current_topics(struct step *step,
                           const struct partition_set *set,
                           current_topic **items,
                           int32_t *count)
{
    *items = step_get(step, (partition_set_topics(set) + 1) * sizeof(**items));
    if (*items == NULL) return false;
    for (uint32_t at = 0, run; at < set->count; at += run) {
        current_topic *item = &(*items)[(*count)++];
        run = partition_set_run(set, at);
        wire_struct_defaults(
            &wire_consumer_group_current_member_assignment_value_topic_partitions_shape, item);
        item->topic_id = set->items[at].topic;
        item->partitions.items = step_get(step, run * sizeof(int32_t));
        item->assignment_epochs.items = step_get(step, run * sizeof(int32_t));
        if (item->partitions.items == NULL || item->assignment_epochs.items == NULL) return false;
        item->partitions.count = item->assignment_epochs.count = (int32_t)run;
        for (uint32_t i = 0; i < run; i++) {
            item->partitions.items[i] = set->items[at + i].partition;
            item->assignment_epochs.items[i] = set->items[at + i].epoch;
        }
    }
    return true;
}

bool consumer_record_current(struct step *step,
                             struct view group,
                             struct view member,
                             const struct consumer_current *now)
{
    struct consumer_group_current_member_assignment_value value;
    wire_defaults(&wire_consumer_group_current_member_assignment_value, &value);
    value.member_epoch = now->epoch;
    value.previous_member_epoch = now->previous;
    value.state = now->state;
    value.assigned_partitions.count = value.partitions_pending_revocation.count = 0;
    if (!current_topics(step, &now->assigned, &value.assigned_partitions.items,
                        &value.assigned_partitions.count) ||
        !current_topics(step, &now->pending, &value.partitions_pending_revocation.items,
                        &value.partitions_pending_revocation.count))
        return false;
    struct consumer_record record = {CONSUMER_KEY_CURRENT, group, member,
                                     &wire_consumer_group_current_member_assignment_value, &value};
    return record_put(step, &record);
}

bool consumer_record_target(struct step *step,
                            struct view group,
                            struct view member,
                            const struct partition_set *target)
{
    struct consumer_group_target_assignment_member_value value;
    wire_defaults(&wire_consumer_group_target_assignment_member_value, &value);
    value.topic_partitions.items =
        step_get(step, (partition_set_topics(target) + 1) * sizeof(*value.topic_partitions.items));
    if (value.topic_partitions.items == NULL) return false;
    value.topic_partitions.count = 0;
    for (uint32_t at = 0, run; at < target->count; at += run) {
        struct consumer_group_target_assignment_member_value_topic_partition *item =
            &value.topic_partitions.items[value.topic_partitions.count++];
        run = partition_set_run(target, at);
        wire_struct_defaults(
            &wire_consumer_group_target_assignment_member_value_topic_partition_shape, item);
        item->topic_id = target->items[at].topic;
        item->partitions.items = step_get(step, run * sizeof(int32_t));
        if (item->partitions.items == NULL) return false;
        item->partitions.count = (int32_t)run;
        for (uint32_t i = 0; i < run; i++)
            item->partitions.items[i] = target->items[at + i].partition;
    }
    struct consumer_record record = {CONSUMER_KEY_TARGET, group, member,
                                     &wire_consumer_group_target_assignment_member_value, &value};
    return record_put(step, &record);
}

bool consumer_record_group(struct step *step, struct view group, int32_t epoch, int64_t hash)
{
    struct consumer_group_metadata_value value;
    wire_defaults(&wire_consumer_group_metadata_value, &value);
    value.epoch = epoch;
    value.metadata_hash = hash;
    struct consumer_record record = {CONSUMER_KEY_GROUP, group, VIEW_NULL,
                                     &wire_consumer_group_metadata_value, &value};
    return record_put(step, &record);
}

bool consumer_record_assigned(struct step *step, struct view group, int32_t epoch, int64_t wall_ms)
{
    struct consumer_group_target_assignment_metadata_value value;
    wire_defaults(&wire_consumer_group_target_assignment_metadata_value, &value);
    value.assignment_epoch = epoch;
    value.assignment_timestamp = wall_ms;
    struct consumer_record record = {CONSUMER_KEY_ASSIGNED, group, VIEW_NULL,
                                     &wire_consumer_group_target_assignment_metadata_value, &value};
    return record_put(step, &record);
}

bool consumer_record_regex(struct step *step,
                           struct view group,
                           const struct consumer_group_matched *matched)
{
    struct consumer_group_regular_expression_value value;
    wire_defaults(&wire_consumer_group_regular_expression_value, &value);
    value.topics.items = step_get(step, (matched->topic_count + 1) * sizeof(struct view));
    if (value.topics.items == NULL) return false;
    for (uint32_t i = 0; i < matched->topic_count; i++)
        value.topics.items[i] = matched->topics[i];
    value.topics.count = (int32_t)matched->topic_count;
    value.version = matched->version;
    value.timestamp = step->wall_ms;
    struct consumer_record record = {CONSUMER_KEY_REGEX, group, matched->regex,
                                     &wire_consumer_group_regular_expression_value, &value};
    return record_put(step, &record);
}

/* ---- tombstones ------------------------------------------------------------------------------ */

bool consumer_gone(struct step *step, int16_t type, struct view group, struct view second)
{
    struct consumer_record record = {.type = type, .group = group, .second = second};
    assert(consumer_key(type));
    return record_put(step, &record);
}

bool consumer_member_gone(struct step *step, struct view group, struct view member)
{
    return consumer_gone(step, CONSUMER_KEY_CURRENT, group, member) &&
           consumer_gone(step, CONSUMER_KEY_TARGET, group, member) &&
           consumer_gone(step, CONSUMER_KEY_SAID, group, member);
}

/* In the order that a reader insists on. */
bool consumer_group_gone(const struct group *group, struct step *step)
{
    const struct consumer_group *consumer = group->consumer;
    bool put = true;
    list_foreach (link, &consumer->member_list)
        put = put && consumer_gone(step, CONSUMER_KEY_CURRENT, group->id,
                                   container_of(link, struct consumer_member, link)->id);
    map_foreach (node, &consumer->targets)
        put = put && consumer_gone(step, CONSUMER_KEY_TARGET, group->id, node->key);
    put = put && consumer_gone(step, CONSUMER_KEY_ASSIGNED, group->id, VIEW_NULL);
    list_foreach (link, &consumer->member_list)
        put = put && consumer_gone(step, CONSUMER_KEY_SAID, group->id,
                                   container_of(link, struct consumer_member, link)->id);
    list_foreach (link, &consumer->regex_list)
        put = put && consumer_gone(step, CONSUMER_KEY_REGEX, group->id,
                                   container_of(link, struct consumer_regex, link)->text);
    if (consumer->legacy_metadata)
        put = put && consumer_gone(step, CONSUMER_KEY_METADATA, group->id, VIEW_NULL);
    return put && consumer_gone(step, CONSUMER_KEY_GROUP, group->id, VIEW_NULL);
}
