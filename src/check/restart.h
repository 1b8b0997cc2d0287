/* restart.h - one restart of the server for all rows that need one.
 *
 * Each of them comes to where the server is to be restarted and waits there. When all that are
 * left have come, one of them runs the command; when the command has ended, all go on. A row that
 * ends before it has come is not waited for.
 *
 * Thread: the functions are called by the rows' threads. */
#pragma once

#include <pthread.h>

#include "check/run.h"

struct check_restart {
    const char *command; /* Of a shell: restarts the server, and ends. */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint32_t rows;    /* That have not ended before the restart. */
    uint32_t waiting; /* Of them, that have come. */
    bool begun, done;
    int status; /* Of the command, as wait(2) has it. */
};

void restart_init(struct check_restart *restart, const char *command, uint32_t rows);
void restart_free(struct check_restart *restart);

/* The row has come to the restart; it goes on behind it. It fails if the command failed. Its
 * connections are to be opened anew, the server may not listen yet. */
void restart_wait(struct check_run *run);

/* The row has ended, wherever. */
void restart_leave(struct check_restart *restart, const struct check_run *run);
