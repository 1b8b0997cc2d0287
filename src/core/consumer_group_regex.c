/* consumer_group_regex.c - subscriptions by a regular expression: when the
 * expressions of a group are to be matched with the topics, and what the result does to it.
 *
 * Whether an expression is one and what it matches is found outside, so that this stays pure. */
#include "core/consumer_group_internal.h"

#include "base/view_sort.h"

#define REGEX_PAUSE_MS 10000 /* Between two resolutions of a group, as in Kafka. */

static struct consumer_group *find(const struct groups *groups, struct view id)
{
    struct group *group = groups_find(groups, id);
    return group == NULL ? NULL : group->consumer;
}

bool consumer_group_regex_known(const struct groups *groups, struct view id, struct view regex)
{
    const struct consumer_group *group = find(groups, id);
    return group != NULL && consumer_group_regex_users(group, regex, NULL) > 0;
}

/* The expressions of all members, each once. */
static struct view *expressions(const struct consumer_group *group,
                                struct arena *arena,
                                uint32_t *count)
{
    struct view *out = arena_take(arena, ((size_t)group->members.count + 1) * sizeof(*out));
    uint32_t all = 0, kept = 0;
    *count = 0;
    if (out == NULL) return NULL;
    list_foreach (link, &group->member_list) {
        const struct consumer_member *member = container_of(link, struct consumer_member, link);
        if (!member->said.regex.null && member->said.regex.size > 0)
            out[all++] = member->said.regex;
    }
    view_sort(out, all);
    for (uint32_t i = 0; i < all; i++)
        if (kept == 0 || !view_equal(out[kept - 1], out[i])) out[kept++] = out[i];
    *count = kept;
    return out;
}

const struct view *consumer_group_regex_due(struct groups *groups,
                                            struct step *step,
                                            struct view id,
                                            bool fresh,
                                            uint32_t *count)
{
    struct consumer_group *group = find(groups, id);
    if (group == NULL || group->regex_users == 0) return NULL;
    if (group->regex_ms != INT64_MIN && step->now_ms <= group->regex_ms + REGEX_PAUSE_MS)
        return NULL;
    bool old = group->regex_ms == INT64_MIN ||
               step->now_ms > group->regex_ms + groups->consumer_options.regex_refresh_ms;
    bool due = fresh || old || group->regex_open || group->regex_seen != groups->topics_version;
    if (!due) return NULL;
    group->regex_ms = step->now_ms;
    group->regex_begun = groups->topics_version;
    return expressions(group, step->arena, count);
}

static bool matched_before(const struct consumer_group *group,
                           const struct consumer_group_matched *matched)
{
    const struct consumer_regex *regex = consumer_group_regex(group, matched->regex);
    if (regex == NULL || regex->topic_count != matched->topic_count) return false;
    for (uint32_t i = 0; i < matched->topic_count; i++)
        if (!view_equal(regex->topics[i], matched->topics[i])) return false;
    return true;
}

enum step_result consumer_group_resolved(struct groups *groups,
                                         struct step *step,
                                         struct view id,
                                         const struct consumer_group_matched *matched,
                                         uint32_t count)
{
    const struct consumer_group *group = find(groups, id);
    struct consumer_edit edit = {
        .id = VIEW_NULL, .replaces = VIEW_NULL, .matched = matched, .matched_count = count};
    struct consumer_roster roster;
    struct consumer_topics topics;
    int64_t hash;
    bool other = false;
    groups_begin(groups, step);
    if (group == NULL) return STEP_DONE;
    for (uint32_t i = 0; i < count; i++) {
        if (consumer_group_regex_users(group, matched[i].regex, NULL) == 0) continue;
        other = other || !matched_before(group, &matched[i]);
        if (!consumer_record_regex(step, id, &matched[i])) return STEP_E_MEMORY;
    }
    if (!consumer_group_roster(group, step->arena, &edit, &roster) ||
        !consumer_group_topics(group, step->arena, &edit, &roster, &topics) ||
        !consumer_group_hash(groups, step->arena, &topics, &hash))
        return STEP_E_MEMORY;
    groups->settle = (struct consumer_settle){
        .set = true,
        .group = id,
        .member = VIEW_EMPTY,
        .resolved = true,
        .topics_version = group->regex_begun,
    };
    if (!other && hash == group->hash) return STEP_DONE;
    return consumer_record_group(step, id, group->epoch + 1, hash) ? STEP_DONE : STEP_E_MEMORY;
}
