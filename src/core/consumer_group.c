/* consumer_group.c - see consumer_group.h: the group, its life, and what can be asked of it. */
#include "core/consumer_group_internal.h"

#include "base/bytes.h"
#include "core/config.h"
#include "core/image.h"
#include "gen/consumer_group_describe_response.h"

/* ---- life ------------------------------------------------------------------------------------ */

void groups_see(struct groups *groups,
                const struct image *image,
                const struct consumer_group_options *options)
{
    groups->image = image;
    groups->consumer_options = *options;
}

void groups_topics_changed(struct groups *groups)
{
    groups->topics_version++;
}

void consumer_group_blank(struct consumer_group *group, struct groups *groups)
{
    *group = (struct consumer_group){
        .groups = groups,
        .epoch = CONSUMER_EPOCH_FIRST,
        .assignment_epoch = CONSUMER_EPOCH_FIRST,
        .regex_ms = INT64_MIN,
    };
    map_init(&group->members, groups->mem, groups->seed);
    map_init(&group->instances, groups->mem, groups->seed);
    map_init(&group->targets, groups->mem, groups->seed);
    map_init(&group->held, groups->mem, groups->seed);
    map_init(&group->regexes, groups->mem, groups->seed);
    list_init(&group->member_list);
    list_init(&group->regex_list);
}

bool consumer_group_become(struct group *group)
{
    struct consumer_group *made = mem_get(group->groups->mem, sizeof(*made));
    assert(group->consumer == NULL);
    assert(group->members.count == 0);
    if (made == NULL) return false;
    consumer_group_blank(made, group->groups);
    made->group = group;
    group->consumer = made;
    return true;
}

static void held_free(struct consumer_group *group)
{
    struct mem *mem = group->group->groups->mem;
    for (struct map_node *node; (node = map_next(&group->held, NULL)) != NULL;) {
        struct consumer_held *held = container_of(node, struct consumer_held, by_topic);
        map_remove(&group->held, node);
        if (held->room > 0) mem_put(mem, held->epochs, held->room * sizeof(*held->epochs));
        mem_put(mem, held, sizeof(*held));
    }
}

void consumer_group_free(struct group *group)
{
    struct consumer_group *consumer = group->consumer;
    struct mem *mem = group->groups->mem;
    if (consumer == NULL) return;
    list_foreach (link, &consumer->member_list)
        consumer_member_drop(container_of(link, struct consumer_member, link));
    for (struct map_node *node; (node = map_next(&consumer->targets, NULL)) != NULL;)
        consumer_target_drop(consumer,
                             container_of(node, struct consumer_target, by_member)->member);
    list_foreach (link, &consumer->regex_list)
        consumer_regex_drop(consumer, container_of(link, struct consumer_regex, link)->text);
    held_free(consumer);
    map_free(&consumer->members);
    map_free(&consumer->instances);
    map_free(&consumer->targets);
    map_free(&consumer->held);
    map_free(&consumer->regexes);
    mem_put(mem, consumer, sizeof(*consumer));
    group->consumer = NULL;
}

/* ---- finding --------------------------------------------------------------------------------- */

struct consumer_member *consumer_group_member(const struct consumer_group *group, struct view id)
{
    struct map_node *node = map_find(&group->members, id);
    return node == NULL ? NULL : container_of(node, struct consumer_member, by_id);
}

struct consumer_member *consumer_group_static(const struct consumer_group *group,
                                              struct view instance)
{
    struct map_node *node = instance.null ? NULL : map_find(&group->instances, instance);
    return node == NULL ? NULL : container_of(node, struct consumer_member, by_instance);
}

const struct partition_set *consumer_group_target(const struct consumer_group *group,
                                                  struct view member)
{
    static const struct partition_set none = {0};
    struct map_node *node = map_find(&group->targets, member);
    return node == NULL ? &none
                        : &container_of(node, struct consumer_target, by_member)->partitions;
}

struct consumer_regex *consumer_group_regex(const struct consumer_group *group, struct view text)
{
    struct map_node *node = text.null ? NULL : map_find(&group->regexes, text);
    return node == NULL ? NULL : container_of(node, struct consumer_regex, by_text);
}

int32_t consumer_group_holder(const struct consumer_group *group,
                              struct uuid topic,
                              int32_t partition)
{
    struct map_node *node = map_find(&group->held, view_of(topic.bytes, sizeof(topic.bytes)));
    if (node == NULL || partition < 0) return CONSUMER_FREE;
    const struct consumer_held *held = container_of(node, struct consumer_held, by_topic);
    return (uint32_t)partition < held->room ? held->epochs[partition] : CONSUMER_FREE;
}

uint32_t consumer_group_regex_users(const struct consumer_group *group,
                                    struct view text,
                                    const struct consumer_member *except)
{
    uint32_t users = 0;
    list_foreach (link, &group->member_list) {
        const struct consumer_member *member = container_of(link, struct consumer_member, link);
        users += member != except && view_equal(member->said.regex, text);
    }
    return users;
}

/* ---- settings -------------------------------------------------------------------------------- */

int64_t consumer_group_interval(const struct groups *groups,
                                struct view id,
                                struct view name,
                                const struct consumer_group_interval *of)
{
    int64_t value_ms = of->value_ms;
    if (groups->image != NULL) {
        const struct image_configs *own = image_configs(groups->image, IMAGE_RESOURCE_GROUP, id);
        struct view text = own == NULL ? VIEW_NULL : image_config(own, name);
        if (!text.null && !config_parse_int64(text, &value_ms)) value_ms = of->value_ms;
    }
    return MAX(of->min_ms, MIN(of->max_ms, value_ms));
}

int64_t consumer_group_session_ms(const struct consumer_member *member)
{
    const struct groups *groups = member->group->groups;
    if (member->said.classic) return member->said.session_ms;
    return consumer_group_interval(groups, member->group->id, VIEW("consumer.session.timeout.ms"),
                                   &groups->consumer_options.session);
}

void consumer_group_contact(struct consumer_member *member, int64_t at_ms)
{
    wheel_defer(&member->group->groups->wheel, &member->session.entry,
                at_ms + consumer_group_session_ms(member));
}

void consumer_group_loaded(struct group *group)
{
    const struct groups *groups = group->groups;
    int64_t session_ms = consumer_group_interval(
        groups, group->id, VIEW("consumer.session.timeout.ms"), &groups->consumer_options.session);
    list_foreach (link, &group->consumer->member_list) {
        struct consumer_member *member = container_of(link, struct consumer_member, link);
        int64_t own_ms = member->said.classic ? member->said.session_ms : session_ms;
        group_timer_set(group, &member->session, groups->now_ms + own_ms);
        if (member->now.state != CONSUMER_UNREVOKED) continue;
        member->rebalance_epoch = member->now.epoch;
        group_timer_set(group, &member->rebalance, groups->now_ms + member->said.rebalance_ms);
    }
}

void consumer_group_unload(struct group *group)
{
    list_foreach (link, &group->consumer->member_list) {
        struct consumer_member *member = container_of(link, struct consumer_member, link);
        group_timer_cancel(group, &member->session);
        group_timer_cancel(group, &member->rebalance);
        group_timer_cancel(group, &member->join);
        group_timer_cancel(group, &member->sync);
    }
}

/* ---- looking --------------------------------------------------------------------------------- */

struct view consumer_group_state(const struct consumer_group *group)
{
    if (group->members.count == 0) return VIEW("Empty");
    if (group->epoch > group->assignment_epoch) return VIEW("Assigning");
    list_foreach (link, &group->member_list) {
        const struct consumer_member *member = container_of(link, struct consumer_member, link);
        if (member->now.state != CONSUMER_STABLE || member->now.epoch != group->assignment_epoch)
            return VIEW("Reconciling");
    }
    return VIEW("Stable");
}

static bool names_have(const struct view *names, uint32_t count, struct view name)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = view_compare(names[middle], name);
        if (order == 0) return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool consumer_group_wants(const struct consumer_group *group, struct view topic)
{
    list_foreach (link, &group->member_list) {
        const struct consumer_member *member = container_of(link, struct consumer_member, link);
        const struct consumer_said *said = &member->said;
        const struct consumer_regex *regex = consumer_group_regex(group, said->regex);
        if (names_have(said->topics, said->topic_count, topic)) return true;
        if (regex != NULL && names_have(regex->topics, regex->topic_count, topic)) return true;
    }
    return false;
}

/* ---- ConsumerGroupDescribe ------------------------------------------------------------------- */

/* Topics that are gone have no name, and are left out. */
static bool describe_set(const struct groups *groups,
                         struct arena *arena,
                         const struct partition_set *set,
                         struct consumer_group_describe_response_assignment *out)
{
    if (set->count == 0) return true;
    out->topic_partitions.items =
        arena_get(arena, partition_set_topics(set) * sizeof(*out->topic_partitions.items));
    if (out->topic_partitions.items == NULL) return false;
    for (uint32_t at = 0, run; at < set->count; at += run) {
        const struct image_topic *topic =
            groups->image == NULL ? NULL : image_topic_by_id(groups->image, set->items[at].topic);
        run = partition_set_run(set, at);
        if (topic == NULL) continue;
        struct consumer_group_describe_response_topic_partitions *item =
            &out->topic_partitions.items[out->topic_partitions.count++];
        wire_struct_defaults(&wire_consumer_group_describe_response_topic_partitions_shape, item);
        item->topic_id = topic->id;
        item->topic_name = arena_copy(arena, topic->name);
        item->partitions.items = arena_take(arena, run * sizeof(*item->partitions.items));
        if (item->partitions.items == NULL) return false;
        for (uint32_t i = 0; i < run; i++)
            item->partitions.items[i] = set->items[at + i].partition;
        item->partitions.count = (int32_t)run;
    }
    return true;
}

static bool describe_member(const struct consumer_member *member,
                            struct arena *arena,
                            struct consumer_group_describe_response_member *out)
{
    const struct group *group = member->group;
    const struct consumer_said *said = &member->said;
    struct partition_set holds;
    wire_struct_defaults(&wire_consumer_group_describe_response_member_shape, out);
    out->member_id = arena_copy(arena, member->id);
    out->instance_id = arena_copy(arena, said->instance);
    out->rack_id = arena_copy(arena, said->rack);
    out->member_epoch = member->now.epoch;
    out->client_id = arena_copy(arena, said->client_id);
    out->client_host = arena_copy(arena, said->client_host);
    out->subscribed_topic_regex = arena_copy(arena, said->regex);
    out->member_type = said->classic ? 0 : 1;
    if (said->topic_count > 0) {
        out->subscribed_topic_names.items =
            arena_get(arena, said->topic_count * sizeof(struct view));
        if (out->subscribed_topic_names.items == NULL) return false;
    }
    for (uint32_t i = 0; i < said->topic_count; i++)
        out->subscribed_topic_names.items[i] = arena_copy(arena, said->topics[i]);
    out->subscribed_topic_names.count = (int32_t)said->topic_count;
    return partition_set_join(arena, &member->now.assigned, &member->now.pending, &holds) &&
           describe_set(group->groups, arena, &holds, &out->assignment) &&
           describe_set(group->groups, arena, consumer_group_target(group->consumer, member->id),
                        &out->target_assignment);
}

bool consumer_group_describe(const struct groups *groups,
                             struct arena *arena,
                             struct consumer_group_describe_response_described_group *out)
{
    const struct group *group = groups_find(groups, out->group_id);
    struct consumer_roster roster;
    if (group == NULL || group->consumer == NULL || group->state == GROUP_DEAD) {
        out->error_code = KAFKA_GROUP_ID_NOT_FOUND;
        out->error_message = group_missing_text(arena, out->group_id, group, VIEW("consumer"));
        return !arena->failed;
    }
    const struct consumer_group *consumer = group->consumer;
    struct consumer_edit none = {.id = VIEW_NULL, .replaces = VIEW_NULL};
    if (!consumer_group_roster(consumer, arena, &none, &roster)) return false;
    out->group_state = consumer_group_state(consumer);
    out->group_epoch = consumer->epoch;
    out->assignment_epoch = consumer->assignment_epoch;
    out->assignor_name = arena_copy(arena, consumer_group_assignor(groups, &roster));
    if (consumer->members.count > 0) {
        out->members.items =
            arena_get(arena, consumer->members.count * sizeof(*out->members.items));
        if (out->members.items == NULL) return false;
    }
    list_foreach (link, &consumer->member_list)
        if (!describe_member(container_of(link, struct consumer_member, link), arena,
                             &out->members.items[out->members.count++]))
            return false;
    return !arena->failed;
}
