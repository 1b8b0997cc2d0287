/* reader.c - varints, as Kafka's readers take them: up to five (ten) bytes, overlong or not; bits
 * of the last one beyond the number's width are dropped. Both are counted as oddities. */
#include "base/reader.h"

static uint64_t reader_varint_slow(struct reader *in, uint32_t bytes_max)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes_max; i++) {
        if (in->at == in->end) {
            reader_fail(in, READER_SHORT);
            return 0;
        }
        uint8_t byte = *in->at++;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if ((byte & 0x80) == 0) {
            bool last = i + 1 == bytes_max; /* It holds 4 bits of a 32-bit number, 1 of a 64-bit. */
            if ((byte == 0 && i > 0) || (last && byte > (bytes_max == 5 ? 0x0f : 0x01)))
                in->oddities++;
            return value;
        }
    }
    reader_fail(in, READER_VARINT);
    return 0;
}

uint32_t reader_uvarint_slow(struct reader *in)
{
    return (uint32_t)reader_varint_slow(in, 5);
}

uint64_t reader_uvarlong_slow(struct reader *in)
{
    return reader_varint_slow(in, 10);
}
