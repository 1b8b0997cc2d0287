/* recovered.c - telling the controller that a partition's leader has recovered (KIP-704).
 *
 * After an unclean election (a node alone that was killed elects itself so) a partition is
 * RECOVERING in the metadata until its leader says otherwise. The leader says so when the log is
 * open, or has no files to recover: AlterPartition with the ISR as it is, many partitions in one
 * call. Nothing is tried again: what fails, fails because the partition has changed, and then it is
 * told with that change. */
#include "broker/broker.h"
#include "broker/controller.h"
#include "broker/shards.h"
#include "gen/alter_partition_request.h"
#include "gen/alter_partition_response.h"

#define RECOVERED_MAX 1000u /* Partitions of one call. */

struct recovered_call {
    struct letter letter; /* To the first shard. */
    struct controller_call call;
    struct node *first;
    struct arena arena;
    struct alter_partition_request in;
    struct alter_partition_response out;
};

static void recovered_done(struct controller_call *call, int16_t error)
{
    struct recovered_call *told = container_of(call, struct recovered_call, call);
    struct node *first = told->first;
    if (error == KAFKA_NONE) error = told->out.error_code;
    if (error != KAFKA_NONE && error != KAFKA_NOT_CONTROLLER)
        say(first->say, SAY_WARN, SAY_IN_BROKER, "the control part was not told who recovered: %s",
            kafka_error_name(error));
    arena_free(&told->arena);
    mem_put(first->mem, told, sizeof(*told));
}

static void recovered_submit(struct recovered_call *told)
{
    struct node *first = told->first;
    told->in.broker_epoch = first->broker_epoch;
    told->call = (struct controller_call){
        .api_key = wire_alter_partition_request.api_key,
        .version = wire_alter_partition_request.version_max,
        .in = &told->in,
        .out = &told->out,
        .arena = &told->arena,
        .arrived_ms = io_now_ms(first->io),
        .done = recovered_done,
    };
    controller_submit(first, &told->call);
}

static void recovered_opened(void *owner, struct letter *letter)
{
    (void)owner;
    recovered_submit(container_of(letter, struct recovered_call, letter));
}

/* The ISR as it is, with our own epoch. */
static bool fill_isr(struct recovered_call *told,
                     const struct node *node,
                     const struct image_partition *state,
                     struct alter_partition_request_partition_data *out)
{
    struct image_ids isr = image_list(state, IMAGE_ISR);
    out->new_isr_with_epochs.items =
        arena_get(&told->arena, MAX(isr.count, 1u) * sizeof(*out->new_isr_with_epochs.items));
    if (out->new_isr_with_epochs.items == NULL) return false;
    for (uint32_t i = 0; i < isr.count; i++) {
        struct alter_partition_request_broker_state *broker = &out->new_isr_with_epochs.items[i];
        wire_struct_defaults(&wire_alter_partition_request_broker_state_shape, broker);
        broker->broker_id = isr.items[i];
        broker->broker_epoch = isr.items[i] == node->options.node_id ? node->broker_epoch : -1;
    }
    out->new_isr_with_epochs.count = (int32_t)isr.count;
    return true;
}

/* One partition as a topic of its own. False: no memory. */
static bool fill_one(struct recovered_call *told,
                     const struct replica *replica,
                     const struct image_partition *state)
{
    struct alter_partition_request_topic_data *topic =
        &told->in.topics.items[told->in.topics.count];
    struct alter_partition_request_partition_data *part = arena_get(&told->arena, sizeof(*part));
    if (part == NULL) return false;
    wire_struct_defaults(&wire_alter_partition_request_topic_data_shape, topic);
    wire_struct_defaults(&wire_alter_partition_request_partition_data_shape, part);
    topic->topic_id = replica->topic_id;
    topic->partitions.items = part;
    topic->partitions.count = 1;
    part->partition_index = replica->partition;
    part->leader_epoch = state->leader_epoch;
    part->partition_epoch = state->partition_epoch;
    part->leader_recovery_state = IMAGE_RECOVERED;
    if (!fill_isr(told, replica->node, state, part)) return false;
    told->in.topics.count++;
    return true;
}

static struct recovered_call *recovered_new(struct node *node)
{
    struct recovered_call *told = mem_get(node->mem, sizeof(*told));
    if (told == NULL) return NULL;
    told->first = node->peers[0];
    told->letter.open = recovered_opened;
    arena_init(&told->arena, node->mem, 0);
    wire_defaults(&wire_alter_partition_request, &told->in);
    wire_defaults(&wire_alter_partition_response, &told->out);
    told->in.broker_id = node->options.node_id;
    told->in.topics.items = arena_get(&told->arena, RECOVERED_MAX * sizeof(*told->in.topics.items));
    if (told->in.topics.items != NULL) return told;
    arena_free(&told->arena);
    return mem_put(node->mem, told, sizeof(*told));
}

/* Is there still something to say of it? */
static const struct image_partition *recovering(const struct node *node,
                                                const struct replica *replica)
{
    const struct image_topic *topic = image_topic_by_id(node->image, replica->topic_id);
    const struct image_partition *state =
        topic == NULL ? NULL : image_partition(topic, replica->partition);
    bool ours = state != NULL && state->leader == node->options.node_id &&
                state->recovery == IMAGE_RECOVERING;
    return ours ? state : NULL;
}

void recovered_turn(struct node *node)
{
    if (list_empty(&node->recovered) || node->broker_epoch < 0) return;
    if (node->peers[0]->closing) return; /* The control part answers nobody any more. */
    struct recovered_call *told = recovered_new(node);
    bool room = told != NULL;
    while (room && !list_empty(&node->recovered) &&
           told->in.topics.count < (int32_t)RECOVERED_MAX) {
        struct replica *replica = container_of(node->recovered.next, struct replica, recovered);
        const struct image_partition *state = recovering(node, replica);
        list_remove(&replica->recovered);
        if (state != NULL) room = fill_one(told, replica, state);
    }
    if (told == NULL) { /* No memory: until the partition's next change. */
        while (list_pop(&node->recovered) != NULL)
            ;
        return;
    }
    if (told->in.topics.count == 0) {
        arena_free(&told->arena);
        mem_put(node->mem, told, sizeof(*told));
    } else if (node->index == 0) {
        recovered_submit(told);
    } else {
        shard_post(told->first->shard, &told->letter);
    }
}

void recovered_note(struct replica *replica)
{
    if (recovering(replica->node, replica) == NULL || !list_empty(&replica->recovered)) return;
    list_append(&replica->node->recovered, &replica->recovered);
}
