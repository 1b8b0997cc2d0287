/* run.c - expectations, waits and requests of one row. */
#include "check/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "sys/memory.h"
#include "text/frame.h"

#include "gen/api_versions_request.h"
#include "gen/api_versions_response.h"
#include "gen/delete_topics_request.h"
#include "gen/describe_configs_request.h"
#include "gen/describe_configs_response.h"
#include "gen/describe_groups_request.h"
#include "gen/describe_groups_response.h"
#include "gen/find_coordinator_request.h"
#include "gen/find_coordinator_response.h"
#include "gen/response_header.h"

/* DescribeConfigs' number for brokers. */
#define RESOURCE_BROKER 4

/* How long a new server may take to have coordinators, and between two questions. */
#define FIND_LIMIT_MS 60000
#define FIND_PAUSE_MS 200

/* Between two tries to reach a server that starts. */
#define CONNECT_PAUSE_MS 2

/* No answer is waited for beyond this, so that a suite ends within two minutes; rows that take
 * minutes have more. */
#define RUN_LIMIT_MS      100000
#define RUN_LIMIT_LONG_MS 400000

/* ---- expectations -----------------------------------------------------------------------------
 */

/* Add to a list of texts parted by commas; what does not fit is left out. */
static void append(char *list, const char *text)
{
    size_t at = strlen(list);
    (void)snprintf(list + at, CHECK_TEXT_BYTES - at, "%s%s", at > 0 ? ", " : "", text);
}

static void compare(struct check_run *run, const char *what, const char *expected, const char *got)
{
    char text[CHECK_TEXT_BYTES];
    bool same = strcmp(expected, got) == 0;

    append(run->result->expected, expected);
    (void)snprintf(text, sizeof(text), same ? "%s" : "%s (%s)", got, what);
    append(run->result->got, text);
    if (same) return;
    run->result->outcome = CHECK_FAILED;
    run->over = true;
}

void run_expect(struct check_run *run, const char *what, enum kafka_error expected, int16_t got)
{
    if (!run->over) compare(run, what, kafka_error_name((int16_t)expected), kafka_error_name(got));
}

void run_expect_number(struct check_run *run, const char *what, int64_t expected, int64_t got)
{
    char a[24], b[24];
    if (run->over) return;
    (void)snprintf(a, sizeof(a), "%lld", (long long)expected);
    (void)snprintf(b, sizeof(b), "%lld", (long long)got);
    compare(run, what, a, b);
}

void run_expect_text(struct check_run *run, const char *what, const char *expected, struct view got)
{
    char text[CHECK_TEXT_BYTES];
    if (run->over) return;
    (void)snprintf(text, sizeof(text), got.null ? "null" : "\"%.*s\"", (int)MIN(got.size, 100u),
                   (const char *)got.data);
    char wanted[CHECK_TEXT_BYTES];
    (void)snprintf(wanted, sizeof(wanted), expected == NULL ? "null" : "\"%s\"", expected);
    compare(run, what, wanted, text);
}

void run_expect_within(struct check_run *run, const char *what, struct run_span span, int64_t got)
{
    char wanted[48], text[CHECK_TEXT_BYTES];
    if (run->over) return;
    (void)snprintf(wanted, sizeof(wanted), "%lld to %lld ms", (long long)span.min,
                   (long long)span.max);
    bool within = got >= span.min && got <= span.max;
    append(run->result->expected, wanted);
    (void)snprintf(text, sizeof(text), within ? "%lld ms" : "%lld ms (%s)", (long long)got, what);
    append(run->result->got, text);
    if (within) return;
    run->result->outcome = CHECK_FAILED;
    run->over = true;
}

void run_need(struct check_run *run, const char *what, enum kafka_error expected, int16_t got)
{
    if ((int16_t)expected != got) run_expect(run, what, expected, got);
}

void run_need_true(struct check_run *run, const char *what, bool condition)
{
    if (!condition) run_fail(run, "not so: %s", what);
}

static void end(struct check_run *run, enum check_outcome outcome, char *to, const char *text)
{
    if (run->over) return;
    run->result->outcome = outcome;
    append(to, text);
    run->over = true;
}

void run_fail(struct check_run *run, const char *format, ...)
{
    char text[CHECK_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    end(run, CHECK_FAILED, run->result->got, text);
}

void run_skip(struct check_run *run, const char *format, ...)
{
    char text[CHECK_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (!run->over) run->result->expected[0] = '\0';
    end(run, CHECK_SKIPPED, run->result->expected, text);
}

/* ---- time -------------------------------------------------------------------------------------
 */

void run_until(struct check_run *run, int64_t at_ms)
{
    for (int64_t left_ms; !run->over && (left_ms = at_ms - peer_now_ms()) > 0;) {
        struct timespec t = {left_ms / 1000, left_ms % 1000 * 1000000};
        nanosleep(&t, NULL);
    }
}

void run_wait(struct check_run *run, int64_t ms)
{
    run_until(run, peer_now_ms() + ms);
}

/* ---- talking ----------------------------------------------------------------------------------
 */

struct check_peer *run_peer(struct check_run *run)
{
    assert(run->peer_count < RUN_PEERS_MAX);
    struct check_peer *peer = &run->peers[run->peer_count++];
    peer->fd = -1;
    if (run->over) return peer;
    if (peer_open(peer, &run->target) != PEER_OK)
        run_fail(run, "%s:%s cannot be reached", run->target.host, run->target.port);
    return peer;
}

struct check_peer *run_peer_patiently(struct check_run *run, int64_t limit_ms)
{
    int64_t end_ms = peer_now_ms() + limit_ms;
    assert(run->peer_count < RUN_PEERS_MAX);
    struct check_peer *peer = &run->peers[run->peer_count++];
    peer->fd = -1;
    while (!run->over && peer_open(peer, &run->target) != PEER_OK) {
        if (peer_now_ms() > end_ms)
            run_fail(run, "%s:%s cannot be reached", run->target.host, run->target.port);
        run_wait(run, CONNECT_PAUSE_MS);
    }
    return peer;
}

bool run_serves(const struct check_run *run, const struct wire_message *request, int16_t version)
{
    const struct check_run *world = run->world != NULL ? run->world : run;
    int16_t key = request->api_key;
    assert(key >= 0);
    assert(key < (int16_t)ARRAY_SIZE(world->served));
    return version >= world->served[key].min && version <= world->served[key].max;
}

int16_t run_version(struct check_run *run, const struct wire_message *request, int16_t wanted)
{
    const struct check_run *world = run->world != NULL ? run->world : run;
    int16_t min = MAX(world->served[request->api_key].min, request->version_min);
    int16_t max = MIN(world->served[request->api_key].max, request->version_max);
    if (max >= min) return MAX(min, MIN(wanted, max));
    run_skip(run, "the server does not advertise %s", wire_api(request->api_key)->name);
    return request->version_max;
}

void *run_new(struct check_run *run, const struct wire_message *message)
{
    void *body = arena_get(&run->arena, MAX(message->size_bytes, 1u));
    assert(body != NULL); /* No limit is set. */
    wire_defaults(message, body);
    return body;
}

const char *run_text(struct check_run *run, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    struct view copy = arena_copy(&run->arena, view_of(text, (uint32_t)strlen(text) + 1));
    assert(copy.data != NULL); /* No limit is set. */
    return (const char *)copy.data;
}

static const char *api_name(const struct wire_message *request)
{
    return wire_api(request->api_key)->name;
}

void run_send(struct check_run *run,
              struct check_peer *peer,
              const struct wire_message *request,
              int16_t version,
              const void *body)
{
    struct frame_kind kind = frame_kind_of(request, version);
    struct frame_header header = {.correlation_id = ++peer->correlation,
                                  .client_id = VIEW("check")};
    if (run->over) return;
    enum peer_result result = peer_send(peer, frame_encode(&kind, &header, body, &run->arena));
    if (result != PEER_OK)
        run_fail(run, "the server %s at %s %d", peer_words(result), api_name(request), version);
}

static bool decode(struct check_run *run,
                   const struct check_peer *peer,
                   const struct frame_kind *kind,
                   struct view frame,
                   void *out)
{
    struct response_header header;
    struct reader in = reader_of(view_of(frame.data + 4, frame.size - 4));
    const struct wire_form *form = wire_form(&wire_response_header, kind->header_version);
    if (!wire_decode(&in, form, &run->arena, &header)) return false;
    if (header.correlation_id != peer->correlation) return false;
    return wire_decode(&in, wire_form(kind->message, kind->version), &run->arena, out) &&
           reader_left(&in) == 0;
}

const void *run_receive(struct check_run *run,
                        struct check_peer *peer,
                        const struct wire_message *request,
                        int16_t version,
                        int64_t limit_ms)
{
    const struct wire_message *message = wire_api(request->api_key)->response;
    struct frame_kind kind = frame_kind_of(message, version);
    void *out = run_new(run, message);
    struct view frame;

    if (run->over) return out;
    bool lengthy = run->row != NULL && run->row->when == CHECK_IF_LONG;
    int64_t end_ms = run->start_ms + (lengthy ? RUN_LIMIT_LONG_MS : RUN_LIMIT_MS);
    limit_ms = MIN(limit_ms, MAX(end_ms - peer_now_ms(), 0));
    enum peer_result result = peer_receive(peer, &run->arena, peer_now_ms() + limit_ms, &frame);
    if (result == PEER_OK && !decode(run, peer, &kind, frame, out)) result = PEER_STRANGE;
    if (result == PEER_OK) return out;
    if (result == PEER_SILENT)
        run_fail(run, "no answer to %s %d in %lld ms", api_name(request), version,
                 (long long)limit_ms);
    run_fail(run, "the server %s: %s %d", peer_words(result), api_name(request), version);
    wire_defaults(message, out);
    return out;
}

const void *run_call(struct check_run *run,
                     struct check_peer *peer,
                     const struct wire_message *request,
                     int16_t version,
                     const void *body)
{
    run_send(run, peer, request, version, body);
    return run_receive(run, peer, request, version, RUN_CALL_MS);
}

bool run_answered(struct check_run *run, struct check_peer *peer, int64_t ms)
{
    return !run->over && peer_readable(peer, peer_now_ms() + ms);
}

bool run_hung_up(struct check_run *run, struct check_peer *peer, int64_t ms)
{
    return run_answered(run, peer, ms) && peer_ended(peer);
}

static void find(struct check_run *run, int64_t limit_ms)
{
    int16_t version = run_version(run, &wire_find_coordinator_request, 3);
    struct find_coordinator_request *ask = run_new(run, &wire_find_coordinator_request);
    const struct find_coordinator_response *answer;
    struct check_peer *peer = run_peer(run);

    ask->key = view_of_string(run->name);
    for (;;) {
        answer = run_call(run, peer, &wire_find_coordinator_request, version, ask);
        if (answer->error_code == KAFKA_NONE || peer_now_ms() > limit_ms || run->over) break;
        run_wait(run, FIND_PAUSE_MS);
    }
    run_need(run, "FindCoordinator", KAFKA_NONE, answer->error_code);
    if (run->over) return;
    (void)snprintf(run->host, sizeof(run->host), "%.*s", (int)answer->host.size,
                   (const char *)answer->host.data);
    (void)snprintf(run->port, sizeof(run->port), "%d", answer->port);
    run->target = (struct check_target){run->host, run->port};
    run->node_id = answer->node_id;
}

static bool loads(int16_t error)
{
    return error == KAFKA_COORDINATOR_LOAD_IN_PROGRESS || error == KAFKA_NOT_COORDINATOR ||
           error == KAFKA_COORDINATOR_NOT_AVAILABLE;
}

void run_find_group(struct check_run *run)
{
    int64_t limit_ms = peer_now_ms() + FIND_LIMIT_MS;
    struct view name = view_of_string(run->name);

    find(run, limit_ms);
    if (!run_serves(run, &wire_describe_groups_request, 0)) return; /* It has nothing to load. */
    struct check_peer *peer = run_peer(run);
    struct describe_groups_request *ask = run_new(run, &wire_describe_groups_request);
    ask->groups.items = &name;
    ask->groups.count = 1;
    while (!run->over && peer_now_ms() < limit_ms) {
        const struct describe_groups_response *answer =
            run_call(run, peer, &wire_describe_groups_request, 0, ask);
        if (answer->groups.count != 1 || !loads(answer->groups.items[0].error_code)) return;
        run_wait(run, FIND_PAUSE_MS);
    }
    run_fail(run, "the coordinator has not loaded the group in %d s", FIND_LIMIT_MS / 1000);
}

void run_delete_topic(struct check_run *run, struct check_peer *peer)
{
    struct delete_topics_request_delete_topic_state topic;
    struct delete_topics_request *ask = run_new(run, &wire_delete_topics_request);
    wire_struct_defaults(&wire_delete_topics_request_delete_topic_state_shape, &topic);
    topic.name = view_of_string(run->name);
    ask->topics.items = &topic;
    ask->topics.count = 1;
    ask->timeout_ms = RUN_CALL_MS / 2;
    int16_t version = run_version(run, &wire_delete_topics_request, 6);
    (void)run_call(run, peer, &wire_delete_topics_request, version, ask);
}

int64_t run_setting(struct check_run *run, const char *name)
{
    struct describe_configs_request_describe_configs_resource resource;
    struct describe_configs_request *ask = run_new(run, &wire_describe_configs_request);
    struct view key = view_of_string(name);

    wire_struct_defaults(&wire_describe_configs_request_describe_configs_resource_shape, &resource);
    resource.resource_type = RESOURCE_BROKER;
    resource.resource_name = view_of_string(run_text(run, "%d", run->node_id));
    resource.configuration_keys.items = &key;
    resource.configuration_keys.count = 1;
    ask->resources.items = &resource;
    ask->resources.count = 1;
    int16_t version = run_version(run, &wire_describe_configs_request, 4);
    const struct describe_configs_response *answer =
        run_call(run, run_peer(run), &wire_describe_configs_request, version, ask);
    if (run->over) return 0;
    if (answer->results.count != 1 || answer->results.items[0].configs.count != 1) {
        run_skip(run, "the server does not tell its %s", name);
        return 0;
    }
    struct view text = answer->results.items[0].configs.items[0].value;
    return strtoll(run_text(run, "%.*s", (int)text.size, (const char *)text.data), NULL, 10);
}

/* ---- the run itself ---------------------------------------------------------------------------
 */

void run_begin(struct check_run *run, const struct check_target *target)
{
    run->target = *target;
    run->start_ms = peer_now_ms();
    memory_init(&run->mem, 0);
    arena_init(&run->arena, &run->mem, 0);
}

void run_end(struct check_run *run)
{
    for (uint32_t i = 0; i < run->peer_count; i++)
        peer_close(&run->peers[i]);
    run->peer_count = 0;
    arena_free(&run->arena);
    assert(run->mem.used_bytes == 0);
}

void run_ask_versions(struct check_run *run)
{
    struct api_versions_request *ask = run_new(run, &wire_api_versions_request);
    struct check_peer *peer = run_peer(run);
    const struct api_versions_response *answer =
        run_call(run, peer, &wire_api_versions_request, 0, ask); /* Every server has it. */
    run_need(run, "ApiVersions", KAFKA_NONE, answer->error_code);
    for (size_t i = 0; i < ARRAY_SIZE(run->served); i++)
        run->served[i].max = -1;
    for (int32_t i = 0; i < answer->api_keys.count; i++) {
        const struct api_versions_response_api_version *api = &answer->api_keys.items[i];
        if (api->api_key < 0 || api->api_key >= (int16_t)ARRAY_SIZE(run->served)) continue;
        run->served[api->api_key].min = api->min_version;
        run->served[api->api_key].max = api->max_version;
    }
}
