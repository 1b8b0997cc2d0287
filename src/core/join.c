/* join.c - putting views one behind the other. */
#include "core/join.h"

struct view join_parts(struct arena *arena, const struct view *parts, uint32_t count)
{
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++)
        size += parts[i].null ? 0 : parts[i].size;
    assert(size <= UINT32_MAX);
    uint8_t *text = arena_get(arena, size + 1);
    if (text == NULL) return VIEW_NULL;
    uint8_t *at = text;
    for (uint32_t i = 0; i < count; i++) {
        if (parts[i].null || parts[i].size == 0) continue;
        memcpy(at, parts[i].data, parts[i].size);
        at += parts[i].size;
    }
    return view_of(text, (uint32_t)size);
}

struct view join_number(struct arena *arena, int64_t number)
{
    uint8_t digits[20];
    uint32_t at = sizeof(digits);
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do {
        digits[--at] = (uint8_t)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (number < 0) digits[--at] = '-';
    return arena_copy(arena, view_of(digits + at, (uint32_t)sizeof(digits) - at));
}
