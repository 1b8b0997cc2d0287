/* membership.h - what members of one group were told, and the checkers over it.
 *
 * A seat is the view of one member: whether it believes itself in, since when, what it owns. It is
 * held to its own word: a seat owns a partition until it gives it up, is told otherwise, or has
 * waited longer for a good answer than it may be silent (its lease). Checked at once:
 *
 *   I13  no two seats own one partition, by their own view; those that share an instance id count
 *        as one
 *   I15  fencing is final: who was told that it is no member any more, or that it left, is never
 *        told again that it is one; a generation never comes back once a newer one was handed out.
 *        That another one took its place with JoinGroup is in the log with its SyncGroup only: a
 *        restart before that brings the first one back, as in Kafka
 *   kept nobody who spoke in time is removed: a request that must have arrived within the session,
 *        counted from the sending of the last one with a good answer, does not find its member gone
 *
 * A coordinator that loads says yes to every Heartbeat, as Kafka's does, and no time is an upper
 * limit of a load. Such a yes counts only once the group was told what none says that loads.
 *
 * Times are the world's. What a request says has arrived `slack_us` after its sending at the
 * latest: MEMBERSHIP_SLACK_US in a world whose pieces may stall, MEMBERSHIP_QUICK_US in one where
 * none does. */
#pragma once

#include "sim/history.h"

#define MEMBERSHIP_SEATS_MAX           6u
#define MEMBERSHIP_SLACK_US            2200000 /* The longest stall of a piece, and some delays. */
#define MEMBERSHIP_QUICK_US            100000  /* Some delays. */
#define MEMBERSHIP_CONSUMER_SESSION_MS 4000    /* group.consumer.session.timeout.ms of the node. */

struct membership_seat {
    bool in;            /* It believes itself in, with an assignment. */
    bool wants_in;      /* It is to be in, in the end. */
    bool classic;       /* Speaks JoinGroup. */
    bool durable;       /* Its membership was acknowledged from the log. */
    uint32_t restarts;  /* Of the node, at the last good answer. */
    char member_id[64]; /* Empty: none yet. */
    char instance[16];  /* Empty: a dynamic member. */
    int32_t epoch;      /* Generation, or member epoch. */
    int64_t asked_us;   /* When it last asked to be let in. */
    int64_t joined_us;  /* When it was told that it is let in. */
    int64_t fenced_us;  /* When another one with its instance id took its place; 0: none has. */
    uint32_t fenced_by; /* That one's seat, */
    uint32_t fenced_restarts; /* the node's restarts then, */
    bool fenced_for_good;     /* and whether it was acknowledged from the log since. */
    bool doubtful;            /* Another one with its instance id joined at about the same time. */
    int64_t good_us;          /* When its last request with a good answer was sent; 0: never. */
    uint32_t patience_ms;     /* The smaller one of session and rebalance timeout. */
    bool owns[HISTORY_LOGS_MAX];
    bool wants[HISTORY_TOPICS_MAX]; /* Its subscription. */
};

struct membership {
    struct history *history;
    char name[16]; /* Of the group. */
    struct membership_seat seats[MEMBERSHIP_SEATS_MAX];
    uint32_t seat_count;
    int64_t slack_us;      /* From the sending of a request to its arrival, at most. */
    bool limited;          /* Its members have a quota: few requests of theirs are in flight. */
    bool mixed;            /* Both protocols: each member has an epoch of its own. */
    int32_t generation;    /* The newest that a classic member has an assignment of. */
    int64_t generation_us; /* When that was told first. */
    int64_t loaded_us;     /* When its coordinator was known to have loaded it; see below. */
    uint64_t changes;      /* Of anything that a seat has been told. */
    uint64_t removals;     /* Members that were told that they are none. */
    uint64_t held_ms;      /* That answers to beats told of a quota. */
};

/* A request with a good answer was sent then: the member lives. `now_us`: for the leases. */
void membership_renew(struct membership *group, uint32_t seat, int64_t sent_us, int64_t now_us);

/* A request that was sent then was answered as only a coordinator does that has loaded the group.
 */
void membership_loaded(struct membership *group, int64_t sent_us, int64_t now_us);

/* Was the group known to be loaded before a request was sent then? A restart ends that, and so does
 * trouble of the disk or the memory, after which a group may be loaded anew. */
bool membership_is_loaded(const struct membership *group, int64_t sent_us);

/* A join is being sent: from now on it may take the place of one with its instance id. */
void membership_joins(struct membership *group, uint32_t seat, int64_t now_us);

/* A new member has been let in: the one before it with its instance id is none any more. One that
 * asked after it did may have taken its place before it was told. `restarts`: of the node when it
 * asked; the answer may arrive after another one. */
void membership_joined(struct membership *group,
                       uint32_t seat,
                       uint32_t restarts,
                       int64_t sent_us,
                       int64_t now_us);

/* The seat is in, and that was acknowledged from the log, to a request sent after so many restarts:
 * whom it replaced since the last of them is so for good. */
void membership_in(struct membership *group, uint32_t seat, uint32_t restarts);

/* The seat now owns exactly these. */
void membership_owns(struct membership *group,
                     uint32_t seat,
                     const bool owns[HISTORY_LOGS_MAX],
                     int64_t now_us);

/* The seat has an assignment of this generation, by a request sent then. */
void membership_generation(struct membership *group,
                           int32_t generation,
                           int64_t sent_us,
                           int64_t now_us);

/* The seat's member is none any more: crashed, left, removed. Its lease ends. */
void membership_out(struct membership *group, uint32_t seat);

/* A request that was sent then found the seat's member gone: was that right? Then it is out. */
void membership_removed(struct membership *group, uint32_t seat, int64_t sent_us, int16_t error);

/* Is it for ever that a member of this epoch was told that it is none, when it asked after so many
 * restarts? Who leaves a classic group, or is removed from it, is out of its log with the next
 * generation only: a restart before that brings it back, as in Kafka. */
bool membership_is_final(const struct membership *group,
                         bool classic,
                         int32_t epoch,
                         uint32_t restarts);

/* Is anybody in? */
bool membership_anybody(const struct membership *group);

/* Has everyone who is in spoken so lately that nobody may have removed it? */
bool membership_speaks(const struct membership *group, int64_t now_us);

/* Every seat that is to be in is in, no other is, and every partition of what they want is owned.
 */
bool membership_settled(const struct membership *group);
