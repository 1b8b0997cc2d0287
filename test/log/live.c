/* live.c - drives a log directory at random until it is killed or its power is cut, and holds what
 * is left against what it had promised. For test/powercut/powercut and test/log/run-test.
 *
 *   live write DIR VOIDS    for ever; formats an empty DIR; prints a promise a line
 *   live check DIR PROMISES VOIDS   exit 1 and a reason if one is not kept
 *
 * Partitions of topic t: 0 plain, 1 of one idempotent producer, 2 compacted, 3 with transactions,
 * truncation, DeleteRecords. Lines:
 *   b P BASE LAST CRC      the batch is durable
 *   i BASE PRODUCER SEQUENCE COUNT TIMESTAMP   in partition 1: a retry of it is a duplicate
 *   k KEY OFFSET           in partition 2, the newest record of that key
 *   c P OFFSET             will be cut at this offset: promises from there on are void
 *   s P OFFSET             the log may begin anywhere up to here
 * Each begins with the time. The last two kinds void promises: they are written to the file VOIDS
 * before the step, since a line that nobody read before a cut does not count. */
#include <inttypes.h>
#include <unistd.h>

#include "drive.h"

#define PARTITIONS  4
#define PENDING_MAX 4096
#define KEYS        8

static const struct uuid topic_id = {
    {7, 17, 34, 51, 68, 85, 102, 119}
};

struct pending {
    int partition;
    struct driven batch;
    struct batch_text text;
};

struct live {
    struct driver driver;
    struct log *logs[PARTITIONS];
    struct pending pending[PENDING_MAX];
    int pending_count;
    uint64_t state; /* Of the random numbers. */
    int64_t producer_id;
    int sequence;
    bool open_txn;
    int64_t txn_producer;
    FILE *voids;
};

static uint64_t draw(struct live *live, uint64_t below)
{
    uint64_t x = live->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % below;
}

static void configure(struct live *live, int partition)
{
    struct log_config *config = &live->driver.config;
    *config = LOG_CONFIG_DEFAULT;
    config->segment_ms = INT64_MAX;
    config->min_cleanable_dirty_permil = 1;
    config->segment_bytes = 6000;
    config->index_interval_bytes = 700;
    config->file_delete_delay_ms = 3;
    config->cleanup_compact = partition == 2;
    config->cleanup_delete = partition != 2;
}

static void open_all(struct live *live, const char *directory)
{
    configure(live, 0);
    drive_open(&live->driver, directory);
    for (int i = 0; i < PARTITIONS; i++) {
        configure(live, i);
        drive_log(&live->driver, "t", i, topic_id);
        live->logs[i] = live->driver.log;
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

static void format(const char *directory)
{
    struct mem mem;
    memory_init(&mem, 0);
    struct io *io = posix_new(&mem);
    struct log_meta meta;
    if (log_meta_read(io, directory, &meta) != LOG_META_OK) {
        meta =
            (struct log_meta){.cluster_id = "MkU3OEVBNTcwNTJENDM2Qk", .node_id = 1, .version = 1};
        meta.directory_id = io_random_uuid(io);
        char parent[4096];
        (void)snprintf(parent, sizeof(parent), "%s/..", directory);
        int error = log_meta_write(io, directory, &meta);
        if (error == 0) error = io_disk_sync_dir(io, parent);
        if (error != 0) drive_fail("format", error);
    }
    io_free(io);
}

static void promise(struct live *live, const struct pending *p)
{
    const struct driven *b = &p->batch;
    int64_t now = io_now_us(live->driver.io);
    printf("%" PRId64 " b %d %" PRId64 " %" PRId64 " %u\n", now, p->partition, b->offset_first,
           b->offset_last, b->crc);
    if (p->partition == 1)
        printf("%" PRId64 " i %" PRId64 " %lld %d %d %lld\n", now, b->offset_first,
               p->text.producer_id, p->text.sequence, p->text.count, p->text.timestamp_ms);
    for (int i = 0; p->partition == 2 && i < p->text.count; i++)
        printf("%" PRId64 " k %d %" PRId64 "\n", now, p->text.key_from + i, b->offset_first + i);
}

/* Promise what has become durable. */
static void promise_all(struct live *live)
{
    int kept = 0;
    for (int i = 0; i < live->pending_count; i++) {
        const struct pending *p = &live->pending[i];
        if (p->batch.offset_last < log_end_durable(live->logs[p->partition]))
            promise(live, p);
        else
            live->pending[kept++] = *p;
    }
    live->pending_count = kept;
    fflush(stdout);
}

static void settle(struct live *live)
{
    drive_settle(&live->driver);
    promise_all(live);
}

static void pend(struct live *live,
                 int partition,
                 const struct batch_text *text,
                 struct driven batch)
{
    if (live->pending_count == PENDING_MAX) settle(live);
    live->pending[live->pending_count++] = (struct pending){partition, batch, *text};
}

static void append(struct live *live, int partition)
{
    struct batch_text text = {
        .count = 1 + (int)draw(live, 4),
        .value_bytes = (int)draw(live, 30) == 0 ? 3000 : 20 + (int)draw(live, 300),
        .codec = partition == 1 ? 0 : (int)draw(live, 5),
        .key_from = (int)draw(live, KEYS - 4),
        .timestamp_ms = io_wall_ms(live->driver.io),
    };
    if (partition == 1) {
        text.producer_id = live->producer_id;
        text.sequence = live->sequence;
        text.value_bytes = 100; /* The checker makes the same batch again. */
        text.key_from = 0;
        live->sequence += text.count;
    }
    if (partition == 3 && live->open_txn) {
        text.producer_id = live->txn_producer;
        text.sequence = 0; /* Each producer has one batch. */
        text.transactional = 1;
    }
    live->driver.log = live->logs[partition];
    pend(live, partition, &text, drive_append(&live->driver, &text));
}

static void transaction(struct live *live)
{
    live->txn_producer = live->producer_id + 1 + (int64_t)draw(live, INT64_C(1) << 40);
    live->open_txn = true;
    append(live, 3);
    live->open_txn = false;
    if (draw(live, 2) == 0) append(live, 3);
    struct batch_text none = {0};
    live->driver.log = live->logs[3];
    pend(live, 3, &none, drive_marker(&live->driver, live->txn_producer, 0, (int)draw(live, 2)));
}

/* Of partition 3. */
static void void_from(struct live *live, char what, int64_t offset)
{
    fprintf(live->voids, "%" PRId64 " %c 3 %" PRId64 "\n", io_now_us(live->driver.io), what,
            offset);
    fflush(live->voids);
}

static void truncate_some(struct live *live)
{
    settle(live);
    struct log *log = live->logs[3];
    int64_t length = log_end_assigned(log) - log_start(log);
    if (length < 4) return;
    int64_t offset = log_end_assigned(log) - (int64_t)draw(live, (uint64_t)MIN(length, 12));
    void_from(live, 'c', offset);
    live->driver.log = log;
    drive_truncate(&live->driver, offset);
}

static void delete_some(struct live *live)
{
    settle(live);
    struct log *log = live->logs[3];
    log_set_high_watermark(log, log_end_durable(log));
    int64_t length = log_end_durable(log) - log_start(log);
    if (length < 30) return;
    int64_t offset = log_start(log) + (int64_t)draw(live, (uint64_t)length - 20);
    void_from(live, 's', offset);
    if (log_delete_records(log, offset) != LOG_OK) drive_fail("delete records", offset);
}

static void step(struct live *live)
{
    uint64_t what = draw(live, 100);
    struct log *log = live->logs[draw(live, PARTITIONS)];
    if (what < 60)
        append(live, (int)draw(live, 3));
    else if (what < 75)
        transaction(live);
    else if (what < 80)
        truncate_some(live);
    else if (what < 84)
        delete_some(live);
    else if (what < 86) {
        int rolled = log_roll(log);
        if (rolled != LOG_OK && rolled != LOG_LATER && rolled != LOG_E_BUSY)
            drive_fail("roll", rolled);
    } else if (what < 90)
        log_set_high_watermark(live->logs[2], log_end_durable(live->logs[2]));
    else
        drive_turn(&live->driver);
    if (draw(live, 4) == 0) settle(live);
    promise_all(live);
}

static _Noreturn void run_write(const char *directory, const char *voids)
{
    static struct live live;
    live.voids = fopen(voids, "a");
    if (live.voids == NULL) drive_fail("voids", 0);
    format(directory);
    open_all(&live, directory);
    live.state = io_random(live.driver.io, IO_RANDOM_IDS);
    live.producer_id = 1 + (int64_t)draw(&live, INT64_C(1) << 40);
    for (;;)
        step(&live);
}

/* ---- checking -------------------------------------------------------------------------------- */

struct promised {
    int64_t last;
    uint32_t crc;
    bool there;
};

struct check {
    struct promised *batches[PARTITIONS]; /* By base offset. */
    int64_t size[PARTITIONS];
    int64_t start_max[PARTITIONS];
    int64_t newest[KEYS]; /* -1: nothing promised. */
    int64_t found[KEYS];
    int partition;
    int64_t next;
    bool retry; /* The last idempotent promise: */
    int64_t retry_base;
    struct batch_text retry_text;
};

static _Noreturn void broken(const char *what, int partition, int64_t offset)
{
    printf("%s: partition %d, offset %" PRId64 "\n", what, partition, offset);
    exit(1);
}

static struct promised *slot(struct check *check, int partition, int64_t base)
{
    if (base >= check->size[partition]) {
        int64_t size = base * 2 + 1024;
        check->batches[partition] =
            realloc(check->batches[partition], (size_t)size * sizeof(struct promised));
        memset(check->batches[partition] + check->size[partition], 0,
               (size_t)(size - check->size[partition]) * sizeof(struct promised));
        check->size[partition] = size;
    }
    return &check->batches[partition][base];
}

static void take_line(struct check *check, const char *line)
{
    int partition, sequence, count;
    long long a, b, c;
    unsigned crc;
    if (sscanf(line, "b %d %lld %lld %u", &partition, &a, &b, &crc) == 4) {
        *slot(check, partition, a) = (struct promised){b, crc, true};
    } else if (sscanf(line, "i %lld %lld %d %d %lld", &a, &b, &sequence, &count, &c) == 5) {
        check->retry = true;
        check->retry_base = a;
        check->retry_text = (struct batch_text){.count = count,
                                                .value_bytes = 100,
                                                .timestamp_ms = c,
                                                .producer_id = b,
                                                .sequence = sequence};
    } else if (sscanf(line, "k %d %lld", &count, &a) == 2) {
        check->newest[count] = a;
    } else if (sscanf(line, "c %d %lld", &partition, &a) == 2) {
        for (int64_t i = 0; i < check->size[partition]; i++)
            if (check->batches[partition][i].there && check->batches[partition][i].last >= a)
                check->batches[partition][i].there = false;
    } else if (sscanf(line, "s %d %lld", &partition, &a) == 2) {
        check->start_max[partition] = MAX(check->start_max[partition], (int64_t)a);
    }
}

/* The next line and its time; INT64_MAX at the end. */
static int64_t next_line(FILE *file, char line[256], char **rest)
{
    if (file == NULL || fgets(line, 256, file) == NULL) return INT64_MAX;
    return strtoll(line, rest, 10);
}

static void read_promises(struct check *check, const char *promises, const char *voids)
{
    FILE *files[2] = {fopen(promises, "r"), fopen(voids, "r")};
    char lines[2][256], *rests[2];
    int64_t at[2];
    if (files[0] == NULL) drive_fail("promises", 0);
    for (int i = 0; i < 2; i++)
        at[i] = next_line(files[i], lines[i], &rests[i]);
    while (at[0] != INT64_MAX || at[1] != INT64_MAX) {
        int first = at[1] <= at[0];
        take_line(check, rests[first] + 1);
        at[first] = next_line(files[first], lines[first], &rests[first]);
    }
}

static void check_batch(void *context, const struct batch_header *header, struct view batch)
{
    struct check *check = context;
    int partition = check->partition;
    if (partition != 2 && check->next >= 0 && header->base_offset != check->next)
        broken("a hole", partition, check->next);
    if (header->base_offset < check->next) broken("out of order", partition, check->next);
    check->next = batch_last_offset(header) + 1;
    if (partition != 2) {
        struct promised *promised = slot(check, partition, header->base_offset);
        if (!promised->there) return;
        if (promised->last != batch_last_offset(header) || promised->crc != header->crc)
            broken("another batch than was promised", partition, header->base_offset);
        promised->there = false;
        return;
    }
    struct mem mem;
    memory_init(&mem, 0);
    struct compress_work work;
    compress_work_init(&work, &mem);
    struct record_iter iter;
    struct record record;
    record_iter_begin(&iter, &work, header, batch);
    while (record_next(&iter, &record)) {
        char key[24] = "";
        memcpy(key, record.key.data, MIN(record.key.size, (uint32_t)sizeof(key) - 1));
        int number = -1;
        if (sscanf(key, "k%d", &number) != 1 || number < 0 || number >= KEYS)
            broken("a key", partition, record.offset);
        check->found[number] = record.offset;
    }
    if (record_iter_end(&iter) != RECORD_OK) broken("records", partition, header->base_offset);
    compress_work_free(&work);
}

static void check_partition(struct live *live, struct check *check, int partition)
{
    struct log *log = live->logs[partition];
    int64_t start = log_start(log);
    check->partition = partition;
    check->next = -1;
    live->driver.log = log;
    if (start > check->start_max[partition]) broken("begins too high", partition, start);
    drive_each(&live->driver, check_batch, check);
    for (int64_t i = start; partition != 2 && i < check->size[partition]; i++)
        if (check->batches[partition][i].there) broken("a promised batch is gone", partition, i);
    for (int i = 0; partition == 2 && i < KEYS; i++)
        if (check->found[i] < check->newest[i])
            broken("the newest of a key is gone", partition, check->newest[i]);
}

static void run_check(char **arguments)
{
    static struct live live;
    static struct check check;
    for (int i = 0; i < KEYS; i++)
        check.newest[i] = check.found[i] = -1;
    const char *directory = arguments[2];
    read_promises(&check, arguments[3], arguments[4]);
    format(directory); /* It may have been cut before it was formatted. */
    open_all(&live, directory);
    for (int i = 0; i < PARTITIONS; i++)
        check_partition(&live, &check, i);
    /* After a clean stop a log knows the newest batch only, which may be one without a promise. */
    if (check.retry &&
        log_end_assigned(live.logs[1]) == check.retry_base + check.retry_text.count) {
        live.driver.log = live.logs[1];
        struct driven again = drive_append(&live.driver, &check.retry_text);
        if (again.result != LOG_DUPLICATE || again.offset_first != check.retry_base)
            broken("a retry is taken for new", 1, check.retry_base);
    }
    if (check.next % 3 == 0) drive_stop(&live.driver); /* At times the next start is a clean one. */
}

int main(int count, char **arguments)
{
    if (count == 4 && strcmp(arguments[1], "write") == 0) run_write(arguments[2], arguments[3]);
    if (count != 5 || strcmp(arguments[1], "check") != 0)
        drive_fail("usage: live write DIR VOIDS | live check DIR PROMISES VOIDS", 0);
    run_check(arguments);
    return 0;
}
