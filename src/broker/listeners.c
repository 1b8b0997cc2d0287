/* listeners.c - see listeners.h.
 *
 * Kafka's rules and their reasons to refuse; where Kafka wants controller.listener.names in the
 * combined mode, we do without: the control part then answers in the process only. */
#include "broker/listeners.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/config.h"
#include "net/listener.h"

#define DEFAULT_PORT 9092

/* One item NAME://HOST:PORT. */
struct endpoint {
    char name[NODE_NAME_BYTES];
    char host[256]; /* Without brackets; empty: none given. */
    int32_t port;   /* -1: below 0 */
};

struct reading {
    const struct listeners_source *source;
    struct listeners_set *out;
    bool wrong;
};

static struct view value_of(struct reading *r, struct view name)
{
    return r->source->given(r->source->context, name);
}

static PRINTF(3, 4) void fault(struct reading *r, const char *setting, const char *format, ...)
{
    char text[LISTENERS_FAULT_BYTES];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    r->wrong = true;
    r->source->fault(r->source->context, setting, text);
}

static const char *const protocol_names[] = {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"};

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool copy_upper(struct view from, char *out, size_t size)
{
    if (from.size == 0 || from.size >= size) return false;
    for (uint32_t i = 0; i < from.size; i++)
        out[i] = upper((char)from.data[i]);
    out[from.size] = '\0';
    return true;
}

static bool host_byte(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("-%._:", c) != NULL);
}

/* ---- one item -------------------------------------------------------------------------------- */

static bool parse_port(struct view text, int32_t *out)
{
    bool negative = text.size > 0 && text.data[0] == '-';
    int64_t number = 0;
    if (text.size == 0 || text.size > 10 || (negative && text.size == 1)) return false;
    for (uint32_t i = negative; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') return false;
        number = number * 10 + text.data[i] - '0';
    }
    *out = negative ? -1 : (int32_t)MIN(number, 65536);
    return true;
}

static bool parse_host(struct view text, char *out, size_t size)
{
    if (text.size > 0 && text.data[0] == '[') text = view_of(text.data + 1, text.size - 1);
    if (text.size > 0 && text.data[text.size - 1] == ']') text.size--;
    if (text.size >= size) return false;
    for (uint32_t i = 0; i < text.size; i++)
        if (!host_byte(text.data[i])) return false;
    if (text.size > 0) memcpy(out, text.data, text.size);
    out[text.size] = '\0';
    return true;
}

static bool parse_endpoint(struct view item, struct endpoint *out)
{
    uint32_t name = 0;
    while (name + 3 <= item.size && memcmp(item.data + name, "://", 3) != 0)
        name++;
    if (name + 3 > item.size) return false;
    uint32_t colon = item.size;
    while (colon > name + 3 && item.data[colon - 1] != ':')
        colon--;
    if (colon == name + 3) return false; /* No port. */
    uint32_t host = name + 3;
    return copy_upper(view_of(item.data, name), out->name, sizeof(out->name)) &&
           parse_host(view_of(item.data + host, colon - 1 - host), out->host, sizeof(out->host)) &&
           parse_port(view_of(item.data + colon, item.size - colon), &out->port);
}

/* All items of a list setting. Returns their number. */
static uint32_t parse_endpoints(struct reading *r, const char *name, struct endpoint *out)
{
    struct view rest = value_of(r, view_of_string(name)), item;
    uint32_t count = 0;
    while (!rest.null && config_list_next(&rest, &item)) {
        char shown[300];
        if (count == NODE_LISTENERS_MAX) {
            fault(r, name, "more than %u listeners", NODE_LISTENERS_MAX);
            break;
        }
        struct endpoint *endpoint = &out[count];
        if (!parse_endpoint(item, endpoint)) {
            fault(r, name, "%s is not NAME://HOST:PORT", say_bytes(item, shown, sizeof(shown)));
            continue;
        }
        if (endpoint->port < 0 || endpoint->port > 65535)
            fault(r, name, "the port of %s is not from 0 to 65535", endpoint->name);
        for (uint32_t i = 0; i < count; i++)
            if (strcmp(out[i].name, endpoint->name) == 0)
                fault(r, name, "%s is there twice", endpoint->name);
        count++;
    }
    return count;
}

/* ---- names and protocols --------------------------------------------------------------------- */

static int protocol_of_name(struct view name)
{
    char text[NODE_NAME_BYTES];
    if (!copy_upper(name, text, sizeof(text))) return -1;
    for (int i = 0; i < (int)ARRAY_SIZE(protocol_names); i++)
        if (strcmp(text, protocol_names[i]) == 0) return i;
    return -1;
}

/* Is the name in a list setting? Names compare in upper case. */
static bool name_in(struct reading *r, const char *setting, const char *name)
{
    struct view rest = value_of(r, view_of_string(setting)), item;
    char text[NODE_NAME_BYTES];
    while (!rest.null && config_list_next(&rest, &item))
        if (copy_upper(item, text, sizeof(text)) && strcmp(text, name) == 0) return true;
    return false;
}

static bool is_controller(struct reading *r, const char *name)
{
    return name_in(r, "controller.listener.names", name);
}

/* The protocol of a listener by listener.security.protocol.map; -1: not in the map. */
static int protocol_of(struct reading *r, const char *name)
{
    struct view rest = value_of(r, VIEW("listener.security.protocol.map")), item;
    if (rest.null) {
        int protocol = protocol_of_name(view_of_string(name));
        return protocol < 0 && is_controller(r, name) ? LISTENER_PLAINTEXT : protocol;
    }
    while (config_list_next(&rest, &item)) {
        uint32_t colon = item.size;
        while (colon > 0 && item.data[colon - 1] != ':')
            colon--;
        char text[NODE_NAME_BYTES];
        if (colon == 0 || !copy_upper(view_of(item.data, colon - 1), text, sizeof(text))) {
            fault(r, "listener.security.protocol.map", "an item is not NAME:PROTOCOL");
            return -1;
        }
        if (strcmp(text, name) != 0) continue;
        int protocol = protocol_of_name(view_of(item.data + colon, item.size - colon));
        if (protocol < 0)
            fault(r, "listener.security.protocol.map",
                  "the protocol of %s is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL", name);
        return protocol;
    }
    return -1;
}

static bool secured(int protocol)
{
    return protocol != LISTENER_PLAINTEXT;
}

/* Which protocols there are in this build. */
static void check_protocol(struct reading *r, const struct endpoint *endpoint, int protocol)
{
    if (protocol < 0)
        fault(r, "listeners", "%s is not in listener.security.protocol.map", endpoint->name);
    else if (secured(protocol))
        fault(r, "listeners", "%s asks for %s, which is not served; only PLAINTEXT is",
              endpoint->name, protocol_names[protocol]);
}

/* ---- addresses ------------------------------------------------------------------------------- */

bool listeners_literal(const char *host, char *out, size_t size)
{
    struct in6_addr address; /* Large enough for both. */
    for (int i = 0; i < 2; i++) {
        int family = i == 0 ? AF_INET : AF_INET6;
        if (inet_pton(family, host, &address) == 1)
            return inet_ntop(family, &address, out, (socklen_t)size) != NULL;
    }
    return false;
}

static bool is_numeric(const char *host)
{
    char text[INET6_ADDRSTRLEN];
    return listeners_literal(host, text, sizeof(text));
}

/* Kafka lets one IPv4 and one IPv6 literal share a port, nothing else. */
static void check_ports(struct reading *r, const struct endpoint *endpoints, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = i + 1; k < count; k++) {
            const struct endpoint *a = &endpoints[i], *b = &endpoints[k];
            if (a->port == 0 || a->port != b->port) continue;
            bool literal = a->host[0] != '\0' && b->host[0] != '\0' && is_numeric(a->host) &&
                           is_numeric(b->host);
            bool differ = (strchr(a->host, ':') == NULL) != (strchr(b->host, ':') == NULL);
            if (!literal || !differ)
                fault(r, "listeners",
                      "%s and %s share port %d; only one IPv4 and one IPv6 address may", a->name,
                      b->name, a->port);
        }
    }
}

/* ---- together -------------------------------------------------------------------------------- */

static bool names_an_address(const char *host)
{
    return host[0] != '\0' && strcmp(host, "0.0.0.0") != 0 && strcmp(host, "::") != 0;
}

static void fill(struct reading *r, struct node_listener *out, const struct endpoint *endpoint)
{
    int protocol = protocol_of(r, endpoint->name);
    check_protocol(r, endpoint, protocol);
    *out = (struct node_listener){.port = (uint16_t)endpoint->port,
                                  .advertised_port = 0,
                                  .protocol = (int16_t)MAX(protocol, 0),
                                  .controller = is_controller(r, endpoint->name)};
    memcpy(out->name, endpoint->name, sizeof(out->name));
    memcpy(out->named, endpoint->host, sizeof(out->named));
    if (out->controller && !names_an_address(endpoint->host)) /* Brokers must find it by a name. */
        r->source->own_name(r->source->context, out->advertised_host, sizeof(out->advertised_host));
    if (endpoint->host[0] == '\0') return;
    const char *why = r->source->resolve(r->source->context, endpoint->name, endpoint->host,
                                         out->host, sizeof(out->host));
    if (why != NULL) fault(r, "listeners", "the host %s %s", endpoint->host, why);
    if (names_an_address(endpoint->host))
        memcpy(out->advertised_host, endpoint->host, sizeof(out->advertised_host));
}

static struct node_listener *listener_by_name(struct reading *r, const char *name)
{
    for (uint32_t i = 0; i < r->out->count; i++)
        if (strcmp(r->out->listeners[i].name, name) == 0) return &r->out->listeners[i];
    return NULL;
}

static void advertise(struct reading *r)
{
    struct endpoint endpoints[NODE_LISTENERS_MAX];
    const char *setting = "advertised.listeners";
    uint32_t count = parse_endpoints(r, setting, endpoints);
    for (uint32_t i = 0; i < count; i++) {
        const struct endpoint *endpoint = &endpoints[i];
        struct node_listener *listener = listener_by_name(r, endpoint->name);
        if (listener == NULL) {
            fault(r, setting, "%s is not in listeners", endpoint->name);
            continue;
        }
        if (strcmp(endpoint->host, "0.0.0.0") == 0 || strcmp(endpoint->host, "::") == 0)
            fault(r, setting, "%s is no address that a client can reach", endpoint->host);
        memcpy(listener->advertised_host, endpoint->host, sizeof(listener->advertised_host));
        listener->advertised_port = (uint16_t)endpoint->port;
    }
    if (count == 0) return;
    for (uint32_t i = 0; i < r->out->count; i++) {
        const struct node_listener *listener = &r->out->listeners[i];
        bool there = listener->controller;
        for (uint32_t k = 0; k < count; k++)
            there = there || strcmp(endpoints[k].name, listener->name) == 0;
        if (!there && listener->inter_broker)
            fault(r, setting, "%s, the listener between brokers, is missing", listener->name);
    }
}

/* The listener between brokers, put first. */
static void choose_inter_broker(struct reading *r)
{
    char name[NODE_NAME_BYTES] = "PLAINTEXT";
    struct view given = value_of(r, VIEW("inter.broker.listener.name"));
    struct view protocol = value_of(r, VIEW("security.inter.broker.protocol"));
    const char *setting = "inter.broker.listener.name";
    if (!given.null && !protocol.null) fault(r, setting, "excludes security.inter.broker.protocol");
    if (given.null && !protocol.null) setting = "security.inter.broker.protocol";
    if (!given.null || !protocol.null)
        (void)copy_upper(given.null ? protocol : given, name, sizeof(name));
    struct node_listener *chosen = listener_by_name(r, name);
    if (chosen == NULL && given.null &&
        protocol.null) /* Only one to choose: no reason to refuse. */
        for (uint32_t i = 0; i < r->out->count && chosen == NULL; i++)
            if (!r->out->listeners[i].controller) chosen = &r->out->listeners[i];
    if (chosen == NULL) {
        fault(r, setting, "%s is not in listeners", name);
        return;
    }
    if (chosen->controller) fault(r, setting, "%s is a controller's listener", name);
    chosen->inter_broker = true;
    struct node_listener first = *chosen;
    *chosen = r->out->listeners[0];
    r->out->listeners[0] = first;
}

static void check_controllers(struct reading *r)
{
    const char *setting = "controller.listener.names";
    struct view rest = value_of(r, view_of_string(setting)), item;
    char name[NODE_NAME_BYTES], shown[100];
    while (!rest.null && config_list_next(&rest, &item))
        if (!copy_upper(item, name, sizeof(name)) || listener_by_name(r, name) == NULL)
            fault(r, setting, "%s is not in listeners", say_bytes(item, shown, sizeof(shown)));
}

/* A controller's port stands in the record of the voters, which brokers go by. */
static void check_controller_ports(struct reading *r)
{
    for (uint32_t i = 0; i < r->out->count; i++) {
        const struct node_listener *listener = &r->out->listeners[i];
        if (listener->controller && listener->port == 0 && listener->advertised_port == 0)
            fault(r, "listeners", "%s is a controller's and needs a port", listener->name);
        if (!listener->controller && r->source->controller_only)
            fault(r, "listeners", "%s is a broker's listener, and process.roles names no broker",
                  listener->name);
    }
}

/* No `listeners`: the machine itself may connect, nobody else. */
static void loopback(struct reading *r)
{
    r->out->loopback = true;
    r->out->count = 1;
    r->out->listeners[0] =
        (struct node_listener){.name = "PLAINTEXT", .port = DEFAULT_PORT, .inter_broker = true};
    advertise(r);
}

static void read_listeners(struct reading *r)
{
    struct endpoint endpoints[NODE_LISTENERS_MAX];
    uint32_t count = parse_endpoints(r, "listeners", endpoints);
    if (r->wrong) return;
    check_ports(r, endpoints, count);
    r->out->count = count;
    for (uint32_t i = 0; i < count; i++)
        fill(r, &r->out->listeners[i], &endpoints[i]);
    check_controllers(r);
    check_controller_ports(r);
    if (!r->source->controller_only) choose_inter_broker(r);
    advertise(r);
}

bool listeners_read(const struct listeners_source *source, struct listeners_set *out)
{
    struct reading r = {.source = source, .out = out};
    *out = (struct listeners_set){0};
    if (!value_of(&r, VIEW("listeners")).null) {
        read_listeners(&r);
    } else {
        if (source->controller_only) fault(&r, "listeners", "must name the controller's listener");
        loopback(&r);
    }
    return !r.wrong;
}
