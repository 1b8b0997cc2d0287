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
#include <unistd.h>

#include "drive.h"

static void use_log(struct driver *driver, const char *topic, int partition, const char *id)
{
    struct uuid topic_id;
    if (!log_uuid_parse(view_of_string(id), &topic_id)) drive_fail("topic id", 0);
    drive_log(driver, topic, partition, topic_id);
}

static void dump_batch(void *context, const struct batch_header *header, struct view batch)
{
    (void)context;
    (void)batch;
    printf("batch %lld %lld %u\n", (long long)header->base_offset,
           (long long)batch_last_offset(header), header->crc);
}

static void dump(struct driver *driver)
{
    drive_each(driver, dump_batch, NULL);
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
        drive_fail(name, value);
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
        (void)drive_append(driver, &t);
    else if (sscanf(line, "produce %d %lld %d %d %d %d %lld", &t.count, &t.producer_id, &t.epoch,
                    &t.sequence, &t.transactional, &t.key_from, &t.timestamp_ms) == 7) {
        t.value_bytes = 20;
        (void)drive_append(driver, &t);
    } else if (sscanf(line, "marker %lld %d %d", &a, &b, &c) == 3)
        (void)drive_marker(driver, a, b, c);
    else if (sscanf(line, "delete %d %lld", &t.key_from, &t.timestamp_ms) == 2) {
        t.count = 1;
        t.value_bytes = -1;
        (void)drive_append(driver, &t);
    } else if (strncmp(line, "settle", 6) == 0) {
        drive_settle(driver);
        printf("durable %lld\n", (long long)log_end_durable(driver->log));
        fflush(stdout);
    } else if (strncmp(line, "watermark", 9) == 0) {
        drive_settle(driver);
        log_set_high_watermark(driver->log, log_end_durable(driver->log));
    } else if (strncmp(line, "roll", 4) == 0) {
        drive_settle(driver);
        if (log_roll(driver->log) != LOG_OK) drive_fail("roll", 0);
        drive_settle(driver);
    } else if (strncmp(line, "clean", 5) == 0) {
        for (int i = 0; i < 100; i++)
            drive_turn(driver);
        drive_settle(driver);
    } else if (sscanf(line, "truncate %lld", &a) == 1)
        drive_truncate(driver, a);
    else if (sscanf(line, "start %lld", &a) == 1) {
        if (log_delete_records(driver->log, a) != LOG_OK) drive_fail("start", a);
    } else if (strncmp(line, "dump", 4) == 0)
        dump(driver);
    else
        drive_fail(line, 0);
}

int main(int count, char **arguments)
{
    if (count < 2) drive_fail("usage: driver DIR [crash] < script", 0);
    struct driver driver = {.config = LOG_CONFIG_DEFAULT};
    driver.config.segment_ms = INT64_MAX;
    driver.config.min_cleanable_dirty_permil = 1;
    drive_open(&driver, arguments[1]);
    char line[256];
    while (fgets(line, sizeof(line), stdin) != NULL)
        command(&driver, line);
    fflush(stdout);
    if (count > 2 && strcmp(arguments[2], "crash") == 0) _exit(0);
    drive_stop(&driver);
    return 0;
}
