/* run.h - one seed: the shape of a cluster, its clients, a storm of faults, healing, audits.
 *
 * There are two worlds: a broker and its clients, and a controller and a population of brokers.
 *
 *   storm      clients work; kills, power cuts, crash points, stops, pauses (of the machine or of
 *              one shard), broken streams, clock jumps, failing and full and slow disks, no memory
 *   drain      no new faults; all that was begun is acknowledged within RUN_DRAIN_MS (I23)
 *   audit      every log is read from its start and held against what clients were told
 *   cut        the power is cut, the worst outcome; the node starts again
 *   audit      the same again
 *   stop       a clean stop, a start, and a last audit
 *
 * Each kind of fault is off in about half of the seeds: quiet hides other bugs than a storm does.
 */
#pragma once

#include "sim/population.h"

enum run_fault {
    RUN_KILL,
    RUN_POWER_CUT,
    RUN_CRASH_POINT, /* A crash in the middle of a disk call. */
    RUN_STOP,
    RUN_PAUSE,
    RUN_RESET,
    RUN_SEVER,
    RUN_WALL_JUMP,
    RUN_STALL, /* One shard of several does not run for a while. */
    RUN_READ_ERROR,
    RUN_WRITE_ERROR, /* With a part of the bytes written, or none. */
    RUN_SYNC_ERROR,  /* The bytes may be lost, and the next sync says yes. */
    RUN_NAME_ERROR,  /* Of a call that changes a directory. */
    RUN_DISK_FULL,   /* For a while. */
    RUN_SLOW_DISK,
    RUN_NO_MEMORY, /* An allocation fails, or all for a while. */
    RUN_FAULTS
};

enum run_world { RUN_CLIENTS, RUN_CONTROLLER };

struct run_result {
    uint64_t trace_hash;
    uint64_t events; /* As told to the trace. */
    int64_t simulated_us;
    uint64_t acknowledged, read; /* Records. */
    uint64_t commits, removals;  /* Acknowledged; members that were told that they are none. */
    uint64_t held_ms;            /* That members were told to be held by their quota. */
    uint64_t deletes;            /* DeleteRecords, acknowledged. */
    uint64_t places;             /* Offsets by time, by place, by epoch, that were asked for, */
    uint64_t places_exact;       /* and those to which there was one right answer. */
    uint64_t made;               /* Topics of one name, one after the other. */
    uint64_t kept;               /* Records written to topics with a rule of what stays, */
    uint64_t gone;               /* and those that were gone by the rule. */
    uint64_t tales;              /* Groups that were described as their members see them, */
    uint64_t tales_compared;     /* and those that were held against the tale before a crash. */
    struct population_told population;
    uint32_t faults[RUN_FAULTS]; /* That struck. */
    char violation[256];         /* Empty: none. */
};

const char *run_fault_name(enum run_fault fault);

struct run_options {
    uint64_t seed;
    enum run_world world;
    bool trace;      /* Print what happens, line by line. */
    uint32_t shards; /* Of the node; 0: one for odd seeds, three for even ones. */
    bool lax;        /* The node keeps less than it is held to, so that violations must be found. */
};

/* Run one seed. */
void run_seed(const struct run_options *options, struct run_result *result);
