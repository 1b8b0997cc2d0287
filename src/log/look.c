/* look.c - bringing to memory what a read needs: a segment's indexes, pages of its file.
 *
 * One job per log at a time. It loads the offset and time index (and makes them anew from the
 * batches if a file is missing or does not hold), and walks to the wanted place with calls that may
 * wait, so that the caller finds it in the page cache the next time. Indexes of segments that are
 * no longer appended to are unloaded again, the longest unused first, above LOG_INDEX_MEMORY_MAX.
 */
#include <errno.h>

#include "log/look_index.h"

struct look {
    struct look_job job;
    struct read_find find;
    struct look_index index;
    bool load;
};

int look_may(struct log *log, const struct segment *segment)
{
    if (log->looking || segment->swapping) return LOG_LATER;
    int error = log->look_error;
    log->look_error = 0;
    return error == -ENOMEM ? LOG_E_MEMORY : error;
}

void look_begin(struct look_job *job,
                struct log *log,
                struct segment *segment,
                int64_t (*run)(struct io *io, void *argument),
                void (*done)(struct io_op *op))
{
    assert(!log->looking);
    job->log = log;
    job->segment = segment;
    job->base = segment->base;
    memory_share(&job->memory, log->logs->mem, 0);
    job->op.done = done;
    log->looking = true;
    log->holds++;
    log->logs->in_flight++;
    io_job(log->logs->io, &job->op, run, job);
}

struct segment *look_ended(struct look_job *job)
{
    struct log *log = job->log;
    log->logs->in_flight--;
    log->looking = false;
    log->holds--;
    log->look_error = (int)job->op.result;
    uint32_t at = log_segment_floor(log, job->base);
    struct segment *segment = at == UINT32_MAX ? NULL : log->segments[at];
    bool same = segment != NULL && segment == job->segment && segment->base == job->base;
    return same ? segment : NULL;
}

/* Where to walk from: by the index that was loaded, or what the caller knew. */
static uint32_t look_floor(const struct look *look)
{
    struct index_offset from = {0, 0};
    const struct read_find *find = &look->find;
    if (!look->load) return find->at_bytes;
    int64_t relative = MIN(find->offset - look->index.base, (int64_t)INT32_MAX);
    bool found = false;
    if (find->by_position)
        found = index_floor_position(&look->index.offsets, find->position, &from);
    else if (relative >= 0)
        found = index_floor_offset(&look->index.offsets, (uint32_t)relative, &from);
    return found ? from.at_bytes : 0;
}

static int64_t look_run(struct io *io, void *argument)
{
    struct look *look = container_of(argument, struct look, job);
    struct scan scan;
    scan_begin(&scan, io, &look->job.memory.mem, SCAN_WINDOW_LARGE);
    int error = look->load ? look_index_load(&look->index, &scan) : 0;
    if (error == 0) {
        uint32_t from = look_floor(look);
        look->find.least = look->index.base;
        scan_seek(&scan, look->index.file->file, from, look->index.bytes);
        int result = read_walk(&scan, &look->find);
        if (result < 0) error = result; /* Others show again when the caller walks. */
    }
    scan_end(&scan);
    return error;
}

static void look_adopt(struct look *look, struct segment *segment)
{
    struct logs *logs = look->job.log->logs;
    segment->offsets = look->index.offsets;
    segment->times = look->index.times;
    segment->most = look->index.most;
    segment->times_known = true;
    segment->index_bad = false;
    look->index.offsets = look->index.times = (struct index){0};
    if (look->index.rebuilt) look->job.log->recovery.index_errors++;
    list_append(&logs->indexed, &segment->indexed);
    logs->indexed_bytes += look_bytes(segment);
    look_trim(logs);
}

static void look_done(struct io_op *op)
{
    struct look *look = container_of(op, struct look, job.op);
    struct log *log = look->job.log;
    struct mem *mem = log->logs->mem;
    struct segment *segment = look_ended(&look->job);
    if (op->result == 0 && look->load && segment != NULL && !segment->offsets.loaded)
        look_adopt(look, segment);
    look_index_free(&look->index, mem);
    log_file_release(look->index.file);
    mem_put(mem, look, sizeof(*look));
    log_tell(log, LOG_EVENT_READY);
}

int look_start(struct log *log, struct segment *segment, const struct read_find *find)
{
    struct logs *logs = log->logs;
    int result = look_may(log, segment);
    if (result == LOG_OK) result = segment_file(segment, false);
    if (result != LOG_OK) return result;
    struct look *look = mem_get(logs->mem, sizeof(*look));
    if (look == NULL) return LOG_E_MEMORY;
    look_index_of(&look->index, segment);
    log_file_hold(look->index.file);
    look->find = *find;
    look->load = !segment->offsets.loaded;
    look_begin(&look->job, log, segment, look_run, look_done);
    return LOG_LATER;
}

/* ---- unloading ------------------------------------------------------------------------------- */

uint64_t look_bytes(const struct segment *segment)
{
    return (uint64_t)segment->offsets.capacity * segment->offsets.width +
           (uint64_t)segment->times.capacity * segment->times.width;
}

void look_forget(struct segment *segment)
{
    if (list_empty(&segment->indexed)) return;
    list_remove(&segment->indexed);
    segment->log->logs->indexed_bytes -= look_bytes(segment);
}

void look_trim(struct logs *logs)
{
    list_foreach (node, &logs->indexed) {
        if (logs->indexed_bytes <= LOG_INDEX_MEMORY_MAX) return;
        struct segment *segment = container_of(node, struct segment, indexed);
        if (node->next == &logs->indexed) return; /* The newest stays: somebody waits for it. */
        if (segment->sealing) continue;
        look_forget(segment);
        index_unload(logs->mem, &segment->offsets);
        index_unload(logs->mem, &segment->times);
    }
}
