/* defaults.c - is a value its schema's default, and can a version carry it? As Kafka decides: a
 * tagged field at its default is not written; a field that the version has not must be at its
 * default or ignorable. */
#include "wire/form.h"

void wire_struct_defaults(const struct wire_struct *shape, void *out)
{
    if (wire_default_of(shape) != NULL)
        memcpy(out, wire_default_of(shape), shape->size_bytes);
    else
        memset(out, 0, shape->size_bytes);
}

void wire_defaults(const struct wire_message *message, void *out)
{
    wire_struct_defaults(message->shape, out);
}

static bool struct_is_default(const struct wire_struct *shape, const uint8_t *in)
{
    for (uint32_t i = 0; i < shape->field_count; i++)
        if (!wire_field_is_default(wire_struct_field(shape, i), shape, in)) return false;
    if (shape->tags_offset == UINT16_MAX) return true;
    return ((const struct view *)(const void *)(in + shape->tags_offset))->size == 0;
}

/* A struct that may be null: both null, or both there and the one that is there all default. */
static bool pointer_is_default(const struct wire_field *field,
                               const void *slot,
                               const void *standard)
{
    const void *value = *(const void *const *)slot;
    bool null = standard == NULL || *(const void *const *)standard == NULL;
    if (value == NULL || null) return (value == NULL) == null;
    return struct_is_default(wire_field_shape(field), value);
}

static bool array_is_default(const struct wire_array *array, const struct wire_array *standard)
{
    return array->count == (standard != NULL ? standard->count : 0);
}

static bool view_is_default(const struct view *value, const struct view *standard)
{
    return !value->external && view_equal(*value, standard != NULL ? *standard : VIEW_EMPTY);
}

static bool fixed_is_default(uint32_t size, const uint8_t *value, const uint8_t *standard)
{
    uint8_t differs = 0;
    for (uint32_t i = 0; i < size; i++)
        differs |= value[i] ^ (standard != NULL ? standard[i] : 0);
    return differs == 0;
}

bool wire_field_is_default(const struct wire_field *field,
                           const struct wire_struct *shape,
                           const void *in)
{
    const void *slot = (const uint8_t *)in + field->offset;
    const void *standard = wire_default_of(shape) != NULL
                               ? (const uint8_t *)wire_default_of(shape) + field->offset
                               : NULL;

    if (field->flags & WIRE_FIELD_ARRAY) return array_is_default(slot, standard);
    if (field->flags & WIRE_FIELD_POINTER) return pointer_is_default(field, slot, standard);
    switch ((enum wire_type)field->type) {
    case WIRE_STRING:
    case WIRE_BYTES:
    case WIRE_RECORDS: return view_is_default(slot, standard);
    case WIRE_STRUCT: return struct_is_default(wire_field_shape(field), slot);
    default: return fixed_is_default(wire_type_size(field->type), slot, standard);
    }
}

/* The first of the absent fields at `op` that is set, is not tagged and may not be left out. */
static const struct wire_field *unsupported_absent(const struct wire_form *form,
                                                   const struct wire_op *op,
                                                   const void *in)
{
    for (uint32_t i = op->field, end = i + op->count; i < end; i++) {
        const struct wire_field *field = wire_struct_field(wire_form_shape(form), i);
        if (field->flags & WIRE_FIELD_IGNORABLE) continue;
        if (field->tag >= 0 && wire_form_tag(form, (uint32_t)field->tag) != NULL) continue;
        if (!wire_field_is_default(field, wire_form_shape(form), in)) return field;
    }
    return NULL;
}

static const struct wire_field *unsupported_array(const struct wire_op *op,
                                                  const struct wire_array *array)
{
    const uint8_t *item = array->items;
    const struct wire_field *found = NULL;
    for (int32_t n = 0; n < array->count && found == NULL; n++) {
        found = wire_unsupported(wire_op_form(op), item);
        item += op->size;
    }
    return found;
}

/* The same for a field that the version has: a null where it has none, or something inside. */
static const struct wire_field *unsupported_present(const struct wire_form *form,
                                                    const struct wire_op *op,
                                                    const void *in)
{
    const void *slot = (const uint8_t *)in + op->offset;
    bool null = false;
    switch ((enum wire_op_code)op->code) {
    case WIRE_OP_STRING:
    case WIRE_OP_BYTES:
    case WIRE_OP_RECORDS: null = ((const struct view *)slot)->null; break;
    case WIRE_OP_ARRAY_FIXED:
    case WIRE_OP_ARRAY_STRING:
    case WIRE_OP_ARRAY_STRUCT: null = ((const struct wire_array *)slot)->count < 0; break;
    default: break;
    }
    if (null && !(op->flags & WIRE_OP_NULLABLE))
        return wire_struct_field(wire_form_shape(form), op->field);
    if (op->code == WIRE_OP_STRUCT) return wire_unsupported(wire_op_form(op), slot);
    if (op->code == WIRE_OP_ARRAY_STRUCT) return unsupported_array(op, slot);
    if (op->code == WIRE_OP_STRUCT_OR_NULL) {
        const void *value = *(const void *const *)slot;
        return value == NULL ? NULL : wire_unsupported(wire_op_form(op), value);
    }
    return NULL;
}

const struct wire_field *wire_unsupported(const struct wire_form *form, const void *in)
{
    const struct wire_field *found = NULL;
    for (uint32_t i = 0; i < form->op_count && found == NULL; i++) {
        const struct wire_op *op = &wire_form_ops(form)[i];
        found = op->code == WIRE_OP_ABSENT ? unsupported_absent(form, op, in)
                                           : unsupported_present(form, op, in);
    }
    for (uint32_t i = 0; i < form->tagged_count && found == NULL; i++)
        found = unsupported_present(form, &wire_form_tagged(form)[i].op, in);
    return found;
}
