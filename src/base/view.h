/* view.h - bytes that somebody else owns: a pointer, a size, and whether it is null.
 *
 * A view is passed by value. It lives as long as the buffer behind it; who keeps one says which. */
#pragma once

#include "base/base.h"

struct view {
    const uint8_t *data; /* Not NUL-terminated. For an external view: the owner's token. */
    uint32_t size;       /* In bytes. */
    bool null;           /* The protocol's null, which is not the empty string. */
    bool external;       /* `data` is a token, not bytes: see wire/wire.h on encoding. */
};

/* A Kafka UUID: sixteen bytes in wire order. All zero is "none". */
struct uuid {
    uint8_t bytes[16];
};

#define VIEW_NULL  ((struct view){.null = true})
#define VIEW_EMPTY ((struct view){.null = false})

/* A view of a string literal. */
#define VIEW(literal)                                                                              \
    ((struct view){(const uint8_t *)("" literal), sizeof(literal) - 1, false, false})

static inline struct view view_of(const void *data, uint32_t size)
{
    return (struct view){(const uint8_t *)data, size, false, false};
}

/* A view of a NUL-terminated string; of NULL, the null view. Cost: O(length). */
static inline struct view view_of_string(const char *text)
{
    if (text == NULL) return VIEW_NULL;
    uint32_t size = 0;
    while (text[size] != '\0')
        size++;
    return view_of(text, size);
}

/* Same bytes; null equals only null. */
static inline bool view_equal(struct view a, struct view b)
{
    if (a.null || b.null) return a.null == b.null;
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Order by bytes, the shorter first where one begins the other; null before all. */
static inline int view_compare(struct view a, struct view b)
{
    if (a.null || b.null) return (int)b.null - (int)a.null;
    uint32_t common = MIN(a.size, b.size);
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    if (order != 0) return order;
    return (a.size > b.size) - (a.size < b.size);
}

/* Is it this text? NULL is the null view. Ends at the first byte that differs. */
static inline bool view_is(struct view a, const char *text)
{
    if (a.null || text == NULL) return a.null && text == NULL;
    for (uint32_t i = 0; i < a.size; i++)
        if (text[i] == '\0' || (uint8_t)text[i] != a.data[i]) return false;
    return text[a.size] == '\0';
}

static inline bool uuid_equal(struct uuid a, struct uuid b)
{
    return memcmp(a.bytes, b.bytes, sizeof(a.bytes)) == 0;
}

static inline bool uuid_is_zero(struct uuid a)
{
    return uuid_equal(a, (struct uuid){{0}});
}
