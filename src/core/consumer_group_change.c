/* consumer_group_change.c - the logged state of a consumer group, changed one record at a time.
 *
 * Called by consumer_group_apply() alone. What survives compaction may come in another order than
 * it was written, so each change stands for itself; holders of partitions are told by epochs, where
 * the higher one is right. */
#include "core/consumer_group_internal.h"

static struct mem *group_mem(const struct consumer_group *group)
{
    return group->groups->mem;
}

/* ---- who holds what -------------------------------------------------------------------------- */

static struct consumer_held *held_make(struct consumer_group *group, struct uuid topic)
{
    struct map_node *node = map_find(&group->held, view_of(topic.bytes, sizeof(topic.bytes)));
    if (node != NULL) return container_of(node, struct consumer_held, by_topic);
    struct consumer_held *held = mem_get(group_mem(group), sizeof(*held));
    if (held == NULL) return NULL;
    held->topic = topic;
    held->by_topic.key = view_of(held->topic.bytes, sizeof(held->topic.bytes));
    if (!map_insert(&group->held, &held->by_topic))
        return mem_put(group_mem(group), held, sizeof(*held));
    return held;
}

static bool held_grow(struct consumer_group *group, struct consumer_held *held, uint32_t least)
{
    uint32_t room = MAX(held->room * 2, (least + 7) & ~7u);
    int32_t *epochs = mem_get(group_mem(group), room * sizeof(*epochs));
    if (epochs == NULL) return false;
    for (uint32_t i = 0; i < room; i++)
        epochs[i] = i < held->room ? held->epochs[i] : CONSUMER_FREE;
    if (held->room > 0) mem_put(group_mem(group), held->epochs, held->room * sizeof(*held->epochs));
    held->epochs = epochs;
    held->room = room;
    return true;
}

/* A set is held from now on by a member at `epoch`. An entry of a higher epoch stays: it belongs to
 * who got the partition later. */
static bool held_add(struct consumer_group *group, const struct partition_set *set, int32_t epoch)
{
    for (uint32_t i = 0; i < set->count; i++) {
        struct consumer_held *held = held_make(group, set->items[i].topic);
        uint32_t index = (uint32_t)set->items[i].partition;
        if (held == NULL) return false;
        if (index >= held->room && !held_grow(group, held, index + 1)) return false;
        held->epochs[index] = MAX(held->epochs[index], epoch);
    }
    return true;
}

/* It is not any more, as far as it was that member's. */
static void held_drop(struct consumer_group *group, const struct partition_set *set, int32_t epoch)
{
    for (uint32_t i = 0; i < set->count; i++) {
        struct uuid topic = set->items[i].topic;
        if (consumer_group_holder(group, topic, set->items[i].partition) != epoch) continue;
        struct map_node *node = map_find(&group->held, view_of(topic.bytes, sizeof(topic.bytes)));
        struct consumer_held *held = container_of(node, struct consumer_held, by_topic);
        held->epochs[set->items[i].partition] = CONSUMER_FREE;
    }
}

/* ---- members --------------------------------------------------------------------------------- */

static void timer_init(struct group_timer *timer, enum group_timer_kind kind)
{
    wheel_entry_init(&timer->entry);
    timer->kind = (uint8_t)kind;
}

struct consumer_member *consumer_group_member_make(struct consumer_group *group, struct view id)
{
    struct consumer_member *member = consumer_group_member(group, id);
    if (member != NULL) return member;
    member = mem_get(group_mem(group), sizeof(*member) + id.size);
    if (member == NULL) return NULL;
    if (id.size > 0) memcpy(member + 1, id.data, id.size);
    member->id = view_of(member + 1, id.size);
    member->by_id.key = member->id;
    member->group = group->group;
    member->said = (struct consumer_said){
        .instance = VIEW_NULL,
        .rack = VIEW_NULL,
        .client_id = VIEW_EMPTY,
        .client_host = VIEW_EMPTY,
        .regex = VIEW_NULL,
        .assignor = VIEW_NULL,
        .rebalance_ms = -1,
    };
    member->now.previous = -1;
    timer_init(&member->session, TIMER_CONSUMER_SESSION);
    timer_init(&member->rebalance, TIMER_CONSUMER_REBALANCE);
    timer_init(&member->join, TIMER_CONSUMER_JOIN);
    timer_init(&member->sync, TIMER_CONSUMER_SYNC);
    if (!map_insert(&group->members, &member->by_id))
        return mem_put(group_mem(group), member, sizeof(*member) + id.size);
    list_append(&group->member_list, &member->link);
    return member;
}

/* One block for all that a member has said: arrays first, then the bytes. */
struct said_copy {
    uint8_t *at;
};

static struct view said_text(struct said_copy *copy, struct view text)
{
    if (text.null) return VIEW_NULL;
    struct view out = view_of(copy->at, text.size);
    if (text.size > 0) memcpy(copy->at, text.data, text.size);
    copy->at += text.size;
    return out;
}

static size_t said_size(const struct consumer_said *said)
{
    size_t size = said->topic_count * sizeof(struct view) +
                  said->protocol_count * sizeof(struct member_protocol);
    const struct view *texts[] = {&said->instance,    &said->rack,  &said->client_id,
                                  &said->client_host, &said->regex, &said->assignor};
    for (uint32_t i = 0; i < ARRAY_SIZE(texts); i++)
        size += texts[i]->size;
    for (uint32_t i = 0; i < said->topic_count; i++)
        size += said->topics[i].size;
    for (uint32_t i = 0; i < said->protocol_count; i++)
        size += (size_t)said->protocols[i].name.size + said->protocols[i].metadata.size;
    return size + 1; /* Never nothing. */
}

static void said_fill(struct consumer_said *out, uint8_t *block, const struct consumer_said *from)
{
    struct view *topics = (struct view *)(void *)block;
    struct member_protocol *protocols =
        (struct member_protocol *)(void *)(block + from->topic_count * sizeof(*topics));
    struct said_copy copy = {.at = (uint8_t *)(protocols + from->protocol_count)};
    *out = *from;
    out->instance = said_text(&copy, from->instance);
    out->rack = said_text(&copy, from->rack);
    out->client_id = said_text(&copy, from->client_id);
    out->client_host = said_text(&copy, from->client_host);
    out->regex = said_text(&copy, from->regex);
    out->assignor = said_text(&copy, from->assignor);
    for (uint32_t i = 0; i < from->topic_count; i++)
        topics[i] = said_text(&copy, from->topics[i]);
    for (uint32_t i = 0; i < from->protocol_count; i++) {
        protocols[i].name = said_text(&copy, from->protocols[i].name);
        protocols[i].metadata = said_text(&copy, from->protocols[i].metadata);
    }
    out->topics = topics;
    out->protocols = protocols;
}

static void instance_let_go(struct consumer_member *member)
{
    if (!member->owns_instance) return;
    map_remove(&member->group->consumer->instances, &member->by_instance);
    member->owns_instance = false;
}

/* The instance belongs to who said so last. */
static bool instance_take(struct consumer_member *member)
{
    struct consumer_group *group = member->group->consumer;
    struct consumer_member *owner = consumer_group_static(group, member->said.instance);
    if (member->said.instance.null) return true;
    if (owner != NULL) instance_let_go(owner);
    member->by_instance = (struct map_node){.key = member->said.instance};
    member->owns_instance = map_insert(&group->instances, &member->by_instance);
    return member->owns_instance;
}

static void regex_count(const struct consumer_member *member, int32_t by)
{
    struct consumer_group *group = member->group->consumer;
    struct view regex = member->said.regex;
    if (regex.null || regex.size == 0) return;
    group->regex_users += (uint32_t)by;
    if (by > 0 && consumer_group_regex(group, regex) == NULL) group->regex_open = true;
}

bool consumer_member_say(struct consumer_member *member, const struct consumer_said *said)
{
    struct mem *mem = member->group->groups->mem;
    size_t size = said_size(said);
    uint8_t *block = size > UINT32_MAX ? NULL : mem_get(mem, size);
    if (block == NULL) return false;
    instance_let_go(member);
    regex_count(member, -1);
    mem_put(mem, member->said_block, member->said_bytes);
    said_fill(&member->said, block, said);
    member->said_block = block;
    member->said_bytes = (uint32_t)size;
    regex_count(member, 1);
    return instance_take(member);
}

bool consumer_member_set(struct consumer_member *member, const struct consumer_current *now)
{
    struct consumer_group *group = member->group->consumer;
    struct mem *mem = member->group->groups->mem;
    held_drop(group, &member->now.assigned, member->now.epoch);
    held_drop(group, &member->now.pending, member->now.epoch);
    if (!partition_set_keep(mem, &member->now.assigned, &now->assigned)) return false;
    if (!partition_set_keep(mem, &member->now.pending, &now->pending)) return false;
    member->now.epoch = now->epoch;
    member->now.previous = now->previous;
    member->now.state = now->state;
    return held_add(group, &now->assigned, now->epoch) &&
           held_add(group, &now->pending, now->epoch);
}

void consumer_member_drop(struct consumer_member *member)
{
    struct group *group = member->group;
    struct mem *mem = group->groups->mem;
    held_drop(group->consumer, &member->now.assigned, member->now.epoch);
    held_drop(group->consumer, &member->now.pending, member->now.epoch);
    group_timer_cancel(group, &member->session);
    group_timer_cancel(group, &member->rebalance);
    group_timer_cancel(group, &member->join);
    group_timer_cancel(group, &member->sync);
    regex_count(member, -1);
    instance_let_go(member);
    map_remove(&group->consumer->members, &member->by_id);
    list_remove(&member->link);
    partition_set_free(mem, &member->now.assigned);
    partition_set_free(mem, &member->now.pending);
    mem_put(mem, member->said_block, member->said_bytes);
    mem_put(mem, member, sizeof(*member) + member->id.size);
}

/* ---- targets --------------------------------------------------------------------------------- */

bool consumer_target_set(struct consumer_group *group,
                         struct view member,
                         const struct partition_set *partitions)
{
    struct map_node *node = map_find(&group->targets, member);
    struct consumer_target *target =
        node == NULL ? NULL : container_of(node, struct consumer_target, by_member);
    if (target != NULL)
        return partition_set_keep(group_mem(group), &target->partitions, partitions);
    target = mem_get(group_mem(group), sizeof(*target) + member.size);
    if (target == NULL) return false;
    if (member.size > 0) memcpy(target + 1, member.data, member.size);
    target->member = view_of(target + 1, member.size);
    target->by_member.key = target->member;
    if (!partition_set_keep(group_mem(group), &target->partitions, partitions) ||
        !map_insert(&group->targets, &target->by_member)) {
        partition_set_free(group_mem(group), &target->partitions);
        mem_put(group_mem(group), target, sizeof(*target) + member.size);
        return false;
    }
    return true;
}

void consumer_target_drop(struct consumer_group *group, struct view member)
{
    struct map_node *node = map_find(&group->targets, member);
    if (node == NULL) return;
    struct consumer_target *target = container_of(node, struct consumer_target, by_member);
    map_remove(&group->targets, node);
    partition_set_free(group_mem(group), &target->partitions);
    mem_put(group_mem(group), target, sizeof(*target) + target->member.size);
}

/* ---- regular expressions --------------------------------------------------------------------- */

bool consumer_regex_set(struct consumer_group *group, const struct consumer_regex *regex)
{
    size_t size = sizeof(*regex) + regex->topic_count * sizeof(struct view) + regex->text.size;
    for (uint32_t i = 0; i < regex->topic_count; i++)
        size += regex->topics[i].size;
    struct consumer_regex *made = size > UINT32_MAX ? NULL : mem_get(group_mem(group), size);
    if (made == NULL) return false;
    made->topics = (struct view *)(void *)(made + 1);
    struct said_copy copy = {.at = (uint8_t *)(made->topics + regex->topic_count)};
    made->text = said_text(&copy, regex->text);
    for (uint32_t i = 0; i < regex->topic_count; i++)
        made->topics[i] = said_text(&copy, regex->topics[i]);
    made->topic_count = regex->topic_count;
    made->version = regex->version;
    made->wall_ms = regex->wall_ms;
    made->size_bytes = (uint32_t)size;
    made->by_text.key = made->text;
    consumer_regex_drop(group, regex->text);
    if (!map_insert(&group->regexes, &made->by_text)) {
        mem_put(group_mem(group), made, size);
        return false;
    }
    list_append(&group->regex_list, &made->link);
    return true;
}

void consumer_regex_drop(struct consumer_group *group, struct view text)
{
    struct consumer_regex *regex = consumer_group_regex(group, text);
    if (regex == NULL) return;
    map_remove(&group->regexes, &regex->by_text);
    list_remove(&regex->link);
    mem_put(group_mem(group), regex, regex->size_bytes);
}
