/* cluster.h - a world with one node that runs the product's own objects, and its falls and starts.
 *
 * The node is opened with node_open() over a simulated `struct io` and given its turns by the run
 * (run.h). While it opens or closes it has the world to itself: its own turns wait there, clients
 * get none. A crash in the middle of that leaves it where it stands: its memory goes with it. */
#pragma once

#include <setjmp.h>

#include "broker/node.h"
#include "io/sim.h"
#include "sim/history.h"

#define CLUSTER_SAID_MAX     16u
#define CLUSTER_SHARDS_MAX   3u
#define CLUSTER_SETTINGS_MAX 32u

#define CLUSTER_CONTROLLER_PORT 9093
#define CLUSTER_ID              "Zm9sbG93ZXJzLWZvbGxvdw"

/* An opening or a closing that takes longer is a violation (I23): longer than all that a node may
 * wait for, and than it takes on the slowest disk. */
#define CLUSTER_WAITS_MS    300000
#define CLUSTER_WAITS_TURNS 1000000u

struct cluster_shape {
    uint32_t shards; /* dohle.shards */
    bool lax;        /* It promises less: dohle.ack.durability=replicated; see population.c. */
    bool controller; /* It has a controller listener, at CLUSTER_CONTROLLER_PORT, */
    bool alone;      /* and no broker part. */
    int16_t metadata_version; /* To format with; 0: the newest. */
};

struct cluster {
    struct sim_world *world;
    struct sim_node *machine;
    struct history *history;
    struct cluster_shape shape;
    struct {
        const char *name;
        char value[16];
    } settings[CLUSTER_SETTINGS_MAX]; /* As a file would have them. */
    uint32_t setting_count;
    struct io *io; /* The first shard's; NULL: no process. */
    struct io *ios[CLUSTER_SHARDS_MAX];
    struct node *node; /* NULL: not open. */
    struct say say;
    struct say_levels levels;
    char said[CLUSTER_SAID_MAX][256]; /* Its last lines, a ring. */
    uint32_t said_count;
    bool print; /* Say to stdout too. */
    uint32_t starts;
    bool refused; /* The last start: the node said that it cannot open. */
    bool waiting; /* It is opening or closing: */
    int64_t waits_us;
    uint32_t waits_turns; /* since when, and for how many turns. */
    jmp_buf dead;
};

/* The options that the world needs for a cluster; the caller adds the network's and the disks'. */
void cluster_options(struct cluster *cluster, struct sim_options *options);

/* A broker setting, for all starts. `name` is borrowed. */
void cluster_set(struct cluster *cluster, const char *name, uint32_t value);

/* The machine, without a process. The world was made with cluster_options(). */
void cluster_init(struct cluster *cluster, struct sim_world *world, struct history *history);

/* Start the process. False: it crashed on the way (an arranged crash point), or it would not open
 * (`refused`): to be settled by cluster_crash(). */
bool cluster_start(struct cluster *cluster);

const char *cluster_last_words(const struct cluster *cluster);

/* One turn of the shard that has this handle. */
void cluster_turn(struct cluster *cluster, const struct io *io);

/* For the world's trace: a node that opens or closes has had a turn. When there is no end of it,
 * that is noted as a violation and the call returns as if the machine had crashed. */
void cluster_waits(struct cluster *cluster);

/* End the process: nothing of it runs any more, the disk is settled. */
void cluster_crash(struct cluster *cluster, enum sim_crash kind, uint64_t choice);

/* A clean stop; checks that it gives all memory back (I21). False: crashed on the way. */
bool cluster_stop(struct cluster *cluster);
