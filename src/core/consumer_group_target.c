/* consumer_group_target.c - the target assignment of a consumer group: an assignor over its members
 * and topics, and what is different as records. */
#include "core/assignor.h"
#include "core/consumer_group_internal.h"
#include "core/image.h"

struct retargeting {
    struct step *step;
    const struct consumer_targeting *in;
    struct consumer_topics topics; /* By name. */
    struct assignor_input input;
    struct assignor_topic *by_id;
};

/* Topics in the order of their ids, as assignors want them. Heap sort. */
static void topics_sift(struct assignor_topic *topics, uint32_t at, uint32_t count)
{
    struct assignor_topic moved = topics[at];
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count &&
            partition_topic_compare(topics[child].id, topics[child + 1].id) < 0)
            child++;
        if (partition_topic_compare(moved.id, topics[child].id) >= 0) break;
        topics[at] = topics[child];
    }
    topics[at] = moved;
}

static bool topics_by_id(struct retargeting *r)
{
    uint32_t count = r->topics.count;
    r->by_id = step_get(r->step, ((size_t)count + 1) * sizeof(*r->by_id));
    if (r->by_id == NULL) return false;
    for (uint32_t i = 0; i < count; i++)
        r->by_id[i] = (struct assignor_topic){
            .id = r->topics.items[i]->id,
            .partitions = (uint32_t)r->topics.items[i]->partition_count,
        };
    for (uint32_t i = count / 2; i-- > 0;)
        topics_sift(r->by_id, i, count);
    for (uint32_t end = count; end-- > 1;) {
        struct assignor_topic last = r->by_id[end];
        r->by_id[end] = r->by_id[0];
        r->by_id[0] = last;
        topics_sift(r->by_id, 0, end);
    }
    r->input.topics = r->by_id;
    r->input.topic_count = count;
    return true;
}

static uint32_t topic_index(const struct retargeting *r, struct uuid id)
{
    uint32_t low = 0, high = r->input.topic_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (partition_topic_compare(r->by_id[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    assert(low < r->input.topic_count);
    return low;
}

static void indexes_sort(uint32_t *indexes, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t j = i; j > 0 && indexes[j - 1] > indexes[j]; j--) {
            uint32_t other = indexes[j];
            indexes[j] = indexes[j - 1];
            indexes[j - 1] = other;
        }
}

/* What a member wants, as indexes. Members that say the same as the one before share its list. */
static bool member_topics(struct retargeting *r, uint32_t at)
{
    const struct consumer_seen *seen = &r->in->roster->members[at];
    struct assignor_member *member = &r->input.members[at];
    struct consumer_topics topics;
    if (!consumer_group_topics_of(r->in->group, r->step->arena, r->in->edit, seen->said, &topics))
        return false;
    uint32_t *indexes = arena_take(r->step->arena, ((size_t)topics.count + 1) * sizeof(*indexes));
    if (indexes == NULL) return false;
    for (uint32_t i = 0; i < topics.count; i++)
        indexes[i] = topic_index(r, topics.items[i]->id);
    indexes_sort(indexes, topics.count);
    member->topics = indexes;
    member->topic_count = topics.count;
    return true;
}

static bool members_fill(struct retargeting *r)
{
    const struct consumer_roster *roster = r->in->roster;
    r->input.members = step_get(r->step, ((size_t)roster->count + 1) * sizeof(*r->input.members));
    r->input.member_count = roster->count;
    if (r->input.members == NULL) return false;
    for (uint32_t i = 0; i < roster->count; i++) {
        struct assignor_member *member = &r->input.members[i];
        member->id = roster->members[i].id;
        member->instance = roster->members[i].said->instance;
        member->before = *consumer_group_target(r->in->group, roster->members[i].target_of);
        if (!member_topics(r, i)) return false;
    }
    return true;
}

/* Of a member that has never been in a target there is a record, even if it gets nothing. */
static bool target_known(const struct consumer_group *group, const struct consumer_seen *seen)
{
    return map_find(&group->targets, seen->target_of) != NULL;
}

static bool records_put(struct retargeting *r, struct partition_set *own)
{
    const struct consumer_targeting *in = r->in;
    for (uint32_t i = 0; i < in->roster->count; i++) {
        const struct consumer_seen *seen = &in->roster->members[i];
        const struct assignor_member *member = &r->input.members[i];
        if (!in->edit->id.null && view_equal(seen->id, in->edit->id)) *own = member->target;
        if (target_known(in->group, seen) && partition_set_equal(&member->before, &member->target))
            continue;
        if (!consumer_record_target(r->step, in->id, seen->id, &member->target)) return false;
    }
    return consumer_record_assigned(r->step, in->id, in->epoch, r->step->wall_ms);
}

enum step_result consumer_group_retarget(struct step *step,
                                         const struct consumer_targeting *in,
                                         struct partition_set *own)
{
    const struct groups *groups = in->group->groups;
    struct retargeting r = {.step = step, .in = in};
    assignor *assign = assignor_by_name(consumer_group_assignor(groups, in->roster));
    assert(assign != NULL);
    bool made = consumer_group_topics(in->group, step->arena, in->edit, in->roster, &r.topics) &&
                topics_by_id(&r) && members_fill(&r) && assign(step->arena, &r.input) &&
                records_put(&r, own);
    return made ? STEP_DONE : STEP_E_MEMORY;
}
