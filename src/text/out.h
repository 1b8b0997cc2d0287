/* out.h - a growing buffer of text, and the few ways in which bytes become text.
 *
 * A buffer that could not grow goes inert (`failed`), so that one check at the end is enough.
 * Columns count characters (UTF-8 code points), not bytes.
 * Memory: from the struct mem given, at most TEXT_OUT_MAX bytes. */
#pragma once

#include "base/mem.h"
#include "base/view.h"

struct out {
    struct mem *mem;
    char *text; /* Not NUL-terminated. */
    size_t size_bytes;
    size_t room_bytes;
    bool failed; /* The memory's limit or TEXT_OUT_MAX was met; nothing was added since. */
};

void out_init(struct out *out, struct mem *mem);

/* Give the memory back; the buffer is empty and may be used again. */
void out_free(struct out *out);

/* Forget the text, keep the memory. */
void out_reset(struct out *out);

/* The text so far: a view that lives until the next call on the buffer. */
struct view out_so_far(const struct out *out);

void out_bytes(struct out *out, const void *bytes, size_t size_bytes);
void out_char(struct out *out, char c);
void out_text(struct out *out, const char *text);
void out_view(struct out *out, struct view bytes);
void out_format(struct out *out, const char *format, ...) PRINTF(2, 3);
void out_repeat(struct out *out, char c, size_t count);

/* Blanks up to this column of the line (the first is 0); none if the line is that long already. */
void out_column(struct out *out, size_t column);

/* Take blanks off the end of the line. */
void out_trim(struct out *out);

/* Words of `text` from the current column, broken at `width`, further lines begin at `indent`. */
void out_wrapped(struct out *out, const char *text, size_t indent, size_t width);

/* Characters of UTF-8 text; a byte that begins none counts as one. */
size_t out_width(struct view text);

/* Is all of it well-formed UTF-8? */
bool out_is_utf8(struct view text);

/* Two lower-case digits a byte, nothing between. */
void out_hex(struct out *out, struct view bytes);

/* Base64 with padding, as Kafka's JSON has bytes. */
void out_base64(struct out *out, struct view bytes);

/* Kafka's form of a UUID: URL-safe base64 of the sixteen bytes, no padding, 22 characters. */
void out_uuid(struct out *out, struct uuid uuid);

/* In double quotes with JSON's escapes. What is no UTF-8 becomes U+FFFD. */
void out_quoted(struct out *out, struct view text);

/* The same, but what is no UTF-8 stays readable as \xNN: for people, not for parsers. */
void out_literal(struct out *out, struct view text);

/* For HTML text and quoted attributes: & < > " escaped. */
void out_html(struct out *out, struct view text);

/* A double as the shortest text that reads back the same; JSON has no NaN: written as "NaN". */
void out_double(struct out *out, double value);
