/* suite.c - run the rows of a suite side by side and gather what came of them.
 *
 * A pool of threads takes the next run from a counter. Rows mostly wait, so there are as many
 * threads as runs up to CHECK_AT_ONCE_MAX; the stack of each is small. Rows that a restart of the
 * server belongs to are a pool of their own, behind the others: all of them at once, so that one
 * restart serves them all (restart.h). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "check/restart.h"
#include "check/run.h"

#define STACK_BYTES (256u * 1024u)

struct pool {
    struct check_report *report;
    const struct check_run *world;
    const struct check_wish *wish;
    struct check_restart *restart; /* NULL: this pool's rows have none. */
    _Atomic uint32_t next;
    uint32_t end;
};

/* ---- the list of runs -------------------------------------------------------------------------
 */

static void add_run(struct check_report *report,
                    const struct check_table *table,
                    const struct check_row *row,
                    int16_t version)
{
    struct check_result *result = &report->results[report->count++];
    assert(report->count <= report->room);
    *result = (struct check_result){.table = table, .row = row, .version = version};
}

static bool wished(const struct check_wish *wish, const struct check_row *row)
{
    return wish->only == NULL || strstr(row->id, wish->only) != NULL;
}

/* Rows that need no restart; those that do. */
static void list_runs(struct check_report *report, const struct check_wish *wish, bool over_restart)
{
    const struct check_suite *suite = report->suite;
    for (uint32_t i = 0; i < suite->table_count; i++) {
        const struct check_table *table = suite->tables[i];
        for (uint32_t j = 0; j < table->count; j++) {
            const struct check_row *row = &table->rows[j];
            if ((row->when == CHECK_OVER_RESTART) != over_restart || !wished(wish, row)) continue;
            if (!row->each_version) add_run(report, table, row, -1);
            for (int16_t v = row->version_min; row->each_version && v <= suite->version_max; v++)
                add_run(report, table, row, v);
        }
    }
}

static uint32_t runs_most(const struct check_suite *suite)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < suite->table_count; i++)
        count += suite->tables[i]->count;
    return count * ((uint32_t)suite->version_max + 1);
}

/* ---- the pool ---------------------------------------------------------------------------------
 */

/* A unique, telling name: an id's letters and digits, the version, the process. */
static void name_run(struct check_run *run)
{
    char id[64];
    size_t at = 0;
    for (const char *c = run->row->id; *c != '\0' && at < sizeof(id) - 1; c++)
        if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9'))
            id[at++] = *c;
        else if (at > 0 && id[at - 1] != '-')
            id[at++] = '-';
    id[at] = '\0';
    (void)snprintf(run->name, sizeof(run->name), "dohle-check-%d-%lld-%s-%d", (int)getpid(),
                   (long long)run->world->start_ms, id, run->version);
}

/* What a row leaves behind is taken away even if it failed, and that changes no outcome. */
static void tidy_up(struct check_run *run, const struct check_suite *suite)
{
    struct check_result ignored = {0};
    run->result = &ignored;
    run->over = false;
    run->start_ms = peer_now_ms();
    suite->end(run);
}

/* Not this time: the wish does not say so. */
static const char *spared(const struct check_row *row, const struct check_wish *wish)
{
    if (row->when == CHECK_IF_LONG && !wish->lengthy) return "it takes minutes: --long";
    if (row->when == CHECK_OVER_RESTART && wish->restart == NULL)
        return "nobody said how to restart the server: --restart";
    return NULL;
}

static void run_one(struct pool *pool, struct check_result *result)
{
    const struct check_suite *suite = pool->report->suite;
    const struct wire_message *request = wire_api(suite->api_key)->request;
    struct check_run run = {.index = (uint32_t)(result - pool->report->results),
                            .row = result->row,
                            .world = pool->world,
                            .result = result,
                            .restart = pool->restart,
                            .version = result->version};
    const char *reason = spared(result->row, pool->wish);

    run_begin(&run, &pool->report->target);
    name_run(&run);
    if (reason != NULL) run_skip(&run, "%s", reason);
    if (run.version >= 0 && !run_serves(&run, request, run.version))
        run_skip(&run, "the server does not advertise %s %d", wire_api(suite->api_key)->name,
                 run.version);
    if (!run.over && suite->begin != NULL) suite->begin(&run);
    if (!run.over) run.row->run(&run);
    if (pool->restart != NULL) restart_leave(pool->restart, &run);
    result->took_ms = (int32_t)(peer_now_ms() - run.start_ms);
    if (suite->end != NULL && reason == NULL) tidy_up(&run, suite);
    run_end(&run);
}

static void *work(void *context)
{
    struct pool *pool = context;
    for (;;) {
        uint32_t index = pool->next++;
        if (index >= pool->end) return NULL;
        run_one(pool, &pool->report->results[index]);
    }
}

/* The runs from `pool->next` to the end of the list. */
static void run_rows(struct pool *pool)
{
    pthread_t threads[CHECK_AT_ONCE_MAX];
    uint32_t started = 0;
    pthread_attr_t attributes;

    pool->end = pool->report->count;
    uint32_t wanted = MIN(pool->end - pool->next, CHECK_AT_ONCE_MAX);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    while (started < wanted && pthread_create(&threads[started], &attributes, work, pool) == 0)
        started++;
    pthread_attr_destroy(&attributes);
    if (started == 0) (void)work(pool);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

static void run_all(struct check_report *report,
                    const struct check_run *world,
                    const struct check_wish *wish)
{
    struct check_restart restart;
    struct pool pool = {.report = report, .world = world, .wish = wish};

    list_runs(report, wish, false);
    run_rows(&pool);
    pool.next = report->count;
    list_runs(report, wish, true);
    restart_init(&restart, wish->restart, report->count - pool.next);
    pool.restart = &restart;
    assert(report->count - pool.next <= CHECK_AT_ONCE_MAX); /* They wait for one another. */
    run_rows(&pool);
    restart_free(&restart);
}

/* What was made for the rows is taken away, and that changes no outcome. */
static void finish(struct check_run *world, const struct check_suite *suite)
{
    world->start_ms = peer_now_ms();
    if (suite->finish != NULL) suite->finish(world);
}

static void count_outcomes(struct check_report *report)
{
    for (uint32_t i = 0; i < report->count; i++) {
        report->passed += report->results[i].outcome == CHECK_PASSED;
        report->failed += report->results[i].outcome == CHECK_FAILED;
        report->skipped += report->results[i].outcome == CHECK_SKIPPED;
    }
}

bool check_suite_run(const struct check_suite *suite,
                     const struct check_target *target,
                     const struct check_wish *wish,
                     struct mem *mem,
                     struct check_report *report)
{
    struct check_result preparing = {0};
    struct check_run world = {.result = &preparing};
    int64_t start_ms = peer_now_ms();

    *report = (struct check_report){.suite = suite, .target = *target, .room = runs_most(suite)};
    report->results = mem_get(mem, report->room * sizeof(report->results[0]));
    run_begin(&world, target);
    (void)snprintf(world.name, sizeof(world.name), "dohle-check-%d-%lld", (int)getpid(),
                   (long long)world.start_ms);
    if (report->results == NULL) run_fail(&world, "out of memory");
    run_ask_versions(&world);
    if (!world.over && suite->prepare != NULL) suite->prepare(&world);
    if (!world.over) {
        run_all(report, &world, wish);
        count_outcomes(report);
        finish(&world, suite);
    }
    (void)snprintf(report->trouble, sizeof(report->trouble), "%s", preparing.got);
    report->took_ms = peer_now_ms() - start_ms;
    bool ran = report->count > 0 || !world.over;
    run_end(&world);
    return ran;
}

void check_report_free(struct check_report *report, struct mem *mem)
{
    if (report->results == NULL) return;
    report->results = mem_put(mem, report->results, report->room * sizeof(report->results[0]));
}
