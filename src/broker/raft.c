/* raft.c - what the controller listener answers about the metadata log: Fetch, FetchSnapshot, Vote,
 * BeginQuorumEpoch, EndQuorumEpoch. The decisions are core/quorum_answer's; here are the bytes and
 * the waiting.
 *
 * A Fetch that finds nothing waits in the controller's list until the high watermark moves, a place
 * in a file has been looked up, or its time is over, and is then decided anew. A piece of a
 * snapshot is read by a job. */
#include "broker/raft.h"

#include <errno.h>

#include "broker/controller_inside.h"
#include "broker/fetch.h"
#include "core/quorum_answer.h"
#include "gen/begin_quorum_epoch_response.h"
#include "gen/end_quorum_epoch_response.h"
#include "gen/fetch_request.h"
#include "gen/fetch_response.h"
#include "gen/fetch_snapshot_response.h"
#include "gen/vote_response.h"

#define RAFT_SNAPSHOT_PIECE_BYTES                                                                  \
    (1u << 20)                      /* One answer of FetchSnapshot carries at most this.           \
                                     */
#define RAFT_FETCH_BYTES (8u << 20) /* And one of Fetch, but at least one batch. */
#define RAFT_LOOK_MS     500        /* For a place in a file that is not in memory. */

/* A handler's response, set to defaults, if the sender may speak to the quorum; NULL: the request
 * is ended. */
static void *raft_response(struct request *request, int16_t *error)
{
    void *response = request_response(request);
    if (response == NULL) request_close(request, "no memory for an answer of the quorum");
    *error = auth_is_broker(request) ? KAFKA_NONE : KAFKA_CLUSTER_AUTHORIZATION_FAILED;
    return response;
}

static const struct quorum_event *raft_event(struct controller *c,
                                             struct controller_moment *moment,
                                             struct request *request)
{
    (void)controller_event(c, moment);
    moment->event.version = request->version;
    moment->event.listener = view_of_string(request->listener->name);
    moment->event.arena = &request->arena;
    return &moment->event;
}

/* ---- Fetch ----------------------------------------------------------------------------------- */

struct raft_fetch {
    struct list link; /* In the controller's `fetches`. */
    struct request *request;
    struct controller *c;
    struct shard_timer timeout;
    int64_t until_ms; /* When it ends. */
    bool looking;     /* It waits for a place in a file, also if it would not wait for news. */
};

/* The batches of the read, if there are any; LOG_LATER: they are being looked up. */
static int raft_read(struct controller *c, const struct quorum_read *read, struct log_range *range)
{
    struct log_read in = {.offset = read->offset,
                          .offset_end = read->offset_end,
                          .max_bytes = MIN(read->max_bytes, RAFT_FETCH_BYTES),
                          .min_one = true};
    if (read->offset >= read->offset_end) return LOG_OK;
    return log_read(c->log, &in, range);
}

/* Answer if there is something to say, or if it is the last time. False: it waits on. */
static bool raft_fetch_try(struct raft_fetch *fetch, bool last)
{
    struct request *request = fetch->request;
    struct controller *c = fetch->c;
    struct controller_moment moment;
    struct quorum_read read = {0};
    struct log_range range = {0};
    struct fetch_response *response = request_response(request);
    if (response == NULL) {
        request_close(request, "no memory for a fetch of the metadata log");
        return true;
    }
    enum quorum_answer answer =
        quorum_fetch(c->quorum, raft_event(c, &moment, request), request->message, response, &read);
    int result = answer == QUORUM_READ ? raft_read(c, &read, &range) : LOG_OK;
    bool empty = range.size_bytes == 0;
    fetch->looking = result == LOG_LATER;
    if (answer == QUORUM_READ && empty && (read.wait || fetch->looking) && !last) return false;
    if (answer == QUORUM_E_MEMORY) {
        request_close(request, "no memory for a fetch of the metadata log");
        return true;
    }
    if (!empty)
        response->responses.items[0].partitions.items[0].records = fetch_records(request, &range);
    log_range_release(&range);
    if (response->error_code != KAFKA_NONE)
        request_error(request, response->error_code);
    else if (response->responses.items[0].partitions.items[0].error_code != KAFKA_NONE)
        request_error(request, response->responses.items[0].partitions.items[0].error_code);
    request_reply(request, response);
    return true;
}

/* It waits in the controller's list, and until its time is over. */
static void raft_fetch_attach(struct raft_fetch *fetch)
{
    list_prepend(&fetch->c->fetches, &fetch->link);
    shard_timer_set(fetch->c->node->shard, &fetch->timeout, fetch->until_ms);
}

static void raft_fetch_detach(struct raft_fetch *fetch)
{
    list_remove(&fetch->link);
    shard_timer_cancel(&fetch->timeout);
}

static void raft_fetch_expired(struct shard *shard, struct shard_timer *timer)
{
    struct raft_fetch *fetch = container_of(timer, struct raft_fetch, timeout);
    (void)shard;
    raft_fetch_detach(fetch);
    (void)raft_fetch_try(fetch, true);
}

static void raft_fetch_gone(struct request *request)
{
    raft_fetch_detach(request->parked);
    request_finish(request);
}

void raft_turn(struct controller *c, bool last)
{
    c->fetches_due = false;
    list_foreach (link, &c->fetches) {
        struct raft_fetch *fetch = container_of(link, struct raft_fetch, link);
        raft_fetch_detach(fetch); /* An answer frees it. */
        if (!raft_fetch_try(fetch, last)) raft_fetch_attach(fetch);
    }
}

void raft_handle_fetch(struct shard *shard, struct request *request)
{
    struct controller *c = node_of(shard)->controller;
    const struct fetch_request *in = request->message;
    struct raft_fetch *fetch = broker_array(request, 1, sizeof(*fetch));
    int16_t error;
    struct fetch_response *refused = raft_response(request, &error);
    if (refused == NULL) return;
    if (fetch == NULL || error != KAFKA_NONE) {
        refused->error_code = error == KAFKA_NONE ? KAFKA_UNKNOWN_SERVER_ERROR : error;
        request_error(request, refused->error_code);
        request_reply(request, refused);
        return;
    }
    *fetch = (struct raft_fetch){.request = request, .c = c};
    list_init(&fetch->link);
    shard_timer_init(&fetch->timeout, raft_fetch_expired);
    if (raft_fetch_try(fetch, false)) return;
    int64_t wait_ms = fetch->looking ? MAX(in->max_wait_ms, RAFT_LOOK_MS) : in->max_wait_ms;
    request->parked = fetch;
    request->gone = raft_fetch_gone;
    request->patience_ms = wait_ms;
    fetch->until_ms = io_now_ms(shard->io) + wait_ms;
    raft_fetch_attach(fetch);
}

/* ---- FetchSnapshot --------------------------------------------------------------------------- */

struct raft_snapshot {
    struct io_op op;
    struct controller *c;
    struct request *request;
    struct fetch_snapshot_response *response;
    struct metadata_checkpoint id;
    struct metadata_slice slice;
};

static int64_t raft_snapshot_read(struct io *io, void *argument)
{
    struct raft_snapshot *read = argument;
    return metadata_checkpoint_slice(io, read->c->dir, read->id, &read->slice);
}

static void raft_snapshot_done(struct io_op *op)
{
    struct raft_snapshot *read = container_of(op, struct raft_snapshot, op);
    struct request *request = read->request;
    struct fetch_snapshot_response_partition_snapshot *out =
        &read->response->topics.items[0].partitions.items[0];
    read->c->reads--;
    if (op->result == -ENOENT)
        out->error_code = KAFKA_SNAPSHOT_NOT_FOUND;
    else if (op->result == -ERANGE)
        out->error_code = KAFKA_POSITION_OUT_OF_RANGE;
    else if (op->result != 0)
        out->error_code = KAFKA_UNKNOWN_SERVER_ERROR;
    if (out->error_code != KAFKA_NONE) request_error(request, out->error_code);
    out->size = read->slice.size;
    out->unaligned_records = view_of(read->slice.bytes, read->slice.count);
    request_reply(request, read->response);
}

void raft_handle_fetch_snapshot(struct shard *shard, struct request *request)
{
    struct controller *c = node_of(shard)->controller;
    struct controller_moment moment;
    struct quorum_read wanted;
    int16_t error;
    struct fetch_snapshot_response *response = raft_response(request, &error);
    if (response == NULL) return;
    response->error_code = error;
    enum quorum_answer answer =
        error != KAFKA_NONE ? QUORUM_ANSWERED
                            : quorum_fetch_snapshot(c->quorum, raft_event(c, &moment, request),
                                                    request->message, response, &wanted);
    if (answer == QUORUM_ANSWERED) {
        if (response->error_code != KAFKA_NONE) request_error(request, response->error_code);
        request_reply(request, response);
        return;
    }
    struct raft_snapshot *read = broker_array(request, 1, sizeof(*read));
    uint32_t room = answer == QUORUM_READ ? MIN(wanted.max_bytes, RAFT_SNAPSHOT_PIECE_BYTES) : 0;
    uint8_t *bytes = broker_array(request, MAX(room, 1u), 1);
    if (answer == QUORUM_E_MEMORY || read == NULL || bytes == NULL) {
        request_close(request, "no memory for a piece of a snapshot");
        return;
    }
    *read = (struct raft_snapshot){
        .c = c,
        .request = request,
        .response = response,
        .id = {wanted.snapshot.end, wanted.snapshot.epoch},
        .slice = { .position = wanted.position,     .bytes = bytes,          .room = room},
    };
    read->op.done = raft_snapshot_done;
    c->reads++;
    io_job(shard->io, &read->op, raft_snapshot_read, read);
}

/* ---- Vote, BeginQuorumEpoch, EndQuorumEpoch -------------------------------------------------- */

#define RAFT_HANDLER(name, answer, response_type)                                                  \
    void name(struct shard *shard, struct request *request)                                        \
    {                                                                                              \
        struct controller *c = node_of(shard)->controller;                                         \
        struct controller_moment moment;                                                           \
        int16_t error;                                                                             \
        struct response_type *response = raft_response(request, &error);                           \
        if (response == NULL) return;                                                              \
        response->error_code = error;                                                              \
        if (error == KAFKA_NONE && answer(c->quorum, raft_event(c, &moment, request),              \
                                          request->message, response) != QUORUM_ANSWERED) {        \
            request_close(request, "no memory for an answer of the quorum");                       \
            return;                                                                                \
        }                                                                                          \
        if (response->error_code != KAFKA_NONE) request_error(request, response->error_code);      \
        request_reply(request, response);                                                          \
    }

RAFT_HANDLER(raft_handle_vote, quorum_vote, vote_response)
RAFT_HANDLER(raft_handle_begin_epoch, quorum_begin_epoch, begin_quorum_epoch_response)
RAFT_HANDLER(raft_handle_end_epoch, quorum_end_epoch, end_quorum_epoch_response)
