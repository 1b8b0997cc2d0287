/* names.h - how often a name was seen, and as which: a set of names in an arena, for requests that
 * must not name a thing twice, and for lists that name what stands in another. */
#pragma once

#include "base/arena.h"

struct names_slot {
    struct view name; /* Null: free. */
    uint32_t count;
    uint32_t place; /* Among the names, in the order in which they were first seen. */
};

struct names {
    struct names_slot *slots;
    uint32_t mask;
    uint32_t size; /* Names that differ. */
    uint64_t seed;
};

/* Room for `count` names. `seed` is random, so that no client can choose colliding names. False: no
 * memory. */
MUST_USE bool names_init(struct names *names, struct arena *arena, uint32_t count, uint64_t seed);

/* See a name (which must live as long as the set) once more: how often it was seen with this. */
uint32_t names_see(struct names *names, struct view name);

/* How often it was seen. */
uint32_t names_seen(const struct names *names, struct view name);

#define NAMES_NONE UINT32_MAX

/* Its place among the names, counted from 0 in the order in which they were first seen; NAMES_NONE:
 * it was not. */
uint32_t names_place(const struct names *names, struct view name);
