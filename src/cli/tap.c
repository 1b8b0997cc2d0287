/* tap.c - `dohle wire tap`: see tap.h. */
#include "cli/tap.h"
#include "cli/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TAP_CONNECT_MS 5000
#define TAP_PORTS_TRY  100 /* Ports behind the first, for further brokers. */

static volatile sig_atomic_t tap_stopped;

static void on_signal(int number)
{
    (void)number;
    tap_stopped = 1;
}

/* ---- showing --------------------------------------------------------------------------------- */

void tap_show(void *context, const struct stream_segment *segment)
{
    struct tap *tap = context;
    if (tap->code != CLI_OK) return;
    if (tap->capture >= 0) {
        int result = pcapng_append(tap->capture, segment);
        if (result != 0)
            tap->code = (enum cli_exit)cli_fail(
                tap->cli, CLI_FAILED, "could not write the capture: %s", strerror(-result));
        return;
    }
    if (!streams_take(&tap->streams, segment) && tap->streams.failed)
        tap->code = (enum cli_exit)cli_fail(tap->cli, CLI_FAILED, "out of memory");
    if (tap->code == CLI_OK) tap->code = tap->shown.code;
}

/* ---- listeners ------------------------------------------------------------------------------- */

/* A socket that listens there, or -errno. */
static int listen_on(const char *host, uint16_t port)
{
    struct dial_host at = {.port = port};
    struct dial_addresses addresses;
    int on = 1, off = 0;

    (void)snprintf(at.name, sizeof(at.name), "%s", host[0] == '\0' ? "::" : host);
    if (dial_resolve(&at, &addresses) != 0) return -EADDRNOTAVAIL;
    const struct dial_address *first = &addresses.items[0];
    int fd = socket(first->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (first->at.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, (const struct sockaddr *)&first->at, first->size) == 0 && listen(fd, 128) == 0)
        return fd;
    int error = errno;
    close(fd);
    return -error;
}

static void say_listener(const struct tap *tap, const struct tap_listener *listener)
{
    char upstream[DIAL_TEXT_BYTES], mine[DIAL_TEXT_BYTES];
    struct dial_host at = {.port = listener->port};
    (void)snprintf(at.name, sizeof(at.name), "%s", tap->host[0] == '\0' ? "*" : tap->host);
    dial_host_text(&listener->upstream, upstream);
    dial_host_text(&at, mine);
    fprintf(tap->cli->errors, "tap: %s is %s\n", mine, upstream);
}

/* Add a listener for the broker, on `port` or on the next free one behind it. 0 or -errno. */
static int add_listener(struct tap *tap, const struct dial_host *upstream, uint16_t port, int tries)
{
    struct tap_listener *listener = &tap->listeners[tap->listener_count];
    if (tap->listener_count == TAP_LISTENERS_MAX) return -ENOSPC;
    int fd = -EADDRINUSE;
    for (int i = 0; i < tries && fd < 0 && port + i <= UINT16_MAX; i++) {
        listener->port = (uint16_t)(port + i);
        fd = listen_on(tap->host, listener->port);
    }
    if (fd < 0) return fd;
    listener->fd = fd;
    listener->upstream = *upstream;
    listener->addresses.count = 0;
    (void)!dial_resolve(upstream, &listener->addresses); /* Tried again by each connection. */
    tap->listener_count++;
    say_listener(tap, listener);
    return 0;
}

/* Is the broker at this address one that we have, by name or by where the name leads? */
static bool is_same(const struct tap_listener *listener,
                    const struct dial_host *host,
                    const struct dial_addresses *addresses)
{
    if (listener->upstream.port != host->port) return false;
    if (strcmp(listener->upstream.name, host->name) == 0) return true;
    for (uint32_t i = 0; i < listener->addresses.count; i++)
        for (uint32_t j = 0; j < addresses->count; j++)
            if (dial_same_host(&listener->addresses.items[i], &addresses->items[j])) return true;
    return false;
}

struct tap_listener *tap_listener_for(struct tap *tap, struct view name, int32_t port)
{
    struct dial_host host = {.port = (uint16_t)port};
    struct dial_addresses addresses = {.count = 0};

    if (name.size >= sizeof(host.name) || port < 1 || port > UINT16_MAX) return NULL;
    memcpy(host.name, name.data, name.size);
    for (uint32_t i = 0; i < tap->listener_count; i++)
        if (is_same(&tap->listeners[i], &host, &addresses)) return &tap->listeners[i];
    (void)!dial_resolve(&host, &addresses);
    for (uint32_t i = 0; i < tap->listener_count; i++)
        if (is_same(&tap->listeners[i], &host, &addresses)) return &tap->listeners[i];
    uint16_t next = (uint16_t)MIN(tap->listeners[0].port + 1, UINT16_MAX);
    int result = add_listener(tap, &host, next, TAP_PORTS_TRY);
    if (result == 0) return &tap->listeners[tap->listener_count - 1];
    fprintf(tap->cli->errors, "tap: no port for the broker at %s:%u: %s\n", host.name, host.port,
            strerror(-result));
    return NULL;
}

/* ---- connections ----------------------------------------------------------------------------- */

static int connect_upstream(struct tap_listener *listener)
{
    int fd = -EHOSTUNREACH;
    if (listener->addresses.count == 0 &&
        dial_resolve(&listener->upstream, &listener->addresses) != 0)
        return fd;
    for (uint32_t i = 0; i < listener->addresses.count && fd < 0; i++)
        fd = dial_connect(&listener->addresses.items[i], TAP_CONNECT_MS);
    return fd;
}

static void accept_one(struct tap *tap, struct tap_listener *listener)
{
    int on = 1;
    int client = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0) return;
    int broker = tap->connection_count < TAP_CONNECTIONS_MAX ? connect_upstream(listener) : -EMFILE;
    if (broker < 0) {
        char upstream[DIAL_TEXT_BYTES];
        dial_host_text(&listener->upstream, upstream);
        fprintf(tap->cli->errors, "tap: no connection to %s: %s\n", upstream, strerror(-broker));
        close(client);
        return;
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(broker, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    struct tap_connection *connection = tap_connection_new(tap, listener, client, broker);
    if (connection == NULL) return;
    list_append(&tap->connections, &connection->link);
    tap->connection_count++;
    tap->connections_seen++;
}

static nfds_t gather(struct tap *tap, struct pollfd *fds)
{
    nfds_t count = 0;
    for (uint32_t i = 0; i < tap->listener_count; i++)
        fds[count++] = (struct pollfd){tap->listeners[i].fd, POLLIN, 0};
    list_foreach (node, &tap->connections) {
        const struct tap_connection *c = container_of(node, struct tap_connection, link);
        fds[count++] = (struct pollfd){c->client, tap_wants_client(c), 0};
        fds[count++] = (struct pollfd){c->broker, tap_wants_broker(c), 0};
    }
    return count;
}

/* Move those with something to do; those that are dead go. */
static void move_all(struct tap *tap, const struct pollfd *fds)
{
    struct list *node = tap->connections.next;
    for (; node != &tap->connections; fds += 2) {
        struct tap_connection *c = container_of(node, struct tap_connection, link);
        node = node->next;
        if ((fds[0].revents | fds[1].revents) == 0) continue;
        tap_connection_move(c);
        if (!c->dead) continue;
        list_remove(&c->link);
        tap->connection_count--;
        tap_connection_free(c);
    }
}

static void loop(struct tap *tap)
{
    static struct pollfd fds[TAP_LISTENERS_MAX + 2 * TAP_CONNECTIONS_MAX];
    while (!tap_stopped && tap->code == CLI_OK) {
        uint32_t listeners = tap->listener_count;
        nfds_t count = gather(tap, fds);
        if (poll(fds, count, -1) < 0) continue;
        move_all(tap, fds + listeners);
        for (uint32_t i = 0; i < listeners; i++)
            if (fds[i].revents != 0) accept_one(tap, &tap->listeners[i]);
        if (tap->capture < 0 && tap->code == CLI_OK) tap->code = cli_flush(tap->cli);
    }
    while (!list_empty(&tap->connections))
        tap_connection_free(container_of(list_pop(&tap->connections), struct tap_connection, link));
}

/* ---- the command ----------------------------------------------------------------------------- */

/* "9192", ":9192" (all addresses) or "HOST:9192". */
static bool parse_listen(struct tap *tap, const char *text, uint16_t *port)
{
    struct dial_host host;
    char whole[DIAL_TEXT_BYTES];
    bool digits = strspn(text, "0123456789") == strlen(text);
    (void)snprintf(whole, sizeof(whole), "%s%s",
                   digits           ? "127.0.0.1:"
                   : text[0] == ':' ? "*"
                                    : "",
                   text);
    if (strchr(whole, ':') == NULL || !dial_host_parse(whole, &host)) return false;
    (void)snprintf(tap->host, sizeof(tap->host), "%s", text[0] == ':' ? "" : host.name);
    *port = host.port;
    return true;
}

static enum cli_exit begin(struct tap *tap)
{
    struct cli *cli = tap->cli;
    struct dial_host upstream;
    uint16_t port;
    const char *file = cli_value(cli, "pcapng");

    enum cli_exit code = wire_print_style(cli, &tap->printer.style);
    if (code != CLI_OK) return code;
    if (!parse_listen(tap, cli->words[0], &port))
        return (enum cli_exit)cli_fail(cli, CLI_USAGE, "\"%s\" is no PORT, :PORT or HOST:PORT",
                                       cli->words[0]);
    if (!dial_host_parse(cli->words[1], &upstream))
        return (enum cli_exit)cli_fail(cli, CLI_USAGE, "\"%s\" is no HOST:PORT", cli->words[1]);
    if (file != NULL && tap->printer.style != WIRE_PRINT_LINE)
        return (enum cli_exit)cli_fail(cli, CLI_USAGE, "--pcapng prints nothing: leave --%s out",
                                       cli_has(cli, "json") ? "json" : "verbose");
    if (file != NULL) {
        tap->capture = pcapng_create(file);
        if (tap->capture < 0)
            return (enum cli_exit)cli_fail(cli, CLI_FAILED, "could not open \"%s\": %s", file,
                                           strerror(-tap->capture));
    }
    int result = add_listener(tap, &upstream, port, 1);
    if (result == 0) return CLI_OK;
    return (enum cli_exit)cli_fail(cli, CLI_FAILED, "could not listen on %s: %s", cli->words[0],
                                   strerror(-result));
}

static void end(struct tap *tap)
{
    FILE *errors = tap->cli->errors;
    streams_end(&tap->streams);
    for (uint32_t i = 0; i < tap->listener_count; i++)
        close(tap->listeners[i].fd);
    if (tap->capture >= 0) close(tap->capture);
    arena_free(&tap->arena);
    fprintf(errors, "tap: %llu connections", (unsigned long long)tap->connections_seen);
    if (tap->capture < 0)
        fprintf(errors, ", %llu frames, %llu damaged, %llu connections with TLS",
                (unsigned long long)tap->printer.frame_count,
                (unsigned long long)tap->printer.damaged_count,
                (unsigned long long)tap->streams.encrypted_count);
    fputc('\n', errors);
}

static int run(struct cli *cli)
{
    struct sigaction stop = {.sa_handler = on_signal};
    struct tap *tap = mem_get(cli->mem, sizeof(*tap));
    if (tap == NULL) return cli_fail(cli, CLI_FAILED, "out of memory");
    tap->cli = cli;
    tap->capture = -1;
    list_init(&tap->connections);
    arena_init(&tap->arena, cli->mem, 0);
    tap->printer = (struct wire_printer){.cli = cli};
    tap->shown.printer = &tap->printer;
    streams_init(&tap->streams, cli->mem, wire_stream_print, &tap->shown);
    tap->code = begin(tap);
    if (tap->code == CLI_OK) {
        sigaction(SIGINT, &stop, NULL);
        sigaction(SIGTERM, &stop, NULL);
        loop(tap);
        end(tap);
    }
    int result = (int)tap->code;
    mem_put(cli->mem, tap, sizeof(*tap));
    return result;
}

static const struct cli_option options[] = {
    CLI_FLAG("verbose", 'v', "Print each frame as an object tree."),
    CLI_FLAG("json", 'j', "Print each frame as one line of JSON."),
    CLI_OPTION("pcapng",
               'w',
               "FILE",
               "Print nothing: write a capture that Wireshark, tshark and `dohle wire decode "
               "--pcap` read."),
    CLI_OPTIONS_END,
};

extern const struct cli_command command_wire_tap;
const struct cli_command command_wire_tap = {
    .name = "wire tap",
    .group = CLI_LOOK,
    .summary = "between clients and any broker: print every frame that passes",
    .arguments = "LISTEN UPSTREAM [-v | --json | --pcapng FILE]",
    .about =
        "Takes connections on LISTEN (PORT, :PORT for all addresses, HOST:PORT) and passes them on "
        "to the broker at UPSTREAM. Addresses of brokers in answers are replaced by ports of its "
        "own, the ones behind LISTEN's, so that clients stay with it; what is printed is what the "
        "two sides said, before that. It ends with Ctrl-C.\n\n"
        "    dohle wire tap 9192 localhost:9092\n"
        "    kcat -b localhost:9192 -L\n\n"
        "A connection with TLS passes, but cannot be shown.",
    .options = options,
    .words_min = 2,
    .words_max = 2,
    .run = run,
};
