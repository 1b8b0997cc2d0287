/* start_tap.c - see start_tap.h.
 *
 * Each piece that is received or sent is a packet, written at once on the shard's own thread: for
 * looking, not for load. Shards append to one file, each packet by one write (pcapng.h). */
#include "cli/start_tap.h"
#include "cli/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cli/pcapng.h"

struct tapped {
    struct map_node node;
    const struct io_stream *stream; /* The key. */
    struct pcapng_flow flow;
};

static void append(void *context, const struct stream_segment *segment)
{
    struct start_tap *all = context;
    if (all->fd < 0 || pcapng_append(all->fd, segment) == 0) return;
    /* A full disk ends the capture, not the server. */
    (void)!write(STDERR_FILENO, "dohle: the tap's file cannot be written: it ends here\n", 53);
    all->fd = -1;
}

/* False: a Unix socket, which no packet can show. */
static bool endpoint_of(const struct io_address *address, struct stream_endpoint *out)
{
    *out = (struct stream_endpoint){.port = address->port, .family = AF_INET};
    if (inet_pton(AF_INET, address->host, out->address) == 1) return true;
    out->family = AF_INET6;
    return inet_pton(AF_INET6, address->host, out->address) == 1;
}

static struct tapped *find(struct start_tap_handle *handle, const struct io_stream *stream)
{
    struct map_node *node = map_find(&handle->flows, view_of(&stream, sizeof(stream)));
    return node == NULL ? NULL : container_of(node, struct tapped, node);
}

static struct tapped *begin(struct start_tap_handle *handle, struct io_stream *stream)
{
    struct io_address peer, local;
    struct tapped *new = mem_get(handle->flows.mem, sizeof(*new));
    if (new == NULL) return NULL;
    io_stream_peer(handle->io, stream, &peer);
    io_stream_local(handle->io, stream, &local);
    new->stream = stream;
    new->node.key = view_of(&new->stream, sizeof(new->stream));
    if (!endpoint_of(&peer, &new->flow.client) || !endpoint_of(&local, &new->flow.server) ||
        !map_insert(&handle->flows, &new->node)) {
        mem_put(handle->flows.mem, new, sizeof(*new));
        return NULL;
    }
    pcapng_open(&new->flow, clock_us(CLOCK_REALTIME), append, handle->all);
    return new;
}

static void on_bytes(struct io_tap *tap, struct io_stream *stream, bool received, struct view bytes)
{
    struct start_tap_handle *handle = container_of(tap, struct start_tap_handle, tap);
    struct tapped *tapped = find(handle, stream);
    if (tapped == NULL) tapped = begin(handle, stream);
    if (tapped == NULL) return;
    struct stream_segment segment =
        pcapng_data(&tapped->flow, received, bytes, clock_us(CLOCK_REALTIME));
    append(handle->all, &segment);
}

static void on_closed(struct io_tap *tap, struct io_stream *stream)
{
    struct start_tap_handle *handle = container_of(tap, struct start_tap_handle, tap);
    struct tapped *tapped = find(handle, stream);
    if (tapped == NULL) return;
    pcapng_close(&tapped->flow, clock_us(CLOCK_REALTIME), append, handle->all);
    map_remove(&handle->flows, &tapped->node);
    mem_put(handle->flows.mem, tapped, sizeof(*tapped));
}

enum cli_exit start_tap_begin(struct cli *cli, struct start_tap *tap)
{
    const char *path = cli_value(cli, "tap");
    tap->fd = -1;
    tap->handle_count = 0;
    if (path == NULL) return CLI_OK;
    tap->fd = pcapng_create(path);
    if (tap->fd >= 0) return CLI_OK;
    return (enum cli_exit)cli_fail(cli, CLI_FAILED, "could not open \"%s\": %s", path,
                                   strerror(-tap->fd));
}

void start_tap_add(struct start_tap *tap, struct io *io)
{
    if (tap->fd < 0) return;
    assert(tap->handle_count < NET_SHARDS_MAX);
    struct start_tap_handle *handle = &tap->handles[tap->handle_count++];
    handle->tap = (struct io_tap){on_bytes, on_closed};
    handle->all = tap;
    handle->io = io;
    map_init(&handle->flows, io_mem(io), io_random(io, IO_RANDOM_HASH));
    io_set_tap(io, &handle->tap);
}

void start_tap_end(struct start_tap *tap)
{
    for (uint32_t i = 0; i < tap->handle_count; i++) {
        struct start_tap_handle *handle = &tap->handles[i];
        struct map_node *node;
        io_set_tap(handle->io, NULL);
        while ((node = map_next(&handle->flows, NULL)) != NULL) {
            struct tapped *tapped = container_of(node, struct tapped, node);
            map_remove(&handle->flows, node);
            mem_put(handle->flows.mem, tapped, sizeof(*tapped));
        }
        map_free(&handle->flows);
    }
    if (tap->fd >= 0) close(tap->fd);
    tap->fd = -1;
}
