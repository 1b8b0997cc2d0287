/* encode.c - write one message: size first, exactly, then bytes without a check per field.
 *
 * Tagged fields are written in the order of their tags, the known ones if they differ from their
 * default, the unknown ones as they came. External bytes are counted in sizes and left as gaps. */
#include "wire/write.h"

/* ---- sizes ----------------------------------------------------------------------------------- */

size_t wire_extra_ops(const struct wire_form *form, const uint8_t *in, struct wire_external *x)
{
    size_t extra = 0;
    for (const struct wire_op *op = wire_form_ops(form) + form->absent_count,
                              *end = wire_form_ops(form) + form->op_count;
         op != end; op++)
        extra += wire_extra_op(form, op, in, x);
    return extra;
}

size_t wire_size(const struct wire_form *form, const void *in)
{
    struct wire_external ignored = {0};
    return form->size_min + wire_extra_form(form, in, &ignored);
}

size_t wire_size_external(const struct wire_form *form,
                          const void *in,
                          struct wire_external *external)
{
    *external = (struct wire_external){0};
    return form->size_min + wire_extra_form(form, in, external);
}

/* The elements at their smallest, and what the count takes beyond its first byte. */
static size_t extra_elements(const struct wire_op *op, const struct wire_array *array)
{
    size_t size = (size_t)array->count * op->size;
    return op->flags & WIRE_OP_COMPACT ? size + wire_extra_uvarint((uint32_t)array->count + 1)
                                       : size;
}

size_t wire_extra_array_fixed(const struct wire_op *op, const struct wire_array *array)
{
    return array->count <= 0 ? 0 : extra_elements(op, array);
}

size_t wire_extra_array_string(const struct wire_op *op,
                               const struct wire_array *array,
                               struct wire_external *x)
{
    if (array->count <= 0) return 0;
    size_t extra = extra_elements(op, array);
    const struct view *item = array->items;
    for (int32_t i = 0; i < array->count; i++)
        extra += wire_extra_view(op, &item[i], x);
    return extra;
}

size_t wire_extra_array_struct(const struct wire_op *op,
                               const struct wire_array *array,
                               struct wire_external *x)
{
    const struct wire_code *code = wire_form_code(wire_op_form(op));
    return wire_extra_structs(op, array, x, code != NULL ? code->extra : NULL);
}

size_t wire_extra_struct_or_null(const struct wire_op *op,
                                 const void *slot,
                                 struct wire_external *x)
{
    const void *value = *(const void *const *)slot;
    if (value == NULL) return 0;
    const struct wire_form *form = wire_op_form(op);
    return form->size_min + wire_extra_form(form, value, x);
}

/* ---- tags ------------------------------------------------------------------------------------ */

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
        if (wire_form_tag(form, *tag) == NULL) return true;
    }
    return false;
}

static struct reader tags_kept(const struct wire_form *form, const uint8_t *in)
{
    return reader_of(*(const struct view *)(const void *)(in + wire_form_shape(form)->tags_offset));
}

static bool tag_is_set(const struct wire_form *form,
                       const struct wire_tagged *tagged,
                       const uint8_t *in)
{
    return !wire_field_is_default(wire_struct_field(wire_form_shape(form), tagged->op.field),
                                  wire_form_shape(form), in);
}

static size_t tag_size(const struct wire_form *form,
                       const struct wire_tagged *tagged,
                       const uint8_t *in,
                       struct wire_external *x)
{
    return tagged->size_min + wire_extra_op(form, &tagged->op, in, x);
}

bool wire_tags_untouched(const struct wire_form *form, const uint8_t *in)
{
    const uint8_t *defaults = wire_default_of(wire_form_shape(form));
    assert(defaults != NULL); /* schemac: where there are tagged fields. */
    bool same = true;
    for (const struct wire_op *op = wire_form_ops(form), *end = op + form->absent_count; op != end;
         op++)
        same = same && memcmp(in + op->offset, defaults + op->offset, op->size) == 0;
    return same;
}

size_t wire_extra_tags(const struct wire_form *form, const uint8_t *in, struct wire_external *x)
{
    uint32_t count = 0;
    size_t size = 0;
    for (uint32_t i = 0; i < form->tagged_count; i++) {
        const struct wire_tagged *tagged = &wire_form_tagged(form)[i];
        if (LIKELY(!tag_is_set(form, tagged, in))) continue;
        size_t value = tag_size(form, tagged, in, x);
        size += 2 + wire_extra_uvarint(tagged->tag) + wire_extra_uvarint((uint32_t)value) + value;
        count++;
    }
    struct reader kept = tags_kept(form, in);
    struct view bytes;
    uint32_t tag;
    while (tag_next(form, &kept, &tag, &bytes)) {
        size += bytes.size;
        count++;
    }
    return size + wire_extra_uvarint(count);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static uint8_t *write_uvarint(uint8_t *at, uint32_t v)
{
    while (v >= 0x80) {
        *at++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *at++ = (uint8_t)v;
    return at;
}

/* A length or count; -1 for null. */
uint8_t *wire_write_length(uint8_t *at, const struct wire_op *op, int32_t length)
{
    if (op->flags & WIRE_OP_COMPACT) return write_uvarint(at, (uint32_t)length + 1);
    if (op->code == WIRE_OP_STRING) {
        store_be16(at, (uint16_t)length);
        return at + 2;
    }
    store_be32(at, (uint32_t)length);
    return at + 4;
}

uint8_t *wire_write_bytes(struct wire_encoder *e,
                          uint8_t *at,
                          const struct wire_op *op,
                          const struct view *v)
{
    at = wire_write_length(at, op, v->null ? -1 : (int32_t)v->size);
    if (v->null || v->size == 0) return at;
    if (v->external) {
        assert(e->gap_count < e->gap_limit);
        e->gaps[e->gap_count++] = (struct wire_gap){(uint32_t)(at - e->start), v->size, v->data};
        return at;
    }
    memcpy(at, v->data, v->size);
    return at + v->size;
}

uint8_t *wire_write_array(struct wire_encoder *e,
                          uint8_t *at,
                          const struct wire_op *op,
                          const void *slot)
{
    if (op->code == WIRE_OP_ARRAY_FIXED) return wire_write_fixed_items(e, at, op, slot);
    if (op->code == WIRE_OP_ARRAY_STRING) return wire_write_string_items(e, at, op, slot);
    const struct wire_code *code = wire_form_code(wire_op_form(op));
    return wire_write_structs(e, at, op, slot, code != NULL ? code->write : NULL);
}

uint8_t *wire_write_struct_or_null(struct wire_encoder *e,
                                   uint8_t *at,
                                   const struct wire_op *op,
                                   const void *slot)
{
    const void *value = *(const void *const *)slot;
    uint8_t null = op->flags & WIRE_OP_COMPACT ? 0 : 0xff;
    *at++ = value == NULL ? null : 1;
    return value == NULL ? at : wire_write_form(e, at, wire_op_form(op), value);
}

/* Unknown tags below `limit` go before a known one. */
static uint8_t *write_unknown(uint8_t *at,
                              const struct wire_form *form,
                              struct reader *kept,
                              uint64_t limit)
{
    struct view bytes;
    uint32_t tag;
    for (;;) {
        struct reader before = *kept;
        if (!tag_next(form, kept, &tag, &bytes)) return at;
        if (tag >= limit) {
            *kept = before;
            return at;
        }
        memcpy(at, bytes.data, bytes.size);
        at += bytes.size;
    }
}

uint8_t *wire_write_tags(struct wire_encoder *e,
                         uint8_t *at,
                         const struct wire_form *form,
                         const uint8_t *in)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < form->tagged_count; i++)
        count += tag_is_set(form, &wire_form_tagged(form)[i], in);
    struct reader counted = tags_kept(form, in), kept = counted;
    struct view bytes;
    uint32_t tag;
    while (tag_next(form, &counted, &tag, &bytes))
        count++;
    at = write_uvarint(at, count);
    if (count == 0) return at;

    for (uint32_t i = 0; i < form->tagged_count; i++) {
        const struct wire_tagged *tagged = &wire_form_tagged(form)[i];
        if (!tag_is_set(form, tagged, in)) continue;
        at = write_unknown(at, form, &kept, tagged->tag);
        at = write_uvarint(at, tagged->tag);
        struct wire_external ignored;
        at = write_uvarint(at, (uint32_t)tag_size(form, tagged, in, &ignored));
        at = wire_write_op(e, at, form, &tagged->op, in);
    }
    return write_unknown(at, form, &kept, UINT64_MAX);
}

uint8_t *wire_write_ops(struct wire_encoder *e,
                        uint8_t *at,
                        const struct wire_form *form,
                        const uint8_t *in)
{
    for (const struct wire_op *op = wire_form_ops(form) + form->absent_count,
                              *end = wire_form_ops(form) + form->op_count;
         op != end; op++)
        at = wire_write_op(e, at, form, op, in);
    return at;
}

size_t wire_encode(const struct wire_form *form,
                   const void *in,
                   uint8_t *out,
                   struct wire_gap *gaps,
                   uint32_t gap_limit,
                   uint32_t *gap_count)
{
    struct wire_encoder e = {.start = out, .gaps = gaps, .gap_limit = gap_limit};
    const uint8_t *end = wire_write_form(&e, out, form, in);
    if (gap_count != NULL) *gap_count = e.gap_count;
    return (size_t)(end - out);
}
