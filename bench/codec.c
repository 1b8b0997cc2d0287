/* codec.c - workload W1 for our own engine: nanoseconds or instructions to read and write messages.
 *
 *   codec samples DIRECTORY    write each case's variants to DIRECTORY/NAME: length (int32), bytes,
 *                              again and again; the other libraries' programs read them
 *   codec time MILLISECONDS    a line `NAME WAY NANOSECONDS` per case and way, the fastest of 15
 *                              rounds of so many milliseconds each
 *   codec count                for callgrind: a dump per case and way of COUNTED messages
 *
 * decode  the struct and all that hangs on it, ready to be read
 * encode  size and bytes, into a buffer that is there
 * copy    the bytes of encode by a bare memcpy: the least that encode takes with the records inside
 * send    the whole frame as it goes to a socket: the records stay where they are, the other bytes
 *         are written around their gaps
 *
 * What is decoded is encoded again and must be the same bytes. Copy and send are run where there
 * are records. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <valgrind/callgrind.h>

#include "bench/lib/client.h"
#include "bench/lib/samples.h"
#include "gen/request_header.h"
#include "gen/response_header.h"
#include "sys/memory.h"

#define ROUNDS  15
#define COUNTED 6400u /* A multiple of the variants. */
#define GAPS    64u

struct codec {
    struct mem mem;
    const struct wire_form *form, *header;
    struct view bytes[SAMPLES_VARIANTS];
    void *decoded[SAMPLES_VARIANTS]; /* For encoding. */
    void *outside[SAMPLES_VARIANTS]; /* For sending: the records are external. */
    struct request_header request_header;
    struct response_header response_header;
    const void *head; /* One of the two, by `header`. */
    void *out;        /* Where to decode to. */
    uint8_t *buffer;  /* Where to encode to. */
    struct wire_gap gaps[GAPS];
    uint32_t gap_count;
    struct sink sink; /* Holds the bytes. */
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

static void copy_one(struct codec *codec, uint32_t variant)
{
    memcpy(codec->buffer, codec->bytes[variant].data, codec->bytes[variant].size);
}

/* Returns the bytes written; the others are in codec->gaps. */
static size_t send_frame(struct codec *codec, uint32_t variant)
{
    const void *message = codec->outside[variant];
    struct wire_external external;
    size_t size = wire_size_external(codec->form, message, &external);
    if (external.count > GAPS) client_die("a sample has more records than gaps are kept for");
    size_t head = wire_size(codec->header, codec->head);
    store_be32(codec->buffer, (uint32_t)(head + size));
    uint8_t *at = codec->buffer + 4;
    at += wire_encode(codec->header, codec->head, at, NULL, 0, NULL);
    at += wire_encode(codec->form, message, at, codec->gaps, GAPS, &codec->gap_count);
    if ((size_t)(at - codec->buffer) != 4 + head + size - external.bytes)
        client_die("a sample changed its size");
    return (size_t)(at - codec->buffer);
}

static void send_one(struct codec *codec, uint32_t variant)
{
    (void)send_frame(codec, variant);
}

/* The body of a sent frame, put together again, is the sample. */
static void check_sent(struct codec *codec, uint32_t variant, const char *name)
{
    size_t head = 4 + wire_size(codec->header, codec->head),
           own = send_frame(codec, variant) - head;
    const uint8_t *from = codec->buffer + head, *to = codec->bytes[variant].data;
    size_t done = 0;
    bool same = codec->gap_count > 0;
    for (uint32_t i = 0; i < codec->gap_count; i++) {
        const struct wire_gap *gap = &codec->gaps[i];
        same = same && memcmp(to, from + done, gap->at - done) == 0;
        to += gap->at - done;
        same = same && memcmp(to, gap->token, gap->size) == 0;
        to += gap->size;
        done = gap->at;
    }
    same = same && memcmp(to, from + done, own - done) == 0;
    to += own - done;
    if (!same || to != codec->bytes[variant].data + codec->bytes[variant].size)
        client_die("%s is not sent as it was read", name);
}

static void prepare_sending(struct codec *codec, const struct sample_case *sample)
{
    const struct wire_api *api = wire_api(sample->message->api_key);
    bool request = sample->message->kind == WIRE_REQUEST;
    codec->request_header =
        (struct request_header){api->key, sample->version, 7, view_of_string("codec"), VIEW_EMPTY};
    codec->response_header = (struct response_header){7, VIEW_EMPTY};
    codec->head = request ? (void *)&codec->request_header : (void *)&codec->response_header;
    codec->header =
        request
            ? wire_form(&wire_request_header, wire_request_header_version(api, sample->version))
            : wire_form(&wire_response_header, wire_response_header_version(api, sample->version));
    for (uint32_t i = 0; i < SAMPLES_VARIANTS; i++) {
        codec->outside[i] = arena_get(&codec->kept, sample->message->size_bytes);
        decode(codec, i, codec->outside[i], &codec->kept);
        sample->outside(codec->outside[i]);
        check_sent(codec, i, sample->name);
    }
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
    codec->buffer = arena_get(&codec->kept, largest + 64); /* Sent with frame and header. */
    for (uint32_t i = 0; i < SAMPLES_VARIANTS; i++) {
        codec->bytes[i] = view_of(codec->sink.data + starts[i], starts[i + 1] - starts[i]);
        codec->decoded[i] = arena_get(&codec->kept, sample->message->size_bytes);
        decode(codec, i, codec->decoded[i], &codec->kept);
        encode_one(codec, i);
        if (memcmp(codec->buffer, codec->bytes[i].data, codec->bytes[i].size) != 0)
            client_die("%s is not written as it was read", sample->name);
    }
    if (sample->outside != NULL) prepare_sending(codec, sample);
}

/* ---- the ways -------------------------------------------------------------------------------- */

typedef void one(struct codec *codec, uint32_t variant);

static const struct way {
    const char *name;
    one *run;
    bool records; /* Only with records. */
} ways[] = {
    {"decode", decode_one, false},
    {"encode", encode_one, false},
    {"copy",   copy_one,   true },
    {"send",   send_one,   true },
};

static bool has_way(const struct sample_case *sample, const struct way *way)
{
    return !way->records || sample->outside != NULL;
}

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
    for (const struct way *way = ways; way != ways + ARRAY_SIZE(ways); way++)
        if (has_way(sample, way))
            printf("%s %s %.2f\n", sample->name, way->name, time_one(codec, way->run, round_ns));
    (void)fflush(stdout);
}

static void count_case(struct codec *codec, const struct sample_case *sample)
{
    for (const struct way *way = ways; way != ways + ARRAY_SIZE(ways); way++) {
        char name[128];
        if (!has_way(sample, way)) continue;
        (void)snprintf(name, sizeof(name), "%s %s", sample->name, way->name);
        CALLGRIND_ZERO_STATS;
        for (uint32_t i = 0; i < COUNTED; i++)
            way->run(codec, i % SAMPLES_VARIANTS);
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
