/* sim_disk.c - the plain calls on a node's disk: paths, open files, directories.
 *
 * Each call is a visit: counted, perhaps failed or the node's last one, and traced. */
#include "io/sim_inside.h"

#include <errno.h>
#include <stdlib.h>

/* Where a path leads: the directory, the last name in it, and what is there now. */
struct place {
    struct sim_inode *directory;
    char name[SIM_NAME_MAX + 1];
    struct sim_inode *inode; /* NULL: nothing. */
};

static struct sim_disk *disk_of(struct sim_visit *visit)
{
    return visit->shard->node->disk;
}

/* One step down. Names "." and ".." lead where they should. */
static struct sim_inode *step(struct sim_inode *directory, const char *name)
{
    if (strcmp(name, ".") == 0) return directory;
    if (strcmp(name, "..") == 0) return directory->parent != NULL ? directory->parent : directory;
    return sim_names_find(&directory->names, name);
}

static int find(struct sim_disk *disk, const char *path, struct place *out)
{
    out->directory = out->inode = disk->root;
    out->name[0] = '\0';
    if (path[0] == '\0') return -ENOENT;
    for (const char *at = path;;) {
        while (*at == '/')
            at++;
        if (*at == '\0') return 0;
        size_t length = strcspn(at, "/");
        if (length > SIM_NAME_MAX) return -ENAMETOOLONG;
        if (out->inode == NULL) return -ENOENT;
        if (!out->inode->directory) return -ENOTDIR;
        memcpy(out->name, at, length);
        out->name[length] = '\0';
        out->directory = out->inode;
        out->inode = step(out->directory, out->name);
        at += length;
    }
}

struct sim_inode *sim_disk_file(struct sim_disk *disk, const char *path)
{
    struct place place;
    if (find(disk, path, &place) != 0 || place.inode == NULL || place.inode->directory) return NULL;
    return place.inode;
}

static struct sim_spot spot_of(struct place *place)
{
    return (struct sim_spot){place->directory, place->name};
}

static void touch(struct sim_visit *visit, struct sim_inode *inode)
{
    inode->modified_wall_ms = sim_node_wall_ms(visit->shard->node);
}

static void create(struct sim_visit *visit, struct place *place, bool directory)
{
    struct sim_disk *disk = disk_of(visit);
    place->inode = sim_inode_new(disk, directory);
    touch(visit, place->inode);
    sim_names_change(disk, (struct sim_spot){0}, spot_of(place), place->inode);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int open_inside(struct sim_visit *visit, int flags, struct place *place)
{
    int error = find(disk_of(visit), visit->path, place);
    if (error != 0) return error;
    if (place->inode == NULL) {
        if (!(flags & IO_OPEN_CREATE)) return -ENOENT;
        create(visit, place, false);
        return 0;
    }
    if (flags & IO_OPEN_CREATE && flags & IO_OPEN_EXCLUSIVE) return -EEXIST;
    if (place->inode->directory) return -EISDIR;
    if (flags & IO_OPEN_TRUNCATE && place->inode->now.size > 0) {
        touch(visit, place->inode);
        return sim_inode_truncate(place->inode, 0);
    }
    return 0;
}

static struct io_file *file_new(struct sim_shard *shard, struct sim_inode *inode, const char *path)
{
    struct io_file *file = sim_heap(sizeof(*file));
    file->inode = inode;
    inode->references++;
    file->path = sim_heap_text(path);
    list_append(&shard->files, &file->link);
    return file;
}

int sim_open(struct io *io, const char *path, int flags, struct io_file **out)
{
    struct sim_visit visit = sim_visit(sim_shard_of(io), SIM_CALL_OPEN, path);
    struct place place;
    if (visit.error == 0) visit.error = open_inside(&visit, flags, &place);
    int result = (int)sim_visit_end(&visit, visit.error);
    if (result != 0) return result;
    *out = file_new(visit.shard, place.inode, path);
    (*out)->writable = (flags & IO_OPEN_WRITE) != 0;
    return 0;
}

void sim_file_put(struct io_file *file)
{
    if (file->holds_lock) file->inode->locked = false;
    list_remove(&file->link);
    sim_inode_put(file->inode);
    free(file->path);
    free(file);
}

void sim_close(struct io *io, struct io_file *file)
{
    (void)io;
    assert(!file->closing);
    file->closing = true;
    if (file->in_flight == 0) sim_file_put(file);
}

int sim_lock(struct io *io, const char *path, struct io_file **out)
{
    struct sim_visit visit = sim_visit(sim_shard_of(io), SIM_CALL_LOCK, path);
    struct place place;
    if (visit.error == 0) visit.error = open_inside(&visit, IO_OPEN_CREATE, &place);
    if (visit.error == 0 && place.inode->locked) visit.error = -EWOULDBLOCK;
    int result = (int)sim_visit_end(&visit, visit.error);
    if (result != 0) return result;
    place.inode->locked = true;
    *out = file_new(visit.shard, place.inode, path);
    (*out)->writable = (*out)->holds_lock = true;
    return 0;
}

int sim_stat(struct io *io, const char *path, struct io_stat *out)
{
    struct sim_visit visit = sim_visit(sim_shard_of(io), SIM_CALL_STAT, path);
    struct place place;
    if (visit.error == 0) visit.error = find(disk_of(&visit), path, &place);
    if (visit.error == 0 && place.inode == NULL) visit.error = -ENOENT;
    int result = (int)sim_visit_end(&visit, visit.error);
    if (result != 0) return result;
    out->size_bytes = place.inode->now.size;
    out->modified_wall_ms = place.inode->modified_wall_ms;
    out->is_directory = place.inode->directory;
    return 0;
}

int64_t sim_size(struct io *io, struct io_file *file)
{
    struct sim_visit visit = sim_visit(sim_shard_of(io), SIM_CALL_STAT, file->path);
    return sim_visit_end(&visit, visit.error != 0 ? visit.error : (int64_t)file->inode->now.size);
}

int64_t sim_read(struct io *io, struct io_file *file, void *out, size_t size, uint64_t offset)
{
    struct sim_visit visit = sim_visit(sim_shard_of(io), SIM_CALL_READ, file->path);
    visit.offset = offset;
    visit.size = size;
    const struct sim_bytes *bytes = &file->inode->now;
    size_t got = offset < bytes->size ? (size_t)MIN(size, bytes->size - offset) : 0;
    if (visit.error == 0 && got > 0) memcpy(out, bytes->data + offset, got);
    return sim_visit_end(&visit, visit.error != 0 ? visit.error : (int64_t)got);
}

int64_t sim_read_cached(struct io *io,
                        struct io_file *file,
                        void *out,
                        size_t size,
                        uint64_t offset)
{
    struct sim_node *node = sim_shard_of(io)->node;
    if (sim_draw_below(node, SIM_SITE_CACHE, 100) < node->world->options.cache_miss_percent)
        return -EAGAIN;
    return sim_read(io, file, out, size, offset);
}

size_t sim_cached(struct io *io, struct io_file *file, uint64_t offset, size_t size)
{
    struct sim_node *node = sim_shard_of(io)->node;
    uint64_t there = file->inode->now.size;
    if (sim_draw_below(node, SIM_SITE_CACHE, 100) < node->world->options.cache_miss_percent)
        return 0;
    return offset < there ? (size_t)MIN((uint64_t)size, there - offset) : 0;
}

int64_t sim_write(struct io *io,
                  struct io_file *file,
                  const void *bytes,
                  size_t size,
                  uint64_t offset)
{
    struct sim_visit visit = sim_visit(sim_shard_of(io), SIM_CALL_WRITE, file->path);
    visit.offset = offset;
    visit.size = size;
    if (!file->writable) return sim_visit_end(&visit, -EBADF);
    uint64_t part = size;
    if (visit.torn) part = sim_draw_below(visit.shard->node, SIM_SITE_TORN, size + 1);
    if (visit.error == 0 || visit.torn) {
        touch(&visit, file->inode);
        int error = part == 0 ? 0 : sim_inode_write(file->inode, offset, bytes, part);
        if (visit.error == 0) visit.error = error;
    }
    return sim_visit_end(&visit, visit.error != 0 ? visit.error : (int64_t)size);
}

int sim_truncate(struct io *io, struct io_file *file, uint64_t size)
{
    struct sim_visit visit = sim_visit(sim_shard_of(io), SIM_CALL_TRUNCATE, file->path);
    visit.offset = size;
    if (visit.error == 0 && !file->writable) visit.error = -EINVAL;
    if (visit.error == 0) {
        touch(&visit, file->inode);
        visit.error = sim_inode_truncate(file->inode, size);
    }
    return (int)sim_visit_end(&visit, visit.error);
}

int sim_reserve(struct io *io, struct io_file *file, uint64_t offset, uint64_t size)
{
    struct sim_visit visit = sim_visit(sim_shard_of(io), SIM_CALL_RESERVE, file->path);
    visit.offset = offset;
    visit.size = size;
    if (visit.error == 0 && !file->writable) visit.error = -EBADF;
    if (visit.error == 0) visit.error = sim_inode_reserve(file->inode, offset + size);
    return (int)sim_visit_end(&visit, visit.error);
}

int sim_sync_up_to(struct io *io, struct io_file *file, uint64_t sequence)
{
    struct sim_visit visit = sim_visit(sim_shard_of(io), SIM_CALL_SYNC, file->path);
    struct sim_node *node = visit.shard->node;
    if (visit.error == 0 && !node->dying)
        sim_inode_sync(file->inode, sequence);
    else if (visit.error != 0 && !node->crashed) {
        struct sim_rng rng = {sim_draw(node, SIM_SITE_SYNC_FAILURE)};
        sim_inode_sync_failed(file->inode, &rng);
    }
    return (int)sim_visit_end(&visit, visit.error);
}

int sim_sync(struct io *io, struct io_file *file)
{
    return sim_sync_up_to(io, file, UINT64_MAX);
}

/* ---- directories ----------------------------------------------------------------------------- */

static int find_directory(struct sim_visit *visit, struct place *place)
{
    int error = find(disk_of(visit), visit->path, place);
    if (error != 0) return error;
    if (place->inode == NULL) return -ENOENT;
    return place->inode->directory ? 0 : -ENOTDIR;
}

int sim_sync_dir(struct io *io, const char *path)
{
    struct sim_visit visit = sim_visit(sim_shard_of(io), SIM_CALL_SYNC_DIR, path);
    struct place place;
    if (visit.error == 0) visit.error = find_directory(&visit, &place);
    if (visit.error == 0 && !visit.shard->node->dying) sim_names_sync(place.inode);
    return (int)sim_visit_end(&visit, visit.error);
}

/* May `from` take the place `to`? */
static int may_replace(const struct place *from, const struct place *to)
{
    if (to->inode != NULL) {
        if (to->inode->directory && !from->inode->directory) return -EISDIR;
        if (!to->inode->directory && from->inode->directory) return -ENOTDIR;
        if (to->inode->names.count > 0) return -ENOTEMPTY;
    }
    for (const struct sim_inode *above = to->directory; above != NULL; above = above->parent)
        if (above == from->inode) return -EINVAL;
    return 0;
}

static int rename_inside(struct sim_visit *visit, const char *to_path)
{
    struct place from, to;
    int error = find(disk_of(visit), visit->path, &from);
    if (error == 0) error = find(disk_of(visit), to_path, &to);
    if (error != 0) return error;
    if (from.inode == NULL) return -ENOENT;
    if (from.inode == disk_of(visit)->root) return -EBUSY;
    if (from.inode == to.inode) return 0;
    error = may_replace(&from, &to);
    if (error == 0) sim_names_change(disk_of(visit), spot_of(&from), spot_of(&to), from.inode);
    return error;
}

int sim_rename(struct io *io, const char *from, const char *to)
{
    struct sim_visit visit = sim_visit(sim_shard_of(io), SIM_CALL_RENAME, from);
    if (visit.error == 0) visit.error = rename_inside(&visit, to);
    return (int)sim_visit_end(&visit, visit.error);
}

static int remove_inside(struct sim_visit *visit, bool directory)
{
    struct place place;
    int error = find(disk_of(visit), visit->path, &place);
    if (error != 0) return error;
    if (place.inode == NULL) return -ENOENT;
    if (place.inode == disk_of(visit)->root) return -EBUSY;
    if (place.inode->directory && !directory) return -EISDIR;
    if (!place.inode->directory && directory) return -ENOTDIR;
    if (place.inode->names.count > 0) return -ENOTEMPTY;
    sim_names_change(disk_of(visit), spot_of(&place), (struct sim_spot){0}, place.inode);
    return 0;
}

int sim_unlink(struct io *io, const char *path)
{
    struct sim_visit visit = sim_visit(sim_shard_of(io), SIM_CALL_UNLINK, path);
    if (visit.error == 0) visit.error = remove_inside(&visit, false);
    return (int)sim_visit_end(&visit, visit.error);
}

int sim_rmdir(struct io *io, const char *path)
{
    struct sim_visit visit = sim_visit(sim_shard_of(io), SIM_CALL_UNLINK, path);
    if (visit.error == 0) visit.error = remove_inside(&visit, true);
    return (int)sim_visit_end(&visit, visit.error);
}

int sim_mkdir(struct io *io, const char *path)
{
    struct sim_visit visit = sim_visit(sim_shard_of(io), SIM_CALL_MKDIR, path);
    struct place place;
    if (visit.error == 0) visit.error = find(disk_of(&visit), path, &place);
    if (visit.error == 0 && place.inode != NULL) visit.error = -EEXIST;
    if (visit.error == 0) create(&visit, &place, true);
    return (int)sim_visit_end(&visit, visit.error);
}

int sim_space(struct io *io, const char *path, struct io_space *out)
{
    struct sim_visit visit = sim_visit(sim_shard_of(io), SIM_CALL_STAT, path);
    struct place place;
    if (visit.error == 0) visit.error = find(disk_of(&visit), path, &place);
    if (visit.error == 0 && place.inode == NULL) visit.error = -ENOENT;
    const struct sim_disk *disk = disk_of(&visit);
    out->total_bytes = disk->space_bytes;
    out->free_bytes =
        disk->space_bytes > disk->used_bytes ? disk->space_bytes - disk->used_bytes : 0;
    return (int)sim_visit_end(&visit, visit.error);
}

/* Over a copy: `each` may change the directory. */
int sim_list(struct io *io, const char *path, bool (*each)(void *, const char *), void *context)
{
    struct sim_visit visit = sim_visit(sim_shard_of(io), SIM_CALL_LIST, path);
    struct place place;
    if (visit.error == 0) visit.error = find_directory(&visit, &place);
    int result = (int)sim_visit_end(&visit, visit.error);
    if (result != 0) return result;
    struct sim_names names = {0};
    sim_names_copy(&names, &place.inode->names);
    for (uint32_t i = 0; i < names.count; i++)
        if (!each(context, names.at[i].text)) break;
    sim_names_clear(&names);
    return 0;
}
