/* sim_image.c - what is in a file, what of it is durable, and what a crash leaves.
 *
 * A file is two images: `now` is what reads see, `stable` is what is on the platter; `changes` lead
 * from the one to the other, oldest first. A sync moves changes to stable. A crash keeps some of
 * them: a change may be lost, kept or torn at sector or page granularity; sizes are metadata and
 * may come without their bytes (which then read as zeros). test/powercut/model.c holds this against
 * a real ext4. */
#include "io/sim_inside.h"

#include <errno.h>
#include <stdlib.h>

#define SECTOR_BYTES 512u
#define PAGE_BYTES   4096u

uint64_t sim_rng_below(struct sim_rng *rng, uint64_t bound)
{
    assert(bound > 0);
    return sim_rng_next(rng) % bound;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void bytes_resize(struct sim_bytes *bytes, uint64_t size)
{
    if (size > bytes->capacity) {
        bytes->capacity = MAX(size, bytes->capacity + bytes->capacity / 2);
        bytes->data = sim_heap_grow(bytes->data, bytes->capacity);
    }
    if (size > bytes->size) memset(bytes->data + bytes->size, 0, size - bytes->size);
    bytes->size = size;
}

static void bytes_put(struct sim_bytes *bytes, uint64_t offset, const uint8_t *from, uint64_t size)
{
    if (offset + size > bytes->size) bytes_resize(bytes, offset + size);
    if (size > 0) memcpy(bytes->data + offset, from, size);
}

static void bytes_copy(struct sim_bytes *to, const struct sim_bytes *from)
{
    bytes_resize(to, from->size);
    if (from->size > 0) memcpy(to->data, from->data, from->size);
}

/* ---- inodes ---------------------------------------------------------------------------------- */

struct sim_inode *sim_inode_new(struct sim_disk *disk, bool directory)
{
    struct sim_inode *inode = sim_heap(sizeof(*inode));
    inode->disk = disk;
    inode->number = disk->numbers++;
    inode->directory = directory;
    list_init(&inode->changes);
    list_append(&disk->inodes, &inode->link);
    return inode;
}

static void change_drop(struct sim_inode *inode, struct sim_change *change)
{
    list_remove(&change->link);
    inode->change_count--;
    free(change);
}

static void changes_drop(struct sim_inode *inode)
{
    list_foreach (node, &inode->changes)
        change_drop(inode, container_of(node, struct sim_change, link));
}

void sim_inode_put(struct sim_inode *inode)
{
    assert(inode->references > 0);
    if (--inode->references > 0) return;
    changes_drop(inode);
    sim_names_clear(&inode->names);
    sim_names_clear(&inode->stable_names);
    inode->disk->used_bytes -= inode->charged_bytes;
    list_remove(&inode->link);
    free(inode->now.data);
    free(inode->stable.data);
    free(inode);
}

/* What the file takes, were it so long. */
static uint64_t charge_of(const struct sim_inode *inode, uint64_t size)
{
    uint64_t end = MAX(size, inode->reserved_end);
    return (end + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static void charge(struct sim_inode *inode)
{
    uint64_t bytes = charge_of(inode, inode->now.size);
    inode->disk->used_bytes += bytes - inode->charged_bytes;
    inode->charged_bytes = bytes;
}

static uint64_t room_of(const struct sim_inode *inode)
{
    const struct sim_disk *disk = inode->disk;
    uint64_t left = disk->space_bytes > disk->used_bytes ? disk->space_bytes - disk->used_bytes : 0;
    return left / PAGE_BYTES * PAGE_BYTES + inode->charged_bytes; /* How long it may become. */
}

static void apply(struct sim_bytes *bytes, const struct sim_change *change)
{
    if (change->truncate)
        bytes_resize(bytes, change->offset);
    else
        bytes_put(bytes, change->offset, change->bytes, change->size);
}

static void remember(struct sim_inode *inode, struct sim_change *change)
{
    change->sequence = ++inode->sequence;
    list_append(&inode->changes, &change->link);
    inode->change_count++;
    apply(&inode->now, change);
    charge(inode);
    if (inode->change_count > SIM_CHANGES_MAX) {
        struct sim_change *oldest = container_of(inode->changes.next, struct sim_change, link);
        apply(&inode->stable, oldest);
        change_drop(inode, oldest);
    }
}

int sim_inode_write(struct sim_inode *inode, uint64_t offset, const void *bytes, uint64_t size)
{
    uint64_t fits = size, room = room_of(inode);
    if (offset + size > room) fits = offset < room ? room - offset : 0;
    if (fits > 0) {
        struct sim_change *change = sim_heap(sizeof(*change) + fits);
        change->offset = offset;
        change->size = fits;
        memcpy(change->bytes, bytes, fits);
        remember(inode, change);
    }
    return fits < size ? -ENOSPC : 0;
}

int sim_inode_truncate(struct sim_inode *inode, uint64_t size)
{
    struct sim_change *change = sim_heap(sizeof(*change));
    change->truncate = true;
    change->offset = size;
    if (size < inode->reserved_end) inode->reserved_end = 0;
    remember(inode, change);
    return 0;
}

int sim_inode_reserve(struct sim_inode *inode, uint64_t end)
{
    if (charge_of(inode, end) > room_of(inode)) return -ENOSPC;
    inode->reserved_end = MAX(inode->reserved_end, end);
    charge(inode);
    return 0;
}

void sim_inode_sync(struct sim_inode *inode, uint64_t sequence)
{
    list_foreach (node, &inode->changes) {
        struct sim_change *change = container_of(node, struct sim_change, link);
        if (change->sequence > sequence) break;
        apply(&inode->stable, change);
        change_drop(inode, change);
    }
}

/* As filesystems behave: the pages count as clean though some never reached the platter. ext4 and
 * XFS go on showing them, btrfs shows what is there. */
void sim_inode_sync_failed(struct sim_inode *inode, struct sim_rng *rng)
{
    list_foreach (node, &inode->changes) {
        struct sim_change *change = container_of(node, struct sim_change, link);
        if (change->truncate || sim_rng_below(rng, 2) == 0) apply(&inode->stable, change);
        change_drop(inode, change);
    }
    if (sim_rng_below(rng, 3) == 0) {
        bytes_copy(&inode->now, &inode->stable);
        charge(inode);
    }
}

/* ---- what a crash leaves -----------------------------------------------------------------------
 */

/* The first few changes, and a part of the next one. */
static void settle_prefix(struct sim_inode *inode, struct sim_rng *rng)
{
    uint64_t keep = sim_rng_below(rng, inode->change_count + 1u);
    list_foreach (node, &inode->changes) {
        struct sim_change *change = container_of(node, struct sim_change, link);
        if (keep-- > 0) {
            apply(&inode->stable, change);
            continue;
        }
        if (change->truncate) return;
        uint64_t end = change->offset + sim_rng_below(rng, change->size + 1);
        end = end / SECTOR_BYTES * SECTOR_BYTES;
        if (end > change->offset)
            bytes_put(&inode->stable, change->offset, change->bytes, end - change->offset);
        return;
    }
}

/* A file's history is its stable bytes with the changes made one after the other; a moment is the
 * number of them made. Here the size stands at one moment and each piece of bytes at one of its
 * own, so no piece shows what never stood in memory. */
struct moments {
    struct sim_inode *inode;
    struct sim_change **changes;
    uint32_t count;
    uint32_t size_moment;
    uint32_t piece_moment; /* Of all pieces, unless `salt` draws one for each. */
    uint64_t salt;         /* 0: none is drawn. */
    uint64_t grain;        /* Bytes of a piece: a sector or a page. */
};

/* None, all, or some: each is as likely. */
static uint32_t moment_drawn(struct sim_rng *rng, uint32_t first, uint32_t last)
{
    uint64_t draw = sim_rng_next(rng);
    if (draw % 3 == 0) return first;
    if (draw % 3 == 1) return last;
    return first + (uint32_t)((draw >> 8) % (last - first + 1u));
}

/* The moment of the piece that begins at `start`. One bond to the size: where a truncate freed a
 * page, later bytes have new blocks, which are mapped after the truncate is on the platter. */
static uint32_t moment_of(const struct moments *m, uint64_t start)
{
    struct sim_rng rng = {m->salt ^ (start / m->grain + 1) * 0x9fb21c651e98df25u};
    uint32_t moment = m->salt == 0 ? m->piece_moment : moment_drawn(&rng, 0, m->count);
    uint64_t page = start / PAGE_BYTES * PAGE_BYTES;
    for (uint32_t i = m->size_moment; i < moment; i++)
        if (m->changes[i]->truncate && page >= m->changes[i]->offset) return i;
    return moment;
}

static uint64_t size_at(const struct moments *m)
{
    uint64_t size = m->inode->stable.size;
    for (uint32_t i = 0; i < m->size_moment; i++) {
        const struct sim_change *change = m->changes[i];
        size = change->truncate ? change->offset : MAX(size, change->offset + change->size);
    }
    return size;
}

/* Make change `i` in the pieces that have seen it. */
static void settle_change(const struct moments *m, uint32_t i)
{
    const struct sim_change *change = m->changes[i];
    struct sim_bytes *stable = &m->inode->stable;
    uint64_t end = change->truncate ? stable->size : change->offset + change->size;
    for (uint64_t at = change->offset, next; at < end; at = next) {
        next = MIN(end, at / m->grain * m->grain + m->grain);
        if (moment_of(m, at / m->grain * m->grain) <= i) continue;
        if (change->truncate)
            memset(stable->data + at, 0, next - at);
        else
            bytes_put(stable, at, change->bytes + (at - change->offset), next - at);
    }
}

/* A write may leave its mark on the size page by page: ext4 moves the size with each. */
static uint64_t torn_size(const struct moments *m, struct sim_rng *rng)
{
    uint64_t draw = sim_rng_next(rng);
    if (m->size_moment == m->count || m->changes[m->size_moment]->truncate || draw % 2 == 0)
        return 0;
    const struct sim_change *change = m->changes[m->size_moment];
    uint64_t first = change->offset / PAGE_BYTES + 1;
    uint64_t last = (change->offset + change->size - 1) / PAGE_BYTES;
    return last < first ? 0 : (first + (draw >> 8) % (last - first + 1)) * PAGE_BYTES;
}

static struct moments moments_of(struct sim_inode *inode, uint64_t grain)
{
    struct moments m = {.inode = inode, .count = inode->change_count, .grain = grain};
    m.changes = sim_heap(m.count * sizeof(struct sim_change *));
    uint32_t n = 0;
    list_foreach (node, &inode->changes)
        m.changes[n++] = container_of(node, struct sim_change, link);
    assert(n == m.count);
    return m;
}

static void settle_moments(struct moments *m, uint64_t size_least)
{
    uint64_t size = size_at(m);
    for (uint32_t i = 0; i < m->count; i++)
        settle_change(m, i);
    bytes_resize(&m->inode->stable, MAX(size, size_least));
    free(m->changes);
}

static void settle_sectors(struct sim_inode *inode, struct sim_rng *rng)
{
    struct moments m = moments_of(inode, sim_rng_below(rng, 2) == 0 ? SECTOR_BYTES : PAGE_BYTES);
    m.salt = sim_rng_next(rng) | 1;
    m.size_moment = moment_drawn(rng, 0, m.count);
    settle_moments(&m, torn_size(&m, rng));
}

static void settle_zero_tail(struct sim_inode *inode)
{
    struct moments m = moments_of(inode, PAGE_BYTES);
    m.size_moment = m.count;
    settle_moments(&m, 0);
}

/* The size runs ahead of the bytes: ext4 does so for appends to a block that is there already. */
static void settle_ahead(struct sim_inode *inode, struct sim_rng *rng)
{
    struct moments m = moments_of(inode, PAGE_BYTES);
    m.piece_moment = moment_drawn(rng, 0, m.count);
    m.size_moment = moment_drawn(rng, m.piece_moment, m.count);
    settle_moments(&m, torn_size(&m, rng));
}

static void settle_content(struct sim_inode *inode, enum sim_crash kind, struct sim_rng *rng)
{
    if (inode->change_count == 0) return;
    if (kind == SIM_CRASH_RANDOM)
        kind = (enum sim_crash)(SIM_CRASH_WORST + sim_rng_below(rng, 6)); /* To AHEAD. */
    switch (kind) {
    case SIM_CRASH_ALL:
    case SIM_CRASH_DATA: sim_inode_sync(inode, UINT64_MAX); break;
    case SIM_CRASH_PREFIX: settle_prefix(inode, rng); break;
    case SIM_CRASH_SECTORS: settle_sectors(inode, rng); break;
    case SIM_CRASH_ZERO_TAIL: settle_zero_tail(inode); break;
    case SIM_CRASH_AHEAD: settle_ahead(inode, rng); break;
    default: break; /* Nothing is kept. */
    }
}

/* Bits in the order of inodes and of their changes; returns the bits that are left. */
static uint64_t settle_content_chosen(struct sim_inode *inode, uint64_t bits)
{
    bool open = true; /* No truncation was lost so far. */
    list_foreach (node, &inode->changes) {
        struct sim_change *change = container_of(node, struct sim_change, link);
        if (open && (bits & 1) != 0)
            apply(&inode->stable, change);
        else if (change->truncate)
            open = false;
        bits >>= 1;
    }
    return bits;
}

static void settle_now(struct sim_inode *inode)
{
    changes_drop(inode);
    inode->locked = false;
    inode->reserved_end = 0;
    inode->last_write_us = 0;
    if (inode->directory) {
        sim_names_copy(&inode->names, &inode->stable_names);
        for (uint32_t i = 0; i < inode->names.count; i++)
            inode->names.at[i].inode->parent = inode;
        return;
    }
    bytes_copy(&inode->now, &inode->stable);
    charge(inode);
}

void sim_disk_settle(struct sim_disk *disk, enum sim_crash kind, uint64_t choice)
{
    struct sim_rng rng = {choice};
    assert(kind != SIM_CRASH_KILL);
    list_foreach (node, &disk->inodes) {
        struct sim_inode *inode = container_of(node, struct sim_inode, link);
        if (kind == SIM_CRASH_CHOSEN)
            choice = settle_content_chosen(inode, choice);
        else
            settle_content(inode, kind, &rng);
    }
    if (kind == SIM_CRASH_CHOSEN)
        sim_names_settle_chosen(disk, choice);
    else
        sim_names_settle(disk, kind, &rng);

    /* Names that go may free inodes: hold all while walking. */
    list_foreach (node, &disk->inodes)
        container_of(node, struct sim_inode, link)->references++;
    list_foreach (node, &disk->inodes)
        settle_now(container_of(node, struct sim_inode, link));
    uint32_t held = disk->numbers;
    struct sim_inode **all = sim_heap(sizeof(*all) * held);
    uint32_t count = 0;
    list_foreach (node, &disk->inodes)
        all[count++] = container_of(node, struct sim_inode, link);
    for (uint32_t i = 0; i < count; i++)
        sim_inode_put(all[i]);
    free(all);
}

uint32_t sim_disk_unsynced(const struct sim_disk *disk)
{
    uint32_t count = disk->name_change_count;
    list_foreach (node, &disk->inodes)
        count += container_of(node, struct sim_inode, link)->change_count;
    return count;
}

/* ---- disks ----------------------------------------------------------------------------------- */

struct sim_disk *sim_disk_new(uint64_t space_bytes)
{
    struct sim_disk *disk = sim_heap(sizeof(*disk));
    list_init(&disk->inodes);
    list_init(&disk->name_changes);
    disk->space_bytes = space_bytes;
    disk->root = sim_inode_new(disk, true);
    disk->root->references = 1;
    return disk;
}

static void names_move(struct sim_names *to, const struct sim_names *from, struct sim_inode **map)
{
    for (uint32_t i = 0; i < from->count; i++)
        sim_names_set(to, from->at[i].text, map[from->at[i].inode->number]);
}

static void content_copy(struct sim_inode *to, const struct sim_inode *from)
{
    bytes_copy(&to->now, &from->now);
    bytes_copy(&to->stable, &from->stable);
    to->sequence = from->sequence;
    to->modified_wall_ms = from->modified_wall_ms;
    to->reserved_end = from->reserved_end;
    list_foreach (node, &from->changes) {
        const struct sim_change *change = container_of(node, struct sim_change, link);
        size_t size = sizeof(*change) + (change->truncate ? 0 : change->size);
        struct sim_change *copy = sim_heap(size);
        memcpy(copy, change, size);
        list_append(&to->changes, &copy->link);
        to->change_count++;
    }
    charge(to);
}

struct sim_disk *sim_disk_copy(const struct sim_disk *disk)
{
    struct sim_disk *copy = sim_disk_new(disk->space_bytes);
    struct sim_inode **map = sim_heap(sizeof(*map) * disk->numbers);
    map[disk->root->number] = copy->root;
    list_foreach (node, &disk->inodes) {
        struct sim_inode *inode = container_of(node, struct sim_inode, link);
        if (inode == disk->root) continue;
        map[inode->number] = sim_inode_new(copy, inode->directory);
        map[inode->number]->references = 1; /* Until the names are copied. */
    }
    list_foreach (node, &disk->inodes) {
        struct sim_inode *inode = container_of(node, struct sim_inode, link);
        struct sim_inode *twin = map[inode->number];
        if (inode->parent != NULL) twin->parent = map[inode->parent->number];
        content_copy(twin, inode);
        names_move(&twin->names, &inode->names, map);
        names_move(&twin->stable_names, &inode->stable_names, map);
    }
    list_foreach (node, &disk->name_changes) {
        struct sim_name_change change = *container_of(node, struct sim_name_change, link);
        change.inode = map[change.inode->number];
        if (change.from.directory != NULL)
            change.from.directory = map[change.from.directory->number];
        if (change.to.directory != NULL) change.to.directory = map[change.to.directory->number];
        sim_names_remember(copy, &change);
    }
    list_foreach (node, &disk->inodes) {
        struct sim_inode *inode = container_of(node, struct sim_inode, link);
        if (inode != disk->root) sim_inode_put(map[inode->number]);
    }
    free(map);
    return copy;
}

void sim_disk_free(struct sim_disk *disk)
{
    sim_disk_settle(disk, SIM_CRASH_WORST, 0); /* Drops all that is unsynced. */
    sim_inode_put(disk->root);
    assert(list_empty(&disk->inodes));
    free(disk);
}
