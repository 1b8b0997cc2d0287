/* console.c - the listening descriptors and the thread that waits for the first connection. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "console/inside.h"

#define CONSOLE_BACKLOG     64
#define CONSOLE_STACK_BYTES (256u * 1024u)

/* ---- listening ------------------------------------------------------------------------------- */

/* "HOST:PORT" with a numeric host, "[::1]:PORT". 0, -EINVAL. */
static int parse_address(const char *text, struct sockaddr_storage *out, socklen_t *size)
{
    struct sockaddr_in *four = (struct sockaddr_in *)out;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
    const char *colon = strrchr(text, ':');
    char host[64], *end;
    memset(out, 0, sizeof(*out));
    if (colon == NULL || colon[1] == '\0') return -EINVAL;
    long port = strtol(colon + 1, &end, 10);
    bool brackets = text[0] == '[' && colon > text && colon[-1] == ']';
    int length = (int)(colon - text) - (brackets ? 2 : 0);
    if (*end != '\0' || port < 0 || port > 65535 || length >= (int)sizeof(host)) return -EINVAL;
    (void)snprintf(host, sizeof(host), "%.*s", length, text + (brackets ? 1 : 0));
    if (strcmp(host, "localhost") == 0) memcpy(host, "127.0.0.1", sizeof("127.0.0.1"));
    if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)port);
        *size = sizeof(*four);
        return 0;
    }
    if (inet_pton(AF_INET6, host, &six->sin6_addr) != 1) return -EINVAL;
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((uint16_t)port);
    *size = sizeof(*six);
    return 0;
}

static void name_address(struct console *console, int fd)
{
    struct sockaddr_storage bound;
    socklen_t size = sizeof(bound);
    char host[INET6_ADDRSTRLEN] = "?";
    memset(&bound, 0, sizeof(bound));
    if (getsockname(fd, (struct sockaddr *)&bound, &size) != 0) return;
    if (bound.ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&bound;
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof(host));
        (void)snprintf(console->address, sizeof(console->address), "[%s]:%u", host,
                       ntohs(six->sin6_port));
    } else {
        const struct sockaddr_in *four = (const struct sockaddr_in *)&bound;
        inet_ntop(AF_INET, &four->sin_addr, host, sizeof(host));
        (void)snprintf(console->address, sizeof(console->address), "%s:%u", host,
                       ntohs(four->sin_port));
    }
}

/* A listening descriptor, or -errno. */
static int listen_on(const struct sockaddr *address, socklen_t size)
{
    int one = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    if (address->sa_family != AF_UNIX) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, address, size) == 0 && listen(fd, CONSOLE_BACKLOG) == 0) return fd;
    int reason = -errno;
    close(fd);
    return reason;
}

static int listen_tcp(struct console *console)
{
    const struct console_options *options = &console->options;
    struct sockaddr_storage address;
    socklen_t size;
    if (options->address == NULL || options->address[0] == '\0') return 0;
    int fd = parse_address(options->address, &address, &size);
    if (fd == 0) fd = listen_on((const struct sockaddr *)&address, size);
    if (fd >= 0) {
        console->fds[0] = fd;
        name_address(console, fd);
        return 0;
    }
    bool soft = options->address_is_default && fd == -EADDRINUSE;
    say(options->say, soft ? SAY_WARN : SAY_ERROR, SAY_IN_CONSOLE,
        "could not listen on dohle.http.listener = %s: %s%s", options->address, strerror(-fd),
        fd == -EADDRINUSE ? "; set it to another port, or to nothing for none" : "");
    return soft ? 0 : fd;
}

/* The directory's lock is ours, so a socket that lies there is a dead server's. */
static void listen_unix(struct console *console)
{
    const struct console_options *options = &console->options;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (options->socket_path == NULL) return;
    if (strlen(options->socket_path) >= sizeof(address.sun_path)) {
        say(options->say, SAY_WARN, SAY_IN_CONSOLE,
            "no socket in the data directory: its path is too long");
        return;
    }
    memcpy(address.sun_path, options->socket_path, strlen(options->socket_path) + 1);
    memcpy(console->socket_path, address.sun_path, sizeof(address.sun_path));
    struct stat s;
    if (lstat(console->socket_path, &s) == 0 && S_ISSOCK(s.st_mode)) unlink(console->socket_path);
    mode_t mask = umask(0177);
    int fd = listen_on((const struct sockaddr *)&address, sizeof(address));
    umask(mask);
    if (fd >= 0) {
        console->fds[1] = fd;
        return;
    }
    console->socket_path[0] = '\0';
    say(options->say, SAY_WARN, SAY_IN_CONSOLE, "no socket at %s: %s", options->socket_path,
        strerror(-fd));
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Without the library: whoever connects is told. */
static void refuse(int fd)
{
    static const char reply[] =
        "HTTP/1.0 503 Service Unavailable\r\nContent-Type: text/plain\r\n\r\n"
        "libmicrohttpd cannot be loaded\n";
    int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    if (connection < 0) return;
    ssize_t sent = send(connection, reply, sizeof(reply) - 1, MSG_NOSIGNAL);
    (void)sent;
    shutdown(connection, SHUT_WR);
    close(connection);
}

static void *wait_main(void *argument)
{
    struct console *console = argument;
    struct pollfd fds[3] = {
        {console->fds[0],  POLLIN, 0},
        {console->fds[1],  POLLIN, 0},
        {console->stop_fd, POLLIN, 0}
    };
    bool tried = false;
    for (;;) {
        if (poll(fds, ARRAY_SIZE(fds), -1) < 0) continue;
        if (fds[2].revents != 0) return NULL;
        if (!tried) {
            tried = true;
            console->http = http_start(console);
            if (console->http == NULL)
                say(console->options.say, SAY_WARN, SAY_IN_CONSOLE,
                    "nothing is served by HTTP: libmicrohttpd cannot be loaded");
        }
        for (int i = 0; i < 2; i++) {
            if (console->http != NULL)
                fds[i].fd = -1; /* The library accepts now. */
            else if (fds[i].revents != 0)
                refuse(fds[i].fd);
        }
    }
}

static int start_thread(struct console *console)
{
    pthread_attr_t attributes;
    console->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (console->stop_fd < 0) return -errno;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, CONSOLE_STACK_BYTES);
    int result = pthread_create(&console->thread, &attributes, wait_main, console);
    pthread_attr_destroy(&attributes);
    if (result != 0) close(console->stop_fd);
    return -result;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void close_all(struct console *console)
{
    for (int i = 0; i < 2; i++)
        if (console->fds[i] >= 0) close(console->fds[i]);
    if (console->socket_path[0] != '\0') unlink(console->socket_path);
    pthread_mutex_destroy(&console->lock);
    free(console);
}

int console_start(const struct console_options *options, struct console **out)
{
    struct console *console = calloc(1, sizeof(*console));
    if (console == NULL) return -ENOMEM;
    console->options = *options;
    console->fds[0] = console->fds[1] = -1;
    pthread_mutex_init(&console->lock, NULL);
    int result = listen_tcp(console);
    if (result == 0) listen_unix(console);
    console->options.socket_path = console->socket_path;
    if (result == 0) result = start_thread(console);
    if (result != 0) {
        close_all(console);
        return result;
    }
    *out = console;
    return 0;
}

static void set_shard(struct console *console, struct shard *shard)
{
    pthread_mutex_lock(&console->lock);
    console->shard = shard;
    pthread_mutex_unlock(&console->lock);
}

void console_attach(struct console *console, struct shard *shard)
{
    assert(shard != NULL);
    set_shard(console, shard);
}

const char *console_address(const struct console *console)
{
    return console->address;
}

struct console *console_stop(struct console *console)
{
    if (console == NULL) return NULL;
    uint64_t one = 1;
    set_shard(console, NULL);
    ssize_t written = write(console->stop_fd, &one, sizeof(one));
    (void)written; /* The counter is never full. */
    pthread_join(console->thread, NULL);
    close(console->stop_fd);
    http_stop(console->http);
    close_all(console);
    return NULL;
}
