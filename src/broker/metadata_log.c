/* metadata_log.c - see metadata_log.h. */
#include "broker/metadata_log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "record/batch_build.h"

#define CHECKPOINT_SUFFIX     ".checkpoint"
#define CHECKPOINT_NAME_BYTES 42 /* %020d-%010d.checkpoint */
#define PART_SUFFIX           ".part"
#define CHECKPOINT_BYTES_MAX  (1u << 30)

static int path_of(char *out, const char *dir, const char *name)
{
    int size = snprintf(out, METADATA_PATH_BYTES, "%s/%s", dir, name);
    return size > 0 && size < (int)METADATA_PATH_BYTES ? 0 : -ENAMETOOLONG;
}

static void checkpoint_name(struct metadata_checkpoint id, char out[64])
{
    (void)snprintf(out, 64, "%020lld-%010d" CHECKPOINT_SUFFIX, (long long)id.end, id.epoch);
}

static bool name_parse(const char *name, struct metadata_checkpoint *out)
{
    long long end = 0;
    int epoch = 0, used = 0;
    if (strlen(name) != CHECKPOINT_NAME_BYTES) return false;
    if (sscanf(name, "%20lld-%10d" CHECKPOINT_SUFFIX "%n", &end, &epoch, &used) != 2) return false;
    if (used != CHECKPOINT_NAME_BYTES) return false;
    *out = (struct metadata_checkpoint){end, epoch};
    return true;
}

/* What a crash left of a checkpoint. */
static bool is_part(const char *name)
{
    size_t size = strlen(name);
    return size == CHECKPOINT_NAME_BYTES + strlen(PART_SUFFIX) &&
           strcmp(name + CHECKPOINT_NAME_BYTES, PART_SUFFIX) == 0;
}

struct range {
    struct metadata_checkpoint oldest, newest;
    bool found;
};

static bool range_look(void *context, const char *name)
{
    struct range *range = context;
    struct metadata_checkpoint id;
    if (!name_parse(name, &id) || (id.end == 0 && id.epoch == 0)) return true;
    if (!range->found || id.end > range->newest.end) range->newest = id;
    if (!range->found || id.end < range->oldest.end) range->oldest = id;
    range->found = true;
    return true;
}

int metadata_checkpoint_range(struct io *io,
                              const char *dir,
                              struct metadata_checkpoint *oldest,
                              struct metadata_checkpoint *newest)
{
    struct range range = {0};
    int error = io_disk_list(io, dir, range_look, &range);
    if (error < 0) return error;
    if (!range.found) return -ENOENT;
    *oldest = range.oldest;
    *newest = range.newest;
    return 0;
}

int metadata_checkpoint_slice(struct io *io,
                              const char *dir,
                              struct metadata_checkpoint id,
                              struct metadata_slice *slice)
{
    char name[64], path[METADATA_PATH_BYTES];
    struct io_file *file;
    checkpoint_name(id, name);
    int result = path_of(path, dir, name);
    if (result == 0) result = io_disk_open(io, path, IO_OPEN_READ, &file);
    if (result != 0) return result;
    slice->size = io_disk_size(io, file);
    int64_t got = slice->size;
    if (got >= 0 && slice->position >= slice->size) got = -ERANGE;
    if (got >= 0)
        got = io_disk_read(io, file, slice->bytes,
                           (size_t)MIN((int64_t)slice->room, slice->size - slice->position),
                           slice->position);
    io_disk_close(io, file);
    slice->count = got < 0 ? 0 : (uint32_t)got;
    return got < 0 ? (int)got : 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int batch_read(struct mem *mem,
                      const struct batch_header *header,
                      struct view batch,
                      const struct metadata_reader *reader)
{
    struct compress_work work;
    compress_work_init(&work, mem);
    struct record_iter iter;
    struct record record;
    bool go_on = true, control = (header->attributes & BATCH_CONTROL) != 0;
    record_iter_begin(&iter, &work, header, batch);
    while (go_on && record_next(&iter, &record))
        go_on = reader->record(reader->context, header, record.offset, control, record.key,
                               record.value);
    enum record_fault fault = record_iter_end(&iter);
    compress_work_free(&work);
    if (fault != RECORD_OK) return fault == RECORD_MEMORY ? -ENOMEM : -EBADMSG;
    return go_on ? 0 : -ECANCELED;
}

int metadata_batches_read(struct mem *mem, struct view bytes, const struct metadata_reader *reader)
{
    struct batch_scan scan = batch_scan_of(bytes);
    struct batch_header header;
    struct view batch;
    while (batch_next(&scan, &header, &batch)) {
        if (header.magic != 2 || !batch_crc_valid(&header, batch)) return -EBADMSG;
        int result = batch_read(mem, &header, batch, reader);
        if (result != 0) return result;
    }
    return scan.fault == RECORD_OK ? 0 : -EBADMSG;
}

/* The whole file in memory of `mem`; the caller gives it back. */
static int file_read(struct io *io, const char *path, struct view *out)
{
    struct io_file *file;
    int result = io_disk_open(io, path, IO_OPEN_READ, &file);
    if (result != 0) return result;
    int64_t size = io_disk_size(io, file);
    *out = VIEW_EMPTY;
    if (size > CHECKPOINT_BYTES_MAX) size = -EFBIG;
    uint8_t *bytes = size > 0 ? mem_get(io_mem(io), (size_t)size) : NULL;
    int64_t got =
        size > 0 ? bytes == NULL ? -ENOMEM : io_disk_read(io, file, bytes, (size_t)size, 0) : size;
    io_disk_close(io, file);
    if (got < 0 || got != size) {
        mem_put(io_mem(io), bytes, size > 0 ? (size_t)size : 0);
        return got < 0 ? (int)got : -EIO;
    }
    *out = view_of(bytes, (uint32_t)size);
    return 0;
}

static void file_free(struct io *io, struct view bytes)
{
    if (bytes.size > 0) mem_put(io_mem(io), (void *)(uintptr_t)bytes.data, bytes.size);
}

int metadata_checkpoint_read(struct io *io,
                             const char *dir,
                             struct metadata_checkpoint id,
                             const struct metadata_reader *reader)
{
    char name[64], path[METADATA_PATH_BYTES];
    struct view bytes;
    checkpoint_name(id, name);
    int result = path_of(path, dir, name);
    if (result == 0) result = file_read(io, path, &bytes);
    if (result != 0) return result;
    result = metadata_batches_read(io_mem(io), bytes, reader);
    file_free(io, bytes);
    return result;
}

/* ---- writing --------------------------------------------------------------------------------- */

bool metadata_batch_put(struct sink *out,
                        struct arena *arena,
                        const struct step *step,
                        bool control,
                        int64_t base_offset,
                        int32_t epoch)
{
    struct batch_build build;
    struct batch_build_options options = batch_build_plain;
    struct view batch;
    options.base_offset = base_offset;
    options.leader_epoch = epoch;
    options.control = control;
    batch_build_begin(&build, NULL, out, &options);
    for (uint32_t i = 0; i < step->record_count; i++) {
        struct record_input record = {
            .timestamp_ms = step->wall_ms,
            .key = step_encode(arena, &step->records[i].key),
            .value = step_encode(arena, &step->records[i].value),
        };
        if (arena->failed) {
            batch_build_abort(&build);
            return false;
        }
        batch_build_add(&build, &record);
    }
    return batch_build_finish(&build, -1, &batch) == RECORD_OK;
}

/* Through a temporary name, durable at return. */
static int file_replace(struct io *io,
                        const char *dir,
                        const char *name,
                        const char *part,
                        struct view bytes)
{
    char path[METADATA_PATH_BYTES], temporary[METADATA_PATH_BYTES];
    struct io_file *file;
    int result = path_of(path, dir, name);
    if (result == 0) result = path_of(temporary, dir, part);
    if (result == 0)
        result =
            io_disk_open(io, temporary, IO_OPEN_WRITE | IO_OPEN_CREATE | IO_OPEN_TRUNCATE, &file);
    if (result != 0) return result;
    int64_t put = io_disk_write(io, file, bytes.data, bytes.size, 0);
    result = put < 0 ? (int)put : io_disk_sync(io, file);
    io_disk_close(io, file);
    if (result == 0) result = io_disk_rename(io, temporary, path);
    return result == 0 ? io_disk_sync_dir(io, dir) : result;
}

/* The path of a part, or that of the checkpoint that it becomes. */
static int part_path(const struct metadata_part *part, bool whole, char *out)
{
    char name[64], with_end[80];
    checkpoint_name(part->id, name);
    (void)snprintf(with_end, sizeof(with_end), "%s%s", name, whole ? "" : PART_SUFFIX);
    return path_of(out, part->dir, with_end);
}

int metadata_part_write(struct io *io, struct metadata_part *part, struct view bytes)
{
    char path[METADATA_PATH_BYTES];
    if (part->file == NULL) {
        int result = part_path(part, false, path);
        if (result == 0)
            result = io_disk_open(io, path, IO_OPEN_WRITE | IO_OPEN_CREATE | IO_OPEN_TRUNCATE,
                                  &part->file);
        if (result != 0) return result;
        part->made = true;
    }
    int64_t put = io_disk_write(io, part->file, bytes.data, bytes.size, (uint64_t)part->size_bytes);
    if (put < 0) return (int)put;
    part->size_bytes += bytes.size;
    return 0;
}

static void part_close(struct io *io, struct metadata_part *part)
{
    io_disk_close(io, part->file);
    part->file = NULL;
}

int metadata_part_finish(struct io *io, struct metadata_part *part)
{
    char from[METADATA_PATH_BYTES], to[METADATA_PATH_BYTES];
    assert(part->file != NULL);
    int result = io_disk_sync(io, part->file);
    part_close(io, part);
    if (result == 0) result = part_path(part, false, from);
    if (result == 0) result = part_path(part, true, to);
    if (result == 0) result = io_disk_rename(io, from, to);
    if (result != 0) return result;
    part->made = false;
    return io_disk_sync_dir(io, part->dir);
}

void metadata_part_drop(struct io *io, struct metadata_part *part)
{
    char path[METADATA_PATH_BYTES];
    part_close(io, part);
    if (part->made && part_path(part, false, path) == 0)
        (void)io_disk_unlink(io, path); /* A start or the next snapshot would remove it as well. */
}

int metadata_checkpoint_write(struct io *io,
                              const char *dir,
                              struct metadata_checkpoint id,
                              struct view bytes,
                              struct io_file **file)
{
    const struct metadata_part part = {.dir = dir, .id = id};
    char path[METADATA_PATH_BYTES];
    int result = part_path(&part, true, path);
    if (result == 0)
        result = io_disk_open(io, path, IO_OPEN_WRITE | IO_OPEN_CREATE | IO_OPEN_TRUNCATE, file);
    if (result != 0) return result;
    int64_t put = io_disk_write(io, *file, bytes.data, bytes.size, 0);
    if (put >= 0) return 0;
    io_disk_close(io, *file);
    return (int)put;
}

struct cleaning {
    struct io *io;
    const char *dir;
    struct metadata_checkpoint kept;
    int result;
};

static bool clean_one(void *context, const char *name)
{
    struct cleaning *cleaning = context;
    struct metadata_checkpoint id;
    char path[METADATA_PATH_BYTES];
    if (!name_parse(name, &id) ? !is_part(name) : id.end >= cleaning->kept.end) return true;
    int result = path_of(path, cleaning->dir, name);
    if (result == 0) result = io_disk_unlink(cleaning->io, path);
    if (cleaning->result == 0) cleaning->result = result;
    return true;
}

int metadata_checkpoint_clean(struct io *io, const char *dir, struct metadata_checkpoint kept)
{
    struct cleaning cleaning = {.io = io, .dir = dir, .kept = kept};
    int result = io_disk_list(io, dir, clean_one, &cleaning);
    return result != 0 ? result : cleaning.result;
}

int metadata_quorum_read(struct io *io, const char *dir, char *out, size_t size)
{
    char path[METADATA_PATH_BYTES];
    struct io_file *file;
    int result = path_of(path, dir, "quorum-state");
    if (result == 0) result = io_disk_open(io, path, IO_OPEN_READ, &file);
    if (result != 0) return result;
    int64_t got = io_disk_read(io, file, out, size - 1, 0);
    io_disk_close(io, file);
    if (got < 0) return (int)got;
    out[got] = '\0';
    return 0;
}

int metadata_quorum_write(struct io *io, const char *dir, struct view text)
{
    return file_replace(io, dir, "quorum-state", "quorum-state.tmp", text);
}
