/* spread.c - see spread.h. The table of rules, whole requests, and the wait for all answers;
 * splitting and joining is in spread_split.c. */
#include "broker/spread.h"

#include "broker/shards.h"
#include "broker/spread_inside.h"
#include "gen/alter_replica_log_dirs_response.h"
#include "gen/consumer_group_describe_request.h"
#include "gen/consumer_group_describe_response.h"
#include "gen/consumer_group_heartbeat_request.h"
#include "gen/delete_groups_request.h"
#include "gen/delete_groups_response.h"
#include "gen/delete_records_request.h"
#include "gen/delete_records_response.h"
#include "gen/describe_groups_request.h"
#include "gen/describe_groups_response.h"
#include "gen/describe_producers_request.h"
#include "gen/describe_producers_response.h"
#include "gen/fetch_request.h"
#include "gen/fetch_response.h"
#include "gen/heartbeat_request.h"
#include "gen/join_group_request.h"
#include "gen/leave_group_request.h"
#include "gen/list_groups_response.h"
#include "gen/list_offsets_request.h"
#include "gen/list_offsets_response.h"
#include "gen/offset_commit_request.h"
#include "gen/offset_delete_request.h"
#include "gen/offset_fetch_request.h"
#include "gen/offset_fetch_response.h"
#include "gen/offset_for_leader_epoch_request.h"
#include "gen/offset_for_leader_epoch_response.h"
#include "gen/produce_request.h"
#include "gen/produce_response.h"
#include "gen/sync_group_request.h"

#define FETCH_SESSIONS_SINCE 7

/* ---- the rules ------------------------------------------------------------------------------- */

/* An array member of a struct, and a member of its elements: {offset, size, offset in element}. */
#define ARRAY_OF(type, member, element, key)                                                       \
    {                                                                                              \
        offsetof(struct type, member), sizeof(struct element), offsetof(struct element, key)       \
    }
#define GROUP(key, request)                                                                        \
    {                                                                                              \
        .api_key = (key), .place = PLACE_GROUP, .group = offsetof(struct request, group_id)        \
    }

/* clang-format off */
static const struct spread_rule rules[] = {
    {.api_key = 0, .place = PLACE_TOPICS,
     .request = ARRAY_OF(produce_request, topic_data, produce_request_topic_produce_data, name),
     .topic_id = offsetof(struct produce_request_topic_produce_data, topic_id),
     .by_id_since = 13,
     .parts = ARRAY_OF(produce_request_topic_produce_data, partition_data,
                       produce_request_partition_produce_data, index),
     .response = ARRAY_OF(produce_response, responses,
                          produce_response_topic_produce_response, name),
     .answers = ARRAY_OF(produce_response_topic_produce_response, partition_responses,
                         produce_response_partition_produce_response, index)},
    {.api_key = 1, .place = PLACE_SESSION},
    {.api_key = 2, .place = PLACE_TOPICS,
     .request = ARRAY_OF(list_offsets_request, topics,
                         list_offsets_request_list_offsets_topic, name),
     .by_id_since = INT16_MAX,
     .parts = ARRAY_OF(list_offsets_request_list_offsets_topic, partitions,
                       list_offsets_request_list_offsets_partition, partition_index),
     .response = ARRAY_OF(list_offsets_response, topics,
                          list_offsets_response_list_offsets_topic_response, name),
     .answers = ARRAY_OF(list_offsets_response_list_offsets_topic_response, partitions,
                         list_offsets_response_list_offsets_partition_response, partition_index)},
    GROUP(8, offset_commit_request),
    {.api_key = 9, .place = PLACE_KEYS,
     .group = offsetof(struct offset_fetch_request, group_id),
     .keys_since = 8,
     .request = ARRAY_OF(offset_fetch_request, groups,
                         offset_fetch_request_offset_fetch_request_group, group_id),
     .response = ARRAY_OF(offset_fetch_response, groups,
                          offset_fetch_response_offset_fetch_response_group, group_id)},
    GROUP(11, join_group_request),
    GROUP(12, heartbeat_request),
    GROUP(13, leave_group_request),
    GROUP(14, sync_group_request),
    {.api_key = 15, .place = PLACE_KEYS,
     .request = {offsetof(struct describe_groups_request, groups), sizeof(struct view), 0},
     .response = ARRAY_OF(describe_groups_response, groups,
                          describe_groups_response_described_group, group_id)},
    {.api_key = 16, .place = PLACE_ALL, .join = spread_join_list,
     .response = {offsetof(struct list_groups_response, groups),
                  sizeof(struct list_groups_response_listed_group), 0}},
    {.api_key = 21, .place = PLACE_TOPICS,
     .request = ARRAY_OF(delete_records_request, topics,
                         delete_records_request_delete_records_topic, name),
     .by_id_since = INT16_MAX,
     .parts = ARRAY_OF(delete_records_request_delete_records_topic, partitions,
                       delete_records_request_delete_records_partition, partition_index),
     .response = ARRAY_OF(delete_records_response, topics,
                          delete_records_response_delete_records_topic_result, name),
     .answers = ARRAY_OF(delete_records_response_delete_records_topic_result, partitions,
                         delete_records_response_delete_records_partition_result, partition_index)},
    {.api_key = 22, .place = PLACE_CONTROL},
    {.api_key = 23, .place = PLACE_TOPICS,
     .request = ARRAY_OF(offset_for_leader_epoch_request, topics,
                         offset_for_leader_epoch_request_offset_for_leader_topic, topic),
     .by_id_since = INT16_MAX,
     .parts = ARRAY_OF(offset_for_leader_epoch_request_offset_for_leader_topic, partitions,
                       offset_for_leader_epoch_request_offset_for_leader_partition, partition),
     .response = ARRAY_OF(offset_for_leader_epoch_response, topics,
                          offset_for_leader_epoch_response_offset_for_leader_topic_result, topic),
     .answers = ARRAY_OF(offset_for_leader_epoch_response_offset_for_leader_topic_result,
                         partitions, offset_for_leader_epoch_response_epoch_end_offset,
                         partition)},
    {.api_key = 34, .place = PLACE_ALL, .join = spread_join_moves,
     .response = {offsetof(struct alter_replica_log_dirs_response, results),
                  sizeof(struct alter_replica_log_dirs_response_alter_replica_log_dir_topic_result),
                  0}},
    {.api_key = 35, .place = PLACE_ALL, .join = spread_join_dirs},
    {.api_key = 42, .place = PLACE_KEYS,
     .request = {offsetof(struct delete_groups_request, groups_names), sizeof(struct view), 0},
     .response = ARRAY_OF(delete_groups_response, results,
                          delete_groups_response_deletable_group_result, group_id)},
    {.api_key = 44, .place = PLACE_CONTROL},
    GROUP(47, offset_delete_request),
    {.api_key = 61, .place = PLACE_TOPICS,
     .request = ARRAY_OF(describe_producers_request, topics,
                         describe_producers_request_topic_request, name),
     .by_id_since = INT16_MAX,
     .parts = {offsetof(struct describe_producers_request_topic_request, partition_indexes),
               sizeof(int32_t), 0},
     .response = ARRAY_OF(describe_producers_response, topics,
                          describe_producers_response_topic_response, name),
     .answers = ARRAY_OF(describe_producers_response_topic_response, partitions,
                         describe_producers_response_partition_response, partition_index)},
    GROUP(68, consumer_group_heartbeat_request),
    {.api_key = 69, .place = PLACE_KEYS,
     .request = {offsetof(struct consumer_group_describe_request, group_ids),
                 sizeof(struct view), 0},
     .response = ARRAY_OF(consumer_group_describe_response, groups,
                          consumer_group_describe_response_described_group, group_id)},
};
/* clang-format on */

static void (*handler_of(int16_t api_key))(struct shard *, struct request *)
{
    for (uint32_t i = 0; i < broker_handler_count; i++)
        if (broker_handlers[i].api_key == api_key) return broker_handlers[i].handle;
    return NULL;
}

/* What goes to the control part needs no row. NULL: every shard can answer it. */
static const struct spread_rule *rule_of(int16_t api_key)
{
    static const struct spread_rule control = {.place = PLACE_CONTROL};
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
        if (rules[i].api_key == api_key) return &rules[i];
    return handler_of(api_key) == handle_forwarded ? &control : NULL;
}

/* ---- the wait -------------------------------------------------------------------------------- */

static void spread_end(struct spread *spread)
{
    for (uint32_t i = 0; i < spread->node->count; i++)
        if (spread->errands[i] != NULL) errand_end(spread->errands[i]);
}

/* The errands' answers are joined, or there is none. The spread lies in the request's arena. */
static void spread_finish(struct spread *spread)
{
    struct request *request = spread->request;
    struct errand *errands[NET_SHARDS_MAX];
    const char *why = NULL;
    bool silent = spread->gone;
    uint32_t count = spread->node->count;
    memcpy(errands, spread->errands, count * sizeof(errands[0]));
    for (uint32_t i = 0; i < count; i++) {
        if (errands[i] == NULL) continue;
        if (errands[i]->closed != NULL) why = errands[i]->closed;
        if (errands[i]->response == NULL) silent = true;
    }
    void *response = why != NULL || silent ? NULL : spread->join(spread);
    if (why == NULL && !silent && response == NULL) why = "no memory to join an answer";
    if (why != NULL && !spread->gone)
        request_close(request, why);
    else if (response != NULL)
        request_reply(request, response);
    else
        request_finish(request);
    for (uint32_t i = 0; i < count; i++)
        errand_end(errands[i]); /* After the answer was encoded from what they brought. */
}

static void spread_home(struct errand *errand)
{
    struct spread *spread = errand->context;
    assert(spread->out > 0);
    if (--spread->out == 0) spread_finish(spread);
}

static void spread_gone(struct request *request)
{
    struct spread *spread = request->parked;
    spread->gone = true;
    for (uint32_t i = 0; i < spread->node->count; i++)
        if (spread->errands[i] != NULL) errand_recall(spread->errands[i]);
}

struct spread *spread_new(struct request *request, const struct spread_rule *rule)
{
    struct node *node = node_of(request->shard);
    struct spread *spread = broker_array(request, 1, sizeof(*spread));
    if (spread == NULL) return NULL;
    spread->request = request;
    spread->node = node;
    spread->rule = rule;
    spread->errands = broker_array(request, node->count, sizeof(spread->errands[0]));
    return spread->errands == NULL ? NULL : spread;
}

bool spread_add(struct spread *spread, uint32_t shard, const void *message)
{
    struct errand *errand = errand_new(spread->request, spread->node->peers[shard]->shard);
    if (errand == NULL) return false;
    assert(spread->errands[shard] == NULL);
    spread->errands[shard] = errand;
    errand->request.message = message;
    errand->handle = handler_of(spread->request->api->key);
    errand->done = spread_home;
    errand->context = spread;
    spread->out++;
    return true;
}

/* All are there: off they go. */
void spread_send(struct spread *spread)
{
    uint32_t count = spread->node->count;
    spread->request->parked = spread;
    spread->request->gone = spread_gone;
    assert(spread->out > 0);
    for (uint32_t i = 0; i < count; i++)
        if (spread->errands[i] != NULL) errand_send(spread->errands[i]);
}

void spread_refuse(struct spread *spread, struct request *request)
{
    if (spread != NULL && spread->errands != NULL) spread_end(spread);
    request_close(request, "no memory to ask another shard");
}

/* ---- whole requests -------------------------------------------------------------------------- */

/* Values of the answer that lie in files are the client's request's now. */
static void *join_whole(struct spread *spread)
{
    struct errand *errand = NULL;
    for (uint32_t i = 0; errand == NULL; i++)
        errand = spread->errands[i];
    if (spread->request->api->key != wire_fetch_request.api_key) return errand->response;
    struct fetch_response *response = request_response(spread->request);
    if (response == NULL) return NULL;
    *response = *(const struct fetch_response *)errand->response;
    for (int32_t t = 0; t < response->responses.count; t++) {
        struct fetch_response_fetchable_topic_response *topic = &response->responses.items[t];
        for (int32_t p = 0; p < topic->partitions.count; p++)
            topic->partitions.items[p].records =
                errand_value(errand, topic->partitions.items[p].records);
    }
    return response;
}

void spread_whole(struct request *request, uint32_t owner)
{
    struct shard *shard = request->shard;
    if (owner == shard->index) {
        handler_of(request->api->key)(shard, request);
        return;
    }
    struct spread *spread = spread_new(request, NULL);
    if (spread == NULL || !spread_add(spread, owner, request->message)) {
        spread_refuse(spread, request);
        return;
    }
    spread->join = join_whole;
    spread_send(spread);
}

static void spread_all(struct request *request, const struct spread_rule *rule)
{
    struct spread *spread = spread_new(request, rule);
    bool added = spread != NULL;
    for (uint32_t i = 0; added && i < request->shard->count; i++)
        added = spread_add(spread, i, request->message);
    if (!added) {
        spread_refuse(spread, request);
        return;
    }
    spread->join = rule->join;
    spread_send(spread);
}

/* A session's shard is told by its id (fetch_session.h). */
static uint32_t session_owner(const struct request *request)
{
    const struct fetch_request *in = request->message;
    bool named = request->version >= FETCH_SESSIONS_SINCE && in->session_id != 0;
    return named ? (uint32_t)in->session_id % request->shard->count : request->shard->index;
}

static void spread_handle(struct shard *shard, struct request *request)
{
    const struct spread_rule *rule = rule_of(request->api->key);
    struct node *node = node_of(shard);
    struct view group;
    assert(rule != NULL);
    if (request->listener->kind == WIRE_CONTROLLER) {
        spread_whole(request, 0); /* The control part's listener is the first shard's. */
        return;
    }
    uint8_t place = rule->place;
    if (place == PLACE_KEYS && request->version < rule->keys_since) place = PLACE_GROUP;
    switch ((enum spread_place)place) {
    case PLACE_CONTROL: spread_whole(request, 0); break;
    case PLACE_SESSION: spread_whole(request, session_owner(request)); break;
    case PLACE_ALL: spread_all(request, rule); break;
    case PLACE_TOPICS: spread_topics(request, rule); break;
    case PLACE_KEYS: spread_keys(request, rule); break;
    case PLACE_GROUP:
        memcpy(&group, (const uint8_t *)request->message + rule->group, sizeof(group));
        spread_whole(request, shards_group_owner(node, group));
        break;
    }
}

void spread_handlers(const struct net_handler *handlers, uint32_t count, struct net_handler *out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] = handlers[i];
        if (rule_of(handlers[i].api_key) != NULL) out[i].handle = spread_handle;
    }
}
