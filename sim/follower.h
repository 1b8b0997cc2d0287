/* follower.h - a simulated node's own replica of the metadata log: Fetch and FetchSnapshot over a
 * connection of its own, as Apache Kafka's observers speak, and the image that it makes.
 *
 * A disk outlives a crash: the newest snapshot that was fetched and the batches behind it, of which
 * a crash may take the last ones. Image, high watermark and a download do not. What is read is
 * reported to the run's quorum_check; an answer that no leader may give breaks Q1 or Q8:
 *
 *   Q8  leader epochs only grow; batches come whole, in order, at the offset that was asked for; a
 *       leader never parts from what it has served, which is only what is committed */
#pragma once

#include "sim/chance.h"
#include "sim/quorum_check.h"
#include "sim/wire_link.h"

struct follower_bytes {
    uint8_t *data;
    uint32_t size, room;
};

struct follower {
    struct wire_link link;
    struct history *history;
    struct quorum_check *check;
    struct view cluster_id;
    int32_t id; /* Of its node; -1: it is none. */
    struct uuid directory;
    uint32_t piece_bytes; /* Of a snapshot, at most in one answer. */
    bool audits;          /* Its images are looked at: one follower's of all. */

    struct follower_bytes snapshot; /* On its disk, and `log` behind it. */
    struct follower_bytes log;
    int64_t start, end; /* Of the log. */
    int32_t start_epoch;
    int32_t end_epoch; /* Of the last record, 0: none. */

    struct image *image;
    int64_t applied; /* One past the last record that is in the image. */
    uint32_t applied_bytes;
    int64_t high_watermark; /* -1: not told yet. */
    int32_t leader_epoch;
    struct follower_bytes download;
    int64_t download_end; /* 0: there is none. */
    int32_t download_epoch;
    int64_t next_ms; /* Before this it asks for nothing. */
    uint32_t snapshots, refusals;
};

struct follower_seat {
    struct io *io;
    const char *host;
    uint16_t port;
    struct quorum_check *check;
    struct view cluster_id;
    int32_t id;
};

void follower_init(struct follower *follower, const struct follower_seat *seat);
void follower_free(struct follower *follower);

/* Its part of a turn, behind io_turn(). When it wants the next one at the latest. */
int64_t follower_turn(struct follower *follower);

/* The process has ended: the connection and all in memory are gone, and some of the last batches. A
 * `wiped` disk has nothing. */
void follower_crash(struct follower *follower, struct chance *chance, bool wiped);
