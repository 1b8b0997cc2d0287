/* log_mark.h - the clean-shutdown mark of a directory; format at the head of log_dir.c. */
#pragma once

#include "io/io.h"

#define LOG_MARK_NAME ".kafka_cleanshutdown"

/* Read the mark and take it away, durably: from now on a crash is a crash. `*broker_epoch` is -1 if
 * there is none in it. 0, or -errno: then nothing is known and nothing may be touched. Blocks. */
MUST_USE int log_mark_take(struct io *io, const char *path, bool *there, int64_t *broker_epoch);

/* Write it, as the very last step. 0 or -errno. Blocks. */
MUST_USE int log_mark_write(struct io *io, const char *path, int64_t broker_epoch);
