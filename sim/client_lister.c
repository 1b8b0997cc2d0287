/* client_lister.c - see client_lister.h. One request at a time, for all partitions of a topic. */
#include "sim/client_lister.h"

#include "gen/list_offsets_request.h"
#include "gen/list_offsets_response.h"
#include "gen/offset_for_leader_epoch_request.h"
#include "gen/offset_for_leader_epoch_response.h"

#define API_LIST_OFFSETS    2
#define API_EPOCH_END       23
#define LIST_OFFSETS_NEWEST 11
#define LIST_OFFSETS_OLDEST 1
#define BY_TIME             0
#define TIME_FIRST_MS       1790000000000
#define TIMES_MS            5000

/* What is asked for: a time is drawn for BY_TIME. In a storm by chance, in an audit all of it. */
static const int64_t places_asked[] = {PLACES_LATEST,
                                       PLACES_EARLIEST,
                                       PLACES_MAX_TIMESTAMP,
                                       PLACES_EARLIEST_LOCAL,
                                       PLACES_TIERED,
                                       PLACES_PENDING,
                                       BY_TIME,
                                       BY_TIME,
                                       BY_TIME,
                                       PLACES_OF_EPOCH,
                                       PLACES_OF_EPOCH};

static struct client_lister *lister_of(struct client *client)
{
    return container_of(client, struct client_lister, client);
}

/* Near a record that is known, on it, behind it; or anywhere. */
static int64_t lister_time(struct client_lister *lister, uint32_t log)
{
    struct chance *chance = &lister->client.chance;
    const struct history_log *known = &lister->client.history->logs[log];
    if (chance_percent(chance, 5)) return 0;
    if (chance_percent(chance, 5)) return TIME_FIRST_MS * 2;
    if (known->end == 0 || chance_percent(chance, 30))
        return TIME_FIRST_MS + chance_below(chance, TIMES_MS);
    const struct history_entry *entry = &known->entries[chance_below(chance, (uint32_t)known->end)];
    return history_timestamp_ms(entry->value) + (int64_t)chance_below(chance, 3) - 1;
}

/* The epoch that the client says it believes in: mostly none. */
static int32_t lister_believes(struct client_lister *lister, uint32_t log)
{
    struct chance *chance = &lister->client.chance;
    int32_t epoch = lister->client.history->logs[log].leader_epoch;
    if (chance_percent(chance, 70)) return -1;
    return MAX(-1, epoch - 1 + (int32_t)chance_below(chance, 3));
}

static int64_t lister_draws(struct client_lister *lister)
{
    struct chance *chance = &lister->client.chance;
    if (chance_percent(chance, 2)) return PLACES_PENDING - 1; /* There is no such place. */
    return places_asked[chance_below(chance, ARRAY_SIZE(places_asked))];
}

/* The questions: one for each partition. */
static void lister_prepare(struct client_lister *lister, uint32_t topic, int64_t place)
{
    struct chance *chance = &lister->client.chance;
    const struct history *history = lister->client.history;
    uint32_t versions = LIST_OFFSETS_NEWEST - LIST_OFFSETS_OLDEST + 1;
    int16_t version = (int16_t)(LIST_OFFSETS_OLDEST + chance_below(chance, versions));
    if (lister->audit || chance_percent(chance, 70)) version = LIST_OFFSETS_NEWEST;
    lister->asked_count = (uint32_t)history->topics[topic].partitions;
    for (uint32_t i = 0; i < lister->asked_count; i++) {
        struct places_one *one = &lister->asked[i];
        uint32_t log = topic * HISTORY_PARTITIONS_MAX + i;
        *one = (struct places_one){.log = log, .version = version, .timestamp = place};
        if (place == BY_TIME) one->timestamp = lister_time(lister, log);
        if (place == PLACES_OF_EPOCH)
            one->of_epoch =
                (int32_t)chance_below(chance, (uint32_t)history->logs[log].leader_epoch + 3) - 1;
        one->current_epoch = -1;
        if (version >= 4 && !lister->audit) one->current_epoch = lister_believes(lister, log);
        places_ask(lister->places, one);
    }
}

static void lister_ask_offsets(struct client_lister *lister, const char *topic_name)
{
    struct list_offsets_request request;
    struct list_offsets_request_list_offsets_topic topic;
    struct list_offsets_request_list_offsets_partition partitions[HISTORY_PARTITIONS_MAX];
    wire_defaults(&wire_list_offsets_request, &request);
    wire_struct_defaults(&wire_list_offsets_request_list_offsets_topic_shape, &topic);
    for (uint32_t i = 0; i < lister->asked_count; i++) {
        wire_struct_defaults(&wire_list_offsets_request_list_offsets_partition_shape,
                             &partitions[i]);
        partitions[i].partition_index = (int32_t)i;
        partitions[i].timestamp = lister->asked[i].timestamp;
        partitions[i].current_leader_epoch = lister->asked[i].current_epoch;
    }
    topic.name = view_of_string(topic_name);
    topic.partitions.items = partitions;
    topic.partitions.count = (int32_t)lister->asked_count;
    request.replica_id = -1;
    request.isolation_level = (int8_t)chance_below(&lister->client.chance, 2);
    request.topics.items = &topic;
    request.topics.count = 1;
    wire_link_send(&lister->client.link, API_LIST_OFFSETS, lister->asked[0].version, &request);
}

static void lister_ask_epochs(struct client_lister *lister, const char *topic_name)
{
    struct offset_for_leader_epoch_request request;
    struct offset_for_leader_epoch_request_offset_for_leader_topic topic;
    struct offset_for_leader_epoch_request_offset_for_leader_partition
        partitions[HISTORY_PARTITIONS_MAX];
    wire_defaults(&wire_offset_for_leader_epoch_request, &request);
    wire_struct_defaults(&wire_offset_for_leader_epoch_request_offset_for_leader_topic_shape,
                         &topic);
    for (uint32_t i = 0; i < lister->asked_count; i++) {
        wire_struct_defaults(
            &wire_offset_for_leader_epoch_request_offset_for_leader_partition_shape,
            &partitions[i]);
        partitions[i].partition = (int32_t)i;
        partitions[i].leader_epoch = lister->asked[i].of_epoch;
        partitions[i].current_leader_epoch = lister->asked[i].current_epoch;
    }
    topic.topic = view_of_string(topic_name);
    topic.partitions.items = partitions;
    topic.partitions.count = (int32_t)lister->asked_count;
    request.replica_id = -1;
    request.topics.items = &topic;
    request.topics.count = 1;
    wire_link_send(&lister->client.link, API_EPOCH_END,
                   (int16_t)(2 + chance_below(&lister->client.chance, 3)), &request);
}

static void lister_fill(struct client *client)
{
    struct client_lister *lister = lister_of(client);
    const struct history *history = client->history;
    uint32_t topic = chance_below(&client->chance, history->topic_count);
    int64_t place = lister_draws(lister);
    if (client->link.wait_count > 0 || (!client->storm && !lister->audit)) return;
    if (lister->audit) {
        if (lister->audit_at == history->topic_count * ARRAY_SIZE(places_asked)) return;
        topic = lister->audit_at / ARRAY_SIZE(places_asked);
        place = places_asked[lister->audit_at % ARRAY_SIZE(places_asked)];
    }
    client_rests(client, 5 + (lister->audit ? 0 : chance_below(&client->chance, 200)));
    if (!history->topics[topic].known) return;
    lister_prepare(lister, topic, place);
    if (place == PLACES_OF_EPOCH)
        lister_ask_epochs(lister, history->topics[topic].name);
    else
        lister_ask_offsets(lister, history->topics[topic].name);
}

/* What the answer says of a partition. False: the answer is not looked at any more. */
static bool lister_told(struct client_lister *lister, int32_t partition, struct places_one told)
{
    if (partition < 0 || (uint32_t)partition >= lister->asked_count) {
        history_violation(lister->client.history, "P: an answer for a partition not asked for");
        return false;
    }
    struct places_one *one = &lister->asked[partition];
    one->error = told.error;
    one->offset = told.offset;
    one->timestamp_ms = told.timestamp_ms;
    one->epoch = told.epoch;
    (void)places_answered(lister->places, one);
    if (one->error == 0) return true;
    client_error(&lister->client, "offsets", one->error);
    return false;
}

static bool lister_told_offsets(struct client_lister *lister,
                                const struct list_offsets_response *in)
{
    if (in->topics.count != 1 || in->topics.items[0].partitions.count != (int)lister->asked_count) {
        history_violation(lister->client.history, "P: ListOffsets: not what was asked for");
        return false;
    }
    for (uint32_t i = 0; i < lister->asked_count; i++) {
        const struct list_offsets_response_list_offsets_partition_response *told =
            &in->topics.items[0].partitions.items[i];
        struct places_one one = {.error = told->error_code,
                                 .offset = told->offset,
                                 .timestamp_ms = told->timestamp,
                                 .epoch = told->leader_epoch};
        if (!lister_told(lister, told->partition_index, one)) return false;
    }
    return true;
}

static bool lister_told_epochs(struct client_lister *lister,
                               const struct offset_for_leader_epoch_response *in)
{
    if (in->topics.count != 1 || in->topics.items[0].partitions.count != (int)lister->asked_count) {
        history_violation(lister->client.history, "P: epochs: not what was asked for");
        return false;
    }
    for (uint32_t i = 0; i < lister->asked_count; i++) {
        const struct offset_for_leader_epoch_response_epoch_end_offset *told =
            &in->topics.items[0].partitions.items[i];
        struct places_one one = {.error = told->error_code,
                                 .offset = told->end_offset,
                                 .timestamp_ms = -1,
                                 .epoch = told->leader_epoch};
        if (!lister_told(lister, told->partition, one)) return false;
    }
    return true;
}

static void lister_answered(struct client *client, const struct wire_link_wait *wait, void *in)
{
    struct client_lister *lister = lister_of(client);
    bool all = wait->api == API_EPOCH_END ? lister_told_epochs(lister, in)
                                          : lister_told_offsets(lister, in);
    lister->audit_at += all && lister->audit;
}

static void lister_lost(struct client *client)
{
    (void)client; /* It asks something else. */
}

static bool lister_finished(const struct client *client)
{
    const struct client_lister *lister = (const void *)client;
    return !lister->audit ||
           lister->audit_at == client->history->topic_count * ARRAY_SIZE(places_asked);
}

static const struct client_kind lister_kind = {
    .name = "lister",
    .size_bytes = sizeof(struct client_lister),
    .fill = lister_fill,
    .answered = lister_answered,
    .lost = lister_lost,
    .finished = lister_finished,
};

struct client_lister *client_lister_new(const struct client_seat *seat, struct places *places)
{
    struct client_lister *lister = lister_of(client_new(&lister_kind, seat));
    lister->places = places;
    return lister;
}

void client_lister_audits(struct client_lister *lister)
{
    lister->audit = true;
    lister->audit_at = 0;
    wire_link_drop(&lister->client.link); /* An answer under way is not of the audit. */
}
