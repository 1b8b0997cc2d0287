/* join.h - a little text: views put one behind the other in an arena. For error messages. */
#pragma once

#include "base/arena.h"

/* The parts' bytes in a row; null parts count as empty. Null: no memory (arena->failed). */
struct view join_parts(struct arena *arena, const struct view *parts, uint32_t count);

/* JOIN(arena, VIEW("topic \""), name, VIEW("\" exists")) */
#define JOIN(arena, ...)                                                                           \
    join_parts((arena), (const struct view[]){__VA_ARGS__},                                        \
               sizeof((const struct view[]){__VA_ARGS__}) / sizeof(struct view))

/* A decimal number. */
struct view join_number(struct arena *arena, int64_t number);
