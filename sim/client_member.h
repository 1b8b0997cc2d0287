/* client_member.h - a member of a group: what classic and consumer members have in common.
 *
 * It joins, beats, commits and reads commits, and lives a life of chances while the storm lasts:
 * it leaves, dies, falls silent, comes back, subscribes anew. At the end it stays in or out. What
 * it is told goes to the group's membership.h and commits.h; the protocols are in client_classic.c
 * and client_consumer.c. */
#pragma once

#include "sim/client.h"
#include "sim/commits.h"
#include "sim/membership.h"

enum client_member_state {
    MEMBER_OUT,
    MEMBER_JOINING, /* A JoinGroup, or a heartbeat of epoch 0, is under way or to be sent. */
    MEMBER_SYNCING,
    MEMBER_IN,
    MEMBER_LEAVING
};

struct client_call {
    int16_t api;
    bool ghost; /* In the name of one that is no member any more. */
    int64_t sent_us;
    uint32_t restarts; /* Of the node, then. */
    int32_t epoch;
    int64_t commits[HISTORY_LOGS_MAX]; /* The offsets of a commit; 0: not that partition. */
};

/* One that is no member any more. */
struct client_ghost {
    char member_id[64], instance[16];
    int32_t epoch;     /* Of its last words. */
    uint32_t restarts; /* Of the node, when it asked what told it so. */
};

struct client_member;

/* What the protocols do differently. */
struct client_protocol {
    void (*join)(struct client_member *member);
    void (*beat)(struct client_member *member, const struct client_ghost *as); /* NULL: itself. */
    void (*leave)(struct client_member *member);
    void (*subscribe)(struct client_member *member); /* Its topics have changed. */
    void (*answered)(struct client_member *member, const struct client_call *call, void *in);
};

struct client_member {
    struct client client;
    const struct client_protocol *protocol;
    struct sim_world *world;
    struct membership *group;
    struct commits *commits;
    uint32_t seat;
    enum client_member_state state;
    struct client_call calls[WIRE_LINK_WAITS_MAX]; /* Those of the link, in their order. */
    uint32_t call_count;
    bool found; /* It knows the coordinator. */
    bool full;  /* The next beat tells all. */
    uint32_t session_ms, rebalance_ms, beat_every_ms;
    uint32_t deeds; /* That it still does of itself. */
    int64_t beat_ms, deed_ms, silent_until_ms;
    int16_t versions[72]; /* By API key. */
    struct client_ghost ghost;
    uint32_t ghost_words; /* That it still says. */
    /* Classic. */
    uint32_t nudges; /* Times that it has joined anew because partitions are nobody's. */
    int64_t nudge_ms;
    bool known_topics[HISTORY_TOPICS_MAX]; /* When it joined. */
    uint8_t assigned[2048];                /* What it tells as a leader. */
    /* Consumer. */
    bool target[HISTORY_LOGS_MAX]; /* What it may own, once it has given up the rest. */
    int64_t revoked_ms;            /* When it has; 0: nothing to give up. */
    bool regex, changed;
    bool owned_news;     /* What it owns is to be told. */
    uint32_t unanswered; /* Beats whose answers were lost since the last good one. */
};

struct client_member *client_classic_new(const struct client_seat *seat,
                                         struct membership *group,
                                         struct commits *commits);
struct client_member *client_consumer_new(const struct client_seat *seat,
                                          struct membership *group,
                                          struct commits *commits);

/* ---- for the protocols ----------------------------------------------------------------------- */

struct client_member *client_member_new(const struct client_seat *seat,
                                        const struct client_protocol *protocol,
                                        struct membership *group,
                                        struct commits *commits);

static inline struct membership_seat *client_member_seat(struct client_member *member)
{
    return &member->group->seats[member->seat];
}

static inline int64_t client_member_now_us(const struct client_member *member)
{
    return sim_now_us(member->world);
}

/* Send one request and remember it. */
void client_member_send(struct client_member *member,
                        const struct client_call *call,
                        const void *message);

/* What an answer says: for a reader of the trace, and of whether the group is loaded. */
void client_member_told(struct client_member *member,
                        const struct client_call *call,
                        int16_t error);

/* The answer was good. */
void client_member_renew(struct client_member *member, const struct client_call *call);

/* A request found that it is no member any more: it is out, and may speak as a ghost. */
void client_member_removed(struct client_member *member,
                           const struct client_call *call,
                           int16_t error);

/* It ends: out, and its id may be a ghost's if this call told it so; NULL: without a word. */
void client_member_ends(struct client_member *member, const struct client_call *told);

/* Its random id, as clients make one. */
void client_member_name(struct client_member *member, char out[64]);
