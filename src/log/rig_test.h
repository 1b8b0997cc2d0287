/* rig_test.h - what the log's tests share: a directory, a shard's turn, batches. Tests only. */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "io/posix.h"
#include "log/disk.h"
#include "log/log_manager.h"
#include "record/batch_build.h"
#include "record/control.h"
#include "sys/memory.h"

struct rig {
    struct mem mem;
    struct io *io;
    struct logs *logs;
    struct log_config config;
    struct logs_options options;
    char dir[32];
    char other[32];     /* A second directory, for moves. */
    struct uuid ids[2]; /* Of the two. */
    char said[4096];    /* What the manager said, line by line. */
};

static inline void rig_say(void *context, const char *text)
{
    struct rig *rig = context;
    size_t size = strlen(rig->said);
    (void)snprintf(rig->said + size, sizeof(rig->said) - size, "%s\n", text);
}

static inline void rig_remove(struct io *io, const char *path);

struct rig_removal {
    struct io *io;
    const char *path;
};

static inline bool rig_remove_one(void *context, const char *name)
{
    struct rig_removal *removal = context;
    rig_remove(removal->io, disk_join(removal->path, name).text);
    return true;
}

static inline void rig_remove(struct io *io, const char *path)
{
    struct io_stat stat;
    if (io_disk_stat(io, path, &stat) < 0) return;
    if (!stat.is_directory) {
        assert_int_equal(io_disk_unlink(io, path), 0);
        return;
    }
    struct rig_removal removal = {io, path};
    assert_int_equal(io_disk_list(io, path, rig_remove_one, &removal), 0);
    assert_int_equal(io_disk_rmdir(io, path), 0);
}

/* Start the manager on the rig's directory. */
static inline void rig_start(struct rig *rig)
{
    const char *const paths[] = {rig->dir};
    rig->options.paths = paths;
    rig->options.path_count = 1;
    rig->options.node_id = 1;
    rig->options.config = rig->config;
    rig->options.unsynced_max_bytes = 4u << 20;
    rig->options.say = rig_say;
    rig->options.context = rig;
    assert_int_equal(logs_open(rig->io, &rig->options, &rig->logs), LOGS_OK);
}

static inline int rig_open(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    memory_init(&rig->mem, 0);
    rig->io = posix_new(&rig->mem);
    assert_non_null(rig->io);
    (void)snprintf(rig->dir, sizeof(rig->dir), "/tmp/dohle-log-XXXXXX");
    assert_non_null(mkdtemp(rig->dir));
    struct log_meta meta = {.cluster_id = "MkU3OEVBNTcwNTJENDM2Qk", .node_id = 1, .version = 1};
    meta.directory_id = io_random_uuid(rig->io);
    assert_int_equal(log_meta_write(rig->io, rig->dir, &meta), 0);
    rig->config = LOG_CONFIG_DEFAULT;
    rig->config.timestamp_after_max_ms = INT64_MAX;
    rig->config.producer_id_expiration_ms = INT64_MAX;
    rig->config.segment_ms = INT64_MAX;
    rig_start(rig);
    *state = rig;
    return 0;
}

static inline void rig_turn(struct rig *rig)
{
    int64_t until = logs_turn(rig->logs);
    io_turn(rig->io, MIN(until, io_now_ms(rig->io) + 20));
}

/* Until nothing is in flight. */
static inline void rig_settle(struct rig *rig)
{
    rig_turn(rig);
    for (int i = 0; i < 10000 && !logs_idle(rig->logs); i++)
        rig_turn(rig);
    assert_true(logs_idle(rig->logs));
}

/* A clean stop. */
static inline void rig_stop(struct rig *rig)
{
    logs_stop(rig->logs);
    rig_settle(rig);
    logs_close(rig->logs, 77);
    rig->logs = NULL;
}

/* What a crash of the process leaves: the files as they are. */
static inline void rig_crash(struct rig *rig)
{
    rig_settle(rig);
    logs_abandon(rig->logs);
    rig->logs = NULL;
}

static inline int rig_close(void **state)
{
    struct rig *rig = *state;
    if (rig->logs != NULL) rig_stop(rig);
    if (getenv("RIG_SAID") != NULL) print_message("%s", rig->said);
    rig_remove(rig->io, rig->dir);
    io_free(rig->io);
    assert_int_equal(rig->mem.used_bytes, 0);
    free(rig);
    return 0;
}

/* The log "t-0", open. */
static inline struct log *rig_log(struct rig *rig)
{
    struct logs_replica replica = {
        .topic = VIEW("t"),
        .topic_id = {{0, 17, 34, 51, 68, 85, 102, 119, 136, 153, 170, 187, 204, 221, 238, 255}},
        .config = &rig->config,
        .directory = LOG_DIRECTORY_ANY,
        .is_new = true,
    };
    struct log *log;
    assert_int_equal(logs_replica(rig->logs, &replica, &log), LOG_OK);
    int result;
    for (int i = 0; i < 1000 && (result = log_open(log)) == LOG_LATER; i++)
        rig_turn(rig);
    assert_int_equal(result, LOG_OK);
    return log;
}

/* What a batch is made of: `count` records with keys "k0".. and values of `value_bytes`. */
struct rig_batch {
    int32_t count;
    uint32_t value_bytes;
    int64_t timestamp_ms; /* Of the first; the next ones a millisecond later each. */
    int64_t producer_id;  /* 0: none. */
    int16_t epoch;
    int32_t sequence;
    bool transactional;
    enum codec codec;
    int32_t key_from; /* First key's number. */
    bool tombstones;  /* Null values. */
};

static inline struct buf *rig_batch(struct rig *rig, const struct rig_batch *what)
{
    struct sink out;
    struct compress_work work;
    compress_work_init(&work, &rig->mem);
    sink_init(&out, &rig->mem, UINT32_MAX);
    struct batch_build_options options = batch_build_plain;
    options.codec = what->codec;
    options.level = COMPRESS_LEVEL_DEFAULT;
    options.transactional = what->transactional;
    if (what->producer_id > 0) {
        options.producer_id = what->producer_id;
        options.producer_epoch = what->epoch;
        options.base_sequence = what->sequence;
    }
    struct batch_build build;
    batch_build_begin(&build, &work, &out, &options);
    uint8_t *value = calloc(1, what->value_bytes + 1);
    memset(value, 'v', what->value_bytes);
    for (int32_t i = 0; i < what->count; i++) {
        char key[16];
        int size = snprintf(key, sizeof(key), "k%d", what->key_from + i);
        struct record_input record = {
            .timestamp_ms = what->timestamp_ms < 0 ? -1 : what->timestamp_ms + i,
            .key = view_of(key, (uint32_t)size),
            .value = what->tombstones ? VIEW_NULL : view_of(value, what->value_bytes),
        };
        batch_build_add(&build, &record);
    }
    struct view batch;
    assert_int_equal(batch_build_finish(&build, -1, &batch), RECORD_OK);
    struct buf *buf = buf_new(io_mem(rig->io), batch.size);
    if (buf != NULL) memcpy(buf->data, batch.data, batch.size);
    free(value);
    sink_free(&out);
    compress_work_free(&work);
    return buf;
}

static inline int rig_append_buf(struct log *log, struct buf *buf, struct log_appended *out)
{
    struct log_append in = {
        .buf = buf,
        .size_bytes = buf->size_bytes,
        .leader_epoch = MAX(log_epoch_latest(log), 0),
        .wall_ms = 1700000009999,
        .origin = LOG_CLIENT,
        .produce_version = INT16_MAX,
    };
    int result = log_append(log, &in, out);
    buf_release(buf);
    return result;
}

static inline int64_t rig_append(struct rig *rig, struct log *log, const struct rig_batch *what)
{
    struct log_appended out;
    assert_int_equal(rig_append_buf(log, rig_batch(rig, what), &out), LOG_OK);
    return out.offset_first;
}

/* `count` appends of one record each, whose batch has `batch_bytes`, with times 1000, 1001, ... */
static inline void rig_fill(struct rig *rig, struct log *log, int count, uint32_t batch_bytes)
{
    for (int i = 0; i < count; i++) {
        struct rig_batch what = {.count = 1, .timestamp_ms = 1000 + log_end_assigned(log)};
        struct buf *probe = rig_batch(rig, &what);
        uint32_t bare = probe->size_bytes;
        buf_release(probe);
        what.value_bytes = batch_bytes > bare ? batch_bytes - bare : 0;
        if (what.value_bytes >= 64)
            what.value_bytes -= 2; /* Its length takes a byte more, twice. */
        rig_append(rig, log, &what);
        if (i % 256 == 255) rig_settle(rig);
    }
    rig_settle(rig);
}

static inline struct buf *rig_marker_buf(struct rig *rig,
                                         int64_t producer_id,
                                         int16_t epoch,
                                         bool commit)
{
    struct buf *buf = buf_new(io_mem(rig->io), CONTROL_MARKER_BYTES);
    if (buf == NULL) return NULL;
    struct control_marker_batch marker = {
        .leader_epoch = -1,
        .producer_id = producer_id,
        .producer_epoch = epoch,
        .timestamp_ms = 1700000000000,
        .marker = {.commit = commit, .coordinator_epoch = 7}
    };
    uint8_t bytes[CONTROL_MARKER_BYTES];
    control_marker_store(&marker, bytes);
    memcpy(buf->data, bytes, sizeof(bytes));
    return buf;
}

static inline void rig_marker(struct rig *rig,
                              struct log *log,
                              int64_t producer_id,
                              int16_t epoch,
                              bool commit)
{
    struct buf *buf = rig_marker_buf(rig, producer_id, epoch, commit);
    struct log_append in = {.buf = buf,
                            .size_bytes = buf->size_bytes,
                            .wall_ms = 1700000009999,
                            .origin = LOG_COORDINATOR,
                            .produce_version = INT16_MAX};
    struct log_appended out;
    assert_int_equal(log_append(log, &in, &out), LOG_OK);
    buf_release(buf);
}

/* A whole file's bytes, to be freed with disk_free. */
static inline struct disk_bytes rig_file(struct rig *rig, const char *name)
{
    struct disk_bytes bytes;
    struct disk_path folder = disk_join(rig->dir, "t-0");
    int error = disk_read_whole(rig->io, io_mem(rig->io), disk_join(folder.text, name).text,
                                1u << 30, &bytes);
    if (error != 0) print_message("%s: %s\n%s", name, strerror(-error), rig->said);
    assert_int_equal(error, 0);
    return bytes;
}

static inline int64_t rig_file_size(struct rig *rig, const char *name)
{
    struct io_stat stat;
    struct disk_path folder = disk_join(rig->dir, "t-0");
    if (io_disk_stat(rig->io, disk_join(folder.text, name).text, &stat) < 0) return -1;
    return (int64_t)stat.size_bytes;
}

/* Read, waiting for what is not in memory. */
static inline int rig_read(struct rig *rig,
                           struct log *log,
                           const struct log_read *in,
                           struct log_range *out)
{
    int result;
    for (int i = 0; i < 1000; i++) {
        result = log_read(log, in, out);
        if (result != LOG_LATER) return result;
        rig_turn(rig);
    }
    return result;
}

/* All record offsets from `offset` on are there, in order, to the written end: returns how many
 * records were read. */
static inline int64_t rig_read_all(struct rig *rig, struct log *log, int64_t offset)
{
    int64_t records = 0;
    struct compress_work work;
    compress_work_init(&work, &rig->mem);
    while (offset < log_end_written(log)) {
        struct log_read in = {offset, INT64_MAX, 64 * 1024, true};
        struct log_range range;
        assert_int_equal(rig_read(rig, log, &in, &range), LOG_OK);
        assert_true(range.size_bytes > 0);
        uint8_t *bytes = malloc(range.size_bytes);
        assert_int_equal(io_disk_read(rig->io, range.file, bytes, range.size_bytes, range.at_bytes),
                         range.size_bytes);
        struct batch_scan scan = batch_scan_of(view_of(bytes, range.size_bytes));
        struct batch_header header;
        struct view batch;
        bool first = true;
        while (batch_next(&scan, &header, &batch)) {
            assert_true(batch_crc_valid(&header, batch));
            if (first) assert_int_equal(header.base_offset, range.offset_first);
            if (first) assert_true(batch_last_offset(&header) >= offset);
            first = false;
            offset = batch_last_offset(&header) + 1;
            records += header.record_count;
        }
        assert_int_equal(scan.at, range.size_bytes); /* Whole batches. */
        assert_int_equal(offset, range.offset_next);
        free(bytes);
        log_range_release(&range);
    }
    compress_work_free(&work);
    return records;
}

/* The aborted transactions in [offset, offset_end), waiting for what has to be read first. */
static inline int rig_aborted(struct rig *rig,
                              struct log *log,
                              const struct log_read *in,
                              struct log_aborted out[16],
                              uint32_t *count)
{
    int result = LOG_LATER;
    for (int i = 0; i < 1000 && result == LOG_LATER; i++) {
        result = log_aborted_in(log, in, out, 16, count);
        if (result == LOG_LATER) rig_turn(rig);
    }
    return result;
}

/* A query whose answer has come says so by having no `done` any more. */
static inline void rig_answered(struct log_query *query)
{
    query->done = NULL;
}

/* Look up an offset by time, waiting for the answer: its result. */
static inline int rig_ask(struct rig *rig,
                          struct log *log,
                          int64_t timestamp_ms,
                          struct log_query *query)
{
    *query = (struct log_query){.log = log, .timestamp_ms = timestamp_ms, .done = rig_answered};
    log_query_start(query);
    for (int i = 0; i < 1000 && query->done != NULL; i++)
        rig_turn(rig);
    assert_null(query->done);
    return query->result;
}
