/* replica.c - logs come and go: found on disk, placed here, deleted, found to be strays. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log/load.h"
#include "log/state.h"

/* Where several shards share a directory the first one writes the checkpoint, when it has been
 * told: the stand-in for a stray's name stays for as long, generously. */
#define STAND_IN_MS 60000

/* The map's key: the topic's bytes, then the partition. */
static struct view replica_key(uint8_t *key, struct view topic, int32_t partition)
{
    assert(topic.size <= TOPIC_NAME_MAX);
    memcpy(key, topic.data, topic.size);
    store_be32(key + topic.size, (uint32_t)partition);
    return view_of(key, topic.size + 4);
}

/* With room for the key of either kind. */
static size_t log_bytes(struct view topic)
{
    return sizeof(struct log) + topic.size + 5;
}

/* Of the copy that a move makes: one byte more. */
static struct view future_key(uint8_t *key, struct view topic, int32_t partition)
{
    struct view plain = replica_key(key, topic, partition);
    key[plain.size] = 'f';
    return view_of(key, plain.size + 1);
}

static struct log *replica_make(struct log_directory *directory,
                                struct view topic,
                                int32_t partition,
                                bool future)
{
    struct logs *logs = directory->logs;
    struct log *log = mem_get(logs->mem, log_bytes(topic));
    if (log == NULL) return NULL;
    log->node.key =
        future ? future_key(log->key, topic, partition) : replica_key(log->key, topic, partition);
    log->future = future;
    log->logs = logs;
    log->directory = directory;
    log->config = logs->options.config;
    log->topic = view_of(log->key, topic.size);
    log->partition = partition;
    log->state = LOG_CLOSED;
    log->checkpoint_start = -1;
    log->checkpoint_cleaner = -1;
    log->recovery_cap = INT64_MAX;
    struct list *const lists[] = {&log->writes,   &log->ready,     &log->watches,   &log->telling,
                                  &log->works,    &log->queries,   &log->names,     &log->gone,
                                  &log->changing, &log->retaining, &log->recovering};
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        list_init(lists[i]);
    producers_init(&log->producers, logs->mem, 0);
    log->aside_id = io_random_uuid(logs->io);
    if (!map_insert(&logs->map, &log->node)) {
        mem_put(logs->mem, log, log_bytes(log->topic));
        return NULL;
    }
    directory->partitions++;
    return log;
}

struct log *log_new(struct log_directory *directory, struct view topic, int32_t partition)
{
    return replica_make(directory, topic, partition, false);
}

struct log *log_new_future(struct log_directory *directory, struct view topic, int32_t partition)
{
    return replica_make(directory, topic, partition, true);
}

/* Off every list, and its memory back. Not in the map any more. */
void log_free(struct log *log)
{
    struct logs *logs = log->logs;
    log_writes_drop(log);
    assert(list_empty(&log->writes));
    list_remove(&log->ready);
    list_remove(&log->telling);
    list_remove(&log->names);
    list_remove(&log->gone);
    list_remove(&log->changing);
    list_remove(&log->retaining);
    list_remove(&log->recovering);
    while (list_pop(&log->watches) != NULL)
        continue;
    if (log->metadata_file != NULL) io_disk_close(logs->io, log->metadata_file);
    log_unload(log);
    log_hints_drop(log, NULL);
    mem_put(logs->mem, log, log_bytes(log->topic));
}

struct log *logs_find(const struct logs *logs, struct view topic, int32_t partition)
{
    uint8_t key[TOPIC_NAME_MAX + 5];
    if (topic.null || topic.size > TOPIC_NAME_MAX || partition < 0) return NULL;
    struct map_node *node = map_find(&logs->map, replica_key(key, topic, partition));
    return node == NULL ? NULL : container_of(node, struct log, node);
}

struct log *logs_find_future(const struct logs *logs, struct view topic, int32_t partition)
{
    uint8_t key[TOPIC_NAME_MAX + 5];
    if (topic.null || topic.size > TOPIC_NAME_MAX || partition < 0) return NULL;
    struct map_node *node = map_find(&logs->map, future_key(key, topic, partition));
    return node == NULL ? NULL : container_of(node, struct log, node);
}

void logs_each(struct logs *logs, bool (*each)(void *context, struct log *log), void *context)
{
    struct map_node *next;
    for (struct map_node *node = map_next(&logs->map, NULL); node != NULL; node = next) {
        next = map_next(&logs->map, node);
        if (!each(context, container_of(node, struct log, node))) return;
    }
}

/* ---- placing --------------------------------------------------------------------------------- */

/* The online directory with the fewest partitions; cordoned ones only if all are. */
static struct log_directory *replica_place(struct logs *logs, int *error)
{
    struct log_directory *best = NULL;
    for (uint32_t i = 0; i < logs->directory_count; i++) {
        struct log_directory *directory = &logs->directories[i];
        if (directory->error != 0) {
            *error = directory->error;
            continue;
        }
        bool better = best == NULL || (best->cordoned && !directory->cordoned) ||
                      (best->cordoned == directory->cordoned && !best->cordoned &&
                       directory->partitions < best->partitions);
        if (better) best = directory;
    }
    return best;
}

/* The online directory with this id, or NULL. */
static struct log_directory *replica_assigned(struct logs *logs, struct uuid id)
{
    for (uint32_t i = 0; i < logs->directory_count && !uuid_is_zero(id); i++)
        if (logs->directories[i].error == 0 && uuid_equal(logs->directories[i].id, id))
            return &logs->directories[i];
    return NULL;
}

/* Why a directory is offline, if one is. */
static int replica_offline(const struct logs *logs)
{
    for (uint32_t i = 0; i < logs->directory_count; i++)
        if (logs->directories[i].error != 0) return logs->directories[i].error;
    return 0;
}

/* There is no folder, but the copy of a move that lies where the metadata has the replica: the move
 * had been decided before the stop, and the copy is whole. While a directory is offline the folder
 * may be in there: it would come back with its disk, and there would be two of the name. LOG_OK and
 * NULL: there is no such copy. */
static int replica_promote(struct logs *logs, const struct logs_replica *in, struct log **out)
{
    struct log *log = logs_find_future(logs, in->topic, in->partition);
    *out = NULL;
    if (log == NULL || log->state != LOG_CLOSED) return LOG_OK;
    if (log->directory != replica_assigned(logs, in->assigned)) return LOG_OK;
    int error = replica_offline(logs);
    if (error != 0) return error;
    map_remove(&logs->map, &log->node);
    log->future = false;
    log->promoted = true;
    log->node.key = replica_key(log->key, log->topic, log->partition);
    bool there = map_insert(&logs->map, &log->node); /* Into the room of what was removed. */
    assert(there);
    log_recover_later(log);
    *out = log;
    return LOG_OK;
}

static int replica_new(struct logs *logs, const struct logs_replica *in, struct log **out)
{
    int error = -EIO;
    struct log_directory *directory = in->directory < logs->directory_count
                                          ? &logs->directories[in->directory]
                                          : replica_assigned(logs, in->assigned);
    if (directory == NULL && !in->is_new) { /* It may lie where nobody can look now. */
        error = replica_offline(logs);
        if (error != 0) return error;
    }
    if (directory == NULL) directory = replica_place(logs, &error);
    if (directory == NULL) return error;
    if (directory->error != 0) return directory->error;
    uint8_t key[TOPIC_NAME_MAX + 5];
    struct map_node *lost = map_find(&logs->lost, replica_key(key, in->topic, in->partition));
    struct log_lost *entry = lost == NULL ? NULL : container_of(lost, struct log_lost, node);
    if (entry != NULL && entry->deleted == NULL && !in->is_new) {
        if (!entry->said)
            logs_say(logs,
                     "partition %.*s-%d has lost its folder: a checkpoint names it, the log "
                     "directory has none",
                     (int)in->topic.size, (const char *)in->topic.data, in->partition);
        entry->said = true;
        return LOG_E_DAMAGED;
    }
    struct log *log = log_new(directory, in->topic, in->partition);
    if (log == NULL) return LOG_E_MEMORY;
    log->has_folder = log->unlisted = in->on_disk;
    if (in->on_disk && !directory->clean) log_recover_later(log);
    if (in->on_disk) directory->unasked = false;
    if (entry != NULL) {
        logs->recovery_moved = true; /* The checkpoint's name is another's. */
        map_remove(&logs->lost, lost);
        mem_put(logs->mem, entry, sizeof(*entry));
    }
    *out = log;
    return LOG_OK;
}

/* The recovery had opened the folder, for any topic's, before the metadata said whose it is to be:
 * was it left by another of this name? Then it is out of the way now. One that is being opened is
 * held against the id when it is open (load_again). */
static bool replica_is_others(struct log *log, struct uuid topic_id)
{
    bool open = log->state != LOG_CLOSED && log->state != LOG_OPENING;
    if (!open || log->directory->error != 0 || uuid_is_zero(topic_id) ||
        uuid_is_zero(log->topic_id) || uuid_equal(topic_id, log->topic_id) ||
        load_ids_near(topic_id, log->topic_id))
        return false;
    assert(list_empty(&log->watches)); /* Who used it has deleted it. */
    logs_say(log->logs, "partition %.*s-%d: its folder was another topic's and is now *-stray",
             (int)log->topic.size, (const char *)log->topic.data, log->partition);
    logs_stray(log->logs, log, NULL);
    return true;
}

int logs_replica(struct logs *logs, const struct logs_replica *in, struct log **out)
{
    assert(!in->topic.null);
    assert(in->topic.size > 0);
    assert(in->topic.size <= TOPIC_NAME_MAX);
    assert(in->partition >= 0);
    struct log *log = logs_find(logs, in->topic, in->partition);
    if (log != NULL && replica_is_others(log, in->topic_id)) log = NULL;
    int result = log == NULL ? replica_promote(logs, in, &log) : LOG_OK;
    if (result == LOG_OK && log == NULL) result = replica_new(logs, in, &log);
    if (result != LOG_OK) return result;
    if (log->directory->error != 0) return log->directory->error;
    if (!uuid_is_zero(in->topic_id)) log->topic_id = in->topic_id;
    if (in->config != NULL) log_configure(log, in->config);
    struct log *future = logs_find_future(logs, in->topic, in->partition);
    if (future != NULL && log->move == NULL) log_move_resume(log, future);
    *out = log;
    return LOG_OK;
}

/* ---- going ----------------------------------------------------------------------------------- */

void log_put_aside_fill(struct log_put_aside *aside, const struct log *log, bool stray)
{
    aside->from = log_folder(log);
    aside->to = log_aside(log, stray ? "stray" : "delete");
    aside->stand_in = stray ? log_aside(log, "delete") : (struct disk_path){0};
    aside->directory = disk_path_of(log->directory->path);
}

int log_put_aside_run(struct io *io, const struct log_put_aside *aside)
{
    int error = 0;
    if (aside->stand_in.text[0] != '\0') {
        error = io_disk_mkdir(io, aside->stand_in.text);
        if (error == 0 || error == -EEXIST) error = io_disk_sync_dir(io, aside->directory.text);
    }
    if (error == 0) error = io_disk_rename(io, aside->from.text, aside->to.text);
    return error < 0 ? error : io_disk_sync_dir(io, aside->directory.text);
}

bool log_put_aside_doom(const struct log *log, const struct log_put_aside *aside)
{
    bool stray = aside->stand_in.text[0] != '\0';
    const char *name = strrchr(stray ? aside->stand_in.text : aside->to.text, '/') + 1;
    int64_t delay_ms = stray ? STAND_IN_MS : log->config.file_delete_delay_ms;
    return log_doom(log->directory, name, io_now_ms(log->logs->io) + delay_ms);
}

struct gone {
    struct log_work work;
    struct log_put_aside aside;
    bool rename;
};

static int64_t gone_run(struct io *io, void *argument)
{
    struct gone *gone = argument;
    if (!gone->rename) return 0;
    int error = log_put_aside_run(io, &gone->aside);
    return error == -ENOENT ? 0 : error;
}

/* Freed by logs_gone_turn(): a work may still be the log's. */
static void gone_end(struct log *log, int result)
{
    struct log_task *task = log->gone_task;
    log->gone_finished = true;
    if (task == NULL) return;
    task->result = result;
    task->done(task);
}

static void gone_finish(struct log_work *work, int64_t result)
{
    struct gone *gone = container_of(work, struct gone, work);
    struct log *log = work->log;
    struct logs *logs = log->logs;
    struct log_directory *directory = log->directory;
    if (disk_is_full(result)) { /* A directory can need a block for the new name: once more. */
        log_directory_full(directory);
        log->gone_waits = true;
        log->gone_round = directory->ballast_round;
        log->gone_running = false;
        mem_put(logs->mem, gone, sizeof(*gone));
        return;
    }
    if (result < 0) log_directory_fail(directory, result);
    if (result == 0 && gone->rename && !log_put_aside_doom(log, &gone->aside))
        logs->retry = true; /* The next start finds it. */
    mem_put(logs->mem, gone, sizeof(*gone));
    logs->starts_moved = logs->watermarks_moved = true; /* Out of the checkpoints. */
    logs->recovery_moved = true;
    gone_end(log, result < 0 ? (int)result : LOG_OK);
}

static bool gone_start(struct log *log)
{
    struct gone *gone = mem_get(log->logs->mem, sizeof(*gone));
    if (gone == NULL) return false;
    log_put_aside_fill(&gone->aside, log, log->gone_stray);
    gone->rename = log->has_folder && log->directory->error == 0;
    gone->work.run = gone_run;
    gone->work.finish = gone_finish;
    log->gone_running = true;
    log_work_add(log, &gone->work);
    return true;
}

static bool writes_in_flight(const struct log *log)
{
    return !list_empty(&log->writes) &&
           container_of(log->writes.next, struct log_write, link)->in_flight;
}

static void gone_try(struct log *log)
{
    struct log_directory *directory = log->directory;
    if (directory->error != 0 &&
        log->logs->stopping) { /* Not even the memory for a job is needed. */
        gone_end(log, directory->error);
        return;
    }
    if (log->gone_waits && log->gone_round == directory->ballast_round && directory->error == 0)
        return;
    log->gone_waits = false;
    if (directory->ballast_busy || !gone_start(log)) log->logs->retry = true;
}

void logs_gone_turn(struct logs *logs)
{
    list_foreach (node, &logs->gone) {
        struct log *log = container_of(node, struct log, gone);
        if (log->cleaning != NULL || log->move != NULL) continue;
        if (!list_empty(&log->works) || log->looking || writes_in_flight(log)) continue;
        if (log->gone_finished && log->holds == 0)
            log_free(log);
        else if (!log->gone_finished && !log->gone_running)
            gone_try(log);
    }
}

bool log_name_taken(const struct log *log)
{
    list_foreach (node, &log->logs->gone) {
        const struct log *other = container_of(node, struct log, gone);
        if (!other->gone_finished && view_equal(other->node.key, log->node.key)) return true;
    }
    return false;
}

static void replica_end(struct log *log, struct log_task *task, bool stray)
{
    struct logs *logs = log->logs;
    assert(log->state != LOG_GONE);
    if (log->move != NULL) (void)log_move_abort(log);
    if (log->recover) log_recover_over(log);
    if (log->state != LOG_OPENING)
        for (uint32_t i = 0; i < log->segment_count; i++)
            log_unsynced_drop(log->segments[i]);
    log->state = LOG_GONE;
    log->gone_task = task;
    log->gone_stray = stray;
    log_writes_drop(log);
    list_remove(&log->names);
    list_remove(&log->retaining);
    map_remove(&logs->map, &log->node);
    log->directory->partitions--;
    list_append(&logs->gone, &log->gone);
    log_tell(log, LOG_EVENT_FAILED | LOG_EVENT_READY);
}

void logs_delete(struct logs *logs, struct log *log, struct log_task *task)
{
    assert(log->logs == logs);
    replica_end(log, task, false);
}

void logs_stray(struct logs *logs, struct log *log, struct log_task *task)
{
    assert(log->logs == logs);
    replica_end(log, task, true);
}

/* ---- doomed folders -------------------------------------------------------------------------- */

bool log_doom(struct log_directory *directory, const char *name, int64_t at_ms)
{
    struct log_doomed *doomed = mem_get(directory->logs->mem, sizeof(*doomed));
    if (doomed == NULL) return false;
    doomed->at_ms = at_ms;
    doomed->base = -1;
    doomed->path = disk_join(directory->path, name);
    list_init(&doomed->link);
    list_append(&directory->doomed, &doomed->link);
    return true;
}

bool log_doom_segment(struct log *log, int64_t base, int64_t at_ms)
{
    struct log_doomed *doomed = mem_get(log->logs->mem, sizeof(*doomed));
    if (doomed == NULL) return false;
    doomed->at_ms = at_ms;
    doomed->base = base;
    doomed->path = log_folder(log);
    list_init(&doomed->link);
    list_append(&log->directory->doomed, &doomed->link);
    return true;
}

struct doom_job {
    struct io_op op;
    struct log_directory *directory;
    struct log_doomed *doomed;
    struct io *io;
    int error;
};

static bool doom_unlink(void *context, const char *name)
{
    struct doom_job *job = context;
    job->error = io_disk_unlink(job->io, disk_join(job->doomed->path.text, name).text);
    return job->error == 0;
}

/* The .deleted files of one base. */
static int doom_segment(struct io *io, const struct log_doomed *doomed)
{
    static const char *const suffixes[] = {".log.deleted", ".index.deleted", ".timeindex.deleted",
                                           ".txnindex.deleted", ".snapshot.deleted"};
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        struct segment_name name = segment_file_name(doomed->base, suffixes[i]);
        int error = disk_unlink_if_there(io, disk_join(doomed->path.text, name.text).text);
        if (error < 0 && error != -ENOTDIR) return error;
    }
    return 0;
}

static int64_t doom_run(struct io *io, void *argument)
{
    struct doom_job *job = argument;
    job->io = io;
    if (job->doomed->base >= 0) return doom_segment(io, job->doomed);
    int error = io_disk_list(io, job->doomed->path.text, doom_unlink, job);
    if (error == 0) error = job->error;
    if (error == 0) error = io_disk_rmdir(io, job->doomed->path.text);
    return error == -ENOENT ? 0 : error;
}

static void doom_done(struct io_op *op)
{
    struct doom_job *job = container_of(op, struct doom_job, op);
    struct log_directory *directory = job->directory;
    struct logs *logs = directory->logs;
    logs->in_flight--;
    directory->doomed_busy = false;
    if (op->result < 0) log_directory_fail(directory, op->result);
    list_remove(&job->doomed->link);
    mem_put(logs->mem, job->doomed, sizeof(*job->doomed));
    mem_put(logs->mem, job, sizeof(*job));
}

int64_t log_doomed_turn(struct log_directory *directory, int64_t now_ms)
{
    struct logs *logs = directory->logs;
    if (directory->doomed_busy || directory->error != 0 || list_empty(&directory->doomed))
        return INT64_MAX;
    /* While the folder is there, its name in the checkpoint is not taken for a loss. */
    bool named = logs->recovery_moved || directory->checkpoint_busy[CHECKPOINT_OF_RECOVERY];
    if (named && !logs->stopping) return now_ms + 100;
    struct log_doomed *next = NULL;
    list_foreach (node, &directory->doomed) {
        struct log_doomed *doomed = container_of(node, struct log_doomed, link);
        if (next == NULL || doomed->at_ms < next->at_ms) next = doomed;
    }
    if (next->at_ms > now_ms) return next->at_ms;
    struct doom_job *job = mem_get(logs->mem, sizeof(*job));
    if (job == NULL) return now_ms + 1000;
    job->directory = directory;
    job->doomed = next;
    job->op.done = doom_done;
    directory->doomed_busy = true;
    logs->in_flight++;
    io_job(logs->io, &job->op, doom_run, job);
    return INT64_MAX;
}
