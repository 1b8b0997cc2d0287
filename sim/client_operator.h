/* client_operator.h - an operator of a cluster: makes and changes topics while brokers come and go,
 * and follows the metadata log, as the one whose images are checked.
 *
 * At an audit it asks for the cluster and the quorum and holds the answers against its image. */
#pragma once

#include "sim/client.h"
#include "sim/follower.h"

struct client_operator {
    struct client client;
    struct follower follower;
    uint32_t broker_count; /* Scripted ones have the ids from `broker_first` on. */
    int32_t broker_first;
    uint32_t topics_named;
    bool cluster_told, quorum_told; /* In this audit. */
    bool audit;
    int32_t unregistering; /* The broker that was asked for last. */
    int64_t asked_offset;  /* What it had read when it asked for the quorum. */
    int32_t asked_epoch;
    uint64_t orders, granted; /* Requests with an answer, and those that were done. */
};

struct client_operator *client_operator_new(const struct client_seat *seat,
                                            struct quorum_check *check,
                                            struct view cluster_id);

/* From now on compare what the controller answers. */
void client_operator_audits(struct client_operator *operator);
