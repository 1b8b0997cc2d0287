/* record_brief.c - the short ways through usual records: whole in the window, no headers, varints
 * of at most four bytes. What is not usual, or not sound, is left to the long way of record_iter.c,
 * so that there is one place that says what is wrong.
 *
 * There are two. The first reads a record field by field. The second, where two records on end
 * have one size, only compares: a record whose lengths have the same bytes as those of a sound
 * one before it, whose varints are as long and whose headers are none, has each field at the same
 * place, so it is as sound. It takes no length from the bytes to find the next record, hence the
 * processor looks at several at a time. */
#include "record/record_brief.h"

#include "base/bytes.h"

#define VARINT_BYTES 4u /* Longer ones take the long way. */

/* A zigzag varint of at most four bytes at `p`, where four can be read; NULL: it is longer. */
static inline const uint8_t *brief_varint(const uint8_t *p, int32_t *out)
{
    uint32_t size = 1;
    uint32_t value = p[0];
    if (value >= 0x80) { /* Which way is guessed well: the same field of the record before. */
        uint32_t word = load_le32(p);
        if (LIKELY((word & 0x8000) == 0)) {
            value = (word & 0x7f) | (word >> 1 & 0x3f80);
            size = 2;
        } else {
            if ((word & 0x800000) != 0 && (word & 0x80000000) != 0) return NULL;
            value = (word & 0x7f) | (word >> 1 & 0x3f80) | (word >> 2 & 0x1fc000);
            size = 3;
            if ((word & 0x800000) != 0) {
                value |= word >> 3 & 0xfe00000;
                size = 4;
            }
        }
    }
    *out = (int32_t)(value >> 1) ^ -(int32_t)(value & 1);
    return p + size;
}

/* A length and so many bytes; NULL: not within `end`, or not to be read from here. */
static inline const uint8_t *brief_bytes(const uint8_t *p, const uint8_t *end, int32_t *size)
{
    if (UNLIKELY(end - p < (ptrdiff_t)VARINT_BYTES)) return NULL;
    p = brief_varint(p, size);
    if (UNLIKELY(p == NULL)) return NULL;
    if (*size <= 0) return p;
    return UNLIKELY(*size > end - p) ? NULL : p + *size;
}

/* The record at the start of `in` if it is whole there, sound, and has no headers: its size. Else
 * 0: the long way finds out. */
static inline uint32_t brief_parse(struct view in,
                                   struct record_brief *out,
                                   int32_t *timestamp_delta)
{
    int32_t length, key_size, value_size;
    /* Length, attributes and two deltas are read without another look: 13 bytes at most. */
    if (UNLIKELY(in.size < 4 * VARINT_BYTES)) return 0;
    const uint8_t *end = in.data + in.size;
    const uint8_t *p = in.data;
    p = brief_varint(p, &length);
    if (UNLIKELY(p == NULL || length < 0 || length > end - p)) return 0;
    const uint8_t *body_end = p + length;
    p = brief_varint(p + 1, timestamp_delta);
    if (UNLIKELY(p == NULL)) return 0;
    p = brief_varint(p, &out->offset_delta);
    if (UNLIKELY(p == NULL)) return 0;
    p = brief_bytes(p, end, &key_size);
    if (UNLIKELY(p == NULL)) return 0;
    p = brief_bytes(p, end, &value_size);
    if (UNLIKELY(p == NULL || p + 1 != body_end || *p != 0)) return 0;
    out->key_null = key_size < 0;
    return (uint32_t)(body_end - in.data);
}

bool record_next_brief(struct record_iter *iter, struct record_brief *out)
{
    if (LIKELY(iter->fault == RECORD_OK && iter->left > 0)) {
        int32_t delta;
        record_iter_consume(iter, iter->given);
        iter->given = 0;
        uint32_t size = brief_parse(iter->in, out, &delta);
        if (LIKELY(size > 0)) {
            const struct batch_header *header = iter->header;
            bool append_time = (header->attributes & BATCH_APPEND_TIME) != 0;
            uint64_t sum = (uint64_t)header->base_timestamp + (uint64_t)(int64_t)delta;
            out->timestamp_ms = append_time ? header->max_timestamp : (int64_t)sum;
            record_iter_consume(iter, size);
            iter->left--;
            return true;
        }
    }
    struct record record;
    if (!record_next_skim(iter, &record)) return false;
    out->timestamp_ms = record.timestamp_ms;
    out->offset_delta = record.offset_delta;
    out->key_null = record.key.null;
    return true;
}

/* ---- records like the one before ------------------------------------------------------------- */

/* What a record has in common with the next ones. Three words are compared under a mask:
 *
 *   at its start    length and attributes' place: the length's bytes; of the timestamp delta which
 *                   byte is the last, and that it is not negative
 *   at offset_at    the offset delta, which rises by one, and the key's length
 *   at value_at     the value's length */
struct likeness {
    uint32_t offset_at;
    uint32_t value_at;
    int32_t most; /* As many follow before the offset delta's first byte is carried over. */
    uint64_t head, head_mask;
    uint64_t offset, offset_mask;
    uint64_t value, value_mask;
    uint32_t time_at;
    uint64_t time_mask; /* Where the timestamp delta stands in the head. */
};

/* The bytes from `from` to `to` of a word. */
static uint64_t bytes_mask(uint32_t from, uint32_t to)
{
    assert(from < to);
    assert(to <= 8);
    uint64_t below = to == 8 ? UINT64_MAX : (UINT64_C(1) << to * 8) - 1;
    return below & ~((UINT64_C(1) << from * 8) - 1);
}

/* Eight bytes to be compared; their first is the lowest. */
static inline uint64_t load_word(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof(word));
    return word;
}

/* What the sound record of `size` bytes at `p` has in common with the next. False: it is too small
 * to be compared in words, or its time lies before the batch's. */
static bool likeness_of(const uint8_t *p, uint32_t size, struct likeness *out)
{
    int32_t length, time, offset, key_size = 0, value_size;
    const uint8_t *time_p = brief_varint(p, &length) + 1;
    const uint8_t *offset_p = brief_varint(time_p, &time);
    const uint8_t *key_p = brief_varint(offset_p, &offset);
    const uint8_t *key_bytes = brief_varint(key_p, &key_size);
    const uint8_t *value_p = key_bytes + MAX(key_size, 0);
    const uint8_t *value_bytes = brief_varint(value_p, &value_size);
    uint32_t time_at = (uint32_t)(time_p - p), offset_at = (uint32_t)(offset_p - p);
    uint32_t value_at = (uint32_t)(value_p - p);
    if (offset_at > 8 || offset_at + 8 > size || value_at + 8 > size) return false;
    if (time < 0 || offset < 0) return false;

    uint64_t continues = UINT64_C(0x8080808080808080);
    uint64_t time_mask = bytes_mask(time_at, offset_at);
    uint64_t negative = UINT64_C(1) << time_at * 8; /* The bit of a zigzag that is its sign. */
    *out = (struct likeness){
        .offset_at = offset_at,
        .time_at = time_at,
        .value_at = value_at,
        .most = 63 - (offset & 63),
        .head_mask = bytes_mask(0, time_at - 1) | (time_mask & continues) | negative,
        .offset_mask = bytes_mask(0, (uint32_t)(key_bytes - offset_p)),
        .value_mask = bytes_mask(0, (uint32_t)(value_bytes - value_p)),
        .time_mask = time_mask & ~continues,
    };
    out->head = load_word(p) & out->head_mask;
    out->offset = load_word(offset_p) & out->offset_mask;
    out->value = load_word(value_p) & out->value_mask;
    return true;
}

/* The timestamp delta that stands in a time word. */
static int32_t likeness_time(const struct likeness *like, uint64_t word)
{
    uint32_t time = (uint32_t)(word >> like->time_at * 8);
    time = (time & 0x7f) | (time >> 1 & 0x3f80) | (time >> 2 & 0x1fc000) | (time >> 3 & 0xfe00000);
    return (int32_t)(time >> 1); /* It is not negative. */
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* A run as far as it has been looked at. */
struct look {
    const uint8_t *p;
    uint32_t left_bytes;
    int32_t left;  /* Records that may still come. */
    int32_t first; /* The index of the run's first record. */
    int32_t count;
    int32_t min, max; /* Timestamp deltas. */
    bool key_null;
    bool in_order;
};

/* Field by field, until two records on end have one size, and a third may have it. Returns that
 * size, or 0 where the run ends. */
static uint32_t look_singly(struct look *look)
{
    uint32_t last_bytes = 0;
    while (look->left > 0) {
        struct record_brief record;
        int32_t delta;
        uint32_t size = brief_parse(view_of(look->p, look->left_bytes), &record, &delta);
        if (UNLIKELY(size == 0)) return 0;
        look->p += size;
        look->left_bytes -= size;
        look->left--;
        look->min = MIN(look->min, delta);
        look->max = MAX(look->max, delta);
        look->key_null |= record.key_null;
        look->in_order &= record.offset_delta == look->first + look->count++;
        if (size == last_bytes && look->left_bytes >= size) return size;
        last_bytes = size;
    }
    return 0;
}

/* The records that are like the one of `size` bytes that was looked at last. */
static void look_alike(struct look *look, uint32_t size)
{
    struct likeness like;
    if (!look->in_order || !likeness_of(look->p - size, size, &like)) return;
    const uint8_t *p = look->p;
    int32_t most = MIN(MIN(like.most, look->left), (int32_t)(look->left_bytes / size));
    uint64_t offset = like.offset, min = UINT64_MAX, max = 0;
    int32_t count = 0;
    for (; count < most; count++, p += size) {
        uint64_t head = load_word(p);
        offset += 2; /* One more, in zigzag. */
        uint64_t other = ((head & like.head_mask) ^ like.head) |
                         ((load_word(p + like.offset_at) & like.offset_mask) ^ offset) |
                         ((load_word(p + like.value_at) & like.value_mask) ^ like.value) |
                         p[size - 1]; /* No headers. */
        if (UNLIKELY(other != 0)) break;
        uint64_t time = head & like.time_mask; /* As many bytes in all of them: to be compared. */
        min = MIN(min, time);
        max = MAX(max, time);
    }
    if (count == 0) return;
    look->p = p;
    look->left_bytes -= (uint32_t)count * size;
    look->left -= count;
    look->count += count;
    look->min = MIN(look->min, likeness_time(&like, min));
    look->max = MAX(look->max, likeness_time(&like, max));
}

void record_run_look(struct record_iter *iter, int32_t index, struct record_run *run)
{
    record_iter_consume(iter, iter->given);
    iter->given = 0;
    struct look look = {.p = iter->in.data,
                        .left_bytes = iter->in.size,
                        .left = iter->fault == RECORD_OK ? iter->left : 0,
                        .first = index,
                        .min = INT32_MAX,
                        .max = INT32_MIN,
                        .in_order = true};
    for (uint32_t size; (size = look_singly(&look)) > 0;)
        look_alike(&look, size);

    const struct batch_header *header = iter->header;
    bool append_time = (header->attributes & BATCH_APPEND_TIME) != 0;
    int64_t base = append_time ? header->max_timestamp : header->base_timestamp;
    *run = (struct record_run){.count = look.count,
                               .size_bytes = iter->in.size - look.left_bytes,
                               .key_null = look.key_null,
                               .in_order = look.in_order};
    if (__builtin_add_overflow(base, append_time ? 0 : look.min, &run->min_timestamp_ms) ||
        __builtin_add_overflow(base, append_time ? 0 : look.max, &run->max_timestamp_ms))
        *run = (struct record_run){0}; /* One by one: they wrap. */
}

void record_run_take(struct record_iter *iter, const struct record_run *run)
{
    assert(run->count <= iter->left);
    record_iter_consume(iter, run->size_bytes);
    iter->left -= run->count;
}
