/* cluster_quota.c - AlterClientQuotas: what an entity and its limits may be, and their records.
 *
 * Every entry stands for itself: all its records, or none and an error. Two entries of one entity
 * are both refused, whatever they want. */
#include "core/cluster_internal.h"

#include "core/names.h"
#include "core/quota.h"
#include "gen/alter_client_quotas_request.h"
#include "gen/alter_client_quotas_response.h"
#include "gen/client_quota_record.h"

/* One entry, and its verdict. */
struct limiting {
    struct cluster *cluster;
    struct step *step;
    const struct alter_client_quotas_request_entry_data *in;
    struct alter_client_quotas_response_entry_data *out;
    struct client_quota_record record; /* Its entity; key and value of the op at hand. */
    bool ip;
};

static bool limiting_fail(struct limiting *limiting, struct view message)
{
    limiting->out->error_code = KAFKA_INVALID_REQUEST;
    limiting->out->error_message = message;
    return false;
}

/* ---- addresses ------------------------------------------------------------------------------- */

static bool is_ipv4(struct view text)
{
    uint32_t parts = 0, digits = 0, value = 0;
    for (uint32_t i = 0; i <= text.size; i++) {
        uint8_t c = i < text.size ? text.data[i] : '.';
        if (c == '.') {
            if (digits == 0 || value > 255) return false;
            parts++;
            digits = value = 0;
        } else if (c >= '0' && c <= '9' && digits < 3) {
            value = value * 10 + (c - '0');
            digits++;
        } else {
            return false;
        }
    }
    return parts == 4;
}

static bool is_hex(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Groups of one to four digits, one of them perhaps "::"; the last two perhaps as IPv4. */
static bool is_ipv6(struct view text)
{
    uint32_t groups = 0, digits = 0, at = 0;
    bool gap = false;
    if (text.size < 2) return false;
    if (text.data[0] == ':' && text.data[1] != ':') return false;
    for (uint32_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (c == '.') {
            if (!is_ipv4(view_of(text.data + at, text.size - at))) return false;
            groups += 2;
            return gap ? groups < 8 : groups == 8;
        }
        if (c != ':') {
            if (!is_hex(c) || ++digits > 4) return false;
            continue;
        }
        groups += digits > 0;
        bool again = i + 1 < text.size && text.data[i + 1] == ':';
        if (again && gap) return false;
        if (!again && i + 1 == text.size) return false;
        gap = gap || again;
        i += again;
        digits = 0;
        at = i + 1;
    }
    groups += digits > 0;
    return gap ? groups < 8 : groups == 8;
}

uint32_t cluster_address_bits(struct view text)
{
    if (is_ipv4(text)) return 32;
    return is_ipv6(text) ? 128 : 0;
}

/* ---- one entry ------------------------------------------------------------------------------- */

/* "user", "client-id" or "ip": each at most once, "ip" alone. */
static bool limiting_entity(struct limiting *limiting)
{
    struct arena *arena = limiting->step->arena;
    uint32_t users = 0, clients = 0, addresses = 0;
    if (limiting->in->entity.count <= 0)
        return limiting_fail(limiting, VIEW("an entity needs a user, a client id or an address"));
    for (int32_t i = 0; i < limiting->in->entity.count; i++) {
        const struct alter_client_quotas_request_entity_data *part = &limiting->in->entity.items[i];
        bool ip = view_is(part->entity_type, "ip");
        if (ip)
            addresses++;
        else if (view_is(part->entity_type, "user"))
            users++;
        else if (view_is(part->entity_type, "client-id"))
            clients++;
        else
            return limiting_fail(limiting, JOIN(arena, VIEW("an entity cannot have a \""),
                                                part->entity_type, VIEW("\"")));
        if (!part->entity_name.null && part->entity_name.size == 0)
            return limiting_fail(limiting,
                                 JOIN(arena, VIEW("the empty name is no "), part->entity_type));
        if (ip && !part->entity_name.null && cluster_address_bits(part->entity_name) == 0)
            return limiting_fail(limiting, JOIN(arena, VIEW("\""), part->entity_name,
                                                VIEW("\" is not an IP address")));
    }
    limiting->ip = addresses > 0;
    if (users > 1 || clients > 1 || addresses > 1)
        return limiting_fail(limiting, VIEW("an entity has two parts of one type"));
    if (limiting->ip && users + clients > 0)
        return limiting_fail(limiting, VIEW("an address stands alone in an entity"));
    return true;
}

static bool limiting_value(struct limiting *limiting, const struct quota_key *key, double value)
{
    struct arena *arena = limiting->step->arena;
    struct view name = view_of_string(key->name);
    if (!(value > 0))
        return limiting_fail(limiting, JOIN(arena, name, VIEW(" must be greater than 0")));
    if (key->number == QUOTA_DOUBLE) return true;
    double most = key->number == QUOTA_INT ? 2147483647.0 : 9223372036854775807.0;
    if (value > most)
        return limiting_fail(limiting,
                             JOIN(arena, VIEW("the value of "), name, VIEW(" is too large")));
    if (value >= 9007199254740992.0) return true; /* No fraction has a place any more. */
    double fraction = value - (double)(int64_t)(value + 0.5);
    if (fraction > 1e-6 || fraction < -1e-6)
        return limiting_fail(limiting, JOIN(arena, name, VIEW(" must be a whole number")));
    return true;
}

static bool limiting_op(struct limiting *limiting,
                        const struct alter_client_quotas_request_op_data *op)
{
    if (op->remove) return true; /* What is not there can be removed under any name. */
    const struct quota_key *key = quota_key(op->key);
    if (key == NULL || key->ip != limiting->ip)
        return limiting_fail(limiting, JOIN(limiting->step->arena, VIEW("\""), op->key,
                                            VIEW("\" is no quota of such an entity")));
    return limiting_value(limiting, key, op->value);
}

/* The entry's own checks; nothing is decided yet. */
static bool limiting_check(struct limiting *limiting, bool *memory)
{
    uint32_t count = (uint32_t)MAX(limiting->in->ops.count, 0);
    struct names names;
    if (!limiting_entity(limiting)) return false;
    *memory = names_init(&names, limiting->step->arena, count, step_random(limiting->step));
    for (uint32_t i = 0; *memory && i < count; i++) {
        const struct alter_client_quotas_request_op_data *op = &limiting->in->ops.items[i];
        if (names_see(&names, op->key) > 1)
            return limiting_fail(limiting, JOIN(limiting->step->arena, VIEW("\""), op->key,
                                                VIEW("\" is named twice")));
        if (!limiting_op(limiting, op)) return false;
    }
    return *memory;
}

/* Would this op change what is there? */
static bool limiting_differs(struct limiting *limiting, bool *memory)
{
    const struct image_raw *now;
    struct step_record stored;
    *memory = image_quota(limiting->cluster->image, &limiting->record, &now);
    if (!*memory) return false;
    if (now == NULL) return !limiting->record.remove;
    if (limiting->record.remove) return true;
    *memory = step_decode(now->record, limiting->step->arena, &stored);
    const struct client_quota_record *before = *memory ? stored.value.value : NULL;
    return before != NULL && before->value != limiting->record.value;
}

static enum step_result limiting_add(struct limiting *limiting)
{
    for (int32_t i = 0; i < limiting->in->ops.count; i++) {
        const struct alter_client_quotas_request_op_data *op = &limiting->in->ops.items[i];
        bool memory;
        limiting->record.key = op->key;
        limiting->record.value = op->remove ? 0 : op->value;
        limiting->record.remove = op->remove;
        bool differs = limiting_differs(limiting, &memory);
        if (!memory) return STEP_E_MEMORY;
        if (!differs) continue;
        struct client_quota_record *record = step_add(limiting->step, &wire_client_quota_record, 0);
        if (record == NULL) return STEP_E_MEMORY;
        *record = limiting->record;
    }
    return STEP_DONE;
}

/* ---- the request ----------------------------------------------------------------------------- */

/* The entity as the answer and the records have it. False: no memory. */
static bool limiting_copy_entity(struct limiting *limiting)
{
    int32_t count = MAX(limiting->in->entity.count, 0);
    limiting->out->entity.items =
        step_get(limiting->step, (size_t)(count + 1) * sizeof(limiting->out->entity.items[0]));
    limiting->record.entity.items =
        step_get(limiting->step, (size_t)(count + 1) * sizeof(limiting->record.entity.items[0]));
    if (limiting->out->entity.items == NULL || limiting->record.entity.items == NULL) return false;
    limiting->out->entity.count = limiting->record.entity.count = count;
    for (int32_t i = 0; i < count; i++) {
        const struct alter_client_quotas_request_entity_data *part = &limiting->in->entity.items[i];
        limiting->out->entity.items[i].entity_type = part->entity_type;
        limiting->out->entity.items[i].entity_name = part->entity_name;
        limiting->record.entity.items[i].entity_type = part->entity_type;
        limiting->record.entity.items[i].entity_name = part->entity_name;
    }
    return true;
}

/* The same text for the same entity, whatever the order of its parts. At most two parts matter:
 * more are refused. */
static struct view entity_text(struct step *step,
                               const struct alter_client_quotas_request_entry_data *in)
{
    struct view texts[2] = {VIEW_EMPTY, VIEW_EMPTY};
    for (int32_t i = 0; i < MIN(in->entity.count, 2); i++) {
        const struct alter_client_quotas_request_entity_data *part = &in->entity.items[i];
        struct view size =
            join_number(step->arena, part->entity_name.null ? -1 : (int64_t)part->entity_name.size);
        texts[i] = JOIN(step->arena, part->entity_type, VIEW(" "), size, VIEW(" "),
                        part->entity_name.null ? VIEW_EMPTY : part->entity_name);
    }
    bool swap = view_compare(texts[0], texts[1]) > 0;
    return JOIN(step->arena, texts[swap], VIEW(";"), texts[!swap]);
}

static enum step_result limiting_run(struct limiting *limiting, uint32_t times, bool validate_only)
{
    bool memory = true;
    struct step *step = limiting->step;
    if (!limiting->cluster->active) {
        limiting->out->error_code = KAFKA_NOT_CONTROLLER;
        return STEP_DONE;
    }
    if (!cluster_allows(step, CLUSTER_OP_ALTER_CONFIGS, CLUSTER_ON_CLUSTER,
                        CLUSTER_ON_CLUSTER_NAME)) {
        limiting->out->error_code = KAFKA_CLUSTER_AUTHORIZATION_FAILED;
        return STEP_DONE;
    }
    if (times > 1) {
        (void)limiting_fail(limiting, VIEW("the entity is named twice"));
        return STEP_DONE;
    }
    if (!limiting_check(limiting, &memory)) return memory ? cluster_done(step) : STEP_E_MEMORY;
    if ((uint32_t)limiting->in->ops.count > step_room(step)) {
        limiting->out->error_code = KAFKA_POLICY_VIOLATION;
        limiting->out->error_message = VIEW("the request makes more than 10000 records");
        return STEP_DONE;
    }
    return validate_only ? STEP_DONE : limiting_add(limiting);
}

enum step_result cluster_alter_client_quotas(struct cluster *cluster,
                                             struct step *step,
                                             const struct alter_client_quotas_request *in,
                                             struct alter_client_quotas_response *out)
{
    wire_defaults(&wire_alter_client_quotas_response, out);
    uint32_t count = (uint32_t)MAX(in->entries.count, 0);
    struct names names;
    struct view *texts = step_get(step, (count + 1) * sizeof(*texts));
    out->entries.items = step_get(step, (count + 1) * sizeof(out->entries.items[0]));
    if (texts == NULL || out->entries.items == NULL ||
        !names_init(&names, step->arena, count, step_random(step)))
        return STEP_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        texts[i] = entity_text(step, &in->entries.items[i]);
        if (texts[i].null) return STEP_E_MEMORY;
        names_see(&names, texts[i]);
    }
    out->entries.count = (int32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        struct limiting limiting = {
            .cluster = cluster,
            .step = step,
            .in = &in->entries.items[i],
            .out = &out->entries.items[i],
        };
        wire_struct_defaults(&wire_alter_client_quotas_response_entry_data_shape, limiting.out);
        limiting.out->error_message = VIEW_NULL;
        if (!limiting_copy_entity(&limiting)) return STEP_E_MEMORY;
        enum step_result result =
            limiting_run(&limiting, names_seen(&names, texts[i]), in->validate_only);
        if (result != STEP_DONE) return result;
    }
    step->atomic = true;
    return cluster_done(step);
}
