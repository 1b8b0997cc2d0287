/* liveness.c - the suite `dohle check liveness`: members of groups and the coordinators that live
 * by their beats. */
#include "check/modern.h"
#include "check/rows.h"
#include "check/run.h"

#include "gen/heartbeat_request.h"

static const struct check_table *const tables[] = {
    &rows_coordinator, &rows_beat,   &rows_timer,  &rows_join,
    &rows_static,      &rows_modern, &rows_limits, &rows_restart,
};

/* The first question makes a new server create its topic of offsets: once, before the rows ask. */
static void prepare(struct check_run *world)
{
    if (world->served[wire_heartbeat_request.api_key].max < 0)
        run_fail(world, "the server does not advertise Heartbeat");
    run_find_group(world);
    modern_prepare(world);
}

const struct check_suite check_liveness = {
    .name = "liveness",
    .api_key = 12,
    .version_max = 4,
    .prepare = prepare,
    .begin = run_find_group,
    .finish = modern_finish,
    .tables = tables,
    .table_count = ARRAY_SIZE(tables),
};
