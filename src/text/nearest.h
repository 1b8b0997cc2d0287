/* nearest.h - the known name that a mistyped one most likely means. */
#pragma once

#include "base/view.h"

/* Edits (insert, delete, replace, swap of neighbours) that turn one into the other, case not
 * counted; names longer than 96 bytes are compared by their beginning. O(size²). */
uint32_t nearest_distance(struct view a, struct view b);

struct nearest {
    struct view wanted;
    const char *best; /* NULL: none is near enough. */
    uint32_t distance;
};

/* Start a search: then offer each known name, then read `best`. A name is near enough if at most a
 * third of its letters differ, or if it begins with what was wanted. */
struct nearest nearest_to(struct view wanted);
void nearest_offer(struct nearest *nearest, const char *name);
