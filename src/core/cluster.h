/* cluster.h - the controller: brokers, topics, partitions, configs, features of one cluster.
 *
 * State is a metadata image (image.h) that runs ahead of the high watermark, and a little soft
 * state that no record carries: which broker was heard when, how far each has come, who is on its
 * way out. Every function below that takes a struct step is a *step* (step.h): it decides, leaves
 * records and the reply, and changes no logged state. The owner's turn is
 *
 *     step_begin(&step, arena, now, wall);  step.offset_next = log's assigned end; ...
 *     result = cluster_x(cluster, &step, request, reply);
 *     if (step.record_count > 0) {
 *         base = append step.records as one batch (or, if not step.atomic, several);
 *         cluster_apply(cluster, &step, base);
 *     }
 *     park the reply until the high watermark passes the assigned end as it is now.
 *
 * Nothing in a reply points into the image, which changes before the reply is sent; the records
 * may, so they are encoded before they are applied. cluster_list_reassignments() alone answers at
 * once.
 *
 * Also a reply without records waits for what was appended before it: that is how a lost quorum
 * shows. Reads (describe, list) are asked of a follower's image instead. A step that is asked while
 * the controller is not active answers NOT_CONTROLLER.
 *
 *     INACTIVE --cluster_activate()--> ACTIVE --cluster_resign()--> INACTIVE
 *
 * Error messages in replies are our own words, put together in the arena.
 *
 * Pure. Memory: the struct mem of cluster_new(). Thread: the node's control part. */
#pragma once

#include "core/config.h"
#include "core/image.h"
#include "core/step.h"

struct cluster;

/* What a node of this build can run, and registers with: 4.4's ranges. */
const struct image_range *cluster_features(uint32_t *count);

/* The highest metadata.version that this build writes: 4.4-IV2. */
#define CLUSTER_METADATA_VERSION     33
#define CLUSTER_METADATA_VERSION_MIN 7

/* SCRAM mechanisms, and what proves a password of theirs. */
enum cluster_scram { CLUSTER_SCRAM_SHA_256 = 1, CLUSTER_SCRAM_SHA_512 = 2 };

struct cluster_scram_keys {
    uint8_t stored[64];
    uint8_t server[64];
    uint32_t size_bytes; /* Of each: 32 or 64. */
};

struct cluster_options {
    int32_t node_id;
    struct view cluster_id;
    int64_t session_timeout_ms;    /* broker.session.timeout.ms */
    int64_t idle_interval_ms;      /* metadata.max.idle.interval.ms; 0: no NoOpRecord */
    int64_t imbalance_interval_ms; /* leader.imbalance.check.interval.seconds; 0: no balancing */
    int64_t unclean_interval_ms;   /* unclean.leader.election.interval.ms */
    /* The node whose broker part lives in this process, -1 if none: it holds no session, because
     * the lock on its directory proves that its previous run is dead (architecture.md 5). It takes
     * new replicas only while no other broker is registered. */
    int32_t own_broker_id;
    const int32_t *static_voters; /* Of controller.quorum.voters; empty with a dynamic quorum. */
    uint32_t static_voter_count;
    uint64_t seed; /* Of the image's hash maps. */
    config_lookup
        *static_config; /* server.properties of this node: values by Kafka's broker name. */
    void *static_context;
    /* Both keys of a salted password: RFC 5802. Needed by cluster_alter_scram(). */
    void (*scram_keys)(int8_t mechanism, struct view salted, struct cluster_scram_keys *out);
};

/* NULL: no memory. What the options point to is copied, the lookup is kept. Inactive. */
MUST_USE struct cluster *cluster_new(struct mem *mem, const struct cluster_options *options);
struct cluster *cluster_free(struct cluster *cluster); /* Returns NULL. */

/* The image, with everything that was appended. For queries and for loading: until activation the
 * owner applies the committed log to it with image_apply(), its base offset for both. */
struct image *cluster_image(struct cluster *cluster);

/* The finalized level of kraft.version, which lives in the quorum. 1 until told. */
void cluster_set_kraft_version(struct cluster *cluster, int16_t level);

/* Apply a step's records, appended from `base` on. The only way that logged state changes once
 * active. IMAGE_OK. IMAGE_E_MEMORY: nothing of the step is applied, though the batch is in the log;
 * before the next step the owner applies it to the image with image_apply(), and calls
 * cluster_applied(). IMAGE_E_FAULT: the same, but the owner resigns. */
MUST_USE enum image_result cluster_apply(struct cluster *cluster,
                                         const struct step *step,
                                         int64_t base);
void cluster_applied(struct cluster *cluster);

/* The high watermark is `offset`. / Batches from `offset` on are lost. */
void cluster_commit(struct cluster *cluster, int64_t offset);
void cluster_undo(struct cluster *cluster, int64_t offset);

/* The log took none of the step's records (no space, no memory): nothing of the image has changed,
 * and what the step noted in soft state is taken back. What it was to do is due again: by the
 * caller that asks again, or in the next cluster_tick(), which the owner puts off. */
void cluster_refused(struct cluster *cluster, const struct step *step);

/* ---- becoming and being active --------------------------------------------------------------- */

/* Records that a fresh log begins with: the features of a format run, from the bootstrap
 * checkpoint. */
struct cluster_bootstrap {
    const struct step_record *records;
    uint32_t count;
};

/* This node leads and has applied all committed records. Adds the activation records: nothing on a
 * log that has a metadata.version, else the bootstrap transaction; an Abort in front where a
 * transaction is open. All unfenced brokers get a full session from now on.
 *
 *   STEP_DONE      active. If the append fails, cluster_resign().
 *   STEP_E_MEMORY  still inactive.
 *
 * A bootstrap without metadata.version is a bug of the caller (assert): see cluster_bootstrap_ok().
 */
MUST_USE enum step_result cluster_activate(struct cluster *cluster,
                                           struct step *step,
                                           const struct cluster_bootstrap *bootstrap);
bool cluster_bootstrap_ok(const struct cluster_bootstrap *bootstrap);

/* Not leading any more: soft state goes, and all that is not committed is played back. */
void cluster_resign(struct cluster *cluster, int64_t high_watermark);

bool cluster_active(const struct cluster *cluster);

/* The records of a format run at this metadata.version (0: the newest), as `kafka-storage format`
 * picks them, but no feature above its `max` in `served` (what this build serves; not listed: not
 * at all). */
MUST_USE enum step_result cluster_format(struct step *step,
                                         int16_t metadata_version,
                                         const struct image_range *served,
                                         uint32_t served_count);

/* Periodic work that is due at step->now_ms: fence one broker whose session ran out (judged by
 * step->horizon_ms), NoOpRecord, preferred leaders, unclean elections. One piece of work a call, so
 * that each sees the effects of the one before: STEP_MORE says that more is due at once. */
MUST_USE enum step_result cluster_tick(struct cluster *cluster, struct step *step);

/* When cluster_tick() is due; INT64_MAX while inactive. */
int64_t cluster_deadline(const struct cluster *cluster);

/* ---- brokers --------------------------------------------------------------------------------- */

/* A heartbeat of this broker and epoch arrived at `arrived_ms` (of its frame) and has passed
 * authorization. Called before the step, so that a heartbeat that waits in a queue counts. */
void cluster_contact(struct cluster *cluster, int32_t broker, int64_t epoch, int64_t arrived_ms);

enum cluster_liveness {
    CLUSTER_UNREGISTERED,
    CLUSTER_FENCED,
    CLUSTER_UNFENCED,
    CLUSTER_SHUTTING_DOWN /* In controlled shutdown. */
};

/* Why a broker became what it is. */
enum cluster_reason {
    CLUSTER_REASON_NONE,         /* Not known: since before this controller became active. */
    CLUSTER_REASON_REGISTERED,   /* A new incarnation begins fenced. */
    CLUSTER_REASON_CAUGHT_UP,    /* Unfenced by a heartbeat. */
    CLUSTER_REASON_SESSION,      /* Fenced: nothing heard for the session timeout. */
    CLUSTER_REASON_WANTED_FENCE, /* Fenced by its own heartbeat. */
    CLUSTER_REASON_SHUTDOWN      /* Fenced: its controlled shutdown was granted, or begun. */
};

/* One heartbeat as it was answered. */
struct cluster_beat {
    int64_t at_ms; /* When it was decided; monotonic. */
    int64_t metadata_offset;
    bool want_fence;
    bool want_shut_down;
    bool caught_up;
    bool fenced;
    bool should_shut_down;
};

/* What is known about a broker, for `explain` and tests. False: never heard of. */
struct cluster_broker_view {
    enum cluster_liveness liveness;
    enum cluster_reason reason;
    int64_t since_ms;        /* Of the last change of `liveness`; 0: before activation. */
    int64_t metadata_offset; /* From its last heartbeat; -1: none. */
    int64_t shutdown_offset; /* Others must have passed it before it may stop; -1. */
    int64_t contact_ms;      /* Last heartbeat of the registered epoch; -1: none. */
    int64_t session_end_ms;  /* Contact + session timeout; -1: it has no session. */
    uint32_t moved;          /* Partitions that the last change of `liveness` changed. */
    uint32_t beat_count;     /* Of the last heartbeats, oldest first. */
    struct cluster_beat beats[CLUSTER_BEATS_KEPT];
};
bool cluster_broker(const struct cluster *cluster, int32_t id, struct cluster_broker_view *out);

struct broker_registration_request;
struct broker_registration_response;
struct broker_heartbeat_request;
struct broker_heartbeat_response;
struct unregister_broker_request;
struct unregister_broker_response;
struct controller_registration_request;
struct controller_registration_response;
struct unregister_controller_request;
struct unregister_controller_response;
struct allocate_producer_ids_request;
struct allocate_producer_ids_response;
struct assign_replicas_to_dirs_request;
struct assign_replicas_to_dirs_response;

/* BrokerRegistration 0-4. May return STEP_MORE: the old incarnation leaves its ISRs
 * first. */
MUST_USE enum step_result cluster_register_broker(struct cluster *cluster,
                                                  struct step *step,
                                                  const struct broker_registration_request *in,
                                                  struct broker_registration_response *out);

/* BrokerHeartbeat 0-2. May return STEP_MORE. */
MUST_USE enum step_result cluster_heartbeat(struct cluster *cluster,
                                            struct step *step,
                                            const struct broker_heartbeat_request *in,
                                            struct broker_heartbeat_response *out);

/* UnregisterBroker 0. May return STEP_MORE. */
MUST_USE enum step_result cluster_unregister_broker(struct cluster *cluster,
                                                    struct step *step,
                                                    const struct unregister_broker_request *in,
                                                    struct unregister_broker_response *out);

MUST_USE enum step_result cluster_register_controller(
    struct cluster *cluster,
    struct step *step,
    const struct controller_registration_request *in,
    struct controller_registration_response *out);

MUST_USE enum step_result cluster_unregister_controller(
    struct cluster *cluster,
    struct step *step,
    const struct unregister_controller_request *in,
    struct unregister_controller_response *out);

MUST_USE enum step_result cluster_allocate_producer_ids(
    struct cluster *cluster,
    struct step *step,
    const struct allocate_producer_ids_request *in,
    struct allocate_producer_ids_response *out);

MUST_USE enum step_result cluster_assign_directories(
    struct cluster *cluster,
    struct step *step,
    const struct assign_replicas_to_dirs_request *in,
    struct assign_replicas_to_dirs_response *out);

/* ---- topics ---------------------------------------------------------------------------------- */

struct create_topics_request;
struct create_topics_response;
struct delete_topics_request;
struct delete_topics_response;
struct create_partitions_request;
struct create_partitions_response;

/* All three ask step->caller.charge for each topic's partitions, and refuse the topic with
 * THROTTLING_QUOTA_EXCEEDED when it says no. */

/* CreateTopics 2-7. Asks step->caller.allows for CREATE on the cluster, else on each topic, and for
 * DESCRIBE_CONFIGS on each topic whose configs the answer shows. */
MUST_USE enum step_result cluster_create_topics(struct cluster *cluster,
                                                struct step *step,
                                                const struct create_topics_request *in,
                                                struct create_topics_response *out);

/* DeleteTopics 1-6. Asks for DESCRIBE and DELETE on each topic. */
MUST_USE enum step_result cluster_delete_topics(struct cluster *cluster,
                                                struct step *step,
                                                const struct delete_topics_request *in,
                                                struct delete_topics_response *out);

/* CreatePartitions 0-3. Asks for ALTER on each topic. */
MUST_USE enum step_result cluster_create_partitions(struct cluster *cluster,
                                                    struct step *step,
                                                    const struct create_partitions_request *in,
                                                    struct create_partitions_response *out);

/* ---- configs --------------------------------------------------------------------------------- */

struct incremental_alter_configs_request;
struct incremental_alter_configs_response;
struct alter_configs_request;
struct alter_configs_response;

/* IncrementalAlterConfigs 0-1 and AlterConfigs 0-2, the controller's part: existence of the
 * resource, the resulting topic overrides, ELR and cordon rules. What only the broker itself can
 * judge about its dynamic settings (files, listeners) it has judged before it forwarded. Asks for
 * ALTER_CONFIGS on topic or cluster. */
MUST_USE enum step_result cluster_incremental_alter_configs(
    struct cluster *cluster,
    struct step *step,
    const struct incremental_alter_configs_request *in,
    struct incremental_alter_configs_response *out);
MUST_USE enum step_result cluster_alter_configs(struct cluster *cluster,
                                                struct step *step,
                                                const struct alter_configs_request *in,
                                                struct alter_configs_response *out);

struct alter_client_quotas_request;
struct alter_client_quotas_response;

/* AlterClientQuotas 0-1. Asks for ALTER_CONFIGS on the cluster. */
MUST_USE enum step_result cluster_alter_client_quotas(struct cluster *cluster,
                                                      struct step *step,
                                                      const struct alter_client_quotas_request *in,
                                                      struct alter_client_quotas_response *out);

struct alter_user_scram_credentials_request;
struct alter_user_scram_credentials_response;

/* AlterUserScramCredentials 0. Asks for ALTER on the cluster. One batch. */
MUST_USE enum step_result cluster_alter_scram(struct cluster *cluster,
                                              struct step *step,
                                              const struct alter_user_scram_credentials_request *in,
                                              struct alter_user_scram_credentials_response *out);

struct create_acls_request;
struct create_acls_response;
struct delete_acls_request;
struct delete_acls_response;
struct describe_acls_request;
struct describe_acls_response;

/* CreateAcls 1-3, DeleteAcls 1-3, DescribeAcls 1-3 (a read over any image). They manage ACLs only
 * where `authorizer.class.name` is set, else answer SECURITY_DISABLED. Create and delete ask for
 * ALTER on the cluster, describe for DESCRIBE. */
MUST_USE enum step_result cluster_create_acls(struct cluster *cluster,
                                              struct step *step,
                                              const struct create_acls_request *in,
                                              struct create_acls_response *out);
MUST_USE enum step_result cluster_delete_acls(struct cluster *cluster,
                                              struct step *step,
                                              const struct delete_acls_request *in,
                                              struct delete_acls_response *out);
MUST_USE enum step_result cluster_describe_acls(const struct cluster *cluster,
                                                const struct image *image,
                                                struct step *step,
                                                const struct describe_acls_request *in,
                                                struct describe_acls_response *out);

/* Where an effective value comes from: Kafka's source ids. */
enum cluster_source {
    CLUSTER_SOURCE_TOPIC = 1,
    CLUSTER_SOURCE_BROKER = 2,
    CLUSTER_SOURCE_BROKER_DEFAULT = 3,
    CLUSTER_SOURCE_STATIC = 4,
    CLUSTER_SOURCE_DEFAULT = 5,
    CLUSTER_SOURCE_GROUP = 8
};

struct cluster_config_value {
    struct view value; /* May be null. */
    enum cluster_source source;
    int32_t factor; /* 1; or what makes milliseconds of a value in minutes or hours, as where
                       log.retention.hours stands for retention.ms. */
};

/* The value as a number in the setting's own unit; it must be one. A negative value of minutes or
 * hours is -1. */
int64_t cluster_config_number(const struct cluster_config_value *value);

/* The value as text in the setting's own unit: `value` itself, or made in the arena. */
struct view cluster_config_text(const struct cluster_config_value *value, struct arena *arena);

/* The name of a setting without "listener.name.x." in front. */
struct view cluster_config_plain(struct view name);

/* The value that holds for a topic (or, with a null topic, for the broker itself): the topic's
 * override, node `node_id`'s dynamic value, the cluster-wide default, the static value, the
 * definition's default. Used by the controller and, on their own images, by brokers. */
struct cluster_config_context {
    const struct image *image;
    int32_t node_id;
    config_lookup *static_config;
    void *static_context;
};
struct cluster_config_value cluster_config_value(const struct cluster_config_context *context,
                                                 struct view topic,
                                                 const struct config_def *def);

/* ---- partitions ------------------------------------------------------------------------------ */

struct alter_partition_request;
struct alter_partition_response;
struct elect_leaders_request;
struct elect_leaders_response;
struct alter_partition_reassignments_request;
struct alter_partition_reassignments_response;
struct list_partition_reassignments_request;
struct list_partition_reassignments_response;

/* AlterPartition 2-3. */
MUST_USE enum step_result cluster_alter_partition(struct cluster *cluster,
                                                  struct step *step,
                                                  const struct alter_partition_request *in,
                                                  struct alter_partition_response *out);

/* ElectLeaders 0-2. */
MUST_USE enum step_result cluster_elect_leaders(struct cluster *cluster,
                                                struct step *step,
                                                const struct elect_leaders_request *in,
                                                struct elect_leaders_response *out);

/* AlterPartitionReassignments 0-1; the list is a read over any image. */
MUST_USE enum step_result cluster_alter_reassignments(
    struct cluster *cluster,
    struct step *step,
    const struct alter_partition_reassignments_request *in,
    struct alter_partition_reassignments_response *out);
MUST_USE enum step_result cluster_list_reassignments(
    const struct image *image,
    struct step *step,
    const struct list_partition_reassignments_request *in,
    struct list_partition_reassignments_response *out);

/* ---- features -------------------------------------------------------------------------------- */

struct update_features_request;
struct update_features_response;

/* UpdateFeatures 0-2. */
MUST_USE enum step_result cluster_update_features(struct cluster *cluster,
                                                  struct step *step,
                                                  const struct update_features_request *in,
                                                  struct update_features_response *out);
