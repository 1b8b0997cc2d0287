/* sink.c - the growing block: powers of two from 256 bytes, never beyond the limit. */
#include "record/sink.h"

#define SINK_FIRST_BYTES 256u

void sink_init(struct sink *sink, struct mem *mem, uint32_t limit_bytes)
{
    *sink = (struct sink){.mem = mem, .limit_bytes = limit_bytes};
}

void sink_free(struct sink *sink)
{
    sink->data = mem_put(sink->mem, sink->data, sink->capacity_bytes);
    sink->capacity_bytes = 0;
    sink_reset(sink);
}

void sink_reset(struct sink *sink)
{
    sink->size_bytes = 0;
    sink->fault = SINK_OK;
}

static bool sink_grow(struct sink *sink, uint64_t wanted)
{
    uint64_t most = (uint64_t)sink->limit_bytes + SINK_SLACK_BYTES;
    if (wanted > most) {
        sink->fault = SINK_LIMIT;
        return false;
    }
    uint64_t capacity = MAX(sink->capacity_bytes, SINK_FIRST_BYTES);
    while (capacity < wanted)
        capacity *= 2;
    capacity = MIN(capacity, MIN(most, (uint64_t)UINT32_MAX));
    if (capacity < wanted) {
        sink->fault = SINK_LIMIT;
        return false;
    }
    uint8_t *block = mem_get(sink->mem, capacity);
    if (block == NULL) {
        sink->fault = SINK_MEMORY;
        return false;
    }
    if (sink->size_bytes > 0) memcpy(block, sink->data, sink->size_bytes);
    mem_put(sink->mem, sink->data, sink->capacity_bytes);
    sink->data = block;
    sink->capacity_bytes = (uint32_t)capacity;
    return true;
}

uint8_t *sink_room(struct sink *sink, uint32_t size_bytes)
{
    assert(sink->size_bytes <= sink->capacity_bytes);

    if (sink->fault != SINK_OK) return NULL;
    uint64_t wanted = (uint64_t)sink->size_bytes + size_bytes;
    bool fits = wanted <= sink->capacity_bytes && sink->data != NULL;
    if (!fits && !sink_grow(sink, wanted)) return NULL;
    return sink->data + sink->size_bytes;
}

void sink_used(struct sink *sink, uint32_t size_bytes)
{
    assert(size_bytes <= sink->capacity_bytes - sink->size_bytes);
    if (sink->size_bytes + size_bytes > sink->limit_bytes)
        sink->fault = SINK_LIMIT;
    else
        sink->size_bytes += size_bytes;
}

void sink_put(struct sink *sink, const void *bytes, uint32_t size_bytes)
{
    if (size_bytes == 0) return;
    uint8_t *room = sink_room(sink, size_bytes);
    if (room == NULL) return;
    memcpy(room, bytes, size_bytes);
    sink_used(sink, size_bytes);
}

void sink_put_u8(struct sink *sink, uint8_t value)
{
    sink_put(sink, &value, 1);
}

void sink_put_be16(struct sink *sink, uint16_t value)
{
    uint8_t bytes[2];
    store_be16(bytes, value);
    sink_put(sink, bytes, sizeof(bytes));
}

void sink_put_be32(struct sink *sink, uint32_t value)
{
    uint8_t bytes[4];
    store_be32(bytes, value);
    sink_put(sink, bytes, sizeof(bytes));
}

void sink_put_be64(struct sink *sink, uint64_t value)
{
    uint8_t bytes[8];
    store_be64(bytes, value);
    sink_put(sink, bytes, sizeof(bytes));
}

void sink_put_varint(struct sink *sink, int32_t value)
{
    sink_put_varlong(sink, value);
}

void sink_put_varlong(struct sink *sink, int64_t value)
{
    uint8_t bytes[SINK_VARLONG_BYTES];
    sink_put(sink, bytes, (uint32_t)(sink_varlong_store(bytes, value) - bytes));
}
