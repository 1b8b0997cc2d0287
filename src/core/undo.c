/* undo.c - a list of changes, oldest first, dropped from the front or played back from the end. */
#include "core/undo.h"

static struct undo_entry *undo_entry_of(struct list *link)
{
    return container_of(link, struct undo_entry, link);
}

void undo_init(struct undo_log *log,
               void *machine,
               void (*drop)(void *machine, struct undo_entry *entry),
               void (*back)(void *machine, struct undo_entry *entry))
{
    assert(drop != NULL);
    assert(back != NULL);
    *log = (struct undo_log){.machine = machine, .drop = drop, .back = back};
    list_init(&log->entries);
}

void undo_add(struct undo_log *log, struct undo_entry *entry, int64_t batch_offset)
{
    list_init(&entry->link);
    entry->batch_offset = batch_offset;
    if (log->off) {
        log->drop(log->machine, entry);
        return;
    }
    assert(list_empty(&log->entries) ||
           undo_entry_of(log->entries.previous)->batch_offset <= batch_offset);
    list_append(&log->entries, &entry->link);
    log->count++;
}

static struct undo_entry *undo_take(struct undo_log *log, struct list *link)
{
    assert(log->count > 0);
    list_remove(link);
    log->count--;
    return undo_entry_of(link);
}

void undo_commit(struct undo_log *log, int64_t offset)
{
    while (!list_empty(&log->entries) && undo_entry_of(log->entries.next)->batch_offset < offset)
        log->drop(log->machine, undo_take(log, log->entries.next));
}

void undo_back(struct undo_log *log, int64_t offset)
{
    while (!list_empty(&log->entries) &&
           undo_entry_of(log->entries.previous)->batch_offset >= offset)
        log->back(log->machine, undo_take(log, log->entries.previous));
}
