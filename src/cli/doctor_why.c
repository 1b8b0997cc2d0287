/* doctor_why.c - causes and cures, by what failed and by what the addresses look like. */
#include "cli/doctor.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <unistd.h>

#include "gen/errors.h"

/* ---- the diagnosis --------------------------------------------------------------------------- */

/* Begin one; NULL if there is one already (a failure replaces a warning). */
static struct doctor_diagnosis *begin(struct doctor *doctor, const char *hop, const char *kind)
{
    struct doctor_diagnosis *found = &doctor->diagnosis;
    if (found->cause != NULL && !doctor->warned) return NULL;
    *found = (struct doctor_diagnosis){.hop = hop, .kind = kind};
    doctor->warned = false;
    return found;
}

static void change(struct doctor_diagnosis *found, const char *text)
{
    assert(found->change_count < DOCTOR_CHANGES_MAX);
    found->changes[found->change_count++] = text;
}

/* The line that makes a broker advertise the address by which it was reached. */
static const char *advertise_target(struct doctor *doctor)
{
    return doctor_text(doctor,
                       "in the broker's configuration: advertised.listeners=PLAINTEXT://%s (in a "
                       "container of Kafka: the variable KAFKA_ADVERTISED_LISTENERS); the port is "
                       "the one outside, if it is mapped",
                       doctor->target_text);
}

/* ---- the target ------------------------------------------------------------------------------ */

/* Does anything listen on the port by the other family's loopback address? */
static bool other_loopback_answers(struct doctor *doctor, struct dial_address *out)
{
    struct dial_host other = {.port = doctor->target.port};
    struct dial_addresses addresses;
    bool six = doctor->target.name[0] != '\0' && strchr(doctor->target.name, ':') != NULL;
    (void)snprintf(other.name, sizeof(other.name), "%s", six ? "127.0.0.1" : "::1");
    if (dial_resolve(&other, &addresses) != 0) return false;
    *out = addresses.items[0];
    int fd = dial_connect(out, doctor->timeout_ms);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

static void why_refused(struct doctor *doctor, const struct doctor_reach *reach)
{
    struct dial_address other;
    if (dial_is_loopback(&reach->address) && other_loopback_answers(doctor, &other)) {
        bool six = other.at.ss_family == AF_INET6;
        struct doctor_diagnosis *found = begin(doctor, "connect", six ? "ipv6-only" : "ipv4-only");
        if (found == NULL) return;
        found->cause = doctor_text(
            doctor, "Nothing listens on %s, but %s accepts: the broker listens on IPv%d only.",
            reach->address.text, other.text, six ? 6 : 4);
        change(found, doctor_text(doctor, "give clients the address that works: %s", other.text));
        change(found, doctor_text(doctor,
                                  "in the broker's configuration: "
                                  "listeners=PLAINTEXT://:%u, which takes both families",
                                  doctor->target.port));
        return;
    }
    struct doctor_diagnosis *found = begin(doctor, "connect", "closed-port");
    if (found == NULL) return;
    found->cause = doctor_text(doctor,
                               "The machine answers, but no program listens on %s: the broker is "
                               "not running, or it listens on another port or address.",
                               reach->address.text);
    change(found, "start the broker, or look in its log for why it has stopped");
    change(found, "compare the port with `listeners` in the broker's configuration");
    change(found, "if it runs in a container: publish the port (-p OUTSIDE:INSIDE) and give "
                  "clients the one outside");
}

void doctor_why_target(struct doctor *doctor, const struct doctor_reach *reach)
{
    struct doctor_diagnosis *found;
    if (reach->error > 0) {
        found = begin(doctor, "resolve", "unknown-name");
        if (found == NULL) return;
        found->cause =
            doctor_text(doctor, "The name %s is not known on this machine.", doctor->target.name);
        change(found, "look for a slip in the name, or use the address instead");
        change(found, "if it is the name of a container: run the client in the same container "
                      "network, or use localhost and the published port");
        return;
    }
    if (reach->error == -ECONNREFUSED) {
        why_refused(doctor, reach);
        return;
    }
    found = begin(doctor, "connect", "unreachable");
    if (found == NULL) return;
    found->cause = doctor_text(doctor,
                               "No connection to %s: %s. Packets do not get there, or are "
                               "dropped on the way.",
                               reach->address.text, strerror(-reach->error));
    change(found, "look for a firewall or a security group between here and there that drops the "
                  "port");
    change(found, "if the address is that of a container or of another network: use one that is "
                  "routed from here");
}

/* ---- a connection that answers wrongly ------------------------------------------------------- */

static void why_tls(struct doctor *doctor, const char *hop)
{
    struct doctor_diagnosis *found = begin(doctor, hop, "tls");
    if (found == NULL) return;
    found->cause =
        doctor_text(doctor, "The listener expects TLS: it answers a TLS greeting and closes "
                            "connections that do not begin with one. A client without TLS sees "
                            "only a lost connection.");
    change(found, "in the client's configuration: security.protocol=SSL (or SASL_SSL), with the "
                  "CA that signed the broker's certificate: ssl.truststore.location (Java), "
                  "ssl.ca.location (librdkafka)");
    change(found, "or use a PLAINTEXT listener of the broker, on another port");
}

void doctor_why_answer(struct doctor *doctor,
                       const char *hop,
                       const struct dial *dial,
                       enum dial_result result)
{
    enum dial_smell smell = dial_smell(dial, &doctor->reached, doctor->timeout_ms);
    if (smell == DIAL_SMELLS_TLS) {
        why_tls(doctor, hop);
        return;
    }
    struct doctor_diagnosis *found =
        begin(doctor, hop, smell == DIAL_SMELLS_HTTP ? "http" : "answer");
    if (found == NULL) return;
    if (smell == DIAL_SMELLS_HTTP) {
        found->cause = "An HTTP server answers here, no Kafka broker.";
        change(found, "use the port of the broker's listener, not that of its web or REST side");
    } else if (result == DIAL_SILENT) {
        found->cause = "The connection is taken, but no answer comes: the broker hangs or is still "
                       "starting, or something between (a proxy, a port mapping without a server "
                       "behind it) takes connections for it.";
        change(found, "look in the broker's log, and connect from its own machine to tell which");
    } else {
        found->cause = doctor_text(doctor,
                                   "The other side %s. It may be a listener for other "
                                   "brokers or controllers, another protocol, or a port mapping "
                                   "whose server is not up.",
                                   dial_result_text(dial, result));
        change(found, "use the port of a client listener of the broker");
    }
}

void doctor_why_sasl(struct doctor *doctor, const char *hop, const char *mechanisms)
{
    struct doctor_diagnosis *found = begin(doctor, hop, "sasl");
    if (found == NULL) return;
    found->cause = doctor_text(doctor,
                               "The listener wants the client to log in by SASL first; it offers "
                               "%s. A client that does not sees only a lost connection.",
                               mechanisms[0] == '\0' ? "no mechanism" : mechanisms);
    change(found, "in the client's configuration: security.protocol=SASL_PLAINTEXT, sasl.mechanism "
                  "(one of these), and user and password (sasl.jaas.config in Java, sasl.username "
                  "and sasl.password in librdkafka)");
}

/* ---- the advertised address ------------------------------------------------------------------ */

/* One label without a dot, or the twelve hex digits of a container. */
static bool is_container_name(const char *name)
{
    return strchr(name, '.') == NULL && strchr(name, ':') == NULL && strcmp(name, "localhost") != 0;
}

static bool is_private(const struct dial_address *address)
{
    if (address->at.ss_family != AF_INET) return false;
    uint32_t a = ntohl(((const struct sockaddr_in *)&address->at)->sin_addr.s_addr);
    return a >> 24 == 10 || a >> 20 == (172u << 4 | 1u) || a >> 16 == (192u << 8 | 168u);
}

static void changes_for_containers(struct doctor *doctor, struct doctor_diagnosis *found)
{
    change(found, doctor_text(doctor,
                              "give the broker a listener for each side: "
                              "listeners=INSIDE://:9094,OUTSIDE://:9092, "
                              "advertised.listeners=INSIDE://CONTAINER:9094,OUTSIDE://%s, "
                              "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
                              doctor->target_text));
    change(found, "or run the client in the container's network");
}

static void why_unknown_name(struct doctor *doctor, const struct doctor_broker *broker)
{
    char at[DIAL_TEXT_BYTES];
    bool container = is_container_name(broker->host.name);
    dial_host_text(&broker->host, at);
    struct doctor_diagnosis *found = begin(doctor, doctor_text(doctor, "broker %d", broker->id),
                                           container ? "container-name" : "advertised-name");
    if (found == NULL) return;
    found->cause = doctor_text(
        doctor,
        "%s works, but there broker %d tells clients to go to %s, and the name %s is not known on "
        "this machine%s. Every client goes to the advertised address after its first question, so "
        "it hangs or fails although the port is open.",
        doctor->target_text, broker->id, at, broker->host.name,
        container ? ": it looks like the name of a container, which only its own network knows"
                  : "");
    change(found, advertise_target(doctor));
    if (container) {
        changes_for_containers(doctor, found);
    } else {
        change(found,
               doctor_text(doctor, "or make the name known here: DNS, or a line in /etc/hosts"));
    }
}

static void why_refused_there(struct doctor *doctor,
                              const struct doctor_broker *broker,
                              const struct doctor_reach *reach)
{
    char at[DIAL_TEXT_BYTES];
    bool same_host = dial_same_host(&reach->address, &doctor->reached);
    bool other_port = broker->host.port != doctor->target.port;
    bool loopback = dial_is_loopback(&reach->address) && !dial_is_loopback(&doctor->reached);
    dial_host_text(&broker->host, at);
    struct doctor_diagnosis *found = begin(doctor, doctor_text(doctor, "broker %d", broker->id),
                                           loopback                  ? "advertised-localhost"
                                           : same_host && other_port ? "port-mapping"
                                                                     : "advertised-closed");
    if (found == NULL) return;
    if (loopback) {
        found->cause = doctor_text(
            doctor,
            "Broker %d tells clients to go to %s, which for each client is its own machine; "
            "the broker is on %s.",
            broker->id, at, doctor->reached.text);
    } else if (same_host && other_port) {
        found->cause = doctor_text(
            doctor,
            "You came in by port %u, but broker %d tells clients to go to %s, where nothing "
            "listens. That is what a mapped port of a container (-p %u:%u) or a forwarded port "
            "looks like: the broker knows only its own port.",
            doctor->target.port, broker->id, at, doctor->target.port, broker->host.port);
        change(found, doctor_text(doctor, "map the port to the same number: -p %u:%u, and use %u",
                                  broker->host.port, broker->host.port, broker->host.port));
    } else {
        found->cause = doctor_text(doctor,
                                   "Broker %d tells clients to go to %s, but nothing "
                                   "listens there: it is down, or advertises a wrong address.",
                                   broker->id, at);
        change(found, "look whether that broker runs");
    }
    change(found, advertise_target(doctor));
}

void doctor_why_advertised(struct doctor *doctor,
                           const struct doctor_broker *broker,
                           const struct doctor_reach *reach)
{
    char at[DIAL_TEXT_BYTES];
    if (reach->error > 0) {
        why_unknown_name(doctor, broker);
        return;
    }
    if (reach->error == -ECONNREFUSED) {
        why_refused_there(doctor, broker, reach);
        return;
    }
    dial_host_text(&broker->host, at);
    bool inside = is_private(&reach->address);
    bool six = reach->six_failed && !reach->four_failed;
    struct doctor_diagnosis *found = begin(doctor, doctor_text(doctor, "broker %d", broker->id),
                                           inside ? "container-address"
                                           : six  ? "ipv6-only"
                                                  : "advertised-unreachable");
    if (found == NULL) return;
    found->cause = doctor_text(
        doctor, "Broker %d tells clients to go to %s, and no connection gets there: %s.%s%s",
        broker->id, at, strerror(-reach->error),
        inside ? " It is an address of a private network, perhaps that of containers on another "
                 "machine."
               : "",
        six ? " It has only IPv6 addresses; this machine may have no IPv6." : "");
    change(found, advertise_target(doctor));
    if (inside) changes_for_containers(doctor, found);
}

void doctor_why_one_family(struct doctor *doctor,
                           const char *hop,
                           const struct dial_host *host,
                           const struct doctor_reach *reach)
{
    char at[DIAL_TEXT_BYTES];
    bool six_only = reach->four_failed && !reach->six_failed;
    bool four_only = reach->six_failed && !reach->four_failed;
    if (doctor->diagnosis.cause != NULL) return;
    struct doctor_diagnosis *found = begin(doctor, hop,
                                           six_only    ? "ipv6-only"
                                           : four_only ? "ipv4-only"
                                                       : "some-addresses");
    if (found == NULL) return;
    doctor->warned = true;
    dial_host_text(host, at);
    found->cause =
        doctor_text(doctor,
                    "%s has several addresses and only some work (%s accepts; %s). A client that "
                    "takes only the first, or only IPv%d, fails; others lose time.",
                    host->name, reach->address.text, reach->refused, six_only ? 4 : 6);
    change(found,
           doctor_text(doctor, "give clients the address that works: %s", reach->address.text));
    change(found, doctor_text(doctor,
                              "in the broker's configuration: listeners=PLAINTEXT://:%u, "
                              "which takes both families",
                              host->port));
}

void doctor_why_elsewhere(struct doctor *doctor,
                          const struct doctor_broker *broker,
                          struct view cluster_id)
{
    char at[DIAL_TEXT_BYTES];
    dial_host_text(&broker->host, at);
    struct doctor_diagnosis *found =
        begin(doctor, doctor_text(doctor, "broker %d", broker->id), "other-cluster");
    if (found == NULL) return;
    found->cause =
        doctor_text(doctor,
                    "Broker %d tells clients to go to %s, but a broker of another cluster answers "
                    "there (%.*s instead of %.*s): clients would read and write the wrong one.",
                    broker->id, at, (int)cluster_id.size, (const char *)cluster_id.data,
                    (int)doctor->cluster_id.size, (const char *)doctor->cluster_id.data);
    change(found, advertise_target(doctor));
}

/* ---- an error of Kafka's --------------------------------------------------------------------- */

void doctor_why_error(struct doctor *doctor, const char *hop, int16_t code, struct view message)
{
    struct doctor_diagnosis *found = begin(doctor, hop, "error");
    if (found == NULL) return;
    bool known = code >= -1 && (uint32_t)(code + 1) < kafka_error_count;
    const struct kafka_error_row *row = &kafka_errors[known ? code + 1 : 0];
    found->cause = doctor_text(doctor, "The broker answers with %s (%d): %s%s%.*s", row->name, code,
                               row->message, message.null || message.size == 0 ? "" : " It says: ",
                               message.null ? 0 : (int)message.size, (const char *)message.data);
    if (code == KAFKA_NOT_ENOUGH_REPLICAS || code == KAFKA_NOT_ENOUGH_REPLICAS_AFTER_APPEND) {
        change(found, "bring the brokers that hold the topic's replicas back, or lower the topic's "
                      "min.insync.replicas");
    } else if (code == KAFKA_TOPIC_AUTHORIZATION_FAILED ||
               code == KAFKA_CLUSTER_AUTHORIZATION_FAILED) {
        change(found,
               "give the client's user the right by kafka-acls, or use --topic with one that "
               "it may write");
    } else {
        change(found, "look in the broker's log for the time of this request");
    }
}
