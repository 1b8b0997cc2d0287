/* controller_watch.c - one log line for each change in a broker's life, with its reason, as it is
 * committed; and the words for both. */
#include <stdio.h>

#include "broker/controller_inside.h"

static const char *const reason_words[] = {
    [CLUSTER_REASON_NONE] = "for a reason of before this start",
    [CLUSTER_REASON_REGISTERED] = "a new incarnation registered",
    [CLUSTER_REASON_CAUGHT_UP] = "it has caught up",
    [CLUSTER_REASON_SESSION] = "nothing was heard of it for a session",
    [CLUSTER_REASON_WANTED_FENCE] = "it asked for it",
    [CLUSTER_REASON_SHUTDOWN] = "its shutdown was granted",
};

const struct image *controller_image(const struct node *node, int64_t *end)
{
    *end = log_end_assigned(node->controller->log);
    return cluster_image(node->controller->cluster);
}

bool controller_broker(const struct node *node, int32_t id, struct cluster_broker_view *out)
{
    return cluster_broker(node->controller->cluster, id, out);
}

const char *controller_reason(const struct cluster_broker_view *view)
{
    return reason_words[view->reason];
}

/* The session of who is fenced for silence, in words; else empty. */
static void silence_words(const struct controller *c,
                          const struct cluster_broker_view *view,
                          char *out,
                          size_t size)
{
    out[0] = '\0';
    if (view->reason != CLUSTER_REASON_SESSION || view->beat_count == 0) return;
    int64_t last_ms = view->beats[view->beat_count - 1].at_ms;
    (void)snprintf(out, size, " (last heartbeat %.1f s ago)",
                   (double)(io_now_ms(c->node->io) - last_ms) / 1000.0);
}

static void say_fenced(struct controller *c,
                       const struct image_node *now,
                       const struct cluster_broker_view *view)
{
    char silence[64];
    silence_words(c, view, silence, sizeof(silence));
    say(c->node->say, view->reason == CLUSTER_REASON_SESSION ? SAY_WARN : SAY_INFO,
        SAY_IN_CONTROLLER, "broker %d is fenced: %s%s; %u partitions changed by it", now->id,
        reason_words[view->reason], silence, view->moved);
}

static void say_changed(struct controller *c,
                        const struct image_node *before,
                        const struct image_node *now)
{
    const struct say *to = c->node->say;
    struct cluster_broker_view view = {0};
    (void)cluster_broker(c->cluster, now->id, &view);
    if (before == NULL || before->epoch != now->epoch) {
        say(to, SAY_INFO, SAY_IN_CONTROLLER,
            "broker %d registered with epoch %lld, fenced until it has read offset %lld", now->id,
            (long long)now->epoch, (long long)now->register_offset);
    } else if (before->fenced && !now->fenced) {
        say(to, SAY_INFO, SAY_IN_CONTROLLER,
            "broker %d is unfenced: it has read offset %lld; %u partitions got a leader by it",
            now->id, (long long)view.metadata_offset, view.moved);
    } else if (!before->fenced && now->fenced) {
        say_fenced(c, now, &view);
    } else if (!before->in_controlled_shutdown && now->in_controlled_shutdown) {
        say(to, SAY_INFO, SAY_IN_CONTROLLER,
            "broker %d shuts down: %u partitions changed, it may stop when others have seen it",
            now->id, view.moved);
    } else if (before->directory_count > now->directory_count) {
        say(to, SAY_WARN, SAY_IN_CONTROLLER,
            "broker %d has lost a log directory: %u of %u are left", now->id, now->directory_count,
            before->directory_count);
    }
}

void controller_follow(struct node *node, const struct image_change *change)
{
    struct controller *c = node->controller;
    if (change->kind != IMAGE_BROKER || c == NULL || !c->serving) return;
    const struct image_node *before = (const struct image_node *)change->before;
    const struct image_node *now = (const struct image_node *)change->now;
    int32_t id = now != NULL ? now->id : before->id;
    if (id == node->options.node_id && !node->options.controller_only) return; /* Itself. */
    if (now == NULL)
        say(node->say, SAY_INFO, SAY_IN_CONTROLLER, "broker %d is unregistered", id);
    else
        say_changed(c, before, now);
}
