/* drive.h - driving one log directory from a program of its own: what driver.c (by a script) and
 * live.c (at random, until it is killed) share. A failure ends the program with a line on stderr.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "io/posix.h"
#include "log/log_manager.h"
#include "record/batch_build.h"
#include "record/control.h"
#include "sys/memory.h"

struct driver {
    struct mem mem;
    struct io *io;
    struct logs *logs;
    struct log *log; /* The one that is driven now. */
    struct log_config config;
    struct compress_work work;
};

/* A batch of `count` records with keys "kN" and values of `value_bytes`; -1: tombstones. The same
 * text makes the same bytes. */
struct batch_text {
    int count;
    int value_bytes;
    int codec;
    int key_from;
    long long timestamp_ms;
    long long producer_id;
    int epoch;
    int sequence;
    int transactional;
};

/* What an append said: LOG_OK or LOG_DUPLICATE, the offsets, the batch's CRC. */
struct driven {
    int result;
    int64_t offset_first;
    int64_t offset_last;
    uint32_t crc;
};

_Noreturn void drive_fail(const char *what, long long value);
void drive_open(struct driver *driver, const char *directory); /* It has a meta.properties. */
void drive_turn(struct driver *driver);
void drive_settle(struct driver *driver); /* Until nothing is in flight. */
void drive_stop(struct driver *driver);   /* A clean stop. */
void drive_log(struct driver *driver, const char *topic, int partition, struct uuid id);
struct driven drive_append(struct driver *driver, const struct batch_text *text);
struct driven drive_marker(struct driver *driver, long long producer, int epoch, int commit);
void drive_truncate(struct driver *driver, long long offset);

/* Call `each` for every batch that is there, in order; its CRC holds. */
void drive_each(struct driver *driver,
                void (*each)(void *context, const struct batch_header *header, struct view batch),
                void *context);
