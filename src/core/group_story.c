/* group_story.c - see group_story.h.
 *
 * A group's events lie in a ring that doubles up to GROUP_EVENTS_MAX. Nothing is told while the log
 * is loaded: what it says is state, not something that happens. */
#include "core/consumer_group_internal.h"

#define EVENTS_FIRST 4u

_Static_assert(GROUP_EVENT_ID_BYTES <= UINT8_MAX, "a member's id is counted in one byte");

static size_t story_bytes(uint32_t room)
{
    return sizeof(struct group_story) + room * sizeof(struct group_event);
}

static uint32_t story_index(const struct group_story *story, uint32_t n)
{
    return (story->first + n) % story->room;
}

void group_story_free(struct group *group)
{
    struct groups *groups = group->groups;
    if (group->story == NULL) return;
    size_t bytes = story_bytes(group->story->room);
    assert(groups->story_bytes >= bytes);
    groups->story_bytes -= bytes;
    group->story = mem_put(groups->mem, group->story, bytes);
}

/* Twice as many events, or none made: then the oldest is forgotten. */
static void story_grow(struct group *group)
{
    struct groups *groups = group->groups;
    const struct group_story *old = group->story;
    uint32_t room = old == NULL ? EVENTS_FIRST : MIN(old->room * 2, GROUP_EVENTS_MAX);
    if (old != NULL && old->room == room) return;
    if (groups->story_bytes + story_bytes(room) > GROUP_STORIES_BYTES_MAX) return;
    struct group_story *story = mem_get(groups->mem, story_bytes(room));
    if (story == NULL) return;
    story->room = room;
    for (uint32_t i = 0; old != NULL && i < old->count; i++)
        story->events[story->count++] = old->events[story_index(old, i)];
    group_story_free(group);
    group->story = story;
    groups->story_bytes += story_bytes(room);
}

static struct group_event *story_next(struct group *group)
{
    struct group_story *story = group->story;
    if (story == NULL || story->count == story->room) {
        story_grow(group);
        story = group->story;
    }
    if (story == NULL) return NULL;
    if (story->count == story->room) {
        story->first = story_index(story, 1);
        story->count--;
    }
    return &story->events[story_index(story, story->count++)];
}

static int64_t wall_of(const struct groups *groups, int64_t at_ms, struct group_now now)
{
    int64_t wall_ms = now.wall_ms - (now.now_ms - at_ms);
    return wall_ms > groups->loaded_wall_ms ? wall_ms : -1; /* A load is no contact. */
}

static struct group_now groups_now(const struct groups *groups)
{
    return (struct group_now){groups->now_ms, groups->wall_ms};
}

void group_tell(struct group *group, const struct group_telling *telling)
{
    struct groups *groups = group->groups;
    if (groups->loaded_wall_ms < 0) return;
    struct group_event *event = story_next(group);
    if (event == NULL) return;
    bool consumer = group->consumer != NULL;
    *event = (struct group_event){
        .wall_ms = groups->wall_ms,
        .contact_wall_ms =
            telling->contact_ms < 0 ? -1 : wall_of(groups, telling->contact_ms, groups_now(groups)),
        .generation = consumer ? group->consumer->epoch : group->generation,
        .number = telling->number,
        .kind = (uint8_t)telling->kind,
        .member_size = (uint8_t)MIN(telling->member.size, GROUP_EVENT_ID_BYTES),
    };
    if (event->member_size > 0) memcpy(event->member, telling->member.data, event->member_size);
    if (groups->options.told != NULL)
        groups->options.told(groups->options.told_context, group->id, event);
}

void group_tell_state(struct group *group)
{
    static const uint8_t kinds[] = {
        [GROUP_EMPTY] = GROUP_EVENT_EMPTY,
        [GROUP_PREPARING] = GROUP_EVENT_REBALANCE,
        [GROUP_COMPLETING] = GROUP_EVENT_GENERATION,
        [GROUP_STABLE] = GROUP_EVENT_STABLE,
    };
    if (group->state == GROUP_DEAD) return;
    group_tell(group, &(struct group_telling){
                          .kind = kinds[group->state],
                          .contact_ms = -1,
                          .number = (int32_t)group->members.count,
                      });
}

static int64_t member_contact_ms(const struct member *member)
{
    int64_t runs_ms = member->is_new ? GROUP_NEW_MEMBER_MS : member->session_ms;
    return member->session.entry.deadline_ms - runs_ms;
}

void group_tell_member(struct member *member, enum group_event_kind kind)
{
    int32_t number = kind == GROUP_EVENT_NOT_JOINED || kind == GROUP_EVENT_NOT_SYNCED
                         ? group_rebalance_ms(member->group)
                         : member->session_ms;
    group_tell(member->group, &(struct group_telling){
                                  .kind = kind,
                                  .member = member->id,
                                  .contact_ms = member_contact_ms(member),
                                  .number = number,
                              });
}

void group_tell_consumer(struct consumer_member *member, enum group_event_kind kind)
{
    int64_t session_ms = consumer_group_session_ms(member);
    group_tell(member->group,
               &(struct group_telling){
                   .kind = kind,
                   .member = member->id,
                   .contact_ms = member->session.entry.deadline_ms - session_ms,
                   .number = (int32_t)(kind == GROUP_EVENT_HELD_ON ? member->said.rebalance_ms
                                                                   : session_ms),
               });
}

/* The reason was told when it was decided; else the member has left, or is replaced. */
void group_tell_consumer_gone(struct consumer_member *member)
{
    const struct group_story *story = member->group->story;
    for (uint32_t i = story == NULL ? 0 : story->count; i-- > 0;) {
        const struct group_event *event = &story->events[story_index(story, i)];
        if (!group_event_of(event, member->id)) continue;
        if (event->kind >= GROUP_EVENT_SILENT && event->kind <= GROUP_EVENT_TOO_MANY) return;
        break;
    }
    bool away = member->now.epoch == CONSUMER_EPOCH_LEAVE_STATIC;
    group_tell_consumer(member, away ? GROUP_EVENT_REPLACED : GROUP_EVENT_LEFT);
}

/* ---- explaining ------------------------------------------------------------------------------ */

static void explain_classic(const struct group *group, struct view id, struct group_explained *out)
{
    const struct member *member = group_member_by_id(group, id);
    out->protocol = group->protocol;
    out->generation = group->generation;
    out->member_count = group->members.count;
    if (group_pending(group, id) != NULL) out->standing = GROUP_PENDING_MEMBER;
    if (member == NULL) return;
    out->standing = GROUP_MEMBER;
    out->instance = member->instance;
    out->client_id = member->client_id;
    out->client_host = member->client_host;
    out->leads = group->leader == member;
    out->joining = member->join != NULL;
    out->syncing = member->sync != NULL;
    out->session_ms = member->session_ms;
    out->rebalance_ms = member->rebalance_ms;
    out->contact_wall_ms = member_contact_ms(member);
    out->deadline_wall_ms = member->session.entry.deadline_ms;
}

static void explain_consumer(const struct group *group, struct view id, struct group_explained *out)
{
    const struct consumer_member *member = consumer_group_member(group->consumer, id);
    out->generation = group->consumer->epoch;
    out->member_count = group->consumer->members.count;
    if (member == NULL) return;
    out->standing = GROUP_MEMBER;
    out->instance = member->said.instance;
    out->client_id = member->said.client_id;
    out->client_host = member->said.client_host;
    out->member_epoch = member->now.epoch;
    out->session_ms = (int32_t)consumer_group_session_ms(member);
    out->rebalance_ms = member->said.rebalance_ms;
    out->deadline_wall_ms = member->session.entry.deadline_ms;
    out->contact_wall_ms = out->deadline_wall_ms - out->session_ms;
}

void group_explain(const struct groups *groups,
                   struct view id,
                   struct view member,
                   struct group_now now,
                   struct group_explained *out)
{
    const struct group *group = groups_find(groups, id);
    *out = (struct group_explained){
        .loaded_wall_ms = groups->loaded_wall_ms,
        .contact_wall_ms = -1,
        .member_epoch = -1,
        .instance = VIEW_NULL,
        .protocol = VIEW_NULL,
    };
    if (group == NULL) return;
    out->known = true;
    out->type = group->consumer != NULL ? VIEW("consumer") : VIEW("classic");
    out->state = group_state_view(group);
    out->event_count = group->story == NULL ? 0 : group->story->count;
    if (group->consumer != NULL)
        explain_consumer(group, member, out);
    else
        explain_classic(group, member, out);
    if (out->standing != GROUP_MEMBER) return;
    out->contact_wall_ms = wall_of(groups, out->contact_wall_ms, now);
    out->deadline_wall_ms = now.wall_ms - (now.now_ms - out->deadline_wall_ms);
}

const struct group_event *group_event_at(const struct groups *groups, struct view id, uint32_t n)
{
    const struct group *group = groups_find(groups, id);
    assert(group != NULL);
    assert(group->story != NULL);
    assert(n < group->story->count);
    return &group->story->events[story_index(group->story, n)];
}

bool group_event_of(const struct group_event *event, struct view member)
{
    uint32_t size = MIN(member.size, GROUP_EVENT_ID_BYTES);
    return size > 0 && event->member_size == size && memcmp(event->member, member.data, size) == 0;
}
