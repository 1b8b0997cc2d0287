/* index.c - sorted arrays of fixed-width entries; formats at the head of index.h. */
#include "log/index.h"

#include <errno.h>

#define INDEX_FIRST_ENTRIES 32u

bool index_reserve(struct mem *mem, struct index *index, uint32_t more)
{
    assert(index->loaded);
    uint32_t wanted = index->count + more;
    if (wanted <= index->capacity) return true;
    uint32_t capacity = MAX(MAX(index->capacity * 2, wanted), INDEX_FIRST_ENTRIES);
    uint8_t *entries = mem_get(mem, (size_t)capacity * index->width);
    if (entries == NULL) return false;
    if (index->count > 0) memcpy(entries, index->entries, (size_t)index->count * index->width);
    mem_put(mem, index->entries, (size_t)index->capacity * index->width);
    index->entries = entries;
    index->capacity = capacity;
    return true;
}

bool index_copy(struct mem *mem, struct index *to, const struct index *from)
{
    assert(to->count == 0);
    assert(to->width == from->width);
    if (from->count == 0) return true;
    if (!index_reserve(mem, to, from->count)) return false;
    memcpy(to->entries, from->entries, (size_t)from->count * from->width);
    to->count = from->count;
    return true;
}

void index_unload(struct mem *mem, struct index *index)
{
    mem_put(mem, index->entries, (size_t)index->capacity * index->width);
    index->entries = NULL;
    index->capacity = 0;
    index->loaded = false;
}

static uint8_t *index_at(const struct index *index, uint32_t i)
{
    return index->entries + (size_t)i * index->width;
}

static uint8_t *index_next(struct index *index)
{
    assert(index->loaded);
    assert(index->count < index->capacity);
    return index_at(index, index->count++);
}

struct index_offset index_get_offset(const struct index *index, uint32_t i)
{
    assert(index->width == INDEX_OFFSET_BYTES);
    assert(i < index->count);
    const uint8_t *p = index_at(index, i);
    return (struct index_offset){load_be32(p), load_be32(p + 4)};
}

struct index_time index_get_time(const struct index *index, uint32_t i)
{
    assert(index->width == INDEX_TIME_BYTES);
    assert(i < index->count);
    const uint8_t *p = index_at(index, i);
    return (struct index_time){(int64_t)load_be64(p), load_be32(p + 8)};
}

struct index_txn index_get_txn(const struct index *index, uint32_t i)
{
    assert(index->width == INDEX_TXN_BYTES);
    assert(i < index->count);
    const uint8_t *p = index_at(index, i) + 2;
    return (struct index_txn){(int64_t)load_be64(p), (int64_t)load_be64(p + 8),
                              (int64_t)load_be64(p + 16), (int64_t)load_be64(p + 24)};
}

void index_add_offset(struct index *index, struct index_offset entry)
{
    assert(index->count == 0 ||
           index_get_offset(index, index->count - 1).relative < entry.relative);
    uint8_t *p = index_next(index);
    store_be32(p, entry.relative);
    store_be32(p + 4, entry.at_bytes);
}

void index_add_time(struct index *index, struct index_time entry)
{
    assert(index->count == 0 ||
           index_get_time(index, index->count - 1).timestamp_ms < entry.timestamp_ms);
    uint8_t *p = index_next(index);
    store_be64(p, (uint64_t)entry.timestamp_ms);
    store_be32(p + 8, entry.relative);
}

void index_add_txn(struct index *index, const struct index_txn *entry)
{
    assert(index->count == 0 ||
           index_get_txn(index, index->count - 1).offset_last < entry->offset_last);
    uint8_t *p = index_next(index);
    store_be16(p, 0);
    store_be64(p + 2, (uint64_t)entry->producer_id);
    store_be64(p + 10, (uint64_t)entry->offset_first);
    store_be64(p + 18, (uint64_t)entry->offset_last);
    store_be64(p + 26, (uint64_t)entry->last_stable);
}

bool index_floor_offset(const struct index *index, uint32_t relative, struct index_offset *out)
{
    uint32_t low = 0;
    uint32_t high = index->count;
    while (low < high) { /* All below `low` are <= relative, all from `high` on are above. */
        uint32_t middle = low + (high - low) / 2;
        if (index_get_offset(index, middle).relative <= relative)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return false;
    *out = index_get_offset(index, low - 1);
    return true;
}

bool index_floor_position(const struct index *index, uint32_t at_bytes, struct index_offset *out)
{
    uint32_t low = 0;
    uint32_t high = index->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (index_get_offset(index, middle).at_bytes <= at_bytes)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return false;
    *out = index_get_offset(index, low - 1);
    return true;
}

bool index_floor_time(const struct index *index, int64_t timestamp_ms, struct index_time *out)
{
    uint32_t low = 0;
    uint32_t high = index->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (index_get_time(index, middle).timestamp_ms <= timestamp_ms)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return false;
    *out = index_get_time(index, low - 1);
    return true;
}

static void index_cut(struct index *index, uint32_t count)
{
    index->count = count;
    index->stored = MIN(index->stored, count);
}

void index_cut_offsets(struct index *index, uint32_t relative)
{
    uint32_t count = index->count;
    while (count > 0 && index_get_offset(index, count - 1).relative >= relative)
        count--;
    index_cut(index, count);
}

void index_cut_times(struct index *index, uint32_t relative)
{
    uint32_t count = index->count;
    while (count > 0 && index_get_time(index, count - 1).relative >= relative)
        count--;
    index_cut(index, count);
}

void index_cut_txns(struct index *index, int64_t offset)
{
    uint32_t count = index->count;
    while (count > 0 && index_get_txn(index, count - 1).offset_last >= offset)
        count--;
    index_cut(index, count);
}

static bool index_pair_valid(const struct index *index, uint32_t i)
{
    if (index->width == INDEX_OFFSET_BYTES) {
        struct index_offset a = index_get_offset(index, i - 1);
        struct index_offset b = index_get_offset(index, i);
        return a.relative < b.relative && a.at_bytes < b.at_bytes;
    }
    if (index->width == INDEX_TIME_BYTES) {
        struct index_time a = index_get_time(index, i - 1);
        struct index_time b = index_get_time(index, i);
        return a.timestamp_ms < b.timestamp_ms && a.relative <= b.relative;
    }
    return index_get_txn(index, i - 1).offset_last < index_get_txn(index, i).offset_last;
}

static bool index_entry_valid(const struct index *index,
                              uint32_t i,
                              int64_t base,
                              uint32_t segment_bytes)
{
    if (index->width == INDEX_OFFSET_BYTES) {
        struct index_offset entry = index_get_offset(index, i);
        return entry.relative <= INT32_MAX && entry.at_bytes < segment_bytes;
    }
    if (index->width == INDEX_TIME_BYTES) {
        struct index_time entry = index_get_time(index, i);
        return entry.timestamp_ms >= 0 && entry.relative <= INT32_MAX;
    }
    struct index_txn entry = index_get_txn(index, i);
    return load_be16(index_at(index, i)) == 0 && entry.offset_last >= base &&
           entry.offset_first >= 0 && entry.offset_first <= entry.offset_last;
}

bool index_valid(const struct index *index, int64_t base, uint32_t segment_bytes)
{
    for (uint32_t i = 0; i < index->count; i++) {
        if (!index_entry_valid(index, i, base, segment_bytes)) return false;
        if (i > 0 && !index_pair_valid(index, i)) return false;
    }
    return true;
}

int index_load(struct io *io,
               struct mem *mem,
               const char *path,
               uint32_t max_bytes,
               struct index *index)
{
    uint8_t width = index->width;
    struct io_file *file;
    int error = io_disk_open(io, path, IO_OPEN_READ, &file);
    if (error < 0) return error;

    struct index loaded = index_new(width);
    int64_t size = io_disk_size(io, file);
    if (size > (int64_t)max_bytes) size = -EFBIG;
    if (size >= width) {
        uint32_t count = (uint32_t)size / width;
        size = (int64_t)count * width;
        if (!index_reserve(mem, &loaded, count)) size = -ENOMEM;
        int64_t got = size < 0 ? size : io_disk_read(io, file, loaded.entries, size, 0);
        if (got >= 0 && got != size) got = -EIO;
        if (got < 0) index_unload(mem, &loaded);
        size = got;
        loaded.count = loaded.stored = got < 0 ? 0 : count;
    }
    io_disk_close(io, file);
    if (size < 0) return (int)size;
    *index = loaded;
    return 0;
}

/* Make the file `to` bytes long, those from `from` on being `bytes`, and sync it. */
static int index_put(struct io *io,
                     struct io_file *file,
                     const uint8_t *bytes,
                     uint64_t from,
                     uint64_t to)
{
    int error = 0;
    int64_t size = io_disk_size(io, file);
    if (size < 0) return (int)size;
    if (to > from) {
        int64_t put = io_disk_write(io, file, bytes, to - from, from);
        if (put < 0)
            error = (int)put;
        else if ((uint64_t)put != to - from)
            error = -EIO;
    }
    if (error == 0 && size > (int64_t)to) error = io_disk_truncate(io, file, to);
    return error == 0 ? io_disk_sync(io, file) : error;
}

int index_extend(struct io *io, const char *path, uint32_t at, const struct index *more)
{
    struct io_file *file;
    int error = io_disk_open(io, path, IO_OPEN_WRITE | IO_OPEN_CREATE, &file);
    if (error < 0) return error;
    uint64_t from = (uint64_t)at * more->width;
    int64_t size = io_disk_size(io, file);
    if (size < 0)
        error = (int)size;
    else if ((uint64_t)size < from)
        error = -ENODATA;
    else
        error =
            index_put(io, file, more->entries, from, from + (uint64_t)more->count * more->width);
    io_disk_close(io, file);
    return error;
}

int index_store(struct io *io, const char *path, const struct index *index)
{
    assert(index->loaded);
    assert(index->stored <= index->count);
    struct io_file *file;
    int error = io_disk_open(io, path, IO_OPEN_WRITE | IO_OPEN_CREATE, &file);
    if (error < 0) return error;

    uint64_t from = (uint64_t)index->stored * index->width;
    uint64_t to = (uint64_t)index->count * index->width;
    int64_t size = io_disk_size(io, file);
    if (size < 0) error = (int)size;
    if (error == 0 && size < (int64_t)from) from = 0; /* It lost what it had: write all. */
    if (error == 0) error = index_put(io, file, index->entries + from, from, to);
    io_disk_close(io, file);
    return error;
}
