/* protobuf.h - reading protocol buffers, field by field, without a schema.
 *
 * A message is a row of fields, each with a number and one of four forms; a submessage, a text and
 * packed numbers come as their bytes. What is not known is skipped by not looking at it. Reads go
 * inert at the first fault (reader.h), so one check at the end is enough. No recursion: who wants
 * a submessage reads its bytes. */
#pragma once

#include "base/reader.h"

enum protobuf_form {
    PROTOBUF_VARINT = 0,
    PROTOBUF_FIXED64 = 1,
    PROTOBUF_BYTES = 2,
    PROTOBUF_FIXED32 = 5, /* 3 and 4, groups, are a fault: no schema of today has them. */
};

struct protobuf_field {
    uint32_t number;
    uint8_t form;      /* enum protobuf_form */
    uint64_t value;    /* Of all forms but PROTOBUF_BYTES. */
    struct view bytes; /* Of PROTOBUF_BYTES, in the reader's buffer. */
};

/* The next field; false at the end and at a fault (in->fault). O(1). */
MUST_USE bool protobuf_next(struct reader *in, struct protobuf_field *out);

/* A fixed 64-bit value as the double that it is. */
static inline double protobuf_double(uint64_t value)
{
    double number;
    _Static_assert(sizeof(number) == sizeof(value), "IEEE 754");
    memcpy(&number, &value, sizeof(number));
    return number;
}
