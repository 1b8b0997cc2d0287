/* names.c - open addressing, at most half full. */
#include "core/names.h"

#include "base/map.h"

bool names_init(struct names *names, struct arena *arena, uint32_t count, uint64_t seed)
{
    uint32_t size = 8;
    while (size / 2 < count)
        size *= 2;
    *names = (struct names){.mask = size - 1, .seed = seed};
    names->slots = arena_get(arena, size * sizeof(names->slots[0]));
    if (names->slots == NULL) return false;
    for (uint32_t i = 0; i < size; i++)
        names->slots[i].name = VIEW_NULL;
    return true;
}

static struct names_slot *names_slot(const struct names *names, struct view name)
{
    assert(!name.null);
    uint32_t at = (uint32_t)map_hash(names->seed, name) & names->mask;
    while (!names->slots[at].name.null && !view_equal(names->slots[at].name, name))
        at = (at + 1) & names->mask;
    return &names->slots[at];
}

uint32_t names_see(struct names *names, struct view name)
{
    struct names_slot *slot = names_slot(names, name);
    if (slot->count == 0) slot->place = names->size++;
    slot->name = name;
    return ++slot->count;
}

uint32_t names_seen(const struct names *names, struct view name)
{
    return names_slot(names, name)->count;
}

uint32_t names_place(const struct names *names, struct view name)
{
    const struct names_slot *slot = names_slot(names, name);
    return slot->count == 0 ? NAMES_NONE : slot->place;
}
