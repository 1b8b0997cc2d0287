/* commits.c - see commits.h. */
#include "sim/commits.h"

#include "sim/client.h"

int64_t commits_make(struct commits *commits,
                     uint32_t log,
                     uint32_t seat,
                     int32_t epoch,
                     int64_t now_us)
{
    struct commits_log *at = &commits->logs[log];
    if (at->count == COMMITS_MAX) return -1;
    at->items[at->count++] =
        (struct commits_one){.sent_us = now_us, .end_us = INT64_MAX, .seat = seat, .epoch = epoch};
    return at->count;
}

void commits_answered(struct commits *commits,
                      uint32_t log,
                      int64_t offset,
                      int16_t error,
                      int64_t now_us)
{
    struct commits_one *one = &commits->logs[log].items[offset - 1];
    assert(offset >= 1 && offset <= commits->logs[log].count);
    one->end_us = MIN(one->end_us, now_us);
    if (error == 0) {
        one->state = COMMITS_KEPT;
        commits->kept++;
    } else if (!client_error_is_later(error)) {
        one->state = COMMITS_REFUSED;
    } else {
        one->end_us = INT64_MAX; /* It may wait in the log. */
    }
}

void commits_fence(struct commits *commits, uint32_t seat, int32_t epoch, int64_t now_us)
{
    for (uint32_t log = 0; log < HISTORY_LOGS_MAX; log++)
        for (uint32_t i = 0; i < commits->logs[log].count; i++) {
            struct commits_one *one = &commits->logs[log].items[i];
            if (one->seat == seat && one->epoch < epoch) one->end_us = MIN(one->end_us, now_us);
        }
}

void commits_read(struct commits *commits, uint32_t log, int64_t offset, int64_t sent_us)
{
    const struct commits_log *at = &commits->logs[log];
    int64_t end_us = -1; /* Of what was read. */
    commits->read++;
    if (offset > (int64_t)at->count || offset == 0 || offset < -1) {
        history_violation(commits->history, "I14: %s log %u: nobody committed %lld", commits->group,
                          log, (long long)offset);
        return;
    }
    if (offset > 0) {
        end_us = at->items[offset - 1].end_us;
        if (at->items[offset - 1].state == COMMITS_REFUSED)
            history_violation(commits->history, "I24: %s log %u: the commit of %lld was refused",
                              commits->group, log, (long long)offset);
    }
    for (uint32_t i = 0; i < at->count; i++)
        if (at->items[i].state == COMMITS_KEPT && at->items[i].sent_us > end_us &&
            at->items[i].end_us < sent_us)
            history_violation(commits->history,
                              "I14: %s log %u: the commit of %u was kept, then %lld is read",
                              commits->group, log, i + 1, (long long)offset);
}
