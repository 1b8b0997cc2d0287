/* listening.c - see listening.h. */
#include "broker/listening.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/dynamic.h"
#include "broker/lifecycle.h"
#include "broker/listeners.h"
#include "core/step.h"
#include "net/listener.h"

/* ---- what the settings say ------------------------------------------------------------------- */

/* The settings of a node, or what they would be with a change. */
struct wish {
    const struct node *node;
    const struct cluster_override *overrides; /* Those of a request that is judged. */
    uint32_t override_count;
    char why[LISTENERS_FAULT_BYTES + 64]; /* The first that is wrong. */
};

/* As set for this broker at run time, or null. */
static struct view set_here(const struct node *node, struct view name)
{
    char id[12];
    (void)snprintf(id, sizeof(id), "%d", node->options.node_id);
    return image_config(image_configs(node->image, IMAGE_RESOURCE_BROKER, view_of_string(id)),
                        name);
}

static bool is_dynamic(struct view name)
{
    return view_is(name, "listeners") || view_is(name, "listener.security.protocol.map");
}

/* What is set at run time, or will be; null: nothing, the file's value holds. */
static struct view wish_set(const struct wish *wish, struct view name)
{
    struct view value = is_dynamic(name) ? set_here(wish->node, name) : VIEW_NULL;
    for (uint32_t i = 0; i < wish->override_count; i++)
        if (is_dynamic(name) && view_equal(wish->overrides[i].name, name))
            value = wish->overrides[i].value;
    return value;
}

static struct view wish_given(void *context, struct view name)
{
    const struct wish *wish = context;
    const struct node_options *options = &wish->node->options;
    struct view value = wish_set(wish, name);
    return value.null ? options->setting(options->setting_context, name) : value;
}

static void wish_fault(void *context, const char *setting, const char *text)
{
    struct wish *wish = context;
    if (wish->why[0] == '\0') (void)snprintf(wish->why, sizeof(wish->why), "%s: %s", setting, text);
}

/* No name is looked up while the node runs: that waits for others. */
static const char *wish_resolve(void *context,
                                const char *listener,
                                const char *host,
                                char *out,
                                size_t size)
{
    const struct wish *wish = context;
    (void)listener;
    if (listeners_literal(host, out, size)) return NULL;
    for (uint32_t i = 0; i < wish->node->options.listener_count; i++) {
        const struct node_listener *known = &wish->node->options.listeners[i];
        if (strcmp(known->named, host) != 0) continue;
        (void)snprintf(out, size, "%s", known->host);
        return NULL;
    }
    if (strcmp(host, "localhost") != 0)
        return "is a name, which is looked up at the start only: give its address, or put it into "
               "the file and start the node again";
    (void)snprintf(out, size, "127.0.0.1");
    return NULL;
}

/* A controller without a host keeps the one that it has. */
static void wish_own_name(void *context, char *out, size_t size)
{
    const struct wish *wish = context;
    (void)size;
    out[0] = '\0';
    for (uint32_t i = 0; i < wish->node->options.listener_count; i++)
        if (wish->node->options.listeners[i].controller)
            (void)snprintf(out, size, "%s", wish->node->options.listeners[i].advertised_host);
}

static bool wish_read(struct wish *wish, struct listeners_set *out)
{
    if (wish_set(wish, VIEW("listeners")).null &&
        wish_set(wish, VIEW("listener.security.protocol.map")).null) {
        *out = *wish->node->peers[0]->listeners_given;
        return true;
    }
    struct listeners_source source = {
        .given = wish_given,
        .fault = wish_fault,
        .resolve = wish_resolve,
        .own_name = wish_own_name,
        .context = wish,
        .controller_only = wish->node->options.controller_only,
    };
    return listeners_read(&source, out);
}

/* ---- places ---------------------------------------------------------------------------------- */

static int32_t place_of(const struct node *node, const char *name)
{
    for (uint32_t i = 0; i < node->options.listener_count; i++)
        if (strcmp(node->options.listeners[i].name, name) == 0) return (int32_t)i;
    return -1;
}

static const struct node_listener *find_in(const struct listeners_set *set, const char *name)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (strcmp(set->listeners[i].name, name) == 0) return &set->listeners[i];
    return NULL;
}

/* Does the listener in this place listen where it is wanted? */
static bool stays(const struct node *node,
                  uint32_t place,
                  const struct node_listener *want,
                  bool loopback)
{
    const struct node_listener *have = &node->options.listeners[place];
    const struct listener *open = node->listeners[place];
    bool port = have->port == want->port || (open != NULL && open->bound[0].port == want->port);
    return port && strcmp(have->host, want->host) == 0 && node->options.loopback == loopback;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void say_failed(const struct node *node,
                       const struct node_listener *in,
                       const char *host,
                       int error)
{
    const char *hint = "";
    if (error == -EADDRINUSE)
        hint = "; stop the server that has the port, or set `listeners` to another (0: a free one)";
    else if (error == -EADDRNOTAVAIL)
        hint = "; no interface of this machine has that address, see `listeners`";
    else if (error == -EACCES)
        hint = "; a port below 1024 needs a privilege (CAP_NET_BIND_SERVICE)";
    bool six = strchr(host, ':') != NULL;
    say(node->say, SAY_ERROR, SAY_IN_NODE, "could not listen on %s%s%s:%u for %s: %s%s",
        six ? "[" : "", host, six ? "]" : "", in->port, in->name, say_errno(error), hint);
}

/* Where a listener listens. Returns the number of addresses. */
static uint32_t addresses_of(const struct node_listener *in,
                             bool loopback,
                             struct io_address out[LISTENER_SOCKETS_MAX])
{
    uint32_t count = 0;
    memset(out, 0, LISTENER_SOCKETS_MAX * sizeof(out[0]));
    if (loopback) {
        (void)snprintf(out[count].host, sizeof(out[0].host), "127.0.0.1");
        out[count++].port = in->port;
        (void)snprintf(out[count].host, sizeof(out[0].host), "::1");
        out[count++].port = in->port;
    } else {
        const char *host = in->host[0] == '\0'                  ? "::"
                           : strcmp(in->host, "localhost") == 0 ? "127.0.0.1"
                                                                : in->host;
        (void)snprintf(out[count].host, sizeof(out[0].host), "%.63s", host);
        out[count++].port = in->port;
    }
    return count;
}

static int open_one(struct node *first, uint32_t place)
{
    const struct node_listener *in = &first->options.listeners[place];
    struct io_address addresses[LISTENER_SOCKETS_MAX];
    struct listener_options options = {
        .name = view_of_string(in->name),
        .protocol = (enum listener_protocol)in->protocol,
        .kind = in->controller ? WIRE_CONTROLLER : WIRE_BROKER,
        .inter_broker = in->inter_broker,
        .connections_max = INT32_MAX,
        .addresses = addresses,
        .address_count = addresses_of(in, first->options.loopback, addresses),
    };
    int result = shard_listen(first->shard, &options, &first->listeners[place]);
    if (result != 0) say_failed(first, in, addresses[0].host, result);
    return result;
}

/* ---- what may not change --------------------------------------------------------------------- */

static const char between_why[] =
    "the listener between brokers cannot become another while the node runs";

/* Is the listener between brokers the same as now? */
static bool between_stays(const struct node *node, const struct listeners_set *set)
{
    for (uint32_t i = 0; i < node->options.listener_count; i++) {
        const struct node_listener *have = &node->options.listeners[i];
        const struct node_listener *want = find_in(set, have->name);
        if (have->inter_broker && have->name[0] != '\0') return want != NULL && want->inter_broker;
    }
    return true;
}

/* The record of the voters names a controller's address: it is the file's. */
static void keep_controllers(const struct node *node, struct listeners_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        int32_t place = place_of(node, set->listeners[i].name);
        if (set->listeners[i].controller && place >= 0)
            set->listeners[i] = node->options.listeners[place];
    }
}

/* ---- following ------------------------------------------------------------------------------- */

static void shut(struct node *node, uint32_t place)
{
    struct listener *open = node->listeners[place];
    if (open == NULL) return;
    node->listeners[place] = NULL;
    node->listener_changes++;
    say(node->say, SAY_INFO, SAY_IN_NODE, "listener %s on %s:%u is shut", open->name,
        open->bound[0].host, open->bound[0].port);
    shard_listener_end(node->shard, open);
}

/* Make the node's places those of the set; what has moved or gone is shut. Whether anything is
 * other than before. */
static bool take(struct node *node, const struct listeners_set *set)
{
    struct node_options *options = &node->options;
    bool changed = false;
    for (uint32_t i = 0; i < options->listener_count; i++) {
        const struct node_listener *want = find_in(set, options->listeners[i].name);
        bool there = options->listeners[i].name[0] != '\0';
        if (!there || (want != NULL && stays(node, i, want, set->loopback))) continue;
        shut(node, i);
        changed = true;
        if (want == NULL) options->listeners[i] = (struct node_listener){0};
    }
    options->loopback = set->loopback;
    for (uint32_t i = 0; i < set->count; i++) {
        int32_t place = place_of(node, set->listeners[i].name);
        if (place < 0) place = place_of(node, "");
        if (place < 0) place = (int32_t)options->listener_count++;
        assert(place < (int32_t)NODE_LISTENERS_MAX);
        struct node_listener before = options->listeners[place];
        options->listeners[place] = set->listeners[i];
        changed = changed || strcmp(before.name, set->listeners[i].name) != 0 ||
                  strcmp(before.advertised_host, set->listeners[i].advertised_host) != 0 ||
                  before.advertised_port != set->listeners[i].advertised_port;
    }
    return changed;
}

void listening_follow(struct node *node)
{
    struct wish wish = {.node = node};
    struct listeners_set set;
    node->listeners_due = false;
    if (node->peers[0]->closing) return;
    bool fine = wish_read(&wish, &set);
    keep_controllers(node, &set);
    if (fine && !between_stays(node, &set)) wish_fault(&wish, "listeners", between_why);
    if (wish.why[0] != '\0') {
        if (node->index == 0)
            say(node->say, SAY_ERROR, SAY_IN_NODE, "the listeners stay as they are: %s", wish.why);
        return;
    }
    bool changed = take(node, &set);
    if (node->index != 0) return; /* The first shard listens for all. */
    for (uint32_t i = 0; i < node->options.listener_count; i++) {
        const struct node_listener *want = &node->options.listeners[i];
        if (want->name[0] == '\0' || node->listeners[i] != NULL || open_one(node, i) != 0) continue;
        say(node->say, SAY_INFO, SAY_IN_NODE, "listener %s on %s:%u is open", want->name,
            node->listeners[i]->bound[0].host, node->listeners[i]->bound[0].port);
        changed = true;
    }
    if (!changed) return;
    dynamic_apply_listeners(node);
    lifecycle_listeners(node);
}

/* ---- the start ------------------------------------------------------------------------------- */

/* What was set at run time before, in place of what was given. Whether that goes. */
static bool take_back(struct node *first)
{
    struct wish wish = {.node = first};
    struct listeners_set set;
    if (!wish_read(&wish, &set)) {
        say(first->say, SAY_ERROR, SAY_IN_NODE,
            "the listeners are the file's: those that were set at run time do not go with it: %s",
            wish.why);
        return false;
    }
    keep_controllers(first, &set);
    if (take(first, &set))
        say(first->say, SAY_INFO, SAY_IN_NODE,
            "the listeners are those that were set at run time, not the file's");
    for (uint32_t i = 1; i < first->count; i++) {
        struct node_options *options = &first->peers[i]->options;
        memcpy(options->listeners, first->options.listeners, sizeof(options->listeners));
        options->listener_count = first->options.listener_count;
        options->loopback = first->options.loopback;
    }
    return true;
}

int listening_open(struct node *first)
{
    struct listeners_set *given = mem_get(first->mem, sizeof(*given));
    if (given == NULL) return -ENOMEM;
    first->listeners_given = given;
    given->count = first->options.listener_count;
    given->loopback = first->options.loopback;
    memcpy(given->listeners, first->options.listeners, sizeof(given->listeners));
    bool back = take_back(first);
    for (uint32_t i = 0; i < first->options.listener_count; i++) {
        const struct node_listener *in = &first->options.listeners[i];
        if (in->name[0] == '\0') continue;
        int result = open_one(first, i);
        /* Who set one that does not go any more can only change it while the node runs. */
        bool needed = !back || in->inter_broker || find_in(given, in->name) != NULL;
        if (result != 0 && needed) return result;
    }
    return 0;
}

void listening_close(struct node *first)
{
    first->listeners_given =
        mem_put(first->mem, first->listeners_given, sizeof(*first->listeners_given));
}

/* ---- judging --------------------------------------------------------------------------------- */

static bool is_any(const char *host)
{
    return host[0] == '\0' || strcmp(host, "::") == 0 || strcmp(host, "0.0.0.0") == 0;
}

/* Do we listen there already? Then what does makes room, or it is found out at the opening. */
static bool is_ours(const struct node *node, const struct node_listener *want)
{
    for (uint32_t i = 0; i < node->options.listener_count; i++) {
        const struct listener *open = node->listeners[i];
        if (open == NULL || open->bound[0].port != want->port) continue;
        const char *host = open->bound[0].host;
        if (is_any(host) || is_any(want->host) || strcmp(host, want->host) == 0) return true;
    }
    return false;
}

static void tried(void *context, struct io_stream *stream, const struct io_address *peer)
{
    struct node *node = context;
    (void)peer;
    io_stream_close(node->io, stream);
}

/* Listen there for a moment: 0, or -errno. */
static int try_one(struct node *node, const struct node_listener *want)
{
    static const struct io_accept_events events = {.accepted = tried};
    struct io_address addresses[LISTENER_SOCKETS_MAX], bound;
    struct io_listener *socket;
    (void)addresses_of(want, false, addresses);
    int result = io_listen(node->io, &addresses[0], &events, node, &socket, &bound);
    if (result == 0) io_unlisten(node->io, socket);
    return result;
}

static void judge_one(struct wish *wish,
                      struct node *node,
                      const struct node_listener *want,
                      bool loopback)
{
    char text[LISTENERS_FAULT_BYTES];
    int32_t place = place_of(node, want->name);
    if (place >= 0 && stays(node, (uint32_t)place, want, loopback)) return;
    if (want->controller) {
        (void)snprintf(text, sizeof(text),
                       "%s is a controller's, which others know by its address: it stays while the "
                       "node runs",
                       want->name);
        wish_fault(wish, "listeners", text);
        return;
    }
    if (is_ours(node, want) || loopback) return;
    int result = try_one(node, want);
    if (result == 0) return;
    (void)snprintf(text, sizeof(text), "%s cannot listen on %s:%u: %s", want->name, want->host,
                   want->port, say_errno(result));
    wish_fault(wish, "listeners", text);
}

struct view listening_judge(struct request *request,
                            const struct cluster_override *overrides,
                            uint32_t count)
{
    struct node *node = node_of(request->shard);
    struct wish wish = {.node = node, .overrides = overrides, .override_count = count};
    struct listeners_set set;
    bool asked = false;
    for (uint32_t i = 0; i < count; i++)
        asked = asked || is_dynamic(overrides[i].name);
    if (!asked) return VIEW_NULL;
    bool fine = wish_read(&wish, &set);
    if (fine && !between_stays(node, &set)) wish_fault(&wish, "listeners", between_why);
    if (node->listener_changes >= NODE_LISTENER_CHANGES_MAX)
        wish_fault(&wish, "listeners", "they have changed too often: start the node again first");
    for (uint32_t i = 0; wish.why[0] == '\0' && i < set.count; i++)
        judge_one(&wish, node, &set.listeners[i], set.loopback);
    return wish.why[0] == '\0' ? VIEW_NULL : broker_text(request, "%s", wish.why);
}
