/* sim.h - a simulated world behind the seam: nodes, disks, a network and clocks, from one seed.
 *
 * A node is a machine with a disk; it runs a process of one or more shards, each with its own
 * `struct io`. A crash ends the process and settles the disk: the node keeps what is then on it.
 * All nodes, clients among them, share one virtual time and one thread. The same seed, options and
 * calls give the same run, bit for bit, under any compiler and at any address: sim_trace_hash()
 * tells.
 *
 * The driver's loop: sim_step() moves time to the next thing that happens and says whose turn it
 * is; that shard's loop then runs once, with one io_turn(). */
#pragma once

#include "io/io.h"

struct sim_world;
struct sim_node;

/* One thing that happened, as folded into the trace hash. */
struct sim_trace {
    int64_t at_us;    /* World time. */
    const char *kind; /* "write", "sync", "turn", "deliver", ... */
    const char *node;
    const char *name; /* The file's path, the peer's node, or "". */
    uint64_t offset, size;
    int64_t result;
};

struct sim_range {
    uint32_t min_us, max_us;
};

/* Zero stands for the usual value, given in brackets. */
struct sim_options {
    /* io_turn() itself moves the world until something is there for its shard or its time has come,
     * as in the real world: for tests with one shard and without a driver's loop. */
    bool waits;
    bool unhashed; /* Nobody will ask for sim_trace_hash(): a tenth of the work of short runs. */
    /* A disk call that may block, made inside a callback of io_turn, stops the program. */
    bool forbid_blocking;
    struct sim_range disk_delay;     /* Of a submitted operation [20, 2000]. */
    struct sim_range net_delay;      /* Of a piece of a stream [50, 5000]. */
    uint32_t disk_stall_per_million; /* Operations that take up to two seconds [0]. */
    uint32_t net_stall_per_million;  /* Pieces that take up to two seconds [0]. */
    uint32_t net_reset_per_million;  /* Pieces in whose place the connection breaks [0]. */
    uint32_t net_sever_per_million;  /* Pieces from which on the connection is half open [0]. */
    /* Told of a crashed process's io_turn() while turns wait: it would wait for ever. Need not
     * return: what the process holds is gone with sim_node_crash(). NULL: the turn does nothing. */
    void (*dead)(void *context, struct sim_node *node);
    void *dead_context;
    uint32_t cache_miss_percent; /* Of io_disk_read_cached [25]; over 100: never. */
    uint32_t break_after_ms;     /* Silence after which a sender gives a connection up [15000]. */
    uint64_t disk_bytes;         /* Space of a node's disk [1 GiB]. */
    void (*trace)(void *context, const struct sim_trace *trace); /* Told of all that happens. */
    void *trace_context;
};

/* A world without nodes, at time 0. `options` NULL: all usual. It lives on the host's heap; when
 * that is exhausted the program stops, here and in every call below. */
struct sim_world *sim_world_new(uint64_t seed, const struct sim_options *options);
void sim_world_free(struct sim_world *world); /* With all nodes and handles. NULL: nothing. */

/* Change the option `waits`: for the while in which one process opens or closes. */
void sim_waits(struct sim_world *world, bool waits);

/* Of all that has happened so far; not in a world with `unhashed`. */
uint64_t sim_trace_hash(const struct sim_world *world);
int64_t sim_now_us(const struct sim_world *world);

/* ---- nodes ----------------------------------------------------------------------------------- */

/* A machine with an empty disk ("/" and "/tmp"), no process, and the address "10.0.0.N", N counting
 * from 1. `name` is copied. At most SIM_NODES_MAX. */
#define SIM_NODES_MAX 32u

/* What a look at the processor's clock costs in it, so that time spent is never zero and always the
 * same. */
#define SIM_CPU_LOOK_NS 10000
struct sim_node *sim_node_new(struct sim_world *world, const char *name);
const char *sim_node_name(const struct sim_node *node); /* View of the node's own copy. */
const char *sim_node_host(const struct sim_node *node); /* The same. */

/* A handle for one more shard of the node's process; the first one starts it. The process ends by
 * io_free() of all its handles (the disk stays as it is, page cache and all), or by a crash. */
struct io *sim_node_start(struct sim_node *node);

/* What is left on the disk after a crash. All but the first are power cuts: the page cache is gone,
 * peers are told nothing. Every outcome is legal for a filesystem that orders renames as ext4. */
enum sim_crash {
    SIM_CRASH_KILL,      /* The process is killed: everything written stays; peers see a reset. */
    SIM_CRASH_WORST,     /* Only what was synced. */
    SIM_CRASH_ALL,       /* Everything had just been written back. */
    SIM_CRASH_PREFIX,    /* Per file the first few changes, the next one torn. */
    SIM_CRASH_SECTORS,   /* Each 512-byte sector, or page, and the size at a moment of its own. */
    SIM_CRASH_ZERO_TAIL, /* Files have their new size, and zeros for what was not synced. */
    SIM_CRASH_AHEAD,     /* Sizes run ahead of the bytes by some changes, and pages of one. */
    SIM_CRASH_NAMES,     /* Directory changes are kept, unsynced bytes are lost. */
    SIM_CRASH_DATA,      /* Bytes are kept, unsynced directory changes are lost. */
    SIM_CRASH_CHOSEN,    /* Bit i of `choice`: is the i-th unsynced change kept. */
    SIM_CRASH_RANDOM,    /* Any of these, file by file. */
    SIM_CRASH_KINDS
};

/* End the process now: handles, open files, streams and all memory from io_mem() are gone; nothing
 * of them may be used. `choice` is the outcome's own seed (CHOSEN: its bits). Also when no process
 * runs, and, to settle the disk, after a crash point was reached. Not from inside a callback. */
void sim_node_crash(struct sim_node *node, enum sim_crash kind, uint64_t choice);

/* A crash point was reached (SIM_FAULT_CRASH): every call of this process fails with -EIO and
 * changes nothing, until sim_node_crash() settles what is left. */
bool sim_node_crashed(const struct sim_node *node);

/* A new node of `into` (it may be another world) whose disk is what would be left, were `of` to
 * crash now. `of` goes on. For trying many outcomes of one moment. */
struct sim_node *sim_node_fork(struct sim_world *into,
                               const struct sim_node *of,
                               enum sim_crash kind,
                               uint64_t choice);

uint32_t sim_node_unsynced(const struct sim_node *node); /* Changes that CHOSEN chooses from. */
uint64_t sim_node_io_count(const struct sim_node *node); /* Disk calls so far, all processes. */

/* The node does not run until this much time has passed; its disk and its peers go on. */
void sim_node_pause(struct sim_node *node, uint32_t pause_ms);
/* One shard of the node's process does not run meanwhile: the scheduler has forgotten its thread.
 */
void sim_shard_pause(struct io *io, uint32_t pause_ms);
void sim_node_wall_jump(struct sim_node *node, int64_t by_ms);   /* Forward or back. */
void sim_node_space(struct sim_node *node, uint64_t disk_bytes); /* May be below what is used. */

/* ---- the driver's loop ----------------------------------------------------------------------- */

enum sim_next {
    SIM_NOTHING, /* No shard waits for anything that will ever come. */
    SIM_UNTIL,   /* `until_us` has come first. */
    SIM_TURN,    /* It is the turn of this handle. */
    SIM_CRASHED  /* This handle's node has reached its crash point: call sim_node_crash(). */
};

/* Move the world to the next turn, but not beyond `until_us` (INT64_MAX: no such bound). The same
 * is told again while the driver does not act on it. */
enum sim_next sim_step(struct sim_world *world, int64_t until_us, struct io **turn_of);

/* Let time pass up to `until_us`, whoever's turn it may be. */
void sim_pass(struct sim_world *world, int64_t until_us);

/* What the driver wants to remember with a handle. */
void sim_tag(struct io *io, void *tag);
void *sim_tag_of(struct io *io);

/* ---- faults ---------------------------------------------------------------------------------- */

/* Disk calls, as sets. A submitted operation counts when it takes effect, a commit once per file.
 */
enum sim_call {
    SIM_CALL_OPEN = 1,
    SIM_CALL_STAT = 2,
    SIM_CALL_READ = 4,
    SIM_CALL_WRITE = 8,
    SIM_CALL_TRUNCATE = 16,
    SIM_CALL_RESERVE = 32,
    SIM_CALL_SYNC = 64,
    SIM_CALL_SYNC_DIR = 128,
    SIM_CALL_RENAME = 256,
    SIM_CALL_UNLINK = 512, /* And rmdir. */
    SIM_CALL_MKDIR = 1024,
    SIM_CALL_LIST = 2048,
    SIM_CALL_LOCK = 4096,
    SIM_CALL_ANY = 8191
};

enum sim_fault_kind {
    SIM_FAULT_ERROR, /* The call fails with `error`. A failed sync loses some of the bytes for good,
                        shows them or not, and the next sync of the file says yes. */
    SIM_FAULT_TORN,  /* A write puts a part, then fails with `error`. Other calls: as ERROR. */
    SIM_FAULT_CRASH, /* The node crashes in this call: the call's own change may be kept or not. */
    SIM_FAULT_STALL  /* A submitted operation takes `stall_ms` longer. */
};

struct sim_fault {
    enum sim_fault_kind kind;
    uint32_t calls;    /* Set of enum sim_call. 0: any. */
    const char *under; /* Only paths that begin so; copied. NULL: any. */
    uint64_t nth;      /* Of the matching calls from now on; 0 and 1: the next one. */
    bool for_good;     /* And all that match after it. */
    int error;         /* Negative errno. 0: -EIO. */
    uint32_t stall_ms;
};

/* Arrange a fault; it outlives a restart until it has struck (or for good). */
void sim_node_fault(struct sim_node *node, const struct sim_fault *fault);
void sim_node_heal(struct sim_node *node); /* Forget all faults arranged, those of memory too. */

/* The n-th allocation from now on fails (1: the next one), and all after it if `for_good`. */
void sim_node_fail_memory(struct sim_node *node, uint64_t nth, bool for_good);
uint64_t sim_node_allocations(const struct sim_node *node); /* So far. */

/* Flip one bit of a file at rest. False: no such file, or not so long. */
MUST_USE bool sim_node_rot(struct sim_node *node, const char *path, uint64_t bit);

/* Cut or heal what goes from one node to another (one way). Bytes under way are held back and come
 * after the healing, unless the sender has given up by then. */
void sim_link(struct sim_node *from, struct sim_node *to, bool up);

/* Break one connection of the node, the seed says which. False: it has none. */
bool sim_node_reset_stream(struct sim_node *node);

/* Cut one connection half open, the seed says which: nothing arrives any more either way, and
 * nobody is told; who sends gives it up after `break_after_ms`. False: it has none. */
bool sim_node_sever_stream(struct sim_node *node);
