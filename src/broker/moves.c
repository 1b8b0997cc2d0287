/* moves.c - AlterReplicaLogDirs: replicas go from one log directory to another (KIP-113).
 *
 * The log moves itself (log/move.c), the control part is told by placed.c. Here a request is
 * judged, in Kafka's order, and what becomes of moves is said and counted. A wish for a partition
 * that is not here is remembered until it is made, as Kafka does. */
#include "broker/moves.h"

#include "broker/placed.h"
#include "broker/shards.h"
#include "gen/alter_replica_log_dirs_request.h"
#include "gen/alter_replica_log_dirs_response.h"

#define WISHES_MAX 10000u

/* Where a partition that is not here yet is wanted. */
struct move_wish {
    struct list link;
    int32_t partition;
    uint32_t directory;
    uint32_t topic_size;
    uint8_t topic[TOPIC_NAME_MAX];
};

struct moves {
    struct logs_moves follow;
    struct list wishes;
    uint32_t wish_count;
    struct setting_number rate;
};

/* ---- what the log says ----------------------------------------------------------------------- */

static void moves_say(const struct node *node,
                      const struct log *log,
                      enum log_move_event event,
                      uint32_t directory)
{
    static const char *const words[] = {
        [LOG_MOVE_BEGUN] = "is being moved to",      [LOG_MOVE_READY] = "",
        [LOG_MOVE_DONE] = "has been moved to",       [LOG_MOVE_ENDED] = "is not moved any more to",
        [LOG_MOVE_FAILED] = "could not be moved to",
    };
    char name[TOPIC_NAME_MAX + 8];
    struct log_dir_info info;
    logs_dir_info(node->logs, directory, &info);
    say(node->say, event == LOG_MOVE_FAILED ? SAY_ERROR : SAY_INFO, SAY_IN_LOG,
        "partition %s-%d %s \"%s\"", say_bytes(log_topic(log), name, sizeof(name)),
        log_partition(log), words[event], info.path);
}

static void moves_told(void *context,
                       struct log *log,
                       enum log_move_event event,
                       uint32_t directory)
{
    struct node *node = context;
    struct metrics *metrics = &node->shard->metrics;
    const struct image_topic *topic = image_topic(node->image, log_topic(log));
    struct replica *replica =
        topic == NULL ? NULL : replica_find(node, topic->id, log_partition(log));
    if (event != LOG_MOVE_READY) moves_say(node, log, event, directory);
    if (event == LOG_MOVE_BEGUN) metric_add(metrics, METRIC_REPLICA_MOVES_BEGUN, 1);
    if (event == LOG_MOVE_DONE) metric_add(metrics, METRIC_REPLICA_MOVES_DONE, 1);
    if (event == LOG_MOVE_ENDED) metric_add(metrics, METRIC_REPLICA_MOVES_CANCELLED, 1);
    if (event == LOG_MOVE_FAILED) metric_add(metrics, METRIC_REPLICA_MOVES_FAILED, 1);
    if (replica == NULL || event == LOG_MOVE_BEGUN) return;
    replica->move_ready = event == LOG_MOVE_READY;
    placed_note(replica);
}

static int64_t moves_rate(void *context)
{
    struct node *node = context;
    return broker_setting_kept(node, &node->moves->rate) / node->count;
}

/* ---- life ------------------------------------------------------------------------------------ */

bool moves_open(struct node *node)
{
    struct moves *moves = mem_get(node->mem, sizeof(*moves));
    if (moves == NULL || !placed_open(node)) {
        mem_put(node->mem, moves, sizeof(*moves));
        return false;
    }
    node->moves = moves;
    moves->follow = (struct logs_moves){moves_told, moves_rate, node};
    moves->rate.name = "replica.alter.log.dirs.io.max.bytes.per.second";
    list_init(&moves->wishes);
    logs_moves_follow(node->logs, &moves->follow);
    return true;
}

static void wish_drop(struct node *node, struct move_wish *wish)
{
    list_remove(&wish->link);
    node->moves->wish_count--;
    mem_put(node->mem, wish, sizeof(*wish));
}

void moves_close(struct node *node)
{
    if (node->moves == NULL) return;
    list_foreach (link, &node->moves->wishes)
        wish_drop(node, container_of(link, struct move_wish, link));
    placed_close(node);
    node->moves = mem_put(node->mem, node->moves, sizeof(*node->moves));
}

/* ---- wishes ---------------------------------------------------------------------------------- */

static struct move_wish *wish_find(const struct node *node, struct view topic, int32_t partition)
{
    list_foreach (link, &node->moves->wishes) {
        struct move_wish *wish = container_of(link, struct move_wish, link);
        if (wish->partition == partition &&
            view_equal(view_of(wish->topic, wish->topic_size), topic))
            return wish;
    }
    return NULL;
}

static void wish_add(struct node *node, struct view topic, int32_t partition, uint32_t directory)
{
    struct move_wish *wish = wish_find(node, topic, partition);
    if (wish == NULL) {
        if (topic.size > TOPIC_NAME_MAX || node->moves->wish_count == WISHES_MAX) return;
        wish = mem_get(node->mem, sizeof(*wish));
        if (wish == NULL) return; /* It is a wish. */
        wish->partition = partition;
        wish->topic_size = topic.size;
        memcpy(wish->topic, topic.data, topic.size);
        list_init(&wish->link);
        list_append(&node->moves->wishes, &wish->link);
        node->moves->wish_count++;
    }
    wish->directory = directory;
}

uint32_t moves_wish(struct node *node, struct view topic, int32_t partition)
{
    struct move_wish *wish = wish_find(node, topic, partition);
    if (wish == NULL) return LOG_DIRECTORY_ANY;
    uint32_t directory = wish->directory;
    struct log_dir_info info;
    wish_drop(node, wish);
    logs_dir_info(node->logs, directory, &info);
    return info.error == 0 ? directory : LOG_DIRECTORY_ANY;
}

/* ---- the request ----------------------------------------------------------------------------- */

static uint32_t directory_of(const struct node *node, struct view path, struct log_dir_info *info)
{
    for (uint32_t i = 0; i < logs_dir_count(node->logs); i++) {
        logs_dir_info(node->logs, i, info);
        if (view_equal(view_of_string(info->path), path)) return i;
    }
    return LOG_DIRECTORY_ANY;
}

static int16_t move_one(struct request *request, struct view path, struct view topic, int32_t index)
{
    struct node *node = node_of(request->shard);
    struct log_dir_info info;
    if (!auth_allows(request, AUTH_ALTER, AUTH_CLUSTER, VIEW("kafka-cluster")))
        return KAFKA_CLUSTER_AUTHORIZATION_FAILED;
    if (!logs_move_name_fits(topic, index)) return KAFKA_INVALID_TOPIC_EXCEPTION;
    uint32_t directory = directory_of(node, path, &info);
    if (directory == LOG_DIRECTORY_ANY) return KAFKA_LOG_DIR_NOT_FOUND;
    if (info.error != 0) return KAFKA_KAFKA_STORAGE_ERROR;
    if (info.cordoned) return KAFKA_INVALID_REPLICA_ASSIGNMENT;
    const struct image_topic *known = image_topic(node->image, topic);
    struct replica *replica = known == NULL ? NULL : replica_find(node, known->id, index);
    if (replica == NULL) {
        wish_add(node, topic, index, directory);
        bool elsewhere = known != NULL && image_partition(known, index) != NULL;
        return elsewhere ? KAFKA_REPLICA_NOT_AVAILABLE : KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    }
    if (replica->log == NULL) return KAFKA_KAFKA_STORAGE_ERROR;
    logs_dir_info(node->logs, log_directory(replica->log), &info);
    if (info.error != 0) return KAFKA_KAFKA_STORAGE_ERROR;
    int result = logs_move(node->logs, replica->log, directory);
    if (result == LOG_OK) return KAFKA_NONE;
    return result == LOG_E_MEMORY ? KAFKA_UNKNOWN_SERVER_ERROR : KAFKA_KAFKA_STORAGE_ERROR;
}

/* The topic's entry in the answer, which has room for `most` partitions; NULL: no memory. */
static struct alter_replica_log_dirs_response_alter_replica_log_dir_topic_result *result_topic(
    struct request *request,
    struct alter_replica_log_dirs_response *out,
    struct view name,
    size_t most)
{
    for (int32_t i = 0; i < out->results.count; i++)
        if (view_equal(out->results.items[i].topic_name, name)) return &out->results.items[i];
    struct alter_replica_log_dirs_response_alter_replica_log_dir_topic_result *topic =
        &out->results.items[out->results.count];
    wire_struct_defaults(
        &wire_alter_replica_log_dirs_response_alter_replica_log_dir_topic_result_shape, topic);
    topic->topic_name = name;
    topic->partitions.items = broker_array(request, most, sizeof(*topic->partitions.items));
    if (topic->partitions.items == NULL) return NULL;
    out->results.count++;
    return topic;
}

/* How many partitions are asked for of this topic, in all directories. */
static size_t partitions_of(const struct alter_replica_log_dirs_request *in, struct view name)
{
    size_t count = 0;
    for (int32_t d = 0; d < in->dirs.count; d++)
        for (int32_t t = 0; t < in->dirs.items[d].topics.count; t++)
            if (view_equal(in->dirs.items[d].topics.items[t].name, name))
                count += (size_t)MAX(in->dirs.items[d].topics.items[t].partitions.count, 0);
    return count;
}

static bool move_topic(struct request *request,
                       struct view path,
                       const struct alter_replica_log_dirs_request_alter_replica_log_dir_topic *in,
                       struct alter_replica_log_dirs_response *out)
{
    const struct node *node = node_of(request->shard);
    for (int32_t p = 0; p < in->partitions.count; p++) {
        int32_t index = in->partitions.items[p];
        if (shards_owner(node, in->name, index) != node->index) continue; /* Its shard answers. */
        struct alter_replica_log_dirs_response_alter_replica_log_dir_topic_result *topic =
            result_topic(request, out, in->name, partitions_of(request->message, in->name));
        if (topic == NULL) return false;
        struct alter_replica_log_dirs_response_alter_replica_log_dir_partition_result *part =
            &topic->partitions.items[topic->partitions.count++];
        wire_struct_defaults(
            &wire_alter_replica_log_dirs_response_alter_replica_log_dir_partition_result_shape,
            part);
        part->partition_index = index;
        part->error_code = move_one(request, path, in->name, index);
        if (part->error_code != KAFKA_NONE) request_error(request, part->error_code);
    }
    return true;
}

void handle_alter_replica_log_dirs(struct shard *shard, struct request *request)
{
    const struct alter_replica_log_dirs_request *in = request->message;
    struct alter_replica_log_dirs_response *out = request_response(request);
    size_t topics = 1;
    (void)shard;
    for (int32_t d = 0; d < in->dirs.count; d++)
        topics += (size_t)MAX(in->dirs.items[d].topics.count, 0);
    if (out != NULL)
        out->results.items = broker_array(request, topics, sizeof(*out->results.items));
    bool enough = out != NULL && out->results.items != NULL;
    for (int32_t d = 0; enough && d < in->dirs.count; d++)
        for (int32_t t = 0; enough && t < in->dirs.items[d].topics.count; t++)
            enough = move_topic(request, in->dirs.items[d].path, &in->dirs.items[d].topics.items[t],
                                out);
    broker_answer(request, out, enough);
}
