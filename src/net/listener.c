/* listener.c - listening, and who may come in.
 *
 * One shard listens for all: it counts the node's connections and hands each to the shard that has
 * the fewest; a connection that ends elsewhere is told by a letter.
 *
 * In the order of Kafka: the listener's own maximum, the node's maximum, the client address's.
 * Where Kafka stops accepting until there is a place, a connection above a maximum is closed at
 * once. A full node gives an inter-broker connection the place of another listener's least active
 * one, among those that this shard has. */
#include "net/inside.h"

#include <errno.h>
#include <stdio.h>

/* ---- connections of one address -------------------------------------------------------------- */

struct net_peer *listener_peer(struct shard *shard, const char *host)
{
    struct map *peers = &shard->state->peers;
    struct map_node *node = map_find(peers, view_of_string(host));
    if (node != NULL) {
        struct net_peer *peer = container_of(node, struct net_peer, node);
        peer->count++;
        return peer;
    }
    struct net_peer *peer = mem_get(shard->mem, sizeof(*peer));
    if (peer == NULL) return NULL;
    (void)snprintf(peer->host, sizeof(peer->host), "%s", host);
    peer->node.key = view_of_string(peer->host);
    peer->count = 1;
    if (!map_insert(peers, &peer->node)) return mem_put(shard->mem, peer, sizeof(*peer));
    return peer;
}

void listener_peer_drop(struct shard *shard, struct net_peer *peer)
{
    assert(peer->count > 0);
    if (--peer->count > 0) return;
    map_remove(&shard->state->peers, &peer->node);
    mem_put(shard->mem, peer, sizeof(*peer));
}

/* ---- accepting ------------------------------------------------------------------------------- */

/* Close the least active connection of a listener that is not between brokers. */
static bool make_place(struct shard *shard)
{
    struct connection *idlest = NULL;
    list_foreach (node, &shard->state->connections) {
        struct connection *connection = container_of(node, struct connection, link);
        if (connection->listener->inter_broker) continue;
        if (idlest == NULL || connection->active_ms < idlest->active_ms) idlest = connection;
    }
    if (idlest == NULL) return false;
    connection_close(idlest, "its place is needed for a broker");
    return true;
}

/* The most connections of one address. */
static uint32_t host_max(const struct shard_limits *limits, const char *host)
{
    for (uint32_t i = 0; i < limits->host_count; i++)
        if (view_is(limits->hosts[i].host, host)) return limits->hosts[i].connections_max;
    return limits->connections_per_ip;
}

static const char *refusal(struct listener *listener, const char *host)
{
    struct shard *shard = listener->shard;
    const struct shard_limits *limits = &shard->state->settings.limits;
    if (listener->connections >= listener->connections_max)
        return "the listener's max.connections is reached";
    if (shard->state->admitted >= limits->connections_max &&
        !(listener->inter_broker && make_place(shard)))
        return "max.connections is reached";
    struct map_node *node = map_find(&shard->state->peers, view_of_string(host));
    uint32_t count = node == NULL ? 0 : container_of(node, struct net_peer, node)->count;
    if (count >= host_max(limits, host)) return "max.connections.per.ip is reached";
    return NULL;
}

/* The shard with the fewest connections of ours; the control part's stay with the control part. */
static struct shard *choose_owner(const struct listener *listener)
{
    struct shard *shard = listener->shard, *best = shard;
    const uint32_t *dealt = shard->state->dealt;
    for (uint32_t i = 0; i < shard->count && listener->kind == WIRE_BROKER; i++)
        if (dealt[i] < dealt[best->index]) best = shard->peers[i];
    return best;
}

static void accepted(void *context, struct io_stream *stream, const struct io_address *peer)
{
    struct listener *listener = context;
    struct shard *shard = listener->shard;
    const char *why = refusal(listener, peer->host);
    struct connection *connection;
    struct shard_admission admission = {0};
    int64_t now_ms = io_now_ms(shard->io);
    if (why == NULL) {
        const struct shard_hooks *hooks = &shard->state->hooks;
        if (hooks->admit != NULL) admission = hooks->admit(shard, listener, peer);
        struct connection_from from = {stream, peer, now_ms + admission.wait_ms};
        struct shard *owner = admission.close ? shard : choose_owner(listener);
        if (connection_open(listener, owner, &from, &connection) != 0) why = "no memory";
    }
    if (why == NULL) {
        metric_add(&shard->metrics, METRIC_CONNECTIONS_ACCEPTED, 1);
        if (admission.close)
            connection_turn_away(connection, now_ms + admission.wait_ms);
        else if (admission.wait_ms > 0)
            metric_add(&shard->metrics, METRIC_CONNECTIONS_DELAYED, 1);
        return;
    }
    io_stream_close(shard->io, stream);
    metric_add(&shard->metrics, METRIC_CONNECTIONS_REFUSED, 1);
    uint32_t dropped;
    if (say_allowed(&shard->state->limits[NET_LIMITED_REFUSED], io_now_ms(shard->io), &dropped))
        say(shard->say, SAY_WARN, SAY_IN_NET, "connection from %s refused: %s (%u more not shown)",
            peer->host, why, dropped);
}

/* ---- listening ------------------------------------------------------------------------------- */

static const struct io_accept_events accept_events = {.accepted = accepted};

static int listen_socket(struct listener *listener, const struct io_address *address)
{
    uint32_t i = listener->socket_count;
    struct io_address wanted = *address;
    if (i > 0 && wanted.port == 0) wanted.port = listener->bound[0].port;
    int result = io_listen(listener->shard->io, &wanted, &accept_events, listener,
                           &listener->sockets[i], &listener->bound[i]);
    if (result == 0) listener->socket_count++;
    return result;
}

static int listen_all(struct listener *listener, const struct listener_options *options)
{
    for (uint32_t i = 0; i < options->address_count; i++) {
        int result = listen_socket(listener, &options->addresses[i]);
        if (result == 0) continue;
        if (i == 0 || (result != -EADDRNOTAVAIL && result != -EAFNOSUPPORT)) return result;
        say(listener->shard->say, SAY_INFO, SAY_IN_NET,
            "not listening on %s: the machine has no such address", options->addresses[i].host);
    }
    return 0;
}

void listener_unlisten(struct listener *listener)
{
    for (uint32_t i = 0; i < listener->socket_count; i++)
        io_unlisten(listener->shard->io, listener->sockets[i]);
    listener->socket_count = 0;
}

int listener_open(struct shard *shard,
                  const struct listener_options *options,
                  struct listener **out)
{
    assert(options->address_count >= 1);
    assert(options->address_count <= LISTENER_SOCKETS_MAX);
    assert(options->name.size < LISTENER_NAME_BYTES);
    struct shard_listener *entry = mem_get(shard->mem, sizeof(*entry));
    if (entry == NULL) return -ENOMEM;
    struct listener *listener = &entry->listener;
    memcpy(listener->name, options->name.data, options->name.size);
    listener->protocol = options->protocol;
    listener->kind = options->kind;
    listener->inter_broker = options->inter_broker;
    listener->connections_max = options->connections_max;
    listener->shard = shard;
    int result = listen_all(listener, options);
    if (result != 0) {
        listener_unlisten(listener);
        mem_put(shard->mem, entry, sizeof(*entry));
        return result;
    }
    list_append(&shard->state->listeners, &entry->link);
    *out = listener;
    return 0;
}

/* ---- the end of one -------------------------------------------------------------------------- */

/* One shard's part: its connections are closed, the last of them when the timer fires. */
struct listener_drain {
    struct letter letter;
    struct list link; /* In the shard's list. */
    struct shard_timer timer;
    struct listener *listener;
};

static const char drain_why[] = "its listener was taken away";

static void drain_free(struct shard *shard, struct listener_drain *drain)
{
    list_remove(&drain->link);
    shard_timer_cancel(&drain->timer);
    mem_put(shard->mem, drain, sizeof(*drain));
}

/* All connections of the listener that this shard has: at once, or when they are answered. O(all
 * connections). */
static void drain_connections(struct shard *shard, const struct listener *listener, bool at_once)
{
    struct list *next;
    struct list *all = &shard->state->connections;
    for (struct list *node = all->next; node != all; node = next) {
        struct connection *connection = container_of(node, struct connection, link);
        next = node->next; /* A close takes this one out, no other. */
        if (connection->listener != listener) continue;
        if (at_once)
            connection_close(connection, drain_why);
        else
            connection_doom(connection, drain_why);
    }
}

static void drain_over(struct shard *shard, struct shard_timer *timer)
{
    struct listener_drain *drain = container_of(timer, struct listener_drain, timer);
    drain_connections(shard, drain->listener, true);
    drain_free(shard, drain);
}

static void drain_begin(void *owner, struct letter *letter)
{
    struct listener_drain *drain = container_of(letter, struct listener_drain, letter);
    struct shard *shard = owner;
    list_append(&shard->state->drains, &drain->link);
    shard_timer_init(&drain->timer, drain_over);
    drain_connections(shard, drain->listener, false);
    shard_timer_set(shard, &drain->timer, io_now_ms(shard->io) + NET_LISTENER_DRAIN_MS);
}

void listener_end(struct listener *listener)
{
    struct shard *shard = listener->shard;
    listener_unlisten(listener);
    for (uint32_t i = 0; i < shard->count; i++) {
        struct listener_drain *drain = mem_get(shard->mem, sizeof(*drain));
        if (drain == NULL) { /* What stays open there ends when its client goes. */
            if (i == shard->index) drain_connections(shard, listener, true);
            continue;
        }
        drain->listener = listener;
        drain->letter.open = drain_begin;
        list_init(&drain->link);
        if (i == shard->index)
            drain_begin(shard, &drain->letter);
        else
            shard_post(shard->peers[i], &drain->letter);
    }
}

void listener_drains_free(struct shard *shard)
{
    struct list *drains = &shard->state->drains;
    while (!list_empty(drains))
        drain_free(shard, container_of(drains->next, struct listener_drain, link));
}
