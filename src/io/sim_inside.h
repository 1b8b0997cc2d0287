/* sim_inside.h - shared by sim*.c only.
 *
 * Order is never by address: lists are in order of creation, the heap by (time, drawn tie, number).
 */
#pragma once

#include "io/backend.h"
#include "io/sim.h"

/* Where a choice is made. Choices are drawn by (seed, node, site, count), so that one more draw at
 * one site does not change those of the others. */
enum sim_site {
    SIM_SITE_DISK_DELAY,
    SIM_SITE_DISK_STALL,
    SIM_SITE_CACHE,
    SIM_SITE_SYNC_FAILURE,
    SIM_SITE_TORN,
    SIM_SITE_NET_DELAY,
    SIM_SITE_NET_STALL,
    SIM_SITE_NET_RESET,
    SIM_SITE_NET_SEVER,
    SIM_SITE_SPLIT,
    SIM_SITE_SHORT,
    SIM_SITE_WINDOW,
    SIM_SITE_LAST_BYTES,
    SIM_SITE_TURN,
    SIM_SITE_CLOCK,
    SIM_SITES
};

/* Unsynced changes of one file, and of all directories, above which the oldest are written back, as
 * a kernel does in its own time. */
#define SIM_CHANGES_MAX      512u
#define SIM_NAME_CHANGES_MAX 256u

#define SIM_NAME_MAX 255u

/* ---- the disk -------------------------------------------------------------------------------- */

struct sim_bytes {
    uint8_t *data;
    uint64_t size, capacity;
};

/* A change of a file's content that is not durable yet. */
struct sim_change {
    struct list link;
    uint64_t sequence;
    bool truncate;
    uint64_t offset; /* Of the bytes; or the new size. */
    uint64_t size;
    uint8_t bytes[];
};

struct sim_inode;

struct sim_name {
    char *text;
    struct sim_inode *inode; /* Counted. */
};

/* Names of a directory, sorted. */
struct sim_names {
    struct sim_name *at;
    uint32_t count, capacity;
};

struct sim_inode {
    struct list link; /* On its disk, by number. */
    struct sim_disk *disk;
    uint32_t number;
    uint32_t references; /* Names now and durable, changes, open files. */
    bool directory, locked;
    int64_t modified_wall_ms;
    /* A file: */
    struct sim_bytes now, stable; /* As read; as on the platter. */
    struct list changes;          /* From stable to now, oldest first. */
    uint32_t change_count;
    uint64_t sequence;     /* Of the last change. */
    uint64_t reserved_end; /* Bytes reserved from 0. */
    uint64_t charged_bytes;
    int64_t last_write_us; /* Submitted writes take effect in order: after this. */
    /* A directory: */
    struct sim_names names, stable_names;
    struct sim_inode *parent; /* Borrowed; NULL for the root. */
};

struct sim_spot {
    struct sim_inode *directory; /* Counted; NULL: none. */
    char *name;
};

/* A change of names that is not durable yet: create (only `to`), remove (only `from`), rename. */
struct sim_name_change {
    struct list link;
    struct sim_spot from, to;
    struct sim_inode *inode; /* Counted. */
    bool kept;               /* Scratch of the choice. */
};

struct sim_disk {
    struct sim_inode *root;
    struct list inodes;
    struct list name_changes; /* Oldest first. */
    uint32_t name_change_count;
    uint32_t numbers; /* Inodes numbered so far. */
    uint64_t space_bytes, used_bytes;
};

struct sim_rng {
    uint64_t state;
};
static inline uint64_t sim_rng_next(struct sim_rng *rng)
{
    uint64_t x = rng->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
uint64_t sim_rng_below(struct sim_rng *rng, uint64_t bound);

/* sim_image.c: contents, unsynced changes, what a crash leaves. */
struct sim_disk *sim_disk_new(uint64_t space_bytes);
struct sim_disk *sim_disk_copy(const struct sim_disk *disk);
void sim_disk_free(struct sim_disk *disk);
void sim_disk_settle(struct sim_disk *disk, enum sim_crash kind, uint64_t choice);
uint32_t sim_disk_unsynced(const struct sim_disk *disk);
struct sim_inode *sim_inode_new(struct sim_disk *disk, bool directory);
void sim_inode_put(struct sim_inode *inode);
/* Bytes that fit are written; 0 or -ENOSPC. */
int sim_inode_write(struct sim_inode *inode, uint64_t offset, const void *bytes, uint64_t size);
int sim_inode_truncate(struct sim_inode *inode, uint64_t size);
int sim_inode_reserve(struct sim_inode *inode, uint64_t end);
void sim_inode_sync(struct sim_inode *inode, uint64_t sequence); /* Changes up to this one. */
void sim_inode_sync_failed(struct sim_inode *inode, struct sim_rng *rng);

/* sim_names.c: directories and their unsynced changes. */
struct sim_inode *sim_names_find(const struct sim_names *names, const char *name);
void sim_names_set(struct sim_names *names, const char *name, struct sim_inode *inode);
void sim_names_remove(struct sim_names *names, const char *name);
void sim_names_copy(struct sim_names *to, const struct sim_names *from);
void sim_names_clear(struct sim_names *names);
/* Make the change now and remember it as unsynced. Spots are borrowed; NULL directory: none. */
void sim_names_change(struct sim_disk *disk,
                      struct sim_spot from,
                      struct sim_spot to,
                      struct sim_inode *inode);
void sim_names_remember(struct sim_disk *disk, const struct sim_name_change *change);
void sim_names_sync(struct sim_inode *directory);
void sim_names_settle(struct sim_disk *disk, enum sim_crash kind, struct sim_rng *rng);
void sim_names_settle_chosen(struct sim_disk *disk, uint64_t bits);

/* ---- nodes, shards, the world ---------------------------------------------------------------- */

struct io_file {
    struct list link; /* On its shard. */
    struct sim_inode *inode;
    char *path;
    uint32_t in_flight;
    bool closing, writable, holds_lock;
};

struct sim_arranged { /* A fault. */
    struct list link;
    struct sim_fault fault;
    char *under;
    uint64_t left; /* Matching calls until it strikes. */
};

struct sim_memory {
    struct mem mem;
    struct list blocks;
    uint64_t count;
    uint64_t fail_in; /* 0: never. */
    bool fail_for_good, failing;
};

struct sim_node {
    struct list link;
    struct sim_world *world;
    uint32_t id;
    char *name;
    char host[24];
    struct sim_disk *disk;
    struct sim_memory memory;
    struct list shards;
    struct list faults;
    uint32_t incarnation, shards_started;
    uint32_t ports;
    bool off; /* Since a power cut, until it is started again. */
    bool dying, crashed;
    uint64_t io_count;
    int64_t clock_ms;      /* Monotonic clock at world time 0. */
    int64_t wall_clock_ms; /* Wall clock at world time 0. */
    int64_t paused_until_us;
    uint64_t drawn[SIM_SITES];
};

struct sim_shard {
    struct io io;
    struct sim_node *node;
    struct list link;  /* On its node. */
    struct list ops;   /* struct sim_op, not delivered. */
    struct list done;  /* struct io_op, to be delivered. */
    struct list files; /* Open. */
    struct list streams, listeners;
    uint32_t stream_count;
    uint32_t number; /* Shard of its process, and which process: for its random streams. */
    uint32_t incarnation;
    bool ready; /* Something is there for it. */
    bool in_turn, in_job;
    int64_t wake_us; /* When it wants a turn anyway. */
    int64_t paused_until_us;
    int64_t turn_us; /* World time as its turn began. */
    int64_t turn_wall_ms;
    int64_t lane_us; /* Its work lane is busy until then. */
    uint64_t drawn[IO_RANDOM_STREAMS];
    int64_t cpu_ns; /* What its looks at the processor's clock have cost. */
    void *tag;
};

enum sim_event_kind { SIM_EVENT_OP, SIM_EVENT_OP_DONE, SIM_EVENT_NET };

struct sim_op;
struct sim_packet;

struct sim_event {
    int64_t at_us;
    uint64_t tie, number;
    enum sim_event_kind kind;
    struct sim_shard *shard; /* OP, OP_DONE. */
    union {
        struct sim_op *op;
        struct sim_packet *packet;
    };
};

struct sim_world {
    uint64_t seed;
    struct sim_options options;
    int64_t now_us;
    uint64_t hash;
    struct sim_event *heap;
    uint32_t event_count, event_capacity;
    uint64_t event_number;
    struct list nodes;
    struct sim_node *node_by_id[SIM_NODES_MAX];
    uint32_t node_count;
    uint32_t cut[SIM_NODES_MAX]; /* Bit j of i: what i sends to j does not come. */
    struct list connections;
    uint64_t connection_number;
    struct sim_rng turn_order;
};

/* sim.c */
extern const struct io_backend sim_backend;
void *sim_heap(size_t size_bytes); /* Zeroed; stops the program when there is none. */
void *sim_heap_grow(void *block, size_t size_bytes);
char *sim_heap_text(const char *text);
struct sim_shard *sim_shard_of(struct io *io);
uint64_t sim_draw(struct sim_node *node, enum sim_site site);
uint64_t sim_draw_below(struct sim_node *node, enum sim_site site, uint64_t bound);
int64_t sim_draw_delay(struct sim_node *node, enum sim_site site, const struct sim_range *range);
void sim_note(struct sim_node *node, const struct sim_trace *trace);
/* Takes the event's kind and subject. */
void sim_schedule(struct sim_world *world, int64_t at_us, struct sim_event event);
void sim_forget_shard(struct sim_world *world, const struct sim_shard *shard);
int64_t sim_node_wall_ms(const struct sim_node *node);

/* sim_node.c: a node's memory and its end. */
void sim_node_free(struct sim_node *node);
void sim_shard_end(struct io *io); /* io_free(). */

/* sim_node.c: one call on the disk, from its counting to its trace. */
struct sim_visit {
    struct sim_shard *shard;
    enum sim_call call;
    const char *path;
    uint64_t offset, size;
    int error; /* Not 0: the call is to fail so. */
    bool torn; /* A write puts a part before it fails. */
};
struct sim_visit sim_visit(struct sim_shard *shard, enum sim_call call, const char *path);
int64_t sim_visit_end(struct sim_visit *visit, int64_t result); /* The result, or -EIO if dead. */
uint32_t sim_stall_ms(struct sim_node *node, enum sim_call call, const char *path);

/* sim_disk.c: the plain calls; and what submitted operations share with them. */
int sim_open(struct io *io, const char *path, int flags, struct io_file **out);
void sim_close(struct io *io, struct io_file *file);
void sim_file_put(struct io_file *file);
int sim_stat(struct io *io, const char *path, struct io_stat *out);
int64_t sim_size(struct io *io, struct io_file *file);
int64_t sim_read(struct io *io, struct io_file *file, void *out, size_t size, uint64_t offset);
size_t sim_cached(struct io *io, struct io_file *file, uint64_t offset, size_t size);
int64_t sim_read_cached(struct io *io,
                        struct io_file *file,
                        void *out,
                        size_t size,
                        uint64_t offset);
int64_t sim_write(struct io *io,
                  struct io_file *file,
                  const void *bytes,
                  size_t size,
                  uint64_t offset);
int sim_truncate(struct io *io, struct io_file *file, uint64_t size);
int sim_reserve(struct io *io, struct io_file *file, uint64_t offset, uint64_t size);
int sim_sync(struct io *io, struct io_file *file);
int sim_sync_up_to(struct io *io, struct io_file *file, uint64_t sequence);
int sim_sync_dir(struct io *io, const char *path);
int sim_rename(struct io *io, const char *from, const char *to);
int sim_unlink(struct io *io, const char *path);
int sim_mkdir(struct io *io, const char *path);
int sim_rmdir(struct io *io, const char *path);
int sim_space(struct io *io, const char *path, struct io_space *out);
int sim_list(struct io *io, const char *path, bool (*each)(void *, const char *), void *context);
int sim_lock(struct io *io, const char *path, struct io_file **out);
struct sim_inode *sim_disk_file(struct sim_disk *disk, const char *path); /* Or NULL. */

/* sim_op.c: submitted operations. */
void sim_submit(struct io *io, struct io_op *op);
void sim_op_run(struct sim_shard *shard, struct sim_op *held);  /* It takes effect. */
void sim_op_done(struct sim_shard *shard, struct sim_op *held); /* It is there to be delivered. */
uint32_t sim_ops_deliver(struct sim_shard *shard);
void sim_ops_drop(struct sim_shard *shard);
void sim_ops_finish(struct sim_shard *shard); /* Run what is in flight, deliver nothing. */

/* sim_stream.c: the network. */
int sim_listen(struct io *io,
               const struct io_address *address,
               const struct io_accept_events *events,
               void *context,
               struct io_listener **out,
               struct io_address *bound);
void sim_unlisten(struct io *io, struct io_listener *listener);
int sim_connect(struct io *io, const struct io_address *address, struct io_stream **out);
void sim_watch(struct io *io,
               struct io_stream *stream,
               int want,
               const struct io_stream_events *events,
               void *context);
void sim_want(struct io *io, struct io_stream *stream, int want);
int64_t sim_recv(struct io *io, struct io_stream *stream, void *out, size_t size);
int64_t sim_send(struct io *io,
                 struct io_stream *stream,
                 const struct iovec *iov,
                 uint32_t count,
                 bool more);
int64_t sim_send_file(struct io *io,
                      struct io_stream *stream,
                      struct io_file *file,
                      uint64_t offset,
                      size_t size);
void sim_local(struct io *io, struct io_stream *stream, struct io_address *out);
void sim_peer(struct io *io, struct io_stream *stream, struct io_address *out);
void sim_close_stream(struct io *io, struct io_stream *stream);
void sim_give_stream(struct io *io, struct io_stream *stream);
void sim_take_stream(struct io *io, struct io_stream *stream);
void sim_packet_arrives(struct sim_world *world, struct sim_packet *packet); /* Takes it. */
bool sim_streams_pending(struct sim_shard *shard);
uint32_t sim_streams_deliver(struct sim_shard *shard);
void sim_streams_drop(struct sim_shard *shard, bool told); /* The process ends. */
void sim_connections_reap(struct sim_world *world);
void sim_connections_free(struct sim_world *world);
