/* group_offsets.c - OffsetCommit, OffsetFetch, OffsetDelete.
 *
 * Partitions are looked up in the image first; what is left goes to the group. Versions that name
 * topics by id are answered by id, the others by name; the machine knows both. */
#include "broker/broker.h"
#include "broker/coordinator.h"
#include "core/offsets.h"
#include "gen/offset_commit_request.h"
#include "gen/offset_commit_response.h"
#include "gen/offset_delete_request.h"
#include "gen/offset_delete_response.h"
#include "gen/offset_fetch_request.h"
#include "gen/offset_fetch_response.h"

#define OFFSETS_BY_ID_FROM 10

static void no_memory(struct request *request)
{
    request_close(request, "no memory for an answer about offsets");
}

/* ---- OffsetCommit ---------------------------------------------------------------------------- */

struct commit {
    struct coordinator_hold hold;
    struct request *request;
    struct offset_commit_response *response;
};

/* Every partition that has no error yet. */
static void commit_fail(struct offset_commit_response *out, enum kafka_error error)
{
    for (int32_t t = 0; t < out->topics.count; t++)
        for (int32_t p = 0; p < out->topics.items[t].partitions.count; p++)
            if (out->topics.items[t].partitions.items[p].error_code == KAFKA_NONE)
                out->topics.items[t].partitions.items[p].error_code = (int16_t)error;
}

static void commit_done(struct coordinator_hold *hold, enum kafka_error error)
{
    struct commit *commit = container_of(hold, struct commit, hold);
    struct offset_commit_response *out = commit->response;
    if (error != KAFKA_NONE) commit_fail(out, error);
    for (int32_t t = 0; t < out->topics.count; t++)
        for (int32_t p = 0; p < out->topics.items[t].partitions.count; p++)
            if (out->topics.items[t].partitions.items[p].error_code != KAFKA_NONE)
                request_error(commit->request, out->topics.items[t].partitions.items[p].error_code);
    request_reply(commit->request, out);
}

static const struct image_topic *commit_topic(
    struct request *request,
    const struct offset_commit_request_offset_commit_request_topic *in)
{
    const struct image *image = node_of(request->shard)->image;
    return request->version >= OFFSETS_BY_ID_FROM ? image_topic_by_id(image, in->topic_id)
                                                  : image_topic(image, in->name);
}

/* The answer's places, with the errors that are known before the group is asked. True: something is
 * left to commit. */
static bool commit_check_topic(struct request *request,
                               const struct offset_commit_request_offset_commit_request_topic *in,
                               struct offset_commit_response_offset_commit_response_topic *out)
{
    const struct image_topic *topic = commit_topic(request, in);
    bool by_id = request->version >= OFFSETS_BY_ID_FROM, left = false;
    struct view name = topic != NULL ? topic->name : in->name;
    for (int32_t i = 0; i < out->partitions.count; i++) {
        struct offset_commit_response_offset_commit_response_partition *item =
            &out->partitions.items[i];
        wire_struct_defaults(&wire_offset_commit_response_offset_commit_response_partition_shape,
                             item);
        item->partition_index = in->partitions.items[i].partition_index;
        enum kafka_error error = KAFKA_NONE;
        if (request->version == 0) /* It meant offsets in ZooKeeper. */
            error = KAFKA_UNSUPPORTED_VERSION;
        else if (by_id && topic == NULL)
            error = KAFKA_UNKNOWN_TOPIC_ID;
        else if (!auth_allows(request, AUTH_READ, AUTH_TOPIC, name))
            error = KAFKA_TOPIC_AUTHORIZATION_FAILED;
        else if (topic == NULL || image_partition(topic, item->partition_index) == NULL)
            error = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        item->error_code = (int16_t)error;
        left = left || error == KAFKA_NONE;
    }
    return left;
}

static bool commit_answers(struct commit *commit, bool *left)
{
    struct request *request = commit->request;
    const struct offset_commit_request *in = request->message;
    struct offset_commit_response *out = commit->response;
    size_t count = (size_t)MAX(in->topics.count, 0);
    *left = false;
    out->topics.items = broker_array(request, count, sizeof(*out->topics.items));
    if (count > 0 && out->topics.items == NULL) return false;
    out->topics.count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct offset_commit_response_offset_commit_response_topic *topic = &out->topics.items[i];
        size_t partitions = (size_t)MAX(in->topics.items[i].partitions.count, 0);
        wire_struct_defaults(&wire_offset_commit_response_offset_commit_response_topic_shape,
                             topic);
        topic->name = in->topics.items[i].name;
        topic->topic_id = in->topics.items[i].topic_id;
        topic->partitions.items =
            broker_array(request, partitions, sizeof(*topic->partitions.items));
        if (partitions > 0 && topic->partitions.items == NULL) return false;
        topic->partitions.count = (int32_t)partitions;
        if (commit_check_topic(request, &in->topics.items[i], topic)) *left = true;
    }
    return true;
}

/* The records of what is left. The error of the whole, if the step cannot hold them. */
static enum kafka_error commit_puts(struct commit *commit,
                                    struct coordinator_part *part,
                                    struct step *step,
                                    const struct offsets_commit *by)
{
    const struct offset_commit_request *in = commit->request->message;
    for (int32_t t = 0; t < in->topics.count; t++) {
        const struct image_topic *topic = commit_topic(commit->request, &in->topics.items[t]);
        for (int32_t p = 0; p < in->topics.items[t].partitions.count; p++) {
            int16_t *error = &commit->response->topics.items[t].partitions.items[p].error_code;
            if (*error != KAFKA_NONE) continue;
            struct offsets_put put = {
                .topic = topic->name,
                .topic_id = topic->id,
                .in = &in->topics.items[t].partitions.items[p],
            };
            *error = (int16_t)offsets_commit_put(coordinator_groups(part), step, by, &put);
            if (*error != KAFKA_NONE && *error != KAFKA_OFFSET_METADATA_TOO_LARGE)
                return (enum kafka_error) * error; /* One that is not the member's fails all. */
        }
    }
    return KAFKA_NONE;
}

static void commit_begin(struct commit *commit)
{
    struct request *request = commit->request;
    const struct offset_commit_request *in = request->message;
    struct coordinator_part *part;
    struct step step;
    enum kafka_error error = coordinator_find(node_of(request->shard), in->group_id, &part);
    if (error == KAFKA_NONE) {
        struct offsets_commit by = {
            .group_id = in->group_id,
            .member_id = in->member_id,
            .instance_id = in->group_instance_id,
            .generation = in->generation_id_or_member_epoch,
            .retention_ms = in->retention_time_ms,
            .arrived_ms = request->arrived_ms,
        };
        coordinator_step(part, &step, request);
        error = offsets_commit_check(coordinator_groups(part), &step, &by);
        if (error == KAFKA_NONE) error = commit_puts(commit, part, &step, &by);
    }
    if (error == KAFKA_NONE) error = coordinator_commit(part, &step);
    if (error == KAFKA_NONE)
        coordinator_hold(part, &commit->hold);
    else
        commit_done(&commit->hold, error);
}

void handle_offset_commit(struct shard *shard, struct request *request)
{
    const struct offset_commit_request *in = request->message;
    struct commit *commit = broker_array(request, 1, sizeof(*commit));
    bool left;
    (void)shard;
    if (commit != NULL) commit->response = request_response(request);
    if (commit == NULL || commit->response == NULL) {
        no_memory(request);
        return;
    }
    commit->request = request;
    commit->hold.done = commit_done;
    if (!commit_answers(commit, &left)) {
        no_memory(request);
        return;
    }
    if (!auth_allows(request, AUTH_READ, AUTH_GROUP, in->group_id)) {
        for (int32_t t = 0; t < commit->response->topics.count; t++)
            for (int32_t p = 0; p < commit->response->topics.items[t].partitions.count; p++)
                commit->response->topics.items[t].partitions.items[p].error_code = KAFKA_NONE;
        commit_done(&commit->hold, KAFKA_GROUP_AUTHORIZATION_FAILED);
    } else if (!left) {
        commit_done(&commit->hold, KAFKA_NONE); /* Nobody is asked: as Kafka, fenced or not. */
    } else {
        commit_begin(commit);
    }
}

/* ---- OffsetFetch ----------------------------------------------------------------------------- */

/* Versions below 8 ask for one group; it is answered as a list of one and then put back. */
struct fetching;
struct fetching_group {
    struct coordinator_hold hold;
    struct fetching *fetching;
    struct coordinator_part *part;
    const struct offset_fetch_request_offset_fetch_request_group *in;
    struct offset_fetch_response_offset_fetch_response_group *out;
};
struct fetching {
    struct request *request;
    struct offset_fetch_response *response;
    uint32_t pending;
};

static void fetched_fill(struct request *request,
                         const struct offsets_found *found,
                         struct offset_fetch_response_offset_fetch_response_partitions *out)
{
    const struct offset_fetch_request *in = request->message;
    wire_struct_defaults(&wire_offset_fetch_response_offset_fetch_response_partitions_shape, out);
    out->committed_offset = -1;
    out->committed_leader_epoch = -1;
    out->metadata = VIEW_EMPTY;
    if (in->require_stable && found->unstable) {
        out->error_code = KAFKA_UNSTABLE_OFFSET_COMMIT;
        return;
    }
    out->committed_offset = found->offset;
    out->committed_leader_epoch = found->leader_epoch;
    out->metadata = arena_copy(&request->arena, found->metadata);
}

static bool fetched_topic(struct fetching_group *group,
                          const struct offset_fetch_request_offset_fetch_request_topics *in,
                          struct offset_fetch_response_offset_fetch_response_topics *out)
{
    struct request *request = group->fetching->request;
    const struct image *image = node_of(request->shard)->image;
    bool by_id = request->version >= OFFSETS_BY_ID_FROM;
    const struct image_topic *topic =
        by_id ? image_topic_by_id(image, in->topic_id) : image_topic(image, in->name);
    struct view name = by_id && topic != NULL ? topic->name : in->name;
    struct uuid id = topic == NULL ? (struct uuid){{0}} : topic->id;
    size_t count = (size_t)MAX(in->partition_indexes.count, 0);
    wire_struct_defaults(&wire_offset_fetch_response_offset_fetch_response_topics_shape, out);
    out->name = in->name;
    out->topic_id = in->topic_id;
    out->partitions.items = broker_array(request, count, sizeof(*out->partitions.items));
    if (count > 0 && out->partitions.items == NULL) return false;
    out->partitions.count = (int32_t)count;
    bool unknown = by_id && topic == NULL;
    bool allowed = unknown || auth_allows(request, AUTH_DESCRIBE, AUTH_TOPIC, name);
    for (size_t i = 0; i < count; i++) {
        struct offsets_found found = {.offset = -1, .leader_epoch = -1, .metadata = VIEW_EMPTY};
        struct offset_fetch_response_offset_fetch_response_partitions *item =
            &out->partitions.items[i];
        int32_t index = in->partition_indexes.items[i];
        if (!unknown && allowed)
            found =
                offsets_find(coordinator_groups(group->part), group->in->group_id, name, index, id);
        fetched_fill(request, &found, item);
        item->partition_index = index;
        if (unknown) item->error_code = KAFKA_UNKNOWN_TOPIC_ID;
        if (!allowed) item->error_code = KAFKA_TOPIC_AUTHORIZATION_FAILED;
        if (item->error_code != KAFKA_NONE) request_error(request, item->error_code);
    }
    return true;
}

static bool fetched_all_topic(struct fetching_group *group,
                              struct view name,
                              uint32_t count,
                              struct offset_fetch_response_offset_fetch_response_topics *out)
{
    struct request *request = group->fetching->request;
    const struct image_topic *topic = image_topic(node_of(request->shard)->image, name);
    int32_t *indexes = broker_array(request, count, sizeof(*indexes));
    struct view copy = arena_copy(&request->arena, name);
    if (indexes == NULL || copy.null) return false;
    offsets_partitions(coordinator_groups(group->part), group->in->group_id, name, indexes);
    struct offset_fetch_request_offset_fetch_request_topics in = {
        .name = copy,
        .topic_id = topic == NULL ? (struct uuid){{0}                     }
               : topic->id,
        .partition_indexes = { .items = indexes, .count = (int32_t)count},
    };
    return fetched_topic(group, &in, out);
}

/* All topics that the group has offsets of. By id those that are gone cannot be named. */
static bool fetched_all(struct fetching_group *group)
{
    struct request *request = group->fetching->request;
    const struct groups *groups = coordinator_groups(group->part);
    const struct image *image = node_of(request->shard)->image;
    struct view name = VIEW_NULL;
    uint32_t count, topics = 0;
    while (!(name = offsets_topic_next(groups, group->in->group_id, name, &count)).null)
        topics++;
    group->out->topics.items = broker_array(request, topics, sizeof(*group->out->topics.items));
    if (topics > 0 && group->out->topics.items == NULL) return false;
    while (!(name = offsets_topic_next(groups, group->in->group_id, name, &count)).null) {
        if (!auth_allows(request, AUTH_DESCRIBE, AUTH_TOPIC, name)) continue;
        if (request->version >= OFFSETS_BY_ID_FROM && image_topic(image, name) == NULL) continue;
        if (!fetched_all_topic(group, name, count,
                               &group->out->topics.items[group->out->topics.count++]))
            return false;
    }
    return true;
}

static bool fetched_group(struct fetching_group *group)
{
    struct request *request = group->fetching->request;
    int32_t count = group->in->topics.count;
    if (count < 0) return fetched_all(group);
    group->out->topics.items =
        broker_array(request, (size_t)count, sizeof(*group->out->topics.items));
    if (count > 0 && group->out->topics.items == NULL) return false;
    group->out->topics.count = count;
    for (int32_t i = 0; i < count; i++)
        if (!fetched_topic(group, &group->in->topics.items[i], &group->out->topics.items[i]))
            return false;
    return !request->arena.failed;
}

/* A topic of a version below 8 with room for `count` partitions, at their defaults. False: no
 * memory. */
static bool single_topic(struct request *request,
                         struct view name,
                         int32_t count,
                         struct offset_fetch_response_offset_fetch_response_topic *out)
{
    wire_struct_defaults(&wire_offset_fetch_response_offset_fetch_response_topic_shape, out);
    out->name = name;
    out->partitions.items = broker_array(request, (size_t)count, sizeof(*out->partitions.items));
    if (count > 0 && out->partitions.items == NULL) return false;
    out->partitions.count = count;
    for (int32_t p = 0; p < count; p++)
        wire_struct_defaults(&wire_offset_fetch_response_offset_fetch_response_partition_shape,
                             &out->partitions.items[p]);
    return true;
}

/* Version 1 has no error for the whole: each partition carries it. */
static bool single_failed(struct fetching *fetching, int16_t error)
{
    const struct offset_fetch_request *in = fetching->request->message;
    struct offset_fetch_response *out = fetching->response;
    if (fetching->request->version >= 2) {
        out->error_code = error;
        return true;
    }
    for (int32_t t = 0; t < out->topics.count; t++) {
        struct offset_fetch_response_offset_fetch_response_topic *topic = &out->topics.items[t];
        int32_t count = MAX(in->topics.items[t].partition_indexes.count, 0);
        if (!single_topic(fetching->request, in->topics.items[t].name, count, topic)) return false;
        for (int32_t p = 0; p < count; p++) {
            struct offset_fetch_response_offset_fetch_response_partition *item =
                &topic->partitions.items[p];
            item->partition_index = in->topics.items[t].partition_indexes.items[p];
            item->committed_offset = item->committed_leader_epoch = -1;
            item->error_code = error;
        }
    }
    return true;
}

/* Back into the form of versions below 8. */
static bool single_answer(struct fetching *fetching)
{
    const struct offset_fetch_request *asked = fetching->request->message;
    struct offset_fetch_response *out = fetching->response;
    const struct offset_fetch_response_offset_fetch_response_group *group = &out->groups.items[0];
    int32_t topics = group->error_code == KAFKA_NONE   ? group->topics.count
                     : fetching->request->version <= 1 ? MAX(asked->topics.count, 0)
                                                       : 0;
    out->topics.items = broker_array(fetching->request, (size_t)topics, sizeof(*out->topics.items));
    if (topics > 0 && out->topics.items == NULL) return false;
    out->topics.count = topics;
    out->groups.count = 0;
    if (group->error_code != KAFKA_NONE) return single_failed(fetching, group->error_code);
    for (int32_t t = 0; t < topics; t++) {
        const struct offset_fetch_response_offset_fetch_response_topics *from =
            &group->topics.items[t];
        struct offset_fetch_response_offset_fetch_response_topic *topic = &out->topics.items[t];
        int32_t count = from->partitions.count;
        if (!single_topic(fetching->request, from->name, count, topic)) return false;
        for (int32_t p = 0; p < count; p++) {
            struct offset_fetch_response_offset_fetch_response_partition *item =
                &topic->partitions.items[p];
            item->partition_index = from->partitions.items[p].partition_index;
            item->committed_offset = from->partitions.items[p].committed_offset;
            item->committed_leader_epoch = from->partitions.items[p].committed_leader_epoch;
            item->metadata = from->partitions.items[p].metadata;
            item->error_code = from->partitions.items[p].error_code;
        }
    }
    return true;
}

static void fetching_less(struct fetching *fetching)
{
    if (--fetching->pending > 0) return;
    if (fetching->request->version < 8 && !single_answer(fetching))
        no_memory(fetching->request);
    else
        request_reply(fetching->request, fetching->response);
}

static void fetched_done(struct coordinator_hold *hold, enum kafka_error error)
{
    struct fetching_group *group = container_of(hold, struct fetching_group, hold);
    if (error != KAFKA_NONE) {
        request_error(group->fetching->request, (int16_t)error);
        group->out->error_code = (int16_t)error;
        group->out->topics.count = 0;
    }
    fetching_less(group->fetching);
}

static void fetched_begin(struct fetching_group *group)
{
    struct request *request = group->fetching->request;
    struct view id = group->in->group_id;
    enum kafka_error error = coordinator_find(node_of(request->shard), id, &group->part);
    group->hold.done = fetched_done;
    if (!auth_allows(request, AUTH_DESCRIBE, AUTH_GROUP, id))
        error = KAFKA_GROUP_AUTHORIZATION_FAILED;
    if (error == KAFKA_NONE)
        error = offsets_fetch_check(coordinator_groups(group->part), id, group->in->member_id,
                                    group->in->member_epoch);
    if (error == KAFKA_NONE && !fetched_group(group)) error = KAFKA_COORDINATOR_NOT_AVAILABLE;
    if (error != KAFKA_NONE)
        fetched_done(&group->hold, error);
    else
        coordinator_hold(group->part, &group->hold);
}

/* The one group of a version below 8 in the form of the others. */
static bool single_group(struct request *request,
                         struct offset_fetch_request_offset_fetch_request_group *out)
{
    const struct offset_fetch_request *in = request->message;
    int32_t count = in->topics.count;
    out->group_id = in->group_id;
    out->member_id = VIEW_NULL;
    out->member_epoch = -1;
    out->topics.count = count;
    if (count <= 0) return true;
    out->topics.items = broker_array(request, (size_t)count, sizeof(*out->topics.items));
    if (out->topics.items == NULL) return false;
    for (int32_t i = 0; i < count; i++) {
        out->topics.items[i].name = in->topics.items[i].name;
        out->topics.items[i].partition_indexes.items = in->topics.items[i].partition_indexes.items;
        out->topics.items[i].partition_indexes.count = in->topics.items[i].partition_indexes.count;
    }
    return true;
}

void handle_offset_fetch(struct shard *shard, struct request *request)
{
    const struct offset_fetch_request *in = request->message;
    struct fetching *fetching = broker_array(request, 1, sizeof(*fetching));
    struct offset_fetch_request_offset_fetch_request_group *asked = in->groups.items;
    size_t count = (size_t)MAX(in->groups.count, 0);
    (void)shard;
    if (request->version < 8) {
        count = 1;
        asked = broker_array(request, 1, sizeof(*asked));
        if (asked != NULL && !single_group(request, asked)) asked = NULL;
    }
    struct fetching_group *groups = broker_array(request, count, sizeof(*groups));
    if (fetching != NULL) fetching->response = request_response(request);
    if (fetching == NULL || fetching->response == NULL ||
        (count > 0 && (asked == NULL || groups == NULL))) {
        no_memory(request);
        return;
    }
    struct offset_fetch_response *out = fetching->response;
    out->groups.items = broker_array(request, count, sizeof(*out->groups.items));
    if (count > 0 && out->groups.items == NULL) {
        no_memory(request);
        return;
    }
    out->groups.count = (int32_t)count;
    fetching->request = request;
    fetching->pending = (uint32_t)count + 1;
    for (size_t i = 0; i < count; i++) {
        wire_struct_defaults(&wire_offset_fetch_response_offset_fetch_response_group_shape,
                             &out->groups.items[i]);
        out->groups.items[i].group_id = asked[i].group_id;
        groups[i].fetching = fetching;
        groups[i].in = &asked[i];
        groups[i].out = &out->groups.items[i];
        if (request->version > 0) {
            fetched_begin(&groups[i]);
            continue;
        }
        groups[i].out->error_code = KAFKA_UNSUPPORTED_VERSION; /* It meant ZooKeeper. */
        request_error(request, KAFKA_UNSUPPORTED_VERSION);
        fetching->pending--;
    }
    fetching_less(fetching);
}

/* ---- OffsetDelete ---------------------------------------------------------------------------- */

struct deleting {
    struct coordinator_hold hold;
    struct request *request;
    struct offset_delete_response *response;
};

static void deleting_done(struct coordinator_hold *hold, enum kafka_error error)
{
    struct deleting *deleting = container_of(hold, struct deleting, hold);
    if (error != KAFKA_NONE) {
        deleting->response->error_code = (int16_t)error;
        deleting->response->topics.count = 0;
        request_error(deleting->request, (int16_t)error);
    }
    request_reply(deleting->request, deleting->response);
}

static enum kafka_error deleting_topic(struct deleting *deleting,
                                       struct coordinator_part *part,
                                       struct step *step,
                                       int32_t at)
{
    struct request *request = deleting->request;
    const struct offset_delete_request *in = request->message;
    const struct offset_delete_request_offset_delete_request_topic *from = &in->topics.items[at];
    struct offset_delete_response_offset_delete_response_topic *out =
        &deleting->response->topics.items[at];
    const struct image_topic *topic = image_topic(node_of(request->shard)->image, from->name);
    size_t count = (size_t)MAX(from->partitions.count, 0);
    wire_struct_defaults(&wire_offset_delete_response_offset_delete_response_topic_shape, out);
    out->name = from->name;
    out->partitions.items = broker_array(request, count, sizeof(*out->partitions.items));
    if (count > 0 && out->partitions.items == NULL) return KAFKA_COORDINATOR_NOT_AVAILABLE;
    out->partitions.count = (int32_t)count;
    bool allowed = auth_allows(request, AUTH_READ, AUTH_TOPIC, from->name);
    for (size_t i = 0; i < count; i++) {
        struct offset_delete_response_offset_delete_response_partition *item =
            &out->partitions.items[i];
        wire_struct_defaults(&wire_offset_delete_response_offset_delete_response_partition_shape,
                             item);
        item->partition_index = from->partitions.items[i].partition_index;
        enum kafka_error error = KAFKA_TOPIC_AUTHORIZATION_FAILED;
        if (allowed && (topic == NULL || image_partition(topic, item->partition_index) == NULL))
            error = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        else if (allowed)
            error = offsets_delete_put(coordinator_groups(part), step, in->group_id, from->name,
                                       item->partition_index);
        if (error == KAFKA_UNKNOWN_SERVER_ERROR) return error;
        item->error_code = (int16_t)error;
        if (error != KAFKA_NONE) request_error(request, item->error_code);
    }
    return KAFKA_NONE;
}

void handle_offset_delete(struct shard *shard, struct request *request)
{
    const struct offset_delete_request *in = request->message;
    struct deleting *deleting = broker_array(request, 1, sizeof(*deleting));
    struct coordinator_part *part;
    struct step step;
    size_t count = (size_t)MAX(in->topics.count, 0);
    if (deleting != NULL) deleting->response = request_response(request);
    if (deleting == NULL || deleting->response == NULL) {
        no_memory(request);
        return;
    }
    deleting->request = request;
    deleting->hold.done = deleting_done;
    deleting->response->topics.items =
        broker_array(request, count, sizeof(*deleting->response->topics.items));
    deleting->response->topics.count = (int32_t)count;
    enum kafka_error error = coordinator_find(node_of(shard), in->group_id, &part);
    if (count > 0 && deleting->response->topics.items == NULL)
        error = KAFKA_COORDINATOR_NOT_AVAILABLE;
    if (!auth_allows(request, AUTH_DELETE, AUTH_GROUP, in->group_id))
        error = KAFKA_GROUP_AUTHORIZATION_FAILED;
    else if (in->group_id.size == 0)
        error = KAFKA_INVALID_GROUP_ID;
    if (error == KAFKA_NONE) error = offsets_delete_check(coordinator_groups(part), in->group_id);
    if (error == KAFKA_NONE) coordinator_step(part, &step, request);
    for (int32_t t = 0; error == KAFKA_NONE && t < (int32_t)count; t++)
        error = deleting_topic(deleting, part, &step, t);
    if (error == KAFKA_NONE) error = coordinator_commit(part, &step);
    if (error == KAFKA_NONE)
        coordinator_hold(part, &deleting->hold);
    else
        deleting_done(&deleting->hold, error);
}
