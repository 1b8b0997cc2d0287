/* coordinator_inside.h - a partition of the coordinator, for coordinator.c, coordinator_load.c
 * and group_regex.c. */
#pragma once

#include <sys/uio.h>

#include "broker/broker.h"
#include "broker/coordinator.h"
#include "broker/group_regex.h"
#include "broker/replica.h"
#include "log/log.h"
#include "net/shard.h"
#include "record/sink.h"

enum part_state { PART_INITIAL, PART_LOADING, PART_ACTIVE, PART_FAILED };

/* Reading the log, one range after the other. */
struct coordinator_loading {
    struct log_read read;
    struct log_range range;
    struct io_op op;
    struct iovec iov;
    bool began;
    bool again; /* A new load waits for the read of one that was given up. */
};

struct coordinator_part {
    struct node *node;
    uint32_t index;
    enum part_state state;
    struct replica *replica;  /* While it is led. */
    struct replica_wait wait; /* On the replica, as long. */
    struct groups *groups;    /* While LOADING or ACTIVE. */
    struct arena arena;       /* Of steps that no request asked for, and of loading. */
    struct list holds;        /* Answers, in the order of their offsets. */
    struct shard_timer hold_timer;
    struct shard_timer session_timer; /* Judged by the input horizon. */
    struct shard_timer expiry_timer;
    struct coordinator_loading load;
};

struct coordinator {
    struct node *node;
    struct coordinator_part **parts; /* By partition. */
    uint32_t part_count;
    bool started; /* The node is registered: the image is not one of the past. */
    bool stopped;
    struct sink sink; /* One batch at a time is built here. */
    struct setting_number commit_timeout_ms;
    struct group_regexes regexes;
};

/* Begin a step that no request asks for, in the partition's arena, which is reset. */
void coordinator_step_alone(struct coordinator_part *part, struct step *step);

/* Begin to load; goes on by itself. */
void coordinator_load(struct coordinator_part *part);
void coordinator_load_go(struct coordinator_part *part);

/* All is read. */
void coordinator_loaded(struct coordinator_part *part);

void coordinator_resign(struct coordinator_part *part, const char *why);
