/* node.h - one process's Kafka node: its data directory, its control part, its broker part.
 *
 * node_open() formats or opens the data directory, loads the metadata log, registers the broker
 * part with the control part in the same process and listens; node_run() serves until node_stop().
 * Errors are told through `say` in words; the result only says whether it worked. */
#pragma once

#include "base/view.h"
#include "io/io.h"
#include "sys/say.h"

struct node;

#define NODE_LISTENERS_MAX 8u
#define NODE_NAME_BYTES    64u

/* One entry of `listeners`, with what the other listener settings say of it. */
struct node_listener {
    char name[NODE_NAME_BYTES]; /* Upper case: "PLAINTEXT". */
    char named[256];            /* The host as it is written. */
    char host[256];             /* To bind to, as digits; empty: all addresses. */
    char advertised_host[256];  /* Empty: the address by which the client reached us. */
    uint16_t port;              /* 0: any free one. */
    uint16_t advertised_port;   /* 0: the port that is listened on. */
    int16_t protocol;           /* enum listener_protocol */
    bool controller;            /* In controller.listener.names. */
    bool inter_broker;
};

/* What the caller has found out from files and arguments. Views and pointers are borrowed for the
 * node's life. */
struct node_options {
    struct io *io;         /* Of the first shard. */
    struct io *const *ios; /* Of all shards, over one struct mem; NULL: there is one. */
    uint32_t shard_count;  /* dohle.shards; 0: one. At most NET_SHARDS_MAX. */
    const struct say *say;
    int32_t node_id;
    const char *const *log_dirs; /* Absolute paths. */
    uint32_t log_dir_count;
    const char *cluster_id;   /* To format with; NULL: a random one. */
    int16_t metadata_version; /* To format with; 0: the newest. */
    struct node_listener listeners[NODE_LISTENERS_MAX];
    uint32_t listener_count;
    bool controller_only;        /* process.roles=controller: there is no broker part. */
    bool loopback;               /* No `listeners` given: 127.0.0.1 and ::1. */
    bool ack_replicated;         /* dohle.ack.durability=replicated */
    bool auto_create_topics;     /* auto.create.topics.enable */
    int32_t num_partitions;      /* num.partitions */
    int16_t default_replication; /* default.replication.factor */
    struct view rack;            /* broker.rack, or null. */
    /* A broker setting from the file as text; the null view: not set there. */
    struct view (*setting)(void *context, struct view name);
    void *setting_context;
};

/* Open everything and listen. 0 and the node, or a negative errno after saying what is wrong. */
MUST_USE int node_open(const struct node_options *options, struct node **out);

/* Serve until node_stop(): each shard on a thread of its own, the first on the caller's. */
void node_run(struct node *node);
void node_run_shard(struct node *node, uint32_t index);

/* End node_run() after draining. Any thread, async-signal-safe. */
void node_stop(struct node *node);

/* One turn of one shard, or of all, for who drives the node itself (the simulator, tests). */
uint32_t node_turn_shard(struct node *node, uint32_t index, int64_t until_ms);
uint32_t node_turn(struct node *node, int64_t until_ms);

/* Clean stop, when no shard's thread runs any more: drain, sync, checkpoints, clean marks; free
 * all. Returns NULL. */
struct node *node_close(struct node *node);

/* Where the first broker listener (the first one, without a broker part) really listens. */
void node_address(const struct node *node, struct io_address *out);

/* Is the broker part registered, unfenced and its logs recovered? What is missing otherwise, in
 * words, or NULL. */
const char *node_not_ready(const struct node *node);

/* The cluster's id as text; lives as long as the node. */
struct view node_cluster_id(const struct node *node);
