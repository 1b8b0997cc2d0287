/* append.c - a driver and a checker for powercut itself: one file of records.
 *
 *   append write DIR [careless|late]   append records for ever, print "N" when record N is durable
 *   append check DIR ACKS              every printed record is there, in order and whole
 *
 * A record is 64 .. 1,087 bytes: magic, number, size, then bytes that follow from the number, then
 * a sum of all before. A start scans the file and goes on after the last good record, as a log
 * does. `careless` prints without a sync: the checker must find that out. `late` syncs every 8th
 * only. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC       0x61707064u
#define RECORD_MAX  1088u
#define RECORD_HEAD 16u

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15u;
    return x ^ (x >> 29);
}

static uint64_t sum(const uint8_t *bytes, size_t size)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash;
}

/* The record with this number, always the same. Returns its size. */
static uint32_t make(uint64_t number, uint8_t out[RECORD_MAX])
{
    uint32_t magic = MAGIC, size = 64 + (uint32_t)(mix(number) % 1024) / 8 * 8;
    memcpy(out, &magic, 4);
    memcpy(out + 4, &size, 4);
    memcpy(out + 8, &number, 8);
    for (uint32_t i = RECORD_HEAD; i + 8 < size; i += 8) {
        uint64_t word = mix(number * 1000 + i);
        memcpy(out + i, &word, 8);
    }
    uint64_t check = sum(out, size - 8);
    memcpy(out + size - 8, &check, 8);
    return size;
}

/* How many whole records the file begins with; `*end` is where they end. */
static int64_t scan(int fd, uint64_t *end)
{
    uint8_t expected[RECORD_MAX], there[RECORD_MAX];
    int64_t count = 0;
    *end = 0;
    for (;;) {
        uint32_t size = make((uint64_t)count, expected);
        if (pread(fd, there, size, (off_t)*end) != (ssize_t)size) return count;
        if (memcmp(there, expected, size) != 0) return count;
        *end += size;
        count++;
    }
}

static int fail(const char *what)
{
    (void)fprintf(stderr, "append: %s: %s\n", what, strerror(errno));
    return 1;
}

static int open_in(const char *dir, int flags)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/records", dir);
    return open(path, flags | O_CLOEXEC, 0644);
}

static int sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    int result = fd < 0 ? -1 : fsync(fd);
    if (fd >= 0) close(fd);
    return result;
}

static int run_write(const char *dir, bool careless, uint32_t every)
{
    uint64_t end;
    int fd = open_in(dir, O_RDWR | O_CREAT);
    if (fd < 0) return fail("open");
    int64_t number = scan(fd, &end), printed = number;
    if (ftruncate(fd, (off_t)end) != 0) return fail("truncate");
    if (!careless && (fdatasync(fd) != 0 || sync_dir(dir) != 0)) return fail("sync");
    for (;; number++) {
        uint8_t record[RECORD_MAX];
        uint32_t size = make((uint64_t)number, record);
        if (pwrite(fd, record, size, (off_t)end) != (ssize_t)size) return fail("write");
        end += size;
        if ((number + 1) % every != 0) continue;
        if (!careless && fdatasync(fd) != 0) return fail("fdatasync");
        for (; printed <= number; printed++)
            (void)printf("%" PRId64 "\n", printed);
        (void)fflush(stdout);
    }
}

static int run_check(const char *dir, const char *acks_path)
{
    FILE *acks = fopen(acks_path, "r");
    if (acks == NULL) return fail(acks_path);
    int64_t promised = -1, one;
    while (fscanf(acks, "%" SCNd64, &one) == 1)
        promised = one > promised ? one : promised;
    (void)fclose(acks);
    uint64_t end = 0;
    int fd = open_in(dir, O_RDONLY);
    int64_t count = fd < 0 ? 0 : scan(fd, &end);
    if (fd >= 0) close(fd);
    if (count > promised) return 0;
    (void)printf("record %" PRId64 " was promised, %" PRId64 " are there (%" PRIu64 " bytes)\n",
                 promised, count, end);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "write") == 0) {
        const char *how = argc > 3 ? argv[3] : "";
        return run_write(argv[2], strcmp(how, "careless") == 0, strcmp(how, "late") == 0 ? 8 : 1);
    }
    if (argc == 4 && strcmp(argv[1], "check") == 0) return run_check(argv[2], argv[3]);
    (void)fprintf(stderr, "usage: append write DIR [careless|late] | append check DIR ACKS\n");
    return 2;
}
