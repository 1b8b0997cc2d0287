/* seeds.c - `seeds FIRST COUNT [--world=controller] [--trace] [--twice] [--lax]
 * [--shards=1|3] [--jobs=N]`: run seeds and tell what they found. Without --world: a broker and its
 * clients.
 *
 * Each seed runs in a process of its own, so that one that stops at an assertion or never ends is a
 * violation and not the end; as many at a time as there are cores. What is told comes in the order
 * of the seeds. `--twice` runs every seed twice and compares the traces. With `--lax` the
 * node promises less than the checkers hold it to (it acknowledges before it syncs; a controller
 * waits for a quarter of the session): it proves that they see it. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/run.h"

#define SEEDS_JOBS_MAX  64u
#define SEEDS_AHEAD_MAX 256u /* Results that wait for an earlier seed's. */
#define SEEDS_ALARM_S   300u /* Of one seed: it takes less than a second. */

struct totals {
    uint32_t passed, failed;
    uint64_t events, acknowledged, read, commits, removals, held_ms, deletes, made, kept, gone,
        places, places_exact, tales, tales_compared;
    int64_t simulated_us, used_us; /* The second: of the cores. */
    struct population_told population;
    uint64_t faults[RUN_FAULTS];
};

/* A seed that runs or has run. */
struct seed {
    struct run_options options;
    struct run_result result;
    pid_t child;
    int end; /* Of the pipe; -1: it has ended. */
};

struct seeds {
    struct run_options options;
    uint64_t first, count;
    bool twice;
    uint32_t jobs;
    struct totals totals;
    struct seed ring[SEEDS_AHEAD_MAX]; /* By place modulo its size. */
    uint64_t started, told;            /* Places. */
};

static int64_t clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- in the child ---------------------------------------------------------------------------- */

static void seed_compute(const struct run_options *options, bool twice, struct run_result *result)
{
    run_seed(options, result);
    if (!twice || result->violation[0] != '\0') return;
    struct run_options quiet = *options;
    struct run_result again;
    quiet.trace = false;
    run_seed(&quiet, &again);
    if (again.trace_hash != result->trace_hash)
        (void)snprintf(result->violation, sizeof(result->violation),
                       "the same seed gave another trace the second time");
}

/* Start the seed in a child; its result comes through a pipe. */
static void seed_start(struct seed *seed, bool twice)
{
    int ends[2];
    fflush(stdout);
    if (pipe(ends) != 0) abort();
    seed->child = fork();
    if (seed->child < 0) abort();
    if (seed->child == 0) {
        close(ends[0]);
        alarm(SEEDS_ALARM_S);
        seed_compute(&seed->options, twice, &seed->result);
        fflush(stdout);
        const ssize_t size = sizeof(seed->result);
        _exit(write(ends[1], &seed->result, sizeof(seed->result)) == size ? 0 : 1);
    }
    close(ends[1]);
    seed->end = ends[0];
}

/* ---- results --------------------------------------------------------------------------------- */

static void seed_ended(struct seed *seed, struct totals *totals)
{
    int status = 0;
    struct rusage used;
    struct run_result *result = &seed->result;
    ssize_t size = read(seed->end, result, sizeof(*result));
    close(seed->end);
    seed->end = -1;
    if (wait4(seed->child, &status, 0, &used) != seed->child) abort();
    totals->used_us += (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
                       used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    if (size == (ssize_t)sizeof(*result)) return;
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    memset(result, 0, sizeof(*result));
    if (signal == SIGALRM)
        (void)snprintf(result->violation, sizeof(result->violation),
                       "I23: it has not ended after %u s", SEEDS_ALARM_S);
    else
        (void)snprintf(result->violation, sizeof(result->violation),
                       "the program stopped: signal %d (an assertion is %d or %d)", signal, SIGILL,
                       SIGTRAP);
}

static void count_population(struct population_told *sum, const struct population_told *more)
{
    sum->records += more->records;
    sum->batches += more->batches;
    sum->registrations += more->registrations;
    sum->beats += more->beats;
    sum->stops += more->stops;
    sum->elections += more->elections;
    sum->fencings += more->fencings;
    sum->silences += more->silences;
    sum->alterations += more->alterations;
    sum->snapshots += more->snapshots;
    sum->comparisons += more->comparisons;
}

static void totals_add(struct totals *totals, const struct run_result *result)
{
    bool fine = result->violation[0] == '\0';
    totals->passed += fine;
    totals->failed += !fine;
    totals->events += result->events;
    totals->acknowledged += result->acknowledged;
    totals->read += result->read;
    totals->commits += result->commits;
    totals->removals += result->removals;
    totals->held_ms += result->held_ms;
    totals->deletes += result->deletes;
    totals->places += result->places;
    totals->places_exact += result->places_exact;
    totals->made += result->made;
    totals->kept += result->kept;
    totals->gone += result->gone;
    totals->tales += result->tales;
    totals->tales_compared += result->tales_compared;
    totals->simulated_us += result->simulated_us;
    count_population(&totals->population, &result->population);
    for (uint32_t i = 0; i < RUN_FAULTS; i++)
        totals->faults[i] += result->faults[i];
}

static void seed_tell(const struct seed *seed)
{
    const struct run_options *options = &seed->options;
    const struct run_result *result = &seed->result;
    if (result->violation[0] == '\0')
        printf("seed %llu: ok, trace %016llx\n", (unsigned long long)options->seed,
               (unsigned long long)result->trace_hash);
    else
        printf("seed %llu: VIOLATION %s; run again with: make sim ARGS=\"%llu 1 --trace%s%s\"\n",
               (unsigned long long)options->seed, result->violation,
               (unsigned long long)options->seed,
               options->world == RUN_CONTROLLER ? " --world=controller" : "",
               options->shards == 0   ? ""
               : options->shards == 1 ? " --shards=1"
                                      : " --shards=3");
}

static void print_clients(const struct totals *totals)
{
    printf(
        "%llu records acknowledged, %llu read; %llu commits of offsets; %llu members removed, members "
        "held for %llu s by their quota; %llu deletions; %llu offsets by time, place or epoch, %llu of "
        "them with one right answer; %llu of %llu records gone by retention or "
        "compaction; %llu topics made, deleted and made again; %llu "
        "groups as their members see them, %llu as before a restart\n",
        (unsigned long long)totals->acknowledged, (unsigned long long)totals->read,
        (unsigned long long)totals->commits, (unsigned long long)totals->removals,
        (unsigned long long)totals->held_ms / 1000, (unsigned long long)totals->deletes,
        (unsigned long long)totals->places, (unsigned long long)totals->places_exact,
        (unsigned long long)totals->gone, (unsigned long long)totals->kept,
        (unsigned long long)totals->made, (unsigned long long)totals->tales,
        (unsigned long long)totals->tales_compared);
}

static void print_population(const struct population_told *told)
{
    printf(
        "%llu metadata records in %llu batches; %llu registrations, %llu heartbeats; %llu brokers "
        "told to stop; %llu leader epochs, %llu ISRs altered; %llu brokers fenced, %llu of them "
        "seen to be silent; %llu snapshots loaded; %llu images compared\n",
        (unsigned long long)told->records, (unsigned long long)told->batches,
        (unsigned long long)told->registrations, (unsigned long long)told->beats,
        (unsigned long long)told->stops, (unsigned long long)told->elections,
        (unsigned long long)told->alterations, (unsigned long long)told->fencings,
        (unsigned long long)told->silences, (unsigned long long)told->snapshots,
        (unsigned long long)told->comparisons);
}

static void print_totals(const struct totals *totals, uint32_t jobs, int64_t took_us)
{
    uint32_t seeds = totals->passed + totals->failed;
    double seconds = (double)took_us / 1e6, used = (double)MAX(totals->used_us, 1) / 1e6;
    printf("%u seeds in %.1f s, %u at a time; %.1f ms of a core each; %.0f events per second and "
           "core; %.0f s simulated\n",
           seeds, seconds, jobs, seeds > 0 ? used * 1000 / seeds : 0, (double)totals->events / used,
           (double)totals->simulated_us / 1e6);
    if (totals->population.registrations > 0)
        print_population(&totals->population);
    else
        print_clients(totals);
    printf("faults:");
    for (uint32_t i = 0; i < RUN_FAULTS; i++)
        printf("%s %s %llu", i > 0 ? "," : "", run_fault_name((enum run_fault)i),
               (unsigned long long)totals->faults[i]);
    printf("; violations %u\n%u passed, %u failed\n", totals->failed, totals->passed,
           totals->failed);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static struct seed *seeds_at(struct seeds *seeds, uint64_t place)
{
    return &seeds->ring[place % SEEDS_AHEAD_MAX];
}

/* Wait until one of those that run has ended. */
static void seeds_wait(struct seeds *seeds)
{
    struct pollfd ends[SEEDS_JOBS_MAX];
    struct seed *running[SEEDS_JOBS_MAX];
    uint32_t count = 0;
    for (uint64_t place = seeds->told; place < seeds->started; place++) {
        struct seed *seed = seeds_at(seeds, place);
        if (seed->end < 0) continue;
        running[count] = seed;
        ends[count++] = (struct pollfd){.fd = seed->end, .events = POLLIN};
    }
    if (poll(ends, count, -1) < 0) abort();
    for (uint32_t i = 0; i < count; i++)
        if (ends[i].revents != 0) seed_ended(running[i], &seeds->totals);
}

static uint32_t seeds_running(struct seeds *seeds)
{
    uint32_t running = 0;
    for (uint64_t place = seeds->told; place < seeds->started; place++)
        running += seeds_at(seeds, place)->end >= 0;
    return running;
}

static void seeds_run(struct seeds *seeds)
{
    while (seeds->told < seeds->count) {
        while (seeds->started < seeds->count && seeds->started - seeds->told < SEEDS_AHEAD_MAX &&
               seeds_running(seeds) < seeds->jobs) {
            struct seed *seed = seeds_at(seeds, seeds->started);
            *seed = (struct seed){.options = seeds->options};
            seed->options.seed = seeds->first + seeds->started++;
            seed_start(seed, seeds->twice);
        }
        seeds_wait(seeds);
        for (; seeds->told < seeds->started && seeds_at(seeds, seeds->told)->end < 0;
             seeds->told++) {
            const struct seed *seed = seeds_at(seeds, seeds->told);
            totals_add(&seeds->totals, &seed->result);
            seed_tell(seed);
        }
    }
}

static bool seeds_flag(struct seeds *seeds, const char *flag)
{
    char *end;
    if (strcmp(flag, "--trace") == 0)
        seeds->options.trace = true;
    else if (strcmp(flag, "--lax") == 0)
        seeds->options.lax = true;
    else if (strcmp(flag, "--world=controller") == 0)
        seeds->options.world = RUN_CONTROLLER;
    else if (strcmp(flag, "--twice") == 0)
        seeds->twice = true;
    else if (strcmp(flag, "--shards=1") == 0 || strcmp(flag, "--shards=3") == 0)
        seeds->options.shards = (uint32_t)(flag[9] - '0');
    else if (strncmp(flag, "--jobs=", 7) == 0)
        seeds->jobs = (uint32_t)strtoul(flag + 7, &end, 10);
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    static struct seeds seeds;
    uint64_t numbers[2] = {1, 100};
    uint32_t count = 0;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    seeds.jobs = cores < 1 ? 1 : (uint32_t)cores;
    for (int i = 1; i < argc; i++) {
        char *end = argv[i];
        if (seeds_flag(&seeds, argv[i])) continue;
        if (count < 2) numbers[count] = strtoull(argv[i], &end, 10);
        count = end != argv[i] && *end == '\0' ? count + 1 : 3;
    }
    if (count > 2) {
        fprintf(stderr, "usage: seeds FIRST COUNT [--world=controller] [--trace] [--twice] [--lax] "
                        "[--shards=1|3] [--jobs=N]\n");
        return 2;
    }
    seeds.first = numbers[0];
    seeds.count = numbers[1];
    if (seeds.options.trace) seeds.jobs = 1;
    seeds.jobs = MIN(MAX(seeds.jobs, 1u), SEEDS_JOBS_MAX);
    int64_t start_us = clock_us();
    seeds_run(&seeds);
    print_totals(&seeds.totals, seeds.jobs, clock_us() - start_us);
    return seeds.totals.failed == 0 ? 0 : 1;
}
