/* group_regex.c - see group_regex.h. */
#include "broker/group_regex.h"

#include "base/view_sort.h"
#include "broker/broker.h"
#include "broker/coordinator_inside.h"
#include "broker/regex.h"
#include "core/consumer_group.h"
#include "gen/consumer_group_heartbeat_request.h"

/* What compiling an expression takes, in topics to match. */
#define COMPILE_COST 256u

/* The expressions of one group on their way. */
struct regex_job {
    struct list link;
    struct coordinator_part *part;
    struct arena arena; /* Of all that follows. */
    struct view group;
    struct view *texts; /* `count` expressions, and what the first `done` of them match. */
    struct consumer_group_matched *matched;
    uint32_t count, done;
    struct view *names; /* `name_count` topics, sorted. */
    uint32_t name_count;
    struct regex *compiled; /* Of the expression that is worked on; NULL: not begun. */
    uint32_t at;            /* How many topics it has been matched with. */
    struct view *hits;      /* And which of them matched. */
    uint32_t hit_count;
    int64_t version; /* Of the image that the topics are of. */
};

struct view group_regex_fault(struct request *request, struct coordinator_part *part, bool *fresh)
{
    const struct consumer_group_heartbeat_request *in = request->message;
    struct view text = in->subscribed_topic_regex, why = VIEW_EMPTY;
    *fresh = false;
    if (text.null || text.size == 0) return VIEW_NULL;
    if (consumer_group_regex_known(coordinator_groups(part), in->group_id, text)) return VIEW_NULL;
    *fresh = true;
    struct regex *compiled = regex_new(&request->arena, text, &why);
    if (compiled == NULL)
        return broker_text(request,
                           "SubscribedTopicRegex `%.*s` is not a valid regular expression: %.*s.",
                           (int)text.size, (const char *)text.data, (int)why.size,
                           why.size == 0 ? "" : (const char *)why.data);
    (void)regex_free(compiled);
    return VIEW_NULL;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static struct regex_job *job_free(struct group_regexes *regexes, struct regex_job *job)
{
    list_remove(&job->link);
    regexes->count--;
    (void)regex_free(job->compiled);
    arena_free(&job->arena);
    return mem_put(regexes->node->mem, job, sizeof(*job));
}

static void *array(struct arena *arena, size_t count, size_t item_bytes)
{
    return arena_get(arena, (count + 1) * item_bytes);
}

/* What is to be matched, copied: the image and the group go on. False: no memory. */
static bool job_fill(struct regex_job *job, const struct request *request, const struct view *texts)
{
    const struct node *node = node_of(request->shard);
    const struct consumer_group_heartbeat_request *in = request->message;
    uint32_t topics = image_count(node->image, IMAGE_TOPIC);
    job->texts = array(&job->arena, job->count, sizeof(*job->texts));
    job->matched = array(&job->arena, job->count, sizeof(*job->matched));
    job->names = array(&job->arena, topics, sizeof(*job->names));
    job->hits = array(&job->arena, topics, sizeof(*job->hits));
    if (job->arena.failed) return false;
    job->group = arena_copy(&job->arena, in->group_id);
    for (uint32_t i = 0; i < job->count; i++)
        job->texts[i] = arena_copy(&job->arena, texts[i]);
    for (const struct image_object *object = NULL;
         (object = image_next(node->image, IMAGE_TOPIC, object)) != NULL;) {
        struct view name = ((const struct image_topic *)object)->name;
        if (auth_allows(request, AUTH_DESCRIBE, AUTH_TOPIC, name))
            job->names[job->name_count++] = arena_copy(&job->arena, name);
    }
    job->version = node->image_offset - 1;
    if (job->arena.failed) return false;
    view_sort(job->names, job->name_count);
    return true;
}

static struct regex_job *job_find(const struct group_regexes *regexes,
                                  const struct coordinator_part *part,
                                  struct view group)
{
    list_foreach (link, &regexes->jobs) {
        struct regex_job *job = container_of(link, struct regex_job, link);
        if (job->part == part && view_equal(job->group, group)) return job;
    }
    return NULL;
}

/* ---- matching -------------------------------------------------------------------------------- */

/* The expression that is worked on has been matched with all topics. */
static void job_next(struct regex_job *job)
{
    struct view *topics = array(&job->arena, job->hit_count, sizeof(*topics));
    for (uint32_t i = 0; topics != NULL && i < job->hit_count; i++)
        topics[i] = job->hits[i];
    job->matched[job->done] = (struct consumer_group_matched){
        .regex = job->texts[job->done],
        .topics = topics,
        .topic_count = job->hit_count,
        .version = job->version,
    };
    job->done++;
    job->at = job->hit_count = 0;
    job->compiled = regex_free(job->compiled);
}

/* Match on until all is done or `*budget` is spent. True: done. */
static bool job_go(struct regex_job *job, uint32_t *budget)
{
    struct view why;
    while (job->done<job->count && * budget> 0) {
        if (job->compiled == NULL) {
            job->compiled = regex_new(&job->arena, job->texts[job->done], &why);
            *budget -= MIN(*budget, COMPILE_COST);
            if (job->compiled == NULL) { /* Only another build takes it for an expression. */
                job_next(job);
                continue;
            }
        }
        for (; job->at<job->name_count && * budget> 0; job->at++, --*budget)
            if (regex_matches(job->compiled, job->names[job->at]))
                job->hits[job->hit_count++] = job->names[job->at];
        if (job->at == job->name_count) job_next(job);
    }
    return job->done == job->count;
}

/* If the step fails, the old result stands until it is due again. */
static void job_finish(struct group_regexes *regexes, struct regex_job *job)
{
    struct coordinator_part *part = job->part;
    struct step step;
    coordinator_step_alone(part, &step);
    enum step_result result = STEP_E_MEMORY;
    if (!job->arena.failed)
        result = consumer_group_resolved(coordinator_groups(part), &step, job->group, job->matched,
                                         job->count);
    if (result == STEP_DONE) (void)!coordinator_commit(part, &step);
    if (job_find(regexes, part, job->group) == job) (void)job_free(regexes, job);
}

static void jobs_go(struct group_regexes *regexes)
{
    uint32_t budget = GROUP_REGEX_SLICE;
    while (!list_empty(&regexes->jobs) && budget > 0) {
        struct regex_job *job = container_of(regexes->jobs.next, struct regex_job, link);
        if (job_go(job, &budget)) job_finish(regexes, job);
    }
    struct node *node = regexes->node;
    if (!list_empty(&regexes->jobs))
        shard_timer_set(node->shard, &regexes->timer, io_now_ms(node->io) + 1);
}

static void slice_due(struct shard *shard, struct shard_timer *timer)
{
    (void)shard;
    jobs_go(container_of(timer, struct group_regexes, timer));
}

void group_regexes_init(struct group_regexes *regexes, struct node *node)
{
    regexes->node = node;
    list_init(&regexes->jobs);
    shard_timer_init(&regexes->timer, slice_due);
}

void group_regex_resolve(struct request *request,
                         struct coordinator_part *part,
                         struct step *step,
                         bool fresh)
{
    const struct consumer_group_heartbeat_request *in = request->message;
    struct node *node = node_of(request->shard);
    struct group_regexes *regexes = &node->coordinator->regexes;
    uint32_t count;
    const struct view *texts =
        consumer_group_regex_due(coordinator_groups(part), step, in->group_id, fresh, &count);
    if (texts == NULL) return;
    struct regex_job *job = job_find(regexes, part, in->group_id);
    if (job != NULL) (void)job_free(regexes, job); /* It began with fewer topics, expressions. */
    if (regexes->count == GROUP_REGEX_JOBS_MAX) return;
    job = mem_get(node->mem, sizeof(*job));
    if (job == NULL) return;
    job->part = part;
    job->count = count;
    arena_init(&job->arena, node->mem, GROUP_REGEX_BYTES_MAX);
    list_append(&regexes->jobs, &job->link);
    regexes->count++;
    if (!job_fill(job, request, texts))
        (void)job_free(regexes, job);
    else if (regexes->count == 1)
        jobs_go(regexes);
}

void group_regex_forget(struct group_regexes *regexes, const struct coordinator_part *part)
{
    struct list *link = regexes->jobs.next;
    while (link != &regexes->jobs) {
        struct regex_job *job = container_of(link, struct regex_job, link);
        link = link->next;
        if (job->part == part) (void)job_free(regexes, job);
    }
    if (list_empty(&regexes->jobs)) shard_timer_cancel(&regexes->timer);
}
