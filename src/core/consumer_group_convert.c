/* consumer_group_convert.c - a group that changes its protocol while it runs.
 *
 * What the group will be is built in a shell that nobody finds; its records are read off it, and
 * the shell goes. They are applied like any others: first the tombstones of what the group was. */
#include "core/consumer_group_internal.h"
#include "core/consumer_protocol.h"
#include "gen/join_group_request.h"

/* ---- classic to consumer --------------------------------------------------------------------- */

static bool may_upgrade(const struct group *group)
{
    const struct consumer_group_options *options = &group->groups->consumer_options;
    return (options->migration & CONSUMER_GROUP_UPGRADE) != 0 &&
           view_is(group->protocol_type, "consumer") && !group->protocol.null &&
           group->members.count <= options->size_max;
}

static enum kafka_error protocol_error(enum consumer_protocol_result result)
{
    switch (result) {
    case CONSUMER_PROTOCOL_OK: return KAFKA_NONE;
    case CONSUMER_PROTOCOL_E_MEMORY: return KAFKA_COORDINATOR_NOT_AVAILABLE;
    default: return KAFKA_GROUP_ID_NOT_FOUND;
    }
}

static enum kafka_error upgrade_member(const struct member *from,
                                       struct arena *arena,
                                       struct consumer_group *to)
{
    const struct group *group = from->group;
    const struct image *image = group->groups->image;
    struct view metadata = group_protocols_metadata(from->protocols, group->protocol);
    struct consumer_subscription subscription;
    struct consumer_current now = {
        .epoch = group->generation,
        .previous = group->generation,
        .state = CONSUMER_STABLE,
    };
    enum consumer_protocol_result result =
        consumer_protocol_subscription(arena, image, metadata, &subscription);
    if (result == CONSUMER_PROTOCOL_OK)
        result = consumer_protocol_assignment(arena, image, from->assignment, group->generation,
                                              &now.assigned);
    if (result != CONSUMER_PROTOCOL_OK) return protocol_error(result);
    struct consumer_said said = {
        .instance = from->instance,
        .rack = subscription.rack,
        .client_id = from->client_id.null ? VIEW_EMPTY : from->client_id,
        .client_host = from->client_host.null ? VIEW_EMPTY : from->client_host,
        .regex = VIEW_EMPTY,
        .assignor = VIEW_NULL,
        .topics = subscription.topics,
        .topic_count = subscription.topic_count,
        .rebalance_ms = from->rebalance_ms,
        .classic = true,
        .session_ms = from->session_ms,
        .protocols = from->protocols->items,
        .protocol_count = from->protocols->count,
    };
    struct consumer_member *member = consumer_group_member_make(to, from->id);
    bool made = member != NULL && consumer_member_say(member, &said) &&
                consumer_member_set(member, &now) &&
                consumer_target_set(to, from->id, &now.assigned);
    return made ? KAFKA_NONE : KAFKA_COORDINATOR_NOT_AVAILABLE;
}

/* In the order of Kafka's conversion. */
static bool upgrade_records(const struct group *shell, struct step *step)
{
    const struct consumer_group *group = shell->consumer;
    bool put = group_tombstone_put(step, shell->id);
#define EACH(call)                                                                                 \
    list_foreach (link, &group->member_list) {                                                     \
        const struct consumer_member *member = container_of(link, struct consumer_member, link);   \
        put = put && (call);                                                                       \
    }
    EACH(consumer_record_said(step, shell->id, member->id, &member->said))
    put = put && consumer_record_group(step, shell->id, group->epoch, group->hash);
    EACH(consumer_record_target(step, shell->id, member->id,
                                consumer_group_target(group, member->id)))
    put = put && consumer_record_assigned(step, shell->id, group->assignment_epoch, 0);
    EACH(consumer_record_current(step, shell->id, member->id, &member->now))
#undef EACH
    return put;
}

enum kafka_error consumer_group_upgrade(const struct group *classic,
                                        struct step *step,
                                        struct group *shell)
{
    enum kafka_error error = KAFKA_NONE;
    if (!may_upgrade(classic)) return KAFKA_GROUP_ID_NOT_FOUND;
    group_shell(shell, classic->groups, classic->id);
    if (!consumer_group_become(shell)) return KAFKA_COORDINATOR_NOT_AVAILABLE;
    shell->consumer->epoch = shell->consumer->assignment_epoch = classic->generation;
    list_foreach (link, &classic->member_list)
        if (error == KAFKA_NONE)
            error = upgrade_member(container_of(link, struct member, link), step->arena,
                                   shell->consumer);
    if (error == KAFKA_NONE && !upgrade_records(shell, step))
        error = KAFKA_COORDINATOR_NOT_AVAILABLE;
    if (error != KAFKA_NONE) group_shell_free(shell);
    return error;
}

/* ---- consumer to classic --------------------------------------------------------------------- */

bool consumer_group_leaves(const struct consumer_leaving *leaving,
                           const struct consumer_member *member)
{
    for (uint32_t i = 0; i < leaving->count; i++)
        if (leaving->members[i] == member) return true;
    return false;
}

bool consumer_group_may_downgrade(const struct group *group,
                                  const struct consumer_leaving *leaving,
                                  bool joins)
{
    uint32_t stay = joins;
    if (!(group->groups->consumer_options.migration & CONSUMER_GROUP_DOWNGRADE)) return false;
    list_foreach (link, &group->consumer->member_list) {
        const struct consumer_member *member = container_of(link, struct consumer_member, link);
        if (consumer_group_leaves(leaving, member)) continue;
        if (!member->said.classic) return false;
        stay++;
    }
    return stay > (uint32_t)joins && stay <= group->groups->options.size_max;
}

struct downgrading {
    const struct group *group;
    struct step *step;
    struct group *shell;
};

static bool downgrade_member(const struct downgrading *d,
                             struct view id,
                             const struct consumer_said *said,
                             const struct consumer_member *before)
{
    struct mem *mem = d->shell->groups->mem;
    struct partition_set holds = {0};
    /* Not the target: others may hold its partitions still, and an upgrade or a restart before the
     * members have joined would take the assignments for what each may use. */
    if (!partition_set_join(d->step->arena, &before->now.assigned, &before->now.pending, &holds))
        return false;
    uint32_t count = MIN(said->protocol_count, GROUP_PROTOCOLS_MAX);
    struct join_group_request request = {
        .protocols = {.items = step_get(d->step, (count + 1) * sizeof(*request.protocols.items))}};
    struct member_names names = {id, said->instance, said->client_id, said->client_host};
    if (request.protocols.items == NULL) return false;
    for (uint32_t i = 0; i < count; i++) {
        request.protocols.items[i].name = said->protocols[i].name;
        request.protocols.items[i].metadata = said->protocols[i].metadata;
    }
    request.protocols.count = (int32_t)count;
    struct view bytes =
        consumer_protocol_assigned(d->step->arena, d->group->groups->image, &holds,
                                   count == 0 ? VIEW_EMPTY : said->protocols[0].metadata);
    struct member_protocols *protocols = bytes.null ? NULL : group_protocols_new(mem, &request);
    struct member *member = protocols == NULL ? NULL : member_new(d->shell, &names, protocols);
    if (member == NULL) {
        group_protocols_free(mem, protocols);
        return false;
    }
    member->session_ms = said->session_ms;
    member->rebalance_ms = said->rebalance_ms;
    if (group_text_set(mem, &member->assignment, bytes) && group_add(d->shell, member)) return true;
    member_free(member);
    return false;
}

static bool downgrade_shell(const struct downgrading *d,
                            const struct consumer_leaving *leaving,
                            const struct consumer_joining *joining)
{
    struct group *shell = d->shell;
    list_foreach (link, &d->group->consumer->member_list) {
        const struct consumer_member *member = container_of(link, struct consumer_member, link);
        if (consumer_group_leaves(leaving, member)) continue;
        if (!downgrade_member(d, member->id, &member->said, member)) return false;
    }
    if (joining != NULL && !downgrade_member(d, joining->id, joining->said, leaving->members[0]))
        return false;
    shell->generation = d->group->consumer->epoch;
    shell->state = GROUP_STABLE;
    return group_text_set(shell->groups->mem, &shell->protocol_type, VIEW("consumer")) &&
           group_text_set(shell->groups->mem, &shell->protocol, group_choose(shell));
}

enum step_result consumer_group_downgrade(struct group *group,
                                          struct step *step,
                                          const struct consumer_leaving *leaving,
                                          const struct consumer_joining *joining)
{
    struct groups *groups = group->groups;
    struct group shell;
    struct downgrading d = {group, step, &shell};
    group_shell(&shell, groups, group->id);
    bool put = downgrade_shell(&d, leaving, joining) && consumer_group_gone(group, step) &&
               group_record_put(&shell, step, NULL);
    group_shell_free(&shell);
    if (!put) return STEP_E_MEMORY;
    groups->decision = (struct group_decision){
        .kind = DECISION_DOWNGRADE,
        .wait = joining == NULL ? NULL : joining->wait,
    };
    groups->settle = (struct consumer_settle){
        .set = true,
        .group = arena_copy(step->arena, group->id),
        .member = joining == NULL ? VIEW_EMPTY : joining->id,
        .wait = groups->decision.wait,
        .downgraded = true,
    };
    return STEP_DONE;
}

/* The members have lost one of theirs: they are asked to join, and share anew. */
void consumer_group_downgraded(struct group *group, const struct consumer_settle *settle)
{
    struct step none = {0};
    list_foreach (link, &group->member_list)
        group_touch(container_of(link, struct member, link));
    struct member *joining = group_member_by_id(group, settle->member);
    if (settle->wait != NULL && joining != NULL) member_park_join(joining, settle->wait);
    group_prepare(group, &none);
    assert(none.record_count == 0);
}
