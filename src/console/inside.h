/* inside.h - what the files of console/ share. */
#pragma once

#include <pthread.h>

#include "console/console.h"

struct console_http; /* http.c: the daemons. */

struct console {
    struct console_options options;
    char address[80]; /* As bound. */
    char socket_path[108];
    int fds[2]; /* TCP, Unix; -1: none. */
    int stop_fd;
    pthread_t thread;
    struct console_http *http; /* NULL until the first connection. */

    pthread_mutex_t lock; /* For what follows. */
    struct shard *shard;  /* NULL: none to ask. */
};

struct console_reply {
    int status;
    const char *type;
    struct out body;
};

/* page.c: the page of a path. The body's memory is the caller's `mem`. */
void page_make(struct console *console,
               const char *path,
               struct mem *mem,
               struct console_reply *reply);

/* ask.c: have `fill` run on the thread of this shard of the node (0: the first) and wait for it.
 *   ASK_DONE     it has run.
 *   ASK_NONE     there is no such shard (yet, or any more).
 *   ASK_SILENT   it did not come round within CONSOLE_ASK_MS; `fill` may still run later:
 * `argument` belongs to the question then, and `drop` frees it. */
enum ask_result { ASK_DONE, ASK_NONE, ASK_SILENT };
enum ask_result ask_shard(struct console *console,
                          uint32_t index,
                          void (*fill)(struct shard *, void *argument),
                          void *argument,
                          void (*drop)(void *argument));

/* http.c: load libmicrohttpd and serve on the console's descriptors. NULL: it cannot be loaded. */
struct console_http *http_start(struct console *console);
void http_stop(struct console_http *http);
