/* encode.c - write one message: size first, exactly, then bytes without a check per field.
 *
 * Tagged fields are written in the order of their tags, the known ones if they differ from their
 * default, the unknown ones as they came. External bytes are counted in sizes and left as gaps. */
#include "wire/form.h"

static uint32_t uvarint_size(uint64_t v)
{
    return 1 + (uint32_t)(63 - __builtin_clzll(v | 1)) / 7;
}

/* ---- is a value its default? ----------------------------------------------------------------- */

static bool struct_is_default(const struct wire_struct *shape, const uint8_t *in);

static bool view_is_default(struct view value, struct view standard)
{
    return !value.external && view_equal(value, standard);
}

bool wire_field_is_default(const struct wire_field *field,
                           const struct wire_struct *shape,
                           const void *in)
{
    static const uint8_t zeros[sizeof(struct view)];
    const uint8_t *slot = (const uint8_t *)in + field->offset;
    const uint8_t *standard =
        shape->defaults != NULL ? (const uint8_t *)shape->defaults + field->offset : NULL;

    if (field->flags & WIRE_FIELD_ARRAY) {
        int32_t count =
            standard != NULL ? ((const struct wire_array *)(const void *)standard)->count : 0;
        return ((const struct wire_array *)(const void *)slot)->count == count;
    }
    switch ((enum wire_type)field->type) {
    case WIRE_STRING:
    case WIRE_BYTES:
    case WIRE_RECORDS:
        return view_is_default(*(const struct view *)(const void *)slot,
                               standard != NULL ? *(const struct view *)(const void *)standard
                                                : VIEW_EMPTY);
    case WIRE_STRUCT:
        if (field->flags & WIRE_FIELD_POINTER)
            return *(const void *const *)(const void *)slot == NULL;
        return struct_is_default(field->shape, slot);
    default:
        return memcmp(slot, standard != NULL ? standard : zeros, wire_type_size(field->type)) == 0;
    }
}

static bool struct_is_default(const struct wire_struct *shape, const uint8_t *in)
{
    for (uint32_t i = 0; i < shape->field_count; i++)
        if (!wire_field_is_default(&shape->fields[i], shape, in)) return false;
    return true;
}

const struct wire_field *wire_unsupported(const struct wire_form *form, const void *in)
{
    const struct wire_struct *shape = form->shape;
    for (uint32_t i = 0; i < form->op_count; i++) {
        const struct wire_op *op = &form->ops[i];
        const uint8_t *slot = (const uint8_t *)in + op->offset;
        if (op->code == WIRE_OP_ABSENT && op->field < shape->field_count) {
            const struct wire_field *field = &shape->fields[op->field];
            bool tagged = false;
            for (uint32_t t = 0; t < form->tagged_count; t++)
                tagged = tagged || form->tagged[t].op.field == op->field;
            if (!tagged && !(field->flags & WIRE_FIELD_IGNORABLE) &&
                !wire_field_is_default(field, shape, in))
                return field;
        }
        const struct wire_field *inner = NULL;
        if (op->code == WIRE_OP_STRUCT) inner = wire_unsupported(op->more.form, slot);
        if (op->code == WIRE_OP_STRUCT_OR_NULL && *(const void *const *)(const void *)slot != NULL)
            inner = wire_unsupported(op->more.form, *(const void *const *)(const void *)slot);
        if (op->code == WIRE_OP_ARRAY_STRUCT) {
            const struct wire_array *array = (const struct wire_array *)(const void *)slot;
            const uint8_t *item = array->items;
            for (int32_t n = 0; n < array->count && inner == NULL;
                 n++, item += op->more.form->shape->size_bytes)
                inner = wire_unsupported(op->more.form, item);
        }
        if (inner != NULL) return inner;
    }
    return NULL;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static size_t size_form(const struct wire_form *form, const uint8_t *in, struct wire_external *x);

static size_t size_length(const struct wire_op *op, uint64_t length, uint32_t plain)
{
    return op->flags & WIRE_OP_COMPACT ? uvarint_size(length + 1) : plain;
}

static size_t size_view(const struct wire_op *op,
                        const struct view *v,
                        uint32_t plain,
                        struct wire_external *x)
{
    if (v->null) return op->flags & WIRE_OP_COMPACT ? 1 : plain;
    if (v->external) {
        x->bytes += v->size;
        x->count++;
    }
    return size_length(op, v->size, plain) + v->size;
}

static size_t size_array(const struct wire_op *op,
                         const struct wire_array *array,
                         struct wire_external *x)
{
    if (array->count < 0) return op->flags & WIRE_OP_COMPACT ? 1 : 4;
    size_t size = size_length(op, (uint64_t)array->count, 4);
    if (op->code == WIRE_OP_ARRAY_FIXED) return size + (size_t)array->count * op->size;
    if (op->code == WIRE_OP_ARRAY_STRING) {
        const struct view *items = array->items;
        for (int32_t i = 0; i < array->count; i++)
            size += size_view(op, &items[i], op->type == WIRE_STRING ? 2 : 4, x);
        return size;
    }
    const uint8_t *item = array->items;
    for (int32_t i = 0; i < array->count; i++, item += op->more.form->shape->size_bytes)
        size += size_form(op->more.form, item, x);
    return size;
}

static size_t size_tags(const struct wire_form *form,
                        const uint8_t *in,
                        struct view unknown,
                        struct wire_external *x);

static size_t size_op(const struct wire_form *form,
                      const struct wire_op *op,
                      const uint8_t *in,
                      struct wire_external *x)
{
    const void *slot = in + op->offset;
    switch ((enum wire_code)op->code) {
    case WIRE_OP_FIXED_RUN: return op->size;
    case WIRE_OP_STRING: return size_view(op, slot, 2, x);
    case WIRE_OP_BYTES:
    case WIRE_OP_RECORDS: return size_view(op, slot, 4, x);
    case WIRE_OP_ARRAY_FIXED:
    case WIRE_OP_ARRAY_STRING:
    case WIRE_OP_ARRAY_STRUCT: return size_array(op, slot, x);
    case WIRE_OP_STRUCT: return size_form(op->more.form, slot, x);
    case WIRE_OP_STRUCT_OR_NULL: {
        const void *value = *(const void *const *)slot;
        return value == NULL ? 1 : 1 + size_form(op->more.form, value, x);
    }
    case WIRE_OP_TAGS: return size_tags(form, in, *(const struct view *)slot, x);
    case WIRE_OP_ABSENT: return 0;
    }
    return 0;
}

static bool tag_known(const struct wire_form *form, uint32_t tag)
{
    for (uint32_t i = 0; i < form->tagged_count; i++)
        if (form->tagged[i].tag == tag) return true;
    return false;
}

/* The next unknown tag in a kept section: its bytes, number included. False at the end. */
static bool tag_next(const struct wire_form *form,
                     struct reader *in,
                     uint32_t *tag,
                     struct view *bytes)
{
    while (reader_left(in) > 0) {
        const uint8_t *start = in->at;
        *tag = reader_uvarint(in);
        uint32_t size = reader_uvarint(in);
        (void)reader_take(in, size);
        if (in->fault != READER_OK) return false;
        *bytes = view_of(start, (uint32_t)(in->at - start));
        if (!tag_known(form, *tag)) return true;
    }
    return false;
}

static bool tag_is_set(const struct wire_form *form, uint32_t i, const uint8_t *in)
{
    return !wire_field_is_default(&form->shape->fields[form->tagged[i].op.field], form->shape, in);
}

static size_t size_tags(const struct wire_form *form,
                        const uint8_t *in,
                        struct view unknown,
                        struct wire_external *x)
{
    if (form->tagged_count == 0 && unknown.size == 0) return 1;
    uint32_t count = 0;
    size_t size = 0;
    for (uint32_t i = 0; i < form->tagged_count; i++) {
        if (!tag_is_set(form, i, in)) continue;
        size_t value = size_op(form, &form->tagged[i].op, in, x);
        size += uvarint_size(form->tagged[i].tag) + uvarint_size(value) + value;
        count++;
    }
    struct reader kept = reader_of(unknown);
    struct view bytes;
    uint32_t tag;
    while (tag_next(form, &kept, &tag, &bytes)) {
        size += bytes.size;
        count++;
    }
    return uvarint_size(count) + size;
}

static size_t size_form(const struct wire_form *form, const uint8_t *in, struct wire_external *x)
{
    size_t size = 0;
    for (const struct wire_op *op = form->ops, *end = op + form->op_count; op != end; op++)
        size += size_op(form, op, in, x);
    return size;
}

size_t wire_size(const struct wire_form *form, const void *in)
{
    struct wire_external ignored = {0};
    return size_form(form, in, &ignored);
}

size_t wire_size_external(const struct wire_form *form,
                          const void *in,
                          struct wire_external *external)
{
    *external = (struct wire_external){0};
    return size_form(form, in, external);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

struct encoder {
    uint8_t *at;
    const uint8_t *start;
    struct wire_gap *gaps;
    uint32_t gap_limit;
    uint32_t gap_count;
};

static void encode_form(struct encoder *e, const struct wire_form *form, const uint8_t *in);

static void encode_uvarint(struct encoder *e, uint64_t v)
{
    while (v >= 0x80) {
        *e->at++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *e->at++ = (uint8_t)v;
}

static void encode_length(struct encoder *e,
                          const struct wire_op *op,
                          int64_t length,
                          uint32_t plain)
{
    if (op->flags & WIRE_OP_COMPACT) {
        encode_uvarint(e, (uint64_t)(length + 1));
    } else if (plain == 2) {
        store_be16(e->at, (uint16_t)length);
        e->at += 2;
    } else {
        store_be32(e->at, (uint32_t)length);
        e->at += 4;
    }
}

static void encode_view(struct encoder *e,
                        const struct wire_op *op,
                        const struct view *v,
                        uint32_t plain)
{
    encode_length(e, op, v->null ? -1 : (int64_t)v->size, plain);
    if (v->null || v->size == 0) return;
    if (v->external) {
        assert(e->gap_count < e->gap_limit);
        e->gaps[e->gap_count++] = (struct wire_gap){(uint32_t)(e->at - e->start), v->size, v->data};
        return;
    }
    memcpy(e->at, v->data, v->size);
    e->at += v->size;
}

static inline void encode_fixed(uint8_t *p, uint8_t type, const uint8_t *in)
{
    switch ((enum wire_type)type) {
    case WIRE_BOOL: p[0] = *(const bool *)in ? 1 : 0; break;
    case WIRE_INT8: p[0] = *in; break;
    case WIRE_INT16:
    case WIRE_UINT16: {
        uint16_t v;
        memcpy(&v, in, sizeof(v));
        store_be16(p, v);
        break;
    }
    case WIRE_INT32:
    case WIRE_UINT32: {
        uint32_t v;
        memcpy(&v, in, sizeof(v));
        store_be32(p, v);
        break;
    }
    case WIRE_INT64:
    case WIRE_FLOAT64: {
        uint64_t v;
        memcpy(&v, in, sizeof(v));
        store_be64(p, v);
        break;
    }
    case WIRE_UUID: memcpy(p, in, sizeof(struct uuid)); break;
    default: assert(false);
    }
}

static void encode_array(struct encoder *e,
                         const struct wire_op *op,
                         const struct wire_array *array)
{
    encode_length(e, op, array->count < 0 ? -1 : array->count, 4);
    if (array->count <= 0) return;
    const uint8_t *item = array->items;
    for (int32_t i = 0; i < array->count; i++) {
        if (op->code == WIRE_OP_ARRAY_FIXED) {
            encode_fixed(e->at, op->type, item);
            e->at += op->size;
            item += op->size;
        } else if (op->code == WIRE_OP_ARRAY_STRING) {
            encode_view(e, op, (const struct view *)(const void *)item,
                        op->type == WIRE_STRING ? 2 : 4);
            item += sizeof(struct view);
        } else {
            encode_form(e, op->more.form, item);
            item += op->more.form->shape->size_bytes;
        }
    }
}

static void encode_tags(struct encoder *e,
                        const struct wire_form *form,
                        const uint8_t *in,
                        struct view unknown);

static void encode_op(struct encoder *e,
                      const struct wire_form *form,
                      const struct wire_op *op,
                      const uint8_t *in)
{
    const void *slot = in + op->offset;
    switch ((enum wire_code)op->code) {
    case WIRE_OP_FIXED_RUN:
        for (const struct wire_fixed *f = op->more.fixed, *end = f + op->count; f != end; f++) {
            encode_fixed(e->at, f->type, in + f->offset);
            e->at += wire_type_size(f->type);
        }
        break;
    case WIRE_OP_STRING: encode_view(e, op, slot, 2); break;
    case WIRE_OP_BYTES:
    case WIRE_OP_RECORDS: encode_view(e, op, slot, 4); break;
    case WIRE_OP_ARRAY_FIXED:
    case WIRE_OP_ARRAY_STRING:
    case WIRE_OP_ARRAY_STRUCT: encode_array(e, op, slot); break;
    case WIRE_OP_STRUCT: encode_form(e, op->more.form, slot); break;
    case WIRE_OP_STRUCT_OR_NULL: {
        const void *value = *(const void *const *)slot;
        *e->at++ = value == NULL ? 0xff : 1;
        if (value != NULL) encode_form(e, op->more.form, value);
        break;
    }
    case WIRE_OP_TAGS: encode_tags(e, form, in, *(const struct view *)slot); break;
    case WIRE_OP_ABSENT: break;
    }
}

static void encode_unknown_below(struct encoder *e,
                                 const struct wire_form *form,
                                 struct reader *kept,
                                 uint64_t limit)
{
    struct view bytes;
    uint32_t tag;
    for (;;) {
        struct reader before = *kept;
        if (!tag_next(form, kept, &tag, &bytes)) return;
        if (tag >= limit) {
            *kept = before;
            return;
        }
        memcpy(e->at, bytes.data, bytes.size);
        e->at += bytes.size;
    }
}

static void encode_tags(struct encoder *e,
                        const struct wire_form *form,
                        const uint8_t *in,
                        struct view unknown)
{
    if (form->tagged_count == 0 && unknown.size == 0) {
        *e->at++ = 0;
        return;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < form->tagged_count; i++)
        count += tag_is_set(form, i, in);
    struct reader counted = reader_of(unknown), kept = counted;
    struct view bytes;
    uint32_t tag;
    while (tag_next(form, &counted, &tag, &bytes))
        count++;
    encode_uvarint(e, count);
    for (uint32_t i = 0; i < form->tagged_count; i++) {
        if (!tag_is_set(form, i, in)) continue;
        encode_unknown_below(e, form, &kept, form->tagged[i].tag);
        encode_uvarint(e, form->tagged[i].tag);
        encode_uvarint(e, size_op(form, &form->tagged[i].op, in, &(struct wire_external){0}));
        encode_op(e, form, &form->tagged[i].op, in);
    }
    encode_unknown_below(e, form, &kept, UINT64_MAX);
}

static void encode_form(struct encoder *e, const struct wire_form *form, const uint8_t *in)
{
    for (const struct wire_op *op = form->ops, *end = op + form->op_count; op != end; op++)
        encode_op(e, form, op, in);
}

size_t wire_encode(const struct wire_form *form,
                   const void *in,
                   uint8_t *out,
                   struct wire_gap *gaps,
                   uint32_t gap_limit,
                   uint32_t *gap_count)
{
    struct encoder e = {.at = out, .start = out, .gaps = gaps, .gap_limit = gap_limit};
    encode_form(&e, form, in);
    if (gap_count != NULL) *gap_count = e.gap_count;
    return (size_t)(e.at - out);
}
