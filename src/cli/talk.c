/* talk.c - see talk.h. */
#include "cli/talk.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/clock.h"

#include "gen/api_versions_response.h"
#include "gen/find_coordinator_request.h"
#include "gen/find_coordinator_response.h"
#include "gen/list_offsets_request.h"
#include "gen/list_offsets_response.h"
#include "gen/metadata_request.h"
#include "gen/metadata_response.h"
#include "gen/offset_fetch_request.h"
#include "gen/offset_fetch_response.h"

#define PAUSE_MS 50 /* Before a coordinator that loads is asked again. */

/* ---- talking ----------------------------------------------------------------------------------
 */

void *talk_get(struct talk *talk, size_t size)
{
    void *block = arena_get(&talk->arena, MAX(size, 1u));
    if (block == NULL) (void)cli_fail(talk->cli, CLI_FAILED, "out of memory");
    return block;
}

void *talk_new(struct talk *talk, const struct wire_message *message)
{
    void *body = talk_get(talk, message->size_bytes);
    if (body != NULL) wire_defaults(message, body);
    return body;
}

int talk_fail(struct talk *talk, const char *what, int16_t error)
{
    int32_t at = error + 1; /* The table begins with -1. */
    bool known = at >= 0 && at < (int32_t)kafka_error_count;
    return cli_fail(talk->cli, CLI_FAILED, "%s: %s: %s", what,
                    known ? kafka_errors[at].name : "unknown error",
                    known ? kafka_errors[at].message : "");
}

static const void *ask_once(struct talk *talk,
                            struct dial *dial,
                            const struct talk_question *question)
{
    const struct wire_api *api = wire_api(question->request->api_key);
    void *answer = talk_new(talk, api->response);
    struct dial_question ask = {api, question->body, question->version_max};
    if (answer == NULL || question->body == NULL) return NULL;
    enum dial_result result = dial_ask(dial, &ask, &talk->arena, answer);
    if (result == DIAL_OK) return answer;
    (void)cli_fail(talk->cli, CLI_FAILED, "%s: the broker %s", api->name,
                   dial_result_text(dial, result));
    return NULL;
}

const void *talk_ask(struct talk *talk, struct dial *dial, const struct talk_question *question)
{
    int64_t until_ms = clock_now_ms() + talk->timeout_ms;
    for (;;) {
        const void *answer = ask_once(talk, dial, question);
        if (answer == NULL || question->error == NULL) return answer;
        int16_t error = question->error(answer);
        bool passes =
            error == KAFKA_COORDINATOR_LOAD_IN_PROGRESS || error == KAFKA_COORDINATOR_NOT_AVAILABLE;
        if (!passes || clock_now_ms() + PAUSE_MS >= until_ms) return answer;
        usleep(PAUSE_MS * 1000);
    }
}

/* Connect to one of the host's addresses and learn its versions. 0, or -errno. */
static int reach(struct talk *talk, const struct dial_host *host, struct dial *dial)
{
    struct dial_addresses addresses;
    struct api_versions_response *versions =
        talk_new(talk, wire_api(18)->response); /* ApiVersions. */
    if (versions == NULL) return -ENOMEM;
    if (dial_resolve(host, &addresses) != 0) return -EHOSTUNREACH;
    int result = -EHOSTUNREACH;
    for (uint32_t i = 0; i < addresses.count; i++) {
        dial->mem = talk->cli->mem;
        result = dial_open(dial, &addresses.items[i], talk->timeout_ms);
        if (result != 0) continue;
        if (dial_versions(dial, &talk->arena, versions) == DIAL_OK) return 0;
        dial_close(dial);
        result = -EPROTO;
    }
    return result;
}

/* The first of the bootstrap servers that answers. */
static enum cli_exit reach_any(struct talk *talk, const char *servers)
{
    char text[300];
    struct dial_host host;
    int result = -EINVAL;
    for (const char *at = servers; *at != '\0';) {
        size_t size = strcspn(at, ",");
        (void)snprintf(text, sizeof(text), "%.*s", (int)MIN(size, sizeof(text) - 1), at);
        at += size + (at[size] == ',');
        if (!dial_host_parse(text, &host))
            return (enum cli_exit)cli_fail(talk->cli, CLI_USAGE, "\"%s\" is no HOST:PORT", text);
        result = reach(talk, &host, &talk->boot);
        if (result == 0) return CLI_OK;
    }
    (void)cli_fail(talk->cli, CLI_FAILED, "no broker answers at %s: %s", servers,
                   strerror(-result));
    cli_hint(talk->cli, "`dohle doctor %s` tells which step fails and what to change", servers);
    return CLI_FAILED;
}

enum cli_exit talk_open(struct cli *cli, struct talk *out)
{
    long long seconds = 10;
    const char *servers = cli_value(cli, "bootstrap");
    *out = (struct talk){.cli = cli};
    out->boot.fd = -1;
    for (int i = 0; i < TALK_BROKERS_MAX; i++)
        out->brokers[i].fd = -1;
    arena_init(&out->arena, cli->mem, 0);
    enum cli_exit code = cli_integer(cli, "timeout", (struct cli_range){1, 3600}, &seconds);
    if (code != CLI_OK) return code;
    out->timeout_ms = (int)seconds * 1000;
    if (servers == NULL) servers = getenv("DOHLE_BOOTSTRAP");
    if (servers == NULL || *servers == '\0') servers = "localhost:9092";
    code = reach_any(out, servers);
    if (code != CLI_OK) return code;
    struct metadata_request *ask = talk_new(out, &wire_metadata_request);
    if (ask != NULL) ask->topics.count = -1;
    out->metadata =
        talk_ask(out, &out->boot, &(struct talk_question){&wire_metadata_request, ask, 12, NULL});
    return out->metadata == NULL ? CLI_FAILED : CLI_OK;
}

void talk_close(struct talk *talk)
{
    if (talk->boot.fd >= 0) dial_close(&talk->boot);
    for (int i = 0; i < TALK_BROKERS_MAX; i++)
        if (talk->brokers[i].fd >= 0) dial_close(&talk->brokers[i]);
    arena_free(&talk->arena);
}

struct dial *talk_broker(struct talk *talk, int32_t id)
{
    int32_t count = MIN(talk->metadata->brokers.count, TALK_BROKERS_MAX);
    for (int32_t i = 0; i < count; i++) {
        const struct metadata_response_metadata_response_broker *broker =
            &talk->metadata->brokers.items[i];
        struct dial_host host = {.port = (uint16_t)broker->port};
        if (broker->node_id != id) continue;
        if (talk->brokers[i].fd >= 0) return &talk->brokers[i];
        (void)snprintf(host.name, sizeof(host.name), "%.*s", (int)broker->host.size,
                       (const char *)broker->host.data);
        int result = reach(talk, &host, &talk->brokers[i]);
        if (result == 0) return &talk->brokers[i];
        (void)cli_fail(talk->cli, CLI_FAILED, "broker %d at %s:%d: %s", id, host.name, broker->port,
                       strerror(-result));
        return NULL;
    }
    (void)cli_fail(talk->cli, CLI_FAILED, "broker %d is not among those that are alive", id);
    return NULL;
}

static int16_t coordinator_error(const void *answer)
{
    return ((const struct find_coordinator_response *)answer)->error_code;
}

struct dial *talk_coordinator(struct talk *talk, const char *group, int32_t *id)
{
    struct find_coordinator_request *ask = talk_new(talk, &wire_find_coordinator_request);
    if (ask != NULL) ask->key = view_of_string(group);
    const struct find_coordinator_response *answer = talk_ask(
        talk, &talk->boot,
        &(struct talk_question){&wire_find_coordinator_request, ask, 3, coordinator_error});
    if (answer == NULL) return NULL;
    if (answer->error_code != KAFKA_NONE) {
        (void)talk_fail(talk, "the group's coordinator", answer->error_code);
        return NULL;
    }
    *id = answer->node_id;
    return talk_broker(talk, answer->node_id);
}

/* ---- offsets ----------------------------------------------------------------------------------
 */

static bool keep_offsets(struct talk *talk,
                         const struct offset_fetch_response_offset_fetch_response_group *group,
                         struct group_offsets *out)
{
    uint32_t room = 0;
    for (int32_t i = 0; i < group->topics.count; i++)
        room += (uint32_t)MAX(group->topics.items[i].partitions.count, 0);
    *out = (struct group_offsets){.items = talk_get(talk, room * sizeof(*out->items))};
    if (out->items == NULL) return false;
    for (int32_t i = 0; i < group->topics.count; i++)
        for (int32_t j = 0; j < group->topics.items[i].partitions.count; j++)
            out->items[out->count++] = (struct group_offset){
                .topic = group->topics.items[i].name,
                .partition = group->topics.items[i].partitions.items[j].partition_index,
                .committed = group->topics.items[i].partitions.items[j].committed_offset,
                .found = -1,
            };
    return true;
}

static int16_t offsets_error(const void *answer)
{
    const struct offset_fetch_response *offsets = answer;
    return offsets->groups.count == 1 ? offsets->groups.items[0].error_code : (int16_t)KAFKA_NONE;
}

bool talk_offsets_fetch(struct talk *talk,
                        struct dial *coordinator,
                        const char *group,
                        struct group_offsets *out)
{
    struct offset_fetch_request_offset_fetch_request_group one;
    struct offset_fetch_request *ask = talk_new(talk, &wire_offset_fetch_request);
    wire_struct_defaults(&wire_offset_fetch_request_offset_fetch_request_group_shape, &one);
    one.group_id = view_of_string(group);
    one.topics.count = -1;
    if (ask == NULL) return false;
    ask->groups.items = &one;
    ask->groups.count = 1;
    const struct offset_fetch_response *answer =
        talk_ask(talk, coordinator,
                 &(struct talk_question){&wire_offset_fetch_request, ask, 9, offsets_error});
    if (answer == NULL) return false;
    if (answer->groups.count != 1) {
        (void)cli_fail(talk->cli, CLI_FAILED, "the broker's OffsetFetch is older than version 8");
        return false;
    }
    if (answer->groups.items[0].error_code == KAFKA_NONE)
        return keep_offsets(talk, &answer->groups.items[0], out);
    (void)talk_fail(talk, "the committed offsets", answer->groups.items[0].error_code);
    return false;
}

/* The partition's leader by the metadata; -1: none. */
static int32_t leader_of(const struct talk *talk, const struct group_offset *offset)
{
    for (int32_t i = 0; i < talk->metadata->topics.count; i++) {
        const struct metadata_response_metadata_response_topic *topic =
            &talk->metadata->topics.items[i];
        if (!view_equal(topic->name, offset->topic)) continue;
        for (int32_t j = 0; j < topic->partitions.count; j++)
            if (topic->partitions.items[j].partition_index == offset->partition)
                return topic->partitions.items[j].leader_id;
    }
    return -1;
}

static bool find_one(struct talk *talk, struct group_offset *offset, int64_t timestamp)
{
    struct list_offsets_request_list_offsets_partition partition;
    struct list_offsets_request_list_offsets_topic topic;
    struct list_offsets_request *ask = talk_new(talk, &wire_list_offsets_request);
    int32_t leader = leader_of(talk, offset);

    offset->error = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    if (leader < 0) return true;
    struct dial *dial = talk_broker(talk, leader);
    if (dial == NULL || ask == NULL) return false;
    wire_struct_defaults(&wire_list_offsets_request_list_offsets_partition_shape, &partition);
    wire_struct_defaults(&wire_list_offsets_request_list_offsets_topic_shape, &topic);
    partition.partition_index = offset->partition;
    partition.timestamp = timestamp;
    topic.name = offset->topic;
    topic.partitions.items = &partition;
    topic.partitions.count = 1;
    ask->replica_id = -1;
    ask->topics.items = &topic;
    ask->topics.count = 1;
    const struct list_offsets_response *answer =
        talk_ask(talk, dial, &(struct talk_question){&wire_list_offsets_request, ask, 7, NULL});
    if (answer == NULL) return false;
    if (answer->topics.count != 1 || answer->topics.items[0].partitions.count != 1) return true;
    offset->error = answer->topics.items[0].partitions.items[0].error_code;
    offset->found = answer->topics.items[0].partitions.items[0].offset;
    return true;
}

bool talk_offsets_find(struct talk *talk, struct group_offsets *offsets, int64_t timestamp)
{
    for (uint32_t i = 0; i < offsets->count; i++)
        if (!find_one(talk, &offsets->items[i], timestamp)) return false;
    return true;
}
