/* protobuf.c - see protobuf.h. */
#include "base/protobuf.h"

static uint64_t fixed(struct reader *in, uint32_t size)
{
    const uint8_t *p = reader_take(in, size);
    uint64_t value = 0;
    for (uint32_t i = 0; p != NULL && i < size; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

static struct view bytes(struct reader *in)
{
    uint64_t size = reader_uvarlong(in);
    if (size > reader_left(in)) {
        reader_fail(in, READER_LENGTH);
        return VIEW_EMPTY;
    }
    return view_of(reader_take(in, (size_t)size), (uint32_t)size);
}

bool protobuf_next(struct reader *in, struct protobuf_field *out)
{
    if (in->fault != READER_OK || reader_left(in) == 0) return false;
    uint32_t tag = reader_uvarint(in);
    *out = (struct protobuf_field){.number = tag >> 3, .form = tag & 7, .bytes = VIEW_EMPTY};
    if (out->number == 0) reader_fail(in, READER_VALUE);
    switch ((enum protobuf_form)out->form) {
    case PROTOBUF_VARINT: out->value = reader_uvarlong(in); break;
    case PROTOBUF_FIXED64: out->value = fixed(in, 8); break;
    case PROTOBUF_BYTES: out->bytes = bytes(in); break;
    case PROTOBUF_FIXED32: out->value = fixed(in, 4); break;
    default: reader_fail(in, READER_VALUE); break;
    }
    return in->fault == READER_OK;
}
