/* log.c - what the log costs beside its floor, the same bytes through bare system calls.
 *
 *   log append DIR RECORD BATCH TOTAL    append TOTAL bytes in batches of BATCH, records of RECORD
 * bytes log write DIR RECORD BATCH TOTAL     the floor: the same batches by pwritev, a thread that
 * syncs log read DIR RECORD BATCH TOTAL      read them back from the start, a MiB at a time, to a
 * socket log send DIR RECORD BATCH TOTAL      the floor: bare sendfile log commit DIR LOGS ROUNDS
 * FOREIGN   one small batch to each of LOGS logs, durable; before each round FOREIGN bytes of
 * another file are dirty log open DIR LOGS BYTES UNMARKED     LOGS logs of BYTES each: start after
 * a clean stop, one append to each; then a kill with UNMARKED bytes in one of them above what the
 * recovery points say: start, first append, all recovered
 *
 * DIR is made and must not be there. Prints `name value` lines. CPU is of the whole process, but
 * for read and send, where it is the shard's own thread (the other one only empties the socket). */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io/posix.h"
#include "log/log_manager.h"
#include "record/batch_build.h"
#include "sys/memory.h"

/* Batches in flight: few enough to be in the cache, as what a socket has just brought is. */
#define BUFS_MAX   128u
#define BUFS_BYTES (6u * 1024u * 1024u)

struct bench {
    struct mem mem;
    struct io *io;
    struct logs *logs;
    struct log_config config;
    const char *dir;
    struct buf *bufs[BUFS_MAX];
    uint32_t buf_count;
    uint32_t next;
    uint32_t batch_bytes;
    int32_t batch_records;
    bool rising; /* Each batch is later than the one before. */
    int64_t later_ms;
};

static _Noreturn void fail(const char *what, long long value)
{
    fprintf(stderr, "bench: %s: %lld\n", what, value);
    exit(1);
}

static void bench_says(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "bench: %s\n", text);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double cpu(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* ---- the log --------------------------------------------------------------------------------- */

static void start(struct bench *bench)
{
    const char *const paths[] = {bench->dir};
    struct logs_options options = {
        .paths = paths, .path_count = 1, .node_id = 1, .config = bench->config, .say = bench_says};
    int result = logs_open(bench->io, &options, &bench->logs);
    if (result != LOGS_OK) fail("open", result);
}

static void begin(struct bench *bench, const char *dir)
{
    memory_init(&bench->mem, 0);
    bench->io = posix_new(&bench->mem);
    bench->dir = dir;
    bench->config = LOG_CONFIG_DEFAULT;
    bench->config.timestamp_after_max_ms = INT64_MAX;
    bench->config.max_message_bytes = 64u << 20;
    struct log_meta meta = {.cluster_id = "MkU3OEVBNTcwNTJENDM2Qk", .node_id = 1, .version = 1};
    meta.directory_id = io_random_uuid(bench->io);
    if (mkdir(dir, 0755) != 0) fail("mkdir", errno);
    if (log_meta_write(bench->io, dir, &meta) != 0) fail("format", 0);
    start(bench);
}

static void turn(struct bench *bench, int64_t wait_ms)
{
    int64_t until = logs_turn(bench->logs);
    io_turn(bench->io, MIN(until, io_now_ms(bench->io) + wait_ms));
}

static void settle(struct bench *bench)
{
    int64_t until = logs_turn(bench->logs);
    while (!logs_idle(bench->logs)) { /* A turn of the logs may have been the last thing to do. */
        io_turn(bench->io, MIN(until, io_now_ms(bench->io) + 100));
        until = logs_turn(bench->logs);
    }
}

static void stop(struct bench *bench)
{
    logs_stop(bench->logs);
    settle(bench);
    logs_close(bench->logs, 1);
}

static struct log *use_log(struct bench *bench, int32_t partition)
{
    struct logs_replica replica = {.topic = VIEW("bench"),
                                   .partition = partition,
                                   .topic_id = {{1, 2, 3, 4}},
                                   .config = &bench->config,
                                   .directory = LOG_DIRECTORY_ANY,
                                   .is_new = true};
    struct log *log;
    int result = logs_replica(bench->logs, &replica, &log);
    if (result != LOG_OK) fail("replica", result);
    return log;
}

static void open_log(struct bench *bench, struct log *log)
{
    int result;
    while ((result = log_open(log)) == LOG_LATER)
        turn(bench, 100);
    if (result != LOG_OK) fail("log", result);
}

/* The batches that are appended again and again: each takes its offsets anew. */
static void make_batches(struct bench *bench, uint32_t record_bytes, uint32_t batch_bytes)
{
    struct sink out;
    struct compress_work work;
    compress_work_init(&work, &bench->mem);
    sink_init(&out, &bench->mem, UINT32_MAX);
    struct batch_build_options options = batch_build_plain;
    struct batch_build build;
    batch_build_begin(&build, &work, &out, &options);
    uint8_t *value = calloc(1, record_bytes);
    for (uint32_t i = 0; i < record_bytes; i++)
        value[i] = (uint8_t)(i * 31);
    uint32_t count = MAX(1u, batch_bytes / (record_bytes + 8));
    for (uint32_t i = 0; i < count; i++) {
        struct record_input record = {.timestamp_ms = 1700000000000 + i,
                                      .key = VIEW_NULL,
                                      .value = view_of(value, record_bytes)};
        batch_build_add(&build, &record);
    }
    struct view batch;
    if (batch_build_finish(&build, -1, &batch) != RECORD_OK) fail("batch", 0);
    bench->batch_bytes = batch.size;
    bench->batch_records = (int32_t)count;
    bench->buf_count = MIN(BUFS_MAX, MAX(5u, BUFS_BYTES / batch.size));
    for (uint32_t i = 0; i < bench->buf_count; i++) {
        bench->bufs[i] = buf_new(&bench->mem, batch.size);
        if (bench->bufs[i] == NULL) fail("memory", 0);
        memcpy(bench->bufs[i]->data, batch.data, batch.size);
    }
    free(value);
    sink_free(&out);
    compress_work_free(&work);
}

/* Move all of a batch's times. */
static void make_later(uint8_t *batch, uint32_t size, int64_t to_ms)
{
    int64_t base_ms = (int64_t)load_be64(batch + BATCH_AT_BASE_TIMESTAMP);
    int64_t max_ms = (int64_t)load_be64(batch + BATCH_AT_MAX_TIMESTAMP) + to_ms - base_ms;
    store_be64(batch + BATCH_AT_BASE_TIMESTAMP, (uint64_t)to_ms);
    (void)batch_set_timestamp(batch, size, false, max_ms);
}

/* Append one batch; waits while none is free or the log is busy. */
static void append(struct bench *bench, struct log *log)
{
    struct buf *buf = bench->bufs[bench->next++ % bench->buf_count];
    while (buf->references > 1)
        turn(bench, 100);
    batch_stamp(buf->data, 0, -1); /* As a producer sends it. */
    if (bench->rising)
        make_later(buf->data, buf->size_bytes, 1700000000000 + ++bench->later_ms * 1000);
    struct log_append in = {.buf = buf,
                            .size_bytes = buf->size_bytes,
                            .wall_ms = io_wall_ms(bench->io),
                            .origin = LOG_CLIENT,
                            .produce_version = INT16_MAX};
    struct log_appended out;
    int result;
    while ((result = log_append(log, &in, &out)) == LOG_LATER || result == LOG_E_BUSY)
        turn(bench, 100);
    if (result != LOG_OK) fail("append", result);
}

/* ---- append and its floor -------------------------------------------------------------------- */

static void tell(const struct bench *bench, double seconds, uint64_t bytes)
{
    double records = (double)bytes / bench->batch_bytes * bench->batch_records;
    printf("cpu_s_per_gb %.4f\ncpu_s_per_million %.4f\n", seconds * 1e9 / (double)bytes,
           seconds * 1e6 / records);
}

static void run_append(struct bench *bench, uint64_t total)
{
    struct log *log = use_log(bench, 0);
    open_log(bench, log);
    double before = cpu(RUSAGE_SELF);
    uint64_t bytes = 0;
    for (uint32_t i = 1; bytes < total; i++, bytes += bench->batch_bytes) {
        append(bench, log);
        if (i % 4 == 0) turn(bench, 0); /* A few frames a wake-up. */
    }
    settle(bench);
    tell(bench, cpu(RUSAGE_SELF) - before, bytes);
    struct log_dir_info info;
    logs_dir_info(bench->logs, 0, &info);
    printf("commits %llu\n", (unsigned long long)info.commits);
}

struct floor_file {
    int fd;
    atomic_bool dirty, over;
    uint64_t syncs;
};

static void *floor_sync(void *argument)
{
    struct floor_file *file = argument;
    while (!file->over) {
        if (!atomic_exchange(&file->dirty, false)) {
            usleep(200);
            continue;
        }
        if (fdatasync(file->fd) != 0) fail("fdatasync", errno);
        file->syncs++;
    }
    return NULL;
}

static void run_write(struct bench *bench, uint64_t total)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/floor", bench->dir);
    struct floor_file file = {.fd = open(path, O_RDWR | O_CREAT, 0644)};
    pthread_t thread;
    if (pthread_create(&thread, NULL, floor_sync, &file) != 0) fail("thread", 0);
    double before = cpu(RUSAGE_SELF);
    uint64_t bytes = 0;
    while (bytes < total) {
        struct iovec iov[4]; /* As many batches a call as the log gets a turn. */
        for (uint32_t i = 0; i < 4; i++)
            iov[i] = (struct iovec){bench->bufs[bench->next++ % bench->buf_count]->data,
                                    bench->batch_bytes};
        if (pwritev(file.fd, iov, 4, (off_t)bytes) != (ssize_t)(4 * (size_t)bench->batch_bytes))
            fail("pwritev", errno);
        bytes += 4 * (uint64_t)bench->batch_bytes;
        file.dirty = true;
    }
    while (file.dirty)
        usleep(1000);
    file.over = true;
    pthread_join(thread, NULL);
    tell(bench, cpu(RUSAGE_SELF) - before, bytes);
    printf("commits %llu\n", (unsigned long long)file.syncs);
    close(file.fd);
}

/* ---- read and its floor ---------------------------------------------------------------------- */

static void *drain(void *argument)
{
    int fd = *(int *)argument;
    static uint8_t bytes[1 << 20];
    while (recv(fd, bytes, sizeof(bytes), MSG_TRUNC) > 0)
        ;
    return NULL;
}

/* A connection over loopback whose other end a thread empties. */
static int connect_drain(int *other)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0 ||
        connect(fd, (struct sockaddr *)&address, size) != 0)
        fail("connect", errno);
    *other = accept(listener, NULL, NULL);
    close(listener);
    pthread_t thread;
    if (pthread_create(&thread, NULL, drain, other) != 0) fail("thread", 0);
    return fd;
}

static void send_range(int to, int from, uint64_t at, uint64_t size)
{
    off_t offset = (off_t)at;
    while (size > 0) {
        ssize_t sent = sendfile(to, from, &offset, size);
        if (sent <= 0) fail("sendfile", errno);
        size -= (uint64_t)sent;
    }
}

static void fill(struct bench *bench, struct log *log, uint64_t total)
{
    for (uint64_t bytes = 0; bytes < total; bytes += bench->batch_bytes) {
        append(bench, log);
        turn(bench, 0);
    }
    settle(bench);
}

static void run_read(struct bench *bench, uint64_t total, bool bare)
{
    struct log *log = use_log(bench, 0);
    open_log(bench, log);
    fill(bench, log, total);
    int other, to = connect_drain(&other);
    uint64_t bytes = 0;
    double before = cpu(RUSAGE_THREAD);
    for (int64_t offset = 0; offset < log_end_durable(log);) {
        struct log_read in = {offset, INT64_MAX, 1 << 20, true};
        struct log_range range;
        int result;
        while ((result = log_read(log, &in, &range)) == LOG_LATER)
            turn(bench, 100);
        if (result != LOG_OK || range.size_bytes == 0) fail("read", result);
        if (bare && offset == 0) before = cpu(RUSAGE_THREAD);
        if (!bare && io_disk_cached(bench->io, range.file, range.at_bytes, range.size_bytes) == 0)
            fail("not in the page cache", 0);
        uint64_t size = bare ? log_size_bytes(log) : range.size_bytes;
        send_range(to, posix_fd(range.file), range.at_bytes, MIN(size, (uint64_t)1 << 30));
        bytes += size;
        offset = bare ? INT64_MAX : range.offset_next;
        log_range_release(&range);
    }
    tell(bench, cpu(RUSAGE_THREAD) - before, bytes);
    close(to);
}

/* ---- commits --------------------------------------------------------------------------------- */

static void dirty_other(const struct bench *bench, uint64_t bytes)
{
    char path[4096];
    static uint8_t block[1 << 20];
    (void)snprintf(path, sizeof(path), "%s/foreign", bench->dir);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (uint64_t at = 0; at < bytes; at += sizeof(block))
        if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block)) fail("write", errno);
    close(fd);
}

static void run_commit(struct bench *bench, int32_t count, int rounds, uint64_t foreign)
{
    struct log **logs = calloc((size_t)count, sizeof(struct log *));
    for (int32_t i = 0; i < count; i++) {
        logs[i] = use_log(bench, i);
        open_log(bench, logs[i]);
        append(bench, logs[i]);
    }
    settle(bench);
    struct log_dir_info first, last;
    logs_dir_info(bench->logs, 0, &first);
    double spent = 0, cpu_spent = 0;
    for (int round = 0; round < rounds; round++) {
        if (foreign > 0) dirty_other(bench, foreign);
        double before = now(), cpu_before = cpu(RUSAGE_SELF);
        for (int32_t i = 0; i < count; i++)
            append(bench, logs[i]);
        settle(bench);
        spent += now() - before;
        cpu_spent += cpu(RUSAGE_SELF) - cpu_before;
    }
    logs_dir_info(bench->logs, 0, &last);
    printf("ms_per_round %.3f\ncpu_ms_per_round %.3f\ncommits %llu\n", spent * 1e3 / rounds,
           cpu_spent * 1e3 / rounds, (unsigned long long)(last.commits - first.commits));
    free(logs);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void make_logs(struct bench *bench, int32_t count, uint64_t bytes)
{
    for (int32_t i = 0; i < count; i++) {
        struct log *log = use_log(bench, i);
        for (uint64_t at = 0; at == 0 || at < bytes; at += bench->batch_bytes) {
            append(bench, log);
            if (bytes > bench->batch_bytes) turn(bench, 0);
        }
        if (i % 500 == 499) settle(bench);
    }
    settle(bench);
}

static void tell_open_files(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    int count = 0;
    for (int fd = 0; fd < (int)MIN(limit.rlim_cur, 65536u); fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    printf("open_files %d\n", count);
}

static void run_clean_start(struct bench *bench, int32_t count)
{
    double before = now(), cpu_before = cpu(RUSAGE_SELF);
    start(bench);
    printf("clean_start_s %.4f\nclean_start_cpu_s %.4f\n", now() - before,
           cpu(RUSAGE_SELF) - cpu_before);
    before = now();
    cpu_before = cpu(RUSAGE_SELF);
    for (int32_t i = 0; i < count; i++)
        (void)!log_open(use_log(bench, i));
    printf("ask_all_s %.4f\n", now() - before);
    for (int32_t i = 0; i < count; i++)
        append(bench, use_log(bench, i));
    settle(bench);
    struct log_dir_info info;
    logs_dir_info(bench->logs, 0, &info);
    printf("append_each_s %.4f\nappend_each_cpu_s %.4f\ncommits %llu\ncommit_files %llu\n",
           now() - before, cpu(RUSAGE_SELF) - cpu_before, (unsigned long long)info.commits,
           (unsigned long long)info.commit_files);
    tell_open_files();
}

/* As after a power cut: nothing is in the page cache. Root's. */
static void drop_caches(void)
{
    int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
    sync();
    if (fd < 0 || write(fd, "1", 1) != 1) fail("drop caches", errno);
    close(fd);
}

static void run_unclean_start(struct bench *bench, int32_t count, uint64_t unmarked)
{
    for (uint64_t at = 0; at < unmarked; at += bench->batch_bytes) {
        append(bench, use_log(bench, count / 2));
        turn(bench, 0);
    }
    settle(bench);
    logs_abandon(bench->logs);
    if (getenv("BENCH_COLD") != NULL) drop_caches();
    double before = now(), cpu_before = cpu(RUSAGE_SELF);
    start(bench);
    printf("unclean_start_s %.4f\n", now() - before);
    turn(bench, 0); /* The recovery in the background has begun. */
    append(bench, use_log(bench, count / 2));
    while (log_end_durable(use_log(bench, count / 2)) < log_end_assigned(use_log(bench, count / 2)))
        turn(bench, 100);
    uint64_t scanned_bytes = log_recovered(use_log(bench, count / 2))->scanned_bytes;
    printf("first_append_s %.4f\nfirst_scanned_mib %.1f\n", now() - before,
           (double)scanned_bytes / 1048576);
    struct log_dir_info info;
    do {
        turn(bench, 100);
        logs_dir_info(bench->logs, 0, &info);
    } while (info.unrecovered > 0);
    double recovered = now() - before, recovery_cpu = cpu(RUSAGE_SELF) - cpu_before;
    uint64_t scanned = 0;
    for (int32_t i = 0; i < count; i++)
        scanned += log_recovered(use_log(bench, i))->scanned_bytes;
    printf("all_recovered_s %.4f\nrecovery_cpu_s %.4f\nscanned_mib %.1f\n", recovered, recovery_cpu,
           (double)scanned / 1048576);
}

int main(int count, char **a)
{
    static struct bench bench;
    if (count != 6) fail("usage: see the head of bench/log.c", 0);
    begin(&bench, a[2]);
    uint64_t n[3] = {strtoull(a[3], NULL, 10), strtoull(a[4], NULL, 10), strtoull(a[5], NULL, 10)};
    bool opens = strcmp(a[1], "open") == 0, commits = strcmp(a[1], "commit") == 0;
    if (opens || commits)
        make_batches(&bench, 100, opens && n[1] >= 1 << 20 ? 16384 : 1);
    else
        make_batches(&bench, (uint32_t)n[0], (uint32_t)n[1]);
    if (strcmp(a[1], "append") == 0)
        run_append(&bench, n[2]);
    else if (strcmp(a[1], "write") == 0)
        run_write(&bench, n[2]);
    else if (strcmp(a[1], "read") == 0)
        run_read(&bench, n[2], false);
    else if (strcmp(a[1], "send") == 0)
        run_read(&bench, n[2], true);
    else if (commits)
        run_commit(&bench, (int32_t)n[0], (int)n[1], n[2]);
    else if (opens) {
        bench.rising = true;
        make_logs(&bench, (int32_t)n[0], n[1]);
        stop(&bench);
        run_clean_start(&bench, (int32_t)n[0]);
        run_unclean_start(&bench, (int32_t)n[0], n[2]);
    } else
        fail("no such benchmark", 0);
    stop(&bench);
    return 0;
}
