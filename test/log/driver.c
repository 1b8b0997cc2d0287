/* driver.c - drives one log directory by a script on standard input, for the tests that let others
 * judge what lies on the disk, or that kill it.
 *
 *   driver DIR [crash] < script     (crash: end without a stop when the script ends)
 *
 * One command a line:
 *   set NAME VALUE          before `log`: segment_bytes, compact, append_time, lag_ms...
 *   log TOPIC PARTITION TOPIC_ID          choose a log; it is opened
 *   append COUNT VALUE_BYTES CODEC KEY_FROM TIMESTAMP_MS
 *   produce COUNT PRODUCER EPOCH SEQUENCE TXN(0|1) KEY_FROM TIMESTAMP_MS
 *   marker PRODUCER EPOCH COMMIT(0|1)
 *   delete KEY TIMESTAMP_MS               a tombstone
 *   settle                  all durable; prints "durable END"
 *   watermark               the high watermark to the end
 *   roll | clean | truncate OFFSET | start OFFSET
 *   dump                    prints "batch BASE LAST CRC" for each batch, then "end START END"
 * `durable` lines are acknowledgements: a test that kills the driver holds them against the disk.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/posix.h"
#include "log/log_manager.h"
#include "record/batch_build.h"
#include "record/control.h"
#include "sys/memory.h"

struct driver {
    struct mem mem;
    struct io *io;
    struct logs *logs;
    struct log *log;
    struct log_config config;
    struct compress_work work;
};

static _Noreturn void fail(const char *what, long long value)
{
    fprintf(stderr, "driver: %s: %lld\n", what, value);
    exit(1);
}

static void say(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "driver: %s\n", text);
}

static void turn(struct driver *driver)
{
    int64_t until = logs_turn(driver->logs);
    io_turn(driver->io, MIN(until, io_now_ms(driver->io) + 5));
}

static void settle(struct driver *driver)
{
    turn(driver);
    for (int i = 0; i < 20000 && !logs_idle(driver->logs); i++)
        turn(driver);
    if (!logs_idle(driver->logs)) fail("does not come to rest", 0);
}

static void use_log(struct driver *driver, const char *topic, int partition, const char *id)
{
    struct logs_replica replica = {
        .topic = view_of_string(topic),
        .partition = partition,
        .config = &driver->config,
        .directory = LOG_DIRECTORY_ANY,
        .is_new = true,
    };
    if (!log_uuid_parse(view_of_string(id), &replica.topic_id)) fail("topic id", 0);
    int result = logs_replica(driver->logs, &replica, &driver->log);
    if (result != LOG_OK) fail("replica", result);
    while ((result = log_open(driver->log)) == LOG_LATER)
        turn(driver);
    if (result != LOG_OK) fail("open", result);
}

static void append_bytes(struct driver *driver, struct view bytes, enum log_origin origin)
{
    struct buf *buf = buf_new(&driver->mem, bytes.size);
    if (buf == NULL) fail("memory", 0);
    struct log_append in = {
        .buf = buf,
        .size_bytes = bytes.size,
        .leader_epoch = MAX(log_epoch_latest(driver->log), 0),
        .wall_ms = io_wall_ms(driver->io),
        .origin = origin,
        .produce_version = INT16_MAX,
    };
    struct log_appended out;
    int result;
    for (;;) {
        memcpy(buf->data, bytes.data, bytes.size);
        result = log_append(driver->log, &in, &out);
        if (result != LOG_E_BUSY && result != LOG_LATER) break;
        turn(driver);
    }
    if (result != LOG_OK) fail("append", result * 1000 + (int)out.fault);
    buf_release(buf);
}

/* A batch of `count` records with keys "kN" and values of `value_bytes`; -1: tombstones. */
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

static void append(struct driver *driver, const struct batch_text *text)
{
    static char value[65536];
    struct sink out;
    sink_init(&out, &driver->mem, UINT32_MAX);
    struct batch_build_options options = batch_build_plain;
    options.codec = (enum codec)text->codec;
    options.transactional = text->transactional != 0;
    if (text->producer_id > 0) {
        options.producer_id = text->producer_id;
        options.producer_epoch = (int16_t)text->epoch;
        options.base_sequence = text->sequence;
    }
    struct batch_build build;
    batch_build_begin(&build, &driver->work, &out, &options);
    for (int i = 0; i < text->count; i++) {
        char key[24];
        int size = snprintf(key, sizeof(key), "k%d", text->key_from + i);
        struct record_input record = {.timestamp_ms = text->timestamp_ms + i,
                                      .key = view_of(key, (uint32_t)size),
                                      .value = VIEW_NULL};
        if (text->value_bytes >= 0) {
            int bytes = MIN(text->value_bytes, (int)sizeof(value));
            for (int at = 0; at < bytes; at++)
                value[at] = (char)('a' + (at * 7 + i + text->key_from) % 26);
            record.value = view_of(value, (uint32_t)bytes);
        }
        batch_build_add(&build, &record);
    }
    struct view batch;
    if (batch_build_finish(&build, -1, &batch) != RECORD_OK) fail("batch", 0);
    append_bytes(driver, batch, LOG_CLIENT);
    sink_free(&out);
}

static void marker(struct driver *driver, long long producer, int epoch, int commit)
{
    uint8_t bytes[CONTROL_MARKER_BYTES];
    struct control_marker_batch batch = {
        .leader_epoch = -1,
        .producer_id = producer,
        .producer_epoch = (int16_t)epoch,
        .timestamp_ms = io_wall_ms(driver->io),
        .marker = {.commit = commit != 0},
    };
    control_marker_store(&batch, bytes);
    append_bytes(driver, view_of(bytes, sizeof(bytes)), LOG_COORDINATOR);
}

static void task_over(struct log_task *task)
{
    (void)task;
}

static void truncate_to(struct driver *driver, long long offset)
{
    struct log_task task = {.done = task_over};
    log_truncate(driver->log, offset, &task);
    while (task.result == LOG_LATER)
        turn(driver);
    if (task.result != LOG_OK) fail("truncate", task.result);
}

static void dump(struct driver *driver)
{
    int64_t offset = log_start(driver->log);
    int64_t end = log_end_written(driver->log);
    while (offset < end) {
        struct log_read in = {offset, INT64_MAX, 1 << 20, true};
        struct log_range range;
        int result;
        while ((result = log_read(driver->log, &in, &range)) == LOG_LATER)
            turn(driver);
        if (result != LOG_OK) fail("read", result);
        if (range.size_bytes == 0) break;
        uint8_t *bytes = malloc(range.size_bytes);
        if (io_disk_read(driver->io, range.file, bytes, range.size_bytes, range.at_bytes) !=
            range.size_bytes)
            fail("read bytes", 0);
        struct batch_scan scan = batch_scan_of(view_of(bytes, range.size_bytes));
        struct batch_header header;
        struct view batch;
        while (batch_next(&scan, &header, &batch)) {
            if (!batch_crc_valid(&header, batch)) fail("crc at", header.base_offset);
            printf("batch %lld %lld %u\n", (long long)header.base_offset,
                   (long long)batch_last_offset(&header), header.crc);
        }
        offset = range.offset_next;
        log_range_release(&range);
        free(bytes);
    }
    printf("end %lld %lld\n", (long long)log_start(driver->log),
           (long long)log_end_assigned(driver->log));
}

static void set(struct driver *driver, const char *name, long long value)
{
    struct log_config *config = &driver->config;
    if (strcmp(name, "segment_bytes") == 0)
        config->segment_bytes = (uint32_t)value;
    else if (strcmp(name, "index_interval") == 0)
        config->index_interval_bytes = (uint32_t)value;
    else if (strcmp(name, "compact") == 0)
        config->cleanup_compact = value != 0;
    else if (strcmp(name, "append_time") == 0)
        config->log_append_time = value != 0;
    else
        fail(name, value);
    config->cleanup_delete = !config->cleanup_compact;
}

static void command(struct driver *driver, const char *line)
{
    char name[64], id[64];
    struct batch_text t = {0};
    long long a;
    int b, c;
    if (sscanf(line, "set %63s %lld", name, &a) == 2)
        set(driver, name, a);
    else if (sscanf(line, "log %63s %d %63s", name, &b, id) == 3)
        use_log(driver, name, b, id);
    else if (sscanf(line, "append %d %d %d %d %lld", &t.count, &t.value_bytes, &t.codec,
                    &t.key_from, &t.timestamp_ms) == 5)
        append(driver, &t);
    else if (sscanf(line, "produce %d %lld %d %d %d %d %lld", &t.count, &t.producer_id, &t.epoch,
                    &t.sequence, &t.transactional, &t.key_from, &t.timestamp_ms) == 7) {
        t.value_bytes = 20;
        append(driver, &t);
    } else if (sscanf(line, "marker %lld %d %d", &a, &b, &c) == 3)
        marker(driver, a, b, c);
    else if (sscanf(line, "delete %d %lld", &t.key_from, &t.timestamp_ms) == 2) {
        t.count = 1;
        t.value_bytes = -1;
        append(driver, &t);
    } else if (strncmp(line, "settle", 6) == 0) {
        settle(driver);
        printf("durable %lld\n", (long long)log_end_durable(driver->log));
        fflush(stdout);
    } else if (strncmp(line, "watermark", 9) == 0) {
        settle(driver);
        log_set_high_watermark(driver->log, log_end_durable(driver->log));
    } else if (strncmp(line, "roll", 4) == 0) {
        settle(driver);
        if (log_roll(driver->log) != LOG_OK) fail("roll", 0);
        settle(driver);
    } else if (strncmp(line, "clean", 5) == 0) {
        for (int i = 0; i < 100; i++)
            turn(driver);
        settle(driver);
    } else if (sscanf(line, "truncate %lld", &a) == 1)
        truncate_to(driver, a);
    else if (sscanf(line, "start %lld", &a) == 1) {
        if (log_delete_records(driver->log, a) != LOG_OK) fail("start", a);
    } else if (strncmp(line, "dump", 4) == 0)
        dump(driver);
    else
        fail(line, 0);
}

int main(int count, char **arguments)
{
    if (count < 2) fail("usage: driver DIR [crash] < script", 0);
    struct driver driver = {.config = LOG_CONFIG_DEFAULT};
    memory_init(&driver.mem, 0);
    driver.io = posix_new(&driver.mem);
    driver.config.segment_ms = INT64_MAX;
    driver.config.min_cleanable_dirty_permil = 1;
    compress_work_init(&driver.work, &driver.mem);
    const char *const paths[] = {arguments[1]};
    struct log_meta meta;
    if (log_meta_read(driver.io, arguments[1], &meta) != LOG_META_OK) fail("meta.properties", 0);
    struct logs_options options = {.paths = paths,
                                   .path_count = 1,
                                   .node_id = meta.node_id,
                                   .config = driver.config,
                                   .cleaner_backoff_ms = 20,
                                   .cleaner_map_bytes = 1 << 20,
                                   .say = say};
    int result = logs_open(driver.io, &options, &driver.logs);
    if (result != LOGS_OK) fail("open directory", result);
    char line[256];
    while (fgets(line, sizeof(line), stdin) != NULL)
        command(&driver, line);
    fflush(stdout);
    if (count > 2 && strcmp(arguments[2], "crash") == 0) _exit(0);
    logs_stop(driver.logs);
    settle(&driver);
    logs_close(driver.logs, 5);
    compress_work_free(&driver.work);
    io_free(driver.io);
    return 0;
}
