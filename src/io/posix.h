/* posix.h - the real world behind the seam: Linux files, sockets, clocks, threads. */
#pragma once

#include "io/io.h"

/* A handle for one shard. Threads of its lanes start at first use. NULL and errno: no memory or no
 * descriptors. Free with io_free. SIGPIPE and SIGXFSZ are ignored from then on, if their action was
 * the default: -EPIPE and -EFBIG tell the same. */
struct io *posix_new(struct mem *mem);

/* Descriptor of an open file, for tests and for code that hands it to a library. Borrowed. */
int posix_fd(const struct io_file *file);
