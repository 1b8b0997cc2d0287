/* broker_liveness.c - the suite `dohle check broker-liveness`: scripted brokers under a controller.
 */
#include "check/registrant.h"
#include "check/rows.h"

static const struct check_table *const tables[] = {
    &rows_broker_transitions,  &rows_broker_errors, &rows_broker_sessions,
    &rows_broker_registration, &rows_broker_dirs,
};

const struct check_suite check_broker_liveness = {
    .name = "broker-liveness",
    .api_key = 63,
    .version_max = 2,
    .prepare = registrant_prepare,
    .end = registrant_clean,
    .tables = tables,
    .table_count = ARRAY_SIZE(tables),
};
