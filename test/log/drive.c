/* drive.c - see drive.h. */
#include "drive.h"

_Noreturn void drive_fail(const char *what, long long value)
{
    fprintf(stderr, "driver: %s: %lld\n", what, value);
    exit(1);
}

static void said(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "driver: %s\n", text);
}

void drive_turn(struct driver *driver)
{
    int64_t until = logs_turn(driver->logs);
    io_turn(driver->io, MIN(until, io_now_ms(driver->io) + 5));
}

void drive_settle(struct driver *driver)
{
    drive_turn(driver);
    for (int i = 0; i < 20000 && !logs_idle(driver->logs); i++)
        drive_turn(driver);
    if (!logs_idle(driver->logs)) drive_fail("does not come to rest", 0);
}

void drive_open(struct driver *driver, const char *directory)
{
    const char *const paths[] = {directory};
    struct log_meta meta;
    memory_init(&driver->mem, 0);
    driver->io = posix_new(&driver->mem);
    compress_work_init(&driver->work, &driver->mem);
    if (log_meta_read(driver->io, directory, &meta) != LOG_META_OK)
        drive_fail("meta.properties", 0);
    struct logs_options options = {.paths = paths,
                                   .path_count = 1,
                                   .node_id = meta.node_id,
                                   .config = driver->config,
                                   .cleaner_backoff_ms = 20,
                                   .cleaner_map_bytes = 1 << 20,
                                   .say = said};
    int result = logs_open(driver->io, &options, &driver->logs);
    if (result != LOGS_OK) drive_fail("open directory", result);
}

void drive_stop(struct driver *driver)
{
    logs_stop(driver->logs);
    drive_settle(driver);
    logs_close(driver->logs, 5);
    compress_work_free(&driver->work);
    io_free(driver->io);
}

void drive_log(struct driver *driver, const char *topic, int partition, struct uuid id)
{
    struct logs_replica replica = {
        .topic = view_of_string(topic),
        .partition = partition,
        .topic_id = id,
        .config = &driver->config,
        .directory = LOG_DIRECTORY_ANY,
        .is_new = true,
    };
    int result = logs_replica(driver->logs, &replica, &driver->log);
    if (result != LOG_OK) drive_fail("replica", result);
    while ((result = log_open(driver->log)) == LOG_LATER)
        drive_turn(driver);
    if (result != LOG_OK) drive_fail("open", result);
}

static struct driven append_bytes(struct driver *driver, struct view bytes, enum log_origin origin)
{
    struct buf *buf = buf_new(&driver->mem, bytes.size);
    if (buf == NULL) drive_fail("memory", 0);
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
        drive_turn(driver);
    }
    if (result != LOG_OK && result != LOG_DUPLICATE)
        drive_fail("append", result * 1000 + (int)out.fault);
    struct batch_header header;
    if (batch_header_load(view_of(buf->data, buf->size_bytes), &header) != RECORD_OK)
        drive_fail("header", 0);
    buf_release(buf);
    return (struct driven){result, out.offset_first, out.offset_end - 1, header.crc};
}

struct driven drive_append(struct driver *driver, const struct batch_text *text)
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
    if (batch_build_finish(&build, -1, &batch) != RECORD_OK) drive_fail("batch", 0);
    struct driven driven = append_bytes(driver, batch, LOG_CLIENT);
    sink_free(&out);
    return driven;
}

struct driven drive_marker(struct driver *driver, long long producer, int epoch, int commit)
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
    return append_bytes(driver, view_of(bytes, sizeof(bytes)), LOG_COORDINATOR);
}

static void task_over(struct log_task *task)
{
    (void)task;
}

void drive_truncate(struct driver *driver, long long offset)
{
    struct log_task task = {.done = task_over};
    log_truncate(driver->log, offset, &task);
    while (task.result == LOG_LATER)
        drive_turn(driver);
    if (task.result != LOG_OK) drive_fail("truncate", task.result);
}

void drive_each(struct driver *driver,
                void (*each)(void *context, const struct batch_header *header, struct view batch),
                void *context)
{
    int64_t offset = log_start(driver->log);
    int64_t end = log_end_written(driver->log);
    while (offset < end) {
        struct log_read in = {offset, INT64_MAX, 1 << 20, true};
        struct log_range range;
        int result;
        while ((result = log_read(driver->log, &in, &range)) == LOG_LATER)
            drive_turn(driver);
        if (result != LOG_OK) drive_fail("read", result);
        if (range.size_bytes == 0) break;
        uint8_t *bytes = malloc(range.size_bytes);
        if (io_disk_read(driver->io, range.file, bytes, range.size_bytes, range.at_bytes) !=
            range.size_bytes)
            drive_fail("read bytes", 0);
        struct batch_scan scan = batch_scan_of(view_of(bytes, range.size_bytes));
        struct batch_header header;
        struct view batch;
        while (batch_next(&scan, &header, &batch)) {
            if (!batch_crc_valid(&header, batch)) drive_fail("crc at", header.base_offset);
            each(context, &header, batch);
        }
        offset = range.offset_next;
        log_range_release(&range);
        free(bytes);
    }
}
