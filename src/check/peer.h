/* peer.h - one connection to the server under test: frames out, frames in, with a deadline.
 *
 * Blocking with poll(2); a peer belongs to the thread of its row. */
#pragma once

#include "base/arena.h"
#include "check/check.h"

struct check_peer {
    int fd;              /* -1: not open. */
    int32_t correlation; /* Of the newest request. */
};

enum peer_result {
    PEER_OK,
    PEER_UNREACHABLE, /* Nobody listens there. */
    PEER_CLOSED,      /* The server closed the connection, or it broke. */
    PEER_SILENT,      /* The deadline passed. */
    PEER_STRANGE,     /* Bytes came that are not the frame that was waited for. */
};

/* The clock of all rows: milliseconds, monotonic. */
int64_t peer_now_ms(void);

/* "closed the connection" and the like: what the server did. */
const char *peer_words(enum peer_result result);

MUST_USE enum peer_result peer_open(struct check_peer *peer, const struct check_target *target);
void peer_close(struct check_peer *peer);

/* Send a whole frame. */
MUST_USE enum peer_result peer_send(struct check_peer *peer, struct view frame);

/* The next frame, its size included, in the arena. PEER_SILENT leaves the connection usable if not
 * one byte of the frame had come. */
MUST_USE enum peer_result peer_receive(struct check_peer *peer,
                                       struct arena *arena,
                                       int64_t deadline_ms,
                                       struct view *frame);

/* Whether bytes (or the connection's end) have come, waited for until the deadline. */
bool peer_readable(struct check_peer *peer, int64_t deadline_ms);

/* Of what peer_readable found: it is the connection's end. */
bool peer_ended(const struct check_peer *peer);
