/* inside.h - what the files of net/ share and nobody else sees. */
#pragma once

#include "base/limits.h"
#include "base/map.h"
#include "net/connection.h"
#include "net/range.h"
#include "net/request.h"
#include "net/shard.h"

#define SHARD_HANDLERS_MAX 128 /* API keys are below. */

/* ---- output ---------------------------------------------------------------------------------- */

/* One piece of a connection's output: bytes, or a range of a file. A chunk is a piece with its own
 * memory behind it, filled by several answers; other pieces lie in the arena of their request. */
struct output_piece {
    struct list link;
    const uint8_t *bytes; /* What is left to send, if `file` is NULL. */
    struct io_file *file;
    uint64_t offset;
    uint32_t size_bytes;     /* Left to send. */
    uint32_t proved_bytes;   /* Of a file: so many are in the page cache. */
    uint32_t room_bytes;     /* Of a chunk: what it may hold behind the struct. 0: no chunk. */
    struct net_range *range; /* Released when it is sent. */
    struct request *request; /* Freed when it is sent: the last piece of an answer. */
};

/* ---- connections ----------------------------------------------------------------------------- */

struct connection {
    struct list link;   /* In the shard's list of all, or of those to bury. */
    struct list flush;  /* In the list of those with output that was not tried yet. */
    struct list resume; /* In the list of those whose staged bytes may be handled now. */
    struct list held;   /* In the list of those whose bytes hold the horizon, by `held_ms`. */
    struct shard *shard;
    struct listener *listener;
    struct net_peer *peer; /* Its address, which does not change while the connection lives. */
    struct letter letter;  /* From the listener's shard to this one, and back at its end. */
    struct io_stream *stream;
    int want;      /* What the seam was asked for: a set of enum io_ready. */
    uint8_t holds; /* Why its bytes wait: a set of enum connection_hold. */
    bool closed;
    bool turned_away;   /* Above its address's rate: closed at `muted_until_ms`. */
    bool write_blocked; /* The stream took less than all: told when it is writable. */
    uint16_t port;      /* The client's. */
    const char *doomed; /* Why it is closed when its requests are answered; NULL: it is not. */
    struct warm *warm;  /* A job brings the file piece at the head to memory; or NULL. */

    /* In. `in` is NULL when no byte is pending. Bytes [in_at, in_end) are not handled yet. */
    struct buf *in;
    uint32_t in_at;
    uint32_t in_end;
    int64_t read_ms;         /* When the last bytes were received. */
    int64_t watched_ms;      /* Since when the seam tells of what comes, if it does. */
    int64_t unread_ms;       /* Since when more may lie in the socket, unread; 0: nothing does. */
    int64_t since_ms;        /* Since when the last bytes that were received are known to wait. */
    int64_t after_ms;        /* After that they had come. */
    int64_t held_ms;         /* The same of the bytes that wait. */
    int64_t unread_muted_ms; /* How long it had been muted at `unread_ms`, */
    int64_t since_muted_ms;  /* and at `since_ms`. */
    int64_t frame_start_ms;  /* When the first byte of the frame that is not whole came. */
    int64_t active_ms;       /* When bytes moved last, in or out. */

    struct list requests; /* In process or answered out of turn, in the order of arrival. */
    uint32_t request_count;

    struct list output; /* of struct output_piece */
    uint64_t output_bytes;

    int64_t muted_until_ms;
    int64_t muted_ms; /* All mutes up to then, in sum. */
    struct shard_timer unmute;
    struct shard_timer idle;
    struct connection_software *software; /* NULL until it told. */
};
_Static_assert(sizeof(struct connection) <= 400, "with its stream it is what one costs that idles");

struct connection_software {
    uint8_t name_size;
    uint8_t version_size;
    char name[NET_SOFTWARE_BYTES];
    char version[NET_SOFTWARE_BYTES];
};

/* Connections of one client address. */
struct net_peer {
    struct map_node node;
    char host[sizeof(((struct io_address *)0)->host)];
    uint32_t count;
};

/* ---- the shard ------------------------------------------------------------------------------- */

struct shard_listener {
    struct list link;
    struct listener listener;
};

enum net_limited {
    NET_LIMITED_CLOSED, /* Connections closed for what they sent. */
    NET_LIMITED_REFUSED,
    NET_LIMITED_SLOW,
    NET_LIMITED_COUNT
};

/* Connections given to another shard that it has not read yet: the bytes that wait on them hold the
 * giver's horizon. Two batches: while one waits, what comes gathers in the other. */
struct shard_given {
    uint64_t count; /* So far. */
    struct {
        uint64_t count; /* It ends with this one; 0: there is none. */
        int64_t since_ms;
    } batches[2];
};

struct shard_state {
    struct shard_settings settings;
    struct shard_hooks hooks;
    const struct net_handler *handlers[SHARD_HANDLERS_MAX];
    struct mailbox mailbox;
    uint32_t letters;        /* Opened in this turn before their place in it. */
    struct list listeners;   /* of struct shard_listener */
    struct list drains;      /* of struct listener_drain: listeners that were taken away. */
    struct list connections; /* All that are open. */
    struct list closing;     /* Freed at the turn's end. */
    struct list flush;
    struct list resume;
    struct list held;
    struct map peers; /* of struct net_peer */
    uint32_t connection_count;
    uint32_t warm_count;            /* Jobs of warm.c. */
    uint32_t admitted;              /* Connections of this shard's listeners, on any shard. */
    uint32_t dealt[NET_SHARDS_MAX]; /* Of these, by the shard that has them. */
    bool disconnected;              /* shard_disconnect: what still comes in is closed. */
    uint32_t turned_away_count;     /* Of these. */
    uint32_t request_count;

    struct buf *receive; /* What all connections receive into first. NULL until one does. */
    uint64_t budget_used_bytes;
    struct connection *favoured; /* Its frame is received though the budget is used up. */

    enum shard_charging charging;
    struct request *working; /* Its handler is being called. */

    struct list spares; /* Ended requests with warm arenas. */
    uint32_t spare_count;
    struct list spare_chunks; /* Small ones, of struct output_piece. */
    uint32_t spare_chunk_count;

    int64_t _Atomic horizon_ms;               /* Read by the other shards. */
    int64_t all_read_ms;                      /* Up to then the turns so far have read all. */
    int64_t before_ms;                        /* When the wait of the turn before this one began. */
    int64_t asked_ms;                         /* When the other shards were last asked to turn. */
    uint32_t accepted;                        /* Connections in this turn. */
    struct shard_given given[NET_SHARDS_MAX]; /* By the shard that gets them. */
    uint64_t taken[NET_SHARDS_MAX];           /* By the shard that gave them, */
    uint64_t taken_before[NET_SHARDS_MAX];    /* up to the turn before this one, */
    uint64_t _Atomic taken_read[NET_SHARDS_MAX]; /* and read once: told to the giver. */
    bool turn_unfinished;                        /* There was more to read than one turn takes. */
    int64_t full_since_ms;                       /* When the first of `full_turns` began. */
    uint32_t full_turns; /* Turns on end that did not deliver all that was ready. */
    bool held_all;       /* shard_hold */
    int64_t held_all_since_ms;
    bool _Atomic stopped;

    struct say_limit limits[NET_LIMITED_COUNT];
};

/* ---- between the files ----------------------------------------------------------------------- */

/* shard.c: a connection is new on this shard, which has accepted it, or gives it to `owner`; it has
 * come from another one. Its bytes are read in the turn after this one. */
void shard_accepted(struct shard *shard, struct shard *owner);
void shard_taken(struct shard *shard, const struct shard *giver);

/* connection.c */
/* What has come to a listener. */
struct connection_from {
    struct io_stream *stream;
    const struct io_address *peer;
    int64_t muted_until_ms; /* Nothing is read before. */
};

/* A connection for it on the shard `owner`. 0, -ENOMEM. */
int connection_open(struct listener *listener,
                    struct shard *owner,
                    const struct connection_from *from,
                    struct connection **out);
/* A connection just opened is above its address's rate: read nothing, close it at `until_ms`; at
 * once if too many are held. */
void connection_turn_away(struct connection *connection, int64_t until_ms);
void connection_bury(struct connection *connection);    /* At the turn's end. */
void connection_resumed(struct connection *connection); /* Handle what was staged. */
void connection_watch(struct connection *connection);   /* Ask the seam for what is wanted now. */
void connection_resume(struct connection *connection);  /* Have connection_resumed called. */
void connection_mute(struct connection *connection, int64_t until_ms);
/* The client broke the protocol: nothing more is handled, what came before is answered, as Kafka
 * would have done before it read on; then it is closed. */
void connection_doom(struct connection *connection, const char *why);
void connection_set_software(struct connection *connection, struct view name, struct view version);

/* request.c: make a request of a whole frame (without its length) at `at` of `buf`, and handle it.
 */
void request_begin(struct connection *connection, struct buf *buf, struct view frame);
/* The connection goes: end what waits in it. */
void request_orphan(struct request *request);
/* Its last piece is sent, or will never be. */
void request_free(struct request *request);
/* The bytes of a range are sent. */
void request_range_done(struct net_range *range);
/* Free the spares. */
void request_free_spares(struct shard *shard);

/* output.c */
/* Room for `size_bytes` at the end of the output; counted as output at once. NULL: no memory. */
uint8_t *output_reserve(struct connection *connection, uint32_t size_bytes);
/* Append pieces; the list is empty afterwards. */
void output_append(struct connection *connection, struct list *pieces);
/* Send what can be sent now. */
void output_flush(struct connection *connection);
/* Release everything unsent. */
void output_drop(struct connection *connection);
void output_release(struct output_piece *piece);
void output_free_spares(struct shard *shard);
/* Have it flushed at the turn's end. */
void output_later(struct connection *connection);
/* Release the pieces of a list. */
void output_release_all(struct shard *shard, struct list *pieces);

/* warm.c */
/* Read the file piece at the head into the page cache, in the work lane; then it is flushed. False:
 * no memory. */
MUST_USE bool warm_start(struct connection *connection, struct output_piece *piece);
/* The connection goes: its pieces are released when the job has ended. */
void warm_orphan(struct warm *warm, struct list *pieces);

/* api_versions.c */
extern const struct net_handler net_api_versions;
void net_api_versions_unsupported(struct request *request);

/* listener.c */
int listener_open(struct shard *shard,
                  const struct listener_options *options,
                  struct listener **out);
void listener_unlisten(struct listener *listener);
/* shard_listener_end(); shard_close(): forget the ends that are not over. */
void listener_end(struct listener *listener);
void listener_drains_free(struct shard *shard);
struct net_peer *listener_peer(struct shard *shard, const char *host);
void listener_peer_drop(struct shard *shard, struct net_peer *peer);

/* shard.c */
/* Open what other shards have posted. */
void shard_open_letters(struct shard *shard);
void shard_budget_charge(struct shard *shard, uint64_t bytes);
void shard_budget_release(struct shard *shard, uint64_t bytes);
