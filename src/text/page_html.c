/* page_html.c - one page as HTML. See page_html.h; the looks are in web/wire.css. */
#include "text/page_html.h"

#include "text/diff.h"
#include "text/page_parts.h"
#include "text/schema.h"

#include <stdio.h>

enum { ROW_BYTES = 16, DEPTH_MAX = 64, FIELD_BYTES = 96 };

/* ---- pieces ---------------------------------------------------------------------------------- */

static void put_escaped(struct out *out, const char *text)
{
    out_html(out, view_of_string(text));
}

/* The anchor of node `i`: "request.Topics.Partitions.Index"; an element adds nothing to its
 * children.
 */
static void put_id(struct out *out, const struct page_side *side, uint32_t i)
{
    const struct node *nodes = side->nodes.nodes;
    uint32_t chain[DEPTH_MAX];
    uint32_t count = 0;
    uint16_t depth = nodes[i].depth;

    for (uint32_t j = i + 1; j-- > 0 && depth > 0;) {
        if (nodes[j].depth != depth) continue;
        chain[count++] = j;
        depth--;
    }
    out_text(out, page_side_name(side));
    while (count-- > 0) {
        const struct node *node = &nodes[chain[count]];
        bool body = node->depth == 1 && strcmp(node->type, "struct") == 0;
        if (node->name[0] == '[') {
            if (chain[count] == i) out_text(out, ".0");
        } else if (!body || chain[count] == i) {
            out_format(out, ".%s", node->name);
        }
    }
}

static void put_legend(struct out *out)
{
    out_text(out, "<ul class=\"legend\" aria-label=\"What the colours and letters mean\">");
    for (unsigned part = 0; part < NODE_PARTS; part++)
        out_format(out, "<li><span class=\"p p%u\">%c</span> %s</li>", part,
                   node_part_letter((enum node_part)part), node_part_name((enum node_part)part));
    out_text(out, "</ul>\n");
}

/* ---- bytes and tree -------------------------------------------------------------------------- */

/* For each byte, the deepest node that holds it; only real nodes, not the bits of one. */
static void own_bytes(const struct page_side *side, uint32_t *owner)
{
    for (uint32_t i = 0; i < side->nodes.count; i++) {
        const struct node *node = &side->nodes.nodes[i];
        if (node->inflated || strcmp(node->type, "bits") == 0) continue;
        for (uint32_t b = 0; b < node->length && node->offset + b < side->frame.size; b++)
            owner[node->offset + b] = i;
    }
}

static void put_byte(struct out *out, const struct page_side *side, uint32_t at, uint32_t owner)
{
    const struct node *node = &side->nodes.nodes[owner];
    out_format(out, "<td class=\"p%u%s\" data-n=\"%u\" title=\"", node->part,
               node->offset == at ? " s" : "", owner);
    put_escaped(out, node->name);
    out_format(out, "\">%02x<i>%c</i></td>", side->frame.data[at],
               node_part_letter((enum node_part)node->part));
}

static void put_rows(struct out *out, const struct page_side *side)
{
    size_t bytes = side->frame.size * sizeof(uint32_t);
    uint32_t *owner = mem_get(out->mem, bytes);

    if (owner == NULL) {
        out->failed = true;
        return;
    }
    own_bytes(side, owner);
    out_format(out,
               "<h3>byte layout <small>(%u bytes, 16 bytes per row)</small></h3>\n"
               "<div class=\"scroll\"><table class=\"bytes\"><thead><tr><th></th>",
               side->frame.size);
    for (int i = 0; i < ROW_BYTES; i++)
        out_format(out, "<th scope=\"col\">%X</th>", i);
    out_text(out, "</tr></thead>\n<tbody>");
    for (uint32_t at = 0; at < side->frame.size; at++) {
        if (at % ROW_BYTES == 0)
            out_format(out, "%s<tr><th scope=\"row\">%04x</th>", at == 0 ? "" : "</tr>\n", at);
        put_byte(out, side, at, owner[at]);
    }
    out_text(out, "</tr></tbody></table></div>\n");
    mem_put(out->mem, owner, bytes);
}

static void put_tree_row(struct out *out, const struct page_side *side, uint32_t i)
{
    const struct node *node = &side->nodes.nodes[i];

    out_text(out, "<tr id=\"");
    put_id(out, side, i);
    out_format(out,
               "\" data-n=\"%u\" style=\"--d:%u\"><th scope=\"row\"><a class=\"p p%u\" href=\"#", i,
               node->depth, node->part);
    put_id(out, side, i);
    out_format(out, "\" title=\"Link to this\">%c</a> ",
               node_part_letter((enum node_part)node->part));
    put_escaped(out, node->name);
    out_text(out, "</th><td class=\"type\">");
    put_escaped(out, node->type);
    out_text(out, "</td><td class=\"value\">");
    if (node->value != NULL) {
        out_text(out, "= ");
        put_escaped(out, node->value);
    }
    out_format(out, "</td><td class=\"place\">[0x%04x, %uB]</td><td class=\"about\">", node->offset,
               node->length);
    if (node->about != NULL) put_escaped(out, node->about);
    out_text(out, "</td></tr>\n");
}

static void put_tree(struct out *out, const struct page_side *side)
{
    out_text(
        out,
        "<h3>object tree</h3>\n<div class=\"scroll\"><table class=\"tree\"><thead><tr>"
        "<th scope=\"col\">name</th><th scope=\"col\">type</th><th scope=\"col\">value</th>"
        "<th scope=\"col\">[offset, length]</th><th scope=\"col\">meaning</th></tr></thead>\n<tbody>\n");
    for (uint32_t i = 0; i < side->nodes.count; i++)
        put_tree_row(out, side, i);
    out_text(out, "</tbody></table></div>\n");
}

/* ---- schema ---------------------------------------------------------------------------------- */

/* The schema's text as it is marked up line by line. */
struct schema_marker {
    struct out *out;
    const char *side;
    bool common;                        /* Inside "commonStructs". */
    char names[DEPTH_MAX][FIELD_BYTES]; /* Of the open fields, by level. */
};

/* `"name"`, marked as a key or a string. Returns where it ends. */
static size_t put_schema_string(struct out *out, const char *line, size_t i, size_t size)
{
    size_t end = i + 1;
    while (end < size && line[end] != '"')
        end += line[end] == '\\' ? 2 : 1;
    end = MIN(end + 1, size);
    bool key = end < size && line[end] == ':';
    out_text(out, key ? "<b>" : "<s>");
    out_html(out, view_of(line + i, (uint32_t)(end - i)));
    out_text(out, key ? "</b>" : "</s>");
    return end;
}

/* A line that begins a field gets an anchor: `s.request.Topics.Partitions`. */
static void put_schema_anchor(struct schema_marker *m, const char *line, size_t blank)
{
    static const char begins[] = "{ \"name\": \"";
    size_t level = blank / 2 - 2;

    if (blank < 4 || level >= DEPTH_MAX || strncmp(line + blank, begins, sizeof(begins) - 1) != 0)
        return;
    const char *name = line + blank + sizeof(begins) - 1;
    size_t size = MIN(strcspn(name, "\""), (size_t)FIELD_BYTES - 1);
    memcpy(m->names[level], name, size);
    m->names[level][size] = '\0';
    out_format(m->out, "<a id=\"s.%s%s", m->side, m->common ? ".common" : "");
    for (size_t i = 0; i <= level; i++)
        out_format(m->out, ".%s", m->names[i]);
    out_text(m->out, "\"></a>");
}

static void put_schema_line(struct schema_marker *m, const char *line, size_t size)
{
    size_t blank = strspn(line, " ");
    if (size >= blank + 2 && line[blank] == '/' && line[blank + 1] == '/') {
        out_text(m->out, "<i>");
        out_html(m->out, view_of(line, (uint32_t)size));
        out_text(m->out, "</i>\n");
        return;
    }
    if (strncmp(line, "  \"commonStructs\"", 17) == 0) m->common = true;
    put_schema_anchor(m, line, blank);
    for (size_t i = 0; i < size;) {
        if (line[i] == '"') {
            i = put_schema_string(m->out, line, i, size);
        } else {
            out_html(m->out, view_of(line + i, 1));
            i++;
        }
    }
    out_char(m->out, '\n');
}

static void put_schema(struct out *out, const struct page_side *side)
{
    struct schema_marker marker = {.out = out, .side = page_side_name(side)};
    struct out schema;

    out_init(&schema, out->mem);
    schema_print(&schema, side->kind.message, side->kind.version);
    out_char(&schema, '\0');
    out_text(out, "<h3>kafka message schema <small>(.json)</small></h3>\n<pre class=\"schema\">");
    if (schema.failed) out->failed = true;
    for (const char *line = schema.failed ? "" : schema.text; *line != '\0';) {
        size_t size = strcspn(line, "\n");
        put_schema_line(&marker, line, size);
        line += size + (line[size] == '\n');
    }
    out_text(out, "</pre>\n");
    out_free(&schema);
}

static void put_side(struct out *out, const struct page_side *side)
{
    const char *name = page_side_name(side);
    out_format(out,
               "<section id=\"%s-section\" class=\"side\">\n<h2>%c%s</h2>\n<p class=\"heading\">",
               name, name[0] - 'a' + 'A', name + 1);
    page_heading(out, side);
    out_text(out, "</p>\n");
    put_rows(out, side);
    put_tree(out, side);
    put_schema(out, side);
    out_text(out, "</section>\n");
}

/* ---- versions -------------------------------------------------------------------------------- */

static void put_switch(struct out *out, const struct page *page)
{
    const struct wire_api *api = page->subject.api;
    const struct wire_message *message = page->subject.message;

    out_text(out, "<nav class=\"versions\" aria-label=\"Versions\"><span>version</span>");
    for (int16_t v = message->version_min; v <= message->version_max; v++) {
        bool served = api == NULL || (v >= api->served_min && v <= api->served_max);
        bool stable = api == NULL || v <= api->stable_max;
        const char *title = !served   ? "not served by Apache Kafka 4.4"
                            : !stable ? "not stable yet"
                                      : "";
        if (v == page->version) {
            out_format(out, "<b title=\"%s\"%s>%d</b>", title, served ? "" : " class=\"old\"", v);
            continue;
        }
        out_text(out, "<a href=\"");
        page_file_name(out, &page->subject, v);
        out_format(out, "\" title=\"%s\"%s>%d</a>", title, !served ? " class=\"old\"" : "", v);
    }
    if (page->version > message->version_min)
        out_format(out, "<a class=\"what\" href=\"#changes\">what %d changed</a>", page->version);
    out_text(out, "</nav>\n");
}

static void put_change(struct out *out, const struct diff_change *change)
{
    static const char *const classes[] = {"add", "gone", "other"};
    char sign = diff_sign(change->kind);
    out_format(out, "<li class=\"%s\">", classes[sign == '+' ? 0 : sign == '-' ? 1 : 2]);
    if (change->field == NULL) {
        put_escaped(out, diff_words(change->kind));
    } else {
        out_text(out, "<code>");
        put_escaped(out, change->path);
        out_text(out, "</code> <span class=\"type\">");
        put_escaped(out, wire_text(change->field->type_text));
        out_format(out, "</span> %s", diff_words(change->kind));
    }
    out_text(out, "</li>");
}

static void put_side_changes(struct out *out, const struct page_side *side)
{
    struct wire_versions versions = {(int16_t)(side->kind.version - 1), side->kind.version};
    struct arena arena;
    struct diff diff;

    out_format(out, "<div><h3>%s</h3>", page_side_name(side));
    arena_init(&arena, out->mem, 0);
    diff_message(&diff, side->kind.message, versions, &arena);
    out_text(out, "<p>Version ");
    out_format(out, "%d ", side->kind.version);
    struct out note;
    out_init(&note, out->mem);
    schema_note(&note, side->kind.message, side->kind.version);
    out_html(out, out_so_far(&note));
    if (note.size_bytes == 0) out_text(out, "has no note.");
    out_free(&note);
    out_text(out, "</p>");
    if (diff.count > 0) out_text(out, "<ul>");
    for (uint32_t i = 0; i < diff.count; i++)
        put_change(out, &diff.changes[i]);
    if (diff.count > 0) out_text(out, "</ul>");
    out_text(out, "</div>\n");
    if (diff.failed) out->failed = true;
    arena_free(&arena);
}

static void put_changes(struct out *out, const struct page *page)
{
    if (page->version == page->subject.message->version_min) return;
    out_format(
        out,
        "<section class=\"changes\" id=\"changes\">\n<h2>What version %d changed</h2>\n<div class=\"pair\">\n",
        page->version);
    for (uint32_t i = 0; i < page->side_count; i++)
        put_side_changes(out, &page->sides[i]);
    out_text(out, "</div></section>\n");
}

/* ---- the page -------------------------------------------------------------------------------- */

static void put_facts(struct out *out, const struct page *page)
{
    struct page_fact facts[PAGE_FACTS];
    struct arena arena;

    arena_init(&arena, out->mem, 0);
    uint32_t count = page_facts(page, &arena, facts);
    out_text(out, "<dl class=\"facts\">");
    for (uint32_t i = 0; i < count; i++)
        out_format(out, "<div><dt>%s</dt><dd>%s</dd></div>", facts[i].name, facts[i].value);
    out_text(out, "</dl>\n");
    arena_free(&arena);
}

void page_file_name(struct out *out, const struct page_subject *subject, int16_t version)
{
    out_format(out, "%s-v%d.html", page_name(subject), version);
}

void page_html(struct out *out, const struct page *page, bool alone)
{
    char title[160];
    snprintf(title, sizeof(title), "%s v%d", page_name(&page->subject), page->version);
    page_html_head(out, title, alone);
    out_format(out, "<main>\n<h1>%s</h1>\n<p class=\"about\">", page_name(&page->subject));
    put_escaped(out, page->subject.message->about);
    out_text(out, "</p>\n");
    if (!alone) put_switch(out, page);
    out_text(out, "<p class=\"lead\">");
    page_lead(out, page);
    out_text(out, "</p>\n");
    put_facts(out, page);
    put_legend(out);
    for (uint32_t i = 0; i < page->side_count; i++)
        put_side(out, &page->sides[i]);
    put_changes(out, page);
    out_text(out, "</main>\n");
    page_html_foot(out, alone);
}
