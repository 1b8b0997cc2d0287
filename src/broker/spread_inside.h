/* spread_inside.h - shared by spread.c and spread_split.c. */
#pragma once

#include "broker/broker.h"
#include "net/errand.h"

enum spread_place {
    PLACE_CONTROL, /* The first shard's: what the control part answers. */
    PLACE_GROUP,   /* Of one group. */
    PLACE_KEYS,    /* Of several groups: split by group. */
    PLACE_TOPICS,  /* Of partitions: split by partition. */
    PLACE_SESSION, /* Fetch: of the shard that has the session; it asks the others (fetch.c). */
    PLACE_ALL,     /* Every shard has a part of the answer. */
};

/* An array in a struct, and in each of its elements the key: a name, an index. */
struct spread_array {
    uint32_t at;         /* Offset of the array. */
    uint32_t size_bytes; /* Of an element. */
    uint32_t key;        /* Offset in the element. */
};

struct spread;

struct spread_rule {
    int16_t api_key;
    uint8_t place;                      /* enum spread_place */
    int16_t keys_since;                 /* KEYS: before this version it is of one group. */
    int16_t by_id_since;                /* TOPICS: topics are named by id from this version on. */
    uint32_t group;                     /* GROUP: offset of the group's id. */
    uint32_t topic_id;                  /* TOPICS: offset in the topic. */
    struct spread_array request, parts; /* Keys or topics; a topic's partitions. */
    struct spread_array response, answers; /* In the order of the request. */
    void *(*join)(struct spread *spread);  /* ALL */
};

/* A request that is out at other shards. In the request's arena. */
struct spread {
    struct request *request;
    struct node *node;
    const struct spread_rule *rule;
    struct errand **errands; /* By shard; NULL: nothing for it. */
    uint32_t out;            /* Not home yet. */
    bool gone;
    uint8_t *owners; /* By item of the request, in its order. */
    /* Make the response from those of the errands; NULL: no memory, or they do not fit. */
    void *(*join)(struct spread *spread);
};

struct spread *spread_new(struct request *request, const struct spread_rule *rule);
MUST_USE bool spread_add(struct spread *spread, uint32_t shard, const void *message);
void spread_send(struct spread *spread);
void spread_refuse(struct spread *spread, struct request *request); /* No memory; NULL is fine. */
void spread_whole(struct request *request, uint32_t owner);

/* spread_split.c */
void spread_keys(struct request *request, const struct spread_rule *rule);
void spread_topics(struct request *request, const struct spread_rule *rule);
void *spread_join_list(struct spread *spread);  /* ListGroups */
void *spread_join_moves(struct spread *spread); /* AlterReplicaLogDirs */
void *spread_join_dirs(struct spread *spread);  /* DescribeLogDirs */
