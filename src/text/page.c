/* page.c - see page.h. */
#include "text/page.h"

#include "text/schema.h"

enum { TEXT_COLUMNS = 100 };

static bool side_build(struct page_side *side,
                       const struct wire_message *message,
                       int16_t version,
                       struct arena *arena)
{
    side->kind = frame_kind_of(message, version);
    side->frame = frame_sample(&side->kind, arena);
    if (side->frame.null) return false;
    node_list_init(&side->nodes, arena);
    frame_nodes(&side->nodes, &side->kind, side->frame);
    return !side->nodes.failed;
}

bool page_build(struct page *page, const struct wire_api *api, int16_t version, struct arena *arena)
{
    *page = (struct page){.api = api, .version = version};
    return side_build(&page->request, api->request, version, arena) &&
           side_build(&page->response, api->response, version, arena) && !arena->failed;
}

static const char *range_text(struct node_list *memory,
                              const struct wire_message *message,
                              int16_t newest)
{
    if (message->version_min == newest) return node_format(memory, "%d", newest);
    return node_format(memory, "%d-%d", message->version_min, newest);
}

void page_facts(const struct page *page, struct arena *arena, struct page_fact facts[PAGE_FACTS])
{
    struct node_list memory;
    const struct wire_message *request = page->api->request, *response = page->api->response;

    node_list_init(&memory, arena);
    facts[0] = (struct page_fact){"API key", node_format(&memory, "%d", page->api->key)};
    facts[1] = (struct page_fact){"Encoded at", node_format(&memory, "v%d", page->version)};
    facts[2] = (struct page_fact){"Flexible versions",
                                  request->flexible_min > page->version
                                      ? "none"
                                      : node_format(&memory, "%d+", request->flexible_min)};
    facts[3] = (struct page_fact){"Headers", node_format(&memory, "req v%d, resp v%d",
                                                         page->request.kind.header_version,
                                                         page->response.kind.header_version)};
    facts[4] = (struct page_fact){"Request versions", range_text(&memory, request, page->version)};
    facts[5] =
        (struct page_fact){"Response versions", range_text(&memory, response, page->version)};
    facts[6] = (struct page_fact){"Request size",
                                  node_format(&memory, "%u bytes", page->request.frame.size)};
    facts[7] = (struct page_fact){"Response size",
                                  node_format(&memory, "%u bytes", page->response.frame.size)};
}

/* ---- the lead -------------------------------------------------------------------------------- */

/* What kinds of fields the bodies of the page have. */
struct contents {
    bool numbers, bools, strings, bytes, arrays, records;
};

static void look(struct contents *contents, const struct node_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct wire_field *field = list->nodes[i].field;
        if (field == NULL || list->nodes[i].part == NODE_HEADER) continue;
        if (field->flags & WIRE_FIELD_ARRAY) contents->arrays = true;
        if (field->type == WIRE_BOOL) contents->bools = true;
        if (field->type > WIRE_BOOL && field->type <= WIRE_UUID) contents->numbers = true;
        if (field->type == WIRE_STRING) contents->strings = true;
        if (field->type == WIRE_BYTES) contents->bytes = true;
        if (field->type == WIRE_RECORDS) contents->records = true;
    }
}

void page_lead(struct out *out, const struct page *page)
{
    struct contents contents = {0};
    bool flexible = page->version >= page->api->request->flexible_min;

    look(&contents, &page->request.nodes);
    look(&contents, &page->response.nodes);
    out_format(out,
               "The smallest request and response of %s in version %d that the protocol allows",
               page->api->name, page->version);
    const struct {
        bool there;
        const char *text;
    } parts[] = {
        {contents.numbers,                    "numbers are zero"                             },
        {contents.bools,                      "booleans are false"                           },
        {contents.strings && contents.bytes,  "strings and bytes are empty"                  },
        {contents.strings && !contents.bytes, "strings are empty"                            },
        {!contents.strings && contents.bytes, "bytes are empty"                              },
        {contents.arrays,                     "each array has one element"                   },
        {contents.records,                    "records are one empty RecordBatch of 61 bytes"},
    };
    const char *before = ": ";
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (!parts[i].there) continue;
        out_format(out, "%s%s", before, parts[i].text);
        before = ", ";
    }
    out_format(out, ". Version %d is ", page->version);
    out_text(out, flexible ? "flexible: each struct ends with the count of its tagged fields, and "
                             "strings, bytes and arrays begin with their length plus one, both as "
                             "unsigned varints."
                           : "not flexible: there are no tagged fields, strings begin with their "
                             "length as int16, bytes and arrays with theirs as int32.");
    out_text(out, " All sizes count the four bytes of the frame's own length.");
}

/* ---- the page as text ------------------------------------------------------------------------ */

void page_heading(struct out *out, const struct page_side *side)
{
    out_format(out, "%s v%d, %s header v%d, %u bytes on the wire", side->kind.message->name,
               side->kind.version,
               side->kind.message->kind == WIRE_REQUEST ? "request" : "response",
               side->kind.header_version, side->frame.size);
}

static void put_side(struct out *out, const struct page_side *side, const struct tree_style *style)
{
    out_format(out, "\n%s\n\n", side->kind.message->kind == WIRE_REQUEST ? "Request" : "Response");
    page_heading(out, side);
    out_format(out, "\n\nbyte layout (%u bytes, 16 bytes per row)\n\n", side->frame.size);
    tree_rows(out, &side->nodes, side->frame, style);
    out_text(out, "\nobject tree\n\n");
    tree_print(out, &side->nodes, style);
    out_text(out, "\nkafka message schema (.json)\n\n");
    schema_print(out, side->kind.message, side->kind.version);
}

static void put_facts(struct out *out, const struct page *page)
{
    struct page_fact facts[PAGE_FACTS];
    struct arena arena;

    arena_init(&arena, out->mem, 0);
    page_facts(page, &arena, facts);
    for (int i = 0; i < PAGE_FACTS; i++) {
        out_text(out, facts[i].name);
        out_column(out, 20);
        out_format(out, "%s\n", facts[i].value);
    }
    arena_free(&arena);
}

void page_text(struct out *out, const struct page *page, const struct tree_style *style)
{
    struct out lead;

    out_format(out, "%s\n\n", page->api->name);
    out_init(&lead, out->mem);
    page_lead(&lead, page);
    out_char(&lead, '\0');
    if (!lead.failed) out_wrapped(out, lead.text, 0, TEXT_COLUMNS);
    out_free(&lead);
    out_text(out, "\n\n");
    put_facts(out, page);
    out_char(out, '\n');
    tree_legend(out, style);
    put_side(out, &page->request, style);
    put_side(out, &page->response, style);
}
