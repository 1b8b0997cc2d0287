/* reader.h - reading bytes with one check at the end: a reader goes inert at its first fault.
 *
 * After a fault every read returns zero or the empty view and moves nothing; `fault` and `at` tell
 * what was wrong and where. Cost: one bounds check per read. */
#pragma once

#include "base/bytes.h"
#include "base/view.h"

enum reader_fault {
    READER_OK = 0,
    READER_SHORT,  /* The value ends behind the buffer. */
    READER_VARINT, /* More than 5 (10) bytes, or bits beyond the width. */
    READER_LENGTH, /* A negative length that does not mean null, or one beyond the buffer. */
    READER_NULL,   /* Null where the schema has none. */
    READER_COUNT,  /* An array's count that the bytes left cannot hold. */
    READER_MEMORY, /* The arena is exhausted: the request costs more than it may. */
    READER_TAGS,   /* Tagged fields out of order, twice, or a size that does not fit its field. */
    READER_VALUE,  /* A value that the field cannot have. */
};

struct reader {
    const uint8_t *start;
    const uint8_t *at;
    const uint8_t *end;
    enum reader_fault fault;
    uint32_t
        oddities; /* What a serving reader takes and counts: overlong varints, tag order, ... */
};

static inline struct reader reader_of(struct view bytes)
{
    /* Of nothing the view may have no address, to which nothing may be added. */
    const uint8_t *end = bytes.size == 0 ? bytes.data : bytes.data + bytes.size;
    return (struct reader){.start = bytes.data, .at = bytes.data, .end = end};
}

static inline size_t reader_left(const struct reader *in)
{
    return (size_t)(in->end - in->at);
}

static inline void reader_fail(struct reader *in, enum reader_fault fault)
{
    if (in->fault == READER_OK) in->fault = fault;
    in->end = in->at; /* Inert: nothing is left. */
}

/* `size` bytes, or NULL and a fault. */
static inline const uint8_t *reader_take(struct reader *in, size_t size)
{
    if (UNLIKELY(size > reader_left(in))) {
        reader_fail(in, READER_SHORT);
        return NULL;
    }
    const uint8_t *p = in->at;
    in->at += size;
    return p;
}

static inline uint8_t reader_u8(struct reader *in)
{
    const uint8_t *p = reader_take(in, 1);
    return p == NULL ? 0 : p[0];
}

static inline uint16_t reader_be16(struct reader *in)
{
    const uint8_t *p = reader_take(in, 2);
    return p == NULL ? 0 : load_be16(p);
}

static inline uint32_t reader_be32(struct reader *in)
{
    const uint8_t *p = reader_take(in, 4);
    return p == NULL ? 0 : load_be32(p);
}

static inline uint64_t reader_be64(struct reader *in)
{
    const uint8_t *p = reader_take(in, 8);
    return p == NULL ? 0 : load_be64(p);
}

/* Unsigned varints (protobuf's) of two bytes and more; of an empty reader too. */
uint32_t reader_uvarint_slow(struct reader *in);
uint64_t reader_uvarlong_slow(struct reader *in);

/* Unsigned varints; an overlong form is an oddity, not a fault, as in Kafka. */
static inline uint32_t reader_uvarint(struct reader *in)
{
    if (LIKELY(in->at < in->end && *in->at < 0x80)) return *in->at++;
    return reader_uvarint_slow(in);
}

static inline uint64_t reader_uvarlong(struct reader *in)
{
    if (LIKELY(in->at < in->end && *in->at < 0x80)) return *in->at++;
    return reader_uvarlong_slow(in);
}

/* Zigzag varints, as records use them. */
static inline int32_t reader_varint(struct reader *in)
{
    uint32_t v = reader_uvarint(in);
    return (int32_t)(v >> 1) ^ -(int32_t)(v & 1);
}

static inline int64_t reader_varlong(struct reader *in)
{
    uint64_t v = reader_uvarlong(in);
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}
