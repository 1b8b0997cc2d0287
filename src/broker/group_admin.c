/* group_admin.c - looking at groups and deleting them: DescribeGroups, ConsumerGroupDescribe,
 * ListGroups, DeleteGroups.
 *
 * Each may touch many partitions of the coordinator: every part of the answer is made at once and
 * held by its partition; the last one that is let go sends the whole. */
#include "broker/broker.h"
#include "broker/coordinator.h"
#include "core/consumer_group.h"
#include "core/names.h"
#include "gen/consumer_group_describe_request.h"
#include "gen/consumer_group_describe_response.h"
#include "gen/delete_groups_request.h"
#include "gen/delete_groups_response.h"
#include "gen/describe_groups_request.h"
#include "gen/describe_groups_response.h"
#include "gen/list_groups_request.h"
#include "gen/list_groups_response.h"

/* An answer of several partitions. */
struct gather {
    struct request *request;
    void *response;
    uint32_t pending; /* Parts that are held, and one for who is still adding. */
    struct gather_part *parts;
    void *items; /* Of the answer, one for each part; NULL without gather_begin. */
};

struct gather_part {
    struct coordinator_hold hold;
    struct gather *gather;
    /* The part's answer fails. */
    void (*fail)(struct gather_part *part, enum kafka_error error);
    void *out;
};

static void gather_less(struct gather *gather)
{
    if (--gather->pending == 0) request_reply(gather->request, gather->response);
}

static void gather_done(struct coordinator_hold *hold, enum kafka_error error)
{
    struct gather_part *part = container_of(hold, struct gather_part, hold);
    if (error != KAFKA_NONE) {
        request_error(part->gather->request, (int16_t)error);
        part->fail(part, error);
    }
    gather_less(part->gather);
}

static void gather_hold(struct gather_part *part, struct coordinator_part *at)
{
    part->gather->pending++;
    part->hold.done = gather_done;
    coordinator_hold(at, &part->hold);
}

/* Set up part number `at`, which is to fill `out`. */
static struct gather_part *gather_part(struct gather *gather,
                                       size_t at,
                                       void (*fail)(struct gather_part *part,
                                                    enum kafka_error error),
                                       void *out)
{
    gather->parts[at] = (struct gather_part){.gather = gather, .fail = fail, .out = out};
    return &gather->parts[at];
}

static struct gather *gather_new(struct request *request)
{
    struct gather *gather = broker_array(request, 1, sizeof(*gather));
    if (gather == NULL) return NULL;
    gather->request = request;
    gather->response = request_response(request);
    gather->pending = 1;
    return gather->response == NULL ? NULL : gather;
}

static void gather_no_memory(struct request *request)
{
    request_close(request, "no memory for an answer about groups");
}

/* An answer with an item of `item_bytes` for each of `count` things that are asked for. NULL: the
 * request was closed for want of memory. */
static struct gather *gather_begin(struct request *request, size_t count, size_t item_bytes)
{
    struct gather *gather = gather_new(request);
    if (gather != NULL) {
        gather->items = broker_array(request, count, item_bytes);
        gather->parts = broker_array(request, count, sizeof(gather->parts[0]));
        if (count == 0 || (gather->items != NULL && gather->parts != NULL)) return gather;
    }
    gather_no_memory(request);
    return NULL;
}

/* ---- DescribeGroups -------------------------------------------------------------------------- */

static void describe_fail(struct gather_part *part, enum kafka_error error)
{
    struct describe_groups_response_described_group *out = part->out;
    struct view id = out->group_id;
    wire_struct_defaults(&wire_describe_groups_response_described_group_shape, out);
    out->group_id = id;
    out->error_code = (int16_t)error;
}

static void describe_one(struct request *request, struct gather_part *item)
{
    const struct describe_groups_request *in = request->message;
    struct describe_groups_response_described_group *out = item->out;
    struct coordinator_part *part;
    enum kafka_error error = coordinator_find(node_of(request->shard), out->group_id, &part);
    if (!auth_allows(request, AUTH_DESCRIBE, AUTH_GROUP, out->group_id))
        error = KAFKA_GROUP_AUTHORIZATION_FAILED;
    if (error == KAFKA_NONE &&
        !group_describe(coordinator_groups(part), &request->arena, request->version, out))
        error = KAFKA_COORDINATOR_NOT_AVAILABLE;
    if (error == KAFKA_NONE) {
        if (out->error_code != KAFKA_NONE)
            request_error(request, out->error_code);
        else if (in->include_authorized_operations)
            out->authorized_operations = AUTH_GROUP_OPERATIONS;
        gather_hold(item, part);
        return;
    }
    request_error(request, (int16_t)error);
    describe_fail(item, error);
}

void handle_describe_groups(struct shard *shard, struct request *request)
{
    const struct describe_groups_request *in = request->message;
    size_t count = (size_t)MAX(in->groups.count, 0);
    (void)shard;
    struct gather *gather =
        gather_begin(request, count, sizeof(struct describe_groups_response_described_group));
    if (gather == NULL) return;
    struct describe_groups_response_described_group *items = gather->items;
    struct describe_groups_response *out = gather->response;
    out->groups.items = items;
    out->groups.count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        wire_struct_defaults(&wire_describe_groups_response_described_group_shape, &items[i]);
        items[i].group_id = in->groups.items[i];
        describe_one(request, gather_part(gather, i, describe_fail, &items[i]));
    }
    gather_less(gather);
}

/* ---- ConsumerGroupDescribe ------------------------------------------------------------------- */

static void consumer_fail(struct gather_part *part, enum kafka_error error)
{
    struct consumer_group_describe_response_described_group *out = part->out;
    struct view id = out->group_id;
    wire_struct_defaults(&wire_consumer_group_describe_response_described_group_shape, out);
    out->group_id = id;
    out->error_code = (int16_t)error;
}

static bool consumer_topics_allowed(
    struct request *request,
    const struct consumer_group_describe_response_assignment *assignment)
{
    for (int32_t i = 0; i < assignment->topic_partitions.count; i++)
        if (!auth_allows(request, AUTH_DESCRIBE, AUTH_TOPIC,
                         assignment->topic_partitions.items[i].topic_name))
            return false;
    return true;
}

/* Whoever may not see one of its topics sees nothing of the group. */
static bool consumer_allowed(struct request *request,
                             const struct consumer_group_describe_response_described_group *group)
{
    for (int32_t m = 0; m < group->members.count; m++) {
        const struct consumer_group_describe_response_member *member = &group->members.items[m];
        for (int32_t i = 0; i < member->subscribed_topic_names.count; i++)
            if (!auth_allows(request, AUTH_DESCRIBE, AUTH_TOPIC,
                             member->subscribed_topic_names.items[i]))
                return false;
        if (!consumer_topics_allowed(request, &member->assignment) ||
            !consumer_topics_allowed(request, &member->target_assignment))
            return false;
    }
    return true;
}

static enum kafka_error consumer_one(struct request *request,
                                     struct gather_part *item,
                                     struct coordinator_part **part)
{
    const struct consumer_group_describe_request *in = request->message;
    struct consumer_group_describe_response_described_group *out = item->out;
    struct node *node = node_of(request->shard);
    if (!broker_consumer_groups(node)) return KAFKA_UNSUPPORTED_VERSION;
    if (!auth_allows(request, AUTH_DESCRIBE, AUTH_GROUP, out->group_id))
        return KAFKA_GROUP_AUTHORIZATION_FAILED;
    if (out->group_id.null || out->group_id.size == 0) return KAFKA_INVALID_GROUP_ID;
    enum kafka_error error = coordinator_find(node, out->group_id, part);
    if (error != KAFKA_NONE) return error;
    if (!consumer_group_describe(coordinator_groups(*part), &request->arena, out))
        return KAFKA_COORDINATOR_NOT_AVAILABLE;
    if (!consumer_allowed(request, out)) return KAFKA_TOPIC_AUTHORIZATION_FAILED;
    if (in->include_authorized_operations && out->error_code == KAFKA_NONE)
        out->authorized_operations = AUTH_GROUP_OPERATIONS;
    return KAFKA_NONE;
}

void handle_consumer_group_describe(struct shard *shard, struct request *request)
{
    const struct consumer_group_describe_request *in = request->message;
    size_t count = (size_t)MAX(in->group_ids.count, 0);
    (void)shard;
    struct gather *gather = gather_begin(
        request, count, sizeof(struct consumer_group_describe_response_described_group));
    if (gather == NULL) return;
    struct consumer_group_describe_response_described_group *items = gather->items;
    struct consumer_group_describe_response *out = gather->response;
    out->groups.items = items;
    out->groups.count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct coordinator_part *part;
        wire_struct_defaults(&wire_consumer_group_describe_response_described_group_shape,
                             &items[i]);
        items[i].group_id = in->group_ids.items[i];
        struct gather_part *item = gather_part(gather, i, consumer_fail, &items[i]);
        enum kafka_error error = consumer_one(request, item, &part);
        if (error != KAFKA_NONE) {
            request_error(request, (int16_t)error);
            consumer_fail(item, error);
            if (error == KAFKA_TOPIC_AUTHORIZATION_FAILED)
                items[i].error_message = VIEW("The group has described topic(s) that the client is "
                                              "not authorized to describe.");
            continue;
        }
        if (items[i].error_code != KAFKA_NONE) request_error(request, items[i].error_code);
        gather_hold(item, part);
    }
    gather_less(gather);
}

/* ---- ListGroups ------------------------------------------------------------------------------ */

struct listing_groups {
    struct request *request;
    struct list_groups_response *out;
    int32_t capacity;
    bool failed;
};

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

static bool same_word(struct view a, struct view b)
{
    while (a.size > 0 && (a.data[0] == ' ' || a.data[0] == '\t')) {
        a.data++;
        a.size--;
    }
    while (a.size > 0 && (a.data[a.size - 1] == ' ' || a.data[a.size - 1] == '\t'))
        a.size--;
    if (a.size != b.size) return false;
    for (uint32_t i = 0; i < a.size; i++)
        if (lower(a.data[i]) != lower(b.data[i])) return false;
    return true;
}

static bool filter_passes(const struct view *items, int32_t count, struct view word)
{
    for (int32_t i = 0; i < count; i++)
        if (same_word(items[i], word)) return true;
    return count <= 0;
}

static bool list_one(void *context, const struct group_listed *listed)
{
    struct listing_groups *listing = context;
    const struct list_groups_request *in = listing->request->message;
    struct list_groups_response *out = listing->out;
    struct arena *arena = &listing->request->arena;
    if (!filter_passes(in->states_filter.items, in->states_filter.count, listed->state) ||
        !filter_passes(in->types_filter.items, in->types_filter.count, listed->type))
        return true;
    if (!auth_allows(listing->request, AUTH_DESCRIBE, AUTH_CLUSTER, VIEW("kafka-cluster")) &&
        !auth_allows(listing->request, AUTH_DESCRIBE, AUTH_GROUP, listed->id))
        return true;
    assert(out->groups.count < listing->capacity);
    struct list_groups_response_listed_group *item = &out->groups.items[out->groups.count++];
    wire_struct_defaults(&wire_list_groups_response_listed_group_shape, item);
    item->group_id = arena_copy(arena, listed->id);
    item->protocol_type = arena_copy(arena, listed->protocol_type);
    item->group_state = listed->state;
    item->group_type = listed->type;
    listing->failed = arena->failed;
    return !listing->failed;
}

/* How many places the answer needs, and whether it can be given. */
static enum kafka_error list_count(struct node *node, uint32_t *parts, size_t *groups)
{
    struct coordinator_part *part;
    enum kafka_error error;
    if (node->coordinator == NULL) return KAFKA_COORDINATOR_NOT_AVAILABLE;
    for (*parts = 0; (part = coordinator_at(node, *parts, &error)) != NULL; (*parts)++) {
        if (error == KAFKA_NONE) *groups += groups_count(coordinator_groups(part));
        if (error != KAFKA_NONE && error != KAFKA_NOT_COORDINATOR) return error;
    }
    return KAFKA_NONE;
}

static void list_fail(struct gather_part *part, enum kafka_error error)
{
    struct list_groups_response *out = part->out;
    if (error == KAFKA_NOT_COORDINATOR) return; /* Its groups are another node's now. */
    out->error_code = (int16_t)error;
    out->groups.count = 0;
}

void handle_list_groups(struct shard *shard, struct request *request)
{
    struct node *node = node_of(shard);
    struct gather *gather = gather_new(request);
    uint32_t part_count = 0;
    size_t group_count = 0;
    enum kafka_error error = list_count(node, &part_count, &group_count);
    struct gather_part *parts = broker_array(request, part_count, sizeof(*parts));
    struct list_groups_response_listed_group *items =
        broker_array(request, group_count, sizeof(*items));
    if (gather == NULL || (part_count > 0 && parts == NULL) || (group_count > 0 && items == NULL)) {
        gather_no_memory(request);
        return;
    }
    struct list_groups_response *out = gather->response;
    struct listing_groups listing = {
        .request = request, .out = out, .capacity = (int32_t)group_count};
    gather->parts = parts;
    out->error_code = (int16_t)error;
    out->groups.items = items;
    for (uint32_t i = 0; error == KAFKA_NONE && i < part_count; i++) {
        enum kafka_error state;
        struct coordinator_part *part = coordinator_at(node, i, &state);
        if (state != KAFKA_NONE) continue;
        groups_list(coordinator_groups(part), list_one, &listing);
        gather_hold(gather_part(gather, i, list_fail, out), part);
    }
    if (listing.failed) {
        out->error_code = KAFKA_COORDINATOR_NOT_AVAILABLE;
        out->groups.count = 0;
    }
    if (out->error_code != KAFKA_NONE) request_error(request, out->error_code);
    gather_less(gather);
}

/* ---- DeleteGroups ---------------------------------------------------------------------------- */

static void delete_fail(struct gather_part *part, enum kafka_error error)
{
    struct delete_groups_response_deletable_group_result *out = part->out;
    out->error_code = (int16_t)error;
}

/* Every step of it until the group is gone. */
static enum kafka_error delete_steps(struct request *request,
                                     struct coordinator_part *part,
                                     struct view id)
{
    enum step_result result = STEP_MORE;
    enum kafka_error error = KAFKA_NONE;
    while (result == STEP_MORE && error == KAFKA_NONE) {
        struct step step;
        coordinator_step(part, &step, request);
        result = group_delete(coordinator_groups(part), &step, id, &error);
        if (result == STEP_E_MEMORY) return KAFKA_COORDINATOR_NOT_AVAILABLE;
        enum kafka_error failed = coordinator_commit(part, &step);
        if (failed != KAFKA_NONE) return failed;
    }
    return error;
}

static void delete_one(struct request *request, struct gather_part *item)
{
    struct delete_groups_response_deletable_group_result *out = item->out;
    struct coordinator_part *part;
    enum kafka_error error = coordinator_find(node_of(request->shard), out->group_id, &part);
    if (!auth_allows(request, AUTH_DELETE, AUTH_GROUP, out->group_id))
        error = KAFKA_GROUP_AUTHORIZATION_FAILED;
    if (error == KAFKA_NONE) error = delete_steps(request, part, out->group_id);
    out->error_code = (int16_t)error;
    if (error == KAFKA_NONE)
        gather_hold(item, part);
    else
        request_error(request, (int16_t)error);
}

#define DELETE_GROUPS_MAX 10000 /* Of one request: each is deleted within the turn. */

void handle_delete_groups(struct shard *shard, struct request *request)
{
    const struct delete_groups_request *in = request->message;
    size_t count = (size_t)MAX(in->groups_names.count, 0);
    struct names seen;
    if (count > DELETE_GROUPS_MAX) {
        request_close(request, "too many groups to delete");
        return;
    }
    struct gather *gather =
        gather_begin(request, count, sizeof(struct delete_groups_response_deletable_group_result));
    if (gather == NULL) return;
    if (!names_init(&seen, &request->arena, (uint32_t)count,
                    io_random(node_of(shard)->io, IO_RANDOM_HASH))) {
        gather_no_memory(request);
        return;
    }
    struct delete_groups_response_deletable_group_result *items = gather->items;
    struct delete_groups_response *out = gather->response;
    out->results.items = items;
    for (size_t i = 0; i < count; i++) {
        if (names_see(&seen, in->groups_names.items[i]) > 1) continue;
        struct delete_groups_response_deletable_group_result *item = &items[out->results.count++];
        wire_struct_defaults(&wire_delete_groups_response_deletable_group_result_shape, item);
        item->group_id = in->groups_names.items[i];
        delete_one(request, gather_part(gather, i, delete_fail, item));
    }
    gather_less(gather);
}
