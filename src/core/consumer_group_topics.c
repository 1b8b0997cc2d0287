/* consumer_group_topics.c - what the members of a consumer group want, as a step sees them: names
 * and resolved expressions, the topics of these that are there, and the hash of those.
 *
 * The hash is Apache Kafka's, so that a group that moves between servers does not
 * change its epoch: XXH3-64 over each topic's id, name, partitions and racks, and over these hashes
 * in the order of the names. */
#include "core/consumer_group_internal.h"

#include "base/bytes.h"
#include "base/utf8.h"
#include "base/view_sort.h"
#include "base/xxh3.h"
#include "core/assignor.h"
#include "core/config.h"
#include "core/image.h"

/* Members among whom one is looked for who wants the same as who comes, goes or changes. */
#define CONSUMER_BESIDES_MAX 4u

/* ---- members --------------------------------------------------------------------------------- */

static bool has_left(const struct consumer_edit *edit, struct view id)
{
    if (!edit->replaces.null && view_equal(edit->replaces, id)) return true;
    for (uint32_t i = 0; i < edit->left_count; i++)
        if (view_equal(edit->left[i], id)) return true;
    return false;
}

/* The edited member's id may be one that is there: then it stands once, as it is now. */
bool consumer_group_roster(const struct consumer_group *group,
                           struct arena *arena,
                           const struct consumer_edit *edit,
                           struct consumer_roster *out)
{
    size_t room = (size_t)group->members.count + 1;
    out->members = arena_take(arena, room * sizeof(*out->members));
    out->count = 0;
    if (out->members == NULL) return false;
    list_foreach (link, &group->member_list) {
        const struct consumer_member *member = container_of(link, struct consumer_member, link);
        bool edited = !edit->id.null && view_equal(edit->id, member->id);
        if (edited || has_left(edit, member->id)) continue;
        out->members[out->count++] = (struct consumer_seen){
            .id = member->id, .target_of = member->id, .said = &member->said};
    }
    if (edit->id.null) return true;
    out->members[out->count++] = (struct consumer_seen){
        .id = edit->id,
        .target_of = edit->replaces.null ? edit->id : edit->replaces,
        .said = edit->said,
    };
    return true;
}

static void roster_sift(struct consumer_seen *heap, uint32_t root, uint32_t count)
{
    struct consumer_seen moving = heap[root];
    for (uint32_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && view_compare(heap[child].id, heap[child + 1].id) < 0) child++;
        if (view_compare(moving.id, heap[child].id) >= 0) break;
        heap[root] = heap[child];
    }
    heap[root] = moving;
}

void consumer_roster_sort(struct consumer_roster *roster)
{
    struct consumer_seen *members = roster->members;
    for (uint32_t i = roster->count / 2; i-- > 0;)
        roster_sift(members, i, roster->count);
    for (uint32_t end = roster->count; end-- > 1;) {
        struct consumer_seen last = members[end];
        members[end] = members[0];
        members[0] = last;
        roster_sift(members, 0, end);
    }
}

struct view consumer_group_assignor(const struct groups *groups,
                                    const struct consumer_roster *roster)
{
    struct view rest = config_list(groups->consumer_options.assignors), name, best = VIEW_EMPTY;
    uint32_t most = 0;
    while (config_list_next(&rest, &name)) {
        uint32_t asked = 0;
        if (assignor_by_name(name) == NULL) continue; /* Somebody's class. */
        for (uint32_t i = 0; i < roster->count; i++)
            asked += view_equal(roster->members[i].said->assignor, name);
        if (asked > most || best.size == 0) {
            best = name;
            most = asked;
        }
    }
    return best.size == 0 ? VIEW("uniform") : best;
}

/* ---- topics ---------------------------------------------------------------------------------- */

struct wished {
    const struct view *names;
    uint32_t count;
};

/* What the expression of a member has matched. */
static struct wished wished_by_regex(const struct consumer_group *group,
                                     const struct consumer_edit *edit,
                                     const struct consumer_said *said)
{
    if (said->regex.null || said->regex.size == 0) return (struct wished){0};
    for (uint32_t i = 0; i < edit->matched_count; i++)
        if (view_equal(edit->matched[i].regex, said->regex))
            return (struct wished){edit->matched[i].topics, edit->matched[i].topic_count};
    const struct consumer_regex *regex = consumer_group_regex(group, said->regex);
    if (regex == NULL) return (struct wished){0};
    return (struct wished){regex->topics, regex->topic_count};
}

static const struct image *image_of(const struct consumer_group *group)
{
    return group->groups->image;
}

/* Names in any order and number to the topics that are there, each once, in the order of names. */
static void names_to_topics(const struct image *image,
                            struct view *names,
                            uint32_t count,
                            struct consumer_topics *out)
{
    view_sort(names, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct image_topic *topic;
        if (i > 0 && view_equal(names[i - 1], names[i])) continue;
        topic = image == NULL ? NULL : image_topic(image, names[i]);
        if (topic != NULL) out->items[out->count++] = topic;
    }
}

static bool topics_room(struct arena *arena,
                        size_t count,
                        struct view **names,
                        struct consumer_topics *out)
{
    *names = arena_take(arena, (count + 1) * sizeof(**names));
    out->items = arena_take(arena, (count + 1) * sizeof(struct image_topic *));
    out->count = 0;
    return *names != NULL && out->items != NULL;
}

static uint32_t names_add(struct view *names, uint32_t count, struct wished wished)
{
    for (uint32_t i = 0; i < wished.count; i++)
        names[count++] = wished.names[i];
    return count;
}

bool consumer_group_topics_of(const struct consumer_group *group,
                              struct arena *arena,
                              const struct consumer_edit *edit,
                              const struct consumer_said *said,
                              struct consumer_topics *out)
{
    struct wished matched = wished_by_regex(group, edit, said);
    struct view *names;
    uint32_t count = 0;
    if (!topics_room(arena, (size_t)said->topic_count + matched.count, &names, out)) return false;
    count = names_add(names, count, (struct wished){said->topics, said->topic_count});
    count = names_add(names, count, matched);
    names_to_topics(image_of(group), names, count, out);
    return true;
}

static bool wishes_equal(const struct consumer_said *a, const struct consumer_said *b)
{
    if (a->topic_count != b->topic_count || !view_equal(a->regex, b->regex)) return false;
    for (uint32_t k = 0; k < a->topic_count; k++)
        if (!view_equal(a->topics[k], b->topics[k])) return false;
    return true;
}

/* Most members of a group want what the one before wants: it adds no names. */
static bool wants_the_same(const struct consumer_roster *roster, uint32_t i)
{
    return i > 0 && wishes_equal(roster->members[i - 1].said, roster->members[i].said);
}

/* Does one of the first members, who stays as it is, want the same? */
static bool wanted_besides(const struct consumer_group *group,
                           const struct consumer_edit *edit,
                           const struct consumer_said *said)
{
    uint32_t left = CONSUMER_BESIDES_MAX;
    list_foreach (link, &group->member_list) {
        const struct consumer_member *member = container_of(link, struct consumer_member, link);
        if (left-- == 0) return false;
        if (!edit->id.null && view_equal(edit->id, member->id)) continue;
        if (!has_left(edit, member->id) && wishes_equal(&member->said, said)) return true;
    }
    return false;
}

static bool wanted_before_besides(const struct consumer_group *group,
                                  const struct consumer_edit *edit,
                                  struct view id)
{
    const struct consumer_member *member = id.null ? NULL : consumer_group_member(group, id);
    return member == NULL || wanted_besides(group, edit, &member->said);
}

bool consumer_group_topics_stay(const struct consumer_group *group,
                                const struct consumer_edit *edit)
{
    if (group->topics_seen != group->groups->topics_version || edit->matched_count > 0)
        return false;
    if (!wanted_before_besides(group, edit, edit->id) ||
        !wanted_before_besides(group, edit, edit->replaces))
        return false;
    for (uint32_t i = 0; i < edit->left_count; i++)
        if (!wanted_before_besides(group, edit, edit->left[i])) return false;
    return edit->id.null || wanted_besides(group, edit, edit->said);
}

bool consumer_group_topics(const struct consumer_group *group,
                           struct arena *arena,
                           const struct consumer_edit *edit,
                           const struct consumer_roster *roster,
                           struct consumer_topics *out)
{
    struct view *names;
    size_t room = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < roster->count; i++) {
        if (wants_the_same(roster, i)) continue;
        room += (size_t)roster->members[i].said->topic_count +
                wished_by_regex(group, edit, roster->members[i].said).count;
    }
    if (!topics_room(arena, room, &names, out)) return false;
    for (uint32_t i = 0; i < roster->count; i++) {
        if (wants_the_same(roster, i)) continue;
        const struct consumer_said *said = roster->members[i].said;
        count = names_add(names, count, (struct wished){said->topics, said->topic_count});
        count = names_add(names, count, wished_by_regex(group, edit, said));
    }
    names_to_topics(image_of(group), names, count, out);
    return true;
}

/* ---- the hash -------------------------------------------------------------------------------- */

struct hashing {
    struct arena *arena;
    uint8_t *bytes;
    size_t size;
    size_t room;
    const struct image_node *broker;
    int32_t broker_id;
    bool broker_known;
};

/* Room for so many more bytes. False: no memory. */
static bool hash_room(struct hashing *h, size_t more)
{
    if (h->size + more <= h->room) return true;
    size_t room = MAX(h->room * 2, h->size + more + 256);
    uint8_t *bytes = arena_take(h->arena, room);
    if (bytes == NULL) return false;
    if (h->size > 0) memcpy(bytes, h->bytes, h->size);
    h->bytes = bytes;
    h->room = room;
    return true;
}

static void put_le(struct hashing *h, uint64_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        h->bytes[h->size++] = (uint8_t)(value >> (8 * i));
}

/* Java's characters, then how many. */
static bool put_text(struct hashing *h, struct view text)
{
    uint32_t units = 0;
    if (!hash_room(h, 2 * (size_t)text.size + 4)) return false;
    for (uint32_t at = 0; at < text.size; units++) {
        uint32_t c = utf8_next(text, &at);
        if (c >= 0x10000) {
            put_le(h, 0xd800 + ((c - 0x10000) >> 10), 2);
            c = 0xdc00 + ((c - 0x10000) & 0x3ff);
            units++;
        }
        put_le(h, c, 2);
    }
    put_le(h, units, 4);
    return true;
}

/* The broker last looked up: a topic's partitions have the same few, or one. */
static const struct image_node *broker_of(struct hashing *h, const struct image *image, int32_t id)
{
    if (!h->broker_known || h->broker_id != id) h->broker = image_broker(image, id);
    h->broker_known = true;
    h->broker_id = id;
    return h->broker;
}

static bool put_racks(struct hashing *h,
                      const struct image *image,
                      const struct image_partition *partition)
{
    struct image_ids replicas = image_list(partition, IMAGE_REPLICAS);
    struct view few[8], *racks = few;
    uint32_t count = 0;
    if (replicas.count > ARRAY_SIZE(few))
        racks = arena_take(h->arena, (size_t)replicas.count * sizeof(*racks));
    if (racks == NULL) return false;
    for (uint32_t i = 0; i < replicas.count; i++) {
        const struct image_node *broker = broker_of(h, image, replicas.items[i]);
        if (broker != NULL && !broker->rack.null) racks[count++] = broker->rack;
    }
    view_sort(racks, count);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && view_equal(racks[i - 1], racks[i])) continue;
        size_t at = h->size;
        if (!hash_room(h, 4)) return false;
        put_le(h, 0, 4);
        if (!put_text(h, racks[i])) return false;
        memcpy(h->bytes + at, h->bytes + h->size - 4, 4); /* Its length, before it too. */
    }
    return true;
}

static bool topic_hash(struct arena *arena,
                       const struct image *image,
                       const struct image_topic *topic,
                       uint64_t *out)
{
    struct hashing h = {.arena = arena};
    if (!hash_room(&h, 1 + 16)) return false;
    put_le(&h, 0, 1); /* Version of this form. */
    put_le(&h, load_be64(topic->id.bytes), 8);
    put_le(&h, load_be64(topic->id.bytes + 8), 8);
    if (!put_text(&h, topic->name) || !hash_room(&h, 4)) return false;
    put_le(&h, (uint32_t)topic->partition_count, 4);
    for (int32_t i = 0; i < topic->partition_count; i++) {
        const struct image_partition *partition = image_partition(topic, i);
        if (!hash_room(&h, 4)) return false;
        put_le(&h, (uint32_t)i, 4);
        if (partition != NULL && !put_racks(&h, image, partition)) return false;
    }
    *out = xxh3_64(h.bytes, h.size);
    return true;
}

bool consumer_group_hash(const struct groups *groups,
                         struct arena *arena,
                         const struct consumer_topics *topics,
                         int64_t *out)
{
    struct hashing h = {.arena = arena};
    *out = 0;
    if (topics->count == 0) return true;
    if (!hash_room(&h, 8 * (size_t)topics->count)) return false;
    for (uint32_t i = 0; i < topics->count; i++) {
        uint64_t hash;
        if (!topic_hash(arena, groups->image, topics->items[i], &hash)) return false;
        put_le(&h, hash, 8);
    }
    *out = (int64_t)xxh3_64(h.bytes, h.size);
    return true;
}
