/* raft.h - handlers of the controller listener that serve the metadata log and the quorum. */
#pragma once

#include "net/shard.h"

void raft_handle_fetch(struct shard *shard, struct request *request);
void raft_handle_fetch_snapshot(struct shard *shard, struct request *request);
void raft_handle_vote(struct shard *shard, struct request *request);
void raft_handle_begin_epoch(struct shard *shard, struct request *request);
void raft_handle_end_epoch(struct shard *shard, struct request *request);
