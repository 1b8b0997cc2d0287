/* limits.h - every cap of the program that is not a Kafka setting, with its reason.
 *
 * Sizes in bytes, counts in pieces. A cap that rests on another is tied to it below. */
#pragma once

#include "base/base.h"

/* Arenas: one chunk serves a small request, of which thousands may wait for a commit at once; what
 * is kept over a reset serves the usual large one. */
#define ARENA_CHUNK_BYTES 1024u
#define ARENA_KEEP_BYTES  (64u * 1024u)

/* A decoded request may cost at most this many times its bytes (array elements are wider in
 * memory than on the wire), and the floor more so that tiny requests never fail. */
#define WIRE_MEMORY_FACTOR 16u
#define WIRE_MEMORY_FLOOR  4096u

/* What Kafka 4.4's readers refuse beyond: elements of one array, tagged fields of one struct. */
#define WIRE_ARRAY_MAX 1000000
#define WIRE_TAGS_MAX  10000u

/* A topic's name: Kafka's own limit, so that "topic-partition.uuid-delete" fits a file name. */
#define TOPIC_NAME_MAX 249u

/* What a produce waits at least for the disk of its own node, however short its timeout: that is
 * for other replicas, and Kafka's own write takes none of it. */
#define PRODUCE_PATIENCE_MIN_MS 1000

/* Records of one step of a core machine: Kafka's limit for one atomic batch of the controller. */
#define STEP_RECORDS_MAX 10000u

/* Objects of the metadata image (a partition, a broker, a topic, ...) that a snapshot looks at in
 * one turn: a tenth of a millisecond or two. */
#define SNAPSHOT_SLICE_OBJECTS 1000u

/* Heartbeats of brokers, registered or not, that the controller remembers for one session timeout:
 * far above the brokers of any cluster, so that wrong ids and epochs cannot fill memory. */
#define CLUSTER_CONTACTS_MAX 100000u

/* Nodes that follow the metadata log, remembered for DescribeQuorum, and how long without a fetch,
 * as in Kafka: far above the brokers of any cluster. */
#define QUORUM_OBSERVERS_MAX 10000u
#define QUORUM_OBSERVER_MS   300000

/* Heartbeats remembered for each broker, to explain it: about sixteen seconds of an ordinary one.
 */
#define CLUSTER_BEATS_KEPT 8u

/* Elections of one periodic pass, as in Kafka. */
#define CLUSTER_ELECTIONS_MAX 1000u

/* Listeners and features of one registered node: far above what any build has. Records above it
 * are refused when a node registers. */
#define IMAGE_ENDPOINTS_MAX 64u
#define IMAGE_FEATURES_MAX  64u

/* Partitions of one topic: a slot each in memory, so a damaged record cannot ask for gigabytes. */
#define IMAGE_PARTITIONS_MAX (1024u * 1024u)

/* Members' deadlines that one partition's coordinator acts on in one turn: each may remove a member
 * and log a generation. */
#define COORDINATOR_EXPIRIES_PER_TURN 250u

/* Protocols that one member of a group may offer: clients offer one to five; each is compared with
 * all of the others. */
#define GROUP_PROTOCOLS_MAX 256

/* Samples of one sampled rate (quota.window.num, 11 by default): 24 bytes each in every bucket. */
#define QUOTA_SAMPLES_MAX 100u

/* Buckets of client quotas: client ids are the clients' own choice, and a bucket takes about 400
 * bytes. */
#define QUOTA_BUCKETS_MAX 100000u

/* A user's name or a client id: Kafka's longest string. */
#define QUOTA_NAME_MAX 32767u

/* Clients whose metrics are remembered (Kafka's own number), the values of all of them and of one,
 * and the bytes of one value's labels: at worst 20 MB, usually a tenth of it. A consumer of a few
 * topics sends about 200 values. */
#define TELEMETRY_INSTANCES_MAX       16384u
#define TELEMETRY_SERIES_MAX          20000u
#define TELEMETRY_INSTANCE_SERIES_MAX 2000u
#define TELEMETRY_LABELS_MAX          1024u
#define TELEMETRY_NAME_MAX            128u

/* Data points of one report of metrics: far above what a client has. */
#define OTLP_POINTS_MAX 10000u

/* Events that a group remembers to explain its members, the bytes of a member's id in each, and
 * what all groups of one partition of __consumer_offsets may remember together: a thousand groups
 * in full, or 8,000 of one member each. */
#define GROUP_EVENTS_MAX        64u
#define GROUP_EVENT_ID_BYTES    94u
#define GROUP_STORIES_BYTES_MAX (8u * 1024u * 1024u)

/* Unsynced bytes per log directory before background writers sync as they write, and before
 * sockets are not read any more (architecture, section 4). */
#define LOG_UNSYNCED_MAX (64u * 1024u * 1024u)

/* Bytes made durable in a log directory before its recovery points are written ahead of their time:
 * what a recovery after a crash reads and writes again, a fraction of a second of a usual disk. */
#define LOG_UNMARKED_MAX (64u * 1024u * 1024u)

/* Bytes by which a log's last segment grows before the recovery points ahead of their time bring it
 * a place to resume at: what a recovery reads of it, once to twice, whatever the segment's size. */
#define LOG_RESUME_BYTES (16u * 1024u * 1024u)

/* Producer snapshots that are no segment's first: a recovery takes the newest but one that the
 * recovery point has passed, and the point may be one behind. */
#define LOG_RESUME_SNAPSHOTS 3u

/* Entries of log.dirs: more disks than a machine of this kind has. */
#define LOG_DIRS_MAX 32u

/* Pieces (appends) that one write of a log gathers: below the kernel's limit of 1,024 for one
 * vectored write, and enough that a turn's small appends share one call. */
#define LOG_WRITE_PIECES_MAX 64u

/* Files in one commit; more wait for the next. The seam needs one pointer for each. */
#define LOG_COMMIT_FILES_MAX 4096u

/* Idle open segment files of a shard; above, the longest unused are closed. */
#define LOG_OPEN_FILES_MAX 2048u

/* Loaded indexes of closed segments of a shard; above, the longest unused are dropped. One of a
 * full 1 GiB segment at index.interval.bytes=4096 has 262,144 entries: 5 MiB with its times. */
#define LOG_INDEX_MEMORY_MAX (32u * 1024u * 1024u)

/* The compaction's map from keys to offsets: 24 bytes a key, so 5.6 million keys a pass. */
#define LOG_CLEANER_MAP_BYTES (128u * 1024u * 1024u)

/* Batches remembered for each idempotent producer: Kafka's own number, clients rest on it. */
#define LOG_PRODUCER_BATCHES 5u

/* What one batch may decompress to, and one message set. Kafka has no bound; a producer that meets
 * this one splits its batch. 256 times the default max.message.bytes. */
#define RECORD_INFLATED_MAX (256u * 1024u * 1024u)

/* One decompressed record that somebody wants as one piece (tools, coordinators, compaction). */
#define RECORD_BYTES_MAX (128u * 1024u * 1024u)

/* Decompressed bytes are looked at through a window of this size; the usual record fits. */
#define RECORD_WINDOW_BYTES (64u * 1024u)

/* Records of one batch that an answer names as bad. Kafka names all; a client needs one. */
#define RECORD_ERRORS_MAX 1000u

/* zstd frames may ask for windows of up to 2^27 bytes: level 22 does, and clients may set it. */
#define COMPRESS_ZSTD_WINDOW_LOG_MAX 27

/* The largest block of one snappy chunk that is taken (Kafka's writers make 32 KiB, other clients
 * one block of the whole batch), and of the lz4 frame format. */
#define COMPRESS_SNAPPY_BLOCK_MAX (128u * 1024u * 1024u)
#define COMPRESS_LZ4_BLOCK_MAX    (4u * 1024u * 1024u)

/* All states of one struct compress_work with one stream open: zstd's window and its tables, or
 * one snappy block. */
#define COMPRESS_WORK_MAX (160u * 1024u * 1024u)

/* Text that a tool builds at once: the tree of the largest frame that the tools take (100 MiB, as
 * Kafka's socket.request.max.bytes) may need many bytes a byte; more is an error, not a swap storm.
 */
#define TEXT_OUT_MAX (1024u * 1024u * 1024u)

/* Shards of a node, as dohle.shards allows: more than any machine that this is for has cores. */
#define NET_SHARDS_MAX 64u

/* The receive buffer that all connections of a shard share: one recv of a busy loopback stream.
 * Frames above a quarter of it are shared, smaller ones copied, so that what is kept wastes at most
 * 4x. */
#define NET_RECEIVE_BYTES (256u * 1024u)

/* Encoded output of one connection above which its requests are not handled: one usual fetch. */
#define NET_OUTPUT_HIGH_BYTES (1024u * 1024u)

/* A chunk of a connection's encoded output; an idle connection has none. The first of a turn is
 * small: it holds the answers to NET_FRAMES_PER_TURN heartbeats. */
#define NET_CHUNK_BYTES       (16u * 1024u)
#define NET_CHUNK_SMALL_BYTES 1024u

/* Small chunks kept for reuse by a shard: as many connections as one turn delivers. Without them
 * the heap shrinks and grows again in every turn, at a tenth of a small request's cost. */
#define NET_SPARE_CHUNKS 256u

/* Produce requests, or Heartbeats, of one connection in process at once: five times what clients
 * send (max.in.flight.requests.per.connection=5), and a bound for those who send more. */
#define NET_PIPELINE_MAX 25u

/* Frames handled of one connection in one turn, so that a flood is fair to the others. */
#define NET_FRAMES_PER_TURN 64u

/* Timers of one wheel that fire in one turn: a millisecond or so of ordinary ones. */
#define NET_TIMERS_PER_TURN 1000u

/* Ended requests kept for reuse by a shard, each with up to ARENA_KEEP_BYTES. */
#define NET_SPARE_REQUESTS 64u

/* A frame that comes slower than this, after connections.max.idle.ms, is given up. */
#define NET_SLOWEST_BYTES_PER_S 1024u

/* How long unread input can hold the horizon: the usual session of a consumer. */
#define NET_HORIZON_HOLD_MAX_MS 45000

/* A listener that is taken away while the node runs: so long may its connections still be answered.
 */
#define NET_LISTENER_DRAIN_MS 5000

/* Listeners that a node shuts in its life, each of which leaves a struct behind. */
#define NODE_LISTENER_CHANGES_MAX 1000u

/* What a mute keeps waiting no longer than this holds the horizon too: five requests in flight, as
 * clients have them, that each wait the second that is the most of a request_percentage quota. What
 * waits for longer holds up nobody's removal. */
#define NET_MUTE_HOLD_MAX_MS 5000

/* A file range up to this is read from the page cache and sent with the memory around it: one read
 * costs less than proving the range resident (three calls) and a send of its own. */
#define NET_COPY_BYTES (32u * 1024u)

/* Places for pieces of one vectored send. */
#define NET_SEND_PIECES 64u

/* APIs x versions x errors that are counted one by one. */
#define NET_REQUEST_COUNTS_MAX 4096u

/* Addresses that max.connections.per.ip remembers are as many as there are connections. Requests in
 * memory when queued.max.request.bytes is not set: Kafka has no bound. */
#define NET_RECEIVE_BUDGET_BYTES (256u * 1024u * 1024u)

/* Connections above the rate of their address that are held unread until they are closed; more are
 * closed at once. */
#define NET_TURNED_AWAY_MAX 1000u

/* A client's name and version of its software, as shown; longer ones are cut. */
#define NET_SOFTWARE_BYTES 64u

/* One frame of a capture, as Kafka's socket.request.max.bytes; responses may be that large too. */
#define WIRE_FRAME_MAX (100u * 1024u * 1024u)

/* Segments of one direction of a captured connection that wait for one that is missing. */
#define WIRE_HELD_MAX (64u * 1024u * 1024u)

/* Requests of one captured connection that wait for their response; clients send far fewer. */
#define WIRE_OUTSTANDING_MAX 10000u

/* Connections of one capture that are followed at a time. */
#define WIRE_CONNECTIONS_MAX 100000u

/* Input of a tool: a file of frames or the JSON of one message. Four of Kafka's largest requests.
 */
#define WIRE_INPUT_MAX (400u * 1024u * 1024u)

/* Lines of one object tree: more than anybody reads; 80 bytes each. */
#define TEXT_NODES_MAX (4u * 1024u * 1024u)

/* Expressions of subscriptions: how many topics a shard matches in a turn (a millisecond), how many
 * groups wait for that, and the memory for one group's topics, expressions and matches. */
#define GROUP_REGEX_SLICE     4096u
#define GROUP_REGEX_JOBS_MAX  1024u
#define GROUP_REGEX_BYTES_MAX (64u * 1024u * 1024u)

/* Rows of a check that run at once, a thread each: all of them, so that a suite takes as long as
 * its longest row; 40 KiB of memory each in use. */
#define CHECK_AT_ONCE_MAX 256u

_Static_assert(ARENA_KEEP_BYTES >= ARENA_CHUNK_BYTES, "a reset must be able to keep a chunk");
_Static_assert(RECORD_BYTES_MAX <= RECORD_INFLATED_MAX, "a record is part of its batch");
_Static_assert(COMPRESS_WORK_MAX > (1u << COMPRESS_ZSTD_WINDOW_LOG_MAX) &&
                   COMPRESS_WORK_MAX > COMPRESS_SNAPPY_BLOCK_MAX,
               "a stream's largest window fits");
