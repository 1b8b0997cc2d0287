/* group_story.h - what a group remembers of its members: the last events, to explain them.
 *
 * Soft: nothing is logged for it, and it begins when the machine has loaded its log. An event that
 * finds no memory is not remembered; nothing else depends on it. Bounded by GROUP_EVENTS_MAX for a
 * group and GROUP_STORIES_BYTES_MAX for a machine.
 *
 * Pure. Memory: the machine's. Thread: its owner. */
#pragma once

#include "base/limits.h"
#include "core/group.h"

enum group_event_kind {
    /* Of a member. */
    GROUP_EVENT_JOINED,
    GROUP_EVENT_SILENT,     /* Removed: no contact for its session timeout. */
    GROUP_EVENT_NOT_JOINED, /* Removed: the rebalance ended without its join. */
    GROUP_EVENT_NOT_SYNCED, /* Removed: no sync in a rebalance timeout after its join's answer. */
    GROUP_EVENT_HELD_ON,    /* Removed: did not give up partitions in its rebalance timeout. */
    GROUP_EVENT_LEFT,       /* Removed: it said so, or an administrator did. */
    GROUP_EVENT_TOO_MANY,   /* Removed: the group is at its size limit. */
    GROUP_EVENT_REPLACED,   /* Fenced: another process joined under its instance id. */
    GROUP_EVENT_TAKES_OVER, /* That other one. */
    /* Of the group. */
    GROUP_EVENT_REBALANCE,
    GROUP_EVENT_GENERATION, /* Joins are answered. */
    GROUP_EVENT_STABLE,
    GROUP_EVENT_EMPTY,
    GROUP_EVENT_EPOCH, /* A consumer group's next epoch. */
};

struct group_event {
    int64_t wall_ms;
    int64_t contact_wall_ms; /* The member's last contact; -1: unknown, or of the group. */
    int32_t generation;      /* The group's; of a consumer group its epoch. */
    int32_t number;          /* A timeout in milliseconds, or how many members. */
    uint8_t kind;            /* enum group_event_kind */
    uint8_t member_size;     /* 0: of the group. */
    uint8_t member[GROUP_EVENT_ID_BYTES]; /* Its first bytes. */
};

enum group_standing { GROUP_NOT_MEMBER, GROUP_PENDING_MEMBER, GROUP_MEMBER };

/* All that is known of a member. Views last until the next step. */
struct group_explained {
    bool known; /* There is such a group. */
    struct view type, state, protocol;
    int32_t generation; /* Or epoch. */
    uint32_t member_count;
    int64_t loaded_wall_ms; /* Where memory begins. */
    enum group_standing standing;
    struct view instance; /* Null: dynamic. */
    struct view client_id, client_host;
    bool leads, joining, syncing; /* Its join or sync waits for its answer. */
    int32_t member_epoch;         /* Of a consumer group's member; else -1. */
    int32_t session_ms, rebalance_ms;
    int64_t contact_wall_ms; /* -1: none since memory begins. */
    int64_t deadline_wall_ms;
    uint32_t event_count; /* Of the group, see group_event_at(). */
};

struct group_now {
    int64_t now_ms, wall_ms; /* As in a step. */
};
void group_explain(const struct groups *groups,
                   struct view id,
                   struct view member,
                   struct group_now now,
                   struct group_explained *out);

/* The n-th remembered event of a group that is known, the oldest first. */
const struct group_event *group_event_at(const struct groups *groups, struct view id, uint32_t n);

/* Is the event this member's? */
bool group_event_of(const struct group_event *event, struct view member);
