/* legacy_rig_test.h - messages of magic 0 and 1 for tests. */
#pragma once

#include "log/rig_test.h"
#include "record/crc.h"

struct legacy_rig_message {
    int64_t offset;
    int8_t magic;
    const char *key;
    int64_t timestamp_ms;
};

static inline uint32_t legacy_rig_store(const struct legacy_rig_message *message, uint8_t *out)
{
    uint32_t key_size = (uint32_t)strlen(message->key);
    uint32_t at = 18;
    store_be64(out, (uint64_t)message->offset);
    out[16] = (uint8_t)message->magic;
    out[17] = 0;
    if (message->magic == 1) {
        store_be64(out + at, (uint64_t)message->timestamp_ms);
        at += 8;
    }
    store_be32(out + at, key_size);
    memcpy(out + at + 4, message->key, key_size);
    at += 4 + key_size;
    store_be32(out + at, 1);
    out[at + 4] = 'v';
    at += 5;
    store_be32(out + 8, at - 12);
    store_be32(out + 12, crc_32(out + 16, at - 16));
    return at;
}

static inline struct buf *legacy_rig_set(struct rig *rig,
                                         const struct legacy_rig_message *messages,
                                         size_t count)
{
    uint8_t bytes[4096];
    uint32_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += legacy_rig_store(&messages[i], bytes + size);
    struct buf *buf = buf_new(io_mem(rig->io), size);
    memcpy(buf->data, bytes, size);
    return buf;
}
