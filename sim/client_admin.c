/* client_admin.c - see client_admin.h. */
#include "sim/client_admin.h"

#include "gen/alter_client_quotas_request.h"
#include "gen/alter_client_quotas_response.h"
#include "gen/create_topics_request.h"
#include "gen/create_topics_response.h"
#include "gen/errors.h"
#include "gen/metadata_request.h"
#include "gen/metadata_response.h"

#define API_METADATA      3
#define API_CREATE_TOPICS 19
#define API_ALTER_QUOTAS  49

static struct client_admin *admin_of(struct client *client)
{
    return container_of(client, struct client_admin, client);
}

/* Is the quota not as it is to be? */
static bool admin_is_to_limit(const struct client_admin *admin)
{
    if (admin->request_percentage <= 0) return false;
    return admin->client.storm ? !admin->limited : !admin->lifted;
}

static void admin_limit(struct client_admin *admin)
{
    struct alter_client_quotas_request request;
    struct alter_client_quotas_request_entry_data entry;
    struct alter_client_quotas_request_entity_data entity;
    struct alter_client_quotas_request_op_data op;
    wire_defaults(&wire_alter_client_quotas_request, &request);
    wire_struct_defaults(&wire_alter_client_quotas_request_entry_data_shape, &entry);
    wire_struct_defaults(&wire_alter_client_quotas_request_entity_data_shape, &entity);
    wire_struct_defaults(&wire_alter_client_quotas_request_op_data_shape, &op);
    entity.entity_type = VIEW("client-id");
    entity.entity_name = VIEW(CLIENT_MEMBER_ID);
    op.key = VIEW("request_percentage");
    op.value = admin->request_percentage;
    op.remove = admin->lifts = !admin->client.storm;
    entry.entity.items = &entity;
    entry.ops.items = &op;
    request.entries.items = &entry;
    entry.entity.count = entry.ops.count = request.entries.count = 1;
    wire_link_send(&admin->client.link, API_ALTER_QUOTAS, 1, &request);
}

static void admin_create(struct client *client, const struct history_topic *topic)
{
    struct create_topics_request request;
    struct create_topics_request_creatable_topic item;
    wire_defaults(&wire_create_topics_request, &request);
    wire_struct_defaults(&wire_create_topics_request_creatable_topic_shape, &item);
    item.name = view_of_string(topic->name);
    item.num_partitions = topic->partitions;
    item.replication_factor = 1;
    request.topics.items = &item;
    request.topics.count = 1;
    request.timeout_ms = 5000;
    wire_link_send(&client->link, API_CREATE_TOPICS, 7, &request);
}

static void admin_look(struct client *client)
{
    struct metadata_request request;
    wire_defaults(&wire_metadata_request, &request);
    request.topics.items = NULL;
    request.topics.count = -1;
    request.allow_auto_topic_creation = false;
    wire_link_send(&client->link, API_METADATA, 12, &request);
}

static void admin_fill(struct client *client)
{
    struct history *history = client->history;
    if (client->link.wait_count > 0) return;
    if (admin_is_to_limit(admin_of(client))) {
        admin_limit(admin_of(client));
        return;
    }
    for (uint32_t i = 0; i < history->topic_count; i++) {
        if (history->topics[i].known) continue;
        admin_create(client, &history->topics[i]);
        return;
    }
    admin_look(client);
}

static void admin_listed(struct client *client, const struct metadata_response *in)
{
    struct history *history = client->history;
    bool seen[HISTORY_TOPICS_MAX] = {false};
    for (int32_t i = 0; i < in->topics.count; i++) {
        const struct metadata_response_metadata_response_topic *topic = &in->topics.items[i];
        if (topic->error_code != 0) {
            client_error(client, "Metadata", topic->error_code);
            return;
        }
        if (topic->is_internal || !history_topic_name(topic->name)) continue;
        int32_t at = client_topic_of(client, topic->name, topic->topic_id);
        if (at < 0) return;
        seen[at] = true;
        history_topic(history, (uint32_t)at, topic->topic_id, topic->partitions.count);
    }
    /* A shard that had no memory to follow says so, and its node is to be started anew. */
    if (history->trouble_us == INT64_MAX || client->link.troubled) return;
    for (uint32_t i = 0; i < history->topic_count; i++)
        if (history->topics[i].known && !seen[i])
            history_violation(history, "I17: topic %s, once created, is not listed",
                              history->topics[i].name);
}

static void admin_limited(struct client_admin *admin, const struct alter_client_quotas_response *in)
{
    int16_t error = in->entries.count == 1 ? in->entries.items[0].error_code : -1;
    if (error != 0)
        client_error(&admin->client, "AlterClientQuotas", error);
    else if (admin->lifts)
        admin->lifted = true;
    else
        admin->limited = true;
}

static void admin_answered(struct client *client, const struct wire_link_wait *wait, void *in)
{
    client_rests(client, 20 + chance_below(&client->chance, 400));
    if (wait->api == API_METADATA) {
        admin_listed(client, in);
        return;
    }
    if (wait->api == API_ALTER_QUOTAS) {
        admin_limited(admin_of(client), in);
        return;
    }
    const struct create_topics_response *created = in;
    for (int32_t i = 0; i < created->topics.count; i++) {
        const struct create_topics_response_creatable_topic_result *topic =
            &created->topics.items[i];
        int32_t at = client_topic_of(client, topic->name, topic->topic_id);
        if (at < 0) return;
        if (topic->error_code == 0)
            history_topic(client->history, (uint32_t)at, topic->topic_id, topic->num_partitions);
        else if (topic->error_code == KAFKA_TOPIC_ALREADY_EXISTS) /* An earlier try was taken. */
            admin_look(client);
        else
            client_error(client, "CreateTopics", topic->error_code);
    }
}

static void admin_lost(struct client *client)
{
    (void)client;
}

static bool admin_finished(const struct client *client)
{
    if (admin_is_to_limit((const void *)client)) return false;
    for (uint32_t i = 0; i < client->history->topic_count; i++)
        if (!client->history->topics[i].known) return false;
    return true;
}

static const struct client_kind client_admin_kind = {
    .name = "admin",
    .size_bytes = sizeof(struct client_admin),
    .fill = admin_fill,
    .answered = admin_answered,
    .lost = admin_lost,
    .finished = admin_finished,
};

struct client_admin *client_admin_new(const struct client_seat *seat)
{
    return admin_of(client_new(&client_admin_kind, seat));
}
