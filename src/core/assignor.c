/* assignor.c - see assignor.h: the range assignor, and the uniform one where all members want the
 * same topics. assignor_mixed.c has the other half. */
#include "core/assignor.h"

#include "core/assignor_internal.h"

assignor *assignor_by_name(struct view name)
{
    if (view_is(name, "uniform")) return assignor_uniform;
    if (view_is(name, "range")) return assignor_range;
    return NULL;
}

/* ---- numbering ------------------------------------------------------------------------------- */

bool assignor_number(struct assignor_numbers *numbers,
                     struct arena *arena,
                     const struct assignor_input *in)
{
    numbers->in = in;
    numbers->base = arena_get(arena, ((size_t)in->topic_count + 1) * sizeof(*numbers->base));
    if (numbers->base == NULL) return false;
    for (uint32_t t = 0; t < in->topic_count; t++)
        numbers->base[t + 1] = numbers->base[t] + in->topics[t].partitions;
    numbers->total = numbers->base[in->topic_count];
    numbers->owner = arena_take(arena, ((size_t)numbers->total + 1) * sizeof(*numbers->owner));
    if (numbers->owner == NULL) return false;
    for (uint32_t i = 0; i < numbers->total; i++)
        numbers->owner[i] = ASSIGNOR_NOBODY;
    return true;
}

uint32_t assignor_topic_find(const struct assignor_input *in, struct uuid id)
{
    uint32_t low = 0, high = in->topic_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = partition_topic_compare(in->topics[middle].id, id);
        if (order == 0) return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return in->topic_count;
}

bool assignor_wants(const struct assignor_member *member, uint32_t topic)
{
    uint32_t low = 0, high = member->topic_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (member->topics[middle] == topic) return true;
        if (member->topics[middle] < topic)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

uint32_t assignor_kept(const struct assignor_numbers *numbers,
                       const struct assignor_member *member,
                       uint32_t *at)
{
    const struct assignor_input *in = numbers->in;
    while (*at < member->before.count) {
        const struct partition_item *item = &member->before.items[(*at)++];
        uint32_t topic = assignor_topic_find(in, item->topic);
        if (topic == in->topic_count || !assignor_wants(member, topic)) continue;
        if (item->partition < 0 || (uint32_t)item->partition >= in->topics[topic].partitions)
            continue;
        uint32_t number = numbers->base[topic] + (uint32_t)item->partition;
        if (numbers->owner[number] == ASSIGNOR_NOBODY) return number;
    }
    return ASSIGNOR_NOBODY;
}

bool assignor_answer(struct arena *arena,
                     const struct assignor_numbers *numbers,
                     struct assignor_input *in)
{
    uint32_t *counts = arena_get(arena, ((size_t)in->member_count + 1) * sizeof(*counts));
    if (counts == NULL) return false;
    for (uint32_t i = 0; i < numbers->total; i++)
        if (numbers->owner[i] != ASSIGNOR_NOBODY) counts[numbers->owner[i]]++;
    for (uint32_t m = 0; m < in->member_count; m++)
        if (!partition_set_room(&in->members[m].target, arena, counts[m])) return false;
    for (uint32_t t = 0; t < in->topic_count; t++)
        for (uint32_t p = 0; p < in->topics[t].partitions; p++) {
            uint32_t owner = numbers->owner[numbers->base[t] + p];
            if (owner == ASSIGNOR_NOBODY) continue;
            struct partition_set *target = &in->members[owner].target;
            target->items[target->count++] =
                (struct partition_item){.topic = in->topics[t].id, .partition = (int32_t)p};
        }
    return true;
}

/* ---- range ----------------------------------------------------------------------------------- */

/* Static members first, by their instance; then the others by their id. */
static bool range_before(const struct assignor_member *a, const struct assignor_member *b)
{
    if (a->instance.null != b->instance.null) return !a->instance.null;
    if (!a->instance.null) return view_compare(a->instance, b->instance) < 0;
    return view_compare(a->id, b->id) < 0;
}

static void range_sift(const struct assignor_input *in,
                       uint32_t *order,
                       uint32_t at,
                       uint32_t count)
{
    uint32_t moved = order[at];
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        const struct assignor_member *left = &in->members[order[child]];
        if (child + 1 < count && range_before(left, &in->members[order[child + 1]])) child++;
        if (!range_before(&in->members[moved], &in->members[order[child]])) break;
        order[at] = order[child];
    }
    order[at] = moved;
}

static uint32_t *range_order(struct arena *arena, const struct assignor_input *in)
{
    uint32_t count = in->member_count;
    uint32_t *order = arena_take(arena, ((size_t)count + 1) * sizeof(*order));
    if (order == NULL) return NULL;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t i = count / 2; i-- > 0;)
        range_sift(in, order, i, count);
    for (uint32_t end = count; end-- > 1;) {
        uint32_t last = order[end];
        order[end] = order[0];
        order[0] = last;
        range_sift(in, order, 0, end);
    }
    return order;
}

/* Each subscriber in turn gets the next block of its topic. */
bool assignor_range(struct arena *arena, struct assignor_input *in)
{
    struct assignor_numbers numbers;
    uint32_t *order = range_order(arena, in);
    uint32_t *subscribers = arena_get(arena, ((size_t)in->topic_count + 1) * sizeof(*subscribers));
    uint32_t *next = arena_get(arena, ((size_t)in->topic_count + 1) * sizeof(*next));
    uint32_t *extra = arena_get(arena, ((size_t)in->topic_count + 1) * sizeof(*extra));
    if (order == NULL || subscribers == NULL || next == NULL || extra == NULL) return false;
    if (!assignor_number(&numbers, arena, in)) return false;
    for (uint32_t m = 0; m < in->member_count; m++)
        for (uint32_t i = 0; i < in->members[m].topic_count; i++)
            subscribers[in->members[m].topics[i]]++;
    for (uint32_t t = 0; t < in->topic_count; t++)
        if (subscribers[t] > 0) extra[t] = in->topics[t].partitions % subscribers[t];
    for (uint32_t m = 0; m < in->member_count; m++) {
        const struct assignor_member *member = &in->members[order[m]];
        for (uint32_t i = 0; i < member->topic_count; i++) {
            uint32_t t = member->topics[i];
            uint32_t block = in->topics[t].partitions / subscribers[t];
            if (extra[t] > 0) {
                extra[t]--;
                block++;
            }
            for (; block > 0; block--)
                numbers.owner[numbers.base[t] + next[t]++] = order[m];
        }
    }
    return assignor_answer(arena, &numbers, in);
}

/* ---- uniform, all members want the same ------------------------------------------------------ */

static bool same_topics(const struct assignor_input *in)
{
    for (uint32_t m = 1; m < in->member_count; m++) {
        const struct assignor_member *a = &in->members[0], *b = &in->members[m];
        if (a->topic_count != b->topic_count) return false;
        for (uint32_t i = 0; i < a->topic_count; i++)
            if (a->topics[i] != b->topics[i]) return false;
    }
    return true;
}

struct uniform {
    struct arena *arena;
    struct assignor_input *in;
    struct assignor_numbers numbers;
    uint32_t *counts; /* What each member has, */
    uint32_t *quotas; /* and may have. */
    uint32_t *free;   /* Partitions that nobody has, in the order in which they are given. */
    uint32_t free_count;
};

/* Partitions that no target had come first, in their order. */
static bool uniform_free(struct uniform *u)
{
    bool *had = arena_get(u->arena, (size_t)u->numbers.total + 1);
    u->free = arena_take(u->arena, ((size_t)u->numbers.total + 1) * sizeof(*u->free));
    if (had == NULL || u->free == NULL) return false;
    for (uint32_t m = 0; m < u->in->member_count; m++) {
        uint32_t at = 0, number;
        while ((number = assignor_kept(&u->numbers, &u->in->members[m], &at)) != ASSIGNOR_NOBODY)
            had[number] = true;
    }
    const struct assignor_member *any = &u->in->members[0];
    for (uint32_t i = 0; i < any->topic_count; i++)
        for (uint32_t n = u->numbers.base[any->topics[i]]; n < u->numbers.base[any->topics[i] + 1];
             n++)
            if (!had[n]) u->free[u->free_count++] = n;
    return true;
}

/* Members keep what they had up to their quota. One extra partition each for the first so many, but
 * not for who would have to be given it while there are others that may hold it already. */
static void uniform_keep(struct uniform *u, uint32_t quota, uint32_t extras)
{
    for (uint32_t m = 0; m < u->in->member_count; m++) {
        uint32_t most = quota + (extras > 0), at = 0, number;
        while ((number = assignor_kept(&u->numbers, &u->in->members[m], &at)) != ASSIGNOR_NOBODY) {
            if (u->counts[m] < most) {
                u->numbers.owner[number] = m;
                u->counts[m]++;
            } else {
                u->free[u->free_count++] = number;
            }
        }
        if (extras > 0 && u->counts[m] < most && u->in->member_count - m > extras)
            most--;
        else if (extras > 0)
            extras--;
        u->quotas[m] = most;
    }
}

static bool uniform_same(struct arena *arena, struct assignor_input *in)
{
    struct uniform u = {.arena = arena, .in = in};
    uint32_t wanted = 0, given = 0;
    u.counts = arena_get(arena, in->member_count * sizeof(*u.counts));
    u.quotas = arena_get(arena, in->member_count * sizeof(*u.quotas));
    if (u.counts == NULL || u.quotas == NULL) return false;
    if (!assignor_number(&u.numbers, arena, in) || !uniform_free(&u)) return false;
    for (uint32_t i = 0; i < in->members[0].topic_count; i++)
        wanted += in->topics[in->members[0].topics[i]].partitions;
    uniform_keep(&u, wanted / in->member_count, wanted % in->member_count);
    for (uint32_t m = 0; m < in->member_count; m++)
        for (; u.counts[m] < u.quotas[m] && given < u.free_count; u.counts[m]++)
            u.numbers.owner[u.free[given++]] = m;
    assert(given == u.free_count);
    return assignor_answer(arena, &u.numbers, in);
}

bool assignor_uniform(struct arena *arena, struct assignor_input *in)
{
    if (in->member_count == 0) return true;
    return same_topics(in) ? uniform_same(arena, in) : assignor_mixed(arena, in);
}
