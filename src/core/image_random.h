/* image_random.h - every kind of record at random, for tests of the image. Ids and names are few,
 * so that records meet. */
#pragma once

#include "core/image_rig.h"

#include "gen/broker_registration_change_record.h"
#include "gen/clear_elr_record.h"
#include "gen/client_quota_record.h"
#include "gen/config_record.h"
#include "gen/partition_change_record.h"
#include "gen/partition_record.h"
#include "gen/register_broker_record.h"
#include "gen/remove_topic_record.h"
#include "gen/topic_record.h"
#include "gen/unregister_broker_record.h"
#include "gen/user_scram_credential_record.h"

static inline uint32_t roll(struct step *dice, uint32_t below)
{
    return (uint32_t)(step_random(dice) % below);
}

static inline struct uuid topic_uuid(uint32_t n)
{
    return (struct uuid){
        {9, [15] = (uint8_t)n}
    };
}

static inline struct view letter(uint32_t n)
{
    static const char letters[] = "abcdefghijklmnop";
    return view_of(letters + n % 16, 1);
}

static inline void random_broker_record(struct step *step, struct step *dice)
{
    struct register_broker_record *record = step_add(step, &wire_register_broker_record, 4);
    struct uuid *directories = step_get(step, 2 * sizeof(*directories));
    directories[0] = (struct uuid){{1}};
    directories[1] = (struct uuid){{2}};
    record->broker_id = (int32_t)roll(dice, 4);
    record->broker_epoch = (int32_t)roll(dice, 2);
    record->incarnation_id = topic_uuid(roll(dice, 9));
    record->rack = roll(dice, 2) ? letter(roll(dice, 3)) : VIEW_NULL;
    record->fenced = roll(dice, 2);
    record->log_dirs.items = directories;
    record->log_dirs.count = (int32_t)roll(dice, 3);
    if (roll(dice, 2)) {
        record->cordoned_log_dirs.items = directories;
        record->cordoned_log_dirs.count = (int32_t)roll(dice, 2);
    }
}

static inline void random_ids(struct step *step, struct step *dice, void *array)
{
    struct wire_array *ids = array;
    int32_t *items = step_get(step, 4 * sizeof(*items));
    uint32_t count = roll(dice, 4);
    for (uint32_t i = 0; i < count; i++)
        items[i] = (int32_t)((i + roll(dice, 2)) % 4);
    ids->items = items;
    ids->count = (int32_t)count;
}

static inline void random_partition_record(struct step *step, struct step *dice)
{
    struct partition_record *record = step_add(step, &wire_partition_record, 2);
    record->topic_id = topic_uuid(roll(dice, 4));
    record->partition_id = (int32_t)roll(dice, 5);
    random_ids(step, dice, &record->replicas);
    random_ids(step, dice, &record->isr);
    record->leader = (int32_t)roll(dice, 4) - 1;
    record->leader_epoch = (int32_t)roll(dice, 9);
    if (roll(dice, 2)) random_ids(step, dice, &record->eligible_leader_replicas);
    struct uuid *directories = step_get(step, 4 * sizeof(*directories));
    for (uint32_t i = 0; i < 4; i++)
        directories[i] = (struct uuid){{(uint8_t)roll(dice, 3)}};
    record->directories.items = directories;
    record->directories.count = record->replicas.count;
}

static inline void random_partition_change(struct step *step, struct step *dice)
{
    struct partition_change_record *record = step_add(step, &wire_partition_change_record, 2);
    record->topic_id = topic_uuid(roll(dice, 4));
    record->partition_id = (int32_t)roll(dice, 5);
    if (roll(dice, 2)) random_ids(step, dice, &record->isr);
    if (roll(dice, 2)) record->leader = (int32_t)roll(dice, 4) - 1;
    if (roll(dice, 2)) record->leader_recovery_state = (int8_t)roll(dice, 2);
    if (roll(dice, 3) == 0) random_ids(step, dice, &record->last_known_elr);
    if (roll(dice, 3) == 0) random_ids(step, dice, &record->adding_replicas);
}

static inline void random_config_record(struct step *step, struct step *dice)
{
    struct config_record *record = step_add(step, &wire_config_record, 0);
    record->resource_type = roll(dice, 2) ? 2 : 4;
    record->resource_name = letter(roll(dice, 4));
    record->name = letter(roll(dice, 6));
    record->value = roll(dice, 3) ? letter(roll(dice, 9)) : VIEW_NULL;
}

static inline void random_quota_record(struct step *step, struct step *dice)
{
    struct client_quota_record *record = step_add(step, &wire_client_quota_record, 0);
    struct client_quota_record_entity_data *parts = step_get(step, 2 * sizeof(*parts));
    uint32_t first = roll(dice, 2);
    parts[first].entity_type = VIEW("user");
    parts[first].entity_name = roll(dice, 2) ? letter(1) : VIEW_NULL;
    parts[1 - first].entity_type = VIEW("client-id");
    parts[1 - first].entity_name = letter(roll(dice, 2));
    record->entity.items = parts;
    record->entity.count = 2;
    record->key = VIEW("producer_byte_rate");
    record->value = roll(dice, 9);
    record->remove = roll(dice, 3) == 0;
}

static inline void random_record(struct step *step, struct step *dice)
{
    switch (roll(dice, 14)) {
    case 0: random_broker_record(step, dice); break;
    case 1: {
        struct unregister_broker_record *record = step_add(step, &wire_unregister_broker_record, 0);
        record->broker_id = (int32_t)roll(dice, 4);
        record->broker_epoch = (int32_t)roll(dice, 2);
        break;
    }
    case 2: {
        struct topic_record *record = step_add(step, &wire_topic_record, 0);
        record->name = letter(roll(dice, 4));
        record->topic_id = topic_uuid(roll(dice, 4));
        break;
    }
    case 3:
    case 4:
    case 5: random_partition_record(step, dice); break;
    case 6:
    case 7: random_partition_change(step, dice); break;
    case 8: random_config_record(step, dice); break;
    case 9: {
        struct remove_topic_record *record = step_add(step, &wire_remove_topic_record, 0);
        record->topic_id = topic_uuid(roll(dice, 4));
        break;
    }
    case 10: {
        struct broker_registration_change_record *record =
            step_add(step, &wire_broker_registration_change_record, 3);
        record->broker_id = (int32_t)roll(dice, 4);
        record->broker_epoch = (int32_t)roll(dice, 2);
        record->fenced = (int8_t)((int32_t)roll(dice, 3) - 1);
        record->in_controlled_shutdown = (int8_t)roll(dice, 2);
        break;
    }
    case 11: random_quota_record(step, dice); break;
    case 12: {
        struct clear_elr_record *record = step_add(step, &wire_clear_elr_record, 0);
        record->topic_name = roll(dice, 2) ? letter(roll(dice, 4)) : VIEW_EMPTY;
        break;
    }
    default: {
        struct user_scram_credential_record *record =
            step_add(step, &wire_user_scram_credential_record, 0);
        record->name = letter(roll(dice, 3));
        record->mechanism = (int8_t)(1 + roll(dice, 2));
        record->salt = letter(roll(dice, 9));
        break;
    }
    }
}
