/* quorum.h - who leads the metadata log, and how far it is committed: KRaft's state machine.
 *
 * Shaped for N voters, run with one: a node that is the only voter passes from any state to leader
 * without waiting. What other nodes may ask of it (Vote, Fetch of the log) is quorum_answer.h. The
 * controller (cluster.h) learns leadership and the committed offset from here and nowhere else.
 *
 *               higher epoch seen, from any state
 *                            |
 *                            v        election timeout          majority
 *      start ----------> UNATTACHED ------------> PROSPECTIVE ------------> CANDIDATE
 *        |                |      ^                  (sole voter: at once)       | majority
 *        v                v      |                                              v
 *      RESIGNED        FOLLOWER -+  election timeout, epoch + 1              LEADER
 *        ^--------------------------------------------------------------------- resigns
 *
 * The machine does no I/O. Each call may leave *effects*: after every call the owner takes them one
 * by one with quorum_effect() and carries them out in this order; QUORUM_PERSIST holds the rest
 * back until quorum_persisted() says that the file is durable. Answers that a call wrote must not
 * be sent before that either.
 *
 * Pure. Memory: the struct mem of quorum_new(). Thread: the node's control part. */
#pragma once

#include "base/mem.h"
#include "core/step.h"

struct quorum;

enum quorum_role {
    QUORUM_UNATTACHED,
    QUORUM_PROSPECTIVE,
    QUORUM_CANDIDATE,
    QUORUM_LEADER,
    QUORUM_FOLLOWER,
    QUORUM_RESIGNED
};

struct quorum_endpoint {
    struct view name; /* Of the listener. */
    struct view host;
    uint16_t port;
};

struct quorum_voter {
    int32_t id;
    struct uuid directory; /* Zero: unknown (kraft.version 0). */
    const struct quorum_endpoint *endpoints;
    uint32_t endpoint_count;
    int16_t kraft_min; /* Levels of kraft.version that it can run. */
    int16_t kraft_max;
};

/* The content of the file quorum-state. */
struct quorum_stored {
    int32_t leader_id; /* -1: unknown. */
    int32_t leader_epoch;
    int32_t voted_id;            /* -1: none. */
    struct uuid voted_directory; /* Zero: unknown. */
};

/* Read the file's text, of data version 0 or 1. False: it is not one. */
MUST_USE bool quorum_stored_read(struct view text, struct quorum_stored *out);

/* Its text as Kafka writes it, in the arena: data version 0 with the voters' ids (kraft.version 0),
 * else 1. Null: no memory. */
MUST_USE struct view quorum_stored_write(const struct quorum *quorum,
                                         const struct quorum_stored *stored,
                                         struct arena *arena);

/* The metadata log as it stands at this call. Snapshots never count the bootstrap one, (0,0). */
struct quorum_log {
    int64_t start;
    int64_t end;        /* Assigned. */
    int64_t durable;    /* The leader counts itself with this. */
    int32_t last_epoch; /* Of the last record; of the snapshot if the log begins at one; else 0. */
    int64_t snapshot_end; /* The newest snapshot's id; -1: there is none. */
    int32_t snapshot_epoch;
    int64_t first_snapshot_end; /* The oldest one's. */
    int32_t first_snapshot_epoch;
    /* Largest known epoch <= `epoch`, and the offset where it ends; epoch -1: none. */
    void (*epoch_end)(void *context, int32_t epoch, int32_t *found, int64_t *end);
    void *context;
};

/* What every call is told. */
struct quorum_event {
    const struct quorum_log *log;
    int64_t now_ms;
    int64_t wall_ms;
    int16_t version;      /* Of the request, if there is one. */
    struct view listener; /* On which it came: says which endpoints the answer names. */
    struct arena *arena;  /* For the answer. */
};

struct quorum_options {
    struct quorum_voter self; /* Its endpoints are those of the controller listeners. */
    struct view cluster_id;
    bool is_voter;                     /* The node has the controller role. */
    const struct quorum_voter *voters; /* controller.quorum.voters, or from the (0,0) checkpoint. */
    uint32_t voter_count;
    int16_t kraft_version;       /* From the checkpoint or log; 0 with static voters. */
    bool voters_from_checkpoint; /* The log has no voter set yet: the leader writes it. */
    int64_t election_timeout_ms; /* controller.quorum.election.timeout.ms */
    int64_t fetch_timeout_ms;    /* controller.quorum.fetch.timeout.ms */
    uint64_t random[2];
};

/* The machine as it comes up: `stored` is NULL without a quorum-state file. What the options point
 * to is copied. NULL: no memory. Call quorum_tick() next: a sole voter leads at once. */
MUST_USE struct quorum *quorum_new(struct mem *mem,
                                   const struct quorum_options *options,
                                   const struct quorum_stored *stored,
                                   const struct quorum_log *log);

/* Returns NULL. */
struct quorum *quorum_free(struct quorum *quorum);

enum quorum_effect_kind {
    QUORUM_NOTHING,
    QUORUM_PERSIST, /* Write quorum-state durably, then call quorum_persisted(). */
    QUORUM_LEAD,    /* This node leads `epoch`: log_epoch_begin(), append quorum_begin_records() as
                       one control batch, make it durable, then quorum_durable(). */
    QUORUM_DROP, /* This node does not lead any more: answer what waits with NOT_CONTROLLER (on the
                    raft listener NOT_LEADER_OR_FOLLOWER), undo what is not committed. */
    QUORUM_COMMIT, /* The high watermark rose: apply, answer, complete waiting fetches. */
};

struct quorum_effect {
    enum quorum_effect_kind kind;
    int32_t epoch;               /* QUORUM_LEAD, QUORUM_DROP */
    int64_t high_watermark;      /* QUORUM_COMMIT */
    struct quorum_stored stored; /* QUORUM_PERSIST */
};

/* Take the next effect. False: there is none (now). */
bool quorum_effect(struct quorum *quorum, struct quorum_effect *out);

/* The last QUORUM_PERSIST is durable. */
void quorum_persisted(struct quorum *quorum);

/* Timers. Call at quorum_deadline(), and once after quorum_new(). */
void quorum_tick(struct quorum *quorum, const struct quorum_event *event);

/* When the next tick is due; INT64_MAX: no timer runs. */
int64_t quorum_deadline(const struct quorum *quorum);

/* The log's durable end has moved: the high watermark may. */
void quorum_durable(struct quorum *quorum, const struct quorum_event *event);

/* Give up leadership (shutting down, or the controller met a fault). */
void quorum_resign(struct quorum *quorum, const struct quorum_event *event);

/* The control records that open the epoch of QUORUM_LEAD, added to the step as key and value:
 * LEADER_CHANGE, and KRAFT_VERSION with KRAFT_VOTERS where the log lacks the voter set or the
 * leader's own entry is out of date. STEP_DONE or STEP_E_MEMORY. */
MUST_USE enum step_result quorum_begin_records(const struct quorum *quorum, struct step *step);

/* The control records at the head of a snapshot (SNAPSHOT_HEADER with this timestamp, and the voter
 * set at kraft.version 1), and the one at its end. Also of the bootstrap checkpoint. */
MUST_USE enum step_result quorum_snapshot_head(const struct quorum *quorum,
                                               struct step *step,
                                               int64_t last_contained_ms);
MUST_USE enum step_result quorum_snapshot_foot(struct step *step);

/* The same head for formatting a directory, where no quorum runs yet. */
MUST_USE enum step_result quorum_format_head(struct step *step,
                                             int64_t wall_ms,
                                             const struct quorum_voter *voters,
                                             uint32_t voter_count);

/* A control record that was appended or loaded, or that stands in a snapshot that was loaded
 * (`offset` -1 for the bootstrap checkpoint's): voter sets and kraft.version act from the append
 * on. `key` and `value` are the record's bytes. False: corrupt, or no memory. Types that are not
 * known are skipped. */
MUST_USE bool quorum_control(struct quorum *quorum,
                             struct view key,
                             struct view value,
                             int64_t offset);

/* The log was cut at `offset`: voter sets and versions from there on are forgotten. */
void quorum_truncated(struct quorum *quorum, int64_t offset);

enum quorum_role quorum_role(const struct quorum *quorum);
bool quorum_leads(const struct quorum *quorum);
int32_t quorum_epoch(const struct quorum *quorum);
int32_t quorum_leader(const struct quorum *quorum);         /* -1: unknown. */
int64_t quorum_epoch_start(const struct quorum *quorum);    /* Of the leader: its first offset. */
int64_t quorum_high_watermark(const struct quorum *quorum); /* -1: unknown in this epoch. */
int16_t quorum_kraft_version(const struct quorum *quorum);
const struct quorum_voter *quorum_voters(const struct quorum *quorum, uint32_t *count);

/* The metadata partition's topic: its name and its id (0,1). */
#define QUORUM_TOPIC "__cluster_metadata"
extern const struct uuid quorum_topic_id;
