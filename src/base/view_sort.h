/* view_sort.h - sorting views by their bytes, where a client's list has to be in order. */
#pragma once

#include "base/view.h"

/* In the order of view_compare, in place. O(n log n) whatever the input. */
void view_sort(struct view *views, uint32_t count);
