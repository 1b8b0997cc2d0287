/* ready.c - `dohle ready`: ask a node over its socket whether it serves, for scripts and health
 * checks. Plain HTTP/1.0 over one connection; nothing of the library is needed. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

#define READY_REPLY_BYTES 4096
#define READY_PAUSE_MS    50
#define READY_DATA_DIR    "dohle-data"

struct target {
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
    } address;
    socklen_t size;
};

/* "127.0.0.1:9644" or "[::1]:9644". */
static bool target_http(const char *text, struct target *out)
{
    const char *colon = strrchr(text, ':');
    char host[64];
    char *end = NULL;
    memset(out, 0, sizeof(*out));
    if (colon == NULL) return false;
    bool brackets = text[0] == '[' && colon > text && colon[-1] == ']';
    long port = strtol(colon + 1, &end, 10);
    if (colon[1] == '\0' || *end != '\0' || port < 1 || port > 65535) return false;
    (void)snprintf(host, sizeof(host), "%.*s", (int)(colon - text) - (brackets ? 2 : 0),
                   text + (brackets ? 1 : 0));
    if (strcmp(host, "localhost") == 0) (void)snprintf(host, sizeof(host), "127.0.0.1");
    out->address.in6.sin6_port = htons((uint16_t)port); /* At one place in both forms. */
    if (inet_pton(AF_INET, host, &out->address.in.sin_addr) == 1) {
        out->address.in.sin_family = AF_INET;
        out->size = sizeof(out->address.in);
        return true;
    }
    if (inet_pton(AF_INET6, host, &out->address.in6.sin6_addr) != 1) return false;
    out->address.in6.sin6_family = AF_INET6;
    out->size = sizeof(out->address.in6);
    return true;
}

_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
               "the port is at one place in both forms");

static bool target_socket(const char *data, struct target *out)
{
    memset(out, 0, sizeof(*out));
    out->address.un.sun_family = AF_UNIX;
    int size =
        snprintf(out->address.un.sun_path, sizeof(out->address.un.sun_path), "%s/dohle.sock", data);
    out->size = sizeof(out->address.un);
    return size < (int)sizeof(out->address.un.sun_path);
}

/* Everything the server sends. Bytes, or -errno. */
static ssize_t fetch(const struct target *target, char *out, size_t room)
{
    static const char question[] = "GET /readyz HTTP/1.0\r\nHost: dohle\r\n\r\n";
    const struct timeval limit = {5, 0};
    int fd = socket(target->address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ssize_t result = -1;
    size_t at = 0;
    if (connect(fd, &target->address.any, target->size) == 0 &&
        send(fd, question, sizeof(question) - 1, MSG_NOSIGNAL) == (ssize_t)sizeof(question) - 1)
        while (at < room - 1 && (result = recv(fd, out + at, room - 1 - at, 0)) > 0)
            at += (size_t)result;
    result = result < 0 ? -errno : (ssize_t)at;
    out[at] = '\0';
    close(fd);
    return result;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* One try. True: ready. `reply` holds what to tell. */
static bool try_once(const struct target *target, char *reply)
{
    ssize_t got = fetch(target, reply, READY_REPLY_BYTES);
    if (got < 0) {
        (void)snprintf(reply, READY_REPLY_BYTES, "not ready: nobody answers: %s\n",
                       strerror((int)-got));
        return false;
    }
    const char *body = strstr(reply, "\r\n\r\n");
    bool ready = strncmp(reply, "HTTP/1.", 7) == 0 && strstr(reply, " 200 ") != NULL;
    if (body != NULL) memmove(reply, body + 4, strlen(body + 4) + 1);
    return ready && body != NULL;
}

static int run(struct cli *cli)
{
    struct target target;
    char reply[READY_REPLY_BYTES];
    long long wait_s = 0;
    const char *http = cli_value(cli, "http"), *data = cli_value(cli, "data");
    enum cli_exit code = cli_integer(cli, "wait", (struct cli_range){0, 86400}, &wait_s);
    if (code != CLI_OK) return (int)code;
    if (http != NULL && !target_http(http, &target))
        return cli_fail(cli, CLI_USAGE, "--http takes ADDRESS:PORT, not \"%s\"", http);
    if (http == NULL && !target_socket(data != NULL ? data : READY_DATA_DIR, &target))
        return cli_fail(cli, CLI_USAGE, "the path of the data directory is too long");
    int64_t limit_ms = now_ms() + 1000 * wait_s;
    bool ready = try_once(&target, reply);
    while (!ready && now_ms() < limit_ms) {
        usleep(READY_PAUSE_MS * 1000);
        ready = try_once(&target, reply);
    }
    out_text(&cli->out, reply);
    return ready ? CLI_OK : CLI_FAILED;
}

static const struct cli_option options[] = {
    {"data", 'd', "DIR",          NULL, "ask over the socket in this data directory (without: dohle-data)"},
    {"http", 0,   "ADDRESS:PORT", NULL, "ask here instead: what dohle.http.listener says"                 },
    {"wait", 'w', "SECONDS",      NULL, "try again until it is ready, for so long"                        },
    {NULL,   0,   NULL,           NULL, NULL                                                              },
};

extern const struct cli_command command_ready;
const struct cli_command command_ready = {
    .name = "ready",
    .group = CLI_RUN,
    .summary = "is a node ready to serve? for scripts and health checks",
    .arguments = "[--data DIR | --http ADDRESS:PORT] [--wait SECONDS]",
    .about =
        "Prints what the node says: that it is ready, or what is missing. Exit code 0 if it is "
        "ready, else 1.",
    .options = options,
    .run = run,
};
