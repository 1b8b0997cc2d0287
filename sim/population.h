/* population.h - the other world of the simulator: a controller, and a population of scripted
 * brokers that live and die under it.
 *
 * Its node is a controller alone or beside a broker part of its own. What the run's faults do to it
 * is told in run.h; what brokers do by themselves in client_broker.h. */
#pragma once

#include "sim/client_broker.h"
#include "sim/client_operator.h"
#include "sim/cluster.h"

#define POPULATION_BROKERS_MAX 6u

struct population {
    struct cluster *cluster;
    struct quorum_check check;
    struct client_operator *operator;
    struct client_broker *brokers[POPULATION_BROKERS_MAX];
    uint32_t broker_count;
    uint32_t session_ms;
    int64_t jumped_us; /* When the wall clock of its machine jumped last. */
    int64_t compared;  /* Up to where the controller's image was last compared. */
    uint64_t comparisons;
};

/* What it counts. */
struct population_told {
    uint64_t records, batches;       /* Committed, of metadata. */
    uint64_t registrations, beats;   /* Acknowledged. */
    uint64_t stops;                  /* Brokers that were told to stop. */
    uint64_t elections;              /* New leader epochs. */
    uint64_t fencings, silences;     /* Of them for silence, and when that is known. */
    uint64_t alterations, snapshots; /* ISRs changed by leaders; snapshots loaded by followers. */
    uint64_t comparisons;            /* Of images. */
};

/* The shape of its node, before the world is made. */
void population_shape(struct population *population,
                      struct cluster *cluster,
                      struct history *history,
                      struct chance *shape);

/* The clients: `add` is called with each; `seat` is that of the first. */
void population_fill(struct population *population,
                     struct client_seat seat,
                     void (*add)(void *context, struct client *client),
                     void *context);

/* Between two turns: compare what has read equally far. */
void population_compare(struct population *population);

void population_audits(struct population *population);

/* The audit's end: every broker's image, and what the controller has appended. */
void population_audited(struct population *population);

void population_tell(const struct population *population, struct population_told *out);
void population_free(struct population *population); /* Its clients are the run's. */
