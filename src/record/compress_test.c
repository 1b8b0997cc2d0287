/* compress_test.c - the four framings: round trips in pieces of every size, caps, bombs, and every
 * allocation failed once. What Kafka's readers take is compared in batch_validate_test.c. */
#include "record/compress.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/limits.h"
#include "record/record_test.h"
#include "record/xxhash.h"

#define MIB (1u << 20)

/* Text that compresses, with some noise. */
static uint8_t *make_text(uint32_t size, uint64_t seed)
{
    uint8_t *text = malloc(size + 1);
    for (uint32_t i = 0; i < size; i++)
        text[i] = test_random(&seed) % 16 == 0 ? (uint8_t)test_random(&seed)
                                               : (uint8_t) "jackdaw "[i % 8];
    return text;
}

static bool pack(struct compress_work *work,
                 struct compress_options how,
                 struct view in,
                 uint32_t piece,
                 struct sink *out)
{
    struct compress stream;
    compress_begin(&stream, work, out, how);
    for (uint32_t at = 0; at < in.size; at += piece)
        compress_write(&stream, in.data + at, MIN(piece, in.size - at));
    return compress_end(&stream);
}

/* Decompress in pieces; the fault is the stream's. */
static enum decompress_fault unpack(struct compress_work *work,
                                    struct decompress_options how,
                                    struct view in,
                                    uint32_t piece,
                                    struct sink *out)
{
    struct decompress stream;
    decompress_begin(&stream, work, in, how);
    uint32_t got;
    do {
        uint8_t *room = sink_room(out, piece);
        assert_non_null(room);
        got = decompress_read(&stream, room, piece);
        sink_used(out, got);
        assert_int_equal(out->fault, SINK_OK);
    } while (got > 0);
    decompress_end(&stream);
    return stream.fault;
}

static void round_trips(void **state)
{
    static const struct compress_options ways[] = {
        {CODEC_NONE,   COMPRESS_LEVEL_DEFAULT, 2},
        {CODEC_GZIP,   COMPRESS_LEVEL_DEFAULT, 2},
        {CODEC_GZIP,   9,                      2},
        {CODEC_SNAPPY, COMPRESS_LEVEL_DEFAULT, 2},
        {CODEC_LZ4,    COMPRESS_LEVEL_DEFAULT, 2},
        {CODEC_LZ4,    1,                      2},
        {CODEC_LZ4,    12,                     0},
        {CODEC_ZSTD,   COMPRESS_LEVEL_DEFAULT, 2},
        {CODEC_ZSTD,   -7,                     2},
        {CODEC_ZSTD,   19,                     2},
    };
    static const uint32_t sizes[] = {0, 1, 100, 32767, 32768, 32769, 65536, 65537, 300000};
    static const uint32_t pieces[] = {7, 4096, 1u << 20};
    struct test_world world;
    test_begin(&world);
    for (uint32_t w = 0; w < ARRAY_SIZE(ways); w++) {
        for (uint32_t s = 0; s < ARRAY_SIZE(sizes); s++) {
            uint8_t *text = make_text(sizes[s], s + 1);
            struct view in = view_of(text, sizes[s]);
            uint32_t piece = pieces[(w + s) % ARRAY_SIZE(pieces)];
            struct sink packed, out;
            sink_init(&packed, &world.mem, 4 * MIB);
            sink_init(&out, &world.mem, 4 * MIB);
            assert_true(pack(&world.work, ways[w], in, piece, &packed));
            struct decompress_options how = {ways[w].codec, ways[w].magic, sizes[s]};
            uint32_t step = pieces[(w + s + 1) % ARRAY_SIZE(pieces)];
            assert_int_equal(unpack(&world.work, how, sink_view(&packed), step, &out),
                             DECOMPRESS_OK);
            assert_int_equal(out.size_bytes, sizes[s]);
            if (sizes[s] > 0) assert_memory_equal(out.data, text, sizes[s]);
            sink_free(&packed);
            sink_free(&out);
            free(text);
        }
    }
    test_end(&world);
}

/* Exactly the limit is read; one byte less is a fault, and no more than it is given out. */
static void limits_hold(void **state)
{
    struct test_world world;
    test_begin(&world);
    uint8_t *text = make_text(100000, 5);
    for (uint32_t codec = CODEC_NONE; codec < CODEC_COUNT; codec++) {
        struct sink packed, out;
        sink_init(&packed, &world.mem, MIB);
        sink_init(&out, &world.mem, MIB);
        struct compress_options how = {(enum codec)codec, COMPRESS_LEVEL_DEFAULT, 2};
        assert_true(pack(&world.work, how, view_of(text, 100000), 1000, &packed));
        struct decompress_options limited = {(enum codec)codec, 2, 99999};
        assert_int_equal(unpack(&world.work, limited, sink_view(&packed), 8192, &out),
                         DECOMPRESS_LIMIT);
        assert_true(out.size_bytes <= 99999);
        sink_free(&out);
        /* Writing: the sink's limit, to the byte. */
        sink_init(&out, &world.mem, packed.size_bytes);
        assert_true(pack(&world.work, how, view_of(text, 100000), 1000, &out));
        sink_free(&out);
        sink_init(&out, &world.mem, packed.size_bytes - 1);
        assert_false(pack(&world.work, how, view_of(text, 100000), 1000, &out));
        assert_int_equal(out.fault, SINK_LIMIT);
        sink_free(&out);
        sink_free(&packed);
    }
    free(text);
    test_end(&world);
}

/* 512 MiB of zeros in a few hundred kilobytes or less: read to the cap and no further, with the
 * memory of one window. */
static void bombs(void **state)
{
    static const enum codec codecs[] = {CODEC_GZIP, CODEC_LZ4, CODEC_ZSTD, CODEC_SNAPPY};
    struct test_world world;
    test_begin(&world);
    uint8_t *zeros = calloc(1, MIB);
    uint8_t *window = malloc(RECORD_WINDOW_BYTES);
    for (uint32_t i = 0; i < ARRAY_SIZE(codecs); i++) {
        struct sink packed;
        sink_init(&packed, &world.mem, 64 * MIB);
        struct compress stream;
        struct compress_options how = {codecs[i], COMPRESS_LEVEL_DEFAULT, 2};
        compress_begin(&stream, &world.work, &packed, how);
        for (uint32_t n = 0; n < 64; n++)
            compress_write(&stream, zeros, MIB);
        assert_true(compress_end(&stream));

        struct decompress in;
        struct decompress_options capped = {codecs[i], 2, 8 * MIB};
        uint64_t total = 0;
        uint32_t got;
        decompress_begin(&in, &world.work, sink_view(&packed), capped);
        uint64_t before = world.mem.used_bytes;
        do {
            got = decompress_read(&in, window, RECORD_WINDOW_BYTES);
            total += got;
        } while (got > 0);
        decompress_end(&in);
        assert_int_equal(in.fault, DECOMPRESS_LIMIT);
        assert_in_range(total, 7 * MIB, 8 * MIB);
        assert_true(world.mem.used_bytes - before < 8 * MIB);
        sink_free(&packed);
    }
    free(zeros);
    free(window);
    test_end(&world);
}

/* Bytes that must be refused, or taken, by name. */
static const struct {
    const char *what;
    enum codec codec;
    int8_t magic;
    const char *hex;
    enum decompress_fault fault;
    uint32_t size;
} framing_cases[] = {
    {"lz4 as Kafka writes it",              CODEC_LZ4,    2, "04224d18 60 40 82 03000080 616263 00000000",
     DECOMPRESS_OK,                                                                                                                       3},
    {"lz4, bytes behind the frame",         CODEC_LZ4,    2,
     "04224d18 60 40 82 03000080 616263 00000000 ffffff",                                                                DECOMPRESS_OK,   3},
    {"lz4, wrong header checksum",          CODEC_LZ4,    2, "04224d18 60 40 83 03000080 616263 00000000",
     DECOMPRESS_DATA,                                                                                                                     0},
    {"lz4, wrong header checksum, magic 0", CODEC_LZ4,    0,
     "04224d18 60 40 1a 03000080 616263 00000000",                                                                       DECOMPRESS_OK,   3},
    {"lz4, linked blocks",                  CODEC_LZ4,    0, "04224d18 40 40 82 03000080 616263 00000000",
     DECOMPRESS_DATA,                                                                                                                     0},
    {"lz4, reserved bit",                   CODEC_LZ4,    0, "04224d18 61 40 82 03000080 616263 00000000",
     DECOMPRESS_DATA,                                                                                                                     0},
    {"lz4, block size code 3",              CODEC_LZ4,    0, "04224d18 60 30 82 03000080 616263 00000000",
     DECOMPRESS_DATA,                                                                                                                     0},
    {"lz4, version 2",                      CODEC_LZ4,    0, "04224d18 a0 40 82 03000080 616263 00000000",               DECOMPRESS_DATA,
     0                                                                                                                                     },
    {"lz4, no end mark",                    CODEC_LZ4,    2, "04224d18 60 40 82 03000080 616263",                        DECOMPRESS_DATA, 3},
    {"lz4, block above the maximum",        CODEC_LZ4,    2, "04224d18 60 40 82 01000180 61",                            DECOMPRESS_DATA,
     0                                                                                                                                     },
    {"lz4, block longer than the rest",     CODEC_LZ4,    2, "04224d18 60 40 82 04000080 616263",
     DECOMPRESS_DATA,                                                                                                                     0},
    {"lz4, content size",                   CODEC_LZ4,    0,
     "04224d18 68 40 0300000000000000 00 03000080 616263 00000000",                                                      DECOMPRESS_OK,   3},
    {"lz4, block checksum",                 CODEC_LZ4,    0, "04224d18 70 40 00 03000080 616263 ff53d132 00000000",
     DECOMPRESS_OK,                                                                                                                       3},
    {"lz4, wrong block checksum",           CODEC_LZ4,    0,
     "04224d18 70 40 00 03000080 616263 ff53d133 00000000",                                                              DECOMPRESS_DATA, 0},
    {"lz4, content checksum not looked at", CODEC_LZ4,    0,
     "04224d18 64 40 00 03000080 616263 00000000 01020304",                                                              DECOMPRESS_OK,   3},
    {"lz4, content checksum missing",       CODEC_LZ4,    0,
     "04224d18 64 40 00 03000080 616263 00000000 0102",                                                                  DECOMPRESS_DATA, 3},
    {"lz4, nothing",                        CODEC_LZ4,    2, "",                                                         DECOMPRESS_DATA, 0},
    {"snappy, one bare block",              CODEC_SNAPPY, 2, "03 08 616263",                                             DECOMPRESS_OK,   3},
    {"snappy, xerial",                      CODEC_SNAPPY, 2, "82534e4150505900 00000001 00000001 00000005 03 08 616263",
     DECOMPRESS_OK,                                                                                                                       3},
    {"snappy, xerial twice",                CODEC_SNAPPY, 2,
     "82534e4150505900 00000001 00000001 00000005 03 08 616263"
     "82534e4150505900 00000001 00000001 00000005 03 08 616263",                                                         DECOMPRESS_OK,   6},
    {"snappy, later header of version 0",   CODEC_SNAPPY, 2,
     "82534e4150505900 00000001 00000001 00000005 03 08 616263"
     "82534e4150505900 00000000 00000001",                                                                               DECOMPRESS_DATA, 3},
    {"snappy, negative chunk",              CODEC_SNAPPY, 2, "82534e4150505900 00000001 00000001 ffffffff",
     DECOMPRESS_DATA,                                                                                                                     0},
    {"snappy, cut chunk",                   CODEC_SNAPPY, 2, "82534e4150505900 00000001 00000001 00000005 03 08 6162",
     DECOMPRESS_DATA,                                                                                                                     0},
    {"snappy, cut chunk length",            CODEC_SNAPPY, 2, "82534e4150505900 00000001 00000001 000000",
     DECOMPRESS_OK,                                                                                                                       0},
    {"snappy, 2 GiB declared",              CODEC_SNAPPY, 2, "ffffffff07 08 616263",                                     DECOMPRESS_DATA, 0},
    {"snappy, nothing",                     CODEC_SNAPPY, 2, "",                                                         DECOMPRESS_DATA, 0},
    {"gzip, nothing",                       CODEC_GZIP,   2, "",                                                         DECOMPRESS_DATA, 0},
    {"zstd, nothing",                       CODEC_ZSTD,   2, "",                                                         DECOMPRESS_OK,   0},
    {"zstd, a window of 2^31",              CODEC_ZSTD,   2, "28b52ffd 00 a8 190000 616263",                             DECOMPRESS_DATA, 0},
    {"zstd, no frame",                      CODEC_ZSTD,   2, "28b52ffe 00 a8 190000 616263",                             DECOMPRESS_DATA, 0},
};

static void framings(void **state)
{
    struct test_world world;
    test_begin(&world);
    for (uint32_t i = 0; i < ARRAY_SIZE(framing_cases); i++) {
        uint8_t bytes[256];
        struct view in = test_hex(framing_cases[i].hex, bytes, sizeof(bytes));
        struct sink out;
        sink_init(&out, &world.mem, MIB);
        struct decompress_options how = {framing_cases[i].codec, framing_cases[i].magic, MIB};
        enum decompress_fault fault = unpack(&world.work, how, in, 4096, &out);
        if (fault != framing_cases[i].fault || out.size_bytes != framing_cases[i].size)
            fail_msg("%s: fault %d, %u bytes", framing_cases[i].what, (int)fault, out.size_bytes);
        sink_free(&out);
    }
    test_end(&world);
}

static void gzip_members(void **state)
{
    struct test_world world;
    test_begin(&world);
    struct compress_options how = {CODEC_GZIP, COMPRESS_LEVEL_DEFAULT, 2};
    struct decompress_options back = {CODEC_GZIP, 2, 1000};
    struct sink packed, out;
    sink_init(&packed, &world.mem, 1000);
    sink_init(&out, &world.mem, 1000);
    assert_true(pack(&world.work, how, VIEW("abc"), 10, &packed));
    uint32_t first = packed.size_bytes;
    assert_true(pack(&world.work, how, VIEW("defg"), 10, &packed));
    assert_int_equal(unpack(&world.work, back, sink_view(&packed), 2, &out), DECOMPRESS_OK);
    assert_int_equal(out.size_bytes, 7);
    assert_memory_equal(out.data, "abcdefg", 7);
    /* What is no member behind the last one is ignored, a cut one is not. */
    sink_reset(&out);
    packed.data[first] = 0;
    assert_int_equal(unpack(&world.work, back, sink_view(&packed), 100, &out), DECOMPRESS_OK);
    assert_int_equal(out.size_bytes, 3);
    packed.data[first] = 0x1f;
    packed.size_bytes -= 9;
    sink_reset(&out);
    assert_int_equal(unpack(&world.work, back, sink_view(&packed), 100, &out), DECOMPRESS_SHORT);
    packed.size_bytes = first - 3; /* In the trailer. */
    sink_reset(&out);
    assert_int_equal(unpack(&world.work, back, sink_view(&packed), 100, &out), DECOMPRESS_SHORT);
    assert_int_equal(out.size_bytes, 3);
    sink_free(&packed);
    sink_free(&out);
    test_end(&world);
}

/* ---- allocations that fail ------------------------------------------------------------------ */

struct torture {
    struct mem mem;
    struct mem *below;
    uint32_t left; /* Allocations until one fails; it and all later ones do. */
};

static void *torture_get(struct mem *mem, size_t size_bytes)
{
    struct torture *torture = container_of(mem, struct torture, mem);
    if (torture->left == 0) return NULL;
    torture->left--;
    return mem_get(torture->below, size_bytes);
}

static void torture_put(struct mem *mem, void *block, size_t size_bytes)
{
    struct torture *torture = container_of(mem, struct torture, mem);
    mem_put(torture->below, block, size_bytes);
}

static void failed_allocations(void **state)
{
    uint8_t *text = make_text(200000, 9);
    for (uint32_t codec = CODEC_GZIP; codec < CODEC_COUNT; codec++) {
        struct compress_options how = {(enum codec)codec, COMPRESS_LEVEL_DEFAULT, 2};
        struct decompress_options back = {(enum codec)codec, 2, MIB};
        struct test_world world;
        test_begin(&world);
        struct sink packed;
        sink_init(&packed, &world.mem, MIB);
        assert_true(pack(&world.work, how, view_of(text, 200000), 5000, &packed));
        bool packs = false, unpacks = false;
        uint32_t n = 0;
        for (; n < 100 && !(packs && unpacks); n++) {
            struct torture torture = {
                .mem = {.get = torture_get, .put = torture_put},
                  .below = &world.mem, .left = n
            };
            struct compress_work work;
            compress_work_init(&work, &torture.mem);
            struct sink out;
            sink_init(&out, &torture.mem, MIB);
            packs = pack(&work, how, view_of(text, 200000), 5000, &out);
            assert_true(packs || out.fault != SINK_LIMIT);
            sink_free(&out);

            torture.left = n;
            sink_init(&out, &world.mem, MIB);
            enum decompress_fault fault = unpack(&work, back, sink_view(&packed), 4096, &out);
            unpacks = fault == DECOMPRESS_OK;
            assert_true(unpacks || fault == DECOMPRESS_MEMORY);
            sink_free(&out);
            compress_work_free(&work);
            assert_int_equal(torture.mem.used_bytes, 0);
        }
        assert_in_range(n, 2, 99);
        sink_free(&packed);
        test_end(&world);
    }
    free(text);
}

static void names_and_levels(void **state)
{
    enum codec codec = CODEC_COUNT;
    assert_true(compress_by_name(VIEW("uncompressed"), &codec) && codec == CODEC_NONE);
    assert_true(compress_by_name(VIEW("zstd"), &codec) && codec == CODEC_ZSTD);
    assert_false(compress_by_name(VIEW("producer"), &codec));
    assert_true(compress_level_valid(CODEC_GZIP, -1));
    assert_false(compress_level_valid(CODEC_GZIP, 0));
    assert_false(compress_level_valid(CODEC_GZIP, 10));
    assert_true(compress_level_valid(CODEC_LZ4, 17));
    assert_false(compress_level_valid(CODEC_LZ4, 0));
    assert_true(compress_level_valid(CODEC_ZSTD, -131072));
    assert_false(compress_level_valid(CODEC_ZSTD, 23));
}

static void xxhash_vectors(void **state)
{
    assert_int_equal(xxhash_32((const uint8_t *)"", 0), 0x02cc5d05);
    assert_int_equal(xxhash_32((const uint8_t *)"abc", 3), 0x32d153ff);
    assert_int_equal(xxhash_32((const uint8_t *)"Nobody inspects the spammish repetition", 39),
                     0xe2293b2f);
    const uint8_t descriptor[] = {0x60, 0x40};
    assert_int_equal((xxhash_32(descriptor, 2) >> 8) & 0xff, 0x82);
    const uint8_t quirk[] = {0x04, 0x22, 0x4d, 0x18, 0x60, 0x40};
    assert_int_equal((xxhash_32(quirk, 6) >> 8) & 0xff, 0x1a);
}

/* Level 22 asks libzstd for 700 MiB; a batch does not need them. */
static void highest_zstd_level_is_modest(void **state)
{
    struct test_world world;
    test_begin(&world);
    world.mem.limit_bytes = 128 * MIB;
    uint8_t *text = make_text(300000, 3);
    struct sink packed;
    sink_init(&packed, &world.mem, MIB);
    struct compress_options how = {CODEC_ZSTD, 22, 2};
    assert_true(pack(&world.work, how, view_of(text, 300000), 10000, &packed));
    print_message("zstd level 22: %llu MiB\n", (unsigned long long)world.mem.used_bytes / MIB);
    sink_free(&packed);
    free(text);
    test_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(bombs),
        cmocka_unit_test(framings),
        cmocka_unit_test(gzip_members),
        cmocka_unit_test(failed_allocations),
        cmocka_unit_test(names_and_levels),
        cmocka_unit_test(xxhash_vectors),
        cmocka_unit_test(highest_zstd_level_is_modest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
