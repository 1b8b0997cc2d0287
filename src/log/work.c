/* work.c - background work: one after the other per log. A job's memory is a share of the node's
 * (sys/memory.h), which must serve any thread. */
#include <errno.h>

#include "log/state.h"

static void work_start(struct log_work *work);

static void work_end(struct log_work *work, int64_t result)
{
    struct log *log = work->log;
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
    memory_share(&work->memory, work->log->logs->mem, 0);
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
