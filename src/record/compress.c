/* compress.c - names and levels of the codecs, and writing the four framings.
 *
 * gzip and zstd stream into the sink. snappy and lz4 gather input for a block (32 KiB, 64 KiB: what
 * Kafka's own writers use), compress it straight into the sink, and set its length in front. */
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_createCCtx_advanced: a context with our memory. */
#include "record/compress.h"

#include <lz4.h>
#include <lz4hc.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "record/compress_mem.h"

#define GZIP_WINDOW_BITS   (15 + 16)
#define GZIP_MEMORY_LEVEL  8
#define LZ4_BLOCK_BYTES    (64u * 1024u)
#define LZ4_LEVEL_FAST     9 /* Kafka's default level stands for the fast compressor. */
#define LZ4_STORED         0x80000000u
#define SNAPPY_BLOCK_BYTES (32u * 1024u)
#define STREAM_STEP_BYTES  (16u * 1024u) /* Room offered to gzip and zstd at a time. */
/* Batches are rarely larger; without the hint levels above 19 would take 650 MiB. */
#define ZSTD_SIZE_HINT (4 * 1024 * 1024)

static const struct {
    const char *name;
    int32_t level_min, level_max, level_default;
} codecs[CODEC_COUNT] = {
    [CODEC_NONE] = {"none",   0,       0,  0             },
      [CODEC_GZIP] = {"gzip",   -1,      9,  -1            },
    [CODEC_SNAPPY] = {"snappy", 0,       0,  0             },
      [CODEC_LZ4] = {"lz4",    1,       17, LZ4_LEVEL_FAST},
    [CODEC_ZSTD] = {"zstd",   -131072, 22, 3             },
};

const char *compress_name(enum codec codec)
{
    assert(codec < CODEC_COUNT);
    return codecs[codec].name;
}

bool compress_by_name(struct view name, enum codec *codec)
{
    for (uint32_t i = 0; i < CODEC_COUNT; i++) {
        bool match = view_is(name, codecs[i].name);
        if (i == CODEC_NONE && view_is(name, "uncompressed")) match = true;
        if (match) {
            *codec = (enum codec)i;
            return true;
        }
    }
    return false;
}

bool compress_level_valid(enum codec codec, int32_t level)
{
    assert(codec < CODEC_COUNT);
    if (level == COMPRESS_LEVEL_DEFAULT) return true;
    if (codec == CODEC_GZIP && level == 0) return false;
    return level >= codecs[codec].level_min && level <= codecs[codec].level_max;
}

void compress_work_init(struct compress_work *work, struct mem *mem)
{
    *work = (struct compress_work){.mem = mem};
}

/* ---- gzip ----------------------------------------------------------------------------------- */

struct gzip_writer {
    z_stream stream;
    int32_t level;
};

static bool gzip_start(struct compress *stream)
{
    struct compress_work *work = stream->work;
    struct gzip_writer *writer = work->deflater;
    if (writer != NULL && writer->level == stream->options.level) {
        return deflateReset(&writer->stream) == Z_OK;
    }
    if (writer == NULL) {
        writer = mem_get(work->mem, sizeof(*writer));
        if (writer == NULL) return false;
        writer->stream.zalloc = compress_mem_zlib_get;
        writer->stream.zfree = compress_mem_put;
        writer->stream.opaque = work->mem;
    } else {
        (void)deflateEnd(&writer->stream);
    }
    writer->level = stream->options.level;
    int done = deflateInit2(&writer->stream, writer->level, Z_DEFLATED, GZIP_WINDOW_BITS,
                            GZIP_MEMORY_LEVEL, Z_DEFAULT_STRATEGY);
    if (done == Z_OK) {
        work->deflater = writer;
        return true;
    }
    mem_put(work->mem, writer, sizeof(*writer));
    work->deflater = NULL;
    return false;
}

static bool gzip_write(struct compress *stream, const uint8_t *bytes, uint32_t size, bool finish)
{
    struct gzip_writer *writer = stream->work->deflater;
    z_stream *z = &writer->stream;
    /* zlib's signature lacks a const; it only reads. */
    union {
        const uint8_t *given;
        uint8_t *taken;
    } in = {.given = bytes};
    z->next_in = in.taken;
    z->avail_in = size;

    while (true) {
        uint8_t *room = sink_room(stream->out, STREAM_STEP_BYTES);
        if (room == NULL) return false;
        z->next_out = room;
        z->avail_out = STREAM_STEP_BYTES;
        int result = deflate(z, finish ? Z_FINISH : Z_NO_FLUSH);
        assert(result == Z_OK || result == Z_BUF_ERROR || result == Z_STREAM_END);
        sink_used(stream->out, STREAM_STEP_BYTES - z->avail_out);
        if (result == Z_STREAM_END) return true;
        if (!finish && z->avail_in == 0 && z->avail_out > 0) return true;
    }
}

/* ---- zstd ----------------------------------------------------------------------------------- */

static bool zstd_start(struct compress *stream)
{
    struct compress_work *work = stream->work;
    if (work->zstd_out == NULL) {
        ZSTD_customMem memory = {compress_mem_get, compress_mem_put, work->mem};
        work->zstd_out = ZSTD_createCCtx_advanced(memory);
        if (work->zstd_out == NULL) return false;
    }
    ZSTD_CCtx *context = work->zstd_out;
    int32_t level = stream->options.level;
    (void)ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
    size_t set = ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
    assert(!ZSTD_isError(set));
    set = ZSTD_CCtx_setParameter(context, ZSTD_c_srcSizeHint, ZSTD_SIZE_HINT);
    assert(!ZSTD_isError(set));
    return true;
}

static bool zstd_write(struct compress *stream, const uint8_t *bytes, uint32_t size, bool finish)
{
    ZSTD_inBuffer from = {bytes, size, 0};
    while (true) {
        uint8_t *room = sink_room(stream->out, STREAM_STEP_BYTES);
        if (room == NULL) return false;
        ZSTD_outBuffer to = {room, STREAM_STEP_BYTES, 0};
        size_t left = ZSTD_compressStream2(stream->work->zstd_out, &to, &from,
                                           finish ? ZSTD_e_end : ZSTD_e_continue);
        sink_used(stream->out, (uint32_t)to.pos);
        if (ZSTD_isError(left)) return false;
        if (finish ? left == 0 : from.pos == from.size) return true;
    }
}

/* ---- snappy and lz4: blocks ----------------------------------------------------------------- */

static bool snappy_block(struct compress *stream)
{
    static const uint8_t header[16] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0,
                                       0,    0,   0,   1,   0,   0,   0,   1};
    if (!stream->header_done) sink_put(stream->out, header, sizeof(header));
    stream->header_done = true;
    if (stream->gathered == 0) return stream->out->fault == SINK_OK;

    size_t length = snappy_max_compressed_length(stream->gathered);
    uint8_t *room = sink_room(stream->out, 4 + (uint32_t)length);
    if (room == NULL) return false;
    snappy_status done = snappy_compress((const char *)stream->work->block_out, stream->gathered,
                                         (char *)room + 4, &length);
    assert(done == SNAPPY_OK);
    store_be32(room, (uint32_t)length);
    sink_used(stream->out, 4 + (uint32_t)length);
    stream->gathered = 0;
    return true;
}

/* The state of the compressor that the level asks for. */
static bool lz4_start(struct compress *stream)
{
    struct compress_work *work = stream->work;
    int need = stream->options.level == LZ4_LEVEL_FAST ? LZ4_sizeofState() : LZ4_sizeofStateHC();
    return compress_mem_need(work->mem, &work->lz4_state, &work->lz4_state_bytes, (uint32_t)need);
}

static bool lz4_block(struct compress *stream)
{
    /* Version 1, independent blocks of at most 64 KiB, no checksums; the last byte is the header's
     * checksum. Magic 0's writers took the frame's magic into it. */
    static const uint8_t header[7] = {0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82};
    const struct compress_work *work = stream->work;
    if (!stream->header_done) {
        sink_put(stream->out, header, sizeof(header) - 1);
        sink_put_u8(stream->out, stream->options.magic == 0 ? 0x1a : 0x82);
    }
    stream->header_done = true;
    if (stream->gathered == 0) return stream->out->fault == SINK_OK;

    const char *in = (const char *)work->block_out;
    int size = (int)stream->gathered;
    uint8_t *room = sink_room(stream->out, 4 + (uint32_t)LZ4_compressBound(size));
    if (room == NULL) return false;
    char *block = (char *)room + 4;
    int bound = LZ4_compressBound(size);
    int length = stream->options.level == LZ4_LEVEL_FAST
                     ? LZ4_compress_fast_extState(work->lz4_state, in, block, size, bound, 1)
                     : LZ4_compress_HC_extStateHC(work->lz4_state, in, block, size, bound,
                                                  stream->options.level);
    assert(length > 0);
    if (length < size) {
        store_le32(room, (uint32_t)length);
    } else {
        store_le32(room, (uint32_t)size | LZ4_STORED);
        memcpy(block, in, (size_t)size);
        length = size;
    }
    sink_used(stream->out, 4 + (uint32_t)length);
    stream->gathered = 0;
    return true;
}

static bool block_write(struct compress *stream, const uint8_t *bytes, uint32_t size)
{
    uint32_t full = stream->options.codec == CODEC_LZ4 ? LZ4_BLOCK_BYTES : SNAPPY_BLOCK_BYTES;
    while (size > 0) {
        uint32_t piece = MIN(size, full - stream->gathered);
        memcpy(stream->work->block_out + stream->gathered, bytes, piece);
        stream->gathered += piece;
        bytes += piece;
        size -= piece;
        if (stream->gathered < full) return true;
        bool done = stream->options.codec == CODEC_LZ4 ? lz4_block(stream) : snappy_block(stream);
        if (!done) return false;
    }
    return true;
}

/* ---- the interface -------------------------------------------------------------------------- */

static bool start(struct compress *stream)
{
    struct compress_work *work = stream->work;
    uint8_t **block = &work->block_out;
    switch (stream->options.codec) {
    case CODEC_GZIP: return gzip_start(stream);
    case CODEC_ZSTD: return zstd_start(stream);
    case CODEC_SNAPPY:
    case CODEC_LZ4:
        if (!compress_mem_need(work->mem, block, &work->block_out_bytes, LZ4_BLOCK_BYTES))
            return false;
        return stream->options.codec == CODEC_SNAPPY || lz4_start(stream);
    default: return true;
    }
}

void compress_begin(struct compress *stream,
                    struct compress_work *work,
                    struct sink *out,
                    struct compress_options options)
{
    assert(options.codec < CODEC_COUNT);
    assert(compress_level_valid(options.codec, options.level));
    assert(!work->writing);

    if (options.level == COMPRESS_LEVEL_DEFAULT)
        options.level = codecs[options.codec].level_default;
    work->writing = true;
    *stream = (struct compress){.work = work, .options = options, .out = out};
    stream->failed = !start(stream);
}

void compress_write(struct compress *stream, const void *bytes, uint32_t size_bytes)
{
    assert(stream->work->writing);
    if (stream->failed || size_bytes == 0) return;
    bool done = true;
    switch (stream->options.codec) {
    case CODEC_GZIP: done = gzip_write(stream, bytes, size_bytes, false); break;
    case CODEC_ZSTD: done = zstd_write(stream, bytes, size_bytes, false); break;
    case CODEC_SNAPPY:
    case CODEC_LZ4: done = block_write(stream, bytes, size_bytes); break;
    default: sink_put(stream->out, bytes, size_bytes); break;
    }
    stream->failed = !done || stream->out->fault != SINK_OK;
}

bool compress_end(struct compress *stream)
{
    assert(stream->work->writing);
    stream->work->writing = false;
    if (stream->failed) return false;
    bool done = true;
    switch (stream->options.codec) {
    case CODEC_GZIP: done = gzip_write(stream, NULL, 0, true); break;
    case CODEC_ZSTD: done = zstd_write(stream, NULL, 0, true); break;
    case CODEC_SNAPPY: done = snappy_block(stream); break;
    case CODEC_LZ4:
        done = lz4_block(stream);
        sink_put_be32(stream->out, 0);
        break;
    default: break;
    }
    return done && stream->out->fault == SINK_OK;
}

void compress_work_free(struct compress_work *work)
{
    assert(!work->reading);
    assert(!work->writing);

    struct mem *mem = work->mem;
    if (work->inflater != NULL) decompress_work_free(work);
    struct gzip_writer *writer = work->deflater;
    if (writer != NULL) {
        (void)deflateEnd(&writer->stream);
        mem_put(mem, writer, sizeof(*writer));
    }
    if (work->zstd_in != NULL) (void)ZSTD_freeDCtx(work->zstd_in);
    if (work->zstd_out != NULL) (void)ZSTD_freeCCtx(work->zstd_out);
    mem_put(mem, work->lz4_state, work->lz4_state_bytes);
    mem_put(mem, work->block_in, work->block_in_bytes);
    mem_put(mem, work->block_out, work->block_out_bytes);
    compress_work_init(work, mem);
}
