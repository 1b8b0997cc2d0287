/* ask.c - see ask.h. */
#include "cli/ask.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#define ASK_DATA_DIR "dohle-data"
#define ASK_LIMIT_S  5
#define ASK_READ     16384
#define ASK_BODY_MAX (64u * 1024u * 1024u)

/* "127.0.0.1:9644" or "[::1]:9644". */
static bool target_http(const char *text, struct ask_target *out)
{
    const char *colon = strrchr(text, ':');
    char host[64];
    char *end = NULL;
    if (colon == NULL) return false;
    bool brackets = text[0] == '[' && colon > text && colon[-1] == ']';
    long port = strtol(colon + 1, &end, 10);
    if (colon[1] == '\0' || *end != '\0' || port < 1 || port > 65535) return false;
    (void)snprintf(host, sizeof(host), "%.*s", (int)(colon - text) - (brackets ? 2 : 0),
                   text + (brackets ? 1 : 0));
    if (strcmp(host, "localhost") == 0) (void)snprintf(host, sizeof(host), "127.0.0.1");
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    bool is_four = inet_pton(AF_INET, host, &four.sin_addr) == 1;
    if (!is_four && inet_pton(AF_INET6, host, &six.sin6_addr) != 1) return false;
    out->size = is_four ? sizeof(four) : sizeof(six);
    memcpy(&out->address, is_four ? (const void *)&four : (const void *)&six, out->size);
    return true;
}

static bool target_socket(const char *data, struct ask_target *out)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    int size = snprintf(local.sun_path, sizeof(local.sun_path), "%s/dohle.sock", data);
    memcpy(&out->address, &local, sizeof(local));
    out->size = sizeof(local);
    return size < (int)sizeof(local.sun_path);
}

enum cli_exit ask_where(struct cli *cli, struct ask_target *out)
{
    const char *http = cli_value(cli, "http"), *data = cli_value(cli, "data");
    *out = (struct ask_target){.size = 0};
    if (http != NULL && !target_http(http, out))
        return (enum cli_exit)cli_fail(cli, CLI_USAGE, "--http takes ADDRESS:PORT, not \"%s\"",
                                       http);
    if (http == NULL && !target_socket(data != NULL ? data : ASK_DATA_DIR, out))
        return (enum cli_exit)cli_fail(cli, CLI_USAGE,
                                       "the path of the data directory is too long");
    (void)snprintf(out->text, sizeof(out->text), "%s",
                   http != NULL ? http : ((const struct sockaddr_un *)&out->address)->sun_path);
    return CLI_OK;
}

/* Everything the server sends. 0 or -errno. */
static int talk(const struct ask_target *target, const char *path, struct out *reply)
{
    const struct timeval limit = {ASK_LIMIT_S, 0};
    char piece[ASK_READ];
    int size = snprintf(piece, sizeof(piece), "GET %s HTTP/1.0\r\nHost: dohle\r\n\r\n", path);
    assert(size < (int)sizeof(piece));
    int fd = socket(target->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ssize_t got = -1;
    if (connect(fd, (const struct sockaddr *)&target->address, target->size) == 0 &&
        send(fd, piece, (size_t)size, MSG_NOSIGNAL) == size)
        while (reply->size_bytes < ASK_BODY_MAX && (got = recv(fd, piece, sizeof(piece), 0)) > 0)
            out_bytes(reply, piece, (size_t)got);
    int result = got < 0 ? -errno : 0;
    close(fd);
    return result;
}

int ask_get(const struct ask_target *target, const char *path, struct out *body)
{
    struct out reply;
    out_init(&reply, body->mem);
    int result = talk(target, path, &reply);
    out_char(&reply, '\0');
    if (result == 0 && reply.failed) result = -ENOMEM;
    const char *text = result == 0 ? strstr(reply.text, "\r\n\r\n") : NULL;
    if (result == 0 && (text == NULL || strncmp(reply.text, "HTTP/1.", 7) != 0)) result = -EPROTO;
    if (result == 0) {
        result = (int)strtol(reply.text + 8, NULL, 10);
        out_bytes(body, text + 4, reply.size_bytes - 1 - (size_t)(text + 4 - reply.text));
    }
    out_free(&reply);
    return result;
}
