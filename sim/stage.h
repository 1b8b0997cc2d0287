/* stage.h - the world of a unit test with one node, a step at a time. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/cluster.h"

/* One step, which ends at `until_us` at the latest. The node takes its turns here; the tag of
 * whoever else has one is returned, for the caller to act; NULL: nobody. A crash that no test wants
 * fails. */
static inline void *stage_step(struct sim_world *world, struct cluster *cluster, int64_t until_us)
{
    struct io *who;
    switch (sim_step(world, until_us, &who)) {
    case SIM_TURN:
        if (sim_tag_of(who) != cluster) return sim_tag_of(who);
        cluster_turn(cluster, who);
        break;
    case SIM_CRASHED: fail(); break;
    case SIM_NOTHING: sim_pass(world, until_us); break;
    case SIM_UNTIL: break;
    }
    return NULL;
}
