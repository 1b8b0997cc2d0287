/* shards.c - see shards.h. Letters are allocated by who posts and freed by who opens. */
#include "broker/shards.h"

#include <stdatomic.h>

#include "broker/controller.h"
#include "broker/coordinator.h"

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
    struct list link; /* Until it is posted, and until it is applied. */
    struct buf *batches;
    int64_t offset_end;
    int16_t kraft_version;
};

static void published_free(struct node *node, struct published *published)
{
    buf_release(published->batches);
    mem_put(node->mem, published, sizeof(*published));
}

/* Its batches are applied, or cannot be now. */
static bool published_apply(struct node *node, const struct published *published)
{
    struct buf *batches = published->batches;
    int64_t now_ms = io_now_ms(node->io);
    switch (follow_batches(node->mem, node->image, view_of(batches->data, batches->size_bytes))) {
    case FOLLOW_DONE:
        node->kraft_version = published->kraft_version;
        image_commit(node->image, published->offset_end);
        node->image_offset = published->offset_end;
        break;
    case FOLLOW_MEMORY:
        if (follow_again_set(&node->behind, now_ms))
            say(node->say, SAY_WARN, SAY_IN_NODE,
                "shard %u has no memory to follow the metadata beyond offset %lld; it tries again "
                "until there is some (dohle.memory.max)",
                node->index, (long long)node->image_offset);
        return false;
    case FOLLOW_FAULT:
        node->failed = "a shard could not apply a committed record";
        say(node->say, SAY_ERROR, SAY_IN_NODE,
            "shard %u: %s; restart the node to read its log anew", node->index, node->failed);
        break;
    }
    return true;
}

static void shard_follow(struct node *node)
{
    while (!list_empty(&node->published)) {
        struct published *first = container_of(node->published.next, struct published, link);
        if (node->failed == NULL && !published_apply(node, first)) break;
        list_remove(&first->link);
        published_free(node, first);
    }
    bool behind = !list_empty(&node->published);
    if (!behind && node->behind.at_ms != 0) {
        say(node->say, SAY_INFO, SAY_IN_NODE, "shard %u follows the metadata again, after %lld ms",
            node->index, (long long)(io_now_ms(node->io) - node->behind.since_ms));
        node->behind.at_ms = 0;
    }
    const char *why = node->failed != NULL ? "a shard cannot follow the metadata: restart the node"
                      : behind ? "a shard has no memory to follow the metadata; it tries again"
                               : NULL;
    atomic_store(&node->follow_missing, why);
}

static void published_opened(void *owner, struct letter *letter)
{
    struct published *published = container_of(letter, struct published, letter);
    struct node *node = node_of(owner);
    list_append(&node->published, &published->link);
    if (node->behind.at_ms == 0) shard_follow(node); /* Else when it is time, in order. */
}

int64_t shards_turn(struct node *node)
{
    if (node->behind.at_ms == 0) return INT64_MAX;
    if (node->behind.at_ms <= io_now_ms(node->io)) shard_follow(node);
    return node->behind.at_ms == 0 ? INT64_MAX : node->behind.at_ms;
}

const char *shards_not_following(const struct node *first)
{
    const char *why = NULL;
    for (uint32_t i = 1; i < first->count && why == NULL; i++)
        if (first->peers[i] != NULL) why = atomic_load(&first->peers[i]->follow_missing);
    return why;
}

void shards_unpublish(struct node *node, struct list *letters)
{
    list_foreach (link, letters) {
        struct published *published = container_of(link, struct published, link);
        list_remove(link);
        published_free(node, published);
    }
}

bool shards_prepare(struct node *first, struct list *letters)
{
    list_init(letters);
    for (uint32_t i = 1; i < first->count; i++) {
        struct published *published = mem_get(first->mem, sizeof(*published));
        if (published == NULL) {
            shards_unpublish(first, letters);
            return false;
        }
        *published = (struct published){.letter.open = published_opened};
        list_append(letters, &published->link);
    }
    return true;
}

void shards_publish(struct node *first,
                    struct list *letters,
                    struct buf *batches,
                    int64_t offset_end)
{
    for (uint32_t i = 1; i < first->count; i++) {
        struct published *published = container_of(list_pop(letters), struct published, link);
        published->batches = buf_hold(batches);
        published->offset_end = offset_end;
        published->kraft_version = first->kraft_version;
        shard_post(first->peers[i]->shard, &published->letter);
    }
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
