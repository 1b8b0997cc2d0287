/* run.h - what a row does: it talks to the server and says what it expects.
 *
 * A run goes inert at its first failure (as readers do): every call after it does nothing, answers
 * zeros and does not wait, so a row reads as a story without branches. */
#pragma once

#include "check/peer.h"
#include "gen/errors.h"
#include "wire/wire.h"

#define RUN_PEERS_MAX 40u

struct check_run {
    const struct check_row *row;
    const struct check_run *world; /* Of the suite; NULL in the suite's own run. */
    struct check_result *result;
    uint32_t index;  /* Of the row among those that are run. */
    int16_t version; /* Of the suite's API, for a row that runs version by version. */
    bool over;       /* Failed or skipped: inert. */
    char name[128];  /* Unique: a group, a client, a topic may be called so. */
    struct check_target target;
    char host[256], port[8]; /* Behind `target` once a coordinator was found. */
    int64_t start_ms;
    struct mem mem;
    struct arena arena; /* Answers and their frames, until the end of the run. */
    struct check_peer peers[RUN_PEERS_MAX];
    uint32_t peer_count;
    /* Of the suite's own run: what the server advertises. */
    struct {
        int16_t min, max;
    } served[128];                 /* max -1: not at all. */
    struct check_restart *restart; /* Of the rows that have one. */
    bool restarted;                /* It has been waited for. */
    int32_t node_id;               /* Of the coordinator that was found. */
    void *shared;                  /* What the suite's prepare made for all rows, in its arena. */
};

/* ---- expectations -----------------------------------------------------------------------------
 */

/* What the row is about: both are told, and the row fails if they differ. `what` names the step. */
void run_expect(struct check_run *run, const char *what, enum kafka_error expected, int16_t got);
void run_expect_number(struct check_run *run, const char *what, int64_t expected, int64_t got);
void run_expect_text(struct check_run *run,
                     const char *what,
                     const char *expected,
                     struct view got);

/* Between `min` and `max`, both included: how long something took, in milliseconds. */
struct run_span {
    int64_t min, max;
};
void run_expect_within(struct check_run *run, const char *what, struct run_span span, int64_t got);

/* The way to what the row is about: told only if it is not so. */
void run_need(struct check_run *run, const char *what, enum kafka_error expected, int16_t got);
void run_need_true(struct check_run *run, const char *what, bool condition);

/* End the row: it failed in a way that is no comparison; it cannot be run here. */
void run_fail(struct check_run *run, const char *format, ...) PRINTF(2, 3);
void run_skip(struct check_run *run, const char *format, ...) PRINTF(2, 3);

/* ---- time -------------------------------------------------------------------------------------
 */

/* Sleep until this moment of peer_now_ms's clock; for so long. */
void run_until(struct check_run *run, int64_t at_ms);
void run_wait(struct check_run *run, int64_t ms);

/* ---- talking ----------------------------------------------------------------------------------
 */

/* A connection of the run's, closed at its end; never NULL. */
struct check_peer *run_peer(struct check_run *run);

/* The same, and opened again when there was nobody, for as long as this. */
struct check_peer *run_peer_patiently(struct check_run *run, int64_t limit_ms);

/* The version nearest to `wanted` that both sides know. A row whose API the server does not have is
 * skipped. */
int16_t run_version(struct check_run *run, const struct wire_message *request, int16_t wanted);
bool run_serves(const struct check_run *run, const struct wire_message *request, int16_t version);

/* An instance of the message with its defaults, in the run's arena; never NULL. */
void *run_new(struct check_run *run, const struct wire_message *message);

/* A formatted text in the run's arena; what is longer than 255 bytes is cut. */
const char *run_text(struct check_run *run, const char *format, ...) PRINTF(2, 3);

/* Send a request; receive the answer to the newest request of this peer and decode it. What is
 * returned is the message's struct, in the arena, with defaults if the run is over. */
void run_send(struct check_run *run,
              struct check_peer *peer,
              const struct wire_message *request,
              int16_t version,
              const void *body);
const void *run_receive(struct check_run *run,
                        struct check_peer *peer,
                        const struct wire_message *request,
                        int16_t version,
                        int64_t limit_ms);

/* Both, with the usual limit. */
const void *run_call(struct check_run *run,
                     struct check_peer *peer,
                     const struct wire_message *request,
                     int16_t version,
                     const void *body);

/* Whether an answer has begun to come, after waiting for so long. */
bool run_answered(struct check_run *run, struct check_peer *peer, int64_t ms);

/* Whether the server closes the connection within so long, and answers nothing before it does. */
bool run_hung_up(struct check_run *run, struct check_peer *peer, int64_t ms);

/* The usual limit of one answer. */
#define RUN_CALL_MS 20000

/* Turn the run's target to the coordinator of the group that has the run's name, and wait until it
 * has loaded what it knows of such groups. */
void run_find_group(struct check_run *run);

/* Delete the topic that has the run's name, and wait for the answer whatever it is. */
void run_delete_topic(struct check_run *run, struct check_peer *peer);

/* The number in this configuration of the coordinator's broker; the row is skipped if it does not
 * tell. */
int64_t run_setting(struct check_run *run, const char *name);

/* ---- for suite.c ------------------------------------------------------------------------------
 */

void run_begin(struct check_run *run, const struct check_target *target);
void run_end(struct check_run *run);

/* Ask what the server advertises; the run fails if it does not say so. */
void run_ask_versions(struct check_run *run);
