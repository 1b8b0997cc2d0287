/* replay.h - taking in again what a segment's batches say of producers and transactions. For jobs.
 */
#pragma once

#include "log/index.h"
#include "log/producers.h"
#include "log/scan.h"

/* Take the batch that scan_next() gave last into `producers`; if it ends a transaction by an abort,
 * add the entry to `txns` (NULL: not wanted). Memory is the scan's. 0, -ENOMEM or -errno. */
MUST_USE int replay_batch(struct scan *scan, struct producers *producers, struct index *txns);
