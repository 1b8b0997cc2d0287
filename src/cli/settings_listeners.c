/* settings_listeners.c - the listener settings of the file: names are looked up, open ones are
 * said. */
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/listeners.h"
#include "cli/settings.h"
#include "net/listener.h"

static void told_fault(void *context, const char *setting, const char *text)
{
    settings_fault(context, setting, "%s", text);
}

/* The host as a numeric address, IPv4 before IPv6. */
static const char *resolve(void *context,
                           const char *listener,
                           const char *host,
                           char *out,
                           size_t size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *found = NULL;
    (void)context;
    (void)listener;
    if (listeners_literal(host, out, size)) return NULL; /* Nobody needs to be asked. */
    if (getaddrinfo(host, NULL, &hints, &found) != 0) return "has no address here";
    const struct addrinfo *best = found;
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next)
        if (at->ai_family == AF_INET && best->ai_family != AF_INET) best = at;
    bool done = getnameinfo(best->ai_addr, best->ai_addrlen, out, (socklen_t)size, NULL, 0,
                            NI_NUMERICHOST) == 0;
    freeaddrinfo(found);
    return done ? NULL : "has no address here";
}

static void own_name(void *context, char *out, size_t size)
{
    (void)context;
    (void)gethostname(out, size - 1);
}

static bool reaches_others(const char *host)
{
    return strcmp(host, "localhost") != 0 && strncmp(host, "127.", 4) != 0 &&
           strcmp(host, "::1") != 0;
}

static void warn_open(const struct settings *settings)
{
    for (uint32_t i = 0; i < settings->listener_count; i++) {
        const struct node_listener *listener = &settings->listeners[i];
        if (listener->protocol != LISTENER_PLAINTEXT ||
            (listener->host[0] != '\0' && !reaches_others(listener->host)))
            continue;
        say(settings->say, SAY_WARN, SAY_IN_CONFIG,
            "listener %s is open to the network and asks nobody who they are", listener->name);
    }
}

void settings_listeners(struct settings *settings)
{
    struct listeners_source source = {
        .given = settings_given,
        .fault = told_fault,
        .resolve = resolve,
        .own_name = own_name,
        .context = settings,
        .controller_only = settings->controller_only,
    };
    struct listeners_set set;
    bool fine = listeners_read(&source, &set);
    memcpy(settings->listeners, set.listeners, sizeof(set.listeners));
    settings->listener_count = set.count;
    settings->loopback = set.loopback;
    if (fine && !set.loopback) warn_open(settings);
}
