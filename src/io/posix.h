/* posix.h - the real world behind the seam: Linux files, sockets, clocks, threads. */
#pragma once

#include "io/io.h"

/* A handle for one shard. Threads of its lanes start at first use. NULL and errno: no memory or no
 * descriptors. Free with io_free. SIGPIPE and SIGXFSZ are ignored from then on, if their action was
 * the default: -EPIPE and -EFBIG tell the same. */
struct io *posix_new(struct mem *mem);

/* From now on nothing is made durable, though it is answered as if: for a process whose files end
 * with it. Before the first submission. */
void posix_forgo_sync(struct io *io);

/* Descriptor of an open file, for tests and for code that hands it to a library. Borrowed. */
int posix_fd(const struct io_file *file);
