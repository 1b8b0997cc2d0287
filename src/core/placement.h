/* placement.h - where the replicas of new partitions go: striped over racks and brokers.
 *
 * Racks take turns, and in a rack its brokers do, from a random start. So leaders and replicas are
 * even, and a partition's replicas lie in as many racks as there are. Fenced brokers are used only
 * where a rack has no others left, and never first. Pure; all memory is the arena's. */
#pragma once

#include "base/arena.h"
#include "core/step.h"

struct placement_broker {
    int32_t id;
    struct view rack; /* Null: no rack, which is a rack of its own. */
    bool fenced;
};

struct placement;

enum placement_fault {
    PLACEMENT_OK = 0,
    PLACEMENT_E_FACTOR, /* Not a number of replicas: < 1. */
    PLACEMENT_E_FENCED, /* No broker is unfenced. */
    PLACEMENT_E_FEW,    /* Fewer brokers than replicas. */
    PLACEMENT_E_MEMORY
};

/* Prepare to place partitions with `factor` replicas on these brokers, which must live as long. The
 * random start is the step's. */
MUST_USE enum placement_fault placement_new(struct step *step,
                                            const struct placement_broker *brokers,
                                            uint32_t count,
                                            int32_t factor,
                                            struct placement **out);

/* The replicas of the next partition, `factor` of them, to `replicas`. The first is unfenced. */
void placement_next(struct placement *placement, int32_t *replicas);
