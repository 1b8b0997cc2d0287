/* posix_disk.c - files and directories. Every call returns its value or -errno, once, from here. */
#include "io/posix_inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Files of one log directory share a lane: the folder above the file's own tells. */
static uint32_t lane_of(const char *path)
{
    const char *file = strrchr(path, '/');
    uint32_t hash = 2166136261u;
    if (file == NULL) return 0;
    const char *end = file;
    while (end > path && end[-1] != '/')
        end--;
    for (const char *p = path; p < end; p++)
        hash = (hash ^ (uint8_t)*p) * 16777619u;
    return hash % POSIX_SYNC_LANES;
}

static int wrap(int fd, const char *path, struct io_file **out)
{
    struct io_file *file = calloc(1, sizeof(*file));
    if (file == NULL) {
        close(fd);
        return -ENOMEM;
    }
    file->fd = fd;
    file->lane = lane_of(path);
    *out = file;
    return 0;
}

int posix_open(struct io *io, const char *path, int flags, struct io_file **out)
{
    (void)io;
    int mode = O_CLOEXEC | (flags & IO_OPEN_WRITE ? O_RDWR : O_RDONLY);
    if (flags & IO_OPEN_CREATE) mode |= O_CREAT;
    if (flags & IO_OPEN_EXCLUSIVE) mode |= O_EXCL;
    if (flags & IO_OPEN_TRUNCATE) mode |= O_TRUNC;
    int fd = open(path, mode, 0644);
    return fd < 0 ? -errno : wrap(fd, path, out);
}

void posix_file_put(struct io_file *file)
{
    close(file->fd);
    free(file);
}

void posix_close(struct io *io, struct io_file *file)
{
    (void)io;
    assert(!file->closing);
    if (file->in_flight == 0)
        posix_file_put(file);
    else
        file->closing = true;
}

int posix_fd(const struct io_file *file)
{
    return file->fd;
}

int posix_stat(struct io *io, const char *path, struct io_stat *out)
{
    (void)io;
    struct stat s;
    if (stat(path, &s) != 0) return -errno;
    out->size_bytes = (uint64_t)s.st_size;
    out->modified_wall_ms = (int64_t)s.st_mtim.tv_sec * 1000 + s.st_mtim.tv_nsec / 1000000;
    out->is_directory = S_ISDIR(s.st_mode);
    return 0;
}

int64_t posix_size(struct io *io, struct io_file *file)
{
    (void)io;
    struct stat s;
    return fstat(file->fd, &s) != 0 ? -errno : (int64_t)s.st_size;
}

/* Up to 64 pieces of `iov` from byte `skip` on. */
static uint32_t iov_rest(const struct iovec *iov, uint32_t count, uint64_t skip, struct iovec *part)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < count && n < POSIX_IOV_PART; i++) {
        if (skip >= iov[i].iov_len) {
            skip -= iov[i].iov_len;
            continue;
        }
        part[n].iov_base = (uint8_t *)iov[i].iov_base + skip;
        part[n++].iov_len = iov[i].iov_len - skip;
        skip = 0;
    }
    return n;
}

int64_t posix_readv(int fd, const struct iovec *iov, uint32_t count, uint64_t offset)
{
    int64_t done = 0;
    struct iovec part[POSIX_IOV_PART];
    uint32_t n;
    while ((n = iov_rest(iov, count, (uint64_t)done, part)) > 0) {
        ssize_t got = preadv(fd, part, (int)n, (off_t)(offset + (uint64_t)done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -errno;
        if (got == 0) break;
        done += got;
    }
    return done;
}

/* Which pages of a range are in memory, by mincore() over a mapping that nobody touches. */
static size_t resident(int fd, uint64_t offset, size_t size)
{
    enum { PAGE = 4096 };
    unsigned char pages[IO_PROBE_BYTES / PAGE + 1];
    size_t skip = (size_t)(offset % PAGE);
    size = MIN(size, (size_t)IO_PROBE_BYTES);
    size_t span = skip + size;
    void *map = mmap(NULL, span, PROT_READ, MAP_SHARED, fd, (off_t)(offset - skip));
    if (map == MAP_FAILED) return 0;
    size_t count = (span + PAGE - 1) / PAGE, there = 0;
    if (mincore(map, span, pages) == 0)
        while (there < count && (pages[there] & 1))
            there++;
    munmap(map, span);
    return MIN(there * PAGE, span) - MIN(skip, there * PAGE);
}

size_t posix_cached(struct io *io, struct io_file *file, uint64_t offset, size_t size)
{
    (void)io;
    return resident(file->fd, offset, size);
}

/* A filesystem that knows no RWF_NOWAIT (tmpfs, overlay, network): read if the pages are there. */
static int64_t readv_resident(int fd, const struct iovec *iov, uint32_t count, uint64_t offset)
{
    struct stat s;
    uint64_t want = 0;
    for (uint32_t i = 0; i < count; i++)
        want += iov[i].iov_len;
    if (fstat(fd, &s) != 0) return -errno;
    uint64_t end = MIN(offset + want, (uint64_t)s.st_size);
    for (uint64_t at = offset; at < end;) {
        size_t there = resident(fd, at, (size_t)MIN(end - at, (uint64_t)IO_PROBE_BYTES));
        if (there == 0) return -EAGAIN;
        at += there;
    }
    return posix_readv(fd, iov, count, offset);
}

/* The kernel gives a cached beginning of what was asked for: that is not enough, unless the file
 * ends there. */
int64_t posix_readv_cached(int fd, const struct iovec *iov, uint32_t count, uint64_t offset)
{
    int64_t want = 0;
    for (uint32_t i = 0; i < count; i++)
        want += (int64_t)iov[i].iov_len;
    ssize_t got = count > IOV_MAX ? 0 : preadv2(fd, iov, (int)count, (off_t)offset, RWF_NOWAIT);
    if (got < 0 && errno == EOPNOTSUPP) return readv_resident(fd, iov, count, offset);
    if (got < 0) return errno == EINTR ? -EAGAIN : -errno;
    if (got == want) return got;
    struct stat s;
    if (fstat(fd, &s) != 0) return -errno;
    return offset + (uint64_t)got >= (uint64_t)s.st_size ? got : -EAGAIN;
}

int64_t posix_read(struct io *io, struct io_file *file, void *out, size_t size, uint64_t offset)
{
    (void)io;
    return posix_readv(file->fd, &(struct iovec){out, size}, 1, offset);
}

int64_t posix_read_cached(struct io *io,
                          struct io_file *file,
                          void *out,
                          size_t size,
                          uint64_t offset)
{
    (void)io;
    return posix_readv_cached(file->fd, &(struct iovec){out, size}, 1, offset);
}

/* All of it, whatever the kernel takes at a time. */
int posix_writev_all(int fd,
                     const struct iovec *iov,
                     uint32_t count,
                     uint64_t offset,
                     int64_t *done)
{
    struct iovec part[POSIX_IOV_PART];
    uint32_t n;
    *done = 0;
    while ((n = iov_rest(iov, count, (uint64_t)*done, part)) > 0) {
        ssize_t put = pwritev(fd, part, (int)n, (off_t)(offset + (uint64_t)*done));
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return -errno;
        *done += put;
    }
    return 0;
}

int64_t posix_write(struct io *io,
                    struct io_file *file,
                    const void *bytes,
                    size_t size,
                    uint64_t offset)
{
    (void)io;
    struct iovec iov;
    memcpy(&iov.iov_base, &bytes, sizeof(bytes)); /* iovec has no const; it is only read. */
    iov.iov_len = size;
    int64_t done;
    int result = posix_writev_all(file->fd, &iov, 1, offset, &done);
    return result < 0 ? result : done;
}

int posix_truncate(struct io *io, struct io_file *file, uint64_t size)
{
    (void)io;
    return ftruncate(file->fd, (off_t)size) != 0 ? -errno : 0;
}

int posix_reserve(struct io *io, struct io_file *file, uint64_t offset, uint64_t size)
{
    (void)io;
    return fallocate(file->fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size) != 0 ? -errno : 0;
}

int posix_sync(struct io *io, struct io_file *file)
{
    if (container_of(io, struct posix, io)->no_sync) return 0;
    return fdatasync(file->fd) != 0 ? -errno : 0;
}

/* Start the write-back of all, then wait for each: they go to the device side by side. Never tried
 * again: a second fsync may say yes though the pages are lost. */
int64_t posix_durable(struct io_file **files, uint32_t count)
{
    int64_t result = 0;
    if (count > POSIX_SYNCFS_FILES) return syncfs(files[0]->fd) != 0 ? -errno : 0;
    if (count > 1)
        for (uint32_t i = 0; i < count; i++)
            (void)sync_file_range(files[i]->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    for (uint32_t i = 0; i < count; i++)
        if (fdatasync(files[i]->fd) != 0 && result == 0) result = -errno;
    return result;
}

int posix_sync_dir(struct io *io, const char *path)
{
    if (container_of(io, struct posix, io)->no_sync) return 0;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return -errno;
    int result = fsync(fd) != 0 ? -errno : 0;
    close(fd);
    return result;
}

/* Every POSIX_SYNC_THREADS-th part, from `first` on. */
struct sync_share {
    struct io *io;
    const struct io_sync *parts;
    uint32_t first, count;
    int result;
};

static void *sync_share(void *argument)
{
    struct sync_share *share = argument;
    for (uint32_t i = share->first; i < share->count; i += POSIX_SYNC_THREADS) {
        const struct io_sync *part = &share->parts[i];
        int error = part->file != NULL ? posix_sync(share->io, part->file)
                                       : posix_sync_dir(share->io, part->folder);
        if (error == -ENOENT && part->gone_ok) error = 0;
        if (share->result == 0) share->result = error;
    }
    return NULL;
}

/* The caller takes the first share; so are the others when there is no thread to be had. */
int posix_sync_all(struct io *io, const struct io_sync *parts, uint32_t count)
{
    if (container_of(io, struct posix, io)->no_sync) return 0;
    struct sync_share shares[POSIX_SYNC_THREADS];
    pthread_t threads[POSIX_SYNC_THREADS];
    bool started[POSIX_SYNC_THREADS] = {false};
    uint32_t used = MIN(count, POSIX_SYNC_THREADS);
    for (uint32_t i = used; i-- > 0;) {
        shares[i] = (struct sync_share){.io = io, .parts = parts, .first = i, .count = count};
        started[i] = i > 0 && posix_thread(&threads[i], sync_share, &shares[i]);
        if (!started[i]) (void)sync_share(&shares[i]);
    }
    int result = 0;
    for (uint32_t i = 0; i < used; i++) {
        if (started[i]) pthread_join(threads[i], NULL);
        if (result == 0) result = shares[i].result;
    }
    return result;
}

int posix_rename(struct io *io, const char *from, const char *to)
{
    (void)io;
    return rename(from, to) != 0 ? -errno : 0;
}

int posix_unlink(struct io *io, const char *path)
{
    (void)io;
    return unlink(path) != 0 ? -errno : 0;
}

int posix_mkdir(struct io *io, const char *path)
{
    (void)io;
    return mkdir(path, 0755) != 0 ? -errno : 0;
}

int posix_rmdir(struct io *io, const char *path)
{
    (void)io;
    return rmdir(path) != 0 ? -errno : 0;
}

int posix_space(struct io *io, const char *path, struct io_space *out)
{
    (void)io;
    struct statvfs s;
    if (statvfs(path, &s) != 0) return -errno;
    *out = (struct io_space){(uint64_t)s.f_blocks * s.f_frsize, (uint64_t)s.f_bavail * s.f_frsize};
    return 0;
}

int posix_list(struct io *io, const char *path, bool (*each)(void *, const char *), void *context)
{
    (void)io;
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    if (count < 0) return -errno;
    bool more = true;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (more && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) more = each(context, name);
        free(entries[i]);
    }
    free(entries);
    return 0;
}

/* An open-file-description lock: it excludes Kafka's own (a POSIX lock on the same file) as well.
 */
int posix_lock(struct io *io, const char *path, struct io_file **out)
{
    int result = posix_open(io, path, IO_OPEN_WRITE | IO_OPEN_CREATE, out);
    if (result != 0) return result;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl((*out)->fd, F_OFD_SETLK, &lock) == 0) return 0;
    result = errno == EACCES || errno == EAGAIN ? -EWOULDBLOCK : -errno;
    posix_file_put(*out);
    *out = NULL;
    return result;
}
