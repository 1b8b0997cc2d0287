/* properties.c - see properties.h. One pass: lines are found with their continuations, unescaped
 * into the arena, and split at the first separator that is not escaped. */
#include "sys/properties.h"

struct scan {
    const uint8_t *at;
    const uint8_t *end;
    uint32_t line; /* Of `at`, from 1. */
};

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

static void skip_space(struct scan *in)
{
    while (in->at < in->end && is_space(*in->at))
        in->at++;
}

/* Is there a line end? Then step over it (\n, \r, or \r\n). */
static bool line_end(struct scan *in)
{
    if (in->at == in->end) return true;
    if (*in->at != '\n' && *in->at != '\r') return false;
    if (*in->at == '\r' && in->at + 1 < in->end && in->at[1] == '\n') in->at++;
    in->at++;
    in->line++;
    return true;
}

/* Step over a comment or blank line's rest. */
static void skip_line(struct scan *in)
{
    while (!line_end(in))
        in->at++;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* The UTF-16 unit after "\u", or -1. */
static int32_t hex_unit(struct scan *in)
{
    if (in->end - in->at < 4) return -1;
    int32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(in->at[i]);
        if (digit < 0) return -1;
        unit = unit * 16 + digit;
    }
    in->at += 4;
    return unit;
}

static uint8_t *put_utf8(uint8_t *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (uint8_t)c;
    } else if (c < 0x800) {
        *out++ = (uint8_t)(0xc0 | (c >> 6));
        *out++ = (uint8_t)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *out++ = (uint8_t)(0xe0 | (c >> 12));
        *out++ = (uint8_t)(0x80 | ((c >> 6) & 0x3f));
        *out++ = (uint8_t)(0x80 | (c & 0x3f));
    } else {
        *out++ = (uint8_t)(0xf0 | (c >> 18));
        *out++ = (uint8_t)(0x80 | ((c >> 12) & 0x3f));
        *out++ = (uint8_t)(0x80 | ((c >> 6) & 0x3f));
        *out++ = (uint8_t)(0x80 | (c & 0x3f));
    }
    return out;
}

/* \uXXXX, with its second half if it is a surrogate. At most as many bytes out as came in. */
static bool unescape_unit(struct scan *in, uint8_t **out)
{
    int32_t unit = hex_unit(in);
    if (unit < 0) return false;
    uint32_t c = (uint32_t)unit;
    if (c >= 0xd800 && c < 0xdc00 && in->end - in->at >= 6 && in->at[0] == '\\' &&
        in->at[1] == 'u') {
        struct scan second = {in->at + 2, in->end, in->line};
        int32_t low = hex_unit(&second);
        if (low >= 0xdc00 && low < 0xe000) {
            in->at = second.at;
            c = 0x10000 + ((c - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
        }
    }
    if (c == 0) return false;
    if (c >= 0xd800 && c < 0xe000) c = 0xfffd; /* Half a pair alone. */
    *out = put_utf8(*out, c);
    return true;
}

/* What stands behind a backslash, that does not end the line. */
static bool unescape(struct scan *in, uint8_t **out)
{
    uint8_t c = *in->at++;
    switch (c) {
    case 't': *(*out)++ = '\t'; return true;
    case 'n': *(*out)++ = '\n'; return true;
    case 'r': *(*out)++ = '\r'; return true;
    case 'f': *(*out)++ = '\f'; return true;
    case 'u': return unescape_unit(in, out);
    default: *(*out)++ = c; return true;
    }
}

/* Read up to the line's end or, in a key, to its separator. `*out` moves on. */
static enum properties_result read_part(struct scan *in, bool key, uint8_t **out)
{
    while (in->at < in->end && *in->at != '\n' && *in->at != '\r') {
        uint8_t c = *in->at;
        if (c == '\0') return PROPERTIES_E_NUL;
        if (key && (c == '=' || c == ':' || is_space(c))) return PROPERTIES_OK;
        in->at++;
        if (c != '\\') {
            *(*out)++ = c;
        } else if (line_end(in)) {
            skip_space(in);
        } else if (!unescape(in, out)) {
            return PROPERTIES_E_ESCAPE;
        }
    }
    return PROPERTIES_OK;
}

/* Space, and line ends that a backslash joins. */
static void skip_blank(struct scan *in)
{
    for (;;) {
        skip_space(in);
        if (in->end - in->at < 2 || in->at[0] != '\\') return;
        if (in->at[1] != '\n' && in->at[1] != '\r') return;
        in->at++;
        (void)line_end(in);
    }
}

/* Space, one separator, space; all of them may be missing. */
static void skip_separator(struct scan *in)
{
    skip_blank(in);
    if (in->at < in->end && (*in->at == '=' || *in->at == ':')) {
        in->at++;
        skip_blank(in);
    }
}

static struct property *find(const struct properties *properties, struct view name)
{
    for (uint32_t i = 0; i < properties->count; i++)
        if (view_equal(properties->items[i].name, name)) return &properties->items[i];
    return NULL;
}

const struct property *properties_find(const struct properties *properties, struct view name)
{
    return find(properties, name);
}

static enum properties_result put(struct properties *properties,
                                  struct property property,
                                  struct arena *config)
{
    struct property *old = find(properties, property.name);
    if (old != NULL) {
        property.replaced_line = old->line;
        *old = property;
        return PROPERTIES_OK;
    }
    if (properties->count >= PROPERTIES_MAX) return PROPERTIES_E_TOO_MANY;
    if (properties->count == properties->room) {
        uint32_t room = MAX(16, 2 * properties->room);
        struct property *items = arena_get(config, room * sizeof(*items));
        if (items == NULL) return PROPERTIES_E_NO_MEMORY;
        if (properties->count > 0)
            memcpy(items, properties->items, properties->count * sizeof(*items));
        properties->items = items;
        properties->room = room;
    }
    properties->items[properties->count++] = property;
    return PROPERTIES_OK;
}

/* One logical line that is not blank and no comment. Its text gets no longer by unescaping, so the
 * bytes that are left are room enough. */
static enum properties_result read_line(struct scan *in,
                                        uint8_t *room,
                                        struct property *out,
                                        uint8_t **room_end)
{
    uint8_t *at = room;
    out->line = in->line;
    enum properties_result result = read_part(in, true, &at);
    out->name = view_of(room, (uint32_t)(at - room));
    if (result != PROPERTIES_OK) return result;
    *at++ = '\0';
    skip_separator(in);
    uint8_t *value = at;
    result = read_part(in, false, &at);
    out->value = view_of(value, (uint32_t)(at - value));
    *at++ = '\0';
    *room_end = at;
    return result;
}

enum properties_result properties_parse(struct properties *properties,
                                        struct view text,
                                        struct arena *config,
                                        uint32_t *line)
{
    /* Two NULs a line more than the text: a line has at least one byte and its end. */
    uint8_t *room = arena_get(config, 2 * (size_t)text.size + 2);
    if (room == NULL) return PROPERTIES_E_NO_MEMORY;
    struct scan in = {text.data, text.data + text.size, 1};
    while (in.at < in.end) {
        skip_space(&in);
        if (line_end(&in)) continue;
        if (*in.at == '#' || *in.at == '!') {
            skip_line(&in);
            continue;
        }
        struct property property = {0};
        enum properties_result result = read_line(&in, room, &property, &room);
        *line = property.line;
        if (result == PROPERTIES_OK) result = put(properties, property, config);
        if (result != PROPERTIES_OK) return result;
        (void)line_end(&in);
    }
    return PROPERTIES_OK;
}

enum properties_result properties_set(struct properties *properties,
                                      struct view name,
                                      struct view value,
                                      struct arena *config)
{
    uint8_t *copy = arena_get(config, (size_t)name.size + value.size + 2);
    if (copy == NULL) return PROPERTIES_E_NO_MEMORY;
    if (name.size > 0) memcpy(copy, name.data, name.size);
    if (value.size > 0) memcpy(copy + name.size + 1, value.data, value.size);
    struct property property = {view_of(copy, name.size), view_of(copy + name.size + 1, value.size),
                                0, 0};
    return put(properties, property, config);
}
