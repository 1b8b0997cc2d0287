/* shards.c - see shards.h. Letters are allocated by who posts and freed by who opens. */
#include "broker/shards.h"

#include "broker/controller.h"
#include "broker/coordinator.h"
#include "broker/metadata_log.h"

/* ---- who owns what --------------------------------------------------------------------------- */

uint32_t shards_owner(const struct node *node, struct view topic, int32_t partition)
{
    if (node->count == 1) return 0;
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (uint32_t i = 0; i < topic.size; i++)
        hash = (hash ^ topic.data[i]) * 16777619u;
    return (hash + (uint32_t)partition) % node->count;
}

uint32_t shards_group_owner(const struct node *node, struct view group)
{
    const struct image_topic *topic = image_topic(node->image, VIEW(COORDINATOR_TOPIC));
    if (topic == NULL || topic->partition_count <= 0 || group.null) return node->index;
    uint32_t partition = coordinator_partition(group, (uint32_t)topic->partition_count);
    return shards_owner(node, topic->name, (int32_t)partition);
}

/* ---- the image ------------------------------------------------------------------------------- */

struct published {
    struct letter letter;
    struct buf *batches;
    int64_t offset_end;
    int16_t kraft_version;
};

struct applying {
    struct node *node;
    struct arena arena;
};

static bool apply_record(void *context,
                         const struct batch_header *batch,
                         int64_t offset,
                         bool control,
                         struct view key,
                         struct view value)
{
    struct applying *applying = context;
    struct step_record record;
    (void)key;
    if (control) return true;
    arena_reset(&applying->arena);
    return step_decode(value, &applying->arena, &record) &&
           image_apply(applying->node->image, &record, offset, batch->base_offset) == IMAGE_OK;
}

static void published_opened(void *owner, struct letter *letter)
{
    struct published *published = container_of(letter, struct published, letter);
    struct node *node = node_of(owner);
    struct applying applying = {.node = node};
    struct metadata_reader reader = {apply_record, &applying};
    struct buf *batches = published->batches;
    arena_init(&applying.arena, node->mem, 0);
    if (node->failed == NULL &&
        metadata_batches_read(node->mem, view_of(batches->data, batches->size_bytes), &reader) != 0)
        node->failed = "a shard could not apply a committed record";
    node->kraft_version = published->kraft_version;
    if (node->failed == NULL) {
        image_commit(node->image, published->offset_end);
        node->image_offset = published->offset_end;
    } else {
        image_undo(node->image, node->image_offset); /* All of a batch, or nothing. */
        say(node->say, SAY_ERROR, SAY_IN_NODE, "shard %u: %s", node->index, node->failed);
    }
    arena_free(&applying.arena);
    buf_release(batches);
    mem_put(node->mem, published, sizeof(*published));
}

bool shards_publish(struct node *first, struct buf *batches, int64_t offset_end)
{
    for (uint32_t i = 1; i < first->count; i++) {
        struct published *published = mem_get(first->mem, sizeof(*published));
        if (published == NULL) return false;
        published->letter.open = published_opened;
        published->batches = buf_hold(batches);
        published->offset_end = offset_end;
        published->kraft_version = first->kraft_version;
        shard_post(first->peers[i]->shard, &published->letter);
    }
    return true;
}

/* ---- the registration ------------------------------------------------------------------------ */

struct registered {
    struct letter letter;
    int64_t broker_epoch;
};

static void registered_opened(void *owner, struct letter *letter)
{
    struct registered *registered = container_of(letter, struct registered, letter);
    struct node *node = node_of(owner);
    node->broker_epoch = registered->broker_epoch;
    mem_put(node->mem, registered, sizeof(*registered));
}

bool shards_registered(struct node *first)
{
    for (uint32_t i = 1; i < first->count; i++) {
        struct registered *registered = mem_get(first->mem, sizeof(*registered));
        if (registered == NULL) return false;
        registered->letter.open = registered_opened;
        registered->broker_epoch = first->broker_epoch;
        shard_post(first->peers[i]->shard, &registered->letter);
    }
    return true;
}

/* ---- topics on their first use --------------------------------------------------------------- */

struct wanted_topic {
    struct letter letter;
    uint32_t size;
    uint8_t name[TOPIC_NAME_MAX];
};

static void wanted_opened(void *owner, struct letter *letter)
{
    struct wanted_topic *wanted = container_of(letter, struct wanted_topic, letter);
    struct node *first = node_of(owner);
    struct view name = view_of(wanted->name, wanted->size);
    if (image_topic(first->image, name) == NULL) controller_auto_create(first, name, NULL);
    mem_put(first->mem, wanted, sizeof(*wanted));
}

void shards_auto_create(struct node *node, struct view topic)
{
    struct wanted_topic *wanted = mem_get(node->mem, sizeof(*wanted));
    assert(topic.size <= TOPIC_NAME_MAX);
    if (wanted == NULL) return; /* The client asks again. */
    wanted->letter.open = wanted_opened;
    wanted->size = topic.size;
    memcpy(wanted->name, topic.data, topic.size);
    shard_post(node->peers[0]->shard, &wanted->letter);
}

/* ---- logs ------------------------------------------------------------------------------------ */

struct told_lines {
    struct letter letter;
    struct logs_lines lines;
    uint8_t text[];
};

static bool logs_owns(void *context, struct view topic, int32_t partition)
{
    const struct node *node = context;
    return shards_owner(node, topic, partition) == node->index;
}

static void lines_opened(void *owner, struct letter *letter)
{
    struct told_lines *told = container_of(letter, struct told_lines, letter);
    struct node *first = node_of(owner);
    uint32_t size = told->lines.text.size;
    told->lines.text = view_of(told->text, size);
    (void)!logs_take_lines(first->logs, &told->lines); /* The next ones come as well. */
    mem_put(first->mem, told, sizeof(*told) + size);
}

static void logs_tell(void *context, const struct logs_lines *lines)
{
    struct node *node = context, *first = node->peers[0];
    if (first->resting) {
        (void)!logs_take_lines(first->logs, lines);
        return;
    }
    struct told_lines *told = mem_get(node->mem, sizeof(*told) + lines->text.size);
    if (told == NULL) return;
    told->letter.open = lines_opened;
    told->lines = *lines;
    if (lines->text.size > 0) memcpy(told->text, lines->text.data, lines->text.size);
    shard_post(first->shard, &told->letter);
}

void shards_logs_part(struct node *node, struct logs_part *out)
{
    *out = (struct logs_part){.index = node->index,
                              .count = node->count,
                              .first = node->peers[0]->logs,
                              .owns = logs_owns,
                              .tell = logs_tell,
                              .context = node};
}

struct lost_directory {
    struct letter letter;
    uint32_t index;
    int error;
};

static void lost_opened(void *owner, struct letter *letter)
{
    struct lost_directory *lost = container_of(letter, struct lost_directory, letter);
    struct node *node = node_of(owner);
    logs_dir_fail(node->logs, lost->index, lost->error);
    mem_put(node->mem, lost, sizeof(*lost));
}

static void directory_offline(struct logs_watch *watch, uint32_t index)
{
    struct node *node = container_of(watch, struct node, logs_watch);
    struct log_dir_info info;
    logs_dir_info(node->logs, index, &info);
    for (uint32_t i = 0; i < node->count; i++) {
        struct node *peer = node->peers[i];
        if (peer == node) continue;
        if (node->peers[0]->resting) {
            if (peer->logs != NULL) logs_dir_fail(peer->logs, index, info.error);
            continue;
        }
        struct lost_directory *lost = mem_get(node->mem, sizeof(*lost));
        if (lost == NULL) continue; /* It meets the failure by itself. */
        lost->letter.open = lost_opened;
        lost->index = index;
        lost->error = info.error;
        shard_post(peer->shard, &lost->letter);
    }
}

void shards_logs_watch(struct node *node)
{
    if (node->count == 1) return;
    node->logs_watch.offline = directory_offline;
    logs_watch_add(node->logs, &node->logs_watch);
}
