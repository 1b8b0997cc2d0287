/* crc_plain.c - crc.h without isa-l, for the static program: Debian has no static isa-l.
 *
 * CRC-32C by the CPU's own instruction where it has one (SSE 4.2, ARMv8 CRC), told apart at run
 * time, else four bits at a time. One stream of the instruction: some 8 GB/s; isa-l goes to 67. */
#include "record/crc.h"

#include <zlib.h>

#include "base/bytes.h"

#define CASTAGNOLI 0x82f63b78u /* The polynomial, its bits turned around. */

#if defined(__x86_64__)

static bool has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc,
                                                                 const uint8_t *at,
                                                                 size_t size_bytes)
{
    uint64_t wide = crc;
    for (; size_bytes >= 8; at += 8, size_bytes -= 8) {
        uint64_t piece;
        memcpy(&piece, at, sizeof(piece));
        wide = __builtin_ia32_crc32di(wide, piece);
    }
    crc = (uint32_t)wide;
    for (; size_bytes > 0; at++, size_bytes--)
        crc = __builtin_ia32_crc32qi(crc, *at);
    return crc;
}

#elif defined(__aarch64__)

#include <arm_acle.h>
#include <sys/auxv.h>

static bool has_instruction(void)
{
    return (getauxval(AT_HWCAP) & (1u << 7)) != 0; /* HWCAP_CRC32 */
}

__attribute__((target("+crc"))) static uint32_t by_instruction(uint32_t crc,
                                                               const uint8_t *at,
                                                               size_t size_bytes)
{
    for (; size_bytes >= 8; at += 8, size_bytes -= 8) {
        uint64_t piece;
        memcpy(&piece, at, sizeof(piece));
        crc = __crc32cd(crc, piece);
    }
    for (; size_bytes > 0; at++, size_bytes--)
        crc = __crc32cb(crc, *at);
    return crc;
}

#else

static bool has_instruction(void)
{
    return false;
}

static uint32_t by_instruction(uint32_t crc, const uint8_t *at, size_t size_bytes)
{
    (void)at;
    (void)size_bytes;
    return crc;
}

#endif

/* What four zero bits behind `bits` make of it. */
static uint32_t four_bits(uint32_t bits)
{
    for (int i = 0; i < 4; i++)
        bits = bits >> 1 ^ (bits & 1 ? CASTAGNOLI : 0);
    return bits;
}

static uint32_t by_hand(uint32_t crc, const uint8_t *at, size_t size_bytes)
{
    uint32_t table[16];
    for (uint32_t i = 0; i < 16; i++)
        table[i] = four_bits(i);
    for (; size_bytes > 0; at++, size_bytes--) {
        crc ^= *at;
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return crc;
}

uint32_t crc_32c_more(uint32_t crc, const void *bytes, size_t size_bytes)
{
    assert(bytes != NULL || size_bytes == 0);
    if (has_instruction()) return ~by_instruction(~crc, bytes, size_bytes);
    return ~by_hand(~crc, bytes, size_bytes);
}

uint32_t crc_32c(const void *bytes, size_t size_bytes)
{
    return crc_32c_more(0, bytes, size_bytes);
}

uint32_t crc_32(const void *bytes, size_t size_bytes)
{
    assert(bytes != NULL || size_bytes == 0);
    return (uint32_t)crc32_z(0, bytes, size_bytes);
}
