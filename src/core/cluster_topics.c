/* cluster_topics.c - topics: create, delete, add partitions, each with its checks in
 * Kafka's order.
 *
 * Each topic of a request stands for itself: its records are added when all its checks have passed,
 * or taken off again. */
#include "core/cluster_assign.h"

#include "core/names.h"
#include "gen/create_partitions_request.h"
#include "gen/create_partitions_response.h"
#include "gen/create_topics_request.h"
#include "gen/create_topics_response.h"
#include "gen/delete_topics_request.h"
#include "gen/delete_topics_response.h"
#include "gen/remove_topic_record.h"
#include "gen/topic_record.h"

#define TOPICS_PARTITIONS_MAX 10000 /* Of one CreateTopics request, as in Kafka. */

/* ---- names ----------------------------------------------------------------------------------- */

static bool topics_legal_character(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

struct view cluster_topic_name_fault(struct view name)
{
    if (name.size == 0) return VIEW("a topic's name must not be empty");
    if (view_is(name, ".") || view_is(name, "..")) return VIEW("a topic cannot be named . or ..");
    if (name.size > TOPIC_NAME_MAX) return VIEW("a topic's name has at most 249 characters");
    for (uint32_t i = 0; i < name.size; i++)
        if (!topics_legal_character(name.data[i]))
            return VIEW("a topic's name consists of letters, digits, dots, underscores and dashes");
    return VIEW_NULL;
}

static bool topics_collide(struct view a, struct view b)
{
    if (a.size != b.size) return false;
    for (uint32_t i = 0; i < a.size; i++) {
        uint8_t left = a.data[i] == '.' ? '_' : a.data[i];
        uint8_t right = b.data[i] == '.' ? '_' : b.data[i];
        if (left != right) return false;
    }
    return true;
}

static bool topics_may_collide(struct view name)
{
    for (uint32_t i = 0; i < name.size; i++)
        if (name.data[i] == '.' || name.data[i] == '_') return true;
    return false;
}

/* A topic that differs from the name only in dots and underscores, or NULL. O(topics), and only for
 * names that have one. */
static const struct image_topic *topics_collision(const struct image *image, struct view name)
{
    if (!topics_may_collide(name)) return NULL;
    const struct image_object *object = NULL;
    while ((object = image_next(image, IMAGE_TOPIC, object)) != NULL) {
        const struct image_topic *topic = (const struct image_topic *)object;
        if (topics_collide(topic->name, name)) return topic;
    }
    return NULL;
}

/* ---- CreateTopics ---------------------------------------------------------------------------- */

/* One topic of the request, and its verdict. */
struct creation {
    struct cluster *cluster;
    struct step *step;
    const struct create_topics_request_creatable_topic *in;
    struct create_topics_response_creatable_topic_result *out;
    struct cluster_override *configs;
    uint32_t config_count;
    int32_t timeout_ms;
};

static bool creation_fail(struct creation *creation, int16_t error, struct view message)
{
    creation->out->error_code = error;
    creation->out->error_message = message;
    return false;
}

static bool creation_check_name(struct creation *creation)
{
    struct image *image = creation->cluster->image;
    struct view name = creation->in->name;
    struct arena *arena = creation->step->arena;
    if (image_topic(image, name) != NULL)
        return creation_fail(creation, KAFKA_TOPIC_ALREADY_EXISTS,
                             JOIN(arena, VIEW("topic \""), name, VIEW("\" exists")));
    struct view fault = cluster_topic_name_fault(name);
    if (!fault.null) return creation_fail(creation, KAFKA_INVALID_TOPIC_EXCEPTION, fault);
    const struct image_topic *other = topics_collision(image, name);
    if (other == NULL) return true;
    return creation_fail(
        creation, KAFKA_INVALID_TOPIC_EXCEPTION,
        JOIN(arena, VIEW("the name collides with that of topic \""), other->name, VIEW("\"")));
}

static bool creation_check_configs(struct creation *creation)
{
    uint32_t count = (uint32_t)MAX(creation->in->configs.count, 0);
    struct step *step = creation->step;
    creation->configs = step_get(step, (count + 1) * sizeof(creation->configs[0]));
    if (creation->configs == NULL) return false;
    for (uint32_t i = 0; i < count; i++) {
        struct cluster_override config = {creation->in->configs.items[i].name,
                                          creation->in->configs.items[i].value};
        if (config.value.null)
            return creation_fail(creation, KAFKA_INVALID_CONFIG,
                                 JOIN(step->arena, VIEW("no value for "), config.name));
        /* A setting that is named twice: the last one holds. */
        uint32_t at = 0;
        while (at < creation->config_count && !view_equal(creation->configs[at].name, config.name))
            at++;
        creation->configs[at] = config;
        creation->config_count = MAX(creation->config_count, at + 1);
    }
    struct view fault = cluster_topic_configs_fault(creation->cluster, step, NULL,
                                                    creation->configs, creation->config_count);
    return fault.null || creation_fail(creation, KAFKA_INVALID_CONFIG, fault);
}

/* The client says which brokers: indexes 0..n-1 each once, then as any assignment. */
static bool creation_assigned(struct creation *creation, struct cluster_assigned *out)
{
    const struct create_topics_request_creatable_topic *in = creation->in;
    if (in->replication_factor != -1)
        return creation_fail(creation, KAFKA_INVALID_REQUEST,
                             VIEW("with assignments, replication_factor must be -1"));
    if (in->num_partitions != -1)
        return creation_fail(creation, KAFKA_INVALID_REQUEST,
                             VIEW("with assignments, num_partitions must be -1"));
    int32_t count = in->assignments.count;
    out->items = step_get(creation->step, (size_t)(count + 1) * sizeof(out->items[0]));
    if (out->items == NULL) return false;
    for (int32_t i = 0; i < count; i++) {
        const struct create_topics_request_creatable_replica_assignment *assignment =
            &in->assignments.items[i];
        int32_t index = assignment->partition_index;
        if (index < 0 || index >= count || out->items[index].items != NULL)
            return creation_fail(creation, KAFKA_INVALID_REPLICA_ASSIGNMENT,
                                 VIEW("partitions must be numbered from 0, each once"));
        if (assignment->broker_ids.count <= 0)
            return creation_fail(creation, KAFKA_INVALID_REPLICA_ASSIGNMENT,
                                 VIEW("a partition has no replicas"));
        out->items[index] = (struct image_ids){assignment->broker_ids.items,
                                               (uint32_t)assignment->broker_ids.count};
    }
    out->count = (uint32_t)count;
    struct view fault =
        cluster_assign_fault(creation->cluster, creation->step, out, out->items[0].count);
    return fault.null || creation_fail(creation, KAFKA_INVALID_REPLICA_ASSIGNMENT, fault);
}

static bool creation_placed(struct creation *creation, struct cluster_assigned *out)
{
    const struct create_topics_request_creatable_topic *in = creation->in;
    int32_t factor = in->replication_factor;
    int32_t partitions = in->num_partitions;
    if (factor < -1 || factor == 0)
        return creation_fail(creation, KAFKA_INVALID_REPLICATION_FACTOR,
                             VIEW("the replication factor must be above 0, or -1"));
    if (partitions < -1 || partitions == 0)
        return creation_fail(creation, KAFKA_INVALID_PARTITIONS,
                             VIEW("the number of partitions must be above 0, or -1"));
    if (factor == -1)
        factor =
            (int32_t)cluster_static_number(creation->cluster, VIEW("default.replication.factor"));
    if (partitions == -1)
        partitions = (int32_t)cluster_static_number(creation->cluster, VIEW("num.partitions"));
    struct view fault =
        cluster_assign_place(creation->cluster, creation->step, (uint32_t)partitions, factor, out);
    return fault.null || creation_fail(creation, KAFKA_INVALID_REPLICATION_FACTOR, fault);
}

static bool creation_add_records(struct creation *creation,
                                 const struct cluster_assigned *partitions,
                                 struct uuid id)
{
    struct step *step = creation->step;
    struct topic_record *topic = step_add(step, &wire_topic_record, 0);
    if (topic == NULL) return false;
    topic->name = creation->in->name;
    topic->topic_id = id;
    bool clear = false;
    for (uint32_t i = 0; i < creation->config_count; i++) {
        clear = clear || view_is(creation->configs[i].name, "min.insync.replicas");
        if (!cluster_add_config(step, IMAGE_RESOURCE_TOPIC, creation->in->name,
                                &creation->configs[i]))
            return false;
    }
    if (clear && cluster_elr_on(creation->cluster) &&
        !cluster_add_clear_elr(step, creation->in->name))
        return false;
    return cluster_assign_add(creation->cluster, step, id, 0, partitions);
}

/* The settings that the topic will have, for answers of version 5 and above. */
static void creation_answer_configs(struct creation *creation)
{
    struct create_topics_response_creatable_topic_result *out = creation->out;
    struct step *step = creation->step;
    if (!cluster_allows(step, CLUSTER_OP_DESCRIBE_CONFIGS, CLUSTER_ON_TOPIC, creation->in->name)) {
        out->topic_config_error_code = KAFKA_TOPIC_AUTHORIZATION_FAILED;
        out->num_partitions = -1;
        out->replication_factor = -1;
        out->configs.count = -1;
        return;
    }
    uint32_t count;
    const struct config_def *defs = config_all(CONFIG_TOPIC, &count);
    out->configs.items = step_get(step, count * sizeof(out->configs.items[0]));
    if (out->configs.items == NULL) return;
    out->configs.count = 0;
    struct cluster_config_context context = cluster_configs(creation->cluster);
    for (uint32_t i = 0; i < count; i++) {
        if (defs[i].internal) continue;
        struct view name = view_of_string(defs[i].name);
        struct cluster_config_value value = cluster_config_value(&context, VIEW_NULL, &defs[i]);
        struct create_topics_response_creatable_topic_configs *item =
            &out->configs.items[out->configs.count++];
        item->name = name;
        item->value = arena_copy(step->arena, cluster_config_text(&value, step->arena));
        item->config_source = (int8_t)value.source;
        for (uint32_t j = 0; j < creation->config_count; j++) {
            if (!view_equal(creation->configs[j].name, name)) continue;
            item->value = creation->configs[j].value;
            item->config_source = CLUSTER_SOURCE_TOPIC;
        }
    }
}

/* One topic. False: it failed (told in its result), or there is no memory. */
static bool creation_run(struct creation *creation, bool validate_only)
{
    struct cluster_assigned partitions = {0};
    bool ok = creation_check_name(creation) && creation_check_configs(creation) &&
              (creation->in->assignments.count > 0 ? creation_assigned(creation, &partitions)
                                                   : creation_placed(creation, &partitions));
    if (!ok || creation->step->arena->failed) return false;
    uint32_t records = 2 + creation->config_count + partitions.count;
    if (records > step_room(creation->step))
        return creation_fail(creation, KAFKA_POLICY_VIOLATION,
                             VIEW("the request makes more than 10000 records"));
    if (!cluster_charge(creation->step, partitions.count))
        return creation_fail(creation, KAFKA_THROTTLING_QUOTA_EXCEEDED, CLUSTER_QUOTA_USED_UP);
    struct uuid id = step_uuid(creation->step);
    uint32_t before = creation->step->record_count;
    if (!creation_add_records(creation, &partitions, id)) return false;
    if (validate_only) creation->step->record_count = before;

    struct create_topics_response_creatable_topic_result *out = creation->out;
    out->num_partitions = (int32_t)partitions.count;
    out->replication_factor = (int16_t)partitions.items[0].count;
    out->topic_id = id; /* Told, as by Kafka, though nothing was made if it was only validated. */
    if (creation->step->caller.version >= 5) creation_answer_configs(creation);
    return true;
}

/* Partitions that the whole request asks for. */
static int64_t creation_partitions(const struct cluster *cluster,
                                   const struct create_topics_request *in)
{
    int64_t standard = cluster_static_number(cluster, VIEW("num.partitions"));
    int64_t total = 0;
    for (int32_t i = 0; i < in->topics.count; i++) {
        const struct create_topics_request_creatable_topic *topic = &in->topics.items[i];
        if (topic->assignments.count > 0)
            total += topic->assignments.count;
        else
            total += topic->num_partitions == -1 ? standard : MAX(topic->num_partitions, 0);
    }
    return total;
}

/* Checks that come before the controller's own, in Kafka's order. */
static bool creation_admit(struct creation *creation, int64_t partitions, uint32_t times)
{
    struct step *step = creation->step;
    if (!creation->cluster->active) return creation_fail(creation, KAFKA_NOT_CONTROLLER, VIEW_NULL);
    if (creation->timeout_ms <= 0)
        return creation_fail(creation, KAFKA_REQUEST_TIMED_OUT, VIEW_NULL);
    if (partitions > TOPICS_PARTITIONS_MAX)
        return creation_fail(creation, KAFKA_POLICY_VIOLATION,
                             VIEW("one request can create at most 10000 partitions"));
    if (times > 1)
        return creation_fail(creation, KAFKA_INVALID_REQUEST, VIEW("the topic is named twice"));
    if (view_is(creation->in->name, "__cluster_metadata"))
        return creation_fail(creation, KAFKA_INVALID_REQUEST,
                             VIEW("this topic is the cluster's own metadata"));
    if (cluster_allows(step, CLUSTER_OP_CREATE, CLUSTER_ON_CLUSTER, CLUSTER_ON_CLUSTER_NAME) ||
        cluster_allows(step, CLUSTER_OP_CREATE, CLUSTER_ON_TOPIC, creation->in->name))
        return true;
    return creation_fail(creation, KAFKA_TOPIC_AUTHORIZATION_FAILED, VIEW_NULL);
}

enum step_result cluster_create_topics(struct cluster *cluster,
                                       struct step *step,
                                       const struct create_topics_request *in,
                                       struct create_topics_response *out)
{
    wire_defaults(&wire_create_topics_response, out);
    uint32_t count = (uint32_t)MAX(in->topics.count, 0);
    struct names names;
    out->topics.items = step_get(step, (count + 1) * sizeof(out->topics.items[0]));
    if (out->topics.items == NULL || !names_init(&names, step->arena, count, step_random(step)))
        return STEP_E_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        names_see(&names, in->topics.items[i].name);

    struct names answered;
    if (!names_init(&answered, step->arena, count, names.seed)) return STEP_E_MEMORY;
    int64_t partitions = creation_partitions(cluster, in);
    for (uint32_t i = 0; i < count; i++) {
        struct view name = in->topics.items[i].name;
        if (names_see(&answered, name) > 1) continue; /* One result for a name. */
        struct creation creation = {
            .cluster = cluster,
            .step = step,
            .in = &in->topics.items[i],
            .out = &out->topics.items[out->topics.count++],
            .timeout_ms = in->timeout_ms,
        };
        wire_struct_defaults(&wire_create_topics_response_creatable_topic_result_shape,
                             creation.out);
        creation.out->name = name;
        creation.out->error_message = VIEW_NULL;
        creation.out->configs.count = 0;
        uint32_t before = step->record_count;
        if (!creation_admit(&creation, partitions, names_seen(&names, name)) ||
            !creation_run(&creation, in->validate_only))
            step->record_count = before;
        if (step->arena->failed) return STEP_E_MEMORY;
    }
    step->atomic = true;
    return STEP_DONE;
}

/* ---- DeleteTopics ---------------------------------------------------------------------------- */

/* One topic of the request: by name or by id. */
struct deletion {
    struct cluster *cluster;
    struct step *step;
    struct view name; /* Null: by id. */
    struct uuid id;
    struct delete_topics_response_deletable_topic_result *out;
};

static void deletion_fail(struct deletion *deletion, int16_t error, struct view message)
{
    deletion->out->error_code = error;
    deletion->out->error_message = message;
}

static void deletion_run(struct deletion *deletion)
{
    struct step *step = deletion->step;
    bool by_id = deletion->name.null;
    const struct image_topic *topic =
        by_id ? image_topic_by_id(deletion->cluster->image, deletion->id)
              : image_topic(deletion->cluster->image, deletion->name);
    struct view name = topic != NULL ? topic->name : deletion->name;
    bool all = cluster_allows(step, CLUSTER_OP_DELETE, CLUSTER_ON_CLUSTER, CLUSTER_ON_CLUSTER_NAME);
    bool seen =
        name.null || all || cluster_allows(step, CLUSTER_OP_DESCRIBE, CLUSTER_ON_TOPIC, name);
    if (topic == NULL && by_id) {
        deletion_fail(deletion, KAFKA_UNKNOWN_TOPIC_ID, VIEW("no topic has this id"));
        return;
    }
    if (!seen) { /* Who may not see it is not told its name, nor whether it exists. */
        deletion_fail(deletion, KAFKA_TOPIC_AUTHORIZATION_FAILED, VIEW_NULL);
        return;
    }
    if (topic == NULL) {
        deletion_fail(deletion, KAFKA_UNKNOWN_TOPIC_OR_PARTITION, VIEW("there is no such topic"));
        return;
    }
    deletion->out->name = arena_copy(step->arena, topic->name); /* The topic goes first. */
    if (!all && !cluster_allows(step, CLUSTER_OP_DELETE, CLUSTER_ON_TOPIC, name)) {
        deletion_fail(deletion, KAFKA_TOPIC_AUTHORIZATION_FAILED, VIEW_NULL);
        return;
    }
    if (step_room(step) == 0) {
        deletion_fail(deletion, KAFKA_POLICY_VIOLATION, VIEW("too many topics in one request"));
        return;
    }
    if (!cluster_charge(step, (uint32_t)topic->partition_count)) {
        deletion_fail(deletion, KAFKA_THROTTLING_QUOTA_EXCEEDED, CLUSTER_QUOTA_USED_UP);
        return;
    }
    struct remove_topic_record *record = step_add(step, &wire_remove_topic_record, 0);
    if (record == NULL) return;
    record->topic_id = topic->id;
    deletion->out->topic_id = topic->id;
}

/* What the request names, from either of its two lists. */
static uint32_t deletion_count(const struct step *step, const struct delete_topics_request *in)
{
    return (uint32_t)MAX(step->caller.version >= 6 ? in->topics.count : in->topic_names.count, 0);
}

static void deletion_of(const struct step *step,
                        const struct delete_topics_request *in,
                        uint32_t at,
                        struct deletion *out)
{
    out->name = step->caller.version >= 6 ? in->topics.items[at].name : in->topic_names.items[at];
    out->id = step->caller.version >= 6 ? in->topics.items[at].topic_id : (struct uuid){{0}};
}

/* How often each topic is named: a name and the id of the same topic count together. */
static struct view deletion_key(const struct deletion *deletion, struct arena *arena)
{
    struct view name = deletion->name;
    if (name.null) {
        const struct image_topic *topic = image_topic_by_id(deletion->cluster->image, deletion->id);
        if (topic == NULL) return JOIN(arena, VIEW("i"), view_of(deletion->id.bytes, 16));
        name = topic->name;
    }
    return JOIN(arena, VIEW("n"), name);
}

static bool deletion_admit(struct deletion *deletion, int32_t timeout_ms, uint32_t times)
{
    bool has_id = !uuid_is_zero(deletion->id);
    int16_t error = KAFKA_NONE;
    struct view message = VIEW_NULL;
    if (!deletion->cluster->active) {
        error = KAFKA_NOT_CONTROLLER;
    } else if (!cluster_static_flag(deletion->cluster, VIEW("delete.topic.enable"))) {
        error = deletion->step->caller.version >= 3 ? KAFKA_TOPIC_DELETION_DISABLED
                                                    : KAFKA_INVALID_REQUEST;
    } else if (deletion->name.null != has_id) {
        error = KAFKA_INVALID_REQUEST;
        message = VIEW("a topic is named by its name or by its id, not by both or none");
    } else if (times > 1) {
        error = KAFKA_INVALID_REQUEST;
        message = VIEW("the topic is named twice");
    } else if (timeout_ms <= 0) {
        error = KAFKA_REQUEST_TIMED_OUT;
    }
    if (error != KAFKA_NONE) deletion_fail(deletion, error, message);
    return error == KAFKA_NONE;
}

enum step_result cluster_delete_topics(struct cluster *cluster,
                                       struct step *step,
                                       const struct delete_topics_request *in,
                                       struct delete_topics_response *out)
{
    wire_defaults(&wire_delete_topics_response, out);
    uint32_t count = deletion_count(step, in);
    struct names names;
    struct names answered;
    out->responses.items = step_get(step, (count + 1) * sizeof(out->responses.items[0]));
    struct view *keys = step_get(step, (count + 1) * sizeof(*keys));
    uint64_t seed = step_random(step);
    if (out->responses.items == NULL || keys == NULL ||
        !names_init(&names, step->arena, count, seed) ||
        !names_init(&answered, step->arena, count, seed))
        return STEP_E_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        struct deletion deletion = {.cluster = cluster, .step = step};
        deletion_of(step, in, i, &deletion);
        keys[i] = deletion_key(&deletion, step->arena);
        if (keys[i].null) return STEP_E_MEMORY;
        names_see(&names, keys[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (names_see(&answered, keys[i]) > 1) continue; /* One result for a topic. */
        struct deletion deletion = {
            .cluster = cluster,
            .step = step,
            .out = &out->responses.items[out->responses.count++],
        };
        deletion_of(step, in, i, &deletion);
        wire_struct_defaults(&wire_delete_topics_response_deletable_topic_result_shape,
                             deletion.out);
        deletion.out->name = deletion.name;
        deletion.out->topic_id = deletion.id;
        deletion.out->error_message = VIEW_NULL;
        if (deletion_admit(&deletion, in->timeout_ms, names_seen(&names, keys[i])))
            deletion_run(&deletion);
    }
    step->atomic = true;
    return cluster_done(step);
}

/* ---- CreatePartitions ------------------------------------------------------------------------ */

/* One topic of the request. */
struct growth {
    struct cluster *cluster;
    struct step *step;
    const struct create_partitions_request_create_partitions_topic *in;
    struct create_partitions_response_create_partitions_topic_result *out;
    const struct image_topic *topic;
    int32_t added;
};

static bool growth_fail(struct growth *growth, int16_t error, struct view message)
{
    growth->out->error_code = error;
    growth->out->error_message = message;
    return false;
}

static bool growth_check(struct growth *growth, int32_t timeout_ms, uint32_t times)
{
    struct arena *arena = growth->step->arena;
    if (!growth->cluster->active) return growth_fail(growth, KAFKA_NOT_CONTROLLER, VIEW_NULL);
    if (timeout_ms <= 0) return growth_fail(growth, KAFKA_REQUEST_TIMED_OUT, VIEW_NULL);
    if (times > 1)
        return growth_fail(growth, KAFKA_INVALID_REQUEST, VIEW("the topic is named twice"));
    if (!cluster_allows(growth->step, CLUSTER_OP_ALTER, CLUSTER_ON_TOPIC, growth->in->name))
        return growth_fail(growth, KAFKA_TOPIC_AUTHORIZATION_FAILED, VIEW_NULL);
    growth->topic = image_topic(growth->cluster->image, growth->in->name);
    if (growth->topic == NULL)
        return growth_fail(growth, KAFKA_UNKNOWN_TOPIC_OR_PARTITION, VIEW_NULL);
    growth->added = growth->in->count - growth->topic->partition_count;
    if (growth->added <= 0)
        return growth_fail(growth, KAFKA_INVALID_PARTITIONS,
                           JOIN(arena, VIEW("the topic has "),
                                join_number(arena, growth->topic->partition_count),
                                VIEW(" partitions; their number can only grow")));
    if (growth->in->assignments.count >= 0 && growth->in->assignments.count != growth->added)
        return growth_fail(growth, KAFKA_INVALID_REPLICA_ASSIGNMENT,
                           VIEW("there must be one assignment for each new partition"));
    if ((uint32_t)growth->added > step_room(growth->step))
        return growth_fail(growth, KAFKA_POLICY_VIOLATION,
                           VIEW("the request makes more than 10000 records"));
    return true;
}

static bool growth_assigned(struct growth *growth, uint32_t factor, struct cluster_assigned *out)
{
    out->count = (uint32_t)growth->added;
    out->items = step_get(growth->step, out->count * sizeof(out->items[0]));
    if (out->items == NULL) return false;
    for (uint32_t i = 0; i < out->count; i++)
        out->items[i] =
            (struct image_ids){growth->in->assignments.items[i].broker_ids.items,
                               (uint32_t)MAX(growth->in->assignments.items[i].broker_ids.count, 0)};
    struct view fault = cluster_assign_fault(growth->cluster, growth->step, out, factor);
    return fault.null || growth_fail(growth, KAFKA_INVALID_REPLICA_ASSIGNMENT, fault);
}

static bool growth_run(struct growth *growth, bool validate_only)
{
    struct cluster_assigned partitions = {0};
    const struct image_partition *first = image_partition(growth->topic, 0);
    uint32_t factor = first == NULL ? 1 : first->counts[IMAGE_REPLICAS];
    if (growth->in->assignments.count >= 0) {
        if (!growth_assigned(growth, factor, &partitions)) return false;
    } else {
        struct view fault = cluster_assign_place(
            growth->cluster, growth->step, (uint32_t)growth->added, (int32_t)factor, &partitions);
        if (!fault.null) return growth_fail(growth, KAFKA_INVALID_REPLICATION_FACTOR, fault);
    }
    if (!cluster_charge(growth->step, partitions.count))
        return growth_fail(growth, KAFKA_THROTTLING_QUOTA_EXCEEDED, CLUSTER_QUOTA_USED_UP);
    if (validate_only) return true;
    return cluster_assign_add(growth->cluster, growth->step, growth->topic->id,
                              growth->topic->partition_count, &partitions);
}

enum step_result cluster_create_partitions(struct cluster *cluster,
                                           struct step *step,
                                           const struct create_partitions_request *in,
                                           struct create_partitions_response *out)
{
    wire_defaults(&wire_create_partitions_response, out);
    uint32_t count = (uint32_t)MAX(in->topics.count, 0);
    struct names names;
    struct names answered;
    uint64_t seed = step_random(step);
    out->results.items = step_get(step, (count + 1) * sizeof(out->results.items[0]));
    if (out->results.items == NULL || !names_init(&names, step->arena, count, seed) ||
        !names_init(&answered, step->arena, count, seed))
        return STEP_E_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        names_see(&names, in->topics.items[i].name);
    for (uint32_t i = 0; i < count; i++) {
        struct view name = in->topics.items[i].name;
        if (names_see(&answered, name) > 1) continue;
        struct growth growth = {
            .cluster = cluster,
            .step = step,
            .in = &in->topics.items[i],
            .out = &out->results.items[out->results.count++],
        };
        growth.out->name = name;
        growth.out->error_message = VIEW_NULL;
        uint32_t before = step->record_count;
        if (!growth_check(&growth, in->timeout_ms, names_seen(&names, name)) ||
            !growth_run(&growth, in->validate_only))
            step->record_count = before;
        if (step->arena->failed) return STEP_E_MEMORY;
    }
    step->atomic = true;
    return STEP_DONE;
}
