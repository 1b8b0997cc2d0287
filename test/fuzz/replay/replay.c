/* replay.c - runs a fuzzing target without libFuzzer: each input once, then changed at random from
 * a fixed seed until the time is over. For ./dev test; any compiler will do.
 *
 *     replay SECONDS SEED FILE...      each FILE: inputs, each behind its length as four bytes,
 * big-endian
 *
 * Prints how many inputs ran. What fails stops the program; the input is then in replay.failed. */
#include "base/bytes.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    uint32_t size;
};

static const uint8_t *current;
static size_t current_size;
static uint64_t state;

static void keep_and_die(int signal_number)
{
    int fd = open("replay.failed", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ssize_t written = write(fd, current, current_size);
    (void)written;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* xorshift: the same on every machine. */
static uint64_t dice(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void run(const uint8_t *data, size_t size)
{
    current = data;
    current_size = size;
    (void)LLVMFuzzerTestOneInput(data, size);
}

/* Change a few bytes: to anything, to an edge, by a bit; cut, or repeat a part. */
static size_t change(uint8_t *data, size_t size, size_t room)
{
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe};
    for (uint64_t changes = 1 + dice() % 4; changes > 0 && size > 0; changes--) {
        size_t at = dice() % size;
        switch (dice() % 5) {
        case 0: data[at] = (uint8_t)dice(); break;
        case 1: data[at] = edges[dice() % sizeof(edges)]; break;
        case 2: data[at] ^= (uint8_t)(1u << dice() % 8); break;
        case 3: size = at + 1; break;
        case 4: {
            size_t part = MIN(size - at, room - size);
            memmove(data + at + part, data + at, size - at);
            size += part;
        }
        }
    }
    return size;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* All inputs of a file, behind those that are there. */
static struct input *load(const char *path, struct input *inputs, size_t *count)
{
    FILE *file = fopen(path, "rb");
    uint8_t head[4];
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    while (fread(head, 1, 4, file) == 4) {
        uint32_t size = load_be32(head);
        uint8_t *data = malloc(MAX(size, 1u));
        if (fread(data, 1, size, file) != size) exit(2);
        inputs = realloc(inputs, (*count + 1) * sizeof(*inputs));
        inputs[(*count)++] = (struct input){data, size};
    }
    fclose(file);
    return inputs;
}

int main(int argc, char **argv)
{
    struct input *inputs = NULL;
    size_t count = 0, largest = 0;
    uint64_t runs = 0;

    if (argc < 4) return 2;
    double end_s = now_s() + strtod(argv[1], NULL);
    state = strtoull(argv[2], NULL, 10) * 2 + 1;
    for (int i = 3; i < argc; i++)
        inputs = load(argv[i], inputs, &count);
    signal(SIGILL, keep_and_die);
    signal(SIGABRT, keep_and_die);
    for (size_t i = 0; i < count; i++, runs++) {
        run(inputs[i].data, inputs[i].size);
        largest = MAX(largest, inputs[i].size);
    }
    size_t room = 2 * largest + 16;
    uint8_t *data = malloc(room);
    while (count > 0 && now_s() < end_s) {
        const struct input *input = &inputs[dice() % count];
        memcpy(data, input->data, input->size);
        run(data, change(data, input->size, room));
        runs++;
    }
    fprintf(stderr, "%zu inputs, %llu runs\n", count, (unsigned long long)runs);
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)inputs[i].data);
    free(inputs);
    free(data);
    return 0;
}
