/* walk.c - the operations of a form over bytes, told to a visitor. Read with decode.c beside it. */
#include "wire/walk.h"

#include "base/limits.h"

struct walker {
    struct reader *in;
    const struct wire_visitor *visitor;
    uint32_t depth;
    bool told; /* The fault has been told. */
};

static void walk_form(struct walker *w,
                      const struct wire_form *form,
                      const struct wire_event *head);

static uint32_t walk_at(const struct walker *w)
{
    return (uint32_t)(w->in->at - w->in->start);
}

static void walk_tell(struct walker *w, struct wire_event *event)
{
    event->depth = w->depth;
    w->visitor->visit(w->visitor->context, event);
}

static void walk_fault(struct walker *w, const struct wire_field *field, int32_t index)
{
    if (w->in->fault == READER_OK || w->told) return;
    w->told = true;
    struct wire_event event = {.kind = WIRE_EVENT_FAULT,
                               .field = field,
                               .index = index,
                               .offset = walk_at(w),
                               .fault = w->in->fault};
    walk_tell(w, &event);
}

static void walk_odd(struct walker *w,
                     const struct wire_field *field,
                     uint32_t offset,
                     enum wire_oddity oddity)
{
    struct wire_event event = {
        .kind = WIRE_EVENT_ODDITY, .field = field, .index = -1, .offset = offset, .oddity = oddity};
    walk_tell(w, &event);
}

static uint32_t walk_uvarint(struct walker *w, const struct wire_field *field)
{
    uint32_t before = w->in->oddities, offset = walk_at(w);
    uint32_t value = reader_uvarint(w->in);
    if (w->in->oddities != before) walk_odd(w, field, offset, WIRE_ODD_VARINT);
    return value;
}

static void walk_enter(struct walker *w, struct wire_event *event)
{
    walk_tell(w, event);
    w->depth++;
}

static void walk_leave(struct walker *w, const struct wire_event *entered)
{
    w->depth--;
    struct wire_event event = *entered;
    event.kind = WIRE_EVENT_LEAVE;
    event.length = walk_at(w) - entered->offset;
    walk_tell(w, &event);
}

/* The length before a value, -1 for null; a fault if null may not be. */
static int64_t walk_length(struct walker *w,
                           const struct wire_op *op,
                           bool wide,
                           struct wire_event *event)
{
    uint32_t at = walk_at(w);
    int64_t length;
    event->compact = (op->flags & WIRE_OP_COMPACT) != 0;
    if (event->compact)
        length = (int32_t)(walk_uvarint(w, event->field) - 1);
    else if (wide)
        length = (int32_t)reader_be32(w->in);
    else
        length = (int16_t)reader_be16(w->in);
    event->prefix = walk_at(w) - at;
    if (w->in->fault != READER_OK || length >= 0) return length;
    if (!(op->flags & WIRE_OP_NULLABLE)) reader_fail(w->in, READER_NULL);
    if (length < -1) walk_odd(w, event->field, at, WIRE_ODD_LENGTH);
    event->null = true;
    return -1;
}

static void walk_bytes(struct walker *w, const struct wire_op *op, struct wire_event *event)
{
    bool is_string = op->type == WIRE_STRING;
    event->type = op->type;
    event->offset = walk_at(w);
    int64_t length = walk_length(w, op, !is_string, event);
    if (w->in->fault == READER_OK && length >= 0) {
        if ((is_string && length > INT16_MAX) || (uint64_t)length > reader_left(w->in))
            reader_fail(w->in, READER_LENGTH);
        else
            event->bytes = view_of(reader_take(w->in, (size_t)length), (uint32_t)length);
    } else {
        event->bytes = VIEW_NULL;
    }
    event->length = walk_at(w) - event->offset;
    if (w->in->fault == READER_OK) walk_tell(w, event);
    walk_fault(w, event->field, event->index);
}

static double real_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void walk_fixed(struct walker *w, uint8_t type, struct wire_event *event)
{
    event->type = type;
    event->offset = walk_at(w);
    event->length = wire_type_size(type);
    const uint8_t *p = reader_take(w->in, event->length);
    if (p == NULL) {
        walk_fault(w, event->field, event->index);
        return;
    }
    switch ((enum wire_type)type) {
    case WIRE_BOOL: event->integer = p[0] != 0; break;
    case WIRE_INT8: event->integer = (int8_t)p[0]; break;
    case WIRE_INT16: event->integer = (int16_t)load_be16(p); break;
    case WIRE_UINT16: event->integer = load_be16(p); break;
    case WIRE_INT32: event->integer = (int32_t)load_be32(p); break;
    case WIRE_UINT32: event->integer = load_be32(p); break;
    case WIRE_INT64: event->integer = (int64_t)load_be64(p); break;
    case WIRE_FLOAT64: event->real = real_of(load_be64(p)); break;
    case WIRE_UUID: memcpy(event->uuid.bytes, p, sizeof(event->uuid.bytes)); break;
    default: assert(false);
    }
    walk_tell(w, event);
    if (type == WIRE_BOOL && p[0] > 1) walk_odd(w, event->field, event->offset, WIRE_ODD_BOOL);
}

static const struct wire_field *walk_field(const struct wire_form *form, const struct wire_op *op)
{
    return op->field < wire_form_shape(form)->field_count
               ? wire_struct_field(wire_form_shape(form), op->field)
               : NULL;
}

static void walk_element(struct walker *w,
                         const struct wire_op *op,
                         const struct wire_field *field,
                         int32_t index)
{
    struct wire_event event = {.kind = WIRE_EVENT_VALUE, .field = field, .index = index};
    if (op->code == WIRE_OP_ARRAY_FIXED) {
        walk_fixed(w, op->type, &event);
    } else if (op->code == WIRE_OP_ARRAY_STRING) {
        struct wire_op element = *op;
        element.flags &= (uint8_t)~WIRE_OP_NULLABLE;
        walk_bytes(w, &element, &event);
    } else {
        walk_form(w, wire_op_form(op), &event);
    }
}

static void walk_array(struct walker *w, const struct wire_op *op, const struct wire_field *field)
{
    struct wire_event event = {.kind = WIRE_EVENT_ENTER,
                               .field = field,
                               .index = -1,
                               .is_array = true,
                               .type = op->type,
                               .offset = walk_at(w)};
    if (op->code == WIRE_OP_ARRAY_STRUCT) event.shape = wire_form_shape(wire_op_form(op));
    int64_t count = walk_length(w, op, true, &event);
    uint32_t smallest = op->code == WIRE_OP_ARRAY_FIXED    ? op->size
                        : op->code == WIRE_OP_ARRAY_STRUCT ? MAX(op->count, 1)
                                                           : 1;
    if (count > WIRE_ARRAY_MAX || (count > 0 && (uint64_t)count > reader_left(w->in) / smallest))
        reader_fail(w->in, READER_COUNT);
    if (w->in->fault != READER_OK) {
        walk_fault(w, field, -1);
        return;
    }
    event.integer = count;
    walk_enter(w, &event);
    for (int64_t i = 0; i < count && w->in->fault == READER_OK; i++)
        walk_element(w, op, field, (int32_t)i);
    walk_leave(w, &event);
}

static void walk_op(struct walker *w, const struct wire_form *form, const struct wire_op *op);

static void walk_tag(struct walker *w, const struct wire_form *form, int64_t *last)
{
    struct wire_event event = {.kind = WIRE_EVENT_TAG, .index = -1, .offset = walk_at(w)};
    event.tag = walk_uvarint(w, NULL);
    event.integer = walk_uvarint(w, NULL);
    event.prefix = walk_at(w) - event.offset;
    if (w->in->fault != READER_OK) {
        walk_fault(w, NULL, -1);
        return;
    }
    const struct wire_tagged *known = wire_form_tag(form, event.tag);
    if (known == NULL && wire_form_tag_elsewhere(form, event.tag)) {
        w->in->at = w->in->start + event.offset;
        reader_fail(w->in, READER_TAGS);
        walk_fault(w, NULL, -1);
        return;
    }
    if (known != NULL) event.field = wire_struct_field(wire_form_shape(form), known->op.field);
    uint32_t value = walk_at(w);
    if (known == NULL) {
        const uint8_t *bytes = reader_take(w->in, (size_t)event.integer);
        if (bytes != NULL) event.bytes = view_of(bytes, (uint32_t)event.integer);
    }
    walk_enter(w, &event);
    if ((int64_t)event.tag <= *last) walk_odd(w, event.field, event.offset, WIRE_ODD_TAG_ORDER);
    *last = event.tag;
    if (known != NULL) {
        walk_op(w, form, &known->op);
        if (w->in->fault == READER_OK && walk_at(w) - value != event.integer)
            walk_odd(w, event.field, event.offset, WIRE_ODD_TAG_SIZE);
    }
    walk_fault(w, event.field, -1);
    walk_leave(w, &event);
}

static void walk_tags(struct walker *w, const struct wire_form *form)
{
    struct wire_event event = {.kind = WIRE_EVENT_TAGS, .index = -1, .offset = walk_at(w)};
    event.integer = walk_uvarint(w, NULL);
    event.prefix = walk_at(w) - event.offset;
    if (event.integer > WIRE_TAGS_MAX || (uint64_t)event.integer > reader_left(w->in))
        reader_fail(w->in, READER_TAGS);
    if (w->in->fault != READER_OK) {
        walk_fault(w, NULL, -1);
        return;
    }
    walk_enter(w, &event);
    int64_t last = -1;
    for (int64_t i = 0; i < event.integer && w->in->fault == READER_OK; i++)
        walk_tag(w, form, &last);
    walk_leave(w, &event);
}

static void walk_struct_or_null(struct walker *w,
                                const struct wire_op *op,
                                const struct wire_field *field)
{
    struct wire_event event = {.kind = WIRE_EVENT_ENTER,
                               .field = field,
                               .shape = wire_form_shape(wire_op_form(op)),
                               .index = -1,
                               .type = WIRE_STRUCT,
                               .offset = walk_at(w),
                               .prefix = 1};
    int32_t there;
    if (op->flags & WIRE_OP_COMPACT) {
        there = (int32_t)walk_uvarint(w, field);
        event.prefix = walk_at(w) - event.offset;
        if (there == 0) there = -1;
    } else {
        there = (int8_t)reader_u8(w->in);
    }
    if (w->in->fault != READER_OK) {
        walk_fault(w, field, -1);
        return;
    }
    if (there != 1 && there != -1) walk_odd(w, field, event.offset, WIRE_ODD_LENGTH);
    event.null = there < 0;
    if (!event.null) {
        walk_form(w, wire_op_form(op), &event);
        return;
    }
    walk_enter(w, &event);
    walk_leave(w, &event);
}

static void walk_op(struct walker *w, const struct wire_form *form, const struct wire_op *op)
{
    struct wire_event event = {
        .kind = WIRE_EVENT_VALUE, .field = walk_field(form, op), .index = -1};
    switch ((enum wire_op_code)op->code) {
    case WIRE_OP_FIXED_RUN:
        for (uint32_t i = 0; i < op->count && w->in->fault == READER_OK; i++) {
            struct wire_event one = event;
            one.field = wire_struct_field(wire_form_shape(form), wire_op_fixed(op)[i].field);
            walk_fixed(w, wire_op_fixed(op)[i].type, &one);
        }
        break;
    case WIRE_OP_STRING:
    case WIRE_OP_BYTES:
    case WIRE_OP_RECORDS: walk_bytes(w, op, &event); break;
    case WIRE_OP_ARRAY_FIXED:
    case WIRE_OP_ARRAY_STRING:
    case WIRE_OP_ARRAY_STRUCT: walk_array(w, op, event.field); break;
    case WIRE_OP_STRUCT: walk_form(w, wire_op_form(op), &event); break;
    case WIRE_OP_STRUCT_OR_NULL: walk_struct_or_null(w, op, event.field); break;
    case WIRE_OP_TAGS: walk_tags(w, form); break;
    case WIRE_OP_ABSENT: break;
    }
}

/* A struct: `head` says which field or element it is, and where it began if that is known. */
static void walk_form(struct walker *w, const struct wire_form *form, const struct wire_event *head)
{
    struct wire_event event = *head;
    event.kind = WIRE_EVENT_ENTER;
    event.type = WIRE_STRUCT;
    event.shape = wire_form_shape(form);
    event.offset = walk_at(w) - head->prefix;
    walk_enter(w, &event);
    for (uint32_t i = 0; i < form->op_count && w->in->fault == READER_OK; i++)
        walk_op(w, form, &wire_form_ops(form)[i]);
    walk_leave(w, &event);
}

bool wire_walk(struct reader *in, const struct wire_form *form, const struct wire_visitor *visitor)
{
    struct walker w = {.in = in, .visitor = visitor};
    struct wire_event head = {.index = -1};
    walk_form(&w, form, &head);
    return in->fault == READER_OK;
}

const char *wire_fault_text(enum reader_fault fault)
{
    switch (fault) {
    case READER_OK: return "no fault";
    case READER_SHORT: return "the value ends behind the last byte";
    case READER_VARINT: return "a varint of more bytes than its type can have";
    case READER_LENGTH: return "a length that the bytes left cannot hold";
    case READER_NULL: return "null, where the schema has none";
    case READER_COUNT: return "an array with more elements than the bytes left can hold";
    case READER_MEMORY: return "more memory than a message of this size may take";
    case READER_TAGS: return "a tagged field that does not fit";
    case READER_VALUE: return "a value that the field cannot have";
    }
    return "no such fault";
}

const char *wire_oddity_text(enum wire_oddity oddity)
{
    switch (oddity) {
    case WIRE_ODD_VARINT: return "a varint with more bytes than it needs";
    case WIRE_ODD_LENGTH: return "a mark of null or of a value that is neither -1 nor 1";
    case WIRE_ODD_TAG_ORDER: return "a tag that is not greater than the one before it";
    case WIRE_ODD_TAG_SIZE: return "a tagged field whose value is not as long as its size says";
    case WIRE_ODD_BOOL: return "a boolean that is neither 0 nor 1";
    }
    return "no such oddity";
}
