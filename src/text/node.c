/* node.c - the list of nodes itself: parts, growth, painting. See node.h. */
#include "text/node.h"

#include "base/limits.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *name;
    char letter;
} parts[NODE_PARTS] = {
    [NODE_FRAME] = {"frame",         'F'},
      [NODE_HEADER] = {"rpc header",    'H'},
    [NODE_REQUEST] = {"request body",  'Q'},
      [NODE_BATCH] = {"RecordBatch",   'B'},
    [NODE_RECORD] = {"Record",        'R'},
      [NODE_RESPONSE] = {"response body", 'S'},
    [NODE_TAGS] = {"tagged_fields", 'T'},
};

const char *node_part_name(enum node_part part)
{
    return part < NODE_PARTS ? parts[part].name : NULL;
}

char node_part_letter(enum node_part part)
{
    assert(part < NODE_PARTS);
    return parts[part].letter;
}

void node_list_init(struct node_list *list, struct arena *arena)
{
    *list = (struct node_list){.arena = arena};
}

bool node_list_faulty(const struct node_list *list)
{
    for (uint32_t i = 0; i < list->problem_count; i++)
        if (list->problems[i].fault) return true;
    return false;
}

/* Room for one more of `size` bytes in the array at `items`; the new array, or NULL. */
static void *grown(struct node_list *list, void *items, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room) return items;
    uint32_t wanted = MAX(*room * 2, 64u);
    void *more = count >= TEXT_NODES_MAX ? NULL : arena_get(list->arena, wanted * size);
    if (more == NULL) {
        list->failed = true;
        return NULL;
    }
    if (count > 0) memcpy(more, items, count * size);
    *room = wanted;
    return more;
}

uint32_t node_add(struct node_list *list, const struct node *node)
{
    if (list->failed) return UINT32_MAX;
    void *nodes = grown(list, list->nodes, list->count, &list->room, sizeof(*node));
    if (nodes == NULL) return UINT32_MAX;
    list->nodes = nodes;
    list->nodes[list->count] = *node;
    return list->count++;
}

void node_problem_add(struct node_list *list, const struct node_problem *problem)
{
    void *problems =
        grown(list, list->problems, list->problem_count, &list->problem_room, sizeof(*problem));
    if (problems == NULL) return;
    list->problems = problems;
    list->problems[list->problem_count++] = *problem;
}

const char *node_format(struct node_list *list, const char *format, ...)
{
    char small[512];
    va_list arguments;

    va_start(arguments, format);
    int size = vsnprintf(small, sizeof(small), format, arguments);
    va_end(arguments);
    assert(size >= 0);
    char *text = arena_get(list->arena, (size_t)size + 1);
    if (text == NULL) {
        list->failed = true;
        return "";
    }
    if ((size_t)size < sizeof(small)) {
        memcpy(text, small, (size_t)size + 1);
        return text;
    }
    va_start(arguments, format);
    vsnprintf(text, (size_t)size + 1, format, arguments);
    va_end(arguments);
    return text;
}

/* Text that a person can read: valid UTF-8 without control characters. */
static bool printable(struct view bytes)
{
    for (uint32_t i = 0; i < bytes.size; i++)
        if (bytes.data[i] < 0x20 || bytes.data[i] == 0x7f) return false;
    return out_is_utf8(bytes);
}

const char *node_bytes(struct node_list *list, struct view bytes)
{
    struct out out;
    struct view shown = bytes;

    if (bytes.null) return "null";
    out_init(&out, list->arena->mem);
    out_format(&out, "%u byte%s", bytes.size, bytes.size == 1 ? "" : "s");
    if (list->value_limit != 0) shown.size = MIN(shown.size, list->value_limit);
    if (shown.size > 0 && printable(bytes)) {
        out_char(&out, ' ');
        out_literal(&out, shown);
    } else if (shown.size > 0) {
        out_text(&out, " 0x");
        out_hex(&out, shown);
    }
    if (shown.size < bytes.size) out_text(&out, "...");
    const char *text = node_format(list, "%.*s", (int)out.size_bytes, out.text);
    if (out.failed) list->failed = true;
    out_free(&out);
    return text;
}

void node_paint(const struct node_list *list, uint8_t *painted, uint32_t size)
{
    memset(painted, NODE_PARTS, size);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *node = &list->nodes[i];
        if (node->inflated || node->offset >= size) continue;
        memset(painted + node->offset, node->part, MIN(node->length, size - node->offset));
    }
}
