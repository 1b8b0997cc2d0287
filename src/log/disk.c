/* disk.c - whole files over the seam's blocking calls. */
#include "log/disk.h"

#include <errno.h>
#include <stdio.h>

_Static_assert(ENOSPC == 28, "disk_is_full() names it by number to need no header");
_Static_assert(EDQUOT == 122, "disk_is_full() names it by number to need no header");

struct disk_path disk_join(const char *folder, const char *name)
{
    struct disk_path path;
    int length = snprintf(path.text, sizeof(path.text), "%s/%s", folder, name);
    assert(length > 0);
    assert((size_t)length < sizeof(path.text));
    return path;
}

struct disk_path disk_path_of(const char *text)
{
    struct disk_path path;
    int length = snprintf(path.text, sizeof(path.text), "%s", text);
    assert(length > 0);
    assert((size_t)length < sizeof(path.text));
    return path;
}

int disk_read_whole(struct io *io,
                    struct mem *mem,
                    const char *path,
                    uint32_t max_bytes,
                    struct disk_bytes *out)
{
    *out = (struct disk_bytes){0};
    struct io_file *file;
    int error = io_disk_open(io, path, IO_OPEN_READ, &file);
    if (error < 0) return error;

    int64_t size = io_disk_size(io, file);
    if (size > (int64_t)max_bytes) size = -EFBIG;
    if (size > 0) {
        out->data = mem_get(mem, (size_t)size);
        out->size_bytes = (uint32_t)size;
        int64_t got = out->data == NULL ? -ENOMEM : io_disk_read(io, file, out->data, size, 0);
        if (got >= 0 && got != size) got = -EIO; /* It has shrunk under us: nobody may do that. */
        if (got < 0) {
            size = got;
            if (out->data == NULL) out->size_bytes = 0;
            disk_free(mem, out);
        }
    }
    io_disk_close(io, file);
    return size < 0 ? (int)size : 0;
}

void disk_free(struct mem *mem, struct disk_bytes *bytes)
{
    mem_put(mem, bytes->data, bytes->size_bytes);
    *bytes = (struct disk_bytes){0};
}

/* A new file, durable together with what `needed` names. */
static int disk_write_with(struct io *io,
                           const char *path,
                           struct view bytes,
                           struct disk_needed needed)
{
    struct io_file *file;
    int flags = IO_OPEN_WRITE | IO_OPEN_CREATE | IO_OPEN_TRUNCATE;
    int error = io_disk_open(io, path, flags, &file);
    if (error < 0) return error;

    if (bytes.size > 0) {
        int64_t put = io_disk_write(io, file, bytes.data, bytes.size, 0);
        if (put < 0)
            error = (int)put;
        else if (put != bytes.size)
            error = -EIO;
    }
    struct io_sync parts[1 + DISK_NEEDED_MAX] = {{.file = file}};
    assert(needed.count <= DISK_NEEDED_MAX);
    for (uint32_t i = 0; i < needed.count; i++)
        parts[1 + i] = needed.parts[i];
    if (error == 0) error = io_disk_sync_all(io, parts, 1 + needed.count);
    io_disk_close(io, file);
    return error;
}

int disk_write_synced(struct io *io, const char *path, struct view bytes)
{
    return disk_write_with(io, path, bytes, (struct disk_needed){0});
}

int disk_replace(struct io *io, const char *folder, const char *name, struct view bytes)
{
    return disk_replace_after(io, folder, name, bytes, (struct disk_needed){0});
}

int disk_replace_after(struct io *io,
                       const char *folder,
                       const char *name,
                       struct view bytes,
                       struct disk_needed needed)
{
    struct disk_path path = disk_join(folder, name);
    char temporary_name[256];
    int length = snprintf(temporary_name, sizeof(temporary_name), "%s.tmp", name);
    assert(length > 0);
    assert((size_t)length < sizeof(temporary_name));
    struct disk_path temporary = disk_join(folder, temporary_name);

    int error = disk_write_with(io, temporary.text, bytes, needed);
    if (error == 0) error = io_disk_rename(io, temporary.text, path.text);
    if (error < 0) {
        int ignored = disk_unlink_if_there(io, temporary.text); /* The first failure counts. */
        (void)ignored;
        return error;
    }
    return io_disk_sync_dir(io, folder);
}

int disk_unlink_if_there(struct io *io, const char *path)
{
    int error = io_disk_unlink(io, path);
    return error == -ENOENT ? 0 : error;
}
