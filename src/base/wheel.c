/* wheel.c - see wheel.h. Level k's slot for time t is (t / 64^k) mod 64.
 *
 * Invariant: an entry is linked in the level where its distance from `at_ms`, counted in that
 * level's slots, is below 64; so walking `at_ms` forward meets every entry before its deadline. */
#include "base/wheel.h"

#define WHEEL_BITS 6u

static uint32_t slot_of(int64_t time_ms, uint32_t level)
{
    return (uint32_t)((uint64_t)time_ms >> (WHEEL_BITS * level)) & (WHEEL_SLOTS - 1);
}

void wheel_init(struct wheel *wheel, int64_t now_ms)
{
    memset(wheel->occupied, 0, sizeof(wheel->occupied));
    for (uint32_t level = 0; level < WHEEL_LEVELS; level++)
        for (uint32_t slot = 0; slot < WHEEL_SLOTS; slot++)
            list_init(&wheel->slots[level][slot]);
    wheel->at_ms = now_ms;
    wheel->floor_ms = INT64_MIN;
    wheel->count = 0;
    wheel->next_known = false;
}

static void wheel_link(struct wheel *wheel, struct wheel_entry *entry)
{
    int64_t when = MAX(entry->deadline_ms, wheel->at_ms);
    uint32_t level = 0;
    /* The lowest level whose round still reaches `when`. */
    while (level + 1 < WHEEL_LEVELS &&
           (when >> (WHEEL_BITS * level)) - (wheel->at_ms >> (WHEEL_BITS * level)) >= WHEEL_SLOTS)
        level++;
    int64_t reach = (wheel->at_ms >> (WHEEL_BITS * level)) + WHEEL_SLOTS - 1;
    int64_t tick =
        MIN(when >> (WHEEL_BITS * level), reach); /* Beyond all levels: as far as it goes. */
    uint32_t slot = (uint32_t)tick & (WHEEL_SLOTS - 1);
    list_append(&wheel->slots[level][slot], &entry->link);
    wheel->occupied[level] |= (uint64_t)1 << slot;
    wheel->next_known = false;
}

void wheel_set(struct wheel *wheel, struct wheel_entry *entry, int64_t deadline_ms)
{
    if (wheel_armed(entry))
        list_remove(&entry->link);
    else
        wheel->count++;
    entry->deadline_ms = MAX(deadline_ms, wheel->floor_ms);
    wheel_link(wheel, entry);
}

void wheel_put_back(struct wheel *wheel, struct wheel_entry *entry)
{
    assert(!wheel_armed(entry));
    wheel->count++;
    wheel_link(wheel, entry);
}

void wheel_cancel(struct wheel *wheel, struct wheel_entry *entry)
{
    if (!wheel_armed(entry)) return;
    list_remove(&entry->link);
    wheel->count--;
    wheel->next_known = false;
}

/* Link the entries of a slot anew: they go down, or on if their deadline was deferred. */
static void wheel_cascade(struct wheel *wheel, uint32_t level, uint32_t slot)
{
    struct list moved;
    list_init(&moved);
    struct list *node;
    while ((node = list_pop(&wheel->slots[level][slot])) != NULL)
        list_append(&moved, node);
    wheel->occupied[level] &= ~((uint64_t)1 << slot);
    wheel->next_known = false;
    while ((node = list_pop(&moved)) != NULL)
        wheel_link(wheel, container_of(node, struct wheel_entry, link));
}

/* Time of the next slot of a level that may hold entries, after `at_ms`; INT64_MAX: none. */
static int64_t wheel_next_of(const struct wheel *wheel, uint32_t level)
{
    uint64_t bits = wheel->occupied[level];
    if (bits == 0) return INT64_MAX;
    uint32_t now_slot = slot_of(wheel->at_ms, level);
    uint32_t turn = (now_slot + 1) & (WHEEL_SLOTS - 1);
    uint64_t rotated = turn == 0 ? bits : (bits >> turn) | (bits << (WHEEL_SLOTS - turn));
    int64_t tick = (wheel->at_ms >> (WHEEL_BITS * level)) + 1 + __builtin_ctzll(rotated);
    return tick << (WHEEL_BITS * level);
}

static int64_t wheel_look(const struct wheel *wheel)
{
    if (wheel->count == 0) return INT64_MAX;
    if (!list_empty(&wheel->slots[0][slot_of(wheel->at_ms, 0)])) return wheel->at_ms;
    int64_t next = INT64_MAX;
    for (uint32_t level = 0; level < WHEEL_LEVELS; level++) {
        int64_t of_level = wheel_next_of(wheel, level);
        next = MIN(next, of_level);
    }
    return next;
}

int64_t wheel_next_ms(struct wheel *wheel)
{
    if (!wheel->next_known) wheel->next_ms = wheel_look(wheel);
    wheel->next_known = true;
    return wheel->next_ms;
}

/* An entry of the current slot of level 0 that is due; what was deferred is linked anew. */
static struct wheel_entry *wheel_take(struct wheel *wheel, int64_t now_ms)
{
    uint32_t slot = slot_of(wheel->at_ms, 0);
    struct list *node;
    while ((node = list_pop(&wheel->slots[0][slot])) != NULL) {
        struct wheel_entry *entry = container_of(node, struct wheel_entry, link);
        if (entry->deadline_ms <= now_ms) {
            wheel->count--;
            wheel->next_known = false;
            return entry;
        }
        wheel_link(wheel, entry);
    }
    uint64_t bit = (uint64_t)1 << slot;
    if (wheel->occupied[0] & bit) wheel->next_known = false;
    wheel->occupied[0] &= ~bit;
    return NULL;
}

struct wheel_entry *wheel_expired(struct wheel *wheel, int64_t now_ms)
{
    for (;;) {
        struct wheel_entry *entry = wheel_take(wheel, now_ms);
        if (entry != NULL) {
            wheel->floor_ms = now_ms < INT64_MAX ? now_ms + 1 : now_ms;
            return entry;
        }
        int64_t next = wheel_next_ms(wheel);
        if (next > now_ms) {
            if (now_ms > wheel->at_ms) wheel->at_ms = now_ms;
            wheel->floor_ms = INT64_MIN;
            return NULL;
        }
        wheel->at_ms = next;
        for (uint32_t level = WHEEL_LEVELS - 1; level > 0; level--)
            if ((next & (((int64_t)1 << (WHEEL_BITS * level)) - 1)) == 0)
                wheel_cascade(wheel, level, slot_of(next, level));
    }
}
