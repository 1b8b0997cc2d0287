/* space.c - dohle.disk.max.bytes: a bound for what the segments of all logs take together.
 *
 * Above fifteen sixteenths of it the oldest closed segments go, of whatever log whose policy is to
 * delete, by when they were written last, before any rule of retention asks for them; their files
 * are unlinked at once. So that there are closed segments, none grows beyond a sixteenth. What is
 * not to be deleted stays: the last segment of a log, what is not below the high watermark,
 * compacted topics. What comes faster than segments can be closed and deleted waits (LOG_E_BUSY).
 * If nothing may go for SPACE_PATIENCE_MS, clients' appends are refused (LOG_E_FULL) until there is
 * room; coordinators and the controller go on.
 *
 * Counted are the segments' own bytes and the ballast; indexes come on top, about a hundredth. Of
 * several shards each has its share. Logs are all opened at start, and stay so, to be counted. */
#include "log/state.h"

#define SPACE_INTERVAL_MS 1000
#define SPACE_SOON_MS     20 /* A segment that was just closed is not to be deleted yet. */
#define SPACE_PATIENCE_MS 1000
#define SPACE_SEGMENT_MIN (64u * 1024u)

void logs_space_open(struct logs *logs)
{
    const struct logs_part *part = logs->options.part;
    uint64_t max = logs->options.disk_max_bytes / (part == NULL ? 1 : part->count);
    logs->space_max = max;
    logs->segment_max = INT32_MAX;
    if (max == 0) return;
    logs->segment_max = (uint32_t)MIN(MAX(max / 16, (uint64_t)SPACE_SEGMENT_MIN), INT32_MAX);
    logs->options.unsynced_max_bytes =
        (uint32_t)MIN((uint64_t)logs->options.unsynced_max_bytes, MAX(max / 16, 1024 * 1024));
}

static bool space_add(void *context, struct log *log)
{
    uint64_t *used = context;
    *used += log->size_bytes;
    return true;
}

static void space_count(struct logs *logs)
{
    logs->space_used = 0;
    for (uint32_t i = 0; i < logs->directory_count; i++)
        logs->space_used += logs->directories[i].ballast_bytes;
    logs_each(logs, space_add, &logs->space_used);
}

/* The log whose first segment is the oldest of all that may go. */
struct space_oldest {
    struct log *log;
    int64_t modified_ms;
};

static bool space_look(void *context, struct log *log)
{
    struct space_oldest *oldest = context;
    if (!log_first_may_go(log)) return true;
    int64_t modified_ms = log->segments[0]->modified_wall_ms;
    if (oldest->log == NULL || modified_ms < oldest->modified_ms)
        *oldest = (struct space_oldest){log, modified_ms};
    return true;
}

static void space_say(struct logs *logs, bool full)
{
    if (full == logs->space_full) return;
    logs->space_full = full;
    if (full)
        logs_say(logs, "the segments fill dohle.disk.max.bytes and none may be deleted: "
                       "produced records are refused until there is room");
    else
        logs_say(logs, "there is room below dohle.disk.max.bytes again");
}

/* Delete until `target` is reached, or nothing more may go now. */
static void space_make(struct logs *logs, uint64_t target)
{
    while (logs->space_used > target) {
        struct space_oldest oldest = {0};
        logs_each(logs, space_look, &oldest);
        if (oldest.log == NULL) return;
        uint64_t bytes = oldest.log->segments[0]->size_bytes;
        if (!log_first_goes(oldest.log)) return;
        logs->space_used -= bytes;
    }
}

int64_t logs_space_turn(struct logs *logs, int64_t now_ms)
{
    if (logs->space_max == 0) return INT64_MAX;
    uint64_t spare = MAX(logs->space_max / 16, (uint64_t)logs->space_wanted_bytes);
    uint64_t target = logs->space_max - MIN(spare, logs->space_max);
    bool short_of = logs->space_used > target;
    if (now_ms < logs->next_space_ms && (!short_of || logs->space_stuck_ms != 0))
        return logs->next_space_ms;
    space_count(logs);
    space_make(logs, target);
    short_of = logs->space_used > target;
    if (short_of && logs->space_stuck_ms == 0) logs->space_stuck_ms = now_ms;
    if (!short_of) logs->space_stuck_ms = 0;
    space_say(logs, short_of && now_ms - logs->space_stuck_ms >= SPACE_PATIENCE_MS);
    if (!short_of || logs->space_full)
        logs->space_wanted_bytes = 0; /* They get on, or an answer. */
    bool soon = short_of && !logs->space_full;
    logs->next_space_ms = now_ms + (soon ? SPACE_SOON_MS : SPACE_INTERVAL_MS);
    return logs->next_space_ms;
}

int logs_space_admit(struct logs *logs, const struct log_append *in)
{
    if (logs->space_max == 0 || in->origin != LOG_CLIENT) return LOG_OK;
    if (logs->space_used + in->size_bytes <= logs->space_max) return LOG_OK;
    if (logs->space_full || in->size_bytes > logs->space_max / 2) return LOG_E_FULL;
    logs->space_wanted_bytes = MAX(logs->space_wanted_bytes, in->size_bytes);
    return LOG_E_BUSY;
}
