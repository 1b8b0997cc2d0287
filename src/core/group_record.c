/* group_record.c - a classic group as records of __consumer_offsets, written, applied and loaded.
 */
#include "core/consumer_group_internal.h"
#include "core/names.h"

#include "base/bytes.h"
#include "base/reader.h"
#include "base/xxh3.h"
#include "gen/group_metadata_key.h"
#include "gen/group_metadata_value.h"
#include "gen/join_group_response.h"
#include "gen/offset_commit_key.h"
#include "gen/offset_commit_value.h"
#include "gen/sync_group_request.h"

#define KEY_LEGACY_COMMIT    0
#define KEY_OFFSET_COMMIT    1
#define KEY_GROUP_METADATA   2
#define GROUP_RECORD_VERSION 3 /* As 4.4 writes it. */

/* ---- writing --------------------------------------------------------------------------------- */

/* What the leader gives to each member, of two assignments the last; nothing to who has none.
 * Ids that are no member's are left out. O(members + assignments). */
static bool assign_all(const struct group *group,
                       struct step *step,
                       const struct sync_group_request *in,
                       struct group_metadata_value *out)
{
    struct names places;
    uint32_t count = (uint32_t)out->members.count;
    if (!names_init(&places, step->arena, count, group->members.seed)) return false;
    for (uint32_t i = 0; i < count; i++) {
        (void)names_see(&places, out->members.items[i].member_id);
        out->members.items[i].assignment = VIEW_EMPTY;
    }
    for (int32_t i = 0; i < in->assignments.count; i++) {
        uint32_t place = names_place(&places, in->assignments.items[i].member_id);
        if (place == NAMES_NONE) continue;
        assert(place < count);
        out->members.items[place].assignment = in->assignments.items[i].assignment;
    }
    return true;
}

static void record_member(const struct member *member,
                          struct group_metadata_value_member_metadata *out)
{
    struct view metadata = group_protocols_metadata(member->protocols, member->group->protocol);
    wire_struct_defaults(&wire_group_metadata_value_member_metadata_shape, out);
    out->member_id = member->id;
    out->group_instance_id = member->instance;
    out->client_id = member->client_id;
    out->client_host = member->client_host;
    out->rebalance_timeout = member->rebalance_ms;
    out->session_timeout = member->session_ms;
    out->subscription = metadata.null ? VIEW_EMPTY : metadata;
    out->assignment = member->assignment.null ? VIEW_EMPTY : member->assignment;
}

static bool key_put(struct step *step, struct view id, struct step_part *out)
{
    struct group_metadata_key *key = step_get(step, sizeof(*key));
    if (key == NULL) return false;
    wire_defaults(&wire_group_metadata_key, key);
    key->group = id;
    *out = (struct step_part){
        .message = &wire_group_metadata_key,
        .value = key,
        .version = wire_group_metadata_key.version_min,
    };
    return true;
}

/* The group as it is, with the leader's assignments if they are given. The record points into the
 * members: it is encoded before anything else happens. */
bool group_record_put(const struct group *group,
                      struct step *step,
                      const struct sync_group_request *assignments)
{
    struct step_part key;
    struct group_metadata_value *value = step_get(step, sizeof(*value));
    if (value == NULL || !key_put(step, group->id, &key)) return false;
    wire_defaults(&wire_group_metadata_value, value);
    value->protocol_type = group->protocol_type.null ? VIEW_EMPTY : group->protocol_type;
    value->generation = group->generation;
    value->protocol = group->protocol;
    value->leader = group->leader == NULL ? VIEW_NULL : group->leader->id;
    value->current_state_timestamp = group->state_wall_ms;
    if (group->members.count > 0) {
        value->members.items = step_get(step, group->members.count * sizeof(*value->members.items));
        if (value->members.items == NULL) return false;
    }
    list_foreach (link, &group->member_list) {
        const struct member *member = container_of(link, struct member, link);
        struct group_metadata_value_member_metadata *item =
            &value->members.items[value->members.count++];
        record_member(member, item);
    }
    if (assignments != NULL && !assign_all(group, step, assignments, value)) return false;
    struct step_part part = {
        .message = &wire_group_metadata_value,
        .value = value,
        .version = GROUP_RECORD_VERSION,
    };
    /* Encoded at once: what follows in the step may change the members. */
    part = (struct step_part){.bytes = step_encode(step->arena, &part)};
    key = (struct step_part){.bytes = step_encode(step->arena, &key)};
    return !part.bytes.null && !key.bytes.null && step_add_keyed(step, key, part);
}

bool group_tombstone_put(struct step *step, struct view id)
{
    struct step_part key;
    if (!key_put(step, id, &key)) return false;
    key = (struct step_part){.bytes = step_encode(step->arena, &key)};
    return !key.bytes.null && step_add_keyed(step, key, (struct step_part){.bytes = VIEW_NULL});
}

/* ---- decoding -------------------------------------------------------------------------------- */

const void *group_part_decode(struct arena *arena,
                              struct view bytes,
                              const struct wire_message *message,
                              int16_t version)
{
    const struct wire_form *form = wire_form(message, version);
    void *out = form == NULL ? NULL : arena_get(arena, message->size_bytes);
    struct reader in = reader_of(bytes);
    (void)reader_be16(&in);
    if (out == NULL || !wire_decode(&in, form, arena, out)) return NULL;
    return out;
}

struct decoded {
    int16_t type;
    const void *key;
    const void *value; /* NULL: a tombstone. */
};

static enum groups_result record_decode(struct arena *arena,
                                        struct view key,
                                        struct view value,
                                        struct decoded *out)
{
    if (key.null || key.size < 2) return GROUPS_E_FAULT;
    out->type = (int16_t)load_be16(key.data);
    if (out->type < KEY_LEGACY_COMMIT || out->type > KEY_GROUP_METADATA) return GROUPS_SKIPPED;
    bool group = out->type == KEY_GROUP_METADATA;
    const struct wire_message *k = group ? &wire_group_metadata_key : &wire_offset_commit_key;
    const struct wire_message *v = group ? &wire_group_metadata_value : &wire_offset_commit_value;
    out->key = group_part_decode(arena, key, k, k->version_min);
    out->value = NULL;
    if (out->key == NULL) return arena->failed ? GROUPS_E_MEMORY : GROUPS_E_FAULT;
    if (value.null) return GROUPS_OK;
    if (value.size < 2) return GROUPS_E_FAULT;
    out->value = group_part_decode(arena, value, v, (int16_t)load_be16(value.data));
    if (out->value == NULL) return arena->failed ? GROUPS_E_MEMORY : GROUPS_E_FAULT;
    return GROUPS_OK;
}

/* ---- loading --------------------------------------------------------------------------------- */

static bool load_member(struct group *group, const struct group_metadata_value_member_metadata *in)
{
    struct mem *mem = group->groups->mem;
    struct member_names names = {
        .id = in->member_id,
        .instance = in->group_instance_id,
        .client_id = in->client_id,
        .client_host = in->client_host,
    };
    if (group_member_by_id(group, in->member_id) != NULL)
        return true; /* Twice: the first stands. */
    if (!names.instance.null && group_static_member(group, names.instance) != NULL)
        names.instance = VIEW_NULL;
    struct member_protocols *protocols =
        group_protocols_one(mem, group->protocol, in->subscription);
    struct member *member = protocols == NULL ? NULL : member_new(group, &names, protocols);
    if (member == NULL) {
        group_protocols_free(mem, protocols);
        return false;
    }
    member->session_ms = in->session_timeout;
    member->rebalance_ms =
        in->rebalance_timeout == -1 ? in->session_timeout : in->rebalance_timeout;
    if (!group_text_set(mem, &member->assignment, in->assignment) || !group_add(group, member)) {
        member_free(member);
        return false;
    }
    return true;
}

/* All of the group but its offsets, which have records of their own. */
static void load_clear(struct group *group)
{
    list_foreach (link, &group->member_list)
        group_remove(group, container_of(link, struct member, link), GROUP_EVENT_LEFT);
    group_text_free(group->groups->mem, &group->protocol_type);
    group_text_free(group->groups->mem, &group->protocol);
}

uint64_t group_hash(struct view id)
{
    return xxh3_64(id.data, id.size) | 1; /* Never 0. */
}

/* `ended`: groups->ended before this record. */
static enum groups_result load_group(struct groups *groups,
                                     struct view id,
                                     const struct group_metadata_value *in,
                                     uint64_t ended)
{
    struct group *group = groups_find(groups, id);
    if (in == NULL) {
        if (group != NULL) group_forget(group);
        return GROUPS_OK;
    }
    if (group == NULL) group = group_new(groups, id);
    if (group == NULL) return GROUPS_E_MEMORY;
    consumer_group_free(group);
    load_clear(group);
    bool made = (in->protocol_type.size == 0 ||
                 group_text_set(groups->mem, &group->protocol_type, in->protocol_type)) &&
                group_text_set(groups->mem, &group->protocol, in->protocol);
    for (int32_t i = 0; made && i < in->members.count; i++)
        made = load_member(group, &in->members.items[i]);
    group->generation = in->generation;
    group->leader = in->leader.null ? NULL : group_member_by_id(group, in->leader);
    group->state = group->members.count == 0 ? GROUP_EMPTY : GROUP_STABLE;
    group->previous = GROUP_EMPTY;
    group->downgraded = ended == group_hash(id);
    group->state_wall_ms = in->current_state_timestamp;
    return made ? GROUPS_OK : GROUPS_E_MEMORY;
}

enum groups_result groups_load(struct groups *groups,
                               struct arena *arena,
                               struct view key,
                               struct view value,
                               struct groups_place place)
{
    struct decoded record;
    uint64_t ended = groups->ended;
    groups->ended = 0;
    if (!key.null && key.size >= 2 && consumer_key((int16_t)load_be16(key.data)))
        return consumer_group_apply(groups, arena, key, value);
    enum groups_result result = record_decode(arena, key, value, &record);
    if (result != GROUPS_OK) return result;
    if (record.type != KEY_GROUP_METADATA)
        return offsets_apply(groups, record.key, record.value, place);
    const struct group_metadata_key *of = record.key;
    return load_group(groups, of->group, record.value, ended);
}

enum groups_result groups_load_marker(struct groups *groups, int64_t producer_id, bool committed)
{
    return offsets_marker(groups, producer_id, committed);
}

void groups_loaded(struct groups *groups, const struct step *step)
{
    groups_begin(groups, step);
    groups->loaded_wall_ms = step->wall_ms;
    list_foreach (link, &groups->all) {
        struct group *group = container_of(link, struct group, link);
        if (group->consumer != NULL) consumer_group_loaded(group);
        list_foreach (at, &group->member_list)
            group_touch(container_of(at, struct member, link));
        /* Apache Kafka forgets the second: partitions of who made it a classic group have no owner
         * then until somebody joins or leaves. */
        bool unfinished = group->downgraded && group->members.count > 0;
        if (group->members.count <= groups->options.size_max && !unfinished) continue;
        struct step none = *step; /* Nobody has joined yet: it makes no record. */
        group_prepare(group, &none);
        assert(none.record_count == step->record_count);
    }
}

/* ---- applying -------------------------------------------------------------------------------- */

/* The leader's assignments are logged: members that wait get theirs. */
static bool apply_assignments(struct group *group, const struct group_metadata_value *in)
{
    assert(group->state == GROUP_COMPLETING);
    for (int32_t i = 0; i < in->members.count; i++) {
        struct member *member = group_member_by_id(group, in->members.items[i].member_id);
        assert(member != NULL); /* Nothing has happened since the record was made. */
        if (!group_text_set(group->groups->mem, &member->assignment,
                            in->members.items[i].assignment))
            return false;
    }
    group_move(group, GROUP_STABLE);
    list_foreach (link, &group->member_list) {
        struct member *member = container_of(link, struct member, link);
        if (member->sync == NULL) continue;
        group_sync_assigned(member, member->sync);
        member->sync = NULL;
        group_touch(member);
    }
    return true;
}

/* A live group's record says what the step has done to it already, but for assignments, which
 * count from here on. */
static enum groups_result apply_group(struct groups *groups,
                                      struct view id,
                                      const struct group_metadata_value *in)
{
    struct group_decision *decision = &groups->decision;
    struct group *group = groups_find(groups, id);
    if (in == NULL) {
        if (group == NULL || group->consumer != NULL) return GROUPS_OK;
        group_waits_end(group, KAFKA_REBALANCE_IN_PROGRESS); /* It is a consumer group now. */
        group_forget(group);
        return GROUPS_OK;
    }
    if (decision->kind == DECISION_DOWNGRADE) return load_group(groups, id, in, 0);
    if (decision->kind == DECISION_SYNC && decision->group == group)
        return apply_assignments(group, in) ? GROUPS_OK : GROUPS_E_MEMORY;
    return GROUPS_OK;
}

static enum groups_result apply_one(struct groups *groups,
                                    const struct step *step,
                                    uint32_t at,
                                    int64_t offset)
{
    struct decoded record;
    struct view key = step->records[at].key.bytes, value = step->records[at].value.bytes;
    struct groups_place place = {.offset = offset + at, .producer_id = -1};
    if (consumer_key((int16_t)load_be16(key.data)))
        return consumer_group_apply(groups, step->arena, key, value);
    enum groups_result result = record_decode(step->arena, key, value, &record);
    if (result != GROUPS_OK) return result;
    const struct group_metadata_key *of = record.key;
    return record.type == KEY_GROUP_METADATA
               ? apply_group(groups, of->group, record.value)
               : offsets_apply(groups, record.key, record.value, place);
}

enum groups_result groups_apply(struct groups *groups, const struct step *step, int64_t offset)
{
    struct group_decision *decision = &groups->decision;
    enum groups_result result = GROUPS_OK;
    for (uint32_t i = 0; i < step->record_count && result == GROUPS_OK; i++)
        result = apply_one(groups, step, i, offset);
    assert(result != GROUPS_E_FAULT); /* They are our own. */
    if (decision->kind == DECISION_REPLACED) member_free(decision->old);
    /* In no group yet, where groups_unload() would find it. */
    if (decision->kind == DECISION_DOWNGRADE && decision->wait != NULL && result != GROUPS_OK)
        group_join_error(groups, decision->wait, KAFKA_NOT_COORDINATOR, VIEW_EMPTY);
    decision->kind = DECISION_NONE;
    if (result == GROUPS_OK) consumer_group_settle(groups);
    return result;
}

/* ---- taking back ----------------------------------------------------------------------------- */

static void created_back(struct groups *groups, struct group_decision *d, enum kafka_error error)
{
    list_foreach (link, &d->group->member_list) {
        struct member *member = container_of(link, struct member, link);
        assert(member->join == d->wait); /* The group is as old as this step. */
        member_park_join(member, NULL);
    }
    group_join_error(groups, d->wait, error, VIEW_EMPTY);
    group_free(d->group);
}

static void sync_back(struct group *group, struct step *step, enum kafka_error error)
{
    list_foreach (link, &group->member_list) {
        struct member *member = container_of(link, struct member, link);
        group_text_free(group->groups->mem, &member->assignment);
        if (member->sync == NULL) continue;
        group_sync_error(group->groups, member->sync, error);
        member->sync = NULL;
        group_touch(member);
    }
    group_prepare(group, step);
}

static void replaced_back(struct groups *groups, struct group_decision *d, enum kafka_error error)
{
    struct group *group = d->group;
    group_take(group, d->fresh);
    member_free(d->fresh);
    if (!group_add(group, d->old)) {
        member_free(d->old); /* No memory: it has to join as a new one. */
    } else {
        if (d->old_led) group->leader = d->old;
        group_touch(d->old);
    }
    if (list_empty(&d->wait->link)) return; /* Not answered yet: the caller does it. */
    group_join_error(groups, d->wait, error, VIEW_EMPTY);
    d->wait->join->generation_id = group->generation;
}

void groups_failed(struct groups *groups, const struct step *step, enum kafka_error error)
{
    struct group_decision decision = groups->decision;
    groups->decision.kind = DECISION_NONE;
    groups->settle.set = false;
    struct step none = *step;
    switch (decision.kind) {
    case DECISION_NONE: break;
    case DECISION_CREATED: created_back(groups, &decision, error); break;
    case DECISION_SYNC: sync_back(decision.group, &none, error); break;
    case DECISION_REPLACED: replaced_back(groups, &decision, error); break;
    case DECISION_CLASSIC:
    case DECISION_DOWNGRADE:
        if (decision.wait != NULL) group_join_error(groups, decision.wait, error, VIEW_EMPTY);
        break;
    }
    assert(none.record_count == step->record_count);
}
