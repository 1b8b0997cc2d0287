/* quorum_answer.h - what a node of the quorum answers to others: Fetch of the metadata log and of
 * its snapshots, Vote, BeginQuorumEpoch, EndQuorumEpoch, DescribeQuorum; AddRaftVoter,
 * RemoveRaftVoter, UpdateRaftVoter.
 *
 * Each call fills the response, which the caller has set to defaults, in the event's arena. Every
 * partition answer names the leader and the answer its endpoint on the listener that was asked:
 * Apache Kafka's nodes end where one is missing.
 *
 * A quorum of one is not unseated by a message: a vote for a higher epoch or a leader that nobody
 * elected is refused, and the epoch stays (docs/decisions).
 *
 * Pure. Thread: the node's control part. */
#pragma once

#include "core/quorum.h"

struct fetch_request;
struct fetch_response;
struct fetch_snapshot_request;
struct fetch_snapshot_response;
struct vote_request;
struct vote_response;
struct begin_quorum_epoch_request;
struct begin_quorum_epoch_response;
struct end_quorum_epoch_request;
struct end_quorum_epoch_response;
struct describe_quorum_request;
struct describe_quorum_response;
struct add_raft_voter_request;
struct add_raft_voter_response;
struct remove_raft_voter_request;
struct remove_raft_voter_response;
struct update_raft_voter_request;
struct update_raft_voter_response;

enum quorum_answer {
    QUORUM_ANSWERED, /* The response is complete. */
    QUORUM_READ,     /* Valid so far: `read` says which bytes go into it. */
    QUORUM_E_MEMORY  /* The arena is exhausted. */
};

/* Bytes of the log or of a snapshot that an answer is to carry. */
struct quorum_read {
    int64_t offset;     /* Log: from here */
    int64_t offset_end; /* up to here; the same: there is nothing to read yet. */
    int64_t position;   /* Snapshot: byte at which to begin. */
    struct {
        int64_t end;
        int32_t epoch;
    } snapshot;
    uint32_t max_bytes; /* At least one batch of the log is given all the same. */
    bool wait; /* Log: without bytes the answer waits for the high watermark to move, or the time
                  that the request gives. */
};

/* Fetch 4-18. With QUORUM_READ the caller puts the batches of [offset, offset_end) into
 * `responses.items[0].partitions.items[0].records`. An observer is served what is committed: what a
 * crash may take back from this node, nobody else has. */
MUST_USE enum quorum_answer quorum_fetch(struct quorum *quorum,
                                         const struct quorum_event *event,
                                         const struct fetch_request *in,
                                         struct fetch_response *out,
                                         struct quorum_read *read);

/* FetchSnapshot 0-1. With QUORUM_READ the caller opens that snapshot and sets size and bytes of
 * `topics.items[0].partitions.items[0]`, or SNAPSHOT_NOT_FOUND, or POSITION_OUT_OF_RANGE. */
MUST_USE enum quorum_answer quorum_fetch_snapshot(struct quorum *quorum,
                                                  const struct quorum_event *event,
                                                  const struct fetch_snapshot_request *in,
                                                  struct fetch_snapshot_response *out,
                                                  struct quorum_read *read);

/* Vote 0-2, BeginQuorumEpoch 0-1, EndQuorumEpoch 0-1. QUORUM_ANSWERED or QUORUM_E_MEMORY. */
MUST_USE enum quorum_answer quorum_vote(struct quorum *quorum,
                                        const struct quorum_event *event,
                                        const struct vote_request *in,
                                        struct vote_response *out);
MUST_USE enum quorum_answer quorum_begin_epoch(struct quorum *quorum,
                                               const struct quorum_event *event,
                                               const struct begin_quorum_epoch_request *in,
                                               struct begin_quorum_epoch_response *out);
MUST_USE enum quorum_answer quorum_end_epoch(struct quorum *quorum,
                                             const struct quorum_event *event,
                                             const struct end_quorum_epoch_request *in,
                                             struct end_quorum_epoch_response *out);

/* DescribeQuorum 0-2. QUORUM_ANSWERED or QUORUM_E_MEMORY. */
MUST_USE enum quorum_answer quorum_describe(struct quorum *quorum,
                                            const struct quorum_event *event,
                                            const struct describe_quorum_request *in,
                                            struct describe_quorum_response *out);

/* AddRaftVoter 0-1: what is wrong with it; a voter that could be added gets REQUEST_TIMED_OUT, as
 * one that cannot be reached. RemoveRaftVoter 0: the last voter is VOTER_NOT_FOUND. UpdateRaftVoter
 * 0: this node's own entry is INVALID_REQUEST, since it follows its settings. */
void quorum_add_voter(struct quorum *quorum,
                      const struct add_raft_voter_request *in,
                      struct add_raft_voter_response *out);
void quorum_remove_voter(struct quorum *quorum,
                         const struct remove_raft_voter_request *in,
                         struct remove_raft_voter_response *out);
void quorum_update_voter(struct quorum *quorum,
                         const struct quorum_event *event,
                         const struct update_raft_voter_request *in,
                         struct update_raft_voter_response *out);
