/* doctor.c - `dohle doctor`: walk the way that a client walks, and name the hop that fails.
 *
 *   resolve -> connect -> ApiVersions -> Metadata -> each advertised address: resolve, connect,
 *   ApiVersions, Metadata (is it the same cluster?) -> with --write: produce, fetch
 *
 * What follows is only walked if what comes before works; each broker is. */
#include "cli/doctor.h"
#include "cli/clock.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "gen/api_versions_response.h"
#include "gen/errors.h"
#include "gen/metadata_request.h"
#include "gen/metadata_response.h"
#include "gen/sasl_handshake_request.h"
#include "gen/sasl_handshake_response.h"

#define METADATA_KEY       3
#define SASL_HANDSHAKE_KEY 17

/* ---- findings -------------------------------------------------------------------------------- */

static double now_ms(void)
{
    return (double)clock_us(CLOCK_MONOTONIC) / 1e3;
}

void doctor_begin(struct doctor *doctor)
{
    doctor->step_start_ms = now_ms();
}

const char *doctor_text(struct doctor *doctor, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    size_t kept = MIN((size_t)MAX(size, 0), sizeof(text) - 1);
    char *copy = arena_get(&doctor->arena, kept + 1);
    if (copy == NULL) return "(out of memory)";
    memcpy(copy, text, kept);
    return copy;
}

static void print_step(struct doctor *doctor, const struct doctor_step *step)
{
    static const char *const words[] = {"ok", "warn", "FAIL"}, *const colors[] = {"32", "33", "31"};
    struct out *out = &doctor->cli->out;

    if (doctor->cli->color)
        out_format(out, "  \033[%sm%s\033[0m", colors[step->state], words[step->state]);
    if (!doctor->cli->color) out_format(out, "  %s", words[step->state]);
    out_repeat(out, ' ', 6 - strlen(words[step->state]));
    out_text(out, step->hop);
    out_repeat(out, ' ', strlen(step->hop) < 13 ? 13 - strlen(step->hop) : 1);
    out_text(out, step->text);
    if (step->ms >= 0.05) out_format(out, "  (%.1f ms)", step->ms);
    out_char(out, '\n');
    /* A hop may take its time: what is known is shown. A lost output is told at the end. */
    if (cli_flush(doctor->cli) != CLI_OK) doctor->cli->out.failed = true;
}

void doctor_found(struct doctor *doctor, enum doctor_state state, const char *hop, const char *text)
{
    if (doctor->step_count == DOCTOR_STEPS_MAX) return;
    struct doctor_step *step = &doctor->steps[doctor->step_count++];
    *step = (struct doctor_step){state, hop, text, now_ms() - doctor->step_start_ms};
    doctor->step_start_ms = now_ms();
    if (!doctor->json) print_step(doctor, step);
}

/* ---- resolve and connect --------------------------------------------------------------------- */

const char *doctor_reach_text(int error)
{
    if (error > DOCTOR_RESOLVE - 1000) return gai_strerror(error - DOCTOR_RESOLVE);
    return strerror(-error);
}

void doctor_reach(struct doctor *doctor,
                  const struct dial_host *host,
                  struct dial *dial,
                  struct doctor_reach *out)
{
    memset(out, 0, sizeof(*out));
    out->refused = "";
    int code = dial_resolve(host, &out->addresses);
    if (code != 0) {
        out->error = DOCTOR_RESOLVE + code;
        return;
    }
    for (uint32_t i = 0; i < out->addresses.count; i++) {
        out->address = out->addresses.items[i];
        out->error = dial_open(dial, &out->address, doctor->timeout_ms);
        if (out->error == 0) return;
        bool six = out->address.at.ss_family == AF_INET6;
        out->six_failed = out->six_failed || six;
        out->four_failed = out->four_failed || !six;
        out->refused =
            doctor_text(doctor, "%s%s%s: %s", out->refused, out->refused_count == 0 ? "" : ", ",
                        out->address.text, strerror(-out->error));
        out->refused_count++;
    }
}

/* The addresses of a host: "127.0.0.1:9092 and [::1]:9092". */
static const char *addresses_text(struct doctor *doctor, const struct dial_addresses *addresses)
{
    const char *text = "";
    for (uint32_t i = 0; i < addresses->count; i++)
        text = doctor_text(doctor, "%s%s%s", text, i == 0 ? "" : " and ", addresses->items[i].text);
    return text;
}

static bool walk_to_target(struct doctor *doctor, struct dial *dial)
{
    struct doctor_reach reach;
    doctor_begin(doctor);
    doctor_reach(doctor, &doctor->target, dial, &reach);
    if (reach.addresses.count == 0) {
        doctor_found(
            doctor, DOCTOR_FAIL, "resolve",
            doctor_text(doctor, "%s: %s", doctor->target.name, doctor_reach_text(reach.error)));
        doctor_why_target(doctor, &reach);
        return false;
    }
    doctor_found(doctor, DOCTOR_OK, "resolve",
                 doctor_text(doctor, "%s is %s", doctor->target.name,
                             addresses_text(doctor, &reach.addresses)));
    if (reach.error != 0) {
        doctor_found(doctor, DOCTOR_FAIL, "connect", reach.refused);
        doctor_why_target(doctor, &reach);
        return false;
    }
    doctor->reached = reach.address;
    doctor_found(doctor, DOCTOR_OK, "connect",
                 doctor_text(doctor, "%s accepts", reach.address.text));
    if (reach.refused_count > 0) {
        doctor_found(doctor, DOCTOR_WARN, "connect", reach.refused);
        doctor_why_one_family(doctor, "connect", &doctor->target, &reach);
    }
    return true;
}

/* ---- ApiVersions and Metadata ---------------------------------------------------------------- */

static int16_t feature_level(const struct api_versions_response *response, const char *name)
{
    for (int32_t i = 0; i < response->finalized_features.count; i++)
        if (view_is(response->finalized_features.items[i].name, name))
            return response->finalized_features.items[i].max_version_level;
    return -1;
}

static bool walk_versions(struct doctor *doctor, struct dial *dial)
{
    struct api_versions_response response;
    doctor_begin(doctor);
    enum dial_result result = dial_versions(dial, &doctor->arena, &response);
    if (result != DIAL_OK) {
        doctor_found(
            doctor, DOCTOR_FAIL, "ApiVersions",
            doctor_text(doctor, "%s %s", doctor->reached.text, dial_result_text(dial, result)));
        doctor_why_answer(doctor, "ApiVersions", dial, result);
        return false;
    }
    if (response.error_code != 0) {
        doctor_found(doctor, DOCTOR_FAIL, "ApiVersions", "answers with an error");
        doctor_why_error(doctor, "ApiVersions", response.error_code, VIEW_NULL);
        return false;
    }
    int16_t level = feature_level(&response, "metadata.version");
    const char *feature = level < 0 ? "" : doctor_text(doctor, ", metadata.version %d", level);
    doctor_found(doctor, DOCTOR_OK, "ApiVersions",
                 doctor_text(doctor, "%d APIs, Produce to v%d, Fetch to v%d%s",
                             response.api_keys.count, dial->apis[0].max, dial->apis[1].max,
                             feature));
    return true;
}

/* Metadata of no topic: the brokers alone. */
static enum dial_result ask_metadata(struct doctor *doctor,
                                     struct dial *dial,
                                     struct metadata_response *response)
{
    struct metadata_request request;
    wire_defaults(&wire_metadata_request, &request);
    request.topics.count = 0;
    request.allow_auto_topic_creation = false;
    struct dial_question question = {wire_api(METADATA_KEY), &request, INT16_MAX};
    return dial_ask(dial, &question, &doctor->arena, response);
}

/* A server that wants SASL closes the connection at the first other request. NULL: it does not;
 * else its mechanisms. */
static const char *sasl_mechanisms(struct doctor *doctor)
{
    struct dial dial = {.fd = -1, .mem = doctor->cli->mem};
    struct api_versions_response versions;
    struct sasl_handshake_request request;
    struct sasl_handshake_response response;
    const char *found = NULL;

    if (dial_open(&dial, &doctor->reached, doctor->timeout_ms) != 0) return NULL;
    wire_defaults(&wire_sasl_handshake_request, &request);
    request.mechanism = VIEW("?");
    struct dial_question question = {wire_api(SASL_HANDSHAKE_KEY), &request, 1};
    if (dial_versions(&dial, &doctor->arena, &versions) == DIAL_OK &&
        dial_ask(&dial, &question, &doctor->arena, &response) == DIAL_OK &&
        response.error_code == KAFKA_UNSUPPORTED_SASL_MECHANISM) {
        found = "";
        for (int32_t i = 0; i < response.mechanisms.count; i++)
            found = doctor_text(doctor, "%s%s%.*s", found, i == 0 ? "" : ", ",
                                (int)response.mechanisms.items[i].size,
                                (const char *)response.mechanisms.items[i].data);
    }
    dial_close(&dial);
    return found;
}

static void metadata_failed(struct doctor *doctor, const struct dial *dial, enum dial_result result)
{
    const char *mechanisms = result == DIAL_CLOSED ? sasl_mechanisms(doctor) : NULL;
    doctor_found(
        doctor, DOCTOR_FAIL, "Metadata",
        doctor_text(doctor, "%s %s", doctor->reached.text, dial_result_text(dial, result)));
    if (mechanisms != NULL) {
        doctor_why_sasl(doctor, "Metadata", mechanisms);
    } else {
        doctor_why_answer(doctor, "Metadata", dial, result);
    }
}

static void keep_brokers(struct doctor *doctor, const struct metadata_response *response)
{
    for (int32_t i = 0; i < response->brokers.count; i++) {
        const struct metadata_response_metadata_response_broker *from = &response->brokers.items[i];
        if (doctor->broker_count == DOCTOR_BROKERS_MAX) return;
        struct doctor_broker *broker = &doctor->brokers[doctor->broker_count++];
        broker->id = from->node_id;
        broker->host.port = (uint16_t)from->port;
        (void)snprintf(broker->host.name, sizeof(broker->host.name), "%.*s", (int)from->host.size,
                       (const char *)from->host.data);
    }
}

static bool walk_metadata(struct doctor *doctor, struct dial *dial)
{
    struct metadata_response response;
    doctor_begin(doctor);
    enum dial_result result = ask_metadata(doctor, dial, &response);
    if (result != DIAL_OK) {
        metadata_failed(doctor, dial, result);
        return false;
    }
    doctor->cluster_id = response.cluster_id;
    doctor->controller_id = response.controller_id;
    keep_brokers(doctor, &response);
    const char *text = "";
    for (uint32_t i = 0; i < doctor->broker_count; i++) {
        char at[DIAL_TEXT_BYTES];
        dial_host_text(&doctor->brokers[i].host, at);
        text = doctor_text(doctor, "%s%s%d at %s", text, i == 0 ? "" : ", ", doctor->brokers[i].id,
                           at);
    }
    doctor_found(doctor, response.brokers.count > 0 ? DOCTOR_OK : DOCTOR_FAIL, "Metadata",
                 doctor_text(doctor, "cluster %.*s, %d broker%s: %s", (int)response.cluster_id.size,
                             response.cluster_id.null ? "" : (const char *)response.cluster_id.data,
                             response.brokers.count, response.brokers.count == 1 ? "" : "s", text));
    if (response.brokers.count == 0)
        doctor_why_error(doctor, "Metadata", KAFKA_BROKER_NOT_AVAILABLE, VIEW_NULL);
    return response.brokers.count > 0;
}

/* ---- the advertised addresses ---------------------------------------------------------------- */

/* Who answers at the advertised address must be of the same cluster. */
static void check_broker(struct doctor *doctor,
                         const struct doctor_broker *broker,
                         struct dial *dial,
                         const char *hop)
{
    struct api_versions_response versions;
    struct metadata_response metadata;
    char at[DIAL_TEXT_BYTES];

    dial_host_text(&broker->host, at);
    enum dial_result result = dial_versions(dial, &doctor->arena, &versions);
    if (result == DIAL_OK) result = ask_metadata(doctor, dial, &metadata);
    if (result != DIAL_OK) {
        doctor_found(doctor, DOCTOR_FAIL, hop,
                     doctor_text(doctor, "%s %s", at, dial_result_text(dial, result)));
        doctor_why_answer(doctor, hop, dial, result);
    } else if (!view_equal(metadata.cluster_id, doctor->cluster_id)) {
        doctor_found(doctor, DOCTOR_FAIL, hop,
                     doctor_text(doctor, "%s is of another cluster: %.*s", at,
                                 (int)metadata.cluster_id.size,
                                 (const char *)metadata.cluster_id.data));
        doctor_why_elsewhere(doctor, broker, metadata.cluster_id);
    } else {
        doctor_found(doctor, DOCTOR_OK, hop, doctor_text(doctor, "%s answers", at));
    }
}

static void walk_to_broker(struct doctor *doctor, const struct doctor_broker *broker)
{
    struct dial dial = {.fd = -1, .mem = doctor->cli->mem};
    struct doctor_reach reach;
    const char *hop = doctor_text(doctor, "broker %d", broker->id);
    char at[DIAL_TEXT_BYTES];

    doctor_begin(doctor);
    dial_host_text(&broker->host, at);
    doctor_reach(doctor, &broker->host, &dial, &reach);
    if (reach.error != 0) {
        const char *why = reach.refused_count > 0 ? reach.refused : doctor_reach_text(reach.error);
        doctor_found(doctor, DOCTOR_FAIL, hop,
                     doctor_text(doctor, "advertised as %s: %s", at, why));
        doctor_why_advertised(doctor, broker, &reach);
        return;
    }
    check_broker(doctor, broker, &dial, hop);
    dial_close(&dial);
    if (reach.refused_count > 0) {
        doctor_found(doctor, DOCTOR_WARN, hop, reach.refused);
        doctor_why_one_family(doctor, hop, &broker->host, &reach);
    }
}

static bool any_failed(const struct doctor *doctor)
{
    for (uint32_t i = 0; i < doctor->step_count; i++)
        if (doctor->steps[i].state == DOCTOR_FAIL) return true;
    return false;
}

static void walk(struct doctor *doctor)
{
    struct dial dial = {.fd = -1, .mem = doctor->cli->mem};
    if (walk_to_target(doctor, &dial) && walk_versions(doctor, &dial) &&
        walk_metadata(doctor, &dial)) {
        for (uint32_t i = 0; i < doctor->broker_count; i++)
            walk_to_broker(doctor, &doctor->brokers[i]);
        if (cli_has(doctor->cli, "write") && !any_failed(doctor)) doctor_write(doctor, &dial);
    }
    dial_close(&dial);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void print_end(struct doctor *doctor)
{
    struct out *out = &doctor->cli->out;
    const struct doctor_diagnosis *found = &doctor->diagnosis;

    if (found->cause == NULL) {
        out_format(out, "all is well: a client that is given %s can work\n", doctor->target_text);
        return;
    }
    out_format(out, "\n%s: %s\n  ", doctor->warned ? "some clients fail at" : "it fails at",
               found->hop);
    out_wrapped(out, found->cause, 2, 80);
    out_text(out, found->change_count > 1 ? "\n\nchange one of these\n" : "\n\nchange\n");
    for (uint32_t i = 0; i < found->change_count; i++) {
        out_text(out, "  - ");
        out_wrapped(out, found->changes[i], 4, 80);
        out_char(out, '\n');
    }
}

static void json_step(struct out *out, const struct doctor_step *step)
{
    static const char *const states[] = {"ok", "warn", "fail"};
    out_format(out, "{\"hop\":\"%s\",\"state\":\"%s\",\"text\":", step->hop, states[step->state]);
    out_quoted(out, view_of_string(step->text));
    out_format(out, ",\"ms\":%.2f}", step->ms);
}

static void json_end(struct doctor *doctor)
{
    struct out *out = &doctor->cli->out;
    const struct doctor_diagnosis *found = &doctor->diagnosis;

    out_format(out, "{\"target\":\"%s\",\"ok\":%s,\"steps\":[", doctor->target_text,
               any_failed(doctor) ? "false" : "true");
    for (uint32_t i = 0; i < doctor->step_count; i++) {
        if (i > 0) out_char(out, ',');
        json_step(out, &doctor->steps[i]);
    }
    out_char(out, ']');
    if (found->cause != NULL) {
        out_format(out, ",\"hop\":\"%s\",\"kind\":\"%s\",\"cause\":", found->hop, found->kind);
        out_quoted(out, view_of_string(found->cause));
        out_text(out, ",\"changes\":[");
        for (uint32_t i = 0; i < found->change_count; i++) {
            if (i > 0) out_char(out, ',');
            out_quoted(out, view_of_string(found->changes[i]));
        }
        out_char(out, ']');
    }
    out_text(out, "}\n");
}

static int run(struct cli *cli)
{
    const char *where = cli->word_count > 0 ? cli->words[0] : "localhost";
    long long timeout_s = 5;
    enum cli_exit code = cli_integer(cli, "timeout", (struct cli_range){1, 300}, &timeout_s);
    if (code != CLI_OK) return (int)code;
    if (cli_has(cli, "topic") && !cli_has(cli, "write"))
        return cli_fail(cli, CLI_USAGE, "--topic goes with --write");
    struct doctor *doctor = mem_get(cli->mem, sizeof(*doctor));
    if (doctor == NULL) return cli_fail(cli, CLI_FAILED, "out of memory");
    doctor->cli = cli;
    doctor->json = cli_has(cli, "json");
    doctor->timeout_ms = (int)timeout_s * 1000;
    int result = CLI_OK;
    if (!dial_host_parse(where, &doctor->target)) {
        result = cli_fail(cli, CLI_USAGE, "\"%s\" is no HOST:PORT", where);
    } else {
        arena_init(&doctor->arena, cli->mem, 0);
        dial_host_text(&doctor->target, doctor->target_text);
        if (!doctor->json) out_format(&cli->out, "dohle doctor: %s\n", doctor->target_text);
        walk(doctor);
        if (doctor->json) {
            json_end(doctor);
        } else {
            print_end(doctor);
        }
        result = any_failed(doctor) ? CLI_FAILED : CLI_OK;
        arena_free(&doctor->arena);
    }
    mem_put(cli->mem, doctor, sizeof(*doctor));
    return result;
}

static const struct cli_option options[] = {
    CLI_FLAG("write", 'w', "Also produce one record and fetch it again."),
    CLI_OPTION("topic",
               0,
               "NAME",
               "With --write: into this topic, instead of a new one that is deleted again."),
    CLI_OPTION("timeout", 0, "SECONDS", "How long a hop may take (5)."),
    CLI_FLAG("json", 'j', "Print the findings as one line of JSON."),
    CLI_OPTIONS_END,
};

extern const struct cli_command command_doctor;
const struct cli_command command_doctor = {
    .name = "doctor",
    .group = CLI_CHECK,
    .summary = "why can a client not reach the broker? names the hop and what to change",
    .arguments = "[HOST:PORT] [--write [--topic NAME]] [--timeout SECONDS] [--json]",
    .about =
        "Walks the way of a client against any Kafka broker: resolves the name, connects, asks for "
        "ApiVersions and Metadata, then goes to each address that the brokers advertise, as every "
        "client does, and with --write produces and fetches one record. The first hop that fails "
        "is named with its cause and with what to change. Without HOST:PORT: localhost:9092.\n\n"
        "It speaks neither TLS nor SASL, but says when the broker wants them.\n\n"
        "Exit code 0 if a client can work (also with warnings), 1 if not.",
    .options = options,
    .words_max = 1,
    .run = run,
};
