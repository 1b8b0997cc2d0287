/* client_watcher.h - a client that describes groups and holds that against their members' views.
 *
 * Once a group has settled, what the coordinator says of it is what its members were told (I18).
 * What it said before a crash it says after it, unless a member was told something new since: its
 * state equals the replay of its log. */
#pragma once

#include "sim/client.h"
#include "sim/membership.h"

struct client_watched {
    struct membership *group;
    bool told; /* In this audit it was as its members see it. */
    char tale[1024];
    uint64_t changes; /* Of the group, when the tale was told. */
};

struct client_watcher {
    struct client client;
    const struct sim_world *world;
    struct client_watched watched[HISTORY_GROUPS_MAX];
    uint32_t count;
    bool audit;
    uint64_t asked_changes; /* Of the group that is asked for. */
    int64_t asked_us;
    uint32_t asked;
    uint32_t matched, compared; /* Tales. */
};

struct client_watcher *client_watcher_new(const struct client_seat *seat);
void client_watcher_watches(struct client_watcher *watcher, struct membership *group);

/* From now on every group is to be described as its members see it. */
void client_watcher_audits(struct client_watcher *watcher);
