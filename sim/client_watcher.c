/* client_watcher.c - see client_watcher.h. */
#include "sim/client_watcher.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "gen/consumer_group_describe_request.h"
#include "gen/consumer_group_describe_response.h"
#include "gen/consumer_protocol_assignment.h"
#include "gen/describe_groups_request.h"
#include "gen/describe_groups_response.h"
#include "gen/errors.h"

#define API_DESCRIBE_GROUPS         15
#define API_CONSUMER_GROUP_DESCRIBE 69

static struct client_watcher *watcher_of(struct client *client)
{
    return container_of(client, struct client_watcher, client);
}

/* ---- a tale: one line for each member, sorted ------------------------------------------------ */

struct tale {
    char lines[MEMBERSHIP_SEATS_MAX * 2][128];
    uint32_t count;
};

static void tale_member(struct tale *tale, const char *id, const bool owns[HISTORY_LOGS_MAX])
{
    char *line = tale->lines[tale->count % ARRAY_SIZE(tale->lines)];
    int used = snprintf(line, 80, "%s:", id);
    for (uint32_t log = 0; log < HISTORY_LOGS_MAX; log++)
        if (owns[log]) used += snprintf(line + used, 128 - (size_t)used, "%x", log);
    tale->count++;
}

static int lines_compared(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void tale_told(struct tale *tale, int32_t epoch, char *out, size_t room)
{
    uint32_t count = MIN(tale->count, (uint32_t)ARRAY_SIZE(tale->lines));
    size_t used = (size_t)snprintf(out, room, "%d ", epoch);
    qsort(tale->lines, count, sizeof(tale->lines[0]), lines_compared);
    for (uint32_t i = 0; i < count && used < room; i++)
        used += (size_t)snprintf(out + used, room - used, "%s ", tale->lines[i]);
}

static void members_tale(const struct membership *group, char *out, size_t room)
{
    struct tale tale = {.count = 0};
    for (uint32_t i = 0; i < group->seat_count; i++)
        if (group->seats[i].in) tale_member(&tale, group->seats[i].member_id, group->seats[i].owns);
    tale_told(&tale, 0, out, room);
}

static void id_of(struct view id, char out[64])
{
    (void)snprintf(out, 64, "%.*s", (int)MIN(id.size, 63u), (const char *)id.data);
}

static bool classic_tale(struct client_watcher *watcher,
                         const struct describe_groups_response_described_group *in,
                         char *out,
                         size_t room)
{
    struct tale tale = {.count = 0};
    struct arena *arena = &watcher->client.link.reply;
    for (int32_t i = 0; i < in->members.count; i++) {
        bool owns[HISTORY_LOGS_MAX] = {false};
        char id[64];
        struct consumer_protocol_assignment told;
        struct reader bytes = reader_of(in->members.items[i].member_assignment);
        int16_t version = (int16_t)reader_be16(&bytes);
        id_of(in->members.items[i].member_id, id);
        if (bytes.fault != READER_OK || version < 0 || version > 3 ||
            !wire_decode(&bytes, wire_form(&wire_consumer_protocol_assignment, version), arena,
                         &told))
            return false; /* Not stable. */
        for (int32_t k = 0; k < told.assigned_partitions.count; k++) {
            const struct consumer_protocol_assignment_topic_partition *item =
                &told.assigned_partitions.items[k];
            int32_t t = client_topic_of(&watcher->client, item->topic, (struct uuid){{0xff}});
            for (int32_t p = 0; t >= 0 && p < item->partitions.count; p++)
                owns[t * (int32_t)HISTORY_PARTITIONS_MAX + item->partitions.items[p]] = true;
        }
        tale_member(&tale, id, owns);
    }
    tale_told(&tale, 0, out, room);
    return true;
}

static void consumer_tale(struct client_watcher *watcher,
                          const struct consumer_group_describe_response_described_group *in,
                          char *out,
                          size_t room)
{
    struct tale tale = {.count = 0};
    for (int32_t i = 0; i < in->members.count; i++) {
        bool owns[HISTORY_LOGS_MAX] = {false};
        char id[64];
        const struct consumer_group_describe_response_member *member = &in->members.items[i];
        id_of(member->member_id, id);
        if (member->member_epoch < 0) continue; /* A static one that is away. */
        for (int32_t k = 0; k < member->assignment.topic_partitions.count; k++) {
            const struct consumer_group_describe_response_topic_partitions *item =
                &member->assignment.topic_partitions.items[k];
            int32_t t = client_topic_with(&watcher->client, item->topic_id);
            for (int32_t p = 0; t >= 0 && p < item->partitions.count; p++)
                owns[t * (int32_t)HISTORY_PARTITIONS_MAX + item->partitions.items[p]] = true;
        }
        tale_member(&tale, id, owns);
    }
    tale_told(&tale, 0, out, room);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void watcher_ask_classic(struct client_watcher *watcher)
{
    struct describe_groups_request request;
    struct view name = view_of_string(watcher->watched[watcher->asked].group->name);
    wire_defaults(&wire_describe_groups_request, &request);
    request.groups.items = &name;
    request.groups.count = 1;
    watcher->asked_us = sim_now_us(watcher->world);
    wire_link_send(&watcher->client.link, API_DESCRIBE_GROUPS, 5, &request);
}

static void watcher_ask(struct client_watcher *watcher)
{
    struct consumer_group_describe_request request;
    struct view name = view_of_string(watcher->watched[watcher->asked].group->name);
    wire_defaults(&wire_consumer_group_describe_request, &request);
    request.group_ids.items = &name;
    request.group_ids.count = 1;
    watcher->asked_us = sim_now_us(watcher->world);
    wire_link_send(&watcher->client.link, API_CONSUMER_GROUP_DESCRIBE, 1, &request);
}

static void watcher_fill(struct client *client)
{
    struct client_watcher *watcher = watcher_of(client);
    client_rests(client, 50 + chance_below(&client->chance, 300));
    if (watcher->count == 0 || client->link.wait_count > 0) return;
    if (client->storm) {
        watcher->asked = chance_below(&client->chance, watcher->count);
        client_rests(client, 500 + chance_below(&client->chance, 2000));
    } else {
        while (watcher->asked < watcher->count && watcher->watched[watcher->asked].told)
            watcher->asked++;
        if (watcher->asked == watcher->count) return;
        if (!membership_settled(watcher->watched[watcher->asked].group)) return;
    }
    watcher->asked_changes = watcher->watched[watcher->asked].group->changes;
    watcher_ask(watcher);
}

/* Else it has begun to change, and its log does not say so yet. */
static bool state_is_told(struct view state)
{
    return view_is(state, "Stable") || view_is(state, "Empty");
}

/* What the coordinator tells of a settled group. */
static void watcher_told(struct client_watcher *watcher, const char *tale)
{
    char members[sizeof(watcher->watched[0].tale)];
    struct client_watched *watched = &watcher->watched[watcher->asked];
    const struct membership *group = watched->group;
    if (!watcher->audit || group->changes != watcher->asked_changes || !membership_settled(group) ||
        !membership_speaks(group, sim_now_us(watcher->world)))
        return;
    /* A classic member that left while the disk was full is in the log still, and back for its
     * session after a restart, as in Kafka: that nobody is in has to be so only in the end. */
    if (watched->tale[0] != '\0' && watched->changes == group->changes &&
        membership_anybody(group) && strcmp(watched->tale, tale) != 0)
        history_violation(watcher->client.history, "I18: %s was %s, is now %s", group->name,
                          watched->tale, tale);
    watcher->compared += watched->tale[0] != '\0' && watched->changes == group->changes;
    members_tale(group, members, sizeof(members));
    if (watcher->client.history->print)
        printf("   %s told: %s members: %s\n", group->name, tale, members);
    if (strcmp(members, tale) != 0) return; /* One that died is still counted; asked again. */
    (void)snprintf(watched->tale, sizeof(watched->tale), "%s", tale);
    watched->changes = group->changes;
    watched->told = true;
    watcher->matched++;
}

static void watcher_sees_loaded(struct client_watcher *watcher)
{
    membership_loaded(watcher->watched[watcher->asked].group, watcher->asked_us,
                      sim_now_us(watcher->world));
}

static void watcher_classic(struct client_watcher *watcher,
                            const struct describe_groups_response *in)
{
    char tale[sizeof(watcher->watched[0].tale)];
    int16_t error = in->groups.count == 1 ? in->groups.items[0].error_code : -1;
    if (error == 0) watcher_sees_loaded(watcher);
    if (error != 0) {
        client_error(&watcher->client, "DescribeGroups", error);
    } else if (view_is(in->groups.items[0].group_state, "Dead")) { /* Never was, or has ended. */
        watcher_told(watcher, "0 ");
    } else if (state_is_told(in->groups.items[0].group_state) &&
               classic_tale(watcher, &in->groups.items[0], tale, sizeof(tale))) {
        watcher_told(watcher, tale);
    }
}

static void watcher_answered(struct client *client, const struct wire_link_wait *wait, void *in)
{
    struct client_watcher *watcher = watcher_of(client);
    const struct consumer_group_describe_response *described = in;
    char tale[sizeof(watcher->watched[0].tale)];
    if (wait->api == API_DESCRIBE_GROUPS) {
        watcher_classic(watcher, in);
        return;
    }
    int16_t error = described->groups.count == 1 ? described->groups.items[0].error_code : -1;
    if (error == 0) watcher_sees_loaded(watcher);
    if (error == KAFKA_GROUP_ID_NOT_FOUND) {
        watcher_ask_classic(watcher);
    } else if (error != 0) {
        client_error(client, "ConsumerGroupDescribe", error);
    } else if (state_is_told(described->groups.items[0].group_state)) {
        consumer_tale(watcher, &described->groups.items[0], tale, sizeof(tale));
        watcher_told(watcher, tale);
    }
}

static void watcher_lost(struct client *client)
{
    (void)client;
}

static bool watcher_finished(const struct client *client)
{
    const struct client_watcher *watcher = (const void *)client;
    for (uint32_t i = 0; watcher->audit && i < watcher->count; i++)
        if (!watcher->watched[i].told) return false;
    return true;
}

static const struct client_kind watcher_kind = {
    .name = "watcher",
    .size_bytes = sizeof(struct client_watcher),
    .fill = watcher_fill,
    .answered = watcher_answered,
    .lost = watcher_lost,
    .finished = watcher_finished,
};

struct client_watcher *client_watcher_new(const struct client_seat *seat)
{
    struct client_watcher *watcher = watcher_of(client_new(&watcher_kind, seat));
    watcher->world = seat->world;
    return watcher;
}

void client_watcher_watches(struct client_watcher *watcher, struct membership *group)
{
    assert(watcher->count < HISTORY_GROUPS_MAX);
    watcher->watched[watcher->count++].group = group;
}

void client_watcher_audits(struct client_watcher *watcher)
{
    watcher->audit = true;
    watcher->asked = 0;
    for (uint32_t i = 0; i < watcher->count; i++)
        watcher->watched[i].told = false;
}
