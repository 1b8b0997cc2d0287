/* log_check.c - `dohle log check`: read everything in a log directory or a partition's folder, say
 * what does not hold, and what a start of the server would do about it. Changes nothing. */
#include "cli/log_check.h"
#include "log/checkpoint.h"
#include "log/log_dir.h"
#include "log/log_mark.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cli_option options[] = {
    {"json",    'j', NULL, NULL, "one JSON object a line"                    },
    {"verbose", 'v', NULL, NULL, "a line for partitions without problems too"},
    {NULL,      0,   NULL, NULL, NULL                                        },
};

void check_problem(struct check_partition *part, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    struct dump_file whole = {.path = part->path};
    dump_problem(part->dump, &whole, -1, "%s", text);
    part->problems++;
}

/* ---- a partition's files
 * -------------------------------------------------------------------------- */

/* Put a number into a sorted list. False: no memory. */
static bool add_number(struct mem *mem,
                       int64_t **list,
                       uint32_t *count,
                       uint32_t *room,
                       int64_t number)
{
    if (*count == *room) {
        uint32_t more = MAX(*room * 2, 16u);
        int64_t *grown = mem_get(mem, more * sizeof(*grown));
        if (grown == NULL) return false;
        if (*count > 0) memcpy(grown, *list, *count * sizeof(*grown));
        mem_put(mem, *list, *room * sizeof(**list));
        *list = grown;
        *room = more;
    }
    uint32_t at = *count;
    for (; at > 0 && (*list)[at - 1] > number; at--)
        (*list)[at] = (*list)[at - 1];
    (*list)[at] = number;
    (*count)++;
    return true;
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t size = strlen(name), tail = strlen(suffix);
    return size >= tail && strcmp(name + size - tail, suffix) == 0;
}

/* Note a file by its name; returns whether its contents are to be checked. */
static bool take_name(struct check_partition *part, const char *name)
{
    struct mem *mem = part->dump->cli->mem;
    static const char *const leftovers[] = {".deleted", ".cleaned", ".swap", ".tmp"};
    for (size_t i = 0; i < ARRAY_SIZE(leftovers); i++) {
        if (!ends_with(name, leftovers[i])) continue;
        part->leftovers++;
        return false;
    }
    bool numbered = name[0] >= '0' && name[0] <= '9';
    int64_t number = numbered ? strtoll(name, NULL, 10) : 0;
    bool kept = true;
    if (numbered && ends_with(name, ".log"))
        kept = add_number(mem, &part->segments, &part->segment_count, &part->segment_room, number);
    if (numbered && ends_with(name, ".snapshot"))
        kept =
            add_number(mem, &part->snapshots, &part->snapshot_count, &part->snapshot_room, number);
    return kept;
}

/* Offset indexes that are missing; the loader makes them anew. The one of the last segment is
 * written when the segment is closed. */
static void check_companions(struct check_partition *part, bool clean)
{
    uint32_t closed = clean ? part->segment_count : MAX(part->segment_count, 1u) - 1;
    for (uint32_t i = 0; i < closed; i++) {
        char path[CHECK_PATH_BYTES];
        int used = snprintf(path, sizeof(path), "%s/%020lld.index", part->path,
                            (long long)part->segments[i]);
        if (used > 0 && used < CHECK_PATH_BYTES && access(path, F_OK) != 0)
            check_problem(part, "segment %lld has no offset index: a start would make it anew",
                          (long long)part->segments[i]);
    }
}

/* ---- what a start would do
 * ------------------------------------------------------------------------ */

/* The entry of this partition in a checkpoint, or `otherwise`. */
static int64_t checkpoint_of(const struct dump_file *file,
                             const struct check_partition *part,
                             int64_t otherwise)
{
    if (file->bytes.size == 0 || !checkpoint_valid(file->bytes, true)) return otherwise;
    struct checkpoint_reader reader = checkpoint_read(file->bytes, true);
    struct checkpoint_entry entry;
    while (checkpoint_next(&reader, &entry))
        if (entry.number == part->partition && view_is(entry.topic, part->topic))
            return entry.offset;
    return otherwise;
}

/* The base of the segment that holds `offset`: recovery begins with it. */
static int64_t segment_of(const struct check_partition *part, int64_t offset)
{
    int64_t base = part->segment_count > 0 ? part->segments[0] : 0;
    for (uint32_t i = 0; i < part->segment_count; i++)
        if (part->segments[i] <= offset) base = part->segments[i];
    return base;
}

/* What a start would do about this partition, in words. */
static const char *recovery_of(const struct check_partition *part,
                               const struct check_directory *directory,
                               int64_t point,
                               int64_t from)
{
    if (directory->clean)
        return "nothing: the last stop was clean, so the damage would be served as it is";
    if (!part->damaged) return "read, nothing to cut";
    if (part->damage_base < from)
        return "nothing: the damage lies below what is read, it would be served as it is";
    if (part->end < point && !part->damage_is_cut)
        return "fence the log: the damage lies below the recovery point, where all was durable";
    return "cut";
}

static void say_recovery(const struct check_partition *part,
                         const struct check_directory *directory)
{
    struct dump *dump = part->dump;
    int64_t point = checkpoint_of(&directory->recovery, part, 0);
    int64_t from = segment_of(part, point);
    dump->problem_line = true;
    dump_line(dump, "recovery", "  at the next start:");
    if (dump->json) dump_text(dump, "path", part->path);
    dump_text(dump, "recovery", recovery_of(part, directory, point, from));
    dump_number(dump, "recoveryPoint", point);
    if (!directory->clean) dump_number(dump, "from", from);
    dump_number(dump, "end", part->end);
    if (part->damaged) {
        dump_number(dump, "segment", part->damage_base);
        dump_number(dump, "position", part->damage_at);
        dump_number(dump, "bytes", part->damage_bytes);
    }
    dump_end(dump);
    dump->problem_line = false;
}

static void say_partition(const struct check_partition *part,
                          const struct check_directory *directory,
                          uint32_t problems)
{
    struct dump *dump = part->dump;
    if (problems == 0 && !cli_has(dump->cli, "verbose")) return;
    dump->problem_line = true;
    dump_line(dump, "partition", "");
    if (dump->json)
        dump_text(dump, "path", part->path);
    else
        out_format(dump->out, "%s: ", part->path);
    dump_number(dump, "segments", part->segment_count);
    dump_number(dump, "bytes", (int64_t)part->bytes);
    dump_number(dump, "start", part->start);
    dump_number(dump, "end", part->end);
    if (part->leftovers > 0) dump_number(dump, "leftovers", part->leftovers);
    dump_number(dump, "problems", problems);
    dump_end(dump);
    dump->problem_line = false;
    if (directory->known && (!directory->clean || part->damaged)) say_recovery(part, directory);
}

/* ---- folders
 * -------------------------------------------------------------------------------------- */

static void check_files(struct check_partition *part, struct dirent **entries, int count)
{
    struct dump *dump = part->dump;
    for (int i = 0; i < count; i++) {
        char path[CHECK_PATH_BYTES];
        struct dump_file file;
        const char *name = entries[i]->d_name;
        int used = snprintf(path, sizeof(path), "%s/%s", part->path, name);
        if (used < 0 || used >= CHECK_PATH_BYTES || !take_name(part, name)) continue;
        if (!dump_is_known(name) || !dump_file_open(dump, path, &file)) continue;
        memcpy(part->topic, file.topic, sizeof(part->topic));
        part->partition = file.partition;
        dump_one(dump, &file);
        dump_file_close(&file);
    }
}

static int is_file(const struct dirent *entry)
{
    return entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN;
}

static void check_partition(struct dump *dump,
                            const char *path,
                            const struct check_directory *directory)
{
    struct check_partition part = {.dump = dump, .partition = -1};
    struct dirent **entries = NULL;
    (void)snprintf(part.path, sizeof(part.path), "%s", path);
    uint32_t before = dump->problems;
    int count = scandir(path, &entries, is_file, alphasort);
    if (count < 0) {
        check_problem(&part, "could not list it: %s", strerror(errno));
        return;
    }
    check_files(&part, entries, count);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    part.start = part.segment_count > 0 ? part.segments[0] : 0;
    part.start = MAX(part.start, checkpoint_of(&directory->starts, &part, 0));
    bool unclean = directory->known && !directory->clean;
    part.recovery = unclean ? checkpoint_of(&directory->recovery, &part, 0) : INT64_MAX;
    check_companions(&part, !unclean);
    check_state(&part);
    say_partition(&part, directory, dump->problems - before);
    mem_put(dump->cli->mem, part.segments, part.segment_room * sizeof(*part.segments));
    mem_put(dump->cli->mem, part.snapshots, part.snapshot_room * sizeof(*part.snapshots));
}

/* Open a checkpoint of the directory; its path lives in `path`. */
static void open_checkpoint(struct dump *dump,
                            const char *folder,
                            const char *name,
                            struct dump_file *out)
{
    char path[CHECK_PATH_BYTES];
    *out = (struct dump_file){.path = name, .name = name};
    int used = snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (used < 0 || used >= CHECK_PATH_BYTES || access(path, F_OK) != 0) return;
    if (!dump_file_open(dump, path, out)) return;
    out->path = out->name = name;
    dump->files++;
    if (!checkpoint_valid(out->bytes, true))
        dump_problem(dump, out, -1, "the lines are not those of a checkpoint: it would be ignored");
}

static bool has_file(const char *folder, const char *name)
{
    char path[CHECK_PATH_BYTES];
    int used = snprintf(path, sizeof(path), "%s/%s", folder, name);
    return used > 0 && used < CHECK_PATH_BYTES && access(path, F_OK) == 0;
}

static struct check_directory open_directory(struct dump *dump, const char *path)
{
    struct check_directory directory = {.known = has_file(path, "meta.properties"),
                                        .clean = has_file(path, LOG_MARK_NAME)};
    open_checkpoint(dump, path, CHECKPOINT_RECOVERY, &directory.recovery);
    open_checkpoint(dump, path, CHECKPOINT_START, &directory.starts);
    return directory;
}

static void close_directory(struct check_directory *directory)
{
    dump_file_close(&directory->recovery);
    dump_file_close(&directory->starts);
}

/* Is this folder a partition's? It has a segment. */
static bool is_partition(const char *path)
{
    DIR *folder = opendir(path);
    bool found = false;
    if (folder == NULL) return false;
    for (struct dirent *entry; !found && (entry = readdir(folder)) != NULL;)
        found =
            entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && ends_with(entry->d_name, ".log");
    (void)closedir(folder);
    return found;
}

static int is_folder(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN);
}

/* A partition that the checkpoint knows and that has no folder is lost, not empty. */
static void check_lost(struct dump *dump, const char *path, struct dump_file *checkpoint)
{
    if (checkpoint->bytes.size == 0 || !checkpoint_valid(checkpoint->bytes, true)) return;
    struct checkpoint_reader reader = checkpoint_read(checkpoint->bytes, true);
    struct checkpoint_entry entry;
    while (checkpoint_next(&reader, &entry)) {
        char folder[CHECK_PATH_BYTES];
        int used = snprintf(folder, sizeof(folder), "%s/%.*s-%d", path, (int)entry.topic.size,
                            (const char *)entry.topic.data, entry.number);
        if (used < 0 || used >= CHECK_PATH_BYTES || access(folder, F_OK) == 0) continue;
        dump_problem(dump, checkpoint, -1, "%.*s-%d is named up to offset %lld and has no folder",
                     (int)entry.topic.size, (const char *)entry.topic.data, entry.number,
                     (long long)entry.offset);
    }
}

static bool check_all(struct dump *dump, const char *path)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_folder, alphasort);
    if (count < 0) {
        (void)cli_fail(dump->cli, CLI_FAILED, "could not list \"%s\": %s", path, strerror(errno));
        return false;
    }
    struct check_directory directory = open_directory(dump, path);
    if (!directory.known)
        (void)fprintf(dump->cli->errors, "dohle log check: \"%s\" has no meta.properties\n", path);
    for (int i = 0; i < count; i++) {
        char whole[CHECK_PATH_BYTES];
        int used = snprintf(whole, sizeof(whole), "%s/%s", path, entries[i]->d_name);
        if (used > 0 && used < CHECK_PATH_BYTES && is_partition(whole)) {
            check_partition(dump, whole, &directory);
            dump->partitions++;
        }
        free(entries[i]);
    }
    free(entries);
    check_lost(dump, path, &directory.recovery);
    if (directory.known && !directory.clean && !dump->json)
        out_text(dump->out,
                 "the last stop was not clean (or the server is running): a start recovers\n");
    close_directory(&directory);
    return true;
}

/* A partition's folder alone: what its directory says stands one level up. */
static void check_one(struct dump *dump, const char *path)
{
    char parent[CHECK_PATH_BYTES];
    (void)snprintf(parent, sizeof(parent), "%s/..", path);
    struct check_directory directory = open_directory(dump, parent);
    check_partition(dump, path, &directory);
    dump->partitions++;
    close_directory(&directory);
}

static int run(struct cli *cli)
{
    struct dump dump = {.cli = cli, .out = &cli->out, .quiet = true, .offset_max = INT64_MAX};
    dump.json = cli_has(cli, "json");
    compress_work_init(&dump.work, cli->mem);
    bool listed = true;
    for (int i = 0; i < cli->word_count; i++) {
        char path[CHECK_PATH_BYTES];
        (void)snprintf(path, sizeof(path), "%s", cli->words[i]);
        for (size_t size = strlen(path); size > 1 && path[size - 1] == '/'; size--)
            path[size - 1] = '\0';
        if (is_partition(path))
            check_one(&dump, path);
        else
            listed = check_all(&dump, path) && listed;
    }
    compress_work_free(&dump.work);
    if (listed || dump.partitions > 0) dump_summary(&dump); /* Of nothing it says nothing. */
    return dump.problems == 0 && listed ? CLI_OK : CLI_FAILED;
}

const struct cli_command command_log_check = {
    .name = "log check",
    .group = CLI_CHECK,
    .summary = "read all of a log directory, say what is wrong and what a start would do",
    .arguments = "DIR... [--verbose] [--json]",
    .about =
        "DIR is an entry of log.dirs or one partition's folder. Every byte is read and nothing "
        "is changed: checksums, structure and order of all batches, records down to their "
        "headers, the indexes against their segments, leader epochs, producer snapshots and "
        "aborted transactions against a replay of the batches, the checkpoints.\n\n"
        "After an unclean stop it says for each partition from where a start would recover and "
        "what it would cut. Damage below the recovery point is not looked at by a start: this "
        "command finds it.\n\n"
        "A running server's directory may be checked; the newest batches can be half written "
        "then.",
    .options = options,
    .words_min = 1,
    .words_max = CLI_WORDS_MAX,
    .run = run,
};
