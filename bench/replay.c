/* replay.c - load for one server, Dohle, Apache Kafka or a floor, and what it cost: one JSON line.
 *
 *   replay create HOST:PORT [options]      make the topic
 *   replay first HOST:PORT                 wait for the server, make a topic, produce one record
 *   replay produce HOST:PORT [options]     one batch, again and again
 *   replay fetch HOST:PORT [options]       read the topic from its start, around and around
 *   replay park HOST:PORT [options]        wait for records of an empty topic, again and again
 *   replay verify HOST:PORT [options]      read all back: every batch's CRC, offsets without a gap
 *
 * The frames are made once, before the load (drive.h). `--follow` (produce, one partition) adds a
 * consumer that waits for the records, and the latency from when a record was due until it was
 * delivered. `--recorded FILE` sends a frame that a client made (lib/recorded.py). */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench/lib/client.h"
#include "bench/lib/drive.h"
#include "bench/lib/requests.h"
#include "record/batch.h"
#include "sys/memory.h"

struct replay {
    char host[64];
    uint16_t port;
    const char *mode;
    const char *topic;
    uint32_t partitions, records, record_bytes, connections, depth, bytes_max;
    uint64_t requests, warm;
    enum codec codec;
    const char *recorded; /* A file with the frame to produce; NULL: it is made. */
    double seconds, warmup_s, rate;
    pid_t server; /* Whose CPU is read; 0: nobody's. */
    bool follow;
    struct mem mem;
    struct sink frames;   /* The connections' frames, one after the other. */
    uint32_t *starts;     /* Where each begins, and the end. */
    uint32_t batch_bytes; /* Of one batch on the wire: what a fetch brings several of. */
    double server_cpu_s;  /* At the beginning, then the difference. */
    struct histogram delivered;
    struct drive_result result;
};

/* ---- places in answers ----------------------------------------------------------------------- */

static bool produce_answer(struct drive_link *link, struct view head, uint32_t size)
{
    const struct replay *replay = link->context;
    (void)size;
    return produce_answer_fine(head, replay->topic, (int16_t)load_be16(link->frame.data + 6));
}

/* Fetch v12: correlation, tags, throttle time: then the error. */
static bool error_is_none(struct view head)
{
    return head.size >= 4 + 1 + 4 + 2 && load_be16(head.data + 4 + 1 + 4) == 0;
}

static bool park_answer(struct drive_link *link, struct view head, uint32_t size)
{
    (void)link;
    (void)size;
    return error_is_none(head);
}

/* Whole batches were read, all of one size: the next fetch goes on behind them. */
static bool fetch_answer(struct drive_link *link, struct view head, uint32_t size)
{
    const struct replay *replay = link->context;
    uint32_t batches = size / replay->batch_bytes;
    link->offset += (uint64_t)batches * replay->records;
    if (link->offset >= replay->requests * replay->records) link->offset = 0;
    return error_is_none(head) && batches > 0;
}

/* The follower: everything below the high watermark has been delivered. */
static bool follow_answer(struct drive_link *link, struct view head)
{
    struct replay *replay = link->context;
    uint32_t at = 4 + 1 + 4 + 2 + 4 + 1 + 1 + (uint32_t)strlen(replay->topic) + 1 + 4 + 2;
    if (!error_is_none(head) || head.size < at + 8) return false;
    uint64_t end = load_be64(head.data + at);
    int64_t now_ns = drive_now_ns();
    for (; link->offset < end; link->offset++) {
        uint64_t request = link->offset / replay->records;
        if (request >= link->leader->sent) break;
        histogram_add(&replay->delivered,
                      now_ns - link->leader->sent_ns[request % DRIVE_DEPTH_MAX]);
    }
    return true;
}

static bool produce_or_follow(struct drive_link *link, struct view head, uint32_t size)
{
    return link->follower ? follow_answer(link, head) : produce_answer(link, head, size);
}

static void patch_offset(struct drive_link *link, uint8_t *at)
{
    store_be64(at + fetch_offset_at(link->frame), link->offset);
}

static void patch_follower(struct drive_link *link, uint8_t *at)
{
    if (link->follower) patch_offset(link, at);
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* As a client sent it; only the correlation id is ours when it leaves. */
static void recorded_frame(struct sink *out, const char *path)
{
    FILE *file = fopen(path, "re");
    uint8_t *room;
    size_t got;
    if (file == NULL) client_die("there is no recorded frame in %s", path);
    do {
        room = sink_room(out, 1u << 16);
        if (room == NULL) client_die("no memory for a frame");
        got = fread(room, 1, 1u << 16, file);
        sink_used(out, (uint32_t)got);
    } while (got > 0);
    (void)fclose(file);
}

static void frame_of(struct replay *replay, uint32_t number, bool follower)
{
    const struct produce_shape produce = {.topic = replay->topic,
                                          .partition = (int32_t)(number % replay->partitions),
                                          .records = replay->records,
                                          .record_bytes = replay->record_bytes,
                                          .acks = -1,
                                          .codec = replay->codec};
    const struct fetch_shape fetch = {.topic = replay->topic,
                                      .partition = (int32_t)(number % replay->partitions),
                                      .bytes_max = (int32_t)replay->bytes_max,
                                      .wait_ms = 500};
    if (follower || strcmp(replay->mode, "produce") != 0)
        fetch_frame(&replay->frames, &fetch);
    else if (replay->recorded != NULL)
        recorded_frame(&replay->frames, replay->recorded);
    else
        produce_frame(&replay->frames, &produce);
}

static void make_frames(struct replay *replay)
{
    uint32_t count = replay->connections + 1;
    replay->starts = calloc(count + 1, sizeof(*replay->starts));
    if (replay->starts == NULL) client_die("no memory for frames");
    for (uint32_t i = 0; i < count; i++) {
        replay->starts[i] = replay->frames.size_bytes;
        frame_of(replay, i, i == replay->connections);
    }
    replay->starts[count] = replay->frames.size_bytes;
}

static struct view frame_at(const struct replay *replay, uint32_t number)
{
    return view_of(replay->frames.data + replay->starts[number],
                   replay->starts[number + 1] - replay->starts[number]);
}

static struct view first_frame(void *context, uint32_t number)
{
    return frame_at(context, number);
}

/* ---- the load -------------------------------------------------------------------------------- */

static double server_cpu_s(pid_t pid)
{
    clockid_t clock;
    struct timespec spent;
    if (pid == 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &spent) != 0)
        return 0;
    return (double)spent.tv_sec + (double)spent.tv_nsec * 1e-9;
}

static void mark(void *context, bool begins)
{
    struct replay *replay = context;
    double now_s = server_cpu_s(replay->server);
    replay->server_cpu_s = begins ? now_s : now_s - replay->server_cpu_s;
    if (begins) memset(&replay->delivered, 0, sizeof(replay->delivered));
}

static void put_latency(const char *name, const struct histogram *histogram)
{
    printf(", \"%sp50_us\": %.1f, \"%sp99_us\": %.1f, \"%sp999_us\": %.1f, \"%smax_us\": %.1f",
           name, (double)histogram_at(histogram, 500) / 1e3, name,
           (double)histogram_at(histogram, 990) / 1e3, name,
           (double)histogram_at(histogram, 999) / 1e3, name, (double)histogram->max_ns / 1e3);
}

static int load(struct replay *replay)
{
    struct drive_options options = {.host = replay->host,
                                    .port = replay->port,
                                    .connections = replay->connections,
                                    .depth = replay->depth,
                                    .rate = replay->rate,
                                    .seconds = replay->seconds,
                                    .warmup_s = replay->warmup_s,
                                    .warm = replay->warm,
                                    .follower = replay->follow,
                                    .mem = &replay->mem,
                                    .frame = first_frame,
                                    .context = replay};
    make_frames(replay);
    if (strcmp(replay->mode, "produce") == 0) {
        options.requests = replay->requests;
        options.answer = produce_or_follow;
        options.patch = patch_follower;
    } else if (strcmp(replay->mode, "park") == 0) {
        options.answer = park_answer;
    } else {
        options.answer = fetch_answer;
        options.patch = patch_offset;
    }
    const struct drive_result *result = &replay->result;
    drive_run(&options, mark, &replay->result);
    printf("{\"requests\": %llu, \"all\": %llu, \"errors\": %llu, \"seconds\": %.3f, "
           "\"answer_bytes\": %llu, \"client_cpu_s\": %.4f, \"server_cpu_s\": %.4f, "
           "\"warm\": %llu",
           (unsigned long long)result->requests, (unsigned long long)result->all,
           (unsigned long long)result->errors, result->seconds,
           (unsigned long long)result->answer_bytes, result->cpu_s, replay->server_cpu_s,
           (unsigned long long)result->warm);
    put_latency("", &result->latency);
    if (replay->follow) put_latency("delivered_", &replay->delivered);
    printf("}\n");
    return result->errors == 0 ? 0 : 1;
}

/* ---- reading back ---------------------------------------------------------------------------- */

/* Count the whole batches' records; `*offset` goes behind them. */
static uint64_t count_records(struct view records, int64_t *offset)
{
    uint64_t count = 0;
    uint32_t at = 0;
    struct batch_header header;
    while (records.size - at >= BATCH_HEADER_BYTES) {
        struct view rest = view_of(records.data + at, records.size - at);
        if (batch_header_load(rest, &header) != RECORD_OK) client_die("a batch that is none");
        uint32_t size = batch_size(&header);
        if (size > rest.size) break; /* Cut off at the end. */
        if (header.base_offset != *offset) client_die("offset %lld is missing", (long long)*offset);
        if (!batch_crc_valid(&header, view_of(rest.data, size))) client_die("a wrong CRC");
        *offset += header.last_offset_delta + 1;
        count += (uint64_t)header.record_count;
        at += size;
    }
    return count;
}

static uint64_t read_partition(struct replay *replay, struct client *client, int32_t partition)
{
    int64_t end = end_offset_call(client, replay->topic, partition), offset = 0;
    uint64_t count = 0;
    while (offset < end) {
        struct fetch_shape shape = {.topic = replay->topic,
                                    .partition = partition,
                                    .offset = offset,
                                    .bytes_max = 8 << 20,
                                    .wait_ms = 500};
        struct view records;
        int64_t before = offset;
        records = fetch_call(client, &shape);
        count += count_records(records, &offset);
        if (offset == before) client_die("nothing more can be read at %lld", (long long)offset);
    }
    return count;
}

static int verify(struct replay *replay)
{
    struct client client;
    uint64_t records = 0;
    client_open(&client, &replay->mem, replay->host, replay->port);
    for (uint32_t i = 0; i < replay->partitions; i++)
        records += read_partition(replay, &client, (int32_t)i);
    printf("{\"records\": %llu}\n", (unsigned long long)records);
    client_close(&client);
    return 0;
}

/* Until a record is acknowledged: a server that has just begun may refuse for a while. */
static int first(struct replay *replay)
{
    const struct produce_shape shape = {
        .topic = replay->topic, .records = 1, .record_bytes = 100, .acks = -1};
    struct client client;
    client_wait(replay->host, replay->port);
    client_open(&client, &replay->mem, replay->host, replay->port);
    do {
        create_topic_try(&client, replay->topic, 1);
        sink_reset(&client.frame);
        produce_frame(&client.frame, &shape);
        client_exchange_frame(&client);
    } while (produce_error(&client) != -1);
    client_close(&client);
    return 0;
}

/* Kafka answers before all partitions can be written to. */
static void wait_for_leaders(const struct replay *replay, struct client *client)
{
    int64_t offset;
    for (uint32_t i = 0; i < replay->partitions; i++)
        while (end_offset_try(client, replay->topic, (int32_t)i, &offset) != 0)
            client_pause();
}

static int create(struct replay *replay)
{
    struct client client;
    client_open(&client, &replay->mem, replay->host, replay->port);
    int64_t start_ns = drive_now_ns();
    double cpu_s = server_cpu_s(replay->server);
    create_topic_call(&client, replay->topic, (int32_t)replay->partitions);
    printf("{\"seconds\": %.4f, \"server_cpu_s\": %.4f}\n",
           (double)(drive_now_ns() - start_ns) * 1e-9, server_cpu_s(replay->server) - cpu_s);
    wait_for_leaders(replay, &client);
    client_close(&client);
    return 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static const struct option option_names[] = {
    {"topic",       1, NULL, 't'},
    {"partitions",  1, NULL, 'p'},
    {"records",     1, NULL, 'r'},
    {"size",        1, NULL, 's'},
    {"connections", 1, NULL, 'c'},
    {"depth",       1, NULL, 'd'},
    {"max-bytes",   1, NULL, 'b'},
    {"requests",    1, NULL, 'n'},
    {"seconds",     1, NULL, 'S'},
    {"warmup",      1, NULL, 'w'},
    {"warm",        1, NULL, 'W'},
    {"codec",       1, NULL, 'C'},
    {"recorded",    1, NULL, 'F'},
    {"rate",        1, NULL, 'R'},
    {"server-pid",  1, NULL, 'P'},
    {"follow",      0, NULL, 'f'},
    {NULL,          0, NULL, 0  },
};

static void option(struct replay *replay, int which)
{
    double number = optarg == NULL ? 0 : strtod(optarg, NULL);
    switch (which) {
    case 't': replay->topic = optarg; break;
    case 'p': replay->partitions = (uint32_t)number; break;
    case 'r': replay->records = (uint32_t)number; break;
    case 's': replay->record_bytes = (uint32_t)number; break;
    case 'c': replay->connections = (uint32_t)number; break;
    case 'd': replay->depth = (uint32_t)number; break;
    case 'b': replay->bytes_max = (uint32_t)number; break;
    case 'n': replay->requests = (uint64_t)number; break;
    case 'S': replay->seconds = number; break;
    case 'w': replay->warmup_s = number; break;
    case 'W': replay->warm = (uint64_t)number; break;
    case 'F': replay->recorded = optarg; break;
    case 'C':
        if (!compress_by_name(view_of_string(optarg), &replay->codec))
            client_die("no such codec: %s", optarg);
        break;
    case 'R': replay->rate = number; break;
    case 'P': replay->server = (pid_t)number; break;
    case 'f': replay->follow = true; break;
    default: client_die("usage: replay MODE HOST:PORT [--topic NAME] [--seconds N] ...");
    }
}

int main(int argc, char **argv)
{
    static struct replay replay = {.topic = "bench",
                                   .partitions = 1,
                                   .records = 1,
                                   .record_bytes = 100,
                                   .connections = 1,
                                   .depth = 1,
                                   .bytes_max = 1 << 20,
                                   .seconds = 3,
                                   .warmup_s = 0.5};
    int which;
    memory_init(&replay.mem, 0);
    sink_init(&replay.frames, &replay.mem, 1u << 30);
    while ((which = getopt_long(argc, argv, "", option_names, NULL)) != -1)
        option(&replay, which);
    if (optind + 2 != argc ||
        sscanf(argv[optind + 1], "%63[^:]:%hu", replay.host, &replay.port) != 2)
        client_die("usage: replay create|produce|fetch|park|verify HOST:PORT [options]");
    replay.mode = argv[optind];
    if (replay.partitions == 0 || replay.records == 0 || replay.connections == 0)
        client_die("a count that cannot be");
    replay.batch_bytes = produce_batch_bytes(
        &(struct produce_shape){.records = replay.records, .record_bytes = replay.record_bytes},
        &replay.mem);
    if (strcmp(replay.mode, "first") == 0) return first(&replay);
    if (strcmp(replay.mode, "create") == 0) return create(&replay);
    if (strcmp(replay.mode, "verify") == 0) return verify(&replay);
    return load(&replay);
}
