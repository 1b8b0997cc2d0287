/* sim_names.c - directories: names now, names on the platter, and the changes between them.
 *
 * A change is whole or not at all (a rename too, also over an existing name). Changes of one name
 * keep their order: who keeps the later one keeps the earlier one. A crash keeps a beginning of all
 * changes, as a journal does, or any subset that respects that rule. */
#include "io/sim_inside.h"

#include <stdlib.h>

/* Index of the name, or of the place where it would be. */
static uint32_t place_of(const struct sim_names *names, const char *name)
{
    uint32_t low = 0, high = names->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (strcmp(names->at[middle].text, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct sim_inode *sim_names_find(const struct sim_names *names, const char *name)
{
    uint32_t i = place_of(names, name);
    return i < names->count && strcmp(names->at[i].text, name) == 0 ? names->at[i].inode : NULL;
}

void sim_names_set(struct sim_names *names, const char *name, struct sim_inode *inode)
{
    uint32_t i = place_of(names, name);
    inode->references++;
    if (i < names->count && strcmp(names->at[i].text, name) == 0) {
        sim_inode_put(names->at[i].inode);
        names->at[i].inode = inode;
        return;
    }
    if (names->count == names->capacity) {
        names->capacity = MAX(8u, names->capacity * 2);
        names->at = sim_heap_grow(names->at, names->capacity * sizeof(*names->at));
    }
    memmove(&names->at[i + 1], &names->at[i], (names->count - i) * sizeof(*names->at));
    names->at[i] = (struct sim_name){sim_heap_text(name), inode};
    names->count++;
}

void sim_names_remove(struct sim_names *names, const char *name)
{
    uint32_t i = place_of(names, name);
    if (i == names->count || strcmp(names->at[i].text, name) != 0) return;
    struct sim_name gone = names->at[i];
    names->count--;
    memmove(&names->at[i], &names->at[i + 1], (names->count - i) * sizeof(*names->at));
    free(gone.text);
    sim_inode_put(gone.inode);
}

void sim_names_copy(struct sim_names *to, const struct sim_names *from)
{
    struct sim_names copy = {0};
    for (uint32_t i = 0; i < from->count; i++)
        sim_names_set(&copy, from->at[i].text, from->at[i].inode);
    sim_names_clear(to);
    *to = copy;
}

void sim_names_clear(struct sim_names *names)
{
    struct sim_names gone = *names;
    *names = (struct sim_names){0};
    for (uint32_t i = 0; i < gone.count; i++) {
        free(gone.at[i].text);
        sim_inode_put(gone.at[i].inode);
    }
    free(gone.at);
}

/* ---- unsynced changes ------------------------------------------------------------------------ */

static struct sim_spot spot_copy(struct sim_spot spot)
{
    if (spot.directory == NULL) return (struct sim_spot){0};
    spot.directory->references++;
    spot.name = sim_heap_text(spot.name);
    return spot;
}

static void spot_drop(struct sim_spot *spot)
{
    if (spot->directory == NULL) return;
    free(spot->name);
    sim_inode_put(spot->directory);
}

static void change_drop(struct sim_disk *disk, struct sim_name_change *change)
{
    list_remove(&change->link);
    disk->name_change_count--;
    spot_drop(&change->from);
    spot_drop(&change->to);
    sim_inode_put(change->inode);
    free(change);
}

static bool same_spot(const struct sim_spot *a, const struct sim_spot *b)
{
    return a->directory != NULL && a->directory == b->directory && strcmp(a->name, b->name) == 0;
}

static bool depends(const struct sim_name_change *later, const struct sim_name_change *earlier)
{
    return same_spot(&later->from, &earlier->from) || same_spot(&later->from, &earlier->to) ||
           same_spot(&later->to, &earlier->from) || same_spot(&later->to, &earlier->to);
}

static struct sim_name_change *change_at(struct list *node)
{
    return container_of(node, struct sim_name_change, link);
}

/* Keep, with each kept change, those before it that it builds on. */
static void keep_what_is_needed(struct sim_disk *disk)
{
    for (struct list *node = disk->name_changes.previous; node != &disk->name_changes;
         node = node->previous) {
        if (!change_at(node)->kept) continue;
        for (struct list *before = node->previous; before != &disk->name_changes;
             before = before->previous)
            if (depends(change_at(node), change_at(before))) change_at(before)->kept = true;
    }
}

static void make(const struct sim_name_change *change)
{
    if (change->from.directory != NULL)
        sim_names_remove(&change->from.directory->stable_names, change->from.name);
    if (change->to.directory != NULL)
        sim_names_set(&change->to.directory->stable_names, change->to.name, change->inode);
}

/* The kept ones become durable; with `drop` the others are lost. */
static void commit(struct sim_disk *disk, bool drop)
{
    keep_what_is_needed(disk);
    list_foreach (node, &disk->name_changes) {
        struct sim_name_change *change = change_at(node);
        if (change->kept) make(change);
        if (change->kept || drop) change_drop(disk, change);
    }
}

void sim_names_remember(struct sim_disk *disk, const struct sim_name_change *change)
{
    struct sim_name_change *copy = sim_heap(sizeof(*copy));
    copy->from = spot_copy(change->from);
    copy->to = spot_copy(change->to);
    copy->inode = change->inode;
    copy->inode->references++;
    list_append(&disk->name_changes, &copy->link);
    disk->name_change_count++;
}

void sim_names_change(struct sim_disk *disk,
                      struct sim_spot from,
                      struct sim_spot to,
                      struct sim_inode *inode)
{
    struct sim_name_change change = {.from = from, .to = to, .inode = inode};
    sim_names_remember(disk, &change); /* Holds the inode while its name moves. */
    if (from.directory != NULL) sim_names_remove(&from.directory->names, from.name);
    if (to.directory != NULL) {
        sim_names_set(&to.directory->names, to.name, inode);
        inode->parent = to.directory;
    }
    if (disk->name_change_count > SIM_NAME_CHANGES_MAX) {
        change_at(disk->name_changes.next)->kept = true;
        commit(disk, false);
    }
}

void sim_names_sync(struct sim_inode *directory)
{
    list_foreach (node, &directory->disk->name_changes) {
        struct sim_name_change *change = change_at(node);
        change->kept = change->from.directory == directory || change->to.directory == directory;
    }
    commit(directory->disk, false);
}

void sim_names_settle(struct sim_disk *disk, enum sim_crash kind, struct sim_rng *rng)
{
    bool all = kind == SIM_CRASH_ALL || kind == SIM_CRASH_NAMES;
    bool some = kind == SIM_CRASH_PREFIX || kind == SIM_CRASH_SECTORS ||
                kind == SIM_CRASH_ZERO_TAIL || kind == SIM_CRASH_AHEAD || kind == SIM_CRASH_RANDOM;
    bool journal = sim_rng_below(rng, 2) == 0;
    uint64_t first = sim_rng_below(rng, disk->name_change_count + 1u), i = 0;
    list_foreach (node, &disk->name_changes) {
        bool drawn = journal ? i++ < first : sim_rng_below(rng, 2) == 0;
        change_at(node)->kept = all || (some && drawn);
    }
    commit(disk, true);
}

void sim_names_settle_chosen(struct sim_disk *disk, uint64_t bits)
{
    list_foreach (node, &disk->name_changes) {
        change_at(node)->kept = (bits & 1) != 0;
        bits >>= 1;
    }
    commit(disk, true);
}
