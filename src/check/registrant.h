/* registrant.h - a scripted broker: it registers with a controller and beats as the row says.
 *
 * Its id is one that no broker has; it is unregistered when its row ends, and topics are deleted.
 */
#pragma once

#include "check/run.h"

#include "gen/broker_heartbeat_response.h"

#define REGISTRANT_DIRS     2u
#define REGISTRANT_FEATURES 16u

/* A metadata offset that every controller takes for caught up, and for ahead of every shutdown. */
#define REGISTRANT_FAR (INT64_C(1) << 62)

/* How Apache Kafka's controllers are set if nobody says otherwise. */
#define REGISTRANT_SESSION_MS 9000

struct registrant {
    struct check_run *run;
    struct check_peer *peer;
    int32_t id;
    int64_t epoch; /* -1: not registered. */
    struct uuid incarnation;
    /* What it registers with; to be changed before. */
    struct view cluster_id;
    struct uuid dirs[REGISTRANT_DIRS];
    int32_t dir_count;
    bool migrating;
    struct registrant_feature {
        struct view name;
        int16_t min, max;
    } features[REGISTRANT_FEATURES];
    uint32_t feature_count;
};

/* Ask the controller for its cluster's id and feature levels; the suite's prepare. */
void registrant_prepare(struct check_run *world);

/* Unregister the brokers of this run and delete its topic; the suite's end of each row. */
void registrant_clean(struct check_run *run);

/* A broker that has not registered; `number` (0 to 3) tells those of one row apart. */
void registrant_init(struct registrant *r, struct check_run *run, uint32_t number);

/* Another process with the same id: a new incarnation. */
void registrant_restart(struct registrant *r);

/* Register; on NONE the epoch is taken. */
int16_t registrant_register(struct registrant *r);

/* Register, then beat until it is unfenced: a live broker. */
void registrant_live(struct registrant *r);

/* A beat, in the words of the transition table. */
struct registrant_beat {
    int64_t offset;
    bool fence, shut_down;
    const struct uuid *offline; /* NULL: no directory is reported. */
    const struct uuid *cordoned;
    int32_t cordoned_count; /* 0 with `cordoned` set: the empty list. */
};
const struct broker_heartbeat_response *registrant_beat(struct registrant *r,
                                                        const struct registrant_beat *beat);

/* Beat with everything read; expect these three flags of the answer. */
struct registrant_flags {
    bool caught_up, fenced, shut_down;
};
void registrant_expect(struct registrant *r,
                       const char *what,
                       const struct registrant_beat *beat,
                       struct registrant_flags flags);

int16_t registrant_unregister(struct registrant *r);

/* Create the run's topic with one partition on these brokers, the first one to lead. The error; its
 * id if there was none. */
int16_t registrant_topic(struct registrant *const *replicas, uint32_t count, struct uuid *id);

/* Say that the partition of this topic lies in the broker's directory. */
int16_t registrant_assign(struct registrant *r, struct uuid topic, struct uuid dir);
