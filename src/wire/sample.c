/* sample.c - the smallest legal instance of a form, as the reference pages show it. */
#include "wire/form.h"

/* base offset 0, length 49, leader epoch 0, magic 2, CRC-32C of the 40 zero bytes that follow. */
static const uint8_t empty_batch[61] = {0,  0, 0, 0, 0, 0, 0,    0,    0,    0,   0,
                                        49, 0, 0, 0, 0, 2, 0x59, 0x5f, 0xb7, 0xdd};

struct view wire_sample_records(void)
{
    return view_of(empty_batch, sizeof(empty_batch));
}

static bool sample_form(const struct wire_form *form, struct arena *arena, uint8_t *out);

static bool sample_array(const struct wire_op *op, struct arena *arena, struct wire_array *array)
{
    size_t size = op->code == WIRE_OP_ARRAY_FIXED ? op->size
                  : op->code == WIRE_OP_ARRAY_STRING
                      ? sizeof(struct view)
                      : wire_form_shape(wire_op_form(op))->size_bytes;
    array->items = arena_get(arena, size);
    if (array->items == NULL) return false;
    array->count = 1;
    return op->code != WIRE_OP_ARRAY_STRUCT || sample_form(wire_op_form(op), arena, array->items);
}

static bool sample_op(const struct wire_op *op, struct arena *arena, uint8_t *out)
{
    void *slot = out + op->offset;
    switch ((enum wire_op_code)op->code) {
    case WIRE_OP_FIXED_RUN:
        for (uint32_t i = 0; i < op->count; i++)
            memset(out + wire_op_fixed(op)[i].offset, 0, wire_type_size(wire_op_fixed(op)[i].type));
        return true;
    case WIRE_OP_STRING:
    case WIRE_OP_BYTES: *(struct view *)slot = VIEW_EMPTY; return true;
    case WIRE_OP_RECORDS: *(struct view *)slot = wire_sample_records(); return true;
    case WIRE_OP_ARRAY_FIXED:
    case WIRE_OP_ARRAY_STRING:
    case WIRE_OP_ARRAY_STRUCT: return sample_array(op, arena, slot);
    case WIRE_OP_STRUCT: return sample_form(wire_op_form(op), arena, slot);
    case WIRE_OP_STRUCT_OR_NULL: {
        void *value = arena_get(arena, wire_form_shape(wire_op_form(op))->size_bytes);
        *(void **)slot = value;
        return value != NULL && sample_form(wire_op_form(op), arena, value);
    }
    case WIRE_OP_TAGS:
    case WIRE_OP_ABSENT: return true;
    }
    return true;
}

static bool sample_form(const struct wire_form *form, struct arena *arena, uint8_t *out)
{
    wire_struct_defaults(wire_form_shape(form), out);
    for (uint32_t i = 0; i < form->op_count; i++)
        if (!sample_op(&wire_form_ops(form)[i], arena, out)) return false;
    return true;
}

bool wire_sample(const struct wire_form *form, struct arena *arena, void *out)
{
    return sample_form(form, arena, out);
}
