/* work.c - background work: one after the other per log, and the memory of jobs.
 *
 * A job may not use the node's struct mem (it counts without locks): it has a struct mem of its own
 * that takes blocks from the same heap, and what it keeps is added to the node's count when the
 * shard takes its result. The heap behind a node's struct mem must serve any thread. */
#include <errno.h>

#include "log/state.h"

static void *job_get(struct mem *job, size_t size_bytes)
{
    struct mem *parent = container_of(job, struct log_job_mem, mem)->parent;
    return parent->get(parent, size_bytes);
}

static void job_put(struct mem *job, void *block, size_t size_bytes)
{
    struct mem *parent = container_of(job, struct log_job_mem, mem)->parent;
    parent->put(parent, block, size_bytes);
}

void log_job_mem_begin(struct log_job_mem *memory, struct mem *parent)
{
    uint64_t left = 0; /* No limit. */
    uint64_t used_bytes = mem_used(parent);
    if (parent->limit_bytes > used_bytes)
        left = parent->limit_bytes - used_bytes;
    else if (parent->limit_bytes != 0)
        left = 1; /* Nothing is left. */
    *memory = (struct log_job_mem){
        {.get = job_get, .put = job_put, .limit_bytes = left},
        parent
    };
}

void log_job_mem_end(struct log_job_mem *memory)
{
    mem_charge(memory->parent, memory->mem.used_bytes);
    memory->mem.used_bytes = 0;
}

static void work_start(struct log_work *work);

static void work_end(struct log_work *work, int64_t result)
{
    struct log *log = work->log;
    log_job_mem_end(&work->memory);
    list_remove(&work->link);
    log->holds++; /* The finish may end the log. */
    work->finish(work, result);
    log->holds--;
    log->working = false;
    if (!list_empty(&log->works)) work_start(container_of(log->works.next, struct log_work, link));
}

static void work_done(struct io_op *op)
{
    struct log_work *work = container_of(op, struct log_work, op);
    work->log->logs->in_flight--;
    work_end(work, op->result);
}

static void work_start(struct log_work *work)
{
    work->log->working = true;
    log_job_mem_begin(&work->memory, work->log->logs->mem);
    if (work->begin != NULL) work->begin(work);
    work->op.done = work_done;
    work->log->logs->in_flight++;
    io_job(work->log->logs->io, &work->op, work->run, work);
}

void log_work_add(struct log *log, struct log_work *work)
{
    work->log = log;
    list_init(&work->link);
    list_append(&log->works, &work->link);
    if (!log->working) work_start(work);
}
