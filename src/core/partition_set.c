/* partition_set.c - see partition_set.h. */
#include "core/partition_set.h"

bool partition_set_room(struct partition_set *set, struct arena *arena, size_t capacity)
{
    *set = (struct partition_set){0};
    if (capacity == 0) return true;
    set->items = arena_take(arena, capacity * sizeof(*set->items));
    return set->items != NULL;
}

/* Heap sort: no recursion, no second array. */
static void sift(struct partition_item *items, uint32_t at, uint32_t count)
{
    struct partition_item moved = items[at];
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && partition_compare(&items[child], &items[child + 1]) < 0) child++;
        if (partition_compare(&moved, &items[child]) >= 0) break;
        items[at] = items[child];
    }
    items[at] = moved;
}

static bool sorted(const struct partition_set *set)
{
    for (uint32_t i = 1; i < set->count; i++)
        if (partition_compare(&set->items[i - 1], &set->items[i]) >= 0) return false;
    return true;
}

void partition_set_sort(struct partition_set *set)
{
    uint32_t kept = 0;
    if (sorted(set)) return; /* The usual case: clients and logs list them in order. */
    for (uint32_t i = set->count / 2; i-- > 0;)
        sift(set->items, i, set->count);
    for (uint32_t end = set->count - 1; end > 0; end--) {
        struct partition_item last = set->items[end];
        set->items[end] = set->items[0];
        set->items[0] = last;
        sift(set->items, 0, end);
    }
    for (uint32_t i = 0; i < set->count; i++) {
        if (kept > 0 && partition_compare(&set->items[kept - 1], &set->items[i]) == 0) continue;
        set->items[kept++] = set->items[i];
    }
    set->count = kept;
    assert_slow(sorted(set));
}

bool partition_set_equal(const struct partition_set *a, const struct partition_set *b)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (partition_compare(&a->items[i], &b->items[i]) != 0) return false;
    return true;
}

bool partition_set_same(const struct partition_set *a, const struct partition_set *b)
{
    if (!partition_set_equal(a, b)) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->items[i].epoch != b->items[i].epoch) return false;
    return true;
}

bool partition_set_intersect(const struct partition_set *a, const struct partition_set *b)
{
    for (uint32_t i = 0, j = 0; i < a->count && j < b->count;) {
        int order = partition_compare(&a->items[i], &b->items[j]);
        if (order == 0) return true;
        i += order < 0;
        j += order > 0;
    }
    return false;
}

bool partition_set_covers(const struct partition_set *whole, const struct partition_set *part)
{
    uint32_t j = 0;
    for (uint32_t i = 0; i < whole->count && j < part->count; i++) {
        int order = partition_compare(&whole->items[i], &part->items[j]);
        if (order > 0) return false;
        j += order == 0;
    }
    return j == part->count;
}

const struct partition_item *partition_set_find(const struct partition_set *set,
                                                struct uuid topic,
                                                int32_t partition)
{
    struct partition_item key = {.topic = topic, .partition = partition};
    uint32_t low = 0, high = set->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = partition_compare(&set->items[middle], &key);
        if (order == 0) return &set->items[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* One walk over both: items of `a` alone, of both, of `b` alone are taken or left. */
struct merge_take {
    bool a, both, b;
};

static bool merge(struct partition_set *out,
                  struct arena *arena,
                  const struct partition_set *a,
                  const struct partition_set *b,
                  struct merge_take take)
{
    size_t room = (size_t)a->count + (take.b ? b->count : 0);
    struct partition_set made;
    if (!partition_set_room(&made, arena, room)) return false;
    uint32_t i = 0, j = 0;
    while (i < a->count || j < b->count) {
        int order = i == a->count   ? 1
                    : j == b->count ? -1
                                    : partition_compare(&a->items[i], &b->items[j]);
        if (order < 0 ? take.a : order == 0 && take.both) made.items[made.count++] = a->items[i];
        if (order > 0 && take.b) made.items[made.count++] = b->items[j];
        i += order <= 0;
        j += order >= 0;
    }
    assert(made.count <= room);
    *out = made;
    return true;
}

bool partition_set_both(struct arena *arena,
                        const struct partition_set *a,
                        const struct partition_set *b,
                        struct partition_set *out)
{
    return merge(out, arena, a, b, (struct merge_take){.both = true});
}

bool partition_set_minus(struct arena *arena,
                         const struct partition_set *a,
                         const struct partition_set *b,
                         struct partition_set *out)
{
    return merge(out, arena, a, b, (struct merge_take){.a = true});
}

bool partition_set_join(struct arena *arena,
                        const struct partition_set *a,
                        const struct partition_set *b,
                        struct partition_set *out)
{
    return merge(out, arena, a, b, (struct merge_take){.a = true, .both = true, .b = true});
}

bool partition_set_keep(struct mem *mem, struct partition_set *to, const struct partition_set *from)
{
    struct partition_set made = {.count = from->count};
    if (from->count > 0) {
        made.items = mem_get(mem, from->count * sizeof(*made.items));
        if (made.items == NULL) return false;
        memcpy(made.items, from->items, from->count * sizeof(*made.items));
    }
    partition_set_free(mem, to);
    *to = made;
    return true;
}

void partition_set_free(struct mem *mem, struct partition_set *set)
{
    if (set->count > 0) mem_put(mem, set->items, set->count * sizeof(*set->items));
    *set = (struct partition_set){0};
}

uint32_t partition_set_run(const struct partition_set *set, uint32_t at)
{
    uint32_t end = at;
    assert(at <= set->count);
    while (end < set->count && uuid_equal(set->items[end].topic, set->items[at].topic))
        end++;
    return end - at;
}

uint32_t partition_set_topics(const struct partition_set *set)
{
    uint32_t topics = 0;
    for (uint32_t at = 0; at < set->count; at += partition_set_run(set, at))
        topics++;
    return topics;
}
