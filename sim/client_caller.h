/* client_caller.h - a client that asks what a test wants, one request at a time.
 *
 * Requests and answers are Kafka's JSON with ' for ", so that they can stand in a test as they are.
 * A field that is left out of a request has its default. */
#pragma once

#include "sim/client.h"

#define CALLER_ANSWER_MAX 8192u

struct client_caller {
    struct client client;
    const struct wire_api *api; /* Of the last request. */
    int16_t version;
    const void *message;  /* To be sent; NULL: it is. */
    void *response;       /* Its answer; NULL: not there yet. Stays until the next request. */
    struct arena request; /* What the request holds. */
    char answer[CALLER_ANSWER_MAX];
};

struct client_caller *client_caller_new(const struct client_seat *seat);

/* Ask: "Heartbeat 4" is the API and its version. The answer is in `response` some turns later. JSON
 * that is no such request is a violation, as is a connection that breaks. */
void client_caller_ask(struct client_caller *caller, const char *what, const char *json);

/* The answer that is there, as JSON on one line; stays until the next call. */
const char *client_caller_answer(struct client_caller *caller);
