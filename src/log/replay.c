/* replay.c - see replay.h: the same apply as an append's, after the fact. */
#include "log/replay.h"

#include <errno.h>

int replay_batch(struct scan *scan, struct producers *producers, struct index *txns)
{
    const struct batch_header *header = &scan->header;
    if (!producers_reserve(producers, header->producer_id)) return -ENOMEM;
    struct producer_marker marker = {0};
    if ((header->attributes & BATCH_CONTROL) && header->producer_id >= 0) {
        struct view batch = scan_batch(scan);
        if (batch.null) return (int)scan->error;
        if (!producers_marker(header, batch, &marker)) marker = (struct producer_marker){0};
    }
    struct producer_ended ended;
    producers_apply(producers, header, &marker, &ended);
    producers_trim(producers);
    if (txns == NULL || !ended.ended || !ended.aborted) return 0;
    if (!index_reserve(scan->mem, txns, 1)) return -ENOMEM;
    struct index_txn entry = {header->producer_id, ended.offset_first, ended.offset_last,
                              ended.last_stable};
    index_add_txn(txns, &entry);
    return 0;
}
