/* groups.c - members of groups as a load: their heartbeats, their rebalances, their end. One JSON
 * line.
 *
 *   groups beat HOST:PORT [options]        fill groups, then heartbeats of members drawn in turn
 *   groups rebalance HOST:PORT [options]   one group: all join, one joins, one leaves, a tenth
 * leave groups expiry HOST:PORT [options]      pairs of which one falls silent: how late is it
 * noticed
 *
 * `--consumer` takes the protocol of KIP-848 instead of the classic one. `--bare` fills nothing,
 * for a floor that does not look at what it gets. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bench/lib/drive.h"
#include "bench/lib/fleet.h"
#include "bench/lib/requests.h"
#include "gen/errors.h"
#include "sys/memory.h"

#define EXPIRY_SESSION_MS 6000 /* group.min.session.timeout.ms as it is by default. */
#define EXPIRY_POLL_US    2000
#define EXPIRY_APART_MS   17 /* Between the last heartbeats of two pairs. */
#define BEATS_MAX         8  /* Loads of one run: `--depth` and `--rate` may be repeated. */

struct groups {
    char host[64];
    uint16_t port;
    struct mem mem;
    pid_t server;
    uint32_t connections, links, members, group_size, partitions; /* Links: those that fill. */
    double seconds, warmup_s;
    uint64_t warm;
    bool bare;
    enum fleet_protocol protocol;
    const char *topic;
    uint32_t depths[BEATS_MAX], depth_count;
    double rates[BEATS_MAX];
    uint32_t rate_count;
    struct sink frames;
    uint32_t frame_bytes;
    double cpu_s; /* The server's, at the beginning, then the difference. */
};

static double server_cpu_s(pid_t pid)
{
    clockid_t clock;
    struct timespec spent;
    if (pid == 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &spent) != 0)
        return 0;
    return (double)spent.tv_sec + (double)spent.tv_nsec * 1e-9;
}

static struct fleet_options fleet_options(struct groups *groups)
{
    return (struct fleet_options){.host = groups->host,
                                  .port = groups->port,
                                  .mem = &groups->mem,
                                  .protocol = groups->protocol,
                                  .links = groups->links,
                                  .members = groups->members,
                                  .group_size = groups->group_size,
                                  .session_ms = 1800000,
                                  .topic = groups->topic,
                                  .partitions = groups->partitions,
                                  .bare = groups->bare};
}

/* ---- beat ------------------------------------------------------------------------------------ */

static bool error_is_none(struct drive_link *link, struct view head, uint32_t size)
{
    /* Correlation, tags, throttle time: then the error, in both protocols. */
    (void)link;
    (void)size;
    return head.size >= 4 + 1 + 4 + 2 && load_be16(head.data + 4 + 1 + 4) == 0;
}

static struct view frame_at(const struct groups *groups, uint64_t number)
{
    return view_of(groups->frames.data + number * groups->frame_bytes, groups->frame_bytes);
}

static struct view first_frame(void *context, uint32_t number)
{
    return frame_at(context, number);
}

/* The next member of this connection; a stride that is prime to all counts makes it another group
 * each time. */
static void patch_member(struct drive_link *link, uint8_t *at)
{
    const struct groups *groups = link->context;
    uint32_t mine = (groups->members - link->number - 1) / groups->connections + 1;
    uint64_t member = link->number + link->offset++ * 7919 % mine * groups->connections;
    struct view frame = frame_at(groups, member);
    memcpy(at + REQUESTS_CORRELATION_AT + 4, frame.data + REQUESTS_CORRELATION_AT + 4,
           frame.size - REQUESTS_CORRELATION_AT - 4);
}

static void mark(void *context, bool begins)
{
    struct groups *groups = context;
    double now_s = server_cpu_s(groups->server);
    groups->cpu_s = begins ? now_s : now_s - groups->cpu_s;
}

static void beat_load(struct groups *groups, uint32_t depth, double rate)
{
    struct drive_result result;
    struct drive_options options = {.host = groups->host,
                                    .port = groups->port,
                                    .connections = groups->connections,
                                    .depth = depth,
                                    .rate = rate,
                                    .seconds = groups->seconds,
                                    .warmup_s = groups->warmup_s,
                                    .warm = rate > 0 ? 0 : groups->warm,
                                    .mem = &groups->mem,
                                    .frame = first_frame,
                                    .answer = error_is_none,
                                    .patch = patch_member,
                                    .context = groups};
    drive_run(&options, mark, &result);
    if (result.errors > 0)
        client_die("%llu heartbeats with an error", (unsigned long long)result.errors);
    printf("{\"depth\": %u, \"rate\": %.0f, \"requests\": %llu, \"seconds\": %.3f, "
           "\"server_cpu_s\": %.4f, \"client_cpu_s\": %.4f, \"p50_us\": %.1f, \"p99_us\": %.1f, "
           "\"p999_us\": %.1f}",
           depth, rate, (unsigned long long)result.requests, result.seconds, groups->cpu_s,
           result.cpu_s, (double)histogram_at(&result.latency, 500) / 1e3,
           (double)histogram_at(&result.latency, 990) / 1e3,
           (double)histogram_at(&result.latency, 999) / 1e3);
}

static int beat(struct groups *groups)
{
    struct fleet fleet;
    struct fleet_options options = fleet_options(groups);
    fleet_open(&fleet, &options);
    int64_t start_ns = drive_now_ns();
    double cpu_s = server_cpu_s(groups->server);
    if (!groups->bare) fleet_fill(&fleet);
    printf("{\"fill_seconds\": %.3f, \"fill_cpu_s\": %.3f, \"loads\": [",
           (double)(drive_now_ns() - start_ns) * 1e-9, server_cpu_s(groups->server) - cpu_s);
    for (uint32_t i = 0; i < groups->members; i++)
        fleet_frame(&fleet, i, &groups->frames);
    groups->frame_bytes = groups->frames.size_bytes / groups->members;
    assert(groups->frames.size_bytes % groups->members == 0);
    for (uint32_t i = 0; i < groups->depth_count + groups->rate_count; i++) {
        bool open = i >= groups->depth_count;
        printf("%s", i > 0 ? ", " : "");
        beat_load(groups, open ? 1 : groups->depths[i],
                  open ? groups->rates[i - groups->depth_count] : 0);
    }
    printf("]}\n");
    fleet_close(&fleet);
    return 0;
}

/* ---- rebalance ------------------------------------------------------------------------------- */

struct change {
    const char *name;
    void (*make)(struct fleet *fleet, uint32_t first, uint32_t count);
    uint32_t first, count; /* Members. */
};

static void measure(struct groups *groups, struct fleet *fleet, const struct change *change)
{
    int64_t start_ns = drive_now_ns();
    double cpu_s = server_cpu_s(groups->server);
    change->make(fleet, change->first, change->count);
    printf("\"%s\": {\"ms\": %.2f, \"cpu_ms\": %.2f}", change->name,
           (double)(drive_now_ns() - start_ns) * 1e-6,
           (server_cpu_s(groups->server) - cpu_s) * 1e3);
}

/* The last member of the fleet is the one that joins and leaves alone. */
static int rebalance(struct groups *groups)
{
    struct fleet fleet;
    uint32_t count = groups->members;
    struct fleet_options options = fleet_options(groups);
    options.members = options.group_size = options.links = count + 1;
    fleet_open(&fleet, &options);
    const struct change changes[] = {
        {"all join",      fleet_join,  0,                  count     },
        {"one joins",     fleet_join,  count,              1         },
        {"one leaves",    fleet_leave, count,              1         },
        {"a tenth leave", fleet_leave, count - count / 10, count / 10},
    };
    for (uint32_t i = 0; i < ARRAY_SIZE(changes); i++) {
        printf("%s", i == 0 ? "{" : ", ");
        measure(groups, &fleet, &changes[i]);
    }
    printf("}\n");
    fleet_close(&fleet);
    return 0;
}

/* ---- expiry ---------------------------------------------------------------------------------- */

static int expiry(struct groups *groups)
{
    struct fleet fleet;
    struct fleet_options options = fleet_options(groups);
    options.group_size = 2;
    options.links = options.members;
    options.session_ms = EXPIRY_SESSION_MS;
    uint32_t pairs = options.members / 2, noticed = 0;
    int64_t *last_ns = calloc(pairs, sizeof(*last_ns));
    bool *gone = calloc(pairs, sizeof(*gone));
    if (last_ns == NULL || gone == NULL) client_die("no memory for pairs");
    fleet_open(&fleet, &options);
    fleet_fill(&fleet);
    for (uint32_t i = 0; i < pairs; i++) {
        last_ns[i] = drive_now_ns();
        if (fleet_beat(&fleet, 2 * i) != KAFKA_NONE || fleet_beat(&fleet, 2 * i + 1) != KAFKA_NONE)
            client_die("a pair that is not settled");
        (void)usleep(EXPIRY_APART_MS * 1000);
    }
    struct histogram late = {0};
    int64_t early_ns = 0;
    while (noticed < pairs) {
        (void)usleep(EXPIRY_POLL_US);
        for (uint32_t i = 0; i < pairs; i++) {
            if (gone[i] || fleet_beat(&fleet, 2 * i) == KAFKA_NONE) continue;
            int64_t late_ns = drive_now_ns() - last_ns[i] - (int64_t)EXPIRY_SESSION_MS * 1000000;
            gone[i] = true;
            noticed++;
            early_ns = MIN(early_ns, late_ns);
            histogram_add(&late, MAX(late_ns, 0));
        }
    }
    printf("{\"pairs\": %u, \"early_ms\": %.2f, \"late_p50_ms\": %.2f, \"late_max_ms\": %.2f}\n",
           pairs, (double)-early_ns * 1e-6, (double)histogram_at(&late, 500) * 1e-6,
           (double)late.max_ns * 1e-6);
    free(last_ns);
    free(gone);
    fleet_close(&fleet);
    return 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static const struct option option_names[] = {
    {"connections", 1, NULL, 'c'},
    {"links",       1, NULL, 'l'},
    {"depth",       1, NULL, 'd'},
    {"members",     1, NULL, 'm'},
    {"group-size",  1, NULL, 'g'},
    {"topic",       1, NULL, 't'},
    {"partitions",  1, NULL, 'p'},
    {"seconds",     1, NULL, 'S'},
    {"warmup",      1, NULL, 'w'},
    {"warm",        1, NULL, 'W'},
    {"rate",        1, NULL, 'R'},
    {"server-pid",  1, NULL, 'P'},
    {"consumer",    0, NULL, 'C'},
    {"bare",        0, NULL, 'B'},
    {NULL,          0, NULL, 0  },
};

static void option(struct groups *groups, int which)
{
    double number = optarg == NULL ? 0 : strtod(optarg, NULL);
    switch (which) {
    case 'c': groups->connections = (uint32_t)number; break;
    case 'l': groups->links = (uint32_t)number; break;
    case 'd': groups->depths[groups->depth_count++ % BEATS_MAX] = (uint32_t)number; break;
    case 'm': groups->members = (uint32_t)number; break;
    case 'g': groups->group_size = (uint32_t)number; break;
    case 't': groups->topic = optarg; break;
    case 'p': groups->partitions = (uint32_t)number; break;
    case 'S': groups->seconds = number; break;
    case 'w': groups->warmup_s = number; break;
    case 'W': groups->warm = (uint64_t)number; break;
    case 'R': groups->rates[groups->rate_count++ % BEATS_MAX] = number; break;
    case 'P': groups->server = (pid_t)number; break;
    case 'C': groups->protocol = FLEET_CONSUMER; break;
    case 'B': groups->bare = true; break;
    default: client_die("bad option");
    }
}

int main(int argc, char **argv)
{
    static struct groups groups = {.connections = 64,
                                   .links = 64,
                                   .members = 64,
                                   .group_size = 1,
                                   .seconds = 2,
                                   .warmup_s = 0.5,
                                   .topic = "nobody-has-made-it"};
    int which;
    memory_init(&groups.mem, 0);
    sink_init(&groups.frames, &groups.mem, 1u << 30);
    while ((which = getopt_long(argc, argv, "", option_names, NULL)) != -1)
        option(&groups, which);
    if (optind + 2 != argc ||
        sscanf(argv[optind + 1], "%63[^:]:%hu", groups.host, &groups.port) != 2)
        client_die("usage: groups beat|rebalance|expiry HOST:PORT [options]");
    if (groups.connections == 0 || groups.links < groups.group_size ||
        groups.members < groups.connections || groups.group_size == 0 ||
        groups.members % groups.group_size != 0 || groups.depth_count > BEATS_MAX ||
        groups.rate_count > BEATS_MAX)
        client_die("a count that cannot be");
    if (strcmp(argv[optind], "rebalance") == 0) return rebalance(&groups);
    if (strcmp(argv[optind], "expiry") == 0) return expiry(&groups);
    return beat(&groups);
}
