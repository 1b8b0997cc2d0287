/* checkpoint.c - reading and writing the text files that checkpoint.h describes. */
#include "log/checkpoint.h"

#include <stdio.h>

/* The next line without its newline. False: no more bytes. */
static bool checkpoint_line(struct checkpoint_reader *reader, struct view *line)
{
    if (reader->at >= reader->text.size) return false;
    const uint8_t *start = reader->text.data + reader->at;
    uint32_t left = reader->text.size - reader->at;
    const uint8_t *newline = memchr(start, '\n', left);
    uint32_t size = newline == NULL ? left : (uint32_t)(newline - start);
    *line = view_of(start, size);
    reader->at += MIN(size + 1, left);
    return true;
}

/* A decimal number at the front of `*text`, which moves behind it. */
static bool checkpoint_number(struct view *text, int64_t max, int64_t *out)
{
    uint32_t at = 0;
    bool negative = text->size > 0 && text->data[0] == '-';
    if (negative) at++;
    uint32_t digits_from = at;
    int64_t value = 0;
    for (; at < text->size && text->data[at] >= '0' && text->data[at] <= '9'; at++) {
        if (__builtin_mul_overflow(value, 10, &value)) return false;
        if (__builtin_add_overflow(value, text->data[at] - '0', &value)) return false;
    }
    if (at == digits_from || value > max) return false;
    *out = negative ? -value : value;
    *text = view_of(text->data + at, text->size - at);
    return true;
}

static bool checkpoint_space(struct view *text)
{
    if (text->size == 0 || text->data[0] != ' ') return false;
    *text = view_of(text->data + 1, text->size - 1);
    return true;
}

struct checkpoint_reader checkpoint_read(struct view text, bool has_topics)
{
    struct checkpoint_reader reader = {.text = text, .has_topics = has_topics};
    struct view line;
    if (!checkpoint_line(&reader, &line)) return reader;
    int64_t version;
    if (!checkpoint_number(&line, INT32_MAX, &version) || line.size != 0 || version != 0) {
        reader.invalid = true;
        return reader;
    }
    if (!checkpoint_line(&reader, &line)) return reader;
    if (!checkpoint_number(&line, INT32_MAX, &reader.left) || line.size != 0 || reader.left < 0)
        reader.invalid = true;
    return reader;
}

bool checkpoint_next(struct checkpoint_reader *reader, struct checkpoint_entry *out)
{
    struct view line;
    if (reader->invalid) return false;
    if (!checkpoint_line(reader, &line)) {
        reader->invalid = reader->left != 0;
        return false;
    }
    *out = (struct checkpoint_entry){.topic = VIEW_NULL};
    int64_t number = 0;
    bool good = reader->left > 0;
    if (good && reader->has_topics) {
        const uint8_t *space = memchr(line.data, ' ', line.size);
        good = space != NULL && space != line.data;
        if (good) {
            out->topic = view_of(line.data, (uint32_t)(space - line.data));
            line = view_of(space + 1, line.size - out->topic.size - 1);
        }
    }
    good = good && checkpoint_number(&line, INT32_MAX, &number) && checkpoint_space(&line) &&
           checkpoint_number(&line, INT64_MAX, &out->offset) && line.size == 0;
    if (!good) {
        reader->invalid = true;
        return false;
    }
    out->number = (int32_t)number;
    reader->left--;
    return true;
}

bool checkpoint_valid(struct view text, bool has_topics)
{
    struct checkpoint_reader reader = checkpoint_read(text, has_topics);
    struct checkpoint_entry entry;
    while (checkpoint_next(&reader, &entry))
        continue;
    return !reader.invalid;
}

void checkpoint_begin(struct sink *out, uint32_t count)
{
    char line[32];
    int length = snprintf(line, sizeof(line), "0\n%u\n", count);
    sink_put(out, line, (uint32_t)length);
}

void checkpoint_add(struct sink *out, const struct checkpoint_entry *entry)
{
    char line[64];
    if (!entry->topic.null) {
        sink_put(out, entry->topic.data, entry->topic.size);
        sink_put(out, " ", 1);
    }
    int length = snprintf(line, sizeof(line), "%d %lld\n", entry->number, (long long)entry->offset);
    assert(length > 0);
    sink_put(out, line, (uint32_t)length);
}
