/* ask.h - a question to a running node over its HTTP listener: the socket in its data directory, or
 * the address that dohle.http.listener says. Plain HTTP/1.0 over one connection. */
#pragma once

#include "cli/cli.h"

#include <sys/socket.h>

struct ask_target {
    struct sockaddr_storage address;
    socklen_t size;
    char text[128]; /* To tell people. */
};

/* The options by which a command lets its user say where the node is. */
#define ASK_OPTIONS                                                                                \
    CLI_OPTION("data", 'd', "DIR",                                                                 \
               "ask over the socket in this data directory (without: dohle-data)"),                \
        CLI_OPTION("http", 0, "ADDRESS:PORT", "ask here instead: what dohle.http.listener says")

/* Where these options point. CLI_USAGE: they make no sense, said. */
MUST_USE enum cli_exit ask_where(struct cli *cli, struct ask_target *out);

/* GET the path (no longer than ASK_PATH_BYTES); the body is appended. The HTTP status; -errno:
 * nobody answers; -EPROTO: what answers is no HTTP. */
#define ASK_PATH_BYTES 1500
MUST_USE int ask_get(const struct ask_target *target, const char *path, struct out *body);
