/* serve.h - the least that a server of frames can do: epoll, one recv, whole frames, one send.
 *
 * The floors (bench/floor/) are built on it: each does for one kind of request what no broker can
 * leave out, so that a broker's CPU can be given as a share of it. One thread, no limits, no
 * timers. What a frame is answered with leaves in one send per connection and wake-up. */
#pragma once

#include "record/sink.h"

#define SERVE_CONNECTIONS_MAX 1024u /* By descriptor. */

struct serve;

struct serve_link {
    int fd;
    struct sink in; /* Bytes that are no whole frame yet. */
    struct sink out;
    uint32_t out_at;
    struct serve_link *next; /* Among the touched. */
    bool touched;            /* Has answers of this wake-up. */
    bool wants_out;          /* The socket took less than all. */
    /* A range of a file that goes out behind `out`, or size 0. */
    int file_fd;
    int64_t file_at;
    uint32_t file_size;
};

struct serve {
    struct mem mem;
    int epoll_fd;
    int listen_fd;
    struct serve_link links[SERVE_CONNECTIONS_MAX];
    struct serve_link *touched; /* Those with answers of this wake-up. */
    /* A whole frame, without its length. */
    void (*frame)(struct serve *serve, struct serve_link *link, struct view frame);
    /* All frames of a wake-up are handled, nothing is sent yet. May be NULL. */
    void (*handled)(struct serve *serve);
    void *context;
};

/* Serve on a free port of 127.0.0.1, told as `listening on PORT`, until the program is killed. */
NORETURN void serve_run(struct serve *serve);

/* Begin an answer: its length, and the correlation id of the request. */
void serve_answer(struct serve *serve, struct serve_link *link, struct view frame, uint32_t size);

/* The sink for the answer's bytes. */
static inline struct sink *serve_out(struct serve_link *link)
{
    return &link->out;
}

/* The answer to Produce v9 of topic `topic`: no error, offset 0. */
void serve_produced(struct serve *serve,
                    struct serve_link *link,
                    struct view frame,
                    struct view topic);

/* Where in a Produce v9 frame (without length) the topic's name and the batch are. */
struct serve_produce {
    struct view topic;
    struct view batch;
};
struct serve_produce serve_read_produce(struct view frame);
