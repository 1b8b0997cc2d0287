/* placed.c - telling the control part in which log directories replicas lie (AssignReplicasToDirs).
 *
 * It is told of every replica that lies elsewhere than the metadata has it, and of the copy of one
 * that is moved before that takes its place (log/move.c). One call at a time per shard; what was
 * refused or failed is told again after a pause that grows. A node with one directory tells
 * nothing: the control part knows it from the registration. */
#include "broker/placed.h"

#include "broker/controller.h"
#include "broker/shards.h"
#include "core/feature.h"
#include "gen/assign_replicas_to_dirs_request.h"
#include "gen/assign_replicas_to_dirs_response.h"

#define PLACED_MAX     1000u /* Replicas of one call. */
#define PLACED_WAIT_MS 100   /* Kafka's pauses: from this one, doubled, to the longest. */
#define PLACED_LONG_MS 10000

struct placed {
    struct list replicas; /* struct replica, by `placed`: the control part is to be told. */
    bool asking;
    int64_t again_ms; /* Not before. */
    int64_t wait_ms;  /* The pause after the next failure. */
};

bool placed_open(struct node *node)
{
    node->placed = mem_get(node->mem, sizeof(*node->placed));
    if (node->placed == NULL) return false;
    list_init(&node->placed->replicas);
    node->placed->wait_ms = PLACED_WAIT_MS;
    return true;
}

void placed_close(struct node *node)
{
    node->placed = mem_put(node->mem, node->placed, sizeof(*node->placed));
}

struct placed_call {
    struct letter letter; /* To the first shard, and back. */
    struct controller_call call;
    struct node *first, *owner;
    struct arena arena;
    struct assign_replicas_to_dirs_request in;
    struct assign_replicas_to_dirs_response out;
    int16_t error;
};

static bool directories_recorded(const struct node *node)
{
    return image_metadata_version(node->image) >= FEATURE_METADATA_DIRECTORIES;
}

struct uuid placed_recorded(const struct node *node,
                            const struct image_topic *topic,
                            int32_t partition)
{
    const struct image_partition *state = topic == NULL ? NULL : image_partition(topic, partition);
    struct uuid none = {{0}};
    if (state == NULL || !directories_recorded(node)) return none;
    struct image_ids replicas = image_list(state, IMAGE_REPLICAS);
    for (uint32_t i = 0; i < replicas.count; i++)
        if (replicas.items[i] == node->options.node_id) return image_directory(state, i);
    return none;
}

/* The directory that it is to have there: the copy's when that is whole. Its id; false: nothing is
 * to be told of it. */
static bool placed_where(const struct replica *replica, struct uuid *out)
{
    const struct node *node = replica->node;
    struct log_dir_info info;
    if (replica->log == NULL) return false;
    uint32_t index =
        replica->move_ready ? log_move_target(replica->log) : log_directory(replica->log);
    if (index == LOG_DIRECTORY_ANY) return false;
    logs_dir_info(node->logs, index, &info);
    *out = info.directory_id;
    return info.error == 0 && !uuid_is_zero(info.directory_id);
}

static bool placed_differs(const struct replica *replica, struct uuid *directory)
{
    const struct node *node = replica->node;
    const struct image_topic *topic = image_topic_by_id(node->image, replica->topic_id);
    if (topic == NULL || image_partition(topic, replica->partition) == NULL) return false;
    if (!directories_recorded(node) || !placed_where(replica, directory)) return false;
    return !uuid_equal(placed_recorded(node, topic, replica->partition), *directory);
}

void placed_note(struct replica *replica)
{
    struct placed *placed = replica->node->placed;
    struct uuid directory;
    if (logs_dir_count(replica->node->logs) < 2 || !list_empty(&replica->placed)) return;
    if (replica->move_ready || placed_differs(replica, &directory))
        list_append(&placed->replicas, &replica->placed);
}

/* What the control part has said, or not. */
static void placed_take(struct node *node, struct placed_call *told)
{
    struct placed *placed = node->placed;
    int64_t now_ms = io_now_ms(node->io);
    placed->asking = false;
    bool all = told->error == KAFKA_NONE;
    for (int32_t d = 0; d < told->in.directories.count; d++) {
        const struct assign_replicas_to_dirs_request_directory_data *directory =
            &told->in.directories.items[d];
        struct replica *replica =
            replica_find(node, directory->topics.items[0].topic_id,
                         directory->topics.items[0].partitions.items[0].partition_index);
        struct uuid wanted;
        if (replica == NULL || replica->log == NULL) continue;
        if (placed_differs(replica, &wanted)) {
            all = false;
            placed_note(replica);
        } else if (replica->move_ready) {
            replica->move_ready = false;
            logs_move_go(replica->log, true);
        }
    }
    placed->wait_ms = all ? PLACED_WAIT_MS : MIN(2 * placed->wait_ms, PLACED_LONG_MS);
    placed->again_ms = all ? 0 : now_ms + placed->wait_ms / 2;
    arena_free(&told->arena);
    mem_put(node->mem, told, sizeof(*told));
}

static void placed_returned(void *owner, struct letter *letter)
{
    (void)owner;
    struct placed_call *told = container_of(letter, struct placed_call, letter);
    placed_take(told->owner, told);
}

static void placed_done(struct controller_call *call, int16_t error)
{
    struct placed_call *told = container_of(call, struct placed_call, call);
    told->error = error != KAFKA_NONE ? error : told->out.error_code;
    if (told->error != KAFKA_NONE && told->error != KAFKA_NOT_CONTROLLER)
        say(told->first->say, SAY_WARN, SAY_IN_BROKER,
            "the control part was not told where replicas lie: error %d", told->error);
    told->letter.open = placed_returned;
    if (told->owner == told->first)
        placed_take(told->owner, told);
    else
        shard_post(told->owner->shard, &told->letter);
}

static void placed_submit(struct placed_call *told)
{
    struct node *first = told->first;
    told->in.broker_epoch = first->broker_epoch;
    told->call = (struct controller_call){
        .api_key = wire_assign_replicas_to_dirs_request.api_key,
        .version = wire_assign_replicas_to_dirs_request.version_max,
        .in = &told->in,
        .out = &told->out,
        .arena = &told->arena,
        .arrived_ms = io_now_ms(first->io),
        .done = placed_done,
    };
    controller_submit(first, &told->call);
}

static void placed_opened(void *owner, struct letter *letter)
{
    (void)owner;
    placed_submit(container_of(letter, struct placed_call, letter));
}

static struct placed_call *placed_new(struct node *node)
{
    struct placed_call *told = mem_get(node->mem, sizeof(*told));
    if (told == NULL) return NULL;
    told->first = node->peers[0];
    told->owner = node;
    told->letter.open = placed_opened;
    arena_init(&told->arena, node->mem, 0);
    wire_defaults(&wire_assign_replicas_to_dirs_request, &told->in);
    wire_defaults(&wire_assign_replicas_to_dirs_response, &told->out);
    told->in.broker_id = node->options.node_id;
    told->in.directories.items =
        arena_get(&told->arena, PLACED_MAX * sizeof(*told->in.directories.items));
    if (told->in.directories.items != NULL) return told;
    arena_free(&told->arena);
    return mem_put(node->mem, told, sizeof(*told));
}

/* One replica, with a directory entry of its own. False: no memory. */
static bool placed_fill(struct placed_call *told, const struct replica *replica, struct uuid id)
{
    struct assign_replicas_to_dirs_request_directory_data *directory =
        &told->in.directories.items[told->in.directories.count];
    struct assign_replicas_to_dirs_request_topic_data *topic =
        arena_get(&told->arena, sizeof(*topic));
    struct assign_replicas_to_dirs_request_partition_data *part =
        arena_get(&told->arena, sizeof(*part));
    if (topic == NULL || part == NULL) return false;
    wire_struct_defaults(&wire_assign_replicas_to_dirs_request_directory_data_shape, directory);
    wire_struct_defaults(&wire_assign_replicas_to_dirs_request_topic_data_shape, topic);
    wire_struct_defaults(&wire_assign_replicas_to_dirs_request_partition_data_shape, part);
    directory->id = id;
    directory->topics.items = topic;
    directory->topics.count = 1;
    topic->topic_id = replica->topic_id;
    topic->partitions.items = part;
    topic->partitions.count = 1;
    part->partition_index = replica->partition;
    told->in.directories.count++;
    return true;
}

/* The metadata has it so already, or never has it. */
static void placed_ready(struct replica *replica)
{
    if (!replica->move_ready) return;
    replica->move_ready = false;
    logs_move_go(replica->log, true);
}

int64_t placed_turn(struct node *node)
{
    struct placed *placed = node->placed;
    if (placed == NULL || list_empty(&placed->replicas) || placed->asking) return INT64_MAX;
    if (node->broker_epoch < 0 || node->peers[0]->closing) return INT64_MAX;
    if (io_now_ms(node->io) < placed->again_ms) return placed->again_ms;
    struct placed_call *told = placed_new(node);
    if (told == NULL) return io_now_ms(node->io) + PLACED_WAIT_MS;
    bool room = true;
    while (room && !list_empty(&placed->replicas) &&
           told->in.directories.count < (int32_t)PLACED_MAX) {
        struct replica *replica = container_of(placed->replicas.next, struct replica, placed);
        struct uuid directory;
        bool differs = placed_differs(replica, &directory);
        room = !differs || placed_fill(told, replica, directory);
        if (!room) break;
        list_remove(&replica->placed);
        if (!differs) placed_ready(replica);
    }
    if (told->in.directories.count == 0) {
        arena_free(&told->arena);
        mem_put(node->mem, told, sizeof(*told));
        return room ? INT64_MAX : io_now_ms(node->io) + PLACED_WAIT_MS;
    }
    placed->asking = true;
    if (node->index == 0)
        placed_submit(told);
    else
        shard_post(told->first->shard, &told->letter);
    return node->index == 0 ? 0 : INT64_MAX; /* The step is to be written. */
}
