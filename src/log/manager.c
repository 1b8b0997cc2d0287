/* manager.c - a shard's logs as a whole: start, turn, what others ask about directories.
 *
 * The order of a start, per directory: lock, identity, clean mark (taken away before anything is
 * touched), checkpoints, names. The order of a turn: tell what happened, hand over writes, start
 * commits, run what is due. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "log/checkpoint.h"
#include "log/log_mark.h"
#include "log/state.h"

/* After a want of memory or descriptors, how soon to try again. */
#define RETRY_MS      10
#define STOP_RETRY_MS 10000

void logs_say(struct logs *logs, const char *format, ...)
{
    if (logs->options.say == NULL) return;
    char text[DISK_PATH_MAX + 256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    logs->options.say(logs->options.context, text);
}

void log_debug(const struct log *log, const char *format, ...)
{
    const struct say *to = log->logs->options.tell;
    if (to == NULL || !say_on(to, SAY_DEBUG, SAY_IN_LOG)) return;
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    say(to, SAY_DEBUG, SAY_IN_LOG, "partition %.*s-%d: %s", (int)log->topic.size,
        (const char *)log->topic.data, log->partition, text);
}

/* ---- start: identity --------------------------------------------------------------------------
 */

/* The directory is offline, and the others go on; but no memory says nothing of a disk. */
static int open_failed(struct log_directory *directory, int error)
{
    if (error == -ENOMEM) return LOGS_E_MEMORY;
    log_directory_fail(directory, error);
    return LOGS_OK;
}

static int open_lock(struct log_directory *directory)
{
    struct logs *logs = directory->logs;
    struct disk_path path = disk_join(directory->path, ".lock");
    int error = io_disk_lock(logs->io, path.text, &directory->lock);
    if (error == -EWOULDBLOCK) {
        logs_say(logs, "log directory \"%s\" is in use by another process", directory->path);
        return LOGS_E_LOCKED;
    }
    return error < 0 ? open_failed(directory, error) : LOGS_OK;
}

/* Kafka before 3.7 gave directories no id: it gets one now, as Kafka 4 does it. */
static int open_name(struct log_directory *directory, const struct log_meta *meta)
{
    struct logs *logs = directory->logs;
    struct log_meta named = *meta;
    named.version = 1;
    named.directory_id = io_random_uuid(logs->io);
    int error = log_meta_write(logs->io, directory->path, &named);
    directory->id = named.directory_id;
    return error < 0 ? open_failed(directory, error) : LOGS_OK;
}

/* Does this directory's identity fit the node and the other directories? */
static int open_check_meta(struct log_directory *directory,
                           const struct log_meta *meta,
                           struct log_meta *common)
{
    struct logs *logs = directory->logs;
    if (meta->node_id != logs->options.node_id) {
        logs_say(
            logs,
            "log directory \"%s\" belongs to node %d, this is node %d; set node.id=%d, or give this "
            "node a directory of its own",
            directory->path, meta->node_id, logs->options.node_id, meta->node_id);
        return LOGS_E_META;
    }
    if (common->version < 0) *common = *meta;
    if (strcmp(common->cluster_id, meta->cluster_id) != 0) {
        logs_say(
            logs,
            "log directory \"%s\" belongs to cluster %s, another one to %s; one of them does not belong here",
            directory->path, meta->cluster_id, common->cluster_id);
        return LOGS_E_META;
    }
    directory->id = meta->directory_id;
    if (uuid_is_zero(directory->id)) return open_name(directory, meta);
    for (uint32_t i = 0; i < directory->index; i++) {
        if (!uuid_equal(logs->directories[i].id, directory->id)) continue;
        logs_say(logs, "log directories \"%s\" and \"%s\" have the same directory.id",
                 logs->directories[i].path, directory->path);
        return LOGS_E_META;
    }
    return LOGS_OK;
}

static int open_meta(struct log_directory *directory, struct log_meta *common, bool *missing)
{
    struct log_meta meta;
    *missing = false;
    int result = log_meta_read(directory->logs->io, directory->path, &meta);
    if (result < 0) return open_failed(directory, result);
    if (result == LOG_META_MISSING) {
        *missing = true;
        return LOGS_OK;
    }
    if (result == LOG_META_INVALID) {
        logs_say(
            directory->logs,
            "\"%s/meta.properties\" is not valid: it must have version=1, cluster.id and node.id",
            directory->path);
        return LOGS_E_META;
    }
    return open_check_meta(directory, &meta, common);
}

/* An empty directory beside others that are formatted becomes one of them. */
static int open_format(struct log_directory *directory, const struct log_meta *common)
{
    struct logs *logs = directory->logs;
    struct log_meta meta = *common;
    meta.version = 1;
    meta.directory_id = io_random_uuid(logs->io);
    int error = log_meta_write(logs->io, directory->path, &meta);
    if (error < 0) return open_failed(directory, error);
    directory->id = meta.directory_id;
    logs_say(logs, "log directory \"%s\" was empty and is formatted", directory->path);
    return LOGS_OK;
}

static int open_identity(struct logs *logs)
{
    struct log_meta common = {.version = -1};
    bool missing[LOG_DIRS_MAX] = {false};
    uint32_t missing_count = 0;
    for (uint32_t i = 0; i < logs->directory_count; i++) {
        struct log_directory *directory = &logs->directories[i];
        int result = open_lock(directory);
        if (result == LOGS_OK && directory->error == 0)
            result = open_meta(directory, &common, &missing[i]);
        if (result != LOGS_OK) return result;
        missing_count += missing[i];
    }
    if (missing_count > 0 && common.version < 0) {
        logs_say(logs, "no log directory is formatted");
        return LOGS_E_FORMAT;
    }
    for (uint32_t i = 0; i < logs->directory_count; i++) {
        if (!missing[i]) continue;
        int result = open_format(&logs->directories[i], &common);
        if (result != LOGS_OK) return result;
    }
    return LOGS_OK;
}

/* ---- start: names and checkpoints -------------------------------------------------------------
 */

struct listing {
    struct log_directory *directory;
    int result; /* enum logs_result. */
};

static bool list_partition(struct listing *listing, const struct names_folder *folder)
{
    struct log_directory *directory = listing->directory;
    struct logs *logs = directory->logs;
    struct log *there = logs_find(logs, folder->topic, folder->partition);
    if (there != NULL) {
        logs_say(logs, "partition %.*s-%d lies in \"%s\" and in \"%s\"", (int)folder->topic.size,
                 (const char *)folder->topic.data, folder->partition, there->directory->path,
                 directory->path);
        listing->result = LOGS_E_NAMES;
        return false;
    }
    struct log *log = log_new(directory, folder->topic, folder->partition);
    if (log == NULL) {
        listing->result = LOGS_E_MEMORY;
        return false;
    }
    log->has_folder = true;
    if (!directory->clean) log_recover_later(log);
    return true;
}

/* What a move that was interrupted has copied; of several the first one counts. */
static bool list_future(struct listing *listing,
                        const struct names_folder *folder,
                        const char *name)
{
    struct log_directory *directory = listing->directory;
    struct logs *logs = directory->logs;
    if (logs_find_future(logs, folder->topic, folder->partition) != NULL) {
        if (!log_doom(directory, name, io_now_ms(logs->io))) listing->result = LOGS_E_MEMORY;
        return listing->result == LOGS_OK;
    }
    struct log *log = log_new_future(directory, folder->topic, folder->partition);
    if (log == NULL) {
        listing->result = LOGS_E_MEMORY;
        return false;
    }
    log->aside_id = folder->aside_id;
    log->has_folder = true;
    return true; /* Recovered when somebody wants it, whatever the mark says. */
}

/* A partition that a checkpoint names, without a folder, or (`deleted`) one whose folder waits for
 * its unlinking. What was known of it first stands, but a lost one is lost. */
static bool lost_add(struct log_directory *directory,
                     struct view topic,
                     int32_t partition,
                     bool deleted)
{
    struct logs *logs = directory->logs;
    struct log_lost *lost = mem_get(logs->mem, sizeof(*lost));
    if (lost == NULL) return false;
    memcpy(lost->key, topic.data, topic.size);
    store_be32(lost->key + topic.size, (uint32_t)partition);
    lost->node.key = view_of(lost->key, topic.size + 4);
    lost->deleted = deleted ? directory : NULL;
    struct map_node *known = map_find(&logs->lost, lost->node.key);
    if (known == NULL && map_insert(&logs->lost, &lost->node)) return true;
    mem_put(logs->mem, lost, sizeof(*lost));
    if (known == NULL || deleted) return true;
    struct log_lost *before = container_of(known, struct log_lost, node);
    if (before->deleted == directory)
        logs->recovery_moved = true; /* The name goes before the folder does. */
    else
        before->deleted = NULL;
    return true;
}

static bool list_name(void *context, const char *name)
{
    struct listing *listing = context;
    struct log_directory *directory = listing->directory;
    struct logs *logs = directory->logs;
    struct io_stat stat;
    int error = io_disk_stat(logs->io, disk_join(directory->path, name).text, &stat);
    if (error < 0) {
        log_directory_fail(directory, error);
        return false;
    }
    if (!stat.is_directory) return !parts_first(logs) || log_ballast_left(directory, name);
    struct names_folder folder = names_parse(name);
    bool replica = folder.kind == NAMES_PARTITION || folder.kind == NAMES_FUTURE;
    if (folder.kind == NAMES_DELETE && parts_owns(logs, folder.topic, folder.partition) &&
        !lost_add(directory, folder.topic, folder.partition, true)) {
        listing->result = LOGS_E_MEMORY;
        return false;
    }
    if (!parts_first(logs) && !replica) return true;
    switch (folder.kind) {
    case NAMES_PARTITION:
        return !parts_owns(logs, folder.topic, folder.partition) ||
               list_partition(listing, &folder);
    case NAMES_DELETE:
        if (!log_doom(directory, name, io_now_ms(logs->io))) listing->result = LOGS_E_MEMORY;
        return listing->result == LOGS_OK;
    case NAMES_FUTURE:
        return !parts_owns(logs, folder.topic, folder.partition) ||
               list_future(listing, &folder, name);
    case NAMES_SKIP:
        directory->unasked |= !directory->clean && strcmp(name, "__cluster_metadata-0") == 0;
        return true;
    case NAMES_STRAY: return true;
    case NAMES_BAD: break;
    }
    logs_say(logs, "\"%s/%s\" is no partition's folder: it does not belong here; move it away",
             directory->path, name);
    listing->result = LOGS_E_NAMES;
    return false;
}

static bool checkpoint_take(struct log_directory *directory,
                            enum checkpoint_kind kind,
                            const struct checkpoint_entry *entry)
{
    struct logs *logs = directory->logs;
    struct log *log = logs_find(logs, entry->topic, entry->number);
    struct log *future = logs_find_future(logs, entry->topic, entry->number);
    if (future != NULL && future->directory == directory) log = future;
    if (log != NULL && log->directory == directory) {
        if (kind == CHECKPOINT_OF_RECOVERY) log->checkpoint_recovery = entry->offset;
        if (kind == CHECKPOINT_OF_STARTS) log->checkpoint_start = entry->offset;
        if (kind == CHECKPOINT_OF_WATERMARKS) log->checkpoint_watermark = entry->offset;
        if (kind == CHECKPOINT_OF_CLEANER) log->checkpoint_cleaner = entry->offset;
        return true;
    }
    if (log != NULL || kind != CHECKPOINT_OF_RECOVERY || entry->offset <= 0) return true;
    if (entry->topic.size > TOPIC_NAME_MAX || view_is(entry->topic, "__cluster_metadata") ||
        !parts_owns(logs, entry->topic, entry->number))
        return true;
    return lost_add(directory, entry->topic, entry->number, false);
}

static int open_checkpoint(struct log_directory *directory,
                           enum checkpoint_kind kind,
                           const char *name)
{
    struct logs *logs = directory->logs;
    struct disk_bytes bytes;
    struct disk_path path = disk_join(directory->path, name);
    int error = disk_read_whole(logs->io, logs->mem, path.text, CHECKPOINT_BYTES_MAX, &bytes);
    if (error == -ENOENT) return LOGS_OK;
    if (error < 0) return open_failed(directory, error);
    struct view text = view_of(bytes.data, bytes.size_bytes);
    bool enough = true;
    if (text.size > 0 && !checkpoint_valid(text, true)) { /* Nothing at all is no entries. */
        logs_say(logs, "\"%s\" is not valid and is not used", path.text);
    } else {
        struct checkpoint_reader reader = checkpoint_read(text, true);
        struct checkpoint_entry entry;
        while (enough && checkpoint_next(&reader, &entry))
            enough = checkpoint_take(directory, kind, &entry);
    }
    disk_free(logs->mem, &bytes);
    return enough ? LOGS_OK : LOGS_E_MEMORY;
}

/* A directory with partitions in it has lost none of them when the name says so: those that wait
 * for their unlinking are not lost but deleted. */
static int open_contents(struct log_directory *directory)
{
    struct logs *logs = directory->logs;
    int error = 0;
    if (parts_first(logs))
        error =
            log_mark_take(logs->io, directory->path, &directory->clean, &directory->previous_epoch);
    if (error < 0) return open_failed(directory, error);
    struct listing listing = {directory, LOGS_OK};
    error = io_disk_list(logs->io, directory->path, list_name, &listing);
    if (error < 0 && listing.result == LOGS_OK) listing.result = open_failed(directory, error);
    if (listing.result != LOGS_OK || directory->error != 0) return listing.result;

    static const char *const names[] = {CHECKPOINT_RECOVERY, CHECKPOINT_START, CHECKPOINT_WATERMARK,
                                        CHECKPOINT_CLEANER};
    for (int kind = 0; kind < 4; kind++) {
        int result = open_checkpoint(directory, (enum checkpoint_kind)kind, names[kind]);
        if (result != LOGS_OK) return result;
    }
    log_ballast_take(directory);
    return LOGS_OK;
}

static int open_all(struct logs *logs)
{
    int result = parts_first(logs) ? open_identity(logs) : LOGS_OK;
    uint32_t online = 0;
    if (!parts_first(logs)) parts_inherit(logs);
    for (uint32_t i = 0; i < logs->directory_count && result == LOGS_OK; i++) {
        struct log_directory *directory = &logs->directories[i];
        if (directory->error == 0) result = open_contents(directory);
        online += directory->error == 0;
    }
    if (result != LOGS_OK) return result;
    if (!parts_first(logs) && !parts_give(logs)) return LOGS_E_MEMORY;
    return online == 0 ? LOGS_E_DIRECTORIES : LOGS_OK;
}

/* ---- start: the whole -------------------------------------------------------------------------
 */

static void open_defaults(struct logs_options *options)
{
    uint32_t parts = options->part == NULL ? 1 : options->part->count;
    if (options->open_files_max == 0) options->open_files_max = LOG_OPEN_FILES_MAX / parts;
    if (options->unsynced_max_bytes == 0) options->unsynced_max_bytes = LOG_UNSYNCED_MAX / parts;
    if (options->retention_interval_ms == 0) options->retention_interval_ms = 300000;
    if (options->checkpoint_interval_ms == 0) options->checkpoint_interval_ms = 60000;
    if (options->resume_bytes == 0) options->resume_bytes = LOG_RESUME_BYTES;
    if (options->high_watermark_interval_ms == 0) options->high_watermark_interval_ms = 5000;
    if (options->cleaner_backoff_ms == 0) options->cleaner_backoff_ms = 15000;
    if (options->cleaner_map_bytes == 0) options->cleaner_map_bytes = LOG_CLEANER_MAP_BYTES;
    options->paths = NULL;
}

static void open_directory(struct logs *logs, uint32_t index, const char *path)
{
    struct log_directory *directory = &logs->directories[index];
    directory->logs = logs;
    directory->index = index;
    directory->previous_epoch = -1;
    directory->commit.directory = directory;
    struct list *const lists[] = {&directory->dirty, &directory->names, &directory->doomed,
                                  &directory->commit.segments, &directory->commit.logs};
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        list_init(lists[i]);
    int length = snprintf(directory->path, sizeof(directory->path), "%s", path);
    if (length < 0 || (size_t)length >= sizeof(directory->path))
        log_directory_fail(directory, -ENAMETOOLONG);
}

static struct logs *logs_new(struct io *io, const struct logs_options *options)
{
    struct mem *mem = io_mem(io);
    struct logs *logs = mem_get(mem, sizeof(*logs));
    if (logs == NULL) return NULL;
    logs->io = io;
    logs->mem = mem;
    logs->options = *options;
    open_defaults(&logs->options);
    logs_space_open(logs);
    struct list *const lists[] = {&logs->gone,       &logs->retaining,    &logs->changing,
                                  &logs->ready,      &logs->telling,      &logs->watches,
                                  &logs->files,      &logs->spare_writes, &logs->indexed,
                                  &logs->recovering, &logs->moves};
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        list_init(lists[i]);
    map_init(&logs->map, mem, io_random(io, IO_RANDOM_HASH));
    map_init(&logs->lost, mem, io_random(io, IO_RANDOM_HASH));
    compress_work_init(&logs->compress, mem);
    logs->directories = mem_get(mem, options->path_count * sizeof(logs->directories[0]));
    if (logs->directories == NULL) {
        mem_put(mem, logs, sizeof(*logs));
        return NULL;
    }
    logs->directory_count = options->path_count;
    for (uint32_t i = 0; i < options->path_count; i++)
        open_directory(logs, i, options->paths[i]);
    logs_tasks_start(logs, io_now_ms(io));
    if (!parts_init(logs)) {
        logs_abandon(logs);
        return NULL;
    }
    return logs;
}

int logs_open(struct io *io, const struct logs_options *options, struct logs **out)
{
    assert(options->path_count > 0);
    assert(options->path_count <= LOG_DIRS_MAX);
    *out = NULL;
    struct logs *logs = logs_new(io, options);
    if (logs == NULL) return LOGS_E_MEMORY;
    int result = open_all(logs);
    if (result != LOGS_OK) {
        logs_abandon(logs);
        return result;
    }
    *out = logs;
    return LOGS_OK;
}

/* ---- turn ------------------------------------------------------------------------------------ */

static void turn_tell(struct logs *logs)
{
    struct list todo;
    list_init(&todo);
    struct list *node;
    while ((node = list_pop(&logs->telling)) != NULL)
        list_append(&todo, node);
    while ((node = list_pop(&todo)) != NULL)
        log_deliver(container_of(node, struct log, telling));
}

static void turn_offline(struct log_directory *directory)
{
    if (directory->error == 0 || directory->told_offline) return;
    directory->told_offline = true;
    list_foreach (node, &directory->logs->watches) {
        struct logs_watch *watch = container_of(node, struct logs_watch, link);
        watch->offline(watch, directory->index);
    }
}

static void turn_writes(struct logs *logs)
{
    struct list todo;
    list_init(&todo);
    struct list *node;
    while ((node = list_pop(&logs->ready)) != NULL)
        list_append(&todo, node);
    while ((node = list_pop(&todo)) != NULL)
        log_writes_submit(container_of(node, struct log, ready));
}

/* A stop waits for descriptors and memory for a while only. What could not be handed over was not
 * acknowledged, and the next start recovers. */
static void turn_gives_up(struct logs *logs, int64_t now_ms)
{
    if (!logs->stopping || !logs->retry) return;
    if (logs->stop_retry_ms == 0) logs->stop_retry_ms = now_ms + STOP_RETRY_MS;
    if (now_ms < logs->stop_retry_ms) return;
    for (uint32_t i = 0; i < logs->directory_count; i++)
        log_directory_fail(&logs->directories[i], -EAGAIN);
}

int64_t logs_turn(struct logs *logs)
{
    int64_t now_ms = io_now_ms(logs->io);
    int64_t next_ms = INT64_MAX;
    turn_tell(logs);
    turn_gives_up(logs, now_ms);
    logs->retry = false;
    bool gathered = !list_empty(&logs->ready);
    turn_writes(logs);
    if (gathered && io_writes_now(logs->io) > 0) { /* Who waited is answered in this turn. */
        turn_tell(logs);
        turn_writes(logs);
    }
    for (uint32_t i = 0; i < logs->directory_count; i++) {
        struct log_directory *directory = &logs->directories[i];
        turn_offline(directory);
        next_ms = sooner_ms(next_ms, log_directory_turn(directory, now_ms));
        next_ms = sooner_ms(next_ms, log_ballast_turn(directory, now_ms));
        next_ms = sooner_ms(next_ms, log_doomed_turn(directory, now_ms));
    }
    logs_changes_turn(logs);
    logs_gone_turn(logs);
    next_ms = sooner_ms(next_ms, logs_moves_turn(logs, now_ms));
    next_ms = sooner_ms(next_ms, logs_tasks_turn(logs, now_ms));
    log_files_trim(logs);
    if (!list_empty(&logs->telling)) next_ms = now_ms;
    return logs->retry ? MIN(next_ms, now_ms + RETRY_MS) : next_ms;
}

static bool idle_log(void *context, struct log *log)
{
    bool *idle = context;
    if (log->directory->error != 0) return true;
    *idle = list_empty(&log->writes) && list_empty(&log->works) && !log->looking;
    return *idle;
}

bool logs_idle(const struct logs *logs)
{
    if (logs->cleaning != NULL && logs->clean_again == NULL) return false;
    if (logs->in_flight > 0 || !list_empty(&logs->telling) || !list_empty(&logs->gone) ||
        !list_empty(&logs->changing))
        return false;
    for (uint32_t i = 0; i < logs->directory_count; i++) {
        const struct log_directory *directory = &logs->directories[i];
        if (directory->error != 0) continue;
        if (!list_empty(&directory->dirty) || !list_empty(&directory->names)) return false;
    }
    bool idle = true;
    struct map_node *node = NULL;
    while (idle && (node = map_next(&logs->map, node)) != NULL)
        idle_log(&idle, container_of(node, struct log, node));
    return idle;
}

/* ---- directories ------------------------------------------------------------------------------
 */

uint32_t logs_dir_count(const struct logs *logs)
{
    return logs->directory_count;
}

void logs_dir_info(const struct logs *logs, uint32_t index, struct log_dir_info *out)
{
    assert(index < logs->directory_count);
    const struct log_directory *directory = &logs->directories[index];
    *out = (struct log_dir_info){
        .path = directory->path,
        .directory_id = directory->id,
        .error = directory->error,
        .full = directory->full,
        .clean = directory->clean,
        .cordoned = directory->cordoned,
        .partitions = directory->partitions,
        .unrecovered = directory->unrecovered,
        .unsynced_bytes = directory->unsynced_bytes,
        .commits = directory->commits,
        .commit_files = directory->commit_files,
    };
}

void logs_dir_cordon(struct logs *logs, uint32_t index, bool cordoned)
{
    assert(index < logs->directory_count);
    logs->directories[index].cordoned = cordoned;
}

bool logs_dir_full(const struct logs *logs, uint32_t index)
{
    assert(index < logs->directory_count);
    return logs->directories[index].full;
}

bool logs_dir_busy(const struct logs *logs, uint32_t index)
{
    assert(index < logs->directory_count);
    const struct log_directory *directory = &logs->directories[index];
    return logs->space_wanted_bytes > 0 || directory->unsynced_bytes >= directory->unsynced_max;
}

int64_t logs_previous_broker_epoch(const struct logs *logs)
{
    int64_t epoch = logs->directories[0].previous_epoch;
    for (uint32_t i = 0; i < logs->directory_count; i++) {
        const struct log_directory *directory = &logs->directories[i];
        if (directory->error != 0 || !directory->clean || directory->previous_epoch != epoch)
            return -1;
    }
    return epoch;
}

void logs_watch_add(struct logs *logs, struct logs_watch *watch)
{
    list_init(&watch->link);
    list_append(&logs->watches, &watch->link);
}
