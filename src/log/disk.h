/* disk.h - small whole files: read at once, replaced at once; and paths.
 *
 * For checkpoints, meta.properties, partition.metadata, producer snapshots. All calls block: for
 * jobs and for the time before serving. */
#pragma once

#include "base/mem.h"
#include "base/view.h"
#include "io/io.h"

/* The longest path: a directory of log.dirs, a partition's folder, a file's name. */
#define DISK_PATH_MAX 1024u

struct disk_path {
    char text[DISK_PATH_MAX];
};

/* `folder`/`name`. A result that does not fit stops the program: folders are checked at start. */
struct disk_path disk_join(const char *folder, const char *name);

/* `text` as it is. */
struct disk_path disk_path_of(const char *text);

/* A file's bytes, from `mem`: give them back with disk_free(). */
struct disk_bytes {
    uint8_t *data; /* NULL if empty. */
    uint32_t size_bytes;
};

/* Read a whole file of at most `max_bytes`. 0; -ENOENT and the like as they come; -EFBIG: larger
 * than allowed; -ENOMEM. */
MUST_USE int disk_read_whole(struct io *io,
                             struct mem *mem,
                             const char *path,
                             uint32_t max_bytes,
                             struct disk_bytes *out);
void disk_free(struct mem *mem, struct disk_bytes *bytes);

/* Replace `folder`/`name` by these bytes so that after a crash there is the old or the new file,
 * whole: write a .tmp beside it, sync, rename, sync the folder. 0 or -errno; the .tmp is removed
 * after a failure. */
MUST_USE int disk_replace(struct io *io, const char *folder, const char *name, struct view bytes);

/* What a file promises to be there, at most DISK_NEEDED_MAX. */
#define DISK_NEEDED_MAX 7u
struct disk_needed {
    const struct io_sync *parts;
    uint32_t count;
};

/* disk_replace, with what `needed` names durable before the file has its name; it is synced side by
 * side with the file's bytes. */
MUST_USE int disk_replace_after(struct io *io,
                                const char *folder,
                                const char *name,
                                struct view bytes,
                                struct disk_needed needed);

/* Write a new file (or over an old one) and sync it; its name is durable after the folder's sync.
 */
MUST_USE int disk_write_synced(struct io *io, const char *path, struct view bytes);

/* Unlink; a file that is not there is fine. 0 or -errno. */
MUST_USE int disk_unlink_if_there(struct io *io, const char *path);

/* Is `error` one that says "no space left for now" rather than "the disk fails"? */
static inline bool disk_is_full(int64_t error)
{
    return error == -28 /* ENOSPC */ || error == -122 /* EDQUOT */;
}
