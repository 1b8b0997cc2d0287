/* write.h - measuring and writing one operation of a form: for the loops in encode.c and for the
 * writers that schemac unrolls for the busiest messages. Nobody else includes this.
 *
 * A value is measured first, exactly: size_min of its form plus what each operation takes beyond
 * its own smallest size (`extra`). Then it is written without a bounds check. */
#pragma once

#include "base/bytes.h"
#include "wire/form.h"

struct wire_encoder {
    const uint8_t *start;
    struct wire_gap *gaps;
    uint32_t gap_limit;
    uint32_t gap_count;
};

/* What these take beyond their smallest size; external views are also counted in `x`. */
size_t wire_extra_array_fixed(const struct wire_op *op, const struct wire_array *array);
size_t wire_extra_array_string(const struct wire_op *op,
                               const struct wire_array *array,
                               struct wire_external *x);
size_t wire_extra_array_struct(const struct wire_op *op,
                               const struct wire_array *array,
                               struct wire_external *x);
size_t wire_extra_struct_or_null(const struct wire_op *op,
                                 const void *slot,
                                 struct wire_external *x);
size_t wire_extra_ops(const struct wire_form *form, const uint8_t *in, struct wire_external *x);
size_t wire_extra_tags(const struct wire_form *form, const uint8_t *in, struct wire_external *x);

/* Write at `at`; each returns the place behind. */
uint8_t *wire_write_length(uint8_t *at, const struct wire_op *op, int32_t length);
uint8_t *wire_write_bytes(struct wire_encoder *e,
                          uint8_t *at,
                          const struct wire_op *op,
                          const struct view *v);
uint8_t *wire_write_array(struct wire_encoder *e,
                          uint8_t *at,
                          const struct wire_op *op,
                          const void *slot);
uint8_t *wire_write_struct_or_null(struct wire_encoder *e,
                                   uint8_t *at,
                                   const struct wire_op *op,
                                   const void *slot);
uint8_t *wire_write_ops(struct wire_encoder *e,
                        uint8_t *at,
                        const struct wire_form *form,
                        const uint8_t *in);
uint8_t *wire_write_tags(struct wire_encoder *e,
                         uint8_t *at,
                         const struct wire_form *form,
                         const uint8_t *in);

/* Are the bytes of all absent and tagged fields those of their defaults? Then no tag is set. A no
 * means nothing: pads and pointers differ without meaning. */
bool wire_tags_untouched(const struct wire_form *form, const uint8_t *in);

/* Bytes of a varint beyond its first. */
static inline uint32_t wire_extra_uvarint(uint32_t v)
{
    if (LIKELY(v < 0x80)) return 0;
    return (uint32_t)(31 - __builtin_clz(v)) / 7;
}

static inline size_t wire_extra_view(const struct wire_op *op,
                                     const struct view *v,
                                     struct wire_external *x)
{
    if (v->null) return 0;
    if (UNLIKELY(v->external)) {
        x->bytes += v->size;
        x->count++;
    }
    if (!(op->flags & WIRE_OP_COMPACT)) return v->size;
    return v->size + wire_extra_uvarint(v->size + 1);
}

static inline bool wire_has_tags(const struct wire_form *form, const uint8_t *in)
{
    const struct view *unknown =
        (const struct view *)(const void *)(in + wire_form_shape(form)->tags_offset);
    if (UNLIKELY(unknown->size > 0)) return true;
    return form->tagged_count > 0 && !wire_tags_untouched(form, in);
}

static inline size_t wire_extra_form(const struct wire_form *form,
                                     const uint8_t *in,
                                     struct wire_external *x)
{
    const struct wire_code *code = wire_form_code(form);
    return code != NULL ? code->extra(in, x) : wire_extra_ops(form, in, x);
}

/* The structs of an array; `extra` measures one. */
static inline __attribute__((always_inline)) size_t wire_extra_structs(
    const struct wire_op *op,
    const void *slot,
    struct wire_external *x,
    size_t (*extra)(const uint8_t *, struct wire_external *))
{
    const struct wire_array *array = slot;
    if (array->count <= 0) return 0;
    size_t sum = (size_t)array->count * op->count, size = op->size;
    if (op->flags & WIRE_OP_COMPACT) sum += wire_extra_uvarint((uint32_t)array->count + 1);
    const uint8_t *item = array->items, *end = item + (size_t)array->count * size;
    for (; item != end; item += size)
        sum += extra != NULL ? extra(item, x) : wire_extra_ops(wire_op_form(op), item, x);
    return sum;
}

static inline __attribute__((always_inline)) size_t wire_extra_op(const struct wire_form *form,
                                                                  const struct wire_op *op,
                                                                  const uint8_t *in,
                                                                  struct wire_external *x)
{
    const void *slot = in + op->offset;
    switch ((enum wire_op_code)op->code) {
    case WIRE_OP_FIXED_RUN: return 0;
    case WIRE_OP_STRING:
    case WIRE_OP_BYTES:
    case WIRE_OP_RECORDS: return wire_extra_view(op, slot, x);
    case WIRE_OP_ARRAY_FIXED: return wire_extra_array_fixed(op, slot);
    case WIRE_OP_ARRAY_STRING: return wire_extra_array_string(op, slot, x);
    case WIRE_OP_ARRAY_STRUCT: return wire_extra_array_struct(op, slot, x);
    case WIRE_OP_STRUCT: return wire_extra_form(wire_op_form(op), slot, x);
    case WIRE_OP_STRUCT_OR_NULL: return wire_extra_struct_or_null(op, slot, x);
    case WIRE_OP_TAGS: return wire_has_tags(form, in) ? wire_extra_tags(form, in, x) : 0;
    case WIRE_OP_ABSENT: return 0;
    }
    __builtin_unreachable();
}

static inline __attribute__((always_inline)) void wire_write_fixed(uint8_t *at,
                                                                   uint8_t type,
                                                                   const uint8_t *in)
{
    switch ((enum wire_type)type) {
    case WIRE_BOOL: *at = *in != 0; break;
    case WIRE_INT8: *at = *in; break;
    case WIRE_INT16:
    case WIRE_UINT16: {
        uint16_t v;
        memcpy(&v, in, sizeof(v));
        store_be16(at, v);
        break;
    }
    case WIRE_INT32:
    case WIRE_UINT32: {
        uint32_t v;
        memcpy(&v, in, sizeof(v));
        store_be32(at, v);
        break;
    }
    case WIRE_INT64:
    case WIRE_FLOAT64: {
        uint64_t v;
        memcpy(&v, in, sizeof(v));
        store_be64(at, v);
        break;
    }
    case WIRE_UUID: memcpy(at, in, sizeof(struct uuid)); break;
    default: assert(false);
    }
}

/* At most 126 bytes: mostly a few, for which a call costs more than the copying. */
static inline void wire_copy_short(uint8_t *to, const uint8_t *from, uint32_t size)
{
    if (size >= 16) {
        for (uint32_t i = 0; i + 16 < size; i += 16)
            memcpy(to + i, from + i, 16);
        memcpy(to + size - 16, from + size - 16, 16);
    } else if (size >= 8) {
        memcpy(to, from, 8);
        memcpy(to + size - 8, from + size - 8, 8);
    } else {
        for (uint32_t i = 0; i < size; i++)
            to[i] = from[i];
    }
}

/* A string, bytes or records; the usual short compact ones without a call. */
static inline uint8_t *wire_write_short(struct wire_encoder *e,
                                        uint8_t *at,
                                        const struct wire_op *op,
                                        const struct view *v)
{
    if (UNLIKELY(v->size >= 0x7f || v->external || !(op->flags & WIRE_OP_COMPACT)))
        return wire_write_bytes(e, at, op, v);
    if (v->null || v->size == 0) {
        *at = !v->null;
        return at + 1;
    }
    *at = (uint8_t)(v->size + 1);
    wire_copy_short(at + 1, v->data, v->size);
    return at + 1 + v->size;
}

static inline uint8_t *wire_write_form(struct wire_encoder *e,
                                       uint8_t *at,
                                       const struct wire_form *form,
                                       const uint8_t *in)
{
    const struct wire_code *code = wire_form_code(form);
    return code != NULL ? code->write(e, at, in) : wire_write_ops(e, at, form, in);
}

static inline __attribute__((always_inline)) uint8_t *wire_write_count(uint8_t *at,
                                                                       const struct wire_op *op,
                                                                       int32_t count)
{
    if (LIKELY((op->flags & WIRE_OP_COMPACT) && count < 0x7f)) {
        *at = (uint8_t)(count + 1);
        return at + 1;
    }
    return wire_write_length(at, op, count);
}

static inline __attribute__((always_inline)) uint8_t *wire_write_fixed_items(
    struct wire_encoder *e,
    uint8_t *at,
    const struct wire_op *op,
    const void *slot)
{
    const struct wire_array *array = slot;
    size_t width = op->size;
    at = wire_write_count(at, op, array->count);
    if (array->count <= 0) return at;
    const uint8_t *item = array->items, *end = item + (size_t)array->count * width;
    if (op->type == WIRE_INT32) { /* Broker ids, partitions: nearly all of them. */
        for (; item != end; item += 4, at += 4)
            wire_write_fixed(at, WIRE_INT32, item);
        return at;
    }
    for (; item != end; item += width, at += width)
        wire_write_fixed(at, op->type, item);
    return at;
}

static inline __attribute__((always_inline)) uint8_t *wire_write_string_items(
    struct wire_encoder *e,
    uint8_t *at,
    const struct wire_op *op,
    const void *slot)
{
    const struct wire_array *array = slot;
    struct wire_op element = {.code = op->type == WIRE_STRING ? WIRE_OP_STRING : WIRE_OP_BYTES,
                              .flags = op->flags & WIRE_OP_COMPACT};
    at = wire_write_count(at, op, array->count);
    const struct view *item = array->items;
    for (int32_t i = 0; i < array->count; i++)
        at = wire_write_short(e, at, &element, &item[i]);
    return at;
}

/* The structs of an array; `write` is NULL or the unrolled writer of one. */
static inline __attribute__((always_inline)) uint8_t *wire_write_structs(
    struct wire_encoder *e,
    uint8_t *at,
    const struct wire_op *op,
    const void *slot,
    uint8_t *(*write)(struct wire_encoder *, uint8_t *, const uint8_t *))
{
    const struct wire_array *array = slot;
    size_t size = op->size;
    at = wire_write_count(at, op, array->count);
    if (array->count <= 0) return at;
    const uint8_t *item = array->items, *end = item + (size_t)array->count * size;
    for (; item != end; item += size)
        at = write != NULL ? write(e, at, item) : wire_write_ops(e, at, wire_op_form(op), item);
    return at;
}

static inline __attribute__((always_inline)) uint8_t *wire_write_op(struct wire_encoder *e,
                                                                    uint8_t *at,
                                                                    const struct wire_form *form,
                                                                    const struct wire_op *op,
                                                                    const uint8_t *in)
{
    const void *slot = in + op->offset;
    switch ((enum wire_op_code)op->code) {
    case WIRE_OP_FIXED_RUN: wire_runs[op->run].write(at, slot); return at + op->size;
    case WIRE_OP_STRING:
    case WIRE_OP_BYTES:
    case WIRE_OP_RECORDS: return wire_write_short(e, at, op, slot);
    case WIRE_OP_ARRAY_FIXED:
    case WIRE_OP_ARRAY_STRING:
    case WIRE_OP_ARRAY_STRUCT: return wire_write_array(e, at, op, slot);
    case WIRE_OP_STRUCT: return wire_write_form(e, at, wire_op_form(op), slot);
    case WIRE_OP_STRUCT_OR_NULL: return wire_write_struct_or_null(e, at, op, slot);
    case WIRE_OP_TAGS:
        if (wire_has_tags(form, in)) return wire_write_tags(e, at, form, in);
        *at = 0;
        return at + 1;
    case WIRE_OP_ABSENT: return at;
    }
    __builtin_unreachable();
}
