/* group_member.c - members of a classic group: their protocols, who is in, what they agree on. */
#include "core/consumer_group_internal.h"

#include "base/reader.h"
#include "gen/join_group_request.h"

/* ---- protocols ------------------------------------------------------------------------------- */

static uint8_t *bytes_put(uint8_t *at, struct view *out, struct view in)
{
    *out = in.null ? VIEW_NULL : view_of(at, in.size);
    if (in.null || in.size == 0) return at;
    memcpy(at, in.data, in.size);
    return at + in.size;
}

static bool protocol_repeated(const struct join_group_request *in, int32_t at)
{
    for (int32_t i = 0; i < at; i++)
        if (view_equal(in->protocols.items[i].name, in->protocols.items[at].name)) return true;
    return false;
}

struct member_protocols *group_protocols_new(struct mem *mem, const struct join_group_request *in)
{
    struct member_protocols *out;
    size_t size = sizeof(*out) + (size_t)in->protocols.count * sizeof(out->items[0]);
    assert(in->protocols.count >= 0);
    assert(in->protocols.count <= GROUP_PROTOCOLS_MAX);
    for (int32_t i = 0; i < in->protocols.count; i++)
        size += (size_t)in->protocols.items[i].name.size + in->protocols.items[i].metadata.size;
    if (size > UINT32_MAX) return NULL;
    out = mem_get(mem, size);
    if (out == NULL) return NULL;
    uint8_t *at = (uint8_t *)&out->items[in->protocols.count];
    for (int32_t i = 0; i < in->protocols.count; i++) {
        if (protocol_repeated(in, i)) continue;
        struct member_protocol *item = &out->items[out->count++];
        at = bytes_put(at, &item->name, in->protocols.items[i].name);
        at = bytes_put(at, &item->metadata, in->protocols.items[i].metadata);
    }
    out->size_bytes = (uint32_t)size;
    return out;
}

struct member_protocols *group_protocols_one(struct mem *mem,
                                             struct view name,
                                             struct view metadata)
{
    struct join_group_request_join_group_request_protocol item = {.name = name,
                                                                  .metadata = metadata};
    struct join_group_request in = {
        .protocols = {.items = &item, .count = name.null ? 0 : 1}
    };
    return group_protocols_new(mem, &in);
}

void group_protocols_free(struct mem *mem, struct member_protocols *protocols)
{
    if (protocols != NULL) mem_put(mem, protocols, protocols->size_bytes);
}

bool group_protocols_equal(const struct member_protocols *protocols,
                           const struct join_group_request *in)
{
    if ((int32_t)protocols->count != in->protocols.count) return false;
    for (uint32_t i = 0; i < protocols->count; i++)
        if (!view_equal(protocols->items[i].name, in->protocols.items[i].name) ||
            !view_equal(protocols->items[i].metadata, in->protocols.items[i].metadata))
            return false;
    return true;
}

struct view group_protocols_metadata(const struct member_protocols *protocols, struct view name)
{
    for (uint32_t i = 0; i < protocols->count; i++)
        if (view_equal(protocols->items[i].name, name)) return protocols->items[i].metadata;
    return VIEW_NULL;
}

/* ---- votes: how many members list a protocol ------------------------------------------------- */

static struct group_vote *vote_find(const struct group *group, struct view name)
{
    list_foreach (link, &group->votes) {
        struct group_vote *vote = container_of(link, struct group_vote, link);
        if (view_equal(vote->name, name)) return vote;
    }
    return NULL;
}

static void votes_less(struct group *group,
                       const struct member_protocols *protocols,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct group_vote *vote = vote_find(group, protocols->items[i].name);
        assert(vote != NULL);
        if (--vote->count > 0) continue;
        list_remove(&vote->link);
        mem_put(group->groups->mem, vote, sizeof(*vote) + vote->name.size);
    }
}

static bool votes_more(struct group *group, const struct member_protocols *protocols)
{
    for (uint32_t i = 0; i < protocols->count; i++) {
        struct view name = protocols->items[i].name;
        struct group_vote *vote = vote_find(group, name);
        if (vote == NULL) {
            vote = mem_get(group->groups->mem, sizeof(*vote) + name.size);
            if (vote == NULL) {
                votes_less(group, protocols, i);
                return false;
            }
            (void)bytes_put((uint8_t *)(vote + 1), &vote->name, name);
            list_append(&group->votes, &vote->link);
        }
        vote->count++;
    }
    return true;
}

bool group_supports(const struct group *group, const struct join_group_request *in)
{
    if (in->protocols.count > GROUP_PROTOCOLS_MAX) return false;
    if (group->state == GROUP_EMPTY) return in->protocol_type.size > 0 && in->protocols.count > 0;
    if (!view_equal(group->protocol_type, in->protocol_type)) return false;
    for (int32_t i = 0; i < in->protocols.count; i++) {
        const struct group_vote *vote = vote_find(group, in->protocols.items[i].name);
        if ((vote == NULL ? 0 : vote->count) == group->members.count) return true;
    }
    return false;
}

/* Each member votes for the first of its protocols that all members list; most votes win, among
 * equals the one that was named first. */
struct view group_choose(struct group *group)
{
    struct group_vote *best = NULL;
    assert(group->members.count > 0);
    list_foreach (link, &group->votes)
        container_of(link, struct group_vote, link)->tally = 0;
    list_foreach (link, &group->member_list) {
        const struct member *member = container_of(link, struct member, link);
        for (uint32_t i = 0; i < member->protocols->count; i++) {
            struct group_vote *vote = vote_find(group, member->protocols->items[i].name);
            if (vote->count < group->members.count) continue;
            vote->tally++;
            break;
        }
    }
    list_foreach (link, &group->votes) {
        struct group_vote *vote = container_of(link, struct group_vote, link);
        if (vote->tally > 0 && (best == NULL || vote->tally > best->tally)) best = vote;
    }
    return best == NULL ? VIEW_NULL : best->name;
}

/* ---- members --------------------------------------------------------------------------------- */

struct member *member_new(struct group *group,
                          const struct member_names *names,
                          struct member_protocols *protocols)
{
    size_t size = sizeof(struct member) + names->id.size + names->instance.size +
                  names->client_id.size + names->client_host.size;
    struct member *member = mem_get(group->groups->mem, size);
    if (member == NULL) return NULL;
    uint8_t *at = (uint8_t *)(member + 1);
    at = bytes_put(at, &member->id, names->id);
    at = bytes_put(at, &member->instance, names->instance);
    at = bytes_put(at, &member->client_id, names->client_id);
    (void)bytes_put(at, &member->client_host, names->client_host);
    member->size_bytes = (uint32_t)size;
    member->group = group;
    member->protocols = protocols;
    member->assignment = VIEW_NULL;
    list_init(&member->link);
    wheel_entry_init(&member->session.entry);
    member->session.kind = TIMER_SESSION;
    member->by_id.key = member->id;
    member->by_instance.key = member->instance;
    return member;
}

void member_free(struct member *member)
{
    struct mem *mem = member->group->groups->mem;
    group_timer_cancel(member->group, &member->session);
    group_protocols_free(mem, member->protocols);
    group_text_free(mem, &member->assignment);
    mem_put(mem, member, member->size_bytes);
}

bool group_add(struct group *group, struct member *member)
{
    if (!votes_more(group, member->protocols)) return false;
    if (!map_insert(&group->members, &member->by_id)) {
        votes_less(group, member->protocols, member->protocols->count);
        return false;
    }
    if (!member->instance.null && !map_insert(&group->instances, &member->by_instance)) {
        map_remove(&group->members, &member->by_id);
        votes_less(group, member->protocols, member->protocols->count);
        return false;
    }
    list_append(&group->member_list, &member->link);
    if (group->leader == NULL) group->leader = member;
    return true;
}

void group_take(struct group *group, struct member *member)
{
    assert(member->join == NULL);
    assert(member->sync == NULL);
    votes_less(group, member->protocols, member->protocols->count);
    map_remove(&group->members, &member->by_id);
    if (!member->instance.null) map_remove(&group->instances, &member->by_instance);
    list_remove(&member->link);
    member_sync_came(member);
    group_timer_cancel(group, &member->session);
    if (group->leader == member)
        group->leader = list_empty(&group->member_list)
                            ? NULL
                            : container_of(group->member_list.next, struct member, link);
}

void group_remove(struct group *group, struct member *member, enum group_event_kind why)
{
    struct groups *groups = group->groups;
    group_tell_member(member, why);
    if (member->join != NULL) {
        group_join_error(groups, member->join, KAFKA_UNKNOWN_MEMBER_ID, VIEW_EMPTY);
        member_park_join(member, NULL);
    }
    if (member->sync != NULL) group_sync_error(groups, member->sync, KAFKA_UNKNOWN_MEMBER_ID);
    member->sync = NULL;
    group_take(group, member);
    member_free(member);
}

bool member_use_protocols(struct member *member, struct member_protocols *protocols)
{
    struct group *group = member->group;
    if (!votes_more(group, protocols)) return false;
    votes_less(group, member->protocols, member->protocols->count);
    group_protocols_free(group->groups->mem, member->protocols);
    member->protocols = protocols;
    return true;
}

/* NULL: none is parked any more. One that was parked before belongs to a connection that its client
 * has given up; it is told that the group rebalances, which asks it to join again. */
void member_park_join(struct member *member, struct group_wait *wait)
{
    struct group *group = member->group;
    if (member->join != NULL && wait != NULL)
        group_join_error(group->groups, member->join, KAFKA_REBALANCE_IN_PROGRESS, member->id);
    group->joins += (uint32_t)(wait != NULL);
    group->joins -= (uint32_t)(member->join != NULL);
    member->join = wait;
}

void member_sync_came(struct member *member)
{
    struct group *group = member->group;
    if (!member->sync_pending) return;
    member->sync_pending = false;
    if (--group->syncs_pending == 0) group_timer_cancel(group, &group->sync_timer);
}

#define UUID_TEXT_BYTES  36u
#define UUID_SHORT_BYTES 22u

/* "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", as Java's UUIDs are written. */
static void uuid_long(uint8_t *at, struct uuid id)
{
    static const char digits[] = "0123456789abcdef";
    for (uint32_t i = 0; i < sizeof(id.bytes); i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) *at++ = '-';
        *at++ = (uint8_t)digits[id.bytes[i] >> 4];
        *at++ = (uint8_t)digits[id.bytes[i] & 15];
    }
}

/* URL-safe base64 without padding, as Kafka's own are. */
static void uuid_short(uint8_t *at, struct uuid id)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (uint32_t i = 0; i < UUID_SHORT_BYTES; i++) {
        uint32_t bit = 6 * i, byte = bit / 8;
        uint32_t pair = (uint32_t)id.bytes[byte] << 8 | (byte < 15 ? id.bytes[byte + 1] : 0);
        at[i] = (uint8_t)digits[pair >> (10 - bit % 8) & 63];
    }
}

struct view group_member_id_make(struct step *step, struct view prefix)
{
    struct uuid id = step_uuid(step);
    uint32_t size = prefix.null ? UUID_SHORT_BYTES : prefix.size + 1 + UUID_TEXT_BYTES;
    uint8_t *text = step_get(step, size);
    if (text == NULL) return VIEW_NULL;
    if (prefix.null) {
        uuid_short(text, id);
        return view_of(text, size);
    }
    if (prefix.size > 0) memcpy(text, prefix.data, prefix.size);
    text[prefix.size] = '-';
    uuid_long(text + prefix.size + 1, id);
    return view_of(text, size);
}

void group_pending_drop(struct group *group, struct pending_member *pending)
{
    map_remove(&group->pending, &pending->by_id);
    group_timer_cancel(group, &pending->timer);
    mem_put(group->groups->mem, pending, pending->size_bytes);
}

int32_t group_rebalance_ms(const struct group *group)
{
    int32_t most = 0;
    list_foreach (link, &group->member_list)
        most = MAX(most, container_of(link, struct member, link)->rebalance_ms);
    return most;
}

/* ---- subscriptions --------------------------------------------------------------------------- */

enum subscription { SUBSCRIPTION_NO, SUBSCRIPTION_YES, SUBSCRIPTION_BAD };

/* Does the member's subscription name the topic? Only version 0's part is read. */
static enum subscription subscription_has(struct view metadata, struct view topic)
{
    struct reader in = reader_of(metadata.null ? VIEW_EMPTY : metadata);
    bool found = false;
    (void)reader_be16(&in);
    uint32_t count = reader_be32(&in);
    for (uint32_t i = 0; i < count && in.fault == READER_OK; i++) {
        uint16_t size = reader_be16(&in);
        const uint8_t *name = reader_take(&in, size);
        found = found || (name != NULL && view_equal(view_of(name, size), topic));
    }
    if (in.fault != READER_OK) return SUBSCRIPTION_BAD;
    return found ? SUBSCRIPTION_YES : SUBSCRIPTION_NO;
}

bool group_subscribed(const struct group *group, struct view topic)
{
    bool found = false;
    if (group->consumer != NULL) return consumer_group_wants(group->consumer, topic);
    if (!view_is(group->protocol_type, "consumer")) return false;
    if (group->members.count == 0) return false;
    if (group->protocol.null) return true; /* Nobody knows: take it that it is. */
    list_foreach (link, &group->member_list) {
        const struct member *member = container_of(link, struct member, link);
        enum subscription has =
            subscription_has(group_protocols_metadata(member->protocols, group->protocol), topic);
        if (has == SUBSCRIPTION_BAD) return true;
        found = found || has == SUBSCRIPTION_YES;
    }
    return found;
}
