/* epochs.c - an array sorted by epoch and start; rules at the head of epochs.h. */
#include "log/epochs.h"

#include "log/checkpoint.h"

bool epochs_reserve(struct mem *mem, struct epochs *epochs, uint32_t more)
{
    if (epochs->count + more <= epochs->capacity) return true;
    uint32_t capacity =
        MAX(epochs->capacity * 2, epochs->count + MAX(more, 1u)); /* Most have one. */
    struct epoch_entry *entries = mem_get(mem, capacity * sizeof(entries[0]));
    if (entries == NULL) return false;
    if (epochs->count > 0) memcpy(entries, epochs->entries, epochs->count * sizeof(entries[0]));
    mem_put(mem, epochs->entries, epochs->capacity * sizeof(entries[0]));
    epochs->entries = entries;
    epochs->capacity = capacity;
    return true;
}

void epochs_assign(struct epochs *epochs, int32_t epoch, int64_t start)
{
    assert(epoch >= 0);
    assert(start >= 0);
    if (epochs->count > 0) {
        const struct epoch_entry *last = &epochs->entries[epochs->count - 1];
        if (last->epoch == epoch && start >= last->start) return;
    }
    while (epochs->count > 0 && (epochs->entries[epochs->count - 1].epoch >= epoch ||
                                 epochs->entries[epochs->count - 1].start >= start))
        epochs->count--;
    assert(epochs->count < epochs->capacity);
    epochs->entries[epochs->count++] = (struct epoch_entry){start, epoch};
    epochs->dirty = true;
}

void epochs_cut_end(struct epochs *epochs, int64_t end)
{
    while (epochs->count > 0 && epochs->entries[epochs->count - 1].start >= end) {
        epochs->count--;
        epochs->dirty = true;
    }
}

void epochs_cut_start(struct epochs *epochs, int64_t start)
{
    uint32_t below = 0;
    while (below < epochs->count && epochs->entries[below].start <= start)
        below++;
    if (below == 0) return;
    uint32_t gone = below - 1; /* The last one below stays, and starts where the log does. */
    epochs->dirty |= gone > 0 || epochs->entries[gone].start != start;
    memmove(epochs->entries, epochs->entries + gone,
            (epochs->count - gone) * sizeof(epochs->entries[0]));
    epochs->count -= gone;
    epochs->entries[0].start = start;
}

void epochs_clear(struct epochs *epochs)
{
    epochs->dirty |= epochs->count > 0;
    epochs->count = 0;
}

void epochs_free(struct mem *mem, struct epochs *epochs)
{
    mem_put(mem, epochs->entries, epochs->capacity * sizeof(epochs->entries[0]));
    *epochs = (struct epochs){0};
}

int32_t epochs_latest(const struct epochs *epochs)
{
    return epochs->count == 0 ? -1 : epochs->entries[epochs->count - 1].epoch;
}

int32_t epochs_at(const struct epochs *epochs, int64_t offset)
{
    uint32_t low = 0;
    uint32_t high = epochs->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (epochs->entries[middle].start <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? -1 : epochs->entries[low - 1].epoch;
}

void epochs_end(const struct epochs *epochs,
                struct epoch_entry asked_and_log_end,
                struct epoch_entry *out)
{
    int32_t asked = asked_and_log_end.epoch;
    *out = (struct epoch_entry){-1, -1};
    if (asked < 0 || asked > epochs_latest(epochs)) return;
    if (asked == epochs_latest(epochs)) {
        *out = asked_and_log_end;
        return;
    }
    uint32_t above = 0;
    while (epochs->entries[above].epoch <= asked)
        above++; /* Ends: the newest is above `asked`. */
    int32_t floor = above == 0 ? asked : epochs->entries[above - 1].epoch;
    *out = (struct epoch_entry){epochs->entries[above].start, floor};
}

void epochs_write(const struct epochs *epochs, int64_t end, struct sink *out)
{
    uint32_t count = 0;
    while (count < epochs->count && epochs->entries[count].start < end)
        count++;
    checkpoint_begin(out, count);
    for (uint32_t i = 0; i < count; i++) {
        struct checkpoint_entry entry = {VIEW_NULL, epochs->entries[i].epoch,
                                         epochs->entries[i].start};
        checkpoint_add(out, &entry);
    }
}

int epochs_read(struct mem *mem, struct epochs *epochs, struct view text)
{
    struct checkpoint_reader reader = checkpoint_read(text, false);
    struct checkpoint_entry entry;
    epochs->count = 0;
    epochs->dirty = false;
    int result = LOG_OK;
    while (result == LOG_OK && checkpoint_next(&reader, &entry)) {
        bool good =
            entry.number >= 0 && entry.offset >= 0 &&
            (epochs->count == 0 || (epochs->entries[epochs->count - 1].epoch < entry.number &&
                                    epochs->entries[epochs->count - 1].start < entry.offset));
        if (!good)
            result = LOG_E_DAMAGED;
        else if (!epochs_reserve(mem, epochs, 1))
            result = LOG_E_MEMORY;
        else
            epochs->entries[epochs->count++] = (struct epoch_entry){entry.offset, entry.number};
    }
    if (result == LOG_OK && reader.invalid) result = LOG_E_DAMAGED;
    if (result != LOG_OK) epochs->count = 0;
    return result;
}
