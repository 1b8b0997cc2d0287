/* read.h - reading one operation of a form: for the loop in decode.c and for the readers that
 * schemac unrolls for the busiest messages. Nobody else includes this.
 *
 * Invariant that saves most bounds checks: before an operation is read, the bytes left hold its own
 * smallest size and that of all operations behind it in its form (`rest`). It is established once
 * per struct from size_min, and again by each operation of variable length. So a run of fixed-width
 * fields and the first byte of a length need no check of their own.
 *
 * Every reader returns the place behind what it read, or NULL after wire_read_fault. */
#pragma once

#include "base/bytes.h"
#include "base/limits.h"
#include "wire/form.h"

struct wire_decoder {
    const uint8_t *end;
    struct arena *arena;
    size_t budget_bytes; /* What may still be reserved. */
    struct reader *in;   /* Told of faults and oddities. */
};

/* Tell the reader of the fault and its place. Returns NULL. */
const uint8_t *wire_read_fault(struct wire_decoder *d, const uint8_t *at, enum reader_fault fault);

/* A length or count of any size before its value, -1 for null. */
const uint8_t *wire_read_length(struct wire_decoder *d,
                                const uint8_t *at,
                                const struct wire_op *op,
                                int32_t *length);

/* A struct whose smallest size is there, by its list of operations. */
const uint8_t *wire_read_ops(struct wire_decoder *d,
                             const uint8_t *at,
                             const struct wire_form *form,
                             uint8_t *out);

/* A string, bytes or records of any length, or null. */
const uint8_t *wire_read_bytes(struct wire_decoder *d,
                               const uint8_t *at,
                               const struct wire_op *op,
                               uint8_t *out);

/* The same, for where that is rare: the compiler keeps the call out of the straight way. */
const uint8_t *wire_read_bytes_rare(struct wire_decoder *d,
                                    const uint8_t *at,
                                    const struct wire_op *op,
                                    uint8_t *out) __attribute__((cold));

/* An array, by the kind of its elements. */
const uint8_t *wire_read_array_fixed(struct wire_decoder *d,
                                     const uint8_t *at,
                                     const struct wire_op *op,
                                     uint8_t *out);
const uint8_t *wire_read_array_string(struct wire_decoder *d,
                                      const uint8_t *at,
                                      const struct wire_op *op,
                                      uint8_t *out);
const uint8_t *wire_read_array_struct(struct wire_decoder *d,
                                      const uint8_t *at,
                                      const struct wire_op *op,
                                      uint8_t *out);

const uint8_t *wire_read_struct(struct wire_decoder *d,
                                const uint8_t *at,
                                const struct wire_op *op,
                                uint8_t *out);

const uint8_t *wire_read_struct_or_null(struct wire_decoder *d,
                                        const uint8_t *at,
                                        const struct wire_op *op,
                                        uint8_t *out);

/* A tagged section that is not empty. */
const uint8_t *wire_read_tags(struct wire_decoder *d,
                              const uint8_t *at,
                              const struct wire_form *form,
                              uint8_t *out);

static inline __attribute__((always_inline)) void wire_read_fixed(const uint8_t *at,
                                                                  uint8_t type,
                                                                  uint8_t *out)
{
    switch ((enum wire_type)type) {
    case WIRE_BOOL: *out = at[0] != 0; break;
    case WIRE_INT8: *out = at[0]; break;
    case WIRE_INT16:
    case WIRE_UINT16: {
        uint16_t v = load_be16(at);
        memcpy(out, &v, sizeof(v));
        break;
    }
    case WIRE_INT32:
    case WIRE_UINT32: {
        uint32_t v = load_be32(at);
        memcpy(out, &v, sizeof(v));
        break;
    }
    case WIRE_INT64:
    case WIRE_FLOAT64: {
        uint64_t v = load_be64(at);
        memcpy(out, &v, sizeof(v));
        break;
    }
    case WIRE_UUID: memcpy(out, at, sizeof(struct uuid)); break;
    default: assert(false);
    }
}

/* Set a view; size and marks in one store. */
static inline void wire_set_view(struct view *slot, const uint8_t *data, uint32_t size, bool null)
{
    _Static_assert(offsetof(struct view, null) == offsetof(struct view, size) + 4, "one word");
    _Static_assert(sizeof(struct view) == offsetof(struct view, size) + 8, "one word");
    uint64_t word = size | (uint64_t)null << 32;
    slot->data = data;
    memcpy((uint8_t *)slot + offsetof(struct view, size), &word, sizeof(word));
}

/* A string, bytes or records; those shorter than 127 bytes without a call. */
static inline const uint8_t *wire_read_short(struct wire_decoder *d,
                                             const uint8_t *at,
                                             const struct wire_op *op,
                                             uint8_t *out)
{
    struct view *slot = (struct view *)(void *)(out + op->offset);
    if (!(op->flags & WIRE_OP_COMPACT)) return wire_read_bytes(d, at, op, out);
    uint32_t n = at[0]; /* Length plus one: what prefix and bytes take together; 0 for null. */
    bool null = false;
    if (op->flags & WIRE_OP_NULLABLE) {
        null = n == 0;
        n += null;
    }
    if (UNLIKELY(n - 1 >= 0x7f || n + op->rest > (size_t)(d->end - at)))
        return wire_read_bytes_rare(d, at, op, out);
    wire_set_view(slot, at + 1, n - 1, null);
    return at + n;
}

/* A struct: its unrolled reader, or its list. */
static inline const uint8_t *wire_read_form(struct wire_decoder *d,
                                            const uint8_t *at,
                                            const struct wire_form *form,
                                            uint8_t *out)
{
    if (UNLIKELY((size_t)(d->end - at) < form->size_min))
        return wire_read_fault(d, at, READER_SHORT);
    const struct wire_code *code = wire_form_code(form);
    return code != NULL ? code->read(d, at, out) : wire_read_ops(d, at, form, out);
}

/* Is there still room for the operations behind this one? */
static inline const uint8_t *wire_read_rest(struct wire_decoder *d,
                                            const uint8_t *at,
                                            const struct wire_op *op)
{
    if (LIKELY((size_t)(d->end - at) >= op->rest)) return at;
    return wire_read_fault(d, at, READER_SHORT);
}

/* Memory for array elements or a nullable struct, not zeroed; or NULL and a fault at `at`. */
static inline void *wire_read_reserve(struct wire_decoder *d, const uint8_t *at, size_t size)
{
    size_t whole = (size + 7) & ~(size_t)7;
    void *block = whole <= d->budget_bytes ? arena_take(d->arena, whole) : NULL;
    if (block == NULL) {
        (void)wire_read_fault(d, at, READER_MEMORY);
        return NULL;
    }
    d->budget_bytes -= whole;
    return block;
}

/* An element of an array: its fewest bytes on the wire, and its size in memory. */
struct wire_element {
    size_t smallest;
    size_t size;
};

/* The count of an array, and memory for its elements: `array->items` is NULL if there are none. */
static inline __attribute__((always_inline)) const uint8_t *wire_read_array_open(
    struct wire_decoder *d,
    const uint8_t *at,
    const struct wire_op *op,
    struct wire_element element,
    struct wire_array *array)
{
    const uint8_t *start = at;
    bool compact = (op->flags & WIRE_OP_COMPACT) != 0, nullable = op->flags & WIRE_OP_NULLABLE;
    int32_t count = at[0] - 1;
    if (LIKELY(compact && (count > 0 || (count == 0 || nullable)) && count < 0x7f)) {
        at++;
        *array = (struct wire_array){NULL, count};
        if (count <= 0) return at; /* It took its smallest size: there is room for the rest. */
    } else {
        at = wire_read_length(d, at, op, &count);
        if (at == NULL) return NULL;
        *array = (struct wire_array){NULL, count};
        if (count <= 0) return wire_read_rest(d, at, op);
        if (count > WIRE_ARRAY_MAX) return wire_read_fault(d, start, READER_COUNT);
    }
    if (UNLIKELY((size_t)count * element.smallest + op->rest > (size_t)(d->end - at)))
        return wire_read_fault(d, start, READER_COUNT);
    array->items = wire_read_reserve(d, start, (size_t)count * element.size);
    return array->items != NULL ? at : NULL;
}

static inline __attribute__((always_inline)) const uint8_t *wire_read_fixed_items(
    struct wire_decoder *d,
    const uint8_t *at,
    const struct wire_op *op,
    uint8_t *out)
{
    struct wire_array *array = (struct wire_array *)(void *)(out + op->offset);
    size_t width = op->size;
    at = wire_read_array_open(d, at, op, (struct wire_element){width, width}, array);
    if (at == NULL || array->items == NULL) return at;
    uint8_t *item = array->items, *end = item + (size_t)array->count * width;
    if (op->type == WIRE_INT32) { /* Broker ids, partitions: nearly all of them. */
        for (; item != end; item += 4, at += 4)
            wire_read_fixed(at, WIRE_INT32, item);
        return at;
    }
    for (; item != end; item += width, at += width)
        wire_read_fixed(at, op->type, item);
    return at;
}

static inline __attribute__((always_inline)) const uint8_t *wire_read_string_items(
    struct wire_decoder *d,
    const uint8_t *at,
    const struct wire_op *op,
    uint8_t *out)
{
    struct wire_array *array = (struct wire_array *)(void *)(out + op->offset);
    at = wire_read_array_open(d, at, op, (struct wire_element){op->size, sizeof(struct view)},
                              array);
    if (at == NULL || array->items == NULL) return at;
    /* An element: the array may be null, its elements not. */
    struct wire_op element = {.code = op->type == WIRE_STRING ? WIRE_OP_STRING : WIRE_OP_BYTES,
                              .flags = op->flags & WIRE_OP_COMPACT};
    struct view *item = array->items;
    for (int32_t i = 0; i < array->count; i++, item++) {
        if (UNLIKELY((size_t)(d->end - at) < op->size)) return wire_read_fault(d, at, READER_SHORT);
        at = wire_read_short(d, at, &element, (uint8_t *)item);
        if (at == NULL) return NULL;
    }
    return wire_read_rest(d, at, op);
}

/* The structs of an array; `read` is NULL or the unrolled reader of one. */
static inline __attribute__((always_inline)) const uint8_t *wire_read_structs(
    struct wire_decoder *d,
    const uint8_t *at,
    const struct wire_op *op,
    uint8_t *out,
    const uint8_t *(*read)(struct wire_decoder *, const uint8_t *, uint8_t *))
{
    struct wire_array *array = (struct wire_array *)(void *)(out + op->offset);
    size_t size = op->size, size_min = op->count;
    at = wire_read_array_open(d, at, op, (struct wire_element){size_min, size}, array);
    if (at == NULL || array->items == NULL) return at;
    uint8_t *item = array->items;
    for (uint8_t *end = item + (size_t)array->count * size; item != end; item += size) {
        if (UNLIKELY((size_t)(d->end - at) < size_min)) return wire_read_fault(d, at, READER_SHORT);
        at = read != NULL ? read(d, at, item) : wire_read_ops(d, at, wire_op_form(op), item);
        if (UNLIKELY(at == NULL)) return NULL;
    }
    return wire_read_rest(d, at, op);
}

/* Fields that this version does not have, and tagged ones before their section is read. */
static inline void wire_read_absent(const void *defaults, const struct wire_op *op, uint8_t *out)
{
    if (defaults != NULL)
        memcpy(out + op->offset, (const uint8_t *)defaults + op->offset, op->size);
    else
        memset(out + op->offset, 0, op->size);
}

static inline __attribute__((always_inline)) const uint8_t *wire_read_op(
    struct wire_decoder *d,
    const uint8_t *at,
    const struct wire_form *form,
    const struct wire_op *op,
    uint8_t *out)
{
    switch ((enum wire_op_code)op->code) {
    case WIRE_OP_FIXED_RUN: wire_runs[op->run].read(at, out + op->offset); return at + op->size;
    case WIRE_OP_STRING:
    case WIRE_OP_BYTES:
    case WIRE_OP_RECORDS: return wire_read_short(d, at, op, out);
    case WIRE_OP_ARRAY_FIXED: return wire_read_array_fixed(d, at, op, out);
    case WIRE_OP_ARRAY_STRING: return wire_read_array_string(d, at, op, out);
    case WIRE_OP_ARRAY_STRUCT: return wire_read_array_struct(d, at, op, out);
    case WIRE_OP_STRUCT: return wire_read_struct(d, at, op, out);
    case WIRE_OP_STRUCT_OR_NULL: return wire_read_struct_or_null(d, at, op, out);
    case WIRE_OP_TAGS:
        *(struct view *)(void *)(out + op->offset) = VIEW_EMPTY;
        return LIKELY(at[0] == 0) ? at + 1 : wire_read_tags(d, at, form, out);
    case WIRE_OP_ABSENT:
        wire_read_absent(wire_default_of(wire_form_shape(form)), op, out);
        return at;
    }
    __builtin_unreachable();
}
