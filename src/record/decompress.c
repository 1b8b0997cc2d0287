/* decompress.c - reading the four framings piece by piece; the framings are at the head of
 * compress.h.
 *
 * gzip and zstd stream into the caller's buffer. snappy and lz4 come in blocks: a block is decoded
 * into the work's block buffer (or, stored raw, taken where it lies) and handed out from there. A
 * block's declared size is held against what its bytes can become before memory is taken for it. */
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_createDCtx_advanced: a context with our memory. */
#include "record/compress.h"

#include <lz4.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "record/compress_mem.h"
#include "record/xxhash.h"

#define GZIP_WINDOW_BITS (15 + 16) /* The largest window, and gzip's header and trailer. */
#define GZIP_HEAD_BYTES  10u       /* The fixed part of a member's header. */

#define SNAPPY_HEADER_BYTES 16u
#define SNAPPY_MAGIC_HEAD   0x82534e41u /* The magic's first four bytes, as a chunk length. */
/* A copy element of three bytes yields at most 64. */
#define SNAPPY_EXPANSION_MAX 24u

#define LZ4_MAGIC          0x184d2204u
#define LZ4_VERSION_MASK   0xc0u
#define LZ4_VERSION        0x40u
#define LZ4_INDEPENDENT    0x20u
#define LZ4_BLOCK_SUM      0x10u
#define LZ4_CONTENT_SIZE   0x08u
#define LZ4_CONTENT_SUM    0x04u
#define LZ4_FLG_RESERVED   0x03u
#define LZ4_BD_RESERVED    0x8fu
#define LZ4_STORED         0x80000000u
#define LZ4_DESCRIPTOR_MAX 10u

static const uint8_t snappy_magic[8] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};

struct gzip_reader {
    z_stream stream;
    gz_header header; /* `done` tells a bad header from bad data. */
};

static void *mutable_pointer(const uint8_t *bytes)
{
    /* The libraries' signatures lack a const; they only read. */
    union {
        const uint8_t *given;
        void *taken;
    } pointer = {.given = bytes};
    return pointer.taken;
}

static uint32_t left_of(const struct decompress *stream)
{
    return stream->in.size - stream->at;
}

static const uint8_t *at_of(const struct decompress *stream)
{
    return stream->at == 0 ? stream->in.data : stream->in.data + stream->at;
}

static uint32_t fail(struct decompress *stream, enum decompress_fault fault)
{
    assert(fault != DECOMPRESS_OK);
    if (stream->fault == DECOMPRESS_OK) stream->fault = fault;
    stream->ended = true;
    return 0;
}

/* ---- gzip ----------------------------------------------------------------------------------- */

static bool gzip_start(struct decompress *stream)
{
    struct compress_work *work = stream->work;
    struct gzip_reader *reader = work->inflater;
    if (reader == NULL) {
        reader = mem_get(work->mem, sizeof(*reader));
        if (reader == NULL) return false;
        reader->stream.zalloc = compress_mem_zlib_get;
        reader->stream.zfree = compress_mem_put;
        reader->stream.opaque = work->mem;
        if (inflateInit2(&reader->stream, GZIP_WINDOW_BITS) != Z_OK) {
            mem_put(work->mem, reader, sizeof(*reader));
            return false;
        }
        work->inflater = reader;
    } else {
        (void)inflateReset(&reader->stream);
    }
    reader->header = (gz_header){0};
    (void)inflateGetHeader(&reader->stream, &reader->header);
    return true;
}

void decompress_work_free(struct compress_work *work)
{
    struct gzip_reader *reader = work->inflater;
    if (reader == NULL) return;
    (void)inflateEnd(&reader->stream);
    work->inflater = mem_put(work->mem, reader, sizeof(*reader));
}

/* One member has ended: is there another? Whatever is no member is not looked at. */
static bool gzip_next_member(struct decompress *stream)
{
    stream->members++;
    if (left_of(stream) < GZIP_HEAD_BYTES) return false;
    const uint8_t *p = at_of(stream);
    if (p[0] != 0x1f || p[1] != 0x8b || p[2] != 8) return false;
    return gzip_start(stream);
}

/* The stream cannot go on. A later member whose header is broken is no member. */
static void gzip_stop(struct decompress *stream, enum decompress_fault fault)
{
    const struct gzip_reader *reader = stream->work->inflater;
    if (reader->header.done == 1)
        (void)fail(stream, fault);
    else if (stream->members == 0)
        (void)fail(stream, DECOMPRESS_DATA);
    else
        stream->ended = true;
}

static uint32_t gzip_read(struct decompress *stream, uint8_t *out, uint32_t size)
{
    if (!stream->mid_frame) {
        if (left_of(stream) < GZIP_HEAD_BYTES) return fail(stream, DECOMPRESS_DATA);
        if (!gzip_start(stream)) return fail(stream, DECOMPRESS_MEMORY);
        stream->mid_frame = true;
    }
    struct gzip_reader *reader = stream->work->inflater;
    z_stream *z = &reader->stream;
    z->next_out = out;
    z->avail_out = size;

    while (z->avail_out > 0 && !stream->ended) {
        z->next_in = mutable_pointer(at_of(stream));
        z->avail_in = left_of(stream);
        int result = inflate(z, Z_NO_FLUSH);
        stream->at = stream->in.size - z->avail_in;
        if (result == Z_STREAM_END) {
            stream->ended = !gzip_next_member(stream);
        } else if (result == Z_MEM_ERROR) {
            (void)fail(stream, DECOMPRESS_MEMORY);
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            gzip_stop(stream, DECOMPRESS_DATA);
        } else if (left_of(stream) == 0 && z->avail_out > 0) {
            gzip_stop(stream, DECOMPRESS_SHORT);
        }
    }
    return size - z->avail_out;
}

/* ---- snappy --------------------------------------------------------------------------------- */

/* Decode one bare block of `size` bytes at the cursor. */
static bool snappy_block(struct decompress *stream, uint32_t size)
{
    struct compress_work *work = stream->work;
    const char *block = (const char *)at_of(stream);
    size_t length = 0;
    stream->at += size;
    if (snappy_uncompressed_length(block, size, &length) != SNAPPY_OK) {
        (void)fail(stream, DECOMPRESS_DATA);
        return false;
    }
    if (length > (uint64_t)size * SNAPPY_EXPANSION_MAX) {
        (void)fail(stream, DECOMPRESS_DATA);
        return false;
    }
    if (length > COMPRESS_SNAPPY_BLOCK_MAX ||
        length + stream->produced_bytes > stream->options.limit_bytes) {
        (void)fail(stream, DECOMPRESS_LIMIT);
        return false;
    }
    uint32_t need = MAX((uint32_t)length, 1u);
    if (!compress_mem_need(work->mem, &work->block_in, &work->block_in_bytes, need)) {
        (void)fail(stream, DECOMPRESS_MEMORY);
        return false;
    }
    if (snappy_uncompress(block, size, (char *)work->block_in, &length) != SNAPPY_OK) {
        (void)fail(stream, DECOMPRESS_DATA);
        return false;
    }
    stream->block = work->block_in;
    stream->block_bytes = (uint32_t)length;
    stream->block_at = 0;
    return true;
}

/* Does a xerial header stand at the cursor? */
static bool snappy_framed(const struct decompress *stream)
{
    return left_of(stream) >= SNAPPY_HEADER_BYTES &&
           memcmp(at_of(stream), snappy_magic, sizeof(snappy_magic)) == 0;
}

/* Step over the header of a later stream: only there Kafka's reader looks at the version. */
static void snappy_header(struct decompress *stream)
{
    assert(snappy_framed(stream));
    int32_t version = (int32_t)load_be32(at_of(stream) + 8);
    stream->at += SNAPPY_HEADER_BYTES;
    if (version < 1) (void)fail(stream, DECOMPRESS_DATA);
}

static void snappy_start(struct decompress *stream)
{
    if (snappy_framed(stream))
        stream->at += SNAPPY_HEADER_BYTES;
    else if (left_of(stream) == 0)
        (void)fail(stream, DECOMPRESS_DATA);
    else
        (void)snappy_block(stream, left_of(stream));
}

/* The next chunk, or the end, or a fault. */
static void snappy_next(struct decompress *stream)
{
    if (!stream->mid_frame) {
        stream->mid_frame = true;
        snappy_start(stream);
        return;
    }
    if (left_of(stream) < 4) {
        stream->ended = true;
        return;
    }
    uint32_t size = load_be32(at_of(stream));
    if (size == SNAPPY_MAGIC_HEAD) {
        if (snappy_framed(stream))
            snappy_header(stream);
        else if (left_of(stream) < SNAPPY_HEADER_BYTES)
            (void)fail(stream, DECOMPRESS_DATA);
        else
            stream->ended = true; /* Kafka's reader takes that for the end. */
        return;
    }
    stream->at += 4;
    if (size > left_of(stream))
        (void)fail(stream, DECOMPRESS_DATA);
    else
        (void)snappy_block(stream, size);
}

/* ---- lz4 ------------------------------------------------------------------------------------ */

/* The frame's descriptor: sets flags and block_max, moves behind it. */
static bool lz4_header(struct decompress *stream)
{
    const uint8_t *p = at_of(stream);
    uint32_t left = left_of(stream);
    if (left < 6 || load_le32(p) != LZ4_MAGIC) return false;
    uint8_t flags = p[4], sizes = p[5];
    if ((flags & LZ4_VERSION_MASK) != LZ4_VERSION || (flags & LZ4_FLG_RESERVED) != 0) return false;
    if ((flags & LZ4_INDEPENDENT) == 0) return false;
    uint32_t size_code = (sizes >> 4) & 7;
    if ((sizes & LZ4_BD_RESERVED) != 0 || size_code < 4) return false;

    uint32_t descriptor = (flags & LZ4_CONTENT_SIZE) != 0 ? LZ4_DESCRIPTOR_MAX : 2;
    if (left < 4 + descriptor + 1) return false;
    if (stream->options.magic > 0) {
        uint8_t sum = (uint8_t)(xxhash_32(p + 4, descriptor) >> 8);
        if (p[4 + descriptor] != sum) return false;
    }
    stream->flags = flags;
    stream->block_max = 1u << (8 + 2 * size_code);
    stream->at += 4 + descriptor + 1;
    return true;
}

/* Decode the block of `size` bytes at the cursor into the work's block. */
static void lz4_block(struct decompress *stream, uint32_t size)
{
    struct compress_work *work = stream->work;
    if (!compress_mem_need(work->mem, &work->block_in, &work->block_in_bytes, stream->block_max)) {
        (void)fail(stream, DECOMPRESS_MEMORY);
        return;
    }
    int length = LZ4_decompress_safe((const char *)at_of(stream), (char *)work->block_in, (int)size,
                                     (int)stream->block_max);
    if (length < 0) {
        (void)fail(stream, DECOMPRESS_DATA);
        return;
    }
    stream->block = work->block_in;
    stream->block_bytes = (uint32_t)length;
    /* No writer makes an empty block; Kafka's reader takes it for the end. */
    if (length == 0) stream->ended = true;
}

/* The next block, or the end, or a fault. */
static void lz4_next(struct decompress *stream)
{
    if (!stream->mid_frame) {
        stream->mid_frame = true;
        if (!lz4_header(stream)) (void)fail(stream, DECOMPRESS_DATA);
        return;
    }
    if (left_of(stream) < 4) {
        (void)fail(stream, DECOMPRESS_DATA);
        return;
    }
    uint32_t word = load_le32(at_of(stream));
    uint32_t size = word & ~LZ4_STORED;
    stream->at += 4;
    if (size == 0) {
        stream->ended = true;
        if ((stream->flags & LZ4_CONTENT_SUM) != 0 && left_of(stream) < 4)
            (void)fail(stream, DECOMPRESS_DATA);
        return;
    }
    uint32_t sum_bytes = (stream->flags & LZ4_BLOCK_SUM) != 0 ? 4 : 0;
    if (size > stream->block_max || left_of(stream) < (uint64_t)size + sum_bytes) {
        (void)fail(stream, DECOMPRESS_DATA);
        return;
    }
    if (sum_bytes > 0 && xxhash_32(at_of(stream), size) != load_le32(at_of(stream) + size)) {
        (void)fail(stream, DECOMPRESS_DATA);
        return;
    }
    stream->block_at = 0;
    if ((word & LZ4_STORED) != 0) {
        stream->block = at_of(stream);
        stream->block_bytes = size;
    } else {
        lz4_block(stream, size);
    }
    stream->at += size + sum_bytes;
}

/* ---- what blocks have in common ------------------------------------------------------------- */

static uint32_t block_read(struct decompress *stream, uint8_t *out, uint32_t size)
{
    uint32_t got = 0;
    while (got < size) {
        uint32_t there = stream->block_bytes - stream->block_at;
        if (there > 0) {
            uint32_t piece = MIN(there, size - got);
            memcpy(out + got, stream->block + stream->block_at, piece);
            stream->block_at += piece;
            got += piece;
        } else if (stream->ended) {
            break;
        } else if (stream->options.codec == CODEC_SNAPPY) {
            snappy_next(stream);
        } else {
            lz4_next(stream);
        }
    }
    return got;
}

static uint32_t plain_read(struct decompress *stream, uint8_t *out, uint32_t size)
{
    uint32_t piece = MIN(size, left_of(stream));
    if (piece > 0) memcpy(out, at_of(stream), piece);
    stream->at += piece;
    stream->ended = left_of(stream) == 0;
    return piece;
}

/* ---- zstd ----------------------------------------------------------------------------------- */

static bool zstd_start(struct decompress *stream)
{
    struct compress_work *work = stream->work;
    if (work->zstd_in == NULL) {
        ZSTD_customMem memory = {compress_mem_get, compress_mem_put, work->mem};
        work->zstd_in = ZSTD_createDCtx_advanced(memory);
        if (work->zstd_in == NULL) return false;
        size_t set = ZSTD_DCtx_setParameter(work->zstd_in, ZSTD_d_windowLogMax,
                                            COMPRESS_ZSTD_WINDOW_LOG_MAX);
        assert(!ZSTD_isError(set));
    }
    (void)ZSTD_DCtx_reset(work->zstd_in, ZSTD_reset_session_only);
    return true;
}

static uint32_t zstd_read(struct decompress *stream, uint8_t *out, uint32_t size)
{
    if (stream->members == 0) {
        if (!zstd_start(stream)) return fail(stream, DECOMPRESS_MEMORY);
        stream->members = 1;
    }
    ZSTD_outBuffer to = {out, size, 0};
    while (to.pos < size && !stream->ended) {
        ZSTD_inBuffer from = {at_of(stream), left_of(stream), 0};
        if (from.size == 0 && !stream->mid_frame) {
            stream->ended = true;
            break;
        }
        size_t before = to.pos;
        size_t result = ZSTD_decompressStream(stream->work->zstd_in, &to, &from);
        stream->at += (uint32_t)from.pos;
        if (ZSTD_isError(result)) {
            bool memory = ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation;
            (void)fail(stream, memory ? DECOMPRESS_MEMORY : DECOMPRESS_DATA);
            break;
        }
        stream->mid_frame = result != 0;
        if (result == 0) stream->members++;
        bool stuck = from.pos == 0 && to.pos == before;
        bool cut = stream->mid_frame && left_of(stream) == 0 && (stuck || to.pos < size);
        /* Kafka's reader takes a cut of the second frame or a later one for the end. */
        if (cut && stream->members > 1)
            stream->ended = true;
        else if (cut)
            (void)fail(stream, DECOMPRESS_DATA);
    }
    return (uint32_t)to.pos;
}

/* ---- the interface -------------------------------------------------------------------------- */

void decompress_begin(struct decompress *stream,
                      struct compress_work *work,
                      struct view in,
                      struct decompress_options options)
{
    assert(options.codec < CODEC_COUNT);
    assert(!work->reading);
    assert(!in.external);
    work->reading = true;
    *stream = (struct decompress){.work = work, .options = options, .in = in};
}

uint32_t decompress_read(struct decompress *stream, uint8_t *out, uint32_t size_bytes)
{
    assert(size_bytes > 0);
    assert(stream->work->reading);

    if (stream->produced_bytes == stream->options.limit_bytes && !stream->ended) {
        /* At the limit one more byte tells whether it is passed. */
        uint8_t more;
        stream->options.limit_bytes++;
        uint32_t got = decompress_read(stream, &more, 1);
        stream->options.limit_bytes--;
        if (got > 0) (void)fail(stream, DECOMPRESS_LIMIT);
        stream->produced_bytes -= got;
        stream->block_bytes = stream->block_at = 0;
        stream->ended = true;
        return 0;
    }
    bool block_left = stream->block_at < stream->block_bytes;
    if (stream->ended && !block_left) return 0;
    uint64_t left = stream->options.limit_bytes - stream->produced_bytes;
    uint32_t ask = (uint32_t)MIN((uint64_t)size_bytes, left);
    uint32_t got = 0;
    switch (stream->options.codec) {
    case CODEC_GZIP: got = gzip_read(stream, out, ask); break;
    case CODEC_SNAPPY:
    case CODEC_LZ4: got = block_read(stream, out, ask); break;
    case CODEC_ZSTD: got = zstd_read(stream, out, ask); break;
    default: got = plain_read(stream, out, ask); break;
    }
    stream->produced_bytes += got;
    return got;
}

void decompress_end(struct decompress *stream)
{
    assert(stream->work->reading);
    stream->work->reading = false;
}
