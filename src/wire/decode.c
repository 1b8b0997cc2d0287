/* decode.c - read one message: the operations of its form, one after the other.
 *
 * Accepts what Apache Kafka 4.4's generated readers accept: a negative length is null where null
 * may be, a known tag may come anywhere and more than once (the last one counts), its size is not
 * believed, and bytes may be left over. Each such oddity is counted in the reader. Refused as
 * there: more than WIRE_TAGS_MAX tagged fields, more than WIRE_ARRAY_MAX elements, a tag that
 * another version of the message has and this one has not.
 *
 * What keeps a reader safe: read.h's invariant; a count is checked against the smallest size of its
 * elements before anything is reserved; what is reserved is charged to a budget of
 * WIRE_MEMORY_FACTOR times the bytes received. */
#include "base/limits.h"
#include "wire/read.h"

const uint8_t *wire_read_ops(struct wire_decoder *d,
                             const uint8_t *at,
                             const struct wire_form *form,
                             uint8_t *out)
{
    for (const struct wire_op *op = wire_form_ops(form), *end = op + form->op_count; op != end;
         op++) {
        at = wire_read_op(d, at, form, op, out);
        if (UNLIKELY(at == NULL)) return NULL;
    }
    return at;
}

__attribute__((cold, noinline)) const uint8_t *wire_read_fault(struct wire_decoder *d,
                                                               const uint8_t *at,
                                                               enum reader_fault fault)
{
    assert(fault != READER_OK);
    assert(d->in->fault == READER_OK); /* The first one ends the reading. */
    d->in->at = at;
    reader_fail(d->in, fault);
    return NULL;
}

static const uint8_t *read_uvarint(struct wire_decoder *d, const uint8_t *at, uint32_t *value)
{
    if (LIKELY(at < d->end && at[0] < 0x80)) {
        *value = at[0];
        return at + 1;
    }
    struct reader in = {.start = at, .at = at, .end = d->end};
    *value = reader_uvarint(&in);
    d->in->oddities += in.oddities;
    return in.fault == READER_OK ? in.at : wire_read_fault(d, at, in.fault);
}

/* A length or count before its value, -1 for null; `wide`: int32, else int16. */
const uint8_t *wire_read_length(struct wire_decoder *d,
                                const uint8_t *at,
                                const struct wire_op *op,
                                int32_t *length)
{
    const uint8_t *start = at;
    if (op->flags & WIRE_OP_COMPACT) {
        uint32_t n;
        at = read_uvarint(d, at, &n);
        if (at == NULL) return NULL;
        *length = (int32_t)(n - 1);
    } else if (op->code == WIRE_OP_STRING) {
        *length = (int16_t)load_be16(at);
        at += 2;
    } else {
        *length = (int32_t)load_be32(at);
        at += 4;
    }
    if (LIKELY(*length >= 0)) return at;
    if (!(op->flags & WIRE_OP_NULLABLE)) return wire_read_fault(d, start, READER_NULL);
    if (*length < -1) d->in->oddities++;
    *length = -1;
    return at;
}

__attribute__((noinline)) const uint8_t *wire_read_bytes(struct wire_decoder *d,
                                                         const uint8_t *at,
                                                         const struct wire_op *op,
                                                         uint8_t *out)
{
    struct view *slot = (struct view *)(void *)(out + op->offset);
    const uint8_t *start = at;
    int32_t length;
    at = wire_read_length(d, at, op, &length);
    if (at == NULL) return NULL;
    if (length < 0) {
        *slot = VIEW_NULL;
        return wire_read_rest(d, at, op);
    }
    if ((op->code == WIRE_OP_STRING && length > INT16_MAX) ||
        (size_t)length > (size_t)(d->end - at))
        return wire_read_fault(d, start, READER_LENGTH);
    *slot = view_of(at, (uint32_t)length);
    return wire_read_rest(d, at + length, op);
}

const uint8_t *wire_read_bytes_rare(struct wire_decoder *d,
                                    const uint8_t *at,
                                    const struct wire_op *op,
                                    uint8_t *out)
{
    return wire_read_bytes(d, at, op, out);
}

const uint8_t *wire_read_array_fixed(struct wire_decoder *d,
                                     const uint8_t *at,
                                     const struct wire_op *op,
                                     uint8_t *out)
{
    return wire_read_fixed_items(d, at, op, out);
}

const uint8_t *wire_read_array_string(struct wire_decoder *d,
                                      const uint8_t *at,
                                      const struct wire_op *op,
                                      uint8_t *out)
{
    return wire_read_string_items(d, at, op, out);
}

const uint8_t *wire_read_array_struct(struct wire_decoder *d,
                                      const uint8_t *at,
                                      const struct wire_op *op,
                                      uint8_t *out)
{
    const struct wire_code *code = wire_form_code(wire_op_form(op));
    return wire_read_structs(d, at, op, out, code != NULL ? code->read : NULL);
}

const uint8_t *wire_read_struct(struct wire_decoder *d,
                                const uint8_t *at,
                                const struct wire_op *op,
                                uint8_t *out)
{
    at = wire_read_form(d, at, wire_op_form(op), out + op->offset);
    return at != NULL ? wire_read_rest(d, at, op) : NULL;
}

const uint8_t *wire_read_struct_or_null(struct wire_decoder *d,
                                        const uint8_t *at,
                                        const struct wire_op *op,
                                        uint8_t *out)
{
    void **slot = (void **)(void *)(out + op->offset);
    *slot = NULL;
    const uint8_t *start = at;
    int32_t there;
    if (op->flags & WIRE_OP_COMPACT) {
        uint32_t n;
        at = read_uvarint(d, at, &n);
        if (at == NULL) return NULL;
        there = (int32_t)n <= 0 ? -1 : (int32_t)n;
    } else {
        there = (int8_t)*at++;
    }
    if (there != 1 && there != -1) d->in->oddities++;
    if (there < 0) return wire_read_rest(d, at, op);
    void *value = wire_read_reserve(d, start, wire_form_shape(wire_op_form(op))->size_bytes);
    if (value == NULL) return NULL;
    *slot = value;
    at = wire_read_form(d, at, wire_op_form(op), value);
    return at != NULL ? wire_read_rest(d, at, op) : NULL;
}

/* What is known of a tagged section while it is read. */
struct tag_state {
    int64_t last;   /* The tag before. */
    bool unknown;   /* There was an unknown tag. */
    bool sizes_lie; /* A known tag was not as long as its size says. */
};

/* One tagged field. */
static const uint8_t *read_tag(struct wire_decoder *d,
                               const uint8_t *at,
                               const struct wire_form *form,
                               uint8_t *out,
                               struct tag_state *state)
{
    const uint8_t *start = at;
    uint32_t tag, size;
    at = read_uvarint(d, at, &tag);
    if (at != NULL) at = read_uvarint(d, at, &size);
    if (at == NULL) return NULL;
    if ((int64_t)tag <= state->last) d->in->oddities++;
    state->last = tag;

    const struct wire_tagged *known = wire_form_tag(form, tag);
    if (known == NULL) {
        if (wire_form_tag_elsewhere(form, tag)) return wire_read_fault(d, start, READER_TAGS);
        if (size > (size_t)(d->end - at)) return wire_read_fault(d, start, READER_SHORT);
        state->unknown = true;
        return at + size;
    }
    if ((size_t)(d->end - at) < known->size_min) return wire_read_fault(d, at, READER_SHORT);
    const uint8_t *value = at;
    at = wire_read_op(d, at, form, &known->op, out);
    if (at != NULL && (size_t)(at - value) != size) {
        state->sizes_lie = true;
        d->in->oddities++;
    }
    return at;
}

/* The view at `tags` covers all of the section behind the count if it holds an unknown tag, and is
 * empty otherwise: what is known is written from the struct. A section in which the size of a known
 * tag is wrong cannot be cut into its tags again: its unknown ones are dropped. */
__attribute__((noinline)) const uint8_t *wire_read_tags(struct wire_decoder *d,
                                                        const uint8_t *at,
                                                        const struct wire_form *form,
                                                        uint8_t *out)
{
    const uint8_t *start = at;
    uint32_t count;
    at = read_uvarint(d, at, &count);
    if (at == NULL) return NULL;
    if (count > WIRE_TAGS_MAX || count > (size_t)(d->end - at))
        return wire_read_fault(d, start, READER_TAGS);

    struct tag_state state = {.last = -1};
    start = at;
    for (uint32_t i = 0; i < count; i++) {
        at = read_tag(d, at, form, out, &state);
        if (at == NULL) return NULL;
    }
    if (state.unknown && !state.sizes_lie)
        *(struct view *)(void *)(out + wire_form_shape(form)->tags_offset) =
            view_of(start, (uint32_t)(at - start));
    return at;
}

bool wire_decode(struct reader *in, const struct wire_form *form, struct arena *request, void *out)
{
    assert(in->fault == READER_OK);
    struct wire_decoder d = {.end = in->end,
                             .arena = request,
                             .budget_bytes =
                                 reader_left(in) * WIRE_MEMORY_FACTOR + WIRE_MEMORY_FLOOR,
                             .in = in};
    const uint8_t *at = wire_read_form(&d, in->at, form, out);
    if (UNLIKELY(at == NULL)) return false; /* The reader has been told. */
    in->at = at;
    return true;
}
