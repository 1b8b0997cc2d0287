/* wheel.h - deadlines: a hierarchical timing wheel with lazy entries.
 *
 * Six levels of 64 slots; a slot of level k is 64^k milliseconds wide, so that a deadline within a
 * slot's width of level k costs at most k moves. An entry is intrusive. Moving a deadline later is
 * a plain store (wheel_defer): the entry notices when its old slot comes up and moves on by itself.
 * That is all a heartbeat does. Moving it earlier, or setting it anew, relinks it in O(1).
 *
 * A round is a row of calls of wheel_expired up to one that gives none. What is set in a round for
 * a time that the round has passed comes up a millisecond later: no entry comes up twice in a
 * round, however it sets itself anew, and none keeps the others from coming up.
 *
 * Pure: time comes in as an argument. An entry is never called before its deadline. */
#pragma once

#include "base/list.h"

#define WHEEL_LEVELS 6u
#define WHEEL_SLOTS  64u

struct wheel_entry {
    struct list link;    /* On itself: not in the wheel. */
    int64_t deadline_ms; /* May be later than the slot it is linked in. */
};

struct wheel {
    struct list slots[WHEEL_LEVELS][WHEEL_SLOTS];
    uint64_t occupied[WHEEL_LEVELS]; /* A bit for each slot that may hold entries. */
    int64_t at_ms;                   /* All deadlines up to here have been called. */
    int64_t floor_ms;                /* Nothing is set for a time before it: behind the round. */
    uint32_t count;
    bool next_known;
    int64_t next_ms; /* If it is: what wheel_next_ms says. */
};

void wheel_init(struct wheel *wheel, int64_t now_ms);

static inline void wheel_entry_init(struct wheel_entry *entry)
{
    list_init(&entry->link);
}

static inline bool wheel_armed(const struct wheel_entry *entry)
{
    return entry->link.next != &entry->link;
}

/* Set, or set anew. A deadline that has passed comes up in the next round; in a round, see above,
 * the entry's deadline is then the millisecond behind it. O(1). */
void wheel_set(struct wheel *wheel, struct wheel_entry *entry, int64_t deadline_ms);

/* The deadline is now `deadline_ms`. Later than before: one store. Earlier: wheel_set. */
static inline void wheel_defer(struct wheel *wheel, struct wheel_entry *entry, int64_t deadline_ms)
{
    if (wheel_armed(entry) && deadline_ms >= entry->deadline_ms)
        entry->deadline_ms = deadline_ms;
    else
        wheel_set(wheel, entry, deadline_ms);
}

/* Take it out; harmless if it is not in. */
void wheel_cancel(struct wheel *wheel, struct wheel_entry *entry);

/* The next entry whose deadline is at or before `now_ms`, taken out; NULL: no more, the round is
 * over. A round may be broken off: what is left comes up in the next one. Entries of one
 * millisecond come in the order they were linked. */
struct wheel_entry *wheel_expired(struct wheel *wheel, int64_t now_ms);

/* wheel_expired has just given this entry, and it was not done with: it comes up again in the same
 * round, if that goes on. */
void wheel_put_back(struct wheel *wheel, struct wheel_entry *entry);

/* When to call wheel_expired next at the latest: not after the earliest deadline, perhaps
 * before it (to move entries down a level). INT64_MAX: nothing is in the wheel. O(levels) after a
 * change, else O(1). */
int64_t wheel_next_ms(struct wheel *wheel);
