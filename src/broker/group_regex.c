/* group_regex.c - see group_regex.h. */
#include "broker/group_regex.h"

#include "base/view_sort.h"
#include "broker/broker.h"
#include "broker/regex.h"
#include "core/consumer_group.h"
#include "gen/consumer_group_heartbeat_request.h"

struct view group_regex_fault(struct request *request, struct coordinator_part *part, bool *fresh)
{
    const struct consumer_group_heartbeat_request *in = request->message;
    struct view text = in->subscribed_topic_regex, why = VIEW_EMPTY;
    *fresh = false;
    if (text.null || text.size == 0) return VIEW_NULL;
    if (consumer_group_regex_known(coordinator_groups(part), in->group_id, text)) return VIEW_NULL;
    *fresh = true;
    struct regex *compiled = regex_new(&request->arena, text, &why);
    if (compiled == NULL)
        return broker_text(request,
                           "SubscribedTopicRegex `%.*s` is not a valid regular expression: %.*s.",
                           (int)text.size, (const char *)text.data, (int)why.size,
                           why.size == 0 ? "" : (const char *)why.data);
    (void)regex_free(compiled);
    return VIEW_NULL;
}

/* Topics that match and that the sender may see, sorted. */
static bool match_one(struct request *request, struct view text, struct consumer_group_matched *out)
{
    const struct node *node = node_of(request->shard);
    struct view *names =
        broker_array(request, (size_t)image_count(node->image, IMAGE_TOPIC) + 1, sizeof(*names));
    struct view why;
    struct regex *compiled = regex_new(&request->arena, text, &why);
    *out = (struct consumer_group_matched){
        .regex = text,
        .topics = names,
        .version = node->image_offset - 1,
    };
    if (names == NULL || compiled == NULL) {
        (void)regex_free(compiled);
        return names !=
               NULL; /* One that only another build takes for an expression has no topics. */
    }
    for (const struct image_object *object = NULL;
         (object = image_next(node->image, IMAGE_TOPIC, object)) != NULL;) {
        struct view name = ((const struct image_topic *)object)->name;
        if (!regex_matches(compiled, name)) continue;
        if (auth_allows(request, AUTH_DESCRIBE, AUTH_TOPIC, name)) names[out->topic_count++] = name;
    }
    view_sort(names, out->topic_count);
    (void)regex_free(compiled);
    return true;
}

void group_regex_resolve(struct request *request, struct coordinator_part *part, bool fresh)
{
    const struct consumer_group_heartbeat_request *in = request->message;
    struct groups *groups = coordinator_groups(part);
    struct step step;
    uint32_t count;
    coordinator_step(part, &step, request);
    const struct view *texts = consumer_group_regex_due(groups, &step, in->group_id, fresh, &count);
    if (texts == NULL) return;
    struct consumer_group_matched *matched = broker_array(request, count, sizeof(*matched));
    for (uint32_t i = 0; i < count; i++)
        if (matched == NULL || !match_one(request, texts[i], &matched[i])) return;
    if (consumer_group_resolved(groups, &step, in->group_id, matched, count) == STEP_DONE)
        (void)!coordinator_commit(part, &step); /* If it fails, the old result stands. */
}
