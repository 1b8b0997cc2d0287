/* quota.h - client quotas: who is limited to what, how much was used, how long to wait for it.
 *
 * A limit belongs to a kind and an entity: a user, a client id, both, or an address; a name may be
 * the default of its type. For each kind and client the first limit of the table at the head of
 * quota.c holds; with it goes a *bucket*, shared by all whom that row puts together, in which use
 * is recorded. Three kinds of bytes and time are sampled rates (KIP-13, KIP-124), as are
 * connections (KIP-612); changes of topics are a bucket of tokens (KIP-599).
 *
 * Nothing here waits: the answer is a number of milliseconds, to be told to the client and to be
 * kept. Without any limit of a kind nothing is recorded for it.
 *
 * Pure. Memory: the struct mem of quota_new(); at most QUOTA_BUCKETS_MAX buckets, the longest
 * unused go first, and any after an hour without use. Thread: the owner's. */
#pragma once

#include "base/list.h"
#include "base/map.h"

enum quota_kind {
    QUOTA_PRODUCE,    /* producer_byte_rate: bytes of Produce requests. */
    QUOTA_FETCH,      /* consumer_byte_rate: bytes of answers to Fetch. */
    QUOTA_REQUEST,    /* request_percentage: of one thread's time. */
    QUOTA_MUTATION,   /* controller_mutation_rate: partitions created and deleted. */
    QUOTA_CONNECTION, /* connection_creation_rate: of an address. */
    QUOTA_KINDS
};

enum quota_number { QUOTA_LONG, QUOTA_INT, QUOTA_DOUBLE };

/* A limit's name, as ClientQuotaRecord has it. */
struct quota_key {
    const char *name;
    uint8_t kind;   /* enum quota_kind */
    uint8_t number; /* enum quota_number: what values it takes. */
    bool ip;        /* Of addresses; else of users and client ids. */
};

/* The key with this name, or NULL. */
const struct quota_key *quota_key(struct view name);

/* One part of an entity. */
struct quota_part {
    bool given;
    struct view name; /* Null: the default of the type. */
};

/* An address stands in `user`, alone. At least one part is given. */
struct quota_entity {
    struct quota_part user;
    struct quota_part client;
};

/* Whose use it is. An address stands in `user`. A null client id counts as the empty one. */
struct quota_client {
    struct view user;
    struct view client_id;
};

/* Use is averaged over `count` samples of `sample_ms` each. */
struct quota_window {
    uint32_t count; /* 1 .. QUOTA_SAMPLES_MAX */
    int64_t sample_ms;
};

struct quota_options {
    struct quota_window clients;    /* quota.window.* */
    struct quota_window controller; /* controller.quota.window.* */
    uint64_t seed;
};

struct quota;

/* NULL: no memory. */
MUST_USE struct quota *quota_new(struct mem *mem, const struct quota_options *options);
struct quota *quota_free(struct quota *quota); /* Returns NULL. Of NULL, nothing happens. */

/* Set or take away an entity's limit; at once, for buckets that are in use too. `limit` > 0.
 * False: no memory, or a name that no request can have; nothing has changed. */
MUST_USE bool quota_set(struct quota *quota,
                        enum quota_kind kind,
                        const struct quota_entity *entity,
                        double limit);
void quota_unset(struct quota *quota, enum quota_kind kind, const struct quota_entity *entity);

/* Is there any limit of this kind? O(1). */
bool quota_any(const struct quota *quota, enum quota_kind kind);

/* The limit that holds for the client, a second; infinite: none. */
double quota_limit(struct quota *quota, enum quota_kind kind, const struct quota_client *client);

/* Something that was used, and when. */
struct quota_use {
    enum quota_kind kind;
    double amount;
    int64_t now_ms;
};

/* Record use: how long the client is to wait, 0 if it is within its limit. Times of requests and
 * connections are at most one sample. With a negative amount, use is taken back. O(samples). */
int64_t quota_charge(struct quota *quota,
                     const struct quota_client *client,
                     const struct quota_use *use);

/* The same for changes of topics, amount in partitions. *allowed is false if `strict` and earlier
 * changes have used up more than there was: nothing is charged then. The time to wait is until the
 * bucket is not in debt; a strict change that is allowed never waits. */
int64_t quota_mutate(struct quota *quota,
                     const struct quota_client *client,
                     const struct quota_use *use,
                     bool strict,
                     bool *allowed);

/* What is known of one bucket. */
struct quota_told {
    enum quota_kind kind;
    struct view user;      /* An address, of QUOTA_CONNECTION. Null: shared by all users, */
    struct view client_id; /* or by all client ids. */
    double rate;           /* A second; of QUOTA_MUTATION: the tokens that are left. */
    int64_t waited_ms;     /* What its clients were told to wait so far. */
};

/* The name of a kind's limit, as Kafka has it. */
const char *quota_name(enum quota_kind kind);

/* Tell of at most `max` buckets, the last used first. Views live until the next call. */
void quota_each(struct quota *quota,
                int64_t now_ms,
                uint32_t max,
                void (*visit)(void *context, const struct quota_told *told),
                void *context);

/* Buckets in use now. */
uint32_t quota_bucket_count(const struct quota *quota);
