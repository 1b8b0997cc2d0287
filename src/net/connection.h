/* connection.h - one byte stream with a client: frames in, answers out, in order.
 *
 * In.  Bytes are read into the shard's common receive buffer and cut into frames. A frame that is
 *      there as a whole gets (or shares) a counted buffer and becomes a request. Of a frame that is
 *      not whole, the bytes that came are kept in a buffer of the connection whose size follows
 * what has arrived, never what the length says; an idle connection holds no buffer. Out. A list of
 * pieces: chunks of encoded bytes and ranges of files; flushed once a turn, through the filter
 * (none, or TLS). Nothing else writes to the stream.
 *
 * Order. One request is in process, the following ones stay encoded (staged); but Produce requests
 *      that follow one another are all handed on, as Heartbeats are where no quota counts them.
 *      Answers leave in the order of arrival.
 * Not read, and what was read is not handled, while one of these holds (enum connection_hold):
 *      a request is in process, the output is above NET_OUTPUT_HIGH_BYTES, it is throttled, the
 *      shard's receive budget is used up, or the shard is told to hold (unsynced bytes at their
 *      cap). A held connection with bytes keeps the shard's input horizon where they arrived.
 * Closed when: a length is negative or above socket.request.max.bytes; a header or body does not
 *      parse, an API or version is not served here; nothing moved for connections.max.idle.ms; a
 *      frame takes longer than that plus a second per NET_SLOWEST_BYTES; the peer is gone.
 *
 * Thread: its shard's. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "base/view.h"
#include "io/io.h"
#include "net/listener.h"

struct request;
struct shard;
struct connection;

/* Why a connection's bytes wait. A set. */
enum connection_hold {
    CONNECTION_IN_PROCESS = 1,
    CONNECTION_OUTPUT_FULL = 2,
    CONNECTION_THROTTLED = 4,
    CONNECTION_NO_BUDGET = 8,
    CONNECTION_SHARD_HELD = 16,
};

/* The address by which the client reached us. It is asked for and not kept: a connection that does
 * nothing should cost little, and few requests want to know. */
void connection_local(struct connection *connection, struct io_address *out);

/* What the client said of itself in ApiVersions ("apache-kafka-java", "4.4.0"), or empty. */
struct view connection_software(const struct connection *connection);
struct view connection_software_version(const struct connection *connection);

/* Close it: what is encoded but not sent is lost, parked requests are told (request.gone). `why` is
 * a literal for the counted log line; NULL: an ordinary end, no line. */
void connection_close(struct connection *connection, const char *why);
