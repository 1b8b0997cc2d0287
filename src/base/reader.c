/* reader.c - varints. Kafka's readers take up to five (ten) bytes and drop what does not fit the
 * last one's width only by refusing a sixth (eleventh); see docs/wire.md on what is counted. */
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
            if (byte == 0 && i > 0) in->oddities++;
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
