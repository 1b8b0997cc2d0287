/* clean_job.h - what clean.c hands to the work lane. */
#pragma once

#include "log/clean.h"

/* Job: one slice of the phase. 0: see clean->phase; -EBADMSG: the log's bytes do not hold;
 * other -errno. */
int64_t clean_run(struct io *io, void *argument);

/* Job: give up the group that is being copied; its output goes. */
int64_t clean_undo_run(struct io *io, void *argument);

/* Free the output's memory and file. Back in the shard, between jobs. */
void clean_output_free(struct clean *clean, struct io *io);
