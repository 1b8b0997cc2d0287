/* chance.h - random numbers of the simulation's own side: clients, faults, shapes of clusters.
 *
 * The world behind the seam draws its own; each user here has a stream of its own, so that one
 * more draw in one place does not change the others. */
#pragma once

#include "base/base.h"

struct chance {
    uint64_t state;
};

static inline uint64_t chance_mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* The stream `name` of a seed. */
static inline struct chance chance_of(uint64_t seed, uint64_t name)
{
    return (struct chance){chance_mixed(seed + 0x9e3779b97f4a7c15ull) ^ chance_mixed(name + 1)};
}

static inline uint64_t chance_next(struct chance *chance)
{
    return chance_mixed(chance->state += 0x9e3779b97f4a7c15ull);
}

/* 0 .. below - 1; `below` > 0. */
static inline uint32_t chance_below(struct chance *chance, uint32_t below)
{
    assert(below > 0);
    return (uint32_t)((chance_next(chance) >> 32) * below >> 32);
}

static inline bool chance_percent(struct chance *chance, uint32_t percent)
{
    return chance_below(chance, 100) < percent;
}
