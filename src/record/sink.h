/* sink.h - bytes that grow at their end, charged to a struct mem and capped.
 *
 * A sink goes inert at its first failure: further writes do nothing, and one check of `fault` at
 * the end is enough. The block doubles as it grows; `data` moves then. */
#pragma once

#include "base/bytes.h"
#include "base/mem.h"
#include "base/view.h"

enum sink_fault {
    SINK_OK = 0,
    SINK_LIMIT,  /* It would have grown beyond `limit_bytes`. */
    SINK_MEMORY, /* The struct mem gave none. */
};

struct sink {
    struct mem *mem;
    uint8_t *data;
    uint32_t size_bytes;
    uint32_t capacity_bytes;
    uint32_t limit_bytes;
    enum sink_fault fault;
};

/* An empty sink; takes no memory before the first write. */
void sink_init(struct sink *sink, struct mem *mem, uint32_t limit_bytes);

/* Give the memory back. The sink is empty then and may be used again. */
void sink_free(struct sink *sink);

/* Forget the bytes and the fault, keep the memory. */
void sink_reset(struct sink *sink);

/* Room may be asked for this much beyond the limit: who compresses does not know before how little
 * he needs. */
#define SINK_SLACK_BYTES (128u * 1024u)

/* Room for `size_bytes` more behind the end (uninitialised; the size does not change), or NULL and
 * `fault` set. The room lasts until the next call. */
MUST_USE uint8_t *sink_room(struct sink *sink, uint32_t size_bytes);

/* So much of the room was used. Sets SINK_LIMIT, and adds nothing, if that passes the limit. */
void sink_used(struct sink *sink, uint32_t size_bytes);

void sink_put(struct sink *sink, const void *bytes, uint32_t size_bytes);
void sink_put_u8(struct sink *sink, uint8_t value);
void sink_put_be16(struct sink *sink, uint16_t value);
void sink_put_be32(struct sink *sink, uint32_t value);
void sink_put_be64(struct sink *sink, uint64_t value);
void sink_put_varint(struct sink *sink, int32_t value);  /* Zigzag, 1 to 5 bytes. */
void sink_put_varlong(struct sink *sink, int64_t value); /* Zigzag, 1 to 10 bytes. */

#define SINK_VARLONG_BYTES 10u /* The longest varlong. */

/* Write a zigzag varint (of a varint's or a varlong's value: the bytes are the same) at `out`,
 * which has room. Returns the place behind it. */
static inline uint8_t *sink_varlong_store(uint8_t *out, int64_t value)
{
    uint64_t v = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    while (v >= 0x80) {
        *out++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *out++ = (uint8_t)v;
    return out;
}

/* Bytes that the zigzag varint takes: 1 to 5, 1 to 10. */
static inline uint32_t sink_varlong_size(int64_t value)
{
    uint64_t v = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    return (uint32_t)(70 - __builtin_clzll(v | 1)) / 7;
}

/* What was written; lasts until the next write. */
static inline struct view sink_view(const struct sink *sink)
{
    return view_of(sink->data, sink->size_bytes);
}
