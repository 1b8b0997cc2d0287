/* node_message.c - the nodes of one message: a visitor of wire/walk.h. */
#include "text/node.h"

#include "gen/errors.h"

/* Structs, arrays and tagged fields that can be open at once: the deepest schema has 6 levels, and
 * each may add an array, a tagged section and a tag. */
enum { OPEN_MAX = 64 };

struct open_node {
    uint32_t node;
    enum wire_event_kind kind;
    const struct wire_field *field;
    int32_t index;
    uint32_t tag;
};

struct builder {
    struct node_list *list;
    const struct node_message *in;
    struct out text; /* Scratch for values. */
    struct open_node open[OPEN_MAX];
    uint32_t open_count;
    uint32_t tags_open; /* Tagged sections among them: what is in one has its colour. */
};

/* ---- names, types, values -------------------------------------------------------------------- */

static const char *snake(struct node_list *list, const char *name)
{
    char text[128];
    size_t size = 0;
    for (; *name != '\0' && size + 2 < sizeof(text); name++) {
        bool upper = *name >= 'A' && *name <= 'Z';
        if (upper && size > 0) text[size++] = '_';
        text[size++] = upper ? (char)(*name - 'A' + 'a') : *name;
    }
    return node_format(list, "%.*s", (int)size, text);
}

static const char *event_name(struct builder *b, const struct wire_event *event)
{
    if (event->index >= 0) return node_format(b->list, "[%d]", event->index);
    if (event->field == NULL) return b->in->message->name;
    const char *name = wire_text(event->field->name);
    return b->in->snake_names ? snake(b->list, name) : name;
}

static const char *event_type(struct builder *b, const struct wire_event *event)
{
    if (event->field == NULL) return b->in->type;
    const char *type = wire_text(event->field->type_text);
    bool element = event->index >= 0 && type[0] == '[';
    if (element) return type + 2;
    bool nullable_string = b->in->snake_names && event->type == WIRE_STRING &&
                           event->field->nullable.min <= event->field->nullable.max;
    return nullable_string ? "nullable_string" : type;
}

/* How the length of a value, or its being null, is written: " (compact, len+1=4)". */
static void put_prefix(struct out *out, const struct wire_event *event, int64_t count)
{
    bool short_length = event->type == WIRE_STRING && !event->is_array;
    if (event->compact && event->null) {
        out_text(out, "null (compact, 0)");
    } else if (event->compact) {
        out_format(out, " (compact, len+1=%lld)", (long long)count + 1);
    } else if (event->null) {
        out_format(out, "null (%s len=-1)", short_length ? "int16" : "int32");
    } else {
        out_format(out, " (%s len=%lld)", short_length ? "int16" : "int32", (long long)count);
    }
}

static void put_bytes(struct builder *b, const struct wire_event *event)
{
    uint32_t limit = b->list->value_limit;
    struct view shown = event->bytes;
    bool cut = limit != 0 && shown.size > limit;

    if (cut) shown.size = limit;
    if (event->type == WIRE_STRING) {
        out_literal(&b->text, shown);
        if (cut) out_text(&b->text, "...");
        return;
    }
    out_format(&b->text, "%u byte%s", event->bytes.size, event->bytes.size == 1 ? "" : "s");
    if (event->type == WIRE_RECORDS || shown.size == 0) return;
    out_text(&b->text, " 0x");
    out_hex(&b->text, shown);
    if (cut) out_text(&b->text, "...");
}

/* A number's name, if it has one: an API key's, an error's. */
static void put_meaning(struct builder *b, const struct wire_event *event)
{
    if (event->field == NULL || event->type != WIRE_INT16) return;
    const char *name = wire_text(event->field->name);
    if (strcmp(name, "ErrorCode") == 0 && event->integer != 0)
        out_format(&b->text, " (%s)", kafka_error_name((int16_t)event->integer));
    bool key = strcmp(name, "RequestApiKey") == 0 ||
               (strcmp(name, "ApiKey") == 0 && b->in->message->api_key == 18);
    const struct wire_api *api = key ? wire_api((int16_t)event->integer) : NULL;
    if (api != NULL) out_format(&b->text, " (%s)", api->name);
}

static void put_value(struct builder *b, const struct wire_event *event)
{
    switch ((enum wire_type)event->type) {
    case WIRE_BOOL: out_text(&b->text, event->integer ? "true" : "false"); break;
    case WIRE_INT8:
    case WIRE_INT16:
    case WIRE_UINT16:
    case WIRE_INT32:
    case WIRE_UINT32:
    case WIRE_INT64:
        out_format(&b->text, "%lld", (long long)event->integer);
        put_meaning(b, event);
        break;
    case WIRE_FLOAT64: out_double(&b->text, event->real); break;
    case WIRE_UUID: out_uuid(&b->text, event->uuid); break;
    case WIRE_STRING:
    case WIRE_BYTES:
    case WIRE_RECORDS:
        if (!event->null) put_bytes(b, event);
        put_prefix(&b->text, event, event->bytes.size);
        break;
    case WIRE_STRUCT: break;
    }
}

static const char *taken(struct builder *b)
{
    struct view text = out_so_far(&b->text);
    const char *copy = node_format(b->list, "%.*s", (int)text.size, (const char *)text.data);
    if (b->text.failed) b->list->failed = true;
    out_reset(&b->text);
    return copy;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Where in the message we are: "Topics[0].Partitions[2]". */
static const char *path(struct builder *b, const struct wire_field *last, int32_t index)
{
    struct out *out = &b->text;
    if (b->in->snake_names) out_text(out, b->in->message->name);
    for (uint32_t i = 1; i <= b->open_count; i++) {
        const struct open_node *open = &b->open[i];
        bool at_end = i == b->open_count;
        const struct wire_field *field = at_end ? last : open->field;
        int32_t element = at_end ? index : open->index;
        bool tag = !at_end && (open->kind == WIRE_EVENT_TAG || open->kind == WIRE_EVENT_TAGS);
        if (tag && (open->kind == WIRE_EVENT_TAGS || field != NULL)) continue;
        if (element >= 0) {
            out_format(out, "[%d]", element);
            continue;
        }
        if (at_end && field == NULL && b->open[i - 1].kind == WIRE_EVENT_TAG) break;
        if (out->size_bytes > 0) out_char(out, '.');
        if (tag) {
            out_format(out, "tag %u", open->tag);
        } else {
            out_text(out, field != NULL ? wire_text(field->name) : "tagged_fields");
        }
    }
    return taken(b);
}

static void add_problem(struct builder *b, const struct wire_event *event)
{
    bool fault = event->kind == WIRE_EVENT_FAULT;
    struct node_problem problem = {
        .path = path(b, event->field, event->index),
        .text = fault ? wire_fault_text(event->fault) : wire_oddity_text(event->oddity),
        .offset = b->in->offset + event->offset,
        .fault = fault,
    };
    node_problem_add(b->list, &problem);
}

/* ---- the visitor ----------------------------------------------------------------------------- */

static enum node_part part_now(const struct builder *b)
{
    return b->tags_open > 0 ? NODE_TAGS : b->in->part;
}

static struct node node_of(struct builder *b, const struct wire_event *event)
{
    return (struct node){
        .name = event_name(b, event),
        .type = event_type(b, event),
        .about = event->field == NULL ? b->in->about : wire_text(event->field->about),
        .field = event->field,
        .offset = b->in->offset + event->offset,
        .length = event->length,
        .depth = (uint16_t)(b->in->depth + event->depth),
        .part = (uint8_t)part_now(b),
    };
}

static void open_one(struct builder *b, const struct wire_event *event, const struct node *node)
{
    assert(event->depth < OPEN_MAX - 1);
    b->open[event->depth] = (struct open_node){node_add(b->list, node), event->kind, event->field,
                                               event->index, event->tag};
    b->open_count = event->depth + 1;
}

static void visit_enter(struct builder *b, const struct wire_event *event)
{
    struct node node = node_of(b, event);

    if (event->index >= 0) node.about = NULL;
    if (event->is_array) {
        if (!event->null)
            out_format(&b->text, "%lld element%s", (long long)event->integer,
                       event->integer == 1 ? "" : "s");
        put_prefix(&b->text, event, event->integer);
        node.value = taken(b);
    } else if (event->prefix == 1) {
        node.value = event->null ? "null (int8 -1)" : "present (int8 1)";
    }
    open_one(b, event, &node);
}

static void visit_value(struct builder *b, const struct wire_event *event)
{
    put_value(b, event);
    struct node node = node_of(b, event);
    node.value = taken(b);
    if (event->index >= 0) node.about = NULL;
    node_add(b->list, &node);
    if (event->type != WIRE_RECORDS || event->null) return;
    struct node_records records = {
        .bytes = event->bytes,
        .offset = node.offset + event->prefix,
        .depth = (uint16_t)(node.depth + 1),
        .path = path(b, event->field, event->index),
    };
    node_records_add(b->list, &records);
}

static void visit_tags(struct builder *b, const struct wire_event *event)
{
    struct node node = node_of(b, event);
    node.name = "tagged_fields";
    node.type = "uvarint";
    node.value = node_format(b->list, "%lld", (long long)event->integer);
    node.about = b->in->snake_names ? "how many tagged fields the header has"
                                    : "how many tagged fields this struct has";
    node.part = NODE_TAGS;
    open_one(b, event, &node);
    b->tags_open++;
}

static void visit_tag(struct builder *b, const struct wire_event *event)
{
    struct node node = node_of(b, event);
    node.name = "tag";
    node.type = "uvarint";
    node.value = node_format(b->list, "%u (%s), size %lld", event->tag,
                             event->field == NULL ? "unknown" : wire_text(event->field->name),
                             (long long)event->integer);
    node.about = "a tagged field: its number, the size of its value, its value";
    node.field = NULL;
    open_one(b, event, &node);
    if (event->field != NULL || event->bytes.data == NULL) return;
    struct wire_event value = *event;
    value.type = WIRE_BYTES;
    put_bytes(b, &value);
    struct node bytes = {.name = "value",
                         .type = "bytes",
                         .value = taken(b),
                         .offset = b->in->offset + event->offset + event->prefix,
                         .length = event->bytes.size,
                         .depth = (uint16_t)(node.depth + 1),
                         .part = NODE_TAGS};
    node_add(b->list, &bytes);
}

static void visit_fault(struct builder *b, const struct wire_event *event)
{
    struct node node = node_of(b, event);
    if (event->field == NULL && event->index < 0) {
        bool in_tag = b->open_count > 0 && b->open[b->open_count - 1].kind == WIRE_EVENT_TAG;
        node.name = in_tag ? "value" : "tagged_fields";
        node.type = in_tag ? "bytes" : "uvarint";
        node.about = NULL;
    }
    node.value = node_format(b->list, "?? %s", wire_fault_text(event->fault));
    node.broken = true;
    node.length = 0;
    node_add(b->list, &node);
    add_problem(b, event);
}

static void visit(void *context, const struct wire_event *event)
{
    struct builder *b = context;
    if (b->list->failed) return;
    switch (event->kind) {
    case WIRE_EVENT_VALUE: visit_value(b, event); break;
    case WIRE_EVENT_ENTER: visit_enter(b, event); break;
    case WIRE_EVENT_TAGS: visit_tags(b, event); break;
    case WIRE_EVENT_TAG: visit_tag(b, event); break;
    case WIRE_EVENT_ODDITY: add_problem(b, event); break;
    case WIRE_EVENT_FAULT: visit_fault(b, event); break;
    case WIRE_EVENT_LEAVE: {
        struct open_node *open = &b->open[event->depth];
        b->open_count = event->depth;
        if (open->kind == WIRE_EVENT_TAGS) b->tags_open--;
        if (open->node != UINT32_MAX) b->list->nodes[open->node].length = event->length;
        break;
    }
    }
}

uint32_t node_message_add(struct node_list *list, const struct node_message *in, struct view bytes)
{
    const struct wire_form *form = wire_form(in->message, in->version);
    struct builder b = {.list = list, .in = in};
    struct reader reader = reader_of(bytes);

    assert(form != NULL);
    out_init(&b.text, list->arena->mem);
    (void)wire_walk(&reader, form, &(struct wire_visitor){visit, &b});
    out_free(&b.text);
    return (uint32_t)(reader.at - reader.start);
}
