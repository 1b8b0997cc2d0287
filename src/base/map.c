/* map.c - chained hash map with doubling. Load factor at most one. */
#include "base/map.h"

#define MAP_BUCKETS_FIRST 16u

/* Multiply and fold (wyhash's step): cheap, seeded, well mixed. */
static uint64_t map_mix(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t map_hash(uint64_t seed, struct view key)
{
    uint64_t h = seed ^ 0x9e3779b97f4a7c15u ^ ((uint64_t)key.size << 32);
    const uint8_t *p = key.data;
    uint32_t left = key.null ? 0 : key.size;

    while (left >= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = map_mix(h ^ word, 0xe7037ed1a0b428dbu);
        p += 8;
        left -= 8;
    }
    uint64_t tail = 0;
    if (left > 0) memcpy(&tail, p, left);
    return map_mix(h ^ tail, 0x8ebc6af09c88c6e3u ^ seed);
}

void map_init(struct map *map, struct mem *mem, uint64_t seed)
{
    *map = (struct map){.mem = mem, .seed = seed};
}

void map_free(struct map *map)
{
    mem_put(map->mem, map->buckets, map->bucket_count * sizeof(map->buckets[0]));
    map->buckets = NULL;
    map->bucket_count = 0;
    map->count = 0;
}

static struct map_node **map_bucket(const struct map *map, uint64_t hash)
{
    return &map->buckets[hash & (map->bucket_count - 1)];
}

struct map_node *map_find(const struct map *map, struct view key)
{
    if (map->count == 0) return NULL;
    uint64_t hash = map_hash(map->seed, key);
    for (struct map_node *node = *map_bucket(map, hash); node != NULL; node = node->next)
        if (node->hash == hash && view_equal(node->key, key)) return node;
    return NULL;
}

static bool map_grow(struct map *map)
{
    uint32_t count = map->bucket_count == 0 ? MAP_BUCKETS_FIRST : map->bucket_count * 2;
    struct map_node **buckets = mem_get(map->mem, count * sizeof(buckets[0]));
    if (buckets == NULL) return map->bucket_count != 0; /* Longer chains still work. */

    struct map_node **old = map->buckets;
    uint32_t old_count = map->bucket_count;
    map->buckets = buckets;
    map->bucket_count = count;
    for (uint32_t i = 0; i < old_count; i++) {
        struct map_node *node = old[i];
        while (node != NULL) {
            struct map_node *next = node->next;
            struct map_node **bucket = map_bucket(map, node->hash);
            node->next = *bucket;
            *bucket = node;
            node = next;
        }
    }
    mem_put(map->mem, old, old_count * sizeof(old[0]));
    return true;
}

bool map_insert(struct map *map, struct map_node *node)
{
    assert_slow(map_find(map, node->key) == NULL);
    if (map->count >= map->bucket_count && !map_grow(map)) return false;
    node->hash = map_hash(map->seed, node->key);
    struct map_node **bucket = map_bucket(map, node->hash);
    node->next = *bucket;
    *bucket = node;
    map->count++;
    return true;
}

void map_remove(struct map *map, struct map_node *node)
{
    struct map_node **at = map_bucket(map, node->hash);
    while (*at != node) {
        assert(*at != NULL);
        at = &(*at)->next;
    }
    *at = node->next;
    node->next = NULL;
    map->count--;
}

struct map_node *map_next(const struct map *map, const struct map_node *node)
{
    uint32_t i = 0;
    if (node != NULL) {
        if (node->next != NULL) return node->next;
        i = (uint32_t)(node->hash & (map->bucket_count - 1)) + 1;
    }
    for (; i < map->bucket_count; i++)
        if (map->buckets[i] != NULL) return map->buckets[i];
    return NULL;
}
