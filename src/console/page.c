/* page.c - what each path answers. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "broker/stats.h"
#include "console/inside.h"
#include "sys/memory.h"

/* ---- health and readiness -------------------------------------------------------------------- */

static void fill_stats(struct shard *shard, void *argument)
{
    stats_fill(shard, argument);
}

static void text_reply(struct console_reply *reply, int status, const char *text)
{
    reply->status = status;
    reply->type = "text/plain; charset=utf-8";
    out_format(&reply->body, "%s\n", text);
}

/* The stats, or NULL and a reply that says why not. Freed by the caller. */
static struct stats *ask_stats(struct console *console, struct console_reply *reply)
{
    struct stats *stats = calloc(1, sizeof(*stats));
    if (stats == NULL) {
        text_reply(reply, 500, "no memory");
        return NULL;
    }
    switch (ask_shard(console, 0, fill_stats, stats, free)) {
    case ASK_DONE: return stats;
    case ASK_NONE: text_reply(reply, 503, "not ready: the node is starting or stopping"); break;
    case ASK_SILENT:
        text_reply(reply, 503, "not ready: the first shard does not answer");
        return NULL; /* The question has it. */
    }
    free(stats);
    return NULL;
}

static void health_page(struct console *console, struct console_reply *reply)
{
    struct stats *stats = ask_stats(console, reply);
    if (stats == NULL) {
        /* A node that starts is alive; one that does not answer is not. */
        if (reply->body.size_bytes > 0 &&
            memmem(reply->body.text, reply->body.size_bytes, "starting", 8) != NULL) {
            out_reset(&reply->body);
            text_reply(reply, 200, "ok: starting or stopping");
        }
        return;
    }
    free(stats);
    text_reply(reply, 200, "ok");
}

static void ready_page(struct console *console, struct console_reply *reply)
{
    struct stats *stats = ask_stats(console, reply);
    if (stats == NULL) return;
    reply->status = stats->missing[0] == '\0' ? 200 : 503;
    reply->type = "text/plain; charset=utf-8";
    if (stats->missing[0] == '\0')
        out_format(&reply->body, "ready: node %d of cluster %s\n", stats->node_id,
                   stats->cluster_id);
    else
        out_format(&reply->body, "not ready: %s\n", stats->missing);
    free(stats);
}

/* ---- metrics --------------------------------------------------------------------------------- */

struct metrics_question {
    struct mem mem;
    struct metrics metrics;
    struct stats stats;
    struct out clients; /* What they pushed. */
    struct out quotas;  /* What they use of theirs. */
};

static void fill_metrics(struct shard *shard, void *argument)
{
    struct metrics_question *question = argument;
    if (shard->index == 0) stats_fill(shard, &question->stats);
    metrics_gather(&question->metrics, &shard->metrics);
    stats_client_metrics(shard, &question->clients);
    stats_client_quotas(shard, &question->quotas);
}

static void drop_metrics(void *argument)
{
    struct metrics_question *question = argument;
    metrics_free(&question->metrics);
    out_free(&question->clients);
    out_free(&question->quotas);
    free(question);
}

static void put_head(struct out *out, const char *name, const char *kind, const char *about)
{
    out_format(out, "# HELP dohle_%s %s\n# TYPE dohle_%s %s\n", name, about, name, kind);
}

static void put_values(struct out *out, const struct metrics *metrics)
{
    for (int i = 0; i < METRIC_COUNT; i++) {
        const struct metric_def *def = &metric_defs[i];
        char name[96];
        bool counter = def->kind == METRIC_COUNTER;
        (void)snprintf(name, sizeof(name), "%s%s", def->name, counter ? "_total" : "");
        put_head(out, name, counter ? "counter" : "gauge", def->about);
        out_format(out, "dohle_%s %llu\n", name, (unsigned long long)metrics->values[i]);
    }
}

static void put_requests(struct out *out, const struct metrics *metrics)
{
    put_head(out, "requests_total", "counter",
             "Requests that were answered, by API, version and error; one that carries several "
             "errors counts for each.");
    map_foreach (node, &metrics->requests) {
        const struct metrics_request *entry = container_of(node, struct metrics_request, node);
        out_format(out, "dohle_requests_total{api=\"%s\",version=\"%d\",error=\"%s\"} %llu\n",
                   metrics_api_name(entry), entry->key[1], metrics_error_name(entry),
                   (unsigned long long)entry->count);
    }
}

/* Of the process: the names that Prometheus's own clients use. */
static void put_process(struct out *out)
{
    long pages = 0, size = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL) {
        if (fscanf(file, "%ld %ld", &size, &pages) != 2) pages = 0;
        fclose(file);
    }
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    out_format(out,
               "# HELP process_resident_memory_bytes Memory of the process that is in RAM.\n"
               "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes %lld\n"
               "# HELP process_cpu_seconds_total Processor time that the process has used.\n"
               "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total %.3f\n",
               (long long)pages * sysconf(_SC_PAGESIZE),
               (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
}

static void metrics_page(struct console *console, struct console_reply *reply)
{
    struct metrics_question *question = calloc(1, sizeof(*question));
    if (question == NULL) {
        text_reply(reply, 500, "no memory");
        return;
    }
    memory_init(&question->mem, 0);
    metrics_init(&question->metrics, &question->mem, 1);
    out_init(&question->clients, &question->mem);
    out_init(&question->quotas, &question->mem);
    enum ask_result result = ask_shard(console, 0, fill_metrics, question, drop_metrics);
    enum ask_result next = result; /* Of the other shards, one after the other, to the last. */
    for (uint32_t i = 1; next == ASK_DONE; i++)
        next = ask_shard(console, i, fill_metrics, question, drop_metrics);
    if (next == ASK_SILENT) result = next;
    if (result != ASK_DONE) {
        if (result == ASK_NONE) drop_metrics(question);
        text_reply(reply, 503, "the node is starting or stopping, or its shard does not answer");
        return;
    }
    reply->status = 200;
    reply->type = "text/plain; version=0.0.4; charset=utf-8";
    put_head(&reply->body, "ready", "gauge", "1 if the node is ready, else 0.");
    out_format(&reply->body, "dohle_ready %d\n", question->stats.missing[0] == '\0');
    put_values(&reply->body, &question->metrics);
    put_requests(&reply->body, &question->metrics);
    put_process(&reply->body);
    out_view(&reply->body, out_so_far(&question->quotas));
    out_view(&reply->body, out_so_far(&question->clients));
    drop_metrics(question);
}

/* ---- pages that others write ----------------------------------------------------------------- */

struct page_question {
    struct mem mem;
    const struct console_page *page;
    char rest[512];
    struct out out;
    int status;
};

static void fill_page(struct shard *shard, void *argument)
{
    struct page_question *question = argument;
    out_reset(&question->out);
    question->status = question->page->fill(shard, view_of_string(question->rest), &question->out);
}

static void drop_page(void *argument)
{
    struct page_question *question = argument;
    out_free(&question->out);
    free(question);
}

static void other_page(struct console *console,
                       const struct console_page *page,
                       const char *path,
                       struct console_reply *reply)
{
    struct page_question *question = calloc(1, sizeof(*question));
    if (question == NULL) {
        text_reply(reply, 500, "no memory");
        return;
    }
    memory_init(&question->mem, 0);
    out_init(&question->out, &question->mem);
    question->page = page;
    (void)snprintf(question->rest, sizeof(question->rest), "%s", path + strlen(page->prefix));
    enum ask_result result = ask_shard(console, 0, fill_page, question, drop_page);
    for (uint32_t i = 1; result == ASK_DONE && question->status == CONSOLE_ELSEWHERE; i++) {
        enum ask_result next = ask_shard(console, i, fill_page, question, drop_page);
        if (next == ASK_NONE) break; /* There are no more shards. */
        result = next;
    }
    if (result != ASK_DONE) {
        if (result == ASK_NONE) drop_page(question);
        text_reply(reply, 503, "the node is starting or stopping, or its shard does not answer");
        return;
    }
    reply->status = question->status;
    reply->type = page->type;
    out_view(&reply->body, out_so_far(&question->out));
    drop_page(question);
}

/* ---- by path --------------------------------------------------------------------------------- */

void page_make(struct console *console,
               const char *path,
               struct mem *mem,
               struct console_reply *reply)
{
    static const struct {
        const char *path;
        void (*make)(struct console *console, struct console_reply *reply);
    } pages[] = {
        {"/healthz", health_page },
        {"/readyz",  ready_page  },
        {"/metrics", metrics_page},
    };
    *reply = (struct console_reply){0};
    out_init(&reply->body, mem);
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        if (strcmp(path, pages[i].path) != 0) continue;
        pages[i].make(console, reply);
        return;
    }
    for (uint32_t i = 0; i < console->options.page_count; i++) {
        const struct console_page *page = &console->options.pages[i];
        if (strncmp(path, page->prefix, strlen(page->prefix)) != 0) continue;
        other_page(console, page, path, reply);
        return;
    }
    text_reply(reply, 404, "there are /healthz, /readyz and /metrics");
}
