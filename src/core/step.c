/* step.c - collecting records, and their form in a log.
 *
 * A metadata record's value is a frame: uvarint 1, uvarint type, uvarint version, then the body at
 * that version. A coordinator's key begins with its type, its value with its version, both int16.
 * Control records have neither in the value; their key is version 0 and type, both int16. */
#include "core/step.h"

#include "base/bytes.h"
#include "base/reader.h"

#include "gen/abort_transaction_record.h"
#include "gen/access_control_entry_record.h"
#include "gen/begin_transaction_record.h"
#include "gen/broker_registration_change_record.h"
#include "gen/clear_elr_record.h"
#include "gen/client_quota_record.h"
#include "gen/config_record.h"
#include "gen/delegation_token_record.h"
#include "gen/end_transaction_record.h"
#include "gen/feature_level_record.h"
#include "gen/fence_broker_record.h"
#include "gen/no_op_record.h"
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
#include "gen/zk_migration_state_record.h"

#define STEP_FRAME_VERSION  1u
#define STEP_RECORDS_FIRST  16u
#define STEP_METADATA_TYPES 30u

/* By record type; 6, 13 and 16 are not in use. */
static const struct wire_message *const step_metadata[STEP_METADATA_TYPES] = {
    [0] = &wire_register_broker_record,
    [1] = &wire_unregister_broker_record,
    [2] = &wire_topic_record,
    [3] = &wire_partition_record,
    [4] = &wire_config_record,
    [5] = &wire_partition_change_record,
    [7] = &wire_fence_broker_record,
    [8] = &wire_unfence_broker_record,
    [9] = &wire_remove_topic_record,
    [10] = &wire_delegation_token_record,
    [11] = &wire_user_scram_credential_record,
    [12] = &wire_feature_level_record,
    [14] = &wire_client_quota_record,
    [15] = &wire_producer_ids_record,
    [17] = &wire_broker_registration_change_record,
    [18] = &wire_access_control_entry_record,
    [19] = &wire_remove_access_control_entry_record,
    [20] = &wire_no_op_record,
    [21] = &wire_zk_migration_state_record,
    [22] = &wire_remove_user_scram_credential_record,
    [23] = &wire_begin_transaction_record,
    [24] = &wire_end_transaction_record,
    [25] = &wire_abort_transaction_record,
    [26] = &wire_remove_delegation_token_record,
    [27] = &wire_register_controller_record,
    [28] = &wire_clear_elr_record,
    [29] = &wire_unregister_controller_record,
};

const struct wire_message *step_metadata_message(uint32_t type)
{
    return type < STEP_METADATA_TYPES ? step_metadata[type] : NULL;
}

void step_begin(struct step *step, struct arena *arena, int64_t now_ms, int64_t wall_ms)
{
    assert(arena != NULL);
    *step = (struct step){
        .arena = arena,
        .now_ms = now_ms,
        .horizon_ms = now_ms,
        .wall_ms = wall_ms,
        .random = {1, 0},
    };
}

static uint64_t step_rotate(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

/* xoroshiro128+ (Blackman and Vigna): small, seeded, good enough for ids and jitter. */
uint64_t step_random(struct step *step)
{
    uint64_t a = step->random[0];
    uint64_t b = step->random[1];
    assert((a | b) != 0);
    uint64_t result = a + b;
    b ^= a;
    step->random[0] = step_rotate(a, 24) ^ b ^ (b << 16);
    step->random[1] = step_rotate(b, 37);
    return result;
}

struct uuid step_uuid(struct step *step)
{
    struct uuid id;
    do {
        store_be64(id.bytes, step_random(step));
        store_be64(id.bytes + 8, step_random(step));
        id.bytes[6] = (uint8_t)((id.bytes[6] & 0x0f) | 0x40);
        id.bytes[8] = (uint8_t)((id.bytes[8] & 0x3f) | 0x80);
        /* The text's first character is the upper six bits; 62 is '-'. The version bits already
         * keep it off the reserved ids, whose upper half is zero. */
    } while (id.bytes[0] >> 2 == 62);
    return id;
}

static struct step_record *step_slot(struct step *step)
{
    assert(step_room(step) > 0);
    if (step->record_count == step->record_capacity) {
        uint32_t capacity =
            step->record_capacity == 0 ? STEP_RECORDS_FIRST : 2 * step->record_capacity;
        struct step_record *records = step_get(step, capacity * sizeof(*records));
        if (records == NULL) return NULL;
        if (step->record_count > 0)
            memcpy(records, step->records, step->record_count * sizeof(*records));
        step->records = records;
        step->record_capacity = capacity;
    }
    return &step->records[step->record_count];
}

void *step_add(struct step *step, const struct wire_message *message, int16_t version)
{
    assert(version >= message->version_min);
    assert(version <= message->version_max);

    struct step_record *record = step_slot(step);
    if (record == NULL) return NULL;
    void *value = step_get(step, message->size_bytes);
    if (value == NULL) return NULL;
    wire_defaults(message, value);
    *record = (struct step_record){
        .key = {.bytes = VIEW_NULL },
        .value = { .message = message, .value = value, .version = version, .bytes = VIEW_NULL},
    };
    step->record_count++;
    return value;
}

bool step_add_keyed(struct step *step, struct step_part key, struct step_part value)
{
    struct step_record *record = step_slot(step);
    if (record == NULL) return false;
    *record = (struct step_record){.key = key, .value = value};
    step->record_count++;
    return true;
}

static uint32_t step_uvarint_size(uint32_t value)
{
    uint32_t size = 1;
    while (value >= 0x80) {
        value >>= 7;
        size++;
    }
    return size;
}

static uint8_t *step_uvarint(uint8_t *out, uint32_t value)
{
    while (value >= 0x80) {
        *out++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *out++ = (uint8_t)value;
    return out;
}

static size_t step_prefix_size(const struct step_part *part)
{
    switch (part->message->kind) {
    case WIRE_METADATA:
        return 1 + step_uvarint_size((uint32_t)part->message->api_key) +
               step_uvarint_size((uint32_t)part->version);
    case WIRE_COORDINATOR_KEY:
    case WIRE_COORDINATOR_VALUE: return 2;
    default: return 0;
    }
}

static uint8_t *step_prefix(const struct step_part *part, uint8_t *out)
{
    switch (part->message->kind) {
    case WIRE_METADATA:
        out = step_uvarint(out, STEP_FRAME_VERSION);
        out = step_uvarint(out, (uint32_t)part->message->api_key);
        return step_uvarint(out, (uint32_t)part->version);
    case WIRE_COORDINATOR_KEY: store_be16(out, (uint16_t)part->message->api_key); return out + 2;
    case WIRE_COORDINATOR_VALUE: store_be16(out, (uint16_t)part->version); return out + 2;
    default: return out;
    }
}

size_t step_encoded_size(const struct step_part *part)
{
    if (part->message == NULL) return part->bytes.null ? 0 : part->bytes.size;
    const struct wire_form *form = wire_form(part->message, part->version);
    assert(form != NULL);
    return step_prefix_size(part) + wire_size(form, part->value);
}

void step_encode_into(const struct step_part *part, uint8_t *out)
{
    if (part->message == NULL) {
        if (!part->bytes.null && part->bytes.size > 0)
            memcpy(out, part->bytes.data, part->bytes.size);
        return;
    }
    const struct wire_form *form = wire_form(part->message, part->version);
    assert(form != NULL);
    uint32_t gaps;
    wire_encode(form, part->value, step_prefix(part, out), NULL, 0, &gaps);
    assert(gaps == 0); /* Records hold no external bytes. */
}

struct view step_encode(struct arena *arena, const struct step_part *part)
{
    if (part->message == NULL) return part->bytes;
    size_t size = step_encoded_size(part);
    assert(size <= UINT32_MAX);
    uint8_t *bytes = arena_get(arena, size);
    if (bytes == NULL) return VIEW_NULL;
    step_encode_into(part, bytes);
    return view_of(bytes, (uint32_t)size);
}

bool step_decode(struct view bytes, struct arena *arena, struct step_record *out)
{
    if (bytes.null) return false;
    struct reader in = reader_of(bytes);
    uint32_t frame = reader_uvarint(&in);
    const struct wire_message *message = step_metadata_message(reader_uvarint(&in));
    uint32_t version = reader_uvarint(&in);
    if (in.fault != READER_OK || frame != STEP_FRAME_VERSION) return false;
    if (message == NULL || version > (uint32_t)INT16_MAX) return false;
    const struct wire_form *form = wire_form(message, (int16_t)version);
    if (form == NULL) return false;

    void *value = arena_get(arena, message->size_bytes);
    if (value == NULL) return false;
    if (!wire_decode(&in, form, arena, value)) return false;
    if (reader_left(&in) != 0) return false;
    *out = (struct step_record){
        .key = {.bytes = VIEW_NULL},
        .value = { .message = message,
                .value = value,
                .version = (int16_t)version,
                .bytes = VIEW_NULL},
    };
    return true;
}
