/* console.h - the HTTP listener: health, readiness, metrics, and pages that explain.
 *
 *   /healthz   200 as long as the first shard turns
 *   /readyz    200 when the node serves; else 503 and what is missing
 *   /metrics   Prometheus text
 *   other      pages given in the options
 *
 * Listens on a TCP address (dohle.http.listener) and on a Unix socket in the data directory. One
 * thread waits on both; libmicrohttpd is loaded by the first connection and runs in a thread of its
 * own, so that a server that nobody asks pays one sleeping thread. Pages are made from what the
 * shard fills in on its own thread (a letter), waited for CONSOLE_ASK_MS at most.
 *
 * Memory: malloc's own; nothing of the node's. Thread: any may call; start and stop once. */
#pragma once

#include "net/shard.h"
#include "sys/say.h"
#include "text/out.h"

struct console;

#define CONSOLE_ASK_MS 2000

/* The status of a page that another shard may have. */
#define CONSOLE_ELSEWHERE 421

/* A page that a shard writes by itself: short, no blocking. */
struct console_page {
    const char *prefix; /* "/explain/": the path begins with it. */
    const char *type;   /* "application/json" */
    /* On the first shard's thread; after CONSOLE_ELSEWHERE on the next one's, until none is left.
     * `rest` is the path behind the prefix, as it came (not decoded). Returns the HTTP status. */
    int (*fill)(struct shard *shard, struct view rest, struct out *out);
};

struct console_options {
    const struct say *say;
    const char *address;              /* "127.0.0.1:9644", "[::1]:9644", or "": none. */
    bool address_is_default;          /* Then it is no error if it is taken: only said. */
    const char *socket_path;          /* NULL: none. */
    const struct console_page *pages; /* Borrowed for the console's life. */
    uint32_t page_count;
};

/* Listen and wait. 0; or -errno, said, when the address given cannot be listened on. */
MUST_USE int console_start(const struct console_options *options, struct console **out);

/* From now on there is a shard to ask; before, /readyz says that the node is starting. */
void console_attach(struct console *console, struct shard *shard);

/* Where it listens, "" if it does not. */
const char *console_address(const struct console *console);

/* Stop listening, wait for the threads, remove the socket. NULL is fine. Returns NULL. */
struct console *console_stop(struct console *console);
