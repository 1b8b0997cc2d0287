/* cluster_internal.h - what the files cluster_*.c share: the controller's state. */
#pragma once

#include "base/wheel.h"
#include "core/cluster.h"
#include "core/feature.h"
#include "core/join.h"
#include "gen/errors.h"

/* What is known of a broker that no record carries. */
struct cluster_soft {
    struct map_node node;
    int32_t id;
    enum cluster_reason reason;
    int64_t since_ms;
    int64_t metadata_offset; /* -1: no heartbeat of this registration yet. */
    int64_t shutdown_offset; /* -1: not in controlled shutdown. */
    uint32_t moved;          /* Partitions changed by what brought it here. */
    uint64_t beat_next;      /* How many beats there were; the ring's next place. */
    struct cluster_beat beats[CLUSTER_BEATS_KEPT];
};

/* When a broker was last heard, by id and epoch: also of ids and epochs that are not registered. */
struct cluster_contact {
    struct map_node node;
    struct {
        int64_t epoch;
        int64_t id;
    } key;
    int64_t contact_ms;
    struct wheel_entry session; /* Ends after contact_ms + session timeout. */
};

struct cluster {
    struct mem *mem;
    struct cluster_options options; /* With views into `cluster_id` and `voters`. */
    uint8_t *cluster_id;
    int32_t *voters;
    struct image *image;
    struct map softs;
    struct map contacts;
    struct wheel sessions; /* Of the contacts; judged by the horizon. */
    /* Whose session ends when the step that was just decided is applied. */
    struct cluster_contact *ending;
    bool active;
    bool elect_due;        /* Leaderless partitions are left over from an unfencing. */
    int16_t kraft_version; /* Finalized level of kraft.version: of the quorum. */
    int64_t
        session_check_ms; /* When the sessions are looked at next, and each periodic task runs. */
    int64_t idle_ms;
    int64_t preferred_ms;
    int64_t unclean_ms;
};

/* cluster.c */

/* Soft state of a broker, made if there is none; NULL: no memory. */
struct cluster_soft *cluster_soft_get(struct cluster *cluster, int32_t id);
struct cluster_soft *cluster_soft_find(const struct cluster *cluster, int32_t id);
void cluster_soft_remove(struct cluster *cluster, int32_t id);

/* A broker's place in its life, and that something brought it to a new one. */
enum cluster_liveness cluster_liveness_of(const struct cluster *cluster,
                                          const struct image_node *broker);
void cluster_note(struct cluster_soft *soft, enum cluster_reason reason, const struct step *step);

struct cluster_contact *cluster_contact_find(const struct cluster *cluster,
                                             int32_t id,
                                             int64_t epoch);
void cluster_contact_remove(struct cluster *cluster, struct cluster_contact *contact);
void cluster_session_set(struct cluster *cluster, struct cluster_contact *contact);

/* Has the registered epoch of this broker been heard within the session timeout? Never of the own
 * broker part. */
bool cluster_session_valid(const struct cluster *cluster,
                           const struct image_node *broker,
                           int64_t horizon_ms);

struct cluster_config_context cluster_configs(const struct cluster *cluster);
bool cluster_elr_on(const struct cluster *cluster);

/* STEP_DONE, or STEP_E_MEMORY if the arena ran out somewhere in the step. */
static inline enum step_result cluster_done(const struct step *step)
{
    return step->arena->failed ? STEP_E_MEMORY : STEP_DONE;
}

/* May the caller do this? */
static inline bool cluster_allows(const struct step *step,
                                  int8_t operation,
                                  int8_t type,
                                  struct view name)
{
    return step->caller.allows == NULL ||
           step->caller.allows(step->caller.allows_context, operation, type, name);
}

/* cluster_quota.c: 32 for an IPv4 address, 128 for an IPv6 address, 0 for any other text. */
uint32_t cluster_address_bits(struct view text);

/* Does the caller's quota allow changes of so many partitions? They are taken from it then. */
static inline bool cluster_charge(const struct step *step, uint32_t partitions)
{
    return step->caller.charge == NULL ||
           step->caller.charge(step->caller.charge_context, partitions);
}
#define CLUSTER_QUOTA_USED_UP VIEW("the quota for changes of topics is used up for now")

/* Kafka's AclOperation and ResourceType, as far as the controller asks. */
#define CLUSTER_OP_CREATE           5
#define CLUSTER_OP_DELETE           6
#define CLUSTER_OP_ALTER            7
#define CLUSTER_OP_DESCRIBE         8
#define CLUSTER_OP_DESCRIBE_CONFIGS 10
#define CLUSTER_OP_ALTER_CONFIGS    11
#define CLUSTER_ON_TOPIC            2
#define CLUSTER_ON_GROUP            3
#define CLUSTER_ON_CLUSTER          4
#define CLUSTER_ON_CLUSTER_NAME     VIEW("kafka-cluster")

/* cluster_broker.c */

/* Fence brokers whose session ran out; one a call. Adds records, and says whether it found one.
 * STEP_MORE: that one needs another call. */
MUST_USE enum step_result cluster_fence_expired(struct cluster *cluster,
                                                struct step *step,
                                                bool *found);

/* cluster_elect.c */

/* One pass of preferred elections, or of unclean ones for leaderless partitions: STEP_MORE when the
 * pass was full (CLUSTER_ELECTIONS_MAX). */
MUST_USE enum step_result cluster_balance(struct cluster *cluster, struct step *step);
MUST_USE enum step_result cluster_elect_unclean(struct cluster *cluster, struct step *step);

/* cluster_config.c */

/* What is wrong with a topic's name, or the null view. */
struct view cluster_topic_name_fault(struct view name);

/* What is wrong with the overrides that a topic would have, in words; the null view if nothing is.
 * `before` may be NULL. */
struct view cluster_topic_configs_fault(struct cluster *cluster,
                                        struct step *step,
                                        const struct image_configs *before,
                                        const struct cluster_override *overrides,
                                        uint32_t count);

/* A topic's effective settings. */
bool cluster_topic_unclean(const struct cluster *cluster, struct view topic);
int32_t cluster_topic_min_insync(const struct cluster *cluster, struct view topic);

/* Settings of the node itself, with the table's default. */
int64_t cluster_static_number(const struct cluster *cluster, struct view name);
bool cluster_static_flag(const struct cluster *cluster, struct view name);

#define CLUSTER_MIN_INSYNC VIEW("min.insync.replicas")

/* What is wrong with a value, as a sentence in the step's arena
 * ("retention.ms: \"x\" is not a value of its type"), or null. */
struct view cluster_config_fault(struct step *step,
                                 const struct config_def *def,
                                 struct view value);

/* A ConfigRecord, or a ClearElrRecord. False: no memory. */
MUST_USE bool cluster_add_config(struct step *step,
                                 int8_t type,
                                 struct view resource,
                                 const struct cluster_override *override);
MUST_USE bool cluster_add_clear_elr(struct step *step, struct view topic);
