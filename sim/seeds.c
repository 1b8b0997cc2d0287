/* seeds.c - `seeds FIRST COUNT [--world=controller] [--trace] [--twice] [--page-cache]
 * [--shards=1|3]`: run seeds and tell what they found. Without --world: a broker and its clients.
 *
 * Each seed runs in a process of its own, so that one that stops at an assertion is a violation and
 * not the end. `--twice` runs every seed twice and compares the traces. With `--page-cache` the
 * node promises less than the checkers hold it to: it proves that they see it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/run.h"

struct totals {
    uint32_t passed, failed;
    uint64_t events, acknowledged, read, commits, removals, deletes, tales, tales_compared;
    int64_t simulated_us;
    struct population_told population;
    uint64_t faults[RUN_FAULTS];
};

static int64_t clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* The seed in a child; its result comes through a pipe. */
static void run_apart(const struct run_options *options, struct run_result *result)
{
    int ends[2], status = 0;
    memset(result, 0, sizeof(*result));
    fflush(stdout);
    if (pipe(ends) != 0) abort();
    pid_t child = fork();
    if (child < 0) abort();
    if (child == 0) {
        close(ends[0]);
        run_seed(options, result);
        fflush(stdout);
        _exit(write(ends[1], result, sizeof(*result)) == (ssize_t)sizeof(*result) ? 0 : 1);
    }
    close(ends[1]);
    ssize_t size = read(ends[0], result, sizeof(*result));
    close(ends[0]);
    if (waitpid(child, &status, 0) != child) abort();
    if (size == (ssize_t)sizeof(*result)) return;
    memset(result, 0, sizeof(*result));
    (void)snprintf(result->violation, sizeof(result->violation),
                   "the program stopped: signal %d (an assertion is %d or %d)",
                   WIFSIGNALED(status) ? WTERMSIG(status) : 0, 4, 5);
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

static void seed_run(struct totals *totals, const struct run_options *options, bool twice)
{
    struct run_result result, again;
    run_apart(options, &result);
    if (twice && result.violation[0] == '\0') {
        struct run_options quiet = *options;
        quiet.trace = false;
        run_apart(&quiet, &again);
        if (again.trace_hash != result.trace_hash)
            (void)snprintf(result.violation, sizeof(result.violation),
                           "the same seed gave another trace the second time");
    }
    bool fine = result.violation[0] == '\0';
    totals->passed += fine;
    totals->failed += !fine;
    totals->events += result.events;
    totals->acknowledged += result.acknowledged;
    totals->read += result.read;
    totals->commits += result.commits;
    totals->removals += result.removals;
    totals->deletes += result.deletes;
    totals->tales += result.tales;
    totals->tales_compared += result.tales_compared;
    totals->simulated_us += result.simulated_us;
    count_population(&totals->population, &result.population);
    for (uint32_t i = 0; i < RUN_FAULTS; i++)
        totals->faults[i] += result.faults[i];
    if (fine)
        printf("seed %llu: ok, trace %016llx\n", (unsigned long long)options->seed,
               (unsigned long long)result.trace_hash);
    else
        printf("seed %llu: VIOLATION %s; run again with: make sim ARGS=\"%llu 1 --trace%s%s\"\n",
               (unsigned long long)options->seed, result.violation,
               (unsigned long long)options->seed,
               options->world == RUN_CONTROLLER ? " --world=controller" : "",
               options->shards == 0   ? ""
               : options->shards == 1 ? " --shards=1"
                                      : " --shards=3");
}

static void print_clients(const struct totals *totals)
{
    printf(
        "%llu records acknowledged, %llu read; %llu commits of offsets; %llu members removed; %llu "
        "deletions; %llu "
        "groups as their members see them, %llu as before a restart\n",
        (unsigned long long)totals->acknowledged, (unsigned long long)totals->read,
        (unsigned long long)totals->commits, (unsigned long long)totals->removals,
        (unsigned long long)totals->deletes, (unsigned long long)totals->tales,
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

static void print_totals(const struct totals *totals, int64_t took_us)
{
    uint32_t seeds = totals->passed + totals->failed;
    double seconds = (double)took_us / 1e6;
    printf("%u seeds in %.1f s, %.1f ms each; %.0f events per second; %.0f s simulated\n", seeds,
           seconds, seeds > 0 ? seconds * 1000 / seeds : 0, (double)totals->events / seconds,
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

int main(int argc, char **argv)
{
    struct totals totals = {0};
    struct run_options options = {0};
    bool twice = false;
    uint64_t numbers[2] = {1, 100};
    uint32_t count = 0;
    for (int i = 1; i < argc; i++) {
        char *end = argv[i];
        if (strcmp(argv[i], "--trace") == 0)
            options.trace = true;
        else if (strcmp(argv[i], "--page-cache") == 0)
            options.page_cache = true;
        else if (strcmp(argv[i], "--world=controller") == 0)
            options.world = RUN_CONTROLLER;
        else if (strcmp(argv[i], "--twice") == 0)
            twice = true;
        else if (strcmp(argv[i], "--shards=1") == 0 || strcmp(argv[i], "--shards=3") == 0)
            options.shards = (uint32_t)(argv[i][9] - '0');
        else if (count < 2)
            numbers[count++] = strtoull(argv[i], &end, 10);
        if (*end != '\0' && end != argv[i]) count = 3;
    }
    if (count > 2) {
        fprintf(stderr,
                "usage: seeds FIRST COUNT [--world=controller] [--trace] [--twice] [--page-cache] "
                "[--shards=1|3]\n");
        return 2;
    }
    int64_t start_us = clock_us();
    for (uint64_t i = 0; i < numbers[1]; i++) {
        options.seed = numbers[0] + i;
        seed_run(&totals, &options, twice);
    }
    print_totals(&totals, clock_us() - start_us);
    return totals.failed == 0 ? 0 : 1;
}
