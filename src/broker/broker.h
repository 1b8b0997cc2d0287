/* broker.h - what the files of this folder share: the node's parts, and small helpers of handlers.
 *
 * `struct node` is one shard's part of the node: everything in it belongs to that shard's thread.
 * How the shards of a node come together: shards.h. */
#pragma once

#include "base/wheel.h"
#include "broker/fetch_session.h"
#include "broker/follow.h"
#include "broker/node.h"
#include "broker/replica.h"
#include "core/cluster.h"
#include "core/image.h"
#include "gen/errors.h"
#include "log/log_manager.h"
#include "net/range.h"
#include "net/request.h"
#include "net/shard.h"

struct admission;
struct client_metrics;
struct controller;
struct coordinator;
struct lifecycle;
struct moves;
struct placed;
struct quota;

/* A broker setting that is asked for in every turn or request: looked up anew only when settings
 * have changed. Begins as {.name = "..."}. */
struct setting_number {
    const char *name;
    uint32_t seen; /* The node's config_changes then. */
    int64_t value;
};

struct node {
    struct node_options options;
    struct io *io;
    struct mem *mem;
    const struct say *say;
    struct node **peers; /* Of all shards, the first one's array; [0] is what node_open gives. */
    uint32_t index, count;
    struct shard **shards; /* The same for net/. */
    struct shard *shard;
    struct logs *logs;
    struct logs_watch logs_watch;
    struct logs_part logs_part;
    struct image *image;   /* The committed one: what clients are told. */
    int64_t image_offset;  /* Next offset of the metadata log that it has not seen. */
    int16_t kraft_version; /* It lives in control records, not in the image. */
    struct image_watch image_watch;
    struct list published;      /* Not the first: what it is to apply, in order (shards.c). */
    struct follow_again behind; /* It has had no memory to follow the metadata log. */
    _Atomic(const char *) follow_missing; /* Why it is behind or stays so; NULL: it is not. */
    struct controller *controller;
    struct lifecycle *lifecycle;
    struct coordinator *coordinator;
    struct replicas replicas;
    struct moves *moves;
    struct placed *placed;
    struct fetch_sessions sessions;
    struct setting_number fetch_max_bytes;
    uint32_t consumer_groups_seen; /* broker_consumer_groups looked at config_changes then. */
    bool consumer_groups_allowed;  /* And found this. */
    struct quota *quota;
    struct client_metrics *client_metrics;
    struct admission *admission; /* Of the first shard. */
    struct arena host_limits;    /* What dynamic.c gave to net/. */
    char cluster_id[LOG_CLUSTER_ID_MAX];
    struct listener *listeners[NODE_LISTENERS_MAX]; /* By place in options.listeners; NULL: shut. */
    bool listeners_due;                             /* Settings have changed: see listening.h. */
    struct listeners_set *listeners_given; /* Of the first shard: those of the start, for all. */
    uint32_t listener_changes;             /* Listeners shut since the start. */
    int64_t broker_epoch;                  /* Of our registration; -1: none yet. */
    int64_t producer_id_next; /* The block of producer ids that is ours: [next, end). */
    int64_t producer_id_end;
    struct list producer_id_waits;
    struct list fetches_due;   /* Parked fetches to look at before the turn ends. */
    struct list produces_busy; /* Parts of Produce requests whose log directory is at its cap. */
    struct list recovered;     /* Replicas whose recovery the control part is to be told. */
    struct list creating;      /* Topics being created on behalf of Metadata requests. */
    bool producer_ids_asked;
    uint32_t config_changes; /* Of settings at run time, counted from 1. */
    int64_t next_ms;         /* When the logs or the controller want to be called next. */
    const char *failed;      /* Why this shard cannot serve any more; NULL: it can. */
    /* Of the first shard: */
    struct net_handler *handlers; /* broker_handlers, led to their shards; NULL: there is one. */
    bool closing;                 /* node_close has begun; no shard has a thread any more. */
    bool resting;                 /* No shard turns any more: letters are not opened. */
    _Atomic bool stopping;
};

static inline struct node *node_of(struct shard *shard)
{
    return shard->node;
}

/* Does the request's principal have this operation (AclOperation) on this resource (ResourceType)?
 * Every handler asks here, at the place in its order of checks where Kafka asks. There is no
 * authorizer yet: as in Kafka then, everything is allowed. */
enum auth_operation {
    AUTH_READ = 3,
    AUTH_WRITE = 4,
    AUTH_CREATE = 5,
    AUTH_DELETE = 6,
    AUTH_ALTER = 7,
    AUTH_DESCRIBE = 8,
    AUTH_CLUSTER_ACTION = 9,
    AUTH_DESCRIBE_CONFIGS = 10,
    AUTH_ALTER_CONFIGS = 11,
    AUTH_IDEMPOTENT_WRITE = 12
};
enum auth_resource { AUTH_TOPIC = 2, AUTH_GROUP = 3, AUTH_CLUSTER = 4, AUTH_TRANSACTIONAL_ID = 5 };

bool auth_allows(const struct request *request,
                 enum auth_operation operation,
                 enum auth_resource resource,
                 struct view name);

/* May it do what brokers do: CLUSTER_ACTION on the cluster. */
bool auth_is_broker(const struct request *request);

/* What Kafka reports as authorized operations without an authorizer. */
#define AUTH_TOPIC_OPERATIONS   0x0df8
#define AUTH_CLUSTER_OPERATIONS 0x1fa0
#define AUTH_GROUP_OPERATIONS   0x0d48
#define AUTH_NOT_ASKED          INT32_MIN

/* Where the request's client finds a broker: on the listener that it came through. False: not
 * there. The host lives as long as the request. */
struct metadata_place {
    struct view host;
    int32_t port;
};
MUST_USE bool metadata_place(struct request *request,
                             const struct image_node *broker,
                             struct metadata_place *out);

/* Is the topic one of Kafka's internal ones? */
bool topic_is_internal(struct view name);

/* 1 to 249 of a-z A-Z 0-9 . _ -, and neither . nor .. */
bool topic_name_valid(struct view name);

/* `count` zeroed elements in the request's arena; NULL (also for a count of 0). */
void *broker_array(struct request *request, size_t count, size_t size);

/* The request's response (request_response), to be filled in. NULL: no memory, the request is
 * closed. */
MUST_USE void *broker_response(struct request *request);

/* End the request: with `response` if it could be `made`, else, for want of memory, by closing. */
void broker_answer(struct request *request, void *response, bool made);

/* A NUL-terminated text made in the request's arena, as a view. On failure the empty view. */
struct view broker_text(struct request *request, const char *format, ...) PRINTF(2, 3);

/* The effective value of a topic setting: the topic's override, the broker's file, Kafka's default.
 */
struct view topic_setting(const struct node *node, struct view topic, struct view name);
int64_t topic_setting_number(const struct node *node, struct view topic, const char *name);

/* A broker setting: its dynamic override, the file, Kafka's default. */
struct view broker_setting(const struct node *node, struct view name);
int64_t broker_setting_number(const struct node *node, const char *name);

/* The value of a setting as it is now. O(1) while nothing changes. */
int64_t broker_setting_kept(const struct node *node, struct setting_number *setting);

/* All that a log needs of its topic's settings. */
void topic_log_config(const struct node *node, struct view topic, struct log_config *out);

/* ---- handlers: one for each API, see handlers.c ---------------------------------------------- */

extern const struct net_handler broker_handlers[];
extern const uint32_t broker_handler_count;

/* Are consumer groups (KIP-848) served: by the cluster's features, and by this node's settings? */
bool broker_consumer_groups(struct node *node);

void handle_metadata(struct shard *shard, struct request *request);
void handle_describe_cluster(struct shard *shard, struct request *request);
void handle_describe_topic_partitions(struct shard *shard, struct request *request);
void handle_produce(struct shard *shard, struct request *request);
void handle_fetch(struct shard *shard, struct request *request);
void handle_list_offsets(struct shard *shard, struct request *request);
void handle_offset_for_leader_epoch(struct shard *shard, struct request *request);
void handle_init_producer_id(struct shard *shard, struct request *request);
void handle_delete_records(struct shard *shard, struct request *request);
void handle_describe_producers(struct shard *shard, struct request *request);
void handle_alter_replica_log_dirs(struct shard *shard, struct request *request);
void handle_describe_log_dirs(struct shard *shard, struct request *request);
void handle_describe_configs(struct shard *shard, struct request *request);
void handle_find_coordinator(struct shard *shard, struct request *request);
void handle_join_group(struct shard *shard, struct request *request);
void handle_sync_group(struct shard *shard, struct request *request);
void handle_heartbeat(struct shard *shard, struct request *request);
void handle_leave_group(struct shard *shard, struct request *request);
void handle_consumer_group_heartbeat(struct shard *shard, struct request *request);
void handle_consumer_group_describe(struct shard *shard, struct request *request);
void handle_offset_commit(struct shard *shard, struct request *request);
void handle_offset_fetch(struct shard *shard, struct request *request);
void handle_offset_delete(struct shard *shard, struct request *request);
void handle_describe_groups(struct shard *shard, struct request *request);
void handle_list_groups(struct shard *shard, struct request *request);
void handle_delete_groups(struct shard *shard, struct request *request);
void handle_list_config_resources(struct shard *shard, struct request *request);
void handle_get_telemetry_subscriptions(struct shard *shard, struct request *request);
void handle_push_telemetry(struct shard *shard, struct request *request);
void handle_describe_client_quotas(struct shard *shard, struct request *request);
void handle_describe_user_scram_credentials(struct shard *shard, struct request *request);
void handle_delegation_token(struct shard *shard, struct request *request);
void handle_forwarded(struct shard *shard, struct request *request); /* controller_steps.c */
void handle_incremental_alter_configs(struct shard *shard, struct request *request); /* loggers.c */
void handle_envelope(struct shard *shard, struct request *request);

/* If the image has the replica as recovering and led by us: its log is as it will be, the control
 * part is told so at the turn's end. */
void recovered_note(struct replica *replica);
void recovered_turn(struct node *node);

/* Appends that the logs were too busy for are tried again. Called at the turn's end. */
void produce_turn_end(struct node *node);

/* Fetches that were woken are looked at again. Called at the turn's end. */
void fetch_turn_end(struct node *node);
