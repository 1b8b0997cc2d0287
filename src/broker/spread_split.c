/* spread_split.c - a message split into one for each shard, and their answers joined.
 *
 * The generated structs' arrays are all alike (`items`, `count`); which ones, and of what size, the
 * rule says. A shard's message has its items in the order of the request, and so has its answer:
 * walking over the request again and taking the next item of the owner's answer gives the order
 * back. A shard that leaves an item out (a group, or a partition in ListOffsets, that is named
 * twice) leaves it out of the whole.
 */
#include "broker/shards.h"
#include "broker/spread_inside.h"
#include "gen/describe_log_dirs_response.h"
#include "gen/list_groups_response.h"

/* Any array of a generated struct. */
struct array {
    uint8_t *items;
    int32_t count;
};

static struct array array_get(const void *in, uint32_t at)
{
    struct array array;
    memcpy(&array, (const uint8_t *)in + at, sizeof(array));
    array.count = MAX(array.count, 0);
    return array;
}

/* The count of a null array (-1) is only set by who has items. */
static void array_set(void *in, uint32_t at, struct array array)
{
    memcpy((uint8_t *)in + at, &array.items, sizeof(array.items));
    memcpy((uint8_t *)in + at + offsetof(struct array, count), &array.count, sizeof(array.count));
}

static void *element(const struct array *array, const struct spread_array *what, int32_t i)
{
    return array->items + (size_t)i * what->size_bytes;
}

static struct view key_of(const void *item, const struct spread_array *what)
{
    struct view key;
    memcpy(&key, (const uint8_t *)item + what->key, sizeof(key));
    return key;
}

/* A copy of the message in the request's arena, with an empty array of the same room. */
static void *message_copy(struct request *request, const struct spread_array *what)
{
    uint32_t size_bytes = request->api->request->size_bytes;
    struct array all = array_get(request->message, what->at);
    uint8_t *copy = broker_array(request, 1, size_bytes);
    if (copy == NULL) return NULL;
    memcpy(copy, request->message, size_bytes);
    all.items = broker_array(request, (size_t)MAX(all.count, 1), what->size_bytes);
    all.count = 0;
    array_set(copy, what->at, all);
    return all.items == NULL ? NULL : copy;
}

/* One more element at the end of a message's array, which has room. */
static uint8_t *message_push(void *message, const struct spread_array *what, const void *item)
{
    struct array array = array_get(message, what->at);
    uint8_t *place = element(&array, what, array.count);
    memcpy(place, item, what->size_bytes);
    array.count++;
    array_set(message, what->at, array);
    return place;
}

/* If all of it is one shard's: its index; else UINT32_MAX. */
static uint32_t single_owner(const uint8_t *owners, size_t count, uint32_t none)
{
    for (size_t i = 1; i < count; i++)
        if (owners[i] != owners[0]) return UINT32_MAX;
    return count == 0 ? none : owners[0];
}

/* A copy of the first response in hand, as the frame of the joined one. */
static uint8_t *response_frame(struct spread *spread)
{
    uint32_t size_bytes = spread->request->api->response->size_bytes;
    uint8_t *frame = broker_array(spread->request, 1, size_bytes);
    for (uint32_t i = 0; frame != NULL && i < spread->node->count; i++) {
        if (spread->errands[i] == NULL) continue;
        memcpy(frame, spread->errands[i]->response, size_bytes);
        break;
    }
    return frame;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void *join_keys(struct spread *spread)
{
    const struct spread_rule *rule = spread->rule;
    struct array asked = array_get(spread->request->message, rule->request.at);
    uint8_t *frame = response_frame(spread);
    int32_t *taken = broker_array(spread->request, spread->node->count, sizeof(*taken));
    struct array all = {
        broker_array(spread->request, (size_t)asked.count, rule->response.size_bytes), 0};
    if (frame == NULL || taken == NULL || all.items == NULL) return NULL;
    for (int32_t i = 0; i < asked.count; i++) {
        uint8_t owner = spread->owners[i];
        struct array from = array_get(spread->errands[owner]->response, rule->response.at);
        if (taken[owner] == from.count) continue;
        const void *next = element(&from, &rule->response, taken[owner]);
        if (!view_equal(key_of(next, &rule->response),
                        key_of(element(&asked, &rule->request, i), &rule->request)))
            continue;
        taken[owner]++;
        memcpy(element(&all, &rule->response, all.count++), next, rule->response.size_bytes);
    }
    array_set(frame, rule->response.at, all);
    return frame;
}

/* Messages for the owners, filled by `push`; then off. */
static bool keys_split(struct spread *spread, struct array asked)
{
    struct request *request = spread->request;
    const struct spread_rule *rule = spread->rule;
    void **messages = broker_array(request, spread->node->count, sizeof(void *));
    if (messages == NULL) return false;
    for (int32_t i = 0; i < asked.count; i++) {
        void **message = &messages[spread->owners[i]];
        if (*message == NULL) {
            *message = message_copy(request, &rule->request);
            if (*message == NULL || !spread_add(spread, spread->owners[i], *message)) return false;
        }
        (void)message_push(*message, &rule->request, element(&asked, &rule->request, i));
    }
    return true;
}

void spread_keys(struct request *request, const struct spread_rule *rule)
{
    struct node *node = node_of(request->shard);
    struct array asked = array_get(request->message, rule->request.at);
    uint8_t *owners = broker_array(request, (size_t)MAX(asked.count, 1), 1);
    for (int32_t i = 0; owners != NULL && i < asked.count; i++)
        owners[i] = (uint8_t)shards_group_owner(
            node, key_of(element(&asked, &rule->request, i), &rule->request));
    uint32_t owner =
        owners == NULL ? UINT32_MAX : single_owner(owners, (size_t)asked.count, node->index);
    if (owner != UINT32_MAX) {
        spread_whole(request, owner);
        return;
    }
    struct spread *spread = owners == NULL ? NULL : spread_new(request, rule);
    if (spread != NULL) spread->owners = owners;
    if (spread == NULL || !keys_split(spread, asked)) {
        spread_refuse(spread, request);
        return;
    }
    spread->join = join_keys;
    spread_send(spread);
}

/* ---- topics ---------------------------------------------------------------------------------- */

static size_t parts_count(const struct spread_rule *rule, const struct array *topics)
{
    size_t count = 0;
    for (int32_t t = 0; t < topics->count; t++)
        count += (size_t)array_get(element(topics, &rule->request, t), rule->parts.at).count;
    return count;
}

/* A topic's name, also if the request has its id. The null view: unknown. */
static struct view topic_name(const struct request *request,
                              const struct spread_rule *rule,
                              const void *topic)
{
    if (request->version < rule->by_id_since) return key_of(topic, &rule->request);
    struct uuid id;
    memcpy(&id, (const uint8_t *)topic + rule->topic_id, sizeof(id));
    const struct image_topic *known = image_topic_by_id(node_of(request->shard)->image, id);
    return known == NULL ? VIEW_NULL : known->name;
}

static void topics_owners(const struct request *request,
                          const struct spread_rule *rule,
                          const struct array *topics,
                          uint8_t *owners)
{
    const struct node *node = node_of(request->shard);
    for (int32_t t = 0; t < topics->count; t++) {
        const void *topic = element(topics, &rule->request, t);
        struct view name = topic_name(request, rule, topic);
        struct array parts = array_get(topic, rule->parts.at);
        for (int32_t p = 0; p < parts.count; p++) {
            int32_t index;
            memcpy(&index, (uint8_t *)element(&parts, &rule->parts, p) + rule->parts.key,
                   sizeof(index));
            *owners++ = (uint8_t)(name.null ? node->index : shards_owner(node, name, index));
        }
    }
}

/* The message that a shard gets, its topic that is being filled, and which of the request's it is.
 */
struct topics_side {
    void *message;
    uint8_t *topic;
    int32_t topic_index;
};

static uint8_t *side_topic(struct spread *spread,
                           struct topics_side *side,
                           const void *topic,
                           int32_t topic_index)
{
    struct request *request = spread->request;
    const struct spread_rule *rule = spread->rule;
    if (side->topic != NULL && side->topic_index == topic_index) return side->topic;
    struct array parts = array_get(topic, rule->parts.at);
    side->topic = message_push(side->message, &rule->request, topic);
    side->topic_index = topic_index;
    parts.items = broker_array(request, (size_t)MAX(parts.count, 1), rule->parts.size_bytes);
    parts.count = 0;
    array_set(side->topic, rule->parts.at, parts);
    return parts.items == NULL ? NULL : side->topic;
}

static bool topics_split(struct spread *spread, const struct array *topics)
{
    struct request *request = spread->request;
    const struct spread_rule *rule = spread->rule;
    struct topics_side *sides = broker_array(request, spread->node->count, sizeof(*sides));
    const uint8_t *owner = spread->owners;
    if (sides == NULL) return false;
    for (int32_t t = 0; t < topics->count; t++) {
        const void *topic = element(topics, &rule->request, t);
        struct array parts = array_get(topic, rule->parts.at);
        for (int32_t p = 0; p < parts.count; p++, owner++) {
            struct topics_side *side = &sides[*owner];
            if (side->message == NULL) {
                side->message = message_copy(request, &rule->request);
                if (side->message == NULL || !spread_add(spread, *owner, side->message))
                    return false;
            }
            uint8_t *place = side_topic(spread, side, topic, t);
            if (place == NULL) return false;
            (void)message_push(place, &rule->parts, element(&parts, &rule->parts, p));
        }
    }
    return true;
}

/* How far a shard's answer has been taken over. */
struct topics_taken {
    int32_t topic, part;
    int32_t topic_index; /* Of the request, that `topic` answers. */
};

static int32_t part_of(const uint8_t *item, const struct spread_array *what)
{
    int32_t part;
    memcpy(&part, item + what->key, sizeof(part));
    return part;
}

/* This shard's next answer of the request's topic `t`, if it is of this partition; NULL: it left
 * the partition out. */
static const uint8_t *taken_next(struct spread *spread,
                                 struct topics_taken *taken,
                                 const struct errand *errand,
                                 int32_t t,
                                 int32_t part)
{
    const struct spread_rule *rule = spread->rule;
    struct array topics = array_get(errand->response, rule->response.at);
    if (taken->topic_index != t) {
        taken->topic += taken->topic_index >= 0;
        taken->topic_index = t;
        taken->part = 0;
    }
    if (taken->topic >= topics.count) return NULL;
    struct array parts =
        array_get(element(&topics, &rule->response, taken->topic), rule->answers.at);
    if (taken->part >= parts.count) return NULL;
    const uint8_t *next = element(&parts, &rule->answers, taken->part);
    if (part_of(next, &rule->answers) != part) return NULL;
    taken->part++;
    return next;
}

/* The answered topic that `taken` stands in. */
static const void *taken_topic(const struct spread *spread,
                               const struct topics_taken *taken,
                               const struct errand *errand)
{
    struct array topics = array_get(errand->response, spread->rule->response.at);
    return element(&topics, &spread->rule->response, taken->topic);
}

static bool join_topic(struct spread *spread,
                       struct topics_taken *taken,
                       int32_t t,
                       const uint8_t **owner,
                       struct array *all)
{
    const struct spread_rule *rule = spread->rule;
    struct array asked = array_get(spread->request->message, rule->request.at);
    struct array parts = array_get(element(&asked, &rule->request, t), rule->parts.at);
    uint8_t *out = element(all, &rule->response, all->count);
    struct array answers = {
        broker_array(spread->request, (size_t)MAX(parts.count, 1), rule->answers.size_bytes), 0};
    if (answers.items == NULL) return false;
    for (int32_t p = 0; p < parts.count; p++, ++*owner) {
        const struct errand *errand = spread->errands[**owner];
        int32_t part = part_of(element(&parts, &rule->parts, p), &rule->parts);
        const uint8_t *next = taken_next(spread, &taken[**owner], errand, t, part);
        if (next == NULL) continue; /* Named twice, and told once. */
        if (answers.count == 0) {
            memcpy(out, taken_topic(spread, &taken[**owner], errand), rule->response.size_bytes);
            all->count++;
        }
        memcpy(element(&answers, &rule->answers, answers.count++), next, rule->answers.size_bytes);
    }
    if (parts.count == 0) { /* Asked of nobody: its name is all there is to say. */
        struct view name = key_of(element(&asked, &rule->request, t), &rule->request);
        memcpy(out + rule->response.key, &name, sizeof(name));
        all->count++;
    }
    array_set(out, rule->answers.at, answers);
    return true;
}

static void *join_topics(struct spread *spread)
{
    const struct spread_rule *rule = spread->rule;
    struct request *request = spread->request;
    struct array asked = array_get(request->message, rule->request.at);
    uint8_t *frame = response_frame(spread);
    struct topics_taken *taken = broker_array(request, spread->node->count, sizeof(*taken));
    struct array all = {broker_array(request, (size_t)asked.count, rule->response.size_bytes), 0};
    const uint8_t *owner = spread->owners;
    if (frame == NULL || taken == NULL || all.items == NULL) return NULL;
    for (uint32_t i = 0; i < spread->node->count; i++)
        taken[i].topic_index = -1;
    for (int32_t t = 0; t < asked.count; t++)
        if (!join_topic(spread, taken, t, &owner, &all)) return NULL;
    array_set(frame, rule->response.at, all);
    return frame;
}

void spread_topics(struct request *request, const struct spread_rule *rule)
{
    struct node *node = node_of(request->shard);
    struct array topics = array_get(request->message, rule->request.at);
    size_t count = parts_count(rule, &topics);
    uint8_t *owners = broker_array(request, MAX(count, 1), 1);
    if (owners != NULL) topics_owners(request, rule, &topics, owners);
    uint32_t owner = owners == NULL ? UINT32_MAX : single_owner(owners, count, node->index);
    if (owner != UINT32_MAX) {
        spread_whole(request, owner);
        return;
    }
    struct spread *spread = owners == NULL ? NULL : spread_new(request, rule);
    if (spread != NULL) spread->owners = owners;
    if (spread == NULL || !topics_split(spread, &topics)) {
        spread_refuse(spread, request);
        return;
    }
    spread->join = join_topics;
    spread_send(spread);
}

/* ---- every shard's part ---------------------------------------------------------------------- */

/* All shards' elements one after the other; the array is at the same place in each response. */
static bool concatenate(struct spread *spread, const struct spread_array *what, void *frame)
{
    struct array all = {NULL, 0};
    size_t count = 0;
    for (uint32_t i = 0; i < spread->node->count; i++)
        count += (size_t)array_get(spread->errands[i]->response, what->at).count;
    all.items = broker_array(spread->request, MAX(count, 1), what->size_bytes);
    if (all.items == NULL) return false;
    for (uint32_t i = 0; i < spread->node->count; i++) {
        struct array from = array_get(spread->errands[i]->response, what->at);
        if (from.count == 0) continue;
        memcpy(element(&all, what, all.count), from.items, (size_t)from.count * what->size_bytes);
        all.count += from.count;
    }
    array_set(frame, what->at, all);
    return true;
}

void *spread_join_list(struct spread *spread)
{
    struct list_groups_response *frame = (void *)response_frame(spread);
    if (frame == NULL || !concatenate(spread, &spread->rule->response, frame)) return NULL;
    for (uint32_t i = 0; i < spread->node->count; i++) {
        const struct list_groups_response *one = spread->errands[i]->response;
        if (one->error_code == KAFKA_NONE) continue;
        frame->error_code = one->error_code;
        frame->groups.count = 0; /* A list that lacks some would pass for a whole one. */
        break;
    }
    return frame;
}

/* An entry each of a topic's partitions at several shards is as good for every client. */
void *spread_join_moves(struct spread *spread)
{
    uint8_t *frame = response_frame(spread);
    bool whole = frame != NULL && concatenate(spread, &spread->rule->response, frame);
    return whole ? frame : NULL;
}

/* Each shard tells of every directory, with its own partitions in it. */
static bool join_dir(struct spread *spread,
                     int32_t dir,
                     struct describe_log_dirs_response_describe_log_dirs_result *out)
{
    int32_t count = 0;
    for (uint32_t i = 0; i < spread->node->count; i++) {
        const struct describe_log_dirs_response *one = spread->errands[i]->response;
        if (dir < one->results.count) count += MAX(one->results.items[dir].topics.count, 0);
    }
    struct describe_log_dirs_response_describe_log_dirs_topic *topics =
        broker_array(spread->request, (size_t)MAX(count, 1), sizeof(*topics));
    if (topics == NULL) return false;
    count = 0;
    for (uint32_t i = 0; i < spread->node->count; i++) {
        const struct describe_log_dirs_response *one = spread->errands[i]->response;
        if (dir >= one->results.count) continue;
        const struct describe_log_dirs_response_describe_log_dirs_result *from =
            &one->results.items[dir];
        if (from->error_code != KAFKA_NONE) out->error_code = from->error_code;
        for (int32_t t = 0; t < from->topics.count; t++)
            topics[count++] = from->topics.items[t];
    }
    out->topics.items = topics;
    out->topics.count = count;
    return true;
}

void *spread_join_dirs(struct spread *spread)
{
    struct describe_log_dirs_response *frame = (void *)response_frame(spread);
    if (frame == NULL) return NULL;
    for (int32_t i = 0; i < frame->results.count; i++)
        if (!join_dir(spread, i, &frame->results.items[i])) return NULL;
    return frame;
}
