/* compress.h - the codecs of record batches in Kafka's exact framings, streaming and bounded.
 *
 *   id name    levels (default)      framing of the payload
 *   0  none    -                     as it is
 *   1  gzip    1..9, -1 (-1)         RFC 1952 members, one behind the other; what follows the last
 *                                    member and is no member is ignored
 *   2  snappy  -                     xerial: 82 "SNAPPY" 00, i32 version, i32 compatible version,
 *                                    then i32 length + snappy block, again and again. Without
 *                                    that magic the payload is one bare block
 *   3  lz4     1..17 (9)             LZ4 frame v1, independent blocks; bytes behind it are ignored
 *   4  zstd    -131072..22 (3)       zstd frames
 *
 * A decompression yields bytes piece by piece and stops at its limit, so no input can cost more
 * memory than COMPRESS_WORK_MAX and no more time than its limit. What Apache Kafka's own reader
 * takes or refuses is taken or refused here too (src/record/README.md has the list).
 *
 * A `struct compress_work` holds the libraries' states, allocated at first use and kept: one per
 * thread, for one stream of each direction at a time. All memory is from its struct mem; nothing is
 * taken from the heap but by libsnappy's compressor (a hash table of at most 64 KiB, freed at
 * return). */
#pragma once

#include "base/mem.h"
#include "base/view.h"
#include "record/sink.h"

enum codec {
    CODEC_NONE = 0,
    CODEC_GZIP = 1,
    CODEC_SNAPPY = 2,
    CODEC_LZ4 = 3,
    CODEC_ZSTD = 4,
    CODEC_COUNT = 5, /* Ids 5 to 7 fit the attributes but mean nothing. */
};

/* Stands for the codec's default level. */
#define COMPRESS_LEVEL_DEFAULT INT32_MIN

/* "none", "gzip", ...: the names of Kafka's tools and of the producer's compression.type. */
const char *compress_name(enum codec codec);

/* The codec of that name; "uncompressed" (the topic's word) is none too. False: no such codec. */
bool compress_by_name(struct view name, enum codec *codec);

/* Is this level legal for the codec? COMPRESS_LEVEL_DEFAULT always is. */
bool compress_level_valid(enum codec codec, int32_t level);

struct compress_work {
    struct mem *mem;
    void *inflater; /* zlib's state for reading, and so on: NULL until first used. */
    void *deflater;
    void *zstd_in;
    void *zstd_out;
    uint8_t *lz4_state; /* Writing: the state of the compressor last used. */
    uint32_t lz4_state_bytes;
    uint8_t *block_in; /* Reading: one decompressed block of snappy or lz4. */
    uint32_t block_in_bytes;
    uint8_t *block_out; /* Writing: input gathered for one block. */
    uint32_t block_out_bytes;
    bool reading; /* A stream is open in this direction. */
    bool writing;
};

void compress_work_init(struct compress_work *work, struct mem *mem);

/* Give all states back; no stream may be open. The work may be used again. */
void compress_work_free(struct compress_work *work);

/* ---- reading -------------------------------------------------------------------------------- */

enum decompress_fault {
    DECOMPRESS_OK = 0,
    DECOMPRESS_DATA,   /* The bytes are not such a stream. */
    DECOMPRESS_SHORT,  /* gzip only: the stream ends early (Kafka calls the batch invalid then). */
    DECOMPRESS_LIMIT,  /* There is more than the limit. */
    DECOMPRESS_MEMORY, /* The struct mem gave none. */
};

struct decompress_options {
    enum codec codec;
    int8_t magic;         /* 0: lz4's header checksum is not looked at (see log format, lz4). */
    uint64_t limit_bytes; /* Decompressed bytes after which the stream fails. */
};

struct decompress {
    struct compress_work *work;
    struct decompress_options options;
    struct view in;          /* The compressed bytes: the caller's, until the end. */
    uint32_t at;             /* Next byte of them. */
    uint64_t produced_bytes; /* Decompressed so far. */
    enum decompress_fault fault;
    uint32_t block_at; /* Codecs with blocks: what of the current one is given out, */
    uint32_t block_bytes;
    const uint8_t *block; /* and where it lies. */
    uint32_t block_max;   /* lz4: from the frame's descriptor. */
    uint32_t members;     /* Headers, members or frames seen. */
    uint8_t flags;        /* lz4: FLG. */
    bool mid_frame;       /* Input may not end here. */
    bool ended;
};

/* Start reading `in`, with magic 2's or 1's rules for options.magic. Nothing is read yet, so it
 * cannot fail. The codec must be one of the five (assert). Takes the work's reading side. */
void decompress_begin(struct decompress *stream,
                      struct compress_work *work,
                      struct view in,
                      struct decompress_options options);

/* Up to `size_bytes` (> 0) decompressed bytes into `out`. Returns how many; fewer than asked only
 * at the end or at a fault, 0 with `fault` not set is the end. After a fault it returns 0. */
MUST_USE uint32_t decompress_read(struct decompress *stream, uint8_t *out, uint32_t size_bytes);

/* Release the work's reading side, at any point. */
void decompress_end(struct decompress *stream);

/* ---- writing -------------------------------------------------------------------------------- */

struct compress_options {
    enum codec codec;
    int32_t level; /* Legal for the codec, or COMPRESS_LEVEL_DEFAULT. */
    int8_t magic;  /* 0: lz4 gets the wrong header checksum that magic 0 readers expect. */
};

struct compress {
    struct compress_work *work;
    struct compress_options options;
    struct sink *out;  /* The caller's, until the end. */
    uint32_t gathered; /* Codecs with blocks: bytes in work->block_out. */
    bool header_done;
    bool failed; /* Memory, or the sink's fault. */
};

/* Start a stream that is appended to `out`. The level must be legal (assert). Takes the work's
 * writing side. */
void compress_begin(struct compress *stream,
                    struct compress_work *work,
                    struct sink *out,
                    struct compress_options options);

/* Compress more. Goes inert after a failure. */
void compress_write(struct compress *stream, const void *bytes, uint32_t size_bytes);

/* Write what is left and the frame's end, and release the work's writing side. False: the sink's
 * limit was reached (out->fault is SINK_LIMIT) or there was no memory. */
MUST_USE bool compress_end(struct compress *stream);
