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

bool page_build(struct page *page,
                const struct page_subject *subject,
                int16_t version,
                struct arena *arena)
{
    *page = (struct page){.subject = *subject, .version = version};
    page->side_count = subject->api == NULL ? 1 : PAGE_SIDES;
    return side_build(&page->sides[0], subject->message, version, arena) &&
           (subject->api == NULL ||
            side_build(&page->sides[1], subject->api->response, version, arena)) &&
           !arena->failed;
}

const char *page_name(const struct page_subject *subject)
{
    return subject->api == NULL ? subject->message->name : subject->api->name;
}

const char *page_side_name(const struct page_side *side)
{
    switch ((enum wire_kind)side->kind.message->kind) {
    case WIRE_REQUEST: return "request";
    case WIRE_RESPONSE: return "response";
    case WIRE_HEADER: return "header";
    default: return "record";
    }
}

/* ---- the facts ------------------------------------------------------------------------------- */

static const char *range_text(struct node_list *memory,
                              const struct wire_message *message,
                              int16_t newest)
{
    if (message->version_min == newest) return node_format(memory, "%d", newest);
    return node_format(memory, "%d-%d", message->version_min, newest);
}

static const char *flexible_text(struct node_list *memory, const struct page *page)
{
    int16_t flexible_min = page->subject.message->flexible_min;
    return flexible_min > page->version ? "none" : node_format(memory, "%d+", flexible_min);
}

static const char *kind_text(const struct wire_message *message)
{
    switch ((enum wire_kind)message->kind) {
    case WIRE_METADATA: return "metadata record";
    case WIRE_COORDINATOR_KEY: return "key of a coordinator's record";
    case WIRE_COORDINATOR_VALUE: return "value of a coordinator's record";
    case WIRE_HEADER: return "header of frames";
    default: return "data";
    }
}

static uint32_t api_facts(const struct page *page,
                          struct node_list *memory,
                          struct page_fact facts[PAGE_FACTS])
{
    const struct wire_api *api = page->subject.api;
    const struct page_side *request = &page->sides[0], *response = &page->sides[1];

    facts[0] = (struct page_fact){"API key", node_format(memory, "%d", api->key)};
    facts[1] = (struct page_fact){"Encoded at", node_format(memory, "v%d", page->version)};
    facts[2] = (struct page_fact){"Flexible versions", flexible_text(memory, page)};
    facts[3] = (struct page_fact){"Headers", node_format(memory, "req v%d, resp v%d",
                                                         request->kind.header_version,
                                                         response->kind.header_version)};
    facts[4] =
        (struct page_fact){"Request versions", range_text(memory, api->request, page->version)};
    facts[5] =
        (struct page_fact){"Response versions", range_text(memory, api->response, page->version)};
    facts[6] =
        (struct page_fact){"Request size", node_format(memory, "%u bytes", request->frame.size)};
    facts[7] =
        (struct page_fact){"Response size", node_format(memory, "%u bytes", response->frame.size)};
    return 8;
}

static uint32_t message_facts(const struct page *page,
                              struct node_list *memory,
                              struct page_fact facts[PAGE_FACTS])
{
    const struct wire_message *message = page->subject.message;
    uint32_t count = 0;

    facts[count++] = (struct page_fact){"Kind", kind_text(message)};
    if (message->api_key >= 0)
        facts[count++] =
            (struct page_fact){"Record type", node_format(memory, "%d", message->api_key)};
    facts[count++] = (struct page_fact){"Encoded at", node_format(memory, "v%d", page->version)};
    facts[count++] = (struct page_fact){"Flexible versions", flexible_text(memory, page)};
    facts[count++] = (struct page_fact){"Versions", range_text(memory, message, page->version)};
    facts[count++] =
        (struct page_fact){"Size", node_format(memory, "%u bytes", page->sides[0].frame.size)};
    return count;
}

uint32_t page_facts(const struct page *page,
                    struct arena *arena,
                    struct page_fact facts[PAGE_FACTS])
{
    struct node_list memory;
    node_list_init(&memory, arena);
    return page->subject.api == NULL ? message_facts(page, &memory, facts)
                                     : api_facts(page, &memory, facts);
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
    const char *name = page_name(&page->subject);
    bool flexible = page->version >= page->subject.message->flexible_min;

    for (uint32_t i = 0; i < page->side_count; i++)
        look(&contents, &page->sides[i].nodes);
    if (page->subject.api == NULL) {
        out_format(out, "The smallest %s in version %d", name, page->version);
    } else {
        out_format(out,
                   "The smallest request and response of %s in version %d that the protocol allows",
                   name, page->version);
    }
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
    out_text(out, page->subject.api == NULL
                      ? " The size counts what stands before it where Kafka keeps it."
                      : " All sizes count the four bytes of the frame's own length.");
}

/* ---- the page as text ------------------------------------------------------------------------ */

void page_heading(struct out *out, const struct page_side *side)
{
    const struct frame_kind *kind = &side->kind;
    out_format(out, "%s v%d, ", kind->message->name, kind->version);
    if (kind->header_version >= 0)
        out_format(out, "%s header v%d, ", page_side_name(side), kind->header_version);
    out_format(out, "%u bytes%s", side->frame.size,
               kind->header_version >= 0 ? " on the wire" : "");
}

static void put_side(struct out *out, const struct page_side *side, const struct tree_style *style)
{
    const char *name = page_side_name(side);
    out_format(out, "\n%c%s\n\n", name[0] - 'a' + 'A', name + 1);
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
    uint32_t count = page_facts(page, &arena, facts);
    for (uint32_t i = 0; i < count; i++) {
        out_text(out, facts[i].name);
        out_column(out, 20);
        out_format(out, "%s\n", facts[i].value);
    }
    arena_free(&arena);
}

void page_text(struct out *out, const struct page *page, const struct tree_style *style)
{
    struct out lead;

    out_format(out, "%s\n\n", page_name(&page->subject));
    out_init(&lead, out->mem);
    page_lead(&lead, page);
    out_char(&lead, '\0');
    if (!lead.failed) out_wrapped(out, lead.text, 0, TEXT_COLUMNS);
    out_free(&lead);
    out_text(out, "\n\n");
    put_facts(out, page);
    out_char(out, '\n');
    tree_legend(out, style);
    for (uint32_t i = 0; i < page->side_count; i++)
        put_side(out, &page->sides[i], style);
}
