/* assignor_mixed.c - the uniform assignor where members want different topics:
 * keep what was, give what is free to who has least, then move single partitions until no
 * subscriber of a topic has two more than another. */
#include "core/assignor_internal.h"

#define MIXED_ROUNDS_MAX 16u /* As Kafka: what is not level by then stays so. */

struct mixed {
    struct assignor_input *in;
    struct assignor_numbers numbers;
    uint32_t *load;        /* By member: partitions of all topics. */
    uint32_t *subscribers; /* Members by topic, one list behind the other. */
    uint32_t *first;       /* By topic: where its list begins; one more at the end. */
    uint32_t *order;       /* Topics in the order in which they are given out. */
    uint32_t *heap;        /* Subscribers of the topic at hand, least loaded first. */
};

static bool mixed_init(struct mixed *x, struct arena *arena)
{
    struct assignor_input *in = x->in;
    size_t pairs = 0;
    for (uint32_t m = 0; m < in->member_count; m++)
        pairs += in->members[m].topic_count;
    x->load = arena_get(arena, in->member_count * sizeof(*x->load));
    x->heap = arena_get(arena, in->member_count * sizeof(*x->heap));
    x->subscribers = arena_get(arena, (pairs + 1) * sizeof(*x->subscribers));
    x->first = arena_get(arena, ((size_t)in->topic_count + 2) * sizeof(*x->first));
    x->order = arena_get(arena, ((size_t)in->topic_count + 1) * sizeof(*x->order));
    if (x->load == NULL || x->heap == NULL || x->subscribers == NULL || x->first == NULL ||
        x->order == NULL)
        return false;
    return assignor_number(&x->numbers, arena, in);
}

static void mixed_subscribers(struct mixed *x)
{
    const struct assignor_input *in = x->in;
    /* Counted two places ahead, so that filling leaves each list's begin in its place. */
    for (uint32_t m = 0; m < in->member_count; m++)
        for (uint32_t i = 0; i < in->members[m].topic_count; i++)
            x->first[in->members[m].topics[i] + 2]++;
    for (uint32_t t = 0; t < in->topic_count; t++)
        x->first[t + 2] += x->first[t + 1];
    for (uint32_t m = 0; m < in->member_count; m++)
        for (uint32_t i = 0; i < in->members[m].topic_count; i++)
            x->subscribers[x->first[in->members[m].topics[i] + 1]++] = m;
}

static uint32_t mixed_count(const struct mixed *x, uint32_t topic)
{
    return x->first[topic + 1] - x->first[topic];
}

/* More partitions for each subscriber first; then fewer subscribers; then the id, which is the
 * index. */
static bool mixed_before(const struct mixed *x, uint32_t a, uint32_t b)
{
    uint64_t left = (uint64_t)x->in->topics[a].partitions * mixed_count(x, b);
    uint64_t right = (uint64_t)x->in->topics[b].partitions * mixed_count(x, a);
    if (left != right) return left > right;
    if (mixed_count(x, a) != mixed_count(x, b)) return mixed_count(x, a) < mixed_count(x, b);
    return a < b;
}

static void mixed_order(struct mixed *x)
{
    for (uint32_t t = 0; t < x->in->topic_count; t++) {
        uint32_t low = 0, high = t; /* Binary insertion: topics are few. */
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (mixed_before(x, t, x->order[middle]))
                high = middle;
            else
                low = middle + 1;
        }
        for (uint32_t i = t; i > low; i--)
            x->order[i] = x->order[i - 1];
        x->order[low] = t;
    }
}

static bool less_loaded(const struct mixed *x, uint32_t a, uint32_t b)
{
    return x->load[a] != x->load[b] ? x->load[a] < x->load[b] : a < b;
}

static void heap_sift(struct mixed *x, uint32_t at, uint32_t count)
{
    uint32_t moved = x->heap[at];
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && less_loaded(x, x->heap[child + 1], x->heap[child])) child++;
        if (!less_loaded(x, x->heap[child], moved)) break;
        x->heap[at] = x->heap[child];
    }
    x->heap[at] = moved;
}

static void mixed_give(struct mixed *x, uint32_t topic)
{
    uint32_t count = mixed_count(x, topic);
    if (count == 0) return;
    memcpy(x->heap, x->subscribers + x->first[topic], count * sizeof(*x->heap));
    for (uint32_t i = count / 2; i-- > 0;)
        heap_sift(x, i, count);
    for (uint32_t n = x->numbers.base[topic]; n < x->numbers.base[topic + 1]; n++) {
        if (x->numbers.owner[n] != ASSIGNOR_NOBODY) continue;
        x->numbers.owner[n] = x->heap[0];
        x->load[x->heap[0]]++;
        heap_sift(x, 0, count);
    }
}

/* The last partition of the topic that the most loaded owner has goes to the least loaded
 * subscriber. False: they are level. */
static bool mixed_move(struct mixed *x, uint32_t topic)
{
    uint32_t most = ASSIGNOR_NOBODY, least = x->subscribers[x->first[topic]], last = 0;
    for (uint32_t i = x->first[topic]; i < x->first[topic + 1]; i++)
        if (less_loaded(x, x->subscribers[i], least)) least = x->subscribers[i];
    for (uint32_t n = x->numbers.base[topic]; n < x->numbers.base[topic + 1]; n++) {
        uint32_t owner = x->numbers.owner[n];
        if (most == ASSIGNOR_NOBODY || x->load[owner] > x->load[most] || owner == most) {
            most = owner;
            last = n;
        }
    }
    if (most == ASSIGNOR_NOBODY || x->load[most] <= x->load[least] + 1) return false;
    x->numbers.owner[last] = least;
    x->load[most]--;
    x->load[least]++;
    return true;
}

bool assignor_mixed(struct arena *arena, struct assignor_input *in)
{
    struct mixed x = {.in = in};
    bool moved = true;
    if (!mixed_init(&x, arena)) return false;
    mixed_subscribers(&x);
    mixed_order(&x);
    for (uint32_t m = 0; m < in->member_count; m++) {
        uint32_t at = 0, number;
        while ((number = assignor_kept(&x.numbers, &in->members[m], &at)) != ASSIGNOR_NOBODY) {
            x.numbers.owner[number] = m;
            x.load[m]++;
        }
    }
    for (uint32_t i = 0; i < in->topic_count; i++)
        mixed_give(&x, x.order[i]);
    for (uint32_t round = 0; moved && round < MIXED_ROUNDS_MAX; round++) {
        moved = false;
        for (uint32_t i = 0; i < in->topic_count; i++) {
            if (mixed_count(&x, x.order[i]) < 2) continue;
            while (mixed_move(&x, x.order[i]))
                moved = true;
        }
    }
    return assignor_answer(arena, &x.numbers, in);
}
