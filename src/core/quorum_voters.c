/* quorum_voters.c - see quorum_voters.h. */
#include "core/quorum_voters.h"

#include "gen/voters_record.h"

static size_t voter_bytes(const struct quorum_voter *voter)
{
    size_t size = voter->endpoint_count * sizeof(struct quorum_endpoint);
    for (uint32_t i = 0; i < voter->endpoint_count; i++)
        size += voter->endpoints[i].name.size + voter->endpoints[i].host.size;
    return (size + 15) & ~(size_t)15;
}

static struct view text_copy(uint8_t **at, struct view text)
{
    if (text.size > 0) memcpy(*at, text.data, text.size);
    struct view copy = view_of(*at, text.size);
    *at += text.size;
    return copy;
}

struct voter_set *quorum_voters_copy(struct mem *mem,
                                     const struct quorum_voter *voters,
                                     uint32_t count,
                                     int64_t offset)
{
    size_t size = sizeof(struct voter_set) + count * sizeof(struct quorum_voter);
    for (uint32_t i = 0; i < count; i++)
        size += voter_bytes(&voters[i]);
    struct voter_set *set = mem_get(mem, size);
    if (set == NULL) return NULL;
    set->offset = offset;
    set->size_bytes = (uint32_t)size;
    set->count = count;
    uint8_t *at = (uint8_t *)&set->voters[count];
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *end = at + voter_bytes(&voters[i]);
        struct quorum_endpoint *endpoints = (struct quorum_endpoint *)(void *)at;
        at += voters[i].endpoint_count * sizeof(*endpoints);
        for (uint32_t e = 0; e < voters[i].endpoint_count; e++) {
            endpoints[e].name = text_copy(&at, voters[i].endpoints[e].name);
            endpoints[e].host = text_copy(&at, voters[i].endpoints[e].host);
            endpoints[e].port = voters[i].endpoints[e].port;
        }
        set->voters[i] = voters[i];
        set->voters[i].endpoints = endpoints;
        at = end;
    }
    list_init(&set->link);
    return set;
}

struct voter_set *quorum_voters_free(struct mem *mem, struct voter_set *set)
{
    return set == NULL ? NULL : mem_put(mem, set, set->size_bytes);
}

static bool voter_from(const struct voters_record_voter *in,
                       struct arena *arena,
                       struct quorum_voter *out)
{
    uint32_t count = (uint32_t)MAX(in->endpoints.count, 0);
    struct quorum_endpoint *endpoints = arena_get(arena, (count + 1) * sizeof(*endpoints));
    if (endpoints == NULL) return false;
    for (uint32_t i = 0; i < count; i++)
        endpoints[i] = (struct quorum_endpoint){
            in->endpoints.items[i].name, in->endpoints.items[i].host, in->endpoints.items[i].port};
    *out = (struct quorum_voter){
        .id = in->voter_id,
        .directory = in->voter_directory_id,
        .endpoints = endpoints,
        .endpoint_count = count,
        .kraft_min = in->k_raft_version_feature.min_supported_version,
        .kraft_max = in->k_raft_version_feature.max_supported_version,
    };
    return true;
}

struct voter_set *quorum_voters_decode(struct mem *mem, struct view record, int64_t offset)
{
    struct arena arena;
    struct voters_record decoded;
    struct voter_set *set = NULL;
    struct reader in = reader_of(record);
    arena_init(&arena, mem, 0);
    if (wire_decode(&in, wire_form(&wire_voters_record, 0), &arena, &decoded)) {
        uint32_t count = (uint32_t)MAX(decoded.voters.count, 0);
        struct quorum_voter *voters = arena_get(&arena, (count + 1) * sizeof(*voters));
        bool whole = voters != NULL;
        for (uint32_t i = 0; whole && i < count; i++)
            whole = voter_from(&decoded.voters.items[i], &arena, &voters[i]);
        if (whole) set = quorum_voters_copy(mem, voters, count, offset);
    }
    arena_free(&arena);
    return set;
}

bool quorum_voter_equal(const struct quorum_voter *a, const struct quorum_voter *b)
{
    if (a->id != b->id || !uuid_equal(a->directory, b->directory) ||
        a->endpoint_count != b->endpoint_count || a->kraft_min != b->kraft_min ||
        a->kraft_max != b->kraft_max)
        return false;
    for (uint32_t i = 0; i < a->endpoint_count; i++)
        if (!view_equal(a->endpoints[i].name, b->endpoints[i].name) ||
            !view_equal(a->endpoints[i].host, b->endpoints[i].host) ||
            a->endpoints[i].port != b->endpoints[i].port)
            return false;
    return true;
}

bool quorum_control_add(struct step *step,
                        int16_t type,
                        const struct wire_message *message,
                        int16_t version,
                        const void *value)
{
    uint8_t *key = step_get(step, 4);
    if (key == NULL) return false;
    store_be16(key, 0);
    store_be16(key + 2, (uint16_t)type);
    return step_add_keyed(
        step, (struct step_part){.bytes = view_of(key, 4)},
        (struct step_part){.message = message, .value = value, .version = version});
}

static bool voter_into(struct step *step,
                       const struct quorum_voter *in,
                       struct voters_record_voter *out)
{
    wire_struct_defaults(&wire_voters_record_voter_shape, out);
    out->voter_id = in->id;
    out->voter_directory_id = in->directory;
    out->k_raft_version_feature.min_supported_version = in->kraft_min;
    out->k_raft_version_feature.max_supported_version = in->kraft_max;
    out->endpoints.items = step_get(step, (in->endpoint_count + 1) * sizeof(*out->endpoints.items));
    if (out->endpoints.items == NULL) return false;
    out->endpoints.count = (int32_t)in->endpoint_count;
    for (uint32_t i = 0; i < in->endpoint_count; i++) {
        wire_struct_defaults(&wire_voters_record_endpoint_shape, &out->endpoints.items[i]);
        out->endpoints.items[i].name = in->endpoints[i].name;
        out->endpoints.items[i].host = in->endpoints[i].host;
        out->endpoints.items[i].port = in->endpoints[i].port;
    }
    return true;
}

bool quorum_voters_add(struct step *step, const struct quorum_voter *voters, uint32_t count)
{
    struct voters_record *record = step_get(step, sizeof(*record));
    if (record == NULL) return false;
    wire_defaults(&wire_voters_record, record);
    record->voters.items = step_get(step, (count + 1) * sizeof(*record->voters.items));
    if (record->voters.items == NULL) return false;
    record->voters.count = (int32_t)count;
    for (uint32_t i = 0; i < count; i++)
        if (!voter_into(step, &voters[i], &record->voters.items[i])) return false;
    return quorum_control_add(step, QUORUM_KRAFT_VOTERS, &wire_voters_record, 0, record);
}
