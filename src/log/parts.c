/* parts.c - several shards on the same directories: who has what a directory has once.
 *
 * Each shard opens the partitions that it owns. A checkpoint file names the partitions of all, so
 * the first shard writes it, with the lines that the others have told last: at start, when their
 * own file would be due, and at their end. A line that is late is never above the truth: recovery
 * points, log starts and high watermarks only rise. */
#include "log/checkpoint.h"
#include "log/state.h"

bool parts_first(const struct logs *logs)
{
    return logs->options.part == NULL || logs->options.part->index == 0;
}

uint32_t parts_others(const struct logs *logs)
{
    return logs->options.part == NULL ? 0 : logs->options.part->count - 1;
}

bool parts_owns(const struct logs *logs, struct view topic, int32_t partition)
{
    const struct logs_part *part = logs->options.part;
    return part == NULL || part->owns(part->context, topic, partition);
}

/* ---- the first one --------------------------------------------------------------------------- */

bool parts_init(struct logs *logs)
{
    const struct logs_part *part = logs->options.part;
    if (part == NULL || part->index != 0) return true;
    for (uint32_t i = 0; i < logs->directory_count; i++) {
        struct log_directory *directory = &logs->directories[i];
        directory->others = mem_get(logs->mem, 4 * part->count * sizeof(directory->others[0]));
        if (directory->others == NULL) return false;
    }
    return true;
}

void parts_free(struct logs *logs)
{
    const struct logs_part *part = logs->options.part;
    for (uint32_t i = 0; i < logs->directory_count; i++) {
        struct log_directory *directory = &logs->directories[i];
        if (directory->others == NULL) continue;
        for (uint32_t at = 0; at < 4 * part->count; at++)
            mem_put(logs->mem, directory->others[at].text, directory->others[at].size_bytes);
        directory->others =
            mem_put(logs->mem, directory->others, 4 * part->count * sizeof(directory->others[0]));
    }
}

static struct parts_lines *lines_of(const struct log_directory *directory,
                                    uint32_t kind,
                                    uint32_t part)
{
    assert(kind < 4);
    assert(part < directory->logs->options.part->count);
    return &directory->others[4 * part + kind];
}

static bool lines_keep(struct logs *logs, const struct logs_lines *lines)
{
    struct log_directory *directory = &logs->directories[lines->directory];
    struct parts_lines *place = lines_of(directory, lines->kind, lines->part);
    uint8_t *text = NULL;
    if (lines->text.size > 0) {
        text = mem_get(logs->mem, lines->text.size);
        if (text == NULL) return false;
        memcpy(text, lines->text.data, lines->text.size);
    }
    mem_put(logs->mem, place->text, place->size_bytes);
    *place = (struct parts_lines){text, lines->text.size, lines->count};
    return true;
}

bool logs_take_lines(struct logs *logs, const struct logs_lines *lines)
{
    assert(parts_first(logs));
    assert(lines->directory < logs->directory_count);
    if (!lines_keep(logs, lines)) return false;
    switch ((enum checkpoint_kind)lines->kind) {
    case CHECKPOINT_OF_RECOVERY: logs->recovery_moved = true; break;
    case CHECKPOINT_OF_STARTS: logs->starts_moved = true; break;
    case CHECKPOINT_OF_WATERMARKS: logs->watermarks_moved = true; break;
    case CHECKPOINT_OF_CLEANER: logs->cleaner_moved = true; break;
    }
    return true;
}

uint32_t parts_count(const struct log_directory *directory, uint32_t kind)
{
    uint32_t count = 0;
    if (directory->others == NULL) return 0;
    for (uint32_t i = 1; i < directory->logs->options.part->count; i++)
        count += lines_of(directory, kind, i)->count;
    return count;
}

void parts_add(const struct log_directory *directory, uint32_t kind, struct sink *out)
{
    if (directory->others == NULL) return;
    for (uint32_t i = 1; i < directory->logs->options.part->count; i++) {
        const struct parts_lines *lines = lines_of(directory, kind, i);
        if (lines->text != NULL) sink_put(out, lines->text, lines->size_bytes);
    }
}

/* ---- the others ------------------------------------------------------------------------------ */

void parts_inherit(struct logs *logs)
{
    const struct logs *first = logs->options.part->first;
    assert(first->directory_count == logs->directory_count);
    for (uint32_t i = 0; i < logs->directory_count; i++) {
        struct log_directory *directory = &logs->directories[i];
        const struct log_directory *known = &first->directories[i];
        directory->id = known->id;
        directory->clean = known->clean;
        directory->previous_epoch = known->previous_epoch;
        if (known->error != 0 && directory->error == 0) directory->error = known->error;
    }
}

/* The lines, made; the caller frees `out`. */
static bool lines_make(struct log_directory *directory,
                       uint32_t kind,
                       struct sink *out,
                       struct logs_lines *lines)
{
    struct logs *logs = directory->logs;
    uint32_t count = 0;
    sink_init(out, logs->mem, CHECKPOINT_BYTES_MAX);
    tasks_checkpoint_lines(directory, (enum checkpoint_kind)kind, &count, out);
    *lines = (struct logs_lines){logs->options.part->index, directory->index, kind, count,
                                 sink_view(out)};
    return out->fault == SINK_OK;
}

bool parts_tell(struct log_directory *directory, uint32_t kind)
{
    const struct logs_part *part = directory->logs->options.part;
    struct sink out;
    struct logs_lines lines;
    bool made = lines_make(directory, kind, &out, &lines);
    if (made) part->tell(part->context, &lines);
    sink_free(&out);
    return made;
}

bool parts_give(struct logs *logs)
{
    struct logs *first = logs->options.part->first;
    bool given = true;
    for (uint32_t i = 0; i < logs->directory_count; i++) {
        for (uint32_t kind = 0; kind < 4 && given; kind++) {
            struct sink out;
            struct logs_lines lines;
            given = lines_make(&logs->directories[i], kind, &out, &lines) &&
                    logs_take_lines(first, &lines);
            sink_free(&out);
        }
    }
    return given;
}

void logs_dir_fail(struct logs *logs, uint32_t index, int error)
{
    assert(index < logs->directory_count);
    assert(error < 0);
    log_directory_fail(&logs->directories[index], error);
}
