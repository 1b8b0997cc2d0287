/* fleet.h - many members of groups over some connections: they join, learn, leave; and their
 * heartbeats as frames.
 *
 * A classic member whose JoinGroup is parked keeps its connection, so as many of them as there are
 * connections are on their way at once; ConsumerGroupHeartbeat is never parked. Nothing waits for a
 * client's timer but the heartbeats in between: a leader that sees fewer members than there are to
 * be joins again at once, so the times are the server's. Faults end the program (client.h). One
 * thread. */
#pragma once

#include "bench/lib/client.h"

#define FLEET_NAME_BYTES 48u
#define FLEET_BEAT_MS    250 /* While a group is not settled. */
#define FLEET_NOT_JOINED (-1)

enum fleet_protocol { FLEET_CLASSIC, FLEET_CONSUMER };

struct fleet_options {
    const char *host;
    uint16_t port;
    struct mem *mem;
    enum fleet_protocol protocol;
    uint32_t links;
    uint32_t members, group_size;
    int32_t session_ms;  /* Classic only. */
    const char *topic;   /* Consumer only: what they subscribe to; */
    uint32_t partitions; /* so many has it, 0: it is not there. */
    bool bare;
};

struct fleet_member {
    char id[FLEET_NAME_BYTES];
    int32_t generation; /* Or epoch; FLEET_NOT_JOINED. */
    struct uuid topic;
    int32_t *owned; /* Partitions that it holds. */
    uint32_t owned_count;
};

struct fleet_group;
struct fleet_link;

struct fleet {
    struct fleet_options options;
    struct fleet_link *links;
    struct fleet_member *members;
    struct fleet_group *groups;
    uint32_t group_count;
    int epoll_fd;
};

/* Connects, and waits until the coordinator serves; with `bare` it does neither. */
void fleet_open(struct fleet *fleet, const struct fleet_options *options);
void fleet_close(struct fleet *fleet);

/* Members [first, first + count) join, each group in one go; returns when all groups that had a
 * part in it are settled: every member knows the last generation and holds its share. At most as
 * many members as there are links, if they are classic. */
void fleet_join(struct fleet *fleet, uint32_t first, uint32_t count);

/* Members leave; returns when those that stay are settled. */
void fleet_leave(struct fleet *fleet, uint32_t first, uint32_t count);

/* All members join, as many at a time as there are links, and settle. */
void fleet_fill(struct fleet *fleet);

/* One heartbeat of a member over its link, and the error of its answer. */
int16_t fleet_beat(struct fleet *fleet, uint32_t member);

/* The heartbeat of a settled member as a frame behind what `out` holds: Heartbeat v4 or
 * ConsumerGroupHeartbeat v1 without a change. All are equally long. The fleet need not have been
 * filled, if the server does not look at what it gets. */
void fleet_frame(const struct fleet *fleet, uint32_t member, struct sink *out);
