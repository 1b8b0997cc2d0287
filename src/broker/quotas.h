/* quotas.h - client quotas at work: limits from the image, use from requests and connections.
 *
 * net/ asks for every request that ends (quotas_charge), admission.c for every connection
 * (quotas_admit); Fetch and the controller's calls ask by themselves, because what they answer
 * depends on it. Limits are per broker, as in Kafka. Thread: the shard's. */
#pragma once

#include "core/image.h"
#include "net/request.h"
#include "text/out.h"

struct node;
struct controller_call;

/* No limits yet. 0 or -ENOMEM. */
MUST_USE int quotas_open(struct node *node);
void quotas_close(struct node *node);

/* A quota in the image has changed. */
void quotas_follow(struct node *node, const struct image_change *change);

/* shard_hooks.charge: Produce bytes and processor time. The larger wait. */
int64_t quotas_charge(struct shard *shard, struct request *request, bool answered);

/* A connection from this address: how long to hold it before it is closed; 0: it may come in. */
int64_t quotas_admit(struct node *node, const struct io_address *peer);

/* The most bytes that a fetch of this client may answer with: what its limit allows in one window,
 * but no more than `max_bytes`. */
uint32_t quotas_fetch_max(struct node *node, const struct request *request, uint32_t max_bytes);

/* Charge a consumer's fetch, whose answer has so many bytes, and its processor time. True: it has
 * to wait (the request knows how long) and gets an answer without records; the bytes do not count
 * then. */
MUST_USE bool quotas_fetch(struct node *node, struct request *request, uint64_t bytes);

/* step_caller.charge of a client's call of the controller; the context is the call. */
bool quotas_mutate(void *call, uint32_t partitions);

/* Charge changes that nobody is refused: topics made on their first use. */
void quotas_mutated(struct node *node,
                    struct view principal,
                    struct view client_id,
                    uint32_t partitions);

/* Lines of Prometheus text, for the clients that used quotas last; `first`: what the metric is,
 * before them. */
void quotas_print(struct shard *shard, struct out *out, bool first);
