/* placement.c - the striped placer.
 *
 * For each rack two rings, of unfenced and of fenced brokers, sorted by id. A ring deals each of
 * its brokers at most once to a partition and moves its start by one for the next. */
#include "core/placement.h"

struct placement_ring {
    int32_t *ids;
    uint32_t count;
    uint32_t start; /* Of this partition. */
    uint32_t dealt; /* To this partition. */
};

struct placement_rack {
    struct view name;
    struct placement_ring unfenced;
    struct placement_ring fenced;
};

struct placement {
    struct placement_rack *racks;
    uint32_t rack_count;
    uint32_t widest; /* Brokers of the largest rack. */
    uint32_t factor;
    uint32_t placed; /* Partitions so far. */
};

static int32_t placement_deal(struct placement_ring *ring)
{
    if (ring->dealt == ring->count) return -1;
    return ring->ids[(ring->start + ring->dealt++) % ring->count];
}

static void placement_turn(struct placement_ring *ring, uint32_t by)
{
    ring->dealt = 0;
    if (ring->count > 0) ring->start = (ring->start + by) % ring->count;
}

/* Get ready for the next partition: where its racks begin is returned. */
static uint32_t placement_begin(struct placement *placement)
{
    uint32_t racks = placement->rack_count;
    uint32_t at = placement->placed++;
    bool round = at > 0 && at % racks == 0;
    bool cycle = at > 0 && at % (racks * placement->widest) == 0;
    for (uint32_t i = 0; i < racks; i++) {
        uint32_t by = (round ? 1 : 0) + (cycle ? i : 0);
        placement_turn(&placement->racks[i].unfenced, by);
        placement_turn(&placement->racks[i].fenced, by);
    }
    return at % racks;
}

static struct placement_rack *placement_rack(struct placement *placement, struct view name)
{
    for (uint32_t i = 0; i < placement->rack_count; i++)
        if (view_equal(placement->racks[i].name, name)) return &placement->racks[i];
    struct placement_rack *rack = &placement->racks[placement->rack_count++];
    rack->name = name;
    return rack;
}

static void placement_insert(struct placement_ring *ring, int32_t id)
{
    uint32_t at = ring->count++;
    for (; at > 0 && ring->ids[at - 1] > id; at--)
        ring->ids[at] = ring->ids[at - 1];
    ring->ids[at] = id;
}

/* Sort the brokers into racks and rings. False: no memory. */
static bool placement_fill(struct placement *placement,
                           struct step *step,
                           const struct placement_broker *brokers,
                           uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) { /* Sizes first. */
        struct placement_rack *rack = placement_rack(placement, brokers[i].rack);
        (brokers[i].fenced ? &rack->fenced : &rack->unfenced)->count++;
    }
    for (uint32_t i = 0; i < placement->rack_count; i++) {
        struct placement_rack *rack = &placement->racks[i];
        rack->unfenced.ids = step_get(step, (rack->unfenced.count + 1) * sizeof(int32_t));
        rack->fenced.ids = step_get(step, (rack->fenced.count + 1) * sizeof(int32_t));
        if (rack->unfenced.ids == NULL || rack->fenced.ids == NULL) return false;
        placement->widest = MAX(placement->widest, rack->unfenced.count + rack->fenced.count);
        rack->unfenced.count = rack->fenced.count = 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct placement_rack *rack = placement_rack(placement, brokers[i].rack);
        placement_insert(brokers[i].fenced ? &rack->fenced : &rack->unfenced, brokers[i].id);
    }
    return true;
}

static void placement_shuffle(struct placement *placement, struct step *step)
{
    for (uint32_t i = placement->rack_count; i > 1; i--) {
        uint32_t j = (uint32_t)(step_random(step) % i);
        struct placement_rack swap = placement->racks[i - 1];
        placement->racks[i - 1] = placement->racks[j];
        placement->racks[j] = swap;
    }
    for (uint32_t i = 0; i < placement->rack_count; i++) {
        struct placement_rack *rack = &placement->racks[i];
        if (rack->unfenced.count > 0)
            rack->unfenced.start = (uint32_t)(step_random(step) % rack->unfenced.count);
        if (rack->fenced.count > 0)
            rack->fenced.start = (uint32_t)(step_random(step) % rack->fenced.count);
    }
}

enum placement_fault placement_new(struct step *step,
                                   const struct placement_broker *brokers,
                                   uint32_t count,
                                   int32_t factor,
                                   struct placement **out)
{
    uint32_t unfenced = 0;
    for (uint32_t i = 0; i < count; i++)
        unfenced += !brokers[i].fenced;
    if (factor < 1) return PLACEMENT_E_FACTOR;
    if (unfenced == 0) return PLACEMENT_E_FENCED;
    if ((uint32_t)factor > count) return PLACEMENT_E_FEW;

    struct placement *placement = step_get(step, sizeof(*placement));
    if (placement == NULL) return PLACEMENT_E_MEMORY;
    placement->factor = (uint32_t)factor;
    placement->racks = step_get(step, count * sizeof(placement->racks[0]));
    if (placement->racks == NULL) return PLACEMENT_E_MEMORY;
    if (!placement_fill(placement, step, brokers, count)) return PLACEMENT_E_MEMORY;
    placement_shuffle(placement, step);
    *out = placement;
    return PLACEMENT_OK;
}

void placement_next(struct placement *placement, int32_t *replicas)
{
    uint32_t racks = placement->rack_count;
    uint32_t first = placement_begin(placement);

    /* The first replica: the first rack from here that has an unfenced broker. */
    uint32_t lead = first;
    uint32_t placed = 0;
    while (placed == 0) {
        int32_t id = placement_deal(&placement->racks[lead].unfenced);
        if (id >= 0)
            replicas[placed++] = id;
        else
            lead = (lead + 1) % racks;
    }
    /* Then one from each rack in turn; the leader's has had its first turn. */
    uint32_t at = first;
    bool lead_due = true;
    while (placed < placement->factor) {
        if (at == lead && lead_due) {
            lead_due = false;
        } else {
            int32_t id = placement_deal(&placement->racks[at].unfenced);
            if (id < 0) id = placement_deal(&placement->racks[at].fenced);
            if (id >= 0) replicas[placed++] = id;
        }
        at = (at + 1) % racks;
    }
}
