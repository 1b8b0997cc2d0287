/* out.c - see out.h. */
#include "text/out.h"

#include "base/limits.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_";

void out_init(struct out *out, struct mem *mem)
{
    *out = (struct out){.mem = mem};
}

void out_free(struct out *out)
{
    out->text = mem_put(out->mem, out->text, out->room_bytes);
    out_init(out, out->mem);
}

void out_reset(struct out *out)
{
    out->size_bytes = 0;
    out->failed = false;
}

struct view out_so_far(const struct out *out)
{
    return view_of(out->text, (uint32_t)out->size_bytes);
}

/* Room for `more_bytes` at the end, or false and `failed`. */
static bool out_grow(struct out *out, size_t more_bytes)
{
    if (out->failed) return false;
    if (more_bytes <= out->room_bytes - out->size_bytes) return true;
    size_t room_bytes = MAX(out->room_bytes, (size_t)256);
    while (room_bytes < out->size_bytes + more_bytes && room_bytes < TEXT_OUT_MAX)
        room_bytes *= 2;
    char *text = NULL;
    if (more_bytes <= TEXT_OUT_MAX && room_bytes >= out->size_bytes + more_bytes)
        text = mem_get(out->mem, room_bytes);
    if (text == NULL) {
        out->failed = true;
        return false;
    }
    if (out->size_bytes > 0) memcpy(text, out->text, out->size_bytes);
    mem_put(out->mem, out->text, out->room_bytes);
    out->text = text;
    out->room_bytes = room_bytes;
    return true;
}

void out_bytes(struct out *out, const void *bytes, size_t size_bytes)
{
    if (size_bytes == 0 || !out_grow(out, size_bytes)) return;
    memcpy(out->text + out->size_bytes, bytes, size_bytes);
    out->size_bytes += size_bytes;
}

void out_char(struct out *out, char c)
{
    out_bytes(out, &c, 1);
}

void out_text(struct out *out, const char *text)
{
    out_bytes(out, text, strlen(text));
}

void out_view(struct out *out, struct view bytes)
{
    out_bytes(out, bytes.data, bytes.size);
}

void out_format(struct out *out, const char *format, ...)
{
    va_list arguments;
    char small[256];

    va_start(arguments, format);
    int size = vsnprintf(small, sizeof(small), format, arguments);
    va_end(arguments);
    assert(size >= 0);
    if ((size_t)size < sizeof(small)) {
        out_bytes(out, small, (size_t)size);
        return;
    }
    if (!out_grow(out, (size_t)size + 1)) return;
    va_start(arguments, format);
    vsnprintf(out->text + out->size_bytes, (size_t)size + 1, format, arguments);
    va_end(arguments);
    out->size_bytes += (size_t)size;
}

void out_repeat(struct out *out, char c, size_t count)
{
    if (count == 0 || !out_grow(out, count)) return;
    memset(out->text + out->size_bytes, c, count);
    out->size_bytes += count;
}

static size_t line_start(const struct out *out)
{
    size_t at = out->size_bytes;
    while (at > 0 && out->text[at - 1] != '\n')
        at--;
    return at;
}

static size_t line_width(const struct out *out)
{
    size_t start = line_start(out);
    return out_width(view_of(out->text + start, (uint32_t)(out->size_bytes - start)));
}

void out_column(struct out *out, size_t column)
{
    size_t width = line_width(out);
    if (width < column) out_repeat(out, ' ', column - width);
}

void out_trim(struct out *out)
{
    while (out->size_bytes > 0 && out->text[out->size_bytes - 1] == ' ')
        out->size_bytes--;
}

void out_wrapped(struct out *out, const char *text, size_t indent, size_t width)
{
    size_t column = line_width(out);
    bool first = true;

    while (*text != '\0') {
        size_t size = strcspn(text, " \n");
        size_t word = out_width(view_of(text, (uint32_t)size));
        if (!first && column + 1 + word > width) {
            out_char(out, '\n');
            out_repeat(out, ' ', indent);
            column = indent;
        } else if (!first) {
            out_char(out, ' ');
            column++;
        }
        out_bytes(out, text, size);
        column += word;
        first = false;
        text += size;
        text += strspn(text, " \n");
    }
}

/* Bytes of the UTF-8 character that begins here, 0 if none does (RFC 3629: no surrogates, no
 * overlong forms, nothing above U+10FFFF). */
static uint32_t utf8_size(const uint8_t *at, uint32_t left)
{
    uint8_t lead = at[0];
    if (lead < 0x80) return 1;
    uint32_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || size > left) return 0;
    for (uint32_t i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    if (lead == 0xe0 && at[1] < 0xa0) return 0;
    if (lead == 0xed && at[1] > 0x9f) return 0;
    if (lead == 0xf0 && at[1] < 0x90) return 0;
    if (lead == 0xf4 && at[1] > 0x8f) return 0;
    return size;
}

size_t out_width(struct view text)
{
    size_t width = 0;
    for (uint32_t i = 0; i < text.size; width++)
        i += MAX(utf8_size(text.data + i, text.size - i), 1u);
    return width;
}

bool out_is_utf8(struct view text)
{
    for (uint32_t i = 0; i < text.size;) {
        uint32_t size = utf8_size(text.data + i, text.size - i);
        if (size == 0) return false;
        i += size;
    }
    return true;
}

void out_hex(struct out *out, struct view bytes)
{
    static const char digits[] = "0123456789abcdef";
    for (uint32_t i = 0; i < bytes.size; i++) {
        out_char(out, digits[bytes.data[i] >> 4]);
        out_char(out, digits[bytes.data[i] & 15]);
    }
}

void out_base64(struct out *out, struct view bytes)
{
    for (uint32_t i = 0; i < bytes.size; i += 3) {
        uint32_t left = bytes.size - i;
        uint32_t three = (uint32_t)bytes.data[i] << 16;
        if (left > 1) three |= (uint32_t)bytes.data[i + 1] << 8;
        if (left > 2) three |= bytes.data[i + 2];
        out_char(out, base64_digits[three >> 18]);
        out_char(out, base64_digits[three >> 12 & 63]);
        out_char(out, left > 1 ? base64_digits[three >> 6 & 63] : '=');
        out_char(out, left > 2 ? base64_digits[three & 63] : '=');
    }
}

void out_uuid(struct out *out, struct uuid uuid)
{
    uint32_t bits = 0, bit_count = 0;
    for (size_t i = 0; i < sizeof(uuid.bytes); i++) {
        bits = bits << 8 | uuid.bytes[i];
        for (bit_count += 8; bit_count >= 6; bit_count -= 6) {
            uint32_t digit = bits >> (bit_count - 6) & 63;
            out_char(out, base64_digits[digit < 62 ? digit : digit + 2]);
        }
    }
    uint32_t rest = bits << (6 - bit_count) & 63;
    out_char(out, base64_digits[rest < 62 ? rest : rest + 2]);
}

static void quoted_char(struct out *out, uint8_t c)
{
    switch (c) {
    case '"': out_text(out, "\\\""); break;
    case '\\': out_text(out, "\\\\"); break;
    case '\n': out_text(out, "\\n"); break;
    case '\r': out_text(out, "\\r"); break;
    case '\t': out_text(out, "\\t"); break;
    default:
        if (c < 0x20 || c == 0x7f) {
            out_format(out, "\\u%04x", c);
        } else {
            out_char(out, (char)c);
        }
    }
}

/* In double quotes; a byte that is no UTF-8 by `invalid`, or as \xNN where that is NULL. */
static void quoted(struct out *out, struct view text, const char *invalid)
{
    out_char(out, '"');
    for (uint32_t i = 0; i < text.size;) {
        uint32_t size = utf8_size(text.data + i, text.size - i);
        if (size == 1) {
            quoted_char(out, text.data[i]);
        } else if (size > 1) {
            out_bytes(out, text.data + i, size);
        } else if (invalid != NULL) {
            out_text(out, invalid);
        } else {
            out_format(out, "\\x%02x", text.data[i]);
        }
        i += MAX(size, 1u);
    }
    out_char(out, '"');
}

void out_quoted(struct out *out, struct view text)
{
    quoted(out, text, "\xef\xbf\xbd");
}

void out_literal(struct out *out, struct view text)
{
    quoted(out, text, NULL);
}

void out_html(struct out *out, struct view text)
{
    for (uint32_t i = 0; i < text.size; i++) {
        switch (text.data[i]) {
        case '&': out_text(out, "&amp;"); break;
        case '<': out_text(out, "&lt;"); break;
        case '>': out_text(out, "&gt;"); break;
        case '"': out_text(out, "&quot;"); break;
        default: out_char(out, (char)text.data[i]);
        }
    }
}

void out_double(struct out *out, double value)
{
    char text[40];

    if (isnan(value) || isinf(value)) {
        out_text(out, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    out_text(out, text);
    if (strpbrk(text, ".en") == NULL) out_text(out, ".0");
}
