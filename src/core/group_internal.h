/* group_internal.h - what the group_*.c files and offsets.c share. */
#pragma once

#include "base/map.h"
#include "base/wheel.h"
#include "core/consumer_group.h"
#include "core/group_story.h"

#define GROUP_NEW_MEMBER_MS 300000 /* A new member's session until its first join is answered. */

enum group_state { GROUP_EMPTY, GROUP_PREPARING, GROUP_COMPLETING, GROUP_STABLE, GROUP_DEAD };

enum group_timer_kind {
    TIMER_SESSION,
    TIMER_PENDING,
    TIMER_JOIN,
    TIMER_SYNC,
    TIMER_CONSUMER_SESSION, /* These are in struct consumer_member. */
    TIMER_CONSUMER_REBALANCE,
    TIMER_CONSUMER_JOIN,
    TIMER_CONSUMER_SYNC
};

struct group_timer {
    struct wheel_entry entry;
    uint8_t kind; /* enum group_timer_kind: what it is embedded in. */
};

/* A member's protocols, best first; one block, names without repetition. */
struct member_protocol {
    struct view name;
    struct view metadata;
};
struct member_protocols {
    uint32_t size_bytes;
    uint32_t count;
    struct member_protocol items[];
};

struct member {
    struct map_node by_id;
    struct map_node by_instance; /* Static members. */
    struct list link;            /* In the group, in the order of joining. */
    struct group *group;
    struct group_timer session;
    struct view id; /* The four lie behind the struct. */
    struct view instance;
    struct view client_id;
    struct view client_host;
    struct member_protocols *protocols;
    struct view assignment;  /* A block of its own. */
    struct group_wait *join; /* Parked; NULL: none. */
    struct group_wait *sync;
    int32_t session_ms;
    int32_t rebalance_ms;
    uint32_t size_bytes;
    bool is_new;       /* Until its first join is answered. */
    bool sync_pending; /* Its join is answered, its sync has not come. */
};

/* A member id that was handed out and has not joined (KIP-394). */
struct pending_member {
    struct map_node by_id;
    struct group *group;
    struct group_timer timer;
    uint32_t size_bytes;
};

/* How many members list a protocol. */
struct group_vote {
    struct list link;
    struct view name;
    uint32_t count;
    uint32_t tally; /* Used by the choice. */
};

struct group {
    struct map_node by_id;
    struct list link;
    struct groups *groups;
    struct view id; /* Behind the struct. */
    uint32_t size_bytes;
    struct consumer_group *consumer; /* Not NULL: a consumer group; all that follows down to the
                                        offsets is then as in an empty classic one. */
    enum group_state state;
    enum group_state previous;
    int64_t state_wall_ms; /* -1: unknown. */
    bool
        downgraded; /* By its newest record, which followed a consumer group's end: to rebalance. */
    struct view protocol_type; /* Null: none. Blocks of their own. */
    struct view protocol;      /* Null: none. */
    int32_t generation;
    struct member *leader;
    struct map members;
    struct list member_list;
    struct map instances;
    struct map pending;
    struct list votes;
    uint32_t joins;         /* Members with a parked join. */
    uint32_t syncs_pending; /* Members with sync_pending. */
    bool new_member_added;  /* Since the initial rebalance last looked. */
    struct group_timer join_timer;
    struct group_timer sync_timer;
    int64_t initial_delay_ms; /* Of the join timer that runs; -1: an ordinary rebalance. */
    int64_t initial_left_ms;
    int32_t sync_generation;
    struct map offsets; /* struct offset, by partition and topic. */
    struct map topics;  /* struct offset_topic, by name. */
    struct list topic_list;
    struct group_story *story; /* NULL: nothing is remembered yet. */
};

/* The ring of a group's events. */
struct group_story {
    uint32_t first, count, room;
    struct group_event events[];
};

/* What the last step decided beside its records, until groups_apply() or groups_failed(). */
enum decision_kind {
    DECISION_NONE,
    DECISION_CREATED,
    DECISION_SYNC,
    DECISION_REPLACED,
    DECISION_CLASSIC,  /* A Join to a consumer group: `wait` is answered, or to be parked. */
    DECISION_DOWNGRADE /* A consumer group becomes a classic one; `wait` as above, or NULL. */
};
struct group_decision {
    enum decision_kind kind;
    struct group *group;
    struct group_wait *wait;
    struct member *old;   /* The static member that was replaced; not in the group any more. */
    struct member *fresh; /* The one that has its place. */
    bool old_led;
};

/* What follows from a heartbeat of a consumer group once its records are in place: soft state.
 * Views are of the request. */
enum consumer_timer_act { CONSUMER_TIMER_KEEP, CONSUMER_TIMER_SET, CONSUMER_TIMER_CANCEL };
struct consumer_settle {
    bool set;
    struct view group;
    struct view member;
    int64_t contact_ms;
    bool refreshed;          /* The group has looked at its topics, as of this version. */
    bool resolved;           /* Its expressions were matched, as of the same. */
    bool upgraded;           /* It has just become a consumer group. */
    bool downgraded;         /* It has just become a classic one: */
    struct group_wait *wait; /* with this Join of `member` to be parked, or NULL. */
    uint64_t topics_version;
    enum consumer_timer_act rebalance;
    int64_t rebalance_ms; /* When it comes up. */
};

struct groups {
    struct mem *mem;
    const struct image *image; /* NULL: there are no topics. */
    struct consumer_group_options consumer_options;
    uint64_t topics_version; /* Grows when topics, partitions or racks change. */
    struct consumer_settle settle;
    uint64_t ended; /* A hash of the consumer group whose end was the newest record; else 0. */
    struct group_options options;
    uint64_t seed;
    struct map by_id;
    struct list all;
    struct wheel wheel;
    struct list answers;
    struct group_decision decision;
    struct list pending_offsets; /* struct pending_offset, of open transactions. */
    struct map pending_by_partition, pending_by_producer; /* Of struct pending_set. */
    int64_t loaded_wall_ms; /* Memory of events begins there; -1: not loaded. */
    size_t story_bytes;     /* Of all groups' stories. */
    int64_t now_ms;         /* Of the step that runs. */
    int64_t wall_ms;
};

/* ---- group.c */
void groups_begin(struct groups *groups, const struct step *step);
struct group *groups_find(const struct groups *groups, struct view id);
MUST_USE struct group *group_new(struct groups *groups, struct view id);
void group_free(struct group *group);
/* The group is no more, of whichever kind it was; offsets that it has stay, in a simple group. */
void group_forget(struct group *group);
/* "Classic group X not found.", or that X (if there is one) is not of this kind. */
struct view group_missing_text(struct arena *arena,
                               struct view id,
                               const struct group *group,
                               struct view kind);
void group_move(struct group *group, enum group_state state);
struct member *group_member_by_id(const struct group *group, struct view id);
/* "Stable" */
struct view group_state_view(const struct group *group);
struct member *group_static_member(const struct group *group, struct view instance);
struct pending_member *group_pending(const struct group *group, struct view id);
/* Who is it that names this member, and this instance if it is not null? NONE: `*out`; else
 * FENCED_INSTANCE_ID or UNKNOWN_MEMBER_ID, and `*out` is as it was. One lookup. */
MUST_USE enum kafka_error group_validate(const struct group *group,
                                         struct view member,
                                         struct view instance,
                                         struct member **out);
/* A group that nobody finds: to be built and looked at. Its members and group_clear() are as usual.
 */
void group_shell(struct group *group, struct groups *groups, struct view id);
void group_shell_free(struct group *group);
/* Every parked Join and Sync of the group is answered with `error`. */
void group_waits_end(struct group *group, enum kafka_error error);
void group_timer_set(struct group *group, struct group_timer *timer, int64_t at_ms);
void group_timer_cancel(struct group *group, struct group_timer *timer);
void group_touch(struct member *member);
bool group_text_set(struct mem *mem, struct view *text, struct view to);
void group_text_free(struct mem *mem, struct view *text);

/* ---- group_member.c */
MUST_USE struct member_protocols *group_protocols_new(struct mem *mem,
                                                      const struct join_group_request *in);
MUST_USE struct member_protocols *group_protocols_one(struct mem *mem,
                                                      struct view name,
                                                      struct view metadata);
void group_protocols_free(struct mem *mem, struct member_protocols *protocols);
bool group_protocols_equal(const struct member_protocols *protocols,
                           const struct join_group_request *in);
struct view group_protocols_metadata(const struct member_protocols *protocols, struct view name);

struct member_names {
    struct view id, instance, client_id, client_host;
};
/* Not in the group yet; takes the protocols over when it succeeds. */
MUST_USE struct member *member_new(struct group *group,
                                   const struct member_names *names,
                                   struct member_protocols *protocols);
void member_free(struct member *member);
MUST_USE bool group_add(struct group *group, struct member *member);
/* Out of the group, but not freed; its parked requests must have been answered. */
void group_take(struct group *group, struct member *member);
/* The same, and freed: a parked join and sync are answered UNKNOWN_MEMBER_ID before. */
void group_remove(struct group *group, struct member *member, enum group_event_kind why);
MUST_USE bool member_use_protocols(struct member *member, struct member_protocols *protocols);
void member_park_join(struct member *member, struct group_wait *wait);
void member_sync_came(struct member *member);
/* "prefix-uuid"; of a null prefix, a UUID in the short form. Null: no memory. */
struct view group_member_id_make(struct step *step, struct view prefix);
void group_pending_drop(struct group *group, struct pending_member *pending);
bool group_supports(const struct group *group, const struct join_group_request *in);
struct view group_choose(struct group *group);
bool group_subscribed(const struct group *group, struct view topic);
int32_t group_rebalance_ms(const struct group *group);
static inline bool group_all_joined(const struct group *group)
{
    return group->members.count == group->joins && group->pending.count == 0;
}

/* ---- group_rebalance.c */
void group_prepare(struct group *group, struct step *step);
void group_complete_join(struct group *group, struct step *step);
void group_maybe_complete(struct group *group, struct step *step);
void group_join_timer(struct group *group, struct step *step);
void group_sync_timer(struct group *group, struct step *step);
void group_session_timer(struct member *member, struct step *step);
void group_pending_timer(struct pending_member *pending, struct step *step);
/* The answers. */
void group_join_error(struct groups *groups,
                      struct group_wait *wait,
                      enum kafka_error error,
                      struct view id);
/* The answer is complete. */
void group_answered(struct groups *groups, struct group_wait *wait);
void group_join_current(struct member *member, struct group_wait *wait, bool with_members);
void group_sync_error(struct groups *groups, struct group_wait *wait, enum kafka_error error);
void group_sync_assigned(struct member *member, struct group_wait *wait);

/* ---- group_record.c */
MUST_USE bool group_record_put(const struct group *group,
                               struct step *step,
                               const struct sync_group_request *assignments);
MUST_USE bool group_tombstone_put(struct step *step, struct view id);
/* Tombstones of a group without members, whichever kind it is. STEP_MORE: no room. */
MUST_USE enum step_result group_end_put(const struct group *group, struct step *step);
/* For groups->ended: never 0. */
uint64_t group_hash(struct view id);
/* A key's or a value's message behind its two bytes of type or version. NULL: it is not one, or
 * there is no memory (arena->failed). */
const void *group_part_decode(struct arena *arena,
                              struct view bytes,
                              const struct wire_message *message,
                              int16_t version);

/* ---- offsets.c */
enum groups_result offsets_apply(struct groups *groups,
                                 const void *key,
                                 const void *value,
                                 struct groups_place place);
enum groups_result offsets_marker(struct groups *groups, int64_t producer_id, bool committed);
void offsets_free(struct group *group);
void offsets_pending_free(struct groups *groups);
/* Tombstones of a whole group; STEP_MORE if there was no room. */
MUST_USE enum step_result offsets_tombstones(struct group *group, struct step *step);

/* ---- group_story.c */
struct group_telling {
    enum group_event_kind kind;
    struct view member; /* Empty: of the group. */
    int64_t contact_ms; /* On the clock of steps; -1: unknown. */
    int32_t number;
};
void group_tell(struct group *group, const struct group_telling *telling);
/* That the group is in the state it is in. */
void group_tell_state(struct group *group);
void group_tell_member(struct member *member, enum group_event_kind kind);
void group_story_free(struct group *group);
