/* tree.c - see tree.h. */
#include "text/tree.h"

#include <stdio.h>

enum { DEPTH_MAX = 64, ROW_BYTES = 16, ROW_LETTERS = 6 + 3 * ROW_BYTES + 1 };

static const char *const colors[NODE_PARTS] = {
    [NODE_FRAME] = "\x1b[90m", [NODE_HEADER] = "\x1b[34m", [NODE_REQUEST] = "\x1b[32m",
    [NODE_BATCH] = "\x1b[33m", [NODE_RECORD] = "\x1b[36m", [NODE_RESPONSE] = "\x1b[35m",
    [NODE_TAGS] = "\x1b[31m",
};

static void color_on(struct out *out, const struct tree_style *style, uint8_t part)
{
    if (style->color && part < NODE_PARTS) out_text(out, colors[part]);
}

static void color_off(struct out *out, const struct tree_style *style, uint8_t part)
{
    if (style->color && part < NODE_PARTS) out_text(out, "\x1b[0m");
}

/* ---- the object tree ------------------------------------------------------------------------- */

struct columns {
    size_t name, type, value, place;
};

static size_t place_width(const struct node *node)
{
    char text[64];
    int size = snprintf(text, sizeof(text), "[%s0x%04x, %uB]", node->inflated ? "~" : "",
                        node->offset, node->length);
    return (size_t)size;
}

static struct columns measure(const struct node_list *list)
{
    struct columns columns = {0};
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *node = &list->nodes[i];
        size_t name = 4 * (size_t)node->depth + out_width(view_of_string(node->name));
        columns.name = MAX(columns.name, name);
        columns.type = MAX(columns.type, strlen(node->type));
        if (node->value != NULL)
            columns.value = MAX(columns.value, 2 + out_width(view_of_string(node->value)));
        columns.place = MAX(columns.place, place_width(node));
    }
    return columns;
}

/* Does another node with the depth of node `i` follow under the same parent? */
static bool has_sibling(const struct node_list *list, uint32_t i)
{
    uint16_t depth = list->nodes[i].depth;
    for (uint32_t j = i + 1; j < list->count && list->nodes[j].depth >= depth; j++)
        if (list->nodes[j].depth == depth) return true;
    return false;
}

static void put_padded(struct out *out, const char *text, size_t width)
{
    out_text(out, text);
    size_t size = out_width(view_of_string(text));
    if (size < width) out_repeat(out, ' ', width - size);
}

static void put_about(struct out *out, const char *about, uint32_t limit)
{
    size_t size = strlen(about);
    if (limit == 0 || size <= limit) {
        out_text(out, about);
        return;
    }
    size_t cut = limit - 3;
    while (cut > 0 && ((uint8_t)about[cut] & 0xc0) == 0x80)
        cut--;
    out_bytes(out, about, cut);
    out_text(out, "...");
}

static void put_node(struct out *out,
                     const struct node *node,
                     const struct columns *columns,
                     const struct tree_style *style)
{
    size_t name = columns->name - 4 * (size_t)node->depth;
    char place[64];

    color_on(out, style, node->part);
    put_padded(out, node->name, name);
    color_off(out, style, node->part);
    out_text(out, "  ");
    put_padded(out, node->type, columns->type);
    out_text(out, "  ");
    if (node->value != NULL) out_text(out, "= ");
    put_padded(out, node->value == NULL ? "" : node->value,
               columns->value - (node->value == NULL ? 0 : 2));
    out_text(out, columns->value > 0 ? "  " : "");
    snprintf(place, sizeof(place), "[%s0x%04x, %uB]", node->inflated ? "~" : "", node->offset,
             node->length);
    if (node->about == NULL) {
        out_text(out, place);
    } else {
        put_padded(out, place, columns->place);
        out_text(out, "  ");
        put_about(out, node->about, style->about_max);
    }
    out_char(out, '\n');
}

void tree_print(struct out *out, const struct node_list *list, const struct tree_style *style)
{
    struct columns columns = measure(list);
    bool more[DEPTH_MAX] = {false}; /* By depth: does the open node of that depth have a sibling? */

    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *node = &list->nodes[i];
        assert(node->depth < DEPTH_MAX);
        more[node->depth] = has_sibling(list, i);
        for (uint32_t depth = 1; depth < node->depth; depth++)
            out_text(out, more[depth] ? "|   " : "    ");
        if (node->depth > 0) out_text(out, "+-- ");
        put_node(out, node, &columns, style);
    }
    if (list->failed) out_text(out, "... cut here: more than can be shown\n");
}

/* ---- byte rows ------------------------------------------------------------------------------- */

static void put_row(struct out *out,
                    const uint8_t *bytes,
                    const uint8_t *parts,
                    size_t size,
                    const struct tree_style *style)
{
    for (size_t i = 0; i < size; i++) {
        out_char(out, ' ');
        if (i == 0) out_char(out, ' ');
        color_on(out, style, parts[i]);
        out_hex(out, view_of(&bytes[i], 1));
        color_off(out, style, parts[i]);
    }
    if (style->color) {
        out_char(out, '\n');
        return;
    }
    out_repeat(out, ' ', 3 * (ROW_BYTES - size) + 2);
    for (size_t i = 0; i < size; i++)
        out_char(out, parts[i] < NODE_PARTS ? node_part_letter((enum node_part)parts[i]) : '.');
    out_char(out, '\n');
}

void tree_rows(struct out *out,
               const struct node_list *list,
               struct view bytes,
               const struct tree_style *style)
{
    uint8_t *parts = bytes.size == 0 ? NULL : mem_get(out->mem, bytes.size);

    out_text(out, "    ");
    for (int i = 0; i < ROW_BYTES; i++)
        out_format(out, "%s  %X", i == 0 ? " " : "", i);
    out_char(out, '\n');
    if (parts == NULL) return;
    node_paint(list, parts, bytes.size);
    for (uint32_t at = 0; at < bytes.size; at += ROW_BYTES) {
        out_format(out, "%04x", at);
        put_row(out, bytes.data + at, parts + at, MIN(bytes.size - at, (uint32_t)ROW_BYTES), style);
    }
    mem_put(out->mem, parts, bytes.size);
}

void tree_legend(struct out *out, const struct tree_style *style)
{
    for (int part = 0; part < NODE_PARTS; part++) {
        if (part > 0) out_text(out, "  ");
        color_on(out, style, (uint8_t)part);
        if (!style->color) out_format(out, "%c ", node_part_letter((enum node_part)part));
        out_text(out, node_part_name((enum node_part)part));
        color_off(out, style, (uint8_t)part);
    }
    out_char(out, '\n');
}

/* ---- table and problems ---------------------------------------------------------------------- */

void tree_tsv(struct out *out, const struct node_list *list)
{
    out_text(out, "# depth\tname\ttype\tvalue\toffset\tlength\n");
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *node = &list->nodes[i];
        out_format(out, "%u\t%s\t%s\t", node->depth, node->name, node->type);
        out_text(out, node->value == NULL ? "" : node->value);
        out_format(out, "\t%s%u\t%u\n", node->inflated ? "~" : "", node->offset, node->length);
    }
}

void tree_problems(struct out *out, const struct node_list *list, const char *what)
{
    for (uint32_t i = 0; i < list->problem_count; i++) {
        const struct node_problem *problem = &list->problems[i];
        out_format(out, "%s: %s at %s0x%04x", what, problem->fault ? "damaged" : "odd",
                   problem->inflated ? "~" : "", problem->offset);
        if (problem->path[0] != '\0') out_format(out, " in %s", problem->path);
        out_format(out, ": %s\n", problem->text);
    }
}
