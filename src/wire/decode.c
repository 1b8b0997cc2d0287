/* decode.c - read one message: one loop over the operations of its form.
 *
 * Accepts what Apache Kafka 4.4's generated readers accept: any negative length is null where null
 * may be, a known tag may come anywhere and more than once (the last one counts), its size is not
 * believed, and bytes may be left over. Each such oddity is counted in the reader. Two rules keep a
 * reader safe: a count is checked against the smallest size of its elements before anything is
 * reserved, and what is reserved is charged to a budget of WIRE_MEMORY_FACTOR times the bytes
 * received. */
#include "base/limits.h"
#include "wire/form.h"

struct decoder {
    struct reader in;
    struct arena *arena;
    size_t budget_bytes;
};

static void decode_form(struct decoder *d, const struct wire_form *form, uint8_t *out);

/* Memory for array elements or a nullable struct, or NULL and a fault. */
static void *decode_reserve(struct decoder *d, size_t size)
{
    if (size > d->budget_bytes) {
        reader_fail(&d->in, READER_MEMORY);
        return NULL;
    }
    d->budget_bytes -= size;
    void *block = arena_get(d->arena, size);
    if (block == NULL) reader_fail(&d->in, READER_MEMORY);
    return block;
}

/* A length before its bytes: -1 for null, or a fault. `wide`: int32, else int16. */
static int64_t decode_length(struct decoder *d, const struct wire_op *op, bool wide)
{
    int64_t length;
    if (op->flags & WIRE_OP_COMPACT)
        length = (int64_t)reader_uvarint(&d->in) - 1;
    else if (wide)
        length = (int32_t)reader_be32(&d->in);
    else
        length = (int16_t)reader_be16(&d->in);
    if (d->in.fault != READER_OK) return -1;
    if (length < 0) {
        if (!(op->flags & WIRE_OP_NULLABLE)) reader_fail(&d->in, READER_NULL);
        if (length < -1) d->in.oddities++;
        return -1;
    }
    return length;
}

static struct view decode_bytes(struct decoder *d, const struct wire_op *op, bool is_string)
{
    int64_t length = decode_length(d, op, !is_string);
    if (length < 0) return VIEW_NULL;
    if (is_string && length > INT16_MAX) {
        reader_fail(&d->in, READER_LENGTH);
        return VIEW_NULL;
    }
    if ((uint64_t)length > reader_left(&d->in)) {
        reader_fail(&d->in, READER_LENGTH);
        return VIEW_NULL;
    }
    return view_of(reader_take(&d->in, (size_t)length), (uint32_t)length);
}

static inline void decode_fixed(const uint8_t *p, uint8_t type, uint8_t *out)
{
    switch ((enum wire_type)type) {
    case WIRE_BOOL: *(bool *)out = p[0] != 0; break;
    case WIRE_INT8: *out = p[0]; break;
    case WIRE_INT16:
    case WIRE_UINT16: {
        uint16_t v = load_be16(p);
        memcpy(out, &v, sizeof(v));
        break;
    }
    case WIRE_INT32:
    case WIRE_UINT32: {
        uint32_t v = load_be32(p);
        memcpy(out, &v, sizeof(v));
        break;
    }
    case WIRE_INT64:
    case WIRE_FLOAT64: {
        uint64_t v = load_be64(p);
        memcpy(out, &v, sizeof(v));
        break;
    }
    case WIRE_UUID: memcpy(out, p, sizeof(struct uuid)); break;
    default: assert(false);
    }
}

static inline void decode_run(struct decoder *d, const struct wire_op *op, uint8_t *out)
{
    const uint8_t *p = reader_take(&d->in, op->size);
    if (p == NULL) return;
    for (const struct wire_fixed *f = op->more.fixed, *end = f + op->count; f != end; f++) {
        decode_fixed(p, f->type, out + f->offset);
        p += wire_type_size(f->type);
    }
}

/* The count of an array that is there, with memory for it; false: null, or a fault. */
static bool decode_array(struct decoder *d,
                         const struct wire_op *op,
                         uint8_t *out,
                         size_t wire_size_min,
                         size_t size)
{
    struct wire_array *array = (struct wire_array *)(void *)(out + op->offset);
    array->items = NULL;
    int64_t count = decode_length(d, op, true);
    array->count = (int32_t)(count < 0 ? -1 : 0);
    if (count <= 0) return false;
    if ((uint64_t)count > reader_left(&d->in) / wire_size_min) {
        reader_fail(&d->in, READER_COUNT);
        return false;
    }
    array->items = decode_reserve(d, (size_t)count * size);
    if (array->items == NULL) return false;
    array->count = (int32_t)count;
    return true;
}

static void decode_array_fixed(struct decoder *d, const struct wire_op *op, uint8_t *out)
{
    if (!decode_array(d, op, out, op->size, op->size)) return;
    struct wire_array *array = (struct wire_array *)(void *)(out + op->offset);
    size_t width = op->size;
    const uint8_t *p = reader_take(&d->in, (size_t)array->count * width);
    assert(p != NULL); /* decode_array has looked. */
    for (uint8_t *item = array->items, *end = item + (size_t)array->count * width; item != end;
         item += width, p += width)
        decode_fixed(p, op->type, item);
}

static void decode_array_string(struct decoder *d, const struct wire_op *op, uint8_t *out)
{
    bool is_string = op->type == WIRE_STRING;
    size_t smallest = op->flags & WIRE_OP_COMPACT ? 1 : is_string ? 2 : 4;
    if (!decode_array(d, op, out, smallest, sizeof(struct view))) return;
    struct wire_array *array = (struct wire_array *)(void *)(out + op->offset);
    struct wire_op element = *op;
    element.flags &= (uint8_t)~WIRE_OP_NULLABLE; /* The array may be null, its elements not. */
    struct view *items = array->items;
    for (int32_t i = 0; i < array->count && d->in.fault == READER_OK; i++)
        items[i] = decode_bytes(d, &element, is_string);
}

static void decode_array_struct(struct decoder *d, const struct wire_op *op, uint8_t *out)
{
    const struct wire_form *form = op->more.form;
    size_t smallest = form->size_min > 0 ? form->size_min : 1;
    size_t size = form->shape->size_bytes;
    if (!decode_array(d, op, out, smallest, size)) return;
    struct wire_array *array = (struct wire_array *)(void *)(out + op->offset);
    uint8_t *item = array->items;
    for (int32_t i = 0; i < array->count && d->in.fault == READER_OK; i++, item += size)
        decode_form(d, form, item);
}

static void decode_struct_or_null(struct decoder *d, const struct wire_op *op, uint8_t *out)
{
    void **slot = (void **)(void *)(out + op->offset);
    *slot = NULL;
    if ((int8_t)reader_u8(&d->in) < 0 || d->in.fault != READER_OK) return;
    void *value = decode_reserve(d, op->more.form->shape->size_bytes);
    if (value == NULL) return;
    decode_form(d, op->more.form, value);
    *slot = value;
}

static void decode_op(struct decoder *d,
                      const struct wire_form *form,
                      const struct wire_op *op,
                      uint8_t *out);

static const struct wire_tagged *decode_known_tag(const struct wire_form *form, uint32_t tag)
{
    for (uint32_t i = 0; i < form->tagged_count; i++)
        if (form->tagged[i].tag == tag) return &form->tagged[i];
    return NULL;
}

/* The tagged section. The view at `tags` covers all of it behind the count if it holds an unknown
 * tag, and is empty otherwise: what is known is written from the struct. */
static void decode_tags(struct decoder *d,
                        const struct wire_form *form,
                        const struct wire_op *op,
                        uint8_t *out)
{
    struct view *tags = (struct view *)(void *)(out + op->offset);
    *tags = VIEW_EMPTY;
    uint32_t count = reader_uvarint(&d->in);
    if (LIKELY(count == 0)) return;

    const uint8_t *start = d->in.at;
    int64_t last = -1;
    bool unknown = false;
    for (uint32_t i = 0; i < count && d->in.fault == READER_OK; i++) {
        uint32_t tag = reader_uvarint(&d->in);
        uint32_t size = reader_uvarint(&d->in);
        if ((int64_t)tag <= last) d->in.oddities++;
        last = tag;
        const struct wire_tagged *known = decode_known_tag(form, tag);
        if (known == NULL) {
            unknown = true;
            (void)reader_take(&d->in, size);
            continue;
        }
        const uint8_t *value = d->in.at;
        decode_op(d, form, &known->op, out);
        if ((size_t)(d->in.at - value) != size) d->in.oddities++;
    }
    if (unknown && d->in.fault == READER_OK) *tags = view_of(start, (uint32_t)(d->in.at - start));
}

static void decode_absent(const struct wire_form *form, const struct wire_op *op, uint8_t *out)
{
    const uint8_t *defaults = form->shape->defaults;
    if (defaults != NULL)
        memcpy(out + op->offset, defaults + op->offset, op->size);
    else
        memset(out + op->offset, 0, op->size);
}

static void decode_op(struct decoder *d,
                      const struct wire_form *form,
                      const struct wire_op *op,
                      uint8_t *out)
{
    switch ((enum wire_code)op->code) {
    case WIRE_OP_FIXED_RUN: decode_run(d, op, out); break;
    case WIRE_OP_STRING:
        *(struct view *)(void *)(out + op->offset) = decode_bytes(d, op, true);
        break;
    case WIRE_OP_BYTES:
    case WIRE_OP_RECORDS:
        *(struct view *)(void *)(out + op->offset) = decode_bytes(d, op, false);
        break;
    case WIRE_OP_ARRAY_FIXED: decode_array_fixed(d, op, out); break;
    case WIRE_OP_ARRAY_STRING: decode_array_string(d, op, out); break;
    case WIRE_OP_ARRAY_STRUCT: decode_array_struct(d, op, out); break;
    case WIRE_OP_STRUCT: decode_form(d, op->more.form, out + op->offset); break;
    case WIRE_OP_STRUCT_OR_NULL: decode_struct_or_null(d, op, out); break;
    case WIRE_OP_TAGS: decode_tags(d, form, op, out); break;
    case WIRE_OP_ABSENT: decode_absent(form, op, out); break;
    }
}

static void decode_form(struct decoder *d, const struct wire_form *form, uint8_t *out)
{
    for (const struct wire_op *op = form->ops, *end = op + form->op_count; op != end; op++)
        decode_op(d, form, op, out);
}

bool wire_decode(struct reader *in, const struct wire_form *form, struct arena *request, void *out)
{
    assert(in->fault == READER_OK);
    size_t left = reader_left(in);
    size_t budget = left * WIRE_MEMORY_FACTOR;
    struct decoder d = {
        .in = *in, .arena = request, .budget_bytes = MAX(budget, WIRE_MEMORY_FLOOR)};
    decode_form(&d, form, out);
    *in = d.in;
    return in->fault ==
           READER_OK; /* Readers go inert at the first fault, so one check is enough. */
}
