/* client.h - a small Kafka client for benchmarks: one blocking connection, one request at a time.
 *
 * Environment faults and broken answers end the program with a line that says what was wrong: a
 * benchmark that goes on after one measures nothing. Thread: the one that made it. */
#pragma once

#include "base/arena.h"
#include "record/sink.h"
#include "wire/wire.h"

struct client {
    int fd;
    int32_t correlation;
    struct sink frame;   /* The request as sent, length first. */
    struct sink answer;  /* The answer's frame, without its length. */
    struct arena decode; /* What the last answer's struct holds. */
    int16_t asked_api, asked_version;
    /* Called again and again until the answer begins to arrive; NULL: wait in recv. For a server
     * that lives in this very thread. */
    void (*turn)(void *context);
    void *context;
};

/* Say what is wrong and end the program. */
NORETURN void client_die(const char *format, ...) PRINTF(1, 2);

/* A TCP connection to a numeric IPv4 address, with TCP_NODELAY. Ends the program on failure. */
int client_socket(const char *host, uint16_t port);

/* Return when somebody listens there. */
void client_wait(const char *host, uint16_t port);

/* Connect. `mem` is borrowed for the client's life. */
void client_open(struct client *client, struct mem *mem, const char *host, uint16_t port);
void client_close(struct client *client);

/* The request of `message`, the struct of that API's request, as a frame behind what `out` holds
 * already: length, header, body. Returns where in `out` it begins. */
uint32_t client_encode(struct sink *out,
                       int16_t api_key,
                       int16_t version,
                       int32_t correlation,
                       const void *message);

/* A millisecond, before something is asked for again. */
void client_pause(void);

/* Send client->frame and take the answer into client->answer. */
void client_exchange_frame(struct client *client);

/* The two halves of client_call: encode and send; wait and decode. */
void client_ask(struct client *client, int16_t api_key, int16_t version, const void *message);
void *client_answer(struct client *client);

/* Encode, send, wait, decode. Returns the response's struct; it lives until the next call. */
void *client_call(struct client *client, int16_t api_key, int16_t version, const void *message);
