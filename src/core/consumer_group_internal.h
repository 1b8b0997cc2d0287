/* consumer_group_internal.h - what the consumer_group_*.c files and group_*.c share. */
#pragma once

#include "core/consumer_group.h"
#include "core/group_internal.h"
#include "core/partition_set.h"

#define CONSUMER_EPOCH_LEAVE        (-1)
#define CONSUMER_EPOCH_LEAVE_STATIC (-2)
#define CONSUMER_EPOCH_FIRST        1   /* Of a new group, before its first member. */
#define CONSUMER_RETRY_MS           500 /* A timer whose records could not be appended. */

enum consumer_state {
    CONSUMER_STABLE = 0,
    CONSUMER_UNREVOKED = 1,
    CONSUMER_UNRELEASED = 2,
    CONSUMER_UNKNOWN = 127
};

/* What a member has said of itself: the value of its record 5. */
struct consumer_said {
    struct view instance; /* Null: dynamic. */
    struct view rack;     /* Null: none. */
    struct view client_id;
    struct view client_host;
    struct view regex;         /* Null or empty: none. */
    struct view assignor;      /* Null: none. */
    const struct view *topics; /* Names, sorted, each once. */
    uint32_t topic_count;
    int32_t rebalance_ms;
    bool classic;       /* It speaks the classic protocol: */
    int32_t session_ms; /* with this session, */
    const struct member_protocol *protocols;
    uint32_t protocol_count;
};

/* Where a member stands: the value of its record 8. */
struct consumer_current {
    int32_t epoch;
    int32_t previous;
    int8_t state; /* enum consumer_state */
    struct partition_set assigned;
    struct partition_set pending; /* Still to be given up. */
};

struct consumer_member {
    struct map_node by_id;
    struct map_node by_instance; /* Static members that own their instance. */
    struct list link;
    struct group *group;
    struct view id; /* Behind the struct. */
    struct consumer_said said;
    void *said_block; /* What `said` points to. */
    uint32_t said_bytes;
    bool owns_instance;
    struct consumer_current now;
    struct group_timer session;
    struct group_timer rebalance;
    struct group_timer join; /* Of classic members: asked to join / to sync. */
    struct group_timer sync;
    int32_t rebalance_epoch; /* Of the member when its rebalance timer was set. */
};

/* The target assignment of one member, which need not be there (yet) when records are loaded. */
struct consumer_target {
    struct map_node by_member;
    struct partition_set partitions;
    struct view member; /* Behind the struct. */
};

/* Who holds the partitions of a topic: the epoch of the holder, CONSUMER_FREE for nobody. */
#define CONSUMER_FREE INT32_MIN
struct consumer_held {
    struct map_node by_topic;
    struct uuid topic;
    int32_t *epochs;
    uint32_t room;
};

/* A regular expression and what it matched. */
struct consumer_regex {
    struct map_node by_text;
    struct list link;
    struct view text; /* Behind the struct, with the topics. */
    struct view *topics;
    uint32_t topic_count;
    uint32_t size_bytes;
    int64_t version; /* Of the image, */
    int64_t wall_ms; /* and when. */
};

struct consumer_group {
    struct groups *groups;
    struct group *group; /* NULL of a blank. */
    int32_t epoch;
    int32_t assignment_epoch;
    int64_t assigned_wall_ms; /* 0: the next assignment is not delayed. */
    int64_t assigned_ms;      /* When this node learned of that. */
    int64_t hash;             /* Of the topics that members want. */
    bool legacy_metadata;     /* A record 4 was loaded: its tombstone is due. */
    struct map members;
    struct list member_list;
    struct map instances;
    struct map targets;
    struct map held;
    struct map regexes; /* Resolved. */
    struct list regex_list;
    /* Soft. */
    uint64_t topics_seen; /* groups->topics_version when the hash was last computed. */
    int64_t regex_ms;     /* When expressions were last matched; INT64_MIN: never. */
    uint32_t regex_users; /* Members that have an expression. */
    bool regex_open;      /* One of them has not been matched yet. */
    uint64_t regex_begun; /* groups->topics_version then. */
    uint64_t regex_seen;  /* The same, of the newest result. */
};

/* ---- consumer_group.c */
/* The group's new self: no members. False: no memory. */
MUST_USE bool consumer_group_become(struct group *group);
void consumer_group_free(struct group *group);
/* An empty one that lies in the caller; never freed. */
void consumer_group_blank(struct consumer_group *group, struct groups *groups);
struct consumer_member *consumer_group_member(const struct consumer_group *group, struct view id);
struct consumer_member *consumer_group_static(const struct consumer_group *group,
                                              struct view instance);
const struct partition_set *consumer_group_target(const struct consumer_group *group,
                                                  struct view member);
struct consumer_regex *consumer_group_regex(const struct consumer_group *group, struct view text);
int32_t consumer_group_holder(const struct consumer_group *group,
                              struct uuid topic,
                              int32_t partition);
struct view consumer_group_state(const struct consumer_group *group);
bool consumer_group_wants(const struct consumer_group *group, struct view topic);
/* How many members, `except` apart, have the expression. */
uint32_t consumer_group_regex_users(const struct consumer_group *group,
                                    struct view text,
                                    const struct consumer_member *except);
/* The group's own setting, or the server's, within the bounds. */
int64_t consumer_group_interval(const struct groups *groups,
                                struct view id,
                                struct view name,
                                const struct consumer_group_interval *of);
int64_t consumer_group_session_ms(const struct consumer_member *member);
void consumer_group_contact(struct consumer_member *member, int64_t at_ms);
void consumer_group_loaded(struct group *group);
void consumer_group_unload(struct group *group);

/* ---- consumer_group_change.c: what groups_apply() does. False: no memory. */
struct consumer_member *consumer_group_member_make(struct consumer_group *group, struct view id);
MUST_USE bool consumer_member_say(struct consumer_member *member, const struct consumer_said *said);
MUST_USE bool consumer_member_set(struct consumer_member *member,
                                  const struct consumer_current *now);
void consumer_member_drop(struct consumer_member *member);
MUST_USE bool consumer_target_set(struct consumer_group *group,
                                  struct view member,
                                  const struct partition_set *partitions);
void consumer_target_drop(struct consumer_group *group, struct view member);
MUST_USE bool consumer_regex_set(struct consumer_group *group, const struct consumer_regex *regex);
void consumer_regex_drop(struct consumer_group *group, struct view text);

/* ---- consumer_group_record.c */
bool consumer_said_equal(const struct consumer_said *a, const struct consumer_said *b);
MUST_USE bool consumer_record_said(struct step *step,
                                   struct view group,
                                   struct view member,
                                   const struct consumer_said *said);
MUST_USE bool consumer_record_current(struct step *step,
                                      struct view group,
                                      struct view member,
                                      const struct consumer_current *now);
MUST_USE bool consumer_record_target(struct step *step,
                                     struct view group,
                                     struct view member,
                                     const struct partition_set *target);
MUST_USE bool consumer_record_group(struct step *step,
                                    struct view group,
                                    int32_t epoch,
                                    int64_t hash);
MUST_USE bool consumer_record_assigned(struct step *step,
                                       struct view group,
                                       int32_t epoch,
                                       int64_t wall_ms);
MUST_USE bool consumer_record_regex(struct step *step,
                                    struct view group,
                                    const struct consumer_group_matched *matched);
/* Tombstones. */
MUST_USE bool consumer_gone(struct step *step, int16_t type, struct view group, struct view second);
MUST_USE bool consumer_member_gone(struct step *step, struct view group, struct view member);
MUST_USE bool consumer_group_gone(const struct group *group, struct step *step);

enum {
    CONSUMER_KEY_GROUP = 3,
    CONSUMER_KEY_METADATA = 4, /* Of older releases. */
    CONSUMER_KEY_SAID = 5,
    CONSUMER_KEY_ASSIGNED = 6,
    CONSUMER_KEY_TARGET = 7,
    CONSUMER_KEY_CURRENT = 8,
    CONSUMER_KEY_REGEX = 16
};

/* ---- consumer_group_apply.c */
static inline bool consumer_key(int16_t type)
{
    return (type >= CONSUMER_KEY_GROUP && type <= CONSUMER_KEY_CURRENT) ||
           type == CONSUMER_KEY_REGEX;
}
/* Apply or load one record whose key type is one of the above. */
MUST_USE enum groups_result consumer_group_apply(struct groups *groups,
                                                 struct arena *arena,
                                                 struct view key,
                                                 struct view value);

/* ---- consumer_group_reconcile.c */
struct consumer_reconcile {
    const struct consumer_group *group;
    const struct consumer_member *member; /* Its id and said do not matter. */
    struct consumer_current now;
    const struct partition_set *target;
    int32_t target_epoch;
    const struct partition_set *owned; /* NULL: not told. */
    const struct uuid *subscribed;     /* Topic ids that it wants and that are there; sorted. */
    uint32_t subscribed_count;
    bool changed; /* What it wants has changed with this request. */
};
enum consumer_reconciled {
    CONSUMER_RECONCILED_SAME,
    CONSUMER_RECONCILED,
    CONSUMER_RECONCILE_FENCED,
    CONSUMER_RECONCILE_E_MEMORY
};
MUST_USE enum consumer_reconciled consumer_group_reconcile(struct arena *arena,
                                                           const struct consumer_reconcile *in,
                                                           struct consumer_current *out);

/* ---- consumer_group_topics.c: what members want, and the hash of it */
/* Members as a step sees them: those of the group, one of them changed or gone or new. */
struct consumer_seen {
    struct view id;
    struct view target_of; /* Whose target is this one's so far. */
    const struct consumer_said *said;
};
struct consumer_edit {
    struct view id;                   /* Null: none is new or changed. */
    const struct consumer_said *said; /* What it says now. */
    struct view replaces;             /* Null, or the id of who is gone. */
    /* Null, or the id of who is gone as well without anybody in its place. */
    const struct view *left;
    uint32_t left_count;
    /* Regular expressions that the step resolves anew. */
    const struct consumer_group_matched *matched;
    uint32_t matched_count;
};
struct consumer_roster {
    struct consumer_seen *members; /* In the order in which they came; the edited one is last. */
    uint32_t count;
};
/* By id, as an assignor wants them. O(n log n). */
void consumer_roster_sort(struct consumer_roster *roster);
MUST_USE bool consumer_group_roster(const struct consumer_group *group,
                                    struct arena *arena,
                                    const struct consumer_edit *edit,
                                    struct consumer_roster *out);
/* Does the group want the same topics after the edit, and are they as they were when its hash was
 * computed? Then the hash is still that. Looks at a few members only: false may be a no too many.
 */
bool consumer_group_topics_stay(const struct consumer_group *group,
                                const struct consumer_edit *edit);
/* Topics that are there and wanted, sorted by name. */
struct image_topic;
struct consumer_topics {
    const struct image_topic **items;
    uint32_t count;
};
MUST_USE bool consumer_group_topics(const struct consumer_group *group,
                                    struct arena *arena,
                                    const struct consumer_edit *edit,
                                    const struct consumer_roster *roster,
                                    struct consumer_topics *out);
/* Of one member alone. */
MUST_USE bool consumer_group_topics_of(const struct consumer_group *group,
                                       struct arena *arena,
                                       const struct consumer_edit *edit,
                                       const struct consumer_said *said,
                                       struct consumer_topics *out);
MUST_USE bool consumer_group_hash(const struct groups *groups,
                                  struct arena *arena,
                                  const struct consumer_topics *topics,
                                  int64_t *out);
/* What members want most, or the first that is offered. */
struct view consumer_group_assignor(const struct groups *groups,
                                    const struct consumer_roster *roster);

/* ---- consumer_group_target.c */
/* Targets of all, as records 7 for those that change and a record 6. `*own` is the target of the
 * edited member. */
struct consumer_targeting {
    const struct consumer_group *group;
    struct view id; /* Of the group: `group` may be a blank. */
    const struct consumer_edit *edit;
    const struct consumer_roster *roster;
    int32_t epoch;
};
MUST_USE enum step_result consumer_group_retarget(struct step *step,
                                                  const struct consumer_targeting *in,
                                                  struct partition_set *own);

/* ---- consumer_group_leave.c */
struct consumer_leaving {
    const struct consumer_member **members;
    uint32_t count;
};
/* Records that take members out: tombstones, the new epoch, and that the group is empty; or those
 * that make the rest a classic group, if all of them are classic members. */
MUST_USE enum step_result consumer_group_remove(struct group *group,
                                                struct step *step,
                                                const struct consumer_leaving *leaving);
void consumer_group_timer(struct consumer_member *member,
                          enum group_timer_kind kind,
                          struct step *step);

/* ---- consumer_group_classic.c */
/* Heartbeat 0-4 of a classic member. */
MUST_USE enum kafka_error consumer_group_classic_beat(struct group *group,
                                                      const struct group_beat *beat);
/* JoinGroup to a consumer group; STEP_MORE: it is empty and makes way, apply and join again. */
MUST_USE enum step_result consumer_group_classic_join(struct group *group,
                                                      struct step *step,
                                                      const struct group_join *in,
                                                      struct group_wait *wait);
/* SyncGroup: answered at once, without records. */
void consumer_group_classic_sync(struct group *group,
                                 const struct sync_group_request *in,
                                 struct group_wait *wait);
/* LeaveGroup: `out` has the members that are to leave, and gets their errors. */
MUST_USE enum step_result consumer_group_classic_leave(struct group *group,
                                                       struct step *step,
                                                       struct leave_group_response *out);

/* ---- consumer_group_convert.c */
/* The classic group as a consumer group, in `shell`, and the records that make it one. NONE: the
 * shell is to be freed by group_shell_free(). GROUP_ID_NOT_FOUND: it cannot become one;
 * COORDINATOR_NOT_AVAILABLE: no memory. */
MUST_USE enum kafka_error consumer_group_upgrade(const struct group *classic,
                                                 struct step *step,
                                                 struct group *shell);
bool consumer_group_leaves(const struct consumer_leaving *leaving,
                           const struct consumer_member *member);
/* Is the group to become a classic one when these leave, and (`joins`) a classic one comes? */
bool consumer_group_may_downgrade(const struct group *group,
                                  const struct consumer_leaving *leaving,
                                  bool joins);
/* A static member that joins in the place of the only one that leaves. */
struct consumer_joining {
    struct view id;
    const struct consumer_said *said;
    struct group_wait *wait;
};
MUST_USE enum step_result consumer_group_downgrade(struct group *group,
                                                   struct step *step,
                                                   const struct consumer_leaving *leaving,
                                                   const struct consumer_joining *joining);
/* It is a classic group now: sessions run, its members are asked to join. */
void consumer_group_downgraded(struct group *group, const struct consumer_settle *settle);

/* ---- consumer_group_update.c */
/* A member says something: what is known, what it says, and (below) what follows. */
struct consumer_update {
    struct groups *groups;
    struct step *step;
    struct view group_id;
    struct consumer_group *state;   /* The group's, a blank, or what it is about to become. */
    struct consumer_member *member; /* NULL: new. */
    struct consumer_member *before; /* The static member whose place it takes. */
    struct view id;
    struct consumer_said was;  /* What it had said, */
    struct consumer_said said; /* and says now. */
    struct consumer_current now;
    struct partition_set owned; /* What the client works on, */
    bool owned_told;            /* if it tells. */
    bool upgraded;              /* The group was a classic one until this step. */
    int64_t contact_ms;
    /* What follows. */
    struct consumer_edit edit;
    struct consumer_roster
        roster;    /* Made when it is needed: a beat that changes nothing is O(1). */
    int32_t epoch; /* Of the group. */
    int32_t assignment_epoch;
    int64_t hash;
    bool refreshed;
    bool changed; /* What the member wants. */
    enum consumer_reconciled reconciled;
    struct consumer_current next;
};
/* Sets `was`, `now`, and `said` to what is known of the member. */
void consumer_update_begin(struct consumer_update *u);
/* The records, from `said` on. `reconciled` may be CONSUMER_RECONCILE_FENCED: refuse it. */
MUST_USE enum step_result consumer_group_update(struct consumer_update *u);
/* What follows when the step's records are in place, or if it has none. */
void consumer_group_settle(struct groups *groups);

/* ---- group_story.c */
void group_tell_consumer(struct consumer_member *member, enum group_event_kind kind);
/* Its records are gone. */
void group_tell_consumer_gone(struct consumer_member *member);
