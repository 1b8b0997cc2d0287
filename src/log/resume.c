/* resume.c - a place from which a recovery may begin inside a segment, made beside the recovery
 * points.
 *
 * What is in memory of the last segment goes to Kafka's own files while it is still appended to:
 * its index entries so far, and the producers at the log's end. After a crash load_resume.c begins
 * at the last entry below the newest snapshot but one that the recovery point has passed; without
 * these files, or with damaged ones, at the segment's base. So what a recovery reads is bounded by
 * LOG_RESUME_BYTES, not by the segment.
 *
 * One job per log, each step durable before the next: .timeindex and .txnindex; the snapshot;
 * .index. So an entry of .index says that the times up to it are there, a snapshot that the aborted
 * transactions below it are. The newest snapshot is passed over because it knows only the last
 * batch of a producer: the one before lies far enough back that what may be sent again is replayed.
 * For the same reason the first one in a segment comes without .index: until there is a second,
 * the segment is read from its base. A clean stop's own, alone at the end, is not passed over.
 * LOG_RESUME_SNAPSHOTS such snapshots stay, as Kafka's segments' own do; the others go. */
#include <errno.h>

#include "log/state.h"
#include "record/sink.h"

/* The snapshot is written for that many times its own bytes at the least. */
#define SNAPSHOT_SHARE     8u
#define PRODUCER_BYTES     46u
#define RESUME_TIMED_SHARE 16u /* With the checkpoints that come by the clock, less is enough. */

struct resume {
    struct log_work work;
    int64_t base;                           /* The segment's. */
    bool begun;                             /* The following is set. */
    bool first;                             /* No snapshot lies above the base yet. */
    int64_t end;                            /* The log's, which is the snapshot's. */
    uint32_t size;                          /* The segment's. */
    struct index offsets, times, txns;      /* What the files lack, */
    uint32_t offsets_at, times_at, txns_at; /* and how many entries they have. */
    struct sink snapshot;
};

/* ---- the job --------------------------------------------------------------------------------- */

struct resume_listing {
    struct io *io;
    const struct log *log;
    int64_t below;                      /* Snapshots from here on stay. */
    int64_t segment;                    /* Base of the .log that was listed last. */
    int64_t kept[LOG_RESUME_SNAPSHOTS]; /* Those that stay, as yet, */
    uint32_t count;
    uint32_t most; /* and at most so many. */
    int error;
};

static void listing_unlink(struct resume_listing *listing, int64_t base)
{
    struct disk_path path = log_path(listing->log, segment_file_name(base, ".snapshot").text);
    listing->error = disk_unlink_if_there(listing->io, path.text);
}

/* Names come in their order, so a segment's .log comes before its .snapshot. */
static bool listing_name(void *context, const char *name)
{
    struct resume_listing *listing = context;
    int64_t base;
    const char *suffix = segment_name_read(name, &base);
    if (suffix == NULL) return true;
    if (strcmp(suffix, ".log") == 0) listing->segment = base;
    bool of_segment = base == listing->segment;
    if (strcmp(suffix, ".snapshot") != 0 || of_segment || base >= listing->below) return true;
    if (listing->count < listing->most) {
        listing->kept[listing->count++] = base;
        return true;
    }
    listing_unlink(listing, listing->count == 0 ? base : listing->kept[0]);
    if (listing->count == 0) return listing->error == 0;
    memmove(&listing->kept[0], &listing->kept[1], sizeof(listing->kept) - sizeof(int64_t));
    listing->kept[listing->count - 1] = base;
    return listing->error == 0;
}

int log_resume_drop(struct io *io, const struct log *log, int64_t below, uint32_t keep)
{
    assert(keep <= LOG_RESUME_SNAPSHOTS);
    struct resume_listing listing = {
        .io = io, .log = log, .below = below, .segment = -1, .most = keep};
    int error = io_disk_list(io, log_folder(log).text, listing_name, &listing);
    return error == 0 ? listing.error : error;
}

static struct disk_path resume_path(const struct resume *resume, int64_t base, const char *suffix)
{
    return log_path(resume->work.log, segment_file_name(base, suffix).text);
}

static int64_t resume_run(struct io *io, void *argument)
{
    const struct resume *resume = argument;
    if (!resume->begun) return -ECANCELED;
    int64_t base = resume->base;
    int error = index_extend(io, resume_path(resume, base, ".timeindex").text, resume->times_at,
                             &resume->times);
    if (error == 0 && resume->txns.count > 0)
        error = index_extend(io, resume_path(resume, base, ".txnindex").text, resume->txns_at,
                             &resume->txns);
    if (error == 0 && resume->txns.count > 0 && resume->txns_at == 0) /* Its name, too. */
        error = io_disk_sync_dir(io, log_folder(resume->work.log).text);
    if (error == 0)
        error = disk_write_synced(io, resume_path(resume, resume->end, ".snapshot").text,
                                  sink_view(&resume->snapshot));
    if (error == 0 && !resume->first)
        error = index_extend(io, resume_path(resume, base, ".index").text, resume->offsets_at,
                             &resume->offsets);
    if (error == 0)
        error = log_resume_drop(io, resume->work.log, resume->end, LOG_RESUME_SNAPSHOTS - 1);
    return error;
}

/* ---- in the shard ---------------------------------------------------------------------------- */

static bool resume_copy(struct mem *mem, const struct index *from, struct index *to, uint32_t *at)
{
    *at = from->stored;
    *to = index_new(from->width);
    uint32_t more = from->count - from->stored;
    if (!index_reserve(mem, to, more)) return false;
    if (more > 0)
        memcpy(to->entries, from->entries + (size_t)*at * from->width, (size_t)more * from->width);
    to->count = more;
    return true;
}

static void resume_begin(struct log_work *work)
{
    struct resume *resume = container_of(work, struct resume, work);
    struct log *log = work->log;
    struct mem *mem = log->logs->mem;
    if (log->state != LOG_READY || log->directory->error != 0) return;
    const struct segment *segment = log_active(log);
    if (!segment->made || segment->size_bytes == 0) return;
    resume->base = segment->base;
    resume->end = log->end;
    resume->size = segment->size_bytes;
    resume->first = segment->resume_count == 0;
    producers_write(&log->producers, &resume->snapshot);
    resume->begun = resume->snapshot.fault == SINK_OK &&
                    resume_copy(mem, &segment->offsets, &resume->offsets, &resume->offsets_at) &&
                    resume_copy(mem, &segment->times, &resume->times, &resume->times_at) &&
                    resume_copy(mem, &segment->txns, &resume->txns, &resume->txns_at);
}

/* The segment that it was, if it is the last one still: only then the files are just what the job
 * has made them. */
static struct segment *resume_segment(const struct resume *resume)
{
    struct log *log = resume->work.log;
    if (log->state != LOG_READY && log->state != LOG_CHANGING) return NULL;
    uint32_t at = log_segment_floor(log, resume->base);
    if (at == UINT32_MAX || log->segments[at]->base != resume->base) return NULL;
    struct segment *segment = log->segments[at];
    return segment->offsets.loaded && !segment->sealed ? segment : NULL;
}

static void resume_stored(const struct resume *resume, int64_t result)
{
    struct segment *segment = resume_segment(resume);
    if (segment == NULL) return;
    if (result == -ENODATA) { /* A file lost what it had: all of it the next time. */
        segment->offsets.stored = segment->times.stored = segment->txns.stored = 0;
        return;
    }
    if (!resume->first) segment->offsets.stored = resume->offsets_at + resume->offsets.count;
    segment->times.stored = resume->times_at + resume->times.count;
    segment->txns.stored = resume->txns_at + resume->txns.count;
    segment->resume_bytes = resume->size;
    segment->resume_count++;
    segment->resume_lone = false;
}

static void resume_finish(struct log_work *work, int64_t result)
{
    struct resume *resume = container_of(work, struct resume, work);
    struct log *log = work->log;
    struct mem *mem = log->logs->mem;
    log->resuming = false;
    if (result == 0) {
        log_names_dirty(log);
        log->producers.snapshot_end = MAX(log->producers.snapshot_end, resume->end);
    }
    if (result == 0 || result == -ENODATA)
        resume_stored(resume, result);
    else if (disk_is_full(result))
        log_directory_full(log->directory); /* With the next checkpoint. */
    else if (result != -ECANCELED)
        log_directory_fail(log->directory, result);
    index_unload(mem, &resume->offsets);
    index_unload(mem, &resume->times);
    index_unload(mem, &resume->txns);
    sink_free(&resume->snapshot);
    mem_put(mem, resume, sizeof(*resume));
}

static bool resume_is_due(const struct log *log, bool timed)
{
    const struct segment *segment = log_active(log);
    if (log->resuming || log->unlisted || !segment->made) return false;
    uint64_t least = log->logs->options.resume_bytes;
    uint64_t snapshot = (uint64_t)log->producers.map.count * PRODUCER_BYTES;
    if (timed) least = MAX(least / RESUME_TIMED_SHARE, 1u);
    least = MAX(least, snapshot * SNAPSHOT_SHARE);
    uint64_t grown = segment->durable_bytes - MIN(segment->resume_bytes, segment->durable_bytes);
    if (grown >= least) return true;
    /* A lone one is passed over as soon as the recovery point rises. */
    return timed && grown > 0 && segment->resume_lone && segment->size_bytes >= least;
}

bool log_resume_write(struct log *log, bool timed)
{
    if (!resume_is_due(log, timed)) return false;
    struct resume *resume = mem_get(log->logs->mem, sizeof(*resume));
    if (resume == NULL) return false; /* The next time. */
    sink_init(&resume->snapshot, log->logs->mem, UINT32_MAX);
    resume->work.begin = resume_begin;
    resume->work.run = resume_run;
    resume->work.finish = resume_finish;
    log->resuming = true;
    log_work_add(log, &resume->work);
    return true;
}
