/* stage.h - the world of a unit test with one node, a step at a time. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/client.h"
#include "sim/client_caller.h"
#include "sim/cluster.h"
#include "sim/history.h"

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

/* A node, and a client that asks what the test says. */
struct stage {
    struct sim_world *world;
    struct cluster cluster;
    struct history history;
    struct client_caller *caller;
};

/* One step, which ends at `until_us` at the latest, of the node and its clients. A violation fails.
 */
__attribute__((unused)) static void stage_act(struct stage *stage, int64_t until_us)
{
    void *other = stage_step(stage->world, &stage->cluster, until_us);
    if (other != NULL) client_turn(other);
    if (history_violated(&stage->history)) fail_msg("%s", stage->history.violation);
}

__attribute__((unused)) static void stage_pass(struct stage *stage, int64_t ms)
{
    int64_t until_us = sim_now_us(stage->world) + ms * 1000;
    while (sim_now_us(stage->world) < until_us)
        stage_act(stage, until_us);
}

/* Whether what the caller asks is answered within `us`; the answer stays until it asks again. */
__attribute__((unused)) static bool stage_answered(struct stage *stage, int64_t us)
{
    int64_t until_us = sim_now_us(stage->world) + us;
    while (stage->caller->response == NULL && sim_now_us(stage->world) < until_us)
        stage_act(stage, until_us);
    return stage->caller->response != NULL;
}
