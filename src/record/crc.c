/* crc.c - isa-l's functions with the conventions of crc.h.
 *
 * crc32_iscsi neither inverts at the start nor at the end and takes an int; crc32_gzip_refl does
 * both. */
#include "record/crc.h"

#include <limits.h>

#include <isa-l/crc.h>

uint32_t crc_32c_more(uint32_t crc, const void *bytes, size_t size_bytes)
{
    assert(bytes != NULL || size_bytes == 0);
    /* isa-l's signature lacks a const; it only reads. */
    union {
        const void *given;
        unsigned char *taken;
    } at = {.given = bytes};
    uint32_t value = ~crc;

    while (size_bytes > 0) {
        size_t piece = MIN(size_bytes, (size_t)INT_MAX);
        value = crc32_iscsi(at.taken, (int)piece, value);
        at.taken += piece;
        size_bytes -= piece;
    }
    return ~value;
}

uint32_t crc_32c(const void *bytes, size_t size_bytes)
{
    return crc_32c_more(0, bytes, size_bytes);
}

uint32_t crc_32(const void *bytes, size_t size_bytes)
{
    assert(bytes != NULL || size_bytes == 0);
    return crc32_gzip_refl(0, bytes, size_bytes);
}
