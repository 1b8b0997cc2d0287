/* utf8.h - reading text by its characters. */
#pragma once

#include "base/view.h"

/* The code point at `*at`, which goes on behind it. The text is valid UTF-8, as what was decoded
 * from the wire is, and `*at` lies within it; reads nothing outside of it whatever its bytes. O(1).
 */
static inline uint32_t utf8_next(struct view text, uint32_t *at)
{
    uint8_t first = text.data[(*at)++];
    uint32_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
    uint32_t value = more == 0 ? first : first & (0x3fu >> more);
    while (more-- > 0 && *at < text.size)
        value = value << 6 | (text.data[(*at)++] & 0x3fu);
    return value;
}
