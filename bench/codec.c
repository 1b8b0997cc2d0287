/* codec.c - workload W1 for our own engine: nanoseconds or instructions to read and write messages.
 *
 *   codec samples DIRECTORY    write each case's variants to DIRECTORY/NAME: length (int32), bytes,
 *                              again and again; the other libraries' programs read them
 *   codec time MILLISECONDS    a line `NAME decode|encode NANOSECONDS` per case, the fastest of 15
 *                              rounds of so many milliseconds each
 *   codec count                for callgrind: a dump per case and direction of COUNTED messages
 *
 * Decode: the struct and all that hangs on it, ready to be read. Encode: size and bytes, into a
 * buffer that is there. What is decoded is encoded again and must be the same bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <valgrind/callgrind.h>

#include "bench/lib/client.h"
#include "bench/lib/samples.h"
#include "sys/memory.h"

#define ROUNDS  15
#define COUNTED 6400u /* A multiple of the variants. */

struct codec {
    struct mem mem;
    const struct wire_form *form;
    struct view bytes[SAMPLES_VARIANTS];
    void *decoded[SAMPLES_VARIANTS]; /* For encoding. */
    void *out;                       /* Where to decode to. */
    uint8_t *buffer;                 /* Where to encode to. */
    struct sink sink;                /* Holds the bytes. */
    struct arena request;
    struct arena kept;
};

static void decode(struct codec *codec, uint32_t variant, void *out, struct arena *arena)
{
    struct reader in = reader_of(codec->bytes[variant]);
    if (!wire_decode(&in, codec->form, arena, out) || reader_left(&in) != 0)
        client_die("a sample cannot be read");
}

static void decode_one(struct codec *codec, uint32_t variant)
{
    arena_reset(&codec->request);
    decode(codec, variant, codec->out, &codec->request);
}

static void encode_one(struct codec *codec, uint32_t variant)
{
    uint32_t gaps;
    size_t size = wire_size(codec->form, codec->decoded[variant]);
    size_t used = wire_encode(codec->form, codec->decoded[variant], codec->buffer, NULL, 0, &gaps);
    if (used != size || size != codec->bytes[variant].size) client_die("a sample changed its size");
}

static void prepare(struct codec *codec, const struct sample_case *sample)
{
    uint32_t starts[SAMPLES_VARIANTS + 1], largest = 0;
    codec->form = wire_form(sample->message, sample->version);
    sink_reset(&codec->sink);
    arena_reset(&codec->kept);
    for (uint32_t i = 0; i < SAMPLES_VARIANTS; i++) {
        starts[i] = codec->sink.size_bytes;
        samples_encode(sample, i, &codec->sink);
        largest = MAX(largest, codec->sink.size_bytes - starts[i]);
    }
    starts[SAMPLES_VARIANTS] = codec->sink.size_bytes;
    codec->out = arena_get(&codec->kept, sample->message->size_bytes);
    codec->buffer = arena_get(&codec->kept, largest);
    for (uint32_t i = 0; i < SAMPLES_VARIANTS; i++) {
        codec->bytes[i] = view_of(codec->sink.data + starts[i], starts[i + 1] - starts[i]);
        codec->decoded[i] = arena_get(&codec->kept, sample->message->size_bytes);
        decode(codec, i, codec->decoded[i], &codec->kept);
        encode_one(codec, i);
        if (memcmp(codec->buffer, codec->bytes[i].data, codec->bytes[i].size) != 0)
            client_die("%s is not written as it was read", sample->name);
    }
}

/* ---- three ways ------------------------------------------------------------------------------ */

typedef void one(struct codec *codec, uint32_t variant);

/* The wall's time, as the other libraries' harnesses take it. */
static double now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double time_one(struct codec *codec, one *run, double round_ns)
{
    double fastest = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint64_t done = 0;
        double start = now_ns(), spent;
        do {
            for (uint32_t i = 0; i < 16 * SAMPLES_VARIANTS; i++)
                run(codec, i % SAMPLES_VARIANTS);
            done += 16 * (uint64_t)SAMPLES_VARIANTS;
            spent = now_ns() - start;
        } while (spent < round_ns);
        if (round == 0 || spent / (double)done < fastest) fastest = spent / (double)done;
    }
    return fastest;
}

static void time_case(struct codec *codec, const struct sample_case *sample, double round_ns)
{
    printf("%s decode %.2f\n", sample->name, time_one(codec, decode_one, round_ns));
    printf("%s encode %.2f\n", sample->name, time_one(codec, encode_one, round_ns));
    (void)fflush(stdout);
}

static void count_case(struct codec *codec, const struct sample_case *sample)
{
    static one *const runs[] = {decode_one, encode_one};
    static const char *const names[] = {"decode", "encode"};
    for (uint32_t way = 0; way < ARRAY_SIZE(runs); way++) {
        char name[128];
        (void)snprintf(name, sizeof(name), "%s %s", sample->name, names[way]);
        CALLGRIND_ZERO_STATS;
        for (uint32_t i = 0; i < COUNTED; i++)
            runs[way](codec, i % SAMPLES_VARIANTS);
        CALLGRIND_DUMP_STATS_AT(name);
    }
}

static void write_case(const struct codec *codec, const struct sample_case *sample, const char *dir)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, sample->name);
    FILE *file = fopen(path, "wb");
    if (file == NULL) client_die("could not write %s", path);
    for (uint32_t i = 0; i < SAMPLES_VARIANTS; i++) {
        uint8_t length[4];
        store_be32(length, codec->bytes[i].size);
        (void)fwrite(length, 1, sizeof(length), file);
        (void)fwrite(codec->bytes[i].data, 1, codec->bytes[i].size, file);
    }
    if (fclose(file) != 0) client_die("could not write %s", path);
}

int main(int argc, char **argv)
{
    static struct codec codec;
    const char *way = argc > 1 ? argv[1] : "";
    bool counts = strcmp(way, "count") == 0 && argc == 2;
    bool times = strcmp(way, "time") == 0 && argc == 3;
    bool writes = strcmp(way, "samples") == 0 && argc == 3;
    if (!counts && !times && !writes)
        client_die("usage: codec samples DIRECTORY | time MILLISECONDS | count");
    memory_init(&codec.mem, 0);
    sink_init(&codec.sink, &codec.mem, 1u << 26);
    arena_init(&codec.request, &codec.mem, 0);
    arena_init(&codec.kept, &codec.mem, 0);
    for (uint32_t i = 0; i < samples_case_count; i++) {
        prepare(&codec, &samples_cases[i]);
        if (counts) count_case(&codec, &samples_cases[i]);
        if (times) time_case(&codec, &samples_cases[i], strtod(argv[2], NULL) * 1e6);
        if (writes) write_case(&codec, &samples_cases[i], argv[2]);
    }
    return 0;
}
