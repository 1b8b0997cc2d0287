/* crc.h - the two checksums of Kafka's files, by isa-l, which chooses the CPU's instructions at
 * start.
 *
 * Both with the usual conventions (reflected, start and final value all ones), so that the stored
 * u32 equals the result. Pure functions; any thread. Cost: about 15 GB/s. */
#pragma once

#include "base/base.h"

/* CRC-32C (Castagnoli): batches of magic 2 and producer snapshots. "123456789" -> e3069283. */
uint32_t crc_32c(const void *bytes, size_t size_bytes);

/* The CRC-32C of A followed by B, when `crc` is that of A. Of nothing it is 0. */
uint32_t crc_32c_more(uint32_t crc, const void *bytes, size_t size_bytes);

/* CRC-32 (IEEE 802.3, that of zlib): messages of magic 0 and 1. "123456789" -> cbf43926. */
uint32_t crc_32(const void *bytes, size_t size_bytes);
