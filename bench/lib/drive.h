/* drive.h - the load: connections that send one frame again and again, and take the answers.
 *
 * Closed loop: each connection keeps `depth` requests on their way. Open loop (`rate` > 0):
 * requests leave at their scheduled times whatever the answers do, and a latency counts from the
 * scheduled time, so a server that stalls is charged for all whom it kept waiting.
 *
 * Cheap by design: the frame is encoded once and only its correlation id is stored anew (a fetch's
 * offset too); all that may be sent leaves in one send; of an answer the first HEAD bytes are
 * looked at and the rest is dropped in the kernel. One thread. Faults end the program (client.h).
 */
#pragma once

#include "bench/lib/histogram.h"
#include "record/sink.h"

#define DRIVE_HEAD_BYTES      256u
#define DRIVE_DEPTH_MAX       4096u
#define DRIVE_CONNECTIONS_MAX 16384u

struct drive;

/* One connection. */
struct drive_link {
    struct drive *drive;
    int fd;
    uint32_t number;
    void *context;     /* The options'. */
    struct view frame; /* What it sends. */
    int64_t *sent_ns;  /* A ring of DRIVE_DEPTH_MAX: when each request on its way was due. */
    uint64_t sent;
    uint64_t answered;
    struct sink out; /* Frames that are to leave; sent up to out_at. */
    uint32_t out_at;
    uint8_t head[DRIVE_HEAD_BYTES]; /* Of the answer that is coming. */
    uint32_t head_size;
    uint32_t answer_size; /* 0: its length is not known yet. */
    uint32_t answer_seen;
    bool wants_out;
    bool follower;                   /* See drive_options. */
    const struct drive_link *leader; /* The first connection. */
    uint64_t offset;                 /* The owner's: a fetch's place. */
};

struct drive_options {
    const char *host;
    uint16_t port;
    uint32_t connections;
    uint32_t depth;
    double rate;       /* Requests per second over all connections; 0: closed loop. */
    double seconds;    /* Measured, after */
    double warmup_s;   /* so much time and */
    uint64_t warm;     /* so many answers that are not, DRIVE_WARM_S at most for these. */
    uint64_t requests; /* End after so many; 0: by time. */
    /* One connection more, the last, that keeps one request on its way and is not counted: a
     * consumer that waits for what the others produce. */
    bool follower;
    struct mem *mem;
    /* The frame of a connection; it lives as long as the drive. */
    struct view (*frame)(void *context, uint32_t number);
    /* Before a frame leaves: patch it (`at` is its first byte). May be NULL. */
    void (*patch)(struct drive_link *link, uint8_t *at);
    /* An answer: its head and its size. False: an error, which is counted. */
    bool (*answer)(struct drive_link *link, struct view head, uint32_t size);
    void *context;
};

#define DRIVE_WARM_S 20

struct drive_result {
    uint64_t requests; /* Answered in the measured time, */
    uint64_t errors;
    uint64_t answer_bytes;
    uint64_t all;  /* and with warm-up and the end. */
    uint64_t warm; /* Answered before the measured time. */
    double seconds;
    double cpu_s; /* Of this program. */
    struct histogram latency;
};

/* Run the load. `started` is called when the measured time begins and when it has ended. */
void drive_run(const struct drive_options *options,
               void (*mark)(void *context, bool begins),
               struct drive_result *result);

/* Now, monotonic. */
int64_t drive_now_ns(void);
