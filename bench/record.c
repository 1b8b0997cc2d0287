/* record.c - what the CPU pays per byte for records: checksums, validation, recompression.
 *
 *   make bench-record && build/bench/record [SECONDS_EACH]
 *
 * Each line: what was done, bytes on the wire, GB/s of them, CPU seconds per GB and nanoseconds per
 * record. One thread, one batch over and over, so it is the cache's speed, not the memory's. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "record/batch_build.h"
#include "record/batch_validate.h"
#include "record/crc.h"
#include "sys/memory.h"

#define BATCH_BYTES (1000u * 1000u)

static double seconds_each = 1;

static double cpu_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct bench {
    struct mem mem;
    struct compress_work work;
    struct arena request;
    struct sink batch;
    struct sink out;
    struct batch_rules rules;
    uint32_t records;
    volatile uint32_t keep; /* So that nothing is optimised away. */
};

typedef void step(struct bench *bench);

static void crc_step(struct bench *bench)
{
    bench->keep = crc_32c(bench->batch.data, bench->batch.size_bytes);
}

static void validate_step(struct bench *bench)
{
    struct batch_verdict verdict;
    bench->keep = batch_validate(&bench->work, &bench->request, &bench->rules,
                                 sink_view(&bench->batch), &verdict);
    if (bench->keep != RECORD_OK) abort();
}

static void recompress_step(struct bench *bench)
{
    struct batch_verdict verdict;
    bench->keep = batch_validate(&bench->work, &bench->request, &bench->rules,
                                 sink_view(&bench->batch), &verdict);
    sink_reset(&bench->out);
    bench->keep = batch_recompress(&bench->work, &verdict, sink_view(&bench->batch), &bench->out);
    if (bench->keep != RECORD_OK) abort();
}

static void measure(struct bench *bench, const char *what, step *run)
{
    uint64_t rounds = 0;
    run(bench);
    double start = cpu_seconds(), spent;
    do {
        run(bench);
        rounds++;
        spent = cpu_seconds() - start;
    } while (spent < seconds_each);
    double bytes = (double)bench->batch.size_bytes * (double)rounds;
    printf("%-44s %8u bytes %8.2f GB/s %8.3f s/GB %8.1f ns/record\n", what, bench->batch.size_bytes,
           bytes / spent * 1e-9, spent / (bytes * 1e-9),
           spent * 1e9 / ((double)bench->records * (double)rounds));
}

/* A batch of about `bytes` uncompressed, of records with values of `value_bytes`. */
static void make_batch(struct bench *bench, enum codec codec, uint32_t value_bytes, uint32_t bytes)
{
    uint8_t *text = malloc(value_bytes);
    uint64_t state = 1;
    struct batch_build_options options = batch_build_plain;
    options.codec = codec;
    struct batch_build build;
    sink_reset(&bench->batch);
    batch_build_begin(&build, &bench->work, &bench->batch, &options);
    uint32_t made = 0;
    for (bench->records = 0; made < bytes; bench->records++) {
        for (uint32_t i = 0; i < value_bytes; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            text[i] = (uint8_t)("etaoin shrdlu{}\":,0123456789abcdef"[(state >> 40) % 34]);
        }
        struct record_input record = {.timestamp_ms = 1700000000000 + bench->records,
                                      .key = view_of(text, MIN(value_bytes, 8)),
                                      .value = view_of(text, value_bytes)};
        batch_build_add(&build, &record);
        made += value_bytes + 20;
    }
    struct view batch;
    if (batch_build_finish(&build, -1, &batch) != RECORD_OK) abort();
    free(text);
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[] = {100, 1024, 100 * 1024};
    static struct bench bench;
    if (argc > 1) seconds_each = strtod(argv[1], NULL);
    memory_init(&bench.mem, 0);
    compress_work_init(&bench.work, &bench.mem);
    arena_init(&bench.request, &bench.mem, 0);
    sink_init(&bench.batch, &bench.mem, 1u << 24);
    sink_init(&bench.out, &bench.mem, 1u << 24);
    bench.rules = (struct batch_rules){.produce_version = 13,
                                       .message_bytes_max = 1u << 24,
                                       .codec = BATCH_CODEC_PRODUCER,
                                       .level = COMPRESS_LEVEL_DEFAULT,
                                       .before_max_ms = INT64_MAX,
                                       .after_max_ms = INT64_MAX,
                                       .wall_ms = 1700000000000};
    make_batch(&bench, CODEC_NONE, 100, BATCH_BYTES);
    measure(&bench, "crc-32c of a 1 MB batch", crc_step);
    bench.rules.header_only = true;
    measure(&bench, "validate header, 1 MB of 100 B records", validate_step);
    bench.rules.header_only = false;
    for (uint32_t codec = CODEC_NONE; codec < CODEC_COUNT; codec++) {
        for (uint32_t i = 0; i < ARRAY_SIZE(sizes); i++) {
            char what[64];
            make_batch(&bench, (enum codec)codec, sizes[i], BATCH_BYTES);
            (void)snprintf(what, sizeof(what), "validate, 1 MB of %u B records, %s", sizes[i],
                           compress_name((enum codec)codec));
            measure(&bench, what, validate_step);
        }
    }
    make_batch(&bench, CODEC_NONE, 100, BATCH_BYTES);
    for (uint32_t codec = CODEC_GZIP; codec < CODEC_COUNT; codec++) {
        char what[64];
        bench.rules.codec = (int8_t)codec;
        (void)snprintf(what, sizeof(what), "validate and compress 100 B records, %s",
                       compress_name((enum codec)codec));
        measure(&bench, what, recompress_step);
    }
    return 0;
}
