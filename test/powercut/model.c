/* model.c - is the simulated disk's idea of a power cut true? The same script on ext4 and in sim.c.
 *
 *   model write DIR [pause_us]  make scripts below DIR, one after the other, through the real seam;
 *                               print "begin N" when script N has its folder, "N K" after its step
 * K model check DIR ACKS        what is left of the last script must be an outcome that the
 *                               simulated disk allows, after one of the steps from the last printed
 *                               one on
 *
 * A script is a dozen plain calls drawn from its number: create, append, truncate, sync, rename,
 * unlink, sync of the directory. The checker replays it on a simulated node and forks its disk with
 * every subset of the unsynced changes and with torn outcomes. A mismatch is a bug of the model. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/posix.h"
#include "io/sim.h"
#include "sys/memory.h"

#define STEPS      12u
#define FILES      4u
#define PIECE_MAX  10000u
#define SUBSET_MAX (1u << STEPS)

/* Outcomes that mix ways file by file (ext4 keeps the size of an append to a mapped block without
 * its bytes) are found by drawing: the rarest wanted so far has a chance of one in a thousand. */
#define DRAWN_TRIES 60000u

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* ---- the script ------------------------------------------------------------------------------ */

static void path_to(char out[512], const char *dir, uint64_t file)
{
    (void)snprintf(out, 512, "%s/f%u", dir, (unsigned)(file % FILES));
}

/* Errors are part of the script (no such file): both worlds must then do nothing. */
static void on_file(struct io *io, const char *path, uint64_t chance)
{
    static uint8_t bytes[PIECE_MAX];
    struct io_file *file;
    int flags = IO_OPEN_WRITE | (chance % 4 == 0 ? IO_OPEN_CREATE : 0);
    if (io_disk_open(io, path, flags, &file) != 0) return;
    int64_t size = io_disk_size(io, file);
    uint64_t more = mix(chance);
    switch (chance / 4 % 6) {
    case 0: (void)io_disk_sync(io, file); break;
    case 1: (void)io_disk_truncate(io, file, more % ((uint64_t)size + 1)); break;
    default: {
        size_t count = 1 + (size_t)(more % (more & 256 ? 300 : PIECE_MAX));
        for (size_t i = 0; i < count; i++)
            bytes[i] = (uint8_t)(mix(chance + i / 8) >> (i % 8 * 8)) | 1;
        (void)io_disk_write(io, file, bytes, count, (uint64_t)size);
    }
    }
    io_disk_close(io, file);
}

static void make_step(struct io *io, const char *dir, uint64_t script, uint32_t step)
{
    uint64_t chance = mix(script * STEPS + step + 1);
    char path[512], other[512];
    path_to(path, dir, chance >> 8);
    path_to(other, dir, chance >> 16);
    switch (chance % 10) {
    case 0: (void)io_disk_sync_dir(io, dir); break;
    case 1: (void)io_disk_rename(io, path, other); break;
    case 2: (void)io_disk_unlink(io, path); break;
    default: on_file(io, path, mix(chance));
    }
}

/* ---- what is there --------------------------------------------------------------------------- */

struct state {
    struct io *io;
    const char *dir;
    uint64_t hash;
    bool print;
};

static bool take(void *context, const char *name)
{
    struct state *state = context;
    char path[512];
    struct io_file *file;
    (void)snprintf(path, sizeof(path), "%s/%s", state->dir, name);
    uint64_t hash = 1;
    int64_t size = -1;
    if (io_disk_open(state->io, path, IO_OPEN_READ, &file) == 0) {
        static uint8_t bytes[STEPS * PIECE_MAX];
        size = io_disk_read(state->io, file, bytes, sizeof(bytes), 0);
        for (int64_t i = 0; i < size; i++)
            hash = mix(hash * 31 + bytes[i]);
        io_disk_close(state->io, file);
    }
    for (const char *p = name; *p != '\0'; p++)
        hash = mix(hash ^ (uint8_t)*p);
    state->hash = mix(state->hash ^ hash) + (uint64_t)size;
    if (state->print) (void)printf("  %s %" PRId64 " bytes\n", name, size);
    return true;
}

static uint64_t state_of(struct io *io, const char *dir, bool print)
{
    struct state state = {.io = io, .dir = dir, .hash = 1, .print = print};
    int result = io_disk_list(io, dir, take, &state);
    return result == 0 ? state.hash : 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static struct io *real_world(void)
{
    static struct mem mem;
    memory_init(&mem, 0);
    struct io *io = posix_new(&mem);
    if (io == NULL) exit(3);
    return io;
}

static int run_write(const char *top, uint32_t pause_us)
{
    struct io *io = real_world();
    char dir[256];
    struct io_stat stat;
    for (uint64_t script = 0;; script++) {
        (void)snprintf(dir, sizeof(dir), "%s/%" PRIu64, top, script);
        if (io_disk_stat(io, dir, &stat) == 0) continue; /* Made before an earlier cut. */
        if (io_disk_mkdir(io, dir) != 0 || io_disk_sync_dir(io, top) != 0) return 1;
        (void)printf("begin %" PRIu64 "\n", script);
        (void)fflush(stdout);
        for (uint32_t step = 0; step < STEPS; step++) {
            make_step(io, dir, script, step);
            (void)printf("%" PRIu64 " %u\n", script, step);
            (void)fflush(stdout);
            usleep(pause_us);
        }
    }
}

/* ---- checking -------------------------------------------------------------------------------- */

/* The state that one outcome leaves. */
static uint64_t outcome_state(const struct sim_node *node, enum sim_crash kind, uint64_t choice)
{
    struct sim_world *world = sim_world_new(1, NULL);
    struct io *io = sim_node_start(sim_node_fork(world, node, kind, choice));
    uint64_t hash = state_of(io, "/data", false);
    sim_world_free(world);
    return hash;
}

static bool allowed_now(const struct sim_node *node, uint64_t real)
{
    uint64_t subsets = (uint64_t)1 << sim_node_unsynced(node);
    for (uint64_t subset = 0; subset < subsets && subset < SUBSET_MAX; subset++)
        if (outcome_state(node, SIM_CRASH_CHOSEN, subset) == real) return true;
    for (uint64_t choice = 0; choice < DRAWN_TRIES; choice++)
        if (outcome_state(node, SIM_CRASH_RANDOM, mix(choice)) == real) return true;
    return false;
}

static bool allowed(uint64_t script, uint32_t steps_done, uint64_t real)
{
    struct sim_options options = {.disk_bytes = UINT64_C(1) << 30};
    struct sim_world *world = sim_world_new(1, &options);
    struct sim_node *node = sim_node_new(world, "model");
    struct io *io = sim_node_start(node);
    bool found = io_disk_mkdir(io, "/data") != 0 || io_disk_sync_dir(io, "/") != 0;
    for (uint32_t step = 0; step <= STEPS && !found; step++) {
        if (step >= steps_done) found = allowed_now(node, real);
        if (step < STEPS) make_step(io, "/data", script, step);
    }
    sim_world_free(world);
    return found;
}

static int run_check(const char *top, const char *acks_path)
{
    FILE *acks = fopen(acks_path, "r");
    if (acks == NULL) return 3;
    char line[64], dir[256];
    uint64_t script = 0, of;
    uint32_t steps = 0, step;
    bool begun = false;
    while (fgets(line, sizeof(line), acks) != NULL) {
        if (sscanf(line, "begin %" SCNu64, &script) == 1) {
            begun = true;
            steps = 0;
        } else if (sscanf(line, "%" SCNu64 " %u", &of, &step) == 2 && of == script) {
            steps = step + 1;
        }
    }
    (void)fclose(acks);
    if (!begun) return 0;
    (void)snprintf(dir, sizeof(dir), "%s/%" PRIu64, top, script);
    struct io *io = real_world();
    uint64_t real = state_of(io, dir, false);
    bool fine = real != 0; /* The folder was durable before its script began. */
    fine = fine && allowed(script, steps, real);
    if (!fine) {
        (void)printf("script %" PRIu64 ", %u steps: the disk model does not know this outcome:\n",
                     script, steps);
        (void)state_of(io, dir, true);
    }
    io_free(io);
    return fine ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "write") == 0)
        return run_write(argv[2], argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0);
    if (argc == 4 && strcmp(argv[1], "check") == 0) return run_check(argv[2], argv[3]);
    (void)fprintf(stderr, "usage: model write DIR [pause_us] | model check DIR ACKS\n");
    return 2;
}
