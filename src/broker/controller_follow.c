/* controller_follow.c - what the log holds is applied: to the controller's own image when it was
 * appended, to the broker's and the other shards' when it is committed. Where there is no memory
 * for it, it waits, in order, and is tried again. */
#include "broker/controller_inside.h"
#include "broker/shards.h"

static void controller_published(struct controller *c, struct pending *pending)
{
    struct node *node = c->node;
    image_commit(node->image, pending->offset_end);
    node->image_offset = pending->offset_end;
    node->kraft_version = controller_kraft_version(node);
    shards_publish(node, &pending->letters, pending->buf, pending->offset_end);
    c->snapshot_bytes += pending->buf->size_bytes;
}

static void controller_behind(struct controller *c)
{
    if (follow_again_set(&c->behind, io_now_ms(c->node->io)))
        say(c->node->say, SAY_WARN, SAY_IN_CONTROLLER,
            "no memory to apply the metadata beyond offset %lld; it tries again until there is "
            "some (dohle.memory.max)",
            (long long)c->node->image_offset);
}

void controller_unapplied(struct controller *c)
{
    c->unapplied = container_of(c->pending.previous, struct pending, link);
    controller_behind(c);
}

/* Apply to the controller's own image what there was no memory for. */
static void controller_catch_up(struct controller *c)
{
    struct buf *buf = c->unapplied->buf;
    switch (follow_batches(c->node->mem, cluster_image(c->cluster),
                           view_of(buf->data, buf->size_bytes))) {
    case FOLLOW_DONE:
        cluster_applied(c->cluster);
        c->unapplied = NULL;
        break;
    case FOLLOW_MEMORY: controller_behind(c); break;
    case FOLLOW_FAULT: controller_fail(c, "a record that it made cannot be applied"); break;
    }
}

/* Apply one committed batch to the broker's image. False: not yet, or never. */
static bool controller_publish_one(struct controller *c, struct pending *pending)
{
    struct node *node = c->node;
    struct buf *buf = pending->buf;
    if (pending == c->unapplied) return false;
    switch (follow_batches(node->mem, node->image, view_of(buf->data, buf->size_bytes))) {
    case FOLLOW_DONE: break;
    case FOLLOW_MEMORY: controller_behind(c); return false;
    case FOLLOW_FAULT:
        controller_fail(c, "a committed record cannot be applied");
        controller_snapshot_give_up(c);
        return false;
    }
    controller_published(c, pending);
    list_remove(&pending->link);
    controller_pending_free(c, pending);
    return true;
}

/* Apply what is committed to the broker's image. */
void controller_publish(struct controller *c, int64_t high_watermark)
{
    while (!list_empty(&c->pending) && c->failed == NULL) {
        struct pending *pending = container_of(c->pending.next, struct pending, link);
        if (pending->offset_end > high_watermark || !controller_publish_one(c, pending)) break;
    }
    cluster_commit(c->cluster, high_watermark);
}

/* What the clients may be told: committed, and applied here. */
int64_t controller_answerable(const struct controller *c)
{
    if (c->failed != NULL) return -1;
    return MIN(quorum_high_watermark(c->quorum), c->node->image_offset);
}

/* Try again what there was no memory for. */
void controller_follow_again(struct controller *c)
{
    if (c->behind.at_ms == 0 || c->behind.at_ms > io_now_ms(c->node->io)) return;
    int64_t tried_ms = c->behind.at_ms;
    if (c->unapplied != NULL) controller_catch_up(c);
    if (c->failed == NULL && c->unapplied == NULL)
        controller_publish(c, quorum_high_watermark(c->quorum));
    c->fetches_due = true;
    if (c->failed != NULL || c->behind.at_ms != tried_ms) return;
    say(c->node->say, SAY_INFO, SAY_IN_CONTROLLER, "the metadata is followed again, after %lld ms",
        (long long)(io_now_ms(c->node->io) - c->behind.since_ms));
    c->behind.at_ms = 0;
}
