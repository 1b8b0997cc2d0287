/* rows.h - the tables of rows, one file each, with the chapter of the rules that they stand for. */
#pragma once

#include "check/check.h"

extern const struct check_table rows_coordinator; /* Heartbeat before the group. */
extern const struct check_table rows_beat;        /* The full matrix of Heartbeat. */
extern const struct check_table rows_timer;       /* What keeps a member, what ends it, when. */
extern const struct check_table rows_join;
extern const struct check_table rows_static;
extern const struct check_table rows_modern; /* Consumer groups. */
extern const struct check_table rows_limits;
extern const struct check_table rows_restart;

/* Brokers under a controller. */
extern const struct check_table rows_broker_transitions;
extern const struct check_table rows_broker_errors;
extern const struct check_table rows_broker_sessions;
extern const struct check_table rows_broker_registration;
extern const struct check_table rows_broker_dirs;
